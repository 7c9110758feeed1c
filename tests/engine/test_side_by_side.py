"""Wheelsets and links of one vehicle side by side in lanes: the same vehicle as with every one of them alone."""

import numpy as np
import pytest
from sample_vehicle import LIBRARY, disturbed, every_link, random_vehicle_text, read

from railsweep.engine import Model, Track, assemble
from railsweep.engine.lanes import lane_group, record_of
from railsweep.engine.packing import teams_of
from railsweep.kernels import record as slot
from railsweep.kernels.lane import LANES
from railsweep.kernels.record import VehicleArrays
from railsweep.kernels.status import Status
from railsweep.kernels.vehicle import vehicle_rhs
from railsweep.kernels.vehicle_lanes import vehicle_lanes_rhs

MULTI_POINT = "s1002/uic60@1:40,gauge=1432,patch=multi"
TRANSITION = Track(radius_m=600.0, cant_mm=100.0, transition_m=40.0, transition="bloss")


def row_of_axles(axles: int) -> str:
    """A frame on any number of wheelsets."""
    lines = ['name = "row"', "[[body]]", 'name = "frame"', "mass_kg = 9000.0", "position_m = [0.0, 0.0, 1.2]"]
    lines += [f"inertia_{a}_kgm2 = {v}" for a, v in (("roll", 6e3), ("pitch", 5e4), ("yaw", 5e4))]
    for i in range(axles):
        lines += ["[[wheelset]]", f'name = "axle{i}"', 'parent = "frame"', "mass_kg = 1200.0"]
        lines += [f"offset_m = [{1.5 * (i - 0.5 * (axles - 1))}, 0.0, -0.775]"]
        lines += ["inertia_roll_kgm2 = 700.0", "inertia_pitch_kgm2 = 90.0", "inertia_yaw_kgm2 = 710.0"]
        lines += ["rolling_radius_m = 0.425", "half_spacing_m = 0.75"]
        for j, side in enumerate((1.0, -1.0)):
            for n, end in enumerate((-0.5, 0.5)):
                x = 1.5 * (i - 0.5 * (axles - 1)) + end
                lines += ["[[link]]", f'name = "coil{i}_{j}{n}"', 'type = "flexicoil"']
                lines += [f'lower = {{ body = "axle{i}", point_m = [{end}, {side}, 0.1] }}']
                lines += [f'upper = {{ body = "frame", point_m = [{x}, {side}, -0.2] }}']
                lines += ["stiffness_npm = 6e5", "damping_nspm = 4e3", "shear_stiffness_npm = 9e5"]
    return "\n".join(lines)


def alone(arrays: VehicleArrays) -> VehicleArrays:
    """The same vehicle with every lane of a bundle and every wheelset of a team on its own."""
    bundle, bundle_link = [], []
    for used, first, count in arrays.bundle:
        for i in range(used):
            bundle.append((1, len(bundle_link), count))
            bundle_link += [[k] * LANES for k in arrays.bundle_link[first : first + count, i]]
    team = [[w] * LANES + [1] for row in arrays.team for w in row[: row[LANES]]]
    return arrays._replace(
        bundle=np.array(bundle, np.int64).reshape(-1, slot.BUNDLE_WIDTH),
        bundle_link=np.array(bundle_link, np.int64).reshape(-1, LANES),
        team=np.array(team, np.int64).reshape(-1, LANES + 1),
    )


def rates(arrays: VehicleArrays, t: float, y: np.ndarray) -> tuple[np.ndarray, int]:
    out = np.zeros(y.size)
    return out, vehicle_rhs(t, y, arrays, out)


def rates_among_cases(arrays: VehicleArrays, t: float, y: np.ndarray) -> tuple[np.ndarray, int]:
    """The same from lanes of cases, where wheelsets and links run one by one."""
    record, group = lane_group(arrays)
    record[:] = record_of(arrays)[:, None]
    state = np.repeat(np.append(y, t), LANES)
    out = np.zeros_like(state)
    vehicle_lanes_rhs(0.0, state, group, out)
    return out[:-LANES:LANES], int(out[-LANES])


def assert_same(arrays: VehicleArrays, t: float, y: np.ndarray) -> np.ndarray:
    found, status = rates(arrays, t, y)
    for other, other_status in (rates(alone(arrays), t, y), rates_among_cases(arrays, t, y)):
        assert status == other_status
        if status == Status.OK:
            assert np.array_equal(found, other)
    return found


