"""What is known about the leaves of a released tree, as linear evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.inference.curve import Floats, UInts
from partita.inference.linear_ranges import Combination
from partita.inference.posterior import Posterior

__all__ = ["LeafEvidence"]


@final
@dataclass(frozen=True, eq=False)
class LeafEvidence:
    """Leaves in the order of their cells: a model of all looks, and the last look at each.

    The model tells standard errors. For certain are only the last looks, `values` with noise of the
    `rates`: a leaf spends all that it has left on its last look, so that look decided nothing, and
    given all others the last looks are independent noisy counts of leaves that are fixed.
    """

    ends: UInts
    posterior: Posterior
    values: Floats
    rates: Floats
    digest: bytes

    def combined(self, weights: Floats) -> Combination:
        """The weighted sum of the last looks."""
        return Combination(float(weights @ self.values), weights, self.rates)

    def variance(self, weights: Floats) -> float:
        """The variance of the weighted sum of the solved leaves, by the model."""
        return self.posterior.variance(weights)

    def replicates(self) -> Floats:
        """Vectors of leaves, one a row, whose second moments estimate the model's covariance."""
        return self.posterior.replicates(self.digest)
