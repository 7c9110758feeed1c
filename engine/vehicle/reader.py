"""From a vehicle TOML file to a `Vehicle`.

A file holds `[[body]]`, `[[wheelset]]` and `[[link]]` tables. With `for_each` one table stands for several things:
`for_each = ["bogie", "axle", "side"]` makes one for every leading/trailing bogie, leading/trailing axle and left/right
side. Names may hold {bogie}, {axle}, {side} (the word) or {b}, {a}, {s} (its first letter). The y coordinate is
mirrored on the right side; the x coordinate is mirrored for "trailing" of the last of bogie and axle in the list.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

from railsweep.engine.document import Section, read_toml
from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.interpolation import LAW_METHODS
from railsweep.engine.vehicle.description import (
    DOFS,
    WHEELSET_DOFS,
    Body,
    ContactSettings,
    CoulombLaw,
    Element,
    GapLaw,
    Law,
    Link,
    Point,
    TableLaw,
    Vehicle,
)

LIBRARY = Path(__file__).parent.parent / "library"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAXIMUM_ENTRIES = 1000
MAXIMUM_LAW_POINTS = 100_000

PLACES = {"bogie": ("leading", "trailing"), "axle": ("leading", "trailing"), "side": ("left", "right")}
AXES = {"longitudinal": 0, "lateral": 1, "vertical": 2}
ANGLES = {"roll": 0, "pitch": 1, "yaw": 2}
CREEP_LAWS = ("linear", "shen-hedrick-elkins", "polach", "fastsim")


def library_vehicles() -> dict[str, Path]:
    """Name and file of every vehicle that comes with railsweep."""
    return {path.stem: path for path in sorted(LIBRARY.glob("*.toml"))}


def load_vehicle(name_or_path: str | Path) -> Vehicle:
    """Read a vehicle from the library by name, or from a TOML file by path.

    A word without a path separator and without the ending ``.toml`` is a library name.

    Examples
    --------
    >>> load_vehicle("cooperrider").bodies[0].name
    'car_body'
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str) and not text.endswith(".toml") and "/" not in text and "\\" not in text:
        library = library_vehicles()
        if text not in library:
            raise InputError(
                "vehicle",
                f"{shown(text)} is not in the library, {nearest(text, list(library))}",
                "a library name or a .toml file",
            )
        return parse_vehicle(read_toml(library[text]))
    return parse_vehicle(read_toml(Path(name_or_path)))


def parse_vehicle(top: Section) -> Vehicle:
    """Check a parsed document and make the records."""
    name = _name(top, "name")
    title = top.text("title", name)
    gravity = top.number("gravity_mps2", 9.81, least=0.0, most=100.0)
    contact = _contact(top.section("contact")) if top.has("contact") else ContactSettings()
    for key in ("body", "wheelset", "link"):
        top.has(key)
    top.finish()  # a misspelt table is told as such, not as the bodies that are then missing
    bodies: dict[str, Body] = {}
    for section in top.sections("body", most=MAXIMUM_ENTRIES):
        _read_bodies(section, bodies, wheelset=False)
    for section in top.sections("wheelset", most=MAXIMUM_ENTRIES):
        _read_bodies(section, bodies, wheelset=True)
    if not bodies:
        raise InputError(top.where(), "has no [[body]] and no [[wheelset]]", "at least one")
    if not any(b.dofs for b in bodies.values()):
        raise InputError(top.where(), "has no free coordinate: every body is frozen", "at least one free body")
    links: dict[str, Link] = {}
    for section in top.sections("link", most=MAXIMUM_ENTRIES):
        _read_links(section, bodies, links)
    return Vehicle(
        name=name,
        title=title,
        bodies=tuple(bodies.values()),
        links=tuple(links.values()),
        gravity_mps2=gravity,
        contact=contact,
    )


