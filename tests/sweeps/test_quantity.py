"""Quantities: they join by one line, read a strict section of their own, and may return arrays with coordinates."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from sample_quantity import RAMP
from sample_study import SIMULATION, SPECTRUM, bits, computed, write_study

from railsweep.engine import assemble, write_contact_table
from railsweep.engine.errors import InputError
from railsweep.sweeps import load_study, make_plan, open_store
from railsweep.sweeps.export import export
from railsweep.sweeps.quantity import QUANTITIES, REFUSED, Dimension, Variable, quantity_class
from railsweep.sweeps.repair import examine
from railsweep.sweeps.session import evaluator_of
from railsweep.sweeps.store import own_dimensions


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the input file of the ramp, and the ramp registered."""
    monkeypatch.setitem(QUANTITIES, "ramp", "sample_quantity:Ramp")
    (tmp_path / "weights.txt").write_text("1 2\n")
    return tmp_path


def test_every_registered_quantity_can_be_imported() -> None:
    for name in QUANTITIES:
        assert callable(quantity_class(name))


def test_a_batch_is_its_cases_one_by_one(tmp_path: Path) -> None:
    """Among them cases that derail and, beside them, values that the model refuses."""
    study = load_study(write_study(tmp_path, SIMULATION))
    evaluator, plan = evaluator_of(study, tmp_path), make_plan(study, 1)
    values = [plan.values(plan.position(case)) for case in range(plan.cases)]
    seeds = [plan.seed(v) for v in values]
    alone = [evaluator(v, seed) for v, seed in zip(values, seeds, strict=True)]
    assert evaluator.batch_size > 1
    assert repr(evaluator.batch(values, seeds)) == repr(alone)
    refused = (values[0][0], values[0][1], -1.0, values[0][3])
    mixed = evaluator.batch([values[0], refused, values[1]], seeds[:3])
    assert [r.status for r in mixed] == [0, REFUSED, 0]
    assert mixed[0] == alone[0]


