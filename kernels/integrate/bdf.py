"""Backward differentiation formulas of order 1 to 5, variable step and order, fixed leading coefficient.

The history is the Nordsieck array z_j = h^j y^(j) / j!. Predictor: Taylor shift (Pascal triangle). Corrector, with
y = z_0 + a:
    a + z_1/l_1 = (h/l_1) f(t, y),    then z <- z_predicted + l a,
where l depends on the last q step sizes (Jackson & Sacks-Davis 1980; Byrne & Hindmarsh 1975). Order and step selection,
the reuse of Jacobian and LU, and the constants follow VODE (Brown, Byrne & Hindmarsh, SIAM J. Sci. Stat. Comput. 10
(1989) 1038): the local error constants tq turn |a| into the error at order q-1, q, q+1; the order with the largest step
wins; the step changes only when it can grow by half.
"""

from typing import Any

import numpy as np

from railsweep.kernels.integrate.call import borrowed, call_factor
from railsweep.kernels.integrate.evaluate import evaluate, evaluate_jacobian, first_step
from railsweep.kernels.integrate.layout import (
    FIRST_STEP,
    FIXED_STEP,
    MAX_NEWTON,
    MAX_ORDER,
    MAX_STEP,
    N_ACCEPTED,
    N_FACTOR,
    N_NEWTON_FAILED,
    N_REJECTED,
    N_RESTART,
    N_STAGE_FAILED,
    NEWTON_KAPPA,
    NEWTON_MODERN,
    NORM,
    Result,
)
from railsweep.kernels.integrate.newton import CONVERGED, REFUSED, newton
from railsweep.kernels.integrate.norm import all_finite, set_weights, weighted_norm
from railsweep.kernels.integrate.output import (
    HALT,
    PASS,
    before,
    begin_output,
    halted,
    land,
    next_target,
    settle,
    smallest_step,
    uneventful,
    wants_dense,
)
from railsweep.kernels.integrate.vector import copy
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.status import EVENT, NEWTON_FAILED, NOT_FINITE, OK, STEP_UNDERFLOW

HIGHEST_ORDER = 5

# Bias of the three step estimates: down, same, up. A larger bias makes that choice less likely.
BIAS_DOWN, BIAS_SAME, BIAS_UP = 6.0, 6.0, 10.0
ADDON = 1e-6
# A change of step below this is not worth the new matrix.
WORTHWHILE = 1.5
LARGEST_FIRST, LARGEST_LATER = 1e4, 10.0
SMALLEST_ON_ERROR, LARGEST_ON_ERROR = 0.1, 0.2
ON_NEWTON_FAILURE = 0.25
MAX_ERROR_FAILURES, ORDER_DROP_AFTER = 10, 3
MAX_NEWTON_FAILURES = 10
LONG_WAIT = 10

# The LU is renewed when h/l_1 has moved by this share or after so many steps, the Jacobian after so many.
GAMMA_DRIFT = 0.3
LU_AGE, JACOBIAN_AGE = 20, 50
NEWTON_DIVERGENCE = 2.0

NO_FAILURE, STALE_MATRIX, STEP_FAILURE = range(3)


@plain_jit
def bdf_coefficients(q: int, h: float, tau: Any, l: Any, tq: Any) -> None:
    """Corrector vector l_0..l_q and error constants at order q-1, q, q+1 (tq[1..3]) and tq[5] for the order rise.

    tau[1..] are the previous step sizes, the latest first. l is the polynomial with roots -1 (shifted nodes), with the
    last root chosen so that the leading coefficient does not depend on the step history.
    """
    l[:] = 0.0
    l[0] = 1.0
    l[1] = 1.0
    xi_inverse = 1.0
    xi_star_inverse = 1.0
    alpha = -1.0
    alpha_hat = -1.0
    span = h
    if q > 1:
        for j in range(2, q):
            span += tau[j - 1]
            xi_inverse = h / span
            alpha -= 1.0 / j
            for i in range(j, 0, -1):
                l[i] += l[i - 1] * xi_inverse
        alpha -= 1.0 / q
        xi_star_inverse = -l[1] - alpha
        span += tau[q - 1]
        xi_inverse = h / span
        alpha_hat = -l[1] - xi_inverse
        for i in range(q, 0, -1):
            l[i] += l[i - 1] * xi_star_inverse
    a1 = 1.0 - alpha_hat + alpha
    a2 = 1.0 + q * a1
    tq[2] = abs(a1 / (alpha * a2))
    tq[5] = abs(a2 * xi_star_inverse / (l[q] * xi_inverse))
    tq[1] = 1.0
    if q > 1:
        a3 = alpha + 1.0 / q
        a4 = alpha_hat + xi_inverse
        tq[1] = abs(xi_star_inverse / l[q] * (1.0 - a4 + a3) / a3)
    span += tau[q]
    xi_inverse = h / span
    a5 = alpha - 1.0 / (q + 1)
    a6 = alpha_hat - xi_inverse
    tq[3] = abs((1.0 - a6 + a5) / a2 / (xi_inverse * (q + 2) * a5))


