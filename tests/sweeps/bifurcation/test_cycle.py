"""Limit cycles against closed forms and published figures, by single and multiple shooting."""

import numpy as np
import pytest
from known_systems import adaptive_control_family, bautin_family, van_der_pol_family
from scipy.optimize import brentq

from railsweep.sweeps.bifurcation import continue_cycle, find_cycle
from railsweep.sweeps.bifurcation.continuation import BranchEnd, NoSolution, Settings
from railsweep.sweeps.bifurcation.cycle import CycleProblem, refined

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
FINE = Settings(tolerance=1e-10, fold_tolerance=1e-10, parameter_scale=0.1)

# Periods of the van der Pol oscillator, known to many digits; confirmed with scipy's DOP853 and events at rtol 3e-14.
VAN_DER_POL_PERIODS = {1.0: 6.6632868593231301, 10.0: 19.0783695669018}
# Cycle of x''' + alpha x'' + beta x' + x = x^2 from the Hopf point at alpha = 1, beta = 1, as printed in the MATCONT
# manual (Dhooge, Govaerts, Kuznetsov, Mestrom, Riet, Sautois): first period doubling.
PERIOD_DOUBLING_ALPHA, PERIOD_DOUBLING_PERIOD = 0.6303020, 6.364071

W, TWIST = 2.0, 0.3  # of known_systems.bautin_family


@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("mu", [0.04, 0.25, 1.0])
def test_hopf_normal_form(mu, segments):
    """r' = r (mu - r^2): radius sqrt(mu), multiplier exp(-2 mu T), period 2 pi / (w + twist mu)."""
    r = np.sqrt(mu)
    cycle = find_cycle(bautin_family(-1.0, 0.0), mu, np.array([1.1 * r, 0.0]), 3.0, segments=segments, **TIGHT)
    assert cycle.period_s == pytest.approx(2.0 * np.pi / (W + TWIST * mu), abs=1e-8)
    assert cycle.frequency_hz * cycle.period_s == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(cycle.amplitude, r, atol=1e-8)
    np.testing.assert_allclose(cycle.low, -cycle.high, atol=1e-8)
    np.testing.assert_allclose(cycle.floquet.multipliers, np.exp(-2.0 * mu * cycle.period_s), atol=1e-6)
    assert abs(cycle.floquet.trivial - 1.0) < 1e-6
    assert cycle.stable


@pytest.fixture(scope="module", params=[1, 2])
def bautin_branch(request):
    """r' = r (mu + r^2 - r^4) from mu = 0.1 down through the fold and up to the Hopf point."""
    family = bautin_family(1.0, -1.0)
    cycle = find_cycle(family, 0.1, np.array([1.05, 0.0]), 2.8, segments=request.param, **TIGHT)
    end = BranchEnd()
    options = {"settings": FINE, "segments": request.param, "end": end, **TIGHT}
    return list(continue_cycle(family, cycle, direction=-1, bounds=(-1.0, 0.2), **options)), end


def test_bautin_fold(bautin_branch):
    """Fold at mu = -1/4, r^2 = 1/2."""
    folds = [p for p in bautin_branch[0] if p.kind == "fold"]
    assert len(folds) == 1
    assert folds[0].parameter == pytest.approx(-0.25, abs=1e-8)
    np.testing.assert_allclose(folds[0].amplitude, np.sqrt(0.5), atol=2e-5)
    assert folds[0].floquet.leading.imag == 0.0
    assert folds[0].floquet.leading == pytest.approx(1.0, abs=1e-4)


def test_bautin_branch(bautin_branch):
    """Every point lies on mu = r^4 - r^2, with the period and the multiplier of its radius."""
    points, _ = bautin_branch
    assert len(points) > 15
    for point in points:
        r2 = float(point.start @ point.start)
        np.testing.assert_allclose(point.amplitude, np.sqrt(r2), atol=1e-7)
        assert point.parameter == pytest.approx(r2 * r2 - r2, abs=1e-8)
        assert point.period_s == pytest.approx(2.0 * np.pi / (W + TWIST * r2), abs=1e-8)
        exact = np.exp(2.0 * r2 * (1.0 - 2.0 * r2) * point.period_s)
        assert abs(point.floquet.multipliers[0] - exact) < 1e-6 * max(exact, 1.0)
        if point.kind == "regular" and abs(exact - 1.0) > 1e-3:
            assert point.floquet.kind == ("saddle" if r2 < 0.5 else "stable")


