"""A partition that is cut in shards: its whole law on tiny universes, and bugs of holders of counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.arrays import UInts
from partita.testing import Loss, RationalNoise, Scattered, add_remove_pairs, data_sets, law, privacy_loss
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.system import Noise
from partita.trusted.secret import AxisCounts, Histogram, ShardWork, Work

HALF = Fraction(1, 2)
HALVES, UNEVEN = [range(2), range(2, 4)], [range(1), range(1, 4)]

Counts = tuple[int, ...]
Hold = Callable[[Histogram], AxisCounts]


def _partition(size: int, threshold: int, kind: Law = "geometric") -> Partition:
    return Partition(size=size, epsilon=1, law=kind, threshold=threshold)


def _law(partition: Partition, hold: Hold, counts: Counts) -> Mapping[Any, Fraction]:
    """The law of the seals."""
    return law(
        lambda noise: tuple(partition.cut(hold(Histogram.dense(counts)), noise=noise).edges.tolist()),
        RationalNoise(HALF),
    )


def _worst(partition: Partition, hold: Hold, most: int = 1) -> Loss:
    """The largest loss over all pairs of neighbours with at most so many rows in a cell."""
    laws = {counts: _law(partition, hold, counts) for counts in data_sets(partition.size, most)}
    pairs = add_remove_pairs(partition.size, most)
    return max(privacy_loss(laws[one], laws[other], base=HALF, unit=Fraction(1)) for one, other in pairs)


@pytest.mark.parametrize(
    ("threshold", "shards"), [(0, HALVES), (1, HALVES), (2, HALVES), (1, UNEVEN), (2, UNEVEN)], ids=str
)
@pytest.mark.spread(2)
def test_shards_lose_no_more_than_epsilon(threshold: int, shards: list[range]) -> None:
    """Over all neighbours the loss of a cut in two shards is that of a cut in one: all of epsilon."""
    loss = _worst(_partition(4, threshold), lambda counts: Scattered(counts, shards=shards))

    assert loss == 1


@pytest.mark.parametrize(("kind", "size", "most"), [("geometric", 2, 3), ("laplace", 2, 2)])
def test_shards_of_one_cell_lose_no_more_than_epsilon(kind: Law, size: int, most: int) -> None:
    """So it is with several rows in a cell, and with the paper's noise."""
    partition = _partition(size, 1, kind)

    assert _worst(partition, lambda counts: Scattered(counts, shards=size), most) <= 1


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (1, 0, 0, 1), (0, 2, 1, 0)])
def test_shards_are_independent(counts: Counts) -> None:
    """The law of the seals of two shards is the product of the laws of each; last seals are public."""
    partition, first, last = _partition(4, 1), _partition(2, 1), range(2, 4)
    left, right = (_law(first, _itself, half) for half in (counts[:2], counts[2:]))

    both = _law(partition, lambda held: Scattered(held, shards=HALVES), counts)

    expected = {
        (*one, *(seal + last.start for seal in other)): left[one] * right[other]
        for one, other in product(left, right)
    }
    assert both == expected
    assert all({1, 3} <= set(seals) for seals in both)


def _itself(counts: Histogram) -> Histogram:
    return counts


# Planted bugs: each is one way in which a holder of counts can get shards wrong.


class _Holder(AxisCounts):
    """Cuts both halves of the universe, as it should."""

    def __init__(self, histogram: Histogram) -> None:
        self.size, self.contributions = histogram.size, histogram.contributions
        self.histogram = histogram

    def folded(self, work: Work) -> Any:
        return self.histogram.folded(work)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        parts = zip(self.shards(), self.noises(noise), strict=False)
        return np.concatenate([work(self.held(shard), shard, drawn) for shard, drawn in parts])

    def shards(self) -> list[range]:
        return HALVES

    def noises(self, noise: Noise) -> list[Any]:
        return [noise, noise]

    def held(self, shard: range) -> Histogram:
        cells, counts = self.histogram.within(shard.start, shard.stop)
        return Histogram(self.size, cells, counts)


class _Repeating:
    """Thresholds that were drawn once, for the first shard, and are used again for the second."""

    def __init__(self, noise: Noise, drawn: list[Any]) -> None:
        self._noise, self._drawn, self._turn = noise, drawn, 0

    def draw(self, kind: Law, scale: Fraction) -> Any:
        if self._turn == len(self._drawn):
            self._drawn.append(self._noise.draw(kind, scale))
        self._turn += 1
        return self._drawn[self._turn - 1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)


class _OneNoise(_Holder):
    """The same noise in both shards, as if a key had been copied."""

    def noises(self, noise: Noise) -> list[Any]:
        drawn: list[Any] = []
        return [_Repeating(noise, drawn), _Repeating(noise, drawn)]


class _RowsInBoth(_Holder):
    """Rows of the first cell are in the second shard as well, at its first cell."""

    def held(self, shard: range) -> Histogram:
        counts = self.histogram.spread()
        counts[2] += counts[0]
        return Histogram.dense(np.where(np.isin(np.arange(4), shard), counts, 0))


class _BoundsFromData(_Holder):
    """Shards meet behind the first row."""

    def shards(self) -> list[range]:
        bound = int(self.histogram.cells[:1].sum()) + 1
        return [range(bound), range(bound, 4)] if bound < 4 else [range(4)]


def test_a_holder_that_does_as_it_should_loses_epsilon() -> None:
    """Without a bug the holder below loses what `Scattered` loses."""
    assert _worst(_partition(4, 0), _Holder) == 1


@pytest.mark.parametrize("hold", [_OneNoise, _RowsInBoth, _BoundsFromData])
def test_planted_bugs_lose_more_than_epsilon(hold: Hold) -> None:
    """Shared noise, a row in two shards and bounds that follow the rows: each breaks the guarantee."""
    assert _worst(_partition(4, 0), hold) > 1
