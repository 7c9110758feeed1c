"""Radau IIA of order 5, fully implicit and stiffly accurate (Hairer-Wanner IV.5, IV.8; Hairer & Wanner 1999).

    Z_i = h sum_j a_ij f(t_n + c_j h, y_n + Z_j),   y_{n+1} = y_n + Z_3

Simplified Newton in W = T^-1 Z, where the Newton matrix falls apart into a real and a complex system of size n:
    (I - h/gamma J) dW_1 = h/gamma (T^-1 F)_1 - W_1
    (I - g J)(dW_2 + i dW_3) = g (T^-1 F)_{2+3i} - W_{2+3i},   g = h/(alpha + i beta)
It starts from the collocation polynomial of the last step, extrapolated. That polynomial is the dense output (order 3).

Error e = (I - h/gamma J)^-1 (h/gamma f(t_n, y_n) + sum e_i Z_i), of order 3 and bounded for stiff components; where it
is too large on a first step or after a rejection, f is taken at y_n + e instead, which also makes it vanish for them.
The slope f(t_n, y_n) of a later step is that of the last collocation polynomial at its end: the stage equation makes it
f(t_n, y_n) up to Newton's error, not multiplied by lambda.
"""

from typing import Any, NamedTuple

import numpy as np

from railsweep.kernels.integrate.call import (
    JACOBIAN,
    borrowed,
    call_factor,
    call_factor_complex,
    call_solve,
    call_solve_complex,
)
from railsweep.kernels.integrate.controller import acceptable, factor_accepted, factor_rejected
from railsweep.kernels.integrate.evaluate import UNIT, evaluate, evaluate_jacobian, first_step
from railsweep.kernels.integrate.layout import (
    CONTROLLER,
    FIRST_STEP,
    FIXED_STEP,
    MAX_FACTOR,
    MAX_NEWTON,
    MAX_STAGE_FAILURES,
    MAX_STEP,
    MIN_FACTOR,
    N_ACCEPTED,
    N_FACTOR,
    N_NEWTON_FAILED,
    N_REJECTED,
    N_RESTART,
    N_SOLVE,
    N_STAGE_FAILED,
    NEWTON_KAPPA,
    NORM,
    SAFETY,
    Result,
)
from railsweep.kernels.integrate.newton import CONVERGED, DIVERGED, REFUSED, ROUNDING
from railsweep.kernels.integrate.norm import all_finite, error_norm, set_weights, weighted_norm
from railsweep.kernels.integrate.output import (
    APPROACH_PIECES,
    EVENT_OVERSHOOT,
    HALT,
    LOOKOUT_PIECES,
    PASS,
    REPEAT,
    approach,
    before,
    begin_output,
    breaks,
    change_pace,
    halted,
    is_crossing,
    land,
    next_target,
    settle,
    smallest_step,
    wants_dense,
)
from railsweep.kernels.integrate.vector import copy
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.status import EVENT, NEWTON_FAILED, NOT_FINITE, OK, STEP_UNDERFLOW

# The Jacobian is renewed after a step that took more iterations than the first at a ratio above the second.
JACOBIAN_ITERATIONS, JACOBIAN_RATIO = 2, 1e-3
JACOBIAN_AGE = 50
# A step factor between these is not used: both LUs stay valid. The predictive controller often asks for a trifle less
# than the step it has; following it costs up to four times the factorisations (van der Pol at 1e-10) for no digits.
KEEP_LOW, KEEP_HIGH = 0.95, 1.2
NEWTON_DIVERGENCE = 0.99
# A rate known from the step before is trusted less than one measured in this step (Hairer-Wanner IV.8).
RATE_MEMORY = 0.8


class RadauTableau(NamedTuple):
    """Coefficients; b is the last row of a."""

    a: Any  # (3, 3)
    c: Any  # (3,)
    t: Any  # (3, 3)
    t_inverse: Any  # (3, 3)
    error: Any  # (3,), weights of z beside h/gamma f(t_n, y_n)
    dense: Any  # (3, 3), powers 1 to 3 of s by rows
    slope: Any  # (3,), weights of z in h f(t_{n+1}, y_{n+1}): the last row of the inverse of a
    gamma: float
    alpha: float
    beta: float
    order: int
    error_order: int


