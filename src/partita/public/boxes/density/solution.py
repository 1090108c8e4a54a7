"""From the looks at a tree of boxes to one estimate for every node: shrink, put together, never negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats
from partita.public.axis.shrinkage.empirical_bayes import EMPTY, shrink
from partita.public.axis.shrinkage.nonnegative import shared_out
from partita.public.axis.tree_solver.tree_shape import Families

_BELIEF: Final = 20.0

Shrinkage: TypeAlias = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
"""Values, noise scales and expected counts of leaves to means and variances."""


def mostly_empty(values: Floats, scales: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Empirical Bayes, begun with the belief that nearly all leaves are empty."""
    return shrink(values, scales, expected, spikes=EMPTY)


def as_seen(values: Floats, scales: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Noisy counts as they are, whatever was expected."""
    return values, 2.0 * scales**2


class Estimates(NamedTuple):
    """A value and a variance for every node."""

    values: Floats
    variances: Floats


@final
@dataclass(frozen=True, eq=False)
class BoxSolution:
    """Noisy counts of all nodes of a tree, with their variances, put together.

    Leaves are shrunk, by empirical Bayes unless another way is given. From the leaves up, an expanded
    node is the best of its own noisy count and its children's sum. From the root down, siblings share
    what their sum lacks by their variances, and are projected on counts >= 0 with their parent's sum.
    An infinite variance is that of a number that says nothing. What is `expected` of a leaf, before it is
    looked at, is its part of what its parent was seen to hold, unless something else is known.
    """

    families: Sequence[Families]
    expanded: Bools
    noisy: Floats
    variances: Floats
    shrinkage: Shrinkage = mostly_empty
    expected: Floats | None = None
    """For each node; NaN where nothing is known."""

    @cached_property
    def raised(self) -> Estimates:
        """What each node and everything below it say about its count."""
        values, variances = self.noisy.copy(), self.variances.copy()
        scales = np.sqrt(self.variances / 2)
        for family in reversed(self.families):
            seen = _sums(family, values, variances)
            leaves = family.nodes.start + np.flatnonzero(~self.expanded[family.nodes])
            expected = self._expected(family)[leaves - family.nodes.start]
            values[leaves], variances[leaves] = self.shrinkage(self.noisy[leaves], scales[leaves], expected)
            variances[family.nodes] *= self._understated(family, seen, _sums(family, values, variances))
            below, doubt = _sums(family, values, variances)
            own = 1.0 / self.variances[family.parents]
            variances[family.parents] = 1.0 / (own + 1.0 / doubt)
            values[family.parents] = variances[family.parents] * (
                own * self.noisy[family.parents] + below / doubt
            )
        return Estimates(values, variances)

    def _expected(self, family: Families) -> Floats:
        part = family.spread(self.noisy[family.parents] / family.sizes)
        known = part if self.expected is None else self.expected[family.nodes]
        return np.where(np.isnan(known), part, known)

    def _understated(self, family: Families, seen: Estimates, shrunk: Estimates) -> float:
        """By how much the variances of sums of siblings are too small once their leaves are shrunk.

        Siblings are shrunk alike, so their sum may miss by more than each of them. The sums as they were
        seen miss by their variances. By how much more or less the shrunk ones do is told by the parents'
        own noisy counts, which have noise of their own; some families of belief that all is well are added.
        """
        told = np.isfinite(self.variances[family.parents])
        own, noise = self.noisy[family.parents], self.variances[family.parents]
        squares = (shrunk.values - own) ** 2 - (seen.values - own) ** 2 + seen.variances
        weight = (shrunk.variances[told] / (shrunk.variances + noise)[told]) ** 2
        belief = _BELIEF * float(np.median(weight)) if weight.size else 1.0
        missed = float(weight @ (squares / shrunk.variances)[told])
        return max(1.0, (missed + belief) / (float(weight.sum()) + belief))

    @cached_property
    def estimates(self) -> Estimates:
        """What all looks say: counts >= 0, each the sum of its children, and how far they may be off."""
        values, variances = self.raised.values.copy(), self.raised.variances.copy()
        values[0] = max(0.0, values[0])
        for family in self.families:
            own, doubt = values[family.nodes], variances[family.nodes]
            share = doubt / family.spread(family.sum(doubt))
            lacking = values[family.parents] - family.sum(own)
            values[family.nodes] = _shared_out(family, own + share * family.spread(lacking), values)
            variances[family.nodes] = (1.0 - share) * doubt + share**2 * family.spread(
                variances[family.parents]
            )
        return Estimates(values, variances)


def _sums(family: Families, values: Floats, variances: Floats) -> Estimates:
    """The sum of the children of each parent."""
    return Estimates(family.sum(values[family.nodes]), family.sum(variances[family.nodes]))


def _shared_out(family: Families, wanted: Floats, values: Floats) -> Floats:
    """Counts >= 0 near those wanted that add up to the parents' values; parents of as many at once."""
    shared = np.empty_like(wanted)
    for size in np.unique(family.sizes).tolist():
        alike = family.sizes == size
        places = family.starts[alike][:, None] + np.arange(size)
        shared[places] = shared_out(wanted[places], values[family.parents[alike]])
    return shared
