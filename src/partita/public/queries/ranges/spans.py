"""Ranges of positions along one axis: answered by cumulative sums, never by a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.queries.operator.namespace import cumulative, namespace, places_like
from partita.public.queries.operator.raised import Raised, UInts
from partita.public.queries.operator.structured import fitted

MOST_QUERIES: Final = 2**24
"""No operator has more queries."""


@final
@frozen(eq=False)
class Spans(Raised):
    """Query i weighs the positions starts[i], ..., stops[i]-1 with `height` units, the others with zero.

    >>> Spans(4, [0, 1], [2, 4]).answers(np.array([1, 2, 3, 4])).tolist()
    [3, 9]
    """

    width: int
    starts: Converted[Sequence[int] | UInts, UInts] = parameter()
    stops: Converted[Sequence[int] | UInts, UInts] = parameter()
    height: int = 1
    grain: int = 1

    def __post_init__(self) -> None:
        first, behind = np.asarray(self.starts, np.uint64), np.asarray(self.stops, np.uint64)
        freeze(self, starts=first, stops=np.maximum(first, behind))

    @staticmethod
    def everything(width: int) -> Spans:
        """One query: all positions."""
        return Spans(width, [0], [width])

    @staticmethod
    def each(width: int) -> Spans:
        """A query for every position."""
        places = np.arange(width, dtype=np.uint64)
        return Spans(width, places, places + np.uint64(1))

    @property
    def shape(self) -> tuple[int, ...]:
        """The width of the axis."""
        return (self.width,)

    @property
    def tops(self) -> NDArray[Any]:
        """The height of every range that is not empty."""
        return fitted(np.where(self.stops > self.starts, self.highest, 0), self.largest)

    @property
    def constant(self) -> bool:
        """Whether it is one query that weighs all positions alike."""
        return len(self) == 1 and int(self.starts[0]) == 0 and int(self.stops[0]) == self.width

    def norm(self, limit: int) -> int:
        """The largest number of ranges over one position, times the height."""
        return int(self._pieces.covers.max()) * abs(self.height)

    def forward(self, x: Any) -> Any:
        """Differences of cumulative sums; single positions are taken as they are."""
        xp = namespace(x)
        starts = places_like(self.starts.astype(np.int64), x)
        if self.constant:
            found = xp.sum(x, axis=0, keepdims=True)
        elif self._single_positions:
            found = xp.take(x, starts, axis=0)
        else:
            sums = cumulative(x)
            stops = places_like(self.stops.astype(np.int64), x)
            found = xp.take(sums, stops, axis=0) - xp.take(sums, starts, axis=0)
        return found if self.height == 1 else found * self.height

    def backward(self, y: Any) -> Any:
        """On each piece between two ends the sum of the ranges over it: those begun less those ended."""
        xp, pieces = namespace(y), self._pieces
        begun, ended = (cumulative(xp.take(y, places_like(o, y), axis=0)) for o in pieces.orders)
        level = xp.take(begun, places_like(pieces.begun, y), axis=0) - xp.take(
            ended, places_like(pieces.ended, y), axis=0
        )
        spread = xp.repeat(level, places_like(pieces.lengths, y), axis=0)
        return spread if self.height == 1 else spread * self.height

    def weights_at(self, places: NDArray[Any]) -> NDArray[Any]:
        """The height where a position lies in a range."""
        at = places[:, 0].astype(np.uint64, copy=False)
        inside = (self.starts[:, None] <= at) & (at < self.stops[:, None])
        return fitted(inside, self.largest) * self.height

    def answers_at(self, places: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """Differences of cumulative sums over the points in order."""
        order = np.argsort(places[:, 0], kind="stable")
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[order])])
        ordered = places[order, 0].astype(np.uint64)
        first, behind = (np.searchsorted(ordered, ends) for ends in (self.starts, self.stops))
        return np.asarray((sums[behind] - sums[first]).astype(object) * self.height)

    def column_sums(self) -> NDArray[Any]:
        """How many ranges lie over each position, times the height."""
        covers = np.repeat(self._pieces.covers, self._pieces.lengths)
        return fitted(covers, self.column_norm) * abs(self.height)

    def _with(self, **changed: Any) -> Spans:
        return replace(self, **changed)

    @cached_property
    def _single_positions(self) -> bool:
        return bool((self.stops == self.starts + np.uint64(1)).all())

    @cached_property
    def _pieces(self) -> _Pieces:
        return _Pieces.of(self.width, self.starts, self.stops)


@final
@dataclass(frozen=True, eq=False)
class _Pieces:
    """The axis cut at all ends: how many ranges have begun and ended by each piece, in order of ends."""

    lengths: NDArray[np.int64]
    begun: NDArray[np.int64]
    ended: NDArray[np.int64]
    orders: tuple[NDArray[np.int64], NDArray[np.int64]]

    @staticmethod
    def of(width: int, starts: UInts, stops: UInts) -> _Pieces:
        """The pieces of an axis under these ranges."""
        edges = np.unique(np.concatenate([np.array([0], np.uint64), starts, stops]))
        edges = edges[edges < np.uint64(width)]
        orders = np.argsort(starts, kind="stable"), np.argsort(stops, kind="stable")
        begun, ended = (
            np.searchsorted(ends[order], edges, side="right")
            for ends, order in zip((starts, stops), orders, strict=True)
        )
        lengths = np.diff(edges, append=np.uint64(width)).astype(np.int64)
        return _Pieces(lengths, begun, ended, orders)

    @property
    def covers(self) -> NDArray[np.int64]:
        """How many ranges lie over each piece."""
        return self.begun - self.ended
