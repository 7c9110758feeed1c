"""Linear algebra of the complex system I - g J, g = hgamma + i hdelta, that a fully implicit Runge-Kutta method solves.

    factor(jacobian, hgamma, hdelta, reals, wholes) -> 0, or 1 when the matrix is singular
    solve(reals, wholes, b)                            b <- (I - g J)^-1 b, real parts first, then imaginary parts

A dense pair, and a reduced one: the elimination of positions that `linear` describes, then LU of what is left. Real and
imaginary parts are kept apart, each by columns, so that the inner loops are real axpy loops along contiguous memory.
"""

from typing import Any

import numpy as np

from railsweep.kernels.jit import plain_jit


@plain_jit
def complex_lu_factor(re: Any, im: Any, pivot: Any) -> int:
    """In-place LU with row interchanges of a[i, j] = re[j, i] + i im[j, i]; 1 when a pivot is zero or not finite.

    The pivot is the largest |re| + |im|; the diagonal of U is left as its reciprocal.
    """
    n = re.shape[0]
    for k in range(n):
        lead_re = re[k]
        lead_im = im[k]
        p = k
        largest = abs(lead_re[k]) + abs(lead_im[k])
        for i in range(k + 1, n):
            size = abs(lead_re[i]) + abs(lead_im[i])
            if size > largest:
                largest = size
                p = i
        pivot[k] = p
        if not largest > 0.0 or largest == np.inf:
            return 1
        if p != k:
            for j in range(n):
                swap = re[j, k]
                re[j, k] = re[j, p]
                re[j, p] = swap
                swap = im[j, k]
                im[j, k] = im[j, p]
                im[j, p] = swap
        # Scaled by its size: the square of a tiny or huge pivot must not leave the range of the numbers.
        a = lead_re[k] / largest
        b = lead_im[k] / largest
        square = (a * a + b * b) * largest
        inverse_re = a / square
        inverse_im = -b / square
        lead_re[k] = inverse_re
        lead_im[k] = inverse_im
        for i in range(k + 1, n):
            x = lead_re[i]
            y = lead_im[i]
            lead_re[i] = x * inverse_re - y * inverse_im
            lead_im[i] = x * inverse_im + y * inverse_re
        for j in range(k + 1, n):
            target_re = re[j]
            target_im = im[j]
            u = target_re[k]
            v = target_im[k]
            if u != 0.0 or v != 0.0:
                for i in range(k + 1, n):
                    target_re[i] -= u * lead_re[i] - v * lead_im[i]
                    target_im[i] -= u * lead_im[i] + v * lead_re[i]
    return 0


@plain_jit
def complex_lu_solve(re: Any, im: Any, pivot: Any, x: Any, y: Any) -> None:
    """x + i y <- a^-1 (x + i y) with the factors of `complex_lu_factor`."""
    n = re.shape[0]
    for k in range(n):
        p = pivot[k]
        if p != k:
            swap = x[k]
            x[k] = x[p]
            x[p] = swap
            swap = y[k]
            y[k] = y[p]
            y[p] = swap
    for k in range(n):
        u = x[k]
        v = y[k]
        lower_re = re[k]
        lower_im = im[k]
        for i in range(k + 1, n):
            x[i] -= u * lower_re[i] - v * lower_im[i]
            y[i] -= u * lower_im[i] + v * lower_re[i]
    for k in range(n - 1, -1, -1):
        upper_re = re[k]
        upper_im = im[k]
        u = x[k] * upper_re[k] - y[k] * upper_im[k]
        v = x[k] * upper_im[k] + y[k] * upper_re[k]
        x[k] = u
        y[k] = v
        for i in range(k):
            x[i] -= u * upper_re[i] - v * upper_im[i]
            y[i] -= u * upper_im[i] + v * upper_re[i]


def complex_dense_work(n: int) -> tuple[Any, Any]:
    """Work arrays of the dense pair."""
    return np.zeros(2 * n * n), np.zeros(n, dtype=np.int64)


@plain_jit
def complex_dense_factor(jacobian: Any, hgamma: float, hdelta: float, reals: Any, wholes: Any) -> int:
    """LU of I - g J."""
    n = jacobian.shape[0]
    re = reals[: n * n].reshape((n, n))
    im = reals[n * n :].reshape((n, n))
    for i in range(n):
        for j in range(n):
            re[j, i] = -hgamma * jacobian[i, j]
            im[j, i] = -hdelta * jacobian[i, j]
        re[i, i] += 1.0
    return complex_lu_factor(re, im, wholes)


