"""A rigid wheelset on a rigid track: where it touches, how it lifts and rolls as it moves sideways.

Wheels and rails may differ from side to side (profile, radius, inclination). The gauge is measured as EN 13848 does:
between the innermost points of the two rail heads down to a stated depth below top of rail. Lift, roll, contact angle,
rolling radius and contact places come from the same curves, so that for every contact, with the angle in track axes,

    cos(delta + roll) lift' + (a cos delta - r sin delta) roll' - gap' = sin(delta + roll),

which is what makes the penetration of the running vehicle obey dq/dy = sin(delta).
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError, shown
from railsweep.engine.profile import RAIL, WHEEL, Profile, quintic_pieces
from railsweep.kernels import geometry as kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

STEEPEST_RAIL = math.tan(math.radians(86.5))  # in the track frame; no flange is steeper
BUCKETS = 1024
# The search for contacts samples 600 places, eight more for every ripple of a measured profile.
LEAST_CELLS, MOST_CELLS, CELLS_PER_RIPPLE = 600, 8000, 8
RIPPLE_PER_M = 0.5  # a swing of the second derivative smaller than this makes no contact of its own
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheelset:
    """Two wheels on an axle.

    Parameters
    ----------
    left, right : Profile
        Wheel profiles, tape circle at the origin.
    half_spacing_m : float
        Half the distance of the tape circles (half the back-to-back distance plus that of back and tape circle) [m].
    left_radius_m, right_radius_m : float
        Radius at the tape circle [m].
    """

    left: Profile
    right: Profile
    half_spacing_m: float
    left_radius_m: float
    right_radius_m: float

    def __post_init__(self) -> None:
        for side, profile in (("left", self.left), ("right", self.right)):
            if profile.kind != WHEEL:
                raise InputError(f"{side} wheel", f"{profile.name} is a {profile.kind}", "a wheel profile")
        _check_range("half spacing", self.half_spacing_m, 0.2, 1.5, "m")
        _check_range("left rolling radius", self.left_radius_m, 0.1, 1.0, "m")
        _check_range("right rolling radius", self.right_radius_m, 0.1, 1.0, "m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rails:
    """Two rails.

    Parameters
    ----------
    left, right : Profile
    left_inclination, right_inclination : float
        Inclination towards the track centre, for example 1/40 [-].
    gauge_m : float, optional
        Distance of the innermost points down to `gauge_depth_m` below top of rail [m].
    gauge_depth_m : float
    crown_m : float, optional
        Instead of a gauge: distance of each rail's own origin from the track centre [m].
    """

    left: Profile
    right: Profile
    left_inclination: float
    right_inclination: float
    gauge_m: float | None = 1.435
    gauge_depth_m: float = 0.014
    crown_m: float | None = None

    def __post_init__(self) -> None:
        for side, profile in (("left", self.left), ("right", self.right)):
            if profile.kind != RAIL:
                raise InputError(f"{side} rail", f"{profile.name} is a {profile.kind}", "a rail profile")
        for value in (self.left_inclination, self.right_inclination):
            _check_range("inclination", value, -0.2, 0.2, "")
        if (self.gauge_m is None) == (self.crown_m is None):
            raise InputError("rails", "gauge and crown distance are both given or both missing", "one of them")
        if self.gauge_m is not None:
            _check_range("gauge", self.gauge_m, 0.3, 3.0, "m")
            _check_range("gauge depth", self.gauge_depth_m, 0.001, 0.05, "m")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRail:
    """One rail in the track frame of its side: pieces of z(y) and what was moved to get there."""

    node_m: Array
    coefficient: Array
    breaks_m: Array
    across_m: float
    up_m: float
    angle_rad: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchingPath:
    """The rigid wheelset over its shift to the left; contacts as (shift, side, contact, column) of the kernel."""

    shift_m: Array
    lift_m: Array
    roll_rad: Array
    contact: Array
    count: Integers
    height_m: float


def _check_range(what: str, value: float, least: float, most: float, unit: str) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise InputError(what, f"{shown(value)} {unit}".strip(), f"{least:g} to {most:g} {unit}".strip())


def place_rail(rails: Rails, side: str) -> PlacedRail:
    """Incline a rail, put its top at height 0 and its gauge face (or its origin) where it belongs."""
    profile: Profile = getattr(rails, side)
    angle = math.atan(getattr(rails, f"{side}_inclination"))
    s, c = math.sin(angle), math.cos(angle)
    where = f"{side} rail {profile.name}"
    outline = profile.outline_m @ np.array([[c, s], [-s, c]])
    top = _highest(profile, s, c)
    if rails.crown_m is not None:
        across, up = rails.crown_m, -top
    else:
        assert rails.gauge_m is not None
        face = _innermost(where, outline, top, rails.gauge_depth_m)
        across, up = 0.5 * rails.gauge_m - face, -top

    # the same pieces in turned axes: exact for value, slope and second derivative at both ends
    turn = c - profile.slope * s
    slope = np.where(turn > 0.0, (s + profile.slope * c) / np.where(turn > 0.0, turn, 1.0), np.inf)
    usable = np.asarray((np.abs(slope) <= STEEPEST_RAIL).all(axis=1))
    own = np.column_stack([profile.node_m[:-1], profile.node_m[1:]])
    y = own * c - profile.height_m * s + across
    z = own * s + profile.height_m * c + up
    crown = int(np.argmax(np.where(usable, z[:, 0], -np.inf)))
    first = last = crown
    while first > 0 and usable[first - 1]:
        first -= 1
    while last < usable.size - 1 and usable[last + 1]:
        last += 1
    kept = slice(first, last + 1)
    node = np.append(y[kept, 0], y[last, 1])
    if not usable[crown] or not (np.diff(node) > 0.0).all():
        raise InputError(where, "the running surface is vertical once inclined", "a rail head that lies flat")
    bend = profile.bend_per_m[kept] / turn[kept] ** 3
    breaks = profile.breaks()
    height = profile.height(breaks)
    return PlacedRail(
        node_m=node,
        coefficient=quintic_pieces(np.diff(node), z[kept], slope[kept], bend),
        breaks_m=breaks * c - height * s + across,
        across_m=across,
        up_m=up,
        angle_rad=angle,
    )


def _highest(profile: Profile, s: float, c: float) -> float:
    """Height of the turned profile's top, refined from its nodes by Newton on the slope."""
    nodes = profile.node_m
    start = int(np.argmax(nodes * s + profile.height(nodes) * c))
    y = float(nodes[start])
    lo, hi = float(nodes[max(start - 1, 0)]), float(nodes[min(start + 1, nodes.size - 1)])
    for _ in range(60):
        _, slope, bend = (float(v) for v in profile.evaluate(y))
        rise = s + slope * c
        step = rise / (bend * c) if bend < 0.0 else math.inf
        if abs(step) < 1e-15:
            break
        lo, hi = (y, hi) if rise > 0.0 else (lo, y)
        y = y - step if lo < y - step < hi else 0.5 * (lo + hi)
    return y * s + float(profile.height(y)) * c


