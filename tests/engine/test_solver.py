"""The contract of `solve`: statuses, samples, stops, events, structure, ensembles."""

import subprocess
import sys
import textwrap
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from railsweep.engine.ensemble import solve_ensemble
from railsweep.engine.errors import InputError
from railsweep.engine.linear_solver import body_tree_solver
from railsweep.engine.solver import solve
from railsweep.engine.solver_plan import Events, column_groups
from railsweep.kernels import record
from railsweep.kernels.integrate.registry import METHODS
from railsweep.kernels.law import law_force
from railsweep.kernels.status import Status

njit = numba.njit(cache=True, error_model="numpy")
EVERY = sorted(METHODS)
IMPLICIT = sorted(m for m in METHODS if METHODS[m].implicit)


@njit
def decay(t, y, params, out):
    out[0] = -y[0]


@njit
def gives_up(t, y, params, out):
    """Status 3 (law out of range) beyond y = 2 while y grows as exp(t)."""
    out[0] = y[0]
    return 3 if y[0] > 2.0 else 0


@njit
def root(t, y, params, out):
    """y' = -sqrt(y): not a number for y < 0, which a long stage easily meets."""
    out[0] = -np.sqrt(y[0]) if y[0] >= 0.0 else np.nan


@njit
def blow_up(t, y, params, out):
    out[0] = y[0] * y[0]


@njit
def raises(t, y, params, out):
    if t > 0.5:
        raise ValueError("no further")
    out[0] = 1.0


class Springs(NamedTuple):
    stiffness: np.ndarray
    damping: np.ndarray


@njit
def chain(t, y, springs, out):
    """Masses in a row, each tied to its neighbours and, with damping, to the ground; positions first."""
    n = y.size // 2
    for i in range(n):
        out[i] = y[n + i]
        force = -springs.damping[i] * y[n + i]
        left = y[i - 1] if i > 0 else 0.0
        right = y[i + 1] if i < n - 1 else 0.0
        force += springs.stiffness[i] * (left - y[i]) + springs.stiffness[i + 1] * (right - y[i])
        out[n + i] = force - 10.0 * y[i] ** 3


@njit
def bouncing(t, y, params, out):
    """A mass that meets a stiff stop at x = 0 while gravity pulls it down."""
    out[0] = y[1]
    out[1] = -10.0 + (params[0] * -y[0] if y[0] < 0.0 else 0.0)


@njit
def gap(t, y, params, out):
    out[0] = y[0]


class BumpStop(NamedTuple):
    index: np.ndarray
    law: np.ndarray
    segment: np.ndarray


@njit
def sprung(t, y, stop, out):
    """Unit mass on a spring of 1 Hz with a bump stop of tabulated law on either side."""
    force, status = law_force(0, y[0], stop.index, stop.law, stop.segment)
    out[0] = y[1]
    out[1] = -40.0 * y[0] - force
    return status


@njit
def corners(t, y, stop, out):
    for k in range(4):
        out[k] = y[0] - stop.segment[k + 1, 0]


@njit
def jump(t, y, params, out):
    out[0] = 1.0 if t < 0.5 else -3.0


@njit
def largest(t, y, params, accumulator):
    accumulator[0] = max(accumulator[0], y[0])
    accumulator[1] += 1.0


@njit
def van_der_pol(t, y, mu, out):
    out[0] = y[1]
    out[1] = mu * (1.0 - y[0] * y[0]) * y[1] - y[0]


def springs(n: int, stiffness: float) -> Springs:
    return Springs(np.linspace(1.0, 2.0, n + 1) * stiffness, np.full(n, 0.5))


# --- statuses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", EVERY)
def test_a_refusing_problem_stops_with_its_status_and_keeps_what_was_computed(method: str) -> None:
    wanted = np.linspace(0.0, 2.0, 201)
    solution = solve(gives_up, (0.0, 2.0), [1.0], None, method, rtol=1e-6, atol=1e-8, t_eval=wanted)
    assert solution.status is Status.LAW_OUT_OF_RANGE
    assert not solution.success
    assert "law" in solution.message
    # The last state is close to where the problem refuses, and all samples before it are there and right.
    assert np.log(2.0) - 0.05 < solution.t_end
    assert solution.y_end[0] <= 2.0 * (1.0 + 1e-6)
    assert solution.t.size == np.count_nonzero(wanted <= solution.t_end)
    assert np.max(np.abs(solution.y[0] - np.exp(solution.t))) < 1e-4
    assert solution.counters["stage_failures"] > 3


