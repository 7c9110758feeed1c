"""Jacobian df/dy of the vehicle by finite differences that follow the body tree.

A dense difference evaluates everything for every column. Here each link is differenced for the coordinates of its own
two bodies only, each wheelset's contact for its own coordinates only, and the kinematic and gyroscopic rows are written
down; the sum is the same matrix. Steps are scaled: h = RELATIVE_STEP max(abs(y), typical size of that kind of state).
"""

import math

from railsweep.kernels.contact import wheelset_contact
from railsweep.kernels.jit import inline_jit, plain_jit
from railsweep.kernels.link import link_mechanics, link_wrench
from railsweep.kernels.record import (
    DAMPER_LAW,
    DAMPING,
    INERTIA_PITCH,
    INERTIA_ROLL,
    INERTIA_YAW,
    INTERNAL_KIND,
    INTERNAL_NONE,
    INTERNAL_STATE,
    INV_INERTIA_PITCH,
    INV_INERTIA_ROLL,
    INV_INERTIA_YAW,
    INV_MASS,
    LINEAR_LAW,
    LINK_KIND,
    LINK_LOWER,
    LINK_UPPER,
    MAXWELL,
    MOTION_WIDTH,
    NISHIMURA,
    PITCH_DOT,
    PLACE_CANT,
    PLACE_CANT_DOT,
    PLACE_CANT_DOT_DOT,
    PLACE_CURVATURE,
    PRECESSION,
    PRECESSION_OFF,
    PRECESSION_RIGHT,
    RADIAL,
    ROLL,
    ROLL_DOT,
    ROLLING_RADIUS,
    SPEED,
    SPRING_LAW,
    TRACK_KIND,
    TRACK_VARYING,
    VECTOR,
    WHEELSET_BODY,
    WHEELSET_SPIN,
    Y_DOT,
    YAW_DOT,
    Z_DOT,
    Y,
    Z,
)
from railsweep.kernels.status import OK
from railsweep.kernels.vehicle import gather_motion, place_bodies

# Difference steps by kind of coordinate: displacements and angles move the contact within 1e-8 m (a thousandth of a
# table interval); rates are an order of 100 larger in this problem.
POSITION_STEP = 1e-8
RATE_STEP = 1e-6
INTERNAL_STEP = 1e-7
RELATIVE_STEP = 1e-7


@inline_jit
def step_for(coordinate, value):
    """Difference step of a working coordinate (even: displacement, odd: rate)."""
    base = POSITION_STEP if coordinate % 2 == 0 else RATE_STEP
    return max(base, RELATIVE_STEP * abs(value) * (0.01 if coordinate % 2 == 0 else 1.0))


@inline_jit
def internal_states(kind):
    """Number of internal states of an element with memory."""
    if kind == INTERNAL_NONE:
        return 0
    if kind in (MAXWELL, NISHIMURA):
        return 1
    return 3


@inline_jit
def add_force(b, column, fy, fz, mx, my, mz, m, matrix):
    """Add the derivative of a force and moment on body `b` to one column; a wheelset has no pitch row."""
    row = m.body_index[b, Y_DOT]
    if row >= 0:
        matrix[row, column] += fy * m.body[b, INV_MASS]
    row = m.body_index[b, Z_DOT]
    if row >= 0:
        matrix[row, column] += fz * m.body[b, INV_MASS]
    row = m.body_index[b, ROLL_DOT]
    if row >= 0:
        matrix[row, column] += mx * m.body[b, INV_INERTIA_ROLL]
    row = m.body_index[b, PITCH_DOT]
    if row >= 0:
        matrix[row, column] += my * m.body[b, INV_INERTIA_PITCH]
    row = m.body_index[b, YAW_DOT]
    if row >= 0:
        matrix[row, column] += mz * m.body[b, INV_INERTIA_YAW]


@plain_jit
def add_link_column(k, column, scale, up, down, rates_up, rates_down, m, matrix):
    """Add (up - down) * scale of the wrench of link `k` to one column."""
    add_force(
        m.link_index[k, LINK_LOWER],
        column,
        (up[1] - down[1]) * scale,
        (up[2] - down[2]) * scale,
        (up[3] - down[3]) * scale,
        (up[4] - down[4]) * scale,
        (up[5] - down[5]) * scale,
        m,
        matrix,
    )
    add_force(
        m.link_index[k, LINK_UPPER],
        column,
        (up[7] - down[7]) * scale,
        (up[8] - down[8]) * scale,
        (up[9] - down[9]) * scale,
        (up[10] - down[10]) * scale,
        (up[11] - down[11]) * scale,
        m,
        matrix,
    )
    state = m.link_index[k, INTERNAL_STATE]
    for i in range(internal_states(m.link_index[k, INTERNAL_KIND])):
        matrix[state + i, column] += (rates_up[state + i] - rates_down[state + i]) * scale


