"""Private Partition [DNRR15, section 2]: contiguous segments of small weight; and tents, which count them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import ClassVar, Final, Literal, NamedTuple, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Ints, UInts
from partita.errors import EntropyError, InvalidData, InvalidParameter, check, check_data, raise_without_cause
from partita.numbers import (
    Converted,
    Exact,
    check_choice,
    check_probability,
    freeze,
    frozen,
    integer,
    parameter,
)
from partita.public.axis.tent_solver import (
    GRAIN_BITS,
    MOST_LEVELS,
    Pairs,
    TentCounts,
    TentStrategy,
    plan_levels,
    split_last_cells,
)
from partita.public.axis.tents import (
    BUDGET_UNITS,
    LEAST_COUNTING,
    LEAST_LOOK,
    PartitionTentsRelease,
    TentBudget,
    TentRelease,
    informed,
)
from partita.public.axis.tree import Cut
from partita.public.base import LARGEST_NUMBER
from partita.public.bounds import typical_error
from partita.trusted.mechanisms.base import Mechanism, PartNoise, check_fits, check_rows, check_scale
from partita.trusted.noise import hazard
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import Uncopyable, enclose, floor
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, Histogram

_MOST_EMPTY_SEGMENTS: Final = 10**6  # expected; a lower threshold would fill memory with them
_LARGEST_SIZE: Final = 2**24  # of tents, which count every cell
_FULL_CELL: Final = 10  # rows times rate that make a cell well filled
_FULL_PART: Final = Fraction(35, 100)  # from this part of full cells on, cells are counted, not segments
_SMALLEST_SHARE: Final = Fraction(1, 10)  # no level of tents has less of the rate
_FEW_EMPTY: Final = 20  # segments that a prediction adds for empty ones


@final
@frozen(kw_only=True)
class Partition(Mechanism):
    """Cut the cells 0, ..., size-1 into segments of small weight; at most n+1 of them, nearly always.

    Guarantee: epsilon-DP, pure, for any public threshold; ADD_REMOVE or CHANGE_ONE.   [DNRR15, Thm 2.1]
    Error:     with probability 1 - beta no empty segment but the last, and every weight at most
               `weight_bound(n)` if no cell holds more than one item: O((log size + log n/beta) / epsilon).
    Proof:     docs/proofs/partition.md (integer noise, one-sided law, exact thresholds)

    `law` is the noise on counts and threshold: one-sided "geometric", or "laplace" as in the paper.
    `threshold` None is the least that keeps empty segments away; "paper" is Figure 1's.

    >>> partition = Partition(size=2**64, epsilon=1)
    >>> partition.threshold, partition.weight_bound(10**6)
    (47, 66)
    """

    bound_of: ClassVar[str] = "the rows in any segment, if no two rows share a cell"

    size: int
    beta: Exact = parameter(default="0.05")
    law: Law = "geometric"
    threshold: Converted[int | Literal["paper"] | None, int] = parameter(default=None)

    def _convert(self) -> None:
        super()._convert()
        size, beta = integer(self.size, "size", low=1, high=2**64), check_probability(self.beta)
        freeze(self, size=size, beta=beta, law=check_choice(self.law, "law", get_args(Law)))
        check_scale(self.scale, self.epsilon)
        freeze(self, threshold=self._threshold(self.threshold))
        rule = f"must keep the expected number of empty segments below {_MOST_EMPTY_SEGMENTS}"
        few, fix = not self.empty_segments.reaches(_MOST_EMPTY_SEGMENTS), "raise it, or leave it to be chosen"
        check(few, "threshold", rule, given=self.threshold, fix=fix)

    @property
    def scale(self) -> Fraction:
        """The noise scale: the distance of neighbours' weights, over epsilon."""
        return 1 / self.rate

    @property
    def empty_segments(self) -> hazard.RealBound:
        """The expected number of empty segments is at most this: size P[N - N' > threshold]."""
        return hazard.scaled(hazard.difference(self.law, self.scale, self.threshold + 1), self.size)

    def weight_bound(self, n: int, beta: object | None = None) -> int:
        """With probability 1 - beta no segment of an n-item set weighs more than this.

        A cell of multiplicity m adds m - 1. By default beta is the half of the partition's own
        that the threshold leaves over.
        """
        chance = self.beta / 2 if beta is None else check_probability(beta)
        return self.heaviest(integer(n, "n", low=0) + 1, chance)

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no segment weighs more, for at most `rows` rows in cells of their own.

        This is Theorem 2.1 as a number, with exact tails in place of its constants; half of beta each for the
        number of segments and for their weights.
        """
        number, half = check_rows(rows), check_probability(beta) / 2
        return float(self.heaviest(self.most_segments(number, half), half))

    def most_segments(self, n: int, beta: Fraction) -> int:
        """With probability 1 - beta an n-item cut has no more segments, whatever the threshold.

        At most n hold an item, and one more ends the universe. The expected number of empty ones is E at
        most, so that more than floor(E / beta) are there with probability beta at most (Markov).
        """
        return min(self.size, n + 1 + floor(lambda: self.empty_segments.real() / enclose(beta)))

    def heaviest(self, segments: int, beta: Fraction) -> int:
        """With probability 1 - beta none of the first so many segments of a set weighs more.

        The noise on each of their thresholds is fresh, whichever of them hold items.
        """
        each = beta / segments
        if self.law == "geometric":
            return self.threshold + hazard.geometric_quantile(self.scale, each) + 1
        return self.threshold + hazard.difference_quantile(self.law, self.scale, each)

    def cut(self, data: AxisCounts | ArrayLike, *, within: range | None = None, noise: Noise = SYSTEM) -> Cut:
        """Cut counts, or cells given one per row in ascending order.

        `within` cuts one public range of cells only, of a Histogram. Cuts of disjoint ranges are
        independent and compose in parallel; `Cut.join` puts them together. So do the shards of counts on
        other machines.
        """
        if isinstance(data, AxisCounts):
            counts = check_fits(data, self.size, self.contributions)
        else:
            counts = Histogram.from_sorted(data, size=self.size, contributions=self.contributions)
        if within is not None:
            return self._cut_within(counts, within, noise)
        session = noise.session()
        edges = counts.in_shards(self._seals, noise=session)
        return Cut(edges=edges, guarantee=self.guarantee if session.secure else None)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> Cut:
        """The same as `cut`, under the name that every mechanism has."""
        return self.cut(data, noise=noise)

    def shards(self, count: int) -> list[range]:
        """The universe in `count` ranges of nearly equal length: a public split to cut side by side."""
        count = integer(count, "count", low=1, high=self.size)
        bounds = [self.size * i // count for i in range(count + 1)]
        return [range(low, high) for low, high in pairwise(bounds)]

    def online(self, *, noise: Noise = SYSTEM) -> Cutter:
        """Cut a stream whose items arrive in order of position."""
        return Cutter(self, noise)

    def _cut_within(self, counts: AxisCounts, shard: range, noise: Noise) -> Cut:
        given: object = shard
        valid = isinstance(given, range) and given.step == 1 and 0 <= given.start < given.stop <= self.size
        rule, fix = "must be a non-empty range of cells", "use partition.shards"
        check(valid, "within", rule, given=given, fix=fix)
        if not isinstance(counts, Histogram):
            raise InvalidData("data", "must be a Histogram to be cut within a range", fix="cut all of it")
        session = noise.session()
        edges = self._seals(counts, shard, session)
        return Cut(edges=edges, start=shard.start, guarantee=self.guarantee if session.secure else None)

    def _seals(self, histogram: Histogram, shard: range, noise: Noise) -> NDArray[np.uint64]:
        """The seals of a shard: the fast walk while it is certain, else one segment by `_segment`."""
        cells, counts = histogram.within(shard.start, shard.stop)
        last = shard.stop - 1
        fast = noise.segments(self.law, self.scale, self.threshold, cells, counts, last)
        seals = []
        start = shard.start
        while start <= last:
            found = np.zeros(0, dtype=np.uint64) if fast is None else fast.ends(start)
            if not found.size:
                first = int(np.searchsorted(cells, np.uint64(start)))
                seal = self._segment(start, _items(cells, counts, first), last, noise)
                found = np.array([seal], dtype=np.uint64)
            seals.append(found)
            start = int(found[-1]) + 1
        return np.concatenate(seals)

    def _segment(self, start: int, items: Iterable[tuple[int, int]], last: int, noise: Noise) -> int:
        """The seal of the segment that opens at `start`; the last segment ends with the universe."""
        segment = _OpenSegment(self, start, noise)
        for position, weight in items:
            seal = segment.seal_before(position)
            if seal is not None:
                return seal
            segment.add(weight)
        seal = segment.seal_before(last + 1)
        return last if seal is None else seal

    def _threshold(self, threshold: int | str | None) -> int:
        if threshold is None:
            return hazard.difference_quantile(self.law, self.scale, self.beta / 2 / self.size) - 1
        if isinstance(threshold, str) and threshold == "paper":
            return hazard.floor_log(self.size / self.beta, 3 * self.scale)
        return integer(threshold, "threshold", low=0, high=2**62)


class SealRule(NamedTuple):
    """When segments are sealed: the law and scale of all noise, and the public threshold."""

    law: Law
    scale: Fraction
    threshold: int


def cut_wide(
    rule: SealRule, cells: range, items: Iterable[tuple[int, int]], *, noise: Noise
) -> Iterator[int]:
    """The seals of `Partition` over cells of any width up to 400 bits, as Python integers.

    `items` are cells with their counts, ascending. It is the walk of `Cutter.update`, item by item: the cost
    follows the number of items, and the law is that of `Partition`, whose proof asks nothing of the width.
    """
    last, segment = cells.stop - 1, _OpenSegment(rule, cells.start, noise)
    for cell, count in items:
        while (seal := segment.seal_before(cell)) is not None:
            yield seal
            segment = _OpenSegment(rule, seal + 1, noise)
        segment.add(count)
    while segment.position <= last:
        seal = segment.seal_before(last + 1)
        if seal is None or seal == last:
            break
        yield seal
        segment = _OpenSegment(rule, seal + 1, noise)
    yield last


class _OpenSegment(Uncopyable):
    """One round of Figure 1: a noisy threshold, a count, and fresh noise at every position.

    The segment is sealed where count + noise > threshold + noise', that is where fresh noise
    exceeds level = threshold + noise' - count.
    """

    def __init__(self, rule: Partition | SealRule, start: int, noise: Noise) -> None:
        self.position = start
        self._level = rule.threshold + noise.draw(rule.law, rule.scale)
        self._fresh = noise.first_success(rule.law, rule.scale)

    def add(self, weight: int) -> None:
        """Items arrive at the current position."""
        self._level = self._level - weight

    def seal_before(self, position: int) -> int | None:
        """The seal, if there is one before `position`; else the segment stays open up to there."""
        offset = self._fresh.run(self._level, position - self.position)
        if offset is not None:
            return self.position + offset
        self.position = position
        return None


@final
class Cutter(Uncopyable):
    """Cuts a stream: items and empty runs come in order, and seals are reported as they happen.

    Positions are a public clock. On a live stream call `add` for items, which returns nothing, and
    `advance` as the clock moves, which reports the seals: then what is published, and when, depends on
    the cut alone. `update` moves the clock to the position of an item, and replays data that are complete.

    The noise of the open segment is in memory: a cutter cannot be copied, does not continue in a forked
    child, and is not pan-private. If it is interrupted in the middle of a step, it cannot be used again.

    >>> cutter = Partition(size=100, epsilon=1).online()
    >>> cutter.add(3)
    >>> seals = cutter.advance(50)
    >>> cutter.finish().last
    99
    """

    def __init__(self, partition: Partition, noise: Noise) -> None:
        self._partition = partition
        self._noise = noise.session()
        self._seals: list[int] = []
        self._segment = _OpenSegment(partition, 0, self._noise)
        self._owner = os.getpid()
        self._broken = False

    @property
    def position(self) -> int:
        """The position that is not complete yet; the size once all are."""
        return self._segment.position

    def add(self, weight: int = 1) -> None:
        """Items of total `weight` arrive at the current position."""
        weight = _check_integer(weight, "weight")
        inside = 0 <= weight < 2**62 and self.position < self._partition.size
        check_data(inside, "weight", "must lie between 0 and 2^62, inside the universe", fix="count items")
        with self._step():
            self._segment.add(weight)

    def advance(self, run: int) -> list[int]:
        """The clock moves on by `run` positions; returns the seals among them."""
        run = _check_integer(run, "run")
        inside, fix = 0 <= run <= self._partition.size - self.position, "stop the clock at its end"
        check_data(inside, "run", "must not leave the universe", fix=fix)
        known, goal = len(self._seals), self.position + run
        with self._step():
            while self.position < goal:
                seal = self._segment.seal_before(goal)
                if seal is not None:
                    self._seals.append(seal)
                    self._open(seal + 1)
        return self._seals[known:]

    def update(self, position: int, weight: int = 1) -> list[int]:
        """Replay: move the clock to `position`, where items arrive; returns the seals on the way."""
        position, weight = _check_integer(position, "position"), _check_integer(weight, "weight")
        inside = self.position <= position < self._partition.size
        fix = "feed items in order"
        check_data(inside, "position", "must not go back nor leave the universe", fix=fix)
        check_data(0 <= weight < 2**62, "weight", "must lie between 0 and 2^62", fix="count items")
        seals = self.advance(position - self.position)
        self.add(weight)
        return seals

    def finish(self) -> Cut:
        """Move the clock past the end of the universe and return the whole cut."""
        self.advance(self._partition.size - self.position)
        last = self._partition.size - 1
        edges = self._seals if self._seals[-1:] == [last] else [*self._seals, last]
        guarantee = self._partition.guarantee if self._noise.secure else None
        return Cut(edges=np.array(edges, dtype=np.uint64), guarantee=guarantee)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """An interrupted step breaks the cutter: noise that was used once must not be used again."""
        if self._broken or os.getpid() != self._owner:
            raise EntropyError(
                "this cutter was interrupted or forked in the middle of a cut; start a new one"
            )
        self._broken = True
        yield
        self._broken = False

    def _open(self, start: int) -> None:
        if start < self._partition.size:
            self._segment = _OpenSegment(self._partition, start, self._noise)
        else:
            self._segment.position = start


def _items(cells: np.ndarray, counts: np.ndarray, first: int) -> Iterator[tuple[int, int]]:
    """(cell, count) from the first on, converted in chunks: a segment may need a few of many."""
    for start in range(first, cells.size, 256):
        chunk = slice(start, start + 256)
        yield from zip(cells[chunk].tolist(), counts[chunk].tolist(), strict=True)


def _check_integer(value: object, name: str) -> int:
    failure = InvalidData(name, "must be an integer", fix="pass an int")
    return raise_without_cause(lambda: integer(value, name), failure, InvalidParameter)


@final
@frozen(kw_only=True)
class Tents(Mechanism):
    """Publish once; answer every interval over 0, ..., size-1 from overlapping sums on several levels.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     least squares; standard error 8.3 / epsilon for a random range of a universe of 256 cells,
               11.4 / epsilon for one of 1024.
    Proof:     docs/proofs/tents.md (every level counts everybody once; integer weights and noise)

    >>> Tents(size=256, epsilon=1).scales
    [Fraction(2, 1), Fraction(512, 1)]
    """

    name: ClassVar[str] = "tents"

    size: int

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=_LARGEST_SIZE))

    def _check(self) -> None:
        for scale in self.scales:
            check_scale(scale, self.epsilon)

    @property
    def scales(self) -> list[Fraction]:
        """The noise scale of each level's integers."""
        return level_scales(plan_levels(self.size)[1], self.rate)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range; the number of rows does not matter."""
        return typical_error(self.size, self.rate)

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return sum(plan_levels(self.size)[0])

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> TentRelease:
        """Count every cell and every tent, and add noise."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        tents = measure_tents(counts.spread(), self.rate, session)
        return TentRelease(size=self.size, tents=tents, guarantee=self.guarantee if session.secure else None)


