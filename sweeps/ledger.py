"""Which blocks are finished: one small file per block, written by temp file, fsync, rename, fsync of the folder.

A block is finished when its file is there and whole. The file carries the digest of the block's arrays, so that
damage to the arrays can be found later.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PER_FOLDER = 1000
KEYS = {"block", "cases", "failed", "statuses", "digest", "seconds", "write_seconds", "host", "pid"}
PARTIAL = ".partial"  # the same ending as zarr's own temp files


def write_durably(path: Path, text: str) -> None:
    """Replace a file so that after a power cut there is the old or the new one, whole."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}{PARTIAL}")
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Ledger:
    """The finished blocks of one store."""

    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder, self.blocks = folder, blocks

    def path(self, block: int) -> Path:
        """File of a block."""
        return self.folder / f"{block // PER_FOLDER}" / f"{block}.json"

    def record(self, entry: dict[str, Any]) -> None:
        """Write down a finished block."""
        path = self.path(entry["block"])
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(self.folder)
        write_durably(path, json.dumps(entry, sort_keys=True))

    def read(self, block: int) -> dict[str, Any] | None:
        """The entry of a block; None when there is none or it is damaged."""
        try:
            entry = json.loads(self.path(block).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(entry, dict) or not entry.keys() >= KEYS or entry["block"] != block:
            return None
        return entry

    def forget(self, block: int) -> None:
        """Take a block out, so that it is computed again."""
        path = self.path(block)
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)

    def finished(self) -> Iterator[dict[str, Any]]:
        """Entries of all finished blocks, by number."""
        for block in self.named():
            entry = self.read(block)
            if entry is not None:
                yield entry

    def named(self) -> list[int]:
        """Numbers of all blocks that have a file, whole or damaged."""
        found = []
        if self.folder.is_dir():
            for part in os.scandir(self.folder):
                if part.is_dir() and part.name.isdecimal():
                    names = (entry.name for entry in os.scandir(part.path))
                    found += [int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdecimal()]
        return sorted(b for b in set(found) if b < self.blocks)

    def pending(self) -> list[int]:
        """Numbers of the blocks that are not finished."""
        done = {entry["block"] for entry in self.finished()}
        return [b for b in range(self.blocks) if b not in done]
