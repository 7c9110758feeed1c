"""Overlapping generations when blocks or processes are lost: nobody waits for ever, the end is the same."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from railsweep.app.optimise_command import SearchGuide
from railsweep.cluster.serial import SerialExecutor
from railsweep.sweeps import load_study, open_or_create, open_store, run_session
from railsweep.sweeps.progress import Progress
from railsweep.sweeps.task import Abandoned, BlockLost, Executor, Outcome, Stop, Task, lost

STUDY = """
name = "search"
quantity = "spectrum"
[vehicle]
name = "cooperrider"
[operation]
speed_mps = 90.0
[observe]
modes = 1
[optimise]
method = "nsga2"
population = 8
generations = {generations}
overlap = {overlap}
seed = 2
[[objective]]
quantity = "damping_ratio"
goal = "max"
[[objective]]
quantity = "frequency_hz"
goal = "min"
[[parameter]]
name = "secondary_yaw.damping"
relative = 0.5
[[parameter]]
name = "primary_longitudinal.stiffness"
relative = 0.5
[executor]
kind = "serial"
[output]
block_cases = 1
"""
PATIENCE_S = 20.0


class LosingExecutor:
    """Serial, but some blocks are lost so many times before they are computed; no block may wait for ever."""

    name = "serial"
    workers = 1

    def __init__(self, losses: dict[int, int]) -> None:
        self.left = Counter(losses)

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        for block in blocks:
            if self.left[block]:
                self.left[block] -= 1
                yield BlockLost(block=block, reason="its worker died")
                continue
            deadline = time.monotonic() + PATIENCE_S
            try:
                outcome: Outcome = task(block, lambda end=deadline: time.monotonic() > end)  # type: ignore[misc]
            except Abandoned:
                raise AssertionError(f"block {block} waits for ever") from None
            except Exception as error:
                outcome = lost(block, error)
            yield outcome

    def close(self) -> None:
        """Nothing to let go."""


def written(folder: Path, overlap: int, generations: int = 2) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "search.toml"
    path.write_text(STUDY.format(overlap=overlap, generations=generations))
    return path


def session(path: Path, executor: Executor, losses: list[int], retries: int = 3) -> tuple[Progress, SearchGuide]:
    study = load_study(path)
    store, _ = open_or_create(study, path.parent, path.parent / study.output.store, 1)
    guide = SearchGuide(argparse.Namespace(study=str(path), json=True), None)
    guide.begin(store, Stop(), print)
    progress = run_session(
        store,
        executor,
        on_change=guide.change,
        on_loss=lambda loss: losses.append(loss.block),
        retries=retries,
        batches=guide.batches,
    )
    return progress, guide


def arrays(path: Path) -> list[list[float]]:
    store = open_store(path.parent / "search.zarr")
    return [np.asarray(store.arrays[name][:]).tolist() for name in ("damping_ratio", "frequency_hz")]


@pytest.mark.parametrize("overlap", [1, 3])
def test_a_lost_block_is_tried_again_and_those_that_wait_for_it_are_not_charged(overlap: int, tmp_path: Path) -> None:
    plain, hit = written(tmp_path / "a", overlap), written(tmp_path / "b", overlap)
    session(plain, SerialExecutor(), [])
    losses: list[int] = []
    progress, _ = session(hit, LosingExecutor({3: 1, 9: 3, 17: 1, 22: 2}), losses)
    assert progress.outcome == "finished"
    assert Counter(losses) == {3: 1, 9: 3, 17: 1, 22: 2}
    assert progress.lost == 7
    assert progress.computed == 24
    assert arrays(hit) == arrays(plain)


def test_a_block_that_is_lost_for_good_ends_the_session_and_the_next_one_goes_on(tmp_path: Path) -> None:
    plain, hit = written(tmp_path / "a", 2), written(tmp_path / "b", 2)
    session(plain, SerialExecutor(), [])
    losses: list[int] = []
    progress, guide = session(hit, LosingExecutor({12: 9}), losses, retries=2)
    assert progress.outcome == "incomplete"
    assert losses == [12, 12, 12]
    assert guide._search is not None
    assert guide._search.told == 12
    progress, _ = session(hit, SerialExecutor(), losses)
    assert progress.outcome == "finished"
    assert arrays(hit) == arrays(plain)


def entries(path: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in (path.parent / "search.zarr/.railsweep/ledger").glob("*/*.json")}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["driver", "worker"])
def test_processes_killed_for_real(target: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; from railsweep.app.cli import main; sys.exit(main(sys.argv[1:]))"]

    def started(path: Path, *options: str) -> subprocess.Popen[str]:
        words = [*command, "optimise", str(path), "--json", *options]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
        try:
            out, problem = process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 0, problem
        found: dict[str, Any] = json.loads(out)
        return found

    generations = 40
    plain = written(tmp_path / "a", 2, generations)
    whole = ended(started(plain))
    path = written(tmp_path / "b", 2, generations)
    options = ("--executor", "processes", "--workers", "2")
    process, killed = started(path, *options), 0
    for wanted in (5, 60, 150):
        seen = entries(path)
        while process.poll() is None and len(entries(path)) < wanted:
            time.sleep(0.002)
        if process.poll() is not None:
            break
        if target == "driver":
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            now = entries(path)
            assert all(now[name] == text for name, text in seen.items())  # no finished block is computed again
            process = started(path, *options)
        else:
            busy = [c for c in psutil.Process(process.pid).children() if "spawn_main" in " ".join(c.cmdline())]
            busy[killed % len(busy)].kill()
        killed += 1
    facts = ended(process)
    assert killed >= 2
    assert facts["complete"]
    assert facts["evaluations"] == whole["evaluations"] == 8 * (generations + 1)
    assert facts["solutions"] == whole["solutions"]
    assert arrays(path) == arrays(plain)
