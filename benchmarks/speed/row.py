"""A row: one figure, the baseline that it was measured against, and the target if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Target:
    """A promise about the figure itself or about its ratio to the baseline."""

    about: Literal["figure", "ratio"]
    sense: Literal[">=", "<="]
    value: float

    def met(self, row: Row) -> bool:
        measured = row.figure if self.about == "figure" else row.ratio
        return measured >= self.value if self.sense == ">=" else measured <= self.value

    def __str__(self) -> str:
        return f"{self.about} {self.sense} {short(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """`ratio` is figure over baseline figure: more is better for items/s, less for all others."""

    ours: str
    parameters: dict[str, Any]
    unit: Literal["items/s", "s", "s CPU", "GB", "draws"]
    figure: float
    baseline: str
    baseline_figure: float
    statistic: str
    target: Target | None = None
    quick: bool = False

    @property
    def ratio(self) -> float:
        return self.figure / self.baseline_figure

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one, and in a quick run, which proves nothing."""
        return None if self.target is None or self.quick else self.target.met(self)

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return {
            "parameters": self.parameters,
            "unit": self.unit,
            "ours": self.ours,
            "figure": rounded(self.figure),
            "baseline": self.baseline,
            "baseline_figure": rounded(self.baseline_figure),
            "ratio": rounded(self.ratio),
            "target": None if self.target is None else str(self.target),
            "met": self.met,
            "statistic": self.statistic,
            "quick": self.quick,
        }

    def to_cells(self) -> list[str]:
        """The row as the columns of a table."""
        parameters = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        met = {None: "", True: "yes", False: "NO"}[self.met]
        ours, theirs = (f"{short(figure)} {self.unit}" for figure in (self.figure, self.baseline_figure))
        target = "" if self.target is None else str(self.target)
        return [parameters, ours, self.baseline, theirs, short(self.ratio), target, met]


HEADINGS = ["row", "parameters", "ours", "baseline", "its figure", "ratio", "target", "met"]


def table(rows: Mapping[str, Row]) -> str:
    """The rows as an aligned Markdown table."""
    lines = [HEADINGS, *([name, *row.to_cells()] for name, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)


def rounded(figure: float) -> float:
    """Four digits: more would be noise."""
    return float(f"{figure:.4g}")


def short(figure: float) -> str:
    """Three digits and a unit prefix."""
    for size, prefix in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if figure >= size:
            return f"{figure / (1e3 if size == 1e4 else size):.3g}{prefix}"
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}"
