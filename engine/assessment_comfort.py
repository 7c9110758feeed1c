"""Ride comfort: frequency weightings, mean comfort N_MV (EN 12299) and Sperling's index Wz.

A weighting of EN 12299, BS 6841 and ISO 2631 is a product of analogue sections, with w_i = 2 pi f_i and p = j w:

    high-pass   p^2 / (p^2 + p w1/Q1 + w1^2)
    low-pass    w2^2 / (p^2 + p w2/Q1 + w2^2)
    transition  (1 + p/w3) / (1 + p/(Q2 w4) + (p/w4)^2)
    step        K (1 + p/(Q3 w5) + (p/w5)^2) / (1 + p/(Q4 w6) + (p/w6)^2)

Wb vertical, Wd horizontal, Wc seat back; Wk is the vertical one of ISO 2631-1. Sources give Wb with different
qualities: EN 12299 0.63, 0.8, 0.8, BS 6841 0.55, 0.9, 0.95 (here ``Wb-bs6841``); they differ by up to 15 %.

N_MV = 6 sqrt(ax95^2 + ay95^2 + az95^2), with the 95th percentiles of the weighted rms values of 5-s windows. Sperling:
Wz = 4.42 aw^0.3 with aw the weighted rms acceleration [m/s^2] and the comfort weighting B(f), 1.25 times larger
sideways; for one sine of amplitude a [cm/s^2] this is the classical (a B)^0.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.assessment_filter import percentile, rms, sliding_rms, weighted
from railsweep.engine.errors import InputError, nearest

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

WINDOW_S = 5.0
BUTTERWORTH = math.sqrt(0.5)
LATERAL_FACTOR = 1.25  # Sperling's weighting sideways over that up and down


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """Corner frequencies [Hz] and qualities of one frequency weighting; f5 = 0 for no step."""

    f1: float
    f2: float
    f3: float
    f4: float
    q2: float
    f5: float = 0.0
    q3: float = 1.0
    f6: float = 0.0
    q4: float = 1.0
    gain: float = 1.0

    def __call__(self, frequency_hz: Array) -> Complex:
        """Complex response."""
        p = 1j * np.asarray(frequency_hz, dtype=np.float64)
        high = p**2 / (p**2 + p * self.f1 / BUTTERWORTH + self.f1**2)
        low = self.f2**2 / (p**2 + p * self.f2 / BUTTERWORTH + self.f2**2)
        transition = (1.0 + p / self.f3) / (1.0 + p / (self.q2 * self.f4) + (p / self.f4) ** 2)
        response = self.gain * high * low * transition
        if self.f5 > 0.0:
            up = 1.0 + p / (self.q3 * self.f5) + (p / self.f5) ** 2
            response = response * up / (1.0 + p / (self.q4 * self.f6) + (p / self.f6) ** 2)
        return np.asarray(response, dtype=np.complex128)


WEIGHTINGS = {
    "Wb": Weighting(f1=0.4, f2=100.0, f3=16.0, f4=16.0, q2=0.63, f5=2.5, q3=0.8, f6=4.0, q4=0.8, gain=0.4),
    "Wb-bs6841": Weighting(f1=0.4, f2=100.0, f3=16.0, f4=16.0, q2=0.55, f5=2.5, q3=0.9, f6=4.0, q4=0.95, gain=0.4),
    "Wc": Weighting(f1=0.4, f2=100.0, f3=8.0, f4=8.0, q2=0.63),
    "Wd": Weighting(f1=0.4, f2=100.0, f3=2.0, f4=2.0, q2=0.63),
    "Wk": Weighting(
        f1=0.4, f2=100.0, f3=12.5, f4=12.5, q2=0.63, f5=2.37, q3=0.91, f6=3.35, q4=0.91, gain=(2.37 / 3.35) ** 2
    ),
}


def weighting(name: str) -> Weighting:
    """A frequency weighting by its name."""
    if name not in WEIGHTINGS:
        raise InputError("weighting", f"{name!r} is none, {nearest(name, list(WEIGHTINGS))}", ", ".join(WEIGHTINGS))
    return WEIGHTINGS[name]


def weighted_acceleration(acceleration: Array, rate_hz: float, name: str) -> Array:
    """The acceleration [m/s^2] through a frequency weighting."""
    return weighted(acceleration, rate_hz, weighting(name))


def continuous_comfort(acceleration: Array, rate_hz: float, name: str, window_s: float = WINDOW_S) -> Array:
    """Weighted rms accelerations of consecutive windows [m/s^2]."""
    a = weighted_acceleration(acceleration, rate_hz, name)
    return sliding_rms(np.arange(a.size) / rate_hz, a, window_s, window_s)


def mean_comfort(x: Array, y: Array, z: Array, rate_hz: float, window_s: float = WINDOW_S) -> float:
    """N_MV of the accelerations [m/s^2] along, across and up at one place of the floor."""
    total = 0.0
    for acceleration, name in ((x, "Wd"), (y, "Wd"), (z, "Wb")):
        total += percentile(continuous_comfort(acceleration, rate_hz, name, window_s), 95.0) ** 2
    return 6.0 * math.sqrt(total)


def sperling_weighting(frequency_hz: Array, direction: str) -> Array:
    """Sperling's comfort weighting B(f), direction "z" (up and down) or "y" (sideways)."""
    if direction not in ("y", "z"):
        raise InputError("Wz: direction", f"is {direction!r}", "y, z")
    f2 = np.asarray(frequency_hz, dtype=np.float64) ** 2
    above = 1.911 * f2 + (0.25 * f2) ** 2
    below = (1.0 - 0.277 * f2) ** 2 + f2 * (1.563 - 0.0368 * f2) ** 2
    return np.asarray(0.588 * np.sqrt(above / below) * (LATERAL_FACTOR if direction == "y" else 1.0))


def sperling(acceleration: Array, rate_hz: float, direction: str) -> float:
    """Sperling's comfort index Wz of an acceleration [m/s^2]."""

    def response(f: Array) -> Complex:
        return np.asarray(sperling_weighting(f, direction), dtype=np.complex128)

    # (a_rms * sqrt(2) * 100 cm/m)^0.3 = 4.42 a_rms^0.3
    return float((100.0 * math.sqrt(2.0) * rms(weighted(acceleration, rate_hz, response))) ** 0.3)
