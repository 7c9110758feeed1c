"""How an uncertain parameter is spread: a distribution is its quantile function, so any design of the unit cube fits.

Written in a study file as one table, for example ``{ kind = "normal", mean = 1.0e5, std = 5.0e3 }`` or
``{ kind = "uniform", relative = 0.10 }``: within 10 % of the value the vehicle has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError

Array = NDArray[np.float64]

KINDS = ("uniform", "normal", "truncated_normal", "lognormal", "triangular", "table")
NEAREST_TO_END = 2.0**-53  # quantiles of unbounded distributions are asked for no nearer to 0 and 1
MOST_TABLE_POINTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One distribution; what does not belong to its kind stays at its default.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    low, high : float
        Ends of a uniform, triangular or truncated normal distribution.
    mean, std : float
        Of a normal distribution (before truncation).
    mode : float
        Peak of a triangular distribution.
    median, factor : float
        Of a log-normal distribution: the standard deviation of the logarithm is log(factor).
    points, cumulative : tuple of float
        Of a table: increasing values with their cumulative probabilities from 0 to 1; linear in between.
    """

    kind: str
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    mode: float = 0.0
    median: float = 0.0
    factor: float = 0.0
    points: tuple[float, ...] = ()
    cumulative: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError("distribution kind", f"is {self.kind!r}", ", ".join(KINDS))
        if self.kind in ("uniform", "triangular", "truncated_normal") and not self.low < self.high:
            raise InputError(f"{self.kind} distribution", f"from {self.low:g} to {self.high:g}", "low < high")
        if self.kind in ("normal", "truncated_normal") and not self.std > 0.0:
            raise InputError(f"{self.kind} distribution", f"std is {self.std:g}", "std > 0")
        if self.kind == "triangular" and not self.low <= self.mode <= self.high:
            raise InputError("triangular distribution", f"mode is {self.mode:g}", "low <= mode <= high")
        if self.kind == "lognormal" and not (self.median > 0.0 and self.factor > 1.0):
            raise InputError(
                "lognormal distribution", f"median {self.median:g}, factor {self.factor:g}", "median > 0, factor > 1"
            )
        if self.kind == "table":
            self._check_table()

    def _check_table(self) -> None:
        x, p = np.array(self.points), np.array(self.cumulative)
        if not 2 <= x.size == p.size <= MOST_TABLE_POINTS:
            raise InputError(
                "table distribution",
                f"{x.size} points and {p.size} cumulative",
                f"equally many, 2 to {MOST_TABLE_POINTS}",
            )
        if not (np.diff(x) > 0.0).all():
            raise InputError("table distribution", "points do not increase", "increasing points")
        if p[0] != 0.0 or p[-1] != 1.0 or not (np.diff(p) > 0.0).all():
            raise InputError(
                "table distribution", f"cumulative from {p[0]:g} to {p[-1]:g}", "increasing probabilities from 0 to 1"
            )

    @property
    def germ(self) -> str:
        """Standard variable in which functions of this parameter are smooth: "normal" or "uniform"."""
        return "normal" if self.kind in ("normal", "lognormal") else "uniform"

    @property
    def bounded(self) -> bool:
        """Has it two ends?"""
        return self.germ == "uniform"

    def ppf(self, u: ArrayLike) -> Array:
        """Values at the probabilities `u` in [0, 1]."""
        p = np.asarray(u, dtype=np.float64)
        quantile: Callable[[Array], Array] = getattr(self, f"_{self.kind}")
        return quantile(p)

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value that `ppf` gives."""
        low, high = self.ppf([0.0, 1.0])
        return float(low), float(high)

    def document(self) -> dict[str, Any]:
        """Plain data: what was set."""
        empty: tuple[Any, ...] = (0.0, ())
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items() if v not in empty}

    def _uniform(self, p: Array) -> Array:
        return self.low + (self.high - self.low) * p

    def _normal(self, p: Array) -> Array:
        return self.mean + self.std * standard_normal(p)

    def _truncated_normal(self, p: Array) -> Array:
        from scipy.stats import truncnorm

        a, b = (self.low - self.mean) / self.std, (self.high - self.mean) / self.std
        return np.clip(self.mean + self.std * np.asarray(truncnorm.ppf(p, a, b)), self.low, self.high)

    def _lognormal(self, p: Array) -> Array:
        return self.median * np.exp(math.log(self.factor) * standard_normal(p))

    def _triangular(self, p: Array) -> Array:
        width, left = self.high - self.low, self.mode - self.low
        rising = self.low + np.sqrt(p * width * left)
        falling = self.high - np.sqrt((1.0 - p) * width * (width - left))
        return np.where(p * width < left, rising, falling)

    def _table(self, p: Array) -> Array:
        return np.interp(p, self.cumulative, self.points)


def standard_normal(p: ArrayLike) -> Array:
    """Quantiles of the standard normal distribution, finite at 0 and 1."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(p, NEAREST_TO_END, 1.0 - NEAREST_TO_END)), dtype=np.float64)


def read_distribution(section: Section, nominal: Callable[[], float]) -> Distribution:
    """A distribution from its table. `nominal` gives the value of the parameter in the vehicle, for `relative`.

    ``relative = 0.1`` means: uniform and triangular within 10 % of the nominal value; normal with that share of it as
    the standard deviation (truncated at three of them for truncated_normal); lognormal with the factor 1.1.
    """
    kind = section.text("kind", "uniform", choices=KINDS)
    if section.has("relative"):
        share = section.number("relative", above=0.0, most=10.0)
        section.finish()
        return relative_distribution(kind, share, nominal(), section.where("relative"))
    keys = {
        "uniform": ("low", "high"),
        "normal": ("mean", "std"),
        "truncated_normal": ("mean", "std", "low", "high"),
        "lognormal": ("median", "factor"),
        "triangular": ("low", "mode", "high"),
        "table": (),
    }[kind]
    numbers = {key: section.number(key) for key in keys}
    points: tuple[float, ...] = ()
    cumulative: tuple[float, ...] = ()
    if kind == "table":
        points, cumulative = tuple(section.numbers("points")), tuple(section.numbers("cumulative", least=0.0))
    section.finish()
    try:
        return Distribution(kind=kind, points=points, cumulative=cumulative, **numbers)
    except InputError as error:
        raise InputError(section.where(), error.problem, error.allowed) from None


def relative_distribution(kind: str, share: float, nominal: float, where: str) -> Distribution:
    """A distribution around a nominal value; see `read_distribution`."""
    spread = abs(nominal) * share
    if spread == 0.0:
        raise InputError(where, "the nominal value is 0", "low and high, or another absolute form")
    if kind in ("uniform", "triangular"):
        return Distribution(
            kind=kind, low=nominal - spread, high=nominal + spread, mode=nominal if kind == "triangular" else 0.0
        )
    if kind == "normal":
        return Distribution(kind=kind, mean=nominal, std=spread)
    if kind == "truncated_normal":
        return Distribution(
            kind=kind, mean=nominal, std=spread, low=nominal - 3.0 * spread, high=nominal + 3.0 * spread
        )
    if kind == "lognormal" and nominal > 0.0:
        return Distribution(kind=kind, median=nominal, factor=1.0 + share)
    raise InputError(where, f"makes no {kind} distribution around {nominal:g}", "its own numbers")
