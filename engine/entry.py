"""Addresses at which compiled integrators reach the jitted functions of a problem."""

import threading
from collections.abc import Callable
from typing import Any

import numba

from railsweep.engine.errors import InputError, shown

_entries: dict[tuple[Any, ...], Any] = {}
_entries_lock = threading.Lock()


def entry(make: Callable[..., Any], function: Any, name: str, *extra: Any) -> int:
    """Address of the C entry of a jitted function; entries live as long as the process."""
    if function is None:
        return 0
    if not isinstance(function, numba.core.registry.CPUDispatcher):
        raise InputError(name, f"is {shown(function)}", "a function compiled with numba.njit")
    return int(made(make, function, *extra).address)


def made(make: Callable[..., Any], function: Any, *extra: Any) -> Any:
    key = (make, function, *extra)
    with _entries_lock:
        if key not in _entries:
            _entries[key] = make(function, *extra)
        return _entries[key]
