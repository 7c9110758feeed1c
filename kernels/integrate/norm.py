"""Error norms: what "within tolerance" means.

SCALED  sqrt(mean((e_i / (atol_i + rtol max(|y_i|, |ynew_i|)))^2)), Hairer-Norsett-Wanner II.4 (4.11); the default.
MAXIMUM max_i |e_i| / (atol_i + rtol |ynew_i|), the `y` control of spec 3.3.
PUBLISHED ||e||_2 / eps with eps = atol_0: the plain 2-norm over mixed units of spec 3.5.

Every norm is 1 at the tolerance and NaN as soon as one component is not finite.
"""

import math
from typing import Any

from railsweep.kernels.jit import plain_jit

SCALED, MAXIMUM, PUBLISHED = range(3)


@plain_jit
def error_norm(kind: int, e: Any, y: Any, y_new: Any, rtol: float, atol: Any) -> float:
    """Size of the error estimate `e` of a step from y to y_new, in units of the tolerance."""
    total = 0.0
    if kind == SCALED:
        for i in range(e.size):
            r = e[i] / (atol[i] + rtol * max(abs(y[i]), abs(y_new[i])))
            total += r * r
        return math.sqrt(total / e.size)
    if kind == PUBLISHED:
        for i in range(e.size):
            total += e[i] * e[i]
        return math.sqrt(total) / atol[0]
    finite = 0.0
    for i in range(e.size):
        r = abs(e[i]) / (atol[i] + rtol * abs(y_new[i]))
        total = max(total, r)
        finite += r * 0.0  # max drops NaN; this keeps it
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
    for i in range(x.size):
        r = x[i] * weight[i]
        total += r * r
    if kind == PUBLISHED:
        return math.sqrt(total)
    return math.sqrt(total / x.size)


@plain_jit
def all_finite(x: Any) -> bool:
    """True when no component is inf or NaN."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * 0.0
    return total == 0.0
