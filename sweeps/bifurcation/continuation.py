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

from railsweep.engine.flow import FlowError
from railsweep.engine.model import ModelError
from railsweep.kernels.status import Status

Array = NDArray[np.float64]

SLOW = 0.7  # a correction that leaves more of the residual than this is slow
EASY = 7  # corrections after which a longer step is tried


class ZeroProblem(Protocol):
    """F(z, p) = 0 with as many equations as z has entries. Residuals are scaled: 1 is as large as the solution."""

    def renew(self, z: Array, p: float) -> None:
        """Prepare for points near this one (grids, references, scales)."""

    def residual(self, z: Array, p: float) -> Array:
        """F; raises FlowError or ModelError where there is none."""

    def jacobian(self, z: Array, p: float) -> tuple[Array, Array]:
        """dF/dz and dF/dp."""

    @property
    def weights(self) -> Array:
        """Scales of z: the length of a step is |dz * weights|."""

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
        Of the scaled residual.
    fold_tolerance : float
        A fold is located until the parameter changes by less than this share of `parameter_scale`.
    iterations, fresh : int
        Most corrections of a point, and most Jacobians taken on the way to it.
    turn : float
        Cosine between neighbouring tangents below which a step is repeated with half the length.
    """

    step: float = 0.1
    smallest: float = 1e-5
    largest: float = 0.5
    parameter_scale: float = 1.0
    tolerance: float = 1e-8
    fold_tolerance: float = 1e-5
    iterations: int = 14
    fresh: int = 1
    turn: float = 0.8
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


def newton(
    problem: ZeroProblem, z: Array, p: float, settings: Settings
) -> tuple[Array, tuple[Array, Array], int]:
    """Solve F(z, p) = 0 at a fixed parameter; returns z, the Jacobian there and the number of iterations.

    Raises NoSolution. Directions in which F does not change (the phases of two independent bogies) are left alone: the
    smallest step that solves the equations is taken.
    """
    matrix, _ = problem.jacobian(z, p)
    residual = problem.residual(z, p)
    size = np.abs(residual).max()
    for iteration in range(1, settings.iterations * 3 + 1):
        if size <= settings.tolerance:
            return z, problem.jacobian(z, p), iteration - 1
        scaled = matrix / problem.weights[None, :]
        step = -np.linalg.lstsq(scaled, residual, rcond=1e-9)[0] / problem.weights
        cut = 1.0
        while True:
            try:
                trial = problem.residual(z + cut * step, p)
                if np.abs(trial).max() < (1.0 - 0.1 * cut) * size:
                    break
            except (FlowError, ModelError):
                pass
            cut *= 0.5
            if cut < 1.0 / 64.0:
                raise NoSolution(f"Newton stalls at residual {size:.2g}")
        z = z + cut * step
        before, residual, size = size, trial, np.abs(trial).max()
        if size > 0.1 * before and size > settings.tolerance:
            matrix, _ = problem.jacobian(z, p)
    raise NoSolution(f"Newton does not converge: residual {size:.2g}")


class NoSolution(RuntimeError):  # noqa: N818 - an outcome, not a mistake
    """Newton found nothing near the start."""


def continue_branch(
    problem: ZeroProblem,
    z: Array,
    p: float,
    *,
    direction: int = 1,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    settings: Settings | None = None,
    end: BranchEnd | None = None,
    converged: bool = False,
) -> Iterator[BranchPoint]:
    """Follow the branch through (z, p), first towards rising (1) or falling (-1) parameter.

    Stop iterating at will; `end` says why the branch itself ended: a bound, the number of points, or no further point
    with steps above the smallest.
    """
    settings = settings or Settings()
    end = end if end is not None else BranchEnd()
    problem.renew(z, p)
    if not converged:
        z, jacobian, count = newton(problem, z, p, settings)
    else:
        jacobian, count = problem.jacobian(z, p), 0
    tangent = _tangent(problem, jacobian, settings)
    if tangent[-1] * direction < 0.0:
        tangent = -tangent
    point = BranchPoint(z=z, parameter=p, tangent=tangent, arclength=0.0, iterations=count, jacobians=1)
    point = replace(point, found=problem.monitor(z, p, jacobian[0]))
    yield point
    step = settings.step
    for _ in range(settings.points - 1):
        result = None
        failure = ""
        while result is None:
            try:
                result = _corrected(problem, point, jacobian, step, settings)
                if float(result[0].tangent @ point.tangent) < settings.turn and step > settings.smallest * 4.0:
                    result, failure = None, "the branch turns too sharply"
            except NoSolution as none:
                failure = str(none)
            except (FlowError, ModelError) as stopped:
                failure, end.status = str(stopped), stopped.status
            if result is None:
                step *= 0.5
                if step < settings.smallest:
                    end.reason = f"no further point: {failure}"
                    return
        after, new_jacobian = result
        end.status = Status.OK
        if (after.tangent[-1] > 0.0) != (point.tangent[-1] > 0.0):
            fold = _fold(problem, point, jacobian, after, settings)
            if fold is not None:
                yield fold
        yield after
        if not bounds[0] <= after.parameter <= bounds[1]:
            end.reason = f"the parameter left {bounds[0]:g} to {bounds[1]:g}"
            return
        point, jacobian = after, new_jacobian
        if after.jacobians == 1 and after.iterations <= EASY:
            step = min(settings.largest, 1.6 * step)
        elif after.jacobians > 1:
            step *= 0.6
    end.reason = f"{settings.points} points"


def _lengths(problem: ZeroProblem, settings: Settings) -> Array:
    return np.append(problem.weights, 1.0 / settings.parameter_scale)


def _bordered(jacobian: tuple[Array, Array], row: Array, lengths: Array) -> Array:
    """The Jacobian of F with respect to the scaled (z, p), and `row` below it."""
    matrix = np.column_stack(jacobian) / lengths[None, :]
    return np.vstack([matrix, row])


def _tangent(problem: ZeroProblem, jacobian: tuple[Array, Array], settings: Settings) -> Array:
    """Unit null vector of the scaled (n, n + 1) Jacobian."""
    matrix = np.column_stack(jacobian) / _lengths(problem, settings)[None, :]
    # the last right singular vector; a QR of the transpose gives the same null space at less cost
    q, _ = np.linalg.qr(matrix.T, mode="complete")
    tangent: Array = q[:, -1]
    return tangent / np.linalg.norm(tangent)


def _corrected(
    problem: ZeroProblem, point: BranchPoint, jacobian: tuple[Array, Array], step: float, settings: Settings
) -> tuple[BranchPoint, tuple[Array, Array]]:
    """The point at a distance `step` along the tangent."""
    lengths = _lengths(problem, settings)
    guess = np.append(point.z, point.parameter) + step * point.tangent / lengths
    problem.renew(guess[:-1], float(guess[-1]))
    lengths = _lengths(problem, settings)  # scales follow the branch
    row = point.tangent
    u, current = guess.copy(), jacobian
    matrix = _bordered(current, row, lengths)
    fresh = slow = 0
    before, last, du = np.inf, None, None
    for iteration in range(settings.iterations + 1):
        residual = np.append(problem.residual(u[:-1], float(u[-1])), row @ ((u - guess) * lengths))
        size = float(np.linalg.norm(residual) / np.sqrt(residual.size))
        if size <= settings.tolerance:
            z, p = u[:-1].copy(), float(u[-1])
            current = problem.jacobian(z, p)
            tangent = _tangent(problem, current, settings)
            if tangent @ row < 0.0:
                tangent = -tangent
            found = BranchPoint(
                z=z,
                parameter=p,
                tangent=tangent,
                arclength=point.arclength + step,
                iterations=iteration,
                jacobians=fresh + 1,
                found=problem.monitor(z, p, current[0]),
            )
            return found, current
        slow = slow + 1 if size > SLOW * before else 0
        if size > 4.0 * before or slow == 3:
            # the borrowed Jacobian does not lead there: take it here, once
            if fresh == settings.fresh or not np.isfinite(size):
                raise NoSolution(f"Newton does not contract: residual {size:.2g}")
            matrix = _bordered(problem.jacobian(u[:-1], float(u[-1])), row, lengths)
            fresh, slow = fresh + 1, 0
        elif last is not None and du is not None:
            # Broyden's update: the Jacobian that explains the last step, changed as little as possible
            matrix = matrix + np.outer(residual - last - matrix @ du, du) / (du @ du)
        before, last = size, residual
        try:
            du = np.linalg.solve(matrix, -residual)
        except np.linalg.LinAlgError:
            raise NoSolution("the Jacobian is singular") from None
        if np.linalg.norm(du) > 4.0 * max(step, 0.05):
            raise NoSolution("Newton leaves the neighbourhood")
        u = u + du / lengths
    raise NoSolution(f"Newton needs more than {settings.iterations} iterations: residual {size:.2g}")


def _fold(
    problem: ZeroProblem, low: BranchPoint, jacobian: tuple[Array, Array], high: BranchPoint, settings: Settings
) -> BranchPoint | None:
    """The point between two others at which dp/ds = 0: secant on the tangent's last entry, with bisection."""
    a, fa = 0.0, float(low.tangent[-1])
    b, fb = high.arclength - low.arclength, float(high.tangent[-1])
    best = low if abs(fa) < abs(fb) else high
    for attempt in range(12):
        s = b - fb * (b - a) / (fb - fa)
        if attempt % 4 == 3 or not a < s < b:
            s = 0.5 * (a + b)
        try:
            middle, _ = _corrected(problem, low, jacobian, s, settings)
        except (NoSolution, FlowError, ModelError):
            s = 0.5 * (a + b)
            try:
                middle, _ = _corrected(problem, low, jacobian, s, settings)
            except (NoSolution, FlowError, ModelError):
                break
        f = float(middle.tangent[-1])
        # what is left to gain: the parameter is a parabola of s with slope f here and 0 at the fold
        gain = 0.5 * abs(f) * min(abs(s - a), abs(b - s))
        if abs(f) < abs(float(best.tangent[-1])):
            best = middle
        if (f > 0.0) == (fa > 0.0):
            a, fa = s, f
        else:
            b, fb = s, f
        if gain < settings.fold_tolerance:
            break
    problem.renew(high.z, high.parameter)
    return replace(best, kind="fold") if best is not None else None
