"""The results of a study on disk: a zarr 3 group that xarray opens as it is, and a folder of our own records inside.

::

    name.zarr/zarr.json            group, with the metadata of all arrays consolidated
    name.zarr/<variable>/          one array per variable; dimensions and coordinates named; one block = one chunk
    name.zarr/.railsweep/inputs/   the study file, the vehicle and the contact table, copied: workers read these
    name.zarr/.railsweep/plan.json, provenance.json, ledger/, lock.json

Zarr has no synchroniser: two writers in one chunk lose data. Here a chunk belongs to one block and a block to one
writer. A block counts when its ledger entry is there, which is written after its chunks are on the disk.

Chunks are not sharded. A shard with several blocks would have several writers; one with a single block saves no file
and costs time: an array of 1,024 cases takes 1.8 ms to write and 0.9 ms to read as one chunk, 7.3 and 4.8 ms as a shard
of 8 inner chunks (zarr 3.1, processor time).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from railsweep.engine.errors import InputError, shown
from railsweep.sweeps import provenance
from railsweep.sweeps.ledger import Ledger, sync_folder, write_durably
from railsweep.sweeps.lock import born
from railsweep.sweeps.plan import Plan, make_plan
from railsweep.sweeps.population.choice import with_candidates
from railsweep.sweeps.quantity import GOOD, PENDING, CaseStatus, Dimension, Variable
from railsweep.sweeps.study import Study, canonical, difference, parse_study, plain

if TYPE_CHECKING:
    import xarray

    from railsweep.sweeps.evaluate import Evaluator

OWN = ".railsweep"
FORMAT = 2
MOST_DIFFERENCES = 8

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class StudyStore:
    """An existing store. Opening never writes."""

    path: Path
    study: Study
    plan: Plan
    variables: tuple[Variable, ...]

    @property
    def own(self) -> Path:
        """Folder of our own records."""
        return self.path / OWN

    @cached_property
    def ledger(self) -> Ledger:
        """Finished blocks."""
        return Ledger(self.own / "ledger", self.plan.blocks)

    @property
    def contact_file(self) -> Path | None:
        """The store's copy of the contact table."""
        return self.own / "inputs" / "files" / self.study.contact_name if self.study.contact else None

    @property
    def provenance_file(self) -> Path:
        """The provenance record."""
        return self.own / "provenance.json"

    @property
    def hung_folder(self) -> Path:
        """Notes about cases that never answered (`watchdog`)."""
        return self.own / "hung"

    @cached_property
    def group(self) -> zarr.Group:
        """The zarr group, for reading and writing."""
        return zarr.open_group(self.path, mode="r+", use_consolidated=True)

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """All arrays that blocks write, by name, checked against the plan."""
        found = {}
        for variable in self.variables:
            shape, chunks = layout(self.plan, variable)
            try:
                array = self.group[variable.name]
            except (KeyError, ValueError) as error:
                raise InputError(str(self.path), f"array {variable.name}: {error}", "railsweep repair") from None
            if not isinstance(array, zarr.Array) or array.shape != shape or array.chunks != chunks:
                raise InputError(str(self.path / variable.name), "is not the array of this study", "railsweep repair")
            found[variable.name] = array
        return found

    @property
    def coordinates(self) -> dict[str, str]:
        """Name of every coordinate -> its dimension."""
        own = {d.name: d.name for d in own_dimensions(self.variables) if d.values}
        return {a.name: a.zipped or a.name for a in self.study.axes} | own

    def blank(self, block: int) -> Arrays:
        """Arrays of a block with nothing computed."""
        box = self.plan.box(block)
        return {v.name: filled((*box, *v.extra), v) for v in self.variables}

    def write(self, block: int, arrays: Arrays, facts: dict[str, Any]) -> dict[str, Any]:
        """Write a block: chunks, fsync, ledger. Returns the ledger entry."""
        region, chunk = self.plan.region(block), self.plan.coordinates(block)
        for variable in self.variables:
            array = self.arrays[variable.name]
            array[region] = arrays[variable.name]
            self._sync(variable, array, chunk)
        status = arrays["status"].ravel()
        kinds, counts = np.unique(status, return_counts=True)
        entry = {
            **facts,
            "block": block,
            "cases": int(status.size),
            "failed": int(np.isin(status, GOOD, invert=True).sum()),
            "statuses": {CaseStatus(int(k)).name: int(n) for k, n in zip(kinds, counts, strict=True)},
            "digest": block_digest(arrays),
        }
        self.ledger.record(entry)
        return entry

    def _sync(self, variable: Variable, array: Any, chunk: tuple[int, ...]) -> None:
        path = self.chunk_file(variable, array, chunk)
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return  # a chunk of fill values is not written
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_folder(path.parent)

    def chunk_file(self, variable: Variable, array: Any, chunk: tuple[int, ...]) -> Path:
        """File of one chunk."""
        key = array.metadata.encode_chunk_key((*chunk, *(0 for _ in variable.dimensions)))
        return self.path / variable.name / str(key)

    def chunk_files(self, block: int) -> list[Path]:
        """Files of all chunks of a block, written or not."""
        chunk = self.plan.coordinates(block)
        return [self.chunk_file(v, self.arrays[v.name], chunk) for v in self.variables]

    def read(self, block: int) -> Arrays:
        """Arrays of a block as they stand in the store."""
        region = self.plan.region(block)
        return {v.name: np.asarray(self.arrays[v.name][region]) for v in self.variables}

    def write_coordinate(self, name: str, values: np.ndarray[Any, Any]) -> None:
        """Set the first values of a coordinate that is found during the study; the driver alone may."""
        array: Any = zarr.open_array(self.path / name, mode="r+")
        array[: len(values)] = values

    def dataset(self) -> xarray.Dataset:
        """The whole store in xarray, lazily."""
        import xarray

        found: xarray.Dataset = xarray.open_zarr(self.path)
        return found

    def check_same(self, study: Study, *, accept_code: bool = False) -> None:
        """Refuse to go on when a study or the code is not the one this store was made with."""
        lines = list(difference(plain(self.study.document), plain(study.document)))
        if lines:
            more = f" and {len(lines) - MOST_DIFFERENCES} more" if len(lines) > MOST_DIFFERENCES else ""
            raise InputError(
                str(self.path),
                "was made from another study: " + "; ".join(lines[:MOST_DIFFERENCES]) + more,
                "the same study, or another [output] store",
            )
        record = provenance.read(self.provenance_file)
        lines = list(difference(record["software"].get("railsweep"), provenance.versions()["railsweep"], "railsweep"))
        lines += difference(record["code"], provenance.source_digest(), "source digest")
        if lines and not accept_code:
            raise InputError(
                str(self.path),
                "was made by other code: " + "; ".join(lines),
                "the same code, another store, or --accept-code-change",
            )


