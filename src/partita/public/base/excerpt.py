"""A few lines of a table that may be long, for people to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from partita.html import shortlist
from partita.public.base.figures import shortened, table

_LONGEST: Final = 25


def excerpt(names: Sequence[str], length: int, row: Callable[[int], Sequence[object]]) -> str:
    """The names of the columns above the rows of a table: all ten, or the first and the last five.

    >>> print(excerpt(["n", "square"], 3, lambda n: [n, n * n]))
    n  square
    0       0
    1       1
    2       4
    """
    return _aligned([names, *shortlist(length, row)])


def _aligned(rows: Sequence[Sequence[object]]) -> str:
    return table(([shortened(str(entry), _LONGEST) for entry in row] for row in rows), left=0)
