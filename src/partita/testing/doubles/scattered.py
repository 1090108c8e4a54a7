"""Counts that are nowhere in one piece: stand-ins for a cluster, with which only the interface works."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.trusted.noise.system.protocol import Noise
from partita.trusted.secret.histogram import AxisCounts, Histogram, ShardWork
from partita.trusted.secret.points import PointCounts, Points
from partita.trusted.secret.secret import Ints, UInts, Work

Travel: TypeAlias = Callable[[Any], Any]
"""What another machine gets of work that is sent to it."""


def pickled(work: Any) -> Any:
    """The work written out and read again, functions by their names."""
    return pickle.loads(pickle.dumps(work))


@final
class Scattered(AxisCounts):
    """The counts of a histogram, dealt out to blocks, and cut in shards of nearly equal length.

    Work travels; by default it is pickled. Noise does not, so that tests can put any in its place.

    >>> Scattered(Histogram.dense((3, 0, 5, 1))).total
    9
    """

    def __init__(
        self,
        histogram: Histogram,
        *,
        blocks: int = 3,
        shards: int | Sequence[range] = 1,
        travel: Travel = pickled,
    ) -> None:
        self.size, self.contributions = histogram.size, histogram.contributions
        self._blocks, self._travel = _Blocks(histogram.cells, histogram.counts, blocks), travel
        self._shards = _split(self.size, shards) if isinstance(shards, int) else list(shards)

    def folded(self, work: Work) -> NDArray[Any]:
        """Block by block."""
        return self._blocks.folded(work, self._travel)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """Shard by shard, the last one first."""
        found = [self._worked(work, shard, noise) for shard in reversed(self._shards)]
        return np.concatenate(found[::-1])

    def _worked(self, work: ShardWork, shard: range, noise: Noise) -> UInts:
        cells, counts = self._blocks.together()
        inside = (cells >= np.uint64(shard.start)) & (cells <= np.uint64(shard.stop - 1))
        held = Histogram(self.size, cells[inside], counts[inside], self.contributions)
        return np.asarray(self._travel(work)(held, shard, noise))

    def __repr__(self) -> str:
        return f"Scattered(size={self.size}, contributions={self.contributions}, secret)"


@final
class ScatteredPoints(PointCounts):
    """Points dealt out to blocks.

    >>> from partita.domain.axis import Axis
    >>> points = Points.from_rows([[3], [0], [3]], axes=[Axis(size=4)])
    >>> ScatteredPoints(points).spread().tolist()
    [1, 0, 0, 2]
    """

    def __init__(self, points: Points, *, blocks: int = 3, travel: Travel = pickled) -> None:
        self.axes, self.contributions = points.axes, points.contributions
        self._blocks, self._travel = _Blocks(points.places, points.counts, blocks), travel

    def folded(self, work: Work) -> NDArray[Any]:
        """Block by block."""
        return self._blocks.folded(work, self._travel)

    def alone(self, axis: int) -> ScatteredPoints:
        """Counted anew, and dealt out again."""
        return ScatteredPoints(self._points().alone(axis), travel=self._travel)

    def along(self, axis: int) -> Scattered:
        """Counted anew, and dealt out again."""
        return Scattered(self._points().along(axis), travel=self._travel)

    def _points(self) -> Points:
        places, counts = self._blocks.together()
        return Points.from_rows(places, axes=self.axes, counts=counts, contributions=self.contributions)

    def __repr__(self) -> str:
        return f"ScatteredPoints({len(self.axes)} axes, contributions={self.contributions}, secret)"


@final
class _Blocks:
    """Things dealt out like cards, each block in order, and one block that nothing is in."""

    def __init__(self, things: UInts, counts: Ints, blocks: int) -> None:
        hands = [slice(first, None, blocks) for first in range(blocks)]
        self._blocks = [(things[hand], counts[hand]) for hand in hands] + [(things[:0], counts[:0])]

    def folded(self, work: Work, travel: Travel) -> NDArray[Any]:
        """The sum of the work on every block, the last one first; the shapes must be the same."""
        found = [travel(work)(*block) for block in reversed(self._blocks)]
        if len({each.shape for each in found}) > 1 or any(each.dtype.kind not in "iO" for each in found):
            raise AssertionError("work must return integers of one shape, whatever is in a block")
        return np.asarray(reduce(add, found))

    def together(self) -> tuple[UInts, Ints]:
        """All of them, in order."""
        things = np.concatenate([each for each, _ in self._blocks])
        counts = np.concatenate([each for _, each in self._blocks])
        order = np.lexsort(things.T[::-1]) if things.ndim > 1 else np.argsort(things)
        return things[order], counts[order]


def _split(size: int, shards: int) -> list[range]:
    bounds = [size * i // shards for i in range(shards + 1)]
    return [range(low, high) for low, high in pairwise(bounds)]
