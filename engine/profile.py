"""Wheel and rail profiles: what the contact geometry is computed from.

Both are drawn in the cross-section of one side of the track: y outwards (field side positive, flange and gauge side
negative), z UP, metres. A wheel has its tape circle at (0, 0), a rail its crown. Inside, a profile is a function z(y)
made of quintic pieces that carry value, slope and second derivative of both ends, so that analytic sections keep their
exact curvature and the steps of curvature between two arcs stay steps. Parts too steep for a function (the lower flank
of a rail head, the back of a flange) remain in `outline_m`, which is what a gauge is measured on.

Sources: S1002 from EN 13715, in the closed form of `field-data.md` 1; UIC60/60E1 as tangent arcs of 300, 80 and 13 mm
with a flank of 1:20, `field-data.md` 2.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.errors import InputError, shown

Array = NDArray[np.float64]

WHEEL, RAIL = "wheel", "rail"
KINDS = (WHEEL, RAIL)
STEEPEST = math.tan(math.radians(88.0))  # of a function piece; beyond it only the outline is kept
MINIMUM_POINTS = 8
MAXIMUM_POINTS = 200_000
# A measured wheel or rail head is a few centimetres to two decimetres wide; anything else is a wrong unit.
PLAUSIBLE_WIDTH_M = {WHEEL: (0.05, 0.25), RAIL: (0.03, 0.2)}
LARGEST_HEIGHT_M = 0.25
SHALLOWEST_FLANK_M = 0.006  # a rail outline may turn back below this depth under its crown, never above
BEHIND_FLANGE_TIP_M = 0.006  # how much of the back of the flange takes part in the contact search
STEP_M = 5e-4  # between nodes of polynomial sections
ARC_STEP = math.radians(0.5)  # between nodes of arcs
OUTLINE_POINTS = 8  # per piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One wheel or rail profile.

    Parameters
    ----------
    name : str
        Shown in messages, plots and provenance.
    kind : {"wheel", "rail"}
    node_m : array, (n + 1,)
        Increasing lateral coordinates of the ends of the pieces [m].
    height_m, slope, bend_per_m : array, (n, 2)
        z [m], dz/dy [-] and d2z/dy2 [1/m] at the left and right end of every piece.
    outline_m : array, (m, 2)
        The whole curve as points (y, z) in order [m], steep parts included.
    origin : dict
        Where it comes from and how it was smoothed.
    """

    name: str
    kind: str
    node_m: Array
    height_m: Array
    slope: Array
    bend_per_m: Array
    outline_m: Array
    origin: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"profile {self.name}"
        if self.kind not in KINDS:
            raise InputError(where, f"kind {self.kind!r}", ", ".join(KINDS))
        pieces = self.node_m.size - 1
        if pieces < 1 or not (np.diff(self.node_m) > 0.0).all():
            raise InputError(where, "the nodes do not increase", "at least one piece")
        for label in ("height_m", "slope", "bend_per_m"):
            values = getattr(self, label)
            if values.shape != (pieces, 2) or not np.isfinite(values).all():
                raise InputError(where, f"{label} has the wrong shape or is not finite", f"({pieces}, 2) numbers")

    @property
    def start_m(self) -> float:
        """Left (gauge side) end of the function part [m]."""
        return float(self.node_m[0])

    @property
    def end_m(self) -> float:
        """Right (field side) end of the function part [m]."""
        return float(self.node_m[-1])

    def coefficients(self) -> Array:
        """Quintic coefficients (n, 6) in the distance from the left end of each piece."""
        return quintic_pieces(np.diff(self.node_m), self.height_m, self.slope, self.bend_per_m)

    def evaluate(self, y: ArrayLike) -> tuple[Array, Array, Array]:
        """z [m], dz/dy and d2z/dy2 [1/m] at `y` [m]; the end pieces extend beyond the ends."""
        at = np.asarray(y, dtype=float)
        piece = np.clip(np.searchsorted(self.node_m, at, side="right") - 1, 0, self.node_m.size - 2)
        t = at - self.node_m[piece]
        c = self.coefficients()[piece]
        value, slope, bend = c[..., 5], 5.0 * c[..., 5], 20.0 * c[..., 5]
        for k in (4, 3, 2, 1, 0):
            value = value * t + c[..., k]
            if k >= 1:
                slope = slope * t + k * c[..., k]
            if k >= 2:
                bend = bend * t + k * (k - 1) * c[..., k]
        return value, slope, bend

    def height(self, y: ArrayLike) -> Array:
        """z at `y` [m]."""
        return self.evaluate(y)[0]

    def curvature(self, y: ArrayLike) -> Array:
        """Signed curvature [1/m], positive where the curve is hollow from above (dz/dy grows)."""
        _, slope, bend = self.evaluate(y)
        result: Array = bend / (1.0 + slope * slope) ** 1.5
        return result

    def arc_length(self, y: ArrayLike) -> Array:
        """Length of the curve from the left end of the function part to `y` [m], Gauss quadrature per piece."""
        at = np.asarray(y, dtype=float)
        x, w = np.polynomial.legendre.leggauss(8)

        def length(a: Array, b: Array) -> Array:
            points = 0.5 * ((b - a)[..., None] * x + (a + b)[..., None])
            slope = self.evaluate(points)[1]
            result: Array = 0.5 * (b - a) * (np.sqrt(1.0 + slope * slope) @ w)
            return result

        total = np.concatenate([[0.0], np.cumsum(length(self.node_m[:-1], self.node_m[1:]))])
        piece = np.clip(np.searchsorted(self.node_m, at, side="right") - 1, 0, self.node_m.size - 2)
        return np.asarray(total[piece] + length(self.node_m[piece], at))

    def breaks(self) -> Array:
        """Nodes where the curvature or the slope steps [m]."""
        step = np.abs(self.bend_per_m[1:, 0] - self.bend_per_m[:-1, 1])
        scale = np.maximum(np.abs(self.bend_per_m[1:, 0]), np.abs(self.bend_per_m[:-1, 1])) + 1e-3
        kink = np.abs(self.slope[1:, 0] - self.slope[:-1, 1]) > 1e-12
        return self.node_m[1:-1][(step > 1e-6 * scale) | kink]

    def digest(self) -> str:
        """Content hash of the geometry."""
        content = hashlib.sha256(self.kind.encode())
        for array in (self.node_m, self.height_m, self.slope, self.bend_per_m, self.outline_m):
            content.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return content.hexdigest()


