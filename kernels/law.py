"""Scalar force laws of springs and dampers: force [N, N m] over extension or rate, positive in extension.

Linear laws live in the link record itself; the kinds here are piecewise cubic tables (linear, natural cubic, Akima and
monotone cubic interpolation are all per-segment cubics), the gap law of a bump stop and regularised Coulomb friction.
"""

import math

from railsweep.kernels.jit import exact_jit
from railsweep.kernels.lane import LANES, all_lanes, by_kind, lane, lane_item, lane_view, with_item
from railsweep.kernels.record import (
    COULOMB_LAW,
    GAP_LAW,
    LAW_A,
    LAW_B,
    LAW_FIRST,
    LAW_KIND,
    LAW_OUTSIDE,
    LAW_SEGMENTS,
    LAW_X_SCALE,
    LAW_Y_SCALE,
    OUTSIDE_STOP,
    SEGMENT_C0,
    SEGMENT_C1,
    SEGMENT_C2,
    SEGMENT_C3,
    SEGMENT_LEFT,
    SEGMENT_RIGHT,
)
from railsweep.kernels.status import LAW_OUT_OF_RANGE, OK


@exact_jit
def law_force(number, x, law_index, law, segment):
    """Force of law `number` at `x`, and a status.

    gap:      f = k (x - sign(x) gap) for abs(x) > gap, else 0          (LAW_A = k, LAW_B = gap)
    Coulomb:  f = F tanh(x / v0)                                        (LAW_A = F, LAW_B = v0)
    table:    f = sy P(x / sx), P the cubic of the segment that holds x / sx; outside the table either the status
              LAW_OUT_OF_RANGE, or a straight line with the slope of the end.
    """
    kind = law_index[number, LAW_KIND]
    if kind == GAP_LAW:
        stiffness = law[number, LAW_A]
        gap = law[number, LAW_B]
        if x > gap:
            return stiffness * (x - gap), OK
        if x < -gap:
            return stiffness * (x + gap), OK
        return 0.0, OK
    if kind == COULOMB_LAW:
        return law[number, LAW_A] * math.tanh(x / law[number, LAW_B]), OK

    xs = x / law[number, LAW_X_SCALE]
    scale = law[number, LAW_Y_SCALE]
    low = law_index[number, LAW_FIRST]
    high = low + law_index[number, LAW_SEGMENTS] - 1
    first, last = low, high
    while low < high:
        middle = (low + high + 1) // 2
        if segment[middle, SEGMENT_LEFT] <= xs:
            low = middle
        else:
            high = middle - 1
    d = xs - segment[low, SEGMENT_LEFT]
    c1 = segment[low, SEGMENT_C1]
    status = OK
    if low == first and d < 0.0:
        if law_index[number, LAW_OUTSIDE] == OUTSIDE_STOP:
            status = LAW_OUT_OF_RANGE
        return scale * (segment[low, SEGMENT_C0] + c1 * d), status
    c2 = segment[low, SEGMENT_C2]
    c3 = segment[low, SEGMENT_C3]
    width = segment[low, SEGMENT_RIGHT] - segment[low, SEGMENT_LEFT]
    if low == last and d > width:
        if law_index[number, LAW_OUTSIDE] == OUTSIDE_STOP:
            status = LAW_OUT_OF_RANGE
        end = segment[low, SEGMENT_C0] + width * (c1 + width * (c2 + width * c3))
        slope = c1 + width * (2.0 * c2 + 3.0 * width * c3)
        return scale * (end + slope * (d - width)), status
    return scale * (segment[low, SEGMENT_C0] + d * (c1 + d * (c2 + d * c3))), status


def force_of_law(number, x, law_index, law, segment):
    """`law_force`, for a number or for lanes."""
    raise NotImplementedError("for kernels only")


def _force_on_number(number, x, law_index, law, segment):
    return law_force(number, x, law_index, law, segment)


def _force_on_lanes(number, x, law_index, law, segment):
    force, status = all_lanes(0.0), all_lanes(0.0)
    for i in range(LANES):
        f, worst = law_force(number, lane_item(x, i), law_index, lane_view(law, i), segment)
        force, status = with_item(force, i, f), with_item(status, i, float(worst))
    return force, status


@by_kind(force_of_law)
def _force_of_law(number, x, law_index, law, segment):
    return _force_on_lanes if x == lane else _force_on_number
