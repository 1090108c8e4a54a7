"""What a long piece of work is doing, and on a terminal for how long: for the eyes of whoever started it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from threading import Event, Thread
from types import ModuleType
from typing import Final, final

from partita.html import kernel

_BEAT: Final = 5.0
"""Seconds between two signs of life."""


@contextmanager
def phase(name: str, *, patience: float = 0.0) -> Iterator[None]:
    """Say on a terminal which phase has begun, that it still lasts, and how long it took once it is done.

    What takes less than `patience` seconds is not worth a word. Nothing but public names and elapsed
    time is shown, and nothing at all where standard error is neither a terminal nor a notebook: no log ever
    holds how long the data took. A notebook is a file that people pass on, so there is no time in it either:
    the phase is shown in its place, and then that it is done. A terminal that goes away disturbs nothing.
    """
    line = _line(name, patience)
    if line is None:
        yield
        return
    try:
        yield
    except BaseException:
        line.end(done=False)
        raise
    line.end(done=True)


def _line(name: str, patience: float) -> _Line | _Place | None:
    """Where progress is shown, if anywhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        return _Line(name, patience)
    notebook = kernel()
    return None if notebook is None else _Place(name, notebook)


@final
class _Place:
    """A place in a notebook that says what is done, with a bar that moves by itself and tells no time.

    It is there from the first moment whatever `patience` says: whether it is there tells no time either.
    """

    def __init__(self, name: str, notebook: ModuleType) -> None:
        self._name = name
        bundle = self._said('<progress style="width: 8em"></progress>', "...")
        self._shown = notebook.display.display(bundle, raw=True, display_id=True)

    def end(self, *, done: bool) -> None:
        """Say whether it came to its end, in the same place."""
        words = "done" if done else "stopped"
        self._shown.update(self._said(words, words), raw=True)

    def _said(self, html: str, text: str) -> dict[str, str]:
        name = f"partita: {self._name}"
        return {"text/html": f"<div>{escape(name)} {html}</div>", "text/plain": f"{name} {text}"}


@final
class _Line:
    """A line on the terminal, begun after some patience and kept alive by dots."""

    def __init__(self, name: str, patience: float) -> None:
        self._start = time.monotonic()
        self._begun, self._over = False, Event()
        self._name, self._patience = name, patience
        if not patience:
            self._begin()
        self._thread = Thread(target=self._live, daemon=True)
        self._thread.start()

    def end(self, *, done: bool) -> None:
        """The last words of the line, if it was begun: how long it took."""
        self._over.set()
        self._thread.join()
        if self._begun:
            _write(f" {time.monotonic() - self._start:.1f} s\n" if done else " stopped\n")

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
