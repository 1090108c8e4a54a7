"""Pictures of releases: a histogram of a column and a heat map of two.

`plot` and `plot_heat` draw on matplotlib axes. `line_figure` and `heat_figure` make figures of plotly, which
a reader can zoom into and point at.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Sequence
from functools import partial
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from partita.arrays import Floats
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee
from partita.html import kernel
from partita.public.base import shorten
from partita.public.boxes.base import Scale, new_axes
from partita.public.results import Bins, Cdf, Heat, cdf
from partita.public.views import OrderedColumn
from partita.public.window import CONFIDENT, choose_window, has_more_labels, rows_beyond, window_bins

_APART: Final = 0.8
_MOST_NAMED, _LONGEST_NAME = 25, 24  # labels with a name of their own, and characters of it
_MARGIN: Final = 0.1
_BLUE, _INK, _PLOTLY_INK = "#4c78a8", "#2b2b2b", "#7f7f7f"
_MILLI: Final = 1000.0


def plot(
    line: OrderedColumn, *, bins: int = 60, axes: Any = None, dataset: str | None = None, full: bool = False
) -> Any:
    """The histogram of a column with a 95% bar on every bin, on these matplotlib axes or on new ones.

    There are at most `bins` bins, of nearly equally many cells. They show where nearly all rows lie; with
    `full`, the whole axis.
    """
    axes = new_axes() if axes is None else axes
    if has_more_labels(line, bins):
        return _plot_labels(line, axes, dataset)
    window = choose_window(line, full=full)
    table = window_bins(line, bins, window)
    scale = Scale(line.domain, table.lows, table.highs)
    width = _APART if scale.natural is None else np.diff(scale.edges)
    middles, counts, half = _middles(scale), *_counts_and_bars(table)
    axes.bar(middles, counts, width=width, color=_BLUE, edgecolor="white", linewidth=0.5)
    below = np.minimum(counts, half)
    axes.errorbar(middles, counts, yerr=[below, half], fmt="none", ecolor=_INK, elinewidth=0.8, capsize=1.5)
    scale.mark(axes, margin=_MARGIN)
    axes.set_title(_line_title(line, dataset), loc="left", fontsize="medium")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("\n".join(filter(None, (line.column, rows_beyond(line, window, bins)))))
    axes.set_ylabel("rows in each bin, with 95% bars")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _plot_labels(line: OrderedColumn, axes: Any, dataset: str | None) -> Any:
    """The most frequent of many labels as horizontal bars, each by its name."""
    window = choose_window(line, full=True)
    table = window_bins(line, _MOST_NAMED, window)
    counts, half = _counts_and_bars(table)
    names = [shorten(str(label), _LONGEST_NAME) for label in table.lows]
    places = np.arange(len(names))
    axes.barh(places, counts, height=_APART, color=_BLUE)
    ends = [np.minimum(counts, half), half]
    axes.errorbar(counts, places, xerr=ends, fmt="none", ecolor=_INK, elinewidth=0.8, capsize=1.5)
    axes.set_yticks(places, names, fontsize="small")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_title(_line_title(line, dataset), loc="left", fontsize="medium")
    axes.set_xlabel(f"rows of each label, with 95% bars\n{rows_beyond(line, window, _MOST_NAMED)}")
    axes.set_ylabel(line.column)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def title(dataset: str | None, guarantee: Guarantee | None, within: str = "") -> str:
    """Which dataset, which of its rows, and at what price.

    >>> title("census", Guarantee(epsilon=1), "age 30 to 39")
    'census, epsilon 1, age 30 to 39'
    """
    epsilon = "no guarantee" if guarantee is None else _price(guarantee)
    return ", ".join(said for said in (dataset, epsilon, within) if said)


def _price(guarantee: Guarantee) -> str:
    return guarantee.price if guarantee.rho else f"epsilon {guarantee.epsilon}"


def _line_title(line: OrderedColumn, dataset: str | None) -> str:
    return title(dataset, line.axis.guarantee, getattr(line, "within", ""))


def _counts_and_bars(table: Bins) -> tuple[Floats, Floats]:
    """The counts of bins, never below zero, and half the width of each 95% bar."""
    return np.maximum(0.0, table.counts.values), CONFIDENT * table.counts.error


def is_interactive(interactive: bool | None, axes: Any) -> bool:
    """Whether a picture shall be interactive: if asked for, else in a notebook that has plotly.

    Axes are those of matplotlib, and go with no other picture.
    """
    if interactive is None:
        return axes is None and kernel() is not None and find_spec("plotly") is not None
    rule = "must be left out of an interactive picture"
    check(not interactive or axes is None, "axes", rule, given="axes", fix="pass interactive=False")
    return interactive


def line_figure(
    line: OrderedColumn, *, bins: int = 60, dataset: str | None = None, full: bool = False
) -> Any:
    """The histogram of a column with 95% bars; a button turns it into the counts up to each value.

    It shows where nearly all rows lie; with `full`, the whole axis.
    """
    window = choose_window(line, full=full)
    table = window_bins(line, bins, window)
    scale = Scale(line.domain, table.lows, table.highs, milliseconds)
    many = has_more_labels(line, bins)
    drawn = [_bars(table, scale)] + ([] if many else [_steps(cdf(line, table.highs), scale)])
    figure = figure_of(drawn, _line_title(line, dataset))
    words = "<br>".join(map(as_text, filter(None, (line.column, rows_beyond(line, window, bins)))))
    figure.update_xaxes(title=words, **_ruler(scale, line.domain.decode([0])[0]))
    figure.update_yaxes(title="rows, with 95% bars", rangemode="tozero")
    figure.update_layout(updatemenus=[] if many else [_buttons()], bargap=0)
    return figure


def heat_figure(heat: Heat, *, dataset: str | None = None) -> Any:
    """A field for every pair of bins, which tells its count and its error when it is pointed at."""
    scales = list(map(partial(Scale, calendar=milliseconds), heat.domains, heat.lows, heat.highs))
    counts, darkest = _shades(heat)
    field = import_plotly().Heatmap(
        x=scales[0].edges,
        y=scales[1].edges,
        z=counts,
        zmin=0.0,
        zmax=darkest,
        colorscale="Blues",
        customdata=np.dstack([heat.counts.values.T, CONFIDENT * heat.counts.error.T, *_pairs(heat)]),
        hovertemplate="%{customdata[2]}, %{customdata[3]}<br>%{customdata[0]:.1f} ± %{customdata[1]:.1f} "
        "rows (95%)<extra></extra>",
        colorbar={"title": "rows"},
    )
    figure = figure_of([field], title(dataset, heat.guarantee, heat.within))
    figure.update_xaxes(title=as_text(_side_name(heat, 0)), **_ruler(scales[0], heat.lows[0][0]))
    figure.update_yaxes(title=as_text(_side_name(heat, 1)), **_ruler(scales[1], heat.lows[1][0]))
    return figure


def figure_of(traces: Sequence[Any], words: str) -> Any:
    """A figure of these traces under a title, on the ground of the page."""
    figure = import_plotly().Figure(traces)
    clear = "rgba(0, 0, 0, 0)"
    figure.update_layout(
        title={"text": as_text(words), "font": {"size": 14}},
        template="plotly_white",
        paper_bgcolor=clear,
        plot_bgcolor=clear,
        font={"color": _PLOTLY_INK},
        width=800,
        height=450,
    )
    return figure


def as_text(words: object) -> str:
    """Words as plotly shows them: it takes links and line breaks in a text for what they are.

    >>> as_text("a<br>b")
    'a&lt;br&gt;b'
    """
    return escape(str(words), quote=False)


def import_plotly() -> Any:
    """The graph objects of plotly, if it is there."""
    try:
        return import_module("plotly.graph_objects")
    except ImportError:
        fix = 'install it: pip install "partita[notebook]"'
        raise InvalidParameter("interactive", "needs plotly", given="no plotly", fix=fix) from None


def milliseconds(values: Sequence[datetime.date]) -> list[float]:
    """Times as plotly counts them, by the clock on the wall of their own zone.

    >>> milliseconds([datetime.date(1970, 1, 2)])
    [86400000.0]
    """
    return [
        _MILLI * calendar.timegm(value.timetuple()) + getattr(value, "microsecond", 0) / _MILLI
        for value in values
    ]


def _bars(table: Bins, scale: Scale) -> Any:
    counts, half = _counts_and_bars(table)
    words = map(_between, table.lows, table.highs)
    return import_plotly().Bar(
        name="histogram",
        x=_middles(scale),
        y=counts,
        width=np.diff(scale.edges) * (_APART if scale.natural is None else 1.0),
        marker={"color": _BLUE, "line": {"width": 0}},
        error_y=_errors(half, np.minimum(counts, half)),
        customdata=list(map(list, zip(words, table.counts.values, table.counts.error, strict=True))),
        hovertemplate=_HOVER,
    )


def _steps(upto: Cdf, scale: Scale) -> Any:
    half = CONFIDENT * upto.counts.error
    words = (f"up to {as_text(value)}" for value in upto.values)
    return import_plotly().Scatter(
        name="up to each value",
        x=scale.edges[1:] if scale.natural is not None else _middles(scale),
        y=upto.counts.values,
        mode="lines+markers",
        visible=False,
        line={"color": _BLUE, "width": 1.5},
        marker={"size": 4},
        error_y=_errors(half, np.minimum(upto.counts.values, half)),
        customdata=list(map(list, zip(words, upto.counts.values, half, strict=True))),
        hovertemplate=_HOVER,
    )


_HOVER: Final = "%{customdata[0]}<br>%{customdata[1]:,.1f} ± %{customdata[2]:,.1f} rows (95%)<extra></extra>"


def _errors(above: Floats, below: Floats) -> dict[str, Any]:
    return {"array": above, "arrayminus": below, "color": _PLOTLY_INK, "thickness": 1, "width": 2}


def _buttons() -> dict[str, Any]:
    """Two buttons, of which one picture each is shown."""
    shown = {"histogram": [True, False], "up to each value": [False, True]}
    buttons = [
        {"label": label, "method": "restyle", "args": [{"visible": visible}]}
        for label, visible in shown.items()
    ]
    place = {"x": 1.0, "xanchor": "right", "y": 1.12, "yanchor": "bottom", "direction": "right"}
    return {"type": "buttons", "buttons": buttons, **place}


def _ruler(scale: Scale, first: object) -> dict[str, Any]:
    """The scale of an axis: dates, numbers, or the names of bins side by side."""
    if scale.natural is None:
        ticks, texts = scale.labels()
        return {"tickvals": ticks, "ticktext": list(map(as_text, texts))}
    return {"type": "date"} if isinstance(first, datetime.date) else {"type": "linear"}


def _middles(scale: Scale) -> Floats:
    return np.asarray((scale.edges[:-1] + scale.edges[1:]) / 2)


def _pairs(heat: Heat) -> tuple[Any, Any]:
    """The bins of the first column across and those of the second up, each in words."""
    words = [
        np.array(list(map(_between, *ends)), dtype=object) for ends in zip(heat.lows, heat.highs, strict=True)
    ]
    across, up = np.meshgrid(*words)
    return across, up


def _between(low: object, high: object) -> str:
    return as_text(low if low == high else f"{low} to {high}")


def plot_heat(heat: Heat, *, axes: Any = None, dataset: str | None = None) -> Any:
    """A field for every pair of bins, darker where there are more rows, on these axes or on new ones.

    The first column goes to the right and the second one up. Counts below zero are drawn as none, and no
    field is darkest whose count is below the largest error: where nobody is, nothing stands out.
    """
    axes = new_axes() if axes is None else axes
    across, up = map(Scale, heat.domains, heat.lows, heat.highs)
    counts, darkest = _shades(heat)
    field = axes.pcolormesh(
        across.edges, up.edges, counts, cmap="Blues", vmin=0.0, vmax=darkest, rasterized=True
    )
    across.mark(axes, "x")
    up.mark(axes, "y")
    axes.set_xlabel(_side_name(heat, 0))
    axes.set_ylabel(_side_name(heat, 1))
    axes.set_title(title(dataset, heat.guarantee, heat.within), loc="left", fontsize="medium")
    axes.figure.colorbar(field, ax=axes, label=f"rows in each field, ± {heat.margins} (95%)")
    return axes


def _side_name(heat: Heat, side: int) -> str:
    """The column on one side, and from where to where its axis goes if not all of it is shown."""
    domain, ends = heat.domains[side], [heat.lows[side][0], heat.highs[side][-1]]
    whole = domain.decode([0, domain.size - 1])
    return heat.columns[side] + ("" if ends == list(whole) else f" (a part of {whole[0]} to {whole[1]})")


def _shades(heat: Heat) -> tuple[Floats, float]:
    """The counts of fields, never below zero, and the count of the darkest shade."""
    counts = np.maximum(0.0, heat.counts.values).T
    return counts, max(1.0, float(heat.counts.error.max()), float(counts.max()))
