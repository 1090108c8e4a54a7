"""Questions to a release within the limits of the service, and its answers with bars at the confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, final

from partita.domain.base.base import Special
from partita.errors.errors import InvalidParameter
from partita.numbers import failure
from partita.public.conditions import OneOf
from partita.public.questions import COUNT, QueryRunner, Question, Type
from partita.public.records import ANSWERS, Record
from partita.public.release.release import Release
from partita.public.views.view import View
from partita.service.reading.catalogue.catalogue import Entry
from partita.service.reading.questions.asked import Bars
from partita.service.reading.work import Predicted, check_work
from partita.service.settings import Limits


@final
@dataclass(frozen=True)
class Answering:
    """Asks releases what the limits allow."""

    limits: Limits

    def answer(self, release: Release, question: Question, bars: Bars) -> Record:
        """The record of `partita query`, with the half-width of every bar and what is mostly noise.

        A plain count without guaranteed bounds is the exception: it is what a batch of counts says.
        """
        self._check(release, question)
        if bars.beta is None and _is_plain(question):
            record = _counted(release, question, bars.confidence)
        else:
            runner = QueryRunner(release=release, confidence=bars.confidence, beta=bars.beta)
            record = runner.answer(question)
        return barred(record, deviations(bars.confidence))

    def answered(self, entry: Entry, question: Question, bars: Bars) -> Record:
        """The same of a release of the catalogue, which learns what it was asked for.

        Refused before anything is done if it would be too much work.
        """
        self._check(entry.opened, question)
        check_work(Predicted(entry.facts).of(question, beta=bars.beta is not None), self.limits)
        record = self.answer(entry.opened, question, bars)
        entry.counted.update(_column(question, bars))
        return record

    def is_small(self, entry: Entry, question: Question, bars: Bars) -> bool:
        """Whether a question is so little work, at most, that it has a lane of its own."""
        predicted = Predicted(entry.facts, at_most=True).of(question, beta=bars.beta is not None)
        return predicted <= self.limits.small_work

    def is_quick(self, entry: Entry, question: Question, bars: Bars) -> bool:
        """Whether an answer is made sooner than a thread is told: a range of one column, not the first."""
        column = _column(question, bars)
        return bool(column) and column <= entry.counted and _is_alone(entry.opened, column)

    def check_text(self, text: str, parameter: str) -> None:
        """Refuse a text that is longer than any question needs to be."""
        _check_most(parameter, len(text), self.limits.where, "characters")

    def check_points(self, number: int, parameter: str = "bins") -> None:
        """Refuse more bins or values than an answer may have."""
        _check_most(parameter, number, self.limits.points, "points")

    def _check(self, release: Release, question: Question) -> None:
        bins = [each for each in question.having(Type.BINS) if each is not None]
        if bins:
            self.check_points(math.prod(bins))
        for each in question.kind.having(Type.VALUES):
            self.check_points(len(question[each.name]), each.name)
        if question.kind.result is ANSWERS and release.queries is not None:
            _check_most("answers", len(release.queries), self.limits.ranges, "queries")


def barred(record: Record, z: float) -> Record:
    """The record with a half-width beside every error; and of a count, whether noise dominates it."""
    rows = {name: [_row(row, z) for row in each] for name, each in record.items() if isinstance(each, list)}
    return {**record, **(_bar(record, z) if "error" in record else {}), **rows}


@lru_cache(maxsize=256)
def deviations(confidence: float) -> float:
    """How many standard errors a bar of this confidence reaches to either side; refused next to 1."""
    return NormalDist().inv_cdf((1 + float(failure(confidence, "confidence"))) / 2)


def is_small(value: float, half: float) -> bool:
    """Whether noise dominates a value: its bar is as wide as it is large, or there is none."""
    return not (math.isfinite(value) and math.isfinite(half)) or half >= abs(value)


def _is_plain(question: Question) -> bool:
    """Whether this is a count of ranges and single values only, which batches of counts have, too."""
    if question.kind is not COUNT or question["half_space"] is not None or not question["where"]:
        return False
    return not any(isinstance(each, OneOf | Special) for each in question["where"].values())


def _column(question: Question, bars: Bars) -> set[str]:
    """The one column that a plain count is about; none for all other questions."""
    return (
        set(question["where"])
        if bars.beta is None and _is_plain(question) and len(question["where"]) == 1
        else set()
    )


def _is_alone(release: Release, column: set[str]) -> bool:
    return isinstance(release.view(*column), View)


def _counted(release: Release, question: Question, confidence: float) -> Record:
    """A batch of one count: guaranteed bounds, which nobody asked for, take longer than all the rest."""
    found = release.counts(question["where"])
    value, error = found.values.item(), found.error.item()
    half = deviations(confidence) * error
    interval = {"confidence": confidence, "low": max(0.0, value - half), "high": max(0.0, value + half)}
    return {"question": str(question), "value": value, "error": error, "interval": interval}


def _row(row: Record, z: float) -> Record:
    """A row of a histogram or of answers; shares of a cdf are small at its beginning, and mean it."""
    if "error" not in row:
        return row
    if "share" in row:
        return {**row, "half": z * _number(row, "error")}
    return {**row, **_bar(row, z)}


def _bar(row: Record, z: float) -> Record:
    half = z * _number(row, "error")
    return {"half": half, "small": is_small(_number(row, "value" if "value" in row else "count"), half)}


def _number(row: Mapping[str, Any], name: str) -> float:
    return float(row[name])


def _check_most(parameter: str, number: int, most: int, what: str) -> None:
    if number > most:
        raise InvalidParameter(
            parameter, f"must have at most {most:,} {what} here", given=number, fix="ask for less at once"
        )
