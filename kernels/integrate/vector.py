"""Copying, without the overlap checks (and the memory) of a slice assignment, and sums of many rows."""

from typing import Any

from railsweep.kernels.jit import inline_jit, plain_jit
from railsweep.kernels.lane import LANES, as_lanes, product_sum


@plain_jit
def copy(source: Any, target: Any) -> None:
    """target <- source."""
    for i in range(target.size):
        target[i] = source[i]


@inline_jit
def _next(weight: Any, j: int, count: int) -> int:
    """The first weight that is not zero, from j on; `count` when there is none."""
    while j < count and weight[j] == 0.0:
        j += 1
    return j


@inline_jit
def _sum2(p1: Any, k1: Any, p2: Any, k2: Any) -> Any:
    return product_sum(p2, k2, p1 * k1)


@inline_jit
def _sum3(p1: Any, k1: Any, p2: Any, k2: Any, p3: Any, k3: Any) -> Any:
    return product_sum(p3, k3, _sum2(p1, k1, p2, k2))


@inline_jit
def _sum4(p1: Any, k1: Any, p2: Any, k2: Any, p3: Any, k3: Any, p4: Any, k4: Any) -> Any:
    return product_sum(p4, k4, _sum3(p1, k1, p2, k2, p3, k3))


@inline_jit
def _sum5(p1: Any, k1: Any, p2: Any, k2: Any, p3: Any, k3: Any, p4: Any, k4: Any, p5: Any, k5: Any) -> Any:
    return product_sum(p5, k5, _sum4(p1, k1, p2, k2, p3, k3, p4, k4))


@inline_jit
def _sum6(
    p1: Any, k1: Any, p2: Any, k2: Any, p3: Any, k3: Any, p4: Any, k4: Any, p5: Any, k5: Any, p6: Any, k6: Any
) -> Any:
    return product_sum(p6, k6, _sum5(p1, k1, p2, k2, p3, k3, p4, k4, p5, k5))


@plain_jit
def combine(y: Any, k: Any, weight: Any, count: int, h: float, out: Any) -> None:
    """out <- y + h sum_j weight_j k_j over the weights that are not zero, up to six slopes in one pass.

    The slopes are summed before y joins them: each sum with y is rounded to the size of y. Arrays of numbers are read
    as lanes, with what is left over one by one; arrays of lanes are taken as they are.
    """
    n = y.size
    base, base_lanes, out_lanes = y, as_lanes(y), as_lanes(out)
    wide = out_lanes.size
    rest = n if wide == n else LANES * wide
    j1 = _next(weight, 0, count)
    if j1 == count:
        copy(y, out)
        return
    while j1 < count:
        p1, k1, lanes1 = h * weight[j1], k[j1], as_lanes(k[j1])
        j2 = _next(weight, j1 + 1, count)
        if j2 == count:
            for i in range(wide):
                out_lanes[i] = product_sum(p1, lanes1[i], base_lanes[i])
            for i in range(rest, n):
                out[i] = product_sum(p1, k1[i], base[i])
            return
        p2, k2, lanes2 = h * weight[j2], k[j2], as_lanes(k[j2])
        j3 = _next(weight, j2 + 1, count)
        if j3 == count:
            for i in range(wide):
                out_lanes[i] = base_lanes[i] + _sum2(p1, lanes1[i], p2, lanes2[i])
            for i in range(rest, n):
                out[i] = base[i] + _sum2(p1, k1[i], p2, k2[i])
            return
        p3, k3, lanes3 = h * weight[j3], k[j3], as_lanes(k[j3])
        j4 = _next(weight, j3 + 1, count)
        if j4 == count:
            for i in range(wide):
                out_lanes[i] = base_lanes[i] + _sum3(p1, lanes1[i], p2, lanes2[i], p3, lanes3[i])
            for i in range(rest, n):
                out[i] = base[i] + _sum3(p1, k1[i], p2, k2[i], p3, k3[i])
            return
        p4, k4, lanes4 = h * weight[j4], k[j4], as_lanes(k[j4])
        j5 = _next(weight, j4 + 1, count)
        if j5 == count:
            for i in range(wide):
                out_lanes[i] = base_lanes[i] + _sum4(p1, lanes1[i], p2, lanes2[i], p3, lanes3[i], p4, lanes4[i])
            for i in range(rest, n):
                out[i] = base[i] + _sum4(p1, k1[i], p2, k2[i], p3, k3[i], p4, k4[i])
            return
        p5, k5, lanes5 = h * weight[j5], k[j5], as_lanes(k[j5])
        j6 = _next(weight, j5 + 1, count)
        if j6 == count:
            for i in range(wide):
                out_lanes[i] = base_lanes[i] + _sum5(
                    p1, lanes1[i], p2, lanes2[i], p3, lanes3[i], p4, lanes4[i], p5, lanes5[i]
                )
            for i in range(rest, n):
                out[i] = base[i] + _sum5(p1, k1[i], p2, k2[i], p3, k3[i], p4, k4[i], p5, k5[i])
            return
        p6, k6, lanes6 = h * weight[j6], k[j6], as_lanes(k[j6])
        for i in range(wide):
            out_lanes[i] = base_lanes[i] + _sum6(
                p1, lanes1[i], p2, lanes2[i], p3, lanes3[i], p4, lanes4[i], p5, lanes5[i], p6, lanes6[i]
            )
        for i in range(rest, n):
            out[i] = base[i] + _sum6(p1, k1[i], p2, k2[i], p3, k3[i], p4, k4[i], p5, k5[i], p6, k6[i])
        base, base_lanes = out, out_lanes
        j1 = _next(weight, j6 + 1, count)
