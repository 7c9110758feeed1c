"""``railsweep simulate`` on rough track, and with an assessment."""

import json

import pytest

from railsweep.app import cli
from railsweep.engine import FIGURES

RUN = ["simulate", "--vehicle", "cooperrider", "--speed-mps", "30", "--rtol", "1e-4"]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert cli.main([*RUN, *words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_irregularity_and_figures_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(
        capsys, "--duration-s", "7", "--window-s", "6", "--irregularity", "erri-low,seed=5,length_m=300", "--assess"
    )
    facts = found["irregularity"]
    assert isinstance(facts, dict)
    assert (facts["spectrum"], facts["seed"]) == ("erri-low", 5)
    figures = found["figures"]
    assert isinstance(figures, dict)
    assert set(figures) == set(FIGURES)
    assert figures["floor_z_rms_mps2"] > 0.0
    statistics = found["statistics"]
    assert isinstance(statistics, dict)
    assert set(statistics) == {f"wheelset_{a}{b}.y" for a in "lt" for b in "lt"}


def test_no_irregularity_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--duration-s", "0.1")
    assert found["irregularity"] is None
    assert found["figures"] == {}


def test_table_of_figures(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--duration-s", "7", "--window-s", "6", "--irregularity", "erri-low,length_m=300", "--assess"]
    assert cli.main([*RUN, *words]) == 0
    text = capsys.readouterr().out
    assert "n_mv" in text
    assert "erri-low" in text


@pytest.mark.parametrize(
    ("track", "word"),
    [("erri-hig", "erri-high"), ("erri-high,sead=3", "seed"), ("a/b.csv", "a/b.csv"), ("a/b.toml", "a/b.toml")],
)
def test_bad_track_is_refused_by_name(track: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*RUN, "--duration-s", "1", "--irregularity", track]) == 2
    assert word in capsys.readouterr().err


def test_profiles_stand_for_a_contact_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--duration-s", "0.1", "--contact-table", "s1002/uic60@1:40")
    assert str(found["contact"]).startswith("s1002/uic60@1:40")
