"""Cases of one vehicle side by side in lanes: which right-hand sides have such a form, and their packed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.kernels.lane import LANES
from railsweep.kernels.record import VehicleArrays
from railsweep.kernels.vehicle import vehicle_rhs
from railsweep.kernels.vehicle_lanes import vehicle_lanes_rhs

Array = NDArray[np.float64]

OWN = VehicleArrays._fields.index("operation")  # from here on every case has numbers of its own


def lane_form(rhs: Any) -> Any | None:
    """The right-hand side of LANES cases that belongs to that of one, or None."""
    return vehicle_lanes_rhs if rhs is vehicle_rhs else None


def share_lanes(cases: Sequence[VehicleArrays]) -> bool:
    """May these cases stand side by side: the same switches, topology, contact tables, laws and rails?"""
    first = cases[0]
    return all(
        a is b or np.array_equal(a, b) for case in cases[1:] for a, b in zip(case[:OWN], first[:OWN], strict=True)
    )


def record_of(case: VehicleArrays) -> Array:
    """All numbers of a case in one row."""
    return np.concatenate([numbers.ravel() for numbers in case[OWN:]])


def lane_group(like: VehicleArrays) -> tuple[Array, VehicleArrays]:
    """Room for LANES cases: a matrix with the record of a case in every column, and the kernel's view of it."""
    sizes = [numbers.size for numbers in like[OWN:]]
    record = np.zeros((sum(sizes), LANES))
    ends = np.cumsum(sizes)
    views = [
        record[end - size : end].reshape(*numbers.shape, LANES)
        for end, size, numbers in zip(ends, sizes, like[OWN:], strict=True)
    ]
    return record, VehicleArrays(*like[:OWN], *views)
