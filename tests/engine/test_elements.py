"""Every link type alone between two bodies, against its closed form; tabulated laws; the static preload."""

import dataclasses
import math

import numpy as np
import pytest
import sample_vehicle
from scipy.integrate import solve_ivp
from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator
from scipy.spatial.transform import Rotation

from railsweep.engine.errors import InputError
from railsweep.engine.model import ModelError, assemble
from railsweep.kernels import record as slot
from railsweep.kernels.status import Status

MASS, J_ROLL, J_PITCH, J_YAW = 1000.0, 400.0, 600.0, 900.0


def pair(link, *, lower=(0.0, 0.0, 0.0), upper=(0.0, 0.0, 0.0), gravity=0.0, extra="", dofs=None):
    """A base that is held and a body 1 m above it, joined by one link; body and base points from their centres."""
    return sample_vehicle.read(
        f"""
name = "pair"
gravity_mps2 = {gravity}
[[body]]
name = "base"
dofs = []
mass_kg = 1.0
inertia_roll_kgm2 = 1.0
inertia_pitch_kgm2 = 1.0
inertia_yaw_kgm2 = 1.0
position_m = [0.0, 0.0, 0.0]
[[body]]
name = "mass"
dofs = {dofs or ["y", "z", "roll", "pitch", "yaw"]}
mass_kg = {MASS}
inertia_roll_kgm2 = {J_ROLL}
inertia_pitch_kgm2 = {J_PITCH}
inertia_yaw_kgm2 = {J_YAW}
position_m = [0.0, 0.0, 1.0]
[[link]]
name = "it"
lower = {{ body = "base", point_m = {list(lower)} }}
upper = {{ body = "mass", point_m = {list(upper)} }}
{link}
{extra}
"""
    )


def model_of(link, **where):
    return assemble(pair(link, **where), speed_mps=10.0)


def view(model, **state):
    """(extension, rate, force) of the first element, and the wrench on the mass."""
    outputs = model.outputs(0.0, model.state(**{f"mass__{k}": v for k, v in state.items()}))
    link = outputs.links[0]
    return link.extension, link.rate, link.force, outputs.forces["suspension"]["mass"]


# --- springs and dampers along an axis --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "coordinate", "component", "reach"),
    [("lateral", "y", 1, (0.0, 0.4, -1.0)), ("vertical", "z", 2, (0.0, 0.0, -0.3))],
)
@pytest.mark.parametrize("flip", [1.0, -1.0])
def test_directed_spring_and_damper(kind, coordinate, component, reach, flip):
    upper = [v * (flip if i == 1 else 1.0) for i, v in enumerate(reach)]
    link = f'type = "{kind}"\nstiffness_npm = 2.0e5\ndamping_nspm = 3.0e3\n' + (
        "preloaded = false" if kind == "vertical" else ""
    )
    model = model_of(link, upper=upper)
    extension, rate, force, wrench = view(model, **{coordinate: 0.01, f"{coordinate}_dot": -0.2})
    sign = flip if kind == "lateral" else 1.0
    assert extension == pytest.approx(sign * 0.01, rel=1e-12)
    assert rate == pytest.approx(-sign * 0.2, rel=1e-12)
    assert force == pytest.approx(2.0e5 * sign * 0.01 - 3.0e3 * sign * 0.2, rel=1e-12)
    assert wrench[component] == pytest.approx(-(2.0e5 * 0.01 - 3.0e3 * 0.2), rel=1e-12)
    others = [i for i in range(3) if i != component]
    assert np.abs(wrench[others]).max() < 1e-9


