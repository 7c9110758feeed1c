"""Pattern search: poll around the best point along a basis that turns from step to step, halve the step when none wins.

The poll has both ways along every axis of an orthogonal basis, and one point further along the last successful move;
all of them are computed at a time. Several starts are followed side by side. (Torczon, SIAM J. Optimization 7, 1997.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.population.optimiser import Solutions, State, checked_results
from railsweep.sweeps.population.ranking import order_of
from railsweep.sweeps.sensitivity.design import base_points, stream

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternSearch:
    """Settings.

    Attributes
    ----------
    dimension : int
    iterations : int
        Polls at most.
    seed : int
    starts : int
        Points followed side by side: the known ones first, the others from a Sobol sequence.
    step, smallest : float
        First step and the step at which a start is at its end, as a share of the box.
    growth, cut : float
        Factor of the step after a success and after a failure.
    known : tuple of tuple of float
    """

    dimension: int
    iterations: int
    seed: int
    starts: int = 1
    step: float = 0.25
    smallest: float = 1e-7
    growth: float = 2.0
    cut: float = 0.5
    known: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.iterations < 1 or self.starts < 1:
            raise InputError(
                "pattern",
                f"{self.starts} starts, {self.iterations} polls, {self.dimension} parameters",
                "at least 1 of each",
            )
        if not (0.0 < self.smallest < self.step <= 1.0 and self.growth >= 1.0 and 0.0 < self.cut < 1.0):
            raise InputError(
                "pattern",
                f"step {self.step:g} to {self.smallest:g}, growth {self.growth:g}, cut {self.cut:g}",
                "0 < smallest < step <= 1, growth >= 1, 0 < cut < 1",
            )

    @property
    def objectives(self) -> int:
        """One."""
        return 1

    @property
    def overlap(self) -> int:
        """A poll is told as a whole."""
        return 0

    @property
    def poll(self) -> int:
        """Candidates around one point."""
        return 2 * self.dimension + 1

    @property
    def evaluations(self) -> int:
        """Candidates of a whole search at most."""
        return self.starts * (1 + self.iterations * self.poll)

    def start(self) -> State:
        """The starts, not evaluated."""
        others = base_points("sobol", self.dimension, self.seed, 0, self.starts)
        x = np.array([*self.known[: self.starts], *others[len(self.known) :]]).reshape(self.starts, self.dimension)
        worst = np.full(self.starts, np.inf)
        return {
            "x": x,
            "f": worst,
            "violation": worst,
            "step": np.full(self.starts, self.step),
            "move": np.zeros_like(x),
            "iteration": np.array(-1),
        }

    def _active(self, state: State) -> NDArray[np.intp]:
        return np.flatnonzero(np.asarray(state["step"]) > self.smallest)

    def ask(self, state: State) -> Array:
        """The polls of all starts that have not come to their end."""
        iteration, x = int(state["iteration"]), np.asarray(state["x"], dtype=np.float64)
        if iteration < 0:
            return x
        active = self._active(state)
        if iteration >= self.iterations or not len(active):
            return np.empty((0, self.dimension))
        found = np.empty((len(active), self.poll, self.dimension))
        for i, s in enumerate(active):
            basis = turned_basis(self.dimension, stream(self.seed, 1, int(s), iteration)) * state["step"][s]
            found[i, 0] = x[s] + state["move"][s]
            found[i, 1 : 1 + self.dimension] = x[s] + basis
            found[i, 1 + self.dimension :] = x[s] - basis
        return np.clip(found.reshape(-1, self.dimension), 0.0, 1.0)

    def tell(self, state: State, candidates: Array, objectives: Array, violation: Array) -> State:
        """Move every start to the best point of its poll, or shorten its step."""
        f, v = checked_results(candidates, objectives, violation, 1)
        iteration = int(state["iteration"])
        if iteration < 0:
            return {**state, "f": f[:, 0], "violation": v, "iteration": np.array(0)}
        new = {name: np.array(state[name], dtype=np.float64) for name in ("x", "f", "violation", "step", "move")}
        for i, s in enumerate(self._active(state)):
            rows = slice(i * self.poll, (i + 1) * self.poll)
            first = int(order_of(f[rows], v[rows])[0])
            value, broken = f[rows][first, 0], v[rows][first]
            if (broken, value) < (new["violation"][s], new["f"][s]):
                point = candidates[rows][first]
                new["move"][s] = point - new["x"][s]
                new["x"][s], new["f"][s], new["violation"][s] = point, value, broken
                new["step"][s] = min(self.step, new["step"][s] * (1.0 if first == 0 else self.growth))
            else:
                new["step"][s] *= self.cut
                new["move"][s] = 0.0
        return {**new, "iteration": np.array(iteration + 1)}

    def best(self, state: State) -> Solutions:
        """The best of all starts."""
        f, v = np.asarray(state["f"], dtype=np.float64)[:, None], np.asarray(state["violation"], dtype=np.float64)
        first = order_of(f, v)[:1]
        return Solutions(x=np.asarray(state["x"], dtype=np.float64)[first], f=f[first], violation=v[first])


def turned_basis(dimension: int, draw: np.random.Generator) -> Array:
    """A random orthogonal basis: the reflection at a random plane, exact in one dimension too."""
    normal = draw.standard_normal(dimension)
    normal /= np.linalg.norm(normal)
    return np.asarray(np.eye(dimension) - 2.0 * np.outer(normal, normal))
