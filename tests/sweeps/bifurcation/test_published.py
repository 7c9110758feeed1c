"""The table of published critical speeds: its verdicts, and the rows themselves with the published contact table."""

import json

import pytest

from railsweep.app import cli
from railsweep.engine import InputError, load_contact_table
from railsweep.sweeps.bifurcation import published
from railsweep.sweeps.bifurcation.published import IDS, number_row, published_rows, sorted_rows, word_row

LINEAR = ("V1", "V12", "V13")


@pytest.fixture(scope="module")
def table(published_table_path):
    return load_contact_table(published_table_path)


def test_a_number_passes_within_its_tolerance_only():
    assert number_row("V1", "", 110.0, 109.0).passed
    assert number_row("V1", "", 110.0, 111.0).passed
    assert not number_row("V1", "", 110.0, 111.01).passed
    assert not number_row("V1", "", 110.0, None).passed
    assert not number_row("V1", "", 110.0, 110.0, also=False).passed
    assert not number_row("V3", "", 5.859, 5.8, 0.05, "Hz").passed


def test_a_range_passes_from_end_to_end():
    row = number_row("V26", "", (20.0, 25.0), 22.0)
    assert row.passed
    assert row.to_dict()["published"] == [20.0, 25.0]
    assert not number_row("V26", "", (20.0, 25.0), 18.9).passed
    assert not number_row("V26", "", (20.0, 25.0), 26.1).passed


def test_words_pass_when_they_agree():
    assert word_row("V6", "", "decays", "decays").passed
    assert not word_row("V6", "", "decays", "derailed").passed


def test_every_row_that_can_be_reproduced_is_there():
    assert set(IDS) == {
        *(f"V{i}" for i in (1, 3, 4, 6, 12, 13, 15, 16, 17, 22, 24, 26)),
        *(f"T{mu:.2f}" for mu in (0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.21, 0.24, 0.27, 0.30)),
    }
    assert IDS[0] == "V1"
    assert IDS[-1] == "T0.30"


def test_an_unknown_row_is_refused():
    with pytest.raises(InputError, match="V2"):
        next(published_rows(None, ["V2"]))


def test_linear_rows(table):
    rows = sorted_rows(list(published_rows(table, LINEAR, workers=2)))
    assert [row.id for row in rows] == ["V1", "V12", "V13"]
    assert all(row.passed for row in rows)
    # the independent prototype of the specification, to its digits
    assert [row.ours for row in rows] == pytest.approx([109.6, 109.0, 110.2], abs=0.05)


def test_the_weakest_curve_oscillates_from_the_first_speed(table):
    (row,) = published.wide_curve(table, 1e-4, 1800.0)
    assert row.passed
    assert row.ours == published.CURVE_START_MPS
    assert row.note == "eigenvalues cross at 17.65 m/s"


def test_friction_rows_by_ramp(table):
    """The shortest down-branches: almost supercritical at 0.03, a derailment at 0.30."""
    dies = published.down(table, 1e-4, 0.03)[0]
    assert dies.passed
    derails = published.down(table, 1e-4, 0.30)[0]
    assert derails.passed
    assert derails.quantity.endswith("derails on the way down")


def test_command_prints_the_table_and_the_verdict(published_table_path, capsys, monkeypatch):
    arguments = ["published", "--contact-table", str(published_table_path), "--only", "V1,V12", "--workers", "1"]
    assert cli.main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["failed"] == 0
    assert [(row["id"], row["passed"]) for row in answer["rows"]] == [("V1", True), ("V12", True)]
    monkeypatch.setattr(published, "FIXED_CAR_LINEAR_MPS", 117.3)  # that of an earlier work with another profile
    assert cli.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "FAIL" in printed
    assert "1 of 2 rows agree" in printed


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--contact-table", "no-such-file.dat", "no such file"),
        ("--workers", "1.5", "whole number"),
        ("--workers", "0", "out of range"),
        ("--rtol", "1", "out of range"),
    ],
)
def test_command_refuses(tmp_path, capsys, option, value, message):
    file = tmp_path / "table.dat"
    file.write_text("")
    arguments = {"--contact-table": str(file), "--only": "V1", option: value}
    assert cli.main(["published", *(word for pair in arguments.items() for word in pair)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_all_rows(table):
    rows = list(published_rows(table, workers=2))
    assert {row.id for row in rows} == set(IDS)
    assert not [(row.id, row.quantity, row.ours) for row in rows if not row.passed]
