"""Profiles: the analytic ones against their drawings, points against their curve, readers against rubbish."""

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from railsweep.engine.errors import InputError
from railsweep.engine.profile import (
    Profile,
    blend,
    circular_rail,
    conical_wheel,
    profile_from_points,
    quintic_pieces,
    s1002,
    shifted,
    uic60,
)
from railsweep.engine.profile_file import find_profile, load_profile

WHEEL, RAIL = s1002(), uic60()


# --- analytic ---------------------------------------------------------------------------------------------------


def test_s1002_has_its_drawn_dimensions() -> None:
    assert float(WHEEL.height(0.0)) == pytest.approx(0.0, abs=1e-15)
    # field-data.md 1: flange tip 28.0 mm below the tape circle, flange angle 70 degrees, tread end slope 1:15
    assert -WHEEL.height(np.linspace(-0.062, -0.05, 10_001)).min() == pytest.approx(0.028, abs=1e-6)
    assert math.atan(float(WHEEL.evaluate(-0.039)[1])) == pytest.approx(math.radians(70.0), abs=1e-5)
    assert float(WHEEL.evaluate(0.05)[1]) == pytest.approx(1 / 15, rel=1e-6)
    # flange thickness 32.5 mm at 10 mm below the tape circle, from the back 70 mm inside
    y = np.linspace(-0.049, -0.03, 100_001)
    face = float(np.interp(-0.010, WHEEL.height(y), y))
    assert 0.070 + face == pytest.approx(0.0325, abs=2e-5)


def test_s1002_equals_its_printed_polynomial_and_arcs() -> None:
    s = np.linspace(-25.9, 32.0, 4001)
    printed = np.polynomial.Polynomial(
        [
            0,
            -3.358537058e-2,
            1.565681624e-3,
            -2.810427944e-5,
            5.844240864e-8,
            -1.562379023e-8,
            5.309217349e-15,
            -5.957839843e-12,
            2.646656573e-13,
        ]
    )(s)
    np.testing.assert_allclose(WHEEL.height(s * 1e-3), -printed * 1e-3, atol=1e-13)
    s = np.linspace(-49.6, -39.8, 4001)
    printed = 8.834924130 + np.sqrt(400.0 - (s + 58.558326413) ** 2)
    # 0.12 um: the gap of the printed sections at S = -35, closed towards the flange
    np.testing.assert_allclose(WHEEL.height(s * 1e-3), -printed * 1e-3, atol=1.3e-7)
    assert WHEEL.curvature(-0.045) == pytest.approx(1 / 0.020, rel=1e-6)
    assert WHEEL.curvature(-0.037) == pytest.approx(-1 / 0.013, rel=1e-6)


def test_s1002_is_continuous() -> None:
    np.testing.assert_allclose(WHEEL.height_m[1:, 0], WHEEL.height_m[:-1, 1], atol=1e-17)
    assert np.abs(WHEEL.slope[1:, 0] - WHEEL.slope[:-1, 1]).max() < 1e-5  # as printed


def test_uic60_has_its_drawn_radii_and_points() -> None:
    for y, radius in ((0.0, 0.300), (0.0102, 0.300), (0.015, 0.080), (0.026, 0.080), (0.0262, 0.013), (0.0345, 0.013)):
        assert RAIL.curvature([y, -y]) == pytest.approx([-1 / radius] * 2, rel=1e-4), y
    assert float(RAIL.height(0.036)) == pytest.approx(-14.303753e-3, abs=1e-9)  # field-data.md 2
    y = np.array([0.005, 0.02, 0.03])
    np.testing.assert_allclose(RAIL.height(y), RAIL.height(-y), atol=1e-15)
    # arc lengths of the three arcs: radius times the angles of field-data.md 2
    quarter = (
        300 * math.radians(1.95378) + 80 * math.radians(13.38979 - 1.95378) + 13 * math.radians(87.15434 - 13.38979)
    )
    assert float(RAIL.arc_length(0.036) - RAIL.arc_length(0.0)) == pytest.approx(quarter * 1e-3, rel=1e-6)


