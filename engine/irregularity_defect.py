"""Analytic track defects: sines, isolated bumps, sweeps and plateaus, on the channels or on one rail.

With u the place behind the beginning of the defect, A its amplitude and L its wavelength:

* ``sine``    A sin(2 pi u / L) over a number of waves, faded in and out over one wave each;
* ``bump``    A (1 - cos(2 pi u / L)) / 2 over one wave;
* ``sweep``   A sin(phase) with a wave number that goes linearly from 1/L to 1/L_end over a length, faded likewise;
* ``plateau`` a C4 rise to A over L, level over a length, and a fall over L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.irregularity import (
    CHANNELS,
    CONTRIBUTIONS,
    LARGEST_M,
    LONGEST_M,
    MOST_NODES,
    Irregularity,
    fade_window,
    sampled,
)

Array = NDArray[np.float64]

KINDS = ("sine", "bump", "sweep", "plateau")
NODES_PER_WAVE = 32
START_M = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One analytic defect.

    Parameters
    ----------
    kind : {"sine", "bump", "sweep", "plateau"}
    channel : str
        vertical, lateral, cross_level (height difference of the rails), gauge, or left_ / right_vertical, _lateral.
    amplitude_m : float
        Height or alignment, either sign.
    wavelength_m : float
    start_m : float
        Where it begins, from the place of the leading wheelset at t = 0.
    waves : float
        Number of waves of a sine, fades included.
    wavelength_end_m : float
        Last wavelength of a sweep.
    length_m : float
        Length of a sweep, fades included, or of the level part of a plateau.
    """

    kind: str
    channel: str
    amplitude_m: float
    wavelength_m: float
    start_m: float = START_M
    waves: float = 10.0
    wavelength_end_m: float = 0.0
    length_m: float = 0.0

    def __post_init__(self) -> None:
        for name, value, options in (("kind", self.kind, KINDS), ("channel", self.channel, tuple(CONTRIBUTIONS))):
            if value not in options:
                raise InputError(
                    f"defect: {name}", f"is {value!r}, {nearest(value, list(options))}", ", ".join(options)
                )
        check_number("defect: amplitude_m", self.amplitude_m, least=-LARGEST_M / 2, most=LARGEST_M / 2)
        check_number("defect: wavelength_m", self.wavelength_m, least=0.05, most=LONGEST_M)
        check_number("defect: start_m", self.start_m, least=0.0, most=LONGEST_M)
        check_number("defect: waves", self.waves, least=2.0, most=1e6)
        if self.kind == "sweep":
            check_number("defect: wavelength_end_m", self.wavelength_end_m, least=0.05, most=LONGEST_M)
            shortest = 2.0 * max(self.wavelength_m, self.wavelength_end_m)
            check_number("defect: length_m", self.length_m, least=shortest, most=LONGEST_M)
        if self.kind == "plateau":
            check_number("defect: length_m", self.length_m, least=0.0, most=LONGEST_M)

    @property
    def extent_m(self) -> float:
        """Length of the whole defect."""
        return {
            "sine": self.waves * self.wavelength_m,
            "bump": self.wavelength_m,
            "sweep": self.length_m,
            "plateau": self.length_m + 2.0 * self.wavelength_m,
        }[self.kind]

    @property
    def shortest_m(self) -> float:
        """Shortest wave in it."""
        return min(self.wavelength_m, self.wavelength_end_m) if self.kind == "sweep" else self.wavelength_m

    def values(self, s: Array) -> Array:
        """Height or alignment [m] at places s [m]."""
        u = s - self.start_m
        rest = self.extent_m - u
        inside = (u > 0.0) & (rest > 0.0)
        if self.kind == "bump":
            return np.where(inside, 0.5 * self.amplitude_m * (1.0 - np.cos(2.0 * np.pi * u / self.wavelength_m)), 0.0)
        first = last = self.wavelength_m
        if self.kind == "plateau":
            shape = np.ones_like(u)
        elif self.kind == "sine":
            shape = np.sin(2.0 * np.pi * u / self.wavelength_m)
        else:
            last = self.wavelength_end_m
            bend = 0.5 * (1.0 / last - 1.0 / first) / self.length_m
            shape = np.sin(2.0 * np.pi * (u / first + bend * u * u))
        fade = fade_window(u, first) * fade_window(rest, last)
        return np.where(inside, self.amplitude_m * shape * fade, 0.0)


def defects(items: Defect | Sequence[Defect]) -> Irregularity:
    """A track that is perfect but for the given defects; where they overlap they add up.

    Examples
    --------
    >>> track = defects(Defect(kind="bump", channel="vertical", amplitude_m=0.01, wavelength_m=5.0, start_m=10.0))
    >>> [round(float(x), 6) for x in track.at([10.0, 12.5, 20.0])[:, 0]]
    [0.0, 0.01, 0.0]
    """
    found = [items] if isinstance(items, Defect) else list(items)
    if not found:
        raise InputError("defects", "there are none", "at least one")
    step = min(d.shortest_m for d in found) / NODES_PER_WAVE
    count = math.ceil(max(d.start_m + d.extent_m for d in found) / step) + 2
    if count > MOST_NODES:
        raise InputError("defects", f"{count} samples", f"at most {MOST_NODES}")
    s = step * np.arange(count, dtype=np.float64)
    values = {name: np.zeros(count) for name in CHANNELS}
    for defect in found:
        height = defect.values(s)
        for channel, factor in CONTRIBUTIONS[defect.channel]:
            values[channel] += factor * height
    return sampled(
        values,
        step,
        fade_m=0.0,
        provenance={"kind": "defects", "defects": [asdict(d) for d in found]},
        marks_m=tuple(m for d in found for m in (d.start_m, d.start_m + 0.5 * d.wavelength_m)),
    )
