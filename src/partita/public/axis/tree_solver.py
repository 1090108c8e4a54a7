"""Trees that spend their budget where there is something to see, and estimates from what they saw.

`SpendingRule` says which nodes are looked at, in any number of dimensions. `TreeShape` and `TreeLooks` are
what is released. `TreeSolution` puts all looks together by exact least squares over the leaves, `TreeSolver`:
once up from the leaves and once down from the root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Floats, Ints, UInts
from partita.lazy import cached_property
from partita.public.axis.shrinkage import (
    measure_flat_groups,
    project_on_totals,
    shrink,
    sibling_variances,
    spread_over,
    sum_spans,
)
from partita.public.base import damaged
from partita.public.bounds import (
    Combination,
    LinearMeasurements,
    Posterior,
    RangePosition,
    half_width,
    laplace_variances,
)

UNITS: Final = 2**20
"""The whole budget of a path from the root to a leaf."""

SURE: Final = 3.0
"""A node is cut only if its count is more than so many noise scales."""

MOST_NODES: Final = 3_000_000
"""No level has more nodes, but for those that one expanded node may need."""

_HOPEFUL: Final = 2.0  # noise scales that a count may lie above its looks, to be worth another
_LARGEST_LOOK: Final = 2.0  # a second look costs at most so many times the first: more is wasted on leaves
_SMALLEST_LOOK: Final = 0.7  # and at least so many times: a smaller one would not tell
_MOST_LEVELS: Final = 512
_MOST_TREE_LEVELS: Final = 65
_LARGEST_SIZE: Final = 2**63
_LARGEST_TABLE: Final = 2**22  # numbers in a row for each parent: more take more memory than siblings do
_BATCH: Final = 2**18  # numbers solved together: more take more memory and no less time


class Fork(Protocol):
    """One level: how many children its boxes have at most, and how many levels there are from it on."""

    @property
    def children(self) -> int: ...

    @property
    def left(self) -> int: ...


@final
class LevelEvidence:
    """What the looks at the nodes of one level have shown so far, and the units that each has left."""

    def __init__(self, *, left: Ints, splittable: Bools) -> None:
        self.left = left
        self.splittable = splittable
        self.squares = np.zeros(left.size, dtype=np.int64)
        self._weighted = np.zeros(left.size)

    def pay(self, nodes: Ints, units: Ints) -> None:
        """Take the units for one look at each of the nodes; no node may owe any."""
        self.left[nodes] -= units
        if bool((units < 1).any()) or bool((self.left[nodes] < 0).any()):
            raise AssertionError("a look must cost at least one unit and no more than is left")

    def learn(self, nodes: Ints, units: Ints, noisy: NDArray[Any]) -> None:
        """Add what the looks gave: a look counts by the square of its units, the inverse of its variance."""
        squares = units**2
        self._weighted[nodes] += squares * noisy.astype(np.float64)
        self.squares[nodes] += squares

    @property
    def counts(self) -> Floats:
        """The mean of the looks at each node."""
        return self._weighted / self.squares


@dataclass(frozen=True, kw_only=True)
class SpendingRule:
    """Which nodes are looked at, with how many units, and which are cut further.

    It is a function of public numbers and of noisy counts already released. Budgets are whole units, UNITS of
    them for the root. A count enters only as a float that was made from released integers. Floats may be
    rounded in another way on another machine (powers are), and the same looks may then give another tree
    there; nothing depends on that, neither privacy nor a reader: the tree that was grown is released with
    its looks.

    A `unit` of budget is worth that much epsilon. A node is worth cutting while its count times the
    epsilon that is left exceeds `worth`; `growth` is the ratio of what successive levels spend, and
    counts are expected to fall by a factor of children^depth_power from level to level.
    """

    unit: float
    growth: Fraction
    worth: float
    depth_power: float

    @cached_property
    def shares(self) -> Floats:
        """The share of the next level if this many levels are to share what is left."""
        growth = float(self.growth)
        depths = np.arange(1.0, _MOST_LEVELS)
        if self.growth == 1:
            return np.concatenate([[0.0], 1 / depths])
        return np.concatenate([[0.0], (growth - 1) / np.expm1(depths * np.log(growth))])

    def first_look(self, fork: Fork, counts: Floats, budget: Ints) -> Ints:
        """The units that each box spends on a first look at its children, given its own count."""
        depth = self._depth(fork, counts * self.unit * budget)
        shared = np.maximum(1, np.floor(budget * self.shares[depth]).astype(np.int64))
        return np.where(depth > 1, shared, budget)

    def second_look(self, fork: Fork, evidence: LevelEvidence) -> tuple[Ints, Ints]:
        """The nodes whose worth is still in doubt, where one more look would tell, and its units."""
        spent = np.sqrt(evidence.squares)
        gain = (evidence.counts * self.unit + _HOPEFUL / spent) * evidence.left
        nodes = np.flatnonzero(self._open(evidence) & ~self._sure(evidence) & (gain > self.worth))
        share = self.shares[1 + self._depth(fork, gain[nodes])]
        most = np.minimum(_LARGEST_LOOK * spent[nodes], evidence.left[nodes] * share)
        units = np.maximum(1, np.floor(most).astype(np.int64))
        telling = units > _SMALLEST_LOOK * spent[nodes]
        return nodes[telling], units[telling]

    def cut(self, evidence: LevelEvidence, *, most: int) -> Bools:
        """The nodes that are cut further; if those are more than `most`, the ones with the largest counts."""
        chosen = self._open(evidence) & self._sure(evidence)
        if int(chosen.sum()) > most:
            order = np.argsort(np.where(chosen, -evidence.counts, np.inf), kind="stable")
            chosen[order[most:]] = False
        return chosen

    def _open(self, evidence: LevelEvidence) -> Bools:
        return evidence.splittable & (evidence.left > 0)

    def _sure(self, evidence: LevelEvidence) -> Bools:
        """Whether a count is far above its noise and worth what is left."""
        weight = evidence.counts * self.unit
        return (weight * np.sqrt(evidence.squares) > SURE) & (weight * evidence.left > self.worth)

    def _depth(self, fork: Fork, gain: Floats) -> Ints:
        """How many levels, this one included, a node of that count times epsilon is worth."""
        base = max(2.0, fork.children**self.depth_power)
        powers = self.worth * np.array([base**level for level in range(fork.left + 1)])
        return np.clip(np.searchsorted(powers, gain), 1, fork.left)


# The nodes of a released tree: boxes of cells, level by level, each level cutting up the one above.


class TreeLevel(NamedTuple):
    """Nodes of one level: their first and last cells, and whether they are cut further."""

    first: UInts
    last: UInts
    expanded: Bools


class Families(NamedTuple):
    """The nodes of one level, and where in it the children of each parent begin."""

    nodes: slice
    parents: Ints
    starts: Ints
    sizes: Ints

    def sum(self, children: Floats) -> Floats:
        """The sum over the children of each parent."""
        return np.asarray(np.add.reduceat(children, self.starts))

    def spread(self, parents: Floats) -> Floats:
        """The parent's number for each child."""
        return np.repeat(parents, self.sizes)

    def table(self) -> tuple[Ints, Bools]:
        """A row for each parent: the places of its children in the level, and which of them are there."""
        columns = np.arange(int(self.sizes.max()))
        there = columns < self.sizes[:, None]
        return np.where(there, self.starts[:, None] + columns, 0), there


