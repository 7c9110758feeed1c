"""The flow of any problem on a frozen grid, and its derivative by differences, on threads.

`railsweep.engine.solve` finds the steps; `Flow` repeats them from other starts and with other parameters, so that the
end is a smooth function of both (see `railsweep.kernels.integrate.frozen`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from railsweep.engine.entry import entry, made
from railsweep.engine.lanes import lane_form, lane_group, record_of
from railsweep.kernels.integrate import call
from railsweep.kernels.integrate.frozen import flow_lanes, flow_path, flow_rows
from railsweep.kernels.integrate.registry import METHODS
from railsweep.kernels.lane import LANES
from railsweep.kernels.status import Status

Array = NDArray[np.float64]


class FlowError(RuntimeError):
    """A flow that has no end: `status` says why (derailment, a law out of range, not finite)."""

    def __init__(self, status: int) -> None:
        # a right-hand side that raised (-1) counts as not finite
        self.status = Status(status) if status >= 0 else Status.NOT_FINITE
        super().__init__(f"the motion ends early: {self.status.name.lower()}")


class Flow:
    """y(span) of y' = f(t, y, params) with the steps ``span * grid``.

    Parameters
    ----------
    rhs : jitted ``rhs(t, y, params, out)``
    method : str
        An explicit method of `railsweep.kernels.integrate`.
    """

    def __init__(self, rhs: Any, method: str = "dopri5") -> None:
        self.rhs = rhs
        self.tableau = METHODS[method].made(0)

    @contextmanager
    def _calls(self, params: Any, rhs: Any = None) -> Iterator[Any]:
        rhs = self.rhs if rhs is None else rhs
        kind = numba.typeof(params)
        calls = np.zeros(call.CALLS_WIDTH, dtype=np.int64)
        calls[call.RHS] = entry(call.function_entry, rhs, "rhs", kind)
        packer = made(call.packer, rhs, kind)
        block = packer.pack(params)
        calls[call.PARAMS] = block.ctypes.data
        try:
            yield calls
        finally:
            packer.release(params, block)

    def path(self, start: Array, span: float, grid: Array, params: Any) -> Array:
        """States (nodes, n) at the nodes of the grid; raises FlowError."""
        nodes = np.zeros((grid.size, start.size))
        nodes[0] = start
        with self._calls(params) as calls:
            status = flow_path(calls, self.tableau, grid, span, nodes)
        if status != 0:
            raise FlowError(status)
        return nodes

    def ends(self, starts: Array, spans: Array, grid: Array, params: Any) -> Array:
        """Ends of many starts, each over its own span; raises FlowError."""
        states = np.array(starts)
        with self._calls(params) as calls:
            status, _ = flow_rows(calls, self.tableau, grid, spans, states)
        if status != 0:
            raise FlowError(status)
        return states

    def _ends_in_lanes(self, lanes: Any, starts: Array, span: float, grid: Array, params: Any) -> Array:
        groups = -(-len(starts) // LANES)
        padded = np.concatenate([starts, np.tile(starts[0], (groups * LANES - len(starts), 1))])
        states = np.zeros((groups, starts.shape[1] + 1, LANES))
        states[:, :-1] = padded.reshape(groups, LANES, -1).transpose(0, 2, 1)
        record, group = lane_group(params)
        record[:] = record_of(params)[:, None]
        with self._calls(group, lanes) as calls:
            status, _ = flow_lanes(calls, self.tableau, grid, span, states)
        if status != 0:
            raise FlowError(status)
        ends: Array = states[:, :-1].transpose(0, 2, 1).reshape(padded.shape)[: len(starts)]
        return ends

    def derivative(
        self,
        start: Array,
        span: float,
        grid: Array,
        params: Callable[[], Any],
        *,
        steps: Array,
        central: bool = False,
        threads: int = 1,
    ) -> tuple[Array, Array]:
        """End of `start`, and the matrix d(end)/d(start) by differences with the given steps.

        `params` makes the parameters anew for every thread (a vehicle owns work space). The result does not depend, to
        the last bit, on the number of threads, nor on whether the right-hand side has a form for lanes.
        """
        n = start.size
        lanes = lane_form(self.rhs)
        moved = start + np.diag(steps)
        rows = [start, *moved, *(start - np.diag(steps))] if central else [start, *moved]
        starts = np.array(rows)
        groups = -(-len(starts) // LANES) if lanes is not None else len(starts)
        size = LANES * -(-groups // threads) if lanes is not None else -(-groups // threads)
        parts = [starts[i : i + size] for i in range(0, len(starts), size)]

        def carried(part: Array) -> Array:
            if lanes is not None:
                return self._ends_in_lanes(lanes, part, span, grid, params())
            return self.ends(part, np.full(len(part), span), grid, params())

        ends = np.concatenate(_on_threads(carried, parts))
        low = ends[n + 1 :] if central else ends[0]
        change = (moved - starts[n + 1 :] if central else moved - start).diagonal()
        return ends[0], ((ends[1 : n + 1] - low) / change[:, None]).T


def _on_threads(function: Callable[[Array], Array], parts: Sequence[Array]) -> list[Array]:
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        return list(pool.map(function, parts))
