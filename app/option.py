"""Strict reading of option values: one number, or a set of numbers written as a range or a list.

Numbers are read as decimals, so that ``0.1:0.5:0.1`` has five members and each is the float nearest to the
decimal one: the third is 0.3 and not 0.30000000000000004.
"""

from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path

from railsweep.engine.errors import InputError, shown

MOST_VALUES = 100_000
PLOT_SUFFIXES = (".png", ".pdf", ".svg")


def number(option: str, text: str, *, above: float | None = None, at_most: float | None = None) -> float:
    """Read one finite number, strictly greater than `above` and at most `at_most`."""
    return float(_decimal(option, text, above=above, at_most=at_most))


def numbers(option: str, text: str, *, above: float | None = None, at_most: float | None = None) -> tuple[float, ...]:
    """Read ``A:B:STEP`` (B included when it is on the grid), ``A,B,C`` in ascending order, or one number."""
    if ":" in text:
        return _range(option, text, above, at_most)
    words = text.split(",")
    if len(words) > MOST_VALUES:
        raise InputError(option, f"{len(words)} values", f"at most {MOST_VALUES}")
    values = tuple(number(option, word, above=above, at_most=at_most) for word in words)
    for left, right in pairwise(values):
        if right <= left:
            raise InputError(option, f"{right:g} follows {left:g} in the list", "ascending values")
    return values


def plot_file(option: str, text: str) -> Path:
    """Read the name of a picture, refusing before any computation what could not be written after it."""
    path = Path(text)
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise InputError(option, f"unknown picture format {shown(text)}", ", ".join(PLOT_SUFFIXES))
    if not path.parent.is_dir():
        raise InputError(option, f"no such folder {shown(str(path.parent))}", "a file in an existing folder")
    return path


def _decimal(option: str, text: str, *, above: float | None = None, at_most: float | None = None) -> Decimal:
    allowed = "a finite number"
    if above is not None:
        allowed += f" > {above:g}"
    if at_most is not None:
        allowed += (" and" if above is not None else "") + f" <= {at_most:g}"
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise InputError(option, f"{shown(text)} is not a number", allowed) from None
    # The second test refuses 1e999, a finite decimal that is an infinite float.
    if not value.is_finite() or float(value) in (float("inf"), float("-inf")):
        raise InputError(option, f"{shown(text)} is not finite", allowed)
    if (above is not None and value <= Decimal(above)) or (at_most is not None and value > Decimal(at_most)):
        raise InputError(option, f"{shown(text)} is out of range", allowed)
    return value


def _range(option: str, text: str, above: float | None, at_most: float | None) -> tuple[float, ...]:
    words = text.split(":")
    if len(words) != 3:
        raise InputError(option, f"{shown(text)} is not a range", "A:B:STEP, for example 20:120:5")
    first = _decimal(f"{option} (first value)", words[0], above=above, at_most=at_most)
    last = _decimal(f"{option} (last value)", words[1], above=above, at_most=at_most)
    step = _decimal(f"{option} (step)", words[2], above=0)
    if last < first:
        raise InputError(option, f"the range {shown(text)} is empty", "A:B:STEP with A <= B")
    # Compare before dividing: with a minute step the quotient may not fit a decimal.
    if last - first >= step * MOST_VALUES:
        raise InputError(option, f"{shown(text)} has more than {MOST_VALUES} values", "a larger step")
    count = int((last - first) / step) + 1
    return tuple(float(first + i * step) for i in range(count))
