"""Floquet multipliers: which cycles are stable, and what happens when they are not.

One multiplier of a cycle is 1 (a shift along itself). Modes without any damping (bogie pitch of a wagon without primary
dampers) put pairs on the unit circle for every parameter; they are named and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from railsweep.sweeps.bifurcation.family import Family

Array = NDArray[np.float64]

NEUTRAL = 5e-3  # distance from the unit circle within which a pair may be an undamped mode
OUTSIDE = 1e-4  # a multiplier counts as unstable beyond 1 + this: what differences of a flow resolve
NEUTRAL_DOFS = ("pitch", "z", "roll", "pitch_dot", "z_dot", "roll_dot")
NEUTRAL_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Floquet:
    """Multipliers of a cycle.

    Attributes
    ----------
    multipliers : complex array
        All but the trivial one, largest first.
    trivial : complex
        The one that should be 1: its distance from 1 tells the accuracy of the matrix.
    neutral : tuple of str
        Undamped modes by their dominant state.
    unstable : int
        Number of multipliers outside the unit circle that are not neutral.
    kind : str
        "stable", "saddle" (real multiplier > 1), "period doubling" (real < -1), "torus" (complex pair).
    """

    multipliers: NDArray[np.complex128]
    trivial: complex
    neutral: tuple[str, ...]
    unstable: int
    kind: str

    @property
    def leading(self) -> complex:
        """The multiplier farthest out that is not neutral."""
        return complex(self.multipliers[len(self.neutral)]) if self.multipliers.size > len(self.neutral) else 0j


def floquet(family: Family, monodromy: Array, slope: Array, scale: Array) -> Floquet:
    """Sort the eigenvalues of a monodromy matrix; `slope` is f at its start."""
    scaled = monodromy * scale[None, :] / scale[:, None]
    along = slope / scale
    along = along / np.linalg.norm(along)
    # The slope is carried into itself; in a basis that begins with it the other multipliers are those of the rest. (At
    # a fold two multipliers are 1 with one vector: the eigenvalues of the whole would be right to half the digits.)
    basis, _ = np.linalg.qr(np.column_stack([along, np.eye(along.size)]))
    rest = basis[:, 1:]
    values, inner = np.linalg.eig(rest.T @ scaled @ rest)
    vectors = rest @ inner
    order = [int(i) for i in np.argsort(-np.abs(values), kind="stable")]
    neutral = [i for i in order if _is_neutral(family, complex(values[i]), vectors[:, i])]
    counted = [i for i in order if i not in neutral]
    outside = [i for i in counted if abs(values[i]) > 1.0 + OUTSIDE]
    names = tuple(family.states[int(np.argmax(np.abs(vectors[:, i])))] for i in neutral)
    return Floquet(
        multipliers=values[neutral + counted].astype(np.complex128),
        trivial=complex(along @ scaled @ along),
        neutral=names,
        unstable=len(outside),
        kind=_kind(complex(values[outside[0]])) if outside else "stable",
    )


def _kind(value: complex) -> str:
    """How a cycle loses its stability by a multiplier outside the unit circle."""
    if abs(value.imag) > 1e-6 * abs(value):
        return "torus"
    return "saddle" if value.real > 0.0 else "period doubling"


def _is_neutral(family: Family, value: complex, vector: NDArray[np.complex128]) -> bool:
    """A pair on the unit circle whose motion is vertical, pitching or rolling: nothing damps it by construction."""
    if family.model_at is None or abs(abs(value) - 1.0) > NEUTRAL or abs(value.imag) < 1e-9:
        return False
    size = np.abs(vector) ** 2
    own = [i for i, name in enumerate(family.states) if name.rpartition(".")[2] in NEUTRAL_DOFS]
    return bool(size[own].sum() > NEUTRAL_SHARE * size.sum())
