"""Strict reading of vehicles: what is right is read right, what is wrong is refused with file, key, value and rule."""

import re
import string

import numpy as np
import pytest
import sample_vehicle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from railsweep.engine.contact_table import conical_table, load_contact_table, save_contact_table
from railsweep.engine.document import parse_toml
from railsweep.engine.errors import InputError
from railsweep.engine.model import assemble
from railsweep.engine.vehicle import library_vehicles, load_vehicle, parse_vehicle

WAGON = """
name = "wagon"
[contact]
friction = 0.3

[[body]]
name = "car_body"
mass_kg = 20000.0
inertia_roll_kgm2 = 3.0e4
inertia_pitch_kgm2 = 2.0e5
inertia_yaw_kgm2 = 2.0e5
position_m = [0.0, 0.0, 1.5]

[[wheelset]]
name = "wheelset_{axle}"
for_each = ["axle"]
mass_kg = 1200.0
inertia_roll_kgm2 = 700.0
inertia_pitch_kgm2 = 90.0
inertia_yaw_kgm2 = 700.0
position_m = [3.0, 0.0, 0.46]
rolling_radius_m = 0.46
half_spacing_m = 0.75

[[link]]
name = "suspension"
type = "bushing"
for_each = ["axle", "side"]
lower = { body = "wheelset_{axle}", point_m = [0.0, 1.0, 0.0] }
upper = { body = "car_body", point_m = [3.0, 1.0, -1.04] }
stiffness_npm = [5.0e6, 3.0e6, 1.0e6]
damping_nspm = [1.0e4, 1.0e4, 2.0e4]
preloaded = true

[[link]]
name = "damper"
type = "lateral"
for_each = ["axle"]
lower = { body = "wheelset_{axle}", point_m = [0.0, 0.2, 0.0] }
upper = { body = "car_body", point_m = [3.0, 0.7, -1.04] }
[link.damper_law]
velocity_mps = [-1.0, 0.0, 1.0]
force_n = [-1.0e4, 0.0, 1.0e4]
"""


def refused(text, where="wagon.toml"):
    with pytest.raises(InputError) as error:
        sample_vehicle.read(text, where)
    assert str(error.value).startswith(where)
    assert error.value.allowed
    return error.value


def changed(old, new, count=1):
    assert old in WAGON
    return WAGON.replace(old, new, count)


# --- what is right ----------------------------------------------------------------------------------------------


def test_the_library_reads_and_assembles():
    assert {"cooperrider", "cooperrider-fixed-car", "cooperrider-vector", "manchester-1"} <= set(library_vehicles())
    for name in library_vehicles():
        assert load_vehicle(name).name == name
        assert assemble(name, speed_mps=20.0).n > 40


def test_names_and_states_of_the_wagon():
    """The contract of the issue: seven bodies, 66 states, these names in this order."""
    model = assemble("cooperrider", speed_mps=20.0)
    bodies = ["car_body", "bogie_leading", "bogie_trailing"]
    wheelsets = ["wheelset_ll", "wheelset_lt", "wheelset_tl", "wheelset_tt"]
    expected = [f"{b}.{d}{r}" for b in bodies for d in ("y", "z", "roll", "pitch", "yaw") for r in ("", "_dot")]
    for w in wheelsets:
        expected += [f"{w}.{d}{r}" for d in ("y", "z", "roll") for r in ("", "_dot")]
        expected += [f"{w}.spin", f"{w}.yaw", f"{w}.yaw_dot"]
    assert list(model.state_names) == expected
    assert model.n == 66


def test_for_each_mirrors():
    vehicle = sample_vehicle.read(WAGON)
    assert [b.name for b in vehicle.bodies] == ["car_body", "wheelset_leading", "wheelset_trailing"]
    assert vehicle.body("wheelset_trailing").position_m == (-3.0, 0.0, 0.46)
    points = {link.name: link.upper_point_m for link in vehicle.links if link.group == "suspension"}
    assert points == {
        "suspension.leading.left": (3.0, 1.0, -1.04),
        "suspension.leading.right": (3.0, -1.0, -1.04),
        "suspension.trailing.left": (-3.0, 1.0, -1.04),
        "suspension.trailing.right": (-3.0, -1.0, -1.04),
    }


def test_a_file_and_a_path(tmp_path):
    path = tmp_path / "my wagon.toml"
    path.write_text(WAGON)
    assert load_vehicle(path) == load_vehicle(str(path))
    assert load_vehicle(path).contact.friction == 0.3


