"""Critical speeds of the wagon: crossings, folds, and the separatrix checked by simulation."""

import numpy as np
import pytest

from railsweep.engine import Model, assemble, stability
from railsweep.sweeps.bifurcation.continuation import BranchEnd
from railsweep.sweeps.bifurcation.critical_speed import (
    Search,
    critical_speeds,
    damped,
    follow,
    largest_amplitude,
    linear_crossings,
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


def test_kicks_mirror(cone: Model) -> None:
    rest = cone.equilibrium()
    for shape in ("antisymmetric", "in-phase", "leading", "trailing"):
        up, down = kicked(cone, rest, 1e-3, shape), kicked(cone, rest, -1e-3, shape)
        assert up + down == pytest.approx(2.0 * rest, abs=1e-18)
        assert np.abs(up - rest).max() == pytest.approx(1e-3)


@pytest.mark.slow
def test_the_unstable_branch_parts_rest_from_hunting() -> None:
    model = damped(assemble("cooperrider", contact=PROFILES, speed_mps=98.0), Search())
    family = family_of_model(model)
    rest = model.bind(["speed_mps"])([95.0]).equilibrium()
    equilibria = continue_equilibrium(family, rest, 95.0, direction=1, bounds=(90.0, 102.0))
    hopf = next(hopf_points(family, equilibria))
    cycle = cycle_from_hopf(family, hopf, threads=2)
    assert cycle.parameter < hopf.parameter  # subcritical
    search = Search(low_mps=60.0, high_mps=110.0, points=30, threads=2)
    for point in follow(model, cycle, search, -1, BranchEnd()):
        if point.parameter < 92.0:
            break
    assert point.floquet.unstable == 1
    here = model.bind(["speed_mps"])([point.parameter])
    centre = here.equilibrium()
    size = largest_amplitude(model, point)
    inside, outside = (
        run_motion(here, centre + share * (point.start - centre), 6.0, rtol=1e-7, atol=1e-10) for share in (0.99, 1.01)
    )
    assert float(inside.amplitude_m.max()) < 0.5 * size
    assert float(outside.amplitude_m.max()) > 2.0 * size
