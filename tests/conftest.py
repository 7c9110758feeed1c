"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parents[1]
PUBLISHED_TABLE = "dytsi-rsgeo-s1002-uic60-1o40.dat"

# No deadline: the first example of a test may compile kernels. In CI the examples are the same every time.
settings.register_profile("railsweep", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("railsweep")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the sources."""
    return REPOSITORY


@pytest.fixture(scope="session")
def published_table_path() -> Path:
    """The published DYTSI contact table, never committed here; the test is skipped when it is absent."""
    shared = Path(os.environ.get("RAILSWEEP_SHARED") or REPOSITORY.parent / "shared")
    path = shared / "data" / PUBLISHED_TABLE
    if not path.is_file():
        pytest.skip(f"{path} is absent; RAILSWEEP_SHARED names the folder above its data/")
    return path