@pytest.mark.parametrize("method", EVERY)
def test_a_non_finite_stage_rejects_the_step(method: str) -> None:
    """y = (1 - t/2)^2 reaches 0 at t = 2; steps there look beyond and must come back."""
    solution = solve(root, (0.0, 1.99), [1.0], None, method, rtol=1e-5, atol=1e-7, first_step=1.5)
    assert solution.success, solution.message
    assert np.all(np.isfinite(solution.y))
    assert solution.y_end[0] == pytest.approx(0.005**2, abs=2e-4)


@pytest.mark.parametrize("method", EVERY)
def test_a_singularity_is_not_reported_as_success(method: str) -> None:
    solution = solve(blow_up, (0.0, 2.0), [1.0], None, method, max_steps=200_000)
    assert solution.status in (Status.STEP_UNDERFLOW, Status.NOT_FINITE, Status.NEWTON_FAILED)
    assert solution.t_end == pytest.approx(1.0, abs=1e-3)
    assert np.all(np.isfinite(solution.y))


def test_a_raising_problem_is_not_taken_for_well() -> None:
    solution = solve(raises, (0.0, 1.0), [0.0], None, "dopri5")
    assert solution.status is Status.NOT_FINITE
    assert solution.t_end <= 0.5


@pytest.mark.parametrize("method", EVERY)
def test_limits(method: str) -> None:
    few = solve(van_der_pol, (0.0, 1e3), [2.0, 0.0], 5.0, method, max_steps=7)
    assert few.status is Status.STEP_LIMIT
    assert 0 < few.counters["accepted"] <= 7
    few = solve(van_der_pol, (0.0, 1e3), [2.0, 0.0], 5.0, method, max_rhs=100)
    assert few.status is Status.STEP_LIMIT
    assert few.counters["rhs"] < 400


def test_time_limit() -> None:
    solution = solve(van_der_pol, (0.0, 1e9), [2.0, 0.0], 5.0, "dopri5", store=False, time_limit=0.2)
    assert solution.status is Status.TIME_LIMIT
    assert 0.0 < solution.t_end < 1e9


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"method": "esdirk55"}, "method"),
        ({"rtol": -1.0}, "rtol"),
        ({"atol": [1.0, np.nan]}, "atol"),
        ({"t_eval": [0.5, 0.2]}, "t_eval"),
        ({"t_eval": [0.5, 1.5]}, "t_eval"),
        ({"norm": "euclid"}, "norm"),
        ({"controller": "fuzzy"}, "controller"),
        ({"controller": "pi", "method": "bdf"}, "controller"),
        ({"controller": "h211b", "method": "bsimp"}, "controller"),
        ({"controller": "elementary", "method": "seulex"}, "controller"),
        ({"newton": "published", "method": "bdf"}, "newton"),
        ({"newton": "published", "method": "radau"}, "newton"),
        ({"newton": "published", "method": "dopri5"}, "newton"),
        ({"max_step": 0.0}, "max_step"),
        ({"y0": [np.nan, 0.0]}, "y0"),
        ({"rhs": lambda t, y, p, out: None}, "rhs"),
    ],
)
def test_bad_input_is_refused_by_name(change: dict, where: str) -> None:
    arguments = {"rhs": van_der_pol, "t_span": (0.0, 1.0), "y0": [2.0, 0.0], "params": 1.0, "method": "dopri5"}
    with pytest.raises(InputError) as caught:
        solve(**{**arguments, **change})
    assert caught.value.where == where


