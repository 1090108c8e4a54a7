"""Enumeration cases of mechanisms about people and time: randomizers, pan-private sketches and counters."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from typing import Any, Final, NamedTuple, TypeAlias

import partita as pt
from partita import local, pan
from partita.audit.base import Case, Depth, step
from partita.audit.laws import HALF, TellingNoise, common_unit, law_loss
from partita.local.randomizer import WHOLE, KernelDraws, exp_bounds
from partita.public.stream_trees import PeriodTree, TreePlan
from partita.testing.doubles import ZeroNoise
from partita.testing.laws import (
    BoxLaw,
    Loss,
    NumberedNoise,
    OutputLaw,
    RationalNoise,
    box_law,
    law,
    noises_of,
)
from partita.trusted.noise.hazard import Law
from partita.trusted.streams.base import unpack
from partita.trusted.streams.sparse import SparsePlan

_THIRD: Final = Fraction(1, 3)
_BITS: Final = 256


# Local randomizers: every branch of what a device draws, for every cell.
def randomizer_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every randomizer of the registry, mixtures by ranges and rectangles, and a listed law."""
    sizes = (2, 3, 5, 8, 12, *range(13, 13 + more))[: step(depth, 2, 3, 5) + more]
    for epsilon in (Fraction(1), Fraction(1, 10), Fraction(5, 2))[: step(depth, 1, 2, 3)]:
        for name in RANDOMIZERS:
            yield from (_case(name, getattr(local, name)(size=size, epsilon=epsilon)) for size in sizes)
        for size in sizes:
            yield _case("Mixture", local.Range(size, epsilon=epsilon).randomizer)
    yield _case("Mixture", local.Rectangles({"x": 3, "y": 2}, epsilon=1).randomizer)
    table = ((2 * _THIRD, _THIRD), (_THIRD, 2 * _THIRD))
    yield _case("ListedLaw", local.ListedLaw(table=table, epsilon=Fraction(1)))


RANDOMIZERS: Final = (
    "RandomizedResponse",
    "ProjectiveResponse",
    "HadamardResponse",
    "UnaryEncoding",
    "LocalHashing",
    "OneBit",
    "Piecewise",
)


def _case(name: str, randomizer: Any) -> Case:
    size, epsilon = randomizer.size, randomizer.epsilon
    about = f"{size} cells, epsilon {epsilon}; a person's value changes"
    return Case(name, about, "law", epsilon, lambda: combinations(range(size), 2), _loss(randomizer))


def _loss(randomizer: Any) -> Callable[[int, int], float]:
    """The loss of a pair of cells, each law enumerated once."""
    law_of = cache(lambda x: device_law(randomizer, x))
    return lambda x, y: reports_lose(law_of(x), law_of(y), randomizer.epsilon)


def reports_lose(one: OutputLaw, other: OutputLaw, epsilon: Fraction) -> float:
    """What the laws of two reports lose; infinite if more than epsilon, which exact bounds on e decide."""
    ratio = _ratio(one, other)
    return math.inf if ratio is None or ratio > exp_bounds(epsilon, _BITS)[0] else math.log(ratio)


def _ratio(one: OutputLaw, other: OutputLaw) -> Fraction | None:
    if one.keys() != other.keys():
        return None
    pairs = {(id(one[report]), id(other[report])): (one[report], other[report]) for report in one}
    return max(max(p / q, q / p) for p, q in pairs.values())


def device_law(randomizer: Any, x: object) -> OutputLaw:
    """The law of one report about x: the shipped sampler through every branch of its draws."""
    noise = RationalNoise(Fraction(1, 2))
    return law(lambda noise: randomizer.randomize(x, draws=_BranchingDraws(noise)), noise)


