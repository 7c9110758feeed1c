"""``railsweep init``: write a commented study file to start from."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from railsweep.engine.errors import InputError

SIMULATION = """\
# A railsweep study. Run it:  railsweep run {name}.toml     (the same command goes on after an interruption)
name = "{name}"
quantity = "simulation"          # what is computed in every case: {quantities}
                                 # options of a quantity, if it has any, stand in a section of its name
seed = 1                         # of the random numbers of every case

[vehicle]
name = "cooperrider"             # a library vehicle ('railsweep vehicles') or a .toml file beside this one
formulation = "physics"          # or "dytsi"
# friction = 0.3                 # default: the vehicle's; also: precession, creep_law

# [contact]                      # default: the profiles the vehicle names, else conical wheels
# profiles = "s1002/uic60@1:40,gauge=1438"   # wheel/rail@inclination; then contact.gauge_mm may be an axis
# table = "contact.npz"          # instead: a file beside this one, by 'railsweep contact build' or RSGEO .dat

[track]                          # what the axes below do not vary
cant_mm = 0.0                    # also: radius_m, hand, transition_m, transition
# irregularity = "erri-high,seed=3"   # rough track; then irregularity.seed and irregularity.scale may be axes
# irregularity = "line.csv"           # measured rails beside this file: station_m,vertical_mm,lateral_mm; or a .toml

[operation]
speed_mps = 20.0

[solver]
method = "dopri5"                # explicit: dopri5, dop853, rkf34; implicit: nt1, jkt, esdirk54, radau, ...; auto
rtol = 1e-6
atol = 1e-9
duration_s = 2.0
window_s = 1.0                   # statistics are taken over the end of the run
sample_s = 0.005
time_limit_s = 60.0              # wall-clock seconds per case; a longer one ends with the status time_limit

[start]                          # added to the equilibrium
"wheelset_ll.y" = 1e-3
random_m = 0.0                   # standard deviation of a random lateral offset of every wheelset

[observe]
channels = ["wheelset_ll.y"]     # states, <body>.<dof>_acc, <wheelset>.<side>.y_n, .q_n, .y_over_q
statistics = ["amplitude", "frequency_hz"]   # also: min, max, mean, rms
wheel_forces = true              # the largest Y/Q of all wheels
modes = 12                       # eigenvalues kept by a spectrum

[[axis]]                         # the product of all axes is computed
parameter = "track.radius_m"     # any parameter of the vehicle, the track, the contact
name = "radius_m"                # its name in the results
values = [inf, 5000.0, 3000.0]

[[axis]]
parameter = "speed_mps"
start = 20.0                     # a range: start, stop and step, or start, stop and count
stop = 40.0
step = 10.0
# zip = "pair"                   # axes with the same word here vary together, on one dimension of that name

[executor]                       # where it runs; never changes a result
kind = "processes"               # serial, threads, processes, dask; mpi through: mpiexec -n N railsweep run ...
workers = 2                      # 0: one per core
recycle_blocks = 0               # processes: replace a worker after so many blocks; 0: never
retries = 3                      # of a block whose worker was lost
grace_s = 10.0                   # after Ctrl-C or SIGTERM, wait this long for running blocks
# address = "tcp://host:8786"    # dask: a scheduler that runs already; tls = true, tls_ca, tls_cert, tls_key
# queue = {{ system = "slurm", jobs = 4, cores = 8, memory = "8GB", walltime = "01:00:00" }}

[output]
store = "{name}.zarr"{pad}# or a URL, "s3://bucket/{name}.zarr": a local store is copied there as it grows
block_cases = 0                  # cases per block; 0: as many as take block_seconds
block_seconds = 2.0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("file", metavar="STUDY.toml", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the example."""
    from railsweep.sweeps.input_file import checked_name
    from railsweep.sweeps.quantity import QUANTITIES

    path = Path(args.file)
    if path.suffix != ".toml":
        raise InputError(str(path), f"has the ending {path.suffix!r}", ".toml")
    checked_name("file", path.stem)
    if path.exists() and not args.force:
        raise InputError(str(path), "exists already", "a new file, or --force")
    if not path.parent.is_dir():
        raise InputError(str(path), "its folder does not exist", "a file in an existing folder")
    pad = " " * max(1, 18 - len(path.stem))
    text = SIMULATION.format(name=path.stem, quantities=", ".join(QUANTITIES), pad=pad)
    path.write_text(text, encoding="utf-8")
    print(json.dumps({"file": str(path)}) if args.json else f"written: {path}\nto run it: railsweep run {path}")
    return 0
