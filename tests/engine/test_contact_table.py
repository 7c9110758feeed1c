"""Contact tables: the text format, the closed-form cone, and what the kernel makes of a table at run time."""

import dataclasses
import math

import numpy as np
import published_values as published
import pytest
import sample_vehicle
from scipy.interpolate import Akima1DInterpolator, CubicSpline
from scipy.spatial.transform import Rotation

from railsweep.engine.contact_table import (
    MINIMUM_RANGE_M,
    ContactTable,
    WheelTable,
    conical_table,
    load_contact_table,
    rigid_path,
    save_contact_table,
)
from railsweep.engine.errors import InputError
from railsweep.engine.model import ModelError, assemble
from railsweep.kernels.status import Status

COLUMNS = [f.name for f in dataclasses.fields(WheelTable)]

WHEELSET = """
name = "axle"
gravity_mps2 = {gravity}
[[wheelset]]
name = "axle"
mass_kg = 13600.0
inertia_roll_kgm2 = 700.0
inertia_pitch_kgm2 = 90.0
inertia_yaw_kgm2 = 700.0
position_m = [0.0, 0.0, {radius}]
rolling_radius_m = {radius}
half_spacing_m = {spacing}
"""


def axle(table, *, gravity=9.81, radius=0.425, spacing=0.75, friction=0.3, **options):
    """One wheelset alone on the rails."""
    text = WHEELSET.format(gravity=gravity, radius=radius, spacing=spacing)
    return assemble(sample_vehicle.read(text), contact=table, speed_mps=20.0, friction=friction, **options)


def points(model, **state):
    found = model.outputs(0.0, model.state(**{f"axle__{k}": v for k, v in state.items()})).points
    return {(p.side, p.number): p for p in found}


# --- RSGEO text -------------------------------------------------------------------------------------------------


def test_round_trip_is_exact(tmp_path):
    table = conical_table(conicity=0.07, step_m=4e-4)
    path = tmp_path / "cone.dat"
    save_contact_table(table, path)
    again = load_contact_table(path, interpolation="akima")
    np.testing.assert_array_equal(again.shift_m, table.shift_m)
    for name in COLUMNS:
        if name != "gap_m":
            np.testing.assert_array_equal(getattr(again.left, name), getattr(table.left, name), err_msg=name)
    assert again.interpolation == "akima"
    assert again.right is None
    second = tmp_path / "again.dat"
    save_contact_table(again, second)
    assert second.read_bytes() == path.read_bytes()


def test_several_blocks_round_trip(tmp_path):
    table = two_point_table()
    path = tmp_path / "two.dat"
    save_contact_table(table, path)
    again = load_contact_table(path)
    assert again.points == 2
    np.testing.assert_array_equal(again.left.angle_rad, table.left.angle_rad)


def test_different_wheels_do_not_fit_the_format(tmp_path):
    table = conical_table()
    with pytest.raises(InputError, match="different wheels"):
        save_contact_table(dataclasses.replace(table, right=table.left), tmp_path / "no.dat")
    assert not (tmp_path / "no.dat").exists()


def test_published_table_reads(published_table_path):
    """Facts about the file that the specification states (8.1, 2.8, 8.2)."""
    table = load_contact_table(published_table_path)
    assert table.shift_m.size == 3402
    assert table.points == 1
    assert table.shift_m[0] == pytest.approx(-0.017)
    assert table.shift_m[-1] == pytest.approx(0.01701)
    assert table.centre_radius_m == pytest.approx(0.4248829, abs=5e-8)
    shorter = (table.left.axis_rolling_m < table.left.axis_lateral_m).sum()
    assert shorter == 597


def lines_of(tmp_path, **options):
    path = tmp_path / "cone.dat"
    save_contact_table(conical_table(step_m=1e-3, range_m=0.01, **options), path)
    return path, path.read_text().splitlines()


