"""Hertz contact of two smooth bodies of equal material: ellipse, approach and stiffness.

The gap of the undeformed bodies is z = A_x x^2 + B_y y^2, x along rolling, y lateral; A_x and B_y [1/m] are
half the sum of the two bodies' curvatures in their direction. Semi-axis a lies ALONG ROLLING, b across,
whichever is longer.

With E* = E / (2 (1 - nu^2)), k = minor/major axis, P = R_D(0, 1, k^2), Q = R_D(0, k^2, 1) (Carlson's
integrals), the conditions of Johnson, Contact Mechanics, 4.2 read
    larger curvature / smaller = P / Q,
    sqrt(ab) = F1 (3 N Re / (4 E*))^(1/3),   q = F2 (9 N^2 / (16 E*^2 Re))^(1/3),
    Re = 1 / (2 sqrt(A_x B_y)),   F1 = (4/pi)^(1/3) sqrt(k) (P Q / 9)^(1/6),   F2 = (2/pi) sqrt(k) K / F1.
They are the usual forms in K and E, since K - E = m Q/3 and E/k^2 - K = m P/3 with m = 1 - k^2, but m has
cancelled: nothing is lost for a circle, where K - E vanishes.
"""

from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import elliprd, elliprf

from railsweep.engine.errors import InputError, shown

Array = NDArray[np.float64]

MAX_ITERATIONS = 50
# Newton's steps end when they no longer change log k beyond rounding.
STEP_TOLERANCE = 4e-15
# Below this, 1 - k^2 is too small to divide by and the slope of its limit, -3/2, serves.
NEARLY_ROUND = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class HertzContact:
    """Result of `hertz_contact`; arrays of the common shape of its arguments.

    a : semi-axis along rolling [m]; b : lateral semi-axis [m]; penetration : approach q of the bodies [m];
    stiffness : K in N = K q^1.5 [N/m^1.5], which does not depend on the load.
    """

    a: Array
    b: Array
    penetration: Array
    stiffness: Array


def curvature_ratio(axis_ratio: ArrayLike) -> Array:
    """Larger over smaller relative curvature of the contact whose ellipse has minor/major `axis_ratio`."""
    k = np.asarray(axis_ratio, dtype=np.float64)
    if not np.all((k > 0.0) & (k <= 1.0)):
        raise InputError("axis_ratio", f"{shown(axis_ratio)} has a value out of range", "above 0, at most 1")
    result: Array = elliprd(0.0, 1.0, k * k) / elliprd(0.0, k * k, 1.0)
    return result


def ellipse_axis_ratio(curvatures: ArrayLike) -> Array:
    """Minor over major axis from larger over smaller curvature (>= 1): the inverse of `curvature_ratio`.

    Newton's method for log(P/Q) as a function of log k, a nearly straight line whose slope lies between -2
    and -3/2.
    """
    ratio = np.asarray(curvatures, dtype=np.float64)
    if not np.all((ratio >= 1.0) & np.isfinite(ratio)):
        raise InputError("curvatures", f"{shown(curvatures)} has a value out of range", "finite, at least 1")
    target = np.log(ratio)
    log_k = -target / 1.5
    for _ in range(MAX_ITERATIONS):
        k2 = np.exp(2.0 * log_k)
        rho = elliprd(0.0, 1.0, k2) / elliprd(0.0, k2, 1.0)
        m = -np.expm1(2.0 * log_k)
        round_ = m < NEARLY_ROUND
        slope = np.where(round_, -1.5, -2.0 - (1.0 / rho - k2 * rho) / np.where(round_, 1.0, m))
        step = (np.log(rho) - target) / slope
        log_k = np.minimum(log_k - step, 0.0)
        if np.all(np.abs(step) <= STEP_TOLERANCE * (1.0 + np.abs(log_k))):
            result: Array = np.exp(log_k)
            return result
    raise ArithmeticError(f"axis ratio not found in {MAX_ITERATIONS} steps for {shown(curvatures)}")


def hertz_contact(
    curvature_x: ArrayLike,
    curvature_y: ArrayLike,
    normal: ArrayLike,
    young: float,
    poisson: float,
) -> HertzContact:
    """Contact ellipse, approach and stiffness under a normal load; arguments broadcast.

    Parameters
    ----------
    curvature_x, curvature_y : array_like
        A_x and B_y [1/m], half the sum of the bodies' curvatures along rolling and across; both positive. A
        wheel of radius r on a straight rail has A_x = 1 / (2 r).
    normal : array_like
        Load N [N], not negative. Zero gives a point of contact and the same stiffness.
    young, poisson : float
        Young's modulus [Pa] and Poisson ratio (0 to 0.5) of both bodies.

    Returns
    -------
    HertzContact

    Examples
    --------
    Two equal spheres of radius 1 m touch as one of 0.5 m does a plane:

    >>> c = hertz_contact(1.0, 1.0, 1e5, 2.1e11, 0.3)
    >>> round(float(c.a) * 1e3, 4), round(float(c.penetration) * 1e6, 3)
    (6.8753, 94.541)
    """
    along, across, load = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (curvature_x, curvature_y, normal))
    )
    for name, value in (("curvature_x", along), ("curvature_y", across)):
        if not np.all((value > 0.0) & np.isfinite(value)):
            raise InputError(name, f"{shown(value.tolist())} has a value out of range", "finite, above 0 1/m")
    if not np.all((load >= 0.0) & np.isfinite(load)):
        raise InputError("normal", f"{shown(load.tolist())} has a value out of range", "finite, at least 0 N")
    if not 0.0 < young < np.inf:
        raise InputError("young", f"{shown(young)} is out of range", "finite, above 0 Pa")
    if not 0.0 <= poisson <= 0.5:
        raise InputError("poisson", f"{shown(poisson)} is out of range", "0 to 0.5")

    modulus = young / (2.0 * (1.0 - poisson**2))
    k = ellipse_axis_ratio(np.maximum(along, across) / np.minimum(along, across))
    k2 = k * k
    integrals = elliprd(0.0, 1.0, k2) * elliprd(0.0, k2, 1.0) / 9.0
    f1 = np.cbrt(4.0 / pi) * np.sqrt(k) * integrals ** (1.0 / 6.0)
    f2 = 2.0 / pi * np.sqrt(k) * elliprf(0.0, k2, 1.0) / f1
    radius = 0.5 / np.sqrt(along * across)
    size = f1 * np.cbrt(0.75 * load * radius / modulus)
    # The ellipse is long in the direction of the smaller curvature.
    stretch = np.where(along <= across, 1.0 / np.sqrt(k), np.sqrt(k))
    return HertzContact(
        a=size * stretch,
        b=size / stretch,
        penetration=f2 * np.cbrt(9.0 / 16.0 * load * load / (modulus * modulus * radius)),
        stiffness=4.0 / 3.0 * modulus * np.sqrt(radius) / f2**1.5,
    )
