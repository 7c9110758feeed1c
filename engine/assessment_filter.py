"""Filters, sliding statistics and percentiles of uniformly sampled signals.

Low-pass and band-pass filters are Butterworth of fourth order (24 dB per octave at each edge, -3 dB at the corner), one
pass, started in the steady state of the first sample. Frequency weightings with a closed form are applied to the
Fourier transform instead, where no bilinear transform bends them; the signal is taken as zero before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError

Array = NDArray[np.float64]

ORDER = 4
LEAST_SAMPLES_PER_CORNER = 2.5  # samples per period of a filter's upper corner


def sample_rate(t: Array) -> float:
    """Samples per second of uniform sample times."""
    if t.ndim != 1 or t.size < 8:
        raise InputError("assessment: t", f"{t.size} samples", "at least 8")
    step = (t[-1] - t[0]) / (t.size - 1)
    if not step > 0.0 or np.abs(np.diff(t) - step).max() > 1e-3 * step:
        raise InputError("assessment: t", "is not uniform", "equally spaced samples (give sample_s)")
    return float(1.0 / step)


def _corner(where: str, corner_hz: float, rate_hz: float) -> None:
    check_number(where, corner_hz, above=0.0)
    if corner_hz * LEAST_SAMPLES_PER_CORNER > rate_hz:
        raise InputError(where, f"{corner_hz:g} Hz of a signal with {rate_hz:g} samples per second", "a finer sample_s")


@lru_cache(maxsize=64)
def _butterworth(kind: str, corner_hz: float, rate_hz: float) -> tuple[Array, Array]:
    """Second-order sections and their steady state; the design costs more than the filtering of a run."""
    from scipy.signal import butter, sosfilt_zi

    sections = butter(ORDER, corner_hz, btype=kind, fs=rate_hz, output="sos")
    return sections, sosfilt_zi(sections)


def _filtered(values: Array, kind: str, corner_hz: float, rate_hz: float) -> Array:
    from scipy.signal import sosfilt

    sections, steady = _butterworth(kind, corner_hz, rate_hz)
    return np.asarray(sosfilt(sections, values, zi=steady * values[0])[0])


def low_pass(values: Array, rate_hz: float, corner_hz: float) -> Array:
    """Butterworth low-pass of fourth order."""
    _corner("low-pass", corner_hz, rate_hz)
    return _filtered(values, "lowpass", corner_hz, rate_hz)


def band_pass(values: Array, rate_hz: float, low_hz: float, high_hz: float) -> Array:
    """Butterworth band-pass with fourth-order edges."""
    _corner("band-pass", high_hz, rate_hz)
    check_number("band-pass: lower corner", low_hz, above=0.0, most=high_hz)
    return _filtered(_filtered(values, "lowpass", high_hz, rate_hz), "highpass", low_hz, rate_hz)


def weighted(values: Array, rate_hz: float, response: Callable[[Array], NDArray[np.complex128]]) -> Array:
    """The signal about its mean through a filter given by its complex response over frequency [Hz]."""
    from scipy.fft import next_fast_len

    n = values.size
    padded = int(next_fast_len(2 * n, real=True))
    frequency = np.arange(padded // 2 + 1, dtype=np.float64) * (rate_hz / padded)
    spectrum: NDArray[np.complex128] = np.fft.rfft(values - values.mean(), padded)
    return np.asarray(np.fft.irfft(np.multiply(spectrum, response(frequency)), padded)[:n])


def sliding_mean(x: Array, values: Array, window: float, step: float) -> Array:
    """Means over windows [a, a + window] with a = x0, x0 + step, ...: of the line through the samples, exactly.

    Parameters
    ----------
    x : array
        Increasing places or times of the samples.
    window, step : float
        In the unit of x.
    """
    check_number("sliding mean: window", window, above=0.0)
    check_number("sliding mean: step", step, above=0.0)
    span = float(x[-1] - x[0])
    if window > span * (1.0 + 1e-9):
        raise InputError("sliding mean: window", f"is {window:g} on a record of {span:g}", "a longer record")
    integral = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(x))])
    starts = x[0] + step * np.arange(int((span - window) / step + 1e-9) + 1)

    def upto(place: Array) -> Array:
        i = np.clip(np.searchsorted(x, place, side="right") - 1, 0, x.size - 2)
        d = place - x[i]
        slope = (values[i + 1] - values[i]) / (x[i + 1] - x[i])
        return np.asarray(integral[i] + d * (values[i] + 0.5 * slope * d))

    return np.asarray((upto(np.minimum(starts + window, x[-1])) - upto(starts)) / window)


def sliding_rms(x: Array, values: Array, window: float, step: float) -> Array:
    """Root mean squares over sliding windows."""
    return np.sqrt(np.maximum(sliding_mean(x, values * values, window, step), 0.0))


def rms(values: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values * values)))


def percentile(values: Array, percent: float) -> float:
    """Value below which `percent` of the samples lie, by linear interpolation between the order statistics."""
    return float(np.percentile(values, percent))


def extreme(values: Array, percent: float) -> float:
    """The larger magnitude of the lower and the upper percentile: 99.85 also looks at 0.15."""
    return max(abs(percentile(values, percent)), abs(percentile(values, 100.0 - percent)))
