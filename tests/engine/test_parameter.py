"""Binding parameters: the same numbers as assembling an edited description, and nothing else changes."""

import dataclasses
import math
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sample_vehicle

from railsweep.engine.contact_table import conical_table
from railsweep.engine.errors import InputError
from railsweep.engine.model import assemble
from railsweep.engine.track import Track
from railsweep.engine.vehicle import library_vehicles, load_vehicle
from railsweep.kernels import record as slot

CONE = conical_table()
WAGON = library_vehicles()["cooperrider"].read_text()
# neither the work space nor the segments, which only a varying track reads
VALUES = ("operation", "body", "wheelset", "link", "law", "rail")


def values(model):
    """All numbers of a model that are not work space."""
    return {name: getattr(model.arrays, name).copy() for name in VALUES}


def assert_same_model(first, second, state=None):
    for name, array in values(first).items():
        np.testing.assert_allclose(array, values(second)[name], rtol=1e-14, atol=1e-300, err_msg=name)
    np.testing.assert_array_equal(first.layout.header, second.layout.header)
    y = sample_vehicle.disturbed(first, np.random.default_rng(1)) if state is None else state
    f, g = first.rhs(0.3, y), second.rhs(0.3, y)
    np.testing.assert_allclose(f, g, rtol=1e-11, atol=1e-11 * np.abs(f).max())


def wagon(text=WAGON, formulation="physics", **options):
    options = {"contact": CONE, "speed_mps": 30.0, "formulation": formulation, **options}
    return assemble(sample_vehicle.read(text), **options)


def edited(pattern, value, text=WAGON, count=0):
    new, changes = re.subn(pattern, lambda m: m[1] + str(value), text, count=count)
    assert changes > 0
    return new


# --- operation and track ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "options"),
    [
        ("speed_mps", 71.5, {"speed_mps": 71.5}),
        ("contact.friction", 0.37, {"friction": 0.37}),
        ("contact.shear_modulus_pa", 8.1e10, {"shear_modulus_pa": 8.1e10}),
        ("track.radius_m", 700.0, {"track": Track(radius_m=700.0)}),
        ("track.radius_m", -700.0, {"track": Track(radius_m=700.0, hand="left")}),
        ("track.radius_m", math.inf, {"track": Track()}),
        ("track.curvature_1pm", 1 / 450.0, {"track": Track(radius_m=450.0)}),
        ("track.cant_mm", 90.0, {"track": Track(cant_mm=90.0)}),
        ("track.cant_rad", Track(cant_mm=60.0).cant_rad, {"track": Track(cant_mm=60.0)}),
    ],
)
@pytest.mark.parametrize("start", [Track(), Track(radius_m=900.0, cant_mm=40.0)])
def test_operation_and_track(name, value, options, start):
    base = wagon(track=start)
    bound = base.bind([name])([value])
    if "track" in options:
        target = options["track"]
        curvature = target.curvature_1pm if "c" in name[6:8] or "radius" in name else start.curvature_1pm
        if "cant" in name:
            curvature = start.curvature_1pm
        cant = target.cant_rad if "cant" in name else start.cant_rad
        expected = wagon(track=start)
        expected = expected.bind(["track.curvature_1pm", "track.cant_rad"])([curvature, cant])
        direct = bound.arrays.operation
        assert direct[slot.CURVATURE] == pytest.approx(curvature, rel=1e-15)
        assert direct[slot.CANT] == pytest.approx(cant, rel=1e-14)
    else:
        expected = wagon(track=start, **options)
    assert_same_model(bound, expected)


