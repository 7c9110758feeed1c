"""The right-hand side of any assembled vehicle: y' = f(t, y).

Newton-Euler equations of every body in the track frame at its own place (spec 2.3-2.7). With speed v, curvature c,
cant p, and k = cos p, s = sin p:

    y''    = Fy/m + v^2 c k - g s  [+ p'' (h + z) + 2 p' z']
    z''    = Fz/m - v^2 c s - g k  [- p'' y - 2 p' y']
    roll'' = Mx/Jx [- p'']      pitch'' = My/Jy [+ (v c s)']      yaw'' = Mz/Jz [+ (v c k)']

Terms in v^2 c^2 and p'^2 are dropped (spec 2.5), and so is the vertical part of the offset between two bodies on a
canted curve (versine times sin p, 3 mm at 600 m): it only shifts free heights. The bracketed terms of a varying
track belong to local frames (`physics`); the published program drops them. Wheelsets have a spin
perturbation instead of pitch (J b' = contact pitch moment) and gyroscopic moments with Omega = v/r0 + b:

    printed (2.5.2, 2.5.4): Mx = -Jx Omega v c k + (Jy - Jz)(Omega yaw' - Omega v c k),  Mz = (Jx - Jy) roll' Omega
    right   (2.5.5):        Mx = Jy Omega (yaw' - v c k),                                Mz = -Jy Omega (roll' + p')
"""

from numba import types

from railsweep.kernels.contact import sine_cosine, wheelset_contact
from railsweep.kernels.irregularity import place_rails
from railsweep.kernels.jit import inline_jit, plain_jit
from railsweep.kernels.lane import LANES, all_lanes, at, by_kind, choose, lane, lane_item, mates, with_item
from railsweep.kernels.link import link_action, link_mechanics, pair_motion, to_lower_frame
from railsweep.kernels.record import (
    ARC,
    BUNDLE_FIRST,
    BUNDLE_LANES,
    BUNDLE_LINKS,
    CANT,
    CURVATURE,
    FORCE_WIDTH,
    FY,
    FZ,
    GRAVITY,
    HEIGHT,
    INERTIA_PITCH,
    INERTIA_ROLL,
    INERTIA_YAW,
    INV_INERTIA_PITCH,
    INV_INERTIA_ROLL,
    INV_INERTIA_YAW,
    INV_MASS,
    LINK_LOWER,
    LINK_UPPER,
    LOCAL_FRAMES,
    MOTION_WIDTH,
    MX,
    MY,
    MZ,
    PITCH,
    PITCH_DOT,
    PLACE_CANT,
    PLACE_CANT_DOT,
    PLACE_CANT_DOT_DOT,
    PLACE_CURVATURE,
    PLACE_CURVATURE_DOT,
    PRECESSION,
    PRECESSION_OFF,
    PRECESSION_RIGHT,
    ROLL,
    ROLL_DOT,
    ROLLING_RADIUS,
    SPEED,
    START,
    TRACK_KIND,
    TRACK_STRAIGHT,
    TRACK_VARYING,
    WHEELSET_BODY,
    WHEELSET_SPIN,
    Y_DOT,
    YAW,
    YAW_DOT,
    Z_DOT,
    Y,
    Z,
)
from railsweep.kernels.status import OK
from railsweep.kernels.track import place_on_track


@inline_jit
def place_bodies(t, m):
    """Fill `m.rail`, and `m.place`: curvature and cant with rates at every body (one place without local frames)."""
    place_rails(t, m)
    bodies = m.body.shape[0]
    if m.header[TRACK_KIND] != TRACK_VARYING:
        curvature = m.operation[CURVATURE]
        cant = m.operation[CANT]
        for b in range(bodies):
            m.place[b, PLACE_CURVATURE] = curvature
            m.place[b, PLACE_CURVATURE_DOT] = 0.0
            m.place[b, PLACE_CANT] = cant
            m.place[b, PLACE_CANT_DOT] = 0.0
            m.place[b, PLACE_CANT_DOT_DOT] = 0.0
        return
    speed = m.operation[SPEED]
    s = m.operation[START] + speed * t
    local = m.header[LOCAL_FRAMES]
    for b in range(bodies):
        curvature, curvature_dot, cant, cant_dot, cant_dot_dot = place_on_track(
            s + local * m.body[b, ARC], speed, m.track
        )
        m.place[b, PLACE_CURVATURE] = curvature
        m.place[b, PLACE_CANT] = cant
        m.place[b, PLACE_CURVATURE_DOT] = local * curvature_dot
        m.place[b, PLACE_CANT_DOT] = local * cant_dot
        m.place[b, PLACE_CANT_DOT_DOT] = local * cant_dot_dot


