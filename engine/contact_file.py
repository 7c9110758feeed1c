"""Contact tables on disk: npz, HDF5, CSV and RSGEO text, chosen by the ending of the file.

npz, HDF5 and CSV keep everything (both wheels, lift and roll, settings) to the last bit; RSGEO text keeps one wheel.
Nothing is pickled: settings travel as JSON text. Every file is written beside its place and then moved there.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import secrets
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.contact_table import (
    MAXIMUM_BYTES,
    MAXIMUM_ROWS,
    ContactTable,
    WheelTable,
    load_contact_table,
    save_contact_table,
)
from railsweep.engine.errors import InputError, shown

Array = NDArray[np.float64]

FORMAT = "railsweep contact table 1"
ENDINGS = {".npz": "npz", ".h5": "hdf5", ".hdf5": "hdf5", ".csv": "csv", ".dat": "rsgeo", ".txt": "rsgeo"}
MAXIMUM_POINTS = 32
COLUMNS = tuple(item.name for item in fields(WheelTable))


def table_arrays(table: ContactTable) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays by name ("left.angle_rad") and the JSON-able rest of a table."""
    arrays: dict[str, Array] = {"shift_m": table.shift_m}
    for label, path in (("lift_m", table.lift_m), ("roll_rad", table.roll_rad)):
        if path is not None:
            arrays[label] = path
    for side, wheel in (("left", table.left), ("right", table.right)):
        if wheel is None:
            continue
        for name in COLUMNS:
            values = getattr(wheel, name)
            if values is not None:
                arrays[f"{side}.{name}"] = values
    rest = {"format": FORMAT, "name": table.name, "interpolation": table.interpolation, "origin": table.origin}
    return arrays, rest


def table_from_arrays(where: str, arrays: dict[str, Array], rest: dict[str, Any]) -> ContactTable:
    """The table of `table_arrays`, with every check of the record."""
    if rest.get("format") != FORMAT:
        raise InputError(where, f"format {shown(rest.get('format'))}", FORMAT)
    name, interpolation, origin = rest.get("name"), rest.get("interpolation"), rest.get("origin")
    if not isinstance(name, str) or not isinstance(interpolation, str) or not isinstance(origin, dict):
        raise InputError(where, "the description lacks name, interpolation or origin", FORMAT)
    plain = {}
    for key, values in arrays.items():
        if values.dtype.kind != "f" or values.ndim not in (1, 2) or values.shape[-1] > MAXIMUM_ROWS:
            raise InputError(f"{where}: {key}", f"type {values.dtype}, shape {values.shape}", "tables of numbers")
        plain[key] = np.ascontiguousarray(values, dtype=float)
    if "shift_m" not in plain or plain["shift_m"].ndim != 1:
        raise InputError(where, "shift_m is missing", "a column of shifts")

    def wheel(side: str) -> WheelTable | None:
        found = {key.partition(".")[2]: v for key, v in plain.items() if key.startswith(side + ".")}
        if not found:
            return None
        missing = [c for c in COLUMNS if c not in found and c != "gap_m"]
        if missing or set(found) - set(COLUMNS):
            raise InputError(f"{where}: {side}", f"columns {sorted(found)}", ", ".join(COLUMNS))
        return WheelTable(**found)

    left = wheel("left")
    if left is None:
        raise InputError(where, "the left wheel is missing", ", ".join(COLUMNS))
    return ContactTable(
        name=name,
        shift_m=plain["shift_m"],
        left=left,
        right=wheel("right"),
        lift_m=plain.get("lift_m"),
        roll_rad=plain.get("roll_rad"),
        interpolation=interpolation,
        origin=origin,
    )


def write_contact_table(table: ContactTable, path: str | Path) -> None:
    """Write a table in the format named by the ending: .npz, .h5, .csv, or .dat/.txt for RSGEO text."""
    file = Path(path)
    kind = _kind(file)
    writers: dict[str, Callable[[ContactTable, Path], None]] = {
        "npz": _write_npz,
        "hdf5": _write_hdf5,
        "csv": _write_csv,
        "rsgeo": save_contact_table,
    }
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}{file.suffix}")
    try:
        writers[kind](table, temporary)
        os.replace(temporary, file)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise InputError(str(file), problem, "a file in an existing, writable folder") from None
    finally:
        temporary.unlink(missing_ok=True)


def read_contact_table(path: str | Path) -> ContactTable:
    """Read a table in the format named by the ending; see `write_contact_table`."""
    file = Path(path)
    kind = _kind(file)
    if kind == "rsgeo":
        return load_contact_table(file)
    try:
        size = file.stat().st_size
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror or error}", "a contact table") from None
    if size > MAXIMUM_BYTES:
        raise InputError(str(file), f"{size} bytes", f"at most {MAXIMUM_BYTES} bytes")
    readers: dict[str, Callable[[Path], tuple[dict[str, Array], dict[str, Any]]]] = {
        "npz": _read_npz,
        "hdf5": _read_hdf5,
        "csv": _read_csv,
    }
    arrays, rest = readers[kind](file)
    return table_from_arrays(str(file), arrays, rest)


def _kind(file: Path) -> str:
    kind = ENDINGS.get(file.suffix.lower())
    if kind is None:
        raise InputError(str(file), f"unknown ending {shown(file.suffix)}", ", ".join(ENDINGS))
    return kind


def _description(where: str, text: str) -> dict[str, Any]:
    try:
        rest = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(where, "its description is not JSON", FORMAT) from None
    if not isinstance(rest, dict):
        raise InputError(where, "its description is not an object", FORMAT)
    return rest


