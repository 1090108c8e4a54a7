"""A released spending tree: every look at every node, and the ranges that it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Final, Self, final

import numpy as np

from partita.answer import Answer
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, freeze
from partita.public.axis.base.noisy_sum import checked, checked_ranges
from partita.public.axis.base.ranges import Json, Parts, Ranges, Term
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.axis.shrinkage.clustering import clustering
from partita.public.axis.spending_tree.tree_intervals import TreeIntervals
from partita.public.axis.tree_solver.spending_rule import UNITS
from partita.public.axis.tree_solver.tree_evidence import LastLooks, LeafModel
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.axis.tree_solver.tree_shape import TreeShape
from partita.public.axis.tree_solver.tree_solution import TreeSolution
from partita.public.base.released import LARGEST_NUMBER, damaged
from partita.public.bounds.band import widest_miss
from partita.public.bounds.linear_ranges import LinearRanges
from partita.public.bounds.tails import laplace_variance

_WIDENING: Final = 1.45
"""The calibrated factor of standard errors; how it was found is in docs/proofs/spending_tree.md."""

_FACTS: Final = ("size", "scale", "total", "total_scale", "branching", "growth", "worth", "depth_power")
_SERIES: Final = ("levels", "first", "last", "expanded", "steps", "nodes", "units", "noisy")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SpendingTreeRelease(Ranges):
    """A tree over the cells and all looks at its nodes, in the order in which they were taken.

    A look of k units has noise of `scale` / k, and no path has more than 2^20 units. `total` is the
    public number that the tree began with: a noisy count if `total_scale` tells its noise, else a
    guess. The rest are the public parameters of the tree. The last look at a leaf decided nothing;
    all other looks decided what was looked at next.
    """

    kind: ClassVar[str] = "spending-tree"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"intervals": ("DNRR15",), "spending-tree": ()}
    max_series: ClassVar[int] = 8

    size: int = field(init=False)
    shape: TreeShape
    looks: TreeLooks
    scale: Fraction
    total: int
    total_scale: Fraction | None
    branching: int
    growth: Fraction
    worth: Fraction
    depth_power: Fraction
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, size=int(self.shape.last[0]) + 1)
        self.looks.check(self.shape)

    @cached_property
    def curve(self) -> Curve:
        """Cumulative counts of the solved tree."""
        return Curve(self.shape.last[self.shape.leaves], self._solution.leaves)

    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question."""
        asked = checked(terms, self.size)
        return replace(self._linear.answer(asked), bounds=partial(self._bounds, asked))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The value of each range."""
        return self._linear.counts(*checked_ranges(lows, highs, self.size))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard error of each range."""
        return self._linear.errors(*checked_ranges(lows, highs, self.size))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range at all misses the truth by more."""
        lower, upper = self._intervals(float(failure(beta))).prefixes()
        return widest_miss(self.curve.before, lower, upper, self.curve.widths > 1)

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        return (
            f"For a total of about {max(0, self.total):,} rows it grew a tree with up to {self.branching} "
            f"children a node; {self.shape.leaves.size:,} intervals are counted at its leaves."
        )

    def parts(self) -> Parts:
        """All nodes, all looks, and the public facts."""
        shape, looks = self.shape, self.looks
        facts: dict[str, Json] = {
            "size": self.size,
            "scale": str(self.scale),
            "total": self.total,
            "total_scale": None if self.total_scale is None else str(self.total_scale),
            "branching": self.branching,
            "growth": str(self.growth),
            "worth": str(self.worth),
            "depth_power": str(self.depth_power),
        }
        return Parts(
            facts,
            {
                "levels": shape.levels,
                "first": shape.first,
                "last": shape.last,
                "expanded": shape.expanded.astype(np.int64),
                "steps": looks.steps,
                "nodes": looks.nodes,
                "units": looks.units,
                "noisy": looks.noisy,
            },
        )

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=_FACTS, series=_SERIES)
        release = cls(
            shape=_shape(reader),
            looks=_looks(reader),
            scale=reader.scale("scale"),
            total=reader.integer("total", low=-LARGEST_NUMBER, high=LARGEST_NUMBER),
            total_scale=reader.optional("total_scale", reader.scale),
            branching=reader.integer("branching", low=2, high=2**8),
            growth=reader.rational("growth"),
            worth=reader.rational("worth"),
            depth_power=reader.rational("depth_power"),
            guarantee=guarantee,
        )
        if parts.facts["size"] != release.size:
            raise damaged("size", "must be that of the root")
        return release

    @cached_property
    def _unit(self) -> float:
        """The rate of a look of one unit."""
        return float(1 / self.scale)

    @cached_property
    def _solution(self) -> TreeSolution:
        noisy, variances = self.looks.means(self.shape.first.size, self._unit)
        noisy[0] = self.total
        variances[0] = np.inf if self.total_scale is None else laplace_variance(self.total_scale)
        return TreeSolution(self.shape, noisy, variances)

    @cached_property
    def _linear(self) -> LinearRanges:
        last = self.looks.last(self.shape.first.size)[self.shape.leaves]
        looks = LastLooks(
            ends=self.curve.ends, values=self.looks.values[last], rates=self.looks.rates(self._unit)[last]
        )
        return LinearRanges(
            curve=self.curve,
            pieces=self.curve,
            model=LeafModel(posterior=self._solution.posterior, solver=self._solution.solver),
            certain=(looks,),
            held=self._held,
            clustering=clustering(self.curve, noise=math.sqrt(2.0) * self._noise),
            widening=_WIDENING,
            least_variance=1.0 + self._noise**2,
        )

    @property
    def _noise(self) -> float:
        """The scale of a look that takes all of a path's budget."""
        return 1.0 / (self._unit * UNITS)

    @property
    def _held(self) -> Floats:
        """What a leaf may hold if it is cut: the root mean square of its count."""
        return np.sqrt(self.curve.counts**2 + 1.0 / self._solution.posterior.precision)

    def _intervals(self, beta: float) -> TreeIntervals:
        return TreeIntervals.of(self.shape, self.looks, self._unit, beta)

    def _bounds(self, terms: list[Term], beta: float) -> tuple[float, float]:
        """What the intervals of nodes allow, and what the last looks at leaves do, with half of beta each."""
        nodes = self._intervals(beta / 2).signed_sum(terms)
        leaves = self._linear.bounds(terms, beta / 2)
        return max(nodes[0], leaves[0]), min(nodes[1], leaves[1])


def _shape(reader: PartsReader) -> TreeShape:
    expanded = reader.row("expanded", np.int64)
    if bool((expanded & ~1).any()):
        raise damaged("expanded", "must be 0 or 1")
    first, last = reader.row("first", np.uint64), reader.row("last", np.uint64)
    return TreeShape(reader.row("levels", np.int64), first, last, expanded.astype(bool))


def _looks(reader: PartsReader) -> TreeLooks:
    steps, nodes, units = (reader.row(name, np.int64) for name in ("steps", "nodes", "units"))
    return TreeLooks(steps, nodes, units, reader.noisy("noisy", count=nodes.size))
