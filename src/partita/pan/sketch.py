"""What pan-private sketches share: their life in epochs, the ids of a universe, coins and answers."""

from __future__ import annotations

import hashlib
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, TypeGuard, TypeVar, final

import numpy as np
from flint import arb
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Ints
from partita.errors import (
    BudgetExceeded,
    HorizonReached,
    InvalidData,
    InvalidParameter,
    check,
    raise_without_cause,
)
from partita.guarantee import UNLIMITED, Guarantee
from partita.html import card
from partita.local.randomizer import check_epsilon
from partita.numbers import integer, rational
from partita.public.bounds import half_width, laplace_variance
from partita.public.streams import CounterTerms, invalid_state
from partita.trusted.noise.laws import KernelWords, Real, enclose, flags, integers_below, precision
from partita.trusted.noise.system import KERNEL, LARGEST_SCALE, SMALLEST_SCALE, Noise
from partita.trusted.streams.base import Stepping

# Many biased bits and many uniform integers at once, each with its exact law.

Table = TypeVar("Table", bound=NDArray[Any])

WORD: Final = 2**64
"""Probabilities are multiples of 1 / 2^64."""


def chances(noise: Noise, threshold: int, size: int) -> Bools:
    """Independent bits, each True with probability exactly threshold / 2^64.

    From the kernel all at once, at the time of the call, and nothing is stored; from other noise one by one.
    """
    if noise is KERNEL:
        return flags(KernelWords(), threshold, size)
    probability = Fraction(threshold, WORD)
    return np.array([noise.bernoulli(probability) for _ in range(size)], dtype=np.bool_)


@contextmanager
def erase_after(places: Table) -> Iterator[Table]:
    """Lend the places of those who came, and overwrite them in the end, whatever happens.

    >>> with erase_after(np.array([3, 1, 4])) as places:
    ...     total = places.sum()
    >>> total, places
    (np.int64(8), array([0, 0, 0]))
    """
    try:
        yield places
    finally:
        places.fill(0)


def uniform(noise: Noise, count: int, size: int) -> Ints:
    """Independent integers, uniform among 0, ..., count-1."""
    if noise is KERNEL:
        return integers_below(KernelWords(), count, size)
    weights = [1] * count
    return np.array([noise.categorical(weights) for _ in range(size)], dtype=np.int64)


# The two biases of a bit that says whether somebody came, and their exact privacy loss.

Variant: TypeAlias = Literal["default", "book"]

_HALF: Final = WORD // 2
_FIRST_PRECISION: Final = 192


@final
@dataclass(frozen=True)
class Coin:
    """Both biases of a bit, in units of 1 / 2^64.

    A bit starts as 1 with probability q0 and is drawn again, as 1 with probability q1, when its user comes.
    """

    start: int
    redraw: int

    @property
    def q0(self) -> Fraction:
        """The probability of a 1 before anybody came."""
        return Fraction(self.start, WORD)

    @property
    def q1(self) -> Fraction:
        """The probability of a 1 after somebody came."""
        return Fraction(self.redraw, WORD)

    @property
    def gap(self) -> Fraction:
        """How much more likely a 1 is if somebody came."""
        return self.q1 - self.q0


def state_ratios(q0: Any, q1: Any) -> tuple[Any, ...]:
    """How much the law of a bit changes when its user comes: the greatest ratio is e^loss."""
    return q1 / q0, (1 - q0) / (1 - q1)


def joint_ratios(q0: Any, q1: Any, growth: Any) -> tuple[Any, ...]:
    """The same for the state at one time and one later sum of all bits with noise, growth = e^output.

    The user comes before and after the look: it shows a 1 and the sum is low, or it shows a 0 and the sum
    is high. The user comes after the look only: it shows a 0 and the sum is high.
    """
    more, less = state_ratios(q0, q1)
    return more * (q1 + (1 - q1) * growth), less / (q1 / growth + (1 - q1)), q1 * growth + (1 - q1)


