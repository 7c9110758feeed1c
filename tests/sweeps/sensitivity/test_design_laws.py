"""Laws of all designs: the same points whoever asks, in whatever pieces."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.choice import PointDesign
from railsweep.sweeps.sensitivity.design import base_points
from railsweep.sweeps.sensitivity.morris import MorrisDesign
from railsweep.sweeps.sensitivity.saltelli import SaltelliDesign

DESIGNS: list[Any] = [
    SaltelliDesign(groups=(0, 1, 2), rows=40, seed=5),
    SaltelliDesign(groups=(0, 1, 2), rows=40, seed=5, second_order=True, replicates=8),
    SaltelliDesign(groups=(0, 1, 1, 0), rows=30, seed=5, sampling="monte-carlo"),
    MorrisDesign(groups=(0, 1, 2, 3), rows=25, seed=5),
    MorrisDesign(groups=(0, 1, 1, 2), rows=25, seed=5, levels=8),
    PointDesign(dimension=3, rows=100, seed=5),
    PointDesign(dimension=3, rows=100, seed=5, sampling="monte-carlo"),
]


def every(design: Any) -> Any:
    return design.points(0, design.rows * design.row_cases)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: type(d).__name__)
class TestLaws:
    @settings(max_examples=30, deadline=None)
    @given(ends=st.tuples(st.integers(0, 200), st.integers(0, 200)))
    def test_any_piece_equals_the_slice(self, design: Any, ends: tuple[int, int]) -> None:
        points = every(design)
        first, last = sorted(min(e, len(points)) for e in ends)
        assert np.array_equal(design.points(first, last), points[first:last])

    def test_points_lie_in_the_cube_and_follow_the_seed(self, design: Any) -> None:
        points = every(design)
        assert points.shape == (design.rows * design.row_cases, design.dimension)
        assert points.min() >= 0.0
        assert points.max() <= 1.0
        assert np.array_equal(points, every(replace(design)))
        assert not np.array_equal(points, every(replace(design, seed=6)))

    def test_a_longer_design_starts_with_the_shorter(self, design: Any) -> None:
        assert np.array_equal(every(replace(design, rows=design.rows + 9))[: len(every(design))], every(design))


def test_a_saltelli_row_exchanges_one_group_at_a_time() -> None:
    design = SaltelliDesign(groups=(0, 1, 1), rows=4, seed=1, second_order=True)
    a, ab0, ab1, ba0, ba1, b = design.points(6, 12)
    assert np.array_equal(ab0, [b[0], a[1], a[2]])
    assert np.array_equal(ab1, [a[0], b[1], b[2]])
    assert np.array_equal(ba0, [a[0], b[1], b[2]])
    assert np.array_equal(ba1, [b[0], a[1], a[2]])


def test_a_trajectory_moves_each_group_once_by_one_step_on_the_grid() -> None:
    design = MorrisDesign(groups=(0, 1, 2, 1), rows=50, seed=3, levels=6)
    for row in range(design.rows):
        points, order, sign = design.trajectory(row)
        moves = np.diff(points, axis=0)
        for move, group in zip(moves, order, strict=True):
            moved = np.array(design.groups) == group
            assert np.allclose(move, np.where(moved, sign * design.step, 0.0), atol=1e-14)
        assert np.allclose(np.round(points * 5.0), points * 5.0, atol=1e-12)


def test_replicates_are_interleaved_sequences() -> None:
    points = base_points("sobol", 4, 9, 0, 3000, 3)
    again = base_points("sobol", 4, 9, 1500, 1501, 3)
    assert np.array_equal(points[1500], again[0])
    # each of them is a digital net of its own: every half of every axis holds half of its first 512 points
    for r in range(3):
        assert ((points[r::3][:512] < 0.5).sum(axis=0) == 256).all()
    assert not np.array_equal(points[0::3], points[1::3])


@pytest.mark.parametrize("wrong", [{"groups": (0, 2)}, {"groups": ()}, {"rows": 1}, {"replicates": 0}])
def test_wrong_designs_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        SaltelliDesign(**{"groups": (0, 1), "rows": 8, "seed": 1, **wrong})


def test_odd_levels_are_refused() -> None:
    with pytest.raises(InputError, match="levels"):
        MorrisDesign(groups=(0, 1), rows=4, seed=1, levels=5)