def test_simple_shapes() -> None:
    cone, circle = conical_wheel(0.05), circular_rail(0.3)
    assert float(cone.height(0.01)) == pytest.approx(5e-4, rel=1e-12)
    assert float(circle.curvature(0.02)) == pytest.approx(-1 / 0.3, rel=1e-9)
    assert float(circle.arc_length(0.03) - circle.arc_length(-0.03)) == pytest.approx(0.6 * math.asin(0.1), rel=1e-10)
    for bad in (math.nan, -0.1, 2.0):
        with pytest.raises(InputError):
            conical_wheel(bad)
        with pytest.raises(InputError):
            circular_rail(-abs(bad))


def test_quintic_pieces_reproduce_a_quintic() -> None:
    p = np.polynomial.Polynomial([0.3, -1.0, 2.0, 0.7, -0.4, 0.9])
    ends = np.array([[0.0, 0.8]])
    c = quintic_pieces(np.array([0.8]), p(ends), p.deriv(1)(ends), p.deriv(2)(ends))
    np.testing.assert_allclose(c[0], p.coef, atol=1e-12)


def test_names() -> None:
    assert find_profile("S1002", kind="wheel").digest() == WHEEL.digest()
    assert find_profile("60e1", kind="rail").digest() == RAIL.digest()
    assert find_profile("circle:300", kind="rail").origin["radius_m"] == pytest.approx(0.3)
    for name, kind in (
        ("s1002", "rail"),
        ("uic60", "wheel"),
        ("cone:0.1", "rail"),
        ("s102", "wheel"),
        ("cone:x", "wheel"),
    ):
        with pytest.raises(InputError):
            find_profile(name, kind=kind)


# --- points -----------------------------------------------------------------------------------------------------


def sampled(profile: Profile, count: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    y = np.linspace(low, high, count)
    return y, profile.height(y)


def test_points_of_a_profile_give_it_back() -> None:
    y, z = sampled(WHEEL, 2000, -0.0620, 0.0595)
    copy = profile_from_points(y, z, kind="wheel")
    at = np.linspace(-0.05, 0.055, 5001)
    np.testing.assert_allclose(copy.height(at), WHEEL.height(at), atol=2e-7)
    tread = np.linspace(-0.02, 0.03, 501)
    np.testing.assert_allclose(copy.evaluate(tread)[1], WHEEL.evaluate(tread)[1], atol=2e-6)
    np.testing.assert_allclose(copy.curvature(tread), WHEEL.curvature(tread), atol=0.05)


def test_either_direction_along_the_curve() -> None:
    y, z = sampled(RAIL, 500, -0.0355, 0.0355)
    one, other = (profile_from_points(a, b, kind="rail") for a, b in ((y, z), (y[::-1], z[::-1])))
    assert one.digest() == other.digest()


def test_smoothing_length_is_the_wavelength_that_is_halved() -> None:
    """A ripple of wavelength L and amplitude 10 um on a flat stretch keeps 1/2, L/3 next to nothing, 3 L nearly all."""
    y = np.linspace(-0.05, 0.05, 2001)
    length = 0.01
    for wavelength, keeps, tolerance in ((length, 0.5, 0.02), (length / 3, 1 / 82, 0.01), (3 * length, 81 / 82, 0.02)):
        ripple = 1e-5 * np.sin(2 * math.pi * y / wavelength)
        smooth = profile_from_points(y, -0.2 * y * y + ripple, kind="rail", smoothing_m=length)
        inside = np.abs(smooth.node_m) < 0.03
        rest = smooth.height(smooth.node_m)[inside] + 0.2 * smooth.node_m[inside] ** 2
        kept = 2.0 * np.mean(rest * np.sin(2 * math.pi * smooth.node_m[inside] / wavelength)) / 1e-5
        assert kept == pytest.approx(keeps, abs=tolerance), wavelength


def test_measured_rails_may_turn_under_their_head_and_wheels_behind_their_flange() -> None:
    y, z = sampled(RAIL, 400, -0.036, 0.036)
    y = np.concatenate([[-0.0350, -0.0355], y, [0.0355, 0.0350]])
    z = np.concatenate([[z[0] - 0.02, z[0] - 0.01], z, [z[-1] - 0.01, z[-1] - 0.02]])
    rail = profile_from_points(y, z, kind="rail")
    assert rail.outline_m[:, 1].min() == pytest.approx(z.min(), abs=1e-6)
    assert rail.start_m > -0.0362
    y, z = sampled(WHEEL, 800, -0.0620, 0.0595)
    wheel = profile_from_points(
        np.concatenate([[-0.0695, -0.07, -0.0698], y]), np.concatenate([[0.0, -0.01, -0.018], z]), kind="wheel"
    )
    assert wheel.start_m < -0.056


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y, z: (y[:5], z[:5]), "5 points"),
        (lambda y, z: (np.where(np.arange(y.size) == 7, np.nan, y), z), "point 8.*not finite"),
        (lambda y, z: (y * 1e3, z * 1e3), "declared as m"),
        (lambda y, z: (y * 1e-3, z * 1e-3), "declared as mm"),
        (lambda y, z: (np.concatenate([y[:200], y[180:]]), np.concatenate([z[:200], z[180:]])), "folds back"),
        (lambda y, z: (np.full_like(y, 0.01), z), "wide"),
        (lambda y, z: (y, z * 1e4), "high"),
    ],
)
@pytest.mark.parametrize("kind", ["wheel", "rail"])
def test_bad_points_are_refused(kind: str, change, words: str) -> None:
    profile = WHEEL if kind == "wheel" else RAIL
    y, z = sampled(profile, 400, -0.035 if kind == "rail" else -0.06, 0.035)
    with pytest.raises(InputError, match=words):
        profile_from_points(*change(y, z), kind=kind)


