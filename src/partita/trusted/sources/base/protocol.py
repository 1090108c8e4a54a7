"""What a source is, and what the readers behind one hand over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

Table: TypeAlias = Any
"""A pyarrow.Table."""


@runtime_checkable
class Source(Protocol):
    """Where rows are. Its one duty is an exact grouped count."""

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """One row for each distinct combination of raw values in the columns `keys`.

        The key columns come first, in the order asked; then `count` as int64; then, for each
        column of integers in `sums`, its exact sum as decimal128(38, 0), nulls left out. Rows
        are in ascending order of the keys, NaN after all numbers and null after everything.
        Key columns have one of these types, on every engine: bool, int64, uint64, float64
        (one zero, one NaN), decimal128(38, s), large_binary (all text, as UTF-8), date32, date64
        and timestamp (its zone, where it has one, called UTC); a list of Python values stays one,
        in `sources.python.PYTHON`.
        """


class Batches(NamedTuple):
    """Columns of rows, some thousands at a time."""

    schema: Any
    batches: Iterator[Any]


class Rows(Protocol):
    """Rows in some container, which can be read again, a few columns at a time."""

    def read(self, columns: Sequence[str]) -> Batches:
        """The columns asked for, in that order; a column that is not there is a SourceError."""
