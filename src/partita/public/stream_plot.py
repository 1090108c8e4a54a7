"""Streams to look at: cards for notebooks, and plots of what a counter or family has published, with bands.

All of it is made from public parameters and outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import numpy as np

from partita.arrays import Floats
from partita.guarantee import Guarantee
from partita.html import Html, Row, bars, card, grid, number, shortlist, span, whisker, with_interval
from partita.public.base import promise
from partita.public.boxes.base import new_axes
from partita.public.plot import as_text, figure_of, import_plotly, title
from partita.public.stream_errors import Running, error_band
from partita.public.streams import AnyOutput, FamilyOutput, Output, Settings

MOST_SHOWN: Final = 60
"""How many of the last outputs of a durable counter are shown on its card."""

_MOST_POINTS: Final = 200  # points of a line: what is drawn against the time that it takes
_LINES: Final = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#bab0ac")
_BAND: Final = 0.25  # opacity

# ---- cards for notebooks ----


class StreamFacts(Protocol):
    """What a card shows of anything that counts in memory."""

    guarantee: Guarantee | None
    horizon: int | None

    @property
    def periods(self) -> int:
        """How many periods are closed."""


class CounterFacts(StreamFacts, Protocol):
    """What a card shows of a counter."""

    def answer(self) -> Running:
        """The last output with its error."""


class FamilyFacts(StreamFacts, Protocol):
    """What a card shows of a family."""

    keys: tuple[int, ...] | tuple[str, ...]

    @property
    def value(self) -> Floats:
        """The last output for each key."""


def counter_card(counter: CounterFacts) -> str:
    """A counter in memory: its last output and how far off it may be."""
    facts = _terms(counter.guarantee, counter.periods, counter.horizon)
    if not counter.periods:
        return card(type(counter).__name__, facts)
    error_facts, picture = _running(counter.answer())
    return card(type(counter).__name__, [*facts, *error_facts], below=[picture])


def family_card(family: FamilyFacts) -> str:
    """A family in memory: the last output for each key."""
    values = family.value
    rows = shortlist(len(family.keys), lambda place: (family.keys[place], number(float(values[place]))))
    facts = _terms(family.guarantee, family.periods, family.horizon)
    return card(type(family).__name__, facts, below=[grid(("key", "published"), rows)])


def running_card(running: Running) -> str:
    """The last output of a counter with its bounds."""
    facts, picture = _running(running)
    return card("Running", facts, below=[picture])


def stream_card(
    title: str, settings: Settings, guarantee: Guarantee | None, periods: int, last: Sequence[AnyOutput]
) -> str:
    """A durable counter or family: what stands in its public file, of its outputs the last."""
    facts = [("mechanism", settings.mechanism), *_terms(guarantee, periods, settings.horizon)]
    if settings.keys:
        return card(title, facts, below=[_by_key(settings.keys, last)])
    return card(title, facts, below=_over_time([output for output in last if isinstance(output, Output)]))


def _terms(guarantee: Guarantee | None, periods: int, horizon: int | None) -> list[tuple[str, object]]:
    return [
        ("promise", promise(guarantee)),
        ("periods", f"{periods:,} closed" + (f" of {horizon:,}" if horizon is not None else "")),
    ]


def _running(running: Running) -> tuple[list[tuple[str, object]], Html]:
    bounds = running.low, running.high
    facts: list[tuple[str, object]] = [
        ("published", with_interval(running.value, bounds)),
        ("true count", f"{span(bounds)}, but for 5%"),
        ("all periods at once", f"off by at most {number(running.everywhere)}, but for 5%"),
    ]
    return facts, whisker(running.value, (running.value, running.value), bounds)


def _over_time(last: Sequence[Output]) -> list[Html]:
    rows = shortlist(len(last), lambda place: _published(last[place]))
    picture = [bars([output.value for output in last])] if last else []
    return [*picture, grid(("period", "ended, UTC", "published"), rows)]


def _published(output: Output) -> Row:
    return output.period, f"{output.end:%Y-%m-%d %H:%M:%S}", number(output.value)


def _by_key(keys: Sequence[str], last: Sequence[AnyOutput]) -> Html:
    values = last[-1].value if last and isinstance(last[-1], FamilyOutput) else {}
    rows = shortlist(len(keys), lambda place: (keys[place], number(values.get(keys[place], 0.0))))
    return grid(("key", "published"), rows)


# ---- plots ----


def plot(
    outputs: Sequence[AnyOutput],
    settings: Settings,
    *,
    beta: float = 0.05,
    axes: Any = None,
    name: str | None = None,
) -> Any:
    """The outputs over time on these matplotlib axes, or on new ones; returns the axes.

    The band holds the true count of each period, but for probability beta; a sparse counter has none. Of
    many outputs some are drawn, the last among them; of a family the first eight keys.
    """
    axes = new_axes() if axes is None else axes
    times, half, lines = _prepare(outputs, settings, beta)
    for key, values, color in lines:
        _draw(axes, times, values, half, key=key, color=color)
    if settings.keys:
        axes.legend(frameon=False, fontsize="small")
    axes.set_title(title(name, settings.guarantee), loc="left", fontsize="medium")
    axes.set_xlabel("end of the period, UTC")
    axes.set_ylabel(_height_label(settings, beta, banded=half is not None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.autofmt_xdate()
    return axes


def _prepare(
    outputs: Sequence[AnyOutput], settings: Settings, beta: float
) -> tuple[list[datetime], Floats | None, list[tuple[str | None, Floats, str]]]:
    """The ends of the periods that are drawn, the band, and each line with its key and colour.

    Periods are spread evenly, both ends among them.
    """
    places = np.linspace(0, len(outputs) - 1, min(len(outputs), _MOST_POINTS)).round().astype(int)
    drawn = [outputs[place] for place in np.unique(places).tolist()]
    lines = [
        (key, np.array([_value_of(output, key) for output in drawn]), color)
        for key, color in zip(settings.keys or [None], _LINES, strict=False)
    ]
    return [output.end for output in drawn], error_band(drawn, settings, beta), lines


def _value_of(output: AnyOutput, key: str | None) -> float:
    """The output of a counter, or that of a family for a key."""
    return output.value[str(key)] if isinstance(output, FamilyOutput) else output.value


def _height_label(settings: Settings, beta: float, *, banded: bool) -> str:
    window = settings.options.get("window")
    height = "count so far" if window is None else f"count in {window} periods"
    return f"{height}, with {100 * (1 - beta):.3g}% bounds" if banded else height


def _draw(axes: Any, times: Any, values: Floats, half: Floats | None, *, key: str | None, color: str) -> None:
    """A line, and a band around it if there is one."""
    if half is not None:
        axes.fill_between(times, values - half, values + half, color=color, alpha=_BAND, lw=0, step="post")
    axes.step(times, values, where="post", color=color, linewidth=1.2, label=key)


def stream_figure(
    outputs: Sequence[AnyOutput], settings: Settings, *, beta: float = 0.05, name: str | None = None
) -> Any:
    """The outputs over time as `plot` draws them, to zoom into and point at; needs plotly."""
    times, half, lines = _prepare(outputs, settings, beta)
    traces = [
        trace for key, values, color in lines for trace in _traces(times, values, half, key=key, color=color)
    ]
    figure = figure_of(traces, title(name, settings.guarantee))
    figure.update_xaxes(title="end of the period, UTC", type="date")
    figure.update_yaxes(title=_height_label(settings, beta, banded=half is not None))
    figure.update_layout(showlegend=bool(settings.keys), hovermode="x unified")
    return figure


def _traces(
    times: Sequence[Any], values: Floats, half: Floats | None, *, key: str | None, color: str
) -> Iterator[Any]:
    """A line, and around it a band if there is one."""
    name = as_text(key or "published")
    if half is not None:
        shared = {"x": times, "mode": "lines", "line": {"width": 0, "shape": "hv"}, "legendgroup": name}
        yield import_plotly().Scatter(y=values - half, name="at least", showlegend=False, **shared)
        yield import_plotly().Scatter(
            y=values + half,
            name="at most",
            showlegend=False,
            fill="tonexty",
            fillcolor=_clear(color),
            **shared,
        )
    line = {"color": color, "width": 1.5, "shape": "hv"}
    yield import_plotly().Scatter(x=times, y=values, name=name, mode="lines", line=line, legendgroup=name)


def _clear(color: str) -> str:
    """The same colour, to be seen through."""
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {_BAND})"