@lru_cache(maxsize=512)
def joint_coin(epsilon: Fraction, output: Fraction, variant: Variant) -> Coin:
    """The most telling coin whose state and one output together lose at most epsilon.

    The output is the sum of all bits with discrete Laplace noise of scale 1 / output.
    """
    return _find_coin(epsilon, variant, lambda q0, q1: joint_ratios(q0, q1, enclose(output).exp()))


@lru_cache(maxsize=512)
def state_coin(epsilon: Fraction, variant: Variant = "default") -> Coin:
    """The most telling coin whose state loses at most epsilon."""
    return _find_coin(epsilon, variant, state_ratios)


def _find_coin(epsilon: Fraction, variant: Variant, ratios: Callable[[arb, arb], tuple[arb, ...]]) -> Coin:
    """The coin of largest gap, by bisection: the ratios grow with the second bias."""
    fitting, wrong = _HALF, WORD
    while wrong - fitting > 1:
        middle = (fitting + wrong) // 2
        if _loses_at_most(epsilon, _coin(middle, variant), ratios):
            fitting = middle
        else:
            wrong = middle
    rule = "must give biases between 2^-64 and 1/2"
    check(_HALF < fitting < WORD - 1, "epsilon", rule, given=epsilon, fix="use a value such as 1")
    return _coin(fitting, variant)


def _coin(redraw: int, variant: Variant) -> Coin:
    """The book starts with fair bits [DR14, section 12.2]; ours are as biased before as they are after."""
    return Coin(start=_HALF if variant == "book" else WORD - redraw, redraw=redraw)


def _loses_at_most(epsilon: Fraction, coin: Coin, ratios: Callable[[arb, arb], tuple[arb, ...]]) -> bool:
    """Whether no ratio exceeds e^epsilon, certified."""

    def margin(which: int) -> Real:
        return lambda: enclose(epsilon).exp() - ratios(enclose(coin.q0), enclose(coin.q1))[which]

    with precision(_FIRST_PRECISION):
        number = len(ratios(enclose(coin.q0), enclose(coin.q1)))
    return all(_positive(margin(which)) for which in range(number))


def _positive(value: Real) -> bool:
    """The sign of a number that is not zero: sums of exponentials of different rationals never are."""
    bits = _FIRST_PRECISION
    while True:
        with precision(bits):
            found = value()
            if found > 0 or found < 0:
                return bool(found > 0)
        bits *= 2


# From a noisy sum over registers to an answer with its error: public arithmetic on released numbers.


@final
@dataclass(frozen=True, kw_only=True)
class Readout:
    """What a sum of g(register) over `size` registers says: offset + factor * sum.

    `spread` is max g - min g, a public integer, and `variance` at least the variance of g(register) for any
    register. The truth lies between `low` and `high`.
    """

    size: int
    offset: float
    factor: float
    spread: int
    variance: float
    low: float
    high: float

    def scale(self, output: Fraction) -> Fraction:
        """One user moves one register, and the sum by at most `spread`: that is hidden at this scale."""
        return self.spread / output

    def error(self, output: Fraction) -> float:
        """At least the standard error of an answer whose output has this epsilon."""
        noise = laplace_variance(self.scale(output))
        return abs(self.factor) * math.sqrt(self.size * self.variance + noise)

    def answer(self, noisy: int, output: Fraction) -> Answer:
        """The estimate, which is unbiased, and bounds that hold for any stream."""
        value = self.offset + self.factor * noisy

        def bounds(beta: float) -> tuple[float, float]:
            half = beta / 2  # for the registers, and for the noise
            total = self.spread * sum_reach(self.size, half) + laplace_reach(self.scale(output), half)
            reach = abs(self.factor) * total
            return max(self.low, value - reach), min(self.high, value + reach)

        return Answer(value, lambda: self.error(output), bounds, self.low)