def quintic_pieces(width: Array, value: Array, slope: Array, bend: Array) -> Array:
    """Coefficients (n, 6) of the quintics with given value, slope and second derivative at both ends."""
    h = width
    c = np.empty((h.size, 6))
    c[:, 0], c[:, 1], c[:, 2] = value[:, 0], slope[:, 0], 0.5 * bend[:, 0]
    rise = (value[:, 1] - value[:, 0] - h * (slope[:, 0] + 0.5 * h * bend[:, 0])) / h**3
    turn = (slope[:, 1] - slope[:, 0] - h * bend[:, 0]) / h**2
    twist = (bend[:, 1] - bend[:, 0]) / h
    c[:, 3] = 10.0 * rise - 4.0 * turn + 0.5 * twist
    c[:, 4] = (-15.0 * rise + 7.0 * turn - twist) / h
    c[:, 5] = (6.0 * rise - 3.0 * turn + 0.5 * twist) / h**2
    return c


# --- construction from sections ---------------------------------------------------------------------------------

Curve = Callable[[Array], tuple[Array, Array, Array]]


@dataclass(frozen=True, slots=True)
class _Section:
    """A piece of formula between two lateral coordinates: nodes, and z, z', z'' as a function of y."""

    nodes: Array
    curve: Curve


def _polynomial(start: float, end: float, coefficients: list[float], step: float = STEP_M) -> _Section:
    polynomial = np.polynomial.Polynomial(coefficients)
    first, second = polynomial.deriv(1), polynomial.deriv(2)
    count = max(1, math.ceil((end - start) / step))
    return _Section(np.linspace(start, end, count + 1), lambda y: (polynomial(y), first(y), second(y)))


