"""``railsweep status``: how far a store is; works from another shell while it is written to, and after a crash."""

from __future__ import annotations

import argparse
import json
from calendar import timegm
from time import strptime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from railsweep.sweeps.store import StudyStore

MOST_CASES_PER_AXIS = 2_000_000  # the status array is read for the totals per axis up to this size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("store", metavar="FOLDER.zarr|URL", help="a store made by 'railsweep run'")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the state of a store."""
    from railsweep.app.progress import duration
    from railsweep.app.run_command import totals
    from railsweep.sweeps.lock import alive, read_holder
    from railsweep.sweeps.progress import present_rate, progress_of
    from railsweep.sweeps.remote import open_anywhere

    store = open_anywhere(args.store)
    progress = progress_of(store)
    holder = read_holder(store.own / "lock.json")
    living = None if holder is None else alive(holder)
    driver = None
    if holder is not None:
        driver = {"host": holder.host, "pid": holder.pid, "since": holder.since, "alive": living}
    progress.outcome = (
        "finished" if not progress.left else "pending" if not (holder and living is not False) else "running"
    )
    rate = None
    if holder is not None and progress.outcome == "running":
        rate = present_rate(store, timegm(strptime(holder.since, "%Y-%m-%dT%H:%M:%SZ")))
    seconds_left = None if not rate else progress.left / rate
    axes = per_axis(store)
    if args.json:
        facts = totals(progress)
        for key in ("computed", "compute_seconds", "write_seconds", "blocks_lost", "problem"):
            del facts[key]
        facts |= {"cases_per_s": rate, "seconds_left": seconds_left}
        print(json.dumps({"store": str(store.path), **facts, "driver": driver, "axes": axes}))
        return 0
    kinds = ", ".join(f"{n} {name.lower()}" for name, n in sorted(progress.statuses.items()))
    print(
        f"{progress.outcome}: {progress.done} of {progress.cases} cases, "
        f"{progress.failed} failed ({kinds or 'none yet'})"
    )
    if driver is not None:
        word = {True: "running", False: "dead", None: "on another host"}[living]
        print(f"driver: process {driver['pid']} on {driver['host']} since {driver['since']} ({word})")
    if rate and seconds_left is not None:
        print(f"{progress.left} left, {rate:.3g}/s, {duration(seconds_left)} to go")
    for name, rows in axes.items():
        print(f"{name}:")
        for row in rows:
            print(f"  {row['value']:<12} done {row['done']:>8}  failed {row['failed']:>8}  left {row['left']:>8}")
    if progress.outcome == "pending":
        print(f"to go on: railsweep resume {store.path}")
    return 0


def per_axis(store: StudyStore) -> dict[str, list[dict[str, Any]]]:
    """Done, failed and left along every axis; empty for a store too large to count on the fly."""
    import numpy as np

    from railsweep.sweeps.quantity import GOOD, PENDING

    if store.plan.cases > MOST_CASES_PER_AXIS:
        return {}
    status = np.full(store.plan.shape, PENDING, dtype=np.uint8)
    array = store.arrays["status"]
    for entry in store.ledger.finished():
        region = store.plan.region(entry["block"])
        status[region] = array[region]
    found = {}
    for axis in store.plan.axes:
        dimension = store.plan.names.index(axis.zipped or axis.name)
        if axis.size > 50:
            continue
        rows = []
        for i in range(axis.size):
            part = np.take(status, i, axis=dimension)
            left = int((part == PENDING).sum())
            failed = int((~np.isin(part, (*GOOD, PENDING))).sum())
            value = axis.value(i)
            rows.append({"value": repr(value), "done": int(part.size) - left, "failed": failed, "left": left})
        found[axis.name] = rows
    return found
