"""Explicit-first-stage, singly diagonally implicit Runge-Kutta methods, stiffly accurate.

    Y_i = y_n + h sum_{j<i} a_ij k_j + h gamma f(t_n + c_i h, Y_i),   k_i = (Y_i - base_i)/(h gamma),   y_{n+1} = Y_s

The slope k_i is recovered from the stage equation, not re-evaluated: a stiff component of the Newton error is then not
multiplied by lambda (Hairer-Wanner IV.8). k_s is the explicit first stage of the next step. Error e = h sum d_i k_i.

Modern rules (default): a Jacobian and its LU live on while Newton converges fast; a step factor near 1 is not used, to
keep the LU. Published rules (spec 3.5): Jacobian and LU anew for each attempt, next step at most 0.98 h 0.65/roc;
slopes k_i = f(t_i, Y_i) are evaluated and y_{n+1} = y_n + h sum b_i k_i, which is what makes 9 = 3 (2 + 1) evaluations
of an attempt whose stages take two iterations (table 6.1), and what lets Newton's error into the error estimate.
"""

from typing import Any, NamedTuple

import numpy as np

from railsweep.kernels.integrate.call import JACOBIAN, borrowed, call_factor
from railsweep.kernels.integrate.controller import PUBLISHED_PI, acceptable, factor_accepted, factor_rejected
from railsweep.kernels.integrate.evaluate import evaluate, evaluate_jacobian, first_step
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
    N_STAGE_FAILED,
    NEWTON_KAPPA,
    NEWTON_PUBLISHED,
    NEWTON_RULE,
    NORM,
    SAFETY,
    SWITCH,
    WATCH_STIFFNESS,
    Result,
)
from railsweep.kernels.integrate.newton import (
    CONVERGED,
    PUBLISHED_ITERATIONS,
    PUBLISHED_STALE,
    REFUSED,
    STALE,
    newton,
)
from railsweep.kernels.integrate.norm import all_finite, error_norm, set_weights
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
from railsweep.kernels.integrate.vector import combine, copy
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.status import EVENT, NEWTON_FAILED, NOT_FINITE, OK, STEP_UNDERFLOW

# The Jacobian is renewed after a step whose worst Newton ratio exceeds this, or after this many steps.
JACOBIAN_RATIO = 0.2
JACOBIAN_AGE = 50
# A step factor between these is not used: the LU stays valid.
KEEP_LOW, KEEP_HIGH = 1.0, 1.2
NEWTON_DIVERGENCE = 0.9
# Previous dense output is trusted as predictor up to this ratio of steps; beyond, slopes of this step are used.
PREDICTOR_REACH = 1.3
# Switching back to an explicit method: h * spectral radius below this, this often in a row.
CALM_LIMIT = 5.0
CALM_STEPS = 10
POWER_ITERATIONS = 8


class EsdirkTableau(NamedTuple):
    """Coefficients; b is the last row of a."""

    a: Any  # (s, s)
    c: Any  # (s,)
    error: Any  # (s,)
    dense: Any  # (degree, s)
    predictor: Any  # (s, s)
    gamma: float
    order: int
    error_order: int


@plain_jit
def spectral_radius(jacobian: Any, vector: Any, work: Any) -> float:
    """Power iteration on J: the mean growth over the last four products, which also serves complex pairs.

    `vector` is kept by the caller, so that each call continues where the last one stopped.
    """
    n = vector.size
    growth = 0.0
    for sweep in range(POWER_ITERATIONS):
        total = 0.0
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += jacobian[i, j] * vector[j]
            work[i] = s
            total += s * s
        size = np.sqrt(total)
        if not size > 0.0:
            return 0.0
        for i in range(n):
            vector[i] = work[i] / size
        if sweep >= POWER_ITERATIONS - 4:
            growth += 0.25 * np.log(size)
    return np.exp(growth)


@plain_jit
def predict_published(
    c: Any, k_old: Any, stage: int, ratio: float, h: float, gamma: float, base: Any, out: Any
) -> None:
    """Stage slope by Lagrange extrapolation of the previous step's stage slopes (spec 3.5)."""
    s = c.size
    n = base.size
    x = 1.0 + ratio * c[stage]
    copy(base, out)
    for j in range(s):
        weight = h * gamma
        for m in range(s):
            if m != j:
                weight *= (x - c[m]) / (c[j] - c[m])
        for i in range(n):
            out[i] += weight * k_old[j, i]


