"""The verbs critical-speed, bifurcation and map: study files, stores, pictures, JSON, refusals."""

import json
from pathlib import Path

import pytest
import xarray

from railsweep.app.cli import main

PNG = b"\x89PNG"
SHORT = ["--low-mps", "90", "--high-mps", "110", "--dwell-s", "3", "--executor", "serial", "--json"]


def test_a_map_is_a_study_with_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["map", "--vehicle", "cooperrider", "--contact-table", "cone", "--linear", "--radius-m", "2000,4000,inf"]
    words += ["--cant-mm", "0,60", "--out", str(tmp_path / "grid"), *SHORT]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    straight = [c for c in facts["cases"] if c["radius_m"] is None]
    assert straight[0]["linear_mps"] == pytest.approx(99.07, abs=0.01)
    assert (tmp_path / "grid.png").read_bytes().startswith(PNG)
    with xarray.open_zarr(tmp_path / "grid.zarr") as store:
        assert store.linear_mps.shape == (3, 2)
        assert store.linear_mps.attrs["units"] == "m/s"
    # again: nothing is computed anew, the answer is the same
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == facts
    # another study of that name is not written over
    assert main([*words[:-1], "--step-mps", "2"]) == 2
    assert "is another study" in capsys.readouterr().err


def test_critical_speed_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["critical-speed", "--vehicle", "cooperrider", "--contact-table", "cone", "--linear"]
    assert main([*words, "--out", str(tmp_path / "speed"), *SHORT]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["linear_mps"] == pytest.approx([99.071, 99.959], abs=1e-3)
    assert facts["frequency_hz"] == pytest.approx([4.798, 4.785], abs=1e-3)
    assert {"criticality", "nonlinear_mps", "derails_at_mps"} <= facts.keys()
    assert (tmp_path / "speed.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--radius-m", "5"], "--radius-m"),
        (["--cant-mm", "600"], "--cant-mm"),
        (["--low-mps", "80", "--high-mps", "60"], "--high-mps"),
        (["--starts", "sideways"], "starts"),
        (["--contact-table", "missing.dat"], "--contact-table"),
        (["--out", "nowhere/name"], "--out"),
    ],
)
def test_refusals_name_the_option(
    extra: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bifurcation", "--vehicle", "cooperrider", *extra]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*.zarr"))


@pytest.mark.slow
def test_a_diagram_with_both_branches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bifurcation", "--vehicle", "cooperrider", "--contact-table", "cone", "--points", "12"]
    assert main([*words, "--out", str(tmp_path / "diagram"), *SHORT]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cycles"] >= 10
    assert "shrinks to the equilibrium" in facts["branch_ends"]
    with xarray.open_zarr(tmp_path / "diagram.zarr") as store:
        one = store.isel(radius_m=0, cant_mm=0).load()
    amplitude = one.cycle_amplitude_m.max("wheelset").values
    # supercritical: cycles lie above the Hopf point they shrink to, and grow with speed
    own = one.cycle_branch.values == 1.0
    speed, size = one.cycle_mps.values[own], amplitude[own]
    assert (speed > 99.0).all()
    assert size[-1] > size[0]
    assert (tmp_path / "diagram.png").read_bytes().startswith(PNG)
