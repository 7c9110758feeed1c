"""Wheel-rail contact at run time: from the motion of one wheelset to the forces of all its contact points.

A contact table gives everything about one contact point of one wheel over the lateral shift u of the wheelset towards
that wheel's rail (left wheel u = +y, right wheel u = -y), as cubic coefficients per interval of a uniform grid.
Spec 2.9-2.12, with side s = +1 left, -1 right, delta the contact angle, phi the roll:

* normal force N = K q^1.5 (Hertz), q the penetration; q <= 0 is lift-off and gives no force;
* the patch grows with sqrt(q): a = A sqrt(q), b = B sqrt(q), so that a ~ N^(1/3) and C_ij stay those of the table;
* an optional damper c q' along the normal (off by default), which never pulls: without it nothing damps the bounce of a
  wheelset on its contacts (266 Hz in the wagon), and hunting then has no period. Creep works with the elastic N;
* creepages with yaw, roll, vertical, spin and curvature terms; Kalker's linear forces, saturated by the chosen law.

Penetration, `dytsi` (2.9.3-5): q = q0(u) - [r (sin phi_s - phi_s) + a_w (cos phi - 1)] sin(delta + phi_s)
- (z + phi_s a_w) cos(delta + phi_s), phi_s = s phi: the lift of the wheelset on its way sideways is missing (A3).
Penetration, `physics`: the table also carries the path (lift z_g, roll phi_g) on which the rigid wheelset touches both
rails. Seen from that path q = q_p + (z_g - z) cos(delta + phi_s) + (phi_g - phi_s) [a_w cos(delta) - r sin(delta)]
(the arms turn with the wheelset, so the last bracket is in its own axes); with a path that obeys the touching
constraint, dq/dy = sin(delta) at fixed z and roll follows, and the force and moment of N are -N dq/d(z, roll).

Irregular track: all of this happens in the frame of the displaced rails (origin midway between them at top of rail,
turned by the cross level), into which the motion is transformed and from which the force is turned back. Slip is that
of wheel material over rails at rest: rails that move sideways along the way add none (a wheelset that follows them with
y' = v d' and yaw = d' rolls freely), while on a rise the contact point moves ahead by r d' and the wheel's own turning
takes v d' off its vertical velocity, so vertical rates count relative to the rail. The rate of penetration is that of
the wheel relative to the displaced rails in every direction.
"""

import math

from railsweep.kernels.creep import LINEAR, heavy_creep, shen_hedrick_elkins
from railsweep.kernels.jit import inline_jit
from railsweep.kernels.lane import any_of, at, choose, cosine, cubic_columns, leader, root, sine, size, table_column
from railsweep.kernels.record import (
    AXIS_B,
    CREEP_LAW,
    FRICTION,
    GEOMETRIC_LIFT,
    GRID_FIRST,
    GRID_INTERVALS,
    GRID_INV_STEP,
    GRID_START,
    HALF_SPACING,
    IRREGULARITY,
    LEFT_COUNT,
    LEFT_FIRST,
    LOCAL_FRAMES,
    NORMAL_DAMPING,
    PLACE_CANT,
    PLACE_CURVATURE,
    PLACE_CURVATURE_DOT,
    RAIL_GAUGE,
    RAIL_GAUGE_DOT,
    RAIL_ROLL,
    RAIL_ROLL_DOT,
    RAIL_Y,
    RAIL_Y_DOT,
    RAIL_Z,
    RAIL_Z_DOT,
    ROLL,
    ROLL_DOT,
    ROLL_MOMENT,
    ROLLING_RADIUS,
    SHEAR_MODULUS,
    SPEED,
    WHEELSET_BODY,
    Y_DOT,
    YAW,
    YAW_DOT,
    YAW_LEVER,
    Z_DOT,
    Y,
    Z,
)
from railsweep.kernels.status import DERAILED, OK

