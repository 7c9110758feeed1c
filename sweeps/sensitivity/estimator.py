"""Variance-based indices from a Saltelli design, with their errors, while the rows come in.

With f the quantity, c its mean over all cases and V its variance over A and B:

    saltelli  S_i = mean((f_B - c) (f_ABi - f_A)) / V        jansen  S_i = 1 - mean((f_B - f_ABi)^2) / (2 V)
    both      T_i = mean((f_A - f_ABi)^2) / (2 V)
              S_ij = mean((f_BAi - c) (f_ABj - c) - (f_A - c) (f_B - c)) / V - S_i - S_j

Every index is a function of the means of a few statistics of a row. So the sums of these statistics and of their
products are all that is kept (rows may come in any order, sums may be added), and the three kinds of interval are one
formula each: `asymptotic` propagates the covariance of the means (rows are independent: Monte-Carlo; it is too wide
for quasi-random rows), `replicates` does so with the scatter between independently scrambled sequences, and
`bootstrap` draws rows anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.design import stream

Array = NDArray[np.float64]

ESTIMATORS = ("saltelli", "jansen")
INTERVALS = ("asymptotic", "bootstrap", "replicates")
LEAST_REPLICATES = 8
COMPLEX_STEP = 1e-100  # derivatives by a complex step have no difference to cancel
BOOTSTRAP_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEstimate:
    """Values of a kind of index with their standard errors and confidence limits, one entry per group (or pair)."""

    value: Array
    error: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class SobolIndices:
    """Indices of one quantity.

    Attributes
    ----------
    first, total : IndexEstimate
        Per group.
    second : IndexEstimate or None
        Per pair, in the order of `pairs`.
    pairs : tuple of (int, int)
    mean, variance : float
        Of the quantity.
    rows : int
        Base points used.
    interval : str
        How the limits were found.
    """

    first: IndexEstimate
    total: IndexEstimate
    second: IndexEstimate | None
    pairs: tuple[tuple[int, int], ...]
    mean: float
    variance: float
    rows: int
    interval: str

    @property
    def widest(self) -> float:
        """Largest half-width of the limits of all first and total indices."""
        return float(np.max([(e.high - e.low) / 2.0 for e in (self.first, self.total)]))


@dataclass(slots=True, kw_only=True)
class SobolEstimator:
    """Sums over rows. `tell` takes complete rows in any order; `indices` may be asked at any time.

    Attributes
    ----------
    groups : int
    second_order : bool
    estimator : {"saltelli", "jansen"}
        Of the first order index.
    replicates : int
        As in the design.
    """

    groups: int
    second_order: bool = False
    estimator: str = "saltelli"
    replicates: int = 1
    shift: float = 0.0
    count: Array = field(init=False)
    total: Array = field(init=False)
    product: Array = field(init=False)

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise InputError("estimator", f"is {self.estimator!r}", ", ".join(ESTIMATORS))
        self.count = np.zeros(self.replicates)
        self.total = np.zeros((self.replicates, self.statistics))
        self.product = np.zeros((self.statistics, self.statistics))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups with a second order index."""
        return tuple(combinations(range(self.groups), 2)) if self.second_order else ()

    @property
    def row_cases(self) -> int:
        """Values of a row."""
        return (2 if self.second_order else 1) * self.groups + 2

    @property
    def statistics(self) -> int:
        """Number of statistics of a row."""
        return 4 + 3 * self.groups + (self.groups + len(self.pairs) if self.second_order else 0)

    @property
    def rows(self) -> int:
        """Rows told."""
        return int(self.count.sum())

    def tell(self, rows: NDArray[np.intp], values: Array) -> None:
        """Add complete rows: their numbers, and their values of shape (rows, row_cases)."""
        if values.ndim != 2 or values.shape[1] != self.row_cases:
            raise InputError("values", f"have shape {values.shape}", f"(rows, {self.row_cases})")
        if not np.isfinite(values).all():
            raise InputError("values", "are not all finite", "complete rows (see `failure`)")
        if not len(values):
            return
        if self.rows == 0:
            self.shift = float(values.mean())  # keeps sums of squares small; plays no part in the indices
        x = self.row_statistics(values)
        owner = np.asarray(rows) % self.replicates
        for replicate in np.unique(owner):
            self.count[replicate] += (owner == replicate).sum()
            self.total[replicate] += x[owner == replicate].sum(axis=0)
        self.product += x.T @ x

    def row_statistics(self, values: Array) -> Array:
        """The statistics of every row, shape (rows, statistics)."""
        g, f = self.groups, values - self.shift
        a, ab, b = f[:, :1], f[:, 1 : 1 + g], f[:, -1:]
        first = b * (ab - a) if self.estimator == "saltelli" else (b - ab) ** 2
        columns = [a, b, a * a, b * b, ab - a, first, (a - ab) ** 2]
        if self.second_order:
            ba = f[:, 1 + g : 1 + 2 * g]
            columns += [ba - b]
            columns += [ba[:, i : i + 1] * ab[:, j : j + 1] - a * b for i, j in self.pairs]
        return np.concatenate(columns, axis=1)

    def of_means(self, m: NDArray[Any]) -> NDArray[Any]:
        """Mean, variance, first, total and second order indices from means of the statistics (last axis)."""
        g = self.groups
        a, b = m[..., 0], m[..., 1]
        change, first, squares = m[..., 4 : 4 + g], m[..., 4 + g : 4 + 2 * g], m[..., 4 + 2 * g : 4 + 3 * g]
        variance = (m[..., 2] + m[..., 3]) / 2.0 - ((a + b) / 2.0) ** 2
        centre = ((1 + g) * a + b + change.sum(axis=-1)) / (g + 2)
        if self.second_order:
            other = m[..., 4 + 3 * g : 4 + 4 * g]
            centre = ((1 + g) * (a + b) + change.sum(axis=-1) + other.sum(axis=-1)) / (2 * g + 2)
        v, c = variance[..., None], centre[..., None]
        single = (first - c * change) / v if self.estimator == "saltelli" else 1.0 - first / (2.0 * v)
        parts = [centre[..., None], v, single, squares / (2.0 * v)]
        if self.second_order:
            i, j = np.array(self.pairs).reshape(-1, 2).T
            mixed = m[..., 4 + 4 * g :] - c * (other[..., i] + change[..., j])
            parts.append(mixed / v - single[..., i] - single[..., j])
        found: NDArray[Any] = np.concatenate(parts, axis=-1)
        return found

    def indices(
        self,
        *,
        interval: str = "asymptotic",
        confidence: float = 0.95,
        values: Array | None = None,
        resamples: int = 1000,
        seed: int = 0,
    ) -> SobolIndices:
        """The indices of all rows told so far.

        Parameters
        ----------
        interval : {"asymptotic", "bootstrap", "replicates"}
        confidence : float
            Nominal coverage of the limits.
        values : Array
            All rows once more; the bootstrap draws from them.
        resamples, seed : int
            Of the bootstrap.
        """
        from scipy.special import ndtri, stdtrit

        if interval not in INTERVALS:
            raise InputError("interval", f"is {interval!r}", ", ".join(INTERVALS))
        n = self.rows
        if n < 2:
            raise InputError("rows", f"{n} so far", "at least 2")
        means = self.total.sum(axis=0) / n
        with np.errstate(divide="ignore", invalid="ignore"):
            centre, variance, *_ = found = np.asarray(self.of_means(means), dtype=np.float64)
        if not variance > 0.0:
            raise InputError("quantity", "does not vary over the samples", "a quantity that depends on the parameters")
        if interval == "bootstrap":
            error, low, high = self._bootstrap(values, confidence, resamples, seed)
        else:
            if interval == "replicates":
                covariance, freedom = self._between_replicates()
                quantile = float(stdtrit(freedom, 0.5 + confidence / 2.0))
            else:
                covariance = (self.product / n - np.outer(means, means)) / (n - 1)
                quantile = float(ndtri(0.5 + confidence / 2.0))
            slope = np.imag(self.of_means(means + 1j * COMPLEX_STEP * np.eye(means.size))) / COMPLEX_STEP
            error = np.sqrt(np.maximum(0.0, np.einsum("ki,kl,li->i", slope, covariance, slope)))
            low, high = found - quantile * error, found + quantile * error
        g = self.groups
        cut = [slice(2, 2 + g), slice(2 + g, 2 + 2 * g), slice(2 + 2 * g, None)]
        first, total, second = (IndexEstimate(value=found[s], error=error[s], low=low[s], high=high[s]) for s in cut)
        return SobolIndices(
            first=first,
            total=total,
            second=second if self.second_order else None,
            pairs=self.pairs,
            mean=float(centre) + self.shift,
            variance=float(variance),
            rows=n,
            interval=interval,
        )

    def _between_replicates(self) -> tuple[Array, int]:
        used = self.count > 0
        groups = int(used.sum())
        if groups < LEAST_REPLICATES:
            raise InputError("interval", f"replicates with {groups} sequences", f"at least {LEAST_REPLICATES}")
        weight = self.count[used] / self.rows
        means = self.total[used] / self.count[used, None]
        apart = (means - weight @ means) * weight[:, None]
        return apart.T @ apart * groups / (groups - 1.0), groups - 1

    def _bootstrap(
        self, values: Array | None, confidence: float, resamples: int, seed: int
    ) -> tuple[Array, Array, Array]:
        if values is None or len(values) != self.rows:
            raise InputError("values", "are not those that were told", "all rows, for the bootstrap")
        x, n = self.row_statistics(values), len(values)
        drawn = []
        for batch in range(-(-resamples // BOOTSTRAP_BATCH)):
            draw = stream(seed, batch)
            size = min(BOOTSTRAP_BATCH, resamples - batch * BOOTSTRAP_BATCH)
            weight = draw.multinomial(n, np.full(n, 1.0 / n), size=size) / n
            drawn.append(np.asarray(self.of_means(weight @ x), dtype=np.float64))
        sample = np.concatenate(drawn)
        tail = (1.0 - confidence) / 2.0
        low, high = np.quantile(sample, [tail, 1.0 - tail], axis=0)
        return sample.std(axis=0, ddof=1), low, high


def sobol_indices(
    values: Array,
    *,
    groups: int,
    second_order: bool = False,
    estimator: str = "saltelli",
    replicates: int = 1,
    rows: NDArray[np.intp] | None = None,
    interval: str = "asymptotic",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> SobolIndices:
    """Indices of the values of a whole design, shape (rows, row_cases).

    Examples
    --------
    >>> from railsweep.sweeps.sensitivity.saltelli import SaltelliDesign, ungrouped
    >>> design = SaltelliDesign(groups=ungrouped(2), rows=1024, seed=1)
    >>> x = design.points(0, 1024 * design.row_cases)
    >>> found = sobol_indices((x[:, 0] + 2.0 * x[:, 1]).reshape(1024, -1), groups=2)
    >>> abs(found.first.value[1] - 0.8) < 0.01
    True
    """
    sums = SobolEstimator(groups=groups, second_order=second_order, estimator=estimator, replicates=replicates)
    sums.tell(np.arange(len(values)) if rows is None else rows, values)
    return sums.indices(interval=interval, confidence=confidence, values=values, resamples=resamples, seed=seed)
