"""Rigid contact geometry of a wheelset on two rails: the path of lift and roll, the contacts, the interpenetration.

Each side is computed in its own outward frame: y outwards from the track centre, z up, s = +1 left, -1 right. With the
shift u = s y towards that rail and roll p = s roll (positive when this wheel rises) a wheel point at tape-circle
coordinate x is at  Y = u + (h + x) cos p - (w(x) - r) sin p,  Z = lift + R + (h + x) sin p + (w(x) - r) cos p,
h the half spacing of the tape circles, r the radius there, R the height of the axle over top of rail at lift 0.
The lift that this point asks for is  n(x) = rail(Y) - (Z - lift):  the wheel touches at the lift max n(x), every local
maximum of n is a contact (parallel tangents), and the distance of a second contact is lift - n there. Touching on both
sides fixes roll: left lift(roll) = right lift(roll).

Left and right run through the same arithmetic with signs flipped, so that mirrored input gives mirrored bits.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from railsweep.kernels.jit import inline_jit, jit

# Outcome of one shift
TOUCHING, OFF_PROFILE, NO_OVERLAP, NO_ROLL = range(4)

MAX_CONTACTS = 12
ROLL_LIMIT = 0.08  # rad; a wheelset that climbs its flange rolls by 0.02
ROLL_ITERATIONS = 200
ROOT_ITERATIONS = 80

# What is known of one contact, one row of `contact`
(
    CONTACT_X,  # tape-circle coordinate on the wheel [m]
    CONTACT_GAP,  # vertical distance at the lift of the rigid wheelset [m]
    CONTACT_SLOPE,  # of the wheel, dw/dx
    CONTACT_WHEEL_BEND,  # d2w/dx2 [1/m]
    CONTACT_RAIL_Y,  # place on the rail, from the track centre [m]
    CONTACT_RAIL_Z,  # height over top of rail [m]
    CONTACT_RAIL_SLOPE,
    CONTACT_RAIL_BEND,  # [1/m]
) = range(8)
CONTACT_WIDTH = 8

# Moments of the interpenetration zone, one row of `moment`; weight = depth along the normal times arc length
(
    MOMENT_AREA,  # integral of the weight [m2]
    MOMENT_X,  # integral of weight times tape-circle coordinate
    MOMENT_RADIUS,
    MOMENT_SIN,
    MOMENT_COS,
    MOMENT_RAIL_Z,
    MOMENT_WIDTH_M,  # arc length of the zone [m]
    MOMENT_ZONES,
) = range(8)
MOMENT_WIDTH = 8

# 10-point Gauss-Legendre rule on (-1, 1)
GAUSS_X, GAUSS_W = np.polynomial.legendre.leggauss(10)
PANEL_M = 3e-3
MAX_BREAKS = 64


class PiecewiseCurve(NamedTuple):
    """A function of piecewise quintics with a uniform index into its uneven nodes."""

    node: Any  # (n + 1,)
    coefficient: Any  # (n, 6)
    bucket: Any  # first piece that reaches into each of the equal buckets
    start: float
    inverse_width: float  # of a bucket [1/m]
    breaks: Any  # places where the curvature steps


class Side(NamedTuple):
    """One wheel on its rail: the rail in the track frame of this side, the wheel in its own."""

    wheel: Any
    rail: Any
    half_spacing: float
    radius: float
    cells: int  # of the search for contacts, over the common width of wheel and rail


@inline_jit
def evaluate(curve, x):
    """Value, slope and second derivative; the end pieces extend beyond the ends."""
    last = curve.bucket.size - 1
    b = int((x - curve.start) * curve.inverse_width)
    if b < 0:
        b = 0
    elif b > last:
        b = last
    i = curve.bucket[b]
    pieces = curve.node.size - 2
    while i < pieces and x >= curve.node[i + 1]:
        i += 1
    t = x - curve.node[i]
    c = curve.coefficient[i]
    value = c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))))
    slope = c[1] + t * (2.0 * c[2] + t * (3.0 * c[3] + t * (4.0 * c[4] + t * 5.0 * c[5])))
    bend = 2.0 * c[2] + t * (6.0 * c[3] + t * (12.0 * c[4] + t * 20.0 * c[5]))
    return value, slope, bend


@inline_jit
def needed_lift(side, x, shift, sin_p, cos_p, height):
    """Lift that wheel point x asks for, n, and its first two derivatives along x."""
    w, w1, w2 = evaluate(side.wheel, x)
    across = side.half_spacing + x
    up = w - side.radius
    y = shift + across * cos_p - up * sin_p
    z = height + across * sin_p + up * cos_p
    y1 = cos_p - w1 * sin_p
    z1 = sin_p + w1 * cos_p
    r, r1, r2 = evaluate(side.rail, y)
    return r - z, r1 * y1 - z1, r2 * y1 * y1 - r1 * w2 * sin_p - w2 * cos_p


@jit
def wheel_point_over(side, y, shift, sin_p, cos_p, first, last):
    """Tape-circle coordinate of the wheel point that stands over rail place y; Y grows with x."""
    lo, hi = first, last
    x = y - shift - side.half_spacing - side.radius * sin_p
    for _ in range(ROOT_ITERATIONS):
        if not (lo < x < hi):
            x = 0.5 * (lo + hi)
        w, w1, _ = evaluate(side.wheel, x)
        f = shift + (side.half_spacing + x) * cos_p - (w - side.radius) * sin_p - y
        if f > 0.0:
            hi = x
        else:
            lo = x
        step = f / (cos_p - w1 * sin_p)
        x -= step
        if abs(step) < 1e-16 or hi - lo < 1e-16:
            break
    return min(max(x, first), last)


@jit
def footprint(side, shift, sin_p, cos_p):
    """First and last wheel coordinate over the rail; first > last when there is no overlap."""
    first, last = side.wheel.node[0], side.wheel.node[-1]
    w0, _, _ = evaluate(side.wheel, first)
    w1, _, _ = evaluate(side.wheel, last)
    y0 = shift + (side.half_spacing + first) * cos_p - (w0 - side.radius) * sin_p
    y1 = shift + (side.half_spacing + last) * cos_p - (w1 - side.radius) * sin_p
    rail0, rail1 = side.rail.node[0], side.rail.node[-1]
    if y1 <= rail0 or y0 >= rail1:
        return 1.0, 0.0
    a, b = first, last
    if y0 < rail0:
        a = wheel_point_over(side, rail0, shift, sin_p, cos_p, first, last)
    if y1 > rail1:
        b = wheel_point_over(side, rail1, shift, sin_p, cos_p, first, last)
    return a, b


@jit
def summit(side, lo, hi, shift, sin_p, cos_p, height):
    """The local maximum of n between lo (n rising) and hi (n falling): Newton on n', kept in the bracket."""
    x = 0.5 * (lo + hi)
    for _ in range(ROOT_ITERATIONS):
        _, slope, bend = needed_lift(side, x, shift, sin_p, cos_p, height)
        step = slope / bend if bend < 0.0 else 1e30
        if abs(step) < 1e-15:
            break
        if slope > 0.0:
            lo = x
        else:
            hi = x
        if hi - lo < 2e-17 + 4e-16 * abs(x):
            break
        x -= step
        if not (lo < x < hi):
            x = 0.5 * (lo + hi)
    return x


