"""A vehicle on a track at a speed, ready to compute: assemble once, evaluate millions of times, vary by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from railsweep.engine.contact_choice import GEOMETRY, PREFIX, ContactChoice, find_contact
from railsweep.engine.contact_table import ContactTable
from railsweep.engine.errors import InputError, nearest, shown
from railsweep.engine.irregularity import Irregularity
from railsweep.engine.irregularity_file import load_irregularity
from railsweep.engine.observation import Outputs, observe
from railsweep.engine.packing import Layout, pack
from railsweep.engine.parameter import Parameter, apply
from railsweep.engine.track import Track
from railsweep.engine.vehicle import Vehicle, load_vehicle
from railsweep.kernels import record as slot
from railsweep.kernels.jacobian import fill_jacobian
from railsweep.kernels.preload import static_preload
from railsweep.kernels.record import VehicleArrays
from railsweep.kernels.status import OK, Status
from railsweep.kernels.vehicle import vehicle_rhs

Array = NDArray[np.float64]

FORMULATIONS = ("physics", "dytsi")
PRECESSIONS = {"off": slot.PRECESSION_OFF, "printed": slot.PRECESSION_PRINTED, "right": slot.PRECESSION_RIGHT}


class ModelError(RuntimeError):
    """An evaluation that has no result: the state lies outside what the model describes. `status` says why."""

    def __init__(self, status: Status, message: str) -> None:
        self.status = status
        super().__init__(message)


MESSAGES = {
    Status.DERAILED: "a wheelset is outside the lateral range of its contact table (derailment)",
    Status.LAW_OUT_OF_RANGE: "a suspension element is outside the range of its tabulated law",
    Status.NEWTON_FAILED: "Newton's method found no equilibrium",
    Status.NOT_FINITE: "the result is not finite",
}


def assemble(
    vehicle: Vehicle | str | Path,
    *,
    contact: ContactTable | str | Path | None = None,
    track: Track | None = None,
    speed_mps: float,
    formulation: str = "physics",
    friction: float | None = None,
    precession: str | None = None,
    creep_law: str | None = None,
    shear_modulus_pa: float | None = None,
    irregularity: Irregularity | str | Path | None = None,
) -> Model:
    """Check everything, name every state and pack the arrays that the kernels read.

    Parameters
    ----------
    vehicle : Vehicle, str or Path
        A description, a library name or a TOML file.
    contact : ContactTable, str or Path, optional
        Wheel-rail contact: a table, profiles to build one from (``"s1002/uic60@1:40"``, `contact_build`), ``"cone"``
        (conical wheels 1:20 on rail heads of 0.3 m) or a file. Built tables are for the wheel radius and the mean wheel
        load of the vehicle. Default: the profiles the vehicle names, else the cone.
    track : Track, optional
        Default: straight.
    speed_mps : float
        Speed along the track, > 0 [m/s].
    formulation : {"physics", "dytsi"}
        All terms right, or as in the program behind the published numbers.
    friction : float, optional
        Wheel-rail friction coefficient; default: the vehicle's.
    precession : {"off", "printed", "right"}, optional
        Gyroscopic moments of the wheelsets; default: right for physics, printed for dytsi.
    creep_law : {"linear", "shen-hedrick-elkins", "polach", "fastsim"}, optional
        Default: the vehicle's.
    shear_modulus_pa : float, optional
        Default: the vehicle's, else E/(2(1+nu)) for physics and E/(2(1-nu)) for dytsi (spec A1).
    irregularity : Irregularity, str or Path, optional
        Rough track: made by `realise`, `defects` or `load_irregularity`, or what the last one reads, such as
        ``"erri-high,seed=3"``. Default: perfect track.

    Examples
    --------
    >>> model = assemble("cooperrider", speed_mps=40.0)
    >>> model.n, model.state_names[0]
    (66, 'car_body.y')
    """
    if not isinstance(vehicle, Vehicle):
        vehicle = load_vehicle(vehicle)
    track = track or Track()
    if formulation not in FORMULATIONS:
        raise InputError(
            "formulation",
            f"is {shown(formulation)}, {nearest(str(formulation), list(FORMULATIONS))}",
            ", ".join(FORMULATIONS),
        )
    if precession is None:
        precession = "right" if formulation == "physics" else "printed"
    if precession not in PRECESSIONS:
        raise InputError("precession", f"is {shown(precession)}", ", ".join(PRECESSIONS))
    table, choice = find_contact(vehicle, contact, geometric_lift=formulation == "physics")
    layout = pack(
        vehicle,
        table,
        track,
        physics=formulation == "physics",
        precession=PRECESSIONS[precession],
        friction=friction,
        creep_law=creep_law,
        shear_modulus_pa=shear_modulus_pa,
        speed_mps=speed_mps,
    )
    model = Model(
        vehicle=vehicle,
        contact=table,
        contact_choice=choice,
        track=track,
        formulation=formulation,
        layout=layout,
        buffer=layout.buffer,
    )
    model.layout.parameters["speed_mps"].check(speed_mps)
    model.find_preload()
    if irregularity is None:
        return model
    rough = irregularity if isinstance(irregularity, Irregularity) else load_irregularity(irregularity)
    return model.with_irregularity(rough)


@dataclass(slots=False, kw_only=True, eq=False)
class Model:
    """A packed vehicle. Made by `assemble` or by a binder; evaluation never changes its parameters.

    A model owns work space, so one model must not be evaluated by two threads at once; `copy` gives each its own.
    """

    vehicle: Vehicle
    contact: ContactTable
    contact_choice: ContactChoice
    track: Track
    formulation: str
    layout: Layout
    buffer: Array
    irregularity: Irregularity | None = None

    @cached_property
    def arrays(self) -> VehicleArrays:
        """The packed arrays for the kernels."""
        return self.layout.view(self.buffer)

    @property
    def n(self) -> int:
        """Number of states."""
        return len(self.layout.state_names)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states: <body>.<dof>, <body>.<dof>_dot, <wheelset>.spin and internal states of links."""
        return self.layout.state_names

    @property
    def speed_mps(self) -> float:
        """Speed [m/s]."""
        return float(self.arrays.operation[slot.SPEED])

    @cached_property
    def parameters(self) -> dict[str, float]:
        """Every parameter that `bind` accepts, with its present value (SI)."""
        names = (name for name in self.layout.parameters.names() if not self._is_idle(name))
        return {name: self.layout.value(name, self.buffer) for name in names}

    def index(self, name: str) -> int:
        """Position of a state in the state vector."""
        try:
            return self.layout.state_index[name]
        except KeyError:
            raise InputError(
                "state", f"{name!r} is not a state, {nearest(name, list(self.state_names))}", "see Model.state_names"
            ) from None

    def state(self, **values: float) -> Array:
        """A state vector of zeros with some entries set; a dot is written as two underscores: wheelset_ll__y=1e-3."""
        y = np.zeros(self.n)
        for name, value in values.items():
            y[self.index(name.replace("__", "."))] = value
        return y

    def copy(self) -> Model:
        """The same model with its own work space."""
        return self._with(self.buffer.copy(), self.layout)

    def with_irregularity(self, irregularity: Irregularity | None) -> Model:
        """The same vehicle on another rough track (None: on a perfect one). Nothing is assembled again."""
        model = self._with(self.buffer.copy(), self.layout.with_irregularity(irregularity))
        model.irregularity = irregularity
        seed = None if irregularity is None else irregularity.seed
        model.arrays.operation[slot.IRREGULARITY_SEED] = 0.0 if seed is None else seed
        model.arrays.rail[:] = 0.0
        return model

    def _with(self, buffer: Array, layout: Layout, contact: ContactTable | None = None) -> Model:
        return Model(
            vehicle=self.vehicle,
            contact=contact or self.contact,
            contact_choice=self.contact_choice,
            track=self.track,
            formulation=self.formulation,
            layout=layout,
            buffer=buffer,
            irregularity=self.irregularity,
        )

    def find_preload(self) -> None:
        """Set the preload of the weight-carrying springs from the static equilibrium of the sprung bodies."""
        unknown, count = self.layout.preload_unknowns
        if count == 0:
            return
        status, worst = static_preload(self.arrays, unknown, count)
        if status != OK:
            body, column = np.argwhere(unknown == worst)[0]
            raise InputError(
                f"vehicle {self.vehicle.name}",
                f"{self.vehicle.bodies[body].name} is not carried in {('z', 'roll', 'pitch')[column]}",
                "preloaded vertical springs that can hold the weight of every body",
            )

    def _checked(self, y: ArrayLike) -> Array:
        state = np.ascontiguousarray(y, dtype=np.float64)
        if state.shape != (self.n,):
            raise InputError("state", f"has shape {state.shape}", f"({self.n},)")
        return state

    def rhs(self, t: float, y: ArrayLike) -> Array:
        """dy/dt at time t [s] and state y. Raises `ModelError` on derailment or a law out of range."""
        out = np.zeros(self.n)
        _raise_for(vehicle_rhs(float(t), self._checked(y), self.arrays, out))
        return out

    def jacobian(self, t: float, y: ArrayLike, *, central: bool = True) -> Array:
        """df/dy by differences along the body tree: central (default) or one-sided."""
        state = self._checked(y).copy()
        matrix = np.zeros((self.n, self.n))
        _raise_for(vehicle_rhs(float(t), state, self.arrays, matrix[0]))
        fill_jacobian(float(t), state, self.arrays, matrix, central)
        return matrix

    def outputs(self, t: float, y: ArrayLike) -> Outputs:
        """All forces, creepages, accelerations and clearances at a state."""
        outputs, status = observe(self.layout, self.arrays, float(t), self._checked(y))
        _raise_for(status)
        return outputs

    def equilibrium(self, guess: ArrayLike | None = None) -> Array:
        """The stationary state (at the end of a varying track) by Newton's method, from a guess or the nominal state.

        In a curve without a guess the curvature and cant are raised in steps from straight track.
        """
        from railsweep.engine.equilibrium import find_equilibrium

        return find_equilibrium(self, None if guess is None else self._checked(guess))

    def bind(self, names: Sequence[str]) -> Binder:
        """A fast maker of models with other values of the named parameters.

        Parameters
        ----------
        names : sequence of str
            Parameter names, for example ``["speed_mps", "secondary_yaw.damping", "contact.friction"]``.

        Returns
        -------
        Binder
            Call it with as many numbers (SI units) to get a `Model`.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        if len(set(wanted)) != len(wanted):
            raise InputError("bind", f"{wanted} names a parameter twice", "different parameters")
        places = {i: name.removeprefix(PREFIX) for i, name in enumerate(wanted) if self._is_geometry(name)}
        found = [self.layout.parameters[name] for i, name in enumerate(wanted) if i not in places]
        if len({p.name for p in found}) != len(found):
            raise InputError("bind", f"{wanted} names a parameter twice", "different parameters")
        if self.track.varies and any(p.changes_track for p in found):
            raise InputError("bind", "track parameters of a varying track", "a constant track, or another Track")
        for p in found:
            if self._is_idle(p.name):
                kind = "perfect track" if self.irregularity is None else "track that is not random"
                raise InputError("bind", f"{p.name} of a {kind}", "a rough track, such as irregularity='erri-high'")
        return Binder(model=self, parameters=found, geometry=places)

    def _is_idle(self, name: str) -> bool:
        """Is this a number of irregularities that the track does not have?"""
        if self.irregularity is None:
            return name.startswith("irregularity.")
        return name == "irregularity.seed" and self.irregularity.seed is None

    def _is_geometry(self, name: str) -> bool:
        """Is this a setting of the profiles the contact is built from?"""
        if not name.startswith(PREFIX) or name.removeprefix(PREFIX) not in GEOMETRY:
            return False
        if not self.contact_choice.arguments:
            raise InputError(
                "bind", f"{name} of a fixed contact table", "a contact given by its profiles, such as s1002/uic60@1:40"
            )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Binder:
    """Turns numbers into models: one buffer copy and a few writes, and another contact table where that is bound.

    `geometry` gives the place of every bound contact setting among the values.
    """

    model: Model
    parameters: list[Parameter]
    geometry: dict[int, str] = field(default_factory=dict)

    def __call__(self, values: ArrayLike) -> Model:
        """The model with these values, in the order of the bound names."""
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if numbers.shape != (len(self.parameters) + len(self.geometry),):
            raise InputError("bind", f"{numbers.size} values", f"{len(self.names)}: {', '.join(self.names)}")
        buffer = self.model.buffer.copy()
        layout, contact = self.model.layout, self.model.contact
        if self.geometry:
            changed = self.model.contact_choice.packed({name: float(numbers[i]) for i, name in self.geometry.items()})
            contact = changed.table
            layout = layout.with_contact(changed.grid, changed.coefficients, changed.ranges)
            layout.view(buffer).wheelset[:, slot.ROLLING_RADIUS] = contact.centre_radius_m
            numbers = np.delete(numbers, list(self.geometry))
        apply(self.parameters, numbers, buffer)
        if any(p.changes_track for p in self.parameters):
            layout = layout.for_track(buffer)
        if any(p.changes_geometry for p in self.parameters):
            layout.set_rest(layout.view(buffer))
        model = self.model._with(buffer, layout, contact)
        if any(p.changes_preload for p in self.parameters):
            model.find_preload()
        if any(p.changes_irregularity for p in self.parameters):
            assert model.irregularity is not None  # `bind` has seen to it
            seed = int(model.arrays.operation[slot.IRREGULARITY_SEED])
            model = model.with_irregularity(model.irregularity.with_seed(seed))
        return model

    @property
    def names(self) -> list[str]:
        """Names of the bound parameters, in the order of the values."""
        names = [p.name for p in self.parameters]
        for i, name in sorted(self.geometry.items()):
            names.insert(i, PREFIX + name)
        return names


def _raise_for(status: int) -> None:
    if status != OK:
        kind = Status(status)
        raise ModelError(kind, MESSAGES.get(kind, kind.name))
