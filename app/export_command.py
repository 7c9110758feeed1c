"""``railsweep export``: a copy of a store as HDF5, netCDF or CSV."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from railsweep.engine.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("store", metavar="FOLDER.zarr|URL", help="a store made by 'railsweep run'")
    parser.add_argument("file", metavar="FILE", help="the copy: .nc, .h5, .hdf5 (netCDF-4, which is HDF5) or .csv")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the copy; pending cases are marked as such."""
    from railsweep.sweeps.export import export
    from railsweep.sweeps.progress import progress_of
    from railsweep.sweeps.remote import open_anywhere

    store, path = open_anywhere(args.store), Path(args.file)
    if path.exists() and not args.force:
        raise InputError(str(path), "exists already", "a new file, or --force")
    export(store, path)
    progress = progress_of(store)
    facts = {"file": str(path), "bytes": path.stat().st_size, "cases": progress.cases, "pending": progress.left}
    if args.json:
        print(json.dumps(facts))
    else:
        note = f", {progress.left} of them pending" if progress.left else ""
        print(f"{path}: {progress.cases} cases{note}, {facts['bytes']} bytes")
    return 0
