"""Enumeration cases of the sparse counter: where its segments end, and what it publishes there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import partita as pt
from partita.audit.base.case import Case, Depth, step
from partita.audit.cases_people.proofs_streams import ONE, USERS, Outputs, Stream, User, event_pairs, matched
from partita.audit.laws.worlds import HALF, law_loss
from partita.testing.laws.loss import Loss
from partita.testing.laws.numbered import BoxLaw, NumberedNoise
from partita.testing.laws.rational import RationalNoise, law
from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.streams.sparse.sparse_plan import SparsePlan


def sparse_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Seals alone have half of epsilon; seals and counts together have all of it."""
    yield _seals("geometric", step(depth, 2, 3, 4), depth, more)
    yield _seals("laplace", step(depth, 2, 2, 3), depth, more)
    yield from (_seals("geometric", 2, depth, more, user) for user in USERS)
    yield Case(
        mechanism="SparseCounter",
        about="seals and counts of 2 periods; an event comes or goes",
        way="box",
        epsilon=Fraction(2),
        pairs=lambda: event_pairs(2, depth, more),
        loss=_joint_loss(2),
    )


class _SealingNoise(RationalNoise):
    """Rational noise for seals, and given numbers for the noise of inner counters."""

    def __init__(self, numbers: Callable[[int], int] = lambda _: 0) -> None:
        super().__init__(HALF)
        self._value = numbers
        self._inner = NumberedNoise(numbers)

    def session(self) -> _SealingNoise:
        """A new counter begins with the first number."""
        self._inner = NumberedNoise(self._value)
        return self

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        return self._inner.add(x, scale, parts=parts)


def _sealing(stream: Stream, noise: Any, kind: Law, *, outputs: bool, user: User = ONE) -> Hashable:
    """Which periods sealed a segment, and what was published if that is asked for.

    Seals have epsilon 1 for each unit that a user may add.
    """
    horizon = len(stream.events)
    plan = SparsePlan(seals=32, threshold=1, offset=0, spread=0.0, capacity=horizon, law=kind)
    counter = pt.SparseCounter(
        epsilon=2 * user.most,
        horizon=horizon,
        plan=plan,
        inner=pt.PerStepCounter,
        noise=noise.session(),
        **user._asdict(),
    )
    seen: Outputs = ()
    for event in stream.events:
        before, output = counter.seals, counter.update(stream.choose(seen) + event)
        seen += (counter.seals - before, output) if outputs else (counter.seals - before,)
    return seen


def _seals(kind: Law, horizon: int, depth: Depth, more: int, user: User = ONE) -> Case:
    def run(stream: Stream, noise: Any) -> Hashable:
        return _sealing(stream, noise, kind, outputs=False, user=user)

    return Case(
        mechanism="SparseCounter",
        about=f"the seals of {horizon} periods, {kind} noise; {user.said}",
        way="law",
        epsilon=Fraction(user.most),
        pairs=lambda: event_pairs(horizon, depth, more, user),
        loss=law_loss(run, _SealingNoise()),
    )


def _joint_loss(horizon: int) -> Callable[[Stream, Stream], Loss]:
    """The law of the seals for each noise of the inner counter, summed over a box of these."""

    @cache
    def law_of(stream: Stream, reach: int) -> BoxLaw:
        found = BoxLaw()
        for vector in product(range(-reach, reach + 1), repeat=horizon):
            weight = HALF ** sum(map(abs, vector))
            noise = _SealingNoise(vector.__getitem__)
            for outcome, mass in law(
                lambda each: _sealing(stream, each, "geometric", outputs=True), noise
            ).items():
                found[outcome] = found.get(outcome, Fraction(0)) + weight * mass
        return found

    return matched(law_of, near=1, far=2, unit=Fraction(1))
