"""Releases of tents: over all cells of a universe, or over the segments of a released partition.

`TentBudget` says how a partition with tents divides epsilon: a function of public and released numbers only.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats, UInts
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability
from partita.public.axis import tent_solver
from partita.public.axis.base import AxisRelease, Json, Parts, PartsReader, Term
from partita.public.axis.curve import Curve, refine, shift_sparse_segments
from partita.public.axis.shrinkage import clustering
from partita.public.axis.tree import Cut
from partita.public.base import LARGEST_NUMBER, damaged, noise_rate
from partita.public.bounds import NO_DOUBTS, Doubts, LinearRanges, Looks, Model, widest_miss

BUDGET_UNITS: Final = 2**20
LEAST_COUNTING: Final = BUDGET_UNITS // 4
"""Counts get at least so many units, whatever the size and the total."""
LEAST_LOOK: Final = BUDGET_UNITS // 2_000
"""And so do pairs, the partition, and the question whether cells are full."""
LARGEST_FULL: Final = 2**22
"""Of more cells it is not asked whether they are full."""
LITTLE: Final = 400
"""Where less is known, a curve bent inside of pieces is better than a straight one."""

# The constants of `TentBudget` were tuned on public data.

_FEWEST: Final = 30  # units of noise: a smaller total counts as this many
_FULL_SHARE: Final = round(0.003 * BUDGET_UNITS)  # more makes the answer surer and leaves less for counts
_FULL_PER_CELL: Final = Fraction(7, 2)  # fewer rows in a cell, in units of noise, are not worth a count each
_MANY: Final = 30_000  # rows in units of noise, above which last cells are worth a count each
_FEW_SEGMENTS: Final = 2_500  # above which they are not: that doubles the units
_LEAST_LEVEL: Final = 3.0  # a lower threshold would cut where there is nothing but noise
_MOST_EMPTY: Final = 13.5  # of ln size: bounds the number of empty segments
_SPLIT_REACH: Final = 2.5  # more for pairs finds more heavy last cells and counts segments worse
_USUAL_LEVEL: Final = 20.0  # wider universes need a higher threshold, and so more of epsilon
_USUAL_FRACTION: Final = 0.2  # of epsilon for the partition: more cuts better and counts worse
_LARGEST_FRACTION: Final = 0.4


def informed(total: int, rate: Fraction) -> Fraction:
    """How much can be known: the public total in units of the noise, and at least 30."""
    return max(total * rate, Fraction(_FEWEST))


@final
@dataclass(frozen=True)
class TentBudget:
    """Shares of epsilon in units of 2^-20, and the choices that depend on the same numbers.

    N = `informed`, L = ln size.
    """

    size: int
    informed: Fraction

    @cached_property
    def asks_if_full(self) -> bool:
        """Whether there may be so many people that every cell is worth counting."""
        return self.size <= LARGEST_FULL and self.informed >= _FULL_PER_CELL * self.size

    @cached_property
    def fullness(self) -> int:
        """Units for the question whether most cells are well filled."""
        return _FULL_SHARE if self.asks_if_full else 0

    @cached_property
    def partition(self) -> int:
        """Units for the partition: f of what is left, f = max(.28 / sqrt L, .2 sqrt r (N/1000)^-1/4).

        r = max(1, c/20), c the `level`. At most .2, and up to .4 as c exceeds 20 in wide universes: segments
        hold about c/f rows in units of the noise, and where there are few that must be less than all.
        """
        return round(self._fraction * (BUDGET_UNITS - self.fullness))

    @cached_property
    def level(self) -> float:
        """The partition's threshold in units of its noise: max(3, L + 2.4 - .65 ln N).

        And at least L - 13.5, so that fewer than a million empty segments are to be expected.
        """
        return max(
            _LEAST_LEVEL, self._log_size + 2.4 - 0.65 * self._log_informed, self._log_size - _MOST_EMPTY
        )

    def counting(self, *, full: bool) -> int:
        """Units for all counts: what is left."""
        return BUDGET_UNITS - self.fullness - (0 if full else self.partition)

    def cuts_off_last_cells(self, segments: int) -> bool:
        """Whether last cells become units of their own, rather than a second look at pairs."""
        return self.informed > _MANY and segments <= _FEW_SEGMENTS

    @cached_property
    def pairs(self) -> int:
        """Units for second looks at pairs: 2.5 f / (c (1 - f)) of the counts', c the level."""
        fraction = _SPLIT_REACH * self._fraction / (self.level * (1.0 - self._fraction))
        return max(1, round(fraction * self.counting(full=False)))

    @cached_property
    def _fraction(self) -> float:
        wide = max(1.0, self.level / _USUAL_LEVEL)
        few = _USUAL_FRACTION * math.sqrt(wide) * math.exp((math.log(1_000) - self._log_informed) / 4)
        most = min(_LARGEST_FRACTION, _USUAL_FRACTION * wide**2)
        return min(most, max(0.28 / math.sqrt(self._log_size), few))

    @cached_property
    def _log_size(self) -> float:
        return math.log(max(self.size, 2))

    @cached_property
    def _log_informed(self) -> float:
        return math.log(self.informed.numerator) - math.log(self.informed.denominator)


