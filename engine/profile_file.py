"""Readers of profile files: Simpack .prw/.prr, MiniProf .whl/.ban, and CSV with a declared unit.

Files draw a profile in many ways. What is fixed by its shape is found from the shape: which way is up (a wheel's flange
and a rail's flanks point down), and for a wheel which end has the flange. A new rail is symmetric, so its gauge side
follows the convention of the format (Simpack: y towards the track centre; MiniProf and CSV: y outwards) unless `mirror`
says otherwise. Heights start at the tape circle of a wheel and at the top of a rail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.profile import (
    MAXIMUM_POINTS,
    RAIL,
    WHEEL,
    Profile,
    circular_rail,
    conical_wheel,
    profile_from_points,
    s1002,
    uic60,
)

Array = NDArray[np.float64]

MAXIMUM_BYTES = 16 * 2**20
MAXIMUM_LINE = 4096
LIBRARY: dict[str, tuple[str, Callable[[], Profile]]] = {
    "s1002": (WHEEL, s1002),
    "uic60": (RAIL, uic60),
    "60e1": (RAIL, uic60),
}
ENDINGS = {".prw": WHEEL, ".prr": RAIL, ".whl": WHEEL, ".ban": RAIL, ".csv": ""}
UNITS_M = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254}


@dataclass(slots=True)
class _Points:
    """Raw points of a file in metres, the line each came from, and which way y points."""

    y: list[float] = field(default_factory=list)
    z: list[float] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    outwards: bool = True
    details: dict[str, Any] = field(default_factory=dict)


def find_profile(
    name: str | Path, *, kind: str, smoothing_m: float = 0.0, unit: str | None = None, mirror: bool = False
) -> Profile:
    """A profile by library name (s1002, uic60, 60e1, cone:0.05, circle:300) or from a file.

    Examples
    --------
    >>> find_profile("cone:0.05", kind="wheel").name
    'cone:0.05'
    """
    text = str(name)
    word = text.lower()
    if word in LIBRARY:
        found_kind, maker = LIBRARY[word]
        if found_kind != kind:
            raise InputError(f"profile {text}", f"is a {found_kind}", f"a {kind}")
        return maker()
    shape, colon, number = word.partition(":")
    if colon and shape in ("cone", "circle"):
        if (shape == "cone") != (kind == WHEEL):
            raise InputError(f"profile {text}", f"is not a {kind}", "cone:SLOPE for wheels, circle:RADIUS_MM for rails")
        try:
            value = float(number)
        except ValueError:
            raise InputError(f"profile {text}", f"{shown(number)} is not a number", "cone:0.05, circle:300") from None
        return conical_wheel(value) if shape == "cone" else circular_rail(value * 1e-3)
    if Path(text).suffix.lower() not in ENDINGS:
        known = [*LIBRARY, "cone:SLOPE", "circle:RADIUS_MM"]
        raise InputError(
            f"{kind} profile {shown(text)}",
            f"is neither a library name nor a profile file, {nearest(word, known)}",
            ", ".join([*known, *(f"a {ending} file" for ending in ENDINGS)]),
        )
    return load_profile(Path(text), kind=kind, smoothing_m=smoothing_m, unit=unit, mirror=mirror)


def load_profile(
    path: str | Path, *, kind: str, smoothing_m: float = 0.0, unit: str | None = None, mirror: bool = False
) -> Profile:
    """Read a measured profile.

    Parameters
    ----------
    path : str or Path
        .prw, .prr (Simpack), .whl, .ban (MiniProf) or .csv.
    kind : {"wheel", "rail"}
    smoothing_m : float
        Smoothing length along the curve [m], see `profile_from_points`.
    unit : {"m", "cm", "mm", "um", "in"}, optional
        Unit of a CSV file that does not declare its own in the header (``y_mm,z_mm``).
    mirror : bool
        Exchange gauge and field side.
    """
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(str(file), f"unknown ending {shown(file.suffix)}", ", ".join(ENDINGS))
    if ENDINGS[ending] not in ("", kind):
        raise InputError(str(file), f"is a {ENDINGS[ending]} profile", f"a {kind}")
    if unit is not None and unit not in UNITS_M:
        raise InputError("unit", f"is {shown(unit)}", ", ".join(UNITS_M))
    lines = _lines(file)
    if ending in (".prw", ".prr"):
        points = _simpack(str(file), lines, kind)
    elif ending in (".whl", ".ban"):
        points = _miniprof(str(file), lines)
    else:
        points = _csv(str(file), lines, unit)
    return _oriented(str(file), file.name, points, kind, smoothing_m, mirror)


def _lines(file: Path) -> list[str]:
    try:
        size = file.stat().st_size
        if size > MAXIMUM_BYTES:
            raise InputError(str(file), f"{size} bytes", f"at most {MAXIMUM_BYTES} bytes")
        raw = file.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(str(file), f"cannot be read: {reason}", "a profile file") from None
    # measuring software writes comments in whatever code page it finds; numbers are ASCII in all of them
    lines = re.split(r"\r\n|\n|\r", raw.decode("latin-1").removeprefix("\xef\xbb\xbf"))
    for number, line in enumerate(lines, start=1):
        if len(line) > MAXIMUM_LINE:
            raise InputError(f"{file}: line {number}", f"{len(line)} characters", f"at most {MAXIMUM_LINE}")
        if "\x00" in line:
            raise InputError(f"{file}: line {number}", "is not text", "a profile file")
    return lines


def _number(where: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        hint = " (decimal comma?)" if "," in word else ""
        raise InputError(where, f"{shown(word)} is not a number{hint}", "a finite number") from None
    if not math.isfinite(value):
        raise InputError(where, f"{shown(word)} is not finite", "a finite number")
    return value


def _add(points: _Points, where: str, line: int, y: float, z: float) -> None:
    if len(points.y) >= MAXIMUM_POINTS:
        raise InputError(where, "too many points", f"at most {MAXIMUM_POINTS}")
    points.y.append(y)
    points.z.append(z)
    points.line.append(line)


# --- Simpack ----------------------------------------------------------------------------------------------------


def _simpack(file: str, lines: list[str], kind: str) -> _Points:
    """header.begin .. header.end, spline.begin .. keys .. point.begin .. rows .. point.end .. spline.end."""
    settings: dict[str, tuple[float, str]] = {}
    points = _Points(outwards=False)
    place, seen = "", False
    for number, raw in enumerate(lines, start=1):
        line = raw.partition("!")[0].strip()
        where = f"{file}: line {number}"
        if not line:
            continue
        word = line.lower()
        if word.endswith((".begin", ".end")):
            section, _, action = word.rpartition(".")
            if section == "point":
                place = "point" if action == "begin" else "spline"
                seen = seen or action == "begin"
            else:
                place = section if action == "begin" else ""
            continue
        if place == "point":
            words = line.split()
            if len(words) not in (2, 3):
                raise InputError(where, f"{len(words)} columns: {shown(line)}", "y z [weight]")
            y, z = (_number(where, w) for w in words[:2])
            weight = _number(where, words[2]) if len(words) == 3 else 1.0
            if weight > 0.0:
                _add(points, where, number, y, z)
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise InputError(where, f"neither a key nor a section: {shown(line)}", "key = value")
        if place == "header" and key == "type" and int(_number(where, value)) != (1 if kind == WHEEL else 0):
            raise InputError(where, f"type {value}", f"{1 if kind == WHEEL else 0} for a {kind}")
        if place == "spline" and key in _SIMPACK_KEYS:
            settings[key] = (_number(where, value), where)
    if not seen:
        raise InputError(file, "has no point.begin", "a Simpack profile")

    def get(key: str, default: float) -> float:
        return settings.get(key, (default, ""))[0]

    scale = get("units.len.f", 1.0)
    if not 1e-6 <= scale <= 1e9:
        raise InputError(
            settings["units.len.f"][1], f"units.len.f = {scale:g}", "user length units per metre, 1000 for mm"
        )
    turn = get("units.ang.f", 1.0)
    if not 1e-6 <= abs(turn) <= 1e6:
        raise InputError(settings["units.ang.f"][1], f"units.ang.f = {turn:g}", "user angle units per radian")
    # order of the steps as numbered in the files: 1 distance, 2 shift, 3 rotate, 4 bounds, 5 mirror
    raw_y = np.array(points.y) + get("shift.y", 0.0)
    raw_z = np.array(points.z) + get("shift.z", 0.0)
    angle = get("rotate", 0.0) / turn
    turned = {
        "y": raw_y * math.cos(angle) - raw_z * math.sin(angle),
        "z": raw_y * math.sin(angle) + raw_z * math.cos(angle),
    }
    keep = np.ones(raw_y.size, dtype=np.bool_)
    for axis, values in turned.items():
        low, high = get(f"bound.{axis}.min", 1.0), get(f"bound.{axis}.max", 0.0)
        if low <= high:
            keep = keep & (values >= low) & (values <= high)
    for axis, values in turned.items():
        sign = -1.0 if get(f"mirror.{axis}", 0.0) else 1.0
        setattr(points, axis, (sign * values[keep] / scale).tolist())
    points.line = np.array(points.line)[keep].tolist()
    points.details = {"format": "simpack", "units.len.f": scale}
    return points


_SIMPACK_KEYS = (
    *("shift.y", "shift.z", "rotate", "mirror.y", "mirror.z", "units.len.f", "units.ang.f"),
    *("bound.y.min", "bound.y.max", "bound.z.min", "bound.z.max"),
)


# --- MiniProf ---------------------------------------------------------------------------------------------------


def _miniprof(file: str, lines: list[str]) -> _Points:
    """Key=Value lines, an empty line, then the columns of ColumnDef in mm; a leading quote takes a point out."""
    keys: dict[str, tuple[str, str]] = {}
    body = len(lines)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            if keys:
                body = number
                break
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        where = f"{file}: line {number}"
        if not equals:
            raise InputError(where, f"not Key=Value: {shown(line)}", "a MiniProf header, an empty line, then points")
        keys[key.lower()] = (value, where)
    columns = [c.strip().upper() for c in keys.get("columndef", ("X,Y", ""))[0].split(",")]
    if "X" not in columns or "Y" not in columns:
        raise InputError(keys["columndef"][1], f"columns {shown(columns)}", "X and Y among them")
    at_x, at_y = columns.index("X"), columns.index("Y")
    points = _Points(details={"format": "miniprof", "columns": columns})
    for number, raw in enumerate(lines[body:], start=body + 1):
        line = raw.strip()
        where = f"{file}: line {number}"
        if not line or line.startswith('"'):
            continue
        words = line.split()
        if len(words) < len(columns):
            raise InputError(where, f"{len(words)} columns: {shown(line)}", ",".join(columns))
        _add(points, where, number, _number(where, words[at_x]) * 1e-3, _number(where, words[at_y]) * 1e-3)
    if not points.y:
        raise InputError(file, "holds no points", "an empty line after the header, then points")
    # the number of points is stated; one that is lost by half is a broken file, a few taken out are not
    if "xypoints" in keys:
        stated = _number(keys["xypoints"][1], keys["xypoints"][0] or "0")
        if stated > 0 and len(points.y) < 0.5 * stated:
            raise InputError(keys["xypoints"][1], f"{len(points.y)} points of {stated:g}", "a whole file")
    return points


# --- CSV --------------------------------------------------------------------------------------------------------


def _csv(file: str, lines: list[str], unit: str | None) -> _Points:
    """Two columns y and z with a header that names the unit (y_mm,z_mm), or with the unit given by the caller."""
    points = _Points()
    at_y, at_z, scale, separator = 0, 1, 0.0, ","
    started = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        where = f"{file}: line {number}"
        if not line or line.startswith("#"):
            continue
        if not started:
            separator = next((s for s in (";", "\t", ",") if s in line), " ")
        words = [w.strip().strip('"') for w in (line.split() if separator == " " else line.split(separator))]
        if not started:
            started = True
            header = _csv_header(where, words)
            if header is not None:
                at_y, at_z, declared = header
                if unit is not None and declared not in ("", unit):
                    raise InputError(where, f"the header says {declared}", f"{unit}, as declared")
                unit = unit or declared or None
            if unit is None:
                raise InputError(where, "no unit is declared", "a header such as y_mm,z_mm")
            scale = UNITS_M[unit]
            if header is not None:
                continue
        if len(words) <= max(at_y, at_z) or (len(words) != 2 and (at_y, at_z) == (0, 1) and len(words) > 8):
            hint = " (decimal comma?)" if separator == "," else ""
            raise InputError(where, f"{len(words)} columns{hint}: {shown(line)}", "y and z")
        _add(points, where, number, _number(where, words[at_y]) * scale, _number(where, words[at_z]) * scale)
    points.details = {"format": "csv", "unit": unit}
    return points


def _csv_header(where: str, words: list[str]) -> tuple[int, int, str] | None:
    try:
        [float(w) for w in words if w]
    except ValueError:
        pass
    else:
        return None
    found: dict[str, tuple[int, str]] = {}
    for k, word in enumerate(words):
        match = re.fullmatch(r"([yz])(?:[_ \[(]+([a-z]+)[\])]?)?", word.lower(), re.ASCII)
        if match and match[1] not in found:
            found[match[1]] = (k, match[2] or "")
    if set(found) != {"y", "z"} or found["y"][1] != found["z"][1]:
        raise InputError(where, f"header {shown(words)}", "y and z with one unit, such as y_mm,z_mm")
    unit = found["y"][1]
    if unit and unit not in UNITS_M:
        raise InputError(where, f"unit {shown(unit)}", ", ".join(UNITS_M))
    return found["y"][0], found["z"][0], unit


# --- orientation ------------------------------------------------------------------------------------------------


def _oriented(file: str, name: str, points: _Points, kind: str, smoothing_m: float, mirror: bool) -> Profile:
    """Turn points to y outwards, z up, and put the height origin where the contact geometry expects it."""
    y, z = np.array(points.y), np.array(points.z)
    details = {**points.details, "file": name, "mirror": mirror}
    if y.size >= 3 and np.isfinite(y).all() and np.isfinite(z).all() and np.ptp(y) > 0.0:
        y = y if points.outwards else -y
        y = -y if mirror else y
        if _points_down(z, y):
            z = -z
        if kind == WHEEL:
            if y[int(np.argmin(z))] > 0.5 * (y.min() + y.max()):
                y = -y  # the flange belongs to the inner side
            order = np.argsort(y, kind="stable")
            if y[order[0]] < 0.0 < y[order[-1]]:
                z = z - np.interp(0.0, y[order], z[order])
        else:
            z = z - z.max()
    return profile_from_points(y, z, kind=kind, name=name, smoothing_m=smoothing_m, lines=points.line, origin=details)


def _points_down(z: Array, y: Array) -> bool:
    """Is the z axis of these points turned down? Flange and flanks are the extreme that lies at an end of the curve.

    The running surface is wide, so half the width of the profile lies close to one extreme of z: that one is the top.
    """
    order = np.argsort(y, kind="stable")
    even = np.linspace(y.min(), y.max(), 201)
    heights = np.interp(even, y[order], z[order])
    return bool(np.median(heights) - z.min() < z.max() - np.median(heights))