def test_a_bound_curve_is_an_assembled_curve():
    bound = wagon().bind(["track.radius_m", "track.cant_mm"])([600.0, 110.0])
    assert_same_model(bound, wagon(track=Track(radius_m=600.0, cant_mm=110.0)))
    back = bound.bind(["track.radius_m", "track.cant_mm"])([math.inf, 0.0])
    assert_same_model(back, wagon())
    assert back.layout.header[slot.TRACK_KIND] == slot.TRACK_STRAIGHT
    wide = wagon().bind(["track.radius_m", "track.cant_mm"])([2500.0, 50.0])
    np.testing.assert_allclose(
        wide.equilibrium(), wagon(track=Track(radius_m=2500.0, cant_mm=50.0)).equilibrium(), atol=1e-9
    )


def test_gravity():
    bound = wagon().bind(["gravity_mps2"])([3.7])
    assert_same_model(bound, wagon("gravity_mps2 = 3.7\n" + WAGON))


# --- bodies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", ["physics", "dytsi"])
@pytest.mark.parametrize(
    ("name", "pattern", "value"),
    [
        ("car_body.mass_kg", r"(mass_kg = )44388\.0", 39000.0),
        ("bogie.mass_kg", r"(mass_kg = )2918\.9", 3300.0),
        ("wheelset.mass_kg", r"(mass_kg = )1022\.0", 1500.0),
        ("car_body.inertia_roll_kgm2", r"(inertia_roll_kgm2 = )2\.80e5", 3.3e5),
        ("car_body.inertia_pitch_kgm2", r"(inertia_pitch_kgm2 = )5\.0e5", 4.1e5),
        ("car_body.inertia_yaw_kgm2", r"(inertia_yaw_kgm2 = )5\.0e5", 6.1e5),
        ("bogie.inertia_roll_kgm2", r"(inertia_roll_kgm2 = )6780\.0", 5000.0),
        ("bogie.inertia_pitch_kgm2", r"(inertia_pitch_kgm2 = )6780\.0", 5000.0),
        ("wheelset.inertia_pitch_kgm2", r"(inertia_pitch_kgm2 = )80\.0", 120.0),
        ("wheelset.inertia_yaw_kgm2", r"(inertia_yaw_kgm2 = )678\.0", 800.0),
    ],
)
def test_bodies(name, pattern, value, formulation):
    bound = wagon(formulation=formulation).bind([name])([value])
    assert_same_model(bound, wagon(edited(pattern, value), formulation))


def test_one_body_of_a_group_changes_the_shares_of_the_springs():
    """A heavier leading bogie: its own primary springs carry more, and the description with that body says the same."""
    vehicle = load_vehicle("cooperrider")
    bodies = tuple(dataclasses.replace(b, mass_kg=4000.0) if b.name == "bogie_leading" else b for b in vehicle.bodies)
    expected = assemble(dataclasses.replace(vehicle, bodies=bodies), contact=CONE, speed_mps=30.0)
    bound = wagon().bind(["bogie_leading.mass_kg"])([4000.0])
    assert_same_model(bound, expected)
    preload = dict(zip(bound.layout.link_names, bound.arrays.link[:, slot.PRELOAD], strict=True))
    more = preload["primary_vertical.leading.leading.left"] - preload["primary_vertical.trailing.leading.left"]
    assert more == pytest.approx(-(4000.0 - 2918.9) * 9.81 / 4, rel=1e-9)


# --- links ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("secondary_yaw.damping", "damping_nspm", 2.5e5),
        ("secondary_yaw.stiffness_npm", "stiffness_npm", 1.0e6),
        ("primary_vertical.stiffness", "stiffness_npm", 2.0e6),
        ("secondary_vertical.stiffness", "stiffness_npm", 2.0e5),
        ("primary_lateral.damping", "damping_nspm", 1.0e4),
    ],
)
def test_links(name, key, value):
    group = name.partition(".")[0]
    pattern = rf'(name = "{group}"[^\[]*?(?:\[[^\]\[]*\][^\[]*?)*?{key} = )[0-9.e]+'
    assert_same_model(wagon().bind([name])([value]), wagon(edited(pattern, value, count=1)))


