"""Creep laws against published figures, closed forms, and the laws every creep law must obey."""

from math import atan, exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from railsweep.engine.kalker import kalker_coefficients
from railsweep.kernels import creep

# CONTACT, examples/fastsim: spin and opposing lateral creepage. Kalker coefficients by CONTACT's rule.
SPIN_PATCH = (8e-3, 4e-3, 82e9)
SPIN_KALKER = (5.2037, 4.9715, 2.6566)
SPIN_LOAD = (0.3, 82e3)
SPIN_CREEPAGE = (0.0, -6.25e-4, 0.625)

# CONTACT, examples/tractcurv: Eurosprinter locomotive, longitudinal creepage only; -Fx / (mu N).
TRACTION_PATCH = (6.304e-3, 12.61e-3, 82e9)
TRACTION_KALKER = (3.7335, 3.0256, 0.9435)
TRACTION_LOAD = (0.33, 106.7e3)
TRACTION_CREEPAGE = np.array([4e-4, 8e-4, 1.2e-3, 2e-3, 2.8e-3, 3.6e-3])
TRACTION_HALF_SPACE = np.array([0.2588, 0.4742, 0.6482, 0.8816, 0.9832, 0.9991])
TRACTION_FASTSIM = np.array([0.2509, 0.4542, 0.6154, 0.8329, 0.9449, 0.9895])
TRACTION_POLACH = np.array([0.2681, 0.4934, 0.6587, 0.8434, 0.9219, 0.9571])

COARSE = (11, 14)


def traction_curve(law, *grid):
    bound = TRACTION_LOAD[0] * TRACTION_LOAD[1]
    forces = [
        law(*TRACTION_PATCH, *TRACTION_KALKER, *TRACTION_LOAD, xi, 0.0, 0.0, *grid)[0] for xi in TRACTION_CREEPAGE
    ]
    return -np.array(forces) / bound


# The laws under one signature: (patch, kalker with c33, load, creepage) -> (fx, fy).


def saturated_linear(patch, kalker, load, creepage):
    fx, fy, _ = creep.linear(*patch, *kalker, *creepage)
    return creep.shen_hedrick_elkins(fx, fy, load[0] * load[1])


def polach(patch, kalker, load, creepage):
    return creep.polach(*patch, *kalker[:3], *load, *creepage)


def fastsim(patch, kalker, load, creepage):
    return creep.fastsim(*patch, *kalker[:3], *load, *creepage, *COARSE)[:2]


def fastsim_elliptic(patch, kalker, load, creepage):
    return creep.fastsim_elliptic(*patch, *kalker[:3], *load, *creepage, *COARSE)[:2]


def linear(patch, kalker, load, creepage):
    return creep.linear(*patch, *kalker, *creepage)[:2]


SATURATING = [saturated_linear, polach, fastsim, fastsim_elliptic]
ALL_LAWS = [linear, *SATURATING]
each_law = pytest.mark.parametrize("law", ALL_LAWS, ids=lambda f: f.__name__)
each_saturating_law = pytest.mark.parametrize("law", SATURATING, ids=lambda f: f.__name__)
each_fastsim = pytest.mark.parametrize("law", [creep.fastsim, creep.fastsim_elliptic], ids=["parabolic", "elliptic"])


@st.composite
def contacts(draw, spin=True):
    """A loaded patch with its Kalker coefficients and creepages from far below to far beyond saturation."""
    ratio = 10.0 ** draw(st.floats(-1.0, 1.0))
    size = draw(st.floats(2e-3, 1e-2))
    patch = (size * sqrt(ratio), size / sqrt(ratio), 82e9)
    c = kalker_coefficients(ratio, draw(st.floats(0.0, 0.5)))
    kalker = (float(c.c11), float(c.c22), float(c.c23), float(c.c33))
    load = (draw(st.floats(0.05, 0.6)), draw(st.floats(1e3, 2e5)))
    part = st.one_of(st.just(0.0), st.builds(lambda s, e: s * 10.0**e, st.sampled_from([-1, 1]), st.floats(-6.0, -1.0)))
    spin_part = draw(part) / patch[0] if spin else 0.0
    return patch, kalker, load, (draw(part), draw(part), spin_part)


many = settings(max_examples=100, deadline=None)


def test_law_numbers_are_fixed():
    # They are stored in studies and packed models.
    assert (creep.LINEAR, creep.SHEN_HEDRICK_ELKINS, creep.POLACH, creep.FASTSIM) == (0, 1, 2, 3)


# Published figures


