"""A wheel built from these sources and installed into an empty environment has every module and data file."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

FLOORS = ("kernels", "engine", "sweeps", "cluster", "app")


def packaged(root: Path) -> set[str]:
    """Paths of the modules and data files below `root`, as POSIX text."""
    found = (path for pattern in ("*.py", "*.toml", "py.typed") for path in root.rglob(pattern))
    return {path.relative_to(root).as_posix() for path in found}


@pytest.mark.slow
def test_an_installed_wheel_is_complete(repository: Path, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    # A copy, without build/: files of an earlier build there would get into the wheel and hide an omission.
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, sources)
    for floor in FLOORS:
        if (repository / floor / "__init__.py").is_file():
            shutil.copytree(repository / floor, sources / floor, ignore=shutil.ignore_patterns("__pycache__"))
    expected = {f"{floor}/{path}" for floor in FLOORS for path in packaged(sources / floor)}

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, sources], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    binaries = tmp_path / "empty" / "bin"
    subprocess.run([*pip, "--python", binaries / "python", "install", "--no-deps", wheel], check=True)

    (site,) = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    assert packaged(site / "railsweep") == expected

    # The command line needs no third-party package to introduce itself, so it runs even here.
    shown = subprocess.run(
        [binaries / "railsweep", "--version"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert shown.stdout.startswith("railsweep ")
