"""Limit cycles by (multiple) shooting: x = flow over one period from x, with a phase condition (Seydel; Doedel).

Unknowns are the states x_0 .. x_{m-1} at m evenly spaced phases and the period T. With segments of length T/m

    flow(x_i, T/m) - x_{i+1} = 0  (x_m = x_0),    f(x_ref) . (x_0 - x_ref) = 0

The flow runs on frozen grids (`railsweep.engine.flow`), so its derivatives are those of the discrete flow. Their
product is the monodromy matrix; its eigenvalues are the Floquet multipliers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.flow import FlowError
from railsweep.engine.model import ModelError
from railsweep.sweeps.bifurcation.continuation import (
    BranchEnd,
    BranchPoint,
    NoSolution,
    Settings,
    continue_branch,
    newton,
)
from railsweep.sweeps.bifurcation.family import Family
from railsweep.sweeps.bifurcation.floquet import Floquet, floquet

Array = NDArray[np.float64]

DIFFERENCE = 1e-6  # of the scale of a state, one-sided
CENTRAL_DIFFERENCE = 3e-6
CENTRAL_UP_TO = 12  # states: small systems get central differences
NODES = 400  # at least, over a period, for the extremes of the states
RTOL, ATOL = 1e-6, 1e-9
VELOCITY_COUNTS = 0.1  # in the length of a step, beside 1 for a displacement
VANISHED = 0.01  # of the largest amplitude on a branch: such a cycle is an equilibrium
SMALL = 0.1  # of the largest amplitude: where a turn of the parameter may be that of a Hopf point
PARABOLA = 0.75  # of the change that the parabola of a Hopf point foretells
SHRINKS = "the cycle shrinks to the equilibrium"  # how the reason of such an end begins
RENEWALS = 3  # of the grid while a cycle is sought


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclePoint:
    """A limit cycle.

    Attributes
    ----------
    parameter, period_s : float
    start : (n,) array
        A state on the cycle.
    low, high : (n,) array
        Least and greatest value of every state over the period.
    floquet : Floquet
        Multipliers and what they say.
    kind : str
        "regular" or "fold".
    """

    parameter: float
    period_s: float
    start: Array
    low: Array
    high: Array
    floquet: Floquet
    kind: str = "regular"
    arclength: float = 0.0
    iterations: int = 0

    @property
    def amplitude(self) -> Array:
        """Half the range of every state."""
        return 0.5 * (self.high - self.low)

    @property
    def frequency_hz(self) -> float:
        """1 / period."""
        return 1.0 / self.period_s

    @property
    def stable(self) -> bool:
        """No multiplier outside the unit circle."""
        return self.floquet.unstable == 0


@dataclass(frozen=True, slots=True)
class _Observed:
    low: Array
    high: Array
    floquet: Floquet


class CycleProblem:
    """The shooting equations of a family, for `continue_branch`."""

    def __init__(
        self, family: Family, *, segments: int = 1, threads: int = 1, rtol: float = RTOL, atol: float = ATOL
    ) -> None:
        self.family = family
        self.segments, self.threads = segments, threads
        self.rtol, self.atol = rtol, atol
        self.flow = family.flow
        self.central = family.n <= CENTRAL_UP_TO
        self.grids: list[Array] = []
        self.scale = np.ones(family.n)
        self.reference = np.zeros(family.n)
        self.normal = np.zeros(family.n)
        self.period = 1.0
        self.monodromy = np.eye(family.n)

    def pack(self, start: Array, period: float, value: float) -> Array:
        """Unknowns from one state on (or near) the cycle."""
        states = [start]
        for _ in range(1, self.segments):
            run = self.family.run(states[-1], value, period / self.segments, rtol=self.rtol, atol=self.atol)
            states.append(run.y_end)
        return np.concatenate([*states, [period]])

    def split(self, z: Array) -> tuple[Array, float]:
        """(segments, n) states and the period."""
        return z[:-1].reshape(self.segments, self.family.n), float(z[-1])

    def renew(self, z: Array, p: float) -> None:
        """Grids by step control, scales from the motion, the phase condition at the first state."""
        states, period = self.split(z)
        if not 0.0 < period < 1e6 * self.period or not np.isfinite(z).all():
            raise NoSolution("the period is no longer positive")
        grids, motion = [], []
        for state in states:
            run = self.family.run(state, p, period / self.segments, rtol=self.rtol, atol=self.atol)
            if not run.success:
                raise FlowError(run.status)
            grids.append(run.t / run.t[-1])
            motion.append(run.y.T)
        self.grids = grids
        self.scale = self.family.scale(np.concatenate(motion))
        self.period = period
        self.reference = states[0].copy()
        slope = self.family.slope(states[0], p) / self.scale
        self.normal = slope / np.linalg.norm(slope)

    @property
    def weights(self) -> Array:
        """Root-mean-square of the scaled states counts as 1, and so does the period.

        Velocities of a vehicle count little: those of the stiff wheel-rail contact change from point to point of the
        branch where the displacements hardly do.
        """
        counts = np.array([VELOCITY_COUNTS if unit.endswith("/s") else 1.0 for unit in self.family.units])
        counts = counts / np.sqrt(self.segments * (counts @ counts))
        return np.append(np.tile(counts / self.scale, self.segments), 1.0 / self.period)

    @property
    def rows(self) -> Array:
        """Gaps count by the size of the states."""
        return np.append(np.tile(self.scale, self.segments), 1.0)

    def residual(self, z: Array, p: float) -> Array:
        """Gaps between the segments, and the phase."""
        states, period = self.split(z)
        span = period / self.segments
        ends = [self._end(state, span, grid, p) for state, grid in zip(states, self.grids, strict=True)]
        return self._equations(states, np.array(ends))

    def _equations(self, states: Array, ends: Array) -> Array:
        gaps = ends - np.roll(states, -1, axis=0)
        phase = self.normal @ ((states[0] - self.reference) / self.scale)
        return np.append(gaps.ravel(), phase)

    def jacobian(self, z: Array, p: float) -> tuple[Array, Array]:
        """Derivatives of the residual; the monodromy matrix on the way."""
        n, m = self.family.n, self.segments
        states, period = self.split(z)
        matrix = np.zeros((m * n + 1, m * n + 1))
        by_value = np.zeros(m * n + 1)
        monodromy = np.eye(n)
        share = CENTRAL_DIFFERENCE if self.central else DIFFERENCE
        span = period / m
        for i, (state, grid) in enumerate(zip(states, self.grids, strict=True)):
            end, d = self.flow.derivative(
                state,
                span,
                grid,
                lambda: self.family.params(p),
                steps=share * self.scale,
                central=self.central,
                threads=self.threads,
            )
            monodromy = d @ monodromy
            rows = slice(i * n, (i + 1) * n)
            after = (i + 1) % m
            matrix[rows, rows] += d
            matrix[rows, after * n : (after + 1) * n] -= np.eye(n)
            matrix[rows, -1] = self.family.slope(end, p) / m
            by_value[rows] = self.family.difference(partial(self._end, state, span, grid), p)
        matrix[-1, :n] = self.normal / self.scale
        self.monodromy = monodromy
        return matrix, by_value

    def _end(self, state: Array, span: float, grid: Array, p: float) -> Array:
        """End of one segment."""
        end: Array = self.flow.ends(state[None], np.array([span]), grid, self.family.params(p))[0]
        return end

    def monitor(self, z: Array, p: float, jacobian: Array) -> _Observed:
        """Ranges over the period, multipliers."""
        states, period = self.split(z)
        params = self.family.params(p)
        span = period / self.segments
        times, paths = [], []
        for i, (state, grid) in enumerate(zip(states, self.grids, strict=True)):
            fine = refined(grid, NODES // self.segments)
            times.append((i + fine[:-1]) / self.segments)
            paths.append(self.flow.path(state, span, fine, params)[:-1])
        phase, path = np.concatenate(times), np.concatenate(paths)
        low, high = -_peaks(phase, -path), _peaks(phase, path)
        slope = self.family.slope(states[0], p)
        return _Observed(low, high, floquet(self.family, self.monodromy, slope, self.scale))

    def point(self, found: BranchPoint) -> CyclePoint:
        """A branch point in words of cycles."""
        states, period = self.split(found.z)
        seen: _Observed = found.found
        return CyclePoint(
            parameter=found.parameter,
            period_s=period,
            start=states[0].copy(),
            low=seen.low,
            high=seen.high,
            floquet=seen.floquet,
            kind=found.kind,
            arclength=found.arclength,
            iterations=found.iterations,
        )


def refined(grid: Array, nodes: int) -> Array:
    """A grid with every step cut into equal parts, so that it has at least so many nodes."""
    parts = -(-nodes // (grid.size - 1))
    if parts <= 1:
        return grid
    inner = np.linspace(grid[:-1], grid[1:], parts, endpoint=False, axis=1)
    return np.append(inner.ravel(), grid[-1])


def _peaks(phase: Array, path: Array) -> Array:
    """Greatest value of every column of a closed path: top of the parabola through its largest node and those beside.

    `phase` is the share of the period at every node, from 0 to below 1.
    """
    columns = np.arange(path.shape[1])
    t = np.concatenate([[phase[-1] - 1.0], phase, [1.0]])
    i = path.argmax(axis=0)
    left, middle, right = path[i - 1, columns], path[i, columns], path[(i + 1) % len(path), columns]
    a, b = t[i + 1] - t[i], t[i + 2] - t[i + 1]
    before, after = (middle - left) / a, (right - middle) / b
    slope, curve = (before * b + after * a) / (a + b), (after - before) / (a + b)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(curve < 0.0, -0.25 * slope * slope / curve, 0.0)
    top: Array = middle + gain
    return top


def find_cycle(
    family: Family,
    value: float,
    start: Array,
    period_s: float,
    *,
    segments: int = 1,
    threads: int = 1,
    tolerance: float = 1e-8,
    **options: float,
) -> CyclePoint:
    """The limit cycle near a state and a period; raises NoSolution."""
    problem = CycleProblem(family, segments=segments, threads=threads, **options)
    z = problem.pack(np.asarray(start, dtype=np.float64), period_s, value)
    settings = Settings(tolerance=tolerance)
    problem.renew(z, value)
    for _ in range(RENEWALS):
        # A start off the cycle has a grid and scales of its own: they are renewed where Newton ended.
        z, count = newton(problem, z, value, settings)
        problem.renew(z, value)
        if count == 0 or np.abs(problem.residual(z, value) / problem.rows).max() <= 1e2 * settings.tolerance:
            break
    jacobian = problem.jacobian(z, value)
    point = BranchPoint(
        z=z,
        parameter=value,
        tangent=np.zeros(z.size + 1),
        arclength=0.0,
        iterations=count,
        found=problem.monitor(z, value, jacobian[0]),
    )
    return problem.point(point)


def continue_cycle(
    family: Family,
    cycle: CyclePoint,
    *,
    direction: int = -1,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    settings: Settings | None = None,
    segments: int = 1,
    threads: int = 1,
    end: BranchEnd | None = None,
    **options: float,
) -> Iterator[CyclePoint]:
    """Follow a cycle over the parameter of its family, through folds. An iterator: stop, store, plot between points.

    Besides what ends every branch (`continue_branch`), this one ends where the cycle shrinks to an equilibrium. A step
    may lead through such a Hopf point: the branch comes back on itself, half a period later, and the parameter turns
    there as in a fold. Then the motion about the centre of the cycle has changed its sign, in a fold it has not. Seen
    from this side, the parameter still goes with the square of the amplitude where it turns; in a fold it does not.
    """
    problem = CycleProblem(family, segments=segments, threads=threads, **options)
    end = end if end is not None else BranchEnd()
    z = problem.pack(cycle.start, cycle.period_s, cycle.parameter)
    size: Array | None = None
    largest = before = 0.0
    last = cycle
    passed: list[tuple[float, float]] = []  # amplitude and parameter of the points
    fold: CyclePoint | None = None
    for found in continue_branch(
        problem, z, cycle.parameter, direction=direction, bounds=bounds, settings=settings, end=end
    ):
        point = problem.point(found)
        if point.kind == "fold":
            share = 0.0 if size is None else float((point.amplitude / size).max())
            hopf = _towards_hopf(passed, share, point.parameter) if share < SMALL * largest else None
            if hopf is not None:
                end.reason = f"{SHRINKS} near {family.name} = {hopf:.8g}"
                return
            fold = point
            continue
        if fold is not None:
            if (_deflection(last) / problem.scale) @ (_deflection(point) / problem.scale) < 0.0:
                end.reason = f"{SHRINKS} near {family.name} = {fold.parameter:.8g}"
                return
            yield fold
            fold = None
        yield point
        size = problem.scale.copy() if size is None else size
        now = float((point.amplitude / size).max())
        largest = max(largest, now)
        if now < VANISHED * largest and now < before:
            # the parameter goes with the square of a small amplitude
            hopf = point.parameter + (point.parameter - last.parameter) * now**2 / (before**2 - now**2)
            end.reason = f"{SHRINKS} near {family.name} = {hopf:.8g}"
            return
        before, last = now, point
        passed.append((now, point.parameter))


def _towards_hopf(passed: list[tuple[float, float]], amplitude: float, parameter: float) -> float | None:
    """Parameter of the Hopf point if the last points and this one lie on its parabola, p - p_hopf = c a^2."""
    if len(passed) < 2 or not passed[-2][0] > passed[-1][0] > amplitude:
        return None
    (a, p), (b, q) = passed[-2:]
    bend = (p - q) / (a**2 - b**2)
    expected = bend * (b**2 - amplitude**2)
    # slopes die away towards a fold: the parameter would have changed by half of that
    return q - bend * b**2 if expected != 0.0 and (q - parameter) / expected > PARABOLA else None


def _deflection(cycle: CyclePoint) -> Array:
    """The start of a cycle from the middle of its range."""
    return cycle.start - 0.5 * (cycle.low + cycle.high)


__all__ = ["CyclePoint", "CycleProblem", "FlowError", "ModelError", "NoSolution", "continue_cycle", "find_cycle"]
