"""Columns of text, aligned."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned"]


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A line of heads and a line for each row, numbers to the right; columns without an entry are left out.

    >>> aligned(["word", "empty", "number"], [["a", "", "10"], ["b", "", "2"]])
    ['word  number', 'a         10', 'b          2']
    """
    columns = [column for column in zip(heads, *rows, strict=True) if any(column[1:])]
    padded = [_padded(column) for column in columns]
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]


def _padded(column: Sequence[str]) -> list[str]:
    """The entries of one column, all as wide as the widest."""
    width = max(map(len, column))
    numbers = all(entry[:1].isdigit() for entry in column[1:] if entry)
    return [entry.rjust(width) if numbers else entry.ljust(width) for entry in column]
