"""What happens between accepted steps: landing on stop points, dense output, samples and events.

Dense output of every method is a polynomial in s = (t - t_origin) / h with vector coefficients q[k],
    y(t) = sum_k q[k] s^k,
so sampling and event location are written once.
"""

from typing import Any

import numpy as np

from railsweep.kernels.integrate.call import EVENT, OBSERVER, call_function
from railsweep.kernels.integrate.layout import (
    EVENT_RECORD,
    EVENT_STOP,
    MAX_RHS,
    MAX_STEPS,
    MIN_STEP,
    N_ACCEPTED,
    N_EVENT,
    N_JACOBIAN_RHS,
    N_NEWTON_FAILED,
    N_REJECTED,
    N_RHS,
    OUTPUT,
    OUTPUT_SAMPLES,
    OUTPUT_STEPS,
)
from railsweep.kernels.integrate.vector import copy
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.status import OK, STEP_LIMIT, TIME_LIMIT

# A step that would end this close (relative to itself) to its target is stretched or cut to reach it.
LANDING_SLACK = 1e-2

# An event this close to the end of a step (as a share of it) needs no shorter second try.
EVENT_SLACK = 2e-2
EVENT_NEAR = 1e-6
# A step repeated up to an event that was located within it ends this little (relative to itself) past it.
EVENT_OVERSHOOT = 1e-9
# Points at which event functions are followed along a step: before it is tried, and after it failed.
LOOKOUT_PIECES = 2
APPROACH_PIECES = 16
APPROACH_BISECTIONS = 48
# A step never tries to cross a break: beyond it a stop may be a thousand times stiffer, and one stage there fails the
# error test. It ends short of the event by the first share, then (within the second share of the last step, where the
# continuation is as good as exact) by the third; what is left (the fourth share at most) is crossed in a tiny step.
SHORT_OF_EVENT, CLOSE_TO_EVENT, AT_EVENT, CROSSED = 1e-2, 2e-2, 1e-9, 1e-3
EVENT_ITERATIONS = 60

# Verdicts of `settle`.
PASS, REPEAT, RESTART, HALT = range(4)


@plain_jit
def smallest_step(settings: Any, t: float) -> float:
    """Below this a step cannot move the clock reliably."""
    return max(settings.reals[MIN_STEP], 16.0 * 2.220446049250313e-16 * abs(t), 1e-290)


@plain_jit
def next_target(t: float, t_end: float, stops: Any, direction: float) -> float:
    """The nearest point ahead that no step may cross."""
    target = t_end
    for i in range(stops.size):
        if (stops[i] - t) * direction > 0.0 and (target - stops[i]) * direction > 0.0:
            target = stops[i]
    return target


@plain_jit
def land(t: float, h: float, target: float) -> tuple[float, bool]:
    """The step from t that does not cross the target, and whether it reaches it."""
    remaining = target - t
    if abs(h) * (1.0 + LANDING_SLACK) >= abs(remaining):
        return remaining, True
    return h, False


@plain_jit
def before(target: float, t: float) -> float:
    """A point two units in the last place short of a stop: the last stage of the step that lands on a break of the
    right-hand side must still be evaluated on the near side."""
    return target - (target - t) * 2.220446049250313e-16 - np.sign(target - t) * abs(target) * 4.440892098500626e-16


@plain_jit
def horner(q: Any, degree: int, s: float, out: Any) -> None:
    """out <- sum_k q[k] s^k."""
    for i in range(out.size):
        out[i] = q[degree, i]
    for k in range(degree - 1, -1, -1):
        row = q[k]
        for i in range(out.size):
            out[i] = out[i] * s + row[i]


@plain_jit
def hermite(y0: Any, f0: Any, y1: Any, f1: Any, h: float, q: Any) -> None:
    """Cubic through values and slopes at both ends, in s = (t - t0)/h (order 3)."""
    for i in range(y0.size):
        rise = y1[i] - y0[i]
        q[0, i] = y0[i]
        q[1, i] = h * f0[i]
        q[2, i] = 3.0 * rise - h * (2.0 * f0[i] + f1[i])
        q[3, i] = -2.0 * rise + h * (f0[i] + f1[i])


@plain_jit
def samples_due(t_wanted: Any, count: int, t_new: float, direction: float) -> bool:
    """Is a wanted time at or before t_new still open?"""
    return count < t_wanted.size and (t_wanted[count] - t_new) * direction <= 0.0


