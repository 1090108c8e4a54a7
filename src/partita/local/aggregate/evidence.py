"""What mixed reports say: the reports of each view counted, and what their supports tell of its nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check_data
from partita.local.aggregate.aggregator import Aggregator
from partita.local.aggregate.consistency import Details, Floats, Look
from partita.local.estimates.estimates import mean_bounds
from partita.local.estimates.plausibility import implausible_cells, implausible_total, warn_of_forgery
from partita.local.frequency.columns import Ints
from partita.local.frequency.decoders import checked_column, supports
from partita.local.frequency.mixture import Mixture
from partita.local.frequency.view_question import ViewQuestion
from partita.local.question.hierarchy import Levels, Line

Asked = TypeVar("Asked", bound=ViewQuestion)
Ends = tuple[int, int]

_UNKNOWN: Final = 1e6
"""The variance of the shares of a view that nobody reported."""


class ViewAggregator(Aggregator[Asked]):
    """Counts mixed reports: one integer for every report of every view."""

    @property
    def people(self) -> tuple[int, ...]:
        """How many people reported each view."""
        starts = self.question.randomizer.starts
        return tuple(int(self._counts[a:b].sum()) for a, b in pairwise(starts))

    def evidence(self) -> Evidence:
        """What the reports say; there must be one. It warns if they cannot all be honest."""
        check_data(self.n, "reports", "must be at least one", fix="collect reports first")
        found = Evidence(self.question.randomizer, self.n, self._counts)
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
class Evidence:
    """The counts of n reports, and for each view the shares of its nodes, unbiased, with their variance.

    The people who report a view are a sample of all, so a node with share f is supported with the chance
    miss + f (hit - miss) by each of them.
    """

    mixture: Mixture
    n: int
    counts: Ints = field(repr=False)

    @property
    def lines(self) -> tuple[Line, ...]:
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
