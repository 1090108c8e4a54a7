"""Aggregators count reports, and nothing else: they may be looked at, moved and merged at any time."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Ints
from partita.errors import InvalidState, check, check_data, raise_without_cause
from partita.guarantee import Guarantee
from partita.local.columns import check_column, count_supports, decoder_of
from partita.local.device import Report
from partita.local.estimates import Frequencies, implausible_mean, implausible_total, warn_of_forgery
from partita.local.question import Frequency, Mean, Question
from partita.local.randomizer import UnaryEncoding

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


_IMAGINED: Final = 4  # reports that are added to those that came, as to a proportion [AC98]
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
