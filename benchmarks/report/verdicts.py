"""Who is better where: computed from the rows, so that nothing is picked by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import exp, hypot, log
from statistics import mean
from typing import Literal

from benchmarks.report.model import Row

OURS = "Partita"
"""The method that is judged: the library with its defaults."""

NOTHING = {"median": 1.0, "deciles": 1.0}
"""Rows: in ratios of quantiles a mean error below one row counts as one."""

SURE = 2.0
"""Standard errors of the difference from which it counts as one."""

Outcome = Literal["better", "even", "worse"]


@dataclass(frozen=True)
class Verdict:
    """Our row in a setting beside the best of all others there."""

    ours: Row
    best: Row

    @property
    def ratio(self) -> float:
        """Our error over theirs, neither below what counts as nothing."""
        least = NOTHING.get(self.ours.question, 1e-12)
        return max(self.ours.error, least) / max(self.best.error, least)

    @property
    def outcome(self) -> Outcome:
        """Even where the difference may be chance."""
        doubt = SURE * hypot(self.ours.standard_error, self.best.standard_error)
        if abs(self.ours.error - self.best.error) <= doubt:
            return "even"
        return "better" if self.ours.error < self.best.error else "worse"


@dataclass(frozen=True)
class Slower:
    """A method that releases and answers faster than we do: geometric mean over the settings."""

    question: str
    method: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def verdicts(rows: Iterable[Row]) -> Iterator[Verdict]:
    """One for each question and setting in which somebody else has answered."""
    for _, group in groupby(rows, key=lambda row: (row.question, row.data, row.epsilon)):
        together = list(group)
        ours = next((row for row in together if row.method == OURS), None)
        others = [row for row in together if row.kind != "ours"]
        if ours and others:
            yield Verdict(ours, min(others, key=lambda row: row.error))


def losses(rows: Iterable[Row]) -> list[Verdict]:
    """Where somebody is surely better, the worst first."""
    found = [each for each in verdicts(rows) if each.outcome == "worse"]
    return sorted(found, key=lambda each: -each.ratio)


def slower(rows: Iterable[Row]) -> list[Slower]:
    """Methods of other libraries that take less time than we do, the worst first."""
    rows = list(rows)
    ours = {(row.question, row.data, row.epsilon): row.seconds for row in rows if row.method == OURS}
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        key = (row.question, row.data, row.epsilon)
        if row.kind == "peer" and key in ours:
            pairs.setdefault((row.question, row.method), []).append((ours[key], row.seconds))
    found = [Slower(*names, *map(geometric_mean, zip(*times, strict=True))) for names, times in pairs.items()]
    return sorted((each for each in found if each.ratio > 1), key=lambda each: -each.ratio)


def geometric_mean(figures: Iterable[float]) -> float:
    """The mean for ratios: 2 and 1/2 cancel."""
    return exp(mean(log(max(figure, 1e-12)) for figure in figures))
