"""``railsweep bench``: measurements that anybody can repeat.

``solvers`` runs the published five test cases with the published tolerances and prints our table beside the original's.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railsweep.engine.errors import InputError, nearest, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from railsweep.engine.benchmark import BenchmarkRun, PeerRun

CASES = ("T1", "T2", "T3", "T4", "T5")
METHODS = ("nt1", "jkt", "bsimp", "bdf")
LOG_WIDTH = 150
COLUMNS = ("case", "method", "status", "f", "Jac", "accepted", "rejected", "seconds", "hunting mm", "error m")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of the verb and their options."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action", help="has its own --help")
    solvers = actions.add_parser("solvers", description="The published solver benchmark T1 to T5, beside the original.")
    solvers.add_argument(
        "--contact-table",
        required=True,
        metavar="FILE",
        help="the contact table of the original (RSGEO text, S1002 on UIC60 1:40); it is not part of railsweep",
    )
    solvers.add_argument("--cases", metavar="LIST", default=",".join(CASES), help="of T1,T2,T3,T4,T5")
    solvers.add_argument("--methods", metavar="LIST", default=",".join(METHODS), help="of nt1,jkt,bsimp,bdf")
    solvers.add_argument(
        "--peers",
        action="store_true",
        help="also run scipy, CVODE (scikit-sundae) and numbalsoda, as far as installed, on the same right-hand side",
    )
    solvers.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    solvers.set_defaults(verb_parser=solvers)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 1 when a method did not finish a case."""
    cases = chosen("--cases", args.cases, CASES)
    methods = chosen("--methods", args.methods, METHODS)
    table = Path(args.contact_table)
    if not table.is_file():
        raise InputError("--contact-table", f"no such file {shown(args.contact_table)}", "the published RSGEO table")
    from railsweep.engine.benchmark import peer_benchmark, solver_benchmark

    rows = []
    for row in solver_benchmark(table, cases, methods):
        rows.append(row)
        if not args.json:
            _announce(row)
    peers = list(peer_benchmark(table, cases)) if args.peers else []
    if args.json:
        print(json.dumps(as_dict(rows, peers)))
    else:
        _print_table(rows)
        if args.peers:
            _print_peers(peers)
    return 0 if all(row.success for row in rows) else 1


def chosen(option: str, text: str, allowed: Sequence[str]) -> list[str]:
    """Members of a comma-separated list, in the order of `allowed`."""
    words = text.split(",")
    for word in words:
        if word not in allowed:
            raise InputError(option, f"unknown {shown(word)}, {nearest(word, list(allowed))}", ", ".join(allowed))
    return [word for word in allowed if word in words]


def as_dict(rows: Sequence[BenchmarkRun], peers: Sequence[PeerRun] = ()) -> dict[str, Any]:
    """The benchmark as plain data (SI units), the form of ``--json``; what is not known is null."""
    from railsweep.engine.benchmark import NOTES

    return {
        "source": "Bigoni, IMM-MSC-2011-59, table 6.1",
        "notes": dict(NOTES),
        "peers": [
            {
                "case": peer.case,
                "solver": peer.solver,
                "note": peer.note,
                "span_s": peer.span_s,
                "seconds": _known(peer.seconds),
                "rhs": peer.rhs,
                "error": _known(peer.error),
            }
            for peer in peers
        ],
        "runs": [
            {
                "case": row.case,
                "method": row.method,
                "status": row.status.name,
                "message": row.message,
                "seconds": row.seconds,
                "counters": row.counters,
                "amplitude_m": [_known(a) for a in row.amplitude_m],
                "error": _known(row.error),
                "published": None
                if row.published is None
                else {
                    "seconds": row.published.seconds,
                    "rhs": row.published.rhs,
                    "jacobians": row.published.jacobians,
                    "accepted": row.published.accepted,
                    "rejected": row.published.rejected,
                },
            }
            for row in rows
        ],
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _announce(row: BenchmarkRun) -> None:
    import sys

    print(f"{row.case} {row.method}: {row.status.name}, {row.seconds:.2f} s", file=sys.stderr, flush=True)


def _print_peers(peers: Sequence[PeerRun]) -> None:
    from rich.console import Console
    from rich.table import Table

    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=LOG_WIDTH)
    table = Table(title="Ours beside peers: rtol 1e-6, one thread, one right-hand side for all")
    for heading in ("case", "solver", "span s", "f", "seconds", "error m", "note"):
        table.add_column(heading, justify="left" if heading in ("case", "solver", "note") else "right", no_wrap=True)
    for peer in peers:
        finished = not peer.note
        table.add_row(
            peer.case,
            peer.solver,
            f"{peer.span_s:g}",
            str(peer.rhs) if finished else "-",
            f"{peer.seconds:.3f}" if math.isfinite(peer.seconds) else "-",
            f"{peer.error:.1e}" if finished else "-",
            peer.note,
        )
    console.print(table)


def _print_table(rows: Sequence[BenchmarkRun]) -> None:
    from rich.console import Console
    from rich.table import Table

    from railsweep.engine.benchmark import NOTES

    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(highlight=False, width=LOG_WIDTH)
    table = Table(title="Ours / published (Bigoni 2011, table 6.1; unnamed hardware)")
    for heading in COLUMNS:
        table.add_column(heading, justify="left" if heading in ("case", "method", "status") else "right", no_wrap=True)
    last = ""
    for row in rows:
        if last and row.case != last:
            table.add_section()
        work, theirs = row.counters, row.published
        pairs = (
            [f"{work[name]} / -" for name in ("rhs", "jacobians", "accepted", "rejected")]
            if theirs is None
            else [
                f"{work['rhs']} / {theirs.rhs}",
                f"{work['jacobians']} / {theirs.jacobians}",
                f"{work['accepted']} / {theirs.accepted}",
                f"{work['rejected']} / {theirs.rejected}",
            ]
        )
        seconds = f"{row.seconds:.2f} / " + ("failed" if theirs is None else f"{theirs.seconds:.2f}")
        hunting = max(row.amplitude_m)
        table.add_row(
            row.case if row.case != last else "",
            row.method,
            row.status.name,
            *pairs,
            seconds,
            f"{1e3 * hunting:.3f}" if math.isfinite(hunting) else "-",
            f"{row.error:.1e}" if math.isfinite(row.error) else "-",
        )
        last = row.case
    console.print(table)
    console.print("hunting: largest lateral amplitude of a wheelset in the second after the end", markup=False)
    console.print("error: largest difference of a displacement from a tight run (T2: after 1 s)", markup=False)
    for name in dict.fromkeys(row.case for row in rows):
        if name in NOTES:
            console.print(f"{name}: {NOTES[name]}", markup=False)