@inline_jit
def gather_motion(y, m):
    """Fill `m.motion` from the state vector; coordinates that are not states stay zero."""
    for b in range(m.body.shape[0]):
        for c in range(MOTION_WIDTH):
            state = m.body_index[b, c]
            m.motion[b, c] = y[state] if state >= 0 else 0.0


def row_of_bundle(row, which, m):
    """The link of one lane in a row of `bundle_link`, or (`which` None) those of all."""
    raise NotImplementedError("for kernels only")


def _one_of_bundle(row, which, m):
    return m.bundle_link[row, which]


def _all_of_bundle(row, which, m):
    return mates(m.bundle_link, row)


@by_kind(row_of_bundle)
def _row_of_bundle(row, which, m):
    return _all_of_bundle if which == types.none else _one_of_bundle


@inline_jit
def chunk_wrench(which, first, count, turning, framed, y, out, m):
    """Sum of the links in rows from `first` of `bundle_link`, of one lane or (`which` None) of every lane in its own.

    (fy, fz, mx, my, mz) on the lower body and on the upper one, each in the frame of that body, and a status.
    """
    k = row_of_bundle(first, which, m)
    lower, upper = at(m.link_index, k, LINK_LOWER), at(m.link_index, k, LINK_UPPER)
    motion1, motion2, turn, twist = pair_motion(lower, upper, framed, m)
    fx, fy, fz = 0.0, 0.0, 0.0
    mx1, my1, mz1 = 0.0, 0.0, 0.0
    mx2, my2, mz2 = 0.0, 0.0, 0.0
    worst = OK
    for row in range(first, first + count):
        k = row_of_bundle(row, which, m)
        ax, ay, az, bx1, by1, bz1, bx2, by2, bz2, _, _, _, status = link_action(
            k, turning, False, motion1, motion2, y, out, m
        )
        fx, fy, fz = fx + ax, fy + ay, fz + az
        mx1, my1, mz1 = mx1 + bx1, my1 + by1, mz1 + bz1
        mx2, my2, mz2 = mx2 + bx2, my2 + by2, mz2 + bz2
        worst = choose(status != OK, status, worst)
    fy2, fz2 = fy, fz
    if framed:
        fx, fy, fz, mx1, my1, mz1 = to_lower_frame(fx, fy, fz, mx1, my1, mz1, turn, twist)
    return fy, fz, mx1, my1, mz1, -fy2, -fz2, mx2, my2, mz2, worst


@inline_jit
def add_to_body(force, b, fy, fz, mx, my, mz):
    """Add a force and a moment to those on body `b`."""
    force[b, FY] += fy
    force[b, FZ] += fz
    force[b, MX] += mx
    force[b, MY] += my
    force[b, MZ] += mz


def add_bundle(g, turning, framed, y, out, m):
    """Add the forces of one bundle of links to `m.force`; returns a status.

    A single case takes all lanes of the bundle at once, lanes of cases take them one by one, with the same sums.
    """
    raise NotImplementedError("for kernels only")


def _add_bundle_at_once(g, turning, framed, y, out, m):
    worst = OK
    first = m.bundle[g, BUNDLE_FIRST]
    fy1, fz1, mx1, my1, mz1, fy2, fz2, mx2, my2, mz2, status = chunk_wrench(
        None, first, m.bundle[g, BUNDLE_LINKS], turning, framed, y, out, m
    )
    for i in range(m.bundle[g, BUNDLE_LANES]):
        k = m.bundle_link[first, i]
        add_to_body(
            m.force,
            m.link_index[k, LINK_UPPER],
            lane_item(fy2, i),
            lane_item(fz2, i),
            lane_item(mx2, i),
            lane_item(my2, i),
            lane_item(mz2, i),
        )
        add_to_body(
            m.force,
            m.link_index[k, LINK_LOWER],
            lane_item(fy1, i),
            lane_item(fz1, i),
            lane_item(mx1, i),
            lane_item(my1, i),
            lane_item(mz1, i),
        )
        one = int(lane_item(status, i))
        worst = choose(one != OK, one, worst)
    return worst


