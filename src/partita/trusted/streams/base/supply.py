"""Noise of one scale, drawn some at a time and handed out one by one."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from partita.public.streams.terms import misfit
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.streams.base.integers import Row, integers, is_wide, row

_AT_ONCE: Final = 256


class Supply:
    """At most `total` noises of a scale. What is drawn and not yet used belongs to the state."""

    def __init__(self, scale: Fraction, total: int, noise: Noise) -> None:
        self._scale, self._noise = scale, noise
        self._size = min(_AT_ONCE, total)
        self._ready: list[int] = []

    def take(self) -> int:
        """A noise that nobody had before."""
        if not self._ready:
            drawn = self._noise.add(np.zeros(self._size, dtype=np.int64), self._scale)
            self._ready = drawn.tolist()[::-1]
        return self._ready.pop()

    def fields(self) -> dict[str, Row]:
        """What is ready, as rows of a state of fixed length."""
        blank = [0] * (self._size - len(self._ready))
        supply = integers(self._ready + blank, wide=is_wide(self._scale))
        return {"ready": [len(self._ready)], "supply": row(supply)}

    def restore(self, fields: dict[str, list[int]]) -> None:
        """Go on with what was ready before."""
        (ready,), supply = fields["ready"], fields["supply"]
        if not 0 <= ready <= len(supply) == self._size:
            raise misfit("fit its supply")
        self._ready = supply[:ready]
