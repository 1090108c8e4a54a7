"""Many boxes at once: some boxes, cut along some axes by arrays of ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answers
from partita.public.axis.curve.curve import Bools, Floats, UInts
from partita.public.base.checkpoint import checkpoint, chunk_size
from partita.public.boxes.base.boxes import Boxes, BoxTerm
from partita.public.boxes.plan.nodes import Corners

CHUNK: Final = 2048
"""Rows that are counted between two checkpoints, for one box: hundredths of a second in most releases."""

_MOST_TOGETHER: Final = 2**17
"""Boxes whose errors are found together: more take more memory and no less time."""


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
        """How many lie in each row of boxes."""
        return Answers(self.counts(boxes), lambda: self.errors(boxes))

    def counts(self, boxes: Boxes) -> Floats:
        """The value of each row."""
        sums = np.zeros(self.there.size)
        for term in self.terms:
            for some in self._chunks(chunk_size(self.there.size, CHUNK)):
                lows, highs = self._corners(term, 0, some), self._corners(term, 1, some)
                sums[some] += boxes.counts(lows, highs)
        return sums

    def errors(self, boxes: Boxes) -> Floats:
        """The standard error of each row: its boxes are one question."""
        errors, parts = np.zeros(self.there.size), len(self.terms)
        together = min(chunk_size(self.there.size * parts, CHUNK), _MOST_TOGETHER)
        for some in self._chunks(max(1, together // parts)) if parts else ():
            lows, highs = (
                np.stack([self._corners(term, side, some) for term in self.terms], axis=1) for side in (0, 1)
            )
            shape = some.size * parts, len(boxes.axes)
            errors[some] = boxes.errors(lows.reshape(shape), highs.reshape(shape), parts=parts)
        return errors

    def _chunks(self, chunk: int) -> Iterator[NDArray[np.intp]]:
        """The rows that are there, some at a time."""
        rows = np.flatnonzero(self.there)
        for start in range(0, rows.size, chunk):
            checkpoint()
            yield rows[start : start + chunk]

    def _corners(self, box: BoxTerm, side: int, rows: NDArray[np.intp]) -> Corners:
        """The lowest (side 0) or the highest corners of a box, cut by some rows."""
        corners = np.tile(np.array((box.low, box.high)[side], np.uint64), (rows.size, 1))
        for axis, pair in self.along.items():
            corners[:, axis] = pair[side][rows]
        return corners
