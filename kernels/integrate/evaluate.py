"""Counted evaluations of the problem: right-hand side and Jacobian."""

from typing import Any

import numpy as np

from railsweep.kernels.integrate.call import JACOBIAN, RAISED, RHS, call_function, call_jacobian
from railsweep.kernels.integrate.layout import N_JACOBIAN, N_JACOBIAN_RHS, N_RHS
from railsweep.kernels.jit import plain_jit
from railsweep.kernels.status import NOT_FINITE

UNIT = 2.220446049250313e-16
SQRT_UNIT = 1.4901161193847656e-08


@plain_jit
def evaluate(problem: Any, t: float, y: Any, out: Any, counters: Any) -> int:
    """out <- f(t, y); the problem's status. A right-hand side that raised counts as not finite."""
    counters[N_RHS] += 1
    status = call_function(problem.calls, RHS, t, y, out)
    return NOT_FINITE if status == RAISED else status


@plain_jit
def evaluate_jacobian(problem: Any, t: float, y: Any, f: Any, h: float, out: Any, work: Any, counters: Any) -> int:
    """out <- df/dy at (t, y), where f = f(t, y) is known: the problem's own, or forward differences.

    The increment of column j is max(sqrt(u)|y_j|, 1000 |h| u n ||f|| tol_j) (Hindmarsh 1980, LSODE): large enough to
    stand out of the rounding of f, small against what the tolerance can see. Columns of one group, which share no
    row of the pattern, are moved together (Curtis, Powell & Reid 1974).
    """
    counters[N_JACOBIAN] += 1
    if problem.calls[JACOBIAN] != 0:
        status = call_jacobian(problem.calls, t, y, out)
        return NOT_FINITE if status == RAISED else status
    n = y.size
    y_moved = work[0]
    f_moved = work[1]
    increment = work[2]
    total = 0.0
    for i in range(n):
        r = f[i] / (problem.atol[i] + problem.rtol * abs(y[i]))
        total += r * r
    floor = 1000.0 * abs(h) * UNIT * n * np.sqrt(total / n)
    if floor == 0.0:
        floor = 1.0
    groups = 0
    for j in range(n):
        y_moved[j] = y[j]
        d = max(SQRT_UNIT * abs(y[j]), floor * (problem.atol[j] + problem.rtol * abs(y[j])))
        if d == 0.0:
            d = SQRT_UNIT
        increment[j] = (y[j] + d) - y[j]
        groups = max(groups, problem.column_group[j] + 1)
    structured = problem.pattern.shape[0] == n
    if structured:
        out[:] = 0.0
    for g in range(groups):
        for j in range(n):
            if problem.column_group[j] == g:
                y_moved[j] = y[j] + increment[j]
        counters[N_JACOBIAN_RHS] += 1
        status = call_function(problem.calls, RHS, t, y_moved, f_moved)
        if status != 0:
            return NOT_FINITE if status == RAISED else status
        for j in range(n):
            if problem.column_group[j] == g:
                y_moved[j] = y[j]
                inverse = 1.0 / increment[j]
                if structured:
                    for i in range(n):
                        if problem.pattern[i, j] != 0:
                            out[i, j] = (f_moved[i] - f[i]) * inverse
                else:
                    for i in range(n):
                        out[i, j] = (f_moved[i] - f[i]) * inverse
    return 0


@plain_jit
def first_step(
    problem: Any, t: float, y: Any, f: Any, direction: float, limit: float, order: int, work: Any, counters: Any
) -> float:
    """Initial step from the sizes of y, f and a difference of f: Hairer-Norsett-Wanner II.4, at most `limit`."""
    n = y.size
    size_y = 0.0
    size_f = 0.0
    for i in range(n):
        w = 1.0 / (problem.atol[i] + problem.rtol * abs(y[i]))
        size_y += (y[i] * w) ** 2
        size_f += (f[i] * w) ** 2
    size_y = np.sqrt(size_y / n)
    size_f = np.sqrt(size_f / n)
    h0 = 1e-6 if size_y < 1e-5 or size_f < 1e-5 else 0.01 * size_y / size_f
    h0 = min(h0, limit)
    trial = work[0]
    f_trial = work[1]
    size_d = np.inf
    # A trial point the problem refuses (or that blows up) is too far away.
    for _ in range(60):
        for i in range(n):
            trial[i] = y[i] + direction * h0 * f[i]
        status = evaluate(problem, t + direction * h0, trial, f_trial, counters)
        total = 0.0
        for i in range(n):
            w = 1.0 / (problem.atol[i] + problem.rtol * abs(y[i]))
            total += ((f_trial[i] - f[i]) * w) ** 2
        size_d = np.sqrt(total / n) / h0
        if status == 0 and np.isfinite(size_d):
            break
        h0 *= 0.1
    if not np.isfinite(size_d):
        return h0
    strongest = max(size_f, size_d)
    h1 = max(1e-6, h0 * 1e-3) if strongest <= 1e-15 else (0.01 / strongest) ** (1.0 / (order + 1))
    return min(100.0 * h0, h1, limit)
