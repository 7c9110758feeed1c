"""Kalker's coefficients: the table, both interpolations and the slender limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railsweep.engine import kalker
from railsweep.engine.errors import InputError
from railsweep.engine.kalker import AXIS_RATIO_NODES, POISSON_NODES, SLENDER, kalker_coefficients

NAMES = ("c11", "c22", "c23", "c33")

# Printed rows of Kalker's table E.3: a/b, nu, C11, C22, C23, C33.
PRINTED = [
    (0.1, 0.0, 2.51, 2.51, 0.334, 6.42),
    (0.1, 0.5, 4.85, 2.53, 0.731, 11.7),
    (0.5, 0.25, 3.62, 3.01, 0.929, 1.93),
    (0.8, 0.25, 3.91, 3.41, 1.25, 1.37),  # C23 is 1.15 in a widely copied file
    (1.0, 0.25, 4.12, 3.67, 1.47, 1.19),
    (1 / 0.7, 0.5, 5.58, 4.67, 2.18, 0.852),
    (2.5, 0.5, 6.57, 6.31, 3.70, 0.549),  # C11 is printed 5.57 in one thesis
    (10.0, 0.25, 11.7, 12.8, 14.6, 0.526),
]


def rows(axis_ratio, poisson):
    c = kalker_coefficients(axis_ratio, poisson)
    return np.stack([getattr(c, name) for name in NAMES], axis=-1)


@pytest.mark.parametrize("row", PRINTED)
def test_table_is_exact_at_its_nodes(row):
    assert tuple(rows(row[0], row[1])) == row[2:]


@pytest.mark.parametrize("poisson", POISSON_NODES)
def test_every_printed_value_has_three_digits(poisson):
    # Catches an interpolated or rounded value standing in for a printed one.
    values = rows(AXIS_RATIO_NODES, poisson)
    np.testing.assert_array_equal(values, [[float(f"{v:.3g}") for v in row] for row in values])


def test_rolling_direction_does_not_matter_without_poisson_coupling():
    # At nu = 0 the two directions of the half space decouple, C11 = C22.
    ratio = np.geomspace(1e-3, 1e3, 301)
    c = kalker_coefficients(ratio, 0.0)
    np.testing.assert_allclose(c.c11, c.c22, rtol=1e-13)


@pytest.mark.parametrize(("axis_ratio", "expected"), [(2.0, (5.2037, 4.9715, 2.6566)), (0.5, (3.7335, 3.0256, 0.9435))])
def test_poisson_interpolation_is_that_of_contact(axis_ratio, expected):
    # A parabola in C instead of 1/C would give 5.2064 and 3.7404 for C11.
    np.testing.assert_array_equal(np.round(rows(axis_ratio, 0.28)[:3], 4), expected)


def test_flexibilities_of_the_contact_example():
    # a = 8 mm, b = 4 mm, G = 82 GPa, nu = 0.28: unblended flexibilities in mm^3/N.
    a, ratio, shear = 8.0, 2.0, 82e3
    c11, c22, c23, _ = rows(ratio, 0.28)
    got = [8 * a / (3 * c11 * shear), 8 * a / (3 * c22 * shear), np.pi * a * ratio**0.5 / (4 * c23 * shear)]
    np.testing.assert_allclose(got, [0.49996e-4, 0.52331e-4, 0.40790e-4], atol=0.5e-9)


def test_c33_between_poisson_nodes():
    """Half way from nu = 1/4 to 1/2 C33 follows the slender limits, scaled to the table, to 6 %.

    The parabola in 1/C, right for the others, would be 14 % low at b/a = 0.1.
    """
    big = np.log(16 / SLENDER**2)

    def short(nu):
        return np.pi**2 / 16 / (1 - nu) / SLENDER

    def long(nu):
        return np.pi / 4 * (1 - nu * (big - 2) / ((1 - nu) * big - 2 + 4 * nu))

    for axis_ratio, limit in ((SLENDER, short), (1 / SLENDER, long)):
        ratio = np.mean([rows(axis_ratio, nu)[3] / limit(nu) for nu in (0.25, 0.5)])
        assert rows(axis_ratio, 0.375)[3] == pytest.approx(ratio * limit(0.375), rel=0.06)


@pytest.mark.parametrize("poisson", [*POISSON_NODES, 0.28])
@pytest.mark.parametrize("left_out", range(1, AXIS_RATIO_NODES.size - 1))
def test_interpolation_predicts_a_node_left_out(monkeypatch, poisson, left_out):
    """Without one inner row the rule returns it to 0.7 %; a straight line in b/a errs by up to 46 %."""
    axis_ratio = AXIS_RATIO_NODES[left_out]
    printed = rows(axis_ratio, poisson)
    others = np.arange(AXIS_RATIO_NODES.size) != left_out
    monkeypatch.setattr(kalker, "AXIS_RATIO_NODES", kalker.AXIS_RATIO_NODES[others])
    monkeypatch.setattr(kalker, "_COEFFICIENT_NODES", kalker._COEFFICIENT_NODES[others])
    predicted = rows(axis_ratio, poisson)
    assert not np.array_equal(predicted, printed)
    np.testing.assert_allclose(predicted, printed, rtol=0.007)


@pytest.mark.parametrize("poisson", [*POISSON_NODES, 0.28])
def test_slender_patches_between_the_last_nodes_follow_the_limit(poisson):
    """Between b/a = 0.1 and 0.2, C23 goes like the limit formula; a straight line would be 15 % high."""
    g = np.array([0.12, 0.15, 0.18])

    def limit(g):
        big = np.log(16 / g**2)
        return 2 * np.pi / (3 * g**1.5 * ((1 - poisson) * big - 2 + 4 * poisson))

    ends = [rows(1 / e, poisson)[2] / limit(e) for e in (0.1, 0.2)]
    expected = limit(g) * (ends[0] + (ends[1] - ends[0]) * (g - 0.1) / 0.1)
    np.testing.assert_allclose(rows(1 / g, poisson)[:, 2], expected, rtol=0.005)


@given(st.floats(0.0, 0.5), st.sampled_from([SLENDER, 1 / SLENDER]))
def test_slender_limits_meet_the_table(poisson, edge):
    beside = rows(edge * np.array([1 - 1e-9, 1.0, 1 + 1e-9]), poisson)
    np.testing.assert_allclose(beside, np.broadcast_to(beside[1], beside.shape), rtol=1e-8)


@pytest.mark.parametrize("poisson", [0.0, 0.1, 0.25, 0.28, 0.4, 0.5])
def test_slender_limit_is_close_to_the_table_before_blending(poisson):
    """The last node and the bare formula agree to 10 %: a misprinted formula would not (C33 off by two)."""
    g = SLENDER
    big = np.log(16 / g**2)
    long_c33 = np.pi / 4 * (1 - poisson * (big - 2) / ((1 - poisson) * big - 2 + 4 * poisson))
    assert rows(1 / g, poisson)[3] == pytest.approx(long_c33, rel=0.1)
    assert rows(g, poisson)[0] == pytest.approx(np.pi**2 / 4 / (1 - poisson), rel=0.1)


@pytest.mark.parametrize("nu", [0.0, 0.28, 0.5])
def test_far_slender_limits(nu):
    """Kalker 1990, table E.3, the rows for g -> 0; the blend has faded to a millionth."""
    g = 1e-7
    big = np.log(16 / g**2)
    short = [
        np.pi**2 / (4 * (1 - nu)),
        np.pi**2 / 4,
        np.pi * np.sqrt(g) / (3 * (1 - nu)) * (1 + nu * (0.5 * big + np.log(4) - 5)),
        np.pi**2 / (16 * (1 - nu) * g),
    ]
    c11 = 2 * np.pi / ((big - 2 * nu) * g) * (1 + (3 - np.log(4)) / (big - 2 * nu))
    m = (1 - nu) * big + 2 * nu
    c22 = 2 * np.pi / g * (1 + (1 - nu) * (3 - np.log(4)) / m) / m
    n = (1 - nu) * big - 2 + 4 * nu
    long = [c11, c22, 2 * np.pi / (3 * g * np.sqrt(g) * n), np.pi / 4 * (1 - nu * (big - 2) / n)]
    np.testing.assert_allclose(rows(g, nu), short, rtol=1e-6)
    np.testing.assert_allclose(rows(1 / g, nu), long, rtol=1e-6)


@given(st.floats(0.0, 0.5), st.floats(-6.0, 6.0))
def test_coefficients_are_positive_and_continuous(poisson, exponent):
    ratio = 10.0**exponent
    here, beside = rows(ratio, poisson), rows(ratio * (1 + 1e-7), poisson)
    assert np.all(here > 0.0)
    # No coefficient grows faster than about the 1.6th power of a/b.
    np.testing.assert_allclose(beside, here, rtol=2e-7)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.floats(0.0, 0.5))
def test_arrays_are_taken_element_by_element(ratios, poisson):
    together = rows(np.array(ratios).reshape(1, -1), poisson)
    assert together.shape == (1, len(ratios), 4)
    np.testing.assert_array_equal(together[0], [rows(r, poisson) for r in ratios])


@pytest.mark.parametrize("poisson", [-0.01, 0.51, float("nan")])
def test_poisson_out_of_range_is_refused(poisson):
    with pytest.raises(InputError, match=r"poisson.*0 to 0.5"):
        kalker_coefficients(1.0, poisson)


@pytest.mark.parametrize("axis_ratio", [0.0, -1.0, float("inf"), float("nan"), [1.0, 0.0]])
def test_axis_ratio_out_of_range_is_refused(axis_ratio):
    with pytest.raises(InputError, match=r"axis_ratio.*above 0"):
        kalker_coefficients(axis_ratio, 0.28)
