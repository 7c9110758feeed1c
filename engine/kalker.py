"""Kalker's creep coefficients C11, C22, C23 (= -C32) and C33 for any contact ellipse and Poisson ratio.

Source: table E.3 of Kalker 1990, nineteen axis ratios a/b from 0.1 to 10 (a along rolling) by nu = 0, 1/4,
1/2, with C23(0.8, 1/4) = 1.25 (a widely copied file has 1.15). Beyond the table, Kalker's slender-ellipse
limits.

In nu: for C11, C22, C23 the parabola through the three values of 1/C, as in Kalker's CONTACT program
(flexibilities of the patch go like 1/C); at nu = 0.28 it returns CONTACT's own flexibilities, which a
parabola in C does not. For C33, which CONTACT does not need and which falls towards zero with nu on long
patches, the parabola in C: against the slender limit at b/a = 0.1, nu = 3/8 it is 5 % low where the
parabola in 1/C is 14 % low.
In a/b: a monotone cubic (PCHIP) in log C over log(a/b), since C follows a power of b/a for slender patches.
Leaving any inner node out and predicting it from the others errs by 0.7 % at most; the usual straight line
in min(a/b, b/a) errs by up to 46 % in that test, and lies about 16 % high for C23 between the last two
nodes.
Below 0.1 and above 10 the limit is multiplied by a factor that goes linearly in min(a/b, b/a) from the
table/limit ratio at the last node to 1, which makes the coefficients continuous for every nu.
"""

from dataclasses import dataclass
from math import log, pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from railsweep.engine.errors import InputError, shown

Array = NDArray[np.float64]

POISSON_NODES = (0.0, 0.25, 0.5)

# Axis ratio a/b; then C11, C22, C23, C33, each at the three Poisson ratios.
# fmt: off
_TABLE = np.array([
    [0.1, 2.51, 3.31, 4.85, 2.51, 2.52, 2.53, 0.334, 0.473, 0.731, 6.42, 8.28, 11.7],
    [0.2, 2.59, 3.37, 4.81, 2.59, 2.63, 2.66, 0.483, 0.603, 0.809, 3.46, 4.27, 5.66],
    [0.3, 2.68, 3.44, 4.80, 2.68, 2.75, 2.81, 0.607, 0.715, 0.889, 2.49, 2.96, 3.72],
    [0.4, 2.78, 3.53, 4.82, 2.78, 2.88, 2.98, 0.720, 0.823, 0.977, 2.02, 2.32, 2.77],
    [0.5, 2.88, 3.62, 4.83, 2.88, 3.01, 3.14, 0.827, 0.929, 1.07, 1.74, 1.93, 2.22],
    [0.6, 2.98, 3.72, 4.91, 2.98, 3.14, 3.31, 0.930, 1.03, 1.18, 1.56, 1.68, 1.86],
    [0.7, 3.09, 3.81, 4.97, 3.09, 3.28, 3.48, 1.03, 1.14, 1.29, 1.43, 1.50, 1.60],
    [0.8, 3.19, 3.91, 5.05, 3.19, 3.41, 3.65, 1.13, 1.25, 1.40, 1.34, 1.37, 1.42],
    [0.9, 3.29, 4.01, 5.12, 3.29, 3.54, 3.82, 1.23, 1.36, 1.51, 1.27, 1.27, 1.27],
    [1.0, 3.40, 4.12, 5.20, 3.40, 3.67, 3.98, 1.33, 1.47, 1.63, 1.21, 1.19, 1.16],
    [1 / 0.9, 3.51, 4.22, 5.30, 3.51, 3.81, 4.16, 1.44, 1.59, 1.77, 1.16, 1.11, 1.06],
    [1 / 0.8, 3.65, 4.36, 5.42, 3.65, 3.99, 4.39, 1.58, 1.75, 1.94, 1.10, 1.04, 0.954],
    [1 / 0.7, 3.82, 4.54, 5.58, 3.82, 4.21, 4.67, 1.76, 1.95, 2.18, 1.05, 0.965, 0.852],
    [1 / 0.6, 4.06, 4.78, 5.80, 4.06, 4.50, 5.04, 2.01, 2.23, 2.50, 1.01, 0.892, 0.751],
    [1 / 0.5, 4.37, 5.10, 6.11, 4.37, 4.90, 5.56, 2.35, 2.62, 2.96, 0.958, 0.819, 0.650],
    [1 / 0.4, 4.84, 5.57, 6.57, 4.84, 5.48, 6.31, 2.88, 3.24, 3.70, 0.912, 0.747, 0.549],
    [1 / 0.3, 5.57, 6.34, 7.34, 5.57, 6.40, 7.51, 3.79, 4.32, 5.01, 0.868, 0.674, 0.446],
    [1 / 0.2, 6.96, 7.78, 8.82, 6.96, 8.14, 9.79, 5.72, 6.63, 7.89, 0.828, 0.601, 0.341],
    [1 / 0.1, 10.7, 11.7, 12.9, 10.7, 12.8, 16.0, 12.2, 14.6, 18.0, 0.795, 0.526, 0.228],
])
# fmt: on
AXIS_RATIO_NODES = _TABLE[:, 0]
_COEFFICIENT_NODES = _TABLE[:, 1:].reshape(-1, 4, 3)
SLENDER = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class KalkerCoefficients:
    """The four coefficients, each with the shape of the axis ratio they were asked for; C32 = -C23."""

    c11: Array
    c22: Array
    c23: Array
    c33: Array


