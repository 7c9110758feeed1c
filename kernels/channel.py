"""Recording of chosen channels while a run goes on: states, rates, wheel forces, wear numbers and the rails' own place.

The record is one float vector: [samples, channels, capacity, window start], then kind and number of every channel, then
the samples, one row per sample with its time first.
"""

from railsweep.kernels.contact import (
    POINT_CREEP_X,
    POINT_CREEP_Y,
    POINT_FY,
    POINT_FZ,
    POINT_TANGENT_X,
    POINT_TANGENT_Y,
    wheelset_contact,
)
from railsweep.kernels.jit import plain_jit
from railsweep.kernels.record import LEFT_COUNT, RAIL_WIDTH, RIGHT_COUNT, WHEELSET_SPIN
from railsweep.kernels.status import OK
from railsweep.kernels.vehicle import vehicle_rhs

RECORD_SAMPLES, RECORD_CHANNELS, RECORD_CAPACITY, RECORD_START = range(4)
RECORD_HEAD = 4

# Kinds of channel. The number is a state, or 2 * wheelset + side (side 0 left, 1 right); for SUM_Y the wheelset; for
# RAIL the slot in the rail record, wheelset after wheelset.
(
    CHANNEL_STATE,
    CHANNEL_RATE,
    CHANNEL_Y,
    CHANNEL_Q,
    CHANNEL_Y_OVER_Q,
    CHANNEL_SUM_Y,
    CHANNEL_T_GAMMA,
    CHANNEL_RAIL,
) = range(8)


@plain_jit
def wheel_forces(w, y, m):
    """Lateral force Y (outward) and vertical load Q of the left and right wheel of wheelset `w` [N]."""
    state = m.wheelset_index[w, WHEELSET_SPIN]
    spin = y[state] if state >= 0 else 0.0
    wheelset_contact(w, spin, m, m.points, 0)
    left, right = m.wheelset_index[w, LEFT_COUNT], m.wheelset_index[w, RIGHT_COUNT]
    y_left, q_left, y_right, q_right = 0.0, 0.0, 0.0, 0.0
    for p in range(left):
        y_left -= m.points[p, POINT_FY]
        q_left += m.points[p, POINT_FZ]
    for p in range(left, left + right):
        y_right += m.points[p, POINT_FY]
        q_right += m.points[p, POINT_FZ]
    return y_left, q_left, y_right, q_right


@plain_jit
def wear_number(w, side, y, m):
    """T-gamma of one wheel: the sum of abs(force * creepage) along and across over its contact points [N = J/m]."""
    state = m.wheelset_index[w, WHEELSET_SPIN]
    spin = y[state] if state >= 0 else 0.0
    wheelset_contact(w, spin, m, m.points, 0)
    first, count = 0, m.wheelset_index[w, LEFT_COUNT]
    if side == 1:
        first, count = count, m.wheelset_index[w, RIGHT_COUNT]
    total = 0.0
    for p in range(first, first + count):
        total += abs(m.points[p, POINT_TANGENT_X] * m.points[p, POINT_CREEP_X])
        total += abs(m.points[p, POINT_TANGENT_Y] * m.points[p, POINT_CREEP_Y])
    return total


@plain_jit
def record_channels(t, y, m, record):
    """Observer of the integrators: append one row when t lies in the window and there is room."""
    count = int(record[RECORD_SAMPLES])
    channels = int(record[RECORD_CHANNELS])
    if t < record[RECORD_START] or count >= int(record[RECORD_CAPACITY]):
        return OK
    row = RECORD_HEAD + 2 * channels + count * (channels + 1)
    record[row] = t
    evaluated = False
    for c in range(channels):
        kind = int(record[RECORD_HEAD + 2 * c])
        number = int(record[RECORD_HEAD + 2 * c + 1])
        value = 0.0
        if kind == CHANNEL_STATE:
            value = y[number]
        else:
            if not evaluated:
                # also fills the motion and the places that the contact needs
                vehicle_rhs(t, y, m, m.rates[0])
                evaluated = True
            if kind == CHANNEL_RATE:
                value = m.rates[0, number]
            elif kind == CHANNEL_RAIL:
                value = m.rail[number // RAIL_WIDTH, number % RAIL_WIDTH]
            elif kind == CHANNEL_T_GAMMA:
                value = wear_number(number // 2, number % 2, y, m)
            elif kind == CHANNEL_SUM_Y:
                y_left, _, y_right, _ = wheel_forces(number, y, m)
                value = y_left - y_right
            else:
                y_left, q_left, y_right, q_right = wheel_forces(number // 2, y, m)
                lateral, load = (y_left, q_left) if number % 2 == 0 else (y_right, q_right)
                if kind == CHANNEL_Y:
                    value = lateral
                elif kind == CHANNEL_Q:
                    value = load
                else:
                    value = lateral / load if load > 0.0 else 0.0
        record[row + 1 + c] = value
    record[RECORD_SAMPLES] = count + 1
    return OK
