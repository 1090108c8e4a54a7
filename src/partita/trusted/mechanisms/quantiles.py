"""Quantiles of one column by permute-and-flip over its cells [MS20], and by recursion [KSS22]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.errors import check_bool
from partita.guarantee import CHANGE_ONE
from partita.numbers import Converted, freeze, frozen, integer, parameter
from partita.public.axis.quantiles import (
    CONFIDENCE,
    LARGEST_SIZE,
    TAG_BITS,
    Copies,
    Levels,
    QuantileRelease,
    bound_reaches,
    learn_copies,
    list_divisors,
    parse_quantiles,
    plan_levels,
    share_levels,
    trace_errors,
)
from partita.trusted.mechanisms.base import Mechanism, check_fits, check_scale
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, Histogram

_LOOK: Final = Fraction(1, 50)
"""Of epsilon, for how round values are: more would widen all answers, less would miss heaps. The value of the
first prototype; its neighbours were not measured (benchmarks/README.md, quantiles alone)."""

_FEWEST_LEARNED: Final = 3  # quantiles from which on a look at round values is worth its part of epsilon
_INTERVALS: Final = Fraction(
    2, 5
)  # of epsilon, for value intervals; the value of the first prototype, not tuned
_FITS: Final = 2**62  # below this, sums and products stay in int64


@final
@frozen(kw_only=True)
class QuantileSelection(Mechanism):
    """Publish one quantile or several of one column, and nothing else; size up to 2^64.

    `quantiles` are shares between 0 and 1, or a number m of evenly spaced ones. `offset` is the value of the
    first cell, by which round values are told: 50,000 is rounder than 49,817. `interval` buys an interval of
    values around each quantile for 2/5 of epsilon. Time tells the number of distinct values, and nothing
    else that is not released.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [MS20], [KSS22]
    Error:     2 max(q, 1-q) (ln size + ln 1/beta) / epsilon rows; O(log^2 m log size / epsilon) for m.
    Proof:     docs/proofs/quantiles.md (unclipped scores, exact draws, tags, learned copies)

    >>> median = QuantileSelection(size=10**6, epsilon=1)
    >>> median.quantiles, median.rates
    ((Fraction(1, 2),), (Fraction(1, 1),))
    """

    name: ClassVar[str] = "quantiles"

    size: int
    quantiles: Converted[object, tuple[Fraction, ...]] = parameter(default=("1/2",))
    offset: int = 0
    interval: bool = False

    def _convert(self) -> None:
        super()._convert()
        freeze(
            self,
            size=integer(self.size, "size", low=1, high=LARGEST_SIZE),
            quantiles=parse_quantiles(self.quantiles),
            offset=integer(self.offset, "offset", low=-(2**127), high=2**127),
            interval=check_bool(self.interval, "interval"),
        )

    def _check(self) -> None:
        for nodes, rate in zip(self.levels, self.rates, strict=True):
            for node in nodes:
                check_scale(2 * node.change / rate, self.epsilon)
        for beside in (self.look, self.side):
            if beside is not None:
                check_scale(2 / beside, self.epsilon)

    @cached_property
    def levels(self) -> Levels:
        """The plan: which quantile is chosen between which others."""
        return plan_levels(self.quantiles)

    @property
    def look(self) -> Fraction | None:
        """Epsilon of the look at round values, for each row by which neighbours differ; None for no look."""
        worthwhile = len(self.quantiles) >= _FEWEST_LEARNED and len(list_divisors(self.size)) > 1
        return _LOOK * self._chosen / self.rows_changed if worthwhile else None

    @property
    def side(self) -> Fraction | None:
        """Epsilon of both ends of one value interval, for each row by which neighbours differ."""
        if not self.interval:
            return None
        return _INTERVALS * self.epsilon / (len(self.quantiles) * self.rows_changed)

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """Epsilon of each level, for each row that comes or goes.

        A row that changes is one that goes and one that comes: that halves the rate. For one quantile less is
        enough: the number of rows stays, so that a score moves by q and not by 2 max(p, q-p), for p/q.
        """
        if len(self.quantiles) == 1 and self.neighbors == CHANGE_ONE:
            ((node,),) = self.levels
            return (self._chosen * node.change / (node.part.denominator * self.contributions),)
        spent = self._chosen - (0 if self.look is None else _LOOK * self._chosen)
        return tuple(share * spent / self.rows_changed for share in share_levels(self.levels))

    @property
    def _chosen(self) -> Fraction:
        """The part of epsilon that chooses the quantiles themselves."""
        return (1 - _INTERVALS) * self.epsilon if self.interval else self.epsilon

    def predicted_error(self, rows: int) -> float:
        """About the rows that a quantile misses its rank by, as a mean; the number of rows hardly matters."""
        own = [
            [float(2 * Fraction(node.change, node.part.denominator) / rate) for node in nodes]
            for nodes, rate in zip(self.levels, self.rates, strict=True)
        ]
        traced = trace_errors(self.levels, own)
        return sum(math.hypot(*each.values()) for each in traced) / len(traced)

    def bound_ranks(self, beta: float) -> list[float]:
        """Rows that each quantile misses its rank by at most, except with probability beta.

        Of several quantiles that is before anything is known of round values.
        """
        return bound_reaches(self.quantiles, self.rates, Copies(self.size, self.offset), beta)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        learned = 0 if self.look is None else len(list_divisors(self.size))
        return len(self.quantiles) * (3 if self.interval else 1) + learned

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> QuantileRelease:
        """Choose every quantile, the middle one first, then the ends of their intervals."""
        column = _Column.of(check_fits(data, self.size, self.contributions), noise)
        session = noise.session()
        rounds, copies = self._learn(column, session)
        cells = self._choose(column, copies, session)
        return QuantileRelease(
            size=self.size,
            offset=self.offset,
            quantiles=self.quantiles,
            cells=np.array(cells, np.uint64),
            rates=self.rates,
            look=self.look,
            rounds=rounds,
            side=self.side,
            ends=np.array(self._find_ends(column, cells, copies, session), np.uint64),
            guarantee=self.guarantee if session.secure else None,
        )

    def _learn(self, column: _Column, noise: Noise) -> tuple[NDArray[Any], Copies]:
        """Noisy counts of rows by how round they are, and the copies of cells that follow."""
        if self.look is None:
            return np.zeros(0, np.int64), Copies(self.size, self.offset)
        plain = Copies(self.size, self.offset, list_divisors(self.size), (1,) * len(list_divisors(self.size)))
        counts = np.zeros(len(plain.divisors), np.int64)
        np.add.at(counts, plain.classes(column.cells), column.counts)
        rounds = noise.add(counts, 1 / self.look)
        return rounds, learn_copies(rounds.tolist(), 1 / self.look, self.size, self.offset)

    def _choose(self, column: _Column, copies: Copies, noise: Noise) -> list[int]:
        if len(self.quantiles) == 1:
            return [self._choose_one(column, noise)]
        return self._choose_several(_Places.of(column, copies, noise), copies, noise)

    def _choose_one(self, column: _Column, noise: Noise) -> int:
        """Over cells: score -max(q below - p rows, p rows - q up to it), for a share p/q; never clipped."""
        ((node,),) = self.levels
        p, q = node.part.as_integer_ratio()
        runs = _Runs.of(column, self.size, largest=q * column.rows)
        scores = -np.maximum(q * runs.below - p * column.rows, p * column.rows - q * runs.upto)
        return noise.permute_and_flip(scores, runs.lengths, 2 * node.change / self.rates[0])

    def _choose_several(self, places: _Places, copies: Copies, noise: Noise) -> list[int]:
        """Over places between those chosen before: score -|h rows up to it - g rows|, for a part g/h."""
        cuts = {-1: _Cut(0, 0), len(self.quantiles): _Cut(places.end, len(places.rows))}
        for nodes, rate in zip(self.levels, self.rates, strict=True):
            for node in nodes:
                cuts[node.number] = places.cut(
                    cuts[node.left], cuts[node.right], node.part, 2 * node.change / rate, noise
                )
        return [copies.cell(max(0, cuts[i].place - 1) >> TAG_BITS) for i in range(len(self.quantiles))]

    def _find_ends(self, column: _Column, cells: list[int], copies: Copies, noise: Noise) -> list[int]:
        """Two cells around each quantile between which the true one lies with `CONFIDENCE`."""
        if self.side is None:
            return []
        ranks = self.end_ranks(copies)
        found = []
        for cell, rank in zip(cells, ranks, strict=True):
            below, above = column.sides(cell)
            found.append(cell - self._find_end(below, cell, rank, noise))
            found.append(cell + self._find_end(above, self.size - 1 - cell, rank, noise))
        return found

    def end_ranks(self, copies: Copies) -> list[int]:
        """How many rows there should be between each quantile and an end of its interval: public."""
        beta = float(1 - CONFIDENCE)
        own = bound_reaches(self.quantiles, self.rates, copies, beta / 2)
        beside = (math.log(self.size) + math.log(4 / beta)) * float(2 / (self.side or 1))
        return [math.ceil(each) + math.ceil(beside) + 1 for each in own]

    def _find_end(self, side: _Column, room: int, rank: int, noise: Noise) -> int:
        """How many cells away an end lies: where `rank` rows are nearer.

        As many rows that nobody has are put into the last cell, so that there is such a place whatever the
        data. A row changes a score by one at most, and is on one side only.
        """
        if room == 0 or self.side is None:
            return 0
        column = side.with_rows(room - 1, rank)
        runs = _Runs.of(column, room, largest=column.rows)
        scores = -np.maximum(runs.below - rank, rank - runs.upto)
        return 1 + noise.permute_and_flip(scores, runs.lengths, 2 / self.side)


@dataclass(frozen=True)
class _Column:
    """Cells that have rows, ascending, as integers of 64 bits or Python's, and how many rows each has."""

    cells: NDArray[Any]
    counts: Ints

    @staticmethod
    def of(data: AxisCounts, noise: Noise) -> _Column:
        """The counts, wherever they are: those of other machines are brought here."""
        if isinstance(data, Histogram):
            cells, counts = data.cells, data.counts
        else:
            pairs = data.in_shards(_list_pairs, noise=noise)
            cells, counts = pairs[::2], pairs[1::2].astype(np.int64)
        return _Column(cells.astype(np.int64 if data.size < _FITS else object), counts)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    def sides(self, cell: int) -> tuple[_Column, _Column]:
        """Rows below a cell and above it, by how many cells lie between; those in it are in neither."""
        low, high = (int(np.searchsorted(self.cells, cell, side)) for side in ("left", "right"))
        below = _Column((cell - 1 - self.cells[:low])[::-1], self.counts[:low][::-1])
        return below, _Column(self.cells[high:] - (cell + 1), self.counts[high:])

    def with_rows(self, cell: int, rows: int) -> _Column:
        """With more rows in a cell, which no cell lies beyond."""
        last = len(self.cells) > 0 and int(self.cells[-1]) == cell
        cells = self.cells if last else np.append(self.cells, np.array([cell], self.cells.dtype))
        counts = self.counts.copy() if last else np.append(self.counts, 0)
        counts[-1] += rows
        return _Column(cells, counts)


