"""``railsweep contact``: what it prints, writes, draws and refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from railsweep.app import cli
from railsweep.engine.contact_file import read_contact_table

QUICK = ("--step-mm", "0.1", "--range-mm", "10")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILSWEEP_CACHE", str(tmp_path / "cache"))


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    assert cli.main(["contact", *argv, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(["contact", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_build_as_in_the_issue(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "table.npz"
    report = answer(
        capsys,
        *(
            [
                "build",
                "--wheel",
                "s1002",
                "--rail",
                "uic60",
                "--inclination",
                "1/40",
                "--gauge-mm",
                "1435",
                "--wheel-load-n",
                "66600",
            ]
        ),
        *(["--rolling-radius-m", "0.425", "--patch", "equivalent", "--out"]),
        str(out),
        *QUICK,
    )
    assert report["rows"] == 201
    assert report["out"] == str(out)
    assert report["origin"]["settings"]["gauge_mm"] == 1435.0
    table = read_contact_table(out)
    assert table.shift_m.size == 201
    assert table.name == report["name"]


@pytest.mark.parametrize("ending", [".h5", ".csv", ".dat", ".zarr"])
def test_build_and_show_in_every_format(capsys: pytest.CaptureFixture[str], tmp_path: Path, ending: str) -> None:
    if ending in (".h5", ".zarr"):
        pytest.importorskip("h5py" if ending == ".h5" else "zarr")
    out = tmp_path / f"table{ending}"
    answer(capsys, "build", *QUICK, "--patch", "point", "--out", str(out))
    shown = answer(capsys, "show", str(out), "--shift-mm", "-2,0,3")
    assert [round(row["shift_m"] * 1e3) for row in shown["left"]] == [-2, 0, 3]
    assert shown["rows"] == 201


def test_show_prints_columns_and_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "table.png"
    assert cli.main(["contact", "show", "s1002/uic60@1:40,patch=multi,step=0.1", "--plot", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "smoothing length 0.2 mm" in text
    assert "rigid contact jumps at" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    answer(capsys, "build", *QUICK, "--out", str(tmp_path / "t.dat"))
    svg = tmp_path / "t.svg"
    answer(capsys, "show", str(tmp_path / "t.dat"), "--plot", str(svg), "--shift-mm", "0")
    assert "<svg" in svg.read_text()


def test_conicity(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "conicity.png"
    report = answer(capsys, "conicity", "--patch", "point", "--step-mm", "0.02", "--plot", str(picture))
    assert report["amplitude_mm"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert 0.16 < report["integration"][2] < 0.19
    assert picture.exists()
    assert cli.main(["contact", "conicity", "s1002/uic60@1:20,step=0.1", "--amplitude-mm", "3"]) == 0
    assert "regression" in capsys.readouterr().out
    report = answer(capsys, "conicity", *QUICK, "--amplitude-mm", "3,30")
    assert report["integration"][1] is None


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["build", "--gauge-mm", "abc"], "--gauge-mm"),
        (["build", "--gauge-mm", "1390"], "rides on the flange"),
        (["build", "--gauge-mm", "1.435"], "gauge_mm"),
        (["build", "--gage-mm", "1435"], "did you mean '--gauge-mm'"),
        (["build", "--inclination", "1:0"], "--inclination"),
        (["build", "--wheel", "s1003"], "s1002"),
        (["build", "--wheel", "none.prw"], "none.prw"),
        (["build", "--patch", "pont"], "pont"),
        (["build", "--out", "x.pkl"], "--out"),
        (["build", "--out", "nowhere/x.npz"], "--out"),
        (["build", "--plot", "x.gif"], "--plot"),
        (["show", "none.npz"], "none.npz"),
        (["show", "s1002/uic60@1:40,step=0.5", "--shift-mm", "50"], "--shift-mm"),
        (["conicity", "--amplitude-mm", "0"], "--amplitude-mm"),
        (["conicity", "s1002/uic60@1:40", "--gauge-mm", "1435"], "one of them"),
        (["conicity", "--wheel", "cone:0", "--rail", "uic60"], "balance"),
        ([], "ACTION"),
    ],
)
def test_refusals_name_the_option(capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    assert words in refused(capsys, *argv)


def test_negative_smoothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "smoothing_mm" in refused(capsys, "build", "--smoothing-mm", "-1")


def test_help_is_light() -> None:
    code = (
        "import sys; from railsweep.app.cli import main; main(['contact', 'build', '--help']);"
        "print(*sorted({n.partition('.')[0] for n in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"numpy", "numba", "scipy", "matplotlib"} & set(done.stdout.splitlines()[-1].split())


def test_the_second_build_is_read_from_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    first = answer(capsys, "build", *QUICK)
    (folder,) = list(Path(os.environ["RAILSWEEP_CACHE"]).rglob("*.npz"))
    before = folder.stat().st_mtime_ns
    assert answer(capsys, "build", *QUICK) == first
    assert folder.stat().st_mtime_ns == before


def test_two_profiles_from_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from railsweep.engine.profile import s1002, uic60

    wheel, rail = s1002(), uic60()
    y = np.linspace(-0.0620, 0.0595, 1200)
    (tmp_path / "w.csv").write_text(
        "y_mm,z_mm\n"
        + "\n".join(f"{a * 1e3!r},{b * 1e3!r}" for a, b in zip(y.tolist(), wheel.height(y).tolist(), strict=True))
    )
    y = np.linspace(-0.0363, 0.0363, 1500)
    (tmp_path / "r.csv").write_text(
        "y_mm,z_mm\n"
        + "\n".join(f"{a * 1e3!r},{b * 1e3!r}" for a, b in zip(y.tolist(), rail.height(y).tolist(), strict=True))
    )
    files = answer(capsys, "build", "--wheel", str(tmp_path / "w.csv"), "--rail", str(tmp_path / "r.csv"), *QUICK)
    drawn = answer(capsys, "build", *QUICK)
    assert files["centre"]["wheel_lateral_mm"] == pytest.approx(drawn["centre"]["wheel_lateral_mm"], abs=0.05)
    assert files["centre"]["angle_rad"] == pytest.approx(drawn["centre"]["angle_rad"], rel=0.01)
