"""``railsweep repair``: find damage in a store and queue exactly the damaged blocks again."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("store", metavar="FOLDER.zarr", help="a store made by 'railsweep run'")
    parser.add_argument("--dry-run", action="store_true", help="only say what is damaged")
    parser.add_argument("--take-over", action="store_true", help="take the lock even if its holder may be alive")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Mend a store; 1 when something is damaged and was left so (--dry-run)."""
    from dataclasses import asdict

    from railsweep.sweeps.lock import StoreLock
    from railsweep.sweeps.repair import examine, repair
    from railsweep.sweeps.store import open_store

    store = open_store(args.store)
    if args.dry_run:
        damage = examine(store, mend=False)
    else:
        with StoreLock(store.own, force=args.take_over):
            damage = repair(store)
    if args.json:
        print(json.dumps({"store": str(store.path), **asdict(damage), "requeued": damage.requeued}))
    else:
        for title, items in asdict(damage).items():
            if items:
                print(f"{title}: {len(items)}: {', '.join(map(str, items[:10]))}{', ...' if len(items) > 10 else ''}")
        print("no damage" if not damage else f"{len(damage.requeued)} blocks {'to be ' * args.dry_run}queued again")
        if damage.requeued and not args.dry_run:
            print(f"to go on: railsweep resume {store.path}")
    return 1 if damage and args.dry_run else 0
