"""Names that are listed because their own noisy counts exceed a threshold, for a delta above 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Final, Self, final

from partita.answer import Answer
from partita.guarantee import Guarantee, rows_changed
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.axis.base import Json, NoisySum, Parts, PartsReader
from partita.public.axis.names import (
    MOST_WORDS,
    ListedNames,
    plain_text,
    read_ends,
    read_text,
    tail_reach,
    word_names,
)
from partita.public.base import damaged, figure
from partita.public.bounds import laplace_sum_reach, laplace_variance

_ROUNDING: Final = 1e-6  # of a logarithm of delta in floats: more than its error
_MOST_ROWS: Final = 2**62


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class StableNamesRelease(ListedNames):
    """Names whose noisy count exceeds a threshold, the empty text in any case, and the rows of all others.

    `ends` are these names, and `limit` is the threshold plus one. `rests` is one noisy count, of all rows
    with another text, whose noise has the scale `beside`. No name is listed that no row has.
    """

    kind: ClassVar[str] = "stability"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"stability": ()}
    max_series: ClassVar[int] = MOST_WORDS + 2

    beside: Fraction

    @property
    def rest_scale(self) -> Fraction:
        """The scale of the noise on the one count of all other rows."""
        return self.beside

    @property
    def counted_by(self) -> str:
        return "all together"

    @property
    def _rest(self) -> int:
        return int(self.rests[0])

    @cached_property
    def _places(self) -> dict[int, int]:
        """The place of each end, by its cell in the universe of all texts."""
        return {cell: place for place, cell in enumerate(self.text.cells_of(self.ends))}

    # How many names have noise is secret: no more than there are rows, which are counted with noise.

    def _most_rows(self, beta: float) -> int:
        """With probability 1 - beta no more rows have a text.

        There are no more names than rows and the empty text. With n rows no noise on a name is beyond its
        quantile at beta / (2 (n + 1)). So n is at most what is counted, that quantile for each end, and the
        reach of the noise on the rest: the largest such n is found from above.
        """
        counted = int(self.noisy.sum()) + self._rest + math.ceil(laplace_sum_reach(self.beside, 1, beta / 2))
        most = _MOST_ROWS
        while True:
            reach = len(self.ends) * tail_reach(self.scale, beta / 2 / (most + 1))
            found = min(most, max(0, counted + reach))
            if found == most:
                return most
            most = found

    def reach_of_some(self, number: int, beta: float) -> float:
        """With probability 1 - beta no sum of so many counts of ends, however chosen, is off by more."""
        names = self._most_rows(beta / 2) + 1
        return float(number * tail_reach(self.scale, beta / 4 / names))

    def found_from(self, beta: object = 0.05) -> int:
        """With probability 1 - beta every name with at least so many rows is listed.

        From released numbers alone. Of at most so many names one has noise that is negative enough.
        """
        half = float(check_probability(beta)) / 2
        names = max(1, self._most_rows(half) // self.limit)
        return self.limit - 1 + tail_reach(self.scale, half / names)

    def unlisted_count(self, cell: int) -> Answer:
        """What is known of the rows with a text that is not listed: a bound, or a count if it is an end."""
        if cell in self._places:
            found = NoisySum(int(self.noisy[self._places[cell]]), {(1, self.scale): 1})
            value, error = max(0.0, float(found.value)), found.error
            return Answer(value, lambda: error, found.bounds, note=self.note)

        def bounds(beta: float) -> tuple[float, float]:
            counted = self._rest + laplace_sum_reach(self.beside, 1, beta / 2)
            below = self.limit - 1 + tail_reach(self.scale, beta / 2)
            return 0.0, float(max(0.0, min(counted, below)))

        most = bounds(0.05)[1]
        about = f"Answer(not listed: 0 to {figure(most)})"
        return Answer(0.0, lambda: most / 2, bounds, 0.0, about=about, likely=bounds, note=self.note)

    def other(self, prefix: bytes = b"") -> Answer:
        """Rows whose text begins with some bytes and is not listed.

        All of them are counted together: of those that begin so the interval holds all and none, and the
        value half.
        """
        if not prefix:
            rest = self.rest_of_all
            return Answer(max(0.0, rest.value), lambda: rest.error, rest.bounds, 0.0)
        names = self.text.names_of(self.ends)
        counted = self.noisy[[u and n.startswith(prefix) for u, n in zip(self.unlisted, names, strict=True)]]
        sure, across = int(counted.sum()), max(0, self._rest)

        def bounds(beta: float) -> tuple[float, float]:
            reach = self.reach_of_some(counted.size, beta / 2) if counted.size else 0.0
            all_others = max(0.0, self._rest + laplace_sum_reach(self.beside, 1, beta / 2))
            return sure - reach, sure + reach + all_others

        variance = counted.size * laplace_variance(self.scale) + laplace_variance(self.beside)
        deviation = math.sqrt(variance)

        def likely(beta: float) -> tuple[float, float]:
            reach = NormalDist().inv_cdf(1 - beta / 2) * deviation
            return max(0.0, sure - reach), max(0.0, sure + across + reach)

        value = max(0.0, sure + across / 2)
        return Answer(value, lambda: math.hypot(deviation, across / 2), bounds, 0.0, likely=likely)

    # Files.

    def parts(self) -> Parts:
        """The column, scales and limit as facts; words of the names, their counts and the rest as series."""
        facts: dict[str, Json] = {
            "text": dict[str, Json](plain_text(self.text)),
            "scale": str(self.scale),
            "beside": str(self.beside),
            "limit": self.limit,
        }
        words = dict(zip(word_names(self.text), self.ends.T, strict=True))
        return Parts(facts, {**words, "counts": self.noisy, "rests": self.rests})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        text = read_text(parts.facts.get("text"))
        series = (*word_names(text), "counts", "rests")
        reader.expect(facts=("text", "scale", "beside", "limit"), series=series)
        ends = read_ends(reader, text, last=False)
        made = cls(
            text=text,
            ends=ends,
            noisy=reader.noisy("counts", count=len(ends)),
            rests=reader.noisy("rests", count=1),
            scale=reader.scale("scale"),
            beside=reader.scale("beside"),
            limit=reader.integer("limit", low=2, high=_MOST_ROWS),
            guarantee=guarantee,
        )
        if bool((made.noisy[1:] < made.limit).any()):
            raise damaged("counts", "must reach the limit, but for that of the empty text")
        if guarantee is not None and not made._keeps(guarantee):
            raise damaged("limit", "and the scales must be those of the guarantee")
        return made

    def _keeps(self, promise: Guarantee) -> bool:
        """Whether scales and threshold are no less than the guarantee asks for: the theorem, in floats."""
        changed, most = rows_changed(promise.neighbors, promise.contributions), promise.contributions
        if (1 / self.scale + 1 / self.beside) * changed > promise.epsilon or not promise.delta:
            return False
        rate, threshold = 1 / float(self.scale), self.limit - 1
        allowed = math.log(promise.delta * most / changed) + math.log1p(math.exp(-rate)) + _ROUNDING
        alone = -rate * (threshold + 1 - most)
        return threshold >= most and max(alone, math.log(most) - rate * threshold) <= allowed
