"""What every release over several axes can do: answer any box of cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NamedTuple, Protocol, Self

from partita.answer import Answer
from partita.domain.axis import Axis
from partita.guarantee.guarantee import Guarantee
from partita.public.axis.base.ranges import Parts
from partita.public.axis.curve.curve import Curve, Floats
from partita.public.base.kinds import ReleaseKind
from partita.public.boxes.plan.nodes import Corners


class BoxTerm(NamedTuple):
    """The positions low, ..., high along every axis, both included, added (+1) or taken away (-1)."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    sign: int = 1


class Region(Protocol):
    """A public set of points, given by the share of boxes that it covers.

    A box lies in the region if its share is exactly 1, and outside if it is exactly 0.
    """

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        """The share of each box, corners included, that lies in the region: by volume, in [0, 1]."""


class Boxes(ReleaseKind, ABC):
    """Released counts over the boxes of several axes.

    Positions along an axis are those of `Axis`: special cells have positions of their own, and the box
    of all positions holds every row. `guarantee` is None if the release was made with injected noise.
    """

    axes: tuple[Axis, ...]
    guarantee: Guarantee | None

    @abstractmethod
    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question, with the standard error of exactly that."""

    @abstractmethod
    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The values that `answer` gives for many boxes, a row of corners for each (low <= high)."""

    @abstractmethod
    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors that `answer` gives for many boxes.

        Each `parts` boxes in a row, which do not overlap, are one question about their sum.
        """

    @abstractmethod
    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more, whatever the data."""

    @abstractmethod
    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts over all positions of one axis, of what lies in the box on the other axes.

        The ends of the box on that axis itself do not matter. Its differences are what `counts` gives, where
        those are monotone; else it is the monotone curve nearest to them.
        """

    @abstractmethod
    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box, leaves that are cut taken by the share inside."""

    @abstractmethod
    def points(self, rows: int) -> Corners:
        """Positions of made-up rows, one a row, that look like the release and are a function of it."""

    @property
    @abstractmethod
    def spent(self) -> Fraction:
        """How much of epsilon one row costs, as far as the noise of what was released tells."""

    @property
    def story(self) -> str:
        """Sentences about what was chosen on the way, from released numbers; empty where nothing was."""
        return ""

    @abstractmethod
    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""

    @property
    def everything(self) -> BoxTerm:
        """The box of all positions."""
        return BoxTerm((0,) * len(self.axes), tuple(axis.width - 1 for axis in self.axes))