def _list_pairs(data: Histogram, shard: range, noise: Noise) -> UInts:
    """Cells and counts in turn: a top-level function, so that it can travel to other machines."""
    pairs = np.empty(2 * data.cells.size, np.uint64)
    pairs[::2], pairs[1::2] = data.cells, data.counts
    return pairs


@dataclass(frozen=True)
class _Runs:
    """Runs of cells with the same numbers of rows below and up to them: cells with rows, and gaps between."""

    lengths: NDArray[Any]
    below: NDArray[Any]
    upto: NDArray[Any]

    @staticmethod
    def of(column: _Column, size: int, *, largest: int) -> _Runs:
        """The runs of the cells 0, ..., size-1, in order; numbers of rows hold products up to `largest`."""
        held = len(column.cells)
        lengths = np.ones(2 * held + 1, column.cells.dtype)
        edges = np.empty(held + 2, column.cells.dtype)
        edges[0], edges[1:-1], edges[-1] = -1, column.cells, size
        lengths[::2] = edges[1:] - edges[:-1] - 1
        upto = np.concatenate([[0], np.cumsum(column.counts)]).astype(np.int64 if largest < _FITS else object)
        twice, there = np.repeat(upto, 2), lengths > 0
        return _Runs(lengths[there], twice[:-1][there], twice[1:][there])


