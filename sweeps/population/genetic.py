"""A real-coded genetic algorithm for one objective.

Parents by tournament or by rank, children by a crossover, a share of mutants that is high at first and falls from
generation to generation, immigrants, and the best members kept. The settings of `spec_search` are those of Taheri
(2016), appendix B, completed where it is silent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.population.generation import PopulationSearch, members
from railsweep.sweeps.population.optimiser import Solutions, State
from railsweep.sweeps.population.ranking import order_of
from railsweep.sweeps.population.variation import CROSSOVERS, MUTATIONS, crossover, mutate
from railsweep.sweeps.sensitivity.design import stream

Array = NDArray[np.float64]

SELECTIONS = ("tournament", "rank")
LEAVES = 2  # place of the random numbers that decide who leaves
LEAVING_FEW = 2  # members of which the worst leaves for an overlapping child


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneticSearch(PopulationSearch):
    """Settings; see also `PopulationSearch`.

    Attributes
    ----------
    selection : {"tournament", "rank"}
        Better of `tournament` random members, or member floor(N u^2) of the ranked list.
    crossover : {"sbx", "blx", "mixed"}
    crossover_rate, eta : float
        Share of pairs that cross; narrowness of SBX and of the polynomial mutation.
    mutation : {"replace", "polynomial"}
    mutation_first, mutation_last : float
        Mutation rate of the first and the last generation, linear in between.
    elite : int
        Members that are kept as they are.
    immigrants : float
        Share of every generation that is drawn anew.
    """

    selection: str = "tournament"
    tournament: int = 2
    crossover: str = "sbx"
    crossover_rate: float = 0.9
    eta: float = 5.0
    mutation: str = "replace"
    mutation_first: float = 0.5
    mutation_last: float = 0.05
    elite: int = 2
    immigrants: float = 0.1

    def __post_init__(self) -> None:
        PopulationSearch.__post_init__(self)
        for name, value, allowed in (
            ("selection", self.selection, SELECTIONS),
            ("crossover", self.crossover, CROSSOVERS),
            ("mutation", self.mutation, MUTATIONS),
        ):
            if value not in allowed:
                raise InputError(name, f"is {value!r}", ", ".join(allowed))
        if not 0 <= self.elite < self.population:
            raise InputError("elite", f"is {self.elite}", f"0 to {self.population - 1}")

    @property
    def objectives(self) -> int:
        """One."""
        return 1

    def breed(self, state: State, count: int, progress: float, draw: np.random.Generator) -> Array:
        """Children and immigrants."""
        parents = members(state)
        order = order_of(parents.f, parents.violation)
        place = np.empty(len(order), np.intp)
        place[order] = np.arange(len(order))
        pairs = -(-count // 2)
        if self.selection == "rank":
            ranks = np.floor(len(order) * draw.random((2, pairs)) ** 2).astype(np.intp)
        else:
            drawn = draw.integers(0, len(order), size=(self.tournament, 2, pairs))
            ranks = place[drawn].min(axis=0)
        better, worse = np.minimum(*ranks), np.maximum(*ranks)
        children = crossover(
            self.crossover,
            parents.x[order[better]],
            parents.x[order[worse]],
            draw,
            eta=self.eta,
            rate=self.crossover_rate,
        )[:count]
        rate = self.mutation_first + (self.mutation_last - self.mutation_first) * progress
        children = mutate(self.mutation, children, draw, rate=rate, eta=self.eta)
        foreign = draw.random((count, self.dimension))
        if count == 1:
            new = draw.random(1) < self.immigrants
        else:
            new = np.arange(count) >= count - round(self.immigrants * count)
        return np.where(new[:, None], foreign, children)

    def next_members(self, state: State, x: Array, f: Array, violation: Array) -> Solutions:
        """The elite with the best children; overlapping: a child takes the place of the worst of a few members."""
        old = members(state)
        kept = order_of(old.f, old.violation)
        if self.overlap:
            # ranks beyond the elite, at random: always the worst of all would leave one family within few generations
            drawn = stream(self.seed, LEAVES, int(state["told"])).integers(self.elite, len(kept), size=LEAVING_FEW)
            kept = np.delete(kept, int(drawn.max()))
        else:
            kept = kept[: self.elite]
            young = order_of(f, violation)[: self.population - self.elite]
            x, f, violation = x[young], f[young], violation[young]
        merged = Solutions(
            x=np.concatenate([old.x[kept], x]),
            f=np.concatenate([old.f[kept], f]),
            violation=np.concatenate([old.violation[kept], violation]),
        )
        best = order_of(merged.f, merged.violation)[: self.population]
        return Solutions(x=merged.x[best], f=merged.f[best], violation=merged.violation[best])

    def best(self, state: State) -> Solutions:
        """The best member."""
        now = members(state)
        first = order_of(now.f, now.violation)[:1]
        return Solutions(x=now.x[first], f=now.f[first], violation=now.violation[first])


def spec_search(dimension: int, seed: int, population: int = 50, generations: int = 50) -> GeneticSearch:
    """The settings of Taheri (2016), appendix B."""
    return GeneticSearch(
        dimension=dimension,
        population=population,
        generations=generations,
        seed=seed,
        selection="rank",
        crossover="mixed",
        crossover_rate=1.0,
    )
