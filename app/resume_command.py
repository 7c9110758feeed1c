"""``railsweep resume``: go on with a store; it holds everything that is needed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from railsweep.app.run_command import add_run_arguments, drive, one_thread_each, published_at

if TYPE_CHECKING:
    from railsweep.sweeps.study import Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("store", metavar="FOLDER.zarr|URL", help="a store made by 'railsweep run', here or at a URL")
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Compute what is pending in a store."""
    one_thread_each()

    def open_study() -> tuple[Study, Path, Path]:
        from railsweep.sweeps.remote import Remote
        from railsweep.sweeps.store import open_store
        from railsweep.sweeps.study import is_url, working_name

        if not is_url(args.store):
            store = open_store(args.store)
            return store.study, store.own / "inputs" / "files", store.path
        remote = Remote(args.store)
        here = Path(working_name(args.store))
        store = open_store(here) if here.exists() else remote.fetch(here)
        return published_at(store.study, args.store), store.own / "inputs" / "files", store.path

    return drive(args, open_study)
