"""Uniform words, exact reals and the laws of integer noise drawn from them.

A source hands out words strictly in order. A caller that took more words than it needed gives
the rest back, so compiled code may look ahead and still leave the same tape behind.

A `Real` is a function that returns an enclosure (`flint.arb`) of one fixed number at the
current working precision. Every decision is certified: precision rises until the
enclosure leaves no doubt, so the outcome never depends on rounding.

Compiled kernels need the `fast` extra. Numba takes most of a second to import, so it is loaded on
the first large input only. Every kernel gives the same result on the same words as the NumPy code.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, lru_cache, reduce
from importlib import import_module
from importlib.util import find_spec
from operator import lshift, or_
from typing import Any, ClassVar, Final, NoReturn, Protocol, TypeAlias, final

import numpy as np
from flint import arb, ctx, fmpq, fmpz
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Bools, Ints, UInts
from partita.errors import EntropyError, TapeExhausted, check
from partita.trusted.noise.kernel import entropy

IntegerArray: TypeAlias = NDArray[np.int64] | NDArray[np.object_]
"""int64, or Python ints where those might not fit."""

_MODULE: Final = "partita.trusted.noise.compiled"
POSITIONS: Final = 1 << 18
"""Sealing the segments of this many positions in Python takes about as long as loading the kernels."""
DRAWS: Final = 1 << 24
"""This many draws with NumPy take about as long as loading the kernels."""
_SMALL: Final = 1 << 12  # from here on kernels that are loaded already pay
_WORD_BYTES: Final = 8
_GUARD_BITS: Final = 64  # extra precision of the first attempt: rarely a second against a dearer first
_GUIDE_BITS: Final = 12  # of the table that finds where a search begins: memory against steps
_TOP_SCALE: Final = 32  # largest scale of the top table: its length against the number of digits
_DIGIT_BITS: Final = 12  # of one digit: the length of its table against the number of words
UNSURE: Final = -1
BLOCK: Final = 1 << 14  # samples drawn at once: memory against calls
_PRECISION: Final = threading.RLock()


@cache
def available() -> bool:
    """Whether the compiled kernels can be loaded."""
    return find_spec("numba") is not None


@cache
def kernels() -> Any:
    """The module of compiled kernels."""
    return import_module(_MODULE)


@cache
def _loads() -> bool:
    """Whether loading the kernels succeeds.

    A count may be secret. If a broken installation failed only from some count on, the failure would reveal
    the count; so it does not fail, and NumPy computes the same.
    """
    try:
        kernels()
    except Exception:
        return False
    return True


def worthwhile(count: int, *, large: int) -> bool:
    """Whether compiled code pays for this count; if it has to be loaded first, for at least `large`.

    The count may be secret: it affects the time of the work, but neither its result nor the number of
    words used.
    """
    return available() and count >= (_SMALL if _MODULE in sys.modules else large) and _loads()


class WordSource(Protocol):
    """Independent uniform integers below 2^bits."""

    @property
    def bits(self) -> int:
        """Width of a word; 64 outside tests."""

    def take(self, count: int) -> UInts:
        """Exactly `count` fresh words."""

    def take_up_to(self, count: int) -> UInts:
        """`count` fresh words, or all that a finite tape has left."""

    def give_back(self, words: UInts) -> None:
        """Return the unread end of the last words taken; they are handed out next."""


class Uncopyable:
    """An object that holds noise, drawn or to be drawn, exists once: a copy would release it twice."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise EntropyError("what holds noise cannot be copied or pickled; make a new one where you need it")


class _Fresh(Uncopyable):
    """Fresh words, and words given back, which are handed out before any fresh one.

    Safe to share between threads. A forked child forgets the words of its parent and starts over.
    Copying and pickling are refused: two generators must never hand out the same words.
    """

    bits: Final = 64
    _alive: ClassVar[weakref.WeakSet[_Fresh]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._start_over()
        self._alive.add(self)

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._returned: list[UInts] = []
        self._owner = os.getpid()

    @classmethod
    def after_fork(cls) -> None:
        """In a child: no generator continues the words of its parent."""
        for words in list(cls._alive):
            words._start_over()

    def take(self, count: int) -> UInts:
        """Exactly `count` fresh words."""
        if os.getpid() != self._owner:
            self._start_over()
        with self._lock:
            return self._take(count)

    def take_up_to(self, count: int) -> UInts:
        """`count` fresh words; there are always enough."""
        return self.take(count)

    def give_back(self, words: UInts) -> None:
        """Return the unread end of the last words taken."""
        with self._lock:
            if words.size:
                self._returned.append(words)

    def _take(self, count: int) -> UInts:
        if not self._returned:
            return self._fresh(count)
        words = self._returned.pop()
        if words.size > count:
            self._returned.append(words[count:])
            return words[:count]
        return words if words.size == count else np.concatenate([words, self._take(count - words.size)])

    def _fresh(self, count: int) -> UInts:
        raise NotImplementedError


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Fresh.after_fork)


