"""Dots with error bars on a logarithmic axis: one band for each setting, one colour for each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import ceil, floor, log10

from benchmarks.report.model import Row

WIDTH, LEFT, RIGHT, TOP, STEP, GAP = 860, 210, 30, 34, 9, 12
LEGEND_COLUMNS, LEGEND_LINE = 4, 20
LEAST = 1e-3
"""What is drawn of an error of nothing."""

OURS, PAPER, PEER = (
    ("#d9480f", "#f08c4a"),
    ("#5c8a3a", "#8a8f3a", "#3a8a74", "#a07a2c"),
    (
        "#3b6fd1",
        "#8a56c9",
        "#2f9bb8",
        "#c2519a",
        "#6c7bd9",
    ),
)
STYLE = (
    "<style>.plot text{font:12px system-ui,sans-serif;fill:#556}.plot .grid{stroke:#8888;stroke-width:.5}"
    ".plot .band{fill:#8881}@media (prefers-color-scheme:dark){.plot text{fill:#b9bdca}}</style>"
)


@dataclass(frozen=True)
class Scale:
    """From figures to places along the axis, decade by decade."""

    low: int
    high: int

    @classmethod
    def over(cls, rows: Sequence[Row]) -> Scale:
        """Whole decades that hold all errors with their bars."""
        ends = [end for row in rows for end in bar(row)]
        low, high = floor(log10(min(ends))), ceil(log10(max(ends)))
        return cls(low, max(high, low + 1))

    def __call__(self, figure: float) -> float:
        share = (log10(figure) - self.low) / (self.high - self.low)
        return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    @property
    def decades(self) -> range:
        """The powers of ten that get a line: at most nine."""
        return range(self.low, self.high + 1, -(-(self.high - self.low) // 8))


def bar(row: Row) -> tuple[float, float]:
    """Two standard errors to both sides, never down to nothing."""
    error = max(row.error, LEAST)
    return max(row.error - 2 * row.standard_error, error / 10), max(row.error + 2 * row.standard_error, error)


def dots(rows: Sequence[Row], *, title: str, unit: str) -> str:
    """The rows of one question as a drawing."""
    colours = colour_of(rows)
    bands = [(label, list(group)) for label, group in groupby(rows, key=lambda row: row.label)]
    scale, top = Scale.over(rows), TOP + LEGEND_LINE * -(-len(colours) // LEGEND_COLUMNS)
    height = top + sum(band_height(group) for _, group in bands) + 40
    body, y = [*legend(colours), *grid(scale, top, height - 34, unit, height)], float(top)
    for number, (label, group) in enumerate(bands):
        body += band(label, group, y, number, scale, colours)
        y += band_height(group)
    return (
        f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">{STYLE}\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def band_height(group: Sequence[Row]) -> int:
    return STEP * len(group) + GAP


def colour_of(rows: Sequence[Row]) -> dict[str, str]:
    """A colour for each method: ours, papers and peers each from their own list."""
    lists = {"ours": OURS, "paper": PAPER, "peer": PEER}
    found: dict[str, str] = {}
    used = dict.fromkeys(lists, 0)
    for row in sorted(rows, key=lambda row: list(lists).index(row.kind)):
        if row.method not in found:
            palette = lists[row.kind]
            found[row.method] = palette[used[row.kind] % len(palette)]
            used[row.kind] += 1
    return found


def legend(colours: dict[str, str]) -> list[str]:
    lines = []
    for place, (method, colour) in enumerate(colours.items()):
        x = 20 + place % LEGEND_COLUMNS * (WIDTH - 40) / LEGEND_COLUMNS
        y = 18 + place // LEGEND_COLUMNS * LEGEND_LINE
        lines.append(f'<circle cx="{x:.0f}" cy="{y - 4}" r="5" fill="{colour}"/>')
        lines.append(f'<text x="{x + 11:.0f}" y="{y}">{escape(method)}</text>')
    return lines


def grid(scale: Scale, top: float, bottom: float, unit: str, height: float) -> list[str]:
    """A line for each decade, and what the axis measures."""
    lines = []
    for decade in scale.decades:
        x = scale(10.0**decade)
        lines.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        label = f"{10**decade:,}" if 0 <= decade < 6 else f"10^{decade}"
        lines.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{label}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*lines, f'<text x="{middle:.0f}" y="{height - 4}" text-anchor="middle">{escape(unit)}</text>']


def band(
    label: str, group: Sequence[Row], y: float, number: int, scale: Scale, colours: dict[str, str]
) -> list[str]:
    """One setting: every method on a line of its own, ours larger."""
    height = band_height(group)
    lines = [f'<text x="{LEFT - 12}" y="{y + height / 2 + 4:.1f}" text-anchor="end">{escape(label)}</text>']
    if number % 2 == 0:
        lines.insert(0, f'<rect class="band" x="0" y="{y}" width="{WIDTH}" height="{height}"/>')
    for place, row in enumerate(group):
        lines += dot(row, y + GAP / 2 + STEP * (place + 0.5), scale, colours[row.method])
    return lines


def dot(row: Row, y: float, scale: Scale, colour: str) -> list[str]:
    low, high = map(scale, bar(row))
    told = f"{row.method}: {row.error:.4g} ± {row.standard_error:.2g}"
    x, radius = scale(max(row.error, LEAST)), 5.5 if row.kind == "ours" else 3.5
    place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius}"'
    return [
        f'<path d="M{low:.1f} {y:.1f}H{high:.1f}" stroke="{colour}" stroke-width="2"/>',
        f'<circle {place} fill="{colour}"><title>{escape(told)}</title></circle>',
    ]
