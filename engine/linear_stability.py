"""Linear stability: eigenvalues at the equilibrium over speed, named modes, and the speeds where pairs cross.

Any other parameter can stand for the speed. Modes are followed as `railsweep.engine.crossing` says; those without
damping by construction (bogie pitch in a wagon without primary dampers) are named neutral and never counted as
unstable. In curves such a mode feels the others a little and strays across the axis, this way and that, by a hair: its
crossings are listed, but they are no critical speeds (`Crossing.running`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.crossing import AxisCrossing, Solve, Spectrum, crossings_between, matched, neutral_modes
from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError
from railsweep.engine.model import Binder, Model, ModelError

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

CONTACT_HZ = 50.0  # wheel-rail contact modes lie above, running and suspension modes below
SHARP = 1e-2  # abs(dRe) / abs(lambda) per relative change of the value: a mode with less grazes the axis
SLOPE_STEP = 1e-4  # relative, of the value
SHOWN_SHARE = 0.05  # bodies with less of a mode's energy are not listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One eigenvalue (of a pair: that with Im >= 0).

    Attributes
    ----------
    eigenvalue : complex
        [1/s].
    frequency_hz : float
        Im / 2 pi.
    damping_ratio : float
        -Re / abs(lambda); positive = decaying.
    neutral : bool
        Undamped by construction: at this and a neighbouring speed on the imaginary axis.
    bodies : tuple of (name, share)
        Bodies by their share of the kinetic energy of the mode, largest first.
    dominant_state : str
        State with the largest share of its body's motion.
    """

    eigenvalue: complex
    frequency_hz: float
    damping_ratio: float
    neutral: bool
    bodies: tuple[tuple[str, float], ...]
    dominant_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A value of the parameter at which an eigenvalue (pair) crosses the imaginary axis.

    Attributes
    ----------
    direction : str
        "unstable" or "stable" with rising value.
    running : bool
        A running or suspension mode that crosses beyond doubt; not so a wheel-rail contact mode (above 50 Hz), or an
        undamped mode that grazes the axis.
    """

    value: float
    frequency_hz: float
    direction: str
    bodies: tuple[tuple[str, float], ...]
    multiplicity: int = 1
    running: bool = True

    @property
    def speed_mps(self) -> float:
        """The value, where the parameter is the speed."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedPoint:
    """Equilibrium and modes at one speed (or value of another parameter); `error` says why there are none."""

    value: float
    equilibrium: Array | None = None
    modes: tuple[Mode, ...] = ()
    error: str = ""

    @property
    def unstable(self) -> int:
        """Number of unstable modes (pairs count once)."""
        return sum(1 for mode in self.modes if mode.eigenvalue.real > 0.0 and not mode.neutral)

    @property
    def speed_mps(self) -> float:
        """The value, where the parameter is the speed."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityStudy:
    """Modes over speed and the crossings found between the speeds."""

    points: tuple[SpeedPoint, ...]
    crossings: tuple[Crossing, ...] = field(default=())
    parameter: str = "speed_mps"

    @property
    def critical_speed_mps(self) -> float | None:
        """Lowest speed (value) at which a running mode turns unstable; None when none does."""
        return next((c.value for c in turning_unstable(self.crossings)), None)


def turning_unstable(crossings: Sequence[Crossing]) -> list[Crossing]:
    """The crossings at which a running mode turns unstable, lowest first."""
    return sorted((c for c in crossings if c.running and c.direction == "unstable"), key=lambda c: c.value)


def spectrum(model: Model, equilibrium: Array | None = None) -> tuple[Array, ComplexArray, ComplexArray]:
    """Equilibrium, eigenvalues and right eigenvectors (columns) of a model; the equilibrium is found when not given."""
    state = model.equilibrium() if equilibrium is None else equilibrium
    values, vectors = np.linalg.eig(model.jacobian(0.0, state))
    return state, values.astype(np.complex128), vectors.astype(np.complex128)


def stability(model: Model, speeds_mps: Sequence[float], parameter: str = "speed_mps") -> StabilityStudy:
    """Eigenvalues over speed on the model's track, and all crossings between the first and the last speed.

    Parameters
    ----------
    model : Model
        Its own value of the parameter does not matter.
    speeds_mps : sequence of float
        Increasing speeds [m/s], or values of `parameter`.
    parameter : str
        Any number that `Model.bind` takes.

    Examples
    --------
    >>> from railsweep.engine import assemble
    >>> study = stability(assemble("cooperrider", speed_mps=60.0), [90.0, 110.0])
    >>> 95.0 < study.critical_speed_mps < 105.0
    True
    """
    above = 0.0 if parameter == "speed_mps" else -np.inf
    values = [check_number(_plural(parameter), float(v), above=above) for v in speeds_mps]
    if not values or any(b <= a for a, b in pairwise(values)):
        raise InputError(_plural(parameter), f"{len(values)} values", "at least one, increasing")
    binder = model.bind([parameter])

    def solve(value: float, guess: Array | None) -> Spectrum:
        return _spectrum_at(binder, value, guess)

    scale = max(abs(values[0]), abs(values[-1]))
    points: list[SpeedPoint] = []
    crossings: list[Crossing] = []
    guess: Array | None = None
    last: Spectrum | None = None
    for value in values:
        try:
            solved = solve(value, guess)
        except ModelError as error:
            points.append(SpeedPoint(value=value, error=f"{error.status.name.lower()}: {error}"))
            guess, last = None, None
            continue
        neutral = neutral_modes(solve, solved)
        modes = tuple(
            _mode(model, solved.eigenvalues[i], solved.vectors[:, i], bool(neutral[i]))
            for i in np.argsort(-solved.eigenvalues.real, kind="stable")
            if solved.eigenvalues[i].imag >= 0.0
        )
        points.append(SpeedPoint(value=value, equilibrium=solved.state, modes=modes))
        if last is not None:
            between = crossings_between(solve, last, solved, neutral)
            crossings += _merged([_named(model, c, _is_running(solve, c, scale)) for c in between])
        guess, last = solved.state, solved
    found = tuple(sorted(crossings, key=lambda c: c.value))
    return StabilityStudy(points=tuple(points), crossings=found, parameter=parameter)


def _plural(parameter: str) -> str:
    return "speeds_mps" if parameter == "speed_mps" else f"values of {parameter}"


def _spectrum_at(binder: Binder, value: float, guess: Array | None) -> Spectrum:
    model = binder([value])
    state: Array | None = None
    if guess is not None:
        try:
            state = model.equilibrium(guess)
        except ModelError:
            state = None
    return Spectrum(value, *spectrum(model, state))


def _is_running(solve: Solve, crossing: AxisCrossing, scale: float) -> bool:
    value = crossing.eigenvalue
    if abs(value.imag) >= 2.0 * np.pi * CONTACT_HZ:
        return False
    step = SLOPE_STEP * (abs(crossing.value) or scale)
    try:
        beside = solve(crossing.value + step, crossing.spectrum.state)
    except ModelError:
        return True
    moved = beside.eigenvalues[matched(crossing.spectrum, beside)[crossing.index]]
    return bool(abs(moved.real - value.real) / step * scale > SHARP * abs(value))


def _named(model: Model, crossing: AxisCrossing, running: bool) -> Crossing:
    mode = _mode(model, crossing.eigenvalue, crossing.vector, neutral=False)
    return Crossing(
        value=crossing.value,
        frequency_hz=abs(mode.frequency_hz),
        direction="unstable" if crossing.rising else "stable",
        bodies=mode.bodies,
        running=running,
    )


def _merged(found: list[Crossing]) -> list[Crossing]:
    """Crossings of a double eigenvalue (two independent bogies) as one with its multiplicity."""
    merged: list[Crossing] = []
    for c in sorted(found, key=lambda c: c.value):
        if (
            merged
            and abs(c.value - merged[-1].value) <= 1e-6 * abs(c.value)
            and abs(c.frequency_hz - merged[-1].frequency_hz) <= 1e-5 * (1e-3 + c.frequency_hz)
            and c.direction == merged[-1].direction
        ):
            last = merged.pop()
            shares = dict(last.bodies)
            for name, share in c.bodies:
                shares[name] = shares.get(name, 0.0) + share
            total = sum(shares.values())
            bodies = tuple(sorted(((n, s / total) for n, s in shares.items()), key=lambda item: -item[1]))
            merged.append(replace(last, bodies=bodies, multiplicity=last.multiplicity + 1))
        else:
            merged.append(c)
    return merged


def _mode(model: Model, value: complex, vector: ComplexArray, neutral: bool) -> Mode:
    """Name a mode by the kinetic energy of its bodies (for a mode without motion: by the states themselves)."""
    layout, energy = model.layout, {}
    best, dominant = -1.0, layout.state_names[int(np.argmax(np.abs(vector)))]
    for body in model.vehicle.bodies:
        row = layout.body_index[layout.body_names.index(body.name)]
        total = 0.0
        for dof, coordinate, inertia in (
            ("y", 0, body.mass_kg),
            ("z", 2, body.mass_kg),
            ("roll", 4, body.inertia_roll_kgm2),
            ("pitch", 6, body.inertia_pitch_kgm2),
            ("yaw", 8, body.inertia_yaw_kgm2),
        ):
            state = row[coordinate + 1]
            if state < 0:
                continue
            part = inertia * abs(vector[state]) ** 2
            total += part
            if part > best:
                best, dominant = part, f"{body.name}.{dof}"
        spin = layout.state_index.get(f"{body.name}.spin", -1)
        if spin >= 0:
            part = body.inertia_pitch_kgm2 * abs(vector[spin]) ** 2
            total += part
            if part > best:
                best, dominant = part, f"{body.name}.spin"
        energy[body.name] = total
    total = sum(energy.values()) or 1.0
    bodies = tuple(
        (name, float(share / total))
        for name, share in sorted(energy.items(), key=lambda item: -item[1])
        if share / total >= SHOWN_SHARE
    )
    size = abs(value)
    return Mode(
        eigenvalue=complex(value),
        frequency_hz=float(value.imag / (2.0 * np.pi)),
        damping_ratio=float(-value.real / size) if size > 0.0 else 0.0,
        neutral=neutral,
        bodies=bodies,
        dominant_state=dominant,
    )
