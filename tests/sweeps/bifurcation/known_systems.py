"""Small systems whose cycles are known in closed form or from the literature, as families."""

from typing import Any

import numba
import numpy as np

from railsweep.sweeps.bifurcation import Family, family_of_rhs

njit = numba.njit(cache=True, error_model="numpy")


@njit
def bautin(t: float, y: Any, params: Any, out: Any) -> None:
    """z' = (mu + i w) z + l1 z |z|^2 + l2 z |z|^4 with a constant twist: r' = r (mu + l1 r^2 + l2 r^4)."""
    mu, w, l1, l2, twist = params[0], params[1], params[2], params[3], params[4]
    r2 = y[0] * y[0] + y[1] * y[1]
    growth = mu + l1 * r2 + l2 * r2 * r2
    turn = w + twist * r2
    out[0] = growth * y[0] - turn * y[1]
    out[1] = growth * y[1] + turn * y[0]


@njit
def van_der_pol(t: float, y: Any, params: Any, out: Any) -> None:
    out[0] = y[1]
    out[1] = params[0] * (1.0 - y[0] * y[0]) * y[1] - y[0]


@njit
def adaptive_control(t: float, y: Any, params: Any, out: Any) -> None:
    """Feedback control system of the MATCONT manual ("adaptx")."""
    out[0] = y[1]
    out[1] = y[2]
    out[2] = -params[0] * y[2] - params[1] * y[1] - y[0] + y[0] * y[0]


@njit
def brusselator(t: float, y: Any, params: Any, out: Any) -> None:
    a, b = params[0], params[1]
    out[0] = a - (b + 1.0) * y[0] + y[0] * y[0] * y[1]
    out[1] = b * y[0] - y[0] * y[0] * y[1]


@njit
def hysteresis(t: float, y: Any, params: Any, out: Any) -> None:
    out[0] = params[0] - y[0] * y[0] * y[0] + y[0]
    out[1] = y[0] - y[1]


@njit
def rising(t: float, y: Any, params: Any, out: Any) -> None:
    """Without an equilibrium."""
    out[0] = 1.0 + y[0] * y[0]


@njit
def passengers(t: float, y: Any, params: Any, out: Any) -> None:
    """A unit circle (y0, y1), run through at the rate 1, with two passengers u that do not act back on it.

    u = R(half theta) w with w' = B w, B = [[a, -b], [b, c]], and R a rotation by `half` (0 or 1/2) of the phase: after
    one turn the multipliers of the passengers are exactly +-exp(2 pi eig(B)), minus for 1/2. The circle's own are 1 and
    exp(-4 pi).
    """
    a, b, c, half = params[0], params[1], params[2], params[3]
    r2 = y[0] * y[0] + y[1] * y[1]
    out[0] = y[0] * (1.0 - r2) - y[1]
    out[1] = y[1] * (1.0 - r2) + y[0]
    # R(phi) B R(-phi) with phi = half * theta needs cos and sin of 2 phi: for half = 1/2 that is the cycle itself
    mean, part = 0.5 * (a + c), 0.5 * (a - c)
    cos2, sin2 = (y[0], y[1]) if half > 0.0 else (1.0, 0.0)
    m00, m01 = mean + part * cos2, part * sin2 - b - half
    m10, m11 = part * sin2 + b + half, mean - part * cos2
    out[2] = m00 * y[2] + m01 * y[3]
    out[3] = m10 * y[2] + m11 * y[3]


def tight(rhs: Any, n: int, params: Any, **options: Any) -> Family:
    """A family on dop853."""
    return family_of_rhs(rhs, n, params, method="dop853", **options)


def passengers_family(b: float, c: float, half: float) -> Family:
    """Over a."""
    return tight(passengers, 4, lambda a: np.array([a, b, c, half]), name="a")


def van_der_pol_family() -> Family:
    """Over mu."""
    return tight(van_der_pol, 2, lambda mu: np.array([mu]), name="mu")


def adaptive_control_family(beta: float = 1.0) -> Family:
    """Over alpha."""
    return tight(adaptive_control, 3, lambda alpha: np.array([alpha, beta]), name="alpha")


def brusselator_family(a: float) -> Family:
    """Over b: equilibrium (a, b/a), Hopf point at b = 1 + a^2 with frequency a."""
    return tight(brusselator, 2, lambda b: np.array([a, b]), name="b")


def hysteresis_family() -> Family:
    """Over p: equilibria x^3 - x = p, y = x, folds at p = -+2/(3 sqrt(3))."""
    return tight(hysteresis, 2, lambda p: np.array([p]), name="p")


def bautin_family(l1: float, l2: float, w: float = 2.0, twist: float = 0.3) -> Family:
    """Over mu."""
    return tight(bautin, 2, lambda mu: np.array([mu, w, l1, l2, twist]), name="mu")
