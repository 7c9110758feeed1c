"""Laws every right-hand side obeys: mirror symmetry, action = reaction, energy, creep power, rest at equilibrium."""

import dataclasses
import itertools

import numpy as np
import pytest
import sample_vehicle
from scipy.integrate import solve_ivp

from railsweep.engine.contact_table import conical_table
from railsweep.engine.kalker import kalker_coefficients
from railsweep.engine.model import assemble
from railsweep.engine.track import Segment, Track
from railsweep.kernels import record as slot

VEHICLES = [*sample_vehicle.LIBRARY, "every link"]
FORMULATIONS = ["physics", "dytsi"]
CREEP_LAWS = ["linear", "shen-hedrick-elkins", "polach", "fastsim"]


def described(vehicle):
    return sample_vehicle.every_link() if vehicle == "every link" else vehicle


# --- mirror symmetry --------------------------------------------------------------------------------------------


def assert_mirrored(model, twin, rng, t=0.0):
    order, sign = sample_vehicle.mirror(model)
    for _ in range(4):
        y = sample_vehicle.disturbed(model, rng)
        f, image = model.rhs(t, y), twin.rhs(t, sign * y[order])
        # relative to the largest rate of each kind: accelerations, angular accelerations, velocities, internal rates
        kinds = np.array([name.rpartition(".")[2] for name in model.state_names])
        for kind in set(kinds):
            rows = kinds == kind
            difference = np.abs(image - sign * f[order])[rows].max()
            assert difference <= 1e-12 * np.abs(f[rows]).max(), (kind, difference)


@pytest.mark.parametrize(("formulation", "creep_law"), [*itertools.product(FORMULATIONS, CREEP_LAWS)])
@pytest.mark.parametrize("vehicle", VEHICLES)
def test_mirror_symmetry(vehicle, formulation, creep_law):
    rng = np.random.default_rng(1)
    base = assemble(described(vehicle), speed_mps=35.0, formulation=formulation, creep_law=creep_law)
    base = sample_vehicle.scaled_randomly(base, rng)
    curve = base.bind(["speed_mps", "contact.friction", "track.curvature_1pm", "track.cant_rad"])
    for curvature, cant in ((0.0, 0.0), (1 / 400.0, 0.08), (-1 / 900.0, 0.03), (0.0, 0.05)):
        speed, friction = rng.uniform(8.0, 70.0), rng.uniform(0.05, 0.6)
        assert_mirrored(curve([speed, friction, curvature, cant]), curve([speed, friction, -curvature, -cant]), rng)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("shape", ["clothoid", "bloss", "cosine"])
def test_mirror_symmetry_inside_a_transition(shape, formulation):
    def track(hand):
        return Track(radius_m=350.0, cant_mm=140.0, hand=hand, transition_m=70.0, transition=shape)

    rng = np.random.default_rng(2)
    models = [
        assemble(sample_vehicle.every_link(), track=track(h), speed_mps=22.0, formulation=formulation)
        for h in ("right", "left")
    ]
    for t in (-0.1, 0.02, 1.3, 3.17, 5.0):
        assert_mirrored(*models, rng, t)


@pytest.mark.parametrize("precession", ["off", "printed", "right"])
def test_mirror_symmetry_of_precession(precession):
    rng = np.random.default_rng(3)
    model = assemble("cooperrider", speed_mps=60.0, precession=precession)
    curve = model.bind(["track.curvature_1pm", "track.cant_rad"])
    assert_mirrored(curve([1 / 700.0, 0.05]), curve([-1 / 700.0, -0.05]), rng)


# --- action = reaction ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vehicle", VEHICLES)
def test_link_forces_and_moments_cancel(vehicle):
    """Force and moment about the track frame's origin of each link on its two bodies add up to zero."""
    rng = np.random.default_rng(4)
    model = sample_vehicle.scaled_randomly(assemble(described(vehicle), speed_mps=30.0), rng)
    ends = model.layout.link_index[:, [slot.LINK_LOWER, slot.LINK_UPPER]]
    for _ in range(10):
        y = sample_vehicle.disturbed(model, rng, size=5.0)
        y[[i for i, n in enumerate(model.state_names) if n.startswith("wheelset") and n.endswith(".y")]] *= 0.2
        seen = 0
        for k, link in enumerate(model.outputs(0.0, y).links):
            arms = [sample_vehicle.positions(model, y, model.layout.body_names[b]) for b in ends[k]]
            force = link.on_lower[:3] + link.on_upper[:3]
            moments = [
                w[3:] + np.cross(arm, w[:3]) for arm, w in zip(arms, (link.on_lower, link.on_upper), strict=True)
            ]
            size = np.abs(link.on_lower[:3]).max()
            assert np.abs(force).max() <= 1e-10 * size
            assert np.abs(moments[0] + moments[1]).max() <= 1e-10 * (np.abs(moments[0]).max() + size)
            seen += np.abs(link.on_lower).max() > 1.0
        assert seen > 5


