"""What a driver receives and reports: the slots of its settings and counters, and the records it passes around.

All records are NamedTuples of arrays, which numba passes as plain arguments. Settings are two small arrays so that a
new option changes no signature. Times are in the unit of the problem; a negative step integrates backwards.
"""

from typing import Any, NamedTuple

# --- real settings -----------------------------------------------------------------------------------------------
FIRST_STEP = 0  # 0: estimate
MIN_STEP = 1
MAX_STEP = 2  # inf: none
SAFETY = 3
MIN_FACTOR = 4
MAX_FACTOR = 5
NEWTON_KAPPA = 6  # Newton stops when the estimated remaining error is below this share of the tolerance
FIXED_STEP = 7  # not 0: constant step, no error control (order tests)
REALS_WIDTH = 8

# --- whole settings ----------------------------------------------------------------------------------------------
NORM = 0
CONTROLLER = 1
NEWTON_RULE = 2
MAX_STEPS = 3
MAX_ORDER = 4
FIXED_ORDER = 5  # not 0: the order (BDF) or column (extrapolation) is not adapted
OUTPUT = 6
WATCH_STIFFNESS = 7  # 1: return SWITCH when the other class of method would be cheaper
MAX_NEWTON = 8
SEQUENCE = 9  # extrapolation family: see extrapolation.py
MAX_RHS = 10  # 0: none
WHOLES_WIDTH = 11

OUTPUT_SAMPLES, OUTPUT_STEPS, OUTPUT_END = range(3)
NEWTON_MODERN, NEWTON_PUBLISHED = range(2)

# --- counters ----------------------------------------------------------------------------------------------------
COUNTER_NAMES = (
    "rhs",  # right-hand sides of the method itself
    "jacobian_rhs",  # right-hand sides spent in difference Jacobians
    "jacobians",
    "factorisations",
    "solves",
    "accepted",
    "rejected",  # error test failed
    "newton_failures",
    "stage_failures",  # a stage was not finite or the problem refused it
    "events",
    "restarts",
    "switches",
)
(
    N_RHS,
    N_JACOBIAN_RHS,
    N_JACOBIAN,
    N_FACTOR,
    N_SOLVE,
    N_ACCEPTED,
    N_REJECTED,
    N_NEWTON_FAILED,
    N_STAGE_FAILED,
    N_EVENT,
    N_RESTART,
    N_SWITCH,
) = range(12)
COUNTERS_WIDTH = 12

# A driver's private reason to return to the engine, outside the Status enumeration: `auto` changes the method.
SWITCH = -2

# Failed stages in a row before the run stops with the problem's own status.
MAX_STAGE_FAILURES = 10

# Event policies.
EVENT_RECORD, EVENT_RESTART, EVENT_STOP = range(3)


class Problem(NamedTuple):
    """One initial-value problem as the drivers see it."""

    calls: Any  # int64[CALLS_WIDTH], addresses; see call.py
    rtol: float
    atol: Any  # float64[n]
    linear_reals: Any  # work of the linear solver
    linear_wholes: Any
    complex_reals: Any  # work of the complex linear solver, empty where a method needs none
    complex_wholes: Any
    column_group: Any  # int64[n]: columns of one group share a difference in the Jacobian
    pattern: Any  # uint8[n, n], or (0, 0) when every entry may be non-zero


class Settings(NamedTuple):
    """How to integrate."""

    reals: Any
    wholes: Any
    stops: Any  # float64[:], points no step may cross, in the order of travel
    event_direction: Any  # int64[m]: +1 rising, -1 falling, 0 both
    event_policy: Any  # int64[m]: EVENT_RECORD, EVENT_RESTART, EVENT_STOP
    control: Any  # float64[2]: [0] set from outside to a non-zero value stops the run, [1] time reached


class Output(NamedTuple):
    """Where results go. In OUTPUT_SAMPLES mode `t` holds the wanted times."""

    t: Any  # float64[m]
    y: Any  # float64[m, n]
    event_t: Any  # float64[k]
    event_index: Any  # int64[k]
    accumulator: Any  # float64[:], work of the observer
    counters: Any  # int64[COUNTERS_WIDTH]


class Result(NamedTuple):
    """What a driver returns; arrays may be longer than their counts."""

    status: int
    time: float
    step: float  # the step it would take next
    state: Any
    t: Any
    y: Any
    samples: int
    event_t: Any
    event_index: Any
    event_count: int