def test_longitudinal_spring_turns_the_body():
    """Nothing moves along the track, but the force at a lever y yaws and at a lever z pitches the body."""
    model = model_of('type = "longitudinal"\nstiffness_npm = 2.0e5\ndamping_nspm = 1.0e3', upper=(0.5, 0.8, -1.0))
    yaw = 1e-6
    _, _, force, wrench = view(model, yaw=yaw)
    assert force == pytest.approx(-2.0e5 * 0.8 * yaw, rel=1e-5)
    assert wrench[5] == pytest.approx(0.8 * force, rel=1e-5)
    rates = model.rhs(0.0, model.state(mass__yaw=yaw))
    assert rates[model.index("mass.yaw_dot")] == pytest.approx(-2.0e5 * 0.8**2 * yaw / J_YAW, rel=1e-5)
    pitch = model.rhs(0.0, model.state(mass__pitch=yaw))[model.index("mass.pitch_dot")]
    assert pitch == pytest.approx(-2.0e5 * 1.0**2 * yaw / J_PITCH, rel=1e-5)


def test_axes_of_a_directed_link_turn_with_its_lower_body():
    """The mass as LOWER body: extension along its own turned y axis, force and reaction at the upper point."""
    text = pair('type = "lateral"\nstiffness_npm = 2.0e5', lower=(0.1, 0.9, 1.4), upper=(0.2, 0.3, 0.1))
    link = text.links[0]
    swapped = dataclasses.replace(
        link,
        lower="mass",
        upper="base",
        lower_point_m=link.upper_point_m,
        upper_point_m=link.lower_point_m,
    )
    model = assemble(dataclasses.replace(text, links=(swapped,)), speed_mps=10.0)
    place, centre = np.array([0.1, 0.9, 1.4]), np.array([0.0, 0.0, 1.0])
    own = np.array([0.2, 0.3, 0.1])
    errors = []
    for size in (1e-3, 1e-4):
        roll, pitch, yaw = size * np.array([1.0, -0.7, 0.5])
        _, _, force, wrench = view(model, y=0.8 * size, z=-0.4 * size, roll=roll, pitch=pitch, yaw=yaw)
        turned = Rotation.from_rotvec([roll, pitch, yaw]).as_matrix()
        moved = centre + np.array([0.0, 0.8 * size, -0.4 * size])
        b = place - (moved + turned @ own)
        axis = turned[:, 1]
        expected = 2.0e5 * (axis @ b - (place - centre - own)[1])
        on_mass = np.concatenate([expected * axis, np.cross(place - moved, expected * axis)])
        errors.append(np.abs(wrench - on_mass).max() / abs(expected))
        assert force == pytest.approx(expected, rel=5.0 * size)
    assert errors[0] < 5e-3
    assert errors[1] < 0.15 * errors[0]


def test_vector_link_follows_its_points():
    upper = (0.3, 0.4, -0.5)
    model = model_of('type = "vector"\nstiffness_npm = 5.0e4\ndamping_nspm = 700.0', upper=upper)
    rest = np.array([0.3, 0.4, 0.5])
    moved, velocity = np.array([0.0, 0.05, -0.03]), np.array([0.0, 0.7, 0.2])
    extension, rate, force, wrench = view(model, y=0.05, z=-0.03, y_dot=0.7, z_dot=0.2)
    b = rest + moved
    length = np.linalg.norm(b)
    assert extension == pytest.approx(length - np.linalg.norm(rest), rel=1e-12)
    assert rate == pytest.approx(b @ velocity / length, rel=1e-12)
    assert force == pytest.approx(5.0e4 * extension + 700.0 * rate, rel=1e-12)
    np.testing.assert_allclose(wrench[:3], -force * b / length, rtol=1e-12)
    np.testing.assert_allclose(wrench[3:], np.cross(upper, -force * b / length), rtol=1e-9)


def test_traction_rod_is_a_vector_link():
    rod = model_of('type = "traction_rod"\nstiffness_npm = 5.0e4', upper=(1.2, 0.0, -0.9))
    vector = model_of('type = "vector"\nstiffness_npm = 5.0e4', upper=(1.2, 0.0, -0.9))
    y = sample_vehicle.disturbed(rod, np.random.default_rng(0))
    np.testing.assert_array_equal(rod.rhs(0.0, y), vector.rhs(0.0, y))