def _innermost(where: str, outline: Array, top: float, depth: float) -> float:
    """Innermost y of an outline down to `depth` below `top`, on the gauge side."""
    crown = int(np.argmax(outline[:, 1]))
    side = outline[: crown + 1][::-1]
    below = top - side[:, 1]
    if below.max() < depth:
        raise InputError(
            where,
            f"its profile ends {below.max() * 1e3:.3g} mm below top of rail on the gauge side",
            f"at least the gauge depth of {depth * 1e3:g} mm",
        )
    beyond = int(np.argmax(below >= depth))
    part = (depth - below[beyond - 1]) / (below[beyond] - below[beyond - 1])
    at_depth = side[beyond - 1, 0] + part * (side[beyond, 0] - side[beyond - 1, 0])
    return float(min(at_depth, side[:beyond, 0].min()))


def _curve(node: Array, coefficient: Array, breaks: Array) -> kernel.PiecewiseCurve:
    width = (node[-1] - node[0]) / BUCKETS
    edges = node[0] + width * np.arange(BUCKETS)
    bucket = np.clip(np.searchsorted(node, edges, side="right") - 1, 0, node.size - 2)
    # one piece earlier: the kernel walks forward, and rounding may put a point into the bucket after its own
    bucket = np.maximum(bucket - 1, 0)
    inside = breaks[(breaks > node[0]) & (breaks < node[-1])]
    return kernel.PiecewiseCurve(
        np.ascontiguousarray(node),
        np.ascontiguousarray(coefficient),
        np.ascontiguousarray(bucket.astype(np.int64)),
        float(node[0]),
        float(1.0 / width),
        np.ascontiguousarray(inside),
    )


def _ripples(profile: Profile) -> int:
    """How often the second derivative of the running surface turns round by more than `RIPPLE_PER_M`."""
    flat = np.abs(profile.slope).max(axis=1) < 0.5
    bend = profile.bend_per_m[flat].ravel()
    turns, rising, extreme = 0, True, -math.inf
    for value in bend.tolist():
        if (value > extreme) == rising:
            extreme = value
        elif abs(value - extreme) > RIPPLE_PER_M:
            turns, rising, extreme = turns + 1, not rising, value
    return turns


