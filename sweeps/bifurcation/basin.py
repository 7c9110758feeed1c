"""Basins: the smallest kick along a given shape that leads away from rest to hunting, by bisection.

A start is ``base + size * shape``. What becomes of it is decided after `horizon_s`: it *hunts* when the amplitude of
the watched states over the last part exceeds `hunting` and is not on the way to zero; it *dies* otherwise; a run that
ends early has *failed*, and its status says how (derailment). A start near the separatrix lingers there; one that
lingers for the whole horizon counts as hunting, so a longer horizon gives a value nearer to the separatrix, from below.

The separatrix has as many dimensions as the system has states less one, so along one shape there may be no way to the
hunting motion (8 mm of one wheelset at 70 m/s die out), or several ways in and out. A scan finds the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.family import Family

Array = NDArray[np.float64]

DIES, HUNTS, FAILED = "dies", "hunts", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KickSettings:
    """How the fate of a kick is decided.

    Attributes
    ----------
    horizon_s, window_s, sample_s : float
        Time simulated, the end of it that is looked at, and the sampling interval [s].
    hunting : float
        Amplitude above which a watched state hunts (m for wheelsets).
    decay : float
        A motion whose range falls to this share or less from the first third of the window to the last dies.
    scan : int
        Sizes tried before the bisection, evenly spaced up to the largest.
    tolerance : float
        The bisection ends when its bracket is this share of the size.
    """

    horizon_s: float = 30.0
    window_s: float = 10.0
    sample_s: float = 0.005
    hunting: float = 5e-5
    decay: float = 0.9
    scan: int = 8
    tolerance: float = 5e-3
    rtol: float = 1e-6
    atol: float = 1e-9

    def __post_init__(self) -> None:
        check_number("kick: horizon_s", self.horizon_s, above=0.0)
        check_number("kick: window_s", self.window_s, above=0.0, most=self.horizon_s)
        check_number("kick: sample_s", self.sample_s, above=0.0, most=self.window_s / 30.0)
        check_number("kick: hunting", self.hunting, above=0.0)
        check_number("kick: decay", self.decay, above=0.0, most=1.0)
        check_number("kick: tolerance", self.tolerance, above=0.0, most=0.5)
        if self.scan < 1:
            raise InputError("kick: scan", f"is {self.scan!r}", "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kick:
    """One kick and what became of it: `fate` is dies, hunts or failed; the amplitude is the largest of the watched."""

    size: float
    fate: str
    status: Status
    amplitude: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Basin:
    """The edge of the basin of rest along one shape.

    Attributes
    ----------
    harmless, smallest : float or None
        Largest size below the edge found to die, smallest above it that does not. `smallest` is None when no kick up
        to the largest one leads away; `harmless` is None when rest itself is unstable.
    fate, status
        Of the smallest kick: hunts, or failed (status: DERAILED, ...); dies when there is none.
    kicks : tuple of Kick
        Everything tried, by size.
    """

    parameter: float
    harmless: float | None
    smallest: float | None
    fate: str
    status: Status
    kicks: tuple[Kick, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data (SI units); what is not known is null."""
        return {
            "parameter": self.parameter,
            "harmless": self.harmless,
            "smallest": self.smallest,
            "fate": self.fate,
            "status": self.status.name,
            "kicks": [
                {
                    "size": k.size,
                    "fate": k.fate,
                    "status": k.status.name,
                    "amplitude": k.amplitude if np.isfinite(k.amplitude) else None,
                }
                for k in self.kicks
            ],
        }


def try_kick(
    family: Family,
    value: float,
    start: ArrayLike,
    *,
    size: float = 1.0,
    watch: Sequence[str] = (),
    settings: KickSettings | None = None,
) -> Kick:
    """What becomes of one start. `watch`: states to look at; default: the lateral displacement of all wheelsets."""
    settings = settings or KickSettings()
    rows = watched_states(family, watch)
    begin = settings.horizon_s - settings.window_s
    times = begin + np.linspace(0.0, settings.window_s, round(settings.window_s / settings.sample_s) + 1)
    times[-1] = settings.horizon_s
    run = family.run(
        np.array(start, dtype=np.float64),
        value,
        settings.horizon_s,
        rtol=settings.rtol,
        atol=settings.atol,
        t_eval=times,
    )
    if not run.success:
        return Kick(size=size, fate=FAILED, status=run.status, amplitude=np.nan)
    motion = run.y[rows]
    amplitude = 0.5 * np.ptp(motion, axis=1)
    third = times.size // 3
    before, after = np.ptp(motion[:, :third], axis=1), np.ptp(motion[:, -third:], axis=1)
    hunts = bool(((amplitude > settings.hunting) & (after > settings.decay * before)).any())
    return Kick(size=size, fate=HUNTS if hunts else DIES, status=Status.OK, amplitude=float(amplitude.max()))