def test_one_soft_spring_among_many_redistributes_the_weight():
    name = "secondary_vertical.leading.left.stiffness_npm"
    bound = wagon().bind([name])([1.5e5])
    loads = bound.arrays.link[[n.startswith("secondary_vertical") for n in bound.layout.link_names], slot.PRELOAD]
    assert loads.sum() == pytest.approx(-44388.0 * 9.81, rel=1e-10)
    assert loads.std() > 1000.0
    assert np.abs(bound.rhs(0.0, bound.equilibrium())).max() < 1e-8


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("end", ["lower", "upper"])
@pytest.mark.parametrize("group", ["secondary_lateral", "secondary_vertical", "primary_longitudinal"])
def test_attachment_points(group, end, axis):
    """The value is that of the copy as written; mirrored copies follow, also where the written coordinate is zero."""
    base = load_vehicle("cooperrider")
    written = next(link for link in base.links if link.group == group)
    point = list(getattr(written, f"{end}_point_m"))
    value = point[axis] + 0.07
    name = f"{group}.{end}_{'xyz'[axis]}_m"
    model = wagon()
    assert model.parameters[name] == pytest.approx(point[axis], abs=1e-15)
    block = WAGON.split(f'name = "{group}"')
    old = re.search(rf"{end} = .*?point_m = (\[.*?\])", block[1])[1]
    point[axis] = value
    text = f'name = "{group}"'.join([block[0], block[1].replace(old, str(point), 1)])
    assert_same_model(model.bind([name])([value]), wagon(text))
    assert_same_model(model.bind([name.removesuffix("_m")])([value]), wagon(text))


def test_attachment_point_of_one_copy_and_of_a_body_off_its_centre():
    text = WAGON.replace(
        "position_m = [0.0, 0.0, 2.0596]", "position_m = [0.0, 0.0, 2.0]\ncentre_of_mass_m = [0.1, 0.0, 0.0596]"
    )
    model = wagon(text)
    name = "secondary_lateral.trailing.right.upper_y_m"
    assert model.parameters[name] == -1.65
    assert model.parameters["secondary_lateral.upper_x_m"] == pytest.approx(7.5)
    bound = model.bind([name])([-1.5])
    k = model.layout.link_names.index("secondary_lateral.trailing.right")
    assert bound.arrays.link[k, slot.UPPER_Y] == -1.5
    assert bound.arrays.link[k, slot.UPPER_X] == pytest.approx(-7.6)
    untouched = np.delete(bound.arrays.link, k, axis=0)
    np.testing.assert_allclose(untouched, np.delete(model.arrays.link, k, axis=0), rtol=1e-9, atol=1e-6)


def test_a_link_turned_over_by_its_points_keeps_pulling():
    """Moving the upper point below the lower one reverses what extension means; laws that are not odd notice."""
    law = "[link.spring_law]\ndisplacement_m = [-0.5, 0.0, 0.5]\nforce_n = [-1.0e5, 0.0, 5.0e3]"
    head, _, tail = WAGON.partition("stiffness_npm = 182.3e3\ndamping_nspm = 29.2e3\n")
    text = head + "damping_nspm = 29.2e3\n" + law + "\n" + tail
    turned = text.replace("point_m = [7.5, 1.65, -0.9]", "point_m = [7.5, 1.05, -0.9]")
    assert turned != text
    assert_same_model(wagon(text).bind(["secondary_lateral.upper_y"])([1.05]), wagon(turned))


# --- every kind of element --------------------------------------------------------------------------------------

