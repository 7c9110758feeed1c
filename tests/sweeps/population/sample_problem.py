"""Problems with known answers."""

import numpy as np
from numpy.typing import NDArray

from railsweep.sweeps.population.optimiser import Box

Array = NDArray[np.float64]


def rosenbrock(x: Array) -> Array:
    """Minimum 0 at (1, 1)."""
    return np.asarray(100.0 * (x[:, 1] - x[:, 0] ** 2) ** 2 + (1.0 - x[:, 0]) ** 2)


def rastrigin(x: Array) -> Array:
    """Minimum 0 at the origin, some hundred local minima."""
    return np.asarray((x**2 - 10.0 * np.cos(2.0 * np.pi * x) + 10.0).sum(axis=1))


def peaks(x: Array) -> Array:
    """Minimum -6.551133 at (0.228, -1.626) (Taheri 2016, B.10)."""
    a, b = x[:, 0], x[:, 1]
    return np.asarray(
        3.0 * (1.0 - a) ** 2 * np.exp(-(a**2) - (b + 1.0) ** 2)
        - 10.0 * (a / 5.0 - a**3 - b**5) * np.exp(-(a**2) - b**2)
        - np.exp(-((a + 1.0) ** 2) - b**2) / 3.0
    )


PROBLEMS = {
    "rosenbrock": (rosenbrock, Box(lower=(-2.0, -2.0), upper=(2.0, 2.0)), 0.0),
    "rastrigin": (rastrigin, Box(lower=(-5.12, -5.12), upper=(5.12, 5.12)), 0.0),
    "peaks": (peaks, Box(lower=(-3.0, -3.0), upper=(3.0, 3.0)), -6.551133),
}


def zdt1(x: Array) -> Array:
    """Zitzler, Deb and Thiele's first problem; hypervolume of the exact front to (1.1, 1.1): 0.876667."""
    g = 1.0 + 9.0 * x[:, 1:].sum(axis=1) / (x.shape[1] - 1)
    return np.stack([x[:, 0], g * (1.0 - np.sqrt(x[:, 0] / g))], axis=1)