@dataclass(frozen=True)
class _Cut:
    """A place that was chosen, one beyond it, and how many rows lie before that."""

    place: int
    rows: int


@dataclass(frozen=True)
class _Places:
    """Every row at a hidden place among 0, ..., end-1, in order: a copy of its cell is 2^32 places wide.

    So rows of one cell can be divided, and no quantile takes a whole heap.
    """

    rows: NDArray[Any]
    end: int

    @staticmethod
    def of(column: _Column, copies: Copies, noise: Noise) -> _Places:
        """A fresh place for each row, uniform in its cell, and in no other cell: it is never released."""
        end = copies.total << TAG_BITS
        wide = column.cells.astype(np.int64 if end < _FITS else object)
        first, behind = copies.before(wide), copies.before(wide + 1)
        firsts, widths = np.repeat(first, column.counts), np.repeat(behind - first, column.counts)
        rows = firsts << TAG_BITS
        for width in sorted(set((behind - first).tolist())):
            alike = np.flatnonzero(widths == width)
            rows[alike] += noise.integers_below(width << TAG_BITS, alike.size)
        rows.sort()
        return _Places(rows, end)

    def cut(self, low: _Cut, high: _Cut, part: Fraction, scale: Fraction, noise: Noise) -> _Cut:
        """Behind the place, between two cuts, up to which about this part of the rows between them lies."""
        if low.place == high.place:
            return low
        g, h = part.as_integer_ratio()
        between = self.rows[low.rows : high.rows]
        number = len(between)
        edges = np.empty(number + 2, self.rows.dtype)
        edges[0], edges[1:-1], edges[-1] = low.place, between, high.place
        lengths = np.diff(edges)
        upto = np.arange(number + 1).astype(np.int64 if h * number < _FITS else object)
        scores = -np.abs(h * upto - g * number)
        there = lengths > 0
        place = low.place + noise.permute_and_flip(scores[there], lengths[there], scale)
        return _Cut(place + 1, low.rows + int(np.searchsorted(between, place, side="right")))
