"""Identities of the coefficient tables, to 1e-14, and limits of the stability functions."""

import numpy as np
import pytest

from railsweep.kernels.integrate.dop853 import dop853
from railsweep.kernels.integrate.esdirk_tableau import esdirk54, jkt, nt1
from railsweep.kernels.integrate.explicit_pair import dopri5, rkf34
from railsweep.kernels.integrate.radau_tableau import radau5

EXACT = 1e-14


def conditions(a: np.ndarray, b: np.ndarray, c: np.ndarray, order: int) -> list[float]:
    """Residuals of the order conditions up to order 5 (17 trees), Hairer-Norsett-Wanner II.2."""
    ac, ac2, ac3 = a @ c, a @ c**2, a @ c**3
    trees = [
        (1, b.sum(), 1),
        (2, b @ c, 1 / 2),
        (3, b @ c**2, 1 / 3),
        (3, b @ ac, 1 / 6),
        (4, b @ c**3, 1 / 4),
        (4, b @ (c * ac), 1 / 8),
        (4, b @ ac2, 1 / 12),
        (4, b @ a @ ac, 1 / 24),
        (5, b @ c**4, 1 / 5),
        (5, b @ (c**2 * ac), 1 / 10),
        (5, b @ ac**2, 1 / 20),
        (5, b @ (c * ac2), 1 / 15),
        (5, b @ ac3, 1 / 20),
        (5, b @ (c * (a @ ac)), 1 / 30),
        (5, b @ a @ (c * ac), 1 / 40),
        (5, b @ a @ ac2, 1 / 60),
        (5, b @ a @ a @ ac, 1 / 120),
    ]
    return [float(value - wanted) for size, value, wanted in trees if size <= order]


@pytest.mark.parametrize(("make", "order", "embedded"), [(nt1, 3, 4), (jkt, 3, 4), (esdirk54, 5, 4)])
def test_esdirk_conditions(make, order: int, embedded: int) -> None:
    tableau = make()
    a, c = tableau.a, tableau.c
    assert np.abs(a.sum(axis=1) - c).max() < EXACT
    assert np.allclose(np.diag(a)[1:], tableau.gamma, rtol=0, atol=EXACT)
    assert np.abs(np.triu(a, 1)).max() == 0.0
    assert np.abs(conditions(a, a[-1], c, order)).max() < EXACT
    assert np.abs(conditions(a, a[-1] - tableau.error, c, embedded)).max() < EXACT
    # The method has exactly this order, not more.
    assert np.abs(conditions(a, a[-1], c, order + 1)).max() > 1e-4 if order < 5 else True
    # Stage order 2 from the second stage on.
    assert np.abs((a @ c - c**2 / 2)[1:]).max() < EXACT


def test_radau_conditions() -> None:
    """Order 5 and stage order 3 (Hairer-Wanner IV.5), the transformation of IV.8, and the embedded order 3."""
    tableau = radau5()
    a, c, gamma = tableau.a, tableau.c, tableau.gamma
    assert np.abs(conditions(a, a[-1], c, 5)).max() < EXACT
    for k in (1, 2, 3):
        assert np.abs(a @ c ** (k - 1) - c**k / k).max() < EXACT
    assert a[-1] @ c**5 != pytest.approx(1 / 6, abs=1e-4)  # not of order 6
    assert np.abs(tableau.slope @ a - np.eye(3)[2]).max() < EXACT
    block = np.array([[gamma, 0, 0], [0, tableau.alpha, -tableau.beta], [0, tableau.beta, tableau.alpha]])
    assert np.abs(a @ tableau.t @ block - tableau.t).max() < EXACT
    assert np.abs(tableau.t @ tableau.t_inverse - np.eye(3)).max() < EXACT
    # With f(t, y) as a stage before the others, z = h A k: the estimate is h (k_0/gamma + e A k).
    full = np.zeros((4, 4))
    full[1:, 1:] = a
    weights = np.append(1 / gamma, tableau.error @ a)
    nodes = np.append(0.0, c)
    assert np.abs(conditions(full, np.append(0.0, a[-1]) + weights, nodes, 3)).max() < EXACT
    assert np.abs(conditions(full, np.append(0.0, a[-1]) + weights, nodes, 4)).max() > 1e-3


