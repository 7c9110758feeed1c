"""What a study costs beyond its arithmetic: executors, store, scaling, memory, and a model of 1,000 nodes.

Run: python bench/studies.py [--quick] [--only NAME ...]. Prints tables and appends to history/studies.json.

* overhead: cases of about 50 ms (time histories) on processes, dask and mpi: worker time that is not computation. Wall
  time on a busy machine says little, so the processor time of writing and of the driver stands beside it.
* scaling: the same on one and two workers.
* rate: cases of about 1 ms (spectra): the whole machinery against the bare kernels, by wall time over two processes,
  and by processor time, kernels, evaluation and blocks taking turns in one process.
* memory: resident size after 1,000 and after 10,000 cases.
* dispatch: empty blocks per second through each executor.
* model: strong and weak scaling to 1,000 nodes from the measured costs per block.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from history import append

from railsweep.cluster import make_executor
from railsweep.sweeps import load_study, make_plan, open_or_create, run_session
from railsweep.sweeps.block import task_of, warm_up
from railsweep.sweeps.session import evaluator_of, measured_cost
from railsweep.sweeps.study import ExecutorChoice
from railsweep.sweeps.task import BlockReport, Stop

MOTION_S = 3.2  # of motion: about 50 ms of work for a case among others in lanes

SIMULATIONS = """
name = "simulations"
quantity = "simulation"
seed = 1
[vehicle]
name = "cooperrider"
[solver]
duration_s = {duration}
window_s = 0.2
[start]
"wheelset_ll.y" = 1e-3
[observe]
channels = ["wheelset_ll.y"]
[[axis]]
parameter = "track.radius_m"
name = "radius_m"
values = [inf, 5000.0, 4000.0, 3000.0]
[[axis]]
parameter = "speed_mps"
start = 20.0
stop = 40.0
count = {count}
[output]
block_cases = {block}
"""

SPECTRA = """
name = "spectra"
quantity = "spectrum"
[vehicle]
name = "cooperrider"
[observe]
modes = 4
[[axis]]
parameter = "secondary_yaw.damping"
name = "yaw_damping"
start = 1.0e5
stop = 3.0e5
count = 50
[[axis]]
parameter = "speed_mps"
start = 40.0
stop = 140.0
count = {count}
[output]
block_cases = {block}
"""

NODES = (1, 10, 100, 1000)
CORES_PER_NODE = 64
METADATA_OPERATIONS_PER_S = 20_000.0  # assumed: what one metadata server of a parallel file system sustains
OPERATIONS_PER_FILE = 5  # create, rename, open again, fsync, fsync of the folder
STRONG_CASES = 10**7  # of 50 ms: 139 hours on one core
WEAK_CASES_PER_CORE = 10**4
CASE_S = 0.05
LEAST_BLOCKS_PER_WORKER = 4  # as the plan has it
FIND_OPERATIONS_PER_MODULE = 3  # stat, open, read of what an import looks for


@dataclass(frozen=True)
class EmptyTask:
    """Blocks of nothing."""

    block_limit_s: float | None = None

    def warm_up(self):
        """Nothing to warm up."""

    def __call__(self, block, abandon=None):
        """Nothing."""
        return BlockReport(block=block, cases=1, failed=0, pid=os.getpid())


def written(folder, text, **numbers):
    """A study file in a fresh folder."""
    path = Path(folder) / "study.toml"
    path.write_text(text.format(**numbers))
    return load_study(path)


def timed_run(text, kind, workers, **numbers):
    """Wall time of the work (without start-up of the workers), sums over blocks, and blocks."""
    with tempfile.TemporaryDirectory() as folder:
        study = written(folder, text, **numbers)
        store, _ = open_or_create(study, Path(folder), Path(folder) / study.output.store, workers)
        if kind == "mpi":
            return mpi_run(folder, store, workers)
        executor = make_executor(ExecutorChoice(kind=kind, workers=workers))
        begin, driver = time.perf_counter(), time.process_time()
        progress = run_session(store, executor)
        wall, driver = time.perf_counter() - begin, time.process_time() - driver
        executor.close()
        found = summary(store, progress.compute_seconds, progress.write_seconds, wall)
        return {**found, "driver_cpu_ms_per_block": 1e3 * driver / store.plan.blocks}


def summary(store, compute, write, wall):
    """Figures of one run, from the ledger.

    A worker's span runs from the start of its first block to the end of its last: start-up and the tail, where some
    workers have nothing left, do not count; waiting for the driver and writing do.
    """
    spans = {}
    for entry in store.ledger.finished():
        end = store.ledger.path(entry["block"]).stat().st_mtime
        first, last, busy, cases = spans.get(entry["pid"], (end, end, 0.0, 0))
        spans[entry["pid"]] = (
            min(first, end - entry["seconds"]),
            max(last, end),
            busy + entry["seconds"],
            cases + entry["cases"],
        )
    return {
        "cases": store.plan.cases,
        "blocks": store.plan.blocks,
        "compute_s": compute,
        "write_s": write,
        "wall_s": wall,
        "cases_per_s": sum(cases / (last - first) for first, last, _, cases in spans.values()),
        "overhead_percent": 100.0
        * (
            sum(last - first for first, last, _, _ in spans.values()) / sum(busy for _, _, busy, _ in spans.values())
            - 1
        ),
    }


def mpi_run(folder, store, workers):
    """The same through mpiexec."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    code = "import sys; from railsweep.app.cli import main; sys.exit(main())"
    command = [mpiexec, "-n", str(workers + 1), sys.executable, "-c", code, "run", f"{folder}/study.toml", "--json"]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - begin
    if not done.stdout:
        raise SystemExit(f"the run under mpiexec failed: {done.stderr}")
    facts = json.loads(done.stdout.splitlines()[-1])
    return summary(store, facts["compute_seconds"], facts["write_seconds"], wall)