EVERY = {
    "coil.stiffness_npm": ("stiffness_npm = 1.1e6", "stiffness_npm = 1.3e6", 1.3e6),
    "coil.shear_stiffness_npm": ("shear_stiffness_npm = 0.9e6", "shear_stiffness_npm = 0.5e6", 0.5e6),
    "coil.shear_damping_nspm": ("shear_damping_nspm = 2.0e3", "shear_damping_nspm = 3.0e3", 3.0e3),
    "arm.stiffness_x_npm": ("[9.0e6, 3.0e6, 0.2e6]", "[8.0e6, 3.0e6, 0.2e6]", 8.0e6),
    "arm.stiffness_z_npm": ("[9.0e6, 3.0e6, 0.2e6]", "[9.0e6, 3.0e6, 0.4e6]", 0.4e6),
    "arm.damping_y_nspm": ("[3.0e3, 2.0e3, 1.0e3]", "[3.0e3, 5.0e3, 1.0e3]", 5.0e3),
    "air.area_stiffness_npm": ("area_stiffness_npm = 0.4e5", "area_stiffness_npm = 0.6e5", 0.6e5),
    "air.bellows_stiffness_npm": ("bellows_stiffness_npm = 5.5e5", "bellows_stiffness_npm = 6.5e5", 6.5e5),
    "air.reservoir_stiffness_npm": ("reservoir_stiffness_npm = 4.0e5", "reservoir_stiffness_npm = 2.0e5", 2.0e5),
    "air.orifice_damping_nspm": ("orifice_damping_nspm = 3.5e4", "orifice_damping_nspm = 4.5e4", 4.5e4),
    "berg.elastic_stiffness_npm": ("elastic_stiffness_npm = 2.2e5", "elastic_stiffness_npm = 2.5e5", 2.5e5),
    "berg.viscous_stiffness_npm": ("viscous_stiffness_npm = 3.0e5", "viscous_stiffness_npm = 2.5e5", 2.5e5),
    "berg.orifice_damping": ("orifice_damping = 4.0e4", "orifice_damping = 5.0e4", 5.0e4),
    "berg.air_mass_kg": ("air_mass_kg = 60.0", "air_mass_kg = 70.0", 70.0),
    "berg.friction_force_n": ("friction_force_n = 900.0", "friction_force_n = 700.0", 700.0),
    "berg.friction_length_m": ("friction_length_m = 4.0e-3", "friction_length_m = 5.0e-3", 5.0e-3),
    "yaw_damper.stiffness_npm": ("stiffness_npm = 6.0e6", "stiffness_npm = 5.0e6", 5.0e6),
    "yaw_damper.damping_nspm": ("damping_nspm = 3.0e5", "damping_nspm = 2.0e5", 2.0e5),
    "stop.gap_m": ("gap_m = 1.0e-4", "gap_m = 2.0e-4", 2.0e-4),
    "stop.stiffness_npm": ("stiffness_npm = 4.0e6", "stiffness_npm = 3.0e6", 3.0e6),
    "rubbing.force_n": ("force_n = 2500.0", "force_n = 1500.0", 1500.0),
    "rubbing.velocity_mps": ("velocity_mps = 0.02", "velocity_mps = 0.03", 0.03),
    "bar.stiffness_nmprad": ("stiffness_nmprad = 9.0e5", "stiffness_nmprad = 8.0e5", 8.0e5),
    "bar.damping_nmsprad": ("damping_nmsprad = 2.0e3", "damping_nmsprad = 1.0e3", 1.0e3),
    "centre.damping_nmsprad": ("damping_nmsprad = 1.5e3", "damping_nmsprad = 1.1e3", 1.1e3),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_element(name):
    old, new, value = EVERY[name]
    assert sample_vehicle.HALF_BOGIE.count(old) == 1
    expected = assemble(sample_vehicle.read(sample_vehicle.HALF_BOGIE.replace(old, new)), contact=CONE, speed_mps=30.0)
    base = assemble(sample_vehicle.every_link(), contact=CONE, speed_mps=30.0)
    assert base.parameters[name] != value
    bound = base.bind([name])([value])
    assert bound.parameters[name] == pytest.approx(value, rel=1e-15)
    assert_same_model(bound, expected)


@pytest.mark.parametrize(
    ("name", "factor", "x", "y"),
    [
        ("inclined.spring_force_scale", 1.3, 1.0, 1.3),
        ("inclined.spring_displacement_scale", 0.7, 0.7, 1.0),
        ("lateral_damper.damper_force_scale", 0.6, 1.0, 0.6),
        ("lateral_damper.damper_velocity_scale", 1.4, 1.4, 1.0),
    ],
)
def test_tabulated_laws_scale(name, factor, x, y):
    """A scaled law behaves as the table with scaled numbers."""
    base = sample_vehicle.every_link()
    links = []
    for link in base.links:
        if link.group == name.partition(".")[0]:
            (element,) = link.elements
            kind = "spring" if "spring" in name else "damper"
            law = getattr(element, kind)
            law = dataclasses.replace(law, x=tuple(x * v for v in law.x), y=tuple(y * v for v in law.y))
            link = dataclasses.replace(link, elements=(dataclasses.replace(element, **{kind: law}),))
        links.append(link)
    expected = assemble(dataclasses.replace(base, links=tuple(links)), contact=CONE, speed_mps=30.0)
    bound = assemble(base, contact=CONE, speed_mps=30.0).bind([name])([factor])
    state = sample_vehicle.disturbed(bound, np.random.default_rng(2), size=3.0)
    state[[i for i, n in enumerate(bound.state_names) if n.startswith("wheel")]] = 0.0
    f, g = bound.rhs(0.0, state), expected.rhs(0.0, state)
    np.testing.assert_allclose(f, g, rtol=1e-10, atol=1e-11 * np.abs(f).max())
    assert np.abs(f - assemble(base, contact=CONE, speed_mps=30.0).rhs(0.0, state)).max() > 1e-6


def test_every_parameter_written_back_is_the_same_model():
    """All names at their present values, alone and together, change nothing."""
    for model in (
        wagon(),
        wagon(formulation="dytsi"),
        assemble(sample_vehicle.every_link(), contact=CONE, speed_mps=30.0),
    ):
        names = list(model.parameters)
        assert len(names) > 50
        for name in names:
            again = model.bind([name])([model.parameters[name]])
            for record, array in values(model).items():
                np.testing.assert_allclose(values(again)[record], array, rtol=1e-13, atol=1e-12, err_msg=name)


def test_together_is_the_same_as_one_after_the_other():
    names, numbers = (
        ["car_body.mass_kg", "secondary_vertical.stiffness", "track.cant_mm", "speed_mps"],
        [4e4, 3e5, 50.0, 44.0],
    )
    model = wagon()
    together = model.bind(names)(numbers)
    for name, number in zip(names, numbers, strict=True):
        model = model.bind([name])([number])
    assert_same_model(together, model)


# --- what is wrong, and what stays -----------------------------------------------------------------------------


def test_names():
    model = wagon()
    assert model.bind("speed_mps").names == ["speed_mps"]
    assert model.bind(["secondary_yaw.damping"]).names == ["secondary_yaw.damping_nspm"]
    assert model.parameters["secondary_yaw.damping_nspm"] == 166.669e3
    assert model.parameters["track.radius_m"] == math.inf
    with pytest.raises(InputError, match=r"'secondary_yaw.dampign'.*did you mean 'secondary_yaw.damping"):
        model.bind(["secondary_yaw.dampign"])
    with pytest.raises(InputError, match="not a parameter"):
        model.bind([""])
    with pytest.raises(InputError, match="twice"):
        model.bind(["secondary_yaw.damping", "secondary_yaw.damping_nspm"])
    with pytest.raises(InputError, match=r"track.cant"):
        model.bind(["track.cant"])  # in mm or rad?


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("speed_mps", 0.0, "above 0"),
        ("speed_mps", -3.0, "above 0"),
        ("speed_mps", math.nan, "finite"),
        ("speed_mps", math.inf, "finite"),
        ("contact.friction", -0.1, "at least 0"),
        ("contact.friction", 3.0, "at most 2"),
        ("car_body.mass_kg", 0.0, "above 0"),
        ("car_body.inertia_roll_kgm2", -1.0, "above 0"),
        ("secondary_yaw.damping_nspm", -1.0, "at least 0"),
        ("secondary_yaw.stiffness_npm", math.nan, "finite"),
        ("track.radius_m", 3.0, "at least 10"),
        ("track.radius_m", math.nan, "at least 10"),
        ("track.cant_mm", 900.0, "at most 500"),
        ("track.curvature_1pm", 1.0, "at most 0.1"),
        ("secondary_lateral.upper_y_m", math.inf, "finite"),
    ],
)
def test_values_out_of_range(name, value, allowed):
    with pytest.raises(InputError) as error:
        wagon().bind([name])([value])
    assert error.value.where == name
    assert allowed in error.value.allowed
    assert str(value) in error.value.problem


