"""Other people's solvers on our vehicles, through the same compiled right-hand side: what the benchmarks compare with.

Peers are optional: scipy always is there; numbalsoda (lsoda, dop853; compiled throughout) and scikit-sundae (the dense
BDF of CVODE, called through Python) run when they are installed. Those that take a Jacobian get our compiled one.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from railsweep.engine.errors import InputError, nearest
from railsweep.engine.model import Model
from railsweep.kernels.integrate import call
from railsweep.kernels.jacobian import vehicle_jacobian_one_sided
from railsweep.kernels.vehicle import vehicle_rhs

Array = NDArray[np.float64]

# Solver -> package that must be there.
PEERS: Mapping[str, str] = {
    "scipy LSODA": "scipy",
    "scipy BDF": "scipy",
    "scipy Radau": "scipy",
    "CVODE BDF": "cvode",
    "numbalsoda lsoda": "numbalsoda",
    "numbalsoda dop853": "numbalsoda",
}
MODULES: Mapping[str, str] = {"scipy": "scipy", "cvode": "sksundae", "numbalsoda": "numbalsoda"}
INSTALL: Mapping[str, str] = {"scipy": "scipy", "cvode": "scikit-sundae", "numbalsoda": "numbalsoda"}

COUNTER = call.CALLS_WIDTH  # slot after the addresses: evaluations of a peer that does not count
MOST_STEPS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run took."""

    states: Array  # samples x n
    rhs: int
    jacobians: int
    factorisations: int
    steps: int


Runner = Callable[[Array, float], Work | None]


class OutOfTimeError(Exception):
    """A Python callback found its time used up."""


class Compiled:
    """The C entries of a model's right-hand side and Jacobian; keeps alive what they point to."""

    def __init__(self, model: Model) -> None:
        self.arrays = model.copy().arrays
        kind = numba.typeof(self.arrays)
        self.rhs = call.function_entry(vehicle_rhs, kind)
        self.jacobian = call.jacobian_entry(vehicle_jacobian_one_sided, kind)
        self.packer = call.packer(vehicle_rhs, kind)
        self.block = self.packer.pack(self.arrays)
        self.calls = np.zeros(call.CALLS_WIDTH + 1, dtype=np.int64)
        self.calls[call.RHS] = self.rhs.address
        self.calls[call.JACOBIAN] = self.jacobian.address
        self.calls[call.PARAMS] = self.block.ctypes.data


@numba.njit(nogil=True)
def rhs_of(t, y, out, calls):  # type: ignore[no-untyped-def]
    """The right-hand side behind `Compiled.calls`, counted."""
    calls[COUNTER] += 1
    return call.call_function(calls, call.RHS, t, y, out)


@numba.njit(nogil=True)
def jacobian_of(t, y, out, calls):  # type: ignore[no-untyped-def]
    """The Jacobian behind `Compiled.calls`."""
    return call.call_jacobian(calls, t, y, out)


def installed(package: str) -> bool:
    """Is a package of PEERS there?"""
    return importlib.util.find_spec(MODULES[package]) is not None


def peer_runner(name: str, model: Model, y0: Array, atol_ratio: float, limit_s: float = np.inf) -> Runner:
    """A peer by its name in PEERS as a function of sample times and relative tolerance; None when it fails.

    The absolute tolerance is `atol_ratio` times the relative one. Peers that call Python stop after `limit_s` seconds.
    """
    if name not in PEERS:
        raise InputError("peer", f"{name!r} is not known, {nearest(name, list(PEERS))}", ", ".join(PEERS))
    package = PEERS[name]
    if not installed(package):
        raise InputError("peer", f"{name!r} needs {INSTALL[package]}, which is not installed", "an installed peer")
    if package == "scipy":
        return _scipy(name.removeprefix("scipy "), Compiled(model), y0, atol_ratio, limit_s)
    if package == "cvode":
        return _cvode(Compiled(model), y0, atol_ratio, limit_s)
    return _numbalsoda(name.removeprefix("numbalsoda "), Compiled(model), y0, atol_ratio)


def _scipy(method: str, compiled: Compiled, y0: Array, atol_ratio: float, limit_s: float) -> Runner:
    calls, n = compiled.calls, y0.size

    def run(times: Array, tolerance: float) -> Work | None:
        calls[COUNTER] = 0
        end = time.monotonic() + limit_s

        def f(t: float, y: Any) -> Any:
            if time.monotonic() > end:
                raise OutOfTimeError
            out = np.empty(n)
            rhs_of(t, y, out, calls)
            return out

        def jacobian(t: float, y: Any) -> Any:
            out = np.zeros((n, n))
            jacobian_of(t, y, out, calls)
            return out

        found = solve_ivp(
            f,
            (0.0, float(times[-1])),
            y0,
            method=method,
            t_eval=times,
            rtol=tolerance,
            atol=atol_ratio * tolerance,
            jac=jacobian,
        )
        if not found.success:
            return None
        return Work(
            states=found.y.T,
            rhs=int(compiled.calls[COUNTER]),
            jacobians=int(found.njev),
            factorisations=int(found.nlu),
            steps=0,
        )

    return run


def _cvode(compiled: Compiled, y0: Array, atol_ratio: float, limit_s: float) -> Runner:
    solver_class = importlib.import_module("sksundae.cvode").CVODE
    calls = compiled.calls

    def run(times: Array, tolerance: float) -> Work | None:
        calls[COUNTER] = 0
        end = time.monotonic() + limit_s

        def f(t: float, y: Any, rates: Any) -> None:
            if time.monotonic() > end:
                raise OutOfTimeError
            rhs_of(t, y, rates, calls)

        solver = solver_class(
            f,
            method="BDF",
            rtol=tolerance,
            atol=atol_ratio * tolerance,
            max_num_steps=MOST_STEPS,
            jacfn=lambda t, y, rates, out: jacobian_of(t, y, out, compiled.calls) and None,
        )
        found = solver.solve(times, y0)
        if not found.success:
            return None
        return Work(
            states=np.asarray(found.y),
            rhs=int(calls[COUNTER]),
            jacobians=int(np.max(found.njev)),
            factorisations=0,
            steps=0,
        )

    return run


def numbalsoda_entry(n: int) -> Any:
    """C function in numbalsoda's form; its data are the addresses of `Compiled.calls` seen as floats."""
    signature = importlib.import_module("numbalsoda").lsoda_sig

    @numba.cfunc(signature)
    def entry(t, y, dy, data):  # type: ignore[no-untyped-def]
        calls = numba.carray(data, (COUNTER + 1,)).view(np.int64)
        rhs_of(t, numba.carray(y, (n,)), numba.carray(dy, (n,)), calls)

    return entry


def _numbalsoda(solver_name: str, compiled: Compiled, y0: Array, atol_ratio: float) -> Runner:
    solver = getattr(importlib.import_module("numbalsoda"), solver_name)
    entry = numbalsoda_entry(y0.size)

    def run(times: Array, tolerance: float) -> Work | None:
        compiled.calls[COUNTER] = 0
        states, success = solver(
            entry.address,
            y0.copy(),
            times,
            data=compiled.calls.view(np.float64),
            rtol=tolerance,
            atol=atol_ratio * tolerance,
            mxstep=MOST_STEPS,
        )
        if not success:
            return None
        return Work(states=states, rhs=int(compiled.calls[COUNTER]), jacobians=0, factorisations=0, steps=0)

    return run
