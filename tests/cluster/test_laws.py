"""The laws of executors, each checked for every executor: first with toy tasks, then with a real study, bit for bit."""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sample_study import SIMULATION, bits, computed, environment, write_study
from toy_task import ToyTask

from railsweep.cluster import make_executor
from railsweep.engine.errors import InputError
from railsweep.sweeps import Executor, Stop, load_study, open_or_create, run_session
from railsweep.sweeps.study import ExecutorChoice
from railsweep.sweeps.task import BlockLost, BlockReport, Outcome

slow = pytest.mark.slow
KINDS = [("serial", 1), ("threads", 3), ("processes", 2), pytest.param(("dask", 2), marks=slow)]
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@contextlib.contextmanager
def executor_of(kind: str, workers: int) -> Iterator[Executor]:
    executor = make_executor(ExecutorChoice(kind=kind, workers=workers))
    try:
        yield executor
    finally:
        executor.close()


def until(there: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)


def split(outcomes: list[Outcome]) -> tuple[list[int], list[int]]:
    return (
        sorted(o.block for o in outcomes if isinstance(o, BlockReport)),
        sorted(o.block for o in outcomes if isinstance(o, BlockLost)),
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_block_comes_back_once_and_a_task_that_raises_loses_its_own(
    kind: tuple[str, int], tmp_path: Path
) -> None:
    with executor_of(*kind) as executor:
        done, lost = split(list(executor.run(ToyTask(folder=str(tmp_path), raising=(3, 9)), range(20), Stop())))
        assert done == [b for b in range(20) if b not in (3, 9)]
        assert lost == [3, 9]
        # The same executor serves again.
        done, lost = split(list(executor.run(ToyTask(folder=str(tmp_path)), [3, 9], Stop())))
        assert (done, lost) == ([3, 9], [])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_requested_stop_ends_within_the_grace(kind: tuple[str, int], tmp_path: Path) -> None:
    stop = Stop(grace_s=0.3)
    with executor_of(*kind) as executor:
        task = ToyTask(folder=str(tmp_path), seconds=0.05, hanging=(6,))
        outcomes: list[Outcome] = []
        timer: threading.Timer | None = None
        for outcome in executor.run(task, range(500), stop):
            outcomes.append(outcome)
            if timer is None:
                timer = threading.Timer(0.5, stop.request, ("test",))
                timer.start()
    # Block 6 never ends by itself: that we are here at all is the proof.
    done, lost = split(outcomes)
    assert stop.requested
    assert done
    assert 6 not in done
    assert not lost


def test_a_worker_that_dies_loses_its_own_block_only_and_is_replaced(tmp_path: Path) -> None:
    with executor_of("processes", 2) as executor:
        task = ToyTask(folder=str(tmp_path), seconds=0.02, killing=(5,))
        outcomes = list(executor.run(task, range(12), Stop()))
        assert split(outcomes) == ([b for b in range(12) if b != 5], [5])
        (death,) = (o for o in outcomes if isinstance(o, BlockLost))
        assert "SIGKILL" in death.reason
        assert split(list(executor.run(task, [5], Stop()))) == ([5], [])


def test_a_worker_that_hangs_is_ended_and_replaced(tmp_path: Path) -> None:
    with executor_of("processes", 2) as executor:
        task = ToyTask(folder=str(tmp_path), hanging=(1,), block_limit_s=3.0)
        outcomes = list(executor.run(task, range(6), Stop()))
        assert split(outcomes) == ([0, 2, 3, 4, 5], [1])


def test_workers_are_recycled_and_no_block_is_lost(tmp_path: Path) -> None:
    executor = make_executor(ExecutorChoice(kind="processes", workers=2, recycle_blocks=3))
    try:
        outcomes = list(executor.run(ToyTask(folder=str(tmp_path)), range(14), Stop()))
    finally:
        executor.close()
    assert split(outcomes) == (list(range(14)), [])
    lives = Counter(o.pid for o in outcomes if isinstance(o, BlockReport))
    assert max(lives.values()) == 3
    assert len(lives) >= 5


@pytest.mark.slow
def test_dask_reruns_the_block_of_a_dead_worker(tmp_path: Path) -> None:
    with executor_of("dask", 2) as executor:
        task = ToyTask(folder=str(tmp_path), seconds=0.02, killing=(5,))
        assert split(list(executor.run(task, range(12), Stop())))[0] == list(range(12))


@pytest.mark.slow
def test_dask_computes_again_what_died_between_report_and_fetch(tmp_path: Path) -> None:
    """The driver looks away; meanwhile every block ends, and the workers that hold the results are killed."""
    with executor_of("dask", 2) as executor:
        client = executor.client  # type: ignore[attr-defined]
        task = ToyTask(folder=str(tmp_path), seconds=0.02)
        outcomes = executor.run(task, range(6), Stop())
        found = [next(outcomes)]
        victims = client.run(os.getpid)
        until(lambda: len(list(tmp_path.glob("done-*"))) == 6 and not any(client.processing().values()))
        for pid in victims.values():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not set(victims) & set(client.scheduler_info(n_workers=-1)["workers"]))
        found += outcomes
    assert split(found)[0] == list(range(6))