def _contact(section: Section) -> ContactSettings:
    shear = section.number("shear_modulus_pa", above=0.0) if section.has("shear_modulus_pa") else None
    settings = ContactSettings(
        friction=section.number("friction", 0.15, least=0.0, most=2.0),
        young_modulus_pa=section.number("young_modulus_pa", 2.1e11, above=0.0),
        poisson_ratio=section.number("poisson_ratio", 0.27, least=0.0, most=0.5),
        shear_modulus_pa=shear,
        creep_law=section.text("creep_law", "shen-hedrick-elkins", choices=CREEP_LAWS),
        profiles=section.text("profiles", ""),
    )
    section.finish()
    return settings


def _name(section: Section, key: str) -> str:
    value = section.text(key)
    if not NAME.fullmatch(value):
        raise InputError(section.where(key), f"is {shown(value)}", "a letter, then letters, digits, _ or -")
    return value


def _places(section: Section) -> list[dict[str, str]]:
    """One dict of words per copy, in the order of the list."""
    keys = section.words("for_each", [], choices=tuple(PLACES))
    return [dict(zip(keys, words, strict=True)) for words in itertools.product(*(PLACES[k] for k in keys))]


def _fill(template: str, place: dict[str, str], where: str) -> str:
    words = dict(place) | {key[0]: word[0] for key, word in place.items()}
    # plain words only: str.format would also take field widths, and so any amount of memory
    filled = re.sub(r"\{(\w*)\}", lambda found: words.get(found[1], found[0]), template)
    if "{" in filled or "}" in filled:
        allowed = ", ".join("{" + w + "}" for w in words) or "no braces without for_each"
        raise InputError(where, f"is {shown(template)}", f"a name with {allowed}")
    if not NAME.fullmatch(filled):
        raise InputError(where, f"gives the name {shown(filled)}", "a letter, then letters, digits, _ or -")
    return filled


def _mirror(point: list[float], place: dict[str, str]) -> Point:
    x, y, z = point
    along = [key for key in place if key != "side"]
    if along and place[along[-1]] == "trailing":
        x = -x
    if place.get("side") == "right":
        y = -y
    return (x, y, z)


# --- bodies -----------------------------------------------------------------------------------------------------


def _read_bodies(section: Section, bodies: dict[str, Body], *, wheelset: bool) -> None:
    template = section.text("name")
    frozen = section.flag("frozen", False)
    choices = WHEELSET_DOFS if wheelset else DOFS
    dofs = tuple(section.words("dofs", list(choices), choices=choices))
    parent_template = section.text("parent", "")
    offset = section.numbers("offset_m" if section.has("parent") else "position_m", length=3)
    centre = section.numbers("centre_of_mass_m", [0.0, 0.0, 0.0], length=3)
    values = {
        key: section.number(key, above=0.0)
        for key in ("mass_kg", "inertia_roll_kgm2", "inertia_pitch_kgm2", "inertia_yaw_kgm2")
    }
    radius = section.number("rolling_radius_m", above=0.0) if wheelset else 0.0
    spacing = section.number("half_spacing_m", above=0.0) if wheelset else 0.0
    for place in _places(section):
        name = _fill(template, place, section.where("name"))
        if name in bodies:
            raise InputError(section.where("name"), f"{name!r} exists already", "different names")
        position = _mirror(offset, place)
        parent = ""
        if parent_template:
            parent = _fill(parent_template, place, section.where("parent"))
            if parent not in bodies:
                raise InputError(
                    section.where("parent"),
                    f"{parent!r} is no body, {nearest(parent, list(bodies))}",
                    "a body that stands earlier in the file",
                )
            base = bodies[parent].position_m
            position = (position[0] + base[0], position[1] + base[1], position[2] + base[2])
        bodies[name] = Body(
            name=name,
            group=re.sub(r"\{.*?\}", "", template).strip("_-") or name,
            position_m=position,
            centre_of_mass_m=_mirror(centre, place),
            dofs=() if frozen else tuple(d for d in choices if d in dofs),
            frozen=frozen,
            parent=parent,
            rolling_radius_m=radius,
            spacing_m=spacing,
            **values,
        )
    section.finish()


