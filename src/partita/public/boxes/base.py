"""The interface of releases over several axes, which answer any box, and the scales of their plots."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.answer import Answer
from partita.arrays import Floats, integer_array
from partita.domain.axis import MOST_AXES, Axis
from partita.domain.base import Domain
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee, rows_changed
from partita.lazy import cached_property
from partita.numbers import check_cell_range, check_probability, integer
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.axis.curve import Curve
from partita.public.base import ReleaseKind, damaged, shorten
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.plan import Corners

Side: TypeAlias = Literal["x", "y"]
Calendar: TypeAlias = Callable[[Sequence[Any]], Any]

_MOST_LABELS: Final = 16  # labels along one side of a plot
_LONGEST_LABEL: Final = 20
_ONE_LINE: Final = 80  # characters of labels that fit side by side; more are slanted


class BoxTerm(NamedTuple):
    """The positions low, ..., high along every axis, both included, added (+1) or subtracted (-1)."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    sign: int = 1


class Region(Protocol):
    """A public set of points, given by the share of boxes that it covers.

    A box lies in the region if its share is exactly 1, and outside if it is exactly 0.
    """

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        """The share of each box, corners included, that lies in the region: by volume, in [0, 1]."""


class BoxRelease(ReleaseKind, ABC):
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
        """The values of `answer` for many boxes, a row of corners for each (low <= high)."""

    @abstractmethod
    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard errors of `answer` for many boxes.

        Each `parts` boxes in a row, which do not overlap, are one question about their sum.
        """

    @abstractmethod
    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more, whatever the data."""

    @abstractmethod
    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts over all positions of one axis, of what lies in the box on the other axes.

        The ends of the box on that axis itself do not matter. Its differences are those of `counts` if these
        are monotone; otherwise it is the monotone curve nearest to them.
        """

    @abstractmethod
    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box; leaves that are cut count by the share inside."""

    @abstractmethod
    def points(self, rows: int) -> Corners:
        """Positions of synthetic rows, one a row: a function of the release, with its distribution."""

    def keep(self, promise: Guarantee) -> bool:
        """Whether the boxes have the noise that the guarantee asks for."""
        return promise.epsilon >= self.spent * rows_changed(promise.neighbors, promise.contributions)

    @property
    @abstractmethod
    def spent(self) -> Fraction:
        """The epsilon that one row costs, according to the noise of what was released."""

    @property
    def story(self) -> str:
        """Sentences about choices that the release made from released numbers; empty if there were none."""
        return ""

    def basis(self, columns: Iterable[int]) -> str:
        """What an answer about these columns rests on; empty where every answer is measured."""
        return ""

    @property
    def has_model(self) -> bool:
        """Whether some answers come from a model of all columns, so that each says what it rests on."""
        return bool(self.basis(()))

    @property
    def dependence(self) -> Floats | None:
        """How far each pair of columns is from independence in the model, from 0 to 1; None without one."""
        return None

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


def encode_axes(axes: Sequence[Axis]) -> list[Json]:
    """Size, special cells before and after, and whether cells are labels, of each axis: for a file."""
    return [[axis.size, axis.before, axis.after, axis.labels] for axis in axes]


def read_axes(reader: PartsReader, name: str = "axes") -> tuple[Axis, ...]:
    """The axes that `encode_axes` wrote; anything else is an `InvalidRelease`."""
    listed, axes = reader.parts.facts.get(name), []
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_AXES:
        raise damaged(name, f"must be a list of 1 to {MOST_AXES} axes")
    for given in listed:
        match given:
            # A bool is an int, too, but not a number of cells.
            case [int(size), int(before), int(after), bool(labels)] if bool not in map(type, given[:3]):
                with suppress(InvalidParameter):
                    axes.append(Axis(size=size, before=before, after=after, labels=labels))
    if len(axes) < len(listed):
        rule = "must hold size, special cells before and after, and true for labels, of each axis"
        raise damaged(name, rule)
    return tuple(axes)


def check_boxes(lows: ArrayLike, highs: ArrayLike, axes: Sequence[Axis]) -> tuple[Corners, Corners]:
    """Corners of many boxes of positions, a row for each box and a column for each axis."""
    low, high = _corners(lows, "lows", axes), _corners(highs, "highs", axes)
    fix = "pass pairs of corners"
    check(low.shape == high.shape, "highs", "must be as many as lows", given=len(high), fix=fix)
    widths = np.array([axis.width for axis in axes], np.uint64)
    outside = bool((low < 0).any()) or bool((low > high).any()) or bool((high >= widths).any())
    rule = "must be positions from 0 on and at most highs, on their axes"
    check(not outside, "lows", rule, given=low, fix="clip them")
    return low.astype(np.uint64), high.astype(np.uint64)


def check_terms(terms: Iterable[BoxTerm], axes: Sequence[Axis]) -> list[BoxTerm]:
    """The terms, if they are boxes of positions on these axes with a sign."""
    checked = []
    for low, high, sign in terms:
        check(sign in (1, -1), "sign", "must be 1 or -1", given=sign, fix="add a box or take it away")
        rule, fix = f"must have {len(axes)} ends, one for each axis", "pass all of them"
        check(len(low) == len(axes) and len(high) == len(axes), "box", rule, given=len(low), fix=fix)
        ends = [
            check_cell_range(a, b, first=0, last=axis.width - 1)
            for a, b, axis in zip(low, high, axes, strict=True)
        ]
        checked.append(BoxTerm(tuple(a for a, _ in ends), tuple(b for _, b in ends), sign))
    return checked


