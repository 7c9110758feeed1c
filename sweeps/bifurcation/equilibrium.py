"""Equilibria over any parameter, through folds, with the spectrum at every point.

f(y; p) = 0 with the Jacobian of the family (for vehicles that along the body tree). Rows are scaled by what a change of
the states by their own size does to them, so one tolerance serves accelerations, rates and forces alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.crossing import NEUTRAL_RATIO, Spectrum
from railsweep.engine.equilibrium import free_states
from railsweep.engine.model import ModelError
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.continuation import (
    BranchEnd,
    BranchPoint,
    NoSolution,
    Settings,
    continue_branch,
    newton,
)
from railsweep.sweeps.bifurcation.family import Family

Array = NDArray[np.float64]

# what counts as 1 in an equilibrium at rest, by unit of the state; 1 for anything else
SMALLEST_SIZE = {"m": 1e-3, "rad": 1e-3, "m/s": 1e-3, "rad/s": 1e-3, "N": 1e3}
SMALLEST_ROW = 0.3  # of the scale a row of f had at the last point


@dataclass(frozen=True, slots=True, kw_only=True)
class EquilibriumPoint:
    """An equilibrium of a family.

    Attributes
    ----------
    parameter : float
    state : (n,) array
    spectrum : Spectrum
        Eigenvalues and eigenvectors of df/dy.
    kind : str
        "regular" or "fold".
    direction : float
        d(parameter) / d(arclength): 0 at a fold.
    """

    parameter: float
    state: Array
    spectrum: Spectrum
    kind: str = "regular"
    direction: float = 1.0
    arclength: float = 0.0
    iterations: int = 0

    @property
    def unstable(self) -> int:
        """Number of growing modes: a pair counts once, undamped modes do not count."""
        values = self.spectrum.eigenvalues
        return int(((values.real > NEUTRAL_RATIO * np.abs(values)) & (values.imag >= 0.0)).sum())

    @property
    def stable(self) -> bool:
        """No mode grows."""
        return self.unstable == 0


class EquilibriumProblem:
    """f(y; p) = 0 of a family, for `continue_branch`. States that an equilibrium leaves open keep their values."""

    def __init__(self, family: Family, start: Array, value: float) -> None:
        self.family = family
        self.held = np.array(start, dtype=np.float64)
        model = None if family.model_at is None else family.model_at(value)
        self.free = np.arange(family.n) if model is None else free_states(model)
        self.size = np.ones(family.n)
        self.renewed = False
        self._rows = np.ones(self.free.size)

    def state(self, z: Array) -> Array:
        """All states from the free ones."""
        y = self.held.copy()
        y[self.free] = z
        return y

    def renew(self, z: Array, p: float) -> None:
        """Scales of states and rows."""
        y = self.state(z)
        units = self.family.units
        largest = {u: max(abs(s) for s, v in zip(y, units, strict=True) if v == u) for u in set(units)}
        self.size = np.array([max(largest[u], SMALLEST_SIZE.get(u, 1.0)) for u in units])
        matrix = self.family.jacobian(y, p)
        rows = (np.abs(matrix) @ self.size)[self.free]
        # near a fold a row may vanish: it keeps a share of the largest it had
        self._rows = np.maximum(rows, SMALLEST_ROW * self._rows) if self.renewed else np.where(rows > 0.0, rows, 1.0)
        self.renewed = True

    @property
    def weights(self) -> Array:
        """Root-mean-square of the scaled states counts as 1."""
        weights: Array = 1.0 / (self.size[self.free] * np.sqrt(self.free.size))
        return weights

    @property
    def rows(self) -> Array:
        """What a change of the states by their own size does to f."""
        return self._rows

    def residual(self, z: Array, p: float) -> Array:
        """f."""
        slope: Array = self.family.slope(self.state(z), p)[self.free]
        return slope

    def jacobian(self, z: Array, p: float) -> tuple[Array, Array]:
        """df/dy and df/dp."""
        y = self.state(z)
        matrix = self.family.jacobian(y, p)[np.ix_(self.free, self.free)]
        by_value = self.family.difference(lambda v: self.family.slope(y, v), p)[self.free]
        return matrix, by_value

    def monitor(self, z: Array, p: float, jacobian: Array) -> Spectrum:
        """Eigenvalues."""
        return spectrum_of(self.family, self.state(z), p)


def spectrum_of(family: Family, y: Array, value: float) -> Spectrum:
    """Eigenvalues and eigenvectors of df/dy at an equilibrium."""
    values, vectors = np.linalg.eig(family.jacobian(y, value))
    return Spectrum(value, y, values.astype(np.complex128), vectors.astype(np.complex128))


def find_equilibrium(family: Family, value: float, guess: Array | None = None) -> Array:
    """The equilibrium near a guess; raises ModelError.

    Without a guess (or where Newton fails from it) a vehicle starts from rest and is led into its curve.
    """
    if family.model_at is not None:
        model = family.model_at(value)
        if guess is not None:
            try:
                return model.equilibrium(guess)
            except ModelError:
                pass
        return model.equilibrium()
    start = np.zeros(family.n) if guess is None else np.asarray(guess, dtype=np.float64)
    problem = EquilibriumProblem(family, start, value)
    problem.renew(start, value)
    try:
        z, _ = newton(problem, start, value, Settings(tolerance=1e-12))
    except NoSolution as none:
        raise ModelError(Status.NEWTON_FAILED, f"no equilibrium at {family.name} = {value:g}: {none}") from None
    return z


def continue_equilibrium(
    family: Family,
    start: Array,
    value: float,
    *,
    direction: int = 1,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    settings: Settings | None = None,
    end: BranchEnd | None = None,
) -> Iterator[EquilibriumPoint]:
    """Follow an equilibrium over the parameter of its family, through folds. An iterator.

    Parameters
    ----------
    family : Family
    start : (n,) array
        The equilibrium or a guess.
    value : float
        Of the parameter, to start from.
    direction : int
        First towards rising (1) or falling (-1) parameter.
    bounds : (float, float)
        The branch ends at the first point outside.
    settings : Settings, optional
        Step lengths and tolerances.
    end : BranchEnd, optional
        Filled in with the reason when the branch ends.
    """
    settings = settings or Settings()
    problem = EquilibriumProblem(family, start, value)
    z = problem.held[problem.free]
    for found in continue_branch(problem, z, value, direction=direction, bounds=bounds, settings=settings, end=end):
        yield equilibrium_point(problem, found)


def equilibrium_point(problem: EquilibriumProblem, found: BranchPoint) -> EquilibriumPoint:
    """A branch point in words of equilibria."""
    return EquilibriumPoint(
        parameter=found.parameter,
        state=problem.state(found.z),
        spectrum=found.found,
        kind=found.kind,
        direction=0.0 if found.kind == "fold" else float(found.tangent[-1]),
        arclength=found.arclength,
        iterations=found.iterations,
    )
