"""Floor 1: one vehicle on one track.

The names below are the public interface. Each is imported from its module on first use (PEP 562), so that
``import railsweep.engine`` costs nothing and the command line can answer ``--help`` without loading numba. A
new public name is one line in the table and one line in the block for type checkers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assessment import FIGURES as FIGURES
    from .assessment import assess as assess
    from .assessment import assessment_channels as assessment_channels
    from .conicity import equivalent_conicity as equivalent_conicity
    from .contact_build import build_contact_table as build_contact_table
    from .contact_file import read_contact_table as read_contact_table
    from .contact_file import write_contact_table as write_contact_table
    from .contact_table import ContactTable as ContactTable
    from .contact_table import conical_table as conical_table
    from .contact_table import load_contact_table as load_contact_table
    from .contact_table import save_contact_table as save_contact_table
    from .errors import InputError as InputError
    from .irregularity import Irregularity as Irregularity
    from .irregularity_defect import Defect as Defect
    from .irregularity_defect import defects as defects
    from .irregularity_file import load_irregularity as load_irregularity
    from .irregularity_spectrum import realise as realise
    from .linear_stability import StabilityStudy as StabilityStudy
    from .linear_stability import stability as stability
    from .model import Model as Model
    from .model import ModelError as ModelError
    from .model import assemble as assemble
    from .simulation import Trajectory as Trajectory
    from .simulation import load_trajectory as load_trajectory
    from .simulation import simulate as simulate
    from .simulation import simulate_ensemble as simulate_ensemble
    from .solver import solve as solve
    from .solver_run import Solution as Solution
    from .track import Segment as Segment
    from .track import Track as Track
    from .vehicle import Vehicle as Vehicle
    from .vehicle import load_vehicle as load_vehicle

MODULE_OF_NAME = {
    "ContactTable": "contact_table",
    "Defect": "irregularity_defect",
    "FIGURES": "assessment",
    "InputError": "errors",
    "Irregularity": "irregularity",
    "Model": "model",
    "ModelError": "model",
    "Solution": "solver_run",
    "Segment": "track",
    "StabilityStudy": "linear_stability",
    "Track": "track",
    "Trajectory": "simulation",
    "Vehicle": "vehicle",
    "assemble": "model",
    "assess": "assessment",
    "assessment_channels": "assessment",
    "build_contact_table": "contact_build",
    "conical_table": "contact_table",
    "defects": "irregularity_defect",
    "equivalent_conicity": "conicity",
    "load_contact_table": "contact_table",
    "load_irregularity": "irregularity_file",
    "load_trajectory": "simulation",
    "load_vehicle": "vehicle",
    "read_contact_table": "contact_file",
    "realise": "irregularity_spectrum",
    "save_contact_table": "contact_table",
    "simulate": "simulation",
    "simulate_ensemble": "simulation",
    "solve": "solver",
    "stability": "linear_stability",
    "write_contact_table": "contact_file",
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