# --- samples, direction, stops, events ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", EVERY)
def test_backward_integration_returns_to_the_start(method: str) -> None:
    forward = solve(van_der_pol, (0.0, 2.0), [2.0, 0.0], 1.0, method, rtol=1e-9, atol=1e-9)
    assert np.all(np.diff(forward.t) > 0.0)
    back = solve(van_der_pol, (2.0, 0.0), forward.y_end, 1.0, method, rtol=1e-9, atol=1e-9, t_eval=[1.5, 1.0, 0.0])
    assert back.success
    assert back.y_end == pytest.approx([2.0, 0.0], abs=1e-5)
    assert np.array_equal(back.t, [1.5, 1.0, 0.0])


@pytest.mark.parametrize("method", EVERY)
def test_stops_make_a_broken_input_exact(method: str) -> None:
    """A piecewise constant slope is integrated exactly when a step ends at the break."""
    solution = solve(jump, (0.0, 1.0), [0.0], None, method, stops=[0.5])
    assert 0.5 in solution.t
    assert solution.y_end[0] == pytest.approx(0.5 - 1.5, abs=1e-9)
    assert solution.counters["rejected"] == 0
    assert solution.counters["restarts"] == 1


@pytest.mark.parametrize("method", EVERY)
def test_a_stopping_event_is_located(method: str) -> None:
    """Free fall from 1 m reaches 0 at sqrt(2/10)."""
    events = Events(function=gap, count=1, direction=(-1,), policy="stop")
    solution = solve(bouncing, (0.0, 1.0), [1.0, 0.0], np.array([1e4]), method, rtol=1e-8, atol=1e-8, events=events)
    assert solution.status is Status.EVENT
    assert solution.event_t == pytest.approx([np.sqrt(0.2)], abs=1e-6)
    assert solution.t_end == solution.event_t[0]
    assert solution.y_end[0] == pytest.approx(0.0, abs=1e-6)
    assert solution.t[-1] == solution.t_end


def steps_at_equal_error(problem: tuple, events: Events, wanted: np.ndarray, exact: np.ndarray) -> tuple[int, int, int]:
    """Attempted steps with event location, the fewest without it at no larger error, and the events of the former.

    The error is the largest over all samples; the run without location may choose its tolerance in small steps.
    """

    def run(rtol: float, events: Events | None) -> tuple[int, float, int]:
        found = solve(*problem, rtol=rtol, atol=1e-2 * rtol, events=events, t_eval=wanted)
        assert found.success, found.message
        work = found.counters
        attempts = work["accepted"] + work["rejected"] + work["newton_failures"]
        return attempts, float(np.abs(found.y[0] - exact).max()), work["events"]

    located, error, count = run(1e-6, events)
    plain = [run(10.0**-k, None) for k in np.arange(5.0, 11.0, 0.25)]
    return located, min(attempts for attempts, reached, _ in plain if reached <= error), count


@pytest.mark.parametrize("method", ["dopri5", "dop853", "esdirk54", "radau"])
@pytest.mark.parametrize("k", [1e4, 1e6])
def test_event_location_halves_the_steps_of_a_bouncing_mass(method: str, k: float) -> None:
    """Period 2 sqrt(0.2) in the air plus the time in the stop, in closed form."""
    omega = np.sqrt(k)
    speed = np.sqrt(20.0)
    contact = (2.0 * np.pi - 2.0 * np.arctan(speed * omega / 10.0)) / omega
    period = 2.0 * np.sqrt(0.2) + contact
    wanted = np.linspace(0.0, 5 * period, 101)
    phase = np.mod(wanted + 0.5 * period, period) - 0.5 * period  # 0 at the top
    inside = np.abs(phase) > np.sqrt(0.2)
    depth = np.hypot(10.0 / k, speed / omega)
    s = 0.5 * period - np.abs(phase)
    exact = np.where(inside, -10.0 / k - depth * np.cos(omega * s), 1.0 - 5.0 * phase**2)
    problem = (bouncing, (0.0, 5 * period), [1.0, 0.0], np.array([k]), method)
    located, plain, events = steps_at_equal_error(problem, Events(function=gap, count=1), wanted, exact)
    assert events == 10
    assert located <= 0.5 * plain


