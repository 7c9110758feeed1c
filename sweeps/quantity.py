"""What a study can compute: the contract of a quantity, and the register of those we have.

A quantity turns one model into the numbers of one case. It joins by one line in `QUANTITIES`; if it has options of its
own, they stand in the study file under its name, ``[critical_speed]``, and are part of the identity of the study.

The module of a quantity imports the engine inside `__init__` and `__call__`: reading a study file loads no kernels.

A case depends on its own values and its seed only, never on its neighbours, so that any order and any block size give
the same bits. A quantity that follows something from place to place (a ramp, a branch) therefore does so within one
case and returns arrays, along dimensions of its own (`Dimension`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError
from railsweep.kernels.status import Status

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.sweeps.study import Study

# Name in study files -> where its class is.
QUANTITIES = {
    "assessment": "railsweep.sweeps.assessed_run:AssessedRun",
    "bifurcation": "railsweep.sweeps.bifurcation.diagram_quantity:DiagramQuantity",
    "critical_speed": "railsweep.sweeps.bifurcation.critical_quantity:CriticalSpeedQuantity",
    "simulation": "railsweep.sweeps.time_history:TimeHistory",
    "linear_critical_speed": "railsweep.sweeps.linear_critical_speed:LinearCriticalSpeed",
    "misfit": "railsweep.sweeps.misfit:Misfit",
    "nonlinear_critical_speed": "railsweep.sweeps.bifurcation.nonlinear_critical_speed:NonlinearCriticalSpeed",
    "several": "railsweep.sweeps.several:Several",
    "spectrum": "railsweep.sweeps.eigenvalue:Eigenvalues",
}

REFUSED = 20  # the model refused the values of this case
ERROR = 21  # an exception nobody foresaw
PENDING = 255  # not computed yet

CaseStatus = IntEnum(  # type: ignore[misc]
    "CaseStatus",
    {**{s.name: int(s) for s in Status}, "REFUSED": REFUSED, "ERROR": ERROR, "PENDING": PENDING},
)
GOOD = (int(Status.OK), int(Status.EVENT))
MOST_REASON = 200

ReadFile = Callable[[str, str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A dimension of a variable beyond those of the study; with `values` it gets a coordinate in the store."""

    name: str
    length: int
    values: tuple[float, ...] = ()
    unit: str = "1"
    title: str = ""

    def __post_init__(self) -> None:
        if self.length < 1 or (self.values and len(self.values) != self.length):
            raise InputError(f"dimension {self.name}", f"has {len(self.values)} values", f"{self.length}, or none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One array of the store: name, unit, what it is, type (float64, int64 or string) and dimensions of its own."""

    name: str
    unit: str
    title: str
    dtype: str = "float64"
    dimensions: tuple[Dimension, ...] = ()

    @property
    def extra(self) -> tuple[int, ...]:
        """Shape of the value of one case."""
        return tuple(d.length for d in self.dimensions)

    @property
    def fill(self) -> Any:
        """Value where nothing was computed."""
        return {"float64": np.nan, "string": ""}.get(self.dtype, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """Outcome of a case; variables that are not in `numbers` keep their fill value.

    `status` is a `railsweep.kernels.status.Status`: OK and EVENT are successes, all others are failures and carry a
    reason.
    """

    status: int
    reason: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


class Quantity(Protocol):
    """What is computed in every case of a study.

    Attributes
    ----------
    variables : tuple of Variable
        The arrays it fills; `status` and `reason` are added to them. Decided by the study alone.
    """

    variables: tuple[Variable, ...]

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> Any:
        """Read the quantity's own section of a study file (empty when it is absent).

        Ask the section for every key by name; what was not asked for is refused afterwards. `read_file(where, name)`
        gives the contents of a file beside the study, which becomes an input of the study: copied into the store and
        part of the identity. Returns a frozen dataclass of plain values (`Study.options`), or None.
        """

    def __init__(self, study: Study, model: Model) -> None:
        """Prepare for a study, whose axes `model` has not been bound to yet.

        Raise InputError for axes or sections that make no sense for this quantity.
        """

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """Compute one case. `model` is bound to its values; any number of threads may call at a time.

        ModelError (with its status) and InputError may be raised: they become results. After
        `study.solver.time_limit_s` seconds give up and return `over_limit`.
        """


@runtime_checkable
class LongQuantity(Protocol):
    """A quantity whose cases are too long to be computed for a measurement: it says itself what they take.

    Attributes
    ----------
    case_seconds : float
        About how long a case takes.
    """

    case_seconds: float

    def warm_up(self, model: Model) -> None:
        """Call the compiled code that cases need, once and shortly."""


@runtime_checkable
class BatchQuantity(Protocol):
    """A quantity that computes cases side by side faster than one after the other, and with the same bits."""

    def batch(self, models: Sequence[Model], seeds: Sequence[int]) -> list[CaseResult]:
        """Compute cases; what it raises is no result: the cases are then computed one by one."""


def quantity_class(name: str) -> type[Quantity]:
    """The class behind a name of `QUANTITIES`."""
    module, _, attribute = QUANTITIES[name].partition(":")
    found: type[Quantity] = getattr(import_module(module), attribute)
    return found


def no_options(section: Section) -> None:
    """For quantities without options: refuse a section of that name."""
    if section.data:
        raise InputError(section.where(), "is there, but this quantity has no options", "no such section")


def refuse_axis(study: Study, parameter: str, why: str) -> None:
    """Refuse a study that varies a parameter which the quantity itself finds or varies."""
    for axis in study.axes:
        if axis.parameter == parameter:
            raise InputError(f"axis {axis.name}", f"varies {parameter}", why)


def over_limit(seconds: float) -> CaseResult:
    """A case that took too long. No numbers: how far it came within its time is not a property of the case."""
    return CaseResult(status=int(Status.TIME_LIMIT), reason=f"longer than {seconds:g} s")


def short(text: str) -> str:
    """A reason of one line and bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_REASON else line[: MOST_REASON - 3] + "..."
