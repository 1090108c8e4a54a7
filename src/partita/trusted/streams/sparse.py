"""The sparse counter: private segments of a stream, and a counter over them [DNRR15, section 3.1].

How it spends epsilon is chosen by a formula for its mean squared error, from public numbers. Events are taken
to arrive one by one, in each period with the same chance. Then the time that a segment spends with each
content is known, and with it how long segments are and how far the content of the open one lies from its
mean; see docs/proofs/sparse_counter.md. On other streams the choice is not the best one, and the guarantee is
the same.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Floats
from partita.errors import check, check_arguments
from partita.numbers import check_choice, check_probability, integer
from partita.public.stream_errors import Running
from partita.public.streams import LARGEST, CounterTerms, check_horizon, invalid_state
from partita.trusted.mechanisms.base import check_rows, check_scale
from partita.trusted.noise import hazard
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import enclose, floor
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.streams.base import (
    ContinualCounter,
    Fields,
    Stepping,
    counted,
    counts_of,
    last_bounded,
)
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.tree_counter import TreeCounter

PARTS: Final = 64
"""Seals have a multiple of 1 / PARTS of epsilon."""
FINE: Final = 1 << 16
"""The spread is a multiple of 1 / FINE."""

# The grid of plans that are tried: finer ones take longer to plan.
_SHARES: Final = range(4, 34, 2)
_THRESHOLDS: Final = 28
_HIGHEST: Final = 1.35  # the largest threshold, in units of ln(horizon) / rate
_FINEST_RATE: Final = 0.125  # below it contents are counted in units of several events: tables stay short
_QUANTILES: Final = (np.arange(24) + 0.5) / 24

_GROWTH: Final = 4  # each inner counter has room for so many times the segments of the one before
_FIRST: Final = 256
_MOST_FULL: Final = 31
_WHY_NOT: Final = {
    "sliding": "must count all segments, and this one forgets those that leave its window",
    "randomized-response": "must count numbers, which segments hold, and this one takes a number as a bit",
    "sparse": "must have errors known from public numbers, and those of this one depend on its segments",
    "family": "must have one count, and this one has a count for each key",
}
_INNER_PARAMETERS: Final = {"epsilon", "horizon", "change", "contributions", "noise"}


@dataclass(frozen=True, kw_only=True)
class SparsePlan:
    """The public numbers that a sparse counter runs on.

    `seals` is the share of epsilon for where segments end, in parts of PARTS. A segment is sealed when
    its noisy content exceeds a noisy `threshold`. The open one is taken to hold `offset`, give or take
    `spread`. The first inner counter has room for `capacity` segments, or for any number if it is None.
    """

    seals: int
    threshold: int
    offset: int
    spread: float
    capacity: int | None
    law: Law = "geometric"

    def __post_init__(self) -> None:
        integer(self.seals, "seals", low=1, high=PARTS - 1)
        integer(self.threshold, "threshold", low=0, high=LARGEST)
        integer(self.offset, "offset", low=0, high=LARGEST)
        integer(1 if self.capacity is None else self.capacity, "capacity", low=1, high=LARGEST)
        check_choice(self.law, "law", get_args(Law))


class _Segments(NamedTuple):
    """What segments are like: their mean length, and the mean and variance of what the open one holds."""

    length: float
    mean: float
    variance: float


def plan_for(
    *, horizon: int, rate: Fraction, expected: int | None, weight: int | None, beta: Fraction, paper: bool
) -> SparsePlan:
    """The plan for the one public hint that the constants take: `weight` for the paper's, else `expected`."""
    name, hint, other = ("weight", weight, expected) if paper else ("expected", expected, weight)
    fits = other is None and not (paper and hint is None)
    fix = "pass weight with the paper's constants, or expected with tuned ones"
    check(fits, name, "is the hint that these constants take", given=hint, fix=fix)
    hint = None if hint is None else integer(hint, name, low=1, high=LARGEST)
    if paper and hint is not None:
        return paper_plan(horizon=horizon, rate=rate, weight=hint, beta=beta)
    return tuned_plan(horizon=horizon, rate=rate, expected=hint)


