"""A released cut with a tree of noisy counts on top of it: any interval of a huge universe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final, final

from partita.answer import Answer
from partita.exact import ordered
from partita.guarantee import Guarantee
from partita.releases.cut import Cut
from partita.releases.tree import TreeRelease

__all__ = ["IntervalRelease"]

_SHARES: Final = 2


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalRelease:
    """Segments of a universe and a tree of noisy counts whose leaves are the segments.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    cut: Cut
    tree: TreeRelease
    guarantee: Guarantee | None = None

    def count(self, low: int, high: int) -> Answer:
        """How many lie in the cells low, ..., high: the sum of all segments that touch them [DNRR15, 3.2].

        Its standard error adds to that of the noise what the two segments at the ends may hold
        outside of the interval.
        """
        low, high = ordered(low, high, first=self.cut.start, last=self.cut.last)
        first, last = self._touched(low, high)
        value, terms = self.tree.sum(first, last)
        ends = [segment for segment in {first, last} if not self._inside(segment, low, high)]
        outside = sum(max(0.0, self.tree.sum(end, end)[0]) ** 2 for end in ends)
        error = math.sqrt(self.tree.error(terms) ** 2 + outside)
        return Answer(value, lambda: error, bounds=partial(self.bounds, low, high))

    def bounds(self, low: int, high: int, beta: float) -> tuple[float, float]:
        """The truth lies between the segments inside the interval and the segments that touch it."""
        low, high = ordered(low, high, first=self.cut.start, last=self.cut.last)
        first, last = self._touched(low, high)
        _, most = self.tree.bounds(first, last, beta / _SHARES)
        first += not self._inside(first, low, high)
        last -= not self._inside(last, low, high)
        least, _ = self.tree.bounds(first, last, beta / _SHARES) if first <= last else (0.0, 0.0)
        return least, max(least, most)

    def _touched(self, low: int, high: int) -> tuple[int, int]:
        """The first and the last segment that have a cell in common with low..high."""
        first, last = self.cut.locate([low, high]).tolist()
        return first, last

    def _inside(self, segment: int, low: int, high: int) -> bool:
        starts, edges = self.cut.starts, self.cut.edges
        return low <= int(starts[segment]) and int(edges[segment]) <= high
