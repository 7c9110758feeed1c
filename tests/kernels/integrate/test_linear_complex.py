"""The complex linear algebra against numpy, and the reduced form against the dense one."""

import numpy as np
import pytest

from railsweep.kernels.integrate import linear_complex

G = 0.07 - 0.11j


def solved(factor, solve, work, jacobian: np.ndarray, b: np.ndarray) -> np.ndarray:
    reals, wholes = work
    assert factor(jacobian, G.real, G.imag, reals, wholes) == 0
    parts = np.concatenate([b.real, b.imag])
    solve(reals, wholes, parts)
    return parts[: b.size] + 1j * parts[b.size :]


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_dense(n: int) -> None:
    random = np.random.default_rng(n)
    jacobian = 30.0 * random.standard_normal((n, n))
    b = random.standard_normal(n) + 1j * random.standard_normal(n)
    pair = (linear_complex.complex_dense_factor, linear_complex.complex_dense_solve)
    x = solved(*pair, linear_complex.complex_dense_work(n), jacobian, b)
    matrix = np.eye(n) - G * jacobian
    assert np.abs(matrix @ x - b).max() < 1e-14 * np.linalg.cond(matrix) * n


def test_reduced_is_the_dense_solution() -> None:
    """Six degrees of freedom, positions and velocities in turns, and one state of first order."""
    n = 13
    position, velocity = np.arange(0, 12, 2), np.arange(1, 13, 2)
    random = np.random.default_rng(3)
    jacobian = 10.0 * random.standard_normal((n, n))
    jacobian[position] = 0.0
    jacobian[position, velocity] = 1.0
    b = random.standard_normal(n) + 1j * random.standard_normal(n)
    pair = (linear_complex.complex_reduced_factor, linear_complex.complex_reduced_solve)
    x = solved(*pair, linear_complex.complex_reduced_work(n, position, velocity), jacobian, b)
    assert x == pytest.approx(np.linalg.solve(np.eye(n) - G * jacobian, b), rel=1e-11, abs=1e-12)


def test_pivots_near_the_ends_of_the_number_range() -> None:
    for size in (1e-200, 1e200):
        re, im = np.array([[0.6 * size]]), np.array([[-0.8 * size]])
        x, y = np.array([size]), np.array([0.0])
        pivot = np.zeros(1, dtype=np.int64)
        assert linear_complex.complex_lu_factor(re, im, pivot) == 0
        linear_complex.complex_lu_solve(re, im, pivot, x, y)
        assert x[0] + 1j * y[0] == pytest.approx(0.6 + 0.8j, rel=1e-14)


def test_a_singular_matrix_is_reported() -> None:
    re, im = np.ones((2, 2)), np.ones((2, 2))
    assert linear_complex.complex_lu_factor(re, im, np.zeros(2, dtype=np.int64)) == 1
    re[0, 0] = np.nan
    assert linear_complex.complex_lu_factor(re, im, np.zeros(2, dtype=np.int64)) == 1
