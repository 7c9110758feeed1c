"""Patch models: from the contacts of the rigid wheelset to the rows of a contact table.

* `point`: the one contact that touches; Hertz ellipse from the curvatures there. Columns jump where the contact jumps.
* `equivalent`: the undeformed profiles are pushed into each other by 0.55 of the Hertz approach (Kik and Piotrowski's
  virtual interpenetration), all zones of overlap are merged. Place, radius and angle are centroid and resultant,
  weighted with the depth of overlap; the lateral curvature is the one whose parabola has the same overlap area at the
  same depth, so that a single smooth contact gives back its own Hertz ellipse. Lift and roll are integrated from the
  resultant angles, which keeps dq/dy = sin(delta).
* `multi`: every local contact is followed over the shift and gets a row of its own: Hertz ellipse, angle and radius,
  and the distance by which it is still open. All share one vertical sink, so the load is shared by penetration.

Normal force: N0 = Q cos(delta) as in the published tables (spec 2.8.1); for several contacts the sum of the normal
forces is Q times their mean cosine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.contact_geometry import SIDES, ContactGeometry, TouchingPath
from railsweep.engine.contact_table import ABSENT_FORCE_N, WheelTable
from railsweep.engine.errors import InputError
from railsweep.engine.hertz import hertz_contact
from railsweep.engine.kalker import kalker_coefficients
from railsweep.kernels import geometry as kernel

Array = NDArray[np.float64]

PATCHES = ("point", "equivalent", "multi")
FLATTEST_CURVATURE_PER_M = 0.02  # floor of the lateral curvature sum / 2: a relative radius of 25 m is flat
SINK_TOLERANCE = 1e-12  # relative, of the virtual interpenetration
SINK_ITERATIONS = 100
LARGEST_SINK_ERROR = 1e-6  # of a sink that found no better one, relative
SECANT_TRIALS = 20  # then bisection
OPEN_LIMIT_M = 3e-4  # contacts that never come closer than this are left out of a `multi` table
SAME_ROW_M = 1e-3  # two contacts share a row when they are this far apart in shift
ABSENT_PENETRATION_M = 1e-6  # what the packer of contact tables assumes of a contact without force
IDLE_PENETRATION_M = 1e-7  # stands for the static penetration of an open contact, to carry its stiffness


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSettings:
    """What the patch models need to know beside the geometry."""

    wheel_load_n: float
    young_modulus_pa: float
    poisson_ratio: float
    interpenetration: float = 0.55
    smoothing_m: float = 0.0
    threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelView:
    """One wheel over the shift towards its own rail: contacts, and the lift and own roll of the wheelset."""

    side: str
    shift_m: Array
    roll_rad: Array
    contact: Array  # (shift, contact, column)
    count: NDArray[np.int64]
    path_row: NDArray[np.int64]


def touching_path(geometry: ContactGeometry, shift: Array, *, threads: int | None = None) -> TouchingPath:
    """The rigid path over a symmetric grid of shifts; of mirrored sides only one half is computed."""
    if not geometry.symmetric:
        return geometry.touch(shift, threads=threads)
    half = shift[shift.size // 2 :]
    path = geometry.touch(half, threads=threads)
    flip = slice(None, 0, -1)
    # the centred wheelset: both wheels carry the left contact, so that the mirror image is exact
    contact, count = path.contact.copy(), path.count.copy()
    contact[0, 1], count[0, 1] = contact[0, 0], count[0, 0]
    return replace(
        path,
        shift_m=shift,
        lift_m=np.concatenate([path.lift_m[flip], path.lift_m]),
        roll_rad=np.concatenate([-path.roll_rad[flip], path.roll_rad]),
        contact=np.concatenate([contact[flip][:, ::-1], contact]),
        count=np.concatenate([count[flip][:, ::-1], count]),
    )


def wheel_view(path: TouchingPath, side: str) -> WheelView:
    """The contacts of one wheel in the order of its own shift."""
    rows = np.arange(path.shift_m.size)
    if side == "right":
        rows = rows[::-1]
    sign = 1.0 if side == "left" else -1.0
    number = SIDES.index(side)
    return WheelView(
        side=side,
        shift_m=sign * path.shift_m[rows],
        roll_rad=sign * path.roll_rad[rows],
        contact=path.contact[rows, number],
        count=path.count[rows, number],
        path_row=rows,
    )


def patch_table(
    patch: str, geometry: ContactGeometry, path: TouchingPath, side: str, settings: PatchSettings
) -> WheelTable:
    """The rows of one wheel for one patch model, before smoothing."""
    view = wheel_view(path, side)
    if patch == "point":
        return _point(geometry, view, settings)
    if patch == "equivalent":
        return _equivalent(geometry, path, view, settings)
    if patch == "multi":
        return _multi(geometry, view, settings)
    raise InputError("patch", f"is {patch!r}", ", ".join(PATCHES))


# --- point ------------------------------------------------------------------------------------------------------


def _columns(geometry: ContactGeometry, side: str, contact: Array) -> dict[str, Array]:
    """Geometry of contacts given as kernel rows (..., column)."""
    slope, rail_slope = contact[..., kernel.CONTACT_SLOPE], contact[..., kernel.CONTACT_RAIL_SLOPE]
    angle = np.arctan(slope)
    wheel = contact[..., kernel.CONTACT_WHEEL_BEND] / (1.0 + slope * slope) ** 1.5
    rail = contact[..., kernel.CONTACT_RAIL_BEND] / (1.0 + rail_slope * rail_slope) ** 1.5
    x = contact[..., kernel.CONTACT_X]
    wheelset = geometry.wheelset
    radius = getattr(wheelset, f"{side}_radius_m") - getattr(wheelset, side).height(x)
    return {
        "angle_rad": angle,
        "wheel_lateral_m": wheelset.half_spacing_m + x,
        "rolling_radius_m": radius,
        "rail_height_m": contact[..., kernel.CONTACT_RAIL_Z],
        "rolling_curvature": 0.5 * np.cos(angle) / radius,
        "lateral_curvature": np.maximum(0.5 * (wheel - rail), FLATTEST_CURVATURE_PER_M),
    }


def _hertz_columns(columns: dict[str, Array], load: Array, settings: PatchSettings) -> dict[str, Array]:
    patch = hertz_contact(
        columns["rolling_curvature"],
        columns["lateral_curvature"],
        load,
        settings.young_modulus_pa,
        settings.poisson_ratio,
    )
    kalker = kalker_coefficients(patch.a / patch.b, settings.poisson_ratio)
    return {
        "normal_force_n": load,
        "axis_rolling_m": patch.a,
        "axis_lateral_m": patch.b,
        "penetration_m": patch.penetration,
        "c11": kalker.c11,
        "c22": kalker.c22,
        "c23": kalker.c23,
    }


def _table(columns: dict[str, Array], gap: Array | None = None) -> WheelTable:
    names = [item.name for item in fields(WheelTable) if item.name != "gap_m"]
    rows: dict[str, Any] = {name: np.ascontiguousarray(np.atleast_2d(columns[name])) for name in names}
    return WheelTable(**rows, gap_m=gap)


def primary(view: WheelView) -> NDArray[np.int64]:
    """Number of the touching contact at each shift."""
    gap = view.contact[:, :, kernel.CONTACT_GAP].copy()
    gap[np.arange(gap.shape[1]) >= view.count[:, None]] = np.inf
    return np.asarray(np.argmin(gap, axis=1))


def _point(geometry: ContactGeometry, view: WheelView, settings: PatchSettings) -> WheelTable:
    contact = view.contact[np.arange(view.shift_m.size), primary(view)]
    columns = _columns(geometry, view.side, contact)
    load = settings.wheel_load_n * np.cos(columns["angle_rad"])
    return _table(columns | _hertz_columns(columns, load, settings))


# --- equivalent -------------------------------------------------------------------------------------------------


def _equivalent(geometry: ContactGeometry, path: TouchingPath, view: WheelView, settings: PatchSettings) -> WheelTable:
    """Solve for all shifts at once: sink = factor * approach / cos(angle); bracketed secant steps on the logarithms."""
    rows = view.path_row
    start = _point(geometry, view, settings)
    log_sink = np.log(settings.interpenetration * start.penetration_m[0] / np.cos(start.angle_rad[0] + view.roll_rad))
    columns: dict[str, Array] = {}
    last_sink, last_error = np.full(rows.size, np.nan), np.zeros(rows.size)
    low, high = np.full(rows.size, -np.inf), np.full(rows.size, np.inf)
    active = np.arange(rows.size)
    for trial in range(SINK_ITERATIONS):
        sink = log_sink[active]
        found = _merged(geometry, path, view, active, np.exp(sink), settings)
        if not columns:
            columns = {name: values.copy() for name, values in found.items()}
        for name, values in found.items():
            columns[name][active] = values
        cosine = np.cos(found["angle_rad"] + view.roll_rad[active])
        error = np.log(settings.interpenetration * found["penetration_m"] / cosine) - sink
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (error - last_error[active]) / (sink - last_sink[active])
        # a larger sink merges more, which can only lower the approach: the slope is -1 or steeper, up to rounding
        slope = np.clip(np.where(np.isfinite(slope), slope, -1.0), -8.0, -0.7)
        last_sink[active], last_error[active] = sink, error
        low[active] = np.where(error > 0.0, sink, low[active])
        high[active] = np.where(error > 0.0, high[active], sink)
        following = sink - error / slope
        outside = (following <= low[active]) | (following >= high[active])
        if trial >= SECANT_TRIALS:
            outside |= np.isfinite(low[active] + high[active])
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low[active] + high[active])
        log_sink[active] = np.where(outside & np.isfinite(middle), middle, following)
        active = active[np.abs(error) > SINK_TOLERANCE]
        if active.size == 0:
            return _table(columns)
    if float(np.abs(last_error[active]).max()) > LARGEST_SINK_ERROR:
        at = float(view.shift_m[active[0]])
        raise InputError(
            f"equivalent patch at shift {at * 1e3:.3f} mm",
            "the overlap of the profiles does not settle: they are too rough to merge their contacts",
            "a profile smoothing length, or another patch model",
        )
    return _table(columns)


def _merged(
    geometry: ContactGeometry,
    path: TouchingPath,
    view: WheelView,
    rows: NDArray[np.int64],
    sink: Array,
    settings: PatchSettings,
) -> dict[str, Array]:
    """Columns of the merged patch for a given vertical sink."""
    m = geometry.interpenetrate(view.side, path, view.path_row[rows], sink, threads=settings.threads)
    area = m[:, kernel.MOMENT_AREA]
    angle = np.arctan2(m[:, kernel.MOMENT_SIN], m[:, kernel.MOMENT_COS])
    radius = m[:, kernel.MOMENT_RADIUS] / area
    depth = sink * np.cos(angle + view.roll_rad[rows])
    columns = {
        "angle_rad": angle,
        "wheel_lateral_m": geometry.wheelset.half_spacing_m + m[:, kernel.MOMENT_X] / area,
        "rolling_radius_m": radius,
        "rail_height_m": m[:, kernel.MOMENT_RAIL_Z] / area,
        "rolling_curvature": 0.5 * np.cos(angle) / radius,
        # a parabola B s^2 overlaps by 4/3 depth^1.5 / sqrt(B)
        "lateral_curvature": np.maximum(16.0 / 9.0 * depth**3 / area**2, FLATTEST_CURVATURE_PER_M),
    }
    return columns | _hertz_columns(columns, settings.wheel_load_n * np.cos(angle), settings)


# --- multi ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Branch:
    """One contact followed over the shift: rows first .. first + len(pick) - 1, and its number in each of them."""

    first: int
    pick: list[int]

    @property
    def end(self) -> int:
        return self.first + len(self.pick)


def contact_branches(view: WheelView) -> list[_Branch]:
    """Follow every local contact from shift to shift: nearest predicted place first, each contact used once.

    A contact that is farther than the mean of its neighbours' spacing from every prediction starts a new branch.
    """
    step = float(view.shift_m[1] - view.shift_m[0])
    reach = max(6e-4, 20.0 * step)
    done: list[_Branch] = []
    live: list[tuple[_Branch, float, float]] = []
    for k in range(view.shift_m.size):
        x = view.contact[k, : view.count[k], kernel.CONTACT_X]
        pairs = sorted(
            (abs(float(x[i]) - (place + speed)), b, i)
            for b, (_, place, speed) in enumerate(live)
            for i in range(x.size)
        )
        of_branch: dict[int, int] = {}
        used: set[int] = set()
        for distance, b, i in pairs:
            if distance > reach:
                break
            if b not in of_branch and i not in used:
                of_branch[b] = i
                used.add(i)
        following: list[tuple[_Branch, float, float]] = []
        for b, (branch, place, _) in enumerate(live):
            if b in of_branch:
                i = of_branch[b]
                branch.pick.append(i)
                following.append((branch, float(x[i]), float(np.clip(x[i] - place, -reach, reach))))
            else:
                done.append(branch)
        for i in range(x.size):
            if i not in used:
                following.append((_Branch(k, [i]), float(x[i]), 0.0))
        live = following
    return _joined(view, done + [branch for branch, _, _ in live])


def _joined(view: WheelView, branches: list[_Branch]) -> list[_Branch]:
    """One branch where the touching contact ends in one row and the touching contact of the next row is new.

    It has swept over a conforming stretch (S1002's 13 mm root on the 13 mm gauge corner) within one step.
    """
    touching = primary(view)
    ending = {b.end: b for b in branches if b.pick[-1] == touching[b.end - 1]}
    joined: list[_Branch] = []
    gone: set[int] = set()
    for branch in sorted(branches, key=lambda b: b.first):
        before = ending.get(branch.first)
        if before is not None and branch.pick[0] == touching[branch.first] and id(before) not in gone:
            before.pick.extend(branch.pick)
            gone.add(id(branch))
            if branch.pick[-1] == touching[branch.end - 1]:
                ending[before.end] = before
        else:
            joined.append(branch)
    return joined


def _multi(geometry: ContactGeometry, view: WheelView, settings: PatchSettings) -> WheelTable:
    n = view.shift_m.size
    step = float(view.shift_m[1] - view.shift_m[0])
    branches = []
    for branch in contact_branches(view):
        rows = np.arange(branch.first, branch.end)
        contact = view.contact[rows, branch.pick]
        columns = _columns(geometry, view.side, contact)
        cosine = np.cos(columns["angle_rad"] + view.roll_rad[rows])
        gap = np.maximum(contact[:, kernel.CONTACT_GAP], 0.0) * cosine
        if float(gap.min()) > OPEN_LIMIT_M:
            continue
        unit = _hertz_columns(columns, np.full(rows.size, 1.0), settings)
        columns["stiffness"] = 1.0 / unit["penetration_m"] ** 1.5
        columns["gap_m"], columns["cosine"] = gap, cosine
        columns["presence"] = _presence(rows, gap, n, step, settings.smoothing_m)
        branches.append((branch, rows, columns))
    shared = _shared_sink(view, branches, settings)

    rows_of_table = _table_rows(branches, n, step, view)
    names = (
        *("angle_rad", "wheel_lateral_m", "rolling_radius_m", "rail_height_m", "gap_m"),
        *("rolling_curvature", "lateral_curvature", "stiffness", "presence", "cosine"),
    )
    stacked = {name: np.zeros((len(rows_of_table), n)) for name in names}
    for p, members in enumerate(rows_of_table):
        for name in names:
            known_rows = np.concatenate([branches[b][1] for b in members])
            known = np.concatenate([branches[b][2][name] for b in members])
            if name == "presence":
                stacked[name][p, known_rows] = known
            else:
                # where the contact does not exist its force is zero; the columns just stay smooth
                stacked[name][p] = np.interp(np.arange(n), known_rows, known)
    penetration = np.maximum(shared * stacked["cosine"] - stacked["gap_m"], IDLE_PENETRATION_M)
    load = stacked["stiffness"] * penetration**1.5
    table = _hertz_columns(stacked, load, settings)
    table["normal_force_n"] = load * stacked["presence"]
    # Where a contact is absent the packer divides by sqrt(ABSENT_PENETRATION_M); axes to match keep its columns smooth.
    absent = table["normal_force_n"] <= ABSENT_FORCE_N
    scale = np.where(absent, np.sqrt(ABSENT_PENETRATION_M / penetration), 1.0)
    table["penetration_m"] = np.where(absent, ABSENT_PENETRATION_M, penetration)
    table["axis_rolling_m"] = table["axis_rolling_m"] * scale
    table["axis_lateral_m"] = table["axis_lateral_m"] * scale
    return _table(stacked | table, gap=np.ascontiguousarray(stacked["gap_m"]))


def _presence(rows: NDArray[np.int64], gap: Array, n: int, step: float, smoothing: float) -> Array:
    """1 where the contact exists, falling to 0 over the smoothing length before an end of its branch.

    It stays 1 where the contact is the one that touches.
    """
    weight = np.ones(rows.size)
    touching = np.flatnonzero(gap < 1e-9)
    for end, direction in ((0, 1), (rows.size - 1, -1)):
        if rows[end] in (0, n - 1):
            continue
        room = rows.size
        if touching.size:
            room = int(touching[0]) if direction == 1 else rows.size - 1 - int(touching[-1])
        length = min(round(smoothing / step), room)
        if length < 1:
            continue
        t = np.arange(length) / length
        index = end + direction * np.arange(length)
        weight[index] = np.minimum(weight[index], t * t * (3.0 - 2.0 * t))
    return weight


def _shared_sink(view: WheelView, branches: list[Any], settings: PatchSettings) -> Array:
    """Vertical sink at which the contacts together carry Q times their mean cosine, by bisection for all shifts."""
    n = view.shift_m.size
    size = max(len(branches), 1)
    gap, cosine, stiffness = np.full((size, n), 1.0), np.ones((size, n)), np.zeros((size, n))
    angle_cosine = np.ones((size, n))
    for b, (_, rows, columns) in enumerate(branches):
        gap[b, rows], cosine[b, rows] = columns["gap_m"], columns["cosine"]
        stiffness[b, rows] = columns["stiffness"] * columns["presence"]
        angle_cosine[b, rows] = np.cos(columns["angle_rad"])
    low, high = np.zeros(n), np.full(n, 5e-3)
    for _ in range(60):
        middle = 0.5 * (low + high)
        force = stiffness * np.maximum(middle * cosine - gap, 0.0) ** 1.5
        total = force.sum(axis=0)
        wanted = settings.wheel_load_n * (force * angle_cosine).sum(axis=0) / np.where(total > 0.0, total, 1.0)
        enough = (total > 0.0) & (total >= wanted)
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return np.asarray(0.5 * (low + high))


def _table_rows(branches: list[Any], n: int, step: float, view: WheelView) -> list[list[int]]:
    """Put branches that are well apart into one row; the row of the contact that touches at shift 0 comes first."""
    apart = max(1, round(SAME_ROW_M / step))
    order = sorted(range(len(branches)), key=lambda b: branches[b][0].first)
    rows: list[list[int]] = []
    for b in order:
        branch = branches[b][0]
        for members in rows:
            if branches[members[-1]][0].end + apart <= branch.first:
                members.append(b)
                break
        else:
            rows.append([b])
    centre = int(np.argmin(np.abs(view.shift_m)))
    touching = int(primary(view)[centre])

    def central(members: list[int]) -> bool:
        return any(
            branches[b][0].first <= centre < branches[b][0].end
            and branches[b][0].pick[centre - branches[b][0].first] == touching
            for b in members
        )

    return sorted(rows, key=lambda members: not central(members))


# --- smoothing and the path -------------------------------------------------------------------------------------


def smoothed(table: WheelTable, step: float, smoothing: float) -> WheelTable:
    """Every column convolved over the shift with a raised cosine (Hann) window of full width `smoothing` [m]."""
    half = round(0.5 * smoothing / step)
    if half < 1:
        return table
    window = 1.0 + np.cos(math.pi * np.arange(-half, half + 1) / (half + 1.0))
    window /= window.sum()
    columns: dict[str, Any] = {}
    for name in WheelTable.__dataclass_fields__:
        values = getattr(table, name)
        if values is None:
            columns[name] = None
            continue
        # odd reflection about the end points keeps their value and slope
        head, tail = 2.0 * values[:, :1] - values[:, half:0:-1], 2.0 * values[:, -1:] - values[:, -2 : -half - 2 : -1]
        padded = np.concatenate([head, values, tail], axis=1)
        columns[name] = np.stack([np.convolve(row, window, mode="valid") for row in padded])
    return WheelTable(**columns)


def integrated_path(
    shift: Array, left: WheelTable, right: WheelTable | None, start_lift: float, start_roll: float
) -> tuple[Array, Array]:
    """Lift and roll over the shift to the left that obey the touching conditions of both wheels' first contact."""
    from scipy.interpolate import CubicSpline

    step = (shift[-1] - shift[0]) / (shift.size - 1)
    fine = np.linspace(shift[0], shift[-1], 2 * shift.size - 1)
    columns = np.empty((6, fine.size))
    for k, name in enumerate(("angle_rad", "wheel_lateral_m", "rolling_radius_m")):
        columns[k] = CubicSpline(shift, getattr(left, name)[0])(fine)
        columns[k, ::2] = getattr(left, name)[0]
        other = right if right is not None else left
        mirrored = CubicSpline(shift, getattr(other, name)[0])(fine)
        mirrored[::2] = getattr(other, name)[0]
        columns[3 + k] = mirrored[::-1]
    lift, roll = np.zeros(shift.size), np.zeros(shift.size)
    centre = int(np.argmin(np.abs(shift)))
    lift[centre], roll[centre] = start_lift, start_roll
    kernel.integrate_path(columns, float(step), centre, lift, roll)
    if right is None:
        # mirror images: remove the last rounding difference between the two directions
        lift, roll = 0.5 * (lift + lift[::-1]), 0.5 * (roll - roll[::-1])
    return lift, roll
