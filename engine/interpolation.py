"""Build-time interpolation: the cubic of every interval, for contact tables and tabulated force laws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TABLE_METHODS = ("cubic", "linear", "akima")
LAW_METHODS = ("linear", "cubic", "akima", "monotone")


def cubic_pieces(x: Array, y: Array, method: str) -> Array:
    """Coefficients c[k, i] of y = sum_k c[k, i] (x - x_i)^k on interval i; y may carry leading axes: c[k, i, ...].

    `method` is linear, cubic (natural spline), akima or monotone (PCHIP, no overshoot).
    """
    from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator

    values = np.moveaxis(np.atleast_2d(y), -1, 0)
    if method == "linear" or x.size < 3:
        h = np.diff(x)[:, None]
        zero = np.zeros_like(values[:-1])
        return np.stack([values[:-1], np.diff(values, axis=0) / h, zero, zero])
    if method == "cubic":
        piecewise = CubicSpline(x, values, axis=0, bc_type="natural")
    elif method == "akima":
        piecewise = Akima1DInterpolator(x, values, axis=0)
    elif method == "monotone":
        piecewise = PchipInterpolator(x, values, axis=0)
    else:
        raise ValueError(f"unknown interpolation {method!r}")
    return np.ascontiguousarray(piecewise.c[::-1])


def piecewise_cubic(x: Array, columns: Array, method: str) -> Array:
    """Kernel layout (interval, power, column) on a uniform grid, in the local variable (x - x_i) / step."""
    pieces = cubic_pieces(x, columns, method)
    step = (x[-1] - x[0]) / (x.size - 1)
    scaled = pieces * (step ** np.arange(4))[:, None, None]
    return np.ascontiguousarray(scaled.transpose(1, 0, 2))
