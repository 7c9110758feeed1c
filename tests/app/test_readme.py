"""What the README shows works as shown."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, after: str = "") -> str:
    """First code block of a language after a text."""
    found = re.search(rf"```{language}\n(.*?)```", README[README.index(after) :], re.DOTALL)
    assert found is not None
    return found.group(1)


def test_a_vehicle_written_from_the_readme_gives_its_eigenvalues(tmp_path):
    """The two-axle wagon of the README, read from the README: its bounce mode has a closed form."""
    text = block("toml", "<!-- example vehicle -->")
    assert text == (ROOT / "examples" / "two-axle-wagon.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    railsweep = Path(sys.executable).with_name("railsweep")
    command = [railsweep, "stability", "--vehicle", "mine.toml", "--speed-mps", "20", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    modes = json.loads(done.stdout)["points"][0]["modes"]
    bounce = next(m for m in modes if m["dominant_state"] == "car_body.z")
    # four springs of 1.2 MN/m and 20 kN s/m under 20 t, on wheels a hundred times stiffer
    damped = complex(-2.0, math.sqrt(240.0 - 4.0))
    assert bounce["real"] == pytest.approx(damped.real, rel=0.02)
    assert bounce["imag"] == pytest.approx(damped.imag, rel=0.02)


def test_the_python_lines_run(capsys):
    """The API example, executed."""
    exec(compile(block("python"), "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) >= 3
