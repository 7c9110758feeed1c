"""The quantity "nonlinear_critical_speed": the fold of the hunting branch, warm from the nominal vehicle's cycle.

A search from scratch (`critical_speeds`) carries hunting down from above the linear critical speed. Here that is done
for the nominal vehicle, once per track; its hunting is then carried up again to some way above its fold. There every
case begins, in that motion, and goes down in speed with a short dwell (faster still, if it does not hunt there); the
cycle met last is found by shooting and followed to the fold. A case whose way down leads to no fold is searched from
scratch and says so. A case depends on the study and its own values only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.critical_quantity import SearchOptions, read_search, search_of
from railsweep.sweeps.nominal import PerTrack
from railsweep.sweeps.quantity import CaseResult, ReadFile, Variable, refuse_axis, short

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.sweeps.bifurcation.critical_speed import CriticalSpeeds
    from railsweep.sweeps.study import Study

Array = NDArray[np.float64]

STARTS = 3  # speeds above the nominal fold, `margin` apart
DWELL_S = 1.5  # at every speed on the way down: some seven periods
OVERSHOOT = 2  # speeds: with so short a dwell hunting lives on a step or two below its fold
RTOL = 1e-4  # of the flow: folds to 2e-3 m/s


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmOptions:
    """[nonlinear_critical_speed]: those of the search, and how far above the nominal fold cases begin (share of it)."""

    search: SearchOptions
    margin: float


class NonlinearCriticalSpeed:
    """Lowest speed at which hunting persists."""

    variables = (
        Variable(name="nonlinear_mps", unit="m/s", title="lowest speed at which hunting persists: fold of the cycles"),
        Variable(name="nonlinear_frequency_hz", unit="Hz", title="frequency of hunting there"),
        Variable(name="nonlinear_amplitude_m", unit="m", title="largest lateral amplitude of a wheelset there"),
        Variable(name="method", unit="1", title="how it was found: fold, hopf, ramp", dtype="string"),
        Variable(name="searched", unit="1", title="1: found by a search of the case from scratch", dtype="int64"),
    )

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> WarmOptions:
        """The keys of every search for cycles, and `margin`."""
        margin = section.number("margin", 0.25, above=0.0, most=1.0)
        return WarmOptions(search=read_search(section, points=40), margin=margin)

    def __init__(self, study: Study, model: Model) -> None:
        refuse_axis(study, "speed_mps", "other parameters: the critical speed is what is looked for")
        self.search = search_of(study.options.search, threads=1)
        self.margin: float = study.options.margin
        self.case_seconds = 2.5
        self._starts = PerTrack(model, self._above_fold)

    def warm_up(self, model: Model) -> None:
        """Compile simulation, flow and monodromy."""
        from railsweep.sweeps.bifurcation.critical_speed import warm_up

        warm_up(model, self.search)

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """One case."""
        from railsweep.sweeps.bifurcation.critical_speed import critical_speeds

        warm = self._warm(model)
        found = critical_speeds(model, self.search) if warm is None else warm
        speed = found.linear_mps if found.method == "hopf" else next(iter(found.nonlinear_mps), None)
        numbers: dict[str, Any] = {
            "nonlinear_frequency_hz": found.frequency_hz,
            "nonlinear_amplitude_m": found.amplitude_m,
            "method": found.method,
            "searched": int(warm is None),
        }
        if speed is not None:
            numbers["nonlinear_mps"] = speed
        status = found.status if speed is not None or found.status != Status.OK else Status.NEWTON_FAILED
        return CaseResult(status=int(status), reason=short(found.reason), numbers=numbers)

    def _warm(self, model: Model) -> CriticalSpeeds | None:
        """What nominal hunting on this track leads to in a case; None: the case must be searched."""
        from railsweep.engine.model import ModelError
        from railsweep.sweeps.bifurcation.critical_speed import critical_speeds_below, damped, descend

        case = damped(model, self.search)
        quick = replace(self.search, dwell_s=DWELL_S, overshoot=OVERSHOOT, rtol=RTOL)
        hunts: tuple[float, Array] | None = None
        try:
            for speed, state in self._starts(model):
                way = descend(case, speed, quick, state)
                if way.alive:
                    hunts = speed, state
                    found = critical_speeds_below(case, way, quick)
                    if found.method == "fold":
                        return found
            if hunts is not None:
                found = critical_speeds_below(case, descend(case, hunts[0], self.search, hunts[1]), self.search)
                if found.nonlinear_mps:
                    return found
        except ModelError:
            pass
        return None

    def _above_fold(self, nominal: Model) -> list[tuple[float, Array]]:
        """Speeds and states from which cases begin, slowest first.

        Nominal hunting carried up in speed, by simulation: on the way one cycle may give way to another.
        """
        from railsweep.sweeps.bifurcation.critical_speed import critical_speeds, damped
        from railsweep.sweeps.bifurcation.motion import run_motion

        found = critical_speeds(nominal, self.search)
        if found.method != "fold":
            return []
        binder = damped(nominal, self.search).bind(["speed_mps"])
        speed, state = found.cycles[0].parameter, found.cycles[0].start
        kept: list[tuple[float, Array]] = []
        for k in range(1, STARTS + 1):
            wanted = (1.0 + self.margin * k) * found.nonlinear_mps[0]
            while speed < wanted:
                speed = min(wanted, speed + self.search.ramp_step_mps)
                motion = run_motion(binder([speed]), state, DWELL_S)
                if not motion.hunts:
                    return kept
                state = motion.end
            kept.append((speed, state))
        return kept
