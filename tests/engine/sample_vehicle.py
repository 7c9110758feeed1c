"""Vehicles for tests: one with every kind of link, random ones, and the means to mirror and to disturb a state."""

import numpy as np

from railsweep.engine.document import parse_toml
from railsweep.engine.vehicle import Vehicle, library_vehicles, parse_vehicle
from railsweep.kernels import record as slot

LIBRARY = tuple(library_vehicles())

HALF_BOGIE = """
name = "half-bogie"
[[body]]
name = "car_body"
mass_kg = 21000.0
inertia_roll_kgm2 = 3.1e4
inertia_pitch_kgm2 = 2.6e5
inertia_yaw_kgm2 = 2.5e5
position_m = [0.0, 0.0, 1.9]
centre_of_mass_m = [0.03, 0.0, 0.11]

[[body]]
name = "frame"
parent = "car_body"
mass_kg = 2700.0
inertia_roll_kgm2 = 1900.0
inertia_pitch_kgm2 = 3300.0
inertia_yaw_kgm2 = 4100.0
offset_m = [0.0, 0.0, -1.3]
centre_of_mass_m = [-0.02, 0.0, 0.05]

[[wheelset]]
name = "wheelset_{axle}"
for_each = ["axle"]
parent = "frame"
offset_m = [1.25, 0.0, -0.175]
mass_kg = 1300.0
inertia_roll_kgm2 = 760.0
inertia_pitch_kgm2 = 95.0
inertia_yaw_kgm2 = 770.0
rolling_radius_m = 0.425
half_spacing_m = 0.75

[[link]]
name = "coil"
type = "flexicoil"
for_each = ["axle", "side"]
lower = { body = "wheelset_{axle}", point_m = [0.0, 1.0, 0.1] }
upper = { body = "frame", point_m = [1.25, 1.0, 0.3] }
stiffness_npm = 1.1e6
damping_nspm = 4.0e3
shear_stiffness_npm = 0.9e6
shear_damping_nspm = 2.0e3

[[link]]
name = "arm"
type = "bushing"
for_each = ["axle", "side"]
lower = { body = "wheelset_{axle}", point_m = [-0.4, 0.95, 0.0] }
upper = { body = "frame", point_m = [0.85, 0.95, -0.175] }
stiffness_npm = [9.0e6, 3.0e6, 0.2e6]
damping_nspm = [3.0e3, 2.0e3, 1.0e3]

[[link]]
name = "air"
type = "air_spring_nishimura"
for_each = ["side"]
lower = { body = "frame", point_m = [0.3, 0.95, 0.4] }
upper = { body = "car_body", point_m = [0.3, 0.95, -0.6] }
area_stiffness_npm = 0.4e5
bellows_stiffness_npm = 5.5e5
reservoir_stiffness_npm = 4.0e5
orifice_damping_nspm = 3.5e4
shear_stiffness_npm = 1.4e5
shear_damping_nspm = 1.0e3

[[link]]
name = "berg"
type = "air_spring_berg"
for_each = ["side"]
lower = { body = "frame", point_m = [-0.4, 0.9, 0.4] }
upper = { body = "car_body", point_m = [-0.4, 0.9, -0.6] }
elastic_stiffness_npm = 2.2e5
viscous_stiffness_npm = 3.0e5
orifice_damping = 4.0e4
air_mass_kg = 60.0
friction_force_n = 900.0
friction_length_m = 4.0e-3
shear_stiffness_npm = 1.1e5

[[link]]
name = "yaw_damper"
type = "maxwell"
direction = "vector"
for_each = ["side"]
lower = { body = "frame", point_m = [0.1, 1.35, 0.0] }
upper = { body = "car_body", point_m = [0.8, 1.35, -1.25] }
stiffness_npm = 6.0e6
damping_nspm = 3.0e5

[[link]]
name = "lateral_damper"
type = "lateral"
for_each = ["side"]
lower = { body = "frame", point_m = [0.2, 0.3, 0.5] }
upper = { body = "car_body", point_m = [0.2, 0.9, -0.8] }
stiffness_npm = 2.0e4
[link.damper_law]
velocity_mps = [-1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0]
force_n = [-16.0e3, -9.0e3, -4.0e3, 0.0, 5.0e3, 11.0e3, 20.0e3]
interpolation = "monotone"
outside = "extrapolate"

[[link]]
name = "inclined"
type = "vector"
for_each = ["side"]
lower = { body = "frame", point_m = [0.7, 0.8, 0.3] }
upper = { body = "car_body", point_m = [0.9, 1.1, -0.4] }
damping_nspm = 1.2e4
[link.spring_law]
displacement_m = [-0.08, -0.03, 0.0, 0.02, 0.05, 0.09]
force_n = [-9.0e3, -2.0e3, 0.0, 1.0e3, 4.0e3, 12.0e3]
interpolation = "akima"
outside = "extrapolate"

[[link]]
name = "rod"
type = "traction_rod"
lower = { body = "frame", point_m = [0.6, 0.0, 0.1] }
upper = { body = "car_body", point_m = [-0.7, 0.0, -1.15] }
stiffness_npm = 7.0e6
damping_nspm = 5.0e3

[[link]]
name = "stop"
type = "bump_stop"
direction = "lateral"
for_each = ["side"]
lower = { body = "frame", point_m = [0.0, 0.25, 0.4] }
upper = { body = "car_body", point_m = [0.0, 0.25, -0.9] }
gap_m = 1.0e-4
stiffness_npm = 4.0e6

[[link]]
name = "one_way"
type = "bump_stop"
direction = "lateral"
for_each = ["side"]
lower = { body = "frame", point_m = [-0.1, 0.3, 0.4] }
upper = { body = "car_body", point_m = [-0.1, 0.3, -0.9] }
[link.spring_law]
displacement_m = [-0.06, -0.02, -0.01, 0.0, 0.06]
force_n = [-8.0e4, -1.0e4, -2.0e3, 0.0, 0.0]
interpolation = "cubic"
outside = "extrapolate"

[[link]]
name = "rubbing"
type = "friction"
direction = "longitudinal"
for_each = ["side"]
lower = { body = "frame", point_m = [0.0, 1.0, 0.4] }
upper = { body = "car_body", point_m = [0.05, 1.0, -0.9] }
force_n = 2500.0
velocity_mps = 0.02

[[link]]
name = "bar"
type = "anti_roll_bar"
lower = { body = "frame", point_m = [0.0, 0.0, 0.0] }
upper = { body = "car_body", point_m = [0.0, 0.0, 0.0] }
stiffness_nmprad = 9.0e5
damping_nmsprad = 2.0e3

[[link]]
name = "centre"
type = "yaw"
lower = { body = "frame", point_m = [0.0, 0.0, 0.0] }
upper = { body = "car_body", point_m = [0.0, 0.0, 0.0] }
damping_nmsprad = 1.5e3
[link.spring_law]
angle_rad = [-0.1, -0.03, 0.0, 0.03, 0.1]
moment_nm = [-9.0e3, -2.0e3, 0.0, 2.0e3, 9.0e3]
interpolation = "cubic"
outside = "extrapolate"

[[link]]
name = "pitch_spring"
type = "torsion"
direction = "pitch"
lower = { body = "frame", point_m = [0.0, 0.0, 0.0] }
upper = { body = "car_body", point_m = [0.0, 0.0, 0.0] }
stiffness_nmprad = 3.0e5

[[link]]
name = "longitudinal_link"
type = "longitudinal"
for_each = ["side"]
lower = { body = "frame", point_m = [0.0, 1.2, 0.0] }
upper = { body = "car_body", point_m = [-0.6, 1.2, -1.3] }
stiffness_npm = 3.0e5
damping_nspm = 2.0e4

[[link]]
name = "vertical_damper"
type = "vertical"
for_each = ["side"]
lower = { body = "frame", point_m = [0.1, 1.2, 0.1] }
upper = { body = "car_body", point_m = [0.1, 1.2, -0.7] }
damping_nspm = 2.6e4
"""


