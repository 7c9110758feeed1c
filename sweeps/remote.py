"""Stores at a URL (s3://, gs://, memory://, file://, ... by fsspec): a local working store, copied there as it grows.

What keeps a store whole on a disk (rename, fsync, a lock that two drivers cannot both take) is not to be had from an
object store. So the work is done in a local store, and every finished block is copied in the order that makes a
block count: skeleton, chunks, ledger entry. A copy that was cut off at any point is therefore a whole store that lacks
blocks, and `fetch` makes a working store of it on any machine. Copies need no lock: a block has the same bits whoever
computed it, and a copy of another study or with other blocks is refused.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from railsweep.engine.errors import InputError, shown
from railsweep.sweeps.ledger import sync_folder
from railsweep.sweeps.store import OWN, StudyStore, open_store
from railsweep.sweeps.study import check_url, is_url, working_name

PUBLISH_EVERY_S = 60.0
PLAN, ENTRIES = f"{OWN}/plan.json", f"{OWN}/ledger"
NOT_COPIED = ("lock.json", "lock.guard", "aside")


class Remote:
    """The place of a store behind a URL."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = check_url("store", url)
        try:
            self.files, self.root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:  # a protocol nobody knows, or whose package is not installed
            raise InputError(url, f"cannot be reached: {error}", "a protocol that fsspec has a package for") from None

    def _at(self, relative: str) -> str:
        return f"{self.root}/{relative}"

    def exists(self) -> bool:
        """Is there a store?"""
        with self._reached():
            return bool(self.files.exists(self._at(PLAN)))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # every protocol raises errors of its own
            raise OSError(f"{self.url}: {type(error).__name__}: {error}") from error

    def published(self) -> set[int]:
        """Numbers of the blocks whose ledger entries are there."""
        with self._reached():
            self.files.invalidate_cache()
            if not self.files.exists(self._at(ENTRIES)):
                return set()
            names = (path.rpartition("/")[2] for path in self.files.find(self._at(ENTRIES)))
            return {int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdecimal()}

    def publish(self, store: StudyStore) -> int:
        """Copy what is finished and not there yet; returns the number of blocks copied."""
        with self._reached():
            if self.files.exists(self._at(PLAN)):
                self._check_same(store)
            elif self.files.exists(self.root) and self.files.find(self.root):
                # Files of an unfinished first copy may lie there, others may not.
                for path in self.files.find(self.root):
                    relative = path[len(self.root) :].lstrip("/")
                    if not (store.path / relative).is_file():
                        raise InputError(
                            self.url, f"holds {shown(relative)}, which is not of this study", "a new place"
                        )
            if not self.files.exists(self._at(PLAN)):
                for file in self._skeleton(store):
                    self._put(store, file)
                self._put(store, store.path / PLAN)
            there, count = self.published(), 0
            for block in store.ledger.named():
                if block not in there and store.ledger.read(block) is not None:
                    for file in store.chunk_files(block):
                        if file.exists():  # a chunk of fill values is not written
                            self._put(store, file)
                    self._put(store, store.ledger.path(block))
                    count += 1
            for file in (store.provenance_file, *sorted(store.hung_folder.glob("*"))):
                self._put(store, file)
            return count

    def _put(self, store: StudyStore, file: Path) -> None:
        target = self._at(file.relative_to(store.path).as_posix())
        self.files.makedirs(target.rpartition("/")[0], exist_ok=True)
        self.files.put_file(str(file), target)

    def _skeleton(self, store: StudyStore) -> Iterator[Path]:
        yield from sorted(p for p in (store.own / "inputs").rglob("*") if p.is_file())
        for name in store.coordinates:
            yield from sorted(p for p in (store.path / name).rglob("*") if p.is_file())
        yield from sorted(store.path.glob("*/zarr.json"))
        yield store.path / "zarr.json"
        yield store.provenance_file

    def _check_same(self, store: StudyStore) -> None:
        for relative in (PLAN, "zarr.json"):
            if json.loads(self.files.cat_file(self._at(relative))) != json.loads((store.path / relative).read_bytes()):
                raise InputError(
                    self.url,
                    f"holds a store of another study, or with other blocks, than {store.path} ({relative})",
                    "another place; or remove the local store, and the one at the URL is fetched and continued",
                )

    def fetch(self, path: Path) -> StudyStore:
        """Make a local store of the one at the URL; it appears when it is whole."""
        if path.exists():
            raise InputError(str(path), "exists already", "a new place")
        if not self.exists():
            raise InputError(self.url, "is not a railsweep store", "the URL of a store")
        building = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.building")
        try:
            with self._reached():
                for source in self.files.find(self.root):
                    relative = source[len(self.root) :].lstrip("/")
                    parts = relative.split("/")
                    if ".." in parts or (parts[0] == OWN and parts[1] in NOT_COPIED):
                        continue
                    (building / relative).parent.mkdir(parents=True, exist_ok=True)
                    self.files.get_file(source, str(building / relative))
            (building / ENTRIES).mkdir(exist_ok=True)
            os.rename(building, path)
            sync_folder(path.resolve().parent)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return open_store(path)


def open_anywhere(place: str) -> StudyStore:
    """Open a store for reading: a local one, or a copy of the one at a URL that lasts as long as this process."""
    if not is_url(place):
        return open_store(place)
    folder = Path(tempfile.mkdtemp(prefix="railsweep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Remote(place).fetch(folder / working_name(place))


class Publisher:
    """Copies a growing store now and then. Trouble on the way is reported and tried again later, never fatal."""

    def __init__(self, remote: Remote, store: StudyStore, report: Callable[[str], None]) -> None:
        self.remote, self.store, self.report = remote, store, report
        self.next = time.monotonic() + PUBLISH_EVERY_S

    def sometimes(self, *_: Any) -> None:
        """Copy when it is time to."""
        if time.monotonic() >= self.next:
            self.now()

    def now(self) -> bool:
        """Copy; False when that failed."""
        try:
            self.remote.publish(self.store)
        except OSError as error:
            self.report(f"not copied: {error}")
            return False
        finally:
            self.next = time.monotonic() + PUBLISH_EVERY_S
        return True
