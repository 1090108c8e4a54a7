"""The law of a cut, enumerated, and the checker that right code passes and planted bugs do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from partita import Cut, Partition
from partita.testing import Loss, OutputLaw, RationalNoise, law, privacy_loss

Counts = tuple[int, ...]
LawOf = Callable[[Counts], OutputLaw]


class Composition:
    """The law of a whole cut from the laws of single shipped segments.

    A seal leaves nothing behind but its position, so the law of what follows is the law of a cut
    of the remaining cells. Outcomes are the lengths of the segments.
    """

    def __init__(self, partition: Partition, base: Fraction, unit: Fraction) -> None:
        self._partition = partition
        self._base = base
        self._unit = unit
        self._known: dict[Counts, OutputLaw] = {(): OutputLaw({(): Fraction(1)})}

    def __call__(self, counts: Counts) -> OutputLaw:
        if counts not in self._known:
            self._known[counts] = self._composed(counts)
        return self._known[counts]

    def _composed(self, counts: Counts) -> OutputLaw:
        found = OutputLaw()
        for length, first in self._first_length(counts).items():
            assert isinstance(length, int)
            for lengths, rest in self(counts[length:]).items():
                assert isinstance(lengths, tuple)
                found[(length, *lengths)] = first * rest
        return found

    def _first_length(self, counts: Counts) -> OutputLaw:
        """The law of the length of the segment that opens the last len(counts) cells."""
        size = self._partition.size
        start = size - len(counts)
        items = [(start + cell, count) for cell, count in enumerate(counts) if count]
        return law(
            lambda noise: self._partition._segment(start, items, size - 1, noise) - start + 1,
            RationalNoise(self._base, unit=self._unit),
        )


def largest_loss(
    law_of: LawOf, pairs: Iterable[tuple[Counts, Counts]], *, base: Fraction, unit: Fraction = Fraction(1)
) -> Loss:
    """The largest privacy loss over all pairs of data sets."""
    return max(privacy_loss(law_of(one), law_of(other), base=base, unit=unit) for one, other in pairs)


@pytest.fixture
def composed() -> Callable[..., Composition]:
    """Makes the law of a cut, by composition, for a partition, a base and a unit."""
    return Composition


@pytest.fixture
def worst() -> Callable[..., Loss]:
    """The checker: the largest privacy loss over pairs of data sets."""
    return largest_loss


@pytest.fixture
def lengths() -> Callable[[Cut], Counts]:
    """The lengths of the segments of a cut."""

    def of(cut: Cut) -> Counts:
        return tuple(int(end) - int(start) + 1 for start, end in zip(cut.starts, cut.edges, strict=True))

    return of
