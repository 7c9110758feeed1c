"""Study files: strict TOML -> frozen records.

A study names a vehicle, a contact, a track, a speed, how to solve and what to keep, and the axes over which to repeat
it. Everything that changes a number of the result is in `Study.document`, whose canonical JSON is the identity of the
study; where it runs ([executor]) and where it is kept ([output]) are not.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.document import Section, check_number, parse_toml, read_limited
from railsweep.engine.errors import InputError, shown
from railsweep.sweeps.input_file import MAXIMUM_FILE_BYTES, NAME, InputFiles, checked_name, inner_path, rough_track
from railsweep.sweeps.population.choice import SearchChoice, read_search
from railsweep.sweeps.quantity import QUANTITIES, quantity_class
from railsweep.sweeps.sensitivity.choice import MOST_PARAMETERS, SensitivityChoice, plain_axis, read_sensitivity

if TYPE_CHECKING:
    from railsweep.engine.model import Model

MAXIMUM_BYTES = 4 * 2**20
MOST_CASES = 10**9
MOST_AXIS_VALUES = 10**7
MOST_AXES = 32
MOST_WORKERS = 4096

EXECUTORS = ("serial", "threads", "processes", "dask", "mpi")
STATISTICS = ("min", "max", "mean", "rms", "amplitude", "frequency_hz")
METHODS = ("dopri5", "dop853", "rkf34", "nt1", "jkt", "esdirk54", "radau", "bdf", "bsimp", "seulex", "auto")
QUEUES = ("slurm", "pbs", "lsf", "htcondor")
URL = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9_./:-]*[A-Za-z0-9_-]\.zarr")
INFINITE_PARAMETERS = ("track.radius_m", "track.radius")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One varied parameter: its values as a list, or a range that is never written out in the identity.

    Attributes
    ----------
    parameter : str
        A name that `Model.bind` takes.
    name : str
        Name of its coordinate in the store.
    values : tuple of float
        The list; empty for a range.
    start, stop, count : float, float, int
        The range, both ends included, evenly spaced.
    zipped : str
        Axes with the same word here vary together and share one dimension of that name.
    """

    parameter: str
    name: str
    values: tuple[float, ...] = ()
    start: float = 0.0
    stop: float = 0.0
    count: int = 0
    zipped: str = ""

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values) or self.count

    def value(self, i: int) -> float:
        """The i-th value. Ranges are computed in decimals, so 0.1 to 0.5 in five has the member 0.3."""
        if self.values:
            return self.values[i]
        first, last = Decimal(repr(self.start)), Decimal(repr(self.stop))
        if self.count == 1:
            return self.start
        return float(first + (last - first) * i / (self.count - 1))

    def array(self) -> NDArray[np.float64]:
        """All values."""
        return np.array([self.value(i) for i in range(self.size)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverChoice:
    """How a case is solved; times in seconds."""

    method: str = "dopri5"
    rtol: float = 1e-6
    atol: float = 1e-9
    duration_s: float = 10.0
    sample_s: float = 0.005
    window_s: float = 5.0
    time_limit_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is kept of a case: statistics of channels, the largest Y/Q of all wheels, the first `modes` eigenvalues."""

    channels: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ("amplitude", "frequency_hz")
    wheel_forces: bool = True
    modes: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChoice:
    """A batch system for dask-jobqueue."""

    system: str
    jobs: int
    cores: int
    memory: str
    walltime: str
    queue: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorChoice:
    """Where the study runs; never changes a result. `recycle_blocks`: blocks in the life of a worker (0: no end)."""

    kind: str = "processes"
    workers: int = 0
    recycle_blocks: int = 0
    retries: int = 3
    grace_s: float = 10.0
    address: str = ""
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    queue: QueueChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChoice:
    """Where the store goes and how large its blocks are (0: by measured cost).

    `remote` is a URL to which the store is copied as it grows, or empty.
    """

    store: str
    remote: str = ""
    block_cases: int = 0
    block_seconds: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A whole study file.

    Attributes
    ----------
    vehicle, contact : bytes
        Contents of the vehicle file and of the contact table (empty: `profiles` decides).
    profiles : str
        Wheel and rail profiles as `assemble` takes them (empty: the table, else those of the vehicle).
    options
        What the quantity read in its own section; None when it has none.
    files : dict
        Contents of further input files, which the options and [track] irregularity name.
    document : dict
        Everything that decides the numbers, as plain data.
    """

    name: str
    quantity: str
    seed: int
    vehicle_name: str
    vehicle: bytes
    contact_name: str
    contact: bytes
    profiles: str
    model: dict[str, Any]
    track: dict[str, Any]
    speed_mps: float
    solver: SolverChoice
    start: dict[str, float]
    random_m: float
    observation: Observation
    options: Any
    files: dict[str, bytes]
    axes: tuple[Axis, ...]
    executor: ExecutorChoice
    output: OutputChoice
    design: SensitivityChoice | SearchChoice | None = None
    text: str = field(repr=False, default="")

    @property
    def cases(self) -> int:
        """Size of the whole product."""
        return math.prod(size for _, size in dimensions(self.axes))

    @property
    def settings(self) -> dict[str, Any]:
        """`model` as `assemble` takes it: irregularities made from the files of the study."""
        return rough_track(self.model, self.files)

    @property
    def base(self) -> dict[str, Any]:
        """What all cases share and what decides their numbers."""
        return {
            "quantity": self.quantity,
            "seed": self.seed,
            "vehicle": tomllib.loads(self.vehicle.decode()),
            "contact": self._contact,
            "model": self.model,
            "track": self.track,
            "operation": {"speed_mps": self.speed_mps},
            "solver": asdict(self.solver),
            "start": {**self.start, **({"random_m": self.random_m} if self.random_m else {})},
            "observe": asdict(self.observation),
            **({self.quantity: asdict(self.options)} if self.options is not None else {}),
            **({"files": {name: _sha256(raw) for name, raw in self.files.items()}} if self.files else {}),
        }

    @property
    def _contact(self) -> dict[str, str]:
        if self.contact:
            return {"name": self.contact_name, "sha256": _sha256(self.contact)}
        return {"profiles": self.profiles} if self.profiles else {}

    @property
    def document(self) -> dict[str, Any]:
        """The identity of the study as plain data."""
        design = {"design": self.design.document()} if self.design is not None else {}
        return {"name": self.name, **self.base, "axis": [plain_axis(a) for a in self.axes], **design}

    @property
    def digest(self) -> str:
        """Content hash of `document`."""
        return digest(self.document)

    @property
    def base_digest(self) -> str:
        """Content hash of `base`: with the values of the axes it makes the identity of a case."""
        return digest(self.base)


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def canonical(value: Any) -> str:
    """The one JSON text of plain data: sorted keys, shortest numbers, infinities as words."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Data as JSON can hold it: tuples are lists, infinities and nan are words."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def difference(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Lines ``key: old -> new`` for every place where two plain documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from difference(old.get(key, "(absent)"), new.get(key, "(absent)"), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from difference(a, b, f"{path}[{i}]")
    elif old != new:
        yield f"{path}: {shown(old)} -> {shown(new)}"


def dimensions(axes: tuple[Axis, ...]) -> list[tuple[str, int]]:
    """Name and size of every dimension, in the order of the axes; zipped axes share one."""
    found: dict[str, int] = {}
    for axis in axes:
        found.setdefault(axis.zipped or axis.name, axis.size)
    return list(found.items())


def load_study(path: str | Path) -> Study:
    """Read a study file; vehicle and contact files are looked for beside it."""
    file = Path(path)
    raw = read_limited(file, MAXIMUM_BYTES, "a study file")
    return parse_study(raw, str(file), file.parent)


def parse_study(raw: bytes, where: str, folder: Path, library: Path | None = None) -> Study:
    """Check a study document and make the records; `library` replaces the folder of the library vehicles."""
    top = parse_toml(raw, where)
    name = checked_name(top.where("name"), top.text("name"))
    quantity = top.text("quantity", choices=tuple(QUANTITIES))
    vehicle_name, vehicle, model = _vehicle(top.section("vehicle"), folder, library)
    contact_name, contact, profiles = _contact(top, folder)
    files = InputFiles(folder)
    track, rough = _track(_optional(top, "track"), files)
    model |= rough
    operation = _optional(top, "operation")
    speed = operation.number("speed_mps", 20.0, above=0.0, most=1000.0)
    operation.finish()
    solver = _solver(_optional(top, "solver"))
    start, random_m = _start(_optional(top, "start"))
    observation = _observation(_optional(top, "observe"))
    options = _options(top, quantity, files)
    design = _design(top, vehicle_name, vehicle, model, files, track, speed)
    axes = _axes(top, design)
    executor = _executor(_optional(top, "executor"))
    output = _output(_optional(top, "output"), name)
    seed = whole(top, "seed", 0, most=2**53)
    top.finish()
    study = Study(
        name=name,
        quantity=quantity,
        seed=seed,
        vehicle_name=vehicle_name,
        vehicle=vehicle,
        contact_name=contact_name,
        contact=contact,
        profiles=profiles,
        model=model,
        track=track,
        speed_mps=speed,
        solver=solver,
        start=start,
        random_m=random_m,
        observation=observation,
        options=options,
        files=files.contents,
        axes=axes,
        executor=executor,
        output=output,
        design=design,
        text=raw.decode("utf-8"),
    )
    if study.cases > MOST_CASES:
        raise InputError(top.where("axis"), f"makes {study.cases} cases", f"at most {MOST_CASES}")
    return study


def is_url(text: str) -> bool:
    """Is the place of a store a URL, and not a path?"""
    return "://" in text


def check_url(where: str, text: str) -> str:
    """The URL of a store: no user or password, no query, no chained protocols, for it is written into the store."""
    if not URL.fullmatch(text) or ".." in text:
        raise InputError(where, f"is {shown(text)}", "protocol://place/name.zarr without user, password or query")
    return text


def working_name(url: str) -> str:
    """Name of the local store behind a URL."""
    return url.rpartition("/")[2]


def whole(section: Section, key: str, default: int, *, least: int = 0, most: int = 10**9) -> int:
    """A whole number within bounds."""
    if not section.has(key):
        return default
    value = section.data[key]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(section.where(key), f"is {shown(value)}", f"a whole number from {least} to {most}")
    return value


def _optional(top: Section, key: str) -> Section:
    return top.section(key) if top.has(key) else Section({}, top.file, key)


def _vehicle(section: Section, folder: Path, own_library: Path | None) -> tuple[str, bytes, dict[str, Any]]:
    from railsweep.engine.vehicle import library_vehicles

    name = section.text("name")
    if name.endswith(".toml"):
        path = folder / inner_path(section.where("name"), name)
    elif own_library is not None:
        path = own_library / inner_path(section.where("name"), f"{name}.toml")
    else:
        library = library_vehicles()
        if name not in library:
            raise InputError(
                section.where("name"),
                f"{shown(name)} is not in the library",
                ", ".join(sorted(library)) + ", or a .toml file beside the study",
            )
        path = Path(str(library[name]))
    raw = read_limited(path, MAXIMUM_BYTES, "a vehicle file")
    parse_toml(raw, str(path))
    model: dict[str, Any] = {"formulation": section.text("formulation", "physics", choices=("physics", "dytsi"))}
    if section.has("precession"):
        model["precession"] = section.text("precession", choices=("off", "printed", "right"))
    if section.has("creep_law"):
        model["creep_law"] = section.text("creep_law", choices=("linear", "shen-hedrick-elkins", "polach", "fastsim"))
    if section.has("friction"):
        model["friction"] = section.number("friction", above=0.0, most=2.0)
    section.finish()
    return name, raw, model


def _contact(top: Section, folder: Path) -> tuple[str, bytes, str]:
    if not top.has("contact"):
        return "", b"", ""
    section = top.section("contact")
    if section.has("profiles"):
        profiles = section.text("profiles")
        _check_profiles(section.where("profiles"), profiles)
        if section.has("table"):
            raise InputError(section.where("table"), "stands beside profiles", "one of the two")
        section.finish()
        return "", b"", profiles
    name = section.text("table")
    path = folder / inner_path(section.where("table"), name)
    section.finish()
    return name, read_limited(path, MAXIMUM_FILE_BYTES, "a contact table"), ""


def _check_profiles(where: str, text: str) -> None:
    """Profiles of the library only: a file would be an input that the store does not keep."""
    from railsweep.engine.contact_build import PROFILES, parse_specification
    from railsweep.engine.profile_file import ENDINGS

    if text == "cone":
        return
    try:
        found = parse_specification(text)
    except InputError as error:
        raise InputError(where, error.problem, error.allowed) from None
    for key in PROFILES:
        if Path(str(found.get(key, ""))).suffix.lower() in ENDINGS:
            raise InputError(
                where, f"names the file {shown(found[key])}", "profiles of the library; for a file: table = ..."
            )


def _options(top: Section, quantity: str, files: InputFiles) -> Any:
    """The section of the quantity."""
    section = _optional(top, quantity)
    options = quantity_class(quantity).read_options(section, files.read)
    section.finish()
    return options


def _track(section: Section, files: InputFiles) -> tuple[dict[str, Any], dict[str, str]]:
    """The course of the track, and its irregularities as text."""
    track: dict[str, Any] = {}
    rough = {"irregularity": files.irregularity(section, "irregularity")} if section.has("irregularity") else {}
    if section.has("radius_m"):
        track["radius_m"] = section.number("radius_m")
    track["cant_mm"] = section.number("cant_mm", 0.0)
    track["hand"] = section.text("hand", "right", choices=("right", "left"))
    track["transition_m"] = section.number("transition_m", 0.0, least=0.0)
    track["transition"] = section.text("transition", "clothoid", choices=("clothoid", "bloss", "cosine"))
    section.finish()
    return track, rough


def _solver(section: Section) -> SolverChoice:
    duration = section.number("duration_s", 10.0, above=0.0, most=1e5)
    solver = SolverChoice(
        method=section.text("method", "dopri5", choices=METHODS),
        rtol=section.number("rtol", 1e-6, above=0.0, most=1.0),
        atol=section.number("atol", 1e-9, above=0.0, most=1.0),
        duration_s=duration,
        sample_s=section.number("sample_s", 0.005, above=0.0, most=duration),
        window_s=section.number("window_s", 0.5 * duration, above=0.0, most=duration),
        time_limit_s=section.number("time_limit_s", 600.0, above=0.0, most=1e6),
    )
    section.finish()
    return solver


def _start(section: Section) -> tuple[dict[str, float], float]:
    random_m = section.number("random_m", 0.0, least=0.0, most=1.0)
    start = {}
    for key in section.data:
        if key != "random_m":
            start[key] = section.number(key)
    section.finish()
    return start, random_m


def _observation(section: Section) -> Observation:
    observation = Observation(
        channels=tuple(section.words("channels", [])),
        statistics=tuple(section.words("statistics", ["amplitude", "frequency_hz"], choices=STATISTICS)),
        wheel_forces=section.flag("wheel_forces", True),
        modes=whole(section, "modes", 12, least=1, most=1000),
    )
    section.finish()
    return observation


def _design(
    top: Section,
    name: str,
    vehicle: bytes,
    model: dict[str, Any],
    files: InputFiles,
    track: dict[str, Any],
    speed: float,
) -> SensitivityChoice | SearchChoice | None:
    """The design of a study with a [sensitivity] or an [optimise] section; None for a plain one."""
    kinds = [kind for kind in ("sensitivity", "optimise") if top.has(kind)]
    if not kinds:
        return None
    if len(kinds) == 2:
        raise InputError(top.where("optimise"), "stands beside sensitivity", "one of the two")

    @cache
    def values() -> Model:
        from railsweep.engine import Track, assemble
        from railsweep.engine.vehicle import parse_vehicle

        # the contact decides none of the parameters; the cone needs no table
        described = parse_vehicle(parse_toml(vehicle, name))
        settings = rough_track(model, files.contents)
        return assemble(described, contact="cone", track=Track(**track), speed_mps=speed, **settings)

    def nominal(parameter: str) -> float:
        return values().layout.value(values().layout.parameters[parameter].name, values().buffer)

    parameters = top.sections("parameter", most=MOST_PARAMETERS)
    if kinds == ["sensitivity"]:
        return read_sensitivity(top.section("sensitivity"), parameters, nominal)
    return read_search(top.section("optimise"), top, parameters, nominal)


def _axes(top: Section, design: SensitivityChoice | SearchChoice | None) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    for section in top.sections("axis", most=MOST_AXES):
        parameter = section.text("parameter")
        if not NAME.fullmatch(parameter):
            raise InputError(section.where("parameter"), f"is {shown(parameter)}", "the name of a parameter")
        name = checked_name(section.where("name"), section.text("name", parameter.replace(".", "_")))
        zipped = section.text("zip", "")
        if zipped:
            checked_name(section.where("zip"), zipped)
        axes.append(_axis(section, parameter, name, zipped))
        section.finish()
    if design is not None:
        axes += design.axes()  # type: ignore[arg-type]
        for axis in axes:
            checked_name(top.where("parameter"), axis.name)
    if not axes:
        raise InputError(top.where("axis"), "is missing", "at least one [[axis]]")
    taken = [*RESERVED, *(a.name for a in axes), *{a.zipped for a in axes if a.zipped}]
    for word in taken:
        if taken.count(word) > 1:
            raise InputError(top.where("axis"), f"the name {word!r} is used twice", "different names")
    if len({a.parameter for a in axes}) != len(axes):
        raise InputError(top.where("axis"), "a parameter has two axes", "one axis per parameter")
    for axis in axes:
        sizes = {a.size for a in axes if a.zipped and a.zipped == axis.zipped}
        if len(sizes) > 1:
            raise InputError(
                top.where("axis"), f"zipped axes {axis.zipped!r} have {sorted(sizes)} values", "equally many values"
            )
    return tuple(axes)


# Names of variables and dimensions of the store that no axis may take.
RESERVED = ("status", "reason", "mode", "case")


def _axis(section: Section, parameter: str, name: str, zipped: str) -> Axis:
    if section.has("values"):
        given = section.data["values"]
        if not isinstance(given, list) or not given:
            raise InputError(section.where("values"), f"is {shown(given)}", "a list of numbers")
        values = tuple(_axis_value(section.where(f"values[{i}]"), v, parameter) for i, v in enumerate(given))
        if len(set(values)) != len(values) and not zipped:
            double = next(v for v in values if values.count(v) > 1)
            raise InputError(section.where("values"), f"repeats {double!r}", "different values")
        return Axis(parameter=parameter, name=name, values=values, zipped=zipped)
    start, stop = section.number("start"), section.number("stop")
    if section.has("step"):
        step = section.number("step", above=0.0)
        span = Decimal(repr(stop)) - Decimal(repr(start))
        if span < 0:
            raise InputError(section.where("stop"), f"is {stop!r}", f"at least start = {start!r}")
        if span / Decimal(repr(step)) >= 10**15:
            raise InputError(section.where("step"), f"is {step!r}: too many values", f"at most {MOST_AXIS_VALUES}")
        count = int(span / Decimal(repr(step))) + 1
        stop = float(Decimal(repr(start)) + Decimal(repr(step)) * (count - 1))
    else:
        if not section.has("count"):
            raise InputError(section.where("values"), "is missing", "values, or start and stop with step or count")
        count = whole(section, "count", 1, least=1, most=10**15)
    # The product is refused with its whole count, so a long axis is only refused here when it could not stand alone.
    if MOST_AXIS_VALUES < count <= MOST_CASES:
        raise InputError(section.where(), f"has {count} values", f"at most {MOST_AXIS_VALUES}")
    if count > 1 and start == stop:
        raise InputError(section.where("stop"), f"is {stop!r}", "different from start")
    return Axis(parameter=parameter, name=name, start=start, stop=stop, count=count, zipped=zipped)


def _axis_value(where: str, value: Any, parameter: str) -> float:
    if parameter in INFINITE_PARAMETERS and isinstance(value, float) and math.isinf(value):
        return value
    return check_number(where, value)


def _executor(section: Section) -> ExecutorChoice:
    queue = None
    if section.has("queue"):
        queue = _queue(section.section("queue"))
    address = section.text("address", "")
    if address and not re.fullmatch(r"(tcp|tls)://[A-Za-z0-9_.:\[\]-]+", address):
        raise InputError(section.where("address"), f"is {shown(address)}", "tcp://host:port or tls://host:port")
    choice = ExecutorChoice(
        kind=section.text("kind", "processes", choices=EXECUTORS),
        workers=whole(section, "workers", 0, most=MOST_WORKERS),
        recycle_blocks=whole(section, "recycle_blocks", 0),
        retries=whole(section, "retries", 3, most=100),
        grace_s=section.number("grace_s", 10.0, least=0.0, most=3600.0),
        address=address,
        tls=section.flag("tls", False),
        tls_ca=section.text("tls_ca", ""),
        tls_cert=section.text("tls_cert", ""),
        tls_key=section.text("tls_key", ""),
        queue=queue,
    )
    section.finish()
    return choice


def _queue(section: Section) -> QueueChoice:
    def word(key: str, pattern: str, default: str | None = None) -> str:
        value = section.text(key, default)
        if value and not re.fullmatch(pattern, value):
            raise InputError(section.where(key), f"is {shown(value)}", f"text like {pattern}")
        return value

    queue = QueueChoice(
        system=section.text("system", choices=QUEUES),
        jobs=whole(section, "jobs", 1, least=1, most=MOST_WORKERS),
        cores=whole(section, "cores", 1, least=1, most=1024),
        memory=word("memory", r"[0-9]+ ?[KMGT]?i?B", "2GB"),
        walltime=word("walltime", r"[0-9:-]+", "01:00:00"),
        queue=word("queue", NAME.pattern, ""),
        account=word("account", NAME.pattern, ""),
    )
    section.finish()
    return queue


def _output(section: Section, name: str) -> OutputChoice:
    store, remote = section.text("store", f"{name}.zarr"), ""
    if is_url(store):
        remote = check_url(section.where("store"), store)
        store = working_name(remote)
    inner_path(section.where("store"), store)
    if not store.endswith(".zarr"):
        raise InputError(section.where("store"), f"is {shown(store)}", "a name ending in .zarr")
    output = OutputChoice(
        store=store,
        remote=remote,
        block_cases=whole(section, "block_cases", 0, most=10**6),
        block_seconds=section.number("block_seconds", 2.0, least=0.5, most=30.0),
    )
    section.finish()
    return output
