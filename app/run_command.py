"""``railsweep run``: compute a study, or go on with it where it was left."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from railsweep.app import option
from railsweep.engine.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from railsweep.sweeps.progress import Progress
    from railsweep.sweeps.store import StudyStore
    from railsweep.sweeps.study import ExecutorChoice, Study
    from railsweep.sweeps.task import Executor, Stop

EXIT_RESUMABLE = 75  # EX_TEMPFAIL: the store is whole but not complete; the same command goes on
EXECUTORS = ("serial", "threads", "processes", "dask", "mpi")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("study", metavar="STUDY.toml", help="study file (see 'railsweep init')")
    parser.add_argument("--store", metavar="FOLDER.zarr|URL", help="where the results go (default: see the study file)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print cases, blocks, time and size; compute a few cases"
    )
    add_run_arguments(parser)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that run and resume share."""
    parser.add_argument("--executor", choices=EXECUTORS, help="where to compute (default: as in the study file)")
    parser.add_argument("--workers", metavar="N", help="how many workers (default: one per core)")
    parser.add_argument("--take-over", action="store_true", help="take the lock even if its holder may be alive")
    parser.add_argument("--stale-s", metavar="S", help="wait this long for a sign of life of a driver elsewhere")
    parser.add_argument("--grace-s", metavar="S", help="after a signal, wait this long for running blocks")
    parser.add_argument("--accept-code-change", action="store_true", help="go on with results of other source code")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")


