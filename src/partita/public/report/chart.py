"""A histogram of a column in text, for a terminal."""

from __future__ import annotations

from typing import Final

from partita.public.base.figures import figure, shortened
from partita.public.results.bins import Bins, bins_of
from partita.public.views.slice import Line

_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_FULL: Final = "█"
_LONGEST_VALUE: Final = 20
_SHORTEST_BAR: Final = 10
_GAPS: Final = 4


def chart(line: Line, width: int = 80, bins: int = 12, *, ascii_only: bool = False) -> list[str]:
    """A line for each bin: its first and last value, a bar, the count and its standard error.

    Lines are at most `width` characters wide, unless that leaves less than ten for the bars.
    """
    table = bins_of(line, bins)
    labels, numbers = _labels(table), _numbers(table, "+-" if ascii_only else "±")
    room = max(_SHORTEST_BAR, width - len(labels[0]) - max(map(len, numbers)) - _GAPS)
    values = table.counts.values.tolist()
    most = max(*values, 0.0) or 1.0
    bars = [_bar(room * max(0.0, value) / most, ascii_only) for value in values]
    rows = zip(labels, bars, numbers, strict=True)
    return [f"{label}  {bar:<{room}}  {number}" for label, bar, number in rows]


def _labels(table: Bins) -> list[str]:
    lows = [shortened(str(low), _LONGEST_VALUE) for low in table.lows]
    highs = [shortened(str(high), _LONGEST_VALUE) for high in table.highs]
    ends = [low if low == high else f"{low} to {high}" for low, high in zip(lows, highs, strict=True)]
    longest = max(map(len, ends))
    return [end.rjust(longest) for end in ends]


def _numbers(table: Bins, plus_minus: str) -> list[str]:
    values = [figure(value) for value in table.counts.values.tolist()]
    longest = max(map(len, values))
    errors = table.counts.error.tolist()
    return [
        f"{value:>{longest}} {plus_minus} {figure(error)}"
        for value, error in zip(values, errors, strict=True)
    ]


def _bar(length: float, ascii_only: bool) -> str:
    """A bar of this many characters, in Unicode to an eighth of one."""
    if ascii_only:
        return "#" * round(length)
    whole, eighths = divmod(round(8 * length), 8)
    return _FULL * whole + _EIGHTHS[eighths]
