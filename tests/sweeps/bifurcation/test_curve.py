"""Hopf points and folds over two parameters, against closed forms and against scanning."""

import numpy as np
import pytest
from known_systems import adaptive_control_family, bautin_family, brusselator_family

from railsweep.engine import assemble
from railsweep.engine.linear_stability import stability
from railsweep.sweeps.bifurcation import continue_cycle, families_of_model, find_cycle
from railsweep.sweeps.bifurcation.continuation import BranchEnd, Settings
from railsweep.sweeps.bifurcation.curve import fold_curve, hopf_curve
from railsweep.sweeps.bifurcation.cycle import CycleProblem
from railsweep.sweeps.bifurcation.equilibrium import continue_equilibrium
from railsweep.sweeps.bifurcation.hopf import hopf_points

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
FINE = Settings(tolerance=1e-10, fold_tolerance=1e-10, parameter_scale=0.1)


def first_hopf(family, start, value, **options):
    return next(hopf_points(family, continue_equilibrium(family, start, value, **options)))


def test_hopf_curve_at_a_resting_equilibrium():
    """x''' + alpha x'' + beta x' + x = x^2 at the origin: alpha beta = 1, angular frequency sqrt(beta)."""
    hopf = first_hopf(adaptive_control_family(1.0), np.zeros(3), 2.0, direction=-1, bounds=(0.3, 3.0))
    end = BranchEnd()
    settings = Settings(tolerance=1e-10, largest=0.3)
    for direction in (-1, 1):
        points = list(
            hopf_curve(
                adaptive_control_family, hopf, 1.0, direction=direction, bounds=(0.3, 3.0), settings=settings, end=end
            )
        )
        assert len(points) > 5
        for p in points:
            assert p.first * p.second == pytest.approx(1.0, abs=1e-8)
            assert 2.0 * np.pi * p.frequency_hz == pytest.approx(np.sqrt(p.second), abs=1e-8)
            assert p.point.direction == "stable"
        assert end.reason == "the parameter left 0.3 to 3"


def test_hopf_curve_where_the_equilibrium_moves():
    """Brusselator: b = 1 + a^2 at (a, b/a), angular frequency a."""
    hopf = first_hopf(brusselator_family(1.0), np.array([1.0, 1.0]), 1.0, bounds=(0.5, 4.0))
    for p in hopf_curve(brusselator_family, hopf, 1.0, bounds=(0.5, 2.5), settings=Settings(tolerance=1e-10)):
        a = p.second
        assert p.first == pytest.approx(1.0 + a * a, abs=1e-7)
        assert 2.0 * np.pi * p.frequency_hz == pytest.approx(a, abs=1e-7)
        np.testing.assert_allclose(p.point.state, [a, (1.0 + a * a) / a], atol=1e-7)


def test_hopf_line_of_the_bautin_normal_form():
    """mu = 0 whatever the first coefficient; the frequency is w."""

    def families(l1):
        return bautin_family(l1, -1.0)

    hopf = first_hopf(families(-1.0), np.zeros(2), -0.5, bounds=(-1.0, 0.4))
    points = list(hopf_curve(families, hopf, -1.0, bounds=(-1.5, 1.0)))
    assert points[-1].second > 1.0
    for p in points:
        assert abs(p.first) < 1e-8
        assert 2.0 * np.pi * p.frequency_hz == pytest.approx(2.0, abs=1e-8)


@pytest.fixture(scope="module")
def bautin_fold():
    family = bautin_family(1.0, -1.0)
    cycle = find_cycle(family, -0.2, np.array([0.85, 0.0]), 3.0, **TIGHT)
    return next(p for p in continue_cycle(family, cycle, settings=FINE, **TIGHT) if p.kind == "fold")


def test_fold_curve_of_the_bautin_normal_form(bautin_fold):
    """mu = -l1^2 / 4 for l1 > 0: r^2 = l1 / 2; no fold where l1 < 0, which is said."""
    values = [1.1, 1.3, 1.6, 2.0, 1.5, 1.0, 0.7, 0.4, 0.2, -0.5]
    points = list(fold_curve(lambda l1: bautin_family(l1, -1.0), bautin_fold, 1.0, values, settings=FINE, **TIGHT))
    assert [p.second for p in points] == [1.0, *values]
    for p in points[:-1]:
        assert p.reason == ""
        assert p.first == pytest.approx(-0.25 * p.second**2, abs=1e-8)
        assert p.point.kind == "fold"
        assert p.point.floquet.leading == pytest.approx(1.0, abs=1e-3)
        assert p.frequency_hz == pytest.approx((2.0 + 0.15 * p.second) / (2.0 * np.pi), abs=1e-4)
    assert np.isnan(points[-1].first)
    assert points[-1].reason


def test_work_of_a_fold(bautin_fold, monkeypatch):
    """A warm fold takes few monodromy matrices."""
    count = [0]
    original = CycleProblem.jacobian

    def counted(self, z, p):
        count[0] += 1
        return original(self, z, p)

    settings = Settings(tolerance=1e-9, fold_tolerance=1e-6, parameter_scale=0.1)
    families = [lambda l1: bautin_family(l1, -1.0)]
    curve = fold_curve(families[0], bautin_fold, 1.0, np.arange(1.05, 1.5, 0.05), settings=settings, **TIGHT)
    next(curve)
    monkeypatch.setattr(CycleProblem, "jacobian", counted)
    found = [p for p in curve if not p.reason]
    assert len(found) == 9
    assert count[0] <= 3 * len(found)


@pytest.mark.parametrize("direction", [-1, 1])
def test_wagon_hopf_speed_over_friction_agrees_with_scanning(direction):
    """The curve followed from friction 0.15 passes through the speeds that a scan finds at its own friction."""
    model = assemble("cooperrider", speed_mps=60.0, friction=0.15)
    families = families_of_model(model, "speed_mps", "contact.friction")
    crossing = stability(model, np.arange(60.0, 121.0, 10.0)).crossings[0]
    step = 0.02 * crossing.speed_mps
    hopf = first_hopf(
        families(0.15),
        model.equilibrium(),
        crossing.speed_mps - step,
        bounds=(10.0, crossing.speed_mps + step),
        settings=Settings(parameter_scale=10.0),
    )
    assert hopf.parameter == pytest.approx(crossing.speed_mps, rel=1e-7)
    settings = Settings(parameter_scale=0.1, largest=1.0, tolerance=1e-9)
    points = list(
        hopf_curve(families, hopf, 0.15, direction=direction, bounds=(0.08, 0.3), first_scale=10.0, settings=settings)
    )
    assert points[-1].second < 0.08 or points[-1].second > 0.3
    for p in (points[len(points) // 2], points[-1]):
        own = stability(
            model.bind(["contact.friction"])([p.second]), p.first * np.array([0.95, 0.98, 1.01, 1.03])
        ).crossings
        nearest = min(own, key=lambda c: abs(c.speed_mps - p.first))
        assert p.first == pytest.approx(nearest.speed_mps, rel=1e-6)
        assert p.frequency_hz == pytest.approx(nearest.frequency_hz, rel=1e-5)
        # the same crossing seen over friction at this speed
        other = stability(
            model.bind(["speed_mps"])([p.first]),
            p.second * np.array([0.97, 0.99, 1.02]),
            parameter="contact.friction",
        )
        assert other.parameter == "contact.friction"
        assert min(abs(c.value / p.second - 1.0) for c in other.crossings) < 1e-5
