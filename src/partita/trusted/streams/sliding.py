"""A count over a sliding window: the end of one tree and the beginning of the next."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.arrays import Floats
from partita.errors import check_arguments
from partita.numbers import check_probability, integer
from partita.public.stream_errors import Running, SlidingErrors
from partita.public.stream_trees import SHARES, PeriodTree
from partita.public.streams import LARGEST, CounterTerms, invalid_state
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.streams.base import (
    ContinualCounter,
    Fields,
    Stepping,
    counted,
    counts_of,
    last_bounded,
)
from partita.trusted.streams.family import TreeErrors


@final
@check_arguments
class SlidingCounter(Stepping, ContinualCounter):
    """Count what came in the last `window` periods, in every period, without end.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     twice the mean squared error of a centred tree over the window, whatever came before:
               250 / epsilon^2 for 2^10 periods.
    Proof:     docs/proofs/sliding_counter.md (each event lies in one tree)

    Periods are cut into blocks, each with a tree of its own, as long as the window or a little longer. A
    window is the end of one block and the beginning of the next, or a part of one. The running counts of
    two blocks are kept, with their errors.

    >>> counter = SlidingCounter(window=7, epsilon=1)
    >>> outputs = counter.update_many([3, 0, 4, 1, 0, 0, 2, 5, 1])
    >>> counter.periods, counter.guarantee
    (9, Guarantee(epsilon=1, neighbors=add-remove, unit=event))
    """

    name: ClassVar[str] = "sliding"

    def __init__(
        self,
        *,
        window: int,
        epsilon: object,
        change: int = 1,
        contributions: int = 1,
        shape: PeriodTree | None = None,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        self._laws = SlidingErrors.of(terms.rate, window, shape)
        self.window, self._tree = self._laws.window, self._laws.tree
        check_scale(SHARES / terms.rate, terms.epsilon)
        self._noise = noise.session()
        super().__init__(terms=terms, horizon=None, secure=self._noise.secure)
        self.granularity = Fraction(1, 1 << self._tree.fraction_bits)
        self._before: list[int] = [0] * (self._tree.horizon + 1)
        self._begin()

    @property
    def exact(self) -> Fraction:
        """The last output: what came in the last `window` periods; 0 before the first."""
        return self._units * self.granularity

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: the output for the window that ends with it."""
        x = counted(x)
        self._make_room(1)
        with self._step():
            return self._close(x)

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""
        counts = counts_of(xs)
        self._make_room(counts.size)
        outputs = np.empty(counts.size)
        with self._step():
            for period, x in enumerate(counts.tolist()):
                outputs[period] = self._close(x)
        return outputs

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; no more than three blocks are walked through."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            skipped = max(0, periods // self._tree.horizon - 2) * self._tree.horizon
            self._periods += skipped
            for _ in range(periods - skipped):
                self._close(0)

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for any `window` periods on end at once."""
        chance = float(check_probability(beta))
        everywhere = self._laws.everywhere(self._periods, chance)
        return self._laws.noise(self._periods).around(self.value, chance, everywhere=everywhere)

    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta none of the first `periods` outputs is off by more, before any data.

        Each stretch of `window` periods has an equal share of beta.
        """
        stretches = -(-last_bounded(self.horizon, periods) // self.window)
        return self._laws.everywhere(0, float(check_probability(beta)) / stretches)

    def variance(self) -> float:
        """The variance of the last output."""
        return self._laws.noise(self._periods).variance

    def _begin(self) -> None:
        """Begin a block: fresh noise, and nothing counted."""
        self._errors = TreeErrors(self._tree, self.terms.rate, 1, self._noise)
        self._prefixes = [0] * (self._tree.horizon + 1)

    def _close(self, x: int) -> float:
        if self._errors.position == self._tree.horizon:
            self._before = self._prefixes
            self._begin()
        error = int(self._errors.skip(1)[0])
        place = self._errors.position
        self._prefixes[place] = self._prefixes[place - 1] + (x << self._tree.fraction_bits) + error
        self._periods += 1
        return self._units / (1 << self._tree.fraction_bits)

    @property
    def _start(self) -> int:
        """The place in its block before which the window begins."""
        return (self._errors.position - self.window) % self._tree.horizon

    @property
    def _units(self) -> int:
        """A part of one block, or its beginning and the end of the one before."""
        place, before = self._errors.position, self._before
        if place >= self.window:
            return self._prefixes[place] - self._prefixes[place - self.window]
        return self._prefixes[place] + before[-1] - before[self._start]

    def _fields(self) -> Fields:
        return {
            "window": [self.window],
            "shape": self._tree.numbers,
            "before": self._before,
            "prefixes": self._prefixes,
            **self._errors.fields(),
        }

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        (window,) = fields["window"]
        return cls(window=window, shape=PeriodTree.of(fields["shape"]), noise=noise, **terms.keywords)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._before, self._prefixes = fields["before"], fields["prefixes"]
        block = self._tree.horizon
        if not len(self._before) == len(self._prefixes) == block + 1:
            raise invalid_state("have a count for each period of a block")
        self._errors.restore(fields, self._laws.place(self._periods))