@jit
def drive_esdirk(problem: Any, tableau: Any, settings: Any, output: Any, t: float, t_end: float, y_start: Any) -> Any:
    """Integrate from t to t_end with an ESDIRK method."""
    problem, settings, tableau = borrowed(problem), borrowed(settings), borrowed(tableau)
    n = y_start.size
    a = tableau.a
    c = tableau.c
    gamma = tableau.gamma
    s = c.size
    degree = tableau.dense.shape[0]
    reals = settings.reals
    wholes = settings.wholes
    counters = output.counters
    kind = wholes[CONTROLLER]
    norm = wholes[NORM]
    rule = wholes[NEWTON_RULE]
    published = rule == NEWTON_PUBLISHED
    iterations = PUBLISHED_ITERATIONS if published else wholes[MAX_NEWTON]
    direction = 1.0 if t_end >= t else -1.0

    y = y_start.copy()
    stage = np.empty(n)
    base = np.empty(n)
    e = np.empty(n)
    f = np.empty(n)
    delta = np.empty(n)
    weight = np.empty(n)
    k = np.empty((s, n))
    k_old = np.empty((s, n))
    y_old = np.empty(n)
    jacobian = np.zeros((n, n))
    work = np.empty((3, n))
    vector = np.ones(n)
    q = np.zeros((degree + 1, n))
    row = np.empty(n)
    g = np.zeros((4, settings.event_direction.size))
    shape = np.empty(s)
    kept = begin_output(problem, settings, output, t, y, g, q, row, direction)

    status = evaluate(problem, t, y, k[0], counters)
    if status == OK and not all_finite(k[0]):
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
            h = direction * first_step(problem, t, y, k[0], direction, limit, tableau.error_order, work, counters)
    error_before = 0.0
    h_before = 0.0
    failures = 0
    newton_failures = 0
    rejected = False
    fresh = False
    renew = True
    age = 0
    factored = 0.0
    rate = 1.0
    h_old = 0.0  # 0: no previous step to predict from
    radius = np.inf
    calm = 0
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
                problem, settings, y_old, k_old[0], h_old, t, y, k[0], h, LOOKOUT_PIECES, g, q_cubic, row
            )
            if shorter != 0.0 and abs(shorter) < abs(h):
                h_full = h
                h = shorter
        target = next_target(t, t_end, settings.stops, direction)
        step, lands = land(t, h, target)
        at_stop = lands and target != t_end
        if at_stop:
            step = before(target, t) - t
        hgamma = step * gamma
        failed = OK
        outcome = CONVERGED
        worst = 0.0

        if renew or published:
            if problem.calls[JACOBIAN] == 0:
                # k[0] comes from the stage equation; a difference quotient needs the function value itself.
                failed = evaluate(problem, t, y, f, counters)
            if failed == OK:
                failed = evaluate_jacobian(problem, t, y, f, step, jacobian, work, counters)
            fresh = True
            renew = False
            age = 0
            factored = 0.0
            if wholes[WATCH_STIFFNESS] != 0:
                radius = spectral_radius(jacobian, vector, f)
        if failed == OK and hgamma != factored:
            counters[N_FACTOR] += 1
            if call_factor(problem.calls, jacobian, hgamma, problem.linear_reals, problem.linear_wholes) != 0:
                failed = NOT_FINITE
            factored = hgamma
            rate = 1.0
        set_weights(norm, y, problem.rtol, problem.atol, weight)

        if failed == OK:
            for i in range(1, s):
                combine(y, k, a[i], i, step, base)
                ratio = step / h_old if h_old != 0.0 else 0.0
                if published:
                    if h_old != 0.0:
                        predict_published(c, k_old, i, ratio, step, gamma, base, stage)
                    else:
                        stage[:] = y
                elif i > 1 and (h_old == 0.0 or ratio > PREDICTOR_REACH):
                    combine(y, k, tableau.predictor[i], i, step, stage)
                elif h_old != 0.0:
                    x = 1.0 + min(ratio, PREDICTOR_REACH) * c[i]
                    for j in range(s):
                        total = 0.0
                        for d in range(degree - 1, -1, -1):
                            total = (total + tableau.dense[d, j]) * x
                        shape[j] = total
                    combine(y_old, k_old, shape, s, h_old, stage)
                else:
                    combine(y, k, tableau.predictor[i], i, step, stage)
                t_stage = t + c[i] * step
                for _ in range(3):
                    outcome, failed, rate, w = newton(
                        problem,
                        rule,
                        t_stage,
                        stage,
                        base,
                        hgamma,
                        1.0,
                        norm,
                        weight,
                        reals[NEWTON_KAPPA],
                        iterations,
                        NEWTON_DIVERGENCE,
                        rate,
                        False,
                        f,
                        delta,
                        counters,
                    )
                    worst = max(worst, w)
                    if outcome != STALE:
                        break
                    # Published rule: slow, not hopeless. A Jacobian at the iterate, then on with the iteration.
                    failed = evaluate(problem, t_stage, stage, f, counters)
                    if failed == OK:
                        failed = evaluate_jacobian(problem, t_stage, stage, f, step, jacobian, work, counters)
                    counters[N_FACTOR] += 1
                    if failed != OK or call_factor(
                        problem.calls, jacobian, hgamma, problem.linear_reals, problem.linear_wholes
                    ):
                        outcome = REFUSED
                        break
                if outcome != CONVERGED:
                    break
                if published:
                    failed = evaluate(problem, t_stage, stage, k[i], counters)
                    if failed != OK:
                        outcome = REFUSED
                        break
                else:
                    for m in range(n):
                        k[i, m] = (stage[m] - base[m]) / hgamma
            if published and outcome == CONVERGED:
                combine(y, k, a[s - 1], s, step, stage)
        else:
            outcome = REFUSED

        if outcome != CONVERGED and outcome != REFUSED:
            counters[N_NEWTON_FAILED] += 1
            newton_failures += 1
            if fixed > 0.0 and fresh:
                status = NEWTON_FAILED
                break
            if not fresh:
                renew = True
            elif published:
                h = 0.98 * step * (PUBLISHED_STALE / worst if worst > PUBLISHED_STALE else 0.7)
            else:
                h = 0.5 * step
            if newton_failures > 30:
                status = NEWTON_FAILED
            rejected = True
            if watched and h_full == 0.0:
                shorter = approach(
                    problem, settings, y_old, k_old[0], h_old, t, y, k[0], step, APPROACH_PIECES, g, q_cubic, row
                )
                if shorter != 0.0 and abs(shorter) < abs(step):
                    h_full = step
                    h = shorter
                    renew = False
            continue
        error = np.inf
        if outcome == CONVERGED:
            e[:] = 0.0
            combine(e, k, tableau.error, s, step, e)
            error = error_norm(norm, e, y, stage, problem.rtol, problem.atol)
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
        if fixed == 0.0 and not acceptable(kind, error):
            counters[N_REJECTED] += 1
            if kind == PUBLISHED_PI:
                # The program behind table 6.1 takes the error of a rejected attempt, too, as the previous one.
                error_before = error
            h = step * factor_rejected(kind, error, tableau.error_order, reals[SAFETY], reals[MIN_FACTOR])
            rejected = True
            if watched and h_full == 0.0:
                shorter = approach(
                    problem, settings, y_old, k_old[0], h_old, t, y, k[0], step, APPROACH_PIECES, g, q_cubic, row
                )
                if shorter != 0.0 and abs(shorter) < abs(step):
                    h_full = step
                    h = shorter
            continue

        t_new = target if lands else t + step
        if wants_dense(problem, settings, kept[0], kept[2], t_new, stage, g[0], g[1], direction):
            q[0] = y
            for d in range(degree):
                line = q[d + 1]
                line[:] = 0.0
                for j in range(s):
                    w = step * tableau.dense[d, j]
                    for m in range(n):
                        line[m] += w * k[j, m]
        may_repeat = h_full == 0.0 or not is_crossing(step, h_old)
        verdict, t_new, kept = settle(
            problem, settings, output, kept, q, degree, t, step, t, t_new, stage, g, row, direction, may_repeat
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
        if worst > JACOBIAN_RATIO or age >= JACOBIAN_AGE:
            renew = True

        if wholes[WATCH_STIFFNESS] != 0:
            calm = calm + 1 if abs(step) * radius < CALM_LIMIT else 0
        factor = factor_accepted(
            kind,
            error,
            error_before,
            step / h_before if h_before != 0.0 else 1.0,
            tableau.error_order,
            reals[SAFETY],
            reals[MIN_FACTOR],
            reals[MAX_FACTOR],
        )
        if published:
            if worst > 0.0:
                factor = min(factor, 0.98 * PUBLISHED_STALE / worst)
        else:
            if rejected:
                factor = min(factor, 1.0)
            if KEEP_LOW <= factor <= KEEP_HIGH:
                factor = 1.0
        rejected = False
        proposal = step * factor
        wanted = h if h_full == 0.0 else h_full
        if (lands or h_full != 0.0) and abs(step) < 0.5 * abs(wanted) and abs(proposal) < abs(wanted):
            proposal = wanted
        h_full = 0.0
        error_before = error
        h_before = step
        t = t_new
        copy(y, y_old)
        copy(stage, y)
        if verdict == HALT:
            status = EVENT
            break
        if verdict != PASS or at_stop:
            h_old = 0.0
            error_before = 0.0
            renew = True
            if t != t_end:
                counters[N_RESTART] += 1
                status = evaluate(problem, t, y, k[0], counters)
                known = 0.0
                if verdict != PASS:
                    known = change_pace(pace, kept[4], kept[5], g[3], proposal)
                if known > 0.0:
                    proposal = known
                elif status == OK and fixed == 0.0:
                    limit = min(reals[MAX_STEP], abs(t_end - t))
                    if at_stop:
                        limit = min(limit, abs(proposal))
                    proposal = first_step(problem, t, y, k[0], direction, limit, tableau.error_order, work, counters)
        else:
            h_old = step
            k, k_old = k_old, k
            k[0] = k_old[s - 1]
        if fixed == 0.0:
            h = direction * min(abs(proposal), reals[MAX_STEP])
        if calm >= CALM_STEPS and t != t_end and status == OK:
            status = SWITCH
    settings.control[1] = t
    return Result(status, t, h, y, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5])
