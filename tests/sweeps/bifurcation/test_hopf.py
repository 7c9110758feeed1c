"""Hopf points over any parameter, and the branches that emerge."""

import numpy as np
import pytest
from known_systems import adaptive_control_family, bautin_family, brusselator_family

from railsweep.engine import assemble
from railsweep.engine.linear_stability import stability
from railsweep.sweeps.bifurcation import continue_cycle, family_of_model
from railsweep.sweeps.bifurcation.continuation import Settings
from railsweep.sweeps.bifurcation.equilibrium import continue_equilibrium
from railsweep.sweeps.bifurcation.hopf import emerging_branch, hopf_points

TIGHT = {"rtol": 1e-11, "atol": 1e-13}


def bautin_hopf(l1):
    family = bautin_family(l1, -1.0)
    branch = continue_equilibrium(family, np.zeros(2), -0.5, bounds=(-1.0, 0.4))
    (hopf,) = hopf_points(family, branch)
    return family, hopf


@pytest.mark.parametrize("a", [0.5, 1.0, 2.0])
def test_brusselator(a):
    """Hopf point at b = 1 + a^2 with the frequency a; the equilibrium (a, b/a) moves with b."""
    family = brusselator_family(a)
    branch = continue_equilibrium(family, np.array([a, 0.5 / a]), 0.5, bounds=(0.0, 6.0))
    (hopf,) = hopf_points(family, branch)
    assert hopf.parameter == pytest.approx(1.0 + a * a, rel=1e-8)
    assert 2.0 * np.pi * hopf.frequency_hz == pytest.approx(a, rel=1e-7)
    np.testing.assert_allclose(hopf.state, [a, (1.0 + a * a) / a], rtol=1e-8)
    assert (hopf.direction, hopf.multiplicity) == ("unstable", 1)
    matrix = family.jacobian(hopf.state, hopf.parameter)
    np.testing.assert_allclose(matrix @ hopf.vector, 1j * a * hopf.vector, atol=1e-6)


@pytest.mark.parametrize(("l1", "kind", "direction"), [(-1.0, "supercritical", 1), (1.0, "subcritical", -1)])
@pytest.mark.parametrize("segments", [1, 3])
def test_criticality_of_the_normal_form(l1, kind, direction, segments):
    """mu = -l1 r^2 + r^4 on the emerging branch."""
    family, hopf = bautin_hopf(l1)
    assert abs(hopf.parameter) < 1e-8
    branch = emerging_branch(family, hopf, 0.05, segments=segments, **TIGHT)
    assert (branch.criticality, branch.direction, branch.by) == (kind, direction, "emerging branch")
    for cycle, r in zip(branch.cycles, (0.05, 0.1), strict=True):
        np.testing.assert_allclose(cycle.amplitude, r, atol=1e-6)
        assert cycle.parameter == pytest.approx(-l1 * r * r + r**4, abs=1e-7)
        assert cycle.stable == (kind == "supercritical")


def test_direction_of_a_falling_crossing():
    """The control system turns stable as alpha rises through 1; its cycles stand below: supercritical."""
    family = adaptive_control_family()
    branch = continue_equilibrium(family, np.zeros(3), 2.0, direction=-1, bounds=(0.3, 3.0))
    (hopf,) = hopf_points(family, branch)
    assert hopf.parameter == pytest.approx(1.0, rel=1e-8)
    assert hopf.direction == "stable"
    found = emerging_branch(family, hopf, **TIGHT)
    assert (found.criticality, found.direction) == ("supercritical", -1)


def test_cycles_from_a_hopf_point_go_on():
    """The branch from the subcritical Hopf point reaches the fold of the Bautin normal form."""
    family, hopf = bautin_hopf(1.0)
    found = emerging_branch(family, hopf, 0.05, **TIGHT)
    settings = Settings(tolerance=1e-10, fold_tolerance=1e-10, parameter_scale=0.1)
    points = continue_cycle(
        family, found.cycles[-1], direction=found.direction, bounds=(-0.3, 0.1), settings=settings, **TIGHT
    )
    fold = next(p for p in points if p.kind == "fold")
    assert fold.parameter == pytest.approx(-0.25, abs=1e-8)


@pytest.fixture(scope="module")
def wagon():
    return assemble("cooperrider", speed_mps=60.0)


def test_wagon_over_speed_agrees_with_linear_stability(wagon):
    family = family_of_model(wagon)
    branch = continue_equilibrium(
        family, wagon.equilibrium(), 80.0, bounds=(50.0, 110.0), settings=Settings(parameter_scale=10.0, largest=0.5)
    )
    found = list(hopf_points(family, branch))
    expected = stability(wagon, np.arange(80.0, 111.0, 5.0)).crossings
    assert len(found) == len(expected) >= 1
    for hopf, crossing in zip(found, expected, strict=True):
        assert hopf.parameter == pytest.approx(crossing.speed_mps, rel=1e-6)
        assert hopf.frequency_hz == pytest.approx(crossing.frequency_hz, rel=1e-5)
        assert hopf.direction == crossing.direction


def test_wagon_criticality(wagon):
    """On the cone hunting sets in softly: the speed rises with the square of the amplitude, the cycles are stable."""
    model = wagon.bind(["contact.normal_damping_nspm"])([5e4])
    family = family_of_model(model)
    settings = Settings(parameter_scale=10.0, largest=0.5, tolerance=1e-6)
    branch = continue_equilibrium(family, model.equilibrium(), 95.0, bounds=(50.0, 99.5), settings=settings)
    hopf = next(hopf_points(family, branch))
    found = emerging_branch(family, hopf, 4e-4, settings=settings)
    assert (found.criticality, found.direction) == ("supercritical", 1)
    small, large = (c.parameter - hopf.parameter for c in found.cycles)
    assert large / small == pytest.approx(4.0, rel=0.1)
    for cycle, amplitude in zip(found.cycles, (4e-4, 8e-4), strict=True):
        lateral = [i for i, name in enumerate(family.states) if name.endswith(".y")]
        assert cycle.amplitude[lateral].max() == pytest.approx(amplitude, rel=0.01)
        assert cycle.frequency_hz == pytest.approx(hopf.frequency_hz, rel=1e-3)
        assert cycle.stable
        assert len(cycle.floquet.neutral) == 4
        assert all("pitch" in name for name in cycle.floquet.neutral)
