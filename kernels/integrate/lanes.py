"""Explicit pairs on lanes: LANES cases of one problem step in lock-step, each with its own time and step size.

Every pass tries one step of every lane: the stages are vector arithmetic, what a step decides (accept, reject, sample,
next step) is done lane by lane with the scalar parts of `drive_explicit`, in the same order, so a case gets the same
bits and counters here and there, whoever shares its lanes. A lane whose case has ended takes the next one. No events,
no stops: for those there is the scalar driver.
"""

from typing import Any, NamedTuple

import numpy as np

from railsweep.kernels.integrate.call import RHS, call_function
from railsweep.kernels.integrate.controller import acceptable, factor_accepted, factor_rejected
from railsweep.kernels.integrate.evaluate import evaluate, first_step
from railsweep.kernels.integrate.explicit import dense_coefficients
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
    N_RHS,
    N_STAGE_FAILED,
    NORM,
    SAFETY,
    Output,
    Problem,
)
from railsweep.kernels.integrate.norm import all_finite, error_norm
from railsweep.kernels.integrate.output import halted, land, smallest_step, take_samples
from railsweep.kernels.integrate.vector import combine
from railsweep.kernels.jit import jit
from railsweep.kernels.lane import LANES, all_lanes, as_lanes, choose, lane_item, lane_view, root, with_item
from railsweep.kernels.status import NOT_FINITE, OK, STEP_UNDERFLOW


class LaneGroup(NamedTuple):
    """The right-hand side of lanes and where it finds the numbers of every lane."""

    calls: Any  # int64[CALLS_WIDTH]
    record: Any  # float64[size, LANES]


class Cases(NamedTuple):
    """The cases of one call: what they start from, and where their results go."""

    calls: Any  # int64[case, CALLS_WIDTH]: right-hand side and observer of the single case
    record: Any  # float64[case, size]
    start: Any  # float64[case, n]
    wanted: Any  # float64[m]: sample times
    sample: Any  # float64[case, m or 0, n]
    accumulator: Any  # float64[case, :]
    counters: Any  # int64[case, COUNTERS_WIDTH]
    status: Any  # int64[case]
    time: Any  # float64[case]: time reached
    state: Any  # float64[case, n]: state there
    samples: Any  # int64[case]: samples taken


@jit  # it hands out arrays, so it must count references
def problem_of(like: Any, calls: Any) -> Problem:
    """The problem of one case: its own right-hand side, the tolerances of all."""
    return Problem(
        calls,
        like.rtol,
        like.atol,
        like.linear_reals,
        like.linear_wholes,
        like.complex_reals,
        like.complex_wholes,
        like.column_group,
        like.pattern,
    )


