"""One suspension link: from the motion of two bodies to the force and moment on both.

Kinematics (spec 2.13): an attachment point p of a body with displacement d and rotation theta = (roll, pitch, yaw)
stands at d + p + theta x p. The rest vector runs from the lower to the upper point; a link in tension pulls the lower
body towards the upper one. Both bodies are expressed in the track frame of the upper body.

Two mechanics:

* vector mechanics (`physics`): a directed spring measures and acts along the axes of its LOWER body, and its line of
  action runs through the upper point, so the lower body also takes the couple b x F that a force and its reaction at
  two different points would leave over (the usual convention of multibody programs). Forces and moments of a link then
  cancel exactly, the force follows from a potential, and a preloaded spring that is pushed sideways passes the
  overturning moment preload * shift on to the bogie. With axes fixed to the track and no couple (the published
  program) that load transfer is lost; the spec's list 2.18 does not have this correction, but without it action and
  reaction do not cancel.
* published (`dytsi`): axes fixed to the track frame, moment p x (T^T F), no couple (spec 2.13.6).
"""

from railsweep.kernels.jit import inline_jit, plain_jit
from railsweep.kernels.lane import (
    LANES,
    all_lanes,
    any_of,
    at,
    by_kind,
    choose,
    is_rows,
    lane_item,
    leader,
    power,
    root,
    size,
    with_item,
)
from railsweep.kernels.law import force_of_law, law_force
from railsweep.kernels.record import (
    AIR_MASS,
    ARC,
    AXIAL,
    DAMPER_LAW,
    DAMPING,
    DAMPING_EXPONENT,
    FRICTION_FORCE,
    FRICTION_LENGTH,
    HEIGHT,
    INTERNAL_KIND,
    INTERNAL_NONE,
    INTERNAL_STATE,
    LINEAR_LAW,
    LINK_AXIS,
    LINK_KIND,
    LINK_LOWER,
    LINK_UPPER,
    LOCAL_FRAMES,
    LOWER_X,
    LOWER_Y,
    LOWER_Z,
    MAXWELL,
    NISHIMURA,
    OFFSET,
    PITCH,
    PITCH_DOT,
    PLACE_CANT,
    PLACE_CANT_DOT,
    PLACE_CURVATURE,
    PLACE_CURVATURE_DOT,
    PRELOAD,
    RADIAL,
    RESERVOIR_STIFFNESS,
    REST_LENGTH,
    REST_X,
    REST_Y,
    REST_Z,
    ROLL,
    ROLL_DOT,
    SERIES_DAMPING,
    SERIES_STIFFNESS,
    SIGN,
    SPEED,
    SPRING_LAW,
    STIFFNESS,
    TORSION,
    TRACK_KIND,
    TRACK_STRAIGHT,
    UPPER_X,
    UPPER_Y,
    UPPER_Z,
    VECTOR,
    VECTOR_MECHANICS,
    Y_DOT,
    YAW,
    YAW_DOT,
    YAW_LEVER,
    Z_DOT,
    Y,
    Z,
)
from railsweep.kernels.status import OK

RADIAL_GUARD = 1e-13  # horizontal offset below which a radial spring has no direction [m]