@jit
def drop_lowest(place, lift, value):
    """Make room in a full list by taking out its lowest entry, if that lies below `value`; the new count."""
    lowest = 0
    for i in range(1, MAX_CONTACTS):
        if lift[i] < lift[lowest]:
            lowest = i
    if lift[lowest] >= value:
        return MAX_CONTACTS
    for i in range(lowest, MAX_CONTACTS - 1):
        place[i] = place[i + 1]
        lift[i] = lift[i + 1]
    return MAX_CONTACTS - 1


@jit
def side_contacts(side, shift, roll, height, place, lift):
    """The local maxima of n on one side, in order of x: fills place and lift, returns (count, highest, edge).

    A rough measured profile may have more than fit; the highest ones are kept.

    `edge` is n at the better end of the footprint: where it exceeds every maximum the wheel stands on the end of a
    profile. `highest` is the number of the largest maximum, -1 without any.
    """
    sin_p, cos_p = math.sin(roll), math.cos(roll)
    a, b = footprint(side, shift, sin_p, cos_p)
    count, highest = 0, -1
    if not (a < b):
        return 0, -1, -1e300
    step = (b - a) / side.cells
    before_x = a
    before_n, before, _ = needed_lift(side, a, shift, sin_p, cos_p, height)
    edge = before_n if before <= 0.0 else -1e300
    for k in range(1, side.cells + 1):
        x = a + k * step
        n, slope, _ = needed_lift(side, x, shift, sin_p, cos_p, height)
        if before > 0.0 and slope <= 0.0:
            top = summit(side, before_x, x, shift, sin_p, cos_p, height)
            value, _, _ = needed_lift(side, top, shift, sin_p, cos_p, height)
            if count == MAX_CONTACTS:
                count = drop_lowest(place, lift, value)
            if count < MAX_CONTACTS:
                place[count] = top
                lift[count] = value
                count += 1
        before_x, before = x, slope
        if k == side.cells and slope > 0.0 and n > edge:
            edge = n
    for i in range(count):
        if highest < 0 or lift[i] > lift[highest]:
            highest = i
    return count, highest, edge


