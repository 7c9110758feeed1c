"""Pictures of bifurcation diagrams: amplitude and frequency of hunting over speed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray

KMH = 3.6
COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink")


def plot_diagram(found: xarray.Dataset, path: Path, *, title: str) -> None:
    """Draw one case of the quantity "bifurcation"; the format follows the ending of `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(8.4, 7.4), sharex=True, height_ratios=(2.2, 1.0), constrained_layout=True
    )
    figure.suptitle(title, fontsize=11)
    count = found.sizes["wheelset"]
    labels = [f"wheelset {i + 1}" for i in range(count)]
    _equilibrium(found, upper)
    speed = found.cycle_mps.values
    unstable = found.cycle_unstable.values > 0
    branch = found.cycle_branch.values
    for w in range(count):
        amplitude = 1e3 * found.cycle_amplitude_m.values[:, w]
        for number in np.unique(branch[~np.isnan(branch)]):
            own = branch == number
            _pieces(upper, speed[own], amplitude[own], unstable[own], COLOURS[w % len(COLOURS)])
        upper.plot([], [], color=COLOURS[w % len(COLOURS)], label=labels[w])
        ramp = found.ramp_mps.values.ravel()
        dots = 1e3 * found.ramp_amplitude_m.values.reshape(-1, count)[:, w]
        upper.plot(ramp, dots, "o", markersize=3.0, color=COLOURS[w % len(COLOURS)], alpha=0.45, markeredgewidth=0.0)
    for number in np.unique(branch[~np.isnan(branch)]):
        own = branch == number
        _pieces(lower, speed[own], found.cycle_hz.values[own], unstable[own], "0.2")
    folds = np.flatnonzero(found.cycle_fold.values == 1.0)
    if folds.size:
        top = 1e3 * found.cycle_amplitude_m.values[folds].max(axis=1)
        upper.plot(speed[folds], top, "v", color="tab:red", markersize=7, label=_named("fold", speed[folds]))
    crossing = found.crossing_mps.values
    crossing = crossing[~np.isnan(crossing)]
    if crossing.size:
        upper.plot(crossing, np.zeros(crossing.size), "s", color="k", markersize=5, label=_named("Hopf", crossing))
    upper.plot([], [], "-", color="0.3", label="stable")
    upper.plot([], [], "--", color="0.3", label="unstable")
    upper.plot([], [], "o", color="0.5", markersize=4, label="simulation, speed lowered")
    upper.set_ylabel("lateral amplitude of the wheelsets [mm]")
    lower.set_ylabel("frequency [Hz]")
    lower.set_xlabel("speed [m/s]")
    top_axis = upper.secondary_xaxis("top", functions=(lambda x: x * KMH, lambda x: x / KMH))
    top_axis.set_xlabel("speed [km/h]")
    for panel in (upper, lower):
        panel.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _named(word: str, speeds: Any) -> str:
    return f"{word}: " + ", ".join(f"{v:.1f}" for v in sorted(set(np.round(speeds, 1)))) + " m/s"


def _equilibrium(found: xarray.Dataset, panel: Any) -> None:
    """The centred state along the axis: solid while no mode grows."""
    speed, modes = found.scan_mps.values, found.unstable_modes.values
    crossing = found.crossing_mps.values
    crossing = crossing[~np.isnan(crossing)]
    places = np.sort(np.concatenate([speed, crossing]))
    for a, b in pairwise(places):
        inside = np.searchsorted(speed, 0.5 * (a + b))
        before = modes[max(0, inside - 1)] if not (crossing <= a).any() else modes[min(inside, modes.size - 1)]
        panel.plot([a, b], [0.0, 0.0], "-" if before == 0 else "--", color="k", linewidth=1.6)


def _pieces(panel: Any, x: Any, y: Any, dashed: Any, colour: str) -> None:
    """A curve, solid where stable and dashed where not; a piece between the two takes the style of its first point."""
    start = 0
    for i in range(1, x.size + 1):
        if i == x.size or dashed[i] != dashed[start]:
            last = min(i + 1, x.size)
            panel.plot(
                x[start:last], y[start:last], "--" if dashed[start] else "-", color=colour, linewidth=1.4, alpha=0.9
            )
            start = i