def overhead(quick):
    """Store cost of every block and idle time between blocks, as shares of the computation."""
    count, results = (25 if quick else 250), {}
    for kind in ("processes", "dask", "mpi"):
        run = timed_run(SIMULATIONS, kind, 2, duration=MOTION_S, count=count, block=10 if quick else 25)
        results[kind] = {
            **run,
            "case_ms": 1e3 * run["compute_s"] / run["cases"],
            "store_percent": 100.0 * run["write_s"] / run["compute_s"],
        }
    return results


def scaling(quick):
    """Two workers against one; fixed work per case."""
    results = {}
    for workers in (1, 2):
        run = timed_run(SIMULATIONS, "processes", workers, duration=0.9, count=20 if quick else 60, block=5)
        results[f"workers_{workers}_cases_per_s"] = run["cases_per_s"]
        results[f"workers_{workers}_case_ms"] = 1e3 * run["compute_s"] / run["cases"]
    results["speedup"] = results["workers_2_cases_per_s"] / results["workers_1_cases_per_s"]
    return results


def bare_loop(text, numbers, cases, pipe):
    """The kernel rate of one process: the cases in a loop, no blocks, no store."""
    with tempfile.TemporaryDirectory() as folder:
        study = written(folder, text, **numbers)
        evaluator = evaluator_of(study, Path(folder))
        warm_up(evaluator)
        plan = make_plan(study, 1)
        # spread over the whole study: the cost of a case depends on where it lies
        values = [plan.values(plan.position(i * plan.cases // cases)) for i in range(cases)]
        evaluator(values[0], 0)
        begin = time.perf_counter()
        for one in values:
            evaluator(one, 0)
        pipe.send(cases / (time.perf_counter() - begin))


def rate(quick):
    """Cases of a millisecond through the whole machinery, against the bare kernels."""
    numbers = {"count": 40 if quick else 2000, "block": 100 if quick else 1000}
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    team = [
        multiprocessing.get_context("spawn").Process(target=bare_loop, args=(SPECTRA, numbers, 500, theirs))
        for _ in range(2)
    ]
    for process in team:
        process.start()
    bare = sum(ours.recv() for _ in team)
    for process in team:
        process.join()
    run = timed_run(SPECTRA, "processes", 2, **numbers)
    return {
        **run,
        "bare_cases_per_s": bare,
        "percent_of_bare": 100.0 * run["cases_per_s"] / bare,
        **processor_time(quick),
    }


def processor_time(quick):
    """Microseconds of processor time per case, the three ways taking turns: kernels alone, evaluation, whole blocks."""
    with tempfile.TemporaryDirectory() as folder:
        study = written(folder, SPECTRA, count=40 if quick else 100, block=500)
        store, _ = open_or_create(study, Path(folder), Path(folder) / study.output.store, 1)
        evaluator, task = evaluator_of(study, Path(folder)), task_of(store)
        task.warm_up()
        task(0)
        spent = {"kernel_cpu_us": 0.0, "evaluation_cpu_us": 0.0, "block_cpu_us": 0.0}
        cases = 0
        for block in range(1, store.plan.blocks):
            values = [store.plan.values(position) for position in store.plan.indices(block)]
            marks = [time.process_time()]
            for one in values:
                model = evaluator.binder(list(one))
                np.linalg.eigvals(model.jacobian(0.0, model.equilibrium()))
            marks.append(time.process_time())
            for one in values:
                evaluator(one, 0)
            marks.append(time.process_time())
            task(block)
            marks.append(time.process_time())
            for name, first, last in zip(spent, marks, marks[1:], strict=False):
                spent[name] += last - first
            cases += len(values)
        found = {name: 1e6 * seconds / cases for name, seconds in spent.items()}
        return {**found, "percent_of_kernel_cpu": 100.0 * spent["kernel_cpu_us"] / spent["block_cpu_us"]}


def memory(quick):
    """Resident size of one process after 1,000 and after 10,000 cases."""
    few, many = (200, 2000) if quick else (1000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        study = written(folder, SPECTRA, count=many // 50, block=100)
        store, _ = open_or_create(study, Path(folder), Path(folder) / study.output.store, 1)
        task, sizes = task_of(store), {}
        for block in range(store.plan.blocks):
            task(block)
            sizes[(block + 1) * 100] = psutil.Process().memory_info().rss
        return {"few": few, "many": many, "growth_percent": 100.0 * (sizes[many] / sizes[few] - 1.0)}


def dispatch(quick):
    """Empty blocks per second: what the driver and the executor need for a block, whatever is in it."""
    blocks, found = (200 if quick else 1000), {}
    for kind in ("processes", "dask"):
        executor = make_executor(ExecutorChoice(kind=kind, workers=2))
        list(executor.run(EmptyTask(), range(8), Stop()))  # starts the workers
        begin = time.perf_counter()
        assert len(list(executor.run(EmptyTask(), range(blocks), Stop()))) == blocks
        found[f"{kind}_per_s"] = blocks / (time.perf_counter() - begin)
        executor.close()
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    words = [mpiexec, "-n", "3", sys.executable, __file__, "--mpi-dispatch", str(blocks)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found["mpi_per_s"] = float(done.stdout.split()[-1])
    return found


def mpi_dispatch(blocks):
    """The MPI part of `dispatch`, run under mpiexec."""
    from railsweep.cluster.mpi import MpiExecutor

    executor = MpiExecutor()
    if executor.drives:
        list(executor.run(EmptyTask(), range(8), Stop()))
        begin = time.perf_counter()
        list(executor.run(EmptyTask(), range(blocks), Stop()))
        print(blocks / (time.perf_counter() - begin))
        executor.close()


def model(measured):
    """Strong and weak scaling from costs per block; a study is as fast as its scarcest resource.

    Per block of 2 s: computing and writing on the worker, one dispatch by the driver (serial), and metadata operations
    on a shared file system for every array and the ledger. Start-up: every worker imports its modules, from a shared
    file system (the storm counted here) or from a disk of its node (nothing). Rates that this run did not measure are
    those of an earlier run.
    """
    run = measured.get("overhead", {}).get("processes", {"write_s": 0.03, "blocks": 1})
    rates = measured.get("dispatch", {"mpi_per_s": 1500.0, "dask_per_s": 160.0})
    write_s, files = run["write_s"] / run["blocks"], 8  # seven arrays and the ledger
    modules = sum(1 for m in list(sys.modules.values()) if getattr(m, "__file__", None))
    table = {"modules_imported": modules, "write_s_per_block": write_s}
    for kind in ("mpi", "dask"):
        for nodes in NODES:
            workers = nodes * CORES_PER_NODE
            storm = workers * modules * FIND_OPERATIONS_PER_MODULE / METADATA_OPERATIONS_PER_S
            for law, cases in (("strong", STRONG_CASES), ("weak", WEAK_CASES_PER_CORE * workers)):
                # The plan: blocks of 2 s, or smaller ones when every worker could not have its share.
                block_cases = max(1, min(int(2.0 / CASE_S), cases // (LEAST_BLOCKS_PER_WORKER * workers)))
                blocks = -(-cases // block_cases)
                seconds = {
                    "cores": -(-blocks // workers) * (block_cases * CASE_S + write_s),
                    "driver dispatch": blocks / rates[f"{kind}_per_s"],
                    "metadata server": blocks * files * OPERATIONS_PER_FILE / METADATA_OPERATIONS_PER_S,
                }
                limiting = max(seconds, key=seconds.__getitem__)
                table[f"{law} {kind} {nodes} nodes"] = {
                    "hours": seconds[limiting] / 3600.0,
                    "efficiency_percent": 100.0 * cases * CASE_S / workers / seconds[limiting],
                    "limited_by": limiting,
                    "import_storm_s": storm,
                    "block_s_for_90_percent": block_seconds_for(0.9, workers, write_s, rates[f"{kind}_per_s"], files),
                }
    return table


def block_seconds_for(share, workers, write_s, dispatch_per_s, files):
    """Seconds of work per block that keep this share of all cores computing."""
    slowest = min(dispatch_per_s, METADATA_OPERATIONS_PER_S / (files * OPERATIONS_PER_FILE))
    return max(share * workers / slowest, share * write_s / (1.0 - share))


def main():
    """Run the parts asked for."""
    parts = {"overhead": overhead, "scaling": scaling, "rate": rate, "memory": memory, "dispatch": dispatch}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    parser.add_argument("--mpi-dispatch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mpi_dispatch:
        mpi_dispatch(args.mpi_dispatch)
        return
    with tempfile.TemporaryDirectory() as folder:
        study = written(folder, SIMULATIONS, duration=0.9, count=5, block=5)
        results = {"cost": {"simulation_ms": 1e3 * measured_cost(evaluator_of(study, Path(folder)))}}
        study = written(folder, SPECTRA, count=5, block=5)
        results["cost"]["spectrum_ms"] = 1e3 * measured_cost(evaluator_of(study, Path(folder)))
    for name in args.only:
        results[name] = parts[name](args.quick)
    results["model"] = model(results)
    results["quick"] = args.quick
    results["load_average"] = os.getloadavg()[0]  # wall times mean little when it exceeds the number of workers
    show(results)
    append("studies", results)


def show(results, prefix=""):
    """Print nested figures, one per line."""
    for name, value in results.items():
        if isinstance(value, dict):
            show(value, f"{prefix}{name} ")
        else:
            print(
                f"{prefix + name:50s} {value:12.4g}"
                if isinstance(value, float)
                else f"{prefix + name:50s} {value!s:>12s}"
            )


if __name__ == "__main__":
    main()