@jit
def side_lift(side, shift, roll, height, place, lift):
    """Lift at which this wheel touches, its derivative over its own roll, and whether it stands on a profile's end."""
    _, highest, edge = side_contacts(side, shift, roll, height, place, lift)
    sin_p, cos_p = math.sin(roll), math.cos(roll)
    if highest < 0 or edge > lift[highest]:
        if edge < -1e299:
            return -1.0, -side.half_spacing, NO_OVERLAP
        return edge, -side.half_spacing, OFF_PROFILE
    x = place[highest]
    w, w1, _ = evaluate(side.wheel, x)
    across, up = side.half_spacing + x, w - side.radius
    # envelope: at the maximum only the explicit dependence on roll counts; the tangents are parallel
    slope = math.tan(math.atan(w1) + roll)
    rate = slope * (-across * sin_p - up * cos_p) - (across * cos_p - up * sin_p)
    return lift[highest], rate, TOUCHING


@jit
def touching_path(left, right, height, shift, lift, roll, status, contact, count):
    """Lift, roll and contacts of the rigid wheelset at every shift to the left.

    `contact` is (shifts, 2, MAX_CONTACTS, CONTACT_WIDTH), side 0 left, `count` (shifts, 2).
    """
    place = np.empty(MAX_CONTACTS)
    top = np.empty(MAX_CONTACTS)
    for k in range(shift.size):
        y = shift[k]
        lo, hi = -ROLL_LIMIT, ROLL_LIMIT
        phi, width = 0.0, 2.0 * ROLL_LIMIT
        found = False
        for _ in range(ROLL_ITERATIONS):
            z_left, rate_left, status_left = side_lift(left, y, phi, height, place, top)
            z_right, rate_right, status_right = side_lift(right, -y, -phi, height, place, top)
            difference = z_right - z_left
            rate = -rate_right - rate_left
            if difference > 0.0:
                hi = phi
            elif difference < 0.0:
                lo = phi
            else:
                found = True
                break
            step = -difference / rate if rate > 0.0 else 1e30
            if abs(step) < 2e-16:
                found = True
                break
            following = phi + step
            if not (lo < following < hi) or abs(step) > 0.5 * width:
                following = 0.5 * (lo + hi)
                step = following - phi
            width = hi - lo
            if following in (lo, hi):
                found = True
                break
            phi = following
        z_left, _, status_left = side_lift(left, y, phi, height, place, top)
        z_right, _, status_right = side_lift(right, -y, -phi, height, place, top)
        roll[k] = phi
        lift[k] = 0.5 * (z_left + z_right)
        status[k, 0], status[k, 1] = status_left, status_right
        if status_left == TOUCHING and status_right == TOUCHING and not (found and abs(z_left - z_right) < 1e-9):
            status[k, 0] = status[k, 1] = NO_ROLL
        for s in range(2):
            side = left if s == 0 else right
            sign = 1.0 if s == 0 else -1.0
            n, _, _ = side_contacts(side, sign * y, sign * phi, height, place, top)
            count[k, s] = n
            sin_p, cos_p = math.sin(sign * phi), math.cos(sign * phi)
            for i in range(n):
                x = place[i]
                w, w1, w2 = evaluate(side.wheel, x)
                across, up = side.half_spacing + x, w - side.radius
                rail_y = sign * y + across * cos_p - up * sin_p
                r, r1, r2 = evaluate(side.rail, rail_y)
                row = contact[k, s, i]
                row[CONTACT_X] = x
                row[CONTACT_GAP] = lift[k] - top[i]
                row[CONTACT_SLOPE] = w1
                row[CONTACT_WHEEL_BEND] = w2
                row[CONTACT_RAIL_Y] = rail_y
                row[CONTACT_RAIL_Z] = r
                row[CONTACT_RAIL_SLOPE] = r1
                row[CONTACT_RAIL_BEND] = r2


