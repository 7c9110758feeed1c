"""Ramps: a parameter stepped up or down, the last state used again, and what the motion settles to at each value.

The way published diagrams were made (Bigoni 2011, 1.3 and 6.1): a transient of `dwell_s` at every value, the amplitude
band of the wheelsets over its end. What a ramp finds depends on start, dwell and step; a limit-cycle branch does not.
A derailment or any other failure ends a ramp and is its last step, with its status.

Hunting of a wheelset: the amplitude of its lateral displacement over the window exceeds `hunting_m` and is not on the
way to zero, that is, it does not fall to `decay` or less from the first third of the window to the last. A bogie hunts
when one of its wheelsets does with at least `FORCED` of the largest amplitude in the vehicle: what is less is shaken by
the other bogie through the car body (0.3 mm beside 6 mm on the published wagon).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.model import Binder, Model, ModelError
from railsweep.engine.simulation import Trajectory, channel_statistics, initial_state, simulate, simulate_ensemble
from railsweep.kernels.status import Status

Array = NDArray[np.float64]
Start = ArrayLike | Mapping[str, float] | None

DECAY = 0.7
FORCED = 0.1
AT_A_TIME = 16  # values computed side by side where they are independent
RESTARTS = ("last", "same")
LARGEST_COUNT = 1_000_000
# two motions are the same attractor when every amplitude agrees within this share or this many metres
SAME_SHARE, SAME_M = 0.05, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class RampSettings:
    """How every value of a ramp is treated.

    Attributes
    ----------
    dwell_s, window_s, sample_s : float
        Time at a value, the end of it over which the motion is watched, and the sampling interval [s].
    restart : {"last", "same"}
        Start of every value: the last state of the value before, or the same start each time.
    hunting_m : float
        Amplitude of a wheelset's lateral displacement above which it hunts [m].
    decay : float
        Share to which the amplitude must fall over the window to be called dying; 0: what is still large counts as
        hunting even where it dies, as in the published diagrams.
    quiet_m : float
        Leave a value early when the largest amplitude over a piece (a fifth of the dwell) is below this and fell to
        `DECAY` or less from the piece before; 0 (default): never, so that the dwell is what it says. A small kick
        first sheds its damped parts even where it will grow, so keep this an order below the kick.
    method, rtol, atol
        See `railsweep.engine.simulate`. Amplitudes of the published wagon's hunting at rtol 1e-4, 1e-5 and 1e-6 agree
        within 0.05 %.
    """

    dwell_s: float = 10.0
    window_s: float = 5.0
    sample_s: float = 0.005
    restart: str = "last"
    hunting_m: float = 5e-5
    decay: float = DECAY
    quiet_m: float = 0.0
    method: str = "dopri5"
    rtol: float = 1e-5
    atol: float = 1e-8

    def __post_init__(self) -> None:
        check_number("ramp: dwell_s", self.dwell_s, above=0.0)
        check_number("ramp: window_s", self.window_s, above=0.0, most=self.dwell_s)
        check_number("ramp: sample_s", self.sample_s, above=0.0, most=self.window_s / 30.0)
        check_number("ramp: hunting_m", self.hunting_m, above=0.0)
        check_number("ramp: decay", self.decay, least=0.0, most=1.0)
        check_number("ramp: quiet_m", self.quiet_m, least=0.0)
        if self.restart not in RESTARTS:
            raise InputError(
                "ramp: restart",
                f"is {self.restart!r}, {nearest(str(self.restart), list(RESTARTS))}",
                ", ".join(RESTARTS),
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RampStep:
    """What the motion settled to at one value.

    Attributes
    ----------
    value : float
        Of the ramp's parameter.
    status, message : Status, str
        Why the transient ended; everything but OK ends the ramp.
    duration_s : float
        Time spent at this value.
    channels : tuple of str
        The lateral displacement of every wheelset, then the channels asked for.
    low, high, mean, frequency_hz : arrays, one entry per channel
        Band over the window (SI) and peak of the spectrum [Hz]; NaN where the run ended before the window.
    trend : array
        Amplitude in the last third of the window over that in the first.
    hunting : dict
        Bogie (the parent of the wheelsets) -> does one of its wheelsets hunt?
    state : array
        The last state.
    """

    value: float
    status: Status
    message: str
    duration_s: float
    channels: tuple[str, ...]
    low: Array
    high: Array
    mean: Array
    frequency_hz: Array
    trend: Array
    hunting: dict[str, bool]
    state: Array

    @property
    def success(self) -> bool:
        """Did the transient reach its end?"""
        return self.status == Status.OK

    @property
    def hunts(self) -> bool:
        """Does anything hunt?"""
        return any(self.hunting.values())

    @property
    def amplitude(self) -> Array:
        """Half the band of every channel."""
        return 0.5 * (self.high - self.low)

    def channel(self, name: str) -> int:
        """Position of a channel in the arrays."""
        if name not in self.channels:
            raise InputError("channel", f"{name!r} was not watched, {nearest(name, list(self.channels))}")
        return self.channels.index(name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data (SI units); what is not known is null. The state is left out."""
        columns = {
            name: dict(
                zip(
                    ("min", "max", "mean", "frequency_hz", "trend"),
                    (_known(a[i]) for a in (self.low, self.high, self.mean, self.frequency_hz, self.trend)),
                    strict=True,
                )
            )
            for i, name in enumerate(self.channels)
        }
        return {
            "value": self.value,
            "status": self.status.name,
            "message": self.message,
            "duration_s": self.duration_s,
            "hunting": dict(self.hunting),
            "channels": columns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A whole ramp."""

    name: str
    parameter: str
    steps: tuple[RampStep, ...]

    @property
    def status(self) -> Status:
        """OK, or why the ramp ended before its last value."""
        return self.steps[-1].status if self.steps else Status.OK

    @property
    def values(self) -> Array:
        """Values of the parameter, in the order of travel."""
        return np.array([s.value for s in self.steps])

    def amplitude(self, channel: str) -> Array:
        """Amplitude of a channel over the steps."""
        return np.array([s.amplitude[s.channel(channel)] for s in self.steps])

    def onset(self, bogie: str | None = None) -> float | None:
        """First value at which (that bogie of) the vehicle hunts."""
        return next((s.value for s in self.steps if (s.hunts if bogie is None else s.hunting[bogie])), None)

    def death(self, bogie: str | None = None) -> float | None:
        """First value at which (that bogie of) the vehicle, having hunted before, does so no longer for good.

        None when it never hunted, hunts at the last value, or the ramp failed while it did.
        """
        state = [s.hunts if bogie is None else s.hunting[bogie] for s in self.steps if s.success]
        if not any(state) or state[-1]:
            return None
        last = max(i for i, hunts in enumerate(state) if hunts)
        return self.steps[last + 1].value

    def to_dict(self) -> dict[str, Any]:
        """Plain data (SI units)."""
        return {
            "name": self.name,
            "parameter": self.parameter,
            "status": self.status.name,
            "onset": self.onset(),
            "death": self.death(),
            "steps": [step.to_dict() for step in self.steps],
        }


def steps_between(first: float, last: float, step: float) -> tuple[float, ...]:
    """Values from `first` to `last` (included when it is on the grid), up or down, free of accumulated rounding."""
    check_number("ramp: first", first)
    check_number("ramp: last", last)
    check_number("ramp: step", step, above=0.0)
    count = int(abs(last - first) / step + 1e-9)
    if count > LARGEST_COUNT:
        raise InputError("ramp: step", f"is {step!r}: {count} values", f"at most {LARGEST_COUNT}")
    sign = 1.0 if last >= first else -1.0
    return tuple(round(first + sign * step * i, 12) for i in range(count + 1))


def ramp(
    model: Model,
    values: Sequence[float],
    start: Start = None,
    *,
    parameter: str = "speed_mps",
    channels: Sequence[str] = (),
    settings: RampSettings | None = None,
) -> Iterator[RampStep]:
    """Step a parameter of a model through `values`; an iterator: stop, store, plot between the steps.

    Parameters
    ----------
    model : Model
        Not changed; its own value of the parameter does not matter. On constant track.
    values : sequence of float
        In the order of travel; `steps_between` makes a regular one.
    start : array_like or mapping, optional
        A full state, or perturbations of the equilibrium at the first value by name.
    parameter : str
        Anything `Model.bind` takes: speed_mps, track.radius_m, track.cant_mm, contact.friction, ...
    channels : sequence of str
        What to watch besides the lateral displacement of the wheelsets; see `railsweep.engine.simulate`.
    settings : RampSettings, optional

    Examples
    --------
    >>> from railsweep.engine import assemble
    >>> wagon = assemble("cooperrider", speed_mps=40.0)
    >>> [s.hunts for s in ramp(wagon, [120.0, 50.0], {"wheelset_ll.y": 5e-3}, settings=RampSettings(dwell_s=20.0))]
    [True, False]
    """
    settings = settings or RampSettings()
    if model.track.varies:
        raise InputError("ramp: track", "changes along the way", "a constant track")
    bind = model.bind([parameter])
    watch = _Watch.of(model, channels)
    if settings.restart == "same" and settings.quiet_m == 0.0:
        yield from _side_by_side(bind, values, start, watch, settings)
        return
    state: Array | None = None
    for value in values:
        at_value = bind([value])
        if state is None or settings.restart == "same":
            state = initial_state(at_value, start)
        step = watch.step(value, _transient(at_value, state, watch, settings), settings)
        state = step.state
        yield step
        if not step.success:
            return


def continuous_ramp(
    model: Model,
    first: float,
    last: float,
    rate: float,
    start: Start = None,
    *,
    parameter: str = "speed_mps",
    channels: Sequence[str] = (),
    settings: RampSettings | None = None,
    piece_s: float = 0.05,
) -> Iterator[RampStep]:
    """Change a parameter in time: value = first +- rate * t, and report every `dwell_s`.

    The kernels know one value during a run, so the line is a staircase of `piece_s`, each tread at the value of its
    middle: the parameter is right in the mean and off by at most rate * piece_s / 2. The speed's own inertia force is
    longitudinal and outside the model. The value of a step is that at the end of its window.
    """
    settings = settings or RampSettings()
    check_number("ramp: rate", rate, above=0.0)
    check_number("ramp: piece_s", piece_s, above=0.0, most=settings.window_s)
    if model.track.varies:
        raise InputError("ramp: track", "changes along the way", "a constant track")
    bind = model.bind([parameter])
    watch = _Watch.of(model, channels)
    slope = rate if last >= first else -rate
    state = initial_state(bind([first]), start)
    pieces = max(1, round(settings.dwell_s / piece_s))
    length = settings.dwell_s / pieces
    total = int(abs(last - first) / rate / settings.dwell_s + 1e-9)
    for number in range(max(1, total)):
        runs: list[Trajectory] = []
        for k in range(pieces):
            t = (number * pieces + k) * length
            runs.append(
                simulate(
                    bind([first + slope * (t + 0.5 * length)]),
                    state,
                    (t, t + length),
                    observables=watch.channels,
                    window_s=length,
                    sample_s=length / max(1, round(length / settings.sample_s)),
                    store=False,
                    method=settings.method,
                    rtol=settings.rtol,
                    atol=settings.atol,
                )
            )
            state = runs[-1].y_end
            if not runs[-1].success:
                break
        step = watch.step(first + slope * runs[-1].t_end, runs, settings, number * settings.dwell_s)
        yield step
        if not step.success:
            return


def ramp_branch(
    model: Model, values: Sequence[float], start: Start = None, *, name: str = "", **options: Any
) -> Branch:
    """All steps of a `ramp` (same options) as one record."""
    parameter = options.get("parameter", "speed_mps")
    return Branch(name=name, parameter=parameter, steps=tuple(ramp(model, values, start, **options)))


def start_set(model: Model, shift_m: float = 5e-3) -> dict[str, dict[str, float]]:
    """Lateral shifts of the wheelsets from which different attractors are reached, by name.

    Signs along the vehicle, front first, for two bogies: antisymmetric + - + - (under exchange of front and rear),
    symmetric + - - +, in_phase + + + +, and one start + - for every bogie alone.
    """
    check_number("start_set: shift_m", shift_m, above=0.0)
    bogies = wheelsets_by_bogie(model)
    ordered = [w for members in bogies.values() for w in members]
    count = len(ordered)
    shifts = {
        "antisymmetric": {w: (-1.0) ** i for i, w in enumerate(ordered)},
        "symmetric": {w: (-1.0) ** (i if 2 * i < count else count - 1 - i) for i, w in enumerate(ordered)},
        "in_phase": dict.fromkeys(ordered, 1.0),
        **{bogie: {w: (-1.0) ** i for i, w in enumerate(members)} for bogie, members in bogies.items()},
    }
    return {
        name: {f"{wheelset}.y": shift_m * sign for wheelset, sign in signs.items()} for name, signs in shifts.items()
    }


def wheelsets_by_bogie(model: Model) -> dict[str, list[str]]:
    """Parent of wheelsets -> its wheelsets, both from front to rear."""
    found: dict[str, list[str]] = {}
    for body in sorted((b for b in model.vehicle.bodies if b.is_wheelset), key=lambda b: -b.position_m[0]):
        found.setdefault(body.parent or body.name, []).append(body.name)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Attractor:
    """A motion found at one value from one or several starts."""

    value: float
    starts: tuple[str, ...]
    hunting: dict[str, bool]
    amplitude_m: Array
    frequency_hz: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReport:
    """All branches found from a set of starts."""

    branches: dict[str, Branch]
    attractors: tuple[Attractor, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain data (SI units)."""
        return {
            "branches": {name: branch.to_dict() for name, branch in self.branches.items()},
            "attractors": [
                {
                    "value": a.value,
                    "starts": list(a.starts),
                    "hunting": dict(a.hunting),
                    "amplitude_m": a.amplitude_m.tolist(),
                    "frequency_hz": a.frequency_hz,
                }
                for a in self.attractors
            ],
        }


def find_branches(
    model: Model,
    values: Sequence[float],
    starts: Mapping[str, Start] | None = None,
    *,
    threads: int = 1,
    **options: Any,
) -> BranchReport:
    """Ramp from every start (default: `start_set`), and sort what was found at each value into attractors."""
    chosen: dict[str, Start] = dict(start_set(model)) if starts is None else dict(starts)

    def follow(item: tuple[str, Start]) -> Branch:
        return ramp_branch(model, values, item[1], name=item[0], **options)

    with ThreadPoolExecutor(max_workers=threads) as pool:
        found = list(pool.map(follow, chosen.items()))
    branches = {branch.name: branch for branch in found}
    wheelsets = len(model.layout.wheelset_names)
    attractors: list[Attractor] = []
    for value in values:
        groups: list[tuple[list[str], RampStep]] = []
        for name, branch in branches.items():
            step = next((s for s in branch.steps if s.value == value and s.success), None)
            if step is None:
                continue
            for names, first in groups:
                if step.hunting == first.hunting and np.allclose(
                    step.amplitude[:wheelsets], first.amplitude[:wheelsets], rtol=SAME_SHARE, atol=SAME_M
                ):
                    names.append(name)
                    break
            else:
                groups.append(([name], step))
        attractors += [
            Attractor(
                value=value,
                starts=tuple(names),
                hunting=step.hunting,
                amplitude_m=step.amplitude[:wheelsets],
                frequency_hz=float(step.frequency_hz[int(np.argmax(step.amplitude[:wheelsets]))]),
            )
            for names, step in groups
        ]
    return BranchReport(branches=branches, attractors=tuple(attractors))


@dataclass(frozen=True, slots=True)
class _Watch:
    """What is watched of a model, and how a step follows from it."""

    channels: tuple[str, ...]
    bogies: dict[str, list[int]]

    @classmethod
    def of(cls, model: Model, channels: Sequence[str]) -> _Watch:
        own = [f"{name}.y" for name in model.layout.wheelset_names]
        names = tuple(dict.fromkeys([*own, *channels]))
        bogies = {bogie: [own.index(f"{w}.y") for w in members] for bogie, members in wheelsets_by_bogie(model).items()}
        return cls(names, bogies)

    def step(self, value: float, runs: Sequence[Trajectory], settings: RampSettings, began: float = 0.0) -> RampStep:
        """The record of a value from the runs made at it, one after the other, since the time `began`."""
        last, end = runs[-1], runs[-1].t_end
        t = np.concatenate([r.window_t for r in runs])
        kept = t >= end - settings.window_s - 0.5 * settings.sample_s
        count = len(self.channels)
        low, high, mean, frequency, trend = (np.full(count, np.nan) for _ in range(5))
        if last.success:
            for i, name in enumerate(self.channels):
                values = np.concatenate([r.channels[name] for r in runs])[kept]
                seen = channel_statistics(t[kept], values)
                low[i], high[i], mean[i] = seen["min"], seen["max"], seen["mean"]
                frequency[i], trend[i] = seen["frequency_hz"], _trend(values)
        size = 0.5 * (high - low)
        wheelsets = sorted(i for members in self.bogies.values() for i in members)
        hunts = (size > settings.hunting_m) & (trend > settings.decay) & (size > FORCED * size[wheelsets].max())
        return RampStep(
            value=float(value),
            status=Status.OK if last.success else last.status,
            message=last.message,
            duration_s=end - began,
            channels=self.channels,
            low=low,
            high=high,
            mean=mean,
            frequency_hz=frequency,
            trend=trend,
            hunting={bogie: bool(hunts[members].any()) for bogie, members in self.bogies.items()},
            state=last.y_end,
        )


def _side_by_side(
    bind: Binder, values: Sequence[float], start: Start, watch: _Watch, settings: RampSettings
) -> Iterator[RampStep]:
    """A ramp whose values have nothing to do with each other: some of them at a time, up to the first that fails."""
    for first in range(0, len(values), AT_A_TIME):
        models: list[Model] = []
        states: list[Array] = []
        refused: ModelError | InputError | None = None
        for value in values[first : first + AT_A_TIME]:
            try:
                model = bind([value])
                states.append(initial_state(model, start))
            except (ModelError, InputError) as error:
                refused = error
                break
            models.append(model)
        span, options = (0.0, settings.dwell_s), _run_options(watch, settings)
        runs = simulate_ensemble(models, np.array(states), span, window_s=settings.window_s, **options)
        for value, run in zip(values[first:], runs, strict=False):
            step = watch.step(value, [run], settings)
            yield step
            if not step.success:
                return
        if refused is not None:
            raise refused


def _run_options(watch: _Watch, settings: RampSettings) -> dict[str, Any]:
    return {
        "observables": watch.channels,
        "sample_s": settings.sample_s,
        "store": False,
        "method": settings.method,
        "rtol": settings.rtol,
        "atol": settings.atol,
    }


def _transient(model: Model, state: Array, watch: _Watch, settings: RampSettings) -> list[Trajectory]:
    """The runs at one value: one, or pieces of the dwell when it may be left early."""
    run: Callable[..., Trajectory] = partial(simulate, **_run_options(watch, settings))
    if settings.quiet_m == 0.0:
        return [run(model, state, (0.0, settings.dwell_s), window_s=settings.window_s)]
    piece = settings.dwell_s / 5.0
    runs: list[Trajectory] = []
    before = 0.0
    wheelsets = watch.channels[: sum(map(len, watch.bogies.values()))]
    for k in range(5):
        runs.append(run(model, state, (k * piece, (k + 1) * piece), window_s=piece))
        state = runs[-1].y_end
        if not runs[-1].success:
            break
        size = max(runs[-1].statistics[name]["amplitude"] for name in wheelsets)
        if size < settings.quiet_m and size <= DECAY * before:
            break
        before = size
    return runs


def _trend(values: Array) -> float:
    """Range in the last third over range in the first third; 1 for no motion at all."""
    third = values.size // 3
    if third < 1:
        return 1.0
    first, last = np.ptp(values[:third]), np.ptp(values[-third:])
    return float(last / first) if first > 0.0 else 1.0


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
