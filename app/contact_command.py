"""``railsweep contact``: contact tables from wheel and rail profiles.

``build`` makes a table and writes it, ``show`` says and draws what is in one, ``conicity`` gives the equivalent one.
"""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from railsweep.app import option
from railsweep.engine.errors import InputError, shown

if TYPE_CHECKING:
    from railsweep.engine.conicity import Conicity
    from railsweep.engine.contact_table import ContactTable

PATCHES = ("point", "equivalent", "multi")
OUT_ENDINGS = (".npz", ".h5", ".hdf5", ".csv", ".dat", ".txt", ".zarr")

# option -> (setting, help); all are numbers
NUMBERS = {
    "--gauge-mm": ("gauge_mm", "track gauge in mm (default: 1435)"),
    "--gauge-depth-mm": ("gauge_depth_mm", "depth below top of rail at which the gauge is measured (default: 14)"),
    "--back-to-back-mm": ("back_to_back_mm", "distance of the wheel backs in mm (default: 1360)"),
    "--tape-circle-mm": ("tape_circle_mm", "distance of the tape circle from the wheel back in mm (default: 70)"),
    "--rolling-radius-m": ("rolling_radius_m", "wheel radius at the tape circle in m (default: 0.425)"),
    "--rolling-radius-right-m": ("rolling_radius_right_m", "radius of the right wheel, when it differs"),
    "--wheel-load-n": ("wheel_load_n", "static wheel load in N (default: 66600)"),
    "--young-modulus-pa": ("young_modulus_pa", "Young's modulus in Pa (default: 2.1e11)"),
    "--poisson-ratio": ("poisson_ratio", "Poisson ratio (default: 0.27)"),
    "--interpenetration": ("interpenetration", "share of the Hertz approach for 'equivalent' (default: 0.55)"),
    "--smoothing-mm": ("smoothing_mm", "length over which jumps are spread in mm (default: 0; multi: 0.2)"),
    "--profile-smoothing-mm": ("profile_smoothing_mm", "smoothing length of profiles read from files (default: 0)"),
    "--range-mm": ("range_mm", "largest lateral shift in mm (default: 20)"),
    "--step-mm": ("step_mm", "step of the lateral shift in mm (default: 0.01)"),
    "--wheel-wear": ("wheel_wear", "fraction from the wheel to the worn wheel, 0 to 1"),
    "--rail-wear": ("rail_wear", "fraction from the rail to the worn rail, 0 to 1"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the three actions and their options."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action", help="has its own --help")

    build = actions.add_parser("build", description="Build a contact table from profiles.")
    _add_geometry(build)
    build.add_argument("--out", metavar="FILE", help="file to write: " + ", ".join(OUT_ENDINGS))
    _add_output(build)

    show = actions.add_parser("show", description="What is in a contact table.")
    show.add_argument("file", metavar="FILE", help="contact table (.npz, .h5, .csv, RSGEO .dat), or wheel/rail@1:N")
    show.add_argument(
        "--shift-mm", metavar="LIST", help="shifts to print and draw, A:B:STEP or a list (default: -6:6:2)"
    )
    _add_output(show)

    conicity = actions.add_parser("conicity", description="Equivalent conicity (EN 15302), roll and angle parameters.")
    conicity.add_argument(
        "file", nargs="?", metavar="FILE", help="contact table, or wheel/rail@1:N; else from the options"
    )
    _add_geometry(conicity)
    conicity.add_argument(
        "--amplitude-mm", metavar="LIST", help="amplitudes in mm, A:B:STEP or a list (default: 1:8:1)"
    )
    conicity.add_argument("--spacing-mm", metavar="E", help="distance of the contact points in mm (default: 1500)")
    _add_output(conicity)
    for action in (build, show, conicity):
        action.set_defaults(verb_parser=action)  # an unknown option is answered with those of the action


def _add_geometry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wheel", metavar="NAME|FILE", help="s1002, cone:SLOPE, .prw, .whl or .csv (default: s1002)")
    parser.add_argument(
        "--rail", metavar="NAME|FILE", help="uic60, circle:RADIUS_MM, .prr, .ban or .csv (default: uic60)"
    )
    parser.add_argument("--wheel-right", metavar="NAME|FILE", help="right wheel, when it differs")
    parser.add_argument("--rail-right", metavar="NAME|FILE", help="right rail, when it differs")
    parser.add_argument("--worn-wheel", metavar="NAME|FILE", help="where --wheel-wear leads to")
    parser.add_argument("--worn-rail", metavar="NAME|FILE", help="where --rail-wear leads to")
    parser.add_argument("--inclination", metavar="1/N", help="rail inclination (default: 1/40)")
    parser.add_argument("--inclination-right", metavar="1/N", help="inclination of the right rail, when it differs")
    parser.add_argument("--patch", choices=PATCHES, help="patch model (default: equivalent)")
    parser.add_argument("--interpolation", choices=("cubic", "linear", "akima"), help="between the rows of the table")
    for name, (_, text) in NUMBERS.items():
        parser.add_argument(name, metavar="X", help=text)
    parser.add_argument("--no-cache", action="store_true", help="build even if the table is in the cache, keep nothing")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", metavar="FILE", help="write a picture (.png, .pdf or .svg)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(args: argparse.Namespace) -> int:
    """Do the chosen action."""
    actions = {"build": _build, "show": _show, "conicity": _conicity}
    return actions[args.action](args)


def build_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Keywords of `build_contact_table` from the options that were given; errors name the option."""
    from railsweep.engine.contact_build import parse_inclination

    found: dict[str, Any] = {}
    for name in ("wheel", "rail", "wheel_right", "rail_right", "worn_wheel", "worn_rail", "patch", "interpolation"):
        value = getattr(args, name)
        if value is not None:
            found[name] = value
    for name in ("inclination", "inclination_right"):
        value = getattr(args, name)
        if value is not None:
            found[name] = parse_inclination("--" + name.replace("_", "-"), value)
    for flag, (name, _) in NUMBERS.items():
        value = getattr(args, flag[2:].replace("-", "_"))
        if value is not None:
            found[name] = option.number(flag, value)
    return found


def load_table(text: str) -> "ContactTable":
    """A table from a file or from a short specification."""
    from railsweep.engine.contact_build import contact_table, is_specification
    from railsweep.engine.contact_file import read_contact_table

    if not Path(text).exists() and is_specification(text):
        return contact_table(text)
    return _read_zarr(Path(text)) if text.endswith(".zarr") else read_contact_table(text)


def _plot_file(args: argparse.Namespace) -> Path | None:
    return None if args.plot is None else option.plot_file("--plot", args.plot)


def _build(args: argparse.Namespace) -> int:
    plot = _plot_file(args)
    out = None if args.out is None else Path(args.out)
    if out is not None:
        if out.suffix.lower() not in OUT_ENDINGS:
            raise InputError("--out", f"unknown ending of {shown(args.out)}", ", ".join(OUT_ENDINGS))
        if not out.parent.is_dir():
            raise InputError("--out", f"no such folder {shown(str(out.parent))}", "a file in an existing folder")
    keywords = build_arguments(args)
    from railsweep.engine.contact_build import build_contact_table

    table = build_contact_table(**keywords, cache=not args.no_cache)
    if out is not None:
        _write(table, out)
    if plot is not None:
        from railsweep.app.contact_plot import draw_table

        draw_table(table, plot)
    report = summary(table)
    report |= {"out": None if out is None else str(out), "plot": None if plot is None else str(plot)}
    if args.json:
        print(json.dumps(report))
        return 0
    _print_summary(report)
    for label in ("out", "plot"):
        if report[label]:
            print(f"wrote {report[label]}")
    return 0


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise InputError(
            ".zarr", "needs the package zarr, which is not installed", "pip install zarr, or .npz"
        ) from None
    return zarr


def _read_zarr(folder: Path) -> "ContactTable":
    import numpy as np

    from railsweep.engine.contact_file import COLUMNS as WHEEL_COLUMNS
    from railsweep.engine.contact_file import FORMAT, table_from_arrays

    zarr = _zarr()
    names = ["shift_m", "lift_m", "roll_rad", *(f"{s}/{c}" for s in ("left", "right") for c in WHEEL_COLUMNS)]
    try:
        group = zarr.open_group(str(folder), mode="r")
        rest = json.loads(str(group.attrs["description"]))
        arrays = {name.replace("/", "."): np.asarray(group[name][:]) for name in names if name in group}
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(str(folder), f"is not a contact table: {error}", FORMAT) from None
    return table_from_arrays(str(folder), arrays, rest if isinstance(rest, dict) else {})


def _write(table: "ContactTable", out: Path) -> None:
    if out.suffix.lower() != ".zarr":
        from railsweep.engine.contact_file import write_contact_table

        write_contact_table(table, out)
        return
    zarr = _zarr()
    from railsweep.engine.contact_file import table_arrays

    arrays, rest = table_arrays(table)
    if out.exists():
        raise InputError("--out", f"{shown(str(out))} exists already", "a new folder")
    group = zarr.open_group(str(out), mode="w-")
    group.attrs["description"] = json.dumps(rest)
    for key, values in arrays.items():
        group.create_array(key.replace(".", "/"), data=values)


def summary(table: "ContactTable") -> dict[str, Any]:
    """What a table is, in plain numbers."""
    import numpy as np

    from railsweep.engine.conicity import radius_difference

    shift = table.shift_m
    difference = radius_difference(table)
    near = 1e-3
    slope = float(np.interp(near, shift, difference) - np.interp(-near, shift, difference)) / (4.0 * near)
    centre = int(np.argmin(np.abs(shift)))
    wheel = table.left
    carrying = int(np.argmax(wheel.normal_force_n[:, centre]))

    def at(column: str) -> float:
        return float(getattr(wheel, column)[carrying, centre])

    return {
        "name": table.name,
        "rows": int(shift.size),
        "range_mm": [float(shift[0] * 1e3), float(shift[-1] * 1e3)],
        "step_mm": float((shift[-1] - shift[0]) / (shift.size - 1) * 1e3),
        "points": table.points,
        "symmetric": table.right is None,
        "interpolation": table.interpolation,
        "centre": {
            "wheel_lateral_mm": at("wheel_lateral_m") * 1e3,
            "angle_rad": at("angle_rad"),
            "rolling_radius_m": at("rolling_radius_m"),
            "axis_rolling_mm": at("axis_rolling_m") * 1e3,
            "axis_lateral_mm": at("axis_lateral_m") * 1e3,
            "penetration_um": at("penetration_m") * 1e6,
            "normal_force_n": at("normal_force_n"),
        },
        "conicity_1mm": slope,
        "jumps_mm": [v * 1e3 for v in table.origin.get("jumps_m") or []],
        "origin": table.origin,
    }


def _print_summary(report: dict[str, Any]) -> None:
    centre = report["centre"]
    print(report["name"])
    print(
        f"  {report['rows']} shifts {report['range_mm'][0]:g} .. {report['range_mm'][1]:g} mm, "
        f"step {report['step_mm']:g} mm, {report['points']} contact point(s), "
        f"{'mirror-symmetric' if report['symmetric'] else 'left and right differ'}, "
        f"{report['interpolation']} interpolation"
    )
    print(
        f"  centred: contact {centre['wheel_lateral_mm']:.3f} mm from the axle's middle, "
        f"angle {centre['angle_rad']:.5f} rad, radius {centre['rolling_radius_m'] * 1e3:.3f} mm"
    )
    print(
        f"  patch a (rolling) {centre['axis_rolling_mm']:.3f} mm, b {centre['axis_lateral_mm']:.3f} mm, "
        f"approach {centre['penetration_um']:.2f} um at {centre['normal_force_n']:.0f} N"
    )
    print(f"  (r_l - r_r) / 2y at 1 mm: {report['conicity_1mm']:.4f}")
    settings = report["origin"].get("settings")
    if settings:
        print(f"  smoothing length {settings['smoothing_mm']:g} mm, interpenetration {settings['interpenetration']:g}")
    if report["jumps_mm"]:
        print("  rigid contact jumps at " + ", ".join(f"{v:.3f}" for v in report["jumps_mm"]) + " mm")


COLUMNS = (
    *("normal_force_n", "angle_rad", "axis_rolling_m", "axis_lateral_m", "wheel_lateral_m", "rolling_radius_m"),
    *("c11", "c22", "c23", "rail_height_m", "penetration_m"),
)


def _show(args: argparse.Namespace) -> int:
    import numpy as np

    plot = _plot_file(args)
    wanted = option.numbers("--shift-mm", args.shift_mm) if args.shift_mm else (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0)
    table = load_table(args.file)
    shifts = [s * 1e-3 for s in wanted]
    for mm, s in zip(wanted, shifts, strict=True):
        if not table.shift_m[0] <= s <= table.shift_m[-1]:
            raise InputError(
                "--shift-mm",
                f"{mm:g} mm is outside the table",
                f"{table.shift_m[0] * 1e3:g} to {table.shift_m[-1] * 1e3:g}",
            )
    report = summary(table)
    rows = []
    for s in shifts:
        k = int(np.argmin(np.abs(table.shift_m - s)))
        for p in range(table.left.angle_rad.shape[0]):
            if table.left.normal_force_n[p, k] > 1.0:
                row: dict[str, Any] = {"shift_m": float(table.shift_m[k]), "point": p}
                rows.append(row | {name: float(getattr(table.left, name)[p, k]) for name in COLUMNS})
    if plot is not None:
        from railsweep.app.contact_plot import draw_table

        draw_table(table, plot, shifts_m=shifts)
    if args.json:
        print(json.dumps(report | {"left": rows, "plot": None if plot is None else str(plot)}))
        return 0
    _print_summary(report)
    titles = ("shift", "pt", "N", "delta", "a", "b", "lateral", "radius", "C11", "C22", "C23", "q0")
    units = ("mm", "", "N", "rad", "mm", "mm", "mm", "mm", "", "", "", "um")
    widths = (7, 2, 8, 8, 7, 7, 9, 9, 6, 6, 6, 7)
    for words in (titles, units):
        print("  " + " ".join(f"{word:>{width}}" for word, width in zip(words, widths, strict=True)))
    for r in rows:
        print(
            f"  {r['shift_m'] * 1e3:7.2f} {r['point']:2d} {r['normal_force_n']:8.0f} {r['angle_rad']:8.5f} "
            f"{r['axis_rolling_m'] * 1e3:7.3f} {r['axis_lateral_m'] * 1e3:7.3f} {r['wheel_lateral_m'] * 1e3:9.3f} "
            f"{r['rolling_radius_m'] * 1e3:9.3f} {r['c11']:6.3f} {r['c22']:6.3f} {r['c23']:6.3f} "
            f"{r['penetration_m'] * 1e6:7.2f}"
        )
    if plot is not None:
        print(f"wrote {plot}")
    return 0


def _conicity(args: argparse.Namespace) -> int:
    plot = _plot_file(args)
    amplitudes = option.numbers("--amplitude-mm", args.amplitude_mm or "1:8:1", above=0.0, at_most=100.0)
    spacing = option.number("--spacing-mm", args.spacing_mm or "1500", above=300.0, at_most=3000.0)
    keywords = build_arguments(args)
    if args.file is not None and keywords:
        raise InputError("railsweep contact conicity", f"{shown(args.file)} and options of the geometry", "one of them")
    if args.file is not None:
        table = load_table(args.file)
    else:
        from railsweep.engine.contact_build import build_contact_table

        table = build_contact_table(**keywords, cache=not args.no_cache)
    from railsweep.engine.conicity import equivalent_conicity

    result = equivalent_conicity(table, amplitudes_m=[a * 1e-3 for a in amplitudes], spacing_m=spacing * 1e-3)
    if plot is not None:
        from railsweep.app.contact_plot import draw_conicity

        draw_conicity(table, result, plot)
    if args.json:
        print(json.dumps(_conicity_report(table, result) | {"plot": None if plot is None else str(plot)}))
        return 0
    print(table.name)
    print(f"  {'amplitude':>9} {'conicity':>9} {'conicity':>10} {'wavelength':>10} {'roll':>8} {'angle':>8}")
    print(f"  {'mm':>9} {'integral':>9} {'regression':>10} {'m':>10} {'param.':>8} {'param.':>8}")
    for k in range(result.amplitude_m.size):
        print(
            f"  {result.amplitude_m[k] * 1e3:9.2f} {result.integration[k]:9.4f} {result.regression[k]:10.4f} "
            f"{result.wavelength_m[k]:10.2f} {result.roll_parameter[k]:8.4f} {result.angle_parameter[k]:8.3f}"
        )
    if plot is not None:
        print(f"wrote {plot}")
    return 0


def _conicity_report(table: "ContactTable", result: "Conicity") -> dict[str, Any]:
    def plain(values: Any) -> list[float | None]:
        return [float(v) if math.isfinite(v) else None for v in values]

    return {
        "name": table.name,
        "amplitude_mm": [float(a) * 1e3 for a in result.amplitude_m],
        "integration": plain(result.integration),
        "regression": plain(result.regression),
        "wavelength_m": plain(result.wavelength_m),
        "roll_parameter": plain(result.roll_parameter),
        "angle_parameter": plain(result.angle_parameter),
        "centre_mm": result.centre_m * 1e3,
    }
