"""One run over a store: lock, hand out what is pending, retry what was lost, keep the record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from railsweep.engine.errors import InputError
from railsweep.sweeps import provenance
from railsweep.sweeps.block import answers, task_of, warm_up
from railsweep.sweeps.evaluate import Evaluator
from railsweep.sweeps.lock import STALE_S, StoreLock
from railsweep.sweeps.plan import cases_per_block, make_plan
from railsweep.sweeps.progress import Progress, progress_of
from railsweep.sweeps.quantity import LongQuantity
from railsweep.sweeps.store import StudyStore, create_store, open_store
from railsweep.sweeps.study import Study
from railsweep.sweeps.task import BlockLost, BlockReport, Executor, Stop

PROBES = 5
PROBE_SECONDS = 5.0


def evaluator_of(study: Study, folder: Path) -> Evaluator:
    """The evaluator of a study file, its axes checked."""
    evaluator = Evaluator(study, folder / study.contact_name if study.contact else None)
    evaluator.check_axes()
    return evaluator


def measured_cost(evaluator: Evaluator) -> float:
    """Seconds per case: the mean of a few cases spread over the study, after compilation."""
    if isinstance(evaluator.quantity, LongQuantity):
        return evaluator.quantity.case_seconds
    warm_up(evaluator)
    plan = make_plan(evaluator.study, 1)
    probes = sorted({(2 * i + 1) * plan.cases // (2 * PROBES) for i in range(PROBES)})
    answers(evaluator, plan, probes[0])  # loads machine code into this process
    begin, count = time.perf_counter(), 0
    for case in probes:
        count += 1
        if not answers(evaluator, plan, case) or time.perf_counter() - begin > PROBE_SECONDS:
            break
    return (time.perf_counter() - begin) / count


def open_or_create(
    study: Study, folder: Path, path: Path, workers: int, *, accept_code: bool = False
) -> tuple[StudyStore, bool]:
    """The store of a study, made when it is not there; True when it is new."""
    evaluator = evaluator_of(study, folder)
    if path.exists():
        store = open_store(path)
        store.check_same(study, accept_code=accept_code)
        return store, False
    size = study.output.block_cases
    if not size:
        size = cases_per_block(study.cases, measured_cost(evaluator), study.output.block_seconds, workers)
    return create_store(study, path, evaluator, size), True


def run_session(
    store: StudyStore,
    executor: Executor,
    *,
    stop: Stop | None = None,
    on_change: Callable[[Progress], None] | None = None,
    on_loss: Callable[[BlockLost], None] | None = None,
    retries: int = 3,
    stale_s: float = STALE_S,
    take_over: bool = False,
    batches: Callable[[], Iterable[Sequence[int]]] | None = None,
) -> Progress:
    """Compute everything that is pending. A failed case is a result; a lost block is tried again `retries` times.

    With `batches` (a search, whose next blocks depend on the results of the last) these blocks are computed instead,
    batch by batch, and the run is finished when there are no more.

    Returns
    -------
    Progress
        `outcome` is "finished", "stopped" (asked to), "incomplete" (blocks lost for good) or "error" (`problem` says
        why, for example a full disk). In all cases the store holds every finished block and can be resumed.
    """
    stop = stop or Stop()
    lock = StoreLock(
        store.own,
        stale_s=stale_s,
        force=take_over,
        on_loss=lambda: stop.request("the lock was taken by another driver"),
    )
    with lock:
        task = task_of(store)
        progress = progress_of(store)
        record = provenance.read(store.provenance_file)
        session = provenance.new_session(executor.name, executor.workers)
        record["sessions"].append(session)
        attempts: Counter[int] = Counter()
        try:
            _write_record(store, record, progress)
            task.warm_up()
            for batch in batches() if batches is not None else [store.ledger.pending()]:
                pending = list(batch)
                while pending and not stop.requested and not progress.problem:
                    again: list[int] = []
                    progress.passes += 1
                    if on_change is not None:
                        on_change(progress)
                    for outcome in executor.run(task, pending, stop):
                        if isinstance(outcome, BlockReport):
                            progress.add(outcome)
                            if on_change is not None:
                                on_change(progress)
                            continue
                        if outcome.untried:
                            if not progress.given_up:
                                again.append(outcome.block)
                            continue
                        progress.lost += 1
                        if on_loss is not None:
                            on_loss(outcome)
                        attempts[outcome.block] += 1
                        if outcome.fatal:
                            progress.problem = progress.problem or outcome.reason
                            stop.request(outcome.reason)
                        elif attempts[outcome.block] <= retries:
                            again.append(outcome.block)
                        else:
                            progress.given_up += 1
                        if on_change is not None:
                            on_change(progress)
                    pending = again
                if stop.requested or progress.problem:
                    break
            # Another driver, or a worker thought dead, may have finished blocks meanwhile: the ledger decides.
            done = {entry["block"] for entry in store.ledger.finished()}
            left = attempts.keys() - done if batches is not None else store.ledger.pending()
            if progress.problem:
                progress.outcome = "error"
            elif not left and not (batches is not None and stop.requested):
                progress.outcome = "finished"
            else:
                progress.outcome = "stopped" if stop.requested else "incomplete"
        except BaseException as error:
            progress.outcome = "error"
            progress.problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            session |= {
                "ended": provenance.now(),
                "outcome": progress.outcome,
                "counters": {
                    "blocks": progress.blocks_done,
                    "cases": progress.computed,
                    "failed": progress.failed,
                    "lost": progress.lost,
                },
                "seconds": {
                    "wall": time.monotonic() - progress.started,
                    "compute": progress.compute_seconds,
                    "write": progress.write_seconds,
                },
            }
            _write_record(store, record, progress)
    return progress


def _write_record(store: StudyStore, record: dict[str, object], progress: Progress) -> None:
    try:
        provenance.write(store.provenance_file, record)
    except InputError:
        raise
    except OSError as error:
        # The results matter more than the record of the session; say it and go on.
        progress.problem = progress.problem or f"{store.provenance_file}: {error}"
