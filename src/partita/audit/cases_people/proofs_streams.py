"""Enumeration cases of the counters, against streams that are chosen while outputs are seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

import partita as pt
from partita.audit.base.case import Case, Depth, step
from partita.audit.laws.worlds import HALF, TellingNoise, common_unit, law_loss
from partita.testing.laws.loss import Loss
from partita.testing.laws.numbered import BoxLaw, NumberedNoise, box_law, noises_of
from partita.trusted.streams.base.state import unpack
from partita.trusted.streams.centred.branching import Plan
from partita.trusted.streams.family.columns import Shape

Outputs: TypeAlias = tuple[Any, ...]
Choose: TypeAlias = Callable[[Outputs], int]
Play: TypeAlias = Callable[["Stream", Any], Hashable]


class Stream(NamedTuple):
    """What is counted: what an adversary chooses after each output, and events on top of it."""

    choose: Choose
    events: tuple[int, ...]


def _silent(outputs: Outputs) -> int:
    """Counts nothing, whatever comes out."""
    return 0


def _greedy(outputs: Outputs) -> int:
    """Counts more where the last output was high, and less where it was low."""
    return 2 if outputs and outputs[-1] > 0 else -1


def _parity(outputs: Outputs) -> int:
    """Counts by the sum of all outputs."""
    return int(sum(outputs)) % 3


_ADVERSARIES: Final = (_silent, _greedy, _parity)


class User(NamedTuple):
    """Who is protected: somebody with at most so many events, each of which adds at most `change`."""

    contributions: int = 1
    change: int = 1

    @property
    def most(self) -> int:
        """How much they add at most."""
        return self.contributions * self.change

    @property
    def said(self) -> str:
        """In words."""
        if self.contributions > 1:
            return f"a user with at most {self.contributions} events comes or goes"
        return "an event" + (f" of up to {self.change}" if self.change > 1 else "") + " comes or goes"

    def events(self, horizon: int) -> Iterator[tuple[int, ...]]:
        """All ways to put their events into periods.

        >>> list(User(change=2).events(2))
        [(0, 1), (0, 2), (1, 0), (2, 0)]
        """
        for way in product(range(self.most + 1), repeat=horizon):
            if 0 < sum(-(-added // self.change) for added in way) <= self.contributions:
                yield way


ONE: Final = User()
USERS: Final = (User(contributions=2), User(change=2))
"""Those who may add more than one."""


@dataclass(frozen=True, kw_only=True)
class _Count:
    """A counter over few periods: how it is made, how long, how far noise is followed, and an intruder.

    `look` is the step before which an intruder reads the state of the counter; None if nobody does. Of a
    counter that is `live` it is the period in which they read it, after its events and before its output.
    """

    name: str
    about: str
    make: Callable[[Any], Any]
    horizon: int
    reach: int = 1
    user: User = ONE
    look: int | None = None
    live: bool = False

    def play(self, stream: Stream, noise: Any) -> Hashable:
        """All outputs, and the state where somebody looks."""
        counter = self.make(noise)
        seen: Outputs = ()
        outputs: Outputs = ()
        for period in range(self.horizon + 1):
            x = stream.choose(outputs) + stream.events[period] if period < self.horizon else 0
            if self.live and period < self.horizon:
                counter.open()
                counter.add(x)
                x = 0
            if period == self.look:
                seen = tuple(map(tuple, unpack(counter.state(), counter.name, 1).values()))
            if period < self.horizon:
                outputs += (counter.update(x),)
        return outputs, seen


def counter_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every public counter; with `more`, also more fixed streams."""
    for count in _counts(depth):
        yield _box_case(count, depth, more)
    yield _flips(step(depth, 2, 3, 3), ONE)
    yield _flips(2, USERS[0])
    yield from _family_cases(depth, more)


