"""Sobol indices against exact values, against SALib, and the coverage of their limits."""

from typing import Any

import numpy as np
import pytest
from sample_function import ishigami, ishigami_exact, sobol_g, sobol_g_exact

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.estimator import SobolEstimator, sobol_indices
from railsweep.sweeps.sensitivity.saltelli import SaltelliDesign, ungrouped

FUNCTIONS = {"ishigami": (ishigami, ishigami_exact(), 3), "sobol_g": (sobol_g, sobol_g_exact(), 8)}


def values_of(function: Any, design: SaltelliDesign) -> Any:
    return function(design.points(0, design.rows * design.row_cases)).reshape(design.rows, design.row_cases)


def test_exact_values_are_the_published_ones() -> None:
    first, total, variance = ishigami_exact()
    assert np.allclose(first, [0.313905, 0.442411, 0.0], atol=1e-6)
    assert np.allclose(total, [0.557589, 0.442411, 0.243684], atol=1e-6)
    assert abs(variance - 13.844588) < 1e-6
    first, total, variance = sobol_g_exact()
    assert np.allclose(first[:5], [0.716192, 0.179048, 0.023676, 0.007162, 7.2e-5], atol=1e-6)
    assert np.allclose(total[:5], [0.787144, 0.242198, 0.034317, 0.010460, 1.05e-4], atol=1e-6)
    assert abs(variance - 0.465424) < 1e-6


@pytest.mark.parametrize("estimator", ["saltelli", "jansen"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_indices_within_three_standard_errors_for_20_seeds(name: str, estimator: str) -> None:
    function, (first, total, variance), k = FUNCTIONS[name]
    for seed in range(20):
        design = SaltelliDesign(groups=ungrouped(k), rows=1024, seed=seed)
        found = sobol_indices(values_of(function, design), groups=k, estimator=estimator)
        assert (np.abs(found.first.value - first) <= 3.0 * found.first.error).all()
        assert (np.abs(found.total.value - total) <= 3.0 * found.total.error).all()
        assert abs(found.variance - variance) < 0.1 * variance


def test_second_order_indices_of_ishigami() -> None:
    design = SaltelliDesign(groups=ungrouped(3), rows=8192, seed=2, second_order=True)
    found = sobol_indices(values_of(ishigami, design), groups=3, second_order=True)
    assert found.second is not None
    assert found.pairs == ((0, 1), (0, 2), (1, 2))
    assert (np.abs(found.second.value - [0.0, 0.243684, 0.0]) <= 3.0 * found.second.error).all()


@pytest.mark.parametrize("second_order", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agreement_with_salib_on_the_same_sample(name: str, second_order: bool) -> None:
    sobol = pytest.importorskip("SALib.analyze.sobol")
    function, _, k = FUNCTIONS[name]
    design = SaltelliDesign(groups=ungrouped(k), rows=256, seed=4, second_order=second_order)
    values = values_of(function, design)
    problem = {"num_vars": k, "names": [f"x{i}" for i in range(k)], "bounds": [[0.0, 1.0]] * k}
    theirs = sobol.analyze(problem, values.ravel(), calc_second_order=second_order, num_resamples=2)
    ours = sobol_indices(values, groups=k, second_order=second_order)
    assert np.abs(ours.first.value - theirs["S1"]).max() < 1e-10
    assert np.abs(ours.total.value - theirs["ST"]).max() < 1e-10
    if ours.second is not None:
        assert np.abs(ours.second.value - theirs["S2"][np.triu_indices(k, 1)]).max() < 1e-10


def test_groups_sum_what_their_members_do() -> None:
    design = SaltelliDesign(groups=(0, 1, 0), rows=4096, seed=1)
    found = sobol_indices(values_of(ishigami, design), groups=2)
    first, total, _ = ishigami_exact()
    # x1 and x3 with their interaction against x2, which is additive
    assert np.allclose(found.first.value, [1.0 - first[1], first[1]], atol=0.02)
    assert np.allclose(found.total.value, [1.0 - first[1], total[1]], atol=0.02)


def test_streaming_in_any_order_and_pieces_gives_the_same() -> None:
    design = SaltelliDesign(groups=ungrouped(3), rows=600, seed=3, replicates=8)
    values = values_of(ishigami, design)
    whole = sobol_indices(values, groups=3, replicates=8, interval="replicates")
    sums = SobolEstimator(groups=3, replicates=8)
    order = np.random.default_rng(1).permutation(600)
    for piece in np.array_split(order, 17):
        sums.tell(piece, values[piece])
    found = sums.indices(interval="replicates")
    assert np.allclose(found.first.value, whole.first.value, rtol=0, atol=1e-12)
    assert np.allclose(found.total.error, whole.total.error, rtol=1e-9)


def test_a_large_offset_does_not_spoil_the_indices() -> None:
    design = SaltelliDesign(groups=ungrouped(3), rows=512, seed=3)
    values = values_of(ishigami, design)
    near, far = sobol_indices(values, groups=3), sobol_indices(values + 1e6, groups=3)
    assert np.allclose(near.first.value, far.first.value, atol=1e-7)
    assert np.allclose(near.first.error, far.first.error, rtol=1e-5)


def coverage(sampling: str, interval: str, repetitions: int, rows: int, replicates: int) -> Any:
    function, (first, total, _), k = FUNCTIONS["ishigami"]
    inside = np.zeros(2 * k)
    for seed in range(repetitions):
        design = SaltelliDesign(
            groups=ungrouped(k), rows=rows, seed=1000 + seed, sampling=sampling, replicates=replicates
        )
        found = sobol_indices(
            values_of(function, design),
            groups=k,
            interval=interval,
            replicates=replicates,
            resamples=300,
        )
        inside[:k] += (found.first.low <= first) & (first <= found.first.high)
        inside[k:] += (found.total.low <= total) & (total <= found.total.high)
    return inside / repetitions


@pytest.mark.parametrize(
    ("sampling", "interval", "rows", "replicates"),
    [
        ("monte-carlo", "asymptotic", 512, 1),
        pytest.param("monte-carlo", "bootstrap", 512, 1, marks=pytest.mark.slow),
        pytest.param("sobol", "replicates", 2048, 16, marks=pytest.mark.slow),
    ],
)
def test_limits_cover_as_often_as_they_promise(sampling: str, interval: str, rows: int, replicates: int) -> None:
    found = coverage(sampling, interval, 200, rows, replicates)
    assert found.min() >= 0.90
    assert found.max() <= 0.99


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(InputError, match="does not vary"):
        sobol_indices(np.ones((10, 5)), groups=3)
    with pytest.raises(InputError, match="finite"):
        sobol_indices(np.full((10, 5), np.nan), groups=3)
    with pytest.raises(InputError, match="shape"):
        sobol_indices(np.ones((10, 4)), groups=3)
    with pytest.raises(InputError, match="at least 8"):
        sobol_indices(np.random.default_rng(1).random((10, 5)), groups=3, replicates=4, interval="replicates")
