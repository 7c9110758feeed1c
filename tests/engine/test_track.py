"""The track: conversions, transitions, and the motion of its frame against three-dimensional kinematics."""

import dataclasses
import math

import numpy as np
import pytest
import sample_vehicle
from scipy.integrate import quad, solve_ivp
from scipy.spatial.transform import Rotation

from railsweep.engine.contact_table import conical_table
from railsweep.engine.errors import InputError
from railsweep.engine.model import assemble
from railsweep.engine.track import Segment, Track, cant_angle
from railsweep.kernels import record as slot
from railsweep.kernels.track import track_at

SHAPES = ["clothoid", "bloss", "cosine"]


def at(track, s, speed=1.0):
    """(curvature, its rate, cant, its rate, its second rate) at arc length s."""
    return np.array(track_at(float(s), speed, track.packed()))


# --- description ------------------------------------------------------------------------------------------------


def test_cant_conversion():
    """spec A9: asin(c / 1500 mm), 110 mm = 0.0733992 rad."""
    assert cant_angle(110.0) == pytest.approx(0.073399221302151, rel=1e-14)
    assert cant_angle(-110.0) == -cant_angle(110.0)
    assert Track(cant_mm=150.0).cant_rad == pytest.approx(math.asin(0.1))


def test_either_hand():
    right, left = Track(radius_m=500.0, cant_mm=100.0), Track(radius_m=500.0, cant_mm=100.0, hand="left")
    assert right.curvature_1pm == 1 / 500.0
    assert right.cant_rad > 0.0  # the left, outer rail is raised
    assert (left.curvature_1pm, left.cant_rad) == (-right.curvature_1pm, -right.cant_rad)
    negative = Track(radius_m=-500.0, cant_mm=100.0)
    assert (negative.curvature_1pm, negative.cant_rad) == (left.curvature_1pm, left.cant_rad)


def test_straight_track():
    track = Track()
    assert (track.curvature_1pm, track.cant_rad, track.varies) == (0.0, 0.0, False)
    model = assemble("cooperrider", speed_mps=30.0)
    assert model.layout.header[slot.TRACK_KIND] == slot.TRACK_STRAIGHT


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"radius_m": 5.0}, "radius_m"),
        ({"radius_m": math.nan}, "radius_m"),
        ({"radius_m": "tight"}, "radius_m"),
        ({"radius_m": True}, "radius_m"),
        ({"cant_mm": 1000.0}, "cant_mm"),
        ({"cant_mm": math.nan}, "cant_mm"),
        ({"hand": "up"}, "hand"),
        ({"transition_m": -1.0}, "transition_m"),
        ({"transition_m": math.inf}, "transition_m"),
        ({"transition": "spiral"}, "transition"),
        ({"transition": "constant"}, "transition"),
        ({"radius_m": 500.0, "segments": (Segment(length_m=10.0),)}, "segments"),
    ],
)
def test_impossible_tracks(options, expected):
    with pytest.raises(InputError) as error:
        Track(**options)
    assert expected in error.value.where
    assert error.value.allowed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"length_m": 0.0}, "length_m"),
        ({"length_m": math.nan}, "length_m"),
        ({"length_m": 10.0, "curvature_1pm": (0.0, 1.0)}, "curvature_1pm"),
        ({"length_m": 10.0, "cant_rad": (0.0, math.nan)}, "cant_rad"),
        ({"length_m": 10.0, "shape": "blos"}, "did you mean 'bloss'"),
    ],
)
def test_impossible_segments(options, expected):
    with pytest.raises(InputError) as error:
        Segment(**options)
    assert expected in str(error.value)


# --- shapes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_transition_shape(shape):
    track = Track(radius_m=400.0, cant_mm=120.0, transition_m=80.0, transition=shape)
    for u in (-1.0, 0.0, 0.1, 0.35, 0.5, 0.9, 1.0, 3.0):
        inside = min(max(u, 0.0), 1.0)
        share = {
            "clothoid": inside,
            "bloss": 3 * inside**2 - 2 * inside**3,
            "cosine": (1 - math.cos(math.pi * inside)) / 2,
        }[shape]
        curvature, _, cant, _, _ = at(track, 80.0 * u)
        assert curvature == pytest.approx(share / 400.0, abs=1e-17)
        assert cant == pytest.approx(share * track.cant_rad, abs=1e-16)


