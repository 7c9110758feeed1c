"""Studies with an [optimise] section: any executor, killed and resumed, constraints, the verb and its picture."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from railsweep.app import cli
from railsweep.engine.errors import InputError
from railsweep.sweeps import load_study, open_store
from railsweep.sweeps.population.session import Search

STUDY = """
name = "search"
quantity = "spectrum"
[vehicle]
name = "cooperrider"
[operation]
speed_mps = 90.0
[observe]
modes = 1
[optimise]
{method}
seed = 2
[[objective]]
quantity = "damping_ratio"
goal = "max"
{more}
[[parameter]]
name = "secondary_yaw.damping"
relative = 0.5
[[parameter]]
name = "primary_longitudinal.stiffness"
label = "guide"
low = 1e6
high = 6e6
logarithmic = true
[executor]
kind = "serial"
"""
FRONT = 'method = "nsga2"\npopulation = 8\ngenerations = 3'
SECOND = '[[objective]]\nquantity = "frequency_hz"\ngoal = "min"\n'
METHODS = {
    "nsga2": (FRONT, SECOND),
    "overlap": (FRONT + "\noverlap = 3", SECOND),
    "genetic": ('method = "genetic"\npopulation = 8\ngenerations = 3', ""),
    "annealing": ('method = "annealing"\niterations = 6\nchains = 2', ""),
    "pattern": ('method = "pattern"\niterations = 4\nstarts = 2', ""),
    "hybrid": ('method = "hybrid"\npopulation = 6\ngenerations = 2\nlocal_iterations = 2', ""),
}


def written(folder: Path, method: str, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "search.toml"
    path.write_text(STUDY.format(method=method, more=more))
    return path


def run(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> Any:
    code = cli.main(["optimise", str(path), "--json", *options])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "name", [m if m in ("nsga2", "genetic") else pytest.param(m, marks=pytest.mark.slow) for m in METHODS]
)
def test_every_method_runs_and_a_second_run_computes_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, *METHODS[name])
    code, facts = run(capsys, path, "--plot", str(tmp_path / "p.png"))
    assert code == 0
    assert facts["complete"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    store = open_store(tmp_path / "search.zarr")
    with xarray.open_zarr(store.path) as dataset:
        done = dataset["status"].values == 0
        assert done.sum() == facts["evaluations"]
        assert facts["solutions"][0]["objectives"]["damping_ratio"] <= dataset["damping_ratio"].values[done].max()
        if len(facts["solutions"]) == 1:
            i = int(np.nanargmax(np.where(done, dataset["damping_ratio"].values, np.nan)))
            assert facts["solutions"][0]["parameters"]["guide"] == dataset["guide"].values[i]
            assert store.plan.values((i,))[1] == dataset["guide"].values[i]
    _, again = run(capsys, path)
    assert again["session"]["computed"] == 0
    assert again["solutions"] == facts["solutions"]


def test_the_picture_shows_every_objective_over_every_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"p{k}" for k in range(9)]
    parameters = [
        *(f"primary_{way}.stiffness" for way in ("lateral", "vertical")),
        *(f"secondary_{way}.{what}" for way in ("lateral", "vertical") for what in ("stiffness", "damping")),
        "primary_vertical.upper_y_m",
        "secondary_yaw.stiffness",
        "contact.friction",
    ]
    more = SECOND + "".join(
        f'[[parameter]]\nname = "{parameter}"\nlabel = "{name}"\nrelative = 0.1\n'
        for name, parameter in zip(names, parameters, strict=True)
    )
    path = written(tmp_path, 'method = "nsga2"\npopulation = 4\ngenerations = 1', more)
    run(capsys, path, "--plot", str(tmp_path / "p.svg"))
    drawn = (tmp_path / "p.svg").read_text()  # texts stand in comments
    for name in ("secondary_yaw_damping", "guide", *names):
        assert drawn.count(f"<!-- {name} -->") == 2
    for objective in ("damping_ratio", "frequency_hz"):
        assert drawn.count(f"<!-- {objective} -->") == 3  # rows of panels


def test_a_dry_run_counts_the_evaluations_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, facts = run(capsys, written(tmp_path, *METHODS["nsga2"]), "--dry-run")
    assert code == 0
    assert facts["cases"] == 8 * (3 + 1)
    assert facts["seconds_per_case"] > 0.0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["search.toml"]


@pytest.mark.parametrize("name", ["overlap", pytest.param("nsga2", marks=pytest.mark.slow)])
def test_without_checkpoint_or_with_blocks_missing_the_end_is_the_same(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, *METHODS[name])
    _, facts = run(capsys, path)
    (tmp_path / "search.zarr" / ".railsweep" / "search.json").unlink()
    _, told_again = run(capsys, path)
    assert told_again["solutions"] == facts["solutions"]
    store = open_store(tmp_path / "search.zarr")
    before = np.asarray(store.arrays["damping_ratio"][:])
    (store.own / "search.json").unlink()
    for block in range(store.plan.blocks // 2, store.plan.blocks):
        store.ledger.forget(block)
    _, computed_again = run(capsys, path)
    assert computed_again["session"]["computed"] > 0
    assert computed_again["solutions"] == facts["solutions"]
    assert np.array_equal(np.asarray(open_store(store.path).arrays["damping_ratio"][:]), before)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsga2", "overlap"])
@pytest.mark.parametrize("executor", ["threads", "processes", "dask"])
def test_executors_agree_to_the_bit(
    name: str, executor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, serial = run(capsys, written(tmp_path / "a", *METHODS[name]))
    _, other = run(capsys, written(tmp_path / "b", *METHODS[name]), "--executor", executor, "--workers", "2")
    assert other["solutions"] == serial["solutions"]
    arrays = [np.asarray(open_store(tmp_path / f / "search.zarr").arrays["damping_ratio"][:]) for f in "ab"]
    assert np.array_equal(*arrays)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsga2", "overlap"])
def test_a_search_killed_for_real_goes_on_to_the_same_end(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method, more = METHODS[name]
    method = method.replace("generations = 3", "generations = 8")
    _, whole = run(capsys, written(tmp_path / "a", method, more))
    path = written(tmp_path / "b", method, more)
    command = [sys.executable, "-c", "import sys; from railsweep.app.cli import main; sys.exit(main(sys.argv[1:]))"]
    command += ["optimise", str(path), "--json"]
    ledger, killed = path.parent / "search.zarr" / ".railsweep" / "ledger", 0
    for wanted in (3, 9, 20):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while process.poll() is None and len(list(ledger.glob("*/*.json"))) < wanted:
            time.sleep(0.002)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
    assert killed >= 1
    done = subprocess.run([*command, "--take-over"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    assert facts["solutions"] == whole["solutions"]
    arrays = [np.asarray(open_store(tmp_path / f / "search.zarr").arrays["damping_ratio"][:]) for f in "ab"]
    assert np.array_equal(*arrays)


def test_constraints_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    method = 'method = "genetic"\npopulation = 10\ngenerations = 4'
    _, free = run(capsys, written(tmp_path / "a", method))
    limit = 0.5 * free["solutions"][0]["objectives"]["damping_ratio"]
    more = f'[[constraint]]\nquantity = "damping_ratio"\nat_most = {limit!r}\n'
    code, bound = run(capsys, written(tmp_path / "b", method, more))
    assert code == 0
    assert bound["infeasible"] > 0
    assert bound["solutions"][0]["objectives"]["damping_ratio"] <= limit


@pytest.mark.parametrize(
    ("method", "more", "word"),
    [
        ('method = "genetic"', SECOND, "2 for genetic"),
        ("populaton = 8", "", "populaton"),
        ("population = 2", "", "population"),
        (FRONT, '[[constraint]]\nquantity = "damping_ratio"\n', "no limit"),
        (FRONT + "\noverlap = 7", "", "overlap"),
    ],
)
def test_wrong_sections_are_refused_by_name(method: str, more: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word):
        load_study(written(tmp_path, method, more))


def test_an_objective_that_is_not_computed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, FRONT)
    path.write_text(path.read_text().replace('quantity = "damping_ratio"', 'quantity = "damping_ration"'))
    assert cli.main(["optimise", str(path)]) == 2
    assert "did you mean 'damping_ratio'?" in capsys.readouterr().err


def test_run_leaves_a_search_to_the_verb_that_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, FRONT)
    assert cli.main(["run", str(path)]) == 2
    assert "railsweep optimise" in capsys.readouterr().err


def test_a_store_without_a_search_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, FRONT)
    run(capsys, path)
    assert Search(open_store(tmp_path / "search.zarr")).told == 32
    path.write_text(path.read_text().split("[optimise]")[0] + "[[axis]]\nparameter = 'speed_mps'\nvalues = [50.0]\n")
    assert cli.main(["optimise", str(path)]) == 2
    assert "no [optimise] section" in capsys.readouterr().err
