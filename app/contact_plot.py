"""Pictures of contact tables: profiles in contact, the jump diagram, all columns, conicity."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from railsweep.engine.conicity import Conicity, equivalent_conicity, radius_difference
from railsweep.engine.contact_build import PROFILES, SETTINGS, TableSettings, geometry_of
from railsweep.engine.contact_geometry import ContactGeometry
from railsweep.engine.contact_table import ABSENT_FORCE_N, ContactTable
from railsweep.engine.errors import InputError
from railsweep.engine.profile_file import find_profile

COLUMNS = (
    ("angle_rad", 1.0, "contact angle [rad]"),
    ("rolling_radius_m", 1e3, "rolling radius [mm]"),
    ("axis_rolling_m", 1e3, "a, along rolling [mm]"),
    ("axis_lateral_m", 1e3, "b, lateral [mm]"),
    ("penetration_m", 1e6, "penetration [um]"),
    ("normal_force_n", 1e-3, "normal force [kN]"),
    ("c11", 1.0, "C11"),
    ("c22", 1.0, "C22"),
    ("c23", 1.0, "C23"),
    ("rail_height_m", 1e3, "contact height on the rail [mm]"),
)


def draw_table(table: ContactTable, file: Path, *, shifts_m: Sequence[float] = (-0.004, 0.0, 0.004)) -> None:
    """Everything about one table on one page."""
    figure = Figure(figsize=(15, 17), layout="constrained")
    axes = figure.subplots(5, 3)
    figure.suptitle(table.name)
    _profiles(axes[0, 0], table, shifts_m)
    _jumps(axes[0, 1], table)
    _conicity(axes[0, 2], table)
    flat = list(axes.ravel()[3:])
    shift = table.shift_m * 1e3
    for ax, (name, scale, label) in zip(flat, COLUMNS, strict=False):
        for p in range(table.left.angle_rad.shape[0]):
            values = getattr(table.left, name)[p] * scale
            ax.plot(shift, np.where(table.left.normal_force_n[p] > ABSENT_FORCE_N, values, np.nan), lw=1)
        ax.set(xlabel="shift towards the rail [mm]", ylabel=label)
        ax.grid(alpha=0.3)
    for ax, values, label in (
        (flat[len(COLUMNS)], table.lift_m, "lift [mm]"),
        (flat[len(COLUMNS) + 1], table.roll_rad, "roll [mrad]"),
    ):
        if values is not None:
            ax.plot(shift, values * 1e3, lw=1)
        ax.set(xlabel="shift to the left [mm]", ylabel=label)
        ax.grid(alpha=0.3)
    for ax in flat[len(COLUMNS) + 2 :]:
        ax.set_axis_off()
    _save(figure, file)


def draw_conicity(table: ContactTable, result: Conicity, file: Path) -> None:
    """Conicity over the amplitude and the rolling radius difference."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(table.name)
    _conicity_lines(left, result)
    right.plot(table.shift_m * 1e3, radius_difference(table) * 1e3, lw=1)
    right.set(xlabel="shift to the left [mm]", ylabel="rolling radius difference [mm]")
    right.grid(alpha=0.3)
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    FigureCanvasAgg(figure)
    try:
        figure.savefig(file, dpi=110)
    except OSError as error:
        raise InputError("--plot", f"cannot be written: {error.strerror or error}", "a writable folder") from None


def _rebuilt(table: ContactTable) -> ContactGeometry | None:
    """The geometry behind a table made from library profiles; None when the files it was made from are not known."""
    settings = table.origin.get("settings")
    if not isinstance(settings, dict):
        return None
    try:
        chosen = TableSettings(**{k: v for k, v in settings.items() if k in SETTINGS and k not in PROFILES})
        wheels = [find_profile(p["name"], kind="wheel") for p in table.origin["wheels"]]
        rails = [find_profile(p["name"], kind="rail") for p in table.origin["rails"]]
        stored = [p["digest"] for p in [*table.origin["wheels"], *table.origin["rails"]]]
        if [p.digest() for p in [*wheels, *rails]] != stored:
            return None
        return geometry_of(chosen, wheels, rails)
    except (InputError, KeyError, TypeError):
        return None