# --- links ------------------------------------------------------------------------------------------------------


def _read_links(section: Section, bodies: dict[str, Body], links: dict[str, Link]) -> None:
    group = _name(section, "name")
    if any(link.group == group for link in links.values()) or group in bodies:
        raise InputError(section.where("name"), f"{group!r} exists already", "different names")
    type_ = section.text("type", choices=tuple(LINK_TYPES))
    ends = []
    for key in ("lower", "upper"):
        end = section.section(key)
        ends.append((end.text("body"), end.numbers("point_m", length=3), end.where("body")))
        end.finish()
    places = _places(section)
    elements = LINK_TYPES[type_](section)
    for place in places:
        names, points = [], []
        for template, point, where in ends:
            body = _fill(template, place, where)
            if body not in bodies:
                raise InputError(where, f"{body!r} is no body, {nearest(body, list(bodies))}", ", ".join(bodies))
            names.append(body)
            points.append(_mirror(point, place))
        if names[0] == names[1]:
            raise InputError(section.where(), f"links {names[0]!r} with itself", "two different bodies")
        name = ".".join([group, *place.values()])
        lower, upper = bodies[names[0]], bodies[names[1]]
        reach = [
            u + p - v - q for u, p, v, q in zip(upper.position_m, points[1], lower.position_m, points[0], strict=True)
        ]
        if any(e.kind == "vector" for e in elements) and not any(abs(r) > 1e-9 for r in reach):
            raise InputError(section.where(), "has no direction: its two points coincide", "two different points")
        links[name] = Link(
            name=name,
            group=group,
            type=type_,
            lower=names[0],
            upper=names[1],
            lower_point_m=points[0],
            upper_point_m=points[1],
            elements=elements,
            mirror=_mirror([1.0, 1.0, 1.0], place),
        )
    section.finish()


def _law(section: Section, key: str, x_key: str, y_key: str) -> TableLaw | None:
    if not section.has(key):
        return None
    table = section.section(key)
    x = table.numbers(x_key)
    y = table.numbers(y_key)
    if not 2 <= len(x) <= MAXIMUM_LAW_POINTS:
        raise InputError(table.where(x_key), f"has {len(x)} points", f"2 to {MAXIMUM_LAW_POINTS}")
    if len(y) != len(x):
        raise InputError(table.where(y_key), f"has {len(y)} numbers, {x_key} has {len(x)}", "as many as " + x_key)
    for i in range(1, len(x)):
        if not x[i] > x[i - 1]:
            raise InputError(table.where(f"{x_key}[{i}]"), f"is {x[i]!r} after {x[i - 1]!r}", "increasing numbers")
    law = TableLaw(
        x=tuple(x),
        y=tuple(y),
        interpolation=table.text("interpolation", "linear", choices=LAW_METHODS),
        outside=table.text("outside", "stop", choices=("stop", "extrapolate")),
    )
    table.finish()
    return law


def _one_of(section: Section, number_key: str, law_key: str, law: Law | None) -> float:
    """The linear coefficient, 0 when absent; refused beside a tabulated law of the same thing."""
    if law is not None and section.has(number_key):
        raise InputError(section.where(number_key), f"stands beside {law_key}", f"either {number_key} or {law_key}")
    return section.number(number_key, 0.0, least=0.0)


def _spring_damper(section: Section, kind: str, axis: int, *, preloaded: bool) -> tuple[Element, ...]:
    spring = _law(section, "spring_law", "displacement_m", "force_n")
    damper = _law(section, "damper_law", "velocity_mps", "force_n")
    stiffness = _one_of(section, "stiffness_npm", "spring_law", spring)
    damping = _one_of(section, "damping_nspm", "damper_law", damper)
    carries = section.flag("preloaded", preloaded and (spring is not None or stiffness > 0.0))
    return (
        Element(
            kind=kind,
            axis=axis,
            spring=spring,
            damper=damper,
            preloaded=carries,
            constants={"stiffness": stiffness, "damping": damping},
            names=_scalar_names(spring, damper),
        ),
    )