@pytest.mark.parametrize("shape", SHAPES)
def test_rates_are_time_derivatives(shape):
    speed = 27.0
    track = Track(radius_m=400.0, cant_mm=120.0, hand="left", transition_m=80.0, transition=shape)
    h = 1e-4
    for t in np.linspace(-0.3, 3.6, 40):
        if min(abs(t), abs(t - 80.0 / speed)) < 2 * h:
            continue
        before, here, after = (at(track, speed * (t + d), speed) for d in (-h, 0.0, h))
        assert here[1] == pytest.approx((after[0] - before[0]) / (2 * h), rel=1e-5, abs=1e-10)
        assert here[3] == pytest.approx((after[2] - before[2]) / (2 * h), rel=1e-5, abs=1e-8)
        assert here[4] == pytest.approx((after[3] - before[3]) / (2 * h), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_transitions_are_continuous(shape):
    """Curvature and cant never jump; their rates do not either where the shape is smooth at its ends."""
    segments = (
        Segment(length_m=60.0, curvature_1pm=(0.0, 1 / 300.0), cant_rad=(0.0, 0.1), shape=shape),
        Segment(length_m=40.0, curvature_1pm=(1 / 300.0,) * 2, cant_rad=(0.1, 0.1), shape="constant"),
        Segment(length_m=70.0, curvature_1pm=(1 / 300.0, -1 / 500.0), cant_rad=(0.1, -0.05), shape=shape),
    )
    track = Track(segments=segments)
    assert track.varies
    assert (track.curvature_1pm, track.cant_rad) == (-1 / 500.0, -0.05)
    for joint in (0.0, 60.0, 100.0, 170.0):
        before, after = at(track, joint - 1e-9), at(track, joint + 1e-9)
        assert after[0] == pytest.approx(before[0], abs=1e-11)
        assert after[2] == pytest.approx(before[2], abs=1e-10)
        if shape != "clothoid":
            assert after[1] == pytest.approx(before[1], abs=1e-10)
            assert after[3] == pytest.approx(before[3], abs=1e-9)
    np.testing.assert_array_equal(at(track, -1e6)[[0, 2]], [0.0, 0.0])
    np.testing.assert_array_equal(at(track, 1e6)[[0, 2]], [-1 / 500.0, -0.05])
    assert at(track, 80.0)[0] == 1 / 300.0


def test_the_model_runs_from_the_transition_into_the_curve():
    """Each body meets the transition at its own place (`physics`); at the end the constant curve remains."""
    varying = assemble("cooperrider", track=Track(radius_m=600.0, cant_mm=90.0, transition_m=50.0), speed_mps=20.0)
    constant = assemble("cooperrider", track=Track(radius_m=600.0, cant_mm=90.0), speed_mps=20.0)
    straight = assemble("cooperrider", speed_mps=20.0)
    y = sample_vehicle.disturbed(varying, np.random.default_rng(0))
    np.testing.assert_allclose(varying.rhs(50.0, y), constant.rhs(0.0, y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(varying.rhs(-1.0, y), straight.rhs(0.0, y), rtol=1e-12, atol=1e-12)
    zero = np.zeros(varying.n)
    rates = varying.rhs(0.1, zero)  # s = 2 m: only the leading bogie is on the transition
    flat = straight.rhs(0.0, zero)
    assert rates[varying.index("bogie_leading.y_dot")] != flat[varying.index("bogie_leading.y_dot")]
    assert rates[varying.index("wheelset_tt.yaw_dot")] == flat[varying.index("wheelset_tt.yaw_dot")]


def test_published_program_feels_one_curvature_and_no_rates():
    """`dytsi`: inside a transition its equations are those of the constant curve of that moment (spec 2.2)."""
    track = Track(radius_m=600.0, cant_mm=90.0, transition_m=50.0, transition="bloss")
    varying = assemble("cooperrider", track=track, speed_mps=20.0, formulation="dytsi")
    y = sample_vehicle.disturbed(varying, np.random.default_rng(0))
    curvature, _, cant, _, _ = at(track, 20.0 * 1.3)
    straight = assemble("cooperrider", speed_mps=20.0, formulation="dytsi")
    momentary = straight.bind(["track.curvature_1pm", "track.cant_rad"])([curvature, cant])
    np.testing.assert_allclose(varying.rhs(1.3, y), momentary.rhs(0.0, y), rtol=1e-12, atol=1e-12)


# --- the frame against kinematics -------------------------------------------------------------------------------


class Rail:
    """The centre line in space: heading -integral of the curvature, cant about the tangent."""

    def __init__(self, track):
        self.track = track
        self.ends = np.unique(np.cumsum([0.0, *(s.length_m for s in track.segments)]))

    def heading(self, s):
        inner = [e for e in self.ends if min(0.0, s) < e < max(0.0, s)]
        return -quad(lambda x: at(self.track, x)[0], 0.0, s, points=inner or None, epsabs=1e-15, limit=200)[0]

    def path(self, stations):
        """Positions and headings at the (increasing) stations, from station 0."""

        def slope(s, x):
            return [math.cos(x[2]), math.sin(x[2]), -at(self.track, s)[0]]

        places = {}
        for direction in (1.0, -1.0):
            wanted = sorted((s for s in stations if direction * s >= 0.0), key=abs)
            x, here = np.zeros(3), 0.0
            for s in wanted:
                cuts = sorted((e for e in self.ends if min(here, s) < e < max(here, s)), key=abs)
                for stop in (*cuts, s):
                    if stop != here:
                        x = solve_ivp(slope, (here, stop), x, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
                        here = stop
                places[s] = x.copy()
        return places

    def frame(self, place, s):
        return Rotation.from_euler("z", place[2]) * Rotation.from_euler("x", at(self.track, s)[2])


BODY = """
name = "stone"
gravity_mps2 = 0.0
[[body]]
name = "stone"
mass_kg = 100.0
inertia_roll_kgm2 = 10.0
inertia_pitch_kgm2 = 20.0
inertia_yaw_kgm2 = 30.0
position_m = [0.0, 0.0, 2.0]
"""


def free_flight(track, speed, start, motion, stations):
    """Motion (y, z, roll, yaw) of a force-free body seen from the track frame, from exact kinematics.

    `motion` is the state relative to the frame at the start: y, y', z, z', roll, roll', pitch, pitch', yaw, yaw'.
    """
    rail = Rail(track)
    times = [start, *stations]
    places = rail.path(sorted({speed * t for t in times}))
    curvature, _, cant, cant_rate, _ = at(track, speed * start + 1e-12, speed)
    turn = np.array([cant_rate, -speed * curvature * math.sin(cant), -speed * curvature * math.cos(cant)])
    place = places[speed * start]
    frame = rail.frame(place, speed * start)
    offset = np.array([0.0, motion[0], 2.0 + motion[2]])
    relative = np.array([0.0, motion[1], motion[3]])
    position = np.array([*place[:2], 0.0]) + frame.apply(offset)
    velocity = frame.apply(np.array([speed, 0.0, 0.0]) + relative + np.cross(turn, offset))
    attitude = frame * Rotation.from_rotvec(motion[[4, 6, 8]])
    spin = frame.apply(motion[[5, 7, 9]] + turn)
    seen = []
    for t in stations:
        place = places[speed * t]
        frame = rail.frame(place, speed * t)
        local = frame.inv().apply(position + velocity * (t - start) - np.array([*place[:2], 0.0]))
        angles = (frame.inv() * Rotation.from_rotvec(spin * (t - start)) * attitude).as_rotvec()
        seen.append([local[1], local[2] - 2.0, *angles])
    return np.array(seen)


def computed_flight(track, speed, start, motion, stations):
    model = assemble(sample_vehicle.read(BODY), track=track, speed_mps=speed)
    ends = [e / speed for e in np.cumsum([0.0, *(s.length_m for s in track.segments)])]
    y, here, seen = motion.copy(), start, []
    for t in stations:
        # steps end at the joints, where the rates have corners
        for stop in (*(e for e in ends if here < e < t), t):
            y = solve_ivp(model.rhs, (here, stop), y, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
            here = stop
        seen.append(y[[0, 2, 4, 6, 8]])
    return np.array(seen)


def transition(size, shape, *, cant=(0.0, 0.12), curvature=(0.0, 1 / 300.0)):
    return Track(
        segments=(
            Segment(
                length_m=60.0,
                curvature_1pm=(size * curvature[0], size * curvature[1]),
                cant_rad=(size * cant[0], size * cant[1]),
                shape=shape,
            ),
        )
    )


@pytest.mark.parametrize(
    ("shape", "start"),
    [
        ("bloss", -0.3),
        ("cosine", -0.3),
        # the cant rate of a clothoid jumps at its ends; between them the equations must hold
        ("clothoid", 0.0),
    ],
)
def test_a_body_without_forces_flies_straight(shape, start):
    """The track-frame equations of a force-free body against its uniform motion in space.

    Terms of second order in curvature, cant and their rates are dropped, so the error falls by four when these are
    halved, while the motion itself halves. Velocities across the track are not small: 2 p' z' and 2 p' y' count.
    """
    speed = 20.0
    stations = [0.8, 1.9, 2.9] if shape == "clothoid" else [0.8, 1.9, 3.4]
    motion = np.array([0.05, 0.4, -0.02, 0.3, 0.0, 0.01, 0.0, 0.0, 0.0, -0.02])
    errors, sizes = [], []
    for size in (0.2, 0.1, 0.05):
        track = transition(size, shape)
        scaled = motion.copy()
        scaled[4:] *= size  # rotations are linearised: small ones
        exact = free_flight(track, speed, start, scaled, stations)
        found = computed_flight(track, speed, start, scaled, stations)
        straight = free_flight(transition(0.0, shape), speed, start, scaled, stations)
        errors.append(np.abs(found - exact).max(axis=0)[[0, 1, 2, 4]])
        sizes.append(np.abs(exact - straight).max(axis=0)[[0, 1, 2, 4]])
    errors, sizes = np.array(errors), np.array(sizes)
    # the roll over a constant cant rate is the same as without: nothing to compare its error with
    compared = [0, 1, 3] if shape == "clothoid" else [0, 1, 2, 3]
    assert (errors[0] < 0.1 * sizes[0])[compared].all()
    assert (errors[1:] < 0.3 * errors[:-1]).all(), errors
    assert (sizes[1:] > 0.4 * sizes[:-1])[:, compared].all()


def test_pitch_and_yaw_of_the_frame_on_canted_track():
    """At a large constant cant a weak curve turns the frame about its own y and z: (v c sin p)', (v c cos p)'."""
    speed, cant = 20.0, 0.3
    errors, sizes = [], []
    for size in (0.1, 0.05):
        track = Track(
            segments=(Segment(length_m=60.0, curvature_1pm=(0.0, size / 300.0), cant_rad=(cant, cant), shape="bloss"),)
        )
        exact = free_flight(track, speed, -0.2, np.zeros(10), [1.5, 3.2])
        found = computed_flight(track, speed, -0.2, np.zeros(10), [1.5, 3.2])
        errors.append(np.abs(found - exact).max(axis=0))
        sizes.append(np.abs(exact).max(axis=0))
    assert (errors[0][[0, 1, 3, 4]] < 0.05 * sizes[0][[0, 1, 3, 4]]).all()
    assert (errors[1][[0, 1, 3, 4]] < 1e-12 + 0.3 * errors[0][[0, 1, 3, 4]]).all()


def exact_extensions(model, track, t, y):
    """Lengths minus rest lengths of all vector links with every body placed in space."""
    rail, layout = Rail(track), model.layout
    arcs = layout.body_positions[:, 0]
    speed = model.speed_mps
    places = rail.path(sorted({float(speed * t + a) for a in arcs}))

    def coordinate(body, c):
        state = layout.body_index[body, c]
        return y[state] if state >= 0 else 0.0

    def point(body, p):
        s = float(speed * t + arcs[body])
        frame = rail.frame(places[s], s)
        up = layout.body_positions[body, 2] + coordinate(body, slot.Z)
        centre = np.array([*places[s][:2], 0.0]) + frame.apply([0.0, coordinate(body, slot.Y), up])
        # the yaw of a wheelset is measured from the tangent at its parent
        lever = model.arrays.body[body, slot.YAW_LEVER]
        yaw = coordinate(body, slot.YAW) + (rail.heading(s - lever) - rail.heading(s) if lever else 0.0)
        turn = Rotation.from_rotvec([coordinate(body, slot.ROLL), coordinate(body, slot.PITCH), yaw])
        return centre + (frame * turn).apply(p)

    found = []
    for k in range(layout.link_index.shape[0]):
        lower, upper = layout.link_index[k, [slot.LINK_LOWER, slot.LINK_UPPER]]
        row = model.arrays.link[k]
        ends = point(upper, row[slot.UPPER_X : slot.UPPER_Z + 1]) - point(lower, row[slot.LOWER_X : slot.LOWER_Z + 1])
        found.append(np.linalg.norm(ends) - row[slot.REST_LENGTH])
    return np.array(found)


@pytest.mark.parametrize("t", [0.5, 1.5, 10.0])
def test_links_see_the_bodies_where_they_are(t):
    """Extensions in a curve and in a transition against points placed in space: equal to first order (A7).

    At the beginning (all axles on it), inside and behind a clothoid; curvature, cant and the state shrink together.
    """
    errors, sizes = [], []
    groups = None
    base = None
    for size in (0.02, 0.01):
        track = transition(size, "clothoid")
        model = assemble("cooperrider-vector", track=track, speed_mps=20.0)
        if base is None:
            base = sample_vehicle.disturbed(model, np.random.default_rng(5))
            base[[i for i, n in enumerate(model.state_names) if n.endswith((".z", ".roll"))]] *= 0.1
        y = size * base
        exact = exact_extensions(model, track, t, y)
        found = np.array([link.extension for link in model.outputs(t, y).links])
        groups = np.array([name.partition(".")[0] for name in model.layout.link_names])
        errors.append(np.abs(found - exact))
        sizes.append(np.abs(exact))
    for group in set(groups):
        large, small = (e[groups == group].max() for e in errors)
        assert large < 0.1 * sizes[0][groups == group].max(), group
        assert small < 0.3 * large, (group, large, small)


@pytest.mark.parametrize("t", [0.6, 1.5, 2.2])
def test_rates_of_links_are_the_derivatives_of_their_extensions(t):
    """Along the transition, with all bodies moving: d(extension)/dt by difference, to first order."""
    model = assemble("cooperrider-vector", track=transition(0.05, "bloss"), speed_mps=20.0)
    y = 0.05 * sample_vehicle.disturbed(model, np.random.default_rng(6))
    velocity = np.zeros(model.n)
    for i, name in enumerate(model.state_names):
        if f"{name}_dot" in model.state_names:
            velocity[i] = y[model.index(f"{name}_dot")]
    h = 1e-4
    ahead, behind = (
        np.array([link.extension for link in model.outputs(t + d, y + d * velocity).links]) for d in (h, -h)
    )
    rates = np.array([link.rate for link in model.outputs(t, y).links])
    difference = (ahead - behind) / (2 * h)
    assert np.abs(rates - difference).max() < 2e-3 * np.abs(difference).max()


def test_centrifugal_force_and_gravity_balance_at_the_right_cant():
    """At v^2 / R = g tan(cant) a curve is felt as straight track with a little more weight: g / cos(cant)."""
    cant = cant_angle(120.0)
    speed = math.sqrt(9.81 * math.tan(cant) * 800.0)
    table = conical_table(conicity=0.0)
    curve = assemble(
        "cooperrider", contact=table, track=Track(radius_m=800.0, cant_mm=120.0), speed_mps=speed, formulation="dytsi"
    )
    outputs = curve.outputs(0.0, np.zeros(curve.n))
    for body in curve.vehicle.bodies:
        push = outputs.forces["gravity"][body.name] + outputs.forces["centrifugal"][body.name]
        assert push[1] == pytest.approx(0.0, abs=1e-9 * body.mass_kg)
        assert push[2] == pytest.approx(-body.mass_kg * 9.81 / math.cos(cant), rel=1e-12)


def test_tracks_are_values():
    track = Track(radius_m=500.0)
    assert track == Track(radius_m=500.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        track.radius_m = 3.0
