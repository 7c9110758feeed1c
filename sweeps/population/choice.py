"""The [optimise] section of a study file with its objectives, constraints and parameters, and the axes they become.

A study with them has a dimension `evaluation`: the candidates of the search in the order in which they were asked for.
They are not known beforehand; the driver writes them down, block by block, before it hands a block out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError, shown
from railsweep.sweeps.ledger import write_durably
from railsweep.sweeps.population.annealing import AnnealingSearch
from railsweep.sweeps.population.genetic import GeneticSearch
from railsweep.sweeps.population.hybrid import HybridSearch
from railsweep.sweeps.population.nsga2 import FrontSearch
from railsweep.sweeps.population.optimiser import Box, Optimiser
from railsweep.sweeps.population.pattern import PatternSearch
from railsweep.sweeps.population.variation import CROSSOVERS
from railsweep.sweeps.sensitivity.design import base_points

Array = NDArray[np.float64]

METHODS = ("nsga2", "genetic", "annealing", "pattern", "hybrid")
DIMENSION = "evaluation"
PER_FOLDER = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A variable of the store that is to become small or large."""

    quantity: str
    goal: str

    @property
    def sign(self) -> float:
        """Factor that makes it an objective to be minimised."""
        return -1.0 if self.goal == "max" else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """Limits of a variable of the store."""

    quantity: str
    at_least: float = -np.inf
    at_most: float = np.inf

    def violation(self, value: Array) -> Array:
        """How far values are beyond the limits, as a share of the limit (of 1 for a limit of 0)."""
        found = np.zeros_like(value)
        for limit, beyond in ((self.at_least, self.at_least - value), (self.at_most, value - self.at_most)):
            if np.isfinite(limit):
                found += np.maximum(beyond, 0.0) / (abs(limit) or 1.0)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParameter:
    """One parameter that is searched: its name in the model, the name of its coordinate, its range."""

    parameter: str
    name: str
    low: float
    high: float
    logarithmic: bool


@dataclass(frozen=True, kw_only=True)
class SearchChoice:
    """A whole [optimise] section."""

    method: str
    settings: dict[str, Any]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    parameters: tuple[SearchParameter, ...]
    reference: tuple[float, ...] = field(compare=False, default=())

    @property
    def asks(self) -> bool:
        """Do the cases follow from the results of others?"""
        return True

    @property
    def box(self) -> Box:
        """Ranges of the parameters."""
        return Box(
            lower=tuple(p.low for p in self.parameters),
            upper=tuple(p.high for p in self.parameters),
            logarithmic=tuple(p.logarithmic for p in self.parameters),
        )

    @property
    def optimiser(self) -> Optimiser:
        """The search it asks for."""
        settings, k = dict(self.settings), len(self.parameters)
        if self.method == "nsga2":
            return FrontSearch(dimension=k, objective_count=len(self.objectives), **settings)
        if self.method == "genetic":
            return GeneticSearch(dimension=k, **settings)
        if self.method == "annealing":
            return AnnealingSearch(dimension=k, **settings)
        if self.method == "pattern":
            return PatternSearch(dimension=k, **settings)
        own = {key: settings.pop(key) for key in ("local_iterations", "patience", "tolerance") if key in settings}
        return HybridSearch(global_search=GeneticSearch(dimension=k, **settings), **own)

    def document(self) -> dict[str, Any]:
        """What decides the candidates, as plain data."""
        return {
            "method": self.method,
            **self.settings,
            "objectives": [f"{o.goal} {o.quantity}" for o in self.objectives],
            "constraints": [[c.quantity, c.at_least, c.at_most] for c in self.constraints],
        }

    def axes(self, folder: Path | None = None, block: int = 1) -> tuple[CandidateAxis, ...]:
        """One axis per parameter, all along the dimension `evaluation`; `folder` holds the candidates of a store."""
        record = CandidateRecord(self.box, self.optimiser.evaluations, folder, block)
        return tuple(
            CandidateAxis(
                parameter=p.parameter,
                name=p.name,
                values=(p.low, p.high),
                logarithmic=p.logarithmic,
                sampler=record,
                column=j,
            )
            for j, p in enumerate(self.parameters)
        )

    def minimised(self, values: dict[str, Array]) -> tuple[Array, Array]:
        """Objectives to be minimised and violations from values of variables; what is not finite has failed."""
        f = np.stack([o.sign * values[o.quantity] for o in self.objectives], axis=1)
        v = np.zeros(len(f))
        for constraint in self.constraints:
            v = v + constraint.violation(values[constraint.quantity])
        return f, np.where(np.isfinite(f).all(axis=1) & np.isfinite(v), v, np.inf)


