"""Creep laws: tangential force of a wheel on an elliptic Hertz patch, from the three creepages.

Frame of the patch: x along rolling (semi-axis `a`), y lateral (semi-axis `b`), z the normal; SI units.
Creepages are the velocity of the wheel over the rail at the contact divided by the speed: xi_x, xi_y [-]
and spin xi_s [1/m], so the rigid slip at a point is (xi_x - xi_s y, xi_y + xi_s x). Forces act ON THE WHEEL
and oppose the creepage: Fx = -G a b C11 xi_x to first order. Material enters the patch at x = +a and leaves
at x = -a.

References: Kalker 1990 (linear theory, table E.3); Shen, Hedrick, Elkins 1983; Polach 1999 and 2005; Kalker
1982 (FASTSIM). Every law with a friction limit returns zero when mu N <= 0; a nan comes out as nan.
"""

from math import atan, exp, pi, sqrt

from railsweep.kernels.jit import exact_jit, inline_jit
from railsweep.kernels.lane import LANES, all_lanes, by_kind, choose, lane, lane_item, root, with_item
from railsweep.kernels.record import FASTSIM_CELLS, FASTSIM_STRIPS

LINEAR = 0
SHEN_HEDRICK_ELKINS = 1
POLACH = 2
FASTSIM = 3

# Polach's reduction factors for a clean dry contact; kS <= kA <= 1 flattens the curve of a contaminated one.
K_ADHESION = 1.0
K_SLIP = 1.0


@inline_jit
def linear(a, b, shear_modulus, c11, c22, c23, c33, xi_x, xi_y, xi_s):
    """Kalker's linear theory, no friction limit: forces [N] and spin moment [N m].

    Fx = -G ab C11 xi_x,  Fy = -G ab (C22 xi_y + sqrt(ab) C23 xi_s),
    Mz = G ab (sqrt(ab) C23 xi_y - ab C33 xi_s).
    The C23 terms cancel in the power Fx xi_x + Fy xi_y + Mz xi_s, which is therefore never positive.
    """
    area = a * b
    arm = sqrt(area)
    stiffness = shear_modulus * area
    fx = -stiffness * (c11 * xi_x)
    fy = -stiffness * (c22 * xi_y + arm * c23 * xi_s)
    mz = stiffness * (arm * c23 * xi_y - area * c33 * xi_s)
    return fx, fy, mz


@inline_jit
def shen_hedrick_elkins(fx, fy, bound):
    """Shorten a linear creep force so that it never exceeds `bound` = mu N; its direction stays.

    With u = |F| / bound, |F| becomes bound (u - u^2/3 + u^3/27) for u < 3 and bound beyond: first and second
    derivatives meet at u = 3, the factor at zero force is 1.
    """
    force = root(fx * fx + fy * fy)
    u = force / bound
    factor = choose(force < 3.0 * bound, 1.0 + u * (u * (1.0 / 27.0) - 1.0 / 3.0), bound / force)
    factor = choose(bound > 0.0, factor, choose(bound <= 0.0, 0.0, bound))
    return factor * fx, factor * fy


@exact_jit
def polach(
    a,
    b,
    shear_modulus,
    c11,
    c22,
    c23,
    friction,
    normal,
    xi_x,
    xi_y,
    xi_s,
    k_adhesion=K_ADHESION,
    k_slip=K_SLIP,
):
    """Polach's closed form of the brush model with an elliptic traction bound, and his spin term.

    xi_yC = xi_y + a xi_s where that is larger in size than xi_y, else xi_y;  xi_C = |(xi_x, xi_yC)|
    eps = pi G ab Cjj xi_C / (4 mu N),  Cjj = |(C11 xi_x, C22 xi_y)| / |(xi_x, xi_y)|
    F = 2 mu N / pi [kA eps / (1 + (kA eps)^2) + atan(kS eps)]
    Fx = -F xi_x / xi_C,  Fy = -F xi_y / xi_C - 9/16 a mu N KM Ks xi_s / xi_C,  Ks = 1 + 6.3 (1 - exp(-a/b))
    epsM = 8/3 G b sqrt(ab) C23 |xi_yC| / (Ks mu N)

    Polach writes KM = epsM (-d^3/3 + d^2/2 - 1/6) + (1 - d^2)^1.5 / 3, d = (epsM^2 - 1) / (epsM^2 + 1), which
    is identically 2/3 epsM / (1 + epsM^2)^2. So the spin force is Kalker's linear one, -G (ab)^1.5 C23 xi_s,
    times |xi_yC| / xi_C and 1 / (1 + epsM^2)^2.

    Slope at zero: with kA = kS = 1 exactly Kalker's for xi_x alone, xi_y alone, and spin without xi_x.
    Between the axes the force opposes the creepage, not the linear force, and spin fades beside xi_x: the
    slope is finite but depends on the direction (homogeneous, and linear only if C11 = C22 and there is no
    spin).
    kA, kS scale that slope by (kA + kS) / 2. Our choice, no source at hand: G C23 is scaled by the same factor.
    """
    bound = friction * normal
    if bound <= 0.0:
        return 0.0, 0.0
    creep_yc = max(abs(xi_y), abs(xi_y + a * xi_s))
    creep_c = sqrt(xi_x * xi_x + creep_yc * creep_yc)
    if creep_c == 0.0:
        return 0.0, 0.0
    stiffness = shear_modulus * a * b
    creep = sqrt(xi_x * xi_x + xi_y * xi_y)
    force = 0.0
    if creep != 0.0:
        steepness = sqrt((c11 * xi_x) ** 2 + (c22 * xi_y) ** 2) / creep
        eps = 0.25 * pi * stiffness * steepness * creep_c / bound
        eps_a = k_adhesion * eps
        force = 2.0 / pi * bound * (eps_a / (1.0 + eps_a * eps_a) + atan(k_slip * eps))
    spin_stiffness = 0.5 * (k_adhesion + k_slip) * stiffness * sqrt(a * b) * c23
    spin_factor = 1.0 + 6.3 * (1.0 - exp(-a / b))
    eps_m = 8.0 / 3.0 * spin_stiffness * creep_yc / (a * spin_factor * bound)
    damping = 1.0 + eps_m * eps_m
    spin_force = spin_stiffness * xi_s * creep_yc / (damping * damping)
    return -force * xi_x / creep_c, -(force * xi_y + spin_force) / creep_c


