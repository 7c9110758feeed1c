"""Files that a study names for its rails: part of the identity, kept in the store, found again wherever it goes."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from sample_study import bits, computed, write_study

from railsweep.app.cli import main
from railsweep.cluster.serial import SerialExecutor
from railsweep.engine import InputError, assemble, load_irregularity, simulate
from railsweep.engine.simulation import initial_state
from railsweep.sweeps import load_study, open_or_create, open_store, run_session
from railsweep.sweeps.evaluate import Evaluator
from railsweep.sweeps.study import difference

STUDY = """
name = "rails"
quantity = "simulation"
[vehicle]
name = "cooperrider"
[operation]
speed_mps = 30.0
[track]
irregularity = "{track}"
[solver]
duration_s = 0.6
window_s = 0.3
sample_s = 0.005
[observe]
channels = ["wheelset_ll.y"]
statistics = ["rms", "max"]
wheel_forces = false
[[axis]]
parameter = "irregularity.scale"
name = "scale"
values = [0.5, 1.0]
[executor]
kind = "serial"
[output]
block_cases = 1
"""
DESCRIPTION = """
[measured]
file = "run-7.csv"
fade_m = 3.0
[[measured.column]]
name = "PK"
quantity = "station"
unit = "m"
[[measured.column]]
name = "alignment"
quantity = "lateral"
unit = "mm"
"""
SIZE_MM = 2.0


def measure(path: Path, header: str = "station_m,lateral_mm", size_mm: float = SIZE_MM) -> None:
    s = 0.25 * np.arange(161)
    rows = zip(s, size_mm * np.sin(2.0 * np.pi * s / 9.0), strict=True)
    path.write_text("\n".join([header, *(f"{a:.17g},{b:.17g}" for a, b in rows)]) + "\n")


@pytest.fixture(params=["csv", "toml"])
def track(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Text of [track] irregularity: a measurement beside the study, or a description of one, both in a folder."""
    (tmp_path / "line").mkdir()
    if request.param == "csv":
        measure(tmp_path / "line" / "run-7.csv")
        return "line/run-7.csv,fade_m=3"
    measure(tmp_path / "line" / "run-7.csv", "PK,alignment")
    (tmp_path / "line" / "described.toml").write_text(DESCRIPTION)
    return "line/described.toml"


def text(track: str) -> str:
    return STUDY.format(track=track)


