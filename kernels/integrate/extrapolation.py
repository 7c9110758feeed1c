"""Linearly implicit extrapolation methods with variable order and step.

A basic step H is done with n_j substeps h = H/n_j, j = 1, 2, ..., with A = df/dy frozen at its start (M = I - hA):

EULER    (`seulex`)  M d_k = h f(t_k, y_k) + h^2 f_t,  y_{k+1} = y_k + d_k       n_j = 2, 3, 4, ...    (expansion in h)
MIDPOINT (`bsimp`)   M d_0 = h f(t_0, y_0) + h^2 f_t,  d_k = d_{k-1} + 2 M^-1 (h f(t_k, y_k) - d_{k-1}),
                     last: S = y_n + M^-1 (h f(t_n, y_n) - d_{n-1})      n_j = 2, 6, 10, ...   (expansion in h^2)

Midpoint is Bader & Deuflhard, Numer. Math. 41 (1983) 373 in increments, with their smoothing step S (spec 3.2.2-3.2.4:
the same numbers without products A y). Extrapolation by Aitken-Neville; order and step by minimal work per unit step
(Deuflhard 1983; Hairer-Norsett-Wanner II.9, Hairer-Wanner IV.9): column k is tried, accepted one column early when it
has converged, rejected when the expected convergence cannot be reached one column later.

Dense output: MIDPOINT extrapolates the value at the middle too (n_j/2 is odd for all j, so it has its own expansion in
h^2) and uses the quintic through values and slopes at 0, 1/2, 1; EULER the quintic through the last three nodes. Where
samples are wanted the next step is limited by the size of the quintic's last term.

A linear invariant w.y = const of the problem (w.f = 0, so w.A = 0) survives a substep only as well as the linear system
is solved: the rounding of a solve, u h |A| |d|, breaks it, no later step mends it, and a solution that decays by orders
of magnitude ends up as that rounding (problem E5). Newton methods solve for small corrections; here d is the whole
increment. Where h |A| exceeds REFINED_ABOVE every solve is therefore refined once with a residual in twofold precision,
and increments y_k - y_0, not values, are extrapolated: extrapolation multiplies rounding errors a thousand times.
"""

from typing import Any, NamedTuple

import numpy as np

from railsweep.kernels.integrate.call import borrowed, call_factor, call_solve
from railsweep.kernels.integrate.evaluate import evaluate, evaluate_jacobian, first_step
from railsweep.kernels.integrate.layout import (
    FIRST_STEP,
    FIXED_ORDER,
    FIXED_STEP,
    MAX_STAGE_FAILURES,
    MAX_STEP,
    N_ACCEPTED,
    N_FACTOR,
    N_NEWTON_FAILED,
    N_REJECTED,
    N_RESTART,
    N_SOLVE,
    N_STAGE_FAILED,
    NORM,
    OUTPUT,
    OUTPUT_SAMPLES,
    SEQUENCE,
    Result,
)
from railsweep.kernels.integrate.linear import twofold_residual
from railsweep.kernels.integrate.norm import all_finite, error_norm, set_weights, weighted_norm
from railsweep.kernels.integrate.output import (
    EVENT_OVERSHOOT,
    HALT,
    PASS,
    REPEAT,
    before,
    begin_output,
    halted,
    hermite,
    land,
    next_target,
    settle,
    smallest_step,
    wants_dense,
)
from railsweep.kernels.integrate.vector import copy
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.status import EVENT, NEWTON_FAILED, NOT_FINITE, OK, STEP_UNDERFLOW

EULER, MIDPOINT = range(2)

# Work of a Jacobian, a factorisation and a solve in units of one right-hand side (Hairer's defaults).
WORK_JACOBIAN, WORK_FACTOR, WORK_SOLVE = 5.0, 1.0, 1.0
# Step from the error of a column: h (SAFE_1/err)^(1/q) SAFE_2.
SAFE_1, SAFE_2 = 0.65, 0.94
SHRINK_MOST, GROW_MOST = 0.1, 10.0
# Order decreases when the lower column is cheaper by this factor, increases when the last one was.
PREFER_LOWER, PREFER_HIGHER = 0.8, 0.9
# The Jacobian is kept while the relative change of the increments it does not explain is below this (and below rtol).
JACOBIAN_KEPT = 1e-4
# Largest last term of the quintic dense output, in units of the tolerance; it overestimates the error of the quintic.
INTERPOLATION_LIMIT = 10.0
# h |A| (largest row sum) above which a solve is refined: it has lost three digits.
REFINED_ABOVE = 1e3
# Above this the increments grow within the first column: the basic step is too long.
UNSTABLE = 1.0


