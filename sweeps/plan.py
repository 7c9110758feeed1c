"""The cases of a study as an indexed space, cut into blocks. Nothing is ever written out: 10^7 cases cost nothing.

Case number i is its position in the product of the dimensions in C order. A block is a box of that product that is
contiguous in C order: it spans the last dimensions whole, a piece of one, and single members of those before. Its
box is one chunk of every array of the store.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError
from railsweep.sweeps.study import Axis, Study, canonical, dimensions

LEAST_BLOCKS_PER_WORKER = 4
KEPT_VALUES = 16384


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Dimensions, block shape and identity of every case.

    Attributes
    ----------
    names, shape : tuple
        Dimensions in order.
    block_shape : tuple of int
        Box of one block; at the far ends of the dimensions boxes are smaller.
    """

    axes: tuple[Axis, ...]
    names: tuple[str, ...]
    shape: tuple[int, ...]
    block_shape: tuple[int, ...]
    base_digest: str

    @property
    def cases(self) -> int:
        """Number of cases."""
        return math.prod(self.shape)

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Number of blocks along each dimension."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.block_shape, strict=True))

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return math.prod(self.grid)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Varied parameters, in the order of the values of a case."""
        return tuple(a.parameter for a in self.axes)

    def coordinates(self, block: int) -> tuple[int, ...]:
        """Position of a block in the grid of blocks: the chunk coordinates."""
        if not 0 <= block < self.blocks:
            raise InputError("block", f"is {block}", f"0 to {self.blocks - 1}")
        return tuple(int(k) for k in np.unravel_index(block, self.grid))

    def region(self, block: int) -> tuple[slice, ...]:
        """The box of a block."""
        return tuple(
            slice(k * b, min((k + 1) * b, n))
            for k, b, n in zip(self.coordinates(block), self.block_shape, self.shape, strict=True)
        )

    def box(self, block: int) -> tuple[int, ...]:
        """Shape of a block."""
        return tuple(s.stop - s.start for s in self.region(block))

    def indices(self, block: int) -> Iterator[tuple[int, ...]]:
        """Positions of the cases of a block, in C order."""
        region = self.region(block)
        for offset in np.ndindex(*self.box(block)):
            yield tuple(s.start + o for s, o in zip(region, offset, strict=True))

    def position(self, case: int) -> tuple[int, ...]:
        """Position of a case by its number."""
        if not 0 <= case < self.cases:
            raise InputError("case", f"is {case}", f"0 to {self.cases - 1}")
        return tuple(int(k) for k in np.unravel_index(case, self.shape))

    def number(self, position: tuple[int, ...]) -> int:
        """Number of a case by its position."""
        found = 0
        for p, n in zip(position, self.shape, strict=True):
            found = found * n + p
        return found

    def block_of(self, position: tuple[int, ...]) -> int:
        """The block that holds a case."""
        return int(np.ravel_multi_index([p // b for p, b in zip(position, self.block_shape, strict=True)], self.grid))

    def values(self, position: tuple[int, ...]) -> tuple[float, ...]:
        """Values of the parameters of a case."""
        return tuple(self._value(a, position[d]) for a, d in enumerate(self._dimension_of_axis))

    @cached_property
    def _value(self) -> Callable[[int, int], float]:
        """Value i of axis a; neighbours ask for the same values again and again."""
        return lru_cache(maxsize=KEPT_VALUES)(lambda a, i: self.axes[a].value(i))

    @cached_property
    def _dimension_of_axis(self) -> tuple[int, ...]:
        return tuple(self.names.index(a.zipped or a.name) for a in self.axes)

    def axis_values(self, axis: Axis) -> NDArray[np.float64]:
        """All values of one axis."""
        return axis.array()

    def identity(self, values: tuple[float, ...]) -> str:
        """Content hash of a case: what all cases share, and its own values; its place in the study plays no part."""
        numbers = [repr(v) if math.isfinite(v) else f'"{v!r}"' for v in values]
        own = ",".join(f"{word}:{numbers[a]}" for word, a in self._keys)
        return hashlib.sha256(f"{self.base_digest}\n{{{own}}}".encode()).hexdigest()

    @cached_property
    def _keys(self) -> tuple[tuple[str, int], ...]:
        """Parameters in sorted order as JSON words, with their places: the canonical form of the values of a case."""
        return tuple((canonical(name), self.parameters.index(name)) for name in sorted(self.parameters))

    def seed(self, values: tuple[float, ...]) -> int:
        """Seed of the random numbers of a case, from its identity."""
        return int(self.identity(values)[:15], 16)


def make_plan(study: Study, block_cases: int) -> Plan:
    """Cut a study into blocks of about (at most) `block_cases` cases."""
    named = dimensions(study.axes)
    shape = tuple(size for _, size in named)
    return Plan(
        axes=study.axes,
        names=tuple(name for name, _ in named),
        shape=shape,
        block_shape=block_shape(shape, block_cases),
        base_digest=study.base_digest,
    )


def block_shape(shape: tuple[int, ...], cases: int) -> tuple[int, ...]:
    """The largest box of at most `cases` cases that is contiguous in C order.

    >>> block_shape((5, 4, 10), 25)
    (1, 2, 10)
    """
    left, box = max(1, cases), []
    for size in reversed(shape):
        part = min(size, left)
        box.append(part)
        left //= part
        if part < size:
            left = 1
    return tuple(reversed(box))


def cases_per_block(cases: int, case_seconds: float, block_seconds: float, workers: int) -> int:
    """Block size by measured cost: `block_seconds` of work, but enough blocks to keep every worker busy to the end."""
    by_cost = int(block_seconds / max(case_seconds, 1e-6))
    by_share = -(-cases // (LEAST_BLOCKS_PER_WORKER * max(1, workers)))
    # Sharing must not cut work into blocks too short to pay for their own writing.
    floor = int(0.5 / max(case_seconds, 1e-6))
    return max(1, min(by_cost, max(by_share, floor), cases))
