"""What mechanisms have in common that add noise of one scale to a fixed list of counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from partita.exact import freeze, integer
from partita.guarantee import Guarantee, Neighbors, Unit, positive_epsilon, rows_changed, unit_of
from partita.histogram import Histogram
from partita.inference.tails import laplace_variance
from partita.mechanisms.checks import check_scale, fitting
from partita.noise.protocol import Noise
from partita.releases.flat import FlatRelease

__all__ = ["Additive", "dense"]


@dataclass(frozen=True, init=False, kw_only=True)
class Additive(ABC):
    """Counts of a fixed list of sets of cells, each with noise of scale sensitivity / epsilon."""

    released: ClassVar[type[FlatRelease]]
    """The release that holds the noisy counts."""

    size: int
    epsilon: Fraction
    neighbors: Neighbors
    contributions: int
    unit: Unit

    def __init__(
        self,
        *,
        size: int,
        epsilon: object,
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
    ) -> None:
        rows_changed(neighbors, contributions)
        freeze(
            self,
            size=integer(size, "size", low=1, high=self.released.largest_size),
            epsilon=positive_epsilon(epsilon),
            neighbors=neighbors,
            contributions=int(contributions),
            unit=unit_of(unit, contributions),
        )
        check_scale(self.scale, self.epsilon)

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """In how many counts one row can be."""

    @abstractmethod
    def exact(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts without noise, from those of all cells."""

    @property
    @abstractmethod
    def terms(self) -> float:
        """The mean number of counts that a range is made of, over all ranges."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return Guarantee(
            epsilon=self.epsilon, neighbors=self.neighbors, unit=self.unit, contributions=self.contributions
        )

    @property
    def scale(self) -> Fraction:
        """The noise scale: how far the counts of neighbours are apart at most, over epsilon."""
        return self.sensitivity * rows_changed(self.neighbors, self.contributions) / self.epsilon

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range, exactly; the number of rows does not matter."""
        return float(np.sqrt(self.terms * laplace_variance(self.scale)))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.released.length(self.size)

    def _measured(self, data: Histogram, noise: Noise) -> dict[str, Any]:
        """The fields of the release."""
        histogram = fitting(data, self.size, self.contributions)
        session = noise.session()
        noisy = session.add(self.exact(dense(histogram)), self.scale)
        guarantee = self.guarantee if session.secure else None
        return {"noisy": noisy, "size": self.size, "scale": self.scale, "guarantee": guarantee}


def dense(histogram: Histogram) -> NDArray[np.int64]:
    """The count of every cell, empty ones too."""
    counts = np.zeros(histogram.size, dtype=np.int64)
    counts[histogram.cells.astype(np.int64)] = histogram.counts
    return counts