@given(
    arrays(float, st.integers(0, 40), elements=st.floats(-0.1, 0.1)),
    st.sampled_from(["wheel", "rail"]),
    st.sampled_from([0.0, 0.003]),
)
@settings(max_examples=150)
def test_any_points_give_a_profile_or_an_input_error(z: np.ndarray, kind: str, smoothing: float) -> None:
    y = np.linspace(-0.04, 0.04, z.size)
    try:
        profile = profile_from_points(y, z, kind=kind, smoothing_m=smoothing)
    except InputError:
        return
    assert (np.diff(profile.node_m) > 0).all()
    assert np.isfinite(profile.height(profile.node_m)).all()


# --- wear -------------------------------------------------------------------------------------------------------


def test_blend_is_exact() -> None:
    worn = shifted(WHEEL, 0.0, -1e-3)
    half = blend(WHEEL, worn, 0.25)
    y = np.linspace(-0.06, 0.059, 1001)
    np.testing.assert_allclose(half.height(y), WHEEL.height(y) - 0.25e-3, atol=1e-12)
    np.testing.assert_allclose(half.curvature(y[::10]), WHEEL.curvature(y[::10]), rtol=1e-5, atol=1e-5)
    moved = blend(WHEEL, shifted(WHEEL, 2e-4), 0.5)
    np.testing.assert_allclose(
        moved.height(y[10:-10]), 0.5 * (WHEEL.height(y[10:-10]) + WHEEL.height(y[10:-10] - 2e-4)), atol=1e-9
    )
    for other, fraction in ((RAIL, 0.5), (worn, 1.5), (worn, math.nan)):
        with pytest.raises(InputError):
            blend(WHEEL, other, fraction)


# --- files ------------------------------------------------------------------------------------------------------


def simpack(y: np.ndarray, z: np.ndarray, kind: str, *, scale: float = 1e3, extra: str = "") -> str:
    """Simpack text; y and z in metres, written in user units."""
    rows = "\n".join(f"  {a * scale:.9f}  {b * scale:.9f}" for a, b in zip(y, z, strict=True))
    return (
        "! comment\nheader.begin\n version = 1 ! flag\n"
        f" type = {1 if kind == 'wheel' else 0}\nheader.end\nspline.begin\n units.len.f = {scale}\n"
        f" bound.y.min = 1.0\n bound.y.max = 0.0\n{extra} point.begin\n{rows}\n point.end\nspline.end\n"
    )


def miniprof(y: np.ndarray, z: np.ndarray) -> str:
    rows = "\n".join(f" {a * 1e3:.8f}\t{b * 1e3:.8f}\t0.1" for a, b in zip(y, z, strict=True))
    return f"Filename=test\nXYPoints={y.size}\nTilt=\nColumnDef=X,Y,A\n\n{rows}\n"


