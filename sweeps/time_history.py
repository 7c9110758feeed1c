"""The quantity "simulation": one time history per case, kept as statistics of chosen channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section
from railsweep.kernels.status import Status
from railsweep.sweeps.quantity import CaseResult, ReadFile, Variable, no_options, over_limit, short

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.engine.simulation import Trajectory
    from railsweep.sweeps.study import Study


WORK = (
    Variable(name="t_end_s", unit="s", title="time reached"),
    Variable(name="rhs_calls", unit="1", title="right-hand sides evaluated", dtype="int64"),
)


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
        self.variables = (*found, *WORK)

        self._wheels = (
            [f"{w}.{side}.y_over_q" for w in model.layout.wheelset_names for side in ("left", "right")]
            if observe.wheel_forces
            else []
        )
        self.recorded = [*observe.channels, *(w for w in self._wheels if w not in observe.channels)]

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """Simulate one case."""
        from railsweep.engine.simulation import simulate

        run = simulate(model, self._start(model, seed), (0.0, self.study.solver.duration_s), **self._settings())
        return self._outcome(run, model)

    def batch(self, models: Sequence[Model], seeds: Sequence[int]) -> list[CaseResult]:
        """Simulate cases side by side."""
        from railsweep.engine.simulation import simulate_ensemble

        starts = np.array([self._start(model, seed) for model, seed in zip(models, seeds, strict=True)])
        runs = simulate_ensemble(models, starts, (0.0, self.study.solver.duration_s), **self._settings())
        return [self._outcome(run, model) for run, model in zip(runs, models, strict=True)]

    def _start(self, model: Model, seed: int) -> NDArray[np.float64]:
        from railsweep.engine.simulation import initial_state

        start = dict(self.study.start)
        wheelsets = model.layout.wheelset_names
        if self.study.random_m:
            noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(len(wheelsets))
            for name, number in zip(wheelsets, noise, strict=True):
                start[f"{name}.y"] = start.get(f"{name}.y", 0.0) + self.study.random_m * float(number)
        return initial_state(model, start)

    def _settings(self) -> dict[str, Any]:
        solver = self.study.solver
        return {
            "method": solver.method,
            "rtol": solver.rtol,
            "atol": solver.atol,
            "sample_s": solver.sample_s,
            "window_s": solver.window_s,
            "observables": self.recorded,
            "store": False,
            "time_limit": solver.time_limit_s,
        }

    def _outcome(self, run: Trajectory, model: Model) -> CaseResult:
        if run.status == Status.TIME_LIMIT:
            return over_limit(self.study.solver.time_limit_s)
        numbers = {"t_end_s": run.t_end, "rhs_calls": run.counters["rhs"], **self.figures(run, model)}
        return CaseResult(status=int(run.status), reason="" if run.success else short(run.message), numbers=numbers)

    def figures(self, run: Trajectory, model: Model) -> dict[str, Any]:
        """The numbers of a run, also of one that ended early."""
        observe, numbers = self.study.observation, {}
        for channel in observe.channels:
            for statistic in observe.statistics:
                numbers[f"{channel.replace('.', '_')}_{statistic}"] = run.statistics[channel][statistic]
        if self._wheels:
            numbers["y_over_q_max"] = float(np.fmax.reduce([run.statistics[w]["max"] for w in self._wheels]))
        return numbers


def channel_unit(channel: str) -> str:
    """Unit of a channel that is no state."""
    if channel.endswith("_acc"):
        angle = channel.rpartition(".")[2].removesuffix("_acc") in ("roll", "pitch", "yaw")
        return "rad/s^2" if angle else "m/s^2"
    return "1" if channel.endswith("y_over_q") else "N"
