"""``railsweep simulate`` and ``railsweep bench``: what they refuse, print, write and return."""

import json
import math
import sys
from argparse import ArgumentParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from railsweep.app import bench_command, cli, simulate_command
from railsweep.app.simulate_plot import unit_of
from railsweep.engine import load_trajectory, solver_run
from railsweep.engine.benchmark import CASES, METHODS, PUBLISHED
from railsweep.kernels.integrate.registry import METHODS as INTEGRATORS

BASE = ("simulate", "--vehicle", "cooperrider", "--speed-mps", "40", "--duration-s", "0.5")


def request(*argv: str) -> simulate_command.SimulateRequest:
    parser = ArgumentParser()
    simulate_command.add_arguments(parser)
    return simulate_command.request_from(parser.parse_args([*BASE[1:], *cli.join_negative_values(argv)]))


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_defaults() -> None:
    found = request()
    assert found.speed_mps == 40.0
    assert found.duration_s == 0.5
    assert found.window_s == 0.25
    assert math.isinf(found.radius_m)
    assert (found.method, found.rtol, found.atol, found.sample_s) == ("dopri5", 1e-6, 1e-9, 0.005)
    assert (found.perturb, found.channels, found.out, found.plot, found.json) == ({}, (), None, None, False)


def test_options_are_read() -> None:
    found = request(
        *("--perturb", "wheelset_ll.y=-1e-3", "--perturb", "car_body.roll=0.01"),
        *("--radius-m", "-600", "--cant-mm", "110", "--transition-m", "40", "--transition-shape", "bloss"),
        *("--method", "bdf", "--rtol", "1e-5", "--atol", "1e-8", "--sample-s", "0.01", "--channels", "a,b"),
    )
    assert found.perturb == {"wheelset_ll.y": -1e-3, "car_body.roll": 0.01}
    assert (found.radius_m, found.cant_mm) == (-600.0, 110.0)
    assert (found.transition_m, found.transition_shape) == (40.0, "bloss")
    assert (found.method, found.rtol, found.atol, found.sample_s) == ("bdf", 1e-5, 1e-8, 0.01)
    assert found.channels == ("a", "b")


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (("--perturb", "wheelset_ll.y"), "--perturb"),
        (("--perturb", "=1"), "--perturb"),
        (("--perturb", "wheelset_ll.y=much"), "wheelset_ll.y"),
        (("--perturb", "a=1", "--perturb", "a=2"), "twice"),
        (("--perturb", "wheelset_lx.y=1e-3"), "wheelset_lx.y"),
        (("--radius-m", "5"), "--radius-m"),
        (("--cant-mm", "800"), "--cant-mm"),
        (("--transition-m", "40"), "--transition-m"),
        (("--friction", "0"), "--friction"),
        (("--rtol", "0"), "--rtol"),
        (("--atol", "-1e-9"), "--atol"),
        (("--sample-s", "1"), "--sample-s"),
        (("--window-s", "1"), "--window-s"),
        (("--method", "euler"), "--method"),
        (("--channels", "wheelset_ll.y,nothing"), "nothing"),
        (("--out", "run.txt"), "--out"),
        (("--out", "nowhere/run.zarr"), "--out"),
        (("--plot", "run.bmp"), "--plot"),
        (("--contact-table", "nowhere.dat"), "nowhere.dat"),
        (("--perturbe", "a=1"), "--perturb"),
    ],
)
def test_what_is_refused_is_named(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], named: str) -> None:
    assert named in refused(capsys, *BASE, *argv)


@pytest.mark.parametrize(("flag", "value"), [("--speed-mps", "0"), ("--duration-s", "-1"), ("--duration-s", "nan")])
def test_speed_and_duration_must_be_positive(capsys: pytest.CaptureFixture[str], flag: str, value: str) -> None:
    words = list(BASE)
    words[words.index(flag) + 1] = value
    assert flag in refused(capsys, *words)


def test_every_method_of_the_registry_is_offered() -> None:
    assert set(simulate_command.METHODS) == {"auto", *INTEGRATORS}


def test_json_tells_the_whole_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*BASE, "--perturb", "wheelset_ll.y=0.001", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["success"] is True
    assert told["status"] == "OK"
    assert told["t_end_s"] == 0.5
    assert told["counters"]["accepted"] > 10
    assert len(told["end_state"]) == 66
    assert set(told["statistics"]) == {f"wheelset_{w}.y" for w in ("ll", "lt", "tl", "tt")}
    found = told["statistics"]["wheelset_ll.y"]
    assert found["min"] <= found["mean"] <= found["max"]
    assert 0.0 < found["amplitude"] < 1e-3


def test_text_shows_channels_and_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*BASE, "--channels", "car_body.z_acc,wheelset_tt.left.q_n", "--window-s", "0.1"]) == 0
    text = capsys.readouterr().out
    assert "car_body.z_acc" in text
    assert "wheelset_tt.left.q_n" in text
    assert "from 0.4 to 0.5 s" in text
    assert "right-hand sides" in text


