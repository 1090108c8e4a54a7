"""Centred trees one after another, for streams without a known end."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from partita.public.streams.terms import misfit
from partita.trusted.noise.system.protocol import IntegerArray, Noise
from partita.trusted.streams.base.integers import Row
from partita.trusted.streams.centred.branching import Plan, epoch_plan
from partita.trusted.streams.centred.centred import CentredPath

_FIRST: Final = 16**2
_GROWTH: Final = 16


class Epochs:
    """The errors of one tree after another, each sixteen times as long and with all of epsilon.

    A period lies in one tree only, and the last error of a tree stays in all later outputs.
    """

    def __init__(self, first: Plan, rate: Fraction, noise: Noise) -> None:
        self.plans = [first]
        self.tree = CentredPath(first, rate, noise)
        self._rate, self._noise = rate, noise

    def step(self) -> int:
        """The error of the next period."""
        if self.tree.position == self.plans[-1].horizon:
            self._begin()
        return self.tree.step()

    def many(self, periods: int) -> IntegerArray:
        """The error of each of the next periods."""
        pieces = [self.tree.many(count) for count in self._counts(periods)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *pieces])

    def skip(self, periods: int) -> int:
        """The error of the next periods together."""
        return sum(self.tree.skip(count) for count in self._counts(periods))

    def until(self, periods: int) -> Iterator[Plan]:
        """The plans of all trees that so many periods need."""
        plan, end = self.plans[0], 0
        while end < periods:
            yield plan
            end += plan.horizon
            plan = _after(plan) if end < periods else plan

    def fields(self) -> dict[str, Row]:
        """The plans so far and what is drawn of the open tree."""
        return {"plans": [number for plan in self.plans for number in plan.numbers], **self.tree.fields()}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on with what was drawn before."""
        plans = Plan.all_of(fields["plans"])
        grown = [_GROWTH * plan.horizon for plan in plans[:-1]]
        if plans[:1] != self.plans or [plan.horizon for plan in plans[1:]] != grown:
            raise misfit("fit its trees")
        self.plans = plans
        self.tree = CentredPath(self.plans[-1], self._rate, self._noise)
        self.tree.restore(fields, periods - sum(plan.horizon for plan in self.plans[:-1]))

    def _counts(self, periods: int) -> Iterator[int]:
        """How many of the next periods lie in the open tree, then in the next, and so on."""
        while periods:
            if not self.tree.left:
                self._begin()
            count = min(periods, self.tree.left)
            yield count
            periods -= count

    def _begin(self) -> None:
        self.plans.append(_after(self.plans[-1]))
        self.tree = CentredPath(self.plans[-1], self._rate, self._noise)


def _after(plan: Plan) -> Plan:
    return epoch_plan(_GROWTH * plan.horizon)


def first_epoch() -> Plan:
    """The first of the trees without a known end."""
    return epoch_plan(_FIRST)
