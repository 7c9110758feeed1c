"""From a store to indices: reads what is there, treats failures, and answers for every quantity and every other axis.

Only the beginning of the design up to the first row that is not complete counts, so that what is said about a study
that still runs, or that was stopped, does not depend on who was faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError, nearest
from railsweep.sweeps.quantity import GOOD, PENDING
from railsweep.sweeps.sensitivity.choice import DIMENSION, SensitivityChoice
from railsweep.sweeps.sensitivity.estimator import IndexEstimate, SobolEstimator, SobolIndices
from railsweep.sweeps.sensitivity.expansion import ExpansionIndices, expansion_indices, fit_expansion
from railsweep.sweeps.sensitivity.failure import Treated, correlation_warning, treat
from railsweep.sweeps.sensitivity.morris import ElementaryEffects, MorrisDesign, elementary_effects
from railsweep.sweeps.store import StudyStore

Array = NDArray[np.float64]

FIRST_CHECK = 64  # rows
CHECK_GROWTH = 1.25
MOST_REFITS = 200  # of an expansion, for its limits
NEVER_ANALYSED = ("t_end_s", "rhs_calls")  # how a case was computed, not what it is


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Sensitivity of one quantity at one place of the other axes.

    Attributes
    ----------
    quantity, unit : str
    place : dict
        Name -> value of the other axes.
    groups : tuple of str
        What the figures belong to.
    result : SobolIndices, ExpansionIndices or ElementaryEffects
    treated : Treated
        The rows that were used, and what became of failures.
    trace : tuple of (rows, SobolIndices)
        The indices after more and more rows.
    expansion : ExpansionIndices, optional
        A polynomial through the cases of a Sobol design, where the study asks for a second opinion.
    warnings : tuple of str
    """

    quantity: str
    unit: str
    place: dict[str, float]
    groups: tuple[str, ...]
    result: SobolIndices | ExpansionIndices | ElementaryEffects
    treated: Treated
    trace: tuple[tuple[int, SobolIndices], ...] = ()
    warnings: tuple[str, ...] = field(default=())
    expansion: ExpansionIndices | None = None

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        shared = {
            "quantity": self.quantity,
            "unit": self.unit,
            "place": {k: v if np.isfinite(v) else str(v) for k, v in self.place.items()},
            "rows": len(self.treated.rows),
            "failed_cases": self.treated.failed,
            "failed_share": self.treated.share,
            "dropped_rows": self.treated.dropped,
            "filled_with": self.treated.filled,
            "warnings": list(self.warnings),
        }
        r = self.result
        if isinstance(r, ElementaryEffects):
            names = ("mu", "mu_star", "sigma", "mu_star_error", "mu_star_dispersion", "sigma_dispersion")
            figures = {n: _plain(getattr(r, n)) for n in names}
            return shared | {
                "effects": {g: {n: figures[n][i] for n in names} for i, g in enumerate(self.groups)},
                "trajectories": r.trajectories,
            }
        found = shared | _indices(r, self.groups)
        if self.expansion is not None:
            found["expansion"] = _indices(self.expansion, self.groups)
        return found


def _indices(r: SobolIndices | ExpansionIndices, groups: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "first": _estimate(r.first, groups),
        "total": _estimate(r.total, groups),
        "second": None
        if r.second is None
        else _estimate(r.second, tuple(f"{groups[i]} x {groups[j]}" for i, j in r.pairs)),
    }
    if isinstance(r, SobolIndices):
        return found | {"mean": r.mean, "std": float(np.sqrt(r.variance)), "interval": r.interval}
    e = r.expansion
    return found | {
        "mean": e.mean,
        "std": float(np.sqrt(e.variance)),
        "terms": len(e.terms),
        "degree": int(e.terms.sum(axis=1).max()),
        "loo_error": e.loo_error,
        "cv_error": e.cv_error,
    }


def _plain(values: Array) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]


def _estimate(e: IndexEstimate, names: tuple[str, ...]) -> dict[str, dict[str, float | None]]:
    columns = {n: _plain(getattr(e, n)) for n in ("value", "error", "low", "high")}
    return {name: {n: c[i] for n, c in columns.items()} for i, name in enumerate(names)}