@pytest.mark.parametrize("method", ["dopri5", "dop853", "esdirk54", "radau"])
def test_event_location_halves_the_steps_of_a_bump_stop(method: str) -> None:
    """A sprung mass between bump stops with a tabulated law: nothing up to 10 mm, then stiff, from 12 mm very stiff."""
    x = np.array([-0.03, -0.012, -0.010, 0.010, 0.012, 0.03])
    force = np.array([-18200.0, -200.0, 0.0, 0.0, 200.0, 18200.0])
    segment = np.zeros((5, record.SEGMENT_WIDTH))
    segment[:, record.SEGMENT_LEFT], segment[:, record.SEGMENT_RIGHT] = x[:-1], x[1:]
    segment[:, record.SEGMENT_C0], segment[:, record.SEGMENT_C1] = force[:-1], np.diff(force) / np.diff(x)
    index = np.array([[record.TABLE_LAW, 0, 5, record.OUTSIDE_STOP]])
    stop = BumpStop(index, np.array([[0.0, 0.0, 1.0, 1.0]]), segment)
    wanted = np.linspace(0.0, 2.0, 201)
    events = Events(function=corners, count=4)
    tight = {"rtol": 1e-12, "atol": 1e-14, "events": events, "t_eval": wanted}
    exact = solve(sprung, (0.0, 2.0), [0.0, 1.2], stop, "dop853", **tight).y[0]
    problem = (sprung, (0.0, 2.0), [0.0, 1.2], stop, method)
    located, plain, count = steps_at_equal_error(problem, events, wanted, exact)
    assert count > 40
    assert located <= 0.5 * plain


@pytest.mark.parametrize("method", EVERY)
def test_recorded_events_do_not_change_the_run(method: str) -> None:
    plain = solve(van_der_pol, (0.0, 20.0), [2.0, 0.0], 1.0, method)
    events = Events(function=gap, count=1, policy="record")
    watched = solve(van_der_pol, (0.0, 20.0), [2.0, 0.0], 1.0, method, events=events)
    if method not in ("bsimp", "seulex"):  # there a dense output that is needed may shorten a step
        assert np.array_equal(plain.y_end, watched.y_end)
    assert watched.counters["events"] == np.count_nonzero(np.diff(np.sign(plain.y[0])))


def test_observer_sees_every_sample() -> None:
    wanted = np.linspace(0.0, 20.0, 2001)
    stored = solve(van_der_pol, (0.0, 20.0), [2.0, 0.0], 1.0, "dopri5", t_eval=wanted)
    observed = solve(
        van_der_pol,
        (0.0, 20.0),
        [2.0, 0.0],
        1.0,
        "dopri5",
        t_eval=wanted,
        observer=largest,
        accumulator=[-np.inf, 0.0],
        store=False,
    )
    assert observed.accumulator[1] == wanted.size
    assert observed.accumulator[0] == stored.y[0].max()


# --- structure -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", IMPLICIT)
def test_reduced_linear_algebra_gives_the_same_solution(method: str) -> None:
    # The same mathematics with another rounding, which may cost a step more or less: the solutions differ by no more
    # than they err, and the work is the same on the whole (single runs scatter by up to a fifth).
    n = 12
    y0 = np.concatenate([np.linspace(-1.0, 1.0, n), np.zeros(n)])
    reduced = body_tree_solver(2 * n, [[(n + i, i)] for i in range(n)], [(i, i + 1) for i in range(n - 1)])
    options = {"rtol": 1e-7, "atol": 1e-9, "store": False}
    factorisations = np.zeros(2)
    for stiffness in np.geomspace(0.7e4, 1.4e4, 8):
        params = springs(n, stiffness)
        exact = solve(chain, (0.0, 1.0), y0, params, "dop853", rtol=1e-12, atol=1e-12, store=False).y_end
        full = solve(chain, (0.0, 1.0), y0, params, method, **options)
        half = solve(chain, (0.0, 1.0), y0, params, method, **options, linear=reduced)
        assert half.success
        assert np.abs(half.y_end - full.y_end).max() < np.abs(full.y_end - exact).max()
        factorisations += [full.counters["factorisations"], half.counters["factorisations"]]
    assert factorisations[1] == pytest.approx(factorisations[0], rel=0.05)