def smallest_kick(
    family: Family,
    value: float,
    shape: ArrayLike | Mapping[str, float],
    largest: float,
    *,
    base: ArrayLike | None = None,
    watch: Sequence[str] = (),
    threads: int = 1,
    settings: KickSettings | None = None,
) -> Basin:
    """The smallest size of a kick along `shape` that does not die out.

    Parameters
    ----------
    family : Family
        Made by `family_of_model` or `family_of_rhs`.
    value : float
        Of its parameter.
    shape : array_like or mapping
        Direction: a state vector (for example a point of the unstable limit cycle less the equilibrium), or values by
        state name. A kick of size 1 is the shape itself.
    largest : float
        Largest size tried.
    base : array_like, optional
        State that is kicked; default: the equilibrium of a vehicle, zero of another system.
    watch : sequence of str
        States whose amplitude decides; default: the lateral displacement of wheelsets, else all states.
    threads : int
        For the scan; the result does not depend on it.
    """
    settings = settings or KickSettings()
    check_number("kick: largest", largest, above=0.0)
    direction = _direction(family, shape)
    rest = rest_of(family, value) if base is None else np.array(base, dtype=np.float64)

    def attempt(size: float) -> Kick:
        return try_kick(family, value, rest + size * direction, size=size, watch=watch, settings=settings)

    sizes = [largest * (i + 1) / settings.scan for i in range(settings.scan)]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        kicks = list(pool.map(attempt, sizes))
    first = next((i for i, kick in enumerate(kicks) if kick.fate != DIES), None)
    if first is None:
        return Basin(parameter=value, harmless=largest, smallest=None, fate=DIES, status=Status.OK, kicks=tuple(kicks))
    above = kicks[first]
    below = kicks[first - 1].size if first else 0.0
    floor = settings.tolerance * sizes[0] * 1e-3  # a kick this small that leads away: rest itself is unstable
    while above.size - below > settings.tolerance * above.size and above.size > floor:
        kick = attempt(0.5 * (below + above.size))
        kicks.append(kick)
        if kick.fate == DIES:
            below = kick.size
        else:
            above = kick
    return Basin(
        parameter=value,
        harmless=below if below > 0.0 else None,
        smallest=above.size,
        fate=above.fate,
        status=above.status,
        kicks=tuple(sorted(kicks, key=lambda k: k.size)),
    )


def watched_states(family: Family, watch: Sequence[str]) -> list[int]:
    """Indices of the states whose amplitude decides."""
    for name in watch:
        if name not in family.states:
            raise InputError("kick: watch", f"{name!r} is not a state, {nearest(name, list(family.states))}")
    if watch:
        return [family.states.index(name) for name in watch]
    wheelsets = [i for i, name in enumerate(family.states) if name.endswith(".spin")]
    names = [family.states[i].removesuffix("spin") + "y" for i in wheelsets]
    return [family.states.index(name) for name in names] or list(range(family.n))


def _direction(family: Family, shape: ArrayLike | Mapping[str, float]) -> Array:
    if isinstance(shape, Mapping):
        direction = np.zeros(family.n)
        for name, size in shape.items():
            if name not in family.states:
                raise InputError("kick: shape", f"{name!r} is not a state, {nearest(name, list(family.states))}")
            direction[family.states.index(name)] = size
    else:
        direction = np.array(shape, dtype=np.float64)
    if direction.shape != (family.n,) or not np.isfinite(direction).all() or not direction.any():
        raise InputError("kick: shape", f"has {direction.size} entries", f"{family.n} numbers, not all of them zero")
    return direction


def rest_of(family: Family, value: float) -> Array:
    """The equilibrium of a vehicle, zero of another system."""
    return np.zeros(family.n) if family.model_at is None else family.model_at(value).equilibrium()
