"""Throughput on rough track: simulated seconds per core-second, beside scipy's LSODA on the same compiled equations.

    python bench/rough_track.py [--speed-mps 44] [--seconds 20] [--rtol 1e-5] [--seeds 3] [--no-history]

Two library vehicles run ERRI-high track, another realisation for every seed, on S1002 wheels and UIC60 rails, from rest
on perfect track. Ours: `simulate` with the channels of an assessment at 200 samples per second, so the figures include
recording. LSODA: `scipy.integrate.solve_ivp` calls the compiled right-hand side from Python and records nothing; `rhs
share` is the part of the time that the bare right-hand sides take. All in one process, in turn; CPU seconds of the
thread, median over the seeds. Error: largest difference of a wheelset displacement [m] within the first second from
dop853 at rtol 1e-10. Beside it: the cost of a realisation, of an assessment, of one right-hand side on smooth and on
rough track. Nothing is asserted on a time; a run is appended to history/rough_track.json.
"""

import argparse
import statistics
import time

import numba
import numpy as np
from history import append
from scipy.integrate import solve_ivp

from railsweep.engine import assemble, assess, assessment_channels, simulate
from railsweep.kernels.vehicle import vehicle_rhs

CONTACT = "s1002/uic60@1:40"
VEHICLES = ("manchester-1", "cooperrider")
METHODS = ("dopri5", "dop853", "bdf")
COMPARE_S = 1.0
ATOL_RATIO = 1e-3


@numba.njit(nogil=True, error_model="numpy", _nrt=False)
def many_rhs(n, y, m, out):
    for k in range(n):
        vehicle_rhs(5.0 + 1e-4 * k, y, m, out)


def cpu_seconds(function, repeats=1):
    """Result and least CPU time of a call."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        result = function()
        best = min(best, time.thread_time() - start)
    return result, best


def rhs_seconds(model, n=20_000):
    """Time of one right-hand side."""
    y, out, arrays = model.equilibrium(), np.zeros(model.n), model.copy().arrays
    many_rhs(1, y, arrays, out)
    return cpu_seconds(lambda: many_rhs(n, y, arrays, out), 7)[1] / n


def run_ours(model, method, seconds, rtol, channels):
    return simulate(
        model,
        None,
        (0.0, seconds),
        method=method,
        rtol=rtol,
        atol=ATOL_RATIO * rtol,
        sample_s=0.005,
        window_s=seconds,
        observables=channels,
        store=True,
    )


def run_lsoda(model, seconds, rtol, times):
    arrays, out = model.copy().arrays, np.zeros(model.n)

    def rhs(t, y):
        vehicle_rhs(t, y, arrays, out)
        return out.copy()

    return solve_ivp(
        rhs, (0.0, seconds), model.equilibrium(), method="LSODA", rtol=rtol, atol=ATOL_RATIO * rtol, t_eval=times
    )


def error_of(model, states, reference):
    rows = [
        i for i, name in enumerate(model.state_names) if name.startswith("wheelset") and name.endswith((".y", ".z"))
    ]
    return float(np.abs(states[rows] - reference[rows]).max())


def vehicle_rows(name, first_seed, speed, seconds, rtol, seeds):
    """One row per solver: simulated seconds per core-second, error, right-hand sides."""
    rows = []
    times = np.linspace(0.0, COMPARE_S, 11)
    base = assemble(
        name, contact=CONTACT, speed_mps=speed, irregularity=f"erri-high,length_m={speed * seconds + 200:g}"
    )
    channels = assessment_channels(base)
    taken: dict[str, list[tuple[float, float, int]]] = {}
    for method in METHODS:  # compile
        run_ours(base, method, 0.05, rtol, channels)
    realisations, assessments = [], []
    for seed in range(seeds):
        model, cost = cpu_seconds(lambda seed=seed: base.bind(["irregularity.seed"])([float(first_seed + seed)]))
        realisations.append(cost)
        fine = simulate(model, None, (0.0, COMPARE_S), method="dop853", rtol=1e-10, atol=1e-13, sample_s=0.1)
        lsoda, lsoda_cost = cpu_seconds(lambda model=model: run_lsoda(model, seconds, rtol, None))
        early = run_lsoda(model, COMPARE_S, rtol, times)
        taken.setdefault("scipy LSODA", []).append((lsoda_cost, error_of(model, early.y, fine.y), lsoda.nfev))
        for method in METHODS:
            run, cost = cpu_seconds(lambda model=model, method=method: run_ours(model, method, seconds, rtol, channels))
            if not run.success:
                print(f"{name} {method} seed {seed}: {run.message}")
                continue
            found = run.y[:, : round(COMPARE_S / 0.005) + 1 : 20]
            taken.setdefault(method, []).append((cost, error_of(model, found, fine.y), run.counters["rhs"]))
            if method == METHODS[0]:
                assess(run, model)
                assessments.append(cpu_seconds(lambda run=run, model=model: assess(run, model))[1])
    bare = rhs_seconds(base)
    for solver, runs in taken.items():
        cost = statistics.median(r[0] for r in runs)
        rows.append(
            {
                "vehicle": name,
                "solver": solver,
                "simulated_per_core_second": seconds / cost,
                "seconds": cost,
                "error_m": max(r[1] for r in runs),
                "rhs": round(statistics.median(r[2] for r in runs)),
                "rhs_share": statistics.median(r[2] for r in runs) * bare / cost,
            }
        )
    costs = {
        "vehicle": name,
        "rhs_smooth_us": 1e6 * rhs_seconds(base.with_irregularity(None)),
        "rhs_rough_us": 1e6 * bare,
        "realisation_ms": 1e3 * statistics.median(realisations),
        "assessment_ms": 1e3 * statistics.median(assessments) if assessments else float("nan"),
    }
    return rows, costs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--speed-mps", type=float, default=44.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rtol", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-history", action="store_true")
    args = parser.parse_args()
    table, costs = [], []
    for number, name in enumerate(VEHICLES):
        rows, cost = vehicle_rows(name, 1000 * (number + 1), args.speed_mps, args.seconds, args.rtol, args.seeds)
        table += rows
        costs.append(cost)
    print(f"{args.seconds:g} s of ERRI-high at {args.speed_mps:g} m/s, rtol {args.rtol:g}")
    print(f"{'vehicle':14s} {'solver':12s} {'sim s / core s':>14s} {'error m':>9s} {'rhs':>8s} {'rhs share':>9s}")
    for row in table:
        print(
            f"{row['vehicle']:14s} {row['solver']:12s} {row['simulated_per_core_second']:14.1f} {row['error_m']:9.1e} "
            f"{row['rhs']:8d} {row['rhs_share']:9.2f}"
        )
    for cost in costs:
        print(
            f"{cost['vehicle']}: right-hand side {cost['rhs_smooth_us']:.2f} us smooth, {cost['rhs_rough_us']:.2f} us "
            f"rough; realisation {cost['realisation_ms']:.1f} ms; assessment {cost['assessment_ms']:.0f} ms"
        )
    if not args.no_history:
        append(
            "rough_track",
            {"speed_mps": args.speed_mps, "seconds": args.seconds, "rtol": args.rtol, "rows": table, "costs": costs},
        )


if __name__ == "__main__":
    main()
