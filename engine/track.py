"""The track a vehicle runs on: straight, a curve, or a list of segments with transitions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.kernels import record as slot

CANT_BASE_MM = 1500.0  # distance of the running circles: cant angle = asin(cant / base) (spec A9)
LARGEST_CANT_MM = 500.0
TIGHTEST_RADIUS_M = 10.0
SHAPES = {
    "constant": slot.SHAPE_CONSTANT,
    "clothoid": slot.SHAPE_CLOTHOID,
    "bloss": slot.SHAPE_BLOSS,
    "cosine": slot.SHAPE_COSINE,
}
HANDS = {"right": 1.0, "left": -1.0}


def cant_angle(cant_mm: float) -> float:
    """Cant angle [rad] of a cant in millimetres."""
    return math.asin(cant_mm / CANT_BASE_MM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of track on which curvature and cant go from one value to another.

    Attributes
    ----------
    length_m : float
        Length along the track.
    curvature_1pm, cant_rad : (start, end)
        Curvature, positive in a right-hand curve, and cant, positive with the left rail raised.
    shape : {"constant", "clothoid", "bloss", "cosine"}
        How they go: linear in arc length, 3u^2 - 2u^3, or (1 - cos pi u)/2.
    """

    length_m: float
    curvature_1pm: tuple[float, float] = (0.0, 0.0)
    cant_rad: tuple[float, float] = (0.0, 0.0)
    shape: str = "clothoid"

    def __post_init__(self) -> None:
        check_number("track segment: length_m", self.length_m, above=0.0)
        if self.shape not in SHAPES:
            raise InputError(
                "track segment: shape", f"is {self.shape!r}, {nearest(self.shape, list(SHAPES))}", ", ".join(SHAPES)
            )
        for value in self.curvature_1pm:
            check_number(
                "track segment: curvature_1pm", value, least=-1.0 / TIGHTEST_RADIUS_M, most=1.0 / TIGHTEST_RADIUS_M
            )
        for value in self.cant_rad:
            check_number("track segment: cant_rad", value, least=-0.5, most=0.5)
        if self.shape == "constant" and (len(set(self.curvature_1pm)) > 1 or len(set(self.cant_rad)) > 1):
            raise InputError("track segment: shape", "is 'constant' between different ends", "clothoid, bloss, cosine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Straight track, a circular curve, a curve after a transition, or any list of segments.

    Parameters
    ----------
    radius_m : float
        Curve radius, positive; infinite for straight track. A negative radius is a left-hand curve.
    cant_mm : float
        Cant, positive with the OUTER rail raised (on straight track: the left rail).
    hand : {"right", "left"}
        Which way the curve turns.
    transition_m : float
        Length of the transition from straight, level track that begins at t = 0; 0 for none.
    transition : {"clothoid", "bloss", "cosine"}
        Its shape. At both ends of a clothoid the cant rate jumps; the impulse that a rigid corner of the ramp would
        give is left out, so take bloss or cosine where the entry itself matters.
    segments : tuple of Segment
        Instead of all the above: the track from t = 0 on; the end values hold before and after.

    Examples
    --------
    >>> track = Track(radius_m=600.0, cant_mm=110.0)
    >>> round(track.cant_rad, 6)
    0.073399
    """

    radius_m: float = math.inf
    cant_mm: float = 0.0
    hand: str = "right"
    transition_m: float = 0.0
    transition: str = "clothoid"
    segments: tuple[Segment, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.radius_m, bool) or not isinstance(self.radius_m, (int, float)) or math.isnan(self.radius_m):
            raise InputError("track: radius_m", f"is {self.radius_m!r}", "a number")
        if abs(self.radius_m) < TIGHTEST_RADIUS_M:
            raise InputError("track: radius_m", f"is {self.radius_m!r}", f"at least {TIGHTEST_RADIUS_M:g} m, or inf")
        check_number("track: cant_mm", self.cant_mm, least=-LARGEST_CANT_MM, most=LARGEST_CANT_MM)
        if self.hand not in HANDS:
            raise InputError("track: hand", f"is {self.hand!r}", "right, left")
        if self.radius_m < 0.0 and self.hand == "left":
            raise InputError("track: hand", "is 'left' beside a negative radius_m", "one of the two")
        check_number("track: transition_m", self.transition_m, least=0.0)
        if self.transition not in SHAPES or self.transition == "constant":
            raise InputError("track: transition", f"is {self.transition!r}", "clothoid, bloss, cosine")
        if self.segments and (math.isfinite(self.radius_m) or self.cant_mm or self.transition_m):
            raise InputError("track: segments", "stand beside radius_m, cant_mm or transition_m", "one or the other")

    @property
    def curvature_1pm(self) -> float:
        """Curvature at the end of the track [1/m], positive in a right-hand curve."""
        if self.segments:
            return self.segments[-1].curvature_1pm[1]
        return HANDS[self.hand] / self.radius_m

    @property
    def cant_rad(self) -> float:
        """Cant at the end of the track [rad], positive with the left rail raised."""
        if self.segments:
            return self.segments[-1].cant_rad[1]
        outer = math.copysign(1.0, self.curvature_1pm) if self.curvature_1pm else 1.0
        return outer * cant_angle(self.cant_mm)

    @property
    def varies(self) -> bool:
        """Does the track change along the way?"""
        return bool(self.segments) or self.transition_m > 0.0

    def packed(self) -> NDArray[np.float64]:
        """Segment records for the kernels."""
        segments = self.segments
        if not segments:
            segments = (
                Segment(
                    length_m=self.transition_m or 1.0,
                    curvature_1pm=(0.0, self.curvature_1pm),
                    cant_rad=(0.0, self.cant_rad),
                    shape=self.transition,
                ),
            )
        rows, start = [], 0.0
        for s in segments:
            rows.append([start, s.length_m, float(SHAPES[s.shape]), *s.curvature_1pm, *s.cant_rad])
            start += s.length_m
        return np.array(rows)
