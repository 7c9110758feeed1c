"""The quantity "bifurcation": one bifurcation diagram over speed per case.

A diagram has as many points as it has; the arrays of the store are as long as the study allows ([bifurcation] points
for every branch) and nan beyond the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from railsweep.engine.document import Section
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.critical_quantity import (
    CROSSING,
    FOLD,
    SearchOptions,
    read_search,
    search_of,
    threads_of,
)
from railsweep.sweeps.quantity import CaseResult, Dimension, ReadFile, Variable, refuse_axis, short

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.sweeps.bifurcation.diagram import Diagram
    from railsweep.sweeps.study import Study

KINDS = ("stable", "saddle", "period doubling", "torus")


class DiagramQuantity:
    """Equilibrium, hunting carried down by simulation, and branches of cycles through their folds."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> SearchOptions:
        """[bifurcation]."""
        return read_search(section, points=60)

    def __init__(self, study: Study, model: Model) -> None:
        refuse_axis(study, "speed_mps", "other parameters: the diagram runs over speed")
        options: SearchOptions = study.options
        self.search = search_of(options, threads=threads_of(study))
        self.case_seconds = 40.0 * len(options.starts)
        wheelsets = tuple(model.layout.wheelset_names)
        scan = max(2, round((options.high_mps - options.low_mps) / options.step_mps) + 1)
        speeds = tuple(float(v) for v in np.linspace(options.low_mps, options.high_mps, scan))
        down = int((options.high_mps - options.low_mps) / options.ramp_step_mps) + 2
        # a branch may hold a few located folds beside its regular points
        length = 2 * len(options.starts) * (options.points + FOLD[0].length)
        cycle = Dimension(name="cycle", length=length)
        wheelset = Dimension(name="wheelset", length=len(wheelsets), title=", ".join(wheelsets))
        ramp = (Dimension(name="start", length=len(options.starts)), Dimension(name="ramp", length=down))
        over_speed = (Dimension(name="scan_mps", length=scan, values=speeds, unit="m/s", title="speed"),)
        self.length, self.down = length, down
        self.variables = (
            Variable(name="crossing_mps", unit="m/s", title="speeds at which pairs cross", dimensions=CROSSING),
            Variable(name="crossing_hz", unit="Hz", title="their frequencies", dimensions=CROSSING),
            Variable(name="fold_mps", unit="m/s", title="folds of the cycles, lowest first", dimensions=FOLD),
            Variable(
                name="unstable_modes",
                unit="1",
                title="unstable modes of the equilibrium; -1: none",
                dtype="int64",
                dimensions=over_speed,
            ),
            Variable(name="ramp_mps", unit="m/s", title="speeds of the way down by simulation", dimensions=ramp),
            Variable(
                name="ramp_amplitude_m",
                unit="m",
                title="lateral amplitude of the wheelsets there",
                dimensions=(*ramp, wheelset),
            ),
            Variable(name="cycle_mps", unit="m/s", title="speed of every cycle", dimensions=(cycle,)),
            Variable(name="cycle_hz", unit="Hz", title="its frequency", dimensions=(cycle,)),
            Variable(
                name="cycle_amplitude_m",
                unit="m",
                title="its lateral amplitude of the wheelsets",
                dimensions=(cycle, wheelset),
            ),
            Variable(name="cycle_unstable", unit="1", title="multipliers outside the unit circle", dimensions=(cycle,)),
            Variable(
                name="cycle_multiplier", unit="1", title="size of the leading Floquet multiplier", dimensions=(cycle,)
            ),
            Variable(name="cycle_kind", unit="1", title="0 " + ", ".join(KINDS), dimensions=(cycle,)),
            Variable(name="cycle_branch", unit="1", title="number of the branch", dimensions=(cycle,)),
            Variable(name="cycle_fold", unit="1", title="1: the speed turns here", dimensions=(cycle,)),
            Variable(name="branch_ends", unit="1", title="why every branch ended", dtype="string"),
        )

    def warm_up(self, model: Model) -> None:
        """One short descent: simulation, flow and monodromy are compiled by it."""
        from railsweep.sweeps.bifurcation.critical_speed import warm_up

        warm_up(model, self.search)

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """The diagram of one case."""
        from railsweep.sweeps.bifurcation.diagram import diagram

        found = diagram(model, self.search)
        numbers = self._numbers(model, found)
        cycles = sum(len(b.points) for b in found.branches)
        if not cycles and any(way.alive for way in found.descents.values()):
            reasons = "; ".join(dict.fromkeys(b.end for b in found.branches))
            return CaseResult(status=int(Status.NEWTON_FAILED), reason=short(reasons), numbers=numbers)
        derailed = [way for way in found.descents.values() if way.motions[-1].status == Status.DERAILED]
        if derailed:
            reason = f"the way down derails at {derailed[0].speeds_mps[-1]:g} m/s"
            return CaseResult(status=int(Status.DERAILED), reason=reason, numbers=numbers)
        return CaseResult(status=int(Status.OK), numbers=numbers)

    def _numbers(self, model: Model, found: Diagram) -> dict[str, Any]:
        wheels = [model.index(f"{name}.y") for name in model.layout.wheelset_names]
        shapes = {v.name: v.extra for v in self.variables if v.dtype == "float64"}
        numbers: dict[str, Any] = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
        for i, crossing in enumerate(found.crossings[: CROSSING[0].length]):
            numbers["crossing_mps"][i], numbers["crossing_hz"][i] = crossing.speed_mps, crossing.frequency_hz
        for i, speed in enumerate(found.nonlinear_mps[: FOLD[0].length]):
            numbers["fold_mps"][i] = speed
        numbers["unstable_modes"] = np.array(found.unstable_modes, dtype=np.int64)
        for i, way in enumerate(found.descents.values()):
            for k, (speed, motion) in enumerate(zip(way.speeds_mps, way.motions, strict=True)):
                numbers["ramp_mps"][i, k] = speed
                numbers["ramp_amplitude_m"][i, k] = motion.amplitude_m
        k = 0
        for number, branch in enumerate(found.branches):
            for point in branch.points:
                if k == self.length:
                    break
                numbers["cycle_mps"][k] = point.parameter
                numbers["cycle_hz"][k] = point.frequency_hz
                numbers["cycle_amplitude_m"][k] = point.amplitude[wheels]
                numbers["cycle_unstable"][k] = point.floquet.unstable
                numbers["cycle_multiplier"][k] = abs(point.floquet.leading)
                numbers["cycle_kind"][k] = KINDS.index(point.floquet.kind)
                numbers["cycle_branch"][k] = number
                numbers["cycle_fold"][k] = point.kind == "fold"
                k += 1
        numbers["branch_ends"] = " | ".join(f"{b.start} {b.direction:+d}: {b.end}" for b in found.branches)
        return numbers