def test_suspension_forces_cancel_in_a_curve_of_the_published_program():
    """Its links know one frame only, so the lateral and vertical sums vanish exactly."""
    rng = np.random.default_rng(5)
    model = assemble("cooperrider", track=Track(radius_m=500.0, cant_mm=80.0), speed_mps=30.0, formulation="dytsi")
    forces = model.outputs(0.0, sample_vehicle.disturbed(model, rng)).forces["suspension"]
    total = sum(forces.values())
    assert np.abs(total[:3]).max() <= 1e-10 * max(np.abs(f[:3]).max() for f in forces.values())


def test_curve_frames_cancel_to_second_order():
    """In `physics` each end of a link has its own frame; sums in one frame vanish up to curvature squared."""
    rng = np.random.default_rng(6)
    model = assemble("cooperrider", speed_mps=30.0)
    y = sample_vehicle.disturbed(model, rng)
    left_over = []
    for curvature in (1 / 500.0, 1 / 1000.0, 1 / 2000.0):
        outputs = model.bind(["track.curvature_1pm"])([curvature]).outputs(0.0, y)
        for k, link in enumerate(outputs.links):
            if link.name == "secondary_lateral.leading.left":
                lower, upper = model.layout.link_index[k, [slot.LINK_LOWER, slot.LINK_UPPER]]
                turn = -curvature * (model.layout.body_positions[lower] - model.layout.body_positions[upper])[0]
                rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
                back = rotation @ link.on_lower[:2]
                left_over.append(np.abs(back + link.on_upper[:2]).max() / np.abs(link.on_upper[:2]).max())
    assert left_over[0] < 1.0 * (7.5 / 500.0) ** 2
    assert left_over[1] < 0.3 * left_over[0]
    assert left_over[2] < 0.3 * left_over[1]


# --- energy -----------------------------------------------------------------------------------------------------


def uniform_hertz(table):
    """The conical table with one Hertz constant for all shifts, so that 2/5 K q^2.5 is the energy of a contact."""
    middle = table.shift_m.size // 2

    def flat(column):
        return np.full_like(column, column[0, middle])

    wheel = dataclasses.replace(
        table.left,
        normal_force_n=flat(table.left.normal_force_n),
        penetration_m=flat(table.left.penetration_m),
    )
    return dataclasses.replace(table, left=wheel)


def energy(model, y):
    """Kinetic energy (without the spin, which turns with the train), linear springs and Hertz contacts."""
    outputs = model.outputs(0.0, y)
    total = 0.0
    for body in model.vehicle.bodies:
        for dof, inertia in (
            ("y", body.mass_kg),
            ("z", body.mass_kg),
            ("roll", body.inertia_roll_kgm2),
            ("pitch", body.inertia_pitch_kgm2),
            ("yaw", body.inertia_yaw_kgm2),
        ):
            name = f"{body.name}.{dof}_dot"
            if name in model.state_names:
                total += 0.5 * inertia * y[model.index(name)] ** 2
    total += sum(0.5 * link.force * link.extension for link in outputs.links)
    return total + sum(0.4 * p.normal_n * p.penetration_m for p in outputs.points if p.normal_n > 0.0)


def energy_drift(model, amplitude, *, touching):
    """Largest relative change of the energy over 0.2 s, and whether the wheels touched."""
    rng = np.random.default_rng(11)
    y = np.zeros(model.n)
    height = float(model.contact.left.penetration_m[0, 0]) if touching else 0.1
    for i, name in enumerate(model.state_names):
        y[i] = amplitude * rng.uniform(-1.0, 1.0)
        if name.endswith("_dot"):
            y[i] *= 10.0
        elif name.endswith(".spin"):
            y[i] = 0.0
        elif touching and name.startswith("wheelset"):
            y[i] *= 0.1
        if name.endswith(".z"):
            y[i] += height  # just above the rails, or far away
    found = solve_ivp(model.rhs, (0.0, 0.2), y, method="DOP853", rtol=1e-12, atol=1e-11 * amplitude)
    assert found.success
    history = np.array([energy(model, state) for state in found.y.T[::4]])
    loads = max(p.normal_n for state in found.y.T[::16] for p in model.outputs(0.0, state).points)
    return float(np.abs(history / history[0] - 1.0).max()), loads > 0.0


