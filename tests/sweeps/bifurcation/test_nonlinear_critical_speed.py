"""Folds from the nominal vehicle's cycle: the same as those searched from scratch, whatever came before."""

from pathlib import Path

import numpy as np
import pytest

from railsweep.engine.errors import InputError
from railsweep.sweeps.bifurcation.critical_speed import damped
from railsweep.sweeps.bifurcation.motion import run_motion
from railsweep.sweeps.evaluate import Evaluator
from railsweep.sweeps.study import load_study

STUDY = """
name = "folds"
quantity = "nonlinear_critical_speed"
[vehicle]
name = "cooperrider"
[contact]
profiles = "s1002/uic60@1:40,gauge=1438"
[nonlinear_critical_speed]
low_mps = 40.0
high_mps = 104.0
[[axis]]
parameter = "{parameter}"
name = "scanned"
values = [{values}]
"""


def evaluator(folder: Path, parameter: str, values: str) -> Evaluator:
    path = folder / "folds.toml"
    path.write_text(STUDY.format(parameter=parameter, values=values))
    return Evaluator(load_study(path), None)


@pytest.mark.slow
def test_simulation_confirms_the_folds_whatever_came_before(tmp_path: Path) -> None:
    dampings = [1.5e5, 1.8e5]
    made = evaluator(tmp_path, "secondary_yaw.damping", "1.5e5, 1.8e5")
    found = {}
    for damping in dampings:
        model = made.binder([damping])
        numbers = made.quantity(model, 0).numbers
        assert numbers["method"] == "fold"
        assert numbers["searched"] == 0
        found[damping] = speed = numbers["nonlinear_mps"]
        fold = made.quantity._warm(model).cycles[-1]
        case = damped(model, made.quantity.search)
        above, below = (run_motion(case.bind(["speed_mps"])([speed + d]), fold.start, 8.0) for d in (0.5, -0.5))
        assert above.amplitude_m.max() > 0.95 * numbers["nonlinear_amplitude_m"]
        assert below.amplitude_m.max() < 0.8 * numbers["nonlinear_amplitude_m"]
    assert found[1.5e5] < found[1.8e5]
    again = evaluator(tmp_path, "secondary_yaw.damping", "1.5e5, 1.8e5")
    for damping in reversed(dampings):
        assert again.quantity(again.binder([damping]), 0).numbers["nonlinear_mps"] == found[damping]


# a soft vehicle in a curve: at the slowest beginning its hunting is dying already, and a search from scratch meets
# another motion, a fifth as large, that dies at 91 m/s
SOFT = {
    "primary_longitudinal.stiffness": 3.741e6,
    "primary_lateral.stiffness": 1.869e6,
    "primary_vertical.stiffness": 3.592e6,
    "secondary_lateral.stiffness": 2.003e5,
    "secondary_lateral.damping": 3.005e4,
    "secondary_vertical.stiffness": 3.106e5,
    "secondary_vertical.damping": 1.865e4,
    "secondary_yaw.stiffness": 9.563e5,
    "secondary_yaw.damping": 1.813e5,
    "primary_vertical.upper_y_m": 0.5679,
    "secondary_yaw.upper_y_m": 1.503,
    "secondary_vertical.upper_y_m": 0.6913,
    "primary_longitudinal.upper_y_m": 0.6788,
}


@pytest.mark.slow
def test_a_faster_beginning_comes_before_a_search(tmp_path: Path) -> None:
    axes = "".join(
        f'[[axis]]\nparameter = "{name}"\nname = "a{i}"\nvalues = [{value}]\n'
        for i, (name, value) in enumerate(SOFT.items())
    )
    text = STUDY[: STUDY.index("[[axis]]")].replace("104.0", "140.0").replace("40.0", "20.0", 1)
    path = tmp_path / "soft.toml"
    path.write_text(text + "[track]\nradius_m = 10000.0\ncant_mm = 100.0\n" + axes)
    made = Evaluator(load_study(path), None)
    model = made.binder(list(SOFT.values()))
    numbers = made.quantity(model, 0).numbers
    assert numbers["method"] == "fold"
    assert numbers["searched"] == 0
    assert 75.0 < numbers["nonlinear_mps"] < 85.0
    fold = made.quantity._warm(model).cycles[-1]
    case = damped(model, made.quantity.search)
    above, below = (run_motion(case.bind(["speed_mps"])([fold.parameter + d]), fold.start, 8.0) for d in (1.0, -1.0))
    assert above.amplitude_m.max() > 0.95 * numbers["nonlinear_amplitude_m"]
    assert below.amplitude_m.max() < 0.8 * numbers["nonlinear_amplitude_m"]


def test_a_case_that_never_hunts_says_so(tmp_path: Path) -> None:
    path = tmp_path / "folds.toml"
    text = STUDY.format(parameter="contact.friction", values="0.1, 0.2").replace("104.0", "50.0")
    path.write_text(text.replace("[[axis]]", "step_mps = 10.0\ndwell_s = 2.0\n[[axis]]"))
    made = Evaluator(load_study(path), None)
    result = made.quantity(made.binder([0.1]), 0)
    assert result.status != 0
    assert "no hunting" in result.reason
    assert np.isnan(result.numbers["nonlinear_frequency_hz"])


def test_speed_is_no_axis(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="critical speed is what is looked for"):
        evaluator(tmp_path, "speed_mps", "50.0, 60.0")
