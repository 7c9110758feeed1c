"""Stationary states: f = 0 by Newton's method with the tree Jacobian, raised from straight track in curves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from railsweep.kernels import record as slot
from railsweep.kernels.jacobian import vehicle_jacobian
from railsweep.kernels.status import OK, Status
from railsweep.kernels.vehicle import vehicle_rhs

if TYPE_CHECKING:
    from railsweep.engine.model import Model

Array = NDArray[np.float64]

MAX_ITERATIONS = 60
TOLERANCE = 1e-10  # of gravity, for accelerations of every state
SMALLEST_CUT = 1.0 / 1024.0  # of a Newton step
SMALLEST_RAISE = 1e-4  # of the way from straight track to the curve
BERG_FRICTION = 2  # dry friction among the internal states of a Berg air spring


def find_equilibrium(model: Model, guess: Array | None) -> Array:
    """The stationary state of `model`; raises ModelError (NEWTON_FAILED or DERAILED) when there is none to be found."""
    from railsweep.engine.model import ModelError

    work = _stationary(model)
    start = np.zeros(model.n) if guess is None else guess.copy()
    state, status = _newton(work, start)
    if status != OK and guess is None and model.layout.header[slot.TRACK_KIND] != slot.TRACK_STRAIGHT:
        state, status = _raise_curve(work, start)
    if status != OK:
        raise ModelError(
            Status(status),
            f"no equilibrium of {model.vehicle.name} at {model.speed_mps:g} m/s: "
            + (
                "a wheelset leaves its contact table"
                if status == Status.DERAILED
                else "Newton's method does not converge"
            ),
        )
    return state


def free_states(model: Model) -> NDArray[np.intp]:
    """States that an equilibrium determines.

    Dry friction holds whatever force it has (its rate is zero at rest), so it keeps the value of the start.
    """
    links = model.arrays.link_index
    berg = links[links[:, slot.INTERNAL_KIND] == slot.BERG, slot.INTERNAL_STATE]
    return np.setdiff1d(np.arange(model.n), berg + BERG_FRICTION)


def _stationary(model: Model) -> Model:
    """The model on the constant, perfect track at the end of a varying one, with its own work space."""
    if model.irregularity is not None:
        model = model.with_irregularity(None)
    copy = model.copy()
    if not model.track.varies:
        return copy
    header = model.layout.header.copy()
    header[slot.TRACK_KIND] = slot.TRACK_CONSTANT
    return model._with(copy.buffer, replace(model.layout, header=header))


def _newton(model: Model, start: Array) -> tuple[Array, int]:
    """Damped Newton iteration; a step that leaves the model's range or does not reduce the residual is cut."""
    arrays, n = model.arrays, model.n
    y = start.copy()
    f, trial_f = np.zeros(n), np.zeros(n)
    matrix = np.zeros((n, n))
    status = int(vehicle_rhs(0.0, y, arrays, f))
    if status != OK:
        return y, status
    free = free_states(model)
    gravity = float(arrays.operation[slot.GRAVITY]) or 9.81
    worst = int(Status.NEWTON_FAILED)
    norm = float(np.abs(f).max())
    for _ in range(MAX_ITERATIONS):
        if norm <= TOLERANCE * gravity:
            return y, int(OK)
        vehicle_jacobian(0.0, y, arrays, matrix)
        # a neutral direction (a coordinate nothing depends on) stays where it is: least squares
        step = np.zeros(n)
        try:
            step[free] = np.linalg.solve(matrix[np.ix_(free, free)], -f[free])
        except np.linalg.LinAlgError:
            step[free] = np.linalg.lstsq(matrix[np.ix_(free, free)], -f[free], rcond=1e-13)[0]
        if not np.isfinite(step).all():
            return y, worst
        cut = 1.0
        while cut >= SMALLEST_CUT:
            trial = y + cut * step
            status = int(vehicle_rhs(0.0, trial, arrays, trial_f))
            trial_norm = float(np.abs(trial_f).max())
            if status == OK and trial_norm < norm * (1.0 - 0.1 * cut):
                break
            if status != OK:
                worst = status
            cut *= 0.5
        else:
            if norm <= 10.0 * TOLERANCE * gravity:
                return y, int(OK)
            return y, worst
        y, norm = trial, trial_norm
        f, trial_f = trial_f, f
    return y, int(Status.NEWTON_FAILED)


def _raise_curve(model: Model, start: Array) -> tuple[Array, int]:
    """Follow the equilibrium from straight, level track to the curve, with step control."""
    operation = model.arrays.operation
    curvature, cant = float(operation[slot.CURVATURE]), float(operation[slot.CANT])
    y, done, step, previous = start, 0.0, 0.125, None
    status = int(OK)
    while done < 1.0:
        share = min(1.0, done + step)
        operation[slot.CURVATURE], operation[slot.CANT] = share * curvature, share * cant
        guess = y
        if previous is not None:
            before, at = previous
            guess = y + (y - before) * (share - done) / (done - at)
        found, status = _newton(model, guess)
        if status == OK:
            previous = (y, done)
            y, done, step = found, share, 2.0 * step
            continue
        step *= 0.5
        if step < SMALLEST_RAISE:
            return y, status
    return y, status
