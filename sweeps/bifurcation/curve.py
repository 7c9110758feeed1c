"""Curves of Hopf points and of folds of cycles over two parameters, followed directly.

A Hopf curve solves f(y; p, q) = 0 together with Re(lambda) = 0 of the pair that crosses (a minimal extension: one
equation more, one unknown more); the derivative of an eigenvalue is w* dJ v / w* v with its left and right vectors. It
is continued in q by pseudo-arclength, so it may turn.

A fold of cycles is solved anew for every value of q, warm: predicted from its neighbours, corrected on to the branch of
cycles, and led to dp/ds = 0 by the curvature that the last fold had. That costs two or three monodromy matrices; the
extended system would need one for every state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from railsweep.sweeps.bifurcation.continuation import (
    NO_VALUE,
    BranchEnd,
    BranchPoint,
    NoSolution,
    Settings,
    continue_branch,
    corrected,
)
from railsweep.sweeps.bifurcation.cycle import CyclePoint, CycleProblem
from railsweep.sweeps.bifurcation.equilibrium import EquilibriumProblem
from railsweep.sweeps.bifurcation.family import Family
from railsweep.sweeps.bifurcation.hopf import HopfPoint, normalised

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Families = Callable[[float], Family]  # value of the second parameter -> family over the first

STATE_DIFFERENCE = 1e-4  # of the size of a state, for the derivative of an eigenvalue
FIRST_STEP = 0.02  # along the branch of cycles, to learn its curvature at the first fold
LONGEST_STEP = 0.3
ATTEMPTS = 8  # steps towards a fold
HALVINGS = 6  # of the way between two values of the second parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A Hopf point or a fold of cycles over two parameters.

    Attributes
    ----------
    first, second : float
        Values of the two parameters; the first is not a number where nothing was found.
    frequency_hz : float
    point : HopfPoint or CyclePoint, optional
        What stands there.
    kind : str
        "regular", or "fold" where a Hopf curve turns in the second parameter.
    reason : str
        Why there is no point.
    """

    first: float
    second: float
    frequency_hz: float = float("nan")
    point: HopfPoint | CyclePoint | None = None
    kind: str = "regular"
    reason: str = ""


class HopfCurveProblem:
    """f = 0 and Re(lambda) = 0 in (y, first parameter) for every second parameter, for `continue_branch`."""

    def __init__(self, families: Families, hopf: HopfPoint, second: float, first_scale: float) -> None:
        self.families = families
        self.first_scale = first_scale
        self.rest = EquilibriumProblem(families(second), hopf.state, hopf.parameter)
        self.value = 2j * np.pi * hopf.frequency_hz
        self.vector: ComplexArray = hopf.vector / np.linalg.norm(hopf.vector)
        self.direction = hopf.direction

    def pack(self, hopf: HopfPoint) -> Array:
        """Unknowns of a Hopf point."""
        return np.append(hopf.state[self.rest.free], hopf.parameter)

    def _at(self, q: float) -> EquilibriumProblem:
        self.rest.family = self.families(q)
        return self.rest

    def _pair(self, z: Array, q: float) -> tuple[complex, ComplexArray, ComplexArray]:
        """The followed eigenvalue with its right and left vectors."""
        from scipy.linalg import eig

        rest = self._at(q)
        values, left, right = eig(rest.family.jacobian(rest.state(z[:-1]), float(z[-1])), left=True, right=True)
        likeness = np.abs(self.vector.conj() @ right)
        i = int(np.argmax(likeness - 4.0 * np.abs(values - self.value) / (1.0 + abs(self.value))))
        return complex(values[i]), right[:, i], left[:, i]

    def renew(self, z: Array, p: float) -> None:
        """Scales, and the mode to follow."""
        self._at(p).renew(z[:-1], float(z[-1]))
        self.value, self.vector, _ = self._pair(z, p)

    @property
    def weights(self) -> Array:
        """Those of an equilibrium, and of the first parameter."""
        return np.append(self.rest.weights, 1.0 / self.first_scale)

    @property
    def rows(self) -> Array:
        """Those of an equilibrium, and the angular frequency."""
        return np.append(self.rest.rows, abs(self.value))

    def residual(self, z: Array, p: float) -> Array:
        """f, and the damping."""
        value, _, _ = self._pair(z, p)
        return np.append(self._at(p).residual(z[:-1], float(z[-1])), value.real)

    def jacobian(self, z: Array, p: float) -> tuple[Array, Array]:
        """Derivatives of both; those of the eigenvalue through its vectors."""
        rest = self._at(p)
        first = float(z[-1])
        _, right, left = self._pair(z, p)
        # Re(w* dJ v) / w* v as a sum over dJ with real weights
        share = (np.outer(left.conj(), right) / np.vdot(left, right)).real
        matrix, by_first = rest.jacobian(z[:-1], first)
        y = rest.state(z[:-1])
        damping = np.zeros(z.size)
        for k, i in enumerate(rest.free):
            step = STATE_DIFFERENCE * rest.size[i]
            change = np.zeros(y.size)
            change[i] = step
            bend = rest.family.jacobian(y + change, first) - rest.family.jacobian(y - change, first)
            damping[k] = (share * bend).sum() / (2.0 * step)
        bend = rest.family.difference(lambda v: rest.family.jacobian(y, v), first)
        damping[-1] = (share * bend).sum()
        whole = np.vstack([np.column_stack([matrix, by_first]), damping])

        def at(q: float) -> Array:
            family = self.families(q)
            change = (share * family.jacobian(y, first)).sum()
            return np.append(family.slope(y, first)[rest.free], change)

        return whole, rest.family.difference(at, p)

    def monitor(self, z: Array, p: float, jacobian: Array) -> HopfPoint:
        """Frequency and mode."""
        value, right, _ = self._pair(z, p)
        return HopfPoint(
            parameter=float(z[-1]),
            state=self.rest.state(z[:-1]),
            frequency_hz=abs(value.imag) / (2.0 * np.pi),
            vector=normalised(self.rest.family, right),
            direction="unstable" if jacobian[-1, -1] > 0.0 else "stable",
        )


