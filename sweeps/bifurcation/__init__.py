"""Bifurcations: equilibria, limit cycles and their branches over any parameter; ramps, basins and critical speeds.

Names are imported from their modules on first use (PEP 562), as in `railsweep.engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .basin import Basin as Basin
    from .basin import KickSettings as KickSettings
    from .basin import smallest_kick as smallest_kick
    from .continuation import BranchEnd as BranchEnd
    from .continuation import BranchPoint as BranchPoint
    from .continuation import NoSolution as NoSolution
    from .continuation import Settings as Settings
    from .continuation import continue_branch as continue_branch
    from .critical_speed import CriticalSpeeds as CriticalSpeeds
    from .critical_speed import Search as Search
    from .critical_speed import critical_speeds as critical_speeds
    from .curve import CurvePoint as CurvePoint
    from .curve import fold_curve as fold_curve
    from .curve import hopf_curve as hopf_curve
    from .cycle import CyclePoint as CyclePoint
    from .cycle import continue_cycle as continue_cycle
    from .cycle import find_cycle as find_cycle
    from .diagram import Diagram as Diagram
    from .edge import edge_cycle as edge_cycle
    from .equilibrium import EquilibriumPoint as EquilibriumPoint
    from .equilibrium import continue_equilibrium as continue_equilibrium
    from .equilibrium import find_equilibrium as find_equilibrium
    from .family import Family as Family
    from .family import families_of_model as families_of_model
    from .family import family_of_model as family_of_model
    from .family import family_of_rhs as family_of_rhs
    from .hopf import HopfPoint as HopfPoint
    from .hopf import cycle_from_hopf as cycle_from_hopf
    from .hopf import emerging_branch as emerging_branch
    from .hopf import hopf_points as hopf_points
    from .ramp import Branch as Branch
    from .ramp import RampSettings as RampSettings
    from .ramp import find_branches as find_branches
    from .ramp import ramp_branch as ramp_branch
    from .ramp import start_set as start_set
    from .ramp import steps_between as steps_between

MODULE_OF_NAME = {
    "Basin": "basin",
    "Branch": "ramp",
    "BranchEnd": "continuation",
    "BranchPoint": "continuation",
    "CriticalSpeeds": "critical_speed",
    "CurvePoint": "curve",
    "CyclePoint": "cycle",
    "Diagram": "diagram",
    "EquilibriumPoint": "equilibrium",
    "Family": "family",
    "HopfPoint": "hopf",
    "KickSettings": "basin",
    "NoSolution": "continuation",
    "RampSettings": "ramp",
    "Search": "critical_speed",
    "Settings": "continuation",
    "continue_branch": "continuation",
    "continue_cycle": "cycle",
    "continue_equilibrium": "equilibrium",
    "critical_speeds": "critical_speed",
    "cycle_from_hopf": "hopf",
    "edge_cycle": "edge",
    "emerging_branch": "hopf",
    "families_of_model": "family",
    "family_of_model": "family",
    "family_of_rhs": "family",
    "find_branches": "ramp",
    "find_cycle": "cycle",
    "find_equilibrium": "equilibrium",
    "fold_curve": "curve",
    "hopf_curve": "curve",
    "hopf_points": "hopf",
    "ramp_branch": "ramp",
    "smallest_kick": "basin",
    "start_set": "ramp",
    "steps_between": "ramp",
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
