"""Every method by name: a driver, its coefficients and the settings it runs best with.

A new method is one entry here; the tests take their list from METHODS.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from railsweep.kernels.integrate import controller
from railsweep.kernels.integrate.bdf import drive_bdf
from railsweep.kernels.integrate.dop853 import dop853
from railsweep.kernels.integrate.esdirk import drive_esdirk
from railsweep.kernels.integrate.esdirk_tableau import esdirk54, jkt, nt1
from railsweep.kernels.integrate.explicit import drive_explicit
from railsweep.kernels.integrate.explicit_pair import dopri5, rkf34
from railsweep.kernels.integrate.extrapolation import EULER, MIDPOINT, Extrapolation, drive_extrapolation
from railsweep.kernels.integrate.radau import drive_radau
from railsweep.kernels.integrate.radau_tableau import radau5


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How to run one method.

    Parameters
    ----------
    driver : callable
        ``driver(problem, coefficients, settings, output, t, t_end, y)``, compiled.
    coefficients : callable
        Makes the second argument of the driver from the dimension n; called once per process and n.
    order : int
        Classical order of the solution that is carried on (highest order for variable-order methods).
    implicit : bool
        Needs Jacobian and linear solver.
    complex_pair : bool
        Needs the complex linear solver, too.
    controller : int or None
        Default step-size controller; None where order and step are chosen together by rules of the method's own.
    tolerance_scale : float
        The error of a step is kept below this share of the asked tolerance in the scaled norm. Multistep errors
        accumulate: 0.2 makes `bdf` reach the digits of scipy's BDF on the IVP set (chosen by a scan over 1, 0.5, 0.3,
        0.2, 0.1 on that set, together with newton_kappa). `seulex` accepts a column as soon as the one below it agrees
        and loses a digit at loose tolerance without its 0.1. `radau` with 1 matches the digits
        of scipy's Radau with a tenth fewer right-hand sides; 0.4 takes a tenth more and gains about half a digit, which
        is what the digits scatter by between neighbouring tolerances (of 1, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25 the one
        with the fewest shortfalls on that set).
    """

    driver: Any
    coefficients: Callable[[int], Any]
    order: int
    implicit: bool
    complex_pair: bool = False
    controller: int | None = controller.PI
    safety: float = 0.9
    min_factor: float = 0.2
    max_factor: float = 10.0
    newton_kappa: float = 0.01
    max_newton: int = 10
    sequence: int = 0
    tolerance_scale: float = 1.0
    _made: dict[int, Any] = field(default_factory=dict, repr=False)

    def made(self, n: int) -> Any:
        """The coefficients, made once."""
        if n not in self._made:
            self._made[n] = self.coefficients(n)
        return self._made[n]


def _no_history(n: int) -> Any:
    return np.zeros((0, n))


def _euler_sequence(n: int) -> Extrapolation:
    # Not 2, 3, 4, 5, ...: its extrapolation multiplies rounding errors ten to a hundred times more.
    return Extrapolation(steps=np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64], dtype=np.int64))


def _midpoint_sequence(n: int) -> Extrapolation:
    return Extrapolation(steps=np.array([2, 6, 10, 14, 22, 34, 50, 70], dtype=np.int64))


METHODS: dict[str, Method] = {
    "nt1": Method(driver=drive_esdirk, coefficients=lambda n: nt1(), order=3, implicit=True),
    "jkt": Method(driver=drive_esdirk, coefficients=lambda n: jkt(), order=3, implicit=True),
    "esdirk54": Method(driver=drive_esdirk, coefficients=lambda n: esdirk54(), order=5, implicit=True),
    "radau": Method(
        driver=drive_radau,
        coefficients=lambda n: radau5(),
        order=5,
        implicit=True,
        complex_pair=True,
        controller=controller.PREDICTIVE,
        newton_kappa=0.03,
        max_newton=7,
        tolerance_scale=0.4,
    ),
    "bdf": Method(
        driver=drive_bdf,
        coefficients=_no_history,
        order=5,
        implicit=True,
        controller=None,
        max_newton=3,
        tolerance_scale=0.2,
    ),
    "bsimp": Method(
        driver=drive_extrapolation,
        coefficients=_midpoint_sequence,
        order=13,
        implicit=True,
        controller=None,
        sequence=MIDPOINT,
    ),
    "seulex": Method(
        driver=drive_extrapolation,
        coefficients=_euler_sequence,
        order=12,
        implicit=True,
        controller=None,
        sequence=EULER,
        tolerance_scale=0.1,
    ),
    "rkf34": Method(driver=drive_explicit, coefficients=lambda n: rkf34(), order=3, implicit=False),
    "dopri5": Method(
        driver=drive_explicit,
        coefficients=lambda n: dopri5(),
        order=5,
        implicit=False,
        controller=controller.ELEMENTARY,
    ),
    "dop853": Method(
        driver=drive_explicit,
        coefficients=lambda n: dop853(),
        order=8,
        implicit=False,
        controller=controller.ELEMENTARY,
    ),
}

# Methods with the published Newton rules of spec 3.5.
PUBLISHED_NEWTON = tuple(name for name, method in METHODS.items() if method.driver is drive_esdirk)

# `auto` runs the first until it is stiff and the second until it is not.
AUTO = ("dopri5", "esdirk54")
