"""The rate of a session, and the time left that follows from it."""

import time

import pytest

from railsweep.sweeps.progress import Progress
from railsweep.sweeps.task import BlockReport


def report(block: int, *, seconds: float, fresh: bool = True) -> BlockReport:
    return BlockReport(block=block, cases=10, failed=0, statuses={"OK": 10}, seconds=seconds, fresh=fresh)


def test_start_up_does_not_count_in_the_rate() -> None:
    progress = Progress(cases=100, blocks=10, started=time.monotonic() - 1000.0)
    assert progress.rate == 0.0
    assert progress.seconds_left is None
    progress.add(report(0, seconds=0.0, fresh=False))
    assert progress.seconds_left is None
    progress.add(report(1, seconds=20.0))
    assert progress.rate == pytest.approx(0.5, rel=0.2)
    assert progress.seconds_left == pytest.approx(80 / 0.5, rel=0.2)


def test_a_block_cannot_have_begun_before_its_session() -> None:
    progress = Progress(cases=100, blocks=10, started=time.monotonic() - 10.0)
    progress.add(report(0, seconds=500.0))
    assert progress.rate == pytest.approx(1.0, rel=0.2)
