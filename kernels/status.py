"""The closed set of outcomes a kernel can report. Messages are attached by the engine, outside compiled code."""

from enum import IntEnum


class Status(IntEnum):
    """What a kernel returns. OK is zero; every other value is a reason to stop, stored as a result."""

    OK = 0
    EVENT = 1
    DERAILED = 2
    LAW_OUT_OF_RANGE = 3
    STEP_UNDERFLOW = 4
    NEWTON_FAILED = 5
    NOT_FINITE = 6
    STEP_LIMIT = 7
    TIME_LIMIT = 8


# Plain integers for compiled code: numba freezes module-level ints, and an IntEnum member costs a lookup.
OK = int(Status.OK)
EVENT = int(Status.EVENT)
DERAILED = int(Status.DERAILED)
LAW_OUT_OF_RANGE = int(Status.LAW_OUT_OF_RANGE)
STEP_UNDERFLOW = int(Status.STEP_UNDERFLOW)
NEWTON_FAILED = int(Status.NEWTON_FAILED)
NOT_FINITE = int(Status.NOT_FINITE)
STEP_LIMIT = int(Status.STEP_LIMIT)
TIME_LIMIT = int(Status.TIME_LIMIT)
