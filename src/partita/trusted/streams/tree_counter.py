"""The counters of the papers: noise on every node of a tree, and three naive ways to count [DR14, 12.3].

The naive ones are baselines. Each is private, and its error grows with the horizon, where that of `Counter`
grows with its logarithm.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.errors import InvalidParameter, check, check_arguments
from partita.numbers import check_probability, integer
from partita.public.bounds import laplace_variance
from partita.public.stream_errors import NoiseSum, Running, TreeCounterErrors, noise_sum
from partita.public.stream_trees import CounterTree
from partita.public.streams import LARGEST, CounterTerms, check_horizon, invalid_state
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.noise.laws import IntegerArray
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.streams.base import (
    ContinualCounter,
    Fields,
    Row,
    Stepping,
    Supply,
    counted,
    counts_of,
    integers,
    is_wide,
    last_bounded,
)
from partita.trusted.streams.counter import NoisyCount

_FINE: Final = 1 << 16
_AT_ONCE: Final = 1 << 18  # bits that are flipped at once: memory against calls


class _SummedNoise:
    """Fresh noise in every period; errors are their sums."""

    def __init__(self, scale: Fraction, horizon: int, noise: Noise) -> None:
        self._supply = Supply(scale, horizon, noise)
        self._wide = is_wide(scale)

    def step(self) -> int:
        return self._supply.take()

    def many(self, periods: int) -> IntegerArray:
        return integers([self.step() for _ in range(periods)], wide=self._wide)

    def skip(self, periods: int) -> int:
        return sum(self.step() for _ in range(periods))

    def fields(self) -> dict[str, Row]:
        return self._supply.fields()

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        self._supply.restore(fields)


class _ReplacedNoise(_SummedNoise):
    """Fresh noise in every output, in place of the last."""

    def __init__(self, scale: Fraction, horizon: int, noise: Noise) -> None:
        super().__init__(scale, horizon, noise)
        self._last = 0

    def step(self) -> int:
        """By how much the noise of the next output exceeds the last."""
        last, self._last = self._last, self._supply.take()
        return self._last - last

    def skip(self, periods: int) -> int:
        """Only the last of the next outputs is published."""
        return self.step() if periods else 0

    def fields(self) -> dict[str, Row]:
        return {**super().fields(), "last": [self._last]}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        super().restore(fields, periods)
        (self._last,) = fields["last"]


@check_arguments
class _NaiveCount(NoisyCount):
    """The count and integer noise of one scale."""

    _kind: ClassVar[type[_SummedNoise]]

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int,
        change: int = 1,
        contributions: int = 1,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        self._length = check_horizon(horizon)
        self.scale = self._outputs_of_an_event / terms.rate
        check_scale(self.scale, terms.epsilon)
        session = noise.session()
        path = self._kind(self.scale, self._length, session)
        super().__init__(terms=terms, horizon=self._length, bits=0, path=path, secure=session.secure)

    @property
    @abstractmethod
    def _outputs_of_an_event(self) -> int:
        """How many noisy numbers an event may move."""

    @property
    def _errors(self) -> _NaiveErrors:
        return _NaiveErrors(self.scale, self._length, summed=self._kind is _SummedNoise)

    def _shape(self) -> Sequence[int]:
        return [self._length]

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        (horizon,) = fields["shape"]
        return cls(horizon=horizon, noise=noise, **terms.keywords)


@dataclass(frozen=True)
class _NaiveErrors:
    """The errors of sums of noises of one scale, or of single ones."""

    scale: Fraction
    horizon: int
    summed: bool

    def noise(self, periods: int) -> NoiseSum:
        """The noise in the output after so many periods."""
        number = periods if self.summed else min(periods, 1)
        return noise_sum([(1.0, float(1 / self.scale), float(number))])

    def everywhere(self, periods: int, beta: float) -> float:
        """Of symmetric sums the greatest exceeds a bound at most twice as often as the last (Levy)."""
        return self.noise(self.horizon).reach(beta / 2 if self.summed else beta / self.horizon)

    def variances(self, periods: Ints) -> Floats:
        """The variance of the output after each of these numbers of periods."""
        return np.asarray(laplace_variance(self.scale) * (periods if self.summed else np.minimum(periods, 1)))


@final
class PerStepCounter(_NaiveCount):
    """A baseline: noise is added to what is counted in each period, and the sums are published.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events.
    Error:     variance 2t / epsilon^2 after t periods.                            [DR14, section 12.3]
    Proof:     Each noisy number is private and an event lies in one of them; sums are post-processing.

    >>> PerStepCounter(epsilon=1, horizon=1000).scale
    Fraction(1, 1)
    """

    name: ClassVar[str] = "per-step"
    _kind = _SummedNoise

    @property
    def _outputs_of_an_event(self) -> int:
        return 1


@final
class DirectCounter(_NaiveCount):
    """A baseline: fresh noise is added to each output, of a scale that pays for all of them.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events.
    Error:     variance 2 horizon^2 / epsilon^2 in every period.                   [DR14, section 12.3]
    Proof:     An event moves each output by at most 1, and each has its share epsilon / horizon.

    >>> DirectCounter(epsilon=1, horizon=1000).scale
    Fraction(1000, 1)
    """

    name: ClassVar[str] = "direct"
    _kind = _ReplacedNoise

    @property
    def _outputs_of_an_event(self) -> int:
        return self._length


@final
@check_arguments
class RandomizedResponseCounter(Stepping, ContinualCounter):
    """A baseline for bits: each is flipped now and then, the ones are counted and the count set right.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events.
    Error:     variance t a / (1-a)^2 after t periods, a = exp(-epsilon).          [DR14, section 12.3]
    Proof:     A bit is flipped with probability a / (1+a), and an event touches one bit; the rest is
               post-processing.

    A number above 1 counts as 1, one below 0 as 0.

    >>> RandomizedResponseCounter(epsilon=1, horizon=1000).periods
    0
    """

    name: ClassVar[str] = "randomized-response"
    granularity: Fraction = Fraction(1, _FINE)

    def __init__(
        self, *, epsilon: object, horizon: int, contributions: int = 1, noise: Noise = SYSTEM
    ) -> None:
        terms = CounterTerms.of(epsilon, contributions=contributions)
        self._length = check_horizon(horizon)
        check_scale(1 / terms.rate, terms.epsilon)
        self._noise, self._ones = noise.session(), 0
        super().__init__(terms=terms, horizon=self._length, secure=self._noise.secure)

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return Fraction(float(self._estimate(self._ones, self._periods)))

    def update(self, x: int = 0) -> float:
        """Close one period in which the bit x was counted: its output."""
        return float(self.update_many([counted(x)])[0])

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each bit: all outputs. The same law as one by one."""
        bits = np.clip(counts_of(xs), 0, 1)
        self._make_room(bits.size)
        with self._step():
            ones = self._ones + np.cumsum(bits ^ self._flips(bits.size))
            periods = self._periods + np.arange(1, bits.size + 1)
            self._ones = int(ones[-1]) if bits.size else self._ones
            self._periods += bits.size
        return self._estimate(ones, periods)

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            for start in range(0, periods, _AT_ONCE):
                self._ones += int(self._flips(min(_AT_ONCE, periods - start)).sum())
            self._periods += periods

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""
        chance = float(check_probability(beta))
        reach = self._reach(self._periods, chance)
        error, low, high = self.variance() ** 0.5, self.value - reach, self.value + reach
        return Running(
            value=self.value, error=error, low=low, high=high, everywhere=self._reach(self._length, chance)
        )

    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta no output is off by more, for any stream of bits: before any data."""
        return self._reach(last_bounded(self.horizon, periods), float(check_probability(beta)))

    def variance(self) -> float:
        """The variance of the last output, but for its rounding."""
        return float(self.variances(self._periods))

    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods, but for its rounding."""
        rate = float(self.terms.rate)
        return np.asarray(np.multiply(periods, math.exp(-rate) / math.expm1(-rate) ** 2))

    def _fields(self) -> Fields:
        return {"horizon": [self._length], "ones": [self._ones]}

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        (horizon,) = fields["horizon"]
        return cls(epsilon=terms.epsilon, contributions=terms.contributions, horizon=horizon, noise=noise)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        (self._ones,) = fields["ones"]
        if not 0 <= self._ones <= self._periods:
            raise invalid_state("hold at most a one for each period")

    def _flips(self, number: int) -> Ints:
        """For each bit whether it is flipped: discrete Laplace noise is positive with chance a / (1+a)."""
        drawn: Any = self._noise.add(np.zeros(number, dtype=np.int64), 1 / self.terms.rate)
        return np.asarray(drawn > 0, dtype=np.int64)

    def _estimate(self, ones: Any, periods: Any) -> Floats:
        """The count from the ones: t a / (1+a) on average, and (1-a) / (1+a) more for each event."""
        rate = float(self.terms.rate)
        count = (ones - (periods - ones) * math.exp(-rate)) / -math.expm1(-rate)
        return np.asarray(np.rint(count * _FINE) / _FINE)

    def _reach(self, periods: int, beta: float) -> float:
        """Errors of single bits lie in a range of (1+a) / (1-a): Hoeffding, for the greatest sum too."""
        spread = 1 / math.tanh(float(self.terms.rate) / 2)
        return spread * math.sqrt(periods * math.log(2 / beta) / 2) + 1 / _FINE


