"""Pictures of stores: which slice is taken, what is said about it, and that failed cases are never drawn as numbers."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "sweeps"))

from sample_quantity import RAMP
from sample_study import SPECTRUM, computed

from railsweep.app.cli import main
from railsweep.app.store_plot import choose, draw, edges
from railsweep.sweeps import StudyStore
from railsweep.sweeps.quantity import QUANTITIES

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StudyStore:
    """Radius x load (cant and friction zipped) x speed; radius 300 m derails."""
    return computed(tmp_path_factory.mktemp("plot"))


def test_the_last_two_axes_are_shown_and_the_others_named(store: StudyStore) -> None:
    part = choose(store, "y_over_q_max", {})
    assert [a.name for a in part.axes] == ["cant_mm", "speed_mps"]
    assert part.axes[0].label == "cant_mm [mm] with friction"
    assert part.axes[1].label == "speed_mps [m/s]"
    assert part.at == {"radius_m": float("inf")}
    assert part.numbers.shape == (2, 5)
    part = choose(store, "y_over_q_max", {"friction": 0.3})
    assert [a.name for a in part.axes] == ["radius_m", "speed_mps"]
    assert part.at == {"cant_mm": 60.0, "friction": 0.3}
    assert not part.axes[0].even
    with store.dataset() as dataset:
        expected = dataset.y_over_q_max.isel(load=1).values
    assert np.array_equal(part.numbers, expected, equal_nan=True)
    assert part.failed.sum() == 5
    assert part.failed[2].all()
    straight, last = choose(store, "t_end_s", {"radius_m": np.inf}), choose(store, "t_end_s", {"radius_m": 300.0})
    assert np.isfinite(straight.numbers).all()
    assert last.failed.all()


def test_failed_cases_are_not_drawn_as_numbers_even_in_integers(store: StudyStore) -> None:
    part = choose(store, "rhs_calls", {"cant_mm": 0.0, "speed_mps": 20.0})
    assert part.numbers.shape == (3,)
    assert np.isnan(part.numbers[2])
    assert np.isfinite(part.numbers[:2]).all()


def test_every_kind_of_picture_is_written(store: StudyStore, tmp_path: Path) -> None:
    for i, (variable, at) in enumerate(
        (
            ("y_over_q_max", {}),
            ("y_over_q_max", {"cant_mm": 0.0}),
            ("wheelset_ll_y_amplitude", {"cant_mm": 0.0, "radius_m": 300.0}),
            ("wheelset_ll_y_amplitude", {"cant_mm": 0.0, "speed_mps": 30.0}),
            ("status", {"cant_mm": 0.0}),
            ("status", {"cant_mm": 0.0, "speed_mps": 20.0}),
        )
    ):
        draw(tmp_path / f"{i}.png", choose(store, variable, at))
        assert (tmp_path / f"{i}.png").read_bytes().startswith(PNG)


def test_a_signed_map_and_a_coordinate_of_a_quantity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = computed(tmp_path, SPECTRUM.replace("[1.0e5, 1.7e5]", "[1.0e4, 1.0e5, 1.7e5]"))
    part = choose(modes, "damping_ratio", {})
    assert part.least is not None
    assert part.largest is not None
    assert part.least < 0.0 < part.largest
    draw(tmp_path / "signed.svg", part)
    one = choose(modes, "eigenvalue_real", {"yaw_damping": 1.0e5, "speed_mps": 60.0})
    assert [a.name for a in one.axes] == ["mode"]
    assert choose(modes, "eigenvalue_real", {"mode": 3.0}).at == {"mode": 3.0}
    monkeypatch.setitem(QUANTITIES, "ramp", "sample_quantity:Ramp")
    (tmp_path / "weights.txt").write_text("1 2\n")
    ramp = choose(computed(tmp_path, RAMP), "product", {"weight": 1.0})
    assert [a.name for a in ramp.axes] == ["friction", "ramp_speed"]
    assert ramp.axes[1].label == "ramp_speed [m/s]"
    assert ramp.numbers[2].tolist() == [0.3 * 30.0 * 2.0, 0.3 * 20.0 * 2.0, 0.3 * 10.0 * 2.0]
    draw(tmp_path / "ramp.png", ramp)


def test_the_command_says_what_it_drew(
    store: StudyStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "picture.png"
    words = ["plot", str(store.path), "--at", "cant_mm=60", "--at", "radius_m=inf", "--out", str(out), "--json"]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["axes"] == ["speed_mps"]
    assert facts["at"] == {"radius_m": "inf", "cant_mm": 60.0, "friction": 0.3}
    assert facts["variable"] == "wheelset_ll_y_amplitude"
    assert (facts["cases"], facts["failed"]) == (5, 0)
    assert facts["least"] <= facts["largest"]
    assert out.read_bytes().startswith(PNG)
    monkeypatch.chdir(tmp_path)
    assert main(["plot", str(store.path)]) == 0
    assert (tmp_path / "sample.png").is_file()
    assert "at radius_m = inf" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--variable", "y_over_q"], "did you mean 'y_over_q_max'"),
        (["--variable", "reason"], "--variable"),
        (["--at", "cant=60"], "did you mean 'cant_mm'"),
        (["--at", "cant_mm=61"], "61 is not one of its values (allowed: 0, 60)"),
        (["--at", "cant_mm=60", "--at", "friction=0.3"], "one dimension twice"),
        (["--at", "cant_mm"], "AXIS=VALUE"),
        (["--at", "cant_mm=x"], "not a number"),
        (["--at", "cant_mm=60", "--at", "radius_m=inf", "--at", "speed_mps=20"], "one number"),
        (["--out", "picture.doc"], "unknown picture format"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    words: list[str], message: str, store: StudyStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(store.path), *words]) == 2
    assert message in capsys.readouterr().err


def test_cells_lie_around_their_points() -> None:
    assert edges(np.array([1.0, 2.0, 4.0])).tolist() == [0.5, 1.5, 3.0, 5.0]
    assert edges(np.array([3.0])).tolist() == [2.5, 3.5]
