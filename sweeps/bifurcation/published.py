"""The published critical speeds of the Cooperrider wagon, computed again and judged row by row.

Source: D. Bigoni, Curving Dynamics in High Speed Trains, IMM-MSC-2011-59 (DTU 2011), sections 6.1 and 8.2 (table 8.3),
with the contact table released with that program and the `dytsi` formulation. The numbers stand in this file only. They
were read off ramps with steps of 0.5 or 1 m/s, so they are met within 1 m/s (frequencies: within 0.05 Hz on straight
track, 0.3 Hz in the curve); the rows that an independent prototype could reproduce are here and no others.

Straight track: the wagon with precession as printed, the fixed car without; steps of 1 m/s down, 10 s each. Curves with
a cant of 110 mm: R = 600 m without precession in steps of 1 m/s, the others with it in steps of 0.5 m/s, up, 15 s each.
The speed at which hunting dies is the first at which nothing hunts any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from railsweep.engine.contact_table import ContactTable
from railsweep.engine.errors import InputError, nearest
from railsweep.engine.linear_stability import Crossing, stability, turning_unstable
from railsweep.engine.model import Model, assemble
from railsweep.engine.track import Track
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.ramp import (
    Branch,
    RampSettings,
    RampStep,
    ramp,
    ramp_branch,
    start_set,
    steps_between,
)

SPEED_TOLERANCE_MPS = 1.0
STRAIGHT_FREQUENCY_TOLERANCE_HZ = 0.05
CURVE_FREQUENCY_TOLERANCE_HZ = 0.3

FIXED_CAR_LINEAR_MPS = 110.0  # V1, two pairs together
FIXED_CAR_FREQUENCY_HZ = 5.859  # V3, at 114 m/s
FIXED_CAR_DEATH_MPS = 56.5  # V4, down from 114 m/s
LINEAR_MPS = (110.0, 111.0)  # V12, V13
DEATH_MPS = 51.0  # V15, down from 118 m/s
RESONANCE_MPS, RESONANCE_HZ = 37.0, 11.25  # V22
WIDE_CURVE_MPS = 27.0  # V24, R = 1.6 km; 3.32 Hz some speeds above
# V26: radius -> critical speed on the way up; at 1.8 km growth is so weak that 20 to 25 m/s are accepted
CURVE_MPS = {1400.0: (25.0, 25.0), 1600.0: (27.0, 27.0), 1800.0: (20.0, 25.0), 2000.0: (28.0, 28.0)}
# table 8.3: friction -> (linear, non-linear) m/s; the second is a derailment on the way down from 0.18 on
FRICTION_MPS = {
    0.03: (114.0, 111.0),
    0.06: (111.0, 73.5),
    0.09: (110.0, 62.5),
    0.12: (110.0, 59.5),
    0.15: (110.0, 51.0),
    0.18: (109.0, 79.0),
    0.21: (109.0, 92.0),
    0.24: (109.0, 96.5),
    0.27: (109.0, 101.5),
    0.30: (109.0, 102.5),
}
DERAILS_FROM = 0.18

CANT_MM = 110.0
CURVE_START_MPS = 20.0  # first speed of the published ramps in curves
# In the wide curves the oscillation begins at micrometres (it is supercritical), far below the limit for straight
# track; what a step of speed leaves of the transient after 10 s is 0.5 um. Limits of 5 and 10 um agree within 0.5 m/s.
CURVE_HUNTING_M = 5e-6
KICK_M = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One published number beside ours.

    `published` and `ours` are numbers in `unit`, or words where the source has no number; a row with two published
    numbers gives the ends of the accepted range before the tolerance.
    """

    id: str
    quantity: str
    published: float | str | tuple[float, float]
    ours: float | str | None
    unit: str
    tolerance: float | None
    passed: bool
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "id": self.id,
            "quantity": self.quantity,
            "published": list(self.published) if isinstance(self.published, tuple) else self.published,
            "ours": self.ours,
            "unit": self.unit,
            "tolerance": self.tolerance,
            "passed": self.passed,
            "note": self.note,
        }


def number_row(
    id: str,
    quantity: str,
    published: float | tuple[float, float],
    ours: float | None,
    tolerance: float = SPEED_TOLERANCE_MPS,
    unit: str = "m/s",
    note: str = "",
    also: bool = True,
) -> Row:
    """A row that passes when ours is within the tolerance of the published number (and `also` holds)."""
    low, high = published if isinstance(published, tuple) else (published, published)
    inside = ours is not None and low - tolerance <= ours <= high + tolerance
    return Row(
        id=id,
        quantity=quantity,
        published=low if low == high else (low, high),
        ours=ours,
        unit=unit,
        tolerance=tolerance,
        passed=inside and also,
        note=note,
    )


