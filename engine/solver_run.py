"""One case through the compiled integrators, as planned: methods in turn, time limit, progress, and what came of it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from railsweep.engine.solver_plan import Plan
from railsweep.kernels.integrate import call, layout
from railsweep.kernels.status import Status

Array = npt.NDArray[np.float64]

MESSAGES = {
    Status.OK: "the end of the time span was reached",
    Status.EVENT: "an event stopped the run",
    Status.DERAILED: "derailment: the motion left the range of the contact table",
    Status.LAW_OUT_OF_RANGE: "a tabulated law was asked outside its range",
    Status.STEP_UNDERFLOW: "the step size fell below what the clock can resolve; the tolerance cannot be met",
    Status.NEWTON_FAILED: "Newton's iteration did not converge even with small steps",
    Status.NOT_FINITE: "the right-hand side is not finite",
    Status.STEP_LIMIT: "the allowed number of steps or evaluations is used up",
    Status.TIME_LIMIT: "the time limit was reached",
}

# More switches than this within one run mean that neither method is clearly better: `auto` then stays implicit.
MAX_SWITCHES = 40

PROGRESS_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The outcome of one run; a run that stopped early keeps everything computed before.

    Attributes
    ----------
    t : (m,) array
        The wanted times that were reached, or every accepted step.
    y : (n, m) array
        ``y[:, k]`` is the state at ``t[k]`` (as in scipy).
    status : Status
        Why the run ended.
    message : str
        The same in words, with the time reached.
    counters : dict
        Work: see `railsweep.kernels.integrate.layout.COUNTER_NAMES`.
    t_end, y_end
        Where the run ended, whether or not it is among the samples.
    event_t, event_index
        Located events in the order of travel.
    accumulator : array
        What the observer left behind.
    """

    t: Array
    y: Array
    status: Status
    message: str
    counters: dict[str, int]
    t_end: float
    y_end: Array
    event_t: Array
    event_index: npt.NDArray[np.int64]
    accumulator: Array

    @property
    def success(self) -> bool:
        """True when the run ended as it was meant to: at the end of the span or at a stopping event."""
        return self.status in (Status.OK, Status.EVENT)


def message_of(status: Status, t: float) -> str:
    return f"{MESSAGES[status]} (t = {t:.9g})"


class _Watcher(threading.Thread):
    """Reports the time a run has reached, from the slot the compiled driver writes, until it is stopped."""

    def __init__(self, control: Array, report: Callable[[float], object]) -> None:
        super().__init__(daemon=True)
        self.control, self.report, self.done = control, report, threading.Event()

    def run(self) -> None:
        while not self.done.wait(PROGRESS_INTERVAL_S):
            self.report(float(self.control[1]))

    def stop(self) -> None:
        """End the reports; none comes after this returns."""
        self.done.set()
        self.join()


def run_plan(plan: Plan, y0: Array, params: Any, progress: Callable[[float], object] | None = None) -> Solution:
    """One case. The work arrays are its own, so cases may run side by side."""
    n = plan.n
    counters = np.zeros(layout.COUNTERS_WIDTH, dtype=np.int64)
    control = np.zeros(2)
    accumulator = plan.accumulator.copy()
    reals, wholes = (
        plan.linear.work() if any(m.implicit for m in plan.methods) else (np.zeros(0), np.zeros(0, np.int64))
    )
    complex_reals, complex_wholes = (
        (np.zeros(0), np.zeros(0, np.int64)) if plan.complex_pair is None else plan.complex_pair.work()
    )
    block = plan.packer.pack(params)
    calls = plan.calls.copy()
    calls[call.PARAMS] = block.ctypes.data
    wanted = plan.t_eval
    t_store = np.zeros(0) if wanted is None else wanted
    y_store = np.zeros((t_store.size if plan.store else 0, n))
    timer = None
    if plan.time_limit is not None:
        timer = threading.Timer(plan.time_limit, control.__setitem__, (0, 1.0))
        timer.daemon = True
        timer.start()
    watcher = None
    if progress is not None:
        control[1] = plan.t0
        watcher = _Watcher(control, progress)
        watcher.start()
    t, y = plan.t0, y0
    chosen = 0
    step = 0.0
    switches = 0
    done = 0
    pieces: list[tuple[Array, Array]] = []
    event_pieces: list[tuple[Array, Any]] = []
    try:
        while True:
            method = plan.methods[chosen]
            problem = layout.Problem(
                calls=calls,
                rtol=plan.rtol[chosen],
                atol=plan.atol[chosen],
                linear_reals=reals,
                linear_wholes=wholes,
                complex_reals=complex_reals,
                complex_wholes=complex_wholes,
                column_group=plan.group,
                pattern=plan.pattern,
            )
            settings_reals = plan.reals[chosen]
            settings_wholes = plan.wholes[chosen]
            if step != 0.0:
                settings_reals = settings_reals.copy()
                settings_reals[layout.FIRST_STEP] = abs(step)
            if switches > MAX_SWITCHES:
                settings_wholes = settings_wholes.copy()
                settings_wholes[layout.WATCH_STIFFNESS] = 0
            settings = layout.Settings(
                reals=settings_reals,
                wholes=settings_wholes,
                stops=plan.stops,
                event_direction=plan.event_direction,
                event_policy=plan.event_policy,
                control=control,
            )
            output = layout.Output(
                t=t_store[done:],
                y=y_store[done:],
                event_t=np.zeros(0),
                event_index=np.zeros(0, dtype=np.int64),
                accumulator=accumulator,
                counters=counters,
            )
            coefficients = method.made(n) if plan.history is None else plan.history
            result = layout.Result(*method.driver(problem, coefficients, settings, output, t, plan.t1, y))
            t, y, step = result.time, result.state, result.step
            event_pieces.append((result.event_t[: result.event_count], result.event_index[: result.event_count]))
            if wanted is None:
                # A later piece starts with the point the one before ended with.
                first = 1 if pieces else 0
                pieces.append((result.t[first : result.samples], result.y[first : result.samples]))
            else:
                done += result.samples
            if result.status != layout.SWITCH:
                break
            counters[layout.N_SWITCH] += 1
            switches += 1
            chosen = 1 - chosen if switches <= MAX_SWITCHES else 1
    finally:
        if timer is not None:
            timer.cancel()
        if watcher is not None:
            watcher.stop()
        plan.packer.release(params, block)
    if wanted is None:
        t_out = np.concatenate([p[0] for p in pieces])
        y_out = np.concatenate([p[1] for p in pieces])
    else:
        t_out = wanted[:done].copy()
        y_out = y_store[:done]
    status = Status(result.status)
    return Solution(
        t=t_out,
        y=y_out.T,
        status=status,
        message=message_of(status, t),
        counters={name: int(v) for name, v in zip(layout.COUNTER_NAMES, counters, strict=True)},
        t_end=t,
        y_end=y,
        event_t=np.concatenate([p[0] for p in event_pieces]),
        event_index=np.concatenate([p[1] for p in event_pieces]),
        accumulator=accumulator,
    )