def read(text: str, where: str = "test.toml") -> Vehicle:
    """A vehicle from TOML text."""
    return parse_vehicle(parse_toml(text.encode(), where))


def every_link() -> Vehicle:
    """A mirror-symmetric half wagon that uses every link type, law and element with memory."""
    return read(HALF_BOGIE, "half-bogie.toml")


LINKS = {
    "longitudinal": "stiffness_npm = {k}\ndamping_nspm = {d}",
    "lateral": "stiffness_npm = {k}\ndamping_nspm = {d}",
    "vector": "stiffness_npm = {k}\ndamping_nspm = {d}",
    "traction_rod": "stiffness_npm = {k}",
    "flexicoil": "stiffness_npm = {k}\nshear_stiffness_npm = {k}\nshear_damping_nspm = {d}",
    "bushing": "stiffness_npm = [{k}, {k}, {k}]\ndamping_nspm = [{d}, 0.0, {d}]",
    "bump_stop": 'direction = "vertical"\ngap_m = 1e-5\nstiffness_npm = {k}',
    "yaw": "stiffness_nmprad = {k}\ndamping_nmsprad = {d}",
    "torsion": 'direction = "pitch"\nstiffness_nmprad = {k}\ndamping_nmsprad = {d}',
    "anti_roll_bar": "stiffness_nmprad = {k}",
    "maxwell": 'direction = "lateral"\nstiffness_npm = {k}\ndamping_nspm = {d}',
    "friction": 'direction = "vector"\nforce_n = 800.0\nvelocity_mps = 0.05',
    "air_spring_nishimura": (
        "bellows_stiffness_npm = {k}\nreservoir_stiffness_npm = {k}\norifice_damping_nspm = {d}\n"
        "shear_stiffness_npm = {k}"
    ),
    "air_spring_berg": (
        "elastic_stiffness_npm = {k}\nviscous_stiffness_npm = {k}\norifice_damping = {d}\nair_mass_kg = 40.0\n"
        "friction_force_n = 300.0\nfriction_length_m = 0.005"
    ),
}


