"""Solve any initial-value problem y' = f(t, y) with the compiled integrators.

`solve` is the contract: any numba-jitted ``rhs(t, y, params, out)``, any numba type as `params`. The integrators are
compiled once for all problems (see `railsweep.kernels.integrate.call` for how a problem is reached and cached).
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.lanes import lane_form, lane_group, record_of, share_lanes
from railsweep.kernels.integrate import call, controller, layout, linear, linear_complex, linear_tree, norm
from railsweep.kernels.integrate.explicit import drive_explicit
from railsweep.kernels.integrate.lanes import Cases, LaneGroup, drive_lanes
from railsweep.kernels.integrate.registry import AUTO, METHODS, PUBLISHED_NEWTON, Method
from railsweep.kernels.lane import LANES
from railsweep.kernels.status import Status

Array = npt.NDArray[np.float64]

NORMS = {"scaled": norm.SCALED, "maximum": norm.MAXIMUM, "published": norm.PUBLISHED}
CONTROLLERS = {
    "elementary": controller.ELEMENTARY,
    "pi": controller.PI,
    "h211b": controller.H211B,
    "published_elementary": controller.PUBLISHED_ELEMENTARY,
    "published_pi": controller.PUBLISHED_PI,
    "predictive": controller.PREDICTIVE,
}
NEWTON_RULES = {"modern": layout.NEWTON_MODERN, "published": layout.NEWTON_PUBLISHED}
EVENT_POLICIES = {
    "record": layout.EVENT_RECORD,
    "restart": layout.EVENT_RESTART,
    "stop": layout.EVENT_STOP,
}

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

CASES_PER_TASK = 16
LANES_CASES = 64  # in one call of the driver of lanes

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexPair:
    """The same as `LinearSolver` for I - g*J with complex g, which only `radau` needs.

    ``factor(jacobian, hgamma, hdelta, reals, wholes)`` with g = hgamma + i hdelta, ``solve(reals, wholes, b)`` with the
    real parts of b first; see `railsweep.kernels.integrate.linear_complex`.
    """

    factor: Any
    solve: Any
    work: Callable[[], tuple[Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSolver:
    """The linear algebra of the implicit methods for one problem structure.

    ``factor(jacobian, hgamma, reals, wholes)`` factorises I - hgamma*J into the work arrays and returns non-zero when
    it is singular; ``solve(reals, wholes, b)`` overwrites b. Both jitted. ``work`` makes fresh work arrays. `radau`
    also needs ``complex_pair``; without one its complex system is solved dense.
    """

    factor: Any
    solve: Any
    work: Callable[[], tuple[Any, Any]]
    complex_pair: ComplexPair | None = None


def _complex_dense(n: int) -> ComplexPair:
    return ComplexPair(
        factor=linear_complex.complex_dense_factor,
        solve=linear_complex.complex_dense_solve,
        work=lambda: linear_complex.complex_dense_work(n),
    )


def dense_solver(n: int) -> LinearSolver:
    """LU of the full n x n matrix."""
    return LinearSolver(
        factor=linear.dense_factor,
        solve=linear.dense_solve,
        work=lambda: linear.dense_work(n),
        complex_pair=_complex_dense(n),
    )


def body_tree_solver(
    n: int, nodes: Sequence[Sequence[tuple[int, int]]], pairs: Iterable[tuple[int, int]]
) -> LinearSolver:
    """Elimination node by node of the matrix without its position rows, see `railsweep.kernels.integrate.linear_tree`.

    Parameters
    ----------
    n : int
        Number of states.
    nodes : sequence of sequences of (state, position)
        States of one body each (at most eight) and their positions, y'[position] = y[state] exactly, or -1.
    pairs : iterable of (node, node)
        Nodes whose states depend on each other.
    """
    reals, wholes = linear_tree.tree_work(n, nodes, pairs)
    held = np.array([pair for node in nodes for pair in node if pair[1] >= 0], dtype=np.int64).reshape(-1, 2)
    return LinearSolver(
        factor=linear_tree.tree_factor,
        solve=linear_tree.tree_solve,
        work=lambda: (reals.copy(), wholes.copy()),
        complex_pair=ComplexPair(
            factor=linear_complex.complex_reduced_factor,
            solve=linear_complex.complex_reduced_solve,
            work=lambda: linear_complex.complex_reduced_work(n, held[:, 1], held[:, 0]),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Sign changes to look for.

    Parameters
    ----------
    function : jitted ``function(t, y, params, out)``
        Writes one value per event into ``out``.
    count : int
        How many.
    direction : sequence of int, optional
        +1 rising, -1 falling, 0 both (default) for each event.
    policy : str or sequence of str
        ``"record"``: note the time and go on; ``"restart"``: integrate up to the event, then start anew beyond it (for
        a break in the right-hand side); ``"stop"``: end the run there.
    """

    function: Any
    count: int
    direction: Sequence[int] = ()
    policy: str | Sequence[str] = "restart"