def test_flexicoil_is_equally_stiff_in_every_horizontal_direction():
    text = (
        'type = "flexicoil"\nstiffness_npm = 4.0e5\nshear_stiffness_npm = 1.5e5\nshear_damping_nspm = 900.0\n'
        "preloaded = false"
    )
    model = model_of(text, upper=(0.0, 0.0, -0.7))
    _, _, _, wrench = view(model, y=0.02, z=-0.01, y_dot=-0.3)
    assert wrench[1] == pytest.approx(-(1.5e5 * 0.02 - 900.0 * 0.3), rel=1e-12)
    assert wrench[2] == pytest.approx(4.0e5 * 0.01, rel=1e-12)
    # pitch moves the upper point forward: the same stiffness acts along x
    _, _, _, tilted = view(model, pitch=1e-6)
    assert tilted[0] == pytest.approx(1.5e5 * 0.7e-6, rel=1e-6)
    assert not np.any(view(model)[3])


def test_flexicoil_with_tabulated_shear():
    text = (
        'type = "flexicoil"\nstiffness_npm = 4.0e5\npreloaded = false\n'
        "[link.shear_law]\ndisplacement_m = [0.0, 0.01, 0.05]\nforce_n = [0.0, 1000.0, 9000.0]"
    )
    model = model_of(text, upper=(0.0, 0.0, -0.7))
    for y, force in ((0.005, 500.0), (0.03, 5000.0), (-0.03, -5000.0)):
        assert view(model, y=y)[3][1] == pytest.approx(-force, rel=1e-12)


def test_bushing():
    text = 'type = "bushing"\nstiffness_npm = [1.0e6, 2.0e6, 3.0e6]\ndamping_nspm = [10.0, 20.0, 30.0]'
    model = model_of(text, lower=(0.2, 0.1, 1.0), upper=(0.2, 0.1, 0.0))
    _, _, _, wrench = view(model, y=1e-3, z=-2e-3, y_dot=0.1, z_dot=0.2)
    assert wrench[1] == pytest.approx(-(2.0e6 * 1e-3 + 20.0 * 0.1), rel=1e-9)
    assert wrench[2] == pytest.approx(-(-3.0e6 * 2e-3 + 30.0 * 0.2), rel=1e-9)
    _, _, _, turned = view(model, yaw=1e-6)
    assert turned[0] == pytest.approx(1.0e6 * 0.1 * 1e-6, rel=1e-4)
    assert turned[1] == pytest.approx(-2.0e6 * 0.2 * 1e-6, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "coordinate", "row"),
    [
        ('type = "yaw"', "yaw", 5),
        ('type = "anti_roll_bar"', "roll", 3),
        ('type = "torsion"\ndirection = "pitch"', "pitch", 4),
        ('type = "torsion"\ndirection = "roll"', "roll", 3),
        ('type = "torsion"\ndirection = "yaw"', "yaw", 5),
    ],
)
def test_torsion(text, coordinate, row):
    model = model_of(text + "\nstiffness_nmprad = 3.0e4\ndamping_nmsprad = 200.0", upper=(0.3, 0.2, 0.1))
    _, _, moment, wrench = view(model, **{coordinate: 2e-3, f"{coordinate}_dot": -0.05}, y=0.01, z=0.02)
    assert moment == pytest.approx(3.0e4 * 2e-3 - 200.0 * 0.05, rel=1e-12)
    assert wrench[row] == pytest.approx(-moment, rel=1e-12)
    assert np.abs(np.delete(wrench, row)).max() == 0.0


@pytest.mark.parametrize("gap", [0.0, 0.02])
def test_bump_stop(gap):
    model = model_of(
        f'type = "bump_stop"\ndirection = "lateral"\ngap_m = {gap}\nstiffness_npm = 1.0e6', upper=(0.0, 0.0, -1.0)
    )
    for y in (-0.05, -0.02, -0.019, 0.0, 0.01, 0.02, 0.021, 0.5):
        beyond = max(0.0, abs(y) - gap)
        assert view(model, y=y)[3][1] == pytest.approx(-math.copysign(1.0e6 * beyond, y), rel=1e-9, abs=1e-9)
        outputs = model.outputs(0.0, model.state(mass__y=y))
        assert outputs.clearances_m["it"] == pytest.approx(gap - abs(y), abs=1e-15)