def _scalar_names(spring: Law | None, damper: Law | None) -> dict[str, str]:
    names = {}
    if spring is None:
        names["stiffness"] = "stiffness"
    else:
        names |= {"spring_force_scale": "spring.force_scale", "spring_displacement_scale": "spring.x_scale"}
    if damper is None:
        names["damping"] = "damping"
    else:
        names |= {"damper_force_scale": "damper.force_scale", "damper_velocity_scale": "damper.x_scale"}
    return names


def _flexicoil(section: Section) -> tuple[Element, ...]:
    shear = _law(section, "shear_law", "displacement_m", "force_n")
    shear_stiffness = _one_of(section, "shear_stiffness_npm", "shear_law", shear)
    shear_damping = section.number("shear_damping_nspm", 0.0, least=0.0)
    names = {"shear_damping": "damping"}
    if shear is None:
        names["shear_stiffness"] = "stiffness"
    horizontal = Element(
        kind="radial",
        spring=shear,
        constants={"stiffness": shear_stiffness, "damping": shear_damping},
        names=names,
    )
    return (*_spring_damper(section, "axial", 2, preloaded=True), horizontal)


def _bushing(section: Section) -> tuple[Element, ...]:
    stiffness = section.numbers("stiffness_npm", length=3, least=0.0)
    damping = section.numbers("damping_nspm", [0.0, 0.0, 0.0], length=3, least=0.0)
    carries = section.flag("preloaded", False)
    return tuple(
        Element(
            kind="axial",
            axis=axis,
            preloaded=carries and axis == 2,
            constants={"stiffness": stiffness[axis], "damping": damping[axis]},
            names={f"stiffness_{letter}": "stiffness", f"damping_{letter}": "damping"},
        )
        for axis, letter in enumerate("xyz")
    )


def _bump_stop(section: Section) -> tuple[Element, ...]:
    axis = AXES[section.text("direction", choices=tuple(AXES))]
    table = _law(section, "spring_law", "displacement_m", "force_n")
    if table is not None:
        for key in ("gap_m", "stiffness_npm"):
            if section.has(key):
                raise InputError(section.where(key), "stands beside spring_law", f"either {key} or spring_law")
        return (Element(kind="axial", axis=axis, spring=table, names=_scalar_names(table, None)),)
    law = GapLaw(stiffness_npm=section.number("stiffness_npm", least=0.0), gap_m=section.number("gap_m", least=0.0))
    return (
        Element(
            kind="axial",
            axis=axis,
            spring=law,
            names={"stiffness": "spring.a", "gap": "spring.b", "damping": "damping"},
        ),
    )


def _torsion_about(section: Section, axis: int) -> tuple[Element, ...]:
    spring = _law(section, "spring_law", "angle_rad", "moment_nm")
    damper = _law(section, "damper_law", "velocity_radps", "moment_nm")
    return (
        Element(
            kind="torsion",
            axis=axis,
            spring=spring,
            damper=damper,
            constants={
                "stiffness": _one_of(section, "stiffness_nmprad", "spring_law", spring),
                "damping": _one_of(section, "damping_nmsprad", "damper_law", damper),
            },
            names=_scalar_names(spring, damper),
        ),
    )


def _torsion(section: Section) -> tuple[Element, ...]:
    return _torsion_about(section, ANGLES[section.text("direction", choices=tuple(ANGLES))])


def _direction(section: Section) -> tuple[str, int]:
    word = section.text("direction", choices=(*AXES, "vector"))
    return ("vector", 0) if word == "vector" else ("axial", AXES[word])


