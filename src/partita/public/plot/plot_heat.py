"""A picture of two columns together, a heat map; needs matplotlib."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from partita.public.boxes.base.scales import Scale, new_axes
from partita.public.plot.plot import title
from partita.public.results.heat import Heat

_COLOURS: Final = "Blues"


def plot_heat(heat: Heat, *, axes: Any = None, dataset: str | None = None) -> Any:
    """A field for every pair of bins, darker where there are more rows, on these axes or on new ones.

    The first column goes to the right and the second one up. Counts below zero are drawn as none, and no
    field is darkest whose count is below the largest error: where nobody is, nothing stands out.
    """
    axes = new_axes() if axes is None else axes
    across, up = (
        Scale(domain, lows, highs)
        for domain, lows, highs in zip(heat.domains, heat.lows, heat.highs, strict=True)
    )
    counts = np.maximum(0.0, heat.counts.values).T
    darkest = max(1.0, float(heat.counts.error.max()), float(counts.max()))
    field = axes.pcolormesh(
        across.edges, up.edges, counts, cmap=_COLOURS, vmin=0.0, vmax=darkest, rasterized=True
    )
    across.mark(axes, "x")
    up.mark(axes, "y")
    axes.set_xlabel(heat.columns[0])
    axes.set_ylabel(heat.columns[1])
    axes.set_title(title(dataset, heat.guarantee, heat.within), loc="left", fontsize="medium")
    axes.figure.colorbar(field, ax=axes, label=f"rows in each field, to a standard error of {heat.errors}")
    return axes
