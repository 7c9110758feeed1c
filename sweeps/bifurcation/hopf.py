"""Hopf points of an equilibrium branch over any parameter, and the cycles that emerge from them.

A crossing of a complex pair is located as `railsweep.engine.crossing` does. Whether the bifurcation is sub- or
supercritical is read from the emerging branch itself: cycles of two small amplitudes are solved for, with the parameter
as unknown, and the side to which the parameter moves decides. (The first Lyapunov coefficient would need third
derivatives of a contact table that has only two.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.crossing import AxisCrossing, Spectrum, crossings_between
from railsweep.sweeps.bifurcation.continuation import BranchPoint, Settings, corrected, scaled_lengths
from railsweep.sweeps.bifurcation.cycle import CyclePoint, CycleProblem
from railsweep.sweeps.bifurcation.equilibrium import EquilibriumPoint, find_equilibrium, spectrum_of
from railsweep.sweeps.bifurcation.family import Family

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

LEAST_FREQUENCY = 1e-6  # of the largest eigenvalue: below it a crossing is that of a real eigenvalue
DISPLACEMENT_M = 2e-4  # amplitude of the first cycle of a vehicle
DISPLACEMENT = 1e-2  # of any other system
STILL = 1e-9  # relative change of the parameter that is none
SAME = 1e-6  # relative distance in parameter and frequency of crossings that are one (two independent bogies)


@dataclass(frozen=True, slots=True, kw_only=True)
class HopfPoint:
    """A complex pair on the imaginary axis.

    Attributes
    ----------
    parameter : float
    state : (n,) array
        The equilibrium.
    frequency_hz : float
    vector : (n,) complex array
        The mode; its largest displacement is 1 and real.
    direction : str
        "unstable" or "stable": what the mode becomes with rising parameter.
    multiplicity : int
        Pairs that cross together.
    """

    parameter: float
    state: Array
    frequency_hz: float
    vector: ComplexArray
    direction: str
    multiplicity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergingBranch:
    """The first cycles of a Hopf point.

    Attributes
    ----------
    criticality : str
        "supercritical" (cycles on the side where the equilibrium is unstable), "subcritical", or "degenerate" (the
        parameter does not move).
    by : str
        How that was found.
    direction : int
        1 or -1: where the parameter goes as the amplitude grows, for `continue_cycle`.
    cycles : tuple of CyclePoint
        Of growing amplitude.
    """

    criticality: str
    direction: int
    cycles: tuple[CyclePoint, ...]
    by: str = "emerging branch"


def hopf_points(family: Family, branch: Iterable[EquilibriumPoint]) -> Iterator[HopfPoint]:
    """All crossings of complex pairs along a branch, in its order; neutral modes are left out.

    The points of the branch must be near enough to each other that no pair crosses twice between two of them.
    """

    def solve(value: float, guess: Array | None) -> Spectrum:
        return spectrum_of(family, find_equilibrium(family, value, guess), value)

    for a, b in pairwise(branch):
        if a.parameter == b.parameter or a.direction * b.direction < 0.0:
            continue  # the parameter turns between them; a fold point stands there otherwise
        low, high = (a, b) if a.parameter < b.parameter else (b, a)
        found = [
            c
            for c in crossings_between(solve, low.spectrum, high.spectrum)
            if c.eigenvalue.imag > LEAST_FREQUENCY * np.abs(c.spectrum.eigenvalues).max()
        ]
        for group in _groups(found if low is a else found[::-1]):
            yield _hopf(family, group)


def _groups(found: list[AxisCrossing]) -> list[list[AxisCrossing]]:
    """Crossings that happen together."""
    groups: list[list[AxisCrossing]] = []
    for c in found:
        if groups:
            last = groups[-1][0]
            together = abs(c.value - last.value) <= SAME * abs(c.value) and c.rising == last.rising
            if together and abs(c.eigenvalue.imag - last.eigenvalue.imag) <= 10.0 * SAME * c.eigenvalue.imag:
                groups[-1].append(c)
                continue
        groups.append([c])
    return groups


def _hopf(family: Family, group: list[AxisCrossing]) -> HopfPoint:
    first = group[0]
    return HopfPoint(
        parameter=first.value,
        state=first.spectrum.state,
        frequency_hz=float(first.eigenvalue.imag / (2.0 * np.pi)),
        vector=normalised(family, first.vector),
        direction="unstable" if first.rising else "stable",
        multiplicity=len(group),
    )


def normalised(family: Family, vector: ComplexArray) -> ComplexArray:
    """A mode with its largest displacement (of a vehicle: in m; else of any state) equal to 1."""
    moving = [i for i, unit in enumerate(family.units) if unit == "m"] or list(range(family.n))
    largest = vector[moving[int(np.argmax(np.abs(vector[moving])))]]
    result: ComplexArray = vector / largest
    return result


def cycle_from_hopf(
    family: Family,
    hopf: HopfPoint,
    amplitude: float | None = None,
    *,
    segments: int = 1,
    threads: int = 1,
    settings: Settings | None = None,
    **options: float,
) -> CyclePoint:
    """The cycle of a given amplitude beside a Hopf point; its parameter is part of the answer. Raises NoSolution.

    Parameters
    ----------
    family, hopf
        The point as `hopf_points` found it.
    amplitude : float, optional
        Of the mode's largest displacement [m for a vehicle]. Default: 0.2 mm for a vehicle, 0.01 for anything else.
    segments, threads, settings, options
        As for `continue_cycle`.
    """
    settings = settings or Settings(parameter_scale=max(abs(hopf.parameter), 1.0))
    if amplitude is None:
        amplitude = DISPLACEMENT if family.model_at is None else DISPLACEMENT_M
    problem = CycleProblem(family, segments=segments, threads=threads, **options)
    phases = np.exp(2j * np.pi * np.arange(segments) / segments)
    motion = amplitude * (phases[:, None] * hopf.vector[None, :]).real
    rest = np.append(np.tile(hopf.state, segments), 1.0 / hopf.frequency_hz)
    guess = rest + np.append(motion.ravel(), 0.0)
    problem.renew(guess, hopf.parameter)
    away = (np.append(guess, hopf.parameter) - np.append(rest, hopf.parameter)) * scaled_lengths(problem, settings)
    step = float(np.linalg.norm(away))
    start = BranchPoint(z=rest, parameter=hopf.parameter, tangent=away / step, arclength=0.0)
    # at the equilibrium itself the equations are singular, so the Jacobian is that of the guess
    found, _ = corrected(problem, start, problem.jacobian(guess, hopf.parameter), step, settings, settings.fresh)
    return problem.point(found)


def emerging_branch(
    family: Family,
    hopf: HopfPoint,
    amplitude: float | None = None,
    *,
    segments: int = 1,
    threads: int = 1,
    settings: Settings | None = None,
    **options: float,
) -> EmergingBranch:
    """The cycles of two amplitudes (the given one and its double) and what they say. Raises NoSolution."""
    if amplitude is None:
        amplitude = DISPLACEMENT if family.model_at is None else DISPLACEMENT_M
    cycles = tuple(
        cycle_from_hopf(family, hopf, size, segments=segments, threads=threads, settings=settings, **options)
        for size in (amplitude, 2.0 * amplitude)
    )
    moved = cycles[1].parameter - cycles[0].parameter
    if abs(moved) <= STILL * max(abs(hopf.parameter), 1e-3):
        criticality = "degenerate"
    elif (moved > 0.0) == (hopf.direction == "unstable"):
        criticality = "supercritical"
    else:
        criticality = "subcritical"
    return EmergingBranch(criticality=criticality, direction=1 if moved > 0.0 else -1, cycles=cycles)
