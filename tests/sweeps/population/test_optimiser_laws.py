"""Laws of all searches; above all: killed at any point and taken up from its file, a search ends as if nothing was."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_problem import PROBLEMS, peaks

from railsweep.engine.errors import InputError
from railsweep.sweeps.population import checkpoint
from railsweep.sweeps.population.annealing import AnnealingSearch
from railsweep.sweeps.population.genetic import GeneticSearch, spec_search
from railsweep.sweeps.population.hybrid import HybridSearch
from railsweep.sweeps.population.nsga2 import FrontSearch
from railsweep.sweeps.population.optimiser import Box
from railsweep.sweeps.population.pattern import PatternSearch

BOX = PROBLEMS["peaks"][1]

SEARCHES: dict[str, Any] = {
    "genetic": GeneticSearch(dimension=2, population=10, generations=6, seed=3),
    "genetic blx polynomial": GeneticSearch(
        dimension=2, population=9, generations=5, seed=3, crossover="blx", mutation="polynomial"
    ),
    "genetic as published": spec_search(2, 3, population=10, generations=6),
    "genetic overlapping": GeneticSearch(dimension=2, population=10, generations=4, seed=3, overlap=4),
    "nsga2": FrontSearch(dimension=2, population=12, generations=6, seed=3),
    "nsga2 overlapping": FrontSearch(dimension=2, population=12, generations=4, seed=3, overlap=5),
    "annealing": AnnealingSearch(dimension=2, iterations=30, seed=3, chains=2),
    "annealing golden": AnnealingSearch(dimension=2, iterations=4, seed=3, chains=2, step="golden", reductions=5),
    "pattern": PatternSearch(dimension=2, iterations=20, seed=3, starts=3, smallest=1e-3),
    "hybrid": HybridSearch(
        global_search=GeneticSearch(dimension=2, population=8, generations=12, seed=3),
        local_iterations=10,
        patience=3,
    ),
}


def results(search: Any, candidates: Any) -> tuple[Any, Any]:
    """Objectives (peaks, and the distance from the origin), a constraint, and failures in a corner."""
    x = BOX.scaled(candidates)
    f = np.stack([peaks(x), (x**2).sum(axis=1)], axis=1)[:, : search.objectives]
    f[(x > 2.0).all(axis=1)] = np.nan
    return f, np.maximum(0.0, -x[:, 0] - 1.0)


def step(search: Any, state: Any, count: int | None = None) -> Any:
    candidates = search.ask(state)
    if search.overlap and count:
        candidates = candidates[:count]
    return search.tell(state, candidates, *results(search, candidates))


def whole_run(search: Any) -> list[Any]:
    states = [search.start()]
    while len(search.ask(states[-1])):
        states.append(step(search, states[-1]))
    return states


def same(a: Any, b: Any) -> bool:
    return a.keys() == b.keys() and all(
        np.asarray(a[k]).tobytes() == np.asarray(b[k]).tobytes() and np.shape(a[k]) == np.shape(b[k]) for k in a
    )


@pytest.mark.parametrize("name", SEARCHES)
class TestLaws:
    def test_killed_at_any_point_and_resumed_it_ends_bit_identically(self, name: str, tmp_path: Path) -> None:
        search = SEARCHES[name]
        states = whole_run(search)
        for kill in range(len(states)):
            checkpoint.save(tmp_path / "search.json", states[kill], {"step": kill})
            # a new object, as in a new process; nothing but the file is left
            again = replace(search)
            state, facts = checkpoint.load(tmp_path / "search.json")
            assert facts == {"step": kill}
            while len(again.ask(state)):
                state = step(again, state)
            assert same(state, states[-1])

    def test_asking_changes_nothing(self, name: str) -> None:
        search = SEARCHES[name]
        for state in whole_run(search):
            kept = checkpoint.to_text(state)
            assert np.array_equal(search.ask(state), search.ask(state))
            assert checkpoint.to_text(state) == kept

    def test_candidates_lie_in_the_cube_and_their_number_is_bounded(self, name: str) -> None:
        search, total = SEARCHES[name], 0
        for state in whole_run(search):
            candidates = search.ask(state)
            assert ((candidates >= 0.0) & (candidates <= 1.0)).all()
            total += min(len(candidates), search.evaluations - total) if search.overlap else len(candidates)
        assert 0 < total <= search.evaluations

    def test_the_best_never_gets_worse_and_never_failed(self, name: str) -> None:
        search, last = SEARCHES[name], (np.inf, np.inf)
        for state in whole_run(search)[1:]:
            best = search.best(state)
            assert np.isfinite(best.f).all()
            assert np.isfinite(best.violation).all()
            if search.objectives == 1:
                now = (float(best.violation[0]), float(best.f[0, 0]))
                assert now <= last
                last = now

    def test_another_seed_goes_another_way(self, name: str) -> None:
        search = SEARCHES[name]
        if isinstance(search, HybridSearch):
            other: Any = replace(search, global_search=replace(search.global_search, seed=4))
        else:
            other = replace(search, seed=4)
        assert not np.array_equal(search.best(whole_run(search)[-1]).x, other.best(whole_run(other)[-1]).x)


@pytest.mark.parametrize("name", [n for n, s in SEARCHES.items() if s.overlap])
def test_overlap_does_not_depend_on_how_many_results_come_at_a_time(name: str) -> None:
    search = SEARCHES[name]
    end = whole_run(search)[-1]
    for count in (1, 2, 3):
        state = search.start()
        while len(search.ask(state)):
            state = step(search, state, count)
        assert same(state, end)


def test_known_points_are_in_the_first_generation() -> None:
    search = GeneticSearch(dimension=2, population=6, generations=1, seed=1, known=((0.25, 0.75),))
    assert search.ask(search.start())[0].tolist() == [0.25, 0.75]


def test_a_checkpoint_is_refused_when_it_is_none() -> None:
    text = checkpoint.to_text({"x": np.zeros(3), "n": np.array(2)})
    state, _ = checkpoint.from_text(text)
    assert int(state["n"]) == 2
    for wrong in ("", "{}", text[:-5], text.replace("<f8", "|O"), text.replace('"format": 1', '"format": 9')):
        with pytest.raises(InputError, match="not a checkpoint"):
            checkpoint.from_text(wrong)
    with pytest.raises(InputError, match="type"):
        checkpoint.to_text({"x": np.array(["a"], dtype=object)})


@pytest.mark.parametrize(
    ("wrong", "word"), [({"lower": (0.0,), "upper": (0.0,)}, "lower < upper"), ({"lower": (), "upper": ()}, "equally")]
)
def test_wrong_boxes_are_refused(wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        Box(**wrong)


def test_a_logarithmic_range_is_searched_in_its_logarithm() -> None:
    box = Box(lower=(1.0, 1.0), upper=(100.0, 100.0), logarithmic=(True, False))
    assert np.allclose(box.scaled([[0.5, 0.5]]), [[10.0, 50.5]])
