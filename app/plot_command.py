"""``railsweep plot``: a picture of a store, a line over one axis or a map over two."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from railsweep.app import option
from railsweep.engine.errors import InputError, nearest, shown

if TYPE_CHECKING:
    from railsweep.sweeps.store import StudyStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("store", metavar="FOLDER.zarr|URL", help="a store made by 'railsweep run', finished or not")
    parser.add_argument("--variable", metavar="NAME", help="what to show (default: the first one of the study)")
    parser.add_argument(
        "--at",
        metavar="AXIS=VALUE",
        action="append",
        default=[],
        help="fix an axis at one of its values (repeatable); of the axes left, the last two are shown",
    )
    parser.add_argument("--out", metavar="FILE", help="the picture: .png, .pdf or .svg (default: STORE.png here)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the picture."""
    from railsweep.app.store_plot import choose, draw
    from railsweep.sweeps.remote import open_anywhere
    from railsweep.sweeps.study import plain

    out = option.plot_file("--out", args.out or f"{Path(args.store).stem}.png")
    store = open_anywhere(args.store)
    chosen = choose(store, variable_of(store, args.variable), dict(fixed("--at", text) for text in args.at))
    draw(out, chosen)
    facts = {
        "file": str(out),
        "variable": chosen.variable,
        "axes": [axis.name for axis in chosen.axes],
        "at": chosen.at,
        "cases": int(chosen.status.size),
        "failed": int(chosen.failed.sum()),
        "pending": int(chosen.pending.sum()),
        "least": chosen.least,
        "largest": chosen.largest,
    }
    if args.json:
        print(json.dumps(plain(facts)))
    else:
        places = ", ".join(f"{name} = {value:g}" for name, value in chosen.at.items())
        print(f"picture: {out}")
        print(
            f"{chosen.variable} over {' and '.join(a.name for a in chosen.axes)}" + (f" at {places}" if places else "")
        )
        print(f"{facts['cases']} cases, {facts['failed']} failed, {facts['pending']} pending")
    return 0


def variable_of(store: StudyStore, name: str | None) -> str:
    """The variable asked for, or the first with numbers in it."""
    shown_ones = [v.name for v in store.variables if v.dtype != "string"]
    if name is None:
        return next((n for n in shown_ones if n != "status"), "status")
    if name not in shown_ones:
        raise InputError("--variable", f"is {shown(name)}, {nearest(name, shown_ones)}", ", ".join(shown_ones))
    return name


def fixed(name: str, text: str) -> tuple[str, float]:
    """An axis and its value out of AXIS=VALUE; inf is a value (the radius of straight track)."""
    axis, equals, value = text.partition("=")
    if not axis or not equals:
        raise InputError(name, f"is {shown(text)}", "AXIS=VALUE")
    if value.strip().lower() in ("inf", "-inf"):
        return axis.strip(), float(value)
    return axis.strip(), option.number(f"{name} {axis}", value)
