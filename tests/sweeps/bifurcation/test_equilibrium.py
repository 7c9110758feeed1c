"""Equilibria over a parameter: closed forms, folds, and the wagon."""

import numpy as np
import pytest
from known_systems import brusselator_family, hysteresis_family

from railsweep.engine import Track, assemble
from railsweep.engine.model import ModelError
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation import family_of_model
from railsweep.sweeps.bifurcation.continuation import BranchEnd, Settings
from railsweep.sweeps.bifurcation.equilibrium import continue_equilibrium, find_equilibrium

FINE = Settings(tolerance=1e-12, fold_tolerance=1e-12, largest=0.2)


def test_through_two_folds():
    """x^3 - x = p: three equilibria between the folds, the middle ones unstable."""
    end = BranchEnd()
    points = list(
        continue_equilibrium(
            hysteresis_family(), np.array([-1.5, -1.5]), -1.875, bounds=(-2.0, 2.0), settings=FINE, end=end
        )
    )
    folds = [p.parameter for p in points if p.kind == "fold"]
    height = 2.0 / (3.0 * np.sqrt(3.0))
    np.testing.assert_allclose(folds, [height, -height], atol=1e-9)
    for p in points:
        x = p.state[0]
        np.testing.assert_allclose([x**3 - x, p.state[1]], [p.parameter, x], atol=1e-9)
        slope = 1.0 - 3.0 * x * x
        np.testing.assert_allclose(np.sort(p.spectrum.eigenvalues.real), np.sort([slope, -1.0]), atol=1e-8)
        if p.kind == "regular":
            assert p.stable == (abs(x) > 1.0 / np.sqrt(3.0))
    assert end.reason == "the parameter left -2 to 2"


def test_unstable_pairs_count_once():
    points = list(continue_equilibrium(brusselator_family(1.0), np.array([1.0, 1.5]), 1.5, bounds=(1.0, 2.6)))
    assert [p.unstable for p in points] == [int(p.parameter > 2.0) for p in points]


def test_no_equilibrium_has_a_status():
    with pytest.raises(ModelError) as none:
        find_equilibrium(_rising(), 1.0, np.array([0.0]))
    assert none.value.status is Status.NEWTON_FAILED


def _rising():
    from known_systems import rising, tight

    return tight(rising, 1, lambda p: np.array([p]), name="p")


@pytest.fixture(scope="module")
def curve_branch():
    """The wagon on the cone at 20 m/s over curvature, without cant."""
    model = assemble("cooperrider", track=Track(radius_m=2000.0), speed_mps=20.0)
    family = family_of_model(model, "track.curvature_1pm")
    settings = Settings(parameter_scale=1e-3, step=0.1, tolerance=1e-10)
    end = BranchEnd()
    start = find_equilibrium(family, 1e-5)
    points = list(continue_equilibrium(family, start, 1e-5, bounds=(0.0, 2e-3), settings=settings, end=end))
    return family, points, end


def test_wagon_in_a_curve_agrees_with_newton(curve_branch):
    """The branch passes through the equilibria that Newton finds by itself from rest."""
    family, points, _ = curve_branch
    before = [p for p in points if p.direction > 0.2]
    assert len(before) >= 5
    for p in before[1:]:
        np.testing.assert_allclose(p.state, find_equilibrium(family, p.parameter), atol=1e-7)


def test_wagon_has_no_equilibrium_beyond_the_fold(curve_branch):
    """Creep forces saturate: the equilibrium turns back at about 1180 m radius, loses its stability there, and the
    branch ends where a wheelset runs out of its contact table."""
    family, points, end = curve_branch
    (fold,) = [p for p in points if p.kind == "fold"]
    assert 1.0 / fold.parameter == pytest.approx(1178.0, abs=1.0)
    np.testing.assert_allclose(find_equilibrium(family, 0.9998 * fold.parameter), fold.state, atol=1.5e-3)
    with pytest.raises(ModelError):
        find_equilibrium(family, 1.002 * fold.parameter, fold.state)
    grows = [p.spectrum.eigenvalues.real.max() for p in points[-3:]]
    assert min(grows) > 1e-3
    assert end.status is Status.DERAILED
    assert end.reason.startswith("no further point")


def test_wagon_over_friction():
    """On straight track nothing moves sideways with friction, and the spectrum is that of the model."""
    model = assemble("cooperrider", speed_mps=30.0)
    family = family_of_model(model, "contact.friction")
    settings = Settings(parameter_scale=0.3, tolerance=1e-11)
    points = list(continue_equilibrium(family, model.equilibrium(), 0.1, bounds=(0.05, 0.4), settings=settings))
    assert points[-1].parameter > 0.4
    sideways = [i for i, name in enumerate(family.states) if name.endswith((".y", ".yaw", ".roll"))]
    for p in points:
        np.testing.assert_allclose(p.state[sideways], 0.0, atol=1e-12)
        np.testing.assert_allclose(p.state, find_equilibrium(family, p.parameter), atol=1e-9)
    expected = np.linalg.eigvals(family.model_at(points[2].parameter).jacobian(0.0, points[2].state))
    np.testing.assert_allclose(
        np.sort_complex(points[2].spectrum.eigenvalues), np.sort_complex(expected.astype(complex)), rtol=1e-6, atol=1e-5
    )
