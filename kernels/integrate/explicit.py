"""Explicit embedded Runge-Kutta pairs (Hairer-Norsett-Wanner II.4-II.6).

    k_i = f(t + c_i h, y + h sum_j a_ij k_j),   y_new = y + h sum_i b_i k_i,   e = h sum_i d_i k_i

The slope at the new point is always evaluated: it is the first stage of the next step. Pairs with two error
estimates (DOP853) use e = e5 |e5| / sqrt(|e5|^2 + 0.01 |e3|^2). Stiffness is recognised from the slope of f between the
last two stages (Hairer-Wanner IV.2): h |f(Y_s+1) - f(Y_s)| / |Y_s+1 - Y_s| estimates h |lambda|.
"""

from typing import Any, NamedTuple

import numpy as np

from railsweep.kernels.integrate.call import borrowed
from railsweep.kernels.integrate.controller import acceptable, factor_accepted, factor_rejected
from railsweep.kernels.integrate.evaluate import evaluate, first_step
from railsweep.kernels.integrate.layout import (
    CONTROLLER,
    FIRST_STEP,
    FIXED_STEP,
    MAX_FACTOR,
    MAX_STAGE_FAILURES,
    MAX_STEP,
    MIN_FACTOR,
    N_ACCEPTED,
    N_REJECTED,
    N_RESTART,
    N_STAGE_FAILED,
    NORM,
    SAFETY,
    SWITCH,
    WATCH_STIFFNESS,
    Result,
)
from railsweep.kernels.integrate.norm import all_finite, error_norm
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
    uneventful,
    wants_dense,
)
from railsweep.kernels.integrate.vector import combine, copy
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.status import EVENT, NOT_FINITE, OK, STEP_UNDERFLOW

# h |lambda| above this share of the stability limit on the negative axis, this often in a row: stiff.
STIFF_SHARE = 0.95
STIFF_STEPS = 15


class ExplicitTableau(NamedTuple):
    """Coefficients of an explicit pair; `stages` do not include the slope at the new point."""

    a: Any  # (stages, stages)
    b: Any  # (stages,)
    c: Any  # (stages,)
    error: Any  # (stages + 1,)
    error_low: Any  # (stages + 1,) second estimate, or (0,)
    extra_a: Any  # (extra, stages + 1 + extra) stages of the dense output only
    extra_c: Any  # (extra,)
    dense: Any  # (degree, stages + 1 + extra): y(s) = y + h sum_k s^(k+1) dense[k] . k
    error_order: int
    stability_limit: float  # on the negative real axis; 0 when the last two stages do not share c = 1


@plain_jit
def attempt(
    problem: Any,
    tableau: Any,
    norm: int,
    t: float,
    step: float,
    t_last: float,
    y: Any,
    k: Any,
    trial: Any,
    y_new: Any,
    e: Any,
    zero: Any,
    counters: Any,
) -> tuple[int, float]:
    """One step from (t, y) to y_new, the slope there evaluated at t_last; its status and the norm of its error.

    Apart from the driver, which counts references of every array it takes out of a record.
    """
    stages = tableau.b.size
    for s in range(1, stages):
        combine(y, k, tableau.a[s], s, step, trial)
        failed = evaluate(problem, t + tableau.c[s] * step, trial, k[s], counters)
        if failed != OK:
            return failed, np.inf
    combine(y, k, tableau.b, stages, step, y_new)
    failed = evaluate(problem, t_last, y_new, k[stages], counters)
    if failed != OK:
        return failed, np.inf
    combine(zero, k, tableau.error, stages + 1, step, e)
    error = error_norm(norm, e, y, y_new, problem.rtol, problem.atol)
    if tableau.error_low.size > 0:
        combine(zero, k, tableau.error_low, stages + 1, step, e)
        low = error_norm(norm, e, y, y_new, problem.rtol, problem.atol)
        if error > 0.0:
            error = error * error / np.sqrt(error * error + 0.01 * low * low)
    if not (np.isfinite(error) and all_finite(y_new) and all_finite(k[stages])):
        failed = NOT_FINITE
    return failed, error


@plain_jit
def last_first(k: Any, stages: int) -> None:
    """The slope at the new point becomes the first of the next step."""
    copy(k[stages], k[0])


@plain_jit
def dense_stages(problem: Any, tableau: Any, t: float, y: Any, h: float, k: Any, trial: Any, counters: Any) -> int:
    """Evaluate the stages that only the dense output needs."""
    stages = tableau.b.size
    for m in range(tableau.extra_c.size):
        combine(y, k, tableau.extra_a[m], stages + 1 + m, h, trial)
        status = evaluate(problem, t + tableau.extra_c[m] * h, trial, k[stages + 1 + m], counters)
        if status != OK:
            return status
    return OK


@plain_jit
def dense_coefficients(tableau: Any, y: Any, h: float, k: Any, q: Any) -> None:
    """Fill q with the coefficients of the step's dense output."""
    n = y.size
    copy(y, q[0])
    for d in range(tableau.dense.shape[0]):
        row = q[d + 1]
        row[:] = 0.0
        for j in range(tableau.dense.shape[1]):
            w = h * tableau.dense[d, j]
            if w != 0.0:
                for i in range(n):
                    row[i] += w * k[j, i]


