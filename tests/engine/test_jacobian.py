"""The Jacobian along the body tree equals dense differences of the right-hand side."""

from dataclasses import fields, replace

import numpy as np
import pytest
import sample_vehicle
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from railsweep.engine.contact_table import WheelTable, conical_table, load_contact_table
from railsweep.engine.model import ModelError, assemble
from railsweep.engine.track import Track
from railsweep.kernels.status import Status

TRACKS = {
    "straight": Track(),
    "left curve": Track(radius_m=450.0, cant_mm=120.0, hand="left"),
    "transition": Track(radius_m=600.0, cant_mm=100.0, transition_m=60.0, transition="bloss"),
}
IN_TRANSITION_S = 0.9
STEP, RATE_STEP = 1e-8, 1e-6


def step_of(name):
    return RATE_STEP if name.endswith(("_dot", ".spin", ".friction")) else STEP


def dense(model, t, y, *, central=True):
    matrix = np.empty((model.n, model.n))
    base = model.rhs(t, y)
    for j, name in enumerate(model.state_names):
        up, down = y.copy(), y.copy()
        up[j] += step_of(name)
        if central:
            down[j] -= step_of(name)
        below = model.rhs(t, down) if central else base
        matrix[:, j] = (model.rhs(t, up) - below) / (up[j] - down[j])
    return matrix


def rounding(model, t, y):
    """Rounding error of a difference quotient in every row: a few eps of the forces on that body, over the step."""
    outputs = model.outputs(t, y)
    total = {name: np.zeros(6) for name in model.layout.body_names}
    for k, link in enumerate(outputs.links):
        lower, upper = model.layout.link_index[k, 2:4]
        total[model.layout.body_names[lower]] += np.abs(link.on_lower)
        total[model.layout.body_names[upper]] += np.abs(link.on_upper)
    for name, force in outputs.forces["contact"].items():
        total[name] += np.abs(force)
    bound = np.zeros(model.n)
    for body in model.vehicle.bodies:
        # forces may be differences of larger ones inside a link (arms of a metre): moments count as forces too
        size = total[body.name].max()
        for dof, inertia in (
            ("y_dot", body.mass_kg),
            ("z_dot", body.mass_kg),
            ("roll_dot", body.inertia_roll_kgm2),
            ("pitch_dot", min(body.inertia_pitch_kgm2, body.inertia_roll_kgm2)),
            ("yaw_dot", body.inertia_yaw_kgm2),
            ("spin", body.inertia_pitch_kgm2),
        ):
            name = f"{body.name}.{dof}"
            if name in model.state_names:
                bound[model.index(name)] = size / inertia
    return 8.0 * np.finfo(float).eps * bound / STEP


def assert_equal_jacobians(model, t, y, *, whole_body=False):
    """Differences below 1e-6 of the largest entry of the row; with `whole_body` of all rows of the same body."""
    found, expected = model.jacobian(t, y), dense(model, t, y)
    row = np.abs(expected).max(axis=1)
    if whole_body:
        owners = np.array([name.partition(".")[0] for name in model.state_names])
        row = np.array([row[owners == owner].max() for owner in owners])
    excess = np.abs(found - expected) - (1e-6 * row + rounding(model, t, y))[:, None]
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    names = [model.state_names[i] for i in worst]
    assert excess.max() <= 0.0, (names, found[worst], expected[worst], row[worst[0]])


def loaded_state(model, rng, t):
    """A random state of which no wheel is close to lift-off, where the force has a corner."""
    for _ in range(50):
        y = sample_vehicle.disturbed(model, rng)
        if all(abs(p.penetration_m) > 1e-6 for p in model.outputs(t, y).points):
            return y
    raise AssertionError("no loaded state found")


@pytest.mark.parametrize("track", TRACKS)
@pytest.mark.parametrize("formulation", ["physics", "dytsi"])
@pytest.mark.parametrize("vehicle", [*sample_vehicle.LIBRARY, "every link"])
def test_tree_equals_dense(vehicle, formulation, track):
    rng = np.random.default_rng(sum(map(ord, vehicle + formulation + track)))
    described = sample_vehicle.every_link() if vehicle == "every link" else vehicle
    model = assemble(described, track=TRACKS[track], speed_mps=31.0, formulation=formulation)
    y = loaded_state(model, rng, IN_TRANSITION_S)
    assert_equal_jacobians(model, IN_TRANSITION_S, y)


@pytest.mark.parametrize("creep_law", ["linear", "polach", "fastsim"])
def test_tree_equals_dense_for_every_creep_law(creep_law):
    rng = np.random.default_rng(7)
    model = assemble("cooperrider", track=TRACKS["left curve"], speed_mps=25.0, creep_law=creep_law)
    # FASTSIM has corners wherever a cell changes between stick and slip: small creep, all sticking but the edge
    y = 0.05 * loaded_state(model, rng, 0.0)
    assert_equal_jacobians(model, 0.0, y)


@pytest.mark.parametrize("precession", ["off", "printed", "right"])
def test_gyroscopic_columns(precession):
    rng = np.random.default_rng(8)
    model = assemble("cooperrider", track=TRACKS["transition"], speed_mps=55.0, precession=precession)
    y = loaded_state(model, rng, IN_TRANSITION_S)
    y[[model.index(f"{w}.spin") for w in model.layout.wheelset_names]] = rng.uniform(-5.0, 5.0, 4)
    assert_equal_jacobians(model, IN_TRANSITION_S, y)