def test_a_local_dask_cluster_listens_on_the_loopback_only(reference: Path, tmp_path: Path) -> None:
    """And gives the same bits with one worker killed in the middle."""
    with executor_of("dask", 2) as executor:
        client = executor.client  # type: ignore[attr-defined]
        addresses = [client.scheduler_info()["address"], *client.scheduler_info()["workers"]]
        assert all(a.startswith("tcp://127.0.0.1:") for a in addresses)
        study = load_study(write_study(tmp_path, block_cases="1"))
        store, _ = open_or_create(study, tmp_path, tmp_path / "sample.zarr", 2)
        victims = list(client.run(os.getpid).values())
        killed: list[int] = []

        def kill_one(progress: object) -> None:
            if progress.computed and not killed:  # type: ignore[attr-defined]
                killed.append(victims[0])
                os.kill(victims[0], signal.SIGKILL)

        progress = run_session(store, executor, on_change=kill_one)
        assert killed
        assert progress.outcome == "finished"
    assert bits(store.path) == bits(reference)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study computed serially, with other blocks than below."""
    return computed(tmp_path_factory.mktemp("serial")).path


@pytest.mark.parametrize(
    ("kind", "workers", "block"),
    [
        ("serial", 1, 2),
        ("threads", 2, 3),
        ("threads", 4, 1),
        pytest.param("processes", 2, 5, marks=slow),
        pytest.param("processes", 1, 10, marks=slow),
        pytest.param("processes", 3, 1, marks=slow),
        pytest.param("processes", 4, 2, marks=slow),
        pytest.param("dask", 1, 3, marks=slow),
        pytest.param("dask", 3, 1, marks=slow),
    ],
)
def test_the_same_bits_from_every_executor(
    kind: str, workers: int, block: int, reference: Path, tmp_path: Path
) -> None:
    with executor_of(kind, workers) as executor:
        store = computed(tmp_path, executor=executor, block_cases=str(block))
    assert bits(store.path) == bits(reference)


def test_a_worker_killed_in_the_middle_of_a_study_changes_nothing(reference: Path, tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path, block_cases="1"))
    store, _ = open_or_create(study, tmp_path, tmp_path / "sample.zarr", 2)
    with executor_of("processes", 2) as executor:
        killed: list[int] = []

        def kill_one(progress: object) -> None:
            pids = executor.pids  # type: ignore[attr-defined]
            if pids and not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        lost: list[BlockLost] = []
        progress = run_session(store, executor, on_change=kill_one, on_loss=lost.append)
    assert killed
    assert progress.outcome == "finished"
    assert bits(store.path) == bits(reference)


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
@pytest.mark.parametrize(("ranks", "block"), [(2, 4), pytest.param(3, 1, marks=slow), pytest.param(4, 2, marks=slow)])
def test_the_same_bits_from_mpi(ranks: int, block: int, reference: Path, tmp_path: Path) -> None:
    path = write_study(tmp_path, block_cases=str(block))
    script = "import sys; from railsweep.app.cli import main; sys.exit(main())"
    done = subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, "-c", script, "run", str(path), "--json"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stderr  # derailments are among the results
    assert '"outcome": "finished"' in done.stdout
    assert bits(tmp_path / "sample.zarr") == bits(reference)


def test_blocks_lost_for_good_leave_the_others(tmp_path: Path, reference: Path) -> None:
    """An array that cannot be written (a file where its chunks should go) costs the blocks concerned, no other."""
    study = load_study(write_study(tmp_path))
    store, _ = open_or_create(study, tmp_path, tmp_path / "sample.zarr", 1)
    obstacle = store.path / "rhs_calls" / "c" / "1"
    obstacle.parent.mkdir()
    obstacle.write_bytes(b"in the way")
    with executor_of("serial", 1) as executor:
        progress = run_session(store, executor, retries=1)
    assert progress.outcome == "incomplete"
    assert 0 < progress.done < progress.cases
    assert progress.lost == 2 * (progress.blocks - progress.blocks_done)
    obstacle.unlink()
    with executor_of("serial", 1) as executor:
        assert run_session(store, executor).outcome == "finished"
    assert bits(store.path) == bits(reference)


QUEUE = 'queue = {{ system = "{system}", jobs = 3, cores = 2, memory = "4GB", walltime = "1-02:00:30", {more} }}'
DIRECTIVES = {
    "slurm": ["#SBATCH -p short", "#SBATCH -A rail", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=4G", "-t 1-02:00:30"],
    "pbs": ["#PBS -q short", "#PBS -A rail", "select=1:ncpus=2:mem=3815MB", "#PBS -l walltime=26:00:30"],
    "lsf": ["#BSUB -q short", '#BSUB -P "rail"', "#BSUB -n 2", "#BSUB -M 4000000", "#BSUB -W 26:01\n"],
    "htcondor": ["MY.DaskWorkerCores = 2", "MY.DaskWorkerMemory = 4000000000"],
}


@pytest.mark.parametrize("system", DIRECTIVES)
def test_a_study_file_becomes_a_job_of_the_batch_system(system: str, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    from railsweep.cluster.dask import queue_cluster

    queue = QUEUE.format(system=system, more='queue = "short", account = "rail"')
    text = SIMULATION.replace('kind = "serial"', f'kind = "dask"\n{queue}')
    choice = load_study(write_study(tmp_path, text)).executor.queue
    assert choice is not None
    assert choice.jobs == 3
    with queue_cluster(choice) as cluster:
        script = cluster.job_script()
    for line in DIRECTIVES[system]:
        assert line in script
    assert "distributed.cli.dask_worker tcp://" in script
    assert "--nworkers 2" in script
    # A worker leaves before the batch system kills it, in the middle of no block.
    assert ("--lifetime 93390s" in script) == (system != "htcondor")


def test_a_cluster_with_certificates_is_encrypted_and_keeps_strangers_out(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from distributed import Client
    from distributed.security import Security

    made = Security.temporary()
    files = {"tls_ca": made.tls_ca_file, "tls_cert": made.tls_client_cert, "tls_key": made.tls_client_key}
    for name, text in files.items():
        (tmp_path / f"{name}.pem").write_text(str(text))
    paths = {name: str(tmp_path / f"{name}.pem") for name in files}
    executor = make_executor(ExecutorChoice(kind="dask", workers=1, tls=True, **paths))  # type: ignore[arg-type]
    try:
        client = executor.client  # type: ignore[attr-defined]
        address = client.scheduler_info()["address"]
        assert all(a.startswith("tls://127.0.0.1:") for a in [address, *client.scheduler_info()["workers"]])
        assert split(list(executor.run(ToyTask(folder=str(tmp_path)), range(4), Stop()))) == ([0, 1, 2, 3], [])
        # The same way in for a second driver, by address and certificates; none for others.
        choice = ExecutorChoice(kind="dask", address=address, tls=True, **paths)  # type: ignore[arg-type]
        second = make_executor(choice)
        assert split(list(second.run(ToyTask(folder=str(tmp_path)), [9], Stop()))) == ([9], [])
        second.close()
        for stranger in (None, Security.temporary()):
            with pytest.raises((OSError, TypeError, ValueError)):
                Client(address, security=stranger, timeout="3s", set_as_default=False)
            # distributed stops the loop of a client that never connected when the client is collected; happens that
            # while another client starts its loop in the same thread, both wait for one lock for ever
            gc.collect()
    finally:
        executor.close()


def test_tls_files_that_are_missing_are_named() -> None:
    with pytest.raises(InputError, match=r"executor\.tls_ca"):
        make_executor(ExecutorChoice(kind="dask", tls=True, tls_ca="nowhere.pem"))


def test_sweeps_load_no_cluster_library() -> None:
    code = (
        "import sys, railsweep.sweeps.session, railsweep.sweeps.repair, railsweep.cluster; "
        "assert not {'dask', 'distributed', 'mpi4py'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