def test_dofs_freezing_and_offsets():
    text = changed("position_m = [0.0, 0.0, 1.5]", 'position_m = [0.0, 0.0, 1.5]\ndofs = ["roll", "y"]')
    model = assemble(sample_vehicle.read(text), speed_mps=20.0)
    car = [n for n in model.state_names if n.startswith("car_body")]
    assert car == ["car_body.y", "car_body.y_dot", "car_body.roll", "car_body.roll_dot"]
    held = assemble(sample_vehicle.read(changed("1.5]", "1.5]\nfrozen = true")), speed_mps=20.0)
    assert not [n for n in held.state_names if n.startswith("car_body")]
    assert np.abs(held.rhs(0.0, held.equilibrium())).max() < 1e-8


def test_moving_the_axes_of_a_body_changes_nothing():
    """Attachment points are in geometric axes: the same body drawn from another origin is the same model."""
    moved = changed("position_m = [0.0, 0.0, 1.5]", "position_m = [0.5, 0.0, 1.1]\ncentre_of_mass_m = [-0.5, 0.0, 0.4]")
    for old, new in (("[3.0, 1.0, -1.04]", "[{}, 1.0, -0.64]"), ("[3.0, 0.7, -1.04]", "[{}, 0.7, -0.64]")):
        assert old in moved
        moved = moved.replace(old, new)
    # for_each mirrors about the origin of the body, which is off the middle now: write both axles out
    head, *links = moved.split("[[link]]")
    text = head
    for link in links:
        for axle, x in (("leading", 2.5), ("trailing", -3.5)):
            copy = link.replace('"axle", ', "").replace('for_each = ["axle"]\n', "").replace("{axle}", axle)
            text += "[[link]]" + re.sub(r'name = "(\w+)"', rf'name = "\1_{axle}"', copy, count=1).replace("{}", str(x))
    first, second = (assemble(sample_vehicle.read(t), speed_mps=20.0) for t in (WAGON, text))
    y = sample_vehicle.disturbed(first, np.random.default_rng(1))
    np.testing.assert_allclose(second.rhs(0.0, y), first.rhs(0.0, y), rtol=1e-9, atol=1e-8)