_BITS: Final = 16


class TreePath:
    """The errors of the sums, period after period.

    Kept are, for each level, the errors of the nodes in the present sum. When a node is complete its
    children leave the sum for it. With intervals, `ended` has for each period the errors of the nodes that
    ended with it, from the leaf up, until somebody takes them.
    """

    def __init__(self, shape: CounterTree, rate: Fraction, noise: Noise) -> None:
        self.shape = shape
        self.position = 0
        self.bits = _BITS if shape.refine else 0
        self.ended: list[list[int]] = []
        self._weights = shape.weights
        self._scale = shape.levels / rate
        self._supply = Supply(self._scale, shape.nodes, noise)
        self._sums = [0] * shape.levels

    def step(self) -> int:
        self.position += 1
        level = self._complete()
        gone = sum(self._sums[:level])
        nodes = self._nodes(level)
        if self.shape.intervals:
            self.ended.append(nodes)
        self._sums[:level] = [0] * level
        self._sums[level] += nodes[-1]
        return nodes[-1] - gone

    def many(self, periods: int) -> IntegerArray:
        return integers([self.step() for _ in range(periods)], wide=is_wide(self._scale))

    def skip(self, periods: int) -> int:
        """The error of the next periods together: only nodes of the new sum are drawn, if not all of them."""
        if self.shape.every_node:
            return sum(self.step() for _ in range(periods))
        before = sum(self._sums)
        old, new = (self.shape.digits(position) for position in (self.position, self.position + periods))
        self.position += periods
        shared = True
        for level in range(self.shape.levels - 1, -1, -1):
            kept = old[level] if shared else 0
            drawn = sum(self._supply.take() for _ in range(new[level] - kept))
            self._sums[level] = drawn + (self._sums[level] if shared else 0)
            shared = shared and old[level] == new[level]
        return sum(self._sums) - before

    def fields(self) -> dict[str, Row]:
        return {"sums": self._sums, **self._supply.fields()}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        if not 0 <= periods <= self.shape.horizon or len(fields["sums"]) != self.shape.levels:
            raise invalid_state("fit its tree")
        self.position = periods
        self._sums = fields["sums"]
        self._supply.restore(fields)

    def _complete(self) -> int:
        """The highest level of which a node ends here."""
        level = 0
        while level + 1 < self.shape.levels and not self.position % self.shape.branching ** (level + 1):
            level += 1
        return level

    def _nodes(self, level: int) -> list[int]:
        """The errors of the nodes that end here, up to a level; without need the highest one alone.

        A refined node is averaged with the sum of its children.
        """
        nodes = [self._supply.take() << self.bits]
        for above in range(1, level + 1 if self.shape.every_node else 1):
            own = self._supply.take() << self.bits
            if self.shape.refine:
                children = self._sums[above - 1] + nodes[-1]
                own = children + (self._weights[above] * (own - children) >> _BITS)
            nodes.append(own)
        return nodes


