"""The command line: light to start, exact about what it refuses, and quiet about how."""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from importlib.metadata import version
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railsweep.app import cli, option, stability_command, vehicles_command
from railsweep.engine.errors import InputError

HEAVY = {"numpy", "numba", "llvmlite", "scipy", "matplotlib", "rich"}

REPORT_MODULES = """
import sys
from railsweep.app.cli import main
code = main(sys.argv[1:])
print("MODULES", code, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run `argv`, check that it is refused in one line without a traceback, and return that line."""
    assert cli.main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def request(*argv: str) -> stability_command.StabilityRequest:
    parser = ArgumentParser()
    stability_command.add_arguments(parser)
    return stability_command.request_from(parser.parse_args(["--vehicle", "v", *cli.join_negative_values(argv)]))


@pytest.mark.parametrize(
    "argv", [["--help"], ["--version"], ["stability", "--help"], ["vehicles", "--help"], ["vehicles"]]
)
def test_introductions_load_nothing_heavy(argv: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", REPORT_MODULES, *argv], check=True, capture_output=True, text=True)
    _, code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0"
    assert not HEAVY & set(modules)


def test_help_imports_no_verb() -> None:
    code = "import sys; from railsweep.app import cli; cli.main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not [name for name in done.stdout.splitlines()[-1].split() if name.endswith("_command")]


def test_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"railsweep {version('railsweep')}\n"


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for verb, (_, summary) in cli.VERBS.items():
        assert f"{verb} " in shown
        assert summary in shown


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    assert f"usage: railsweep {verb}" in capsys.readouterr().out


def test_no_arguments_print_the_help_and_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage: railsweep" in capsys.readouterr().err


def test_an_unknown_verb_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'stability'?" in refused(capsys, "stabilty")
    assert "stability, " in refused(capsys, "qqqqqq")
    assert ", vehicles" in refused(capsys, "qqqqqq")


def test_an_unknown_option_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "stability", "--vehicle", "v", "--speed-mps", "20", "--cantmm", "110")
    assert "did you mean '--cant-mm'?" in line


def test_abbreviated_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--vehicle" in refused(capsys, "stability", "--veh", "v", "--speed-mps", "20")


@pytest.mark.parametrize(
    ("option_and_value", "mention"),
    [
        (("--speed-mps", "20:120"), "A:B:STEP"),
        (("--speed-mps", "20:120:0"), "step"),
        (("--speed-mps", "20:120:-5"), "step"),
        (("--speed-mps", "120:20:5"), "empty"),
        (("--speed-mps", "-5:10:1"), "'-5'"),
        (("--speed-mps", "-5"), "> 0"),
        (("--speed-mps", "0"), "> 0"),
        (("--speed-mps", "nan"), "not finite"),
        (("--speed-mps", "1:inf:1"), "not finite"),
        (("--speed-mps", "1e999"), "not finite"),
        (("--speed-mps", "1:100:1e-9"), "more than 100000"),
        (("--speed-mps", "20,10"), "ascending"),
        (("--speed-mps", "20,,30"), "not a number"),
        (("--speed-mps", ""), "not a number"),
        (("--speed-mps", "fast"), "'fast' is not a number"),
        (("--speed-mps", "20", "--radius-m", "0"), "straight"),
        (("--speed-mps", "20", "--radius-m", "inf"), "not finite"),
        (("--speed-mps", "20", "--cant-mm", "5000"), "--cant-mm"),
        (("--speed-mps", "20", "--friction", "-0.1"), "--friction"),
        (("--speed-mps", "20", "--formulation", "magic"), "dytsi"),
        (("--speed-mps", "20", "--precession", "on"), "printed"),
        (("--speed-mps", "20", "--plot", "picture.doc"), ".png"),
        (("--speed-mps", "20", "--plot", "no-such-folder/picture.png"), "no-such-folder"),
    ],
)
def test_refused_values_name_option_value_and_what_is_allowed(
    option_and_value: tuple[str, ...], mention: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, "stability", "--vehicle", "v", *option_and_value)
    assert option_and_value[-2] in line
    assert mention in line


def test_a_request_carries_the_numbers() -> None:
    made = request("--speed-mps", "20:30:5", "--radius-m", "-600", "--cant-mm", "-110", "--friction", ".3")
    assert made.speeds_mps == (20.0, 25.0, 30.0)
    assert made.radius_m == -600.0
    assert made.cant_mm == -110.0
    assert made.friction == 0.3
    assert request("--speed-mps", "20", "--radius-m", "-1e3").radius_m == -1e3


def test_a_bare_request_is_straight_track() -> None:
    made = request("--speed-mps", "20")
    assert (made.radius_m, made.cant_mm) == (float("inf"), 0.0)
    assert made.formulation == "physics"
    assert made.contact_table is made.friction is made.precession is made.plot is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.1:0.5:0.1", (0.1, 0.2, 0.3, 0.4, 0.5)),
        ("20:29:5", (20.0, 25.0)),
        ("20:20:5", (20.0,)),
        ("1e1", (10.0,)),
        ("1,2.5,3", (1.0, 2.5, 3.0)),
    ],
)
def test_ranges_and_lists(text: str, values: tuple[float, ...]) -> None:
    assert option.numbers("--x", text) == values


def test_the_longest_range_has_exactly_the_limit() -> None:
    assert len(option.numbers("--x", f"1:{option.MOST_VALUES}:1")) == option.MOST_VALUES
    with pytest.raises(InputError):
        option.numbers("--x", f"0:{option.MOST_VALUES}:1")


@given(st.integers(1, 10**6), st.integers(0, 300), st.integers(1, 10**6), st.integers(0, 6))
def test_a_decimal_range_has_the_members_one_would_write(first: int, steps: int, step: int, places: int) -> None:
    def written(count: int) -> str:
        return f"{count}e-{places}"

    values = option.numbers("--x", f"{written(first)}:{written(first + steps * step)}:{written(step)}")
    assert values == tuple(float(written(first + i * step)) for i in range(steps + 1))


NUMBER_LIKE = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="0123456789.:,-+eE_ naif", max_size=30),
    st.lists(st.floats().map(repr) | st.integers().map(str), min_size=1, max_size=4).map(":".join),
)


@given(NUMBER_LIKE)
def test_any_text_gives_valid_speeds_or_an_input_error(text: str) -> None:
    try:
        values = option.numbers("--speed-mps", text, above=0.0, at_most=1000.0)
    except InputError:
        return
    assert 1 <= len(values) <= option.MOST_VALUES
    assert all(0.0 < value <= 1000.0 for value in values)
    assert all(left < right for left, right in pairwise(values))


def test_vehicles_lists_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["vehicles", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["vehicles"]
    assert listed == vehicles_command.library_vehicles()
    names = [vehicle["name"] for vehicle in listed]
    assert names == sorted(names)
    assert "cooperrider" in names
    assert all(vehicle["title"] for vehicle in listed)


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    command = SimpleNamespace(add_arguments=lambda parser: None, run=interrupted)
    monkeypatch.setattr(cli, "load_command", lambda verb: command)
    assert cli.main(["vehicles"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_not_an_error_message(unbuffered: str) -> None:
    code = "from railsweep.app.cli import *; sys.stdin.read(); sys.exit(main(['vehicles', '--json']))"
    writer = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert writer.stdout is not None
    writer.stdout.close()  # before the writer, which waits for the end of its stdin, prints anything
    writer.stdout = None
    _, complaints = writer.communicate(timeout=60)
    assert (writer.returncode, complaints) == (141, b"")
