"""``railsweep bifurcation``: the bifurcation diagram of a vehicle over speed, as a study with a picture."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from railsweep.app import option, shortcut, vehicle_option

if TYPE_CHECKING:
    import xarray

KMH = 3.6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    vehicle_option.add_arguments(parser)
    add_search_arguments(parser)
    parser.add_argument("--radius-m", metavar="R", default="inf", help="curve radius, positive to the right")
    parser.add_argument("--cant-mm", metavar="C", default="0", help="cant, positive with the left rail raised")
    parser.add_argument("--points", metavar="N", default="60", help="most points of a branch of cycles (default: 60)")
    shortcut.add_arguments(parser, "bifurcation")


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how hunting is looked for."""
    parser.add_argument("--low-mps", metavar="V", default="40", help="lowest speed (default: 40)")
    parser.add_argument("--high-mps", metavar="V", default="140", help="highest speed (default: 140)")
    parser.add_argument("--dwell-s", metavar="S", default="6", help="seconds at every speed on the way down")
    parser.add_argument("--ramp-step-mps", metavar="V", default="2", help="steps of the way down (default: 2)")
    parser.add_argument("--kick-mm", metavar="MM", default="3", help="first offset of the wheelsets (default: 3)")
    parser.add_argument(
        "--starts",
        metavar="LIST",
        default="antisymmetric",
        help="shapes of that offset, each may lead to another attractor: antisymmetric,in-phase,leading,trailing",
    )


def search_lines(args: argparse.Namespace, section: str) -> list[str]:
    """The section of a study file that says how to search."""
    low = option.number("--low-mps", args.low_mps, above=0.0, at_most=vehicle_option.FASTEST_MPS)
    high = option.number("--high-mps", args.high_mps, above=low, at_most=vehicle_option.FASTEST_MPS)
    return [
        f"[{section}]",
        f"low_mps = {low!r}",
        f"high_mps = {high!r}",
        f"dwell_s = {option.number('--dwell-s', args.dwell_s, above=0.0)!r}",
        f"ramp_step_mps = {option.number('--ramp-step-mps', args.ramp_step_mps, above=0.0)!r}",
        f"kick_mm = {option.number('--kick-mm', args.kick_mm, above=0.0)!r}",
        f"starts = {json.dumps([word.strip() for word in args.starts.split(',')])}",
    ]


def axis_lines(parameter: str, name: str, values: tuple[float, ...]) -> list[str]:
    """One axis of a study file."""
    listed = ", ".join("inf" if v == float("inf") else repr(v) for v in values)
    return ["[[axis]]", f'parameter = "{parameter}"', f'name = "{name}"', f"values = [{listed}]"]


def study_lines(args: argparse.Namespace, base_name: str, quantity: str, search: list[str]) -> list[str]:
    """A study of one case or of a grid of radii and cants."""
    return [
        f"name = {json.dumps(base_name)}",
        f'quantity = "{quantity}"',
        *search,
        "[solver]",
        "time_limit_s = 1800.0",
        *axis_lines("track.radius_m", "radius_m", vehicle_option.radii("--radius-m", args.radius_m)),
        *axis_lines("track.cant_mm", "cant_mm", vehicle_option.cants("--cant-mm", args.cant_mm)),
        "[executor]",
        'kind = "processes"',
    ]


def run(args: argparse.Namespace) -> int:
    """Compute the diagram, draw it, print what was found."""
    base = shortcut.place(args.out)
    points = option.number("--points", args.points, above=1.0, at_most=1000.0)
    search = [*search_lines(args, "bifurcation"), f"points = {int(points)}"]
    head = vehicle_option.study_head(vehicle_option.read(args), base.parent)
    lines = study_lines(args, base.name, "bifurcation", search)
    code = shortcut.compute(args, base, [*lines[:2], *head, *lines[2:]])
    if args.dry_run or code not in (0, 1):
        return code
    found = shortcut.opened(base)
    picture = base.with_name(base.name + ".png")
    from railsweep.app.bifurcation_plot import plot_diagram

    one = found.isel(radius_m=0, cant_mm=0)
    plot_diagram(one, picture, title=title(args))
    facts = summary(one)
    facts |= {"store": str(base.with_name(base.name + ".zarr")), "picture": str(picture)}
    if args.json:
        print(json.dumps(facts))
        return code
    for line in described(facts):
        print(line)
    return code


def title(args: argparse.Namespace) -> str:
    """What the picture shows."""
    track = "straight track" if args.radius_m == "inf" else f"R = {args.radius_m} m, cant {args.cant_mm} mm"
    return f"{args.vehicle}, {args.contact_table or 'contact of the vehicle'}, {track}, {args.formulation}"


def summary(found: xarray.Dataset) -> dict[str, object]:
    """The diagram in numbers."""
    stable = (found.cycle_unstable == 0).values & found.cycle_mps.notnull().values
    return {
        "linear_mps": shortcut.listed(found.crossing_mps.values),
        "frequency_hz": shortcut.listed(found.crossing_hz.values),
        "nonlinear_mps": shortcut.listed(found.fold_mps.values),
        "cycles": int(found.cycle_mps.notnull().sum()),
        "stable_cycles": int(stable.sum()),
        "branch_ends": str(found.branch_ends.values),
        "reason": str(found.reason.values),
    }


def described(facts: dict[str, object]) -> list[str]:
    """The same in words."""

    def speeds(values: object) -> str:
        return ", ".join(f"{v:.3f} m/s ({v * KMH:.1f} km/h)" for v in values) or "none"  # type: ignore[attr-defined]

    lines = [
        f"linear critical speeds (pairs cross): {speeds(facts['linear_mps'])}",
        f"non-linear critical speeds (folds of the cycles): {speeds(facts['nonlinear_mps'])}",
        f"{facts['cycles']} cycles, {facts['stable_cycles']} of them stable; branches end: {facts['branch_ends']}",
    ]
    if facts["reason"]:
        lines.append(f"{facts['reason']}")
    return [*lines, f"results: {facts['store']}", f"picture: {facts['picture']}"]