def test_one_way_stops_left_and_right_are_mirror_images():
    """A law that pushes one way only, at points without any distance: each copy pushes towards the middle."""
    text = (
        'type = "bump_stop"\ndirection = "lateral"\nfor_each = ["side"]\n'
        "[link.spring_law]\ndisplacement_m = [-0.1, 0.0, 0.1]\nforce_n = [-5.0e4, 0.0, 0.0]"
    )
    model = model_of(text, lower=(0.0, 0.3, 1.0), upper=(0.0, 0.3, 0.0))
    for y in (0.01, -0.01):
        outputs = model.outputs(0.0, model.state(mass__y=y))
        forces = {link.name: link.on_upper[1] for link in outputs.links}
        pushing, idle = ("it.right", "it.left") if y > 0.0 else ("it.left", "it.right")
        assert forces[pushing] == pytest.approx(-math.copysign(5.0e3, y), rel=1e-12)
        assert forces[idle] == 0.0


def test_coulomb_friction():
    model = model_of(
        'type = "friction"\ndirection = "lateral"\nforce_n = 800.0\nvelocity_mps = 0.01', upper=(0.0, 0.5, -1.0)
    )
    for v in (-0.5, -0.01, 0.0, 0.003, 0.02, 3.0):
        assert view(model, y_dot=v, y=0.04)[3][1] == pytest.approx(-800.0 * math.tanh(v / 0.01), rel=1e-12, abs=1e-12)


# --- elements with memory ---------------------------------------------------------------------------------------


def test_maxwell_relaxes_with_its_time_constant():
    """A step held for t: f = k e exp(-k t / c)."""
    k, c = 3.0e5, 2.0e4
    text = f'type = "maxwell"\ndirection = "lateral"\nstiffness_npm = {k}\ndamping_nspm = {c}'
    model = model_of(text, upper=(0.0, 0.5, -1.0))
    y0 = model.state(mass__y=0.01)
    held = [model.index("it.series")]

    def rate(t, x):
        state = y0.copy()
        state[held] = x
        return model.rhs(t, state)[held]

    times = np.array([0.0, 0.02, 0.1, 0.3])
    found = solve_ivp(rate, (0.0, 0.3), [0.0], t_eval=times, rtol=1e-10, atol=1e-14)
    for t, x in zip(times, found.y[0], strict=True):
        y0[held] = x
        assert model.outputs(0.0, y0).links[0].force == pytest.approx(k * 0.01 * math.exp(-k * t / c), rel=1e-7)


def test_maxwell_harmonic_response():
    """Dynamic stiffness k i w c / (k + i w c) from the eigen-structure of the linear model."""
    k, c, omega = 3.0e5, 2.0e4, 21.0
    text = f'type = "maxwell"\ndirection = "vector"\nstiffness_npm = {k}\ndamping_nspm = {c}'
    model = model_of(text, upper=(0.0, 1.0, -1.0))
    jacobian = model.jacobian(0.0, np.zeros(model.n))
    y, v, x = (model.index(n) for n in ("mass.y", "mass.y_dot", "it.series"))
    internal = jacobian[x, y] / (1j * omega - jacobian[x, x])
    dynamic = -MASS * (jacobian[v, y] + jacobian[v, x] * internal)
    assert dynamic == pytest.approx(k * 1j * omega * c / (k + 1j * omega * c), rel=1e-6)


def test_nishimura_stiffness_from_slow_to_fast():
    """K3 + K1 K2/(K1 + K2) held, K3 + K1 at once, and the transfer function in between."""
    k1, k2, k3, c = 5.0e5, 4.0e5, 3.0e4, 2.5e4
    text = (
        f'type = "air_spring_nishimura"\nbellows_stiffness_npm = {k1}\nreservoir_stiffness_npm = {k2}\n'
        f"area_stiffness_npm = {k3}\norifice_damping_nspm = {c}\npreloaded = false"
    )
    model = model_of(text, upper=(0.0, 0.0, -0.6))
    jacobian = model.jacobian(0.0, np.zeros(model.n))
    z, v, w = (model.index(n) for n in ("mass.z", "mass.z_dot", "it.reservoir"))
    for omega in (0.0, 1.0, 30.0, 1e7):
        internal = jacobian[w, z] / (1j * omega - jacobian[w, w])
        dynamic = -MASS * (jacobian[v, z] + jacobian[v, w] * internal)
        below = k2 + 1j * omega * c
        assert dynamic == pytest.approx(k3 + k1 * below / (k1 + below), rel=2e-6)


