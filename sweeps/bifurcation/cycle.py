"""Limit cycles by (multiple) shooting: x = flow over one period from x, with a phase condition (Seydel; Doedel).

Unknowns are the states x_0 .. x_{m-1} at m evenly spaced phases and the period T. With segments of length T/m

    flow(x_i, T/m) - x_{i+1} = 0  (x_m = x_0),    f(x_ref) . (x_0 - x_ref) = 0

The flow runs on frozen grids (`railsweep.engine.flow`), so its derivatives are those of the discrete flow. Their product
is the monodromy matrix; its eigenvalues are the Floquet multipliers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
CENTRAL_DIFFERENCE = 1e-4
CENTRAL_UP_TO = 12  # states: small systems get central differences
PARAMETER_DIFFERENCE = 1e-6
RTOL, ATOL = 1e-6, 1e-9


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
        """Root-mean-square of the scaled states counts as 1, and so does the period."""
        share = 1.0 / np.sqrt(self.segments * self.family.n)
        return np.append(np.tile(share / self.scale, self.segments), 1.0 / self.period)

    def residual(self, z: Array, p: float) -> Array:
        """Gaps between the segments and the phase, scaled."""
        states, period = self.split(z)
        params = self.family.params(p)
        span = np.array([period / self.segments])
        ends = [self.flow.ends(s[None], span, g, params)[0] for s, g in zip(states, self.grids, strict=True)]
        return self._equations(states, np.array(ends))

    def _equations(self, states: Array, ends: Array) -> Array:
        gaps = (ends - np.roll(states, -1, axis=0)) / self.scale
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
        dp = PARAMETER_DIFFERENCE * max(abs(p), 1e-3)
        dt = PARAMETER_DIFFERENCE * period / m
        span = period / m
        inverse = 1.0 / self.scale
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
            matrix[rows, rows] += inverse[:, None] * d
            matrix[rows, after * n : (after + 1) * n] -= np.diag(inverse)
            longer = self.flow.ends(np.array([state, state]), np.array([span + dt, span - dt]), grid, self.family.params(p))
            matrix[rows, -1] = (longer[0] - longer[1]) / (2.0 * dt * m) * inverse
            high = self.flow.ends(state[None], np.array([span]), grid, self.family.params(p + dp))[0]
            low = self.flow.ends(state[None], np.array([span]), grid, self.family.params(p - dp))[0]
            by_value[rows] = (high - low) / (2.0 * dp) * inverse
        matrix[-1, :n] = self.normal * inverse
        self.monodromy = monodromy
        return matrix, by_value

    def monitor(self, z: Array, p: float, jacobian: Array) -> _Observed:
        """Ranges over the period, multipliers."""
        states, period = self.split(z)
        params = self.family.params(p)
        span = period / self.segments
        path = np.concatenate(
            [self.flow.path(s, span, g, params) for s, g in zip(states, self.grids, strict=True)]
        )
        slope = self.family.slope(states[0], p)
        return _Observed(path.min(axis=0), path.max(axis=0), floquet(self.family, self.monodromy, slope, self.scale))

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


def find_cycle(
    family: Family, value: float, start: Array, period_s: float, *, segments: int = 1, threads: int = 1, **options: float
) -> CyclePoint:
    """The limit cycle near a state and a period; raises NoSolution."""
    problem = CycleProblem(family, segments=segments, threads=threads, **options)
    z = problem.pack(np.asarray(start, dtype=np.float64), period_s, value)
    settings = Settings()
    for _ in range(3):
        # A start off the cycle has a grid and scales of its own: renew them where Newton ended.
        problem.renew(z, value)
        z, jacobian, count = newton(problem, z, value, settings)
        problem.renew(z, value)
        if np.abs(problem.residual(z, value)).max() <= 1e2 * settings.tolerance:
            break
    if float(z[-1]) <= 0.0 or np.abs(problem.scale).max() == 0.0:
        raise NoSolution("the period is not positive")
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
    """Follow a cycle over the parameter of its family, through folds. An iterator: stop, store, plot between points."""
    problem = CycleProblem(family, segments=segments, threads=threads, **options)
    z = problem.pack(cycle.start, cycle.period_s, cycle.parameter)
    for found in continue_branch(
        problem, z, cycle.parameter, direction=direction, bounds=bounds, settings=settings, end=end
    ):
        yield problem.point(found)


__all__ = ["CyclePoint", "CycleProblem", "FlowError", "ModelError", "NoSolution", "continue_cycle", "find_cycle"]
