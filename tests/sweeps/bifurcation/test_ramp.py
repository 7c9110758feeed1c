"""Ramps on the wagon with conical wheels, whose hunting begins at 99 m/s and grows from there."""

import json
from itertools import islice

import numpy as np
import pytest

from railsweep.engine import InputError, Track, assemble, simulate
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.ramp import (
    RampSettings,
    continuous_ramp,
    find_branches,
    ramp,
    ramp_branch,
    start_set,
    steps_between,
    wheelsets_by_bogie,
)

SHORT = RampSettings(dwell_s=4.0, window_s=2.0)
WHEELSETS = tuple(f"wheelset_{w}.y" for w in ("ll", "lt", "tl", "tt"))


@pytest.fixture(scope="module")
def wagon():
    return assemble("cooperrider", speed_mps=60.0)


def test_steps_between_are_exact_both_ways():
    assert steps_between(0.1, 0.5, 0.1) == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert steps_between(52.0, 50.0, 0.5) == (52.0, 51.5, 51.0, 50.5, 50.0)
    assert steps_between(20.0, 22.9, 1.0) == (20.0, 21.0, 22.0)
    assert steps_between(3.0, 3.0, 1.0) == (3.0,)
    with pytest.raises(InputError, match="step"):
        steps_between(0.0, 1.0, 0.0)
    with pytest.raises(InputError, match="at most"):
        steps_between(0.0, 1.0, 1e-9)


def test_start_set_has_the_symmetries_it_names(wagon):
    starts = start_set(wagon, 2e-3)
    signs = {name: [np.sign(shifts.get(w, 0.0)) for w in WHEELSETS] for name, shifts in starts.items()}
    assert signs["antisymmetric"] == [1, -1, 1, -1]
    assert signs["symmetric"] == [1, -1, -1, 1]
    assert signs["in_phase"] == [1, 1, 1, 1]
    assert signs["bogie_leading"] == [1, -1, 0, 0]
    assert signs["bogie_trailing"] == [0, 0, 1, -1]
    assert {abs(v) for shifts in starts.values() for v in shifts.values()} == {2e-3}
    assert list(wheelsets_by_bogie(wagon)) == ["bogie_leading", "bogie_trailing"]


def test_down_ramp_hunts_above_and_dies_below_the_critical_speed(wagon):
    branch = ramp_branch(wagon, (115.0, 108.0, 80.0, 75.0), start_set(wagon)["antisymmetric"], settings=SHORT)
    assert branch.status == Status.OK
    assert [s.hunts for s in branch.steps] == [True, True, False, False]
    assert branch.onset() == 115.0
    assert branch.death() == 80.0
    assert branch.death("bogie_leading") == 80.0
    hunting = branch.steps[1]
    assert hunting.channels == WHEELSETS
    assert (hunting.amplitude > 1e-3).all()
    assert hunting.frequency_hz == pytest.approx([4.85] * 4, abs=0.1)
    assert (hunting.low < hunting.mean).all()
    assert (hunting.mean < hunting.high).all()
    assert (branch.amplitude("wheelset_tl.y")[2:] < 5e-5).all()
    assert json.loads(json.dumps(branch.to_dict()))["death"] == 80.0


def test_the_last_state_is_used_again(wagon):
    start = start_set(wagon)["antisymmetric"]
    together = list(ramp(wagon, (110.0, 104.0), start, settings=SHORT))
    bind = wagon.bind(["speed_mps"])
    state = bind([110.0]).equilibrium()
    for name, value in start.items():
        state[wagon.index(name)] += value
    for step in together:
        run = simulate(
            bind([step.value]),
            state,
            (0.0, 4.0),
            rtol=1e-5,
            atol=1e-8,
            sample_s=0.005,
            observables=WHEELSETS,
            store=False,
        )
        assert np.array_equal(run.y_end, step.state)
        assert step.duration_s == 4.0
        state = run.y_end