def word_row(id: str, quantity: str, published: str, ours: str, note: str = "") -> Row:
    """A row that passes when the words agree."""
    return Row(
        id=id,
        quantity=quantity,
        published=published,
        ours=ours,
        unit="",
        tolerance=None,
        passed=published == ours,
        note=note,
    )


def published_wagon(table: ContactTable, vehicle: str = "cooperrider", **options: Any) -> Model:
    """The wagon of the source; the speed is set by whoever uses it."""
    return assemble(vehicle, contact=table, speed_mps=60.0, formulation="dytsi", **options)


def fixed_car_linear(table: ContactTable, rtol: float) -> list[Row]:
    """V1."""
    found = _unstable(_fixed_car(table), (105.0, 115.0))
    first = found[0] if found else None
    pairs = first.multiplicity if first else 0
    return [
        number_row(
            "V1",
            "fixed car: linear critical speed",
            FIXED_CAR_LINEAR_MPS,
            first.speed_mps if first else None,
            note=f"{pairs} pairs cross together (published: 2)",
            also=pairs == 2,
        )
    ]


def fixed_car_down(table: ContactTable, rtol: float) -> list[Row]:
    """V3 and V4: hunting at 114 m/s, and down from there.

    Half steps at the end, as in the source: there hunting is a chaotic transient that lives for some tens of seconds,
    so that steps of 1 m/s and 10 s carry it down to 54 m/s or let it die at 56 m/s, as chance will have it.
    """
    model = _fixed_car(table)
    speeds = (*steps_between(114.0, 62.0, 1.0), *steps_between(61.5, 50.0, 0.5))
    branch = _down(model, speeds, start_set(model)["antisymmetric"], rtol)
    first = branch.steps[0]
    return [
        number_row(
            "V3",
            "fixed car, 114 m/s: frequency of hunting",
            FIXED_CAR_FREQUENCY_HZ,
            float(first.frequency_hz[first.channel("wheelset_ll.y")]),
            STRAIGHT_FREQUENCY_TOLERANCE_HZ,
            "Hz",
        ),
        number_row("V4", "fixed car: hunting dies", FIXED_CAR_DEATH_MPS, branch.death(), note=_ended(branch)),
    ]


def fixed_car_kick(table: ContactTable, rtol: float) -> list[Row]:
    """V6: a large kick of one wheelset below the linear critical speed."""
    settings = RampSettings(dwell_s=20.0, rtol=rtol, atol=1e-3 * rtol)
    step = next(ramp(_fixed_car(table), [70.0], {"wheelset_ll.y": 8e-3}, settings=settings))
    size = 1e3 * float(step.amplitude.max())
    word = step.status.name.lower() if not step.success else "hunts" if step.hunts else "decays"
    return [
        word_row("V6", "fixed car, 70 m/s: kick of 8 mm", "decays", word, f"{size:.2g} mm after {step.duration_s:g} s")
    ]


def linear(table: ContactTable, rtol: float, friction: float) -> list[Row]:
    """Linear critical speeds on straight track; at 0.15 also V12 and V13."""
    found = _unstable(published_wagon(table, friction=friction), (105.0, 116.0))
    speeds = [c.speed_mps for c in found[:2]] + [None, None]
    published = FRICTION_MPS[friction][0]
    rows = [number_row(f"T{friction:.2f}", f"friction {friction:.2f}: linear critical speed", published, speeds[0])]
    if friction == 0.15:
        rows += [
            number_row("V12", "first pair crosses", LINEAR_MPS[0], speeds[0]),
            number_row("V13", "second pair crosses", LINEAR_MPS[1], speeds[1]),
        ]
    return rows


def down(table: ContactTable, rtol: float, friction: float) -> list[Row]:
    """Down from 118 m/s until hunting dies or the wagon derails; at 0.15 also V15 and V16."""
    model = published_wagon(table, friction=friction)
    branch = _down(model, steps_between(118.0, 48.0, 1.0), start_set(model)["antisymmetric"], rtol)
    published = FRICTION_MPS[friction][1]
    derails = friction >= DERAILS_FROM
    derailed = branch.steps[-1].value if branch.status == Status.DERAILED else None
    rows = [
        number_row(
            f"T{friction:.2f}",
            f"friction {friction:.2f}: " + ("derails on the way down" if derails else "hunting dies"),
            published,
            derailed if derails else branch.death(),
            note="" if derails and derailed else _ended(branch),
        )
    ]
    if friction == 0.15:
        alone = {
            bogie: [s.value for s in branch.steps if s.hunting[bogie] and sum(s.hunting.values()) == 1]
            for bogie in ("bogie_leading", "bogie_trailing")
        }
        last = alone["bogie_trailing"]
        rows += [
            number_row("V15", "hunting dies, down from 118 m/s", DEATH_MPS, branch.death(), note=_ended(branch)),
            word_row(
                "V16",
                "which bogie recovers at the lower speed",
                "trailing",
                "trailing" if last and not alone["bogie_leading"] else "not the trailing one",
                f"it alone hunts from {last[0]:g} to {last[-1]:g} m/s" if last else "",
            ),
        ]
    return rows


