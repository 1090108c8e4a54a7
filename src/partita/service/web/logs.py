"""Lines of JSON on standard error: what was asked for in general, never what in particular.

A line names the template of a route, not a path: no release, no question, no token, no body. Addresses
are there only if the steward asks for them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TextIO, final

__all__ = ["Log", "rounded"]

_SECOND: Final = 10**9


@final
@dataclass(frozen=True)
class Log:
    """One process's lines. What nobody reads any more disturbs nothing."""

    process: str
    now: Callable[[], int]
    stream: TextIO | None = None

    def info(self, event: str, **entries: object) -> None:
        """Something ordinary."""
        self._write("info", event, entries)

    def error(self, event: str, **entries: object) -> None:
        """Something that a steward should look at."""
        self._write("error", event, entries)

    def _write(self, level: str, event: str, entries: dict[str, object]) -> None:
        line = {
            "time": _written(self.now() // _SECOND),
            "level": level,
            "process": self.process,
            "event": event,
            **entries,
        }
        stream = self.stream or sys.stderr
        with suppress(OSError, ValueError, AttributeError):
            stream.write(f"{json.dumps(line)}\n")
            stream.flush()


@lru_cache(maxsize=1)
def _written(seconds: int) -> str:
    """A moment in UTC, to the second; the same for all lines of that second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rounded(nanoseconds: int) -> int:
    """A duration in milliseconds, rounded up to 1, 2 or 5 times a power of ten.

    >>> [rounded(ms * 10**6) for ms in (0, 1, 3, 12, 700)]
    [1, 1, 5, 20, 1000]
    """
    milliseconds, step = max(1, -(-nanoseconds // 10**6)), 1
    while step * 10 < milliseconds:
        step *= 10
    return next(step * factor for factor in (1, 2, 5, 10) if step * factor >= milliseconds)