def test_the_same_start_each_time_makes_steps_independent(wagon):
    same = RampSettings(dwell_s=2.0, window_s=1.0, restart="same")
    start = {"wheelset_tl.y": 3e-3}
    together = list(ramp(wagon, (110.0, 60.0, 104.0), start, settings=same))
    alone = next(ramp(wagon, [104.0], start, settings=same))
    assert np.array_equal(together[2].state, alone.state)
    assert np.array_equal(together[2].high, alone.high)


def test_a_mirrored_start_gives_the_mirrored_band(wagon):
    """The right-hand side mirrors to rounding; a step more or less where a wheel lifts is worth the tolerance."""
    start = {"wheelset_ll.y": 4e-3, "wheelset_tl.y": -2e-3, "bogie_leading.yaw": 1e-3}
    mirrored = {name: -value for name, value in start.items()}
    settings = RampSettings(dwell_s=1.5, window_s=1.0)
    for a, b in zip(
        ramp(wagon, (110.0, 105.0), start, settings=settings),
        ramp(wagon, (110.0, 105.0), mirrored, settings=settings),
        strict=True,
    ):
        np.testing.assert_allclose(b.low, -a.high, rtol=2e-3)
        np.testing.assert_allclose(b.high, -a.low, rtol=2e-3)
        assert a.hunting == b.hunting


def test_derailment_ends_the_ramp_as_its_last_step(wagon):
    steps = list(ramp(wagon, (104.0, 200.0, 60.0), start_set(wagon)["antisymmetric"], settings=SHORT))
    assert [s.value for s in steps] == [104.0, 200.0]
    assert steps[0].success
    assert steps[1].status == Status.DERAILED
    assert 0.0 < steps[1].duration_s < 4.0
    assert np.isnan(steps[1].high).all()
    assert not steps[1].hunts
    assert steps[1].to_dict()["channels"]["wheelset_ll.y"]["max"] is None
    branch = ramp_branch(wagon, (104.0, 200.0), start_set(wagon)["antisymmetric"], settings=SHORT)
    assert branch.status == Status.DERAILED
    assert branch.death() is None


def test_a_ramp_computes_no_more_than_is_asked_for(wagon):
    steps = islice(ramp(wagon, steps_between(60.0, 1e3, 0.01), settings=RampSettings(dwell_s=0.2, window_s=0.2)), 2)
    assert [s.value for s in steps] == [60.0, 60.01]


def test_leaving_early_when_the_motion_has_died_is_an_option(wagon):
    start = {"wheelset_ll.y": 1e-3}
    full = next(ramp(wagon, [60.0], start))
    assert full.duration_s == 10.0
    early = next(ramp(wagon, [60.0], start, settings=RampSettings(quiet_m=5e-5)))
    assert early.duration_s in (2.0, 4.0, 6.0)
    assert not early.hunts
    # a motion that grows is not left
    slow = RampSettings(dwell_s=5.0, window_s=2.0, quiet_m=1e-5)
    growing = next(ramp(wagon, [118.0], start_set(wagon, 1e-4)["antisymmetric"], settings=slow))
    assert growing.duration_s == 5.0
    assert growing.amplitude.max() < 1e-3
    assert growing.trend[2] > 1.0


@pytest.mark.parametrize(
    ("parameter", "values"),
    [("track.radius_m", (-3000.0, 3000.0)), ("track.cant_mm", (50.0, 20.0)), ("contact.friction", (0.1, 0.3))],
)
def test_any_bound_parameter_can_be_ramped(parameter, values):
    curve = assemble("cooperrider", speed_mps=30.0, track=Track(radius_m=3000.0, cant_mm=50.0))
    bind = curve.bind([parameter])
    for step in ramp(curve, values, parameter=parameter, settings=RampSettings(dwell_s=12.0, window_s=2.0)):
        rest = bind([step.value]).equilibrium()
        at_rest = [rest[curve.index(name)] for name in WHEELSETS]
        assert not step.hunts
        np.testing.assert_allclose(step.mean, at_rest, atol=3e-5)
    if parameter == "track.radius_m":
        assert step.mean[0] > 1e-3  # outward in a right-hand curve is to the left