@pytest.mark.parametrize("method", ["bdf", "esdirk54", "radau"])
def test_grouped_differences_cost_less_and_change_nothing(method: str) -> None:
    n = 12
    pattern = np.zeros((2 * n, 2 * n))
    for i in range(n):
        pattern[i, n + i] = 1
        pattern[n + i, n + i] = 1
        pattern[n + i, max(0, i - 1) : i + 2] = 1
    y0 = np.concatenate([np.linspace(-1.0, 1.0, n), np.zeros(n)])
    arguments = (chain, (0.0, 1.0), y0, springs(n, 1e4), method)
    full = solve(*arguments, store=False)
    grouped = solve(*arguments, store=False, sparsity=pattern)
    assert np.array_equal(full.y_end, grouped.y_end)
    groups = column_groups(pattern).max() + 1
    assert groups <= 5
    assert grouped.counters["jacobian_rhs"] == groups * grouped.counters["jacobians"]
    assert full.counters["jacobian_rhs"] == 2 * n * full.counters["jacobians"]


# --- published settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nt1", "jkt"])
def test_published_rules(method: str) -> None:
    """Spec 3.5: a Jacobian and an LU for each attempted step, three implicit stages of a few evaluations each."""
    n = 6
    y0 = np.concatenate([np.linspace(-1e-3, 1e-3, n), np.zeros(n)])
    solution = solve(
        chain,
        (0.0, 1.0),
        y0,
        springs(n, 1e4),
        method,
        atol=1e-8,
        norm="published",
        controller="published_pi",
        newton="published",
        first_step=1e-6,
        store=False,
    )
    work = solution.counters
    attempts = work["accepted"] + work["rejected"] + work["newton_failures"]
    assert solution.success
    assert work["jacobians"] == attempts
    assert work["factorisations"] == attempts
    # One evaluation per attempt is the base point of the difference Jacobian; each stage iterates at least once, and
    # the published runs (a stiffer problem) needed 9 to 12.
    assert 3.0 <= work["rhs"] / attempts - 1.0 <= 13.0
    reference = solve(chain, (0.0, 1.0), y0, springs(n, 1e4), "dop853", rtol=1e-11, atol=1e-14, store=False)
    assert solution.y_end == pytest.approx(reference.y_end, abs=1e-3 * np.abs(reference.y_end).max() + 1e-5)


@pytest.mark.parametrize(
    "controller", ["elementary", "pi", "h211b", "predictive", "published_elementary", "published_pi"]
)
@pytest.mark.parametrize("norm", ["scaled", "maximum"])
def test_every_controller_and_norm_holds_the_tolerance(controller: str, norm: str) -> None:
    reference = solve(van_der_pol, (0.0, 10.0), [2.0, 0.0], 2.0, "dop853", rtol=1e-12, atol=1e-12).y_end
    for method in ("dopri5", "esdirk54", "radau", "rkf34"):
        solution = solve(
            van_der_pol, (0.0, 10.0), [2.0, 0.0], 2.0, method, 1e-7, 1e-7, norm=norm, controller=controller
        )
        assert solution.y_end == pytest.approx(reference, abs=2e-5)


# --- auto --------------------------------------------------------------------------------------------------------


def test_auto_switches_on_a_stiff_problem_and_saves_work() -> None:
    arguments = (van_der_pol, (0.0, 2000.0), [2.0, 0.0], 1000.0)
    options = {"rtol": 1e-5, "atol": 1e-6, "store": False}
    auto = solve(*arguments, "auto", **options)
    explicit = solve(*arguments, "dopri5", **options)
    assert auto.success
    assert auto.counters["switches"] >= 1
    assert auto.counters["rhs"] + auto.counters["jacobian_rhs"] < 0.1 * explicit.counters["rhs"]
    assert auto.y_end[0] == pytest.approx(1.706167732170469, rel=1e-3)


def test_auto_stays_explicit_on_a_mild_problem() -> None:
    arguments = (van_der_pol, (0.0, 20.0), [2.0, 0.0], 1.0)
    auto = solve(*arguments, "auto", t_eval=np.linspace(0.0, 20.0, 11))
    explicit = solve(*arguments, "dopri5", t_eval=np.linspace(0.0, 20.0, 11))
    assert auto.counters["switches"] == 0
    assert np.array_equal(auto.y, explicit.y)