def berg(friction=0.0, length=0.004, exponent=1.8):
    return (
        'type = "air_spring_berg"\nelastic_stiffness_npm = 2.0e5\nviscous_stiffness_npm = 3.0e5\n'
        f"orifice_damping = 4.0e4\ndamping_exponent = {exponent}\nair_mass_kg = 50.0\npreloaded = false\n"
        f"friction_force_n = {friction}\nfriction_length_m = {length}"
    )


@pytest.mark.parametrize("exponent", [1.0, 1.8])
def test_berg_air_column(exponent):
    model = model_of(berg(exponent=exponent), upper=(0.0, 0.0, -0.6))
    y = model.state(mass__z=0.01)
    y[[model.index("it.air"), model.index("it.air_dot")]] = 0.004, -0.3
    rates = model.rhs(0.0, y)
    assert model.outputs(0.0, y).links[0].force == pytest.approx(2.0e5 * 0.01 + 3.0e5 * 0.006, rel=1e-12)
    assert rates[model.index("it.air")] == -0.3
    drag = -4.0e4 * 0.3**exponent
    assert rates[model.index("it.air_dot")] == pytest.approx((3.0e5 * 0.006 - drag) / 50.0, rel=1e-12)
    assert rates[model.index("it.friction")] == 0.0


def test_berg_friction_follows_the_loading_curve():
    """From rest F e / (z2 + e), either way; the limit is never passed."""
    limit, half = 900.0, 0.004
    model = model_of(berg(friction=limit, length=half), upper=(0.0, 0.0, -0.6))
    state = model.index("it.friction")

    def slope(e, h, direction):
        y = model.state(mass__z=e * direction, mass__z_dot=direction)
        y[state] = h[0]
        return [model.rhs(0.0, y)[state]]

    for direction in (1.0, -1.0):
        found = solve_ivp(slope, (0.0, 0.05), [0.0], args=(direction,), rtol=1e-10, atol=1e-9, dense_output=True)
        for e in (0.001, half, 0.05):
            expected = direction * limit * e / (half + e)
            assert found.sol(e)[0] == pytest.approx(expected, rel=1e-7)


# --- tabulated laws ---------------------------------------------------------------------------------------------

LAW_X = [-0.05, -0.02, -0.005, 0.0, 0.004, 0.03, 0.06]
LAW_Y = [-9.0e3, -2.0e3, -100.0, 0.0, 200.0, 2.5e3, 2.6e3]


def tabulated(interpolation, outside, *, kind="spring"):
    key = "displacement_m" if kind == "spring" else "velocity_mps"
    return (
        f'type = "lateral"\n[link.{kind}_law]\n{key} = {LAW_X}\nforce_n = {LAW_Y}\n'
        f'interpolation = "{interpolation}"\noutside = "{outside}"'
    )


def expected_law(interpolation):
    if interpolation == "linear":
        return lambda x: np.interp(x, LAW_X, LAW_Y)
    return {
        "cubic": lambda: CubicSpline(LAW_X, LAW_Y, bc_type="natural"),
        "akima": lambda: Akima1DInterpolator(LAW_X, LAW_Y),
        "monotone": lambda: PchipInterpolator(LAW_X, LAW_Y),
    }[interpolation]()


