"""Which parameters a packed vehicle has: operation, track, contact, bodies and links, by name.

A link or body that stands for several (`for_each`) has one parameter for the group, ``secondary_yaw.damping_nspm``,
and one for each member, ``secondary_yaw.leading.left.damping_nspm``. Track numbers keep their signs:
``track.cant_mm`` is positive with the LEFT rail raised, ``track.radius_m`` in a right-hand curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.irregularity_spectrum import LARGEST_SEED
from railsweep.engine.parameter import (
    UNITS,
    Parameter,
    Write,
    angle_of_cant,
    curvature_of_radius,
    identity,
    inverse,
)
from railsweep.engine.track import LARGEST_CANT_MM, TIGHTEST_RADIUS_M
from railsweep.engine.vehicle.description import Element, Link, Vehicle
from railsweep.kernels import record as slot

Integers = NDArray[np.int64]

FASTEST_MPS = 1000.0
SCALE_LIMIT = 1e3
# factors on the irregularities: on all channels together and on each
SCALES = {
    "irregularity.scale": slot.SCALE_ALL,
    "irregularity.vertical_scale": slot.SCALE_VERTICAL,
    "irregularity.lateral_scale": slot.SCALE_LATERAL,
    "irregularity.cross_level_scale": slot.SCALE_CROSS_LEVEL,
    "irregularity.gauge_scale": slot.SCALE_GAUGE,
}

# slot name of an element constant -> record slot
CONSTANT_SLOTS = {
    "stiffness": slot.STIFFNESS,
    "damping": slot.DAMPING,
    "series_stiffness": slot.SERIES_STIFFNESS,
    "series_damping": slot.SERIES_DAMPING,
    "reservoir_stiffness": slot.RESERVOIR_STIFFNESS,
    "air_mass": slot.AIR_MASS,
    "damping_exponent": slot.DAMPING_EXPONENT,
    "friction_force": slot.FRICTION_FORCE,
    "friction_length": slot.FRICTION_LENGTH,
}
LAW_SLOTS = {"a": slot.LAW_A, "b": slot.LAW_B, "x_scale": slot.LAW_X_SCALE, "force_scale": slot.LAW_Y_SCALE}
MUST_BE_POSITIVE = {"series_stiffness", "series_damping", "reservoir_stiffness", "air_mass", "friction_length"}
INERTIAS = (
    ("inertia_roll_kgm2", slot.INERTIA_ROLL, slot.INV_INERTIA_ROLL),
    ("inertia_pitch_kgm2", slot.INERTIA_PITCH, slot.INV_INERTIA_PITCH),
    ("inertia_yaw_kgm2", slot.INERTIA_YAW, slot.INV_INERTIA_YAW),
)


def model_parameters(
    vehicle: Vehicle, link_index: Integers, offsets: dict[str, int], *, physics: bool
) -> list[Parameter]:
    """All parameters of a packed vehicle. `offsets` says where each float record starts in the buffer."""
    first = offsets["operation"]
    speed, gravity = first + slot.SPEED, first + slot.GRAVITY
    friction, modulus = first + slot.FRICTION, first + slot.SHEAR_MODULUS
    curvature, cant = first + slot.CURVATURE, first + slot.CANT
    tightest = 1.0 / TIGHTEST_RADIUS_M

    def one(name: str, position: int, conversion: Callable[[float], float] = identity, **bounds: float) -> Parameter:
        return Parameter(
            name=name,
            unit=_unit(name),
            writes=((position, conversion),),
            above=bounds.get("above", -math.inf),
            least=bounds.get("least", -math.inf),
            most=bounds.get("most", math.inf),
            changes_track=name.startswith("track."),
            changes_preload=name == "gravity_mps2",
            changes_irregularity=name == "irregularity.seed",
        )

    return [
        one("speed_mps", speed, above=0.0, most=FASTEST_MPS),
        one("gravity_mps2", gravity, least=0.0, most=100.0),
        one("contact.friction", friction, least=0.0, most=2.0),
        one("contact.shear_modulus_pa", modulus, above=0.0),
        one("contact.normal_damping_nspm", first + slot.NORMAL_DAMPING, least=0.0, most=1e7),
        one("track.curvature_1pm", curvature, least=-tightest, most=tightest),
        one("track.cant_rad", cant, least=-0.5, most=0.5),
        one("track.radius_m", curvature, curvature_of_radius),
        one("track.cant_mm", cant, angle_of_cant, least=-LARGEST_CANT_MM, most=LARGEST_CANT_MM),
        one("irregularity.seed", first + slot.IRREGULARITY_SEED, least=0.0, most=float(LARGEST_SEED)),
        *(one(name, first + position, least=-SCALE_LIMIT, most=SCALE_LIMIT) for name, position in SCALES.items()),
        *_body_parameters(vehicle, offsets["body"], physics=physics),
        *_link_parameters(vehicle, link_index, offsets),
    ]


def _body_parameters(vehicle: Vehicle, base: int, *, physics: bool) -> list[Parameter]:
    members: dict[str, list[int]] = {}
    for i, body in enumerate(vehicle.bodies):
        members.setdefault(body.name, []).append(i)
        if body.group != body.name and body.group not in {b.name for b in vehicle.bodies}:
            members.setdefault(body.group, []).append(i)
    found = []
    for name, numbers in members.items():
        rows = [base + i * slot.BODY_WIDTH for i in numbers]
        writes: list[Write] = []
        for row in rows:
            writes += [(row + slot.MASS, identity), (row + slot.INV_MASS, inverse)]
        found.append(
            Parameter(name=f"{name}.mass_kg", unit="kg", writes=tuple(writes), above=0.0, changes_preload=True)
        )
        for key, direct, inverted in INERTIAS:
            writes = []
            for i, row in zip(numbers, rows, strict=True):
                writes.append((row + direct, identity))
                borrowed = not physics and not vehicle.bodies[i].is_wheelset  # A8: pitch turns with the roll inertia
                if not (borrowed and inverted == slot.INV_INERTIA_PITCH):
                    writes.append((row + inverted, inverse))
                if borrowed and inverted == slot.INV_INERTIA_ROLL:
                    writes.append((row + slot.INV_INERTIA_PITCH, inverse))
            found.append(Parameter(name=f"{name}.{key}", unit="kg m^2", writes=tuple(writes), above=0.0))
    return found


class _Collected:
    """Parameters of links under construction: one name may stand for many links."""

    def __init__(self) -> None:
        self.writes: dict[str, list[Write]] = {}
        self.bounds: dict[str, _Bounds] = {}

    def add(self, name: str, write: Write, bounds: _Bounds) -> None:
        self.writes.setdefault(name, []).append(write)
        self.bounds.setdefault(name, bounds)

    def parameters(self) -> list[Parameter]:
        return [
            Parameter(
                name=name,
                unit=_unit(name),
                writes=tuple(writes),
                above=self.bounds[name].above,
                least=self.bounds[name].least,
                changes_preload=self.bounds[name].preload,
                changes_geometry=self.bounds[name].geometry,
            )
            for name, writes in self.writes.items()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    above: float = -math.inf
    least: float = -math.inf
    preload: bool = False
    geometry: bool = False


@dataclass(frozen=True, slots=True)
class _Affine:
    """value -> scale * value + shift."""

    scale: float
    shift: float

    def __call__(self, value: float) -> float:
        return self.scale * value + self.shift


def _link_parameters(vehicle: Vehicle, link_index: Integers, offsets: dict[str, int]) -> list[Parameter]:
    """Every named number of the links, for a whole group and for each of its members."""
    collected = _Collected()
    k = 0
    for link in vehicle.links:
        for element in link.elements:
            row = offsets["link"] + k * slot.LINK_WIDTH
            for name, place in element.names.items():
                kind, _, part = place.partition(".")
                if part:
                    number = int(link_index[k, slot.SPRING_LAW if kind == "spring" else slot.DAMPER_LAW])
                    position = offsets["law"] + number * slot.LAW_WIDTH + LAW_SLOTS[part]
                else:
                    position = row + CONSTANT_SLOTS[place]
                positive = place in MUST_BE_POSITIVE or part == "x_scale" or place == "damper.b"
                bounds = _Bounds(
                    above=0.0 if positive else -math.inf,
                    least=-math.inf if positive else 0.0,
                    preload=element.preloaded and (kind == "spring" or place.endswith("stiffness")),
                )
                key = name + _suffix(name, element)
                collected.add(f"{link.group}.{key}", (position, identity), bounds)
                if link.name != link.group:
                    collected.add(f"{link.name}.{key}", (position, identity), bounds)
            _add_points(collected, vehicle, link, row)
            k += 1
    return collected.parameters()


def _add_points(collected: _Collected, vehicle: Vehicle, link: Link, row: int) -> None:
    """Attachment points in body axes. For a group the value is that of its first link; mirrored links follow."""
    for end, first, body in (("lower", slot.LOWER_X, link.lower), ("upper", slot.UPPER_X, link.upper)):
        centre = vehicle.body(body).centre_of_mass_m
        for axis, letter in enumerate("xyz"):
            bounds = _Bounds(preload=True, geometry=True)
            name = f"{end}_{letter}_m"
            position = row + first + axis
            collected.add(f"{link.group}.{name}", (position, _Affine(link.mirror[axis], -centre[axis])), bounds)
            if link.name != link.group:
                collected.add(f"{link.name}.{name}", (position, _Affine(1.0, -centre[axis])), bounds)


def _suffix(name: str, element: Element) -> str:
    """Unit suffix of a link parameter."""
    if name.endswith("scale") or (element.memory == "berg" and name == "orifice_damping"):
        return ""
    torsion = element.kind == "torsion"
    for word, suffix in (
        ("stiffness", "_nmprad" if torsion else "_npm"),
        ("damping", "_nmsprad" if torsion else "_nspm"),
        ("gap", "_m"),
        ("length", "_m"),
        ("mass", "_kg"),
        ("velocity", "_mps"),
        ("force", "_n"),
    ):
        if word in name:
            return suffix
    return ""


def _unit(name: str) -> str:
    return UNITS.get(name.rpartition("_")[2], "-")
