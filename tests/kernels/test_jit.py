"""Machine code on disk must not outlive the sources it was made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import railsweep.kernels.jit as module

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from outer import outer
print(outer(1.0))
"""
OUTER = "from railsweep.kernels.jit import jit\nfrom inner import inner\n\n@jit\ndef outer(x):\n    return inner(x)\n"
INNER = "from railsweep.kernels.jit import inline_jit\n\n@inline_jit\ndef inner(x):\n    return x + {number}\n"


def run(folder: Path, root: Path) -> str:
    """Run the program in a process whose railsweep.kernels.jit stamps the sources in `folder`."""
    code = PROGRAM.format(folder=str(folder))
    environment = os.environ | {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_edit_of_an_inner_file_reaches_the_outer_function(tmp_path):
    """A copy of the compiling module beside two files: the inner one changes, the outer one does not."""
    kernels = tmp_path / "railsweep" / "kernels"
    kernels.mkdir(parents=True)
    (tmp_path / "railsweep" / "__init__.py").write_text("")
    (kernels / "__init__.py").write_text("")
    shutil.copy(Path(module.__file__), kernels / "jit.py")
    (kernels / "outer.py").write_text(OUTER)
    (kernels / "inner.py").write_text(INNER.format(number=1))
    assert run(kernels, tmp_path) == "2.0"
    assert run(kernels, tmp_path) == "2.0"
    (kernels / "inner.py").write_text(INNER.format(number=10))
    assert run(kernels, tmp_path) == "11.0"
