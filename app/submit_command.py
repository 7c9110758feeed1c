"""``railsweep submit``: a batch script for a study, written and, with --go, handed to the queue.

Every word that comes from outside is checked against a narrow pattern and quoted; the scheduler is called without a
shell. The job runs ``mpiexec ... railsweep run``: after a walltime kill the same script goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from railsweep.engine.errors import InputError, shown

SYSTEMS = ("slurm", "pbs", "lsf")
SUBMIT = {"slurm": ["sbatch"], "pbs": ["qsub"], "lsf": ["bsub"]}
WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
GRACE_S = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("study", metavar="STUDY.toml", help="study file")
    for system in SYSTEMS:
        parser.add_argument(f"--{system}", dest="system", action="store_const", const=system, help=f"a {system} script")
    parser.add_argument("--nodes", default="1", metavar="N", help="nodes (default: 1)")
    parser.add_argument("--tasks-per-node", default="16", metavar="N", help="ranks per node (default: 16)")
    parser.add_argument("--walltime", default="01:00:00", metavar="H:M:S", help="default: 01:00:00")
    parser.add_argument("--queue", metavar="NAME", help="partition or queue")
    parser.add_argument("--account", metavar="NAME", help="account or project")
    parser.add_argument("--script", metavar="FILE", help="where to write it (default: beside the study)")
    parser.add_argument("--go", action="store_true", help="submit it as well")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the script and perhaps submit it."""
    from railsweep.sweeps.study import load_study

    if args.system is None:
        raise InputError("railsweep submit", "no batch system given", ", ".join(f"--{s}" for s in SYSTEMS))
    study = load_study(args.study)
    text = script(args, study.name)
    path = Path(args.script) if args.script else Path(args.study).with_suffix(f".{args.system}.sh")
    if not path.parent.is_dir():
        raise InputError(str(path), "its folder does not exist", "a file in an existing folder")
    path.write_text(text, encoding="utf-8")
    answer = None
    if args.go:
        answer = submit(args.system, path)
    if args.json:
        print(json.dumps({"script": str(path), "system": args.system, "answer": answer}))
    else:
        print(f"written: {path}")
        print(answer if answer is not None else f"to submit: {' '.join(SUBMIT[args.system])} {shlex.quote(str(path))}")
    return 0


def submit(system: str, path: Path) -> str:
    """Hand a script to the scheduler and return its answer."""
    command = SUBMIT[system]
    try:
        if system == "lsf":
            with path.open("rb") as file:
                done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
        else:
            done = subprocess.run([*command, str(path.resolve())], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(
            command[0], f"cannot be started: {error.strerror}", "a machine with this batch system"
        ) from None
    if done.returncode != 0:
        raise InputError(command[0], f"refused the script: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def script(args: argparse.Namespace, name: str) -> str:
    """The text of the batch script."""
    from railsweep.cluster.dask import walltime_of

    nodes, tasks = _count("--nodes", args.nodes), _count("--tasks-per-node", args.tasks_per_node)
    walltime = _word("--walltime", args.walltime, r"(\d+-)?\d{1,3}:\d{2}(:\d{2})?")
    queue = args.queue and _word("--queue", args.queue, WORD)
    account = args.account and _word("--account", args.account, WORD)
    study = Path(args.study).resolve()
    if "\n" in str(study):
        raise InputError("study", f"is {shown(str(study))}", "a path of one line")
    if args.system == "slurm":
        head = [
            f"#SBATCH --job-name={name}",
            f"#SBATCH --nodes={nodes}",
            f"#SBATCH --ntasks-per-node={tasks}",
            f"#SBATCH --time={walltime}",
            f"#SBATCH --signal=TERM@{GRACE_S}",
            f"#SBATCH --output={name}.%j.log",
        ]
        head += [f"#SBATCH --partition={queue}"] * bool(queue) + [f"#SBATCH --account={account}"] * bool(account)
    elif args.system == "pbs":
        head = [
            f"#PBS -N {name[:15]}",
            f"#PBS -l select={nodes}:ncpus={tasks}:mpiprocs={tasks}",
            f"#PBS -l walltime={walltime_of('pbs', walltime)}",
            "#PBS -j oe",
        ]
        head += [f"#PBS -q {queue}"] * bool(queue) + [f"#PBS -A {account}"] * bool(account)
    else:
        head = [
            f"#BSUB -J {name}",
            f"#BSUB -n {nodes * tasks}",
            f'#BSUB -R "span[ptile={tasks}]"',
            f"#BSUB -W {walltime_of('lsf', walltime)}",
            f"#BSUB -o {name}.%J.log",
        ]
        head += [f"#BSUB -q {queue}"] * bool(queue) + [f"#BSUB -P {account}"] * bool(account)
    railsweep = shlex.quote(str(Path(sys.executable).parent / "railsweep"))
    body = [
        "set -u",
        f"cd -- {shlex.quote(str(study.parent))}",
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1",
        "# Exit code 75 means: not complete, submit this script again to go on.",
        f"exec mpiexec -n {nodes * tasks} {railsweep} run {shlex.quote(str(study))}",
    ]
    return "\n".join(["#!/bin/bash", *head, "", *body, ""])


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text):
        raise InputError(option, f"is {shown(text)}", "a whole number from 1 to 99999")
    return int(text)


def _word(option: str, text: str, pattern: str) -> str:
    if not re.fullmatch(pattern, text):
        raise InputError(option, f"is {shown(text)}", f"text like {pattern}")
    return text
