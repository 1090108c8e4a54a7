"""What every mechanism is made with: how much may become known, and about whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TypedDict

from partita.exact import freeze
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, rows_changed, unit_of
from partita.histogram import AxisCounts
from partita.noise.protocol import Noise
from partita.noise.system import SYSTEM

__all__ = ["Mechanism", "Private", "Protected"]


class Protected(TypedDict):
    """Whom a mechanism protects, as keywords for the mechanisms that it is made of."""

    neighbors: Neighbors
    contributions: int
    unit: Unit


@dataclass(frozen=True, init=False, kw_only=True)
class Private:
    """What is pure epsilon-DP between named neighbours.

    Each mechanism spells out its own parameters and hands those that all have to `_settle`.
    """

    epsilon: Fraction
    neighbors: Neighbors
    contributions: int
    unit: Unit

    def _settle(
        self, *, epsilon: object, neighbors: Neighbors, contributions: int, unit: Unit | None
    ) -> None:
        """Check the parameters that all mechanisms have, and set them."""
        rows_changed(neighbors, contributions)
        freeze(
            self,
            epsilon=positive_epsilon(epsilon),
            neighbors=neighbors,
            contributions=int(contributions),
            unit=unit_of(unit, contributions),
        )

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


@dataclass(frozen=True, init=False, kw_only=True)
class Mechanism(Private, ABC):
    """A pure epsilon-DP release of the counts of one axis, wherever they are kept."""

    @abstractmethod
    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> object:
        """Draw noise and release."""
