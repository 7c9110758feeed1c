"""Quantile functions against scipy, and what study files may say."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from railsweep.engine.document import parse_toml
from railsweep.engine.errors import InputError
from railsweep.sweeps.sensitivity.distribution import Distribution, read_distribution

CASES = [
    (Distribution(kind="uniform", low=2.0, high=5.0), stats.uniform(2.0, 3.0)),
    (Distribution(kind="normal", mean=2.0, std=0.5), stats.norm(2.0, 0.5)),
    (
        Distribution(kind="truncated_normal", mean=2.0, std=0.5, low=1.8, high=3.0),
        stats.truncnorm(-0.4, 2.0, loc=2.0, scale=0.5),
    ),
    (Distribution(kind="lognormal", median=3.0, factor=1.2), stats.lognorm(np.log(1.2), scale=3.0)),
    (Distribution(kind="triangular", low=1.0, mode=2.0, high=5.0), stats.triang(0.25, loc=1.0, scale=4.0)),
    (Distribution(kind="triangular", low=1.0, mode=1.0, high=5.0), stats.triang(0.0, loc=1.0, scale=4.0)),
]


@pytest.mark.parametrize(("ours", "theirs"), CASES, ids=lambda d: getattr(d, "kind", ""))
def test_quantiles_agree_with_scipy(ours: Distribution, theirs: Any) -> None:
    u = np.linspace(0.001, 0.999, 101)
    assert np.allclose(ours.ppf(u), theirs.ppf(u), rtol=1e-9)
    assert np.isfinite(ours.ppf([0.0, 1.0])).all()


def test_a_table_is_linear_between_its_points() -> None:
    table = Distribution(kind="table", points=(1.0, 2.0, 4.0), cumulative=(0.0, 0.5, 1.0))
    assert table.ppf([0.0, 0.25, 0.5, 0.75, 1.0]).tolist() == [1.0, 1.5, 2.0, 3.0, 4.0]


def read(text: str, nominal: float = 200.0) -> Distribution:
    return read_distribution(parse_toml(text.encode(), "study.toml"), lambda: nominal)


def test_relative_distributions_stand_around_the_nominal_value() -> None:
    assert read("relative = 0.1").support == (180.0, 220.0)
    assert read("relative = 0.1", -200.0).support == (-220.0, -180.0)
    assert read('kind = "normal"\nrelative = 0.05') == Distribution(kind="normal", mean=200.0, std=10.0)
    assert read('kind = "truncated_normal"\nrelative = 0.05').support == (170.0, 230.0)
    assert read('kind = "lognormal"\nrelative = 0.1') == Distribution(kind="lognormal", median=200.0, factor=1.1)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("relative = 0.0", "relative"),
        ("relative = 0.1\nlow = 1.0", "low"),
        ("low = 2.0\nhigh = 1.0", "low < high"),
        ('kind = "gauss"', "gauss"),
        ('kind = "normal"\nmean = 1.0\nstd = 0.0', "std"),
        ('kind = "table"\npoints = [1.0, 2.0]\ncumulative = [0.1, 1.0]', "cumulative"),
        ('kind = "triangular"\nlow = 0.0\nmode = 3.0\nhigh = 1.0', "mode"),
        ("low = 1.0", "high"),
        ("low = nan\nhigh = 1.0", "low"),
    ],
)
def test_wrong_distributions_are_refused_by_name(text: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read(text)


def test_no_share_of_a_nominal_value_of_zero() -> None:
    with pytest.raises(InputError, match="nominal value is 0"):
        read("relative = 0.1", 0.0)
