"""The rigid wheelset on its track: closed forms, a brute-force search, mirror images, lift against angle."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import fsolve

from railsweep.engine.contact_build import contact_jumps
from railsweep.engine.contact_geometry import ContactGeometry, Rails, TouchingPath, Wheelset
from railsweep.engine.contact_patch import primary, touching_path, wheel_view
from railsweep.engine.contact_table import conical_table
from railsweep.engine.errors import InputError
from railsweep.engine.profile import Profile, circular_rail, conical_wheel, profile_from_points, s1002, uic60
from railsweep.kernels import geometry as kernel

Array = NDArray[np.float64]

S1002, UIC60 = s1002(), uic60()


def nominal(gauge_m: float = 1.435, inclination: float = 1 / 40) -> ContactGeometry:
    return ContactGeometry(
        Wheelset(left=S1002, right=S1002, half_spacing_m=0.75, left_radius_m=0.425, right_radius_m=0.425),
        Rails(left=UIC60, right=UIC60, left_inclination=inclination, right_inclination=inclination, gauge_m=gauge_m),
    )


def cone_on_circle(angle: float, half: float, radius: float, rail_radius: float) -> ContactGeometry:
    """Cones whose tape circles stand on the rails when centred; the rail circle's centre lies on the contact normal."""
    wheel = conical_wheel(math.tan(angle))
    rail = circular_rail(rail_radius, half_width_m=0.15)
    return ContactGeometry(
        Wheelset(left=wheel, right=wheel, half_spacing_m=half, left_radius_m=radius, right_radius_m=radius),
        Rails(
            left=rail,
            right=rail,
            left_inclination=0.0,
            right_inclination=0.0,
            gauge_m=None,
            crown_m=half + rail_radius * math.sin(angle),
        ),
    )


def touching(path: TouchingPath, side: str) -> Array:
    """Kernel rows of the touching contact, in the order of the path."""
    view = wheel_view(path, side)
    rows = view.contact[np.arange(view.shift_m.size), primary(view)]
    return rows if side == "left" else rows[::-1]


# --- closed forms (done when 1) ---------------------------------------------------------------------------------

# Kraft 2012, spec 2.2: e0 = 1.435, r0 = 0.46, R_s = 0.30; d0, lambda, sigma = epsilon, zeta [1/m]
KRAFT = [
    (0.025, 0.025678, 0.025413, 0.071813),
    (0.1, 0.111709, 0.107233, 0.317523),
    (0.2, 0.252343, 0.232989, 0.745567),
    (0.3, 0.433538, 0.385860, 1.363615),
]


@pytest.mark.parametrize(("angle", "lam", "sigma", "zeta"), KRAFT)
def test_cone_on_circle_has_krafts_geometry_parameters(angle: float, lam: float, sigma: float, zeta: float) -> None:
    half, radius, rail_radius = 0.7175, 0.46, 0.30
    h = 2e-4
    shift = np.array([-2 * h, -h, 0.0, h, 2 * h])
    path = cone_on_circle(angle, half, radius, rail_radius).touch(shift)
    slope = math.tan(angle)
    r_left, r_right = (radius - slope * touching(path, side)[:, kernel.CONTACT_X] for side in ("left", "right"))
    half_difference = 0.5 * (r_left - r_right)

    def first(values: Array) -> float:
        return float((8.0 * (values[3] - values[1]) - (values[4] - values[0])) / (12.0 * h))

    def second(values: Array) -> float:
        return float((-values[0] + 16 * values[1] - 30 * values[2] + 16 * values[3] - values[4]) / (12.0 * h * h))

    s, c = math.sin(angle), math.cos(angle)
    d = half * c - radius * s
    exact = (s * (half + rail_radius * s) / d, half * s / d, s / d + s * (half + rail_radius * s) / (c * d * d))
    found = (first(half_difference), half * first(path.roll_rad), second(path.lift_m))
    for value, formula, printed in zip(found, exact, (lam, sigma, zeta), strict=True):
        assert value == pytest.approx(formula, abs=1e-6)
        assert value == pytest.approx(printed, abs=1.5e-6)  # six printed decimals
    # the contact angle of a cone is its own, in the wheelset's axes
    np.testing.assert_allclose(np.arctan(touching(path, "left")[:, kernel.CONTACT_SLOPE]), angle, atol=1e-12)