def test_auto_samples_across_switches() -> None:
    wanted = np.linspace(0.0, 2000.0, 501)
    auto = solve(van_der_pol, (0.0, 2000.0), [2.0, 0.0], 1000.0, "auto", rtol=1e-6, atol=1e-7, t_eval=wanted)
    reference = solve(van_der_pol, (0.0, 2000.0), [2.0, 0.0], 1000.0, "esdirk54", rtol=1e-10, atol=1e-10, t_eval=wanted)
    assert np.array_equal(auto.t, wanted)
    slow = np.abs(reference.y[1]) < 1.0  # away from the jumps, whose phase carries the error of the whole run
    assert np.max(np.abs(auto.y[0] - reference.y[0])[slow]) < 1e-2


# --- ensemble ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dopri5", "bdf", "esdirk54", "radau", "bsimp", "auto"])
def test_ensemble_does_not_depend_on_the_number_of_threads(method: str) -> None:
    n = 5
    y0 = np.concatenate([np.linspace(-1.0, 1.0, n), np.zeros(n)])
    cases = [springs(n, k) for k in np.linspace(10.0, 2e3, 16)]
    wanted = np.linspace(0.0, 1.0, 17)
    one = solve_ensemble(chain, (0.0, 1.0), y0, cases, method=method, t_eval=wanted)
    for threads in (2, 5):
        many = solve_ensemble(chain, (0.0, 1.0), y0, cases, method=method, t_eval=wanted, threads=threads)
        for a, b in zip(one, many, strict=True):
            assert np.array_equal(a.y, b.y)
            assert a.counters == b.counters
    alone = solve(chain, (0.0, 1.0), y0, cases[7], method, t_eval=wanted)
    assert np.array_equal(alone.y, one[7].y)


def test_ensemble_keeps_failed_cases_in_place() -> None:
    starts = np.array([[0.1], [1.0], [0.2]])
    solutions = solve_ensemble(gives_up, (0.0, 1.0), starts, method="dopri5", threads=2)
    assert [s.status for s in solutions] == [Status.OK, Status.LAW_OUT_OF_RANGE, Status.OK]


def test_ensemble_refuses_unknown_options() -> None:
    with pytest.raises(InputError) as caught:
        solve_ensemble(decay, (0.0, 1.0), [[1.0]], rtoll=1e-3)
    assert caught.value.where == "rtoll"


# --- memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", EVERY)
def test_a_step_allocates_nothing(method: str) -> None:
    """A run a hundred times longer makes as many arrays."""

    def arrays(t_end: float) -> tuple[int, int]:
        before = rtsys.get_allocation_stats().alloc
        solution = solve(van_der_pol, (0.0, t_end), [2.0, 0.0], 5.0, method, store=False)
        return rtsys.get_allocation_stats().alloc - before, solution.counters["accepted"]

    _nrt_python.memsys_enable_stats()
    arrays(1.0)
    short, few = arrays(1.0)
    long, many = arrays(100.0)
    assert many > few + 100
    assert long == short


# --- compilation ---------------------------------------------------------------------------------------------------


def test_a_second_process_compiles_nothing(tmp_path) -> None:
    """The entry of a module-level problem and the driver both come from the disk cache in a later process."""
    (tmp_path / "model.py").write_text(
        textwrap.dedent(
            """
            import numba
            @numba.njit(cache=True)
            def rhs(t, y, params, out):
                out[0] = -params[0] * y[0]
            """
        )
    )
    (tmp_path / "run.py").write_text(
        textwrap.dedent(
            """
            import numpy as np
            import model
            from railsweep.engine import entry, solve
            from railsweep.kernels.integrate.explicit import drive_explicit
            solve(model.rhs, (0.0, 1.0), [1.0], np.array([2.0]), "dopri5")
            compiled = next(v for k, v in entry._entries.items() if k[1] is model.rhs)
            print(compiled.cache_hits, sum(drive_explicit.stats.cache_misses.values()))
            """
        )
    )
    lines = [
        subprocess.run([sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert lines[1].split() == ["1", "0"]
