"""Cost of the wagon's kernels: right-hand side, Jacobian, bound samples, memory, cold and warm start.

Run: python bench/vehicle.py [--contact-table FILE] [--no-cold]. Prints a table and appends to history/vehicle.json.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc

import numba
import numpy as np
from history import append

from railsweep.engine import assemble
from railsweep.kernels.jacobian import fill_jacobian
from railsweep.kernels.vehicle import vehicle_rhs

REPEATS = 9
FIRST_RESULT = (
    "from railsweep.engine import assemble; m = assemble('cooperrider', speed_mps=60.0); "
    "m.rhs(0.0, m.state()); m.jacobian(0.0, m.state())"
)


@numba.njit(nogil=True, error_model="numpy", _nrt=False)
def many_rhs(n, y, m, out):
    for _ in range(n):
        y[0] += 1e-13
        vehicle_rhs(0.0, y, m, out)


@numba.njit(nogil=True, error_model="numpy", _nrt=False)
def many_jacobians(n, y, m, matrix, central):
    for _ in range(n):
        fill_jacobian(0.0, y, m, matrix, central)


def seconds(function, n, *args):
    """Best time per call over REPEATS runs of n calls."""
    function(1, *args)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        function(n, *args)
        best = min(best, (time.perf_counter() - start) / n)
    return best


def many_samples(n, binder, values):
    for _ in range(n):
        binder(values)


def bytes_per_call(model, y, out):
    """Growth of numba's allocation count and of Python memory over 10,000 calls."""
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    arrays = model.arrays
    vehicle_rhs(0.0, y, arrays, out)
    before = rtsys.get_allocation_stats().alloc
    many_rhs(10_000, y, arrays, out)
    native = rtsys.get_allocation_stats().alloc - before
    tracemalloc.start()
    many_rhs(1, y, arrays, out)
    base = tracemalloc.get_traced_memory()[0]
    many_rhs(10_000, y, arrays, out)
    python = tracemalloc.get_traced_memory()[0] - base
    tracemalloc.stop()
    return (native + max(0, python)) / 10_000


def start_up():
    """Seconds of a process to its first right-hand side and Jacobian, with an empty and with a filled numba cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        times = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", FIRST_RESULT], check=True, env=environment, cwd=folder)
            times.append(time.perf_counter() - start)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contact-table", help="RSGEO table; default: conical wheels")
    parser.add_argument("--no-cold", action="store_true", help="skip the cold start (compilation)")
    args = parser.parse_args()
    results = {}
    rng = np.random.default_rng(1)
    for formulation in ("physics", "dytsi"):
        model = assemble("cooperrider", contact=args.contact_table, speed_mps=60.0, formulation=formulation)
        y, out = 1e-3 * rng.standard_normal(model.n), np.zeros(model.n)
        matrix = np.zeros((model.n, model.n))
        rhs = seconds(many_rhs, 20_000, y, model.arrays, out)
        central = seconds(many_jacobians, 300, y, model.arrays, matrix, True)
        one_sided = seconds(many_jacobians, 300, y, model.arrays, matrix, False)
        binder = model.bind(["speed_mps", "secondary_yaw.damping", "primary_lateral.stiffness", "contact.friction"])
        sample = seconds(many_samples, 500, binder, [61.0, 1.7e5, 1.8e6, 0.2])
        heavy = seconds(many_samples, 500, model.bind(["car_body.mass"]), [45e3])
        results[formulation] = {
            "rhs_ns": 1e9 * rhs,
            "jacobian_central_rhs": central / rhs,
            "jacobian_one_sided_rhs": one_sided / rhs,
            "sample_us": 1e6 * sample,
            "sample_with_preload_us": 1e6 * heavy,
            "bytes_per_rhs": bytes_per_call(model, y, out),
        }
    if not args.no_cold:
        cold, warm = start_up()
        results["start"] = {"first_process_s": cold, "second_process_s": warm}
    for group, values in results.items():
        for name, value in values.items():
            print(f"{group:8s} {name:26s} {value:10.2f}")
    append("vehicle", results)


if __name__ == "__main__":
    main()
