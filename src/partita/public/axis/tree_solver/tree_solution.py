"""From the looks at a tree to one estimate for every leaf: shrink, smooth, solve together, never negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.axis.shrinkage.empirical_bayes import shrink
from partita.public.axis.shrinkage.nonnegative import shared_out
from partita.public.axis.shrinkage.siblings import FlatGroups, apart, spread_over
from partita.public.axis.tree_solver.tree_shape import Families, TreeShape
from partita.public.axis.tree_solver.tree_solver import TreeSolver
from partita.public.bounds.posterior import Measured, Posterior


class _Estimates(NamedTuple):
    """A value and a variance for every node."""

    values: Floats
    variances: Floats


@final
@dataclass(frozen=True, eq=False)
class TreeSolution:
    """Noisy counts of all nodes of a tree, with their variances, put together.

    Leaves are shrunk by empirical Bayes unless their siblings look flat; then they and the noisy
    counts of the nodes above them are solved as one least-squares problem; then the solution is
    carried down from the root, each group of siblings projected on counts >= 0 with their sum.
    An infinite variance is that of a number that says nothing.
    """

    shape: TreeShape
    noisy: Floats
    variances: Floats

    @cached_property
    def posterior(self) -> Posterior:
        """The least-squares problem over the leaves, in the order of their cells."""
        return Posterior(
            self.solver.precision[self.shape.leaves],
            [self._nodes] + ([self._flat.measured()] if self._flat else []),
            self.solver,
        )

    @cached_property
    def solver(self) -> TreeSolver:
        """What solves that problem."""
        precision = 1.0 / np.where(self.shape.expanded, self.variances, self._smoothed.variances)
        return TreeSolver(self.shape, precision, 1.0 / self._between)

    @cached_property
    def leaves(self) -> Floats:
        """The count of each leaf, in the order of their cells; never negative."""
        rows = [self.noisy[self._measured]] + ([np.zeros(self._flat.low.size)] if self._flat else [])
        solved = self.posterior.mean(self._smoothed.values[self.shape.leaves], rows)
        return self._carried_down(solved)[self.shape.leaves]

    @cached_property
    def _measured(self) -> Ints:
        """The nodes above the leaves whose noisy counts say something."""
        return np.flatnonzero(self.shape.expanded & np.isfinite(self.variances))

    @cached_property
    def _nodes(self) -> Measured:
        low, behind = (end[self._measured] for end in self.shape.spans)
        units = self.shape.leaves.size

        def apply(leaves: Floats) -> Floats:
            before = np.concatenate([np.zeros(1), np.cumsum(leaves)])
            return np.asarray(before[behind] - before[low])

        return Measured(
            apply,
            lambda nodes: spread_over(low, behind, nodes, units),
            1.0 / self.variances[self._measured],
        )

    @cached_property
    def _raised(self) -> _Estimates:
        """Shrunk leaves, and for each expanded node the best of its own count and its children's."""
        values, variances = self.noisy.copy(), self.variances.copy()
        scales = np.sqrt(self.variances / 2)
        for family in reversed(self.shape.families):
            leaves = family.nodes.start + np.flatnonzero(~self.shape.expanded[family.nodes])
            above = self.shape.parents[leaves]
            expected = self.noisy[above] * self.shape.widths[leaves] / self.shape.widths[above]
            values[leaves], variances[leaves] = shrink(self.noisy[leaves], scales[leaves], expected)
            below, doubt = family.sum(values[family.nodes]), family.sum(variances[family.nodes])
            own = 1.0 / self.variances[family.parents]
            variances[family.parents] = 1.0 / (own + 1.0 / doubt)
            values[family.parents] = variances[family.parents] * (
                own * self.noisy[family.parents] + below / doubt
            )
        return _Estimates(values, variances)

    @cached_property
    def _between(self) -> Floats:
        """For every node the variance between it and its siblings; infinite where they do not look flat."""
        between = np.full(self.noisy.size, np.inf)
        leaf = ~self.shape.expanded
        values = np.where(leaf, self.noisy, self._raised.values)
        variances = np.where(leaf, self.variances, self._raised.variances)
        for family in self.shape.families:
            complete = self._complete(family)
            if complete.shape[1] > 2 and complete.size:
                nodes = family.nodes.start + complete
                between[nodes] = apart(values[nodes], variances[nodes])[:, None]
        return between

    def _complete(self, family: Families) -> Ints:
        """The groups of a level with as many children as any, all of one width: a row of places for each."""
        places, there = family.table()
        widths = self.shape.widths[family.nodes][places]
        return np.asarray(places[there.all(1) & (widths == widths[:, :1]).all(1)])

    @cached_property
    def _smoothed(self) -> _Estimates:
        """Leaves of flat groups as they were seen, for the least squares to smooth; the others shrunk."""
        seen = np.isfinite(self._between) & ~self.shape.expanded
        return _Estimates(
            np.where(seen, self.noisy, self._raised.values),
            np.where(seen, self.variances, self._raised.variances),
        )

    @cached_property
    def _flat(self) -> FlatGroups | None:
        nodes = np.flatnonzero(np.isfinite(self._between))
        if not nodes.size:
            return None
        low, behind = (end[nodes] for end in self.shape.spans)
        _, group = np.unique(self.shape.parents[nodes], return_inverse=True)
        return FlatGroups(low, behind, group, self._between[nodes], self.shape.leaves.size)

    def _carried_down(self, solved: Floats) -> Floats:
        """Every node's count, from the root down: siblings share what their sum lacks, none negative."""
        before = np.concatenate([np.zeros(1), np.cumsum(solved)])
        low, behind = self.shape.spans
        counts = before[behind] - before[low]
        counts[0] = max(0.0, counts[0])
        doubt = self._smoothed.variances
        for family in self.shape.families:
            own, weight = counts[family.nodes], doubt[family.nodes]
            lacking = (counts[family.parents] - family.sum(own)) / family.sum(weight)
            places, there = family.table()
            wanted = np.where(there, (own + weight * family.spread(lacking))[places], -np.inf)
            counts[family.nodes] = shared_out(wanted, counts[family.parents])[there]
        return np.asarray(counts)