def one_bogie(table: ContactTable, rtol: float) -> list[Row]:
    """V17: from a small kick at 114 m/s the leading bogie soon stops hunting on the way down, the trailing one not."""
    model = published_wagon(table)
    speeds = (114.0, *steps_between(114.0, 80.0, 1.0))  # 20 s at the first
    settings = RampSettings(rtol=rtol, atol=1e-3 * rtol)
    branch = ramp_branch(model, speeds, {"wheelset_ll.y": KICK_M}, settings=settings)
    late = branch.steps[len(branch.steps) // 2 :]
    hunting = sorted({name.removeprefix("bogie_") for s in late for name, on in s.hunting.items() if on})
    leading, last = branch.death("bogie_leading"), branch.steps[-1]
    return [
        word_row(
            "V17",
            "down from 114 m/s after a small kick: who goes on",
            "trailing",
            " and ".join(hunting) or "none",
            f"leading stops at {leading} m/s; {_millimetres(last)} mm at {last.value:g} m/s",
        )
    ]


def tight_curve(table: ContactTable, rtol: float) -> list[Row]:
    """V22: resonance of the leading wheelset at R = 600 m."""
    model = published_wagon(table, track=Track(radius_m=600.0, cant_mm=CANT_MM), precession="off")
    settings = RampSettings(dwell_s=15.0, rtol=rtol, atol=1e-3 * rtol)
    branch = ramp_branch(model, steps_between(30.0, 44.0, 1.0), {"wheelset_ll.y": KICK_M}, settings=settings)
    peak = _largest(branch, "wheelset_ll.y")
    shown = f"amplitude {1e3 * peak.amplitude[0]:.2f} mm"
    return [
        number_row("V22", "R = 600 m: resonance of the leading wheelset", RESONANCE_MPS, peak.value, note=shown),
        number_row(
            "V22",
            "R = 600 m: its frequency",
            RESONANCE_HZ,
            float(peak.frequency_hz[0]),
            CURVE_FREQUENCY_TOLERANCE_HZ,
            "Hz",
        ),
    ]


def wide_curve(table: ContactTable, rtol: float, radius_m: float) -> list[Row]:
    """V26 (and V24 at 1.6 km): the first speed from 20 m/s up, as in the source, at which oscillation appears."""
    model = published_wagon(table, track=Track(radius_m=radius_m, cant_mm=CANT_MM))
    found = _unstable(model, tuple(np.arange(16.0, 30.5, 1.0)))
    settings = RampSettings(dwell_s=15.0, hunting_m=CURVE_HUNTING_M, rtol=rtol, atol=1e-3 * rtol)
    top = 32.0 if radius_m == 1600.0 else 30.0
    steps: list[RampStep] = []
    for step in ramp(model, steps_between(CURVE_START_MPS, top, 0.5), {"wheelset_ll.y": KICK_M}, settings=settings):
        steps.append(step)
        if radius_m != 1600.0 and len(steps) > 1 and all(s.hunts for s in steps[-2:]):
            break
    branch = Branch(name="up", parameter="speed_mps", steps=tuple(steps))
    rows = [
        number_row(
            "V26",
            f"R = {radius_m:g} m: oscillation appears",
            CURVE_MPS[radius_m],
            branch.onset(),
            note=f"eigenvalues cross at {found[0].speed_mps:.2f} m/s" if found else "no eigenvalues cross",
        )
    ]
    if radius_m == 1600.0:
        last = branch.steps[-1]
        note = f"{last.frequency_hz[0]:.2f} Hz at {last.value:g} m/s (published: 3.32 Hz)"
        rows.append(number_row("V24", "R = 1600 m: stability lost", WIDE_CURVE_MPS, branch.onset(), note=note))
    return rows


Compute = Callable[[ContactTable, float], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A computation and the ids of the rows it gives. `cost` orders the work: dear ones first."""

    ids: tuple[str, ...]
    compute: Compute
    cost: float


JOBS: tuple[Job, ...] = (
    Job(ids=("V1",), compute=fixed_car_linear, cost=0.1),
    Job(ids=("V3", "V4"), compute=fixed_car_down, cost=60.0),
    Job(ids=("V6",), compute=fixed_car_kick, cost=2.0),
    *(
        Job(
            ids=("V12", "V13", "T0.15") if mu == 0.15 else (f"T{mu:.2f}",),
            compute=partial(linear, friction=mu),
            cost=0.1,
        )
        for mu in FRICTION_MPS
    ),
    *(
        Job(
            ids=("V15", "V16", "T0.15") if mu == 0.15 else (f"T{mu:.2f}",),
            compute=partial(down, friction=mu),
            cost=118.0 - FRICTION_MPS[mu][1],
        )
        for mu in FRICTION_MPS
    ),
    Job(ids=("V17",), compute=one_bogie, cost=35.0),
    Job(ids=("V22",), compute=tight_curve, cost=30.0),
    *(
        Job(
            ids=("V24", "V26") if radius == 1600.0 else ("V26",),
            compute=partial(wide_curve, radius_m=radius),
            cost=60.0 if radius == 1600.0 else 20.0,
        )
        for radius in CURVE_MPS
    ),
)
IDS = tuple(sorted({i for job in JOBS for i in job.ids}, key=lambda i: (i[0] != "V", float(i[1:]))))


def published_rows(
    table: ContactTable, only: Sequence[str] = (), *, workers: int = 1, rtol: float = 1e-4
) -> Iterator[Row]:
    """Compute the rows and hand them over as they come, in no order; `sorted_rows` puts them in that of the source.

    Parameters
    ----------
    table : ContactTable
        The one released with the source.
    only : sequence of str
        Ids out of `IDS`; default: all.
    workers : int
        Threads (the kernels run side by side); results do not depend on it.
    rtol : float
        Relative tolerance of the time integration; the absolute one is a thousandth of it. At 1e-5 hunting dies within
        0.1 m/s of the same speed (40 s at every 0.1 m/s), and at the same half step in V4.
    """
    for name in only:
        if name not in IDS:
            raise InputError("only", f"{name!r} is not a row, {nearest(name, list(IDS))}", ", ".join(IDS))
    wanted = set(only or IDS)
    jobs = sorted((job for job in JOBS if wanted & set(job.ids)), key=lambda job: -job.cost)
    pool = ThreadPoolExecutor(max_workers=workers)
    # eigenvalues side by side: threads of the linear algebra would only wait for each other
    with threadpool_limits(limits=1, user_api="blas"):
        try:
            running = [pool.submit(job.compute, table, rtol) for job in jobs]
            for future in as_completed(running):
                yield from (row for row in future.result() if row.id in wanted)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def sorted_rows(rows: Sequence[Row]) -> list[Row]:
    """In the order of the source."""
    return sorted(rows, key=lambda row: (IDS.index(row.id), row.quantity.startswith("R = 600 m: its"), row.quantity))


def _fixed_car(table: ContactTable) -> Model:
    return published_wagon(table, "cooperrider-fixed-car", precession="off")


def _unstable(model: Model, speeds: Sequence[float]) -> list[Crossing]:
    """Speeds at which hunting modes turn unstable."""
    return [c for c in turning_unstable(stability(model, speeds).crossings) if c.frequency_hz > 0.0]


def _down(model: Model, speeds: Sequence[float], start: dict[str, float], rtol: float) -> Branch:
    """Steps down until three speeds without hunting, or the last.

    Hunting is told as in the source, by the amplitude over the last half of the dwell alone: a motion that dies within
    a dwell counts as hunting there, and the next speed as the first without.
    """
    settings = RampSettings(decay=0.0, rtol=rtol, atol=1e-3 * rtol)
    steps: list[RampStep] = []
    for step in ramp(model, speeds, start, settings=settings):
        steps.append(step)
        if any(s.hunts for s in steps) and len(steps) > 3 and not any(s.hunts for s in steps[-3:]):
            break
    return Branch(name="down", parameter="speed_mps", steps=tuple(steps))


def _largest(branch: Branch, channel: str) -> RampStep:
    sizes = np.nan_to_num(branch.amplitude(channel), nan=-1.0)
    return branch.steps[int(np.argmax(sizes))]


def _millimetres(step: RampStep) -> str:
    return ", ".join(f"{1e3 * a:.2g}" for a in step.amplitude)


def _ended(branch: Branch) -> str:
    """What a reader must know of a branch that did not end as expected."""
    last = branch.steps[-1]
    if not last.success:
        return f"{last.status.name.lower()} at {last.value:g} m/s"
    return f"still hunting at {last.value:g} m/s" if last.hunts else ""
