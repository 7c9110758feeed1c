"""Initial-value problems of the literature with their published end values.

Sources: Mazzia & Magherini, Test Set for IVP Solvers (Bari): HIRES, Pollution, Robertson, van der Pol, Pleiades; Hairer
& Wanner II: OREGO and E5 (Enright, Hull & Lindberg 1975); Hairer, Norsett & Wanner I: Brusselator II.4, Arenstorf
orbit II.0; spec 3.8: decay, oscillator, stiff pair.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

njit = numba.njit(cache=True, error_model="numpy")


@dataclass(frozen=True)
class Problem:
    """One problem: `end` is the reference at t_end, `atol_scale` * rtol the absolute tolerance."""

    name: str
    rhs: Any
    t_end: float
    y0: tuple[float, ...]
    end: tuple[float, ...]
    stiff: bool
    atol_scale: float = 1.0
    params: Any = None
    most_digits: float = 17.0

    def digits(self, y: Any) -> float:
        """scd: minus the decimal logarithm of the largest relative error, no more than the arithmetic can hold.

        Components without a reference (NaN) are left out; where it is tiny the error is absolute.
        """
        reference = np.array(self.end)
        m = min(reference.size, len(y))
        error = np.abs(np.asarray(y)[:m] - reference[:m])
        size = np.where(np.abs(reference[:m]) > 1e-100, np.abs(reference[:m]), 1.0)
        return float(min(-np.log10(max(np.nanmax(error / size), 1e-17)), self.most_digits))


@njit
def hires(t, y, params, out):
    out[0] = -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007
    out[1] = 1.71 * y[0] - 8.75 * y[1]
    out[2] = -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4]
    out[3] = 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3]
    out[4] = -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6]
    out[5] = -280.0 * y[5] * y[7] + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6]
    out[6] = 280.0 * y[5] * y[7] - 1.81 * y[6]
    out[7] = -out[6]


@njit
def pollution(t, y, params, out):
    r1 = 0.35 * y[0]
    r2 = 26.6 * y[1] * y[3]
    r3 = 12300.0 * y[4] * y[1]
    r4 = 0.00086 * y[6]
    r5 = 0.00082 * y[6]
    r6 = 15000.0 * y[6] * y[5]
    r7 = 0.00013 * y[8]
    r8 = 24000.0 * y[8] * y[5]
    r9 = 16500.0 * y[10] * y[1]
    r10 = 9000.0 * y[10] * y[0]
    r11 = 0.022 * y[12]
    r12 = 12000.0 * y[9] * y[1]
    r13 = 1.88 * y[13]
    r14 = 16300.0 * y[0] * y[5]
    r15 = 4.8e6 * y[2]
    r16 = 0.00035 * y[3]
    r17 = 0.0175 * y[3]
    r18 = 1e8 * y[15]
    r19 = 4.44e11 * y[15]
    r20 = 1240.0 * y[16] * y[5]
    r21 = 2.1 * y[18]
    r22 = 5.78 * y[18]
    r23 = 0.0474 * y[0] * y[3]
    r24 = 1780.0 * y[18] * y[0]
    r25 = 3.12 * y[19]
    out[0] = -r1 - r10 - r14 - r23 - r24 + r2 + r3 + r9 + r11 + r12 + r22 + r25
    out[1] = -r2 - r3 - r9 - r12 + r1 + r21
    out[2] = -r15 + r1 + r17 + r19 + r22
    out[3] = -r2 - r16 - r17 - r23 + r15
    out[4] = -r3 + 2.0 * r4 + r6 + r7 + r13 + r20
    out[5] = -r6 - r8 - r14 - r20 + r3 + 2.0 * r18
    out[6] = -r4 - r5 - r6 + r13
    out[7] = r4 + r5 + r6 + r7
    out[8] = -r7 - r8
    out[9] = -r12 + r7 + r9
    out[10] = -r9 - r10 + r8 + r11
    out[11] = r9
    out[12] = -r11 + r10
    out[13] = -r13 + r12
    out[14] = r14
    out[15] = -r18 - r19 + r16
    out[16] = -r20
    out[17] = r20
    out[18] = -r21 - r22 - r24 + r23 + r25
    out[19] = -r25 + r24


@njit
def robertson(t, y, params, out):
    out[0] = -0.04 * y[0] + 1e4 * y[1] * y[2]
    out[2] = 3e7 * y[1] * y[1]
    out[1] = -out[0] - out[2]


@njit
def robertson_jacobian(t, y, params, out):
    out[0, 0] = -0.04
    out[0, 1] = 1e4 * y[2]
    out[0, 2] = 1e4 * y[1]
    out[2, 0] = 0.0
    out[2, 1] = 6e7 * y[1]
    out[2, 2] = 0.0
    for j in range(3):
        out[1, j] = -out[0, j] - out[2, j]


@njit
def van_der_pol(t, y, mu, out):
    out[0] = y[1]
    out[1] = mu * (1.0 - y[0] * y[0]) * y[1] - y[0]


@njit
def pleiades(t, y, params, out):
    for i in range(14):
        out[i] = y[14 + i]
        out[14 + i] = 0.0
    for i in range(7):
        for j in range(7):
            if i != j:
                dx = y[j] - y[i]
                dy = y[7 + j] - y[7 + i]
                r2 = dx * dx + dy * dy
                w = (j + 1) / (r2 * np.sqrt(r2))
                out[14 + i] += w * dx
                out[21 + i] += w * dy


@njit
def orego(t, y, params, out):
    out[0] = 77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1]))
    out[1] = (y[2] - (1.0 + y[0]) * y[1]) / 77.27
    out[2] = 0.161 * (y[0] - y[2])


@njit
def e5(t, y, params, out):
    """Pyrolysis of E5: y2 - y3 - y4 = 0 for ever, while y2 falls from 1e-10 to 1e-20."""
    a = 7.89e-10 * y[0]
    b = 1.1e7 * y[0] * y[2]
    c = 1.13e9 * y[1] * y[2]
    d = 1.13e3 * y[3]
    out[0] = -a - b
    out[1] = a - c
    out[3] = b - d
    out[2] = out[1] - out[3]


@njit
def e5_reduced(t, y, params, out):
    """E5 without y2, which the invariant gives: (y1, y3, y4)."""
    a = 7.89e-10 * y[0]
    b = 1.1e7 * y[0] * y[1]
    c = 1.13e9 * (y[1] + y[2]) * y[1]
    d = 1.13e3 * y[2]
    out[0] = -a - b
    out[2] = b - d
    out[1] = a - c - out[2]


@njit
def brusselator(t, y, params, out):
    out[0] = 1.0 + y[0] * y[0] * y[1] - 4.0 * y[0]
    out[1] = 3.0 * y[0] - y[0] * y[0] * y[1]


@njit
def arenstorf(t, y, params, out):
    mu = 0.012277471
    nu = 1.0 - mu
    d1 = ((y[0] + mu) ** 2 + y[1] ** 2) ** 1.5
    d2 = ((y[0] - nu) ** 2 + y[1] ** 2) ** 1.5
    out[0] = y[2]
    out[1] = y[3]
    out[2] = y[0] + 2.0 * y[3] - nu * (y[0] + mu) / d1 - mu * (y[0] - nu) / d2
    out[3] = y[1] - 2.0 * y[2] - nu * y[1] / d1 - mu * y[1] / d2


@njit
def decay(t, y, params, out):
    out[0] = -y[0]


@njit
def oscillator(t, y, omega, out):
    """m x'' = -k x with omega^2 = k/m, spec 3.8.2."""
    out[0] = y[1]
    out[1] = -omega * omega * y[0]


@njit
def stiff_pair(t, y, mu, out):
    """y'' + (mu + 1) y' + mu y = 0, spec 3.8.3; eigenvalues -mu and -1."""
    out[0] = y[1]
    out[1] = -(mu + 1.0) * y[1] - mu * y[0]


