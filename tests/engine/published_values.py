"""Numbers of the literature that the engine is compared with, each with its source. Nothing here was computed by us.

DYTSI: D. Bigoni, Curving Dynamics in High Speed Trains, IMM-MSC-2011-59 (DTU 2011), the Cooperrider wagon with the
contact table S1002 on UIC60 1:40 released with the program; values of the independent prototype of the specification
(`spec/seed-bigoni-dytsi.md` 0.2, 2.5, 5, 8.3), which are sharper than the printed ones (110 and 111 m/s).

CONE: S. Kraft, Parameter identification for a TGV model (2012), appendix A, closed forms (A.5)-(A.8) of a cone on a
circular rail, tabulated in `spec/seed-kraft-tgv.md` 2.2.
"""

from dataclasses import dataclass

E_STEEL_PA = 2.1e11
POISSON = 0.27


@dataclass(frozen=True)
class Speed:
    """A linear critical speed [m/s] and the tolerance it is stated with."""

    value: float
    tolerance: float


# straight track, precession as printed
FIRST_CROSSING = Speed(109.0, 0.1)
SECOND_CROSSING = Speed(110.2, 0.1)
CROSSING_FREQUENCY_HZ = 4.69
# first crossing with the other forms of precession (spec 2.5)
CROSSING_WITHOUT_PRECESSION = Speed(109.44, 0.1)
CROSSING_RIGHT_PRECESSION = Speed(109.46, 0.1)
# car body held, no precession: both bogies together
CROSSING_FIXED_CAR = Speed(109.62, 0.1)
# G = E / (2 (1 + nu)) instead of the program's E / (2 (1 - nu))
CROSSING_RIGHT_MODULUS = Speed(129.1, 0.2)
# friction -> first crossing (table 8.3 as computed by the prototype, printed to 0.1 m/s)
CROSSING_OVER_FRICTION = {0.03: 113.9, 0.06: 110.5, 0.12: 109.2, 0.30: 108.6}

BOGIE_PITCH_HZ = 7.927
CONTACT_MODE_HZ = 266.2
CONTACT_MODE_GROWTH_60_MPS = -0.06
SLOWEST_MODE_HZ = 0.188
SLOWEST_MODE_GROWTH = -0.052

# R = 600 m, cant 110 mm, 20 m/s: lateral shift [m] and yaw [rad] of leading and trailing wheelsets
CURVE_RADIUS_M = 600.0
CURVE_CANT_MM = 110.0
CURVE_CANT_RAD = 0.073399221302151
CURVE_SPEED_MPS = 20.0
CURVE_SHIFT_M = (6.62e-3, 5.02e-3)
CURVE_YAW_RAD = (-1.67e-3, 1.74e-3)
CURVE_TOLERANCE = 0.01

# cone angle [rad] -> lambda [-], sigma = epsilon [-], zeta [1/m], for the geometry below
CONE_TRACK_GAUGE_M = 1.435
CONE_WHEEL_RADIUS_M = 0.46
CONE_RAIL_RADIUS_M = 0.30
CONE_ON_CIRCLE = {
    0.025: (0.025678, 0.025413, 0.071813),
    0.1: (0.111709, 0.107233, 0.317523),
    0.2: (0.252343, 0.232989, 0.745567),
    0.3: (0.433538, 0.385860, 1.363615),
}
