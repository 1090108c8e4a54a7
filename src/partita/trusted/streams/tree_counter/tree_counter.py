"""The counter of the papers: noise on every node of a tree, and sums of the fewest nodes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.numbers import integer
from partita.public.streams.terms import LARGEST, Terms, horizon_of, misfit
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.noise.system.protocol import IntegerArray, Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.streams.base.base import Floats
from partita.trusted.streams.base.integers import Row, integers, is_wide
from partita.trusted.streams.base.supply import Supply
from partita.trusted.streams.counter.bounds import Mix, mix
from partita.trusted.streams.counter.noisy_count import NoisyCount

_BITS: Final = 16
_FINE: Final = 1 << _BITS


class Shape:
    """The nodes of a b-ary tree over a horizon, without its root: a period lies in one of each level."""

    def __init__(self, *, horizon: int, branching: int, refine: bool) -> None:
        self.horizon, self.branching, self.refine = horizon, branching, refine
        self.levels = 1
        while branching**self.levels < horizon:
            self.levels += 1

    @property
    def nodes(self) -> int:
        """How many nodes need noise: one for each period, or all if nodes are refined by what is below."""
        if not self.refine:
            return self.horizon
        return sum(self.horizon // self.branching**level for level in range(self.levels))

    @property
    def weights(self) -> list[int]:
        """How much a node of each level counts against its children's sum, in parts of 2^16.

        The inverse variances, if all noise has variance one.
        """
        weights, variance = [_FINE], Fraction(1)
        for _ in range(self.levels - 1):
            below = self.branching * variance
            weights.append(round(_FINE * below / (1 + below)) if self.refine else _FINE)
            weight = Fraction(weights[-1], _FINE)
            variance = weight**2 + (1 - weight) ** 2 * below
        return weights

    def digits(self, periods: int) -> list[int]:
        """The fewest nodes that make up the first periods: how many of each level."""
        digits = []
        for _ in range(self.levels - 1):
            periods, digit = divmod(periods, self.branching)
            digits.append(digit)
        return [*digits, periods]

    def mix(self, digits: list[int], rate: Fraction) -> Mix:
        """The noise in a sum of so many nodes of each level."""
        shares = [weight / _FINE for weight in self.weights]
        terms, rounded = [], 0.0
        for level, number in enumerate(digits):
            size, times, slack = 1.0, float(number), 0.0
            for below in range(level, -1, -1):
                terms.append((size * shares[below], float(rate) / self.levels, times))
                slack += size * times if below and self.refine else 0.0
                size, times = size * (1 - shares[below]), times * self.branching
            rounded += slack
        return mix(terms, slack=rounded / _FINE)


class TreePath:
    """The errors of the sums, period after period.

    Kept are, for each level, the errors of the nodes in the present sum. When a node is complete its
    children leave the sum for it.
    """

    def __init__(self, shape: Shape, rate: Fraction, noise: Noise) -> None:
        self.shape = shape
        self.position = 0
        self.bits = _BITS if shape.refine else 0
        self._weights = shape.weights
        self._scale = shape.levels / rate
        self._supply = Supply(self._scale, shape.nodes, noise)
        self._sums = [0] * shape.levels

    def step(self) -> int:
        """The error of the next period."""
        self.position += 1
        level = self._complete()
        gone = sum(self._sums[:level])
        node = self._refined(level) if self.shape.refine else self._supply.take()
        self._sums[:level] = [0] * level
        self._sums[level] += node
        return node - gone

    def many(self, periods: int) -> IntegerArray:
        """The error of each of the next periods."""
        return integers([self.step() for _ in range(periods)], wide=is_wide(self._scale))

    def skip(self, periods: int) -> int:
        """The error of the next periods together: only nodes of the new sum are drawn, if none is refined."""
        if self.shape.refine:
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
        """What is drawn, as rows of a state of fixed length."""
        return {"sums": self._sums, **self._supply.fields()}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on with what was drawn before."""
        if not 0 <= periods <= self.shape.horizon or len(fields["sums"]) != self.shape.levels:
            raise misfit("fit its tree")
        self.position = periods
        self._sums = fields["sums"]
        self._supply.restore(fields)

    def _complete(self) -> int:
        """The highest level of which a node ends here."""
        level = 0
        while level + 1 < self.shape.levels and not self.position % self.shape.branching ** (level + 1):
            level += 1
        return level

    def _refined(self, level: int) -> int:
        """The error of the node of a level that ends here, each averaged with the sum of its children."""
        node = self._supply.take() << _BITS
        for above in range(1, level + 1):
            children = self._sums[above - 1] + node
            node = children + (self._weights[above] * ((self._supply.take() << _BITS) - children) >> _BITS)
        return node


@final
class TreeCounter(NoisyCount):
    """The counter of the papers: noise on every node of a tree [DR14, Figure 12.1].

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     variance 2 levels^2 / epsilon^2 for each node in the sum: 1,000 on average over 2^10 periods.
    Proof:     docs/proofs/tree_counter.md (integer noise, any branching, the exact number of levels)

    A period lies in one node of each level, and the root is left out. With `refine` a node is averaged with
    what lies below it as soon as it is complete [Hon15]; `advance` then takes a step per period.

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
        change: int = 1,
        contributions: int = 1,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = Terms.of(epsilon, change=change, contributions=contributions)
        shape = Shape(
            horizon=horizon_of(horizon),
            branching=integer(branching, "branching", low=2, high=LARGEST),
            refine=bool(refine),
        )
        check_scale(shape.levels / terms.rate, terms.epsilon)
        session = noise.session()
        self._tree = TreePath(shape, terms.rate, session)
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

    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods: of each node in the sum."""
        shape, left = self._tree.shape, self._within(periods)
        total = np.zeros(left.shape)
        for level in range(shape.levels):
            node = shape.mix([0] * level + [1], self.terms.rate).variance
            digit = left % shape.branching if level < shape.levels - 1 else left
            total, left = total + node * digit, left // shape.branching
        return total

    def _shape(self) -> Sequence[int]:
        shape = self._tree.shape
        return [shape.horizon, shape.branching, int(shape.refine)]

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        horizon, branching, refine = fields["shape"]
        return cls(horizon=horizon, branching=branching, refine=bool(refine), noise=noise, **terms.keywords)

    def _law(self) -> Mix:
        shape = self._tree.shape
        return shape.mix(shape.digits(self._periods), self.terms.rate)

    def _everywhere(self, beta: float) -> float:
        """No sum has more nodes of a level than siblings but one, and all of the highest."""
        shape = self._tree.shape
        most = [shape.branching - 1] * (shape.levels - 1) + [shape.digits(shape.horizon)[-1]]
        return shape.mix(most, self.terms.rate).reach(beta / shape.horizon)
