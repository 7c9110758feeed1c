"""Progress of a run: a bar on a terminal, a plain line now and then in a log. Always on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from railsweep.sweeps.progress import Progress
    from railsweep.sweeps.task import BlockLost, Stop

LINE_EVERY_S = 5.0


class Display:
    """Shows done, failed, left, rate and time left."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._bar: Any = None
        self._job: Any = None
        self._last = -LINE_EVERY_S
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.completed}/{task.total} cases"),
                BarColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )

    def __enter__(self) -> Display:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def change(self, progress: Progress) -> None:
        """A block was finished."""
        note = line(progress) + (" - stopping, once more to drop the running blocks" if self._stop.requested else "")
        if self._bar is not None:
            if self._job is None:
                self._job = self._bar.add_task("", total=progress.cases, note="")
            self._bar.update(self._job, completed=progress.done, note=note)
            return
        now = time.monotonic()
        if now - self._last >= LINE_EVERY_S or not progress.left:
            self._last = now
            print(f"{progress.done}/{progress.cases} cases, {note}", file=sys.stderr, flush=True)

    def loss(self, lost: BlockLost) -> None:
        """A block was lost."""
        self.say(f"block {lost.block} lost: {lost.reason}")

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)


def line(progress: Progress) -> str:
    """The figures in words."""
    text = f"{progress.failed} failed, {progress.left} left, {progress.rate:.3g}/s"
    left = progress.seconds_left
    return text if left is None else f"{text}, {duration(left)} to go"


def duration(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