_entries: dict[tuple[Any, ...], Any] = {}
_entries_lock = threading.Lock()


def _entry(make: Callable[..., Any], function: Any, name: str, *extra: Any) -> int:
    """Address of the C entry of a jitted function; entries live as long as the process."""
    if function is None:
        return 0
    if not isinstance(function, numba.core.registry.CPUDispatcher):
        raise InputError(name, f"is {shown(function)}", "a function compiled with numba.njit")
    return int(_made(make, function, *extra).address)


def _made(make: Callable[..., Any], function: Any, *extra: Any) -> Any:
    key = (make, function, *extra)
    with _entries_lock:
        if key not in _entries:
            _entries[key] = make(function, *extra)
        return _entries[key]


def _choice(name: str, value: str, options: dict[str, int]) -> int:
    if value not in options:
        raise InputError(name, f"unknown value {shown(value)}", nearest(str(value), list(options)))
    return options[value]


def _positive(name: str, value: float, *, zero: bool = False, infinite: bool = False) -> float:
    number = float(value)
    if np.isnan(number) or number < 0.0 or (number == 0.0 and not zero) or (np.isinf(number) and not infinite):
        raise InputError(name, f"is {shown(value)}", "a positive number" + (" or zero" if zero else ""))
    return number


def column_groups(pattern: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Greedy colouring: columns in one group share no row of the pattern, so one difference serves them all."""
    used = np.asarray(pattern, dtype=bool)
    n = used.shape[1]
    group = np.full(n, -1, dtype=np.int64)
    # Crowded columns first: they are the hardest to place.
    for j in np.argsort(-used.sum(axis=0), kind="stable"):
        rivals = (used[used[:, j]]).any(axis=0)
        taken = set(group[rivals & (group >= 0)].tolist())
        group[j] = next(g for g in range(n) if g not in taken)
    return group


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Everything of a call to `solve` that does not depend on the case."""

    methods: tuple[Method, ...]
    t0: float
    t1: float
    n: int
    rtol: tuple[float, ...]
    atol: tuple[Array, ...]
    reals: tuple[Array, ...]
    wholes: tuple[npt.NDArray[np.int64], ...]
    calls: npt.NDArray[np.int64]
    packer: call.Packer
    linear: LinearSolver
    complex_pair: ComplexPair | None
    group: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.uint8]
    stops: Array
    event_direction: npt.NDArray[np.int64]
    event_policy: npt.NDArray[np.int64]
    t_eval: Array | None
    store: bool
    accumulator: Array
    time_limit: float | None
    history: Array | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to solve; see `solve` for the meaning of each."""

    method: str = "auto"
    rtol: float = 1e-6
    atol: float | npt.ArrayLike = 1e-9
    jacobian: Any = None
    t_eval: npt.ArrayLike | None = None
    first_step: float | None = None
    max_step: float = np.inf
    min_step: float = 0.0
    max_steps: int = 100_000_000
    max_rhs: int = 0
    max_order: int = 5
    norm: str = "scaled"
    controller: str | None = None
    newton: str = "modern"
    newton_kappa: float | None = None
    fixed_step: float | None = None
    fixed_order: int = 0
    events: Events | None = None
    stops: npt.ArrayLike = ()
    linear: LinearSolver | None = None
    sparsity: npt.ArrayLike | None = None
    observer: Any = None
    accumulator: npt.ArrayLike | None = None
    store: bool = True
    time_limit: float | None = None
    history: npt.ArrayLike | None = None


def _options(given: dict[str, Any]) -> Options:
    names = [f.name for f in fields(Options)]
    for name in given:
        if name not in names:
            raise InputError(name, "is not an option of solve", nearest(name, names))
    return Options(**given)


def _plan(rhs: Any, t_span: Sequence[float], n: int, params_type: Any, options: Options) -> _Plan:
    method, rtol, atol, norm = options.method, options.rtol, options.atol, options.norm
    t_eval, stops, events, controller = options.t_eval, options.stops, options.events, options.controller
    names = AUTO if method == "auto" else (method,)
    for name in names:
        if name not in METHODS:
            raise InputError("method", f"unknown method {shown(method)}", nearest(str(method), [*METHODS, "auto"]))
    methods = tuple(METHODS[name] for name in names)
    if len(t_span) != 2 or not np.all(np.isfinite(t_span)):
        raise InputError("t_span", f"is {shown(t_span)}", "two finite times")
    t0, t1 = float(t_span[0]), float(t_span[1])
    direction = 1.0 if t1 >= t0 else -1.0
    _positive("rtol", rtol, zero=True)
    tolerance = np.array(np.broadcast_to(np.asarray(atol, dtype=np.float64), (n,)))
    if not np.all(np.isfinite(tolerance)) or np.any(tolerance < 0.0) or (rtol == 0.0 and np.any(tolerance == 0.0)):
        raise InputError("atol", f"is {shown(atol)}", "non-negative numbers, positive where rtol is zero")
    if norm == "published" and np.any(tolerance == 0.0):
        raise InputError("atol", f"is {shown(atol)}", "positive: the published norm is absolute")

    wanted = None
    if t_eval is not None:
        wanted = np.array(t_eval, dtype=np.float64).ravel()
        inside = (wanted - t0) * direction >= 0.0
        inside &= (t1 - wanted) * direction >= 0.0
        if not np.all(inside) or np.any(np.diff(wanted) * direction < 0.0):
            raise InputError("t_eval", f"is {shown(t_eval)}", "sorted times within t_span")
    breaks = np.sort(np.asarray(stops, dtype=np.float64).ravel())
    if not np.all(np.isfinite(breaks)):
        raise InputError("stops", f"is {shown(stops)}", "finite times")

    all_reals, all_wholes = [], []
    for index, chosen in enumerate(methods):
        reals = np.zeros(layout.REALS_WIDTH)
        reals[layout.FIRST_STEP] = 0.0 if options.first_step is None else _positive("first_step", options.first_step)
        reals[layout.MIN_STEP] = _positive("min_step", options.min_step, zero=True)
        reals[layout.MAX_STEP] = _positive("max_step", options.max_step, infinite=True)
        reals[layout.SAFETY] = chosen.safety
        reals[layout.MIN_FACTOR] = chosen.min_factor
        reals[layout.MAX_FACTOR] = chosen.max_factor
        reals[layout.NEWTON_KAPPA] = (
            chosen.newton_kappa if options.newton_kappa is None else _positive("newton_kappa", options.newton_kappa)
        )
        reals[layout.FIXED_STEP] = 0.0 if options.fixed_step is None else _positive("fixed_step", options.fixed_step)
        wholes = np.zeros(layout.WHOLES_WIDTH, dtype=np.int64)
        wholes[layout.NORM] = _choice("norm", norm, NORMS)
        if controller is not None:
            wholes[layout.CONTROLLER] = _choice("controller", controller, CONTROLLERS)
            if chosen.controller is None:
                able = ", ".join(m for m in METHODS if METHODS[m].controller is not None)
                raise InputError(
                    "controller",
                    f"is {shown(controller)} with method {shown(method)}, which chooses its steps itself",
                    f"None, or one of the methods {able}",
                )
        elif chosen.controller is not None:
            wholes[layout.CONTROLLER] = chosen.controller
        wholes[layout.NEWTON_RULE] = _choice("newton", options.newton, NEWTON_RULES)
        if options.newton == "published" and names[index] not in PUBLISHED_NEWTON:
            raise InputError(
                "newton",
                f"is 'published' with method {shown(method)}",
                f"'modern', or one of the methods {', '.join(PUBLISHED_NEWTON)}",
            )
        wholes[layout.MAX_STEPS] = options.max_steps
        wholes[layout.MAX_RHS] = options.max_rhs
        wholes[layout.MAX_ORDER] = options.max_order
        wholes[layout.FIXED_ORDER] = options.fixed_order
        wholes[layout.MAX_NEWTON] = chosen.max_newton
        wholes[layout.SEQUENCE] = chosen.sequence
        wholes[layout.OUTPUT] = layout.OUTPUT_STEPS if wanted is None else layout.OUTPUT_SAMPLES
        if wanted is None and not options.store:
            wholes[layout.OUTPUT] = layout.OUTPUT_END
        wholes[layout.WATCH_STIFFNESS] = int(len(methods) > 1)
        if index == 1:
            # The first step of the second method is the last one of the first.
            reals[layout.FIRST_STEP] = 0.0
        all_reals.append(reals)
        all_wholes.append(wholes)

    # The published and maximum norms are used to reproduce others' step counts: their tolerance is taken literally.
    scales = [m.tolerance_scale if norm == "scaled" else 1.0 for m in methods]
    algebra = dense_solver(n) if options.linear is None else options.linear
    calls = np.zeros(call.CALLS_WIDTH, dtype=np.int64)
    calls[call.RHS] = _entry(call.function_entry, rhs, "rhs", params_type)
    if any(m.implicit for m in methods):
        calls[call.JACOBIAN] = _entry(call.jacobian_entry, options.jacobian, "jacobian", params_type)
        calls[call.FACTOR] = _entry(call.factor_entry, algebra.factor, "linear.factor")
        calls[call.SOLVE] = _entry(call.solve_entry, algebra.solve, "linear.solve")
    pair = None
    if any(m.complex_pair for m in methods):
        pair = _complex_dense(n) if algebra.complex_pair is None else algebra.complex_pair
        calls[call.FACTOR_COMPLEX] = _entry(call.factor_complex_entry, pair.factor, "linear.complex_pair.factor")
        calls[call.SOLVE_COMPLEX] = _entry(call.solve_entry, pair.solve, "linear.complex_pair.solve")
    calls[call.OBSERVER] = _entry(call.function_entry, options.observer, "observer", params_type)

    direction_array = np.zeros(0, dtype=np.int64)
    policy_array = np.zeros(0, dtype=np.int64)
    if events is not None:
        calls[call.EVENT] = _entry(call.function_entry, events.function, "events.function", params_type)
        direction_array = np.zeros(events.count, dtype=np.int64)
        if len(events.direction):
            direction_array[:] = events.direction
        policies = [events.policy] * events.count if isinstance(events.policy, str) else events.policy
        policy_array = np.array([_choice("events.policy", p, EVENT_POLICIES) for p in policies], dtype=np.int64)
        if policy_array.size != events.count:
            raise InputError("events.policy", f"has {policy_array.size} entries", f"{events.count} entries")

    pattern = np.zeros((0, 0), dtype=np.uint8)
    group = np.arange(n, dtype=np.int64)
    if options.sparsity is not None:
        pattern = np.ascontiguousarray(np.asarray(options.sparsity) != 0, dtype=np.uint8)
        if pattern.shape != (n, n):
            raise InputError("sparsity", f"has shape {pattern.shape}", f"shape {(n, n)}")
        group = column_groups(pattern)
    return _Plan(
        methods=methods,
        t0=t0,
        t1=t1,
        n=n,
        rtol=tuple(float(rtol) * s for s in scales),
        atol=tuple(tolerance * s for s in scales),
        reals=tuple(all_reals),
        wholes=tuple(all_wholes),
        calls=calls,
        packer=_made(call.packer, rhs, params_type),
        linear=algebra,
        complex_pair=pair,
        group=group,
        pattern=pattern,
        stops=breaks,
        event_direction=direction_array,
        event_policy=policy_array,
        t_eval=wanted,
        store=options.store,
        accumulator=np.zeros(0) if options.accumulator is None else np.array(options.accumulator, dtype=np.float64),
        time_limit=options.time_limit,
        history=None if options.history is None else np.ascontiguousarray(options.history, dtype=np.float64),
    )


def _message(status: Status, t: float) -> str:
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


def _run(plan: _Plan, y0: Array, params: Any, progress: Callable[[float], object] | None = None) -> Solution:
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
        message=_message(status, t),
        counters={name: int(v) for name, v in zip(layout.COUNTER_NAMES, counters, strict=True)},
        t_end=t,
        y_end=y,
        event_t=np.concatenate([p[0] for p in event_pieces]),
        event_index=np.concatenate([p[1] for p in event_pieces]),
        accumulator=accumulator,
    )


def _fits_lanes(plan: _Plan) -> bool:
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


def _run_lanes(plan: _Plan, lanes: Any, starts: Sequence[Array], params: Sequence[Any]) -> list[Solution]:
    """Cases side by side, LANES at a time; each gets what `_run` would give it, to the last bit.

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
    packer = _made(call.packer, lanes, kind)
    block = packer.pack(group)
    lane_calls = np.zeros(call.CALLS_WIDTH, dtype=np.int64)
    lane_calls[call.RHS] = _entry(call.function_entry, lanes, "rhs", kind)
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
            solutions.append(_run(plan, starts[i], params[i]))
            continue
        taken = int(cases.samples[i])
        solutions.append(
            Solution(
                t=wanted[:taken].copy(),
                y=cases.sample[i, :taken].T,
                status=status,
                message=_message(status, float(cases.time[i])),
                counters={name: int(v) for name, v in zip(layout.COUNTER_NAMES, cases.counters[i], strict=True)},
                t_end=float(cases.time[i]),
                y_end=cases.state[i],
                event_t=np.zeros(0),
                event_index=np.zeros(0, dtype=np.int64),
                accumulator=cases.accumulator[i],
            )
        )
    return solutions


