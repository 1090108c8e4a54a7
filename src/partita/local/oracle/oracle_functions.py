"""Functions of a row that others supply: no failure of theirs may depend on what anybody holds.

An error is seen by whoever asked, and costs nothing. A function that raises on one value, or returns a
column of the wrong length, would tell that somebody holds it. So there are two ways to call one:

- on each row of data by itself. A failure is an answer: the person is in a fixed cell, and has paid.
- on a universe, a public list of all rows that may occur. A failure is an error, the same for all data, and
  nobody pays. The function never sees data: they are looked up in the table of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np

from partita.arrays import as_rows
from partita.errors.errors import InvalidData, InvalidParameter
from partita.errors.unchained import unchained
from partita.local.frequency.columns import Ints

OneRow: TypeAlias = Callable[[Any], Any]
"""From an array that holds one row to a number."""

_LARGEST_UNIVERSE: Final = 1 << 20
_NOWHERE: Final = -1


def evaluate_rows(rows: Any, one: OneRow, fixed: Any) -> list[Any]:
    """What the function makes of each row by itself, and `fixed` where it fails.

    Every call gets a copy of one row: the function can neither see other rows nor change them. Whatever is
    no `Exception` passes: KeyboardInterrupt and SystemExit are how an operator stops the process.
    """
    with np.errstate(all="ignore"):  # a warning about one value would be printed
        return [_evaluated(rows[at : at + 1].copy(), one, fixed) for at in range(len(rows))]


def _evaluated(row: Any, one: OneRow, fixed: Any) -> Any:
    try:
        return one(row)
    except Exception:
        return fixed


def only_element(made: Any) -> Any:
    """The element of a column of one, as Python has it; ValueError for all else."""
    column = np.asarray(made)
    if column.shape != (1,):
        raise ValueError("not a column of one")
    return column.tolist()[0]


@final
class Universe:
    """A public list of different rows, and for each row of the data its place in the list."""

    def __init__(self, rows: object, values: Any) -> None:
        self.rows = _checked(rows, values)
        known: dict[Hashable, int] = {}
        for place, key in enumerate(_keys(self.rows)):
            if _place(known, key) != _NOWHERE:
                raise _no_universe(values)
            known[key] = place
        self._places: Ints = np.array([_place(known, key) for key in _keys(values)], dtype=np.int64)

    def looked_up(self, who: Ints, numbers: Sequence[Any], fixed: Any) -> list[Any]:
        """Of each person the number of their row, and `fixed` for a row that is not in the universe."""
        return [fixed if place == _NOWHERE else numbers[place] for place in self._places[who].tolist()]

    def evaluate(self, one: OneRow, name: str) -> list[Any]:
        """What the function makes of each row of the universe; an error if it fails on one of them."""
        failure = InvalidParameter(
            name,
            "must make a number of every row of the universe",
            given=None,
            fix="check it on each of them",
        )
        with np.errstate(all="ignore"):
            return unchained(
                lambda: [one(self.rows[at : at + 1].copy()) for at in range(len(self.rows))],
                failure,
                Exception,
            )


def _keys(rows: Any) -> list[Hashable]:
    """Something by which equal rows are found; what cannot be compared equals nothing."""
    return [_key(row) for row in rows.tolist()]


def _key(row: Any) -> Hashable:
    key = tuple(row) if isinstance(row, list) else row
    try:
        hash(key)
    except Exception:
        return object()
    return key


def _place(known: dict[Hashable, int], key: Hashable) -> int:
    """The place of a key; nowhere, if a comparison of values fails too."""
    try:
        return known.get(key, _NOWHERE)
    except Exception:
        return _NOWHERE


def _checked(rows: object, values: Any) -> Any:
    try:
        listed = as_rows(rows, "universe")
    except InvalidData:
        listed = np.zeros(0)
    if listed.ndim < 1 or not 0 < listed.size <= _LARGEST_UNIVERSE or listed.shape[1:] != values.shape[1:]:
        raise _no_universe(values)
    return listed


def _no_universe(values: Any) -> InvalidParameter:
    rule = f"must list up to 2^20 different rows of {'x'.join(map(str, values.shape[1:])) or 'one'} numbers"
    return InvalidParameter("universe", rule, given=None, fix="leave it out, and failures are answers")
