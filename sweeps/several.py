"""The quantity "several": more than one quantity of the same case, for studies that weigh one against another.

``[several] quantities = ["linear_critical_speed", "simulation"]``; the options of each stand below it, for example
``[several.linear_critical_speed]``. A case in which one of them fails has failed; what the others found is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError
from railsweep.engine.model import Model, ModelError
from railsweep.kernels.status import Status
from railsweep.sweeps.quantity import (
    GOOD,
    QUANTITIES,
    BatchQuantity,
    CaseResult,
    Quantity,
    ReadFile,
    quantity_class,
    short,
)

if TYPE_CHECKING:
    from railsweep.sweeps.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralOptions:
    """Names of the quantities, and the options of each."""

    quantities: tuple[str, ...]
    options: dict[str, Any]


class Several:
    """Quantities one after the other."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> SeveralOptions:
        """Names, and a section for each that has options."""
        known = tuple(name for name in QUANTITIES if name != "several")
        names = section.words("quantities", choices=known)
        if len(names) < 2:
            raise InputError(section.where("quantities"), f"is {names}", "at least two")
        options: dict[str, Any] = {}
        for name in names:
            own = section.section(name) if section.has(name) else Section({}, section.file, f"{section.path}.{name}")
            options[name] = quantity_class(name).read_options(own, read_file)
            own.finish()
        return SeveralOptions(quantities=tuple(names), options=options)

    def __init__(self, study: Study, model: Model) -> None:
        given: SeveralOptions = study.options
        self.parts = {
            name: quantity_class(name)(replace(study, quantity=name, options=given.options[name]), model)
            for name in given.quantities
        }
        self.variables = tuple(v for part in self.parts.values() for v in part.variables)
        names = [v.name for v in self.variables]
        for name in names:
            if names.count(name) > 1:
                raise InputError("several.quantities", f"two of them compute {name!r}", "quantities that differ")

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """All of them; the first failure is that of the case."""
        return _joined({name: _part_result(part, model, seed) for name, part in self.parts.items()})

    def batch(self, models: Sequence[Model], seeds: Sequence[int]) -> list[CaseResult]:
        """All of them, each of which may take the cases side by side."""
        found = {
            name: part.batch(models, seeds)
            if isinstance(part, BatchQuantity)
            else [_part_result(part, model, seed) for model, seed in zip(models, seeds, strict=True)]
            for name, part in self.parts.items()
        }
        return [_joined({name: results[i] for name, results in found.items()}) for i in range(len(models))]


def _part_result(part: Quantity, model: Model, seed: int) -> CaseResult:
    try:
        return part(model, seed)
    except ModelError as error:
        return CaseResult(status=int(error.status), reason=short(str(error)))


def _joined(results: dict[str, CaseResult]) -> CaseResult:
    status, reason = int(Status.OK), ""
    numbers: dict[str, Any] = {}
    for name, result in results.items():
        numbers |= result.numbers
        if result.status not in GOOD and not reason:
            status, reason = result.status, short(f"{name}: {result.reason}")
    return CaseResult(status=status, reason=reason, numbers=numbers)
