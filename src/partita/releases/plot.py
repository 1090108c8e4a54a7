"""A picture of a column; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from partita.errors import InvalidParameter
from partita.releases.bins import Bins, bins_of
from partita.releases.figures import shortened
from partita.releases.view import View

__all__ = ["plot"]

_CONFIDENT: Final = 1.96
_MOST_TICKS: Final = 9
_LONGEST_TICK: Final = 20
_BAR: Final = "#4c78a8"
_INK: Final = "#2b2b2b"


def plot(view: View, *, bins: int = 60, axes: Any = None) -> Any:
    """The histogram of a column with a 95% bar on every bin, on these matplotlib axes or on new ones."""
    table = bins_of(view, bins)
    axes = _new_axes() if axes is None else axes
    places = np.arange(len(table))
    counts, half = np.maximum(0.0, table.counts.values), _CONFIDENT * table.counts.error
    axes.bar(places, counts, width=1.0, align="edge", color=_BAR, edgecolor="white", linewidth=0.5)
    axes.errorbar(
        places + 0.5,
        counts,
        yerr=[np.minimum(counts, half), half],
        fmt="none",
        ecolor=_INK,
        elinewidth=0.8,
        capsize=1.5,
    )
    _label(axes, view, table)
    return axes


def _label(axes: Any, view: View, table: Bins) -> None:
    ticks = np.unique(np.linspace(0, len(table) - 1, _MOST_TICKS).round().astype(int))
    centred = all(low == high for low, high in zip(table.lows, table.highs, strict=True))
    axes.set_xticks(
        ticks + 0.5 * centred, _texts([table.lows[tick] for tick in ticks]), rotation=30, ha="right"
    )
    axes.set_xlim(0, len(table))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(view.column)
    axes.set_ylabel("rows in each bin, with 95% bars")
    axes.spines[["top", "right"]].set_visible(False)


def _texts(values: Sequence[object]) -> list[str]:
    return [shortened(str(value), _LONGEST_TICK) for value in values]


def _new_axes() -> Any:
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise InvalidParameter(
            "plot", "needs matplotlib", given="no matplotlib", fix='install it: pip install "partita[plot]"'
        ) from None
    _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    return axes
