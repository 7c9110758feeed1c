"""The [sensitivity] section and the [[parameter]] tables of a study file, and the axes they become.

A study with them has a dimension `sample`, along which all parameters vary together as the design says; other axes of
the study (a straight and a curve) multiply it. What decides the samples is part of the identity of the study; how they
are analysed is not, so that another estimator or policy looks at the same store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError, shown
from railsweep.sweeps.sensitivity.design import SAMPLINGS, Design, base_points
from railsweep.sweeps.sensitivity.distribution import Distribution, read_distribution
from railsweep.sweeps.sensitivity.estimator import ESTIMATORS, INTERVALS, LEAST_REPLICATES
from railsweep.sweeps.sensitivity.failure import FILLS, POLICIES
from railsweep.sweeps.sensitivity.morris import MorrisDesign
from railsweep.sweeps.sensitivity.saltelli import SaltelliDesign

Array = NDArray[np.float64]

METHODS = ("sobol", "morris", "expansion")
DIMENSION = "sample"
MOST_PARAMETERS = 1000
PIECE = 256  # samples turned into values at a time
TAIL = 0.01  # the grid of Morris takes unbounded distributions between these quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertainParameter:
    """One uncertain parameter: its name in the model, the name of its coordinate, its group and its distribution."""

    parameter: str
    name: str
    group: str
    distribution: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class PointDesign:
    """Single points of a sampling, for expansions: every row is one case."""

    dimension: int
    rows: int
    seed: int
    sampling: str = "sobol"

    @property
    def row_cases(self) -> int:
        """One."""
        return 1

    def points(self, first: int, last: int) -> Array:
        """Points of the cases `first` to `last` - 1."""
        return base_points(self.sampling, self.dimension, self.seed, first, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """How the samples are looked at; see `estimator`, `expansion`, `morris`, `failure` for the words.

    `quantities`: variables of the store (empty: all numbers). `tolerance`: the study stops when the limits of all
    first and total indices lie no farther than this from them (0: never). `expansion`: fit one to the cases of a Sobol
    design too.
    """

    quantities: tuple[str, ...] = ()
    estimator: str = "saltelli"
    interval: str = "asymptotic"
    confidence: float = 0.95
    resamples: int = 1000
    tolerance: float = 0.0
    expansion: bool = False
    degree: int = 4
    interaction: int = 2
    folds: int = 5
    failures: str = "refuse"
    fill: str | float = "least"


@dataclass(frozen=True, kw_only=True)
class SensitivityChoice:
    """A whole [sensitivity] section with its parameters."""

    method: str
    samples: int
    seed: int
    sampling: str
    replicates: int
    second_order: bool
    levels: int
    repetitions: int
    parameters: tuple[UncertainParameter, ...]
    analysis: Analysis = field(compare=False)

    @property
    def asks(self) -> bool:
        """Do the cases follow from the results of others? No: the design knows them all."""
        return False

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, in the order of their first parameters."""
        return tuple(dict.fromkeys(p.group for p in self.parameters))

    @property
    def groups(self) -> tuple[int, ...]:
        """Group number of every parameter."""
        return tuple(self.group_names.index(p.group) for p in self.parameters)

    @property
    def design(self) -> Design:
        """The design it asks for."""
        if self.method == "morris":
            return MorrisDesign(
                groups=self.groups, rows=self.samples * self.repetitions, seed=self.seed, levels=self.levels
            )
        if self.method == "expansion":
            return PointDesign(
                dimension=len(self.parameters), rows=self.samples, seed=self.seed, sampling=self.sampling
            )
        return SaltelliDesign(
            groups=self.groups,
            rows=self.samples,
            seed=self.seed,
            second_order=self.second_order,
            sampling=self.sampling,
            replicates=self.replicates,
        )

    def values(self, points: Array) -> Array:
        """Values of the parameters at points of the unit cube."""
        found = np.empty_like(points)
        for j, parameter in enumerate(self.parameters):
            u = points[:, j]
            if self.method == "morris" and not parameter.distribution.bounded:
                u = TAIL + (1.0 - 2.0 * TAIL) * u
            found[:, j] = parameter.distribution.ppf(u)
        return found

    def document(self) -> dict[str, Any]:
        """What decides the samples, as plain data."""
        shared = {"method": self.method, "samples": self.samples, "seed": self.seed}
        every: dict[str, dict[str, Any]] = {
            "sobol": {
                "sampling": self.sampling,
                "replicates": self.replicates,
                "second_order": self.second_order,
                "groups": list(self.groups),
            },
            "morris": {"levels": self.levels, "repetitions": self.repetitions, "groups": list(self.groups)},
            "expansion": {"sampling": self.sampling},
        }
        return shared | every[self.method]

    def axes(self) -> tuple[SampledAxis, ...]:
        """One axis per parameter, all along the dimension `sample`."""
        sampler = Sampler(self)
        return tuple(
            SampledAxis(
                parameter=p.parameter, name=p.name, distribution=p.distribution.document(), sampler=sampler, column=j
            )
            for j, p in enumerate(self.parameters)
        )