def _write_npz(table: ContactTable, file: Path) -> None:
    arrays, rest = table_arrays(table)
    text = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {**arrays, "description": text}
    with file.open("wb") as stream:
        np.savez(stream, **contents)


def _read_npz(file: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    try:
        with np.load(file, allow_pickle=False) as stored:
            if sum(info.file_size for info in stored.zip.infolist()) > MAXIMUM_BYTES:
                raise InputError(str(file), "unpacks to too many bytes", f"at most {MAXIMUM_BYTES}")
            arrays = {key: stored[key] for key in stored.files}
    except InputError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        AttributeError,
        TypeError,
        NotImplementedError,
    ) as error:
        raise InputError(str(file), f"is not a whole npz file: {error}", FORMAT) from None
    text = arrays.pop("description", None)
    if text is None or text.dtype != np.uint8:
        raise InputError(str(file), "has no description", FORMAT)
    return arrays, _description(str(file), text.tobytes().decode("utf-8", "replace"))


def _hdf5(file: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise InputError(
            str(file), "needs the package h5py, which is not installed", "pip install h5py, or .npz"
        ) from None
    return h5py


def _write_hdf5(table: ContactTable, file: Path) -> None:
    arrays, rest = table_arrays(table)
    with _hdf5(file).File(file, "w") as stored:
        stored.attrs["description"] = json.dumps(rest)
        for key, values in arrays.items():
            stored.create_dataset(key.replace(".", "/"), data=values)


def _read_hdf5(file: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    h5py = _hdf5(file)
    arrays: dict[str, Array] = {}
    allowed = {"shift_m", "lift_m", "roll_rad"} | {f"{s}/{c}" for s in ("left", "right") for c in COLUMNS}
    try:
        with h5py.File(file, "r") as stored:
            text = stored.attrs.get("description")
            for key in sorted(allowed):
                if key in stored and isinstance(stored[key], h5py.Dataset):
                    data = stored[key]
                    if data.size > MAXIMUM_ROWS * MAXIMUM_POINTS:
                        raise InputError(f"{file}: {key}", f"{data.size} numbers", "a smaller table")
                    arrays[key.replace("/", ".")] = data[()]
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(file), f"is not a whole HDF5 file: {error}", FORMAT) from None
    if not isinstance(text, str):
        raise InputError(str(file), "has no description", FORMAT)
    return arrays, _description(str(file), text)


def _write_csv(table: ContactTable, file: Path) -> None:
    """A comment line with the description, then one line per side, point and shift; lift and roll are per shift."""
    _, rest = table_arrays(table)
    out = io.StringIO()
    out.write("# " + json.dumps(rest) + "\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["side", "point", "shift_m", "lift_m", "roll_rad", *COLUMNS])

    def text(value: float) -> str:
        return repr(float(value))

    for side, wheel in (("left", table.left), ("right", table.right)):
        if wheel is None:
            continue
        for p in range(wheel.angle_rad.shape[0]):
            for k, shift in enumerate(table.shift_m):
                row = [side, str(p), text(shift)]
                row += ["" if v is None else text(v[k]) for v in (table.lift_m, table.roll_rad)]
                row += ["" if getattr(wheel, c) is None else text(getattr(wheel, c)[p, k]) for c in COLUMNS]
                writer.writerow(row)
    file.write_text(out.getvalue(), encoding="utf-8")


def _read_csv(file: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    try:
        lines = file.read_bytes().decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(str(file), "is not text", FORMAT) from None
    header = ["side", "point", "shift_m", "lift_m", "roll_rad", *COLUMNS]
    if len(lines) < 3 or not lines[0].startswith("# ") or lines[1].split(",") != header:
        raise InputError(str(file), "does not start with a description and the column names", ",".join(header))
    rest = _description(str(file), lines[0][2:])
    blocks: dict[tuple[str, int], list[list[float]]] = {}
    for number, line in enumerate(lines[2:], start=3):
        where = f"{file}: line {number}"
        words = line.split(",")
        if (
            len(words) != len(header)
            or words[0] not in ("left", "right")
            or not words[1].isascii()
            or not words[1].isdigit()
        ):
            raise InputError(where, f"not a row of the table: {shown(line)}", ",".join(header))
        try:
            row = [math.nan if word == "" else float(word) for word in words[2:]]
        except ValueError:
            raise InputError(where, f"not numbers: {shown(line)}", ",".join(header)) from None
        if int(words[1]) >= MAXIMUM_POINTS:
            raise InputError(where, f"point {words[1]}", f"below {MAXIMUM_POINTS}")
        blocks.setdefault((words[0], int(words[1])), []).append(row)
    first = np.array(blocks.get(("left", 0), []))
    if first.size == 0:
        raise InputError(str(file), "the left wheel is missing", "rows that start with left,0")
    arrays: dict[str, Array] = {"shift_m": first[:, 0]}
    for k, label in ((1, "lift_m"), (2, "roll_rad")):
        if not np.isnan(first[:, k]).all():
            arrays[label] = first[:, k]
    for side in ("left", "right"):
        points = sorted(p for s, p in blocks if s == side)
        if not points:
            continue
        if points != list(range(len(points))):
            raise InputError(str(file), f"{side} has the points {points}", "points counted from 0")
        stack = [np.array(blocks[side, p]) for p in points]
        if any(block.shape != first.shape or not np.array_equal(block[:, 0], first[:, 0]) for block in stack):
            raise InputError(str(file), f"{side} has points with different shifts", "the same shifts for every point")
        for k, name in enumerate(COLUMNS, start=3):
            values = np.stack([block[:, k] for block in stack])
            if name != "gap_m" or not np.isnan(values).all():
                arrays[f"{side}.{name}"] = values
    return arrays, rest
