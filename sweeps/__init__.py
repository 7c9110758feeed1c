"""Floor 2: many runs. Study files, plans, the zarr store, and the contract with executors.

Names are imported from their modules on first use (PEP 562), as in `railsweep.engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plan import Plan as Plan
    from .plan import make_plan as make_plan
    from .progress import Progress as Progress
    from .progress import progress_of as progress_of
    from .session import open_or_create as open_or_create
    from .session import run_session as run_session
    from .store import StudyStore as StudyStore
    from .store import create_store as create_store
    from .store import open_store as open_store
    from .study import Study as Study
    from .study import load_study as load_study
    from .task import Executor as Executor
    from .task import Stop as Stop
    from .task import Task as Task

MODULE_OF_NAME = {
    "Executor": "task",
    "Plan": "plan",
    "Progress": "progress",
    "Stop": "task",
    "Study": "study",
    "StudyStore": "store",
    "Task": "task",
    "create_store": "store",
    "load_study": "study",
    "make_plan": "plan",
    "open_or_create": "session",
    "open_store": "store",
    "progress_of": "progress",
    "run_session": "session",
}

__all__ = list(MODULE_OF_NAME)


def __getattr__(name: str) -> Any:
    if name not in MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{MODULE_OF_NAME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(MODULE_OF_NAME))