@pytest.mark.parametrize("precession", ["off", "right"])
@pytest.mark.parametrize(
    ("vehicle", "touching"),
    [
        ("cooperrider", False),
        ("cooperrider", True),
        ("cooperrider-vector", False),
        ("cooperrider-vector", True),
        ("cooperrider-fixed-car", True),
    ],
)
def test_energy_is_conserved(vehicle, touching, precession):
    """Without creep, dampers and gravity the energy stays, up to what the linearised rotations leave out.

    With arms p + theta x p but velocities w x p the power of a link that is missing is f w . (theta x p), and the axis
    of a directed spring errs likewise: third order in the amplitude A, as is the yaw stiffness of the contact, N psi
    psi'. The energy is second order, so the relative drift must fall in proportion to A (a missing term of first
    order in the forces would leave it constant). It is bounded by what one factor of ten leaves of the larger one.
    """
    table = uniform_hertz(conical_table(conicity=0.05, range_m=0.04))
    model = assemble(vehicle, contact=table, speed_mps=30.0, friction=0.0, precession=precession)
    names = ["gravity_mps2", *(n for n in model.parameters if n.count(".") == 1 and "damping" in n)]
    model = model.bind(names)([0.0] * len(names))
    large, touched = energy_drift(model, 1e-3, touching=touching)
    assert touched == touching
    small, _ = energy_drift(model, 1e-4, touching=touching)
    tiny, _ = energy_drift(model, 1e-5, touching=touching)
    assert large < 1e-3  # of order A: rotations of about 1 mrad
    # without contact the motion itself is proportional to A; Hertz springs are softer for small ones
    decade = 0.25 if touching else 0.105
    assert small < decade * large
    assert tiny < decade * small
    assert tiny < 0.02 * large


@pytest.mark.parametrize("vehicle", sample_vehicle.LIBRARY)
def test_stiffness_under_preload_is_symmetric(vehicle):
    """With gravity the springs carry the weight; the forces still have a potential, so dF/dq is symmetric.

    The block of a wheelset with itself is left out: a contact table over one coordinate cannot be exact in two.
    """
    model = assemble(vehicle, speed_mps=30.0, friction=0.0, precession="off")
    jacobian = model.jacobian(0.0, model.equilibrium())
    moving = [i for i, name in enumerate(model.state_names) if f"{name}_dot" in model.state_names]
    names = [model.state_names[i] for i in moving]
    inertia = []
    for name in names:
        body, _, dof = name.partition(".")
        known = model.vehicle.body(body)
        inertia.append(known.mass_kg if dof in "yz" else getattr(known, f"inertia_{dof}_kgm2"))
    stiffness = -np.array(inertia)[:, None] * jacobian[np.ix_([i + 1 for i in moving], moving)]
    scale = np.sqrt(np.abs(np.diag(stiffness)))
    asymmetry = np.abs(stiffness - stiffness.T) / np.outer(scale, scale)
    for i, j in itertools.product(range(len(names)), repeat=2):
        same = names[i].partition(".")[0] == names[j].partition(".")[0]
        if not (same and names[i].startswith("wheelset")):
            assert asymmetry[i, j] < 1e-5, (names[i], names[j])


