"""Aggregators count reports, and what the counts say: estimates, errors, intervals and heavy hitters.

Aggregators count reports, and nothing else: they may be looked at, moved and merged at any time.
"""

from __future__ import annotations

import json
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from statistics import NormalDist
from typing import Any, Final, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.errors import ImplausibleReports, InvalidState, check, check_data, raise_without_cause
from partita.guarantee import Guarantee
from partita.html import card, grid, with_margin
from partita.local.columns import check_column, count_supports, decoder_of
from partita.local.device import Report
from partita.local.encodings import MeanRandomizer
from partita.local.question import Frequency, Mean, Question
from partita.local.randomizer import FrequencyRandomizer, UnaryEncoding
from partita.numbers import check_probability, integer

# ---- estimates ----

_IMAGINED: Final = 4  # reports that are added to those that came, as to a proportion [AC98]
_HALVINGS: Final = 60  # bisection steps: as many as a float has bits, and some
_MOST_SHOWN: Final = 10
_BEYOND_ROUNDING: Final = 1 + 2.0**-30  # widens bounds by more than all roundings of a divergence
_FALSE_ALARM: Final = 1e-9
"""How often all checks of one estimate together may fail if all reports are honest, whatever people hold."""

_ROUNDING: Final = 2.0**-40
"""Shares that are equal but for rounding: where a mean is 0 or 1, the divergence of these is infinite."""


@final
@dataclass(frozen=True)
class HeavyHitter:
    """A cell that many people hold: its label, its frequency, and a bound that its frequency exceeds."""

    cell: int
    label: str
    frequency: float
    at_least: float


