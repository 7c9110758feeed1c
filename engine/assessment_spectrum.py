"""Spectral estimators: power spectral density (Welch), transfer functions H1 and H2, coherence.

Densities are one-sided. With averages over K segments the estimate of a density is chi-squared with 2K degrees of
freedom (fewer with overlap); `confidence` gives the band.

    H1 = S_xy / S_xx   (noise in the output averages out)      H2 = S_yy / S_yx   (noise in the input averages out)
    coherence = |S_xy|^2 / (S_xx S_yy) = H1 / H2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

OVERLAP = 0.5
# Hann windows that overlap by half share 1/6 of their power: the variance falls by K / (1 + 2/36), not by K.
HANN_CORRELATION = 1.0 / 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Psd:
    """One-sided power spectral density over frequency, and the number of averaged segments."""

    frequency: Array
    density: Array
    segments: int

    def band_rms(self, low: float, high: float) -> float:
        """Root mean square between two frequencies."""
        inside = (self.frequency >= low) & (self.frequency <= high)
        return float(np.sqrt(self.density[inside].sum() * (self.frequency[1] - self.frequency[0])))

    def confidence(self, level: float = 0.95) -> tuple[float, float]:
        """Factors on the density between which the true one lies with this probability."""
        from scipy.stats import chi2

        check_number("confidence: level", level, above=0.0, most=1.0 - 1e-12)
        overlap = 1.0 + 2.0 * HANN_CORRELATION**2 * (self.segments - 1) / self.segments
        freedom = 2.0 * self.segments / overlap
        tail = 0.5 * (1.0 - level)
        return float(freedom / chi2.ppf(1.0 - tail, freedom)), float(freedom / chi2.ppf(tail, freedom))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Transfer function from one signal to another by both estimators, with the coherence."""

    frequency: Array
    h1: Complex
    h2: Complex
    coherence: Array
    segments: int


def _segment(size: int, rate: float, segment: float) -> int:
    count = round(segment * rate)
    if not 8 <= count <= size:
        raise InputError("spectrum: segment", f"{count} of {size} samples", "8 samples to the whole record")
    return count


def welch(values: Array, rate: float, segment: float) -> Psd:
    """Density by averaging Hann-windowed segments that overlap by half.

    Parameters
    ----------
    values : array
        Uniform samples; the mean of every segment is taken out.
    rate : float
        Samples per second, or per metre for a density over spatial frequency.
    segment : float
        Length of a segment, in s (or m).
    """
    from scipy.signal import welch as scipy_welch

    count = _segment(values.size, rate, segment)
    overlap = int(OVERLAP * count)
    f, density = scipy_welch(values, rate, window="hann", nperseg=count, noverlap=overlap)
    return Psd(frequency=f, density=density, segments=(values.size - overlap) // (count - overlap))


def transfer_function(x: Array, y: Array, rate: float, segment: float) -> Transfer:
    """Transfer function from x to y from averaged cross spectra; arguments as in `welch`."""
    from scipy.signal import csd
    from scipy.signal import welch as scipy_welch

    if x.shape != y.shape:
        raise InputError("transfer function", f"signals of shapes {x.shape} and {y.shape}", "one shape")
    count = _segment(x.size, rate, segment)
    overlap = int(OVERLAP * count)
    options = {"fs": rate, "window": "hann", "nperseg": count, "noverlap": overlap}
    f, xx = scipy_welch(x, **options)
    _, yy = scipy_welch(y, **options)
    _, xy = csd(x, y, **options)
    with np.errstate(divide="ignore", invalid="ignore"):
        h1, h2, coherence = xy / xx, yy / np.conj(xy), np.abs(xy) ** 2 / (xx * yy)
    return Transfer(frequency=f, h1=h1, h2=h2, coherence=coherence, segments=(x.size - overlap) // (count - overlap))