@pytest.mark.parametrize("interpolation", ["linear", "cubic", "akima", "monotone"])
@pytest.mark.parametrize("kind", ["spring", "damper"])
def test_tabulated_law(interpolation, kind):
    model = model_of(tabulated(interpolation, "stop", kind=kind), upper=(0.0, 0.5, -1.0))
    law = expected_law(interpolation)
    coordinate = "y" if kind == "spring" else "y_dot"
    for x in [*np.linspace(-0.05, 0.06, 57)[1:-1], *LAW_X[1:-1], LAW_X[0] + 1e-12, LAW_X[-1] - 1e-12]:
        force = view(model, **{coordinate: float(x)})[2]
        assert force == pytest.approx(float(law(x)), rel=1e-9, abs=1e-7)


@pytest.mark.parametrize("interpolation", ["linear", "cubic", "akima", "monotone"])
def test_outside_stop_and_extrapolate(interpolation):
    stop = model_of(tabulated(interpolation, "stop"), upper=(0.0, 0.5, -1.0))
    line = model_of(tabulated(interpolation, "extrapolate"), upper=(0.0, 0.5, -1.0))
    law = expected_law(interpolation)
    for end, beyond in ((LAW_X[0], -0.013), (LAW_X[-1], 0.021)):
        with pytest.raises(ModelError) as error:
            view(stop, y=end + beyond)
        assert error.value.status == Status.LAW_OUT_OF_RANGE
        h = 1e-7 * np.sign(beyond)
        slope = (law(end) - law(end - h)) / h
        assert view(line, y=end + beyond)[2] == pytest.approx(float(law(end) + slope * beyond), rel=1e-5)


def test_two_points_make_a_line_for_every_interpolation():
    for interpolation in ("linear", "cubic", "akima", "monotone"):
        text = (
            'type = "lateral"\n[link.spring_law]\ndisplacement_m = [-0.1, 0.1]\nforce_n = [-10.0, 30.0]\n'
            f'interpolation = "{interpolation}"'
        )
        assert view(model_of(text, upper=(0.0, 0.5, -1.0)), y=0.05)[2] == pytest.approx(20.0)


# --- static preload ---------------------------------------------------------------------------------------------


def table_top(springs, centre=(0.0, 0.0, 0.0), mass=MASS, gravity=9.81):
    """A body on vertical springs (x, y, stiffness or law text) over a base that is held."""
    text = f"""
name = "table"
gravity_mps2 = {gravity}
[[body]]
name = "base"
dofs = []
mass_kg = 1.0
inertia_roll_kgm2 = 1.0
inertia_pitch_kgm2 = 1.0
inertia_yaw_kgm2 = 1.0
position_m = [0.0, 0.0, 0.0]
[[body]]
name = "mass"
mass_kg = {mass}
inertia_roll_kgm2 = {J_ROLL}
inertia_pitch_kgm2 = {J_PITCH}
inertia_yaw_kgm2 = {J_YAW}
position_m = [0.0, 0.0, 1.0]
centre_of_mass_m = {list(centre)}
"""
    for i, (x, y, law) in enumerate(springs):
        stiffness = law if isinstance(law, str) else f"stiffness_npm = {law}"
        text += f"""
[[link]]
name = "spring{i}"
type = "vertical"
lower = {{ body = "base", point_m = [{x}, {y}, 0.2] }}
upper = {{ body = "mass", point_m = [{x}, {y}, -0.3] }}
{stiffness}
"""
    return sample_vehicle.read(text)


def preloads(model):
    return model.arrays.link[:, slot.PRELOAD].copy()


def test_preload_of_unequal_springs_and_off_centre_mass():
    """Against the statics of a rigid plate: F_i = k_i (u + y_i a - x_i b) with the sums of force and moments."""
    rng = np.random.default_rng(21)
    for _ in range(20):
        count = int(rng.integers(3, 8))
        at = rng.uniform(-1.0, 1.0, (count, 2))
        stiffness = rng.uniform(1e5, 1e6, count)
        centre = rng.uniform(-0.2, 0.2, 3)
        model = assemble(
            table_top([(*at[i].tolist(), float(stiffness[i])) for i in range(count)], centre.tolist()), speed_mps=10.0
        )
        arms = at - centre[:2]
        shape = np.column_stack([np.ones(count), arms[:, 1], -arms[:, 0]])
        matrix = shape.T @ (stiffness[:, None] * shape)
        motion = np.linalg.solve(matrix, [-MASS * 9.81, 0.0, 0.0])
        np.testing.assert_allclose(preloads(model), stiffness * (shape @ motion), rtol=1e-8, atol=1e-6)
        assert np.abs(model.rhs(0.0, np.zeros(model.n))).max() < 1e-9 * 9.81


