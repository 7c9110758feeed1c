"""Blocks of a search: wait until the candidates are written down, then compute them like any block."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from railsweep.sweeps.block import StudyTask
from railsweep.sweeps.population.choice import CandidateAxis, CandidateRecord
from railsweep.sweeps.store import StudyStore
from railsweep.sweeps.task import Abandoned, BlockReport, GivenBack

POLL_S = 0.01
HALT = "halt"  # a file of this name in the folder of the candidates ends all waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTask:
    """A study task whose values come from the record of candidates in the store."""

    inner: StudyTask

    @property
    def block_limit_s(self) -> float | None:
        """Waiting for candidates takes as long as computing those before them."""
        limit = self.inner.block_limit_s
        return None if limit is None else 2.0 * limit

    def warm_up(self) -> None:
        """As of the study."""
        self.inner.warm_up()

    def __call__(self, block: int, abandon: Callable[[], bool] | None = None) -> BlockReport:
        """Compute a block once its candidates are there."""
        store, _ = self.inner.opened()
        record = record_of(store)
        first = store.plan.region(block)[-1].start
        while not record.load(first):
            if abandon is not None and abandon():
                raise Abandoned
            if record.folder is not None and (record.folder / HALT).exists():
                raise GivenBack(f"block {block} has no candidates: an earlier one was lost")
            time.sleep(POLL_S)
        return self.inner(block, abandon)


def record_of(store: StudyStore) -> CandidateRecord:
    """The record of candidates of a store."""
    axis = next(a for a in store.study.axes if isinstance(a, CandidateAxis))
    return axis.sampler
