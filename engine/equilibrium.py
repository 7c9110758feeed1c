"""Stationary states: f = 0 by Newton's method with the tree Jacobian, raised from straight track in curves.

At rest the velocities are zero, so Newton's method has the other states for unknowns and their equations only: half the
size. In curves the way from straight track is followed by arclength: where a wheel passes from tread to flange the
equilibrium folds back over the curvature and comes again, which no step in curvature alone gets past.
"""

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
BRIEF = 10  # iterations where failure is cheap: there is another way, or a shorter step
SIZE = 5e-3  # displacement [m] or angle [rad] of a wheelset in a curve; arclength counts in it
SPIN_SHARE = 1e-2  # spin [rad/s] over speed [m/s] that counts as much
FIRST_STEP, SMALLEST_STEP, LARGEST_STEP = 0.2, 1e-3, 1.0  # of arclength
LEAPS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of arclength, where the branch has a kink that no short step gets past
MOST_POINTS = 200
NEAR_FOLD = 0.02  # of the curve: within this a fold is looked at closely
ROUGH = 1e-5  # of gravity, on the way
SLACK = 1e3  # residual of gravity beyond which a correction on the way has failed
DIFFERENCE = 1e-6  # in the share of the curve
OUTER_ARM = 0.08  # from the nominal rolling circle to where a wheel may touch, and play [m]
BERG_FRICTION = 2  # dry friction among the internal states of a Berg air spring


def find_equilibrium(model: Model, guess: Array | None) -> Array:
    """The stationary state of `model`; raises ModelError (NEWTON_FAILED or DERAILED) when there is none to be found."""
    from railsweep.engine.model import ModelError

    work = _stationary(model)
    if _overturns(work):
        raise ModelError(
            Status.DERAILED,
            f"no equilibrium of {model.vehicle.name} at {model.speed_mps:g} m/s: it overturns in the curve",
        )
    start = np.zeros(model.n) if guess is None else guess.copy()
    rest = _Rest(work)
    raised = guess is None and model.layout.header[slot.TRACK_KIND] != slot.TRACK_STRAIGHT
    state, status = rest.newton(start, BRIEF if raised else MAX_ITERATIONS)
    if status != OK and raised:
        state, status = rest.raised_curve(start)
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


def _overturns(model: Model) -> bool:
    """Does the moment of the weight about the outer rails fall short of that of the lateral inertia force?

    Wheels only press: with all of the load on the outer ones, at an arm of half the spacing and OUTER_ARM, a lateral
    acceleration a at the height h of the centre of mass asks for a h <= g arm. Roll only makes it worse. A vehicle with
    a body that is held from outside cannot overturn.
    """
    if (model.layout.body_index[:, [slot.Y, slot.ROLL]] < 0).any():
        return False
    operation, body = model.arrays.operation, model.arrays.body
    curvature, cant, speed = (float(operation[i]) for i in (slot.CURVATURE, slot.CANT, slot.SPEED))
    gravity = float(operation[slot.GRAVITY])
    mass = 1.0 / body[:, slot.INV_MASS]
    height = float(mass @ model.layout.body_positions[: mass.size, 2] / mass.sum())
    arm = float(model.arrays.wheelset[:, slot.HALF_SPACING].max()) + OUTER_ARM
    push = abs(speed**2 * curvature * np.cos(cant) - gravity * np.sin(cant))
    press = gravity * np.cos(cant) + speed**2 * curvature * np.sin(cant)
    return bool(gravity > 0.0 and push * height > press * arm)


