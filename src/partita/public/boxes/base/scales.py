"""Where the bins of a column lie on one side of a picture, and how they are labelled."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np

from partita.domain.base.base import Domain
from partita.domain.numeric.integer import Integer
from partita.domain.numeric.real import Real
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats
from partita.public.base.figures import shortened

Side: TypeAlias = Literal["x", "y"]
Calendar: TypeAlias = Callable[[Sequence[Any]], Any]

_MOST_LABELS: Final = 16
_LONGEST_LABEL: Final = 20
_ONE_LINE: Final = 80


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """The bins of a column, by the first and the last value of each.

    Numbers and times lie on a scale of their own. Bins of anything else, or of values that floats
    cannot tell apart, stand side by side and are labelled one by one.
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
        places = _places([*self.lows, self.highs[-1]], self.calendar)
        if places is None:
            return None
        cell = (places[-1] - places[0]) / max(1, self.domain.size - 1) or 1.0
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
        return ticks, [shortened(str(self.lows[tick]), _LONGEST_LABEL) for tick in ticks]

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
        """The first value of each bin beside it, of many bins beside some; slanted if they need the room."""
        ticks, texts = self.labels()
        slanted = side == "x" and len(texts) * max(map(len, texts)) > _ONE_LINE
        getattr(axes, f"set_{side}ticks")(
            ticks, texts, **({"rotation": 30, "ha": "right"} if slanted else {})
        )


def new_axes() -> Any:
    """Axes of a new figure, if matplotlib is there."""
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        fix = 'install it: pip install "partita[plot]"'
        raise InvalidParameter("plot", "needs matplotlib", given="no matplotlib", fix=fix) from None
    _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    return axes


def _places(values: Sequence[Any], calendar: Calendar | None) -> Floats | None:
    """Numbers as floats, times by a calendar; None for text and for the ends of the calendar."""
    if isinstance(values[0], str):
        return None
    if not isinstance(values[0], datetime.date):
        return np.array([float(value) for value in values])
    if values[0].year == datetime.MINYEAR or values[-1].year == datetime.MAXYEAR:
        return None
    counted = import_module("matplotlib.dates").date2num if calendar is None else calendar
    return np.asarray(counted(values), np.float64)
