"""Rough track under a vehicle: invariances, signs, following of long waves, binding, and the shape of defects."""

import numpy as np
import pytest
import sample_vehicle

from railsweep.engine import Defect, InputError, Track, assemble, defects, realise, simulate, simulate_ensemble
from railsweep.engine.irregularity import CHANNELS, RAIL_BASE_M, sampled
from railsweep.kernels import record as slot

FORMULATIONS = ["physics", "dytsi"]


def level(channel, height_m, speed=20.0, **options):
    """A model and a time at which all its wheelsets stand on a plateau."""
    options.setdefault("vehicle", "manchester-1")
    vehicle = options.pop("vehicle")
    plateau = Defect(kind="plateau", channel=channel, amplitude_m=height_m, wavelength_m=10.0, length_m=200.0)
    return assemble(vehicle, speed_mps=speed, irregularity=defects(plateau), **options), 100.0 / speed


def shifted(model, dof, amount):
    """Every body moved along one coordinate."""
    return model.state(**{n.replace(".", "__"): amount for n in model.state_names if n.endswith(f".{dof}")})


# --- the four channels under the wheels ---------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_no_irregularity_and_scale_zero_are_the_perfect_track(formulation):
    rng = np.random.default_rng(0)
    smooth = assemble("cooperrider", speed_mps=40.0, formulation=formulation)
    rough = smooth.with_irregularity(realise("erri-high", seed=1))
    off = rough.bind(["irregularity.scale"])([0.0])
    for _ in range(5):
        y = sample_vehicle.disturbed(smooth, rng)
        assert np.array_equal(smooth.rhs(7.0, y), rough.with_irregularity(None).rhs(7.0, y))
        np.testing.assert_allclose(off.rhs(7.0, y), smooth.rhs(7.0, y), rtol=1e-12, atol=1e-9)
        assert not np.allclose(rough.rhs(7.0, y), smooth.rhs(7.0, y), rtol=1e-3)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("channel", "dof"), [("vertical", "z"), ("lateral", "y")])
def test_constant_offset_of_both_rails_is_a_translation(channel, dof, formulation):
    model, t = level(channel, 0.013, formulation=formulation)
    rng = np.random.default_rng(1)
    for _ in range(5):
        y = sample_vehicle.disturbed(model, rng)
        flat = model.with_irregularity(None).rhs(t, y)
        moved = model.rhs(t, y + shifted(model, dof, 0.013))
        np.testing.assert_allclose(moved, flat, rtol=1e-7, atol=1e-7 * np.abs(flat).max())


def test_constant_cross_level_turns_the_contact_like_cant():
    """A wheelset on rails turned by an angle feels what it feels on canted track, seen from the level frame."""
    height = 0.02
    angle = height / RAIL_BASE_M
    model, t = level("cross_level", height)
    smooth = model.with_irregularity(None)
    rng = np.random.default_rng(2)
    c, s = np.cos(angle), np.sin(angle)
    for _ in range(5):
        canted = sample_vehicle.disturbed(model, rng)
        flat = canted.copy()
        for w in model.layout.wheelset_names:
            radius = float(model.arrays.wheelset[0, slot.ROLLING_RADIUS])
            at = {k: model.index(f"{w}.{k}") for k in ("y", "z", "roll", "y_dot", "z_dot")}
            y, z = canted[at["y"]], radius + canted[at["z"]]
            flat[at["y"]], flat[at["z"]] = y * c - z * s, y * s + z * c - radius
            flat[at["roll"]] += angle
            vy, vz = canted[at["y_dot"]], canted[at["z_dot"]]
            flat[at["y_dot"]], flat[at["z_dot"]] = vy * c - vz * s, vy * s + vz * c
        wanted, found = smooth.outputs(t, canted), model.outputs(t, flat)
        for w in model.layout.wheelset_names:
            a, b = wanted.forces["contact"][w], found.forces["contact"][w]
            turned = np.array(
                [a[0], a[1] * c - a[2] * s, a[1] * s + a[2] * c, a[3], a[4] * c - a[5] * s, a[4] * s + a[5] * c]
            )
            np.testing.assert_allclose(b, turned, rtol=1e-7, atol=1e-7 * np.abs(a).max())
            # reported wheel forces stay along the axes of the rails
            for side in ("left", "right"):
                assert found.q_n[f"{w}.{side}"] == pytest.approx(wanted.q_n[f"{w}.{side}"], rel=1e-7)
                assert found.y_n[f"{w}.{side}"] == pytest.approx(wanted.y_n[f"{w}.{side}"], rel=1e-6, abs=1e-3)


