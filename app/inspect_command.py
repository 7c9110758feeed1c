"""``railsweep inspect``: what a store holds, which cases failed and why, or one case in full."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from railsweep.app import option
from railsweep.engine.errors import InputError

if TYPE_CHECKING:
    from railsweep.sweeps.store import StudyStore

MOST_FAILURES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("store", metavar="FOLDER.zarr|URL", help="a store made by 'railsweep run'")
    parser.add_argument("--case", metavar="N", help="show this case (0 is the first)")
    parser.add_argument("--failures", metavar="N", default=str(MOST_FAILURES), help="list at most N failed cases")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print a store or a case of it."""
    from railsweep.sweeps.remote import open_anywhere
    from railsweep.sweeps.study import plain

    store = open_anywhere(args.store)
    facts = plain(one_case(store, whole("--case", args.case)) if args.case is not None else overview(store, args))
    if args.json:
        print(json.dumps(facts))
        return 0
    for key, value in facts.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, item in value.items():
                print(f"  {name}: {item}")
        elif isinstance(value, list):
            print(f"{key}:")
            for item in value:
                print("  " + (", ".join(f"{k} {v}" for k, v in item.items()) if isinstance(item, dict) else str(item)))
        else:
            print(f"{key}: {value}")
    return 0


def whole(name: str, text: str) -> int:
    """A whole number >= 0 from the command line."""
    number = option.number(name, text, above=-0.5)
    if number != int(number):
        raise InputError(name, f"is {text}", "a whole number")
    return int(number)


def one_case(store: StudyStore, case: int) -> dict[str, Any]:
    """Everything known about one case."""
    from railsweep.sweeps.quantity import CaseStatus

    position = store.plan.position(case)
    block = store.plan.block_of(position)
    values = store.plan.values(position)
    finished = store.ledger.read(block) is not None
    results: dict[str, Any] = {}
    if finished:
        place = tuple(p - s.start for p, s in zip(position, store.plan.region(block), strict=True))
        for name, array in store.read(block).items():
            item = array[place]
            results[name] = item.tolist() if hasattr(item, "tolist") else item
        results["status"] = CaseStatus(int(results["status"])).name.lower()
    return {
        "case": case,
        "block": block,
        "identity": store.plan.identity(values),
        "seed": store.plan.seed(values),
        "parameters": dict(zip(store.plan.parameters, values, strict=True)),
        "finished": finished,
        "results": results,
    }


def overview(store: StudyStore, args: argparse.Namespace) -> dict[str, Any]:
    """Study, shape, variables, sessions and failed cases."""
    from railsweep.sweeps import provenance

    record = provenance.read(store.provenance_file)
    return {
        "study": store.study.name,
        "quantity": store.study.quantity,
        "vehicle": store.study.vehicle_name,
        "digest": store.study.digest,
        "dimensions": dict(zip(store.plan.names, store.plan.shape, strict=True)),
        "blocks": store.plan.blocks,
        "block_shape": list(store.plan.block_shape),
        "variables": {v.name: f"{v.title} [{v.unit}]" for v in store.variables},
        "software": record["software"],
        "sessions": [
            {k: s[k] for k in ("started", "ended", "outcome", "executor", "workers", "host")} | s["counters"]
            for s in record["sessions"]
        ],
        "failures": failures(store, whole("--failures", args.failures)),
    }


def failures(store: StudyStore, most: int) -> list[dict[str, Any]]:
    """The first failed cases with their reasons; only blocks that have failures are read."""
    import numpy as np

    from railsweep.sweeps.quantity import GOOD, CaseStatus

    found: list[dict[str, Any]] = []
    for entry in store.ledger.finished():
        if len(found) >= most:
            break
        if not entry["failed"]:
            continue
        arrays = store.read(entry["block"])
        first = [s.start for s in store.plan.region(entry["block"])]
        for place in np.argwhere(~np.isin(arrays["status"], GOOD))[: most - len(found)]:
            position = tuple(int(f + p) for f, p in zip(first, place, strict=True))
            values = store.plan.values(position)
            found.append(
                {
                    "case": store.plan.number(position),
                    **dict(zip((a.name for a in store.plan.axes), values, strict=True)),
                    "status": CaseStatus(int(arrays["status"][tuple(place)])).name.lower(),
                    "reason": str(arrays["reason"][tuple(place)]),
                }
            )
    return found
