"""Pseudo-arclength continuation on equations with known branches: folds, kinks, ends, and the work it takes."""

from itertools import islice

import numpy as np
import pytest

from railsweep.engine.errors import InputError
from railsweep.engine.flow import FlowError
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.continuation import BranchEnd, NoSolution, Settings, continue_branch, newton


class Curve:
    """F(z, p) given by functions; counts its work."""

    def __init__(self, residual, jacobian, n=1):
        self.given, self.derivative, self.n = residual, jacobian, n
        self.residuals = self.jacobians = 0

    def renew(self, z, p):
        pass

    def residual(self, z, p):
        self.residuals += 1
        return np.asarray(self.given(z, p), dtype=float)

    def jacobian(self, z, p):
        self.jacobians += 1
        matrix, by_parameter = self.derivative(z, p)
        return np.asarray(matrix, dtype=float), np.asarray(by_parameter, dtype=float)

    @property
    def weights(self):
        return np.ones(self.n)

    @property
    def rows(self):
        return np.ones(self.n)

    def monitor(self, z, p, jacobian):
        return self.jacobians


def circle():
    return Curve(lambda z, p: [z[0] ** 2 + p**2 - 1.0], lambda z, p: ([[2.0 * z[0]]], [2.0 * p]))


def cubic():
    """p = z^3 - z: folds at z = -+1/sqrt(3), p = +-2/(3 sqrt(3))."""
    return Curve(lambda z, p: [z[0] ** 3 - z[0] - p], lambda z, p: ([[3.0 * z[0] ** 2 - 1.0]], [-1.0]))


def kink():
    """z = |p| / 2: the Jacobian jumps at 0."""
    return Curve(lambda z, p: [z[0] - 0.5 * abs(p)], lambda z, p: ([[1.0]], [-0.5 * np.sign(p)]))


def test_round_a_circle():
    """Twice round: every point on the circle, a fold at every quarter where the parameter turns."""
    settings = Settings(largest=0.4, tolerance=1e-12, fold_tolerance=1e-12, points=40)
    points = list(continue_branch(circle(), np.array([1.0]), 0.0, settings=settings))
    assert all(abs(q.z[0] ** 2 + q.parameter**2 - 1.0) < 1e-11 for q in points)
    folds = [q.parameter for q in points if q.kind == "fold"]
    assert len(folds) >= 4
    np.testing.assert_allclose(folds, [(-1.0) ** i for i in range(len(folds))], atol=1e-10)
    arclengths = [q.arclength for q in points]
    assert arclengths == sorted(arclengths)


def test_folds_of_a_cubic():
    settings = Settings(largest=0.3, tolerance=1e-12, fold_tolerance=1e-12)
    end = BranchEnd()
    points = list(continue_branch(cubic(), np.array([-1.5]), -1.875, bounds=(-2.0, 2.0), settings=settings, end=end))
    folds = [(float(q.z[0]), q.parameter) for q in points if q.kind == "fold"]
    height = 2.0 / (3.0 * np.sqrt(3.0))
    np.testing.assert_allclose(folds, [(-1.0 / np.sqrt(3.0), height), (1.0 / np.sqrt(3.0), -height)], atol=1e-5)
    np.testing.assert_allclose([p for _, p in folds], [height, -height], atol=1e-10)
    assert points[-1].parameter > 2.0
    assert end.reason == "the parameter left -2 to 2"
    assert end.status is Status.OK


@pytest.mark.parametrize("direction", [-1, 1])
def test_direction(direction):
    points = list(islice(continue_branch(cubic(), np.array([1.5]), 1.875, direction=direction), 3))
    assert (points[2].parameter - points[0].parameter) * direction > 0.0


def test_one_jacobian_per_point():
    """Jacobians are dear: a smooth branch takes one at every point, at the first too when it starts on the branch."""
    problem = cubic()
    points = list(islice(continue_branch(problem, np.array([1.5]), 1.875), 12))
    assert problem.jacobians == len(points)
    assert [q.jacobians for q in points] == [1] * len(points)
    assert problem.residuals <= 6 * len(points)


def test_through_a_kink():
    settings = Settings(step=0.13, largest=0.13)
    points = list(continue_branch(kink(), np.array([0.5]), 1.0, direction=-1, bounds=(-1.0, 2.0), settings=settings))
    assert points[-1].parameter < -1.0
    assert all(abs(q.z[0] - 0.5 * abs(q.parameter)) < 1e-7 for q in points)
    assert not [q for q in points if q.kind == "fold"]


def test_ends_after_the_number_of_points():
    end = BranchEnd()
    points = list(continue_branch(circle(), np.array([1.0]), 0.0, settings=Settings(points=5), end=end))
    assert [q.kind for q in points].count("regular") == 5
    assert end.reason == "5 points"


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (FlowError(int(Status.DERAILED)), Status.DERAILED, "derailed"),
        (InputError("speed_mps", -1.0, "> 0"), Status.OK, "speed_mps"),
    ],
)
def test_an_end_without_solutions_says_why(error, status, words):
    """A line z = p that nothing can evaluate beyond p = 1: the branch comes near and ends with the reason."""

    def residual(z, p):
        if p > 1.0:
            raise error
        return [z[0] - p]

    end = BranchEnd()
    problem = Curve(residual, lambda z, p: ([[1.0]], [-1.0]))
    points = list(continue_branch(problem, np.array([0.0]), 0.0, end=end))
    assert 1.0 - 1e-4 < points[-1].parameter <= 1.0
    assert end.reason.startswith("no further point")
    assert words in end.reason
    assert end.status is status


def test_newton_takes_no_jacobian_at_a_solution():
    problem = cubic()
    z, iterations = newton(problem, np.array([1.5]), 1.875, Settings())
    assert (z[0], iterations, problem.jacobians) == (1.5, 0, 0)


def test_newton_without_a_root():
    problem = Curve(lambda z, p: [z[0] ** 2 + 1.0], lambda z, p: ([[2.0 * z[0]]], [0.0]))
    with pytest.raises(NoSolution, match="residual"):
        newton(problem, np.array([3.0]), 0.0, Settings())


def test_newton_leaves_what_the_equations_do_not_say():
    """One equation repeated in two unknowns: the smallest step that solves it."""
    problem = Curve(
        lambda z, p: [z[0] + z[1] - 2.0, z[0] + z[1] - 2.0], lambda z, p: (np.ones((2, 2)), np.zeros(2)), n=2
    )
    z, _ = newton(problem, np.array([3.0, 1.0]), 0.0, Settings())
    np.testing.assert_allclose(z, [2.0, 0.0], atol=1e-9)
