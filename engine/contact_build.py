"""From a pair of profiles to a contact table: settings, short specifications, building and the cache on disk.

`build_contact_table(wheel="s1002", rail="uic60", inclination=1 / 40, gauge_mm=1437)` or, shorter,
`contact_table("s1002/uic60@1:40,gauge=1437,patch=point")`. A table is kept under the hash of its profiles and all its
settings, so the second call reads it, and two cases of a sweep with the same geometry share it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.contact_file import read_contact_table, write_contact_table
from railsweep.engine.contact_geometry import ContactGeometry, Rails, TouchingPath, Wheelset
from railsweep.engine.contact_patch import (
    FLATTEST_CURVATURE_PER_M,
    PATCHES,
    PatchSettings,
    integrated_path,
    patch_table,
    primary,
    smoothed,
    touching_path,
    wheel_view,
)
from railsweep.engine.contact_table import MAXIMUM_ROWS, ContactTable
from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.interpolation import TABLE_METHODS
from railsweep.engine.profile import RAIL, WHEEL, Profile, blend
from railsweep.engine.profile_file import find_profile
from railsweep.kernels import geometry as kernel

Array = NDArray[np.float64]

GENERATION = 1  # part of the cache key: raise it when the same settings give other numbers
STEEPEST_AT_CENTRE_RAD = 0.35  # a centred wheelset that stands on a slope of 20 degrees rides on its flanges
DEEPEST_AT_CENTRE_M = 0.01  # or on a place so far below its tape circle
DEFAULT_SMOOTHING_MM = {"point": 0.0, "equivalent": 0.0, "multi": 0.2}
DEFAULT_INTERPOLATION = {"point": "akima", "equivalent": "cubic", "multi": "akima"}
JUMP_M = 1e-4  # a contact that moves farther than this within a nanometre of shift has jumped
MOST_JUMPS = 64
CACHE_VARIABLE = "RAILSWEEP_CACHE"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Everything a table depends on beside the two profiles; lengths as engineers state them, loads in SI.

    Parameters
    ----------
    inclination, inclination_right : float
        Rail inclination towards the track centre; the right one follows the left one unless given.
    gauge_mm, gauge_depth_mm : float
        Track gauge and the depth below top of rail down to which it is measured.
    rail_spacing_mm : float, optional
        Distance of the rails' own origins (crowns); replaces the gauge.
    back_to_back_mm, tape_circle_mm : float
        Distance of the wheel backs, and of the tape circle from the back.
    rolling_radius_m, rolling_radius_right_m : float
        Radius at the tape circle.
    wheel_load_n : float
        Static vertical load of one wheel.
    young_modulus_pa, poisson_ratio : float
    patch : {"point", "equivalent", "multi"}
    interpenetration : float
        Share of the Hertz approach by which `equivalent` pushes the profiles into each other.
    smoothing_mm : float, optional
        Length over which jumps are spread: width of the window for `point` and `equivalent` (default 0), fading length
        of a vanishing contact for `multi` (default 0.2).
    profile_smoothing_mm : float
        Smoothing length of profiles read from files.
    range_mm, step_mm : float
        The table covers -range .. +range in these steps.
    wheel_wear, rail_wear : float
        Fraction from the profile towards the worn one, 0 to 1.
    interpolation : {"cubic", "linear", "akima"}, optional
        Between the rows; default cubic for `equivalent`, akima for the others, whose columns have corners.
    """

    inclination: float = 1.0 / 40.0
    inclination_right: float | None = None
    gauge_mm: float = 1435.0
    gauge_depth_mm: float = 14.0
    rail_spacing_mm: float | None = None
    back_to_back_mm: float = 1360.0
    tape_circle_mm: float = 70.0
    rolling_radius_m: float = 0.425
    rolling_radius_right_m: float | None = None
    wheel_load_n: float = 66_600.0
    young_modulus_pa: float = 2.1e11
    poisson_ratio: float = 0.27
    patch: str = "equivalent"
    interpenetration: float = 0.55
    smoothing_mm: float | None = None
    profile_smoothing_mm: float = 0.0
    range_mm: float = 20.0
    step_mm: float = 0.01
    wheel_wear: float = 0.0
    rail_wear: float = 0.0
    interpolation: str | None = None

    def __post_init__(self) -> None:
        if self.patch not in PATCHES:
            raise InputError(
                "patch", f"is {shown(self.patch)}, {nearest(str(self.patch), list(PATCHES))}", ", ".join(PATCHES)
            )
        if self.interpolation is not None and self.interpolation not in TABLE_METHODS:
            raise InputError("interpolation", f"is {shown(self.interpolation)}", ", ".join(TABLE_METHODS))
        bounds = {
            "inclination": (-0.2, 0.2),
            "inclination_right": (-0.2, 0.2),
            "gauge_mm": (300.0, 3000.0),
            "gauge_depth_mm": (1.0, 50.0),
            "rail_spacing_mm": (300.0, 3000.0),
            "back_to_back_mm": (200.0, 2900.0),
            "tape_circle_mm": (0.0, 150.0),
            "rolling_radius_m": (0.1, 1.0),
            "rolling_radius_right_m": (0.1, 1.0),
            "wheel_load_n": (10.0, 1e6),
            "young_modulus_pa": (1e9, 1e12),
            "poisson_ratio": (0.0, 0.5),
            "interpenetration": (0.1, 1.0),
            "smoothing_mm": (0.0, 5.0),
            "profile_smoothing_mm": (0.0, 50.0),
            "range_mm": (5.0, 60.0),
            "step_mm": (1e-4, 1.0),
            "wheel_wear": (0.0, 1.0),
            "rail_wear": (0.0, 1.0),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
                raise InputError(name, f"is {shown(value)}", f"a number from {least:g} to {most:g}")
        if self.range_mm / self.step_mm > MAXIMUM_ROWS / 20:
            raise InputError(
                "step_mm", f"makes {2 * self.range_mm / self.step_mm:g} rows", f"at most {MAXIMUM_ROWS // 10}"
            )

    @property
    def smoothing_length_mm(self) -> float:
        """The smoothing length in force [mm]."""
        return DEFAULT_SMOOTHING_MM[self.patch] if self.smoothing_mm is None else float(self.smoothing_mm)


OPTIONAL = ("inclination_right", "rail_spacing_mm", "rolling_radius_right_m", "smoothing_mm")
SETTINGS = tuple(item.name for item in fields(TableSettings))
PROFILES = ("wheel", "rail", "wheel_right", "rail_right", "worn_wheel", "worn_rail")
TEXT_SETTINGS = ("patch", "interpolation")
SHORT_NAMES = {
    "gauge": "gauge_mm",
    "depth": "gauge_depth_mm",
    "spacing": "rail_spacing_mm",
    "b2b": "back_to_back_mm",
    "radius": "rolling_radius_m",
    "load": "wheel_load_n",
    "smoothing": "smoothing_mm",
    "range": "range_mm",
    "step": "step_mm",
    "wear": "wheel_wear",
}
SPECIFICATION = re.compile(r"(?P<wheel>[^/@,]+)/(?P<rail>[^/@,]+)@(?P<inclination>[^,]+)(?P<rest>(,.*)?)", re.DOTALL)


def is_specification(text: str) -> bool:
    """Does this text look like "s1002/uic60@1:40", and not like a file?"""
    return SPECIFICATION.fullmatch(text) is not None


def parse_specification(text: str) -> dict[str, Any]:
    """Arguments of `build_contact_table` from "wheel/rail@1:N,key=value,...".

    Examples
    --------
    >>> parse_specification("s1002/uic60@1:20,gauge=1437,patch=point")
    {'wheel': 's1002', 'rail': 'uic60', 'inclination': 0.05, 'gauge_mm': 1437.0, 'patch': 'point'}
    """
    where = f"contact {shown(text)}"
    match = SPECIFICATION.fullmatch(text) if len(text) <= 1000 else None
    if match is None:
        raise InputError(where, "is not a contact specification", "wheel/rail@1:N[,key=value...], s1002/uic60@1:40")
    found: dict[str, Any] = {"wheel": match["wheel"].strip(), "rail": match["rail"].strip()}
    found["inclination"] = parse_inclination(where, match["inclination"])
    for item in match["rest"].split(",")[1:]:
        key, equals, value = (part.strip() for part in item.partition("="))
        name = SHORT_NAMES.get(key, key)
        known = [*SHORT_NAMES, *SETTINGS, *PROFILES]
        if not equals or name not in (*SETTINGS, *PROFILES):
            raise InputError(where, f"unknown setting {shown(item)}, {nearest(key, known)}", ", ".join(known))
        if name in found and name not in ("wheel", "rail"):
            raise InputError(where, f"repeats {key}", "every setting once")
        if name in PROFILES or name in TEXT_SETTINGS:
            found[name] = value
        elif name.startswith("inclination"):
            found[name] = parse_inclination(where, value)
        else:
            try:
                found[name] = float(value)
            except ValueError:
                raise InputError(where, f"{key} = {shown(value)} is not a number", "a number") from None
    return found


def parse_inclination(where: str, text: str) -> float:
    """1:40, 1/40 or 0.025."""
    match = re.fullmatch(r"\s*1\s*[:/]\s*(\d{1,5}(\.\d{1,6})?)\s*", text, re.ASCII)
    try:
        value = 1.0 / float(match[1]) if match else float(text)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not -0.2 <= value <= 0.2:
        raise InputError(where, f"inclination {shown(text)}", "1:40, 1/40 or a number from -0.2 to 0.2")
    return value


def contact_table(specification: str, *, cache: bool = True, **settings: Any) -> ContactTable:
    """The table of a short specification; `settings` fill in what it leaves open (the load and radius of a vehicle)."""
    return build_contact_table(**(settings | parse_specification(specification)), cache=cache)


def build_contact_table(
    *,
    wheel: str | Path | Profile = "s1002",
    rail: str | Path | Profile = "uic60",
    wheel_right: str | Path | Profile | None = None,
    rail_right: str | Path | Profile | None = None,
    worn_wheel: str | Path | Profile | None = None,
    worn_rail: str | Path | Profile | None = None,
    cache: bool = True,
    threads: int | None = None,
    **settings: Any,
) -> ContactTable:
    """Contact table of a wheelset on a track, from its profiles.

    Parameters
    ----------
    wheel, rail : str, Path or Profile
        A library name (s1002, uic60, 60e1, cone:0.05, circle:300), a file (.prw, .whl, .prr, .ban, .csv) or a profile.
    wheel_right, rail_right : optional
        The right side when it differs.
    worn_wheel, worn_rail : optional
        Where `wheel_wear` and `rail_wear` lead to.
    cache : bool
        Read the table from the cache if it is there, and keep it there.
    threads : int, optional
        Default: all cores. The result does not depend on it.
    **settings
        Fields of `TableSettings`.

    Examples
    --------
    >>> table = build_contact_table(range_mm=6, step_mm=0.1, patch="point", cache=False)
    >>> round(float(table.left.wheel_lateral_m[0, 60]), 4)
    0.7532
    """
    for key in settings:
        if key not in SETTINGS:
            raise InputError(
                "contact", f"unknown setting {shown(key)}, {nearest(key, list(SETTINGS))}", ", ".join(SETTINGS)
            )
    chosen = TableSettings(**settings)
    smoothing = chosen.profile_smoothing_mm * 1e-3

    def profile(given: str | Path | Profile | None, kind: str, default: Profile | None = None) -> Profile | None:
        if given is None:
            return default
        found = given if isinstance(given, Profile) else find_profile(given, kind=kind, smoothing_m=smoothing)
        if found.kind != kind:
            raise InputError(f"profile {found.name}", f"is a {found.kind}", f"a {kind}")
        return found

    def worn(new: Profile, other: Profile | None, fraction: float, kind: str) -> Profile:
        if fraction == 0.0:
            return new
        if other is None:
            raise InputError(f"{kind}_wear", f"is {fraction:g} without a worn_{kind}", f"a worn_{kind} profile")
        return blend(new, other, fraction)

    left_wheel, left_rail = profile(wheel, WHEEL), profile(rail, RAIL)
    assert left_wheel is not None
    assert left_rail is not None
    wheels = [left_wheel, profile(wheel_right, WHEEL, left_wheel)]
    rails = [left_rail, profile(rail_right, RAIL, left_rail)]
    worn_w, worn_r = profile(worn_wheel, WHEEL), profile(worn_rail, RAIL)
    final_wheels = [worn(w, worn_w, chosen.wheel_wear, WHEEL) for w in wheels if w is not None]
    final_rails = [worn(r, worn_r, chosen.rail_wear, RAIL) for r in rails if r is not None]

    key = _key(chosen, [*final_wheels, *final_rails])
    file = cache_folder() / f"{key}.npz"
    if cache:
        stored = _from_cache(file, key)
        if stored is not None:
            return stored
    table = _build(chosen, final_wheels, final_rails, key, threads)
    if cache:
        _to_cache(table, file)
    return table


# --- building ---------------------------------------------------------------------------------------------------


def geometry_of(chosen: TableSettings, wheels: list[Profile], rails: list[Profile]) -> ContactGeometry:
    """Wheelset and rails of the settings; `wheels` and `rails` are (left, right)."""
    radius = chosen.rolling_radius_m
    spacing = chosen.rail_spacing_mm
    return ContactGeometry(
        Wheelset(
            left=wheels[0],
            right=wheels[1],
            half_spacing_m=(0.5 * chosen.back_to_back_mm + chosen.tape_circle_mm) * 1e-3,
            left_radius_m=radius,
            right_radius_m=radius if chosen.rolling_radius_right_m is None else chosen.rolling_radius_right_m,
        ),
        Rails(
            left=rails[0],
            right=rails[1],
            left_inclination=chosen.inclination,
            right_inclination=chosen.inclination if chosen.inclination_right is None else chosen.inclination_right,
            gauge_m=None if spacing is not None else chosen.gauge_mm * 1e-3,
            gauge_depth_m=chosen.gauge_depth_mm * 1e-3,
            crown_m=None if spacing is None else 0.5 * spacing * 1e-3,
        ),
    )


def _build(
    chosen: TableSettings, wheels: list[Profile], rails: list[Profile], key: str, threads: int | None
) -> ContactTable:
    geometry = geometry_of(chosen, wheels, rails)
    half = max(4, round(chosen.range_mm / chosen.step_mm))
    step = chosen.range_mm * 1e-3 / half
    shift: Array = step * np.arange(-half, half + 1, dtype=np.float64)
    _check_centre(geometry, chosen)
    path = touching_path(geometry, shift, threads=threads)
    smoothing = chosen.smoothing_length_mm * 1e-3
    settings = PatchSettings(
        wheel_load_n=float(chosen.wheel_load_n),
        young_modulus_pa=float(chosen.young_modulus_pa),
        poisson_ratio=float(chosen.poisson_ratio),
        interpenetration=float(chosen.interpenetration),
        smoothing_m=smoothing,
        threads=threads,
    )
    symmetric = geometry.symmetric
    left = patch_table(chosen.patch, geometry, path, "left", settings)
    right = None if symmetric else patch_table(chosen.patch, geometry, path, "right", settings)
    # the vehicle's z is 0 in the centred position; what the axle sinks to get there is recorded
    start = float(path.lift_m[half])
    lift, roll = path.lift_m - start, path.roll_rad
    deviation = 0.0
    if chosen.patch != "multi":
        if smoothing > 0.0:
            left = smoothed(left, step, smoothing)
            right = None if right is None else smoothed(right, step, smoothing)
        if smoothing > 0.0 or chosen.patch == "equivalent":
            rigid = lift
            lift, roll = integrated_path(shift, left, right, 0.0, float(path.roll_rad[half]))
            deviation = float(np.abs(lift - rigid).max())
    names = "/".join([wheels[0].name, rails[0].name])
    slope = chosen.inclination
    ratio = f"1:{1.0 / slope:.4g}" if slope else "0"
    return ContactTable(
        name=f"{names}@{ratio}, gauge {chosen.gauge_mm:g} mm, {chosen.patch}",
        shift_m=shift,
        left=left,
        right=right,
        lift_m=np.ascontiguousarray(lift),
        roll_rad=np.ascontiguousarray(roll),
        interpolation=chosen.interpolation or DEFAULT_INTERPOLATION[chosen.patch],
        origin={
            "format": "profiles",
            "key": key,
            "generation": GENERATION,
            "settings": asdict(replace(chosen, smoothing_mm=chosen.smoothing_length_mm)),
            "wheels": [_provenance(p) for p in wheels],
            "rails": [_provenance(p) for p in rails],
            "symmetric": symmetric,
            "axle_height_m": geometry.height_m + start,
            "lift_off_rigid_path_m": deviation,
            "flattest_curvature_per_m": FLATTEST_CURVATURE_PER_M,
            "jumps_m": contact_jumps(geometry, path, "left"),
            "jumps_right_m": None if symmetric else contact_jumps(geometry, path, "right"),
        },
    )


def _provenance(profile: Profile) -> dict[str, Any]:
    return {"name": profile.name, "digest": profile.digest(), "origin": profile.origin}


def _check_centre(geometry: ContactGeometry, chosen: TableSettings) -> None:
    """The centred wheelset must stand on its treads; says so in terms of gauge and back-to-back distance."""
    try:
        path = geometry.touch(np.zeros(1))
    except InputError as error:
        raise InputError(
            "gauge_mm",
            f"{chosen.gauge_mm:g} with a back-to-back distance of {chosen.back_to_back_mm:g} mm: {error.problem}",
            "a gauge that fits the wheelset",
        ) from None
    for side in ("left", "right"):
        view = wheel_view(path, side)
        row = view.contact[0, primary(view)[0]]
        angle = math.atan(float(row[kernel.CONTACT_SLOPE]))
        drop = -float(getattr(geometry.wheelset, side).height(row[kernel.CONTACT_X]))
        if abs(angle) > STEEPEST_AT_CENTRE_RAD or drop > DEEPEST_AT_CENTRE_M:
            raise InputError(
                "gauge_mm",
                f"{chosen.gauge_mm:g} with a back-to-back distance of {chosen.back_to_back_mm:g} mm: the centred "
                f"wheelset rides on the flange of its {side} wheel (contact angle {math.degrees(angle):.1f} degrees, "
                f"{drop * 1e3:.1f} mm below the tape circle)",
                "a wider gauge or a smaller back-to-back distance",
            )


def contact_jumps(geometry: ContactGeometry, path: TouchingPath, side: str) -> list[float]:
    """Shifts towards the own rail at which the touching contact jumps [m], found by bisection to a nanometre."""
    view = wheel_view(path, side)
    x = view.contact[np.arange(view.shift_m.size), primary(view), kernel.CONTACT_X]
    suspects = np.flatnonzero(np.abs(np.diff(x)) > JUMP_M)
    if suspects.size == 0:
        return []
    if suspects.size > MOST_JUMPS:
        # a rough measured profile: hundreds of small jumps, known to half a step
        return [float(v) for v in 0.5 * (view.shift_m[suspects] + view.shift_m[suspects + 1])]
    sign = 1.0 if side == "left" else -1.0
    low, high = view.shift_m[suspects].copy(), view.shift_m[suspects + 1].copy()
    x_low, x_high = x[suspects].copy(), x[suspects + 1].copy()
    while float((high - low).max()) > 1e-9:
        middle = 0.5 * (low + high)
        order = np.argsort(sign * middle)
        part = geometry.touch(np.ascontiguousarray((sign * middle)[order]))
        seen = wheel_view(part, "left") if side == "left" else wheel_view(part, "right")
        place = seen.contact[np.arange(middle.size), primary(seen), kernel.CONTACT_X]
        back = np.empty(middle.size)
        back[order if side == "left" else order[::-1]] = place
        nearer_low = np.abs(back - x_low) < np.abs(back - x_high)
        low, x_low = np.where(nearer_low, middle, low), np.where(nearer_low, back, x_low)
        high, x_high = np.where(nearer_low, high, middle), np.where(nearer_low, x_high, back)
    jumped = np.abs(x_high - x_low) > JUMP_M
    return [float(v) for v in 0.5 * (low + high)[jumped]]


# --- cache ------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where tables are kept: $RAILSWEEP_CACHE, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen) / "contact"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "railsweep" / "contact"


def _key(chosen: TableSettings, profiles: list[Profile]) -> str:
    content = {
        "generation": GENERATION,
        "settings": {k: float(v) if isinstance(v, int) else v for k, v in asdict(chosen).items()},
        # names are shown in the table, so they belong to its identity
        "profiles": [[p.name, p.digest(), p.origin] for p in profiles],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _from_cache(file: Path, key: str) -> ContactTable | None:
    """The stored table, or None when there is none or it is damaged (it is then built again and replaced)."""
    if not file.is_file():
        return None
    try:
        table = read_contact_table(file)
    except InputError:
        return None
    return table if table.origin.get("key") == key else None


def _to_cache(table: ContactTable, file: Path) -> None:
    """Keep a table; a cache that cannot be written costs time only."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_contact_table(table, file)
    except (OSError, InputError):
        return