@final
@dataclass(frozen=True, eq=False)
class TreeShape:
    """All nodes, the root first; `levels` says how many there are of each level.

    Nodes of a level are in the order of their cells. The children of an expanded node make it up
    exactly, so the nodes that are not expanded, the leaves, make up all cells.
    """

    levels: Ints
    first: UInts
    last: UInts
    expanded: Bools

    def __post_init__(self) -> None:
        count = self.first.size
        equal = self.last.size == self.expanded.size == count
        if not equal or not 2 <= self.levels.size <= _MOST_TREE_LEVELS:
            raise damaged("nodes", "must be as many of each kind")
        if bool((self.levels < 1).any()) or bool((self.levels > count).any()) or self.levels.sum() != count:
            raise damaged("nodes", "must be on the levels given")
        if self.levels[0] != 1 or self.first[0] != 0 or int(self.last[0]) >= _LARGEST_SIZE:
            raise damaged("nodes", "must begin with a root over cells 0, ..., size-1, size at most 2^63")
        if bool((self.first > self.last).any()) or bool((self.last > self.last[0]).any()):
            raise damaged("nodes", "must hold at least one cell each, and cells of the root only")
        self._check_levels()

    @staticmethod
    def join(levels: Sequence[TreeLevel]) -> TreeShape:
        """The shape that has these levels, from the root down."""
        sizes = np.array([level.first.size for level in levels])
        return TreeShape(sizes, *(np.concatenate(series) for series in zip(*levels, strict=True)))

    @cached_property
    def slices(self) -> list[slice]:
        """Where in the arrays the nodes of each level are."""
        ends = np.cumsum(self.levels).tolist()
        return [slice(begin, end) for begin, end in pairwise([0, *ends])]

    @cached_property
    def families(self) -> list[Families]:
        """Every level below the root, as children of their parents."""
        found = []
        for above, nodes in pairwise(self.slices):
            parents = above.start + np.flatnonzero(self.expanded[above])
            starts = np.searchsorted(self.first[nodes], self.first[parents])
            sizes = np.diff(starts, append=nodes.stop - nodes.start)
            found.append(Families(nodes, parents, starts, sizes))
        return found

    @cached_property
    def widths(self) -> Floats:
        """The number of cells of each node."""
        return (self.last - self.first).astype(np.float64) + 1.0

    @cached_property
    def leaves(self) -> Ints:
        """The nodes that are not expanded, in the order of their cells."""
        leaves = np.flatnonzero(~self.expanded)
        return leaves[np.argsort(self.first[leaves])]

    @cached_property
    def spans(self) -> tuple[Ints, Ints]:
        """The number of leaves before each node, and up to its end."""
        before = np.searchsorted(self.first[self.leaves], self.first)
        return before, np.searchsorted(self.last[self.leaves], self.last) + 1

    @cached_property
    def parents(self) -> Ints:
        """The parent of each node; the root's is the root."""
        below = [family.parents.repeat(family.sizes) for family in self.families]
        return np.concatenate([np.zeros(1, np.int64), *below])

    def _check_levels(self) -> None:
        """Each level must make up the expanded nodes of the level above, and the last one has none."""
        for above, nodes in pairwise(self.slices):
            outer = above.start + np.flatnonzero(self.expanded[above])
            first, last = self.first[nodes], self.last[nodes]
            follows = first[1:] == last[:-1] + np.uint64(1)
            opens = np.concatenate([[True], ~follows | np.isin(first[1:], self.first[outer])])
            closes = np.concatenate([opens[1:], [True]])
            begins_alike = np.array_equal(first[opens], self.first[outer])
            if not begins_alike or not np.array_equal(last[closes], self.last[outer]):
                raise damaged("nodes", "must make up the expanded nodes of the level above")
        if not self.expanded[0] or bool(self.expanded[self.slices[-1]].any()):
            raise damaged("nodes", "must end with leaves")