def measure_tents(units: NDArray[np.int64], rate: Fraction, noise: Noise) -> TentCounts:
    """Noisy tents over the counts of units; one row more or less costs `rate`.

    A row changes level l by 2^8l in L1 norm, so with noise of scale 2^8l / (share rate) it costs its
    share of the rate there, and the shares add up to one. How many units there are must be public.
    """
    sizes, shares = plan_levels(units.size)
    exact = TentStrategy.over(sizes, shares).exact(units)
    scales = level_scales(shares, rate)
    noisy = tuple(noise.add(values, scale) for values, scale in zip(exact, scales, strict=True))
    return TentCounts(levels=noisy, shares=shares, rate=rate)


def level_scales(shares: tuple[Fraction, ...], rate: Fraction) -> list[Fraction]:
    """The noise scale of each level: level l is in units of 2^-8l."""
    return [2 ** (GRAIN_BITS * level) / (share * rate) for level, share in enumerate(shares)]


@final
@frozen(kw_only=True)
class PartitionTents(Mechanism):
    """A private partition, counted by tents: every interval over 0, ..., size-1, size up to 2^64.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/partition_tents.md (exact shares; choices by public and released numbers)

    `total` is a public number of rows, a guess or one that was released before; it decides how
    epsilon is divided, never what is private. Heavy cells seal their segment, so last cells of segments
    are counted separately.

    >>> PartitionTents(size=2**64, epsilon=1, total=100_000).partition.threshold
    443
    """

    name: ClassVar[str] = "partition-tents"

    size: int
    total: int = 0

    def _convert(self) -> None:
        super()._convert()
        size = integer(self.size, "size", low=1, high=2**64)
        freeze(self, size=size, total=integer(self.total, "total", low=-LARGEST_NUMBER, high=LARGEST_NUMBER))

    def _check(self) -> None:
        for scale in (1 / self.rate, *self._largest_scales, self.partition.scale):
            check_scale(scale, self.epsilon)

    @cached_property
    def budget(self) -> TentBudget:
        """How epsilon is divided."""
        return TentBudget(self.size, informed(self.total, self.rate))

    @cached_property
    def partition(self) -> Partition:
        """The partition, with its share of epsilon and one-sided noise."""
        epsilon = self.epsilon * Fraction(self.budget.partition, BUDGET_UNITS)
        return Partition(
            size=self.size,
            epsilon=epsilon,
            threshold=math.floor(Fraction(self.budget.level) / self._rate(self.budget.partition)),
            **self.protected,
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""
        return typical_error(self.size, self.rate, rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds: eight for each segment, of which a few are empty."""
        budget = TentBudget(self.size, informed(rows, self.rate))
        full = budget.informed * Fraction(budget.partition, BUDGET_UNITS) / Fraction(budget.level)
        return 8 * min(self.size, math.ceil(full) + _FEW_EMPTY)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> PartitionTentsRelease:
        """Test if cells are well filled, cut if they are not, and count with the rest of epsilon."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        filled = self._filled(counts, session)
        if filled is not None and self._is_full(filled):
            cut, (tents, pairs) = None, self._count_cells(counts, session)
        else:
            cut = self.partition.cut(counts, noise=PartNoise(session))
            tents, pairs = self._count_segments(counts, cut, session)
        return PartitionTentsRelease(
            size=self.size,
            total=self.total,
            rate=self.rate,
            filled=filled,
            cut=cut,
            tents=tents,
            pairs=pairs,
            guarantee=self.guarantee if session.secure else None,
        )

    def _filled(self, counts: AxisCounts, noise: Noise) -> int | None:
        """The noisy number of rows if each cell counts up to a public limit; None if there is no such test.

        One row more or less changes it by at most one.
        """
        if not self.budget.asks_if_full:
            return None
        rows = counts.folded(partial(_limited, self._full_cell))
        return int(noise.add(int(rows[0]), self._scale(self.budget.fullness)))

    def _is_full(self, filled: int) -> bool:
        return filled >= _FULL_PART * self._full_cell * self.size

    @property
    def _full_cell(self) -> int:
        """The number of rows that make a cell well filled."""
        return math.ceil(_FULL_CELL / self.rate)

    def _count_cells(self, counts: AxisCounts, noise: Noise) -> tuple[TentCounts, None]:
        """Every cell is a unit."""
        return measure_tents(counts.spread(), self._rate(self.budget.counting(full=True)), noise), None

    def _count_segments(self, counts: AxisCounts, cut: Cut, noise: Noise) -> tuple[TentCounts, Pairs | None]:
        """Units are the segments and their last cells, or the segments, with a second look at pairs."""
        pieces = Cut(edges=split_last_cells(cut.edges))
        units = self.budget.counting(full=False)
        weights = counts.weigh(pieces)
        if len(pieces) == len(cut) or self.budget.cuts_off_last_cells(len(cut)):
            return measure_tents(weights, self._rate(units), noise), None
        segments = np.add.reduceat(weights, pieces.locate(cut.starts))
        tents = measure_tents(segments, self._rate(units - self.budget.pairs), noise)
        return tents, self._look_at_pairs(weights, cut, pieces, noise)

    def _look_at_pairs(self, weights: Ints, cut: Cut, pieces: Cut, noise: Noise) -> Pairs:
        """Last cell and rest of every wide segment; a row lies in one of the two."""
        last = pieces.locate(cut.edges)[cut.edges > cut.starts]
        scale = self._scale(self.budget.pairs)
        return Pairs(
            last=noise.add(weights[last], scale), rest=noise.add(weights[last - 1], scale), rate=1 / scale
        )

    def _rate(self, units: int) -> Fraction:
        """The part of the rate that this many units of the budget are."""
        return self.rate * Fraction(units, BUDGET_UNITS)

    def _scale(self, units: int) -> Fraction:
        """The noise scale that this many units pay for, if one row changes one count by one."""
        return 1 / self._rate(units)

    @property
    def _largest_scales(self) -> tuple[Fraction, ...]:
        """Bounds on the scales of all looks, for any data and total."""
        highest_level = 2 ** (GRAIN_BITS * (MOST_LEVELS - 1)) / _SMALLEST_SHARE
        return highest_level * self._scale(LEAST_COUNTING), self._scale(LEAST_LOOK)


def _limited(most: int, cells: UInts, counts: Ints) -> Ints:
    """How many rows there are if each cell counts up to `most`."""
    return np.array([np.minimum(counts, most).sum()])