def _corners(corners: ArrayLike, name: str, axes: Sequence[Axis]) -> NDArray[Any]:
    array = integer_array(corners, name)
    if array.size == 0:
        return np.zeros((0, len(axes)), np.uint64)
    rule, fix = f"must have {len(axes)} columns, one for each axis", "pass a row for each box"
    check(array.ndim == 2 and array.shape[1] == len(axes), name, rule, given=corners, fix=fix)
    return array


class EngineQuestions(ABC):
    """Questions to one solved tree: they are checked, and its engine answers."""

    axes: tuple[Axis, ...]

    @property
    @abstractmethod
    def engine(self) -> BoxEngine:
        """The solved tree, ready for questions."""

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        return self.engine.answer(check_terms(terms, self.axes))

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        return self.engine.counts(*check_boxes(lows, highs, self.axes))

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        return self.engine.errors(*check_boxes(lows, highs, self.axes), parts=parts)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.engine.error(float(check_probability(beta)))

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts along one axis, of what lies in the box on the others."""
        ((low, high, _),) = check_terms([box], self.axes)
        return self.engine.along(integer(axis, "axis", low=0, high=len(self.axes) - 1), low, high)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box."""
        ((low, high, _),) = check_terms([box], self.axes)
        return self.engine.region(region.shares, low, high)

    def points(self, rows: int) -> Corners:
        """Positions of synthetic rows."""
        return self.engine.points(integer(rows, "rows", low=0))


class EngineBoxes(EngineQuestions, BoxRelease):
    """A release whose answers come from one solved tree."""


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """The bins of a column along one side of a plot, by the first and the last value of each.

    Numbers and times lie on a scale of their own. Bins of anything else, or of values that are equal as
    floats, stand side by side and are labelled one by one.
    """

    domain: Domain
    lows: Sequence[Any]
    highs: Sequence[Any]
    calendar: Calendar | None = None
    """How times become numbers; as matplotlib does it, if it is left out."""

    @cached_property
    def natural(self) -> Floats | None:
        """Where the bins begin and end on the scale of their values, if they have one.

        A cell of numbers reaches half a step to either side of its value; one of times begins with it.
        """
        places = self._places
        if places is None:
            return None
        cell = (places[-1] - places[0]) / max(1, self._cells - 1) or 1.0
        places[-1] += cell
        edges = places - cell / 2 if isinstance(self.domain, (Integer, Real)) else places
        return edges if np.all(np.diff(edges) > 0) else None

    @property
    def edges(self) -> Floats:
        """Where the bins begin and end in the picture: on their scale, or side by side around 0, 1, ..."""
        return np.arange(len(self.lows) + 1.0) - 0.5 if self.natural is None else self.natural

    def mark(self, axes: Any, side: Side = "x", *, margin: float = 0.0) -> None:
        """Ticks and limits on one side of the picture; bins side by side get a margin around them."""
        if self.natural is None:
            self._name_bins(axes, side)
        else:
            self._set_ticks(axes, side)
            margin = 0.0
        getattr(axes, f"set_{side}lim")(self.edges[0] - margin, self.edges[-1] + margin)

    def labels(self) -> tuple[list[int], list[str]]:
        """Which bins side by side are named, and how: each by its first value, of many bins some."""
        ticks = np.unique(np.linspace(0, len(self.lows) - 1, _MOST_LABELS).round().astype(int)).tolist()
        return ticks, [shorten(str(self.lows[tick]), _LONGEST_LABEL) for tick in ticks]

    @property
    def _cells(self) -> int:
        """How many cells the bins have together."""
        first, last = (self.domain.locate(value).cell for value in (self.lows[0], self.highs[-1]))
        return last - first + 1

    @property
    def _places(self) -> Floats | None:
        """Numbers as floats, times by a calendar; None for text and for the ends of the calendar."""
        values = [*self.lows, self.highs[-1]]
        if isinstance(values[0], str):
            return None
        if not isinstance(values[0], datetime.date):
            return np.array([float(value) for value in values])
        if values[0].year == datetime.MINYEAR or values[-1].year == datetime.MAXYEAR:
            return None
        convert = self.calendar or import_module("matplotlib.dates").date2num
        return np.asarray(convert(values), np.float64)

    def _set_ticks(self, axes: Any, side: Side) -> None:
        """Ticks at round numbers, or at round times in the zone of the column."""
        first = self.lows[0]
        if isinstance(first, datetime.date):
            dates, ruler = import_module("matplotlib.dates"), getattr(axes, f"{side}axis")
            locator = dates.AutoDateLocator(tz=getattr(first, "tzinfo", None))
            ruler.set_major_locator(locator)
            ruler.set_major_formatter(dates.ConciseDateFormatter(locator, tz=locator.tz))
        elif isinstance(self.domain, Integer):
            axes.locator_params(axis=side, integer=True)

    def _name_bins(self, axes: Any, side: Side) -> None:
        """The first value of each bin beside it, of many bins beside some; slanted if they are long."""
        ticks, texts = self.labels()
        slanted = side == "x" and len(texts) * max(map(len, texts)) > _ONE_LINE
        style = {"rotation": 30, "ha": "right"} if slanted else {}
        getattr(axes, f"set_{side}ticks")(ticks, texts, **style)


def new_axes() -> Any:
    """Axes of a new figure, if matplotlib is there."""
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        fix = 'install it: pip install "partita[plot]"'
        raise InvalidParameter("plot", "needs matplotlib", given="no matplotlib", fix=fix) from None
    _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    return axes
