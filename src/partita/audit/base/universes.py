"""Tiny universes: all data sets of few rows, all persons with so many, and counts as mechanisms take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import TypeAlias

import numpy as np

from partita.domain.axis import Axis
from partita.guarantee.guarantee import Neighbors
from partita.trusted.secret.histogram import Histogram
from partita.trusted.secret.points import Points

Counts: TypeAlias = tuple[int, ...]


def neighbours(
    cells: int, rows: int, *, neighbors: Neighbors = "add-remove", contributions: int = 1
) -> Iterator[tuple[Counts, Counts]]:
    """Every pair over so many cells in which others have at most `rows` rows, once.

    Under add-remove a person with `contributions` rows comes; under change-one their rows become others.

    >>> len(list(neighbours(2, 1))), len(list(neighbours(2, 1, neighbors="change-one")))
    (6, 3)
    """
    people = list(_multisets(cells, contributions))
    for others in (held for count in range(rows + 1) for held in _multisets(cells, count)):
        for number, person in enumerate(people):
            if neighbors == "add-remove":
                yield others, sum_of(others, person)
            else:
                yield from ((sum_of(others, person), sum_of(others, another)) for another in people[:number])


def moved(cells: int, rows: int, *, contributions: int) -> Iterator[tuple[Counts, Counts]]:
    """Others have at most `rows` rows, and a person moves all of theirs from any cell to the next.

    >>> list(moved(2, 0, contributions=3))
    [((3, 0), (0, 3)), ((0, 3), (3, 0))]
    """
    whole = [tuple(contributions * (cell == place) for cell in range(cells)) for place in range(cells)]
    for others in (held for count in range(rows + 1) for held in _multisets(cells, count)):
        for place in range(cells):
            yield sum_of(others, whole[place]), sum_of(others, whole[(place + 1) % cells])


def _multisets(cells: int, rows: int) -> Iterator[Counts]:
    for places in combinations_with_replacement(range(cells), rows):
        yield tuple(places.count(cell) for cell in range(cells))


def sum_of(one: Counts, other: Counts) -> Counts:
    """The rows of both."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


def histogram(counts: Counts, contributions: int = 1) -> Histogram:
    """So many rows in each cell of one axis."""
    return Histogram.dense(counts, contributions=contributions)


def points(axes: Sequence[Axis], counts: Counts, contributions: int = 1) -> Points:
    """So many rows in each position of several axes, the last one fastest; special cells included."""
    places = np.array(list(product(*(range(axis.width) for axis in axes))), np.uint64)
    held = np.flatnonzero(counts)
    return Points.from_rows(
        places[held].reshape(held.size, len(axes)),
        axes=list(axes),
        counts=np.array(counts, np.int64)[held],
        contributions=contributions,
    )
