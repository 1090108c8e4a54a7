"""Enumeration cases of the counters, against streams that are chosen while outputs are seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

import partita as pt
from partita.auditing.cases import Case, Depth, step
from partita.auditing.worlds import HALF, TellingNoise, common_unit, law_loss
from partita.streams.branching import Plan
from partita.streams.columns import Shape
from partita.streams.state import unpack
from partita.testing import Loss
from partita.testing.numbered import BoxLaw, NumberedNoise, box_law, noises_of

__all__ = ["Outputs", "Stream", "box_loss", "counter_cases", "event_pairs", "matched"]

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


@dataclass(frozen=True, kw_only=True)
class _Count:
    """A counter over few periods: how it is made, how long, how far noise is followed, and an intruder.

    `look` is the step before which an intruder reads the state of the counter; None if nobody does.
    """

    name: str
    about: str
    make: Callable[[Any], Any]
    horizon: int
    reach: int = 1
    events: int = 1
    look: int | None = None

    def play(self, stream: Stream, noise: Any) -> Hashable:
        """All outputs, and the state where somebody looks."""
        counter = self.make(noise)
        seen: list[tuple[int, ...]] = []
        outputs: Outputs = ()
        for period in range(self.horizon + 1):
            if period == self.look:
                seen += [tuple(row) for row in unpack(counter.state(), counter.name, 1).values()]
            if period < self.horizon:
                outputs += (counter.update(stream.choose(outputs) + stream.events[period]),)
        return outputs, tuple(seen)


def counter_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every public counter; with `more`, also more fixed streams."""
    for count in _counts(depth):
        yield _box_case(count, depth, more)
    yield _flips(depth)
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
        yield _counter(name, 2, events=2, contributions=2)
    for shape in (None, Shape(2, (1,), (512, 512)))[: step(depth, 1, 2, 2)]:
        yield _Count(
            name="SlidingCounter",
            about="4 periods, a window of 2",
            make=_sliding(shape),
            horizon=4,
            reach=0,
        )
    yield from _pan_private(depth)


def _counter(name: str, horizon: int, *, events: int = 1, **options: Any) -> _Count:
    def make(noise: Any) -> Any:
        return getattr(pt, name)(epsilon=1, horizon=horizon, noise=noise, **options)

    return _Count(name=name, about=f"{horizon} periods", make=make, horizon=horizon, events=events)


def _sliding(shape: Shape | None) -> Callable[[Any], Any]:
    return lambda noise: pt.SlidingCounter(window=2, epsilon=1, shape=shape, noise=noise)


def _pan_private(depth: Depth) -> Iterator[_Count]:
    """One look at the state before every step, and after the last."""
    for variant in ("default", "book"):
        for horizon in (2, 3)[: step(depth, 1, 1, 2)]:
            for look in range(horizon + 1):
                yield _pan_count(variant, horizon, look)


def _pan_count(variant: Any, horizon: int, look: int) -> _Count:
    return _Count(
        name="PanPrivateCounter",
        about=f"{horizon} periods, {variant}, a look after {look}",
        make=lambda noise: pt.PanPrivateCounter(epsilon=1, horizon=horizon, variant=variant, noise=noise),
        horizon=horizon,
        reach=1 if horizon == 2 else 0,
        look=look,
    )


def _streams(depth: Depth, more: int) -> Iterator[Choose]:
    """Who chooses what is counted: adaptive adversaries, then as many fixed streams as are asked for."""
    yield from _ADVERSARIES[: step(depth, 1, 2, 3)]
    yield from (partial(_fixed, number) for number in range(1, more + 1))


def _fixed(number: int, outputs: Outputs) -> int:
    """Counts by the period alone, in one of many ways."""
    return number * (len(outputs) + 1) % 5 - 1


def _added(horizon: int, events: int) -> Iterator[tuple[int, ...]]:
    """All ways to put a user's events into periods."""
    return (chosen for chosen in product(range(events + 1), repeat=horizon) if 0 < sum(chosen) <= events)


def _box_case(count: _Count, depth: Depth, more: int) -> Case:
    def pairs() -> Iterator[tuple[Stream, Stream]]:
        for choose in _streams(depth, more):
            for events in _added(count.horizon, count.events):
                yield Stream(choose, (0,) * count.horizon), Stream(choose, events)

    return Case(
        mechanism=count.name,
        about=f"{count.about}; "
        + ("an event comes or goes" if count.events == 1 else f"a user with {count.events} events"),
        way="box",
        epsilon=Fraction(1),
        pairs=pairs,
        loss=box_loss(count.play, reach=count.reach, events=count.events, horizon=count.horizon),
    )


def box_loss(play: Play, *, reach: int, events: int, horizon: int) -> Callable[[Stream, Stream], Loss]:
    """The loss on noises within the reach, matched with those of `events` more; see `box_law`."""
    empty = Stream(_silent, (0,) * horizon)
    unit = common_unit(noises_of(lambda noise: play(empty, noise)))

    @cache
    def law_of(stream: Stream, reach: int) -> BoxLaw:
        def run(noise: NumberedNoise) -> Hashable:
            return play(stream, noise)

        return box_law(run, reach=reach, base=HALF, unit=unit)

    return matched(law_of, near=reach, far=reach + events, unit=unit)


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


def _flips(depth: Depth) -> Case:
    """Randomized response: all streams of bits, and each with one bit changed."""
    horizon = step(depth, 2, 3, 3)

    def run(bits: tuple[int, ...], noise: Any) -> Hashable:
        counter = pt.RandomizedResponseCounter(epsilon=1, horizon=horizon, noise=noise)
        return tuple(counter.update_many(bits).tolist())

    def pairs() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for bits in product((0, 1), repeat=horizon):
            for place in (place for place, bit in enumerate(bits) if not bit):
                yield bits, (*bits[:place], 1, *bits[place + 1 :])

    return Case(
        mechanism="RandomizedResponseCounter",
        about=f"{horizon} periods; an event comes or goes",
        way="law",
        epsilon=Fraction(1),
        pairs=pairs,
        loss=law_loss(run, TellingNoise(HALF, window=range(1))),
    )


def event_pairs(horizon: int, depth: Depth, more: int = 0) -> Iterator[tuple[Stream, Stream]]:
    """One event more in any period, whoever chooses the rest."""
    for choose in _streams(depth, more):
        for events in _added(horizon, 1):
            yield Stream(choose, (0,) * horizon), Stream(choose, events)


def _family_cases(depth: Depth, more: int) -> Iterator[Case]:
    """Two keys over two periods: an event under either."""
    shapes = (Shape(2, (), (1024,)), Shape(2, (1,), (512, 512)))
    for shape in shapes[: step(depth, 1, 2, 2)]:
        yield Case(
            mechanism="CounterFamily",
            about=f"2 keys, 2 periods, {shape.levels} levels; an event comes or goes",
            way="box",
            epsilon=Fraction(1),
            pairs=lambda: event_pairs(4, depth, more),
            loss=box_loss(_family(shape), reach=0, events=1, horizon=4),
        )


def _family(shape: Shape) -> Play:
    def play(stream: Stream, noise: Any) -> Hashable:
        family = pt.CounterFamily(keys=2, epsilon=1, horizon=2, shape=shape, noise=noise)
        outputs: Outputs = ()
        for period in range(2):
            chosen = stream.choose(outputs)
            outputs += tuple(family.update([chosen + x for x in stream.events[2 * period :][:2]]).tolist())
        return outputs

    return play
