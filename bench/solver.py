"""Work and precision of the integrators beside their peers, on the same compiled right-hand side.

    python bench/solver.py [problem ...] [--methods bdf,dopri5] [--tolerances 1e-4,1e-6,1e-8] [--no-history]

Each row: error (scd, correct digits), right-hand sides (with those in difference Jacobians), Jacobians, LUs, best time
of three, and the distance to the limit: time / (right-hand sides x time of one). Peers: scipy LSODA, BDF, Radau;
scikit-sundae CVODE; numbalsoda when it is installed.
A run is appended to bench/history/solver.json. Nothing is asserted on a time.

Other problems (the wagon) join by `register(Case(...))` before `main`.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from history import append
from scipy.integrate import solve_ivp

from railsweep.engine.linear_solver import LinearSolver
from railsweep.engine.solver import solve
from railsweep.kernels.integrate.registry import METHODS

HERE = Path(__file__).resolve().parent
REPEATS = 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """One problem for everybody; `reference` is the state at t_end."""

    name: str
    rhs: Any
    t_span: tuple[float, float]
    y0: Any
    params: Any
    reference: Any
    atol_scale: float = 1.0
    jacobian: Any = None
    linear: LinearSolver | None = None
    sparsity: Any = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    problem: str
    solver: str
    tolerance: float
    digits: float
    steps: int
    rhs: int
    jacobians: int
    factorisations: int
    seconds: float
    limit: float


CASES: dict[str, Case] = {}


def register(case: Case) -> None:
    """Add a problem to the benchmark."""
    CASES[case.name] = case


def _literature() -> None:
    path = HERE.parent / "tests" / "kernels" / "integrate" / "ivp.py"
    spec = importlib.util.spec_from_file_location("ivp", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ivp"] = module
    spec.loader.exec_module(module)
    for p in module.PROBLEMS.values():
        register(
            Case(
                name=p.name,
                rhs=p.rhs,
                t_span=(0.0, p.t_end),
                y0=np.array(p.y0),
                params=p.params,
                reference=np.array(p.end),
                atol_scale=p.atol_scale,
            )
        )


def digits(case: Case, y: Any) -> float:
    """scd: minus the decimal logarithm of the largest relative error."""
    reference = np.asarray(case.reference)
    error = np.abs(np.asarray(y)[: reference.size] - reference)
    return float(-np.log10(max(np.max(error / np.maximum(np.abs(reference), 1e-100)), 1e-17)))


def rhs_seconds(case: Case) -> float:
    """Time of one right-hand side called from compiled code."""
    rhs = case.rhs

    @numba.njit
    def many(y: Any, params: Any, out: Any, count: int) -> float:
        total = 0.0
        for i in range(count):
            rhs(1e-9 * i, y, params, out)
            # The next call depends on this one: otherwise the compiler moves most of it out of the loop.
            for j in range(y.size):
                y[j] += 1e-30 * out[j]
            total += out[0]
        return total

    y = np.array(case.y0, dtype=float)
    out = np.empty_like(y)
    many(y, case.params, out, 1)
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        many(y, case.params, out, 20_000)
        best = min(best, time.perf_counter() - start)
    return float(best / 20_000)


def best_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """Shortest time and last result."""
    best = np.inf
    result = run()
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def ours(case: Case, method: str, tolerance: float, cost: float) -> Row:
    """One of our methods."""

    def run() -> Any:
        return solve(
            case.rhs,
            case.t_span,
            case.y0,
            case.params,
            method,
            tolerance,
            tolerance * case.atol_scale,
            jacobian=case.jacobian,
            linear=case.linear,
            sparsity=case.sparsity,
            store=False,
        )

    seconds, solution = best_of(run)
    work = solution.counters
    evaluations = work["rhs"] + work["jacobian_rhs"]
    return Row(
        problem=case.name,
        solver=method,
        tolerance=tolerance,
        digits=digits(case, solution.y_end) if solution.success else -np.inf,
        steps=work["accepted"],
        rhs=evaluations,
        jacobians=work["jacobians"],
        factorisations=work["factorisations"],
        seconds=seconds,
        limit=seconds / (evaluations * cost),
    )


def scipy_peer(case: Case, method: str, tolerance: float, cost: float) -> Row:
    """scipy, calling the compiled right-hand side."""
    calls = 0

    def f(t: float, y: Any) -> Any:
        nonlocal calls
        calls += 1
        out = np.empty(len(y))
        case.rhs(t, y, case.params, out)
        return out

    start = time.perf_counter()
    result = solve_ivp(f, case.t_span, case.y0, method=method, rtol=tolerance, atol=tolerance * case.atol_scale)
    seconds = time.perf_counter() - start
    return Row(
        problem=case.name,
        solver=f"scipy {method}",
        tolerance=tolerance,
        digits=digits(case, result.y[:, -1]) if result.success else -np.inf,
        steps=len(result.t) - 1,
        rhs=calls,
        jacobians=int(result.njev),
        factorisations=int(result.nlu),
        seconds=seconds,
        limit=seconds / (calls * cost),
    )


def sundae_peer(case: Case, tolerance: float, cost: float) -> Row | None:
    """CVODE BDF through scikit-sundae."""
    try:
        from sksundae.cvode import CVODE
    except ImportError:
        return None
    calls = 0
    y0 = np.array(case.y0, dtype=float)

    def f(t: float, y: Any, yp: Any) -> None:
        nonlocal calls
        calls += 1
        case.rhs(t, np.array(y), case.params, yp)

    solver = CVODE(f, method="BDF", rtol=tolerance, atol=tolerance * case.atol_scale, max_num_steps=10_000_000)
    start = time.perf_counter()
    result = solver.solve(np.array(case.t_span, dtype=float), y0)
    seconds = time.perf_counter() - start
    return Row(
        problem=case.name,
        solver="CVODE BDF",
        tolerance=tolerance,
        digits=digits(case, np.asarray(result.y)[-1]) if result.success else -np.inf,
        steps=0,
        rhs=calls,
        jacobians=int(np.max(result.njev)) if getattr(result, "njev", None) is not None else 0,
        factorisations=0,
        seconds=seconds,
        limit=seconds / (calls * cost),
    )


def lsoda_peer(case: Case, tolerance: float, cost: float) -> Row | None:
    """numbalsoda's LSODA, for problems whose parameters are a float array or nothing; needs its own build."""
    try:
        from numbalsoda import lsoda, lsoda_sig
    except ImportError:
        return None
    rhs, n = case.rhs, len(case.y0)
    constant = case.params

    @numba.cfunc(lsoda_sig)
    def f(t: Any, y: Any, dy: Any, p: Any) -> None:
        rhs(t, numba.carray(y, (n,)), constant, numba.carray(dy, (n,)))

    y0 = np.array(case.y0, dtype=float)
    times = np.array(case.t_span, dtype=float)

    def run() -> Any:
        return lsoda(f.address, y0, times, rtol=tolerance, atol=tolerance * case.atol_scale)

    seconds, (states, success) = best_of(run)
    return Row(
        problem=case.name,
        solver="numbalsoda",
        tolerance=tolerance,
        digits=digits(case, states[-1]) if success else -np.inf,
        steps=0,
        rhs=0,
        jacobians=0,
        factorisations=0,
        seconds=seconds,
        limit=np.nan,
    )


