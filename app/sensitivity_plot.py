"""Pictures of a sensitivity study: indices with their limits and how they converged, or the plane of Morris; and the
quantity over each parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from railsweep.sweeps.sensitivity.analysis import Outcome, Survey
from railsweep.sweeps.sensitivity.estimator import SobolIndices
from railsweep.sweeps.sensitivity.expansion import ExpansionIndices
from railsweep.sweeps.sensitivity.morris import ElementaryEffects

MOST_ROWS = 6  # outcomes in one picture
MOST_BARS = 20
MOST_LINES = 6
SCATTERED = 3  # parameters of the largest total index, with the quantity over each
MOST_DOTS = 2000
SCATTER_COLUMNS = 5
MOST_SCATTERED = 60  # parameters of a quantity in the picture of them all


def plot_sensitivity(survey: Survey, outcomes: list[Outcome], path: Path) -> None:
    """Write the picture; the format follows the ending of `path`. One row per quantity and place."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = outcomes[:MOST_ROWS]
    columns = 2 + SCATTERED
    bars = min(MOST_BARS, max(len(o.groups) for o in shown))
    height = max(3.2, 0.3 * bars + 1.2)
    figure, axes = plt.subplots(
        len(shown),
        columns,
        figsize=(5.5 + 4.5 + 2.6 * SCATTERED, height * len(shown)),
        squeeze=False,
        constrained_layout=True,
        width_ratios=[2.0, 1.6, *[1.0] * SCATTERED],
    )
    figure.suptitle(f"{survey.store.study.name} ({survey.choice.method}, {survey.store.study.vehicle_name})")
    for row, outcome in zip(axes, shown, strict=True):
        if isinstance(outcome.result, ElementaryEffects):
            _effect_bars(row[0], outcome, outcome.result)
            _plane(row[1], outcome, outcome.result)
        else:
            _bars(row[0], outcome, outcome.result)
            if isinstance(outcome.result, SobolIndices):
                _convergence(row[1], outcome)
            else:
                _prediction(row[1], survey, outcome, outcome.result)
        _scatter(row[2:], survey, outcome, by_strength(survey, outcome, members=False)[:SCATTERED])
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_scatter(survey: Survey, outcomes: list[Outcome], path: Path) -> None:
    """Write a picture of every quantity over each of its parameters, those that matter most first."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = outcomes[:MOST_ROWS]
    orders = [by_strength(survey, outcome, members=True)[:MOST_SCATTERED] for outcome in shown]
    columns = min(SCATTER_COLUMNS, max(map(len, orders)))
    lines = [-(-len(order) // columns) for order in orders]
    figure = plt.figure(figsize=(2.7 * columns, 2.4 * sum(lines) + 0.5 * len(shown)), constrained_layout=True)
    figure.suptitle(f"{survey.store.study.name} ({survey.choice.method}, {survey.store.study.vehicle_name})")
    parts = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=lines)[:, 0]
    for part, outcome, order, count in zip(parts, shown, orders, lines, strict=True):
        part.suptitle(title_of(outcome).replace("\n", ", "), fontsize=9)
        axes = part.subplots(count, columns, squeeze=False, sharey=True)
        _scatter(axes.ravel(), survey, outcome, order)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def by_strength(survey: Survey, outcome: Outcome, *, members: bool) -> list[int]:
    """Numbers of the parameters in the order of the strength of their groups: all of them, or one of each group."""
    result = outcome.result
    strength = result.mu_star if isinstance(result, ElementaryEffects) else result.total.value
    found: list[int] = []
    for group in np.argsort(-strength):
        inside = [j for j, g in enumerate(survey.choice.groups) if g == group]
        found += inside if members else inside[:1]
    return found


def title_of(outcome: Outcome) -> str:
    """Quantity and place."""
    place = ", ".join(f"{k} {v:g}" for k, v in outcome.place.items())
    return outcome.quantity + (f"\n{place}" if place else "")


def _bars(axis: Any, outcome: Outcome, result: SobolIndices | ExpansionIndices) -> None:
    order = np.argsort(-result.total.value)[:MOST_BARS]
    y = np.arange(len(order))
    for estimate, offset, colour, label in (
        (result.first, -0.2, "tab:blue", "first order"),
        (result.total, 0.2, "tab:orange", "total"),
    ):
        value = estimate.value[order]
        limits = np.abs(np.stack([value - estimate.low[order], estimate.high[order] - value]))
        axis.barh(y + offset, value, 0.38, xerr=limits, color=colour, label=label, error_kw={"lw": 0.9, "capsize": 2})
    if outcome.expansion is not None:
        for estimate, offset in ((outcome.expansion.first, -0.2), (outcome.expansion.total, 0.2)):
            axis.plot(estimate.value[order], y + offset, "D", color="0.15", markersize=3.5)
        error = outcome.expansion.expansion.cv_error
        axis.plot([], [], "D", color="0.15", markersize=3.5, label=f"polynomial chaos (error {error:.2g})")
    axis.set_yticks(y, [outcome.groups[i] for i in order])
    axis.invert_yaxis()
    axis.axvline(0.0, color="0.3", linewidth=0.8)
    axis.set_xlabel("share of the variance")
    axis.set_title(title_of(outcome), fontsize=9)
    axis.legend(fontsize=8, loc="lower right")


def _convergence(axis: Any, outcome: Outcome) -> None:
    trace = outcome.trace
    result = outcome.result
    assert isinstance(result, SobolIndices)
    rows = np.array([n for n, _ in trace])
    for k, i in enumerate(np.argsort(-result.total.value)[:MOST_LINES]):
        value = np.array([r.total.value[i] for _, r in trace])
        low, high = (np.array([getattr(r.total, side)[i] for _, r in trace]) for side in ("low", "high"))
        axis.plot(rows, value, color=f"C{k}", label=outcome.groups[i])
        axis.fill_between(rows, low, high, color=f"C{k}", alpha=0.2)
    axis.set_xscale("log")
    axis.set_xlabel("rows (base points)")
    axis.set_ylabel("total index")
    axis.legend(fontsize=7)


def _prediction(axis: Any, survey: Survey, outcome: Outcome, result: ExpansionIndices) -> None:
    """Polynomial over computed values."""
    points = survey.design.points(0, int(outcome.treated.rows.max()) + 1)[outcome.treated.rows]
    value = outcome.treated.values[:, 0]
    axis.plot(value, result.expansion(points), ".", markersize=3)
    ends = [value.min(), value.max()]
    axis.plot(ends, ends, color="0.3", linewidth=0.8)
    axis.set_xlabel(f"computed [{outcome.unit}]")
    axis.set_ylabel("polynomial")
    axis.set_title(f"cross-validation error {result.expansion.cv_error:.2g}", fontsize=9)


def _effect_bars(axis: Any, outcome: Outcome, result: ElementaryEffects) -> None:
    order = np.argsort(-result.mu_star)[:MOST_BARS]
    y = np.arange(len(order))
    axis.barh(
        y, result.mu_star[order], 0.7, xerr=1.96 * result.mu_star_error[order], error_kw={"lw": 0.9, "capsize": 2}
    )
    axis.set_yticks(y, [outcome.groups[i] for i in order])
    axis.invert_yaxis()
    axis.set_xlabel(f"mu* [{outcome.unit}]")
    axis.set_title(title_of(outcome), fontsize=9)


def _plane(axis: Any, outcome: Outcome, result: ElementaryEffects) -> None:
    axis.plot(result.mu_star, result.sigma, "o")
    for i, name in enumerate(outcome.groups):
        if np.isfinite(result.sigma[i]):
            axis.annotate(
                name, (result.mu_star[i], result.sigma[i]), fontsize=7, xytext=(3, 3), textcoords="offset points"
            )
    end = float(np.nanmax([result.mu_star.max(), np.nanmax(result.sigma, initial=0.0)])) or 1.0
    axis.plot([0.0, end], [0.0, end], color="0.6", linewidth=0.8, linestyle="--", label="sigma = mu*")
    axis.set_xlabel(f"mu* [{outcome.unit}]")
    axis.set_ylabel(f"sigma [{outcome.unit}]")
    axis.legend(fontsize=8)


def _scatter(axes: Any, survey: Survey, outcome: Outcome, order: list[int]) -> None:
    """The quantity over parameters given by their numbers."""
    cases = len(outcome.treated.values) * survey.design.row_cases
    step = max(1, cases // MOST_DOTS)
    rows, columns = np.divmod(np.arange(0, cases, step), survey.design.row_cases)
    numbers = outcome.treated.rows[rows] * survey.design.row_cases + columns
    values = outcome.treated.values[rows, columns]
    points = survey.choice.values(np.concatenate([survey.design.points(int(n), int(n) + 1) for n in numbers]))
    for k, axis in enumerate(axes):
        if k >= len(order):
            axis.axis("off")
            continue
        parameter = survey.choice.parameters[order[k]]
        axis.plot(points[:, order[k]], values, ".", markersize=1.5, alpha=0.5)
        axis.set_xlabel(parameter.name, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.locator_params(axis="x", nbins=4)
        if k == 0:
            axis.set_ylabel(f"{outcome.quantity} [{outcome.unit}]", fontsize=8)
