"""From descriptions to the packed arrays of `kernels.record`: the only writer of that layout."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.binding import CONSTANT_SLOTS, FASTEST_MPS, model_parameters
from railsweep.engine.contact_table import ContactTable, pack_contact
from railsweep.engine.document import check_number
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.interpolation import cubic_pieces
from railsweep.engine.irregularity import Irregularity
from railsweep.engine.parameter import (
    ParameterTable,
    angle_of_cant,
    curvature_of_radius,
    identity,
)
from railsweep.engine.track import Track
from railsweep.engine.vehicle.description import CoulombLaw, GapLaw, Law, TableLaw, Vehicle
from railsweep.engine.vehicle.reader import CREEP_LAWS
from railsweep.kernels import record as slot
from railsweep.kernels.contact import POINT_WIDTH
from railsweep.kernels.creep import FASTSIM, LINEAR, POLACH, SHEN_HEDRICK_ELKINS
from railsweep.kernels.irregularity import CHANNELS, POWERS
from railsweep.kernels.lane import LANES
from railsweep.kernels.record import VehicleArrays

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

POINT_ROWS = 16  # contact points of one wheelset that a model has room for
FASTSIM_GRID = 10  # strips and cells: 1 % accurate on tread contact at about 1 us
COINCIDENT_M = 1e-9  # points closer than this along an axis are at the same place there
KINDS = {"axial": slot.AXIAL, "vector": slot.VECTOR, "radial": slot.RADIAL, "torsion": slot.TORSION}
MEMORIES = {
    "": (slot.INTERNAL_NONE, ()),
    "maxwell": (slot.MAXWELL, ("series",)),
    "nishimura": (slot.NISHIMURA, ("reservoir",)),
    "berg": (slot.BERG, ("air", "air_dot", "friction")),
}
SMOOTH_GRID = np.zeros(slot.IRREGULARITY_GRID_WIDTH)
SMOOTH = np.zeros((1, POWERS, CHANNELS))
CREEP_NUMBERS = dict(zip(CREEP_LAWS, (LINEAR, SHEN_HEDRICK_ELKINS, POLACH, FASTSIM), strict=True))
COORDINATES = {"y": slot.Y, "z": slot.Z, "roll": slot.ROLL, "pitch": slot.PITCH, "yaw": slot.YAW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Everything about a packed vehicle that does not depend on parameter values, and where the values stand."""

    header: Integers
    body_index: Integers
    wheelset_index: Integers
    link_index: Integers
    bundle: Integers
    bundle_link: Integers
    team: Integers
    law_index: Integers
    table_grid: Array
    table: Array
    segment: Array
    irregularity_grid: Array
    irregularity: Array
    shapes: tuple[tuple[str, int, tuple[int, int] | tuple[int]], ...]  # name, offset, shape of every float record
    buffer: Array
    state_names: tuple[str, ...]
    state_index: dict[str, int]
    body_names: tuple[str, ...]
    wheelset_names: tuple[str, ...]
    link_names: tuple[str, ...]  # one per element
    link_mirror: Array  # (element, axis): +1 or -1
    body_positions: Array
    preload_unknowns: tuple[Integers, int]
    parameters: ParameterTable

    def view(self, buffer: Array) -> VehicleArrays:
        """The kernel's arrays as views of one float buffer; a buffer (number, lane) gives every array a last axis."""
        views = [
            buffer[first : first + math.prod(shape)].reshape(*shape, *buffer.shape[1:])
            for _, first, shape in self.shapes
        ]
        return VehicleArrays(
            self.header,
            self.body_index,
            self.wheelset_index,
            self.link_index,
            self.bundle,
            self.bundle_link,
            self.team,
            self.law_index,
            self.table_grid,
            self.table,
            self.segment,
            self.irregularity_grid,
            self.irregularity,
            *views,
        )

    def value(self, name: str, buffer: Array) -> float:
        """Present value of a parameter (SI; millimetres and metres for track.cant_mm and track.radius_m)."""
        parameter = self.parameters[name]
        position, conversion = parameter.writes[0]
        number = float(buffer[position])
        if conversion is curvature_of_radius:
            return math.inf if number == 0.0 else 1.0 / number
        if conversion is angle_of_cant:
            return 1500.0 * math.sin(number)
        if conversion is identity:
            return number
        return number / conversion(1.0) if conversion(0.0) == 0.0 else number - conversion(0.0)

    def for_track(self, buffer: Array) -> Layout:
        """The layout with the kind of track that the values in the buffer describe."""
        operation = self.view(buffer).operation
        straight = operation[slot.CURVATURE] == 0.0 and operation[slot.CANT] == 0.0
        kind = slot.TRACK_STRAIGHT if straight else slot.TRACK_CONSTANT
        if kind == self.header[slot.TRACK_KIND]:
            return self
        header = self.header.copy()
        header[slot.TRACK_KIND] = kind
        return replace(self, header=header)

    def with_contact(self, grid: Array, table: Array, ranges: tuple[int, int, int, int]) -> Layout:
        """The layout with another contact table."""
        if ranges[1] + ranges[3] > POINT_ROWS:
            raise InputError("contact table", f"{ranges[1] + ranges[3]} contact points", f"at most {POINT_ROWS}")
        index = self.wheelset_index.copy()
        index[:, slot.LEFT_FIRST : slot.RIGHT_COUNT + 1] = ranges
        return replace(self, table_grid=grid, table=table, wheelset_index=index)

    def with_irregularity(self, irregularity: Irregularity | None) -> Layout:
        """The layout on another rough track, or on a smooth one."""
        header = self.header.copy()
        header[slot.IRREGULARITY] = int(irregularity is not None)
        if irregularity is None:
            return replace(self, header=header, irregularity_grid=SMOOTH_GRID, irregularity=SMOOTH)
        wheelsets = self.wheelset_index[:, slot.WHEELSET_BODY]
        grid = np.zeros(slot.IRREGULARITY_GRID_WIDTH)
        grid[slot.IRREGULARITY_INV_STEP] = 1.0 / irregularity.step_m
        grid[slot.IRREGULARITY_INTERVALS] = irregularity.coefficients.shape[0]
        grid[slot.IRREGULARITY_PERIODIC] = float(irregularity.periodic)
        grid[slot.IRREGULARITY_FADE] = irregularity.fade_m
        grid[slot.IRREGULARITY_ORIGIN] = self.view(self.buffer).body[wheelsets, slot.ARC].max()
        return replace(self, header=header, irregularity_grid=grid, irregularity=irregularity.coefficients)

    def set_rest(self, arrays: VehicleArrays) -> None:
        """Set the rest vector and sign of every link from the nominal positions of its two points."""
        link, index = arrays.link, self.link_index
        upper = self.body_positions[index[:, slot.LINK_UPPER]] + link[:, slot.UPPER_X : slot.UPPER_Z + 1]
        lower = self.body_positions[index[:, slot.LINK_LOWER]] + link[:, slot.LOWER_X : slot.LOWER_Z + 1]
        rest = upper - lower
        link[:, slot.REST_X : slot.REST_Z + 1] = rest
        link[:, slot.REST_LENGTH] = np.sqrt((rest**2).sum(axis=1))
        # a spring without length along its axis counts as directed like the written one, mirrored with its copy
        directed = np.where(np.abs(rest) > COINCIDENT_M, np.copysign(1.0, rest), self.link_mirror)
        along = np.take_along_axis(directed, index[:, [slot.LINK_AXIS]], axis=1)[:, 0]
        link[:, slot.SIGN] = np.where(index[:, slot.LINK_KIND] == slot.AXIAL, along, 1.0)


