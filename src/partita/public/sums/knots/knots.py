"""Caps on a grid of four an octave, and the knots below a cap: zero, and one for every factor of four."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

DEPTH: Final = 12
"""Knots reach down to 4^-12 of the cap: the noise of the lowest one is as much smaller."""

_MANTISSAS: Final = (4, 5, 6, 7)


@final
@dataclass(frozen=True)
class Knots:
    """The offsets 0, ..., cap/16, cap/4, cap, with at most 13 of them above zero, as far as all are integers.

    The cap is `odd` 2^`exponent`, with an odd number of at most 7. Multiplying it by four multiplies
    every knot by four, once there are 13. A `fine` list has cap/2, too.

    >>> Knots(32).offsets, Knots(5).offsets, Knots(28).offsets
    ((0, 2, 8, 32), (0, 5), (0, 7, 28))
    """

    cap: int
    fine: bool = False

    @property
    def exponent(self) -> int:
        """How often two divides the cap."""
        return (self.cap & -self.cap).bit_length() - 1

    @property
    def odd(self) -> int:
        """What is left of the cap then."""
        return self.cap >> self.exponent

    @property
    def shifts(self) -> tuple[int, ...]:
        """How often two divides each knot above zero, in ascending order."""
        top = self.exponent
        found = range(top, max(top - 2 * DEPTH, 0) - 1, -2)[::-1]
        return (*found[:-1], top - 1, top) if self.fine and len(found) > 1 else tuple(found)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The knots, in ascending order; the last is the cap."""
        return (0, *(self.odd << shift for shift in self.shifts))

    def __len__(self) -> int:
        return len(self.shifts) + 1


def caps(length: int) -> tuple[int, ...]:
    """The caps 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... up to the first that is at least `length`.

    >>> caps(9), caps(0)
    ((1, 2, 3, 4, 5, 6, 7, 8, 10), ())
    """
    found = [cap for cap in (1, 2, 3) if cap - 1 < length]
    while (found[-1] if found else 0) < length:
        octave, place = divmod(len(found) - 3, 4)
        found.append(_MANTISSAS[place] << octave)
    return tuple(found)