def test_arrays_of_a_quantity_carry_their_coordinate(folder: Path) -> None:
    store = computed(folder, RAMP)
    expected = np.multiply.outer([0.1, 0.2, 0.3, 0.4], np.outer([30.0, 20.0, 10.0], [1.0, 2.0]))
    with xarray.open_zarr(store.path) as dataset:
        assert dataset["product"].dims == ("friction", "ramp_speed", "weight")
        assert dataset.ramp_speed.attrs == {"units": "m/s", "long_name": "speed of the ramp"}
        assert np.array_equal(dataset["product"].values, expected)
        assert float(dataset["product"].sel(friction=0.2, ramp_speed=20.0)[1]) == expected[1, 1, 1]
        assert str(dataset.word.values[3]) == "friction 0.4"
    export(store, folder / "ramp.nc")
    with xarray.open_dataset(folder / "ramp.nc", engine="h5netcdf") as copy:
        assert np.array_equal(copy["product"].sel(ramp_speed=10.0).values, expected[:, 2])
    export(store, folder / "ramp.csv")
    with (folder / "ramp.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[2]["product[1,0]"]) == expected[2, 1, 0]
    assert rows[2]["word"] == "friction 0.3"
    assert not examine(open_store(store.path), mend=False)
    (store.path / "ramp_speed" / "c" / "0").unlink()
    assert examine(store, mend=False).coordinates == ["ramp_speed/c/0"]


def test_options_and_files_are_part_of_the_identity(folder: Path) -> None:
    study = load_study(write_study(folder, RAMP))
    assert study.options.speeds_mps == (30.0, 20.0, 10.0)
    store = computed(folder, RAMP)
    store.check_same(study)
    other = RAMP.replace("[30.0, 20.0, 10.0]", "[30.0, 20.0, 15.0]")
    with pytest.raises(InputError, match=r"ramp\.speeds_mps\[2\]: 10\.0 -> 15\.0"):
        store.check_same(load_study(write_study(folder, other)))
    one = make_plan(study, 1)
    two = make_plan(load_study(write_study(folder, other)), 1)
    assert one.identity((0.1,)) != two.identity((0.1,))
    (folder / "weights.txt").write_text("1 3\n")
    with pytest.raises(InputError, match=r"files\.weights\.txt"):
        store.check_same(load_study(write_study(folder, RAMP)))
    # The store keeps its own copy: it opens and goes on without the original.
    (folder / "weights.txt").unlink()
    assert open_store(store.path).study.digest == study.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[ramp]", "[ramp]\nspede = 1.0", "ramp.spede"),
        ('"weights.txt"', '"../weights.txt"', "inside the folder"),
        ('"weights.txt"', '"absent.txt"', "absent.txt"),
        ("[ramp]", "[spectrum]\nx = 1\n[ramp]", "spectrum"),
    ],
)
def test_the_section_of_a_quantity_is_strict(old: str, new: str, message: str, folder: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_study(write_study(folder, RAMP.replace(old, new)))


def test_a_quantity_may_refuse_an_axis(folder: Path) -> None:
    text = RAMP.replace('parameter = "contact.friction"', 'parameter = "speed_mps"')
    with pytest.raises(InputError, match="axis friction: varies speed_mps"):
        evaluator_of(load_study(write_study(folder, text)), folder)


def test_a_quantity_without_options_refuses_a_section(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no options"):
        load_study(write_study(tmp_path, SPECTRUM.replace("[observe]", "[spectrum]\nmodes = 3\n[observe]")))


def test_undeclared_numbers_are_an_error_of_the_case(folder: Path) -> None:
    store = computed(folder, RAMP.replace("[ramp]", "[ramp]\nmisspell = true"))
    assert "prodct" in str(store.read(0)["reason"][0])
    assert np.isnan(store.read(0)["product"]).all()


def test_a_dimension_has_one_meaning() -> None:
    one = Dimension(name="speed", length=2, values=(1.0, 2.0))
    with pytest.raises(InputError, match="dimension speed: has 2 values"):
        replace(one, length=3)
    first = Variable(name="a", unit="1", title="", dimensions=(one,))
    with pytest.raises(InputError, match="two ways"):
        own_dimensions((first, replace(first, name="b", dimensions=(replace(one, values=(1.0, 3.0)),))))


def test_contact_from_profiles_and_its_gauge_as_an_axis(tmp_path: Path) -> None:
    profiles = "s1002/uic60@1:40,gauge=1438,step_mm=0.1"
    text = SPECTRUM.replace("[observe]", f'[contact]\nprofiles = "{profiles}"\n[observe]')
    text = text.replace('parameter = "secondary_yaw.damping"', 'parameter = "contact.gauge_mm"')
    text = text.replace("values = [1.0e5, 1.7e5]", "values = [1435.0, 1438.0]").replace("yaw_damping", "gauge_mm")
    store = computed(tmp_path, text)
    with store.dataset() as dataset:
        assert dataset.gauge_mm.attrs["units"] == "mm"
        found = dataset.eigenvalue_real.sel(gauge_mm=1438.0, speed_mps=90.0).values
    model = assemble("cooperrider", contact=profiles, speed_mps=90.0)
    values = np.linalg.eigvals(model.jacobian(0.0, model.equilibrium()))
    assert np.array_equal(found, np.sort(values[values.imag >= 0.0].real)[::-1][:5])
    assert store.study.document["contact"] == {"profiles": profiles}
    # The same table from a file, in the format that `railsweep contact build` writes.
    (tmp_path / "table").mkdir()
    write_contact_table(model.contact, tmp_path / "table" / "wear.npz")
    fixed = SPECTRUM.replace("[observe]", '[contact]\ntable = "wear.npz"\n[observe]')
    fixed = fixed.replace('parameter = "secondary_yaw.damping"', 'parameter = "contact.friction"')
    fixed = fixed.replace("values = [1.0e5, 1.7e5]", f"values = [{model.parameters['contact.friction']!r}]")
    with computed(tmp_path / "table", fixed).dataset() as dataset:
        assert np.array_equal(dataset.eigenvalue_real.sel(speed_mps=90.0).values[0], found)
    (tmp_path / "again").mkdir()
    assert bits(computed(tmp_path / "again", text, block_cases="5").path) == bits(store.path)
    for wrong, message in (
        ("[1435.0, 14.0]", "axis gauge_mm: is 14.0"),
        ("[1435.0, 1e9]", "a number from 300 to 3000"),
    ):
        with pytest.raises(InputError, match=message):
            evaluator_of(load_study(write_study(tmp_path, text.replace("[1435.0, 1438.0]", wrong))), tmp_path)
    for wrong, message in (
        ("s1002/uic60", "not a contact specification"),
        ("wheel.prw/uic60@1:40", "names the file 'wheel.prw'"),
        ("s1002/uic60@1:40,gage=1", "did you mean 'gauge'"),
    ):
        with pytest.raises(InputError, match=message):
            load_study(write_study(tmp_path, text.replace(profiles, wrong)))
    both = text.replace("profiles =", 'table = "x.dat"\nprofiles =')
    with pytest.raises(InputError, match="one of the two"):
        load_study(write_study(tmp_path, both))
