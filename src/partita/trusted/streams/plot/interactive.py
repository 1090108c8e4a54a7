"""A picture of what a durable counter or family has published, to zoom into and point at; needs plotly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from partita.public.plot.interactive import as_text, figure_of, graphs
from partita.public.plot.plot import title
from partita.public.streams.outputs import AnyOutput
from partita.public.streams.settings import Settings
from partita.trusted.streams.base.base import Floats
from partita.trusted.streams.plot.plot import LINES, band, counted, some, value_of

_BAND: Final = 0.25


def stream_figure(
    outputs: Sequence[AnyOutput], settings: Settings, *, beta: float = 0.05, name: str | None = None
) -> Any:
    """The outputs over time, as `streams.plot.plot` draws them."""
    drawn = [outputs[place] for place in some(len(outputs))]
    half, times = band(drawn, settings, beta), [output.end for output in drawn]
    traces: list[Any] = []
    for key, color in zip(settings.keys or [None], LINES, strict=False):
        values = np.array([value_of(output, key) for output in drawn])
        traces += _traces(times, values, half, key=key, color=color)
    figure = figure_of(traces, title(name, settings.guarantee))
    figure.update_xaxes(title="end of the period, UTC", type="date")
    figure.update_yaxes(title=counted(settings, beta, banded=half is not None))
    figure.update_layout(showlegend=bool(settings.keys), hovermode="x unified")
    return figure


def _traces(
    times: Sequence[Any], values: Floats, half: Floats | None, *, key: str | None, color: str
) -> Iterator[Any]:
    """A line, and around it a band if there is one."""
    name = as_text(key or "published")
    if half is not None:
        shared = {"x": times, "mode": "lines", "line": {"width": 0, "shape": "hv"}, "legendgroup": name}
        yield graphs().Scatter(y=values - half, name="at least", showlegend=False, **shared)
        yield graphs().Scatter(
            y=values + half,
            name="at most",
            showlegend=False,
            fill="tonexty",
            fillcolor=_clear(color),
            **shared,
        )
    line = {"color": color, "width": 1.5, "shape": "hv"}
    yield graphs().Scatter(x=times, y=values, name=name, mode="lines", line=line, legendgroup=name)


def _clear(color: str) -> str:
    """The same colour, to be seen through."""
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {_BAND})"
