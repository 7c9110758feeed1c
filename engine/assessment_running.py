"""Running safety and track loading in the manner of EN 14363, and the derailment limits of Nadal and Weinstock.

Forces: Y lateral (outward), Q vertical. Filters and statistics: sum of Y of a wheelset and Y/Q low-pass 20 Hz, mean
over 2 m every 0.5 m, percentiles 0.15 and 99.85 %; Q low-pass 20 Hz, 99.85 %; quasi-static values 50 %; running
stability: sum of Y in the band of +-2 Hz about its dominant frequency, rms over 100 m every 10 m; accelerations 0.4 to
10 Hz.

Limits: sum of Y k1 (10 kN + 2 Q0/3), Q0 the static wheel load, k1 = 1 (0.85 for freight wagons); stability half of that
with k1 = 1. Nadal: Y/Q = (tan d - mu)/(1 + mu tan d); Weinstock: the sum over both wheels of an axle is at most Nadal's
limit plus mu.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.assessment_filter import band_pass, low_pass, sliding_mean, sliding_rms
from railsweep.engine.assessment_spectrum import welch
from railsweep.engine.document import check_number

Array = NDArray[np.float64]

FORCE_CORNER_HZ = 20.0
WINDOW_M, STEP_M = 2.0, 0.5
STABILITY_WINDOW_M, STABILITY_STEP_M = 100.0, 10.0
STABILITY_HALF_BAND_HZ = 2.0
STABILITY_LOW_HZ, STABILITY_HIGH_HZ = 0.4, 18.0  # where hunting is looked for
RIDE_BAND_HZ = (0.4, 10.0)
UPPER = 99.85


def _places(values: Array, rate_hz: float, speed_mps: float) -> Array:
    return np.arange(values.size, dtype=np.float64) * (speed_mps / rate_hz)


def two_metre_mean(values: Array, rate_hz: float, speed_mps: float) -> Array:
    """Low-pass 20 Hz, then means over 2 m every 0.5 m."""
    filtered = low_pass(values, rate_hz, FORCE_CORNER_HZ)
    return sliding_mean(_places(values, rate_hz, speed_mps), filtered, WINDOW_M, STEP_M)


def dominant_frequency(values: Array, rate_hz: float) -> float:
    """Frequency of the largest density between 0.4 and 18 Hz [Hz]."""
    psd = welch(values, rate_hz, min(5.0, values.size / rate_hz))
    inside = (psd.frequency >= STABILITY_LOW_HZ) & (psd.frequency <= STABILITY_HIGH_HZ)
    return float(psd.frequency[inside][np.argmax(psd.density[inside])])


def stability_rms(sum_y: Array, rate_hz: float, speed_mps: float) -> Array:
    """Sliding rms of the sum of Y about its dominant frequency, over 100 m every 10 m (a shorter record: over all)."""
    centre = dominant_frequency(sum_y, rate_hz)
    low = max(0.1, centre - STABILITY_HALF_BAND_HZ)
    filtered = band_pass(sum_y, rate_hz, low, centre + STABILITY_HALF_BAND_HZ)
    x = _places(sum_y, rate_hz, speed_mps)
    return sliding_rms(x, filtered, min(STABILITY_WINDOW_M, float(x[-1])), STABILITY_STEP_M)


def sum_y_limit(static_load_n: float, factor: float = 1.0) -> float:
    """Limit of the sum of Y [N] for a static wheel load Q0 [N]."""
    check_number("static wheel load", static_load_n, above=0.0)
    return factor * (10e3 + 2.0 * static_load_n / 3.0)


def nadal_limit(flange_angle_rad: float, friction: float) -> float:
    """Largest Y/Q at which a flange of this angle does not climb."""
    check_number("flange angle", flange_angle_rad, above=0.0, most=0.5 * math.pi)
    check_number("friction", friction, least=0.0)
    slope = math.tan(flange_angle_rad)
    return (slope - friction) / (1.0 + friction * slope)


def weinstock_limit(flange_angle_rad: float, friction: float) -> float:
    """Largest sum of abs(Y/Q) of both wheels of an axle."""
    return nadal_limit(flange_angle_rad, friction) + friction
