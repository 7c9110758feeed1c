"""Eigenvalues over a parameter: which one is which at the next value, which never move, and where one crosses.

A mode is followed from value to value by the likeness of its eigenvectors. Modes without damping by construction sit on
the imaginary axis at every value; they are neutral and never cross. Everything here works on a function that returns
the spectrum at a value, so it serves any parameter of any system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.model import ModelError

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

NEUTRAL_RATIO = 3e-6  # abs(Re) / abs(lambda) below this at two values is no damping at all
NEUTRAL_STEP = 0.02  # relative distance of the second value
CROSSING_TOLERANCE = 1e-9  # relative, in the parameter
ON_AXIS = 1e-10  # abs(Re) / abs(lambda) of an eigenvalue that is taken to be on the axis
ATTEMPTS = 60


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Equilibrium, eigenvalues and right eigenvectors (columns) at one value of the parameter."""

    value: float
    state: Array
    eigenvalues: ComplexArray
    vectors: ComplexArray


@dataclass(frozen=True, slots=True)
class AxisCrossing:
    """An eigenvalue (of a pair: that with Im >= 0) on the imaginary axis; `index` is its place in the spectrum."""

    spectrum: Spectrum
    index: int
    rising: bool

    @property
    def value(self) -> float:
        """Of the parameter."""
        return float(self.spectrum.value)

    @property
    def eigenvalue(self) -> complex:
        """Re is what the search left."""
        return complex(self.spectrum.eigenvalues[self.index])

    @property
    def vector(self) -> ComplexArray:
        """The mode."""
        vector: ComplexArray = self.spectrum.vectors[:, self.index]
        return vector


Solve = Callable[[float, Array | None], Spectrum]


def neutral_modes(solve: Solve, at: Spectrum) -> NDArray[np.bool_]:
    """Which eigenvalues stay on the imaginary axis when the parameter changes."""
    candidate = _undamped(at.eigenvalues)
    if not candidate.any():
        return candidate
    try:
        other = solve(at.value * (1.0 - NEUTRAL_STEP) if at.value != 0.0 else NEUTRAL_STEP, at.state)
    except ModelError:
        return candidate
    return candidate & _undamped(other.eigenvalues[matched(at, other)])


def _undamped(values: ComplexArray) -> NDArray[np.bool_]:
    size = np.abs(values)
    return (np.abs(values.real) <= NEUTRAL_RATIO * size) | (size < 1e-6)


def matched(a: Spectrum, b: Spectrum) -> NDArray[np.intp]:
    """For every eigenvalue of `a` the index of its continuation in `b`: alike vectors, near values."""
    from scipy.optimize import linear_sum_assignment

    likeness = np.abs(a.vectors.conj().T @ b.vectors)
    distance = np.abs(a.eigenvalues[:, None] - b.eigenvalues[None, :]) / (1.0 + np.abs(a.eigenvalues)[:, None])
    rows, columns = linear_sum_assignment(distance * 4.0 - likeness)
    partner = np.empty(a.eigenvalues.size, np.intp)
    partner[rows] = columns
    return partner


def crossings_between(
    solve: Solve, low: Spectrum, high: Spectrum, neutral: NDArray[np.bool_] | None = None
) -> list[AxisCrossing]:
    """All crossings between two values, in the order of the parameter; `neutral` is that of `high`."""
    if neutral is None:
        neutral = neutral_modes(solve, high)
    partner = matched(high, low)
    found: list[AxisCrossing] = []
    for i in range(high.eigenvalues.size):
        before, after = low.eigenvalues[partner[i]], high.eigenvalues[i]
        if neutral[i] or after.imag < 0.0 or (before.real > 0.0) == (after.real > 0.0):
            continue
        crossing = _located(solve, low, high, int(partner[i]), i)
        if crossing is not None:
            found.append(crossing)
    return sorted(found, key=lambda c: c.value)


def _located(solve: Solve, low: Spectrum, high: Spectrum, i: int, j: int) -> AxisCrossing | None:
    """Root of Re(lambda) of one followed mode between two values (regula falsi with bisection as safeguard)."""
    a, ka, fa = low, i, low.eigenvalues[i].real
    b, kb, fb = high, j, high.eigenvalues[j].real
    for step in range(ATTEMPTS):
        width = abs(b.value - a.value)
        if width <= CROSSING_TOLERANCE * max(abs(a.value), abs(b.value)) or fa == 0.0:
            break
        value = b.value - fb * (b.value - a.value) / (fb - fa)
        if step % 3 == 2 or not (a.value < value < b.value):
            value = 0.5 * (a.value + b.value)
        near, k = (b, kb) if abs(value - b.value) < abs(value - a.value) else (a, ka)
        try:
            middle = solve(value, near.state)
        except ModelError:
            return None
        k = int(matched(near, middle)[k])
        f = middle.eigenvalues[k].real
        if (f > 0.0) == (fb > 0.0):
            b, kb, fb = middle, k, f
        else:
            a, ka, fa = middle, k, f
        if abs(f) <= ON_AXIS * abs(middle.eigenvalues[k]):
            b, kb = middle, k
            break
    return AxisCrossing(b, kb, rising=bool(high.eigenvalues[j].real > 0.0))
