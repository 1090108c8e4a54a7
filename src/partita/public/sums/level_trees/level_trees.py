"""Released level trees: sums, means and variances of a column over any box of the keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.domain.axis import Axis
from partita.domain.base.base import Domain
from partita.errors.checks import check
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.bounds.tails import laplace_sum_reach, laplace_variance
from partita.public.boxes.base.axes import checked_terms
from partita.public.boxes.base.boxes import BoxTerm
from partita.public.sums.base.answers import Ratio, SumAnswer
from partita.public.sums.base.sums import SumRelease
from partita.public.sums.base.value_line import ValueLine
from partita.public.sums.knots.buckets import Buckets
from partita.public.sums.level_trees.controls import Controls
from partita.public.sums.level_trees.level_estimate import LevelEstimate, Trees
from partita.public.sums.parts.cut import MOST_PARTS, Cut, KeyCounts
from partita.public.sums.parts.part_tree import PartTree

_FACTS: Final = ("degree", "branching", "bucket_scale", "scale")
_SERIES: Final = ("along", "at", "buckets", "noisy")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LevelTreesRelease(SumRelease):
    """Noisy masses on every node of the trees over the parts of the keys, and noisy counts of magnitudes.

    `noisy` holds them in whole units, all nodes of one control after the other. Everything else follows: the
    caps from the counts of magnitudes, answers by least squares. Questions are boxes of the keys' positions;
    `density` is what was released about the keys and says how rows lie inside of a part.
    `guarantee` is None if the release was made with injected noise.
    """

    kind: ClassVar[str] = "level-trees"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"level-trees": ()}
    max_series: ClassVar[int] = 4

    keys: tuple[Axis, ...]
    value: ValueLine
    cut: Cut
    degree: int
    branching: int
    buckets: NDArray[Any]
    bucket_scale: Fraction
    noisy: NDArray[Any]
    scale: Fraction
    guarantee: Guarantee | None = None

    def sum(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> SumAnswer:
        """The sum of the values, with what it covers."""
        return self._asked(terms, density).sum

    def count(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Answer:
        """How many rows hold a number."""
        return self._asked(terms, density).count

    def nulls(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Answer:
        """How many rows hold none."""
        return self._asked(terms, density).nulls

    def mean(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Ratio:
        """The mean of the values that the sum covers."""
        return self._asked(terms, density).mean

    def variance(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Ratio:
        """The variance of the values that it covers; for releases with moments."""
        return self._with_moments(terms, density).variance

    def std(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> Ratio:
        """The standard deviation of the values that it covers; for releases with moments."""
        return self._with_moments(terms, density).std

    @property
    def moments(self) -> bool:
        """Whether there are variances."""
        return self.degree == 2

    @property
    def everything(self) -> BoxTerm:
        """The box of all keys."""
        return BoxTerm(tuple(0 for _ in self.keys), tuple(axis.width - 1 for axis in self.keys))

    @property
    def specials(self) -> dict[str, Answer]:
        """How many rows lie below and above the declared bounds, and how many are invalid and null."""
        below, above = map(self._bucket, self._magnitudes.outside(self.buckets))
        whole = self._asked([self.everything], None)
        return {"below": below, "above": above, "invalid": whole.invalid, "null": whole.null}

    @cached_property
    def controls(self) -> Controls:
        """What is counted for each part."""
        tops = self._magnitudes.tops(self.buckets, self.bucket_scale)
        return Controls(self.value, tops, self.degree)

    @cached_property
    def trees(self) -> Trees:
        """The noisy trees, ready to be asked."""
        tree = PartTree(self.cut.parts, self.branching)
        noisy = self.noisy.reshape(self.controls.size, tree.nodes)
        past = self._magnitudes.past(self.buckets, self.controls.tops)
        return Trees(self.controls, tree, noisy, self.scale, past, self.bucket_scale)

    @property
    def story(self) -> str:
        """What was chosen on the way."""
        line, tops = self.value, self.controls.tops
        low, high = -min(tops.down or 0, line.down), min(tops.up or 0, line.up)
        parts = f"{self.cut.parts:,} parts of the keys" if self.cut.parts > 1 else "all rows together"
        return (
            f"Values are told apart from {line.number(low):,.6g} to {line.number(high):,.6g}; "
            f"sums are over {parts}."
        )

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one bucket, and has one unit of mass on every level of the trees."""
        return 1 / self.bucket_scale + self.trees.tree.levels * self.controls.unit / self.scale

    def parts(self) -> Parts:
        """The noisy numbers, their scales, and how the keys are cut."""
        facts: dict[str, Json] = {
            "degree": self.degree,
            "branching": self.branching,
            "bucket_scale": str(self.bucket_scale),
            "scale": str(self.scale),
        }
        series = {"along": self.cut.along, "at": self.cut.at, "buckets": self.buckets, "noisy": self.noisy}
        return Parts(facts, series)

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis], value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader, line = PartsReader(parts), ValueLine.of(value)
        reader.expect(facts=_FACTS, series=_SERIES)
        cut = Cut(tuple(keys), reader.row("along", np.int64), reader.row("at", np.uint64))
        degree = reader.integer("degree", low=1, high=2)
        branching = reader.integer("branching", low=min(2, cut.parts), high=max(2, MOST_PARTS))
        buckets = reader.noisy("buckets", count=Buckets(line).size)
        bucket_scale = reader.scale("bucket_scale")
        controls = Controls(line, Buckets(line).tops(buckets, bucket_scale), degree)
        return cls(
            keys=tuple(keys),
            value=line,
            cut=cut,
            degree=degree,
            branching=branching,
            buckets=buckets,
            bucket_scale=bucket_scale,
            noisy=reader.noisy("noisy", count=controls.size * PartTree(cut.parts, branching).nodes),
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )

    def _asked(self, terms: Sequence[BoxTerm], density: KeyCounts | None) -> LevelEstimate:
        return self.trees.asked(self.cut.laid(checked_terms(terms, self.keys), density))

    def _with_moments(self, terms: Sequence[BoxTerm], density: KeyCounts | None) -> LevelEstimate:
        rule = "must have been asked for when the release was made"
        check(self.moments, "moments", rule, given=False, fix="publish with moments=[...]")
        return self._asked(terms, density)

    def _bucket(self, noisy: int) -> Answer:
        """The noisy count of one bucket."""

        def bounds(beta: float) -> tuple[float, float]:
            reach = laplace_sum_reach(self.bucket_scale, 1, beta)
            return noisy - reach, noisy + reach

        return Answer(float(noisy), lambda: math.sqrt(laplace_variance(self.bucket_scale)), bounds)

    @property
    def _magnitudes(self) -> Buckets:
        return Buckets(self.value)
