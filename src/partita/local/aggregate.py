"""Aggregators count reports, and nothing else: they may be looked at, moved and merged at any time."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, Final, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints
from partita.errors import InvalidData, InvalidState, check, check_data, unchained
from partita.guarantee import Guarantee
from partita.local.device import Report
from partita.local.estimates import (
    Frequencies,
    implausible_cells,
    implausible_total,
    mean_bounds,
    warn_of_forgery,
)
from partita.local.frequency import (
    Frequency,
    Mixture,
    ViewQuestion,
    checked_column,
    exclusive,
    supports,
    tallied,
    width,
)
from partita.local.question import CellTree, Levels, Question
from partita.local.randomizer import UnaryEncoding

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


# From looks at several levels to one table that agrees with itself: least squares, in closed form.
#
# The *detail* of a table at a level is what its nodes differ from the mean of their siblings. Every view
# that
# is at least as fine estimates it, with noise that adds up over the nodes summed. Details of different
# levels do not correlate, so the best estimate of each is the mean of all views by their precision.


@final
@dataclass(frozen=True, eq=False)
class Look:
    """What one view says: estimated shares of its nodes, with one axis for each column, and their variance.

    A column that the view does not see has one node. Nodes that do not exist have a share of zero.
    """

    levels: Levels
    table: Floats
    variance: float


@final
@dataclass(frozen=True, eq=False)
class Details:
    """Everything that the looks say about shares, with a total of one, level by level."""

    lines: tuple[CellTree, ...]
    looks: tuple[Look, ...]

    @cached_property
    def precision(self) -> Mapping[Levels, float]:
        """How well each detail is known: the inverse variance of its nodes before siblings are compared."""
        told = {look.levels: 1 / look.variance for look in self.looks}
        return self._gathered(told, lambda value, _: value)

    @cached_property
    def tables(self) -> Mapping[Levels, Floats]:
        """The estimated detail of every choice of levels; that of no level at all is the total."""
        told = {look.levels: look.table / look.variance for look in self.looks}
        gathered = self._gathered(told, lambda table, axis: coarser(table, axis, self.lines[axis].branching))
        return {
            levels: np.ones((1,) * len(levels)) if not any(levels) else self._detail(levels, table)
            for levels, table in gathered.items()
        }

    def table(self, finest: Levels) -> Floats:
        """The shares of the nodes at these levels: all details down to there, added up from the top."""
        folded = dict(self.tables)
        for axis, last in enumerate(finest):
            folded = self._folded(folded, axis, last)
        return folded[finest]

    def variance(self, chosen: Sequence[Floats]) -> float:
        """The variance of the share of a box; `chosen` holds a mask of the cells for every column."""
        energies = [self._energies(axis, mask) for axis, mask in enumerate(chosen)]
        return sum(
            prod(energies[axis][level] for axis, level in enumerate(levels)) / precision
            for levels, precision in self.precision.items()
            if any(levels)
        )

    def _gathered(self, told: Mapping[Levels, Any], summed: Callable[[Any, int], Any]) -> dict[Levels, Any]:
        """What all views say about levels that are not finer than their own, weighted by precision."""
        gathered = dict(told)
        for axis, line in enumerate(self.lines):
            for level in range(line.height, 0, -1):
                for levels in [levels for levels in gathered if levels[axis] == level]:
                    above = _at(levels, axis, level - 1)
                    gathered[above] = gathered.get(above, 0) + summed(gathered[levels], axis) / line.branching
        return gathered

    def _detail(self, levels: Levels, told: Floats) -> Floats:
        for axis, level in enumerate(levels):
            if level:
                told = told - _sibling_means(told, axis, self.lines[axis].branching)
        return told / self.precision[levels]

    def _folded(self, details: Mapping[Levels, Floats], axis: int, last: int) -> dict[Levels, Floats]:
        """Along one axis, from the root down: a node has its part of its parent, and its own detail."""
        folded = {}
        for levels in [
            levels for levels in details if not levels[axis] and _at(levels, axis, last) in details
        ]:
            total = details[levels]
            for level in range(1, last + 1):
                total = finer(total, axis, self.lines[axis].branching) + details[_at(levels, axis, level)]
            folded[_at(levels, axis, last)] = total
        return folded

    def _energies(self, axis: int, mask: Floats) -> list[float]:
        """For each level, the squared length of the detail of a mask of cells, as means over nodes."""
        line, found = self.lines[axis], []
        means = np.zeros(line.branching**line.height)
        means[: mask.size] = mask
        for _ in range(line.height):
            found.append(float(((means - _sibling_means(means, 0, line.branching)) ** 2).sum()))
            means = coarser(means, 0, line.branching) / line.branching
        return [float(means[0] ** 2), *reversed(found)]


def coarser(table: Any, axis: int, branching: int) -> Any:
    """The sums of all siblings along an axis."""
    shape = table.shape
    grouped = table.reshape(*shape[:axis], shape[axis] // branching, branching, *shape[axis + 1 :])
    return grouped.sum(axis=axis + 1)


def finer(table: Floats, axis: int, branching: int) -> Floats:
    """Every node shared out evenly among its children along an axis."""
    return np.repeat(table, branching, axis=axis) / branching


def _sibling_means(table: Floats, axis: int, branching: int) -> Floats:
    return finer(coarser(table, axis, branching), axis, branching)


def _at(levels: Levels, axis: int, level: int) -> Levels:
    return (*levels[:axis], level, *levels[axis + 1 :])


# What mixed reports say: the reports of each view counted, and what their supports tell of its nodes.


AskedView = TypeVar("AskedView", bound=ViewQuestion)
Ends = tuple[int, int]

_UNKNOWN: Final = 1e6
"""The variance of the shares of a view that nobody reported."""


class ViewAggregator(Aggregator[AskedView]):
    """Counts mixed reports: one integer for every report of every view."""

    @property
    def people(self) -> tuple[int, ...]:
        """How many people reported each view."""
        starts = self.question.randomizer.starts
        return tuple(int(self._counts[a:b].sum()) for a, b in pairwise(starts))

    def evidence(self) -> ViewEvidence:
        """What the reports say; there must be one. It warns if they cannot all be honest."""
        check_data(self.n, "reports", "must be at least one", fix="collect reports first")
        found = ViewEvidence(self.question.randomizer, self.n, self._counts)
        warn_of_forgery(found.implausible, stacklevel=4)
        return found

    def _zeros(self) -> Ints:
        return np.zeros(self.question.randomizer.reports, dtype=np.int64)

    def _tallied(self, reports: Any) -> tuple[Ints, int]:
        column = checked_column(self.question.randomizer, reports)
        return np.bincount(column, minlength=self.question.randomizer.reports), len(column)

    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        return int(counts.sum()) == n


@final
@dataclass(frozen=True, eq=False)
class ViewEvidence:
    """The counts of n reports, and for each view the shares of its nodes, unbiased, with their variance.

    The people who report a view are a sample of all, so a node with share f is supported with the chance
    miss + f (hit - miss) by each of them.
    """

    mixture: Mixture
    n: int
    counts: Ints = field(repr=False)

    @property
    def lines(self) -> tuple[CellTree, ...]:
        """The columns, as trees."""
        return self.mixture.views[0].lines

    @cached_property
    def details(self) -> Details:
        """All looks together."""
        return Details(self.lines, tuple(self._look(view) for view in range(len(self.mixture.views))))

    @cached_property
    def _supports(self) -> tuple[tuple[int, Ints], ...]:
        """For each view the number of its reports, and how many support each of its nodes."""
        starts = self.mixture.starts
        spans = [self.counts[a:b] for a, b in pairwise(starts)]
        parts = zip(self.mixture.parts, spans, strict=True)
        return tuple((int(span.sum()), supports(part, span)) for part, span in parts)

    @property
    def implausible(self) -> bool:
        """Whether the shares of some view leave [0, 1] by more than noise explains."""
        views = len(self._supports)
        seen = [(law, *each) for law, each in zip(self.mixture.parts, self._supports, strict=True) if each[0]]
        return any(
            implausible_cells(law, n, supported, checks=views).size
            or implausible_total(law, n, supported, checks=views)
            for law, n, supported in seen
        )

    @cached_property
    def _numbers(self) -> dict[Levels, int]:
        return {view.levels: number for number, view in enumerate(self.mixture.views)}

    def _look(self, number: int) -> Look:
        view, (n, supported) = self.mixture.views[number], self._supports[number]
        shape = [line.branching**level for line, level in zip(self.lines, view.levels, strict=True)]
        table = np.zeros(shape)
        if not n:
            return Look(view.levels, table, _UNKNOWN)
        shares = self._shares(number, supported / n)
        table[tuple(slice(width) for width in view.widths)] = shares.reshape(view.widths)
        return Look(view.levels, table, self._variance(number, n, float(shares.max())))

    def _shares(self, number: int, supported: Floats) -> Floats:
        part = self.mixture.parts[number]
        return (supported - float(part.miss)) / float(part.hit - part.miss)

    def _variance(self, number: int, n: int, heaviest: float) -> float:
        """That of the share of a node that is at most as heavy as the heaviest one, at worst."""
        part = self.mixture.parts[number]
        miss, gain = float(part.miss), float(part.hit - part.miss)
        chance = min(0.5, miss + gain * min(1.0, max(0.0, heaviest))) if miss < 0.5 else miss
        return chance * (1 - chance) / n / gain**2

    def bounds(self, ends: tuple[Ends, ...], beta: float) -> tuple[float, float]:
        """Bounds on the share of a box that fail with probability at most beta, whatever people hold.

        The box is cut into nodes that views see. Where there is no view of some node, the columns are
        bounded one by one: the share of a box is at most that of each of its sides, and at least what is
        left if all that lies outside of some side lies outside of no other [Fréchet 1935].
        """
        covers = [line.cover(*each) for line, each in zip(self.lines, ends, strict=True)]
        nodes = [tuple(zip(*each, strict=True)) for each in product(*covers)]
        if all(levels in self._numbers or not any(levels) for levels, _ in nodes):
            return self._nodes_bounds(nodes, beta)
        sides = [self.bounds(self._side(axis, ends), beta / len(ends)) for axis in range(len(ends))]
        return max(0.0, 1 - sum(1 - low for low, _ in sides)), min(high for _, high in sides)

    def _side(self, axis: int, ends: tuple[Ends, ...]) -> tuple[Ends, ...]:
        whole = tuple((0, line.size - 1) for line in self.lines)
        return (*whole[:axis], ends[axis], *whole[axis + 1 :])

    def _nodes_bounds(self, nodes: list[tuple[Any, ...]], beta: float) -> tuple[float, float]:
        """The sums of the bounds of all nodes, each with its share of beta; 0 and 1 of one nobody saw."""
        if not any(nodes[0][0]):
            return 1.0, 1.0
        seen = [self._seen(self._numbers[levels], at) for levels, at in nodes]
        n, supported, miss, gain = (np.array(each) for each in zip(*seen, strict=True))
        known = n > 0
        sides = mean_bounds(supported / n.clip(1), n.clip(1), math.log(2 * len(nodes) / beta))
        low, high = (((side - miss) / gain).clip(0, 1) for side in sides)
        return min(1.0, float(low[known].sum())), min(1.0, float(high[known].sum() + (~known).sum()))

    def _seen(self, number: int, at: tuple[int, ...]) -> tuple[int, int, float, float]:
        """How many people reported a view, how many of them support a node, and with what chances."""
        (n, supported), part = self._supports[number], self.mixture.parts[number]
        place = int(np.ravel_multi_index(at, self.mixture.views[number].widths))
        return n, int(supported[place]), float(part.miss), float(part.hit - part.miss)
