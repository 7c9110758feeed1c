"""Polynomial chaos: the quantity as a sparse polynomial in the standard variables of its parameters.

With an orthonormal basis the variance of the polynomial is the sum of the squares of its coefficients, and an index is
the share of the terms that hold its parameters. Terms are chosen by orthogonal matching pursuit, as many (and of as
high a degree) as the leave-one-out error asks for. Its error is measured by cross-validation in which the choice of
terms is repeated for every fold. (Blatman and Sudret, Journal of Computational Physics 230, 2011.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.design import stream
from railsweep.sweeps.sensitivity.distribution import standard_normal
from railsweep.sweeps.sensitivity.estimator import IndexEstimate

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GERMS = ("uniform", "normal")
LARGEST_BASIS = 4000
LARGEST_SHARE = 0.6  # of the samples: terms a fit may have at most
PATIENCE = 0.1  # a fit goes on for this share of its terms beyond the best leave-one-out error
LEAST_PATIENCE = 10
DEPENDENT = 1e-10  # a candidate whose independent part is smaller than this share of it adds nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A fitted polynomial.

    Attributes
    ----------
    germs : tuple of str
        Standard variable of every parameter.
    terms : Integers
        Degree of every parameter in every term, shape (terms, parameters); the first is the constant.
    coefficients : Array
    loo_error, cv_error : float
        Leave-one-out and cross-validation error as a share of the variance (0 = perfect, 1 = no better than the mean).
    samples : int
    """

    germs: tuple[str, ...]
    terms: Integers
    coefficients: Array
    loo_error: float
    cv_error: float
    samples: int

    def __call__(self, u: Array) -> Array:
        """Values at points of the unit cube."""
        return basis(self.germs, self.terms, np.atleast_2d(u)) @ self.coefficients

    @property
    def mean(self) -> float:
        """Mean of the quantity."""
        return float(self.coefficients[0])

    @property
    def variance(self) -> float:
        """Variance of the polynomial."""
        return float((self.coefficients[1:] ** 2).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionIndices:
    """Indices of an expansion per group; limits from drawing the samples anew with the terms kept."""

    first: IndexEstimate
    total: IndexEstimate
    second: IndexEstimate
    pairs: tuple[tuple[int, int], ...]
    expansion: Expansion


def polynomials(germ: str, u: Array, degree: int) -> Array:
    """Orthonormal polynomials of degrees 0 to `degree` at probabilities u; shape (degree + 1, size of u)."""
    x = 2.0 * u - 1.0 if germ == "uniform" else standard_normal(u)
    found = np.ones((degree + 1, u.size))
    if degree:
        found[1] = x
    for n in range(1, degree):
        if germ == "uniform":  # Legendre
            found[n + 1] = ((2 * n + 1) * x * found[n] - n * found[n - 1]) / (n + 1)
        else:  # Hermite, probabilists'
            found[n + 1] = x * found[n] - n * found[n - 1]
    if germ == "uniform":
        return np.asarray(found * np.sqrt(2.0 * np.arange(degree + 1) + 1.0)[:, None])
    factorial = np.cumprod(np.maximum(np.arange(degree + 1), 1), dtype=np.float64)
    return found / np.sqrt(factorial)[:, None]


def basis(germs: tuple[str, ...], terms: Integers, u: Array) -> Array:
    """Values of all terms at all points: shape (points, terms)."""
    found = np.ones((len(u), len(terms)))
    for i, germ in enumerate(germs):
        degree = int(terms[:, i].max(initial=0))
        if degree:
            found *= polynomials(germ, u[:, i], degree)[terms[:, i]].T
    return found


def term_set(parameters: int, degree: int, interaction: int = 2) -> Integers:
    """Terms of a total degree up to `degree` with at most `interaction` parameters each, the constant first."""
    found = [np.zeros(parameters, np.int64)]
    for order in range(1, min(interaction, degree, parameters) + 1):
        powers = [p for p in np.ndindex(*([degree] * order)) if sum(p) + order <= degree]
        for chosen in combinations(range(parameters), order):
            for power in powers:
                term = np.zeros(parameters, np.int64)
                term[list(chosen)] = np.array(power) + 1
                found.append(term)
            if len(found) > LARGEST_BASIS:
                raise InputError("degree", f"{degree} makes more than {LARGEST_BASIS} terms", "a lower degree")
    terms = np.array(found)
    return terms[np.lexsort((*terms.T, terms.sum(axis=1)))]


def pursue(matrix: Array, y: Array) -> tuple[NDArray[np.intp], float]:
    """Columns chosen by orthogonal matching pursuit, and the leave-one-out error as a share of the variance.

    The leave-one-out residual of a linear fit is r / (1 - h), with h the diagonal of the projection on the columns.
    """
    n, m = matrix.shape
    most = max(1, min(m, int(LARGEST_SHARE * n)))
    variance = float(y.var()) or 1.0
    q = np.empty((n, most))
    work = matrix.copy()
    size = np.einsum("ij,ij->j", matrix, matrix)
    left, chosen, best, best_error = y.copy(), [], 0, np.inf
    free = np.ones(m, bool)
    leverage = np.zeros(n)
    for step in range(most):
        if step == 0:
            pick = 0  # the constant
        else:
            remaining = np.einsum("ij,ij->j", work, work)
            usable = free & (remaining > DEPENDENT * size)
            if not usable.any():
                break
            score = np.where(usable, (work.T @ left) ** 2 / np.where(usable, remaining, 1.0), -1.0)
            pick = int(np.argmax(score))
        column = work[:, pick]
        # a second pass keeps the columns orthogonal to rounding
        column = column - q[:, :step] @ (q[:, :step].T @ column)
        q[:, step] = column / np.linalg.norm(column)
        free[pick] = False
        chosen.append(pick)
        left = left - q[:, step] * (q[:, step] @ left)
        work -= np.outer(q[:, step], q[:, step] @ work)
        leverage += q[:, step] ** 2
        room = 1.0 - leverage
        if room.min() <= 1e-12:
            break
        error = float(np.mean((left / room) ** 2)) / variance
        if error < best_error:
            best, best_error = step + 1, error
        elif step + 1 - best > max(LEAST_PATIENCE, PATIENCE * best):
            break
    return np.array(chosen[:best], dtype=np.intp), best_error


def _select(germs: tuple[str, ...], u: Array, y: Array, degrees: range, interaction: int) -> tuple[Integers, float]:
    """Terms of the degree with the least leave-one-out error."""
    found: tuple[Integers, float] | None = None
    for degree in degrees:
        terms = term_set(len(germs), degree, interaction)
        chosen, error = pursue(basis(germs, terms, u), y)
        if found is None or error < found[1]:
            found = terms[chosen], error
        elif error > 2.0 * found[1]:
            break
    assert found is not None
    return found


def fit_expansion(
    germs: tuple[str, ...],
    u: Array,
    y: Array,
    *,
    degree: int = 5,
    interaction: int = 2,
    folds: int = 5,
    seed: int = 0,
    row_cases: int = 1,
) -> Expansion:
    """Fit samples.

    Parameters
    ----------
    germs : tuple of {"uniform", "normal"}
        See `Distribution.germ`.
    u, y : Array
        Points of the unit cube (samples, parameters) and values.
    degree : int
        Highest total degree that is tried.
    interaction : int
        Parameters a term may hold.
    folds : int
        Of the cross-validation; 0: none (its error is nan).
    seed : int
        Of the cut into folds.
    row_cases : int
        So many neighbouring samples share coordinates (the row of a design) and stay together in a fold.
    """
    if len(u) != len(y) or len(y) < 10 or u.shape[1] != len(germs):
        raise InputError(
            "expansion",
            f"{len(y)} values at {len(u)} points of {u.shape[1]} coordinates",
            f"as many values as points, at least 10, {len(germs)} coordinates",
        )
    if not np.isfinite(y).all():
        raise InputError("expansion", "values are not all finite", "finite values (see `failure`)")
    if not y.var() > 0.0:
        raise InputError("quantity", "does not vary over the samples", "a quantity that depends on the parameters")
    degrees = range(1, degree + 1)
    terms, loo = _select(germs, u, y, degrees, interaction)
    coefficients = np.asarray(np.linalg.lstsq(basis(germs, terms, u), y, rcond=None)[0], dtype=np.float64)
    error = np.nan
    if folds:
        squares = 0.0
        rows = np.arange(len(y)).reshape(-1, row_cases)
        for part in np.array_split(stream(seed, folds).permutation(len(rows)), folds):
            held = rows[part].ravel()
            kept = np.setdiff1d(np.arange(len(y)), held)
            inner, _ = _select(germs, u[kept], y[kept], degrees, interaction)
            c = np.linalg.lstsq(basis(germs, inner, u[kept]), y[kept], rcond=None)[0]
            squares += float(((y[held] - basis(germs, inner, u[held]) @ c) ** 2).sum())
        error = squares / len(y) / float(y.var())
    return Expansion(germs=germs, terms=terms, coefficients=coefficients, loo_error=loo, cv_error=error, samples=len(y))


def expansion_indices(
    expansion: Expansion,
    groups: tuple[int, ...],
    u: Array,
    y: Array,
    *,
    confidence: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
    row_cases: int = 1,
) -> ExpansionIndices:
    """Indices of an expansion fitted to the samples `u`, `y`, with limits; whole rows of samples are drawn anew.

    What the polynomial does not describe may belong to any parameter, so the cross-validation error is added to the
    upper limit of a total index and subtracted from the lower limit of a first order index.
    """
    count = max(groups) + 1
    held = np.stack([(expansion.terms[:, np.array(groups) == g] > 0).any(axis=1) for g in range(count)])
    alone = held.sum(axis=0) == 1
    pairs = tuple(combinations(range(count), 2))

    def shares(c: Array) -> Array:
        part = c**2
        part[..., 0] = 0.0
        part = part / part.sum(axis=-1, keepdims=True)
        first = [part[..., held[g] & alone].sum(axis=-1) for g in range(count)]
        total = [part[..., held[g]].sum(axis=-1) for g in range(count)]
        both = [part[..., held[i] & held[j] & (held.sum(axis=0) == 2)].sum(axis=-1) for i, j in pairs]
        return np.stack([*first, *total, *both], axis=-1)

    found = shares(expansion.coefficients.copy())
    matrix, whole = basis(expansion.germs, expansion.terms, u), np.arange(len(y)).reshape(-1, row_cases)
    drawn = np.empty((resamples, expansion.coefficients.size))
    for r in range(resamples):
        rows = whole[stream(seed, r).integers(0, len(whole), size=len(whole))].ravel()
        drawn[r] = np.linalg.lstsq(matrix[rows], y[rows], rcond=None)[0]
    sample = shares(drawn)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(sample, [tail, 1.0 - tail], axis=0)
    unknown = expansion.loo_error if np.isnan(expansion.cv_error) else expansion.cv_error
    low[:count] -= unknown
    high[count : 2 * count] += unknown
    error = sample.std(axis=0, ddof=1)
    cut = (slice(0, count), slice(count, 2 * count), slice(2 * count, None))
    first, total, second = (IndexEstimate(value=found[s], error=error[s], low=low[s], high=high[s]) for s in cut)
    return ExpansionIndices(first=first, total=total, second=second, pairs=pairs, expansion=expansion)