def test_preload_through_two_levels_of_unlike_springs():
    """A plate on a plate, nothing symmetric: against the statics of both plates at once."""
    rng = np.random.default_rng(22)
    for _ in range(10):
        count = [int(rng.integers(3, 7)) for _ in range(2)]
        at = [rng.uniform(-1.0, 1.0, (n, 2)) for n in count]
        stiffness = [rng.uniform(1e5, 1e6, n) for n in count]
        centre = [rng.uniform(-0.3, 0.3, 3).tolist() for _ in range(2)]
        text = 'name = "stack"\n'
        for name, z, com, rest in (
            ("base", 0.0, [0.0, 0.0, 0.0], "dofs = []"),
            ("mid", 0.5, centre[0], ""),
            ("top", 1.5, centre[1], ""),
        ):
            text += f'[[body]]\nname = "{name}"\n{rest}\nmass_kg = {MASS}\nposition_m = [0.0, 0.0, {z}]\n'
            text += f"centre_of_mass_m = {com}\n"
            text += "".join(f"inertia_{a}_kgm2 = {J_ROLL}\n" for a in ("roll", "pitch", "yaw"))
        for level, (lower, upper) in enumerate((("base", "mid"), ("mid", "top"))):
            for i, (x, y) in enumerate(at[level].tolist()):
                text += f'[[link]]\nname = "spring{level}{i}"\ntype = "vertical"\n'
                text += f'lower = {{ body = "{lower}", point_m = [{x}, {y}, 0.1] }}\n'
                text += f'upper = {{ body = "{upper}", point_m = [{x}, {y}, -0.1] }}\n'
                text += f"stiffness_npm = {float(stiffness[level][i])}\n"
        model = assemble(sample_vehicle.read(text), speed_mps=10.0)

        def shape(level, body, at=at, centre=centre):
            arms = at[level] - np.array(centre[body][:2])
            return np.column_stack([np.ones(len(arms)), arms[:, 1], -arms[:, 0]])

        # unknowns: z, roll, pitch of mid and top; extension = upper end minus lower end
        gradient = np.vstack(
            [
                np.hstack([shape(0, 0), np.zeros((count[0], 3))]),
                np.hstack([-shape(1, 0), shape(1, 1)]),
            ]
        )
        springs = np.concatenate(stiffness)
        weight = -MASS * 9.81 * np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
        motion = np.linalg.solve(gradient.T @ (springs[:, None] * gradient), weight)
        np.testing.assert_allclose(preloads(model), springs * (gradient @ motion), rtol=1e-7, atol=1e-5)
        assert np.abs(model.rhs(0.0, np.zeros(model.n))).max() < 1e-9 * 9.81


def test_preload_of_nonlinear_springs():
    """Progressive springs of two kinds: the shares follow from one common sink."""
    law = "[link.spring_law]\ndisplacement_m = [{}]\nforce_n = [{}]\ninterpolation = {!r}"
    soft = law.format("-0.2, -0.1, -0.03, 0.0, 0.1", "-3.0e4, -6.0e3, -1.0e3, 0.0, 2.0e3", "monotone").replace("'", '"')
    stiff = law.format("-0.2, -0.02, 0.0, 0.1", "-4.0e4, -1.5e3, 0.0, 2.0e3", "linear").replace("'", '"')
    model = assemble(table_top([(1, 1, soft), (1, -1, soft), (-1, 1, stiff), (-1, -1, stiff)]), speed_mps=10.0)
    forces = preloads(model)
    # equal arms: the moments want equal shares, so each law is entered at its own depth
    np.testing.assert_allclose(forces, -MASS * 9.81 / 4.0, rtol=1e-9)
    offsets = model.arrays.link[:, slot.OFFSET]
    soft_law = PchipInterpolator([-0.2, -0.1, -0.03, 0.0, 0.1], [-3.0e4, -6.0e3, -1.0e3, 0.0, 2.0e3])
    np.testing.assert_allclose(soft_law(offsets[:2]), forces[:2], rtol=1e-9)
    np.testing.assert_allclose(np.interp(offsets[2:], [-0.2, -0.02], [-4.0e4, -1.5e3]), forces[2:], rtol=1e-9)
    # at the nominal position the force is the preload, and the stiffness is the slope of the law down there
    assert np.abs(model.rhs(0.0, np.zeros(model.n))).max() < 1e-9 * 9.81
    slope = -MASS * model.jacobian(0.0, np.zeros(model.n))[model.index("mass.z_dot"), model.index("mass.z")]
    expected = 2.0 * float(soft_law(offsets[0], 1)) + 2.0 * (4.0e4 - 1.5e3) / 0.18
    assert slope == pytest.approx(expected, rel=1e-5)