def _maxwell(section: Section) -> tuple[Element, ...]:
    kind, axis = _direction(section)
    return (
        Element(
            kind=kind,
            axis=axis,
            memory="maxwell",
            constants={
                "series_stiffness": section.number("stiffness_npm", above=0.0),
                "series_damping": section.number("damping_nspm", above=0.0),
            },
            names={"stiffness": "series_stiffness", "damping": "series_damping"},
        ),
    )


def _friction(section: Section) -> tuple[Element, ...]:
    kind, axis = _direction(section)
    law = CoulombLaw(
        force_n=section.number("force_n", least=0.0), velocity_mps=section.number("velocity_mps", 1e-3, above=0.0)
    )
    return (Element(kind=kind, axis=axis, damper=law, names={"force": "damper.a", "velocity": "damper.b"}),)


def _shear(section: Section) -> tuple[Element, ...]:
    return (
        Element(
            kind="radial",
            constants={
                "stiffness": section.number("shear_stiffness_npm", 0.0, least=0.0),
                "damping": section.number("shear_damping_nspm", 0.0, least=0.0),
            },
            names={"shear_stiffness": "stiffness", "shear_damping": "damping"},
        ),
    )


def _air_spring_nishimura(section: Section) -> tuple[Element, ...]:
    vertical = Element(
        kind="axial",
        axis=2,
        memory="nishimura",
        preloaded=section.flag("preloaded", True),
        constants={
            "stiffness": section.number("area_stiffness_npm", 0.0, least=0.0),
            "series_stiffness": section.number("bellows_stiffness_npm", above=0.0),
            "reservoir_stiffness": section.number("reservoir_stiffness_npm", above=0.0),
            "series_damping": section.number("orifice_damping_nspm", above=0.0),
        },
        names={
            "area_stiffness": "stiffness",
            "bellows_stiffness": "series_stiffness",
            "reservoir_stiffness": "reservoir_stiffness",
            "orifice_damping": "series_damping",
        },
    )
    return (vertical, *_shear(section))


def _air_spring_berg(section: Section) -> tuple[Element, ...]:
    vertical = Element(
        kind="axial",
        axis=2,
        memory="berg",
        preloaded=section.flag("preloaded", True),
        constants={
            "stiffness": section.number("elastic_stiffness_npm", above=0.0),
            "series_stiffness": section.number("viscous_stiffness_npm", above=0.0),
            "series_damping": section.number("orifice_damping", above=0.0),
            "damping_exponent": section.number("damping_exponent", 1.8, least=1.0, most=3.0),
            "air_mass": section.number("air_mass_kg", above=0.0),
            "friction_force": section.number("friction_force_n", 0.0, least=0.0),
            "friction_length": section.number("friction_length_m", 0.01, above=0.0),
        },
        names={
            "elastic_stiffness": "stiffness",
            "viscous_stiffness": "series_stiffness",
            "orifice_damping": "series_damping",
            "air_mass": "air_mass",
            "friction_force": "friction_force",
            "friction_length": "friction_length",
        },
    )
    return (vertical, *_shear(section))


LINK_TYPES: dict[str, Callable[[Section], tuple[Element, ...]]] = {
    "longitudinal": lambda s: _spring_damper(s, "axial", 0, preloaded=False),
    "lateral": lambda s: _spring_damper(s, "axial", 1, preloaded=False),
    "vertical": lambda s: _spring_damper(s, "axial", 2, preloaded=True),
    "vector": lambda s: _spring_damper(s, "vector", 0, preloaded=False),
    "traction_rod": lambda s: _spring_damper(s, "vector", 0, preloaded=False),
    "flexicoil": _flexicoil,
    "bushing": _bushing,
    "bump_stop": _bump_stop,
    "yaw": lambda s: _torsion_about(s, 2),
    "torsion": _torsion,
    "anti_roll_bar": lambda s: _torsion_about(s, 0),
    "maxwell": _maxwell,
    "friction": _friction,
    "air_spring_nishimura": _air_spring_nishimura,
    "air_spring_berg": _air_spring_berg,
}
