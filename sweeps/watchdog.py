"""A case that never answers: note it down and end the process, so that the next attempt passes over it.

Quantities keep their own time limit, inside the kernels. This is for the case that does not come back at all: compiled
code cannot be interrupted, so its process must go. A thread looks at the clock (kernels run without the GIL); when a
case is overdue it leaves a note in the store and ends the process. Under processes and dask the worker is replaced and
the block tried again; a serial, threaded or MPI run ends with the code of a resumable run, and the same command goes
on. Whoever computes the block next finds the note and stores the case as over its time limit.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from railsweep.sweeps.ledger import write_durably

SLACK_S = 20.0  # beyond the time limit: compiling and building contact tables is not the fault of a case
LOOK_S = 0.5
EXIT_RESUMABLE = 75

ALONE = "alone"  # note of a batch that did not answer: compute case by case, to find out which it is

_due: dict[int, tuple[float, Path, str]] = {}
_thread: list[threading.Thread] = []
_start = threading.Lock()


@contextmanager
def watched(folder: Path, case: str, limit_s: float) -> Iterator[None]:
    """While the body runs: past `limit_s` and some slack, leave a note of the case in `folder` and end the process."""
    if not _thread:
        with _start:
            if not _thread:
                _thread.append(threading.Thread(target=_look, name="railsweep-watchdog", daemon=True))
                _thread[0].start()
    me = threading.get_ident()
    _due[me] = (time.monotonic() + limit_s + SLACK_S, folder, case)
    try:
        yield
    finally:
        del _due[me]


def _look() -> None:
    while True:
        time.sleep(LOOK_S)
        now = time.monotonic()
        for due, folder, case in list(_due.values()):
            if now > due:
                _end(folder, case)


def _end(folder: Path, case: str) -> None:
    try:
        folder.mkdir(exist_ok=True)
        write_durably(folder / case, "")
    except OSError as error:
        print(f"{folder}: {error}", file=sys.stderr)
    what, then = f"case {case}", "passes over this case"
    if case == ALONE:
        what, then = "a batch of cases", "computes them one by one"
    print(
        f"{what} gives no answer; process {os.getpid()} ends. The next attempt, by itself or by the same command "
        f"again, {then}.",
        file=sys.stderr,
        flush=True,
    )
    os._exit(EXIT_RESUMABLE)


def answer_within(seconds: float, question: Callable[[], object]) -> bool:
    """Does a call end within this time? It is made in a thread of its own, which is left behind if it does not."""
    thread = threading.Thread(target=question, name="railsweep-probe", daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def noted(folder: Path) -> set[str]:
    """The cases that have a note, by number, and ALONE if a batch has."""
    try:
        return {name for name in os.listdir(folder) if name.isdecimal() or name == ALONE}
    except FileNotFoundError:
        return set()