def _state(name: str, y0: npt.ArrayLike) -> Array:
    y = np.array(y0, dtype=np.float64)
    if y.ndim != 1 or y.size == 0:
        raise InputError(name, f"has shape {y.shape}", "one non-empty row of numbers")
    if not np.all(np.isfinite(y)):
        raise InputError(name, f"is {shown(y0)}", "finite numbers")
    return y


def solve(
    rhs: Any,
    t_span: Sequence[float],
    y0: npt.ArrayLike,
    params: Any = None,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float | npt.ArrayLike = 1e-9,
    jacobian: Any = None,
    t_eval: npt.ArrayLike | None = None,
    *,
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int = 100_000_000,
    max_rhs: int = 0,
    max_order: int = 5,
    norm: str = "scaled",
    controller: str | None = None,
    newton: str = "modern",
    newton_kappa: float | None = None,
    fixed_step: float | None = None,
    fixed_order: int = 0,
    events: Events | None = None,
    stops: npt.ArrayLike = (),
    linear: LinearSolver | None = None,
    sparsity: npt.ArrayLike | None = None,
    observer: Any = None,
    accumulator: npt.ArrayLike | None = None,
    store: bool = True,
    time_limit: float | None = None,
    history: npt.ArrayLike | None = None,
    progress: Callable[[float], object] | None = None,
) -> Solution:
    """Integrate y' = f(t, y) from t_span[0] to t_span[1].

    Parameters
    ----------
    rhs : jitted ``rhs(t, y, params, out)``
        Writes f(t, y) into ``out``; returns None, or a status (0 = well). A non-zero status or a non-finite value
        fails the stage: the step is halved, and the run stops with that status when this does not help.
    t_span : (float, float)
        Start and end; the end may lie before the start.
    y0 : (n,) array_like
        Initial state.
    params : any type numba knows
        Handed to `rhs` untouched.
    method : str
        A name in `railsweep.kernels.integrate.METHODS`, or ``"auto"`` (an explicit and an implicit one in turn).
    rtol, atol : float, float or (n,) array_like
        The error of a step is kept below atol + rtol*|y| in the chosen norm.
    jacobian : jitted ``jacobian(t, y, params, out)``, optional
        Writes df/dy into the (n, n) array ``out``; differences otherwise (grouped when `sparsity` is given).
    t_eval : array_like, optional
        Times at which to sample, by dense output of the method. Default: every accepted step.
    first_step, max_step, min_step : float, optional
        Step sizes. max_steps, max_rhs : int. Limits on attempted steps and on evaluations (0: none).
    max_order : int
        Highest order of `bdf`, highest column of the extrapolation methods.
    norm : {"scaled", "maximum", "published"}
    controller : {"elementary", "pi", "h211b", "predictive", "published_elementary", "published_pi"}, optional
        Of the Runge-Kutta methods; `bdf`, `bsimp` and `seulex` choose order and step together and refuse one.
    newton : {"modern", "published"}
        Rules of Newton's iteration in the ESDIRK methods; see spec 3.5 for the published ones.
    fixed_step, fixed_order, history
        Constant step without error control, constant order, and a Nordsieck history to start `bdf` from: for
        convergence studies.
    events : Events, optional
    stops : array_like
        Points no step may cross; the run restarts there (ends of transitions, breaks of an input).
    linear : LinearSolver, optional
        Structure of the Newton matrix, see `body_tree_solver`; dense by default.
    observer : jitted ``observer(t, y, params, accumulator)``, optional
        Called at every sample. With ``store=False`` the samples themselves are not kept.
    time_limit : float, optional
        Wall-clock seconds.
    progress : callable, optional
        ``progress(t)`` with the time reached, called from a thread of its own ten times a second while the run goes on.

    Returns
    -------
    Solution
    """
    start = _state("y0", y0)
    options = Options(
        method=method,
        rtol=rtol,
        atol=atol,
        jacobian=jacobian,
        t_eval=t_eval,
        first_step=first_step,
        max_step=max_step,
        min_step=min_step,
        max_steps=max_steps,
        max_rhs=max_rhs,
        max_order=max_order,
        norm=norm,
        controller=controller,
        newton=newton,
        newton_kappa=newton_kappa,
        fixed_step=fixed_step,
        fixed_order=fixed_order,
        events=events,
        stops=stops,
        linear=linear,
        sparsity=sparsity,
        observer=observer,
        accumulator=accumulator,
        store=store,
        time_limit=time_limit,
        history=history,
    )
    return _run(_plan(rhs, t_span, start.size, numba.typeof(params), options), start, params, progress)


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
    starts: list[Array] = [_state(f"y0[{i}]", states[i]) for i in range(cases)]
    plan = _plan(rhs, t_span, states.shape[1], kind, _options(options))
    form = lane_form(rhs) if lanes else None
    if form is not None and cases > 1 and _fits_lanes(plan) and share_lanes(given):
        size = min(LANES_CASES, -(-cases // threads))
        parts = [slice(i, i + size) for i in range(0, cases, size)]

        def carried(part: slice) -> list[Solution]:
            return _run_lanes(plan, form, starts[part], given[part])

        if threads == 1:
            return [solution for part in parts for solution in carried(part)]
        alone = 0 if drive_lanes.signatures else 1  # numba compiles under a lock
        head = [solution for part in parts[:alone] for solution in carried(part)]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            return [*head, *(solution for part in pool.map(carried, parts[alone:]) for solution in part)]
    if threads == 1:
        return [_run(plan, y, p) for y, p in zip(starts, given, strict=True)]
    # The first case alone: numba compiles under a lock, and a warm dispatcher is all the other threads should meet.
    first = _run(plan, starts[0], given[0])
    # Runs of neighbouring cases per task: handing over each case alone costs as much as a short case itself.
    rest = list(zip(starts[1:], given[1:], strict=True))
    size = max(1, min(CASES_PER_TASK, -(-len(rest) // threads)))
    tasks = [rest[i : i + size] for i in range(0, len(rest), size)]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        done = pool.map(lambda task: [_run(plan, y, p) for y, p in task], tasks)
        return [first, *(solution for part in done for solution in part)]
