"""Static preload: which force each weight-carrying spring has in the nominal position.

The description gives the geometry in the loaded state. The share of each spring follows from a real equilibrium: let
every sprung body sink, roll and pitch by u from the unstressed position until its springs carry it,

    sum over springs of  law(g . u) g  =  weight,        g = d(extension)/du,

solved by Newton's method; law(g . u) is then the preload and g . u the offset of a tabulated law. Springs of unequal
stiffness, centres of mass off the middle and unequal bogies get their true shares.
"""

import math

import numpy as np

from railsweep.kernels.jit import jit
from railsweep.kernels.law import law_force
from railsweep.kernels.record import (
    AXIAL,
    GRAVITY,
    INTERNAL_KIND,
    LINEAR_LAW,
    LINK_AXIS,
    LINK_KIND,
    LINK_LOWER,
    LINK_PRELOADED,
    LINK_UPPER,
    LOWER_X,
    LOWER_Y,
    LOWER_Z,
    MASS,
    NISHIMURA,
    OFFSET,
    PRELOAD,
    RESERVOIR_STIFFNESS,
    REST_LENGTH,
    REST_X,
    REST_Y,
    REST_Z,
    SERIES_STIFFNESS,
    SIGN,
    SPRING_LAW,
    STIFFNESS,
    UPPER_X,
    UPPER_Y,
    UPPER_Z,
)
from railsweep.kernels.status import NEWTON_FAILED, OK

MAX_ITERATIONS = 60
TOLERANCE = 1e-12  # of the largest weight
PIVOT = 1e-9  # relative pivot below which a direction counts as unsupported


@jit
def solve_dense(a, b, n):
    """Solve a x = b in place by elimination with partial pivoting; a direction without pivot gets x = 0."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(a[i, i]))
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                a[k, j], a[p, j] = a[p, j], a[k, j]
            b[k], b[p] = b[p], b[k]
        if abs(a[k, k]) <= PIVOT * largest:
            for i in range(k, n):
                a[i, k] = 0.0
            continue
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    a[i, j] -= factor * a[k, j]
                b[i] -= factor * b[k]
    for k in range(n - 1, -1, -1):
        if abs(a[k, k]) <= PIVOT * largest:
            b[k] = 0.0
            continue
        x = b[k]
        for j in range(k + 1, n):
            x -= a[k, j] * b[j]
        b[k] = x / a[k, k]


@jit
def extension_gradient(k, m, g):
    """d(extension of link k)/d(z, roll, pitch) of the lower body in g[0:3] and the upper body in g[3:6]."""
    if m.link_index[k, LINK_KIND] == AXIAL:
        ux, uy, uz = 0.0, 0.0, 0.0
        axis = m.link_index[k, LINK_AXIS]
        if axis == 0:
            ux = m.link[k, SIGN]
        elif axis == 1:
            uy = m.link[k, SIGN]
        else:
            uz = m.link[k, SIGN]
    else:
        length = m.link[k, REST_LENGTH]
        ux, uy, uz = m.link[k, REST_X] / length, m.link[k, REST_Y] / length, m.link[k, REST_Z] / length
    g[0] = -uz
    g[1] = -(m.link[k, LOWER_Y] * uz - m.link[k, LOWER_Z] * uy)
    g[2] = -(m.link[k, LOWER_Z] * ux - m.link[k, LOWER_X] * uz)
    g[3] = uz
    g[4] = m.link[k, UPPER_Y] * uz - m.link[k, UPPER_Z] * uy
    g[5] = m.link[k, UPPER_Z] * ux - m.link[k, UPPER_X] * uz


@jit
def static_spring(k, extension, m):
    """Static force of link `k` away from its unstressed length, its slope by central difference, and a status."""
    number = m.link_index[k, SPRING_LAW]
    if number == LINEAR_LAW:
        stiffness = m.link[k, STIFFNESS]
        if m.link_index[k, INTERNAL_KIND] == NISHIMURA:
            k1 = m.link[k, SERIES_STIFFNESS]
            k2 = m.link[k, RESERVOIR_STIFFNESS]
            stiffness += k1 * k2 / (k1 + k2)
        return stiffness * extension, stiffness, OK
    f, status = law_force(number, extension, m.law_index, m.law, m.segment)
    h = 1e-6 * (1e-3 + abs(extension))
    up, _ = law_force(number, extension + h, m.law_index, m.law, m.segment)
    down, _ = law_force(number, extension - h, m.law_index, m.law, m.segment)
    return f, (up - down) / (2.0 * h), status


@jit
def static_preload(m, unknown, count):
    """Set PRELOAD and OFFSET of every preloaded link. Returns (status, unknown number of the worst residual).

    `unknown[b]` numbers z, roll and pitch of body b among the `count` unknowns (-1: held), wheelsets all held.
    """
    bodies = m.body.shape[0]
    matrix = np.zeros((count, count))
    residual = np.zeros(count)
    u = np.zeros(count)
    weight = np.zeros(count)
    g = np.zeros(6)
    scale = 0.0
    for b in range(bodies):
        if unknown[b, 0] >= 0:
            weight[unknown[b, 0]] = -m.body[b, MASS] * m.operation[GRAVITY]
            scale = max(scale, abs(weight[unknown[b, 0]]))
    if scale == 0.0:
        scale = 1.0
    worst = -1
    for iteration in range(MAX_ITERATIONS):
        matrix[:, :] = 0.0
        for i in range(count):
            residual[i] = weight[i]
        status = OK
        for k in range(m.link.shape[0]):
            if m.link_index[k, LINK_PRELOADED] == 0:
                continue
            extension_gradient(k, m, g)
            extension = 0.0
            for e in range(6):
                body = m.link_index[k, LINK_LOWER] if e < 3 else m.link_index[k, LINK_UPPER]
                i = unknown[body, e % 3]
                if i >= 0:
                    extension += g[e] * u[i]
            f, slope, law_status = static_spring(k, extension, m)
            if law_status != OK:
                status = law_status
            m.link[k, PRELOAD] = f
            m.link[k, OFFSET] = extension
            for e in range(6):
                body = m.link_index[k, LINK_LOWER] if e < 3 else m.link_index[k, LINK_UPPER]
                i = unknown[body, e % 3]
                if i < 0:
                    continue
                residual[i] -= f * g[e]
                for d in range(6):
                    other = m.link_index[k, LINK_LOWER] if d < 3 else m.link_index[k, LINK_UPPER]
                    j = unknown[other, d % 3]
                    if j >= 0:
                        matrix[i, j] += slope * g[e] * g[d]
        largest = 0.0
        for i in range(count):
            if abs(residual[i]) >= largest:
                largest = abs(residual[i])
                worst = i
        if largest <= TOLERANCE * scale and iteration > 0:
            return status, worst
        if not math.isfinite(largest):
            return NEWTON_FAILED, worst
        solve_dense(matrix, residual, count)
        for i in range(count):
            u[i] += residual[i]
    return NEWTON_FAILED, worst
