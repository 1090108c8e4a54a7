"""Names that nobody declared: ends of a private partition, counted again, and what they say of all names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.text import FoundNames, Text, choose_labels
from partita.errors import InvalidParameter, PartitaError
from partita.frames import Tabular
from partita.guarantee import Guarantee, rows_changed
from partita.lazy import cached_property
from partita.numbers import check_probability, integer
from partita.public.axis.base import (
    AxisRelease,
    Json,
    NoisySum,
    Parts,
    PartsReader,
    Specials,
    Term,
)
from partita.public.axis.curve import Curve
from partita.public.axis.flat import HistogramRelease
from partita.public.base import damaged, figure, format_excerpt, noise_rate
from partita.public.bounds import laplace_sum_reach, laplace_variance

MOST_WORDS: Final = 7
"""Series of words that a name of 48 bytes takes, with its length."""

_ROUNDING: Final = 1 + 1e-9  # of bounds that are computed in floats: more than their error
_STEPS: Final = 64  # rates at which the exponential moment of a sum is tried


@dataclass(frozen=True, eq=False, kw_only=True)
class ListedNames(AxisRelease, ABC):
    """Noisy counts of some texts, `ends`, of which those that reach a limit are listed, and of all others.

    `ends` has texts as words, ascending, the empty text first. `noisy[j]` is the noisy count of the single
    cell at end j; all have noise of one `scale`. Ends whose noisy count reaches `limit` are listed: they are
    the cells of this axis, in their order. `rests` are noisy counts of all other cells, with noise of scale
    `rest_scale`.
    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    text: Text
    ends: UInts
    noisy: NDArray[Any]
    rests: NDArray[Any]
    scale: Fraction
    limit: int
    guarantee: Guarantee | None = None

    @property
    @abstractmethod
    def rest_scale(self) -> Fraction:
        """The scale of the noise on the counts of all other cells."""

    @abstractmethod
    def reach_of_some(self, number: int, beta: float) -> float:
        """With probability 1 - beta no sum of so many counts of ends, however chosen, is off by more."""

    @abstractmethod
    def unlisted_count(self, cell: int) -> Answer:
        """What is known of the rows with a text that is not listed: a count, if it is an end, or a bound."""

    @abstractmethod
    def found_from(self, beta: object = 0.05) -> int:
        """With probability 1 - beta every name with at least so many rows is listed."""

    @abstractmethod
    def other(self, prefix: bytes = b"") -> Answer:
        """Rows whose text begins with some bytes and is not listed."""

    @property
    @abstractmethod
    def counted_by(self) -> str:
        """How rows are counted whose text is not listed, in words."""

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of names that are listed."""
        return self.listed.size

    @cached_property
    def cells(self) -> list[int]:
        """The cell of each end in the universe of all texts."""
        return self.text.cells_of(self.ends)

    @cached_property
    def listed(self) -> Ints:
        """The ends that are listed: those whose count reaches the limit, or the empty text if none does.

        Of names that are shown alike the first is listed, one of printable text before others.
        """
        reached = np.flatnonzero(self.noisy >= self.limit)
        names = self.text.names_of(self.ends[reached])
        found = reached[np.array(choose_labels(names), np.bool_)] if names else reached
        return found if found.size else np.zeros(1, np.int64)

    @property
    def number(self) -> int:
        """How many names were found: none if the empty text is listed only because there must be a cell."""
        return 0 if self.size == 1 and int(self.noisy[self.listed[0]]) < self.limit else self.size

    @cached_property
    def domain(self) -> FoundNames:
        """The names that are listed, as the labels of the column."""
        return FoundNames.of(self.text, self.text.names_of(self.ends[self.listed]))

    @cached_property
    def unlisted(self) -> Bools:
        """Which ends are not listed."""
        there = np.ones(len(self.ends), np.bool_)
        there[self.listed] = False
        return there

    # Counts of listed names. A name is listed if its own noise is large enough, so a sum of several listed
    # ones is no sum of independent noises: its guaranteed bounds hold for any choice among all ends.

    @cached_property
    def _histogram(self) -> HistogramRelease:
        return HistogramRelease(
            noisy=self.noisy[self.listed], size=self.size, scale=self.scale, guarantee=self.guarantee
        )

    @property
    def curve(self) -> Curve:
        return self._histogram.curve

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the counts of listed names."""
        found = self._histogram.answer(*terms)
        number = sum(term.high - term.low + 1 for term in terms)
        if number <= 1:
            return found
        least, value = found.least, found.value

        def bounds(beta: float) -> tuple[float, float]:
            reach = self.reach_of_some(number, beta)
            return value - reach, value + reach

        return Answer(value, lambda: found.error, bounds, least)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        return self._histogram.counts(lows, highs)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        return self._histogram.errors(lows, highs)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no sum of counts of listed names misses the truth by more."""
        return self.reach_of_some(self.size, float(check_probability(beta)))

    # What is not listed.

    @property
    def rest_of_all(self) -> Answer:
        """Rows whose text is not listed, but for those without a cell: rests and ends that are not listed."""
        number, beside = len(self.rests), int(self.unlisted.sum())
        value = float(int(self.rests.sum()) + int(self.noisy[self.unlisted].sum()))

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.rest_scale, number, beta / 2)
            reach += self.reach_of_some(beside, beta / 2) if beside else 0.0
            return value - reach, value + reach

        variance = number * laplace_variance(self.rest_scale) + beside * laplace_variance(self.scale)
        deviation = math.sqrt(variance)
        return Answer(value, lambda: deviation, bounds, -math.inf)

    def complete(self, specials: Specials) -> Specials:
        """The special cells as they were counted, where other also has the rows that are not listed."""
        return Specials(counts=specials.counts, scale=specials.scale, rest={"other": self.rest_of_all})

    @property
    def note(self) -> str:
        return f"Names with at least {self.found_from(0.05):,} rows are listed, but for 5%."


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NamesRelease(ListedNames):
    """The ends of a partition of all texts, noisy counts of their cells, and of the rest of each segment.

    The last text of the universe is among the ends. `rests[j]` counts the cells between the end before and
    end j. `rate` is the epsilon for each row of the partition, and `threshold` its threshold.
    """

    kind: ClassVar[str] = "names"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"names": ("DNRR15",)}
    max_series: ClassVar[int] = MOST_WORDS + 2

    rate: Fraction
    threshold: int

    @property
    def rest_scale(self) -> Fraction:
        """That of the counts of ends."""
        return self.scale

    def reach_of_some(self, number: int, beta: float) -> float:
        """With probability 1 - beta no sum of so many counts of ends, however chosen, is off by more."""
        each = number * laplace_sum_reach(self.scale, 1, beta / 2 / len(self.ends))
        return min(each, subset_reach(len(self.ends), self.scale, beta / 4))

    def find_segment(self, cell: int) -> int:
        """The number of the segment that a cell of the universe is in."""
        low, high = 0, len(self.cells) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.cells[middle] < cell else (low, middle)
        return low

    def unlisted_count(self, cell: int) -> Answer:
        """What is known of the rows with a text that is not listed: a count, if it is an end, or a bound."""
        segment = self.find_segment(cell)
        if self.cells[segment] == cell:
            found = NoisySum(int(self.noisy[segment]), {(1, self.scale): 1})
            value, error = max(0.0, float(found.value)), found.error
            return Answer(value, lambda: error, found.bounds, note=self.note)

        def bounds(beta: float) -> tuple[float, float]:
            return 0.0, self._most_in(segment, beta)

        most = self._most_in(segment, 0.05)
        about = f"Answer(not listed: 0 to {figure(most)})"
        return Answer(0.0, lambda: most / 2, bounds, 0.0, about=about, likely=bounds, note=self.note)

    def _most_in(self, segment: int, beta: float) -> float:
        """With probability 1 - beta no cell of a segment but its end has more rows."""
        counted = int(self.rests[segment]) + laplace_sum_reach(self.scale, 1, beta / 2)
        sealed = self.threshold + seal_reach(len(self.ends), self.rate, beta / 2)
        return float(max(0.0, min(counted, sealed)))

    def found_from(self, beta: object = 0.05) -> int:
        """With probability 1 - beta every name with at least so many rows is listed.

        From released numbers alone. A name is at the end of its segment unless the noise on that segment's
        threshold is large, and its own count reaches the limit unless its noise is very negative.
        """
        half = float(check_probability(beta)) / 2
        number = len(self.ends)
        sealed = self.threshold + 1 + seal_reach(number, self.rate, half)
        counted = self.limit - 1 + tail_reach(self.scale, half / number)
        return max(sealed, counted)

    @property
    def counted_by(self) -> str:
        return f"by the segments of text between {len(self.ends):,} ends"

    def other(self, prefix: bytes = b"") -> Answer:
        """Rows whose text begins with some bytes and is not listed.

        Where a segment goes across a border of the prefix, the interval holds all and none of its rest, and
        the value half.
        """
        low = self.text.cell(prefix)
        last = low + self.text.names_with(len(prefix)) - 1
        starts = [0, *(cell + 1 for cell in self.cells[:-1])]
        inner, border, ends = list[int](), list[int](), list[int]()
        for segment, (start, end) in enumerate(zip(starts, self.cells, strict=True)):
            if low <= end <= last and self.unlisted[segment]:
                ends.append(int(self.noisy[segment]))
            if start < end and start <= last and end - 1 >= low:
                held = low <= start and end - 1 <= last
                (inner if held else border).append(int(self.rests[segment]))
        sure, across = sum(inner) + sum(ends), max(0, sum(border))

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.scale, len(inner), beta / 3)
            reach += self.reach_of_some(len(ends), beta / 3) if ends else 0.0
            return sure - reach, sure + reach + sum(border) + laplace_sum_reach(
                self.scale, len(border), beta / 3
            )

        deviation = math.sqrt((len(inner) + len(ends) + len(border)) * laplace_variance(self.scale))

        def likely(beta: float) -> tuple[float, float]:
            reach = NormalDist().inv_cdf(1 - beta / 2) * deviation
            return max(0.0, sure - reach), max(0.0, sure + across + reach)

        value = max(0.0, sure + across / 2)
        return Answer(value, lambda: math.hypot(deviation, across / 2), bounds, 0.0, likely=likely)

    # Files.

    def parts(self) -> Parts:
        """The column and scales as facts; words of the ends, counts and rests as series."""
        facts: dict[str, Json] = {
            "text": dict[str, Json](plain_text(self.text)),
            "scale": str(self.scale),
            "rate": str(self.rate),
            "threshold": self.threshold,
            "limit": self.limit,
        }
        words = dict(zip(word_names(self.text), self.ends.T, strict=True))
        return Parts(facts, {**words, "counts": self.noisy, "rests": self.rests})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        text = read_text(parts.facts.get("text"))
        series = (*word_names(text), "counts", "rests")
        reader.expect(facts=("text", "scale", "rate", "threshold", "limit"), series=series)
        ends = read_ends(reader, text, last=True)
        scale, rate = reader.scale("scale"), noise_rate(reader.rational("rate"), "rate")
        if guarantee is not None:
            spent = (rate + 1 / scale) * rows_changed(guarantee.neighbors, guarantee.contributions)
            if spent > guarantee.epsilon:
                raise damaged("scale", "must be that of the guarantee")
        return cls(
            text=text,
            ends=ends,
            noisy=reader.noisy("counts", count=len(ends)),
            rests=reader.noisy("rests", count=len(ends)),
            scale=scale,
            rate=rate,
            threshold=reader.integer("threshold", low=0, high=2**62),
            limit=reader.integer("limit", low=1, high=2**62),
            guarantee=guarantee,
        )


def plain_text(text: Text) -> dict[str, Json]:
    """The specification of a column, as a fact."""
    return {
        name: each if isinstance(each, str) else list[Json](each) for name, each in text.to_spec().items()
    }


def word_names(text: Text) -> list[str]:
    """The series of the words of a name: its bytes, eight at a time, and its length."""
    return [*(f"word{number}" for number in range(text.words - 1)), "length"]


def read_text(spec: Json) -> Text:
    """The column, as its own specification."""
    try:
        text = Text.from_spec(spec if isinstance(spec, dict) else {})
    except PartitaError:
        raise damaged("text", "must be the domain of a column of text") from None
    if text.to_spec() != spec:
        raise damaged("text", "must be the domain of a column of text as it is written")
    return text


def read_ends(reader: PartsReader, text: Text, *, last: bool) -> UInts:
    """Ends in ascending order from the empty text, perhaps to the `last` one, each a text of the column."""
    words = [reader.row(name, np.uint64) for name in word_names(text)]
    fits = len({row.size for row in words}) == 1 and words[0].size >= 1 + last
    if not fits or bool((words[-1] > text.max_bytes).any()):
        raise damaged("ends", "must be the words of texts")
    ends = np.stack(words, axis=1)
    names = text.names_of(ends)
    if any(name.strip(text.letters) for name in names) or bool((text.words_of(names) != ends).any()):
        raise damaged("ends", "must be texts of the column")
    ascending = all(one < other for one, other in pairwise(names))
    if not ascending or names[0] or (last and names[-1] != text.name(text.size - 1)):
        raise damaged("ends", "must ascend from the empty text, to the last one of a partition")
    return ends


# Tails in floats, rounded so that what is promised is never more than what is true.


def seal_reach(number: int, rate: Fraction, beta: float) -> int:
    """With probability 1 - beta no noise on the thresholds of the segments there are is larger.

    Their number is not known before: of the first 2^i noises one is above q with probability at most
    2^i exp(-rate (q + 1)), and i has the part 1 / ((i + 1) (i + 2)) of beta. These parts add up to 1.
    """
    steps = max(0, number - 1).bit_length()
    odds = steps * math.log(2) + math.log((steps + 1) * (steps + 2) / beta)
    return max(0, math.ceil(odds / float(rate) * _ROUNDING) - 1)


def tail_reach(scale: Fraction, beta: float) -> int:
    """The least t >= 1 with P[N >= t] <= beta, or one more: N discrete Laplace noise of this scale."""
    ratio = math.exp(-1 / float(scale))
    return max(1, math.ceil(-float(scale) * math.log(beta * (1 + ratio)) * _ROUNDING))


def subset_reach(number: int, scale: Fraction, beta: float) -> float:
    """With probability 1 - 2 beta no subset of so many noises adds up to more, with either sign.

    The largest sum of a subset is that of the positive noises. For every x below 1 / scale it exceeds
    (number ln E[exp(x max(N, 0))] + ln(1 / beta)) / x with probability at most beta.
    """
    ratio = math.exp(-1 / float(scale))

    def reach(x: float) -> float:
        moved = ratio * math.exp(x)
        moment = (1 + (1 - ratio) * moved / (1 - moved)) / (1 + ratio)
        return (number * math.log(moment) + math.log(1 / beta)) / x

    rates = (step / (_STEPS + 1) / float(scale) for step in range(1, _STEPS + 1))
    return min(map(reach, rates)) * _ROUNDING


# What users see of it.


@final
@dataclass(frozen=True, eq=False, repr=False)
class NameTable(Tabular):
    """The names that a release has found in a column, the most frequent first, and what it says of others.

    `top(k)` has the first k of them, `with_prefix` those that begin so, `other` the rows whose text is not
    listed, and `found_from` the number of rows from which a name is listed, but for a small probability.
    """

    column: str
    found: ListedNames
    order: tuple[int, ...]

    @staticmethod
    def of(column: str, found: ListedNames) -> NameTable:
        """All names that are listed."""
        counts = found.noisy[found.listed]
        order = sorted(range(found.number), key=lambda place: (-int(counts[place]), place))
        return NameTable(column, found, tuple(order))

    @property
    def names(self) -> list[str]:
        """The names as they are shown."""
        return [self.found.domain.labels[place] for place in self.order]

    @property
    def raw(self) -> list[bytes]:
        """The names as bytes: anybody may have chosen them, and nothing is escaped."""
        return [self.found.domain.names[place] for place in self.order]

    @property
    def counts(self) -> list[Answer]:
        """How many rows have each name."""
        return [self.found.answer(Term(place, place)) for place in self.order]

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[tuple[str, Answer]]:
        return iter(zip(self.names, self.counts, strict=True))

    def top(self, number: int) -> NameTable:
        """The first so many."""
        return NameTable(self.column, self.found, self.order[: integer(number, "number", low=0)])

    @property
    def domain(self) -> FoundNames:
        """These names as labels, in the order of their bytes; if there are none, the empty text."""
        every = self.found.domain
        names = [every.names[place] for place in sorted(self.order)] or [b""]
        return FoundNames.of(every.text, names)

    def with_prefix(self, prefix: str | bytes) -> NameTable:
        """Those that begin with this text."""
        start = _encode_prefix(self.found.text, prefix)
        kept = [place for place in self.order if self.found.domain.names[place].startswith(start)]
        return NameTable(self.column, self.found, tuple(kept))

    def other(self, prefix: str | bytes = "") -> Answer:
        """How many rows have a text that begins so and is not listed; longer text is in none."""
        return self.found.other(_encode_prefix(self.found.text, prefix))

    def found_from(self, beta: object = "0.05") -> int:
        """Every name with at least so many rows is listed, except with probability beta."""
        return self.found.found_from(beta)

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """A row for each name: its count and 95% interval."""
        answers = self.counts
        ends = [each.interval() for each in answers]
        return {
            self.column: self.names,
            "count": [each.value for each in answers],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
        }

    def __str__(self) -> str:
        shown = self.frame()
        rows = list(zip(*shown.values(), strict=True))
        excerpt = format_excerpt(
            list(shown), len(rows), lambda row: [rows[row][0], *map(figure, rows[row][1:])]
        )
        return f"{excerpt}\n{len(rows):,} names; {self.found.note}"

    __repr__ = __str__


def _encode_prefix(text: Text, prefix: object) -> bytes:
    """The bytes of a prefix, if texts of the column can begin so."""
    start = prefix.encode("utf-8", "surrogatepass") if isinstance(prefix, str) else prefix
    rule, fix = f"must be text that a column {text!r} can begin with", 'pass for example "Sa"'
    if not isinstance(start, bytes) or len(start) > text.max_bytes or start.strip(text.letters):
        raise InvalidParameter("prefix", rule, given=prefix, fix=fix)
    return start
