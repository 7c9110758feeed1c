"""Track irregularities: four channels along the track, sampled on one uniform grid and joined by quintic splines.

Channels (SI, frame x forward, y left, z up), all relative to the smooth track:

* ``vertical`` mean height of both rails, positive up [m];
* ``lateral`` mean alignment of both rails, positive to the left [m];
* ``cross_level`` angle of the rail plane, positive with the left rail up [rad] (height difference / 1.5 m);
* ``gauge`` widening [m].

Left and right rails are the same thing in other words: vertical = (l + r)/2, cross level = (l - r)/1.5 m for heights,
lateral = (l + r)/2, gauge = l - r for alignments.

Where irregularities come from: `irregularity_spectrum` (seeded realisations), `irregularity_defect` (sines, bumps,
sweeps), `irregularity_file` (measured and TOML files). Every source leaves a provenance record from which the same
samples can be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.kernels import irregularity as kernel

if TYPE_CHECKING:
    from railsweep.engine.irregularity_spectrum import Realisation

Array = NDArray[np.float64]

CHANNELS = {
    "vertical": kernel.VERTICAL,
    "lateral": kernel.LATERAL,
    "cross_level": kernel.CROSS_LEVEL,
    "gauge": kernel.GAUGE,
}
RAIL_BASE_M = 1.5  # distance of the running circles: height difference of the rails = base * cross level
FADE_M = 20.0
PADDING = 48  # nodes of perfect track behind an irregularity that ends; the spline forgets a node by 0.43 per node
MOST_NODES = 20_000_000
LARGEST_M = 0.5  # larger displacements are no irregularity but another unit
LONGEST_M = 1e7

# Uniform quintic B-spline: power of x in [0, 1) (rows) times the six coefficients around an interval (columns).
QUINTIC = (
    np.array(
        [
            [1, 26, 66, 26, 1, 0],
            [-5, -50, 0, 50, 5, 0],
            [10, 20, -60, 20, 10, 0],
            [-10, 20, 0, -20, 10, 0],
            [5, -20, 30, -20, 5, 0],
            [-1, 5, -10, 10, -5, 1],
        ]
    )
    / 120.0
)


# What a height or alignment [m] under each name adds to which channel.
CONTRIBUTIONS: dict[str, tuple[tuple[str, float], ...]] = {
    "vertical": (("vertical", 1.0),),
    "lateral": (("lateral", 1.0),),
    "cross_level": (("cross_level", 1.0 / RAIL_BASE_M),),
    "gauge": (("gauge", 1.0),),
    "left_vertical": (("vertical", 0.5), ("cross_level", 1.0 / RAIL_BASE_M)),
    "right_vertical": (("vertical", 0.5), ("cross_level", -1.0 / RAIL_BASE_M)),
    "left_lateral": (("lateral", 0.5), ("gauge", 1.0)),
    "right_lateral": (("lateral", 0.5), ("gauge", -1.0)),
}


def channel_number(name: str, where: str = "channel") -> int:
    """Number of a channel by its name."""
    if name not in CHANNELS:
        raise InputError(where, f"{name!r} is no channel, {nearest(name, list(CHANNELS))}", ", ".join(CHANNELS))
    return CHANNELS[name]


def periodic_quintic(values: Array) -> Array:
    """Coefficients (interval, power, channel) of the periodic C4 spline through `values` (node, channel).

    On a uniform grid the B-spline coefficients are the samples through the inverse of the filter (1, 26, 66, 26,
    1)/120, which in the Fourier domain is a division.
    """
    n = values.shape[0]
    turn = 2.0 * np.pi * np.arange(n // 2 + 1) / n
    response = (66.0 + 52.0 * np.cos(turn) + 2.0 * np.cos(2.0 * turn)) / 120.0
    around = np.fft.irfft(np.fft.rfft(values, axis=0) / response[:, None], n, axis=0)
    window = np.stack([np.roll(around, 2 - k, axis=0) for k in range(kernel.POWERS)], axis=1)
    return np.ascontiguousarray(np.einsum("pk,nkc->npc", QUINTIC, window))


def fade_window(s: Array, length_m: float) -> Array:
    """The C4 step of the kernel: 0 before s = 0, 1 from `length_m` on."""
    if length_m <= 0.0:
        return np.where(s > 0.0, 1.0, 0.0)
    u = np.clip(s / length_m, 0.0, 1.0)
    step: Array = u**5 * (126.0 + u * (-420.0 + u * (540.0 + u * (-315.0 + u * 70.0))))
    return step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Irregularity:
    """Irregularities of the track, ready for a model. Made by `realise`, `defects` or `load_irregularity`.

    Attributes
    ----------
    step_m : float
        Distance of the nodes; node 0 is where the leading wheelset stands at t = 0.
    coefficients : (n, 6, 4) array
        Quintic spline in units of the step, channels in the order of `CHANNELS`.
    periodic : bool
        Repeated for ever (spectra), or perfect track behind the last node.
    fade_m : float
        Length over which the irregularities grow from zero.
    provenance : dict
        Plain data that says how the samples were made.
    realisation : Realisation or None
        The recipe of a random track, for other seeds of it.
    marks_m : tuple of float
        Places an integrator should not step over (begin and middle of defects).
    """

    step_m: float
    coefficients: Array
    periodic: bool
    fade_m: float
    provenance: dict[str, Any]
    realisation: Realisation | None = None
    marks_m: tuple[float, ...] = field(default=())

    @property
    def length_m(self) -> float:
        """Length of the samples (one period of a random track)."""
        return self.step_m * len(self.coefficients)

    @property
    def seed(self) -> int | None:
        """Seed of a random track."""
        return None if self.realisation is None else self.realisation.seed

    def at(self, s: ArrayLike, derivative: int = 0, *, fade: bool = True) -> Array:
        """Values (place, channel) of a derivative (0 to 4, with respect to s [m]) at places `s` [m].

        With `fade=False` as if the irregularities had no beginning.
        """
        if derivative not in range(5):
            raise InputError("derivative", f"is {derivative!r}", "0 to 4")
        places = np.atleast_1d(np.asarray(s, dtype=np.float64))
        raw = [self._raw(places, k) for k in range(derivative + 1)]
        if not fade:
            return raw[derivative]
        # Leibniz' rule for fade window times spline
        out = np.zeros_like(raw[0])
        row = [1]
        for _ in range(derivative):
            row = [1, *(a + b for a, b in pairwise(row)), 1]
        for k, factor in enumerate(row):
            out += factor * self._fade(places, derivative - k)[:, None] * raw[k]
        return out

    def _raw(self, s: Array, derivative: int) -> Array:
        n = self.coefficients.shape[0]
        x = s / self.step_m
        inside = (x >= 0.0) & (x < n)
        x = x % n if self.periodic else np.where(inside, x, 0.0)
        i = np.minimum(x.astype(np.int64), n - 1)
        x = (x - i)[:, None]
        out = np.zeros((s.size, kernel.CHANNELS))
        for power in range(kernel.POWERS - 1, derivative - 1, -1):
            factor = np.prod(np.arange(power - derivative + 1, power + 1, dtype=float))
            out = factor * self.coefficients[i, power] + x * out
        out /= self.step_m**derivative
        return out if self.periodic else np.where(inside[:, None], out, 0.0)

    def _fade(self, s: Array, derivative: int) -> Array:
        if self.fade_m <= 0.0 or derivative == 0:
            return fade_window(s, self.fade_m) if derivative == 0 else np.zeros_like(s)
        step = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70]).deriv(derivative)
        u = s / self.fade_m
        return np.where((u > 0.0) & (u < 1.0), step(u) / self.fade_m**derivative, 0.0)

    def with_seed(self, seed: int) -> Irregularity:
        """Another realisation of the same random track."""
        if self.realisation is None:
            raise InputError("irregularity.seed", "this track is not random", "a track made from a spectrum")
        return self.realisation.with_seed(seed).irregularity()


def sampled(
    values: Mapping[str, Array],
    step_m: float,
    *,
    fade_m: float,
    provenance: dict[str, Any],
    marks_m: tuple[float, ...] = (),
) -> Irregularity:
    """Irregularities from samples that begin at s = 0; they fade in and, before the last sample, out again.

    Parameters
    ----------
    values : mapping
        Channel -> samples (SI), all of one length; channels that are absent are perfect.
    step_m : float
        Distance of the samples.
    fade_m : float
        Length of both fades; 0 when the samples begin and end at rest.
    """
    check_number("irregularity: step_m", step_m, above=0.0)
    check_number("irregularity: fade_m", fade_m, least=0.0, most=LONGEST_M)
    lengths = {v.shape for v in values.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        raise InputError("irregularity", f"channels of shapes {sorted(lengths)}", "vectors of one length")
    count = next(iter(lengths))[0]
    if not 2 <= count <= MOST_NODES:
        raise InputError("irregularity", f"{count} samples", f"2 to {MOST_NODES}")
    length = (count - 1) * step_m
    if 2.0 * fade_m > length:
        raise InputError("irregularity: fade_m", f"is {fade_m!r} on {length:g} m of track", "at most half the length")
    # perfect track behind the end: what the periodic spline sees before its beginning
    nodes = np.zeros((count + PADDING, kernel.CHANNELS))
    for name, samples in values.items():
        column = channel_number(name, "irregularity")
        if not np.isfinite(samples).all() or np.abs(samples).max() > LARGEST_M:
            raise InputError(
                f"irregularity: {name}", "is not finite or larger than half a metre (or radian)", "SI units"
            )
        nodes[:count, column] = samples
    if fade_m > 0.0:
        places = step_m * np.arange(count, dtype=np.float64)
        window: Array = fade_window(places, fade_m) * fade_window(length - places, fade_m)
        nodes[:count] *= window[:, None]
    return Irregularity(
        step_m=step_m,
        coefficients=periodic_quintic(nodes),
        periodic=False,
        fade_m=0.0,
        provenance={**provenance, "step_m": step_m, "samples": count, "fade_m": fade_m},
        marks_m=marks_m,
    )
