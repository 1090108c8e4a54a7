"""Private Partition: cut a universe into contiguous segments of small weight [DNRR15, section 2]."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Final, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.errors.errors import EntropyError, InvalidData, InvalidParameter
from partita.errors.unchained import unchained
from partita.numbers import Converted, Exact, failure, freeze, frozen, integer, one_of, parameter
from partita.public.axis.tree.cut import Cut
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.noise.hazard import tails
from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.words import Uncopyable
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts, Histogram

_MOST_EMPTY_SEGMENTS: Final = 10**6


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

    size: int
    beta: Exact = parameter(default="0.05")
    law: Law = "geometric"
    threshold: Converted[int | Literal["paper"] | None, int] = parameter(default=None)

    def _convert(self) -> None:
        super()._convert()
        freeze(
            self,
            size=integer(self.size, "size", low=1, high=2**64),
            beta=failure(self.beta),
            law=one_of(self.law, "law", get_args(Law)),
        )
        check_scale(self.scale, self.epsilon)
        freeze(self, threshold=self._threshold(self.threshold))
        self._refuse_many_empty_segments()

    @property
    def scale(self) -> Fraction:
        """The noise scale: how far neighbours' weights are apart, over epsilon."""
        return 1 / self.rate

    @property
    def empty_segments(self) -> tails.Bound:
        """The expected number of empty segments is at most this: size P[N - N' > threshold]."""
        return tails.scaled(tails.difference(self.law, self.scale, self.threshold + 1), self.size)

    def weight_bound(self, n: int, beta: object | None = None) -> int:
        """With probability 1 - beta no segment of an n-item set weighs more than this.

        A cell of multiplicity m adds m - 1. By default beta is the half of the partition's own
        that the threshold leaves over.
        """
        chance = self.beta / 2 if beta is None else failure(beta)
        each = chance / (integer(n, "n", low=0) + 1)
        if self.law == "geometric":
            return self.threshold + tails.geometric_quantile(self.scale, each) + 1
        return self.threshold + tails.difference_quantile(self.law, self.scale, each)

    def cut(self, data: AxisCounts | ArrayLike, *, within: range | None = None, noise: Noise = SYSTEM) -> Cut:
        """Cut counts, or cells given one per row in ascending order.

        `within` cuts one public range of cells only, of counts that are here. Cuts of disjoint ranges are
        independent and compose in parallel; `Cut.join` puts them together. So do the shards of counts that
        are kept on other machines.
        """
        counts = self._counts(data)
        if within is not None:
            return self._cut_within(counts, self._range(within), noise)
        session = noise.session()
        edges = counts.in_shards(self._seals, noise=session)
        return Cut(edges=edges, guarantee=self.guarantee if session.secure else None)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> Cut:
        """The same as `cut`, as every mechanism has it."""
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
        if not isinstance(counts, Histogram):
            raise InvalidData("data", "must be a Histogram to be cut within a range", fix="cut all of it")
        session = noise.session()
        edges = self._seals(counts, shard, session)
        return Cut(edges=edges, start=shard.start, guarantee=self.guarantee if session.secure else None)

    def _seals(self, histogram: Histogram, shard: range, noise: Noise) -> NDArray[np.uint64]:
        """The fast walk as far as it is certain, then one segment by the book, and again."""
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
            return tails.difference_quantile(self.law, self.scale, self.beta / 2 / self.size) - 1
        if isinstance(threshold, str) and threshold == "paper":
            return tails.floor_log(self.size / self.beta, 3 * self.scale)
        return integer(threshold, "threshold", low=0, high=2**62)

    def _refuse_many_empty_segments(self) -> None:
        if self.empty_segments.reaches(_MOST_EMPTY_SEGMENTS):
            rule = f"must keep the expected number of empty segments below {_MOST_EMPTY_SEGMENTS}"
            fix = "raise it, or leave it to be chosen"
            raise InvalidParameter("threshold", rule, given=self.threshold, fix=fix)

    def _counts(self, data: AxisCounts | ArrayLike) -> AxisCounts:
        if not isinstance(data, AxisCounts):
            return Histogram.from_sorted(data, size=self.size, contributions=self.contributions)
        return fitting(data, self.size, self.contributions)

    def _range(self, within: object) -> range:
        if isinstance(within, range) and within.step == 1 and 0 <= within.start < within.stop <= self.size:
            return within
        fix = "use partition.shards"
        raise InvalidParameter("within", "must be a non-empty range of cells", given=within, fix=fix)


class _OpenSegment(Uncopyable):
    """One round of Figure 1: a noisy threshold, a count, and fresh noise at every position.

    The segment is sealed where count + noise > threshold + noise', that is where fresh noise
    exceeds level = threshold + noise' - count.
    """

    def __init__(self, partition: Partition, start: int, noise: Noise) -> None:
        self.position = start
        self._level = partition.threshold + noise.draw(partition.law, partition.scale)
        self._fresh = noise.first_success(partition.law, partition.scale)

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
    """A cut in the making: items and empty runs go in, in order; seals come out as they happen.

    Positions are a public clock. On a live stream call `add` for items, which returns nothing, and
    `advance` as the clock moves, which reports the seals: then what is published, and when, depends on
    the cut alone. `update` moves the clock to where an item is, and is for replaying data that lie ready.

    The noise of the open segment is in memory: a cutter cannot be copied, does not go on in a forked
    child, and is not pan-private. If it is interrupted in the middle of a step, it is broken for good.

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
        weight = _whole(weight, "weight")
        if not 0 <= weight < 2**62 or self.position == self._partition.size:
            raise InvalidData("weight", "must lie between 0 and 2^62, inside the universe", fix="count items")
        with self._step():
            self._segment.add(weight)

    def advance(self, run: int) -> list[int]:
        """The clock moves on by `run` positions; returns the seals among them."""
        run = _whole(run, "run")
        if not 0 <= run <= self._partition.size - self.position:
            raise InvalidData("run", "must not leave the universe", fix="stop the clock at its end")
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
        position, weight = _whole(position, "position"), _whole(weight, "weight")
        if not self.position <= position < self._partition.size:
            fix = "feed items in order"
            raise InvalidData("position", "must not go back nor leave the universe", fix=fix)
        if not 0 <= weight < 2**62:
            raise InvalidData("weight", "must lie between 0 and 2^62", fix="count items")
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
        """A step is done or the cutter is broken: noise that was used once must not be used again."""
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
    """(cell, count) from the first on, converted a stretch at a time."""
    for start in range(first, cells.size, 256):
        stretch = slice(start, start + 256)
        yield from zip(cells[stretch].tolist(), counts[stretch].tolist(), strict=True)


def _whole(value: object, name: str) -> int:
    failure = InvalidData(name, "must be an integer", fix="pass an int")
    return unchained(lambda: integer(value, name), failure, InvalidParameter)
