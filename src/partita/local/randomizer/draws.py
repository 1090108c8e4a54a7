"""What a randomizer may draw, for one person or for a column of them.

A randomizer is written once, in arithmetic that Python ints and NumPy arrays share: `KernelDraws`
gives it ints from the kernel, `partita.local.frequency.columns.Columns` whole arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, final

from partita.local.randomizer.thresholds import WHOLE
from partita.trusted.noise import kernel

Numbers: TypeAlias = Any
"""An int, or an array of them with one entry for each person."""


class Draws(Protocol):
    """Independent draws, for each person anew."""

    def chance(self, threshold: Numbers) -> Numbers:
        """True with probability exactly threshold / 2^64."""

    def below(self, count: int) -> Numbers:
        """Uniform among 0, ..., count-1, exactly."""

    def row(self, threshold: int, width: int) -> Numbers:
        """`width` bits, each of them one with probability exactly threshold / 2^64."""

    def choose(self, condition: Numbers, yes: Numbers, no: Numbers) -> Numbers:
        """`yes` where the condition holds, else `no`; both were drawn either way."""

    def with_bit(self, row: Numbers, place: Numbers, bit: Numbers) -> Numbers:
        """The row with this bit at this place."""

    def ramp(self, start: int, step: int, x: Numbers) -> Numbers:
        """The threshold start + step x, which is below 2^64."""

    def each(self, part: Numbers, samplers: Sequence[Callable[[Any, Any], Any]], x: Numbers) -> Numbers:
        """For each person what the sampler of their part makes of x, with draws of their own."""


@final
class KernelDraws:
    """One person's draws: Python ints, each from `os.urandom` when it is needed.

    >>> KernelDraws().choose(True, 1, 2)
    1
    """

    def chance(self, threshold: int) -> bool:
        """True with probability exactly threshold / 2^64."""
        return kernel.below(WHOLE) < threshold

    def below(self, count: int) -> int:
        """Uniform among 0, ..., count-1, by rejection."""
        return kernel.below(count)

    def row(self, threshold: int, width: int) -> int:
        """An int of `width` bits, each one with probability exactly threshold / 2^64, in linear time."""
        words = array("Q", kernel.entropy(8 * width))
        return int("".join("1" if word < threshold else "0" for word in reversed(words)), 2)

    def choose(self, condition: bool, yes: int, no: int) -> int:
        """`yes` if the condition holds, else `no`."""
        return yes if condition else no

    def with_bit(self, row: int, place: int, bit: int) -> int:
        """The row with this bit at this place."""
        return row & ~(1 << place) | bit << place

    def ramp(self, start: int, step: int, x: int) -> int:
        """The threshold start + step x."""
        return start + step * x

    def each(self, part: int, samplers: Sequence[Callable[[Any, Any], Any]], x: int) -> int:
        """What the sampler of this part makes of x."""
        made: int = samplers[part](x, self)
        return made
