"""Picture of a search: the front or the best value, the trace of the search, and the objective over each parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from railsweep.sweeps.population.session import Search

MOST_PARAMETERS = 8


def plot_search(search: Search, path: Path) -> None:
    """Write the picture; the format follows the ending of `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    x, f, violation = search.evaluated()
    values, feasible = search.natural(np.where(np.isfinite(f), f, np.nan)), violation == 0.0
    count = min(MOST_PARAMETERS, x.shape[1])
    columns = max(2, min(4, count))
    rows = 1 + -(-count // columns)
    figure = plt.figure(figsize=(3.6 * columns, 3.2 * rows), constrained_layout=True)
    grid = figure.add_gridspec(rows, columns)
    half = columns // 2
    _front(figure.add_subplot(grid[0, :half]), search, values, feasible)
    _trace(figure.add_subplot(grid[0, half:]), search)
    for k in range(count):
        axis = figure.add_subplot(grid[1 + k // columns, k % columns])
        number = np.arange(len(x))[feasible]
        axis.scatter(x[feasible, k], values[feasible, 0], c=number, s=5, cmap="viridis")
        axis.set_xlabel(search.choice.parameters[k].name, fontsize=8)
        if search.choice.parameters[k].logarithmic:
            axis.set_xscale("log")
        axis.tick_params(labelsize=7)
        if k % columns == 0:
            axis.set_ylabel(search.choice.objectives[0].quantity, fontsize=8)
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
