"""What populations share: the first members, generations one after the other, or overlapping ones.

Overlapping: candidate n is bred when the results of the first n - overlap candidates are known, and results are taken
in the order of the candidates. So `overlap` candidates are under way at any time, nobody waits for the slowest of a
generation, and still the outcome does not depend on who was faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.population.optimiser import Solutions, State, checked_results
from railsweep.sweeps.sensitivity.design import stream

Array = NDArray[np.float64]

FIRST, BRED = 0, 1  # places of the random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationSearch(ABC):
    """A population of constant size.

    Attributes
    ----------
    dimension : int
    population, generations : int
        Members, and how often they are bred after the first ones.
    seed : int
    overlap : int
        0: generation by generation; else the number of candidates under way, at most half the population.
    known : tuple of tuple of float
        Points that are members of the first generation (the present design of a vehicle, say).
    """

    dimension: int
    population: int
    generations: int
    seed: int
    overlap: int = 0
    known: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.population < 4 or self.generations < 0:
            raise InputError(
                "population",
                f"{self.population} members of {self.dimension} parameters, {self.generations} generations",
                "at least 4 members, 1 parameter, 0 generations",
            )
        if not 0 <= self.overlap <= self.population // 2:
            raise InputError("overlap", f"is {self.overlap}", f"0 to {self.population // 2}, half the population")
        if len(self.known) > self.population or any(
            len(p) != self.dimension or not all(0.0 <= c <= 1.0 for c in p) for p in self.known
        ):
            raise InputError(
                "known", f"{len(self.known)} points", f"at most {self.population}, in the box, {self.dimension} numbers"
            )

    @property
    @abstractmethod
    def objectives(self) -> int:
        """Number of objectives."""

    @abstractmethod
    def breed(self, state: State, count: int, progress: float, draw: np.random.Generator) -> Array:
        """Children of the members; `progress` goes from 0 to 1 over the search."""

    @abstractmethod
    def next_members(self, state: State, x: Array, f: Array, violation: Array) -> Solutions:
        """Members after children with their results have come."""

    @property
    def evaluations(self) -> int:
        """Candidates a whole search makes."""
        return self.population * (self.generations + 1)

    def start(self) -> State:
        """No members yet."""
        m = self.objectives
        state: State = {
            "x": np.empty((0, self.dimension)),
            "f": np.empty((0, m)),
            "violation": np.empty(0),
            "told": np.array(0),
        }
        if self.overlap:
            state["pending"] = np.array([self._candidate(state, n) for n in range(self.overlap)])
        return state

    def ask(self, state: State) -> Array:
        """The next generation, or the candidates under way."""
        told = int(state["told"])
        if told >= self.evaluations:
            return np.empty((0, self.dimension))
        if self.overlap:
            return np.asarray(state["pending"], dtype=np.float64)
        if told < self.population:
            return self._first()
        generation = told // self.population
        progress = (generation - 1) / max(1, self.generations - 1)
        return self.breed(state, self.population, progress, stream(self.seed, BRED, generation))

    def tell(self, state: State, candidates: Array, objectives: Array, violation: Array) -> State:
        """New members."""
        f, v = checked_results(candidates, objectives, violation, self.objectives)
        if not self.overlap:
            if len(candidates) != self.population:
                raise InputError("results", f"of {len(candidates)} candidates", f"all {self.population}")
            return self._merged(state, candidates, f, v)
        if len(candidates) > len(state["pending"]):
            raise InputError("results", f"of {len(candidates)} candidates", f"at most {len(state['pending'])}")
        for i in range(len(candidates)):
            state = self._merged(state, candidates[i : i + 1], f[i : i + 1], v[i : i + 1])
            number = int(state["told"]) + self.overlap - 1
            pending = state["pending"][1:]
            if number < self.evaluations:
                pending = np.concatenate([pending, self._candidate(state, number)[None, :]])
            state = {**state, "pending": pending}
        return state

    def _merged(self, state: State, x: Array, f: Array, violation: Array) -> State:
        told = int(state["told"]) + len(x)
        if told <= self.population:
            kept = Solutions(
                x=np.concatenate([state["x"], x]),
                f=np.concatenate([state["f"], f]),
                violation=np.concatenate([state["violation"], violation]),
            )
        else:
            kept = self.next_members(state, x, f, violation)
        return {**state, "x": kept.x, "f": kept.f, "violation": kept.violation, "told": np.array(told)}

    def _first(self) -> Array:
        return np.array([self._first_member(n) for n in range(self.population)])

    def _first_member(self, n: int) -> Array:
        if n < len(self.known):
            return np.array(self.known[n])
        return np.asarray(stream(self.seed, FIRST, n).random(self.dimension), dtype=np.float64)

    def _candidate(self, state: State, n: int) -> Array:
        if n < self.population:
            return self._first_member(n)
        progress = (n - self.population) / max(1, self.evaluations - self.population - 1)
        return np.asarray(self.breed(state, 1, progress, stream(self.seed, BRED, n))[0])


def members(state: State) -> Solutions:
    """The population of a state."""
    return Solutions(
        x=np.asarray(state["x"], dtype=np.float64),
        f=np.asarray(state["f"], dtype=np.float64),
        violation=np.asarray(state["violation"], dtype=np.float64),
    )
