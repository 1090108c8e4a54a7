"""Lines as events: counted as they come, by a thread that prints nothing and closes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from partita.trusted.durable.open import AnyStream

_PIECE: Final = 1 << 16
_LONGEST: Final = 1 << 12


@final
class Lines:
    r"""Whole lines out of pieces of input; of a line the first 4,096 bytes are kept.

    >>> lines = Lines()
    >>> lines.more(b"one\ntwo\nth"), lines.more(b"ree\n"), lines.rest()
    ([b'one', b'two'], [b'three'], [])
    """

    def __init__(self) -> None:
        self._open = b""

    def more(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        *whole, last = (self._open + piece).split(b"\n")
        self._open = last[:_LONGEST]
        return [line[:_LONGEST] for line in whole]

    def rest(self) -> list[bytes]:
        """A last line that nobody ended."""
        return [self._open] if self._open else []


@final
class Feeder:
    """Counts the lines of a stream in the open period, whichever it is, as soon as they come.

    Lines are numbered from 1 under a name, and no number is counted twice under it. Each session has a fresh
    one, so all its lines are new. A name is given only to input that begins again where it began before. For
    a family each line begins with its key; one that begins with anything else counts nowhere.
    `failed` is set if lines cannot be counted, and not because the counter has come to its end.
    """

    def __init__(self, counter: AnyStream, replay: str | None) -> None:
        from partita.trusted.noise.kernel import token

        self._counter = counter
        self._name = token() if replay is None else replay
        self._keys = {key.encode(): {key: 1} for key in counter.settings.keys}
        self._number = 0
        self._ended = False
        self.failed = Event()
        self._error: Exception | None = None

    def has_ended(self) -> bool:
        """Whether all lines are counted, and no more will come; raises what made that impossible."""
        if self._error is not None:
            raise self._error
        return self._ended

    def start(self, handle: int) -> None:
        """Begin to read from a file descriptor."""
        Thread(target=self._read, args=(handle,), name="partita-feeder", daemon=True).start()

    def _read(self, handle: int) -> None:
        from partita.errors.errors import HorizonReached

        lines = Lines()
        try:
            while piece := os.read(handle, _PIECE):
                self._count(lines.more(piece))
            self._count(lines.rest())
            self._ended = True
        except HorizonReached:
            return
        except Exception as error:
            self._error = error
            self.failed.set()

    def _count(self, lines: list[bytes]) -> None:
        self._counter.add_many(self._events(lines))

    def _events(self, lines: list[bytes]) -> Iterator[Any]:
        """What each line is known by: a person and an id, its number under a name, or nothing at all."""
        from partita.trusted.durable.events.events import Event as Counted

        settings = self._counter.settings
        for line in lines:
            self._number += 1
            count, rest = self._counted(line.strip())
            if settings.unit == "user":
                person, _, event = rest.partition(b" ")
                if count:
                    yield Counted(person, event.strip(), count)
            elif settings.pan_private:
                yield Counted(None, None)
            else:
                yield Counted(self._name, self._number, count)

    def _counted(self, line: bytes) -> tuple[Any, bytes]:
        """What a line counts, and what it says besides: one, or one under the key that it begins with."""
        if not self._keys:
            return 1, line
        key, _, rest = line.partition(b" ")
        return self._keys.get(key, {}), rest.strip()
