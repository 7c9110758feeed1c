"""Time histories: named states, samples, channels and their statistics, early stops, files, ensembles."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sample_vehicle
from hypothesis import given
from hypothesis import strategies as st

from railsweep.engine import (
    InputError,
    Model,
    Track,
    assemble,
    load_trajectory,
    simulate,
    simulate_ensemble,
    solver_run,
)
from railsweep.engine.simulation import (
    channel_statistics,
    initial_state,
    peak_frequency,
    state_unit,
    structure_of,
    transition_times,
)
from railsweep.kernels.integrate import linear_tree
from railsweep.kernels.status import Status

WHEELSETS = ("wheelset_ll", "wheelset_lt", "wheelset_tl", "wheelset_tt")
GRAVITY = 9.81


@pytest.fixture(scope="module")
def model() -> Model:
    return assemble("cooperrider", speed_mps=40.0)


# --- states and samples ------------------------------------------------------------------------------------------


def test_perturbations_are_added_to_the_equilibrium_by_name(model: Model) -> None:
    start = initial_state(model, {"wheelset_ll.y": 1e-3, "car_body.roll": 2e-3})
    difference = start - model.equilibrium()
    assert difference[model.index("wheelset_ll.y")] == pytest.approx(1e-3, abs=1e-12)
    assert difference[model.index("car_body.roll")] == pytest.approx(2e-3, abs=1e-12)
    assert np.count_nonzero(np.abs(difference) > 1e-12) == 2


def test_a_varying_track_starts_from_the_nominal_state() -> None:
    curve = assemble("cooperrider", speed_mps=20.0, track=Track(radius_m=600.0, cant_mm=110.0, transition_m=100.0))
    assert not initial_state(curve, None).any()


def test_unknown_states_and_channels_are_refused_with_a_proposal(model: Model) -> None:
    with pytest.raises(InputError, match="did you mean 'wheelset_"):
        simulate(model, {"wheelset_l.y": 1e-3}, (0.0, 0.1))
    with pytest.raises(InputError, match="not a channel"):
        simulate(model, {}, (0.0, 0.1), observables=["wheelset_ll.middle.q_n"])
    run = simulate(model, {}, (0.0, 0.01), sample_s=0.005)
    with pytest.raises(InputError, match="not a state"):
        run["wheelset_ll.q"]


@pytest.mark.parametrize("span", [(1.0, 1.0), (1.0, 0.0), (0.0, math.inf), (0.0, math.nan)])
def test_an_empty_span_is_refused(model: Model, span: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="t_span"):
        simulate(model, {}, span)


def test_samples_stand_on_the_grid_and_bear_the_names_of_the_states(model: Model) -> None:
    run = simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 1.0), sample_s=0.01)
    assert run.success
    assert run.t == pytest.approx(0.01 * np.arange(101), abs=1e-12)
    assert run.y.shape == (model.n, 101)
    assert run["wheelset_ll.y"][0] == pytest.approx(1e-3, abs=1e-12)
    assert np.array_equal(run["car_body.z"], run.y[model.index("car_body.z")])
    # between two samples the displacement changes by the integral of its rate (Simpson on the middle of three)
    y, rate = run["wheelset_ll.y"][30:], run["wheelset_ll.y_dot"][30:]
    simpson = 0.01 / 3.0 * (rate[:-2] + 4.0 * rate[1:-1] + rate[2:])
    assert y[2:] - y[:-2] == pytest.approx(simpson, abs=0.01 * np.abs(simpson).max())


def test_sampling_does_not_change_the_motion(model: Model) -> None:
    start = {"wheelset_ll.y": 1e-3}
    sampled = simulate(model, start, (0.0, 1.0), sample_s=0.013)
    free = simulate(model, start, (0.0, 1.0), store=False)
    assert np.array_equal(sampled.y_end, free.y_end)
    assert free.y.shape[1] < 2  # at most the end


@pytest.mark.parametrize("method", ["dop853", "bdf", "esdirk54", "radau"])
def test_methods_agree(model: Model, method: str) -> None:
    start = {"wheelset_ll.y": 1e-3}
    exact = simulate(model, start, (0.0, 1.0), method="dop853", rtol=1e-11, atol=1e-14, sample_s=0.05)
    run = simulate(model, start, (0.0, 1.0), method=method, rtol=1e-7, atol=1e-10, sample_s=0.05)
    assert run["wheelset_ll.y"] == pytest.approx(exact["wheelset_ll.y"], abs=1e-7)


def test_a_model_is_not_changed_by_a_run(model: Model) -> None:
    before = model.buffer.copy()
    simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 0.1))
    assert np.array_equal(model.buffer, before)


def test_the_newton_matrix_is_reduced_to_half(model: Model) -> None:
    """66 states, 31 of them displacements whose rate is a state: seven blocks on the diagonal, six pairs beside it."""
    _, wholes = structure_of(model).work()
    assert (wholes[linear_tree.NODES], wholes[linear_tree.BLOCKS]) == (7, 7 + 2 * 6)
    rows = wholes[wholes[linear_tree.AT_NODE] : wholes[linear_tree.AT_NEIGHBOUR] : 3]
    assert rows.sum() == model.n - 31


@pytest.mark.parametrize("formulation", ["dytsi", "physics"])
@pytest.mark.parametrize("vehicle", [*sample_vehicle.LIBRARY, "every link"])
def test_elimination_along_the_body_tree_errs_by_rounding(vehicle: str, formulation: str) -> None:
    """Against the full LU over steps of 1e-6 to 10 s, although no rows are exchanged between bodies."""
    description = sample_vehicle.every_link() if vehicle == "every link" else vehicle
    model = assemble(description, speed_mps=40.0, formulation=formulation)
    random = np.random.default_rng(1)
    jacobian = model.jacobian(0.0, sample_vehicle.disturbed(model, random))
    b = random.standard_normal(model.n)
    linear = structure_of(model)
    reals, wholes = linear.work()
    for g in np.geomspace(1e-6, 10.0, 8):
        matrix = np.eye(model.n) - g * jacobian
        wanted = np.linalg.solve(matrix, b)
        x = b.copy()
        assert linear.factor(jacobian, g, reals, wholes) == 0
        linear.solve(reals, wholes, x)
        assert np.abs(x - wanted).max() < 4.0 * np.finfo(float).eps * np.linalg.cond(matrix) * np.abs(wanted).max()


# --- channels ----------------------------------------------------------------------------------------------------


def test_channels_are_what_the_model_says_at_those_states(model: Model) -> None:
    names = ["wheelset_ll.y", "wheelset_ll.y_acc", "wheelset_ll.left.q_n", "wheelset_ll.left.y_over_q"]
    run = simulate(model, {"wheelset_ll.y": 2e-3}, (0.0, 0.4), sample_s=0.02, observables=names, window_s=0.2)
    assert run.window_t == pytest.approx(np.arange(0.2, 0.401, 0.02), abs=1e-9)
    for i, t in enumerate(run.window_t):
        state = run.y[:, run.t.size - run.window_t.size + i]
        assert run.channels["wheelset_ll.y"][i] == state[model.index("wheelset_ll.y")]
        rates = model.rhs(t, state)
        assert run.channels["wheelset_ll.y_acc"][i] == pytest.approx(rates[model.index("wheelset_ll.y_dot")], rel=1e-9)


def test_wheels_carry_the_vehicle_and_forces_are_consistent(model: Model) -> None:
    """At the equilibrium on straight track the wheel loads add up to the weight and nothing acts sideways in sum."""
    sides = ("left", "right")
    loads = [f"{w}.{s}.q_n" for w in WHEELSETS for s in sides]
    lateral = [f"{w}.{s}.y_n" for w in WHEELSETS for s in sides]
    ratios = [f"{w}.{s}.y_over_q" for w in WHEELSETS for s in sides]
    sums = [f"{w}.sum_y_n" for w in WHEELSETS]
    run = simulate(model, {}, (0.0, 0.05), sample_s=0.01, observables=[*loads, *lateral, *ratios, *sums])
    weight = sum(body.mass_kg for body in model.vehicle.bodies) * GRAVITY
    assert sum(run.channels[name][-1] for name in loads) == pytest.approx(weight, rel=1e-6)
    for q, y, ratio in zip(loads, lateral, ratios, strict=True):
        assert run.channels[ratio] == pytest.approx(run.channels[y] / run.channels[q], rel=1e-12)
    for name in sums:
        assert abs(run.channels[name][-1]) < 1e-6 * weight


def test_store_false_keeps_the_channels_only(model: Model) -> None:
    both = [
        simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 0.5), observables=["wheelset_ll.y"], store=store)
        for store in (True, False)
    ]
    assert both[0].y.shape == (model.n, 101)
    assert both[1].y.size == 0
    assert np.array_equal(both[0].channels["wheelset_ll.y"], both[1].channels["wheelset_ll.y"])
    assert both[0].statistics == both[1].statistics


# --- statistics --------------------------------------------------------------------------------------------------


@given(
    frequency=st.floats(1.0, 40.0),
    amplitude=st.floats(1e-6, 1e3),
    mean=st.floats(-10.0, 10.0),
    phase=st.floats(0.0, 6.28),
)
def test_statistics_of_a_sine(frequency: float, amplitude: float, mean: float, phase: float) -> None:
    """4 s sampled at 200 Hz: at least four periods, at least five samples to a period."""
    t = 0.005 * np.arange(801)
    found = channel_statistics(t, mean * amplitude + amplitude * np.sin(2.0 * np.pi * frequency * t + phase))
    # |mean of sin(k x + p)| <= 1/(n sin(x/2)); a peak between two samples loses at most 1 - cos(x/2)
    half = math.pi * frequency * 0.005
    cut, cut_of_square = 1.0 / (801 * math.sin(half)), 0.5 / (801 * math.sin(2.0 * half))
    between = 1.0 - math.cos(half)
    assert found["frequency_hz"] == pytest.approx(frequency, abs=0.02)
    assert found["mean"] == pytest.approx(mean * amplitude, abs=1.001 * cut * amplitude)
    assert found["rms"] ** 2 == pytest.approx(0.5 * amplitude**2, abs=1.001 * (cut_of_square + cut**2) * amplitude**2)
    assert amplitude * (1.0 - between) * (1.0 - 1e-9) <= found["amplitude"] <= amplitude * (1.0 + 1e-9)
    assert found["max"] - found["min"] == pytest.approx(2.0 * found["amplitude"])


def test_the_stronger_of_two_lines_is_the_peak() -> None:
    t = 0.005 * np.arange(1000)
    values = np.sin(2.0 * np.pi * 4.84 * t) + 0.6 * np.sin(2.0 * np.pi * 11.25 * t)
    assert peak_frequency(t, values) == pytest.approx(4.84, abs=0.01)
    values = 0.6 * np.sin(2.0 * np.pi * 4.84 * t) + np.sin(2.0 * np.pi * 11.25 * t)
    assert peak_frequency(t, values) == pytest.approx(11.25, abs=0.01)


def test_statistics_without_motion_or_without_samples() -> None:
    t = 0.01 * np.arange(100)
    still = channel_statistics(t, np.full(100, 3.0))
    assert still == {"min": 3.0, "max": 3.0, "mean": 3.0, "rms": 0.0, "amplitude": 0.0, "frequency_hz": 0.0}
    nothing = channel_statistics(np.zeros(0), np.zeros(0))
    assert all(math.isnan(value) for value in nothing.values())


def test_units_follow_the_names() -> None:
    assert state_unit("wheelset_ll.y") == "m"
    assert state_unit("wheelset_ll.yaw") == "rad"
    assert state_unit("wheelset_ll.yaw_dot") == "rad/s"
    assert state_unit("car_body.z_dot") == "m/s"
    assert state_unit("wheelset_ll.spin") == "rad/s"


# --- early stops -------------------------------------------------------------------------------------------------


def test_a_derailment_keeps_what_came_before(model: Model) -> None:
    start = {"wheelset_ll.y": 5e-3, "wheelset_ll.y_dot": 3.0}
    run = simulate(model, start, (0.0, 1.0), sample_s=1e-4, observables=["wheelset_ll.y"], window_s=1.0)
    assert run.status == Status.DERAILED
    assert not run.success
    assert "derail" in run.message
    assert 0.0 < run.t_end < 1.0
    assert run.t.size == run.y.shape[1] == int(run.t_end / 1e-4) + 1
    assert run.window_t.size == run.t.size
    before = simulate(model, start, (0.0, float(run.t[-1])), sample_s=1e-4)
    assert before.success
    assert np.abs(before["wheelset_ll.y"] - run["wheelset_ll.y"]).max() < 1e-8


def test_a_time_limit_keeps_what_came_before(model: Model) -> None:
    run = simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 1e4), sample_s=0.1, time_limit=0.3)
    assert run.status == Status.TIME_LIMIT
    assert 1 < run.t.size < 100_001
    assert run.t[-1] <= run.t_end


def test_progress_reports_the_time_reached(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_run, "PROGRESS_INTERVAL_S", 0.01)
    reports: list[float] = []
    run = simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 1e4), store=False, time_limit=0.5, progress=reports.append)
    assert len(reports) > 3
    assert all(a <= b for a, b in pairwise(reports))
    assert 0.0 <= reports[0] < reports[-1] <= run.t_end


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".zarr", ".h5", ".nc"])
def test_a_saved_run_comes_back(model: Model, tmp_path: Path, ending: str) -> None:
    run = simulate(model, {"wheelset_ll.y": 1e-3}, (0.0, 0.2), sample_s=0.01)
    path = tmp_path / f"run{ending}"
    run.save(path)
    with load_trajectory(path) as back:
        assert np.array_equal(back["time"].values, run.t)
        assert set(back.data_vars) == set(model.state_names)
        for i, name in enumerate(model.state_names):
            assert np.array_equal(back[name].values, run.y[i])
        assert back["wheelset_ll.y"].attrs["units"] == "m"
        assert back.attrs["status"] == "OK"
        assert back.attrs["speed_mps"] == 40.0
        assert back.attrs["accepted"] == run.counters["accepted"]


def test_files_of_unknown_kind_are_refused(model: Model, tmp_path: Path) -> None:
    run = simulate(model, {}, (0.0, 0.01), sample_s=0.005)
    with pytest.raises(InputError, match=r"\.txt"):
        run.save(tmp_path / "run.txt")
    with pytest.raises(InputError, match="does not exist"):
        load_trajectory(tmp_path / "nothing.zarr")


# --- transitions -------------------------------------------------------------------------------------------------


def test_a_run_stops_and_restarts_at_the_end_of_a_transition() -> None:
    """In the dytsi formulation the whole wagon enters the curve at once: one corner, at length / speed."""
    track = Track(radius_m=3000.0, cant_mm=60.0, transition_m=10.0)
    curve = assemble("cooperrider", speed_mps=20.0, track=track, formulation="dytsi")
    assert transition_times(curve, (0.0, 1.0)).tolist() == [0.5]
    assert transition_times(curve, (0.0, 0.4)).size == 0
    run = simulate(curve, None, (0.0, 1.0), sample_s=0.1)
    assert run.success
    assert run.counters["restarts"] == 1


def test_bodies_pass_the_end_of_a_transition_one_after_the_other() -> None:
    """With local frames every body has its own time at both ends of the segment: its place along the vehicle."""
    track = Track(radius_m=3000.0, cant_mm=60.0, transition_m=40.0)
    curve = assemble("cooperrider", speed_mps=20.0, track=track)
    times = transition_times(curve, (0.0, 4.0))
    places = curve.layout.body_positions[: len(curve.vehicle.bodies), 0]
    expected = np.unique(np.concatenate([-places, 40.0 - places]) / 20.0)
    expected = expected[(expected > 0.0) & (expected < 4.0)]
    assert times == pytest.approx(expected, abs=1e-12)
    assert simulate(curve, None, (0.0, 4.0), store=False).counters["restarts"] == times.size


# --- ensembles ---------------------------------------------------------------------------------------------------


def test_an_ensemble_is_the_same_on_any_number_of_threads_bit_for_bit(model: Model) -> None:
    bind = model.bind(["speed_mps"])
    models = [bind([v]) for v in np.linspace(30.0, 90.0, 7)]
    start = model.state(wheelset_ll__y=3e-3)
    options = {"observables": ["wheelset_ll.y"], "rtol": 1e-6, "atol": 1e-9}
    one, two, three = (simulate_ensemble(models, start, (0.0, 0.5), threads=k, **options) for k in (1, 2, 3))
    backwards = simulate_ensemble(models[::-1], start, (0.0, 0.5), threads=2, **options)[::-1]
    for i, single in enumerate(models):
        alone = simulate(single, start, (0.0, 0.5), store=False, **options)
        for run in (one[i], two[i], three[i], backwards[i]):
            assert np.array_equal(run.y_end, alone.y_end)
            assert run.counters == alone.counters
            assert np.array_equal(run.channels["wheelset_ll.y"], alone.channels["wheelset_ll.y"])
            assert run.statistics == alone.statistics
    assert len({run.y_end.tobytes() for run in one}) == len(models)
    assert simulate_ensemble([], start, (0.0, 1.0)) == []