@final
@dataclass(frozen=True, eq=False)
class Frequencies:
    """The estimated share of people who hold each cell, unbiased; it may be a little below 0 or above 1.

    `supports` holds how many of the n reports support each cell. The error of a share f is that of
    n f chances `hit` and n (1 - f) chances `miss`, with the estimate in the place of f. Few reports may
    happen to be alike, so four of the largest variance are imagined beside them.
    """

    question: Frequency
    n: int
    supports: Ints = field(repr=False)

    def __post_init__(self) -> None:
        check_data(self.n, "reports", "must be at least one", fix="collect reports first")

    def __len__(self) -> int:
        return len(self.supports)

    @cached_property
    def values(self) -> Floats:
        """The estimated frequencies."""
        return self._frequencies(self.supports / self.n)

    @cached_property
    def error(self) -> Floats:
        """The standard error of each frequency."""
        of_hit, of_miss = self._variances
        share = self.values.clip(0, 1)
        seen = self.n * (share * of_hit + (1 - share) * of_miss)
        variance = (seen + _IMAGINED * max(of_hit, of_miss)) / (self.n + _IMAGINED)
        return np.sqrt(variance * (self.n + 1)) / self.n / self._gain

    @property
    def counts(self) -> Floats:
        """How many of the n people hold each cell, estimated."""
        return self.values * self.n

    @property
    def implausible(self) -> Ints:
        """The cells whose share leaves [0, 1] by more than noise explains: some of the reports are forged."""
        return implausible_cells(self.question.randomizer, self.n, self.supports)

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """For each cell, bounds that hold with about this confidence, by the normal law; never a point.

        They hold the shares f from which the estimate is at most as many standard errors away as the
        confidence allows, with the error that f itself has [Wil27], and half a report more [Yat34].
        """
        normal = NormalDist().inv_cdf((1 + float(check_probability(confidence, "confidence"))) / 2)
        of_hit, of_miss = self._variances
        square = (normal / self._gain) ** 2 / self.n
        shift = square * (of_hit - of_miss) / 2
        reach = np.sqrt((shift**2 + square * of_miss + 2 * shift * self.values).clip(0))
        half, centre = reach + 0.5 / self.n / self._gain, self.values + shift
        return _shares(centre - half, centre + half)

    def worst(self, beta: float = 0.05) -> tuple[Floats, Floats]:
        """For each cell, bounds that fail with probability at most beta, whatever people hold."""
        low, high = mean_bounds(self.supports / self.n, self.n, math.log(2 / float(check_probability(beta))))
        return _shares(self._frequencies(low), self._frequencies(high))

    def __getitem__(self, cell: int) -> Answer:
        """The frequency of one cell."""
        place = integer(cell, "cell", low=0, high=len(self) - 1)

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.worst(beta)
            return float(low[place]), float(high[place])

        return Answer(float(self.values[place]), lambda: float(self.error[place]), bounds)

    def _repr_html_(self) -> str:
        """The most frequent cells; `heavy_hitters` says how certain they are."""
        largest = np.argsort(-self.values, kind="stable")[:_MOST_SHOWN]
        values, errors = self.values.tolist(), self.error.tolist()
        rows = [(self.question.label(int(at)), *with_margin(values[at], errors[at])) for at in largest]
        facts = [("people", f"{self.n:,}"), ("promise to each", self.question.guarantee)]
        return card("Frequencies", facts, below=[grid(("most frequent", "share", "± 95%"), rows)])

    def heavy_hitters(
        self, *, threshold: float = 0.0, top: int | None = None, beta: float = 0.05
    ) -> list[HeavyHitter]:
        """The cells whose frequency surely exceeds the threshold, most frequent first; `top` of them at most.

        With probability at least 1 - beta no cell is listed wrongly, and every `at_least` holds: each of
        the cells has its share of beta, on one side.
        """
        fix = "pass for example 0.01"
        check(0 <= threshold < 1, "threshold", "must lie in [0, 1)", given=threshold, fix=fix)
        log_cells = math.log(len(self) / float(check_probability(beta)))
        low, _ = mean_bounds(self.supports / self.n, self.n, log_cells)
        at_least = self._frequencies(low)
        order = np.argsort(-self.values, kind="stable")
        found = order[at_least[order] > threshold][: integer(top, "top", low=1) if top is not None else None]
        return [self._hitter(int(cell), float(at_least[cell])) for cell in found]

    def _hitter(self, cell: int, at_least: float) -> HeavyHitter:
        return HeavyHitter(cell, self.question.label(cell), float(self.values[cell]), at_least)

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Of the support of a report about the cell, and of one about another."""
        law = self.question.randomizer
        return float(law.hit * (1 - law.hit)), float(law.miss * (1 - law.miss))

    @cached_property
    def _gain(self) -> float:
        return float(self.question.randomizer.hit - self.question.randomizer.miss)

    def _frequencies(self, shares: Floats) -> Floats:
        """From shares of supporting reports to frequencies of people; exact probabilities, rounded once."""
        return (shares - float(self.question.randomizer.miss)) / self._gain


def _shares(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds as shares. What lies outside of [0, 1] says less than it seems to: it opens to the nearest end.

    Bounds that are 2 h apart leave at least h^2 of [0, 1] open, and all of it from h = 1 on. That is next to
    nothing beside many reports; bounds that lie inside have it anyway.
    """
    least = ((high - low) / 2).clip(0, 1) ** 2
    return np.minimum(low, 1 - least).clip(0, 1), np.maximum(high, least).clip(0, 1)


def mean_bounds(shares: Floats, n: int | Ints, log_failures: float) -> tuple[Floats, Floats]:
    """Bounds on the mean chance of n independent trials of which `shares` succeeded; n of each, or of all.

    Each side fails with probability at most exp(-log_failures): the means m with
    n KL(share, m) <= log_failures [Hoeffding 1963, Theorem 1; the chances need not be equal].
    """
    allowed = log_failures / n * _BEYOND_ROUNDING
    zero, one = np.zeros_like(shares), np.ones_like(shares)
    return _side(shares, zero, allowed), _side(shares, one, allowed)


def _side(shares: Floats, far: Floats, allowed: float | Floats) -> Floats:
    """By halving: a mean between share and `far` beyond which the divergence exceeds what is allowed."""
    near = shares.astype(np.float64)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        inside = divergence(shares, middle) <= allowed
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return far