@pytest.mark.parametrize("values_", [[], [1.0, 2.0], [[1.0]]])
def test_wrong_number_of_values(values_):
    with pytest.raises(InputError, match="1: speed_mps"):
        wagon().bind(["speed_mps"])(values_)


def test_a_weight_that_nothing_carries_is_refused():
    with pytest.raises(InputError, match="not carried"):
        wagon().bind(["secondary_vertical.stiffness"])([0.0])


def test_track_of_a_varying_model_cannot_be_bound():
    model = wagon(track=Track(radius_m=600.0, transition_m=50.0))
    with pytest.raises(InputError, match="varying track"):
        model.bind(["track.radius_m"])
    assert model.bind(["speed_mps"])([25.0]).speed_mps == 25.0


def test_the_original_is_untouched():
    model = wagon(track=Track(radius_m=2500.0, cant_mm=50.0))
    before, header = values(model), model.layout.header.copy()
    y = sample_vehicle.disturbed(model, np.random.default_rng(3))
    f = model.rhs(0.0, y)
    parameters = dict(model.parameters)
    for name in ("car_body.mass_kg", "track.radius_m", "secondary_lateral.upper_x_m", "speed_mps", "gravity_mps2"):
        changed = model.bind([name])([parameters[name] * 1.1])
        changed.rhs(0.0, y)
        changed.equilibrium()
    model.bind(["track.radius_m", "track.cant_mm"])([math.inf, 0.0])
    for record, array in before.items():
        np.testing.assert_array_equal(values(model)[record], array)
    np.testing.assert_array_equal(model.layout.header, header)
    np.testing.assert_array_equal(model.rhs(0.0, y), f)
    assert dict(model.parameters) == parameters