@plain_jit
def link_jacobian(k, y, m, central, rates_up, rates_down, matrix):
    """Add the derivatives of link `k` with respect to its two bodies and its internal states.

    Evaluations that cannot tell anything new are left out: without a damper the rate columns are zero; with linear laws
    only the slow quadratic kinematics bend the wrench, over lengths of decimetres, so that a one-sided difference of
    1e-8 m is as good as a central one; and unless the track varies a link sees only the difference of y and of z of
    its two bodies, so these columns of the lower body are minus those of the upper one.
    """
    lower = m.link_index[k, LINK_LOWER]
    upper = m.link_index[k, LINK_UPPER]
    internal = m.link_index[k, INTERNAL_KIND]
    smooth_damper = m.link_index[k, DAMPER_LAW] == LINEAR_LAW and internal == INTERNAL_NONE
    damped = m.link[k, DAMPING] != 0.0 or not smooth_damper
    # the direction of a vector link, and of the damper of a radial one, turns over the length of the link itself
    kind = m.link_index[k, LINK_KIND]
    straight = kind != VECTOR and not (kind == RADIAL and damped)
    central = central and not (straight and smooth_damper and m.link_index[k, SPRING_LAW] == LINEAR_LAW)
    shared = m.header[TRACK_KIND] != TRACK_VARYING and internal == INTERNAL_NONE
    turning, framed = link_mechanics(m)
    base = link_wrench(k, turning, framed, False, y, rates_down, m)
    for end in range(2):
        b = upper if end == 0 else lower
        other = lower if end == 0 else upper
        for c in range(MOTION_WIDTH):
            column = m.body_index[b, c]
            twin = m.body_index[other, c] if shared and c < ROLL else -1
            if c % 2 == 1 and not damped:
                continue
            if end == 0:
                if column < 0 and twin < 0:
                    continue
            elif column < 0 or (shared and c < ROLL):
                continue
            value = m.motion[b, c]
            h = step_for(c, value)
            m.motion[b, c] = value + h
            up = link_wrench(k, turning, framed, False, y, rates_up, m)
            down = base
            scale = 1.0 / h
            if central:
                m.motion[b, c] = value - h
                down = link_wrench(k, turning, framed, False, y, rates_down, m)
                scale = 0.5 / h
            m.motion[b, c] = value
            if column >= 0:
                add_link_column(k, column, scale, up, down, rates_up, rates_down, m, matrix)
            if twin >= 0:
                add_link_column(k, twin, -scale, up, down, rates_up, rates_down, m, matrix)
    if internal == INTERNAL_NONE:
        return
    first = m.link_index[k, INTERNAL_STATE]
    for i in range(internal_states(internal)):
        value = y[first + i]
        h = max(INTERNAL_STEP, RELATIVE_STEP * abs(value))
        y[first + i] = value + h
        up = link_wrench(k, turning, framed, False, y, rates_up, m)
        y[first + i] = value - h
        down = link_wrench(k, turning, framed, False, y, rates_down, m)
        y[first + i] = value
        add_link_column(k, first + i, 0.5 / h, up, down, rates_up, rates_down, m, matrix)


@plain_jit
def add_contact_column(w, column, scale, up, down, m, matrix):
    """Add (up - down) * scale of the contact wrench of wheelset `w` to one column."""
    b = m.wheelset_index[w, WHEELSET_BODY]
    add_force(
        b,
        column,
        (up[1] - down[1]) * scale,
        (up[2] - down[2]) * scale,
        (up[3] - down[3]) * scale,
        0.0,
        (up[5] - down[5]) * scale,
        m,
        matrix,
    )
    row = m.wheelset_index[w, WHEELSET_SPIN]
    if row >= 0:
        matrix[row, column] += (up[4] - down[4]) * scale * m.body[b, INV_INERTIA_PITCH]


