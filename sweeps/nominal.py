"""What a quantity finds once for the nominal vehicle on every track of a study, for its cases to begin from."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from railsweep.kernels import record as slot

if TYPE_CHECKING:
    from railsweep.engine.model import Model

T = TypeVar("T")


class PerTrack(Generic[T]):
    """Calls `find` with the nominal vehicle on the track of a case, once per track; any number of threads may ask."""

    def __init__(self, nominal: Model, find: Callable[[Model], T]) -> None:
        self._nominal, self._find = nominal, find
        self._found: dict[tuple[float, float], T] = {}
        self._lock = Lock()

    def __call__(self, case: Model) -> T:
        operation = case.arrays.operation
        track = float(operation[slot.CURVATURE]), float(operation[slot.CANT])
        with self._lock:
            if track not in self._found:
                nominal = self._nominal
                if not nominal.track.varies:
                    nominal = nominal.bind(["track.curvature_1pm", "track.cant_rad"])(track)
                self._found[track] = self._find(nominal)
        return self._found[track]
