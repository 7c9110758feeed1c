"""The edge state: against a separatrix in closed form, and for the wagon on the published table by simulation."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from known_systems import bautin_family

from railsweep.engine import InputError, Model, load_contact_table
from railsweep.sweeps.bifurcation import CyclePoint, KickSettings, NoSolution, edge_cycle, family_of_model
from railsweep.sweeps.bifurcation.continuation import BranchEnd
from railsweep.sweeps.bifurcation.critical_speed import (
    Search,
    critical_speeds_below,
    damped,
    descend,
    follow,
    largest_amplitude,
)
from railsweep.sweeps.bifurcation.motion import Motion, kicked, run_motion
from railsweep.sweeps.bifurcation.published import published_wagon

W, TWIST = 2.0, 0.3  # of bautin_family
SETTINGS = KickSettings(
    horizon_s=150.0, window_s=40.0, sample_s=0.05, hunting=0.05, scan=4, tolerance=1e-12, rtol=1e-9, atol=1e-12
)
PLAIN_MPS = 53.0  # without the damper hunting is a chaotic transient: a slow ramp loses it at 52.75 m/s
SPEED_MPS = 80.0  # half-way between the fold (52 m/s) and the Hopf point (109 m/s)


@pytest.mark.parametrize("mu", [-0.05, -0.15, -0.2])
@pytest.mark.parametrize("start", [[0.95, 0.0], [-0.3, 0.9]])
def test_the_edge_of_the_bautin_normal_form(mu: float, start: list[float]) -> None:
    # r' = r (mu + r^2 - r^4): rest, the edge and the large cycle
    found = edge_cycle(bautin_family(1.0, -1.0), mu, start, settings=SETTINGS, tolerance=1e-9, rtol=1e-10, atol=1e-12)
    r2 = 0.5 * (1.0 - np.sqrt(1.0 + 4.0 * mu))
    period = 2.0 * np.pi / (W + TWIST * r2)
    assert np.linalg.norm(found.start) == pytest.approx(np.sqrt(r2), rel=1e-7)
    assert found.period_s == pytest.approx(period, rel=1e-7)
    assert found.floquet.unstable == 1
    assert found.floquet.leading == pytest.approx(np.exp((2.0 * r2 - 4.0 * r2**2) * period), rel=1e-5)


@pytest.mark.parametrize(
    ("mu", "start", "reason"),
    [
        (-0.3, [0.95, 0.0], "leads to hunting"),  # below the fold at -1/4
        (-0.15, [0.3, 0.0], "leads to hunting"),  # inside the edge at 0.43
        (0.5, [0.95, 0.0], "rest is unstable"),
        (0.1, [0.95, 0.0], "no edge state"),  # so is it here, but what is small stays small till the horizon
    ],
)
def test_no_edge_says_why(mu: float, start: list[float], reason: str) -> None:
    with pytest.raises(NoSolution, match=reason):
        edge_cycle(bautin_family(1.0, -1.0), mu, start, settings=SETTINGS)


def test_a_start_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="2 numbers"):
        edge_cycle(bautin_family(1.0, -1.0), -0.15, [1.0, 0.0, 0.0])


@dataclass(frozen=True)
class Edge:
    """The wagon on the published table, its hunting motion and its edge state at one speed."""

    plain: Model
    model: Model  # with the damper along the contact normal that cycles need
    hunting: Motion
    cycle: CyclePoint


@pytest.fixture(scope="module")
def edge(published_table_path: Path) -> Edge:
    plain = published_wagon(load_contact_table(published_table_path))
    model = damped(plain, Search())
    here, fast = (model.bind(["speed_mps"])([v]) for v in (SPEED_MPS, 105.0))
    start = run_motion(fast, kicked(fast, fast.equilibrium(), 6e-3), 6.0).end
    hunting = run_motion(here, start, 8.0)
    assert hunting.hunts
    return Edge(plain, model, hunting, edge_cycle(family_of_model(model), SPEED_MPS, hunting.start))


def fates(model: Model, cycle: CyclePoint) -> tuple[Motion, Motion]:
    """What becomes of the cycle made smaller and larger by one per cent."""
    here = model.bind(["speed_mps"])([cycle.parameter])
    rest = here.equilibrium()
    starts = (rest + share * (cycle.start - rest) for share in (0.99, 1.01))
    inside, outside = (run_motion(here, start, 12.0, rtol=1e-7, atol=1e-10) for start in starts)
    return inside, outside


@pytest.mark.slow
def test_the_edge_parts_rest_from_hunting_on_the_published_table(edge: Edge) -> None:
    size = largest_amplitude(edge.model, edge.cycle)
    large = float(edge.hunting.amplitude_m.max())
    assert 0.5e-3 < size < 0.6 * large
    seen = edge.cycle.floquet
    assert seen.unstable == 1
    assert seen.kind == "saddle"
    assert seen.leading.real > 2.0
    assert abs(seen.trivial - 1.0) < 2e-3
    # pitch of the bogies has no damper: a pair each, named and not counted
    assert sorted(seen.neutral) == ["bogie_leading.pitch_dot"] * 2 + ["bogie_trailing.pitch_dot"] * 2
    for model in (edge.model, edge.plain):  # the damper along the normal moves no border
        inside, outside = fates(model, edge.cycle)
        assert not inside.hunts
        assert float(inside.amplitude_m.max()) < 1e-3 * size
        assert outside.hunts
        # one bogie alone, about as large as both together
        assert float(outside.amplitude_m.max()) == pytest.approx(large, rel=0.05)
        assert outside.trend == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_motions_leave_the_edge_at_the_rate_of_its_multiplier(edge: Edge) -> None:
    """Two simulations a hair on either side part by the multiplier in every period; no monodromy matrix is asked.

    After five periods what else was in the gap has fallen behind by (0.99 / 2.4)^5, one per cent, and by ten to 1e-4;
    the gap is still below a thousandth of the motion.
    """
    here = edge.model.bind(["speed_mps"])([SPEED_MPS])
    rest = here.equilibrium()
    wheels = [here.index(f"{name}.y") for name in here.layout.wheelset_names]
    ends = [rest + (1.0 + e) * (edge.cycle.start - rest) for e in (-1e-7, 1e-7)]
    gaps = []
    for _ in range(10):
        ends = [run_motion(here, y, edge.cycle.period_s, rtol=1e-10, atol=1e-14).end for y in ends]
        gaps.append(float(np.linalg.norm((ends[1] - ends[0])[wheels])))
    assert gaps[-1] < 1e-2 * largest_amplitude(edge.model, edge.cycle)
    assert (gaps[-1] / gaps[4]) ** 0.2 == pytest.approx(edge.cycle.floquet.leading.real, rel=0.01)


@pytest.mark.slow
def test_the_unstable_branch_leads_from_the_edge_down_to_the_fold(edge: Edge) -> None:
    # on either side of the edge one bogie hunts alone; both together are another attractor, which dies at 55 m/s
    search = Search(points=40)
    outside = fates(edge.model, edge.cycle)[1]
    below = critical_speeds_below(edge.model, descend(edge.model, SPEED_MPS, search, outside.end), search)
    assert below.method == "fold"
    (fold,) = below.nonlinear_mps
    branch = list(follow(edge.model, edge.cycle, search, -1, BranchEnd()))
    # the last bits of the arithmetic decide whether the kinks of the table stop it close to the fold, or it goes
    # through and up again on the other side
    slowest = min(range(len(branch)), key=lambda i: branch[i].parameter)
    branch = branch[: slowest + 1]
    last = branch[-1]
    # the two sides meet: as near as a slow ramp must come to the fold, and no cycle is slower
    assert last.parameter == pytest.approx(fold, abs=0.2)
    assert last.parameter > fold - 0.01
    # at most that of the fold, which may have been found from both sides (seen: 0.9998 of it)
    assert 0.95 * below.amplitude_m < largest_amplitude(edge.model, last) < 1.001 * below.amplitude_m
    # within half a metre per second the two sides are less than two per cent apart, and kinks of the table count
    clear = [p for p in branch if p.parameter > fold + 0.5]
    assert len(clear) > 8
    assert all(p.floquet.unstable == 1 and p.floquet.kind == "saddle" for p in clear)
    for point in clear[::-4]:
        size = largest_amplitude(edge.model, point)
        for model in (edge.model, edge.plain) if point.parameter > PLAIN_MPS else (edge.model,):
            inside, outside = fates(model, point)
            assert not inside.hunts
            assert float(inside.amplitude_m.max()) < 0.05 * size
            assert outside.hunts
            assert float(outside.amplitude_m.max()) > 1.03 * size
