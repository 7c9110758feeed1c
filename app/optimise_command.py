"""``railsweep optimise``: search for the best parameters of a study."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from railsweep.app import option
from railsweep.app.run_command import EXIT_RESUMABLE, add_run_arguments, drive, one_thread_each, totals
from railsweep.engine.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from railsweep.sweeps.population.session import Search
    from railsweep.sweeps.progress import Progress
    from railsweep.sweeps.store import StudyStore
    from railsweep.sweeps.study import Study
    from railsweep.sweeps.task import Stop

SHOWN = 12  # solutions of a front in the text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("study", metavar="STUDY.toml", help="study file with an [optimise] section")
    parser.add_argument("--store", metavar="FOLDER.zarr", help="where the history goes (default: as in the study file)")
    parser.add_argument("--plot", metavar="FILE", help="write a picture (.png, .pdf, .svg)")
    parser.add_argument("--no-run", action="store_true", help="only look at what the store holds")
    parser.add_argument(
        "--dry-run", action="store_true", help="print evaluations (at most), blocks, time and size; compute a few"
    )
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Go on with the search until it ends, and report the best."""
    one_thread_each()
    picture = option.plot_file("--plot", args.plot) if args.plot else None
    guide = SearchGuide(args, picture)

    def open_study() -> tuple[Study, Path, Path]:
        from railsweep.sweeps.study import load_study

        study = load_study(args.study)
        folder = Path(args.study).resolve().parent
        path = Path(args.store) if args.store else folder / study.output.store
        return with_blocks(args, study, folder, path), folder, path

    if args.no_run:
        from railsweep.sweeps.progress import progress_of
        from railsweep.sweeps.store import open_store

        store = open_store(open_study()[2])
        return guide.report(store, progress_of(store))
    return drive(args, open_study, dry_run=args.dry_run, guide=guide)


def with_blocks(args: argparse.Namespace, study: Study, folder: Path, path: Path) -> Study:
    """The study with a block size that fits its search."""
    from railsweep.cluster.count import usable_cores
    from railsweep.sweeps.population.choice import SearchChoice
    from railsweep.sweeps.population.session import block_size
    from railsweep.sweeps.session import evaluator_of, measured_cost

    if not isinstance(study.design, SearchChoice):
        raise InputError(
            args.study, "has no [optimise] section", "[optimise] with [[objective]] and [[parameter]] tables"
        )
    if study.output.block_cases or path.exists():
        return study
    workers = int(option.number("--workers", args.workers, above=0)) if args.workers else study.executor.workers
    cost = measured_cost(evaluator_of(study, folder))
    size = block_size(study.design, cost, study.output.block_seconds, workers or usable_cores())
    return replace(study, output=replace(study.output, block_cases=size))


class SearchGuide:
    """Chooses the blocks of a session: what the search asks for."""

    def __init__(self, args: argparse.Namespace, picture: Path | None) -> None:
        self.args, self.picture = args, picture
        self._search: Search | None = None
        self._lost = self._passes = 0

    def begin(self, store: StudyStore, stop: Stop, say: Callable[[str], None]) -> None:
        """The store is there: start the search or take it up."""
        from railsweep.sweeps.population.session import Search

        self._search = Search(store)
        if self._search.told:
            say(f"going on after {self._search.told} evaluations")

    def batches(self) -> Iterator[list[int]]:
        """As the search says."""
        assert self._search is not None
        yield from self._search.batches()

    def change(self, progress: Progress) -> None:
        """Blocks are handed out, or one was finished or lost."""
        assert self._search is not None
        if not self._search.optimiser.overlap:
            return
        if progress.lost > self._lost:
            self._search.lost()
        elif progress.passes > self._passes and not progress.given_up:
            self._search.found()
        self._lost, self._passes = progress.lost, progress.passes
        self._search.advance()

    def report(self, store: StudyStore, progress: Progress) -> int:
        """Print the best that was found."""
        from railsweep.sweeps.population.session import Search

        search = self._search or Search(store)
        ended = not len(search.optimiser.ask(search.state))
        facts = {
            "study": store.study.name,
            "store": str(store.path),
            "complete": ended,
            "session": totals(progress),
            **search.facts(),
        }
        if self.picture is not None and search.told:
            from railsweep.app.optimise_plot import plot_search

            plot_search(search, self.picture)
        if self.args.json:
            print(json.dumps(facts))
        else:
            print("\n".join(text_of(search, facts)))
        if not ended:
            return EXIT_RESUMABLE
        return 0 if any(s["feasible"] for s in facts["solutions"]) else 1


def text_of(search: Search, facts: dict[str, object]) -> list[str]:
    """The outcome in lines."""
    state = "ended" if facts["complete"] else "not ended; the same command goes on"
    lines = [
        f"{facts['study']}: {search.choice.method}, {search.told} evaluations ({facts['failed']} failed, "
        f"{facts['infeasible']} infeasible), {state}"
    ]
    if facts["hypervolume"] is not None:
        lines.append(f"hypervolume of all evaluations: {facts['hypervolume']:.6g}")
    best = search.best()
    values = search.natural(best.f)
    names = [p.name for p in search.choice.parameters]
    step = max(1, -(-len(best) // SHOWN))
    for i in range(0, len(best), step):
        goals = ", ".join(f"{o.quantity} {values[i, k]:.6g}" for k, o in enumerate(search.choice.objectives))
        where = ", ".join(f"{n} {x:.6g}" for n, x in zip(names, best.x[i], strict=True))
        lines.append(f"  {goals}   at {where}" + ("" if best.violation[i] == 0.0 else "   (infeasible)"))
    lines.append(f"store: {search.store.path}")
    return lines