@plain_jit
def internal_force(k, extension, rate, y, out, m):
    """Force of the element with memory of link `k`; the rates of its internal states go to `out`.

    Maxwell:    f = ks (e - x),           x' = ks (e - x) / c
    Nishimura:  f = K1 (e - w),           C w' = K1 (e - w) - K2 w     (bellows K1, reservoir K2, orifice C)
    Berg:       f = kv (e - w) + h,       M w'' = kv (e - w) - C abs(w')^beta sign(w'),
                h' = e' F/z2 (1 - sign(e') h/F)^2: from rest this is Berg's monotone loading F e / (z2 + e);
                after a reversal the rate form forgets the turning point, which Berg's formula remembers.
    The elastic part of an air spring (K3, ke) is the link's own parallel spring.
    """
    kind = m.link_index[k, INTERNAL_KIND]
    first = m.link_index[k, INTERNAL_STATE]
    if kind == MAXWELL:
        f = m.link[k, SERIES_STIFFNESS] * (extension - y[first])
        out[first] = f / m.link[k, SERIES_DAMPING]
        return f
    if kind == NISHIMURA:
        f = m.link[k, SERIES_STIFFNESS] * (extension - y[first])
        out[first] = (f - m.link[k, RESERVOIR_STIFFNESS] * y[first]) / m.link[k, SERIES_DAMPING]
        return f
    w_dot = y[first + 1]
    f = m.link[k, SERIES_STIFFNESS] * (extension - y[first])
    drag = m.link[k, SERIES_DAMPING] * power(size(w_dot), m.link[k, DAMPING_EXPONENT])
    drag = choose(w_dot < 0.0, -drag, drag)
    out[first] = w_dot
    out[first + 1] = (f - drag) / m.link[k, AIR_MASS]
    limit = m.link[k, FRICTION_FORCE]
    friction = y[first + 2]
    ratio = choose(rate >= 0.0, friction / limit, -friction / limit)
    rubbing = rate * limit / m.link[k, FRICTION_LENGTH] * (1.0 - ratio) * (1.0 - ratio)
    out[first + 2] = choose(limit > 0.0, rubbing, 0.0)
    return f + choose(limit > 0.0, friction, 0.0)


def force_with_memory(k, extension, rate, y, out, m):
    """`internal_force`; links side by side are served one after the other."""
    raise NotImplementedError("for kernels only")


def _memory_of_link(k, extension, rate, y, out, m):
    return internal_force(k, extension, rate, y, out, m)


def _memory_of_links(k, extension, rate, y, out, m):
    force = all_lanes(0.0)
    for i in range(LANES):
        f = internal_force(k[i], lane_item(extension, i), lane_item(rate, i), y, out, m)
        force = with_item(force, i, f)
    return force


@by_kind(force_with_memory)
def _force_with_memory(k, extension, rate, y, out, m):
    return _memory_of_links if is_rows(k) else _memory_of_link


def curved_force(k, law, x, m):
    """Force at `x` by the law in column `law` of `link_index`, and a status; links side by side one after the other."""
    raise NotImplementedError("for kernels only")


def _curve_of_link(k, law, x, m):
    return force_of_law(m.link_index[k, law], x, m.law_index, m.law, m.segment)


def _curves_of_links(k, law, x, m):
    force, status = all_lanes(0.0), all_lanes(0.0)
    for i in range(LANES):
        f, worst = law_force(m.link_index[k[i], law], lane_item(x, i), m.law_index, m.law, m.segment)
        force, status = with_item(force, i, f), with_item(status, i, float(worst))
    return force, status


@by_kind(curved_force)
def _curved_force(k, law, x, m):
    return _curves_of_links if is_rows(k) else _curve_of_link


@inline_jit
def scalar_force(k, extension, rate, y, out, m):
    """Force of link `k` [N, or N m for a torsion link] at an extension [m, rad] and rate, and a status."""
    spring = m.link_index[leader(k), SPRING_LAW]
    damper = m.link_index[leader(k), DAMPER_LAW]
    status = OK
    if spring == LINEAR_LAW:
        f = at(m.link, k, PRELOAD) + at(m.link, k, STIFFNESS) * extension
    else:
        f, status = curved_force(k, SPRING_LAW, extension + at(m.link, k, OFFSET), m)
    if damper == LINEAR_LAW:
        f += at(m.link, k, DAMPING) * rate
    else:
        d, damper_status = curved_force(k, DAMPER_LAW, rate, m)
        f += d
        status = choose(damper_status != OK, damper_status, status)
    if m.link_index[leader(k), INTERNAL_KIND] != INTERNAL_NONE:
        f += force_with_memory(k, extension, rate, y, out, m)
    return f, status


@inline_jit
def link_mechanics(m):
    """Do the axes turn with the bodies, and do the frames of two bodies differ?"""
    return (
        m.header[VECTOR_MECHANICS] == 1,
        m.header[LOCAL_FRAMES] == 1 and m.header[TRACK_KIND] != TRACK_STRAIGHT,
    )


