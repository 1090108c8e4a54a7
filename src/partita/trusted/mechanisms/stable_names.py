"""Names that nobody declared, by a stability threshold: few rows are enough, for a delta above 0."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Final, final

import numpy as np

from partita.domain.text import Text
from partita.errors import InvalidData, check, check_type
from partita.guarantee import Guarantee
from partita.numbers import Exact, check_probability, freeze, frozen, parameter, rational
from partita.public.axis.stable_names import StableNamesRelease
from partita.public.bounds import laplace_variance
from partita.trusted.mechanisms.base import Mechanism, check_fits, check_rows, check_scale
from partita.trusted.noise import hazard
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts, NameCounts

_USUAL_NAMES: Final = 2**12


@final
@frozen(kw_only=True)
class StableNames(Mechanism):
    """List the names in a column of text whose noisy count exceeds a threshold; count other rows together.

    Guarantee: (epsilon, delta)-DP; ADD_REMOVE or CHANGE_ONE.
    Error:     every name with `found_from(M)` rows is listed, of M so frequent ones: (log(1 / delta) +
               log M) / epsilon about; its count has noise of scale 1 / ((1 - rest) epsilon).
    Proof:     docs/proofs/names.md (stability: names that one side alone has are listed with chance delta)

    Every name that occurs gets noise of its own, and is listed if its noisy count is above the threshold. The
    part `rest` of epsilon counts the rows with other names. The empty text is counted in any case.

    >>> names = StableNames(text=Text(24), epsilon=1, delta="1e-6")
    >>> names.threshold, names.found_from(300)
    (15, 25)
    """

    name: ClassVar[str] = "stability"
    bound_of: ClassVar[str] = "the rows of a name that is not found"
    takes_delta: ClassVar[bool] = True

    text: Text
    delta: Exact = parameter(default="1e-6")
    rest: Exact = parameter(default="1/10")

    def _convert(self) -> None:
        super()._convert()
        check_type(self.text, Text, "text", "must be a domain of text", fix="pass Text(max_bytes=24)")
        rest: object = self.rest
        freeze(self, delta=check_probability(self.delta, "delta"), rest=rational(rest, "rest"))
        check(0 < self.rest < 1, "rest", "must lie between 0 and 1", given=rest, fix="leave it out")

    def _check(self) -> None:
        for scale in (self.scale, self.rest_scale):
            check_scale(scale, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return Guarantee(epsilon=self.epsilon, delta=self.delta, **self.protected)

    @property
    def size(self) -> int:
        """The number of cells of the universe: all texts."""
        return self.text.size

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on the count of each name."""
        return 1 / ((1 - self.rest) * self.rate)

    @property
    def rest_scale(self) -> Fraction:
        """The scale of the noise on the count of all other rows."""
        return 1 / (self.rest * self.rate)

    @property
    def threshold(self) -> int:
        """The least threshold that new names of one person exceed with probability delta at most.

        A person has at most k rows. The chance that one of their names is listed is largest if all rows have
        one name, or each row has its own. If a person changes, old and new names have half of delta each.
        """
        most = self.contributions
        share = self.delta * most / self.rows_changed
        alone = most - 1 + hazard.difference_quantile("geometric", self.scale, share)
        apart = hazard.difference_quantile("geometric", self.scale, share / most)
        return max(most, alone, apart)

    def found_from(self, names: int, beta: object = "0.05") -> int:
        """With probability 1 - beta every name with so many rows is listed if no more names have as many."""
        chance = check_probability(beta) / names
        return self.threshold + hazard.difference_quantile("geometric", self.scale, chance)

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no name that is not found has more rows, of at most `rows` in all."""
        return float(self.found_from(max(1, check_rows(rows) // (self.threshold + 1)), beta) - 1)

    def predicted_error(self, rows: int) -> float:
        """The standard error of the count of a name that is found; the number of rows does not matter."""
        return math.sqrt(laplace_variance(self.scale))

    @property
    def predicted_missed(self) -> float:
        """Half of the rows that a name needs if a usual number has as many: the error if it is not found."""
        return self.found_from(_USUAL_NAMES) / 2

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds if every name has just enough rows."""
        return (rows // (self.threshold + 1) + 1) * (self.text.words + 1) + 1

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> StableNamesRelease:
        """Count every name with noise, keep those above the threshold, and count all other rows."""
        counts = check_fits(data, self.size, self.contributions)
        if not isinstance(counts, NameCounts) or counts.text != self.text:
            raise InvalidData("data", "must be counts of texts of this column", fix="use NameCounts")
        assert 1 / self.scale + 1 / self.rest_scale == self.rate
        session = noise.session()
        cells, weights = counts.items()
        if not cells or cells[0]:
            cells, weights = [0, *cells], [0, *weights]
        noisy = session.add(np.array(weights, np.int64), self.scale)
        threshold = self.threshold
        kept = [place for place, cell in enumerate(cells) if not cell or int(noisy[place]) > threshold]
        others = sum(weights) - sum(weights[place] for place in kept)
        rests = session.add(np.array([others], np.int64), self.rest_scale)
        return StableNamesRelease(
            text=self.text,
            ends=self.text.words_of([self.text.name(cells[place]) for place in kept]),
            noisy=noisy[kept],
            rests=rests,
            scale=self.scale,
            beside=self.rest_scale,
            limit=threshold + 1,
            guarantee=self.guarantee if session.secure else None,
        )
