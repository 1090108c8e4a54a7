"""Guarantees, in words and as records."""

from __future__ import annotations

from partita.cli.output import Record
from partita.guarantee import Guarantee

__all__ = ["guarantee_record", "guarantee_said"]


def guarantee_said(guarantee: Guarantee | None) -> str:
    """The promise in words, or that there is none."""
    return "none: made with injected noise, it protects nobody" if guarantee is None else str(guarantee)


def guarantee_record(guarantee: Guarantee | None) -> Record | None:
    """The promise as an object; null if there is none."""
    return None if guarantee is None else dict(vars(guarantee))
