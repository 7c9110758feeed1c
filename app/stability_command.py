"""``railsweep stability``: equilibrium and eigenvalues over speed, and where modes turn unstable."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railsweep.app import option, vehicle_option

if TYPE_CHECKING:
    from rich.table import Table

    from railsweep.engine.linear_stability import SpeedPoint, StabilityStudy
    from railsweep.engine.model import Model


KMH = 3.6  # km/h per m/s
LISTED_NEUTRAL = 8
SUSPENSION_HZ = 50.0  # wheel-rail contact modes lie above, running and suspension modes below
LOG_WIDTH = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityRequest:
    """One stability study, in SI units.

    Attributes
    ----------
    vehicle : str
        Library name or path of a vehicle file.
    contact_table : str or None
        File, profiles ("s1002/uic60@1:40") or "cone"; None takes what the vehicle names.
    formulation : str
        ``physics`` or ``dytsi``.
    speeds_mps : tuple of float
        Ascending speeds, m/s.
    radius_m : float
        Curve radius, m; positive in a right-hand curve, infinite on straight track.
    cant_mm : float
        Cant, mm; positive with the outer rail raised.
    friction : float or None
        Wheel-rail friction coefficient; None leaves the model's own.
    precession : str or None
        Gyroscopic terms: ``off``, ``printed`` or ``right``; None leaves the formulation's own.
    json : bool
        Print one JSON object.
    plot : Path or None
        Picture to write.
    """

    vehicle: str
    contact_table: str | None
    formulation: str
    speeds_mps: tuple[float, ...]
    radius_m: float
    cant_mm: float
    friction: float | None
    precession: str | None
    json: bool
    plot: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument(
        "--vehicle",
        required=True,
        metavar="NAME|FILE",
        help="library vehicle (see 'railsweep vehicles') or a vehicle TOML file",
    )
    parser.add_argument(
        "--speed-mps",
        required=True,
        metavar="A:B:STEP",
        help="speeds in m/s: a range with both ends (20:120:5), an ascending list (40,60,80) or one number",
    )
    parser.add_argument(
        "--contact-table",
        metavar="FILE|PROFILES",
        help="wheel-rail contact: a table file (RSGEO text, .npz, .h5, .csv), profiles to build one from "
        "(s1002/uic60@1:40,gauge=1437) or cone (default: the profiles the vehicle names, else cone)",
    )
    parser.add_argument(
        "--formulation",
        choices=vehicle_option.FORMULATIONS,
        default="physics",
        help="physics: every term right; dytsi: as in the program behind the published numbers (default: physics)",
    )
    parser.add_argument(
        "--radius-m",
        metavar="R",
        help="curve radius in m, positive to the right, negative to the left (default: straight track)",
    )
    parser.add_argument(
        "--cant-mm",
        metavar="C",
        help="cant in mm, positive with the outer rail raised (default: 0)",
    )
    parser.add_argument("--friction", metavar="MU", help="wheel-rail friction coefficient (default: the model's own)")
    parser.add_argument(
        "--precession",
        choices=vehicle_option.PRECESSIONS,
        help="gyroscopic terms of the wheelsets: none, as printed in the thesis, or right "
        "(default: that of the formulation)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--plot", metavar="FILE", help="write a picture (.png, .pdf or .svg)")


def request_from(args: argparse.Namespace) -> StabilityRequest:
    """Check every option and convert it to SI units; raises InputError that names the option."""
    radius_m, cant_mm = vehicle_option.curve(args)
    return StabilityRequest(
        vehicle=args.vehicle,
        contact_table=args.contact_table,
        formulation=args.formulation,
        # Creepage is slip divided by speed, so a standing vehicle has no linear creep law.
        speeds_mps=option.numbers("--speed-mps", args.speed_mps, above=0.0, at_most=vehicle_option.FASTEST_MPS),
        radius_m=radius_m,
        cant_mm=cant_mm,
        friction=vehicle_option.friction(args.friction),
        precession=args.precession,
        json=args.json,
        plot=None if args.plot is None else option.plot_file("--plot", args.plot),
    )


def run(args: argparse.Namespace) -> int:
    """Compute the stability of the requested vehicle and report it."""
    return report(request_from(args))


def report(request: StabilityRequest) -> int:
    """Compute with `railsweep.engine.linear_stability`, print, draw the picture; return the exit code."""
    from railsweep.engine import Track, assemble, stability

    model = assemble(
        request.vehicle if not request.vehicle.endswith(".toml") else Path(request.vehicle),
        contact=request.contact_table,
        track=Track(radius_m=request.radius_m, cant_mm=request.cant_mm),
        speed_mps=request.speeds_mps[0],
        formulation=request.formulation,
        friction=request.friction,
        precession=request.precession,
    )
    study = stability(model, request.speeds_mps)
    failed = sum(1 for point in study.points if point.error)
    if request.plot is not None:
        from railsweep.app.stability_plot import plot_stability

        plot_stability(study, request.plot, title=_title(model, request))
    if request.json:
        print(json.dumps(as_dict(model, request, study)))
    else:
        _print_tables(model, request, study)
    return 1 if failed else 0


def _title(model: Model, request: StabilityRequest) -> str:
    track = "straight track"
    if math.isfinite(request.radius_m) or request.cant_mm:
        track = f"R = {request.radius_m:g} m, cant {request.cant_mm:g} mm"
    return f"{model.vehicle.name}, {model.contact.name}, {track}, {model.formulation}"


def as_dict(model: Model, request: StabilityRequest, study: StabilityStudy) -> dict[str, Any]:
    """The study as plain data (SI units), the form of ``--json``."""
    return {
        "vehicle": model.vehicle.name,
        "contact": model.contact.name,
        "formulation": model.formulation,
        "track": {"curvature_1pm": model.track.curvature_1pm, "cant_rad": model.track.cant_rad},
        "friction": model.parameters["contact.friction"],
        "critical_speed_mps": study.critical_speed_mps,
        "crossings": [
            {
                "speed_mps": c.speed_mps,
                "frequency_hz": c.frequency_hz,
                "direction": c.direction,
                "multiplicity": c.multiplicity,
                "bodies": dict(c.bodies),
            }
            for c in study.crossings
        ],
        "points": [
            {
                "speed_mps": p.speed_mps,
                "error": p.error or None,
                "unstable_modes": p.unstable,
                "equilibrium": {}
                if p.equilibrium is None
                else dict(zip(model.state_names, p.equilibrium.tolist(), strict=True)),
                "modes": [
                    {
                        "real": m.eigenvalue.real,
                        "imag": m.eigenvalue.imag,
                        "frequency_hz": m.frequency_hz,
                        "damping_ratio": m.damping_ratio,
                        "neutral": m.neutral,
                        "dominant_state": m.dominant_state,
                        "bodies": dict(m.bodies),
                    }
                    for m in p.modes
                ],
            }
            for p in study.points
        ],
    }


def _print_tables(model: Model, request: StabilityRequest, study: StabilityStudy) -> None:
    from rich.console import Console

    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=LOG_WIDTH)
    console.print(_title(model, request), markup=False)
    console.print(_all_modes(study.points[0]) if len(study.points) == 1 else _least_damped(study))
    neutral = {(round(m.frequency_hz, 2), m.dominant_state) for p in study.points for m in p.modes if m.neutral}
    for frequency, state in sorted(neutral)[:LISTED_NEUTRAL]:
        console.print(f"neutral (undamped by construction, not counted): {state}, {frequency:g} Hz", markup=False)
    for c in study.crossings:
        twice = f", {c.multiplicity} modes together" if c.multiplicity > 1 else ""
        console.print(
            f"turns {c.direction} at {c.speed_mps:.3f} m/s ({c.speed_mps * KMH:.1f} km/h), "
            f"{c.frequency_hz:.3f} Hz{twice}: {_bodies(c.bodies)}",
            markup=False,
        )
    if not study.crossings and len(study.points) > 1:
        console.print("no mode changes stability between these speeds")
    failed = sum(1 for p in study.points if p.error)
    if failed:
        console.print(f"{failed} of {len(study.points)} speeds have no equilibrium", markup=False)
    if request.plot is not None:
        console.print(f"picture: {request.plot}", markup=False)


def _table(title: str, headings: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(title=title)
    for heading in headings:
        table.add_column(
            heading, justify="left" if heading in ("bodies", "state") else "right", no_wrap=heading != "bodies"
        )
    return table


def _least_damped(study: StabilityStudy) -> Table:
    """One row per speed: the least damped oscillation below the contact modes."""
    table = _table(
        f"Least damped oscillation below {SUSPENSION_HZ:g} Hz (neutral modes left out)",
        ("m/s", "km/h", "unstable", "Hz", "damping %", "bodies"),
    )
    for point in study.points:
        speed = (f"{point.speed_mps:g}", f"{point.speed_mps * KMH:.1f}")
        if point.error:
            table.add_row(*speed, "-", "-", "-", point.error)
            continue
        modes = [m for m in point.modes if 0.0 < m.frequency_hz < SUSPENSION_HZ and not m.neutral]
        if not modes:
            table.add_row(*speed, str(point.unstable), "-", "-", "none")
            continue
        worst = min(modes, key=lambda m: m.damping_ratio)
        table.add_row(
            *speed,
            str(point.unstable),
            f"{worst.frequency_hz:.3f}",
            f"{100.0 * worst.damping_ratio:.3f}",
            _bodies(worst.bodies),
        )
    return table


def _all_modes(point: SpeedPoint) -> Table:
    """Every mode at one speed, least stable first."""
    title = f"Modes at {point.speed_mps:g} m/s ({point.speed_mps * KMH:.1f} km/h), least stable first"
    table = _table(title, ("Re 1/s", "Hz", "damping %", "state", "bodies"))
    if point.error:
        table.add_row("-", "-", "-", "-", point.error)
    for mode in point.modes:
        mark = " (neutral)" if mode.neutral else ""
        table.add_row(
            f"{mode.eigenvalue.real:.5g}",
            f"{mode.frequency_hz:.4f}",
            f"{100.0 * mode.damping_ratio:.4g}",
            mode.dominant_state + mark,
            _bodies(mode.bodies),
        )
    return table


def _bodies(shares: tuple[tuple[str, float], ...]) -> str:
    return ", ".join(f"{name} {100.0 * share:.0f} %" for name, share in shares[:3])
