"""Sketches of biased bits: `Density` of a public universe, and `Distinct` ids of an unknown one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints
from partita.errors import check, check_arguments
from partita.numbers import check_choice, integer
from partita.pan import sketch
from partita.public.bounds import laplace_variance
from partita.public.streams import CounterTerms
from partita.trusted.noise.system import KERNEL, Noise
from partita.trusted.streams.base import Fields


class BitSketch(sketch.Sketch):
    """A table of biased bits whose sums are released with noise; a user belongs to one place.

    The bit of a place is drawn again whenever a user of that place comes. Between releases a user changes the
    law of one bit, and one released sum by at most one.
    """

    _bits: Bools = np.zeros(0, dtype=np.bool_)

    def __init__(self, places: int, variant: sketch.Variant, share: object | None, **plan: Any) -> None:
        super().__init__(**plan)
        self.variant: sketch.Variant = check_choice(variant, "variant", get_args(sketch.Variant))
        if share is None and variant == "book":
            share = Fraction(1, 2)
        self._shares = sketch.EpochShares.choose(
            self.epsilon, self.releases, share, lambda shares: self._relative_error(shares, places)
        )
        self._shares.check(spread=1)
        self._coin = self._coin_of(self._shares)
        self._bits = np.zeros(places, dtype=np.bool_)
        self._fill()

    @property
    def coin(self) -> sketch.Coin:
        """The public biases of a bit, before and after somebody came."""
        return self._coin

    def update_many(self, ids: Iterable[object]) -> None:
        """Draw the bit of everybody who came again; of several draws for one bit the last one stays."""
        self._require_epoch()
        with sketch.erase_after(self._find(ids)) as places, self._step():
            self._bits[places] = sketch.chances(self._noise, self._coin.redraw, places.size)

    @abstractmethod
    def _find(self, ids: Iterable[object]) -> Ints:
        """The place of each id; values that are no ids are ignored."""

    def _coin_of(self, shares: sketch.EpochShares) -> sketch.Coin:
        """One output is accounted for jointly with the state, exactly; several add up, as in the book."""
        if self.releases == 1 and self.variant == "default":
            return sketch.joint_coin(self.epsilon, shares.output, self.variant)
        return sketch.state_coin(shares.state, self.variant)

    def _relative_error(self, shares: sketch.EpochShares, places: int) -> float:
        """The standard error of the fraction of bits that somebody has drawn again, at worst."""
        coin = self._coin_of(shares)
        noise = laplace_variance(1 / shares.output)
        return math.sqrt(places * bit_variance(coin) + noise) / float(coin.gap)

    def _tables(self) -> tuple[NDArray[Any], ...]:
        return (self._bits,)

    def _fill(self) -> None:
        self._bits[:] = sketch.chances(self._noise, self._coin.start, self._bits.size)

    def _fields(self) -> Fields:
        share = self._shares.share
        variant = get_args(sketch.Variant).index(self.variant)
        return {
            "plan": self._plan_row(),
            "shape": [variant, share.numerator, share.denominator, *self._shape_row()],
            "bits": sketch.pack_bits(self._bits),
        }

    @abstractmethod
    def _shape_row(self) -> list[int]:
        """What says which places there are."""

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._restore_plan(fields["plan"])
        self._bits[:] = sketch.unpack_bits(fields["bits"], self._bits.size)


def bit_variance(coin: sketch.Coin) -> float:
    """The variance of a bit, at most: the larger of both laws."""
    return max(float(q * (1 - q)) for q in (coin.q0, coin.q1))


@final
@check_arguments
class Density(sketch.ListedSketch, BitSketch):
    """The fraction of a public universe that has appeared, private even if memory is read once [DR14, 12.2].

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`.
    Error:     about 1 / (2 sqrt(universe) sinh(epsilon / 2)) for one output, whatever the fraction is.
    Proof:     docs/proofs/pan_density.md (the exact joint loss of the state and one output)

    There is one bit for each id of the universe, biased from the start. When an id comes, its bit is drawn
    again with the opposite bias, however often. `variant="book"` starts with fair bits, as the book does,
    with its bias corrected to (1 - e^-epsilon) / 2, and half of epsilon for the state and for the output.
    `output_share` is the share of all outputs in epsilon, chosen from public parameters if it is left out.

    >>> visitors = Density(universe=10_000, epsilon=1)
    >>> visitors.update_many([3, 14, 15, 14])
    >>> visitors.release("density").error < 0.02
    True
    """

    name: ClassVar[str] = "pan-density"

    def __init__(
        self,
        *,
        universe: sketch.Ids,
        epsilon: object,
        variant: sketch.Variant = "default",
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self._universe = sketch.Universe.of(universe)
        plan = {"epsilon": epsilon, "releases": releases, "epochs": epochs, "noise": noise}
        super().__init__(self._universe.size, variant, output_share, **plan)

    @property
    def names(self) -> tuple[str, ...]:
        """The fraction of the universe that appeared in this epoch."""
        return ("density",)

    def expected_error(self, name: str = "density") -> float:
        """At least the standard error of a release, known beforehand."""
        check_choice(name, "name", self.names)
        return self._readout.error(self.output)

    def _measure(self, name: str) -> Callable[[], Answer]:
        check_choice(name, "name", self.names)
        readout = self._readout

        def measure() -> Answer:
            noisy = self._noise.add(int(self._bits.sum()), readout.scale(self.output))
            return readout.answer(noisy, self.output)

        return measure

    @property
    def _readout(self) -> sketch.Readout:
        """(ones / size - q0) / (q1 - q0), on average the fraction."""
        coin, size = self._coin, self._bits.size
        offset, factor = float(-coin.q0 / coin.gap), float(1 / (size * coin.gap))
        return sketch.Readout(
            size=size, offset=offset, factor=factor, spread=1, variance=bit_variance(coin), low=0.0, high=1.0
        )

    def _shape_row(self) -> list[int]:
        return self._universe.pack()

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        variant, numerator, denominator, *universe = fields["shape"]
        known = sketch.Universe.unpack(universe)
        sketch.unpack_bits(fields["bits"], known.size)  # before memory is taken for a universe of this size
        plan = cls._plan(terms, fields, sketch.read_fraction(numerator, denominator), noise)
        return cls._make_for(known, variant=sketch.read_choice(variant, get_args(sketch.Variant)), **plan)


# Linear counting over geometric levels, through biased bits and noise: post-processing of released sums.

_COARSE: Final = 400  # points of the grid of n: more cost time, fewer could miss the best misfit
_FINE: Final = 1e-9  # width of the last grid, in log n


@final
@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """What the noisy numbers of ones in each level say about the number n of different ids.

    An id falls into level l with probability w_l = 1/2, 1/4, ..., the last one twice, and there into one
    of `buckets`. So a bucket stays empty with probability (1 - w_l / buckets)^n.
    """

    buckets: int
    levels: int
    most: int
    coin: sketch.Coin
    output: Fraction

    def answer(self, noisy: Floats) -> Answer:
        """The n that explains all levels best, and bounds for any ids that the hash spreads evenly."""
        value = self._best(noisy)
        return Answer(value, lambda: self.error(value), lambda beta: self._bounds(noisy, beta))

    def error(self, n: float) -> float:
        """The standard error at n: levels are weighted by what they tell, to first order."""
        step = max(1.0, n * 1e-3)
        slope = (self._expected(np.array([n + step])) - self._expected(np.array([n])))[0] / step
        information = float((slope**2 / self._variance(np.array([n]))[0]).sum())
        return 1 / math.sqrt(information) if information > 0 else math.inf

    def _best(self, noisy: Floats) -> float:
        """The least misfit, on a grid of n that is made finer around its best place."""
        low, high = 0.0, math.log1p(2.0 * self.most)
        while True:
            grid = np.linspace(low, high, _COARSE)
            best = int(self._misfit(noisy, np.expm1(grid)).argmin())
            if high - low < _FINE:
                return float(np.expm1(grid[best]))
            low, high = float(grid[max(0, best - 1)]), float(grid[min(_COARSE - 1, best + 1)])

    def _misfit(self, noisy: Floats, n: Floats) -> Floats:
        """Minus twice the logarithm of the normal likelihood of all levels, for each n."""
        variance = self._variance(n)
        misfit = (noisy - self._expected(n)) ** 2 / variance + np.log(variance)
        return np.asarray(misfit.sum(axis=1))

    def _bounds(self, noisy: Floats, beta: float) -> tuple[float, float]:
        """All levels together: each says that its expected number of ones lies within its reach.

        Empty buckets are negatively associated, so Hoeffding's bound holds for their number as it does for
        bits that are independent.
        """
        each = beta / (3 * self.levels)
        reach = sketch.laplace_reach(1 / self.output, each) + sketch.sum_reach(self.buckets, each)
        reach += float(self.coin.gap) * sketch.sum_reach(self.buckets, each)
        grid = np.expm1(np.linspace(0.0, math.log1p(2.0 * self.most), _COARSE * 10))
        fitting = (np.abs(self._expected(grid) - noisy) <= reach).all(axis=1)
        if not bool(fitting.any()):
            return 0.0, math.inf
        first, last = np.flatnonzero(fitting)[[0, -1]].tolist()
        high = float(grid[last + 1]) if last + 1 < grid.size else math.inf
        return float(grid[max(0, first - 1)]), high

    @property
    def _weights(self) -> Floats:
        weights = np.exp2(-np.arange(1.0, self.levels + 1))
        weights[-1:] *= 2
        return np.asarray(weights)

    def _empty(self, n: Floats) -> Floats:
        """The probability that a bucket is empty: rows are n, columns levels."""
        return np.asarray(np.exp(n[:, np.newaxis] * np.log1p(-self._weights / self.buckets)))

    def _expected(self, n: Floats) -> Floats:
        """The expected number of ones."""
        q0, q1 = float(self.coin.q0), float(self.coin.q1)
        return self.buckets * (q1 - (q1 - q0) * self._empty(n))

    def _variance(self, n: Floats) -> Floats:
        """Of the bits, of the number of empty buckets (at most), and of the noise."""
        empty = self._empty(n)
        q0, q1 = float(self.coin.q0), float(self.coin.q1)
        bits = empty * q0 * (1 - q0) + (1 - empty) * q1 * (1 - q1)
        buckets = (q1 - q0) ** 2 * empty * (1 - empty)
        return self.buckets * (bits + buckets) + laplace_variance(1 / self.output)


# How many different ids came, in little memory: a public hash, occupied buckets, geometric levels.

_MOST_BUCKETS: Final = 2**20
_MOST_IDS: Final = 2**35
_LONGEST_SALT: Final = 16
_HIGH_BITS: Final = 32  # of a hash of 64 bits: they choose the level, the low ones the bucket
_LOW_BITS: Final = 32


@final
@check_arguments
class Distinct(BitSketch):
    """The number of different ids that came; private even if the memory is read once.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`; for any hash.
    Error:     about 2.3 / (sqrt(buckets) epsilon) of the number, from twice as many ids as buckets to `most`,
               with a thousand buckets or more; of fewer ids about as much as of so many.
    Proof:     docs/proofs/pan_distinct.md (a user is one bit, as in a density)

    An id falls, by a public hash, into one of `buckets` of one of some levels: half of all ids into the first
    level, a quarter into the second, and so on, up to 33 levels. An output has the noisy number of ones in
    every level, and the number of ids that explains them best. The state has one bit for each bucket of each
    level. `salt` is public and selects the hash; the error assumes that ids were not made to collide. Text is
    not a number: "7" and 7 are two ids, and lines that a shell reads are text.

    >>> visitors = Distinct(epsilon=2)
    >>> visitors.update_many(f"visitor {number}" for number in range(20_000))
    >>> abs(visitors.release("distinct").value / 20_000 - 1) < 0.5
    True
    """

    name: ClassVar[str] = "pan-distinct"

    def __init__(
        self,
        *,
        epsilon: object,
        buckets: int = 4096,
        most: int = 10**8,
        salt: str = "",
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self.buckets = integer(buckets, "buckets", low=2, high=_MOST_BUCKETS)
        self.most = integer(most, "most", low=1, high=_MOST_IDS)
        given: object = salt
        plain = isinstance(given, str) and given.isascii() and len(given) <= _LONGEST_SALT
        check(plain, "salt", "must be at most 16 plain letters", given=salt, fix="shorten it")
        self.salt, self._salt = salt, salt.encode()
        self.levels = min((self.most // self.buckets).bit_length(), _HIGH_BITS) + 1
        plan = {"epsilon": epsilon, "releases": releases, "epochs": epochs, "noise": noise}
        super().__init__(self.buckets * self.levels, "default", output_share, **plan)

    @property
    def names(self) -> tuple[str, ...]:
        """The number of different ids in this epoch."""
        return ("distinct",)

    def expected_error(self, name: str = "distinct") -> float:
        """About the standard error if as many ids come as there are buckets."""
        check_choice(name, "name", self.names)
        return self._occupancy.error(float(self.buckets))

    def _find(self, ids: Iterable[object]) -> Ints:
        names = (sketch.encode_id(name) for name in sketch.iterate_ids(ids))
        digests = (sketch.hash_id(name, self._salt) for name in names if name is not None)
        with sketch.erase_after(np.fromiter(digests, dtype=np.uint64)) as found:
            return self._places(found)

    def _places(self, digests: NDArray[np.uint64]) -> Ints:
        """The level is the number of zeros at the head of the high half; the low half is a bucket.

        Worked out in place: no copy of a half stays in memory.
        """
        places = np.zeros(digests.size, dtype=np.int64)
        with sketch.erase_after(digests & np.uint64(2**_LOW_BITS - 1)) as low:
            digests >>= np.uint64(_LOW_BITS)
            for zeros in range(1, self.levels):
                places += digests < np.uint64(1 << (_HIGH_BITS - zeros))
            low *= np.uint64(self.buckets)
            low >>= np.uint64(_LOW_BITS)
            places *= self.buckets
            places += low.view(np.int64)
        return places

    def _measure(self, name: str) -> Callable[[], Answer]:
        check_choice(name, "name", self.names)

        def measure() -> Answer:
            ones = self._bits.reshape(self.levels, self.buckets).sum(axis=1)
            noisy = self._noise.add(ones, 1 / self.output)
            return self._occupancy.answer(np.asarray(noisy, dtype=np.float64))

        return measure

    @property
    def _occupancy(self) -> Occupancy:
        return Occupancy(
            buckets=self.buckets, levels=self.levels, most=self.most, coin=self._coin, output=self.output
        )

    def _shape_row(self) -> list[int]:
        return [self.buckets, self.most, *self._salt]

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        variant, numerator, denominator, buckets, most, *salt = fields["shape"]
        sketch.read_choice(variant, get_args(sketch.Variant)[:1])
        plan = cls._plan(terms, fields, sketch.read_fraction(numerator, denominator), noise)
        return cls(buckets=buckets, most=most, salt=bytes(salt).decode(), **plan)