def test_radau_dense_output_is_the_collocation_polynomial() -> None:
    """It takes the stage values at the nodes and their slopes there."""
    tableau = radau5()
    powers = np.arange(1, 4)
    c = tableau.c[:, None]
    assert np.abs(c**powers @ tableau.dense - np.eye(3)).max() < EXACT
    assert np.abs(powers * c ** (powers - 1) @ tableau.dense @ tableau.a - np.eye(3)).max() < 5 * EXACT


@pytest.mark.parametrize(("make", "limit"), [(nt1, 0.136), (jkt, 0.0), (esdirk54, 0.0), (radau5, 0.0)])
def test_stability_at_infinity(make, limit: float) -> None:
    """R(z) = 1 + z b (I - zA)^-1 1 for z -> -inf; the published NT1 limit has three digits."""
    a = make().a
    z = -1e9
    value = 1 + z * a[-1] @ np.linalg.solve(np.eye(len(a)) - z * a, np.ones(len(a)))
    assert abs(value) == pytest.approx(limit, abs=5e-4 if limit else 1e-6)


@pytest.mark.parametrize("make", [nt1, jkt, esdirk54, radau5])
def test_a_stable_on_the_imaginary_axis(make) -> None:
    a = make().a
    one = np.ones(len(a))
    for w in np.concatenate([np.linspace(0.01, 10, 400), np.logspace(1, 5, 200)]):
        z = 1j * w
        assert abs(1 + z * a[-1] @ np.linalg.solve(np.eye(len(a)) - z * a, one)) <= 1 + 1e-12


@pytest.mark.parametrize(("make", "order", "embedded"), [(rkf34, 3, 4), (dopri5, 5, 4), (dop853, 5, None)])
def test_explicit_conditions(make, order: int, embedded: int | None) -> None:
    tableau = make()
    s = tableau.b.size
    a = np.zeros((s + 1, s + 1))
    a[:s, :s] = tableau.a
    a[s, :s] = tableau.b
    b = np.append(tableau.b, 0.0)
    c = np.append(tableau.c, 1.0)
    assert np.abs(a.sum(axis=1) - c).max() < 2 * EXACT
    assert np.abs(conditions(a, b, c, order)).max() < EXACT
    assert abs(tableau.error.sum()) < EXACT
    if embedded is not None:
        assert np.abs(conditions(a, b - tableau.error, c, embedded)).max() < EXACT


def test_dop853_quadrature_is_of_order_eight() -> None:
    tableau = dop853()
    for k in range(8):
        assert tableau.b @ tableau.c**k == pytest.approx(1 / (k + 1), abs=EXACT)
    for weights, order in ((tableau.error, 5), (tableau.error_low, 3)):
        for k in range(order):
            assert weights[:-1] @ tableau.c**k + weights[-1] == pytest.approx(0.0, abs=2 * EXACT)


@pytest.mark.parametrize("make", [nt1, jkt, esdirk54, rkf34, dopri5, dop853])
def test_dense_output_meets_the_ends(make) -> None:
    """At s = 1 the dense weights sum to b, their slope to the last stage; at s = 0 the slope is the first stage."""
    tableau = make()
    dense = tableau.dense
    powers = np.arange(1, dense.shape[0] + 1)
    if hasattr(tableau, "b"):
        last = tableau.b.size
        b = np.zeros(dense.shape[1])
        b[:last] = tableau.b
    else:
        last = dense.shape[1] - 1
        b = tableau.a[-1]
    assert np.abs(dense.sum(axis=0) - b).max() < 1e-11
    assert np.abs(powers @ dense - np.eye(dense.shape[1])[last]).max() < 1e-10
    assert np.abs(dense[0] - np.eye(dense.shape[1])[0]).max() < 1e-11
