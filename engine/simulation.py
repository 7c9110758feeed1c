"""Time histories of a model: integrate, sample, observe, keep."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.document import check_number
from railsweep.engine.ensemble import solve_ensemble
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.linear_solver import LinearSolver, body_tree_solver
from railsweep.engine.model import Model
from railsweep.engine.solver import solve
from railsweep.engine.solver_run import Solution
from railsweep.kernels import channel
from railsweep.kernels import record as slot
from railsweep.kernels.channel import record_channels
from railsweep.kernels.jacobian import internal_states, vehicle_jacobian_one_sided
from railsweep.kernels.status import Status
from railsweep.kernels.vehicle import vehicle_rhs

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

MAXIMUM_SAMPLES = 50_000_000  # numbers kept by one run
WHEEL_CHANNELS = {
    "y_n": channel.CHANNEL_Y,
    "q_n": channel.CHANNEL_Q,
    "y_over_q": channel.CHANNEL_Y_OVER_Q,
    "t_gamma_n": channel.CHANNEL_T_GAMMA,
}
RAIL_CHANNELS = {
    "rail_y_m": slot.RAIL_Y,
    "rail_z_m": slot.RAIL_Z,
    "rail_roll_rad": slot.RAIL_ROLL,
    "rail_gauge_m": slot.RAIL_GAUGE,
}
STATISTICS = ("min", "max", "mean", "rms", "amplitude", "frequency_hz")
EXPLICIT = ("dopri5", "dop853", "rkf34")
# Controllers that suit the motion of vehicles better than the method's own. A rejected step costs dop853 eleven
# right-hand sides; on the wagon H211B rejects one step in fifty where the elementary controller rejects one in six. To
# the same error it takes up to 18 per cent fewer in curves, 9 in decay and 12 while hunting. Where the step must change
# fast (a satellite's close approach) it loses a tenth of a digit, so it is not the default of `solve`.
VEHICLE_CONTROLLERS = {"dop853": "h211b"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """What `simulate` returns. A run that stopped early keeps everything before the stop.

    Attributes
    ----------
    t : (m,) array
        Sample times [s].
    y : (n, m) array
        States, one row per name in `state_names` (SI).
    status, message : Status, str
        Why the run ended.
    counters : dict
        Work: right-hand sides, Jacobians, factorisations, steps.
    t_end, y_end : float, (n,) array
        Where the run ended.
    channels : dict
        Observed channel -> its samples inside the window (`window_t`).
    statistics : dict
        Observed channel -> min, max, mean, rms (about the mean), amplitude ((max - min)/2) and peak frequency [Hz].
    """

    state_names: tuple[str, ...]
    t: Array
    y: Array
    status: Status
    message: str
    counters: dict[str, int]
    t_end: float
    y_end: Array
    window_t: Array
    channels: dict[str, Array] = field(default_factory=dict)
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Did the run reach its end (or a stopping event)?"""
        return self.status in (Status.OK, Status.EVENT)

    def __getitem__(self, name: str) -> Array:
        if name not in self.state_names:
            raise InputError(
                "state", f"{name!r} is not a state, {nearest(name, list(self.state_names))}", "see state_names"
            )
        row: Array = self.y[self.state_names.index(name)]
        return row

    def to_xarray(self) -> xarray.Dataset:
        """Samples as a dataset with one variable per state, units in the attributes."""
        import xarray

        variables = {name: ("time", self.y[i], {"units": state_unit(name)}) for i, name in enumerate(self.state_names)}
        return xarray.Dataset(
            variables,
            coords={"time": ("time", self.t, {"units": "s"})},
            attrs={"status": self.status.name, "message": self.message, **self.counters, **self.attributes},
        )

    def save(self, path: str | Path) -> None:
        """Write to a zarr store (``.zarr``) or an HDF5/netCDF file (``.h5``, ``.nc``)."""
        file = Path(path)
        if file.suffix == ".zarr":
            self.to_xarray().to_zarr(file, mode="w", consolidated=False)
        elif file.suffix in (".h5", ".hdf5", ".nc"):
            self.to_xarray().to_netcdf(file, engine="h5netcdf")
        else:
            raise InputError(str(file), f"has the ending {file.suffix!r}", ".zarr, .h5, .hdf5, .nc")


def load_trajectory(path: str | Path) -> xarray.Dataset:
    """Open what `Trajectory.save` wrote, as an xarray dataset."""
    import xarray

    file = Path(path)
    if not file.exists():
        raise InputError(str(file), "does not exist", "a file written by Trajectory.save")
    if file.suffix == ".zarr":
        dataset: xarray.Dataset = xarray.open_zarr(file, consolidated=False)
        return dataset
    return xarray.open_dataset(file, engine="h5netcdf")


