"""Picture of a run: every channel over time."""

from __future__ import annotations

from pathlib import Path

from railsweep.engine.simulation import Trajectory, state_unit

PANEL_HEIGHT = 1.7
SAME_UNIT_TOGETHER = 4  # more channels than this, and those of one unit share a panel


def unit_of(channel: str) -> str:
    """SI unit of a channel by its name."""
    if channel.endswith("_acc"):
        rate = state_unit(channel.removesuffix("_acc") + "_dot")
        return rate + "2" if rate.endswith("/s") else rate
    if channel.endswith("y_over_q"):
        return "-"
    if channel.endswith("_n"):
        return "N"
    return state_unit(channel)


def plot_channels(trajectory: Trajectory, path: Path, *, title: str) -> None:
    """Write the picture; the format follows the ending of `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels: dict[str, list[str]] = {}
    together = len(trajectory.channels) > SAME_UNIT_TOGETHER
    for name in trajectory.channels:
        panels.setdefault(unit_of(name) if together else name, []).append(name)
    figure, axes = plt.subplots(
        len(panels),
        1,
        sharex=True,
        squeeze=False,
        figsize=(10.0, 1.2 + PANEL_HEIGHT * len(panels)),
        constrained_layout=True,
    )
    figure.suptitle(title, fontsize=10)
    for axis, names in zip(axes[:, 0], panels.values(), strict=True):
        for name in names:
            axis.plot(trajectory.window_t, trajectory.channels[name], linewidth=0.8, label=name)
        axis.set_ylabel(f"[{unit_of(names[0])}]")
        axis.legend(loc="upper right", fontsize=8)
        axis.grid(linewidth=0.3)
        if not trajectory.success:
            axis.axvline(trajectory.t_end, color="tab:red", linewidth=0.9, linestyle="--")
    axes[-1, 0].set_xlabel("time [s]")
    if not trajectory.success:
        figure.text(0.01, 0.005, trajectory.message, color="tab:red", fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)
