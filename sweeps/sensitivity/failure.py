"""What becomes of samples that failed. A missing value breaks the balance that all indices rest on, so it is refused
unless the user chooses: `drop` leaves out the whole row (base point with all its neighbours, whole trajectory), `fill`
writes a stated value in its place. Either way the share is reported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError

Array = NDArray[np.float64]

POLICIES = ("refuse", "drop", "fill")
FILLS = ("least", "largest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Treated:
    """Complete rows and what was done to get them.

    Attributes
    ----------
    rows : array of int
        Numbers of the rows that are kept.
    values : Array
        Their values, all finite.
    failed : int
        Cases without a value.
    share : float
        `failed` as a share of all cases.
    dropped : int
        Rows left out.
    filled : float or None
        The value written in place of missing ones.
    """

    rows: NDArray[np.intp]
    values: Array
    failed: int
    share: float
    dropped: int
    filled: float | None


def treat(values: Array, policy: str = "refuse", fill: str | float = "least") -> Treated:
    """Complete rows from values with gaps (nan).

    Parameters
    ----------
    values : Array
        (rows, cases of a row); a failed case is nan.
    policy : {"refuse", "drop", "fill"}
    fill : {"least", "largest"} or float
        Fill with the least or largest value that was computed (the conservative one of the two is the user's to say:
        least for a critical speed, largest for a force), or with a number.
    """
    if policy not in POLICIES:
        raise InputError("failures", f"is {policy!r}", ", ".join(POLICIES))
    gap = ~np.isfinite(values)
    failed, rows = int(gap.sum()), np.arange(len(values))
    share = failed / max(1, values.size)
    if not failed:
        return Treated(rows=rows, values=values, failed=0, share=0.0, dropped=0, filled=None)
    if policy == "refuse":
        raise InputError(
            "failures",
            f"{failed} of {values.size} cases ({100.0 * share:.2g} %) in {int(gap.any(axis=1).sum())} of {len(values)} "
            "rows have no value",
            'a policy: failures = "drop" (whole rows) or "fill" with fill = "least", "largest" or a number',
        )
    if policy == "drop":
        whole = ~gap.any(axis=1)
        return Treated(
            rows=rows[whole],
            values=values[whole],
            failed=failed,
            share=share,
            dropped=int((~whole).sum()),
            filled=None,
        )
    if isinstance(fill, str):
        if fill not in FILLS:
            raise InputError("fill", f"is {fill!r}", ", ".join(FILLS) + ", or a number")
        if gap.all():
            raise InputError("failures", "all cases failed", "at least one value to fill with")
        number = float(np.nanmin(values[~gap]) if fill == "least" else np.nanmax(values[~gap]))
    else:
        number = float(fill)
    return Treated(
        rows=rows, values=np.where(gap, number, values), failed=failed, share=share, dropped=0, filled=number
    )


def correlation_warning(points: Array, names: tuple[str, ...], limit: float = 0.1) -> str:
    """Parameters that vary together in a sample, in words; empty when none do.

    Variance-based indices belong to independent parameters. A design has them by construction, but dropped rows (a
    corner of the space where the vehicle derails) may tie what is left together.
    """
    if len(points) < 3 or points.shape[1] < 2:
        return ""
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = np.asarray(np.corrcoef(points, rowvar=False))
    bound = max(limit, 4.0 / np.sqrt(len(points)))
    found = [
        f"{names[i]} and {names[j]} ({matrix[i, j]:+.2f})"
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if abs(matrix[i, j]) > bound
    ]
    if not found:
        return ""
    more = f" and {len(found) - 5} more pairs" if len(found) > 5 else ""
    return f"parameters are correlated in the sample: {', '.join(found[:5])}{more}; indices assume independent ones"