@lru_cache(maxsize=256)
def tuned_plan(*, horizon: int, rate: Fraction, expected: int | None) -> SparsePlan:
    """The plan of the least mean squared error, if about `expected` events come in all.

    Without a hint: a plan for the square root of the horizon, and an inner counter without an end.

    >>> tuned_plan(horizon=2**20, rate=Fraction(1), expected=100).threshold
    51
    """
    guess = math.isqrt(horizon) if expected is None else expected
    unit = max(1, int(_FINEST_RATE / rate))
    arrivals = min(1.0, max(guess, 1) / unit / horizon)
    plans = [
        _candidate(horizon, float(rate) * unit, arrivals, share, part)
        for share in _SHARES
        for part in np.linspace(0, _HIGHEST, _THRESHOLDS)
    ]
    _, best = min(plans, key=lambda candidate: candidate[0])
    return SparsePlan(
        seals=best.seals,
        threshold=unit * best.threshold,
        offset=unit * best.offset,
        spread=round(unit * best.spread * FINE) / FINE,
        capacity=None if expected is None else best.capacity,
    )


def paper_plan(*, horizon: int, rate: Fraction, weight: int, beta: Fraction) -> SparsePlan:
    """The constants of the paper: half of epsilon each, T = 3 (ln D + ln 2/beta) / (epsilon/2), room for n.

    [DNRR15, Figure 1 and Theorem 3.1], with Laplace noise on contents and thresholds.
    """
    threshold = hazard.floor_log(2 * horizon / beta, 6 / rate)
    spread = float(threshold)
    return SparsePlan(
        seals=PARTS // 2, threshold=threshold, offset=0, spread=spread, capacity=weight, law="laplace"
    )


def _candidate(
    horizon: int, rate: float, arrivals: float, share: int, part: float
) -> tuple[float, SparsePlan]:
    """A plan and the error that the formula gives it."""
    sealing = rate * share / PARTS
    threshold = round(part * math.log(horizon + 1) / sealing)
    segments = _segments(sealing, threshold, arrivals)
    number = max(1.0, horizon / segments.length)
    capacity = math.ceil(number + 2 * math.sqrt(number)) + 1
    error = segments.variance + _inner_error(capacity) / (rate - sealing) ** 2
    offset, spread = round(segments.mean), math.sqrt(segments.variance)
    plan = SparsePlan(seals=share, threshold=threshold, offset=offset, spread=spread, capacity=capacity)
    return error, plan


def _inner_error(capacity: int) -> float:
    """About the mean squared error of `Counter` at epsilon 1."""
    return max(min(0.92 * (capacity + 1), 8.3), (0.72 + 0.412 * math.log2(capacity)) ** 3)


def _segments(rate: float, threshold: int, arrivals: float) -> _Segments:
    """Segments under steady arrivals, averaged over quantiles of the noise on the threshold.

    From a content c on, a period adds an event with chance r, and seals with the chance h of fresh noise
    above what is missing. So V(0) = 1 / d(0) and V(c) = V(c-1) r (1 - h(c)) / d(c) periods are spent
    with each content, d = h + r - r h.
    """
    noise = np.floor(-np.log1p(-_QUANTILES) / rate)
    content = np.arange(threshold + int(noise.max()) + 1)
    missing = threshold + noise[:, np.newaxis] - content
    seal = np.where(missing >= 0, np.exp(-rate * (np.maximum(missing, 0) + 1)), 1.0)
    leave = seal + arrivals - seal * arrivals
    factors = arrivals * (1 - seal) / leave
    factors[:, 0] = 1 / leave[:, 0]
    spent = factors.cumprod(axis=1).mean(axis=0)
    length = float(spent.sum())
    mean = float(spent @ content) / length
    return _Segments(length, mean, float(spent @ (content - mean) ** 2) / length)


class InnerCounters:
    """The counters over the segments, with the rest of epsilon: one, and when it is full another one.

    The first counter has room for as many segments as the plan says, each further one for four times as
    many as the one before. A segment lies in one of them, and the last output of a full one stays.
    """

    def __init__(self, kind: type[Any], terms: CounterTerms, plan: SparsePlan, noise: Noise) -> None:
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

    def bound(self, segments: int, beta: Fraction) -> float:
        """With probability 1 - beta they are never off by more together, over so many segments.

        Each has an equal share of beta; the last may not be full.
        """
        made, left = [self._made(0, SYSTEM)], segments
        while (room := self._room(len(made) - 1)) is not None and room < left:
            left -= room
            made.append(self._made(len(made), SYSTEM))
        share = beta / len(made)
        return sum(
            each.bound(share, rows=LARGEST, periods=segments if each.horizon is None else None)
            for each in made
        )

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
            raise invalid_state("hold few enough inner counters")
        self._carried = carried * self.granularity
        made = self._made(self._full, self._noise)
        self._open = self.kind.from_state(bytes(fields["inner"]), noise=self._noise)
        if (self._open.terms, self._open.horizon) != (made.terms, made.horizon):
            raise invalid_state("fit its inner counter")

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
        raise invalid_state("be over a counter that is known")
    return named[0]