class Survey:
    """The samples of a store as rows of its design."""

    def __init__(self, store: StudyStore, choice: SensitivityChoice | None = None) -> None:
        design = choice or store.study.design
        if not isinstance(design, SensitivityChoice):
            raise InputError(str(store.path), "holds no samples", "a study with a [sensitivity] section")
        self.store, self.choice, self.design = store, design, design.design
        self.axis = store.plan.names.index(DIMENSION)
        known = {
            v.name: v.unit
            for v in store.variables
            if v.dtype in ("float64", "int64") and not v.dimensions and v.name not in ("status", *NEVER_ANALYSED)
        }
        for name in design.analysis.quantities:
            if name not in known:
                raise InputError(
                    "sensitivity.quantities",
                    f"{name!r} is not computed, {nearest(name, list(known))}",
                    ", ".join(known),
                )
        self.units = {name: known[name] for name in design.analysis.quantities or known}

    def complete_rows(self) -> int:
        """Rows from the first on in which, at every place of the other axes, every case is computed."""
        pending = np.moveaxis(np.asarray(self.store.arrays["status"][:]) == PENDING, self.axis, 0)
        gaps = np.flatnonzero(pending.reshape(len(pending), -1).any(axis=1))
        cases = int(gaps[0]) if len(gaps) else len(pending)
        return cases // self.design.row_cases

    def values(self, quantity: str, rows: int) -> Array:
        """Values of the first rows: shape (places of the other axes, rows, cases of a row); nan where failed."""
        cases = rows * self.design.row_cases
        cut: list[slice] = [slice(None)] * len(self.store.plan.shape)
        cut[self.axis] = slice(0, cases)
        values = np.asarray(self.store.arrays[quantity][tuple(cut)], dtype=np.float64)
        status = np.asarray(self.store.arrays["status"][tuple(cut)])
        values = np.where(np.isin(status, GOOD), values, np.nan)
        return np.moveaxis(values, self.axis, -1).reshape(-1, rows, self.design.row_cases)

    def places(self) -> list[dict[str, float]]:
        """Values of the other axes, in the order of `values`."""
        plan = self.store.plan
        shape = tuple(n for d, n in enumerate(plan.shape) if d != self.axis)
        others = [name for d, name in enumerate(plan.names) if d != self.axis]
        axes = [a for a in plan.axes if (a.zipped or a.name) != DIMENSION]
        return [
            {a.name: a.value(position[others.index(a.zipped or a.name)]) for a in axes}
            for position in np.ndindex(*shape)
        ]

    def tight_rows(self, rows: int) -> int | None:
        """The least number of rows (of those at which it is checked) with which all limits are within the tolerance."""
        analysis = self.choice.analysis
        if not analysis.tolerance or self.choice.method != "sobol":
            return None
        values = {q: self.values(q, rows) for q in self.units}
        for count in checks(rows, self.choice.replicates):
            found = (self._sobol(v[p, :count])[1] for v in values.values() for p in range(len(v)))
            if all(r.widest <= analysis.tolerance for r in found):
                return count
        return None

    def outcomes(self, rows: int | None = None, *, trace: bool = True) -> list[Outcome]:
        """Sensitivity of every quantity at every place, from the first `rows` rows (default: all that are complete)."""
        count = self.complete_rows() if rows is None else rows
        if count < 2:
            raise InputError(str(self.store.path), f"holds {count} complete rows of samples", "at least 2; go on first")
        tight = self.tight_rows(count)
        count = tight or count
        places = self.places()
        return [
            self._outcome(quantity, place, values[p], trace=trace)
            for quantity in self.units
            for values in [self.values(quantity, count)]
            for p, place in enumerate(places)
        ]

    def _outcome(self, quantity: str, place: dict[str, float], values: Array, *, trace: bool) -> Outcome:
        choice, analysis = self.choice, self.choice.analysis
        treated = treat(values, analysis.failures, analysis.fill)
        warnings = []
        names = tuple(p.name for p in choice.parameters)
        if treated.dropped:
            base = np.stack(
                [self.design.points(r * self.design.row_cases, r * self.design.row_cases + 1)[0] for r in treated.rows]
            )
            warnings += [w] if (w := correlation_warning(base, names)) else []
        steps: list[tuple[int, SobolIndices]] = []
        result: SobolIndices | ExpansionIndices | ElementaryEffects
        if isinstance(self.design, MorrisDesign):
            result = elementary_effects(self.design, treated.values, treated.rows, choice.repetitions)
        elif choice.method == "expansion":
            result = self._expansion(treated)
        else:
            _, result = self._sobol(values)
            if trace:
                steps = [(n, self._sobol(values[:n])[1]) for n in checks(len(values), choice.replicates)]
        return Outcome(
            quantity=quantity,
            unit=self.units[quantity],
            place=place,
            groups=choice.group_names,
            result=result,
            treated=treated,
            trace=tuple(steps),
            warnings=tuple(warnings),
            expansion=self._expansion(treated) if analysis.expansion else None,
        )

    def _expansion(self, treated: Treated) -> ExpansionIndices:
        """The polynomial through all cases of the rows that are kept."""
        choice, analysis, width = self.choice, self.choice.analysis, self.design.row_cases
        points = self.design.points(0, (int(treated.rows.max()) + 1) * width)
        u = points.reshape(-1, width, points.shape[1])[treated.rows].reshape(-1, points.shape[1])
        y = treated.values.ravel()
        fitted = fit_expansion(
            tuple(p.distribution.germ for p in choice.parameters),
            u,
            y,
            degree=analysis.degree,
            interaction=analysis.interaction,
            folds=analysis.folds,
            row_cases=width,
        )
        return expansion_indices(
            fitted,
            choice.groups,
            u,
            y,
            confidence=analysis.confidence,
            resamples=min(analysis.resamples, MOST_REFITS),
            row_cases=width,
        )

    def _sobol(self, values: Array) -> tuple[Treated, SobolIndices]:
        choice, analysis = self.choice, self.choice.analysis
        treated = treat(values, analysis.failures, analysis.fill)
        sums = SobolEstimator(
            groups=len(choice.group_names),
            second_order=choice.second_order,
            estimator=analysis.estimator,
            replicates=choice.replicates,
        )
        sums.tell(treated.rows, treated.values)
        return treated, sums.indices(
            interval=analysis.interval,
            confidence=analysis.confidence,
            values=treated.values,
            resamples=analysis.resamples,
        )


def checks(rows: int, replicates: int) -> list[int]:
    """Numbers of rows at which a study is looked at: growing, equal shares of all replicates, the last is `rows`."""
    found, at = [], float(max(FIRST_CHECK, 4 * replicates))
    while at < rows:
        found.append(int(at) // replicates * replicates)
        at *= CHECK_GROWTH
    return [*dict.fromkeys(found), rows]


def check_independent(parameters: list[Any], names: list[str]) -> None:
    """Refuse two uncertain parameters that are the same number of the model (a group and one of its members)."""
    taken: dict[int, str] = {}
    for parameter, name in zip(parameters, names, strict=True):
        for position, _ in () if parameter is None else parameter.writes:
            if taken.get(position, name) != name:
                raise InputError(
                    "parameter", f"{name!r} and {taken[position]!r} are the same number", "independent parameters"
                )
            taken[position] = name
