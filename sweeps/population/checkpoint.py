"""A state of a search in a file: one JSON document with the arrays as base64 of their bytes. No pickle.

Written by temp file, fsync and rename, so that after a kill there is the state before or the state after, whole.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from railsweep.engine.errors import InputError
from railsweep.sweeps.ledger import write_durably
from railsweep.sweeps.population.optimiser import State

FORMAT = 1
TYPES = ("<f8", "<i8", "|b1")  # all that a state holds


def to_text(state: State, facts: dict[str, Any] | None = None) -> str:
    """The document of a state; `facts` are plain data of the caller (whose state it is)."""
    arrays = {}
    for name, value in sorted(state.items()):
        array = np.asarray(value)
        kind = array.dtype.newbyteorder("<").str
        if kind not in TYPES:
            raise InputError(f"state {name}", f"has the type {array.dtype}", ", ".join(TYPES))
        raw = np.ascontiguousarray(array).astype(kind, copy=False).tobytes()
        arrays[name] = {"type": kind, "shape": list(array.shape), "bytes": base64.b64encode(raw).decode("ascii")}
    return json.dumps({"format": FORMAT, "facts": facts or {}, "arrays": arrays}, sort_keys=True)


def from_text(text: str, where: str = "checkpoint") -> tuple[State, dict[str, Any]]:
    """State and facts of a document."""
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']!r}")
        state: State = {}
        for name, entry in document["arrays"].items():
            if entry["type"] not in TYPES:
                raise ValueError(f"type {entry['type']!r} of {name}")
            shape = tuple(int(n) for n in entry["shape"])
            array = np.frombuffer(base64.b64decode(entry["bytes"], validate=True), dtype=entry["type"])
            state[str(name)] = array.reshape(shape).copy()
        facts = document["facts"]
        if not isinstance(facts, dict):
            raise ValueError("facts are no table")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(where, f"is not a checkpoint: {error}", "a file written by a search") from None
    return state, facts


def save(path: Path, state: State, facts: dict[str, Any] | None = None) -> None:
    """Replace the file by this state."""
    write_durably(path, to_text(state, facts))


def load(path: Path) -> tuple[State, dict[str, Any]]:
    """State and facts of a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {error}", "a file written by a search") from None
    return from_text(text, str(path))
