"""The design of Saltelli for variance-based indices: two independent points A and B, and A with one group from B.

A row holds the cases A, AB_1 ... AB_g, (BA_1 ... BA_g for second order indices,) B, in the order that SALib uses, so
that values of a design can be given to either program. (Saltelli et al., Computer Physics Communications 181, 2010.)

Total indices rest on pairs (a_i, b_i) of one coordinate of A and one of B. Of a Sobol sequence these are neighbouring
dimensions here: with the first half of the dimensions for A and the second for B some pairs fill their square so badly
that at 1024 points an index of Sobol's G function missed its exact value by 6.7 standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.design import base_points

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaltelliDesign:
    """`rows` base points with their neighbours.

    Attributes
    ----------
    groups : tuple of int
        Group number of every parameter, from 0 without gaps; parameters of a group change together.
    rows : int
        Number of base points.
    seed : int
    second_order : bool
        Also the cases that second order indices need.
    sampling : {"sobol", "monte-carlo"}
    replicates : int
        Independently scrambled sequences (see `base_points`).
    """

    groups: tuple[int, ...]
    rows: int
    seed: int
    second_order: bool = False
    sampling: str = "sobol"
    replicates: int = 1

    def __post_init__(self) -> None:
        if not self.groups or sorted(set(self.groups)) != list(range(max(self.groups) + 1)):
            raise InputError("groups", f"are {self.groups}", "numbers from 0 without gaps")
        if self.rows < 2 or self.replicates < 1:
            raise InputError(
                "samples", f"{self.rows} rows in {self.replicates} replicates", "at least 2 rows, 1 replicate"
            )

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self.groups)

    @property
    def group_count(self) -> int:
        """Number of groups."""
        return max(self.groups) + 1

    @property
    def row_cases(self) -> int:
        """Cases per base point."""
        return (2 if self.second_order else 1) * self.group_count + 2

    def points(self, first: int, last: int) -> Array:
        """Points of the cases `first` to `last` - 1."""
        width, k = self.row_cases, self.dimension
        if last <= first:
            return np.empty((0, k))
        row0, row1 = first // width, -(-last // width)
        base = base_points(self.sampling, 2 * k, self.seed, row0, row1, self.replicates)
        a, b = base[:, 0::2], base[:, 1::2]
        cases = np.empty((row1 - row0, width, k))
        cases[:, : 1 + self.group_count] = a[:, None, :]
        cases[:, 1 + self.group_count :] = b[:, None, :]
        member = np.array(self.groups)
        for g in range(self.group_count):
            columns = np.flatnonzero(member == g)
            cases[:, 1 + g, columns] = b[:, columns]
            if self.second_order:
                cases[:, 1 + self.group_count + g, columns] = a[:, columns]
        offset = row0 * width
        return cases.reshape(-1, k)[first - offset : last - offset]


def ungrouped(parameters: int) -> tuple[int, ...]:
    """Every parameter is its own group."""
    return tuple(range(parameters))
