"""Study files: what is read, what is refused and how, and what decides the identity of a study."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_study import SIMULATION, SPECTRUM, command, write_study

from railsweep.engine.errors import InputError
from railsweep.sweeps import load_study
from railsweep.sweeps.session import evaluator_of
from railsweep.sweeps.study import Axis, canonical, difference, parse_study


def refused(text: str, tmp_path: Path) -> str:
    with pytest.raises(InputError) as info:
        parse_study(text.encode(), "study.toml", tmp_path)
    return str(info.value)


def test_the_sample_is_read(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path))
    assert study.cases == 3 * 2 * 5
    assert [a.name for a in study.axes] == ["radius_m", "cant_mm", "friction", "speed_mps"]


@pytest.mark.parametrize("name", ["radius-cant-speed.toml", "critical-speed-map.toml"])
def test_the_examples_are_valid(repository: Path, name: str) -> None:
    study = load_study(repository / "examples" / name)
    evaluator_of(study, repository / "examples")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('quantity = "simulation"', 'quantity = "simulations"', "did you mean 'simulation'"),
        ("[solver]", "[solver]\nrtoll = 1e-3", "did you mean 'rtol'"),
        ("duration_s = 0.1", "duration_s = -1.0", "solver.duration_s"),
        ("duration_s = 0.1", "duration_s = nan", "finite"),
        ('name = "cooperrider"', 'name = "cooperider"', "not in the library"),
        ("values = [inf, 5000.0, 300.0]", "values = [inf, 5000.0, 5000.0]", "repeats 5000.0"),
        ("values = [inf, 5000.0, 300.0]", "values = []", "a list of numbers"),
        ("values = [inf, 5000.0, 300.0]", "values = [nan]", "finite"),
        ("values = [0.0, 60.0]", "values = [0.0, 60.0, 90.0]", "zipped axes 'load' have [2, 3] values"),
        ("values = [0.2, 0.3]", "values = [0.2, inf]", "finite"),
        ('name = "cant_mm"', 'name = "status"', "'status' is used twice"),
        ('name = "cant_mm"', 'name = "radius_m"', "'radius_m' is used twice"),
        ('parameter = "contact.friction"', 'parameter = "track.cant_mm"', "a parameter has two axes"),
        ("count = 5", "step = 0.0", "above 0"),
        ("count = 5", "step = 1e-300", "at most"),
        ("count = 5", "count = 2.5", "a whole number"),
        ("stop = 40.0", "stop = 20.0", "different from start"),
        ("seed = 7", "seed = -1", "a whole number"),
        ('kind = "serial"', 'kind = "serail"', "did you mean 'serial'"),
        ('kind = "serial"', 'kind = "dask"\naddress = "file:///etc/passwd"', "tcp://host:port"),
        ("block_cases = 4", "block_cases = 4\npickle = true", "not a key"),
    ],
)
def test_refused_with_the_place_and_what_is_allowed(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in SIMULATION
    assert message in refused(SIMULATION.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../b", "a b", "$(x)", "`x`", "a;b", "a\\nb", "-rf", ".x", "a|b", ""]
)
def test_names_and_paths_stay_inside_and_are_plain_words(name: str, tmp_path: Path) -> None:
    for old, new in (
        ('name = "sample"', f'name = "{name}"'),
        ('name = "cooperrider"', f'name = "{name}.toml"' if name else 'name = ""'),
        ("[solver]", f'[contact]\ntable = "{name}"\n[solver]'),
        ("[solver]", f'[track]\nirregularity = "{name}.csv"\n[solver]'),
        ("block_cases = 4", f'store = "{name}.zarr"' if name else 'store = ".zarr"'),
        ('name = "cant_mm"', f'name = "{name}"'),
    ):
        assert old in SIMULATION
        refused(SIMULATION.replace(old, new), tmp_path)


def test_a_grid_of_a_million_million_cases_is_refused_with_the_count(tmp_path: Path) -> None:
    text = SIMULATION.replace("count = 5", "count = 1000000000000").replace(
        "values = [inf, 5000.0, 300.0]", "values = [inf]"
    )
    text = text.replace("values = [0.0, 60.0]", "values = [0.0]").replace("values = [0.2, 0.3]", "values = [0.2]")
    assert "makes 1000000000000 cases" in refused(text, tmp_path)
    done = command("run", write_study(tmp_path, text))
    assert done.returncode == 2
    assert "makes 1000000000000 cases" in done.stderr
    assert not list(tmp_path.glob("*.zarr"))


def test_values_that_no_model_takes_are_refused_before_anything_runs(tmp_path: Path) -> None:
    for old, new, message in (
        ("values = [0.0, 60.0]", "values = [0.0, 6000.0]", "axis cant_mm"),
        ("start = 20.0", "start = -20.0", "axis speed_mps"),
        ('parameter = "contact.friction"', 'parameter = "contact.frictoin"', "contact.friction"),
        ('channels = ["wheelset_ll.y"]', 'channels = ["wheelset_ll.yy"]', "wheelset_ll.y"),
    ):
        study = load_study(write_study(tmp_path, SIMULATION.replace(old, new)))
        with pytest.raises(InputError, match=message):
            evaluator_of(study, tmp_path)


def test_identity_is_of_content_not_of_place(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path))
    moved = load_study(write_study(tmp_path, block_cases="1", kind='"threads"'))
    other = load_study(write_study(tmp_path, duration_s="0.2"))
    assert study.digest == moved.digest
    assert study.digest != other.digest
    assert list(difference(study.document, other.document)) == ["solver.duration_s: 0.1 -> 0.2"]


def test_a_range_has_decimal_members() -> None:
    axis = Axis(parameter="p", name="p", start=0.1, stop=0.5, count=5)
    assert [axis.value(i) for i in range(5)] == [0.1, 0.2, 0.3, 0.4, 0.5]


@given(st.dictionaries(st.text(), st.floats(allow_nan=False) | st.integers() | st.text(), max_size=6))
def test_canonical_text_does_not_depend_on_the_order_of_keys(data: dict[str, object]) -> None:
    assert canonical(data) == canonical(dict(reversed(data.items())))


def test_spectrum_study_is_read(tmp_path: Path) -> None:
    assert load_study(write_study(tmp_path, SPECTRUM)).quantity == "spectrum"
