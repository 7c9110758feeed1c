"""Many cases of one problem: side by side in the lanes of vector registers, and on threads without the GIL."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from railsweep.engine.entry import entry, made
from railsweep.engine.errors import InputError, shown
from railsweep.engine.lanes import lane_form, lane_group, record_of, share_lanes
from railsweep.engine.solver_plan import Plan, checked_state, make_plan, options_of
from railsweep.engine.solver_run import Solution, message_of, run_plan
from railsweep.kernels.integrate import call, layout
from railsweep.kernels.integrate.explicit import drive_explicit
from railsweep.kernels.integrate.lanes import Cases, LaneGroup, drive_lanes
from railsweep.kernels.lane import LANES
from railsweep.kernels.status import Status

Array = npt.NDArray[np.float64]

CASES_PER_TASK = 16
LANES_CASES = 64  # in one call of the driver of lanes


def fits_lanes(plan: Plan) -> bool:
    """Can `drive_lanes` do this: an explicit pair, samples or the end alone, nothing that interrupts a step?"""
    method = plan.methods[0]
    return (
        len(plan.methods) == 1
        and method.driver is drive_explicit
        and plan.event_policy.size == 0
        and plan.stops.size == 0
        and plan.history is None
        and (plan.t_eval is not None or not plan.store)
        # stages of the dense output are the scalar driver's business
        and (plan.t_eval is None or method.made(plan.n).extra_c.size == 0)
    )


def run_lanes(plan: Plan, lanes: Any, starts: Sequence[Array], params: Sequence[Any]) -> list[Solution]:
    """Cases side by side, LANES at a time; each gets what `run_plan` would give it, to the last bit.

    The time limit is that of a case: a group gets it once for every round of cases, and those that did not come to
    their end within it are run alone.
    """
    count, n = len(starts), plan.n
    wanted = np.zeros(0) if plan.t_eval is None else plan.t_eval
    blocks = [plan.packer.pack(p) for p in params]
    calls = np.tile(plan.calls, (count, 1))
    calls[:, call.PARAMS] = [block.ctypes.data for block in blocks]
    record, group = lane_group(params[0])
    kind = numba.typeof(group)
    packer = made(call.packer, lanes, kind)
    block = packer.pack(group)
    lane_calls = np.zeros(call.CALLS_WIDTH, dtype=np.int64)
    lane_calls[call.RHS] = entry(call.function_entry, lanes, "rhs", kind)
    lane_calls[call.PARAMS] = block.ctypes.data
    cases = Cases(
        calls=calls,
        record=np.array([record_of(p) for p in params]),
        start=np.array(starts),
        wanted=wanted,
        sample=np.zeros((count, wanted.size if plan.store else 0, n)),
        accumulator=np.tile(plan.accumulator, (count, 1)),
        counters=np.zeros((count, layout.COUNTERS_WIDTH), dtype=np.int64),
        status=np.zeros(count, dtype=np.int64),
        time=np.zeros(count),
        state=np.zeros((count, n)),
        samples=np.zeros(count, dtype=np.int64),
    )
    like = layout.Problem(
        calls=plan.calls,
        rtol=plan.rtol[0],
        atol=plan.atol[0],
        linear_reals=np.zeros(0),
        linear_wholes=np.zeros(0, np.int64),
        complex_reals=np.zeros(0),
        complex_wholes=np.zeros(0, np.int64),
        column_group=plan.group,
        pattern=plan.pattern,
    )
    settings = layout.Settings(
        reals=plan.reals[0],
        wholes=plan.wholes[0],
        stops=plan.stops,
        event_direction=plan.event_direction,
        event_policy=plan.event_policy,
        control=np.zeros(2),
    )
    timer = None
    if plan.time_limit is not None:
        timer = threading.Timer(plan.time_limit * -(-count // LANES), settings.control.__setitem__, (0, 1.0))
        timer.daemon = True
        timer.start()
    try:
        drive_lanes(LaneGroup(lane_calls, record), cases, like, plan.methods[0].made(n), settings, plan.t0, plan.t1)
    finally:
        if timer is not None:
            timer.cancel()
        packer.release(group, block)
        for p, own in zip(params, blocks, strict=True):
            plan.packer.release(p, own)
    solutions = []
    for i in range(count):
        status = Status(int(cases.status[i]))
        if status == Status.TIME_LIMIT:
            solutions.append(run_plan(plan, starts[i], params[i]))
            continue
        taken = int(cases.samples[i])
        solutions.append(
            Solution(
                t=wanted[:taken].copy(),
                y=cases.sample[i, :taken].T,
                status=status,
                message=message_of(status, float(cases.time[i])),
                counters={name: int(v) for name, v in zip(layout.COUNTER_NAMES, cases.counters[i], strict=True)},
                t_end=float(cases.time[i]),
                y_end=cases.state[i],
                event_t=np.zeros(0),
                event_index=np.zeros(0, dtype=np.int64),
                accumulator=cases.accumulator[i],
            )
        )
    return solutions


def solve_ensemble(
    rhs: Any,
    t_span: Sequence[float],
    y0: npt.ArrayLike,
    params: Sequence[Any] | npt.NDArray[Any] | None = None,
    *,
    threads: int = 1,
    lanes: bool = True,
    **options: Any,
) -> list[Solution]:
    """Run many cases of one problem; the i-th solution belongs to the i-th case.

    Parameters
    ----------
    y0 : (cases, n) or (n,) array_like
        One initial state per case, or one for all.
    params : sequence of per-case parameters, all of one numba type; optional
        A 2-D array gives each case its row.
    threads : int
        Cases run side by side without the GIL. Each case has its own work arrays, so the results do not depend, to the
        last bit, on the number of threads or the order in which cases finish.
    lanes : bool
        Let cases of a vehicle run side by side in the lanes of vector registers where the method is explicit and
        nothing (event, stop) interrupts a step. A case gets the same bits either way.
    **options
        As for `solve`.
    """
    states = np.array(y0, dtype=np.float64)
    if states.ndim not in (1, 2):
        raise InputError("y0", f"has shape {states.shape}", "(cases, n) or (n,)")
    if threads < 1:
        raise InputError("threads", f"is {shown(threads)}", "at least 1")
    if params is None and states.ndim == 1:
        raise InputError("params", "is None and y0 is one state", "one or the other per case")
    cases = len(params) if params is not None else states.shape[0]
    if states.ndim == 1:
        states = np.broadcast_to(states, (cases, states.size))
    if states.shape[0] != cases:
        raise InputError("y0", f"has {states.shape[0]} states", f"{cases}, as many as params")
    given: list[Any] = [None] * cases if params is None else list(params)
    if cases == 0:
        return []
    kind = numba.typeof(given[0])
    for index, one in enumerate(given):
        if numba.typeof(one) != kind:
            raise InputError(f"params[{index}]", f"is of type {numba.typeof(one)}", f"{kind}, as the first case")
    starts: list[Array] = [checked_state(f"y0[{i}]", states[i]) for i in range(cases)]
    plan = make_plan(rhs, t_span, states.shape[1], kind, options_of(options))
    form = lane_form(rhs) if lanes else None
    if form is not None and cases > 1 and fits_lanes(plan) and share_lanes(given):
        size = min(LANES_CASES, -(-cases // threads))
        parts = [slice(i, i + size) for i in range(0, cases, size)]

        def carried(part: slice) -> list[Solution]:
            return run_lanes(plan, form, starts[part], given[part])

        if threads == 1:
            return [solution for part in parts for solution in carried(part)]
        alone = 0 if drive_lanes.signatures else 1  # numba compiles under a lock
        head = [solution for part in parts[:alone] for solution in carried(part)]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            return [*head, *(solution for part in pool.map(carried, parts[alone:]) for solution in part)]
    if threads == 1:
        return [run_plan(plan, y, p) for y, p in zip(starts, given, strict=True)]
    # The first case alone: numba compiles under a lock, and a warm dispatcher is all the other threads should meet.
    first = run_plan(plan, starts[0], given[0])
    # Runs of neighbouring cases per task: handing over each case alone costs as much as a short case itself.
    rest = list(zip(starts[1:], given[1:], strict=True))
    size = max(1, min(CASES_PER_TASK, -(-len(rest) // threads)))
    tasks = [rest[i : i + size] for i in range(0, len(rest), size)]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        done = pool.map(lambda task: [run_plan(plan, y, p) for y, p in task], tasks)
        return [first, *(solution for part in done for solution in part)]
