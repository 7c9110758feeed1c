"""Time to build a contact table: 0.01 mm over +-17 mm (3,401 shifts, both wheels), warm, and again from the cache.

Prints a table and appends to bench/history/contact.json. Run: python bench/contact.py
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable

from history import append

from railsweep.engine.contact_build import build_contact_table
from railsweep.engine.contact_patch import PATCHES

REPEATS = 5
TARGET_S = {"build": 3.0, "cache": 0.1}
PAIRING = {"wheel": "s1002", "rail": "uic60", "range_mm": 17.0, "step_mm": 0.01}


def timed(work: Callable[[], object]) -> list[float]:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RAILSWEEP_CACHE"] = folder
        for patch in PATCHES:
            # an inclination of its own on the right side: nothing is taken from symmetry
            for sides, extra in (("mirrored", {}), ("different", {"inclination_right": 1 / 40 + 1e-9})):
                options = {**PAIRING, **extra, "patch": patch}
                table = build_contact_table(**options)  # compiles the kernels, fills the cache
                build = timed(lambda o=options: build_contact_table(**o, cache=False))
                cache = timed(lambda o=options: build_contact_table(**o))
                rows.append(
                    {
                        "patch": patch,
                        "sides": sides,
                        "shifts": int(table.shift_m.size),
                        "build_s": statistics.median(build),
                        "cache_s": statistics.median(cache),
                    }
                )
    print(f"{'patch':<12}{'sides':<11}{'shifts':>7}{'build s':>10}{'cache s':>10}   (targets: 3 s, 0.1 s)")
    for row in rows:
        print(f"{row['patch']:<12}{row['sides']:<11}{row['shifts']:>7}{row['build_s']:>10.3f}{row['cache_s']:>10.4f}")
    append("contact", {"target_s": TARGET_S, "rows": rows})


if __name__ == "__main__":
    main()
