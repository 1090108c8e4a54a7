"""Questions of each kind, in few words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from partita.public.conditions import Where
from partita.public.keys import GroupKey
from partita.public.questions import COUNT, KINDS, HalfSpaceText, Question

__all__ = ["answers", "cdf", "count", "difference", "grouped", "heat_map", "histogram", "quantile", "summary"]


def count(where: Where, half_space: HalfSpaceText | None = None) -> Question:
    """How many rows fulfil the conditions and lie in the half-space."""
    return COUNT(where=where, half_space=half_space)


def quantile(q: Fraction, column: str, where: Where | None = None) -> Question:
    """Below which value a share of the rows lies."""
    return KINDS["quantile"](q=q, column=column, where=where or {})


def cdf(column: str, at: tuple[str, ...] = (), where: Where | None = None) -> Question:
    """Which share of the rows is at most each value."""
    return KINDS["cdf"](column=column, at=at, where=where or {})


def histogram(column: str, bins: int | None = None, where: Where | None = None) -> Question:
    """How many rows lie in each of several bins."""
    return KINDS["histogram"](column=column, bins=bins, where=where or {})


def heat_map(
    columns: tuple[str, str], bins: tuple[int, int] | None = None, where: Where | None = None
) -> Question:
    """How many rows lie in each bin of two columns together."""
    (x, y), (x_bins, y_bins) = columns, bins or (None, None)
    return KINDS["histogram2d"](x=x, y=y, x_bins=x_bins, y_bins=y_bins, where=where or {})


def difference(first: Where, second: Where) -> Question:
    """How many more rows fulfil the first conditions than the second."""
    return KINDS["difference"](first=first, second=second)


def summary(what: str, column: str, where: Where | None = None) -> Question:
    """A sum, a mean, a variance or a standard deviation."""
    return KINDS[what](column=column, where=where or {})


def grouped(what: str, *by: GroupKey | str, **arguments: Any) -> Question:
    """A statistic for each group of rows."""
    keys = tuple(GroupKey(key) if isinstance(key, str) else key for key in by)
    return KINDS[f"{what}_by"](by=keys, **arguments)


def answers() -> Question:
    """The answer to every query that was published."""
    return KINDS["answers"]()
