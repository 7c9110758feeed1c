"""Figures of running behaviour: records with known answers, and a vehicle on rough track from simulation to figures."""

import math

import numpy as np
import pytest

from railsweep.engine import InputError, assemble, simulate
from railsweep.engine.assessment import FIGURES, Places, Record, assess, assessment_channels, places_of
from railsweep.engine.assessment_comfort import weighting
from railsweep.engine.assessment_running import nadal_limit, sum_y_limit, two_metre_mean, weinstock_limit

T = np.arange(0.0, 40.0, 0.005)
SPEED = 50.0
Q0 = 60e3


def record(**channels):
    """One wheelset under one body whose floor is felt 8 m ahead of the centre and 0.5 m below."""
    quiet = {
        "axle.left.y_n": 0.0,
        "axle.right.y_n": 0.0,
        "axle.left.q_n": Q0,
        "axle.right.q_n": Q0,
        "axle.left.t_gamma_n": 0.0,
        "axle.right.t_gamma_n": 0.0,
        "car.y_acc": 0.0,
        "car.z_acc": 0.0,
        "frame.y_acc": 0.0,
    }
    values = {k: np.broadcast_to(v, T.shape).astype(float) for k, v in quiet.items()}
    values |= {k.replace("__", "."): np.broadcast_to(v, T.shape).astype(float) for k, v in channels.items()}
    places = Places(wheelsets=("axle",), body="car", floor=((8.0, 0.0, -0.5),), frames=("frame",))
    return Record(t=T, speed_mps=SPEED, channels=values, places=places, static_load_n=Q0, friction=0.3)


def test_a_quiet_record_has_quiet_figures():
    figures = assess(record())
    assert set(figures) == set(FIGURES)
    for name, value in figures.items():
        wanted = {"q_max_n": Q0, "q_quasi_static_n": Q0}.get(name, 0.0)
        if name != "hunting_frequency_hz":
            assert value == pytest.approx(wanted, abs=1e-6), name


def test_sum_of_y_of_a_slow_sine():
    """1.93 Hz passes the filter; the 2-m mean takes off sinc(2 f/v); the percentile of a sine is sin(pi 0.4985)."""
    wave = np.sin(2 * np.pi * 1.93 * T)
    figures = assess(record(axle__left__y_n=9e3 * wave, axle__right__y_n=-3e3 * wave))
    expected = 12e3 * np.sinc(2.0 * 1.93 / SPEED) * math.sin(math.pi * 0.4985)
    assert figures["sum_y_2m_n"] == pytest.approx(expected, rel=2e-3)
    assert figures["sum_y_2m_ratio"] == pytest.approx(expected / (10e3 + 40e3), rel=2e-3)
    assert figures["y_over_q_2m"] == pytest.approx(expected * 0.75 / Q0, rel=2e-3)
    assert figures["y_quasi_static_n"] == pytest.approx(0.0, abs=50.0)
    assert figures["hunting_frequency_hz"] == pytest.approx(1.93, abs=0.11)
    assert figures["stability_sum_y_n"] == pytest.approx(12e3 / math.sqrt(2.0), rel=0.03)
    assert figures["stability_ratio"] == pytest.approx(2 * 12e3 / math.sqrt(2.0) / 50e3, rel=0.03)


def test_short_waves_vanish_in_the_two_metre_mean():
    wave = np.sin(2 * np.pi * SPEED / 2.0 * T)  # one period in 2 m, 25 Hz
    assert np.abs(two_metre_mean(wave, 200.0, SPEED)[20:]).max() < 0.01


