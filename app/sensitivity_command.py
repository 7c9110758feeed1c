"""``railsweep sensitivity``: which parameters matter? Computes the samples of a study and says what they tell."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railsweep.app import option
from railsweep.app.run_command import EXIT_RESUMABLE, add_run_arguments, drive, one_thread_each, totals
from railsweep.engine.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from railsweep.sweeps.progress import Progress
    from railsweep.sweeps.sensitivity.analysis import Outcome, Survey
    from railsweep.sweeps.sensitivity.choice import SensitivityChoice
    from railsweep.sweeps.sensitivity.expansion import ExpansionIndices
    from railsweep.sweeps.store import StudyStore
    from railsweep.sweeps.study import Study
    from railsweep.sweeps.task import Stop


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("study", metavar="STUDY.toml", help="study file with a [sensitivity] section")
    parser.add_argument("--store", metavar="FOLDER.zarr", help="where the samples go (default: as in the study file)")
    parser.add_argument("--plot", metavar="FILE", help="write a picture (.png, .pdf, .svg)")
    parser.add_argument("--scatter", metavar="FILE", help="write a picture of the quantities over each parameter")
    parser.add_argument("--watch", action="store_true", help="print the indices now and then while the study runs")
    parser.add_argument("--no-run", action="store_true", help="only look at what the store holds, also while it grows")
    parser.add_argument(
        "--dry-run", action="store_true", help="print cases, blocks, time and size; compute a few cases"
    )
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Compute what is pending of the samples, analyse them and report."""
    one_thread_each()
    picture = option.plot_file("--plot", args.plot) if args.plot else None
    scatter = option.plot_file("--scatter", args.scatter) if args.scatter else None

    def open_study() -> tuple[Study, Path, Path]:
        from railsweep.sweeps.study import load_study

        study = load_study(args.study)
        guide.take(study)
        folder = Path(args.study).resolve().parent
        return study, folder, Path(args.store) if args.store else folder / study.output.store

    guide = SensitivityGuide(args, picture, scatter)
    if args.no_run:
        from railsweep.sweeps.progress import progress_of
        from railsweep.sweeps.store import open_store

        store = open_store(open_study()[2])
        return guide.report(store, progress_of(store))
    return drive(args, open_study, dry_run=args.dry_run, guide=guide)


class SensitivityGuide:
    """Watches the samples of a study and ends it when the indices are known well enough."""

    batches = None

    def __init__(self, args: argparse.Namespace, picture: Path | None, scatter: Path | None) -> None:
        self.args, self.picture, self.scatter = args, picture, scatter
        self.choice: SensitivityChoice | None = None
        self._survey: Survey | None = None
        self._next_rows = 0
        self._tight: int | None = None

    def take(self, study: Study) -> None:
        """Keep what the study asks for."""
        from railsweep.sweeps.sensitivity.choice import SensitivityChoice

        if not isinstance(study.design, SensitivityChoice):
            raise InputError(self.args.study, "has no [sensitivity] section", "[sensitivity] with [[parameter]] tables")
        self.choice = study.design

    def begin(self, store: StudyStore, stop: Stop, say: Callable[[str], None]) -> None:
        """The store is there."""
        from railsweep.sweeps.evaluate import Evaluator
        from railsweep.sweeps.sensitivity.analysis import Survey, check_independent, checks
        from railsweep.sweeps.sensitivity.choice import SampledAxis

        evaluator = Evaluator(store.study, store.contact_file)
        pairs = zip(evaluator.bound_parameters(), store.study.axes, strict=True)
        sampled = [(p, a.parameter) for p, a in pairs if isinstance(a, SampledAxis)]
        check_independent([p for p, _ in sampled], [name for _, name in sampled])
        self._survey, self._stop, self._say = Survey(store, self.choice), stop, say
        self._checks = checks(self._survey.design.rows, self._survey.choice.replicates)
        self._next_rows = self._checks[0]

    def change(self, progress: Progress) -> None:
        """A block was finished: enough rows for another look?"""
        survey = self._survey
        if survey is None or survey.choice.method != "sobol" or self._tight:
            return
        wanted = survey.choice.analysis.tolerance or self.args.watch
        if not wanted or progress.done < self._next_rows * survey.design.row_cases:
            return
        rows = survey.complete_rows()
        reached = [n for n in self._checks if n <= rows]
        if not reached or reached[-1] < self._next_rows:
            return
        self._next_rows = min((n for n in self._checks if n > reached[-1]), default=2**62)
        if survey.choice.analysis.tolerance:
            self._tight = survey.tight_rows(reached[-1])
        if self.args.watch:
            for outcome in survey.outcomes(reached[-1], trace=False):
                self._say(line(outcome))
        if self._tight:
            self._say(f"all limits within {survey.choice.analysis.tolerance:g} after {self._tight} rows")
            self._stop.request("the indices are known well enough")

    def report(self, store: StudyStore, progress: Progress) -> int:
        """Print what the samples tell."""
        from railsweep.sweeps.sensitivity.analysis import Survey

        survey = Survey(store, self.choice)
        rows = survey.complete_rows()
        tight = survey.tight_rows(rows) if rows > 1 else None
        finished = rows == survey.design.rows or tight is not None
        if not finished and not self.args.no_run:
            text = f"{progress.outcome}: {rows} of {survey.design.rows} rows complete; the same command goes on"
            print(json.dumps({"store": str(store.path), **totals(progress)}) if self.args.json else text)
            return EXIT_RESUMABLE
        outcomes = survey.outcomes(rows)
        if self.picture is not None:
            from railsweep.app.sensitivity_plot import plot_sensitivity

            plot_sensitivity(survey, outcomes, self.picture)
        if self.scatter is not None:
            from railsweep.app.sensitivity_plot import plot_scatter

            plot_scatter(survey, outcomes, self.scatter)
        facts: dict[str, Any] = {
            "study": store.study.name,
            "store": str(store.path),
            "method": survey.choice.method,
            "complete": finished,
            "rows": tight or rows,
            "cases": (tight or rows) * survey.design.row_cases,
            "session": totals(progress),
            "outcomes": [o.facts() for o in outcomes],
        }
        if self.args.json:
            print(json.dumps(facts))
        else:
            print(f"{store.study.name}: {facts['rows']} rows, {facts['cases']} cases, {survey.choice.method}")
            for outcome in outcomes:
                print("\n".join(table(outcome)))
            print(f"store: {store.path}")
        return 1 if any(o.treated.failed for o in outcomes) else 0