def measure(case: Case, methods: list[str], tolerances: list[float]) -> Iterator[Row]:
    """All solvers on one problem."""
    cost = rhs_seconds(case)
    print(f"\n{case.name}: n = {len(case.y0)}, one right-hand side {cost * 1e6:.3f} us")
    print(
        f"{'solver':14s} {'tol':>7s} {'digits':>6s} {'steps':>7s} {'rhs':>8s} "
        f"{'jac':>5s} {'LU':>6s} {'ms':>9s} {'t/limit':>8s}"
    )
    for tolerance in tolerances:
        rows: list[Row | None] = [ours(case, m, tolerance, cost) for m in methods]
        rows += [scipy_peer(case, m, tolerance, cost) for m in ("LSODA", "BDF", "Radau")]
        rows += [sundae_peer(case, tolerance, cost), lsoda_peer(case, tolerance, cost)]
        for row in rows:
            if row is not None:
                print(
                    f"{row.solver:14s} {row.tolerance:7.0e} {row.digits:6.1f} {row.steps:7d} {row.rhs:8d} "
                    f"{row.jacobians:5d} {row.factorisations:6d} {row.seconds * 1e3:9.3f} {row.limit:8.1f}",
                    flush=True,
                )
                yield row


def main() -> None:
    """Parse the command line and run."""
    _literature()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join(CASES)}; default all")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--tolerances", default="1e-4,1e-6,1e-8")
    parser.add_argument("--no-history", action="store_true")
    chosen = parser.parse_args()
    rows: list[Row] = []
    for name in chosen.problems or list(CASES):
        rows += measure(CASES[name], chosen.methods.split(","), [float(x) for x in chosen.tolerances.split(",")])
    if not chosen.no_history:
        append("solver", {"rows": [asdict(r) for r in rows]})


if __name__ == "__main__":
    main()
