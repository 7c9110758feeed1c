"""Equivalent conicity of a wheelset on a track (EN 15302, UIC 519), roll parameter and contact angle parameter.

A free wheelset that rolls kinematically obeys  y'' + dr(y) / (e r0) = 0  along the track, dr = r_left - r_right the
difference of the rolling radii, e the distance of the contact points (tape circles), r0 the nominal radius. For a given
amplitude its wavelength L follows from the energy integral, and the equivalent conicity is that of the cone with the
same wavelength (Klingel):  tan(gamma) = 2 e r0 (pi / L)^2. The second method is half the slope of the regression line
of dr over the path; both agree for a cone. The regression also gives the roll parameter  sigma = (e/2) d roll / dy  and
the contact angle parameter  epsilon = (e/4) d(tan delta_left - tan delta_right) / dy  (Kraft M6, M7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.contact_table import ContactTable, WheelTable, rigid_path
from railsweep.engine.errors import InputError, shown

Array = NDArray[np.float64]

AMPLITUDES_MM = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
QUADRATURE_POINTS = 4000
LEAST_DIFFERENCE_M = 1e-9  # radii that differ by less over the whole table are those of a cylinder


@dataclass(frozen=True, slots=True, kw_only=True)
class Conicity:
    """Results over the amplitude of the lateral motion; nan where the wheelset is not steered back.

    amplitude_m : half the peak-to-peak lateral motion [m]; integration, regression : tan(gamma_e) by the two methods;
    wavelength_m : of the kinematic motion [m]; roll_parameter, angle_parameter : sigma and epsilon [-];
    centre_m : shift without difference of radii, about which the wheelset swings [m].
    """

    amplitude_m: Array
    integration: Array
    regression: Array
    wavelength_m: Array
    roll_parameter: Array
    angle_parameter: Array
    centre_m: float


def _main(wheel: WheelTable, column: str) -> Array:
    """A column of the contact that carries most at each shift."""
    strongest = np.argmax(wheel.normal_force_n, axis=0)
    return np.asarray(getattr(wheel, column)[strongest, np.arange(strongest.size)])


def radius_difference(table: ContactTable) -> Array:
    """r_left - r_right over the shift to the left [m]; several contacts of a wheel count by their share of load."""
    right = table.right or table.left

    def mean_radius(wheel: WheelTable) -> Array:
        weight = np.maximum(wheel.normal_force_n, 0.0)
        result: Array = (weight * wheel.rolling_radius_m).sum(axis=0) / weight.sum(axis=0)
        return result

    return mean_radius(table.left) - np.interp(-table.shift_m, table.shift_m, mean_radius(right))


def equivalent_conicity(
    table: ContactTable,
    *,
    amplitudes_m: ArrayLike | None = None,
    spacing_m: float = 1.5,
    rolling_radius_m: float | None = None,
) -> Conicity:
    """Equivalent conicity and its companions at given amplitudes.

    Parameters
    ----------
    table : ContactTable
    amplitudes_m : array_like, optional
        Default 1 to 8 mm [m].
    spacing_m : float
        Distance e of the contact points, 1.5 m on standard gauge.
    rolling_radius_m : float, optional
        r0; the table's radius in the centred position when not given. It scales the wavelength, not the conicity.

    Examples
    --------
    >>> from railsweep.engine.contact_table import conical_table
    >>> result = equivalent_conicity(conical_table(conicity=0.05, rail_radius_m=1e-3), amplitudes_m=[0.003])
    >>> bool(abs(result.integration[0] - 0.0514) < 1e-3)
    True
    """
    chosen = [a * 1e-3 for a in AMPLITUDES_MM] if amplitudes_m is None else amplitudes_m
    amplitude = np.atleast_1d(np.asarray(chosen, dtype=float))
    if amplitude.ndim != 1 or not (np.isfinite(amplitude).all() and (amplitude > 0.0).all()):
        raise InputError("amplitudes_m", f"{shown(amplitudes_m)} has a value out of range", "positive numbers")
    if not (math.isfinite(spacing_m) and 0.3 <= spacing_m <= 3.0):
        raise InputError("spacing_m", f"is {shown(spacing_m)}", "0.3 to 3 m")
    radius = table.centre_radius_m if rolling_radius_m is None else rolling_radius_m
    if not (math.isfinite(radius) and 0.1 <= radius <= 1.0):
        raise InputError("rolling_radius_m", f"is {shown(radius)}", "0.1 to 1 m")

    shift, difference = table.shift_m, radius_difference(table)
    centre = _centre(table.name, shift, difference)
    right = table.right or table.left
    tangents = np.tan(_main(table.left, "angle_rad"))
    tangents = tangents - np.interp(-shift, shift, np.tan(_main(right, "angle_rad")))
    roll = rigid_path(table)[1]
    motion = _Motion(shift, difference)
    rows = []
    for a in amplitude:
        ends = motion.turning_points(centre, float(a))
        if ends is None:
            rows.append((math.nan,) * 5)
            continue
        low, high = ends
        half = 0.5 * (high - low)
        integral = motion.period_integral(low, high)
        wavelength = math.sqrt(spacing_m * radius / 2.0) * integral
        # Klingel: L = 2 pi sqrt(e r0 / (2 tan gamma)), so that e and r0 cancel
        rows.append(
            (
                (2.0 * math.pi / integral) ** 2,
                0.5 * _slope(shift, difference, low, high),
                wavelength,
                0.5 * spacing_m * _slope(shift, roll, low, high),
                0.25 * spacing_m * _slope(shift, tangents, low, high),
            )
            if half > 0.0
            else (math.nan,) * 5
        )
    columns = np.array(rows).T
    return Conicity(
        amplitude_m=amplitude,
        integration=columns[0],
        regression=columns[1],
        wavelength_m=columns[2],
        roll_parameter=columns[3],
        angle_parameter=columns[4],
        centre_m=centre,
    )


def _centre(name: str, shift: Array, difference: Array) -> float:
    """The rising zero of the radius difference nearest to the middle of the track."""
    rising = np.flatnonzero((difference[:-1] <= 0.0) & (difference[1:] > 0.0))
    if rising.size == 0 or float(np.abs(difference).max()) < LEAST_DIFFERENCE_M:
        raise InputError(
            f"contact table {name}", "the radii never balance with a restoring difference", "another pairing"
        )
    step = difference[rising + 1] - difference[rising]
    zeros = shift[rising] - difference[rising] * (shift[rising + 1] - shift[rising]) / step
    return float(zeros[np.argmin(np.abs(zeros))])


class _Motion:
    """y'' = -f(y) with f = (r_left - r_right)/2 piecewise linear; its potential is exact for that."""

    def __init__(self, shift: Array, difference: Array) -> None:
        self.shift, self.force = shift, 0.5 * difference
        step = np.diff(shift)
        steps = 0.5 * step * (self.force[1:] + self.force[:-1])
        self.total = np.concatenate([[0.0], np.cumsum(steps)])

    def potential(self, y: Array) -> Array:
        k = np.clip(np.searchsorted(self.shift, y, side="right") - 1, 0, self.shift.size - 2)
        t = y - self.shift[k]
        rate = (self.force[k + 1] - self.force[k]) / (self.shift[k + 1] - self.shift[k])
        return np.asarray(self.total[k] + t * (self.force[k] + 0.5 * t * rate))

    def turning_points(self, centre: float, amplitude: float) -> tuple[float, float] | None:
        """Where the motion with this amplitude turns: equal potential, 2 amplitudes apart; None if there is none."""
        least, most = float(self.shift[0]), float(self.shift[-1])
        low, high = max(least, centre - 2.0 * amplitude), min(centre, most - 2.0 * amplitude)
        if not low < high:
            return None

        def imbalance(left: float) -> float:
            a, b = self.potential(np.array([left, left + 2.0 * amplitude]))
            return float(b - a)

        if not (imbalance(low) < 0.0 < imbalance(high)):
            return None
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if imbalance(middle) < 0.0 else (low, middle)
        left = 0.5 * (low + high)
        right = left + 2.0 * amplitude
        inside = self.potential(np.linspace(left, right, 501)[1:-1])
        if (inside >= self.potential(np.array([left]))[0]).any():
            return None  # a hill in between: the wheelset would settle on one side of it
        return left, right

    def period_integral(self, low: float, high: float) -> float:
        """Integral of dy / sqrt(2 (E - P)) over a full period; y = middle + half sin(t) takes the singular ends out."""
        t = (np.arange(QUADRATURE_POINTS) + 0.5) / QUADRATURE_POINTS * math.pi - 0.5 * math.pi
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        y = middle + half * np.sin(t)
        energy = np.where(y > middle, self.potential(np.array([high]))[0], self.potential(np.array([low]))[0])
        kinetic = np.maximum(2.0 * (energy - self.potential(y)), 1e-300)
        return float(2.0 * (half * np.cos(t) / np.sqrt(kinetic)).sum() * math.pi / QUADRATURE_POINTS)


def _slope(shift: Array, values: Array, low: float, high: float) -> float:
    """Slope of the least-squares line of a piecewise linear function over [low, high]."""
    inner = shift[(shift > low) & (shift < high)]
    y = np.concatenate([[low], inner, [high]])
    v = np.interp(y, shift, values)
    middle = 0.5 * (low + high)
    width = np.diff(y)
    # exact integrals of v (y - middle) for linear v
    a, b = y[:-1] - middle, y[1:] - middle
    moment = (width / 6.0 * (v[:-1] * (2.0 * a + b) + v[1:] * (a + 2.0 * b))).sum()
    return float(12.0 * moment / (high - low) ** 3)
