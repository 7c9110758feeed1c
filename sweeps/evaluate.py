"""Cases of one study: values in, model bound, quantity computed.

Everything that can go wrong inside the model is a status with a reason.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from railsweep.engine import InputError, ModelError, Track, assemble
from railsweep.engine.contact_build import TableSettings
from railsweep.engine.contact_choice import PREFIX
from railsweep.engine.document import parse_toml
from railsweep.engine.parameter import UNITS, Parameter
from railsweep.engine.vehicle import parse_vehicle
from railsweep.sweeps.quantity import ERROR, REFUSED, BatchQuantity, CaseResult, quantity_class, short
from railsweep.sweeps.study import Study

BATCH = 8  # cases that are computed side by side at a time


class Evaluator:
    """Computes cases of one study. Any number of threads may share one."""

    def __init__(self, study: Study, contact_file: Path | None) -> None:
        from threadpoolctl import threadpool_limits

        # Sums inside BLAS depend on its number of threads, and many workers with many threads each are slow.
        threadpool_limits(limits=1, user_api="blas")
        self.study = study
        vehicle = parse_vehicle(parse_toml(study.vehicle, study.vehicle_name))
        if study.contact and contact_file is None:
            raise InputError(study.contact_name, "is not at hand", "the contact table of the study")
        self.model = assemble(
            vehicle,
            contact=contact_file or study.profiles or None,
            track=Track(**study.track),
            speed_mps=study.speed_mps,
            **study.settings,
        )
        self.binder = self.model.bind([a.parameter for a in study.axes])
        self.quantity = quantity_class(study.quantity)(study, self.model)
        self.batch_size = BATCH if isinstance(self.quantity, BatchQuantity) else 1
        self.variables = self.quantity.variables
        self._names = {v.name for v in self.variables}
        taken = [*self._names, *{d.name for v in self.variables for d in v.dimensions}]
        for axis in study.axes:
            if axis.name in taken or axis.zipped in taken:
                raise InputError("axis", f"the name {axis.name!r} is that of a variable", "another name")

    def bound_parameters(self) -> list[Parameter | None]:
        """The parameter behind every axis; None for a setting of the contact geometry, which has no slot."""
        slots = iter(self.binder.parameters)
        return [None if i in self.binder.geometry else next(slots) for i in range(len(self.study.axes))]

    def check_axes(self) -> None:
        """Refuse values that no model would take, before anything is computed. Ends suffice for a range."""
        for i, (axis, parameter) in enumerate(zip(self.study.axes, self.bound_parameters(), strict=True)):
            for value in axis.values or (axis.start, axis.stop):
                try:
                    if parameter is None:
                        setting: dict[str, Any] = {self.binder.geometry[i]: value}
                        TableSettings(**setting)
                    else:
                        parameter.check(value)
                except InputError as error:
                    raise InputError(f"axis {axis.name}", error.problem, error.allowed) from None

    def units(self) -> dict[str, str]:
        """Axis name -> unit."""
        return {
            axis.name: UNITS.get(axis.parameter.removeprefix(PREFIX).rpartition("_")[2], "-")
            if parameter is None
            else parameter.unit
            for axis, parameter in zip(self.study.axes, self.bound_parameters(), strict=True)
        }

    def __call__(self, values: tuple[float, ...], seed: int) -> CaseResult:
        """Compute one case. Trouble of the machine (memory, files) is raised, trouble of the model is a result."""
        try:
            result = self.quantity(self.binder(list(values)), seed)
        except ModelError as error:
            return CaseResult(status=int(error.status), reason=short(str(error)))
        except InputError as error:
            return CaseResult(status=REFUSED, reason=short(str(error)))
        except (OSError, MemoryError):
            raise
        except Exception as error:
            return CaseResult(status=ERROR, reason=short(f"{type(error).__name__}: {error}"))
        return self._checked(result)

    def batch(self, values: Sequence[tuple[float, ...]], seeds: Sequence[int]) -> list[CaseResult]:
        """Compute cases side by side if the quantity can; the results are those of the single cases, bit for bit."""
        if len(values) > 1 and isinstance(self.quantity, BatchQuantity):
            try:
                found = self.quantity.batch([self.binder(list(v)) for v in values], seeds)
                return [self._checked(result) for result in found]
            except (OSError, MemoryError):
                raise
            except Exception:
                pass  # one of them is the cause: alone it gets the reason, and the others get their results
        return [self(v, seed) for v, seed in zip(values, seeds, strict=True)]

    def _checked(self, result: CaseResult) -> CaseResult:
        if not result.numbers.keys() <= self._names:
            unknown = ", ".join(sorted(result.numbers.keys() - self._names))
            return CaseResult(
                status=ERROR, reason=short(f"{self.study.quantity} gave numbers it did not declare: {unknown}")
            )
        return result


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
