"""From a motion in time to a limit cycle: is it hunting, with which amplitude, and what is its period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.model import Model
from railsweep.engine.simulation import simulate
from railsweep.kernels.status import Status

Array = NDArray[np.float64]

HUNTING_M = 5e-5  # lateral amplitude of a wheelset above which it hunts
SMALL_M = 5e-4  # a motion above this is not judged by its trend: two bogies that hunt side by side beat
DYING = 0.9  # amplitude of the last quarter over that of the quarter before: below this a small motion dies out
SAMPLE_S = 0.002
RTOL, ATOL = 1e-5, 1e-8  # one step of a simulation; amplitudes to a part in a thousand


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """The end of a run at constant parameters.

    Attributes
    ----------
    status : Status
    amplitude_m : array
        Half the lateral range of every wheelset over the last quarter of the run.
    trend : float
        Largest amplitude of the last quarter over that of the quarter before.
    end : array
        Last state.
    start, period_s
        A state and the mean period of the last cycles of the wheelset that moves most; period 0: none found.
    """

    status: Status
    amplitude_m: Array
    trend: float
    end: Array
    start: Array
    period_s: float

    @property
    def hunts(self) -> bool:
        """Does any wheelset move to and fro without dying out?"""
        size = float(self.amplitude_m.max())
        return self.status == Status.OK and size > HUNTING_M and (size > SMALL_M or self.trend > DYING)


def run_motion(model: Model, start: ArrayLike, seconds: float, *, rtol: float = RTOL, atol: float = ATOL) -> Motion:
    """Integrate for some seconds and look at the end."""
    run = simulate(model, np.asarray(start, dtype=np.float64), (0.0, seconds), sample_s=SAMPLE_S, rtol=rtol, atol=atol)
    wheels = [model.index(f"{name}.y") for name in model.layout.wheelset_names]
    quarter = run.t.size // 4
    if run.status != Status.OK or quarter < 8:
        return Motion(
            status=run.status,
            amplitude_m=np.full(len(wheels), np.nan),
            trend=0.0,
            end=run.y_end,
            start=run.y_end,
            period_s=0.0,
        )
    last, before = run.y[wheels, -quarter:], run.y[wheels, -2 * quarter : -quarter]
    amplitude = 0.5 * (last.max(axis=1) - last.min(axis=1))
    earlier = 0.5 * float((before.max(axis=1) - before.min(axis=1)).max())
    moving = wheels[int(np.argmax(amplitude))]
    y = run.y[moving] - 0.5 * (last[int(np.argmax(amplitude))].max() + last[int(np.argmax(amplitude))].min())
    period, place = last_cycle(y, SAMPLE_S)
    return Motion(
        status=run.status,
        amplitude_m=amplitude,
        trend=float(amplitude.max()) / max(earlier, 1e-300),
        end=run.y_end,
        start=run.y[:, place].copy(),
        period_s=period,
    )


def last_cycle(y: Array, sample_s: float) -> tuple[float, int]:
    """Mean period of the last cycles, at most five, and the sample at which the last whole one begins.

    By the rising zeros of samples about their middle; with fewer than three the period is 0, the place the last sample.
    """
    rising = np.flatnonzero((y[:-1] < 0.0) & (y[1:] >= 0.0))
    if rising.size < 3:
        return 0.0, y.size - 1
    times = sample_s * rising - y[rising] * sample_s / (y[rising + 1] - y[rising])
    count = min(5, rising.size - 1)
    return float(times[-1] - times[-1 - count]) / count, int(rising[-2])


def kicked(model: Model, equilibrium: Array, size_m: float, shape: str = "antisymmetric") -> Array:
    """The equilibrium with every wheelset moved sideways: alternating, all one way, or one bogie only."""
    state = equilibrium.copy()
    for i, name in enumerate(model.layout.wheelset_names):
        sign = {
            "antisymmetric": 1.0 - 2.0 * (i % 2),
            "in-phase": 1.0,
            "trailing": float(i >= 2),
            "leading": float(i < 2),
        }
        state[model.index(f"{name}.y")] += size_m * sign[shape]
    return state