@plain_jit
def complex_dense_solve(reals: Any, wholes: Any, b: Any) -> None:
    """b <- (I - g J)^-1 b."""
    n = b.size // 2
    re = reals[: n * n].reshape((n, n))
    im = reals[n * n :].reshape((n, n))
    complex_lu_solve(re, im, wholes, b[:n], b[n:])


def complex_reduced_work(n: int, position: Any, velocity: Any) -> tuple[Any, Any]:
    """Work arrays of the reduced pair; y'[position[k]] = y[velocity[k]] must hold exactly.

    wholes = [p, position (p), place of velocity[k] among the rest (p), rest (m), pivots (m)], m = n - p
    reals  = [LU (m, m) twice, J_rp (p, m), right-hand side (m) twice, hgamma, hdelta]
    """
    position = np.asarray(position, dtype=np.int64)
    velocity = np.asarray(velocity, dtype=np.int64)
    if position.shape != velocity.shape or position.ndim != 1:
        raise ValueError("position and velocity need one index each per degree of freedom")
    rest = np.setdiff1d(np.arange(n), position)
    if rest.size + position.size != n or not np.all(np.isin(velocity, rest)):
        raise ValueError("position indices must be distinct, and no velocity may itself be a position")
    place = np.searchsorted(rest, velocity)
    m, p = rest.size, position.size
    wholes = np.concatenate([[p], position, place, rest, np.zeros(m)]).astype(np.int64)
    return np.zeros(2 * m * m + m * p + 2 * m + 2), wholes


@plain_jit
def complex_reduced_factor(jacobian: Any, hgamma: float, hdelta: float, reals: Any, wholes: Any) -> int:
    """LU of I - g J_rr - g^2 J_rp E, see the docstring of `linear`."""
    n = jacobian.shape[0]
    p = wholes[0]
    m = n - p
    position = wholes[1 : 1 + p]
    place = wholes[1 + p : 1 + 2 * p]
    rest = wholes[1 + 2 * p : 1 + 2 * p + m]
    pivot = wholes[1 + 2 * p + m :]
    re = reals[: m * m].reshape((m, m))
    im = reals[m * m : 2 * m * m].reshape((m, m))
    coupling = reals[2 * m * m : 2 * m * m + m * p].reshape((p, m))
    square_re = hgamma * hgamma - hdelta * hdelta
    square_im = 2.0 * hgamma * hdelta
    for i in range(m):
        row = rest[i]
        for j in range(m):
            re[j, i] = -hgamma * jacobian[row, rest[j]]
            im[j, i] = -hdelta * jacobian[row, rest[j]]
        re[i, i] += 1.0
        for k in range(p):
            c = jacobian[row, position[k]]
            coupling[k, i] = c
            re[place[k], i] -= square_re * c
            im[place[k], i] -= square_im * c
    reals[reals.size - 2] = hgamma
    reals[reals.size - 1] = hdelta
    return complex_lu_factor(re, im, pivot)


@plain_jit
def complex_reduced_solve(reals: Any, wholes: Any, b: Any) -> None:
    """b <- (I - g J)^-1 b through the reduced system."""
    n = b.size // 2
    p = wholes[0]
    m = n - p
    position = wholes[1 : 1 + p]
    place = wholes[1 + p : 1 + 2 * p]
    rest = wholes[1 + 2 * p : 1 + 2 * p + m]
    pivot = wholes[1 + 2 * p + m :]
    re = reals[: m * m].reshape((m, m))
    im = reals[m * m : 2 * m * m].reshape((m, m))
    start = 2 * m * m
    coupling = reals[start : start + m * p].reshape((p, m))
    start += m * p
    x = reals[start : start + m]
    y = reals[start + m : start + 2 * m]
    hgamma = reals[reals.size - 2]
    hdelta = reals[reals.size - 1]
    for i in range(m):
        x[i] = b[rest[i]]
        y[i] = b[n + rest[i]]
    for k in range(p):
        u = b[position[k]]
        v = b[n + position[k]]
        known_re = hgamma * u - hdelta * v
        known_im = hgamma * v + hdelta * u
        by_position = coupling[k]
        for i in range(m):
            x[i] += by_position[i] * known_re
            y[i] += by_position[i] * known_im
    complex_lu_solve(re, im, pivot, x, y)
    for k in range(p):
        u = x[place[k]]
        v = y[place[k]]
        b[position[k]] += hgamma * u - hdelta * v
        b[n + position[k]] += hgamma * v + hdelta * u
    for i in range(m):
        b[rest[i]] = x[i]
        b[n + rest[i]] = y[i]
