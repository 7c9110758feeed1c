"""The contract of a search: a state of plain arrays, candidates as a pure function of it, a new state from the results.

Candidates are points of the unit cube; a `Box` gives them their units. Objectives are minimised. A violation of 0 is
feasible, more is worse, and a case that failed has an infinite one (its objectives are never looked at).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.errors import InputError

Array = NDArray[np.float64]
State = dict[str, NDArray[Any]]


class Optimiser(Protocol):
    """What every search offers. It is immutable; what it learns is in the state.

    Laws (tests/sweeps/population/test_optimiser_laws.py checks them for every search): `ask` changes nothing and gives
    the same candidates for the same state; a state written to a file and read back, at any point of the search, leads
    to the same end bit for bit; candidates lie in the unit cube; the best never gets worse (for one objective);
    failed candidates never enter the best while there is another; another seed goes another way.
    """

    @property
    def dimension(self) -> int:
        """Number of parameters."""

    @property
    def objectives(self) -> int:
        """Number of objectives."""

    @property
    def evaluations(self) -> int:
        """Candidates a whole search makes at most."""

    @property
    def overlap(self) -> int:
        """0: `tell` takes all candidates at once. Else: it takes any beginning of them, and asks for as many again."""

    def start(self) -> State:
        """The state before the first candidate."""

    def ask(self, state: State) -> Array:
        """Candidates (count, dimension); none when the search has ended."""

    def tell(self, state: State, candidates: Array, objectives: Array, violation: Array) -> State:
        """The state after the results (count, objectives) and (count,) of the candidates."""

    def best(self, state: State) -> Solutions:
        """The best so far: one, or a front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solutions:
    """Points of the unit cube with their objectives and violations."""

    x: Array
    f: Array
    violation: Array

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Ranges of the parameters; a logarithmic one is searched in its logarithm."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    logarithmic: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.lower or len(self.lower) != len(self.upper):
            raise InputError("bounds", f"{len(self.lower)} lower, {len(self.upper)} upper", "equally many")
        for i, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise InputError(f"bounds[{i}]", f"from {low:g} to {high:g}", "finite, lower < upper")
            if self.logarithmic and self.logarithmic[i] and low <= 0.0:
                raise InputError(f"bounds[{i}]", f"from {low:g}, logarithmic", "lower > 0")

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self.lower)

    def scaled(self, u: ArrayLike) -> Array:
        """Values of points of the unit cube."""
        low, high, at = np.array(self.lower), np.array(self.upper), np.asarray(u, dtype=np.float64)
        found = low + (high - low) * at
        if any(self.logarithmic):
            with np.errstate(divide="ignore", invalid="ignore"):
                curved = low * (high / low) ** at
            found = np.where(np.array(self.logarithmic), curved, found)
        return np.asarray(np.clip(found, low, high))


def checked_results(candidates: Array, objectives: Array, violation: Array, m: int) -> tuple[Array, Array]:
    """Results in the form all searches rely on: what is not finite is infinitely infeasible."""
    f = np.asarray(objectives, dtype=np.float64).reshape(len(candidates), -1)
    if f.shape[1] != m:
        raise InputError("objectives", f"{f.shape[1]} per candidate", str(m))
    v = np.maximum(np.asarray(violation, dtype=np.float64).reshape(len(candidates)), 0.0)
    failed = ~np.isfinite(f).all(axis=1) | ~np.isfinite(v)
    return np.where(failed[:, None], np.inf, f), np.where(failed, np.inf, v)


def minimise(
    optimiser: Optimiser,
    function: Callable[[Array], Array],
    box: Box | None = None,
    *,
    constraint: Callable[[Array], Array] | None = None,
    state: State | None = None,
) -> State:
    """Run a search on a function of many points (count, dimension) -> (count,) or (count, objectives).

    Parameters
    ----------
    constraint : callable, optional
        Points -> violations, 0 where feasible.
    state : State, optional
        Go on from here.
    """
    state = optimiser.start() if state is None else state
    while len(candidates := optimiser.ask(state)):
        x = candidates if box is None else box.scaled(candidates)
        violation = np.zeros(len(x)) if constraint is None else constraint(x)
        state = optimiser.tell(state, candidates, np.asarray(function(x)).reshape(len(x), -1), violation)
    return state
