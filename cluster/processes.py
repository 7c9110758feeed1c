"""Worker processes on this machine, one pipe each, so that a dead worker costs its own block and no other.

Workers are spawned, not forked: the driver has threads. They ignore keyboard and walltime signals, which reach the
whole process group; the driver decides. They end themselves when the driver is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from railsweep.sweeps.task import BlockLost, Outcome, Stop, Task, lost

POLL_S = 0.2
ORPHAN_POLL_S = 0.5


def work(pipe: Connection, parent: int, task: Task) -> None:
    """Main loop of a worker process: a block number in, an outcome out; None ends it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        task.warm_up()
        pipe.send("ready")
        while True:
            block = pipe.recv()
            if block is None:
                return
            try:
                outcome: Outcome = task(block)
            except Exception as error:
                outcome = lost(block, error)
            pipe.send(outcome)


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_POLL_S)
    os._exit(1)


@dataclass(slots=True, kw_only=True)
class Worker:
    """A worker process as the driver sees it."""

    process: BaseProcess
    pipe: Connection
    block: int | None = None
    since: float = 0.0
    ready: bool = False
    answers: int = 0

    def end(self) -> None:
        """Kill and reap."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


class ProcessExecutor:
    """A fixed number of worker processes; dead ones are replaced, and those that have computed `recycle_blocks`.

    Recycling (0: never) bounds the memory of a worker whose libraries leak.
    """

    name = "processes"

    def __init__(self, workers: int, recycle_blocks: int = 0) -> None:
        self.workers, self.recycle_blocks = workers, recycle_blocks
        self._context = multiprocessing.get_context("spawn")
        self._team: list[Worker] = []
        self._leaving: list[Worker] = []
        self._task: Task | None = None
        self._failed_starts = 0

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers."""
        return [w.process.pid for w in self._team if w.process.pid is not None]

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        """Compute blocks, one per worker at a time."""
        if task != self._task:
            self.close()
            self._task = task
        left = list(reversed(blocks))
        while left or any(w.block is not None for w in self._team):
            if stop.requested:
                left.clear()
                if stop.expired() or not any(w.block is not None for w in self._team):
                    self.close()
                    return
            busy = sum(w.block is not None for w in self._team)
            while len(self._team) < min(self.workers, busy + len(left)):
                self._team.append(self._hire(task))
            for worker in self._team:
                if worker.ready and worker.block is None and left:
                    self._give(worker, left.pop())
            ready = set(wait([w.pipe for w in self._team] + [w.process.sentinel for w in self._team], timeout=POLL_S))
            for worker in list(self._team):
                if worker.pipe in ready or worker.process.sentinel in ready:
                    yield from self._hear(worker)
                elif (
                    worker.block is not None
                    and task.block_limit_s is not None
                    and time.monotonic() - worker.since > task.block_limit_s
                ):
                    yield from self._drop(worker, f"no answer within {task.block_limit_s:g} s")
            if self._failed_starts > 2 * self.workers:
                for block in reversed(left):
                    yield BlockLost(block=block, reason="worker processes die as they start", fatal=True)
                return

    def _hire(self, task: Task) -> Worker:
        ours, theirs = self._context.Pipe()
        # One BLAS thread each from the start: a pool made at import is never quite undone later.
        environment = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        kept = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            process = self._context.Process(
                target=work, args=(theirs, os.getpid(), task), name="railsweep-worker", daemon=True
            )
            process.start()
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()
        return Worker(process=process, pipe=ours)

    def _give(self, worker: Worker, block: int) -> None:
        worker.block, worker.since = block, time.monotonic()
        with contextlib.suppress(OSError):  # a worker that died meanwhile is seen by its sentinel
            worker.pipe.send(block)

    def _hear(self, worker: Worker) -> Iterator[Outcome]:
        try:
            # Death right after a report must not lose the report: the pipe is read first.
            if not worker.pipe.poll():
                raise EOFError
            message = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(1.0)
            yield from self._drop(worker, f"worker {worker.process.pid} died ({_how(worker.process.exitcode)})")
            return
        if message == "ready":
            worker.ready, self._failed_starts = True, 0
            return
        worker.block = None
        worker.answers += 1
        if worker.answers == self.recycle_blocks:
            with contextlib.suppress(OSError):
                worker.pipe.send(None)
            self._team.remove(worker)
            self._leaving = [w for w in self._leaving if w.process.is_alive()] + [worker]
        yield message

    def _drop(self, worker: Worker, reason: str) -> Iterator[Outcome]:
        worker.end()
        self._team.remove(worker)
        if not worker.ready:
            self._failed_starts += 1
        if worker.block is not None:
            yield BlockLost(block=worker.block, reason=reason)

    def close(self) -> None:
        """Send idle workers home, end busy ones."""
        for worker in self._team:
            with contextlib.suppress(OSError):
                worker.pipe.send(None)
        for worker in (*self._team, *self._leaving):
            if worker.block is None and worker.ready:
                worker.process.join(2.0)
            worker.end()
        self._team.clear()
        self._leaving.clear()


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
