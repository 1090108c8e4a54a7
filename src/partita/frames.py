"""Results as tables: for pandas, Polars, Arrow, or as plain records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from partita.errors import InvalidParameter

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Tabular(ABC):
    """A result that can be read as a table: `frame` names its columns, each with one entry for each row."""

    @abstractmethod
    def frame(self) -> Mapping[str, Sequence[Any]]:
        """The columns: the keys first, then the statistic, `low` and `high` (95%), and `basis`.

        The key of a special cell is its `Special`. In every table it becomes null, and its name stands in a
        column beside it: `town` and `town_special`.
        """

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        columns = split_specials(self.frame())
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_arrow(self) -> pyarrow.Table:
        """A table of Arrow: whole numbers, decimals, dates, times with their zone, and text as they are."""
        import pyarrow

        columns = split_specials(self.frame())
        return pyarrow.table({name: _to_array(entries) for name, entries in columns.items()})

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas, which must be installed."""
        _check_installed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A data frame of Polars, which must be installed."""
        _check_installed("polars")
        import polars

        return polars.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """What DuckDB, Polars, pandas and others read."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def split_specials(columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Columns of values; the names of special cells stand in columns of their own, and are null otherwise.

    >>> class Special(Enum):
    ...     NULL = 4
    >>> split_specials({"town": ["Rome", Special.NULL], "count": [3, 1]})
    {'town': ['Rome', None], 'town_special': [None, 'null'], 'count': [3, 1]}
    """
    found: dict[str, Sequence[Any]] = {}
    for name, entries in columns.items():
        special = [entry.name.lower() if isinstance(entry, Enum) else None for entry in entries]
        if any(special):
            found[name] = [None if isinstance(entry, Enum) else entry for entry in entries]
            found[f"{name}_special"] = special
        else:
            found[name] = entries
    return found


def name_ends(name: str, lows: Sequence[Any], highs: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """The keys of ranges of a column: one column if each is a single value, else the first and the last.

    >>> name_ends("age", [0, 10], [9, 19])
    {'age_first': [0, 10], 'age_last': [9, 19]}
    >>> name_ends("town", ["Rome", "Bari"], ["Rome", "Bari"])
    {'town': ['Rome', 'Bari']}
    """
    if list(lows) == list(highs):
        return {name: lows}
    return {f"{name}_first": lows, f"{name}_last": highs}


def _to_array(entries: Sequence[Any]) -> pyarrow.Array:
    """A column of Arrow. Numbers that Arrow has no exact type for become floats."""
    import pyarrow

    if any(isinstance(entry, Fraction) for entry in entries):
        return pyarrow.array([None if entry is None else float(entry) for entry in entries])
    try:
        return pyarrow.array(entries)
    except (pyarrow.ArrowInvalid, OverflowError):
        if not all(entry is None or isinstance(entry, int | Decimal) for entry in entries):
            raise
        whole = all(entry is None or (isinstance(entry, int) and 0 <= entry < 2**64) for entry in entries)
        kind = pyarrow.uint64() if whole else pyarrow.float64()
        return pyarrow.array([entry if whole or entry is None else float(entry) for entry in entries], kind)


def _check_installed(library: str) -> None:
    """Say what to install if a library is not there."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        fix = f'install it: pip install "partita[{library}]", or take to_arrow() or to_dicts()'
        raise InvalidParameter(f"to_{library}", f"needs {library}", given="none installed", fix=fix)