@pytest.mark.parametrize("vehicle", [*LIBRARY, "every link", *range(8)])
def test_every_link_and_wheelset_has_one_lane(vehicle: str | int) -> None:
    described = read(random_vehicle_text(vehicle)) if isinstance(vehicle, int) else vehicle
    layout = assemble(every_link() if vehicle == "every link" else described, speed_mps=30.0).layout
    links = []
    for used, first, count in layout.bundle:
        rows = layout.bundle_link[first : first + count]
        assert 1 <= used <= LANES
        assert (rows[:, used:] == rows[:, [used - 1]]).all()
        links += rows[:, :used].ravel().tolist()
        ends = layout.link_index[rows][:, :, [slot.LINK_LOWER, slot.LINK_UPPER]]
        assert (ends == ends[:1]).all()
        for row in layout.link_index[rows]:
            assert len({tuple(kind) for kind in row[:, [slot.LINK_KIND, slot.LINK_AXIS]]}) == 1
            for column, plain in (
                (slot.SPRING_LAW, slot.LINEAR_LAW),
                (slot.DAMPER_LAW, slot.LINEAR_LAW),
                (slot.INTERNAL_KIND, slot.INTERNAL_NONE),
            ):
                assert len(set(row[:, column] == plain)) == 1
    assert sorted(links) == list(range(len(layout.link_index)))
    wheelsets = [w for row in layout.team for w in row[: row[LANES]]]
    assert sorted(wheelsets) == list(range(len(layout.wheelset_index)))


def test_the_wagon_fills_its_lanes() -> None:
    layout = assemble("cooperrider", speed_mps=30.0).layout
    assert layout.team.tolist() == [[0, 1, 2, 3, 4]]
    assert sorted(layout.bundle[:, [slot.BUNDLE_LANES, slot.BUNDLE_LINKS]].tolist()) == [[4, 3], [4, 6]]


@pytest.mark.parametrize("axles", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"formulation": "dytsi"},
        {"track": TRANSITION},
        {"irregularity": "erri-high,seed=2,length_m=200"},
        {"creep_law": "polach"},
    ],
    ids=["physics", "dytsi", "transition", "rough", "polach"],
)
def test_any_number_of_wheelsets(axles: int, options: dict) -> None:
    model = assemble(read(row_of_axles(axles)), speed_mps=30.0, **options)
    rng = np.random.default_rng(axles)
    for size in (0.1, 1.0, 4.0):
        assert_same(model.arrays, rng.uniform(0.0, 3.0), disturbed(model, rng, size))


def on_other_tables(model: Model, wheelsets: list[int]) -> VehicleArrays:
    """The arrays of a model of which some wheelsets have only the second contact point of each wheel."""
    index = model.layout.wheelset_index.copy()
    assert (index[:, [slot.LEFT_COUNT, slot.RIGHT_COUNT]] > 1).all()
    index[np.ix_(wheelsets, [slot.LEFT_FIRST, slot.RIGHT_FIRST])] += 1
    index[np.ix_(wheelsets, [slot.LEFT_COUNT, slot.RIGHT_COUNT])] = 1
    return model.arrays._replace(wheelset_index=index, team=teams_of(index))


@pytest.mark.parametrize("others", [[1], [0, 2], [1, 2, 5], [6, 7]])
def test_different_tables_on_the_wheelsets(others: list[int]) -> None:
    """Each wheelset moves as in a vehicle that has its tables everywhere."""
    model = assemble(read(row_of_axles(8)), contact=MULTI_POINT, speed_mps=30.0)
    rng = np.random.default_rng(3)
    mixed = on_other_tables(model, others)
    for row in mixed.team:
        assert len({w in others for w in row[: row[LANES]]}) == 1
    for _ in range(5):
        y = disturbed(model, rng)
        found = assert_same(mixed, 0.0, y)
        full, _ = rates(model.arrays, 0.0, y)
        single, _ = rates(on_other_tables(model, list(range(8))), 0.0, y)
        assert not np.array_equal(full, single)
        for w in range(8):
            own = [i for i, name in enumerate(model.state_names) if name.startswith(f"axle{w}.")]
            assert np.array_equal(found[own], (single if w in others else full)[own])


def test_a_derailed_wheelset_is_reported_from_any_lane() -> None:
    model = assemble(read(row_of_axles(5)), speed_mps=30.0)
    for w in range(5):
        _, status = rates(model.arrays, 0.0, model.state(**{f"axle{w}__y": 0.5}))
        assert status == Status.DERAILED
