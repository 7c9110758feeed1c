"""The one error users see for bad input: it names the place, the value and what is allowed."""

from difflib import get_close_matches
from typing import Any


class InputError(ValueError):
    """Input that railsweep refuses.

    Parameters
    ----------
    where : str
        File and key path of the offending input, for example ``wagon.toml: body[2].mass_kg``.
    problem : str
        What is wrong, with the value.
    allowed : str
        What would be accepted.
    """

    def __init__(self, where: str, problem: str, allowed: str = "") -> None:
        self.where, self.problem, self.allowed = where, problem, allowed
        super().__init__(f"{where}: {problem}" + (f" (allowed: {allowed})" if allowed else ""))


def shown(value: Any) -> str:
    """A short, safe rendering of a refused value."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, tables within tables
        return f"<{type(value).__name__} too large to show>"
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, options: list[str]) -> str:
    """A sentence fragment that suggests the closest valid word, or lists what exists."""
    close = get_close_matches(word, options, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "one of " + ", ".join(sorted(options)[:30]) + (", ..." if len(options) > 30 else "")
