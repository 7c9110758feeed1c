"""``railsweep validate``: check a study file, or a store against its own records, without computing or writing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    parser.add_argument("path", metavar="STUDY.toml|FOLDER.zarr", help="a study file or a store")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """0 when all is well, 1 for a damaged store; a wrong study file is refused."""
    from dataclasses import asdict

    path = Path(args.path)
    if path.is_dir():
        from railsweep.sweeps import provenance
        from railsweep.sweeps.repair import examine
        from railsweep.sweeps.store import open_store

        store = open_store(path)
        provenance.read(store.provenance_file)
        damage = examine(store, mend=False)
        facts = {"store": str(path), "valid": not damage, **asdict(damage)}
        text = "no damage" if not damage else "damaged; see 'railsweep repair --dry-run'"
    else:
        from railsweep.sweeps.session import evaluator_of
        from railsweep.sweeps.study import dimensions, load_study

        study = load_study(path)
        evaluator_of(study, path.resolve().parent)
        damage = None
        facts = {
            "study": study.name,
            "valid": True,
            "cases": study.cases,
            "digest": study.digest,
            "dimensions": dict(dimensions(study.axes)),
        }
        text = f"{study.name}: {study.cases} cases, digest {study.digest[:16]}"
    print(json.dumps(facts) if args.json else text)
    return 1 if damage else 0