def refused(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        load_contact_table(path)
    assert str(path) in str(error.value) or path.name in str(error.value)
    assert error.value.allowed
    return str(error.value)


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e999"])
def test_numbers_that_are_not_finite(tmp_path, word):
    path, lines = lines_of(tmp_path)
    lines[5] = " ".join([*lines[5].split()[:4], word, *lines[5].split()[5:]])
    message = refused(path, "\n".join(lines))
    assert "line 6" in message
    assert "not finite" in message


def test_decimal_comma(tmp_path):
    path, lines = lines_of(tmp_path)
    message = refused(path, "\n".join(lines).replace(".", ","))
    assert "line 3" in message
    assert "decimal comma" in message


@pytest.mark.parametrize(("drop", "count"), [(1, 12), (-1, 14)])
def test_wrong_number_of_columns(tmp_path, drop, count):
    path, lines = lines_of(tmp_path)
    lines[7] = lines[7].rsplit(" ", 1)[0] if drop > 0 else lines[7] + " 0.0"
    message = refused(path, "\n".join(lines))
    assert "line 8" in message
    assert f"{count} columns" in message
    assert "13 numbers" in message


def test_unsorted_uneven_and_repeated_shifts(tmp_path):
    path, lines = lines_of(tmp_path)
    swapped = [*lines[:6], lines[7], lines[6], *lines[8:]]
    assert "not increasing" in refused(path, "\n".join(swapped))
    assert "not increasing" in refused(path, "\n".join([*lines[:6], lines[6], *lines[6:]]))
    assert "uneven" in refused(path, "\n".join([*lines[:6], *lines[7:]]))


def test_too_narrow(tmp_path):
    path, lines = lines_of(tmp_path)
    middle = 2 + 10
    message = refused(path, "\n".join([*lines[:2], *lines[middle - 3 : middle + 4]]))
    assert "too narrow" in message
    assert f"{MINIMUM_RANGE_M * 1e3:g} mm" in message
    one_sided = refused(path, "\n".join([*lines[:2], *lines[middle - 1 :]]))
    assert "too narrow" in one_sided


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "holds no rows"),
        ("#\n#\n", "holds no rows"),
        (b"\xff\xfe\x00\x01", "not text"),
        ("1 2 3\n", "3 columns"),
        ("\n".join(" ".join(["0"] * 13) for _ in range(3)), "3 lateral shifts"),
    ],
)
def test_files_that_are_no_table(tmp_path, content, expected):
    assert expected in refused(tmp_path / "bad.dat", content)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (2, "1.6", "90 degrees"),
        (3, "-1e-3", "axis_rolling_m"),
        (5, "0.0", "wheel_lateral_m"),
        (6, "-0.4", "rolling_radius_m"),
        (11, "0.0", "penetration_m"),
        (8, "-2.0", "c22"),
        (1, "0.0", "no contact point carries force"),
    ],
)
def test_impossible_values(tmp_path, column, value, expected):
    path, lines = lines_of(tmp_path)
    words = lines[9].split()
    words[column] = value
    lines[9] = " ".join(words)
    assert expected in refused(path, "\n".join(lines))


def test_blocks_must_agree(tmp_path):
    path, lines = lines_of(tmp_path)
    assert "equal length" in refused(path, "\n".join([*lines, *lines[:-2]]))
    moved = [" ".join([repr(float(line.split()[0]) + 1e-4), *line.split()[1:]]) for line in lines[2:] if line]
    assert "different shifts" in refused(path, "\n".join([*lines, "#", *moved]))


@pytest.mark.parametrize("path", ["no/such/file.dat", ".", "null\0character.dat"])
def test_paths_that_cannot_be_read(path):
    with pytest.raises(InputError, match="cannot be read"):
        load_contact_table(path)


def test_endless_files_are_not_read(monkeypatch, tmp_path):
    monkeypatch.setattr("railsweep.engine.contact_table.MAXIMUM_BYTES", 1000)
    assert "at most 1000 bytes" in refused(tmp_path / "long.dat", "1 " * 1000)
    with pytest.raises(InputError, match="at most 1000 bytes"):
        load_contact_table("/dev/zero")


