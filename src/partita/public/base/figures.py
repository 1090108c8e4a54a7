"""Numbers and tables for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def figure(number: float) -> str:
    """A count or its error to about three figures and at most a tenth, with an exponent only from 10^15 on.

    >>> figure(54.598), figure(1234567.8), figure(3.0), figure(0.0044), figure(-0.0)
    ('54.6', '1,234,568', '3', '0', '0')
    """
    return f"{number:,.0f}" if 100 <= abs(number) < 1e15 else f"{round(number, 1) + 0.0:.3g}"


def shortened(text: str, width: int) -> str:
    """The text itself, or as much of it as fits, with dots behind it.

    >>> shortened("northernmost", 8)
    'north...'
    """
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."


def table(rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Aligned columns, the first `left` of them to the left and the others to the right.

    >>> print(table([("age", "12"), ("salary", "3")]))
    age     12
    salary   3
    """
    listed = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return "\n".join(_line(row, widths, left) for row in listed)


def _line(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    cells = [
        text.ljust(width) if place < left else text.rjust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