# --- creep power ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("creep_law", ["linear", "shen-hedrick-elkins"])
@pytest.mark.parametrize("curvature", [0.0, 1 / 300.0])
def test_creep_power_with_spin_moment_is_never_positive(creep_law, curvature):
    """Kalker's C23 terms cancel in Fx xi_x + Fy xi_y + Mz xi_s, so the moment counts; saturation scales all."""
    rng = np.random.default_rng(12)
    model = assemble(
        "cooperrider", contact=conical_table(conicity=0.1), speed_mps=25.0, friction=0.3, creep_law=creep_law
    ).bind(["track.curvature_1pm", "speed_mps"])
    modulus = 2.1e11 / (2.0 * 1.27)
    seen = 0
    for _ in range(40):
        bound = model([curvature, rng.uniform(5.0, 80.0)])
        outputs = bound.outputs(0.0, sample_vehicle.disturbed(bound, rng))
        for p in outputs.points:
            if p.normal_n == 0.0:
                continue
            c = kalker_coefficients(p.axis_rolling_m / p.axis_lateral_m, 0.27)
            area = p.axis_rolling_m * p.axis_lateral_m
            lateral = -modulus * area * (float(c.c22) * p.creep_y + np.sqrt(area) * float(c.c23) * p.creep_spin_1pm)
            longitudinal = -modulus * area * float(c.c11) * p.creep_x
            factor = np.hypot(p.tangent_x_n, p.tangent_y_n) / np.hypot(longitudinal, lateral)
            assert factor <= 1.0 + 1e-4
            assert p.tangent_x_n == pytest.approx(factor * longitudinal, rel=1e-3, abs=1e-3)
            moment = factor * modulus * area * np.sqrt(area) * float(c.c23) * p.creep_y
            moment -= factor * modulus * area**2 * float(c.c33) * p.creep_spin_1pm
            power = p.tangent_x_n * p.creep_x + p.tangent_y_n * p.creep_y + moment * p.creep_spin_1pm
            parts = abs(p.tangent_x_n * p.creep_x) + abs(p.tangent_y_n * p.creep_y)
            assert power <= 1e-4 * parts  # the coefficients of the table are interpolated
            seen += power < 0.0
    assert seen > 100


@pytest.mark.parametrize("creep_law", CREEP_LAWS)
def test_creep_power_without_spin_is_never_positive(creep_law):
    """Cylindrical wheels that do not yaw have no spin: then each law opposes the creepage."""
    rng = np.random.default_rng(13)
    model = assemble(
        "cooperrider", contact=conical_table(conicity=0.0), speed_mps=30.0, friction=0.3, creep_law=creep_law
    )
    yaw_rates = [i for i, name in enumerate(model.state_names) if name.endswith(".yaw_dot")]
    seen = 0
    for _ in range(60):
        y = sample_vehicle.disturbed(model, rng) * 10.0 ** rng.uniform(-3.0, 0.0)
        y[yaw_rates] = 0.0
        for p in model.outputs(0.0, y).points:
            assert p.creep_spin_1pm == 0.0
            power = p.tangent_x_n * p.creep_x + p.tangent_y_n * p.creep_y
            assert power <= 0.0
            assert np.hypot(p.tangent_x_n, p.tangent_y_n) <= 0.3 * p.normal_n * (1.0 + 1e-9) or creep_law == "linear"
            seen += power < 0.0
    assert seen > 200


@pytest.mark.parametrize("creep_law", CREEP_LAWS)
def test_creep_forces_do_the_work_that_creepages_say(creep_law):
    """Power of the creep forces on the wheelset (towing included) = V (Tx xi_x + Ty xi_y): force and velocity agree.

    Forces are resolved and creepages composed with linearised angles, so the two differ by one order of the angles.
    """
    rng = np.random.default_rng(14)
    speed = 30.0
    table = conical_table(conicity=0.05)
    slippery = assemble("cooperrider", contact=table, speed_mps=speed, friction=0.0, creep_law="polach")
    rough = assemble("cooperrider", contact=table, speed_mps=speed, friction=0.3, creep_law=creep_law)
    base = sample_vehicle.disturbed(rough, rng)
    base[[i for i, n in enumerate(rough.state_names) if n.endswith((".z", ".roll")) and n.startswith("wh")]] *= 0.1
    errors = []
    for amplitude in (0.3, 0.03, 0.003):
        y = amplitude * base
        with_creep, without = rough.outputs(0.0, y), slippery.outputs(0.0, y)
        worst = 0.0
        for name in rough.layout.wheelset_names:
            force = with_creep.forces["contact"][name] - without.forces["contact"][name]
            rate = {d: y[rough.index(f"{name}.{d}")] for d in ("y_dot", "z_dot", "roll_dot", "spin", "yaw_dot")}
            omega = speed / table.centre_radius_m + rate["spin"]
            velocity = np.array([speed, rate["y_dot"], rate["z_dot"], rate["roll_dot"], omega, rate["yaw_dot"]])
            points = [p for p in with_creep.points if p.wheelset == name]
            slip = speed * sum(p.tangent_x_n * p.creep_x + p.tangent_y_n * p.creep_y for p in points)
            size = speed * sum(abs(p.tangent_x_n * p.creep_x) + abs(p.tangent_y_n * p.creep_y) for p in points)
            worst = max(worst, abs(force @ velocity - slip) / size)
        errors.append(worst)
    assert errors[0] < 0.05
    assert errors[1] < 0.2 * errors[0]
    assert errors[2] < 0.2 * errors[1]