def _arc(start: float, end: float, centre_y: float, centre_z: float, radius: float, sign: float) -> _Section:
    """z = centre_z + sign sqrt(radius^2 - (y - centre_y)^2), nodes at equal angles."""
    a0, a1 = (math.asin(min(1.0, max(-1.0, (y - centre_y) / radius))) for y in (start, end))
    count = max(1, math.ceil((a1 - a0) / ARC_STEP))
    nodes = centre_y + radius * np.sin(np.linspace(a0, a1, count + 1))
    nodes[0], nodes[-1] = start, end

    def curve(y: Array) -> tuple[Array, Array, Array]:
        d = y - centre_y
        root = np.sqrt((radius - d) * (radius + d))
        return centre_z + sign * root, -sign * d / root, -sign * radius * radius / root**3

    return _Section(nodes, curve)


def _assembled(name: str, kind: str, sections: list[_Section], origin: dict[str, Any], *, close: bool) -> Profile:
    """Join sections; with `close` each is lifted by the rounding gap of the printed coefficients before it."""
    nodes, parts = [sections[0].nodes[:1]], []
    offset, last = 0.0, None
    for section in sections:
        z, slope, bend = (np.asarray(v, dtype=float) for v in section.curve(section.nodes))
        if last is not None and close:
            offset = last - float(z[0])
        z = z + offset
        last = float(z[-1])
        nodes.append(section.nodes[1:])
        parts.append([np.column_stack([v[:-1], v[1:]]) for v in (z, slope, bend)])
    height, slope_, bend_ = (np.concatenate([p[k] for p in parts]) for k in range(3))
    return _profile(name, kind, np.concatenate(nodes), height, slope_, bend_, None, origin)


def _profile(
    name: str,
    kind: str,
    nodes: Array,
    height: Array,
    slope: Array,
    bend: Array,
    outline: Array | None,
    origin: dict[str, Any],
) -> Profile:
    """A profile whose outline, unless given, are points on its own pieces."""
    bare = Profile(
        name=name,
        kind=kind,
        node_m=np.ascontiguousarray(nodes),
        height_m=np.ascontiguousarray(height),
        slope=np.ascontiguousarray(slope),
        bend_per_m=np.ascontiguousarray(bend),
        outline_m=np.zeros((0, 2)) if outline is None else np.ascontiguousarray(outline),
        origin=origin,
    )
    if outline is not None:
        return bare
    fraction = np.arange(OUTLINE_POINTS) / OUTLINE_POINTS
    y = np.append((nodes[:-1, None] + np.diff(nodes)[:, None] * fraction).ravel(), nodes[-1])
    return Profile(
        name=name,
        kind=kind,
        node_m=bare.node_m,
        height_m=bare.height_m,
        slope=bare.slope,
        bend_per_m=bare.bend_per_m,
        outline_m=np.column_stack([y, bare.height(y)]),
        origin=origin,
    )


