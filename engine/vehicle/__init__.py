"""Vehicle descriptions: typed records, and the strict TOML reader that makes them."""

from railsweep.engine.vehicle.description import (
    Body,
    ContactSettings,
    CoulombLaw,
    Element,
    GapLaw,
    Link,
    TableLaw,
    Vehicle,
)
from railsweep.engine.vehicle.reader import library_vehicles, load_vehicle, parse_vehicle

__all__ = [
    "Body",
    "ContactSettings",
    "CoulombLaw",
    "Element",
    "GapLaw",
    "Link",
    "TableLaw",
    "Vehicle",
    "library_vehicles",
    "load_vehicle",
    "parse_vehicle",
]