def random_vehicle_text(seed: int) -> str:
    """A vehicle of one to four sprung bodies and up to three wheelsets, joined by random links at random points."""
    rng = np.random.default_rng(seed)

    def point(spread: float) -> str:
        return str([round(float(v), 3) for v in rng.uniform(-spread, spread, 3)])

    bodies = int(rng.integers(1, 5))
    wheelsets = int(rng.integers(0, 4))
    lines = [f'name = "random-{seed}"']
    names = []
    for i in range(bodies):
        names.append(f"body{i}")
        # the first is free in all coordinates, so that every vehicle has something to move
        dofs = ["y", "z", "roll", "pitch", "yaw"]
        kept = dofs if i == 0 else [d for d in dofs if rng.random() < 0.8]
        lines += ["[[body]]", f'name = "body{i}"', f"dofs = {kept}", f"mass_kg = {rng.uniform(500, 2e4):.3f}"]
        lines += [f"inertia_{a}_kgm2 = {rng.uniform(300, 3e4):.3f}" for a in ("roll", "pitch", "yaw")]
        position = [round(float(rng.uniform(-4, 4)), 3), round(float(rng.uniform(-0.3, 0.3)), 3), 1.0 + 0.5 * i]
        lines += [f"position_m = {position}", f"centre_of_mass_m = {point(0.1)}"]
    for i in range(wheelsets):
        names.append(f"axle{i}")
        lines += ["[[wheelset]]", f'name = "axle{i}"', 'parent = "body0"', "mass_kg = 1200.0"]
        lines += [f"offset_m = [{round(float(rng.uniform(-3, 3)), 3)}, 0.0, -0.575]"]
        lines += ["inertia_roll_kgm2 = 700.0", "inertia_pitch_kgm2 = 90.0", "inertia_yaw_kgm2 = 710.0"]
        lines += ["rolling_radius_m = 0.425", "half_spacing_m = 0.75"]
    # a base that does not move carries every body on four springs
    lines += ["[[body]]", 'name = "base"', "dofs = []", "mass_kg = 1.0", "position_m = [0.0, 0.0, 0.0]"]
    lines += [f"inertia_{a}_kgm2 = 1.0" for a in ("roll", "pitch", "yaw")]
    for i in range(bodies):
        for x in (-1.0, 1.0):
            for y in (-1.0, 1.0):
                lines += ["[[link]]", f'name = "carry{i}_{int(x + 2)}{int(y + 2)}"', 'type = "vertical"']
                lines += [f'lower = {{ body = "base", point_m = [{x}, {y}, 0.0] }}']
                lines += [f'upper = {{ body = "body{i}", point_m = [{1.1 * x}, {0.9 * y}, -0.2] }}']
                lines += [f"stiffness_npm = {rng.uniform(2e5, 2e6):.1f}", f"damping_nspm = {rng.uniform(0, 2e4):.1f}"]
    ends = [*names, "base"]
    for i in range(int(rng.integers(3, 15))):
        kind = str(rng.choice(list(LINKS)))
        lower, upper = rng.choice(len(ends), 2, replace=False)
        lines += ["[[link]]", f'name = "link{i}"', f'type = "{kind}"']
        lines += [f'lower = {{ body = "{ends[lower]}", point_m = {point(1.0)} }}']
        lines += [f'upper = {{ body = "{ends[upper]}", point_m = {point(1.0)} }}']
        lines += [LINKS[kind].format(k=f"{rng.uniform(1e4, 2e6):.1f}", d=f"{rng.uniform(1e3, 5e4):.1f}")]
        if kind.startswith("air_spring") or kind == "flexicoil":
            lines += ["preloaded = false"]
    return "\n".join(lines)


