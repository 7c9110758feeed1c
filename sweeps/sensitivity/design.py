"""Points of the unit cube by number, the same whoever asks and in whatever order.

A design is a list of cases that is never written out. Cases that only make sense together (one base point of a Saltelli
design with its neighbours, one trajectory of Morris) form a row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError

Array = NDArray[np.float64]

SAMPLINGS = ("sobol", "monte-carlo")
CHUNK = 1024  # points made at a time
MOST_SOBOL_DIMENSIONS = 21_201  # direction numbers that scipy carries
MOST_SOBOL_POINTS = 2**30


class Design(Protocol):
    """What every design offers.

    Laws (tests/sweeps/sensitivity/test_design_laws.py checks them for every design): `points` of any range equal the
    same slice of all points, bit for bit; all coordinates lie in [0, 1]; equal settings give equal points and another
    seed gives others; a longer design starts with the shorter one.
    """

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def row_cases(self) -> int:
        """Cases of one row."""

    def points(self, first: int, last: int) -> Array:
        """Points of the cases `first` to `last` - 1, shape (last - first, dimension)."""


def stream(seed: int, *place: int) -> np.random.Generator:
    """The random numbers that belong to a seed and a place (generation, trajectory, ...), whoever draws them."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *place])))


def base_points(sampling: str, dimension: int, seed: int, first: int, last: int, replicates: int = 1) -> Array:
    """Base points number `first` to `last` - 1 of a sampling.

    With replicates, point j belongs to the independently scrambled sequence j mod replicates, so that any beginning of
    the design is an equal share of all sequences; their scatter measures the error of the quasi-random sample.
    """
    if sampling not in SAMPLINGS:
        raise InputError("sampling", f"is {sampling!r}", ", ".join(SAMPLINGS))
    if sampling == "sobol" and (dimension > MOST_SOBOL_DIMENSIONS or last > MOST_SOBOL_POINTS):
        raise InputError(
            "sampling",
            f"sobol with {last} points in {dimension} dimensions",
            f"at most {MOST_SOBOL_POINTS} points, {MOST_SOBOL_DIMENSIONS} dimensions",
        )
    found = np.empty((max(0, last - first), dimension))
    make = _sobol_chunk if sampling == "sobol" else _random_chunk
    for place in range(min(replicates, last - first)):
        start = first + place  # the first point of its sequence in the range
        inner = start // replicates
        count = -(-(last - start) // replicates)
        done = 0
        while done < count:
            chunk, offset = divmod(inner + done, CHUNK)
            piece = make(dimension, seed, start % replicates, chunk)[offset : offset + count - done]
            begin = place + done * replicates
            found[begin : begin + len(piece) * replicates : replicates] = piece
            done += len(piece)
    return found


@lru_cache(maxsize=64)
def _sobol_chunk(dimension: int, seed: int, replicate: int, chunk: int) -> Array:
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimension, scramble=True, seed=stream(seed, replicate))
    if chunk:
        sequence.fast_forward(chunk * CHUNK)
    points = np.asarray(sequence.random(CHUNK), dtype=np.float64)
    points.setflags(write=False)
    return points


@lru_cache(maxsize=64)
def _random_chunk(dimension: int, seed: int, replicate: int, chunk: int) -> Array:
    points = stream(seed, replicate, chunk).random((CHUNK, dimension))
    points.setflags(write=False)
    return points
