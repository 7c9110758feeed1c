"""Blocks over the ranks of an MPI job: ``mpiexec -n N railsweep run study.toml``.

Rank 0 drives, the others serve (mpi4py.futures). A rank that dies takes the job with it, that is MPI's promise; the
store keeps every finished block, and the same command goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from typing import Any

from railsweep.engine.errors import InputError
from railsweep.sweeps.task import Outcome, Stop, Task, lost

AHEAD = 2  # blocks per rank in flight: one computed, one waiting in its rank's queue


def run_block(task: Task, block: int) -> Outcome:
    """What a rank does with a block."""
    try:
        _warm(task)
        return task(block)
    except Exception as error:
        return lost(block, error)


_warmed: set[Task] = set()


def _warm(task: Task) -> None:
    if task not in _warmed:
        task.warm_up()
        _warmed.add(task)


class MpiExecutor:
    """Rank 0's view of the job."""

    name = "mpi"

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
            from mpi4py.futures import MPICommExecutor
        except (ImportError, RuntimeError) as error:  # RuntimeError: no MPI library found
            raise InputError("executor mpi", f"needs mpi4py: {error}", "pip install 'railsweep[mpi]'") from None
        self._mpi: Any = MPI
        self.workers = max(1, MPI.COMM_WORLD.Get_size() - 1)
        self._context: Any = MPICommExecutor(MPI.COMM_WORLD, root=0)
        # Serves until rank 0 leaves on every other rank; there it returns None.
        self._pool: Any = self._context.__enter__()

    @property
    def drives(self) -> bool:
        """Is this rank 0? The others have served and are done."""
        return self._pool is not None

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        """Compute blocks on the other ranks."""
        left = iter(blocks)
        running: dict[Future[Outcome], int] = {}
        while True:
            if not stop.requested:
                for block in islice(left, AHEAD * self.workers - len(running)):
                    running[self._pool.submit(run_block, task, block)] = block
            else:
                for future in [f for f in running if f.cancel()]:
                    del running[future]
            if not running:
                return
            if stop.expired():
                self.abort()
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                block = running.pop(future)
                error = future.exception()
                yield future.result() if error is None else lost(block, error)

    def abort(self) -> None:
        """End the job now: a block that computes on another rank cannot be called back."""
        import sys

        print("stopped; the running blocks are dropped. The same command resumes.", file=sys.stderr, flush=True)
        time.sleep(0.1)
        self._mpi.COMM_WORLD.Abort(75)

    def close(self) -> None:
        """Let the other ranks go."""
        if self._context is not None:
            self._context.__exit__(None, None, None)
            self._context = None
