"""Linear algebra of the implicit methods, behind two functions that a problem may replace.

    factor(jacobian, hgamma, reals, wholes) -> 0, or 1 when M = I - hgamma J is singular
    solve(reals, wholes, b)                 b <- M^-1 b

`reals` and `wholes` are the solver's own work; the drivers never look inside. Two pairs are provided:

DENSE    here: LU with partial pivoting of M, n x n (Golub & Van Loan 3.4). Matrices are kept by columns: both the
         factorisation and the triangular solves then run along contiguous memory as axpy loops of four columns,
         which vectorise without reordering a sum.
TREE     in `linear_tree`: second-order structure, block by block along the body tree. With y'[pos] = y[vel] exactly,
         the rows of M at `pos` read x_pos - g x_vel = b_pos (g = hgamma). Inserting x_pos into the remaining rows r
         gives a system for x_r only,
             (I - g J_rr - g^2 J_rp E) x_r = b_r + g J_rp b_pos,    E: x_r -> x_vel,
         of size n - len(pos): half of n for a mechanical system.
"""

from typing import Any

import numpy as np

from railsweep.kernels.jit import exact_jit, plain_jit


@plain_jit
def eliminate(column: Any, b: Any, count: int) -> None:
    """Subtract from b what the first `count` columns of L make of it, four at a time: short loops cost their start."""
    n = b.size
    whole = count - count % 4
    for k in range(0, whole, 4):
        l0, l1, l2, l3 = column[k], column[k + 1], column[k + 2], column[k + 3]
        x0 = b[k]
        x1 = b[k + 1] - x0 * l0[k + 1]
        x2 = b[k + 2] - x0 * l0[k + 2] - x1 * l1[k + 2]
        x3 = b[k + 3] - x0 * l0[k + 3] - x1 * l1[k + 3] - x2 * l2[k + 3]
        b[k + 1], b[k + 2], b[k + 3] = x1, x2, x3
        if x0 != 0.0 or x1 != 0.0 or x2 != 0.0 or x3 != 0.0:
            for i in range(k + 4, n):
                b[i] = b[i] - x0 * l0[i] - x1 * l1[i] - x2 * l2[i] - x3 * l3[i]
    for k in range(whole, count):
        lower = column[k]
        x = b[k]
        for i in range(k + 1, n):
            b[i] -= x * lower[i]


@plain_jit
def lu_factor(column: Any, pivot: Any) -> int:
    """In-place LU with row interchanges of the matrix a[i, j] = column[j, i]; 1 when a pivot is zero or not finite.

    Column by column from the left, each with all pivots before it. The diagonal of U is left as its reciprocal:
    divisions are the slow part of a triangular solve.
    """
    n = column.shape[0]
    for j in range(n):
        lead = column[j]
        for k in range(j):
            p = pivot[k]
            lead[k], lead[p] = lead[p], lead[k]
        eliminate(column, lead, j)
        p = j
        largest = abs(lead[j])
        for i in range(j + 1, n):
            size = abs(lead[i])
            if size > largest:
                largest = size
                p = i
        pivot[j] = p
        if not largest > 0.0 or largest == np.inf:
            return 1
        if p != j:
            for k in range(j + 1):
                column[k, j], column[k, p] = column[k, p], column[k, j]
        inverse = 1.0 / lead[j]
        lead[j] = inverse
        for i in range(j + 1, n):
            lead[i] *= inverse
    return 0


@plain_jit
def lu_solve(column: Any, pivot: Any, b: Any) -> None:
    """b <- a^-1 b with the factors of `lu_factor`."""
    n = column.shape[0]
    for k in range(n):
        p = pivot[k]
        if p != k:
            b[k], b[p] = b[p], b[k]
    eliminate(column, b, n)
    k = n - 1
    while k >= 3:
        u0, u1, u2, u3 = column[k], column[k - 1], column[k - 2], column[k - 3]
        x0 = b[k] * u0[k]
        x1 = (b[k - 1] - x0 * u0[k - 1]) * u1[k - 1]
        x2 = (b[k - 2] - x0 * u0[k - 2] - x1 * u1[k - 2]) * u2[k - 2]
        x3 = (b[k - 3] - x0 * u0[k - 3] - x1 * u1[k - 3] - x2 * u2[k - 3]) * u3[k - 3]
        b[k], b[k - 1], b[k - 2], b[k - 3] = x0, x1, x2, x3
        for i in range(k - 3):
            b[i] = b[i] - x0 * u0[i] - x1 * u1[i] - x2 * u2[i] - x3 * u3[i]
        k -= 4
    while k >= 0:
        upper = column[k]
        x = b[k] * upper[k]
        b[k] = x
        for i in range(k):
            b[i] -= x * upper[i]
        k -= 1


def dense_work(n: int) -> tuple[Any, Any]:
    """Work arrays of the dense pair."""
    return np.zeros(n * n), np.zeros(n, dtype=np.int64)


@plain_jit
def dense_factor(jacobian: Any, hgamma: float, reals: Any, wholes: Any) -> int:
    """LU of I - hgamma J."""
    n = jacobian.shape[0]
    column = reals.reshape((n, n))
    for i in range(n):
        for j in range(n):
            column[j, i] = -hgamma * jacobian[i, j]
        column[i, i] += 1.0
    return lu_factor(column, wholes)


@plain_jit
def dense_solve(reals: Any, wholes: Any, b: Any) -> None:
    """b <- (I - hgamma J)^-1 b."""
    n = b.size
    lu_solve(reals.reshape((n, n)), wholes, b)


SPLITTER = 134217729.0  # 2^27 + 1


@exact_jit
def twofold_residual(jacobian: Any, h: float, b: Any, x: Any, out: Any) -> None:
    """out <- b - (I - h J) x as if in twice the precision: error-free products and sums (Dekker 1971, Knuth)."""
    n = b.size
    hs = SPLITTER * h
    h_high = hs - (hs - h)
    h_low = h - h_high
    for i in range(n):
        total = b[i] - x[i]
        t = total - b[i]
        rest = (b[i] - (total - t)) - (x[i] + t)
        for j in range(n):
            a = jacobian[i, j]
            if a != 0.0:
                v = SPLITTER * x[j]
                x_high = v - (v - x[j])
                x_low = x[j] - x_high
                hx = h * x[j]
                hx_rest = ((h_high * x_high - hx) + h_high * x_low + h_low * x_high) + h_low * x_low
                v = SPLITTER * a
                a_high = v - (v - a)
                a_low = a - a_high
                v = SPLITTER * hx
                hx_high = v - (v - hx)
                hx_low = hx - hx_high
                p = a * hx
                p_rest = ((a_high * hx_high - p) + a_high * hx_low + a_low * hx_high) + a_low * hx_low
                s = total + p
                t = s - total
                rest += (total - (s - t)) + (p - t) + (p_rest + a * hx_rest)
                total = s
        out[i] = total + rest