@final
class Words(_Fresh):
    """An AES-256-CTR keystream under a key from the kernel. It has no seed and repeats nowhere.

    Drop the object and its key is gone with it.
    """

    def _start_over(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        super()._start_over()
        self._stream = Cipher(algorithms.AES(entropy(32)), modes.CTR(entropy(16))).encryptor()

    def _fresh(self, count: int) -> UInts:
        words = np.zeros(count + 2, dtype=np.uint64)
        plain = bytes(count * _WORD_BYTES)
        self._stream.update_into(plain, words.data.cast("B"))
        return words[:count]


@final
class KernelWords(_Fresh):
    """Words straight from the kernel at the time of the draw.

    For pan-private state: no key in memory, so an intruder who reads the process learns
    nothing about noise that is still to be drawn.
    """

    def _fresh(self, count: int) -> UInts:
        return np.frombuffer(entropy(count * _WORD_BYTES), dtype=np.uint64).copy()


@final
class Tape:
    """Given words, replayed in order: the injected randomness of tests."""

    def __init__(self, words: ArrayLike, *, bits: int = 64) -> None:
        self.bits = bits
        self._words = np.atleast_1d(np.asarray(words, dtype=np.uint64))
        self._next = 0
        narrow = bits >= 64 or not (self._words >> np.uint64(bits)).any()
        check(narrow, "words", f"must lie below 2^{bits}", given=words, fix="narrow the words")

    @property
    def used(self) -> int:
        """How many words were taken and kept."""
        return self._next

    def take(self, count: int) -> UInts:
        if count > self._words.size - self._next:
            raise TapeExhausted("the tape has no word left; make it longer")
        return self.take_up_to(count)

    def take_up_to(self, count: int) -> UInts:
        words = self._words[self._next : self._next + count]
        self._next += words.size
        return words

    def give_back(self, words: UInts) -> None:
        self._next -= words.size


Real: TypeAlias = Callable[[], arb]
Exact: TypeAlias = Fraction | Real


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with enclosures of `bits` bits; the previous precision is restored."""
    with _PRECISION:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


def enclose(value: Fraction) -> arb:
    """An enclosure of a rational number at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def floor(value: Exact, shift: int = 0) -> int:
    """The integer part of 2^shift times `value`, certified.

    A `Real` must not be a dyadic rational: no precision could tell on which side it lies.
    Values built from exp of a nonzero rational never are (Lindemann).

    >>> floor(lambda: arb(1).exp(), 3)
    21
    """
    if isinstance(value, Fraction):
        return (value.numerator << shift) // value.denominator
    bits = shift + _GUARD_BITS
    while True:
        with precision(bits):
            found = (value() * arb(fmpz(1) << shift)).floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2


class Uniform(Uncopyable):
    """A uniform real in [0, 1) of which only the necessary digits are drawn."""

    def __init__(self, source: WordSource, first: int | None = None, *, bits: int | None = None) -> None:
        self._source = source
        self.bits = source.bits if bits is None else bits
        self.digits = int(source.take(1)[0]) if first is None else first

    def refine(self) -> None:
        """Draw one more word of digits."""
        self.digits = (self.digits << self._source.bits) | int(self._source.take(1)[0])
        self.bits += self._source.bits

    def below(self, value: Exact) -> bool:
        """Whether U < value; draws more digits only while they matter."""
        while True:
            side = _side(value, self.digits, self.bits)
            if side:
                return side > 0
            self.refine()

    def reaches(self, tail: Exact) -> bool:
        """Whether U >= 1 - tail. A tail may be tiny: 1 - U is compared with it, not U with nearly 1."""
        while True:
            side = _side(tail, (1 << self.bits) - 1 - self.digits, self.bits)
            if side:
                return side > 0
            self.refine()

    def integer_below(self, count: int) -> int:
        """floor(count U): uniform among 0, ..., count-1."""
        while True:
            low = self.digits * count >> self.bits
            if low == (self.digits * count + count - 1) >> self.bits:
                return low
            self.refine()


def _side(value: Exact, digits: int, bits: int) -> int:
    """Where a value lies: 1 at or above [digits, digits+1] / 2^bits, -1 at or below it, 0 strictly inside."""
    if isinstance(value, Fraction):
        scaled, whole = value.numerator << bits, digits * value.denominator
        return (scaled >= whole + value.denominator) - (scaled <= whole)
    working = bits + _GUARD_BITS
    while True:
        with precision(working):
            scaled_value = value() * arb(fmpz(1) << bits)
            if scaled_value >= digits + 1:
                return 1
            if scaled_value <= digits:
                return -1
            if digits < scaled_value < digits + 1:
                return 0
        working *= 2


class ThresholdTable:
    """A categorical law given by its tails, sampled by inverse CDF with certified thresholds.

    `tail(i)` is the probability of a category of at least i, positive for every category. With
    `count` the law has exactly that many categories; without, it has infinitely many, and
    thresholds are tabulated until they reach the last word.

    Category i is chosen when the uniform lies in [1 - tail(i), 1 - tail(i+1)). With thresholds
    t(i) = floor(2^bits (1 - tail(i+1))), the first word decides unless it equals a threshold; those rare
    words are refined digit by digit. Tails, not cumulative probabilities, because a tiny tail has digits
    and a probability near one has none.
    """

    def __init__(self, tail: Callable[[int], Exact], count: int | None = None, *, bits: int) -> None:
        self._tail = tail
        self._last = None if count is None else count - 1
        self.bits = bits
        self.thresholds = np.array(self._tabulate(), dtype=np.uint64)
        self.guide_shift = bits - min(bits, _GUIDE_BITS)
        starts = np.arange(1 << (bits - self.guide_shift), dtype=np.uint64) << np.uint64(self.guide_shift)
        self.guide = np.searchsorted(self.thresholds, starts, side="left")
        self._padded = np.append(self.thresholds, np.uint64(2**64 - 1))

    def draw(self, count: int, source: WordSource, *, compiled: bool = False) -> Ints:
        """`count` independent categories: one word each, then the words that doubt asks for."""
        words = source.take(count)
        return self.settle(self.look_up(words, compiled=compiled), words, source)

    def look_up(self, words: UInts, *, compiled: bool = False) -> Ints:
        """The category of each word, or -1 where the first word does not decide."""
        if compiled:
            found: Ints = kernels().look_up(words, self.thresholds, self.guide, self.guide_shift)
            return found
        categories: Ints = self.guide[words >> np.uint64(self.guide_shift)]
        behind = np.flatnonzero(self._padded[categories] < words)
        while behind.size:
            categories[behind] += 1
            behind = behind[self._padded[categories[behind]] < words[behind]]
        unsure = self._padded[categories] == words
        categories[unsure & (categories < self.thresholds.size)] = UNSURE
        return categories

    def settle(self, categories: Ints, words: UInts, source: WordSource) -> Ints:
        """Decide the categories that first words left open, in order, with further words."""
        for index in np.flatnonzero(categories == UNSURE):
            categories[index] = self.category(Uniform(source, int(words[index])))
        return categories

    def category(self, uniform: Uniform) -> int:
        """The category in which `uniform` lies, exactly."""
        first = uniform.digits >> (uniform.bits - self.bits)
        category = int(np.searchsorted(self.thresholds, np.uint64(first), side="left"))
        while category != self._last and uniform.reaches(self._tail(category + 1)):
            category += 1
        return category

    def _tabulate(self) -> list[int]:
        """The thresholds that the first word can tell from the last category."""
        if self._last is not None:
            return [self._threshold(category) for category in range(self._last)]
        thresholds = [self._threshold(0)]
        while thresholds[-1] < (1 << self.bits) - 1:
            thresholds.append(self._threshold(len(thresholds)))
        return thresholds

    def _threshold(self, category: int) -> int:
        """floor(2^bits (1 - tail)); a real tail is no multiple of 2^-bits."""
        tail = self._tail(category + 1)
        if isinstance(tail, Fraction):
            return floor(1 - tail, self.bits)
        return (1 << self.bits) - 1 - floor(tail, self.bits)


class GeometricTables:
    """Tables for one-sided and two-sided geometric noise of one scale: fixed numbers of words per sample.

    With a = exp(-1/scale): X = M or ~M (that is -1-M) by a sign bit that is Bernoulli(a/(1+a)),
    where M is Geometric(a) and independent. Large scales use a mixed radix, M = 2^shift H + L:
    H is Geometric(a^(2^shift)) and the digits of L are truncated geometric, all independent.
    The sign shares its word with H. See docs/proofs/noise.md.
    """

    def __init__(self, scale: Fraction, bits: int) -> None:
        self.rate = 1 / scale
        self.shift = _shift(scale)
        self.top = ThresholdTable(self._signed_tail, bits=bits)
        self.digits = tuple(
            (place, ThresholdTable(self._digit_tail(place, width), 1 << width, bits=bits))
            for place in range(0, self.shift, _DIGIT_BITS)
            for width in [min(_DIGIT_BITS, self.shift - place)]
        )

    @property
    def words_per_sample(self) -> int:
        """How many words each sample takes before any doubt."""
        return 1 + len(self.digits)

    def blocks(self, count: int, source: WordSource, *, compiled: bool) -> Iterator[tuple[Ints, Ints | None]]:
        """(2H + sign, L) of `count` samples, block by block; M is 2^shift H + L, and no L stands for zero.

        A block takes all its top words, then the words of each digit, then, in the same
        order, the words that doubtful samples ask for.
        """
        for start in range(0, count, BLOCK):
            yield self._block(min(BLOCK, count - start), source, compiled)

    def _block(self, count: int, source: WordSource, compiled: bool) -> tuple[Ints, Ints | None]:
        looked_up = []
        for table in (self.top, *(digit for _, digit in self.digits)):
            words = source.take(count)
            looked_up.append((table, table.look_up(words, compiled=compiled), words))
        top, *digits = (table.settle(found, words, source) for table, found, words in looked_up)
        places = (place for place, _ in self.digits)
        low = reduce(or_, map(lshift, digits, places)) if digits else None
        return top, low

    def _survival(self, steps: int) -> Real:
        """exp(-rate steps): the probability of at least `steps` failures."""
        rate = self.rate * steps
        return lambda: (-enclose(rate)).exp()

    def _signed_tail(self, category: int) -> Real:
        """Categories 2H (plus) and 2H+1 (minus); (a + a^b)/(1+a) of the tail at H is without its plus."""
        high, minus = divmod(category, 2)
        above = self._survival(high << self.shift)
        if not minus:
            return above
        unit, step = self._survival(1), self._survival(1 << self.shift)
        return lambda: above() * (unit() + step()) / (1 + unit())

    def _digit_tail(self, place: int, width: int) -> Callable[[int], Real]:
        """One digit of L: geometric with unit 2^place, truncated to 2^width values."""
        everything = self._survival(1 << (place + width))

        def tail(digit: int) -> Real:
            above = self._survival(digit << place)
            return lambda: (above() - everything()) / (1 - everything())

        return tail


@lru_cache(maxsize=256)
def tables(scale: Fraction, bits: int) -> GeometricTables:
    """The tables of a scale, made once."""
    return GeometricTables(scale, bits)


def _shift(scale: Fraction) -> int:
    """How many low bits are split off, so that the top table stays small."""
    shift = 0
    while scale > _TOP_SCALE << shift:
        shift += 1
    return shift


def assemble(top: Ints, low: Ints | None, shift: int, *, signed: bool, wide: bool) -> IntegerArray:
    """From 2H + sign and L: M = 2^shift H + L, or ~M by the sign; Python ints where M might not fit."""
    both: Any = top.astype(object) if wide or int(top.max(initial=0)) >> (62 - shift) else top
    magnitude: IntegerArray = both >> 1
    if low is not None:
        magnitude = (magnitude << shift) | low
    return magnitude ^ -(both & 1) if signed else magnitude


def chances(source: WordSource, threshold: int | UInts, count: int) -> Bools:
    """`count` comparisons, each true with probability exactly threshold / 2^bits; one word each.

    A threshold may be an array with one entry for each comparison.
    """
    words = source.take(count)
    if isinstance(threshold, int) and threshold >> source.bits:
        return np.ones(count, dtype=bool)
    return words < np.asarray(threshold, dtype=np.uint64)


def flags(source: WordSource, threshold: int, count: int) -> Bools:
    """`count` comparisons of 64 bits with a threshold below 2^64, each for little more than a byte.

    The first byte decides unless it equals the first byte of the threshold. Then the 56 lowest bits of
    one more word are compared with the rest of the threshold.
    """
    words = source.take(-(-count // _WORD_BYTES))
    first = words.view(np.uint8)[:count]
    top, rest = threshold >> 56, threshold & ((1 << 56) - 1)
    found: Bools = first < top
    open_ones = np.flatnonzero(first == top)
    more = source.take(open_ones.size) & np.uint64((1 << 56) - 1)
    found[open_ones] = more < np.uint64(rest)
    return found


def integers_below(source: WordSource, bound: int, count: int) -> Ints:
    """`count` integers, each uniform among 0, ..., bound-1, exactly.

    A word beyond the last whole multiple of the bound is drawn again. How often that happens does
    not depend on data.
    """
    inside = 1 <= bound <= 1 << min(source.bits, 63)
    check(inside, "bound", "must lie between 1 and 2^63", given=bound, fix="lower it")
    words = source.take(count)
    last = (1 << source.bits) // bound * bound - 1
    again = np.flatnonzero(words > np.uint64(last))
    if again.size:
        words = words.copy()
    while again.size:
        words[again] = source.take(again.size)
        again = again[words[again] > np.uint64(last)]
    whole = np.uint64(bound)
    return (words - words // whole * whole).astype(np.int64)