def test_left_rail_up_lifts_the_left_wheel_and_wider_gauge_moves_both_rails_away():
    model, t = level("left_vertical", 0.001)
    flat = model.outputs(0.0, model.equilibrium()).q_n
    raised = model.outputs(t, model.equilibrium()).q_n
    for w in model.layout.wheelset_names:
        assert raised[f"{w}.left"] > 2.0 * flat[f"{w}.left"]
        assert raised[f"{w}.right"] == pytest.approx(flat[f"{w}.right"], rel=0.02)
    model, t = level("gauge", 0.004)
    for p in model.outputs(t, model.state()).points:
        assert p.shift_m == pytest.approx(-0.002, abs=1e-12)
    model, t = level("right_lateral", 0.004)  # the right rail moves to the left, towards its wheel
    for p in model.outputs(t, model.state()).points:
        assert p.shift_m == pytest.approx(0.0 if p.side == "left" else 0.004, abs=1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("vehicle", ["cooperrider", "every link"])
def test_mirrored_irregularity_mirrors_the_response(vehicle, formulation):
    described = sample_vehicle.every_link() if vehicle == "every link" else vehicle
    rough = realise("fra-5", seed=8, length_m=500.0)
    base = assemble(described, speed_mps=33.0, formulation=formulation, irregularity=rough)
    mirrored = base.bind(["irregularity.lateral_scale", "irregularity.cross_level_scale"])([-1.0, -1.0])
    order, sign = sample_vehicle.mirror(base)
    rng = np.random.default_rng(3)
    kinds = np.array([name.rpartition(".")[2] for name in base.state_names])
    for t in (0.2, 3.0, 11.7, 40.0):
        y = 0.3 * sample_vehicle.disturbed(base, rng)
        f, image = base.rhs(t, y), mirrored.rhs(t, sign * y[order])
        for kind in set(kinds):
            rows = kinds == kind
            assert np.abs(image - sign * f[order])[rows].max() <= 1e-12 * np.abs(f[rows]).max()


def test_mirrored_irregularity_mirrors_a_run():
    rough = realise("erri-low", seed=8, length_m=500.0)
    base = assemble("cooperrider", speed_mps=30.0, irregularity=rough)
    mirrored = base.bind(["irregularity.lateral_scale", "irregularity.cross_level_scale"])([-1.0, -1.0])
    order, sign = sample_vehicle.mirror(base)
    start = np.zeros(base.n)
    a, b = (simulate(m, start, (0.0, 1.0), rtol=1e-6, sample_s=0.1, stops=[]) for m in (base, mirrored))
    scale = np.abs(a.y).max(axis=1, keepdims=True)
    assert np.all(np.abs(b.y - sign[:, None] * a.y[order]) <= 1e-9 * scale[order] + 1e-13)


def test_constant_grade_is_climbed_without_slip_or_change_of_the_total_load():
    """On a grade every wheel climbs with v times the slope; contact forces are those of level track."""
    grade, speed = 0.004, 25.0
    s = np.arange(0.0, 200.0, 0.25)
    ramp = sampled({"vertical": grade * np.minimum(s, 100.0)}, 0.25, fade_m=0.0, provenance={})
    model = assemble("manchester-1", speed_mps=speed, irregularity=ramp)
    t = 45.0 / speed
    level_state = model.equilibrium() + model.state(wheelset_ll__y=0.002, wheelset_ll__yaw=1e-3)
    climbing = level_state.copy()
    arrays = model.arrays
    origin = model.layout.irregularity_grid[slot.IRREGULARITY_ORIGIN]
    for w, name in enumerate(model.layout.wheelset_names):
        place = speed * t - origin + arrays.body[arrays.wheelset_index[w, slot.WHEELSET_BODY], slot.ARC]
        climbing[model.index(f"{name}.z")] += grade * place
        climbing[model.index(f"{name}.z_dot")] += grade * speed
    smooth = model.with_irregularity(None)
    a, b = smooth.outputs(t, level_state).forces["contact"], model.outputs(t, climbing).forces["contact"]
    for name in model.layout.wheelset_names:
        np.testing.assert_allclose(b[name], a[name], rtol=1e-6, atol=1e-6 * np.abs(a[name]).max())


def test_long_lateral_waves_are_followed_like_curves():
    """Quasi-static: wheelsets stand off the rails as in the curve whose curvature is that of the wave."""
    speed, amplitude, wave = 5.0, 0.01, 600.0
    sine = Defect(kind="sine", channel="lateral", amplitude_m=amplitude, wavelength_m=wave, waves=3.0, start_m=0.0)
    model = assemble("cooperrider", speed_mps=speed, irregularity=defects(sine))
    names = model.layout.wheelset_names
    watched = [f"{n}.{k}" for n in names for k in ("y", "rail_y_m")]
    crest = 1.25 * wave  # rails farthest to the left, d'' < 0: a right-hand curve
    t = crest / speed
    run = simulate(
        model, None, (0.0, t + 0.05), method="bdf", rtol=1e-6, sample_s=0.05, observables=watched, window_s=0.2
    )
    assert run.success
    curvature = amplitude * (2.0 * np.pi / wave) ** 2
    curve = assemble("cooperrider", speed_mps=speed).bind(["track.curvature_1pm"])([curvature])
    still = curve.equilibrium()
    for n in names:
        off = np.interp(t, run.window_t, run.channels[f"{n}.y"] - run.channels[f"{n}.rail_y_m"])
        assert off == pytest.approx(still[curve.index(f"{n}.y")], rel=0.05)


def test_each_wheelset_meets_a_bump_at_its_own_time():
    bump = Defect(kind="bump", channel="vertical", amplitude_m=0.002, wavelength_m=3.0, start_m=20.0)
    speed = 30.0
    model = assemble("manchester-1", speed_mps=speed, irregularity=defects(bump))
    names = model.layout.wheelset_names
    run = simulate(
        model,
        None,
        (0.0, 2.0),
        sample_s=0.001,
        observables=[f"{n}.rail_z_m" for n in names],
        window_s=2.0,
        method="bdf",
    )
    arc = model.arrays.body[model.layout.wheelset_index[:, slot.WHEELSET_BODY], slot.ARC]
    for n, place in zip(names, arc, strict=True):
        z = run.channels[f"{n}.rail_z_m"]
        assert z.max() == pytest.approx(0.002, rel=1e-3)
        assert run.window_t[np.argmax(z)] == pytest.approx((21.5 + arc.max() - place) / speed, abs=1.1e-3)


def test_rates_under_the_wheels_are_those_of_the_speed():
    rough = realise("erri-high", seed=5, length_m=400.0, fade_m=60.0)
    model = assemble("cooperrider", speed_mps=37.0, irregularity=rough)
    origin = model.layout.irregularity_grid[slot.IRREGULARITY_ORIGIN]
    arc = model.arrays.body[model.layout.wheelset_index[:, slot.WHEELSET_BODY], slot.ARC]
    for t in (0.0, 0.4, 1.0, 1.7, 9.0, 31.0):
        model.rhs(t, model.state())
        s = 37.0 * t - origin + arc
        value, slope = rough.at(s), rough.at(s, 1)
        rail = model.arrays.rail
        for column, (at, rate) in {
            "vertical": (slot.RAIL_Z, slot.RAIL_Z_DOT),
            "cross_level": (slot.RAIL_ROLL, slot.RAIL_ROLL_DOT),
            "lateral": (slot.RAIL_Y, slot.RAIL_Y_DOT),
            "gauge": (slot.RAIL_GAUGE, slot.RAIL_GAUGE_DOT),
        }.items():
            np.testing.assert_allclose(rail[:, at], value[:, CHANNELS[column]], rtol=1e-10, atol=1e-15)
            np.testing.assert_allclose(rail[:, rate], 37.0 * slope[:, CHANNELS[column]], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("channel", [*CHANNELS, "all"])
def test_normal_damper_sees_the_rate_of_penetration_over_rough_rails(channel):
    rough = realise("fra-5", seed=5, length_m=400.0, channels=() if channel == "all" else (channel,))
    damping = 1e3
    base = assemble("cooperrider", speed_mps=30.0, irregularity=rough)
    damped = base.bind(["contact.normal_damping_nspm"])([damping])
    rng = np.random.default_rng(6)
    t, h, checked = 6.0, 1e-7, 0
    for _ in range(5):
        y = 0.2 * sample_vehicle.disturbed(base, rng)
        for w in base.layout.wheelset_names:  # near the displaced rails, so that all wheels touch
            base.rhs(t, y)
            rail = base.arrays.rail[base.layout.wheelset_names.index(w)]
            y[base.index(f"{w}.z")] = rail[slot.RAIL_Z]
            y[base.index(f"{w}.roll")] = rail[slot.RAIL_ROLL]
        rates = base.rhs(t, y)
        ahead, behind = (base.outputs(t + d, y + d * rates).points for d in (h, -h))
        for p, q, a, b in zip(base.outputs(t, y).points, damped.outputs(t, y).points, ahead, behind, strict=True):
            if p.normal_n == 0.0 or q.normal_n == 0.0:
                continue
            rate = (a.penetration_m - b.penetration_m) / (2 * h)
            assert (q.normal_n - p.normal_n) / damping == pytest.approx(rate, rel=1e-3, abs=1e-5)
            checked += 1
    assert checked > 20


def test_jacobian_on_rough_track_is_that_of_the_right_hand_side():
    model = assemble("cooperrider", speed_mps=40.0, irregularity="erri-high,seed=2,length_m=500")
    y, t = model.equilibrium(), 6.3
    matrix = model.jacobian(t, y)
    for k in range(0, model.n, 5):
        h = 1e-8 if k % 2 == 0 else 1e-6
        step = np.zeros(model.n)
        step[k] = h
        column = (model.rhs(t, y + step) - model.rhs(t, y - step)) / (2 * h)
        scale = np.abs(matrix).max(axis=1)
        assert np.all(np.abs(matrix[:, k] - column) <= 1e-5 * scale + 1e-6)


# --- binding ------------------------------------------------------------------------------------------------------


def test_seed_scale_and_speed_are_parameters():
    model = assemble("cooperrider", speed_mps=40.0, irregularity="erri-low,seed=1,length_m=500")
    assert model.parameters["irregularity.seed"] == 1.0
    y = model.state()
    sample = model.bind(["irregularity.seed", "irregularity.scale", "speed_mps"])([7.0, 2.0, 44.0])
    direct = assemble("cooperrider", speed_mps=44.0, irregularity=realise("erri-low", seed=7, length_m=500.0)).bind(
        ["irregularity.scale"]
    )([2.0])
    assert np.array_equal(sample.rhs(3.0, y), direct.rhs(3.0, y))
    assert sample.irregularity.provenance["seed"] == 7
    assert sample.layout.irregularity is direct.layout.irregularity  # the same realisation is made once
    assert sample.copy().irregularity is sample.irregularity
    with pytest.raises(InputError, match=r"irregularity\.seed.*whole"):
        model.bind(["irregularity.seed"])([1.5])
    smooth = model.with_irregularity(None)
    assert not any(name.startswith("irregularity") for name in smooth.parameters)
    for name in ("irregularity.seed", "irregularity.scale"):
        with pytest.raises(InputError, match="perfect track"):
            smooth.bind([name])
    with pytest.raises(InputError, match="not random"):
        defects(Defect(kind="bump", channel="gauge", amplitude_m=0.01, wavelength_m=5.0)).with_seed(1)


def test_an_ensemble_of_seeds_is_the_runs_one_by_one():
    model = assemble("cooperrider", speed_mps=35.0, irregularity="erri-high,seed=0,length_m=400")
    bind = model.bind(["irregularity.seed", "speed_mps"])
    models = [bind([float(seed), 35.0 + seed]) for seed in range(4)]
    options = {"rtol": 1e-5, "sample_s": 0.1, "observables": ["wheelset_ll.y", "wheelset_tt.left.t_gamma_n"]}
    start = model.equilibrium()
    together = simulate_ensemble(models, start, (0.0, 0.6), threads=2, **options)
    for run, one in zip(together, models, strict=True):
        alone = simulate(one, start, (0.0, 0.6), **options)
        for name in options["observables"]:
            assert np.array_equal(run.channels[name], alone.channels[name])
    assert len({run.channels["wheelset_ll.y"][-1] for run in together}) == 4


@pytest.mark.parametrize("creep_law", ["linear", "polach", "fastsim"])
def test_rough_transition_into_a_canted_curve(creep_law):
    """All kinds of track together: finite, and nearer to the smooth run the smaller the irregularities."""
    track = Track(radius_m=600.0, cant_mm=100.0, transition_m=20.0, transition="bloss")
    model = assemble(
        "cooperrider",
        speed_mps=20.0,
        track=track,
        creep_law=creep_law,
        irregularity="erri-low,seed=3,length_m=300,fade_m=5",
    )
    start = np.zeros(model.n)
    smooth = simulate(model.with_irregularity(None), start, (0.0, 0.5), sample_s=0.1, rtol=1e-7)
    apart = []
    for scale in (0.1, 0.01):
        run = simulate(model.bind(["irregularity.scale"])([scale]), start, (0.0, 0.5), sample_s=0.1, rtol=1e-7)
        assert run.success
        apart.append(np.abs(run["wheelset_ll.z"] - smooth["wheelset_ll.z"]).max())
    assert apart[1] == pytest.approx(0.1 * apart[0], rel=0.2)


def test_runs_carry_the_provenance():
    model = assemble("cooperrider", speed_mps=40.0, irregularity="erri-low,seed=12,length_m=500")
    run = simulate(model, None, (0.0, 0.05), sample_s=0.01)
    assert '"seed": 12' in run.attributes["irregularity"]
    assert "irregularity" not in simulate(model.with_irregularity(None), None, (0.0, 0.05), sample_s=0.01).attributes


# --- samples and defects ------------------------------------------------------------------------------------------


def test_interpolation_is_smooth_up_to_the_fourth_derivative():
    rng = np.random.default_rng(4)
    values = {"vertical": 1e-3 * rng.standard_normal(200), "gauge": 1e-3 * rng.standard_normal(200)}
    track = sampled(values, 0.5, fade_m=0.0, provenance={})
    s = 0.5 * np.arange(200)
    for name in values:
        np.testing.assert_allclose(track.at(s + 1e-12)[1:, CHANNELS[name]], values[name][1:], atol=1e-9)
    knots = s[1:-1]
    for derivative in range(5):
        below, above = (track.at(knots + d, derivative) for d in (-1e-9, 1e-9))
        assert np.abs(above - below).max() < 1e-5 * np.abs(above).max()
    h = 1e-4
    inside = np.linspace(3.0, 90.0, 301)
    for derivative in range(1, 4):
        slope = (track.at(inside + h, derivative - 1) - track.at(inside - h, derivative - 1)) / (2 * h)
        np.testing.assert_allclose(track.at(inside, derivative), slope, atol=1e-5 * np.abs(slope).max())


def test_fade_in_begins_at_rest_and_leaves_the_rest_alone():
    track = realise("erri-high", seed=6, length_m=300.0, fade_m=50.0)
    assert not track.at([-5.0, 0.0]).any()
    for derivative in range(1, 5):
        near = np.abs(track.at([1e-6], derivative)).max()
        assert near < 1e-6 * np.abs(track.at(np.linspace(60.0, 200.0, 500), derivative)).max()
    s = np.linspace(50.0, 900.0, 77)
    assert np.array_equal(track.at(s), track.at(s, fade=False))
    h, s = 1e-5, np.linspace(1.0, 60.0, 301)
    slope = (track.at(s + h) - track.at(s - h)) / (2 * h)
    np.testing.assert_allclose(track.at(s, 1), slope, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("kind", ["sine", "bump", "sweep", "plateau"])
def test_defects_are_what_they_say(kind):
    defect = Defect(
        kind=kind,
        channel="lateral",
        amplitude_m=-0.01,
        wavelength_m=8.0,
        waves=6.0,
        wavelength_end_m=4.0,
        length_m=80.0,
    )
    track = defects(defect)
    s = np.linspace(0.0, 120.0, 4001)
    found = track.at(s)
    assert np.abs(found[:, CHANNELS["lateral"]] - defect.values(s)).max() < 2e-5
    assert not np.delete(found, CHANNELS["lateral"], axis=1).any()
    assert defect.values(s).min() == pytest.approx(-0.01, rel=0.01)
    assert not track.at([0.0, 1e4]).any()
    if kind == "sweep":  # zero crossings come as the wave number says: phase(u) = 2 pi (u/8 + u^2/1280)
        u = -640.0 / 8.0 + np.sqrt((640.0 / 8.0) ** 2 + 1280.0 * np.arange(2.0, 9.0))
        assert np.abs(defect.values(5.0 + u)).max() < 1e-12


def test_rails_and_centre_are_the_same_thing():
    common = {"kind": "bump", "wavelength_m": 6.0}
    rails = defects(
        [
            Defect(channel="left_vertical", amplitude_m=0.012, **common),
            Defect(channel="right_vertical", amplitude_m=-0.006, **common),
            Defect(channel="left_lateral", amplitude_m=0.004, **common),
            Defect(channel="right_lateral", amplitude_m=0.002, **common),
        ]
    ).at([8.0])[0]
    np.testing.assert_allclose(rails, [0.003, 0.003, 0.018 / 1.5, 0.002], rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "bumb"}, "bump"),
        ({"channel": "left"}, "channel"),
        ({"amplitude_m": 1.0}, "amplitude_m"),
        ({"wavelength_m": 0.0}, "wavelength_m"),
        ({"start_m": -1.0}, "start_m"),
        ({"kind": "sweep"}, "wavelength_end_m"),
        ({"waves": 1.0}, "waves"),
    ],
)
def test_bad_defects_are_named(change, word):
    with pytest.raises(InputError, match=word):
        Defect(**{"kind": "sine", "channel": "vertical", "amplitude_m": 0.01, "wavelength_m": 5.0, **change})
