"""The quantity "misfit": how far the motion of a case is from a reference, for identification and sensitivity.

The reference is a measurement (a CSV file with a column `t` [s] and one per channel, SI units), or the run of the
nominal vehicle of the study. Per channel the misfit is rms(case - reference) / rms(reference - its mean), over [solver]
window_s at the end of the run; the misfit of the case is the root-mean-square of those of its channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError, nearest
from railsweep.sweeps.quantity import ReadFile, Variable
from railsweep.sweeps.time_history import WORK, TimeHistory

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.engine.simulation import Trajectory
    from railsweep.sweeps.study import Study

Array = NDArray[np.float64]

MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MisfitOptions:
    """[misfit]: channels to compare, and the file of the reference (empty: the nominal vehicle)."""

    channels: tuple[str, ...]
    reference: str = ""


class Misfit(TimeHistory):
    """Distance of a time history from a reference."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> MisfitOptions:  # type: ignore[override]
        """The keys `channels` and `reference`."""
        channels = tuple(section.words("channels", []))
        if not channels:
            raise InputError(section.where("channels"), "is missing or empty", "channels as `simulate` takes them")
        name = section.text("reference", "")
        if name:
            columns = read_columns(read_file(section.where("reference"), name), name)
            for wanted in ("t", *channels):
                if wanted not in columns:
                    raise InputError(name, f"has no column {wanted!r}, {nearest(wanted, list(columns))}", "t, channels")
        return MisfitOptions(channels=channels, reference=name)

    def __init__(self, study: Study, model: Model) -> None:
        from railsweep.engine.simulation import channel_code

        super().__init__(study, model)
        self.options: MisfitOptions = study.options
        for channel in self.options.channels:
            channel_code(model, channel)
        self.recorded = list(self.options.channels)
        self.model = model
        self.variables = (
            Variable(name="misfit", unit="1", title="relative rms distance from the reference, over all channels"),
            *(Variable(name=misfit_name(c), unit="1", title=f"the same of {c}") for c in self.options.channels),
            *WORK,
        )
        self._reference: tuple[Array, dict[str, Array]] | None = None
        self._lock = Lock()

    def figures(self, run: Trajectory, model: Model) -> dict[str, Any]:
        """The misfits of a run that reached its end."""
        if not run.success:
            return {}
        t, reference = self._compared(run.window_t)
        found = {}
        for channel in self.options.channels:
            wanted = np.interp(run.window_t, t, reference[channel])
            size = float(np.sqrt(np.mean((wanted - wanted.mean()) ** 2)))
            if size == 0.0:
                raise InputError("misfit.channels", f"{channel} does not move in the reference", "channels that move")
            found[misfit_name(channel)] = float(np.sqrt(np.mean((run.channels[channel] - wanted) ** 2))) / size
        return {"misfit": float(np.sqrt(np.mean(np.square(list(found.values()))))), **found}

    def _compared(self, window: Array) -> tuple[Array, dict[str, Array]]:
        with self._lock:
            if self._reference is None:
                self._reference = self._measured(window) if self.options.reference else self._nominal()
        return self._reference

    def _measured(self, window: Array) -> tuple[Array, dict[str, Array]]:
        name = self.options.reference
        columns = read_columns(self.study.files[name], name)
        t = columns["t"]
        if t[0] > window[0] + 1e-9 or t[-1] < window[-1] - 1e-9:
            raise InputError(name, f"covers {t[0]:g} to {t[-1]:g} s", f"the window, {window[0]:g} to {window[-1]:g} s")
        return t, columns

    def _nominal(self) -> tuple[Array, dict[str, Array]]:
        from railsweep.engine.simulation import simulate

        span = (0.0, self.study.solver.duration_s)
        run = simulate(self.model, self._start(self.model, self.study.seed), span, **self._settings())
        if not run.success:
            raise InputError("misfit", f"the nominal run ends early: {run.message}", "a run that reaches its end")
        return run.window_t, run.channels


def misfit_name(channel: str) -> str:
    """Name of the variable of one channel."""
    return f"misfit_{channel.replace('.', '_')}"


def read_columns(raw: bytes, name: str) -> dict[str, Array]:
    """Columns of a CSV file by the names in its first line; times must increase."""
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(name, "is not UTF-8 text", "a CSV file") from None
    if not 3 <= len(lines) <= MOST_ROWS:
        raise InputError(name, f"has {len(lines)} lines", f"a header and 2 to {MOST_ROWS} rows")
    heads = [head.strip() for head in lines[0].split(",")]
    if len(set(heads)) != len(heads) or "" in heads:
        raise InputError(f"{name}, line 1", "has empty or repeated names", "one name per column")
    rows = np.empty((len(lines) - 1, len(heads)))
    for i, line in enumerate(lines[1:]):
        try:
            rows[i] = [float(cell) for cell in line.split(",")]
        except ValueError:
            raise InputError(f"{name}, line {i + 2}", "does not hold one number per column", f"{len(heads)}") from None
    if not np.isfinite(rows).all():
        raise InputError(name, "holds numbers that are not finite", "finite numbers")
    columns = {head: rows[:, j].copy() for j, head in enumerate(heads)}
    if "t" in columns and not (np.diff(columns["t"]) > 0.0).all():
        raise InputError(name, "has times that do not increase", "increasing t")
    return columns