class _BranchingDraws:
    """Draws that take every branch, with the probability of each; all else as on a device."""

    def __init__(self, noise: RationalNoise) -> None:
        self._noise = noise
        self._device = KernelDraws()

    def chance(self, threshold: int) -> bool:
        return self._noise.bernoulli(Fraction(threshold, WHOLE))

    def below(self, count: int) -> int:
        return self._noise.branches.choose([(number, Fraction(1, count)) for number in range(count)])

    def row(self, threshold: int, width: int) -> int:
        return sum(self.chance(threshold) << place for place in range(width))

    def each(self, part: int, samplers: Any, x: int) -> Any:
        return samplers[part](x, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


# Enumeration cases of the pan-private sketches: the state at one time and the outputs, together.
# A stream is a row of moments, in each of which one user comes or nobody does. Neighbours differ by all
# events of one user. The coins of a state have the shipped rational probabilities; exp(-output) is replaced
# by a rational number within 10^-12 of it, so losses are compared with a tolerance.
Moments: TypeAlias = tuple[Any, ...]
"""Who came in each moment; None if nobody did."""

_DIGITS: Final = 10**12


class IntruderView(NamedTuple):
    """A stream, and the moment before which an intruder looks."""

    stream: Moments
    look: int


@dataclass(frozen=True)
class SketchKind:
    """A kind of sketch: how it is made, what it publishes, which ids come, and the sums that may be told."""

    name: str
    make: Callable[..., Any]
    statistic: str
    ids: tuple[int, ...]
    sums: range
    spread: int = 1


def sketch_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every sketch: all streams of few moments, one look at any time, one output at the end.

    Most is lost by who comes both before and after the look, which takes two moments.
    """
    for kind in sketch_kinds():
        yield _pan_case(kind, 2 if len(kind.ids) == 1 or depth == "deep" else 1)


def sketch_kinds() -> Iterator[SketchKind]:
    """One or two of every kind, of as few users as it can have."""
    for users in (1, 2):
        density = _maker("Density", universe=users, output_share="0.1")
        yield SketchKind("Density", density, "density", ids=tuple(range(users)), sums=range(users + 1))
    distinct = _maker("Distinct", buckets=2, most=1, output_share="0.1")
    yield SketchKind("Distinct", distinct, "distinct", ids=(0, 1), sums=range(3))
    registers = _maker("Registers", universe=1, most=1, lowest=0, output_share="0.2")
    yield SketchKind("Registers", registers, "exactly-1", ids=(0,), sums=range(2))
    ramp = _maker("RampRegisters", universe=1, tops=[2], output_share="0.2")
    sketch = ramp(ZeroNoise())
    spread = sketch._readout(sketch._statistic("mean-2")).spread
    yield SketchKind("RampRegisters", ramp, "mean-2", ids=(0,), sums=range(3), spread=spread)


def _maker(name: str, **options: Any) -> Callable[..., Any]:
    """Makes a sketch with this noise, at epsilon 1 unless told otherwise."""
    return lambda noise, **changes: getattr(pan, name)(**{"epsilon": 1, **options, **changes}, noise=noise)


def _pan_case(kind: SketchKind, length: int) -> Case:
    def pairs() -> Iterator[tuple[IntruderView, IntruderView]]:
        for stream, look in product(product((None, *kind.ids), repeat=length), range(length + 1)):
            for user in sorted({each for each in stream if each is not None}):
                without = tuple(None if each == user else each for each in stream)
                yield IntruderView(stream, look), IntruderView(without, look)

    about = f"{len(kind.ids)} ids, {length} moments, one look, {kind.statistic}; a user comes or goes"
    return Case(kind.name, about, "law", kind.make(ZeroNoise()).promise.epsilon, pairs, sketch_loss(kind))


def sketch_loss(kind: SketchKind) -> Callable[[IntruderView, IntruderView], float]:
    """ln of the largest ratio between the laws of two views."""
    unit = kind.make(ZeroNoise()).output / kind.spread
    base = Fraction(round(math.exp(-unit) * _DIGITS), _DIGITS)

    @cache
    def law_of(view: IntruderView) -> OutputLaw:
        noise = TellingNoise(base, unit=unit, window=kind.sums)
        return law(lambda each: _seen(kind, view, each), noise)

    def loss(one: IntruderView, other: IntruderView) -> float:
        left, right = law_of(one), law_of(other)
        if left.keys() != right.keys():
            return math.inf
        return max(abs(math.log(left[view] / right[view])) for view in left)

    return loss


def _seen(kind: SketchKind, view: IntruderView, noise: Any) -> Hashable:
    """The tables when the intruder looks, and the output after the last moment."""
    sketch, seen = kind.make(noise), []
    for moment, user in enumerate((*view.stream, None)):
        if moment == view.look:
            seen += [tuple(table.ravel().tolist()) for table in sketch._tables()]
        if moment == len(view.stream):
            seen.append(sketch.release(kind.statistic).value)
        elif user is not None:
            sketch.update(user)
    return tuple(seen)


# Enumeration cases of the counters, against streams that are chosen while outputs are seen.
Outputs: TypeAlias = tuple[Any, ...]
Choose: TypeAlias = Callable[[Outputs], int]
Play: TypeAlias = Callable[["AdversarialStream", Any], Hashable]


class AdversarialStream(NamedTuple):
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


@dataclass(frozen=True)
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

    def play(self, stream: AdversarialStream, noise: Any) -> Hashable:
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
    plans = [TreePlan(2, 2, 2, 512, flat), TreePlan(2, 2, 1, 1, even), TreePlan(3, 3, 2, 512, flat)]
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
    for shape in (None, PeriodTree(2, (1,), (512, 512)))[: step(depth, 1, 2, 2)]:
        yield _sliding(4, shape)
    yield from _pan_private(depth)


_PLAIN: Final = ("PerStepCounter", "DirectCounter")
_VARIANTS: Final = ("default", "book")


def _counter(name: str, horizon: int, *, user: User = ONE, **options: Any) -> _Count:
    def make(noise: Any) -> Any:
        return getattr(pt, name)(epsilon=1, horizon=horizon, noise=noise, **user._asdict(), **options)

    return _Count(name=name, about=f"{horizon} periods", make=make, horizon=horizon, user=user)


def _sliding(horizon: int, shape: PeriodTree | None, user: User = ONE) -> _Count:
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
        terms = {"epsilon": 1, "horizon": horizon, "variant": variant, "live": live, **user._asdict()}
        return pt.PanPrivateCounter(**terms, noise=noise)

    about = f"{horizon} periods, {variant}, a look {'in' if live else 'after'} {look}"
    reach = 1 if horizon == 2 and not live and user == ONE else 0
    return _Count("PanPrivateCounter", about, make, horizon, reach, user, look=look, live=live)


def _streams(depth: Depth, more: int) -> Iterator[Choose]:
    """Who chooses what is counted: adaptive adversaries, then as many fixed streams as are asked for."""
    yield from _ADVERSARIES[: step(depth, 1, 2, 3)]
    yield from (partial(_count_by_period, number) for number in range(1, more + 1))


def _count_by_period(number: int, outputs: Outputs) -> int:
    """Counts by the period alone, in one of many ways."""
    return number * (len(outputs) + 1) % 5 - 1


def _box_case(count: _Count, depth: Depth, more: int) -> Case:
    about, pairs = (
        f"{count.about}; {count.user.said}",
        partial(event_pairs, count.horizon, depth, more, count.user),
    )
    loss = box_loss(count.play, reach=count.reach, most=count.user.most, horizon=count.horizon)
    return Case(count.name, about, "box", Fraction(1), pairs, loss)


def box_loss(
    play: Play, *, reach: int, most: int, horizon: int
) -> Callable[[AdversarialStream, AdversarialStream], Loss]:
    """The loss on noises within the reach, matched with those of `most` more; see `box_law`."""
    empty = AdversarialStream(_silent, (0,) * horizon)
    unit = common_unit(noises_of(lambda noise: play(empty, noise)))

    @cache
    def law_of(stream: AdversarialStream, reach: int) -> BoxLaw:
        return box_law(partial(play, stream), reach=reach, base=HALF, unit=unit)

    return matched(law_of, near=reach, far=reach + most, unit=unit)


def matched(
    law_of: Callable[[AdversarialStream, int], BoxLaw], *, near: int, far: int, unit: Fraction
) -> Callable[[AdversarialStream, AdversarialStream], Loss]:
    """The loss, either way: what noises within the near reach say, over what those of the far one say."""

    def loss(one: AdversarialStream, other: AdversarialStream) -> Loss:
        ratios = [
            _stream_ratio(law_of(one, near), law_of(other, far)),
            _stream_ratio(law_of(other, near), law_of(one, far)),
        ]
        known = [ratio for ratio in ratios if ratio is not None]
        return Loss(max(known) if len(known) == 2 else None, HALF, unit)

    return loss


def _stream_ratio(near: BoxLaw, far: BoxLaw) -> Fraction | None:
    """The most by which an outcome is likelier within the reach; None if it is impossible beyond."""
    if not near.keys() <= far.keys():
        return None
    return max(mass / far[outcome] for outcome, mass in near.items())


def _flips(horizon: int, user: User) -> Case:
    """Randomized response: all streams of bits, and each with bits of one user more."""

    def run(bits: tuple[int, ...], noise: Any) -> Hashable:
        terms = {"epsilon": 1, "horizon": horizon, "contributions": user.contributions}
        counter = pt.RandomizedResponseCounter(**terms, noise=noise)
        return tuple(counter.update_many(bits).tolist())

    def pairs() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for bits, events in product(product((0, 1), repeat=horizon), user.events(horizon)):
            both = tuple(bit + event for bit, event in zip(bits, events, strict=True))
            if max(both) == 1:
                yield bits, both

    loss = law_loss(run, TellingNoise(HALF, unit=Fraction(1, user.contributions), window=range(1)))
    about = f"{horizon} periods; {user.said}"
    return Case("RandomizedResponseCounter", about, "law", Fraction(1), pairs, loss)


def event_pairs(
    horizon: int, depth: Depth, more: int = 0, user: User = ONE
) -> Iterator[tuple[AdversarialStream, AdversarialStream]]:
    """The events of one more user in any periods; the other events are chosen by an adversary."""
    for choose in _streams(depth, more):
        for events in user.events(horizon):
            yield AdversarialStream(choose, (0,) * horizon), AdversarialStream(choose, events)


def _family_cases(depth: Depth, more: int) -> Iterator[Case]:
    """Two keys over one or two periods: events under either."""
    shapes = (PeriodTree(2, (), (1024,)), PeriodTree(2, (1,), (512, 512)))
    single = [(shape, ONE) for shape in shapes[: step(depth, 1, 2, 2)]]
    for shape, user in (*single, *((PeriodTree(1, (), (1024,)), user) for user in USERS)):
        about = f"2 keys, {shape.horizon} periods, {shape.levels} levels; {user.said}"
        pairs = partial(event_pairs, 2 * shape.horizon, depth, more, user)
        loss = box_loss(_family(shape, user), reach=0, most=user.most, horizon=2 * shape.horizon)
        yield Case("CounterFamily", about, "box", Fraction(1), pairs, loss)


def _family(shape: PeriodTree, user: User) -> Play:
    def play(stream: AdversarialStream, noise: Any) -> Hashable:
        terms = {"epsilon": 1, "horizon": shape.horizon, "shape": shape, **user._asdict()}
        family = pt.CounterFamily(keys=2, noise=noise, **terms)
        outputs: Outputs = ()
        for period in range(shape.horizon):
            chosen = stream.choose(outputs)
            outputs += tuple(family.update([chosen + x for x in stream.events[2 * period :][:2]]).tolist())
        return outputs

    return play


# Enumeration cases of the sparse counter: where its segments end, and what it publishes there.
def sparse_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Seals alone have half of epsilon; seals and counts together have all of it."""
    yield _seals("geometric", step(depth, 2, 3, 4), depth, more)
    yield _seals("laplace", step(depth, 2, 2, 3), depth, more)
    yield from (_seals("geometric", 2, depth, more, user) for user in USERS)
    about = "seals and counts of 2 periods; an event comes or goes"
    yield Case(
        "SparseCounter", about, "box", Fraction(2), partial(event_pairs, 2, depth, more), _joint_loss(2)
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


def _sealing(
    stream: AdversarialStream, noise: Any, kind: Law, *, outputs: bool, user: User = ONE
) -> Hashable:
    """Which periods sealed a segment, and what was published if that is asked for.

    Seals have epsilon 1 for each unit that a user may add.
    """
    horizon = len(stream.events)
    plan = SparsePlan(seals=32, threshold=1, offset=0, spread=0.0, capacity=horizon, law=kind)
    terms = {"epsilon": 2 * user.most, "horizon": horizon, "plan": plan, **user._asdict()}
    counter = pt.SparseCounter(**terms, inner=pt.PerStepCounter, noise=noise.session())
    seen: Outputs = ()
    for event in stream.events:
        before, output = counter.seals, counter.update(stream.choose(seen) + event)
        seen += (counter.seals - before, output) if outputs else (counter.seals - before,)
    return seen


def _seals(kind: Law, horizon: int, depth: Depth, more: int, user: User = ONE) -> Case:
    def run(stream: AdversarialStream, noise: Any) -> Hashable:
        return _sealing(stream, noise, kind, outputs=False, user=user)

    about = f"the seals of {horizon} periods, {kind} noise; {user.said}"
    pairs = partial(event_pairs, horizon, depth, more, user)
    return Case("SparseCounter", about, "law", Fraction(user.most), pairs, law_loss(run, _SealingNoise()))


def _joint_loss(horizon: int) -> Callable[[AdversarialStream, AdversarialStream], Loss]:
    """The law of the seals for each noise of the inner counter, summed over a box of these."""

    @cache
    def law_of(stream: AdversarialStream, reach: int) -> BoxLaw:
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
