"""Faults that a long study meets, made for real: SIGKILL, SIGTERM, Ctrl-C, a full disk, a second driver, a hang."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import sample_quantity
import xarray
from sample_quantity import HANG, REGISTER
from sample_study import (
    COMMAND,
    SIMULATION,
    SPECTRUM,
    bits,
    command,
    computed,
    environment,
    ledger,
    started,
    wait_for_blocks,
    write_study,
)
from test_laws import MPIEXEC

from railsweep.app.cli import main
from railsweep.app.progress import Display
from railsweep.cluster.serial import SerialExecutor
from railsweep.sweeps import Progress, Stop, load_study, open_or_create, open_store, run_session
from railsweep.sweeps.repair import examine

# Long enough to be interrupted: 40 blocks of some 0.05 s each.
LONG = SIMULATION.replace("duration_s = 0.1", "duration_s = 0.4").replace("count = 5", "count = 20")
LONG = LONG.replace("values = [inf, 5000.0, 300.0]", "values = [inf, 5000.0]").replace(
    "block_cases = 4", "block_cases = 2"
)
# The same blocks and thousands more of them: not finished by the time a test strikes, however fast the machine.
ENDLESS = LONG.replace("count = 20", "count = 4000")
RESUMABLE = 75


@pytest.fixture(scope="module")
def long_reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The long study without interruption."""
    return computed(tmp_path_factory.mktemp("long"), LONG).path


