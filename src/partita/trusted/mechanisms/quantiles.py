"""Quantiles of one column by permute-and-flip over its cells [MS20], and by recursion [KSS22]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints, UInts
from partita.errors import check_bool
from partita.guarantee import CHANGE_ONE
from partita.numbers import Converted, freeze, frozen, integer, parameter
from partita.public.axis.quantile_plan import (
    DEPTHS,
    SPLITS,
    USUAL_SPLIT,
    ColumnLook,
    Levels,
    Node,
    bound_reaches,
    divide_rate,
    list_depths,
    list_parents,
    plan_levels,
    predict_miss,
    share_levels,
    weigh_favoured,
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
"""Of epsilon, for how many rows there are and whether they lie in heaps: more would widen all answers, with
less a fifth of 1,000 rows times epsilon would be hidden by noise."""

_FEWEST_LEARNED: Final = 3  # quantiles from which on a look is worth its part of epsilon
_INTERVALS: Final = Fraction(
    2, 5
)  # of epsilon, for value intervals; the value of the first prototype, not tuned
_FITS: Final = 2**62  # below this, sums and products stay in int64


@final
@frozen(kw_only=True)
class QuantileSelection(Mechanism):
    """Publish one quantile or several of one column, and nothing else; size up to 2^64.

    `quantiles` are shares between 0 and 1, or a number m of evenly spaced ones. `offset` is the value of the
    first cell: zero is a likely place of a heap. From three quantiles on a noisy look decides whether each is
    chosen, or all are read off `Intervals`. `interval` buys an interval of values around each quantile: of
    one or two for 2/5 of epsilon, of more by `Intervals`, which has them.
    Time tells the number of distinct values, and nothing else that is not released.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [MS20], [KSS22]
    Error:     2 max(q, 1-q) (ln size + ln 1/beta) / epsilon rows; O(log^2 m log size / epsilon) for m, or
               what a tree has, measured.
    Proof:     docs/proofs/quantiles.md (unclipped scores, exact draws, cuts of heaps, a look)

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
        parents = list_parents(self.levels)
        for nodes, rate in zip(self.levels, self.rates, strict=True):
            for node in nodes:
                for split in self._splits:
                    choice, cut = divide_rate(node, rate, split, parents)
                    check_scale(2 * node.change / choice, self.epsilon)
                    if cut:
                        check_scale(node.change / cut, self.epsilon)
        for beside in (self.look, self.side):
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
        """Epsilon of the look at heaps, for each row by which neighbours differ; None for no look."""
        return _LOOK * self.epsilon / self.rows_changed if self._looks else None

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
        """Whether a look decides that; with intervals it is better in any case."""
        return self._learns and not self.interval

    @property
    def _chosen(self) -> Fraction:
        """The part of epsilon that finds the quantiles themselves."""
        if self._looks:
            return (1 - _LOOK) * self.epsilon
        return (1 - _INTERVALS) * self.epsilon if self.side is not None else self.epsilon

    def predicted_error(self, rows: int) -> float:
        """About the rows that a quantile misses its rank by, as a mean; the number of rows hardly matters."""
        return predict_miss(self.levels, self.rates)

    def bound_ranks(self, beta: float) -> list[float]:
        """Rows that each quantile misses its rank by at most, except with probability beta.

        Of several quantiles that is before anything is known of heaps, and if no tree is better.
        """
        reaches = (
            bound_reaches(self.quantiles, self.rates, self.size, split, beta) for split in self._splits
        )
        return list(map(max, zip(*reaches, strict=True)))

    @property
    def _splits(self) -> tuple[Fraction, ...]:
        """The parts of a level that may cut heaps."""
        return SPLITS if self._looks else (USUAL_SPLIT,)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds; those of a tree are included where there may be one."""
        looked = len(DEPTHS) + 1 if self._looks else 0
        counted = self.tree.predicted_numbers(rows) if self._learns else 0
        return len(self.quantiles) * (1 if self.side is None else 3) + looked + counted

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> QuantileRelease:
        """Look; then choose each quantile, the middle one first, and ends of intervals, or grow a tree."""
        counts = check_fits(data, self.size, self.contributions)
        column = _Column.of(counts, noise)
        session = noise.session()
        look = self._look(column, session)
        better = self._learns if look is None else look.prefers_tree
        tree = self.tree.release(counts, noise=PartNoise(session)) if better else None
        split = USUAL_SPLIT if look is None else look.split
        cells = self._choose(column, split, session) if tree is None else read_quantiles(tree, self.quantiles)
        return QuantileRelease(
            size=self.size,
            offset=self.offset,
            quantiles=self.quantiles,
            cells=np.array(cells, np.uint64),
            rates=self.rates if tree is None else (self._chosen / self.rows_changed,),
            look=self.look,
            depths=np.array([] if look is None else look.depths, np.int64),
            side=self.side,
            ends=np.array(self._find_ends(column, list(cells), session), np.uint64),
            tree=tree,
            guarantee=self.guarantee if session.secure else None,
        )

    def _look(self, column: _Column, noise: Noise) -> ColumnLook | None:
        """Noisy numbers of rows by how many rows of their cell come before them; each row is in one."""
        if self.look is None:
            return None
        edges = list_depths(self._chosen / self.rows_changed)
        noisy = noise.add(column.count_depths(edges), 1 / self.look)
        return ColumnLook(self.size, tuple(noisy.tolist()), 1 / self.look, self.levels, self.rates)

    def _choose(self, column: _Column, split: Fraction, noise: Noise) -> list[int]:
        if len(self.quantiles) == 1:
            return [self._choose_one(column, noise)]
        return self._choose_several(column, split, noise)

    def _choose_one(self, column: _Column, noise: Noise) -> int:
        """Over cells: score -max(q below - p rows, p rows - q up to it), for a share p/q; never clipped."""
        ((node,),) = self.levels
        p, q = node.part.as_integer_ratio()
        runs = _Runs.of(column, self.size, largest=q * column.rows)
        scores = -np.maximum(q * runs.below - p * column.rows, p * column.rows - q * runs.upto)
        return noise.permute_and_flip(scores, runs.lengths, 2 * node.change / self.rates[0])

    def _choose_several(self, column: _Column, split: Fraction, noise: Noise) -> list[int]:
        """Level by level, among the cells between those chosen before; each then cuts the rows in two."""
        parents, favoured = list_parents(self.levels), (-self.offset,)
        cuts = {-1: _Cut(0, 0), len(self.quantiles): _Cut(self.size - 1, column.rows)}
        for nodes, rate in zip(self.levels, self.rates, strict=True):
            for node in nodes:
                between = column.between(cuts[node.left], cuts[node.right], favoured)
                choice, cut = divide_rate(node, rate, split, parents)
                cuts[node.number] = between.choose(node, choice, cut, noise)
        return [cuts[index].cell for index in range(len(self.quantiles))]

    def _find_ends(self, column: _Column, cells: list[int], noise: Noise) -> list[int]:
        """Two cells around each quantile between which the true one lies with `CONFIDENCE`."""
        if self.side is None:
            return []
        ranks = self.end_ranks()
        found = []
        for cell, rank in zip(cells, ranks, strict=True):
            below, above = column.sides(cell)
            found.append(cell - self._find_end(below, cell, rank, noise))
            found.append(cell + self._find_end(above, self.size - 1 - cell, rank, noise))
        return found

    def end_ranks(self) -> list[int]:
        """How many rows there should be between each quantile and an end of its interval: public."""
        beta = float(1 - CONFIDENCE)
        own = self.bound_ranks(beta / 2)
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

    def count_depths(self, edges: Sequence[int]) -> Ints:
        """How many rows have fewer rows of their cell before them than the first edge, the next, or more.

        Where a cell has one row more, one of these numbers is larger by one, whichever row comes first.
        """
        upto = [int(np.minimum(self.counts, edge).sum()) for edge in edges]
        return np.array([after - before for before, after in pairwise([0, *upto, self.rows])], np.int64)

    def between(self, low: _Cut, high: _Cut, favoured: Sequence[int]) -> _Between:
        """The cells from one cut to another, with the rows between them."""
        first = np.searchsorted(self.cells, low.cell)
        stop = np.searchsorted(self.cells, high.cell, "right")
        own, upto = self.cells[first:stop], self._upto[first : stop + 1]
        rows = np.diff(np.clip(upto, low.rows, high.rows))
        likely = sorted({low.cell, high.cell, *(c for c in favoured if low.cell <= c <= high.cell)})
        absent = [cell for cell in likely if cell not in own[np.searchsorted(own, cell) :][:1]]
        places = np.searchsorted(own, absent)
        cells = np.insert(own, places, absent) - low.cell
        column = _Column(cells, np.insert(rows, places, 0))
        return _Between(low, high, column, tuple(cell - low.cell for cell in likely))

    @cached_property
    def _upto(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.counts)])

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

    starts: NDArray[Any]
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
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        upto = np.concatenate([[0], np.cumsum(column.counts)]).astype(np.int64 if largest < _FITS else object)
        twice, there = np.repeat(upto, 2), lengths > 0
        return _Runs(starts[there], lengths[there], twice[:-1][there], twice[1:][there])


@dataclass(frozen=True)
class _Cut:
    """A cell that was chosen, and how many rows count as lying before the cut that goes through it."""

    cell: int
    rows: int


@dataclass(frozen=True)
class _Between:
    """Cells from one cut to another, by how far they are from the first, and the rows between both cuts.

    Of a heap at a cut only those rows are in it that lie on its side. `favoured` cells are among those of
    the column even if they have no rows: which cells those are is public.
    """

    low: _Cut
    high: _Cut
    column: _Column
    favoured: tuple[int, ...]

    def choose(self, node: Node, choice: Fraction, cut: Fraction, noise: Noise) -> _Cut:
        """The cell with score -max(h below - g rows, g rows - h up to it), for a part g/h, and a cut in it.

        The cut leaves to the lower side as many rows of the cell as bring it to its part, with noise.
        """
        g, h = node.part.as_integer_ratio()
        rows, size = self.column.rows, self.high.cell - self.low.cell + 1
        runs = _Runs.of(self.column, size, largest=h * rows)
        scores = -np.maximum(h * runs.below - g * rows, g * rows - h * runs.upto)
        weights = self._weigh(runs, size)
        place = noise.permute_and_flip(scores, weights, 2 * node.change / choice)
        run, rest = _find_run(weights, place)
        cell = int(runs.starts[run]) + (rest if weights[run] == runs.lengths[run] else 0)
        below, inside = int(runs.below[run]), int(runs.upto[run] - runs.below[run])
        if cut:
            lower = int(noise.add([g * rows - h * below], node.change / cut)[0]) // h
            below += min(max(lower, 0), inside)
        return _Cut(self.low.cell + cell, self.low.rows + below)

    def _weigh(self, runs: _Runs, size: int) -> NDArray[Any]:
        """How many candidates each run has: its cells, but more for a favoured one."""
        weights = runs.lengths.copy()
        weights[np.searchsorted(runs.starts, self.favoured)] = weigh_favoured(size)
        return weights


def _find_run(lengths: NDArray[Any], place: int) -> tuple[int, int]:
    """The run in which a candidate is, and how many of the run come before it."""
    behind = np.cumsum(lengths)
    run = int(np.searchsorted(behind, place, "right"))
    return run, place - (int(behind[run - 1]) if run else 0)
