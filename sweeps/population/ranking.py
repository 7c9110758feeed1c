"""Which solution is better: feasible before infeasible, then by violation, then by domination and crowding.

(Deb, Pratap, Agarwal and Meyarivan, IEEE Transactions on Evolutionary Computation 6, 2002.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def order_of(f: Array, violation: Array) -> Indices:
    """Indices from best to worst of one objective; equals keep their order."""
    return np.lexsort((f[:, 0], violation))


def fronts(f: Array, violation: Array) -> Indices:
    """Number of the front of every solution, 0 for those that nothing dominates."""
    n = len(f)
    no_worse = (f[:, None, :] <= f[None, :, :]).all(axis=2)
    better = (f[:, None, :] < f[None, :, :]).any(axis=2)
    both = (violation == 0.0)[:, None] & (violation == 0.0)[None, :]
    dominates = np.where(both, no_worse & better, violation[:, None] < violation[None, :])
    count = dominates.sum(axis=0)
    rank = np.full(n, -1, np.intp)
    level = 0
    while (rank < 0).any():
        front = (rank < 0) & (count == 0)
        rank[front] = level
        count = count - dominates[front].sum(axis=0)
        level += 1
    return rank


def crowding(f: Array) -> Array:
    """Crowding distance within one front; its ends are infinitely far."""
    n, m = f.shape
    distance = np.zeros(n)
    if n <= 2 or not np.isfinite(f).all():
        return np.full(n, np.inf)
    for k in range(m):
        order = np.argsort(f[:, k], kind="stable")
        span = f[order[-1], k] - f[order[0], k]
        distance[order[[0, -1]]] = np.inf
        if span > 0.0:
            distance[order[1:-1]] += (f[order[2:], k] - f[order[:-2], k]) / span
    return distance


def ranked(f: Array, violation: Array) -> tuple[Indices, Array]:
    """Front number and crowding distance of every solution."""
    rank = fronts(f, violation)
    distance = np.zeros(len(f))
    for level in range(int(rank.max(initial=-1)) + 1):
        members = np.flatnonzero(rank == level)
        distance[members] = crowding(f[members])
    return rank, distance


def survivors(f: Array, violation: Array, count: int) -> Indices:
    """Indices of the `count` best: whole fronts, then of the last front one by one those that crowd least.

    The least distant one is taken out and the distances of the others are found anew, which spreads the front better
    than cutting all at once.
    """
    rank = fronts(f, violation)
    order = np.argsort(rank, kind="stable")
    last = rank[order[count - 1]]
    kept = np.flatnonzero(rank < last)
    members = np.flatnonzero(rank == last)
    while len(kept) + len(members) > count:
        members = np.delete(members, int(np.argmin(crowding(f[members]))))
    return np.concatenate([kept, members])


def hypervolume(f: Array, reference: Array) -> float:
    """Volume dominated by the points up to a reference point (minimisation), exact, by slicing the last objective.

    >>> hypervolume(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    3.0
    """
    f = np.asarray(f, dtype=np.float64)
    inside = f[(f < reference).all(axis=1)]
    if not len(inside):
        return 0.0
    if inside.shape[1] == 1:
        return float(reference[0] - inside[:, 0].min())
    if inside.shape[1] == 2:
        points = inside[np.lexsort((inside[:, 1], inside[:, 0]))]
        height = np.minimum.accumulate(points[:, 1])
        previous = np.concatenate([[reference[1]], height[:-1]])
        return float(((reference[0] - points[:, 0]) * (previous - height)).sum())
    levels = np.unique(inside[:, -1])
    ends = np.append(levels[1:], reference[-1])
    return float(
        sum(
            (end - level) * hypervolume(inside[inside[:, -1] <= level, :-1], reference[:-1])
            for level, end in zip(levels, ends, strict=True)
        )
    )
