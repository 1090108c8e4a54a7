"""A released partition with tents over its segments: any interval of a huge universe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.cubic import refined
from partita.public.axis.curve.curve import Curve, UInts
from partita.public.axis.curve.leaning import leaning
from partita.public.axis.shrinkage.clustering import clustering
from partita.public.axis.tent_solver.tent_counts import TentCounts, TentEvidence
from partita.public.axis.tent_solver.tent_estimate import UnitCounts, unit_counts, unit_counts_with_atoms
from partita.public.axis.tent_solver.tent_pairs import PairEvidence, Pairs, with_last_cells_apart
from partita.public.axis.tent_solver.tent_strategy import MOST_LEVELS
from partita.public.axis.tents.tent_budget import LARGEST_FULL, LITTLE, informed
from partita.public.axis.tents.tents import TentRanges, tent_facts, tent_series, tents_of
from partita.public.axis.tree.cut import Cut
from partita.public.base.released import LARGEST_NUMBER, damaged, noise_rate
from partita.public.bounds.linear_ranges import NO_DOUBTS, Doubts, LinearRanges, Looks, Model

_WIDENING: Final = 1.35
"""The calibrated factor of standard errors; how it was found is in docs/proofs/partition_tents.md."""

_LARGEST_SIZE: Final = 2**64
_FACTS: Final = ("size", "total", "epsilon_per_row", "filled", "full", "pair_rate")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionTentsRelease(TentRanges):
    """Segments of a universe and tents over them.

    `cut` is None if the cells turned out to be well filled and all are units. `pairs` is None if the
    last cells of segments are units of their own. `total` and `rate` (epsilon for each row by which
    neighbours may differ) are the public numbers that decided how epsilon was divided; `filled` is the
    noisy answer to the question whether cells are well filled. `guarantee` is None if the release was
    made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "partition-tents"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "intervals": ("DNRR15",),
        "partition-tents": ("DNRR15",),
    }
    max_series: ClassVar[int] = 3 + MOST_LEVELS

    size: int
    total: int
    rate: Fraction
    filled: int | None
    cut: Cut | None
    tents: TentCounts
    pairs: Pairs | None
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        noise_rate(self.rate, "epsilon_per_row")
        if self.cut is None and (self.pairs is not None or self.size > LARGEST_FULL):
            raise damaged("full", "must not be set for pairs or a huge universe")
        if self.cut is not None and (self.cut.start, self.cut.last) != (0, self.size - 1):
            raise damaged("ends", "must reach from the first cell to the last")
        if self.pairs is not None and self.pairs.last.size != np.count_nonzero(self._wide):
            raise damaged("last", "must be one for each segment of several cells")
        if self.tents.units != self._unit_ends.size:
            raise damaged("level0", "must be one for each unit")

    @cached_property
    def units(self) -> Curve:
        """The estimated count of each unit."""
        return Curve(self._unit_ends, self._estimate.counts)

    @cached_property
    def linear(self) -> LinearRanges:
        """The estimates and the looks behind them."""
        looks = TentEvidence(
            counts=self.tents,
            ends=self.units.ends,
            roughness=self._estimate.roughness,
        )
        if self.pairs is None:
            return self._ranges(self.units, looks, (looks,), NO_DOUBTS)
        every = PairEvidence(units=looks, split=self._wide, pairs=self.pairs)
        telling = PairEvidence.telling(looks, self.units, self.pairs)
        pieces = Curve(telling.ends, telling.counts(self.units.counts))
        return self._ranges(pieces, telling, (looks, every), self.pairs.doubts(self.units))

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        if self.cut is None:
            return "Most cells turned out to be well filled, so every cell was counted, by tents."
        return (
            f"For a total of about {max(0, self.total):,} rows it cut the axis privately, in "
            f"{len(self.cut):,} part{'s' if len(self.cut) > 1 else ''}, and counted them by tents."
        )

    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file."""
        facts: dict[str, Json] = {
            "size": self.size,
            "total": self.total,
            "epsilon_per_row": str(self.rate),
            "filled": self.filled,
            "full": self.cut is None,
            "pair_rate": None if self.pairs is None else str(self.pairs.rate),
        }
        series: dict[str, NDArray[Any]] = {} if self.cut is None else {"ends": self.cut.edges}
        if self.pairs is not None:
            series |= {"last": self.pairs.last, "rest": self.pairs.rest}
        return Parts(facts | tent_facts(self.tents), series | tent_series(self.tents))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        full, pair_rate = reader.flag("full"), reader.optional("pair_rate", reader.rational)
        series = ([] if full else ["ends"]) + ([] if pair_rate is None else ["last", "rest"])
        tents = tents_of(reader, facts=_FACTS, series=series)
        count = partial(reader.integer, low=-LARGEST_NUMBER, high=LARGEST_NUMBER)
        size = reader.integer("size", low=1, high=_LARGEST_SIZE)
        return cls(
            size=size,
            total=count("total"),
            rate=reader.rational("epsilon_per_row"),
            filled=reader.optional("filled", count),
            cut=None if full else Cut(edges=reader.edges("ends", size=size)),
            tents=tents,
            pairs=None if pair_rate is None else _pairs(reader, pair_rate),
            guarantee=guarantee,
        )

    @property
    def _wide(self) -> NDArray[np.bool_]:
        """Which segments have several cells."""
        assert self.cut is not None
        return np.asarray(self.cut.edges > self.cut.starts)

    @cached_property
    def _unit_ends(self) -> UInts:
        if self.cut is None:
            return np.arange(self.size, dtype=np.uint64)
        return self.cut.edges if self.pairs is not None else with_last_cells_apart(self.cut.edges)

    @cached_property
    def _estimate(self) -> UnitCounts:
        shape = Curve.empty(self._unit_ends)
        if self.cut is None or self.pairs is not None:
            return unit_counts(self.tents, shape.widths)
        atoms = np.isin(shape.ends, self.cut.edges[self._wide])
        return unit_counts_with_atoms(self.tents, shape.widths, atoms, self.total)

    def _ranges(
        self, pieces: Curve, model: Model, certain: tuple[Looks, ...], doubts: Doubts
    ) -> LinearRanges:
        """Where little is known the curve is bent inside pieces; where much is, pieces are short.

        What a partition does not see is at least of the size of the noise.
        """
        leant = leaning(pieces)
        return LinearRanges(
            curve=refined(leant) if informed(self.total, self.rate) < LITTLE else leant,
            pieces=pieces,
            model=model,
            certain=certain,
            widening=_WIDENING,
            least_variance=1.0 + float(1 / self.rate) ** 2,
            held=pieces.counts,
            clustering=clustering(
                pieces, noise=math.sqrt(self.tents.own_variance), roughness=self._estimate.roughness
            ),
            doubts=doubts,
        )


def _pairs(reader: PartsReader, rate: Fraction) -> Pairs:
    return Pairs(last=reader.noisy("last"), rest=reader.noisy("rest"), rate=rate)
