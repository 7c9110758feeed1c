"""Every method converges with the order it claims. A new method joins by one line in CONVERGENCE."""

import math

import ivp
import numpy as np
import pytest

from railsweep.engine.solver import solve
from railsweep.kernels.integrate.registry import METHODS

T_END = 1.25
TIGHT = {"rtol": 1e-14, "atol": 1e-14}

# (method, columns, order in theory, end of the interval, steps). Ends and steps lie in the asymptotic range, above
# rounding. Column k of the midpoint sequence has order 2k - 1: the smoothing step costs one (Hairer-Wanner IV.9).
CONVERGENCE = [
    ("nt1", 0, 3, 1.25, (160, 320)),
    ("jkt", 0, 3, 1.25, (160, 320)),
    ("esdirk54", 0, 5, 1.25, (80, 160)),
    ("radau", 0, 5, 1.25, (40, 80)),
    ("rkf34", 0, 3, 1.25, (80, 160)),
    ("dopri5", 0, 5, 1.25, (80, 160)),
    ("dop853", 0, 8, 1.25, (16, 32)),
    ("bsimp", 1, 1, 1.25, (80, 160)),
    ("bsimp", 2, 3, 1.25, (160, 320)),
    ("bsimp", 3, 5, 2.5, (60, 120)),
    ("bsimp", 4, 7, 3.0, (100, 120)),
    ("seulex", 1, 1, 1.25, (640, 1280)),
    ("seulex", 2, 2, 1.25, (160, 320)),
    ("seulex", 3, 3, 1.25, (160, 320)),
    ("seulex", 4, 4, 3.0, (120, 240)),
    ("seulex", 5, 5, 2.5, (80, 160)),
    ("seulex", 6, 6, 3.0, (80, 160)),
]


def end_error(method: str, fixed_order: int, t_end: float, steps: int) -> float:
    solution = solve(
        ivp.forced,
        (0.0, t_end),
        ivp.forced_exact(0.0),
        method=method,
        fixed_step=t_end / steps,
        fixed_order=fixed_order,
        store=False,
        **TIGHT,
    )
    assert solution.success, solution.message
    assert solution.counters["accepted"] == steps
    return float(np.max(np.abs(solution.y_end - ivp.forced_exact(t_end))))


def test_every_method_is_listed() -> None:
    assert {row[0] for row in CONVERGENCE} | {"bdf"} == set(METHODS)


@pytest.mark.parametrize(("method", "column", "order", "t_end", "steps"), CONVERGENCE)
def test_order_of_convergence(method: str, column: int, order: int, t_end: float, steps: tuple[int, int]) -> None:
    coarse, fine = (end_error(method, column, t_end, n) for n in steps)
    slope = math.log(coarse / fine) / math.log(steps[1] / steps[0])
    assert slope == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_bdf_orders(order: int) -> None:
    """Fixed step and order from an exact Nordsieck history of y' = -y."""
    errors = []
    for steps in (80, 160):
        h = 1.0 / steps
        history = np.array([[(-h) ** j / math.factorial(j)] for j in range(order + 1)])
        solution = solve(
            ivp.decay, (0.0, 1.0), [1.0], method="bdf", fixed_step=h, history=history, store=False, **TIGHT
        )
        assert solution.counters["accepted"] == steps
        errors.append(abs(solution.y_end[0] - math.exp(-1.0)))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


# (method, order of the dense output): local error of a value inside the step is one order higher.
DENSE = [("nt1", 3), ("jkt", 3), ("rkf34", 3), ("dopri5", 4), ("esdirk54", 4), ("radau", 3), ("dop853", 7)]


@pytest.mark.parametrize(("method", "order"), DENSE)
def test_order_of_dense_output(method: str, order: int) -> None:
    errors = []
    for h in (0.2, 0.1) if method == "dop853" else (0.04, 0.02):
        wanted = 0.5 + h * np.array([0.2, 0.37, 0.5, 0.81])
        solution = solve(
            ivp.forced, (0.5, 0.5 + h), ivp.forced_exact(0.5), method=method, fixed_step=h, t_eval=wanted, **TIGHT
        )
        exact = np.array([ivp.forced_exact(t) for t in wanted]).T
        errors.append(np.max(np.abs(solution.y - exact)))
    slope = math.log2(errors[0] / errors[1])
    assert slope > order + 1 - 0.2


@pytest.mark.parametrize("method", sorted(METHODS))
def test_samples_agree_with_steps_and_tolerance(method: str) -> None:
    wanted = np.linspace(0.0, T_END, 41)
    solution = solve(
        ivp.forced, (0.0, T_END), ivp.forced_exact(0.0), method=method, rtol=1e-7, atol=1e-7, t_eval=wanted
    )
    assert solution.success
    assert np.array_equal(solution.t, wanted)
    assert np.array_equal(solution.y[:, -1], solution.y_end)
    exact = np.array([ivp.forced_exact(t) for t in wanted]).T
    assert np.max(np.abs(solution.y - exact)) < 2e-5
