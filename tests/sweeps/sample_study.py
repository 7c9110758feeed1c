"""A small real study, and how tests run it and compare its results."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from railsweep.cluster.serial import SerialExecutor
from railsweep.sweeps import StudyStore, load_study, open_or_create, run_session

# Radius 300 m derails at every speed: failures are part of the study.
SIMULATION = """
name = "sample"
quantity = "simulation"
seed = 7
[vehicle]
name = "cooperrider"
[solver]
duration_s = 0.1
window_s = 0.05
sample_s = 0.005
time_limit_s = 100.0
[start]
"wheelset_ll.y" = 1e-3
random_m = 1e-5
[observe]
channels = ["wheelset_ll.y"]
[[axis]]
parameter = "track.radius_m"
name = "radius_m"
values = [inf, 5000.0, 300.0]
[[axis]]
parameter = "track.cant_mm"
name = "cant_mm"
zip = "load"
values = [0.0, 60.0]
[[axis]]
parameter = "contact.friction"
name = "friction"
zip = "load"
values = [0.2, 0.3]
[[axis]]
parameter = "speed_mps"
start = 20.0
stop = 40.0
count = 5
[executor]
kind = "serial"
[output]
block_cases = 4
"""

SPECTRUM = """
name = "modes"
quantity = "spectrum"
[vehicle]
name = "cooperrider"
[observe]
modes = 5
[[axis]]
parameter = "secondary_yaw.damping"
name = "yaw_damping"
values = [1.0e5, 1.7e5]
[[axis]]
parameter = "speed_mps"
start = 60.0
stop = 120.0
count = 3
[executor]
kind = "serial"
[output]
block_cases = 2
"""

COMMAND = [sys.executable, "-c", "import sys; from railsweep.app.cli import main; sys.exit(main())"]


def write_study(folder: Path, text: str = SIMULATION, **replaced: str) -> Path:
    """Write a study file; keywords replace lines by their key: rtol="1e-3" also adds it to [solver]."""
    for key, value in replaced.items():
        lines = text.splitlines()
        found = [i for i, line in enumerate(lines) if line.startswith(f"{key} = ")]
        if found:
            for i in found:
                lines[i] = f"{key} = {value}"
            text = "\n".join(lines) + "\n"
        else:
            text = text.replace("[vehicle]", f"[vehicle]\n{key} = {value}", 1)
    path = folder / "study.toml"
    path.write_text(text)
    return path


def computed(folder: Path, text: str = SIMULATION, executor: Any = None, **replaced: str) -> StudyStore:
    """Run a study in this process."""
    path = write_study(folder, text, **replaced)
    study = load_study(path)
    store, _ = open_or_create(study, folder, folder / study.output.store, 1)
    progress = run_session(store, executor or SerialExecutor())
    assert progress.outcome == "finished", progress
    return store


def bits(path: Path) -> dict[str, Any]:
    """Every array of a store, in a form that compares bit for bit."""
    with xarray.open_zarr(path) as dataset:
        loaded = dataset.load()
    return {
        str(name): (v.dims, v.values.tolist() if v.dtype.kind in "OTU" else np.ascontiguousarray(v.values).tobytes())
        for name, v in loaded.variables.items()
    }


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run railsweep in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, timeout=240, env=environment()
    )


def started(*words: str | Path) -> subprocess.Popen[str]:
    """Start railsweep in a process group of its own."""
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """Ours, without the marks of an MPI launcher."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "OMPI_", "MPI_"))}


def ledger(store: Path) -> dict[str, str]:
    """Text of every ledger entry."""
    found = {}
    for path in sorted((store / ".railsweep" / "ledger").glob("*/*.json")):
        found[path.stem] = path.read_text()
        json.loads(found[path.stem])
    return found


def wait_for_blocks(store: Path, count: int, seconds: float = 120.0) -> int:
    """Wait until so many blocks are finished."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if store.is_dir() and len(ledger(store)) >= count:
            return len(ledger(store))
        time.sleep(0.02)
    raise AssertionError(f"{len(ledger(store)) if store.is_dir() else 'no store and no'} blocks after {seconds} s")
