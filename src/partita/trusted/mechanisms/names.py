"""Names that nobody declared: a private partition of all texts puts its ends at frequent ones [DNRR15]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Final, final

import numpy as np

from partita.domain.text import Text
from partita.errors import InvalidData, check, check_type
from partita.numbers import Converted, Exact, check_probability, freeze, frozen, parameter, rational
from partita.public.axis.names import NamesRelease
from partita.public.bounds import laplace_variance
from partita.trusted.mechanisms.base import Mechanism, check_fits, check_rows, check_scale
from partita.trusted.mechanisms.partition import SealRule, cut_wide
from partita.trusted.noise import hazard
from partita.trusted.noise.laws import enclose, floor
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, NameCounts

_EMPTY: Final = 1
"""Expected number of empty segments. One more end costs the second look next to nothing, and a threshold that
kept them away with probability 0.99 would be ln(100) / epsilon rows higher."""

_USUAL_ENDS: Final = 2**12
"""Ends for which both looks need as many rows: those of about half a million rows at epsilon 1. With 2^8 or
2^16 the share of the first look is 0.90 or 0.83 in place of 0.86, and a name needs at most 4% more rows."""

_HUNDREDTHS: Final = 100


@final
@frozen(kw_only=True)
class Names(Mechanism):
    """Find the names in a column of text that many rows have, without a list of names; count the rest.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DNRR15, Thm 2.1]
    Error:     every name with `found_from(M)` rows is listed: O((log size + log M) / epsilon), M segments;
               its count has noise of scale 1 / ((1 - first) epsilon).
    Proof:     docs/proofs/names.md (partition of any width, disjoint counts of its ends and of the rest)

    The part `first` of epsilon cuts the universe of all texts into segments, whose right ends are mostly at
    frequent names. The rest of epsilon counts the single cells at these ends, and what is left of each
    segment. Ends whose noisy count reaches a limit are listed: with probability 1 - beta all of them are
    texts that some row has.

    >>> names = Names(text=Text(24), epsilon=1)
    >>> names.first, names.threshold, names.found_from(300)
    (Fraction(43, 50), 154, 166)
    """

    name: ClassVar[str] = "names"
    bound_of: ClassVar[str] = "the rows of a name that is not found"

    text: Text
    beta: Exact = parameter(default="0.05")
    first: Converted[object, Fraction] = parameter(default=None)

    def _convert(self) -> None:
        super()._convert()
        check_type(self.text, Text, "text", "must be a domain of text", fix="pass Text(max_bytes=24)")
        freeze(self, beta=check_probability(self.beta))
        freeze(self, first=self._part(self.first))

    def _check(self) -> None:
        for scale in (self.seal_scale, self.scale):
            check_scale(scale, self.epsilon)

    @property
    def size(self) -> int:
        """The number of cells of the universe: all texts."""
        return self.text.size

    @property
    def seal_scale(self) -> Fraction:
        """The scale of the noise of the partition."""
        return 1 / (self.first * self.rate)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on counts of ends and of the rests of segments."""
        return 1 / ((1 - self.first) * self.rate)

    @property
    def threshold(self) -> int:
        """The least threshold that seals one empty segment, or fewer, in expectation."""
        chance = min(_HALF, Fraction(_EMPTY, self.size))
        return hazard.difference_quantile("geometric", self.seal_scale, chance) - 1

    def limit(self, ends: int) -> int:
        """With probability 1 - beta none of so many cells without a row reaches this noisy count."""
        return hazard.difference_quantile("geometric", self.scale, self.beta / ends)

    def found_from(self, ends: int, beta: object = "0.05") -> int:
        """With probability 1 - beta every name with so many rows is listed if there are at most so many ends.

        A name is at the end of its segment unless the noise on that threshold is large: half of beta. Its
        count reaches the limit unless its noise is very negative: the other half.
        """
        half = check_probability(beta) / 2
        sealed = self.threshold + 1 + hazard.geometric_quantile(self.seal_scale, half / ends)
        return max(
            sealed, self.limit(ends) - 1 + hazard.difference_quantile("geometric", self.scale, half / ends)
        )

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no name that is not found has more rows, of at most `rows` in all.

        At most rows + 2 ends hold a row, close the universe or are the empty text. The expected number of
        others is 1 at most, and more than 1 / (beta / 2) are there with probability beta / 2.
        """
        number, half = check_rows(rows), check_probability(beta) / 2
        ends = number + 2 + floor(lambda: enclose(_EMPTY / half))
        return float(self.found_from(ends, half) - 1)

    def predicted_error(self, rows: int) -> float:
        """The standard error of the count of a name that is found; the number of rows does not matter."""
        return math.sqrt(laplace_variance(self.scale))

    @property
    def predicted_missed(self) -> float:
        """Half of the rows that a name needs with a usual number of ends: the error if it is not found."""
        return self.found_from(_USUAL_ENDS) / 2

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds if every segment holds just enough rows."""
        return (rows // (self.threshold + 1) + 2) * (self.text.words + 2)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> NamesRelease:
        """Cut all texts, then count the ends and the rests of the segments."""
        counts = check_fits(data, self.size, self.contributions)
        if not isinstance(counts, NameCounts) or counts.text != self.text:
            raise InvalidData("data", "must be counts of texts of this column", fix="use NameCounts")
        assert 1 / self.seal_scale + 1 / self.scale == self.rate
        session = noise.session()
        cells, weights = counts.items()
        ends = self._find_ends(cells, weights, session)
        at_ends, rests = _count(ends, cells, weights)
        noisy = session.add(np.array([*at_ends, *rests], np.int64), self.scale)
        return NamesRelease(
            text=self.text,
            ends=self.text.words_of([self.text.name(end) for end in ends]),
            noisy=noisy[: len(ends)],
            rests=noisy[len(ends) :],
            scale=self.scale,
            rate=1 / self.seal_scale,
            threshold=self.threshold,
            limit=self.limit(len(ends)),
            guarantee=self.guarantee if session.secure else None,
        )

    def _find_ends(self, cells: Sequence[int], weights: Sequence[int], noise: Noise) -> list[int]:
        """The ends of the segments; the cell of the empty text is a segment of its own, whatever the rows."""
        rule = SealRule("geometric", self.seal_scale, self.threshold)
        items = ((cell, weight) for cell, weight in zip(cells, weights, strict=True) if cell)
        return [0, *cut_wide(rule, range(1, self.size), items, noise=noise)]

    def _part(self, given: object) -> Fraction:
        """The part of the first look: with the usual one both looks need as many rows if ends are usual."""
        if given is not None:
            part = rational(given, "first")
            check(0 < part < 1, "first", "must lie between 0 and 1", given=given, fix="leave it out")
            return part
        lost = math.log(2 * _USUAL_ENDS / float(self.beta))
        first = math.log(self.size) + lost
        second = lost + math.log(_USUAL_ENDS / float(self.beta))
        return Fraction(round(_HUNDREDTHS * first / (first + second)), _HUNDREDTHS)


_HALF: Final = Fraction(1, 2)


def _count(ends: Sequence[int], cells: Sequence[int], weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """The rows in the cell of each end, and those between the end before and this one."""
    at_ends, rests = [0] * len(ends), [0] * len(ends)
    segment = 0
    for cell, weight in zip(cells, weights, strict=True):
        while ends[segment] < cell:
            segment += 1
        if ends[segment] == cell:
            at_ends[segment] += weight
        else:
            rests[segment] += weight
    return at_ends, rests