def sum_reach(size: int, beta: float) -> float:
    """How far a sum of `size` independent numbers in [0, 1] may be from its mean [Hoeffding]."""
    return math.sqrt(size * math.log(2 / beta) / 2)


def laplace_reach(scale: Fraction, beta: float) -> float:
    """How far discrete Laplace noise may be from zero."""
    return float(half_width(np.array(float(1 / scale)), np.array(math.log(beta))))


# Ids as bytes, and the register that belongs to an id of a public universe.

Ids: TypeAlias = "int | Sequence[str | int | bytes]"
"""A universe as people give it: its size, for the ids 0, ..., size-1, or all of its ids."""

LARGEST_UNIVERSE: Final = 2**27

_DIGEST: Final = 32


def encode_id(name: object) -> bytes | None:
    """An id as bytes, different for different ids; None if it is neither text, nor bytes, nor a whole number.

    Text is not a number: "7" and 7 are two ids. 7.0 is 7.

    >>> encode_id("7"), encode_id(7), encode_id(7.0), encode_id(7.5)
    (b's7', b'i7', b'i7', None)
    """
    if isinstance(name, str):
        return b"s" + name.encode("utf-8", "surrogatepass")
    if isinstance(name, bytes):
        return b"b" + name
    return b"i%d" % int(name) if _is_whole(name) else None


def hash_id(name: bytes, salt: bytes = b"") -> int:
    """A public function of an id that spreads ids evenly over 64 bits."""
    return int.from_bytes(hashlib.blake2b(name, digest_size=8, salt=salt).digest(), "big")


@final
@dataclass(frozen=True)
class Universe:
    """The ids that may come, in a public order; `fingerprint` identifies a list of names.

    Ids outside the universe are ignored: an error would be seen, and show that somebody came.
    """

    size: int
    fingerprint: bytes = b""
    places: Mapping[bytes, int] | None = None

    @classmethod
    def of(cls, universe: Ids) -> Self:
        """A universe as people give it."""
        if isinstance(universe, (str, bytes)) or not isinstance(universe, Sequence | np.ndarray):
            return cls(size=integer(universe, "universe", low=1, high=LARGEST_UNIVERSE))
        names = [encode_id(name) for name in universe]
        places = {name: place for place, name in enumerate(names) if name is not None}
        rule, fix = "must hold different texts or integers", "list each id once"
        check(0 < len(places) == len(names) <= LARGEST_UNIVERSE, "universe", rule, given=universe, fix=fix)
        return cls(size=len(names), fingerprint=_fingerprint(places), places=places)

    @classmethod
    def unpack(cls, row: Sequence[int]) -> Self:
        """The universe from a row of a state; its names, where it has some, must be given again."""
        size, *fingerprint = row
        if len(fingerprint) not in (0, _DIGEST):
            raise ValueError("no universe")
        return cls(integer(size, "universe", low=1, high=LARGEST_UNIVERSE), bytes(fingerprint))

    def pack(self) -> list[int]:
        """As a row of a state, in which no name can be read."""
        return [self.size, *self.fingerprint]

    def with_names(self, universe: Ids) -> Universe:
        """The same universe with its names, if they are the same."""
        given = Universe.of(universe)
        fits = (given.size, given.fingerprint) == (self.size, self.fingerprint)
        rule = "must be the one that the sketch was made with, in the same order"
        check(fits, "universe", rule, given=universe, fix="pass that one")
        return given

    def find(self, ids: Iterable[object]) -> Ints:
        """The places of those ids that are in the universe, in the order in which they come: a new array."""
        if self.fingerprint:
            return self._find_names(ids)
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuf" and ids.ndim == 1:
            chosen = ids[_whole_below(ids, self.size)]
            places = chosen.astype(np.int64, copy=False)
            if places is not chosen:
                chosen.fill(0)  # a copy of somebody's ids must not stay in memory
            return places
        found = [int(place) for place in iterate_ids(ids) if _is_whole(place) and 0 <= place < self.size]
        return np.array(found, dtype=np.int64)

    def _find_names(self, ids: Iterable[object]) -> Ints:
        if self.places is None:
            fix = "pass the same list"
            raise InvalidParameter("universe", "must be given again with its names", given=None, fix=fix)
        names = (encode_id(name) for name in iterate_ids(ids))
        found = [self.places[name] for name in names if name is not None and name in self.places]
        return np.array(found, dtype=np.int64)


