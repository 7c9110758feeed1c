"""Irregularities from files and from one line of text.

**Measured track** (``.csv``): a header line that declares quantity and unit of every column, then numbers. The first
column is ``station`` with a uniform step; the others are any of vertical, lateral, cross_level, gauge, or
left_vertical, right_vertical, left_lateral, right_lateral. Units are the last part of a name: ``station_m``,
``station_km``, ``vertical_mm``, ``gauge_m``, ``cross_level_mrad``. Lines that begin with ``#`` are comments. The
samples fade in and out at the ends of the file.

**Description** (``.toml``): ``[spectrum]`` (a library name or tables of densities, and the settings of `Realisation`),
``[[defect]]`` (see `Defect`), or ``[measured]`` (a CSV file with names of its own, each explained by a
``[[measured.column]]``).

**One line**: ``erri-high,seed=3,length_m=2000``, or the path of a file with settings behind it: ``line.csv,fade_m=50``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import MAXIMUM_BYTES as MAXIMUM_TOML_BYTES
from railsweep.engine.document import Section, parse_toml, read_limited
from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.irregularity import CHANNELS, CONTRIBUTIONS, FADE_M, LARGEST_M, Irregularity, sampled
from railsweep.engine.irregularity_defect import Defect, defects
from railsweep.engine.irregularity_spectrum import (
    AMPLITUDES,
    FREQUENCIES,
    SPECTRA,
    Realisation,
    Spectrum,
    Tabulated,
    find_spectrum,
)

Array = NDArray[np.float64]
# Contents of a file: path, most bytes, what it should be. Who keeps files elsewhere than on disk passes another one.
Read = Callable[[Path, int, str], bytes]

MAXIMUM_BYTES = 512 * 2**20
UNIFORM = 1e-3  # largest departure of a station from its place on the grid, of the step
LENGTH_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
ANGLE_UNITS = {"rad": 1.0, "mrad": 1e-3}
STATION_UNITS = {"m": 1.0, "km": 1e3}
FEWEST_ROWS = 8
MOST_DEFECTS = 100_000


def load_irregularity(text: str | Path, read: Read = read_limited) -> Irregularity:
    """Irregularities from a library spectrum with settings, a ``.toml`` description or a ``.csv`` measurement.

    Examples
    --------
    >>> load_irregularity("erri-low,seed=7,length_m=500").provenance["seed"]
    7
    """
    head, *rest = str(text).split(",")
    settings = _settings(rest)
    path = Path(head)
    if path.suffix.lower() == ".toml":
        found = read_irregularity(path, read)
        if set(settings) - {"seed"}:
            raise InputError(f"irregularity {head}", f"settings {sorted(settings)} beside a file", "seed")
        return found.with_seed(_whole("seed", settings["seed"])) if settings else found
    if path.suffix.lower() == ".csv":
        if set(settings) - {"fade_m"}:
            raise InputError(f"irregularity {head}", f"settings {sorted(settings)} beside a file", "fade_m")
        fade = _number("fade_m", settings["fade_m"]) if settings else FADE_M
        return read_measured(path, fade_m=fade, read=read)
    if path.suffix:
        raise InputError("irregularity", f"{shown(head)} is no spectrum", "a .csv or a .toml file")
    spectrum = find_spectrum(head, "irregularity")
    allowed = [f.name for f in fields(Realisation) if f.name != "spectrum"]
    arguments: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in allowed:
            raise InputError("irregularity", f"{key!r} is no setting, {nearest(key, allowed)}", ", ".join(allowed))
        if key == "seed":
            arguments[key] = _whole(key, value)
        elif key == "amplitudes":
            arguments[key] = value
        elif key == "channels":
            arguments[key] = tuple(value.split("+"))
        else:
            arguments[key] = _number(key, value)
    return Realisation(spectrum=spectrum, **arguments).irregularity()


def _settings(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not key or not value:
            raise InputError("irregularity", f"{shown(word)} is no setting", "NAME=VALUE, as in seed=3")
        if key in found:
            raise InputError("irregularity", f"{key} is given twice", "each setting once")
        found[key] = value
    return found


def _number(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"irregularity: {key}", f"is {shown(text)}", "a number")
    return value


def _whole(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise InputError(f"irregularity: {key}", f"is {shown(text)}", "a whole number, 0 or more")
    return int(text)


# --- measured track -----------------------------------------------------------------------------------------------


def declared(name: str, where: str) -> tuple[str, str]:
    """Quantity and unit of a column name such as ``left_vertical_mm``."""
    quantity, _, unit = name.rpartition("_")
    known = ["station", *CONTRIBUTIONS]
    if quantity not in known:
        raise InputError(where, f"column {shown(name)}, {nearest(quantity or name, known)}", "a quantity with its unit")
    return quantity, unit


def scale_of(quantity: str, unit: str, where: str) -> float:
    """Factor from a declared unit to SI; the cross level may be a height difference or an angle."""
    units = STATION_UNITS if quantity == "station" else LENGTH_UNITS
    if quantity == "cross_level" and unit in ANGLE_UNITS:
        return ANGLE_UNITS[unit]
    if unit not in units:
        more = tuple(ANGLE_UNITS) if quantity == "cross_level" else ()
        raise InputError(where, f"{quantity} in {shown(unit)}", ", ".join((*units, *more)))
    return units[unit]


def read_measured(
    path: str | Path,
    *,
    fade_m: float = FADE_M,
    columns: dict[str, tuple[str, str]] | None = None,
    read: Read = read_limited,
) -> Irregularity:
    """A measured track from a CSV file.

    Parameters
    ----------
    path : str or Path
    fade_m : float
        Length over which the measurement fades in and out.
    columns : dict, optional
        Column name in the file -> (quantity, unit); default: the names say so themselves. Other columns are ignored.
    """
    file = Path(path)
    raw = read(file, MAXIMUM_BYTES, "a CSV file of a measured track")
    header, table = _table(raw, file)
    if columns is None:
        meaning = {i: declared(name, str(file)) for i, name in enumerate(header)}
    else:
        for name in columns:
            if name not in header:
                raise InputError(str(file), f"has no column {name!r}, {nearest(name, header)}", ", ".join(header))
        meaning = {header.index(name): what for name, what in columns.items()}
    quantities = [quantity for quantity, _ in meaning.values()]
    if len(set(quantities)) != len(quantities):
        raise InputError(str(file), f"columns {quantities}", "each quantity once")
    for centre, rails in ((("vertical", "cross_level"), "_vertical"), (("lateral", "gauge"), "_lateral")):
        if not any(q in centre for q in quantities) or not any(q.endswith(rails) for q in quantities):
            continue
        raise InputError(str(file), "gives the track centre and single rails together", "one or the other")
    if "station" not in quantities or len(quantities) < 2:
        raise InputError(str(file), f"columns {quantities}", "station and at least one quantity")
    values = {name: np.zeros(table.shape[0]) for name in CHANNELS}
    step = 0.0
    for i, (quantity, unit) in meaning.items():
        samples = table[:, i] * scale_of(quantity, unit, f"{file}: {header[i]}")
        if quantity == "station":
            step = _uniform_step(samples, file)
            continue
        if np.abs(samples).max() > LARGEST_M:
            raise InputError(
                f"{file}: {header[i]}", f"reaches {np.abs(samples).max():.3g}", f"at most {LARGEST_M:g} m or rad"
            )
        angle = quantity == "cross_level" and unit in ANGLE_UNITS
        for channel, factor in (("cross_level", 1.0),) if angle else CONTRIBUTIONS[quantity]:
            values[channel] += factor * samples
    provenance = {
        "kind": "measured",
        "file": file.name,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "columns": {header[i]: list(w) for i, w in meaning.items()},
    }
    return sampled(values, step, fade_m=fade_m, provenance=provenance)


def _table(raw: bytes, file: Path) -> tuple[list[str], Array]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(str(file), "is not UTF-8 text", "a CSV file") from None
    rows = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(rows) < FEWEST_ROWS + 1:
        raise InputError(str(file), f"{max(0, len(rows) - 1)} rows", f"a header and at least {FEWEST_ROWS} rows")
    header = [name.strip() for name in rows[0][1].split(",")]
    if len(set(header)) != len(header):
        raise InputError(str(file), f"columns {shown(header)}", "different names")
    table = np.empty((len(rows) - 1, len(header)))
    for k, (number, line) in enumerate(rows[1:]):
        cells = line.split(",")
        if len(cells) != len(header):
            raise InputError(f"{file}: line {number}", f"{len(cells)} cells", f"{len(header)}")
        try:
            table[k] = [float(cell) for cell in cells]
        except ValueError:
            bad = next(cell for cell in cells if not _is_number(cell))
            raise InputError(f"{file}: line {number}", f"{shown(bad)} is no number", "numbers with a dot") from None
    if not np.isfinite(table).all():
        row = int(np.argwhere(~np.isfinite(table))[0, 0])
        raise InputError(f"{file}: line {rows[row + 1][0]}", "has a value that is not finite", "finite numbers")
    return header, table


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _uniform_step(station: Array, file: Path) -> float:
    step = float((station[-1] - station[0]) / (station.size - 1))
    if not 1e-3 <= step <= 100.0:
        raise InputError(f"{file}: station", f"goes on by {step:g} m per row", "1 mm to 100 m, increasing")
    worst = np.abs(station - station[0] - step * np.arange(station.size))
    if worst.max() > UNIFORM * step:
        row = int(np.argmax(worst))
        raise InputError(
            f"{file}: station",
            f"row {row + 1} is {worst[row]:.3g} m off a uniform step of {step:.6g} m",
            "equally spaced rows (resample the measurement)",
        )
    return step


# --- description files --------------------------------------------------------------------------------------------


def read_irregularity(path: str | Path, read: Read = read_limited) -> Irregularity:
    """Irregularities from a TOML description."""
    file = Path(path)
    document = parse_toml(read(file, MAXIMUM_TOML_BYTES, "a TOML file"), str(file))
    kinds = [key for key in ("spectrum", "defect", "measured") if document.has(key)]
    if len(kinds) != 1:
        raise InputError(
            str(file), f"has {' and '.join(kinds) or 'none'} of them", "[spectrum], [[defect]] or [measured]"
        )
    if kinds == ["spectrum"]:
        found = _random_track(document.section("spectrum"))
    elif kinds == ["defect"]:
        found = defects([_defect(section) for section in document.sections("defect", most=MOST_DEFECTS)])
    else:
        found = _measured(document.section("measured"), file.parent, read)
    document.finish()
    return found


def _whole_key(section: Section, key: str) -> int:
    value = section.number(key, least=0.0)
    if value != int(value):
        raise InputError(section.where(key), f"is {value!r}", "a whole number")
    return int(value)


def _random_track(section: Section) -> Irregularity:
    names = [key for key in CHANNELS if section.has(key)]
    if names:
        frequency = section.text("frequency", choices=FREQUENCIES)
        sides = _whole_key(section, "sides")
        f = section.numbers("at")
        densities = []
        for name in names:
            values = section.numbers(name)
            if len(values) != len(f):
                raise InputError(section.where(name), f"{len(values)} values", f"{len(f)}, one for each of 'at'")
            points = tuple(zip(f, values, strict=True))
            densities.append((name, Tabulated(points=points, frequency=frequency, sides=sides)))
        spectrum = Spectrum(name=section.text("name"), densities=tuple(densities))
    else:
        spectrum = find_spectrum(section.text("name", choices=tuple(SPECTRA)), section.where("name"))
    settings: dict[str, Any] = {
        key: section.number(key) for key in ("length_m", "shortest_m", "longest_m", "fade_m") if section.has(key)
    }
    if section.has("seed"):
        settings["seed"] = _whole_key(section, "seed")
    if section.has("amplitudes"):
        settings["amplitudes"] = section.text("amplitudes", choices=AMPLITUDES)
    if section.has("channels"):
        settings["channels"] = tuple(section.words("channels"))
    section.finish()
    return Realisation(spectrum=spectrum, **settings).irregularity()


def _defect(section: Section) -> Defect:
    given: dict[str, Any] = {"kind": section.text("kind"), "channel": section.text("channel")}
    for key in (f.name for f in fields(Defect)):
        if key not in given and section.has(key):
            given[key] = section.number(key)
    for key in ("amplitude_m", "wavelength_m"):
        if key not in given:
            raise InputError(section.where(key), "is missing", "a number")
    section.finish()
    return Defect(**given)


def _measured(section: Section, folder: Path, read: Read) -> Irregularity:
    name = section.text("file")
    fade = section.number("fade_m", FADE_M, least=0.0)
    columns: dict[str, tuple[str, str]] | None = None
    if section.has("column"):
        columns = {}
        for column in section.sections("column", most=64):
            quantity = column.text("quantity", choices=("station", *CONTRIBUTIONS))
            columns[column.text("name")] = (quantity, column.text("unit"))
            column.finish()
    section.finish()
    return read_measured(folder / name, fade_m=fade, columns=columns, read=read)