def _profiles(ax: Any, table: ContactTable, shifts_m: Sequence[float]) -> None:
    """Left wheel on its rail at the chosen shifts, with the contacts; each shift is drawn 15 mm higher."""
    geometry = _rebuilt(table)
    ax.set_title("left wheel on its rail")
    if geometry is None:
        ax.text(0.5, 0.5, "profiles are not part of this table", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    path = geometry.touch(np.array(shifts_m, dtype=float))
    wheel, radius = geometry.wheelset.left, geometry.wheelset.left_radius_m
    x = np.linspace(wheel.start_m, wheel.end_m, 800)
    across, up = geometry.wheelset.half_spacing_m + x, wheel.height(x) - radius
    placed = geometry.placed["left"]
    outline = geometry.rails.left.outline_m
    c, s = np.cos(placed.angle_rad), np.sin(placed.angle_rad)
    rail_y = outline[:, 0] * c - outline[:, 1] * s + placed.across_m
    rail_z = outline[:, 0] * s + outline[:, 1] * c + placed.up_m
    for k, shift in enumerate(shifts_m):
        offset = 15e-3 * k
        sin_p, cos_p = np.sin(path.roll_rad[k]), np.cos(path.roll_rad[k])
        y = shift + across * cos_p - up * sin_p
        z = path.lift_m[k] + geometry.height_m + across * sin_p + up * cos_p
        ax.plot(rail_y * 1e3, (rail_z + offset) * 1e3, color="0.4", lw=1)
        (line,) = ax.plot(y * 1e3, (z + offset) * 1e3, lw=1, label=f"{shift * 1e3:g} mm")
        n = path.count[k, 0]
        touching = path.contact[k, 0, :n]
        closed = touching[touching[:, 1] < 1e-4]
        ax.plot(closed[:, 4] * 1e3, (closed[:, 5] + offset) * 1e3, "o", ms=4, color=line.get_color())
    ax.set(xlabel="y outwards [mm]", ylabel="z [mm], one step per shift")
    ax.legend(fontsize=7)
    ax.set_aspect("equal")


def _jumps(ax: Any, table: ContactTable) -> None:
    """Where on the wheel the contact is, over the shift."""
    ax.set_title("contact on the left wheel")
    for p in range(table.left.angle_rad.shape[0]):
        present = table.left.normal_force_n[p] > ABSENT_FORCE_N
        place = np.where(present, table.left.wheel_lateral_m[p] * 1e3, np.nan)
        ax.plot(table.shift_m * 1e3, place, ".", ms=1)
    for jump in table.origin.get("jumps_m") or []:
        ax.axvline(jump * 1e3, color="0.7", lw=0.7)
    ax.set(xlabel="shift towards the rail [mm]", ylabel="contact from the axle's middle [mm]")
    ax.grid(alpha=0.3)


def _conicity(ax: Any, table: ContactTable) -> None:
    ax.set_title("equivalent conicity")
    try:
        largest = min(8.0, float(table.shift_m[-1]) * 1e3 - 0.5)
        result = equivalent_conicity(table, amplitudes_m=np.arange(0.5, largest + 0.01, 0.5) * 1e-3)
    except InputError as error:
        ax.text(0.5, 0.5, error.problem, ha="center", transform=ax.transAxes, wrap=True)
        ax.set_axis_off()
        return
    _conicity_lines(ax, result)


def _conicity_lines(ax: Any, result: Conicity) -> None:
    ax.plot(result.amplitude_m * 1e3, result.integration, "o-", ms=3, label="integration (EN 15302)")
    ax.plot(result.amplitude_m * 1e3, result.regression, "s--", ms=3, label="linear regression")
    ax.set(xlabel="amplitude [mm]", ylabel="equivalent conicity [-]")
    ax.set_ylim(bottom=0.0)
    ax.legend(fontsize=8)
    ax.grid(alpha=0.3)