def test_spin_example_of_contact():
    args = (*SPIN_PATCH, *SPIN_KALKER, *SPIN_LOAD, *SPIN_CREEPAGE, 200, 200)
    bound = SPIN_LOAD[0] * SPIN_LOAD[1]
    assert creep.fastsim(*args)[1] / bound == pytest.approx(-0.6480, rel=0.01)
    assert creep.fastsim_elliptic(*args)[1] / bound == pytest.approx(-0.5967, rel=0.01)
    assert abs(creep.fastsim(*args)[0]) / bound < 1e-12


@pytest.mark.parametrize(
    ("law", "force", "moment"),
    [
        (creep.fastsim, (-0.6098, -0.6338), (-39.04, -38.01)),
        (creep.fastsim_elliptic, (-0.6008, -0.5948), (-48.28, -45.29)),
    ],
    ids=["parabolic", "elliptic"],
)
def test_spin_example_with_the_flexibilities_contact_printed(law, force, moment):
    """CONTACT's reference output (2023) on 40 x 40 and 200 x 200 elements, Fy/(mu N) and Mz [N m].

    Its rectangular elements converge with the first power of their size, so the limit is the finer value plus
    a quarter of the last change; ours must meet that limit in force and moment.
    """
    a, b, shear = SPIN_PATCH
    l1, l2, l3 = 0.4914e-13, 0.5122e-13, 0.4095e-13
    kalker = (
        8 * a / (3 * shear * l1),
        8 * a / (3 * shear * l2),
        pi * a * sqrt(a / b) / (4 * shear * l3),
    )
    _, fy, mz = law(a, b, shear, *kalker, *SPIN_LOAD, *SPIN_CREEPAGE, 400, 400)
    limit = [fine + (fine - coarse) / 4 for coarse, fine in (force, moment)]
    assert fy / (SPIN_LOAD[0] * SPIN_LOAD[1]) == pytest.approx(limit[0], rel=2e-3)
    assert mz == pytest.approx(limit[1], rel=2e-3)


def test_traction_curve_fastsim():
    fine = traction_curve(creep.fastsim, 200, 200)
    np.testing.assert_allclose(fine, TRACTION_FASTSIM, atol=1e-4)
    # 10 x 10 is what a vehicle simulation can afford.
    np.testing.assert_allclose(traction_curve(creep.fastsim, 10, 10), fine, rtol=0.01)
    # Simplified theory against the half space: the model error, largest in mid-curve.
    np.testing.assert_allclose(fine, TRACTION_HALF_SPACE, rtol=0.06)


def test_traction_curve_polach():
    np.testing.assert_array_equal(np.round(traction_curve(creep.polach), 4), TRACTION_POLACH)
    np.testing.assert_allclose(traction_curve(creep.polach), TRACTION_HALF_SPACE, rtol=0.065)


def test_carter_plane_rolling():
    """Carter 1926: adhesion over a' = 0.6 a gives Fx = mu N (1 - 0.36); linear force 2 mu N (1 - a'/a)."""
    exact, linear_force = 0.64, 0.8
    assert creep.shen_hedrick_elkins(linear_force, 0.0, 1.0)[0] == pytest.approx(exact, rel=0.06)
    xi = linear_force / (1e3 * 4.0)
    fx, _ = creep.polach(1.0, 1.0, 1e3, 4.0, 4.0, 1.0, 1.0, 1.0, xi, 0.0, 0.0)
    assert -fx == pytest.approx(exact, rel=0.01)


# Closed forms


def test_fastsim_without_spin_against_the_integral():
    """Per strip of half length g: stick down to x = c - g (c the scaled slip), then the parabola."""
    a, b, shear = TRACTION_PATCH
    friction, normal = TRACTION_LOAD
    peak = 2 * friction * normal / (pi * a * b)

    def strip(y, c):
        g = sqrt(1 - y * y)
        x = min(c - g, g)
        return c * (g - x) ** 2 / 2 + g * g * (x + g) - (x**3 + g**3) / 3

    for xi in TRACTION_CREEPAGE:
        c = xi * 3 * shear * TRACTION_KALKER[0] / (8 * peak)
        kink = [sqrt(1 - (c / 2) ** 2)] if c < 2 else None
        exact = -peak * a * b * 2 * quad(strip, 0, 1, args=(c,), points=kink, epsabs=1e-12)[0]
        fx, fy, mz = creep.fastsim(*TRACTION_PATCH, *TRACTION_KALKER, *TRACTION_LOAD, xi, 0.0, 0.0, 400, 400)
        assert fx == pytest.approx(exact, rel=2e-5)
        assert abs(fy) + abs(mz / a) < 1e-9 * friction * normal