def state_unit(name: str) -> str:
    """SI unit of a state by its name."""
    dof = name.rpartition(".")[2]
    angle = dof.removesuffix("_dot") in ("roll", "pitch", "yaw", "spin")
    if dof == "spin":
        return "rad/s"
    if dof == "friction":
        return "N"
    return ("rad" if angle else "m") + ("/s" if dof.endswith("_dot") else "")


def structure_of(model: Model) -> LinearSolver:
    """The body tree of a model for the implicit methods: bodies and elements with memory, coupled by their links."""
    layout = model.layout
    nodes: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for b, row in enumerate(layout.body_index.tolist()):
        nodes["body", b] = [(row[c + 1], row[c]) for c in range(0, slot.MOTION_WIDTH, 2) if row[c] >= 0]
    for row in layout.wheelset_index.tolist():
        if row[slot.WHEELSET_SPIN] >= 0:
            nodes["body", row[slot.WHEELSET_BODY]].append((row[slot.WHEELSET_SPIN], -1))
    joined = []
    for k, row in enumerate(layout.link_index.tolist()):
        ends = [("body", row[slot.LINK_LOWER]), ("body", row[slot.LINK_UPPER])]
        memory = range(row[slot.INTERNAL_STATE], row[slot.INTERNAL_STATE] + internal_states(row[slot.INTERNAL_KIND]))
        if memory:
            nodes["link", k] = [(state, -1) for state in memory]
            joined += [(("link", k), end) for end in ends]
        joined.append((ends[0], ends[1]))
    number = {name: i for i, name in enumerate(name for name, held in nodes.items() if held)}
    pairs = {(number[a], number[b]) for a, b in joined if a in number and b in number}
    return body_tree_solver(model.n, [nodes[name] for name in number], sorted(pairs))


def initial_state(model: Model, start: ArrayLike | Mapping[str, float] | None) -> Array:
    """A full state: given as it is, or the equilibrium (nominal state on a varying track) plus named perturbations."""
    if start is not None and not isinstance(start, Mapping):
        return np.array(start, dtype=np.float64)
    state = np.zeros(model.n) if model.track.varies else model.equilibrium()
    for name, value in (start or {}).items():
        state[model.index(name)] += check_number(f"perturbation {name}", value)
    return state


def channel_code(model: Model, name: str) -> tuple[int, int]:
    """Kind and number of a channel by its name (see `simulate`)."""
    if name in model.layout.state_index:
        return channel.CHANNEL_STATE, model.layout.state_index[name]
    if name.endswith("_acc") and f"{name[:-4]}_dot" in model.layout.state_index:
        return channel.CHANNEL_RATE, model.layout.state_index[f"{name[:-4]}_dot"]
    wheelset, _, rest = name.partition(".")
    if wheelset in model.layout.wheelset_names:
        number = model.layout.wheelset_names.index(wheelset)
        if rest == "sum_y_n":
            return channel.CHANNEL_SUM_Y, number
        if rest in RAIL_CHANNELS:
            return channel.CHANNEL_RAIL, slot.RAIL_WIDTH * number + RAIL_CHANNELS[rest]
        side, _, quantity = rest.partition(".")
        if side in ("left", "right") and quantity in WHEEL_CHANNELS:
            return WHEEL_CHANNELS[quantity], 2 * number + (side == "right")
    raise InputError(
        "observables",
        f"{name!r} is not a channel, {nearest(name, list(model.state_names))}",
        "a state, <body>.<dof>_acc, <wheelset>.<side>.y_n, .q_n, .y_over_q or .t_gamma_n, <wheelset>.sum_y_n, "
        ".rail_y_m, .rail_z_m, .rail_roll_rad or .rail_gauge_m",
    )


@dataclass(frozen=True, slots=True)
class _Sampling:
    times: Array | None
    record: Array | None
    names: tuple[str, ...]


def _sampling(
    model: Model,
    t_span: tuple[float, float],
    sample_s: float | None,
    observables: Sequence[str],
    window_s: float | None,
) -> _Sampling:
    t0, t1 = t_span
    names = tuple(observables)
    if sample_s is None:
        if not names:
            return _Sampling(None, None, ())
        sample_s = 0.005
    check_number("sample_s", sample_s, above=0.0)
    count = round((t1 - t0) / sample_s) + 1
    if count * max(1, model.n) > MAXIMUM_SAMPLES:
        raise InputError(
            "sample_s", f"is {sample_s!r}: {count} samples of {model.n} states", f"at most {MAXIMUM_SAMPLES} numbers"
        )
    times = t0 + sample_s * np.arange(count)
    times = np.minimum(times, t1)
    start = 0.5 * (t0 + t1) if window_s is None else t1 - check_number("window_s", window_s, above=0.0)
    capacity = int((times >= start).sum())
    codes = [value for name in names for value in channel_code(model, name)]
    head = [0.0, float(len(names)), float(capacity), start, *map(float, codes)]
    record = np.concatenate([head, np.zeros(capacity * (len(names) + 1))])
    return _Sampling(times, record if names else None, names)


