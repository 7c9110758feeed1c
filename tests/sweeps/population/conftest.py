"""Makes the plain modules beside these tests importable: with import-mode=importlib nothing is put on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