# --- what is wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "key", "value", "allowed"),
    [
        # unknown and missing keys
        ("mass_kg = 20000.0", "mas_kg = 20000.0", "body[0].mass_kg", "missing", "number"),
        ("mass_kg = 20000.0", "mass_kg = 1.0\nmas = 2", "body[0].mas", "'mass_kg'", "mass_kg"),
        ("friction = 0.3", "frictoin = 0.3", "contact.frictoin", "did you mean 'friction'", "friction"),
        ('type = "bushing"', "", "link[0].type", "missing", "bushing"),
        ("rolling_radius_m = 0.46\n", "", "wheelset[0].rolling_radius_m", "missing", "number"),
        ("[[wheelset]]", "[[weelset]]", "weelset", "did you mean 'wheelset'", "wheelset"),
        ("velocity_mps = [-1.0, 0.0, 1.0]\n", "", "link[1].damper_law.velocity_mps", "missing", "list"),
        ('name = "wagon"', "", "name", "missing", "string"),
        # wrong types
        ("mass_kg = 20000.0", 'mass_kg = "heavy"', "body[0].mass_kg", "'heavy'", "finite number"),
        ("mass_kg = 20000.0", "mass_kg = true", "body[0].mass_kg", "True", "finite number"),
        ("mass_kg = 20000.0", "mass_kg = [1.0]", "body[0].mass_kg", "[1.0]", "finite number"),
        ("mass_kg = 20000.0", "mass_kg = 1979-05-27", "body[0].mass_kg", "datetime", "finite number"),
        ("position_m = [0.0, 0.0, 1.5]", "position_m = [0.0, 1.5]", "body[0].position_m", "[0.0, 1.5]", "3 numbers"),
        ("position_m = [0.0, 0.0, 1.5]", 'position_m = [0.0, "a", 1.5]', "body[0].position_m[1]", "'a'", "number"),
        ('for_each = ["axle"]', 'for_each = "axle"', "wheelset[0].for_each", "'axle'", "list of strings"),
        ('name = "wagon"', "name = 5", "name", "5", "string"),
        ("preloaded = true", "preloaded = 1", "link[0].preloaded", "1", "true or false"),
        ("[contact]\nfriction = 0.3", "contact = 3", "contact", "3", "table"),
        ("[[body]]", "[body]", "body", "{", "[[body]]"),
        # signs and ranges
        ("mass_kg = 20000.0", "mass_kg = -1.0", "body[0].mass_kg", "-1.0", "above 0"),
        ("mass_kg = 1200.0", "mass_kg = 0", "wheelset[0].mass_kg", "0", "above 0"),
        ("inertia_yaw_kgm2 = 700.0", "inertia_yaw_kgm2 = -700.0", "wheelset[0].inertia_yaw_kgm2", "-700.0", "above 0"),
        ("friction = 0.3", "friction = -0.1", "contact.friction", "-0.1", "at least 0"),
        ("friction = 0.3", "friction = 20", "contact.friction", "20", "at most 2"),
        ("friction = 0.3", "poisson_ratio = 0.6", "contact.poisson_ratio", "0.6", "at most 0.5"),
        ("[5.0e6, 3.0e6, 1.0e6]", "[5.0e6, -3.0e6, 1.0e6]", "link[0].stiffness_npm[1]", "-3000000.0", "at least 0"),
        ('name = "wagon"', 'name = "wagon"\ngravity_mps2 = -9.81', "gravity_mps2", "-9.81", "at least 0"),
        # not finite
        ("mass_kg = 20000.0", "mass_kg = inf", "body[0].mass_kg", "inf", "finite"),
        ("mass_kg = 20000.0", "mass_kg = nan", "body[0].mass_kg", "nan", "finite"),
        ("mass_kg = 20000.0", "mass_kg = 1e999", "body[0].mass_kg", "inf", "finite"),
        ("mass_kg = 20000.0", "mass_kg = 1" + "0" * 400, "body[0].mass_kg", "1000", "finite"),
        ("mass_kg = 20000.0", "mass_kg = 0x" + "f" * 5000, "body[0].mass_kg", "too large to show", "finite"),
        ("[3.0, 1.0, -1.04]", "[3.0, nan, -1.04]", "link[0].upper.point_m[1]", "nan", "finite"),
        # laws
        ("[-1.0, 0.0, 1.0]", "[-1.0, 1.0, 0.0]", "link[1].damper_law.velocity_mps[2]", "0.0 after 1.0", "increasing"),
        ("[-1.0, 0.0, 1.0]", "[-1.0, 0.0, 0.0]", "link[1].damper_law.velocity_mps[2]", "0.0 after 0.0", "increasing"),
        ("[-1.0, 0.0, 1.0]", "[0.0]", "link[1].damper_law.velocity_mps", "1 points", "2 to"),
        ("[-1.0e4, 0.0, 1.0e4]", "[-1.0e4, 1.0e4]", "link[1].damper_law.force_n", "2 numbers", "velocity_mps"),
        ("[-1.0e4, 0.0, 1.0e4]", "[-1.0e4, nan, 0.0]", "link[1].damper_law.force_n[1]", "nan", "finite"),
        (
            "force_n = [-1.0e4, 0.0, 1.0e4]",
            'force_n = [-1.0e4, 0.0, 1.0e4]\ninterpolation = "qubic"',
            "link[1].damper_law.interpolation",
            "did you mean 'cubic'",
            "linear, cubic, akima, monotone",
        ),
        (
            "force_n = [-1.0e4, 0.0, 1.0e4]",
            'force_n = [-1.0e4, 0.0, 1.0e4]\noutside = "ignore"',
            "link[1].damper_law.outside",
            "'ignore'",
            "stop, extrapolate",
        ),
        ("[link.damper_law]", "damping_nspm = 1.0\n[link.damper_law]", "link[1].damping_nspm", "damper_law", "either"),
        # names and ends
        (
            '"car_body", point_m = [3.0, 1.0',
            '"car_bdy", point_m = [3.0, 1.0',
            "link[0].upper.body",
            "car_body",
            "wheelset",
        ),
        ('"wheelset_{axle}", point', '"wheelset_{axel}", point', "link[0].lower.body", "{axel}", "{axle}"),
        ('"wheelset_{axle}", point', '"wheelset_{axle:>99999999}", point', "link[0].lower.body", "{axle:", "{axle}"),
        ('"wheelset_{axle}", point', '"wheelset_{axle.real}", point', "link[0].lower.body", "real", "{axle}"),
        (
            'body = "wheelset_{axle}", point_m = [0.0, 1.0',
            'body = "car_body", point_m = [0.0, 1.0',
            "link[0]",
            "itself",
            "two",
        ),
        ('name = "damper"', 'name = "suspension"', "link[1].name", "'suspension' exists already", "different"),
        ('name = "damper"', 'name = "9"', "link[1].name", "'9'", "letter"),
        ('name = "wheelset_{axle}"', 'name = "wheelset"', "wheelset[0].name", "exists already", "different"),
        ('type = "lateral"', 'type = "laterall"', "link[1].type", "did you mean 'lateral'", "bushing"),
        ('for_each = ["axle"]', 'for_each = ["axel"]', "wheelset[0].for_each", "did you mean 'axle'", "bogie"),
        ('for_each = ["axle"]', 'for_each = ["axle", "axle"]', "wheelset[0].for_each", "repeats", "different"),
        ("position_m = [0.0, 0.0, 1.5]", 'position_m = [0, 0, 1]\ndofs = ["x"]', "body[0].dofs", "'x'", "roll"),
        (
            "position_m = [0.0, 0.0, 1.5]",
            'parent = "none"\noffset_m = [0, 0, 1]',
            "body[0].parent",
            "'none'",
            "earlier",
        ),
        (
            "position_m = [0.0, 0.0, 1.5]",
            'parent = "car_body"\noffset_m = [0, 0, 1]',
            "body[0].parent",
            "car_body",
            "earlier",
        ),
        ("friction = 0.3", 'creep_law = "polac"', "contact.creep_law", "'polach'", "fastsim"),
    ],
)
def test_refusals(old, new, key, value, allowed):
    error = refused(changed(old, new))
    assert error.where == f"wagon.toml: {key}"
    assert value in error.problem, error
    assert allowed in error.allowed, error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "name"),
        ('name = "x"', "no [[body]]"),
        ("name = ", "not valid TOML"),
        ("\x00", "not valid TOML"),
        ('name = "a"\nname = "b"', "not valid TOML"),
        ('name = "x"\nbody = ' + "[" * 5000, "nested too deeply"),
        ('name = "x"\nbody = ' + "[" * 50 + "]" * 50, "body"),
        ('name = "x"\nbody' + ".a" * 100_000 + " = 1", "too many parts"),
        ('name = "x"\n[body' + ".a" * 100_000 + "]", "too many parts"),
        ('name = "x"\nbody = {a' + ".a" * 100_000 + " = 1}", "too many parts"),
        ('name = "x"\n' + "[[link]]\n" * 1001 + '[[body]]\nname="a"', "body[0]"),
    ],
)
def test_documents_that_are_no_vehicle(text, expected):
    with pytest.raises(InputError) as error:
        sample_vehicle.read(text)
    assert expected in str(error.value)