def counting_segments(kind: Any) -> type[Any]:
    """A class of counters over numbers that come one after another, each once, up to a horizon."""
    given, fix = getattr(kind, "__name__", None), "use Counter or TreeCounter"
    why_not = _WHY_NOT.get(getattr(kind, "name", ""))
    check(why_not is None, "inner", why_not or "", given=given, fix=fix)
    is_counter = isinstance(kind, type) and issubclass(kind, ContinualCounter)
    fits = is_counter and set(inspect.signature(kind).parameters) >= _INNER_PARAMETERS
    rule = "must be a class of counters that take a horizon, a change and contributions"
    check(fits and not inspect.isabstract(kind), "inner", rule, given=given, fix=fix)
    counter: type[Any] = kind
    return counter


Constants: TypeAlias = Literal["tuned", "paper"]

_LAWS: Final = get_args(Law)


@final
@check_arguments
class SparseCounter(Stepping, ContinualCounter):
    """Count a stream in which little happens: segments are sealed privately, and only they are counted.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     O((log horizon + log^2 n) / epsilon) for n events, in all periods at once; at 2^20 periods
               and epsilon 1 the mean squared error is about 50 for 100 events, and 200 for 10,000.
    Proof:     docs/proofs/sparse_counter.md                                        [DNRR15, Thm 3.1]

    An output changes only in a period that seals a segment; it may be one in which nothing came.
    `expected` is a public hint of the number of events in all: parameters are tuned for it, and without
    it for any number. `constants="paper"` takes those of the paper, and needs a public bound `weight` of
    that number. `inner` is the class of the counter over the segments. When it is full, another one with
    room for four times as many goes on: the guarantee stays, and the error grows. `plan` replaces all that
    is worked out from hints.

    >>> counter = SparseCounter(epsilon=1, horizon=2**20, expected=100)
    >>> counter.advance(1000)
    >>> counter.plan.threshold, counter.guarantee
    (51, Guarantee(epsilon=1, neighbors=add-remove, unit=event))
    """

    name: ClassVar[str] = "sparse"

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int,
        expected: int | None = None,
        constants: Constants = "tuned",
        weight: int | None = None,
        beta: object = "0.05",
        inner: type[Any] | None = None,
        plan: SparsePlan | None = None,
        change: int = 1,
        contributions: int = 1,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        self._length = check_horizon(horizon)
        check_scale(PARTS / terms.rate, terms.epsilon)
        paper = check_choice(constants, "constants", get_args(Constants)) == "paper"
        kind = counting_segments(inner or (TreeCounter if paper else Counter))
        self.plan = plan or plan_for(
            horizon=self._length,
            rate=terms.rate,
            expected=expected,
            weight=weight,
            beta=check_probability(beta),
            paper=paper,
        )
        self.scale = PARTS / (terms.rate * self.plan.seals)
        check_scale(self.scale, terms.epsilon)
        self._noise = noise.session()
        super().__init__(terms=terms, horizon=self._length, secure=self._noise.secure)
        self._inner = InnerCounters(kind, terms, self.plan, self._noise)
        self.granularity = self._inner.granularity
        self._content = 0
        self._missing: Any = None
        self._show()

    @property
    def seals(self) -> int:
        """How many segments are sealed."""
        return self._inner.segments

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return self._output if self._periods else Fraction(0)

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""
        x = counted(x)
        self._make_room(1)
        with self._step():
            self._add(x)
            ((_, output),) = self._walk(1)
        return float(output)

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""
        counts = counts_of(xs)
        self._make_room(counts.size)
        stretches: list[tuple[int, Fraction]] = []
        with self._step():
            for x, periods in _runs(counts):
                self._add(x)
                stretches += self._walk(periods)
        lengths, outputs = zip(*stretches, strict=True) if stretches else ((), ())
        return np.repeat(np.array(outputs, dtype=np.float64), np.array(lengths, dtype=np.int64))

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted: as many steps as segments are sealed in them."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            for _ in self._walk(periods):
                pass

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods up to it.

        The bounds hold for any stream without negative numbers; `error` supposes steady arrivals.
        """
        chance = float(check_probability(beta)) / 2
        counters = self._inner.answers(chance)
        reach = sum((each.high - each.low) / 2 for each in counters)
        most = self._most_open(chance)
        sealed = self.value - (self.plan.offset if self._periods else 0)
        return Running(
            value=self.value,
            error=math.sqrt(sum(each.error**2 for each in counters) + self.plan.spread**2),
            low=sealed - reach,
            high=sealed + reach + most,
            everywhere=sum(each.everywhere for each in counters)
            + max(self.plan.offset, most - self.plan.offset),
        )

    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta no output is off by more: Theorem 3.1 as a number, known before any data.

        It is about all outputs up to the horizon, for any stream without negative numbers in which at most
        `rows` events come. A third of beta each for the number of segments, for what the open one holds, and
        for the inner counters; docs/proofs/sparse_counter.md, "The bound before any data".
        """
        last, events = last_bounded(self.horizon, periods), check_rows(rows)
        share = check_probability(beta) / 3
        plan = self.plan
        empty = hazard.scaled(hazard.difference(plan.law, self.scale, plan.threshold + 1), last)
        sealed = min(last, events + floor(lambda: empty.real() / enclose(share)))
        most = plan.threshold + self._noise_of_segments(sealed + 1, share)
        return self._inner.bound(max(1, sealed), share) + max(plan.offset, most - plan.offset)

    def _noise_of_segments(self, segments: int, beta: Fraction) -> int:
        """By how much what an open segment holds may exceed the threshold, in any of the first so many."""
        if self.plan.law == "geometric":
            return hazard.geometric_quantile(self.scale, beta / segments)
        return hazard.difference_quantile("laplace", self.scale, beta / segments)

    def _add(self, x: int) -> None:
        """Count in the open segment; begin one if none is open, and draw what it lacks to be sealed."""
        if self._missing is None:
            self._missing = self.plan.threshold + self._noise.draw(self.plan.law, self.scale)
        self._content += x
        self._missing = self._missing - x

    def _walk(self, periods: int) -> Iterator[tuple[int, Fraction]]:
        """Close periods in which nothing more is counted: outputs, and for how many periods each stands.

        A period seals the segment if fresh noise exceeds what is missing. Noise of other periods tells
        nothing about it, so that it is drawn afresh for each run and never kept.
        """
        while periods:
            self._add(0)
            fresh = self._noise.first_success(self.plan.law, self.scale)
            seal = fresh.run(self._missing, periods)
            quiet = periods if seal is None else seal
            self._periods += quiet
            periods -= quiet
            if quiet:
                yield quiet, self._output
            if seal is not None:
                self._periods += 1
                periods -= 1
                yield 1, self._sealed()

    def _sealed(self) -> Fraction:
        """Hand the open segment to the inner counter: the new output."""
        self._inner.count(self._content)
        self._content, self._missing = 0, None
        self._show()
        return self._output

    def _show(self) -> None:
        """What is published as long as no more is sealed."""
        self._output = self._inner.exact + self.plan.offset

    def _most_open(self, beta: float) -> int:
        """The open segment holds no more than this: it was not sealed, so its threshold was high.

        Segment j has noise above q with probability at most a^q, and has beta / (j (j+1)) of all beta.
        """
        number = self.seals + 1
        chance = Fraction(beta) / (number * (number + 1))
        if self.plan.law == "geometric":
            return self.plan.threshold + hazard.geometric_quantile(self.scale, chance)
        return self.plan.threshold + hazard.difference_quantile("laplace", self.scale, chance / self._length)

    def _fields(self) -> Fields:
        plan = self.plan
        numbers = [plan.seals, plan.threshold, plan.offset, -1 if plan.capacity is None else plan.capacity]
        return {
            "plan": [self._length, *numbers, round(plan.spread * FINE), _LAWS.index(plan.law)],
            "segment": [self._content, int(self._missing is not None), self._missing or 0],
            **self._inner.fields(),
        }

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        horizon, seals, threshold, offset, capacity, spread, law = fields["plan"]
        plan = SparsePlan(
            seals=seals,
            threshold=threshold,
            offset=offset,
            spread=spread / FINE,
            capacity=None if capacity == -1 else capacity,
            law=dict(enumerate(_LAWS))[law],
        )
        inner = class_named(bytes(fields["kind"]).decode())
        return cls(horizon=horizon, plan=plan, inner=inner, noise=noise, **terms.keywords)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._content, is_open, missing = fields["segment"]
        self._missing = missing if is_open else None
        self._inner.restore(fields)
        if self.seals > self._periods:
            raise invalid_state("have a period for each segment")
        self._show()


def _runs(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Each number that is not zero, and how many periods later the next one comes."""
    starts = np.flatnonzero(counts)
    if counts.size and (not starts.size or starts[0]):
        starts = np.concatenate([[0], starts])
    lengths = np.diff(starts, append=counts.size)
    yield from zip(counts[starts].tolist(), lengths.tolist(), strict=True)
