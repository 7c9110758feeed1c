"""Simulated annealing: chains that step in random directions and take a worse point with the probability exp(-df / T).

The temperature falls by a factor per step. Step lengths: `random`, u^2 times half the box, or `golden`, a search by
golden section along the direction. (Taheri 2016, appendix B.4, Eqs. B.2 and B.8, completed where it is
silent: cooling, random step.) Chains are independent, so that several candidates are computed at a time; one chain is
the published method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.population.optimiser import Solutions, State, checked_results
from railsweep.sweeps.population.ranking import order_of
from railsweep.sweeps.sensitivity.design import stream

Array = NDArray[np.float64]

STEPS = ("random", "golden")
HALF_WIDTH = 0.5  # of the unit cube
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
LIKELY = 0.7  # B.8: the probability at first to take a point that is worse by half of the first value


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealingSearch:
    """Settings.

    Attributes
    ----------
    dimension : int
    iterations : int
        Steps of every chain.
    seed : int
    chains : int
    temperature : float
        At first, in units of the objective; 0: by Eq. B.8 from the first value of every chain.
    cooling : float
        Factor per step.
    step : {"random", "golden"}
    reductions : int
        Of the interval of a golden-section search.
    known : tuple of tuple of float
        Where the first chains start.
    """

    dimension: int
    iterations: int
    seed: int
    chains: int = 1
    temperature: float = 0.0
    cooling: float = 0.9985
    step: str = "random"
    reductions: int = 12
    known: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.iterations < 1 or self.chains < 1:
            raise InputError(
                "annealing",
                f"{self.chains} chains of {self.iterations} steps in {self.dimension} parameters",
                "at least 1 of each",
            )
        if self.step not in STEPS:
            raise InputError("step", f"is {self.step!r}", ", ".join(STEPS))
        if not 0.0 < self.cooling < 1.0 or self.temperature < 0.0 or self.reductions < 1:
            raise InputError(
                "annealing",
                f"cooling {self.cooling:g}, temperature {self.temperature:g}, {self.reductions} reductions",
                "cooling in (0, 1), temperature >= 0, at least 1 reduction",
            )

    @property
    def objectives(self) -> int:
        """One."""
        return 1

    @property
    def overlap(self) -> int:
        """Chains step together."""
        return 0

    @property
    def trials(self) -> int:
        """Candidates of a step."""
        return 1 if self.step == "random" else self.reductions + 1

    @property
    def evaluations(self) -> int:
        """Candidates of a whole search."""
        return self.chains * (1 + self.iterations * self.trials)

    def start(self) -> State:
        """Chains at their first points, not evaluated."""
        x = np.array([self._begin(c) for c in range(self.chains)])
        worst = np.full(self.chains, np.inf)
        state: State = {"x": x, "f": worst, "violation": worst, "best_x": x, "best_f": worst, "best_violation": worst}
        state |= {"first": np.ones(self.chains), "iteration": np.array(-1), "trial": np.array(0)}
        # golden section: interval [low, high], the inner points and their values
        state |= {"low": np.zeros(self.chains), "high": np.full(self.chains, HALF_WIDTH)}
        state |= {name: np.full(self.chains, np.inf) for name in ("left_f", "left_v", "right_f", "right_v")}
        return state

    def _begin(self, chain: int) -> Array:
        if chain < len(self.known):
            return np.array(self.known[chain])
        return stream(self.seed, 0, chain).random(self.dimension)

    def ask(self, state: State) -> Array:
        """One candidate per chain."""
        iteration = int(state["iteration"])
        if iteration < 0:
            return np.asarray(state["x"], dtype=np.float64)
        if iteration >= self.iterations:
            return np.empty((0, self.dimension))
        if self.step == "random":
            return self._along(state, self._draw(iteration)[1])
        return self._along(state, self._golden_length(state))

    def _draw(self, iteration: int) -> tuple[Array, Array, Array]:
        """Directions on the unit sphere, random step lengths and acceptance numbers of an iteration."""
        draw = stream(self.seed, 1, iteration)
        direction = draw.standard_normal((self.chains, self.dimension))
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        return direction, HALF_WIDTH * draw.random(self.chains) ** 2, draw.random(self.chains)

    def _along(self, state: State, length: Array) -> Array:
        direction = self._draw(int(state["iteration"]))[0]
        return np.asarray(np.clip(state["x"] + length[:, None] * direction, 0.0, 1.0))

    def _golden_length(self, state: State) -> Array:
        low, high = state["low"], state["high"]
        left, right = np.asarray(high - GOLDEN * (high - low)), np.asarray(low + GOLDEN * (high - low))
        trial = int(state["trial"])
        if trial == 0:
            return left
        if trial == 1:
            return right
        return np.where(np.isinf(state["left_f"]) & np.isinf(state["left_v"]), left, right)

    def tell(self, state: State, candidates: Array, objectives: Array, violation: Array) -> State:
        """Step or stay."""
        f, v = checked_results(candidates, objectives, violation, 1)
        value = f[:, 0]
        iteration = int(state["iteration"])
        better = _better(value, v, state["best_f"], state["best_violation"])
        state = {
            **state,
            "best_x": np.where(better[:, None], candidates, state["best_x"]),
            "best_f": np.where(better, value, state["best_f"]),
            "best_violation": np.where(better, v, state["best_violation"]),
        }
        if iteration < 0:
            first = np.where(np.isfinite(value) & (value != 0.0), np.abs(value), 1.0)
            return {**state, "f": value, "violation": v, "first": first, "iteration": np.array(0)}
        if self.step == "golden":
            return self._golden(state, candidates, value, v)
        return self._stepped(state, candidates, value, v)

    def _stepped(self, state: State, x: Array, value: Array, violation: Array) -> State:
        iteration = int(state["iteration"])
        start = self.temperature or -0.5 * np.asarray(state["first"]) / math.log(LIKELY)
        old_f, old_v = np.asarray(state["f"]), np.asarray(state["violation"])
        comparable = np.isfinite(value) & np.isfinite(old_f)
        worse = np.where(comparable, value - np.where(comparable, old_f, 0.0), 0.0)
        likely = np.exp(np.minimum(0.0, -worse / (start * self.cooling**iteration)))
        # what is less feasible is never taken, what is more feasible always
        take = (violation < old_v) | ((violation == old_v) & comparable & (self._draw(iteration)[2] <= likely))
        return {
            **state,
            "x": np.where(take[:, None], x, state["x"]),
            "f": np.where(take, value, old_f),
            "violation": np.where(take, violation, old_v),
            "iteration": np.array(iteration + 1),
            "trial": np.array(0),
            "low": np.zeros(self.chains),
            "high": np.full(self.chains, HALF_WIDTH),
            **{name: np.full(self.chains, np.inf) for name in ("left_f", "left_v", "right_f", "right_v")},
        }

    def _golden(self, state: State, x: Array, value: Array, violation: Array) -> State:
        """Keep the better side of the interval; after the last trial the better inner point is the candidate."""
        trial = int(state["trial"])
        names = ("left_f", "left_v", "right_f", "right_v")
        left_f, left_v, right_f, right_v = (np.asarray(state[n], dtype=np.float64) for n in names)
        on_left = (np.isinf(left_f) & np.isinf(left_v)) if trial >= 2 else np.full(self.chains, trial == 0)
        # a failed trial must count as evaluated
        value = np.where(np.isfinite(value), value, np.finfo(np.float64).max)
        left_f, left_v = np.where(on_left, value, left_f), np.where(on_left, violation, left_v)
        right_f, right_v = np.where(on_left, right_f, value), np.where(on_left, right_v, violation)
        state = {**state, "trial": np.array(trial + 1)}
        if trial == 0:
            return {**state, "left_f": left_f, "left_v": left_v}
        low, high = np.asarray(state["low"]), np.asarray(state["high"])
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        keep_left = _better(left_f, left_v, right_f, right_v)
        if trial == self.reductions:
            point = self._along(state, np.where(keep_left, left, right))
            f, v = np.where(keep_left, left_f, right_f), np.where(keep_left, left_v, right_v)
            return self._stepped(state, point, np.where(f < np.finfo(np.float64).max, f, np.inf), v)
        empty = np.full(self.chains, np.inf)
        return {
            **state,
            "low": np.where(keep_left, low, left),
            "high": np.where(keep_left, right, high),
            # the better inner point becomes the other one of the shorter interval
            "right_f": np.where(keep_left, left_f, empty),
            "right_v": np.where(keep_left, left_v, empty),
            "left_f": np.where(keep_left, empty, right_f),
            "left_v": np.where(keep_left, empty, right_v),
        }

    def best(self, state: State) -> Solutions:
        """The best point of all chains."""
        f, v = np.asarray(state["best_f"])[:, None], np.asarray(state["best_violation"])
        first = order_of(f, v)[:1]
        return Solutions(x=np.asarray(state["best_x"])[first], f=f[first], violation=v[first])


def _better(f: Array, v: Array, other_f: NDArray[Any], other_v: NDArray[Any]) -> NDArray[np.bool_]:
    """Is the first better than the second?"""
    return np.asarray((v < other_v) | ((v == other_v) & (f < other_f)))
