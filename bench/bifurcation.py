"""What a bifurcation diagram and a linear map cost: one run, appended to bench/history/bifurcation.json.

    python bench/bifurcation.py [--skip-map]

The diagram: both Hopf points, hunting carried down by simulation, the branch of cycles through its folds and back along
the unstable branch, with Floquet multipliers (the published program needs tens of CPU-hours for the stable part). The
map: 16 radii x 8 cants x 61 speeds of equilibria with spectra, through plan, processes and store.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from history import append

from railsweep.cluster import make_executor
from railsweep.engine import assemble
from railsweep.sweeps import load_study, open_or_create, run_session
from railsweep.sweeps.bifurcation.critical_speed import Search, warm_up
from railsweep.sweeps.bifurcation.diagram import diagram

PROFILES = "s1002/uic60@1:40,gauge=1438"
MAP = """
name = "linear-map"
quantity = "spectrum"
[vehicle]
name = "cooperrider"
[contact]
profiles = "{profiles}"
[observe]
modes = 8
[[axis]]
parameter = "track.radius_m"
name = "radius_m"
values = [300, 400, 500, 600, 800, 1000, 1250, 1600, 2000, 2500, 3200, 4000, 5000, 7000, 10000, inf]
[[axis]]
parameter = "track.cant_mm"
name = "cant_mm"
values = [0, 20, 40, 60, 80, 100, 130, 160]
[[axis]]
parameter = "speed_mps"
start = 20.0
stop = 80.0
count = 61
[executor]
kind = "processes"
workers = 2
"""


def cpu() -> float:
    """Processor seconds of this process and its finished children."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-map", action="store_true")
    args = parser.parse_args()
    model = assemble("cooperrider", contact=PROFILES, speed_mps=60.0)
    search = Search(low_mps=50.0, high_mps=104.0, points=80, threads=2)
    warm_up(model, search)
    begin, used = time.perf_counter(), cpu()
    found = diagram(model, search)
    cycles = [p for b in found.branches for p in b.points]
    record: dict[str, object] = {
        "diagram_seconds": time.perf_counter() - begin,
        "diagram_cpu_seconds": cpu() - used,
        "cycles": len(cycles),
        "hopf_mps": [c.speed_mps for c in found.crossings],
        "fold_mps": list(found.nonlinear_mps),
        "ramp_speeds": sum(len(way.speeds_mps) for way in found.descents.values()),
    }
    print(
        f"diagram: {len(cycles)} cycles in {record['diagram_seconds']:.1f} s, {record['diagram_cpu_seconds']:.1f} s CPU"
    )
    print(f"  Hopf {record['hopf_mps']}, folds {record['fold_mps']}")
    if not args.skip_map:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "map.toml"
            file.write_text(MAP.format(profiles=PROFILES))
            study = load_study(file)
            begin, used = time.perf_counter(), cpu()
            store, _ = open_or_create(study, file.parent, file.parent / study.output.store, 2)
            executor = make_executor(study.executor)
            progress = run_session(store, executor)
            executor.close()
            record |= {
                "map_seconds": time.perf_counter() - begin,
                "map_cpu_seconds": cpu() - used,
                "map_cases": progress.done,
                "map_failed": progress.failed,
                "map_statuses": dict(progress.statuses),
            }
            print(
                f"linear map: {progress.done} equilibria with spectra in {record['map_seconds']:.1f} s, "
                f"{record['map_cpu_seconds']:.1f} s CPU; {progress.failed} without: {record['map_statuses']}"
            )
    append("bifurcation", record)


if __name__ == "__main__":
    main()