_WIDENING: Final = 1.05
"""The calibrated factor of standard errors; how it was found is in docs/proofs/tents.md."""

_LARGEST_SIZE: Final = 2**24


class TentRanges(AxisRelease):
    """A release whose counts come from tents over units: contiguous segments, or cells."""

    tents: tent_solver.TentCounts

    @property
    @abstractmethod
    def units(self) -> Curve:
        """The estimated count of each unit."""

    @property
    @abstractmethod
    def linear(self) -> LinearRanges:
        """The estimates and the looks behind them."""

    @property
    def curve(self) -> Curve:
        return self.linear.curve

    def answer(self, *terms: Term) -> Answer:
        return self.linear.answer(self._check_terms(terms))

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        return self.linear.counts(*self._check_ranges(lows, highs))

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        return self.linear.errors(*self._check_ranges(lows, highs))

    @property
    @abstractmethod
    def _estimate(self) -> tent_solver.UnitCounts: ...

    @property
    def _evidence(self) -> tent_solver.TentEvidence:
        ends, roughness = self.units.ends, self._estimate.roughness
        return tent_solver.TentEvidence(counts=self.tents, ends=ends, roughness=roughness)

    def error(self, beta: float) -> float:
        lower, upper = tent_solver.prefix_bounds(self.tents, float(check_probability(beta)))
        values = np.concatenate([[0.0], self.curve.upto(self.units.ends)])
        return widest_miss(values, lower, upper, self.units.widths > 1.0)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TentRelease(TentRanges):
    """Noisy counts of every cell, and of tents over them.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "tents"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"tents": ()}
    max_series: ClassVar[int] = tent_solver.MOST_LEVELS

    size: int
    tents: tent_solver.TentCounts
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size == self.tents.units <= _LARGEST_SIZE:
            raise damaged("size", "must be the number of units")

    @cached_property
    def units(self) -> Curve:
        """The estimated count of each cell."""
        return Curve(np.arange(self.size, dtype=np.uint64), self._estimate.counts)

    @cached_property
    def linear(self) -> LinearRanges:
        looks = self._evidence
        return LinearRanges(
            curve=self.units,
            pieces=self.units,
            model=looks,
            certain=(looks,),
            held=self.units.counts,
            clustering=np.zeros(self.size),
            widening=_WIDENING,
        )

    def parts(self) -> Parts:
        return Parts({"size": self.size, **_tent_facts(self.tents)}, _tent_series(self.tents))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        size = reader.integer("size", low=1, high=_LARGEST_SIZE)
        return cls(size=size, tents=_read_tents(reader, facts=["size"], series=[]), guarantee=guarantee)

    @cached_property
    def _estimate(self) -> tent_solver.UnitCounts:
        return tent_solver.unit_counts(self.tents, np.ones(self.size))


def _tent_facts(tents: tent_solver.TentCounts) -> dict[str, Json]:
    """The public numbers of tents, for a file."""
    return {"rate": str(tents.rate), "shares": [str(share) for share in tents.shares]}


def _tent_series(tents: tent_solver.TentCounts) -> dict[str, NDArray[Any]]:
    """The noisy integers of tents, for a file."""
    return {f"level{level}": values for level, values in enumerate(tents.levels)}


def _read_tents(
    reader: PartsReader, *, facts: Iterable[str], series: Iterable[str]
) -> tent_solver.TentCounts:
    """The tents that a file holds, if it holds nothing else but these facts and series."""
    shares = reader.rationals("shares", most=tent_solver.MOST_LEVELS)
    names = [f"level{level}" for level in range(len(shares))]
    reader.expect(facts=["rate", "shares", *facts], series=[*names, *series])
    levels = tuple(reader.noisy(name) for name in names)
    return tent_solver.TentCounts(levels=levels, shares=shares, rate=reader.rational("rate"))


_PARTITION_WIDENING: Final = 1.35
"""The calibrated factor of standard errors; how it was found is in docs/proofs/partition_tents.md."""

_FACTS: Final = ("size", "total", "epsilon_per_row", "filled", "full", "pair_rate")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionTentsRelease(TentRanges):
    """Segments of a universe and tents over them, for any interval of a huge universe.

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
    max_series: ClassVar[int] = 3 + tent_solver.MOST_LEVELS

    size: int
    total: int
    rate: Fraction
    filled: int | None
    cut: Cut | None
    tents: tent_solver.TentCounts
    pairs: tent_solver.Pairs | None
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
        looks = self._evidence
        if self.pairs is None:
            return self._ranges(self.units, looks, (looks,), NO_DOUBTS)
        every = tent_solver.PairEvidence(units=looks, split=self._wide, pairs=self.pairs)
        telling = tent_solver.PairEvidence.telling(looks, self.units, self.pairs)
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
        return Parts(facts | _tent_facts(self.tents), series | _tent_series(self.tents))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        reader = PartsReader(parts)
        full, pair_rate = reader.flag("full"), reader.optional("pair_rate", reader.rational)
        series = ([] if full else ["ends"]) + ([] if pair_rate is None else ["last", "rest"])
        tents = _read_tents(reader, facts=_FACTS, series=series)
        count = partial(reader.integer, low=-LARGEST_NUMBER, high=LARGEST_NUMBER)
        size, pairs = reader.integer("size", low=1, high=2**64), None
        if pair_rate is not None:
            pairs = tent_solver.Pairs(last=reader.noisy("last"), rest=reader.noisy("rest"), rate=pair_rate)
        return cls(
            size=size,
            total=count("total"),
            rate=reader.rational("epsilon_per_row"),
            filled=reader.optional("filled", count),
            cut=None if full else Cut(edges=reader.edges("ends", size=size)),
            tents=tents,
            pairs=pairs,
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
        return self.cut.edges if self.pairs is not None else tent_solver.split_last_cells(self.cut.edges)

    @cached_property
    def _estimate(self) -> tent_solver.UnitCounts:
        shape = Curve.empty(self._unit_ends)
        if self.cut is None or self.pairs is not None:
            return tent_solver.unit_counts(self.tents, shape.widths)
        atoms = np.isin(shape.ends, self.cut.edges[self._wide])
        return tent_solver.unit_counts_with_atoms(self.tents, shape.widths, atoms, self.total)

    def _ranges(
        self, pieces: Curve, model: Model, certain: tuple[Looks, ...], doubts: Doubts
    ) -> LinearRanges:
        """Where little is known the curve is bent inside pieces; where much is, pieces are short.

        What a partition does not see is at least of the size of the noise.
        """
        noise = math.sqrt(self.tents.own_variance)
        shifted = shift_sparse_segments(pieces)
        return LinearRanges(
            curve=refine(shifted) if informed(self.total, self.rate) < LITTLE else shifted,
            pieces=pieces,
            model=model,
            certain=certain,
            widening=_PARTITION_WIDENING,
            least_variance=1.0 + float(1 / self.rate) ** 2,
            held=pieces.counts,
            clustering=clustering(pieces, noise=noise, roughness=self._estimate.roughness),
            doubts=doubts,
        )
