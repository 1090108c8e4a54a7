"""Bins of an axis: which positions, special cells included, are counted together. Bins are public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import UInts, integer_array
from partita.domain.axis import LARGEST_AXIS
from partita.errors import InvalidData, InvalidParameter, check
from partita.numbers import freeze, integer

MOST_BINS: Final = 2**22
"""No axis has more bins: a count of each must fit in memory."""

_WIDEST: Final = LARGEST_AXIS + 8  # the cells of the widest axis, and its special cells
_SHORT: Final = 2**16
"""The most positions whose bins are looked up if they are runs: the table is made in 0.02 ms."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class AxisBins:
    """Positions 0, ..., width-1 of an axis in bins 0, ..., number-1, none of which is empty.

    Bins are runs of positions, given by the last position of each (`edges`), or any sets of positions, given
    by the bin of each position (`lookup`).

    >>> ages = AxisBins.from_edges([17, 64, 124])
    >>> ages.of(np.array([0, 17, 18, 124], np.uint64)).tolist()
    [0, 0, 1, 2]
    >>> regions = AxisBins.from_lookup([0, 1, 0, 2])
    >>> regions, regions.of(np.array([2, 3], np.uint64)).tolist()
    (AxisBins(4 positions in 3 bins), [0, 2])
    """

    width: int
    number: int
    edges: UInts | None = None
    lookup: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        width = integer(self.width, "width", low=1, high=_WIDEST)
        number = integer(self.number, "number", low=1, high=min(MOST_BINS, width))
        if self.lookup is None:
            edges = _integers(self.edges, "edges").astype(np.uint64)
            ascending = edges.size == number and not (edges[1:] <= edges[:-1]).any()
            rule, fix = "must ascend, one for each bin, up to the last position", "sort them"
            check(ascending and int(edges[-1]) == width - 1, "edges", rule, given=self.edges, fix=fix)
            edges.flags.writeable = False
            freeze(self, width=width, number=number, edges=edges)
        else:
            lookup = _integers(self.lookup, "lookup").astype(np.intp)
            fix = "pass edges or lookup"
            check(self.edges is None, "edges", "must not be given with lookup", given=self.edges, fix=fix)
            rule, fix = "must have a bin for each position, and a position for each bin", "number bins from 0"
            fits = lookup.size == width and int(lookup.max()) == number - 1
            check(fits and bool(np.bincount(lookup).all()), "lookup", rule, given=self.lookup, fix=fix)
            lookup.flags.writeable = False
            freeze(self, width=width, number=number, lookup=lookup)

    @staticmethod
    def from_edges(edges: ArrayLike) -> AxisBins:
        """Runs of positions that end at these, the last at the end of the axis."""
        ends = _integers(edges, "edges")
        return AxisBins(int(ends[-1]) + 1, ends.size, edges=ends.astype(np.uint64))

    @staticmethod
    def from_lookup(lookup: ArrayLike) -> AxisBins:
        """The bin of each position."""
        found = _integers(lookup, "lookup").astype(np.intp)
        return AxisBins(found.size, int(found.max()) + 1, lookup=found)

    @staticmethod
    def identity(width: int) -> AxisBins:
        """Each position in a bin of its own.

        >>> AxisBins.identity(3).of(np.array([2, 0], np.uint64)).tolist()
        [2, 0]
        """
        return AxisBins.from_edges(np.arange(integer(width, "width", low=1, high=MOST_BINS), dtype=np.uint64))

    def of(self, positions: UInts) -> NDArray[np.intp]:
        """The bin of each of these positions of the axis."""
        found = self.short_lookup
        if found is not None:
            return np.asarray(found[positions.astype(np.intp)], np.intp)
        return np.searchsorted(self.edges, positions)  # type: ignore[arg-type]

    @property
    def short_lookup(self) -> NDArray[np.intp] | None:
        """The bin of each position, if there are few positions or they are in no order."""
        if self.lookup is not None or self.edges is None or self.width > _SHORT:
            return self.lookup
        return np.repeat(np.arange(self.number), self.sizes.astype(np.intp))

    @property
    def sizes(self) -> UInts:
        """The number of positions in each bin."""
        if self.lookup is not None:
            return np.bincount(self.lookup, minlength=self.number).astype(np.uint64)
        lows, highs = self.spans
        return highs - lows + np.uint64(1)

    @property
    def spans(self) -> tuple[UInts, UInts]:
        """The first and the last position of each bin; InvalidParameter if bins are no runs.

        >>> [ends.tolist() for ends in AxisBins.from_edges([17, 64, 124]).spans]
        [[0, 18, 65], [17, 64, 124]]
        """
        if self.edges is None:
            rule, fix = "must be runs of positions", "use members, or make them with from_edges"
            raise InvalidParameter("bins", rule, given=self.number, fix=fix)
        return np.append(np.uint64(0), self.edges[:-1] + np.uint64(1)), self.edges

    def members(self, number: int) -> UInts:
        """The positions in one bin, ascending.

        >>> AxisBins.from_lookup([0, 1, 0, 2]).members(0).tolist()
        [0, 2]
        """
        place = integer(number, "number", low=0, high=self.number - 1)
        if self.lookup is not None:
            return np.flatnonzero(self.lookup == place).astype(np.uint64)
        low, high = (int(ends[place]) for ends in self.spans)
        rule, fix = f"must have at most {MOST_BINS} positions to be listed", "use spans"
        check(high - low < MOST_BINS, "number", rule, given=place, fix=fix)
        return np.arange(low, high + 1, dtype=np.uint64)

    def __repr__(self) -> str:
        return f"AxisBins({self.width} positions in {self.number} bins)"


def _integers(given: ArrayLike | None, name: str) -> NDArray[Any]:
    """A flat array of at least one integer from 0 to 2^64 - 1."""
    array = _array(given, name)
    fits = array.ndim == 1 and array.size > 0 and 0 <= int(array.min()) <= int(array.max()) < 2**64
    rule, fix = "must be a flat array of integers >= 0", "pass for example [17, 64, 124]"
    check(fits, name, rule, given=given, fix=fix)
    return array


def _array(given: ArrayLike | None, name: str) -> NDArray[Any]:
    """An empty array if they are no integers."""
    try:
        return integer_array(() if given is None else given, name)
    except InvalidData:
        return np.zeros(0, np.int64)