class CandidateRecord:
    """The candidates of a search: one small file per block, whole or not there."""

    def __init__(self, box: Box, size: int, folder: Path | None, block: int) -> None:
        self.box, self.size, self.folder, self.block = box, size, folder, block
        self._kept: dict[int, Array] = {}

    def path(self, first: int) -> Path:
        """File of the block that begins with candidate `first`."""
        if self.folder is None:
            raise InputError("candidates", "of a study without a store", "a store made by 'railsweep optimise'")
        return self.folder / f"{first // PER_FOLDER}" / f"{first}.json"

    def write(self, first: int, candidates: Array) -> None:
        """Write down a block of candidates (points of the unit cube) once."""
        path = self.path(first)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, json.dumps({"first": first, "candidates": candidates.tolist()}))

    def read(self, first: int) -> Array | None:
        """A block of candidates; None when it is not there."""
        try:
            document = json.loads(self.path(first).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return np.array(document["candidates"], dtype=np.float64).reshape(-1, self.box.dimension)

    def load(self, first: int) -> bool:
        """Make a block of candidates known to `values`; False when it is not there yet."""
        found = self.read(first)
        if found is None:
            return False
        self._kept = {first + i: row for i, row in enumerate(self.box.scaled(found))}
        return True

    def values(self, i: int) -> Array:
        """Values of candidate i; of one that is not known yet those of a probe, to try out what a case costs."""
        if i not in self._kept and self.folder is not None:
            self.load(i - i % self.block)
        kept = self._kept.get(i)
        if kept is not None:
            return kept
        return self.box.scaled(base_points("sobol", self.box.dimension, 0, i, i + 1)[0])

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Left out where an axis becomes plain data."""
        return None


@dataclass(frozen=True, kw_only=True)
class CandidateAxis:
    """A parameter along the evaluations of a search; takes the place of `study.Axis`. `values` are its bounds."""

    parameter: str
    name: str
    values: tuple[float, float]
    logarithmic: bool
    sampler: CandidateRecord = field(repr=False, compare=False)
    column: int
    zipped: str = DIMENSION

    @property
    def size(self) -> int:
        """Evaluations of a whole search."""
        return self.sampler.size

    def value(self, i: int) -> float:
        """The value of evaluation i."""
        return float(self.sampler.values(i)[self.column])

    def array(self) -> Array:
        """All values: not known yet."""
        return np.full(self.size, np.nan)


def read_search(
    section: Section, top: Section, parameters: list[Section], nominal: Callable[[str], float]
) -> SearchChoice:
    """Check and read an [optimise] section with [[objective]], [[constraint]] and [[parameter]] tables."""
    method = section.text("method", "nsga2", choices=METHODS)
    settings = _settings(section, method)
    reference = tuple(section.numbers("reference", []))
    section.finish()
    objectives = tuple(_objective(s) for s in top.sections("objective", most=10))
    if not objectives or (len(objectives) > 1 and method != "nsga2"):
        raise InputError(
            top.where("objective"), f"{len(objectives)} for {method}", "one; several for nsga2 (at least one)"
        )
    if reference and len(reference) != len(objectives):
        raise InputError(section.where("reference"), f"{len(reference)} numbers", f"{len(objectives)}, as objectives")
    found = tuple(_parameter(s, nominal) for s in parameters)
    if not found:
        raise InputError(section.where(), "has no parameters", "at least one [[parameter]]")
    choice = SearchChoice(
        method=method,
        settings=settings,
        objectives=objectives,
        constraints=tuple(_constraint(s) for s in top.sections("constraint", most=100)),
        parameters=found,
        reference=reference,
    )
    _check(choice, section)
    return choice


def _check(choice: SearchChoice, section: Section) -> None:
    try:
        _ = choice.optimiser, choice.box
    except InputError as error:
        raise InputError(section.where(), f"{error.where} {error.problem}", error.allowed) from None


def _settings(section: Section, method: str) -> dict[str, Any]:
    def whole(key: str, default: int, least: int = 1) -> int:
        value = section.data.get(key, default) if section.has(key) else default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**7:
            raise InputError(section.where(key), f"is {shown(value)}", f"a whole number from {least} to {10**7}")
        return value

    found: dict[str, Any] = {"seed": whole("seed", 0, least=0)}
    if method in ("nsga2", "genetic", "hybrid"):
        found |= {"population": whole("population", 40, 4), "generations": whole("generations", 50, 0)}
        found["crossover"] = section.text("crossover", "sbx", choices=CROSSOVERS)
        if method != "hybrid":
            found["overlap"] = whole("overlap", 0, 0)
    if method in ("genetic", "hybrid"):
        found["selection"] = section.text("selection", "tournament", choices=("tournament", "rank"))
        found["elite"] = whole("elite", 2, 0)
        for key, default in (("mutation_first", 0.5), ("mutation_last", 0.05), ("immigrants", 0.1)):
            found[key] = section.number(key, default, least=0.0, most=1.0)
    if method == "hybrid":
        found |= {"local_iterations": whole("local_iterations", 400), "patience": whole("patience", 10)}
        found["tolerance"] = section.number("tolerance", 1e-3, least=0.0)
    if method == "annealing":
        found |= {"iterations": whole("iterations", 1000), "chains": whole("chains", 1)}
        found["temperature"] = section.number("temperature", 0.0, least=0.0)
        found["cooling"] = section.number("cooling", 0.9985, above=0.0, most=1.0)
        found["step"] = section.text("step", "random", choices=("random", "golden"))
    if method == "pattern":
        found |= {"iterations": whole("iterations", 200), "starts": whole("starts", 1)}
        found["step"] = section.number("step", 0.25, above=0.0, most=1.0)
        found["smallest"] = section.number("smallest", 1e-4, above=0.0, most=1.0)
    return found


def _objective(section: Section) -> Objective:
    found = Objective(quantity=section.text("quantity"), goal=section.text("goal", choices=("min", "max")))
    section.finish()
    return found


def _constraint(section: Section) -> Constraint:
    limits = {key: section.number(key) for key in ("at_least", "at_most") if section.has(key)}
    found = Constraint(quantity=section.text("quantity"), **limits)
    section.finish()
    if not limits:
        raise InputError(section.where(), "has no limit", "at_least, at_most")
    return found


def _parameter(section: Section, nominal: Callable[[str], float]) -> SearchParameter:
    parameter = section.text("name")
    label = section.text("label", parameter.replace(".", "_"))
    if section.has("relative"):
        share, value = section.number("relative", above=0.0, most=10.0), nominal(parameter)
        low, high = sorted((value * (1.0 - share), value * (1.0 + share)))
    else:
        low, high = section.number("low"), section.number("high")
    found = SearchParameter(
        parameter=parameter, name=label, low=low, high=high, logarithmic=section.flag("logarithmic", False)
    )
    section.finish()
    return found


def with_candidates(study: Any, own: Path, block: int) -> Any:
    """A study as it stands in a store with the records `own` and blocks of `block` cases: a search has candidates."""
    if not isinstance(study.design, SearchChoice):
        return study
    kept = tuple(a for a in study.axes if not isinstance(a, CandidateAxis))
    return replace(study, axes=(*kept, *study.design.axes(own / "candidates", block)))
