"""The counters over the segments of a sparse counter: one, and when it is full another one."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from partita.errors.errors import InvalidParameter
from partita.public.streams.terms import LARGEST, Terms, misfit
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.streams.base.base import ContinualCounter, Running
from partita.trusted.streams.base.state import Fields
from partita.trusted.streams.counter.counter import Counter
from partita.trusted.streams.sparse.sparse_plan import PARTS, SparsePlan

_GROWTH: Final = 4
_FIRST: Final = 256
_MOST_FULL: Final = 31
_TAKEN: Final = {"epsilon", "horizon", "change", "contributions", "noise"}


class InnerCounters:
    """Counts segments with the rest of epsilon.

    The first counter has room for as many segments as the plan says, each further one for four times as
    many as the one before. A segment lies in one of them, and the last output of a full one stays.
    """

    def __init__(self, kind: type[Any], terms: Terms, plan: SparsePlan, noise: Noise) -> None:
        self.kind = kind
        self.terms = replace(terms, epsilon=terms.epsilon * (PARTS - plan.seals) / PARTS)
        self._capacity = _FIRST if plan.capacity is None and self.kind is not Counter else plan.capacity
        self._noise = noise
        self._full, self._carried = 0, Fraction(0)
        self._open = self._made(0, noise)
        self.granularity = self._open.granularity

    @property
    def exact(self) -> Fraction:
        """What is counted in all segments so far, with noise."""
        return self._carried + self._open.exact

    @property
    def segments(self) -> int:
        """How many segments are counted."""
        return sum(self._room(number) or LARGEST for number in range(self._full)) + self._open.periods

    def count(self, content: int) -> None:
        """Count a segment; what is too much for a counter is cut off."""
        if self._open.periods == self._open.horizon:
            self._carried += self._open.exact
            self._full += 1
            self._open = self._made(self._full, self._noise)
        self._open.update(max(1 - LARGEST, min(LARGEST - 1, content)))

    def answers(self, beta: float) -> list[Running]:
        """How far off each may be, the open one first; each has half the beta of the one before.

        What a full one says follows from public numbers: one that never counted stands for it.
        """
        answers = [self._open.answer(beta / 2 if self._full else beta)]
        for number in range(self._full):
            full = self._made(number, SYSTEM)
            full.advance(full.horizon or 0)
            answers.append(full.answer(beta / 2 ** (number + 2)))
        return answers

    def fields(self) -> Fields:
        """Rows of a state whose lengths are public."""
        return {
            "kind": [*self.kind.name.encode()],
            "full": [self._full, int(self._carried / self.granularity)],
            "inner": np.frombuffer(self._open.state(), dtype=np.uint8).astype(np.int64),
        }

    def restore(self, fields: dict[str, list[int]]) -> None:
        """Go on with counters that were made as these are: with the same epsilon, above all."""
        self._full, carried = fields["full"]
        if not 0 <= self._full <= _MOST_FULL:
            raise misfit("hold few enough inner counters")
        self._carried = carried * self.granularity
        made, self._open = self._made(self._full, self._noise), self._stored(bytes(fields["inner"]))
        if (self._open.terms, self._open.horizon) != (made.terms, made.horizon):
            raise misfit("fit its inner counter")

    def _stored(self, state: bytes) -> ContinualCounter:
        stored: ContinualCounter = self.kind.from_state(state, noise=self._noise)
        return stored

    def _made(self, number: int, noise: Noise) -> ContinualCounter:
        """The counter of this number, before its first segment."""
        made: ContinualCounter = self.kind(horizon=self._room(number), noise=noise, **self.terms.keywords)
        return made

    def _room(self, number: int) -> int | None:
        """For how many segments the counter of this number has room."""
        return None if self._capacity is None else min(LARGEST, self._capacity * _GROWTH**number)


def class_named(name: str) -> type[Any]:
    """The counter class of this name, among all that are defined."""
    known = [ContinualCounter]
    for each in known:
        known += each.__subclasses__()
    named = [each for each in known if vars(each).get("name") == name]
    if not named:
        raise misfit("be over a counter that is known")
    return named[0]


def counting_segments(kind: Any) -> type[Any]:
    """A class of counters that takes what an inner counter is made with."""
    is_counter = isinstance(kind, type) and issubclass(kind, ContinualCounter)
    if not is_counter or not set(inspect.signature(kind).parameters) >= _TAKEN:
        rule = "must be a class of counters that take a horizon, a change and contributions"
        fix = "use Counter or TreeCounter"
        raise InvalidParameter("inner", rule, given=getattr(kind, "__name__", None), fix=fix)
    counting: type[Any] = kind
    return counting
