"""Looks at the nodes of a tree, level by level: the only place where exact counts meet noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Ints
from partita.public.axis.tree_solver.spending_rule import Evidence, Fork, SpendingRule
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.trusted.noise.system.protocol import Noise

_MOST_LOOKS: Final = 6
"""A node is looked at once and, while it is in doubt whether to cut it, up to five times more."""


class NoisyLooks:
    """Exact counts go in, noisy counts come out and are kept. It begins with the root.

    A look of one unit has noise of `scale`, and one of k units a k-th of it.
    """

    def __init__(self, session: Noise, scale: Fraction, *, root: int) -> None:
        self._session, self._scale = session, scale
        self._offset, self._counts = 0, np.array([root])
        self._steps: list[TreeLooks] = []

    def turn_to(self, counts: Ints) -> None:
        """Turn to the nodes of the next level, which have these exact counts."""
        self._offset += self._counts.size
        self._counts = counts

    def take(self, evidence: Evidence, nodes: Ints, units: Ints) -> None:
        """Pay for one look at each of the nodes, take it, and learn from what was released."""
        if not nodes.size:
            return
        evidence.pay(nodes, units)
        noisy = self._session.add(self._counts[nodes], self._scale, parts=units)
        evidence.learn(nodes, units, noisy)
        self._steps.append(TreeLooks.step(nodes + self._offset, units, noisy))

    def take_all(self, evidence: Evidence, units: Ints, rule: SpendingRule, fork: Fork) -> None:
        """A first look at every node of the level, and second looks where they decide."""
        self.take(evidence, np.arange(units.size), units)
        for _ in range(_MOST_LOOKS - 1):
            nodes, more = rule.second_look(fork, evidence)
            if not nodes.size:
                break
            self.take(evidence, nodes, more)

    @property
    def taken(self) -> TreeLooks:
        """All looks, in the order in which they were taken."""
        return TreeLooks.join(self._steps)