@pytest.mark.parametrize("ending", [".prw", ".whl", ".csv", "_upside_down.prw", "_metres.csv"])
def test_the_same_wheel_from_every_format(tmp_path: Path, ending: str) -> None:
    y, z = sampled(WHEEL, 900, -0.0620, 0.0595)
    file = tmp_path / f"wheel{ending}"
    text = {
        ".prw": lambda: simpack(-y, -z, "wheel"),  # Simpack: y to the track centre, z down
        ".whl": lambda: miniprof(y, z),
        ".csv": lambda: "y_mm,z_mm\n" + "\n".join(f"{a * 1e3:.8f},{b * 1e3:.8f}" for a, b in zip(y, z, strict=True)),
        "_upside_down.prw": lambda: simpack(y, z, "wheel", scale=1.0),
        "_metres.csv": lambda: (
            "# made\r\ny [m];z [m]\r\n" + "\r\n".join(f"{a:.12f};{b:.12f}" for a, b in zip(y, z, strict=True))
        ),
    }[ending]()
    file.write_text(text)
    wheel = load_profile(file, kind="wheel")
    at = np.linspace(-0.05, 0.055, 1001)
    np.testing.assert_allclose(wheel.height(at), WHEEL.height(at), atol=1e-6)


@pytest.mark.parametrize("ending", [".prr", ".ban", ".csv"])
def test_the_gauge_side_of_a_rail_follows_the_format(tmp_path: Path, ending: str) -> None:
    y, z = sampled(RAIL, 900, -0.0359, 0.0359)
    z = z - 1e-3 * np.clip(-y - 0.01, 0.0, None) / 0.025  # worn on the gauge side
    file = tmp_path / f"rail{ending}"
    if ending == ".prr":
        file.write_text(simpack(-y, -z, "rail"))
    elif ending == ".ban":
        file.write_text(miniprof(y, -z))
    else:
        file.write_text("y_mm z_mm\n" + "\n".join(f"{a * 1e3:.8f} {b * 1e3:.8f}" for a, b in zip(y, z, strict=True)))
    rail = load_profile(file, kind="rail")
    assert float(rail.height(-0.03)) < float(rail.height(0.03)) - 5e-4
    mirrored = load_profile(file, kind="rail", mirror=True)
    assert float(mirrored.height(0.03)) == pytest.approx(float(rail.height(-0.03)), abs=1e-9)


def test_simpack_shift_rotation_bounds_and_mirror(tmp_path: Path) -> None:
    y, z = sampled(RAIL, 900, -0.0359, 0.0359)
    angle = 0.02
    c, s = math.cos(angle), math.sin(angle)
    # the file's (-y, -z) turned back by the angle that `rotate` applies
    a, b = -y * c - z * s, y * s - z * c
    file = tmp_path / "turned.prr"
    file.write_text(simpack(a - 0.001, b - 0.002, "rail", extra=f" shift.y = 1.0\n shift.z = 2.0\n rotate = {angle}\n"))
    rail = load_profile(file, kind="rail")
    at = np.linspace(-0.03, 0.03, 301)
    np.testing.assert_allclose(rail.height(at), RAIL.height(at), atol=2e-6)
    file.write_text(
        simpack(y, -z, "rail", extra=" mirror.y = 1\n")
        .replace("bound.y.max = 0.0", "bound.y.max = 35.0")
        .replace("bound.y.min = 1.0", "bound.y.min = -35.0")
    )
    cut = load_profile(file, kind="rail")
    assert cut.end_m <= 0.0351


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.prw", "nothing here", "line 1"),
        ("a.prw", "header.begin\ntype = 0\nheader.end\n", "line 2.*type 0"),
        ("a.prw", "spline.begin\npoint.begin\n1 2 3 4\n", "line 3.*4 columns"),
        ("a.prw", "spline.begin\npoint.begin\n1,5 2,5\n", "line 3.*decimal comma"),
        ("a.prw", "spline.begin\npoint.begin\nnan 2\n", "line 3.*not finite"),
        ("a.prw", "spline.begin\nunits.len.f = 0\npoint.begin\n1 2\npoint.end\n", "units.len.f"),
        ("a.prw", "header.begin\ntype = 1\nheader.end\n", "no point.begin"),
        (
            "a.prw",
            simpack(*sampled(WHEEL, 400, -0.06, 0.05), "wheel").replace("units.len.f = 1000.0", "units.len.f = 1"),
            "declared as m",
        ),
        ("a.whl", "ColumnDef=A,B\n\n1 2\n", "X and Y"),
        ("a.whl", "ColumnDef=X,Y\n\n1\n", "line 3"),
        ("a.whl", "rubbish\n", "line 1"),
        ("a.whl", "XYPoints=400\nColumnDef=X,Y\n\n1 2\n", "1 points of 400"),
        ("a.whl", "ColumnDef=X,Y\n", "no points"),
        ("a.csv", "1,2\n3,4\n", "no unit"),
        ("a.csv", "y_mm,z_m\n1,2\n", "one unit"),
        ("a.csv", "y_ly,z_ly\n1,2\n", "unit 'ly'"),
        ("a.csv", "y_mm,z_mm\n1,2\n3\n", "line 3"),
        ("a.csv", "y_mm,z_mm\n1,2\n3,x\n", "line 3"),
        ("a.csv", "", "0 points"),
        ("a.obj", "", "unknown ending"),
        ("a.prr", "", "a rail"),
    ],
)
def test_broken_files_are_refused_with_the_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        load_profile(file, kind="wheel")


