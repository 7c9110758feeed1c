"""Linear and non-linear critical speed of one vehicle on one track.

Linear: where a pair of eigenvalues crosses the imaginary axis. Non-linear: the fold of the limit-cycle branch, the
lowest speed at which hunting can persist. It is found from below a simulation: hunting above the linear critical speed
is carried down in speed until it dies; the last cycle is then found exactly (shooting) and followed to the fold
(`railsweep.sweeps.bifurcation.cycle`), so the answer does not depend on dwell times.

A cycle needs a damper along the contact normal (`NORMAL_DAMPING`): without one the wheelsets ring on their contacts at
266 Hz for ever, and the motion never repeats itself. 5e4 N s/m are three per cent of critical damping of that bounce.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.linear_stability import Crossing, StabilityStudy, stability, turning_unstable
from railsweep.engine.model import Model, ModelError
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.continuation import NO_VALUE, BranchEnd, NoSolution, Settings
from railsweep.sweeps.bifurcation.cycle import SHRINKS, CyclePoint, CycleProblem, continue_cycle, find_cycle
from railsweep.sweeps.bifurcation.family import family_of_model
from railsweep.sweeps.bifurcation.motion import HUNTING_M, Motion, kicked, run_motion

Array = NDArray[np.float64]

NORMAL_DAMPING = "contact.normal_damping_nspm"
ABOVE = 1.04  # of the linear critical speed: where hunting is looked for first
FARTHER = 1.12  # from one speed to the next where a kick dies out
SETTLE = 5.0  # times the dwell: more time for a motion that has not settled
SETTLED_FAILURES = 3
ATOL_RATIO = 1e-3  # absolute over relative tolerance
CYCLE_SETTINGS = Settings(step=0.05, smallest=5e-4, largest=1.0, parameter_scale=10.0, tolerance=1e-5, points=40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where and how to look.

    Attributes
    ----------
    low_mps, high_mps, step_mps : float
        Range of speeds and distance of the scan for crossings.
    ramp_step_mps, dwell_s : float
        Steps on the way down and seconds at each.
    nonlinear : bool
        Look for cycles too.
    kick_m, starts : float, tuple of str
        First lateral offset of the wheelsets, and its shapes (see `kicked`): each may lead to another attractor.
    normal_damping_nspm : float
        Damper along the contact normal for cycles.
    points : int
        Most points of a branch on the way to its fold.
    rtol : float
        Relative tolerance of the flow from which cycles are found.
    overshoot : int
        Speeds at the end of the way down where a motion that still hunts is held to be dying: with a short dwell it is
        carried that far below the fold. Cycles are looked for above them.
    """

    low_mps: float = 20.0
    high_mps: float = 140.0
    step_mps: float = 5.0
    nonlinear: bool = True
    ramp_step_mps: float = 2.0
    dwell_s: float = 6.0
    kick_m: float = 3e-3
    starts: tuple[str, ...] = ("antisymmetric",)
    normal_damping_nspm: float = 5e4
    points: int = 40
    threads: int = 1
    rtol: float = 1e-6
    overshoot: int = 0

    @property
    def speeds_mps(self) -> tuple[float, ...]:
        """Speeds of the scan, both ends included."""
        count = max(2, round((self.high_mps - self.low_mps) / self.step_mps) + 1)
        return tuple(float(v) for v in np.linspace(self.low_mps, self.high_mps, count))


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalSpeeds:
    """What was found; speeds in m/s.

    Attributes
    ----------
    linear : tuple of Crossing
        All crossings of running modes in the range.
    nonlinear_mps : tuple of float
        Folds of the branch of cycles, lowest first; empty: none found, `reason` says why.
    criticality : str
        "subcritical" when hunting exists below the linear critical speed, "supercritical" when it does not, by the
        branch itself; "" when there is no crossing or no branch.
    derails_at_mps : float or None
        Speed at which the way down ended in derailment.
    method : str
        "fold"; "hopf" (no fold: the branch shrinks to the equilibrium, hunting begins at the linear critical speed);
        "ramp" (no cycle found: between the last hunting and the first quiet speed) or "".
    """

    linear: tuple[Crossing, ...] = ()
    nonlinear_mps: tuple[float, ...] = ()
    criticality: str = ""
    derails_at_mps: float | None = None
    frequency_hz: float = float("nan")
    amplitude_m: float = float("nan")
    method: str = ""
    status: Status = Status.OK
    reason: str = ""
    cycles: tuple[CyclePoint, ...] = field(default=(), repr=False)

    @property
    def linear_mps(self) -> float | None:
        """Lowest speed at which a mode turns unstable."""
        return _lowest(self.linear)


def warm_up(model: Model, search: Search) -> None:
    """Compile what a search needs: eigenvalues, a simulation, the flow and its derivative.

    On straight track: the first case of a study may have no equilibrium.
    """
    if not model.track.varies:
        model = model.bind(["track.curvature_1pm", "track.cant_rad"])([0.0, 0.0])
    stability(model, [search.low_mps])
    if not search.nonlinear:
        return
    work = damped(model, search)
    state = kicked(work, np.zeros(work.n), 1e-3)
    run_motion(work, state, 0.05)
    problem = CycleProblem(family_of_model(work))
    z = problem.pack(state, 0.02, work.speed_mps)
    problem.renew(z, work.speed_mps)
    problem.jacobian(z, work.speed_mps)