class _Level(NamedTuple):
    """One level's part of the elimination: how far each child gives way, and all children of a parent."""

    family: Families
    child: Floats
    together: Floats


class _Elimination(NamedTuple):
    """h for every node, and the levels, from the last one up."""

    stiffness: Floats
    levels: list[_Level]


class _Nodes(NamedTuple):
    """For every node: how far it gives way, its elder, its younger and all siblings, and its variance."""

    child: Floats
    elder: Floats
    younger: Floats
    together: Floats
    variance: Floats


class _Sides(NamedTuple):
    """One side of ranges, up to a node each: its part W there is weight X + something of that variance."""

    node: Ints
    weight: Floats
    variance: Floats

    def where(self, chosen: Bools) -> _Sides:
        """Some of them."""
        return _Sides(self.node[chosen], self.weight[chosen], self.variance[chosen])


@final
@dataclass(frozen=True, eq=False)
class TreeSolver:
    """Solves S x = right over the leaves of a tree, in the order of their cells.

    Every node has a `precision` for the sum X of the leaves below it, and an `affinity` to its siblings, one
    number in each family: x' S x is the sum of precision X^2 over all nodes and of
    affinity (X - mean of the siblings' X)^2.

    Given its own X, what is below a node costs h X^2 - 2 g X at least. From the leaves up, with
    k = h + affinity for each of b children and V the sum of their 1/k, a parent has
    h = precision + sum(h/k) / (b V) and g = sum(g/k) / V. From the root down, each child takes
    X = (g + l) / k, where l makes the children add up to their parent.
    """

    shape: TreeShape
    precision: Floats
    affinity: Floats

    def __call__(self, right: Floats) -> Floats:
        """The solution for each right side along the last axis, several at a time."""
        flat = right.reshape(-1, right.shape[-1])
        solved, together = np.empty_like(flat), max(1, _BATCH // flat.shape[1])
        for first in range(0, len(flat), together):
            rows = slice(first, first + together)
            solved[rows] = self._down(self._up(flat[rows]))[:, self.shape.leaves]
        return solved.reshape(right.shape)

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """The variance of the sum between two positions among the leaves, for each pair of positions.

        Given the sum X of a node, what is below it and the rest are independent, and its children vary by
        diag(c) - c c' / V, where c = 1/k. So both sides of a range climb from their leaves to the children
        of one node, and never subtract what they have added.
        """
        leaf = self.shape.leaves
        found = (last.share - first.share) ** 2 * self._nodes.variance[leaf[last.piece]]
        rows = np.flatnonzero(first.piece != last.piece)
        none = np.zeros(rows.size)
        low = _Sides(leaf[first.piece[rows]], 1.0 - first.share[rows], none)
        high = _Sides(leaf[last.piece[rows]], last.share[rows], none)
        for family in reversed(self.shape.families):
            met = self.shape.parents[low.node] == self.shape.parents[high.node]
            met &= np.minimum(low.node, high.node) >= family.nodes.start
            found[rows[met]] = self._join_sides(low.where(met), high.where(met))
            rows, low, high = rows[~met], low.where(~met), high.where(~met)
            low = self._lift_sides(low, self._nodes.younger, self._nodes.elder, family.nodes.start)
            high = self._lift_sides(high, self._nodes.elder, self._nodes.younger, family.nodes.start)
        return np.asarray(found)

    def error_tables(self) -> dict[str, NDArray[Any]]:
        """All that `range_variances` reads: numbers of nodes, the node of each leaf, and starts of levels."""
        starts = np.array([family.nodes.start for family in self.shape.families])
        places = {"leaves": self.shape.leaves, "parents": self.shape.parents, "levels": starts}
        return {**places, **self._nodes._asdict()}

    def _lift_sides(self, sides: _Sides, inside: Floats, outside: Floats, start: int) -> _Sides:
        """Sides that end in nodes from `start` on, up to their parents; siblings on one side are inside."""
        here = sides.node >= start
        node, weight, variance = sides.where(here)
        own, whole, rest = self._nodes.child[node], inside[node], outside[node]
        apart = own * whole * (1.0 - weight) ** 2 + rest * (weight**2 * own + whole)
        lifted = _Sides(sides.node.copy(), sides.weight.copy(), sides.variance.copy())
        lifted.node[here] = self.shape.parents[node]
        lifted.weight[here] = (weight * own + whole) / self._nodes.together[node]
        lifted.variance[here] = variance + apart / self._nodes.together[node]
        return lifted

    def _join_sides(self, low: _Sides, high: _Sides) -> Floats:
        """The variance of ranges from one child of a node to another one."""
        one, other = self._nodes.child[low.node], self._nodes.child[high.node]
        middle = np.maximum(self._nodes.elder[high.node] - self._nodes.elder[low.node] - one, 0.0)
        beside = self._nodes.elder[low.node] + self._nodes.younger[high.node]
        apart = beside * (low.weight**2 * one + middle + high.weight**2 * other)
        apart += middle * (one * (1.0 - low.weight) ** 2 + other * (1.0 - high.weight) ** 2)
        apart += one * other * (low.weight - high.weight) ** 2
        together = self._nodes.together[low.node]
        share = (low.weight * one + middle + high.weight * other) / together
        parent = self._nodes.variance[self.shape.parents[low.node]]
        return np.asarray(low.variance + high.variance + apart / together + share**2 * parent)

    def _up(self, right: Floats) -> Floats:
        """g for every node."""
        pull = np.zeros((len(right), self.precision.size))
        pull[:, self.shape.leaves] = right
        for family, child, together in self._eliminated.levels:
            moved = np.add.reduceat(pull[:, family.nodes] * child, family.starts, axis=1)
            pull[:, family.parents] = moved / together
        return pull

    def _down(self, pull: Floats) -> Floats:
        """X for every node."""
        sums = np.empty_like(pull)
        sums[:, 0] = pull[:, 0] / self._eliminated.stiffness[0]
        for family, child, together in reversed(self._eliminated.levels):
            lacking = sums[:, family.parents] / together - pull[:, family.parents]
            sums[:, family.nodes] = (pull[:, family.nodes] + lacking.repeat(family.sizes, axis=1)) * child
        return sums

    @cached_property
    def _eliminated(self) -> _Elimination:
        stiffness, levels = self.precision.copy(), []
        for family in reversed(self.shape.families):
            own = stiffness[family.nodes]
            child = 1.0 / (own + self.affinity[family.nodes])
            together = family.sum(child)
            stiffness[family.parents] += family.sum(own * child) / (family.sizes * together)
            levels.append(_Level(family, child, together))
        return _Elimination(stiffness, levels)

    @property
    def gains(self) -> Floats:
        """The weight of each node's own measurement against what is below it; 1 for a leaf."""
        return self.precision / self._eliminated.stiffness

    @cached_property
    def conditional(self) -> Floats:
        """The variance of each node by what is seen of it and below it; zero for the root."""
        found = np.zeros(self.precision.size)
        for family, child, _ in self._eliminated.levels:
            found[family.nodes] = child
        return found

    @cached_property
    def variances(self) -> Floats:
        """The variance of the estimate of each node."""
        found = np.zeros(self.precision.size)
        found[0] = 1.0 / self._eliminated.stiffness[0]
        for family, child, together in reversed(self._eliminated.levels):
            whole, share = family.spread(together), child / family.spread(together)
            found[family.nodes] = share * (whole - child) + share**2 * family.spread(found[family.parents])
        return found

    @cached_property
    def _nodes(self) -> _Nodes:
        """What ranges need to know about nodes; the siblings of one are summed up among themselves."""
        nodes = _Nodes(*(np.zeros(self.precision.size) for _ in _Nodes._fields))
        nodes.variance[0] = 1.0 / self._eliminated.stiffness[0]
        for family, child, together in reversed(self._eliminated.levels):
            own, whole = family.nodes, family.spread(together)
            nodes.child[own], nodes.together[own] = child, whole
            nodes.elder[own], nodes.younger[own] = _sum_siblings(family, child)
            share, above = child / whole, family.spread(nodes.variance[family.parents])
            nodes.variance[own] = share * (nodes.elder[own] + nodes.younger[own]) + share**2 * above
        return nodes


def _sum_siblings(family: Families, values: Floats) -> tuple[Floats, Floats]:
    """For each child the sum over its siblings before it, and over those behind it.

    They are summed up family by family, unless one family is so much larger than others that a table of all
    would be far larger than the level: then over the level, and rounded by what that is larger.
    """
    if int(family.sizes.max()) * family.sizes.size > max(_LARGEST_TABLE, 4 * values.size):
        upto = np.cumsum(values)
        elder = upto - values - family.spread((upto - values)[family.starts])
        younger = family.spread(upto[family.starts + family.sizes - 1]) - upto
        return np.maximum(elder, 0.0), np.maximum(younger, 0.0)
    places, there = family.table()
    siblings = np.where(there, values[places], 0.0)
    return _sum_before(siblings)[there], _sum_before(siblings[:, ::-1])[:, ::-1][there]


def _sum_before(rows: Floats) -> Floats:
    """The sum of what stands before each number in its row."""
    return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows[:, :-1], axis=1)], axis=1)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LastLooks:
    """The last look at each leaf, in the order of their cells: `values` with noise of the `rates`.

    A leaf spends all that it has left on its last look, so that look decided nothing: given all
    others, the last looks are independent noisy counts of leaves that are fixed.
    """

    ends: UInts
    values: Floats
    rates: Floats

    def combined(self, weights: Floats) -> Combination:
        """The weighted sum of the last looks."""
        return Combination(float(weights @ self.values), weights, self.rates)