# --- equilibrium ------------------------------------------------------------------------------------------------

CASES = [
    ("physics", "right", 0.3, Track()),
    ("physics", "off", 0.15, Track()),
    ("physics", "printed", 0.0, Track()),
    ("dytsi", "printed", 0.15, Track()),
    ("dytsi", "off", 0.4, Track()),
    ("physics", "right", 0.3, Track(radius_m=1500.0, cant_mm=100.0)),
    ("physics", "right", 0.3, Track(radius_m=1500.0, cant_mm=100.0, hand="left")),
    ("physics", "right", 0.4, Track(radius_m=2200.0, cant_mm=60.0, transition_m=80.0, transition="bloss")),
    ("dytsi", "printed", 0.3, Track(radius_m=1500.0, cant_mm=100.0)),
]


@pytest.mark.parametrize("vehicle", VEHICLES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_nothing_moves_at_the_equilibrium(vehicle, case):
    formulation, precession, friction, track = CASES[case]
    model = assemble(
        described(vehicle),
        track=track,
        speed_mps=28.0,
        formulation=formulation,
        precession=precession,
        friction=friction,
    )
    y = model.equilibrium()
    late = 1e4  # s, on the constant part of the track
    assert np.abs(model.rhs(late, y)).max() < 1e-9 * 9.81
    outputs = model.outputs(late, y)
    if track.curvature_1pm == 0.0 and not any(b.frozen for b in model.vehicle.bodies):
        weight = 9.81 * sum(b.mass_kg for b in model.vehicle.bodies)
        assert sum(outputs.q_n.values()) == pytest.approx(weight, rel=1e-9)
        assert abs(sum(outputs.sum_y_n.values())) < 1e-8 * weight
    if track.curvature_1pm != 0.0:
        shifts = [y[model.index(f"{w}.y")] for w in model.layout.wheelset_names]
        assert max(np.sign(track.curvature_1pm) * s for s in shifts) > 1e-4  # towards the outer rail


@pytest.mark.parametrize("vehicle", sample_vehicle.LIBRARY)
def test_curve_equilibria_of_either_hand_are_mirror_images(vehicle):
    states = []
    for hand in ("right", "left"):
        model = assemble(vehicle, track=Track(radius_m=1400.0, cant_mm=60.0, hand=hand), speed_mps=25.0, friction=0.3)
        states.append(model.equilibrium())
    order, sign = sample_vehicle.mirror(model)
    np.testing.assert_allclose(sign * states[1][order], states[0], rtol=1e-6, atol=1e-10)


def test_equilibrium_at_the_end_of_segments_is_that_of_the_constant_track():
    end = (1 / 1300.0, 0.05)
    segments = (
        Segment(length_m=50.0, curvature_1pm=(0.0, 1 / 1300.0), cant_rad=(0.0, 0.05), shape="cosine"),
        Segment(length_m=100.0, curvature_1pm=(end[0],) * 2, cant_rad=(end[1],) * 2, shape="constant"),
    )
    varying = assemble("cooperrider", track=Track(segments=segments), speed_mps=25.0, friction=0.3)
    constant = assemble("cooperrider", speed_mps=25.0, friction=0.3).bind(["track.curvature_1pm", "track.cant_rad"])(
        end
    )
    np.testing.assert_allclose(varying.equilibrium(), constant.equilibrium(), rtol=0.0, atol=1e-10)


def test_friction_of_an_air_spring_does_not_hinder_the_equilibrium():
    """A neutral state (dry friction holds any force) makes the Jacobian singular; it must stay where it was."""
    model = assemble(sample_vehicle.every_link(), speed_mps=30.0)
    at_rest = model.equilibrium()
    guess = at_rest.copy()
    loaded = model.index("berg.left.friction")
    guess[loaded] = 300.0
    y = model.equilibrium(guess)
    assert y[loaded] == 300.0
    assert np.abs(model.rhs(0.0, y)).max() < 1e-9 * 9.81
    assert abs(y[model.index("car_body.roll")] - at_rest[model.index("car_body.roll")]) > 1e-6