def damped(model: Model, search: Search) -> Model:
    """The model with the damper along the contact normal that cycles need."""
    return model.bind([NORMAL_DAMPING])([search.normal_damping_nspm])


def linear_crossings(model: Model, search: Search) -> tuple[Crossing, ...]:
    """Crossings of running modes in the range of the search."""
    return _running(stability(model, search.speeds_mps))


def _running(study: StabilityStudy) -> tuple[Crossing, ...]:
    return tuple(c for c in study.crossings if c.running)


def _stays_stable(study: StabilityStudy) -> str:
    """Why a scan found no critical speed."""
    speeds = [p.speed_mps for p in study.points]
    lost = [p for p in study.points if p.error]
    if len(lost) == len(speeds):
        return f"no equilibrium from {speeds[0]:g} to {speeds[-1]:g} m/s: {lost[0].error}"
    text = f"no running mode turns unstable from {speeds[0]:g} to {speeds[-1]:g} m/s"
    if lost:
        text += f"; no equilibrium from {lost[0].speed_mps:g} m/s: {lost[0].error}"
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """The way down in speed: every motion met, from the first that hunts to the first that does not."""

    speeds_mps: tuple[float, ...]
    motions: tuple[Motion, ...]

    @property
    def alive(self) -> tuple[tuple[float, Motion], ...]:
        """Speeds with hunting, in the order met."""
        return tuple((v, m) for v, m in zip(self.speeds_mps, self.motions, strict=True) if m.hunts)


def descend(model: Model, start_mps: float, search: Search, start: str | Array = "antisymmetric") -> Descent:
    """Carry hunting down in speed until it dies, leaves the table, or the range ends.

    It begins with a kick of a shape (see `kicked`), or with a given state.
    """
    binder = model.bind(["speed_mps"])
    speed = start_mps
    if isinstance(start, str):
        here = binder([speed])
        state = kicked(here, here.equilibrium(), search.kick_m, start)
    else:
        state = start
    speeds: list[float] = []
    motions: list[Motion] = []
    while speed >= search.low_mps:
        motion = run_motion(binder([speed]), state, search.dwell_s * (2.0 if not motions else 1.0))
        speeds.append(speed)
        motions.append(motion)
        if not motion.hunts:
            break
        state = motion.end
        speed -= search.ramp_step_mps
    return Descent(speeds_mps=tuple(speeds), motions=tuple(motions))


def hunting_descent(model: Model, linear: float | None, search: Search, shape: str) -> Descent:
    """The way down from the lowest speed above the linear critical one at which the kick leads to hunting.

    Close above a supercritical Hopf point, and in curves between two crossings, a kick may die out although faster
    running hunts. Raises ModelError where there is no equilibrium to kick at the first speed.
    """
    speed = search.high_mps if linear is None else min(search.high_mps, ABOVE * linear)
    way = descend(model, speed, search, shape)
    while not way.alive and way.motions[-1].status == Status.OK and speed < search.high_mps:
        speed = min(search.high_mps, FARTHER * speed)
        try:
            way = descend(model, speed, search, shape)
        except ModelError:
            break
    return way


def critical_speeds(model: Model, search: Search | None = None) -> CriticalSpeeds:
    """Linear crossings, then the fold of the hunting branch."""
    search = search or Search()
    study = stability(model, search.speeds_mps)
    crossings = _running(study)
    if not search.nonlinear:
        return CriticalSpeeds(linear=crossings, reason="" if turning_unstable(crossings) else _stays_stable(study))
    cycle_model = damped(model, search)
    found = [_from_start(cycle_model, crossings, search, shape) for shape in search.starts]
    # the branch that reaches lowest decides; a start that found nothing speaks only when all did
    folds = sorted(v for one in found for v in one.nonlinear_mps)
    best = min(found, key=lambda one: one.nonlinear_mps[0] if one.nonlinear_mps else np.inf)
    return replace(best, nonlinear_mps=tuple(folds), cycles=tuple(c for one in found for c in one.cycles))


def _from_start(model: Model, crossings: tuple[Crossing, ...], search: Search, shape: str) -> CriticalSpeeds:
    try:
        way = hunting_descent(model, _lowest(crossings), search, shape)
    except ModelError as error:
        return CriticalSpeeds(linear=crossings, status=error.status, reason=str(error))
    return critical_speeds_below(model, way, search, crossings)