def pack(
    vehicle: Vehicle,
    contact: ContactTable,
    track: Track,
    *,
    physics: bool,
    precession: int,
    friction: float | None,
    creep_law: str | None,
    shear_modulus_pa: float | None,
    speed_mps: float,
) -> Layout:
    """Pack a vehicle, its contact and its track. Preloads are left at zero."""
    creep = creep_law or vehicle.contact.creep_law
    if creep not in CREEP_NUMBERS:
        raise InputError(
            "creep_law", f"is {creep!r}, {nearest(str(creep), list(CREEP_NUMBERS))}", ", ".join(CREEP_NUMBERS)
        )
    check_number("speed_mps", speed_mps, above=0.0, most=FASTEST_MPS)
    mu = check_number("friction", vehicle.contact.friction if friction is None else friction, least=0.0, most=2.0)
    grid, table, ranges = pack_contact(contact, geometric_lift=physics)
    wheelsets = [b for b in vehicle.bodies if b.is_wheelset]
    if wheelsets:
        _check_radius(vehicle, contact)

    header = np.zeros(slot.HEADER_WIDTH, np.int64)
    header[slot.CREEP_LAW] = CREEP_NUMBERS[creep]
    header[slot.PRECESSION] = precession
    for switch in (slot.VECTOR_MECHANICS, slot.ROLL_MOMENT, slot.GEOMETRIC_LIFT, slot.LOCAL_FRAMES):
        header[switch] = int(physics)
    if track.varies:
        header[slot.TRACK_KIND] = slot.TRACK_VARYING
    elif track.curvature_1pm != 0.0 or track.cant_rad != 0.0:
        header[slot.TRACK_KIND] = slot.TRACK_CONSTANT
    header[slot.FASTSIM_STRIPS] = header[slot.FASTSIM_CELLS] = FASTSIM_GRID

    states, body_index, wheelset_index = _number_states(vehicle, ranges)
    elements = [(link, element) for link in vehicle.links for element in link.elements]
    laws = _Laws()
    link_index = np.zeros((len(elements), slot.LINK_INDEX_WIDTH), np.int64)
    number_of = {b.name: i for i, b in enumerate(vehicle.bodies)}
    for k, (link, element) in enumerate(elements):
        memory, internal = MEMORIES[element.memory]
        link_index[k] = (
            KINDS[element.kind],
            element.axis,
            number_of[link.lower],
            number_of[link.upper],
            laws.add(element.spring, f"{link.name}: spring_law"),
            laws.add(element.damper, f"{link.name}: damper_law"),
            memory,
            len(states) if internal else -1,
            int(element.preloaded),
        )
        states += [f"{link.name}.{name}" for name in internal]
    header[slot.STATES] = len(states)

    bundle, bundle_link = bundles_of(link_index)

    segments = track.packed()
    shapes: list[tuple[str, int, tuple[int, int] | tuple[int]]] = []
    total = 0
    for name, shape in (
        ("operation", (slot.OPERATION_WIDTH,)),
        ("body", (len(vehicle.bodies), slot.BODY_WIDTH)),
        ("wheelset", (len(wheelsets), slot.WHEELSET_WIDTH)),
        ("link", (len(elements), slot.LINK_WIDTH)),
        ("law", (max(1, len(laws.rows)), slot.LAW_WIDTH)),
        ("track", segments.shape),
        ("rail", (len(wheelsets), slot.RAIL_WIDTH)),
        ("place", (len(vehicle.bodies), slot.PLACE_WIDTH)),
        ("motion", (len(vehicle.bodies), slot.MOTION_WIDTH)),
        ("force", (len(vehicle.bodies), slot.FORCE_WIDTH)),
        ("rates", (2, len(states))),
        ("points", (max(POINT_ROWS, ranges[1] + ranges[3]), POINT_WIDTH)),
    ):
        shapes.append((name, total, shape))
        total += math.prod(shape)
    offsets = {name: first for name, first, _ in shapes}
    positions = np.array(
        [[p + c for p, c in zip(b.position_m, b.centre_of_mass_m, strict=True)] for b in vehicle.bodies]
    )
    layout = Layout(
        header=header,
        body_index=body_index,
        wheelset_index=wheelset_index,
        link_index=link_index,
        bundle=bundle,
        bundle_link=bundle_link,
        team=teams_of(wheelset_index),
        law_index=laws.index(),
        table_grid=grid,
        table=table,
        segment=laws.segments(),
        irregularity_grid=SMOOTH_GRID,
        irregularity=SMOOTH,
        shapes=tuple(shapes),
        buffer=np.zeros(total),
        state_names=tuple(states),
        state_index={name: i for i, name in enumerate(states)},
        body_names=tuple(b.name for b in vehicle.bodies),
        wheelset_names=tuple(b.name for b in wheelsets),
        link_names=tuple(link.name for link, _ in elements),
        link_mirror=np.array([link.mirror for link, _ in elements], float).reshape(-1, 3),
        body_positions=positions,
        preload_unknowns=_preload_unknowns(vehicle),
        parameters=ParameterTable(model_parameters(vehicle, link_index, offsets, physics=physics)),
    )
    arrays = layout.view(layout.buffer)
    settings = vehicle.contact
    modulus = shear_modulus_pa if shear_modulus_pa is not None else settings.shear_modulus_pa
    if modulus is None:
        sign = 1.0 if physics else -1.0  # A1: the published program divides by 1 - nu
        modulus = settings.young_modulus_pa / (2.0 * (1.0 + sign * settings.poisson_ratio))
    check_number("shear_modulus_pa", modulus, above=0.0)
    arrays.operation[: slot.SCALE_ALL] = (
        speed_mps,
        mu,
        modulus,
        vehicle.gravity_mps2,
        track.curvature_1pm,
        track.cant_rad,
        0.0,
    )
    arrays.operation[slot.SCALE_ALL : slot.IRREGULARITY_SEED] = 1.0
    arrays.track[:] = segments
    _fill_bodies(vehicle, contact, arrays, number_of, physics=physics)
    for k, (link, element) in enumerate(elements):
        row = arrays.link[k]
        row[slot.LOWER_X : slot.LOWER_Z + 1] = np.subtract(
            link.lower_point_m, vehicle.body(link.lower).centre_of_mass_m
        )
        row[slot.UPPER_X : slot.UPPER_Z + 1] = np.subtract(
            link.upper_point_m, vehicle.body(link.upper).centre_of_mass_m
        )
        row[[slot.AIR_MASS, slot.SERIES_DAMPING, slot.FRICTION_LENGTH, slot.DAMPING_EXPONENT]] = 1.0
        for name, value in element.constants.items():
            row[CONSTANT_SLOTS[name]] = value
    layout.set_rest(arrays)
    for i, values in enumerate(laws.rows):
        arrays.law[i] = values
    return layout


