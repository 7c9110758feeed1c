"""What is computed in one case: a time history with its statistics, or the spectrum at the equilibrium.

A case depends on its own values and its seed only, never on its neighbours, so any order and any block size give the
same bits. Everything that can go wrong inside the model is a status with a reason.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from railsweep.engine import InputError, ModelError, Track, assemble, load_contact_table, simulate
from railsweep.engine.crossing import NEUTRAL_RATIO
from railsweep.engine.document import parse_toml
from railsweep.engine.linear_stability import spectrum
from railsweep.engine.vehicle import parse_vehicle
from railsweep.kernels.status import Status
from railsweep.sweeps.study import Study

REFUSED = 20  # the model refused the values of this case
ERROR = 21  # an exception nobody foresaw
PENDING = 255  # not computed yet

CaseStatus = IntEnum(  # type: ignore[misc]
    "CaseStatus",
    {**{s.name: int(s) for s in Status}, "REFUSED": REFUSED, "ERROR": ERROR, "PENDING": PENDING},
)
GOOD = (int(Status.OK), int(Status.EVENT))
LOWEST_CONTACT_HZ = 50.0  # wheel-rail contact modes lie above, running and suspension modes below
MOST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One array of the store: name, unit, what it is, type, and its own dimension beyond those of the study."""

    name: str
    unit: str
    title: str
    dtype: str = "float64"
    dimension: str = ""
    length: int = 1

    @property
    def fill(self) -> Any:
        """Value where nothing was computed."""
        return np.nan if self.dtype == "float64" else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """Outcome of a case; variables that are not in `numbers` keep their fill value."""

    status: int
    reason: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


