"""Spectra of track irregularities and seeded realisations of them.

Conventions, where the literature differs by factors of 2 and 2 pi: a density here is ONE-SIDED over the spatial
frequency f = 1/wavelength [cycle/m], so that the variance in a band is the integral of the density over that band.
Published forms are one-sided over Omega = 2 pi f [rad/m], hence S_f(f) = 2 pi S(2 pi f); a two-sided density counts
twice. A table says which of these it uses (`frequency`, `sides`).

* ERRI B176, low and high (also called German low and high disturbance): with Omega_c = 0.8246, Omega_r = 0.0206,
  Omega_s = 0.4380 rad/m and b = 0.75 m,
  vertical A_v Omega_c^2 / ((Omega^2 + Omega_r^2)(Omega^2 + Omega_c^2)), lateral likewise with A_a,
  cross level [rad^2] A_v/b^2 Omega_c^2 Omega^2 / ((Omega^2 + Omega_r^2)(Omega^2 + Omega_c^2)(Omega^2 + Omega_s^2)),
  gauge the same form with A_g.
* FRA classes 1 to 6: k A Omega_c^2 / (Omega^2 (Omega^2 + Omega_c^2)) with k = 0.25 and Omega_c = 0.8245 rad/m; height
  difference and gauge 4 k A_v Omega_c^2 / ((Omega^2 + Omega_c^2)(Omega^2 + Omega_s^2)).

A realisation is a sum of cosines r(s) = sum a_j cos(2 pi f_j s + theta_j) on the lines f_j = j / length inside the
band, periodic over its length. a_j^2/2 is the integral of the density over the part of the bin f_j +- 1/(2 length)
that lies in the band, so the variance of the band is met exactly for any length. With `amplitudes="gaussian"` the
a_j are Rayleigh distributed about that, which makes the process Gaussian and its spectral estimates scatter like
measured ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.irregularity import (
    CHANNELS,
    FADE_M,
    LONGEST_M,
    MOST_NODES,
    RAIL_BASE_M,
    Irregularity,
    channel_number,
    periodic_quintic,
)

Array = NDArray[np.float64]

SHORTEST_M = 3.0
LONGEST_WAVE_M = 100.0
LENGTH_M = 2000.0
NODES_PER_WAVE = 12  # of the shortest wave: the quintic spline is then right to 1e-6 of its amplitude
AMPLITUDES = ("fixed", "gaussian")
FREQUENCIES = ("spatial", "angular")
LARGEST_SEED = 2**53 - 1  # what a number in a study can hold
GAUSS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rational:
    """S(Omega) = gain Omega^(2 power) / prod(Omega^2 + corner^2), one-sided in rad/m [m^2/(rad/m) or rad^2/(rad/m)]."""

    gain: float
    corners: tuple[float, ...]
    power: int = 0

    def __call__(self, f: Array) -> Array:
        """One-sided density over spatial frequency."""
        square = (2.0 * np.pi * f) ** 2
        value = 2.0 * np.pi * self.gain * square**self.power
        for corner in self.corners:
            value = value / (square + corner * corner)
        return np.asarray(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabulated:
    """A density given by points, joined by straight lines in logarithms, zero outside them.

    `frequency` is "spatial" (cycle/m, density per cycle/m) or "angular" (rad/m, density per rad/m); `sides` is 1 or 2.
    """

    points: tuple[tuple[float, float], ...]
    frequency: str = "spatial"
    sides: int = 1

    def __post_init__(self) -> None:
        if self.frequency not in FREQUENCIES:
            raise InputError("spectrum: frequency", f"is {self.frequency!r}", ", ".join(FREQUENCIES))
        if self.sides not in (1, 2):
            raise InputError("spectrum: sides", f"is {self.sides!r}", "1 (one-sided) or 2 (two-sided)")
        if len(self.points) < 2:
            raise InputError("spectrum: points", f"{len(self.points)} of them", "at least 2")
        last = 0.0
        for f, value in self.points:
            if not (math.isfinite(f) and f > last):
                raise InputError("spectrum: frequency", f"{f!r} after {last!r}", "positive, increasing")
            if not (math.isfinite(value) and value > 0.0):
                raise InputError("spectrum: density", f"is {value!r} at frequency {f!r}", "positive")
            last = f

    def __call__(self, f: Array) -> Array:
        """One-sided density over spatial frequency."""
        x, value = np.array(self.points).T
        factor = float(self.sides)
        if self.frequency == "angular":
            x, factor = x / (2.0 * np.pi), factor * 2.0 * np.pi
        inside = (f >= x[0]) & (f <= x[-1])
        density = np.exp(np.interp(np.log(np.where(inside, f, x[0])), np.log(x), np.log(factor * value)))
        return np.where(inside, density, 0.0)


Density = Rational | Tabulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """One density per channel; a channel without one is perfect."""

    name: str
    densities: tuple[tuple[str, Density], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.densities]
        for name in names:
            channel_number(name, f"spectrum {self.name}")
        if not names or len(set(names)) != len(names):
            raise InputError(f"spectrum {self.name}", f"channels {names}", "each of " + ", ".join(CHANNELS) + " once")

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels that are rough."""
        return tuple(name for name, _ in self.densities)

    def density(self, channel: str, f: Array) -> Array:
        """One-sided density over spatial frequency f [cycle/m]: m^2/(cycle/m), cross level rad^2/(cycle/m)."""
        found = dict(self.densities).get(channel)
        if found is None:
            channel_number(channel)
            return np.zeros_like(f)
        return found(f)

    def variance(self, channel: str, low: Array, high: Array) -> Array:
        """Integral of the density over every band [low, high] of spatial frequency."""
        nodes, weights = GAUSS
        half = 0.5 * (high - low)
        f = 0.5 * (high + low)[:, None] + half[:, None] * nodes[None, :]
        return np.asarray((self.density(channel, f) * weights).sum(axis=1) * half)

    def band_rms(self, channel: str, shortest_m: float, longest_m: float) -> float:
        """Root mean square of the wavelengths between two limits (m or rad)."""
        edges = np.geomspace(1.0 / longest_m, 1.0 / shortest_m, 201)
        return float(np.sqrt(self.variance(channel, edges[:-1], edges[1:]).sum()))