def kill(process: psutil.Process | subprocess.Popen[str]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process.send_signal(signal.SIGKILL)


def launch(study: Path, executor: str) -> subprocess.Popen[str]:
    if executor == "mpi":
        return subprocess.Popen(
            [str(MPIEXEC), "-n", "3", *COMMAND, "run", str(study)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment(),
        )
    return started("run", study, "--executor", executor, "--workers", "2", "--accept-code-change")


def strike(driver: subprocess.Popen[str], target: str, chance: random.Random) -> list[psutil.Process]:
    """SIGKILL to the driver, to one of its descendants, or to all of them; returns the descendants."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(driver.pid).children(recursive=True)
        if target == "worker" and family:
            kill(chance.choice(family))
            return family
        if target == "all":
            for member in family:
                kill(member)
    kill(driver)
    return family


def cycles(folder: Path, kills: int, executors: list[str], reference: Path, seed: int) -> None:
    """Run, kill at a random time, resume, until so many kills were dealt; compare whenever a store is complete."""
    chance = random.Random(seed)
    dealt = number = 0
    expected = bits(reference)
    while dealt < kills:
        place = folder / f"store-{number}"
        place.mkdir()
        number += 1
        study, store = write_study(place, LONG), place / "sample.zarr"
        seen: dict[str, str] = {}
        while True:
            driver = launch(study, chance.choice(executors))
            finished = len(seen)
            family: list[psutil.Process] = []
            if dealt < kills:
                with contextlib.suppress(AssertionError):
                    # Strike in start-up now and then, mostly in the middle of the work.
                    if chance.random() < 0.8:
                        deadline = time.monotonic() + 60.0
                        while driver.poll() is None and time.monotonic() < deadline:
                            if store.is_dir() and len(ledger(store)) > finished:
                                break
                            time.sleep(0.02)
                    time.sleep(chance.uniform(0.0, 0.4))
                if driver.poll() is None:
                    family = strike(driver, chance.choice(["driver", "driver", "worker", "all"]), chance)
                    dealt += 1
            code = driver.wait(timeout=180)
            if driver.stderr is not None:
                driver.stderr.close()
            if driver.stdout is not None:
                driver.stdout.close()
            psutil.wait_procs(family, timeout=60)  # workers without a driver end themselves
            now = ledger(store) if store.is_dir() else {}
            # A block that was finished before is not computed again: its entry, with pid and time, is the old one.
            assert all(now[block] == text for block, text in seen.items())
            seen = now
            if code == 0:
                break
        assert bits(store) == expected
        assert not examine(open_store(store), mend=False).blocks
        shutil.rmtree(place)


def test_kill_and_resume(tmp_path: Path, long_reference: Path) -> None:
    cycles(tmp_path, 1, ["processes"], long_reference, seed=20261118)


@pytest.mark.slow
def test_a_hundred_kills_and_resumes_over_mixed_executors(tmp_path: Path, long_reference: Path) -> None:
    executors = ["serial", "threads", "processes", "dask"] + ["mpi"] * (MPIEXEC is not None)
    cycles(tmp_path, 100, executors, long_reference, seed=5)


@pytest.mark.parametrize(
    ("executor", "number"),
    [
        ("processes", signal.SIGTERM),
        ("serial", signal.SIGINT),
        pytest.param("threads", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_signal_leaves_a_whole_store(executor: str, number: signal.Signals, tmp_path: Path) -> None:
    study = write_study(tmp_path, ENDLESS)
    driver = started("run", study, "--executor", executor, "--workers", "2", "--json")
    before = wait_for_blocks(tmp_path / "sample.zarr", 3)
    os.killpg(driver.pid, number)  # as a terminal and a batch system do: to the whole group
    out, err = driver.communicate(timeout=120)
    assert driver.returncode == RESUMABLE, err
    assert json.loads(out)["outcome"] == "stopped"
    store = open_store(tmp_path / "sample.zarr")
    assert before <= len(ledger(store.path)) < store.plan.blocks
    assert not (store.own / "lock.json").exists()
    assert not examine(store, mend=False).blocks


def test_resume_needs_the_store_alone(tmp_path: Path, long_reference: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_file = write_study(tmp_path, LONG)
    study, stop = load_study(study_file), Stop()
    store, _ = open_or_create(study, tmp_path, tmp_path / "sample.zarr", 1)

    def stop_after_three(progress: Progress) -> None:
        if progress.blocks_done == 3:
            stop.request("test")

    assert run_session(store, SerialExecutor(), stop=stop, on_change=stop_after_three).outcome == "stopped"
    before = ledger(store.path)
    assert len(before) == 3
    study_file.unlink()
    assert main(["resume", str(store.path), "--executor", "threads", "--workers", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == study.cases - 6
    assert bits(store.path) == bits(long_reference)
    assert before.items() <= ledger(store.path).items()


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
@pytest.mark.slow
def test_a_signal_to_an_mpi_job(tmp_path: Path) -> None:
    driver = launch(write_study(tmp_path, ENDLESS), "mpi")
    wait_for_blocks(tmp_path / "sample.zarr", 3)
    driver.send_signal(signal.SIGTERM)
    driver.communicate(timeout=120)
    assert driver.returncode == RESUMABLE
    store = open_store(tmp_path / "sample.zarr")
    assert not examine(store, mend=False).blocks


def test_two_drivers_and_a_status_from_another_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path, ENDLESS)
    first = started("run", study)
    wait_for_blocks(tmp_path / "sample.zarr", 3)
    assert main(["run", str(study), "--executor", "serial"]) == 2
    assert "is being worked on by process" in capsys.readouterr().err
    assert main(["status", str(tmp_path / "sample.zarr"), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    family = psutil.Process(first.pid).children(recursive=True)
    for member in (first, *family):
        kill(member)
    first.communicate()
    psutil.wait_procs(family, timeout=60)  # a worker may finish its block before it goes
    assert status["driver"]["pid"] == first.pid
    assert status["driver"]["alive"] is True
    assert status["seconds_left"] == pytest.approx(status["left"] / status["cases_per_s"])
    after = json.loads(command("status", tmp_path / "sample.zarr", "--json").stdout)  # loads no kernels: quick
    assert after["outcome"] == "pending"
    assert after["driver"]["alive"] is False
    assert after["seconds_left"] is None
    assert after["done"] == 2 * len(ledger(tmp_path / "sample.zarr"))
    assert sum(row["done"] for row in after["axes"]["radius_m"]) == after["done"]


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of eight megabytes; False when mounting is not allowed here."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_everything_before_it_readable(
    tmp_path: Path,
    long_reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with small_disk(tmp_path / "disk") as mounted:
        if not mounted:
            pytest.skip("cannot mount a small file system; see the test with a limit on the size of files")
        study, store = write_study(tmp_path, LONG), tmp_path / "disk" / "sample.zarr"
        filler, show = tmp_path / "disk" / "filler", Display.change

        def fill_after_three(display: Display, progress: Progress) -> None:
            """The driver hands out no block while it is in here, so the disk is full long before the last one."""
            show(display, progress)
            if progress.blocks_done == 3:
                with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(4096))

        monkeypatch.setattr(Display, "change", fill_after_three)
        words = ["run", str(study), "--store", str(store), "--executor", "threads", "--workers", "2"]
        assert main(words) == RESUMABLE
        assert "No space left" in capsys.readouterr().err
        monkeypatch.undo()
        before = ledger(store)
        assert 3 <= len(before) < 40
        whole = open_store(store)
        assert not examine(whole, mend=False).blocks
        filler.unlink()
        assert main(words) == 0
        assert bits(store) == bits(long_reference)
        after = ledger(store)
        assert all(after[block] == text for block, text in before.items())


def test_a_write_error_is_fatal_and_clear(tmp_path: Path) -> None:
    """A limit on the size of files, which needs no privilege: the coordinates fit, the ledger does not."""
    study = write_study(tmp_path)
    computed(tmp_path)
    store = open_store(tmp_path / "sample.zarr")
    store.ledger.forget(0)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

    done = subprocess.run(
        [*COMMAND, "run", str(study), "--accept-code-change"],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode != 0
    assert "File too large" in done.stderr, done.stderr
    assert store.ledger.pending() == [0]
    assert not examine(store, mend=False).blocks


def test_a_case_that_hangs_ends_with_the_time_limit(tmp_path: Path) -> None:
    text = LONG.replace("duration_s = 0.4", "duration_s = 10000.0").replace("sample_s = 0.005", "sample_s = 1.0")
    text = text.replace("time_limit_s = 100.0", "time_limit_s = 0.3").replace("count = 20", "count = 1")
    store = computed(tmp_path, text)
    with store.dataset() as dataset:
        assert (dataset.status == 8).all()
        assert (dataset.reason == "longer than 0.3 s").all()


@pytest.mark.parametrize(
    ("executor", "attempts"),
    [
        ("processes", 1),
        pytest.param("serial", 2, marks=pytest.mark.slow),
        pytest.param("threads", 2, marks=pytest.mark.slow),
        pytest.param("dask", 1, marks=pytest.mark.slow),
        pytest.param(
            "mpi",
            2,
            marks=[pytest.mark.slow, pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")],
        ),
    ],
)
def test_a_case_that_never_answers_is_passed_over(executor: str, attempts: int, tmp_path: Path) -> None:
    """A worker is replaced within the run; a run that is one process ends as resumable, and goes on."""
    (tmp_path / "sitecustomize.py").write_text(REGISTER.format(folder=str(Path(sample_quantity.__file__).parent)))
    study, store = write_study(tmp_path, HANG), tmp_path / "hang.zarr"
    words = [*COMMAND, "run", str(study), "--json"]
    if executor == "mpi":
        words = [str(MPIEXEC), "-n", "2", *words]
    else:
        words += ["--executor", executor, "--workers", "1"]
    env = {**environment(), "PYTHONPATH": str(tmp_path)}
    for attempt in range(attempts):
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240, env=env)
        assert "case 2 gives no answer" in done.stderr or attempt, done.stderr
        assert done.returncode == (1 if attempt == attempts - 1 else RESUMABLE), done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["statuses"] == {"ok": 5, "time_limit": 1}
    with xarray.open_zarr(store) as dataset:
        assert dataset.status.values.tolist() == [0, 0, 8, 0, 0, 0]
        assert str(dataset.reason.values[2]) == "longer than 0.2 s"
        assert dataset.seen.values[[0, 1, 3, 4, 5]].tolist() == [0.1, 0.2, 0.4, 0.5, 0.6]


def test_a_batch_that_never_answers_is_computed_case_by_case(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(REGISTER.format(folder=str(Path(sample_quantity.__file__).parent)))
    study = write_study(tmp_path, HANG, quantity='"hang_together"')
    words = [*COMMAND, "run", str(study), "--json", "--executor", "processes", "--workers", "1"]
    env = {**environment(), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240, env=env)
    assert "a batch of cases gives no answer" in done.stderr
    assert "case 2 gives no answer" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["statuses"] == {"ok": 5, "time_limit": 1}


def test_failed_cases_change_the_exit_code_and_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path)
    assert main(["run", str(study), "--json", "--executor", "threads", "--workers", "2"]) == 1
    assert json.loads(capsys.readouterr().out)["statuses"] == {"derailed": 10, "ok": 20}
    assert main(["inspect", str(tmp_path / "sample.zarr"), "--json", "--failures", "3"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert [f["status"] for f in seen["failures"]] == ["derailed"] * 3
    assert seen["failures"][0]["radius_m"] == 300.0


def test_shell_metacharacters_do_not_reach_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "a b;$(touch pwned) `touch pwned` 'q"
    folder.mkdir()
    study = write_study(folder)
    assert main(["submit", str(study), "--slurm", "--nodes", "2", "--queue", "short"]) == 0
    script = folder / "study.slurm.sh"
    subprocess.run(["bash", "-n", script], check=True)
    # Run it for real with a launcher that only says what it was given.
    (tmp_path / "bin").mkdir()
    launcher = tmp_path / "bin" / "mpiexec"
    launcher.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
    launcher.chmod(0o755)
    ran = subprocess.run(
        ["bash", script],
        env={**environment(), "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert ran.stdout.splitlines()[:2] == ["-n", "32"]
    assert ran.stdout.splitlines()[-1] == str(study)
    assert not list(tmp_path.rglob("pwned"))
    for option, value in (
        ("--queue", "a;b"),
        ("--account", "$(x)"),
        ("--walltime", "1:00:00\n#SBATCH"),
        ("--nodes", "-1"),
    ):
        assert main(["submit", str(study), "--slurm", f"{option}={value}"]) == 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_cases(tmp_path: Path) -> None:
    code = """
import sys, psutil
from pathlib import Path
from railsweep.sweeps.study import load_study
from railsweep.sweeps.session import open_or_create
from railsweep.sweeps.block import task_of
folder = Path(sys.argv[1])
study = load_study(folder / "study.toml")
store, _ = open_or_create(study, folder, folder / "modes.zarr", 1)
task = task_of(store)
for block in range(store.plan.blocks):
    task(block)
    if (block + 1) * 100 == 1000:
        early = psutil.Process().memory_info().rss
print(store.plan.cases, psutil.Process().memory_info().rss / early)
"""
    write_study(tmp_path, SPECTRUM.replace("count = 3", "count = 5000"), block_cases="100")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, timeout=900
    )
    cases, growth = done.stdout.split()
    assert int(cases) == 10_000
    assert float(growth) < 1.10


@pytest.mark.slow
def test_processes_with_an_empty_cache_compile_once(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from railsweep.sweeps.evaluate import warm_lock
from railsweep.sweeps.study import load_study
from railsweep.sweeps.session import evaluator_of
from railsweep.kernels.vehicle import vehicle_rhs
study = load_study(Path(sys.argv[1]))
with warm_lock("test") as first:
    evaluator_of(study, Path(sys.argv[1]).parent)((20.0,) * 0 or (1e5, 60.0), 0)
    print(first, sum(vehicle_rhs.stats.cache_misses.values()))
"""
    path = write_study(tmp_path, SPECTRUM)
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            env={**environment(), "NUMBA_CACHE_DIR": str(cache)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    answers = sorted(process.communicate(timeout=600)[0].strip() for process in running)
    assert [a.split()[0] for a in answers] == ["False", "False", "True"]
    assert [a.split()[1] for a in answers[:2]] == ["0", "0"]
    assert int(answers[2].split()[1]) >= 1
