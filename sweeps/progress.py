"""How far a study is: counts from its ledger, and the rate of the session that works on it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from railsweep.sweeps.store import StudyStore
from railsweep.sweeps.task import BlockReport


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a store is. Counts of cases unless named otherwise.

    `lost` counts blocks each time they are lost, `given_up` those that are not tried again; `passes`: how often blocks
    were handed out, once per batch and again after losses.
    """

    cases: int
    blocks: int
    done: int = 0
    failed: int = 0
    blocks_done: int = 0
    lost: int = 0
    given_up: int = 0
    passes: int = 0
    computed: int = 0
    compute_seconds: float = 0.0
    write_seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)
    began: float = 0.0  # computing, behind the start-up
    outcome: str = "running"
    problem: str = ""

    def add(self, report: BlockReport) -> None:
        """Count a finished block."""
        self.blocks_done += 1
        self.done += report.cases
        self.failed += report.failed
        self.statuses.update(report.statuses)
        if report.fresh:
            if not self.computed:
                self.began = max(self.started, time.monotonic() - report.seconds)
            self.computed += report.cases
            self.compute_seconds += report.seconds
            self.write_seconds += report.write_seconds

    @property
    def left(self) -> int:
        """Cases not computed yet."""
        return self.cases - self.done

    @property
    def rate(self) -> float:
        """Cases per second of this session, from the start of the block that was finished first.

        What comes before it, compiling and starting workers, happens once and says nothing about what is left.
        """
        return 0.0 if not self.computed else self.computed / max(1e-9, time.monotonic() - self.began)

    @property
    def seconds_left(self) -> float | None:
        """Estimate; None before the first block."""
        return self.left / self.rate if self.computed else None


def present_rate(store: StudyStore, since: float) -> float | None:
    """Cases per second of the session that began at `since` [s, Unix]; None before its second block.

    From the times of the ledger's files, so that it can be known in another shell.
    """
    ended = []
    for entry in store.ledger.finished():
        written = store.ledger.path(int(entry["block"])).stat().st_mtime
        if written >= since:
            ended.append((written, int(entry["cases"])))
    if len(ended) < 2:
        return None
    ended.sort()
    # The first block marks the beginning: start-up is behind it.
    return sum(cases for _, cases in ended[1:]) / max(1e-9, ended[-1][0] - ended[0][0])


def progress_of(store: StudyStore) -> Progress:
    """How far a store is, from its ledger alone; works while another process writes to it."""
    progress = Progress(cases=store.plan.cases, blocks=store.plan.blocks)
    for entry in store.ledger.finished():
        progress.blocks_done += 1
        progress.done += int(entry["cases"])
        progress.failed += int(entry["failed"])
        progress.statuses.update(entry["statuses"])
    return progress
