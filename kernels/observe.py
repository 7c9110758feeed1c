"""Everything there is to see at one state: forces on every body by origin, contact points, links, accelerations."""

import math

from railsweep.kernels.contact import wheelset_contact
from railsweep.kernels.jit import plain_jit
from railsweep.kernels.link import link_mechanics, link_wrench
from railsweep.kernels.record import (
    FORCE_WIDTH,
    FX,
    FY,
    FZ,
    GRAVITY,
    LEFT_COUNT,
    LINK_LOWER,
    LINK_UPPER,
    MASS,
    MX,
    MY,
    MZ,
    PLACE_CANT,
    PLACE_CURVATURE,
    RIGHT_COUNT,
    SPEED,
    WHEELSET_BODY,
    WHEELSET_SPIN,
)
from railsweep.kernels.status import OK
from railsweep.kernels.vehicle import gather_motion, gyroscopic_moment, place_bodies, vehicle_rhs

# Origins of force on a body, first axis of `forces`.
SUSPENSION, CONTACT, GRAVITATION, CENTRIFUGAL, GYROSCOPIC = range(5)
ORIGINS = 5

# What is seen of a link.
LINK_EXTENSION, LINK_RATE, LINK_FORCE = range(3)
LINK_VIEW_WIDTH = 3


@plain_jit
def observe_vehicle(t, y, m, rates, forces, points, point_rows, links, wrenches):
    """Fill all arrays at (t, y); returns a status.

    rates : dy/dt; forces : (origin, body, 6); points : contact point reports, wheelset after wheelset, left before
    right; point_rows : first row of every wheelset; links : (link, extension, rate, force); wrenches : (link, 12),
    force and moment on the lower and the upper body.
    """
    status = vehicle_rhs(t, y, m, rates)
    gather_motion(y, m)
    place_bodies(t, m)
    forces[:, :, :] = 0.0
    turning, framed = link_mechanics(m)
    for k in range(m.link.shape[0]):
        row = wrenches[k]
        (
            row[0],
            row[1],
            row[2],
            row[3],
            row[4],
            row[5],
            row[6],
            row[7],
            row[8],
            row[9],
            row[10],
            row[11],
            links[k, LINK_EXTENSION],
            links[k, LINK_RATE],
            links[k, LINK_FORCE],
            _,
        ) = link_wrench(k, turning, framed, True, y, rates, m)
        for c in range(FORCE_WIDTH):
            forces[SUSPENSION, m.link_index[k, LINK_LOWER], c] += row[c]
            forces[SUSPENSION, m.link_index[k, LINK_UPPER], c] += row[FORCE_WIDTH + c]
    speed, gravity = m.operation[SPEED], m.operation[GRAVITY]
    for b in range(m.body.shape[0]):
        sin_cant, cos_cant = math.sin(m.place[b, PLACE_CANT]), math.cos(m.place[b, PLACE_CANT])
        weight = m.body[b, MASS] * gravity
        push = m.body[b, MASS] * speed * speed * m.place[b, PLACE_CURVATURE]
        forces[GRAVITATION, b, FY] = -weight * sin_cant
        forces[GRAVITATION, b, FZ] = -weight * cos_cant
        forces[CENTRIFUGAL, b, FY] = push * cos_cant
        forces[CENTRIFUGAL, b, FZ] = -push * sin_cant
    first = 0
    for w in range(m.wheelset.shape[0]):
        b = m.wheelset_index[w, WHEELSET_BODY]
        state = m.wheelset_index[w, WHEELSET_SPIN]
        spin = y[state] if state >= 0 else 0.0
        point_rows[w] = first
        fx, fy, fz, mx, my, mz, contact_status = wheelset_contact(w, spin, m, points, first)
        if contact_status != OK:
            status = contact_status
        first += m.wheelset_index[w, LEFT_COUNT] + m.wheelset_index[w, RIGHT_COUNT]
        force = forces[CONTACT, b]
        force[FX], force[FY], force[FZ], force[MX], force[MY], force[MZ] = fx, fy, fz, mx, my, mz
        forces[GYROSCOPIC, b, MX], forces[GYROSCOPIC, b, MZ] = gyroscopic_moment(b, w, spin, m)
    return status
