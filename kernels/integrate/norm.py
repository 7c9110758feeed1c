"""Error norms: what "within tolerance" means.

SCALED  sqrt(mean((e_i / (atol_i + rtol max(|y_i|, |ynew_i|)))^2)), Hairer-Norsett-Wanner II.4 (4.11); the default.
MAXIMUM max_i |e_i| / (atol_i + rtol |ynew_i|), the `y` control of spec 3.3.
PUBLISHED ||e||_2 / eps with eps = atol_0: the plain 2-norm over mixed units of spec 3.5.

Every norm is 1 at the tolerance and NaN as soon as one component is not finite.
"""

import math
from typing import Any

import numpy as np

from railsweep.kernels.jit import plain_jit
from railsweep.kernels.lane import LANES, all_lanes, as_lanes, choose, lane_item, root, size

SCALED, MAXIMUM, PUBLISHED = range(3)


@plain_jit
def error_norm(kind: int, e: Any, y: Any, y_new: Any, rtol: float, atol: Any) -> float:
    """Size of the error estimate `e` of a step from y to y_new, in units of the tolerance; of one case or of lanes."""
    total = 0.0
    if kind == SCALED:
        for i in range(e.size):
            old, new = size(y[i]), size(y_new[i])
            r = e[i] / (atol[i] + rtol * choose(old > new, old, new))
            total += r * r
        return root(total / e.size)
    if kind == PUBLISHED:
        for i in range(e.size):
            total += e[i] * e[i]
        return root(total) / atol[0]
    finite = 0.0
    for i in range(e.size):
        r = size(e[i]) / (atol[i] + rtol * size(y_new[i]))
        total = choose(r > total, r, total)
        finite += r * 0.0  # the comparison drops NaN; this keeps it
    return total + finite


@plain_jit
def set_weights(kind: int, y: Any, rtol: float, atol: Any, weight: Any) -> None:
    """weight_i = 1 / tolerance_i, so that weighted_norm(kind, x, weight) is x in units of the tolerance."""
    if kind == PUBLISHED:
        for i in range(y.size):
            weight[i] = 1.0 / atol[0]
    else:
        for i in range(y.size):
            weight[i] = 1.0 / (atol[i] + rtol * abs(y[i]))


@plain_jit
def weighted_norm(kind: int, x: Any, weight: Any) -> float:
    """Norm of x under weights fixed for a step."""
    total = 0.0
    if kind == MAXIMUM:
        finite = 0.0
        for i in range(x.size):
            r = abs(x[i]) * weight[i]
            total = max(total, r)
            finite += r * 0.0
        return total + finite
    # eight sums side by side: one alone waits for each of its additions
    xs, weights = as_lanes(x), as_lanes(weight)
    even = odd = all_lanes(0.0)
    pairs = xs.size // 2
    for i in range(pairs):
        r, s = xs[2 * i] * weights[2 * i], xs[2 * i + 1] * weights[2 * i + 1]
        even, odd = even + r * r, odd + s * s
    even += odd
    total = (lane_item(even, 0) + lane_item(even, 1)) + (lane_item(even, 2) + lane_item(even, 3))
    for i in range(2 * LANES * pairs, x.size):
        total += (x[i] * weight[i]) ** 2
    if kind == PUBLISHED:
        return math.sqrt(total)
    return math.sqrt(total / x.size)


@plain_jit
def all_finite(x: Any) -> bool:
    """True when no component is inf or NaN."""
    finite = True
    for i in range(x.size):
        finite &= abs(x[i]) < np.inf  # no early return: this loop runs on whole vectors
    return finite
