"""What the five examples share: where pictures go, how they look, and a check that what is told is true."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib import pyplot

TRUTH, PUBLISHED, FAINT = "#e45756", "#4c78a8", "#bab0ac"
SURE = 1e-9
"""How often a check of an example may fail by chance."""

_WIDTH = 100
_LOOK = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "partita",
}


class Told:
    """An example by name: its chapters, its pictures, and its end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = _folder(name)
        matplotlib.rcParams.update(_LOOK)

    def chapter(self, title: str) -> None:
        """A heading."""
        print(f"\n{title}\n{'-' * len(title)}")

    def say(self, text: str) -> None:
        """A paragraph, wrapped."""
        print(fill(" ".join(text.split()), _WIDTH))

    def picture(self, name: str, figure: Any) -> None:
        """Keep a picture. In a notebook it is shown as well, by the notebook."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}_{name}.svg"
        figure.savefig(path, facecolor="white", metadata={"Date": None})
        print(f"picture: {path}")
        if not _in_notebook():
            pyplot.close(figure)

    def check(self, what: str, truth: float, bounds: tuple[float, float]) -> None:
        """The truth lies within guaranteed bounds: only for made-up people may anybody look."""
        low, high = bounds
        print(f"check: {what}: the truth {truth!r} lies in [{low!r}, {high!r}]")
        if not low <= truth <= high:
            raise SystemExit(f"{what}: the truth lies outside, which happens once in {1 / SURE:,.0f} runs")

    def end(self, *can: str) -> None:
        """What a reader can do now."""
        self.chapter("What you can do now")
        for number, each in enumerate(can, 1):
            print(fill(f"{number}. {' '.join(each.split())}", _WIDTH, subsequent_indent="   "))


def _folder(name: str) -> Path:
    """The folder named on the command line; in a notebook the command line is that of the kernel."""
    named = [] if _in_notebook() else sys.argv[1:2]
    return Path(named[0]) if named else Path("build", "examples", name)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