@exact_jit
def _strip(lateral, half_length, slip_x, slip_y, turn_x, turn_y, cells, elliptic):
    """March one strip from its leading edge; sums of tx, ty, x ty in the variables of `_fastsim`."""
    step = 2.0 * half_length / cells
    rate_x = slip_x - turn_x * lateral
    square = half_length * half_length
    tx = 0.0
    ty = 0.0
    sum_x = 0.0
    sum_y = 0.0
    sum_xy = 0.0
    for i in range(cells):
        # Tractions live at cell centres: half a step from the edge to the first, whole steps after. The
        # slip is taken in the middle of each step, which makes sticking exact even with spin.
        if i == 0:
            length = 0.5 * step
            middle = half_length - 0.25 * step
        else:
            length = step
            middle = half_length - i * step
        x = half_length - (i + 0.5) * step
        tx -= rate_x * length
        ty -= (slip_y + turn_y * middle) * length
        limit = square - x * x
        size = tx * tx + ty * ty
        if elliptic:
            if size > limit:
                back = sqrt(limit / size)
                tx *= back
                ty *= back
        elif size > limit * limit:
            back = limit / sqrt(size)
            tx *= back
            ty *= back
        sum_x += tx
        sum_y += ty
        sum_xy += x * ty
    return sum_x, sum_y, sum_xy


