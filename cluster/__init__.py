"""Floor 3: where runs happen. Executors for blocks of work; nothing here knows what a block computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from railsweep.sweeps.study import ExecutorChoice
    from railsweep.sweeps.task import Executor


def make_executor(choice: ExecutorChoice) -> Executor:
    """The executor a study file asks for. Each kind is imported only when asked for."""
    from railsweep.cluster.count import usable_cores

    workers = choice.workers or usable_cores()
    if choice.kind == "serial":
        from railsweep.cluster.serial import SerialExecutor

        return SerialExecutor()
    if choice.kind == "threads":
        from railsweep.cluster.threads import ThreadExecutor

        return ThreadExecutor(workers)
    if choice.kind == "processes":
        from railsweep.cluster.processes import ProcessExecutor

        return ProcessExecutor(workers, choice.recycle_blocks)
    if choice.kind == "dask":
        from railsweep.cluster.dask import make_dask_executor

        return make_dask_executor(choice, workers)
    from railsweep.cluster.mpi import MpiExecutor

    return MpiExecutor()