def _counts(depth: Depth) -> Iterator[_Count]:
    flat, even = (0, 0, 0, 0), (1, 1, 1, 1)
    plans = [Plan(2, 2, 2, 512, flat), Plan(2, 2, 1, 1, even), Plan(3, 3, 2, 512, flat)]
    for plan in plans[: step(depth, 2, 3, 3)]:
        yield _counter("Counter", plan.horizon, plan=plan)
    for horizon, branching in ((2, 2), (3, 2), (4, 2), (3, 3))[: step(depth, 2, 4, 4)]:
        yield _counter("TreeCounter", horizon, branching=branching)
    for name in ("PerStepCounter", "DirectCounter"):
        yield _counter(name, 3)
    for user in USERS:
        yield from (_counter(name, 2, user=user) for name in ("Counter", "TreeCounter", *_PLAIN))
        yield _sliding(2, None, user)
        yield from (_pan_count(variant, 2, 1, user=user) for variant in _VARIANTS)
    for shape in (None, Shape(2, (1,), (512, 512)))[: step(depth, 1, 2, 2)]:
        yield _sliding(4, shape)
    yield from _pan_private(depth)


_PLAIN: Final = ("PerStepCounter", "DirectCounter")
_VARIANTS: Final = ("default", "book")


def _counter(name: str, horizon: int, *, user: User = ONE, **options: Any) -> _Count:
    def make(noise: Any) -> Any:
        return getattr(pt, name)(epsilon=1, horizon=horizon, noise=noise, **user._asdict(), **options)

    return _Count(name=name, about=f"{horizon} periods", make=make, horizon=horizon, user=user)


def _sliding(horizon: int, shape: Shape | None, user: User = ONE) -> _Count:
    def make(noise: Any) -> Any:
        return pt.SlidingCounter(window=2, epsilon=1, shape=shape, noise=noise, **user._asdict())

    about = f"{horizon} periods, a window of 2"
    return _Count(name="SlidingCounter", about=about, make=make, horizon=horizon, reach=0, user=user)


def _pan_private(depth: Depth) -> Iterator[_Count]:
    """One look at the state: before every step and after the last, or in the midst of a period.

    With three periods there is an interval of two, whose noise is in the state; of these the quick depth
    takes one look, from within that interval.
    """
    for variant in _VARIANTS:
        yield from (_pan_count(variant, 2, look) for look in range(3))
        yield from (_pan_count(variant, 2, look, live=True) for look in range(2))
    for variant in _VARIANTS[: step(depth, 1, 1, 2)]:
        yield from (_pan_count(variant, 3, look) for look in ((1,) if depth == "quick" else range(4)))
        if depth == "deep":
            yield from (_pan_count(variant, 3, look, live=True) for look in range(3))


def _pan_count(variant: Any, horizon: int, look: int, *, user: User = ONE, live: bool = False) -> _Count:
    def make(noise: Any) -> Any:
        return pt.PanPrivateCounter(
            epsilon=1, horizon=horizon, variant=variant, live=live, noise=noise, **user._asdict()
        )

    return _Count(
        name="PanPrivateCounter",
        about=f"{horizon} periods, {variant}, a look {'in' if live else 'after'} {look}",
        make=make,
        horizon=horizon,
        reach=1 if horizon == 2 and not live and user == ONE else 0,
        user=user,
        look=look,
        live=live,
    )


def _streams(depth: Depth, more: int) -> Iterator[Choose]:
    """Who chooses what is counted: adaptive adversaries, then as many fixed streams as are asked for."""
    yield from _ADVERSARIES[: step(depth, 1, 2, 3)]
    yield from (partial(_fixed, number) for number in range(1, more + 1))


def _fixed(number: int, outputs: Outputs) -> int:
    """Counts by the period alone, in one of many ways."""
    return number * (len(outputs) + 1) % 5 - 1


def _box_case(count: _Count, depth: Depth, more: int) -> Case:
    return Case(
        mechanism=count.name,
        about=f"{count.about}; {count.user.said}",
        way="box",
        epsilon=Fraction(1),
        pairs=lambda: event_pairs(count.horizon, depth, more, count.user),
        loss=box_loss(count.play, reach=count.reach, most=count.user.most, horizon=count.horizon),
    )


