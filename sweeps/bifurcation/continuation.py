"""Pseudo-arclength continuation of F(z, p) = 0 through folds, as an iterator (Keller 1977; Allgower-Georg).

A point is corrected on the plane through the predicted point perpendicular to the tangent, in scaled variables, so a
fold is a point like any other. The Jacobian of a flow is dear (a monodromy matrix), so that of the last point serves
the next one as long as Newton contracts; it is computed anew at every accepted point, where the tangent and the
stability need it.

Where F has kinks (a contact table of piecewise cubics, a bump stop) its Jacobian jumps: there Newton contracts
linearly or not at all, the Jacobian is taken anew at the iterate, and then the step is halved; a branch that stops
because the step fell below its limit says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.engine.flow import FlowError
from railsweep.engine.model import ModelError
from railsweep.kernels.status import Status

Array = NDArray[np.float64]

SLOW = 0.7  # a correction that leaves more of the residual than this is slow
WORSE = 1.5  # a correction after which the residual is larger by this is taken back
PATIENCE = 5  # slow corrections in a row
MOST_JACOBIANS = 12  # of one search at a fixed parameter
FOLD_ATTEMPTS = 16
SMALLEST_CUT = 1.0 / 64.0  # of a Newton step at a fixed parameter
EASY = 10  # corrections with which the step stays as it is
WANTED_ANGLE = 0.5  # between neighbouring tangents [rad]
SHORTEST, LONGEST = 0.5, 2.0  # factors from step to step


class ZeroProblem(Protocol):
    """F(z, p) = 0 with as many equations as z has entries.

    Scales follow the branch, F and its derivatives do not depend on them: so a Jacobian can serve the next point.
    """

    def renew(self, z: Array, p: float) -> None:
        """Prepare for points near this one (grids, references, scales)."""

    def residual(self, z: Array, p: float) -> Array:
        """F; raises FlowError or ModelError where there is none."""

    def jacobian(self, z: Array, p: float) -> tuple[Array, Array]:
        """dF/dz and dF/dp."""

    @property
    def weights(self) -> Array:
        """Scales of z: the length of a step is |dz * weights|."""

    @property
    def rows(self) -> Array:
        """Scales of F: F / rows is 1 for an error as large as the solution."""

    def monitor(self, z: Array, p: float, jacobian: Array) -> Any:
        """What to keep with an accepted point (stability, amplitudes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a branch is followed.

    Attributes
    ----------
    step, smallest, largest : float
        Arclength: first, least and greatest; 1 is a change of the solution by its own size.
    parameter_scale : float
        Change of the parameter that counts as 1.
    tolerance : float
        Of the scaled equations.
    fold_tolerance : float
        A fold is located until the parameter changes by less than this share of `parameter_scale`.
    iterations, fresh : int
        Most corrections of a point, and most Jacobians taken on the way to it.
    patience : int
        Failures of a point after which a Jacobian is taken on the way.
    turn : float
        Cosine between neighbouring tangents below which a step is repeated with half the length.
    """

    step: float = 0.1
    smallest: float = 1e-5
    largest: float = 0.5
    parameter_scale: float = 1.0
    tolerance: float = 1e-8
    fold_tolerance: float = 1e-5
    iterations: int = 25
    fresh: int = 1
    patience: int = 2
    turn: float = 0.2
    points: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPoint:
    """A point of a branch.

    Attributes
    ----------
    z, parameter
        The solution.
    tangent : array
        Scaled direction of travel; its last entry is that of the parameter.
    arclength : float
        From the first point.
    kind : str
        "regular" or "fold" (the parameter turns here).
    iterations, jacobians : int
        Work of the correction.
    found : Any
        What the problem's monitor said.
    """

    z: Array
    parameter: float
    tangent: Array
    arclength: float
    kind: str = "regular"
    iterations: int = 0
    jacobians: int = 0
    found: Any = None


@dataclass(slots=True, kw_only=True)
class BranchEnd:
    """Why a branch ended: filled in when the iterator is exhausted."""

    reason: str = ""
    status: Status = Status.OK


class NoSolution(RuntimeError):  # noqa: N818 - an outcome, not a mistake
    """Newton found nothing near the start."""


# what an evaluation raises where the problem has none
NO_VALUE = (FlowError, ModelError, InputError)


def newton(problem: ZeroProblem, z: Array, p: float, settings: Settings) -> tuple[Array, int]:
    """Solve F(z, p) = 0 at a fixed parameter; returns z and the number of iterations.

    Raises NoSolution. Directions in which F does not change (the phases of two independent bogies) are left alone: the
    smallest step that solves the equations is taken. A start that solves the equations costs no Jacobian; one Jacobian
    serves, with Broyden's updates, as long as the residual falls.
    """
    rows, weights = problem.rows, problem.weights
    residual = problem.residual(z, p) / rows
    size = float(np.abs(residual).max())
    scaled: Array | None = None
    taken = 0
    fresh = False
    for iteration in range(settings.iterations * 3 + 1):
        if size <= settings.tolerance:
            return z, iteration
        if scaled is None:
            if taken == MOST_JACOBIANS:
                break
            scaled, fresh = problem.jacobian(z, p)[0] / rows[:, None] / weights[None, :], True
            taken += 1
        step = -np.linalg.lstsq(scaled, residual, rcond=1e-9)[0]
        cut, trial = 1.0, residual
        while cut >= SMALLEST_CUT:
            try:
                trial = problem.residual(z + cut * step / weights, p) / rows
                if np.abs(trial).max() < (1.0 - 0.1 * cut) * size:
                    break
            except NO_VALUE:
                pass
            cut *= 0.5
        else:
            if fresh:
                raise NoSolution(f"Newton stalls at residual {size:.2g}")
            scaled = None
            continue
        z = z + cut * step / weights
        scaled = scaled + np.outer(trial - residual - cut * (scaled @ step), step) / (cut * (step @ step))
        before, residual, size = size, trial, float(np.abs(trial).max())
        fresh = False
        if size > SLOW * before:
            scaled = None
    raise NoSolution(f"Newton does not converge: residual {size:.2g}")


def continue_branch(
    problem: ZeroProblem,
    z: Array,
    p: float,
    *,
    direction: int = 1,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    settings: Settings | None = None,
    end: BranchEnd | None = None,
) -> Iterator[BranchPoint]:
    """Follow the branch through (z, p), first towards rising (1) or falling (-1) parameter.

    Stop iterating at will; `end` says why the branch itself ended: a bound, the number of points, or no further point
    with steps above the smallest.
    """
    settings = settings or Settings()
    end = end if end is not None else BranchEnd()
    problem.renew(z, p)
    z, count = newton(problem, z, p, settings)
    jacobian = problem.jacobian(z, p)
    tangent = _tangent(problem, jacobian, settings)
    if tangent[-1] * direction < 0.0:
        tangent = -tangent
    point = BranchPoint(z=z, parameter=p, tangent=tangent, arclength=0.0, iterations=count, jacobians=1)
    point = replace(point, found=problem.monitor(z, p, jacobian[0]))
    yield point
    step, failures = settings.step, 0
    for _ in range(settings.points - 1):
        result = None
        while result is None:
            try:
                # A Jacobian at a failing iterate is dear and seldom helps; across a kink no shorter step does either.
                fresh = settings.fresh if failures > settings.patience else 0
                result = corrected(problem, point, jacobian, step, settings, fresh)
                failure = ""
                if float(result[0].tangent @ point.tangent) < settings.turn and step > 4.0 * settings.smallest:
                    result, failure = None, "the branch turns too sharply"
            except NoSolution as none:
                failure = str(none)
            except InputError as refused:
                failure = str(refused)
            except (FlowError, ModelError) as stopped:
                failure, end.status = str(stopped), stopped.status
            if result is None:
                step *= 0.5
                failures += 1
                if step < settings.smallest:
                    end.reason = f"no further point: {failure}"
                    return
        after, new_jacobian = result
        end.status = Status.OK
        if (after.tangent[-1] > 0.0) != (point.tangent[-1] > 0.0):
            yield _fold(problem, point, jacobian, after, settings)
        yield after
        if not bounds[0] <= after.parameter <= bounds[1]:
            end.reason = f"the parameter left {bounds[0]:g} to {bounds[1]:g}"
            return
        step = min(settings.largest, step * _stretch(point, after))
        point, jacobian, failures = after, new_jacobian, 0
    end.reason = f"{settings.points} points"


def _stretch(point: BranchPoint, after: BranchPoint) -> float:
    """Factor for the next step: how hard the correction was, and how much the branch turned.

    A step too long fails after a few residuals, a step too short costs a Jacobian: so steps grow readily.
    """
    angle = float(np.arccos(np.clip(after.tangent @ point.tangent, -1.0, 1.0)))
    turn = WANTED_ANGLE / max(angle, 1e-3)
    work = LONGEST + (1.0 - LONGEST) * after.iterations / EASY
    return min(max(min(turn, work), SHORTEST), LONGEST)


def scaled_lengths(problem: ZeroProblem, settings: Settings) -> Array:
    return np.append(problem.weights, 1.0 / settings.parameter_scale)


def _scaled(problem: ZeroProblem, jacobian: tuple[Array, Array], settings: Settings) -> Array:
    """The (n, n + 1) Jacobian of the scaled F with respect to the scaled (z, p)."""
    matrix: Array = np.column_stack(jacobian) / problem.rows[:, None] / scaled_lengths(problem, settings)[None, :]
    return matrix


def _tangent(problem: ZeroProblem, jacobian: tuple[Array, Array], settings: Settings) -> Array:
    """Unit null vector of the scaled (n, n + 1) Jacobian."""
    matrix = _scaled(problem, jacobian, settings)
    # the last right singular vector; a QR of the transpose gives the same null space at less cost
    q, _ = np.linalg.qr(matrix.T, mode="complete")
    tangent: Array = q[:, -1]
    return tangent / np.linalg.norm(tangent)


def corrected(
    problem: ZeroProblem,
    point: BranchPoint,
    jacobian: tuple[Array, Array],
    step: float,
    settings: Settings,
    most_fresh: int = 0,
) -> tuple[BranchPoint, tuple[Array, Array]]:
    """The point at a distance `step` along the tangent."""
    lengths = scaled_lengths(problem, settings)
    guess = np.append(point.z, point.parameter) + step * point.tangent / lengths
    problem.renew(guess[:-1], float(guess[-1]))
    lengths = scaled_lengths(problem, settings)  # scales follow the branch
    row = point.tangent
    u, before = guess.copy(), np.inf
    matrix = np.vstack([_scaled(problem, jacobian, settings), row])
    fresh = slow = 0
    last: Array = np.zeros(u.size)
    du: Array = np.zeros(u.size)
    for iteration in range(settings.iterations + 1):
        trial = u + du / lengths
        given = problem.residual(trial[:-1], float(trial[-1])) / problem.rows
        residual = np.append(given, row @ ((trial - guess) * lengths))
        size = float(np.linalg.norm(residual) / np.sqrt(residual.size))
        if size <= settings.tolerance:
            return _accepted(problem, point, trial, step, iteration, fresh, settings)
        if iteration > 0:
            # Broyden's update: the Jacobian that explains the last step, changed as little as possible
            matrix = matrix + np.outer(residual - last - matrix @ du, du) / (du @ du)
        slow = slow + 1 if size > SLOW * before else 0
        if size > WORSE * before:
            residual = last  # a step back: the update knows better now
        else:
            u, before, last = trial, size, residual
        if slow == PATIENCE or not np.isfinite(size):
            # the borrowed Jacobian does not lead there: take it here, once
            if fresh == most_fresh or not np.isfinite(size):
                raise NoSolution(f"Newton does not contract: residual {size:.2g}")
            matrix = np.vstack([_scaled(problem, problem.jacobian(u[:-1], float(u[-1])), settings), row])
            fresh, slow = fresh + 1, 0
        try:
            du = np.asarray(np.linalg.solve(matrix, -residual), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise NoSolution("the Jacobian is singular") from None
        if np.linalg.norm(du) > 4.0 * max(abs(step), 0.05):
            raise NoSolution("Newton leaves the neighbourhood")
    raise NoSolution(f"Newton needs more than {settings.iterations} iterations: residual {size:.2g}")


def _accepted(
    problem: ZeroProblem, point: BranchPoint, u: Array, step: float, iterations: int, fresh: int, settings: Settings
) -> tuple[BranchPoint, tuple[Array, Array]]:
    """A corrected point with its Jacobian, its tangent (in the direction of travel) and what the monitor says."""
    z, p = u[:-1].copy(), float(u[-1])
    jacobian = problem.jacobian(z, p)
    tangent = _tangent(problem, jacobian, settings)
    if tangent @ point.tangent < 0.0:
        tangent = -tangent
    found = BranchPoint(
        z=z,
        parameter=p,
        tangent=tangent,
        arclength=point.arclength + step,
        iterations=iterations,
        jacobians=fresh + 1,
        found=problem.monitor(z, p, jacobian[0]),
    )
    return found, jacobian


def _fold(
    problem: ZeroProblem, low: BranchPoint, jacobian: tuple[Array, Array], high: BranchPoint, settings: Settings
) -> BranchPoint:
    """The point between two others at which dp/ds = 0: secant on the tangent's last entry, with bisection.

    Steps start from the nearest point before the fold: seen from farther away a sharp fold hides both its sides in one
    plane.
    """
    best = low if abs(low.tangent[-1]) < abs(high.tangent[-1]) else high
    after, side = high, 0
    fa, fb = float(low.tangent[-1]), float(high.tangent[-1])
    for attempt in range(FOLD_ATTEMPTS):
        apart = np.append(after.z - low.z, after.parameter - low.parameter) * scaled_lengths(problem, settings)
        distance = float(np.linalg.norm(apart))
        share = 0.5 if attempt % 6 == 5 else fa / (fa - fb)
        try:
            middle, matrix = corrected(problem, low, jacobian, share * distance, settings, settings.fresh)
        except (NoSolution, *NO_VALUE):
            try:
                middle, matrix = corrected(problem, low, jacobian, 0.25 * distance, settings, settings.fresh)
            except (NoSolution, *NO_VALUE):
                break
        f = float(middle.tangent[-1])
        if abs(f) < abs(best.tangent[-1]):
            best = middle
        # what is left to gain: the parameter is a parabola of s with slope f here and 0 at the fold
        slope = abs(float(after.tangent[-1] - low.tangent[-1])) / distance
        if 0.5 * f * f / slope < settings.fold_tolerance:
            break
        # an end that stays counts half (Illinois), or the other one would creep towards the fold
        if (f > 0.0) == (fa > 0.0):
            low, jacobian, fa = middle, matrix, f
            fb, side = (0.5 * fb if side == 1 else fb), 1
        else:
            after, fb = middle, f
            fa, side = (0.5 * fa if side == -1 else fa), -1
    problem.renew(high.z, high.parameter)
    return replace(best, kind="fold")
