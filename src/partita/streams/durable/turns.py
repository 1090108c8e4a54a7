"""Who works on a counter: one at a time, and the clock before all others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

__all__ = ["Turns"]


@final
class Turns:
    """A lock with two doors. Whoever comes through the urgent one waits for one other at most.

    Nobody may be patient within an urgent turn: it would wait for itself.
    """

    def __init__(self) -> None:
        self._clocks = threading.RLock()
        self._free = threading.Condition()
        self._due = False

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """A turn for the clock: the next one, however many are waiting."""
        with self._clocks:
            self._due = True
            try:
                with self._free:
                    yield
            finally:
                with self._free:
                    self._due = False
                    self._free.notify_all()

    @contextmanager
    def patient(self) -> Iterator[None]:
        """A turn for anybody else, when no clock waits for one."""
        with self._free:
            self._free.wait_for(lambda: not self._due)
            yield