def _erri(name: str, vertical: float, lateral: float, gauge: float) -> Spectrum:
    c, r, s, b = 0.8246, 0.0206, 0.4380, 0.75
    return Spectrum(
        name=name,
        densities=(
            ("vertical", Rational(gain=vertical * c * c, corners=(r, c))),
            ("lateral", Rational(gain=lateral * c * c, corners=(r, c))),
            ("cross_level", Rational(gain=vertical / (b * b) * c * c, corners=(r, c, s), power=1)),
            ("gauge", Rational(gain=gauge * c * c, corners=(r, c, s), power=1)),
        ),
    )


def _fra(number: int, vertical_cm2: float, lateral_cm2: float, corner_s: float) -> Spectrum:
    c, k = 0.8245, 0.25
    vertical, lateral = 1e-4 * vertical_cm2, 1e-4 * lateral_cm2  # cm^2 rad/m -> m^2 rad/m
    difference = 4.0 * k * vertical * c * c
    return Spectrum(
        name=f"fra-{number}",
        densities=(
            ("vertical", Rational(gain=k * vertical * c * c, corners=(0.0, c))),
            ("lateral", Rational(gain=k * lateral * c * c, corners=(0.0, c))),
            ("cross_level", Rational(gain=difference / RAIL_BASE_M**2, corners=(c, corner_s))),
            ("gauge", Rational(gain=difference, corners=(c, corner_s))),
        ),
    )


SPECTRA = {
    spectrum.name: spectrum
    for spectrum in (
        _erri("erri-low", 4.032e-7, 2.119e-7, 5.32e-8),
        _erri("erri-high", 1.08e-6, 6.125e-7, 1.032e-7),
        _fra(1, 1.2107, 3.3634, 0.6046),
        _fra(2, 1.0181, 1.2107, 0.9308),
        _fra(3, 0.6816, 0.4128, 0.8520),
        _fra(4, 0.5376, 0.3027, 1.1312),
        _fra(5, 0.2095, 0.0762, 0.8209),
        _fra(6, 0.0339, 0.0339, 0.4380),
    )
}