# What `contact_point` reports per contact point, beside its force on the wheelset.
(
    POINT_SHIFT,
    POINT_ANGLE,
    POINT_PENETRATION,
    POINT_NORMAL,
    POINT_CREEP_X,
    POINT_CREEP_Y,
    POINT_CREEP_SPIN,
    POINT_TANGENT_X,
    POINT_TANGENT_Y,
    POINT_FX,
    POINT_FY,
    POINT_FZ,
    POINT_LEVER,
    POINT_RADIUS,
    POINT_AXIS_A,
    POINT_AXIS_B,
) = range(16)
POINT_WIDTH = 16


SMALL_ANGLE = 0.3


@inline_jit
def sine_cosine(x):
    """sin x and cos x; below SMALL_ANGLE by their series, whose first missing term is under 1e-16."""
    q = x * x
    sin_x = x * (1.0 - q * (1 / 6 - q * (1 / 120 - q * (1 / 5040 - q * (1 / 362880 - q * (1 / 39916800))))))
    cos_x = 1.0 - q * (0.5 - q * (1 / 24 - q * (1 / 720 - q * (1 / 40320 - q * (1 / 3628800 - q * (1 / 479001600))))))
    large = size(x) > SMALL_ANGLE
    if any_of(large):
        sin_x, cos_x = choose(large, sine(x), sin_x), choose(large, cosine(x), cos_x)
    return sin_x, cos_x