class Sampler:
    """Values of samples by number, made in pieces and kept for a while; any number of threads may share one."""

    def __init__(self, choice: SensitivityChoice) -> None:
        self.choice, self.design = choice, choice.design
        self.size = self.design.rows * self.design.row_cases
        self.piece: Callable[[int], Array] = lru_cache(maxsize=64)(self._piece)

    def _piece(self, number: int) -> Array:
        first = number * PIECE
        return self.choice.values(self.design.points(first, min(first + PIECE, self.size)))

    def column(self, j: int) -> Array:
        """All values of one parameter."""
        pieces = (self._piece(number)[:, j] for number in range(-(-self.size // PIECE)))
        return np.concatenate(list(pieces))

    # The axes carry their sampler; it adds nothing to their identity.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sampler) and self.choice == other.choice

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Left out where an axis becomes plain data."""
        return None


@dataclass(frozen=True, kw_only=True)
class SampledAxis:
    """A parameter along the samples of a design; takes the place of `study.Axis`."""

    parameter: str
    name: str
    distribution: dict[str, Any]
    sampler: Sampler = field(repr=False)
    column: int
    zipped: str = DIMENSION

    @property
    def size(self) -> int:
        """Number of samples."""
        return self.sampler.size

    @property
    def values(self) -> tuple[float, ...]:
        """The two values that enclose all others, for checks."""
        return self.sampler.choice.parameters[self.column].distribution.support

    def value(self, i: int) -> float:
        """The value of sample i."""
        piece, place = divmod(i, PIECE)
        return float(self.sampler.piece(piece)[place, self.column])

    def array(self) -> Array:
        """All values."""
        return self.sampler.column(self.column)


def read_sensitivity(section: Section, parameters: list[Section], nominal: Callable[[str], float]) -> SensitivityChoice:
    """Check and read a [sensitivity] section with its [[parameter]] tables; `nominal` knows the vehicle's values."""
    method = section.text("method", "sobol", choices=METHODS)
    samples = _whole(section, "samples", least=2, most=10**8)
    seed = _whole(section, "seed", 0, most=2**53)
    sampling, replicates, second_order, levels, repetitions = "sobol", 1, False, 4, 1
    if method != "morris":
        sampling = section.text("sampling", "sobol", choices=SAMPLINGS)
    if method == "sobol":
        replicates = _whole(section, "replicates", 16 if sampling == "sobol" else 1, least=1, most=1024)
        second_order = section.flag("second_order", False)
        if samples < 2 * replicates:
            raise InputError(section.where("samples"), f"is {samples}", f"at least {2 * replicates}: 2 per replicate")
    if method == "morris":
        levels = _whole(section, "levels", 4, least=2, most=1000)
        repetitions = _whole(section, "repetitions", 1, least=1, most=1000)
    analysis = _analysis(section, method, sampling, replicates)
    section.finish()
    found = tuple(_parameter(p, nominal) for p in parameters)
    if not found:
        raise InputError(section.where(), "has no parameters", "at least one [[parameter]]")
    return SensitivityChoice(
        method=method,
        samples=samples,
        seed=seed,
        sampling=sampling,
        replicates=replicates,
        second_order=second_order,
        levels=levels,
        repetitions=repetitions,
        parameters=found,
        analysis=analysis,
    )


def _analysis(section: Section, method: str, sampling: str, replicates: int) -> Analysis:
    words: dict[str, Any] = {
        "quantities": tuple(section.words("quantities", [])),
        "confidence": section.number("confidence", 0.95, above=0.0, most=0.9999),
        "failures": section.text("failures", "refuse", choices=POLICIES),
    }
    if words["failures"] == "fill":
        fill = section.data.get("fill", "least")
        numeric = isinstance(fill, (int, float)) and not isinstance(fill, bool)
        words["fill"] = section.number("fill") if numeric else section.text("fill", "least", choices=FILLS)
    if method == "sobol":
        words["estimator"] = section.text("estimator", ESTIMATORS[0], choices=ESTIMATORS)
        honest = "replicates" if sampling == "sobol" and replicates >= LEAST_REPLICATES else "asymptotic"
        words["interval"] = section.text("interval", honest, choices=INTERVALS)
        if words["interval"] == "replicates" and replicates < LEAST_REPLICATES:
            raise InputError(
                section.where("interval"),
                f"is replicates with {replicates} of them",
                f"at least {LEAST_REPLICATES} replicates",
            )
        words["tolerance"] = section.number("tolerance", 0.0, least=0.0, most=1.0)
        words["expansion"] = section.flag("expansion", False)
    if method == "expansion" or words.get("expansion"):
        words["degree"] = _whole(section, "degree", 4, least=1, most=20)
        words["interaction"] = _whole(section, "interaction", 2, least=1, most=20)
        words["folds"] = _whole(section, "folds", 5, least=2, most=100)
    if method != "morris":
        words["resamples"] = _whole(section, "resamples", 1000 if method == "sobol" else 200, least=20, most=100_000)
    return Analysis(**words)


def _parameter(section: Section, nominal: Callable[[str], float]) -> UncertainParameter:
    parameter = section.text("name")
    label = section.text("label", parameter.replace(".", "_"))
    group = section.text("group", label)
    return UncertainParameter(
        parameter=parameter,
        name=label,
        group=group,
        distribution=read_distribution(section, lambda: nominal(parameter)),
    )


def _whole(section: Section, key: str, default: int | None = None, *, least: int = 0, most: int = 10**9) -> int:
    if not section.has(key) and default is not None:
        return default
    value = section.data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        problem = f"is {shown(value)}" if key in section.data else "is missing"
        raise InputError(section.where(key), problem, f"a whole number from {least} to {most}")
    return value


def plain_axis(axis: Any) -> dict[str, Any]:
    """An axis as plain data, without what carries its samples."""
    return {k: v for k, v in asdict(axis).items() if k != "sampler"}
