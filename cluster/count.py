"""How many workers a machine carries, and whether we run under an MPI launcher."""

import os

RANK_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


def usable_cores() -> int:
    """Cores this process may use (a batch system may grant fewer than there are)."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def launched_by_mpi() -> bool:
    """Was this process started by mpiexec with more than one rank?"""
    if "PMIX_RANK" in os.environ and os.environ.get("SLURM_NTASKS", "1") != "1":
        return True
    return any(os.environ.get(name, "").isdecimal() and int(os.environ[name]) > 1 for name in RANK_VARIABLES)