@jit
def crossing(side, inside, outside, level, shift, sin_p, cos_p, height):
    """Where n falls to `level` between a point inside the zone and one outside: false position with halving."""
    f_in, _, _ = needed_lift(side, inside, shift, sin_p, cos_p, height)
    f_out, _, _ = needed_lift(side, outside, shift, sin_p, cos_p, height)
    f_in -= level
    f_out -= level
    x = inside
    for _ in range(ROOT_ITERATIONS):
        x = inside + (outside - inside) * f_in / (f_in - f_out)
        f, _, _ = needed_lift(side, x, shift, sin_p, cos_p, height)
        f -= level
        if f > 0.0:
            inside, f_in = x, f
            f_out *= 0.5
        else:
            outside, f_out = x, f
            f_in *= 0.5
        if abs(f) < 1e-18 or abs(outside - inside) < 1e-15:
            break
    return x


@jit
def zone_moments(side, first, last, level, shift, sin_p, cos_p, height, edges, moment):
    """Add the integrals over one zone of interpenetration to `moment`.

    The weight is the depth (n - level) turned to the local normal. Panels end where a curvature steps, so that the
    Gauss rule only sees smooth functions and the result varies smoothly with the shift.
    """
    count = 0
    edges[count] = first
    count += 1
    for b in side.wheel.breaks:
        if first < b < last and count < MAX_BREAKS:
            edges[count] = b
            count += 1
    for b in side.rail.breaks:
        if count < MAX_BREAKS:
            x = wheel_point_over(side, b, shift, sin_p, cos_p, side.wheel.node[0], side.wheel.node[-1])
            if first < x < last:
                edges[count] = x
                count += 1
    edges[count] = last
    count += 1
    for i in range(1, count):  # insertion sort: a handful of numbers
        value = edges[i]
        j = i - 1
        while j >= 0 and edges[j] > value:
            edges[j + 1] = edges[j]
            j -= 1
        edges[j + 1] = value
    for i in range(count - 1):
        panels = int((edges[i + 1] - edges[i]) / PANEL_M) + 1
        half = 0.5 * (edges[i + 1] - edges[i]) / panels
        for p in range(panels):
            middle = edges[i] + (2 * p + 1) * half
            for g in range(GAUSS_X.size):
                x = middle + half * GAUSS_X[g]
                w, w1, _ = evaluate(side.wheel, x)
                n, _, _ = needed_lift(side, x, shift, sin_p, cos_p, height)
                stretch = math.sqrt(1.0 + w1 * w1)
                cos_d, sin_d = 1.0 / stretch, w1 / stretch
                length = half * GAUSS_W[g] * stretch
                depth = (n - level) * (cos_d * cos_p - sin_d * sin_p) * length
                z = (side.half_spacing + x) * sin_p + (w - side.radius) * cos_p + height
                moment[MOMENT_AREA] += depth
                moment[MOMENT_X] += depth * x
                moment[MOMENT_RADIUS] += depth * (side.radius - w)
                moment[MOMENT_SIN] += depth * sin_d
                moment[MOMENT_COS] += depth * cos_d
                moment[MOMENT_RAIL_Z] += depth * (z + n)
                moment[MOMENT_WIDTH_M] += length
    moment[MOMENT_ZONES] += 1.0