@plain_jit
def take_samples(
    problem: Any,
    output: Any,
    count: int,
    q: Any,
    degree: int,
    t_origin: float,
    h: float,
    t_new: float,
    y_new: Any,
    direction: float,
    row: Any,
) -> int:
    """Fill the samples up to t_new; the new count. The observer, when there is one, sees each sample."""
    observed = problem.calls[OBSERVER] != 0
    stored = output.y.shape[0] == output.t.size
    while samples_due(output.t, count, t_new, direction):
        wanted = output.t[count]
        if wanted == t_new:
            copy(y_new, row)
        else:
            horner(q, degree, (wanted - t_origin) / h, row)
        if stored:
            copy(row, output.y[count])
        if observed:
            call_function(problem.calls, OBSERVER, wanted, row, output.accumulator)
        count += 1
    return count


@jit
def store_step(t_out: Any, y_out: Any, count: int, t: float, y: Any) -> tuple[Any, Any]:
    """Append (t, y), doubling the arrays when they are full (a logarithmic number of times per run)."""
    if count == t_out.size:
        t_longer = np.empty(2 * count + 16)
        y_longer = np.empty((2 * count + 16, y.size))
        t_longer[:count] = t_out
        y_longer[:count] = y_out
        t_out = t_longer
        y_out = y_longer
    t_out[count] = t
    y_out[count] = y
    return t_out, y_out


@jit
def store_event(t_out: Any, index_out: Any, count: int, t: float, index: int) -> tuple[Any, Any]:
    """Append an event, growing like `store_step`."""
    if count == t_out.size:
        t_longer = np.empty(2 * count + 8)
        index_longer = np.empty(2 * count + 8, dtype=np.int64)
        t_longer[:count] = t_out
        index_longer[:count] = index_out
        t_out = t_longer
        index_out = index_longer
    t_out[count] = t
    index_out[count] = index
    return t_out, index_out


@plain_jit
def crosses(g_old: float, g_new: float, wanted: int) -> bool:
    """Sign change in the wanted direction. A value of exactly zero belongs to the side it came from."""
    if wanted >= 0 and g_old < 0.0 and g_new >= 0.0:
        return True
    return wanted <= 0 and g_old > 0.0 and g_new <= 0.0


@plain_jit
def any_crossing(g_old: Any, g_new: Any, directions: Any) -> bool:
    """Does any event function change sign between the two rows?"""
    for m in range(g_old.size):  # noqa: SIM110 - a generator does not compile
        if crosses(g_old[m], g_new[m], directions[m]):
            return True
    return False


@plain_jit
def locate(
    problem: Any,
    settings: Any,
    q: Any,
    degree: int,
    t_origin: float,
    h: float,
    t_old: float,
    t_new: float,
    g_old: Any,
    g_new: Any,
    g_mid: Any,
    row: Any,
) -> tuple[float, int]:
    """Time just past the earliest crossing in (t_old, t_new], and its index; `g_new` becomes the values there.

    Illinois (Dowell & Jarratt 1971) on the dense output. The returned time is the far end of the bracket, so the
    event function already has its new sign there and the restarted run sees the new branch.
    """
    directions = settings.event_direction
    low = t_old
    high = t_new
    found = -1
    for m in range(g_old.size):
        if not crosses(g_old[m], g_new[m], directions[m]):
            continue
        # Each later event is searched only before the earliest one so far.
        found = m
        low = t_old
        g_low = g_old[m]
        g_high = g_new[m]
        side = 0
        for _ in range(EVENT_ITERATIONS):
            if abs(high - low) <= 4.5e-16 * max(abs(high), abs(low)) + 1e-13 * abs(t_new - t_old):
                break
            width = high - low
            middle = high - width * (g_high / (g_high - g_low)) if g_high != g_low else low + 0.5 * width
            # The far end must move too: nudge the secant point past the root, and never leave the bracket.
            middle += 0.5e-13 * (t_new - t_old)
            if not (middle - low) * (high - middle) > 0.0:
                middle = low + 0.5 * width
            horner(q, degree, (middle - t_origin) / h, row)
            call_function(problem.calls, EVENT, middle, row, g_mid)
            if crosses(g_old[m], g_mid[m], 0):
                high = middle
                g_high = g_mid[m]
                copy(g_mid, g_new)
                if side == 1:
                    g_low *= 0.5
                side = 1
            else:
                low = middle
                g_low = g_mid[m]
                if side == -1:
                    g_high *= 0.5
                side = -1
    return high, found


