"""A brute-force ramp diagram: 20 to 120 m/s and back in steps of 1 m/s, 10 s each, both branches side by side.

Run: python bench/ramp.py [--contact-table FILE] [--rtol TOL]. Prints a table and appends to history/ramp.json. Without
a file the wagon runs on the default cone. The target (60 s on 2 cores) is for idle cores; on a loaded machine processor
time is what compares.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

from history import append

from railsweep.engine import assemble
from railsweep.sweeps.bifurcation.ramp import RampSettings, ramp_branch, start_set, steps_between

FIRST_MPS, LAST_MPS, STEP_MPS = 20.0, 120.0, 1.0


def branch(model, values, start, settings):
    """One branch with its processor time."""
    began = time.thread_time()
    found = ramp_branch(model, values, start, settings=settings)
    return found, time.thread_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contact-table", help="RSGEO table; default: conical wheels")
    parser.add_argument("--rtol", type=float, default=1e-5)
    args = parser.parse_args()
    formulation = "physics" if args.contact_table is None else "dytsi"
    model = assemble("cooperrider", contact=args.contact_table, speed_mps=60.0, formulation=formulation)
    settings = RampSettings(rtol=args.rtol, atol=1e-3 * args.rtol)
    ramp_branch(model, [60.0], settings=RampSettings(dwell_s=0.1, window_s=0.05, sample_s=0.001))  # compile
    up = steps_between(FIRST_MPS, LAST_MPS, STEP_MPS)
    starts = ({"wheelset_ll.y": 1e-4}, start_set(model)["antisymmetric"])
    began = time.perf_counter()
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(branch, (model, model), (up, up[::-1]), starts, (settings, settings)))
    wall = time.perf_counter() - began
    results = {"contact": model.contact.name, "formulation": formulation, "rtol": args.rtol, "wall_s": wall}
    print(f"{'branch':8s} {'steps':>6s} {'cpu s':>8s} {'hunts from':>11s} {'dies at':>8s} status")
    for name, (ramped, cpu) in zip(("up", "down"), found, strict=True):
        death = ramped.death()
        results[name] = {
            "steps": len(ramped.steps),
            "cpu_s": cpu,
            "onset_mps": ramped.onset(),
            "death_mps": death,
            "status": ramped.status.name,
        }
        print(f"{name:8s} {len(ramped.steps):6d} {cpu:8.1f} {ramped.onset()!s:>11s} {death!s:>8s} {ramped.status.name}")
    print(f"wall {wall:.1f} s, slower branch {max(cpu for _, cpu in found):.1f} s of processor time (target 60 s)")
    append("ramp", results)


if __name__ == "__main__":
    main()