def divergence(share: Floats, mean: Floats) -> Floats:
    """The Kullback-Leibler divergence of two coins."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(share > 0, share * np.log(share / mean), 0.0)
        zeros = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - mean)), 0.0)
    return ones + zeros


# Forged reports: estimates that leave [0, 1] by more than noise explains. One forged report cannot be told
# from an honest one, since every report is possible about every value. Many together can be: whatever people
# hold, reports that support a cell are independent trials whose mean chance lies between `miss` and `hit`.


def implausible_cells(law: FrequencyRandomizer, n: int, supports: Ints, *, checks: int = 1) -> Ints:
    """The cells whose estimate lies below 0 or above 1 by more than noise explains.

    A share s of supporters above `hit` has probability at most exp(-n KL(s, hit)) if all reports are honest,
    and one below `miss` at most exp(-n KL(s, miss)) [Hoeffding 1963, Theorem 1]. Each cell has its share of
    the false alarms, on both sides; `checks` is how many such lists are looked at.
    """
    allowed = log(4 * len(supports) * checks / _FALSE_ALARM) / n
    return np.flatnonzero(_outside(supports / n, float(law.miss), float(law.hit), allowed))


def implausible_total(law: FrequencyRandomizer, n: int, supports: Ints, *, checks: int = 1) -> bool:
    """Whether reports support more or fewer cells than honest ones do, on average.

    An honest report supports hit + (size - 1) miss cells on average, whatever the value: estimated
    frequencies add up to 1. One that supports all cells at once moves no estimate by much, and all of them.
    The bits of unary encoding are independent trials; of other kinds each report is one, as a share of the
    most cells that a report can support.
    """
    most = law.forged_report_cells
    expected = float(law.hit + (law.size - 1) * law.miss)
    width, trials = (law.size, n * law.size) if isinstance(law, UnaryEncoding) else (most, n)
    share = np.array([int(supports.sum()) / n / width]).clip(0, 1)
    mean = min(1.0, expected / width)
    return bool(_outside(share, mean, mean, log(4 * checks / _FALSE_ALARM) / trials).any())


def implausible_mean(law: MeanRandomizer, n: int, total: int) -> bool:
    """Whether the mean report is one of no numbers between the bounds, by more than noise explains."""
    most = law.reports - 1
    ends = law.offset, law.offset + law.slope * (law.size - 1)
    low, high = (float(end / most) for end in ends)
    return bool(_outside(np.array([total / n / most]), low, high, log(2 / _FALSE_ALARM) / n).any())


def warn_of_forgery(found: bool, stacklevel: int = 3) -> None:
    """Say that not all reports can be honest."""
    if found:
        message = (
            "estimates leave [0, 1] by more than noise explains: with honest reports alone that would happen "
            "less than once in 10^9 estimates; some were forged, or made by another law"
        )
        warnings.warn(ImplausibleReports(message), stacklevel=stacklevel)


def _outside(share: Floats, low: float, high: float, allowed: float) -> Any:
    """Whether a share of trials is further below `low` or above `high` than noise explains."""
    above = (share > high + _ROUNDING) & (divergence(share, np.full_like(share, high)) > allowed)
    below = (share < low - _ROUNDING) & (divergence(share, np.full_like(share, low)) > allowed)
    return above | below


# ---- aggregators ----

Asked = TypeVar("Asked", bound=Question)
_VERSION: Final = 1
_MOST_REPORTS: Final = 1 << 53
_LONGEST_ID: Final = 64
_LARGEST_COUNT: Final = 1 << 126  # of a sum of squares; larger integers in a file are an attack


class Aggregator(ABC, Generic[Asked]):
    """Integer counts of the reports to one question in one round, one of each person.

    A call counts all of its reports or none of them: a report to another question, a malformed one, or one
    whose id was seen before is refused. Ids are optional, and stored only to find repeats.
    """

    def __init__(self, question: Asked) -> None:
        self.question = question
        self.n = 0
        self._counts = self._zeros()
        self._ids: set[str] = set()

    @abstractmethod
    def _zeros(self) -> NDArray[Any]:
        """No counts yet."""

    @abstractmethod
    def _tally(self, reports: Any) -> tuple[NDArray[Any], int]:
        """The counts of a column of reports, and how many there are."""

    @abstractmethod
    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        """Whether n reports can have these counts."""

    @property
    def counts(self) -> NDArray[Any]:
        """A copy of the counts."""
        return self._counts.copy()

    @property
    def guarantee(self) -> Guarantee:
        """What every person was promised, whoever looks at the counts and however often."""
        return self.question.guarantee

    def add(self, report: Report | int, *, id: str | None = None) -> None:
        """Count one report: as a device made it, or its number and perhaps an id."""
        if isinstance(report, Report):
            self.add_reports([report])
        else:
            self.add_many(self._column([report]), ids=None if id is None else [id])

    def add_reports(self, reports: Iterable[Report]) -> None:
        """Count reports as devices made them."""
        listed = list(reports)
        for report in listed:
            self._check_question(report.question)
        column = self._column([report.value for report in listed])
        self.add_many(column, ids=[report.id for report in listed])

    def check(self, report: Report) -> None:
        """Say by an `InvalidData` if a report cannot be counted: another question, malformed, seen before."""
        self._check_question(report.question)
        self.question.randomizer.check_report(report.value)
        check_data(report.id not in self._ids, "report", "was counted before", fix=_ONCE)

    def add_many(self, reports: Any, *, ids: Iterable[str] | None = None) -> None:
        """Count a column of reports, as `randomize_many` makes them."""
        counts, n = self._tally(reports)
        fresh = self._fresh_ids(ids, n)
        self._counts = self._counts + counts
        self.n += n
        self._ids |= fresh

    def merge(self, other: Self) -> Self:
        """A new aggregator of both; in any order and grouping the same one comes out."""
        rule = "must be an aggregator of the same kind"
        check(type(other) is type(self), "other", rule, given=other, fix=_ASK)
        self._check_question(other.question.digest)
        fresh = self._ids.isdisjoint(other._ids)
        check_data(fresh, "reports", "were counted by both aggregators", fix=_ONCE)
        merged = type(self)(self.question)
        merged._counts, merged.n = self._counts + other._counts, self.n + other.n
        merged._ids = self._ids | other._ids
        return merged

    def to_bytes(self) -> bytes:
        """The whole state, as JSON."""
        state = {
            "version": _VERSION,
            "question": self.question.digest,
            "reports": self.n,
            "counts": self._counts.tolist(),
            "ids": sorted(self._ids),
        }
        return json.dumps(state, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, question: Asked, data: bytes) -> Self:
        """The aggregator whose state this is, checked; InvalidState otherwise."""
        state, made = _read(data), cls(question)
        if state["question"] != question.digest:
            raise InvalidState("state", "must be of the same question", fix=_ASK)
        counts, n, ids = state["counts"], state["reports"], state["ids"]
        sound = _whole(n, _MOST_REPORTS) and _texts(ids) and len(set(ids)) == len(ids) <= n
        sound = sound and isinstance(counts, list) and len(counts) == len(made._counts)
        sound = sound and all(_whole(count, _LARGEST_COUNT) for count in counts)
        if not sound or not made._check_counts(np.array(counts, dtype=object), n):
            raise _damaged()
        made._counts, made.n, made._ids = np.array(counts, dtype=made._counts.dtype), n, set(ids)
        return made

    def _column(self, values: Iterable[object]) -> Any:
        """Single reports, each of them checked, as a column."""
        check = self.question.randomizer.check_report
        return np.array([check(value) for value in values], dtype=np.int64)

    def _check_question(self, digest: str) -> None:
        rule = "must answer the question of this aggregator, in its round"
        check_data(digest == self.question.digest, "report", rule, fix=_ASK)

    def _fresh_ids(self, ids: Iterable[str] | None, n: int) -> set[str]:
        """The ids, if there is one for each report and none was seen before."""
        if ids is None:
            return set()
        listed = list(ids)
        rule = f"must be texts of up to {_LONGEST_ID} signs, one for each report"
        check_data(len(listed) == n and _texts(listed), "ids", rule, fix="leave them out")
        fresh = set(listed)
        new = len(fresh) == n and fresh.isdisjoint(self._ids)
        check_data(new, "report", "was counted before", fix=_ONCE)
        return fresh


@final
class FrequencyAggregator(Aggregator[Frequency]):
    """Counts reports about which value people hold.

    >>> question = Frequency(4, epsilon=3)
    >>> aggregator = question.aggregator()
    >>> aggregator.add_many(question.randomize_many([0, 1, 1, 3]))
    >>> aggregator.n, aggregator.guarantee.epsilon
    (4, Fraction(3, 1))
    """

    def estimate(self) -> Frequencies:
        """Frequencies of all cells, with errors and intervals; it warns if reports cannot all be honest."""
        found = Frequencies(question=self.question, n=self.n, supports=self.supports())
        total = implausible_total(self.question.randomizer, self.n, found.supports)
        warn_of_forgery(total or bool(found.implausible.size))
        return found

    def supports(self) -> Ints:
        """How many reports support each cell, exactly."""
        return count_supports(self.question.randomizer, self._counts)

    def _zeros(self) -> Ints:
        law = self.question.randomizer
        return np.zeros(law.reports if decoder_of(law).exclusive else law.size, dtype=np.int64)

    def _tally(self, reports: Any) -> tuple[Ints, int]:
        law, column = self.question.randomizer, check_column(self.question.randomizer, reports)
        return decoder_of(law).tally(law, column), len(column)

    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        if decoder_of(self.question.randomizer).exclusive:
            return int(counts.sum()) == n
        return int(counts.max(initial=0)) <= n

    def _column(self, values: Iterable[object]) -> Any:
        """Rows of bytes for unary encoding, whose reports have more bits than a word."""
        randomizer = self.question.randomizer
        if not isinstance(randomizer, UnaryEncoding):
            return super()._column(values)
        width = randomizer.report_bytes
        rows = [randomizer.check_report(value).to_bytes(width, "little") for value in values]
        return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), width)


_BLOCK: Final = 1 << 16  # so many squares, each below 2^46, add up to less than 2^63


@final
class MeanAggregator(Aggregator[Mean]):
    """Keeps the sum of all reports and the sum of their squares, in integers.

    >>> question = Mean(0, 24, epsilon=1)
    >>> aggregator = question.aggregator()
    >>> aggregator.add_many(question.randomize_many([6.5, 8, 7]))
    >>> aggregator.n
    3
    """

    def estimate(self) -> Answer:
        """The mean of everybody's number, unbiased; its error is that of the reports as they came.

        A few reports may happen to be alike, so four of the largest variance are imagined beside them. The
        guaranteed bounds are Hoeffding's. Neither they nor the value are held within the bounds of the
        question, but the mean is; if it leaves them by more than noise explains, a warning says so.
        """
        check_data(self.n, "reports", "must be at least one", fix="collect reports first")
        warn_of_forgery(implausible_mean(self.question.randomizer, self.n, int(self._counts[0])))
        low, unit = float(self.question.low), self._unit
        value = low + unit * (int(self._counts[0]) / self.n - float(self.question.randomizer.offset))

        def bounds(beta: float) -> tuple[float, float]:
            reach = unit * (self.question.randomizer.reports - 1) * math.sqrt(math.log(2 / beta) / 2 / self.n)
            return value - reach, value + reach

        return Answer(value, lambda: math.sqrt(self._variance * (self.n + 1)) / self.n, bounds, low)

    @property
    def _variance(self) -> float:
        """Of one report, in units of numbers: as they came and four more, but at least what the law has."""
        total, squares = (int(count) for count in self._counts)
        law, width = self.question.randomizer, float(self.question.high - self.question.low)
        seen = max(0.0, squares - total * total / self.n) * self._unit**2
        imagined = _IMAGINED * law.largest_variance * width**2
        return max(law.least_variance * self._unit**2, (seen + imagined) / (self.n + _IMAGINED))

    @property
    def _unit(self) -> float:
        """How much of a number one place of a report stands for."""
        randomizer = self.question.randomizer
        return float((self.question.high - self.question.low) / randomizer.slope / (randomizer.size - 1))

    def _zeros(self) -> NDArray[Any]:
        return np.array([0, 0], dtype=object)

    def _tally(self, reports: Any) -> tuple[NDArray[Any], int]:
        column = check_column(self.question.randomizer, reports)
        blocks = [column[start : start + _BLOCK] for start in range(0, len(column), _BLOCK)]
        squares = sum(int((block * block).sum()) for block in blocks)
        return np.array([int(column.sum()), squares], dtype=object), len(column)

    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        total, squares = counts
        most = self.question.randomizer.reports - 1
        return bool(total <= n * most and total <= squares <= total * most and total**2 <= n * squares)


_ASK: Final = "use one aggregator for each question and round"
_ONCE: Final = "count each report once"


def _read(data: bytes) -> dict[str, Any]:
    state = raise_without_cause(lambda: json.loads(data), _damaged(), ValueError, RecursionError)
    entries = {"version", "question", "reports", "counts", "ids"}
    if not isinstance(state, dict) or set(state) != entries or state["version"] != _VERSION:
        raise _damaged()
    return state


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _texts(ids: object) -> bool:
    return isinstance(ids, list) and all(isinstance(id, str) and 0 < len(id) <= _LONGEST_ID for id in ids)


def _damaged() -> InvalidState:
    fix = "collect the reports again"
    return InvalidState("state", "is not one of an aggregator of this question", fix=fix)
