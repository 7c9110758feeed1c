"""``railsweep map``: critical speeds over curve radius and cant, as a study with a picture."""

from __future__ import annotations

import argparse
import json

from railsweep.app import shortcut, vehicle_option
from railsweep.app.critical_speed_command import add_speed_arguments, compute_speeds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    vehicle_option.add_arguments(parser)
    add_speed_arguments(parser)
    parser.add_argument(
        "--radius-m", metavar="LIST", default="600,1000,2000,4000,inf", help="curve radii; inf is straight track"
    )
    parser.add_argument("--cant-mm", metavar="A:B:STEP", default="0:150:50", help="cants (default: 0:150:50)")
    shortcut.add_arguments(parser, "map")


def run(args: argparse.Namespace) -> int:
    """Compute the map, draw it, print it."""
    base = shortcut.place(args.out)
    code = compute_speeds(args, base)
    if args.dry_run or code not in (0, 1):
        return code
    from railsweep.app.store_plot import choose, draw
    from railsweep.sweeps.store import open_store

    found = shortcut.opened(base)
    picture = base.with_name(base.name + ".png")
    store = open_store(base.with_name(base.name + ".zarr"))
    if found.status.size > 1:
        shown = ["linear_mps"] if args.linear else ["linear_mps", "nonlinear_mps"]
        draw(picture, *(choose(store, name, {}) for name in shown))
    radii, cants = found.radius_m.values.tolist(), found.cant_mm.values.tolist()
    cases = [
        {
            "radius_m": radius if radius == radius and abs(radius) != float("inf") else None,
            "cant_mm": cant,
            "linear_mps": shortcut.number_or_none(found.linear_mps.values[i, j]),
            "nonlinear_mps": shortcut.number_or_none(found.nonlinear_mps.values[i, j]),
            "derails_at_mps": shortcut.number_or_none(found.derails_at_mps.values[i, j]),
            "criticality": str(found.criticality.values[i, j]),
            "method": str(found.method.values[i, j]),
            "status": int(found.status.values[i, j]),
            "reason": str(found.reason.values[i, j]),
        }
        for i, radius in enumerate(radii)
        for j, cant in enumerate(cants)
    ]
    facts = {"cases": cases, "store": str(store.path), "picture": str(picture) if found.status.size > 1 else None}
    if args.json:
        print(json.dumps(facts))
        return code
    print("radius [m]  cant [mm]  linear [m/s]  non-linear [m/s]  how")
    for case in cases:
        radius = "straight" if case["radius_m"] is None else f"{case['radius_m']:g}"
        row = [_number(case[name]) for name in ("linear_mps", "nonlinear_mps")]
        how = f"{case['method']} {case['reason']}".strip()
        print(f"{radius:>10}  {case['cant_mm']:9g}  {row[0]:>12}  {row[1]:>16}  {how}")
    print(f"results: {facts['store']}")
    if facts["picture"]:
        print(f"picture: {facts['picture']}")
    return code


def _number(value: object) -> str:
    return "-" if value is None else f"{value:.3f}"