@exact_jit
def _fastsim(
    a,
    b,
    shear_modulus,
    c11,
    c22,
    c23,
    friction,
    normal,
    xi_x,
    xi_y,
    xi_s,
    strips,
    cells,
    elliptic,
):
    # Scaled variables: x / a, y / b, traction / (mu p0), so the ellipse is the unit circle.
    bound = friction * normal
    if bound <= 0.0:
        return 0.0, 0.0, 0.0
    width = 2.0 / strips
    # What the midpoint sums make of the integrals of 1 - y^2, (1 - y^2)^1.5 (over strips), 1 - s^2 and
    # sqrt(1 - s^2) (over cells), as a ratio to the exact values. Dividing by them makes the small-creep
    # forces and the sliding force mu N exact on any grid; the first is the factor 1 + w^2/8 known from
    # other FASTSIM codes.
    excess_1 = 1.0 + width * width / 8.0
    excess_3 = 0.0
    for j in range(strips):
        y = (strips - 1 - 2 * j) / strips
        square = 1.0 - y * y
        excess_3 += square * sqrt(square)
    excess_3 *= width / (3.0 * pi / 8.0)
    excess_parabola = 1.0 + 0.5 / (cells * cells)
    if elliptic:
        excess_ellipse = 0.0
        for i in range(cells):
            s = (cells - 1 - 2 * i) / cells
            excess_ellipse += sqrt(1.0 - s * s)
        excess_ellipse *= 2.0 / cells / (pi / 2.0)
        peak = 1.5 * bound / (pi * a * b) / (excess_ellipse * excess_1)
    else:
        peak = 2.0 * bound / (pi * a * b) / (excess_parabola * excess_3)

    # a / (L mu p0) with flexibilities L1 = 8a/(3 C11 G), L2 = 8a/(3 C22 G), L3 = pi a sqrt(a/b)/(4 C23 G).
    scale = shear_modulus / peak
    slip_x = 0.375 * c11 / excess_1 * scale * xi_x
    slip_y = 0.375 * c22 / excess_1 * scale * xi_y
    turn = 4.0 / pi * c23 * sqrt(b / a) / (excess_3 * excess_parabola) * scale * xi_s
    turn_x = turn * b
    turn_y = turn * a

    sum_x = 0.0
    sum_y = 0.0
    sum_m = 0.0
    # Strips at +y and -y are added to each other before anything else, a fused multiply-add included, so that
    # mirroring the input mirrors the result bit for bit.
    for j in range(strips // 2):
        y = (strips - 1 - 2 * j) / strips
        half_length = sqrt(1.0 - y * y)
        left_x, left_y, left_xy = _strip(y, half_length, slip_x, slip_y, turn_x, turn_y, cells, elliptic)
        right_x, right_y, right_xy = _strip(-y, half_length, slip_x, slip_y, turn_x, turn_y, cells, elliptic)
        sum_x += half_length * (left_x + right_x)
        sum_y += half_length * (left_y + right_y)
        sum_m += half_length * (a * (left_xy + right_xy) - b * y * (left_x - right_x))
    if strips % 2 == 1:
        mid_x, mid_y, mid_xy = _strip(0.0, 1.0, slip_x, slip_y, turn_x, turn_y, cells, elliptic)
        sum_x += mid_x
        sum_y += mid_y
        sum_m += a * mid_xy
    # Area of a cell: its length is 2 half_length / cells, its width 2 / strips, in units of a and b.
    unit = peak * a * b * width * (2.0 / cells)
    return unit * sum_x, unit * sum_y, unit * sum_m


@exact_jit
def fastsim(a, b, shear_modulus, c11, c22, c23, friction, normal, xi_x, xi_y, xi_s, strips, cells):
    """Kalker's FASTSIM, parabolic traction bound mu 2N/(pi ab) (1 - (x/a)^2 - (y/b)^2): Fx, Fy [N], Mz [N m].

    Simplified theory u = L t: along a strip dt/dx = slip / L where it sticks, and t is pulled back radially
    to the bound where it would exceed it. `strips` across, `cells` along each strip, both >= 1; even or
    odd. One strip is the plane problem, whose limit for many cells is the Shen-Hedrick-Elkins curve.
    """
    return _fastsim(a, b, shear_modulus, c11, c22, c23, friction, normal, xi_x, xi_y, xi_s, strips, cells, False)


@exact_jit
def fastsim_elliptic(a, b, shear_modulus, c11, c22, c23, friction, normal, xi_x, xi_y, xi_s, strips, cells):
    """FASTSIM with the Hertz pressure as traction bound, mu 3N/(2 pi ab) sqrt(1 - (x/a)^2 - (y/b)^2).

    Without spin and along one axis its limit for a fine grid is Polach's curve. With spin it shows islands of
    adhesion that the half-space solution does not have (CONTACT, examples/fastsim).
    """
    return _fastsim(a, b, shear_modulus, c11, c22, c23, friction, normal, xi_x, xi_y, xi_s, strips, cells, True)


def heavy_creep(law, a, b, q, k11, k22, k23, xi_x, xi_y, xi_s, normal, modulus, friction, header):
    """Polach or FASTSIM from the columns of a contact table; lanes one after the other."""
    raise NotImplementedError("for kernels only")


@exact_jit
def _heavy_plain(law, a, b, q, k11, k22, k23, xi_x, xi_y, xi_s, normal, modulus, friction, header):
    if not q > 0.0:
        return 0.0, 0.0
    area = a * b
    c11 = k11 * q / area
    c22 = k22 * q / area
    c23 = k23 * q * sqrt(q) / (area * sqrt(area))
    if law == POLACH:
        return polach(a, b, modulus, c11, c22, c23, friction, normal, xi_x, xi_y, xi_s)
    strips, cells = header[FASTSIM_STRIPS], header[FASTSIM_CELLS]
    fx, fy, _ = fastsim(a, b, modulus, c11, c22, c23, friction, normal, xi_x, xi_y, xi_s, strips, cells)
    return fx, fy


def _heavy_number(law, a, b, q, k11, k22, k23, xi_x, xi_y, xi_s, normal, modulus, friction, header):
    return _heavy_plain(law, a, b, q, k11, k22, k23, xi_x, xi_y, xi_s, normal, modulus, friction, header)


def _heavy_lanes(law, a, b, q, k11, k22, k23, xi_x, xi_y, xi_s, normal, modulus, friction, header):
    fx, fy = all_lanes(0.0), all_lanes(0.0)
    x, y = 0.0, 0.0
    before = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(LANES):
        here = (
            lane_item(a, i),
            lane_item(b, i),
            lane_item(q, i),
            lane_item(k11, i),
            lane_item(k22, i),
            lane_item(k23, i),
            lane_item(xi_x, i),
            lane_item(xi_y, i),
            lane_item(xi_s, i),
            lane_item(normal, i),
            lane_item(modulus, i),
            lane_item(friction, i),
        )
        # an idle lane repeats its neighbour
        if i == 0 or here != before:
            x, y = _heavy_plain(law, *here, header)
        before = here
        fx, fy = with_item(fx, i, x), with_item(fy, i, y)
    return fx, fy


@by_kind(heavy_creep)
def _heavy_creep(law, a, b, q, k11, k22, k23, xi_x, xi_y, xi_s, normal, modulus, friction, header):
    return _heavy_lanes if q == lane else _heavy_number
