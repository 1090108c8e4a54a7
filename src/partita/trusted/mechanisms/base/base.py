"""What every mechanism is made with: how much may become known, and about whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TypedDict

from partita.guarantee.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, rows_changed, unit_of
from partita.numbers import Converted, Exact, freeze, frozen, parameter
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts


class Protected(TypedDict):
    """Whom a mechanism protects, as keywords for the mechanisms that it is made of."""

    neighbors: Neighbors
    contributions: int
    unit: Unit


@frozen(kw_only=True)
class Private:
    """What is pure epsilon-DP between named neighbours.

    The parameters that all mechanisms have are fields of this class. A mechanism adds its own, and extends
    `_convert` and `_check`.
    """

    epsilon: Exact = parameter()
    neighbors: Neighbors = "add-remove"
    contributions: int = 1
    unit: Converted[Unit | None, Unit] = parameter(default=None)

    def __post_init__(self) -> None:
        self._convert()
        self._check()

    def _convert(self) -> None:
        """Check each parameter, and hold it in its exact type."""
        rows_changed(self.neighbors, self.contributions)
        freeze(
            self,
            epsilon=positive_epsilon(self.epsilon),
            contributions=int(self.contributions),
            unit=unit_of(self.unit, self.contributions),
        )

    def _check(self) -> None:
        """Refuse parameters that do not go together, and an epsilon whose noise cannot be drawn."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return Guarantee(epsilon=self.epsilon, **self.protected)

    @property
    def protected(self) -> Protected:
        """Whom the release protects."""
        return {"neighbors": self.neighbors, "contributions": self.contributions, "unit": self.unit}

    @property
    def rows_changed(self) -> int:
        """By how many rows neighbours may differ."""
        return rows_changed(self.neighbors, self.contributions)

    @property
    def rate(self) -> Fraction:
        """Epsilon for each row by which neighbours may differ."""
        return self.epsilon / self.rows_changed


@frozen(kw_only=True)
class Mechanism(Private, ABC):
    """A pure epsilon-DP release of the counts of one axis, wherever they are kept."""

    @abstractmethod
    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> object:
        """Draw noise and release."""
