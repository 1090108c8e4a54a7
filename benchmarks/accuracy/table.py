"""Totals as Markdown, one table for each row of the benchmark."""

from __future__ import annotations

from itertools import groupby

from benchmarks.accuracy.score import Json


def table(totals: list[Json]) -> str:
    """Totals that stand together and have the same columns share a table."""
    return "\n\n".join(aligned(list(group)) for _, group in groupby(totals, key=tuple))


def aligned(rows: list[Json]) -> str:
    """Rows with the same keys as an aligned Markdown table."""
    lines = [list(map(heading, rows[0])), *([text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)


def heading(key: str) -> str:
    return key.replace("_", " ")


def text(value: object) -> str:
    """A figure, a verdict, or several of them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {text(part)}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(text, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
