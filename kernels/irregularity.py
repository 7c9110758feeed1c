"""Track irregularities under the wheelsets: quintic splines on one uniform grid, read at every wheelset's own place.

Four channels describe where the rails are relative to the smooth track: `vertical` (mean of both rails, up), `lateral`
(mean, to the left), `cross_level` (angle of the rail plane, left rail up) and `gauge` (widening). Every interval holds
the six coefficients of all channels side by side (interval, power, channel), in the local variable 0 <= x < 1: one
contiguous read. The spline is C4, so that the right-hand side stays smooth for integrators of high order.

Place s = 0 is where the leading wheelset stands at t = 0. Before it the track is perfect; over the fade-in length the
irregularities grow by the C4 step w(u) = u^5 (126 - 420 u + 540 u^2 - 315 u^3 + 70 u^4). Rates follow from the
speed: d/dt = v d/ds.
"""

import math

from railsweep.kernels.jit import exact_jit
from railsweep.kernels.lane import LANES, by_kind, lane, lane_item, lane_view
from railsweep.kernels.record import (
    ARC,
    IRREGULARITY,
    IRREGULARITY_FADE,
    IRREGULARITY_INTERVALS,
    IRREGULARITY_INV_STEP,
    IRREGULARITY_ORIGIN,
    IRREGULARITY_PERIODIC,
    RAIL_GAUGE,
    RAIL_GAUGE_DOT,
    RAIL_ROLL,
    RAIL_ROLL_DOT,
    RAIL_WIDTH,
    RAIL_Y,
    RAIL_Y_DOT,
    RAIL_Z,
    RAIL_Z_DOT,
    SCALE_ALL,
    SCALE_CROSS_LEVEL,
    SCALE_GAUGE,
    SCALE_LATERAL,
    SCALE_VERTICAL,
    SPEED,
    START,
    WHEELSET_BODY,
)

VERTICAL, LATERAL, CROSS_LEVEL, GAUGE = range(4)
CHANNELS = 4
POWERS = 6


@exact_jit
def fade_in(s, length):
    """Fade-in factor and its derivative [1/m] at place s [m]."""
    if s >= length:
        return 1.0, 0.0
    if s <= 0.0:
        return 0.0, 0.0
    u = s / length
    u4 = u * u * u * u
    w = u4 * u * (126.0 + u * (-420.0 + u * (540.0 + u * (-315.0 + u * 70.0))))
    rest = (1.0 - u) * (1.0 - u)
    return w, 630.0 * u4 * rest * rest / length


@exact_jit
def fill_rails(t, grid, c, wheelset_index, operation, body, rails):
    """Fill `rails`, the record of one case."""
    speed = operation[SPEED]
    scale = operation[SCALE_ALL]
    s_vertical = scale * operation[SCALE_VERTICAL]
    s_lateral = scale * operation[SCALE_LATERAL]
    s_cross = scale * operation[SCALE_CROSS_LEVEL]
    s_gauge = scale * operation[SCALE_GAUGE]
    intervals = grid[IRREGULARITY_INTERVALS]
    origin = operation[START] + speed * t - grid[IRREGULARITY_ORIGIN]
    for w in range(rails.shape[0]):
        s = origin + body[wheelset_index[w, WHEELSET_BODY], ARC]
        x = s * grid[IRREGULARITY_INV_STEP]
        if grid[IRREGULARITY_PERIODIC] == 1.0:
            x -= intervals * math.floor(x / intervals)
        rail = rails[w]
        if not (s > 0.0 and x < intervals):
            for k in range(RAIL_WIDTH):
                rail[k] = 0.0
            continue
        i = int(x)
        x -= i
        p = c[i]
        z, y, roll, gauge = p[5, VERTICAL], p[5, LATERAL], p[5, CROSS_LEVEL], p[5, GAUGE]
        dz, dy, d_roll, d_gauge = 0.0, 0.0, 0.0, 0.0
        for power in range(POWERS - 2, -1, -1):
            # Horner's rule for values and derivatives
            dz, z = z + x * dz, p[power, VERTICAL] + x * z
            dy, y = y + x * dy, p[power, LATERAL] + x * y
            d_roll, roll = roll + x * d_roll, p[power, CROSS_LEVEL] + x * roll
            d_gauge, gauge = gauge + x * d_gauge, p[power, GAUGE] + x * gauge
        rate = speed * grid[IRREGULARITY_INV_STEP]
        fade, fade_rate = 1.0, 0.0
        if s < grid[IRREGULARITY_FADE]:
            fade, slope = fade_in(s, grid[IRREGULARITY_FADE])
            fade_rate = speed * slope
        rail[RAIL_Y] = s_lateral * fade * y
        rail[RAIL_Z] = s_vertical * fade * z
        rail[RAIL_ROLL] = s_cross * fade * roll
        rail[RAIL_GAUGE] = s_gauge * fade * gauge
        rail[RAIL_Y_DOT] = s_lateral * (fade * rate * dy + fade_rate * y)
        rail[RAIL_Z_DOT] = s_vertical * (fade * rate * dz + fade_rate * z)
        rail[RAIL_ROLL_DOT] = s_cross * (fade * rate * d_roll + fade_rate * roll)
        rail[RAIL_GAUGE_DOT] = s_gauge * (fade * rate * d_gauge + fade_rate * gauge)


def place_rails(t, m):
    """Fill `m.rail`: where the rails are under every wheelset at time t, and the rates of that.

    Without irregularities the rails stay where assembly put them: at zero. Lanes share one track.
    """
    raise NotImplementedError("for kernels only")


def _place_rails_of_number(t, m):
    if m.header[IRREGULARITY] != 0:
        fill_rails(t, m.irregularity_grid, m.irregularity, m.wheelset_index, m.operation, m.body, m.rail)


def _place_rails_of_lanes(t, m):
    if m.header[IRREGULARITY] != 0:
        for i in range(LANES):
            fill_rails(
                lane_item(t, i),
                m.irregularity_grid,
                m.irregularity,
                m.wheelset_index,
                lane_view(m.operation, i),
                lane_view(m.body, i),
                lane_view(m.rail, i),
            )


@by_kind(place_rails)
def _place_rails(t, m):
    return _place_rails_of_lanes if t == lane else _place_rails_of_number
