"""The quantity "linear_critical_speed": the lowest speed at which a running mode of the equilibrium turns unstable.

A scan over speed costs a third of a second. Here the nominal vehicle is scanned once per track, and every case starts
from its crossings: for each of the lowest ones, speed and eigenvalue are followed from the nominal mode to the place
where the real part vanishes (regula falsi in speed, Newton's method for the eigenpair, the equilibrium continued), and
the lowest speed counts. The spectrum there must show no other running mode unstable; where it does, or no mode can be
followed, the case is scanned itself. A case depends on the study and its own values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section
from railsweep.engine.errors import InputError
from railsweep.engine.linear_stability import CONTACT_HZ, Crossing, spectrum, stability, turning_unstable
from railsweep.engine.model import Model, ModelError
from railsweep.kernels.status import Status
from railsweep.sweeps.nominal import PerTrack
from railsweep.sweeps.quantity import CaseResult, ReadFile, Variable, refuse_axis

if TYPE_CHECKING:
    from railsweep.sweeps.study import Study

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

UNSTABLE = 1e-3  # Re / abs(lambda) of a running mode that is unstable beyond doubt
SPEED_TOLERANCE = 1e-8  # relative
GROWTH_TOLERANCE = 1e-9  # Re / abs(lambda)
EIGEN_TOLERANCE = 1e-7  # relative, of the last step of Newton's method, which leaves its square
MOST_STEPS = 60
BISECT_AFTER = 12
OVERSHOOT, LEAST_STEP, LARGEST_STEP = 1.2, 2e-3, 0.05  # of the way to the crossing; relative to speed
LEAST_LIKENESS = 0.3  # of the mode with the nominal one
FARTHEST = 0.5  # relative distance of a speed from the nominal crossing
CLOSE = 1.03  # crossings up to this multiple of the lowest may be taken for it by the check of the spectrum
NEAR = 1.3  # crossings up to this multiple of the lowest may become the lowest in another case
SLOPE_STEP = 1e-4  # relative, in speed


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRange:
    """Speeds of the scan [m/s] and how many of the lowest crossings are followed."""

    from_mps: float
    to_mps: float
    step_mps: float
    modes: int

    @property
    def speeds(self) -> list[float]:
        """All speeds, both ends included."""
        count = round((self.to_mps - self.from_mps) / self.step_mps) + 1
        return [float(v) for v in np.linspace(self.from_mps, self.to_mps, max(2, count))]


@dataclass(frozen=True, slots=True, eq=False)
class _Mode:
    """A nominal crossing: speed, eigenpair, equilibrium, and the growth of the real part with speed."""

    speed: float
    value: complex
    vector: ComplexArray
    state: Array
    slope: float


@dataclass(frozen=True, slots=True)
class _Place:
    """A mode at one speed."""

    speed: float
    value: complex
    vector: ComplexArray
    state: Array


class LinearCriticalSpeed:
    """Lowest crossing of a running mode."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> ScanRange:
        """Range of the scan."""
        low = section.number("from_mps", 20.0, above=0.0, most=1000.0)
        high = section.number("to_mps", 160.0, above=low, most=1000.0)
        step = section.number("step_mps", 5.0, above=0.0, most=high - low)
        modes = section.number("modes", 3.0, least=1.0, most=20.0)
        if modes != int(modes):
            raise InputError(section.where("modes"), f"is {modes:g}", "a whole number from 1 to 20")
        if (high - low) / step > 10_000:
            raise InputError(section.where("step_mps"), f"is {step:g}", "at most 10000 speeds")
        return ScanRange(from_mps=low, to_mps=high, step_mps=step, modes=int(modes))

    def __init__(self, study: Study, model: Model) -> None:
        refuse_axis(study, "speed_mps", "the critical speed is found over speed")
        self.range: ScanRange = study.options
        self.variables = (
            Variable(
                name="critical_speed_mps", unit="m/s", title="lowest speed at which a running mode turns unstable"
            ),
            Variable(name="crossing_hz", unit="Hz", title="frequency of that mode"),
            Variable(name="scanned", unit="1", title="1: found by a scan of the case itself", dtype="int64"),
        )
        self._modes = PerTrack(model, self._scanned)

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """One case."""
        modes = self._modes(model)
        close = [m for m in modes if m.speed <= CLOSE * modes[0].speed]
        found: list[tuple[float, complex, Array]] = []
        # the close ones always; the others when the spectrum says that one of them was first
        for group in (close, [m for m in modes if m not in close]):
            found += [f for mode in group if (f := self._follow(model, mode)) is not None]
            if found:
                speed, value, state = min(found, key=lambda f: f[0])
                if not self._another_unstable(model, speed, value, state):
                    return self._result(speed, abs(value.imag) / (2.0 * np.pi), scanned=0)
        crossings = running_pairs(model, self.range)
        if not crossings:
            return CaseResult(
                status=int(Status.NEWTON_FAILED),
                reason=f"no running mode turns unstable from {self.range.from_mps:g} to {self.range.to_mps:g} m/s",
            )
        return self._result(crossings[0].speed_mps, crossings[0].frequency_hz, scanned=1)

    def _result(self, speed: float, frequency: float, *, scanned: int) -> CaseResult:
        return CaseResult(
            status=int(Status.OK),
            numbers={"critical_speed_mps": speed, "crossing_hz": frequency, "scanned": scanned},
        )

    def _scanned(self, nominal: Model) -> list[_Mode]:
        """The lowest crossings of the nominal vehicle."""
        crossings = running_pairs(nominal, self.range)
        near = [c for c in crossings if c.speed_mps <= NEAR * crossings[0].speed_mps]
        return [_nominal_mode(nominal, c) for c in near[: self.range.modes]]

    def _follow(self, model: Model, mode: _Mode) -> tuple[float, complex, Array] | None:
        """Speed, eigenvalue and equilibrium of the crossing of one mode; None when it is lost."""
        binder = model.bind(["speed_mps"])

        def at(speed: float, near: _Place) -> _Place | None:
            try:
                here = binder([speed])
                state = here.equilibrium(near.state)
                pair = eigenpair(here.jacobian(0.0, state), near.value, near.vector)
            except (ModelError, InputError):
                return None
            if pair is None or pair[0].imag <= 0.0 or abs(np.vdot(mode.vector, pair[1])) < LEAST_LIKENESS:
                return None
            return _Place(speed, pair[0], pair[1], state)

        here = at(mode.speed, _Place(mode.speed, mode.value, mode.vector, mode.state))
        # walk to the other side of the crossing, with a little more than the step that the nominal slope suggests
        other = None
        while here is not None:
            growth = here.value.real
            share = float(np.clip(OVERSHOOT * abs(growth) / (mode.slope * here.speed), LEAST_STEP, LARGEST_STEP))
            speed = here.speed * (1.0 - share if growth > 0.0 else 1.0 + share)
            if abs(speed - mode.speed) > FARTHEST * mode.speed or not self.range.from_mps <= speed <= self.range.to_mps:
                return None
            other = at(speed, here)
            if other is None or (other.value.real > 0.0) != (growth > 0.0):
                break
            here, other = other, None
        if here is None or other is None:
            return None
        low, high = (here, other) if here.speed < other.speed else (other, here)
        return None if high.value.real < 0.0 else _crossing(at, low, high)

    def _another_unstable(self, model: Model, speed: float, value: complex, state: Array) -> bool:
        """Is a running mode other than the one that crosses here unstable already?"""
        here = model.bind(["speed_mps"])([speed])
        values = np.linalg.eigvals(here.jacobian(0.0, state))
        size = np.abs(values)
        other = np.abs(values - value) > 1e-3 * abs(value)
        low = (values.imag > 0.0) & (values.imag < 2.0 * np.pi * CONTACT_HZ)
        return bool((other & low & (values.real > UNSTABLE * size)).any())


