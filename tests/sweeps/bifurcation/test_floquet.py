"""Floquet multipliers against exact ones, and what they are taken to mean."""

import numpy as np
import pytest
from known_systems import bautin_family, passengers_family

from railsweep.sweeps.bifurcation import find_cycle
from railsweep.sweeps.bifurcation.floquet import floquet

TIGHT = {"rtol": 1e-11, "atol": 1e-13}


def passengers(a, b, c, half):
    """Multipliers of the cycle and those of the closed form, both sorted."""
    cycle = find_cycle(passengers_family(b, c, half), a, np.array([1.01, 0.0, 0.0, 0.0]), 6.3, **TIGHT)
    sign = -1.0 if half > 0.0 else 1.0
    own = sign * np.exp(2.0 * np.pi * np.linalg.eigvals(np.array([[a, -b], [b, c]]).astype(complex)))
    exact = np.sort_complex(np.append(own, np.exp(-4.0 * np.pi)))
    return cycle, np.sort_complex(cycle.floquet.multipliers), exact


@pytest.mark.parametrize(
    ("a", "b", "c", "half", "kind", "unstable"),
    [
        (-0.1, 0.0, -0.2, 0.0, "stable", 0),
        (0.03, 0.0, -0.2, 0.0, "saddle", 1),
        (0.03, 0.0, 0.01, 0.0, "saddle", 2),
        (-0.1, 0.0, -0.2, 0.5, "stable", 0),
        (0.03, 0.0, -0.2, 0.5, "period doubling", 1),
        (-0.02, 0.2, -0.03, 0.0, "stable", 0),
        (0.02, 0.2, 0.03, 0.0, "torus", 2),
        (0.02, 0.2, 0.03, 0.5, "torus", 2),
    ],
)
def test_exact_multipliers_and_kinds(a, b, c, half, kind, unstable):
    cycle, multipliers, exact = passengers(a, b, c, half)
    np.testing.assert_allclose(multipliers, exact, atol=1e-6)
    assert abs(cycle.floquet.trivial - 1.0) < 1e-6
    assert cycle.floquet.kind == kind
    assert cycle.floquet.unstable == unstable
    assert cycle.stable == (unstable == 0)
    assert cycle.floquet.neutral == ()
    assert abs(cycle.floquet.leading) == pytest.approx(np.abs(exact).max(), abs=1e-6)


def test_trivial_multiplier_is_the_one_along_the_cycle():
    """Two multipliers of exactly 1: that along the slope is trivial, the other is kept."""
    family = bautin_family(-1.0, 0.0)
    found = floquet(family, np.diag([1.0, 1.0]), np.array([0.0, 3.0]), np.ones(2))
    assert found.trivial == 1.0
    assert found.multipliers.tolist() == [1.0]
    assert found.kind == "stable"


def test_scales_do_not_change_multipliers():
    family = bautin_family(-1.0, 0.0)
    matrix, slope = np.array([[1.0, 3.0], [0.0, -1.7]]), np.array([1.0, 0.0])
    plain = floquet(family, matrix, slope, np.ones(2))
    scaled = floquet(family, matrix, slope, np.array([1e-3, 50.0]))
    np.testing.assert_allclose(plain.multipliers, [-1.7], rtol=1e-12)
    np.testing.assert_allclose(scaled.multipliers, [-1.7], rtol=1e-12)
    assert scaled.kind == "period doubling"