def test_a_run_that_stops_early_is_told_kept_and_returns_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, plot = tmp_path / "run.h5", tmp_path / "run.png"
    kick = ("--perturb", "wheelset_ll.y=0.005", "--perturb", "wheelset_ll.y_dot=3", "--sample-s", "1e-4")
    assert cli.main([*BASE, *kick, "--out", str(out), "--plot", str(plot), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "DERAILED"
    assert told["success"] is False
    assert told["t_end_s"] < 0.5
    with load_trajectory(out) as kept:
        assert kept.attrs["status"] == "DERAILED"
        assert 1 < kept["time"].size <= told["t_end_s"] / 1e-4 + 1
    assert plot.stat().st_size > 1000


@pytest.mark.parametrize("ending", ["zarr", "h5"])
def test_samples_and_picture_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    out, plot = tmp_path / f"run.{ending}", tmp_path / "run.svg"
    assert cli.main([*BASE, "--perturb", "wheelset_ll.y=1e-3", "--out", str(out), "--plot", str(plot)]) == 0
    text = capsys.readouterr().out
    assert str(plot.name) in text.replace("\n", "")
    with load_trajectory(out) as kept:
        assert kept["time"].values == pytest.approx(0.005 * np.arange(101), abs=1e-12)
        assert float(kept["wheelset_ll.y"][0]) == pytest.approx(1e-3, abs=1e-9)
    assert plot.read_text().lstrip().startswith("<?xml")


def test_a_curve_with_a_transition_runs(capsys: pytest.CaptureFixture[str]) -> None:
    track = ("--radius-m", "3000", "--cant-mm", "60", "--transition-m", "10", "--formulation", "dytsi")
    assert cli.main([*BASE, *track, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counters"]["restarts"] == 1
    assert told["statistics"]["wheelset_ll.y"]["max"] > 1e-5  # outward


def test_progress_lines_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every poll prints here; the time grows and never passes the end."""
    monkeypatch.setattr(simulate_command, "LINE_INTERVAL_S", 0.0)
    monkeypatch.setattr(simulate_command, "POLL_S", 0.01)
    monkeypatch.setattr(solver_run, "PROGRESS_INTERVAL_S", 0.005)
    argv = [*BASE[:-1], "5", "--perturb", "wheelset_ll.y=0.001", "--rtol", "1e-9", "--atol", "1e-12", "--json"]
    assert cli.main(argv) == 0
    captured = capsys.readouterr()
    json.loads(captured.out)  # progress does not mix with the result
    lines = captured.err.splitlines()
    reached = [float(line.split()[2]) for line in lines]
    assert all(a <= b for a, b in pairwise(reached))
    assert 0.0 < reached[-1] <= 5.0
    assert "of 5 s" in lines[-1]
    assert lines[-1].endswith("s left")


def test_time_left_is_proportional(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 104.0, 130.0])
    monkeypatch.setattr(simulate_command.time, "monotonic", lambda: next(clock))
    meter = simulate_command.LineMeter(40.0)
    meter.update(5.0)  # too soon after the start
    meter.update(30.0)
    assert capsys.readouterr().err == "t = 30 of 40 s (75 %), 10 s left\n"


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with simulate_command._meter(2.0) as meter:
        assert isinstance(meter, simulate_command.BarMeter)
        meter.update(0.5)
        assert meter.progress.tasks[0].completed == 0.5
        assert meter.progress.tasks[0].total == 2.0


def test_a_failure_in_the_background_is_raised_in_the_foreground(capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, *BASE[:-1], "1000000", "--sample-s", "1e-5")
    assert "sample_s" in error


def test_units_of_channels() -> None:
    assert unit_of("wheelset_ll.y") == "m"
    assert unit_of("wheelset_ll.yaw_acc") == "rad/s2"
    assert unit_of("wheelset_ll.left.q_n") == "N"
    assert unit_of("wheelset_ll.sum_y_n") == "N"
    assert unit_of("wheelset_ll.left.y_over_q") == "-"


# --- bench -------------------------------------------------------------------------------------------------------


def test_bench_offers_the_cases_and_methods_of_the_benchmark() -> None:
    assert bench_command.CASES == CASES
    assert bench_command.METHODS == METHODS
    assert set(PUBLISHED) == {(case, method) for case in CASES for method in METHODS}


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ((), "--contact-table"),
        (("--contact-table", "nowhere.dat"), "nowhere.dat"),
        (("--contact-table", "x", "--cases", "T1,T6"), "T6"),
        (("--contact-table", "x", "--methods", "bdf,euler"), "euler"),
    ],
)
def test_bench_refuses_by_name(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], named: str) -> None:
    assert named in refused(capsys, "bench", "solvers", *argv)


def test_bench_prints_ours_beside_the_published(published_table_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["bench", "solvers", "--contact-table", str(published_table_path), "--cases", "T1", "--methods", "nt1,bsimp"]
    assert cli.main(argv) == 0
    captured = capsys.readouterr()
    assert "/ 11093" in captured.out
    assert "/ failed" in captured.out
    assert "T1 nt1: OK" in captured.err
    assert cli.main([*argv, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["runs"]
    assert [(row["case"], row["method"], row["status"]) for row in rows] == [("T1", "nt1", "OK"), ("T1", "bsimp", "OK")]
    assert rows[0]["published"]["accepted"] == 11093
    assert rows[1]["published"] is None
