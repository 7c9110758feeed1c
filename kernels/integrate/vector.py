"""Copying, without the overlap checks (and the memory) of a slice assignment, and sums of many rows."""

from typing import Any

from railsweep.kernels.jit import plain_jit


@plain_jit
def copy(source: Any, target: Any) -> None:
    """target <- source."""
    for i in range(target.size):
        target[i] = source[i]


@plain_jit
def combine(y: Any, k: Any, weight: Any, count: int, h: float, out: Any) -> None:
    """out <- y + h sum_j weight_j k_j, up to six slopes in one pass.

    The slopes are summed before y joins them: each sum with y is rounded to the size of y.
    """
    n = y.size
    base = y
    for j in range(0, count, 6):
        left = count - j
        p1, k1 = h * weight[j], k[j]
        if left == 1:
            for i in range(n):
                out[i] = base[i] + p1 * k1[i]
            return
        p2, k2 = h * weight[j + 1], k[j + 1]
        if left == 2:
            for i in range(n):
                out[i] = base[i] + (p1 * k1[i] + p2 * k2[i])
            return
        p3, k3 = h * weight[j + 2], k[j + 2]
        if left == 3:
            for i in range(n):
                out[i] = base[i] + (p1 * k1[i] + p2 * k2[i] + p3 * k3[i])
            return
        p4, k4 = h * weight[j + 3], k[j + 3]
        if left == 4:
            for i in range(n):
                out[i] = base[i] + (p1 * k1[i] + p2 * k2[i] + p3 * k3[i] + p4 * k4[i])
            return
        p5, k5 = h * weight[j + 4], k[j + 4]
        if left == 5:
            for i in range(n):
                out[i] = base[i] + (p1 * k1[i] + p2 * k2[i] + p3 * k3[i] + p4 * k4[i] + p5 * k5[i])
            return
        p6, k6 = h * weight[j + 5], k[j + 5]
        for i in range(n):
            out[i] = base[i] + (p1 * k1[i] + p2 * k2[i] + p3 * k3[i] + p4 * k4[i] + p5 * k5[i] + p6 * k6[i])
        base = out
