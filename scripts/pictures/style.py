"""The look that all pictures share: small, without a background, readable on light and on dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise.system import SystemNoise

__all__ = ["BLUE", "FAINT", "GREEN", "INK", "ORANGE", "canvas", "fixed_noise", "save"]

INK: Final = "#666677"
"""Words and axes: a grey in the middle."""
FAINT: Final = "#9999aa"
"""What stands behind: the truth, or the cells that are only shown for order."""
BLUE: Final = "#3b82c4"
"""What is released."""
ORANGE: Final = "#e07b39"
"""What the picture points at: a question, a cut, an error."""
GREEN: Final = "#3a9d6e"
"""A third thing, where there is one."""

_LOOK: Final[dict[Any, Any]] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.size": 8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "partita",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
plt.rcParams.update(_LOOK)


def canvas(*, columns: int = 1, rows: int = 1, width: float = 6.6, height: float = 2.6) -> tuple[Any, Any]:
    """A figure, and its axes: one, or an array of them."""
    return plt.subplots(rows, columns, figsize=(width, height))


def fixed_noise(seed: int = 1) -> SystemNoise:
    """The shipped sampler on words from a seed: the same picture every time."""
    return tape_noise(EndlessTape(seed))


def save(figure: Any, path: Path) -> None:
    """Write an SVG that depends on nothing but the figure."""
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