def _add_bundle_one_by_one(g, turning, framed, y, out, m):
    worst = all_lanes(0.0)
    first = m.bundle[g, BUNDLE_FIRST]
    for i in range(m.bundle[g, BUNDLE_LANES]):
        fy1, fz1, mx1, my1, mz1, fy2, fz2, mx2, my2, mz2, status = chunk_wrench(
            i, first, m.bundle[g, BUNDLE_LINKS], turning, framed, y, out, m
        )
        k = m.bundle_link[first, i]
        add_to_body(m.force, m.link_index[k, LINK_UPPER], fy2, fz2, mx2, my2, mz2)
        add_to_body(m.force, m.link_index[k, LINK_LOWER], fy1, fz1, mx1, my1, mz1)
        worst = choose(status != OK, status, worst)
    return worst


@by_kind(add_bundle)
def _add_bundle(g, turning, framed, y, out, m):
    return _add_bundle_one_by_one if y.dtype == lane else _add_bundle_at_once


@inline_jit
def sum_links(y, out, m):
    """Set `m.force` to the sum of all link forces on every body (but for fx: nothing moves along the track).

    Internal rates go to `out`. Returns a status.
    """
    for b in range(m.body.shape[0]):
        for c in range(FORCE_WIDTH):
            m.force[b, c] = 0.0
    worst = OK
    turning, framed = link_mechanics(m)
    for g in range(m.bundle.shape[0]):
        status = add_bundle(g, turning, framed, y, out, m)
        worst = choose(status != OK, status, worst)
    return worst


@inline_jit
def put(out, state, value):
    """Write `value` unless the coordinate is not a state."""
    if state >= 0:
        out[state] = value


@inline_jit
def gyroscopic_moment(body, w, spin, m):
    """Roll and yaw moment of the spinning wheelset `w` on itself, by the chosen form of precession [N m]."""
    mode = m.header[PRECESSION]
    if mode == PRECESSION_OFF:
        return 0.0, 0.0
    omega = m.operation[SPEED] / at(m.wheelset, w, ROLLING_RADIUS) + spin
    _, cos_cant = sine_cosine(at(m.place, body, PLACE_CANT))
    turn = m.operation[SPEED] * at(m.place, body, PLACE_CURVATURE) * cos_cant
    roll_dot = at(m.motion, body, ROLL_DOT)
    yaw_dot = at(m.motion, body, YAW_DOT)
    jx, jy, jz = at(m.body, body, INERTIA_ROLL), at(m.body, body, INERTIA_PITCH), at(m.body, body, INERTIA_YAW)
    if mode == PRECESSION_RIGHT:
        return jy * omega * (yaw_dot - turn), -jy * omega * (roll_dot + at(m.place, body, PLACE_CANT_DOT))
    return -jx * omega * turn + (jy - jz) * (omega * yaw_dot - omega * turn), (jx - jy) * roll_dot * omega


@inline_jit
def wheelset_wrench(w, spin, m):
    """Force and moment of contact and precession on a wheelset, or on a tuple of them: (fy, fz, mx, my, mz, status)."""
    _, fy, fz, mx, my, mz, status = wheelset_contact(w, spin, m, None, 0)
    gx, gz = gyroscopic_moment(at(m.wheelset_index, w, WHEELSET_BODY), w, spin, m)
    return fy, fz, mx + gx, my, mz + gz, status


@inline_jit
def spin_of(w, y, m):
    """Spin of wheelset `w` [rad/s]."""
    state = m.wheelset_index[w, WHEELSET_SPIN]
    return y[state] if state >= 0 else 0.0


@inline_jit
def add_to_wheelset(w, fy, fz, mx, my, mz, out, m):
    """Add a force and roll and yaw moments to those on wheelset `w`; its spin takes the pitch moment."""
    b = m.wheelset_index[w, WHEELSET_BODY]
    add_to_body(m.force, b, fy, fz, mx, 0.0, mz)
    put(out, m.wheelset_index[w, WHEELSET_SPIN], my * m.body[b, INV_INERTIA_PITCH])


def add_team(g, y, out, m):
    """Add contact and precession of one team of wheelsets to `m.force`, their spin rates to `out`; returns a status.

    A single case takes all wheelsets of the team at once, lanes of cases take them one by one, with the same sums.
    """
    raise NotImplementedError("for kernels only")


