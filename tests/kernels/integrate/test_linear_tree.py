"""Elimination node by node against the full LU, with loops, and what it refuses; vehicles: see `test_simulation`."""

import numpy as np
import pytest

from railsweep.kernels.integrate.linear_tree import elimination, tree_factor, tree_solve, tree_work


def solved(jacobian: np.ndarray, g: float, work, b: np.ndarray) -> np.ndarray:
    reals, wholes = work
    assert tree_factor(jacobian, g, reals, wholes) == 0
    x = b.copy()
    tree_solve(reals, wholes, x)
    return x


@pytest.mark.parametrize("seed", range(6))
def test_any_graph(seed: int) -> None:
    """Random blocks of one to eight rows, some with positions, coupled in loops: elimination fills the missing ones."""
    random = np.random.default_rng(seed)
    count = 9
    sizes = random.integers(1, 9, count)
    held = [random.integers(0, size + 1) for size in sizes]
    states = iter(random.permutation(sizes.sum() + sum(held)).tolist())
    nodes = [
        [(next(states), next(states) if k < h else -1) for k in range(s)] for s, h in zip(sizes, held, strict=True)
    ]
    n = sum(held) + int(sizes.sum())
    pairs = {(int(i), int(j)) for i, j in random.integers(0, count, (2 * count, 2))}
    coupled = {(i, i) for i in range(count)} | pairs | {(j, i) for i, j in pairs}
    jacobian = np.zeros((n, n))
    for i, j in coupled:
        for row, _ in nodes[i]:
            for column in (k for pair in nodes[j] for k in pair if k >= 0):
                jacobian[row, column] = random.standard_normal()
    for state, position in (pair for node in nodes for pair in node):
        if position >= 0:
            jacobian[position] = 0.0
            jacobian[position, state] = 1.0
        jacobian[state, state] -= 20.0
    b = random.standard_normal(n)
    for g in (1e-3, 0.1, 3.0):
        matrix = np.eye(n) - g * jacobian
        x = solved(jacobian, g, tree_work(n, nodes, pairs), b)
        assert np.abs(x - np.linalg.solve(matrix, b)).max() < 1e-13 * np.linalg.cond(matrix)


def test_rows_are_exchanged_within_a_node() -> None:
    """1 - g J has zeros on its diagonal."""
    jacobian = np.array([[1.0, -2.0, 0.0], [0.5, 1.0, 1.0], [1.0, 3.0, 1.0]])
    b = np.array([1.0, 2.0, 3.0])
    x = solved(jacobian, 1.0, tree_work(3, [[(0, -1), (1, -1), (2, -1)]], []), b)
    assert x == pytest.approx(np.linalg.solve(np.eye(3) - jacobian, b), rel=1e-14)


def test_leaves_go_first() -> None:
    """Car body 0, bogies 1 and 4, two wheelsets each: no block is filled in."""
    pairs = [(0, 1), (0, 4), (1, 2), (1, 3), (4, 5), (4, 6)]
    _, later = elimination(7, pairs)
    assert sum(map(len, later)) == len(pairs)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_singular_and_not_finite_matrices_are_reported(bad: float) -> None:
    nodes, pairs = [[(0, -1), (1, -1)], [(2, -1)]], [(0, 1)]
    reals, wholes = tree_work(3, nodes, pairs)
    assert tree_factor(np.diag([1.0, 0.0, 0.0]), 1.0, reals, wholes) == 1
    assert tree_factor(np.diag([0.0, 0.0, 1.0]), 1.0, reals, wholes) == 1
    spoiled = np.zeros((3, 3))
    spoiled[0, 1] = bad
    tree_factor(spoiled, 1.0, reals, wholes)
    b = np.array([1.0, 2.0, 3.0])
    assert solved(np.zeros((3, 3)), 1.0, (reals, wholes), b) == pytest.approx(b)  # nothing stays behind


def test_nodes_must_hold_every_state_once() -> None:
    with pytest.raises(ValueError, match="every state once"):
        tree_work(3, [[(0, -1)], [(1, 0)]], [])
    with pytest.raises(ValueError, match="at most 8 states"):
        tree_work(9, [[(k, -1) for k in range(9)]], [])