@plain_jit
def event_verdict(policy: int, t_old: float, t_new: float, t_event: float) -> int:
    """PASS, REPEAT, RESTART or HALT for an event in the step from t_old to t_new.

    Stages beyond the event have seen the other branch of the right-hand side. Unless the event is near the end of
    the step (or so near its start that the dense output cannot be wrong), the step is repeated up to the event, so
    that the state there does not carry that error.
    """
    if policy == EVENT_RECORD:
        return PASS
    size = abs(t_new - t_old)
    if abs(t_new - t_event) > EVENT_SLACK * size and abs(t_event - t_old) > EVENT_NEAR * size:
        return REPEAT
    return HALT if policy == EVENT_STOP else RESTART


@plain_jit
def wants_dense(
    problem: Any,
    settings: Any,
    t_wanted: Any,
    count: int,
    t_new: float,
    y_new: Any,
    g_old: Any,
    g_new: Any,
    direction: float,
) -> bool:
    """Will `settle` need the dense output of this step? Evaluates the event functions at its end into g_new."""
    if g_new.size > 0:
        call_function(problem.calls, EVENT, t_new, y_new, g_new)
        if any_crossing(g_old, g_new, settings.event_direction):
            return True
    if settings.wholes[OUTPUT] != OUTPUT_SAMPLES or count >= t_wanted.size:
        return False
    return (t_wanted[count] - t_new) * direction < 0.0


@plain_jit
def uneventful(settings: Any, output: Any, count: int, t_new: float, direction: float) -> bool:
    """Has `settle` nothing to do after a step to t_new: no events, nothing to store?"""
    if settings.event_direction.size > 0 or settings.wholes[OUTPUT] == OUTPUT_STEPS:
        return False
    return settings.wholes[OUTPUT] != OUTPUT_SAMPLES or not samples_due(output.t, count, t_new, direction)


@plain_jit
def breaking(g: Any, settings: Any) -> bool:
    """Does any event that interrupts the run lie between the first two rows of g?"""
    for m in range(g.shape[1]):
        if settings.event_policy[m] != EVENT_RECORD and crosses(g[0, m], g[1, m], settings.event_direction[m]):
            return True
    return False


@plain_jit
def approach(
    problem: Any,
    settings: Any,
    y_before: Any,
    f_before: Any,
    h_before: float,
    t: float,
    y: Any,
    f: Any,
    step: float,
    pieces: int,
    g: Any,
    q: Any,
    row: Any,
) -> float:
    """The shorter step towards the next event, or 0 when none is in sight within `step`.

    A step that runs into the other branch of the right-hand side fails its error test and says little about where the
    event is. The last accepted step does: its cubic is continued and the event functions are followed along it.
    """
    if h_before == 0.0:
        return 0.0
    hermite(y_before, f_before, y, f, h_before, q)
    low = 0.0
    for piece in range(1, pieces + 1):
        high = step * piece / pieces
        horner(q, 3, 1.0 + high / h_before, row)
        call_function(problem.calls, EVENT, t + high, row, g[1])
        if breaking(g, settings):
            for _ in range(APPROACH_BISECTIONS):
                middle = 0.5 * (low + high)
                horner(q, 3, 1.0 + middle / h_before, row)
                call_function(problem.calls, EVENT, t + middle, row, g[1])
                if breaking(g, settings):
                    high = middle
                else:
                    low = middle
            share = abs(high / h_before)
            if share > CLOSE_TO_EVENT:
                return high * (1.0 - SHORT_OF_EVENT)
            if share > CROSSED:
                return high * (1.0 - AT_EVENT)
            return 1.5 * high + np.sign(step) * 4.0 * smallest_step(settings, t)
        low = high
    return 0.0


@plain_jit
def is_crossing(step: float, h_before: float) -> bool:
    """Is this the tiny step over an event, which need not be repeated up to it?"""
    return abs(step) < 2.0 * CROSSED * abs(h_before)