def heading(outcome: Outcome) -> str:
    """Quantity and place in words."""
    place = ", ".join(f"{k} = {v:g}" for k, v in outcome.place.items())
    return (
        outcome.quantity
        + (f" [{outcome.unit}]" if outcome.unit not in ("", "1") else "")
        + (f" at {place}" if place else "")
    )


def line(outcome: Outcome) -> str:
    """The largest total indices in one line."""
    import numpy as np

    from railsweep.sweeps.sensitivity.estimator import SobolIndices

    assert isinstance(outcome.result, SobolIndices)
    total = outcome.result.total
    order = np.argsort(-total.value)[:4]
    parts = ", ".join(f"{outcome.groups[i]} {total.value[i]:.3f}+-{total.error[i]:.3f}" for i in order)
    return f"{heading(outcome)}, {outcome.result.rows} rows: {parts}"


def about_expansion(r: ExpansionIndices) -> str:
    """Size and error of an expansion in one line."""
    e = r.expansion
    return (
        f"polynomial chaos: mean {e.mean:.6g}, std {e.variance**0.5:.4g}; {len(e.terms)} terms, "
        f"cross-validation error {e.cv_error:.2g} of the variance"
    )


def table(outcome: Outcome) -> list[str]:
    """Figures of one outcome as text, largest first."""
    import numpy as np

    from railsweep.sweeps.sensitivity.estimator import SobolIndices
    from railsweep.sweeps.sensitivity.morris import ElementaryEffects

    r, width = outcome.result, max(map(len, outcome.groups))
    lines = ["", heading(outcome)]
    if isinstance(r, ElementaryEffects):
        lines.append(f"  {'':{width}}  {'mu*':>10} {'+-':>9} {'mu':>10} {'sigma':>10}")
        for i in np.argsort(-r.mu_star):
            row = f"{r.mu_star[i]:>10.4g} {r.mu_star_error[i]:>9.2g} {r.mu[i]:>10.4g} {r.sigma[i]:>10.4g}"
            lines.append(f"  {outcome.groups[i]:{width}}  {row}")
    else:
        if isinstance(r, SobolIndices):
            lines.append(f"  mean {r.mean:.6g}, std {np.sqrt(r.variance):.4g}; limits: {r.interval}")
        else:
            lines.append(f"  {about_expansion(r)}")
        both = [r.first, r.total]
        lines.append(f"  {'':{width}}  {'first':>8} {'limits':>18}  {'total':>8} {'limits':>18}")
        if outcome.expansion is not None:
            both += [outcome.expansion.first, outcome.expansion.total]
            lines[-1] += f"  {'first':>8} {'limits':>18}  {'total':>8} {'limits':>18}"
            lines.insert(-1, f"  on the right: {about_expansion(outcome.expansion)}")
        for i in np.argsort(-r.total.value):
            cells = "  ".join(f"{e.value[i]:>8.4f} {f'[{e.low[i]:.4f}, {e.high[i]:.4f}]':>18}" for e in both)
            lines.append(f"  {outcome.groups[i]:{width}}  {cells}")
        if r.second is not None:
            for k in np.argsort(-np.abs(r.second.value))[:5]:
                i, j = r.pairs[k]
                lines.append(
                    f"  {outcome.groups[i]} x {outcome.groups[j]}: {r.second.value[k]:.4f} "
                    f"[{r.second.low[k]:.4f}, {r.second.high[k]:.4f}]"
                )
    t = outcome.treated
    if t.failed:
        done = f"{t.dropped} rows dropped" if t.filled is None else f"filled with {t.filled:.6g}"
        lines.append(f"  {t.failed} cases failed ({100.0 * t.share:.2g} %): {done}")
    lines += [f"  warning: {w}" for w in outcome.warnings]
    return lines