def critical_speeds_below(
    model: Model, way: Descent, search: Search, crossings: tuple[Crossing, ...] = ()
) -> CriticalSpeeds:
    """What a way down leads to: the fold, the Hopf point, derailment, or nothing."""
    linear = _lowest(crossings)
    last = way.motions[-1]
    if last.status == Status.DERAILED:
        return CriticalSpeeds(
            linear=crossings,
            derails_at_mps=way.speeds_mps[-1],
            status=Status.DERAILED,
            reason=f"the way down derails at {way.speeds_mps[-1]:g} m/s",
        )
    if last.status != Status.OK:
        return CriticalSpeeds(linear=crossings, status=last.status, reason=f"the way down ends: {last.status.name}")
    if not way.alive:
        return CriticalSpeeds(
            linear=crossings,
            reason=f"the kick leads to no hunting up to {way.speeds_mps[0]:.4g} m/s",
            criticality=_grade(linear, None),
        )
    return _fold(model, crossings, way, search)


def slowest_cycle(model: Model, way: Descent, search: Search) -> tuple[CyclePoint | None, str]:
    """The limit cycle at the end of a way down, or None and why.

    Tried from the last motion that hunts upwards. A motion that shooting does not get hold of is given more time to
    settle: it may be dying slowly, or two modes beat for long close to the critical speed. After a few settled motions
    without a cycle there is none to be had.
    """
    family, binder = family_of_model(model), model.bind(["speed_mps"])
    reason, failures = ("no cycle was found near the motion" if way.alive else "no hunting"), 0
    alive = way.alive[: max(1, len(way.alive) - search.overshoot)]
    for speed, motion in alive[::-1]:
        for more in (0.0, SETTLE * search.dwell_s):
            if more:
                motion = run_motion(binder([speed]), motion.end, more)
            if not motion.hunts or motion.period_s <= 0.0:
                break
            try:
                cycle = find_cycle(
                    family,
                    speed,
                    motion.start,
                    motion.period_s,
                    threads=search.threads,
                    tolerance=1e-5,
                    rtol=search.rtol,
                    atol=ATOL_RATIO * search.rtol,
                )
                if largest_amplitude(model, cycle) >= HUNTING_M:
                    return cycle, ""
                reason = "shooting falls to the equilibrium"
            except (NoSolution, *NO_VALUE) as none:
                reason = str(none)
        else:
            failures += 1
            if failures == SETTLED_FAILURES:
                break
    return None, reason


def _fold(model: Model, crossings: tuple[Crossing, ...], way: Descent, search: Search) -> CriticalSpeeds:
    linear = _lowest(crossings)
    cycle, reason = slowest_cycle(model, way, search)
    if cycle is not None:
        end = BranchEnd()
        cycles: list[CyclePoint] = []
        for point in follow(model, cycle, search, -1, end):
            cycles.append(point)
            if point.kind == "fold":
                break
        if cycles and cycles[-1].kind == "fold":
            lowest = cycles[-1]
            return CriticalSpeeds(
                linear=crossings,
                nonlinear_mps=(lowest.parameter,),
                criticality=_grade(linear, lowest.parameter),
                frequency_hz=lowest.frequency_hz,
                amplitude_m=largest_amplitude(model, lowest),
                method="fold",
                cycles=tuple(cycles),
            )
        if end.reason.startswith(SHRINKS):
            return CriticalSpeeds(
                linear=crossings,
                criticality=_grade(linear, None),
                method="hopf",
                reason=end.reason,
                cycles=tuple(cycles),
            )
        reason = end.reason
    low, high = (way.speeds_mps[-1], way.alive[-1][0])
    middle = 0.5 * (low + high)
    return CriticalSpeeds(
        linear=crossings,
        nonlinear_mps=(middle,) if low < high else (),
        criticality=_grade(linear, middle if low < high else None),
        frequency_hz=1.0 / way.alive[-1][1].period_s if way.alive[-1][1].period_s else float("nan"),
        amplitude_m=float(way.alive[-1][1].amplitude_m.max()),
        method="ramp",
        reason=f"between {low:g} and {high:g} m/s by the way down: {reason}" if low < high else reason,
    )


def follow(model: Model, cycle: CyclePoint, search: Search, direction: int, end: BranchEnd) -> Iterator[CyclePoint]:
    """A branch of cycles until it leaves the range, shrinks to the equilibrium, or can be followed no further."""
    for point in continue_cycle(
        family_of_model(model),
        cycle,
        direction=direction,
        bounds=(search.low_mps, search.high_mps),
        settings=replace(CYCLE_SETTINGS, points=search.points),
        threads=search.threads,
        end=end,
        rtol=search.rtol,
        atol=ATOL_RATIO * search.rtol,
    ):
        if largest_amplitude(model, point) < HUNTING_M:
            # beyond its Hopf point the branch is itself again, half a period later
            end.reason = f"{SHRINKS} at {point.parameter:.5g} m/s"
            return
        yield point


def largest_amplitude(model: Model, cycle: CyclePoint) -> float:
    """Largest lateral amplitude of a wheelset [m]."""
    return max(float(cycle.amplitude[model.index(f"{name}.y")]) for name in model.layout.wheelset_names)


def _lowest(crossings: tuple[Crossing, ...]) -> float | None:
    return next((c.speed_mps for c in turning_unstable(crossings)), None)


def _grade(linear: float | None, nonlinear: float | None) -> str:
    if linear is None:
        return ""
    return "subcritical" if nonlinear is not None and nonlinear < linear else "supercritical"
