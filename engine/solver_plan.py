"""What a call to `railsweep.engine.solve` asks for: checked, and laid out for the compiled integrators."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from railsweep.engine.entry import entry, made
from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.linear_solver import ComplexPair, LinearSolver, complex_dense_solver, dense_solver
from railsweep.kernels.integrate import call, controller, layout, norm
from railsweep.kernels.integrate.registry import AUTO, METHODS, PUBLISHED_NEWTON, Method

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
class Plan:
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


def options_of(given: dict[str, Any]) -> Options:
    names = [f.name for f in fields(Options)]
    for name in given:
        if name not in names:
            raise InputError(name, "is not an option of solve", nearest(name, names))
    return Options(**given)


def make_plan(rhs: Any, t_span: Sequence[float], n: int, params_type: Any, options: Options) -> Plan:
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
    calls[call.RHS] = entry(call.function_entry, rhs, "rhs", params_type)
    if any(m.implicit for m in methods):
        calls[call.JACOBIAN] = entry(call.jacobian_entry, options.jacobian, "jacobian", params_type)
        calls[call.FACTOR] = entry(call.factor_entry, algebra.factor, "linear.factor")
        calls[call.SOLVE] = entry(call.solve_entry, algebra.solve, "linear.solve")
    pair = None
    if any(m.complex_pair for m in methods):
        pair = complex_dense_solver(n) if algebra.complex_pair is None else algebra.complex_pair
        calls[call.FACTOR_COMPLEX] = entry(call.factor_complex_entry, pair.factor, "linear.complex_pair.factor")
        calls[call.SOLVE_COMPLEX] = entry(call.solve_entry, pair.solve, "linear.complex_pair.solve")
    calls[call.OBSERVER] = entry(call.function_entry, options.observer, "observer", params_type)

    direction_array = np.zeros(0, dtype=np.int64)
    policy_array = np.zeros(0, dtype=np.int64)
    if events is not None:
        calls[call.EVENT] = entry(call.function_entry, events.function, "events.function", params_type)
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
    return Plan(
        methods=methods,
        t0=t0,
        t1=t1,
        n=n,
        rtol=tuple(float(rtol) * s for s in scales),
        atol=tuple(tolerance * s for s in scales),
        reals=tuple(all_reals),
        wholes=tuple(all_wholes),
        calls=calls,
        packer=made(call.packer, rhs, params_type),
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


def checked_state(name: str, y0: npt.ArrayLike) -> Array:
    y = np.array(y0, dtype=np.float64)
    if y.ndim != 1 or y.size == 0:
        raise InputError(name, f"has shape {y.shape}", "one non-empty row of numbers")
    if not np.all(np.isfinite(y)):
        raise InputError(name, f"is {shown(y0)}", "finite numbers")
    return y
