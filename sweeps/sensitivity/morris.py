"""Morris' elementary effects: trajectories through a grid of the unit cube that change one group at a time.

The effect of a step is the change of the quantity over the length of the step, in units of the parameter's whole
range. Their mean mu, the mean of their sizes mu* and their scatter sigma rank the parameters: a large sigma against mu*
tells of interaction or curvature. (Morris, Technometrics 33, 1991; Campolongo, Cariboni and Saltelli, 2007.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.design import stream

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MorrisDesign:
    """`rows` trajectories of one step per group.

    Attributes
    ----------
    groups : tuple of int
        Group number of every parameter, from 0 without gaps.
    rows : int
        Number of trajectories.
    seed : int
    levels : int
        Grid points per parameter, even; a step is levels / (2 (levels - 1)) of the range.
    """

    groups: tuple[int, ...]
    rows: int
    seed: int
    levels: int = 4

    def __post_init__(self) -> None:
        if not self.groups or sorted(set(self.groups)) != list(range(max(self.groups) + 1)):
            raise InputError("groups", f"are {self.groups}", "numbers from 0 without gaps")
        if self.levels < 2 or self.levels % 2:
            raise InputError("levels", f"is {self.levels}", "an even number, at least 2")
        if self.rows < 2:
            raise InputError("trajectories", f"is {self.rows}", "at least 2")

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
        """Points of a trajectory."""
        return self.group_count + 1

    @property
    def step(self) -> float:
        """Length of a step in the unit cube."""
        return self.levels / (2.0 * (self.levels - 1.0))

    def trajectory(self, row: int) -> tuple[Array, NDArray[np.intp], Array]:
        """Points (group_count + 1, dimension), order in which the groups move, and sign of every parameter's move."""
        draw = stream(self.seed, row)
        k = self.dimension
        low = draw.integers(0, self.levels // 2, size=k) / (self.levels - 1.0)
        up = draw.integers(0, 2, size=k).astype(bool)
        order = draw.permutation(self.group_count)
        begin, end = np.where(up, low, low + self.step), np.where(up, low + self.step, low)
        member = np.array(self.groups)
        points = np.empty((self.row_cases, k))
        points[0] = begin
        for i, group in enumerate(order):
            points[i + 1] = np.where(member == group, end, points[i])
        # low + step may exceed 1 by a rounding error
        return np.minimum(points, 1.0), order, np.where(up, 1.0, -1.0)

    def points(self, first: int, last: int) -> Array:
        """Points of the cases `first` to `last` - 1."""
        if last <= first:
            return np.empty((0, self.dimension))
        row0, row1 = first // self.row_cases, -(-last // self.row_cases)
        found = np.concatenate([self.trajectory(row)[0] for row in range(row0, row1)])
        return found[first - row0 * self.row_cases : last - row0 * self.row_cases]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementaryEffects:
    """Figures per group; those named `_error` are standard errors.

    Attributes
    ----------
    mu, mu_star, sigma : Array
        Mean, mean size and standard deviation of the effects. For groups of several parameters only mu_star has a
        meaning; the others are nan.
    mu_star_error : Array
        Standard error of mu_star over the trajectories.
    mu_star_dispersion, sigma_dispersion : Array
        Standard deviation of mu_star and sigma over the repetitions of the whole screening (nan for one repetition).
    trajectories : int
        How many were used.
    effects : Array
        (trajectories, groups).
    """

    mu: Array
    mu_star: Array
    sigma: Array
    mu_star_error: Array
    mu_star_dispersion: Array
    sigma_dispersion: Array
    trajectories: int
    effects: Array


def elementary_effects(
    design: MorrisDesign, values: Array, rows: NDArray[np.intp] | None = None, repetitions: int = 1
) -> ElementaryEffects:
    """Figures of a screening.

    Parameters
    ----------
    design : MorrisDesign
    values : Array
        The quantity, shape (number of rows, design.row_cases).
    rows : array of int, optional
        Which trajectories they are; default: the first ones.
    repetitions : int
        The trajectories are as many independent screenings, cut in equal parts; their scatter is reported.
    """
    count = len(values)
    numbers = np.arange(count) if rows is None else np.asarray(rows)
    single = np.bincount(design.groups) == 1
    effects = np.empty((count, design.group_count))
    for i, row in enumerate(numbers):
        _, order, sign = design.trajectory(int(row))
        change = np.diff(values[i]) / design.step
        direction = np.array([sign[design.groups.index(g)] if single[g] else 1.0 for g in order])
        effects[i, order] = change * direction
    size = np.abs(effects)
    share = np.array_split(np.arange(count), repetitions)
    scatter = np.full((2, design.group_count), np.nan)
    if repetitions > 1 and min(map(len, share)) > 1:
        scatter[0] = np.std([size[s].mean(axis=0) for s in share], axis=0, ddof=1)
        scatter[1] = np.std([effects[s].std(axis=0, ddof=1) for s in share], axis=0, ddof=1)
    spread = effects.std(axis=0, ddof=1) if count > 1 else np.full(design.group_count, np.nan)
    error = size.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(design.group_count, np.nan)
    return ElementaryEffects(
        mu=np.where(single, effects.mean(axis=0), np.nan),
        mu_star=size.mean(axis=0),
        sigma=np.where(single, spread, np.nan),
        mu_star_error=error,
        mu_star_dispersion=scatter[0],
        sigma_dispersion=np.where(single, scatter[1], np.nan),
        trajectories=count,
        effects=effects,
    )