def teams_of(wheelset_index: Integers) -> Integers:
    """Wheelsets side by side: up to LANES on the same contact tables, see `kernels.record`."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for w, row in enumerate(wheelset_index[:, slot.LEFT_FIRST :].tolist()):
        alike.setdefault(tuple(row), []).append(w)
    rows = []
    for members in alike.values():
        for i in range(0, len(members), LANES):
            rows.append([*_filled(members[i : i + LANES]), len(members[i : i + LANES])])
    return np.array(rows, np.int64).reshape(-1, LANES + 1)


def bundles_of(link_index: Integers) -> tuple[Integers, Integers]:
    """Links side by side: `bundle` and `bundle_link` of `kernels.record`.

    Pairs of bodies with the same kinds of links between them stand side by side; where they do not fill the lanes and
    have several links of a kind, each pair is dealt out to more than one lane.
    """
    pairs: dict[tuple[int, int], dict[tuple[int, ...], list[int]]] = {}
    for k, row in enumerate(link_index.tolist()):
        kind: tuple[int, ...] = (
            row[slot.LINK_KIND],
            row[slot.LINK_AXIS],
            int(row[slot.SPRING_LAW] == slot.LINEAR_LAW),
            int(row[slot.DAMPER_LAW] == slot.LINEAR_LAW),
            int(row[slot.INTERNAL_KIND] == slot.INTERNAL_NONE),
        )
        pairs.setdefault((row[slot.LINK_LOWER], row[slot.LINK_UPPER]), {}).setdefault(kind, []).append(k)
    alike: dict[tuple[tuple[tuple[int, ...], int], ...], list[dict[tuple[int, ...], list[int]]]] = {}
    for kinds in pairs.values():
        signature = sorted((kind, len(links)) for kind, links in kinds.items())
        alike.setdefault(tuple(signature), []).append(kinds)
    bundle: list[tuple[int, int, int]] = []
    rows: list[list[int]] = []
    for numbers, members in alike.items():
        for i in range(0, len(members), LANES):
            group = members[i : i + LANES]
            left = {kind: 0 for kind, _ in numbers}  # first link of that kind without a place
            for share in range(LANES // len(group), 0, -1):  # links of one pair in a row
                placed: list[list[int]] = []
                for kind, count in numbers:
                    for first in range(left[kind], count - share + 1, share):
                        placed.append([k for pair in group for k in pair[kind][first : first + share]])
                        left[kind] = first + share
                if placed:
                    bundle.append((share * len(group), len(rows), len(placed)))
                    rows += [_filled(row) for row in placed]
    return np.array(bundle, np.int64).reshape(-1, slot.BUNDLE_WIDTH), np.array(rows, np.int64).reshape(-1, LANES)


def _filled(members: list[int]) -> list[int]:
    """LANES numbers: the last is repeated."""
    return members + members[-1:] * (LANES - len(members))


def _check_radius(vehicle: Vehicle, contact: ContactTable) -> None:
    for b in vehicle.bodies:
        if b.is_wheelset and abs(contact.centre_radius_m / b.rolling_radius_m - 1.0) > 0.05:
            raise InputError(
                f"contact table {contact.name}",
                f"is for wheels of radius {contact.centre_radius_m:.4g} m, {b.name} has {b.rolling_radius_m:.4g} m",
                "a table for these wheels (within 5 %)",
            )


def _number_states(vehicle: Vehicle, ranges: tuple[int, int, int, int]) -> tuple[list[str], Integers, Integers]:
    states: list[str] = []
    body_index = np.full((len(vehicle.bodies), slot.BODY_INDEX_WIDTH), -1, np.int64)
    wheelset_rows: list[list[int]] = []
    for i, body in enumerate(vehicle.bodies):
        spin = -1
        order = ("y", "z", "roll", "spin", "yaw") if body.is_wheelset else tuple(COORDINATES)
        for dof in order:
            if dof not in body.dofs:
                continue
            if dof == "spin":
                spin = len(states)
                states.append(f"{body.name}.spin")
                continue
            body_index[i, COORDINATES[dof]] = len(states)
            body_index[i, COORDINATES[dof] + 1] = len(states) + 1
            states += [f"{body.name}.{dof}", f"{body.name}.{dof}_dot"]
        if body.is_wheelset:
            body_index[i, slot.BODY_WHEELSET] = len(wheelset_rows)
            wheelset_rows.append([i, spin, *ranges])
    wheelset_index = np.array(wheelset_rows, np.int64).reshape(-1, slot.WHEELSET_INDEX_WIDTH)
    return states, body_index, wheelset_index


def _preload_unknowns(vehicle: Vehicle) -> tuple[Integers, int]:
    """Numbers of z, roll and pitch of the sprung bodies; a frozen body is carried like a free one."""
    unknown = np.full((len(vehicle.bodies), 3), -1, np.int64)
    count = 0
    carried = {link.lower for link in vehicle.links if any(e.preloaded for e in link.elements)}
    carried |= {link.upper for link in vehicle.links if any(e.preloaded for e in link.elements)}
    for i, body in enumerate(vehicle.bodies):
        if body.is_wheelset or (body.frozen and body.name not in carried):
            continue
        for column, dof in enumerate(("z", "roll", "pitch")):
            if body.frozen or dof in body.dofs:
                unknown[i, column] = count
                count += 1
    return unknown, count


def _fill_bodies(
    vehicle: Vehicle, contact: ContactTable, arrays: VehicleArrays, number_of: dict[str, int], *, physics: bool
) -> None:
    w = 0
    for i, body in enumerate(vehicle.bodies):
        row = arrays.body[i]
        row[slot.MASS] = body.mass_kg
        row[slot.INERTIA_ROLL] = body.inertia_roll_kgm2
        row[slot.INERTIA_PITCH] = body.inertia_pitch_kgm2
        row[slot.INERTIA_YAW] = body.inertia_yaw_kgm2
        row[slot.INV_MASS] = 1.0 / body.mass_kg
        row[slot.INV_INERTIA_ROLL] = 1.0 / body.inertia_roll_kgm2
        row[slot.INV_INERTIA_PITCH] = 1.0 / body.inertia_pitch_kgm2
        row[slot.INV_INERTIA_YAW] = 1.0 / body.inertia_yaw_kgm2
        if not physics and not body.is_wheelset:
            row[slot.INV_INERTIA_PITCH] = 1.0 / body.inertia_roll_kgm2  # A8
        row[slot.ARC] = body.position_m[0] + body.centre_of_mass_m[0]
        row[slot.HEIGHT] = body.position_m[2] + body.centre_of_mass_m[2]
        if body.is_wheelset:
            if body.parent:
                parent = vehicle.bodies[number_of[body.parent]]
                row[slot.YAW_LEVER] = row[slot.ARC] - (parent.position_m[0] + parent.centre_of_mass_m[0])
            arrays.wheelset[w] = (contact.centre_radius_m, body.spacing_m)
            w += 1


class _Laws:
    """Collects the force laws of all links."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float]] = []
        self.kinds: list[tuple[int, int, int, int]] = []
        self.pieces: list[list[float]] = []

    def add(self, law: Law | None, where: str) -> int:
        """Number of the law; LINEAR_LAW for none."""
        if law is None:
            return slot.LINEAR_LAW
        if isinstance(law, GapLaw):
            self.rows.append((law.stiffness_npm, law.gap_m, 1.0, 1.0))
            self.kinds.append((slot.GAP_LAW, 0, 0, slot.OUTSIDE_EXTRAPOLATE))
        elif isinstance(law, CoulombLaw):
            self.rows.append((law.force_n, law.velocity_mps, 1.0, 1.0))
            self.kinds.append((slot.COULOMB_LAW, 0, 0, slot.OUTSIDE_EXTRAPOLATE))
        else:
            self._add_table(law, where)
        return len(self.rows) - 1

    def _add_table(self, law: TableLaw, where: str) -> None:
        x = np.array(law.x)
        try:
            with np.errstate(all="ignore"):
                pieces = cubic_pieces(x, np.array(law.y), law.interpolation)[:, :, 0]
        except ValueError:  # scipy, of slopes that overflow
            pieces = np.full(1, np.nan)
        if not np.isfinite(pieces).all():
            raise InputError(
                where, "cannot be interpolated: points too close together or too large", "well separated points"
            )
        outside = slot.OUTSIDE_STOP if law.outside == "stop" else slot.OUTSIDE_EXTRAPOLATE
        self.kinds.append((slot.TABLE_LAW, len(self.pieces), x.size - 1, outside))
        self.rows.append((0.0, 0.0, 1.0, 1.0))
        self.pieces += [[x[i], x[i + 1], *pieces[:, i]] for i in range(x.size - 1)]

    def index(self) -> Integers:
        return np.array(self.kinds or [(0, 0, 0, 0)], np.int64)

    def segments(self) -> Array:
        return np.array(self.pieces or [[0.0] * slot.SEGMENT_WIDTH], float)
