"""What a vehicle is: bodies, wheelsets and links, as plain immutable records in SI units.

Positions are in the track frame of the vehicle: x forward, y left, z up from top of rail, the vehicle's middle at
x = 0. Attachment points are in the geometric axes of their body (origin at the body's `position`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

DOFS = ("y", "z", "roll", "pitch", "yaw")
WHEELSET_DOFS = ("y", "z", "roll", "yaw", "spin")

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A rigid body; a wheelset when `rolling_radius_m` is given.

    Attributes
    ----------
    mass_kg, inertia_roll_kgm2, inertia_pitch_kgm2, inertia_yaw_kgm2 : float
        Mass and principal inertias about the centre of mass.
    position_m : (x, y, z)
        Geometric centre in the nominal (loaded) position.
    centre_of_mass_m : (x, y, z)
        Centre of mass relative to the geometric centre.
    dofs : tuple of str
        Free coordinates; the others stay zero. Empty for a frozen body, which still has its weight.
    parent : str
        The body it hangs on; a wheelset's yaw is measured from the track tangent at its parent.
    spacing_m : float
        Half the distance of the running circles (wheelsets).
    """

    name: str
    group: str
    mass_kg: float
    inertia_roll_kgm2: float
    inertia_pitch_kgm2: float
    inertia_yaw_kgm2: float
    position_m: Point
    centre_of_mass_m: Point = (0.0, 0.0, 0.0)
    dofs: tuple[str, ...] = DOFS
    frozen: bool = False
    parent: str = ""
    rolling_radius_m: float = 0.0
    spacing_m: float = 0.0

    @property
    def is_wheelset(self) -> bool:
        """Does it roll on the rails?"""
        return self.rolling_radius_m > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLaw:
    """A tabulated force law: force over displacement (or velocity, angle, angular velocity), SI units."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    interpolation: str = "linear"
    outside: str = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapLaw:
    """Bump stop: no force within +-gap_m, linear beyond."""

    stiffness_npm: float
    gap_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoulombLaw:
    """Regularised dry friction: force_n tanh(velocity / velocity_mps)."""

    force_n: float
    velocity_mps: float


Law = TableLaw | GapLaw | CoulombLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """The smallest thing a kernel knows: one scalar force between two points, or one torque between two bodies.

    Attributes
    ----------
    kind : {"axial", "vector", "radial", "torsion"}
        Along a fixed axis, along the line of its points, radially in the horizontal plane, or a relative angle.
    axis : int
        0, 1, 2 for x, y, z (axial) or roll, pitch, yaw (torsion).
    memory : {"", "maxwell", "nishimura", "berg"}
        Element with internal states in parallel with spring and damper.
    preloaded : bool
        Does it carry weight in the nominal position?
    constants : dict
        Values of the record slots: stiffness, damping, series_stiffness, ...
    names : dict
        Parameter name (within the link) -> slot name; what users can bind.
    """

    kind: str
    axis: int = 0
    spring: Law | None = None
    damper: Law | None = None
    memory: str = ""
    preloaded: bool = False
    constants: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One suspension link between two attachment points, made of one or several elements.

    `mirror` holds the signs by which a copy of a `for_each` link mirrors the points as they are written.
    """

    name: str
    group: str
    type: str
    lower: str
    upper: str
    lower_point_m: Point
    upper_point_m: Point
    elements: tuple[Element, ...]
    mirror: Point = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactSettings:
    """Wheel-rail material, friction and profiles ("s1002/uic60@1:40", "cone"; empty: the cone).

    A missing shear modulus follows from the formulation.
    """

    friction: float = 0.15
    young_modulus_pa: float = 2.1e11
    poisson_ratio: float = 0.27
    shear_modulus_pa: float | None = None
    creep_law: str = "shen-hedrick-elkins"
    profiles: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vehicle:
    """A complete vehicle description."""

    name: str
    title: str
    bodies: tuple[Body, ...]
    links: tuple[Link, ...]
    gravity_mps2: float = 9.81
    contact: ContactSettings = ContactSettings()

    def body(self, name: str) -> Body:
        """The body with that name."""
        return next(b for b in self.bodies if b.name == name)
