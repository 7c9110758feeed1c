"""Names for every number of a model that a study may vary, and how a value is written into the packed arrays.

A parameter is one name, its unit, its present value and the places in the float buffer that follow from it. Setting it
is a few writes; nothing is assembled again. Unit suffixes may be left out of a name where that is unambiguous:
"secondary_yaw.damping" and "secondary_yaw.damping_nspm" are the same parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.track import CANT_BASE_MM, TIGHTEST_RADIUS_M


def identity(value: float) -> float:
    """The value itself."""
    return value


def inverse(value: float) -> float:
    """1 / value."""
    return 1.0 / value


def curvature_of_radius(radius_m: float) -> float:
    """Curvature [1/m] of a radius [m]; an infinite radius is straight track."""
    return 0.0 if math.isinf(radius_m) else 1.0 / radius_m


def angle_of_cant(cant_mm: float) -> float:
    """Cant angle [rad] of a cant [mm]."""
    return math.asin(cant_mm / CANT_BASE_MM)


Write = tuple[int, Callable[[float], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number of a model.

    Attributes
    ----------
    name : str
        Canonical name, with the unit as its last part.
    unit : str
        Unit in words.
    least, most : float
        Allowed range, both ends included.
    above : float
        Exclusive lower bound.
    writes : tuple of (slot, conversion)
        Places in the float buffer.
    changes_preload, changes_track, changes_geometry, changes_irregularity : bool
        Must the static preload, the kind of track, the rest vectors of the links, or the realisation of a random track
        be found again after a change?
    """

    name: str
    unit: str
    writes: tuple[Write, ...]
    above: float = -math.inf
    least: float = -math.inf
    most: float = math.inf
    changes_preload: bool = False
    changes_track: bool = False
    changes_geometry: bool = False
    changes_irregularity: bool = False

    def check(self, value: float) -> float:
        """The value as a float, or an error that names the parameter."""
        number = float(value)
        if self.name == "track.radius_m":
            if math.isnan(number) or abs(number) < TIGHTEST_RADIUS_M:
                raise InputError(self.name, f"is {value!r}", f"at least {TIGHTEST_RADIUS_M:g} m either way, or inf")
            return number
        if self.changes_irregularity and number != int(number):
            raise InputError(self.name, f"is {value!r}", "a whole number")
        if self.above < number <= self.most and number >= self.least and math.isfinite(number):
            return number
        return check_number(self.name, number, above=self.above, least=self.least, most=self.most)


# Unit suffix of a name -> unit in words. The suffix may be dropped when asking for a parameter.
UNITS = {
    "npm": "N/m",
    "nspm": "N s/m",
    "nmprad": "N m/rad",
    "nmsprad": "N m s/rad",
    "kg": "kg",
    "kgm2": "kg m^2",
    "m": "m",
    "mm": "mm",
    "mps": "m/s",
    "mps2": "m/s^2",
    "n": "N",
    "pa": "Pa",
    "rad": "rad",
    "1pm": "1/m",
}


def short_name(name: str) -> str:
    """The name without its unit suffix."""
    head, _, tail = name.rpartition("_")
    return head if head and tail in UNITS else name


class ParameterTable:
    """All parameters of a model by name."""

    def __init__(self, parameters: list[Parameter]) -> None:
        self.by_name = {p.name: p for p in parameters}
        self.by_short: dict[str, Parameter | None] = {}
        for p in parameters:
            short = short_name(p.name)
            self.by_short[short] = None if short in self.by_short else p

    def __getitem__(self, name: str) -> Parameter:
        found = self.by_name.get(name) or self.by_short.get(name)
        if found is None:
            raise InputError(
                "parameter",
                f"{name!r} is not a parameter of this model, {nearest(name, list(self.by_name))}",
                "see Model.parameters",
            )
        return found

    def names(self) -> list[str]:
        """All canonical names."""
        return list(self.by_name)


def apply(parameters: list[Parameter], values: NDArray[np.float64] | list[float], buffer: NDArray[np.float64]) -> None:
    """Check the values and write them into the buffer."""
    for parameter, value in zip(parameters, values, strict=True):
        number = parameter.check(float(value))
        for position, conversion in parameter.writes:
            buffer[position] = conversion(number)