@plain_jit
def taylor_shift(z: Any, q: int, zero: Any, out: Any) -> None:
    """out <- the history advanced by one step: multiplication by the Pascal triangle, by additions alone.

    In one pass, with zeros for the rows above q: weights instead of additions are no slower, but round differently,
    and linear invariants (E5) drift.
    """
    row2 = z[2] if q > 1 else zero
    row3 = z[3] if q > 2 else zero
    row4 = z[4] if q > 3 else zero
    row5 = z[5] if q > 4 else zero
    for i in range(zero.size):
        a, b, c, d, e, f = z[0, i], z[1, i], row2[i], row3[i], row4[i], row5[i]
        e += f
        d += e
        c += d
        b += c
        a += b
        e += f
        d += e
        c += d
        b += c
        e += f
        d += e
        c += d
        e += f
        d += e
        e += f
        out[0, i], out[1, i], out[2, i], out[3, i], out[4, i], out[5, i] = a, b, c, d, e, f


@plain_jit
def rescale(z: Any, q: int, eta: float) -> None:
    """History for the step eta*h."""
    factor = eta
    for j in range(1, q + 1):
        for i in range(z.shape[1]):
            z[j, i] *= factor
        factor *= eta


@plain_jit
def raise_order(z: Any, q: int, h: float, tau: Any, correction: Any, l: Any) -> None:
    """History of order q + 1 from that of order q and the last correction."""
    l[:] = 0.0
    l[2] = 1.0
    alpha0 = -1.0
    alpha1 = 1.0
    product = 1.0
    xi_old = 1.0
    span = h
    for j in range(1, q):
        span += tau[j + 1]
        xi = span / h
        product *= xi
        alpha0 -= 1.0 / (j + 1)
        alpha1 += 1.0 / xi
        for i in range(j + 2, 1, -1):
            l[i] = l[i] * xi_old + l[i - 1]
        xi_old = xi
    factor = (-alpha0 - alpha1) / product
    n = z.shape[1]
    for i in range(n):
        z[q + 1, i] = factor * correction[i]
    for j in range(2, q + 1):
        for i in range(n):
            z[j, i] += l[j] * z[q + 1, i]


@plain_jit
def lower_order(z: Any, q: int, h: float, tau: Any, l: Any) -> None:
    """History of order q - 1 from that of order q."""
    l[:] = 0.0
    l[2] = 1.0
    span = 0.0
    for j in range(1, q - 1):
        span += tau[j]
        xi = span / h
        for i in range(j + 2, 1, -1):
            l[i] = l[i] * xi + l[i - 1]
    for j in range(2, q):
        for i in range(z.shape[1]):
            z[j, i] -= l[j] * z[q, i]


@plain_jit
def step_estimate(error: float, bias: float, order: int) -> float:
    """The factor on h that brings `error` of the given order to the tolerance, with a bias."""
    return 1.0 / ((bias * error) ** (1.0 / order) + ADDON)


