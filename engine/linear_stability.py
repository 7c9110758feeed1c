"""Linear stability: eigenvalues at the equilibrium over speed, named modes, and the speeds where pairs cross.

A mode is followed from speed to speed by the likeness of its eigenvectors. Modes without damping by construction (bogie
pitch in a wagon without primary dampers) sit on the imaginary axis at every speed; they are named neutral and never
counted as unstable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError
from railsweep.engine.model import Binder, Model, ModelError

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

NEUTRAL_RATIO = 3e-6  # abs(Re) / abs(lambda) below this at two speeds is no damping at all
NEUTRAL_SPEED_STEP = 0.02  # relative distance of the second speed
CROSSING_TOLERANCE = 1e-9  # relative, in speed
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
    """A speed at which an eigenvalue (pair) crosses the imaginary axis."""

    speed_mps: float
    frequency_hz: float
    direction: str  # "unstable" or "stable" with rising speed
    bodies: tuple[tuple[str, float], ...]
    multiplicity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedPoint:
    """Equilibrium and modes at one speed; `error` says why there are none."""

    speed_mps: float
    equilibrium: Array | None = None
    modes: tuple[Mode, ...] = ()
    error: str = ""

    @property
    def unstable(self) -> int:
        """Number of unstable modes (pairs count once)."""
        return sum(1 for mode in self.modes if mode.eigenvalue.real > 0.0 and not mode.neutral)


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityStudy:
    """Modes over speed and the crossings found between the speeds."""

    points: tuple[SpeedPoint, ...]
    crossings: tuple[Crossing, ...] = field(default=())

    @property
    def critical_speed_mps(self) -> float | None:
        """Lowest speed at which a mode turns unstable; None when no mode does."""
        return next((c.speed_mps for c in self.crossings if c.direction == "unstable"), None)


def spectrum(model: Model, equilibrium: Array | None = None) -> tuple[Array, ComplexArray, ComplexArray]:
    """Equilibrium, eigenvalues and right eigenvectors (columns) of a model; the equilibrium is found when not given."""
    state = model.equilibrium() if equilibrium is None else equilibrium
    values, vectors = np.linalg.eig(model.jacobian(0.0, state))
    return state, values.astype(np.complex128), vectors.astype(np.complex128)


def stability(model: Model, speeds_mps: Sequence[float]) -> StabilityStudy:
    """Eigenvalues over speed on the model's track, and all crossings between the first and the last speed.

    Parameters
    ----------
    model : Model
        Its own speed does not matter.
    speeds_mps : sequence of float
        Increasing speeds [m/s].

    Examples
    --------
    >>> from railsweep.engine import assemble
    >>> study = stability(assemble("cooperrider", speed_mps=60.0), [90.0, 110.0])
    >>> 95.0 < study.critical_speed_mps < 105.0
    True
    """
    speeds = [check_number("speeds_mps", float(v), above=0.0) for v in speeds_mps]
    if not speeds or any(b <= a for a, b in pairwise(speeds)):
        raise InputError("speeds_mps", f"{len(speeds)} speeds", "at least one, increasing")
    binder = model.bind(["speed_mps"])
    points: list[SpeedPoint] = []
    crossings: list[Crossing] = []
    guess: Array | None = None
    last: _Solved | None = None
    for speed in speeds:
        try:
            solved = _solve(binder, speed, guess)
        except ModelError as error:
            points.append(SpeedPoint(speed_mps=speed, error=f"{error.status.name.lower()}: {error}"))
            guess, last = None, None
            continue
        neutral = _neutral(binder, solved)
        modes = tuple(
            _mode(model, solved.values[i], solved.vectors[:, i], bool(neutral[i]))
            for i in np.argsort(-solved.values.real, kind="stable")
            if solved.values[i].imag >= 0.0
        )
        points.append(SpeedPoint(speed_mps=speed, equilibrium=solved.state, modes=modes))
        if last is not None:
            crossings += _crossings(model, binder, last, solved, neutral)
        guess, last = solved.state, solved
    return StabilityStudy(points=tuple(points), crossings=tuple(sorted(crossings, key=lambda c: c.speed_mps)))


@dataclass(frozen=True, slots=True)
class _Solved:
    speed: float
    state: Array
    values: ComplexArray
    vectors: ComplexArray


def _solve(binder: Binder, speed: float, guess: Array | None) -> _Solved:
    model = binder([speed])
    state: Array | None = None
    if guess is not None:
        try:
            state = model.equilibrium(guess)
        except ModelError:
            state = None
    return _Solved(speed, *spectrum(model, state))


def _neutral(binder: Binder, solved: _Solved) -> NDArray[np.bool_]:
    """Which eigenvalues stay on the imaginary axis when the speed changes."""
    size = np.abs(solved.values) + 1e-300
    candidate = (np.abs(solved.values.real) <= NEUTRAL_RATIO * size) | (size < 1e-6)
    if not candidate.any():
        return candidate
    try:
        other = _solve(binder, solved.speed * (1.0 - NEUTRAL_SPEED_STEP), solved.state)
    except ModelError:
        return candidate
    partner = _match(solved, other)
    near = np.abs(other.values[partner].real) <= NEUTRAL_RATIO * (np.abs(other.values[partner]) + 1e-300)
    return candidate & (near | (np.abs(other.values[partner]) < 1e-6))


def _match(a: _Solved, b: _Solved) -> NDArray[np.intp]:
    """For every eigenvalue of `a` the index of its continuation in `b`: alike vectors, near values."""
    from scipy.optimize import linear_sum_assignment

    likeness = np.abs(a.vectors.conj().T @ b.vectors)
    distance = np.abs(a.values[:, None] - b.values[None, :]) / (1.0 + np.abs(a.values)[:, None])
    rows, columns = linear_sum_assignment(distance * 4.0 - likeness)
    partner = np.empty(a.values.size, np.intp)
    partner[rows] = columns
    return partner


def _crossings(model: Model, binder: Binder, low: _Solved, high: _Solved, neutral: NDArray[np.bool_]) -> list[Crossing]:
    partner = _match(high, low)
    found: list[Crossing] = []
    for i in range(high.values.size):
        before, after = low.values[partner[i]], high.values[i]
        if neutral[i] or after.imag < 0.0 or (before.real > 0.0) == (after.real > 0.0):
            continue
        crossing = _locate(model, binder, low, high, int(partner[i]), i)
        if crossing is not None:
            found.append(crossing)
    return _merged(found)


def _locate(model: Model, binder: Binder, low: _Solved, high: _Solved, i: int, j: int) -> Crossing | None:
    """Root of Re(lambda) of one followed mode between two speeds (regula falsi with bisection as safeguard)."""
    a, fa, ka = low, low.values[i].real, i
    b, fb, kb = high, high.values[j].real, j
    for step in range(60):
        if abs(b.speed - a.speed) <= CROSSING_TOLERANCE * b.speed or fa == 0.0:
            break
        speed = b.speed - fb * (b.speed - a.speed) / (fb - fa)
        if step % 3 == 2 or not (a.speed < speed < b.speed):
            speed = 0.5 * (a.speed + b.speed)
        try:
            middle = _solve(binder, speed, a.state)
        except ModelError:
            return None
        k = int(_match(b, middle)[kb]) if abs(speed - b.speed) < abs(speed - a.speed) else int(_match(a, middle)[ka])
        f = middle.values[k].real
        if (f > 0.0) == (fb > 0.0):
            b, fb, kb = middle, f, k
        else:
            a, fa, ka = middle, f, k
        if abs(f) <= 1e-10 * abs(middle.values[k]):
            a, fa, ka, b, fb, kb = middle, f, k, middle, f, k
            break
    mode = _mode(model, b.values[kb], b.vectors[:, kb], neutral=False)
    return Crossing(
        speed_mps=float(b.speed),
        frequency_hz=abs(mode.frequency_hz),
        direction="unstable" if high.values[j].real > 0.0 else "stable",
        bodies=mode.bodies,
    )


def _merged(found: list[Crossing]) -> list[Crossing]:
    """Crossings of a double eigenvalue (two independent bogies) as one with its multiplicity."""
    merged: list[Crossing] = []
    for c in sorted(found, key=lambda c: c.speed_mps):
        if (
            merged
            and abs(c.speed_mps - merged[-1].speed_mps) <= 1e-6 * c.speed_mps
            and abs(c.frequency_hz - merged[-1].frequency_hz) <= 1e-5 * (1e-3 + c.frequency_hz)
            and c.direction == merged[-1].direction
        ):
            last = merged.pop()
            shares = dict(last.bodies)
            for name, share in c.bodies:
                shares[name] = shares.get(name, 0.0) + share
            total = sum(shares.values())
            bodies = tuple(sorted(((n, s / total) for n, s in shares.items()), key=lambda item: -item[1]))
            merged.append(
                Crossing(
                    speed_mps=last.speed_mps,
                    frequency_hz=last.frequency_hz,
                    direction=last.direction,
                    bodies=bodies,
                    multiplicity=last.multiplicity + 1,
                )
            )
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
