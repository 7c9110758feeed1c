"""The flow of a problem on a frozen grid of steps: y(T) as a smooth function of the start, T and the parameters.

An integrator with step control is not a smooth function of its start: steps come and go. Newton's method on a flow and
differences of it (shooting, monodromy matrices) need one. Here the steps are fractions of the time span, fixed
beforehand by a run with step control; the error of the result stays that of the grid, and its derivatives are those of
the discrete flow itself (internal differentiation, Bock 1981).
"""

from typing import Any

import numpy as np

from railsweep.kernels.integrate.call import RHS, call_function
from railsweep.kernels.integrate.explicit import combine
from railsweep.kernels.jit import jit, plain_jit
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