def test_too_many_links():
    head = WAGON.split("[[link]]")[0]
    assert "at most 1000" in refused(head + "[[link]]\n" * 1001).allowed


def test_many_dots_in_comments_and_lists_are_fine():
    dotted = "# " + "." * 300 + "\n" + WAGON
    law = ", ".join(f"{0.01 * i:.2f}" for i in range(200))
    assert sample_vehicle.read(
        dotted.replace("[-1.0, 0.0, 1.0]", f"[{law}]").replace("[-1.0e4, 0.0, 1.0e4]", f"[{law}]")
    )


def test_all_frozen():
    with pytest.raises(InputError, match="every body is frozen"):
        sample_vehicle.read(WAGON.replace("mass_kg", "frozen = true\nmass_kg"))


def test_a_vector_link_needs_a_direction():
    text = changed('type = "bushing"', 'type = "vector"')
    text = text.replace("stiffness_npm = [5.0e6, 3.0e6, 1.0e6]\ndamping_nspm = [1.0e4, 1.0e4, 2.0e4]\n", "")
    assert "coincide" in refused(text).problem


def test_a_law_that_cannot_be_interpolated_is_refused_when_assembled():
    text = changed("[-1.0, 0.0, 1.0]", "[0.0, 1e-320, 1.0]").replace(
        "[link.damper_law]", '[link.damper_law]\ninterpolation = "cubic"'
    )
    with pytest.raises(InputError, match="cannot be interpolated"):
        assemble(sample_vehicle.read(text), speed_mps=20.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cooperider", "did you mean 'cooperrider'"),
        ("", "not in the library"),
        ("nowhere/wagon.toml", "cannot be read"),
        ("nowhere.toml", "cannot be read"),
        (".toml", "cannot be read"),
        ("a\0b.toml", "cannot be read"),
        ("/", "cannot be read"),
    ],
)
def test_vehicles_that_are_not_there(name, expected):
    with pytest.raises(InputError) as error:
        load_vehicle(name)
    assert expected in str(error.value)