@jit
def drive_bdf(problem: Any, history: Any, settings: Any, output: Any, t: float, t_end: float, y_start: Any) -> Any:
    """Integrate from t to t_end. A non-empty `history` (q + 1, n) fixes order q and needs FIXED_STEP (order tests)."""
    problem, settings = borrowed(problem), borrowed(settings)
    n = y_start.size
    reals = settings.reals
    wholes = settings.wholes
    counters = output.counters
    control = settings.control
    stops = settings.stops
    calls = problem.calls
    atol = problem.atol
    linear_reals = problem.linear_reals
    linear_wholes = problem.linear_wholes
    norm = wholes[NORM]
    highest = min(max(wholes[MAX_ORDER], 1), HIGHEST_ORDER)
    direction = 1.0 if t_end >= t else -1.0
    fixed = reals[FIXED_STEP]

    z = np.zeros((HIGHEST_ORDER + 2, n))
    predicted = np.zeros((HIGHEST_ORDER + 1, n))
    z_0, predicted_0 = z[0], predicted[0]
    zero = np.zeros(n)
    y = y_start.copy()
    y_new = np.empty(n)
    f = np.empty(n)
    base = np.empty(n)
    correction = np.zeros(n)
    saved = np.zeros(n)
    delta = np.empty(n)
    weight = np.empty(n)
    jacobian = np.zeros((n, n))
    work = np.empty((3, n))
    l = np.zeros(HIGHEST_ORDER + 3)
    tq = np.zeros(6)
    tau = np.zeros(HIGHEST_ORDER + 3)
    row = np.empty(n)
    g = np.zeros((4, settings.event_direction.size))
    kept = begin_output(problem, settings, output, t, y, g, z, row, direction)
    samples = kept[2]  # apart: whoever reads it there counts references to all that is kept

    status = evaluate(problem, t, y, f, counters)
    if status == OK and not all_finite(f):
        status = NOT_FINITE
    h = 0.0
    begin = True  # (re)start with order 1 from y and f
    q = 1
    wait = 2
    eta = 1.0
    q_next = 1
    largest = LARGEST_FIRST
    saved_tq5 = 0.0
    steps = 0
    lu_step = 0
    jacobian_step = 0
    gamma_factored = 0.0
    rate = 1.0

    while status == OK and t != t_end:
        control[1] = t
        status = halted(settings, counters)
        if status != OK:
            break
        if begin:
            limit = min(reals[MAX_STEP], abs(next_target(t, t_end, stops, direction) - t))
            if fixed > 0.0:
                h = direction * fixed
            elif reals[FIRST_STEP] > 0.0 and counters[N_RESTART] == 0:
                h = direction * min(reals[FIRST_STEP], limit)
            else:
                h = direction * first_step(problem, t, y, f, direction, limit, 1, work, counters)
            q = 1
            wait = 2
            tau[:] = h
            z[0] = y
            for i in range(n):
                z[1, i] = h * f[i]
            if history.shape[0] > 0:
                q = history.shape[0] - 1
                for j in range(q + 1):
                    z[j] = history[j]
            eta = 1.0
            q_next = q
            largest = LARGEST_FIRST
            steps = 0
            gamma_factored = 0.0
            begin = False
        if q_next != q:
            if q_next > q:
                raise_order(z, q, h, tau, saved, l)
            else:
                lower_order(z, q, h, tau, l)
            q = q_next
            wait = q + 1
        if eta != 1.0:
            rescale(z, q, eta)
            h *= eta
            eta = 1.0
        target = next_target(t, t_end, stops, direction)
        step, lands = land(t, h, target)
        at_stop = lands and target != t_end
        if at_stop:
            step = before(target, t) - t
        if step != h:
            rescale(z, q, step / h)
            h = step

        set_weights(norm, z_0, problem.rtol, atol, weight)
        failure = NO_FAILURE
        newton_failures = 0
        error_failures = 0
        error = 0.0
        while True:
            if abs(h) < smallest_step(settings, t):
                status = NEWTON_FAILED if newton_failures > 0 else STEP_UNDERFLOW
                break
            t_new = target if lands and not at_stop else t + h
            bdf_coefficients(q, h, tau, l, tq)
            taylor_shift(z, q, zero, predicted)
            copy(predicted_0, y_new)
            gamma = h / l[1]
            drift = abs(gamma / gamma_factored - 1.0) if gamma_factored != 0.0 else 1.0
            current = False
            refused = OK
            f_known = False
            if failure != NO_FAILURE or drift > GAMMA_DRIFT or steps >= lu_step + LU_AGE or gamma_factored == 0.0:
                renew = (
                    gamma_factored == 0.0
                    or steps >= jacobian_step + JACOBIAN_AGE
                    or (failure == STALE_MATRIX and drift < GAMMA_DRIFT)
                    or failure == STEP_FAILURE
                )
                if renew:
                    refused = evaluate(problem, t_new, y_new, f, counters)
                    f_known = refused == OK
                    if refused == OK:
                        refused = evaluate_jacobian(problem, t_new, y_new, f, h, jacobian, work, counters)
                    jacobian_step = steps
                current = renew
                if refused == OK:
                    counters[N_FACTOR] += 1
                    if call_factor(calls, jacobian, gamma, linear_reals, linear_wholes) != 0:
                        refused = NOT_FINITE
                gamma_factored = gamma
                lu_step = steps
                rate = 1.0
            outcome = REFUSED
            if refused == OK:
                for i in range(n):
                    base[i] = predicted[0, i] - predicted[1, i] / l[1]
                outcome, refused, rate, _ = newton(
                    problem,
                    NEWTON_MODERN,
                    t_new,
                    y_new,
                    base,
                    gamma,
                    2.0 / (1.0 + gamma / gamma_factored),
                    norm,
                    weight,
                    reals[NEWTON_KAPPA] / tq[2],
                    wholes[MAX_NEWTON],
                    NEWTON_DIVERGENCE,
                    rate,
                    f_known,
                    f,
                    delta,
                    counters,
                )
            if outcome == CONVERGED:
                for i in range(n):
                    correction[i] = y_new[i] - predicted[0, i]
                error = weighted_norm(norm, correction, weight) * tq[2]
                if not np.isfinite(error):
                    outcome = REFUSED
                    refused = NOT_FINITE
            if outcome != CONVERGED:
                if outcome == REFUSED:
                    counters[N_STAGE_FAILED] += 1
                else:
                    counters[N_NEWTON_FAILED] += 1
                    if not current:
                        failure = STALE_MATRIX
                        continue
                newton_failures += 1
                largest = 1.0
                if newton_failures > MAX_NEWTON_FAILURES or fixed > 0.0:
                    status = refused if outcome == REFUSED else NEWTON_FAILED
                    break
                shrink = 0.5 if outcome == REFUSED else ON_NEWTON_FAILURE
                rescale(z, q, shrink)
                h *= shrink
                if outcome == REFUSED and abs(h) < smallest_step(settings, t):
                    status = refused
                    break
                lands = False
                at_stop = False
                failure = STEP_FAILURE
                continue
            if error <= 1.0 or fixed > 0.0:
                break
            error_failures += 1
            counters[N_REJECTED] += 1
            lands = False
            at_stop = False
            largest = 1.0
            failure = NO_FAILURE
            if error_failures > MAX_ERROR_FAILURES:
                status = STEP_UNDERFLOW
                break
            if error_failures <= ORDER_DROP_AFTER:
                shrink = max(SMALLEST_ON_ERROR, step_estimate(error, BIAS_SAME, q + 1))
                if error_failures > 1:
                    shrink = min(shrink, LARGEST_ON_ERROR)
                rescale(z, q, shrink)
                h *= shrink
            elif q > 1:
                # The higher derivatives in the history do not fit the solution any more.
                lower_order(z, q, h, tau, l)
                q -= 1
                wait = q + 1
                rescale(z, q, SMALLEST_ON_ERROR)
                h *= SMALLEST_ON_ERROR
            else:
                h *= SMALLEST_ON_ERROR
                wait = LONG_WAIT
                status = evaluate(problem, t, z[0], f, counters)
                if status != OK:
                    break
                for i in range(n):
                    z[1, i] = h * f[i]
        if status != OK:
            break

        steps += 1
        counters[N_ACCEPTED] += 1
        for j in range(q, 1, -1):
            tau[j] = tau[j - 1]
        if q == 1 and steps > 1:
            tau[2] = tau[1]
        tau[1] = h
        for j in range(q + 1):
            lj = l[j]
            for i in range(n):
                z[j, i] = predicted[j, i] + lj * correction[i]
        t_new = target if lands else t + h
        copy(z_0, y_new)
        verdict = PASS
        if not uneventful(settings, output, samples, t_new, direction):
            wants_dense(problem, settings, kept[0], kept[2], t_new, y_new, g[0], g[1], direction)
            verdict, t_new, kept = settle(
                problem, settings, output, kept, z, q, t_new, h, t, t_new, y_new, g, row, direction, False
            )
            samples = kept[2]
        t = t_new
        copy(y_new, y)
        if verdict == HALT:
            status = EVENT
            break
        if verdict != PASS or at_stop:
            if t != t_end:
                counters[N_RESTART] += 1
                status = evaluate(problem, t, y, f, counters)
                begin = True
            continue
        if fixed > 0.0:
            continue

        # Order and step of the next step.
        wait -= 1
        q_next = q
        eta = 1.0
        if largest == 1.0:
            wait = max(wait, 2)
        else:
            best = 0.0
            # the root is worth taking only when the step may grow
            same = 0.0
            if wait == 0 or BIAS_SAME * error < WORTHWHILE ** -(q + 1):
                same = step_estimate(error, BIAS_SAME, q + 1)
                best = same
            if wait == 0:
                wait = 2
                down = 0.0
                if q > 1:
                    down = step_estimate(weighted_norm(norm, z[q], weight) * tq[1], BIAS_DOWN, q)
                up = 0.0
                if q < highest and saved_tq5 != 0.0:
                    quotient = tq[5] / saved_tq5 * (h / tau[2]) ** (q + 1)
                    for i in range(n):
                        delta[i] = correction[i] - quotient * saved[i]
                    up = step_estimate(weighted_norm(norm, delta, weight) * tq[3], BIAS_UP, q + 2)
                if max(same, down, up) >= WORTHWHILE:
                    if same >= max(down, up):
                        best = same
                    elif down >= up:
                        q_next = q - 1
                        best = down
                    else:
                        q_next = q + 1
                        best = up
            if best >= WORTHWHILE:
                eta = min(best, largest)
                eta /= max(1.0, abs(h) * eta / reals[MAX_STEP])
        if (wait == 1 and q < highest) or q_next > q:
            copy(correction, saved)
            saved_tq5 = tq[5]
        largest = LARGEST_LATER
    settings.control[1] = t
    return Result(status, t, h, y, kept[0], kept[1], kept[2], kept[3], kept[4], kept[5])