@inline_jit
def contact_point(table, s, motion, run, m, report, row):
    """Force and moment of one contact point on its wheelset, and a status.

    `table` is the table number, `s` the side; `motion` and `run` are what `wheelset_contact` prepares. Returns (fx, fy,
    fz, m_roll, m_pitch, m_yaw, status) about the wheelset centre. The details are written to `report[row]` unless
    `report` is None. On plain numbers or lanes.
    """
    y, y_dot, z, z_dot, roll, roll_dot, yaw, yaw_dot, shift_dot, gauge, gauge_dot, rail_roll_dot, sin_roll, cos_roll = (
        motion
    )
    speed, inv_speed, omega, attack, bend, frame_spin = run

    # a wider gauge moves this rail away from the wheel by half of it
    u = s * y - 0.5 * gauge
    x = (u - m.table_grid[table, GRID_START]) * m.table_grid[table, GRID_INV_STEP]
    intervals = m.table_grid[table, GRID_INTERVALS]
    inside = (x >= 0.0) & (x <= intervals)
    status = choose(inside, OK, DERAILED)
    nothing = choose(inside, 0.0, 0.0)
    x = choose(inside, x, 0.0)
    first = int(m.table_grid[table, GRID_FIRST])
    last = int(intervals) - 1
    # the columns from SIN_ANGLE to AXIS_A, in the order of the record
    sin_angle, cos_angle, hertz, path, lift, path_roll, lever, radius, k11, k22, k23, axis_a = cubic_columns(
        m.table, first, last, x
    )
    roll_s = s * roll
    sin_sum = sin_angle * cos_roll + cos_angle * s * sin_roll
    cos_sum = cos_angle * cos_roll - sin_angle * s * sin_roll
    if m.header[GEOMETRIC_LIFT] == 1:
        q = path + (lift - z) * cos_sum + (path_roll - roll_s) * (lever * cos_angle - radius * sin_angle)
    else:
        q = (
            path
            - (radius * (s * sin_roll - roll_s) + lever * (cos_roll - 1.0)) * sin_sum
            - (z + roll_s * lever) * cos_sum
        )
    # between the last row of a point that fades out and the first where it is absent a spline may undershoot
    touching = (q > 0.0) & (hertz > 0.0) & inside
    if report is not None and not any_of(touching):
        report[row, :] = 0.0
        report[row, POINT_SHIFT] = u
        report[row, POINT_ANGLE] = math.atan2(sin_angle, cos_angle)
        report[row, POINT_PENETRATION] = q
        report[row, POINT_LEVER] = lever
        report[row, POINT_RADIUS] = radius
    if not any_of(touching):
        return nothing, nothing, nothing, nothing, nothing, nothing, status
    q = choose(touching, q, 0.0)
    root_q = root(q)
    normal = hertz * q * root_q
    pressed = normal
    damping = m.operation[NORMAL_DAMPING]
    if any_of(damping != 0.0):
        turning = s * (roll_dot - rail_roll_dot)
        rate = -(z_dot + turning * lever) * cos_sum
        if m.header[GEOMETRIC_LIFT] == 1:
            shift_rate = s * shift_dot - 0.5 * gauge_dot
            rate = sin_angle * shift_rate - z_dot * cos_sum - turning * (lever * cos_angle - radius * sin_angle)
        pressed = normal + damping * rate
        pressed = choose((pressed > 0.0) & touching, pressed, 0.0)

    xi_x = (
        speed + attack * y_dot + radius * (attack * roll_dot - omega) - s * lever * yaw_dot + s * bend * speed
    ) * inv_speed
    xi_y = (
        (-speed * attack * (1.0 + s * bend) + roll * z_dot + y_dot + roll_dot * radius) * cos_angle
        + s * (-roll * y_dot + z_dot + s * lever * (roll_dot - rail_roll_dot)) * sin_angle
    ) * inv_speed
    xi_s = (-s * (omega - attack * roll_dot) * sin_angle + yaw_dot * cos_angle) * inv_speed - frame_spin * cos_angle

    modulus = m.operation[SHEAR_MODULUS]
    friction = m.operation[FRICTION]
    law = m.header[CREEP_LAW]
    if law <= 1:
        gq = modulus * q
        fx = -gq * k11 * xi_x
        fy = -gq * (k22 * xi_y + root_q * k23 * xi_s)
        if law != LINEAR:
            fx, fy = shen_hedrick_elkins(fx, fy, friction * normal)
    else:
        axis_b = table_column(m.table, AXIS_B, first, last, x)
        fx, fy = heavy_creep(
            law,
            root_q * axis_a,
            root_q * axis_b,
            q,
            k11,
            k22,
            k23,
            xi_x,
            xi_y,
            xi_s,
            normal,
            modulus,
            friction,
            m.header,
        )

    force_x = fx - fy * yaw * cos_angle
    force_y = fx * yaw + fy * cos_sum - s * pressed * sin_sum
    force_z = s * fy * sin_sum + pressed * cos_sum
    axle = force_x + force_y * yaw
    m_roll = s * lever * (force_z - force_y * roll)
    if m.header[ROLL_MOMENT] == 1:
        m_roll += radius * (force_y + roll * force_z - yaw * force_x)
    if report is not None:
        report[row, POINT_SHIFT] = u
        report[row, POINT_ANGLE] = math.atan2(sin_angle, cos_angle)
        report[row, POINT_PENETRATION] = q
        report[row, POINT_NORMAL] = pressed
        report[row, POINT_CREEP_X] = xi_x
        report[row, POINT_CREEP_Y] = xi_y
        report[row, POINT_CREEP_SPIN] = xi_s
        report[row, POINT_TANGENT_X] = fx
        report[row, POINT_TANGENT_Y] = fy
        report[row, POINT_FX] = force_x
        report[row, POINT_FY] = force_y
        report[row, POINT_FZ] = force_z
        report[row, POINT_LEVER] = lever
        report[row, POINT_RADIUS] = radius
        report[row, POINT_AXIS_A] = root_q * axis_a
        report[row, POINT_AXIS_B] = root_q * table_column(m.table, AXIS_B, first, last, x)
    return force_x, force_y, force_z, m_roll, -radius * axle, -s * lever * axle, status


