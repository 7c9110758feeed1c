"""Where a result comes from: software, machine, study, and every session that worked on it; checked by a schema."""

from __future__ import annotations

import getpass
import hashlib
import json
import platform
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from railsweep.engine.errors import InputError
from railsweep.sweeps.ledger import write_durably
from railsweep.sweeps.lock import this_host
from railsweep.sweeps.study import Study, plain

PACKAGES = ("railsweep", "numpy", "numba", "scipy", "zarr", "xarray")
MOST_SESSIONS = 1000
# Modules of this floor that keep, hand out and copy results. Whatever is not listed counts as deciding them.
NO_NUMBERS = {
    *("__init__", "block", "export", "ledger", "lock", "progress", "provenance", "remote"),
    *("repair", "session", "store", "task", "watchdog"),
}


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of a provenance record."""
    text = files("railsweep.sweeps").joinpath("provenance.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def validate(record: dict[str, Any], where: str) -> None:
    """Refuse a record that the schema does not allow."""
    import jsonschema

    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema()).iter_errors(record))
    if error is not None:
        place = "/".join(map(str, error.absolute_path))
        raise InputError(f"{where}: {place}", error.message, "see provenance.schema.json")


@cache
def source_digest() -> str:
    """Digest of the sources that decide the numbers: kernels, engine, and sweeps but for `NO_NUMBERS`."""
    digest = hashlib.sha256()
    for package in ("railsweep.kernels", "railsweep.engine", "railsweep.sweeps"):
        folder = Path(str(files(package)))
        for path in sorted(folder.rglob("*.py")):
            if package == "railsweep.sweeps" and path.parent == folder and path.stem in NO_NUMBERS:
                continue
            digest.update(f"{package}/{path.relative_to(folder).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Versions of the packages that matter."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def new_record(study: Study) -> dict[str, Any]:
    """The record of a new store."""
    return {
        "schema": 1,
        "created": now(),
        "study": plain(study.document),
        "digest": study.digest,
        "seed": study.seed,
        "code": source_digest(),
        "software": versions(),
        "sessions": [],
    }


def new_session(executor: str, workers: int) -> dict[str, Any]:
    """The record of a session that begins now."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return {
        "host": this_host(),
        "user": user,
        "platform": platform.platform(),
        "command": [Path(word).name if i == 0 else word for i, word in enumerate(sys.argv)],
        "executor": executor,
        "workers": workers,
        "software": versions(),
        "code": source_digest(),
        "started": now(),
        "ended": None,
        "outcome": "running",
        "counters": {"blocks": 0, "cases": 0, "failed": 0, "lost": 0},
        "seconds": {"wall": 0.0, "compute": 0.0, "write": 0.0},
    }


def read(path: Path) -> dict[str, Any]:
    """Read and check a record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read: {error}", "a provenance record") from None
    validate(record, str(path))
    checked: dict[str, Any] = record
    return checked


def write(path: Path, record: dict[str, Any]) -> None:
    """Check and write a record."""
    record["sessions"] = record["sessions"][-MOST_SESSIONS:]
    validate(record, str(path))
    write_durably(path, json.dumps(record, indent=1, sort_keys=True) + "\n")


def now() -> str:
    """Present time, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
