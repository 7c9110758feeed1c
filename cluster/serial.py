"""One block after the other in this process."""

from collections.abc import Iterator, Sequence

from railsweep.sweeps.task import Abandoned, Outcome, Stop, Task, lost


class SerialExecutor:
    """The reference every other executor must agree with, bit for bit."""

    name = "serial"
    workers = 1

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        """Compute blocks in order."""
        for block in blocks:
            if stop.requested:
                return
            try:
                outcome: Outcome = task(block, stop.expired)
            except Abandoned:
                return
            except Exception as error:
                outcome = lost(block, error)
            yield outcome

    def close(self) -> None:
        """Nothing to let go."""