@plain_jit
def weigh(weights: Any, z: Any, out: Any) -> None:
    """out <- sum_j weights_j z_j."""
    for i in range(out.size):
        out[i] = weights[0] * z[0, i] + weights[1] * z[1, i] + weights[2] * z[2, i]


@plain_jit
def at_rounding(delta: Any, y: Any, z: Any) -> bool:
    """True when the corrections of all stages y + z are rounding noise."""
    for j in range(3):
        for i in range(y.size):
            if abs(delta[j, i]) > ROUNDING * abs(y[i] + z[j, i]) + 1e-300:
                return False
    return True


@plain_jit
def factorise(problem: Any, tableau: Any, jacobian: Any, step: float, counters: Any) -> int:
    """Both matrices of a Newton iteration with this step; non-zero means singular."""
    gamma = tableau.gamma
    alpha = tableau.alpha
    beta = tableau.beta
    counters[N_FACTOR] += 1
    if call_factor(problem.calls, jacobian, step / gamma, problem.linear_reals, problem.linear_wholes) != 0:
        return 1
    scale = step / (alpha * alpha + beta * beta)
    return call_factor_complex(
        problem.calls, jacobian, alpha * scale, -beta * scale, problem.complex_reals, problem.complex_wholes
    )


@plain_jit
def newton_collocation(
    problem: Any,
    tableau: Any,
    t: float,
    y: Any,
    step: float,
    z: Any,
    w: Any,
    norm: int,
    weight: Any,
    tolerance: float,
    iterations: int,
    rate: float,
    f: Any,
    pair: Any,
    stage: Any,
    counters: Any,
) -> tuple[int, int, float, float, int]:
    """Iterate the three stages y + z in place.

    The remaining error is estimated as theta/(1 - theta) |dZ|, theta being the ratio of successive corrections, and
    must fall below `tolerance` (in units of the error tolerance); `rate` carries theta/(1 - theta) from step to step.
    Returns (outcome, status of the right-hand side, rate to carry on, last ratio, iterations done).
    """
    n = y.size
    c = tableau.c
    back = tableau.t_inverse
    forth = tableau.t
    g = step / tableau.gamma
    scale = step / (tableau.alpha * tableau.alpha + tableau.beta * tableau.beta)
    g_re = tableau.alpha * scale
    g_im = -tableau.beta * scale
    for j in range(3):
        weigh(back[j], z, w[j])
    size_before = 0.0
    ratio_before = 0.0
    theta = 0.0
    rate = max(rate, UNIT) ** RATE_MEMORY
    for m in range(iterations):
        for j in range(3):
            for i in range(n):
                stage[i] = y[i] + z[j, i]
            status = evaluate(problem, t + c[j] * step, stage, f[j], counters)
            if status != OK:
                return REFUSED, status, rate, theta, m
        for i in range(n):
            f0 = f[0, i]
            f1 = f[1, i]
            f2 = f[2, i]
            p = back[1, 0] * f0 + back[1, 1] * f1 + back[1, 2] * f2
            q = back[2, 0] * f0 + back[2, 1] * f1 + back[2, 2] * f2
            stage[i] = g * (back[0, 0] * f0 + back[0, 1] * f1 + back[0, 2] * f2) - w[0, i]
            pair[i] = g_re * p - g_im * q - w[1, i]
            pair[n + i] = g_re * q + g_im * p - w[2, i]
        call_solve(problem.calls, problem.linear_reals, problem.linear_wholes, stage)
        call_solve_complex(problem.calls, problem.complex_reals, problem.complex_wholes, pair)
        counters[N_SOLVE] += 1
        # The slopes are used up: f now holds the corrections of the stages.
        for i in range(n):
            d0 = stage[i]
            d1 = pair[i]
            d2 = pair[n + i]
            w[0, i] += d0
            w[1, i] += d1
            w[2, i] += d2
            for j in range(3):
                f[j, i] = forth[j, 0] * d0 + forth[j, 1] * d1 + forth[j, 2] * d2
        size = 0.0
        for j in range(3):
            part = weighted_norm(norm, f[j], weight)
            if not np.isfinite(part):
                return REFUSED, NOT_FINITE, rate, theta, m + 1
            size = max(size, part)
        for j in range(3):
            weigh(forth[j], w, z[j])
        if m > 0 and size_before > 0.0:
            ratio = size / size_before
            # Real and complex part converge in turns: two ratios make one rate.
            theta = ratio if m == 1 else np.sqrt(ratio * ratio_before)
            ratio_before = ratio
            if theta >= NEWTON_DIVERGENCE:
                if at_rounding(f, y, z):
                    return CONVERGED, OK, rate, theta, m + 1
                return DIVERGED, OK, rate, theta, m + 1
            rate = theta / (1.0 - theta)
            if size * rate * theta ** (iterations - 1 - m) > tolerance and not at_rounding(f, y, z):
                # Converging, but not within the iterations that are left.
                return DIVERGED, OK, rate, theta, m + 1
        if size * rate <= tolerance or (m > 0 and at_rounding(f, y, z)):
            return CONVERGED, OK, rate, theta, m + 1
        size_before = size
    return DIVERGED, OK, rate, theta, iterations


