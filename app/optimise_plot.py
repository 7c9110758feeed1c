"""Picture of a search: the front or the best value, the trace of the search, and objectives over each parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from railsweep.sweeps.population.session import Search

COLUMNS = 4
MOST_PANELS = 60  # of an objective over a parameter


def plot_search(search: Search, path: Path) -> None:
    """Write the picture; the format follows the ending of `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    x, f, violation = search.evaluated()
    values, feasible = search.natural(np.where(np.isfinite(f), f, np.nan)), violation == 0.0
    parameters, objectives = search.choice.parameters, search.choice.objectives
    columns = max(2, min(COLUMNS, len(parameters)))
    lines = -(-len(parameters) // columns)  # of panels per objective
    shown = max(1, min(len(objectives), MOST_PANELS // (lines * columns)))
    rows = 1 + lines * shown
    figure = plt.figure(figsize=(3.6 * columns, 3.2 * rows), constrained_layout=True)
    grid = figure.add_gridspec(rows, columns)
    half = columns // 2
    _front(figure.add_subplot(grid[0, :half]), search, values, feasible)
    _trace(figure.add_subplot(grid[0, half:]), search)
    number = np.arange(len(x))[feasible]
    for goal in range(shown):
        for k, parameter in enumerate(parameters):
            axis = figure.add_subplot(grid[1 + goal * lines + k // columns, k % columns])
            axis.scatter(x[feasible, k], values[feasible, goal], c=number, s=5, cmap="viridis")
            axis.set_xlabel(parameter.name, fontsize=8)
            if parameter.logarithmic:
                axis.set_xscale("log")
            axis.tick_params(labelsize=7)
            if k % columns == 0:
                axis.set_ylabel(objectives[goal].quantity, fontsize=8)
    figure.suptitle(f"{search.store.study.name} ({search.choice.method}, {search.told} evaluations)")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _front(axis: Any, search: Search, values: Any, feasible: Any) -> None:
    names = [f"{o.quantity} ({o.goal})" for o in search.choice.objectives]
    best = search.best()
    found = search.natural(best.f)[best.violation == 0.0]
    if len(names) == 1:
        axis.plot(np.flatnonzero(feasible), values[feasible, 0], ".", markersize=3, color="0.6")
        axis.set_xlabel("evaluation")
        axis.set_ylabel(names[0])
        return
    axis.plot(values[feasible, 0], values[feasible, 1], ".", markersize=3, color="0.7", label="evaluated")
    axis.plot(found[:, 0], found[:, 1], "o", markersize=4, color="tab:red", label="front")
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])
    axis.legend(fontsize=8)


def _trace(axis: Any, search: Search) -> None:
    history = search.history()
    at = [s.evaluations for s in history]
    if len(search.choice.objectives) > 1:
        axis.plot(at, [s.hypervolume for s in history])
        axis.set_ylabel("hypervolume")
    else:
        axis.plot(at, [s.best * search.choice.objectives[0].sign for s in history])
        axis.set_ylabel(f"best {search.choice.objectives[0].quantity}")
    axis.set_xlabel("evaluation")