class Extrapolation(NamedTuple):
    """Step numbers n_1, n_2, ... of a sequence."""

    steps: Any  # int64[columns]


@plain_jit
def extrapolate(kind: int, steps: Any, j: int, table: Any) -> None:
    """Aitken-Neville: table[0] holds T_jj afterwards, table[1] T_j,j-1; table[m] = T_(j, j-m) before as after."""
    n = table.shape[1]
    # table[m] held T_(j-1, m) and `table[-1]` the new T_(j, 0).
    last = table.shape[0] - 1
    for m in range(1, j + 1):
        ratio = steps[j] / steps[j - m]
        divisor = (ratio * ratio if kind == MIDPOINT else ratio) - 1.0
        for i in range(n):
            new = table[last, i] + (table[last, i] - table[m - 1, i]) / divisor
            table[m - 1, i] = table[last, i]
            table[last, i] = new
    copy(table[last], table[j])


@plain_jit
def quintic_middle(y0: Any, f0: Any, ym: Any, fm: Any, y1: Any, f1: Any, h: float, q: Any) -> None:
    """Quintic through values and slopes at s = 0, 1/2, 1: the cubic plus s^2 (1-s)^2 (a + b s)."""
    hermite(y0, f0, y1, f1, h, q)
    for i in range(y0.size):
        miss = ym[i] - (q[0, i] + 0.5 * (q[1, i] + 0.5 * (q[2, i] + 0.5 * q[3, i])))
        slope = h * fm[i] - (q[1, i] + q[2, i] + 0.75 * q[3, i])
        b = 16.0 * slope
        a = 16.0 * miss - 0.5 * b
        add_quintic(q, i, a, b)


@plain_jit
def add_quintic(q: Any, i: int, a: float, b: float) -> None:
    """q <- q + s^2 (1 - s)^2 (a + b s) = a s^2 + (b - 2a) s^3 + (a - 2b) s^4 + b s^5."""
    q[2, i] += a
    q[3, i] += b - 2.0 * a
    q[4, i] = a - 2.0 * b
    q[5, i] = b


@plain_jit
def quintic_previous(ya: Any, fa: Any, r: float, y0: Any, f0: Any, y1: Any, f1: Any, h: float, q: Any) -> None:
    """Quintic through values and slopes at s = -r (the node before), 0, 1."""
    hermite(y0, f0, y1, f1, h, q)
    w = (r * (1.0 + r)) ** 2
    dw = -2.0 * r * (1.0 + r) * (1.0 + 2.0 * r)
    for i in range(y0.size):
        miss = ya[i] - (q[0, i] - r * (q[1, i] - r * (q[2, i] - r * q[3, i])))
        slope = h * fa[i] - (q[1, i] - r * (2.0 * q[2, i] - r * 3.0 * q[3, i]))
        # w (a - b r) = miss; dw (a - b r) + w b = slope.
        at = miss / w
        b = (slope - dw * at) / w
        add_quintic(q, i, at + b * r, b)


@plain_jit
def solve_increment(problem: Any, jacobian: Any, h: float, refined: bool, d: Any, work: Any, counters: Any) -> None:
    """d <- M^-1 d with M = I - hA, refined once if wanted; `work` has two rows."""
    if refined:
        copy(d, work[0])
    call_solve(problem.calls, problem.linear_reals, problem.linear_wholes, d)
    counters[N_SOLVE] += 1
    if refined:
        twofold_residual(jacobian, h, work[0], d, work[1])
        call_solve(problem.calls, problem.linear_reals, problem.linear_wholes, work[1])
        counters[N_SOLVE] += 1
        for i in range(d.size):
            d[i] += work[1, i]


