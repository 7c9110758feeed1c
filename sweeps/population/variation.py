"""How children come from parents, in the unit cube. Every operator takes its random numbers from the generator given.

SBX and polynomial mutation: Deb and Agrawal, Complex Systems 9, 1995, in their first form; what leaves the cube is put
on its face, so that a best value on a bound (common in design) is reached and not only approached. BLX: Eshelman and
Schaffer, 1993. Mixed: simple, arithmetic and direction crossover in equal shares (Taheri 2016, Eqs. B.3-B.5);
`replace`: B.6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CROSSOVERS = ("sbx", "blx", "mixed")
MUTATIONS = ("replace", "polynomial")
BLX_ALPHA = 0.5


def crossover(kind: str, a: Array, b: Array, draw: np.random.Generator, *, eta: float, rate: float) -> Array:
    """Two children of every pair: shape (2 pairs, dimension). In a pair, `a` is the better parent."""
    made = {"sbx": _sbx, "blx": _blx, "mixed": _mixed}[kind](a, b, draw, eta)
    cross = draw.random(len(a)) < rate
    first, second = np.where(cross[:, None], made[0], a), np.where(cross[:, None], made[1], b)
    return np.asarray(np.clip(np.stack([first, second], axis=1).reshape(-1, a.shape[1]), 0.0, 1.0))


def _sbx(a: Array, b: Array, draw: np.random.Generator, eta: float) -> tuple[Array, Array]:
    u, chosen, swap = draw.random(a.shape), draw.random(a.shape) < 0.5, draw.random(a.shape) < 0.5
    wide = np.where(u < 0.5, 2.0 * u, 1.0 / (2.0 - 2.0 * u)) ** (1.0 / (eta + 1.0))
    middle, half = (a + b) / 2.0, (a - b) / 2.0 * np.where(swap, -wide, wide)
    return np.where(chosen, middle + half, a), np.where(chosen, middle - half, b)


def _blx(a: Array, b: Array, draw: np.random.Generator, eta: float) -> tuple[Array, Array]:
    low, gap = np.minimum(a, b), np.abs(a - b)
    begin, width = low - BLX_ALPHA * gap, (1.0 + 2.0 * BLX_ALPHA) * gap
    return begin + width * draw.random(a.shape), begin + width * draw.random(a.shape)


def _mixed(a: Array, b: Array, draw: np.random.Generator, eta: float) -> tuple[Array, Array]:
    pairs, k = a.shape
    kind = draw.integers(0, 3, size=(pairs, 1))
    cut = np.arange(k)[None, :] < draw.integers(0, k + 1, size=(pairs, 1))
    share = draw.random((pairs, 1))
    ahead = draw.random((pairs, 2))
    # along the direction from the worse to the better parent and beyond
    first = [np.where(cut, a, b), share * a + (1.0 - share) * b, a + ahead[:, :1] * (a - b)]
    second = [np.where(cut, b, a), (1.0 - share) * a + share * b, a + ahead[:, 1:] * (a - b)]
    return np.choose(kind, first), np.choose(kind, second)


def mutate(kind: str, x: Array, draw: np.random.Generator, *, rate: float, eta: float) -> Array:
    """Changed points.

    `replace`: with the probability `rate` one random element becomes a random value. `polynomial`: every element with
    the probability `rate`, by a step whose distribution is the narrower the larger eta is.
    """
    n, k = x.shape
    if kind == "replace":
        mutant = draw.random(n) < rate
        element, value = np.asarray(draw.integers(0, k, size=n)), np.asarray(draw.random(n))
        found = x.copy()
        rows = np.flatnonzero(mutant)
        found[rows, element[rows]] = value[rows]
        return found
    chosen, u = draw.random(x.shape) < rate, draw.random(x.shape)
    down, up = (2.0 * u) ** (1.0 / (eta + 1.0)) - 1.0, 1.0 - (2.0 - 2.0 * u) ** (1.0 / (eta + 1.0))
    return np.clip(np.where(chosen, x + np.where(u < 0.5, down, up), x), 0.0, 1.0)
