"""Errors of other libraries carry rows of data, so none is ever shown, logged or chained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from partita.errors.errors import PartitaError, SourceError

T = TypeVar("T")

_INTERRUPTED: Final = ("Query interrupted", "KeyboardInterrupt")
"""How the texts of DuckDB and Arrow end when a Ctrl-C came while they were at work."""


def attempt(work: Callable[[], T], failure: SourceError) -> T:
    """The result of `work`; if it fails, `failure`, which knows nothing of the cause.

    Errors are raised outside of the handler, so that not even their context holds the cause. A Ctrl-C
    that a library has made an error of its own is a Ctrl-C again.
    """
    try:
        return work()
    except PartitaError:
        raise
    except Exception as error:
        interrupted = _is_interrupt(error)
    raise KeyboardInterrupt if interrupted else failure


def _is_interrupt(error: Exception) -> bool:
    """Whether the text of an error ends as an interrupted one does; no code of the error is run."""
    text = error.args[-1] if error.args else None
    return isinstance(text, str) and text.rstrip().endswith(_INTERRUPTED)


def quietly(items: Iterator[T], failure: SourceError) -> Iterator[T]:
    """The same items; if the next one cannot be had, `failure`."""
    while (item := attempt(lambda: next(items, None), failure)) is not None:
        yield item
