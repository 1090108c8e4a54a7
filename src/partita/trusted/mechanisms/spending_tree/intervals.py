"""Interval counts over any universe: the best known tool for its size and for how many people there are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias, final

from partita.numbers import freeze, frozen, integer
from partita.public.axis.spending_tree.spending_tree import SpendingTreeRelease
from partita.public.axis.tents.partition_tents import PartitionTentsRelease
from partita.public.axis.tents.tent_budget import LITTLE
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.mechanisms.base.part_noise import PartNoise
from partita.trusted.mechanisms.partition.partition_tents import PartitionTents
from partita.trusted.mechanisms.spending_tree.spending_tree import SpendingTree
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts

Tool: TypeAlias = PartitionTents | SpendingTree

_TOTAL_SHARE: Final = Fraction(1, 100)
_LARGEST_TREE: Final = 2**14
_MANY: Final = 30_000
_LARGEST_TOTAL: Final = 2**63
"""No noisy total is taken to be further from zero, as files hold 64 bits; only a tiny epsilon gets there."""


@final
@frozen(kw_only=True)
class Intervals(Mechanism):
    """The default for many cells in order: every interval, size up to 2^64, by the tool that suits it.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.
    Error:     measured, not proved: benchmarks/README.md; each release bounds its own, `error(beta)`.
    Proof:     docs/proofs/intervals.md (one hundredth on the total, the rest on the tool it chooses)

    A noisy total is released first. From it and public facts alone follows the tool: a spending tree
    where the universe is small and people are many, else a private partition counted by tents.

    >>> Intervals(size=2**64, epsilon=1).tool(total=100_000).name
    'partition-tents'
    >>> Intervals(size=4096, epsilon=1).tool(total=100_000).name
    'spending-tree'
    """

    name: ClassVar[str] = "intervals"

    size: int

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=2**64))

    def _check(self) -> None:
        check_scale(self.total_scale, self.epsilon)
        for total in (0, LITTLE * 2**62, _MANY * 2**62):
            self.tool(total=total)

    @property
    def total_scale(self) -> Fraction:
        """The noise scale of the total."""
        return 1 / (_TOTAL_SHARE * self.rate)

    def tool(self, *, total: int) -> Tool:
        """The mechanism for everything but the total: a function of public facts and the released total."""
        informed = total * self.rate
        if self.size > _LARGEST_TREE or informed < LITTLE:
            return self._partition(total)
        return self._tree(total, branching=8 if informed < _MANY else 16)

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""
        return self.tool(total=rows).predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""
        return self.tool(total=rows).predicted_numbers(rows)

    def release(
        self, data: AxisCounts, *, noise: Noise = SYSTEM
    ) -> PartitionTentsRelease | SpendingTreeRelease:
        """Count everybody, choose by the noisy count, and let the tool do the rest."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        noisy = int(session.add(counts.total, self.total_scale))
        total = min(_LARGEST_TOTAL, max(-_LARGEST_TOTAL, noisy))
        release = self.tool(total=total).release(counts, noise=PartNoise(session))
        return replace(release, guarantee=self.guarantee if session.secure else None)

    @property
    def _rest(self) -> Fraction:
        return self.epsilon * (1 - _TOTAL_SHARE)

    def _partition(self, total: int) -> PartitionTents:
        return PartitionTents(size=self.size, epsilon=self._rest, total=total, **self.protected)

    def _tree(self, total: int, *, branching: int) -> SpendingTree:
        growth, worth = (Fraction(3, 4), 20) if branching == 8 else (Fraction(4, 5), 8)
        return SpendingTree(
            size=self.size,
            epsilon=self._rest,
            total=total,
            total_scale=self.total_scale,
            branching=branching,
            growth=growth,
            worth=worth,
            **self.protected,
        )