def one_thread_each() -> None:
    """One BLAS thread per worker; set before numpy is imported. Results must not depend on the number of cores."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def run(args: argparse.Namespace) -> int:
    """Compute what is pending of a study."""
    one_thread_each()
    from railsweep.sweeps.study import is_url, load_study

    def open_study() -> tuple[Study, Path, Path]:
        study = load_study(args.study)
        folder = Path(args.study).resolve().parent
        if args.store and is_url(args.store):
            study = published_at(study, args.store)
        elif args.store:
            return study, folder, Path(args.store)
        return study, folder, folder / study.output.store

    return drive(args, open_study, dry_run=args.dry_run)


def published_at(study: Study, url: str) -> Study:
    """A study whose store is copied to a URL."""
    from railsweep.sweeps.study import check_url, working_name

    check_url("store", url)
    return replace(study, output=replace(study.output, store=working_name(url), remote=url))


class Guide(Protocol):
    """What a verb adds to a session of a study whose blocks it chooses or whose results it watches."""

    @property
    def batches(self) -> Callable[[], Iterable[Sequence[int]]] | None:
        """Blocks to compute, batch by batch, as `run_session` takes them; None: all that are pending."""

    def begin(self, store: StudyStore, stop: Stop, say: Callable[[str], None]) -> None:
        """The store is there; nothing is computed yet."""

    def change(self, progress: Progress) -> None:
        """A block was finished."""

    def report(self, store: StudyStore, progress: Progress) -> int:
        """Print the outcome; returns the exit code."""


def drive(args: argparse.Namespace, open_study: Any, *, dry_run: bool = False, guide: Guide | None = None) -> int:
    """Choose the executor, run a session, report; under mpiexec only the first rank comes past the executor."""
    from railsweep.cluster.count import launched_by_mpi

    if launched_by_mpi() and not dry_run:
        if args.executor not in (None, "mpi"):
            raise InputError("--executor", f"is {args.executor} under mpiexec", "mpi")
        from railsweep.cluster.mpi import MpiExecutor

        # Signals reach every rank; the first one decides.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        ranks = MpiExecutor()
        if not ranks.drives:
            return 0
        try:
            study, folder, path = open_study()
            return session(args, study, folder, path, replace(study.executor, kind="mpi"), ranks, guide)
        finally:
            ranks.close()
    study, folder, path = open_study()
    if guide is None and study.design is not None and study.design.asks:
        raise InputError(study.name, "is a search, whose cases follow from results", "railsweep optimise STUDY.toml")
    choice = choice_of(args, study)
    if dry_run:
        return estimate(args, study, folder, path, choice)
    if choice.kind == "mpi":
        raise InputError("executor", "is mpi, but this is one process", "mpiexec -n N railsweep run ...")
    return session(args, study, folder, path, choice, None, guide)


def choice_of(args: argparse.Namespace, study: Study) -> ExecutorChoice:
    """The executor of the study file with the options of the command line."""
    choice = study.executor
    if args.executor:
        choice = replace(choice, kind=args.executor)
    if args.workers is not None:
        workers = option.number("--workers", args.workers, above=0, at_most=4096)
        if workers != int(workers):
            raise InputError("--workers", f"is {args.workers}", "a whole number")
        choice = replace(choice, workers=int(workers))
    if args.grace_s is not None:
        choice = replace(choice, grace_s=option.number("--grace-s", args.grace_s, above=-1e-9, at_most=3600))
    return choice


def session(
    args: argparse.Namespace,
    study: Study,
    folder: Path,
    path: Path,
    choice: ExecutorChoice,
    ranks: Executor | None,
    guide: Guide | None,
) -> int:
    """Run what is pending and print the outcome."""
    from railsweep.app.progress import Display
    from railsweep.cluster import make_executor
    from railsweep.cluster.count import usable_cores
    from railsweep.sweeps.lock import STALE_S
    from railsweep.sweeps.remote import Publisher, Remote
    from railsweep.sweeps.session import open_or_create, run_session
    from railsweep.sweeps.task import Stop

    grace = choice.grace_s if args.grace_s is None else option.number("--grace-s", args.grace_s, above=-1e-9)
    stop = Stop(grace)

    def on_signal(number: int, frame: object) -> None:
        stop.request(signal.Signals(number).name)

    kept = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        workers = ranks.workers if ranks else choice.workers or usable_cores()
        remote = Remote(study.output.remote) if study.output.remote else None
        if remote is not None and not path.exists() and remote.exists():
            remote.fetch(path)
        store, _ = open_or_create(study, folder, path, workers, accept_code=args.accept_code_change)
        executor = ranks or make_executor(choice)
        display = Display(stop)
        publisher = Publisher(remote, store, display.say) if remote is not None else None

        def on_change(progress: Progress) -> None:
            display.change(progress)
            if guide is not None:
                guide.change(progress)
            if publisher is not None:
                publisher.sometimes()

        if publisher is not None:
            publisher.now()  # refuses a place that holds something else, before any work is done
        if guide is not None:
            guide.begin(store, stop, display.say)
        try:
            with display:
                progress = run_session(
                    store,
                    executor,
                    stop=stop,
                    on_change=on_change,
                    on_loss=display.loss,
                    retries=choice.retries,
                    stale_s=STALE_S if args.stale_s is None else option.number("--stale-s", args.stale_s, above=0),
                    take_over=args.take_over,
                    batches=guide.batches if guide is not None else None,
                )
        finally:
            if ranks is None:
                executor.close()
        copied = publisher is None or publisher.now()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    if guide is not None:
        return guide.report(store, progress)
    report(args, store, study.output.remote, progress)
    if progress.outcome == "finished" and copied:
        return 1 if progress.failed else 0
    return EXIT_RESUMABLE


def report(args: argparse.Namespace, store: StudyStore, remote: str, progress: Progress) -> None:
    """Totals on stdout, or one JSON object."""
    if getattr(args, "quiet", False):
        return
    if args.json:
        print(json.dumps({"store": str(store.path), "remote": remote or None, **totals(progress)}))
        return
    kinds = ", ".join(f"{n} {name.lower()}" for name, n in sorted(progress.statuses.items()))
    print(f"{progress.outcome}: {progress.done} of {progress.cases} cases ({kinds or 'none yet'})")
    print(f"store: {store.path}" + (f", copied to {remote}" if remote else ""))
    if progress.problem:
        print(f"error: {progress.problem}", file=sys.stderr)
    if progress.outcome != "finished":
        print(f"to go on: railsweep resume {store.path}")


def totals(progress: Progress) -> dict[str, Any]:
    """A progress as plain data."""
    return {
        "outcome": progress.outcome,
        "problem": progress.problem or None,
        "cases": progress.cases,
        "done": progress.done,
        "failed": progress.failed,
        "left": progress.left,
        "computed": progress.computed,
        "blocks": progress.blocks,
        "blocks_done": progress.blocks_done,
        "blocks_lost": progress.lost,
        "statuses": {name.lower(): n for name, n in sorted(progress.statuses.items())},
        "compute_seconds": progress.compute_seconds,
        "write_seconds": progress.write_seconds,
    }


def estimate(args: argparse.Namespace, study: Study, folder: Path, path: Path, choice: ExecutorChoice) -> int:
    """Cases, blocks, time and size, from a few measured cases; writes nothing."""
    from railsweep.cluster.count import usable_cores
    from railsweep.sweeps.plan import cases_per_block, make_plan
    from railsweep.sweeps.session import evaluator_of, measured_cost
    from railsweep.sweeps.store import REASON, STATUS

    evaluator = evaluator_of(study, folder)
    cost = measured_cost(evaluator)
    workers = 1 if choice.kind == "serial" else choice.workers or usable_cores()
    size = study.output.block_cases or cases_per_block(study.cases, cost, study.output.block_seconds, workers)
    plan = make_plan(study, size)
    bytes_per_case = sum(
        math.prod(v.extra) * {"uint8": 1, "string": 4}.get(v.dtype, 8) for v in (STATUS, REASON, *evaluator.variables)
    )
    facts = {
        "study": study.name,
        "cases": study.cases,
        "blocks": plan.blocks,
        "block_shape": list(plan.block_shape),
        "dimensions": dict(zip(plan.names, plan.shape, strict=True)),
        "executor": choice.kind,
        "workers": workers,
        "seconds_per_case": cost,
        "seconds": cost * study.cases / workers,
        "store_bytes": bytes_per_case * study.cases,
        "store_files": plan.blocks * (len(evaluator.variables) + 3),  # with status, reason and the ledger
        "store": str(path),
        "store_exists": path.exists(),
        "remote": study.output.remote or None,
    }
    if args.json:
        print(json.dumps(facts))
    else:
        shape = " x ".join(f"{n} {name}" for name, n in facts["dimensions"].items())  # type: ignore[attr-defined]
        print(f"{study.name}: {study.cases} cases ({shape}) in {plan.blocks} blocks of {plan.block_shape}")
        print(
            f"about {1e3 * cost:.3g} ms per case, {facts['seconds']:.3g} s on {workers} {choice.kind} workers, "
            f"at most {bytes_per_case * study.cases / 1e6:.3g} MB in {facts['store_files']} files in {path}"
        )
    return 0