@inline_jit
def pair_motion(body1, body2, framed, m):
    """Motion of the lower (1) and upper (2) body of a link in the frame of body 2, and how that of body 1 lies in it.

    Returns ((y, z, roll, pitch, yaw) and their rates of body 1, the same of body 2, turn, twist); `m.motion` and
    `m.place` must be filled.
    """
    q = m.motion
    y1, z1, roll1, pitch1, yaw1 = (
        at(q, body1, Y),
        at(q, body1, Z),
        at(q, body1, ROLL),
        at(q, body1, PITCH),
        at(q, body1, YAW),
    )
    y2, z2, roll2, pitch2, yaw2 = (
        at(q, body2, Y),
        at(q, body2, Z),
        at(q, body2, ROLL),
        at(q, body2, PITCH),
        at(q, body2, YAW),
    )
    vy1, vz1, wx1, wy1, wz1 = (
        at(q, body1, Y_DOT),
        at(q, body1, Z_DOT),
        at(q, body1, ROLL_DOT),
        at(q, body1, PITCH_DOT),
        at(q, body1, YAW_DOT),
    )
    vy2, vz2, wx2, wy2, wz2 = (
        at(q, body2, Y_DOT),
        at(q, body2, Z_DOT),
        at(q, body2, ROLL_DOT),
        at(q, body2, PITCH_DOT),
        at(q, body2, YAW_DOT),
    )

    # The frame of body 1 seen from that of body 2 (spec 2.18.1, exact for curvature linear in arc length), and yaw
    # angles that are measured against another place's tangent brought back to the body's own place.
    turn, twist = 0.0, 0.0
    if framed:
        c1, c2 = at(m.place, body1, PLACE_CURVATURE), at(m.place, body2, PLACE_CURVATURE)
        d1, d2 = at(m.place, body1, PLACE_CURVATURE_DOT), at(m.place, body2, PLACE_CURVATURE_DOT)
        arc = at(m.body, body1, ARC) - at(m.body, body2, ARC)
        lever1, lever2 = at(m.body, body1, YAW_LEVER), at(m.body, body2, YAW_LEVER)
        height = at(m.body, body1, HEIGHT) + z1
        turn = -0.5 * arc * (c1 + c2)
        twist = at(m.place, body1, PLACE_CANT) - at(m.place, body2, PLACE_CANT)
        twist_dot = at(m.place, body1, PLACE_CANT_DOT) - at(m.place, body2, PLACE_CANT_DOT)
        vz1 += twist * vy1 + twist_dot * y1
        vy1 -= arc * arc * (d2 / 3.0 + d1 / 6.0) + twist_dot * height + twist * at(q, body1, Z_DOT)
        z1 += twist * y1
        y1 -= arc * arc * (c2 / 3.0 + c1 / 6.0) + twist * height
        # mean curvature over the lever: the curvature half a lever back
        inv_speed = 1.0 / m.operation[SPEED]
        yaw1 += turn + lever1 * (c1 - 0.5 * lever1 * d1 * inv_speed)
        yaw2 += lever2 * (c2 - 0.5 * lever2 * d2 * inv_speed)
        wz1 += -0.5 * arc * (d1 + d2) + lever1 * d1
        wz2 += lever2 * d2
        roll1 += twist
        wx1 += twist_dot
    motion1 = (y1, z1, roll1, pitch1, yaw1, vy1, vz1, wx1, wy1, wz1)
    motion2 = (y2, z2, roll2, pitch2, yaw2, vy2, vz2, wx2, wy2, wz2)
    return motion1, motion2, turn, twist


@inline_jit
def to_lower_frame(fx, fy, fz, mx, my, mz, turn, twist):
    """A force and a moment on the lower body from the axes of the upper body's frame to those of its own."""
    return (
        fx + turn * fy,
        fy - turn * fx + twist * fz,
        fz - twist * fy,
        mx + turn * my,
        my - turn * mx + twist * mz,
        mz - twist * my,
    )


