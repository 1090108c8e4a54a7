"""The sparse counter: private segments of a stream, and a counter over them [DNRR15, section 3.1]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.numbers import failure, integer, one_of
from partita.public.streams.terms import LARGEST, Terms, horizon_of, misfit
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.noise.hazard import tails
from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.streams.base.base import ContinualCounter, Floats, Running, counted, counts_of
from partita.trusted.streams.base.state import Fields
from partita.trusted.streams.base.stepping import Stepping
from partita.trusted.streams.counter.counter import Counter
from partita.trusted.streams.sparse.sparse_inner import InnerCounters, class_named, counting_segments
from partita.trusted.streams.sparse.sparse_plan import FINE, PARTS, SparsePlan, plan_for
from partita.trusted.streams.tree_counter.tree_counter import TreeCounter

Constants: TypeAlias = Literal["tuned", "paper"]

_LAWS: Final = get_args(Law)


@final
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
        terms = Terms.of(epsilon, change=change, contributions=contributions)
        self._length = horizon_of(horizon)
        check_scale(PARTS / terms.rate, terms.epsilon)
        paper = one_of(constants, "constants", get_args(Constants)) == "paper"
        kind = counting_segments(inner or (TreeCounter if paper else Counter))
        self.plan = plan or plan_for(
            horizon=self._length,
            rate=terms.rate,
            expected=expected,
            weight=weight,
            beta=failure(beta),
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
        chance = float(failure(beta)) / 2
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
            return self.plan.threshold + tails.geometric_quantile(self.scale, chance)
        return self.plan.threshold + tails.difference_quantile("laplace", self.scale, chance / self._length)

    def _fields(self) -> Fields:
        plan = self.plan
        numbers = [plan.seals, plan.threshold, plan.offset, -1 if plan.capacity is None else plan.capacity]
        return {
            "plan": [self._length, *numbers, round(plan.spread * FINE), _LAWS.index(plan.law)],
            "segment": [self._content, int(self._missing is not None), self._missing or 0],
            **self._inner.fields(),
        }

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
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
            raise misfit("have a period for each segment")
        self._show()


def _runs(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Each number that is not zero, and how many periods later the next one comes."""
    starts = np.flatnonzero(counts)
    if counts.size and (not starts.size or starts[0]):
        starts = np.concatenate([[0], starts])
    lengths = np.diff(starts, append=counts.size)
    yield from zip(counts[starts].tolist(), lengths.tolist(), strict=True)
