"""HTML for notebooks: small pieces without any script, in which all text is escaped.

Colours are those of the page, made fainter, so that they can be read in light and in dark. Callers pass
public values only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from statistics import NormalDist
from types import ModuleType
from typing import Final, TypeAlias, final

_BLUE: Final = "76, 120, 168"
_FAINT: Final = "rgba(128, 128, 128, 0.25)"
_BOX: Final = f"display: inline-block; border: 1px solid {_FAINT}; border-radius: 6px; padding: 8px 14px"
_TABLE: Final = "border-collapse: collapse; border: none; margin: 4px 0; font-size: 0.95em"
_CELL: Final = "padding: 2px 14px 2px 0; text-align: {}; vertical-align: top; border: none"
_MOST_ROWS: Final = 24  # rows of a table that is shown whole
_EACH_END: Final = 5  # rows at each end of a long table
_WIDE, _HIGH, _INSET = 240.0, 28.0, 6.0
_DARKEST: Final = 0.75
_NOTHING: Final = 1e-9  # half-widths of intervals: less is printed as none
_SQUARE: Final = 20  # pixels from a cell of a matrix to the next; a name is written in one line of it


@final
class Html(str):
    """Text that is HTML already: made by this module, never by data or by a file."""

    __slots__ = ()


Entry: TypeAlias = object
Row: TypeAlias = Sequence[Entry]


def card(title: str, facts: Iterable[tuple[str, Entry]], *, below: Iterable[Html] = ()) -> str:
    """A frame with a title, a line for each fact that is not None, and anything below.

    >>> "a&lt;b" in card("Answer", [("a<b", 3)])
    True
    """
    rows = [(_faint(name), entry) for name, entry in facts if entry is not None]
    body = _table([], rows, left=2)
    return Html(f'<div style="{_BOX}"><b>{escape(title)}</b>{body}{"".join(below)}</div>')


def grid(heads: Sequence[str], rows: Iterable[Row], *, left: int = 1, note: str = "") -> Html:
    """A table, its first `left` columns to the left and the others to the right, and a note below it."""
    return Html(_table([_faint(head) for head in heads], rows, left=left) + _below(note))


def shortlist(length: int, row: Callable[[int], Row]) -> list[Row]:
    """All rows of a table of up to 24; of a longer one the first and the last five, with dots between.

    >>> [first for first, *_ in shortlist(30, lambda n: [n])]
    [0, 1, 2, 3, 4, '...', 25, 26, 27, 28, 29]
    """
    if length <= _MOST_ROWS:
        return list(map(row, range(length)))
    first, last = map(row, range(_EACH_END)), list(map(row, range(length - _EACH_END, length)))
    return [*first, ["..."] * len(last[0]), *last]


def number(value: float) -> str:
    """A number for people: whole from a thousand on, else four figures.

    >>> number(1234567.8), number(12.3456), number(float("inf")), number(float("nan"))
    ('1,234,568', '12.35', '∞', 'not determinable')
    """
    if math.isnan(value):
        return "not determinable"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value + 0.0:.4g}"


def round_to(value: float, half: float) -> str:
    """A number with the digits that an interval of this half-width supports, and whole up to a thousand.

    >>> round_to(25366.87, 279.53), round_to(0.21234, 0.0539), round_to(26_123_456, 2_812_333)
    ('25,367', '0.212', '26,120,000')
    >>> round_to(1234.567, 0), round_to(math.nan, 1)
    ('1,234.57', 'not determinable')
    """
    if not math.isfinite(value) or not math.isfinite(half):
        return number(value)
    if half < _NOTHING:
        return f"{value + 0.0:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.6g}"
    places = math.floor(math.log10(half)) - 1  # of the second digit of the half-width
    return _at_places(value, places - 1 if places > 0 else places)


def margin(half: float) -> str:
    """The half-width of a 95% interval: two digits.

    >>> margin(279.53), margin(8.349), margin(0.0539), margin(1e-30), margin(math.inf)
    ('280', '8.3', '0.054', '0', '∞')
    """
    if half < _NOTHING or not math.isfinite(half):
        return number(half if half > _NOTHING else 0.0)
    places = math.floor(math.log10(float(f"{half:.1e}"))) - 1
    return _at_places(half, places)


def plus_minus(value: float, half: float) -> str:
    """A number and the half-width of its 95% interval, which is what ± means everywhere.

    >>> plus_minus(25366.87, 279.53), plus_minus(0.21234, 0.0539)
    ('25,367 ± 280', '0.212 ± 0.054')
    """
    return number(value) if math.isnan(value) else f"{round_to(value, half)} ± {margin(half)}"


NORMAL_95: Final = NormalDist().inv_cdf(0.975)
"""So many standard errors are the half-width of a 95% interval of the normal model."""


def with_margin(value: float, error: float) -> tuple[str, str]:
    """A number of a table, and what stands behind its ±: the half-width of the normal 95% interval.

    >>> with_margin(25366.87, 142.6)
    ('25,367', '280')
    """
    shown, _, half = plus_minus(value, NORMAL_95 * error).partition(" ± ")
    return shown, half


def half_width(value: float, interval: tuple[float, float]) -> float | None:
    """The half-width of an interval around a value; None if its sides differ by more than a twentieth.

    >>> half_width(10.0, (6.0, 14.0)), half_width(2.0, (0.0, 6.0))
    (4.0, None)
    """
    low, high = value - interval[0], interval[1] - value
    half = max(low, high)
    apart = half - min(low, high)
    return half if math.isfinite(half) and (apart <= half / 20 or half < _NOTHING) else None


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """A number with its 95% interval: as ± its half-width, or with both ends where the sides differ.

    >>> with_interval(25366.87, (25087.3, 25646.4)), with_interval(5.2, (0.0, 24.81))
    ('25,367 ± 280', '5 (0 .. 25)')
    """
    half = half_width(value, interval)
    if half is not None:
        return plus_minus(value, half)
    return number(value) if math.isnan(value) else f"{round_within(value, interval)} ({ends(interval)})"


def show_bounded(value: object, interval: tuple[object, object]) -> tuple[str, str, str]:
    """A number and both ends of its interval, with the digits that it supports; other values as they are.

    >>> show_bounded(154.692, (75.3327, 474.55)), show_bounded(7, (5, 9))
    (('155', '75', '475'), ('7', '5', '9'))
    """
    low, high = interval
    if isinstance(value, float) and isinstance(low, float) and isinstance(high, float):
        return (
            round_within(value, (low, high)),
            round_within(low, (low, high)),
            round_within(high, (low, high)),
        )
    return str(value), str(low), str(high)


def round_within(value: float, interval: tuple[float, float], error: float = math.inf) -> str:
    """A number with the digits that its interval supports, or its standard error where that is smaller."""
    return round_to(value, min((interval[1] - interval[0]) / 2, NORMAL_95 * error))


def ends(interval: tuple[float, float], between: str = " .. ", error: float = math.inf) -> str:
    """Both ends of an interval, with the digits that it supports, or a standard error.

    >>> ends((0.21234, 0.25439)), ends((0.0, math.inf)), ends((253_656, 16_490_125), error=200.0)
    ('0.212 .. 0.254', '0 .. ∞', '253,656 .. 16,490,125')
    """
    return between.join(round_within(end, interval, error) for end in interval)


def _at_places(value: float, places: int) -> str:
    """A number rounded to a power of ten.

    >>> _at_places(1234.567, -1), _at_places(1284.567, 2)
    ('1,234.6', '1,300')
    """
    if abs(value) >= 1e15 or places < -12:
        return f"{value:.3g}"
    return f"{round(value, -places) + 0.0:,.{max(0, -places)}f}"


def span(ends: tuple[object, object]) -> str:
    """From one value to another."""
    return " to ".join(number(end) if isinstance(end, float) else str(end) for end in ends)


def bars(values: Sequence[float]) -> Html:
    """Bars side by side, the highest as high as the picture; what is below zero is drawn as none."""
    most = max(*values, 0.0) or 1.0
    width = _WIDE / len(values)
    drawn = "".join(
        _bar(place * width, _HIGH * max(0.0, value) / most, width) for place, value in enumerate(values)
    )
    return _picture(drawn, _HIGH)


def whisker(value: float, likely: tuple[float, float], certain: tuple[float, float]) -> Html:
    """A dot at the value, a thick line over the likely bounds, a thin one over the guaranteed ones.

    Where some of them are not finite there is nothing to draw.
    """
    ends = (*certain, *likely, value)
    if not all(map(math.isfinite, ends)):
        return Html("")
    low, wide = min(ends), (max(ends) - min(ends)) or 1.0

    def across(end: float) -> float:
        return _INSET + (_WIDE - 2 * _INSET) * (end - low) / wide

    thin, thick = (_line(across(a), across(b), w) for (a, b), w in ((certain, 1.5), (likely, 5)))
    dot = f'<circle cx="{across(value):.1f}" cy="9" r="4.5" fill="currentColor"/>'
    return _picture(thin + thick + dot, 18.0)


def field(text: str, share: float) -> Html:
    """A text on a ground that is the darker the closer the share comes to 1."""
    dark = _DARKEST * min(1.0, max(0.0, share))
    ground = f"background: rgba({_BLUE}, {dark:.2f}); padding: 1px 6px; display: block"
    return Html(f'<span style="{ground}">{escape(text)}</span>')


def triangle(
    names: Sequence[str],
    shade: Callable[[int, int], float],
    marked: Callable[[int, int], bool],
    words: Callable[[int, int], str],
    *,
    label: str,
    note: str = "",
) -> Html:
    """The lower half of a matrix with names along its diagonal, and a note below it.

    A cell of a row and a column before it is the darker the closer its shade comes to 1, has a dot if it is
    marked, and says its words where the pointer rests on it.
    """
    cells = "".join(
        _square(row, column, shade(row, column), marked(row, column), words(row, column))
        for row in range(len(names))
        for column in range(row)
    )
    texts = "".join(
        f'<text x="{_SQUARE * row + 4}" y="{_SQUARE * row + 14}" font-size="12" fill="currentColor">'
        f"{escape(name)}</text>"
        for row, name in enumerate(names)
    )
    wide = _SQUARE * len(names) + 8 * max(map(len, names), default=0)
    high = _SQUARE * len(names)
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    style = "display: block; margin: 6px 0; max-width: 100%"
    drawn = f'<svg {size} role="img" aria-label="{escape(label)}" style="{style}">{cells}{texts}</svg>'
    return Html(drawn + _below(note))


def kernel() -> ModuleType | None:
    """IPython, if this code runs in the kernel of a notebook; it is found if it is there, never imported."""
    there = sys.modules.get("IPython")
    shell = None if there is None else there.get_ipython()
    return there if getattr(shell, "kernel", None) is not None else None


def _table(heads: Sequence[Entry], rows: Iterable[Row], *, left: int) -> str:
    top = f"<thead>{_row(heads, left, 'th')}</thead>" if heads else ""
    body = "".join(_row(row, left, "td") for row in rows)
    return f'<table style="{_TABLE}">{top}<tbody>{body}</tbody></table>'


def _row(entries: Row, left: int, tag: str) -> str:
    sides = ("left" if place < left else "right" for place in range(len(entries)))
    texts = (entry if isinstance(entry, Html) else escape(str(entry)) for entry in entries)
    cells = (
        f'<{tag} style="{_CELL.format(side)}">{text}</{tag}>' for side, text in zip(sides, texts, strict=True)
    )
    return f'<tr style="background: none">{"".join(cells)}</tr>'


def _below(note: str) -> str:
    return f'<div style="opacity: 0.7; max-width: 60em">{escape(note)}</div>' if note else ""


def _faint(text: str) -> Html:
    return Html(f'<span style="opacity: 0.7; font-weight: normal; white-space: nowrap">{escape(text)}</span>')


def _picture(drawn: str, high: float) -> Html:
    size = f'width="{_WIDE:.0f}" height="{high:.0f}" viewBox="0 0 {_WIDE:.0f} {high:.0f}"'
    return Html(f'<svg {size} role="img" aria-hidden="true" style="display: block">{drawn}</svg>')


def _bar(left: float, high: float, width: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="{_HIGH - high:.1f}" width="{0.9 * width:.1f}" height="{high:.1f}" '
        f'fill="rgb({_BLUE})"/>'
    )


def _square(row: int, column: int, share: float, marked: bool, words: str) -> str:
    x, y, size = _SQUARE * column, _SQUARE * row, _SQUARE - 2
    dot = f'<circle cx="{x + size / 2}" cy="{y + size / 2}" r="2.5" fill="currentColor"/>' if marked else ""
    ground = f'fill="rgba({_BLUE}, {min(1.0, max(0.0, share)):.2f})" stroke="rgb({_BLUE})" stroke-width="0.5"'
    square = f'<rect x="{x}" y="{y}" width="{size}" height="{size}" {ground}/>'
    return f"<g><title>{escape(words)}</title>{square}{dot}</g>"


def _line(left: float, right: float, width: float) -> str:
    ends = f'x1="{left:.1f}" x2="{right:.1f}" y1="9" y2="9"'
    return f'<line {ends} stroke="rgb({_BLUE})" stroke-width="{width}"/>'