@plain_jit
def breaks(policy: Any) -> bool:
    """Is there an event that interrupts the run?"""
    for m in range(policy.size):  # noqa: SIM110 - a generator does not compile
        if policy[m] != EVENT_RECORD:
            return True
    return False


@plain_jit
def change_pace(pace: Any, event_index: Any, event_count: int, g_old: Any, h: float) -> float:
    """Step to restart with after the last event, 0 when its far side is new; h, the step of the near side, is kept.

    Either side of a break has its own step size, and impacts return: `pace[m, side]` remembers both.
    """
    m = event_index[event_count - 1]
    side = 1 if g_old[m] > 0.0 else 0
    pace[m, side] = abs(h)
    return pace[m, 1 - side]


@jit
def settle(
    problem: Any,
    settings: Any,
    output: Any,
    kept: Any,
    q: Any,
    degree: int,
    t_origin: float,
    h: float,
    t_old: float,
    t_new: float,
    y_new: Any,
    g: Any,
    row: Any,
    direction: float,
    may_repeat: bool,
) -> tuple[int, float, Any]:
    """Everything that follows an accepted step: (verdict, time reached, what is kept).

    `g` has four rows: values at t_old, at t_new, and work. With RESTART or HALT the state at the event is written
    into y_new and the time reached is that of the event; with REPEAT nothing is stored.
    """
    t_out, y_out, count, event_t, event_index, event_count = kept
    verdict = PASS
    t_reached = t_new
    if g.shape[1] > 0:
        g[3] = g[0]
        events_before = event_count
        start = t_old
        while any_crossing(g[0], g[1], settings.event_direction):
            t_event, index = locate(problem, settings, q, degree, t_origin, h, start, t_new, g[0], g[1], g[2], row)
            policy = settings.event_policy[index]
            verdict = event_verdict(policy, t_old, t_new, t_event)
            if verdict == REPEAT:
                if may_repeat:
                    g[0] = g[3]
                    return REPEAT, t_event, (t_out, y_out, count, event_t, event_index, events_before)
                verdict = HALT if policy == EVENT_STOP else RESTART
            event_t, event_index = store_event(event_t, event_index, event_count, t_event, index)
            event_count += 1
            output.counters[N_EVENT] += 1
            if verdict != PASS:
                t_reached = t_event
                break
            start = t_event
            g[0] = g[1]
            call_function(problem.calls, EVENT, t_new, y_new, g[1])
        g[0] = g[1]
        if verdict != PASS:
            horner(q, degree, (t_reached - t_origin) / h, row)
            y_new[:] = row
    if settings.wholes[OUTPUT] == OUTPUT_SAMPLES:
        count = take_samples(problem, output, count, q, degree, t_origin, h, t_reached, y_new, direction, row)
    elif settings.wholes[OUTPUT] == OUTPUT_STEPS:
        t_out, y_out = store_step(t_out, y_out, count, t_reached, y_new)
        count += 1
    return verdict, t_reached, (t_out, y_out, count, event_t, event_index, event_count)


@jit
def begin_output(
    problem: Any, settings: Any, output: Any, t: float, y: Any, g: Any, q: Any, row: Any, direction: float
) -> Any:
    """Values at the start of a run; see `settle` for what is kept."""
    count = 0
    t_out = output.t
    y_out = output.y
    if settings.wholes[OUTPUT] == OUTPUT_SAMPLES:
        count = take_samples(problem, output, 0, q, 0, t, 1.0, t, y, direction, row)
    elif settings.wholes[OUTPUT] == OUTPUT_STEPS:
        t_out, y_out = store_step(t_out, y_out, 0, t, y)
        count = 1
    if g.shape[1] > 0:
        call_function(problem.calls, EVENT, t, y, g[0])
    return t_out, y_out, count, output.event_t, output.event_index, 0


@plain_jit
def halted(settings: Any, counters: Any) -> int:
    """OK, or the limit that stops the run."""
    if counters[N_ACCEPTED] + counters[N_REJECTED] + counters[N_NEWTON_FAILED] >= settings.wholes[MAX_STEPS]:
        return STEP_LIMIT
    if settings.wholes[MAX_RHS] > 0 and counters[N_RHS] + counters[N_JACOBIAN_RHS] >= settings.wholes[MAX_RHS]:
        return STEP_LIMIT
    if settings.control[0] != 0.0:
        return TIME_LIMIT
    return OK
