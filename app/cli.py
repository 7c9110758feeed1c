"""The ``railsweep`` command: finds the verb, hands over to its module, turns outcomes into exit codes.

Exit codes: 0 success; 1 the computation ran and some cases failed; 2 the input was refused (one line on
stderr); 130 interrupted from the keyboard; 141 the reader of the output went away.

A verb's module is imported only when that verb is asked for, and nothing here imports numpy or numba, so that
``railsweep --help`` answers at once.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, NoReturn, Protocol, cast

from railsweep.engine.errors import InputError, nearest, shown

EXIT_OK = 0
EXIT_CASES_FAILED = 1
EXIT_INPUT_REFUSED = 2
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141

# verb -> (module in railsweep.app, one line for the overview)
VERBS = {
    "vehicles": ("vehicles_command", "list the vehicles of the library"),
    "contact": ("contact_command", "contact tables from wheel and rail profiles: build, show, conicity"),
    "stability": ("stability_command", "linear stability over speed: modes, damping, critical speeds"),
    "critical-speed": ("critical_speed_command", "linear and non-linear critical speed, as a study with a picture"),
    "bifurcation": ("bifurcation_command", "bifurcation diagram over speed with stable and unstable cycles"),
    "map": ("map_command", "critical speeds over curve radius and cant"),
    "init": ("init_command", "write a commented study file to start from"),
    "validate": ("validate_command", "check a study file or a store without computing"),
    "run": ("run_command", "compute a study, or go on with it"),
    "resume": ("resume_command", "go on with a store"),
    "status": ("status_command", "how far a store is, also while it is computed"),
    "inspect": ("inspect_command", "what a store holds, failed cases, one case in full"),
    "repair": ("repair_command", "find damage in a store and queue the damaged blocks again"),
    "plot": ("plot_command", "a picture of a store: a line over one axis, a map over two"),
    "export": ("export_command", "copy a store to HDF5, netCDF or CSV"),
    "submit": ("submit_command", "write a batch script for a study"),
    "sensitivity": ("sensitivity_command", "which parameters matter: Morris, Sobol indices, polynomial chaos"),
    "optimise": ("optimise_command", "search for the best parameters: NSGA-II, genetic, annealing, pattern, hybrid"),
    "simulate": ("simulate_command", "motion in time: one run, with statistics of chosen channels"),
    "published": ("published_command", "published critical speeds of the Cooperrider wagon, computed again and judged"),
    "bench": ("bench_command", "the published solver benchmark, ours beside the original"),
}

_NEGATIVE_VALUE = re.compile(r"-\.?\d")


class Command(Protocol):
    """What a verb's module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options of the verb."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work and return the exit code."""


class _Parser(argparse.ArgumentParser):
    """Refuses abbreviated options and reports every mistake as an InputError."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise InputError(self.prog, f"{message}; see '{self.prog} --help'")


def load_command(verb: str) -> Command:
    """Import the module behind a verb of the table."""
    return cast(Command, import_module(f"railsweep.app.{VERBS[verb][0]}"))


def build_parser(verb: str | None) -> argparse.ArgumentParser:
    """The parser with every verb listed and the options of `verb` only."""
    width = max(map(len, VERBS))
    overview = "".join(f"  {name:<{width}}  {summary}\n" for name, (_, summary) in VERBS.items())
    parser = _Parser(
        prog="railsweep",
        description="Rail-vehicle dynamics over whole spaces of parameters.",
        epilog=f"commands:\n{overview}\nexit codes: 0 success, 1 some cases failed, 2 input refused, 130 interrupted",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"railsweep {version('railsweep')}")
    verbs = parser.add_subparsers(metavar="COMMAND", required=True, help="has its own --help")
    for name, (_, summary) in VERBS.items():
        verb_parser = verbs.add_parser(name, description=summary.capitalize() + ".")
        if name == verb:
            command = load_command(name)
            command.add_arguments(verb_parser)
            verb_parser.set_defaults(run=command.run, verb_parser=verb_parser)
    return parser


def join_negative_values(argv: Sequence[str]) -> list[str]:
    """Write ``--radius-m -1e3`` as ``--radius-m=-1e3``: argparse would take ``-1e3`` for an option."""
    joined: list[str] = []
    for word in argv:
        if joined and _NEGATIVE_VALUE.match(word) and re.fullmatch(r"--[a-z][a-z-]*", joined[-1]):
            joined[-1] += "=" + word
        else:
            joined.append(word)
    return joined


def dispatch(argv: Sequence[str]) -> int:
    """Parse `argv` and run its verb; raises InputError for input that is refused."""
    if not argv:
        build_parser(None).print_help(sys.stderr)
        return EXIT_INPUT_REFUSED
    verb = next((word for word in argv if not word.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        raise InputError("railsweep", f"unknown command {shown(verb)}, {nearest(verb, list(VERBS))}")
    args, unknown = build_parser(verb).parse_known_args(join_negative_values(argv))
    if unknown:
        word = unknown[0].partition("=")[0]
        known = [*re.findall(r"--[a-z-]+", args.verb_parser.format_usage()), "--help"]
        raise InputError(args.verb_parser.prog, f"unknown argument {shown(word)}, {nearest(word, known)}")
    code: int = args.run(args)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; never lets a refused input end in a traceback."""
    try:
        try:
            return dispatch(sys.argv[1:] if argv is None else argv)
        except SystemExit as finished:  # argparse leaves this way after --help and --version
            return finished.code if isinstance(finished.code, int) else EXIT_OK
        except InputError as refused:
            print("error:", " ".join(str(refused).splitlines()), file=sys.stderr)
            return EXIT_INPUT_REFUSED
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more on exit; give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_READER_GONE