def s1002() -> Profile:
    """The S1002 wheel of EN 13715, flange 32.5 mm, tape circle at y = 0, from the tip of the flange outwards.

    The printed sections do not quite meet (up to 0.12 um at y = -35 mm): going from the tape circle towards the flange
    each section is lifted to meet its neighbour, so that the rigid wheelset does not step.
    """
    mm = 1e-3

    def scaled(coefficients: list[float], sign: float = -1.0) -> list[float]:
        # F(S) in mm, downwards -> z(y) in m, upwards
        return [sign * c * mm / mm**k for k, c in enumerate(coefficients)]

    tread = [0.0, -3.358537058e-2, 1.565681624e-3, -2.810427944e-5, 5.844240864e-8, -1.562379023e-8]
    tread += [5.309217349e-15, -5.957839843e-12, 2.646656573e-13]
    root = [4.320221063e3, 1.038384026e3, 1.065501873e2, 6.051367875, 2.054332446e-1, 4.169739389e-3]
    root += [4.687195829e-5, 2.252755540e-7]
    outer = [_polynomial(32.15796 * mm, 60 * mm, scaled([1.364323640, -0.066666667]))]
    inner = [
        _polynomial(-26 * mm, 32.15796 * mm, scaled(tread)),
        _polynomial(-35 * mm, -26 * mm, scaled(root, sign=1.0)),
        _arc(-38.426669071 * mm, -35 * mm, -26.210665 * mm, -16.446 * mm, 13 * mm, 1.0),
        _polynomial(-39.764473993 * mm, -38.426669071 * mm, scaled([-93.576667419, -2.747477419])),
        _arc(-49.662510381 * mm, -39.764473993 * mm, -58.558326413 * mm, -8.834924130 * mm, 20 * mm, -1.0),
        _arc(-62.764705882 * mm, -49.662510381 * mm, -55 * mm, -16 * mm, 12 * mm, -1.0),
    ]
    # lift towards the flange: mirror the direction of `_assembled`, which closes gaps from left to right
    offsets, edge = [0.0], float(inner[0].curve(inner[0].nodes[:1])[0][0])
    for section in inner[1:]:
        offsets.append(edge - float(section.curve(section.nodes[-1:])[0][0]))
        edge = float(section.curve(section.nodes[:1])[0][0]) + offsets[-1]

    def lifted(section: _Section, by: float) -> _Section:
        def curve(y: Array) -> tuple[Array, Array, Array]:
            z, slope, bend = section.curve(y)
            return z + by, slope, bend

        return _Section(section.nodes, curve)

    sections = [lifted(s, by) for s, by in zip(reversed(inner), reversed(offsets), strict=True)] + outer
    return _assembled("s1002", WHEEL, sections, {"source": "EN 13715, closed form"}, close=True)


def uic60() -> Profile:
    """The head of the rail UIC60 / 60E1: tangent arcs of 300, 80 and 13 mm and a flank of 1:20, crown at (0, 0)."""
    mm = 1e-3
    radii, ends = (300 * mm, 80 * mm, 13 * mm), (20.456 / 2 * mm, 52.053 / 2 * mm, 72.0 / 2 * mm)
    centre_y, centre_z, start, right = 0.0, -radii[0], 0.0, []
    edge_z = 0.0
    for k, (radius, end) in enumerate(zip(radii, ends, strict=True)):
        if k:
            # the next centre lies on the normal at the joint
            previous = radii[k - 1]
            n_y, n_z = (start - centre_y) / previous, (edge_z - centre_z) / previous
            centre_y, centre_z = start - radius * n_y, edge_z - radius * n_z
        right.append((start, end, centre_y, centre_z, radius))
        start, edge_z = end, centre_z + math.sqrt(radius**2 - (end - centre_y) ** 2)
    flank = 0.4 * mm
    left_side = [_polynomial(-start - flank, -start, [edge_z + 20.0 * start, 20.0], step=flank)]
    left_side += [_arc(-b, -a, -cy, cz, r, 1.0) for a, b, cy, cz, r in reversed(right[1:])]
    middle = [_arc(-ends[0], ends[0], 0.0, -radii[0], radii[0], 1.0)]
    right_side = [_arc(a, b, cy, cz, r, 1.0) for a, b, cy, cz, r in right[1:]]
    right_side += [_polynomial(start, start + flank, [edge_z + 20.0 * start, -20.0], step=flank)]
    sections = left_side + middle + right_side
    return _assembled("uic60", RAIL, sections, {"source": "tangent arcs 300/80/13 mm, flank 1:20"}, close=False)