class NodeTree(Protocol):
    """Nodes that were looked at: which of them are cut further, and each level as children of its parents."""

    @property
    def expanded(self) -> Bools: ...

    @property
    def families(self) -> list[Families]: ...


@final
@dataclass(frozen=True, eq=False)
class TreeLooks:
    """Looks at `nodes` that cost `units` each and gave `noisy` counts, in the order of their release.

    They were taken in steps, all looks of a step at once: `steps` says how many each step took.
    What is looked at in a step, and with how many units, was decided by the steps before.
    """

    steps: Ints
    nodes: Ints
    units: Ints
    noisy: NDArray[Any]

    @staticmethod
    def step(nodes: Ints, units: Ints, noisy: NDArray[Any]) -> TreeLooks:
        """The looks of one step."""
        return TreeLooks(np.array([nodes.size]), nodes, units, noisy)

    @staticmethod
    def join(steps: Sequence[TreeLooks]) -> TreeLooks:
        """Steps, one after another."""
        series = zip(*((each.steps, each.nodes, each.units, each.noisy) for each in steps), strict=True)
        return TreeLooks(*map(np.concatenate, series))

    @cached_property
    def values(self) -> Floats:
        """The noisy counts as floats."""
        return self.noisy.astype(np.float64)

    def rates(self, unit: float) -> Floats:
        """The inverse of the noise scale of each look."""
        return np.asarray(self.units.astype(np.float64) * unit)

    def means(self, count: int, unit: float) -> tuple[Floats, Floats]:
        """The mean of the looks at each of `count` nodes, and its variance; infinite where there is none."""
        precisions = 1.0 / laplace_variances(self.rates(unit))
        precision, weighted = np.zeros(count), np.zeros(count)
        np.add.at(precision, self.nodes, precisions)
        np.add.at(weighted, self.nodes, precisions * self.values)
        seen = precision > 0
        means = np.divide(weighted, precision, out=np.zeros(count), where=seen)
        return means, np.divide(1.0, precision, out=np.full(count, np.inf), where=seen)

    def last(self, count: int) -> Ints:
        """The last look at each of `count` nodes; -1 where there was none."""
        last = np.full(count, -1)
        last[self.nodes] = np.arange(self.nodes.size)
        return last

    def first(self, count: int) -> Ints:
        """The first look at each of `count` nodes; -1 where there was none."""
        first = np.full(count, -1)
        first[self.nodes[::-1]] = np.arange(self.nodes.size)[::-1]
        return first

    def spent(self, count: int, families: Sequence[Families]) -> Ints:
        """The units that were spent on the path from the root down to each of `count` nodes."""
        spent = np.zeros(count, dtype=np.int64)
        np.add.at(spent, self.nodes, self.units)
        for family in families:
            spent[family.nodes] += spent[family.parents].repeat(family.sizes)
        return spent

    def reach(self, unit: float, beta: float) -> Floats:
        """How far each look may lie from its count; all of them are right with probability 1 - beta.

        Step l with K looks gives each a share beta 6/(pi^2 l^2 K), known before the step is taken, and
        the shares add up to at most beta.
        """
        at = np.repeat(np.arange(1, self.steps.size + 1), self.steps)
        looks = np.repeat(self.steps, self.steps)
        return half_width(self.rates(unit), np.log(beta * 6 / (math.pi * at) ** 2 / looks))

    def check(self, tree: NodeTree, *, first: int = 1) -> None:
        """Refuse looks that are not of this tree, or that spend more than the budget of a path.

        Every node from `first` on must have been looked at, and none before it.
        """
        count, looks = tree.expanded.size, self.nodes.size
        if not self.units.size == self.noisy.size == looks or bool((self.steps < 1).any()):
            raise damaged("looks", "must be as many of each kind")
        if bool((self.steps > looks).any()) or self.steps.sum() != looks:
            raise damaged("looks", "must be taken in the steps given")
        if not looks or int(self.nodes.min()) < first or int(self.nodes.max()) >= count:
            raise damaged("looks", "must be at nodes of the tree")
        if int(self.units.min()) < 1 or int(self.units.max()) > UNITS:
            raise damaged("looks", f"must cost between 1 and {UNITS} units")
        if bool((self.first(count)[first:] < 0).any()):
            raise damaged("looks", "must be at every node")
        if int(self.spent(count, tree.families).max()) > UNITS:
            raise damaged("looks", f"must cost at most {UNITS} units on every path")


