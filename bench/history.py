"""Append one benchmark run to the JSON history beside this file (one file per benchmark, a list of runs)."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "history"


def append(name: str, results: dict[str, Any]) -> None:
    """Add `results` with date, machine and versions to history/<name>.json; a read-only checkout is no error."""
    from importlib.metadata import version

    entry = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("railsweep", "numpy", "numba", "scipy")},
        "results": results,
    }
    path = FOLDER / f"{name}.json"
    try:
        FOLDER.mkdir(exist_ok=True)
        runs = json.loads(path.read_text()) if path.exists() else []
        path.write_text(json.dumps([*runs, entry], indent=1) + "\n")
    except OSError as error:
        print(f"history not written: {error}")