def test_a_run_on_measured_rails_is_that_of_the_api(
    track: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # paths are relative to the study file
    store = computed(tmp_path, text(track))
    head, comma, settings = track.partition(",")
    rough = load_irregularity(f"{tmp_path / head}{comma}{settings}")
    model = assemble("cooperrider", speed_mps=30.0, irregularity=rough)
    for block, scale in enumerate((0.5, 1.0)):
        run = simulate(
            model.bind(["irregularity.scale"])([scale]),
            initial_state(model, {}),
            (0.0, 0.6),
            sample_s=0.005,
            window_s=0.3,
            observables=["wheelset_ll.y"],
            store=False,
        )
        found = store.read(block)
        for name in ("rms", "max"):
            assert found[f"wheelset_ll_y_{name}"][0] == run.statistics["wheelset_ll.y"][name]
        assert found["wheelset_ll_y_rms"][0] > 1e-5


def test_the_content_of_the_rails_is_part_of_the_identity(track: str, tmp_path: Path) -> None:
    path = write_study(tmp_path, text(track))
    before = load_study(path)
    assert load_study(path).digest == before.digest
    header = "station_m,lateral_mm" if track.startswith("line/run-7") else "PK,alignment"
    measure(tmp_path / "line" / "run-7.csv", header, size_mm=SIZE_MM + 1e-9)
    after = load_study(path)
    assert [line.partition(": ")[0] for line in difference(before.document, after.document)] == ["files.line/run-7.csv"]
    assert after.digest != before.digest
    assert after.base_digest != before.base_digest


def test_so_is_the_description(tmp_path: Path) -> None:
    path = write_study(tmp_path, text("rough.toml,seed=5"))
    (tmp_path / "rough.toml").write_text('[spectrum]\nname = "erri-low"\nlength_m = 300.0\n')
    before = load_study(path)
    (tmp_path / "rough.toml").write_text('[spectrum]\nname = "erri-low"\nlength_m = 310.0\n')
    assert list(before.files) == ["rough.toml"]
    assert before.digest != load_study(path).digest
    assert before.settings["irregularity"].provenance["seed"] == 5


def test_the_store_keeps_the_rails_and_refuses_others(track: str, tmp_path: Path) -> None:
    store = computed(tmp_path, text(track))
    complete = bits(store.path)
    shutil.rmtree(store.path)

    study = load_study(write_study(tmp_path, text(track)))
    store, _ = open_or_create(study, tmp_path, tmp_path / study.output.store, 1)
    moved = tmp_path / "moved"
    moved.mkdir()
    store.path.rename(moved / "rails.zarr")
    shutil.rmtree(tmp_path / "line")

    assert main(["resume", str(moved / "rails.zarr")]) == 0
    assert bits(moved / "rails.zarr") == complete

    store = open_store(moved / "rails.zarr")
    assert store.study.digest == study.digest
    (tmp_path / "line").mkdir()
    for name, content in store.study.files.items():
        (tmp_path / name).write_bytes(content)
    store.check_same(load_study(tmp_path / "study.toml"))
    changed = tmp_path / "line" / "run-7.csv"
    changed.write_text(changed.read_text() + "# another measurement\n")
    with pytest.raises(InputError, match=r"made from another study: files\.line/run-7\.csv: '\w+"):
        store.check_same(load_study(tmp_path / "study.toml"))


def test_workers_read_the_copy_of_the_store(track: str, tmp_path: Path) -> None:
    path = write_study(tmp_path, text(track))
    study = load_study(path)
    store, _ = open_or_create(study, tmp_path, tmp_path / study.output.store, 1)
    measure(tmp_path / "line" / "run-7.csv", size_mm=50.0)
    assert run_session(store, SerialExecutor()).outcome == "finished"
    assert [store.read(b)["wheelset_ll_y_rms"][0] for b in (0, 1)] == [
        Evaluator(study, None)((scale,), 0).numbers["wheelset_ll_y_rms"] for scale in (0.5, 1.0)
    ]


def test_a_design_on_measured_rails_is_read(track: str, tmp_path: Path) -> None:
    design = '[sensitivity]\nmethod = "morris"\nsamples = 2\n'
    design += '[[parameter]]\nname = "irregularity.scale"\nrelative = 0.1\n'
    before, axis, after = text(track).partition("[[axis]]")
    after = after[after.index("[executor]") :]
    assert axis
    study = load_study(write_study(tmp_path, before + design + after))
    assert study.settings["irregularity"].provenance["kind"] == "measured"
    assert study.design is not None


@pytest.mark.parametrize(
    ("track", "message"),
    [
        ("gone.csv", r"study.toml: track.irregularity: names 'gone.csv', which cannot be read: No such file"),
        ("gone.toml", r"study.toml: track.irregularity: names 'gone.toml', which cannot be read: No such file"),
        ("lost.toml", r"track.irregularity: names 'run-7.csv', which cannot be read: No such file"),
        ("out.toml", r"track.irregularity: is '../run-7.csv' .*inside the folder of the study"),
        ("../line.csv", r"track.irregularity: is '../line.csv' .*inside the folder of the study"),
        ("/line.csv", r"track.irregularity: is '/line.csv' .*inside the folder of the study"),
        ("inch.csv", r"track.irregularity: inch.csv: lateral_inch: lateral in 'inch' .*m, cm, mm"),
        ("short.csv,fade_m=30", r"track.irregularity: fade_m: is 30.0 on 40 m of track"),
        ("rails.txt", r"track.irregularity: 'rails.txt' is no spectrum .*\.csv or a \.toml file"),
    ],
)
def test_rails_that_are_refused(track: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "lost.toml").write_text(DESCRIPTION)
    (tmp_path / "out.toml").write_text(DESCRIPTION.replace("run-7.csv", "../run-7.csv"))
    measure(tmp_path / "inch.csv", "station_m,lateral_inch")
    measure(tmp_path / "short.csv")
    with pytest.raises(InputError, match=message):
        load_study(write_study(tmp_path, text(track)))