def test_missing_and_oversized_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_profile(tmp_path / "none.prw", kind="wheel")
    long = tmp_path / "long.csv"
    long.write_text("y_mm,z_mm\n" + "1" * 5000 + "\n")
    with pytest.raises(InputError, match=r"line 2.*5000 characters"):
        load_profile(long, kind="wheel")
    long.write_bytes(b"y_mm,z_mm\n\x00\x01\n")
    with pytest.raises(InputError, match=r"line 2.*not text"):
        load_profile(long, kind="wheel")


TOKENS = st.sampled_from(
    [
        "header.begin",
        "header.end",
        "spline.begin",
        "point.begin",
        "point.end",
        "type = 1",
        "units.len.f = 1000",
        "rotate = 0.1",
        "mirror.y = 1",
        "bound.y.min = -5",
        "XYPoints=9",
        "ColumnDef=X,Y",
        "ColumnDef=Y",
        "",
        "y_mm,z_mm",
        "1 2",
        "-3.5 4e1",
        "nan inf",
        "1,5 2,5",
        "1;2",
        '" 1 2',
        "! x",
        "# y",
        "9e999 1",
        "1 2 0",
        "0x10 3",
        "\x0c",
        "1_0 2",
        "\uff11 2",
    ]
)


@given(st.lists(TOKENS | st.text(max_size=30), max_size=40), st.sampled_from([".prw", ".prr", ".whl", ".ban", ".csv"]))
@settings(max_examples=250)
def test_readers_survive_any_text(tmp_path_factory: pytest.TempPathFactory, words: list[str], ending: str) -> None:
    file = tmp_path_factory.getbasetemp() / f"fuzz{ending}"
    file.write_bytes("\n".join(words).encode("utf-8", "surrogatepass"))
    kind = "rail" if ending in (".prr", ".ban") else "wheel"
    with contextlib.suppress(InputError):
        load_profile(file, kind=kind)


@given(st.data())
@settings(max_examples=120)
def test_readers_survive_damaged_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A good file with a stretch of bytes replaced: a profile or an InputError, never anything else."""
    y, z = sampled(WHEEL, 60, -0.0600, 0.055)
    ending = data.draw(st.sampled_from([".prw", ".whl", ".csv"]))
    good = {
        ".prw": simpack(-y, -z, "wheel"),
        ".whl": miniprof(y, z),
        ".csv": "y_mm,z_mm\n" + "\n".join(f"{a * 1e3},{b * 1e3}" for a, b in zip(y, z, strict=True)),
    }[ending].encode()
    start = data.draw(st.integers(0, len(good)))
    length = data.draw(st.integers(0, 60))
    damaged = good[:start] + data.draw(st.binary(max_size=30)) + good[start + length :]
    file = tmp_path_factory.getbasetemp() / f"damaged{ending}"
    file.write_bytes(damaged)
    try:
        profile = load_profile(file, kind="wheel")
    except InputError:
        return
    assert np.isfinite(profile.height(profile.node_m)).all()