def find_spectrum(name: str, where: str = "spectrum") -> Spectrum:
    """A spectrum of the library by its name."""
    if name not in SPECTRA:
        raise InputError(where, f"{name!r} is no spectrum, {nearest(name, list(SPECTRA))}", ", ".join(SPECTRA))
    return SPECTRA[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Realisation:
    """The recipe of a random track: everything its samples depend on.

    Parameters
    ----------
    spectrum : Spectrum
    seed : int
        Each channel draws from its own stream of it.
    length_m : float
        Period; the lines stand 1/length apart.
    shortest_m, longest_m : float
        Limits of the wavelengths.
    fade_m : float
        Length of the fade-in.
    amplitudes : {"fixed", "gaussian"}
    channels : tuple of str
        Which channels are rough; empty for all of the spectrum.
    """

    spectrum: Spectrum
    seed: int = 0
    length_m: float = LENGTH_M
    shortest_m: float = SHORTEST_M
    longest_m: float = LONGEST_WAVE_M
    fade_m: float = FADE_M
    amplitudes: str = "fixed"
    channels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed <= LARGEST_SEED:
            raise InputError("irregularity: seed", f"is {self.seed!r}", f"a whole number from 0 to {LARGEST_SEED}")
        check_number("irregularity: shortest_m", self.shortest_m, least=0.01, most=LONGEST_M)
        check_number("irregularity: longest_m", self.longest_m, above=self.shortest_m, most=LONGEST_M)
        check_number("irregularity: length_m", self.length_m, least=self.longest_m, most=LONGEST_M)
        check_number("irregularity: fade_m", self.fade_m, least=0.0, most=LONGEST_M)
        if self.amplitudes not in AMPLITUDES:
            raise InputError("irregularity: amplitudes", f"is {self.amplitudes!r}", ", ".join(AMPLITUDES))
        for name in self.channels:
            if name not in self.spectrum.channels:
                raise InputError(
                    "irregularity: channels",
                    f"{name!r} is not in {self.spectrum.name}, {nearest(name, list(self.spectrum.channels))}",
                    ", ".join(self.spectrum.channels),
                )
        if self.nodes > MOST_NODES:
            raise InputError("irregularity: length_m", f"{self.nodes} samples", f"at most {MOST_NODES}")

    @property
    def nodes(self) -> int:
        """Number of samples of one period: a number that transforms fast."""
        from scipy.fft import next_fast_len

        return int(next_fast_len(math.ceil(NODES_PER_WAVE * self.length_m / self.shortest_m), real=True))

    def lines(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Numbers j of the lines and the lower and upper end of their bins inside the band [cycle/m]."""
        step = 1.0 / self.length_m
        low, high = 1.0 / self.longest_m, 1.0 / self.shortest_m
        first = max(1, math.ceil(low / step - 0.5))
        j = np.arange(first, math.floor(high / step + 0.5) + 1)
        return j, np.maximum((j - 0.5) * step, low), np.minimum((j + 0.5) * step, high)

    def with_seed(self, seed: int) -> Realisation:
        """The same track with another seed."""
        return replace(self, seed=seed)

    def samples(self) -> Array:
        """Values (node, channel) at the nodes of one period."""
        n = self.nodes
        j, low, high = self.lines()
        spectrum = np.zeros((n // 2 + 1, len(CHANNELS)), np.complex128)
        for name in self.channels or self.spectrum.channels:
            column = CHANNELS[name]
            stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(column,))))
            phase = stream.uniform(0.0, 2.0 * np.pi, j.size)
            power = self.spectrum.variance(name, low, np.maximum(high, low))
            if self.amplitudes == "gaussian":
                power = power * stream.exponential(1.0, j.size)
            # a cos(2 pi j k / n + phase) is the inverse transform of n a/2 exp(i phase) at line j
            spectrum[j, column] = 0.5 * n * np.sqrt(2.0 * power) * np.exp(1j * phase)
        return np.fft.irfft(spectrum, n, axis=0)

    def irregularity(self) -> Irregularity:
        """The track itself; the same recipe is kept for the next call."""
        return _realised(self)

    def provenance(self) -> dict[str, Any]:
        """Plain data: how the samples were made."""
        j, _, _ = self.lines()
        return {
            "kind": "spectrum",
            "spectrum": self.spectrum.name,
            "densities": {name: repr(density) for name, density in self.spectrum.densities},
            "convention": "one-sided over spatial frequency",
            "channels": list(self.channels or self.spectrum.channels),
            "seed": self.seed,
            "generator": "PCG64(SeedSequence(seed, spawn_key=(channel number,))): phases, then powers",
            "amplitudes": self.amplitudes,
            "length_m": self.length_m,
            "shortest_m": self.shortest_m,
            "longest_m": self.longest_m,
            "frequency_step_1pm": 1.0 / self.length_m,
            "first_line": int(j[0]),
            "last_line": int(j[-1]),
            "nodes": self.nodes,
            "step_m": self.length_m / self.nodes,
            "fade_m": self.fade_m,
        }


@lru_cache(maxsize=8)
def _realised(recipe: Realisation) -> Irregularity:
    return Irregularity(
        step_m=recipe.length_m / recipe.nodes,
        coefficients=periodic_quintic(recipe.samples()),
        periodic=True,
        fade_m=recipe.fade_m,
        provenance=recipe.provenance(),
        realisation=recipe,
    )


def realise(spectrum: Spectrum | str, **settings: Any) -> Irregularity:
    """A random track of a given spectrum; settings as in `Realisation`.

    Examples
    --------
    >>> rough = realise("erri-high", seed=3, length_m=1000.0)
    >>> rough.seed, rough.provenance["first_line"], rough.provenance["last_line"]
    (3, 10, 333)
    """
    found = find_spectrum(spectrum) if isinstance(spectrum, str) else spectrum
    return Realisation(spectrum=found, **settings).irregularity()
