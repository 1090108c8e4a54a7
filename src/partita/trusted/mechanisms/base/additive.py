"""What mechanisms have in common that add noise of one scale to a fixed list of counts."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from partita.numbers import freeze, frozen, integer
from partita.public.axis.flat.flat import FlatRelease
from partita.public.bounds.tails import laplace_variance
from partita.trusted.mechanisms.base.base import Mechanism
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.secret.histogram import AxisCounts


@frozen(kw_only=True)
class Additive(Mechanism):
    """Counts of a fixed list of sets of cells, each with noise of scale sensitivity / epsilon."""

    released: ClassVar[type[FlatRelease]]
    """The release that holds the noisy counts."""

    size: int

    def _convert(self) -> None:
        super()._convert()
        freeze(self, size=integer(self.size, "size", low=1, high=self.released.largest_size))

    def _check(self) -> None:
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
    def scale(self) -> Fraction:
        """The noise scale: how far the counts of neighbours are apart at most, over epsilon."""
        return self.sensitivity / self.rate

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range, exactly; the number of rows does not matter."""
        return float(np.sqrt(self.terms * laplace_variance(self.scale)))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.released.length(self.size)

    def _measured(self, data: AxisCounts, noise: Noise) -> dict[str, Any]:
        """The fields of the release."""
        counts = fitting(data, self.size, self.contributions)
        session = noise.session()
        noisy = session.add(self.exact(counts.spread()), self.scale)
        guarantee = self.guarantee if session.secure else None
        return {"noisy": noisy, "size": self.size, "scale": self.scale, "guarantee": guarantee}