@jit
def drive_explicit(problem: Any, tableau: Any, settings: Any, output: Any, t: float, t_end: float, y_start: Any) -> Any:
    """Integrate from t to t_end with an explicit pair."""
    problem, settings, tableau = borrowed(problem), borrowed(settings), borrowed(tableau)
    n = y_start.size
    stages = tableau.b.size
    extra = tableau.extra_c.size
    degree = tableau.dense.shape[0]
    reals = settings.reals
    wholes = settings.wholes
    stops = settings.stops
    counters = output.counters
    kind = wholes[CONTROLLER]
    direction = 1.0 if t_end >= t else -1.0

    y = y_start.copy()
    y_new = np.empty(n)
    trial = np.empty(n)
    e = np.empty(n)
    zero = np.zeros(n)
    k = np.empty((stages + 1 + extra, n))
    q = np.zeros((degree + 1, n))
    row = np.empty(n)
    g = np.zeros((4, settings.event_direction.size))
    kept = begin_output(problem, settings, output, t, y, g, q, row, direction)
    samples = kept[2]  # apart: whoever reads it there counts references to all that is kept

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
            h = direction * first_step(problem, t, y, k[0], direction, limit, tableau.error_order, k[1:3], counters)
    error_before = 0.0
    h_before = 0.0
    failures = 0
    rejected = False
    stiff = 0
    calm = 0
    watched = breaks(settings.event_policy)
    pace = np.zeros((g.shape[1], 2))
    y_before = np.empty(n)
    f_before = np.empty(n)
    q_cubic = np.empty((4, n))
    h_cubic = 0.0
    h_full = 0.0  # not 0: the step that was shortened to end at an event

    while status == OK and t != t_end:
        settings.control[1] = t
        status = halted(settings, counters)
        if status != OK:
            break
        if abs(h) < smallest_step(settings, t):
            status = STEP_UNDERFLOW
            break
        if watched and fixed == 0.0 and h_full == 0.0:
            shorter = approach(
                problem, settings, y_before, f_before, h_cubic, t, y, k[0], h, LOOKOUT_PIECES, g, q_cubic, row
            )
            if shorter != 0.0 and abs(shorter) < abs(h):
                h_full = h
                h = shorter
        target = next_target(t, t_end, stops, direction)
        step, lands = land(t, h, target)
        at_stop = lands and target != t_end
        if at_stop:
            step = before(target, t) - t
        t_new = target if lands else t + step
        failed, error = attempt(
            problem,
            tableau,
            wholes[NORM],
            t,
            step,
            t + step if at_stop else t_new,
            y,
            k,
            trial,
            y_new,
            e,
            zero,
            counters,
        )
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
            h = step * factor_rejected(kind, error, tableau.error_order, reals[SAFETY], reals[MIN_FACTOR])
            rejected = True
            if watched and h_full == 0.0:
                shorter = approach(
                    problem, settings, y_before, f_before, h_cubic, t, y, k[0], step, APPROACH_PIECES, g, q_cubic, row
                )
                if shorter != 0.0 and abs(shorter) < abs(step):
                    h_full = step
                    h = shorter
            continue

        verdict = PASS
        if not uneventful(settings, output, samples, t_new, direction):
            if wants_dense(problem, settings, kept[0], kept[2], t_new, y_new, g[0], g[1], direction):
                status = dense_stages(problem, tableau, t, y, step, k, trial, counters)
                if status != OK:
                    break
                dense_coefficients(tableau, y, step, k, q)
            may_repeat = h_full == 0.0 or not is_crossing(step, h_cubic)
            verdict, t_new, kept = settle(
                problem, settings, output, kept, q, degree, t, step, t, t_new, y_new, g, row, direction, may_repeat
            )
            samples = kept[2]
        if verdict == REPEAT:
            h_full = h if h_full == 0.0 else h_full
            h = (t_new - t) * (1.0 + EVENT_OVERSHOOT)
            continue
        failures = 0
        counters[N_ACCEPTED] += 1
        if watched:
            copy(y, y_before)
            copy(k[0], f_before)
            h_cubic = step

        if wholes[WATCH_STIFFNESS] != 0 and verdict == PASS:
            # `trial` still holds the argument of the last stage, which has c = 1.
            over = 0.0
            under = 0.0
            for i in range(n):
                over += (k[stages, i] - k[stages - 1, i]) ** 2
                under += (y_new[i] - trial[i]) ** 2
            if under > 0.0 and abs(step) * np.sqrt(over / under) > STIFF_SHARE * tableau.stability_limit:
                stiff += 1
                calm = 0
            elif stiff > 0:
                calm += 1
                if calm == 6:
                    stiff = 0
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
        if rejected:
            factor = min(factor, 1.0)
        rejected = False
        # A step shortened only to land on a target says nothing about the next one: keep the larger proposal.
        proposal = step * factor
        wanted = h if h_full == 0.0 else h_full
        if (lands or h_full != 0.0) and abs(proposal) < abs(wanted) and abs(step) < 0.5 * abs(wanted):
            proposal = wanted
        h_full = 0.0
        error_before = error
        h_before = step
        t = t_new
        y, y_new = y_new, y
        if verdict == PASS and not at_stop:
            last_first(k, stages)
        if verdict == HALT:
            status = EVENT
            break
        if (verdict != PASS or at_stop) and t != t_end:
            counters[N_RESTART] += 1
            error_before = 0.0
            h_cubic = 0.0
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
                proposal = first_step(problem, t, y, k[0], direction, limit, tableau.error_order, k[1:3], counters)
        if fixed == 0.0:
            h = direction * min(abs(proposal), reals[MAX_STEP])
        if stiff >= STIFF_STEPS and t != t_end:
            status = SWITCH
    settings.control[1] = t
    return Result(status, t, h, y, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5])
