"""Step-size controllers: from error norms (1 = tolerance) to the factor on the step.

With k = order of the error estimate + 1 and e_n the norm of step n:

ELEMENTARY            h <- S e^(-1/k) h
PI                    h <- S e^(-0.7/k) e_prev^(0.4/k) h                     Gustafsson 1991; Hairer-Wanner IV.2
H211B (b = 4)         h <- S (e e_prev)^(-1/(4k)) (h/h_prev)^(-1/4) h        Soederlind 2003, digital filter
PREDICTIVE            h <- min(1, (h/h_prev) (e_prev/e)^(1/k)) S e^(-1/k) h  Gustafsson 1994; Hairer-Wanner IV.8 (8.25):
                      the trend of the error goes on, so a step that will have to shrink shrinks before it fails
PUBLISHED_ELEMENTARY  spec 3.3 {3.22-3.27}: reject above 1.1, grow below 0.5, otherwise keep
PUBLISHED_PI          spec 3.5 {3.31-3.34}: reject above 1.2 with e^-0.2, else (1/e)^(0.3/q) (e_prev/e)^(0.4/q) <= 2;
                      e_prev is the error of the previous attempt, rejected or not (the driver's business)
"""

from railsweep.kernels.jit import plain_jit

ELEMENTARY, PI, H211B, PUBLISHED_ELEMENTARY, PUBLISHED_PI, PREDICTIVE = range(6)

# Error floor of the published controller; also keeps powers finite when the error vanishes.
ERROR_FLOOR = 2.220446049250313e-16


@plain_jit
def acceptable(kind: int, error: float) -> bool:
    """Does the step stand? NaN never does."""
    if kind == PUBLISHED_PI:
        return error <= 1.2
    if kind == PUBLISHED_ELEMENTARY:
        return error <= 1.1
    return error <= 1.0


@plain_jit
def factor_rejected(kind: int, error: float, order: int, safety: float, smallest: float) -> float:
    """Factor on h after an error test failure; `order` is that of the error estimate."""
    if kind == PUBLISHED_PI:
        return error**-0.2
    if kind == PUBLISHED_ELEMENTARY:
        return max(0.2, 0.9 / error ** (1.0 / order))
    return max(smallest, safety * error ** (-1.0 / (order + 1)))


@plain_jit
def factor_accepted(
    kind: int,
    error: float,
    error_before: float,
    ratio_before: float,
    order: int,
    safety: float,
    smallest: float,
    largest: float,
) -> float:
    """Factor on h after an accepted step; `error_before` <= 0 means there is none (first step)."""
    e = max(error, ERROR_FLOOR)
    k = order + 1.0
    if kind == PUBLISHED_PI:
        # q is the order of the embedded method, one above the advancing one; here `order` counts the latter.
        q = order + 1.0
        if error_before <= 0.0:
            alpha = e ** (-0.3 / q)
        else:
            alpha = e ** (-0.3 / q) * (max(error_before, ERROR_FLOOR) / e) ** (0.4 / q)
        return min(alpha, 2.0)
    if kind == PUBLISHED_ELEMENTARY:
        if e >= 0.5:
            return 1.0
        return min(max(0.9 / e ** (1.0 / k), 1.0), 5.0)
    if kind == ELEMENTARY or error_before <= 0.0:
        factor = safety * e ** (-1.0 / k)
    elif kind == PI:
        factor = safety * e ** (-0.7 / k) * max(error_before, 1e-4) ** (0.4 / k)
    elif kind == PREDICTIVE:
        trend = ratio_before * (max(error_before, 1e-2) / e) ** (1.0 / k)
        factor = safety * e ** (-1.0 / k) * min(trend, 1.0)
    else:
        factor = safety * (e * max(error_before, ERROR_FLOOR)) ** (-0.25 / k) * ratio_before**-0.25
    return min(max(factor, smallest), largest)