def test_the_order_of_evaluation_leaves_no_trace():
    """Bit for bit: a model evaluated after others gives the same numbers as a fresh one."""
    binder = wagon().bind(["speed_mps", "track.radius_m"])
    y = sample_vehicle.disturbed(binder.model, np.random.default_rng(4))
    samples = [(20.0, 600.0), (60.0, math.inf), (35.0, -900.0)]
    fresh = [binder(s).rhs(0.0, y) for s in samples]
    models = [binder(s) for s in samples]
    for k in (2, 0, 1, 1, 2, 0):
        models[k].jacobian(0.0, 0.5 * y)
        models[k].outputs(0.0, 0.1 * y)
        np.testing.assert_array_equal(models[k].rhs(0.0, y), fresh[k])


def test_copies_are_independent_in_threads():
    model = wagon(track=Track(radius_m=700.0, cant_mm=80.0))
    rng = np.random.default_rng(5)
    states = [sample_vehicle.disturbed(model, rng) for _ in range(8)]
    expected = [(model.rhs(0.0, y), model.jacobian(0.0, y)) for y in states]

    def work(k):
        own = model.copy()
        for _ in range(40):
            f, jacobian = own.rhs(0.0, states[k]), own.jacobian(0.0, states[k])
            if not (np.array_equal(f, expected[k][0]) and np.array_equal(jacobian, expected[k][1])):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
    assert not np.shares_memory(model.copy().buffer, model.buffer)
