"""Errors of other libraries carry rows of data, so none is ever shown, logged or chained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from partita.errors import PartitaError, SourceError

__all__ = ["attempt", "quietly"]

T = TypeVar("T")


def attempt(work: Callable[[], T], failure: SourceError) -> T:
    """The result of `work`; if it fails, `failure`, which knows nothing of the cause.

    `failure` is raised outside of the handler, so that not even its context holds the cause.
    """
    try:
        return work()
    except PartitaError:
        raise
    except Exception:
        pass
    raise failure


def quietly(items: Iterator[T], failure: SourceError) -> Iterator[T]:
    """The same items; if the next one cannot be had, `failure`."""
    while (item := attempt(lambda: next(items, None), failure)) is not None:
        yield item
