"""Strict reading of TOML documents: every value is asked for by name and kind; what was not asked for is an error."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

from railsweep.engine.errors import InputError, nearest, shown

MAXIMUM_BYTES = 4 * 2**20
MAXIMUM_DEPTH = 64  # brackets deeper than this are no vehicle


def read_toml(path: Path) -> Section:
    """Parse a TOML file into a `Section` whose errors name the file and the key."""
    return parse_toml(read_limited(path, MAXIMUM_BYTES, "a TOML file"), str(path))


def read_limited(path: Path, limit: int, kind: str) -> bytes:
    """Contents of a file of at most `limit` bytes; never reads more, whatever the path leads to."""
    try:
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise InputError(str(path), f"cannot be read: {getattr(error, 'strerror', '') or error}", kind) from None
    if len(raw) > limit:
        raise InputError(str(path), f"more than {limit} bytes", f"at most {limit} bytes")
    return raw


def parse_toml(raw: bytes, where: str) -> Section:
    """Parse TOML bytes; `where` names the source in errors."""
    try:
        text = raw.decode("utf-8")
        if text.count("[") + text.count("{") > 0 and _depth(text) > MAXIMUM_DEPTH:
            raise InputError(where, "is nested too deeply", f"at most {MAXIMUM_DEPTH} levels")
        for number, line in enumerate(text.splitlines(), start=1):
            # tomllib takes a time quadratic in the parts of a dotted key
            if line.count(".") > MAXIMUM_DEPTH and _dotted(line) > MAXIMUM_DEPTH:
                raise InputError(f"{where}: line {number}", "has a key of too many parts", f"at most {MAXIMUM_DEPTH}")
        data = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InputError(where, "is not UTF-8 text", "a TOML file") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(where, f"is not valid TOML: {error}", "see toml.io") from None
    return Section(data, where, "")


def _dotted(line: str) -> int:
    """Most dots in a row that no comma, equals sign or bracket interrupts; 0 for a comment."""
    if line.lstrip().startswith("#"):
        return 0
    return max(part.count(".") for part in re.split(r"[,={}\[\]]", line))


def _depth(text: str) -> int:
    deepest = level = 0
    for character in text:
        if character in "[{":
            level += 1
            deepest = max(deepest, level)
        elif character in "]}" and level:
            level -= 1
    return deepest


class Section:
    """One table of a document. Each getter marks its key as known; `finish` refuses the others."""

    def __init__(self, data: dict[str, Any], file: str, path: str) -> None:
        self.data, self.file, self.path = data, file, path
        self.known: list[str] = []

    def where(self, key: str = "") -> str:
        """File and key path, for messages."""
        path = ".".join(part for part in (self.path, key) if part)
        return f"{self.file}: {path}" if path else self.file

    def has(self, key: str) -> bool:
        """Is the key there? (It counts as known.)"""
        self.known.append(key)
        return key in self.data

    def _get(self, key: str, kind: str) -> Any:
        if not self.has(key):
            raise InputError(self.where(key), "is missing", kind)
        return self.data[key]

    def text(self, key: str, default: str | None = None, *, choices: tuple[str, ...] = ()) -> str:
        """A string, perhaps one of `choices`."""
        if not self.has(key) and default is not None:
            return default
        value = self._get(key, "one of " + ", ".join(choices) if choices else "a string")
        if not isinstance(value, str):
            raise InputError(self.where(key), f"is {shown(value)}", "a string")
        if choices and value not in choices:
            raise InputError(self.where(key), f"is {shown(value)}, {nearest(value, list(choices))}", ", ".join(choices))
        return value

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        if not self.has(key):
            return default
        value = self.data[key]
        if not isinstance(value, bool):
            raise InputError(self.where(key), f"is {shown(value)}", "true or false")
        return value

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        above: float = -math.inf,
        least: float = -math.inf,
        most: float = math.inf,
    ) -> float:
        """A finite number with above < value, least <= value <= most."""
        if not self.has(key) and default is not None:
            return default
        return check_number(self.where(key), self._get(key, "a number"), above=above, least=least, most=most)

    def numbers(
        self, key: str, default: list[float] | None = None, *, length: int = 0, least: float = -math.inf
    ) -> list[float]:
        """A list of finite numbers, of a given length if `length` > 0."""
        if not self.has(key) and default is not None:
            return default
        allowed = f"a list of {length} numbers" if length else "a list of numbers"
        value = self._get(key, allowed)
        if not isinstance(value, list) or (length and len(value) != length):
            raise InputError(self.where(key), f"is {shown(value)}", allowed)
        return [check_number(self.where(f"{key}[{i}]"), item, least=least) for i, item in enumerate(value)]

    def words(self, key: str, default: list[str] | None = None, *, choices: tuple[str, ...] = ()) -> list[str]:
        """A list of different strings, each one of `choices`."""
        if not self.has(key) and default is not None:
            return default
        value = self._get(key, "a list of strings")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(self.where(key), f"is {shown(value)}", "a list of strings")
        for item in value:
            if choices and item not in choices:
                raise InputError(
                    self.where(key), f"holds {shown(item)}, {nearest(item, list(choices))}", ", ".join(choices)
                )
        if len(set(value)) != len(value):
            raise InputError(self.where(key), f"repeats an entry: {shown(value)}", "different entries")
        return value

    def section(self, key: str) -> Section:
        """A sub-table."""
        value = self._get(key, "a table")
        if not isinstance(value, dict):
            raise InputError(self.where(key), f"is {shown(value)}", "a table")
        return Section(value, self.file, f"{self.path}.{key}" if self.path else key)

    def sections(self, key: str, *, most: int) -> list[Section]:
        """An array of tables, perhaps empty or absent."""
        if not self.has(key):
            return []
        value = self.data[key]
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise InputError(self.where(key), f"is {shown(value)}", f"tables written as [[{key}]]")
        if len(value) > most:
            raise InputError(self.where(key), f"has {len(value)} entries", f"at most {most}")
        prefix = f"{self.path}.{key}" if self.path else key
        return [Section(item, self.file, f"{prefix}[{i}]") for i, item in enumerate(value)]

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self.data:
            if key not in self.known:
                raise InputError(
                    self.where(key),
                    f"is not a key of this table, {nearest(key, self.known)}",
                    ", ".join(sorted(set(self.known))),
                )


def check_number(
    where: str, value: Any, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf
) -> float:
    """A finite float within bounds, or an InputError."""
    bounds = []
    if above > -math.inf:
        bounds.append(f"above {above:g}")
    if least > -math.inf:
        bounds.append(f"at least {least:g}")
    if most < math.inf:
        bounds.append(f"at most {most:g}")
    allowed = "a finite number" + (" " + " and ".join(bounds) if bounds else "")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(where, f"is {shown(value)}", allowed)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not (number > above or above == -math.inf) or number < least or number > most:
        raise InputError(where, f"is {shown(value)}", allowed)
    return number
