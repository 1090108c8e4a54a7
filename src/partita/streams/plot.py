"""A picture of what a durable counter has published, with a band around it; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from partita.releases.plot import title
from partita.releases.scales import new_axes
from partita.streams.base import Floats
from partita.streams.durable.mechanisms import made
from partita.streams.durable.outputs import Output
from partita.streams.durable.settings import Settings
from partita.streams.sparse_counter import SparseCounter

__all__ = ["band", "plot"]

_MOST: Final = 200
_LINE: Final = "#4c78a8"
_BAND: Final = 0.25


def plot(
    outputs: Sequence[Output],
    settings: Settings,
    *,
    beta: float = 0.05,
    axes: Any = None,
    name: str | None = None,
) -> Any:
    """The outputs over time on these matplotlib axes, or on new ones, which are returned.

    The band holds the true count of each period, but for probability beta; a sparse counter has none. Of
    many outputs some are drawn, the last among them.
    """
    axes = new_axes() if axes is None else axes
    drawn = [outputs[place] for place in _some(len(outputs))]
    values, half = np.array([output.value for output in drawn]), band(drawn, settings, beta)
    times: Any = [output.end for output in drawn]
    if half is not None:
        axes.fill_between(times, values - half, values + half, color=_LINE, alpha=_BAND, lw=0, step="post")
    axes.step(times, values, where="post", color=_LINE, linewidth=1.2)
    _describe(axes, settings, beta, name, banded=half is not None)
    return axes


def band(outputs: Sequence[Output], settings: Settings, beta: float) -> Floats | None:
    """How far each output may be from the true count of its period, but for probability beta.

    Worked out by a twin of the counter that counts nothing: how far it errs depends on public numbers only.
    For a sparse counter it depends on when segments were sealed, and this is None.
    """
    if settings.mechanism == SparseCounter.name:
        return None
    twin, halves = made(settings, None), []
    for output in outputs:
        twin.advance(output.period - twin.periods)
        bounds = twin.answer(beta)
        halves.append((bounds.high - bounds.low) / 2)
    return np.array(halves, dtype=np.float64)


def _some(number: int) -> list[int]:
    """Places spread evenly, both ends among them."""
    places: list[int] = np.unique(np.linspace(0, number - 1, min(number, _MOST)).round().astype(int)).tolist()
    return places


def _describe(axes: Any, settings: Settings, beta: float, name: str | None, *, banded: bool) -> None:
    axes.set_title(title(name, settings.guarantee), loc="left", fontsize="medium")
    axes.set_xlabel("end of the period, UTC")
    window = settings.options.get("window")
    counted = "count so far" if window is None else f"count in {window} periods"
    axes.set_ylabel(f"{counted}, with {100 * (1 - beta):.3g}% bounds" if banded else counted)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.autofmt_xdate()
