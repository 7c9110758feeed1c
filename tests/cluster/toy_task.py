"""Tasks without trains, for the laws of executors. In a module of its own, so that worker processes find it."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from railsweep.sweeps.task import Abandoned, BlockReport


@dataclass(frozen=True, kw_only=True)
class ToyTask:
    """Leaves a file per block; does what is asked to some blocks."""

    folder: str
    seconds: float = 0.0
    raising: tuple[int, ...] = ()
    killing: tuple[int, ...] = ()
    hanging: tuple[int, ...] = ()
    block_limit_s: float | None = None

    def warm_up(self) -> None:
        """Nothing to warm up."""

    def __call__(self, block: int, abandon: Callable[[], bool] | None = None) -> BlockReport:
        """Wait, misbehave, or leave a file."""
        first = not self._mark(f"tried-{block}")
        if block in self.raising:
            raise ValueError(f"block {block} raises")
        if block in self.killing and first:
            os.kill(os.getpid(), signal.SIGKILL)
        end = time.monotonic() + (1e6 if block in self.hanging and first else self.seconds)
        while time.monotonic() < end:
            if abandon is not None and abandon():
                raise Abandoned
            time.sleep(0.01)
        self._mark(f"done-{block}")
        return BlockReport(block=block, cases=1, failed=0, pid=os.getpid())

    def _mark(self, name: str) -> bool:
        path = Path(self.folder) / name
        known = path.exists()
        path.touch()
        return known
