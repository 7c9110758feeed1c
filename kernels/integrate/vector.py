"""Copying, without the overlap checks (and the memory) of a slice assignment."""

from typing import Any

from railsweep.kernels.jit import plain_jit


@plain_jit
def copy(source: Any, target: Any) -> None:
    """target <- source."""
    for i in range(target.size):
        target[i] = source[i]
