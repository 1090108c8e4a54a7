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
from partita.public.axis.quantile_plan import (
    BLOCK,
    TAG_BITS,
    ColumnLook,
    Copies,
    Levels,
    bound_reaches,
    learn_copies,
    list_divisors,
    plan_levels,
    predict_miss,
    share_levels,
)
from partita.public.axis.quantiles import (
    CONFIDENCE,
    LARGEST_SIZE,
    QuantileRelease,
    parse_quantiles,
    read_quantiles,
)
from partita.trusted.mechanisms.base import Mechanism, PartNoise, check_fits, check_scale
from partita.trusted.mechanisms.spending_tree import Intervals
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, Histogram

_LOOK: Final = Fraction(1, 50)
"""Of epsilon, for how round values are: more would widen all answers, less would miss heaps. With a fiftieth
heaps on round values are found from about 2,000 rows times epsilon on."""

_HEAP_LOOK: Final = Fraction(1, 100)
"""Of epsilon, for rows that lie densely or in heaps: more would widen all answers, with less noise decides
more often. At 1,000 rows times epsilon it hides about one dense column in six."""

_FEWEST_LEARNED: Final = 3  # quantiles from which on looks are worth their part of epsilon
_INTERVALS: Final = Fraction(
    2, 5
)  # of epsilon, for value intervals; the value of the first prototype, not tuned
_FITS: Final = 2**62  # below this, sums and products stay in int64


@final
@frozen(kw_only=True)
class QuantileSelection(Mechanism):
    """Publish one quantile or several of one column, and nothing else; size up to 2^64.

    `quantiles` are shares between 0 and 1, or a number m of evenly spaced ones. `offset` is the value of the
    first cell, by which round values are told: 50,000 is rounder than 49,817. From three quantiles on noisy
    looks decide whether each is chosen, or all are read off `Intervals`. `interval` buys an interval of
    values around each quantile: of one or two for 2/5 of epsilon, of more by `Intervals`, which has them.
    Time tells the number of distinct values, and nothing else that is not released.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [MS20], [KSS22]
    Error:     2 max(q, 1-q) (ln size + ln 1/beta) / epsilon rows; O(log^2 m log size / epsilon) for m, or
               what a tree has, measured.
    Proof:     docs/proofs/quantiles.md (unclipped scores, exact draws, tags, learned copies, looks)

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
        for beside in (self.look, self.heap_look, self.side):
            if beside is not None:
                check_scale(2 / beside, self.epsilon)
        if self._learns:
            _ = self.tree

    @cached_property
    def levels(self) -> Levels:
        """The plan: which quantile is chosen between which others."""
        return plan_levels(self.quantiles)

    @property
    def look(self) -> Fraction | None:
        """Epsilon of the look at round values, for each row by which neighbours differ; None for no look."""
        return _LOOK * self.epsilon / self.rows_changed if self._looks else None

    @property
    def heap_look(self) -> Fraction | None:
        """Epsilon of the look at rows that lie densely or in heaps, for each such row; None for no look."""
        return _HEAP_LOOK * self.epsilon / self.rows_changed if self._looks else None

    @property
    def side(self) -> Fraction | None:
        """Epsilon of both ends of one value interval, for each row by which neighbours differ."""
        if not self.interval or self._learns:
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
        return tuple(share * self._chosen / self.rows_changed for share in share_levels(self.levels))

    @cached_property
    def tree(self) -> Intervals:
        """What several quantiles are read off, if they are not chosen: with the same part of epsilon."""
        return Intervals(size=self.size, epsilon=self._chosen, **self.protected)

    @property
    def _learns(self) -> bool:
        """Whether there are so many quantiles that a tree may be better."""
        return len(self.quantiles) >= _FEWEST_LEARNED

    @property
    def _looks(self) -> bool:
        """Whether looks decide that; with intervals it is better in any case."""
        return self._learns and not self.interval

    @property
    def _chosen(self) -> Fraction:
        """The part of epsilon that finds the quantiles themselves."""
        if self._looks:
            return (1 - _LOOK - _HEAP_LOOK) * self.epsilon
        return (1 - _INTERVALS) * self.epsilon if self.side is not None else self.epsilon

    def predicted_error(self, rows: int) -> float:
        """About the rows that a quantile misses its rank by, as a mean; the number of rows hardly matters."""
        return predict_miss(self.levels, self.rates)

    def bound_ranks(self, beta: float) -> list[float]:
        """Rows that each quantile misses its rank by at most, except with probability beta.

        Of several quantiles that is before anything is known of round values, and if no tree is better.
        """
        return bound_reaches(self.quantiles, self.rates, Copies(self.size, self.offset), beta)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds; those of a tree are included where there may be one."""
        learned = 1 + len(list_divisors(self.size)) if self._looks else 0
        counted = self.tree.predicted_numbers(rows) if self._learns else 0
        return len(self.quantiles) * (1 if self.side is None else 3) + learned + counted

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> QuantileRelease:
        """Look; then choose each quantile, the middle one first, and ends of intervals, or grow a tree."""
        counts = check_fits(data, self.size, self.contributions)
        column = _Column.of(counts, noise)
        session = noise.session()
        rounds, copies = self._learn(column, session)
        heaps, better = self._compare(column, rounds, copies, session)
        tree = self.tree.release(counts, noise=PartNoise(session)) if better else None
        cells = (
            self._choose(column, copies, session) if tree is None else read_quantiles(tree, self.quantiles)
        )
        return QuantileRelease(
            size=self.size,
            offset=self.offset,
            quantiles=self.quantiles,
            cells=np.array(cells, np.uint64),
            rates=self.rates if tree is None else (self._chosen / self.rows_changed,),
            look=self.look,
            rounds=rounds,
            heap_look=self.heap_look,
            heaps=heaps,
            side=self.side,
            ends=np.array(self._find_ends(column, list(cells), copies, session), np.uint64),
            tree=tree,
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

    def _compare(
        self, column: _Column, rounds: NDArray[Any], copies: Copies, noise: Noise
    ) -> tuple[int, bool]:
        """The noisy number of rows that lie densely, or in heaps, and whether a tree is better."""
        if self.heap_look is None:
            return 0, self._learns
        look = ColumnLook(tuple(rounds.tolist()), copies, self.levels, self.rates)
        heaps = int(noise.add(column.count_blocks(look.least, dense=look.few), 1 / self.heap_look))
        return heaps, look.prefers_tree(heaps, 1 / self.heap_look)

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

    def count_blocks(self, least: int, *, dense: bool) -> int:
        """Rows beside the largest cell of a block, or by which it exceeds them, beyond `least`: a sum.

        A row changes that by one at most: it adds to the largest cell of its block, or to the others.
        """
        if not self.counts.size:
            return 0
        blocks = self.cells // BLOCK
        starts = np.flatnonzero(np.concatenate([[True], blocks[1:] != blocks[:-1]]))
        largest = np.maximum.reduceat(self.counts, starts)
        others = np.add.reduceat(self.counts, starts) - largest
        rows = others if dense else largest - others
        return int(np.maximum(rows - least, 0).sum())

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