class _Rest:
    """A model at rest: its unknowns, their equations, and the work space for both."""

    def __init__(self, model: Model) -> None:
        self.arrays = model.arrays
        index = model.layout.body_index[:, : slot.MOTION_WIDTH]
        moving = index[:, 0::2].ravel() >= 0
        self.velocity = index[:, 1::2].ravel()[moving]
        free = free_states(model)
        self.unknown = np.setdiff1d(free, self.velocity)
        self.equation = np.setdiff1d(free, index[:, 0::2].ravel()[moving])
        self.block = np.ix_(self.equation, self.unknown)
        self.gravity = float(self.arrays.operation[slot.GRAVITY]) or 9.81
        size = np.full(model.n, SIZE)
        size[model.arrays.wheelset_index[:, slot.WHEELSET_SPIN]] = SPIN_SHARE * model.speed_mps
        self.size = size[self.unknown]
        self.rates = np.zeros(model.n)
        self.matrix = np.zeros((model.n, model.n))

    def residual(self, y: Array) -> tuple[Array, int]:
        """The equations at a state, and a status."""
        status = int(vehicle_rhs(0.0, y, self.arrays, self.rates))
        return self.rates[self.equation], status

    def derivative(self, y: Array) -> Array:
        """Of the equations by the unknowns."""
        vehicle_jacobian(0.0, y, self.arrays, self.matrix)
        block: Array = self.matrix[self.block]
        return block

    def newton(self, start: Array, iterations: int) -> tuple[Array, int]:
        """Damped Newton iteration; a step that leaves the model's range or does not reduce the residual is cut."""
        y = start.copy()
        y[self.velocity] = 0.0
        f, status = self.residual(y)
        if status != OK:
            return y, status
        worst = int(Status.NEWTON_FAILED)
        norm = float(np.abs(f).max())
        for _ in range(iterations):
            if norm <= TOLERANCE * self.gravity:
                return y, int(OK)
            step = _solved(self.derivative(y), -f)
            if not np.isfinite(step).all():
                return y, worst
            cut = 1.0
            while cut >= SMALLEST_CUT:
                trial = y.copy()
                trial[self.unknown] += cut * step
                trial_f, status = self.residual(trial)
                trial_norm = float(np.abs(trial_f).max())
                if status == OK and trial_norm < norm * (1.0 - 0.1 * cut):
                    break
                if status != OK:
                    worst = status
                cut *= 0.5
            else:
                if norm <= 10.0 * TOLERANCE * self.gravity:
                    return y, int(OK)
                return y, worst
            y, norm, f = trial, trial_norm, trial_f
        return y, int(OK) if norm <= TOLERANCE * self.gravity else int(Status.NEWTON_FAILED)

    def raised_curve(self, start: Array) -> tuple[Array, int]:
        """Follow the equilibrium from straight, level track to the curve, by arclength through folds.

        The unknowns z are the states over SIZE (and the root of their number), last the share of curvature and cant.
        """
        operation = self.arrays.operation
        curve = float(operation[slot.CURVATURE]), float(operation[slot.CANT])
        size = self.size * np.sqrt(self.size.size)

        def at(z: Array) -> Array:
            operation[slot.CURVATURE], operation[slot.CANT] = z[-1] * curve[0], z[-1] * curve[1]
            y = start.copy()
            y[self.velocity] = 0.0
            y[self.unknown] = size * z[:-1]
            return y

        def matrix_at(z: Array, f: Array) -> Array:
            aside = z.copy()
            aside[-1] += DIFFERENCE
            by_share = (self.residual(at(aside))[0] - f) / DIFFERENCE
            return np.column_stack([size * self.derivative(at(z)), by_share])

        def leap(z: Array, tangent: Array) -> Array | None:
            for length in LEAPS:
                guess = z + length * tangent
                y, status = self.newton(at(guess), BRIEF)
                if status == OK:
                    return np.append(y[self.unknown] / size, guess[-1])
            return None

        operation[slot.CURVATURE] = operation[slot.CANT] = 0.0
        y, status = self.newton(start, MAX_ITERATIONS)
        if status != OK:
            return y, status
        z = np.append(y[self.unknown] / size, 0.0)
        tangent = _null_vector(matrix_at(z, self.residual(at(z))[0]), np.append(np.zeros(size.size), 1.0))
        step, worst = FIRST_STEP, int(Status.NEWTON_FAILED)
        for _ in range(MOST_POINTS):
            guess = z + step * tangent
            trial, matrix, status, count = guess.copy(), None, int(Status.NEWTON_FAILED), 0
            while count < BRIEF:
                count += 1
                f, code = self.residual(at(trial))
                norm = float(np.abs(f).max()) if code == OK else np.inf
                if not norm < SLACK * self.gravity:
                    worst = code if code != OK else worst
                    break
                matrix = matrix_at(trial, f)
                if norm <= ROUGH * self.gravity:
                    status = int(OK)
                    break
                bordered = np.vstack([matrix, tangent])
                move = _solved(bordered, -np.append(f, tangent @ (trial - guess)))
                if not np.linalg.norm(move) < 2.0 * step:
                    break
                trial = trial + move
            if status != OK or matrix is None:
                step *= 0.5
                if step >= SMALLEST_STEP:
                    continue
                landed = leap(z, tangent)
                if landed is None:
                    break
                trial, matrix, step = landed, None, FIRST_STEP
            if trial[-1] < 0.0:
                break  # it came back: no equilibrium in this curve
            if trial[-1] >= 1.0:
                part = (1.0 - z[-1]) / (trial[-1] - z[-1])
                end = z + part * (trial - z)
                end[-1] = 1.0
                y, status = self.newton(at(end), MAX_ITERATIONS)
                if status == OK:
                    return y, status
                step *= 0.5
                if step < SMALLEST_STEP:
                    break
                continue
            if matrix is None:
                matrix = matrix_at(trial, self.residual(at(trial))[0])
            after = _null_vector(matrix, tangent)
            if tangent[-1] > 0.0 > after[-1]:
                # a fold between the two, perhaps beyond the curve asked for: the share there is a parabola of arclength
                turn = tangent[-1] / (tangent[-1] - after[-1])
                peak = z[-1] + 0.5 * turn * tangent[-1] * float(np.linalg.norm(trial - z))
                if peak > 1.0 - NEAR_FOLD:
                    share = turn * (1.0 - np.sqrt(max(0.0, (peak - 1.0) / (peak - z[-1]))))
                    y, status = self.newton(at(np.append((z + share * (trial - z))[:-1], 1.0)), MAX_ITERATIONS)
                    if status == OK:
                        return y, status
            z, tangent = trial, after
            step = min(LARGEST_STEP, step * (2.0 if count <= 4 else 1.0))
        at(np.append(z[:-1], 1.0))
        return y, worst


def _solved(matrix: Array, right: Array) -> Array:
    """A neutral direction (a coordinate nothing depends on) stays where it is: least squares."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-13)[0], dtype=np.float64)


def _null_vector(matrix: Array, along: Array) -> Array:
    """Unit vector that an (n, n + 1) matrix takes to zero, on the side of `along`."""
    vector = _solved(np.vstack([matrix, along]), np.append(np.zeros(matrix.shape[0]), 1.0))
    return vector / np.linalg.norm(vector)
