"""Coefficients of the three-stage Radau IIA method of order 5 (Hairer-Wanner IV.5, table 5.6, and IV.8).

A^-1 has one real eigenvalue gamma and a pair alpha +- i beta. With T = [v, Re w, Im w] of its eigenvectors,
    T^-1 A^-1 T = [[gamma, 0, 0], [0, alpha, -beta], [0, beta, alpha]],
so the 3n x 3n system of a Newton iteration falls apart into a real and a complex one of size n.
"""

import numpy as np

from railsweep.kernels.integrate.radau import RadauTableau


def radau5() -> RadauTableau:
    """Radau IIA, order 5, error estimate of order 3."""
    r = np.sqrt(6.0)
    c = np.array([(4.0 - r) / 10.0, (4.0 + r) / 10.0, 1.0])
    a = np.array(
        [
            [(88.0 - 7.0 * r) / 360.0, (296.0 - 169.0 * r) / 1800.0, (-2.0 + 3.0 * r) / 225.0],
            [(296.0 + 169.0 * r) / 1800.0, (88.0 + 7.0 * r) / 360.0, (-2.0 - 3.0 * r) / 225.0],
            [(16.0 - r) / 36.0, (16.0 + r) / 36.0, 1.0 / 9.0],
        ]
    )
    # det(zI - A^-1) = z^3 - 9 z^2 + 36 z - 60, solved by Cardano's formula.
    gamma = 3.0 + 3.0 ** (2.0 / 3.0) - 3.0 ** (1.0 / 3.0)
    alpha = 3.0 - 0.5 * (3.0 ** (2.0 / 3.0) - 3.0 ** (1.0 / 3.0))
    beta = 0.5 * (3.0 ** (5.0 / 6.0) + 3.0 ** (7.0 / 6.0))

    # The collocation polynomial is sum_d s^d dense[d - 1] . z and takes the values z_j at c_j; A^-1 is its slope there.
    power = np.arange(1, 4)
    dense = np.linalg.inv(c[:, None] ** power)
    inverse = (power * c[:, None] ** (power - 1)) @ dense

    # An eigenvector of a 3 x 3 matrix is normal to the rows of A^-1 - z I. T^-1 A^-1 T = Lambda fixes the conjugate:
    # A^-1 (Re w + i Im w) = (alpha - i beta)(Re w + i Im w).
    v = np.cross(inverse[0] - gamma * np.eye(3)[0], inverse[1] - gamma * np.eye(3)[1])
    z = alpha - 1j * beta
    w = np.cross(inverse[0] - z * np.eye(3)[0], inverse[1] - z * np.eye(3)[1])
    w = w / w[2]
    t = np.column_stack([v / v[2], w.real, w.imag])

    # The embedded formula y + h (f(t, y)/gamma + ...) of order 3, minus the method, as a combination of f(t, y) and z.
    error = np.array([-13.0 - 7.0 * r, -13.0 + 7.0 * r, -1.0]) / (3.0 * gamma)
    return RadauTableau(
        a=a,
        c=c,
        t=t,
        t_inverse=np.linalg.inv(t),
        error=error,
        dense=dense,
        slope=inverse[2].copy(),
        gamma=gamma,
        alpha=alpha,
        beta=beta,
        order=5,
        error_order=3,
    )
