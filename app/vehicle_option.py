"""The options that say which vehicle runs on which track, for the verbs that take them, and the study they make."""

from __future__ import annotations

import argparse
import math
import shutil
from dataclasses import dataclass
from pathlib import Path

from railsweep.app import option
from railsweep.engine.errors import InputError, shown

FORMULATIONS = ("physics", "dytsi")
PRECESSIONS = ("off", "printed", "right")

# Wide enough for any study, narrow enough to catch millimetres typed as metres and the like.
FASTEST_MPS = 1000.0
TIGHTEST_RADIUS_M = 10.0
LARGEST_CANT_MM = 500.0
LARGEST_FRICTION = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VehicleChoice:
    """A vehicle, its contact and how it is described; None leaves the vehicle's own."""

    vehicle: str
    contact: str | None
    formulation: str
    precession: str | None
    friction: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare --vehicle, --contact-table, --formulation, --precession and --friction."""
    parser.add_argument(
        "--vehicle",
        required=True,
        metavar="NAME|FILE",
        help="library vehicle (see 'railsweep vehicles') or a vehicle TOML file",
    )
    parser.add_argument(
        "--contact-table",
        metavar="FILE|PROFILES",
        help="wheel-rail contact: a table file, profiles to build one from (s1002/uic60@1:40,gauge=1437) or cone "
        "(default: the profiles the vehicle names, else cone)",
    )
    parser.add_argument("--formulation", choices=FORMULATIONS, default="physics", help="default: physics")
    parser.add_argument("--precession", choices=PRECESSIONS, help="gyroscopic terms (default: the formulation's own)")
    parser.add_argument("--friction", metavar="MU", help="wheel-rail friction coefficient (default: the vehicle's)")


def read(args: argparse.Namespace) -> VehicleChoice:
    """Check the options; raises InputError that names the option."""
    return VehicleChoice(
        vehicle=args.vehicle,
        contact=args.contact_table,
        formulation=args.formulation,
        precession=args.precession,
        friction=friction(args.friction),
    )


def friction(text: str | None) -> float | None:
    """--friction; None leaves the vehicle's own."""
    return None if text is None else option.number("--friction", text, above=0.0, at_most=LARGEST_FRICTION)


def curve(args: argparse.Namespace) -> tuple[float, float]:
    """--radius-m and --cant-mm of one track; without them it is straight and level."""
    radius_m, cant_mm = math.inf, 0.0
    if args.radius_m is not None:
        radius_m = option.number("--radius-m", args.radius_m)
        if abs(radius_m) < TIGHTEST_RADIUS_M:
            raise InputError(
                "--radius-m",
                f"{args.radius_m} m is out of range",
                f"at least {TIGHTEST_RADIUS_M:g} m either way; leave it out for straight track",
            )
    if args.cant_mm is not None:
        cant_mm = option.number("--cant-mm", args.cant_mm)
        if abs(cant_mm) > LARGEST_CANT_MM:
            raise InputError(
                "--cant-mm", f"{args.cant_mm} mm is out of range", f"at most {LARGEST_CANT_MM:g} either way"
            )
    return radius_m, cant_mm


def radii(name: str, text: str) -> tuple[float, ...]:
    """Curve radii in m: a list in which ``inf`` is straight track; either hand."""
    found = []
    for word in text.split(","):
        value = math.inf if word.strip().lower() == "inf" else option.number(name, word)
        if abs(value) < TIGHTEST_RADIUS_M:
            raise InputError(name, f"{word} m is out of range", f"at least {TIGHTEST_RADIUS_M:g} m either way, or inf")
        found.append(value)
    if len(set(found)) != len(found):
        raise InputError(name, f"{shown(text)} repeats a value", "different radii")
    return tuple(found)


def cants(name: str, text: str) -> tuple[float, ...]:
    """Cants in mm, positive with the left rail raised."""
    found = option.numbers(name, text)
    for value in found:
        if abs(value) > LARGEST_CANT_MM:
            raise InputError(name, f"{value:g} mm is out of range", f"at most {LARGEST_CANT_MM:g} either way")
    return found


def study_head(choice: VehicleChoice, folder: Path) -> list[str]:
    """Lines [vehicle] and [contact] of a study file in `folder`; files from elsewhere are copied beside it."""
    vehicle = choice.vehicle
    if vehicle.endswith(".toml"):
        vehicle = _beside(Path(vehicle), folder, "--vehicle")
    lines = ["[vehicle]", f"name = {_quoted(vehicle)}", f'formulation = "{choice.formulation}"']
    if choice.precession is not None:
        lines.append(f'precession = "{choice.precession}"')
    if choice.friction is not None:
        lines.append(f"friction = {choice.friction!r}")
    if choice.contact is not None:
        from railsweep.engine.contact_build import is_specification

        profiles = choice.contact == "cone" or is_specification(choice.contact)
        entry = choice.contact if profiles else _beside(Path(choice.contact), folder, "--contact-table")
        lines += ["[contact]", f"{'profiles' if profiles else 'table'} = {_quoted(entry)}"]
    return lines


def _beside(file: Path, folder: Path, name: str) -> str:
    if not file.is_file():
        raise InputError(name, f"there is no file {shown(str(file))}", "an existing file")
    target = folder / file.name
    if not target.exists():
        shutil.copyfile(file, target)
    elif target.read_bytes() != file.read_bytes():
        raise InputError(name, f"another {target.name} lies in {shown(str(folder))}", "another folder for --out")
    return file.name


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)
