"""Numbers for people to read."""

from __future__ import annotations

__all__ = ["figure", "shortened"]


def figure(number: float) -> str:
    """A number to about three figures, without an exponent where that can be read.

    >>> figure(0.1 + 0.2), figure(54.598), figure(1234567.8)
    ('0.3', '54.6', '1,234,568')
    """
    return f"{number:,.0f}" if 100 <= abs(number) < 1e15 else f"{number:.3g}"


def shortened(text: str, width: int) -> str:
    """The text itself, or as much of it as fits, with dots behind it.

    >>> shortened("northernmost", 8)
    'north...'
    """
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."
