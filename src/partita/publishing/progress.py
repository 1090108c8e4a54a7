"""What a long piece of work is doing and for how long: for the eyes of whoever started it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final, final

__all__ = ["phase"]

_BEAT: Final = 5.0
"""Seconds between two signs of life."""


@contextmanager
def phase(name: str, *, patience: float = 0.0) -> Iterator[None]:
    """Say on a terminal which phase has begun, that it still lasts, and how long it took once it is done.

    What takes less than `patience` seconds is not worth a word. Nothing but public names and elapsed
    time is shown, and nothing at all where standard error is not a terminal: no log ever holds how long
    the data took. A terminal that goes away disturbs nothing.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    line = _Line(name, patience)
    try:
        yield
    except BaseException:
        line.end("stopped")
        raise
    line.end(f"{time.monotonic() - line.start:.1f} s")


@final
class _Line:
    """A line on the terminal, begun after some patience and kept alive by dots."""

    def __init__(self, name: str, patience: float) -> None:
        self.start = time.monotonic()
        self._begun, self._over = False, Event()
        self._name, self._patience = name, patience
        if not patience:
            self._begin()
        self._thread = Thread(target=self._live, daemon=True)
        self._thread.start()

    def end(self, words: str) -> None:
        """The last words of the line, if it was begun."""
        self._over.set()
        self._thread.join()
        if self._begun:
            _write(f" {words}\n")

    def _begin(self) -> None:
        self._begun = True
        _write(f"partita: {self._name} ...")

    def _live(self) -> None:
        if not self._begun and not self._over.wait(self._patience):
            self._begin()
        while not self._over.wait(_BEAT):
            _write(".")


def _write(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
