"""Aggregators count reports, and nothing else: they may be looked at, moved and merged at any time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check, check_data
from partita.errors.errors import InvalidData, InvalidState
from partita.errors.unchained import unchained
from partita.guarantee.guarantee import Guarantee
from partita.local.device import Report
from partita.local.estimates.estimates import Frequencies
from partita.local.estimates.plausibility import implausible_total, warn_of_forgery
from partita.local.frequency.columns import Ints
from partita.local.frequency.decoders import exclusive, supports, tallied, width
from partita.local.frequency.frequency import Frequency
from partita.local.question.question import Question
from partita.local.randomizer.unary import UnaryEncoding

Asked = TypeVar("Asked", bound=Question)

_VERSION: Final = 1
_MOST_REPORTS: Final = 1 << 53
_LONGEST_ID: Final = 64
_LARGEST_COUNT: Final = 1 << 126


class Aggregator(ABC, Generic[Asked]):
    """Integer counts of the reports to one question in one round, one of each person.

    A call counts all of its reports or none of them: a report to another question, a malformed one, or one
    whose id was seen before is refused. Ids are optional, and kept only to tell repeats.
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
    def _tallied(self, reports: Any) -> tuple[NDArray[Any], int]:
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
        if report.id in self._ids:
            raise _seen()

    def add_many(self, reports: Any, *, ids: Iterable[str] | None = None) -> None:
        """Count a column of reports, as `randomize_many` makes them."""
        counts, n = self._tallied(reports)
        fresh = self._fresh_ids(ids, n)
        self._counts = self._counts + counts
        self.n += n
        self._ids |= fresh

    def merge(self, other: Self) -> Self:
        """A new aggregator of both; in any order and grouping the same one comes out."""
        rule = "must be an aggregator of the same kind"
        check(type(other) is type(self), "other", rule, given=other, fix=_ASK)
        self._check_question(other.question.digest)
        fix = "count each report once"
        check_data(self._ids.isdisjoint(other._ids), "reports", "were counted by both aggregators", fix=fix)
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
        if not (_whole(n, _MOST_REPORTS) and _distinct(ids, n) and _counts(counts, len(made._counts))):
            raise _damaged()
        if not made._check_counts(np.array(counts, dtype=object), n):
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
        if len(fresh) < n or not fresh.isdisjoint(self._ids):
            raise _seen()
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
        return supports(self.question.randomizer, self._counts)

    def _zeros(self) -> Ints:
        return np.zeros(width(self.question.randomizer), dtype=np.int64)

    def _tallied(self, reports: Any) -> tuple[Ints, int]:
        return tallied(self.question.randomizer, reports)

    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        if exclusive(self.question.randomizer):
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


def _seen() -> InvalidData:
    return InvalidData("report", "was counted before", fix="count each report once")


_ASK: Final = "use one aggregator for each question and round"


def _read(data: bytes) -> dict[str, Any]:
    state = unchained(lambda: json.loads(data), _damaged(), ValueError, RecursionError)
    entries = {"version", "question", "reports", "counts", "ids"}
    if not isinstance(state, dict) or set(state) != entries or state["version"] != _VERSION:
        raise _damaged()
    return state


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _texts(ids: object) -> bool:
    return isinstance(ids, list) and all(isinstance(id, str) and 0 < len(id) <= _LONGEST_ID for id in ids)


def _distinct(ids: Any, n: int) -> bool:
    """Whether these are ids of some of n reports."""
    return _texts(ids) and len(set(ids)) == len(ids) <= n


def _counts(counts: object, width: int) -> bool:
    """Whether these are so many integers, none of them negative or beyond reason."""
    return (
        isinstance(counts, list)
        and len(counts) == width
        and all(_whole(count, _LARGEST_COUNT) for count in counts)
    )


def _damaged() -> InvalidState:
    fix = "collect the reports again"
    return InvalidState("state", "is not one of an aggregator of this question", fix=fix)