@pytest.mark.parametrize("precession", ["printed", "right"])
def test_gyroscopic_part_alone(precession):
    """Beside contact stiffness it is too small to see: take the difference to the same model without precession.

    The moments are products of spin and rates, so differences over large steps are exact.
    """
    gyro, off = (
        assemble("cooperrider", track=TRACKS["transition"], speed_mps=55.0, precession=p) for p in (precession, "off")
    )
    t = IN_TRANSITION_S
    y = loaded_state(gyro, np.random.default_rng(8), t)
    part = gyro.jacobian(t, y) - off.jacobian(t, y)
    seen = 0
    for name in gyro.layout.wheelset_names:
        for column in (f"{name}.spin", f"{name}.roll_dot", f"{name}.yaw_dot", f"{name}.y_dot"):
            step = np.zeros(gyro.n)
            step[gyro.index(column)] = 0.5
            up, down = (gyro.rhs(t, y + s * step) - off.rhs(t, y + s * step) for s in (1.0, -1.0))
            np.testing.assert_allclose(part[:, gyro.index(column)], up - down, rtol=1e-6, atol=1e-8, err_msg=column)
            seen += np.abs(up - down).max() > 1e-4
    assert seen >= 8


@pytest.mark.parametrize("formulation", ["physics", "dytsi"])
def test_several_contact_points(formulation):
    """Two contact points per wheel, the second steeper: both share every column of their wheelset."""
    table = conical_table()
    doubled = {
        f.name: np.repeat(getattr(table.left, f.name), 2, axis=0) for f in fields(table.left) if f.name != "gap_m"
    }
    doubled["angle_rad"][1] += 0.1
    table = replace(table, left=WheelTable(**doubled))
    model = assemble("cooperrider", contact=table, speed_mps=40.0, formulation=formulation)
    y = loaded_state(model, np.random.default_rng(9), 0.0)
    assert sum(p.normal_n > 0.0 for p in model.outputs(0.0, y).points) > 8
    assert_equal_jacobians(model, 0.0, y)


def test_published_table(published_table_path):
    """A measured profile pair: features of a few hundredths of a millimetre."""
    table = load_contact_table(published_table_path)
    model = assemble("cooperrider", contact=table, speed_mps=40.0, formulation="dytsi")
    y = loaded_state(model, np.random.default_rng(9), 0.0)
    assert_equal_jacobians(model, 0.0, y)


@pytest.mark.parametrize("vehicle", ["cooperrider", "every link"])
def test_one_sided_is_first_order(vehicle):
    """One-sided columns differ from the derivative by h/2 of the curvature: equal to dense one-sided differences."""
    described = sample_vehicle.every_link() if vehicle == "every link" else vehicle
    model = assemble(described, track=TRACKS["transition"], speed_mps=31.0)
    y = loaded_state(model, np.random.default_rng(10), IN_TRANSITION_S)
    found = model.jacobian(IN_TRANSITION_S, y, central=False)
    row = np.abs(found).max(axis=1, keepdims=True)
    expected = dense(model, IN_TRANSITION_S, y, central=False)
    allowed = 1e-6 * np.abs(expected) + 1e-6 * row + rounding(model, IN_TRANSITION_S, y)[:, None]
    # internal states are always differenced centrally, which is the better value
    allowed[
        :, [i for i, n in enumerate(model.state_names) if n.partition(".")[0] in ("air", "berg", "yaw_damper")]
    ] += 1e-4 * row
    assert (np.abs(found - expected) <= allowed).all()
    central = model.jacobian(IN_TRANSITION_S, y)
    assert np.abs(found - central).max() > 0.0
    assert (np.abs(found - central) <= 1e-3 * row).all()


@given(seed=st.integers(0, 10**6), track=st.sampled_from(list(TRACKS)), physics=st.booleans())
@settings(max_examples=60)
def test_random_vehicles(seed, track, physics):
    model = assemble(
        sample_vehicle.read(sample_vehicle.random_vehicle_text(seed)),
        track=TRACKS[track],
        speed_mps=20.0,
        formulation="physics" if physics else "dytsi",
    )
    y = loaded_state(model, np.random.default_rng(seed), IN_TRANSITION_S)
    # Keep away from the corner of the bump stops. Links at odd places may leave a body without any stiffness of its own
    # in one direction, of which only small products of large forces with small angles remain: scale by the whole body.
    stops = model.outputs(IN_TRANSITION_S, y).clearances_m
    assume(all(abs(c) > 1e-7 for c in stops.values()))
    assert_equal_jacobians(model, IN_TRANSITION_S, y, whole_body=True)


def test_work_space_and_state_are_left_alone():
    model = assemble(sample_vehicle.every_link(), speed_mps=31.0)
    y = sample_vehicle.disturbed(model, np.random.default_rng(3))
    before = y.copy()
    first = model.jacobian(0.0, y)
    model.rhs(0.0, 0.5 * y)
    np.testing.assert_array_equal(y, before)
    np.testing.assert_array_equal(model.jacobian(0.0, y), first)


def test_derailed_state_has_no_jacobian():
    model = assemble("cooperrider", speed_mps=31.0)
    with pytest.raises(ModelError) as error:
        model.jacobian(0.0, model.state(wheelset_tl__y=0.5))
    assert error.value.status == Status.DERAILED
