"""Tiny universes: all data sets over them, and all pairs of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeAlias

Counts: TypeAlias = tuple[int, ...]


def data_sets(size: int, most: int) -> Iterator[Counts]:
    """All multisets over `size` cells with at most `most` items in a cell."""
    return product(range(most + 1), repeat=size)


def add_remove_pairs(size: int, most: int) -> Iterator[tuple[Counts, Counts]]:
    """Each unordered pair of data sets that differ by one item, once."""
    for counts in data_sets(size, most):
        for cell in range(size):
            if counts[cell] < most:
                yield counts, _shifted(counts, cell, 1)


def change_one_pairs(size: int, most: int) -> Iterator[tuple[Counts, Counts]]:
    """Each unordered pair of data sets that differ by moving one item, once."""
    for counts in data_sets(size, most):
        for source in range(size):
            for target in range(source + 1, size):
                if counts[source] and counts[target] < most:
                    yield counts, _shifted(_shifted(counts, source, -1), target, 1)


def _shifted(counts: Counts, cell: int, by: int) -> Counts:
    return (*counts[:cell], counts[cell] + by, *counts[cell + 1 :])
