"""The quantity "simulation": one time history per case, kept as statistics of chosen channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from railsweep.engine.document import Section
from railsweep.kernels.status import Status
from railsweep.sweeps.quantity import CaseResult, ReadFile, Variable, no_options, over_limit, short

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.sweeps.study import Study


class TimeHistory:
    """Motion from [start] over [solver] duration_s; statistics of [observe] channels over its end."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> None:
        """None: [solver], [start] and [observe] say everything."""
        no_options(section)

    def __init__(self, study: Study, model: Model) -> None:
        from railsweep.engine.simulation import channel_code, state_unit

        self.study = study
        observe, found = study.observation, []
        for channel in observe.channels:
            channel_code(model, channel)
            unit = state_unit(channel) if channel in model.state_names else channel_unit(channel)
            found += [
                Variable(
                    name=f"{channel.replace('.', '_')}_{statistic}",
                    unit="Hz" if statistic == "frequency_hz" else unit,
                    title=f"{statistic} of {channel} over the last {study.solver.window_s:g} s",
                )
                for statistic in observe.statistics
            ]
        if observe.wheel_forces:
            found.append(Variable(name="y_over_q_max", unit="1", title="largest derailment quotient Y/Q of all wheels"))
        found.append(Variable(name="t_end_s", unit="s", title="time reached"))
        found.append(Variable(name="rhs_calls", unit="1", title="right-hand sides evaluated", dtype="int64"))
        self.variables = tuple(found)

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """Simulate one case."""
        from railsweep.engine.simulation import simulate

        study, solver, observe = self.study, self.study.solver, self.study.observation
        start = dict(study.start)
        wheelsets = model.layout.wheelset_names
        if study.random_m:
            noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(len(wheelsets))
            for name, number in zip(wheelsets, noise, strict=True):
                start[f"{name}.y"] = start.get(f"{name}.y", 0.0) + study.random_m * float(number)
        wheels = (
            [f"{w}.{side}.y_over_q" for w in wheelsets for side in ("left", "right")] if observe.wheel_forces else []
        )
        run = simulate(
            model,
            start,
            (0.0, solver.duration_s),
            method=solver.method,
            rtol=solver.rtol,
            atol=solver.atol,
            sample_s=solver.sample_s,
            window_s=solver.window_s,
            observables=[*observe.channels, *(w for w in wheels if w not in observe.channels)],
            store=False,
            time_limit=solver.time_limit_s,
        )
        numbers: dict[str, Any] = {"t_end_s": run.t_end, "rhs_calls": run.counters["rhs"]}
        for channel in observe.channels:
            for statistic in observe.statistics:
                numbers[f"{channel.replace('.', '_')}_{statistic}"] = run.statistics[channel][statistic]
        if wheels:
            numbers["y_over_q_max"] = float(np.fmax.reduce([run.statistics[w]["max"] for w in wheels]))
        if run.status == Status.TIME_LIMIT:
            return over_limit(solver.time_limit_s)
        return CaseResult(status=int(run.status), reason="" if run.success else short(run.message), numbers=numbers)


def channel_unit(channel: str) -> str:
    """Unit of a channel that is no state."""
    if channel.endswith("_acc"):
        angle = channel.rpartition(".")[2].removesuffix("_acc") in ("roll", "pitch", "yaw")
        return "rad/s^2" if angle else "m/s^2"
    return "1" if channel.endswith("y_over_q") else "N"
