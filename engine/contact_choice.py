"""Which contact a model runs on: a table, a file, a cone, or profiles whose geometry a study may vary.

Gauge, inclination, back-to-back distance and wear are parameters of a model built from profiles. Each value needs a
table of its own: it is built once, kept packed here and in the cache on disk, and shared by all samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.contact_build import build_contact_table, is_specification, parse_specification
from railsweep.engine.contact_file import read_contact_table
from railsweep.engine.contact_table import ContactTable, conical_table, pack_contact
from railsweep.engine.vehicle.description import Vehicle

Array = NDArray[np.float64]

# Settings of `contact_build.TableSettings` that can be bound, as "contact.<name>".
GEOMETRY = (
    "gauge_mm",
    "gauge_depth_mm",
    "inclination",
    "back_to_back_mm",
    "tape_circle_mm",
    "wheel_wear",
    "rail_wear",
    "smoothing_mm",
)
PREFIX = "contact."
KEPT = 256  # packed tables in memory


class PackedContact(NamedTuple):
    """A table and its arrays for the kernels."""

    table: ContactTable
    grid: Array
    coefficients: Array
    ranges: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ContactChoice:
    """Arguments of `build_contact_table` for one vehicle; empty when the table is given and fixed."""

    arguments: dict[str, Any]
    geometric_lift: bool
    kept: dict[tuple[tuple[str, float], ...], PackedContact] = field(default_factory=dict)

    def packed(self, changes: dict[str, float]) -> PackedContact:
        """The contact with some settings changed."""
        key = tuple(sorted(changes.items()))
        if key not in self.kept:
            table = build_contact_table(**(self.arguments | changes))
            if len(self.kept) >= KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[key] = PackedContact(table, *pack_contact(table, geometric_lift=self.geometric_lift))
        return self.kept[key]


def find_contact(
    vehicle: Vehicle, contact: ContactTable | str | Path | None, *, geometric_lift: bool
) -> tuple[ContactTable, ContactChoice]:
    """The table that a name, specification or file stands for, made for this vehicle, and how to vary it."""
    if isinstance(contact, ContactTable):
        return contact, ContactChoice({}, geometric_lift)
    wanted = contact if contact is not None else vehicle.contact.profiles or "cone"
    wheelsets = [b for b in vehicle.bodies if b.is_wheelset]
    fitting: dict[str, Any] = {
        "young_modulus_pa": vehicle.contact.young_modulus_pa,
        "poisson_ratio": vehicle.contact.poisson_ratio,
    }
    if wheelsets:
        weight = sum(b.mass_kg for b in vehicle.bodies) * (vehicle.gravity_mps2 or 9.81)
        fitting |= {"rolling_radius_m": wheelsets[0].rolling_radius_m, "wheel_load_n": weight / (2 * len(wheelsets))}
    if wanted == "cone":
        spacing: dict[str, Any] = {"half_spacing_m": wheelsets[0].spacing_m} if wheelsets else {}
        return conical_table(**fitting, **spacing), ContactChoice({}, geometric_lift)
    if isinstance(wanted, str) and is_specification(wanted):
        choice = ContactChoice(fitting | parse_specification(wanted), geometric_lift)
        return choice.packed({}).table, choice
    return read_contact_table(wanted), ContactChoice({}, geometric_lift)
