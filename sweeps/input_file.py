"""Files that a study names: found beside it, part of its identity, kept in its store.

A worker and a store that has moved know them by the path in the study, whatever lies on the disk meanwhile.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from railsweep.engine.document import Section, read_limited
from railsweep.engine.errors import InputError, shown

MAXIMUM_FILE_BYTES = 256 * 2**20
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def checked_name(where: str, name: str) -> str:
    """A word that is safe as a file name, a job name and a dimension."""
    if not NAME.fullmatch(name):
        raise InputError(where, f"is {shown(name)}", "letters, digits, '_', '.', '-'; not starting with '.' or '-'")
    return name


def inner_path(where: str, text: str) -> Path:
    """A relative path that stays inside its folder and holds safe names only."""
    parts = text.split("/")
    if not all(NAME.fullmatch(part) for part in parts):
        raise InputError(
            where, f"is {shown(text)}", "a path inside the folder of the study: names joined by '/', no '..'"
        )
    return Path(*parts)


class InputFiles:
    """Files that a study names: read beside it, kept with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents: dict[str, bytes] = {}

    def read(self, where: str, name: str) -> bytes:
        """Contents of a file; `where` names the key of the study that asks for it."""
        path = self.folder / inner_path(where, name)
        try:
            self.contents[name] = read_limited(path, MAXIMUM_FILE_BYTES, "an input file")
        except InputError as error:
            raise InputError(where, f"names {shown(name)}, which {error.problem}", error.allowed) from None
        return self.contents[name]

    def irregularity(self, section: Section, key: str) -> str:
        """The text of a rough track, checked: a spectrum by name, or a file, which may name another one."""
        from railsweep.engine.irregularity_file import load_irregularity

        text, where = section.text(key), section.where(key)
        try:
            load_irregularity(text, lambda path, limit, kind: self.read(where, path.as_posix()))
        except InputError as error:
            if error.where == where:
                raise
            place = error.where.removeprefix("irregularity").strip(": ")
            raise InputError(where, f"{place}: {error.problem}" if place else error.problem, error.allowed) from None
        return text


def rough_track(model: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    """Settings of a model, the text of its irregularities replaced by what it and the kept files say."""
    from railsweep.engine.irregularity_file import load_irregularity

    if "irregularity" not in model:
        return model
    rough = load_irregularity(model["irregularity"], lambda path, limit, kind: files[path.as_posix()])
    return {**model, "irregularity": rough}
