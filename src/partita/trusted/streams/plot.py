"""A picture of what a durable counter or family has published, with bands; needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from partita.arrays import Floats
from partita.guarantee import Guarantee
from partita.html import Html, Row, bars, card, grid, number, plus_minus, shortlist, span, whisker
from partita.public.base import promise
from partita.public.boxes.base import new_axes
from partita.public.plot import as_text, figure_of, graphs, title
from partita.public.streams import AnyOutput, FamilyOutput, Output, Settings
from partita.trusted.durable.events import AnyCounter, make_counter
from partita.trusted.streams.base import ContinualCounter, Running
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.sparse import SparseCounter

# How counters look in a notebook: their public parameters and what they have published, nothing else.


MOST_SHOWN: Final = 60
"""How many of the last outputs of a durable counter are looked at."""


def counter_card(counter: ContinualCounter) -> str:
    """A counter in memory: its last output and how far off it may be."""
    facts = _terms(counter.guarantee, counter.periods, counter.horizon)
    if not counter.periods:
        return card(type(counter).__name__, facts)
    said, picture = _running(counter.answer())
    return card(type(counter).__name__, [*facts, *said], below=[picture])


def family_card(family: CounterFamily) -> str:
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
        ("published", plus_minus(running.value, running.error)),
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


_MOST: Final = 200
LINES: Final = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#bab0ac")
_BAND: Final = 0.25


def plot(
    outputs: Sequence[AnyOutput],
    settings: Settings,
    *,
    beta: float = 0.05,
    axes: Any = None,
    name: str | None = None,
) -> Any:
    """The outputs over time on these matplotlib axes, or on new ones, which are returned.

    The band holds the true count of each period, but for probability beta; a sparse counter has none. Of
    many outputs some are drawn, the last among them; of a family the first eight keys.
    """
    axes = new_axes() if axes is None else axes
    drawn = [outputs[place] for place in some(len(outputs))]
    half, times = band(drawn, settings, beta), [output.end for output in drawn]
    for key, color in zip(settings.keys or [None], LINES, strict=False):
        _draw(axes, times, np.array([value_of(output, key) for output in drawn]), half, key=key, color=color)
    if settings.keys:
        axes.legend(frameon=False, fontsize="small")
    _describe(axes, settings, beta, name, banded=half is not None)
    return axes


def band(outputs: Sequence[AnyOutput], settings: Settings, beta: float) -> Floats | None:
    """How far each output may be from the true count of its period, but for probability beta.

    Worked out by a twin of the counter that counts nothing: how far it errs depends on public numbers only.
    For a family it is that of each key alone, the same for all. For a sparse counter it depends on when
    segments were sealed, and this is None.
    """
    if settings.mechanism == SparseCounter.name:
        return None
    twin, halves = make_counter(replace(settings, keys=settings.keys[:1]), None), []
    for output in outputs:
        twin.advance(output.period - twin.periods)
        bounds = _bounds(twin, beta)
        # The last bits of both ends depend on the value of the twin, which is noise of its own.
        halves.append(float(f"{(bounds.high - bounds.low) / 2:.9g}"))
    return np.array(halves, dtype=np.float64)


def _bounds(twin: AnyCounter, beta: float) -> Running:
    return twin.answer(twin.keys[0], beta) if isinstance(twin, CounterFamily) else twin.answer(beta)


def counted(settings: Settings, beta: float, *, banded: bool) -> str:
    """What the height of a line is, in words."""
    window = settings.options.get("window")
    so_far = "count so far" if window is None else f"count in {window} periods"
    return f"{so_far}, with {100 * (1 - beta):.3g}% bounds" if banded else so_far


def value_of(output: AnyOutput, key: str | None) -> float:
    """The output of a counter, or that of a family for a key."""
    return output.value[str(key)] if isinstance(output, FamilyOutput) else output.value


def _draw(axes: Any, times: Any, values: Floats, half: Floats | None, *, key: str | None, color: str) -> None:
    """A line, and a band around it if there is one."""
    if half is not None:
        axes.fill_between(times, values - half, values + half, color=color, alpha=_BAND, lw=0, step="post")
    axes.step(times, values, where="post", color=color, linewidth=1.2, label=key)


def some(number: int) -> list[int]:
    """Places spread evenly, both ends among them."""
    places: list[int] = np.unique(np.linspace(0, number - 1, min(number, _MOST)).round().astype(int)).tolist()
    return places


def _describe(axes: Any, settings: Settings, beta: float, name: str | None, *, banded: bool) -> None:
    axes.set_title(title(name, settings.guarantee), loc="left", fontsize="medium")
    axes.set_xlabel("end of the period, UTC")
    axes.set_ylabel(counted(settings, beta, banded=banded))
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.autofmt_xdate()


# A picture of what a durable counter or family has published, to zoom into and point at; needs plotly.


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
