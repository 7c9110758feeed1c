"""A global search with a local end: a genetic algorithm until it stalls, then a pattern search from its best member.

Switching rule: the local search takes over when the best of the global one has not improved by more than `tolerance`
times the spread of the objective in the population for `patience` generations, or when its generations are over.
The first step of the local search is the spread of the better half of the population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.population.genetic import GeneticSearch
from railsweep.sweeps.population.optimiser import Solutions, State
from railsweep.sweeps.population.pattern import PatternSearch
from railsweep.sweeps.population.ranking import order_of

Array = NDArray[np.float64]

LEAST_STEP = 1e-3  # of the box, for the first step of the local search


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridSearch:
    """Settings.

    Attributes
    ----------
    global_search : GeneticSearch
        Without overlap.
    local_iterations : int
        Polls of the local search at most.
    patience : int
        Generations without improvement.
    tolerance : float
        What counts as improvement, as a share of the spread of the objective.
    smallest : float
        Step at which the local search ends.
    """

    global_search: GeneticSearch
    local_iterations: int = 400
    patience: int = 10
    tolerance: float = 1e-3
    smallest: float = 1e-7

    def __post_init__(self) -> None:
        if self.global_search.overlap:
            raise InputError("overlap", f"is {self.global_search.overlap}", "0 in a hybrid search")
        if self.patience < 1 or self.tolerance < 0.0:
            raise InputError(
                "hybrid", f"patience {self.patience}, tolerance {self.tolerance:g}", "patience >= 1, tolerance >= 0"
            )

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self.global_search.dimension

    @property
    def objectives(self) -> int:
        """One."""
        return 1

    @property
    def overlap(self) -> int:
        """None."""
        return 0

    @property
    def evaluations(self) -> int:
        """Candidates of a whole search at most."""
        return self.global_search.evaluations + 1 + self.local_iterations * (2 * self.dimension + 1)

    def start(self) -> State:
        """The global search."""
        state = _prefixed("global_", self.global_search.start())
        return {**state, "local": np.array(0), "stalled": np.array(0), "record": np.array(np.inf)}

    def _local(self, state: State) -> PatternSearch:
        step = float(state["first_step"])
        return PatternSearch(
            dimension=self.dimension,
            iterations=self.local_iterations,
            seed=self.global_search.seed,
            step=step,
            smallest=min(self.smallest, 0.5 * step),
            known=(tuple(float(c) for c in state["begin"]),),
        )

    def ask(self, state: State) -> Array:
        """Candidates of the search that is at work."""
        if int(state["local"]):
            return self._local(state).ask(_part("local_", state))
        return self.global_search.ask(_part("global_", state))

    def tell(self, state: State, candidates: Array, objectives: Array, violation: Array) -> State:
        """Results for the search that is at work; perhaps the other one takes over."""
        if int(state["local"]):
            inner = self._local(state).tell(_part("local_", state), candidates, objectives, violation)
            return {**state, **_prefixed("local_", inner)}
        inner = self.global_search.tell(_part("global_", state), candidates, objectives, violation)
        best = self.global_search.best(inner)
        f = np.asarray(inner["f"], dtype=np.float64)[:, 0]
        known = f[np.isfinite(f)]
        spread = float(known.max() - known.min()) if known.size else 0.0
        record, value = float(state["record"]), float(best.f[0, 0]) if best.violation[0] == 0.0 else np.inf
        improved = value < record - self.tolerance * spread or not np.isfinite(record)
        stalled = 0 if improved else int(state["stalled"]) + 1
        state = {
            **state,
            **_prefixed("global_", inner),
            "stalled": np.array(stalled),
            "record": np.array(value if improved else record),
        }
        if stalled >= self.patience or not len(self.global_search.ask(inner)):
            state = self._hand_over(state, inner, best)
        return state

    def _hand_over(self, state: State, inner: State, best: Solutions) -> State:
        order = order_of(np.asarray(inner["f"], dtype=np.float64), np.asarray(inner["violation"], dtype=np.float64))
        better = np.asarray(inner["x"], dtype=np.float64)[order[: max(2, len(order) // 2)]]
        step = float(np.clip(better.std(axis=0).mean(), LEAST_STEP, 0.25))
        state = {**state, "local": np.array(1), "first_step": np.array(step), "begin": best.x[0].copy()}
        return {**state, **_prefixed("local_", self._local(state).start())}

    def best(self, state: State) -> Solutions:
        """The best of both searches."""
        found = self.global_search.best(_part("global_", state))
        if not int(state["local"]):
            return found
        other = self._local(state).best(_part("local_", state))
        f, v = np.concatenate([found.f, other.f]), np.concatenate([found.violation, other.violation])
        first = order_of(f, v)[:1]
        return Solutions(x=np.concatenate([found.x, other.x])[first], f=f[first], violation=v[first])


def _prefixed(prefix: str, state: State) -> State:
    return {prefix + name: value for name, value in state.items()}


def _part(prefix: str, state: State) -> State:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
