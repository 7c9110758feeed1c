"""Simplified Newton iteration for Y = base + g f(t, Y), the one equation behind every implicit stage here.

    (I - g_0 J) delta = base + g f(t, Y) - Y,    Y <- Y + omega delta,    omega = 2 / (1 + g/g_0)

g_0 is the value at the last factorisation; omega corrects for the difference (Hindmarsh 1980). The rate theta is the
ratio of successive corrections, damped like VODE's: theta <- max(0.3 theta, |delta_m| / |delta_m-1|). The remaining
error is estimated as min(1, theta) |delta| and must fall below `tolerance` (in units of the error tolerance).

PUBLISHED rule (spec 3.5): stop at |delta| <= 0.01 eps regardless of the rate; diverged when the ratio exceeds 0.75 or
when the ratio cannot reach the goal within 20 iterations; STALE when it lies between 0.65 and 0.75.
"""

from typing import Any

import numpy as np

from railsweep.kernels.integrate.call import call_solve
from railsweep.kernels.integrate.evaluate import evaluate
from railsweep.kernels.integrate.layout import N_SOLVE, NEWTON_PUBLISHED
from railsweep.kernels.integrate.norm import weighted_norm
from railsweep.kernels.jit import plain_jit
from railsweep.kernels.status import NOT_FINITE, OK

CONVERGED, DIVERGED, STALE, REFUSED = range(4)

RATE_DAMPING = 0.3
ROUNDING = 16.0 * 2.220446049250313e-16

PUBLISHED_TOLERANCE = 0.01
PUBLISHED_DIVERGED = 0.75
PUBLISHED_STALE = 0.65
PUBLISHED_ITERATIONS = 20


@plain_jit
def at_rounding(delta: Any, y: Any) -> bool:
    """True when the correction is rounding noise: no iteration can do better, whatever the tolerance asks."""
    for i in range(y.size):  # noqa: SIM110 - a generator does not compile
        if abs(delta[i]) > ROUNDING * abs(y[i]) + 1e-300:
            return False
    return True


@plain_jit
def newton(
    problem: Any,
    rule: int,
    t: float,
    y: Any,
    base: Any,
    g: float,
    relaxation: float,
    norm: int,
    weight: Any,
    tolerance: float,
    iterations: int,
    divergence: float,
    rate: float,
    f_known: bool,
    f: Any,
    delta: Any,
    counters: Any,
) -> tuple[int, int, float, float]:
    """Iterate y in place; `f_known` says that f already holds f(t, y).

    Returns (outcome, status of the right-hand side, rate to carry on, worst ratio).
    """
    n = y.size
    before = 0.0
    worst = 0.0
    for m in range(iterations):
        if m > 0 or not f_known:
            status = evaluate(problem, t, y, f, counters)
            if status != OK:
                return REFUSED, status, rate, worst
        for i in range(n):
            delta[i] = base[i] + g * f[i] - y[i]
        call_solve(problem.calls, problem.linear_reals, problem.linear_wholes, delta)
        counters[N_SOLVE] += 1
        if relaxation != 1.0:
            for i in range(n):
                delta[i] *= relaxation
        size = weighted_norm(norm, delta, weight)
        if not np.isfinite(size):
            return REFUSED, NOT_FINITE, rate, worst
        for i in range(n):
            y[i] += delta[i]
        ratio = 0.0
        if m > 0 and before > 0.0:
            ratio = size / before
            worst = max(worst, ratio)
            rate = max(RATE_DAMPING * rate, ratio)
        if rule == NEWTON_PUBLISHED:
            if size <= PUBLISHED_TOLERANCE:
                return CONVERGED, OK, rate, worst
            if m > 0:
                if ratio > PUBLISHED_DIVERGED:
                    return DIVERGED, OK, rate, worst
                if m > 1 and size * ratio ** (PUBLISHED_ITERATIONS - m) > PUBLISHED_TOLERANCE:
                    return DIVERGED, OK, rate, worst
                if ratio > PUBLISHED_STALE:
                    return STALE, OK, rate, worst
        else:
            if size * min(1.0, rate) <= tolerance:
                return CONVERGED, OK, rate, worst
            if m > 0 and ratio > RATE_DAMPING and at_rounding(delta, y):
                return CONVERGED, OK, rate, worst
            if m > 0 and ratio > divergence:
                return DIVERGED, OK, rate, worst
            # Converging, but not within the iterations that are left.
            if m > 0 and ratio < 1.0 and size * ratio ** (iterations - m) / (1.0 - ratio) > 10.0 * tolerance:
                return DIVERGED, OK, rate, worst
        before = size
    return DIVERGED, OK, rate, worst
