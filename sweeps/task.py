"""The contract between a study and the place where it runs. Sweeps own it; `railsweep.cluster` implements executors.

A task is one block of cases. It computes, writes its block to the store and reports; nothing but the report travels
back. An executor knows blocks by number only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """A finished block: it is in the store and in the ledger.

    Attributes
    ----------
    block : int
    cases, failed : int
        How many cases it holds and how many of them ended with a failure status (a result, not an error).
    statuses : dict
        Status name -> number of cases.
    seconds, write_seconds : float
        Time of the computation and of the writing.
    host, pid
        Who computed it.
    fresh : bool
        False when the block was found finished and was not computed again.
    """

    block: int
    cases: int
    failed: int
    statuses: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    write_seconds: float = 0.0
    host: str = ""
    pid: int = 0
    fresh: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLost:
    """A block that did not get into the store: a dead worker, a full disk.

    `fatal`: trying again is futile. `untried`: the task gave it back, because it waited for a block that was lost.
    """

    block: int
    reason: str
    fatal: bool = False
    untried: bool = False


Outcome = BlockReport | BlockLost


class Abandoned(Exception):  # noqa: N818 - not an error: the run was asked to stop
    """Raised inside a task that was asked to stop before its block was complete."""


class GivenBack(Exception):  # noqa: N818 - no error either: its turn comes when the lost block is there
    """Raised inside a task whose block follows from one that was lost."""


class Stop:
    """A request to end the run: hand out no more blocks, wait `grace_s` for the running ones, then drop them.

    A second request drops them at once.
    """

    def __init__(self, grace_s: float = 10.0) -> None:
        self.grace_s = grace_s
        self.deadline: float | None = None
        self.reason = ""
        self.requested = False  # plain, because a signal handler sets it

    def request(self, reason: str) -> None:
        """Ask to stop; asked a second time: at once."""
        self.deadline = time.monotonic() + (0.0 if self.requested else self.grace_s)
        self.reason = self.reason or reason
        self.requested = True

    def expired(self) -> bool:
        """Is the grace over?"""
        return self.deadline is not None and time.monotonic() >= self.deadline


class Task(Protocol):
    """What an executor runs. It can be pickled between the processes of one run."""

    @property
    def block_limit_s(self) -> float | None:
        """A block that takes longer than this hangs; None: no limit."""

    def warm_up(self) -> None:
        """Prepare this process (compile or load machine code); called once per process before the first block."""

    def __call__(self, block: int, abandon: Callable[[], bool] | None = None) -> BlockReport:
        """Compute and store a block. Raises Abandoned when `abandon()` turns true between two cases."""


class Executor(Protocol):
    """Where blocks are computed.

    Laws (tests/cluster checks them for every executor): every block handed in comes back exactly once, as a report or
    as lost, unless a stop was requested; a task that raises loses its own block only; a worker that dies loses its own
    block only and is replaced (under MPI the job ends); after a requested stop `run` returns within the grace time.
    """

    @property
    def name(self) -> str:
        """Kind, for the provenance record."""

    @property
    def workers(self) -> int:
        """How many blocks are computed at a time."""

    def run(self, task: Task, blocks: Sequence[int], stop: Stop) -> Iterator[Outcome]:
        """Compute blocks, yield outcomes as they come."""

    def close(self) -> None:
        """Let the workers go."""


FATAL_ERRNOS = ("EDQUOT", "EFBIG", "ENOSPC", "EROFS", "EACCES", "EPERM")


def lost(block: int, error: BaseException) -> BlockLost:
    """What an exception that left a task means for its block."""
    import errno

    fatal = isinstance(error, OSError) and errno.errorcode.get(error.errno or 0, "") in FATAL_ERRNOS
    untried = isinstance(error, GivenBack)
    return BlockLost(block=block, reason=f"{type(error).__name__}: {error}", fatal=fatal, untried=untried)