def simulate(
    model: Model,
    y0: ArrayLike | Mapping[str, float] | None = None,
    t_span: tuple[float, float] = (0.0, 10.0),
    *,
    method: str = "dopri5",
    rtol: float = 1e-6,
    atol: float | ArrayLike = 1e-9,
    sample_s: float | None = None,
    observables: Sequence[str] = (),
    window_s: float | None = None,
    store: bool = True,
    **options: Any,
) -> Trajectory:
    """Integrate a model in time.

    Parameters
    ----------
    model : Model
        Not changed.
    y0 : array_like or mapping, optional
        A full state, or perturbations by state name added to the equilibrium (to the nominal state on a varying track).
    t_span : (float, float)
        [s].
    method : str
        See `railsweep.kernels.integrate`: dopri5, dop853, rkf34 (explicit), nt1, jkt, esdirk54, radau, bdf, bsimp,
        seulex (implicit), auto.
    rtol, atol : float
        Relative and absolute tolerance of a step; `atol` may be one number per state.
    sample_s : float, optional
        Sampling interval; every accepted step when absent (5 ms when there are observables).
    observables : sequence of str
        Channels to watch: a state, ``<body>.<dof>_acc``, ``<wheelset>.<side>.y_n``, ``.q_n``, ``.y_over_q``,
        ``.t_gamma_n`` (wear number), ``<wheelset>.sum_y_n``, and where the rails are under it on rough track:
        ``<wheelset>.rail_y_m``, ``.rail_z_m``, ``.rail_roll_rad``, ``.rail_gauge_m``.
    window_s : float, optional
        Length of the end of the run over which they are watched; default: its second half.
    store : bool
        Keep the sampled states; False leaves `t` and `y` empty and keeps the observables only.
    **options
        Anything `railsweep.engine.solve` takes: events, norm, controller, newton, first_step, max_step, time_limit...

    Examples
    --------
    >>> from railsweep.engine import assemble, simulate
    >>> model = assemble("cooperrider", speed_mps=40.0)
    >>> run = simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 1.0), sample_s=0.01, observables=["wheelset_ll.y"])
    >>> run.success, run.y.shape
    (True, (66, 101))
    """
    span = _span(t_span)
    sampling = _sampling(model, span, sample_s, observables, window_s)
    arrays = model.copy().arrays
    solution = solve(
        vehicle_rhs,
        span,
        initial_state(model, y0),
        params=arrays,
        method=method,
        rtol=rtol,
        atol=atol,
        **_options(model, method, sampling, span, store, options),
    )
    return _trajectory(model, solution, sampling, method, rtol)


def simulate_ensemble(
    models: Sequence[Model],
    y0: ArrayLike,
    t_span: tuple[float, float],
    *,
    threads: int = 1,
    lanes: bool = True,
    method: str = "dopri5",
    sample_s: float | None = None,
    observables: Sequence[str] = (),
    window_s: float | None = None,
    store: bool = False,
    **options: Any,
) -> list[Trajectory]:
    """Integrate many samples of one vehicle side by side on threads; results do not depend on their number.

    `models` come from one binder (same vehicle, track kind and contact); `y0` is one state for all or one per model.
    `lanes=False` runs them one by one, which explicit methods do not need to: see `solve_ensemble`.
    """
    if not models:
        return []
    span = _span(t_span)
    sampling = _sampling(models[0], span, sample_s, observables, window_s)
    solutions = solve_ensemble(
        vehicle_rhs,
        span,
        y0,
        [model.copy().arrays for model in models],
        threads=threads,
        lanes=lanes,
        method=method,
        **_options(models[0], method, sampling, span, store, options),
    )
    rtol = float(options.get("rtol", 1e-6))
    return [_trajectory(m, s, sampling, method, rtol) for m, s in zip(models, solutions, strict=True)]


def _span(t_span: tuple[float, float]) -> tuple[float, float]:
    t0, t1 = (check_number("t_span", value) for value in t_span)
    if not t1 > t0:
        raise InputError("t_span", f"is ({t0!r}, {t1!r})", "an end after the start")
    return t0, t1


