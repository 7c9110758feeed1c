"""``railsweep simulate``: the motion of one vehicle in time."""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from railsweep.app import option, vehicle_option
from railsweep.engine.errors import InputError, shown

if TYPE_CHECKING:
    from types import TracebackType

    from railsweep.engine.model import Model
    from railsweep.engine.simulation import Trajectory

SHAPES = ("clothoid", "bloss", "cosine")
METHODS = ("auto", "dopri5", "dop853", "rkf34", "nt1", "jkt", "esdirk54", "radau", "bdf", "bsimp", "seulex")
OUT_ENDINGS = (".zarr", ".h5", ".hdf5", ".nc")

LONGEST_S = 1e6

SAMPLE_S = 0.005
LINE_INTERVAL_S = 5.0  # between two lines of progress where there is no terminal
POLL_S = 0.1
KMH = 3.6  # km/h per m/s
LOG_WIDTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """One run, in SI units but for the cant [mm]; `radius_m` is infinite on straight track."""

    vehicle: str
    speed_mps: float
    duration_s: float
    perturb: dict[str, float]
    radius_m: float
    cant_mm: float
    transition_m: float
    transition_shape: str
    contact_table: Path | None
    formulation: str
    friction: float | None
    method: str
    rtol: float
    atol: float
    sample_s: float
    window_s: float
    channels: tuple[str, ...]
    irregularity: str | None
    assess: bool
    out: Path | None
    plot: Path | None
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    add = parser.add_argument
    add(
        "--vehicle",
        required=True,
        metavar="NAME|FILE",
        help="library vehicle (see 'railsweep vehicles') or a vehicle TOML file",
    )
    add("--speed-mps", required=True, metavar="V", help="speed in m/s")
    add("--duration-s", required=True, metavar="T", help="length of the run in s")
    add(
        "--perturb",
        action="append",
        default=[],
        metavar="STATE=VALUE",
        help="initial displacement or rate added to the equilibrium, in m, rad, m/s or rad/s; may be repeated",
    )
    add("--radius-m", metavar="R", help="curve radius in m, negative to the left (default: straight track)")
    add("--cant-mm", metavar="C", help="cant in mm, positive with the outer rail raised (default: 0)")
    add(
        "--transition-m",
        metavar="L",
        help="length of a transition that begins at t = 0, from straight track (default: 0)",
    )
    add("--transition-shape", choices=SHAPES, default="clothoid", help="its shape (default: clothoid)")
    add(
        "--contact-table",
        metavar="FILE|PROFILES",
        help="contact table in RSGEO text format, or profiles to build one from, such as s1002/uic60@1:40 (default: "
        "conical wheels, which have no flange)",
    )
    add(
        "--formulation",
        choices=vehicle_option.FORMULATIONS,
        default="physics",
        help="physics: every term right; dytsi: as in the program behind the published numbers (default: physics)",
    )
    add(
        "--irregularity",
        metavar="TRACK",
        help="rough track: a spectrum with settings (erri-low, erri-high, fra-1 to fra-6; as in erri-high,seed=3), a "
        ".toml description or a .csv measurement (default: perfect track)",
    )
    add(
        "--assess",
        action="store_true",
        help="add the figures of running behaviour and comfort (EN 14363, EN 12299, Wz, wear) over the window",
    )
    add("--friction", metavar="MU", help="wheel-rail friction coefficient (default: the model's own)")
    add("--method", choices=METHODS, default="dopri5", help="integrator (default: dopri5)")
    add("--rtol", metavar="X", default="1e-6", help="relative tolerance of a step (default: 1e-6)")
    add("--atol", metavar="X", default="1e-9", help="absolute tolerance of a step (default: 1e-9)")
    add("--sample-s", metavar="DT", default=str(SAMPLE_S), help=f"sampling interval in s (default: {SAMPLE_S:g})")
    add("--window-s", metavar="W", help="length of the end that the statistics cover (default: the second half)")
    add(
        "--channels",
        metavar="A,B",
        help="channels to report: states, <body>.<dof>_acc, <wheelset>.<side>.y_n, .q_n, .y_over_q, .t_gamma_n, "
        "<wheelset>.sum_y_n, .rail_y_m, .rail_z_m, .rail_roll_rad, .rail_gauge_m "
        "(default: lateral displacement of the wheelsets)",
    )
    add("--out", metavar="FILE", help="write all samples: " + ", ".join(OUT_ENDINGS))
    add("--plot", metavar="FILE", help="write a picture of the channels (.png, .pdf or .svg)")
    add("--json", action="store_true", help="print one JSON object instead of a table")


