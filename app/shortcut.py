"""Verbs that write a study file and run it: what they share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railsweep.app import run_command
from railsweep.engine.errors import InputError, shown

if TYPE_CHECKING:
    import xarray


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare --out, --executor, --workers, --dry-run and --json."""
    parser.add_argument(
        "--out",
        metavar="NAME",
        default=name,
        help=f"writes NAME.toml (the study), NAME.zarr (the results) and NAME.png (default: {name})",
    )
    parser.add_argument("--dry-run", action="store_true", help="write the study file and say what it would cost")
    parser.add_argument("--executor", choices=("serial", "threads", "processes"), help="default: processes")
    parser.add_argument("--workers", metavar="N", help="how many workers (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def place(text: str) -> Path:
    """Where the files go: `text` without an ending, in a folder that exists."""
    path = Path(text)
    if path.suffix in (".toml", ".zarr", ".png"):
        path = path.with_suffix("")
    if not path.parent.is_dir():
        raise InputError("--out", f"no such folder {shown(str(path.parent))}", "a name in an existing folder")
    return path


def compute(args: argparse.Namespace, base: Path, lines: list[str]) -> int:
    """Write the study (never over another one), run what is pending of it; the exit code of ``railsweep run``."""
    text = "\n".join(lines) + "\n"
    file = base.with_name(base.name + ".toml")
    if file.exists() and file.read_text() != text:
        raise InputError("--out", f"{shown(str(file))} is another study", "another name, or remove it and its store")
    file.write_text(text)
    words = argparse.Namespace(
        study=str(file),
        store=None,
        dry_run=args.dry_run,
        executor=args.executor,
        workers=args.workers,
        take_over=False,
        stale_s=None,
        grace_s=None,
        accept_code_change=False,
        json=args.dry_run and args.json,
        quiet=not args.dry_run,
    )
    return run_command.run(words)


def opened(base: Path) -> xarray.Dataset:
    """The results."""
    import xarray

    found: xarray.Dataset = xarray.open_zarr(base.with_name(base.name + ".zarr")).load()
    return found


def number_or_none(value: Any) -> float | None:
    """A number, or None for nan: JSON has no nan."""
    return float(value) if value == value else None


def listed(values: Any) -> list[float]:
    """The numbers of an array that are numbers."""
    return [float(v) for v in values.ravel() if v == v]