@jit
def drive_lanes(group: Any, cases: Any, like: Any, tableau: Any, settings: Any, t_start: float, t_end: float) -> None:
    """Integrate every case from t_start to t_end; `like` is a `Problem` whose tolerances hold for all."""
    n = cases.start.shape[1]
    last = n
    rows = n + 1
    stages = tableau.b.size
    degree = tableau.dense.shape[0]
    reals = settings.reals
    wholes = settings.wholes
    kind = wholes[CONTROLLER]
    direction = 1.0 if t_end >= t_start else -1.0
    fixed = reals[FIXED_STEP]

    slopes = np.zeros((stages + 1, rows, LANES))
    k, k_flat = as_lanes(slopes), slopes.reshape(stages + 1, rows * LANES)
    # arrays of lanes borrow their memory: `slopes` and `store` are what keeps it
    store = np.zeros((5, rows * LANES))
    y, y_new, trial, e = as_lanes(store[0]), as_lanes(store[1]), as_lanes(store[2]), as_lanes(store[3])
    zero = as_lanes(store[4])
    q = np.zeros((degree + 1, n))
    row = np.zeros(n)
    y_row = np.zeros(n)
    f_row = np.zeros((3, n))

    held = np.full(LANES, -1)
    t, t_new, h = np.full(LANES, t_start), np.full(LANES, t_start), np.zeros(LANES)
    error_before, h_before = np.zeros(LANES), np.zeros(LANES)
    failures = np.zeros(LANES, dtype=np.int64)
    rejected = np.zeros(LANES, dtype=np.bool_)
    waiting = 0
    busy = 0
    begun = False
    while True:
        for i in range(LANES):
            while held[i] < 0 and waiting < cases.start.shape[0]:
                c = waiting
                waiting += 1
                problem = problem_of(like, cases.calls[c])
                counters = cases.counters[c]
                y_row[:] = cases.start[c]
                output = Output(cases.wanted, cases.sample[c], row[:0], held[:0], cases.accumulator[c], counters)
                cases.samples[c] = take_samples(problem, output, 0, q, 0, t_start, 1.0, t_start, y_row, direction, row)
                status = evaluate(problem, t_start, y_row, f_row[0], counters)
                if status == OK and not all_finite(f_row[0]):
                    status = NOT_FINITE
                limit = min(reals[MAX_STEP], abs(t_end - t_start))
                h[i] = 0.0
                if status == OK and t_start != t_end:
                    if fixed > 0.0:
                        h[i] = direction * fixed
                    elif reals[FIRST_STEP] > 0.0:
                        h[i] = direction * min(reals[FIRST_STEP], limit)
                    else:
                        order = tableau.error_order
                        h[i] = direction * first_step(
                            problem, t_start, y_row, f_row[0], direction, limit, order, f_row[1:3], counters
                        )
                cases.status[c] = status
                cases.time[c] = t_start
                cases.state[c] = y_row
                if status != OK or t_start == t_end:
                    continue
                held[i] = c
                busy += 1
                for j in range(cases.record.shape[1]):
                    group.record[j, i] = cases.record[c, j]
                for j in range(n):
                    y[j] = with_item(y[j], i, y_row[j])
                    k[0, j] = with_item(k[0, j], i, f_row[0, j])
                t[i] = t_start
                error_before[i], h_before[i] = 0.0, 0.0
                failures[i] = 0
                rejected[i] = False
        if not begun:
            # lanes that never get a case repeat the first one without moving
            begun = True
            for i in range(LANES):
                if held[i] < 0 and held[0] >= 0:
                    for j in range(cases.record.shape[1]):
                        group.record[j, i] = group.record[j, 0]
                    for j in range(n):
                        y[j] = with_item(y[j], i, lane_item(y[j], 0))
        if busy == 0:
            break

        step = all_lanes(0.0)
        now = all_lanes(0.0)
        then = all_lanes(0.0)
        for i in range(LANES):
            now = with_item(now, i, t[i])
            t_new[i] = t[i]
            if held[i] >= 0:
                c = held[i]
                status = halted(settings, cases.counters[c])
                if status == OK and abs(h[i]) < smallest_step(settings, t[i]):
                    status = STEP_UNDERFLOW
                if status != OK:
                    cases.status[c] = status
                    cases.time[c] = t[i]
                    cases.state[c] = lane_view(y, i)[:n]
                    held[i] = -1
                    busy -= 1
                    continue
                size, lands = land(t[i], h[i], t_end)
                step = with_item(step, i, size)
                t_new[i] = t_end if lands else t[i] + size
            then = with_item(then, i, t_new[i])

        worst = all_lanes(0.0)
        evaluations = all_lanes(0.0)
        for s in range(1, stages):
            combine(y, k, tableau.a[s], s, step, trial)
            trial[last] = now + tableau.c[s] * step
            evaluations = choose(worst == 0.0, evaluations + 1.0, evaluations)
            call_function(group.calls, RHS, 0.0, store[2], k_flat[s])
            worst = choose(worst == 0.0, k[s, last], worst)
        combine(y, k, tableau.b, stages, step, y_new)
        y_new[last] = then
        evaluations = choose(worst == 0.0, evaluations + 1.0, evaluations)
        call_function(group.calls, RHS, 0.0, store[1], k_flat[stages])
        worst = choose(worst == 0.0, k[stages, last], worst)
        combine(zero, k, tableau.error, stages + 1, step, e)
        error = error_norm(wholes[NORM], e[:n], y[:n], y_new[:n], like.rtol, like.atol)
        if tableau.error_low.size > 0:
            combine(zero, k, tableau.error_low, stages + 1, step, e)
            low = error_norm(wholes[NORM], e[:n], y[:n], y_new[:n], like.rtol, like.atol)
            error = choose(error > 0.0, error * error / root(error * error + 0.01 * low * low), error)
        unbound = all_lanes(0.0)
        for j in range(n):
            unbound = unbound + y_new[j] * 0.0 + k[stages, j] * 0.0

        taken = all_lanes(0.0)
        for i in range(LANES):
            c = held[i]
            if c < 0:
                continue
            counters = cases.counters[c]
            counters[N_RHS] += int(lane_item(evaluations, i))
            failed = int(lane_item(worst, i))
            size = lane_item(step, i)
            err = lane_item(error, i)
            if failed == OK and not (np.isfinite(err) and lane_item(unbound, i) == 0.0):
                failed = NOT_FINITE
            status = OK
            if failed != OK:
                counters[N_STAGE_FAILED] += 1
                failures[i] += 1
                if failures[i] > MAX_STAGE_FAILURES or fixed > 0.0:
                    status = failed
                else:
                    h[i] = 0.5 * size
                    rejected[i] = True
                    if abs(h[i]) < smallest_step(settings, t[i]):
                        status = failed
                if status != OK:
                    cases.status[c] = status
                    cases.time[c] = t[i]
                    cases.state[c] = lane_view(y, i)[:n]
                    held[i] = -1
                    busy -= 1
                continue
            if fixed == 0.0 and not acceptable(kind, err):
                counters[N_REJECTED] += 1
                h[i] = size * factor_rejected(kind, err, tableau.error_order, reals[SAFETY], reals[MIN_FACTOR])
                rejected[i] = True
                continue
            count = cases.samples[c]
            if count < cases.wanted.size and (cases.wanted[count] - t_new[i]) * direction <= 0.0:
                problem = problem_of(like, cases.calls[c])
                if (cases.wanted[count] - t_new[i]) * direction < 0.0:
                    dense_coefficients(tableau, lane_view(y, i)[:n], size, lane_view(k, i)[:, :n], q)
                output = Output(cases.wanted, cases.sample[c], row[:0], held[:0], cases.accumulator[c], counters)
                y_row[:] = lane_view(y_new, i)[:n]
                cases.samples[c] = take_samples(
                    problem, output, count, q, degree, t[i], size, t_new[i], y_row, direction, row
                )
            failures[i] = 0
            counters[N_ACCEPTED] += 1
            factor = factor_accepted(
                kind,
                err,
                error_before[i],
                size / h_before[i] if h_before[i] != 0.0 else 1.0,
                tableau.error_order,
                reals[SAFETY],
                reals[MIN_FACTOR],
                reals[MAX_FACTOR],
            )
            if rejected[i]:
                factor = min(factor, 1.0)
            rejected[i] = False
            error_before[i], h_before[i] = err, size
            t[i] = t_new[i]
            if fixed == 0.0:
                h[i] = direction * min(abs(size * factor), reals[MAX_STEP])
            taken = with_item(taken, i, 1.0)
            if t[i] == t_end:
                cases.status[c] = OK
                cases.time[c] = t_end
                cases.state[c] = lane_view(y_new, i)[:n]
                held[i] = -1
                busy -= 1
        moved = taken == 1.0
        for j in range(n):
            y[j] = choose(moved, y_new[j], y[j])
            k[0, j] = choose(moved, k[stages, j], k[0, j])