def _crossing(
    at: Callable[[float, _Place], _Place | None], low: _Place, high: _Place
) -> tuple[float, complex, Array] | None:
    """Root of the real part between two speeds: regula falsi whose idle end loses weight (Illinois), or bisection."""
    a, b = low.value.real, high.value.real
    side = 0
    for step in range(MOST_STEPS):
        speed = (a * high.speed - b * low.speed) / (a - b)
        if step >= BISECT_AFTER:  # the real part jumps where a wheel passes a knot of the contact table
            speed = 0.5 * (low.speed + high.speed)
        place = at(speed, low if speed - low.speed < high.speed - speed else high)
        if place is None:
            return None
        growth = place.value.real
        if abs(growth) <= GROWTH_TOLERANCE * abs(place.value) or high.speed - low.speed <= SPEED_TOLERANCE * speed:
            return place.speed, place.value, place.state
        if growth < 0.0:
            low, a, b = place, growth, b / 2.0 if side < 0 else b
            side = -1
        else:
            high, b, a = place, growth, a / 2.0 if side > 0 else a
            side = 1
    return None


def running_pairs(model: Model, scan: ScanRange) -> list[Crossing]:
    """Speeds at which pairs of running modes turn unstable, lowest first."""
    return [c for c in turning_unstable(stability(model, scan.speeds).crossings) if c.frequency_hz > 0.0]


def _nominal_mode(model: Model, crossing: Crossing) -> _Mode:
    binder = model.bind(["speed_mps"])
    state, values, vectors = spectrum(binder([crossing.speed_mps]))
    i = int(np.argmin(np.abs(values - 2j * np.pi * crossing.frequency_hz)))
    value, vector = complex(values[i]), vectors[:, i] / np.linalg.norm(vectors[:, i])
    faster = binder([crossing.speed_mps * (1.0 + SLOPE_STEP)])
    pair = eigenpair(faster.jacobian(0.0, faster.equilibrium(state)), value, vector)
    slope = 0.0 if pair is None else (pair[0].real - value.real) / (SLOPE_STEP * crossing.speed_mps)
    return _Mode(crossing.speed_mps, value, vector, state, slope)


def eigenpair(matrix: Array, value: complex, vector: ComplexArray) -> tuple[complex, ComplexArray] | None:
    """The eigenvalue and unit eigenvector near a guess by Newton's method (normalised along the guess); None: lost.

    With (J - lambda) w = x and c the guess, the step is lambda + 1 / (c, w) and x = w / (c, w).
    """
    x = vector.copy()
    shifted = matrix.astype(np.complex128)
    diagonal = np.einsum("ii->i", shifted)
    own = diagonal.copy()
    for _ in range(MOST_STEPS):
        diagonal[:] = own - value
        try:
            w = np.linalg.solve(shifted, x)
        except np.linalg.LinAlgError:
            return value, x / np.linalg.norm(x)
        along = np.vdot(vector, w)
        if not np.isfinite(along) or along == 0.0:
            return None
        change = 1.0 / along
        value, x = complex(value + change), w * change
        if abs(change) <= EIGEN_TOLERANCE * abs(value):
            return value, x / np.linalg.norm(x)
    return None
