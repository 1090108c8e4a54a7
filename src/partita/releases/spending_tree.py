"""A released spending tree: every look at every node, and the ranges that it answers."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors import InvalidParameter, InvalidRelease
from partita.exact import failure, freeze, rational
from partita.guarantee import Guarantee
from partita.inference.band import widest_miss
from partita.inference.clustering import clustering
from partita.inference.curve import Curve, Floats, UInts
from partita.inference.linear_ranges import LinearRanges
from partita.inference.spending_plan import UNITS
from partita.inference.tree_evidence import LastLooks, LeafModel
from partita.inference.tree_intervals import TreeIntervals
from partita.inference.tree_looks import TreeLooks
from partita.inference.tree_shape import TreeShape
from partita.inference.tree_solution import TreeSolution
from partita.releases.noisy_sum import checked, checked_ranges
from partita.releases.ranges import Json, Parts, Ranges, Term
from partita.releases.reading import PartsReader

__all__ = ["SpendingTreeRelease"]

_WIDENING: Final = 1.4
"""The calibrated factor of standard errors; how it was found is in docs/proofs/spending_tree.md."""

_FACTS: Final = ("size", "scale", "total", "total_scale", "branching", "growth", "worth", "depth_power")
_SERIES: Final = ("levels", "first", "last", "expanded", "steps", "nodes", "units", "noisy")
_LARGEST_TOTAL: Final = 2**127
_FIX: Final = "get the file again from where it was published"


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
        """About the standard error of each range."""
        return self._linear.errors(*checked_ranges(lows, highs, self.size))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no range at all misses the truth by more."""
        lower, upper = self._intervals(float(failure(beta))).prefixes()
        return widest_miss(self.curve.before, lower, upper, self.curve.widths > 1)

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        return (
            f"For a total of about {self.total:,} rows it grew a tree with up to {self.branching} children "
            f"a node; {self.shape.leaves.size:,} intervals are counted at its leaves."
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
        known = parts.facts["total_scale"] is not None
        release = cls(
            shape=_shape(parts),
            looks=_looks(parts, reader),
            scale=reader.scale("scale"),
            total=reader.integer("total", low=-_LARGEST_TOTAL, high=_LARGEST_TOTAL),
            total_scale=reader.scale("total_scale") if known else None,
            branching=reader.integer("branching", low=2, high=2**8),
            growth=_rational(parts, "growth"),
            worth=_rational(parts, "worth"),
            depth_power=_rational(parts, "depth_power"),
            guarantee=guarantee,
        )
        if parts.facts["size"] != release.size:
            raise InvalidRelease("size", "must be that of the root", fix=_FIX)
        return release

    @cached_property
    def _unit(self) -> float:
        """The rate of a look of one unit."""
        return float(1 / self.scale)

    @cached_property
    def _solution(self) -> TreeSolution:
        noisy, squares = self.looks.means(self.shape.first.size)
        noisy[0] = self.total
        with np.errstate(divide="ignore"):
            variances = 2.0 / (squares * self._unit**2)
        variances[0] = np.inf if self.total_scale is None else 2.0 * float(self.total_scale) ** 2
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
            model=LeafModel(posterior=self._solution.posterior, digest=_digest(self.parts())),
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


def _digest(parts: Parts) -> bytes:
    """A public digest of everything that was released."""
    digest = hashlib.sha256(repr(sorted(parts.facts.items())).encode())
    for name in _SERIES:
        values = parts.series[name]
        digest.update(repr(values.tolist()).encode() if values.dtype == object else values.tobytes())
    return digest.digest()


def _shape(parts: Parts) -> TreeShape:
    expanded = _array(parts, "expanded", np.int64)
    if bool((expanded & ~1).any()):
        raise InvalidRelease("expanded", "must be 0 or 1", fix=_FIX)
    first, last = _array(parts, "first", np.uint64), _array(parts, "last", np.uint64)
    return TreeShape(_array(parts, "levels", np.int64), first, last, expanded.astype(bool))


def _looks(parts: Parts, reader: PartsReader) -> TreeLooks:
    nodes = _array(parts, "nodes", np.int64)
    noisy = reader.noisy("noisy", count=nodes.size)
    return TreeLooks(_array(parts, "steps", np.int64), nodes, _array(parts, "units", np.int64), noisy)


def _array(parts: Parts, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    values: object = parts.series[name]
    if not isinstance(values, np.ndarray) or values.dtype != dtype or values.ndim != 1 or not values.size:
        raise InvalidRelease(name, f"must be a row of {dtype.__name__}", fix=_FIX)
    return values


def _rational(parts: Parts, name: str) -> Fraction:
    try:
        value = parts.facts[name]
        return rational(value if isinstance(value, str) else None, name)
    except InvalidParameter:
        raise InvalidRelease(name, "must be a number as text", fix=_FIX) from None