def test_quasi_static_values_and_derailment_ratios():
    ripple = 2e3 * np.sin(2 * np.pi * 3.0 * T)
    figures = assess(
        record(
            axle__left__y_n=30e3 + ripple,
            axle__right__y_n=-6e3,
            axle__left__q_n=50e3,
            axle__right__q_n=70e3 + ripple,
        )
    )
    assert figures["y_quasi_static_n"] == pytest.approx(30e3, rel=1e-3)
    assert figures["q_quasi_static_n"] == pytest.approx(70e3, rel=1e-3)
    assert figures["y_over_q_quasi_static"] == pytest.approx(0.6, rel=1e-3)
    assert figures["q_max_n"] == pytest.approx(70e3 + 2e3 * math.sin(math.pi * 0.4985), rel=1e-3)
    assert figures["q_rms_n"] == pytest.approx(2e3 / math.sqrt(2.0), rel=0.01)
    assert figures["q_unloading"] == pytest.approx(1.0 - 50.0 / 60.0, rel=1e-3)
    nadal = nadal_limit(math.radians(70.0), 0.3)
    assert figures["nadal_ratio"] == pytest.approx(figures["y_over_q_2m"] / nadal)
    assert figures["weinstock_ratio"] == pytest.approx((0.64 + 6 / 70) / (nadal + 0.3), rel=0.01)


def test_limits_have_their_published_values():
    # Nadal with 70 degrees: 1.2 at mu = 0.36 and 0.69-0.8 between mu = 0.6 and 0.5, as quoted with the limit of 0.8
    assert nadal_limit(math.radians(70.0), 0.36) == pytest.approx(1.2, abs=0.01)
    assert nadal_limit(math.radians(70.0), 0.0) == pytest.approx(math.tan(math.radians(70.0)))
    assert nadal_limit(math.radians(60.0), 0.5) == pytest.approx((math.sqrt(3) - 0.5) / (1 + 0.5 * math.sqrt(3)))
    assert weinstock_limit(math.radians(70.0), 0.4) == pytest.approx(nadal_limit(math.radians(70.0), 0.4) + 0.4)
    assert sum_y_limit(112.5e3, 0.85) == pytest.approx(0.85 * 85e3)
    with pytest.raises(InputError, match="flange angle"):
        nadal_limit(0.0, 0.3)


def test_floor_accelerations_follow_the_rigid_body():
    """Yaw 8 m ahead adds to the lateral, pitch to the vertical, roll 0.5 m below to the lateral acceleration."""
    wave = np.sin(2 * np.pi * 2.0 * T)
    figures = assess(record(car__y_acc=0.2 * wave, car__yaw_acc=0.05 * wave, car__roll_acc=0.1 * wave))
    lateral = 0.2 + 8.0 * 0.05 + 0.5 * 0.1
    assert figures["floor_y_rms_mps2"] == pytest.approx(lateral / math.sqrt(2.0), rel=0.01)
    assert figures["comfort_y_mps2"] == pytest.approx(
        lateral / math.sqrt(2) * abs(weighting("Wd")(np.array([2.0]))[0]), rel=0.01
    )
    figures = assess(record(car__z_acc=0.3 * wave, car__pitch_acc=-0.02 * wave))
    vertical = 0.3 + 8.0 * 0.02
    assert figures["floor_z_acc_mps2"] == pytest.approx(vertical, rel=0.04)  # the filter rings once at the start
    along = 0.02 * 0.5
    gains = [abs(weighting(w)(np.array([2.0]))[0]) for w in ("Wd", "Wb")]
    n_mv = 6.0 * math.hypot(along * gains[0], vertical * gains[1]) / math.sqrt(2.0)
    assert figures["n_mv"] == pytest.approx(n_mv, rel=0.01)


def test_wear_and_frame_figures():
    figures = assess(record(axle__left__t_gamma_n=np.linspace(0.0, 100.0, T.size), axle__right__t_gamma_n=20.0))
    assert figures["t_gamma_mean_n"] == pytest.approx(50.0)
    assert figures["t_gamma_total_n"] == pytest.approx(70.0)
    assert figures["t_gamma_max_n"] == pytest.approx(99.85)
    figures = assess(record(frame__y_acc=4.0 * np.sin(2 * np.pi * 5.0 * T)))
    assert figures["frame_y_rms_mps2"] == pytest.approx(4.0 / math.sqrt(2.0), rel=0.01)