def test_unknown_interpolation():
    with pytest.raises(InputError, match=r"'quintic'.*cubic, linear, akima"):
        conical_table(interpolation="quintic")


# --- the closed-form cone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("angle", "expected"), published.CONE_ON_CIRCLE.items())
def test_cone_on_circle_against_closed_forms(angle, expected):
    """Radius difference, roll and lift over the shift: derivatives at the centre are lambda, sigma and zeta."""
    half = published.CONE_TRACK_GAUGE_M / 2.0
    table = conical_table(
        conicity=math.tan(angle),
        rolling_radius_m=published.CONE_WHEEL_RADIUS_M,
        half_spacing_m=half,
        rail_radius_m=published.CONE_RAIL_RADIUS_M,
        range_m=0.006,
        step_m=1e-4,
    )
    y = table.shift_m
    middle = y.size // 2
    radius = table.left.rolling_radius_m[0]
    slope = CubicSpline(y, radius - radius[::-1])(0.0, 1) / 2.0
    roll = CubicSpline(y, table.roll_rad)(0.0, 1) * half
    zeta = CubicSpline(y[middle - 20 : middle + 21], table.lift_m[middle - 20 : middle + 21])(0.0, 2)
    lam, sigma, bend = expected
    # six printed digits: half a unit of the last
    assert slope == pytest.approx(lam, abs=1e-6)
    assert roll == pytest.approx(sigma, abs=1e-6)
    assert zeta == pytest.approx(bend, abs=3e-6)
    # the exact conical limits of (A.5), (A.7) and (A.8), beyond the printed digits
    s, c = math.sin(angle), math.cos(angle)
    arm = half * c - published.CONE_WHEEL_RADIUS_M * s
    reach = half + published.CONE_RAIL_RADIUS_M * s
    assert slope == pytest.approx(s * reach / arm, rel=1e-7)
    assert roll == pytest.approx(half * s / arm, rel=1e-7)
    assert zeta == pytest.approx(s / arm + s * reach / (c * arm**2), rel=1e-5)


def test_cone_touches_both_rails():
    """Every tabulated point lies on its rail circle, with the common tangent of cone and circle."""
    table = conical_table(conicity=0.2, rail_radius_m=0.3, rolling_radius_m=0.46)
    cone = math.atan(0.2)
    for y, z, roll, a, r in zip(
        table.shift_m,
        table.lift_m,
        table.roll_rad,
        table.left.wheel_lateral_m[0],
        table.left.rolling_radius_m[0],
        strict=True,
    ):
        turn = np.array([[math.cos(roll), -math.sin(roll)], [math.sin(roll), math.cos(roll)]])
        at = np.array([y, z + 0.46]) + turn @ [a, -r]
        centre = np.array([0.75 + 0.3 * math.sin(cone), -0.3 * math.cos(cone)])
        normal = (at - centre) / 0.3
        assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
        # the normal of the cone's line, turned with the wheelset
        assert normal @ turn @ [math.cos(cone), math.sin(cone)] == pytest.approx(0.0, abs=1e-12)


def test_cylinder_neither_lifts_nor_rolls():
    table = conical_table(conicity=0.0)
    assert np.abs(table.lift_m).max() < 1e-15
    assert np.abs(table.roll_rad).max() < 1e-15
    np.testing.assert_allclose(table.left.rolling_radius_m, 0.425, atol=1e-15)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("conicity", -0.1),
        ("conicity", math.nan),
        ("conicity", 3.0),
        ("rail_radius_m", 0.0),
        ("rolling_radius_m", math.inf),
        ("wheel_load_n", -5.0),
        ("step_m", 0.0),
        ("step_m", 1e-12),
        ("range_m", 1e-4),
        ("poisson_ratio", 0.7),
    ],
)
def test_impossible_cones(key, value):
    with pytest.raises(InputError):
        conical_table(**{key: value})


