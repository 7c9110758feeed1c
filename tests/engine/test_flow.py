"""The flow on frozen grids: its order, its derivatives, its failures."""

import numba
import numpy as np
import pytest
from scipy.linalg import expm

from railsweep.engine.flow import Flow, FlowError
from railsweep.engine.solver import solve
from railsweep.kernels.status import Status

njit = numba.njit(cache=True, error_model="numpy")

MATRIX = np.array([[-0.3, 2.0, 0.1], [-1.5, -0.1, 0.4], [0.2, 0.0, -0.7]])


@njit
def linear(t, y, params, out):
    for i in range(y.size):
        out[i] = 0.0
        for j in range(y.size):
            out[i] += params[i, j] * y[j]


@njit
def bounded(t, y, params, out):
    """y' = y, with no law beyond y = 2."""
    out[0] = y[0]
    return 3 if y[0] > 2.0 else 0


@njit
def squared(t, y, params, out):
    out[0] = y[0] * y[0]


@pytest.mark.parametrize(("method", "order"), [("dopri5", 5), ("dop853", 8)])
def test_order(method, order):
    """Halving the steps divides the error by 2^order."""
    start = np.array([1.0, -0.5, 0.3])
    exact = expm(2.0 * MATRIX) @ start
    errors = []
    for steps in (6, 12):
        grid = np.linspace(0.0, 1.0, steps + 1)
        end = Flow(linear, method).ends(start[None], np.array([2.0]), grid, MATRIX)[0]
        errors.append(np.abs(end - exact).max())
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.5


@pytest.mark.parametrize("central", [False, True])
def test_derivative_is_the_propagator(central):
    grid = np.linspace(0.0, 1.0, 61)
    start = np.array([1.0, -0.5, 0.3])
    end, matrix = Flow(linear, "dop853").derivative(
        start, 1.7, grid, lambda: MATRIX, steps=np.full(3, 1e-3), central=central
    )
    np.testing.assert_allclose(matrix, expm(1.7 * MATRIX), atol=1e-11)
    np.testing.assert_allclose(end, expm(1.7 * MATRIX) @ start, atol=1e-12)


def test_threads_give_the_same_bits():
    grid = np.sort(np.append(np.random.default_rng(3).random(40), [0.0, 1.0]))
    start = np.array([1.0, -0.5, 0.3])

    def with_threads(threads):
        return Flow(linear).derivative(start, 1.7, grid, lambda: MATRIX.copy(), steps=np.full(3, 1e-3), threads=threads)

    for a, b in zip(with_threads(1), with_threads(3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_path_ends_where_ends_does():
    grid = np.linspace(0.0, 1.0, 21)
    start = np.array([1.0, -0.5, 0.3])
    path = Flow(linear).path(start, 0.9, grid, MATRIX)
    assert path.shape == (21, 3)
    np.testing.assert_array_equal(path[0], start)
    np.testing.assert_array_equal(path[-1], Flow(linear).ends(start[None], np.array([0.9]), grid, MATRIX)[0])


def test_repeats_the_steps_of_solve():
    """On the grid that step control chose, the flow is what `solve` computed."""
    start = np.array([1.0, -0.5, 0.3])
    run = solve(linear, (0.0, 2.5), start, params=MATRIX, method="dopri5", rtol=1e-8, atol=1e-10)
    end = Flow(linear).ends(start[None], np.array([2.5]), run.t / run.t[-1], MATRIX)[0]
    np.testing.assert_allclose(end, run.y_end, rtol=1e-13)


def test_failure_has_its_status():
    grid = np.linspace(0.0, 1.0, 21)
    flow = Flow(bounded)
    assert flow.ends(np.array([[1.0]]), np.array([0.5]), grid, 0.0)[0, 0] == pytest.approx(np.exp(0.5), rel=1e-8)
    with pytest.raises(FlowError) as stopped:
        flow.ends(np.array([[1.0], [1.5]]), np.array([0.5, 0.5]), grid, 0.0)
    assert stopped.value.status is Status.LAW_OUT_OF_RANGE
    with pytest.raises(FlowError, match="law_out_of_range"):
        flow.path(np.array([1.5]), 0.5, grid, 0.0)


def test_infinity_is_not_finite():
    with pytest.raises(FlowError) as stopped:
        Flow(squared).ends(np.array([[1.0]]), np.array([50.0]), np.linspace(0.0, 1.0, 101), 0.0)
    assert stopped.value.status is Status.NOT_FINITE