def iterate_ids(ids: object) -> Iterator[object]:
    """The ids one by one; a text is one id, not a list of ids, and only lists and arrays are accepted."""
    listed: Any = ids.tolist() if isinstance(ids, np.ndarray) else ids
    failure = InvalidData("ids", "must be a list or an array of ids", fix="pass [id] for one id")
    if isinstance(listed, (str, bytes)):
        raise failure
    return raise_without_cause(lambda: iter(listed), failure, Exception)


def _whole_below(ids: NDArray[Any], size: int) -> Bools:
    """Where a number of a column is one of 0, ..., size-1; no copy of the column is left in memory."""
    within = np.asarray((ids >= 0) & (ids < size))
    if ids.dtype.kind == "f":
        within &= np.remainder(ids, 1, out=np.ones_like(ids), where=within) == 0
    return within


def _is_whole(name: object) -> TypeGuard[int]:
    if isinstance(name, (float, np.floating)):
        return name.is_integer()
    return isinstance(name, (int, np.integer)) and not isinstance(name, bool)


def _fingerprint(names: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for name in names:
        digest.update(len(name).to_bytes(8, "big") + name)
    return digest.digest()


_MOST_RELEASES: Final = 10**6


class Sketch(Stepping):
    """Statistics of users, private even if the memory is read once at an unknown time.

    A user is one id, with all of its events. `update` counts users, at any time, and publishes nothing.
    `release(name)` publishes one statistic. An *epoch* has `releases` outputs; with the last one the epoch is
    over, its table is erased, and the next one begins with a fresh table, if there is one.
    `announce_intrusion` ends an epoch at once.

    Epsilon is for a user over the whole life of the sketch: all outputs of all epochs, and one look at the
    state in each of them. An epoch has epsilon / epochs. `guarantee` is None if the noise was injected. What
    is protected is the state between two calls; call it from one thread at a time.
    """

    name: ClassVar[str]
    _shares: EpochShares

    def __init__(self, *, epsilon: object, releases: int, epochs: int, noise: Noise) -> None:
        self.releases = integer(releases, "releases", low=1, high=_MOST_RELEASES)
        epochs = integer(epochs, "epochs", low=1, high=_MOST_RELEASES)
        terms = CounterTerms.of(epsilon)
        check_epsilon(terms.epsilon / epochs)
        super().__init__(terms=terms, horizon=epochs, secure=False)
        self.epochs = epochs
        self.guarantee = self.promise if noise is KERNEL else None
        self._noise = noise
        self._left = self.releases

    @property
    def promise(self) -> Guarantee:
        """What a sketch with noise from the kernel guarantees."""
        return Guarantee(
            epsilon=self.terms.epsilon, unit="user", contributions=UNLIMITED, intrusions=1, announced=True
        )

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of one epoch."""
        return self.terms.epsilon / self.epochs

    @property
    def epoch(self) -> int:
        """The number of the present epoch, from 1; all of them are over if it exceeds `epochs`."""
        return self.periods + 1

    @property
    def releases_left(self) -> int:
        """How many outputs the present epoch has left."""
        return self._left

    @property
    def output(self) -> Fraction:
        """The epsilon of one output."""
        return self._shares.output

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What can be released."""

    @abstractmethod
    def expected_error(self, name: str) -> float:
        """At least the standard error of a release, known beforehand (`Distinct`: of `buckets` ids)."""

    def update(self, name: object) -> None:
        """Somebody came. Ids outside the universe are ignored."""
        self.update_many([name])

    @abstractmethod
    def update_many(self, ids: Iterable[object]) -> None:
        """Many came, one after the other; the same law as one by one, and no look falls between them.

        The work depends on how many ids of the universe came, not on which, or whether they came before.
        Their places are overwritten before this returns; the ids that were passed, and copies that Python
        made of them, are the caller's to erase.
        """

    def release(self, name: str) -> Answer:
        """Publish one statistic. It is paid for before noise is drawn, and an output that is lost stays paid.

        The last output of an epoch ends it: the table that it was made from is erased.
        """
        measure = self._measure(name)
        self._require_output()
        with self._step():
            self._left -= 1
            answer = measure()
            if not self._left:
                self._begin_epoch()
        return answer

    def announce_intrusion(self) -> None:
        """End the epoch: its table is erased, and a look from now on sees fresh noise only.

        Earlier events are forgotten: later releases are about events from now on. Release first what you
        need. Outputs that were not released are lost with the epoch. If it was the last one, the sketch is
        over.
        """
        self._make_room(0)
        with self._step():
            if not self._over:
                self._begin_epoch()

    def abandon(self) -> None:
        """Never go on: erase the tables, as if it had been interrupted."""
        self._abandon()

    def state(self) -> bytes:
        """All that the sketch remembers: one look at it in each epoch is covered by the guarantee."""
        return super().state()

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = KERNEL) -> Self:
        """The sketch that gave this state; anything else is an `InvalidState`.

        It must go on in one place only: two that go on from one state are as two looks at it.
        """
        return super().from_state(state, noise=noise)

    def __repr__(self) -> str:
        """Parameters, and what is public."""
        left = f"releases_left={self._left} of {self.releases}"
        return f"{type(self).__name__}(epsilon={self.terms.epsilon}, epoch={self._epoch_text}, {left})"

    def _repr_html_(self) -> str:
        """As above, and what can be released."""
        facts = [
            ("promise", "none: made with injected noise" if self.guarantee is None else self.guarantee),
            ("epoch", self._epoch_text),
            ("outputs left in it", f"{self._left} of {self.releases}"),
            ("can be released", ", ".join(self.names)),
        ]
        return card(type(self).__name__, facts)

    @abstractmethod
    def _measure(self, name: str) -> Callable[[], Answer]:
        """How to publish a statistic; only a name that is wrong is an error."""

    @abstractmethod
    def _tables(self) -> tuple[NDArray[Any], ...]:
        """Every array that holds something about users."""

    @abstractmethod
    def _fill(self) -> None:
        """Overwrite every table with fresh noise."""

    @property
    def _over(self) -> bool:
        return self.periods >= self.epochs

    @property
    def _epoch_text(self) -> str:
        return "over" if self._over else f"{self.epoch} of {self.epochs}"

    def _begin_epoch(self) -> None:
        """Erase what was, in place; start afresh where there is an epoch left."""
        self._periods += 1
        self._left = 0 if self._over else self.releases
        self._erase()
        if not self._over:
            self._fill()

    def _erase(self) -> None:
        for table in self._tables():
            table.fill(0)

    def _abandon(self) -> None:
        """Never go on, and erase what an interrupted step left in the tables."""
        super()._abandon()
        self._erase()

    def _require_epoch(self) -> None:
        self._make_room(0)
        if self._over:
            raise HorizonReached(
                f"the sketch has had all of its {self.epochs} epochs; nothing was counted, make a new one"
            )

    def _require_output(self) -> None:
        self._make_room(0)
        if not self._left:
            raise BudgetExceeded(
                f"the sketch has released all that epsilon {self.terms.epsilon} pays for, {self.releases} "
                f"outputs in each of {self.epochs} epochs; make a new one, or plan for more releases"
            )

    def _plan_row(self) -> list[int]:
        return [self.releases, self.epochs, self._left]

    @staticmethod
    def _plan(
        terms: CounterTerms, fields: Mapping[str, Sequence[int]], share: Fraction, noise: Noise
    ) -> dict[str, Any]:
        """The parameters that every kind of sketch has, from a state."""
        releases, epochs, _ = fields["plan"]
        plan = {"epsilon": terms.epsilon, "output_share": share, "noise": noise}
        return {**plan, "releases": releases, "epochs": epochs}

    def _restore_plan(self, row: Sequence[int]) -> None:
        releases, epochs, left = row
        lowest, highest = (0, 0) if self._over else (1, self.releases)
        if (releases, epochs) != (self.releases, self.epochs) or not lowest <= left <= highest:
            raise invalid_state("hold an epoch")
        self._left = left