def box_loss(play: Play, *, reach: int, most: int, horizon: int) -> Callable[[Stream, Stream], Loss]:
    """The loss on noises within the reach, matched with those of `most` more; see `box_law`."""
    empty = Stream(_silent, (0,) * horizon)
    unit = common_unit(noises_of(lambda noise: play(empty, noise)))

    @cache
    def law_of(stream: Stream, reach: int) -> BoxLaw:
        def run(noise: NumberedNoise) -> Hashable:
            return play(stream, noise)

        return box_law(run, reach=reach, base=HALF, unit=unit)

    return matched(law_of, near=reach, far=reach + most, unit=unit)


def matched(
    law_of: Callable[[Stream, int], BoxLaw], *, near: int, far: int, unit: Fraction
) -> Callable[[Stream, Stream], Loss]:
    """The loss, either way: what noises within the near reach say, over what those of the far one say."""

    def loss(one: Stream, other: Stream) -> Loss:
        ratios = [
            _ratio(law_of(one, near), law_of(other, far)),
            _ratio(law_of(other, near), law_of(one, far)),
        ]
        known = [ratio for ratio in ratios if ratio is not None]
        return Loss(max(known) if len(known) == 2 else None, HALF, unit)

    return loss


def _ratio(near: BoxLaw, far: BoxLaw) -> Fraction | None:
    """The most by which an outcome is likelier within the reach; None if it is impossible beyond."""
    if not near.keys() <= far.keys():
        return None
    return max(mass / far[outcome] for outcome, mass in near.items())


def _flips(horizon: int, user: User) -> Case:
    """Randomized response: all streams of bits, and each with bits of one user more."""

    def run(bits: tuple[int, ...], noise: Any) -> Hashable:
        counter = pt.RandomizedResponseCounter(
            epsilon=1, horizon=horizon, contributions=user.contributions, noise=noise
        )
        return tuple(counter.update_many(bits).tolist())

    def pairs() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for bits, events in product(product((0, 1), repeat=horizon), user.events(horizon)):
            both = tuple(bit + event for bit, event in zip(bits, events, strict=True))
            if max(both) == 1:
                yield bits, both

    return Case(
        mechanism="RandomizedResponseCounter",
        about=f"{horizon} periods; {user.said}",
        way="law",
        epsilon=Fraction(1),
        pairs=pairs,
        loss=law_loss(run, TellingNoise(HALF, unit=Fraction(1, user.contributions), window=range(1))),
    )


def event_pairs(
    horizon: int, depth: Depth, more: int = 0, user: User = ONE
) -> Iterator[tuple[Stream, Stream]]:
    """The events of a user more in any periods, whoever chooses the rest."""
    for choose in _streams(depth, more):
        for events in user.events(horizon):
            yield Stream(choose, (0,) * horizon), Stream(choose, events)


def _family_cases(depth: Depth, more: int) -> Iterator[Case]:
    """Two keys over one or two periods: events under either."""
    shapes = (Shape(2, (), (1024,)), Shape(2, (1,), (512, 512)))
    single = [(shape, ONE) for shape in shapes[: step(depth, 1, 2, 2)]]
    for shape, user in (*single, *((Shape(1, (), (1024,)), user) for user in USERS)):
        yield Case(
            mechanism="CounterFamily",
            about=f"2 keys, {shape.horizon} periods, {shape.levels} levels; {user.said}",
            way="box",
            epsilon=Fraction(1),
            pairs=partial(event_pairs, 2 * shape.horizon, depth, more, user),
            loss=box_loss(_family(shape, user), reach=0, most=user.most, horizon=2 * shape.horizon),
        )


def _family(shape: Shape, user: User) -> Play:
    def play(stream: Stream, noise: Any) -> Hashable:
        terms = {"epsilon": 1, "horizon": shape.horizon, "shape": shape, **user._asdict()}
        family = pt.CounterFamily(keys=2, noise=noise, **terms)
        outputs: Outputs = ()
        for period in range(shape.horizon):
            chosen = stream.choose(outputs)
            outputs += tuple(family.update([chosen + x for x in stream.events[2 * period :][:2]]).tolist())
        return outputs

    return play
