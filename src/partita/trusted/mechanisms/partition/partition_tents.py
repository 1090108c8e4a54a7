"""A private partition counted by tents: any interval of a universe of any size."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, final

import numpy as np

from partita.numbers import freeze, frozen, integer
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.axis.tent_solver.tent_counts import TentCounts
from partita.public.axis.tent_solver.tent_pairs import Pairs, with_last_cells_apart
from partita.public.axis.tent_solver.tent_strategy import GRAIN_BITS, MOST_LEVELS
from partita.public.axis.tents.partition_tents import PartitionTentsRelease
from partita.public.axis.tents.tent_budget import (
    BUDGET_UNITS,
    LEAST_COUNTING,
    LEAST_LOOK,
    TentBudget,
    informed,
)
from partita.public.axis.tree.cut import Cut
from partita.public.base.released import LARGEST_NUMBER
from partita.public.bounds.query_error import typical_error
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.mechanisms.base.part_noise import PartNoise
from partita.trusted.mechanisms.partition.partition import Partition
from partita.trusted.mechanisms.partition.tents import measured
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts

_FULL_CELL: Final = 10
_FULL_PART: Final = Fraction(35, 100)
_SMALLEST_SHARE: Final = Fraction(1, 10)
_FEW_EMPTY: Final = 20


@final
@frozen(kw_only=True)
class PartitionTents(Mechanism):
    """A private partition, counted by tents: every interval over 0, ..., size-1, size up to 2^64.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/partition_tents.md (exact shares; choices by public and released numbers)

    `total` is a public number of rows, a guess or one that was released before; it decides how
    epsilon is divided, never what is private. Heavy cells seal their segment, so last cells of segments
    are counted apart.

    >>> PartitionTents(size=2**64, epsilon=1, total=100_000).partition.threshold
    443
    """

    name: ClassVar[str] = "partition-tents"

    size: int
    total: int = 0

    def _convert(self) -> None:
        super()._convert()
        freeze(
            self,
            size=integer(self.size, "size", low=1, high=2**64),
            total=integer(self.total, "total", low=-LARGEST_NUMBER, high=LARGEST_NUMBER),
        )

    def _check(self) -> None:
        for scale in (1 / self.rate, *self._largest_scales, self.partition.scale):
            check_scale(scale, self.epsilon)

    @cached_property
    def budget(self) -> TentBudget:
        """How epsilon is divided."""
        return TentBudget(self.size, informed(self.total, self.rate))

    @cached_property
    def partition(self) -> Partition:
        """The partition, with its share of epsilon and one-sided noise."""
        epsilon = self.epsilon * Fraction(self.budget.partition, BUDGET_UNITS)
        return Partition(
            size=self.size,
            epsilon=epsilon,
            threshold=math.floor(Fraction(self.budget.level) / self._rate(self.budget.partition)),
            **self.protected,
        )

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""
        return typical_error(self.size, self.rate, rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds: eight for each segment, of which a few are empty."""
        budget = TentBudget(self.size, informed(rows, self.rate))
        full = budget.informed * Fraction(budget.partition, BUDGET_UNITS) / Fraction(budget.level)
        return 8 * min(self.size, math.ceil(full) + _FEW_EMPTY)

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> PartitionTentsRelease:
        """Ask if cells are full, cut if they are not, and count with all that is left."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        filled = self._filled(counts, session)
        if filled is not None and self._is_full(filled):
            cut, (tents, pairs) = None, self._count_cells(counts, session)
        else:
            cut = self.partition.cut(counts, noise=PartNoise(session))
            tents, pairs = self._count_segments(counts, cut, session)
        return PartitionTentsRelease(
            size=self.size,
            total=self.total,
            rate=self.rate,
            filled=filled,
            cut=cut,
            tents=tents,
            pairs=pairs,
            guarantee=self.guarantee if session.secure else None,
        )

    def _filled(self, counts: AxisCounts, noise: Noise) -> int | None:
        """How many rows there are if each cell counts up to a public limit, noisy; None if it is not asked.

        One row more or less changes it by at most one.
        """
        if not self.budget.asks_if_full:
            return None
        rows = counts.folded(partial(_limited, self._full_cell))
        return int(noise.add(int(rows[0]), self._scale(self.budget.fullness)))

    def _is_full(self, filled: int) -> bool:
        return filled >= _FULL_PART * self._full_cell * self.size

    @property
    def _full_cell(self) -> int:
        """How many rows make a cell well filled."""
        return math.ceil(_FULL_CELL / self.rate)

    def _count_cells(self, counts: AxisCounts, noise: Noise) -> tuple[TentCounts, None]:
        """Every cell is a unit."""
        return measured(counts.spread(), self._rate(self.budget.counting(full=True)), noise), None

    def _count_segments(self, counts: AxisCounts, cut: Cut, noise: Noise) -> tuple[TentCounts, Pairs | None]:
        """Units are the segments and their last cells, or the segments, with a second look at pairs."""
        pieces = Cut(edges=with_last_cells_apart(cut.edges))
        units = self.budget.counting(full=False)
        weights = counts.weigh(pieces)
        if len(pieces) == len(cut) or self.budget.cuts_off_last_cells(len(cut)):
            return measured(weights, self._rate(units), noise), None
        segments = np.add.reduceat(weights, pieces.locate(cut.starts))
        tents = measured(segments, self._rate(units - self.budget.pairs), noise)
        return tents, self._look_at_pairs(weights, cut, pieces, noise)

    def _look_at_pairs(self, weights: Ints, cut: Cut, pieces: Cut, noise: Noise) -> Pairs:
        """Last cell and rest of every wide segment; a row lies in one of the two."""
        last = pieces.locate(cut.edges)[cut.edges > cut.starts]
        scale = self._scale(self.budget.pairs)
        return Pairs(
            last=noise.add(weights[last], scale), rest=noise.add(weights[last - 1], scale), rate=1 / scale
        )

    def _rate(self, units: int) -> Fraction:
        """The part of the rate that so many units of the budget are."""
        return self.rate * Fraction(units, BUDGET_UNITS)

    def _scale(self, units: int) -> Fraction:
        """The noise scale that so many units pay for, where one row changes one count by one."""
        return 1 / self._rate(units)

    @property
    def _largest_scales(self) -> tuple[Fraction, ...]:
        """Bounds on the scales of all looks, whatever the data and the total turn out to be."""
        highest_level = 2 ** (GRAIN_BITS * (MOST_LEVELS - 1)) / _SMALLEST_SHARE
        return highest_level * self._scale(LEAST_COUNTING), self._scale(LEAST_LOOK)


def _limited(most: int, cells: UInts, counts: Ints) -> Ints:
    """How many rows there are if each cell counts up to `most`."""
    return np.array([np.minimum(counts, most).sum()])
