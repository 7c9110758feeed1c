"""Pictures of stores: a line over one axis, or a map over two with contours; failed cases are hatched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError, nearest, shown
from railsweep.sweeps.quantity import GOOD, PENDING, CaseStatus

if TYPE_CHECKING:
    from railsweep.sweeps.store import StudyStore

SAME = 1e-9  # relative: a value on the command line is the value of an axis
MOST_SHOWN = 12  # values listed in an error, and ticks of an axis drawn by position


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotAxis:
    """One shown dimension."""

    name: str
    label: str
    values: NDArray[np.float64]

    @property
    def even(self) -> bool:
        """Can it be drawn to scale? Otherwise (inf, any order) its members stand side by side."""
        steps = np.diff(self.values)
        return bool(np.isfinite(self.values).all() and ((steps > 0).all() or (steps < 0).all()))

    @property
    def places(self) -> NDArray[np.float64]:
        """Where the members are drawn."""
        return self.values if self.even else np.arange(self.values.size, dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What is drawn: numbers over one or two axes (the second one varies fastest), and how the cases ended."""

    title: str
    variable: str
    label: str
    axes: tuple[PlotAxis, ...]
    at: dict[str, float]
    numbers: NDArray[np.float64]
    status: NDArray[np.uint8]

    @property
    def pending(self) -> NDArray[np.bool_]:
        """Cases not computed yet."""
        return np.asarray(self.status == PENDING)

    @property
    def without(self) -> NDArray[np.bool_]:
        """Cases that went well and have no such number, as a vehicle that never turns unstable."""
        return np.isnan(self.numbers) & np.isin(self.status, GOOD)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Cases that ended with a failure status."""
        return ~np.isin(self.status, (*GOOD, PENDING))

    @property
    def least(self) -> float | None:
        """Smallest number."""
        return float(np.nanmin(self.numbers)) if np.isfinite(self.numbers).any() else None

    @property
    def largest(self) -> float | None:
        """Largest number."""
        return float(np.nanmax(self.numbers)) if np.isfinite(self.numbers).any() else None


def choose(store: StudyStore, variable: str, at: dict[str, float]) -> Slice:
    """Cut one or two dimensions out of a variable.

    Dimensions named in `at` are fixed there; of the others with more than one member the last two are shown and all
    before stand at their first member. Dimensions without coordinates (modes) are shown when nothing else is left.
    """
    dataset = store.dataset()
    array = dataset[variable]
    dimension_of = {**{str(d): str(d) for d in array.dims}, **store.coordinates}
    for name in at:
        if dimension_of.get(name) not in array.dims:
            known = [n for n, d in dimension_of.items() if d in array.dims]
            raise InputError(
                "--at", f"{shown(name)} is no axis of {variable}, {nearest(name, known)}", ", ".join(known)
            )
    chosen = {dimension_of[name]: _member(dataset, name, dimension_of[name], value) for name, value in at.items()}
    if len(chosen) != len(at):
        raise InputError("--at", "fixes one dimension twice", "zipped axes once")
    free = [str(d) for d in array.dims if d not in chosen and array.sizes[d] > 1]
    scaled = [d for d in free if d in store.coordinates.values()]
    shown_ones = scaled[-2:] or free[-2:]
    if not shown_ones:
        raise InputError("store", f"one number of {variable} is left to show", "fewer --at, or 'railsweep inspect'")
    for d in array.dims:
        if d not in shown_ones:
            chosen.setdefault(str(d), 0)
    part = array.isel(chosen).load()
    status = dataset["status"].isel({d: i for d, i in chosen.items() if d in store.plan.names})
    axes = tuple(_axis(store, dataset, d) for d in shown_ones)
    numbers = np.asarray(part.values, dtype=float)
    ended = np.asarray(status.broadcast_like(part).transpose(*part.dims).values, dtype=np.uint8)
    unknown = ended == PENDING
    return Slice(
        title=store.study.name,
        variable=variable,
        label=_label(str(array.attrs.get("long_name", variable)), str(array.attrs.get("units", ""))),
        axes=axes,
        at={n: v for d, i in chosen.items() if array.sizes[d] > 1 for n, v in _values(store, dataset, d, i).items()},
        # Integers have no nan: what was not computed must not be drawn as zero. A failed case may have some numbers.
        numbers=np.where(
            unknown | ~np.isin(ended, GOOD) & (array.dtype.kind != "f") & (variable != "status"), np.nan, numbers
        ),
        status=ended,
    )


def _member(dataset: Any, name: str, dimension: str, value: float) -> int:
    values = dataset[name].values if name in dataset.coords else np.arange(dataset.sizes[dimension])
    near = np.isclose(values, value, rtol=SAME, atol=0.0)
    if not near.any():
        listed = ", ".join(f"{v:g}" for v in values[:MOST_SHOWN]) + (", ..." if len(values) > MOST_SHOWN else "")
        raise InputError(f"--at {name}", f"{value:g} is not one of its values", listed)
    return int(np.argmax(near))


def _values(store: StudyStore, dataset: Any, dimension: str, i: int) -> dict[str, float]:
    names = [n for n, d in store.coordinates.items() if d == dimension]
    return {n: float(dataset[n].values[i]) for n in names} or {dimension: float(i)}


def _axis(store: StudyStore, dataset: Any, dimension: str) -> PlotAxis:
    names = [n for n, d in store.coordinates.items() if d == dimension]
    if not names:
        return PlotAxis(name=dimension, label=dimension, values=np.arange(float(dataset.sizes[dimension])))
    units = [_label(n, str(dataset[n].attrs.get("units", ""))) for n in names]
    # Zipped axes vary together: the first gives the scale, all are named.
    label = units[0] if len(units) == 1 else f"{units[0]} with {', '.join(units[1:])}"
    return PlotAxis(name=names[0], label=label, values=np.asarray(dataset[names[0]].values, dtype=float))


def _label(name: str, unit: str) -> str:
    return name if unit in ("", "1", "-") else f"{name} [{unit}]"


def draw(path: Path, *parts: Slice) -> None:
    """Write one picture with the slices side by side; the format follows the ending of `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1,
        len(parts),
        figsize=(7.6 if len(parts) == 1 else 5.8 * len(parts), 5.0),
        constrained_layout=True,
        squeeze=False,
    )
    keys: dict[str, Any] = {}
    for part, panel in zip(parts, panels[0], strict=True):
        entries = _line(part, panel) if len(part.axes) == 1 else _map(part, figure, panel)
        keys |= {str(entry.get_label()): entry for entry in entries}
        places = ", ".join(f"{name} = {value:g}" for name, value in part.at.items())
        panel.set_title(part.title + (f"\n{places}" if places else ""), fontsize=11)
    if keys:
        figure.legend(handles=list(keys.values()), loc="outside lower center", ncols=2, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _scale(panel: Any, which: str, axis: PlotAxis) -> None:
    getattr(panel, f"set_{which}label")(axis.label)
    if not axis.even:
        step = math.ceil(axis.values.size / MOST_SHOWN)
        getattr(panel, f"set_{which}ticks")(axis.places[::step], [f"{v:g}" for v in axis.values[::step]])


def _line(part: Slice, panel: Any) -> list[Any]:
    """Draw; returns the entries of the legend."""
    axis = part.axes[0]
    panel.plot(axis.places, part.numbers, "o-", color="tab:blue", markersize=3.5, linewidth=1.2)
    for mask, mark, colour, word in ((part.failed, "x", "tab:red", "failed"), (part.pending, "|", "0.5", "pending")):
        if mask.any():
            panel.plot(
                axis.places[mask],
                np.full(mask.sum(), 0.02),
                mark,
                color=colour,
                transform=panel.get_xaxis_transform(),
                label=f"{int(mask.sum())} {word}",
            )
    if part.least is not None and part.largest is not None and part.least < 0.0 < part.largest:
        panel.axhline(0.0, color="0.3", linewidth=0.8)
    _scale(panel, "x", axis)
    panel.set_ylabel(part.label)
    panel.grid(alpha=0.3)
    if part.variable == "status":
        codes = np.unique(part.status)
        panel.set_yticks(codes, [CaseStatus(int(c)).name.lower() for c in codes])
    return list(panel.get_legend_handles_labels()[0])


def _map(part: Slice, figure: Any, panel: Any) -> list[Any]:
    """Draw with the second axis of the slice along x; returns the entries of the legend."""
    from matplotlib import colors
    from matplotlib.patches import Patch

    down, along = part.axes
    x_edges, y_edges = edges(along.places), edges(down.places)
    numbers = np.ma.masked_invalid(part.numbers)
    if part.variable == "status":
        codes = np.unique(part.status)
        bounds = np.arange(codes.size + 1) - 0.5
        place = np.searchsorted(codes, part.status)
        palette = colors.ListedColormap([f"C{i}" for i in range(codes.size)])
        mesh = panel.pcolormesh(x_edges, y_edges, place, cmap=palette, norm=colors.BoundaryNorm(bounds, codes.size))
        bar = figure.colorbar(mesh, ax=panel, ticks=np.arange(codes.size))
        bar.ax.set_yticklabels([CaseStatus(int(c)).name.lower() for c in codes])
    else:
        signed = part.least is not None and part.largest is not None and part.least < 0.0 < part.largest
        most = max(abs(part.least or 0.0), abs(part.largest or 0.0))
        options = {"cmap": "RdBu", "vmin": -most, "vmax": most} if signed else {"cmap": "viridis"}
        mesh = panel.pcolormesh(x_edges, y_edges, numbers, **options)
        figure.colorbar(mesh, ax=panel, label=part.label)
        if min(numbers.shape) >= 3 and numbers.count() >= 9 and numbers.min() < numbers.max():
            lines = panel.contour(along.places, down.places, numbers, levels=7, colors="k", linewidths=0.6, alpha=0.6)
            panel.clabel(lines, fontsize=7)
            if signed:
                panel.contour(along.places, down.places, numbers, levels=[0.0], colors="k", linewidths=1.8)
    keys: list[Any] = []
    blank = colors.ListedColormap(["0.95"])
    for mask, hatch, word in (
        (part.failed, "////", "failed"),
        (part.without, "xx", "without a value (the reason stands in the store)"),
        (part.pending, "..", "pending"),
    ):
        mask = mask & np.isnan(part.numbers)
        if mask.any() and part.variable != "status":
            cells = np.ma.masked_array(np.zeros(mask.shape), ~mask)
            panel.pcolor(x_edges, y_edges, cells, cmap=blank, hatch=hatch, linewidth=0.0, edgecolor="0.5")
            keys.append(Patch(facecolor="0.95", edgecolor="0.5", hatch=hatch, label=f"{int(mask.sum())} {word}"))
    _scale(panel, "x", along)
    _scale(panel, "y", down)
    return keys


def edges(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders of the cells around points, half way between neighbours.

    >>> edges(np.array([1.0, 2.0, 4.0]))
    array([0.5, 1.5, 3. , 5. ])
    """
    if centres.size == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    inner = 0.5 * (centres[1:] + centres[:-1])
    return np.array([2.0 * centres[0] - inner[0], *inner, 2.0 * centres[-1] - inner[-1]])