def conical_wheel(conicity: float, *, inner_m: float = -0.06, outer_m: float = 0.06) -> Profile:
    """A cone without flange: z = conicity * y."""
    where = "conical wheel"
    if not (math.isfinite(conicity) and 0.0 <= conicity <= 1.0):
        raise InputError(where, f"conicity = {shown(conicity)}", "0 .. 1")
    section = _polynomial(inner_m, outer_m, [0.0, conicity], step=0.01)
    return _assembled(f"cone:{conicity:g}", WHEEL, [section], {"source": "cone", "conicity": conicity}, close=False)


def circular_rail(radius_m: float, *, steepest: float = math.radians(80.0), half_width_m: float = 0.036) -> Profile:
    """A rail head of one radius; it ends at `half_width_m` or where it is `steepest` [rad], whichever comes first."""
    if not (math.isfinite(radius_m) and radius_m > 0.0):
        raise InputError("circular rail", f"radius_m = {shown(radius_m)}", "a positive number")
    half = min(half_width_m, radius_m * math.sin(steepest))
    section = _arc(-half, half, 0.0, -radius_m, radius_m, 1.0)
    name = f"circle:{radius_m * 1e3:g}"
    return _assembled(name, RAIL, [section], {"source": "circle", "radius_m": radius_m}, close=False)


# --- measured points --------------------------------------------------------------------------------------------


def profile_from_points(
    y: ArrayLike,
    z: ArrayLike,
    *,
    kind: str,
    name: str = "points",
    smoothing_m: float = 0.0,
    lines: list[int] | None = None,
    origin: dict[str, Any] | None = None,
) -> Profile:
    """A profile through (or near) measured points, in order along the curve.

    Parameters
    ----------
    y, z : array_like
        Points [m], y outwards and z up, tape circle or crown near the origin; either direction along the curve.
    kind : {"wheel", "rail"}
    smoothing_m : float
        Wavelength along the curve [m] at which the smoothing spline halves a ripple; shorter ones vanish, longer ones
        stay. 0 interpolates. With points a distance h apart the penalty is lambda = (smoothing / 2 pi)^4 / h.
    lines : list of int, optional
        Line of each point in its file, for messages.
    """
    where = f"profile {name}"
    if kind not in KINDS:
        raise InputError(where, f"kind {kind!r}", ", ".join(KINDS))
    points = np.column_stack([np.asarray(y, dtype=float).ravel(), np.asarray(z, dtype=float).ravel()])
    line = np.arange(1, len(points) + 1) if lines is None else np.asarray(lines)
    unit = "point" if lines is None else "line"
    if not MINIMUM_POINTS <= len(points) <= MAXIMUM_POINTS:
        raise InputError(where, f"{len(points)} points", f"{MINIMUM_POINTS} to {MAXIMUM_POINTS}")
    if not np.isfinite(points).all():
        bad = int(np.argmin(np.isfinite(points).all(axis=1)))
        raise InputError(f"{where}: {unit} {line[bad]}", "a coordinate is not finite", "finite numbers")
    if not (math.isfinite(smoothing_m) and 0.0 <= smoothing_m <= 0.05):
        raise InputError(where, f"smoothing_m = {shown(smoothing_m)}", "0 to 0.05 m")
    _check_size(where, kind, points)
    if points[-1, 0] < points[0, 0]:
        points, line = points[::-1], line[::-1]
    points, line = _without_repeats(points, line)
    if len(points) < MINIMUM_POINTS:
        raise InputError(where, f"{len(points)} different points", f"at least {MINIMUM_POINTS}")
    first, last = _function_part(where, kind, points, line, unit)

    from scipy.interpolate import CubicSpline, make_smoothing_spline

    distance = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    gap = distance[-1] / (len(points) - 1)
    if smoothing_m > 0.0:
        penalty = (smoothing_m / (2.0 * math.pi)) ** 4 / gap
        across, up = (make_smoothing_spline(distance, points[:, k], lam=penalty) for k in (0, 1))
    else:
        across, up = (CubicSpline(distance, points[:, k], bc_type="natural") for k in (0, 1))
    t = distance[first : last + 1]
    y0, y1, y2 = (np.asarray(across(t, k)) for k in range(3))
    z0, z1, z2 = (np.asarray(up(t, k)) for k in range(3))
    usable = y1 > 0.0
    usable[usable] &= np.abs(z1[usable] / y1[usable]) <= STEEPEST
    keep = _run_around(usable, int(np.argmin(np.abs(y0))) if kind == WHEEL else int(np.argmax(z0)))
    inside = slice(keep[0], keep[1] + 1)
    if keep[1] - keep[0] + 1 < MINIMUM_POINTS or not (np.diff(y0[inside]) > 0.0).all():
        at = int(np.argmin(usable)) if not usable.all() else int(np.argmin(np.diff(y0, prepend=-np.inf)))
        raise InputError(
            f"{where}: {unit} {line[first + at]}", "the curve folds back or is vertical", "y growing along the curve"
        )
    _check_cut(where, kind, y0, z0, keep, line[first : last + 1], unit)
    y0, y1, y2, z0, z1, z2 = (v[inside] for v in (y0, y1, y2, z0, z1, z2))
    slope, bend = z1 / y1, (z2 * y1 - z1 * y2) / y1**3
    fine = np.linspace(0.0, distance[-1], min(4 * len(points), 20_000))
    details = {"points": len(points), "smoothing_m": smoothing_m, **(origin or {})}
    return _profile(
        name,
        kind,
        y0,
        np.column_stack([z0[:-1], z0[1:]]),
        np.column_stack([slope[:-1], slope[1:]]),
        np.column_stack([bend[:-1], bend[1:]]),
        np.column_stack([across(fine), up(fine)]),
        details,
    )