class Evaluator:
    """Computes cases of one study. Any number of threads may share one."""

    def __init__(self, study: Study, contact_file: Path | None) -> None:
        from threadpoolctl import threadpool_limits

        # Sums inside BLAS depend on its number of threads, and many workers with many threads each are slow.
        threadpool_limits(limits=1, user_api="blas")
        self.study = study
        vehicle = parse_vehicle(parse_toml(study.vehicle, study.vehicle_name))
        track = Track(**study.track)
        if study.contact and contact_file is None:
            raise InputError(study.contact_name, "is not at hand", "the contact table of the study")
        self.model = assemble(
            vehicle,
            contact=load_contact_table(contact_file) if contact_file else None,
            track=track,
            speed_mps=study.speed_mps,
            **study.model,
        )
        self.binder = self.model.bind([a.parameter for a in study.axes])
        self._compute: Callable[[Any, int], CaseResult] = (
            self._simulation if study.quantity == "simulation" else self._spectrum
        )
        self.variables = self._simulation_variables() if study.quantity == "simulation" else self._spectrum_variables()
        names = [v.name for v in self.variables]
        for axis in study.axes:
            if axis.name in names or axis.zipped in names:
                raise InputError("axis", f"the name {axis.name!r} is that of a variable", "another name")

    def check_axes(self) -> None:
        """Refuse values that no model would take, before anything is computed. Ends suffice for a range."""
        for axis, parameter in zip(self.study.axes, self.binder.parameters, strict=True):
            members = axis.values or (axis.start, axis.stop)
            for value in members:
                try:
                    parameter.check(value)
                except InputError as error:
                    raise InputError(f"axis {axis.name}", error.problem, error.allowed) from None

    def units(self) -> dict[str, str]:
        """Axis name -> unit."""
        return {
            axis.name: parameter.unit for axis, parameter in zip(self.study.axes, self.binder.parameters, strict=True)
        }

    def __call__(self, values: tuple[float, ...], seed: int) -> CaseResult:
        """Compute one case. Trouble of the machine (memory, files) is raised, trouble of the model is a result."""
        try:
            return self._compute(self.binder(list(values)), seed)
        except ModelError as error:
            return CaseResult(status=int(error.status), reason=_short(str(error)))
        except InputError as error:
            return CaseResult(status=REFUSED, reason=_short(str(error)))
        except (OSError, MemoryError):
            raise
        except Exception as error:
            return CaseResult(status=ERROR, reason=_short(f"{type(error).__name__}: {error}"))

    def _simulation_variables(self) -> tuple[Variable, ...]:
        observe, found = self.study.observation, []
        from railsweep.engine.simulation import channel_code, state_unit

        for channel in observe.channels:
            channel_code(self.model, channel)
            unit = state_unit(channel) if channel in self.model.state_names else channel_unit(channel)
            found += [
                Variable(
                    name=f"{channel.replace('.', '_')}_{statistic}",
                    unit="Hz" if statistic == "frequency_hz" else unit,
                    title=f"{statistic} of {channel} over the last {self.study.solver.window_s:g} s",
                )
                for statistic in observe.statistics
            ]
        if observe.wheel_forces:
            found.append(Variable(name="y_over_q_max", unit="1", title="largest derailment quotient Y/Q of all wheels"))
        found.append(Variable(name="t_end_s", unit="s", title="time reached"))
        found.append(Variable(name="rhs_calls", unit="1", title="right-hand sides evaluated", dtype="int64"))
        return tuple(found)

    def _simulation(self, model: Any, seed: int) -> CaseResult:
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
            # How far a run came within its time is not a property of the case.
            return CaseResult(status=int(run.status), reason=f"longer than {solver.time_limit_s:g} s")
        return CaseResult(status=int(run.status), reason="" if run.success else _short(run.message), numbers=numbers)

    def _spectrum_variables(self) -> tuple[Variable, ...]:
        modes = {"dimension": "mode", "length": self.study.observation.modes}
        return (
            Variable(name="eigenvalue_real", unit="1/s", title="real parts, largest first", **modes),  # type: ignore[arg-type]
            Variable(name="eigenvalue_imag", unit="rad/s", title="imaginary parts, >= 0", **modes),  # type: ignore[arg-type]
            Variable(name="damping_ratio", unit="1", title="least damping ratio below 50 Hz, neutral modes left out"),
            Variable(name="frequency_hz", unit="Hz", title="frequency of the least damped mode"),
            Variable(name="unstable_modes", unit="1", title="modes with growing amplitude", dtype="int64"),
        )

    def _spectrum(self, model: Any, seed: int) -> CaseResult:
        _, eigenvalues, _ = spectrum(model)
        if not np.isfinite(eigenvalues).all():
            return CaseResult(status=int(Status.NOT_FINITE), reason="an eigenvalue is not finite")
        kept = eigenvalues[eigenvalues.imag >= 0.0]
        kept = kept[np.lexsort((kept.imag, -kept.real))]
        count = self.study.observation.modes
        first = np.full(count, np.nan + 0j)
        first[: min(count, kept.size)] = kept[:count]
        size = np.abs(kept)
        damped = (np.abs(kept.real) > NEUTRAL_RATIO * size) & (size >= 1e-6)
        running = damped & (kept.imag > 0.0) & (kept.imag < 2.0 * np.pi * LOWEST_CONTACT_HZ)
        numbers: dict[str, Any] = {
            "eigenvalue_real": first.real,
            "eigenvalue_imag": first.imag,
            "unstable_modes": int((damped & (kept.real > 0.0)).sum()),
        }
        if running.any():
            ratio = -kept.real[running] / size[running]
            worst = int(np.argmin(ratio))
            numbers["damping_ratio"] = float(ratio[worst])
            numbers["frequency_hz"] = float(kept.imag[running][worst] / (2.0 * np.pi))
        return CaseResult(status=int(Status.OK), numbers=numbers)


def channel_unit(channel: str) -> str:
    """Unit of a channel that is no state."""
    if channel.endswith("_acc"):
        angle = channel.rpartition(".")[2].removesuffix("_acc") in ("roll", "pitch", "yaw")
        return "rad/s^2" if angle else "m/s^2"
    return "1" if channel.endswith("y_over_q") else "N"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_REASON else line[: MOST_REASON - 3] + "..."


@contextmanager
def warm_lock(purpose: str) -> Iterator[bool]:
    """Yields True to the first process with this machine-code cache, False when another has filled it already.

    The lock and the mark live in the folder of the cache itself, so that an emptied cache is warmed up again, and nodes
    that share it (or do not) are each served right. Others wait until the first is ready.
    """
    import fcntl

    import numba

    from railsweep.kernels.jit import SOURCE_STAMP
    from railsweep.kernels.vehicle import vehicle_rhs

    folder = Path(vehicle_rhs.stats.cache_path)
    key = hashlib.sha256(f"{SOURCE_STAMP} {numba.__version__} {_processor()} {purpose}".encode()).hexdigest()[:24]
    mark = folder / f"railsweep-warm-{key}"
    if mark.exists():
        yield False
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "railsweep-warm.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # a cache that cannot be written is not raced on either
        yield True
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = not mark.exists()
        yield first
        if first:
            mark.touch(mode=0o600)
    finally:
        os.close(lock)


def _processor() -> str:
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())