def test_integrated_path_equals_the_exact_one():
    """Without lift and roll in the table they are integrated from the contact angles, to the order of the step."""
    table = conical_table(conicity=0.1, step_m=1e-4)
    bare = dataclasses.replace(table, lift_m=None, roll_rad=None)
    lift, roll = rigid_path(bare)
    np.testing.assert_allclose(lift, table.lift_m, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(roll, table.roll_rad, rtol=0.0, atol=1e-8)


# --- the kernel on a table --------------------------------------------------------------------------------------


@pytest.mark.parametrize("conicity", [0.02, 0.1, 0.4])
def test_penetration_grows_with_the_sine_of_the_angle(conicity):
    """dq/dy = s sin(delta), dq/dz = -cos(delta), dq/droll = -s (a cos(delta) - r sin(delta)) on the rigid path."""
    table = conical_table(conicity=conicity, rolling_radius_m=0.425)
    model = axle(table)
    h = 1e-6
    for k in (40, 200, 400, 555, 760):
        y, z, roll = table.shift_m[k], table.lift_m[k], table.roll_rad[k]

        def q(dy=0.0, dz=0.0, droll=0.0, y=y, z=z, roll=roll):
            found = points(model, y=y + dy, z=z + dz, roll=roll + droll)
            return np.array([found["left", 0].penetration_m, found["right", 0].penetration_m])

        here = points(model, y=y, z=z, roll=roll)
        for i, (side, s) in enumerate((("left", 1.0), ("right", -1.0))):
            p = here[side, 0]
            delta = p.angle_rad
            # both wheels keep the static penetration on the path
            assert p.penetration_m == pytest.approx(table.left.penetration_m[0, 400], rel=1e-9)
            slope = ((q(dy=h) - q(dy=-h)) / (2 * h))[i]
            assert slope == pytest.approx(s * math.sin(delta + s * roll), rel=1e-4)
            assert ((q(dz=h) - q(dz=-h)) / (2 * h))[i] == pytest.approx(-math.cos(delta + s * roll), rel=1e-9)
            arm = p.lever_m * math.cos(delta) - p.rolling_radius_m * math.sin(delta)
            assert ((q(droll=h) - q(droll=-h)) / (2 * h))[i] == pytest.approx(-s * arm, rel=1e-8)


def test_hertz_force_and_growing_patch():
    table = conical_table()
    model = axle(table)
    q0, n0 = table.left.penetration_m[0, 400], table.left.normal_force_n[0, 400]
    a0, b0 = table.left.axis_rolling_m[0, 400], table.left.axis_lateral_m[0, 400]
    cosine = math.cos(math.atan(0.05))
    for share in (0.1, 1.0, 2.5):
        p = points(model, z=(1.0 - share) * q0 / cosine)["left", 0]
        assert p.penetration_m == pytest.approx(share * q0, rel=1e-9)
        assert p.normal_n == pytest.approx(n0 * share**1.5, rel=1e-9)
        assert p.axis_rolling_m == pytest.approx(a0 * math.sqrt(share), rel=1e-9)
        assert p.axis_lateral_m == pytest.approx(b0 * math.sqrt(share), rel=1e-9)


@pytest.mark.parametrize("creep_law", ["linear", "shen-hedrick-elkins", "polach", "fastsim"])
@pytest.mark.parametrize("formulation", ["physics", "dytsi"])
def test_lift_off_gives_no_force(creep_law, formulation):
    model = axle(conical_table(), creep_law=creep_law, formulation=formulation)
    high = {"axle__z": 5e-3, "axle__y_dot": 0.3, "axle__yaw": 2e-3, "axle__spin": 1.0}
    outputs = model.outputs(0.0, model.state(**high))
    for p in outputs.points:
        assert p.penetration_m < 0.0
        assert (p.normal_n, p.tangent_x_n, p.tangent_y_n, *p.force_n) == (0.0,) * 6
    assert not outputs.forces["contact"]["axle"].any()
    assert set(outputs.y_over_q) == {"axle.left", "axle.right"}
    assert all(math.isnan(v) for v in outputs.y_over_q.values())
    assert model.rhs(0.0, model.state(**high))[model.index("axle.z_dot")] == -9.81


def test_one_wheel_lifts():
    model = axle(conical_table())
    found = points(model, roll=1e-3)  # left up by 0.75 mm
    assert found["left", 0].normal_n == 0.0
    assert found["right", 0].normal_n > 0.0


def test_force_is_continuous_at_lift_off():
    model = axle(conical_table())
    q0 = points(model)["left", 0].penetration_m
    cosine = math.cos(math.atan(0.05))
    for beyond in (1e-9, 1e-12):
        assert points(model, z=(q0 - beyond) / cosine)["left", 0].normal_n < 1e11 * (2 * beyond) ** 1.5
        assert points(model, z=(q0 + beyond) / cosine)["left", 0].normal_n == 0.0


@pytest.mark.parametrize("formulation", ["physics", "dytsi"])
@pytest.mark.parametrize("y", [0.0201, -0.0201, 1.0, -1e9, math.inf, math.nan])
def test_out_of_range_is_derailment(formulation, y):
    model = axle(conical_table(range_m=0.02), formulation=formulation)
    state = np.zeros(model.n)
    state[model.index("axle.y")] = y
    for call in (model.rhs, model.jacobian, model.outputs):
        with pytest.raises(ModelError, match="derail") as error:
            call(0.0, state)
        assert error.value.status == Status.DERAILED


def test_the_ends_of_the_table_belong_to_it():
    model = axle(conical_table(range_m=0.02))
    for y in (0.02, -0.02):
        assert np.isfinite(model.rhs(0.0, model.state(axle__y=y))).all()


def bumpy(interpolation):
    """A cone whose rolling radius carries a ripple that interpolations see differently."""
    table = conical_table(step_m=1e-3, range_m=0.01, interpolation=interpolation)
    ripple = 1e-3 * np.sin(1.7 * np.arange(table.shift_m.size))
    wheel = dataclasses.replace(table.left, rolling_radius_m=table.left.rolling_radius_m + ripple)
    return dataclasses.replace(table, left=wheel)


@pytest.mark.parametrize("interpolation", ["linear", "cubic", "akima"])
def test_interpolation_between_nodes(interpolation):
    table = bumpy(interpolation)
    model = axle(table)
    x, r = table.shift_m, table.left.rolling_radius_m[0]
    law = {
        "linear": lambda u: np.interp(u, x, r),
        "cubic": CubicSpline(x, r, bc_type="natural"),
        "akima": Akima1DInterpolator(x, r),
    }[interpolation]
    for y in np.linspace(-0.00999, 0.00999, 41):
        found = points(model, y=y)
        # the left wheel looks up +y, the right wheel -y
        assert found["left", 0].rolling_radius_m == pytest.approx(float(law(y)), abs=1e-12)
        assert found["right", 0].rolling_radius_m == pytest.approx(float(law(-y)), abs=1e-12)
        assert found["left", 0].shift_m == pytest.approx(y)
        assert found["right", 0].shift_m == pytest.approx(-y)


def test_wheels_of_different_shape():
    """A left and a right table of their own: each wheel reads its own, over the shift towards its own rail."""
    left, right = conical_table(conicity=0.05), conical_table(conicity=0.08)
    table = dataclasses.replace(left, right=right.left, lift_m=None, roll_rad=None)
    found = points(axle(table), y=0.003)
    assert found["left", 0].angle_rad == pytest.approx(math.atan(0.05))
    assert found["right", 0].angle_rad == pytest.approx(math.atan(0.08))
    assert found["right", 0].rolling_radius_m == pytest.approx(
        np.interp(-0.003, right.shift_m, right.left.rolling_radius_m[0])
    )


@pytest.mark.parametrize("curvature", [0.0, 1 / 250.0, -1 / 250.0])
def test_creepages_are_the_slip_of_the_contact_point(curvature):
    """Against the velocity of the material point of the wheel in space; both shrink with the motion.

    Exact: v = V x + w_frame x r + (y', z') + w x arm, spin = w . n, along axes turned with the wheelset. The creepages
    are written for small angles, so the difference is of second order.
    """
    speed, cone = 20.0, math.atan(0.1)
    table = conical_table(conicity=0.1)
    rng = np.random.default_rng(31)
    base = {
        key: rng.uniform(-1.0, 1.0) * size
        for key, size in {
            "y": 4e-3, "y_dot": 0.2, "z": 1e-5, "z_dot": 0.02, "roll": 1e-5, "roll_dot": 0.1, "spin": 0.3,
            "yaw": 6e-3, "yaw_dot": 0.1,
        }.items()
    }  # fmt: skip
    errors, sizes = [], []
    for size in (1.0, 0.1):
        x = {key: size * value for key, value in base.items()}
        # near the path on which both wheels touch
        x["z"] += np.interp(x["y"], table.shift_m, table.lift_m)
        x["roll"] += np.interp(x["y"], table.shift_m, table.roll_rad)
        bound = axle(table).bind(["track.curvature_1pm", "speed_mps"])([size * curvature, speed])
        found = points(bound, **x)
        frame = np.array([0.0, 0.0, -speed * size * curvature])
        turn = Rotation.from_euler("x", x["roll"]) * Rotation.from_euler("z", x["yaw"])
        axle_spin = turn.apply([0.0, speed / table.centre_radius_m + x["spin"], 0.0])
        omega = frame + np.array([x["roll_dot"], 0.0, x["yaw_dot"]]) + axle_spin
        for side, s in (("left", 1.0), ("right", -1.0)):
            p = found[side, 0]
            assert p.normal_n > 0.0
            arm = turn.apply([0.0, s * p.lever_m, -p.rolling_radius_m])
            centre = np.array([0.0, x["y"], table.centre_radius_m + x["z"]])
            velocity = np.array([speed, x["y_dot"], x["z_dot"]]) + np.cross(frame, centre) + np.cross(omega, arm)
            along = turn.apply([1.0, 0.0, 0.0])
            across = turn.apply([0.0, math.cos(cone), s * math.sin(cone)])
            normal = turn.apply([0.0, -s * math.sin(cone), math.cos(cone)])
            exact = np.array([velocity @ along, velocity @ across, omega @ normal]) / speed
            errors.append(np.abs(exact - [p.creep_x, p.creep_y, p.creep_spin_1pm]))
            sizes.append(np.abs(exact))
    errors, sizes = np.array(errors), np.array(sizes)
    assert (errors[:2].max(axis=0) < 0.03 * sizes[:2].max(axis=0)).all(), (errors, sizes)
    assert (errors[2:].max(axis=0) < 0.02 * errors[:2].max(axis=0) + 1e-12).all(), errors


# --- several contact points -------------------------------------------------------------------------------------


def two_point_table(gap=None):
    """A cone with a second point on the flange side: alike, steeper, and open by a gap that closes with the shift."""
    one = conical_table(conicity=0.05, step_m=1e-4, range_m=0.01)
    columns = {}
    for name in COLUMNS:
        column = getattr(one.left, name)
        if column is not None:
            columns[name] = np.concatenate([column, column])
    columns["angle_rad"][1] = 0.3
    columns["wheel_lateral_m"][1] += 0.03
    opening = np.zeros((2, one.shift_m.size))
    if gap is None:
        gap = np.maximum(0.0, 4e-3 - one.shift_m) * 0.3
    opening[1] = gap
    return dataclasses.replace(one, left=WheelTable(**{**columns, "gap_m": opening}))


def test_two_points_share_the_load():
    """Alike and both touching, two points carry half each; a point open by more than the penetration carries none."""
    table = two_point_table(gap=0.0)
    same = {name: getattr(table.left, name).copy() for name in COLUMNS}
    same["angle_rad"][1] = same["angle_rad"][0]
    same["wheel_lateral_m"][1] = same["wheel_lateral_m"][0]
    model = axle(dataclasses.replace(table, left=WheelTable(**same)))
    model_one = axle(conical_table(conicity=0.05, step_m=1e-4, range_m=0.01))
    found = {(p.side, p.number): p.normal_n for p in model.outputs(0.0, model.equilibrium()).points}
    alone = {(p.side, p.number): p.normal_n for p in model_one.outputs(0.0, model_one.equilibrium()).points}
    assert len(found) == 4
    for side in ("left", "right"):
        assert found[side, 0] == pytest.approx(found[side, 1], rel=1e-12)
        assert found[side, 0] + found[side, 1] == pytest.approx(alone[side, 0], rel=1e-6)


def test_a_gap_opens_and_closes_the_second_point():
    model = axle(two_point_table())
    far = points(model, y=0.0)
    assert far["left", 1].normal_n == 0.0
    assert far["left", 0].normal_n > 0.0
    near = points(model, y=0.0045)
    assert near["left", 1].normal_n > 0.0
    # the right wheel went the other way
    assert near["right", 1].normal_n == 0.0
    outputs = model.outputs(0.0, model.state(axle__y=0.0045))
    assert outputs.q_n["axle.left"] == pytest.approx(sum(p.force_n[2] for p in outputs.points if p.side == "left"))
    total = np.sum([p.force_n for p in outputs.points], axis=0)
    np.testing.assert_allclose(outputs.forces["contact"]["axle"][:3], total, rtol=1e-12)


@pytest.mark.parametrize("creep_law", ["linear", "shen-hedrick-elkins", "polach", "fastsim"])
@pytest.mark.parametrize("interpolation", ["cubic", "akima", "linear"])
@pytest.mark.parametrize("formulation", ["physics", "dytsi"])
def test_a_point_that_does_not_exist_never_pulls(creep_law, interpolation, formulation):
    """Where a point fades out its force is at most zero in the table; a spline that overshoots must not pull."""
    table = two_point_table(gap=0.0)
    columns = {name: getattr(table.left, name).copy() for name in COLUMNS}
    absent = table.shift_m < 2.05e-3
    for name in ("normal_force_n", "axis_rolling_m", "axis_lateral_m", "penetration_m"):
        columns[name][1, absent] = 0.0
    table = dataclasses.replace(table, left=WheelTable(**columns), interpolation=interpolation)
    model = axle(table, creep_law=creep_law, formulation=formulation)
    seen = set()
    for y in np.linspace(-2e-3, 4e-3, 301):
        state = model.state(axle__y=y, axle__y_dot=0.05, axle__yaw=1e-3)
        assert np.isfinite(model.rhs(0.0, state)).all()
        for p in model.outputs(0.0, state).points:
            assert p.normal_n >= 0.0, (y, p.normal_n)
            if p.normal_n == 0.0:
                assert (p.tangent_x_n, p.tangent_y_n) == (0.0, 0.0)
            seen.add((p.number, p.normal_n > 0.0))
    assert {(1, True), (1, False)} <= seen


def test_record_refuses_wrong_shapes():
    table = conical_table(step_m=1e-3)
    with pytest.raises(InputError, match="c11 has shape"):
        dataclasses.replace(table, left=dataclasses.replace(table.left, c11=table.left.c11[:, 1:]))
    with pytest.raises(InputError, match="lift_m"):
        dataclasses.replace(table, lift_m=table.lift_m[:-1])
    nan = table.left.c23.copy()
    nan[0, 3] = math.nan
    with pytest.raises(InputError, match=r"right: c23 is not finite at shift -0\.017"):
        dataclasses.replace(table, right=dataclasses.replace(table.left, c23=nan))
    with pytest.raises(InputError, match="at least 4"):
        ContactTable(name="x", shift_m=table.shift_m[:3], left=table.left)


def test_a_table_for_other_wheels_is_refused():
    with pytest.raises(InputError, match=r"radius 0\.5 m, wheelset_ll has 0\.425 m"):
        assemble("cooperrider", contact=conical_table(rolling_radius_m=0.5), speed_mps=20.0)
