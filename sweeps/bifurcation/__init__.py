"""Bifurcations: equilibria, limit cycles and their branches over any parameter; ramps, basins and critical speeds.

Names are imported from their modules on first use (PEP 562), as in `railsweep.engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .continuation import BranchPoint as BranchPoint
    from .continuation import continue_branch as continue_branch
    from .cycle import CyclePoint as CyclePoint
    from .cycle import continue_cycle as continue_cycle
    from .cycle import find_cycle as find_cycle
    from .family import Family as Family
    from .family import family_of_model as family_of_model
    from .family import family_of_rhs as family_of_rhs

MODULE_OF_NAME = {
    "BranchPoint": "continuation",
    "CyclePoint": "cycle",
    "Family": "family",
    "continue_branch": "continuation",
    "continue_cycle": "cycle",
    "family_of_model": "family",
    "family_of_rhs": "family",
    "find_cycle": "cycle",
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
