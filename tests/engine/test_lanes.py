"""Cases side by side in lanes: every case as if it were alone, to the last bit, whoever its neighbours are."""

import numba
import numpy as np
import pytest
from sample_vehicle import disturbed, every_link, scaled_randomly

from railsweep.engine import Model, Track, assemble, ensemble, simulate, simulate_ensemble
from railsweep.engine.flow import Flow
from railsweep.engine.lanes import lane_form, lane_group, record_of, share_lanes
from railsweep.kernels.lane import LANES
from railsweep.kernels.status import Status
from railsweep.kernels.vehicle import vehicle_rhs
from railsweep.kernels.vehicle_lanes import vehicle_lanes_rhs

CURVE = Track(radius_m=600.0, cant_mm=100.0, transition_m=40.0, transition="bloss")
MODELS = {
    "physics": lambda: assemble("cooperrider", speed_mps=50.0),
    "dytsi": lambda: assemble("cooperrider", speed_mps=50.0, formulation="dytsi"),
    "vector links": lambda: assemble("cooperrider-vector", speed_mps=50.0),
    "every link": lambda: assemble(every_link(), speed_mps=30.0),
    "laws": lambda: assemble("manchester-1", speed_mps=40.0),
    "multi-point contact": lambda: assemble(
        "cooperrider", contact="s1002/uic60@1:40,gauge=1432,patch=multi", speed_mps=50.0
    ),
    "polach": lambda: assemble("cooperrider", speed_mps=50.0, creep_law="polach"),
    "fastsim": lambda: assemble("cooperrider", speed_mps=50.0, creep_law="fastsim"),
    "transition": lambda: assemble("cooperrider", speed_mps=20.0, track=CURVE),
    "rough": lambda: assemble("cooperrider", speed_mps=40.0, irregularity="erri-high,seed=2,length_m=200"),
}


def in_lanes(models: list[Model], times: list[float], states: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rates (lane, state) and status of every lane."""
    record, group = lane_group(models[0].arrays)
    flat = np.zeros((models[0].n + 1, LANES))
    for i, (model, t, y) in enumerate(zip(models, times, states, strict=True)):
        record[:, i] = record_of(model.arrays)
        flat[:-1, i], flat[-1, i] = y, t
    out = np.zeros_like(flat)
    vehicle_lanes_rhs(0.0, flat.ravel(), group, out.reshape(-1))
    return out[:-1].T, out[-1]


@pytest.mark.parametrize("name", list(MODELS))
def test_a_lane_is_the_single_case_to_the_last_bit(name: str) -> None:
    rng = np.random.default_rng(5)
    model = MODELS[name]()
    models = [scaled_randomly(model, rng, 0.1) for _ in range(LANES)]
    times = list(rng.uniform(0.0, 3.0, LANES))
    for size in (0.1, 1.0, 3.0):
        states = [disturbed(model, rng, size) for _ in range(LANES)]
        rates, status = in_lanes(models, times, states)
        for i in range(LANES):
            out = np.zeros(model.n)
            alone = vehicle_rhs(times[i], states[i], models[i].copy().arrays, out)
            assert status[i] == alone
            if alone == Status.OK:
                assert np.array_equal(rates[i], out)


def test_a_lane_does_not_see_its_neighbours() -> None:
    """The same case beside calm ones, and beside one that derails, one in the air and one that is not a number."""
    rng = np.random.default_rng(6)
    model = MODELS["physics"]()
    state = disturbed(model, rng)
    calm, _ = in_lanes([model] * LANES, [0.0] * LANES, [state] * LANES)
    others = [state.copy() for _ in range(LANES)]
    others[0][model.index("wheelset_ll.y")] = 1.0
    others[2][model.index("wheelset_lt.z")] = 0.1
    others[3][:] = np.nan
    wild, status = in_lanes([model] * LANES, [0.0] * LANES, others)
    assert status[0] == Status.DERAILED
    assert status[1] == Status.OK
    assert np.array_equal(calm[1], wild[1])
    assert not np.array_equal(calm[2], wild[2])


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rkf34"])
def test_runs_in_lanes_are_the_runs_alone(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven cases of very different length, among them one that derails: they take turns in the lanes."""
    model = assemble("cooperrider", contact="s1002/uic60@1:40,gauge=1438", speed_mps=60.0)
    bind = model.bind(["speed_mps", "contact.friction"])
    models = [bind([20.0 + 9.0 * i, 0.1 + 0.04 * (i % 5)]) for i in range(11)]
    starts = np.array([model.state(wheelset_ll__y=1e-3 * (1 + i % 4)) for i in range(11)])
    starts[4, model.index("wheelset_tt.y_dot")] = 3.0
    options = {"method": method, "rtol": 1e-5, "atol": 1e-8}
    used = []
    run_lanes = ensemble.run_lanes
    monkeypatch.setattr(ensemble, "run_lanes", lambda *a: used.append(len(a[2])) or run_lanes(*a))
    together = simulate_ensemble(models, starts, (0.0, 0.4), threads=2, **options)
    assert sum(used) == 11
    for one, start, run in zip(models, starts, together, strict=True):
        alone = simulate(one, start, (0.0, 0.4), store=False, **options)
        assert run.status == alone.status
        assert run.t_end == alone.t_end
        assert run.counters == alone.counters
        assert np.array_equal(run.y_end, alone.y_end)
    assert {run.status for run in together} == {Status.OK, Status.DERAILED}


def test_samples_and_step_limits_in_lanes_are_those_alone() -> None:
    model = assemble("cooperrider", contact="s1002/uic60@1:40,gauge=1438", speed_mps=60.0)
    bind = model.bind(["speed_mps"])
    models = [bind([v]) for v in (30.0, 55.0, 80.0, 90.0, 101.0)]
    start = model.state(wheelset_ll__y=4e-3)
    options = {"sample_s": 0.01, "observables": ["wheelset_ll.y", "wheelset_tl.left.y_over_q"], "store": True}
    for more in ({}, {"max_steps": 700}):
        together = simulate_ensemble(models, start, (0.0, 0.5), **options, **more)
        for one, run in zip(models, together, strict=True):
            alone = simulate(one, start, (0.0, 0.5), **options, **more)
            assert run.status == alone.status
            assert np.array_equal(run.t, alone.t)
            assert np.array_equal(run.y, alone.y)
            assert run.statistics == alone.statistics
            assert run.counters == alone.counters


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_derivative_of_a_flow_in_lanes_is_that_of_single_runs(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = assemble("cooperrider", speed_mps=60.0)
    start = model.state(wheelset_ll__y=2e-3)
    grid = np.linspace(0.0, 1.0, 61)

    def derivative():
        return Flow(vehicle_rhs, "dopri5").derivative(
            start, 0.02, grid, lambda: model.copy().arrays, steps=np.full(model.n, 1e-7), threads=threads
        )

    end, matrix = derivative()
    monkeypatch.setattr("railsweep.engine.flow.lane_form", lambda rhs: None)
    plain_end, plain_matrix = derivative()
    assert np.array_equal(end, plain_end)
    assert np.array_equal(matrix, plain_matrix)


def test_only_cases_of_one_vehicle_share_lanes() -> None:
    model = assemble("cooperrider", speed_mps=60.0)
    other = assemble("cooperrider", speed_mps=60.0, formulation="dytsi")
    assert share_lanes([model.arrays, model.bind(["speed_mps"])([70.0]).arrays])
    assert not share_lanes([model.arrays, other.arrays])
    assert lane_form(numba.njit(lambda t, y, p, out: None)) is None
