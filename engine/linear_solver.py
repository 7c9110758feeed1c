"""Linear algebra of the implicit methods: which structure of the Newton matrix they may rely on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from railsweep.kernels.integrate import linear, linear_complex, linear_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexPair:
    """The same as `LinearSolver` for I - g*J with complex g, which only `radau` needs.

    ``factor(jacobian, hgamma, hdelta, reals, wholes)`` with g = hgamma + i hdelta, ``solve(reals, wholes, b)`` with the
    real parts of b first; see `railsweep.kernels.integrate.linear_complex`.
    """

    factor: Any
    solve: Any
    work: Callable[[], tuple[Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSolver:
    """The linear algebra of the implicit methods for one problem structure.

    ``factor(jacobian, hgamma, reals, wholes)`` factorises I - hgamma*J into the work arrays and returns non-zero when
    it is singular; ``solve(reals, wholes, b)`` overwrites b. Both jitted. ``work`` makes fresh work arrays. `radau`
    also needs ``complex_pair``; without one its complex system is solved dense.
    """

    factor: Any
    solve: Any
    work: Callable[[], tuple[Any, Any]]
    complex_pair: ComplexPair | None = None


def complex_dense_solver(n: int) -> ComplexPair:
    return ComplexPair(
        factor=linear_complex.complex_dense_factor,
        solve=linear_complex.complex_dense_solve,
        work=lambda: linear_complex.complex_dense_work(n),
    )


def dense_solver(n: int) -> LinearSolver:
    """LU of the full n x n matrix."""
    return LinearSolver(
        factor=linear.dense_factor,
        solve=linear.dense_solve,
        work=lambda: linear.dense_work(n),
        complex_pair=complex_dense_solver(n),
    )


def body_tree_solver(
    n: int, nodes: Sequence[Sequence[tuple[int, int]]], pairs: Iterable[tuple[int, int]]
) -> LinearSolver:
    """Elimination node by node of the matrix without its position rows, see `railsweep.kernels.integrate.linear_tree`.

    Parameters
    ----------
    n : int
        Number of states.
    nodes : sequence of sequences of (state, position)
        States of one body each (at most eight) and their positions, y'[position] = y[state] exactly, or -1.
    pairs : iterable of (node, node)
        Nodes whose states depend on each other.
    """
    reals, wholes = linear_tree.tree_work(n, nodes, pairs)
    held = np.array([pair for node in nodes for pair in node if pair[1] >= 0], dtype=np.int64).reshape(-1, 2)
    return LinearSolver(
        factor=linear_tree.tree_factor,
        solve=linear_tree.tree_solve,
        work=lambda: (reals.copy(), wholes.copy()),
        complex_pair=ComplexPair(
            factor=linear_complex.complex_reduced_factor,
            solve=linear_complex.complex_reduced_solve,
            work=lambda: linear_complex.complex_reduced_work(n, held[:, 1], held[:, 0]),
        ),
    )
