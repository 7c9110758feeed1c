"""Elementary effects on functions whose answer is known; the expansion and its error; the treatment of failures."""

from typing import Any

import numpy as np
import pytest
from sample_function import ishigami, ishigami_exact, morris_function

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.choice import PointDesign
from railsweep.sweeps.sensitivity.distribution import standard_normal
from railsweep.sweeps.sensitivity.expansion import basis, expansion_indices, fit_expansion, pursue, term_set
from railsweep.sweeps.sensitivity.failure import correlation_warning, treat
from railsweep.sweeps.sensitivity.morris import MorrisDesign, elementary_effects


def screened(function: Any, design: MorrisDesign, repetitions: int = 1) -> Any:
    points = design.points(0, design.rows * design.row_cases)
    values = function(points).reshape(design.rows, design.row_cases)
    return values, elementary_effects(design, values, repetitions=repetitions)


def test_effects_of_a_linear_function_are_its_slopes() -> None:
    slopes = np.array([3.0, -2.0, 0.0])
    _, found = screened(lambda u: u @ slopes, MorrisDesign(groups=(0, 1, 2), rows=10, seed=1))
    assert np.allclose(found.mu, slopes, atol=1e-12)
    assert np.allclose(found.mu_star, np.abs(slopes), atol=1e-12)
    assert np.allclose(found.sigma, 0.0, atol=1e-12)


def test_morris_function_of_twenty_inputs() -> None:
    _, found = screened(morris_function, MorrisDesign(groups=tuple(range(20)), rows=40, seed=1), repetitions=4)
    assert set(np.argsort(-found.mu_star)[:10]) == set(range(10))
    # 8, 9, 10 act alone: little scatter against their effect; 1-7 curve or interact
    assert (found.sigma[7:10] < 0.5 * found.mu_star[7:10]).all()
    assert found.sigma[:7].min() > 2.0 * found.sigma[7:10].max()
    assert np.isfinite(found.mu_star_dispersion).all()
    assert (found.mu_star_dispersion[:10] < found.mu_star[:10]).all()


def test_agreement_of_the_effects_with_salib() -> None:
    morris = pytest.importorskip("SALib.analyze.morris")
    design = MorrisDesign(groups=tuple(range(20)), rows=12, seed=3)
    values, found = screened(morris_function, design)
    points = design.points(0, design.rows * design.row_cases)
    problem = {"num_vars": 20, "names": [f"x{i}" for i in range(20)], "bounds": [[0.0, 1.0]] * 20}
    theirs = morris.analyze(problem, points, values.ravel(), num_levels=4, num_resamples=10, seed=1)
    assert np.allclose(found.mu, theirs["mu"], rtol=1e-9, atol=1e-9)
    assert np.allclose(found.mu_star, theirs["mu_star"], rtol=1e-9)
    assert np.allclose(found.sigma, theirs["sigma"], rtol=1e-9)


def test_groups_have_a_size_of_effect_only() -> None:
    _, found = screened(lambda u: u @ [3.0, -2.0, 1.0], MorrisDesign(groups=(0, 0, 1), rows=30, seed=1))
    assert np.isnan(found.mu[0])
    assert set(np.round(np.abs(found.effects[:, 0]), 9)) == {1.0, 5.0}
    assert found.mu[1] == pytest.approx(1.0)


def test_the_basis_is_orthonormal() -> None:
    u = PointDesign(dimension=2, rows=2**15, seed=1).points(0, 2**15)
    for germs in (("uniform", "uniform"), ("normal", "uniform")):
        matrix = basis(germs, term_set(2, 3), u)
        assert np.abs(matrix.T @ matrix / len(u) - np.eye(matrix.shape[1])).max() < 0.05


def test_leave_one_out_error_is_that_of_leaving_one_out() -> None:
    draw = np.random.default_rng(1)
    matrix = np.column_stack([np.ones(30), draw.standard_normal((30, 4))])
    y = matrix @ [1.0, 2.0, -1.0, 0.5, 0.3] + 0.1 * draw.standard_normal(30)
    chosen, error = pursue(matrix, y)
    squares = 0.0
    for i in range(30):
        kept = np.delete(np.arange(30), i)
        c = np.linalg.lstsq(matrix[np.ix_(kept, chosen)], y[kept], rcond=None)[0]
        squares += (y[i] - matrix[i, chosen] @ c) ** 2
    assert error == pytest.approx(squares / 30 / y.var(), rel=1e-10)


def test_a_polynomial_is_found_again() -> None:
    u = PointDesign(dimension=3, rows=80, seed=2).points(0, 80)
    z = standard_normal(u[:, 2])
    y = 2.0 + (2.0 * u[:, 0] - 1.0) + 0.5 * (2.0 * u[:, 0] - 1.0) * z + z**2
    found = fit_expansion(("uniform", "uniform", "normal"), u, y)
    assert found.cv_error < 1e-20
    assert found.mean == pytest.approx(3.0)
    assert found.variance == pytest.approx(1.0 / 3.0 + 0.25 / 3.0 + 2.0)
    indices = expansion_indices(found, (0, 1, 2), u, y, resamples=20)
    assert indices.first.value[1] == pytest.approx(0.0, abs=1e-12)
    assert indices.total.value[2] == pytest.approx((0.25 / 3.0 + 2.0) / found.variance)


def test_expansion_of_ishigami_and_its_error() -> None:
    points = PointDesign(dimension=3, rows=1000, seed=2).points(0, 1000)
    u, fresh = points[:250], points[250:]
    found = fit_expansion(("uniform",) * 3, u, ishigami(u), degree=8, interaction=2, folds=3)
    true = float(np.mean((found(fresh) - ishigami(fresh)) ** 2) / ishigami(fresh).var())
    assert found.cv_error < 1e-2
    assert true < 5.0 * found.cv_error
    indices = expansion_indices(found, (0, 1, 2), u, ishigami(u))
    first, total, _ = ishigami_exact()
    assert np.allclose(indices.first.value, first, atol=0.01)
    assert np.allclose(indices.total.value, total, atol=0.01)


def test_policies_do_what_they_say() -> None:
    values = np.arange(20.0).reshape(5, 4)
    values[1, 2] = values[3, 0] = np.nan
    with pytest.raises(InputError, match=r"2 of 20 cases \(10 %\) in 2 of 5 rows"):
        treat(values)
    dropped = treat(values, "drop")
    assert dropped.rows.tolist() == [0, 2, 4]
    assert (dropped.failed, dropped.share, dropped.dropped, dropped.filled) == (2, 0.1, 2, None)
    filled = treat(values, "fill", "largest")
    assert filled.values[1, 2] == filled.values[3, 0] == filled.filled == 19.0
    assert treat(values, "fill", "least").filled == 0.0
    assert treat(values, "fill", -5.0).values[3, 0] == -5.0
    assert treat(values[:1]).failed == 0


def test_correlated_parameters_are_reported() -> None:
    u = np.random.default_rng(1).random((2000, 3))
    assert correlation_warning(u, ("a", "b", "c")) == ""
    corner = u[u[:, 0] + u[:, 1] < 1.2]
    assert "a and b (-0." in correlation_warning(corner, ("a", "b", "c"))