class IntervalCounts:
    """The noisy counts of all nodes that have ended, and the exact ones of open nodes [DR14, Figure 12.1].

    Counts are in units of 2^-bits.
    """

    def __init__(self, shape: CounterTree, bits: int) -> None:
        self.shape = shape
        self._bits = bits
        self._ended: list[list[int]] = [[] for _ in range(shape.levels)]
        self._open = [0] * shape.levels

    def close(self, x: int, errors: list[int]) -> None:
        """Count x in the open node of each level; those that end here have these errors, from the leaf up."""
        self._open = [count + x for count in self._open]
        for level, error in enumerate(errors):
            self._ended[level].append((self._open[level] << self._bits) + error)
            self._open[level] = 0

    def between(self, start: int, stop: int) -> Fraction:
        """The noisy count of the periods from `start` up to `stop`: of the fewest nodes that make them up."""
        units = sum(self._ended[level][place] for level, place in self.shape.cover(start, stop))
        return Fraction(units, 1 << self._bits)

    def fields(self) -> dict[str, Row]:
        """Rows of a state whose lengths follow from the tree."""
        blank = [0] * (self.shape.nodes - sum(map(len, self._ended)))
        return {"open": self._open, "ended": [count for row in self._ended for count in row] + blank}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on after so many periods with what was counted before."""
        if len(fields["open"]) != self.shape.levels or len(fields["ended"]) != self.shape.nodes:
            raise invalid_state("fit its tree")
        self._open, left = fields["open"], iter(fields["ended"])
        numbers = [self.shape.ended(level, periods) for level in range(self.shape.levels)]
        self._ended = [list(islice(left, number)) for number in numbers]


@final
@check_arguments
class TreeCounter(NoisyCount):
    """The counter of the papers: noise on every node of a tree [DR14, Figure 12.1].

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     variance 2 levels^2 / epsilon^2 for each node in the sum: 1,000 on average over 2^10 periods.
    Proof:     docs/proofs/tree_counter.md (integer noise, any branching, the exact number of levels)

    A period lies in one node of each level, and the root is left out. With `refine` a node is averaged with
    what lies below it as soon as it is complete [Hon15]; `advance` then takes a step per period. With
    `intervals` the counts of all nodes are published, as in the figure, and `count` answers for any periods
    that are closed; a state then has 40 bytes for each of the nodes.

    >>> TreeCounter(epsilon=1, horizon=1024).levels
    10
    """

    name: ClassVar[str] = "tree"

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int,
        branching: int = 2,
        refine: bool = False,
        intervals: bool = False,
        change: int = 1,
        contributions: int = 1,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        shape = CounterTree(horizon=horizon, branching=branching, refine=refine, intervals=intervals)
        check_scale(shape.levels / terms.rate, terms.epsilon)
        session = noise.session()
        self._tree = TreePath(shape, terms.rate, session)
        self._intervals = IntervalCounts(shape, self._tree.bits) if shape.intervals else None
        super().__init__(
            terms=terms, horizon=shape.horizon, bits=self._tree.bits, path=self._tree, secure=session.secure
        )

    @property
    def levels(self) -> int:
        """In how many nodes a period lies."""
        return self._tree.shape.levels

    @property
    def scale(self) -> Fraction:
        """The scale of all noise."""
        return self.levels / self.terms.rate

    def count(self, first: int, last: int) -> Answer:
        """What was counted in the periods from the first to the last, both included; period 1 is the first.

        The sum of the noisy counts of the fewest nodes that make them up.
        """
        if self._intervals is None:
            rule, fix = "must be True to count any periods but the first ones", "make the counter with it"
            raise InvalidParameter("intervals", rule, given=False, fix=fix)
        self._make_room(0)
        check(self._periods, "last", "must be a closed period", given=last, fix="close a period first")
        begin = integer(first, "first", low=1, high=self._periods) - 1
        end = integer(last, "last", low=begin + 1, high=self._periods)
        return self._errors.between(begin, end).answer(float(self._intervals.between(begin, end)))

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""
        return super().update(x) if self._intervals is None else float(self.update_many([counted(x)])[0])

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published.

        With `intervals` all of them are, and it takes a step for each.
        """
        if self._intervals is None:
            super().advance(periods)
            return
        self._make_room(integer(periods, "periods", low=0, high=LARGEST))
        self.update_many(np.zeros(periods, dtype=np.int64))

    def _close(self, counts: IntegerArray) -> Floats:
        outputs = super()._close(counts)
        if self._intervals is not None:
            for x, errors in zip(counts.tolist(), self._tree.ended, strict=True):
                self._intervals.close(x, errors)
            self._tree.ended = []
        return outputs

    def _shape(self) -> Sequence[int]:
        shape = self._tree.shape
        return [shape.horizon, shape.branching, int(shape.refine), *[1] * shape.intervals]

    def _fields(self) -> Fields:
        kept = {} if self._intervals is None else self._intervals.fields()
        return {**super()._fields(), **kept}

    def _restore(self, fields: dict[str, list[int]]) -> None:
        super()._restore(fields)
        if self._intervals is not None:
            self._intervals.restore(fields, self._periods)
        elif "ended" in fields:
            raise invalid_state("fit its tree")

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        horizon, branching, refine, *intervals = fields["shape"]
        if intervals not in ([], [1]):
            raise invalid_state("fit its tree")
        return cls(
            horizon=horizon,
            branching=branching,
            refine=bool(refine),
            intervals=intervals == [1],
            noise=noise,
            **terms.keywords,
        )

    @property
    def _errors(self) -> TreeCounterErrors:
        return TreeCounterErrors(self._tree.shape, self.terms.rate)
