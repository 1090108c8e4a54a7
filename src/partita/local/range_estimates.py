"""What reports about ranges and boxes say: shares and counts, the distribution function, quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, product
from math import prod, sqrt
from statistics import NormalDist
from typing import Any, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.errors import InvalidParameter, check, check_data, check_type
from partita.local import aggregate
from partita.local.columns import check_column, count_supports, domain_ends
from partita.local.ranges import CellTree, Levels, Mixture, Range, Rectangles, ViewQuestion
from partita.numbers import check_choice, check_probability, rational
from partita.public.axis.shrinkage import project_on_totals

AskedView = TypeVar("AskedView", bound=ViewQuestion)
_UNKNOWN: Final = 1e6  # the variance of the shares of a view without reports; large against any share
Ends = tuple[int, int]
Box = Mapping[str, tuple[object, object]]
_LEAST_IN_ORDER: Final = 1e-9  # quantiles are undefined if the estimated share of ordinary cells is zero
_ROUNDS: Final = 40  # of proportional fitting: more cost time, and `rake_table` is exact after any number
_LEAST: Final = 1e-300


class ViewAggregator(aggregate.Aggregator[AskedView]):
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
        aggregate.warn_of_forgery(found.implausible, stacklevel=4)
        return found

    def _zeros(self) -> Ints:
        return np.zeros(self.question.randomizer.reports, dtype=np.int64)

    def _tally(self, reports: Any) -> tuple[Ints, int]:
        column = check_column(self.question.randomizer, reports)
        return np.bincount(column, minlength=self.question.randomizer.reports), len(column)

    def _check_counts(self, counts: NDArray[Any], n: int) -> bool:
        return int(counts.sum()) == n


@final
class RangeAggregator(ViewAggregator[Range]):
    """Counts reports about where people are on a line.

    >>> question = Range(16, epsilon=3)
    >>> aggregator = question.aggregator()
    >>> aggregator.add_many(question.randomize_many([3, 4, 4, 9]))
    >>> aggregator.n, sum(aggregator.people)
    (4, 4)
    """

    def estimate(self) -> RangeEstimate:
        """Shares of all ranges, with errors and intervals."""
        return RangeEstimate(self.question, self.evidence())


@final
@dataclass(frozen=True, eq=False)
class RangeEstimate:
    """The share of people in any range: consistent, none below zero, one in all.

    Levels are combined by least squares, then made non-negative from the top down. Errors are those before
    the last step, which brings estimates nearer to the truth as a rule.
    """

    question: Range
    evidence: ViewEvidence

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.evidence.n

    @cached_property
    def unbiased(self) -> Floats:
        """The shares of all cells by least squares; some may be below zero."""
        [line] = self.evidence.lines
        return self.evidence.details.table((line.height,))[: line.size]

    @cached_property
    def values(self) -> Floats:
        """The shares of all cells, special ones last: what every answer is made of."""
        return top_down(self.unbiased, (self.question.branching,))

    def frequency(self, low: object, high: object) -> Answer:
        """The share of people from low to high, both included; values of the domain, or cells."""
        return self._share(domain_ends(self.question.domain, low, high))

    def count(self, low: object, high: object) -> Answer:
        """How many of the n people are from low to high."""
        return scale_answer(self.frequency(low, high), self.n)

    def cdf(self, value: object) -> Answer:
        """The share of people who are in order and not above a value."""
        return self._share((0, domain_ends(self.question.domain, value, value)[1]))

    def special(self, name: str) -> Answer:
        """The share of people in a special cell of the domain."""
        specials = () if isinstance(self.question.domain, int) else self.question.domain.specials
        cell = self.question.ordinary + specials.index(check_choice(name, "name", specials))
        return self._share((cell, cell))

    def quantile(self, q: float) -> object:
        """The least value with a share of at least q, among people who are in order, at or below it."""
        return self._value(self._quantile_cells([float(rational(q, "q"))])[0])

    def quantile_interval(self, q: float, confidence: float = 0.95) -> tuple[object, object]:
        """Two values between which the quantile lies with about this confidence.

        Where the error may be all that lies above the quantile, the interval reaches to the end of the line,
        also if no report comes from there.
        """
        normal = NormalDist().inv_cdf((1 + float(check_probability(confidence, "confidence"))) / 2)
        share = float(rational(q, "q"))
        [cell] = self._quantile_cells([share])
        error = max(self._share((0, end)).error for end in (cell - 1, cell))
        half = normal * error / max(self._in_order, _LEAST_IN_ORDER)
        low, high = self._quantile_cells([max(0.0, share - half), min(1.0, share + half)])
        return self._value(low), self._value(high if share + half < 1 else self.question.ordinary - 1)

    @property
    def _in_order(self) -> float:
        """The share of people in no special cell."""
        return float(self.values[: self.question.ordinary].sum())

    def _quantile_cells(self, shares: list[float]) -> list[int]:
        return quantile_cells(self.values[: self.question.ordinary], shares)

    def _value(self, cell: int) -> object:
        domain = self.question.domain
        return cell if isinstance(domain, int) else domain.decode([cell])[0]

    def _share(self, ends: tuple[int, int]) -> Answer:
        if ends[0] > ends[1]:
            return Answer.exact(0.0)
        [line] = self.evidence.lines
        mask = _mask(ends, line.size)
        return Answer(
            float(self.values[ends[0] : ends[1] + 1].sum()),
            lambda: sqrt(self.evidence.details.variance([mask])),
            lambda beta: self.evidence.bounds((ends,), beta),
        )


def scale_answer(share: Answer, people: int) -> Answer:
    """A number of people in place of a share."""

    def bounds(beta: float) -> tuple[float, float]:
        low, high = share.bounds(beta)
        return people * low, people * high

    return Answer(people * share.value, lambda: people * share.error, bounds)


def quantile_cells(shares: Floats, quantiles: Sequence[float]) -> list[int]:
    """For each q the least cell at which q of all that the cells hold is reached.

    >>> quantile_cells(np.array([0.1, 0.0, 0.2, 0.1]), [0.0, 0.25, 0.5, 1.0])
    [0, 0, 2, 3]
    """
    fix = "pass for example 0.5"
    check(all(0 <= q <= 1 for q in quantiles), "q", "must lie between 0 and 1", given=None, fix=fix)
    reached = np.cumsum(shares)
    total = float(reached[-1])
    if not total > 0:
        return [0 for _ in quantiles]
    places = np.searchsorted(reached, np.array(quantiles, dtype=np.float64) * total * (1 - 2.0**-40))
    return [int(place) for place in places.clip(0, shares.size - 1)]


@final
class RectangleAggregator(ViewAggregator[Rectangles]):
    """Counts reports about where people are in the space of several columns."""

    def estimate(self) -> RectangleEstimate:
        """Shares of all boxes, with errors and intervals."""
        return RectangleEstimate(self.question, self.evidence())


@final
@dataclass(frozen=True, eq=False)
class RectangleEstimate:
    """The share of people in any box: none below zero, one in all, and one answer for one column everywhere.

    A box bounds some columns and leaves the others open. Of two columns there is one table, made consistent
    by least squares and non-negative from the top down. With more than two in the question it is fitted to
    the sums of its columns, which are known to each cell, and a cell of its grid is divided as these are.
    Three columns and more are put together from every two of them. What associations of three there are
    beyond that, nobody reported, and no error knows of them.
    """

    question: Rectangles
    evidence: ViewEvidence

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.evidence.n

    def frequency(self, box: Box) -> Answer:
        """The share of people in a box: for some columns a first and a last value, or cell."""
        ends = self._ends(box)
        if any(low > high for low, high in ends.values()):
            return Answer.exact(0.0)
        if not ends:
            return Answer.exact(1.0)
        every = [ends.get(axis, (0, line.size - 1)) for axis, line in enumerate(self.evidence.lines)]
        masks = [_mask(each, line.size) for each, line in zip(every, self.evidence.lines, strict=True)]
        return Answer(
            self._share(ends),
            lambda: sqrt(self.evidence.details.variance(masks)),
            lambda beta: self.evidence.bounds(tuple(every), beta),
        )

    def count(self, box: Box) -> Answer:
        """How many of the n people are in a box."""
        return scale_answer(self.frequency(box), self.n)

    def column(self, name: str) -> Floats:
        """The shares of all cells of one column, special ones last."""
        return self._columns[self._axis(name)]

    @cached_property
    def _columns(self) -> list[Floats]:
        axes = range(len(self.evidence.lines))
        if len(axes) == 2:
            [table] = self._pairs.values()
            return [table.sum(axis=1), table.sum(axis=0)]
        heights = [line.height for line in self.evidence.lines]
        return [self._project({axis: heights[axis]}) for axis in axes]

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], Floats]:
        """For every two columns a table at the finest levels of a view of both."""
        lines = self.evidence.lines
        if len(lines) == 2:
            return {(0, 1): self._project({0: lines[0].height, 1: lines[1].height})}
        return {pair: self._fit(pair) for pair in combinations(range(len(lines)), 2)}

    def _fit(self, pair: tuple[int, int]) -> Floats:
        levels = {axis: self._grid_level(axis) for axis in pair}
        rows, columns = (self._block_sums(axis) for axis in pair)
        return rake_table(self._project(levels), rows, columns)

    def _project(self, levels: Mapping[int, int]) -> Floats:
        """The table of some columns at these levels, without the axes of the others."""
        lines = self.evidence.lines
        finest: Levels = tuple(levels.get(axis, 0) for axis in range(len(lines)))
        table = self.evidence.details.table(finest)
        table = table.reshape([length for axis, length in enumerate(table.shape) if axis in levels])
        table = table[tuple(slice(lines[axis].width(level)) for axis, level in levels.items())]
        return top_down(table, (self.question.branching,) * len(levels))

    def _grid_level(self, axis: int) -> int:
        """The finest level at which a view sees the column together with another one."""
        views = self.evidence.mixture.views
        return max(view.levels[axis] for view in views if sum(map(bool, view.levels)) == 2)

    def _block_sums(self, axis: int) -> Floats:
        """The shares of a column, summed over each cell of the grid."""
        span = self.evidence.lines[axis].span(self._grid_level(axis))
        return np.add.reduceat(self._columns[axis], np.arange(0, self._columns[axis].size, span))

    def _inside(self, axis: int, ends: Ends) -> Floats:
        """Of each cell of the grid, the part that lies between two cells of a column."""
        shares, line = self._columns[axis], self.evidence.lines[axis]
        starts = np.arange(0, line.size, line.span(self._grid_level(axis)))
        mask = _mask(ends, line.size)
        whole, part = (np.add.reduceat(values, starts) for values in (shares, shares * mask))
        cells = np.add.reduceat(mask, starts) / np.diff(starts, append=line.size)
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), cells)

    def _share(self, ends: Mapping[int, Ends]) -> float:
        axes = sorted(ends)
        sides = [float(self._columns[axis][ends[axis][0] : ends[axis][1] + 1].sum()) for axis in axes]
        if len(axes) == 1:
            return sides[0]
        pairs = {
            (axes.index(one), axes.index(other)): self._both(one, other, ends)
            for one, other in combinations(axes, 2)
        }
        return pairs[0, 1] if len(axes) == 2 else joint_share(np.array(sides), pairs)

    def _both(self, one: int, other: int, ends: Mapping[int, Ends]) -> float:
        rows, columns = self._inside(one, ends[one]), self._inside(other, ends[other])
        return float(rows @ self._pairs[one, other] @ columns)

    def _ends(self, box: Box) -> dict[int, Ends]:
        box = check_type(box, Mapping, "box", "must map columns to two ends", fix='as {"age": (30, 39)}')
        return {
            self._axis(name): domain_ends(self.question.domains[self._axis(name)], *_check_ends(given))
            for name, given in box.items()
        }

    def _axis(self, name: object) -> int:
        rule = f"must be one of {', '.join(self.question.columns)}"
        check(name in self.question.columns, "column", rule, given=name, fix="check its name")
        return self.question.columns.index(str(name))


def _mask(ends: Ends, size: int) -> Floats:
    mask = np.zeros(size)
    mask[ends[0] : ends[1] + 1] = 1.0
    return mask


def _check_ends(given: object) -> tuple[object, object]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        fix = "pass (low, high)"
        raise InvalidParameter("box", "must have two ends for each column", given=given, fix=fix)
    return given[0], given[1]


# What the supports of each view say about its nodes.


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
        return tuple((int(span.sum()), count_supports(part, span)) for part, span in parts)

    @property
    def implausible(self) -> bool:
        """Whether the shares of some view leave [0, 1] by more than noise explains."""
        views = len(self._supports)
        seen = [(law, *each) for law, each in zip(self.mixture.parts, self._supports, strict=True) if each[0]]
        return any(
            aggregate.implausible_cells(law, n, supported, checks=views).size
            or aggregate.implausible_total(law, n, supported, checks=views)
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
        seen = [self._node_counts(self._numbers[levels], at) for levels, at in nodes]
        n, supported, miss, gain = (np.array(each) for each in zip(*seen, strict=True))
        known = n > 0
        sides = aggregate.mean_bounds(supported / n.clip(1), n.clip(1), math.log(2 * len(nodes) / beta))
        low, high = (((side - miss) / gain).clip(0, 1) for side in sides)
        return min(1.0, float(low[known].sum())), min(1.0, float(high[known].sum() + (~known).sum()))

    def _node_counts(self, number: int, at: tuple[int, ...]) -> tuple[int, int, float, float]:
        """How many people reported a view, how many of them support a node, and with what chances."""
        (n, supported), part = self._supports[number], self.mixture.parts[number]
        place = int(np.ravel_multi_index(at, self.mixture.views[number].widths))
        return n, int(supported[place]), float(part.miss), float(part.hit - part.miss)


# From looks at several levels to one table that agrees with itself: least squares, in closed form.


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
    """Everything that the looks say about shares, with a total of one, level by level.

    The *detail* of a table at a level is what its nodes differ from the mean of their siblings. Every view
    that is at least as fine estimates it, with noise that adds up over the nodes summed. Details of different
    levels do not correlate, so the best estimate of each is the mean of all views by their precision.
    """

    lines: tuple[CellTree, ...]
    looks: tuple[Look, ...]

    @cached_property
    def precision(self) -> Mapping[Levels, float]:
        """How well each detail is known: the inverse variance of its nodes before siblings are compared."""
        told = {look.levels: 1 / look.variance for look in self.looks}
        return self._gather(told, lambda value, _: value)

    @cached_property
    def tables(self) -> Mapping[Levels, Floats]:
        """The estimated detail of every choice of levels; that of no level at all is the total."""
        told = {look.levels: look.table / look.variance for look in self.looks}
        gathered = self._gather(told, lambda table, axis: coarser(table, axis, self.lines[axis].branching))
        return {
            levels: np.ones((1,) * len(levels)) if not any(levels) else self._detail(levels, table)
            for levels, table in gathered.items()
        }

    def table(self, finest: Levels) -> Floats:
        """The shares of the nodes at these levels: all details down to there, added up from the top."""
        folded = dict(self.tables)
        for axis, last in enumerate(finest):
            folded = self._fold(folded, axis, last)
        return folded[finest]

    def variance(self, chosen: Sequence[Floats]) -> float:
        """The variance of the share of a box; `chosen` holds a mask of the cells for every column."""
        energies = [self._energies(axis, mask) for axis, mask in enumerate(chosen)]
        return sum(
            prod(energies[axis][level] for axis, level in enumerate(levels)) / precision
            for levels, precision in self.precision.items()
            if any(levels)
        )

    def _gather(self, told: Mapping[Levels, Any], summed: Callable[[Any, int], Any]) -> dict[Levels, Any]:
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

    def _fold(self, details: Mapping[Levels, Floats], axis: int, last: int) -> dict[Levels, Floats]:
        """Along one axis, from the root down: a node has its part of its parent, and its own detail."""
        folded = {}
        roots = [levels for levels in details if not levels[axis] and _at(levels, axis, last) in details]
        for levels in roots:
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


# Shares made non-negative from the top down: every node keeps its share, and its children get it.


def top_down(table: Floats, branchings: tuple[int, ...]) -> Floats:
    """The shares of cells, none below zero, one in all; sums of many cells stay as near as they can.

    Each node's share is divided among its children as near to their estimates as shares >= 0 can be, from the
    root down to the cells. With several axes the longest is divided last, in turn. To cut off at the cells
    alone would raise the sum of every stretch of empty ones, and the more the longer it is.

    >>> top_down(np.array([0.6, 0.5, -0.4, 0.3, 0.0]), (2,)).round(2).tolist()
    [0.55, 0.45, 0.0, 0.0, 0.0]
    """
    steps, tables = [], [table]
    while tables[-1].size > 1:
        axis = int(np.argmax(tables[-1].shape))
        steps.append(axis)
        tables.append(coarser(_pad_siblings(tables[-1], axis, branchings[axis], 0.0), axis, branchings[axis]))
    shares = np.ones_like(tables.pop())
    for axis, children in zip(reversed(steps), reversed(tables), strict=True):
        shares = _divide_shares(children, shares, axis, branchings[axis])
    return shares


def _divide_shares(children: Floats, parents: Floats, axis: int, branching: int) -> Floats:
    """The shares of parents among their children along one axis; a child that does not exist gets nothing."""
    last = np.moveaxis(_pad_siblings(children, axis, branching, -np.inf), axis, -1)
    rows = project_on_totals(last.reshape(-1, branching), np.moveaxis(parents, axis, -1).ravel())
    divided = np.moveaxis(rows.reshape(last.shape), -1, axis)
    return divided[tuple(slice(length) for length in children.shape)]


def _pad_siblings(table: Floats, axis: int, branching: int, filling: float) -> Floats:
    """The table with its last siblings along an axis filled up."""
    missing = -table.shape[axis] % branching
    widths = [(0, missing if at == axis else 0) for at in range(table.ndim)]
    return np.pad(table, widths, constant_values=filling)


# Tables that agree with tables of fewer columns, by proportional fitting [Deming and Stephan 1940].


def rake_table(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table scaled by rows and columns in turn, to these sums exactly.

    What scaling leaves is put right at the end: rows and columns that have too much are cut, and what is
    missing then is added as if independent [Altschuler, Weed, Rigollet 2017].
    """
    fitted = table
    for _ in range(_ROUNDS):
        fitted = fitted * _factor(rows, fitted.sum(axis=1))[:, np.newaxis]
        fitted = fitted * _factor(columns, fitted.sum(axis=0))
    fitted = fitted * _factor(rows, fitted.sum(axis=1)).clip(0, 1)[:, np.newaxis]
    fitted = fitted * _factor(columns, fitted.sum(axis=0)).clip(0, 1)
    row, column = rows - fitted.sum(axis=1), columns - fitted.sum(axis=0)
    return np.asarray(fitted + np.outer(row, column) / max(float(row.sum()), _LEAST))


def joint_share(sides: Floats, pairs: Mapping[tuple[int, int], float]) -> float:
    """The share inside of all sides at once, from the share inside of each and of every two.

    The table of all combinations of inside and outside is fitted to every two sides in turn. It starts from
    independence, so it ends with no more association than every two sides have.

    >>> round(joint_share(np.array([0.5, 0.5, 0.5]), {(0, 1): 0.25, (0, 2): 0.25, (1, 2): 0.25}), 6)
    0.125
    """
    count = len(sides)
    fitted = np.full((2,) * count, 2.0**-count)
    for _ in range(_ROUNDS):
        for (one, other), both in pairs.items():
            told = _two_by_two(float(sides[one]), float(sides[other]), both)
            others = tuple(axis for axis in range(count) if axis not in (one, other))
            factor = _factor(told, fitted.sum(axis=others))
            fitted = fitted * np.expand_dims(factor, others)
    return float(fitted[(1,) * count])


def _two_by_two(one: float, other: float, both: float) -> Floats:
    """Outside and inside of two sides."""
    both = min(both, one, other)
    return np.array([[1 - one - other + both, other - both], [one - both, both]]).clip(0.0)


def _factor(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)
