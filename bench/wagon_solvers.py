"""Work and precision on the wagon: our methods beside scipy, CVODE and numbalsoda, all on one compiled right-hand side.

    python bench/wagon_solvers.py --contact-table FILE [--cases hunting,decay,transition] [--tolerances 1e-4,1e-6,1e-8]
        [--methods dopri5,bdf] [--peers scipy,cvode,numbalsoda] [--budget-s 30] [--ensemble 1000] [--no-history]

Cases (dytsi formulation, published table): `hunting` 10 s at 60 m/s on the limit cycle; `decay` 10 s at 40 m/s after
1 mm on the leading wheelset; `transition` 20 s at 20 m/s into R = 600 m. One thread, absolute tolerance 1e-3 of the
relative one for everybody. Every solver reaches the right-hand side through the same C entry, and those that take a
Jacobian get our compiled one. scipy and scikit-sundae call Python, so they get thin callbacks around it.

Error: largest difference of a displacement [m] or angle [rad] from dop853 at 1e-12, over twenty samples up to the time
of comparison. That is 1 s for hunting, which is chaotic: a kick of 1e-12 m has become 6e-5 m after 10 s, and the
error of one run is a matter of luck within a factor of five. There it is the geometric mean over runs from several
states of the motion.

t/rhs: time / (right-hand sides x time of one), Jacobians not counted; +J: with each Jacobian counted at its own time.
A solver whose run would take longer than the budget runs up to the time of comparison only and is scaled (mark *).
The ensemble: dopri5 on wagons at 40 to 100 m/s, 10 s each, on 1 and 2 threads, in lanes and one by one; numbalsoda
by its dop853 in a parallel loop (its lsoda is 7 to 15 times slower while hunting, see the table).
Single runs are timed in CPU seconds of the process, best of five when short; the ensemble in wall-clock seconds.
Nothing is asserted on a time; a run is appended to history/wagon_solvers.json.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy as np
from history import append
from numpy.typing import NDArray

from railsweep.engine.benchmark import displacements, hunting, transition, wagon
from railsweep.engine.contact_table import ContactTable, load_contact_table
from railsweep.engine.model import Model
from railsweep.engine.peer import (
    PEERS,
    Compiled,
    Runner,
    Work,
    installed,
    numbalsoda_entry,
    peer_runner,
    rhs_of,
)
from railsweep.engine.simulation import simulate, simulate_ensemble
from railsweep.kernels.integrate import call

Array = NDArray[np.float64]

REPEATS = 5
QUICK_S = 1.0  # runs shorter than this are repeated and the best time counts
ATOL_RATIO = 1e-3
SAMPLES = 20
HUNTING_STARTS, HUNTING_APART_S = 6, 0.37
EQUAL = 1.05  # errors within this factor count as equal
OURS = ("dopri5", "dop853", "auto", "bdf", "radau", "esdirk54", "nt1", "seulex", "bsimp")
CASES = ("hunting", "decay", "transition")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One problem for everybody."""

    name: str
    model: Model
    starts: tuple[Array, ...]
    t_end: float
    compare_s: float

    @property
    def y0(self) -> Array:
        return self.starts[0]

    @property
    def times(self) -> Array:
        return np.linspace(0.0, self.compare_s, SAMPLES + 1)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table; times and counts of a scaled row are extrapolated from the time of comparison."""

    case: str
    solver: str
    tolerance: float
    error: float
    rhs: int
    jacobians: int
    factorisations: int
    seconds: float
    per_rhs: float
    per_rhs_and_jacobian: float
    scaled: bool


@numba.njit(nogil=True)
def many_rhs(count, y, out, calls):
    for _ in range(count):
        rhs_of(0.0, y, out, calls)
        for j in range(y.size):
            y[j] += 1e-30 * out[j]


@numba.njit(nogil=True)
def many_jacobians(count, y, out, calls):
    for _ in range(count):
        call.call_jacobian(calls, 0.0, y, out)


def unit_costs(case: Case) -> tuple[float, float]:
    """Seconds of one right-hand side and of one Jacobian, called from compiled code."""
    compiled = Compiled(case.model)
    y, out, matrix = case.y0.copy(), np.zeros(case.model.n), np.zeros((case.model.n, case.model.n))
    best = [math.inf, math.inf]
    for _ in range(REPEATS + 2):
        for i, (function, target, count) in enumerate(((many_rhs, out, 20_000), (many_jacobians, matrix, 500))):
            function(1, y, target, compiled.calls)
            start = time.process_time()
            function(count, y, target, compiled.calls)
            best[i] = min(best[i], (time.process_time() - start) / count)
    return best[0], best[1]


def reference(model: Model, y0: Array, times: Array) -> Array:
    """States at equidistant times by a tight run."""
    found = simulate(
        model, y0, (0.0, float(times[-1])), method="dop853", rtol=1e-12, atol=1e-15, sample_s=float(times[1])
    )
    return np.ascontiguousarray(found.y.T)


def build(name: str, table: ContactTable) -> Case:
    """A case by its name."""
    if name == "hunting":
        found = hunting(table)
        later = HUNTING_APART_S * np.arange(HUNTING_STARTS)
        motion = reference(found.model, found.y0, later)
        return Case(name=name, model=found.model, starts=tuple(motion), t_end=10.0, compare_s=1.0)
    if name == "decay":
        model = wagon(table, 40.0)
        return Case(name=name, model=model, starts=(model.state(wheelset_ll__y=1e-3),), t_end=10.0, compare_s=2.0)
    found = transition(table)
    return Case(name=name, model=found.model, starts=(found.y0,), t_end=20.0, compare_s=20.0)


def ours(case: Case, y0: Array, method: str) -> Runner:
    """One of our methods, as `simulate` runs it."""

    def run(times: Array, tolerance: float) -> Work | None:
        sampled: dict[str, Any] = {"store": False}
        if times.size > 2:
            sampled = {"sample_s": float(times[1] - times[0])}
        found = simulate(
            case.model,
            y0,
            (0.0, float(times[-1])),
            method=method,
            rtol=tolerance,
            atol=ATOL_RATIO * tolerance,
            **sampled,
        )
        if not found.success:
            return None
        work = found.counters
        return Work(
            states=found.y.T if times.size > 2 else found.y_end[None, :],
            rhs=work["rhs"] + work["jacobian_rhs"],
            jacobians=work["jacobians"],
            factorisations=work["factorisations"],
            steps=work["accepted"],
        )

    return run


def solvers(case: Case, y0: Array, methods: Sequence[str], peers: Sequence[str]) -> dict[str, Runner]:
    """Everybody who takes part, by name."""
    found: dict[str, Runner] = {method: ours(case, y0, method) for method in methods}
    for name, package in PEERS.items():
        if package in peers and installed(package):
            found[name] = peer_runner(name, case.model, y0, ATOL_RATIO)
    return found


def timed(run: Runner, times: Array, tolerance: float) -> tuple[float, Work | None]:
    """Seconds (best of several when quick) and work."""
    best, work = math.inf, None
    for _ in range(REPEATS):
        start = time.process_time()
        work = run(times, tolerance)
        best = min(best, time.process_time() - start)
        if best > QUICK_S or work is None:
            break
    return best, work


def measure(
    case: Case,
    name: str,
    runs: Sequence[Runner],
    tolerance: float,
    references: Sequence[Array],
    costs: tuple[float, float],
    budget_s: float,
) -> Row:
    """Error up to the time of comparison, then the whole run for its time and work."""
    run = runs[0]
    first, sampled = timed(run, case.times, tolerance)
    found = [sampled, *(other(case.times, tolerance) for other in runs[1:])]
    wanted = displacements(case.model)
    errors = [
        math.nan if one is None else float(np.abs(one.states - exact)[:, wanted].max())
        for one, exact in zip(found, references, strict=True)
    ]
    with np.errstate(divide="ignore"):  # of an exact run
        error = float(np.exp(np.mean(np.log(errors))))
    share = case.t_end / case.compare_s
    scaled = first * share > budget_s
    seconds, work = (first, sampled) if scaled else timed(run, np.array([0.0, case.t_end]), tolerance)
    factor = share if scaled else 1.0
    rhs = 0 if work is None else round(work.rhs * factor)
    jacobians = 0 if work is None else round(work.jacobians * factor)
    seconds *= factor
    limit = rhs * costs[0]
    return Row(
        case=case.name,
        solver=name,
        tolerance=tolerance,
        error=math.nan if work is None else error,
        rhs=rhs,
        jacobians=jacobians,
        factorisations=0 if work is None else round(work.factorisations * factor),
        seconds=seconds,
        per_rhs=seconds / limit if limit else math.nan,
        per_rhs_and_jacobian=seconds / (limit + jacobians * costs[1]) if limit else math.nan,
        scaled=scaled and share > 1.0,
    )


def work_precision(
    case: Case, tolerances: Sequence[float], methods: Sequence[str], peers: Sequence[str], budget_s: float
) -> list[Row]:
    """The table of one case."""
    costs = unit_costs(case)
    references = [reference(case.model, y0, case.times) for y0 in case.starts]
    print(f"\n{case.name}: one right-hand side {1e6 * costs[0]:.3f} us, one Jacobian {costs[1] / costs[0]:.1f} of them")
    heads = (("tol", 6), ("error", 8), ("rhs", 9), ("jac", 7), ("LU", 7), ("s", 9), ("t/rhs", 6), ("+J", 6))
    print(f"{'solver':18s} " + " ".join(f"{head:>{width}s}" for head, width in heads))
    rows = []
    runners = [solvers(case, y0, methods, peers) for y0 in case.starts]
    for run in runners[0].values():
        run(np.array([0.0, 1e-4]), 1e-4)  # compiles
    for tolerance in tolerances:
        for name in runners[0]:
            row = measure(case, name, [r[name] for r in runners], tolerance, references, costs, budget_s)
            rows.append(row)
            print(
                f"{row.solver:18s} {row.tolerance:6.0e} {row.error:8.1e} {row.rhs:9d} {row.jacobians:7d} "
                f"{row.factorisations:7d} {row.seconds:8.3f}{'*' if row.scaled else ' '} {row.per_rhs:6.2f} "
                f"{row.per_rhs_and_jacobian:6.2f}",
                flush=True,
            )
    verdict(rows, peers)
    return rows


def is_peer(row: Row) -> bool:
    return row.solver.startswith(("scipy", "CVODE", "numbalsoda"))


def verdict(rows: list[Row], peers: Sequence[str]) -> None:
    """For each run of a peer that was not beaten by another peer: our fastest run with no larger error."""
    valid = [r for r in rows if math.isfinite(r.error)]
    others = [r for r in valid if is_peer(r)]
    for row in others:
        if any(o.seconds < row.seconds and o.error <= row.error for o in others):
            continue
        mine = [r for r in valid if not is_peer(r) and r.error <= EQUAL * row.error]
        if not mine:
            print(f"best peer {row.solver} {row.tolerance:.0e} (error {row.error:.1e}): none of ours is as exact")
            continue
        best = min(mine, key=lambda r: r.seconds)
        print(
            f"best peer {row.solver} {row.tolerance:.0e} (error {row.error:.1e}, {row.seconds:.3f} s): "
            f"ours {best.solver} {best.tolerance:.0e} (error {best.error:.1e}) "
            f"is {row.seconds / best.seconds:.2f} x as fast"
        )


def ensemble(table: ContactTable, cases: int, duration_s: float) -> dict[str, float]:
    """Many wagons on 1 and 2 threads; seconds by name."""
    base = wagon(table, 60.0)
    bind = base.bind(["speed_mps"])
    models = [bind([v]) for v in np.linspace(40.0, 100.0, cases)]
    start = np.zeros(base.n)
    for i, name in enumerate(("wheelset_ll.y", "wheelset_lt.y", "wheelset_tl.y", "wheelset_tt.y")):
        start[base.index(name)] = 5e-3 * (-1) ** i
    results: dict[str, float] = {}
    ends: list[Array] = []
    for lanes in (True, False):
        for threads in (1, 2):
            options: dict[str, Any] = {
                "method": "dopri5",
                "rtol": 1e-6,
                "atol": 1e-9,
                "threads": threads,
                "lanes": lanes,
            }
            simulate_ensemble(models[:2], start, (0.0, 1e-3), **options)
            clock = time.perf_counter()
            runs = simulate_ensemble(models, start, (0.0, duration_s), **options)
            results[f"ours, {'lanes, ' if lanes else ''}{threads} threads"] = time.perf_counter() - clock
            ends.append(np.array([run.y_end for run in runs]))
    same = all(np.array_equal(end, ends[0]) for end in ends)
    print(f"\nensemble of {cases} wagons, {duration_s:g} s each")
    print(f"bitwise equal on 1 and 2 threads, in lanes and alone: {same}")
    if installed("numbalsoda"):
        import numbalsoda

        entry = numbalsoda_entry(base.n)
        compiled = [Compiled(model) for model in models]
        data = np.array([c.calls for c in compiled]).view(np.float64)
        loop = _parallel(numbalsoda.dop853)
        for threads in (1, 2):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            loop(entry.address, start, np.array([0.0, 1e-3]), data[:2], 1e-6, 1e-9)
            clock = time.perf_counter()
            failed = loop(entry.address, start, np.array([0.0, duration_s]), data, 1e-6, 1e-9)
            label = f"numbalsoda dop853, {threads} threads"
            results[label] = time.perf_counter() - clock
            if failed:
                print(f"{label}: {failed} cases failed")
    for name, seconds in results.items():
        print(f"{name:32s} {seconds:8.2f} s  {cases / seconds:8.1f} wagons/s")
    one, two = (results[f"ours, lanes, {k} threads"] for k in (1, 2))
    print(f"lanes are {results['ours, 1 threads'] / one:.2f} x single cases; two threads are {one / two:.2f} x one")
    peer = results.get("numbalsoda dop853, 2 threads")
    if peer is not None:
        alone = results["ours, 2 threads"]
        print(f"against numbalsoda on 2 threads: single cases {peer / alone:.2f} x, lanes {peer / two:.2f} x as fast")
    return results


def _parallel(solver: Any) -> Any:
    @numba.njit(parallel=True)
    def loop(address, start, times, data, rtol, atol):
        failed = 0
        for i in numba.prange(data.shape[0]):
            _, success = solver(address, start.copy(), times, data[i], rtol, atol, 100_000_000)
            failed += not success
        return failed

    return loop


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contact-table", required=True, help="the published RSGEO table")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--tolerances", default="1e-4,1e-6,1e-8")
    parser.add_argument("--methods", default=",".join(OURS))
    parser.add_argument("--peers", default="scipy,cvode,numbalsoda")
    parser.add_argument("--budget-s", type=float, default=30.0)
    parser.add_argument("--ensemble", type=int, default=1000, help="wagons; 0 for none")
    parser.add_argument("--ensemble-s", type=float, default=10.0)
    parser.add_argument("--no-history", action="store_true")
    chosen = parser.parse_args()
    table = load_contact_table(chosen.contact_table)
    methods = [m for m in chosen.methods.split(",") if m]
    peers = [p for p in chosen.peers.split(",") if p]
    rows: list[Row] = []
    for name in (c for c in chosen.cases.split(",") if c):
        if name not in CASES:
            parser.error(f"unknown case {name!r}; one of {', '.join(CASES)}")
        tolerances = [float(x) for x in chosen.tolerances.split(",")]
        rows += work_precision(build(name, table), tolerances, methods, peers, chosen.budget_s)
    hunted = [r for r in rows if r.case == "hunting" and r.tolerance == 1e-6 and not is_peer(r) and r.error > 0.0]
    if hunted:
        best = min(hunted, key=lambda r: r.seconds)
        print(f"\n10 s of hunting at rtol 1e-6: {best.seconds:.3f} s with {best.solver}")
    results: dict[str, Any] = {"rows": [asdict(r) for r in rows]}
    if chosen.ensemble > 0:
        results["ensemble"] = {
            "wagons": chosen.ensemble,
            "duration_s": chosen.ensemble_s,
            "seconds": ensemble(table, chosen.ensemble, chosen.ensemble_s),
        }
    if not chosen.no_history:
        append("wagon_solvers", results)


if __name__ == "__main__":
    main()
