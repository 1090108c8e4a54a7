"""What releases of solved trees over boxes have in common: questions are checked, and one engine answers."""

from __future__ import annotations

from abc import abstractmethod

from partita.answer import Answer
from partita.numbers import failure, integer
from partita.public.axis.curve.curve import Curve, Floats
from partita.public.boxes.base.axes import checked_boxes, checked_terms
from partita.public.boxes.base.boxes import Boxes, BoxTerm, Region
from partita.public.boxes.engine.engine import BoxEngine
from partita.public.boxes.plan.nodes import Corners


class EngineBoxes(Boxes):
    """A release whose answers all come from one solved tree."""

    @property
    @abstractmethod
    def engine(self) -> BoxEngine:
        """The solved tree, ready to be asked."""

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        return self.engine.answer(checked_terms(terms, self.axes))

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        return self.engine.counts(*checked_boxes(lows, highs, self.axes))

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        return self.engine.errors(*checked_boxes(lows, highs, self.axes), parts=parts)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.engine.error(float(failure(beta)))

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts along one axis, of what lies in the box on the others."""
        (asked,) = checked_terms([box], self.axes)
        at = integer(axis, "axis", low=0, high=len(self.axes) - 1)
        return self.engine.along(at, asked.low, asked.high)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box."""
        (asked,) = checked_terms([box], self.axes)
        return self.engine.region(region.shares, asked.low, asked.high)

    def points(self, rows: int) -> Corners:
        """Positions of made-up rows."""
        return self.engine.points(integer(rows, "rows", low=0))
