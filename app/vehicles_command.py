"""``railsweep vehicles``: the vehicles that come with the package."""

import argparse
import json
import tomllib
from importlib.resources import files

from railsweep.engine.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the name and title of every library vehicle."""
    vehicles = library_vehicles()
    if args.json:
        print(json.dumps({"vehicles": vehicles}))
        return 0
    width = max((len(vehicle["name"]) for vehicle in vehicles), default=0)
    for vehicle in vehicles:
        print(f"{vehicle['name']:<{width}}  {vehicle['title']}".rstrip())
    return 0


def library_vehicles() -> list[dict[str, str]]:
    """Name (the file's stem, which is what --vehicle takes) and title of each library file, by name."""
    vehicles = []
    for entry in files("railsweep.engine").joinpath("library").iterdir():
        if not entry.name.endswith(".toml"):
            continue
        try:
            title = tomllib.loads(entry.read_text(encoding="utf-8")).get("title", "")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
            raise InputError(f"library/{entry.name}", f"not a TOML file: {broken}") from broken
        vehicles.append({"name": entry.name.removesuffix(".toml"), "title": str(title)})
    return sorted(vehicles, key=lambda vehicle: vehicle["name"])
