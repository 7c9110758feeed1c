"""The flow of a problem on a frozen grid of steps: y(T) as a smooth function of the start, T and the parameters.

An integrator with step control is not a smooth function of its start: steps come and go. Newton's method on a flow and
differences of it (shooting, monodromy matrices) need one. Here the steps are fractions of the time span, fixed
beforehand by a run with step control; the error of the result stays that of the grid, and its derivatives are those of
the discrete flow itself (internal differentiation, Bock 1981).
"""

from typing import Any

import numpy as np

from railsweep.kernels.integrate.call import RHS, call_function
from railsweep.kernels.integrate.vector import combine
from railsweep.kernels.jit import jit, plain_jit
from railsweep.kernels.lane import LANES, all_lanes, as_lanes, lane_item
from railsweep.kernels.status import NOT_FINITE, OK


@plain_jit
def _advance(calls: Any, tableau: Any, t: float, h: float, y: Any, k: Any, trial: Any) -> int:
    """One step of an explicit method; k[0] is the slope at (t, y) on entry and at the new point on return."""
    stages = tableau.b.size
    for s in range(1, stages):
        combine(y, k, tableau.a[s], s, h, trial)
        status = call_function(calls, RHS, t + tableau.c[s] * h, trial, k[s])
        if status != OK:
            return status
    combine(y, k, tableau.b, stages, h, trial)
    for i in range(y.size):
        y[i] = trial[i]
    return call_function(calls, RHS, t + h, y, k[0])


@jit
def flow_rows(calls: Any, tableau: Any, grid: Any, spans: Any, states: Any) -> Any:
    """Carry every row of `states` over its own time span; returns (status, row): the first failure, or (OK, -1)."""
    n = states.shape[1]
    k = np.zeros((tableau.b.size, n))
    trial = np.zeros(n)
    for row in range(states.shape[0]):
        y = states[row]
        span = spans[row]
        status = call_function(calls, RHS, span * grid[0], y, k[0])
        for i in range(grid.size - 1):
            if status != OK:
                break
            status = _advance(calls, tableau, span * grid[i], span * (grid[i + 1] - grid[i]), y, k, trial)
        if status == OK:
            for i in range(n):
                if not np.isfinite(y[i]):
                    status = NOT_FINITE
        if status != OK:
            return status, row
    return OK, -1


@jit
def flow_path(calls: Any, tableau: Any, grid: Any, span: float, path: Any) -> int:
    """Fill `path` (nodes, n), whose first row is the start, with the states at the nodes of the grid."""
    n = path.shape[1]
    k = np.zeros((tableau.b.size, n))
    trial = np.zeros(n)
    y = path[0].copy()
    status = call_function(calls, RHS, span * grid[0], y, k[0])
    for i in range(grid.size - 1):
        if status != OK:
            break
        status = _advance(calls, tableau, span * grid[i], span * (grid[i + 1] - grid[i]), y, k, trial)
        path[i + 1] = y
    return status


@jit
def flow_lanes(calls: Any, tableau: Any, grid: Any, span: float, groups: Any) -> Any:
    """`flow_rows` for a right-hand side of lanes, all over one span: `groups` is (group, state and time, lane).

    The same operations in the same order as `flow_rows`, so the same bits. Returns (status, row), rows counted lane
    by lane through the groups.
    """
    rows = groups.shape[1]
    last = rows - 1
    stages = tableau.b.size
    slopes = np.zeros((stages, rows, LANES))
    k, k_flat = as_lanes(slopes), slopes.reshape(stages, rows * LANES)
    trial_flat = np.zeros(rows * LANES)
    trial = as_lanes(trial_flat)
    for group in range(groups.shape[0]):
        y_flat = groups[group].reshape(rows * LANES)
        y = as_lanes(y_flat)
        y[last] = all_lanes(span * grid[0])
        failed = call_function(calls, RHS, 0.0, y_flat, k_flat[0])
        worst = k[0, last]
        for i in range(grid.size - 1):
            if failed != OK:
                break
            t, h = span * grid[i], span * (grid[i + 1] - grid[i])
            for s in range(1, stages):
                combine(y, k, tableau.a[s], s, h, trial)
                trial[last] = all_lanes(t + tableau.c[s] * h)
                failed = call_function(calls, RHS, 0.0, trial_flat, k_flat[s])
                worst = k[s, last]
                if failed != OK:
                    break
            if failed != OK:
                break
            combine(y, k, tableau.b, stages, h, trial)
            for j in range(rows):
                y[j] = trial[j]
            y[last] = all_lanes(t + h)
            failed = call_function(calls, RHS, 0.0, y_flat, k_flat[0])
            worst = k[0, last]
        for which in range(LANES):
            status = int(lane_item(worst, which))
            for j in range(rows):
                if status == OK and not np.isfinite(lane_item(y[j], which)):
                    status = NOT_FINITE
            if status != OK:
                return status, group * LANES + which
    return OK, -1
