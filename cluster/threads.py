"""Threads of this process: kernels run without the GIL, and nothing is sent anywhere."""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from railsweep.sweeps.task import Abandoned, BlockReport, Outcome, Stop, Task, lost


class ThreadExecutor:
    """A pool of threads; each opens the store for itself."""

    name = "threads"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="railsweep")

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        """Compute blocks, as many at a time as there are threads."""
        left = iter(blocks)
        running: dict[Future[BlockReport], int] = {}
        while True:
            if not stop.requested:
                for block in islice(left, self.workers - len(running)):
                    running[self._pool.submit(task, block, stop.expired)] = block
            if not running:
                return
            # A short wait, so that the main thread sees signals.
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                block = running.pop(future)
                error = future.exception()
                if error is None:
                    yield future.result()
                elif not isinstance(error, Abandoned):
                    yield lost(block, error)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)
