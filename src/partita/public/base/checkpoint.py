"""Long work that somebody else may stop.

Loops that can take long call `checkpoint` between chunks. It does nothing, unless the work was started under
a `Stop` that has been set: then the work ends there with `Stopped`. Only the service starts work that way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeVar, final

Made = TypeVar("Made")


class Stopped(Exception):
    """The work ended at a checkpoint, because nobody waits for it any more."""


@final
class Stop:
    """Tells one piece of work to end at its next checkpoint; may be set by any thread."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """End the work that was started under this."""
        self.is_set = True


_current: Final[ContextVar[Stop | None]] = ContextVar("stop", default=None)


def stoppable(stop: Stop, work: Callable[[], Made]) -> Made:
    """What the work makes; it ends at its next checkpoint once `stop` is set, also before it begins.

    >>> stop = Stop()
    >>> stop.set()
    >>> stoppable(stop, lambda: 7)
    Traceback (most recent call last):
    partita.public.base.checkpoint.Stopped
    """
    before = _current.set(stop)
    try:
        checkpoint()
        return work()
    finally:
        _current.reset(before)


def checkpoint() -> None:
    """End the work here if it was stopped."""
    stop = _current.get()
    if stop is not None and stop.is_set:
        raise Stopped


def chunk_size(all_of_it: int, chunk: int) -> int:
    """How much to do until the next checkpoint: a chunk if the work may be stopped, else all of it.

    Chunks cost time of their own, which only work that somebody may stop should pay for.
    """
    return max(1, all_of_it) if _current.get() is None else chunk
