"""The rule by which a spending tree spends, in any number of dimensions.

It is a function of public numbers and of noisy counts already released. Budgets are whole units, UNITS of
them for the root. A count enters only as a float that was made from released integers. Floats may be
rounded in another way on another machine (powers are), and the same looks may then give another tree
there; nothing depends on that, neither privacy nor a reader: the tree that was grown is released with
its looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints

UNITS: Final = 2**20
"""The whole budget of a path from the root to a leaf."""

SURE: Final = 3.0
"""A node is cut only if its count is more than so many noise scales."""

MOST_NODES: Final = 3_000_000
"""No level has more nodes, but for those that one expanded node may need."""

_HOPEFUL: Final = 2.0
_LARGEST_LOOK: Final = 2.0
_SMALLEST_LOOK: Final = 0.7
_MOST_LEVELS: Final = 512


class Fork(Protocol):
    """One level: how many children its boxes have at most, and how many levels there are from it on."""

    @property
    def children(self) -> int: ...

    @property
    def left(self) -> int: ...


@final
class Evidence:
    """What the looks at the nodes of one level have shown so far, and the units that each has left."""

    def __init__(self, *, left: Ints, splittable: Bools) -> None:
        self.left = left
        self.splittable = splittable
        self.squares = np.zeros(left.size, dtype=np.int64)
        self._weighted = np.zeros(left.size)

    def pay(self, nodes: Ints, units: Ints) -> None:
        """Take the units for one look at each of the nodes; no node may owe any."""
        self.left[nodes] -= units
        if bool((units < 1).any()) or bool((self.left[nodes] < 0).any()):
            raise AssertionError("a look must cost at least one unit and no more than is left")

    def learn(self, nodes: Ints, units: Ints, noisy: NDArray[Any]) -> None:
        """Add what the looks gave: a look counts by the square of its units, the inverse of its variance."""
        squares = units**2
        self._weighted[nodes] += squares * noisy.astype(np.float64)
        self.squares[nodes] += squares

    @property
    def counts(self) -> Floats:
        """The mean of the looks at each node."""
        return self._weighted / self.squares


@dataclass(frozen=True, kw_only=True)
class SpendingRule:
    """Which nodes are looked at, with how many units, and which are cut further.

    A `unit` of budget is worth that much epsilon. A node is worth cutting while its count times the
    epsilon that is left exceeds `worth`; `growth` is the ratio of what successive levels spend, and
    counts are expected to fall by a factor of children^depth_power from level to level.
    """

    unit: float
    growth: Fraction
    worth: float
    depth_power: float

    @cached_property
    def shares(self) -> Floats:
        """The share of the next level if this many levels are to share what is left."""
        growth = float(self.growth)
        depths = np.arange(1.0, _MOST_LEVELS)
        if self.growth == 1:
            return np.concatenate([[0.0], 1 / depths])
        return np.concatenate([[0.0], (growth - 1) / np.expm1(depths * np.log(growth))])

    def first_look(self, fork: Fork, counts: Floats, budget: Ints) -> Ints:
        """The units that each box spends on a first look at its children, given its own count."""
        depth = self._depth(fork, counts * self.unit * budget)
        shared = np.maximum(1, np.floor(budget * self.shares[depth]).astype(np.int64))
        return np.where(depth > 1, shared, budget)

    def second_look(self, fork: Fork, evidence: Evidence) -> tuple[Ints, Ints]:
        """The nodes whose worth is still in doubt, where one more look would tell, and its units."""
        spent = np.sqrt(evidence.squares)
        gain = (evidence.counts * self.unit + _HOPEFUL / spent) * evidence.left
        nodes = np.flatnonzero(self._open(evidence) & ~self._sure(evidence) & (gain > self.worth))
        share = self.shares[1 + self._depth(fork, gain[nodes])]
        most = np.minimum(_LARGEST_LOOK * spent[nodes], evidence.left[nodes] * share)
        units = np.maximum(1, np.floor(most).astype(np.int64))
        telling = units > _SMALLEST_LOOK * spent[nodes]
        return nodes[telling], units[telling]

    def cut(self, evidence: Evidence, *, most: int) -> Bools:
        """The nodes that are cut further; if those are more than `most`, the ones with the largest counts."""
        chosen = self._open(evidence) & self._sure(evidence)
        if int(chosen.sum()) > most:
            order = np.argsort(np.where(chosen, -evidence.counts, np.inf), kind="stable")
            chosen[order[most:]] = False
        return chosen

    def _open(self, evidence: Evidence) -> Bools:
        return evidence.splittable & (evidence.left > 0)

    def _sure(self, evidence: Evidence) -> Bools:
        """Whether a count is far above its noise and worth what is left."""
        weight = evidence.counts * self.unit
        return (weight * np.sqrt(evidence.squares) > SURE) & (weight * evidence.left > self.worth)

    def _depth(self, fork: Fork, gain: Floats) -> Ints:
        """How many levels, this one included, a node of that count times epsilon is worth."""
        base = max(2.0, fork.children**self.depth_power)
        powers = self.worth * np.array([base**level for level in range(fork.left + 1)])
        return np.clip(np.searchsorted(powers, gain), 1, fork.left)
