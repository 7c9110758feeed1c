"""The quantity "critical_speed": linear and non-linear critical speed of every case of a study, for maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError
from railsweep.sweeps.quantity import CaseResult, Dimension, ReadFile, Variable, refuse_axis, short

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.sweeps.bifurcation.critical_speed import Search
    from railsweep.sweeps.study import Study

CROSSING = (Dimension(name="crossing", length=8),)
FOLD = (Dimension(name="fold", length=8),)
SHAPES = ("antisymmetric", "in-phase", "leading", "trailing")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """[critical_speed] and [bifurcation] of a study file; see `railsweep.sweeps.bifurcation.critical_speed.Search`."""

    low_mps: float = 20.0
    high_mps: float = 140.0
    step_mps: float = 5.0
    nonlinear: bool = True
    ramp_step_mps: float = 2.0
    dwell_s: float = 6.0
    kick_mm: float = 3.0
    starts: tuple[str, ...] = ("antisymmetric",)
    normal_damping_nspm: float = 5e4
    points: int = 40


def read_search(section: Section, *, points: int) -> SearchOptions:
    """Read the keys that every search for cycles shares."""
    low = section.number("low_mps", 20.0, above=0.0, most=1000.0)
    high = section.number("high_mps", 140.0, above=0.0, most=1000.0)
    if not low < high:
        raise InputError(section.where("high_mps"), f"is {high:g}, low_mps is {low:g}", "low_mps < high_mps")
    starts = tuple(section.words("starts", ["antisymmetric"], choices=SHAPES))
    if not starts:
        raise InputError(section.where("starts"), "is empty", "some of " + ", ".join(SHAPES))
    count = section.number("points", float(points), least=2.0, most=1000.0)
    return SearchOptions(
        low_mps=low,
        high_mps=high,
        step_mps=section.number("step_mps", 5.0, least=0.01, most=100.0),
        nonlinear=section.flag("nonlinear", True),
        ramp_step_mps=section.number("ramp_step_mps", 2.0, least=0.01, most=100.0),
        dwell_s=section.number("dwell_s", 6.0, least=0.5, most=1e4),
        kick_mm=section.number("kick_mm", 3.0, above=0.0, most=50.0),
        starts=starts,
        normal_damping_nspm=section.number("normal_damping_nspm", 5e4, least=0.0, most=1e7),
        points=int(count),
    )


def search_of(options: SearchOptions, *, threads: int) -> Search:
    """The options as the functions take them."""
    from railsweep.sweeps.bifurcation.critical_speed import Search

    return Search(
        low_mps=options.low_mps,
        high_mps=options.high_mps,
        step_mps=options.step_mps,
        nonlinear=options.nonlinear,
        ramp_step_mps=options.ramp_step_mps,
        dwell_s=options.dwell_s,
        kick_m=1e-3 * options.kick_mm,
        starts=options.starts,
        normal_damping_nspm=options.normal_damping_nspm,
        points=options.points,
        threads=threads,
    )


def threads_of(study: Study) -> int:
    """All cores for a single case, one thread otherwise: the result is the same to the last bit."""
    import os

    return 1 if study.cases > 1 else len(os.sched_getaffinity(0))


def _padded(values: list[float], length: int) -> Any:
    import numpy as np

    out = np.full(length, np.nan)
    out[: len(values)] = values[:length]
    return out


class CriticalSpeedQuantity:
    """Crossings of eigenvalues over speed and the fold of the hunting branch."""

    variables = (
        Variable(name="linear_mps", unit="m/s", title="lowest speed at which a running mode turns unstable"),
        Variable(name="crossing_mps", unit="m/s", title="speeds at which pairs cross", dimensions=CROSSING),
        Variable(name="crossing_hz", unit="Hz", title="their frequencies", dimensions=CROSSING),
        Variable(name="fold_mps", unit="m/s", title="folds of the cycles, lowest first", dimensions=FOLD),
        Variable(name="linear_frequency_hz", unit="Hz", title="frequency of that mode"),
        Variable(name="nonlinear_mps", unit="m/s", title="lowest speed at which hunting persists: fold of the cycles"),
        Variable(name="nonlinear_frequency_hz", unit="Hz", title="frequency of hunting at the fold"),
        Variable(name="nonlinear_amplitude_m", unit="m", title="largest lateral amplitude of a wheelset at the fold"),
        Variable(name="derails_at_mps", unit="m/s", title="speed at which the way down from hunting derailed"),
        Variable(name="crossings", unit="1", title="number of crossings in the range", dtype="int64"),
        Variable(name="criticality", unit="1", title="subcritical or supercritical, by the branch", dtype="string"),
        Variable(name="method", unit="1", title="how the non-linear speed was found: fold, hopf, ramp", dtype="string"),
    )

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> SearchOptions:
        """[critical_speed]."""
        return read_search(section, points=40)

    def __init__(self, study: Study, model: Model) -> None:
        refuse_axis(study, "speed_mps", "other parameters: the critical speed is what is looked for")
        self.search = search_of(study.options, threads=threads_of(study))
        self.case_seconds = 20.0 if study.options.nonlinear else 0.3

    def warm_up(self, model: Model) -> None:
        """One short descent: simulation, flow and monodromy are compiled by it."""
        from railsweep.sweeps.bifurcation.critical_speed import warm_up

        warm_up(model, self.search)

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """Critical speeds of one case."""
        from railsweep.engine.linear_stability import turning_unstable
        from railsweep.sweeps.bifurcation.critical_speed import critical_speeds

        found = critical_speeds(model, self.search)
        numbers: dict[str, Any] = {
            "crossings": len(found.linear),
            "criticality": found.criticality,
            "method": found.method,
            "nonlinear_frequency_hz": found.frequency_hz,
            "nonlinear_amplitude_m": found.amplitude_m,
        }
        numbers["crossing_mps"] = _padded([c.speed_mps for c in found.linear], CROSSING[0].length)
        numbers["crossing_hz"] = _padded([c.frequency_hz for c in found.linear], CROSSING[0].length)
        if found.method == "fold":
            numbers["fold_mps"] = _padded(list(found.nonlinear_mps), FOLD[0].length)
        first = next(iter(turning_unstable(found.linear)), None)
        if first is not None:
            numbers["linear_mps"], numbers["linear_frequency_hz"] = first.speed_mps, first.frequency_hz
        if found.nonlinear_mps:
            numbers["nonlinear_mps"] = found.nonlinear_mps[0]
        elif found.method == "hopf" and first is not None:
            numbers["nonlinear_mps"] = first.speed_mps
        if found.derails_at_mps is not None:
            numbers["derails_at_mps"] = found.derails_at_mps
        return CaseResult(status=int(found.status), reason=short(found.reason), numbers=numbers)
