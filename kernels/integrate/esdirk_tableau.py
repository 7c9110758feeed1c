"""Coefficients of the ESDIRK methods: `nt1`, `jkt` as published, `esdirk54` of Kennedy and Carpenter."""

from fractions import Fraction
from typing import Any

import numpy as np

from railsweep.kernels.integrate.esdirk import EsdirkTableau


def _order_rows(a: Any, c: Any, order: int) -> list[tuple[Any, int, float]]:
    """(elementary weights, order, 1/density) of the rooted trees up to `order` <= 4 (Hairer-Norsett-Wanner II.2)."""
    one = np.ones_like(c)
    trees = [
        (one, 1, 1.0),
        (c, 2, 1 / 2),
        (c**2, 3, 1 / 3),
        (a @ c, 3, 1 / 6),
        (c**3, 4, 1 / 4),
        (c * (a @ c), 4, 1 / 8),
        (a @ c**2, 4, 1 / 12),
        (a @ (a @ c), 4, 1 / 24),
    ]
    return [tree for tree in trees if tree[1] <= order]


def dense_weights(a: Any, b: Any, c: Any, order: int, degree: int) -> Any:
    """Smallest polynomial weights w_k with y(s) = y + h sum_k s^k w_k . k of the given order and y(1) = y_new.

    Order conditions are linear in the weights: phi(tree) . w_k = [k = order(tree)] / density(tree). The remaining
    freedom goes to the minimum-norm solution, which keeps the amplification of stiff stages small. The slope at s = 0
    is that of the first stage and at s = 1 that of the last one, so the output is continuously differentiable.
    """
    s = c.size
    rows, values = [], []
    for phi, size, inverse_density in _order_rows(a, c, order):
        for k in range(1, degree + 1):
            row = np.zeros((degree, s))
            row[k - 1] = phi
            rows.append(row.ravel())
            values.append(inverse_density if k == size else 0.0)
    for j in range(s):
        row = np.zeros((degree, s))
        row[:, j] = 1.0
        rows.append(row.ravel())
        values.append(b[j])
        row = np.zeros((degree, s))
        row[0, j] = 1.0
        rows.append(row.ravel())
        values.append(1.0 if j == 0 else 0.0)
        row = np.zeros((degree, s))
        row[:, j] = np.arange(1, degree + 1)
        rows.append(row.ravel())
        values.append(1.0 if j == s - 1 else 0.0)
    matrix, target = np.array(rows), np.array(values)
    weights = np.linalg.lstsq(matrix, target, rcond=1e-12)[0]
    if not np.allclose(matrix @ weights, target, atol=1e-10):
        raise ValueError(f"no dense output of order {order} and degree {degree} for this tableau")
    return weights.reshape(degree, s)


def predictor_weights(c: Any, order: int) -> Any:
    """Row i: smallest weights on the slopes k_0..k_i-1 of this step that predict stage i to the given order.

    sum_j p_ij c_j^m = c_i^(m+1)/(m+1) for m < order: exact for a slope that is a polynomial in time.
    """
    s = c.size
    out = np.zeros((s, s))
    for i in range(1, s):
        conditions = min(order, i)
        powers = np.array([c[:i] ** m for m in range(conditions)])
        target = np.array([c[i] ** (m + 1) / (m + 1) for m in range(conditions)])
        out[i, :i] = np.linalg.lstsq(powers, target, rcond=1e-12)[0]
    return out


def _hermite(b: Any) -> Any:
    s = b.size
    first, last = np.eye(s)[0], np.eye(s)[-1]
    return np.array([first, 3.0 * b - 2.0 * first - last, -2.0 * b + first + last])


def _tableau(a: Any, c: Any, error: Any, order: int, error_order: int, dense: Any, predictor: Any) -> EsdirkTableau:
    return EsdirkTableau(
        a=a,
        c=c,
        error=error,
        dense=dense,
        predictor=predictor,
        gamma=float(a[-1, -1]),
        order=order,
        error_order=error_order,
    )