@pytest.mark.parametrize("u", [0.1, 0.8, 1.5, 2.5, 2.99, 3.0, 4.0])
def test_one_strip_is_the_shen_hedrick_elkins_curve(u):
    xi = u / (1e3 * 4.0)
    fx, _, _ = creep.fastsim(1.0, 1.0, 1e3, 4.0, 4.0, 1.0, 1.0, 1.0, xi, 0.0, 0.0, 1, 2000)
    assert fx == pytest.approx(creep.shen_hedrick_elkins(-u, 0.0, 1.0)[0], abs=1e-6)


def test_elliptic_fastsim_without_spin_is_polach():
    np.testing.assert_allclose(
        traction_curve(creep.fastsim_elliptic, 400, 400), traction_curve(creep.polach), atol=5e-5
    )


@given(contacts())
@many
def test_polach_in_its_long_form(contact):
    """The formulas in their usual long form, as public ports of the 1999 code give them (paper not at hand)."""
    (a, b, shear), (c11, c22, c23, _), (friction, normal), (sx, sy, spin) = contact
    bound = friction * normal
    syc = sy + spin * a if abs(sy + spin * a) > abs(sy) else sy
    s, sc = sqrt(sx * sx + sy * sy), sqrt(sx * sx + syc * syc)
    if sc == 0.0:
        expected = (0.0, 0.0)
    else:
        cjj = sqrt((c11 * sx / s) ** 2 + (c22 * sy / s) ** 2) if s > 0.0 else 0.0
        eps = 2 / 3 * (3 * shear * cjj / (8 * a)) * pi * a * a * b / bound * sc
        force = -2 * bound / pi * (eps / (1 + eps * eps) + atan(eps))
        ks = 1 + 6.3 * (1 - exp(-a / b))
        eps_s = 8 / 3 * shear * b * sqrt(a * b) / bound * c23 * syc / ks
        d = (eps_s**2 - 1) / (eps_s**2 + 1)
        km = abs(eps_s) * (d**3 / 3 - d**2 / 2 + 1 / 6) - sqrt((1 - d * d) ** 3) / 3
        expected = (force * sx / sc, force * sy / sc + 9 / 16 * a * bound * km * ks * spin / sc)
    got = creep.polach(a, b, shear, c11, c22, c23, friction, normal, sx, sy, spin)
    # The long form cancels as eps_s grows; 1e-9 of the bound is what it can be trusted to.
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * bound)


def test_polach_reduction_factors():
    args = (*TRACTION_PATCH, *TRACTION_KALKER, *TRACTION_LOAD)
    tiny = 1e-9
    full = creep.polach(*args, tiny, 0.0, 0.0)[0]
    assert creep.polach(*args, tiny, 0.0, 0.0, 0.6, 0.2)[0] == pytest.approx(0.4 * full, rel=1e-9)
    lateral = creep.polach(*args, 0.0, 0.0, tiny)[1]
    assert creep.polach(*args, 0.0, 0.0, tiny, 0.6, 0.2)[1] == pytest.approx(0.4 * lateral, rel=1e-9)
    assert creep.polach(*args, 2e-3, 1e-3, 0.1, 1.0, 1.0) == creep.polach(*args, 2e-3, 1e-3, 0.1)


# Shen-Hedrick-Elkins as a function


@given(st.floats(1e-6, 1e6), st.floats(0.0, 2 * pi), st.floats(0.0, 10.0))
@many
def test_saturation_curve(bound, angle, u):
    fx, fy = u * bound * np.cos(angle), u * bound * np.sin(angle)
    gx, gy = creep.shen_hedrick_elkins(fx, fy, bound)
    size = u - u**2 / 3 + u**3 / 27 if u < 3 else 1.0
    np.testing.assert_allclose(
        (gx, gy), (size * bound * np.cos(angle), size * bound * np.sin(angle)), atol=1e-12 * bound
    )


def test_saturation_is_smooth_where_it_ends_and_where_it_begins():
    def slope(u, h):
        ends = [creep.shen_hedrick_elkins(u + s * h, 0.0, 1.0)[0] for s in (-1, 1)]
        return (ends[1] - ends[0]) / (2 * h)

    assert slope(3.0 - 1e-3, 1e-4) == pytest.approx(0.0, abs=1e-6)
    assert slope(3.0 + 1e-3, 1e-4) == pytest.approx(0.0, abs=1e-12)
    # F |F| has a continuous first derivative at zero: the slopes beside it leave 1 by 2|u|/3.
    assert slope(-1e-6, 1e-7) == pytest.approx(1.0, abs=1e-6)
    assert slope(1e-6, 1e-7) == pytest.approx(1.0, abs=1e-6)


