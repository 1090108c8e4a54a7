"""Many boxes at once: some boxes, cut along some axes by arrays of ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answers
from partita.checkpoint import checkpoint, chunk_size
from partita.inference.boxes.nodes import Corners
from partita.inference.curve import Bools, Floats, UInts
from partita.releases.boxes import Boxes, BoxTerm

__all__ = ["CHUNK", "ManyBoxes"]

CHUNK: Final = 2048
"""Rows that are counted between two checkpoints, for one box: hundredths of a second in most releases."""


@final
@dataclass(frozen=True, eq=False)
class ManyBoxes:
    """The boxes `terms`, which do not overlap, together, cut by each row of the arrays in `along`.

    `along` has the lowest and the highest positions on some axes, by the number of the axis. A row that
    is not `there` asks for nothing, and its positions mean nothing.
    """

    terms: tuple[BoxTerm, ...]
    along: Mapping[int, tuple[UInts, UInts]]
    there: Bools

    def answers(self, boxes: Boxes) -> Answers:
        """How many lie in each row of boxes; the errors of its parts are taken to be independent."""
        return Answers(self.counts(boxes), lambda: self.errors(boxes))

    def counts(self, boxes: Boxes) -> Floats:
        """The value of each row."""
        return self._sums(boxes.counts)

    def errors(self, boxes: Boxes) -> Floats:
        """About the standard error of each row."""
        return np.sqrt(self._sums(lambda lows, highs: boxes.errors(lows, highs) ** 2))

    def _sums(self, each: Callable[[Corners, Corners], Floats]) -> Floats:
        sums, rows = np.zeros(self.there.size), np.flatnonzero(self.there)
        chunk = chunk_size(rows.size, CHUNK)
        for term in self.terms:
            for start in range(0, rows.size, chunk):
                checkpoint()
                some = rows[start : start + chunk]
                sums[some] += each(self._corners(term.low, 0, some), self._corners(term.high, 1, some))
        return sums

    def _corners(self, ends: tuple[int, ...], side: int, rows: NDArray[np.intp]) -> Corners:
        """The lowest (side 0) or the highest corners of a box, cut by some rows."""
        corners = np.tile(np.array(ends, np.uint64), (rows.size, 1))
        for axis, pair in self.along.items():
            corners[:, axis] = pair[side][rows]
        return corners