def hopf_curve(
    families: Families,
    hopf: HopfPoint,
    second: float,
    *,
    direction: int = 1,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    first_scale: float = 1.0,
    settings: Settings | None = None,
    end: BranchEnd | None = None,
) -> Iterator[CurvePoint]:
    """Follow a Hopf point over the second parameter. An iterator.

    Parameters
    ----------
    families : callable
        Value of the second parameter -> family over the first; `families_of_model` makes one of a vehicle.
    hopf : HopfPoint
        Found at the value `second`.
    direction, bounds, settings, end
        As for `continue_branch`, of the second parameter.
    first_scale : float
        Change of the first parameter that counts as 1.
    """
    problem = HopfCurveProblem(families, hopf, second, first_scale)
    start = problem.pack(hopf)
    for found in continue_branch(
        problem, start, second, direction=direction, bounds=bounds, settings=settings, end=end
    ):
        point: HopfPoint = found.found
        yield CurvePoint(
            first=point.parameter,
            second=found.parameter,
            frequency_hz=point.frequency_hz,
            point=point,
            kind=found.kind,
        )


@dataclass(slots=True)
class _Fold:
    """A fold, and what the next one needs of it."""

    second: float
    found: BranchPoint
    jacobian: tuple[Array, Array]
    curvature: float


def fold_curve(
    families: Families,
    fold: CyclePoint,
    second: float,
    values: Iterable[float],
    *,
    settings: Settings | None = None,
    segments: int = 1,
    threads: int = 1,
    **options: float,
) -> Iterator[CurvePoint]:
    """Folds of cycles at the given values of the second parameter, each warm from its neighbours. An iterator.

    `fold` is one found by `continue_cycle` at the value `second`. A value without a fold gives a point that says why;
    the next one starts from the last that was found.
    """
    settings = settings or Settings()

    def problem_at(q: float) -> CycleProblem:
        return CycleProblem(families(q), segments=segments, threads=threads, **options)

    problem = problem_at(second)
    last = _first_fold(problem, fold, second, settings)
    before: _Fold | None = None
    yield _curve_point(problem, last)
    for value in values:
        target, reason, halvings = float(value), "", 0
        aim = target
        while True:
            problem = problem_at(aim)
            try:
                found = _next_fold(problem, before, last, aim, settings)
            except (NoSolution, *NO_VALUE) as none:
                reason = str(none)
                halvings += 1
                if halvings > HALVINGS:
                    yield CurvePoint(first=float("nan"), second=target, reason=reason)
                    break
                aim = 0.5 * (last.second + aim)
                continue
            before, last = last, found
            if aim == target:
                yield _curve_point(problem, last)
                break
            aim = target


def _curve_point(problem: CycleProblem, fold: _Fold) -> CurvePoint:
    cycle = problem.point(replace(fold.found, kind="fold"))
    return CurvePoint(first=cycle.parameter, second=fold.second, frequency_hz=cycle.frequency_hz, point=cycle)


def _first_fold(problem: CycleProblem, fold: CyclePoint, second: float, settings: Settings) -> _Fold:
    """The given fold with its tangent, and its curvature by one step along the branch."""
    z = problem.pack(fold.start, fold.period_s, fold.parameter)
    branch = continue_branch(problem, z, fold.parameter, settings=replace(settings, step=FIRST_STEP, points=2))
    start = next(branch)
    jacobian = problem.jacobian(start.z, start.parameter)
    after, _ = corrected(problem, start, jacobian, FIRST_STEP, settings, settings.fresh)
    curvature = float(after.tangent[-1] - start.tangent[-1]) / FIRST_STEP
    return _at_fold(problem, start, jacobian, curvature, second, settings)


def _next_fold(problem: CycleProblem, before: _Fold | None, last: _Fold, second: float, settings: Settings) -> _Fold:
    """From the neighbours: predict, correct on to the branch, go to its turning point."""
    u = np.append(last.found.z, last.found.parameter)
    if before is not None:
        share = (second - last.second) / (last.second - before.second)
        u = u + share * (u - np.append(before.found.z, before.found.parameter))
    guess = BranchPoint(z=u[:-1], parameter=float(u[-1]), tangent=last.found.tangent, arclength=0.0)
    problem.renew(guess.z, guess.parameter)
    start, jacobian = corrected(problem, guess, last.jacobian, 0.0, settings, max(settings.fresh, 1))
    return _at_fold(problem, start, jacobian, last.curvature, second, settings)


def _at_fold(
    problem: CycleProblem,
    start: BranchPoint,
    jacobian: tuple[Array, Array],
    curvature: float,
    second: float,
    settings: Settings,
) -> _Fold:
    """Along the branch to dp/ds = 0: secant on the tangent's last entry, from a known curvature."""
    point = start
    for _ in range(ATTEMPTS):
        slope = float(point.tangent[-1])
        if curvature == 0.0:
            raise NoSolution("the branch of cycles does not turn here")
        if 0.5 * slope * slope / abs(curvature) < settings.fold_tolerance:
            return _Fold(second, point, jacobian, curvature)
        step = float(np.clip(-slope / curvature, -LONGEST_STEP, LONGEST_STEP))
        point, jacobian = corrected(problem, point, jacobian, step, settings, settings.fresh)
        curvature = (float(point.tangent[-1]) - slope) / step
    raise NoSolution(f"no fold within {ATTEMPTS} steps along the branch")