# Laws for every creep law


@each_law
def test_no_creepage_no_force(law):
    assert law(SPIN_PATCH, (*SPIN_KALKER, 0.8), SPIN_LOAD, (0.0, 0.0, 0.0)) == (0.0, 0.0)


@each_saturating_law
@pytest.mark.parametrize("load", [(0.3, 0.0), (0.3, -1e3), (0.0, 82e3)])
def test_unloaded_or_frictionless_patch_carries_nothing(law, load):
    assert law(SPIN_PATCH, (*SPIN_KALKER, 0.8), load, (1e-3, -1e-3, 0.5)) == (0.0, 0.0)


@each_law
@pytest.mark.parametrize("slot", [0, 1, 2])
def test_nan_is_not_swallowed(law, slot):
    creepage = [1e-3, 1e-3, 0.1]
    creepage[slot] = float("nan")
    assert np.isnan(law(SPIN_PATCH, (*SPIN_KALKER, 0.8), SPIN_LOAD, tuple(creepage))).any()


@each_saturating_law
@given(contact=contacts())
@many
def test_force_stays_within_friction(law, contact):
    patch, kalker, load, creepage = contact
    assert np.hypot(*law(patch, kalker, load, creepage)) <= load[0] * load[1] * (1 + 1e-12)


@each_saturating_law
def test_sliding_reaches_friction(law):
    for creepage in ((10.0, 0.0, 0.0), (0.0, -10.0, 0.0), (6.0, 8.0, 0.0)):
        force = law(SPIN_PATCH, (*SPIN_KALKER, 0.8), SPIN_LOAD, creepage)
        assert np.hypot(*force) == pytest.approx(SPIN_LOAD[0] * SPIN_LOAD[1], rel=1e-9)


@each_law
@given(contact=contacts(spin=False))
@many
def test_creep_power_without_spin_is_never_positive(law, contact):
    """Every part opposes its own creepage, which is more than the sum being negative."""
    patch, kalker, load, creepage = contact
    fx, fy = law(patch, kalker, load, creepage)
    assert fx * creepage[0] <= 0.0
    assert fy * creepage[1] <= 0.0
    assert (fx * creepage[0] + fy * creepage[1] < 0.0) == any(creepage)


@given(contact=contacts())
@many
def test_linear_power_with_spin_is_never_positive(contact):
    """With spin the moment belongs to the power; C23 cancels from it."""
    patch, kalker, _, creepage = contact
    wrench = creep.linear(*patch, *kalker, *creepage)
    terms = [f * xi for f, xi in zip(wrench, creepage, strict=True)]
    assert sum(terms) <= 1e-12 * sum(abs(t) for t in terms)


@given(contact=contacts())
@many
def test_linear_coupling_of_lateral_force_and_spin_moment_is_skew(contact):
    """C32 = -C23: what spin gives to Fy, lateral creepage takes from Mz; nothing couples to Fx."""
    patch, kalker, _, _ = contact
    columns = np.array([creep.linear(*patch, *kalker, *unit) for unit in np.eye(3)]).T
    arm = patch[0] * patch[1]
    scale = patch[2] * arm
    c11, c22, c23, c33 = kalker
    expected = -scale * np.array([[c11, 0.0, 0.0], [0.0, c22, arm**0.5 * c23], [0.0, -(arm**0.5) * c23, arm * c33]])
    np.testing.assert_allclose(columns, expected, rtol=1e-13)


@each_fastsim
@given(contact=contacts())
@many
def test_fastsim_power_with_spin_is_never_positive(law, contact):
    """Certain for one common flexibility; with Kalker's three it holds for a/b from 0.1 to 10, drawn here."""
    patch, kalker, load, creepage = contact
    wrench = law(*patch, *kalker[:3], *load, *creepage, *COARSE)
    terms = [f * xi for f, xi in zip(wrench, creepage, strict=True)]
    assert sum(terms) <= 1e-12 * sum(abs(t) for t in terms)


@pytest.mark.parametrize("law", ALL_LAWS, ids=lambda f: f.__name__)
def test_with_spin_the_force_alone_may_drive(law):
    # CONTACT's example: spin pushes the wheel along its lateral creepage, Fy and xi_y have one sign.
    _, fy = law(SPIN_PATCH, (*SPIN_KALKER, 0.8), SPIN_LOAD, SPIN_CREEPAGE)
    assert fy * SPIN_CREEPAGE[1] > 0.0