def _options(
    model: Model, method: str, sampling: _Sampling, span: tuple[float, float], store: bool, given: dict[str, Any]
) -> dict[str, Any]:
    options = dict(given)
    if method in VEHICLE_CONTROLLERS:
        options.setdefault("controller", VEHICLE_CONTROLLERS[method])
    if method not in EXPLICIT:
        options.setdefault("jacobian", vehicle_jacobian_one_sided)
        options.setdefault("linear", structure_of(model))
    if sampling.times is not None:
        options["t_eval"] = sampling.times
    if sampling.record is not None:
        options["observer"] = record_channels
        options["accumulator"] = sampling.record
    options["store"] = store
    if "stops" not in options:
        options["stops"] = transition_times(model, span)
    return options


def transition_times(model: Model, span: tuple[float, float]) -> Array:
    """Times at which a body passes an end of a track segment, or a wheelset a defect of the rails.

    The right-hand side has a corner at the former; a long step might not notice the latter.
    """
    times = np.zeros(0)
    if model.track.varies:
        ends = model.arrays.track[:, slot.TRACK_FROM]
        ends = np.append(ends, ends[-1] + model.arrays.track[-1, slot.TRACK_LENGTH])
        local = model.layout.header[slot.LOCAL_FRAMES]
        places = np.unique(model.arrays.body[:, slot.ARC]) if local else np.zeros(1)
        times = (ends[:, None] - places[None, :]).ravel() / model.speed_mps
    if model.irregularity is not None and model.irregularity.marks_m:
        places = model.arrays.body[model.layout.wheelset_index[:, slot.WHEELSET_BODY], slot.ARC]
        marks = np.array(model.irregularity.marks_m) + model.layout.irregularity_grid[slot.IRREGULARITY_ORIGIN]
        times = np.append(times, (marks[:, None] - places[None, :]).ravel() / model.speed_mps)
    times = np.unique(times)
    inside: Array = times[(times > span[0]) & (times < span[1])]
    return inside


def _trajectory(model: Model, solution: Solution, sampling: _Sampling, method: str, rtol: float) -> Trajectory:
    channels: dict[str, Array] = {}
    window_t = np.zeros(0)
    if sampling.record is not None:
        count = int(solution.accumulator[channel.RECORD_SAMPLES])
        width = len(sampling.names) + 1
        first = channel.RECORD_HEAD + 2 * len(sampling.names)
        rows = solution.accumulator[first : first + count * width].reshape(count, width)
        window_t = rows[:, 0].copy()
        channels = {name: rows[:, i + 1].copy() for i, name in enumerate(sampling.names)}
    return Trajectory(
        state_names=model.state_names,
        t=solution.t,
        y=solution.y,
        status=solution.status,
        message=solution.message,
        counters=solution.counters,
        t_end=solution.t_end,
        y_end=solution.y_end,
        window_t=window_t,
        channels=channels,
        statistics={name: channel_statistics(window_t, values) for name, values in channels.items()},
        attributes={
            "vehicle": model.vehicle.name,
            "contact": model.contact.name,
            "formulation": model.formulation,
            "speed_mps": model.speed_mps,
            "method": method,
            "rtol": rtol,
            **_track_record(model),
        },
    )


def _track_record(model: Model) -> dict[str, str]:
    """How the irregularities were made, as text that any file format can keep."""
    return {} if model.irregularity is None else {"irregularity": json.dumps(model.irregularity.provenance)}


def channel_statistics(t: Array, values: Array) -> dict[str, float]:
    """min, max, mean, rms about the mean, amplitude and peak frequency of uniformly sampled values."""
    if values.size == 0:
        return dict.fromkeys(STATISTICS, math.nan)
    mean = float(values.mean())
    low, high = float(values.min()), float(values.max())
    return {
        "min": low,
        "max": high,
        "mean": mean,
        "rms": float(np.sqrt(((values - mean) ** 2).mean())),
        "amplitude": 0.5 * (high - low),
        "frequency_hz": peak_frequency(t, values - mean),
    }


def peak_frequency(t: Array, values: Array) -> float:
    """Frequency of the largest spectral line [Hz]: Hann window, parabola through the logarithms of three lines."""
    n = values.size
    if n < 8 or not np.any(values):
        return 0.0
    spectrum = np.abs(np.fft.rfft(values * np.hanning(n), 4 * n))
    k = int(np.argmax(spectrum))
    shift = 0.0
    if 0 < k < spectrum.size - 1 and spectrum[k - 1] > 0.0 and spectrum[k + 1] > 0.0:
        a, b, c = np.log(spectrum[k - 1 : k + 2])
        if a - 2.0 * b + c < 0.0:
            shift = float(0.5 * (a - c) / (a - 2.0 * b + c))
    step = float(t[-1] - t[0]) / (n - 1)
    return (k + shift) / (4 * n * step)
