"""Critical speeds of the wagon: crossings, folds, and the separatrix checked by simulation."""

import numpy as np
import pytest

from railsweep.engine import Model, Track, assemble, stability
from railsweep.sweeps.bifurcation.continuation import BranchEnd
from railsweep.sweeps.bifurcation.critical_speed import (
    Search,
    critical_speeds,
    damped,
    follow,
    largest_amplitude,
    linear_crossings,
    warm_up,
)
from railsweep.sweeps.bifurcation.equilibrium import continue_equilibrium
from railsweep.sweeps.bifurcation.family import family_of_model
from railsweep.sweeps.bifurcation.hopf import cycle_from_hopf, hopf_points
from railsweep.sweeps.bifurcation.motion import kicked, run_motion

PROFILES = "s1002/uic60@1:40,gauge=1438"


@pytest.fixture(scope="module")
def cone() -> Model:
    return assemble("cooperrider", contact="cone", speed_mps=100.0)


def test_the_damper_along_the_normal_leaves_hunting_alone(cone: Model) -> None:
    search = Search(low_mps=90.0, high_mps=110.0, step_mps=10.0)
    plain, with_damper = (linear_crossings(m, search) for m in (cone, damped(cone, search)))
    assert [c.speed_mps for c in plain] == pytest.approx([c.speed_mps for c in with_damper], rel=2e-4)
    # and it damps what it is there for: the bounce of the wheelsets on their contacts
    bounce = [
        max(np.linalg.eigvals(m.jacobian(0.0, m.equilibrium())), key=lambda e: e.real if e.imag > 1200.0 else -np.inf)
        for m in (cone, damped(cone, search))
    ]
    assert bounce[0].real > -2.0
    assert bounce[1].real < -20.0


def test_a_supercritical_wagon_hunts_from_its_linear_critical_speed(cone: Model) -> None:
    found = critical_speeds(cone, Search(low_mps=90.0, high_mps=110.0, step_mps=10.0, dwell_s=4.0))
    assert found.linear_mps == pytest.approx(stability(cone, [95.0, 105.0]).critical_speed_mps, rel=1e-6)
    assert found.method == "hopf", found
    assert found.criticality == "supercritical"
    assert found.nonlinear_mps == ()
    assert "shrinks to the equilibrium" in found.reason


def test_a_range_without_hunting_says_so(cone: Model) -> None:
    found = critical_speeds(cone, Search(low_mps=40.0, high_mps=60.0, step_mps=10.0, dwell_s=3.0))
    assert found.linear_mps is None
    assert found.nonlinear_mps == ()
    assert "no hunting" in found.reason


def test_a_mode_that_grazes_the_axis_in_a_curve_is_no_critical_speed() -> None:
    # bogie pitch has no damper; in a curve other modes pull it across the axis by a hair, long before hunting
    model = assemble("cooperrider", contact=PROFILES, speed_mps=60.0, track=Track(radius_m=5000.0, cant_mm=50.0))
    study = stability(model, [24.0, 34.0, 60.0, 75.0])
    grazing = [c for c in study.crossings if not c.running]
    assert grazing
    assert all(c.frequency_hz == pytest.approx(8.04, abs=0.02) for c in grazing)
    assert study.critical_speed_mps == pytest.approx(68.72, abs=0.01)
    faster = model.bind(["speed_mps"])([70.0])
    assert run_motion(faster, kicked(faster, faster.equilibrium(), 3e-3), 4.0).period_s == pytest.approx(0.2, abs=0.01)


def test_a_study_may_begin_where_there_is_no_equilibrium() -> None:
    # the wagon overturns there; what has to be compiled is compiled on straight track
    model = assemble("cooperrider", speed_mps=60.0, track=Track(radius_m=300.0))
    search = Search(low_mps=50.0, high_mps=60.0)
    warm_up(model, search)
    found = critical_speeds(model, search)
    assert found.nonlinear_mps == ()
    assert "no equilibrium" in found.reason


def test_kicks_mirror(cone: Model) -> None:
    rest = cone.equilibrium()
    for shape in ("antisymmetric", "in-phase", "leading", "trailing"):
        up, down = kicked(cone, rest, 1e-3, shape), kicked(cone, rest, -1e-3, shape)
        assert up + down == pytest.approx(2.0 * rest, abs=1e-18)
        assert np.abs(up - rest).max() == pytest.approx(1e-3)


@pytest.mark.slow
def test_the_unstable_branch_parts_rest_from_hunting() -> None:
    model = damped(assemble("cooperrider", contact=PROFILES, speed_mps=98.0), Search())
    first = stability(model, np.linspace(90.0, 120.0, 7)).critical_speed_mps
    assert first is not None
    family = family_of_model(model)
    low = 0.96 * first
    rest = model.bind(["speed_mps"])([low]).equilibrium()
    equilibria = continue_equilibrium(family, rest, low, direction=1, bounds=(0.9 * first, 1.04 * first))
    hopf = next(hopf_points(family, equilibria))
    assert hopf.parameter == pytest.approx(first, rel=1e-5)
    cycle = cycle_from_hopf(family, hopf, threads=2)
    assert cycle.parameter < hopf.parameter  # subcritical
    search = Search(low_mps=60.0, high_mps=1.1 * first, points=30, threads=2)
    for point in follow(model, cycle, search, -1, BranchEnd()):
        if point.parameter < 0.93 * first:
            break
    assert point.parameter < 0.93 * first
    assert point.floquet.unstable == 1
    here = model.bind(["speed_mps"])([point.parameter])
    centre = here.equilibrium()
    size = largest_amplitude(model, point)
    inside, outside = (
        run_motion(here, centre + share * (point.start - centre), 6.0, rtol=1e-7, atol=1e-10) for share in (0.99, 1.01)
    )
    assert float(inside.amplitude_m.max()) < 0.5 * size
    assert float(outside.amplitude_m.max()) > 2.0 * size
