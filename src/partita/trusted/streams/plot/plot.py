"""A picture of what a durable counter or family has published, with bands; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from partita.public.boxes.base.scales import new_axes
from partita.public.plot.plot import title
from partita.public.streams.outputs import AnyOutput, FamilyOutput
from partita.public.streams.settings import Settings
from partita.trusted.durable.events.mechanisms import AnyCounter, make_counter
from partita.trusted.streams.base.base import Floats, Running
from partita.trusted.streams.family.family import CounterFamily
from partita.trusted.streams.sparse.sparse_counter import SparseCounter

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