def mirror(model) -> tuple[np.ndarray, np.ndarray]:
    """(order, sign) so that `sign * y[order]` is the mirror image (left for right) of state y.

    y, roll and yaw change sign; left and right links change places, their internal states are extensions and keep
    the sign.
    """
    order, sign = np.arange(model.n), np.ones(model.n)
    for i, name in enumerate(model.state_names):
        coordinate = name.rpartition(".")[2].removesuffix("_dot")
        if coordinate in ("y", "roll", "yaw"):
            sign[i] = -1.0
        swapped = name.replace(".left.", ".#.").replace(".right.", ".left.").replace(".#.", ".right.")
        order[i] = model.index(swapped)
    return order, sign


def disturbed(model, rng, size=1.0) -> np.ndarray:
    """A random state about the nominal one: millimetres, milliradians and their rates, wheels in contact.

    Wheelsets get less lift and roll, so that they keep a varying but mostly positive load.
    """
    y = np.empty(model.n)
    for i, name in enumerate(model.state_names):
        body, _, coordinate = name.rpartition(".")
        rate = coordinate.endswith("_dot")
        wheel = body in model.layout.wheelset_names
        scale = {"y": 3e-3, "z": 3e-3, "roll": 2e-3, "pitch": 2e-3, "yaw": 2e-3, "spin": 0.3}.get(
            coordinate.removesuffix("_dot"), 1e-3
        )
        if wheel and not rate and coordinate in ("z", "roll"):
            scale = 3e-5
        if coordinate == "friction":
            scale = 200.0
        y[i] = size * scale * rng.uniform(-1.0, 1.0) * (20.0 if rate else 1.0)
    return y


def scaled_randomly(model, rng, spread=0.3):
    """The model with every positive link and body parameter of its groups multiplied by a random factor."""
    names, values = [], []
    for name, value in model.parameters.items():
        group = name.partition(".")[0]
        if (
            name.count(".") != 1
            or group in ("track", "contact", "irregularity")
            or name.startswith("gravity")
            or "_m" in name[-3:]
        ):
            continue
        if any(b.name == group and b.group != group for b in model.vehicle.bodies):
            continue
        if value > 0.0:
            names.append(name)
            values.append(value * rng.uniform(1.0 - spread, 1.0 + spread))
    assert len(names) > 8
    return model.bind(names)(values)


def positions(model, y, body: str) -> np.ndarray:
    """Place of a body's centre of mass in the track frame on straight track."""
    at = model.layout.body_names.index(body)
    place = model.layout.body_positions[at].copy()
    for axis, coordinate in ((1, slot.Y), (2, slot.Z)):
        state = model.layout.body_index[at, coordinate]
        if state >= 0:
            place[axis] += y[state]
    return place
