"""NSGA-II: a front of solutions none of which is better than another in every objective.

(Deb, Pratap, Agarwal and Meyarivan, IEEE Transactions on Evolutionary Computation 6, 2002; constraints by their rule.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.population.generation import PopulationSearch, members
from railsweep.sweeps.population.optimiser import Solutions, State
from railsweep.sweeps.population.ranking import fronts, ranked, survivors
from railsweep.sweeps.population.variation import CROSSOVERS, crossover, mutate

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSearch(PopulationSearch):
    """Settings; see also `PopulationSearch`.

    Attributes
    ----------
    objective_count : int
    crossover : {"sbx", "blx", "mixed"}
    crossover_rate, eta_crossover, eta_mutation : float
    mutation_rate : float
        Per element of a child; 0: one of its elements on average.
    """

    objective_count: int = 2
    crossover: str = "sbx"
    crossover_rate: float = 0.9
    eta_crossover: float = 15.0
    eta_mutation: float = 20.0
    mutation_rate: float = 0.0

    def __post_init__(self) -> None:
        PopulationSearch.__post_init__(self)
        if self.objective_count < 1:
            raise InputError("objectives", f"is {self.objective_count}", "at least 1")
        if self.crossover not in CROSSOVERS:
            raise InputError("crossover", f"is {self.crossover!r}", ", ".join(CROSSOVERS))

    @property
    def objectives(self) -> int:
        """Number of objectives."""
        return self.objective_count

    def breed(self, state: State, count: int, progress: float, draw: np.random.Generator) -> Array:
        """Children of parents that won a tournament of two by front, then by crowding."""
        parents = members(state)
        rank, distance = ranked(parents.f, parents.violation)
        pairs = count  # twice as many children as are needed: copies of members teach nothing
        one, two = draw.integers(0, len(rank), size=(2, 2, pairs))
        toss = draw.random((2, pairs)) < 0.5
        nearer = np.where(distance[one] == distance[two], toss, distance[one] > distance[two])
        winner = np.where(np.where(rank[one] == rank[two], nearer, rank[one] < rank[two]), one, two)
        children = crossover(
            self.crossover,
            parents.x[winner[0]],
            parents.x[winner[1]],
            draw,
            eta=self.eta_crossover,
            rate=self.crossover_rate,
        )
        rate = self.mutation_rate or 1.0 / self.dimension
        children = mutate("polynomial", children, draw, rate=rate, eta=self.eta_mutation)
        _, first = np.unique(np.concatenate([parents.x, children]), axis=0, return_index=True)
        new = np.zeros(len(children), bool)
        new[first[first >= len(parents.x)] - len(parents.x)] = True
        return children[np.argsort(~new, kind="stable")[:count]]

    def next_members(self, state: State, x: Array, f: Array, violation: Array) -> Solutions:
        """The best of parents and children; a copy of a member is as good as dead."""
        old = members(state)
        x, f = np.concatenate([old.x, x]), np.concatenate([old.f, f])
        violation = np.concatenate([old.violation, violation])
        _, original = np.unique(x, axis=0, return_index=True)
        if len(original) >= self.population:
            single = np.sort(original)
            x, f, violation = x[single], f[single], violation[single]
        kept = survivors(f, violation, min(self.population, len(x)))
        return Solutions(x=x[kept], f=f[kept], violation=violation[kept])

    def best(self, state: State) -> Solutions:
        """The members that nothing dominates, by the first objective."""
        now = members(state)
        if not len(now):
            return now
        front = np.flatnonzero(fronts(now.f, now.violation) == 0)
        front = front[np.lexsort((*now.f[front].T[::-1],))]
        return Solutions(x=now.x[front], f=now.f[front], violation=now.violation[front])
