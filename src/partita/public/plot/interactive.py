"""Pictures that a reader can zoom into and point at; needs plotly."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.html import kernel
from partita.public.axis.curve.curve import Floats
from partita.public.boxes.base.scales import Scale
from partita.public.plot.plot import title
from partita.public.results.bins import Bins, bins_of, even_bins
from partita.public.results.cdf import Cdf, cdf
from partita.public.results.heat import Heat
from partita.public.views.slice import Line

CONFIDENT: Final = 1.96
_APART: Final = 0.8
_BLUE, _INK = "#4c78a8", "#7f7f7f"
_MILLI: Final = 1000.0


def wanted(interactive: bool | None, axes: Any) -> bool:
    """Whether a picture shall be interactive: if asked for, else in a notebook that has plotly.

    Axes are those of matplotlib, and go with no other picture.
    """
    if interactive is None:
        return axes is None and kernel() is not None and find_spec("plotly") is not None
    rule = "must be left out of an interactive picture"
    check(not interactive or axes is None, "axes", rule, given="axes", fix="pass interactive=False")
    return interactive


def line_figure(line: Line, *, bins: int = 60, dataset: str | None = None) -> Any:
    """The histogram of a column with 95% bars; a button turns it into the counts up to each value."""
    table = bins_of(line, even_bins(line.axis.size, bins))
    scale = Scale(line.domain, table.lows, table.highs, milliseconds)
    upto = cdf(line, table.highs)
    drawn = [_bars(table, scale), _steps(upto, scale)]
    figure = figure_of(drawn, title(dataset, line.axis.guarantee, getattr(line, "within", "")))
    figure.update_xaxes(title=as_text(line.column), **_ruler(scale, line.domain.decode([0])[0]))
    figure.update_yaxes(title="rows, with 95% bars", rangemode="tozero")
    figure.update_layout(updatemenus=[_buttons()], bargap=0)
    return figure


def heat_figure(heat: Heat, *, dataset: str | None = None) -> Any:
    """A field for every pair of bins, which tells its count and its error when it is pointed at."""
    scales = [
        Scale(domain, lows, highs, milliseconds)
        for domain, lows, highs in zip(heat.domains, heat.lows, heat.highs, strict=True)
    ]
    counts = np.maximum(0.0, heat.counts.values).T
    darkest = max(1.0, float(heat.counts.error.max()), float(counts.max()))
    field = graphs().Heatmap(
        x=scales[0].edges,
        y=scales[1].edges,
        z=counts,
        zmin=0.0,
        zmax=darkest,
        colorscale="Blues",
        customdata=np.dstack([heat.counts.values.T, heat.counts.error.T, *_pairs(heat)]),
        hovertemplate="%{customdata[2]}, %{customdata[3]}<br>%{customdata[0]:.1f} ± %{customdata[1]:.1f} rows"
        "<extra></extra>",
        colorbar={"title": "rows"},
    )
    figure = figure_of([field], title(dataset, heat.guarantee, heat.within))
    figure.update_xaxes(title=as_text(heat.columns[0]), **_ruler(scales[0], heat.lows[0][0]))
    figure.update_yaxes(title=as_text(heat.columns[1]), **_ruler(scales[1], heat.lows[1][0]))
    return figure


def figure_of(traces: Sequence[Any], words: str) -> Any:
    """A figure of these traces under a title, on the ground of the page."""
    figure = graphs().Figure(traces)
    clear = "rgba(0, 0, 0, 0)"
    figure.update_layout(
        title={"text": as_text(words), "font": {"size": 14}},
        template="plotly_white",
        paper_bgcolor=clear,
        plot_bgcolor=clear,
        font={"color": _INK},
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


def graphs() -> Any:
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
    counts, half = np.maximum(0.0, table.counts.values), CONFIDENT * table.counts.error
    width = np.diff(scale.edges) * (_APART if scale.natural is None else 1.0)
    return graphs().Bar(
        name="histogram",
        x=_middles(scale),
        y=counts,
        width=width,
        marker={"color": _BLUE, "line": {"width": 0}},
        error_y=_errors(half, np.minimum(counts, half)),
        customdata=[
            [_between(low, high), count, error]
            for low, high, count, error in zip(
                table.lows, table.highs, table.counts.values, table.counts.error, strict=True
            )
        ],
        hovertemplate=_SAID,
    )


def _steps(upto: Cdf, scale: Scale) -> Any:
    half = CONFIDENT * upto.counts.error
    return graphs().Scatter(
        name="up to each value",
        x=scale.edges[1:] if scale.natural is not None else _middles(scale),
        y=upto.counts.values,
        mode="lines+markers",
        visible=False,
        line={"color": _BLUE, "width": 1.5},
        marker={"size": 4},
        error_y=_errors(half, np.minimum(upto.counts.values, half)),
        customdata=[
            [f"up to {as_text(value)}", count, error]
            for value, count, error in zip(upto.values, upto.counts.values, upto.counts.error, strict=True)
        ],
        hovertemplate=_SAID,
    )


_SAID: Final = "%{customdata[0]}<br>%{customdata[1]:,.1f} ± %{customdata[2]:,.1f} rows<extra></extra>"


def _errors(above: Floats, below: Floats) -> dict[str, Any]:
    return {"array": above, "arrayminus": below, "color": _INK, "thickness": 1, "width": 2}


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
    across, up = (
        np.array(list(map(_between, lows, highs)), dtype=object)
        for lows, highs in zip(heat.lows, heat.highs, strict=True)
    )
    pair = np.meshgrid(across, up)
    return pair[0], pair[1]


def _between(low: object, high: object) -> str:
    return as_text(low if low == high else f"{low} to {high}")