class _Estimates(NamedTuple):
    """A value and a variance for every node."""

    values: Floats
    variances: Floats


@final
@dataclass(frozen=True, eq=False)
class TreeSolution:
    """From the looks at a tree to one estimate for every leaf: noisy counts of all nodes put together.

    Leaves are shrunk by empirical Bayes unless their siblings look flat; then they and the noisy
    counts of the nodes above them are solved as one least-squares problem; then the solution is
    carried down from the root, each group of siblings projected on counts >= 0 with their sum.
    An infinite variance is that of a number that says nothing.
    """

    shape: TreeShape
    noisy: Floats
    variances: Floats

    @cached_property
    def posterior(self) -> Posterior:
        """The least-squares problem over the leaves, in the order of their cells."""
        measured = [self._nodes] + ([self._flat] if self._flat else [])
        return Posterior(self.solver.precision[self.shape.leaves], measured, self.solver)

    @cached_property
    def solver(self) -> TreeSolver:
        """What solves that problem."""
        precision = 1.0 / np.where(self.shape.expanded, self.variances, self._smoothed.variances)
        return TreeSolver(self.shape, precision, 1.0 / self._between)

    @cached_property
    def leaves(self) -> Floats:
        """The count of each leaf, in the order of their cells; never negative."""
        rows = [self.noisy[self._measured]] + ([np.zeros(self._flat.precision.size)] if self._flat else [])
        solved = self.posterior.mean(self._smoothed.values[self.shape.leaves], rows)
        return self._carry_down(solved)[self.shape.leaves]

    def variance(self, weights: Floats) -> float:
        """The variance of the weighted sum of the solved leaves."""
        return self.posterior.variance(weights)

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
        """The variances of sums of the solved leaves between two positions."""
        return self.solver.range_variances(first, last)

    def error_tables(self) -> dict[str, NDArray[Any]]:
        """All that `range_variances` reads."""
        return self.solver.error_tables()

    @cached_property
    def _measured(self) -> Ints:
        """The nodes above the leaves whose noisy counts say something."""
        return np.flatnonzero(self.shape.expanded & np.isfinite(self.variances))

    @cached_property
    def _nodes(self) -> LinearMeasurements:
        low, behind = (end[self._measured] for end in self.shape.spans)
        units = self.shape.leaves.size
        return LinearMeasurements(
            lambda leaves: sum_spans(low, behind, leaves),
            lambda nodes: spread_over(low, behind, nodes, units),
            1.0 / self.variances[self._measured],
        )

    @cached_property
    def _raised(self) -> _Estimates:
        """Shrunk leaves, and for each expanded node the best of its own count and its children's."""
        values, variances = self.noisy.copy(), self.variances.copy()
        scales = np.sqrt(self.variances / 2)
        for family in reversed(self.shape.families):
            leaves = family.nodes.start + np.flatnonzero(~self.shape.expanded[family.nodes])
            above = self.shape.parents[leaves]
            expected = self.noisy[above] * self.shape.widths[leaves] / self.shape.widths[above]
            values[leaves], variances[leaves] = shrink(self.noisy[leaves], scales[leaves], expected)
            below, doubt = family.sum(values[family.nodes]), family.sum(variances[family.nodes])
            own = 1.0 / self.variances[family.parents]
            variances[family.parents] = 1.0 / (own + 1.0 / doubt)
            values[family.parents] = own * self.noisy[family.parents] + below / doubt
            values[family.parents] *= variances[family.parents]
        return _Estimates(values, variances)

    @cached_property
    def _between(self) -> Floats:
        """For every node the variance between it and its siblings; infinite where they do not look flat."""
        between = np.full(self.noisy.size, np.inf)
        leaf = ~self.shape.expanded
        values = np.where(leaf, self.noisy, self._raised.values)
        variances = np.where(leaf, self.variances, self._raised.variances)
        for family in self.shape.families:
            complete = self._complete(family)
            if complete.shape[1] > 2 and complete.size:
                nodes = family.nodes.start + complete
                between[nodes] = sibling_variances(values[nodes], variances[nodes])[:, None]
        return between

    def _complete(self, family: Families) -> Ints:
        """The groups of a level with as many children as any, all of one width: a row of places for each."""
        places, there = family.table()
        widths = self.shape.widths[family.nodes][places]
        return np.asarray(places[there.all(1) & (widths == widths[:, :1]).all(1)])

    @cached_property
    def _smoothed(self) -> _Estimates:
        """Leaves of flat groups as they were seen, for the least squares to smooth; the others shrunk."""
        seen = np.isfinite(self._between) & ~self.shape.expanded
        return _Estimates(
            np.where(seen, self.noisy, self._raised.values),
            np.where(seen, self.variances, self._raised.variances),
        )

    @cached_property
    def _flat(self) -> LinearMeasurements | None:
        """Groups of siblings that look flat, as measurements."""
        nodes = np.flatnonzero(np.isfinite(self._between))
        if not nodes.size:
            return None
        low, behind = (end[nodes] for end in self.shape.spans)
        _, group = np.unique(self.shape.parents[nodes], return_inverse=True)
        return measure_flat_groups(low, behind, group, self._between[nodes], self.shape.leaves.size)

    def _carry_down(self, solved: Floats) -> Floats:
        """Every node's count, from the root down: siblings share what their sum lacks, none negative."""
        counts = sum_spans(*self.shape.spans, solved)
        counts[0] = max(0.0, counts[0])
        doubt = self._smoothed.variances
        for family in self.shape.families:
            own, weight = counts[family.nodes], doubt[family.nodes]
            lacking = (counts[family.parents] - family.sum(own)) / family.sum(weight)
            places, there = family.table()
            wanted = np.where(there, (own + weight * family.spread(lacking))[places], -np.inf)
            counts[family.nodes] = project_on_totals(wanted, counts[family.parents])[there]
        return np.asarray(counts)
