"""Tails of a column of a table: up to where values are told from noise, and what sums may miss beyond.

A sum is the integral of how many rows exceed each value, so that its error is the integral of the errors of
these counts. Octaves of values, each from a distance to zero to twice that, are walked from zero outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.arrays import Floats, UInts
from partita.lazy import cached_property
from partita.public.sums.base import ValueLine
from partita.public.tables.sides import ColumnReader

# Set on pareto, lognormal, exponential and mostly empty made-up columns of 200,001 and 10^9 cells at epsilon
# 1 and 0.1; tests/public/releases/test_table_tails.py has what their intervals hold.
_CLEAR_FIRST: Final = 3.5  # standard errors of the clearest octave, from which on anything is covered
_CLEAR: Final = 2.0  # standard errors from which on an octave is covered
_CLEAR_BEHIND, _CLEAR_EACH = 2.5, 1.25  # the same behind silent octaves, and for each of these and itself
_DOUBT: Final = 1.65  # standard errors by which the first octave beyond may hold more than it shows
_DOUBT_OF_LAST: Final = 2.0  # and the last one that is covered
_STEEPER, _SLACK = 1.3, 0.1  # of the rows of an octave over those of the one before, where the column tells
_MOST_THINNING: Final = 0.5  # where it does not: every octave adds as much to the sum as the one before
_FEWEST_ROWS: Final = 0.03  # hidden rows of an octave that still count
_MEAN_OF_OCTAVE: Final = 1.5  # times its nearest value: the mean of rows that are spread evenly
_STEPS: Final = 4  # thresholds in an octave
_TINY: Final = 1e-9
_FINEST: Final = 2.0 ** (1 / _STEPS)


class HiddenTail(NamedTuple):
    """What values beyond those covered may add to a sum, and in how many rows, if their number thins out."""

    rows: float = 0.0
    below: float = 0.0
    above: float = 0.0

    def scaled(self, share: float) -> HiddenTail:
        """The part of it in a share of the rows."""
        return HiddenTail(*(share * each for each in self))


@final
@dataclass(frozen=True, eq=False)
class ValueSide:
    """The values of a column on one side of its origin, the value nearest to zero, by their distance to it.

    `sign` is 1 above the origin and -1 below it, `origin` its position, and `reach` the largest distance in
    cells.
    """

    reader: ColumnReader
    step: float
    origin: int
    reach: int
    sign: int

    @cached_property
    def octaves(self) -> list[tuple[int, int]]:
        """Distances from 1, 2, 4, ... up to the cell before the next."""
        return [(2**j, min(2 ** (j + 1) - 1, self.reach)) for j in range(self.reach.bit_length())]

    def positions(self, near: int, far: int) -> tuple[int, int]:
        """The lowest and the highest position from one distance to another."""
        ends = self.origin + self.sign * near, self.origin + self.sign * far
        return min(ends), max(ends)

    @cached_property
    def counts(self) -> tuple[Floats, Floats]:
        """The rows in each octave, and the errors of these."""
        return self._count(self.octaves)

    @cached_property
    def top(self) -> int:
        """The last octave that is covered, by its number; -1 if none is.

        From the clearest one outwards, the next octave is covered if it is clear, and one behind silent ones
        if it is clearer the more they are: noise there does harm, and there are many chances for it.
        """
        rows, errors = self.counts
        clear = rows / np.maximum(errors, _TINY)
        top = int(np.argmax(clear)) if clear.size and clear.max() > _CLEAR_FIRST else -1
        for octave in range(top + 1, clear.size if top >= 0 else 0):
            jump = octave - top
            if clear[octave] > (_CLEAR if jump == 1 else _CLEAR_BEHIND + _CLEAR_EACH * jump):
                top = octave
        return top

    @property
    def covered(self) -> int:
        """The largest distance that is covered."""
        return self.octaves[self.top][1] if self.top >= 0 else 0

    @cached_property
    def thinning(self) -> float:
        """The part of its rows that each octave beyond the top leaves for the next, at most."""
        rows, _ = self.counts
        told = float(rows[self.top] / rows[self.top - 1]) if self._falls else np.inf
        return min(_MOST_THINNING, _STEEPER * told + _SLACK)

    @property
    def _falls(self) -> bool:
        """Whether the last octave that is covered has clearly fewer rows than the one before."""
        rows, errors = self.counts
        before = max(0, self.top - 1)
        return self.top > 0 and float(rows[before] - rows[self.top]) > float(errors[before])

    @cached_property
    def hidden(self) -> tuple[float, float]:
        """How many rows may lie beyond the top, and the sum of their distances, if their number thins out."""
        rows, errors = self.counts
        most = np.maximum(rows, 0.0) + _DOUBT * errors
        last = float(rows[self.top] + _DOUBT_OF_LAST * errors[self.top]) if self._falls else np.inf
        held = number = total = 0.0
        peak = self.top + 1 if self.top >= 0 or not most.size else int(most.argmax())
        for octave in range(self.top + 1, len(self.octaves)):
            own = min(float(most[octave]), self.thinning * last)
            held = own if octave <= peak else self.thinning * held
            if held < _FEWEST_ROWS:
                break
            near, far = self.octaves[octave]
            number += held
            total += held * min(_MEAN_OF_OCTAVE * near, far) * self.step
        return number, total

    def errors(self, far: int) -> tuple[Floats, list[tuple[int, int]]]:
        """For each octave up to a distance what its sum may miss, and the positions of the octave."""
        spans = [(near, min(last, far)) for near, last in self.octaves if near <= far]
        found = []
        for near, last in spans:
            at = np.unique(np.rint(near * _FINEST ** np.arange(_STEPS)).astype(np.int64))
            at = at[at <= last]
            _, errors = self._count([(int(each), far) for each in at])
            found.append(float(errors @ np.diff(np.append(at, last + 1))) * self.step)
        return np.array(found), [self.positions(*span) for span in spans]

    def _count(self, spans: Sequence[tuple[int, int]]) -> tuple[Floats, Floats]:
        if not spans:
            return np.zeros(0), np.zeros(0)
        ends = np.array([self.positions(*span) for span in spans], np.uint64)
        return self.reader.alone(ends[:, 0], ends[:, 1])


@final
@dataclass(frozen=True, eq=False)
class ColumnTails:
    """Both sides of a column of values."""

    reader: ColumnReader
    line: ValueLine

    @cached_property
    def sides(self) -> tuple[ValueSide, ValueSide]:
        """The values below the origin, and those above it."""
        origin = self.reader.view.axes[0].before + self.line.origin - self.line.low
        step = float(self.line.step)
        below = ValueSide(self.reader, step, origin, self.line.down, -1)
        return below, ValueSide(self.reader, step, origin, self.line.up, 1)

    @property
    def covered(self) -> tuple[int, int] | None:
        """The first and the last position that are covered; None where no octave is clear."""
        below, above = self.sides
        if below.top < 0 and above.top < 0:
            return None
        return below.origin - below.covered, above.origin + above.covered

    @property
    def hidden(self) -> HiddenTail:
        """What lies beyond on both sides."""
        (fewer, low), (more, high) = (side.hidden for side in self.sides)
        return HiddenTail(fewer + more, -low, high)

    def errors(self, low: int, high: int) -> tuple[Floats, UInts]:
        """What the sums of octaves between two positions may miss, and the ends of each octave."""
        below, above = self.sides
        origin, step = below.origin, self.line.step
        reach = max(0, min(below.reach, origin - low)), max(0, min(above.reach, high - origin))
        found = [side.errors(far) for side, far in zip(self.sides, reach, strict=True)]
        errors, spans = [each for each, _ in found], [span for _, each in found for span in each]
        ends = np.array([[low], [high]], np.uint64)  # all rows lie as far from zero as the origin
        errors.append(abs(float(self.line.origin * step)) * self.reader.alone(*ends)[1])
        return np.concatenate(errors), np.array([*spans, (low, high)], np.uint64)

    def split(self, low: int, high: int) -> list[tuple[int, int]]:
        """Octaves, and the origin, cut to positions from low to high."""
        spans = [side.positions(*span) for side in self.sides for span in side.octaves]
        spans.append((self.sides[0].origin,) * 2)
        cut = ((max(a, low), min(b, high)) for a, b in spans)
        return sorted((a, b) for a, b in cut if a <= b)
