"""Linear critical speed of the Cooperrider wagon over the track gauge, on tables built from S1002 and 60E1 (1:40).

Three patch models, gauge 1432 to 1441 mm. Writes gauge_study.json and gauge_study.png beside this file.
Run: python examples/gauge_study.py
"""

import json
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from railsweep.engine import assemble, load_vehicle
from railsweep.engine.conicity import radius_difference
from railsweep.engine.contact_build import contact_table
from railsweep.engine.contact_patch import PATCHES
from railsweep.engine.contact_table import ContactTable
from railsweep.engine.linear_stability import stability

VEHICLE = "cooperrider"
GAUGES_MM = np.arange(1432.0, 1441.5, 1.0)
SPEEDS_MPS = np.arange(10.0, 281.0, 5.0)
GRAVITY_MPS2 = 9.81


def centre_conicity(table: ContactTable) -> float:
    """(r_left - r_right) / 2y at 0.05 mm.

    With several contacts the radius is their mean by load, which moves fast where one of them vanishes (`multi` at
    1434 mm, where the outer contact fades over the smoothing length).
    """
    y = 5e-5
    return float(np.interp(y, table.shift_m, radius_difference(table)) / (2.0 * y))


def main() -> None:
    vehicle = load_vehicle(VEHICLE)
    wheelsets = [body for body in vehicle.bodies if body.is_wheelset]
    gravity = vehicle.gravity_mps2 or GRAVITY_MPS2
    load = sum(body.mass_kg for body in vehicle.bodies) * gravity / (2 * len(wheelsets))
    rows = []
    for patch in PATCHES:
        for gauge in GAUGES_MM:
            table = contact_table(
                f"s1002/uic60@1:40,gauge={gauge:g},patch={patch}",
                wheel_load_n=load,
                rolling_radius_m=wheelsets[0].rolling_radius_m,
                young_modulus_pa=vehicle.contact.young_modulus_pa,
                poisson_ratio=vehicle.contact.poisson_ratio,
            )
            study = stability(assemble(vehicle, contact=table, speed_mps=50.0), SPEEDS_MPS.tolist())
            failed = [point for point in study.points if point.error]
            critical = study.critical_speed_mps
            # unstable already at the first speed: no crossing from below lies in the range
            if study.points[0].unstable:
                critical = None
            rows.append(
                {
                    "patch": patch,
                    "gauge_mm": float(gauge),
                    "critical_speed_mps": critical,
                    "centre_conicity": centre_conicity(table),
                    "failed_speeds": len(failed),
                }
            )
            shown = "none" if critical is None else f"{critical:7.2f} m/s"
            print(f"{patch:<11} {gauge:7.1f} mm  conicity {rows[-1]['centre_conicity']:.4f}  critical {shown}")
    here = Path(__file__).parent
    report = {
        "vehicle": VEHICLE,
        "formulation": "physics",
        "wheel_load_n": load,
        "speeds_mps": [float(SPEEDS_MPS[0]), float(SPEEDS_MPS[-1])],
        "rows": rows,
    }
    (here / "gauge_study.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for patch in PATCHES:
        own = [row for row in rows if row["patch"] == patch]
        gauges = [row["gauge_mm"] for row in own]
        left.plot(
            gauges,
            [np.nan if r["critical_speed_mps"] is None else r["critical_speed_mps"] for r in own],
            "o-",
            label=patch,
        )
        right.semilogy(gauges, [row["centre_conicity"] for row in own], "o-", label=patch)
    left.set(xlabel="gauge [mm]", ylabel="linear critical speed [m/s]", title=f"{VEHICLE}, S1002 on 60E1, 1:40")
    right.set(xlabel="gauge [mm]", ylabel="(r_l - r_r) / 2y at 0.05 mm [-]", title="conicity in the centre")
    for ax in (left, right):
        ax.grid(alpha=0.3)
        ax.legend()
    figure.savefig(here / "gauge_study.png", dpi=110)


if __name__ == "__main__":
    main()