def test_large_files_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "long.toml"
    path.write_text(WAGON)
    monkeypatch.setattr("railsweep.engine.document.MAXIMUM_BYTES", 100)
    with pytest.raises(InputError, match="at most 100 bytes"):
        load_vehicle(path)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("formulation", "phisics", "did you mean 'physics'"),
        ("formulation", None, "physics, dytsi"),
        ("precession", "on", "off, printed, right"),
        ("creep_law", "polac", "did you mean 'polach'"),
        ("friction", -0.1, "at least 0"),
        ("friction", float("nan"), "finite"),
        ("speed_mps", 0.0, "above 0"),
        ("speed_mps", -5.0, "above 0"),
        ("speed_mps", float("inf"), "finite"),
        ("speed_mps", "fast", "finite number"),
        ("shear_modulus_pa", 0.0, "above 0"),
        ("shear_modulus_pa", float("nan"), "finite"),
    ],
)
def test_options_of_assemble(option, value, expected):
    with pytest.raises(InputError) as error:
        assemble("cooperrider", **{"speed_mps": 20.0, option: value})
    assert expected in str(error.value)
    assert option in str(error.value)


def test_state_of_the_wrong_size():
    model = assemble("cooperrider", speed_mps=20.0)
    with pytest.raises(InputError, match=r"\(3,\).*\(66,\)"):
        model.rhs(0.0, [0.0, 1.0, 2.0])
    with pytest.raises(InputError, match=r"did you mean 'wheelset_ll\.yaw'"):
        model.index("wheelset_ll.yawn")


# --- fuzzing ----------------------------------------------------------------------------------------------------

WORDS = ["nan", "-inf", "1e400", "-1", "0", "true", '"x"', "[]", "{}", "[[1]]", "1979-05-27", "0x" + "f" * 5000, "''"]
JUNK = st.text(alphabet=string.printable + "é\x00{}[]\"'", max_size=12)


@st.composite
def mutated(draw, text):
    """A document with a few lines dropped, doubled, swapped, or changed in key, value or characters."""
    lines = text.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 6)):
            case 0:
                del lines[at]
                if not lines:
                    lines = [""]
            case 1:
                lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
            case 2:
                head, equals, _ = lines[at].partition("=")
                lines[at] = head + equals + " " + draw(st.sampled_from(WORDS))
            case 3:
                _, equals, tail = lines[at].partition("=")
                lines[at] = draw(JUNK) + equals + tail
            case 4:
                cut = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:cut] + draw(JUNK) + lines[at][cut:]
            case 5:
                number = draw(st.floats(allow_nan=True, allow_infinity=True))
                lines[at] = re.sub(r"-?\d+\.\d+(e\d+)?", lambda _, n=number: repr(n), lines[at], count=1)
            case 6:
                number = draw(st.integers(-(10**30), 10**30))
                lines[at] = re.sub(r"-?\d+\.\d+(e\d+)?", lambda _, n=number: repr(n), lines[at])
    return "\n".join(lines)


def survives(action):
    """The action succeeds or refuses with an InputError that says where; anything else is a failure of the test."""
    try:
        return action()
    except InputError as error:
        refusal = error
    assert refusal.where
    assert refusal.problem
    assert len(str(refusal)) < 20_000
    return None


@given(text=mutated(WAGON))
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
def test_fuzzed_vehicles_are_read_or_refused(text):
    vehicle = survives(lambda: sample_vehicle.read(text))
    if vehicle is not None:
        survives(lambda: assemble(vehicle, contact=CONE, speed_mps=20.0))


@given(text=mutated(sample_vehicle.HALF_BOGIE))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_fuzzed_vehicles_with_every_link(text):
    vehicle = survives(lambda: sample_vehicle.read(text))
    if vehicle is not None:
        survives(lambda: assemble(vehicle, contact=CONE, speed_mps=20.0))


@given(raw=st.binary(max_size=200))
@settings(max_examples=200)
def test_fuzzed_bytes(raw):
    survives(lambda: parse_vehicle(parse_toml(raw, "bytes")))


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


@given(key=st.sampled_from(["name", "body", "wheelset", "link", "contact", "gravity_mps2", "title"]), value=VALUES)
@settings(max_examples=200)
def test_any_value_in_any_place(key, value):
    """What TOML can hold and more, put in place of every top-level entry."""
    section = parse_toml(WAGON.encode(), "wagon.toml")
    section.data[key] = value
    survives(lambda: parse_vehicle(section))


CONE = conical_table(rolling_radius_m=0.44, step_m=1e-3, range_m=0.01)


@pytest.fixture(scope="module")
def table_text(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "cone.dat"
    save_contact_table(CONE, path)
    return path


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_fuzzed_contact_tables_are_read_or_refused(table_text, data):
    text = table_text.read_text()
    path = table_text.with_name("fuzzed.dat")
    path.write_text(data.draw(mutated(text)), encoding="utf-8", errors="surrogatepass")
    table = survives(lambda: load_contact_table(path))
    if table is not None:
        survives(lambda: assemble(sample_vehicle.read(WAGON), contact=table, speed_mps=20.0))
