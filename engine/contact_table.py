"""Contact tables: what one wheel does on its rail over the lateral shift of the wheelset.

A table is written for the shift TOWARDS the wheel's own rail; the other wheel reads its mirror image. This module holds
the record and its checks, the text format of the published table (RSGEO), a closed-form table (conical wheel on a
circular rail) and the conversion to the cubic coefficients that the kernels read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import read_limited
from railsweep.engine.errors import InputError, shown
from railsweep.engine.hertz import hertz_contact
from railsweep.engine.interpolation import TABLE_METHODS, piecewise_cubic
from railsweep.engine.kalker import kalker_coefficients
from railsweep.kernels import record as slot

Array = NDArray[np.float64]

MINIMUM_RANGE_M = 0.005  # a table narrower than this on either side cannot hold a running wheelset
MAXIMUM_ROWS = 1_000_000
MAXIMUM_BYTES = 256 * 2**20
SPACING_TOLERANCE = 1e-3  # of the grid step
ABSENT_FORCE_N = 1.0  # a contact point with less static force does not exist there (spec 2.8)

RSGEO_COLUMNS = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelTable:
    """Contact points of one wheel; every array has the shape (points, shifts), SI units.

    The shift is positive towards this wheel's rail. `gap_m` is the distance by which a contact point is still open on
    the path of the rigid wheelset (0 for the touching one); only tables with several points need it.
    """

    normal_force_n: Array
    angle_rad: Array
    axis_rolling_m: Array
    axis_lateral_m: Array
    wheel_lateral_m: Array
    rolling_radius_m: Array
    c11: Array
    c22: Array
    c23: Array
    rail_height_m: Array
    penetration_m: Array
    gap_m: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactTable:
    """Contact of a wheelset with the track over its lateral shift.

    Parameters
    ----------
    name : str
        Where the table comes from, shown in messages and provenance.
    shift_m : array
        Uniform, increasing lateral shifts [m].
    left : WheelTable
        Left wheel, over the shift to the left (+y).
    right : WheelTable, optional
        Right wheel, over the shift to the right (-y); the mirror image of the left one when absent.
    lift_m, roll_rad : array, optional
        Lift and roll of the rigid wheelset that touches both rails, over the shift to the LEFT. When absent they are
        integrated from the contact angles, so that dq/dy = sin(angle) holds.
    interpolation : {"cubic", "linear", "akima"}
        Between the nodes; cubic is the natural spline.
    origin : dict
        Settings the table was made with, for provenance.
    """

    name: str
    shift_m: Array
    left: WheelTable
    right: WheelTable | None = None
    lift_m: Array | None = None
    roll_rad: Array | None = None
    interpolation: str = "cubic"
    origin: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"contact table {self.name}"
        if self.interpolation not in TABLE_METHODS:
            raise InputError(where, f"interpolation {self.interpolation!r}", ", ".join(TABLE_METHODS))
        _check_grid(where, self.shift_m)
        for side, wheel in (("left", self.left), ("right", self.right)):
            if wheel is not None:
                _check_wheel(f"{where}: {side}", wheel, self.shift_m)
        for label in ("lift_m", "roll_rad"):
            path = getattr(self, label)
            if path is not None and (path.shape != self.shift_m.shape or not np.isfinite(path).all()):
                raise InputError(where, f"{label} has the wrong length or is not finite", "one number per shift")

    @property
    def points(self) -> int:
        """Largest number of contact points of a wheel."""
        return max(len(w.angle_rad) for w in (self.left, self.right) if w is not None)

    @property
    def centre_radius_m(self) -> float:
        """Rolling radius of the left wheel in the centred position [m]: the base radius of free rolling."""
        return float(np.interp(0.0, self.shift_m, self.left.rolling_radius_m[0]))


def _check_grid(where: str, shift: Array) -> None:
    if shift.ndim != 1 or shift.size < 4:
        raise InputError(where, f"{shift.size} lateral shifts", "at least 4")
    if not np.isfinite(shift).all():
        raise InputError(where, f"shift {int(np.argmin(np.isfinite(shift)))} is not finite", "finite numbers")
    step = np.diff(shift)
    if (step <= 0.0).any():
        at = int(np.argmax(step <= 0.0))
        raise InputError(where, f"shift is not increasing at row {at + 1}: {shift[at + 1]:g} m", "increasing shifts")
    mean = (shift[-1] - shift[0]) / (shift.size - 1)
    if (np.abs(step - mean) > SPACING_TOLERANCE * mean).any():
        at = int(np.argmax(np.abs(step - mean) > SPACING_TOLERANCE * mean))
        raise InputError(where, f"uneven shift step {step[at]:g} m at row {at + 1}", f"a uniform step ({mean:g} m)")
    if shift[0] > -MINIMUM_RANGE_M or shift[-1] < MINIMUM_RANGE_M:
        raise InputError(
            where,
            f"lateral range {shift[0] * 1e3:g} .. {shift[-1] * 1e3:g} mm is too narrow",
            f"at least +-{MINIMUM_RANGE_M * 1e3:g} mm",
        )


def _check_wheel(where: str, wheel: WheelTable, shift: Array) -> None:
    shape = wheel.angle_rad.shape
    if wheel.angle_rad.ndim != 2 or shape[1] != shift.size or shape[0] < 1:
        raise InputError(where, f"angle_rad has shape {shape}", f"(points, {shift.size})")
    for item in fields(WheelTable):
        column = getattr(wheel, item.name)
        if column is None:
            continue
        if column.shape != shape:
            raise InputError(where, f"{item.name} has shape {column.shape}", str(shape))
        if not np.isfinite(column).all():
            row = int(np.argmax(~np.isfinite(column).all(axis=0)))
            raise InputError(where, f"{item.name} is not finite at shift {shift[row]:g} m", "finite numbers")
    if (np.abs(wheel.angle_rad) >= 0.5 * math.pi).any():
        raise InputError(where, "contact angle of 90 degrees or more", "-pi/2 < angle_rad < pi/2")
    present = wheel.normal_force_n > ABSENT_FORCE_N
    if not present.any(axis=0).all():
        row = int(np.argmin(present.any(axis=0)))
        raise InputError(where, f"no contact point carries force at shift {shift[row]:g} m", "at least one")
    for name in ("axis_rolling_m", "axis_lateral_m", "wheel_lateral_m", "rolling_radius_m", "penetration_m"):
        bad = present & (getattr(wheel, name) <= 0.0)
        if bad.any():
            row = int(np.argmax(bad.any(axis=0)))
            raise InputError(where, f"{name} is not positive at shift {shift[row]:g} m", "> 0")
    for name in ("c11", "c22", "c23"):
        if (present & (getattr(wheel, name) < 0.0)).any():
            raise InputError(where, f"{name} is negative", ">= 0")


# --- the RSGEO text format --------------------------------------------------------------------------------------


def load_contact_table(path: str | Path, *, interpolation: str = "cubic") -> ContactTable:
    """Read a contact table in the RSGEO text format of the published program.

    Blocks of rows with 13 numbers (shift, normal force, angle, a, b, wheel lateral, rolling radius, C11, C22, C23,
    rail height, penetration, one unused), one block per contact point, each after a line ``#`` and a quoted header.

    Parameters
    ----------
    path : str or Path
        The file.
    interpolation : {"cubic", "linear", "akima"}
        How the kernels interpolate between the rows.
    """
    file = Path(path)
    try:
        text = read_limited(file, MAXIMUM_BYTES, "an RSGEO text file").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(str(file), "is not text", "an RSGEO text file") from None

    blocks: list[list[list[float]]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith('"'):
            continue
        if line.startswith("#"):
            blocks.append([])
            continue
        where = f"{file}: line {number}"
        words = line.split()
        if len(words) != RSGEO_COLUMNS:
            raise InputError(where, f"{len(words)} columns: {shown(line)}", f"{RSGEO_COLUMNS} numbers")
        try:
            row = [float(word) for word in words]
        except ValueError:
            hint = " (decimal comma?)" if "," in line else ""
            raise InputError(where, f"not numbers{hint}: {shown(line)}", f"{RSGEO_COLUMNS} numbers") from None
        if not all(map(math.isfinite, row)):
            raise InputError(where, f"a number is not finite: {shown(line)}", "finite numbers")
        if not blocks:
            blocks.append([])
        blocks[-1].append(row)
        if len(blocks[-1]) > MAXIMUM_ROWS:
            raise InputError(where, "too many rows", f"at most {MAXIMUM_ROWS}")
    blocks = [block for block in blocks if block]
    if not blocks:
        raise InputError(str(file), "holds no rows", f"rows of {RSGEO_COLUMNS} numbers")
    if any(len(block) != len(blocks[0]) for block in blocks):
        raise InputError(str(file), f"blocks of {[len(b) for b in blocks]} rows", "blocks of equal length")
    columns = np.array(blocks).transpose(2, 0, 1)
    shift = columns[0]
    if np.abs(shift - shift[0]).max() > 1e-9:
        raise InputError(str(file), "blocks with different shifts", "the same shifts in every block")
    return ContactTable(
        name=file.name,
        shift_m=np.ascontiguousarray(shift[0]),
        left=WheelTable(
            normal_force_n=columns[1],
            angle_rad=columns[2],
            axis_rolling_m=columns[3],
            axis_lateral_m=columns[4],
            wheel_lateral_m=columns[5],
            rolling_radius_m=columns[6],
            c11=columns[7],
            c22=columns[8],
            c23=columns[9],
            rail_height_m=columns[10],
            penetration_m=columns[11],
        ),
        interpolation=interpolation,
        origin={"format": "rsgeo", "file": file.name},
    )


def save_contact_table(table: ContactTable, path: str | Path) -> None:
    """Write the left wheel of a table in the RSGEO text format (the format knows one wheel and its mirror image)."""
    if table.right is not None:
        raise InputError(f"contact table {table.name}", "has different wheels", "a symmetric table for RSGEO text")
    header = " ".join(
        f'"{word}"'
        for word in [
            "shift_m",
            "normal_force_n",
            "angle_rad",
            "a_m",
            "b_m",
            "wheel_lateral_m",
            "rolling_radius_m",
            "c11",
            "c22",
            "c23",
            "rail_height_m",
            "penetration_m",
            "unused",
        ]
    )
    wheel = table.left
    lines = []
    for p in range(wheel.angle_rad.shape[0]):
        lines += ["#", header]
        rows = np.column_stack(
            [
                table.shift_m,
                wheel.normal_force_n[p],
                wheel.angle_rad[p],
                wheel.axis_rolling_m[p],
                wheel.axis_lateral_m[p],
                wheel.wheel_lateral_m[p],
                wheel.rolling_radius_m[p],
                wheel.c11[p],
                wheel.c22[p],
                wheel.c23[p],
                wheel.rail_height_m[p],
                wheel.penetration_m[p],
                np.zeros_like(table.shift_m),
            ]
        )
        lines += [" ".join(f"{value:.17g}" for value in row) for row in rows]
    Path(path).write_text("\n".join(lines) + "\n\n", encoding="utf-8")


# --- a closed-form table ----------------------------------------------------------------------------------------


def conical_table(
    *,
    conicity: float = 0.05,
    rolling_radius_m: float = 0.425,
    half_spacing_m: float = 0.75,
    rail_radius_m: float = 0.3,
    wheel_load_n: float = 66_600.0,
    young_modulus_pa: float = 2.1e11,
    poisson_ratio: float = 0.27,
    range_m: float = 0.02,
    step_m: float = 5e-5,
    interpolation: str = "cubic",
) -> ContactTable:
    """Contact table of a conical wheel on a circular rail, from its exact touching condition.

    Parameters
    ----------
    conicity : float
        Tangent of the cone angle [-].
    rolling_radius_m, half_spacing_m : float
        Wheel radius at the running circle, and half the distance of the running circles [m].
    rail_radius_m : float
        Radius of the rail head [m]; must be positive.
    wheel_load_n : float
        Static vertical load of one wheel [N].
    young_modulus_pa, poisson_ratio : float
        Material of wheel and rail, for the Hertz ellipse and Kalker's coefficients.
    range_m, step_m : float
        The table covers -range .. +range in steps of about `step_m` [m].

    Examples
    --------
    >>> table = conical_table(conicity=0.1)
    >>> bool(abs(table.left.angle_rad[0, 0] - 0.0996687) < 1e-6)
    True
    """
    where = "conical_table"
    for label, value in (
        ("rolling_radius_m", rolling_radius_m),
        ("half_spacing_m", half_spacing_m),
        ("rail_radius_m", rail_radius_m),
        ("wheel_load_n", wheel_load_n),
        ("young_modulus_pa", young_modulus_pa),
        ("range_m", range_m),
        ("step_m", step_m),
    ):
        if not (math.isfinite(value) and value > 0.0):
            raise InputError(where, f"{label} = {value}", "a positive number")
    if not (math.isfinite(conicity) and 0.0 <= conicity <= 1.0):
        raise InputError(where, f"conicity = {conicity}", "0 .. 1")
    if range_m / step_m > MAXIMUM_ROWS / 2:
        raise InputError(where, f"range_m / step_m = {range_m / step_m:g}", f"at most {MAXIMUM_ROWS // 2}")
    half = max(4, round(range_m / step_m))
    shift = np.linspace(-range_m, range_m, 2 * half + 1)
    cone = math.atan(conicity)
    lift, roll = _cone_on_circle(shift, cone, rolling_radius_m, half_spacing_m, rail_radius_m)

    # left contact point on the rail, seen from the wheelset
    sin_sum, cos_sum = np.sin(cone + roll), np.cos(cone + roll)
    point_y = half_spacing_m + rail_radius_m * (math.sin(cone) - sin_sum)
    point_z = rail_radius_m * (cos_sum - math.cos(cone))
    dy, dz = point_y - shift, point_z - (rolling_radius_m + lift)
    lever = dy * np.cos(roll) + dz * np.sin(roll)
    radius = dy * np.sin(roll) - dz * np.cos(roll)

    load = np.full_like(shift, wheel_load_n * math.cos(cone))
    patch = hertz_contact(0.5 * math.cos(cone) / radius, 0.5 / rail_radius_m, load, young_modulus_pa, poisson_ratio)
    kalker = kalker_coefficients(patch.a / patch.b, poisson_ratio)

    def one(values: Any) -> Array:
        return np.ascontiguousarray(np.asarray(values, dtype=float)[None, :])

    return ContactTable(
        name=f"cone {conicity:g} on circle {rail_radius_m:g} m",
        shift_m=shift,
        left=WheelTable(
            normal_force_n=one(load),
            angle_rad=one(np.full_like(shift, cone)),
            axis_rolling_m=one(patch.a),
            axis_lateral_m=one(patch.b),
            wheel_lateral_m=one(lever),
            rolling_radius_m=one(radius),
            c11=one(kalker.c11),
            c22=one(kalker.c22),
            c23=one(kalker.c23),
            rail_height_m=one(point_z),
            penetration_m=one(patch.penetration),
        ),
        lift_m=lift,
        roll_rad=roll,
        interpolation=interpolation,
        origin={
            "format": "conical",
            "conicity": conicity,
            "rolling_radius_m": rolling_radius_m,
            "half_spacing_m": half_spacing_m,
            "rail_radius_m": rail_radius_m,
            "wheel_load_n": wheel_load_n,
        },
    )


def _cone_on_circle(y: Array, cone: float, r0: float, a0: float, rho: float) -> tuple[Array, Array]:
    """Lift and roll at which both cones touch both circles.

    Each cone is a straight line through the wheelset point (+-a0, -r0); touching means that the distance of the rail
    circle's centre from that line is the rail radius. Newton's method in (lift, roll) for all shifts at once.
    """
    z, roll = np.zeros_like(y), np.zeros_like(y)
    centre_y, centre_z = a0 + rho * math.sin(cone), -rho * math.cos(cone)
    for _ in range(50):
        s, c = np.sin(roll), np.cos(roll)
        residual, gradient = [], []
        for side in (1.0, -1.0):
            angle = cone + side * roll
            n_y, n_z = -side * np.sin(angle), np.cos(angle)
            p_y, p_z = y + side * a0 * c + r0 * s, z + r0 + side * a0 * s - r0 * c
            d_y, d_z = p_y - side * centre_y, p_z - centre_z
            residual.append(d_y * n_y + d_z * n_z - rho)
            gradient.append(
                (-side * a0 * s + r0 * c) * n_y
                + (side * a0 * c + r0 * s) * n_z
                + d_y * (-np.cos(angle))
                + d_z * (-side * np.sin(angle))
            )
            if side > 0:
                n_left = n_z
            else:
                n_right = n_z
        determinant = n_left * gradient[1] - n_right * gradient[0]
        dz = (residual[0] * gradient[1] - residual[1] * gradient[0]) / determinant
        droll = (n_left * residual[1] - n_right * residual[0]) / determinant
        z, roll = z - dz, roll - droll
        if max(np.abs(dz).max(), np.abs(droll).max()) < 1e-16 + 1e-14 * a0:
            break
    else:
        raise InputError(
            "conical_table", "the wheelset does not touch both rails over the whole range", "a smaller range_m"
        )
    return z, roll


# --- packing ----------------------------------------------------------------------------------------------------


def rigid_path(table: ContactTable) -> tuple[Array, Array]:
    """Lift [m] and roll [rad] of the rigid wheelset over the shift to the left.

    Taken from the table, or integrated from the contact angles: both wheels keep touching,

        cos(dl + roll) lift' + (al cos dl - rl sin dl) roll' =  sin(dl + roll)
        cos(dr - roll) lift' - (ar cos dr - rr sin dr) roll' = -sin(dr - roll)

    with the left table at +y and the right one at -y. The lift that a table prints (rail height, rolling radius) need
    not agree with its own angles; the published one does not between 0 and 4 mm (spec 2.9).
    """
    if table.lift_m is not None and table.roll_rad is not None:
        return table.lift_m, table.roll_rad
    shift = table.shift_m
    right = table.right or table.left

    def main(wheel: WheelTable, column: str) -> Array:
        strongest = np.argmax(wheel.normal_force_n, axis=0)
        return np.asarray(getattr(wheel, column)[strongest, np.arange(shift.size)])

    values = np.array(
        [main(table.left, c) for c in ("angle_rad", "wheel_lateral_m", "rolling_radius_m")]
        + [np.interp(-shift, shift, main(right, c)) for c in ("angle_rad", "wheel_lateral_m", "rolling_radius_m")]
    )

    def slope(v: Array, roll: float) -> tuple[float, float]:
        dl, al, rl, dr, ar, rr = v
        left, other = al * math.cos(dl) - rl * math.sin(dl), -(ar * math.cos(dr) - rr * math.sin(dr))
        cl, cr = math.cos(dl + roll), math.cos(dr - roll)
        sl, sr = math.sin(dl + roll), -math.sin(dr - roll)
        determinant = cl * other - cr * left
        return (sl * other - sr * left) / determinant, (cl * sr - cr * sl) / determinant

    lift, roll = np.zeros_like(shift), np.zeros_like(shift)
    start = int(np.argmin(np.abs(shift)))
    for direction in (1, -1):
        k = start
        while 0 <= k + direction < shift.size:
            h = shift[k + direction] - shift[k]
            z1, r1 = slope(values[:, k], float(roll[k]))
            z2, r2 = slope(values[:, k + direction], float(roll[k] + h * r1))
            lift[k + direction] = lift[k] + 0.5 * h * (z1 + z2)
            roll[k + direction] = roll[k] + 0.5 * h * (r1 + r2)
            k += direction
    return lift, roll


def pack_contact(table: ContactTable, *, geometric_lift: bool) -> tuple[Array, Array, tuple[int, int, int, int]]:
    """Grid records, cubic coefficients, and (first, count) of the left and right tables, as the kernels read them."""
    shift = table.shift_m
    lift, roll = rigid_path(table) if geometric_lift else (np.zeros_like(shift), np.zeros_like(shift))
    flipped = (np.interp(-shift, shift, lift), -np.interp(-shift, shift, roll))
    symmetric = table.right is None and (
        not geometric_lift or (np.abs(lift - flipped[0]).max() < 1e-9 and np.abs(roll - flipped[1]).max() < 1e-9)
    )
    wheels = [(table.left, lift, roll)]
    if not symmetric:
        wheels.append((table.right or table.left, *flipped))
    middle = np.array([np.interp(0.0, shift, row) for row in table.left.penetration_m])
    carrying = np.array([np.interp(0.0, shift, row) for row in table.left.normal_force_n]) > ABSENT_FORCE_N
    reference = float(middle[carrying].max())

    grids: list[list[float]] = []
    coefficients: list[Array] = []
    ranges: list[int] = []
    first = 0
    for wheel, path_lift, path_roll in wheels:
        ranges += [len(grids), wheel.angle_rad.shape[0]]
        for p in range(wheel.angle_rad.shape[0]):
            columns = _packed_columns(wheel, p, path_lift, path_roll, reference if geometric_lift else None)
            coefficients.append(piecewise_cubic(shift, columns, table.interpolation))
            step = (shift[-1] - shift[0]) / (shift.size - 1)
            grids.append([shift[0], 1.0 / step, shift.size - 1.0, float(first)])
            first += shift.size - 1
    if symmetric:
        ranges += ranges
    packed = np.ascontiguousarray(np.concatenate(coefficients))
    return np.array(grids), packed, (ranges[0], ranges[1], ranges[2], ranges[3])


def _packed_columns(wheel: WheelTable, p: int, lift: Array, roll: Array, reference: float | None) -> Array:
    absent = wheel.normal_force_n[p] <= ABSENT_FORCE_N
    q0 = np.where(absent, 1e-6, wheel.penetration_m[p])
    hertz = np.where(absent, 0.0, wheel.normal_force_n[p]) / q0**1.5
    a, b = wheel.axis_rolling_m[p] / np.sqrt(q0), wheel.axis_lateral_m[p] / np.sqrt(q0)
    if reference is None:
        penetration = q0
    else:
        gap = wheel.gap_m[p] if wheel.gap_m is not None else np.zeros_like(lift)
        penetration = reference - gap
    columns = np.empty((slot.TABLE_COLUMNS, lift.size))
    columns[slot.SIN_ANGLE] = np.sin(wheel.angle_rad[p])
    columns[slot.COS_ANGLE] = np.cos(wheel.angle_rad[p])
    columns[slot.HERTZ] = hertz
    columns[slot.PENETRATION] = penetration
    columns[slot.LIFT] = lift
    columns[slot.PATH_ROLL] = roll
    columns[slot.LEVER] = wheel.wheel_lateral_m[p]
    columns[slot.RADIUS] = wheel.rolling_radius_m[p]
    columns[slot.CREEP_11] = a * b * wheel.c11[p]
    columns[slot.CREEP_22] = a * b * wheel.c22[p]
    columns[slot.CREEP_23] = (a * b) ** 1.5 * wheel.c23[p]
    columns[slot.AXIS_A] = a
    columns[slot.AXIS_B] = b
    return columns
