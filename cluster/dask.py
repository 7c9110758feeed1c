"""Blocks over dask: a local cluster, a scheduler that runs already, or jobs of a batch system.

dask reruns the blocks of a lost worker elsewhere; a block that is in the ledger already is not computed again. dask
pickles over the wire and trusts its network: a local cluster listens on the loopback interface only, TLS is offered.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from railsweep.engine.errors import InputError
from railsweep.sweeps.study import ExecutorChoice, QueueChoice
from railsweep.sweeps.task import BlockLost, Outcome, Stop, Task, lost

AHEAD = 3  # blocks per worker known to the scheduler: it never sees the whole study
CONNECT_S = "30s"
LOOPBACK = "127.0.0.1"
ENDED = ("finished", "error", "cancelled")

_warmed: set[Task] = set()


def run_block(task: Task, block: int) -> Outcome:
    """What a dask worker does with a block."""
    try:
        if task not in _warmed:
            task.warm_up()
            _warmed.add(task)
        return task(block)
    except Exception as error:
        return lost(block, error)


class DaskExecutor:
    """A client and, when we started it, its cluster."""

    name = "dask"

    def __init__(self, client: Any, cluster: Any, workers: int) -> None:
        self.client, self.cluster, self.workers = client, cluster, workers

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        """Compute blocks on whatever workers the scheduler has."""
        left = iter(blocks)
        running: dict[Any, int] = {}
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        told: set[Any] = set()  # said to have ended
        while True:
            if not stop.requested:
                for block in islice(left, AHEAD * self.workers - len(running)):
                    future = self.client.submit(run_block, task, block, pure=False)
                    running[future] = block
                    future.add_done_callback(ended.put)
            elif stop.expired():
                self.client.cancel(list(running))
                return
            else:
                # What computes is waited for; what only waits is taken back.
                busy = {key for keys in self.client.processing().values() for key in keys}
                idle = [f for f in running if not f.done() and f.key not in busy]
                for future in idle:
                    del running[future]
                told -= set(idle)
                self.client.cancel(idle)
            if not running:
                return
            # A result may die with its worker before it is fetched: such a future goes back to being computed.
            told |= {future for future in _drain(ended) if future in running}
            state = {future: future.status for future in told}
            done = {future: running.pop(future) for future in told if state[future] in ENDED}
            told -= done.keys()
            yield from self._outcomes(done, [future for future in done if state[future] == "finished"])

    def _outcomes(self, done: dict[Any, int], whole: list[Any]) -> Iterator[Outcome]:
        """What ended futures hold, fetched together: one round trip through the scheduler instead of one each."""
        try:
            outcomes: list[Outcome] = self.client.gather(whole)
        except Exception as error:  # the worker died after its report to the scheduler; the ledger knows what it wrote
            outcomes = [lost(done[future], error) for future in whole]
        yield from outcomes
        for future in done.keys() - set(whole):
            if future.cancelled():
                yield BlockLost(block=done[future], reason="the scheduler gave the block up")
            else:
                yield lost(done[future], future.exception())
        for future in done:
            future.release()

    def close(self) -> None:
        """Leave the scheduler; end the cluster when it is ours."""
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()


def _drain(ended: queue.SimpleQueue[Any]) -> list[Any]:
    """All futures that have ended, after a short wait for the first."""
    found = []
    try:
        found.append(ended.get(timeout=0.2))
        while True:
            found.append(ended.get_nowait())
    except queue.Empty:
        return found


def make_dask_executor(choice: ExecutorChoice, workers: int) -> DaskExecutor:
    """Connect, or start what the study file asks for."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    security = None
    if choice.tls and choice.tls_ca:
        for name, file in (("tls_ca", choice.tls_ca), ("tls_cert", choice.tls_cert), ("tls_key", choice.tls_key)):
            if not Path(file).is_file():
                raise InputError(f"executor.{name}", f"{file!r} is no file", "a PEM file")
        security = Security(
            tls_ca_file=choice.tls_ca,
            tls_client_cert=choice.tls_cert,
            tls_client_key=choice.tls_key,
            tls_scheduler_cert=choice.tls_cert,
            tls_scheduler_key=choice.tls_key,
            tls_worker_cert=choice.tls_cert,
            tls_worker_key=choice.tls_key,
            require_encryption=True,
        )
    elif choice.tls:
        try:
            security = Security.temporary()
        except ImportError as error:
            raise InputError(
                "executor.tls", f"without files needs another package: {error}", "tls_ca, tls_cert and tls_key"
            ) from None
    # Workers come and go with walltimes and adaptive scaling; that must not count against a block.
    dask.config.set({"distributed.scheduler.allowed-failures": 10, "distributed.comm.timeouts.connect": CONNECT_S})
    if choice.address:
        client = Client(choice.address, security=security, set_as_default=False)
        count = len(client.scheduler_info(n_workers=-1)["workers"])
        return DaskExecutor(client, None, max(1, count))
    if choice.queue is not None:
        cluster = queue_cluster(choice.queue, security)
        cluster.scale(jobs=choice.queue.jobs)
        client = Client(cluster, security=security, set_as_default=False)
        return DaskExecutor(client, cluster, choice.queue.jobs * choice.queue.cores)
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host=LOOPBACK,
        dashboard_address=f"{LOOPBACK}:0",
        security=security,
        protocol="tls" if choice.tls else "tcp",
    )
    return DaskExecutor(Client(cluster, security=security, set_as_default=False), cluster, workers)


def queue_cluster(choice: QueueChoice, security: Any = None) -> Any:
    """A dask-jobqueue cluster; every worker process gets one core, and leaves before its walltime ends."""
    try:
        import dask_jobqueue
    except ImportError as error:
        raise InputError(
            "executor.queue", f"needs dask-jobqueue: {error}", "pip install 'railsweep[jobqueue]'"
        ) from None
    kinds = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster", "htcondor": "HTCondorCluster"}
    options: dict[str, Any] = {
        "cores": choice.cores,
        "processes": choice.cores,
        "memory": choice.memory,
        "security": security,
        "scheduler_options": {"dashboard_address": None},
    }
    if choice.system == "htcondor":
        options["disk"] = choice.memory
    else:
        seconds = walltime_seconds(choice.walltime)
        options["walltime"] = walltime_of(choice.system, choice.walltime)
        if choice.queue:
            options["queue"] = choice.queue
        if choice.account:
            options["project" if choice.system == "lsf" else "account"] = choice.account
        if seconds > 600:
            options["worker_extra_args"] = ["--lifetime", f"{seconds - 240}s", "--lifetime-stagger", "2m"]
    return getattr(dask_jobqueue, kinds[choice.system])(**options)


def walltime_of(system: str, text: str) -> str:
    """A walltime as a batch system writes it: PBS knows no days, LSF neither days nor seconds.

    >>> walltime_of("pbs", "1-02:00:30"), walltime_of("lsf", "1-02:00:30")
    ('26:00:30', '26:01')
    """
    seconds = walltime_seconds(text)
    if system == "pbs":
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if system == "lsf":
        minutes = -(-seconds // 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}"
    return text


def walltime_seconds(text: str) -> int:
    """Seconds of [[D-]H:]M:S.

    >>> walltime_seconds("1-02:00:00")
    93600
    """
    days, _, clock = text.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        if not part.isdecimal():
            raise InputError("executor.queue.walltime", f"is {text!r}", "D-HH:MM:SS")
        seconds = 60 * seconds + int(part)
    return seconds + 86400 * int(days or 0)
