"""The store: readable by strangers, exact, refuses what does not fit, mends exactly what is damaged."""

import csv
import json
import math
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import h5py
import jsonschema
import numpy as np
import pytest
import xarray
from sample_study import SPECTRUM, bits, computed, ledger, write_study

from railsweep.cluster.serial import SerialExecutor
from railsweep.engine import assemble
from railsweep.engine.errors import InputError
from railsweep.sweeps import StudyStore, load_study, open_store, provenance, run_session
from railsweep.sweeps import lock as locking
from railsweep.sweeps.export import export
from railsweep.sweeps.ledger import write_durably
from railsweep.sweeps.lock import Holder, StoreLock, read_holder
from railsweep.sweeps.repair import examine, repair

STRANGER = """
import sys, xarray
dataset = xarray.open_zarr(sys.argv[1])
assert dataset.sizes == {"radius_m": 3, "load": 2, "speed_mps": 5}, dataset.sizes
assert dataset.radius_m.attrs["units"] == "m" and dataset.speed_mps.attrs["units"] == "m/s"
assert set(dataset.coords) == {"radius_m", "cant_mm", "friction", "speed_mps"}, set(dataset.coords)
assert dataset.wheelset_ll_y_amplitude.attrs["units"] == "m"
assert float(dataset.wheelset_ll_y_amplitude.sel(radius_m=5000.0).max()) > 0.0
assert dataset.status.attrs["flag_meanings"].split()[2] == "derailed"
assert "contact table" in str(dataset.reason.sel(radius_m=300.0).values[0, 0])
assert not [name for name in sys.modules if name.startswith("railsweep")]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> StudyStore:
    """A finished store; tests copy it before they hurt it."""
    return computed(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def store(finished: StudyStore, tmp_path: Path) -> StudyStore:
    """A copy to hurt."""
    shutil.copytree(finished.path, tmp_path / "copy.zarr")
    return open_store(tmp_path / "copy.zarr")


def test_a_stranger_opens_it_with_xarray_alone(finished: StudyStore) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", STRANGER, finished.path], check=True, timeout=120)


def test_failed_cases_are_results_with_a_reason(finished: StudyStore) -> None:
    with finished.dataset() as dataset:
        derailed = dataset.status.sel(radius_m=300.0)
        assert (derailed == 2).all()
        assert np.isnan(dataset.y_over_q_max.sel(radius_m=300.0)).all()
        assert (dataset.status.sel(radius_m=[math.inf, 5000.0]) == 0).all()


def test_a_spectrum_study_holds_the_eigenvalues_of_the_engine(tmp_path: Path) -> None:
    store = computed(tmp_path, SPECTRUM)
    with store.dataset() as dataset:
        point = dataset.sel(yaw_damping=1.7e5, speed_mps=90.0).load()
    model = assemble("cooperrider", speed_mps=20.0).bind(["secondary_yaw.damping", "speed_mps"])([1.7e5, 90.0])
    values = np.linalg.eigvals(model.jacobian(0.0, model.equilibrium()))
    upper = np.sort(values[values.imag >= 0.0].real)[::-1]
    assert np.array_equal(point.eigenvalue_real.values, upper[:5])
    assert dataset.sizes["mode"] == 5
    assert 0.0 < float(point.damping_ratio) < 1.0


def test_block_size_does_not_change_a_bit(finished: StudyStore, tmp_path: Path) -> None:
    for size in ("1", "7"):
        folder = tmp_path / size
        folder.mkdir()
        assert bits(computed(folder, block_cases=size).path) == bits(finished.path)


def test_provenance_fits_the_shipped_schema_and_a_damaged_one_does_not(store: StudyStore) -> None:
    record = provenance.read(store.provenance_file)
    jsonschema.Draft202012Validator.check_schema(provenance.schema())
    assert record["digest"] == store.study.digest
    assert record["sessions"][-1]["outcome"] == "finished"
    assert record["sessions"][-1]["counters"]["cases"] == 30
    for key, value in (("digest", "x"), ("sessions", [{}]), ("surprise", 1)):
        with pytest.raises(InputError, match=r"provenance\.schema\.json"):
            provenance.validate({**record, key: value}, "record")


def test_exports_read_back_to_the_same_numbers(finished: StudyStore, tmp_path: Path) -> None:
    for name in ("copy.nc", "copy.h5", "copy.csv"):
        export(finished, tmp_path / name)
    with finished.dataset() as dataset:
        original = dataset.load()
    with xarray.open_dataset(tmp_path / "copy.nc", engine="h5netcdf", mask_and_scale=False) as dataset:
        copy = dataset.load()
    assert copy.sizes == original.sizes
    for name, variable in original.variables.items():
        assert copy[name].dims == variable.dims
        if variable.dtype.kind in "OTU":
            assert copy[name].values.tolist() == variable.values.tolist()
        else:
            assert copy[name].values.tobytes() == variable.values.tobytes()
            assert copy[name].attrs["units"] == variable.attrs["units"]
    with h5py.File(tmp_path / "copy.h5") as file:
        assert np.array_equal(file["y_over_q_max"][...], original.y_over_q_max.values, equal_nan=True)
        assert json.loads(file.attrs["study_json"])["name"] == "sample"
    with (tmp_path / "copy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    for row in rows:
        case = original.isel(load=[0.2, 0.3].index(float(row["friction"]))).sel(
            radius_m=float(row["radius_m"]), speed_mps=float(row["speed_mps"])
        )
        assert float(row["cant_mm"]) == float(case.cant_mm)
        for name in ("wheelset_ll_y_amplitude", "y_over_q_max", "t_end_s"):
            assert np.array_equal(float(row[name]), float(case[name]), equal_nan=True)
        assert row["status"] == ("derailed" if row["radius_m"] == "300.0" else "ok")
        assert row["reason"] == str(case.reason.values)
    with pytest.raises(InputError, match=r"\.csv"):
        export(finished, tmp_path / "copy.pickle")


def test_changed_inputs_are_refused_with_the_difference(finished: StudyStore, tmp_path: Path) -> None:
    for changed, message in (
        ({"seed": "8"}, "seed: 7 -> 8"),
        ({"duration_s": "0.2"}, "solver.duration_s: 0.1 -> 0.2"),
        ({"friction": "0.25"}, r"model.friction: '\(absent\)' -> 0.25"),
        ({"values": "[9.0, 8.0]"}, r"axis\[0\].values"),
    ):
        with pytest.raises(InputError, match=message):
            finished.check_same(load_study(write_study(tmp_path, **changed)))
    (tmp_path / "wagon.toml").write_bytes(finished.study.vehicle.replace(b"mass_kg = ", b"mass_kg = 1", 1))
    text = write_study(tmp_path).read_text().replace('name = "cooperrider"', 'name = "wagon.toml"')
    with pytest.raises(InputError, match=r"vehicle\.body"):
        finished.check_same(load_study(write_study(tmp_path, text)))


def test_changed_code_is_refused_unless_accepted(store: StudyStore) -> None:
    record = json.loads(store.provenance_file.read_text())
    store.provenance_file.write_text(json.dumps({**record, "code": "0" * 64}))
    with pytest.raises(InputError, match="source digest"):
        store.check_same(store.study)
    store.check_same(store.study, accept_code=True)


def test_repair_leaves_a_whole_store_alone(store: StudyStore) -> None:
    before = {p: p.read_bytes() for p in store.path.rglob("*") if p.is_file()}
    assert not examine(store, mend=False)
    assert not repair(store)
    after = {p: p.read_bytes() for p in store.path.rglob("*") if p.is_file() and p.name != "repair.json"}
    assert after == before


def test_repair_finds_exactly_what_is_damaged_and_a_run_restores_it(store: StudyStore, finished: StudyStore) -> None:
    chunk = store.path / "rhs_calls" / "c" / "0" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:7])  # torn
    (store.path / "status" / "c" / "1" / "0" / "0").unlink()  # gone
    shutil.copy(store.path / "t_end_s/c/0/1/0", store.path / "t_end_s/c/1/1/0")  # right form, wrong place: same values
    other = store.path / "wheelset_ll_y_amplitude" / "c"
    shutil.copy(other / "0/0/1", other / "1/1/1")  # whole, but of another block
    store.ledger.path(0).with_name("5.json").write_text('{"block": 5, "ca')  # torn entry
    (store.path / "status" / f"c.{'0' * 32}.partial").write_bytes(b"x")
    (store.path / "status" / "c" / "9").mkdir()
    (store.path / "status" / "c" / "9" / "0").write_bytes(b"alien")
    (store.path / "evil.pkl").write_bytes(b"\x80\x04")
    (store.path / "radius_m" / "zarr.json").write_text("{")
    (store.path / "speed_mps" / "c" / "0").write_bytes(b"")
    found = examine(store, mend=True)
    assert found.metadata == ["radius_m/zarr.json"]
    assert found.coordinates == ["speed_mps/c/0"]
    assert sorted(found.alien) == ["evil.pkl", "status/c/9/0"]
    assert len(found.partial) == 1
    assert found.ledger == [5]
    expected = {store.plan.block_of((0, 0, 0)), store.plan.block_of((1, 0, 0)), store.plan.block_of((1, 1, 4))}
    assert set(found.blocks) == expected - {5}
    kept = ledger(store.path)
    assert set(map(int, kept)) == set(range(store.plan.blocks)) - expected - {5}
    run_session(store, SerialExecutor())
    assert bits(store.path) == bits(finished.path)
    again = ledger(store.path)
    assert all(again[block] == text for block, text in kept.items())
    assert not examine(open_store(store.path), mend=False)


def test_a_store_that_is_none_is_refused(tmp_path: Path, store: StudyStore) -> None:
    with pytest.raises(InputError, match="not a railsweep store"):
        open_store(tmp_path)
    plan = store.own / "plan.json"
    facts = json.loads(plan.read_text())
    for wrong in (
        {"format": 99},
        {"block_shape": [3, 3, 3]},
        {"variables": [{"name": "../../x", "unit": "", "title": ""}]},
    ):
        plan.write_text(json.dumps({**facts, **wrong}))
        with pytest.raises(InputError, match=r"plan\.json"):
            open_store(store.path)
    plan.write_text(json.dumps(facts)[:40])
    with pytest.raises(InputError, match="cannot be read"):
        open_store(store.path)


def test_a_living_driver_keeps_others_out_and_a_dead_one_does_not(store: StudyStore) -> None:
    with StoreLock(store.own), pytest.raises(InputError, match="is being worked on by process"), StoreLock(store.own):
        pass
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    with StoreLock(store.own) as held:
        gone = replace(held.holder, pid=dead.pid, born="1")
    (store.own / "lock.json").write_text(json.dumps(asdict(gone)))
    with StoreLock(store.own) as held:
        assert read_holder(store.own / "lock.json") == held.holder
    assert not (store.own / "lock.json").exists()


def test_a_driver_on_another_host_is_watched_by_its_heartbeat(store: StudyStore) -> None:
    path = store.own / "lock.json"
    far = Holder(host="elsewhere", pid=1, born="1", token="t", beat=1, since="2026-01-01T00:00:00Z")
    path.write_text(json.dumps(asdict(far)))
    ended = threading.Event()

    def beat() -> None:
        count = 1
        while not ended.wait(0.1):
            count += 1
            write_durably(path, json.dumps(asdict(replace(far, beat=count))))

    thread = threading.Thread(target=beat)
    thread.start()
    with pytest.raises(InputError, match="on elsewhere"), StoreLock(store.own, stale_s=5.0):
        pass
    ended.set()
    thread.join()
    begin = time.monotonic()
    with StoreLock(store.own, stale_s=0.6) as held:
        assert time.monotonic() - begin >= 0.5
        assert read_holder(path) == held.holder


def test_a_driver_whose_lock_was_taken_notices(store: StudyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "BEAT_S", 0.05)
    lost = threading.Event()
    with StoreLock(store.own, on_loss=lost.set), StoreLock(store.own, force=True) as thief:
        assert lost.wait(60.0)
        assert read_holder(store.own / "lock.json") is not None
        assert read_holder(store.own / "lock.json").token == thief.holder.token  # type: ignore[union-attr]


def test_a_damaged_lock_file_blocks_nobody(store: StudyStore) -> None:
    (store.own / "lock.json").write_text("{")
    with StoreLock(store.own):
        pass


def test_study_copy_in_the_store_is_all_a_run_needs(finished: StudyStore) -> None:
    assert open_store(finished.path).study.digest == load_study(finished.path.parent / "study.toml").digest
