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

from railsweep.kernels.contact import sine_cosine, wheelset_contact
from railsweep.kernels.irregularity import place_rails
from railsweep.kernels.jit import inline_jit, plain_jit
from railsweep.kernels.link import link_action, link_mechanics, pair_motion, to_lower_frame
from railsweep.kernels.record import (
    ARC,
    BODY_WHEELSET,
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
    WHEELSET_SPIN,
    Y_DOT,
    YAW,
    YAW_DOT,
    Z_DOT,
    Y,
    Z,
)
from railsweep.kernels.status import OK
from railsweep.kernels.track import track_at


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
        curvature, curvature_dot, cant, cant_dot, cant_dot_dot = track_at(s + local * m.body[b, ARC], speed, m.track)
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


@inline_jit
def sum_links(y, out, m):
    """Set `m.force` to the sum of all link forces on every body (but for fx: nothing moves along the track).

    Internal rates go to `out`. Returns a status.
    """
    force = m.force
    for b in range(m.body.shape[0]):
        for c in range(FORCE_WIDTH):
            force[b, c] = 0.0
    worst = OK
    turning, framed = link_mechanics(m)
    links = m.link.shape[0]
    k = 0
    while k < links:
        # neighbours between the same two bodies share their motion and are summed before they go to memory
        lower = m.link_index[k, LINK_LOWER]
        upper = m.link_index[k, LINK_UPPER]
        motion1, motion2, turn, twist = pair_motion(lower, upper, framed, m)
        fx, fy, fz = 0.0, 0.0, 0.0
        mx1, my1, mz1 = 0.0, 0.0, 0.0
        mx2, my2, mz2 = 0.0, 0.0, 0.0
        while k < links and m.link_index[k, LINK_LOWER] == lower and m.link_index[k, LINK_UPPER] == upper:
            ax, ay, az, bx1, by1, bz1, bx2, by2, bz2, _, _, _, status = link_action(
                k, turning, False, motion1, motion2, y, out, m
            )
            fx, fy, fz = fx + ax, fy + ay, fz + az
            mx1, my1, mz1 = mx1 + bx1, my1 + by1, mz1 + bz1
            mx2, my2, mz2 = mx2 + bx2, my2 + by2, mz2 + bz2
            if status != OK:
                worst = status
            k += 1
        force[upper, FY] -= fy
        force[upper, FZ] -= fz
        force[upper, MX] += mx2
        force[upper, MY] += my2
        force[upper, MZ] += mz2
        if framed:
            fx, fy, fz, mx1, my1, mz1 = to_lower_frame(fx, fy, fz, mx1, my1, mz1, turn, twist)
        force[lower, FY] += fy
        force[lower, FZ] += fz
        force[lower, MX] += mx1
        force[lower, MY] += my1
        force[lower, MZ] += mz1
    return worst


@inline_jit
def gyroscopic_moment(body, w, spin, m):
    """Roll and yaw moment of the spinning wheelset `w` on itself, by the chosen form of precession [N m]."""
    mode = m.header[PRECESSION]
    if mode == PRECESSION_OFF:
        return 0.0, 0.0
    omega = m.operation[SPEED] / m.wheelset[w, ROLLING_RADIUS] + spin
    _, cos_cant = sine_cosine(m.place[body, PLACE_CANT])
    turn = m.operation[SPEED] * m.place[body, PLACE_CURVATURE] * cos_cant
    roll_dot = m.motion[body, ROLL_DOT]
    yaw_dot = m.motion[body, YAW_DOT]
    jx, jy, jz = m.body[body, INERTIA_ROLL], m.body[body, INERTIA_PITCH], m.body[body, INERTIA_YAW]
    if mode == PRECESSION_RIGHT:
        return jy * omega * (yaw_dot - turn), -jy * omega * (roll_dot + m.place[body, PLACE_CANT_DOT])
    return -jx * omega * turn + (jy - jz) * (omega * yaw_dot - omega * turn), (jx - jy) * roll_dot * omega


@inline_jit
def put(out, state, value):
    """Write `value` unless the coordinate is not a state."""
    if state >= 0:
        out[state] = value


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
    gather_motion(y, m)
    place_bodies(t, m)
    status = sum_links(y, out, m)
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
        w = m.body_index[b, BODY_WHEELSET]
        fy, fz, mx, my, mz = force[b, FY], force[b, FZ], force[b, MX], force[b, MY], force[b, MZ]
        if w >= 0:
            spin_state = m.wheelset_index[w, WHEELSET_SPIN]
            spin = y[spin_state] if spin_state >= 0 else 0.0
            _, cy, cz, cmx, cmy, cmz, contact_status = wheelset_contact(w, spin, m, m.force, -1)
            if contact_status != OK:
                status = contact_status
            gx, gz = gyroscopic_moment(b, w, spin, m)
            fy += cy
            fz += cz
            mx += cmx + gx
            mz += cmz + gz
            put(out, spin_state, cmy * m.body[b, INV_INERTIA_PITCH])
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
