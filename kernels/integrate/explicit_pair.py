"""Coefficients of the explicit pairs: `rkf34` as published, `dopri5`, `dop853`."""

from fractions import Fraction
from typing import Any

import numpy as np

from railsweep.kernels.integrate.explicit import ExplicitTableau


def _array(rows: list[list[Any]]) -> Any:
    width = max(len(r) for r in rows)
    out = np.zeros((len(rows), width))
    for i, r in enumerate(rows):
        out[i, : len(r)] = [float(x) for x in r]
    return out


def _hermite_weights(b: Any) -> Any:
    """Dense rows of the cubic Hermite polynomial: slopes at both ends and the increment h b.k (order 3)."""
    s = b.size
    dense = np.zeros((3, s + 1))
    dense[0, 0] = 1.0
    dense[1, :s] = 3.0 * b
    dense[1, 0] -= 2.0
    dense[1, s] -= 1.0
    dense[2, :s] = -2.0 * b
    dense[2, 0] += 1.0
    dense[2, s] += 1.0
    return dense


def rkf34() -> ExplicitTableau:
    """Runge-Kutta-Fehlberg 3(4) of spec 3.6: advances with order 3, error from order 4, four evaluations a step."""
    a = _array(
        [
            [0, 0, 0, 0],
            [Fraction(2, 7)],
            [Fraction(77, 900), Fraction(343, 900)],
            [Fraction(805, 1444), Fraction(-77175, 54872), Fraction(97125, 54872)],
        ]
    )
    b = np.array([float(x) for x in (Fraction(79, 490), Fraction(0), Fraction(2175, 3626), Fraction(2166, 9065))])
    # b - b4th, so that e = y3 - y4.
    error = -np.array(
        [
            float(x)
            for x in (Fraction(-4, 735), Fraction(0), Fraction(75, 3626), Fraction(-5776, 81585), Fraction(1, 18))
        ]
    )
    return ExplicitTableau(
        a=a,
        b=b,
        c=np.array([0.0, 2 / 7, 7 / 15, 35 / 38]),
        error=error,
        error_low=np.zeros(0),
        extra_a=np.zeros((0, 5)),
        extra_c=np.zeros(0),
        dense=_hermite_weights(b),
        error_order=3,
        stability_limit=0.0,
    )


def dopri5() -> ExplicitTableau:
    """Dormand & Prince 5(4), J. Comput. Appl. Math. 6 (1980) 19, with Shampine's continuous extension of order 4."""
    a = _array(
        [
            [0, 0, 0, 0, 0, 0],
            [Fraction(1, 5)],
            [Fraction(3, 40), Fraction(9, 40)],
            [Fraction(44, 45), Fraction(-56, 15), Fraction(32, 9)],
            [Fraction(19372, 6561), Fraction(-25360, 2187), Fraction(64448, 6561), Fraction(-212, 729)],
            [
                Fraction(9017, 3168),
                Fraction(-355, 33),
                Fraction(46732, 5247),
                Fraction(49, 176),
                Fraction(-5103, 18656),
            ],
        ]
    )
    b = np.array([35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])
    b_low = np.array([5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
    # Hairer-Norsett-Wanner II.6 (6.12): the Hermite cubic plus s^2 (1 - s)^2 h d.k.
    d = np.array(
        [
            -12715105075 / 11282082432,
            0.0,
            87487479700 / 32700410799,
            -10690763975 / 1880347072,
            701980252875 / 199316789632,
            -1453857185 / 822651844,
            69997945 / 29380423,
        ]
    )
    dense = np.zeros((4, 7))
    dense[:3] = _hermite_weights(b)
    dense[1] += d
    dense[2] -= 2.0 * d
    dense[3] += d
    return ExplicitTableau(
        a=a,
        b=b,
        c=np.array([0.0, 0.2, 0.3, 0.8, 8 / 9, 1.0]),
        error=np.append(b, 0.0) - b_low,
        error_low=np.zeros(0),
        extra_a=np.zeros((0, 7)),
        extra_c=np.zeros(0),
        dense=dense,
        error_order=4,
        stability_limit=3.3,
    )