def kalker_coefficients(axis_ratio: ArrayLike, poisson: float) -> KalkerCoefficients:
    """Kalker's coefficients of an elliptic contact patch.

    Parameters
    ----------
    axis_ratio : array_like
        a/b, semi-axis along rolling over lateral semi-axis; positive and finite.
    poisson : float
        Poisson ratio of the two (equal) bodies, 0 to 0.5.

    Returns
    -------
    KalkerCoefficients
        Arrays of the shape of `axis_ratio`.

    Examples
    --------
    >>> c = kalker_coefficients([0.5, 2.0], 0.28)
    >>> print(c.c11.round(4), c.c23.round(4))
    [3.7335 5.2037] [0.9435 2.6566]
    """
    nu = float(poisson)
    if not 0.0 <= nu <= 0.5:
        raise InputError("poisson", f"{shown(poisson)} is out of range", "0 to 0.5")
    ratio = np.asarray(axis_ratio, dtype=np.float64)
    if not np.all((ratio > 0.0) & np.isfinite(ratio)):
        raise InputError("axis_ratio", f"{shown(axis_ratio)} has a value out of range", "finite, above 0")

    nodes = _at_poisson(nu)
    curve = PchipInterpolator(np.log(AXIS_RATIO_NODES), np.log(nodes), axis=0)
    low, high = AXIS_RATIO_NODES[0], AXIS_RATIO_NODES[-1]
    values = np.exp(curve(np.log(np.clip(ratio, low, high))))
    # exp(log(.)) is a rounding error away from the printed value; the nodes are to be exact.
    index = np.searchsorted(AXIS_RATIO_NODES, ratio).clip(max=AXIS_RATIO_NODES.size - 1)
    at_node = AXIS_RATIO_NODES[index] == ratio
    values = np.where(at_node[..., None], nodes[index], values)
    for limit, edge, g, outside in (
        (_short_limit, nodes[0], ratio, ratio < low),
        (_long_limit, nodes[-1], 1.0 / ratio, ratio > high),
    ):
        g = np.where(outside, g, SLENDER)
        mismatch = edge / limit(np.float64(SLENDER), nu) - 1.0
        extended = limit(g, nu) * (1.0 + mismatch * (g / SLENDER)[..., None])
        values = np.where(outside[..., None], extended, values)
    return KalkerCoefficients(c11=values[..., 0], c22=values[..., 1], c23=values[..., 2], c33=values[..., 3])


def _at_poisson(nu: float) -> Array:
    """The table at one Poisson ratio, [axis ratio, coefficient]; exact at its three nodes."""
    if nu in POISSON_NODES:
        return _COEFFICIENT_NODES[..., POISSON_NODES.index(nu)]
    s = 4.0 * nu
    weights = np.array([0.5 * (s - 1.0) * (s - 2.0), s * (2.0 - s), 0.5 * s * (s - 1.0)])
    result: Array = 1.0 / ((1.0 / _COEFFICIENT_NODES) @ weights)
    result[:, 3] = _COEFFICIENT_NODES[:, 3] @ weights
    return result


def _short_limit(g: Any, nu: float) -> Array:
    """g = a/b -> 0: a strip much wider than it is long (Kalker 1990, table E.3, upper limit row)."""
    one = np.ones_like(g)
    return np.stack(
        [
            pi**2 / 4.0 / (1.0 - nu) * one,
            pi**2 / 4.0 * one,
            pi * np.sqrt(g) / (3.0 * (1.0 - nu)) * (1.0 + nu * (np.log(16.0 / g) - 5.0)),
            pi**2 / 16.0 / (1.0 - nu) / g,
        ],
        axis=-1,
    )


def _long_limit(g: Any, nu: float) -> Array:
    """g = b/a -> 0: a strip much longer than it is wide (lower limit row), with big = ln(16 / g^2).

    The numerator of C33 is taken as nu (big - 2): it gives 0.785, 0.552, 0.213 at g = 0.1, nu = 0, 1/4, 1/2, where
    the table has 0.795, 0.526, 0.228. The variant (nu big - 2) found in notes gives 1.077, 0.812, 0.426.
    """
    big = np.log(16.0 / (g * g))
    shear = big - 2.0 * nu
    mixed = (1.0 - nu) * big + 2.0 * nu
    spin = (1.0 - nu) * big - 2.0 + 4.0 * nu
    extra = 3.0 - log(4.0)
    return np.stack(
        [
            2.0 * pi / (shear * g) * (1.0 + extra / shear),
            2.0 * pi / (mixed * g) * (1.0 + (1.0 - nu) * extra / mixed),
            2.0 * pi / (3.0 * g * np.sqrt(g) * spin),
            pi / 4.0 * (1.0 - nu * (big - 2.0) / spin),
        ],
        axis=-1,
    )