def test_figures_by_name_and_what_they_lack():
    whole = record()
    assert list(assess(whole, figures=["n_mv", "q_max_n"])) == ["n_mv", "q_max_n"]
    with pytest.raises(InputError, match="n_mv"):
        assess(whole, figures=["nmv"])
    part = {k: v for k, v in whole.channels.items() if "t_gamma" not in k and "frame" not in k}
    reduced = Record(t=T, speed_mps=SPEED, channels=part, places=whole.places, static_load_n=Q0)
    assert "t_gamma_mean_n" not in assess(reduced)
    assert "n_mv" in assess(reduced)
    with pytest.raises(InputError, match=r"axle\.left\.t_gamma_n"):
        assess(reduced, figures=["t_gamma_mean_n"])
    with pytest.raises(InputError, match="shape"):
        Record(t=T, speed_mps=SPEED, channels={"a": T[1:]}, places=whole.places, static_load_n=Q0)


# --- from a model to figures --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rough_run():
    model = assemble("manchester-1", speed_mps=40.0, irregularity="erri-low,seed=3,length_m=600")
    run = simulate(
        model,
        None,
        (0.0, 12.0),
        rtol=1e-5,
        sample_s=0.005,
        window_s=11.0,
        observables=assessment_channels(model),
        store=False,
    )
    assert run.success
    return model, run


def test_places_of_library_vehicles(rough_run):
    model, _ = rough_run
    places = places_of(model)
    assert places.body == "car_body"
    assert [p[0] for p in places.floor] == [9.5, 0.0, -9.5]
    assert places.floor[0][2] == pytest.approx(1.2 - 1.8)
    assert places.frames == ("bogie_leading", "bogie_trailing")


def test_every_figure_of_a_run_is_finite_and_grows_with_the_track(rough_run):
    model, run = rough_run
    figures = assess(run, model)
    assert set(figures) == set(FIGURES)
    assert all(math.isfinite(v) for v in figures.values())
    assert figures["q_quasi_static_n"] == pytest.approx(54546.0, rel=0.01)
    assert 0.5 < figures["n_mv"] < 5.0
    assert 1.0 < figures["wz_z"] < 4.0
    worse = model.bind(["irregularity.scale"])([0.5])
    run = simulate(
        worse,
        None,
        (0.0, 12.0),
        rtol=1e-5,
        sample_s=0.005,
        window_s=11.0,
        observables=assessment_channels(worse),
        store=False,
    )
    halved = assess(run, worse)
    # vertical motion of this coach is nearly linear
    assert halved["floor_z_rms_mps2"] == pytest.approx(0.5 * figures["floor_z_rms_mps2"], rel=0.05)
    assert halved["n_mv"] < figures["n_mv"]


def test_channels_agree_with_the_outputs_of_the_model():
    model = assemble("cooperrider", speed_mps=30.0, irregularity="erri-high,seed=1,length_m=400")
    run = simulate(
        model, {"wheelset_ll.y": 2e-3}, (0.0, 1.0), sample_s=0.25, window_s=1.0, observables=assessment_channels(model)
    )
    places = places_of(model)
    record_ = Record(t=run.window_t, speed_mps=30.0, channels=run.channels, places=places, static_load_n=Q0)
    for k, t in enumerate(run.window_t):
        out = model.outputs(t, run.y[:, k])
        for point in places.floor:
            wanted = out.acceleration(places.body, point)
            found = [a[k] for a in record_.acceleration(places.body, point)]
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        wear = {}
        for p in out.points:
            key = f"{p.wheelset}.{p.side}"
            wear[key] = wear.get(key, 0.0) + abs(p.tangent_x_n * p.creep_x) + abs(p.tangent_y_n * p.creep_y)
        for key, value in wear.items():
            assert run.channels[f"{key}.t_gamma_n"][k] == pytest.approx(value, rel=1e-9)
            assert run.channels[f"{key}.q_n"][k] == pytest.approx(out.q_n[key], rel=1e-9)


def test_a_trajectory_needs_its_model(rough_run):
    with pytest.raises(InputError, match="model"):
        assess(rough_run[1])
