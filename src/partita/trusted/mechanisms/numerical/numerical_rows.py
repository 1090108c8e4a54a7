"""What truncation asks of the rows: how many lie in each octave of a query, and sums cut at thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Ints, UInts
from partita.public.queries.operator.limbs import exact_product, exact_sums
from partita.public.queries.operator.structured import Structured
from partita.public.workload.decomposition.decomposed import Decomposed
from partita.public.workload.decomposition.octaves import octave_of
from partita.trusted.secret.points import PointCounts

_MOST_AT_ONCE: Final = 1 << 22
_LARGEST_INT: Final = np.iinfo(np.int64).max


class Rows(Protocol):
    """Exact answers about rows, for every query of a list."""

    def octaves(self, tops: tuple[int, ...]) -> Ints:
        """How many rows are in each octave: a row for each query, a column for each top."""

    def sums(self, cuts: NDArray[Any]) -> NDArray[Any]:
        """The sum of min(w, cut) of each query, in units, as Python ints."""


def rows_of(operator: Structured, points: PointCounts) -> Rows:
    """By classes where queries are products of zeros and ones and one value, else point by point."""
    decomposed = Decomposed.of(operator)
    if decomposed is not None and decomposed.classes.binary and decomposed.classes.cells <= _MOST_AT_ONCE:
        return ClassRows(decomposed, points)
    return PointRows(operator, points)


@final
@dataclass(frozen=True)
class PointRows:
    """The weights of all queries, evaluated at every point."""

    operator: Structured
    points: PointCounts

    def octaves(self, tops: tuple[int, ...]) -> Ints:
        """Points one by one, all queries of each."""
        return self.points.folded(partial(_octaves, self.operator, tops))

    def sums(self, cuts: NDArray[Any]) -> NDArray[Any]:
        """Products of cut weights and counts."""
        return self.points.folded(partial(_sums, self.operator, cuts))


@final
@dataclass(frozen=True)
class ClassRows:
    """Values summed up by classes first: a query adds up the classes that it asks for."""

    decomposed: Decomposed
    points: PointCounts

    def octaves(self, tops: tuple[int, ...]) -> Ints:
        """Rows of classes that a query does not ask for have weight zero."""
        table = self.points.folded(partial(_class_octaves, self.decomposed, tops))
        found = np.asarray(self.decomposed.classes.forward(table))
        found[:, 0] += table.sum() - found.sum(axis=1)
        return found

    def sums(self, cuts: NDArray[Any]) -> NDArray[Any]:
        """All queries for each cut, and of these the queries that have it."""
        total = np.zeros(len(self.decomposed.classes), object)
        for cut in sorted(set(cuts.tolist())):
            mine = cuts == cut
            sums = self.points.folded(partial(_class_sums, self.decomposed, cut))
            total[mine] = np.asarray(self.decomposed.classes.answers(sums))[mine]
        return total


def weight_blocks(operator: Structured, places: UInts, counts: Ints) -> Iterator[tuple[NDArray[Any], Ints]]:
    """The weights of all queries at some points at a time, and how many rows are at each of these."""
    step = max(1, _MOST_AT_ONCE // len(operator))
    for first in range(0, len(places), step):
        some = slice(first, first + step)
        yield operator.weights_at(places[some]), np.asarray(counts[some])


def _octaves(operator: Structured, tops: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    found = np.zeros((len(operator), len(tops)), np.int64)
    queries = np.arange(len(operator))[:, np.newaxis]
    for weights, times in weight_blocks(operator, places, counts):
        _count(found, queries, octave_of(weights, tops), times)
    return found


def _sums(operator: Structured, cuts: NDArray[Any], places: UInts, counts: Ints) -> NDArray[Any]:
    total = np.zeros(len(operator), object)
    for weights, times in weight_blocks(operator, places, counts):
        total += exact_product(_cut(weights, cuts[:, np.newaxis]), times, operator.largest)
    return total


def _class_octaves(decomposed: Decomposed, tops: tuple[int, ...], places: UInts, counts: Ints) -> Ints:
    table = np.zeros((decomposed.classes.cells, len(tops)), np.int64)
    _count(table, decomposed.cells(places), octave_of(decomposed.values(places), tops), counts)
    return table


def _class_sums(decomposed: Decomposed, cut: int, places: UInts, counts: Ints) -> NDArray[Any]:
    values = _cut(decomposed.values(places), np.array(cut, object))
    cells, largest = decomposed.cells(places), decomposed.value.largest
    return exact_sums(values, counts, cells, largest, decomposed.classes.cells).astype(object)


def _count(table: Ints, rows: Ints, octave: Ints, counts: Ints) -> None:
    """Add the rows of each octave."""
    np.add.at(table, (np.broadcast_to(rows, octave.shape), octave), np.broadcast_to(counts, octave.shape))


def _cut(weights: NDArray[Any], cuts: NDArray[Any]) -> NDArray[Any]:
    """min(w, cut); a cut of 2^63 leaves integers of 64 bits as they are."""
    most = cuts if weights.dtype == object else np.minimum(cuts, _LARGEST_INT)
    return np.asarray(np.minimum(weights, np.asarray(most).astype(weights.dtype)))
