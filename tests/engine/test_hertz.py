"""Hertz contact against closed forms, the potential integrals it solves, and published cases."""

from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ellipe, ellipk

from railsweep.engine import hertz
from railsweep.engine.errors import InputError
from railsweep.engine.hertz import curvature_ratio, ellipse_axis_ratio, hertz_contact

STEEL = (2.1e11, 0.3)


def effective_modulus(young, poisson):
    return young / (2 * (1 - poisson**2))


def potential_integrals(a, b, normal, modulus):
    """A_x, B_y and q of an ellipse under the Hertz pressure (Johnson, Contact Mechanics, eq. 4.25)."""
    # psi = c^2 tan^2(t), c^2 = ab, turns the half line into 0 .. pi/2 and removes the root at zero.
    c = sqrt(a * b)

    def integral(power_a, power_b):
        def integrand(t):
            s, co = np.sin(t), np.cos(t)
            along, across = (a * co) ** 2 + (c * s) ** 2, (b * co) ** 2 + (c * s) ** 2
            return 2 * c * co ** (2 * (power_a + power_b)) / (along ** (power_a + 0.5) * across ** (power_b + 0.5))

        return quad(integrand, 0, pi / 2, epsabs=0.0, epsrel=1e-13, limit=400)[0]

    factor = 3 * normal / (4 * pi * modulus)
    return factor * integral(1, 0), factor * integral(0, 1), factor * integral(0, 0)


@pytest.mark.parametrize(("r1", "r2"), [(1.0, 1.0), (0.46, 0.3), (0.5, 1e9)])
def test_two_spheres(r1, r2):
    normal = 8e4
    radius, modulus = 1 / (1 / r1 + 1 / r2), effective_modulus(*STEEL)
    half = 0.5 * (1 / r1 + 1 / r2)
    c = hertz_contact(half, half, normal, *STEEL)
    semi_axis = (3 * normal * radius / (4 * modulus)) ** (1 / 3)
    assert c.a == pytest.approx(semi_axis, rel=1e-10)
    assert c.b == c.a
    assert c.penetration == pytest.approx(semi_axis**2 / radius, rel=1e-10)
    assert c.stiffness == pytest.approx(4 / 3 * modulus * sqrt(radius), rel=1e-10)


def test_crossed_equal_cylinders_touch_like_a_sphere_on_a_plane():
    wheel, rail = 0.46, 0.46
    c = hertz_contact(0.5 / wheel, 0.5 / rail, 1e5, *STEEL)
    assert c.a == pytest.approx((3 * 1e5 * 0.46 / (4 * effective_modulus(*STEEL))) ** (1 / 3), rel=1e-10)
    assert c.b == pytest.approx(c.a, rel=1e-14)


@pytest.mark.parametrize("cylinder", [0.05, 0.3, 5.0])
def test_sphere_on_cylinder(cylinder):
    """Legendre form, E and K of the modulus e (Johnson 4.28-4.32); the cylinder lies along x."""
    sphere, normal = 0.3, 5e4
    modulus = effective_modulus(*STEEL)
    along, across = 0.5 / sphere, 0.5 / sphere + 0.5 / cylinder
    c = hertz_contact(along, across, normal, *STEEL)
    assert c.a > c.b
    k2 = float(c.b / c.a) ** 2
    m = 1 - k2
    big_k, big_e = ellipk(m), ellipe(m)
    factor = 3 * normal / (2 * pi * modulus)
    assert factor / c.a**3 * (big_k - big_e) / m == pytest.approx(along, rel=1e-10)
    assert factor / c.a**3 * (big_e / k2 - big_k) / m == pytest.approx(across, rel=1e-10)
    assert factor / c.a * big_k == pytest.approx(c.penetration, rel=1e-10)


@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-9, 1.0001, 1.3, 4.0, 50.0, 1e3])
@pytest.mark.parametrize("turned", [False, True])
def test_ellipse_solves_the_potential_integrals(ratio, turned):
    curvatures = (1.1 * ratio, 1.1) if turned else (1.1, 1.1 * ratio)
    c = hertz_contact(*curvatures, 7e4, *STEEL)
    along, across, q = potential_integrals(float(c.a), float(c.b), 7e4, effective_modulus(*STEEL))
    np.testing.assert_allclose((along, across, q), (*curvatures, c.penetration), rtol=1e-10)


def test_contact_example():
    """CONTACT, examples/fastsim: semi-axes 8 and 4 mm prescribed, it prints curvatures and approach."""
    shear, poisson = 82e9, 0.28
    c = hertz_contact(0.8464, 2.406, 82e3, 2 * shear * (1 + poisson), poisson)
    assert c.a == pytest.approx(8e-3, rel=1e-4)
    assert c.b == pytest.approx(4e-3, rel=1e-4)
    assert c.penetration == pytest.approx(9.267e-5, rel=1e-4)


