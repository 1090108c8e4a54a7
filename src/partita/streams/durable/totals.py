"""What the open period holds so far: one number, or one for each key."""

from __future__ import annotations

from typing import Final, final

import numpy as np

from partita.errors import InvalidState
from partita.streams.base import LARGEST
from partita.streams.durable.events import Counts
from partita.streams.durable.settings import Settings
from partita.streams.family import FAMILY_LARGEST

__all__ = ["Totals"]

_WORDS: Final = np.dtype(">i8")


@final
class Totals:
    """Numbers that a counter takes, however much is added.

    Each is the nearest that there is, after each event: so one event moves it no more than before.
    """

    def __init__(self, settings: Settings, stored: object = 0) -> None:
        self._family = bool(settings.keys)
        self._most = (FAMILY_LARGEST if self._family else LARGEST) - 1
        self._columns = settings.columns
        self.numbers = self._parsed(stored)

    def add(self, counts: Counts) -> None:
        """Count at some places."""
        for place, count in counts:
            self.numbers[place] = max(-self._most, min(self.numbers[place] + count, self._most))

    def clear(self) -> None:
        """Begin the next period."""
        self.numbers = [0] * self._columns

    @property
    def stored(self) -> int | bytes:
        """A number as it is; those of a family as bytes, always as many."""
        return np.array(self.numbers, dtype=_WORDS).tobytes() if self._family else self.numbers[0]

    def _parsed(self, stored: object) -> list[int]:
        if stored == 0 and type(stored) is int:
            return [0] * self._columns
        if self._family and isinstance(stored, bytes) and len(stored) == _WORDS.itemsize * self._columns:
            numbers: list[int] = np.frombuffer(stored, dtype=_WORDS).tolist()
            return numbers
        if not self._family and type(stored) is int:
            return [stored]
        raise InvalidState("counter", "must agree with its outputs", fix="restore the latest copy")
