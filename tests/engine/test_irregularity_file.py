"""Reading rough track: a line of text, TOML descriptions and measured CSV files; strict, with errors that say where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railsweep.engine import InputError, load_irregularity
from railsweep.engine.irregularity import CHANNELS, RAIL_BASE_M
from railsweep.engine.irregularity_file import read_irregularity, read_measured

S = 0.25 * np.arange(801)


def wave(length, phase=0.0):
    return 4.0 * np.sin(2 * np.pi * S / length + phase)  # mm


def write(path, header, *columns):
    lines = [header, *(",".join(f"{v:.17g}" for v in row) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_measured_centre_line(tmp_path):
    file = write(
        tmp_path / "line.csv",
        "station_km,vertical_mm,lateral_m,cross_level_mm,gauge_cm",
        12.0 + 1e-3 * S,
        wave(20.0),
        1e-3 * wave(30.0),
        wave(25.0),
        0.1 * wave(40.0),
    )
    track = load_irregularity(f"{file},fade_m=30")
    s = np.linspace(35.0, 160.0, 333)
    assert track.step_m == pytest.approx(0.25)
    for name, length in (("vertical", 20.0), ("lateral", 30.0), ("cross_level", 25.0), ("gauge", 40.0)):
        exact = 4e-3 * np.sin(2 * np.pi * s / length) / (RAIL_BASE_M if name == "cross_level" else 1.0)
        np.testing.assert_allclose(track.at(s)[:, CHANNELS[name]], exact, atol=1e-9)
    assert np.abs(track.at([0.0, 200.0, 250.0])).max() < 1e-12
    assert track.provenance["columns"]["vertical_mm"] == ["vertical", "mm"]
    assert track.provenance["file"] == "line.csv"


def test_measured_rails_equal_the_centre_line(tmp_path):
    left, right = wave(20.0), wave(27.0, 1.0)
    rails = write(tmp_path / "rails.csv", "station_m,left_vertical_mm,right_vertical_mm", S, left, right)
    centre = write(
        tmp_path / "centre.csv", "station_m,vertical_mm,cross_level_mrad", S, (left + right) / 2, (left - right) / 1.5
    )
    s = np.linspace(0.0, 220.0, 777)
    np.testing.assert_allclose(read_measured(rails).at(s), read_measured(centre).at(s), atol=1e-15)
    lateral = write(tmp_path / "lateral.csv", "station_m,left_lateral_mm,right_lateral_mm", S, left, right)
    gauge = write(tmp_path / "gauge.csv", "station_m,lateral_mm,gauge_mm", S, (left + right) / 2, left - right)
    np.testing.assert_allclose(read_measured(lateral).at(s), read_measured(gauge).at(s), atol=1e-15)


def test_description_names_the_columns_of_another_file(tmp_path):
    write(tmp_path / "odd.csv", "PK,NL,other", 1e-3 * S, wave(20.0), S)
    description = tmp_path / "odd.toml"
    description.write_text(
        '[measured]\nfile = "odd.csv"\nfade_m = 25.0\n'
        '[[measured.column]]\nname = "PK"\nquantity = "station"\nunit = "km"\n'
        '[[measured.column]]\nname = "NL"\nquantity = "vertical"\nunit = "mm"\n'
    )
    plain = write(tmp_path / "plain.csv", "station_m,vertical_mm", S, wave(20.0))
    s = np.linspace(0.0, 210.0, 99)
    a, b = load_irregularity(description).at(s), read_measured(plain, fade_m=25.0).at(s)
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_descriptions_of_spectra_and_defects(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[spectrum]\nname = "erri-low"\nseed = 4\nlength_m = 500.0\nchannels = ["vertical", "gauge"]\n')
    assert (
        load_irregularity(file).provenance
        == load_irregularity("erri-low,seed=4,length_m=500,channels=vertical+gauge").provenance
    )
    assert load_irregularity(f"{file},seed=9").seed == 9
    file.write_text(
        '[spectrum]\nname = "mine"\nfrequency = "angular"\nsides = 2\n'
        "at = [0.05, 3.0]\nlateral = [1e-5, 1e-9]\nlength_m = 400\n"
    )
    assert load_irregularity(file).realisation.spectrum.channels == ("lateral",)
    file.write_text(
        '[[defect]]\nkind = "bump"\nchannel = "left_vertical"\namplitude_m = 0.01\nwavelength_m = 4\n'
        '[[defect]]\nkind = "sine"\nchannel = "lateral"\namplitude_m = 0.01\nwavelength_m = 10\n'
        "waves = 4\nstart_m = 50\n"
    )
    track = read_irregularity(file)
    assert track.at([7.0])[0, CHANNELS["vertical"]] == pytest.approx(0.005, rel=1e-3)
    assert track.marks_m == (5.0, 7.0, 50.0, 55.0)


def test_the_example_is_the_line_of_text(repository):
    example = load_irregularity(repository / "examples" / "rough-track.toml")
    assert example.provenance == load_irregularity("erri-high,seed=3,length_m=2000").provenance


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("erri-high,seed", "NAME=VALUE"),
        ("erri-high,seed=1,seed=2", "twice"),
        ("erri-high,seed=-1", "seed"),
        ("erri-high,seed=1e3", "seed"),
        ("erri-high,lenght_m=100", "length_m"),
        ("erri-high,length_m=inf", "length_m"),
        ("erri-high,channels=vertical+speed", "speed"),
        ("nowhere.csv", "cannot be read"),
        ("nowhere.csv,seed=1", "fade_m"),
        ("nowhere.toml", "cannot be read"),
        ("", "erri"),
    ],
)
def test_bad_lines_are_refused(text, word):
    with pytest.raises(InputError, match=word):
        load_irregularity(text)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("station_m,vertical_mm\n", "0 rows"),
        ("vertical_mm\n" + "1\n" * 20, "station"),
        ("station_m,vertical\n" + "1,1\n" * 20, "vertical"),
        ("station_m,vertical_inch\n" + "".join(f"{i},1\n" for i in range(20)), "inch"),
        ("station_m,gauge_mrad\n" + "".join(f"{i},1\n" for i in range(20)), "mrad"),
        ("station_m,vertical_mm\n" + "".join(f"{i},1\n" for i in range(19)) + "25,1\n", "uniform"),
        ("station_m,vertical_mm\n" + "".join(f"{-i},1\n" for i in range(20)), "increasing"),
        ("station_m,vertical_mm\n" + "".join(f"{i},x\n" for i in range(20)), "line 2"),
        ("station_m,vertical_mm\n" + "".join(f"{i},1\n" for i in range(20)) + "20,nan\n", "line 22"),
        ("station_m,vertical_mm\n" + "".join(f"{i},1\n" for i in range(20)) + "20\n", "line 22"),
        ("station_m,vertical_m\n" + "".join(f"{i},12\n" for i in range(20)), "reaches 12"),
        ("station_m,vertical_mm,vertical_m\n" + "".join(f"{i},1,0\n" for i in range(20)), "once"),
        ("station_m,vertical_mm,left_vertical_mm\n" + "".join(f"{i},1,0\n" for i in range(20)), "one or the other"),
        ("station_m,vertical_mm\n" + "".join(f"{i},1\n" for i in range(20)), "fade_m"),
    ],
)
def test_bad_measurements_are_refused(tmp_path, body, word):
    file = tmp_path / "bad.csv"
    file.write_text(body)
    with pytest.raises(InputError, match=word):
        read_measured(file)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("", "none of them"),
        ('[spectrum]\nname = "erri-low"\n[measured]\nfile = "x.csv"\n', "spectrum and measured"),
        ('[spectrum]\nname = "erri-lwo"\n', "erri-low"),
        ('[spectrum]\nname = "erri-low"\nsead = 3\n', "sead"),
        ('[spectrum]\nname = "erri-low"\nseed = 3.5\n', "seed"),
        ('[spectrum]\nname = "x"\nfrequency = "spatial"\nat = [0.1, 0.2]\nvertical = [1.0, 1.0]\n', "sides"),
        ('[spectrum]\nname = "x"\nfrequency = "spatial"\nsides = 1\nat = [0.1, 0.2]\nvertical = [1.0]\n', "vertical"),
        (
            '[spectrum]\nname = "x"\nfrequency = "hertz"\nsides = 1\nat = [0.1, 0.2]\nvertical = [1.0, 1.0]\n',
            "frequency",
        ),
        (
            '[spectrum]\nname = "x"\nfrequency = "spatial"\nsides = 1\nat = [0.2, 0.1]\nvertical = [1.0, 1.0]\n',
            "increasing",
        ),
        ('[[defect]]\nkind = "bump"\nchannel = "vertical"\namplitude_m = 0.01\n', "wavelength_m"),
        ('[[defect]]\nkind = "bump"\nchannel = "vertical"\namplitude_m = 0.01\nwavelength_m = 1\nhight = 3\n', "hight"),
    ],
)
def test_bad_descriptions_are_refused(tmp_path, body, word):
    file = tmp_path / "bad.toml"
    file.write_text(body)
    with pytest.raises(InputError, match=word):
        read_irregularity(file)


@given(raw=st.binary(max_size=400))
def test_any_bytes_give_a_track_or_a_refusal(tmp_path_factory, raw):
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("a.csv", "a.toml"):
        file = folder / name
        file.write_bytes(raw)
        with pytest.raises(InputError):
            load_irregularity(file)


@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(["", "1", "-0.5", "1e400", "nan", "inf", "1_0", " 2 ", "0x1", "é", "1;2"]),
            st.sampled_from(["1", "2.5", "1e-320", "--1", "", "#"]),
        ),
        min_size=8,
        max_size=20,
    ),
    header=st.sampled_from(["station_m,vertical_mm", "station_m,gauge_m", "station_km,left_vertical_mm", "station_m"]),
)
def test_damaged_measurements_give_a_finite_track_or_a_refusal(tmp_path_factory, cells, header):
    file = tmp_path_factory.mktemp("fuzz") / "a.csv"
    rows = [f"{10 * i},{a}" if k != "2.5" else f"{a},{k}" for i, (a, k) in enumerate(cells)]
    file.write_text(header + "\n" + "\n".join(rows))
    try:
        track = read_measured(file, fade_m=5.0)
    except InputError:
        return
    assert np.isfinite(track.coefficients).all()


@given(text=st.text(max_size=60))
def test_any_text_gives_a_track_or_a_refusal(text):
    try:
        track = load_irregularity("erri-high," + text)
    except InputError:
        return
    assert np.isfinite(track.coefficients).all()