@jit
def interpenetration(side, sign, height, shift, lift, roll, depth, moment):
    """Moments of the zones in which the undeformed profiles overlap when the wheel sinks by `depth` [m].

    `shift`, `lift`, `roll` are those of the wheelset (to the left), `sign` is +1 for the left wheel, -1 for the right.
    """
    place = np.empty(MAX_CONTACTS)
    top = np.empty(MAX_CONTACTS)
    edges = np.empty(MAX_BREAKS + 2)
    for k in range(shift.size):
        moment[k, :] = 0.0
        u, p = sign * shift[k], sign * roll[k]
        sin_p, cos_p = math.sin(p), math.cos(p)
        level = lift[k] - depth[k]
        n, _, _ = side_contacts(side, u, p, height, place, top)
        a, b = footprint(side, u, sin_p, cos_p)
        step = (b - a) / side.cells
        reached = a
        for i in range(n):
            if top[i] <= level or place[i] < reached:
                continue
            inside = place[i]
            first = a
            while True:
                x = inside - step
                if x <= a:
                    break
                value, _, _ = needed_lift(side, x, u, sin_p, cos_p, height)
                if value <= level:
                    first = crossing(side, inside, x, level, u, sin_p, cos_p, height)
                    break
                inside = x
            inside = place[i]
            last = b
            while True:
                x = inside + step
                if x >= b:
                    break
                value, _, _ = needed_lift(side, x, u, sin_p, cos_p, height)
                if value <= level:
                    last = crossing(side, inside, x, level, u, sin_p, cos_p, height)
                    break
                inside = x
            zone_moments(side, max(first, reached), last, level, u, sin_p, cos_p, height, edges, moment[k])
            reached = last


@jit
def path_slopes(columns, k, roll):
    """Slopes of lift and roll over the shift from the touching conditions of both wheels (see engine.contact_table).

    columns[:, k] holds angle, lateral distance and radius of the left wheel, then of the right one.
    """
    dl, al, rl = columns[0, k], columns[1, k], columns[2, k]
    dr, ar, rr = columns[3, k], columns[4, k], columns[5, k]
    left, right = al * math.cos(dl) - rl * math.sin(dl), -(ar * math.cos(dr) - rr * math.sin(dr))
    cl, cr = math.cos(dl + roll), math.cos(dr - roll)
    sl, sr = math.sin(dl + roll), -math.sin(dr - roll)
    determinant = cl * right - cr * left
    return (sl * right - sr * left) / determinant, (cl * sr - cr * sl) / determinant


@jit
def integrate_path(columns, step, start, lift, roll):
    """Runge-Kutta 4 from node `start` to both ends; columns are given at half steps: (6, 2 n - 1)."""
    for direction in (1, -1):
        k = start
        h = direction * step
        while 0 <= k + direction < lift.size:
            z1, r1 = path_slopes(columns, 2 * k, roll[k])
            z2, r2 = path_slopes(columns, 2 * k + direction, roll[k] + 0.5 * h * r1)
            z3, r3 = path_slopes(columns, 2 * k + direction, roll[k] + 0.5 * h * r2)
            z4, r4 = path_slopes(columns, 2 * k + 2 * direction, roll[k] + h * r3)
            lift[k + direction] = lift[k] + h / 6.0 * (z1 + 2.0 * z2 + 2.0 * z3 + z4)
            roll[k + direction] = roll[k] + h / 6.0 * (r1 + 2.0 * r2 + 2.0 * r3 + r4)
            k += direction
