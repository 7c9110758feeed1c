"""``railsweep published``: the published critical speeds of the Cooperrider wagon, computed again and judged."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from railsweep.app import option
from railsweep.engine.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from railsweep.sweeps.bifurcation.published import Row

SOURCE = "Bigoni, Curving Dynamics in High Speed Trains, IMM-MSC-2011-59, sections 6.1 and 8.2"
LOG_WIDTH = 150
LEAST_RTOL, MOST_RTOL = 1e-10, 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument(
        "--contact-table",
        required=True,
        metavar="FILE",
        help="the contact table of the original (RSGEO text, S1002 on UIC60 1:40); it is not part of railsweep",
    )
    parser.add_argument("--only", metavar="LIST", help="rows, for example V1,V4,T0.15 (default: all)")
    parser.add_argument("--workers", metavar="N", help="computations side by side (default: the number of cores)")
    parser.add_argument("--rtol", metavar="TOL", help="relative tolerance of the time integration (default: 1e-4)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Compute and print; 1 when a row does not agree with the publication."""
    path = Path(args.contact_table)
    if not path.is_file():
        raise InputError("--contact-table", f"no such file {shown(args.contact_table)}", "the published RSGEO table")
    workers = os.cpu_count() or 1
    if args.workers is not None:
        count = option.number("--workers", args.workers, above=0, at_most=256)
        if count != int(count):
            raise InputError("--workers", f"{shown(args.workers)} is not a whole number", "1 to 256")
        workers = int(count)
    rtol = 1e-4
    if args.rtol is not None:
        rtol = option.number("--rtol", args.rtol, above=LEAST_RTOL, at_most=MOST_RTOL)
    only = args.only.split(",") if args.only is not None else []

    from railsweep.engine.contact_table import load_contact_table
    from railsweep.sweeps.bifurcation.published import published_rows, sorted_rows

    rows: list[Row] = []
    for row in published_rows(load_contact_table(path), only, workers=workers, rtol=rtol):
        rows.append(row)
        if not args.json:
            print(f"{row.id} {row.quantity}: {'pass' if row.passed else 'FAIL'}", file=sys.stderr, flush=True)
    rows = sorted_rows(rows)
    failed = sum(not row.passed for row in rows)
    if args.json:
        print(json.dumps({"source": SOURCE, "rtol": rtol, "failed": failed, "rows": [r.to_dict() for r in rows]}))
    else:
        _print_table(rows)
    return 1 if failed else 0


def _print_table(rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=LOG_WIDTH)
    table = Table(title=f"Published beside ours ({SOURCE})")
    for heading in ("row", "quantity", "published", "ours", "tolerance", "unit", "", "note"):
        right = heading in ("published", "ours", "tolerance")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading != "note")
    for row in rows:
        table.add_row(
            row.id,
            row.quantity,
            _text(row.published),
            _text(row.ours),
            "" if row.tolerance is None else f"{row.tolerance:g}",
            row.unit,
            "pass" if row.passed else "FAIL",
            row.note,
        )
    console.print(table)
    failed = sum(not row.passed for row in rows)
    console.print(f"{len(rows) - failed} of {len(rows)} rows agree", markup=False)


def _text(value: float | str | tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return f"{value[0]:g} to {value[1]:g}"
    return f"{value:.5g}"