@pytest.mark.parametrize(("conicity", "rail_radius"), [(0.05, 0.3), (0.2, 0.08), (0.3, 0.013), (1 / 40, 1.0)])
def test_cone_on_circle_over_the_whole_range(conicity: float, rail_radius: float) -> None:
    closed = conical_table(conicity=conicity, rail_radius_m=rail_radius, range_m=0.02, step_m=1e-3)
    geometry = cone_on_circle(math.atan(conicity), 0.75, 0.425, rail_radius)
    path = geometry.touch(closed.shift_m)
    lift = path.lift_m - path.lift_m[path.lift_m.size // 2]
    assert closed.lift_m is not None
    assert closed.roll_rad is not None
    np.testing.assert_allclose(lift, closed.lift_m, atol=1e-12)
    np.testing.assert_allclose(path.roll_rad, closed.roll_rad, atol=1e-12)
    radius = 0.425 - conicity * touching(path, "left")[:, kernel.CONTACT_X]
    np.testing.assert_allclose(radius, closed.left.rolling_radius_m[0], atol=1e-11)
    np.testing.assert_allclose(
        0.75 + touching(path, "left")[:, kernel.CONTACT_X], closed.left.wheel_lateral_m[0], atol=1e-10
    )


@pytest.mark.parametrize("angle", [0.025, 0.1, 0.3])
def test_cone_on_knife_edge(angle: float) -> None:
    """Each cone passes through its edge at (+-h, 0); the edges are rails of 1e-8 m radius."""
    half, radius, t = 0.7175, 0.46, math.tan(angle)
    geometry = cone_on_circle(angle, half, radius, 1e-8)
    shift = np.array([-0.01, -0.002, 0.0, 0.003, 0.01])
    path = geometry.touch(shift)
    for k, y in enumerate(shift):

        def miss(unknown: Array, y: float = float(y)) -> list[float]:
            z, roll = unknown
            out = []
            for s in (1.0, -1.0):
                dy, dz = s * half - y, -(radius + z)  # edge, from the axle's middle
                across, up = dy * math.cos(roll) + dz * math.sin(roll), -dy * math.sin(roll) + dz * math.cos(roll)
                out.append(up + radius - t * (s * across - half))
            return out

        z, roll = fsolve(miss, [0.0, 0.0], xtol=1e-11)
        assert path.lift_m[k] == pytest.approx(z, abs=2e-8)
        assert path.roll_rad[k] == pytest.approx(roll, abs=2e-8)
        dy, dz = half - y, -(radius + z)
        exact = -(-dy * math.sin(roll) + dz * math.cos(roll))
        assert radius - t * touching(path, "left")[k, kernel.CONTACT_X] == pytest.approx(exact, abs=2e-8)


# --- brute force (done when 2) ----------------------------------------------------------------------------------
# Nothing here is shared with the package: the printed formulas, dense samples, bisection.


def printed_s1002(s: Array) -> Array:
    """F(S) of field-data.md 1, mm, downwards."""
    root = np.sqrt
    with np.errstate(invalid="ignore"):
        pieces = [
            (32.15796, 60.0, 1.364323640 - 0.066666667 * s),
            (
                -26.0,
                32.15796,
                s
                * (
                    -3.358537058e-2
                    + s
                    * (
                        1.565681624e-3
                        + s
                        * (
                            -2.810427944e-5
                            + s
                            * (
                                5.844240864e-8
                                + s
                                * (
                                    -1.562379023e-8
                                    + s * (5.309217349e-15 + s * (-5.957839843e-12 + s * 2.646656573e-13))
                                )
                            )
                        )
                    )
                ),
            ),
            (
                -35.0,
                -26.0,
                -(
                    4.320221063e3
                    + s
                    * (
                        1.038384026e3
                        + s
                        * (
                            1.065501873e2
                            + s
                            * (
                                6.051367875
                                + s
                                * (2.054332446e-1 + s * (4.169739389e-3 + s * (4.687195829e-5 + s * 2.252755540e-7)))
                            )
                        )
                    )
                ),
            ),
            (-38.426669071, -35.0, 16.446 - root(13.0**2 - (s + 26.210665) ** 2)),
            (-39.764473993, -38.426669071, -93.576667419 - 2.747477419 * s),
            (-49.662510381, -39.764473993, 8.834924130 + root(20.0**2 - (s + 58.558326413) ** 2)),
            (-62.764705882, -49.662510381, 16.0 + root(12.0**2 - (s + 55.0) ** 2)),
        ]
    value = np.full_like(s, np.nan)
    for low, high, formula in pieces:
        value = np.where((s >= low) & (s <= high), formula, value)
    return value


class BruteRail:
    """60E1 head as arcs (centres of field-data.md 2) turned by 1:40, top at 0, gauge face at 717.5 mm; mm."""

    def __init__(self, gauge: float = 1435.0, inclination: float = 1 / 40) -> None:
        alpha = math.atan(inclination)
        c, s = math.cos(alpha), math.sin(alpha)
        arcs = [(0.0, -300.0, 300.0), (7.500533, -80.127896, 80.0), (23.016030, -14.949147, 13.0)]
        ends = [0.0, math.radians(1.95378), math.radians(13.38979), math.radians(87.15434)]
        points, self.arcs = [], []
        for (y0, z0, r), a, b in zip(arcs, ends[:-1], ends[1:], strict=True):
            for side in (1.0, -1.0):
                t = np.linspace(a, b, 200_001)
                points.append(np.column_stack([side * (y0 + r * np.sin(t)), z0 + r * np.cos(t)]))
                low, high = sorted((side * a - alpha, side * b - alpha))  # angle of the normal to the right of vertical
                self.arcs.append((side * y0 * c - z0 * s, side * y0 * s + z0 * c, r, low, high))
        cloud = np.concatenate(points)
        turned = np.column_stack([cloud[:, 0] * c - cloud[:, 1] * s, cloud[:, 0] * s + cloud[:, 1] * c])
        top = turned[:, 1].max()
        inner = turned[(turned[:, 1] >= top - 14.0)][:, 0].min()
        self.across, self.up = 0.5 * gauge - inner, -top

    def height(self, y: Array) -> Array:
        own = y - self.across
        value = np.full_like(own, -np.inf)
        for y0, z0, r, low, high in self.arcs:
            a, b = y0 + r * math.sin(low), y0 + r * math.sin(min(high, 1.55))
            inside = (own >= a) & (own <= b)
            with np.errstate(invalid="ignore"):
                value = np.where(inside, np.maximum(value, z0 + np.sqrt(r * r - (own - y0) ** 2) + self.up), value)
        return value


BRUTE_S = np.arange(-60.0, 60.0, 0.01)
BRUTE_F = printed_s1002(BRUTE_S)


def brute_lift(rail: BruteRail, shift: float, roll: float, *, fine: bool) -> tuple[float, float]:
    """Largest lift any wheel point asks for, and its place: samples every 10 um, then every 0.02 um around the best."""

    def need(s: Array, f: Array) -> Array:
        across, up = 750.0 + s, -f - 425.0
        y = shift + across * math.cos(roll) - up * math.sin(roll)
        return rail.height(y) - (425.0 + across * math.sin(roll) + up * math.cos(roll))

    n = need(BRUTE_S, BRUTE_F)
    best = float(BRUTE_S[int(np.argmax(n))])
    for width, step in ((0.03, 1e-4), (3e-4, 2e-5 if fine else 1e-4)):
        s = best + np.arange(-width, width, step)
        n = need(s, printed_s1002(s))
        best = float(s[int(np.argmax(n))])
    return float(n.max()), best


def brute_touch(rail: BruteRail, shift: float, *, fine: bool = True) -> tuple[float, float, float, float]:
    """Roll, lift and the two contact places (mm, rad) by bisection on the roll."""
    low, high = -0.03, 0.03
    for _ in range(44 if fine else 34):
        roll = 0.5 * (low + high)
        left, _ = brute_lift(rail, shift, roll, fine=fine)
        right, _ = brute_lift(rail, -shift, -roll, fine=fine)
        low, high = (low, roll) if right > left else (roll, high)
    left, x_left = brute_lift(rail, shift, roll, fine=fine)
    right, x_right = brute_lift(rail, -shift, -roll, fine=fine)
    return roll, 0.5 * (left + right), x_left, x_right


def test_contacts_agree_with_a_brute_force_search() -> None:
    rail = BruteRail()
    shifts = np.array([0.0, 0.1, 0.6, 2.0, 3.3, 4.7, 5.6, 7.4, 11.0, 16.0, 19.5])
    path = nominal().touch(shifts * 1e-3)
    for k, shift in enumerate(shifts):
        roll, lift, x_left, x_right = brute_touch(rail, float(shift))
        # the printed sections step by 0.12 um, which a flange of 70 degrees multiplies
        assert path.roll_rad[k] == pytest.approx(roll, abs=5e-7)
        assert path.lift_m[k] == pytest.approx(lift * 1e-3, abs=5e-7)
        for side, x in (("left", x_left), ("right", x_right)):
            row = touching(path, side)[k]
            assert row[kernel.CONTACT_X] == pytest.approx(x * 1e-3, abs=1e-6), (shift, side)
            around = printed_s1002(np.array([x - 1e-3, x + 1e-3]))
            angle = math.atan(-(around[1] - around[0]) / 2e-3)
            assert math.atan(row[kernel.CONTACT_SLOPE]) == pytest.approx(angle, abs=1e-5), (shift, side)


def test_jumps_agree_with_a_brute_force_search() -> None:
    geometry, rail = nominal(), BruteRail()
    path = touching_path(geometry, np.arange(-1000, 1001) * 1e-5)
    jumps = contact_jumps(geometry, path, "left")
    assert len(jumps) == 3  # tread to tread, tread to root, root to flange
    for jump in jumps:
        low, high = jump * 1e3 - 0.04, jump * 1e3 + 0.04
        x_low, x_high = (brute_touch(rail, s, fine=False)[2] for s in (low, high))
        assert abs(x_low - x_high) > 1.0
        while high - low > 0.004:
            middle = 0.5 * (low + high)
            x = brute_touch(rail, middle, fine=False)[2]
            low, high = (middle, high) if abs(x - x_low) < abs(x - x_high) else (low, middle)
        assert jump * 1e3 == pytest.approx(0.5 * (low + high), abs=0.01)


# --- symmetry, consistency --------------------------------------------------------------------------------------


def test_mirror_image_is_exact_although_both_sides_are_computed() -> None:
    shift = 2.5e-5 * np.arange(-800, 801)
    path = nominal().touch(shift)
    np.testing.assert_array_equal(path.lift_m, path.lift_m[::-1])
    np.testing.assert_array_equal(path.roll_rad, -path.roll_rad[::-1])
    np.testing.assert_array_equal(path.count[:, 0], path.count[::-1, 1])
    np.testing.assert_array_equal(path.contact[:, 0], path.contact[::-1, 1])
    half = touching_path(nominal(), shift)
    np.testing.assert_array_equal(half.lift_m, path.lift_m)
    np.testing.assert_array_equal(half.contact[:, 0], path.contact[:, 0])


def test_threads_do_not_change_a_bit() -> None:
    shift = 1e-4 * np.arange(-200, 201)
    one, many = (nominal().touch(shift, threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one.contact, many.contact)
    np.testing.assert_array_equal(one.roll_rad, many.roll_rad)


@pytest.mark.parametrize("geometry", [nominal, lambda: nominal(1.438, 1 / 20), lambda: uneven()])
def test_lift_and_roll_obey_the_contact_angle(geometry: Callable[[], ContactGeometry]) -> None:
    """cos(d + roll) lift' + (a cos d - r sin d) roll' = sin(d + roll) for both wheels, to 1e-4 over the whole range.

    Differences over 0.2 um, so that no corner of a column is smeared; the few places within it of a jump are left out.
    """
    g = geometry()
    shift = np.linspace(-0.0199, 0.0199, 4001)
    h = 1e-7
    before, here, after = (g.touch(shift + d) for d in (-h, 0.0, h))
    lift = (after.lift_m - before.lift_m) / (2 * h)
    roll = (after.roll_rad - before.roll_rad) / (2 * h)
    moved = np.zeros(shift.size)
    for side in ("left", "right"):
        moved = np.maximum(
            moved, np.abs(touching(after, side)[:, kernel.CONTACT_X] - touching(before, side)[:, kernel.CONTACT_X])
        )
    smooth = moved < 1e-4
    assert (~smooth).sum() <= 8
    for side, sign in (("left", 1.0), ("right", -1.0)):
        row = touching(here, side)
        angle, x = np.arctan(row[:, kernel.CONTACT_SLOPE]), row[:, kernel.CONTACT_X]
        radius = getattr(g.wheelset, f"{side}_radius_m") - getattr(g.wheelset, side).height(x)
        arm = (g.wheelset.half_spacing_m + x) * np.cos(angle) - radius * np.sin(angle)
        track = angle + sign * here.roll_rad
        residual = np.cos(track) * lift + sign * arm * roll - sign * np.sin(track)
        assert np.abs(residual[smooth]).max() < 1e-4


def uneven() -> ContactGeometry:
    """Radii, inclinations and rails differ from side to side."""
    return ContactGeometry(
        Wheelset(left=S1002, right=S1002, half_spacing_m=0.7505, left_radius_m=0.46, right_radius_m=0.459),
        Rails(left=UIC60, right=UIC60, left_inclination=1 / 40, right_inclination=1 / 20, gauge_m=1.436),
    )


def test_unequal_wheels_roll_the_axle() -> None:
    path = uneven().touch(np.zeros(1))
    assert path.roll_rad[0] == pytest.approx(1e-3 / 1.5, rel=0.2)  # the larger left wheel raises its end of the axle
    assert not uneven().symmetric


def test_a_rough_profile_has_many_contacts_and_still_the_highest_is_found() -> None:
    """Ripples of 2 um every 0.8 mm on the tread: dozens of local contacts; compare with dense samples."""
    y = np.linspace(-0.0620, 0.0595, 6000)
    ripple = 2e-6 * np.sin(2 * math.pi * y / 8e-4) * (y > -0.03)
    wheel = profile_from_points(y, S1002.height(y) + ripple, kind="wheel")
    smooth = nominal()
    rough = ContactGeometry(
        Wheelset(left=wheel, right=wheel, half_spacing_m=0.75, left_radius_m=0.425, right_radius_m=0.425), smooth.rails
    )
    path = rough.touch(np.linspace(-0.004, 0.004, 41))
    assert path.count.max() == kernel.MAX_CONTACTS
    rail = BruteRail()
    x = np.arange(wheel.start_m, wheel.end_m, 1e-6)
    for k in (0, 13, 20, 31):
        p, u = path.roll_rad[k], path.shift_m[k]
        across, up = 0.75 + x, wheel.height(x) - 0.425
        place = u + across * math.cos(p) - up * math.sin(p)
        need = rail.height(place * 1e3) * 1e-3 - (0.425 + across * math.sin(p) + up * math.cos(p))
        assert path.lift_m[k] == pytest.approx(need.max(), abs=2e-9)
        assert touching(path, "left")[k, kernel.CONTACT_X] == pytest.approx(x[np.argmax(need)], abs=2e-6)


# --- placement and refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("inclination", [0.0, 1 / 40, 1 / 20])
def test_gauge_is_measured_between_the_innermost_points(inclination: float) -> None:
    placed = nominal(1.4371, inclination).placed["left"]
    c, s = math.cos(placed.angle_rad), math.sin(placed.angle_rad)
    y = np.linspace(UIC60.start_m, UIC60.end_m, 2_000_001)
    z = UIC60.height(y)
    turned_y, turned_z = y * c - z * s + placed.across_m, y * s + z * c + placed.up_m
    assert turned_z.max() == pytest.approx(0.0, abs=1e-12)
    assert turned_y[turned_z >= -0.014].min() == pytest.approx(1.4371 / 2, abs=1e-7)  # of the samples


@pytest.mark.parametrize(
    ("gauge", "words"), [(1.7, "drops between the rails|end of a profile"), (1.2, "end of a profile|drops|no roll")]
)
def test_a_gauge_that_does_not_fit_is_refused(gauge: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        nominal(gauge).touch(np.array([0.0]))


def test_a_rail_too_shallow_for_the_gauge_depth_is_refused() -> None:
    rail = circular_rail(0.3)
    rails = Rails(left=rail, right=rail, left_inclination=0.0, right_inclination=0.0)
    with pytest.raises(InputError, match="below top of rail on the gauge side"):
        ContactGeometry(nominal().wheelset, rails)


@pytest.mark.parametrize("field", ["left_radius_m", "half_spacing_m"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 425.0])
def test_wheelset_refuses_nonsense(field: str, value: float) -> None:
    numbers = {"half_spacing_m": 0.75, "left_radius_m": 0.425, "right_radius_m": 0.425} | {field: value}
    with pytest.raises(InputError):
        Wheelset(left=S1002, right=S1002, **numbers)


def test_profiles_must_be_of_the_right_kind() -> None:
    wrong: Profile = UIC60
    with pytest.raises(InputError, match="a wheel profile"):
        Wheelset(left=wrong, right=S1002, half_spacing_m=0.75, left_radius_m=0.425, right_radius_m=0.425)
