"""The bifurcation diagram of one vehicle over speed: equilibrium, hunting by simulation, and the branches of cycles.

From the slowest hunting motion of every start the cycle is followed both ways: down through the fold and up again along
the unstable branch (the separatrix between rest and hunting) to its Hopf point, and up along the stable branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.linear_stability import Crossing, stability
from railsweep.engine.model import Model, ModelError
from railsweep.sweeps.bifurcation.continuation import BranchEnd
from railsweep.sweeps.bifurcation.critical_speed import Descent, Search, damped, follow, hunting_descent, slowest_cycle
from railsweep.sweeps.bifurcation.cycle import CyclePoint

Array = NDArray[np.float64]

SAME_PARAMETER = 5e-4  # relative distance of folds that belong to one branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Cycles along one branch, in order; `end` says why it ended there."""

    start: str
    direction: int
    points: tuple[CyclePoint, ...]
    end: str

    @property
    def folds(self) -> tuple[CyclePoint, ...]:
        """Points at which the speed turns."""
        return tuple(p for p in self.points if p.kind == "fold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Everything found; speeds in m/s.

    Attributes
    ----------
    speeds_mps, unstable_modes : tuple
        The equilibrium: number of unstable modes at the speeds of the scan; -1 where there is no equilibrium.
    crossings : tuple of Crossing
    descents : dict
        Start -> hunting carried down in speed by simulation.
    branches : tuple of Branch
    """

    speeds_mps: tuple[float, ...]
    unstable_modes: tuple[int, ...]
    crossings: tuple[Crossing, ...]
    descents: dict[str, Descent]
    branches: tuple[Branch, ...]

    @property
    def nonlinear_mps(self) -> tuple[float, ...]:
        """Speeds of all folds, lowest first."""
        return tuple(sorted(fold.parameter for branch in self.branches for fold in branch.folds))


def diagram(
    model: Model, search: Search | None = None, *, on_point: Callable[[CyclePoint], object] | None = None
) -> Diagram:
    """Compute the diagram; `on_point` sees every cycle as it is found."""
    search = search or Search(points=60)
    scan = stability(model, search.speeds_mps)
    linear = scan.critical_speed_mps
    cycle_model = damped(model, search)
    descents: dict[str, Descent] = {}
    branches: list[Branch] = []
    for shape in search.starts:
        try:
            descents[shape] = hunting_descent(cycle_model, linear, search, shape)
        except ModelError as error:
            branches.append(Branch(start=shape, direction=0, points=(), end=str(error)))
            continue
        branches += _branches(cycle_model, shape, descents[shape], search, branches, on_point)
    return Diagram(
        speeds_mps=search.speeds_mps,
        unstable_modes=tuple(-1 if p.error else p.unstable for p in scan.points),
        crossings=tuple(c for c in scan.crossings if c.running),
        descents=descents,
        branches=tuple(branches),
    )


def _branches(
    model: Model,
    shape: str,
    way: Descent,
    search: Search,
    known: list[Branch],
    on_point: Callable[[CyclePoint], object] | None,
) -> list[Branch]:
    cycle, reason = slowest_cycle(model, way, search)
    if cycle is None:
        return [Branch(start=shape, direction=0, points=(), end=reason)]
    made: list[Branch] = []
    for direction in (-1, 1):
        end = BranchEnd()
        points: list[CyclePoint] = []
        for point in follow(model, cycle, search, direction, end):
            points.append(point)
            if on_point is not None:
                on_point(point)
            if point.kind == "fold" and _is_known(point, known):
                return []  # another start has led to the same branch
        made.append(Branch(start=shape, direction=direction, points=tuple(points), end=end.reason))
    return made


def _is_known(fold: CyclePoint, known: list[Branch]) -> bool:
    return any(
        abs(other.parameter - fold.parameter) < SAME_PARAMETER * fold.parameter
        for branch in known
        for other in branch.folds
    )
