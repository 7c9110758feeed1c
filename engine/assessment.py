"""Assessment of a run: every figure by one name, so that a study may take any of them as its quantity of interest.

    run = simulate(model, None, (0, 20), sample_s=0.005, window_s=18, observables=assessment_channels(model))
    figures = assess(run, model)            # {"n_mv": 1.9, "sum_y_2m_n": 21e3, ...}
    FIGURES["n_mv"].unit

Each figure is the worst over all wheels, wheelsets or places of the floor. Accelerations are those relative to the
track frame; their mean and everything below 0.4 Hz is filtered out, as is the pull of a curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.assessment_comfort import continuous_comfort, mean_comfort, sperling
from railsweep.engine.assessment_filter import (
    band_pass,
    extreme,
    low_pass,
    percentile,
    rms,
    sample_rate,
)
from railsweep.engine.assessment_running import (
    FORCE_CORNER_HZ,
    RIDE_BAND_HZ,
    UPPER,
    dominant_frequency,
    nadal_limit,
    stability_rms,
    sum_y_limit,
    two_metre_mean,
    weinstock_limit,
)
from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.kernels import record as slot

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.engine.simulation import Trajectory

Array = NDArray[np.float64]
Point = tuple[float, float, float]

SIDES = ("left", "right")
WHEEL_QUANTITIES = ("y_n", "q_n", "t_gamma_n")
ACCELERATIONS = ("y", "z", "roll", "pitch", "yaw")
FLOOR_HEIGHT_M = 1.2
FLANGE_ANGLE_RAD = math.radians(70.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a vehicle is assessed: its wheelsets, its car body, places of the floor, and its bogie frames."""

    wheelsets: tuple[str, ...]
    body: str
    floor: tuple[Point, ...]  # from the centre of mass of the car body
    frames: tuple[str, ...]


def places_of(model: Model, floor_height_m: float = FLOOR_HEIGHT_M) -> Places:
    """The heaviest body is the car; its floor is felt in the middle and over every bogie (or axle)."""
    check_number("floor_height_m", floor_height_m, least=0.0, most=10.0)
    bodies, arrays = model.vehicle.bodies, model.arrays
    sprung = [i for i, b in enumerate(bodies) if not b.is_wheelset]
    if not sprung:
        raise InputError(f"vehicle {model.vehicle.name}", "has no body but wheelsets", "a car body or a frame")
    car = max(sprung, key=lambda i: float(arrays.body[i, slot.MASS]))
    parents = {b.parent for b in bodies if b.is_wheelset and b.parent}
    frames = tuple(b.name for i, b in enumerate(bodies) if b.name in parents and i != car)
    carried = frames or model.layout.wheelset_names
    x0 = float(arrays.body[car, slot.ARC])
    x = {0.0, *(round(float(arrays.body[i, slot.ARC]) - x0, 6) for i, b in enumerate(bodies) if b.name in carried)}
    height = floor_height_m - float(arrays.body[car, slot.HEIGHT])
    return Places(
        wheelsets=model.layout.wheelset_names,
        body=bodies[car].name,
        floor=tuple((place, 0.0, height) for place in sorted(x, reverse=True)),
        frames=frames,
    )


def assessment_channels(model: Model) -> list[str]:
    """The channels that `simulate` must record for every figure."""
    places = places_of(model)
    wheels = [f"{w}.{s}.{q}" for w in places.wheelsets for s in SIDES for q in WHEEL_QUANTITIES]
    bodies = [f"{b}.{a}_acc" for b in (places.body, *places.frames) for a in ACCELERATIONS]
    return [*wheels, *(name for name in bodies if f"{name[:-4]}_dot" in model.layout.state_index)]


