"""A picture of a column; needs matplotlib."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from partita.guarantee.guarantee import Guarantee
from partita.public.axis.curve.curve import Floats
from partita.public.boxes.base.scales import Scale, new_axes
from partita.public.results.bins import Bins, bins_of, even_bins
from partita.public.views.slice import Line

_CONFIDENT: Final = 1.96
_APART: Final = 0.8
_MARGIN: Final = 0.1
_BAR: Final = "#4c78a8"
_INK: Final = "#2b2b2b"


def plot(line: Line, *, bins: int = 60, axes: Any = None, dataset: str | None = None) -> Any:
    """The histogram of a column with a 95% bar on every bin, on these matplotlib axes or on new ones.

    There are at most `bins` bins, of nearly equally many cells.
    """
    table = bins_of(line, even_bins(line.axis.size, bins))
    axes = new_axes() if axes is None else axes
    scale = Scale(line.domain, table.lows, table.highs)
    middles = (scale.edges[:-1] + scale.edges[1:]) / 2
    _draw(axes, table, middles, _APART if scale.natural is None else np.diff(scale.edges))
    scale.mark(axes, margin=_MARGIN)
    _describe(axes, line, dataset)
    return axes


def title(dataset: str | None, guarantee: Guarantee | None, within: str = "") -> str:
    """Which dataset, which of its rows, and at what price.

    >>> title("census", Guarantee(epsilon=1), "age 30 to 39")
    'census, epsilon 1, age 30 to 39'
    """
    epsilon = "no guarantee" if guarantee is None else f"epsilon {guarantee.epsilon}"
    return ", ".join(said for said in (dataset, epsilon, within) if said)


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


def _describe(axes: Any, line: Line, dataset: str | None) -> None:
    within = getattr(line, "within", "")
    axes.set_title(title(dataset, line.axis.guarantee, within), loc="left", fontsize="medium")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(line.column)
    axes.set_ylabel("rows in each bin, with 95% bars")
    axes.spines[["top", "right"]].set_visible(False)
