"""Searches on published problems: single objectives, fronts, and pymoo at equal evaluations."""

from typing import Any

import numpy as np
import pytest
from sample_problem import PROBLEMS, zdt1

from railsweep.sweeps.population.annealing import AnnealingSearch
from railsweep.sweeps.population.genetic import GeneticSearch, spec_search
from railsweep.sweeps.population.hybrid import HybridSearch
from railsweep.sweeps.population.nsga2 import FrontSearch
from railsweep.sweeps.population.optimiser import Box, minimise
from railsweep.sweeps.population.pattern import PatternSearch
from railsweep.sweeps.population.ranking import crowding, fronts, hypervolume

# name -> (search of a seed, how near to the minimum it must come)
SOLVERS: dict[str, tuple[Any, float]] = {
    "genetic": (
        lambda seed: GeneticSearch(dimension=2, population=60, generations=120, seed=seed, crossover="blx"),
        0.02,
    ),
    "genetic as published": (lambda seed: spec_search(2, seed), 0.05),
    "annealing": (
        lambda seed: AnnealingSearch(dimension=2, iterations=1500, seed=seed, chains=16, cooling=0.993),
        0.02,
    ),
    "pattern": (lambda seed: PatternSearch(dimension=2, iterations=300, seed=seed, starts=16), 1e-6),
    "hybrid": (
        lambda seed: HybridSearch(
            global_search=GeneticSearch(dimension=2, population=80, generations=80, seed=seed, crossover="blx"),
            patience=20,
        ),
        1e-4,
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_search_solves_the_three_problems(solver: str, problem: str) -> None:
    function, box, minimum = PROBLEMS[problem]
    make, near = SOLVERS[solver]
    for seed in range(3):
        search = make(seed)
        best = search.best(minimise(search, function, box))
        assert minimum - 1e-5 < best.f[0, 0] < minimum + near


def test_nsga2_on_zdt1() -> None:
    for seed in range(2):
        search = FrontSearch(dimension=30, population=100, generations=199, seed=seed)
        assert search.evaluations == 100 * 200
        best = search.best(minimise(search, zdt1))
        assert hypervolume(best.f, np.array([1.1, 1.1])) > 0.87


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "generations", "reference"),
    [("zdt1", 200, [1.1, 1.1]), ("zdt3", 100, [1.1, 1.1]), ("bnh", 40, [150.0, 60.0])],
)
def test_nsga2_is_not_worse_than_pymoo_at_equal_evaluations(
    name: str, generations: int, reference: list[float]
) -> None:
    pytest.importorskip("pymoo")
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize
    from pymoo.problems import get_problem

    problem = get_problem(name)
    box = Box(lower=tuple(map(float, problem.xl)), upper=tuple(map(float, problem.xu)))

    def constraint(x: Any) -> Any:
        if not problem.n_ieq_constr:
            return np.zeros(len(x))
        return np.maximum(problem.evaluate(x, return_values_of=["G"]), 0.0).sum(axis=1)

    ours, theirs = [], []
    for seed in range(3):
        result = minimize(problem, NSGA2(pop_size=100), ("n_gen", generations), seed=seed)
        theirs.append(hypervolume(result.F, np.array(reference)))
        search = FrontSearch(dimension=problem.n_var, population=100, generations=generations - 1, seed=seed)
        state = minimise(search, lambda x: problem.evaluate(x, return_values_of=["F"]), box, constraint=constraint)
        best = search.best(state)
        assert (best.violation == 0.0).all()
        ours.append(hypervolume(best.f, np.array(reference)))
    assert np.mean(ours) >= np.mean(theirs)


def test_fronts_follow_the_definition() -> None:
    draw = np.random.default_rng(1)
    f, v = draw.integers(0, 6, size=(60, 2)).astype(float), np.maximum(0.0, draw.normal(size=60))
    rank = fronts(f, v)

    def dominates(i: int, j: int) -> bool:
        if v[i] > 0.0 or v[j] > 0.0:
            return bool(v[i] < v[j])
        return bool((f[i] <= f[j]).all() and (f[i] < f[j]).any())

    for j in range(60):
        above = [rank[i] for i in range(60) if dominates(i, j)]
        assert rank[j] == (max(above) + 1 if above else 0)


def test_hypervolume_by_counting() -> None:
    draw = np.random.default_rng(2)
    for m in (2, 3):
        f = draw.random((8, m))
        points = draw.random((200_000, m)) * 1.1
        share = (points[:, None, :] >= f[None]).all(axis=2).any(axis=1).mean()
        volume = 1.1**m
        error = volume * np.sqrt(share * (1.0 - share) / len(points))
        assert abs(hypervolume(f, np.full(m, 1.1)) - share * volume) < 4.0 * error


def test_crowding_of_evenly_spaced_points_is_even() -> None:
    f = np.stack([np.arange(5.0), 4.0 - np.arange(5.0)], axis=1)
    assert crowding(f).tolist() == [np.inf, 1.0, 1.0, 1.0, np.inf]