@inline_jit
def wheelset_contact(w, spin, m, report, row):
    """Sum of all contact forces and moments on wheelset `w`: (fx, fy, fz, m_roll, m_pitch, m_yaw, status).

    With a tuple of LANES wheelsets on the same contact tables everything, `spin` too, is one lane per wheelset.

    The contact points are reported to the rows of `report` from `row` on, left wheel first, with forces along the
    axes of the rails, unless `report` is None.
    """
    body = at(m.wheelset_index, w, WHEELSET_BODY)
    y, z, roll = at(m.motion, body, Y), at(m.motion, body, Z), at(m.motion, body, ROLL)
    y_dot, z_dot, yaw = at(m.motion, body, Y_DOT), at(m.motion, body, Z_DOT), at(m.motion, body, YAW)
    shift_dot, gauge, gauge_dot, rail_roll_dot, sin_cross, cos_cross = y_dot, 0.0, 0.0, 0.0, 0.0, 1.0
    rough = m.header[IRREGULARITY] != 0
    if rough:
        sin_cross, cos_cross = sine_cosine(at(m.rail, w, RAIL_ROLL))
        radius = at(m.wheelset, w, ROLLING_RADIUS)
        y -= at(m.rail, w, RAIL_Y)
        z -= at(m.rail, w, RAIL_Z)
        y, z = y * cos_cross + (radius + z) * sin_cross, z * cos_cross - y * sin_cross - radius * (1.0 - cos_cross)
        roll -= at(m.rail, w, RAIL_ROLL)
        gauge, gauge_dot, rail_roll_dot = (
            at(m.rail, w, RAIL_GAUGE),
            at(m.rail, w, RAIL_GAUGE_DOT),
            at(m.rail, w, RAIL_ROLL_DOT),
        )
        across, up = y_dot - at(m.rail, w, RAIL_Y_DOT), z_dot - at(m.rail, w, RAIL_Z_DOT)
        shift_dot = across * cos_cross + up * sin_cross + rail_roll_dot * (radius + z)
        y_dot = y_dot * cos_cross + z_dot * sin_cross  # of the wheel over rails at rest
        z_dot = up * cos_cross - across * sin_cross - rail_roll_dot * y
    sin_roll, cos_roll = sine_cosine(roll)
    motion = (
        y,
        y_dot,
        z,
        z_dot,
        roll,
        at(m.motion, body, ROLL_DOT),
        yaw,
        at(m.motion, body, YAW_DOT),
        shift_dot,
        gauge,
        gauge_dot,
        rail_roll_dot,
        sin_roll,
        cos_roll,
    )
    speed = m.operation[SPEED]
    curvature = at(m.place, body, PLACE_CURVATURE)
    _, cos_cant = sine_cosine(at(m.place, body, PLACE_CANT))
    turn = curvature * cos_cant
    lever = at(m.body, body, YAW_LEVER)
    run = (
        speed,
        1.0 / speed,
        speed / at(m.wheelset, w, ROLLING_RADIUS) + spin,
        # angle of attack to the local tangent: the lever times the mean curvature over it
        yaw + lever * (curvature - 0.5 * lever * at(m.place, body, PLACE_CURVATURE_DOT) / speed),
        at(m.wheelset, w, HALF_SPACING) * turn,
        # the frame itself turns with the curve; the published program leaves this out of the spin (spec 2.10)
        turn if m.header[LOCAL_FRAMES] == 1 else 0.0,
    )
    fx, fy, fz, mx, my, mz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    worst = OK
    for side in range(2):
        s = 1.0 - 2.0 * side
        first = m.wheelset_index[leader(w), LEFT_FIRST + 2 * side]
        for table in range(first, first + m.wheelset_index[leader(w), LEFT_COUNT + 2 * side]):
            ax, ay, az, bx, by, bz, status = contact_point(table, s, motion, run, m, report, row)
            worst = choose(status != OK, status, worst)
            fx, fy, fz, mx, my, mz = fx + ax, fy + ay, fz + az, mx + bx, my + by, mz + bz
            row += 1
    if rough:
        fy, fz = fy * cos_cross - fz * sin_cross, fy * sin_cross + fz * cos_cross
        my, mz = my * cos_cross - mz * sin_cross, my * sin_cross + mz * cos_cross
    return fx, fy, fz, mx, my, mz, worst