def test_a_branch_ends_where_the_cycle_vanishes(bautin_branch):
    """At the Hopf point mu = 0, not on the mirrored branch beyond."""
    points, end = bautin_branch
    words, _, value = end.reason.rpartition(" = ")
    assert words == "the cycle shrinks to the equilibrium near mu"
    assert abs(float(value)) < 1e-6
    assert points[-1].amplitude.max() < 0.02


def test_work_of_a_branch(monkeypatch):
    """One monodromy matrix per point, those on the way to a fold aside."""
    counts = {"jacobian": 0}
    original = CycleProblem.jacobian

    def counted(self, z, p):
        counts["jacobian"] += 1
        return original(self, z, p)

    monkeypatch.setattr(CycleProblem, "jacobian", counted)
    family = bautin_family(1.0, -1.0)
    cycle = find_cycle(family, 0.1, np.array([1.05, 0.0]), 2.8, **TIGHT)
    assert counts["jacobian"] <= 4
    counts["jacobian"] = 0
    points = list(continue_cycle(family, cycle, direction=-1, bounds=(-0.2, 0.2), settings=FINE, **TIGHT))
    assert [p.kind for p in points] == ["regular"] * len(points)
    assert counts["jacobian"] <= len(points) + 1


@pytest.mark.parametrize("segments", [1, 4])
@pytest.mark.parametrize("mu", [1.0, 10.0])
def test_van_der_pol_period(mu, segments):
    exact = VAN_DER_POL_PERIODS[mu]
    cycle = find_cycle(van_der_pol_family(), mu, np.array([2.0, 0.0]), 1.01 * exact, segments=segments, **TIGHT)
    assert cycle.period_s == pytest.approx(exact, abs=1e-7)
    assert cycle.stable
    # the other multiplier is exp of the divergence mu (1 - x^2) along the cycle: 0.00085970 at mu = 1, nil at 10
    assert cycle.floquet.multipliers[0].real == pytest.approx(8.597e-4 if mu == 1.0 else 0.0, abs=2e-6)


def test_van_der_pol_period_over_mu():
    """Continued from mu = 1 to 10 the cycle is the one found there."""
    family = van_der_pol_family()
    start = find_cycle(family, 1.0, np.array([2.0, 0.0]), 6.7, **TIGHT)
    settings = Settings(parameter_scale=2.0, tolerance=1e-9)
    points = list(
        continue_cycle(family, start, direction=1, bounds=(0.5, 10.0), settings=settings, segments=2, **TIGHT)
    )
    last = points[-1]
    exact = find_cycle(family, last.parameter, last.start, last.period_s, **TIGHT)
    assert last.parameter > 10.0
    assert last.period_s == pytest.approx(exact.period_s, abs=1e-6)
    np.testing.assert_allclose(last.amplitude, exact.amplitude, rtol=1e-4)


def test_published_period_doubling():
    """Position and period of the doubling to the digits printed."""
    family = adaptive_control_family()
    start = find_cycle(family, 0.7, np.array([0.7, 0.0, -0.6]), 6.35, **TIGHT)
    assert start.floquet.kind == "stable"
    cycles = {}

    def distance(alpha):
        cycles[alpha] = find_cycle(family, alpha, start.start, start.period_s, **TIGHT)
        return cycles[alpha].floquet.multipliers.real.min() + 1.0

    alpha = brentq(distance, 0.6, 0.66, xtol=1e-10)
    assert alpha == pytest.approx(PERIOD_DOUBLING_ALPHA, abs=5e-8)
    assert cycles[alpha].period_s == pytest.approx(PERIOD_DOUBLING_PERIOD, abs=5e-7)
    kinds = {a: c.floquet.kind for a, c in cycles.items()}
    assert kinds[0.6] == "period doubling"
    assert kinds[0.66] == "stable"


def test_threads_give_the_same_bits():
    one, two = (find_cycle(van_der_pol_family(), 1.0, np.array([2.0, 0.0]), 6.7, threads=threads) for threads in (1, 2))
    assert one.period_s == two.period_s
    np.testing.assert_array_equal(one.floquet.multipliers, two.floquet.multipliers)


def test_no_cycle_where_there_is_none():
    """Below the Hopf point the normal form has no cycle."""
    with pytest.raises(NoSolution):
        find_cycle(bautin_family(-1.0, 0.0), -0.3, np.array([0.5, 0.0]), 3.1, **TIGHT)


def test_refined_grid_keeps_its_nodes():
    grid = np.array([0.0, 0.1, 0.5, 1.0])
    fine = refined(grid, 10)
    assert fine.size >= 10
    assert np.isin(grid, fine).all()
    assert (np.diff(fine) > 0.0).all()
    assert refined(grid, 3) is grid
