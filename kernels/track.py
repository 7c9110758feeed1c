"""Curvature and cant along the track as functions of time, with their rates.

Curvature is positive in a right-hand curve, cant is positive with the left rail raised. A track is a list of segments
in arc length s; before the first and after the last the end values hold. Transition shapes in u = (s - from) / length:
clothoid u, Bloss 3u^2 - 2u^3, cosine (1 - cos(pi u)) / 2, the same for curvature and cant.
"""

import math

from railsweep.kernels.jit import exact_jit
from railsweep.kernels.lane import LANES, all_lanes, by_kind, lane, lane_item, lane_view, with_item
from railsweep.kernels.record import (
    CANT_0,
    CANT_1,
    CURVATURE_0,
    CURVATURE_1,
    SHAPE_BLOSS,
    SHAPE_CLOTHOID,
    SHAPE_COSINE,
    TRACK_FROM,
    TRACK_LENGTH,
    TRACK_SHAPE,
)


@exact_jit
def track_at(s, speed, track):
    """Curvature [1/m], its rate [1/(m s)], cant [rad], its rate [rad/s] second rate [rad/s^2] at arc length s [m]."""
    k = 0
    last = track.shape[0] - 1
    while k < last and s >= track[k + 1, TRACK_FROM]:
        k += 1
    length = track[k, TRACK_LENGTH]
    u = (s - track[k, TRACK_FROM]) / length
    if u < 0.0:
        return track[k, CURVATURE_0], 0.0, track[k, CANT_0], 0.0, 0.0
    if u >= 1.0:
        return track[k, CURVATURE_1], 0.0, track[k, CANT_1], 0.0, 0.0
    shape = int(track[k, TRACK_SHAPE])
    if shape == SHAPE_CLOTHOID:
        w, w1, w2 = u, 1.0, 0.0
    elif shape == SHAPE_BLOSS:
        w, w1, w2 = u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u), 6.0 - 12.0 * u
    elif shape == SHAPE_COSINE:
        w = 0.5 * (1.0 - math.cos(math.pi * u))
        w1 = 0.5 * math.pi * math.sin(math.pi * u)
        w2 = 0.5 * math.pi * math.pi * math.cos(math.pi * u)
    else:
        w, w1, w2 = 0.0, 0.0, 0.0
    rate = speed / length
    d_curvature = track[k, CURVATURE_1] - track[k, CURVATURE_0]
    d_cant = track[k, CANT_1] - track[k, CANT_0]
    return (
        track[k, CURVATURE_0] + w * d_curvature,
        w1 * rate * d_curvature,
        track[k, CANT_0] + w * d_cant,
        w1 * rate * d_cant,
        w2 * rate * rate * d_cant,
    )


def place_on_track(s, speed, track):
    """`track_at`, for a number or for lanes."""
    raise NotImplementedError("for kernels only")


def _place_of_number(s, speed, track):
    return track_at(s, speed, track)


def _place_of_lanes(s, speed, track):
    a = b = c = d = e = all_lanes(0.0)
    for i in range(LANES):
        place = track_at(lane_item(s, i), lane_item(speed, i), lane_view(track, i))
        a, b, c = with_item(a, i, place[0]), with_item(b, i, place[1]), with_item(c, i, place[2])
        d, e = with_item(d, i, place[3]), with_item(e, i, place[4])
    return a, b, c, d, e


@by_kind(place_on_track)
def _place_on_track(s, speed, track):
    return _place_of_lanes if s == lane else _place_of_number