@dataclass(frozen=True, kw_only=True)
class Record:
    """Uniform samples of a run, from a simulation or a measurement.

    Parameters
    ----------
    t : array
        Sample times [s], uniform.
    speed_mps : float
    channels : mapping
        Name -> samples (SI), named as by `simulate`. Accelerations of a body that are absent count as zero.
    places : Places
    static_load_n : float
        Mean static wheel load Q0.
    friction, flange_angle_rad : float
        For the limits of Nadal and Weinstock.
    """

    t: Array
    speed_mps: float
    channels: Mapping[str, Array]
    places: Places
    static_load_n: float
    friction: float = 0.36
    flange_angle_rad: float = FLANGE_ANGLE_RAD

    def __post_init__(self) -> None:
        check_number("assessment: speed_mps", self.speed_mps, above=0.0)
        check_number("assessment: static_load_n", self.static_load_n, above=0.0)
        for name, values in self.channels.items():
            if values.shape != self.t.shape:
                raise InputError(f"assessment: {name}", f"has shape {values.shape}", f"{self.t.shape}, like t")
            if not np.isfinite(values).all():
                raise InputError(f"assessment: {name}", "is not finite", "finite samples")

    @cached_property
    def rate_hz(self) -> float:
        """Samples per second."""
        return sample_rate(self.t)

    def wheels(self, quantity: str) -> list[tuple[Array, Array]]:
        """Left and right samples of a quantity for every wheelset."""
        return [
            (self.channels[f"{w}.left.{quantity}"], self.channels[f"{w}.right.{quantity}"])
            for w in self.places.wheelsets
        ]

    @cached_property
    def sum_y(self) -> list[Array]:
        """Sum of Y of every wheelset, positive to the left."""
        return [left - right for left, right in self.wheels("y_n")]

    @cached_property
    def sum_y_2m(self) -> list[Array]:
        """Its means over 2 m."""
        return [two_metre_mean(y, self.rate_hz, self.speed_mps) for y in self.sum_y]

    @cached_property
    def y_over_q_2m(self) -> list[tuple[Array, Array]]:
        """Means of Y/Q over 2 m; zero for an unloaded wheel."""
        found = []
        for (y_left, y_right), (q_left, q_right) in zip(self.wheels("y_n"), self.wheels("q_n"), strict=True):
            ratios = [
                np.divide(y, q, out=np.zeros_like(y), where=q > 0.0) for y, q in ((y_left, q_left), (y_right, q_right))
            ]
            found.append(tuple(two_metre_mean(r, self.rate_hz, self.speed_mps) for r in ratios))
        return found  # type: ignore[return-value]

    @cached_property
    def q_filtered(self) -> list[Array]:
        """Q of every wheel below 20 Hz."""
        return [low_pass(q, self.rate_hz, FORCE_CORNER_HZ) for pair in self.wheels("q_n") for q in pair]

    def acceleration(self, body: str, point: Point) -> tuple[Array, Array, Array]:
        """Acceleration (x, y, z) of a point given from the centre of mass, to first order in the rotations."""

        def of(dof: str) -> Array:
            return self.channels.get(f"{body}.{dof}_acc", np.zeros_like(self.t))

        x, y, z = point
        return (
            of("pitch") * z - of("yaw") * y,
            of("y") + of("yaw") * x - of("roll") * z,
            of("z") + of("roll") * y - of("pitch") * x,
        )

    @cached_property
    def floor(self) -> list[tuple[Array, Array, Array]]:
        """Accelerations of the places of the floor."""
        return [self.acceleration(self.places.body, point) for point in self.places.floor]

    @cached_property
    def ride(self) -> list[tuple[Array, Array]]:
        """Lateral and vertical accelerations of the floor between 0.4 and 10 Hz."""
        return [(self._ridden(y), self._ridden(z)) for _, y, z in self.floor]

    def _ridden(self, values: Array) -> Array:
        return band_pass(values, self.rate_hz, *RIDE_BAND_HZ)

    @cached_property
    def stability(self) -> float:
        """Largest sliding rms of the sum of Y about its dominant frequency."""
        return max(float(stability_rms(y, self.rate_hz, self.speed_mps).max()) for y in self.sum_y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: unit, what it is, what it is computed from and how."""

    unit: str
    title: str
    needs: str  # "wheels", "wear", "floor" or "frames"
    function: Callable[[Record], float]


def _worst_ratio(r: Record) -> float:
    return max(extreme(q, UPPER) for pair in r.y_over_q_2m for q in pair)


def _weinstock(r: Record) -> float:
    return max(percentile(np.abs(left) + np.abs(right), UPPER) for left, right in r.y_over_q_2m)


def _hunting(r: Record) -> float:
    loudest = max(r.sum_y, key=lambda y: float(np.var(y)))
    return dominant_frequency(loudest, r.rate_hz)


def _wear(r: Record) -> list[Array]:
    return [values for pair in r.wheels("t_gamma_n") for values in pair]


def _frame_rms(r: Record) -> float:
    return max(rms(band_pass(r.channels[f"{f}.y_acc"], r.rate_hz, *RIDE_BAND_HZ)) for f in r.places.frames)


def _quasi_static(pairs: list[tuple[Array, Array]]) -> float:
    return max(abs(percentile(v, 50.0)) for pair in pairs for v in pair)


def _comfort(r: Record, direction: int, name: str) -> float:
    return max(float(continuous_comfort(a[direction], r.rate_hz, name).max()) for a in r.floor)


def _wheel(unit: str, title: str, function: Callable[[Record], float]) -> Figure:
    return Figure(unit=unit, title=title, needs="wheels", function=function)


def _floor(unit: str, title: str, function: Callable[[Record], float]) -> Figure:
    return Figure(unit=unit, title=title, needs="floor", function=function)


FIGURES: dict[str, Figure] = {
    "sum_y_2m_n": _wheel("N", "sum of Y, 20 Hz, 2 m, 99.85 %", lambda r: max(extreme(y, UPPER) for y in r.sum_y_2m)),
    "sum_y_2m_ratio": _wheel(
        "1",
        "the same over its limit 10 kN + 2 Q0/3",
        lambda r: max(extreme(y, UPPER) for y in r.sum_y_2m) / sum_y_limit(r.static_load_n),
    ),
    "y_over_q_2m": _wheel("1", "Y/Q, 20 Hz, 2 m, 99.85 %", _worst_ratio),
    "nadal_ratio": _wheel(
        "1", "the same over Nadal's limit", lambda r: _worst_ratio(r) / nadal_limit(r.flange_angle_rad, r.friction)
    ),
    "weinstock_ratio": _wheel(
        "1",
        "sum of abs(Y/Q) of both wheels over Weinstock's limit",
        lambda r: _weinstock(r) / weinstock_limit(r.flange_angle_rad, r.friction),
    ),
    "q_max_n": _wheel("N", "Q, 20 Hz, 99.85 %", lambda r: max(percentile(q, UPPER) for q in r.q_filtered)),
    "q_rms_n": _wheel("N", "Q about its mean, 20 Hz, rms", lambda r: max(rms(q - q.mean()) for q in r.q_filtered)),
    "q_unloading": _wheel(
        "1",
        "wheel unloading 1 - Q/Q0, 20 Hz, 99.85 %",
        lambda r: max(1.0 - percentile(q, 100.0 - UPPER) / r.static_load_n for q in r.q_filtered),
    ),
    "q_quasi_static_n": _wheel("N", "median of Q", lambda r: _quasi_static(r.wheels("q_n"))),
    "y_quasi_static_n": _wheel("N", "median of Y", lambda r: _quasi_static(r.wheels("y_n"))),
    "y_over_q_quasi_static": _wheel("1", "median of Y/Q, 2 m", lambda r: _quasi_static(r.y_over_q_2m)),
    "stability_sum_y_n": _wheel(
        "N", "rms of the sum of Y about its dominant frequency, 100 m, largest", lambda r: r.stability
    ),
    "stability_ratio": _wheel(
        "1",
        "the same over half the limit of the sum of Y",
        lambda r: 2.0 * r.stability / sum_y_limit(r.static_load_n),
    ),
    "hunting_frequency_hz": _wheel("Hz", "dominant frequency of the sum of Y", _hunting),
    "t_gamma_mean_n": Figure(
        unit="N",
        title="wear number, mean, worst wheel",
        needs="wear",
        function=lambda r: max(float(w.mean()) for w in _wear(r)),
    ),
    "t_gamma_total_n": Figure(
        unit="N",
        title="wear number, mean, all wheels",
        needs="wear",
        function=lambda r: sum(float(w.mean()) for w in _wear(r)),
    ),
    "t_gamma_max_n": Figure(
        unit="N",
        title="wear number, 99.85 %",
        needs="wear",
        function=lambda r: max(percentile(w, UPPER) for w in _wear(r)),
    ),
    "floor_y_acc_mps2": _floor(
        "m/s^2", "lateral acceleration, 0.4-10 Hz, 99.85 %", lambda r: max(extreme(y, UPPER) for y, _ in r.ride)
    ),
    "floor_z_acc_mps2": _floor(
        "m/s^2", "vertical acceleration, 0.4-10 Hz, 99.85 %", lambda r: max(extreme(z, UPPER) for _, z in r.ride)
    ),
    "floor_y_rms_mps2": _floor(
        "m/s^2", "lateral acceleration, 0.4-10 Hz, rms", lambda r: max(rms(y) for y, _ in r.ride)
    ),
    "floor_z_rms_mps2": _floor(
        "m/s^2", "vertical acceleration, 0.4-10 Hz, rms", lambda r: max(rms(z) for _, z in r.ride)
    ),
    "n_mv": _floor(
        "1", "mean comfort N_MV (EN 12299)", lambda r: max(mean_comfort(x, y, z, r.rate_hz) for x, y, z in r.floor)
    ),
    "comfort_y_mps2": _floor("m/s^2", "worst 5 s of the lateral acceleration, Wd", lambda r: _comfort(r, 1, "Wd")),
    "comfort_z_mps2": _floor("m/s^2", "worst 5 s of the vertical acceleration, Wb", lambda r: _comfort(r, 2, "Wb")),
    "wz_y": _floor("1", "Sperling's Wz, lateral", lambda r: max(sperling(a[1], r.rate_hz, "y") for a in r.floor)),
    "wz_z": _floor("1", "Sperling's Wz, vertical", lambda r: max(sperling(a[2], r.rate_hz, "z") for a in r.floor)),
    "frame_y_rms_mps2": Figure(
        unit="m/s^2",
        title="lateral acceleration of the bogie frames, 0.4-10 Hz, rms",
        needs="frames",
        function=_frame_rms,
    ),
}


def missing(record: Record, needs: str) -> list[str]:
    """Channels that a kind of figure lacks."""
    places = record.places
    if needs == "wheels":
        names = [f"{w}.{s}.{q}" for w in places.wheelsets for s in SIDES for q in ("y_n", "q_n")]
    elif needs == "wear":
        names = [f"{w}.{s}.t_gamma_n" for w in places.wheelsets for s in SIDES]
    elif needs == "frames":
        names = [f"{f}.y_acc" for f in places.frames] or ["a bogie frame"]
    else:
        names = [f"{places.body}.y_acc", f"{places.body}.z_acc"]
    return [name for name in names if name not in record.channels]


def record_of(
    run: Trajectory, model: Model, *, window_s: float | None = None, flange_angle_rad: float = FLANGE_ANGLE_RAD
) -> Record:
    """The recorded window of a run, or only its last `window_s`, as a record."""
    arrays = model.arrays
    first = 0
    if window_s is not None:
        check_number("window_s", window_s, above=0.0)
        first = int(np.searchsorted(run.window_t, run.window_t[-1] - window_s - 1e-9)) if run.window_t.size else 0
    weight = float(arrays.body[:, slot.MASS].sum() * arrays.operation[slot.GRAVITY])
    return Record(
        t=run.window_t[first:],
        speed_mps=model.speed_mps,
        channels={name: values[first:] for name, values in run.channels.items()},
        places=places_of(model),
        static_load_n=weight / (2.0 * len(model.layout.wheelset_names)),
        friction=float(arrays.operation[slot.FRICTION]),
        flange_angle_rad=flange_angle_rad,
    )


def assess(
    run: Trajectory | Record,
    model: Model | None = None,
    figures: Sequence[str] | None = None,
    *,
    window_s: float | None = None,
) -> dict[str, float]:
    """Figures of a run by name; their units and meanings stand in `FIGURES`.

    Parameters
    ----------
    run : Trajectory or Record
        What `simulate` returned for the channels of `assessment_channels(model)`, or samples from elsewhere.
    model : Model
        The model of a trajectory.
    figures : sequence of str, optional
        Names to compute; default: all that the channels allow.
    window_s : float, optional
        Length of the end of a trajectory to look at; default: all that was recorded.
    """
    if isinstance(run, Record):
        record = run
    elif model is None:
        raise InputError("assess", "a trajectory without its model", "assess(run, model)")
    else:
        record = record_of(run, model, window_s=window_s)
    for name in figures or ():
        if name not in FIGURES:
            raise InputError("figures", f"{name!r} is no figure, {nearest(name, list(FIGURES))}", ", ".join(FIGURES))
        lacking = missing(record, FIGURES[name].needs)
        if lacking:
            raise InputError("figures", f"{name} lacks {', '.join(lacking[:4])}", "the channels of assessment_channels")
    wanted = list(figures) if figures is not None else [n for n, f in FIGURES.items() if not missing(record, f.needs)]
    return {name: FIGURES[name].function(record) for name in wanted}