@plain_jit
def column(
    problem: Any,
    kind: int,
    t: float,
    y: Any,
    f: Any,
    f_t: Any,
    step: float,
    count: int,
    jacobian: Any,
    size: float,
    weight: Any,
    norm: int,
    x: Any,
    d: Any,
    slope: Any,
    middle: Any,
    work: Any,
    counters: Any,
) -> tuple[int, float]:
    """x <- increment of the basic step with `count` substeps; (status, growth of increments that A does not explain).

    `middle` receives the increment at half the step (MIDPOINT), `size` is the largest row sum of |A|, `work` has three
    rows.
    """
    n = y.size
    h = step / count
    refined = abs(h) * size > REFINED_ABOVE
    counters[N_FACTOR] += 1
    if call_factor(problem.calls, jacobian, h, problem.linear_reals, problem.linear_wholes) != 0:
        return NOT_FINITE, 0.0
    for i in range(n):
        d[i] = h * (f[i] + h * f_t[i])
    solve_increment(problem, jacobian, h, refined, d, work, counters)
    first = weighted_norm(norm, d, weight)
    growth = 0.0
    trial = work[2]
    copy(d, x)
    for k in range(1, count + 1):
        if kind == MIDPOINT and 2 * k == count:
            copy(x, middle)
        if kind == EULER and k == count:
            break
        for i in range(n):
            trial[i] = y[i] + x[i]
        status = evaluate(problem, t + k * h, trial, slope, counters)
        if status != OK:
            return status, growth
        if kind == EULER:
            for i in range(n):
                slope[i] = h * (slope[i] + h * f_t[i])
            if k == 1 and count == 2:
                # M^-1 (h f(y_1) - d_0) measures what A misses; solved once, in the first column only.
                for i in range(n):
                    middle[i] = slope[i] - d[i]
                solve_increment(problem, jacobian, h, False, middle, work, counters)
                growth = weighted_norm(norm, middle, weight) / max(first, 1e-300)
            solve_increment(problem, jacobian, h, refined, slope, work, counters)
            for i in range(n):
                x[i] += slope[i]
        else:
            for i in range(n):
                slope[i] = h * slope[i] - d[i]
            solve_increment(problem, jacobian, h, refined, slope, work, counters)
            if k == 1:
                growth = weighted_norm(norm, slope, weight) / max(first, 1e-300)
            if k < count:
                for i in range(n):
                    d[i] += 2.0 * slope[i]
                    x[i] += d[i]
            else:
                for i in range(n):
                    x[i] += slope[i]
    return OK, growth


