"""Named quantities at one state of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError, nearest
from railsweep.engine.packing import Layout
from railsweep.kernels import contact as point
from railsweep.kernels import observe as seen
from railsweep.kernels import record as slot
from railsweep.kernels.observe import observe_vehicle

Array = NDArray[np.float64]

COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactPoint:
    """One contact point, SI units. Forces act on the wheel; creepages are those of the wheel over the rail."""

    wheelset: str
    side: str
    number: int
    shift_m: float
    angle_rad: float
    penetration_m: float
    normal_n: float
    creep_x: float
    creep_y: float
    creep_spin_1pm: float
    tangent_x_n: float
    tangent_y_n: float
    force_n: tuple[float, float, float]
    lever_m: float
    rolling_radius_m: float
    axis_rolling_m: float
    axis_lateral_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    """One suspension element: extension, rate, force (SI), and its wrench (fx..mz) on both bodies."""

    name: str
    extension: float
    rate: float
    force: float
    on_lower: Array
    on_upper: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What `Model.outputs` returns.

    Attributes
    ----------
    forces : dict
        origin ("suspension", "contact", "gravity", "centrifugal", "gyroscopic") -> body -> (fx, fy, fz, mx, my, mz).
    points : tuple of ContactPoint
    links : tuple of LinkView
    y_n, q_n : dict
        "<wheelset>.left" and ".right" -> lateral force Y of the wheel on the rail, positive outward, and vertical wheel
        load Q, positive downward [N].
    """

    rates: Array
    forces: dict[str, dict[str, Array]]
    points: tuple[ContactPoint, ...]
    links: tuple[LinkView, ...]
    y_n: dict[str, float]
    q_n: dict[str, float]
    clearances_m: dict[str, float]
    _layout: Layout

    @property
    def y_over_q(self) -> dict[str, float]:
        """Derailment quotient Y/Q of every wheel; nan for an unloaded wheel."""
        return {k: self.y_n[k] / q if q > 0.0 else float("nan") for k, q in self.q_n.items()}

    @property
    def sum_y_n(self) -> dict[str, float]:
        """Sum of the lateral forces of each wheelset on the track, positive to the left [N]."""
        return {w: self.y_n[f"{w}.left"] - self.y_n[f"{w}.right"] for w in self._layout.wheelset_names}

    def acceleration(
        self, body: str, point_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> tuple[float, float, float]:
        """Acceleration (x, y, z) [m/s^2] in the track frame of a point of a body, given from its centre of mass.

        To first order in the rotations: a + alpha x p.
        """
        names = self._layout.body_names
        if body not in names:
            raise InputError("body", f"{body!r} is no body, {nearest(body, list(names))}", ", ".join(names))
        index = self._layout.body_index[names.index(body)]

        def rate(coordinate: int) -> float:
            state = index[coordinate]
            return float(self.rates[state]) if state >= 0 else 0.0

        ay, az = rate(slot.Y_DOT), rate(slot.Z_DOT)
        roll, pitch, yaw = rate(slot.ROLL_DOT), rate(slot.PITCH_DOT), rate(slot.YAW_DOT)
        x, y, z = point_m
        return pitch * z - yaw * y, ay + yaw * x - roll * z, az + roll * y - pitch * x


def observe(layout: Layout, arrays: slot.VehicleArrays, t: float, y: Array) -> tuple[Outputs, int]:
    """Evaluate everything at a state; returns the outputs and a kernel status."""
    bodies, wheelsets, elements = len(layout.body_names), len(layout.wheelset_names), len(layout.link_names)
    index = layout.wheelset_index
    rows = int(index[:, slot.LEFT_COUNT].sum() + index[:, slot.RIGHT_COUNT].sum())
    rates = np.zeros(len(layout.state_names))
    forces = np.zeros((seen.ORIGINS, bodies, slot.FORCE_WIDTH))
    points = np.zeros((max(1, rows), point.POINT_WIDTH))
    first = np.zeros(max(1, wheelsets), np.int64)
    links = np.zeros((max(1, elements), seen.LINK_VIEW_WIDTH))
    wrenches = np.zeros((max(1, elements), 2 * slot.FORCE_WIDTH))
    status = observe_vehicle(t, y, arrays, rates, forces, points, first, links, wrenches)

    contact_points: list[ContactPoint] = []
    lateral: dict[str, float] = {}
    vertical: dict[str, float] = {}
    for w, name in enumerate(layout.wheelset_names):
        row = int(first[w])
        for side, sign, count in (
            ("left", 1.0, index[w, slot.LEFT_COUNT]),
            ("right", -1.0, index[w, slot.RIGHT_COUNT]),
        ):
            block = points[row : row + int(count)]
            # the wheel pushes the rail with the opposite of the force on the wheel: Y outward, Q downward
            lateral[f"{name}.{side}"] = float(-sign * block[:, point.POINT_FY].sum())
            vertical[f"{name}.{side}"] = float(block[:, point.POINT_FZ].sum())
            contact_points += [_contact_point(name, side, p, values) for p, values in enumerate(block)]
            row += int(count)
    clearances = {
        name: float(arrays.law[layout.link_index[k, slot.SPRING_LAW], slot.LAW_B] - abs(links[k, seen.LINK_EXTENSION]))
        for k, name in enumerate(layout.link_names)
        if layout.link_index[k, slot.SPRING_LAW] >= 0
        and layout.law_index[layout.link_index[k, slot.SPRING_LAW], slot.LAW_KIND] == slot.GAP_LAW
    }
    origins = ("suspension", "contact", "gravity", "centrifugal", "gyroscopic")
    return (
        Outputs(
            rates=rates,
            forces={o: {b: forces[i, j] for j, b in enumerate(layout.body_names)} for i, o in enumerate(origins)},
            points=tuple(contact_points),
            links=tuple(
                LinkView(
                    name=name,
                    extension=float(links[k, seen.LINK_EXTENSION]),
                    rate=float(links[k, seen.LINK_RATE]),
                    force=float(links[k, seen.LINK_FORCE]),
                    on_lower=wrenches[k, : slot.FORCE_WIDTH],
                    on_upper=wrenches[k, slot.FORCE_WIDTH :],
                )
                for k, name in enumerate(layout.link_names)
            ),
            y_n=lateral,
            q_n=vertical,
            clearances_m=clearances,
            _layout=layout,
        ),
        int(status),
    )


def _contact_point(wheelset: str, side: str, number: int, v: Array) -> ContactPoint:
    return ContactPoint(
        wheelset=wheelset,
        side=side,
        number=number,
        shift_m=float(v[point.POINT_SHIFT]),
        angle_rad=float(v[point.POINT_ANGLE]),
        penetration_m=float(v[point.POINT_PENETRATION]),
        normal_n=float(v[point.POINT_NORMAL]),
        creep_x=float(v[point.POINT_CREEP_X]),
        creep_y=float(v[point.POINT_CREEP_Y]),
        creep_spin_1pm=float(v[point.POINT_CREEP_SPIN]),
        tangent_x_n=float(v[point.POINT_TANGENT_X]),
        tangent_y_n=float(v[point.POINT_TANGENT_Y]),
        force_n=(float(v[point.POINT_FX]), float(v[point.POINT_FY]), float(v[point.POINT_FZ])),
        lever_m=float(v[point.POINT_LEVER]),
        rolling_radius_m=float(v[point.POINT_RADIUS]),
        axis_rolling_m=float(v[point.POINT_AXIS_A]),
        axis_lateral_m=float(v[point.POINT_AXIS_B]),
    )