def test_wheel_on_rail_row_of_the_dytsi_table():
    """Row lat = 0 of the published contact table, a = 5.952 mm, b = 6.653 mm, q = 70.1 um: plain Hertz.

    The ellipse and the approach fix load and curvatures; the load is that of the table, 66 668 N, and the
    curvatures give the ellipse back.
    """
    a, b, q = 5.952e-3, 6.653e-3, 70.1e-6
    young, poisson = 2.1e11, 0.27
    unit_along, unit_across, unit_q = potential_integrals(a, b, 1.0, effective_modulus(young, poisson))
    normal = q / unit_q
    assert normal == pytest.approx(66668, rel=1e-3)
    c = hertz_contact(unit_along * normal, unit_across * normal, normal, young, poisson)
    np.testing.assert_allclose((c.a, c.b, c.penetration), (a, b, q), rtol=1e-10)


@given(st.floats(1.0, 1e6))
@example(1.0)
@example(1.0 + 2.0**-52)
@example(1e6)
@settings(max_examples=500)
def test_axis_ratio_inverts_the_curvature_ratio(ratio):
    k = ellipse_axis_ratio(ratio)
    assert 0.0 < k <= 1.0
    assert curvature_ratio(k) == pytest.approx(ratio, rel=1e-13)


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=20))
def test_axis_ratio_falls_as_curvatures_part(ratios):
    ordered = np.sort(ratios)
    assert np.all(np.diff(ellipse_axis_ratio(ordered)) <= 1e-15)


def test_axis_ratio_takes_few_steps(monkeypatch):
    # Newton's quadratic convergence; a wrong slope still arrives, in many more.
    monkeypatch.setattr(hertz, "MAX_ITERATIONS", 5)
    ellipse_axis_ratio(np.concatenate([1.0 + np.geomspace(1e-15, 1.0, 200), np.geomspace(2.0, 1e6, 400)]))


def test_nearly_round_ellipse_needs_no_luck():
    # To first order k = ratio^(-2/3); K - E alone would have lost these digits.
    excess = np.geomspace(1e-13, 1e-7, 25)
    k = ellipse_axis_ratio(1.0 + excess)
    np.testing.assert_allclose(1.0 - k, 2 / 3 * excess, rtol=1e-6, atol=4e-16)


curvature = st.floats(1e-2, 1e3)


@given(curvature, curvature, st.floats(1.0, 1e6), st.floats(0.0, 0.5))
def test_scaling_and_symmetry(along, across, normal, poisson):
    c = hertz_contact(along, across, normal, 2.1e11, poisson)
    assert normal == pytest.approx(float(c.stiffness * c.penetration**1.5), rel=1e-13)
    assert (c.a >= c.b) == (along <= across)
    turned = hertz_contact(across, along, normal, 2.1e11, poisson)
    assert (turned.a, turned.b) == (
        pytest.approx(float(c.b), rel=1e-14),
        pytest.approx(float(c.a), rel=1e-14),
    )
    # Eight times the load: twice the axes, four times the approach, the same stiffness.
    heavy = hertz_contact(along, across, 8 * normal, 2.1e11, poisson)
    np.testing.assert_allclose(
        (heavy.a, heavy.b, heavy.penetration, heavy.stiffness),
        (2 * c.a, 2 * c.b, 4 * c.penetration, c.stiffness),
        rtol=1e-13,
    )


def test_arguments_broadcast():
    along, across = np.array([[1.0], [2.0]]), np.array([0.5, 3.0, 1.0])
    c = hertz_contact(along, across, 1e5, *STEEL)
    assert c.a.shape == c.b.shape == c.penetration.shape == c.stiffness.shape == (2, 3)
    one = hertz_contact(2.0, 3.0, 1e5, *STEEL)
    assert (c.a[1, 1], c.b[1, 1]) == (pytest.approx(float(one.a)), pytest.approx(float(one.b)))


def test_no_load_is_a_point_with_the_same_stiffness():
    empty, loaded = (hertz_contact(1.0, 2.0, n, *STEEL) for n in (0.0, 1e5))
    assert (empty.a, empty.b, empty.penetration) == (0.0, 0.0, 0.0)
    assert empty.stiffness == loaded.stiffness


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"curvature_x": 0.0}, "curvature_x"),
        ({"curvature_y": [1.0, -1.0]}, "curvature_y"),
        ({"curvature_y": float("nan")}, "curvature_y"),
        ({"normal": -1.0}, "normal"),
        ({"normal": float("inf")}, "normal"),
        ({"young": 0.0}, "young"),
        ({"poisson": 0.6}, "poisson"),
    ],
)
def test_bad_input_is_named(change, named):
    good = {"curvature_x": 1.0, "curvature_y": 1.0, "normal": 1e5, "young": 2.1e11, "poisson": 0.3}
    with pytest.raises(InputError, match=named):
        hertz_contact(**(good | change))


@pytest.mark.parametrize("function", [curvature_ratio, ellipse_axis_ratio])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_ratios_out_of_range_are_refused(function, value):
    with pytest.raises(InputError):
        function(value)