@jit
def drive_extrapolation(
    problem: Any, sequence: Any, settings: Any, output: Any, t: float, t_end: float, y_start: Any
) -> Any:
    """Integrate from t to t_end. FIXED_ORDER k with FIXED_STEP uses exactly k columns (order tests)."""
    problem, settings = borrowed(problem), borrowed(settings)
    n = y_start.size
    steps = sequence.steps
    columns = steps.size
    reals = settings.reals
    wholes = settings.wholes
    counters = output.counters
    kind = wholes[SEQUENCE]
    norm = wholes[NORM]
    direction = 1.0 if t_end >= t else -1.0
    fixed = reals[FIXED_STEP]
    sampled = wholes[OUTPUT] == OUTPUT_SAMPLES or settings.event_direction.size > 0

    y = y_start.copy()
    f = np.empty(n)
    f_t = np.empty(n)
    table = np.zeros((columns + 2, n))
    middles = np.zeros((columns + 2, n))
    y_new = np.empty(n)
    f_new = np.empty(n)
    f_middle = np.empty(n)
    y_before = np.empty(n)
    f_before = np.empty(n)
    e = np.empty(n)
    d = np.empty(n)
    slope = np.empty(n)
    x = np.empty(n)
    middle = np.empty(n)
    diagonal = np.empty(n)
    weight = np.empty(n)
    jacobian = np.zeros((n, n))
    work_rows = np.empty((3, n))
    q = np.zeros((6, n))
    row = np.empty(n)
    g = np.zeros((4, settings.event_direction.size))
    kept = begin_output(problem, settings, output, t, y, g, q, row, direction)

    # Work up to column j, optimal step and work per unit step of column j.
    cost = np.zeros(columns)
    wish = np.zeros(columns)
    price = np.zeros(columns)
    total = WORK_JACOBIAN
    for j in range(columns):
        total += WORK_FACTOR + steps[j] * (1.0 + WORK_SOLVE)
        cost[j] = total

    status = evaluate(problem, t, y, f, counters)
    if status == OK and not all_finite(f):
        status = NOT_FINITE
    h = 0.0
    limit = min(reals[MAX_STEP], abs(t_end - t))
    if status == OK and t != t_end:
        if fixed > 0.0:
            h = direction * fixed
        elif reals[FIRST_STEP] > 0.0:
            h = direction * min(reals[FIRST_STEP], limit)
        else:
            h = direction * first_step(problem, t, y, f, direction, limit, 2, work_rows, counters)
    top = columns - 2
    digits = -np.log10(max(problem.rtol, 1e-14) + 1e-40)
    target_column = int(0.6 * digits + 0.5) if kind == EULER else int(0.4 * digits + 0.5)
    k = max(1, min(top - 1, target_column))
    fixed_column = wholes[FIXED_ORDER] - 1
    first = True
    rejected = False
    failures = 0
    unstable = 0
    renew = True
    fresh = False
    size = 0.0
    h_before = 0.0

    while status == OK and t != t_end:
        settings.control[1] = t
        status = halted(settings, counters)
        if status != OK:
            break
        if abs(h) < smallest_step(settings, t):
            status = NEWTON_FAILED if unstable > 0 else STEP_UNDERFLOW
            break
        target = next_target(t, t_end, settings.stops, direction)
        step, lands = land(t, h, target)
        at_stop = lands and target != t_end
        if at_stop:
            step = before(target, t) - t
        set_weights(norm, y, problem.rtol, problem.atol, weight)
        failed = OK
        if renew:
            failed = evaluate_jacobian(problem, t, y, f, step, jacobian, work_rows, counters)
            renew = False
            fresh = True
            size = 0.0
            for i in range(n):
                total = 0.0
                for m in range(n):
                    total += abs(jacobian[i, m])
                size = max(size, total)
        nudge = 1e-7 * step
        if failed == OK:
            failed = evaluate(problem, t + nudge, y, f_t, counters)
            for i in range(n):
                f_t[i] = (f_t[i] - f[i]) / nudge

        reached = -1
        growth = 0.0
        error = np.inf
        give_up = False
        for j in range(columns):
            if failed != OK:
                break
            failed, ratio = column(
                problem,
                kind,
                t,
                y,
                f,
                f_t,
                step,
                steps[j],
                jacobian,
                size,
                weight,
                norm,
                x,
                d,
                slope,
                middle,
                work_rows,
                counters,
            )
            if failed == OK and not all_finite(x):
                failed = NOT_FINITE
            if failed != OK:
                break
            if j == 0:
                growth = ratio
                if fixed == 0.0 and growth > UNSTABLE:
                    break
            table[columns + 1] = x
            if j > 0:
                diagonal[:] = table[j - 1]
            extrapolate(kind, steps, j, table)
            if kind == MIDPOINT and sampled:
                middles[columns + 1] = middle
                extrapolate(kind, steps, j, middles)
            if fixed_column >= 0:
                if j == fixed_column:
                    reached = j
                    break
                continue
            if j == 0:
                continue
            for i in range(n):
                # MIDPOINT: the last two diagonal entries (spec 3.2.6). On stiff problems T_j,j-1 shares the error of
                # T_jj, and their difference can be small by chance.
                e[i] = table[j, i] - (diagonal[i] if kind == MIDPOINT else table[j - 1, i])
                y_new[i] = y[i] + table[j, i]
            error = error_norm(norm, e, y, y_new, problem.rtol, problem.atol)
            if not np.isfinite(error):
                failed = NOT_FINITE
                break
            # T_j,j-1 and T_j-1,j-1 have j columns: order 2j - 1 (midpoint) or j, local error one more.
            exponent = 1.0 / (2 * j) if kind == MIDPOINT else 1.0 / (j + 1)
            factor = SAFE_2 * (SAFE_1 / max(error, 1e-30)) ** exponent
            factor = min(max(factor, SHRINK_MOST), GROW_MOST)
            wish[j] = min(abs(step) * factor, reals[MAX_STEP])
            price[j] = cost[j] / wish[j]
            power = 2.0 if kind == MIDPOINT else 1.0
            if fixed > 0.0:
                if j == k:
                    reached = j
                    break
                continue
            if error <= 1.0 and (j >= k - 1 or first or lands):
                reached = j
                break
            # What the next columns can still gain: (n_{j+1}/n_1)^power each.
            if j == k - 1 and not first:
                if error > (steps[k + 1] * steps[k] / (steps[0] * steps[0])) ** power:
                    give_up = True
            elif j == k:
                if error > (steps[k + 1] / steps[0]) ** power:
                    give_up = True
            elif j >= k + 1:
                give_up = True
            if give_up:
                reached = j
                break

        if failed != OK:
            counters[N_STAGE_FAILED] += 1
            failures += 1
            if failures > MAX_STAGE_FAILURES or fixed > 0.0:
                status = failed
                break
            h = 0.5 * step
            rejected = True
            if abs(h) < smallest_step(settings, t):
                status = failed
            continue
        if reached < 0:
            counters[N_NEWTON_FAILED] += 1
            unstable += 1
            # An old Jacobian may be the reason; otherwise the step is.
            if fresh:
                h = 0.5 * step
            renew = not fresh
            rejected = True
            continue
        if fixed == 0.0 and not error <= 1.0:
            counters[N_REJECTED] += 1
            best = max(1, min(reached, k))
            if best > 1 and price[best - 1] < PREFER_LOWER * price[best]:
                best -= 1
            k = best
            h = direction * min(wish[best], 0.9 * abs(step))
            rejected = True
            renew = not fresh
            continue

        t_new = target if lands else t + step
        for i in range(n):
            y_new[i] = y[i] + table[reached, i]
        failed = evaluate(problem, t + step if at_stop else t_new, y_new, f_new, counters)
        if failed != OK or not all_finite(f_new):
            counters[N_STAGE_FAILED] += 1
            failures += 1
            h = 0.5 * step
            rejected = True
            if failures > MAX_STAGE_FAILURES or abs(h) < smallest_step(settings, t):
                status = failed if failed != OK else NOT_FINITE
            continue
        interpolation = 0.0
        if wants_dense(problem, settings, kept[0], kept[2], t_new, y_new, g[0], g[1], direction):
            if kind == MIDPOINT:
                for i in range(n):
                    middle[i] = y[i] + middles[reached, i]
                status = evaluate(problem, t + 0.5 * step, middle, f_middle, counters)
                if status != OK:
                    break
                quintic_middle(y, f, middle, f_middle, y_new, f_new, step, q)
            elif h_before != 0.0:
                quintic_previous(y_before, f_before, h_before / step, y, f, y_new, f_new, step, q)
            else:
                hermite(y, f, y_new, f_new, step, q)
                q[4] = 0.0
                q[5] = 0.0
            # s^2 (1-s)^2 <= 1/16: the size of the last term of the quintic.
            for i in range(n):
                e[i] = q[5, i] / 32.0
            interpolation = error_norm(norm, e, y, y_new, problem.rtol, problem.atol)
            if interpolation > INTERPOLATION_LIMIT and fixed == 0.0:
                # The step stands but its dense output does not: samples are worth as much as steps.
                counters[N_REJECTED] += 1
                h = step * max(0.2, 0.9 * interpolation ** (-1.0 / 6.0))
                rejected = True
                continue
        y_before[:] = y
        verdict, t_new, kept = settle(
            problem, settings, output, kept, q, 5, t, step, t, t_new, y_new, g, row, direction, True
        )
        if verdict == REPEAT:
            h = (t_new - t) * (1.0 + EVENT_OVERSHOOT)
            continue
        counters[N_ACCEPTED] += 1
        failures = 0
        unstable = 0
        renew = growth > min(JACOBIAN_KEPT, problem.rtol)
        fresh = False

        if fixed == 0.0:
            c = reached
            if c == 1:
                best = 1 if rejected else min(2, top - 1)
                if best == 2 and price[1] >= PREFER_HIGHER * cost[1] / abs(step) and not first:
                    best = 2
            elif c <= k:
                best = c
                if price[c - 1] < PREFER_LOWER * price[c]:
                    best = c - 1
                elif price[c] < PREFER_HIGHER * price[c - 1]:
                    best = min(c + 1, top - 1)
            else:
                best = c - 1
                if c > 2 and price[c - 2] < PREFER_LOWER * price[c - 1]:
                    best = c - 2
                if price[c] < PREFER_HIGHER * price[best]:
                    best = min(c, top - 1)
            if rejected:
                best = max(1, min(best, c))
                h = direction * min(abs(step), wish[best])
            elif best <= c:
                h = direction * wish[best]
            else:
                h = direction * wish[c] * cost[best] / cost[c]
            k = max(1, best)
            if interpolation > 1.0:
                h = direction * min(abs(h), abs(step) * max(0.3, 0.9 * interpolation ** (-1.0 / 6.0)))
            h = direction * min(abs(h), reals[MAX_STEP])
        first = False
        rejected = False
        f_before[:] = f
        h_before = step
        t = t_new
        y[:] = y_new
        f[:] = f_new
        if verdict == HALT:
            status = EVENT
            break
        if verdict != PASS or at_stop:
            h_before = 0.0
            renew = True
            first = True
            if t != t_end:
                counters[N_RESTART] += 1
                status = evaluate(problem, t, y, f, counters)
    settings.control[1] = t
    return Result(status, t, h, y, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5])