@jit
def drive_radau(problem: Any, tableau: Any, settings: Any, output: Any, t: float, t_end: float, y_start: Any) -> Any:
    """Integrate from t to t_end with Radau IIA."""
    problem, settings, tableau = borrowed(problem), borrowed(settings), borrowed(tableau)
    n = y_start.size
    c = tableau.c
    degree = 3
    reals = settings.reals
    wholes = settings.wholes
    counters = output.counters
    kind = wholes[CONTROLLER]
    norm = wholes[NORM]
    iterations = wholes[MAX_NEWTON]
    direction = 1.0 if t_end >= t else -1.0
    # The error of a step is of higher order than its estimate, so far below a tight tolerance; Newton's must be, too.
    tolerance = reals[NEWTON_KAPPA]
    if problem.rtol > 0.0:
        tolerance = max(10.0 * UNIT / problem.rtol, min(tolerance, np.sqrt(problem.rtol)))

    y = y_start.copy()
    y_new = np.empty(n)
    y_old = np.empty(n)
    slope = np.empty(n)
    slope_old = np.empty(n)
    stage = np.empty(n)
    e = np.empty(n)
    weight = np.empty(n)
    pair = np.empty(2 * n)
    z = np.zeros((3, n))
    z_old = np.zeros((3, n))
    w = np.empty((3, n))
    f = np.empty((3, n))
    jacobian = np.zeros((n, n))
    work = np.empty((3, n))
    q = np.zeros((degree + 1, n))
    row = np.empty(n)
    g = np.zeros((4, settings.event_direction.size))
    shape = np.empty(3)
    kept = begin_output(problem, settings, output, t, y, g, q, row, direction)

    status = evaluate(problem, t, y, slope, counters)
    if status == OK and not all_finite(slope):
        status = NOT_FINITE
    fixed = reals[FIXED_STEP]
    limit = min(reals[MAX_STEP], abs(t_end - t))
    h = 0.0
    if status == OK and t != t_end:
        if fixed > 0.0:
            h = direction * fixed
        elif reals[FIRST_STEP] > 0.0:
            h = direction * min(reals[FIRST_STEP], limit)
        else:
            h = direction * first_step(problem, t, y, slope, direction, limit, tableau.error_order, work, counters)
    error_before = 0.0
    h_before = 0.0
    failures = 0
    newton_failures = 0
    rejected = False
    first = True
    exact = True  # `slope` is a value of the right-hand side, not that of a collocation polynomial
    fresh = False
    renew = True
    age = 0
    factored = 0.0
    rate = 1.0
    h_old = 0.0  # 0: no previous step to predict from
    watched = breaks(settings.event_policy)
    pace = np.zeros((g.shape[1], 2))
    h_full = 0.0  # not 0: the step that was shortened to end at an event
    q_cubic = np.empty((4, n))

    while status == OK and t != t_end:
        settings.control[1] = t
        status = halted(settings, counters)
        if status != OK:
            break
        if abs(h) < smallest_step(settings, t):
            status = NEWTON_FAILED if newton_failures > 0 else STEP_UNDERFLOW
            break
        if watched and fixed == 0.0 and h_full == 0.0:
            shorter = approach(
                problem, settings, y_old, slope_old, h_old, t, y, slope, h, LOOKOUT_PIECES, g, q_cubic, row
            )
            if shorter != 0.0 and abs(shorter) < abs(h):
                h_full = h
                h = shorter
        target = next_target(t, t_end, settings.stops, direction)
        step, lands = land(t, h, target)
        at_stop = lands and target != t_end
        if at_stop:
            step = before(target, t) - t
        failed = OK
        outcome = REFUSED
        ratio = 0.0
        done = 0

        if renew:
            if problem.calls[JACOBIAN] == 0 and not exact:
                # A difference quotient needs the function value itself.
                failed = evaluate(problem, t, y, slope, counters)
                exact = failed == OK
            if failed == OK:
                failed = evaluate_jacobian(problem, t, y, slope, step, jacobian, work, counters)
            fresh = True
            renew = False
            age = 0
            factored = 0.0
        if failed == OK and step != factored:
            if factorise(problem, tableau, jacobian, step, counters) != 0:
                failed = NOT_FINITE
            factored = step
            rate = 1.0
        set_weights(norm, y, problem.rtol, problem.atol, weight)

        if failed == OK:
            if h_old != 0.0:
                # z_i = (polynomial of the last step at 1 + c_i h/h_old) - (the same at 1)
                for i in range(3):
                    x = 1.0 + c[i] * step / h_old
                    for j in range(3):
                        shape[j] = ((tableau.dense[2, j] * x + tableau.dense[1, j]) * x + tableau.dense[0, j]) * x
                    shape[2] -= 1.0
                    weigh(shape, z_old, z[i])
            else:
                z[:] = 0.0
            outcome, failed, rate, ratio, done = newton_collocation(
                problem,
                tableau,
                t,
                y,
                step,
                z,
                w,
                norm,
                weight,
                tolerance,
                iterations,
                rate,
                f,
                pair,
                stage,
                counters,
            )

        if outcome == DIVERGED:
            counters[N_NEWTON_FAILED] += 1
            newton_failures += 1
            rate = 1.0
            if fixed > 0.0 and fresh:
                status = NEWTON_FAILED
                break
            if fresh:
                h = 0.5 * step
            else:
                renew = True
            if newton_failures > 30:
                status = NEWTON_FAILED
            rejected = True
            if watched and h_full == 0.0:
                shorter = approach(
                    problem, settings, y_old, slope_old, h_old, t, y, slope, step, APPROACH_PIECES, g, q_cubic, row
                )
                if shorter != 0.0 and abs(shorter) < abs(step):
                    h_full = step
                    h = shorter
                    renew = False
            continue
        error = np.inf
        if outcome == CONVERGED:
            for i in range(n):
                y_new[i] = y[i] + z[2, i]
            weigh(tableau.error, z, stage)
            hg = step / tableau.gamma
            for i in range(n):
                e[i] = hg * slope[i] + stage[i]
            call_solve(problem.calls, problem.linear_reals, problem.linear_wholes, e)
            error = error_norm(norm, e, y, y_new, problem.rtol, problem.atol)
            if (first or rejected) and fixed == 0.0 and error > 1.0 and np.isfinite(error):
                for i in range(n):
                    e[i] += y[i]
                if evaluate(problem, t, e, f[0], counters) == OK:
                    for i in range(n):
                        e[i] = hg * f[0, i] + stage[i]
                    call_solve(problem.calls, problem.linear_reals, problem.linear_wholes, e)
                    again = error_norm(norm, e, y, y_new, problem.rtol, problem.atol)
                    if np.isfinite(again):
                        error = again
            if not np.isfinite(error):
                failed = NOT_FINITE
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
        # Many iterations call for a shorter step (Hairer-Wanner IV.8).
        safety = reals[SAFETY] * (2.0 * iterations + 1.0) / (2.0 * iterations + done)
        if fixed == 0.0 and not acceptable(kind, error):
            counters[N_REJECTED] += 1
            h = step * factor_rejected(kind, error, tableau.error_order, safety, reals[MIN_FACTOR])
            rejected = True
            if watched and h_full == 0.0:
                shorter = approach(
                    problem, settings, y_old, slope_old, h_old, t, y, slope, step, APPROACH_PIECES, g, q_cubic, row
                )
                if shorter != 0.0 and abs(shorter) < abs(step):
                    h_full = step
                    h = shorter
            continue

        t_new = target if lands else t + step
        if wants_dense(problem, settings, kept[0], kept[2], t_new, y_new, g[0], g[1], direction):
            copy(y, q[0])
            for d in range(degree):
                weigh(tableau.dense[d], z, q[d + 1])
        may_repeat = h_full == 0.0 or not is_crossing(step, h_old)
        verdict, t_new, kept = settle(
            problem, settings, output, kept, q, degree, t, step, t, t_new, y_new, g, row, direction, may_repeat
        )
        if verdict == REPEAT:
            h_full = h if h_full == 0.0 else h_full
            h = (t_new - t) * (1.0 + EVENT_OVERSHOOT)
            continue
        failures = 0
        newton_failures = 0
        counters[N_ACCEPTED] += 1
        age += 1
        fresh = False
        if (done > JACOBIAN_ITERATIONS and ratio > JACOBIAN_RATIO) or age >= JACOBIAN_AGE:
            renew = True

        factor = factor_accepted(
            kind,
            error,
            error_before,
            step / h_before if h_before != 0.0 else 1.0,
            tableau.error_order,
            safety,
            reals[MIN_FACTOR],
            reals[MAX_FACTOR],
        )
        if rejected:
            factor = min(factor, 1.0)
        if KEEP_LOW <= factor <= KEEP_HIGH and not renew:
            factor = 1.0
        rejected = False
        first = False
        proposal = step * factor
        wanted = h if h_full == 0.0 else h_full
        if (lands or h_full != 0.0) and abs(step) < 0.5 * abs(wanted) and abs(proposal) < abs(wanted):
            proposal = wanted
        h_full = 0.0
        error_before = error
        h_before = step
        t = t_new
        copy(y, y_old)
        copy(slope, slope_old)
        copy(y_new, y)
        if verdict == HALT:
            status = EVENT
            break
        if verdict != PASS or at_stop:
            h_old = 0.0
            error_before = 0.0
            renew = True
            first = True
            if t != t_end:
                counters[N_RESTART] += 1
                status = evaluate(problem, t, y, slope, counters)
                exact = True
                known = 0.0
                if verdict != PASS:
                    known = change_pace(pace, kept[4], kept[5], g[3], proposal)
                if known > 0.0:
                    proposal = known
                elif status == OK and fixed == 0.0:
                    limit = min(reals[MAX_STEP], abs(t_end - t))
                    if at_stop:
                        limit = min(limit, abs(proposal))
                    proposal = first_step(problem, t, y, slope, direction, limit, tableau.error_order, work, counters)
        else:
            h_old = step
            weigh(tableau.slope, z, slope)
            for i in range(n):
                slope[i] /= step
            exact = False
            z, z_old = z_old, z
        if fixed == 0.0:
            h = direction * min(abs(proposal), reals[MAX_STEP])
    settings.control[1] = t
    return Result(status, t, h, y, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5])