def test_other_channels_are_watched_beside_the_wheelsets(wagon):
    step = next(
        ramp(wagon, [110.0], start_set(wagon)["in_phase"], channels=["wheelset_ll.left.y_over_q"], settings=SHORT)
    )
    assert step.channels == (*WHEELSETS, "wheelset_ll.left.y_over_q")
    assert step.amplitude[step.channel("wheelset_ll.left.y_over_q")] > 0.0
    with pytest.raises(InputError, match="was not watched"):
        step.channel("car_body.y")


def test_continuous_ramp_follows_the_line(wagon):
    settings = RampSettings(dwell_s=1.0, window_s=1.0, rtol=1e-9, atol=1e-12)
    start = {"wheelset_ll.y": 1e-3}
    place = wagon.index("bogie_leading.y")
    ends = []
    for piece in (0.2, 0.1, 0.05):
        steps = list(continuous_ramp(wagon, 104.0, 100.0, 4.0, start, settings=settings, piece_s=piece))
        assert [s.value for s in steps] == pytest.approx([100.0])
        assert [s.duration_s for s in steps] == pytest.approx([1.0])
        ends.append(steps[-1].state[place])
    # the staircase of mid-values converges with the square of the tread
    assert 3.0 < abs(ends[1] - ends[0]) / abs(ends[2] - ends[1]) < 5.5
    # and its own speeds matter, beside a constant one
    constant = simulate(wagon.bind(["speed_mps"])([102.0]), start, (0.0, 1.0), rtol=1e-9, atol=1e-12).y_end[place]
    assert abs(ends[2] - ends[1]) < 0.1 * abs(ends[2] - constant)


def test_continuous_ramp_ends_with_a_derailment(wagon):
    settings = RampSettings(dwell_s=1.0, window_s=1.0)
    steps = list(continuous_ramp(wagon, 190.0, 240.0, 10.0, start_set(wagon)["in_phase"], settings=settings))
    assert len(steps) < 5
    assert steps[-1].status == Status.DERAILED


def test_branches_from_several_starts_are_sorted_into_attractors(wagon):
    starts = {name: start_set(wagon, 1e-3)[name] for name in ("antisymmetric", "bogie_trailing")}
    report = find_branches(wagon, [70.0], {**starts, "far": {"wheelset_ll.y": 0.1}}, threads=2, settings=SHORT)
    assert report.branches["far"].status == Status.DERAILED
    assert len(report.attractors) == 1
    assert report.attractors[0].starts == ("antisymmetric", "bogie_trailing")
    assert not any(report.attractors[0].hunting.values())
    assert set(report.to_dict()["branches"]) == {"antisymmetric", "bogie_trailing", "far"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart": "first"}, "restart"),
        ({"window_s": 20.0}, "window_s"),
        ({"dwell_s": 0.0}, "dwell_s"),
        ({"hunting_m": -1.0}, "hunting_m"),
        ({"sample_s": 4.0}, "sample_s"),
    ],
)
def test_settings_are_strict(options, message):
    with pytest.raises(InputError, match=message):
        RampSettings(**options)


def test_what_cannot_be_ramped_is_refused(wagon):
    with pytest.raises(InputError, match="not a parameter"):
        next(ramp(wagon, [1.0], parameter="speed_kmh"))
    varying = assemble("cooperrider", speed_mps=30.0, track=Track(radius_m=600.0, transition_m=50.0))
    with pytest.raises(InputError, match="constant track"):
        next(ramp(varying, [20.0]))
    with pytest.raises(InputError, match="constant track"):
        next(continuous_ramp(varying, 20.0, 30.0, 1.0))