@each_law
@given(contact=contacts())
@many
def test_mirror_symmetry(law, contact):
    patch, kalker, load, (xi_x, xi_y, xi_s) = contact
    fx, fy = law(patch, kalker, load, (xi_x, xi_y, xi_s))
    assert law(patch, kalker, load, (xi_x, -xi_y, -xi_s)) == (fx, -fy)
    assert law(patch, kalker, load, (-xi_x, -xi_y, -xi_s)) == (-fx, -fy)


@each_fastsim
@given(contact=contacts(), strips=st.integers(1, 12), cells=st.integers(1, 12))
@many
def test_fastsim_mirror_symmetry_on_any_grid(law, contact, strips, cells):
    patch, kalker, load, (xi_x, xi_y, xi_s) = contact
    fx, fy, mz = law(*patch, *kalker[:3], *load, xi_x, xi_y, xi_s, strips, cells)
    assert law(*patch, *kalker[:3], *load, xi_x, -xi_y, -xi_s, strips, cells) == (fx, -fy, -mz)


# Small creepages


@given(contact=contacts())
@example(contact=(SPIN_PATCH, (*SPIN_KALKER, 0.8), SPIN_LOAD, SPIN_CREEPAGE))
@many
def test_saturated_linear_force_leaves_linear_theory_at_second_order(contact):
    patch, kalker, load, creepage = contact
    force = np.array(linear(patch, kalker, load, creepage))
    bound = load[0] * load[1]
    size = np.hypot(*force)
    scale = 1e-6 * bound / size if size > 0.0 else 1.0
    small = tuple(xi * scale for xi in creepage)
    loss = np.hypot(*(np.array(saturated_linear(patch, kalker, load, small)) - force * scale))
    # u - (u - u^2/3) with u = 1e-6: first order exactly, second order as the law says.
    assert loss <= 1.001 * 1e-12 / 3 * bound + 1e-15 * size * scale


@each_fastsim
@pytest.mark.parametrize("grid", [(1, 1), (2, 5), (10, 10), (7, 30)])
@given(contact=contacts())
@many
def test_fastsim_starts_with_the_linear_slope_on_any_grid(law, grid, contact):
    """Where nothing slips yet the corrected sums have no discretisation error: forces equal linear theory."""
    patch, kalker, load, creepage = contact
    force = np.array(linear(patch, kalker, load, creepage))
    rigid = abs(creepage[0]) + abs(creepage[1]) + (patch[0] + patch[1]) * abs(creepage[2])
    if rigid == 0.0:
        return
    scale = 1e-9 * load[0] * load[1] / (patch[0] * patch[1] * patch[2] * kalker[0] * rigid)
    small = tuple(xi * scale for xi in creepage)
    got = law(*patch, *kalker[:3], *load, *small, *grid)[:2]
    sizes = (
        scale
        * patch[0]
        * patch[1]
        * patch[2]
        * np.array(
            [
                kalker[0] * abs(creepage[0]) + patch[1] * kalker[2] * abs(creepage[2]),
                kalker[1] * abs(creepage[1]) + sqrt(patch[0] * patch[1]) * kalker[2] * abs(creepage[2]),
            ]
        )
    )
    np.testing.assert_array_less(np.abs(got - force * scale), 1e-11 * sizes + 1e-300)


@pytest.mark.parametrize("slot", [0, 1, 2])
def test_polach_has_the_linear_slope_along_each_axis(slot):
    creepage = [0.0, 0.0, 0.0]
    creepage[slot] = 1e-9
    kalker = (*SPIN_KALKER, 0.8)
    expected = linear(SPIN_PATCH, kalker, SPIN_LOAD, creepage)
    np.testing.assert_allclose(polach(SPIN_PATCH, kalker, SPIN_LOAD, creepage), expected, rtol=1e-8)


@given(angle=st.floats(0.0, 2 * pi))
@many
def test_polach_between_the_axes_opposes_the_creepage(angle):
    """Its slope there has the size of the linear force but the direction of the creepage."""
    kalker = (*SPIN_KALKER, 0.8)
    creepage = (1e-9 * np.cos(angle), 1e-9 * np.sin(angle), 0.0)
    force = np.array(polach(SPIN_PATCH, kalker, SPIN_LOAD, creepage))
    assert np.hypot(*force) == pytest.approx(np.hypot(*linear(SPIN_PATCH, kalker, SPIN_LOAD, creepage)), rel=1e-8)
    np.testing.assert_allclose(-force / np.hypot(*force), np.array(creepage[:2]) / 1e-9, atol=1e-12)