@inline_jit
def published_axial(k, watched, motion1, motion2, y, out, m):
    """`link_action` of an axial spring with published mechanics: the axis is fixed, so one component of F is enough.

    T^T F = F - theta x F in the axes of each body, its moment p x (T^T F).
    """
    y1, z1, roll1, pitch1, yaw1, vy1, vz1, wx1, wy1, wz1 = motion1
    y2, z2, roll2, pitch2, yaw2, vy2, vz2, wx2, wy2, wz2 = motion2
    axis = m.link_index[leader(k), LINK_AXIS]
    sign = at(m.link, k, SIGN)
    p1x, p1y, p1z = at(m.link, k, LOWER_X), at(m.link, k, LOWER_Y), at(m.link, k, LOWER_Z)
    p2x, p2y, p2z = at(m.link, k, UPPER_X), at(m.link, k, UPPER_Y), at(m.link, k, UPPER_Z)
    moving = is_moving(k, watched, m)
    rate = 0.0
    if axis == 0:
        extension = sign * ((pitch2 * p2z - yaw2 * p2y) - (pitch1 * p1z - yaw1 * p1y))
        if moving:
            rate = sign * ((wy2 * p2z - wz2 * p2y) - (wy1 * p1z - wz1 * p1y))
        f, status = scalar_force(k, extension, rate, y, out, m)
        fx = sign * f
        mx1, my1, mz1 = fx * (p1y * pitch1 + p1z * yaw1), fx * (p1z - p1x * pitch1), -fx * (p1y + p1x * yaw1)
        mx2, my2, mz2 = -fx * (p2y * pitch2 + p2z * yaw2), -fx * (p2z - p2x * pitch2), fx * (p2y + p2x * yaw2)
        return fx, 0.0, 0.0, mx1, my1, mz1, mx2, my2, mz2, extension, rate, f, status
    if axis == 1:
        extension = sign * ((y2 + yaw2 * p2x - roll2 * p2z) - (y1 + yaw1 * p1x - roll1 * p1z))
        if moving:
            rate = sign * ((vy2 + wz2 * p2x - wx2 * p2z) - (vy1 + wz1 * p1x - wx1 * p1z))
        f, status = scalar_force(k, extension, rate, y, out, m)
        fy = sign * f
        mx1, my1, mz1 = -fy * (p1z + p1y * roll1), fy * (p1x * roll1 + p1z * yaw1), fy * (p1x - p1y * yaw1)
        mx2, my2, mz2 = fy * (p2z + p2y * roll2), -fy * (p2x * roll2 + p2z * yaw2), -fy * (p2x - p2y * yaw2)
        return 0.0, fy, 0.0, mx1, my1, mz1, mx2, my2, mz2, extension, rate, f, status
    extension = sign * ((z2 + roll2 * p2y - pitch2 * p2x) - (z1 + roll1 * p1y - pitch1 * p1x))
    if moving:
        rate = sign * ((vz2 + wx2 * p2y - wy2 * p2x) - (vz1 + wx1 * p1y - wy1 * p1x))
    f, status = scalar_force(k, extension, rate, y, out, m)
    fz = sign * f
    mx1, my1, mz1 = fz * (p1y - p1z * roll1), -fz * (p1x + p1z * pitch1), fz * (p1x * roll1 + p1y * pitch1)
    mx2, my2, mz2 = -fz * (p2y - p2z * roll2), fz * (p2x + p2z * pitch2), -fz * (p2x * roll2 + p2y * pitch2)
    return 0.0, 0.0, fz, mx1, my1, mz1, mx2, my2, mz2, extension, rate, f, status


@inline_jit
def is_moving(k, watched, m):
    """Does the force of link `k` depend on its rate, or is the rate wanted anyway?"""
    return (
        watched
        or any_of(at(m.link, k, DAMPING) != 0.0)
        or m.link_index[leader(k), DAMPER_LAW] != LINEAR_LAW
        or m.link_index[leader(k), INTERNAL_KIND] != INTERNAL_NONE
    )


