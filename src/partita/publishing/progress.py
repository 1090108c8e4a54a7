"""What a long piece of work is doing and for how long: for the eyes of whoever started it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["phase"]


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Say on a terminal which phase has begun, and how long it took once it is done.

    Nothing but public names and elapsed time is shown, and nothing at all where standard error is
    not a terminal: no log ever holds how long the data took. A terminal that goes away disturbs nothing.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    start = time.monotonic()
    _write(f"partita: {name} ...")
    try:
        yield
    except BaseException:
        _write(" stopped\n")
        raise
    _write(f" {time.monotonic() - start:.1f} s\n")


def _write(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
