"""How often users came: one register each, which hides every number of events equally well.

`Registers` stand on cyclic difference sets, subsets of Z_K that meet each of their translates in the same
number of points. `RampRegisters` are the simple version, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, Final, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Ints
from partita.errors import InvalidParameter, check, check_arguments
from partita.local.encodings import projective_points
from partita.local.randomizer import threshold
from partita.numbers import integer
from partita.pan import sketch
from partita.public.bounds import laplace_variance
from partita.public.streams import CounterTerms, invalid_state
from partita.trusted.noise.system import KERNEL, Noise
from partita.trusted.streams.base import Fields

# The registers themselves.

_LONGEST: Final = 10**4


@final
@check_arguments
class Registers(sketch.ListedSketch):
    """How many of a public universe came how often, private even if the memory is read once.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`.
    Error:     about 2 e^(epsilon/2) / (sqrt(universe) (e^epsilon - 1)) for a fraction "exactly-t".
    Proof:     docs/proofs/pan_registers.md (all translates of a difference set look alike)

    A register starts at random in Z_K, more often within a difference set than not, and an event moves it by
    one, or back. Net numbers of events from `lowest` to `most` are distinguished; a number beyond them is
    taken modulo K, which may spoil the estimates, never privacy. Statistics are "density" (who has a net
    number other than zero), "exactly-t", "mean-t" (of min(t, number)) and "heavy-t" (at least t).

    >>> visits = Registers(universe=10_000, epsilon=1, most=20, releases=2)
    >>> visits.update_many([3, 14, 15, 14])
    >>> visits.update(15, by=-1)
    >>> visits.release("heavy-2").error < 0.05
    True
    """

    name: ClassVar[str] = "pan-registers"

    _registers: Ints = np.zeros(0, dtype=np.int64)

    def __init__(
        self,
        *,
        universe: sketch.Ids,
        epsilon: object,
        most: int = 100,
        lowest: int = 0,
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self._universe = sketch.Universe.of(universe)
        self.lowest = integer(lowest, "lowest", low=-_LONGEST, high=0)
        self.most = integer(most, "most", low=1, high=_LONGEST)
        super().__init__(epsilon=epsilon, releases=releases, epochs=epochs, noise=noise)
        self._shares = sketch.EpochShares.choose(
            self.epsilon, self.releases, output_share, self._predict_variance
        )
        self._law = self._law_of(self._shares)
        self._shares.check(spread=self._law.set.period * (self.most - self.lowest))
        self._registers = np.zeros(self._universe.size, dtype=np.int64)
        self._fill()

    @property
    def names(self) -> tuple[str, ...]:
        """What can be released; T is a number."""
        return "density", "exactly-T", "mean-T", "heavy-T"

    def update(self, name: object, *, by: int = 1) -> None:
        """Somebody came `by` times; a negative number takes events back.

        `by` is any integer, modulo K. Only a value of another type is an error, which does not show it.
        """
        self.update_many([name], by=by)

    def update_many(self, ids: Iterable[object], *, by: int = 1) -> None:
        """Many came, one after the other, `by` times each: the same as one by one."""
        self._require_epoch()
        given: object = by  # an integer of any size: one that is refused for its size would be seen
        whole = isinstance(given, Integral) and not isinstance(given, bool)
        check(whole, "by", "must be an integer", given=type(by).__name__, fix="pass an int")
        move = int(by) % self._law.set.period
        with sketch.erase_after(self._find(ids)) as places, self._step():
            np.add.at(self._registers, places, move)
            self._registers[places] %= self._law.set.period

    def expected_error(self, name: str) -> float:
        """At least the standard error of a release, known beforehand."""
        statistic = self._statistic(name)
        return self._readout(statistic, self._weights(statistic)).error(self.output)

    def _measure(self, name: str) -> Callable[[], Answer]:
        statistic = self._statistic(name)
        weights = self._weights(statistic)
        readout = self._readout(statistic, weights)

        def measure() -> Answer:
            noisy = self._noise.add(int(weights[self._registers].sum()), readout.scale(self.output))
            return readout.answer(noisy, self.output)

        return measure

    def _statistic(self, name: str) -> sketch.Statistic:
        return sketch.parse_statistic(name, lowest=self.lowest, highest=self.most)

    def _parts(self, statistic: sketch.Statistic) -> tuple[int, dict[int, int]]:
        """The statistic as constant + sum of factor * (fraction with a net number v), by v."""
        kind, at = statistic
        if kind == "exactly":
            return 0, {at: 1}
        if kind == "density":
            return 1, {0: -1}
        if kind == "heavy":
            return 1, dict.fromkeys(range(self.lowest, at), -1)
        return at, {number: number - at for number in range(self.lowest, at)}

    def _weights(self, statistic: sketch.Statistic) -> Ints:
        """g(r), for each r: how a register counts in the sum that is released.

        The sum of factor * 1[r - v in the set] over v, a convolution of integers below 2^31, rounded to them.
        """
        member, period = self._law.set.member, self._law.set.period
        factors = np.zeros(period)
        for number, factor in self._parts(statistic)[1].items():
            factors[number % period] += factor
        folded = np.fft.irfft(np.fft.rfft(factors) * np.fft.rfft(member.astype(np.float64)), n=period)
        return np.rint(folded).astype(np.int64)

    def _readout(self, statistic: sketch.Statistic, weights: Ints) -> sketch.Readout:
        """The fraction with net number v: (share of registers in the set moved by v, - miss) / gap."""
        constant, factors = self._parts(statistic)
        size = self._registers.size
        gap = self._law.hit - self._law.miss
        low, high = (
            (float(min(0, self.lowest)), float(statistic.at)) if statistic.kind == "mean" else (0.0, 1.0)
        )
        return sketch.Readout(
            size=size,
            offset=float(constant - sum(factors.values()) * self._law.miss / gap),
            factor=float(1 / (size * gap)),
            spread=int(weights.max() - weights.min()),
            variance=self._law.variance(weights),
            low=low,
            high=high,
        )

    def _predict_variance(self, shares: sketch.EpochShares) -> float:
        """The variance of a fraction "exactly-t", times the square of the universe."""
        law = self._law_of(shares)
        noise = laplace_variance(1 / shares.output) / float(law.hit - law.miss) ** 2
        return self._universe.size * law.spread + noise

    def _law_of(self, shares: sketch.EpochShares) -> SingerLaw:
        return best_law(shares.state, self.most - self.lowest + 1)

    def _tables(self) -> tuple[NDArray[Any], ...]:
        return (self._registers,)

    def _fill(self) -> None:
        """A place in the set and one outside of it are drawn for each register, and one of them is taken."""
        law, size = self._law, self._registers.size
        within = sketch.chances(self._noise, law.within, size)
        inside = law.set.inside[sketch.uniform(self._noise, law.set.size, size)]
        outside = law.set.outside[sketch.uniform(self._noise, law.set.period - law.set.size, size)]
        self._registers[:] = np.where(within, inside, outside)

    def _fields(self) -> Fields:
        share = self._shares.share
        return {
            "plan": self._plan_row(),
            "shape": [self.most, self.lowest, share.numerator, share.denominator, *self._universe.pack()],
            "registers": sketch.pack_numbers(self._registers, self._law.set.period),
        }

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        most, lowest, numerator, denominator, *universe = fields["shape"]
        known = sketch.Universe.unpack(universe)
        if len(fields["registers"]) * 8 < known.size:
            raise ValueError("too few registers")
        plan = cls._plan(terms, fields, sketch.read_fraction(numerator, denominator), noise)
        return cls._make_for(known, most=most, lowest=lowest, **plan)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._restore_plan(fields["plan"])
        period = self._law.set.period
        self._registers[:] = sketch.unpack_numbers(fields["registers"], self._registers.size, period)


# The law of a register: uniform within a difference set, and uniform outside of it, rarer by e^-epsilon.


@final
@dataclass(frozen=True)
class SingerLaw:
    """A register starts in the set with probability within / 2^64, uniform on either side.

    `hit` is the probability that a register lies in the set moved by as much as the register was, `miss` that
    it lies in the set moved otherwise: the same for every other move.
    """

    set: DifferenceSet
    within: int

    @property
    def hit(self) -> Fraction:
        """The probability to start in the set."""
        return Fraction(self.within, sketch.WORD)

    @property
    def miss(self) -> Fraction:
        """The probability to start in a translate of the set, which has lambda of its points in the set."""
        k, s, common = self.set.period, self.set.size, self.set.common
        return self.hit * common / s + (1 - self.hit) * (s - common) / (k - s)

    @property
    def ratio(self) -> Fraction:
        """How much more likely a place in the set is than one outside: at most e^epsilon."""
        k, s = self.set.period, self.set.size
        return self.hit * (k - s) / ((1 - self.hit) * s)

    @property
    def spread(self) -> float:
        """The variance of an estimated fraction that is small, times the number of registers."""
        return float(self.miss * (1 - self.miss) / (self.hit - self.miss) ** 2)

    def variance(self, weights: Ints) -> float:
        """The greatest variance of weights[register] over all moves of a register."""
        first = self._means(weights.astype(np.float64))
        second = self._means(np.square(weights, dtype=np.float64))
        return float(np.maximum(second - first**2, 0).max())

    def _means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of values[register] for a register that was moved by c, for each c: a correlation."""
        k, s = self.set.period, self.set.size
        spectrum = np.fft.rfft(values) * np.conj(np.fft.rfft(self.set.member.astype(np.float64)))
        inside = np.fft.irfft(spectrum, n=k)
        hit = float(self.hit)
        return np.asarray(hit * inside / s + (1 - hit) * (values.sum() - inside) / (k - s))


@lru_cache(maxsize=256)
def best_law(epsilon: Fraction, least: int) -> SingerLaw:
    """The law with the least error among those that lose at most epsilon and tell `least` moves apart."""
    return min((make_law(each, epsilon) for each in candidates(least)), key=lambda law: law.spread)


def make_law(chosen: DifferenceSet, epsilon: Fraction) -> SingerLaw:
    """The most telling law over a difference set that loses at most epsilon: rounded down, certified."""
    law = SingerLaw(chosen, threshold(epsilon, chosen.size, chosen.period - chosen.size))
    fix = "use a value such as 1"
    check(law.miss < law.hit < 1, "epsilon", "must be neither tiny nor huge", given=epsilon, fix=fix)
    return law


# Cyclic difference sets.

Element: TypeAlias = tuple[int, ...]
"""Coefficients of 1, x, x^2, ... modulo a polynomial."""

LARGEST_PERIOD: Final = 2**17

_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


@final
@dataclass(frozen=True)
class DifferenceSet:
    """The difference set of a hyperplane in the space of dimension d over the field with q elements.

    Singer's construction: let x be a primitive element of the field with q^d elements. The exponents
    k < K = (q^d - 1) / (q - 1) for which x^k lies in a fixed hyperplane are s = (q^(d-1) - 1) / (q - 1)
    numbers, and any two different translates of them have lambda = (q^(d-2) - 1) / (q - 1) in common.
    """

    q: int
    dimension: int

    @property
    def period(self) -> int:
        """K: the set lies in Z_K."""
        return projective_points(self.q, self.dimension)

    @property
    def size(self) -> int:
        """s: how many numbers are in the set."""
        return projective_points(self.q, self.dimension - 1)

    @property
    def common(self) -> int:
        """lambda: how many numbers the set shares with a translate."""
        return projective_points(self.q, self.dimension - 2)

    @cached_property
    def member(self) -> Bools:
        """Which of 0, ..., K-1 are in the set."""
        walk = _Walk(self.q, _primitive(self.q, self.dimension))
        found = np.zeros(self.period, dtype=np.bool_)
        power = walk.one
        for exponent in range(self.period):
            found[exponent] = power[-1] == 0
            power = walk.times_x(power)
        return found

    @cached_property
    def inside(self) -> Ints:
        """The numbers in the set."""
        return np.flatnonzero(self.member).astype(np.int64)

    @cached_property
    def outside(self) -> Ints:
        """The numbers that are not."""
        return np.flatnonzero(~self.member).astype(np.int64)


@lru_cache(maxsize=64)
def difference_set(q: int, dimension: int) -> DifferenceSet:
    """The set for a prime q and a dimension from 2 on, made once."""
    return DifferenceSet(q, dimension)


def candidates(least: int) -> list[DifferenceSet]:
    """For each of some primes the smallest set whose period is at least this, if it is not too large."""
    smallest = [next(d for d in range(2, 64) if projective_points(q, d) >= least) for q in _PRIMES]
    sets = [difference_set(q, dimension) for q, dimension in zip(_PRIMES, smallest, strict=True)]
    return [each for each in sets if each.period <= LARGEST_PERIOD]


@final
@dataclass(frozen=True)
class _Walk:
    """Powers of x modulo x^d = rule[0] + rule[1] x + ... over the field with q elements."""

    q: int
    rule: Element

    @property
    def one(self) -> Element:
        return (1, *[0] * (len(self.rule) - 1))

    def times_x(self, element: Element) -> Element:
        top = element[-1]
        return tuple((a + top * r) % self.q for a, r in zip((0, *element[:-1]), self.rule, strict=True))

    def times(self, left: Element, right: Element) -> Element:
        total, shifted = [0] * len(left), left
        for digit in right:
            total = [(a + digit * b) % self.q for a, b in zip(total, shifted, strict=True)]
            shifted = self.times_x(shifted)
        return tuple(total)

    def power(self, exponent: int) -> Element:
        """x^exponent, by squaring."""
        result = self.one
        for bit in bin(exponent)[2:]:
            result = self.times(result, result)
            result = self.times_x(result) if bit == "1" else result
        return result


@lru_cache(maxsize=64)
def _primitive(q: int, dimension: int) -> Element:
    """The first rule under which x has order q^d - 1: then all that is not zero is a power of x."""
    order = q**dimension - 1
    proper = [order // prime for prime in _prime_factors(order)]
    for higher in product(range(q), repeat=dimension - 1):
        for first in _generators(q):
            walk = _Walk(q, ((-1) ** (dimension + 1) * first % q, *higher))
            if walk.power(order) == walk.one and all(walk.power(n) != walk.one for n in proper):
                return walk.rule
    raise AssertionError("every finite field has a primitive element")


def _generators(q: int) -> list[int]:
    """Those whose powers are all but zero modulo q: the norm of a primitive element is one of them."""
    return [each for each in range(1, q) if len({pow(each, n, q) for n in range(q - 1)}) == q - 1]


def _prime_factors(number: int) -> list[int]:
    factors, factor = [], 2
    while factor * factor <= number:
        if number % factor == 0:
            factors.append(factor)
            while number % factor == 0:
                number //= factor
        factor += 1
    return [*factors, number] if number > 1 else factors


# The simple registers: counters that wrap around and draw a bit again when they do.

_LARGEST_TOP: Final = 10**4
_MOST_TOPS: Final = 64
_BIT_VARIANCE: Final = 0.25


@final
@check_arguments
class RampRegisters(sketch.ListedSketch):
    """How many of a public universe came how often: the simple registers, for comparison with `Registers`.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`.
    Error:     about t len(tops) / (sqrt(universe) epsilon) for "mean-t", twice that for "heavy-t", and four
               times for "exactly-t".
    Proof:     docs/proofs/pan_ramp_registers.md (a counter with a random start tells nothing)

    For each of `tops` and each user there is a counter modulo that top, which starts anywhere, and a biased
    bit, which is drawn again when the counter wraps around. After n events that has happened with
    probability min(n, top) / top, so the bits say the mean of min(n, top). The others follow: "heavy-t"
    needs the tops t and t-1, "exactly-t" also t+1, "density" needs 1. Events cannot be taken back.

    >>> visits = RampRegisters(universe=10_000, epsilon=2, tops=[3])
    >>> visits.update_many([3, 14, 15, 14])
    >>> visits.release("mean-3").error < 0.1
    True
    """

    name: ClassVar[str] = "pan-ramp-registers"

    _counters: Ints = np.zeros(0, dtype=np.int64)
    _bits: Bools = np.zeros(0, dtype=np.bool_)

    def __init__(
        self,
        *,
        universe: sketch.Ids,
        epsilon: object,
        tops: Sequence[int],
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self._universe = sketch.Universe.of(universe)
        self.tops = _check_tops(tops)
        super().__init__(epsilon=epsilon, releases=releases, epochs=epochs, noise=noise)
        self._shares = sketch.EpochShares.choose(
            self.epsilon, self.releases, output_share, self._predict_variance
        )
        self._shares.check(spread=4 * max(self.tops))
        self._coin = self._coin_of(self._shares)
        shape = len(self.tops), self._universe.size
        self._counters = np.zeros(shape, dtype=np.int64)
        self._bits = np.zeros(shape, dtype=np.bool_)
        self._fill()

    @property
    def names(self) -> tuple[str, ...]:
        """What these tops can tell."""
        numbers = sorted({0, *self.tops})
        statistics = [sketch.Statistic(kind, at) for at in numbers for kind in ("exactly", "mean", "heavy")]
        told = [f"{kind}-{at}" for kind, at in statistics if at or kind == "exactly" if self._tells(kind, at)]
        return ("density", *told) if 1 in self.tops else tuple(told)

    def update_many(self, ids: Iterable[object]) -> None:
        """Count everybody who came, and draw the bits again whose counters wrapped around."""
        self._require_epoch()
        with sketch.erase_after(self._find(ids)) as places, self._step():
            for counters, bits, top in zip(self._counters, self._bits, self.tops, strict=True):
                np.add.at(counters, places, 1)
                drawn = sketch.chances(self._noise, self._coin.redraw, places.size)
                bits[places] = np.where(counters[places] >= top, drawn, bits[places])
                counters[places] %= top

    def expected_error(self, name: str) -> float:
        """At least the standard error of a release, known beforehand."""
        return self._readout(self._statistic(name)).error(self.output)

    def _measure(self, name: str) -> Callable[[], Answer]:
        statistic = self._statistic(name)
        readout, factors = self._readout(statistic), _parts(statistic)[1]

        def measure() -> Answer:
            ones = {top: int(bits.sum()) for top, bits in zip(self.tops, self._bits, strict=True)}
            total = sum(factor * ones[top] for top, factor in factors.items())
            return readout.answer(self._noise.add(total, readout.scale(self.output)), self.output)

        return measure

    def _statistic(self, name: str) -> sketch.Statistic:
        statistic = sketch.parse_statistic(name, lowest=0, highest=_LARGEST_TOP)
        if not self._tells(*statistic):
            fix = "make the sketch with more tops"
            raise InvalidParameter("name", f"must be one of {', '.join(self.names)}", given=name, fix=fix)
        return statistic

    def _tells(self, kind: str, at: int) -> bool:
        return set(_parts(sketch.Statistic(kind, at))[1]) <= set(self.tops)

    def _readout(self, statistic: sketch.Statistic) -> sketch.Readout:
        """Of the bits of a top t, on average (ones / size - q0) / (q1 - q0) is the mean of min(n, t) / t."""
        constant, factors = _parts(statistic)
        coin, size = self._coin, self._universe.size
        return sketch.Readout(
            size=size,
            offset=float(constant - sum(factors.values()) * coin.q0 / coin.gap),
            factor=float(1 / (size * coin.gap)),
            spread=sum(abs(factor) for factor in factors.values()),
            variance=_BIT_VARIANCE * sum(factor**2 for factor in factors.values()),
            low=0.0,
            high=float(statistic.at) if statistic.kind == "mean" else 1.0,
        )

    def _predict_variance(self, shares: sketch.EpochShares) -> float:
        """The variance of the mean of the largest top, over the square of that top."""
        noise = laplace_variance(1 / shares.output)
        return (self._universe.size * _BIT_VARIANCE + noise) / float(self._coin_of(shares).gap) ** 2

    def _coin_of(self, shares: sketch.EpochShares) -> sketch.Coin:
        """The bits of all tops are seen together: each has its part of the state's epsilon."""
        return sketch.state_coin(shares.state / len(self.tops))

    def _tables(self) -> tuple[NDArray[Any], ...]:
        return self._counters, self._bits

    def _fill(self) -> None:
        for counters, bits, top in zip(self._counters, self._bits, self.tops, strict=True):
            counters[:] = sketch.uniform(self._noise, top, counters.size)
            bits[:] = sketch.chances(self._noise, self._coin.start, bits.size)

    def _fields(self) -> Fields:
        share = self._shares.share
        return {
            "plan": self._plan_row(),
            "shape": [share.numerator, share.denominator, *self._universe.pack()],
            "tops": self.tops,
            "counters": sketch.pack_numbers(self._counters.ravel(), max(self.tops)),
            "bits": sketch.pack_bits(self._bits.ravel()),
        }

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        numerator, denominator, *universe = fields["shape"]
        known, tops = sketch.Universe.unpack(universe), _check_tops(fields["tops"])
        sketch.unpack_bits(fields["bits"], known.size * len(tops))  # before memory is taken for these tables
        plan = cls._plan(terms, fields, sketch.read_fraction(numerator, denominator), noise)
        return cls._make_for(known, tops=tops, **plan)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._restore_plan(fields["plan"])
        size, shape = self._bits.size, self._bits.shape
        counters = sketch.unpack_numbers(fields["counters"], size, max(self.tops)).reshape(shape)
        if bool((counters >= np.array(self.tops)[:, np.newaxis]).any()):
            raise invalid_state("hold numbers that a register has")
        self._counters[:], self._bits[:] = counters, sketch.unpack_bits(fields["bits"], size).reshape(shape)


def _parts(statistic: sketch.Statistic) -> tuple[int, dict[int, int]]:
    """A statistic as constant + sum of factor * (mean of min(n, t) / t), by t.

    The mean of min(n, t) is the sum of the fractions that came at least 1, ..., t times.
    """
    kind, t = statistic
    if kind == "density":
        return 0, {1: 1}
    if kind == "mean":
        return 0, {t: t}
    factors = {t: t, t - 1: 1 - t} if kind == "heavy" else {t: 2 * t, t - 1: 1 - t, t + 1: -t - 1}
    constant = 1 if statistic == ("exactly", 0) else 0
    return constant, {top: factor for top, factor in factors.items() if top > 0 and factor}


def _check_tops(tops: Sequence[int]) -> tuple[int, ...]:
    """Different tops, in order."""
    if isinstance(tops, (str, bytes)) or not 0 < len(tops) <= _MOST_TOPS:
        raise InvalidParameter("tops", "must be a list of 1 to 64 numbers", given=tops, fix="pass [3]")
    return tuple(sorted({integer(top, "tops", low=1, high=_LARGEST_TOP) for top in tops}))