@inline_jit
def link_action(k, turning, watched, motion1, motion2, y, out, m):
    """Force of link `k` on its lower body, moments on both, all in the axes of the frame of the upper body.

    Returns (fx, fy, fz, mx1, my1, mz1, mx2, my2, mz2, extension, rate, force, status); the upper body takes -F.
    `motion1` and `motion2` are those of `pair_motion`.
    """
    kind = m.link_index[leader(k), LINK_KIND]
    axis = m.link_index[leader(k), LINK_AXIS]
    if kind == AXIAL and not turning:
        return published_axial(k, watched, motion1, motion2, y, out, m)

    y1, z1, roll1, pitch1, yaw1, vy1, vz1, wx1, wy1, wz1 = motion1
    y2, z2, roll2, pitch2, yaw2, vy2, vz2, wx2, wy2, wz2 = motion2
    p1x, p1y, p1z = at(m.link, k, LOWER_X), at(m.link, k, LOWER_Y), at(m.link, k, LOWER_Z)
    p2x, p2y, p2z = at(m.link, k, UPPER_X), at(m.link, k, UPPER_Y), at(m.link, k, UPPER_Z)
    # theta x p at both ends, then the vector between the ends and its rate
    t1x, t1y, t1z = pitch1 * p1z - yaw1 * p1y, yaw1 * p1x - roll1 * p1z, roll1 * p1y - pitch1 * p1x
    t2x, t2y, t2z = pitch2 * p2z - yaw2 * p2y, yaw2 * p2x - roll2 * p2z, roll2 * p2y - pitch2 * p2x
    bx = at(m.link, k, REST_X) + t2x - t1x
    by = at(m.link, k, REST_Y) + (y2 + t2y) - (y1 + t1y)
    bz = at(m.link, k, REST_Z) + (z2 + t2z) - (z1 + t1z)
    vx, vy, vz = 0.0, 0.0, 0.0
    moving = is_moving(k, watched, m)
    if moving:
        vx = (wy2 * p2z - wz2 * p2y) - (wy1 * p1z - wz1 * p1y)
        vy = (vy2 + wz2 * p2x - wx2 * p2z) - (vy1 + wz1 * p1x - wx1 * p1z)
        vz = (vz2 + wx2 * p2y - wy2 * p2x) - (vz1 + wx1 * p1y - wy1 * p1x)

    if turning:
        ax, ay, az = roll1, pitch1, yaw1
        rx, ry, rz = wx1, wy1, wz1
    else:
        ax, ay, az = 0.0, 0.0, 0.0
        rx, ry, rz = 0.0, 0.0, 0.0

    # extension, rate and the direction u in which one unit of force acts
    ux, uy, uz = 0.0, 0.0, 0.0
    rate = 0.0
    if kind == AXIAL:
        sign = at(m.link, k, SIGN)
        if axis == 0:
            extension = sign * (bx - (ay * bz - az * by) - at(m.link, k, REST_X))
            if moving:
                rate = sign * (vx - (ay * vz - az * vy) - (ry * bz - rz * by))
            ux, uy, uz = sign, sign * az, -sign * ay
        elif axis == 1:
            extension = sign * (by - (az * bx - ax * bz) - at(m.link, k, REST_Y))
            if moving:
                rate = sign * (vy - (az * vx - ax * vz) - (rz * bx - rx * bz))
            ux, uy, uz = -sign * az, sign, sign * ax
        else:
            extension = sign * (bz - (ax * by - ay * bx) - at(m.link, k, REST_Z))
            if moving:
                rate = sign * (vz - (ax * vy - ay * vx) - (rx * by - ry * bx))
            ux, uy, uz = sign * ay, -sign * ax, sign
    elif kind == VECTOR:
        length = root(bx * bx + by * by + bz * bz)
        extension = length - at(m.link, k, REST_LENGTH)
        inverse = 1.0 / choose(length > 0.0, length, 1.0)
        ux, uy, uz = bx * inverse, by * inverse, bz * inverse
        rate = vx * ux + vy * uy + vz * uz
    elif kind == RADIAL:
        hx = bx - (ay * bz - az * by)
        hy = by - (az * bx - ax * bz)
        extension = root(hx * hx + hy * hy)
        away = extension > RADIAL_GUARD
        inverse = choose(away, 1.0, 0.0) / choose(away, extension, 1.0)
        hx, hy = hx * inverse, hy * inverse
        rate = hx * (vx - (ay * vz - az * vy) - (ry * bz - rz * by)) + hy * (
            vy - (az * vx - ax * vz) - (rz * bx - rx * bz)
        )
        ux, uy, uz = hx - az * hy, hy + az * hx, ax * hy - ay * hx
    else:
        # torsion: the relative angle about one axis
        extension = roll2 - roll1 if axis == 0 else (pitch2 - pitch1 if axis == 1 else yaw2 - yaw1)
        rate = wx2 - wx1 if axis == 0 else (wy2 - wy1 if axis == 1 else wz2 - wz1)
    f, status = scalar_force(k, extension, rate, y, out, m)
    fx, fy, fz = f * ux, f * uy, f * uz

    if turning:
        # the line of action runs through the upper point: for the lower body that is p + theta x p + b
        l1x, l1y, l1z = p1x + t1x + bx, p1y + t1y + by, p1z + t1z + bz
        l2x, l2y, l2z = p2x + t2x, p2y + t2y, p2z + t2z
        mx1 = l1y * fz - l1z * fy
        my1 = l1z * fx - l1x * fz
        mz1 = l1x * fy - l1y * fx
        mx2 = l2z * fy - l2y * fz
        my2 = l2x * fz - l2z * fx
        mz2 = l2y * fx - l2x * fy
    else:
        # T^T F = F - theta x F in the axes of each body
        g1x, g1y, g1z = fx - (pitch1 * fz - yaw1 * fy), fy - (yaw1 * fx - roll1 * fz), fz - (roll1 * fy - pitch1 * fx)
        g2x, g2y, g2z = fx - (pitch2 * fz - yaw2 * fy), fy - (yaw2 * fx - roll2 * fz), fz - (roll2 * fy - pitch2 * fx)
        mx1 = p1y * g1z - p1z * g1y
        my1 = p1z * g1x - p1x * g1z
        mz1 = p1x * g1y - p1y * g1x
        mx2 = p2z * g2y - p2y * g2z
        my2 = p2x * g2z - p2z * g2x
        mz2 = p2y * g2x - p2x * g2y

    if kind == TORSION:
        mx1, my1, mz1 = 0.0, 0.0, 0.0
        mx2, my2, mz2 = 0.0, 0.0, 0.0
        if axis == 0:
            mx1, mx2 = f, -f
        elif axis == 1:
            my1, my2 = f, -f
        else:
            mz1, mz2 = f, -f
    return fx, fy, fz, mx1, my1, mz1, mx2, my2, mz2, extension, rate, f, status