def request_from(args: argparse.Namespace) -> SimulateRequest:
    """Check every option and convert it to SI units; raises InputError that names the option."""
    radius_m, cant_mm = vehicle_option.curve(args)
    transition_m = 0.0
    if args.transition_m is not None:
        transition_m = option.number("--transition-m", args.transition_m, above=0.0)
        if math.isinf(radius_m) and cant_mm == 0.0:
            raise InputError("--transition-m", "a transition leads to a curve", "together with --radius-m or --cant-mm")
    duration_s = option.number("--duration-s", args.duration_s, above=0.0, at_most=LONGEST_S)
    window_s = 0.5 * duration_s
    if args.window_s is not None:
        window_s = option.number("--window-s", args.window_s, above=0.0, at_most=duration_s)
    return SimulateRequest(
        vehicle=args.vehicle,
        speed_mps=option.number("--speed-mps", args.speed_mps, above=0.0, at_most=vehicle_option.FASTEST_MPS),
        duration_s=duration_s,
        perturb=perturbations(args.perturb),
        radius_m=radius_m,
        cant_mm=cant_mm,
        transition_m=transition_m,
        transition_shape=args.transition_shape,
        contact_table=None if args.contact_table is None else Path(args.contact_table),
        formulation=args.formulation,
        friction=vehicle_option.friction(args.friction),
        method=args.method,
        rtol=option.number("--rtol", args.rtol, above=0.0, at_most=1.0),
        atol=option.number("--atol", args.atol, above=0.0, at_most=1.0),
        sample_s=option.number("--sample-s", args.sample_s, above=0.0, at_most=duration_s),
        window_s=window_s,
        channels=() if args.channels is None else tuple(args.channels.split(",")),
        irregularity=args.irregularity,
        assess=args.assess,
        out=None if args.out is None else out_file(args.out),
        plot=None if args.plot is None else option.plot_file("--plot", args.plot),
        json=args.json,
    )


