"""The published wagon in the `dytsi` formulation with the published contact table, against published numbers."""

import numpy as np
import published_values as published
import pytest

from railsweep.engine.contact_table import load_contact_table
from railsweep.engine.linear_stability import stability
from railsweep.engine.model import assemble
from railsweep.engine.track import Track


@pytest.fixture(scope="module")
def table(published_table_path):
    return load_contact_table(published_table_path)


def crossings(table, low, high, vehicle="cooperrider", **options):
    model = assemble(vehicle, contact=table, speed_mps=60.0, formulation="dytsi", **options)
    return [c for c in stability(model, [low, high]).crossings if c.direction == "unstable"]


def near(speed):
    return pytest.approx(speed.value, abs=speed.tolerance)


def test_first_and_second_crossing_on_straight_track(table):
    found = crossings(table, 100.0, 111.0, precession="printed")
    assert [c.multiplicity for c in found] == [1, 1]
    assert found[0].speed_mps == near(published.FIRST_CROSSING)
    assert found[1].speed_mps == near(published.SECOND_CROSSING)
    assert found[0].frequency_hz == pytest.approx(published.CROSSING_FREQUENCY_HZ, abs=0.01)


def test_printed_precession_is_the_default_of_this_formulation(table):
    found = crossings(table, 108.0, 109.5)
    assert [c.speed_mps for c in found] == [near(published.FIRST_CROSSING)]
    explicit = crossings(table, 108.0, 109.5, precession="printed")
    assert found[0].speed_mps == explicit[0].speed_mps


@pytest.mark.parametrize(
    ("precession", "speed"),
    [("off", published.CROSSING_WITHOUT_PRECESSION), ("right", published.CROSSING_RIGHT_PRECESSION)],
)
def test_first_crossing_with_other_precession(table, precession, speed):
    assert crossings(table, 105.0, 110.0, precession=precession)[0].speed_mps == near(speed)


def test_fixed_car_has_two_pairs_crossing_together(table):
    found = crossings(table, 105.0, 112.0, vehicle="cooperrider-fixed-car", precession="off")
    assert len(found) == 1
    assert found[0].multiplicity == 2
    assert found[0].speed_mps == near(published.CROSSING_FIXED_CAR)


def test_right_shear_modulus(table):
    modulus = published.E_STEEL_PA / (2.0 * (1.0 + published.POISSON))
    found = crossings(table, 120.0, 129.9, precession="printed", shear_modulus_pa=modulus)
    assert found[0].speed_mps == near(published.CROSSING_RIGHT_MODULUS)


@pytest.mark.parametrize(("friction", "speed"), published.CROSSING_OVER_FRICTION.items())
def test_first_crossing_over_friction(table, friction, speed):
    found = crossings(table, 105.0, 115.0, precession="printed", friction=friction)
    assert found[0].speed_mps == pytest.approx(speed, abs=0.1)


def test_curve_equilibrium(table):
    track = Track(radius_m=published.CURVE_RADIUS_M, cant_mm=published.CURVE_CANT_MM)
    assert track.cant_rad == pytest.approx(published.CURVE_CANT_RAD, rel=1e-14)
    model = assemble(
        "cooperrider", contact=table, track=track, speed_mps=published.CURVE_SPEED_MPS, formulation="dytsi"
    )
    y = model.equilibrium()
    for bogie in "lt":
        for axle, shift, yaw in zip("lt", published.CURVE_SHIFT_M, published.CURVE_YAW_RAD, strict=True):
            name = f"wheelset_{bogie}{axle}"
            assert y[model.index(f"{name}.y")] == pytest.approx(shift, rel=published.CURVE_TOLERANCE)
            assert y[model.index(f"{name}.yaw")] == pytest.approx(yaw, rel=published.CURVE_TOLERANCE)


def test_modes_at_60_mps(table):
    model = assemble("cooperrider", contact=table, speed_mps=60.0, formulation="dytsi")
    point = stability(model, [60.0]).points[0]
    pitch = [m for m in point.modes if m.neutral]
    assert len(pitch) == 2
    for mode in pitch:
        assert mode.frequency_hz == pytest.approx(published.BOGIE_PITCH_HZ, abs=5e-4)
        assert mode.dominant_state.startswith("bogie_")
        assert mode.dominant_state.endswith(".pitch")
    assert point.unstable == 0

    contact = [m for m in point.modes if abs(m.frequency_hz - published.CONTACT_MODE_HZ) < 0.05]
    assert len(contact) == 4
    for mode in contact:
        assert mode.dominant_state.startswith("wheelset_")
        assert mode.dominant_state.endswith(".z")
        assert mode.eigenvalue.real == pytest.approx(published.CONTACT_MODE_GROWTH_60_MPS, abs=0.005)

    slowest = min(point.modes, key=lambda m: abs(m.eigenvalue))
    assert slowest.frequency_hz == pytest.approx(published.SLOWEST_MODE_HZ, abs=1e-3)
    assert slowest.eigenvalue.real == pytest.approx(published.SLOWEST_MODE_GROWTH, abs=1e-3)


def test_neutral_pitch_is_never_counted_nor_crosses(table):
    """An undamped pair has a real part of either sign by rounding; at no speed may it look like an instability."""
    model = assemble("cooperrider", contact=table, speed_mps=60.0, formulation="dytsi", precession="off")
    study = stability(model, np.arange(30.0, 106.0, 5.0))
    assert study.crossings == ()
    assert study.critical_speed_mps is None
    assert all(p.unstable == 0 and sum(m.neutral for m in p.modes) == 2 for p in study.points)


def test_unstable_modes_are_counted(table):
    model = assemble("cooperrider", contact=table, speed_mps=60.0, formulation="dytsi")
    assert [p.unstable for p in stability(model, [108.0, 109.5, 111.0]).points] == [0, 1, 2]