@inline_jit
def link_wrench(k, turning, framed, watched, y, out, m):
    """Force and moment of link `k` on its lower and upper body.

    Returns (fx1, fy1, fz1, mx1, my1, mz1, fx2, fy2, fz2, mx2, my2, mz2, extension, rate, force, status) with body
    1 = lower, 2 = upper, each in the track frame of that body, moments about the centres of mass. `turning` and
    `framed` are the two answers of `link_mechanics`; the rate of a link without any damper is found only if `watched`;
    `m.motion` and `m.place` must be filled. Internal states read `y` and write their rates to `out`.
    """
    motion1, motion2, turn, twist = pair_motion(m.link_index[k, LINK_LOWER], m.link_index[k, LINK_UPPER], framed, m)
    fx, fy, fz, mx1, my1, mz1, mx2, my2, mz2, extension, rate, f, status = link_action(
        k, turning, watched, motion1, motion2, y, out, m
    )
    fx1, fy1, fz1 = fx, fy, fz
    if framed:
        fx1, fy1, fz1, mx1, my1, mz1 = to_lower_frame(fx, fy, fz, mx1, my1, mz1, turn, twist)
    return fx1, fy1, fz1, mx1, my1, mz1, -fx, -fy, -fz, mx2, my2, mz2, extension, rate, f, status
