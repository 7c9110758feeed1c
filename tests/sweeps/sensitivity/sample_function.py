"""Functions of the unit cube whose sensitivity indices are known exactly."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def ishigami(u: Array) -> Array:
    """Ishigami's function with a = 7, b = 0.1 (Ishigami and Homma, 1990)."""
    x = np.pi * (2.0 * u - 1.0)
    return np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])


def ishigami_exact() -> tuple[Array, Array, float]:
    """First order, total and the variance, from the closed forms."""
    a, b, p = 7.0, 0.1, np.pi
    v1, v2, v13 = 0.5 * (1.0 + b * p**4 / 5.0) ** 2, a * a / 8.0, 8.0 * b * b * p**8 / 225.0
    v = v1 + v2 + v13
    return np.array([v1, v2, 0.0]) / v, np.array([v1 + v13, v2, v13]) / v, v


SOBOL_A = np.array([0.0, 1.0, 4.5, 9.0, 99.0, 99.0, 99.0, 99.0])


def sobol_g(u: Array) -> Array:
    """Sobol's G function with eight parameters."""
    return np.asarray(((np.abs(4.0 * u - 2.0) + SOBOL_A) / (1.0 + SOBOL_A)).prod(axis=1))


def sobol_g_exact() -> tuple[Array, Array, float]:
    """First order, total and the variance."""
    part = 1.0 / (3.0 * (1.0 + SOBOL_A) ** 2)
    v = float(np.prod(1.0 + part) - 1.0)
    total = np.array([p * np.prod(1.0 + np.delete(part, i)) for i, p in enumerate(part)])
    return part / v, total / v, v


def morris_function(u: Array) -> Array:
    """Morris' function of 20 parameters: the first ten matter, of them 1-7 with curvature or interaction (1991).

    The coefficients that he drew at random are drawn here from the same normal distribution with a fixed seed.
    """
    w = 2.0 * (u - 0.5)
    for i in (2, 4, 6):
        w[:, i] = 2.0 * (1.1 * u[:, i] / (u[:, i] + 0.1) - 0.5)
    draw = np.random.default_rng(7)
    single, double = draw.standard_normal(20), draw.standard_normal((20, 20))
    single[:10] = 20.0
    double[:6, :6] = -15.0
    y = w @ single
    for i, j in combinations(range(20), 2):
        y += double[i, j] * w[:, i] * w[:, j]
    for i, j, k in combinations(range(5), 3):
        y += -10.0 * w[:, i] * w[:, j] * w[:, k]
    return np.asarray(y + 5.0 * w[:, :4].prod(axis=1))