class ContactGeometry:
    """A wheelset on its track, packed for the kernels.

    Examples
    --------
    >>> from railsweep.engine.profile import s1002, uic60
    >>> wheel, rail = s1002(), uic60()
    >>> axle = Wheelset(left=wheel, right=wheel, half_spacing_m=0.75, left_radius_m=0.425, right_radius_m=0.425)
    >>> track = Rails(left=rail, right=rail, left_inclination=1 / 40, right_inclination=1 / 40)
    >>> path = ContactGeometry(axle, track).touch(np.array([0.0]))
    >>> bool(abs(path.roll_rad[0]) < 1e-12)
    True
    """

    def __init__(self, wheelset: Wheelset, rails: Rails) -> None:
        self.wheelset, self.rails = wheelset, rails
        self.placed = {side: place_rail(rails, side) for side in SIDES}
        self.height_m = 0.5 * (wheelset.left_radius_m + wheelset.right_radius_m)
        self.sides: dict[str, Any] = {}
        for side in SIDES:
            profile: Profile = getattr(wheelset, side)
            rail = self.placed[side]
            self.sides[side] = kernel.Side(
                _curve(profile.node_m, profile.coefficients(), profile.breaks()),
                _curve(rail.node_m, rail.coefficient, rail.breaks_m),
                float(wheelset.half_spacing_m),
                float(getattr(wheelset, f"{side}_radius_m")),
                min(LEAST_CELLS + CELLS_PER_RIPPLE * (_ripples(profile) + _ripples(getattr(rails, side))), MOST_CELLS),
            )

    @property
    def symmetric(self) -> bool:
        """Are the two sides mirror images?"""
        w, r = self.wheelset, self.rails
        return (
            w.left_radius_m == w.right_radius_m
            and r.left_inclination == r.right_inclination
            and (w.left is w.right or w.left.digest() == w.right.digest())
            and (r.left is r.right or r.left.digest() == r.right.digest())
        )

    def touch(self, shift: Array, *, threads: int | None = None) -> TouchingPath:
        """Lift, roll and all contacts at every shift to the left [m]; raises InputError where the wheelset does not
        rest on both rails."""
        shift = np.ascontiguousarray(shift, dtype=float)
        n = shift.size
        lift, roll, status = np.empty(n), np.empty(n), np.zeros((n, 2), dtype=np.int64)
        contact = np.zeros((n, 2, kernel.MAX_CONTACTS, kernel.CONTACT_WIDTH))
        count = np.zeros((n, 2), dtype=np.int64)

        def run(part: slice) -> None:
            kernel.touching_path(
                self.sides["left"],
                self.sides["right"],
                self.height_m,
                shift[part],
                lift[part],
                roll[part],
                status[part],
                contact[part],
                count[part],
            )

        _in_threads(run, n, threads)
        if status.any():
            self._refuse(shift, status)
        return TouchingPath(
            shift_m=shift, lift_m=lift, roll_rad=roll, contact=contact, count=count, height_m=self.height_m
        )

    def interpenetrate(
        self, side: str, path: TouchingPath, rows: Integers, depth: Array, *, threads: int | None = None
    ) -> Array:
        """Moments of the overlap when the wheel sinks by `depth` [m] at the given rows of the path; see the kernel."""
        shift, lift, roll = path.shift_m[rows], path.lift_m[rows], path.roll_rad[rows]
        moment = np.empty((rows.size, kernel.MOMENT_WIDTH))
        sign = 1.0 if side == "left" else -1.0

        def run(part: slice) -> None:
            kernel.interpenetration(
                self.sides[side], sign, self.height_m, shift[part], lift[part], roll[part], depth[part], moment[part]
            )

        _in_threads(run, rows.size, threads)
        return moment

    def _refuse(self, shift: Array, status: Integers) -> None:
        order = np.argsort(np.abs(shift), kind="stable")
        row = int(order[np.argmax(status[order].any(axis=1))])
        side = SIDES[int(np.argmax(status[row] != 0))]
        code = int(status[row].max())
        where = f"contact geometry at shift {shift[row] * 1e3:.3f} mm"
        wheel: Profile = getattr(self.wheelset, side)
        rail: Profile = getattr(self.rails, side)
        if code == kernel.NO_OVERLAP:
            raise InputError(
                where,
                f"the {side} wheel {wheel.name} is not over its rail {rail.name}: the wheelset drops between the rails",
                "another gauge, back-to-back distance or a smaller range",
            )
        if code == kernel.OFF_PROFILE:
            raise InputError(
                where,
                f"the {side} wheel {wheel.name} stands on the end of a profile (its own or that of rail {rail.name})",
                "wider profiles, another gauge or a smaller range",
            )
        raise InputError(
            where,
            "no roll at which both wheels touch",
            f"a roll within +-{kernel.ROLL_LIMIT:g} rad; check gauge and radii",
        )


def _in_threads(run: Any, rows: int, threads: int | None) -> None:
    """Contiguous blocks of rows, one per thread: the kernels release the GIL, and each row is its own computation."""
    workers = min(threads or os.cpu_count() or 1, max(1, rows // 64))
    bounds = np.linspace(0, rows, workers + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(bounds.tolist())]
    if workers == 1:
        run(slice(0, rows))
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, parts))