def test_preload_through_two_levels_and_a_leaning_vector_spring():
    """The wagon's primary springs carry car and bogies; unequal bogies share by their levers."""
    model = assemble("cooperrider", speed_mps=10.0)
    share = {n: f for n, f in zip(model.layout.link_names, preloads(model), strict=True) if f != 0.0}
    assert len(share) == 12
    for name, force in share.items():
        weight = 44388.0 * 9.81 / 4 if name.startswith("secondary") else (44388.0 + 2 * 2918.9) * 9.81 / 8
        assert force == pytest.approx(-weight, rel=1e-10)
    text = (
        'type = "vector"\npreloaded = true\nstiffness_npm = 2.0e5\nfor_each = ["side"]'
        "\n[[link]]\nname = 'pitch_holder'\ntype = 'torsion'\ndirection = 'pitch'\nstiffness_nmprad = 1.0"
        "\nlower = { body = 'base', point_m = [0, 0, 0] }\nupper = { body = 'mass', point_m = [0, 0, 0] }"
    )
    leaning = model_of(text, lower=(0.0, 1.0, 0.0), upper=(0.0, 0.6, -0.2), gravity=9.81)
    incline = 0.8 / math.hypot(0.4, 0.8)
    np.testing.assert_allclose(preloads(leaning)[:2], -MASS * 9.81 / 2.0 / incline, rtol=1e-9)


@pytest.mark.parametrize(
    ("springs", "direction"),
    [([], "z"), ([(0.5, 0.0, 1e5), (0.5, 1.0, 1e5)], "pitch"), ([(-1.0, 0.3, 1e5), (1.0, 0.3, 1e5)], "roll")],
)
def test_a_body_that_is_not_carried_is_refused(springs, direction):
    with pytest.raises(InputError, match=rf"mass is not carried in {direction}") as error:
        assemble(table_top(springs), speed_mps=10.0)
    assert "vehicle table" in str(error.value)


def test_a_law_too_weak_for_the_weight_is_refused():
    weak = "[link.spring_law]\ndisplacement_m = [-0.1, 0.1]\nforce_n = [-1000.0, 1000.0]"
    with pytest.raises(InputError, match="not carried"):
        assemble(table_top([(1, 1, weak), (1, -1, weak), (-1, 1, weak), (-1, -1, weak)]), speed_mps=10.0)


def test_no_gravity_no_preload():
    model = assemble(table_top([(1, 1, 1e5), (-1, 1, 2e5), (0, -1, 1e5)], gravity=0.0), speed_mps=10.0)
    assert not preloads(model).any()


def test_an_unloaded_spring_can_be_declared():
    """preloaded = false: the other springs carry everything and this one has no force in the nominal position."""
    springs = [(1, 1, 1e5), (1, -1, 1e5), (-1, 1, 1e5), (-1, -1, 1e5), (0, 0, "stiffness_npm = 9e5\npreloaded = false")]
    forces = preloads(assemble(table_top(springs), speed_mps=10.0))
    np.testing.assert_allclose(forces, [-MASS * 9.81 / 4] * 4 + [0.0], rtol=1e-9)
