"""``railsweep critical-speed``: linear and non-linear critical speed of one vehicle on one track, as a study."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from railsweep.app import option, shortcut, vehicle_option
from railsweep.app.bifurcation_command import KMH, add_search_arguments, search_lines, study_lines, title


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    vehicle_option.add_arguments(parser)
    add_speed_arguments(parser)
    parser.add_argument("--radius-m", metavar="R", default="inf", help="curve radius, positive to the right")
    parser.add_argument("--cant-mm", metavar="C", default="0", help="cant, positive with the left rail raised")
    shortcut.add_arguments(parser, "critical-speed")


def add_speed_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how critical speeds are looked for."""
    add_search_arguments(parser)
    parser.add_argument("--linear", action="store_true", help="linear critical speeds only")
    parser.add_argument("--step-mps", metavar="V", default="5", help="distance of the speeds scanned (default: 5)")


def compute_speeds(args: argparse.Namespace, base: Path) -> int:
    """Write and run the study of critical speeds; its exit code."""
    search = [
        *search_lines(args, "critical_speed"),
        f"nonlinear = {'false' if args.linear else 'true'}",
        f"step_mps = {option.number('--step-mps', args.step_mps, above=0.0)!r}",
    ]
    head = vehicle_option.study_head(vehicle_option.read(args), base.parent)
    lines = study_lines(args, base.name, "critical_speed", search)
    return shortcut.compute(args, base, [*lines[:2], *head, *lines[2:]])


def run(args: argparse.Namespace) -> int:
    """Compute, print; the picture shows the modes over speed with the critical speeds in it."""
    base = shortcut.place(args.out)
    code = compute_speeds(args, base)
    if args.dry_run or code not in (0, 1):
        return code
    one = shortcut.opened(base).isel(radius_m=0, cant_mm=0)
    store = base.with_name(base.name + ".zarr")
    picture = base.with_name(base.name + ".png")
    folds = shortcut.listed(one.fold_mps.values) or shortcut.listed(one.nonlinear_mps.values)
    _draw(args, store, picture, folds)
    crossings, frequencies = shortcut.listed(one.crossing_mps.values), shortcut.listed(one.crossing_hz.values)
    facts = {
        "linear_mps": crossings,
        "frequency_hz": frequencies,
        "criticality": str(one.criticality.values),
        "nonlinear_mps": folds,
        "derails_at_mps": shortcut.number_or_none(one.derails_at_mps.values),
        "method": str(one.method.values),
        "reason": str(one.reason.values),
        "store": str(store),
        "picture": str(picture),
    }
    if args.json:
        print(json.dumps(facts))
        return code
    for speed, frequency in zip(crossings, frequencies, strict=True):
        print(f"linear: a pair crosses at {speed:.3f} m/s ({speed * KMH:.1f} km/h), {frequency:.3f} Hz")
    for speed in folds:
        print(f"non-linear: {speed:.3f} m/s ({speed * KMH:.1f} km/h) by {facts['method']}, {facts['criticality']}")
    if facts["reason"]:
        print(facts["reason"])
    print(f"results: {store}")
    print(f"picture: {picture}")
    return code


def _draw(args: argparse.Namespace, store: Path, picture: Path, folds: list[float]) -> None:
    import numpy as np

    from railsweep.app.stability_plot import plot_stability
    from railsweep.engine import stability
    from railsweep.sweeps.evaluate import Evaluator
    from railsweep.sweeps.store import open_store

    opened = open_store(store)
    evaluator = Evaluator(opened.study, opened.contact_file)
    model = evaluator.binder(list(opened.plan.values(opened.plan.position(0))))
    options = opened.study.options
    speeds = np.linspace(options.low_mps, options.high_mps, 26)
    study = stability(model, [float(v) for v in speeds])
    plot_stability(study, picture, title=title(args), folds=folds)
