"""One autonomous system for every value of one parameter: what continuation works on.

A vehicle is a family over any number that `Model.bind` takes; a small research model is one over an entry of its own
parameter array. Both go through the same continuation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine import Solution, solve
from railsweep.engine.flow import Flow
from railsweep.engine.model import Model, ModelError
from railsweep.engine.simulation import state_unit
from railsweep.kernels.jacobian import vehicle_jacobian
from railsweep.kernels.status import OK, Status
from railsweep.kernels.vehicle import vehicle_rhs

Array = NDArray[np.float64]

PARAMETER_DIFFERENCE = 1e-6  # of a parameter's value
SMALLEST_SCALE = 0.1  # of the largest motion among states of the same unit
REST_SCALE = 1e-3  # of the largest motion of all, for states that rest


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """y' = f(y; parameter).

    Attributes
    ----------
    rhs : jitted ``rhs(t, y, params, out)``
    params : callable
        Value of the parameter -> parameters of `rhs`, with work space of their own at every call.
    states : tuple of str
    units : tuple of str
        States of one unit are scaled by a common floor.
    jacobian : callable
        (state, value) -> df/dy.
    model_at : callable, optional
        Value -> `Model`, for vehicles.
    """

    name: str
    rhs: Any
    params: Callable[[float], Any]
    states: tuple[str, ...]
    units: tuple[str, ...]
    jacobian: Callable[[Array, float], Array]
    model_at: Callable[[float], Model] | None = None
    method: str = "dopri5"

    @property
    def n(self) -> int:
        """Number of states."""
        return len(self.states)

    @property
    def flow(self) -> Flow:
        """The flow on frozen grids."""
        return Flow(self.rhs, self.method)

    def slope(self, y: Array, value: float) -> Array:
        """f(y; value); raises ModelError."""
        out = np.zeros(self.n)
        status = self.rhs(0.0, y, self.params(value), out)
        if status:
            raise ModelError(Status(status), f"no right-hand side at {self.name} = {value:g}")
        return out

    def difference(self, function: Callable[[float], Array], value: float) -> Array:
        """Derivative of `function` with respect to the parameter, by central differences."""
        step = PARAMETER_DIFFERENCE * max(abs(value), 1e-2)
        low, high = value - step, value + step
        slope: Array = (function(high) - function(low)) / (high - low)
        return slope

    def run(self, y: Array, value: float, span: float, **options: Any) -> Solution:
        """Integrate with step control."""
        return solve(self.rhs, (0.0, span), y, params=self.params(value), method=self.method, **options)

    def scale(self, motion: Array) -> Array:
        """Size of each state: half the range of `motion` (nodes, n), not below shares of its unit's and all largest."""
        size = 0.5 * (motion.max(axis=0) - motion.min(axis=0))
        largest = {u: max(s for s, v in zip(size, self.units, strict=True) if v == u) for u in set(self.units)}
        floor = np.maximum(SMALLEST_SCALE * np.array([largest[u] for u in self.units]), REST_SCALE * size.max())
        scale: Array = np.maximum(np.maximum(size, floor), 1e-12 * (1.0 + np.abs(motion).max(axis=0)))
        return scale


def family_of_model(model: Model, parameter: str = "speed_mps") -> Family:
    """A vehicle on its (constant) track over one of its parameters."""
    binder = model.bind([parameter])
    return _family(model, parameter, lambda value: binder([value]))


def families_of_model(model: Model, parameter: str, second: str) -> Callable[[float], Family]:
    """A vehicle over two of its parameters: value of the second -> family over the first."""
    binder = model.bind([parameter, second])
    return lambda other: _family(model, parameter, lambda value: binder([value, other]))


def _family(model: Model, parameter: str, at: Callable[[float], Model]) -> Family:
    def jacobian(y: Array, value: float) -> Array:
        matrix = np.zeros((model.n, model.n))
        status = vehicle_jacobian(0.0, y, at(value).arrays, matrix)
        if status is not None and status != OK:
            raise ModelError(Status(status), f"no Jacobian at {parameter} = {value:g}")
        return matrix

    return Family(
        name=parameter,
        rhs=vehicle_rhs,
        params=lambda value: at(value).arrays,
        states=model.state_names,
        units=tuple(state_unit(name) for name in model.state_names),
        jacobian=jacobian,
        model_at=at,
    )


def family_of_rhs(
    rhs: Any, n: int, params: Callable[[float], Any], *, name: str = "parameter", method: str = "dopri5"
) -> Family:
    """A system given by its jitted right-hand side; `params` turns a value into what `rhs` takes."""

    def jacobian(y: Array, value: float) -> Array:
        given = params(value)
        matrix, low, high = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for j in range(n):
            step = 6e-6 * max(1.0, abs(y[j]))
            moved = y.copy()
            moved[j] = y[j] + step
            rhs(0.0, moved, given, high)
            moved[j] = y[j] - step
            rhs(0.0, moved, given, low)
            matrix[:, j] = (high - low) / (2.0 * step)
        return matrix

    names = tuple(f"y{i}" for i in range(n))
    return Family(name=name, rhs=rhs, params=params, states=names, units=names, jacobian=jacobian, method=method)