def _add_team_at_once(g, y, out, m):
    worst = OK
    spin = all_lanes(0.0)
    for i in range(LANES):
        spin = with_item(spin, i, spin_of(m.team[g, i], y, m))
    fy, fz, mx, my, mz, status = wheelset_wrench(mates(m.team, g), spin, m)
    for i in range(m.team[g, LANES]):
        add_to_wheelset(
            m.team[g, i],
            lane_item(fy, i),
            lane_item(fz, i),
            lane_item(mx, i),
            lane_item(my, i),
            lane_item(mz, i),
            out,
            m,
        )
        one = int(lane_item(status, i))
        worst = choose(one != OK, one, worst)
    return worst


def _add_team_one_by_one(g, y, out, m):
    worst = all_lanes(0.0)
    for i in range(m.team[g, LANES]):
        w = m.team[g, i]
        fy, fz, mx, my, mz, status = wheelset_wrench(w, spin_of(w, y, m), m)
        add_to_wheelset(w, fy, fz, mx, my, mz, out, m)
        worst = choose(status != OK, status, worst)
    return worst


@by_kind(add_team)
def _add_team(g, y, out, m):
    return _add_team_one_by_one if y.dtype == lane else _add_team_at_once


@inline_jit
def evaluate_vehicle(t, y, m, out):
    """Right-hand side of one case, or of lanes of cases; returns a status."""
    gather_motion(y, m)
    place_bodies(t, m)
    status = sum_links(y, out, m)
    for g in range(m.team.shape[0]):
        contact_status = add_team(g, y, out, m)
        status = choose(contact_status != OK, contact_status, status)
    speed = m.operation[SPEED]
    gravity = m.operation[GRAVITY]
    straight = m.header[TRACK_KIND] == TRACK_STRAIGHT
    varying = m.header[TRACK_KIND] == TRACK_VARYING
    q = m.motion
    force = m.force
    fict_y, fict_z = 0.0, -gravity
    for b in range(m.body.shape[0]):
        if not straight:
            sin_cant, cos_cant = sine_cosine(m.place[b, PLACE_CANT])
            centrifugal = speed * speed * m.place[b, PLACE_CURVATURE]
            fict_y = centrifugal * cos_cant - gravity * sin_cant
            fict_z = -centrifugal * sin_cant - gravity * cos_cant
        fy, fz, mx, my, mz = force[b, FY], force[b, FZ], force[b, MX], force[b, MY], force[b, MZ]
        ay = fy * m.body[b, INV_MASS] + fict_y
        az = fz * m.body[b, INV_MASS] + fict_z
        a_roll = mx * m.body[b, INV_INERTIA_ROLL]
        a_pitch = my * m.body[b, INV_INERTIA_PITCH]
        a_yaw = mz * m.body[b, INV_INERTIA_YAW]
        if varying:
            cant_dot = m.place[b, PLACE_CANT_DOT]
            cant_dot_dot = m.place[b, PLACE_CANT_DOT_DOT]
            ay += cant_dot_dot * (m.body[b, HEIGHT] + q[b, Z]) + 2.0 * cant_dot * q[b, Z_DOT]
            az -= cant_dot_dot * q[b, Y] + 2.0 * cant_dot * q[b, Y_DOT]
            a_roll -= cant_dot_dot
            bend_dot = speed * m.place[b, PLACE_CURVATURE_DOT]
            bend = speed * m.place[b, PLACE_CURVATURE]
            a_pitch += bend_dot * sin_cant + bend * cos_cant * cant_dot
            a_yaw += bend_dot * cos_cant - bend * sin_cant * cant_dot
        index = m.body_index[b]
        put(out, index[Y], q[b, Y_DOT])
        put(out, index[Y_DOT], ay)
        put(out, index[Z], q[b, Z_DOT])
        put(out, index[Z_DOT], az)
        put(out, index[ROLL], q[b, ROLL_DOT])
        put(out, index[ROLL_DOT], a_roll)
        put(out, index[PITCH], q[b, PITCH_DOT])
        put(out, index[PITCH_DOT], a_pitch)
        put(out, index[YAW], q[b, YAW_DOT])
        put(out, index[YAW_DOT], a_yaw)
    return status


@plain_jit
def vehicle_rhs(t, y, m, out):
    """Right-hand side; returns a status. `out` is complete only when the status is OK.

    Parameters
    ----------
    t : float
        Time [s].
    y : array
        State (SI: m, rad, m/s, rad/s).
    m : VehicleArrays
        The packed vehicle; its work space is overwritten.
    out : array
        Receives dy/dt.
    """
    return evaluate_vehicle(t, y, m, out)