@plain_jit
def wheelset_jacobian(w, y, m, central, matrix):
    """Add the derivatives of the contact forces and gyroscopic moments of wheelset `w`."""
    b = m.wheelset_index[w, WHEELSET_BODY]
    spin_state = m.wheelset_index[w, WHEELSET_SPIN]
    spin = y[spin_state] if spin_state >= 0 else 0.0
    base = wheelset_contact(w, spin, m, None, 0)
    for c in range(MOTION_WIDTH):
        column = m.body_index[b, c]
        if column < 0:
            continue
        value = m.motion[b, c]
        h = step_for(c, value)
        m.motion[b, c] = value + h
        up = wheelset_contact(w, spin, m, None, 0)
        if central:
            m.motion[b, c] = value - h
            down = wheelset_contact(w, spin, m, None, 0)
            scale = 0.5 / h
        else:
            down = base
            scale = 1.0 / h
        m.motion[b, c] = value
        add_contact_column(w, column, scale, up, down, m, matrix)
    if spin_state >= 0:
        h = max(RATE_STEP, RELATIVE_STEP * abs(spin))
        up = wheelset_contact(w, spin + h, m, None, 0)
        if central:
            down = wheelset_contact(w, spin - h, m, None, 0)
            scale = 0.5 / h
        else:
            down = base
            scale = 1.0 / h
        add_contact_column(w, spin_state, scale, up, down, m, matrix)

    mode = m.header[PRECESSION]
    if mode == PRECESSION_OFF:
        return
    roll_row, yaw_row = m.body_index[b, ROLL_DOT], m.body_index[b, YAW_DOT]
    omega = m.operation[SPEED] / m.wheelset[w, ROLLING_RADIUS] + spin
    turn = m.operation[SPEED] * m.place[b, PLACE_CURVATURE] * math.cos(m.place[b, PLACE_CANT])
    roll_dot, yaw_dot = m.motion[b, ROLL_DOT], m.motion[b, YAW_DOT]
    jx, jy, jz = m.body[b, INERTIA_ROLL], m.body[b, INERTIA_PITCH], m.body[b, INERTIA_YAW]
    if mode == PRECESSION_RIGHT:
        roll_by_yaw, yaw_by_roll = jy * omega, -jy * omega
        roll_by_spin = jy * (yaw_dot - turn)
        yaw_by_spin = -jy * (roll_dot + m.place[b, PLACE_CANT_DOT])
    else:
        roll_by_yaw, yaw_by_roll = (jy - jz) * omega, (jx - jy) * omega
        roll_by_spin = -jx * turn + (jy - jz) * (yaw_dot - turn)
        yaw_by_spin = (jx - jy) * roll_dot
    if roll_row >= 0:
        if yaw_row >= 0:
            matrix[roll_row, yaw_row] += roll_by_yaw * m.body[b, INV_INERTIA_ROLL]
        if spin_state >= 0:
            matrix[roll_row, spin_state] += roll_by_spin * m.body[b, INV_INERTIA_ROLL]
    if yaw_row >= 0:
        if roll_row >= 0:
            matrix[yaw_row, roll_row] += yaw_by_roll * m.body[b, INV_INERTIA_YAW]
        if spin_state >= 0:
            matrix[yaw_row, spin_state] += yaw_by_spin * m.body[b, INV_INERTIA_YAW]


@plain_jit
def fill_jacobian(t, y, m, matrix, central):
    """Fill `matrix` with df/dy at (t, y); `central` chooses central or one-sided differences.

    Internal states of `y` are disturbed and restored.
    """
    matrix[:, :] = 0.0
    gather_motion(y, m)
    place_bodies(t, m)
    varying = m.header[TRACK_KIND] == TRACK_VARYING
    for b in range(m.body.shape[0]):
        for c in range(0, MOTION_WIDTH, 2):
            state = m.body_index[b, c]
            if state >= 0 and m.body_index[b, c + 1] >= 0:
                matrix[state, m.body_index[b, c + 1]] = 1.0
        if varying:
            y_row, z_row = m.body_index[b, Y_DOT], m.body_index[b, Z_DOT]
            if y_row >= 0 and z_row >= 0:
                cant_dot, cant_dot_dot = m.place[b, PLACE_CANT_DOT], m.place[b, PLACE_CANT_DOT_DOT]
                matrix[y_row, m.body_index[b, Z]] += cant_dot_dot
                matrix[y_row, z_row] += 2.0 * cant_dot
                matrix[z_row, m.body_index[b, Y]] -= cant_dot_dot
                matrix[z_row, y_row] -= 2.0 * cant_dot
    for k in range(m.link.shape[0]):
        link_jacobian(k, y, m, central, m.rates[0], m.rates[1], matrix)
    for w in range(m.wheelset.shape[0]):
        wheelset_jacobian(w, y, m, central, matrix)


@plain_jit
def vehicle_jacobian(t, y, m, matrix):
    """df/dy by central differences, in the form that integrators and Newton's method call."""
    fill_jacobian(t, y, m, matrix, True)
    return OK


@plain_jit
def vehicle_jacobian_one_sided(t, y, m, matrix):
    """df/dy by one-sided differences: two thirds of the cost, good enough for Newton's method inside a step."""
    fill_jacobian(t, y, m, matrix, False)
    return OK
