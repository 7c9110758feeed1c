"""Figures of assessment and misfits as quantities of studies, on rough track."""

from pathlib import Path

import numpy as np
import pytest

from railsweep.engine import InputError, assemble, assess, assessment_channels, simulate
from railsweep.sweeps.evaluate import Evaluator
from railsweep.sweeps.study import load_study

STUDY = """
name = "ride"
quantity = "{quantity}"
[vehicle]
name = "cooperrider"
[operation]
speed_mps = 30.0
[track]
irregularity = "{track}"
[solver]
rtol = 1e-5
atol = 1e-8
duration_s = 7.0
window_s = 6.0
{section}
[[axis]]
parameter = "secondary_yaw.damping"
name = "yaw_damping"
values = [1.0e5, 166669.0, 2.5e5]
"""
TRACK = "erri-low,seed=3,length_m=400"


def evaluator(folder: Path, quantity: str, section: str = "", track: str = TRACK) -> Evaluator:
    path = folder / "ride.toml"
    path.write_text(STUDY.format(quantity=quantity, section=section, track=track))
    return Evaluator(load_study(path), None)


def test_figures_are_those_of_the_same_run(tmp_path: Path) -> None:
    made = evaluator(tmp_path, "assessment", '[assessment]\nfigures = ["n_mv", "sum_y_2m_n", "t_gamma_mean_n"]')
    found = made((2.5e5,), 0)
    assert found.status == 0, found.reason
    model = assemble("cooperrider", speed_mps=30.0, irregularity=TRACK).bind(["secondary_yaw.damping"])([2.5e5])
    run = simulate(
        model,
        None,
        (0.0, 7.0),
        rtol=1e-5,
        atol=1e-8,
        sample_s=0.005,
        window_s=6.0,
        observables=assessment_channels(model),
        store=False,
    )
    expected = assess(run, model, ["n_mv", "sum_y_2m_n", "t_gamma_mean_n"])
    assert {name: found.numbers[name] for name in expected} == expected
    assert {v.name for v in made.variables} == {*expected, "t_end_s", "rhs_calls"}
    assert [v.unit for v in made.variables[:3]] == ["1", "N", "N"]


def test_cases_side_by_side_are_the_single_cases(tmp_path: Path) -> None:
    made = evaluator(tmp_path, "assessment")
    values = [(1.0e5,), (166669.0,), (2.5e5,)]
    together = made.batch(values, [0, 0, 0])
    assert [made(v, 0).numbers for v in values] == [r.numbers for r in together]
    assert len({r.numbers["floor_y_rms_mps2"] for r in together}) == 3


def test_the_misfit_of_the_nominal_vehicle_is_nothing(tmp_path: Path) -> None:
    section = '[misfit]\nchannels = ["car_body.y_acc", "wheelset_ll.y"]'
    made = evaluator(tmp_path, "misfit", section)
    low, same, high = (made((v,), 0).numbers for v in (1.0e5, 166669.0, 2.5e5))
    assert same["misfit"] == 0.0
    assert low["misfit"] > 1e-3
    assert high["misfit"] > 1e-3
    parts = [low["misfit_car_body_y_acc"], low["misfit_wheelset_ll_y"]]
    assert low["misfit"] == pytest.approx(np.sqrt(np.mean(np.square(parts))))


def test_a_measured_reference(tmp_path: Path) -> None:
    model = assemble("cooperrider", speed_mps=30.0, irregularity=TRACK).bind(["secondary_yaw.damping"])([2.5e5])
    run = simulate(
        model, None, (0.0, 7.0), rtol=1e-5, atol=1e-8, sample_s=0.005, window_s=6.0, observables=["wheelset_ll.y"]
    )
    rows = "\n".join(f"{t!r},{y!r}" for t, y in zip(run.window_t, run.channels["wheelset_ll.y"], strict=True))
    (tmp_path / "ride.csv").write_text(f"t,wheelset_ll.y\n{rows.replace('np.float64(', '').replace(')', '')}\n")
    section = '[misfit]\nchannels = ["wheelset_ll.y"]\nreference = "ride.csv"'
    made = evaluator(tmp_path, "misfit", section)
    assert made((2.5e5,), 0).numbers["misfit"] < 1e-9
    assert made((1.0e5,), 0).numbers["misfit"] > 1e-3


@pytest.mark.parametrize(
    ("quantity", "section", "track", "word"),
    [
        ("assessment", '[assessment]\nfigures = ["n_nv"]', TRACK, "n_nv"),
        ("assessment", "", "erri-hihg", "irregularity"),
        ("assessment", "", "rails.csv", "track.irregularity: names 'rails.csv', which cannot be read"),
        ("misfit", "", TRACK, "misfit.channels"),
        ("misfit", '[misfit]\nchannels = ["wheelset_ll.w"]', TRACK, "wheelset_ll.w"),
        ("misfit", '[misfit]\nchannels = ["wheelset_ll.y"]\nreference = "gone.csv"', TRACK, "gone.csv"),
        ("misfit", '[misfit]\nchannels = ["wheelset_ll.y"]\nreference = "bad.csv"', TRACK, "no column 'wheelset_ll.y'"),
    ],
)
def test_what_is_refused(quantity: str, section: str, track: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("t,car_body.y\n0,0\n1,1\n")
    with pytest.raises(InputError) as refused:
        evaluator(tmp_path, quantity, section, track)
    assert word in str(refused.value)
