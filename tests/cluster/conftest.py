"""Makes the plain modules of the sweep tests and of these importable, also in worker processes."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "sweeps")]