def layout(plan: Plan, variable: Variable) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and chunk shape of a variable."""
    return (*plan.shape, *variable.extra), (*plan.block_shape, *variable.extra)


def filled(shape: tuple[int, ...], variable: Variable) -> np.ndarray[Any, Any]:
    """An array of fill values."""
    if variable.name == "status":
        return np.full(shape, PENDING, dtype=np.uint8)
    return np.full(shape, variable.fill, dtype=object if variable.dtype == "string" else variable.dtype)


def block_digest(arrays: Arrays) -> str:
    """Content hash of the arrays of a block."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name]
        total.update(f"{name} {values.shape}\n".encode())
        if values.dtype.kind in "OTU":
            total.update("\0".join(map(str, values.ravel().tolist())).encode())
        else:
            total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()


STATUS = Variable(name="status", unit="1", title="how the case ended", dtype="uint8")
REASON = Variable(name="reason", unit="", title="why a case failed", dtype="string")


def create_store(study: Study, path: Path, evaluator: Evaluator, block_cases: int) -> StudyStore:
    """Make a store of a study: built beside its place, then renamed, so that it exists whole or not at all."""
    variables = (STATUS, REASON, *evaluator.variables)
    plan = make_plan(study, block_cases)
    if path.exists():
        raise InputError(str(path), "exists already", "a new place")
    if not path.parent.is_dir():
        raise InputError(str(path), "its folder does not exist", "a store in an existing folder")
    _sweep_unfinished(path)
    building = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.building")
    try:
        write_skeleton(study, plan, variables, evaluator.units(), building)
        own = building / OWN
        _copy_inputs(study, own / "inputs")
        (own / "ledger").mkdir()
        facts = {
            "format": FORMAT,
            "block_shape": list(plan.block_shape),
            "units": evaluator.units(),
            "variables": [asdict(v) for v in variables],
        }
        write_durably(own / "plan.json", json.dumps(facts, indent=1))
        provenance.write(own / "provenance.json", provenance.new_record(study))
        try:
            os.rename(building, path)
        except OSError:
            if path.exists():
                raise InputError(str(path), "was made by another process meanwhile", "one driver at a time") from None
            raise
        sync_folder(path.parent)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return open_store(path)