def _check_size(where: str, kind: str, points: Array) -> None:
    width, height = np.ptp(points[:, 0]), np.ptp(points[:, 1])
    least, most = PLAUSIBLE_WIDTH_M[kind]
    allowed = f"{least * 1e3:g} to {most * 1e3:g} mm wide, at most {LARGEST_HEIGHT_M * 1e3:g} mm high"
    if not least <= width <= most:
        hint = ""
        for factor, text in (
            (1e-3, "are the points in mm, declared as m?"),
            (1e3, "are the points in m, declared as mm?"),
        ):
            if least <= width * factor <= most:
                hint = f"; {text}"
        raise InputError(where, f"the {kind} is {width * 1e3:g} mm wide{hint}", allowed)
    if not 0.0 <= height <= LARGEST_HEIGHT_M:
        raise InputError(where, f"the {kind} is {height * 1e3:g} mm high", allowed)


def _without_repeats(points: Array, line: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    keep = np.concatenate([[True], np.hypot(*np.diff(points, axis=0).T) > 1e-9])
    return points[keep], line[keep]


def _function_part(where: str, kind: str, points: Array, line: NDArray[np.int64], unit: str) -> tuple[int, int]:
    """First and last point of the part that must be a function z(y); refuses folds inside it."""
    y, z = points.T
    forward = np.diff(y) > 0.0
    if kind == WHEEL:
        tip = int(np.argmin(z))
        # the back of the flange may be vertical or fold under: it ends the function part
        first = tip
        while first > 0 and forward[first - 1] and y[tip] - y[first - 1] <= BEHIND_FLANGE_TIP_M:
            first -= 1
        last = len(y) - 1
        if not forward[first:].all():
            at = first + int(np.argmin(forward[first:]))
            raise InputError(
                f"{where}: {unit} {line[at + 1]}",
                f"the wheel folds back at y = {y[at + 1] * 1e3:g} mm",
                "y growing along the curve",
            )
        return first, last
    crown = int(np.argmax(z))
    first = last = crown
    while first > 0 and forward[first - 1]:
        first -= 1
    while last < len(y) - 1 and forward[last]:
        last += 1
    for end, step in ((first, -1), (last, 1)):
        if 0 < end < len(y) - 1 and z[crown] - z[end] < SHALLOWEST_FLANK_M:
            raise InputError(
                f"{where}: {unit} {line[end + step]}",
                f"the rail folds back at y = {y[end] * 1e3:g} mm, {(z[crown] - z[end]) * 1e3:g} mm below its crown",
                f"y growing along the curve down to {SHALLOWEST_FLANK_M * 1e3:g} mm",
            )
    return first, last


def _run_around(usable: NDArray[np.bool_], middle: int) -> tuple[int, int]:
    first = last = middle
    while first > 0 and usable[first - 1]:
        first -= 1
    while last < usable.size - 1 and usable[last + 1]:
        last += 1
    return first, last


def _check_cut(
    where: str, kind: str, y: Array, z: Array, keep: tuple[int, int], line: NDArray[np.int64], unit: str
) -> None:
    """A steep place may end the profile only low on a rail's flank or behind the tip of a wheel's flange."""
    ends = [keep[0]] if keep[0] > 0 else []
    ends += [keep[1]] if keep[1] < y.size - 1 else []
    for end in ends:
        if kind == RAIL:
            refused = z.max() - z[end] < SHALLOWEST_FLANK_M
        else:
            refused = end == keep[1] or y[end] > y[int(np.argmin(z))]
        if refused:
            raise InputError(
                f"{where}: {unit} {line[end]}",
                f"the curve is vertical or folds back at y = {y[end] * 1e3:g} mm",
                "a slope below 88 degrees in the running surface",
            )


# --- wear -------------------------------------------------------------------------------------------------------


def blend(new: Profile, worn: Profile, fraction: float) -> Profile:
    """The profile between two: z = (1 - fraction) z_new + fraction z_worn, exactly, over the width both have."""
    where = f"blend of {new.name} and {worn.name}"
    if new.kind != worn.kind:
        raise InputError(where, f"a {new.kind} and a {worn.kind}", "two profiles of one kind")
    if not (math.isfinite(fraction) and 0.0 <= fraction <= 1.0):
        raise InputError(where, f"fraction {shown(fraction)}", "0 .. 1")
    start, end = max(new.start_m, worn.start_m), min(new.end_m, worn.end_m)
    if end - start < 0.5 * min(new.end_m - new.start_m, worn.end_m - worn.start_m):
        raise InputError(where, "the profiles hardly overlap", "the same lateral coordinate in both")
    union = np.unique(np.concatenate([new.node_m, worn.node_m]))
    inside = union[(union > start + 1e-9) & (union < end - 1e-9)]
    nodes = np.concatenate([[start], inside[np.concatenate([[True], np.diff(inside) > 1e-9])], [end]])
    nudge = 1e-13  # so that each end is read from the piece it belongs to
    left = [np.asarray(v) for v in zip(*(p.evaluate(nodes[:-1] + nudge) for p in (new, worn)), strict=True)]
    right = [np.asarray(v) for v in zip(*(p.evaluate(nodes[1:] - nudge) for p in (new, worn)), strict=True)]
    mixed = [
        np.column_stack([(1.0 - fraction) * a[0] + fraction * a[1], (1.0 - fraction) * b[0] + fraction * b[1]])
        for a, b in zip(left, right, strict=True)
    ]
    origin = {"new": new.name, "worn": worn.name, "fraction": fraction}
    name = f"{new.name}~{worn.name}:{fraction:g}"
    return _profile(name, new.kind, nodes, mixed[0], mixed[1], mixed[2], None, origin)


def shifted(profile: Profile, across_m: float, up_m: float = 0.0) -> Profile:
    """The same profile moved by (across, up) [m] in its own cross-section: even wear, or a new zero."""
    return Profile(
        name=profile.name,
        kind=profile.kind,
        node_m=profile.node_m + across_m,
        height_m=profile.height_m + up_m,
        slope=profile.slope,
        bend_per_m=profile.bend_per_m,
        outline_m=profile.outline_m + np.array([across_m, up_m]),
        origin={**profile.origin, "shifted_m": [across_m, up_m]},
    )