@njit
def forced(t, y, params, out):
    """Non-linear and non-autonomous with solution (exp(sin t^2), exp(cos t^2)): for orders of convergence."""
    out[0] = 2.0 * t * y[0] * np.log(max(y[1], 1e-3))
    out[1] = -2.0 * t * y[1] * np.log(max(y[0], 1e-3))


def forced_exact(t: float) -> tuple[float, float]:
    return float(np.exp(np.sin(t * t))), float(np.exp(np.cos(t * t)))


def _pleiades_start() -> tuple[float, ...]:
    x = (3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0)
    y = (3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0)
    dx = (0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5)
    dy = (0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0)
    return x + y + dx + dy


POLLUTION_START = tuple({1: 0.2, 3: 0.04, 6: 0.1, 7: 0.3, 8: 0.01, 16: 0.007}.get(i, 0.0) for i in range(20))

PROBLEMS = {
    p.name: p
    for p in (
        Problem(
            "hires",
            hires,
            321.8122,
            (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057),
            (
                0.7371312573325668e-3,
                0.1442485726316185e-3,
                0.5888729740967575e-4,
                0.1175651343283149e-2,
                0.2386356198831331e-2,
                0.6238968252742796e-2,
                0.2849998395185769e-2,
                0.2850001604814231e-2,
            ),
            True,
        ),
        Problem(
            "pollution",
            pollution,
            60.0,
            POLLUTION_START,
            (
                0.5646255480022769e-1,
                0.1342484130422339,
                0.4139734331099427e-8,
                0.5523140207484359e-2,
                0.2018977262302196e-6,
                0.1464541863493966e-6,
                0.7784249118997964e-1,
                0.3245075353396018,
                0.7494013383880406e-2,
                0.1622293157301561e-7,
                0.1135863833257075e-7,
                0.2230505975721359e-2,
                0.2087162882798630e-3,
                0.1396921016840158e-4,
                0.8964884856898295e-2,
                0.4352846369330103e-17,
                0.6899219696263405e-2,
                0.1007803037365946e-3,
                0.1772146513969984e-5,
                0.5682943292316392e-4,
            ),
            True,
        ),
        Problem(
            "robertson",
            robertson,
            1e11,
            (1.0, 0.0, 0.0),
            (0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050),
            True,
            atol_scale=1e-8,
        ),
        Problem(
            "van_der_pol",
            van_der_pol,
            2000.0,
            (2.0, 0.0),
            (0.1706167732170469e1, -0.8928097010248125e-3),
            True,
            params=1000.0,
        ),
        Problem(
            "orego",
            orego,
            360.0,
            (1.0, 2.0, 3.0),
            (0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3),
            True,
            atol_scale=1e-2,
        ),
        # y2 and y3 from the reduced system (`test_e5_reference`). The published end values at 1e13 differ from each
        # other by 1.4e-3, which the invariant forbids: in double precision each step moves it by 1e-26, hence
        # `most_digits` at 1e11.
        Problem(
            "e5",
            e5,
            1e11,
            (1.76e-3, 0.0, 0.0, 0.0),
            (float("nan"), 1.01925826e-20, 1.01925826e-20, float("nan")),
            True,
            atol_scale=1.7e-20,
            most_digits=4.0,
        ),
        Problem(
            "pleiades",
            pleiades,
            3.0,
            _pleiades_start(),
            (
                0.3706139143970502,
                3.237284092057233,
                -3.222559032418324,
                0.6597091455775310,
                0.3425581707156584,
                1.562172101400631,
                -0.7003092922212495,
                -3.943437585517392,
                -3.271380973972550,
                5.225081843456543,
                -2.590612434977470,
                1.198213693392275,
                -0.2429682344935824,
                1.091449240428980,
            ),
            False,
        ),
        Problem(
            "brusselator",
            brusselator,
            20.0,
            (1.5, 3.0),
            (0.4986370712683478291, 4.596780349452011183),
            False,
        ),
        Problem(
            "arenstorf",
            arenstorf,
            17.0652165601579625588917206249,
            (0.994, 0.0, 0.0, -2.00158510637908252240537862224),
            (0.994, 0.0, 0.0, -2.00158510637908252240537862224),
            False,
        ),
    )
}
