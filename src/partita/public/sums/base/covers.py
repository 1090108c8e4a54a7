"""Which values an answer is about, and what all others count as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from partita.public.axis.curve.curve import Floats


class End(NamedTuple):
    """How far values are covered on one side: up to `at` in full.

    Values beyond count as `at`. With `gone` that is only in part: less and less of a row the further out it
    lies, and nothing from `gone` on. `whole` if no value that was asked for lies beyond.
    """

    at: float
    gone: float | None = None
    whole: bool = False

    def share(self, past: Floats, degree: int) -> Floats:
        """Which part of a row counts whose value lies so far past the end."""
        if self.gone is None:
            return np.ones_like(past)
        if self.gone == self.at:
            return np.asarray(past <= 0.0, np.float64)
        return np.asarray(np.clip(1.0 - past / abs(self.gone - self.at), 0.0, 1.0) ** degree)


@final
@dataclass(frozen=True)
class Covers:
    """What every value counts as: `counted(v)` in a sum, and `share(v)` of a row in a mean or a variance.

    Values from `low` to `high` count in full. Where values beyond count in part, that falls with the distance
    to the power `degree`.

    >>> covers = Covers(End(0.0, whole=True), End(100.0, gone=400.0))
    >>> covers.text
    'values up to 100 in full, in part up to 400, none above'
    >>> covers.counted([50, 100, 250, 400]).tolist()
    [50.0, 100.0, 50.0, 0.0]
    """

    lower: End
    upper: End
    degree: int = 1

    @property
    def low(self) -> float:
        """From where on values count in full."""
        return self.lower.at

    @property
    def high(self) -> float:
        """Up to where values count in full."""
        return self.upper.at

    @property
    def everything(self) -> bool:
        """Whether every value that was asked for counts in full."""
        return self.lower.whole and self.upper.whole

    def share(self, values: ArrayLike) -> Floats:
        """Which part of a row with such a value counts."""
        given = np.asarray(values, np.float64)
        above, below = given - self.high, self.low - given
        return self.upper.share(above, self.degree) * self.lower.share(below, self.degree)

    def counted(self, values: ArrayLike) -> Floats:
        """What a row with such a value adds to the sum."""
        return np.clip(np.asarray(values, np.float64), self.low, self.high) * self.share(values)

    @property
    def text(self) -> str:
        """In words."""
        if self.everything:
            return "all values"
        parts = [self._full]
        parts += [] if self.lower.whole else [_beyond(self.lower, "down", "below")]
        parts += [] if self.upper.whole else [_beyond(self.upper, "up", "above")]
        return ", ".join(parts)

    def __str__(self) -> str:
        return self.text

    @property
    def _full(self) -> str:
        """The values that count in full."""
        low, high = _shown(self.low), _shown(self.high)
        if self.lower.whole:
            return f"values up to {high} in full"
        return f"values from {low} {'up' if self.upper.whole else f'to {high}'} in full"


def _beyond(end: End, way: str, side: str) -> str:
    """What becomes of values beyond an end."""
    if end.gone is None:
        return f"those {side} count as {_shown(end.at)}"
    part = f"in part {way} to {_shown(end.gone)}, " if end.gone != end.at else ""
    return f"{part}none {side}"


def _shown(number: float) -> str:
    return f"{number:,.12g}"