def nt1() -> EsdirkTableau:
    """Nielsen-Thomsen ESDIRK 3(4), gamma = 5/12: A-stable, R(inf) = 0.136 (spec 3.5)."""
    g = Fraction(5, 12)
    exact = [
        [Fraction(0), Fraction(0), Fraction(0), Fraction(0)],
        [g, g, Fraction(0), Fraction(0)],
        [Fraction(95, 588), Fraction(-5, 49), g, Fraction(0)],
        [Fraction(59, 600), Fraction(-31, 75), Fraction(539, 600), g],
    ]
    a = np.array([[float(x) for x in row] for row in exact])
    c = np.array([0.0, 5 / 6, 10 / 21, 1.0])
    d = np.array([float(x) for x in (Fraction(-37, 600), Fraction(-37, 75), Fraction(1813, 6600), Fraction(37, 132))])
    return _tableau(a, c, d, 3, 3, _hermite(a[-1]), predictor_weights(c, 2))


def jkt() -> EsdirkTableau:
    """Joergensen-Kristensen-Thomsen ESDIRK 3(4): A- and L-stable (spec 3.5)."""
    g = 0.43586652150845899942
    a = np.array(
        [
            [0.0, 0.0, 0.0, 0.0],
            [g, g, 0.0, 0.0],
            [0.14073777472470619619, -0.1083655513813208000, g, 0.0],
            [0.10239940061991099768, -0.3768784522555561061, 0.83861253012718610911, g],
        ]
    )
    c = np.array([0.0, 0.87173304301691799883, 0.46823874485184439565, 1.0])
    d = np.array([-0.05462549724041394942, -0.49420889362599495480, 0.22193449973506464477, 0.32689989113134424957])
    return _tableau(a, c, d, 3, 3, _hermite(a[-1]), predictor_weights(c, 2))


def esdirk54() -> EsdirkTableau:
    """ESDIRK5(4)7L[2]SA2, Kennedy & Carpenter, Appl. Numer. Math. 146 (2019) 221: order 5, L-stable, stiffly accurate.

    Chosen among their order-5 methods because all nodes lie within the step (a table is never read beyond it). The
    first column follows from the row sums.
    """
    g = Fraction(23, 125)
    below = [
        [],
        [],
        [Fraction(791020047304, 3561426431547)],
        [Fraction(-158159076358, 11257294102345), Fraction(-85517644447, 5003708988389)],
        [
            Fraction(-1653327111580, 4048416487981),
            Fraction(1514767744496, 9099671765375),
            Fraction(14283835447591, 12247432691556),
        ],
        [
            Fraction(-4540011970825, 8418487046959),
            Fraction(-1790937573418, 7393406387169),
            Fraction(10819093665085, 7266595846747),
            Fraction(4109463131231, 7386972500302),
        ],
        [
            Fraction(-188593204321, 4778616380481),
            Fraction(2809310203510, 10304234040467),
            Fraction(1021729336898, 2364210264653),
            Fraction(870612361811, 2470410392208),
            Fraction(-1307970675534, 8059683598661),
        ],
    ]
    nodes = [
        Fraction(0),
        Fraction(46, 125),
        Fraction(7121331996143, 11335814405378),
        Fraction(49, 353),
        Fraction(3706679970760, 5295570149437),
        Fraction(347, 382),
        Fraction(1),
    ]
    embedded = [
        Fraction(-582099335757, 7214068459310),
        Fraction(615023338567, 3362626566945),
        Fraction(3192122436311, 6174152374399),
        Fraction(6156034052041, 14430468657929),
        Fraction(-1011318518279, 9693750372484),
        Fraction(1914490192573, 13754262428401),
    ]
    exact = [[Fraction(0)] * 7 for _ in range(7)]
    for i in range(1, 7):
        exact[i][1:i] = below[i]
        exact[i][i] = g
        exact[i][0] = nodes[i] - sum(exact[i][1:], Fraction(0))
    low = [1 - sum(embedded, Fraction(0)), *embedded]
    a = np.array([[float(x) for x in row] for row in exact])
    c = np.array([float(x) for x in nodes])
    d = np.array([float(x - y) for x, y in zip(exact[-1], low, strict=True)])
    return _tableau(a, c, d, 5, 4, dense_weights(a, a[-1], c, 4, 5), predictor_weights(c, 3))
