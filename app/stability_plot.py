"""Picture of a stability study: damping over speed, and the migration of the eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from railsweep.engine.linear_stability import StabilityStudy

KMH = 3.6  # km/h per m/s
SHOWN_HZ = 25.0  # the running and suspension modes; contact modes lie at hundreds of Hz
SHOWN_DAMPING = 0.3


def plot_stability(study: StabilityStudy, path: Path, *, title: str, folds: Sequence[float] = ()) -> None:
    """Write the picture; the format follows the ending of `path`. `folds`: non-linear critical speeds to mark."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    speed, frequency, damping, real, neutral = [], [], [], [], []
    for point in study.points:
        for mode in point.modes:
            if 0.0 < mode.frequency_hz <= SHOWN_HZ and abs(mode.damping_ratio) <= SHOWN_DAMPING:
                speed.append(point.speed_mps)
                frequency.append(mode.frequency_hz)
                damping.append(100.0 * mode.damping_ratio)
                real.append(mode.eigenvalue.real)
                neutral.append(mode.neutral)
    v, f, d, r = (np.array(x, dtype=float) for x in (speed, frequency, damping, real))
    quiet = np.array(neutral, dtype=bool)

    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.8), constrained_layout=True)
    figure.suptitle(title, fontsize=11)
    dots = left.scatter(
        v[~quiet], d[~quiet], c=f[~quiet], s=16, cmap="viridis", vmin=0.0, vmax=max(8.0, f.max(initial=1.0))
    )
    if quiet.any():
        left.scatter(
            v[quiet], d[quiet], s=16, facecolors="none", edgecolors="0.6", label="neutral (undamped by construction)"
        )
    left.axhline(0.0, color="0.3", linewidth=0.8)
    for c in study.crossings:
        if c.frequency_hz <= SHOWN_HZ:
            left.axvline(
                c.speed_mps,
                color="tab:red" if c.direction == "unstable" else "tab:green",
                linewidth=0.9,
                linestyle="--",
            )
    first = next((c for c in study.crossings if c.direction == "unstable" and c.frequency_hz <= SHOWN_HZ), None)
    if first is not None:
        left.plot(
            [],
            [],
            "--",
            color="tab:red",
            label=f"turns unstable: {first.speed_mps:.1f} m/s, {first.frequency_hz:.2f} Hz",
        )
    for k, fold in enumerate(folds):
        left.axvline(
            fold,
            color="tab:purple",
            linewidth=1.1,
            linestyle=":",
            label=f"hunting persists from {fold:.1f} m/s" if k == 0 else None,
        )
    left.set_xlabel("speed [m/s]")
    left.set_ylabel("damping ratio [%]")
    top = left.secondary_xaxis("top", functions=(lambda x: x * KMH, lambda x: x / KMH))
    top.set_xlabel("speed [km/h]")
    if left.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    figure.colorbar(dots, ax=left, label="frequency [Hz]")

    path_dots = right.scatter(r[~quiet], f[~quiet], c=v[~quiet], s=16, cmap="plasma")
    if quiet.any():
        right.scatter(r[quiet], f[quiet], s=16, facecolors="none", edgecolors="0.6")
    right.axvline(0.0, color="0.3", linewidth=0.8)
    right.set_xlabel("real part of the eigenvalue [1/s]")
    right.set_ylabel("frequency [Hz]")
    figure.colorbar(path_dots, ax=right, label="speed [m/s]")
    figure.savefig(path, dpi=130)
    plt.close(figure)