def perturbations(words: list[str]) -> dict[str, float]:
    """Read ``STATE=VALUE`` words; whether there is such a state is for the model to say."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InputError("--perturb", f"{shown(word)} is no perturbation", "STATE=VALUE, as in wheelset_ll.y=0.001")
        if name in found:
            raise InputError("--perturb", f"{name} is given twice", "each state once")
        found[name] = option.number(f"--perturb {name}", value)
    return found


def out_file(text: str) -> Path:
    """Read the name of a result, refusing before any computation what could not be written after it."""
    path = Path(text)
    if path.suffix.lower() not in OUT_ENDINGS:
        raise InputError("--out", f"unknown ending of {shown(text)}", ", ".join(OUT_ENDINGS))
    if not path.parent.is_dir():
        raise InputError("--out", f"no such folder {shown(str(path.parent))}", "a file in an existing folder")
    return path


def run(args: argparse.Namespace) -> int:
    """Simulate and report."""
    return report(request_from(args))


def report(request: SimulateRequest) -> int:
    """Integrate, write, draw and print; 1 when the run stopped early."""
    from railsweep.engine import ModelError, Track, assemble
    from railsweep.engine.simulation import channel_code

    model = assemble(
        request.vehicle if not request.vehicle.endswith(".toml") else Path(request.vehicle),
        contact=contact_of(request),
        track=Track(
            radius_m=request.radius_m,
            cant_mm=request.cant_mm,
            transition_m=request.transition_m,
            transition=request.transition_shape,
        ),
        speed_mps=request.speed_mps,
        formulation=request.formulation,
        friction=request.friction,
        irregularity=request.irregularity,
    )
    channels = request.channels or tuple(f"{name}.y" for name in model.layout.wheelset_names)
    for name in (*channels, *request.perturb):
        if name in request.perturb:
            model.index(name)
        else:
            channel_code(model, name)
    start = time.perf_counter()
    try:
        with _meter(request.duration_s) as meter:
            trajectory = integrate(model, request, channels, meter)
    except ModelError as error:
        print(f"error: no equilibrium to start from: {error}", file=sys.stderr)
        return 1
    seconds = time.perf_counter() - start
    figures = assessment(model, request, trajectory)
    trajectory = replace(trajectory, channels={name: trajectory.channels[name] for name in channels})
    statistics = window_statistics(trajectory, request.window_s)
    if request.out is not None:
        trajectory.save(request.out)
    if request.plot is not None:
        from railsweep.app.simulate_plot import plot_channels

        plot_channels(trajectory, request.plot, title=_title(model, request))
    if request.json:
        print(json.dumps({**as_dict(model, request, trajectory, statistics, seconds), "figures": figures}))
    else:
        _print_report(model, request, trajectory, statistics, seconds)
        _print_figures(figures)
    return 0 if trajectory.success else 1


def contact_of(request: SimulateRequest) -> str | Path | None:
    """The contact as `assemble` takes it: profiles as text, a table as a path."""
    from railsweep.engine.contact_build import is_specification

    if request.contact_table is not None and is_specification(str(request.contact_table)):
        return str(request.contact_table)
    return request.contact_table


class Meter(Protocol):
    """Shows how far a run is."""

    def __enter__(self) -> Meter: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, t: float) -> None:
        """The run has reached time t."""


class LineMeter:
    """A plain line on stderr now and then."""

    def __init__(self, duration_s: float) -> None:
        self.duration_s = duration_s
        self.start = self.last = time.monotonic()

    def __enter__(self) -> LineMeter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def update(self, t: float) -> None:
        now = time.monotonic()
        if now - self.last < LINE_INTERVAL_S:
            return
        self.last = now
        share = t / self.duration_s
        left = f", {(now - self.start) * (1.0 - share) / share:.0f} s left" if share > 0.0 else ""
        print(f"t = {t:.4g} of {self.duration_s:g} s ({100.0 * share:.0f} %){left}", file=sys.stderr, flush=True)


class BarMeter:
    """A bar with the time left, on a terminal."""

    def __init__(self, duration_s: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn("t = {task.completed:.2f} of {task.total:g} s"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} %, left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.progress.add_task("", total=duration_s)

    def __enter__(self) -> BarMeter:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def update(self, t: float) -> None:
        self.progress.update(self.task, completed=t)


def _meter(duration_s: float) -> Meter:
    return BarMeter(duration_s) if sys.stderr.isatty() else LineMeter(duration_s)


def integrate(model: Model, request: SimulateRequest, channels: tuple[str, ...], meter: Meter) -> Trajectory:
    """Run in a thread beside this one, which shows the progress and stays open to an interrupt from the keyboard."""
    from railsweep.engine import simulate

    reached = [0.0]
    outcome: list[Trajectory] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(
                simulate(
                    model,
                    request.perturb,
                    (0.0, request.duration_s),
                    method=request.method,
                    rtol=request.rtol,
                    atol=request.atol,
                    sample_s=request.sample_s,
                    observables=observed(model, request, channels),
                    window_s=request.duration_s,
                    progress=lambda t: reached.__setitem__(0, t),
                )
            )
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL_S)
        meter.update(reached[0])
    if failure:
        raise failure[0]
    return outcome[0]


def observed(model: Model, request: SimulateRequest, channels: tuple[str, ...]) -> list[str]:
    """The channels to report and, when asked, those that an assessment needs."""
    from railsweep.engine import assessment_channels

    more = assessment_channels(model) if request.assess else []
    return [*channels, *(name for name in more if name not in channels)]


def assessment(model: Model, request: SimulateRequest, trajectory: Trajectory) -> dict[str, float]:
    """Figures over the window; none unless they were asked for and the run reached its end."""
    from railsweep.engine import assess

    if not request.assess or not trajectory.success:
        return {}
    return assess(trajectory, model, window_s=request.window_s)


def _print_figures(figures: dict[str, float]) -> None:
    from rich.console import Console
    from rich.table import Table

    from railsweep.engine import FIGURES

    if not figures:
        return
    table = Table(title="Assessment")
    for title in ("figure", "value", "unit", "meaning"):
        table.add_column(title, justify="right" if title == "value" else "left", no_wrap=True)
    for name, value in figures.items():
        table.add_row(name, f"{value:.4g}", FIGURES[name].unit, FIGURES[name].title)
    terminal = Console(highlight=False)
    (terminal if terminal.is_terminal else Console(highlight=False, width=LOG_WIDTH)).print(table)


def window_statistics(trajectory: Trajectory, window_s: float) -> dict[str, dict[str, float]]:
    """Statistics of every channel over the last `window_s` seconds that were reached."""
    from railsweep.engine.simulation import channel_statistics

    inside = trajectory.window_t >= trajectory.t_end - window_s
    t = trajectory.window_t[inside]
    return {name: channel_statistics(t, values[inside]) for name, values in trajectory.channels.items()}


def _title(model: Model, request: SimulateRequest) -> str:
    track = "straight track"
    if math.isfinite(request.radius_m) or request.cant_mm:
        track = f"R = {request.radius_m:g} m, cant {request.cant_mm:g} mm"
        if request.transition_m:
            track += f" after {request.transition_m:g} m of {request.transition_shape}"
    if request.irregularity is not None:
        track += f" ({request.irregularity})"
    speed = f"{request.speed_mps:g} m/s ({request.speed_mps * KMH:.0f} km/h)"
    return f"{model.vehicle.name}, {model.contact.name}, {track}, {speed}, {model.formulation}"


def as_dict(
    model: Model,
    request: SimulateRequest,
    trajectory: Trajectory,
    statistics: dict[str, dict[str, float]],
    seconds: float,
) -> dict[str, Any]:
    """The run as plain data (SI units), the form of ``--json``; what is not known is null."""
    return {
        "vehicle": model.vehicle.name,
        "contact": model.contact.name,
        "formulation": model.formulation,
        "speed_mps": request.speed_mps,
        "duration_s": request.duration_s,
        "method": request.method,
        "status": trajectory.status.name,
        "success": trajectory.success,
        "message": trajectory.message,
        "t_end_s": trajectory.t_end,
        "seconds": seconds,
        "counters": trajectory.counters,
        "window_s": request.window_s,
        "irregularity": None if model.irregularity is None else model.irregularity.provenance,
        "statistics": {
            name: {key: value if math.isfinite(value) else None for key, value in values.items()}
            for name, values in statistics.items()
        },
        "end_state": dict(zip(trajectory.state_names, trajectory.y_end.tolist(), strict=True)),
        "out": None if request.out is None else str(request.out),
        "plot": None if request.plot is None else str(request.plot),
    }


def _print_report(
    model: Model,
    request: SimulateRequest,
    trajectory: Trajectory,
    statistics: dict[str, dict[str, float]],
    seconds: float,
) -> None:
    from rich.console import Console
    from rich.table import Table

    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=LOG_WIDTH)
    console.print(_title(model, request), markup=False)
    first = max(0.0, trajectory.t_end - request.window_s)
    table = Table(title=f"Channels from {first:g} to {trajectory.t_end:g} s")
    table.add_column("channel", no_wrap=True)
    names = ("min", "max", "mean", "rms", "amplitude", "frequency_hz")
    for name in names:
        table.add_column("Hz" if name == "frequency_hz" else name, justify="right", no_wrap=True)
    for channel, values in statistics.items():
        table.add_row(channel, *(f"{values[name]:.4g}" if math.isfinite(values[name]) else "-" for name in names))
    console.print(table)
    work = trajectory.counters
    console.print(
        f"{trajectory.message}; {request.method}: {work['accepted']} steps, {work['rejected']} rejected, "
        f"{work['rhs'] + work['jacobian_rhs']} right-hand sides, {work['jacobians']} Jacobians, {seconds:.2f} s",
        markup=False,
    )
    for what, path in (("samples", request.out), ("picture", request.plot)):
        if path is not None:
            console.print(f"{what}: {path}", markup=False)