class ListedSketch(Sketch):
    """Sketches with a register for each id of a public universe; ids outside the universe are ignored."""

    _universe: Universe

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = KERNEL, universe: Ids | None = None) -> Self:
        """The sketch that gave this state; a universe of names must be given again to go on counting.

        It must go on in one place only: two that go on from one state are as two looks at it.
        """
        sketch = super().from_state(state, noise=noise)
        if universe is not None:
            sketch._universe = sketch._universe.with_names(universe)
        return sketch

    @classmethod
    def _make_for(cls, universe: Universe, **parameters: Any) -> Self:
        """A fresh sketch for a universe whose names may be unknown."""
        make: Any = cls
        sketch: Self = make(universe=universe.size, **parameters)
        sketch._universe = universe
        return sketch

    def _find(self, ids: Iterable[object]) -> Ints:
        return self._universe.find(ids)


# Tables as rows of a state: as many bytes as they have, whatever is in them.

Choice = TypeVar("Choice")


def pack_bits(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Eight to a byte."""
    return _words(np.packbits(bits))


def unpack_bits(row: Sequence[int], size: int) -> NDArray[np.bool_]:
    """So many bits, if that is what was packed."""
    data = _bytes(row, -(-size // 8))
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=size).astype(np.bool_)


def pack_numbers(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Numbers below `count`, in as few bytes as the largest needs."""
    return _words(numbers.astype(_type_of(count)))


def unpack_numbers(row: Sequence[int], size: int, count: int) -> NDArray[np.int64]:
    """So many numbers below `count`, if that is what was packed."""
    kind = _type_of(count)
    numbers = np.frombuffer(_bytes(row, size * kind.itemsize), dtype=kind).astype(np.int64)
    if numbers.max(initial=0) >= count:
        raise invalid_state("hold numbers that a register has")
    return numbers


def read_choice(index: int, choices: Sequence[Choice]) -> Choice:
    """The choice with this number."""
    if not 0 <= index < len(choices):
        raise invalid_state("hold a choice that there is")
    return choices[index]


def read_fraction(numerator: int, denominator: int) -> Fraction:
    """A positive fraction."""
    if not numerator > 0 < denominator:
        raise invalid_state("hold positive shares")
    return Fraction(numerator, denominator)


def _type_of(count: int) -> np.dtype[Any]:
    return np.min_scalar_type(count - 1).newbyteorder("<")


def _words(table: NDArray[Any]) -> NDArray[np.int64]:
    data = table.tobytes()
    return np.frombuffer(data + bytes(-len(data) % 8), dtype="<i8").astype(np.int64)


def _bytes(row: Sequence[int], length: int) -> bytes:
    if len(row) != -(-length // 8):
        raise invalid_state("hold its whole table")
    return np.array(row, dtype="<i8").tobytes()[:length]


# Many sketches beside each other: users are divided by their ids.


def shard_of(name: object, shards: int) -> int:
    """The shard that a user belongs to, a public function of the id; a value that is no id is in the first.

    A user is in one shard for good, so the shards together lose no more than one of them. If users were
    divided by time, a user would be in several shards, a look at each would be another look, and losses would
    add up.

    >>> {shard_of(f"user {number}", 3) for number in range(100)}
    {0, 1, 2}
    """
    known = encode_id(name)
    return 0 if known is None else hash_id(known) % integer(shards, "shards", low=1)


def whole(answers: Sequence[Answer], sizes: Sequence[int]) -> Answer:
    """A fraction or a mean of all users from those of the shards, whose universes have these sizes.

    Numbers of users, such as those of `Distinct`, are added: `Answer.together`.
    """
    rule = "must be one for each answer"
    check(len(answers) == len(sizes) and answers, "sizes", rule, given=len(sizes), fix="pass as many")
    total = sum(integer(size, "sizes", low=1) for size in sizes)
    return Answer.together(
        [_scale_answer(each, size / total) for each, size in zip(answers, sizes, strict=True)]
    )


def _scale_answer(answer: Answer, share: float) -> Answer:
    """The part of a shard in a mean over all users."""

    def bounds(beta: float) -> tuple[float, float]:
        low, high = answer.bounds(beta)
        return share * low, share * high

    return Answer(share * answer.value, lambda: share * answer.error, bounds, share * answer.least)


# How the epsilon of an epoch is divided: a part hides the state, the rest is shared by all outputs.

_OFFERED: Final = tuple(Fraction(percent, 100) for percent in (*range(2, 21), 25, 30, 35, 40, 45, 50))
"""Shares of the outputs to choose from: the larger ones are for small universes and many outputs."""


@final
@dataclass(frozen=True)
class EpochShares:
    """`output` is the epsilon of each of `releases` outputs, `state` what is left for the state."""

    share: Fraction
    state: Fraction
    output: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, releases: int, share: object) -> Self:
        """With this share for all outputs together."""
        exact = rational(share, "output_share")
        check(0 < exact < 1, "output_share", "must lie between 0 and 1", given=share, fix='pass "0.1"')
        return cls(share=exact, state=epsilon * (1 - exact), output=epsilon * exact / releases)

    @classmethod
    def choose(
        cls, epsilon: Fraction, releases: int, share: object | None, error: Callable[[EpochShares], float]
    ) -> EpochShares:
        """With the given share, or the one with the least error according to public parameters."""
        if share is not None:
            return cls.of(epsilon, releases, share)
        return min((cls.of(epsilon, releases, offered) for offered in _OFFERED), key=error)

    def check(self, spread: int) -> None:
        """Refuse an epsilon whose noise, for statistics of this spread, has no sampler."""
        fits = 1 / self.output >= SMALLEST_SCALE and spread / self.output <= LARGEST_SCALE
        rule, fix = "must give noise of a scale between 2^-20 and 2^62", "use a value such as 1"
        check(fits, "epsilon", rule, given=self.state + self.output, fix=fix)


# Statistics of how often users came, by name.

_FORM: Final = re.compile(r"(density|(exactly|mean|heavy)-(0|[1-9][0-9]{0,8}))", re.ASCII)


class Statistic(NamedTuple):
    """`exactly` t times, the `mean` of min(t, times), or `heavy`: at least t times."""

    kind: str
    at: int


def parse_statistic(name: object, *, lowest: int, highest: int) -> Statistic:
    """The statistic called "density", "exactly-3", "mean-3" or "heavy-3", if its number is in range.

    >>> parse_statistic("heavy-3", lowest=0, highest=9)
    Statistic(kind='heavy', at=3)
    """
    form = _FORM.fullmatch(name) if isinstance(name, str) else None
    if form is None:
        rule = 'must be "density", "exactly-T", "mean-T" or "heavy-T" with a number T'
        raise InvalidParameter("name", rule, given=name, fix='ask for example for "heavy-3"')
    statistic = Statistic(form[2] or "density", int(form[3] or 0))
    least = lowest if statistic.kind == "exactly" else lowest + 1
    rule, fix = f"must ask for a number from {least} to {highest}", "ask within that"
    check(statistic.kind == "density" or least <= statistic.at <= highest, "name", rule, given=name, fix=fix)
    return statistic
