"""A picture of a column; needs matplotlib."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from partita.domain import Integer, Real
from partita.errors import InvalidParameter
from partita.inference.curve import Floats
from partita.releases.bins import Bins, bins_of
from partita.releases.figures import shortened
from partita.releases.view import View

__all__ = ["plot"]

_CONFIDENT: Final = 1.96
_MOST_LABELS: Final = 16
_LONGEST_LABEL: Final = 20
_ONE_LINE: Final = 80
_APART: Final = 0.8
_BAR: Final = "#4c78a8"
_INK: Final = "#2b2b2b"


def plot(view: View, *, bins: int = 60, axes: Any = None, dataset: str | None = None) -> Any:
    """The histogram of a column with a 95% bar on every bin, on these matplotlib axes or on new ones.

    Numbers and times lie on a scale of their own. Bins of anything else, or of values that floats
    cannot tell apart, stand side by side and are labelled one by one.
    """
    table = bins_of(view, bins)
    axes = _new_axes() if axes is None else axes
    edges = _edges(view, table)
    if edges is None:
        _draw(axes, table, np.arange(len(table), dtype=np.float64), _APART)
        _name_bins(axes, table)
    else:
        _draw(axes, table, (edges[:-1] + edges[1:]) / 2, np.diff(edges))
        _set_scale(axes, view, edges, table.lows[0])
    _describe(axes, view, dataset)
    return axes


def _draw(axes: Any, table: Bins, middles: Floats, width: Floats | float) -> None:
    counts, half = np.maximum(0.0, table.counts.values), _CONFIDENT * table.counts.error
    axes.bar(middles, counts, width=width, color=_BAR, edgecolor="white", linewidth=0.5)
    axes.errorbar(
        middles,
        counts,
        yerr=[np.minimum(counts, half), half],
        fmt="none",
        ecolor=_INK,
        elinewidth=0.8,
        capsize=1.5,
    )


def _edges(view: View, table: Bins) -> Floats | None:
    """Where the bins begin and end on the scale of their values, if they have one.

    A cell of numbers reaches half a step to either side of its value; one of times begins with it.
    """
    places = _places([*table.lows, table.highs[-1]])
    if places is None:
        return None
    cell = (places[-1] - places[0]) / max(1, view.axis.size - 1) or 1.0
    places[-1] += cell
    edges = places - cell / 2 if isinstance(view.domain, (Integer, Real)) else places
    return edges if np.all(np.diff(edges) > 0) else None


def _places(values: Sequence[Any]) -> Floats | None:
    """Numbers as floats, times as matplotlib counts them; None for text and for the ends of the calendar."""
    if isinstance(values[0], str):
        return None
    if not isinstance(values[0], datetime.date):
        return np.array([float(value) for value in values])
    if values[0].year == datetime.MINYEAR or values[-1].year == datetime.MAXYEAR:
        return None
    return np.asarray(import_module("matplotlib.dates").date2num(values), np.float64)


def _set_scale(axes: Any, view: View, edges: Floats, first: object) -> None:
    """Ticks at round numbers, or at round times in the zone of the column."""
    if isinstance(first, datetime.date):
        dates = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator(tz=getattr(first, "tzinfo", None))
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=locator.tz))
    elif isinstance(view.domain, Integer):
        axes.locator_params(axis="x", integer=True)
    axes.set_xlim(edges[0], edges[-1])


def _name_bins(axes: Any, table: Bins) -> None:
    """The first value of each bin below it, of many bins below some; slanted if they need the room."""
    ticks = np.unique(np.linspace(0, len(table) - 1, _MOST_LABELS).round().astype(int))
    texts = [shortened(str(table.lows[tick]), _LONGEST_LABEL) for tick in ticks]
    slanted = len(texts) * max(map(len, texts)) > _ONE_LINE
    axes.set_xticks(ticks, texts, **({"rotation": 30, "ha": "right"} if slanted else {}))
    axes.set_xlim(-0.6, len(table) - 0.4)


def _describe(axes: Any, view: View, dataset: str | None) -> None:
    promise = view.axis.guarantee
    epsilon = "no guarantee" if promise is None else f"epsilon {promise.epsilon}"
    axes.set_title(f"{dataset}, {epsilon}" if dataset else epsilon, loc="left", fontsize="medium")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(view.column)
    axes.set_ylabel("rows in each bin, with 95% bars")
    axes.spines[["top", "right"]].set_visible(False)


def _new_axes() -> Any:
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise InvalidParameter(
            "plot", "needs matplotlib", given="no matplotlib", fix='install it: pip install "partita[plot]"'
        ) from None
    _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    return axes
