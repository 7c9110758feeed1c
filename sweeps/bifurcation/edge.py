"""The edge state: the unstable limit cycle between rest and hunting, found at one value of the parameter.

Of all motions on the border between two basins the edge state is the one that attracts the others there (Skufca, Yorke,
Eckhardt 2006): seen from outside, it has exactly one direction in which it is unstable. A kick along any shape that
leads to hunting is bisected almost to the last digit; the two kicks left, one that dies and one that does not, stay
together on the border for the time that the digits last, and what they do last is near the edge state. Shooting makes
it exact.

Nothing is followed from anywhere, so this also works where continuation stops: on a rough contact table the branch of
cycles has folds upon folds close to the non-linear critical speed. From the cycle found here it can be followed from
its other side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError
from railsweep.sweeps.bifurcation.basin import KickSettings, rest_of, smallest_kick, watched_states
from railsweep.sweeps.bifurcation.continuation import NO_VALUE, NoSolution
from railsweep.sweeps.bifurcation.cycle import CyclePoint, find_cycle
from railsweep.sweeps.bifurcation.family import Family
from railsweep.sweeps.bifurcation.motion import last_cycle

Array = NDArray[np.float64]

BRACKET = 1e-12  # share of the kick at which the bisection ends
TOGETHER = 1e-3  # distance of two motions, over their size, up to which they are one
ROUNDS = 3  # of bisections, each from where the last one led
FARTHER = 1.25  # largest kick of a later round, where the edge is near 1
KICKS = KickSettings(horizon_s=20.0, window_s=8.0, scan=4, tolerance=BRACKET)


def edge_cycle(
    family: Family,
    value: float,
    start: ArrayLike,
    *,
    base: ArrayLike | None = None,
    watch: Sequence[str] = (),
    segments: int = 1,
    threads: int = 1,
    tolerance: float = 1e-5,
    rounds: int = ROUNDS,
    settings: KickSettings | None = None,
    **options: float,
) -> CyclePoint:
    """The unstable cycle on the border between rest and hunting; raises NoSolution.

    Parameters
    ----------
    family : Family
        Made by `family_of_model` or `family_of_rhs`.
    value : float
        Of its parameter: between the non-linear and the linear critical speed.
    start : array_like
        A state that leads to hunting, for example one of the hunting motion itself.
    base : array_like, optional
        The state of rest; default: the equilibrium of a vehicle, zero of another system.
    watch : sequence of str
        States whose amplitude decides; default: the lateral displacement of wheelsets, else all states.
    rounds : int
        Most bisections: where the motion has not come near enough to the cycle for shooting, the next one begins there.
    settings : KickSettings, optional
        How the fate of a kick is decided. A kick that has neither died nor grown by the horizon counts as hunting.
    segments, threads, tolerance, options
        As for `find_cycle`.

    Notes
    -----
    The cycle has exactly one multiplier outside the unit circle. Where several edge states lie on the border (one bogie
    hunting or the other), which of them is found depends on the shape of the kick.
    """
    settings = settings or KICKS
    check_number("edge: rounds", float(rounds), least=1.0)
    rest = rest_of(family, value) if base is None else np.array(base, dtype=np.float64)
    state = np.array(start, dtype=np.float64)
    if state.shape != rest.shape:
        raise InputError("edge: start", f"has {state.size} entries", f"{family.n} numbers")
    rows = watched_states(family, watch)
    largest, reason = 1.0, ""
    for _ in range(rounds):
        shape = state - rest
        basin = smallest_kick(family, value, shape, largest, base=rest, watch=watch, threads=threads, settings=settings)
        if basin.smallest is None and reason:
            break
        if basin.smallest is None:
            raise NoSolution(f"no kick along the start leads to hunting at {family.name} = {value:g}")
        if basin.harmless is None:
            raise NoSolution(f"rest is unstable at {family.name} = {value:g}")
        pair = (rest + basin.harmless * shape, rest + basin.smallest * shape)
        state, period = _last_together(family, value, pair, rows, settings)
        if period <= 0.0:
            raise NoSolution(f"the border at {family.name} = {value:g} holds no oscillation for three periods")
        try:
            cycle = find_cycle(
                family, value, state, period, segments=segments, threads=threads, tolerance=tolerance, **options
            )
        except (NoSolution, *NO_VALUE) as none:
            reason = str(none)
        else:
            unstable = cycle.floquet.unstable
            if unstable == 1 and float(cycle.amplitude[rows].max()) > settings.hunting:
                return cycle
            reason = f"shooting leads to a motion with {unstable} unstable directions instead of one"
        largest = FARTHER
    raise NoSolution(f"no edge state at {family.name} = {value:g}: {reason}")


def _last_together(
    family: Family, value: float, pair: tuple[Array, Array], rows: list[int], settings: KickSettings
) -> tuple[Array, float]:
    """A state and the period of the last cycles before two motions part; period 0: fewer than three of them."""
    times = np.linspace(0.0, settings.horizon_s, round(settings.horizon_s / settings.sample_s) + 1)
    first, second = (
        family.run(state, value, settings.horizon_s, rtol=settings.rtol, atol=settings.atol, t_eval=times).y
        for state in pair
    )
    both = min(first.shape[1], second.shape[1])
    apart = np.abs(first[rows, :both] - second[rows, :both]).max(axis=0)
    size = 0.5 * np.ptp(first[rows], axis=1).max()
    parted = np.flatnonzero(apart > TOGETHER * size)
    end = int(parted[0]) if parted.size else both
    if end < 8:
        return pair[0], 0.0
    motion = first[rows, :end]
    late = motion[:, end // 2 :]
    mover = int(np.argmax(np.ptp(late, axis=1)))
    middle = 0.5 * (late[mover].max() + late[mover].min())
    period, place = last_cycle(motion[mover] - middle, settings.horizon_s / (times.size - 1))
    return first[:, place].copy(), period


__all__ = ["NoSolution", "edge_cycle"]