def _sweep_unfinished(path: Path) -> None:
    """Remove what drivers of this machine that were killed while they made this store have left beside it."""
    for left in path.parent.glob(f".{path.name}.{socket.gethostname()}.*.building"):
        pid = left.suffixes[-2][1:] if len(left.suffixes) > 1 else ""
        if pid.isdecimal() and not born(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def coordinates_of(
    study: Study, plan: Plan, variables: tuple[Variable, ...], units: dict[str, str]
) -> Iterator[tuple[str, str, np.ndarray[Any, Any], str, str]]:
    """Name, dimension, values, unit and title of every coordinate: the axes, and what the quantity adds."""
    for axis in study.axes:
        yield axis.name, axis.zipped or axis.name, plan.axis_values(axis), units[axis.name], axis.parameter
    for dimension in own_dimensions(variables):
        if dimension.values:
            yield dimension.name, dimension.name, np.array(dimension.values), dimension.unit, dimension.title


def own_dimensions(variables: tuple[Variable, ...]) -> list[Dimension]:
    """The dimensions of the variables beyond those of the study, each once."""
    found = {d.name: d for v in variables for d in v.dimensions}
    for dimension in (d for v in variables for d in v.dimensions):
        if found[dimension.name] != dimension:
            raise InputError(f"dimension {dimension.name}", "is declared in two ways", "one length and coordinate")
    return list(found.values())


def write_skeleton(
    study: Study, plan: Plan, variables: tuple[Variable, ...], units: dict[str, str], path: Path
) -> None:
    """The zarr group with its coordinates and empty arrays."""
    names = {int(s): s.name.lower() for s in CaseStatus}
    group = zarr.create_group(
        path,
        attributes={
            "title": study.name,
            "quantity": study.quantity,
            "vehicle": study.vehicle_name,
            "study_digest": study.digest,
            "study_json": canonical(study.document),
            "source": f"railsweep {provenance.versions()['railsweep']}",
            "provenance": f"{OWN}/provenance.json",
        },
    )
    for name, dimension, values, unit, title in coordinates_of(study, plan, variables, units):
        array = group.create_array(
            name,
            shape=values.shape,
            chunks=values.shape,
            dtype="float64",
            dimension_names=(dimension,),
            attributes={"units": unit, "long_name": title},
        )
        array[:] = values
    coordinates = [a.name for a in study.axes if a.zipped]
    for variable in variables:
        shape, chunks = layout(plan, variable)
        attributes: dict[str, Any] = {"long_name": variable.title}
        if variable.unit:
            attributes["units"] = variable.unit
        if coordinates:
            attributes["coordinates"] = " ".join(coordinates)
        if variable.name == "status":
            attributes |= {"flag_values": list(names), "flag_meanings": " ".join(names.values())}
        fill = filled((), variable)[()]
        group.create_array(
            variable.name,
            shape=shape,
            chunks=chunks,
            dtype=str if variable.dtype == "string" else variable.dtype,
            fill_value=str(fill) if variable.dtype == "string" else fill,
            dimension_names=(*plan.names, *(d.name for d in variable.dimensions)),
            attributes=attributes,
        )
    with warnings.catch_warnings():
        # Consolidated metadata is an extension of zarr 3 that every reader we know understands.
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(path)


def _copy_inputs(study: Study, folder: Path) -> None:
    for relative, content in (
        ("study.toml", study.text.encode()),
        (
            f"files/{study.vehicle_name}"
            if study.vehicle_name.endswith(".toml")
            else f"library/{study.vehicle_name}.toml",
            study.vehicle,
        ),
        (f"files/{study.contact_name}" if study.contact else "", study.contact),
        *((f"files/{name}", content) for name, content in study.files.items()),
    ):
        if relative:
            (folder / relative).parent.mkdir(parents=True, exist_ok=True)
            (folder / relative).write_bytes(content)


def open_store(path: str | Path) -> StudyStore:
    """Open a store made by `create_store`."""
    place = Path(path)
    own = place / OWN
    if not own.is_dir():
        raise InputError(str(place), "is not a railsweep store", "a folder made by 'railsweep run'")
    try:
        facts = json.loads((own / "plan.json").read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise InputError(str(own / "plan.json"), f"has the format {shown(facts['format'])}", str(FORMAT))
        variables = tuple(
            Variable(
                **{**v, "dimensions": tuple(Dimension(**{**d, "values": tuple(d["values"])}) for d in v["dimensions"])}
            )
            for v in facts["variables"]
        )
        shape = tuple(int(n) for n in facts["block_shape"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            str(own / "plan.json"), f"cannot be read: {error}", "a store made by 'railsweep run'"
        ) from None
    inputs = own / "inputs"
    try:
        raw = (inputs / "study.toml").read_bytes()
    except OSError as error:
        raise InputError(str(inputs / "study.toml"), f"cannot be read: {error}", "the store's own study") from None
    study = parse_study(raw, str(inputs / "study.toml"), inputs / "files", inputs / "library")
    study = with_candidates(study, own, shape[-1])
    plan = make_plan(study, int(np.prod(shape)))
    if plan.block_shape != shape or any(not v.name.replace("_", "").isalnum() for v in variables):
        raise InputError(str(own / "plan.json"), "does not fit the study", "the plan this store was made with")
    return StudyStore(path=place, study=study, plan=plan, variables=variables)
