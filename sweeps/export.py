"""Copies of a store for other programs: HDF5 and netCDF (one file that is both), and CSV. Block by block."""

from __future__ import annotations

import csv
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from railsweep.engine.errors import InputError
from railsweep.sweeps.ledger import PARTIAL
from railsweep.sweeps.quantity import CaseStatus
from railsweep.sweeps.store import StudyStore, own_dimensions

NETCDF = (".nc", ".h5", ".hdf5")
SUFFIXES = (*NETCDF, ".csv")


def export(store: StudyStore, path: Path) -> None:
    """Write a whole store to a file; the ending decides the format. The file appears when it is complete."""
    if path.suffix not in SUFFIXES:
        raise InputError(str(path), f"has the ending {path.suffix!r}", ", ".join(SUFFIXES))
    if not path.parent.is_dir():
        raise InputError(str(path), "its folder does not exist", "a file in an existing folder")
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}{PARTIAL}")
    try:
        if path.suffix == ".csv":
            _csv(store, partial)
        else:
            _netcdf(store, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _netcdf(store: StudyStore, path: Path) -> None:
    import h5netcdf
    import h5py

    with h5netcdf.File(path, "w") as file:
        for key, value in dict(store.group.attrs).items():
            file.attrs[key] = value
        sizes = dict(zip(store.plan.names, store.plan.shape, strict=True))
        sizes |= {d.name: d.length for d in own_dimensions(store.variables)}
        file.dimensions = sizes
        for name, dimension in store.coordinates.items():
            array: Any = store.group[name]
            copy = file.create_variable(name, (dimension,), "f8", data=np.asarray(array[:]))
            _attributes(copy, array)
        copies = {}
        for variable in store.variables:
            array = store.arrays[variable.name]
            names = (*store.plan.names, *(d.name for d in variable.dimensions))
            dtype: Any = h5py.string_dtype() if variable.dtype == "string" else np.dtype(variable.dtype)
            fill = None if variable.dtype == "string" else array.fill_value
            copies[variable.name] = file.create_variable(variable.name, names, dtype, fillvalue=fill)
            _attributes(copies[variable.name], array)
        for block in range(store.plan.blocks):
            region, arrays = store.plan.region(block), store.read(block)
            for variable in store.variables:
                values = arrays[variable.name]
                if variable.dtype == "string":
                    values = values.astype(object)
                copies[variable.name][region] = values


def _attributes(copy: Any, array: Any) -> None:
    for key, value in dict(array.attrs).items():
        copy.attrs[key] = np.array(value, dtype="u1") if key == "flag_values" else value


def _csv(store: StudyStore, path: Path) -> None:
    """One row per case; numbers in the shortest form that reads back to the same float."""
    columns: list[str] = []
    for variable in store.variables:
        places = np.ndindex(*variable.extra)
        columns += [f"{variable.name}[{','.join(map(str, p))}]" if p else variable.name for p in places]
    names = {int(s): s.name.lower() for s in CaseStatus}
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(a.name for a in store.study.axes), *columns])
        for block in range(store.plan.blocks):
            arrays = store.read(block)
            first = [s.start for s in store.plan.region(block)]
            for position in store.plan.indices(block):
                place = tuple(p - f for p, f in zip(position, first, strict=True))
                row: list[Any] = [repr(v) for v in store.plan.values(position)]
                for variable in store.variables:
                    value = arrays[variable.name][place]
                    if variable.name == "status":
                        row.append(names.get(int(value), str(int(value))))
                    elif variable.dtype == "string":
                        row += [_cell(str(v)) for v in np.atleast_1d(value).ravel()]
                    else:
                        row += [repr(v) for v in np.atleast_1d(value).ravel().tolist()]
                writer.writerow(row)


def _cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@" and text else text
