"""The reduced system of `linear` along the body tree: blocks of at most eight rows, each column one pair of vectors.

A node holds the states of one body (or of one element with memory) that remain when positions are eliminated; two
nodes are coupled when a link joins them. With nodes in an order of elimination, leaves first (wheelsets, bogies, car
body), and M the reduced matrix in blocks:

    D_k = M_kk^-1,   V_kj = D_k M_kj,   M_ij <- M_ij - M_ik V_kj      (i, j later neighbours of k)
    forward   s_k = D_k r_k,  r_i <- r_i - M_ik s_k        backward   x_k = s_k - sum_j V_kj x_j

Rows are exchanged within a node only. That is enough where M is the mass matrix plus damping and stiffness times the
step, whose symmetric part is positive; the contact forces disturb that little (`test_simulation` compares with the full
LU over steps of 1e-6 to 10 s). A node that cannot be inverted reports a singular matrix.

Blocks are padded with zeros to WIDTH rows, so that a column is two vectors and no loop runs over rows; what is to be
done stands as lists of numbers in `wholes`, in the order in which it is done. -D and -V are kept: every product adds.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from railsweep.kernels.jit import inline_jit, plain_jit
from railsweep.kernels.lane import LANES, all_lanes, as_lanes, column_product

WIDTH = 2 * LANES  # rows of a block
BLOCK = WIDTH * WIDTH

# wholes: the header, then the lists; each AT_ is where its list begins, AT_END where the last one ends
(
    NODES,
    BLOCKS,  # of the matrix; those of g J_rp follow
    AT_ENTRY,  # (target in reals, place in the flat Jacobian): entries of J_rr, then of J_rp from AT_COUPLED on
    AT_COUPLED,
    AT_MERGE,  # (column of M, column of g J_rp): M <- M - g (g J_rp) E
    AT_NODE,  # (rows, first neighbour, first update) and one more to end them
    AT_NEIGHBOUR,  # (M_ik, M_ki, columns of i)
    AT_UPDATE,  # (target M_ij, left M_ik, right V_kj, columns of j)
    AT_STATE,  # (row of the right-hand side, state)
    AT_POSITION,  # (row, state of the position)
    AT_KNOWN,  # (block of g J_rp, columns, from, to): r <- r + g J_rp b_pos
    AT_FORWARD,  # (D_k, rows, from r_k), then (M_ik, rows, to r_i) for each of its neighbours
    AT_BACKWARD,  # (V_kj, columns, from x_j, to x_k)
    AT_PIVOT,
    RIGHT,  # in reals: rows of the right-hand side, and after them those of its part at positions
    STEP,  # in reals: g
) = range(16)
HEADER_WIDTH = 16
MOST_ROWS = WIDTH


def elimination(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[list[int], list[list[int]]]:
    """An order of elimination that keeps neighbours few (least degree first), and the later neighbours of each node."""
    near: list[set[int]] = [set() for _ in range(count)]
    for i, j in pairs:
        if i != j:
            near[i].add(j)
            near[j].add(i)
    left = set(range(count))
    order: list[int] = []
    later: list[list[int]] = []
    while left:
        node = min(left, key=lambda k: (len(near[k]), k))
        left.remove(node)
        order.append(node)
        later.append(sorted(near[node]))
        for k in near[node]:
            near[k] |= near[node] - {k}
            near[k].remove(node)
    return order, later


def tree_work(n: int, nodes: Sequence[Sequence[tuple[int, int]]], pairs: Iterable[tuple[int, int]]) -> tuple[Any, Any]:
    """Work arrays of the tree pair.

    Each node is a list of (state, position of it or -1), with y'[position] = y[state] exactly; together the nodes hold
    every state once. `pairs` are the nodes that are coupled.
    """
    pairs = list(pairs)
    if sorted(k for node in nodes for pair in node for k in pair if k >= 0) != list(range(n)):
        raise ValueError("nodes must hold every state once")
    if any(len(node) > MOST_ROWS for node in nodes):
        raise ValueError(f"a node holds at most {MOST_ROWS} states beside their positions")
    order, later = elimination(len(nodes), pairs)
    place = {node: k for k, node in enumerate(order)}
    # states with a position first: the columns of J_rp are the first ones of a block
    rows = [sorted(nodes[node], key=lambda pair: pair[1] < 0) for node in order]
    positions = [sum(p >= 0 for _, p in node) for node in rows]
    ahead = [sorted(place[j] for j in later[node]) for node in range(len(nodes))]
    coupled = {(k, k) for k in range(len(nodes))}
    for i, j in pairs:
        coupled |= {(place[i], place[j]), (place[j], place[i])}
    filled = coupled | {(i, j) for k, near in enumerate(ahead) for i in (k, *near) for j in (k, *near)}
    block = {ij: BLOCK * b for b, ij in enumerate(sorted(filled, key=lambda ij: (ij[0] != ij[1], ij)))}
    couplings = sorted((i, j) for i, j in coupled if positions[j])
    coupling = {ij: BLOCK * (len(block) + b) for b, ij in enumerate(couplings)}

    right = BLOCK * (len(block) + len(coupling))
    known = right + WIDTH * len(nodes)
    step = known + WIDTH * len(nodes)
    entry = [
        (block[i, j] + WIDTH * c + r, row * n + column)
        for i, j in sorted(coupled)
        for c, (column, _) in enumerate(rows[j])
        for r, (row, _) in enumerate(rows[i])
    ]
    coupled_entry = [
        (start + WIDTH * c + r, row * n + rows[j][c][1])
        for (i, j), start in coupling.items()
        for c in range(positions[j])
        for r, (row, _) in enumerate(rows[i])
    ]
    merge = [
        (block[ij] + WIDTH * c, start + WIDTH * c) for ij, start in coupling.items() for c in range(positions[ij[1]])
    ]
    node: list[tuple[int, ...]] = []
    neighbour: list[tuple[int, ...]] = []
    update: list[tuple[int, ...]] = []
    forward: list[tuple[int, ...]] = []
    backward: list[tuple[int, ...]] = []
    for k, near in enumerate(ahead):
        node.append((len(rows[k]), len(neighbour), len(update)))
        neighbour += [(block[i, k], block[k, i], len(rows[i])) for i in near]
        update += [(block[i, j], block[i, k], block[k, j], len(rows[j])) for i in near for j in near]
        forward += [(block[k, k], len(rows[k]), right + WIDTH * k)]
        forward += [(block[i, k], len(rows[k]), right + WIDTH * i) for i in near]
    node.append((0, len(neighbour), len(update)))
    for k in range(len(nodes) - 1, -1, -1):
        backward += [(block[k, j], len(rows[j]), right + WIDTH * j, right + WIDTH * k) for j in ahead[k]]
    state = [(right + WIDTH * k + r, s) for k, held in enumerate(rows) for r, (s, _) in enumerate(held)]
    position = [(known + WIDTH * k + r, p) for k, held in enumerate(rows) for r, (_, p) in enumerate(held) if p >= 0]
    product = [(start, positions[j], known + WIDTH * j, right + WIDTH * i) for (i, j), start in coupling.items()]
    lists: list[Sequence[Sequence[int]]] = [
        entry,
        coupled_entry,
        merge,
        node,
        neighbour,
        update,
        state,
        position,
        product,
        forward,
        backward,
    ]
    flat = [[x for item in items for x in item] for items in lists]
    starts = np.cumsum([HEADER_WIDTH, *(len(items) for items in flat)])
    header = [len(nodes), len(block), *starts, right, step]
    wholes = np.array([*header, *(x for items in flat for x in items), *[0] * WIDTH], dtype=np.int64)
    return np.zeros(step + LANES), wholes


@inline_jit
def add_product(reals: Any, block: int, columns: int, vector: int, low: Any, high: Any) -> Any:
    """(low, high) plus the block times the numbers from `vector` on; what lies beyond its columns is zero."""
    if columns <= 4:
        return column_product(reals, block, vector, low, high, 4)
    if columns <= 5:
        return column_product(reals, block, vector, low, high, 5)
    return column_product(reals, block, vector, low, high, 8)


@inline_jit
def invert(reals: Any, cells: Any, a: int, rows: int, pivots: Any) -> int:
    """The block at `a` <- minus its inverse, by Gauss-Jordan with row exchanges; 1 when singular or not finite."""
    for k in range(rows):
        p = k
        lead = a + k * WIDTH
        largest = abs(reals[lead + k])
        for i in range(k + 1, rows):
            size = abs(reals[lead + i])
            if size > largest:
                largest = size
                p = i
        pivots[k] = p
        if not largest > 0.0 or largest == np.inf:
            return 1
        if p != k:
            for i in range(a, a + rows * WIDTH, WIDTH):
                reals[i + k], reals[i + p] = reals[i + p], reals[i + k]
        inverse = 1.0 / reals[lead + k]
        low, high = cells[lead // LANES], cells[lead // LANES + 1]
        for i in range(a, a + rows * WIDTH, WIDTH):
            if i != lead:
                f = reals[i + k] * inverse
                cells[i // LANES] = cells[i // LANES] - low * f
                cells[i // LANES + 1] = cells[i // LANES + 1] - high * f
                reals[i + k] = f
        cells[lead // LANES] = low * -inverse
        cells[lead // LANES + 1] = high * -inverse
        reals[lead + k] = inverse
    for k in range(rows - 1, -1, -1):
        p = pivots[k]
        if p != k:
            one, two = (a + k * WIDTH) // LANES, (a + p * WIDTH) // LANES
            cells[one], cells[two] = cells[two], cells[one]
            cells[one + 1], cells[two + 1] = cells[two + 1], cells[one + 1]
    for i in range(a // LANES, a // LANES + 2 * rows):
        cells[i] = -cells[i]
    return 0


@plain_jit
def tree_factor(jacobian: Any, hgamma: float, reals: Any, wholes: Any) -> int:
    """-D, M and -V in the place of the blocks of I - g J_rr - g^2 J_rp E; 1 when a node is singular."""
    n = jacobian.shape[0]
    flat = jacobian.reshape(n * n)
    cells = as_lanes(reals)
    nodes = wholes[NODES]
    nought = all_lanes(0.0)
    # the padding, too: a matrix that was not finite must not leave anything behind
    for i in range(reals.size // LANES):
        cells[i] = nought
    reals[wholes[STEP]] = hgamma
    for e in range(wholes[AT_ENTRY], wholes[AT_COUPLED], 2):
        reals[wholes[e]] = -hgamma * flat[wholes[e + 1]]
    for e in range(wholes[AT_COUPLED], wholes[AT_MERGE], 2):
        reals[wholes[e]] = hgamma * flat[wholes[e + 1]]
    for e in range(wholes[AT_MERGE], wholes[AT_NODE], 2):
        i, j = wholes[e] // LANES, wholes[e + 1] // LANES
        cells[i] = cells[i] - cells[j] * hgamma
        cells[i + 1] = cells[i + 1] - cells[j + 1] * hgamma
    for k in range(nodes):
        here = wholes[AT_NODE] + 3 * k
        rows = wholes[here]
        for i in range(BLOCK * k, BLOCK * k + rows * WIDTH, WIDTH + 1):
            reals[i] += 1.0
    for k in range(nodes):
        here = wholes[AT_NODE] + 3 * k
        rows = wholes[here]
        if invert(reals, cells, BLOCK * k, rows, wholes[wholes[AT_PIVOT] :]) != 0:
            return 1
        for s in range(wholes[AT_NEIGHBOUR] + 3 * wholes[here + 1], wholes[AT_NEIGHBOUR] + 3 * wholes[here + 4], 3):
            up = wholes[s + 1]
            for c in range(up, up + wholes[s + 2] * WIDTH, WIDTH):
                cells[c // LANES], cells[c // LANES + 1] = add_product(reals, BLOCK * k, rows, c, nought, nought)
        for u in range(wholes[AT_UPDATE] + 4 * wholes[here + 2], wholes[AT_UPDATE] + 4 * wholes[here + 5], 4):
            for c in range(0, wholes[u + 3] * WIDTH, WIDTH):
                i = (wholes[u] + c) // LANES
                cells[i], cells[i + 1] = add_product(
                    reals, wholes[u + 1], rows, wholes[u + 2] + c, cells[i], cells[i + 1]
                )
    return 0


@plain_jit
def tree_solve(reals: Any, wholes: Any, b: Any) -> None:
    """b <- (I - g J)^-1 b."""
    cells = as_lanes(reals)
    nodes = wholes[NODES]
    right, step = wholes[RIGHT], wholes[STEP]
    g = reals[step]
    nought = all_lanes(0.0)
    for i in range(right // LANES, step // LANES):
        cells[i] = nought
    for e in range(wholes[AT_STATE], wholes[AT_POSITION], 2):
        reals[wholes[e]] = b[wholes[e + 1]]
    for e in range(wholes[AT_POSITION], wholes[AT_KNOWN], 2):
        reals[wholes[e]] = b[wholes[e + 1]]
    for e in range(wholes[AT_KNOWN], wholes[AT_FORWARD], 4):
        i = wholes[e + 3] // LANES
        cells[i], cells[i + 1] = add_product(reals, wholes[e], wholes[e + 1], wholes[e + 2], cells[i], cells[i + 1])
    e = wholes[AT_FORWARD]
    for k in range(nodes):
        here = wholes[AT_NODE] + 3 * k
        own, rows = wholes[e + 2], wholes[e + 1]
        i = own // LANES
        cells[i], cells[i + 1] = add_product(reals, wholes[e], rows, own, nought, nought)
        e += 3
        for _ in range(wholes[here + 1], wholes[here + 4]):
            i = wholes[e + 2] // LANES
            cells[i], cells[i + 1] = add_product(reals, wholes[e], rows, own, cells[i], cells[i + 1])
            e += 3
    for i in range(right // LANES, right // LANES + 2 * nodes):
        cells[i] = -cells[i]
    for e in range(wholes[AT_BACKWARD], wholes[AT_PIVOT], 4):
        i = wholes[e + 3] // LANES
        cells[i], cells[i + 1] = add_product(reals, wholes[e], wholes[e + 1], wholes[e + 2], cells[i], cells[i + 1])
    for e in range(wholes[AT_POSITION], wholes[AT_KNOWN], 2):
        b[wholes[e + 1]] += g * reals[wholes[e] - WIDTH * nodes]
    for e in range(wholes[AT_STATE], wholes[AT_POSITION], 2):
        b[wholes[e + 1]] = reals[wholes[e]]
