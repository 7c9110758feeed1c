"""The task of a study: compute one block, write it, report."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from railsweep.sweeps.evaluate import Evaluator, warm_lock
from railsweep.sweeps.plan import Plan, make_plan
from railsweep.sweeps.population.choice import SearchChoice
from railsweep.sweeps.quantity import LongQuantity, over_limit
from railsweep.sweeps.store import StudyStore, open_store
from railsweep.sweeps.task import Abandoned, BlockReport, Task
from railsweep.sweeps.watchdog import ALONE, SLACK_S, answer_within, noted, watched

BLOCK_GRACE_S = 60.0

_opened = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTask:
    """Blocks of the study in a store. The path is all that travels to a worker; the store holds the inputs."""

    path: str
    block_limit_s: float | None = None

    def warm_up(self) -> None:
        """Open the store, and compile unless another process with the same cache has done so."""
        warm_up(self.opened()[1])

    def __call__(self, block: int, abandon: Callable[[], bool] | None = None) -> BlockReport:
        """Compute and store a block that is not finished yet."""
        store, evaluator = self.opened()
        entry = store.ledger.read(block)
        if entry is not None:
            return report_of(entry, fresh=False)
        begin = time.perf_counter()
        arrays = store.blank(block)
        names = [v.name for v in evaluator.variables]
        first = [s.start for s in store.plan.region(block)]
        limit = store.study.solver.time_limit_s
        hung = noted(store.hung_folder)
        waiting = list(store.plan.indices(block))
        size = 1 if ALONE in hung else evaluator.batch_size
        results = {p: over_limit(limit) for p in waiting if str(store.plan.number(p)) in hung}
        waiting = [p for p in waiting if p not in results]
        for first_of_batch in range(0, len(waiting), size):
            if abandon is not None and abandon():
                raise Abandoned
            batch = waiting[first_of_batch : first_of_batch + size]
            values = [store.plan.values(p) for p in batch]
            name = str(store.plan.number(batch[0])) if len(batch) == 1 else ALONE
            with watched(store.hung_folder, name, 2 * len(batch) * limit if len(batch) > 1 else limit):
                found = evaluator.batch(values, [store.plan.seed(v) for v in values])
            results.update(zip(batch, found, strict=True))
        for position, result in results.items():
            place = tuple(p - f for p, f in zip(position, first, strict=True))
            arrays["status"][place] = result.status
            arrays["reason"][place] = result.reason
            for name in names:
                if name in result.numbers:
                    arrays[name][place] = result.numbers[name]
        computed = time.perf_counter()
        facts = {
            "seconds": computed - begin,
            "write_seconds": 0.0,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        entry = store.write(block, arrays, facts)
        return report_of({**entry, "write_seconds": time.perf_counter() - computed}, fresh=True)

    def opened(self) -> tuple[StudyStore, Evaluator]:
        known: dict[str, tuple[StudyStore, Evaluator]] = _opened.__dict__.setdefault("studies", {})
        if self.path not in known:
            store = open_store(Path(self.path))
            known.clear()
            known[self.path] = (store, Evaluator(store.study, store.contact_file))
        return known[self.path]


def task_of(store: StudyStore) -> Task:
    """The task that works on a store."""
    if isinstance(store.study.design, SearchChoice):
        from railsweep.sweeps.population.task import CandidateTask

        return CandidateTask(inner=study_task(store))
    return study_task(store)


def study_task(store: StudyStore) -> StudyTask:
    """The task that computes blocks whose values are known."""
    cases = 1
    for n in store.plan.block_shape:
        cases *= n
    return StudyTask(
        path=str(store.path.resolve()),
        block_limit_s=cases * (store.study.solver.time_limit_s + SLACK_S) + BLOCK_GRACE_S,
    )


def report_of(entry: dict[str, object], *, fresh: bool) -> BlockReport:
    """A ledger entry as a report."""
    known = {k: v for k, v in entry.items() if k in BlockReport.__slots__}
    return BlockReport(**known, fresh=fresh)  # type: ignore[arg-type]


def warm_up(evaluator: Evaluator) -> None:
    """Compute the first case once under the lock of the machine-code cache; later processes find the code there."""
    study = evaluator.study
    contact = f"{len(study.contact)} {study.profiles}"
    purpose = f"{study.quantity} {study.options} {study.solver.method} {study.track} {study.model} {contact}"
    with warm_lock(purpose) as first:
        if first:
            plan = make_plan(study, 1)
            if isinstance(evaluator.quantity, LongQuantity):
                evaluator.quantity.warm_up(evaluator.binder(list(plan.values(plan.position(0)))))
                return
            for case in sorted({0, plan.cases // 2, plan.cases - 1}):
                if not answers(evaluator, plan, case):
                    return  # the run itself will deal with it
            if evaluator.batch_size > 1:
                values = [plan.values(plan.position(0))] * 2
                evaluator.batch(values, [plan.seed(v) for v in values])


def answers(evaluator: Evaluator, plan: Plan, case: int) -> bool:
    """Compute a case for the sake of computing it; False when it hangs."""
    values = plan.values(plan.position(case))
    limit = evaluator.study.solver.time_limit_s + SLACK_S
    return answer_within(limit, lambda: evaluator(values, plan.seed(values)))
