"""Find what is damaged in a store and put exactly that back in the queue.

Finds: temp files left by killed writers, damaged metadata, ledger entries that are torn or whose arrays no longer
have the recorded digest, and files that do not belong. Nothing that is whole is touched; strangers are moved aside.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from railsweep.engine.errors import InputError
from railsweep.sweeps.evaluate import Evaluator
from railsweep.sweeps.ledger import PARTIAL, write_durably
from railsweep.sweeps.store import OWN, StudyStore, block_digest, write_skeleton


@dataclass(slots=True, kw_only=True)
class Damage:
    """What was found; paths relative to the store."""

    partial: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    coordinates: list[str] = field(default_factory=list)
    ledger: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    alien: list[str] = field(default_factory=list)

    @property
    def requeued(self) -> list[int]:
        """Blocks that must be computed again."""
        return sorted({*self.ledger, *self.blocks})

    def __bool__(self) -> bool:
        return any((self.partial, self.metadata, self.coordinates, self.ledger, self.blocks, self.alien))


def examine(store: StudyStore, *, mend: bool) -> Damage:
    """Look for damage everywhere; with `mend`, repair it (the caller holds the lock)."""
    damage = Damage()
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.zarr"
        evaluator = Evaluator(store.study, store.contact_file)
        write_skeleton(store.study, store.plan, store.variables, evaluator.units(), whole)
        _metadata(store, whole, damage, mend)
    _strangers(store, damage, mend)
    if damage.metadata and not mend:
        return damage  # arrays cannot be read through damaged metadata
    store.__dict__.pop("group", None)
    store.__dict__.pop("arrays", None)
    _blocks(store, damage, mend)
    return damage


def _metadata(store: StudyStore, whole: Path, damage: Damage, mend: bool) -> None:
    coordinates = store.coordinates
    for good in sorted(path for path in whole.rglob("*") if path.is_file()):
        relative = good.relative_to(whole)
        present = store.path / relative
        if relative.name == "zarr.json":
            try:
                same = json.loads(present.read_bytes()) == json.loads(good.read_bytes())
            except (OSError, ValueError):
                same = False
            found = damage.metadata
        elif relative.parts[0] in coordinates:
            same = present.is_file() and present.read_bytes() == good.read_bytes()
            found = damage.coordinates
        else:
            continue
        if not same:
            found.append(relative.as_posix())
            if mend:
                present.parent.mkdir(parents=True, exist_ok=True)
                temporary = present.with_name(f"{present.name}.{uuid.uuid4().hex}{PARTIAL}")
                shutil.copyfile(good, temporary)
                os.replace(temporary, present)


def _expected(store: StudyStore, relative: Path) -> bool:
    """Does a file of the zarr part belong to it?"""
    parts = relative.parts
    if relative == Path("zarr.json"):
        return True
    limits: dict[str, tuple[int, ...]] = {v.name: (*store.plan.grid, *(1 for _ in v.extra)) for v in store.variables}
    limits |= dict.fromkeys(store.coordinates, (1,))
    if parts[0] not in limits:
        return False
    if parts[1:] == ("zarr.json",):
        return True
    index, most = parts[2:], limits[parts[0]]
    if parts[1:2] != ("c",) or len(index) != len(most):
        return False
    return all(i.isdecimal() and str(int(i)) == i and int(i) < n for i, n in zip(index, most, strict=True))


def _strangers(store: StudyStore, damage: Damage, mend: bool) -> None:
    aside = store.own / "aside"
    for folder, folders, files in os.walk(store.path):
        here = Path(folder)
        if here == store.own:
            folders[:] = [f for f in folders if f == "ledger"]
        for name in files:
            path = here / name
            relative = path.relative_to(store.path)
            if name.endswith(PARTIAL):
                damage.partial.append(relative.as_posix())
                if mend:
                    path.unlink(missing_ok=True)
            elif relative.parts[0] != OWN and not _expected(store, relative):
                damage.alien.append(relative.as_posix())
                if mend:
                    aside.mkdir(exist_ok=True)
                    os.replace(path, aside / f"{uuid.uuid4().hex[:8]}-{name}")


def _blocks(store: StudyStore, damage: Damage, mend: bool) -> None:
    for block in store.ledger.named():
        entry = store.ledger.read(block)
        if entry is None:
            damage.ledger.append(block)
        else:
            try:
                whole = block_digest(store.read(block)) == entry["digest"]
            except InputError:
                raise
            except Exception:
                whole = False  # decoders raise what they like on torn bytes
            if whole:
                continue
            damage.blocks.append(block)
        if mend:
            # The entry first: a block without an entry is pending, whatever its chunks hold.
            store.ledger.forget(block)
            for file in store.chunk_files(block):
                file.unlink(missing_ok=True)


def repair(store: StudyStore) -> Damage:
    """Mend a store; the caller holds its lock. What was done is kept in repair.json."""
    damage = examine(store, mend=True)
    record = {
        "partial": damage.partial,
        "metadata": damage.metadata,
        "coordinates": damage.coordinates,
        "alien": damage.alien,
        "requeued": damage.requeued,
    }
    write_durably(store.own / "repair.json", json.dumps(record, indent=1))
    return damage
