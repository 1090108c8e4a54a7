"""Local randomizers [Dwork-Roth, Definition 12.1]: what they share, and the two simplest ones.

A randomizer is written once, in arithmetic that Python ints and NumPy arrays share: `KernelDraws` gives it
ints from the kernel, `partita.local.columns.ColumnDraws` whole arrays. This module needs the standard library
only.
"""

from __future__ import annotations

import json
import operator
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count
from math import isqrt, log
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, final

from partita.errors import check, check_arguments, check_data
from partita.numbers import freeze, integer, rational
from partita.trusted.noise import kernel

if TYPE_CHECKING:
    from partita.trusted.noise.laws import WordSource

# Probabilities in units of 2^-64, rounded to the private side by integer arithmetic.

WHOLE: Final = 1 << 64
"""The threshold of an event that is certain."""

_LEAST_EPSILON: Final = Fraction(1, 1 << 20)
_LARGEST_EPSILON: Final = 32
_FIRST_BITS: Final = 192


def check_epsilon(epsilon: object) -> Fraction:
    """epsilon as an exact number whose threshold differs from one half and from one."""
    exact = rational(epsilon, "epsilon")
    rule, fix = "must lie between 2^-20 and 32", "pass for example 1"
    check(_LEAST_EPSILON <= exact <= _LARGEST_EPSILON, "epsilon", rule, given=epsilon, fix=fix)
    return exact


def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals below and above e^x for x >= 0, about 2^-bits apart, by the exponential series.

    Every term is rounded down for the one and up for the other. The series is left where a term is at
    most half of the one before, so that what is left out is at most the last term.

    >>> low, high = exp_bounds(Fraction(1), 64)
    >>> low < high, float(low)
    (True, 2.718281828459045)
    """
    one = 1 << bits
    low = high = below = above = one
    n = 0
    while above > 1 or n < 2 * x:
        n += 1
        below = below * x.numerator // (x.denominator * n)
        above = -(-above * x.numerator // (x.denominator * n))
        low, high = low + below, high + above
    return Fraction(low, one), Fraction(high + above, one)


@lru_cache(maxsize=256)
def threshold(epsilon: Fraction, favoured: int, others: int) -> int:
    """floor(2^64 p) for p = e^epsilon f / (e^epsilon f + o), f favoured outcomes against o others.

    With a chance of at most p to be among the favoured, each of them is at most e^epsilon times as
    likely as each of the others. The bounds are narrowed until both have the same integer part, which
    comes to an end because e^epsilon is irrational.

    >>> threshold(Fraction(1), 1, 1) / WHOLE
    0.7310585786300049
    """
    bits = _FIRST_BITS
    while True:
        weights = [bound * favoured for bound in exp_bounds(epsilon, bits)]
        low, high = (int(WHOLE * weight / (weight + others)) for weight in weights)
        if low == high:
            return low
        bits *= 2


# What a randomizer may draw, for one person or for a column of them.

Numbers: TypeAlias = Any
"""An int, or an array of them with one entry for each person."""


class Draws(Protocol):
    """Independent draws, for each person anew."""

    def chance(self, threshold: Numbers) -> Numbers:
        """True with probability exactly threshold / 2^64."""

    def below(self, count: int) -> Numbers:
        """Uniform among 0, ..., count-1, exactly."""

    def row(self, threshold: int, width: int) -> Numbers:
        """`width` bits, each of them one with probability exactly threshold / 2^64."""

    def choose(self, condition: Numbers, yes: Numbers, no: Numbers) -> Numbers:
        """`yes` where the condition holds, else `no`; both were drawn either way."""

    def with_bit(self, row: Numbers, place: Numbers, bit: Numbers) -> Numbers:
        """The row with this bit at this place."""

    def ramp(self, start: int, step: int, x: Numbers) -> Numbers:
        """The threshold start + step x, which is below 2^64."""

    def each(self, part: Numbers, samplers: Sequence[Callable[[Any, Any], Any]], x: Numbers) -> Numbers:
        """For each person what the sampler of their part makes of x, with draws of their own."""


@final
class KernelDraws:
    """One person's draws: Python ints, each from `os.urandom` when it is needed.

    >>> KernelDraws().choose(True, 1, 2)
    1
    """

    def chance(self, threshold: int) -> bool:
        return kernel.below(WHOLE) < threshold

    def below(self, count: int) -> int:
        return kernel.below(count)

    def row(self, threshold: int, width: int) -> int:
        """An int of `width` bits, in linear time."""
        words = array("Q", kernel.entropy(8 * width))
        return int("".join("1" if word < threshold else "0" for word in reversed(words)), 2)

    def choose(self, condition: bool, yes: int, no: int) -> int:
        return yes if condition else no

    def with_bit(self, row: int, place: int, bit: int) -> int:
        return row & ~(1 << place) | bit << place

    def ramp(self, start: int, step: int, x: int) -> int:
        return start + step * x

    def each(self, part: int, samplers: Sequence[Callable[[Any, Any], Any]], x: int) -> int:
        made: int = samplers[part](x, self)
        return made


# A public law from cells to reports: what devices sample, and what a description names.

Json: TypeAlias = dict[str, Any]
Pmf: TypeAlias = dict[int, Fraction]

LARGEST_SIZE: Final = 1 << 22
_LARGEST_PMF: Final = 1 << 20  # reports that `pmf` lists


@dataclass(frozen=True, kw_only=True)
class LocalLaw(ABC):
    """A law from cells 0, ..., size-1 to reports 0, ..., reports-1, which is epsilon-local.

    No report is more than e^epsilon times as likely about one cell as about another
    [Dwork-Roth, Definition 12.1].
    """

    kind: ClassVar[str]
    size: int
    epsilon: Fraction

    @property
    @abstractmethod
    def reports(self) -> int:
        """How many reports there are."""

    @abstractmethod
    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A report about the cell x; or about each cell of an array, with draws for arrays."""

    @abstractmethod
    def pmf(self, x: int) -> Pmf:
        """The exact probability of every report about the cell x."""

    @abstractmethod
    def to_json(self) -> Json:
        """All that a device needs to know, and to verify."""

    @property
    def report_bytes(self) -> int:
        """How many bytes a report takes."""
        return ((self.reports - 1).bit_length() + 7) // 8

    def randomize(self, x: object, *, draws: Draws | None = None) -> int:
        """One report about the cell nearest to x, with entropy from the kernel. No value raises."""
        drawn: int = self.sample(clamped(x, self.size), KernelDraws() if draws is None else draws)
        return drawn

    def randomize_many(self, cells: object, *, words: WordSource | None = None) -> Any:
        """One report for every cell of a column."""
        from partita.local.columns import randomize_column

        return randomize_column(self, cells, words)

    def check_report(self, report: object) -> int:
        """The report, if it is one."""
        whole = isinstance(report, Integral) and not isinstance(report, bool)
        exact: int = operator.index(report) if whole else -1  # type: ignore[arg-type]
        reports = self.reports
        below = str(reports) if reports < WHOLE else f"2^{reports.bit_length() - 1}"
        check_data(0 <= exact < reports, "report", f"must be an integer below {below}", fix="drop it")
        return exact

    @cached_property
    def digest(self) -> str:
        """A name for exactly this law: SHA-256 of its description, in hex."""
        return digest_of(self.to_json())

    def _list_reports(self) -> range:
        """Every report, if there are not too many to list."""
        rule = f"must leave at most {_LARGEST_PMF} reports to list"
        check(self.reports <= _LARGEST_PMF, "size", rule, given=self.size, fix="lower it")
        return range(self.reports)


def clamped(x: object, size: int) -> int:
    """The cell of 0, ..., size-1 that is nearest to a whole number; the first one for all else."""
    if isinstance(x, Integral) or (isinstance(x, float) and x.is_integer()):
        return min(max(int(x), 0), size - 1)
    return 0


def digest_of(description: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    import hashlib

    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_prime(number: int) -> bool:
    """Whether it is a prime, by trial division: for numbers of some millions.

    >>> [number for number in range(20) if is_prime(number)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def prime_from(low: int) -> int:
    """The least prime that is not below `low`.

    >>> prime_from(1024)
    1031
    """
    return next(number for number in count(low) if is_prime(number))


@dataclass(frozen=True, kw_only=True)
class Randomizer(LocalLaw):
    """A public law from cells 0, ..., size-1 to reports 0, ..., reports-1.

    A cell favours some reports. With probability exactly threshold / 2^64 the report is uniform among those,
    else uniform among the others. The threshold is the largest private one unless another is given, which is
    refused if it would lose more than epsilon: to read a description of a randomizer is to verify its
    epsilon. Zero stands for a threshold that is not given.
    """

    threshold: int = 0

    def __post_init__(self) -> None:
        size = integer(self.size, "size", low=2, high=LARGEST_SIZE)
        freeze(self, size=size, epsilon=check_epsilon(self.epsilon))
        self._choose_geometry()
        freeze(self, threshold=self._verify_threshold(self.threshold or self.private_threshold))

    @property
    def odds(self) -> tuple[int, int]:
        """How many outcomes of the branch a cell favours, and how many it does not: one of two."""
        return 1, 1

    @property
    def private_threshold(self) -> int:
        """The largest threshold that keeps epsilon, by integer arithmetic."""
        return threshold(self.epsilon, *self.odds)

    @property
    def chance(self) -> Fraction:
        """The probability of the favoured branch, exactly."""
        return Fraction(self.threshold, WHOLE)

    def to_json(self) -> Json:
        """All that a device needs to know, and to verify."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **values, "epsilon": str(self.epsilon), "threshold": str(self.threshold)}

    def _choose_geometry(self) -> None:
        """Choose or check the parameters of the kind beside size and epsilon; most have none."""
        return

    def _verify_threshold(self, given: int) -> int:
        """A threshold with which favoured outcomes are likelier, but at most e^epsilon times so."""
        favoured, others = self.odds
        least, most = WHOLE * favoured // (favoured + others) + 1, self.private_threshold
        rule, fix = f"must lie between {least} and {most} for epsilon {self.epsilon}", "leave it out"
        check(least <= integer(given, "threshold") <= most, "threshold", rule, given=given, fix=fix)
        return int(given)

    def _branches(self) -> tuple[Fraction, Fraction]:
        """The probability of each favoured outcome, and of each other one."""
        favoured, others = self.odds
        return self.chance / favoured, (1 - self.chance) / others


@dataclass(frozen=True, kw_only=True)
class FrequencyRandomizer(Randomizer):
    """A randomizer whose reports support cells, with two probabilities that are known exactly.

    A report supports the cell it was made of with probability `hit`, and any other cell with
    probability `miss`. So the number of supporters of a cell, less n miss, over hit - miss, is an
    unbiased estimate of how many people hold it.
    """

    @property
    def hit(self) -> Fraction:
        """The probability that a report supports its own cell: that of the favoured branch, in most kinds."""
        return self.chance

    @property
    @abstractmethod
    def miss(self) -> Fraction:
        """The probability that a report supports a given other cell."""

    @property
    def forged_report_shift(self) -> Fraction:
        """How many people one forged report adds to the estimated count of a cell, or takes from it, at most.

        The estimated count of n reports is (supporters - n miss) / (hit - miss): a report that supports the
        cell adds (1 - miss) / (hit - miss), any other takes miss / (hit - miss). m forged reports move it by
        at most m times as much. An honest one moves it by at most 1, on average.
        """
        return max(1 - self.miss, self.miss) / (self.hit - self.miss)

    @property
    @abstractmethod
    def forged_report_cells(self) -> int:
        """How many cells one report that is accepted can support at once, at most."""

    def variance(self, frequency: float = 0.0) -> float:
        """n times the variance of an estimated frequency, where the true one is as given."""
        return float(self.exact_variance(Fraction(frequency)))

    def exact_variance(self, frequency: Fraction) -> Fraction:
        """The same, as a ratio of integers."""
        hit, miss = self.hit, self.miss
        spread = frequency * hit * (1 - hit) + (1 - frequency) * miss * (1 - miss)
        return spread / (hit - miss) ** 2


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(FrequencyRandomizer):
    """Say the true cell with probability e^epsilon / (e^epsilon + size - 1), else another one.

    With two cells this is Warner's randomized response [War65; Dwork-Roth, section 3.2].

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance (size - 2 + e^epsilon) / (e^epsilon - 1)^2 of a frequency near 0.
    Proof:     docs/proofs/local_randomizers.md

    >>> float(RandomizedResponse(size=2, epsilon=Fraction(1)).hit)
    0.7310585786300049
    """

    kind: ClassVar[str] = "response"

    @property
    def odds(self) -> tuple[int, int]:
        """The true cell against all others."""
        return 1, self.size - 1

    @property
    def reports(self) -> int:
        """A report is a cell."""
        return self.size

    @property
    def miss(self) -> Fraction:
        """One of the others is told, and it is this one."""
        return (1 - self.chance) / (self.size - 1)

    @property
    def forged_report_cells(self) -> int:
        """A report supports the cell that it names."""
        return 1

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """The true cell, or the others counted without it."""
        truth = draws.chance(self.threshold)
        other = draws.below(self.size - 1)
        return draws.choose(truth, x, other + (other >= x))

    def pmf(self, x: int) -> Pmf:
        """One probability for the true cell and one for each other."""
        true, other = self._branches()
        return {report: true if report == x else other for report in self._list_reports()}


# Optimized unary encoding: one bit for every cell.

# A device draws a word for each bit, and sends them all: a hostile question must not keep it busy.
_LARGEST_SIZE: Final = 1 << 16

_REFUSED: Final = 65 * log(2)
"""An honest report is refused with probability at most 2 exp(-this) = 2^-64."""


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(FrequencyRandomizer):
    """A fair coin in place of the bit of the true cell; every other bit is one with a small chance [WBLJ17].

    A baseline: its reports have `size` bits, at most 65,536. They are ints whose bit i speaks of cell i; a
    column of them is a matrix of bytes. Aggregators refuse reports with a number of ones that no honest
    device sends (`likely_ones`).

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance 4 e^epsilon / (e^epsilon - 1)^2 of a frequency near 0.
    Proof:     docs/proofs/local_randomizers.md

    >>> float(UnaryEncoding(size=8, epsilon=Fraction(1)).miss)
    0.2689414213699951
    """

    kind: ClassVar[str] = "unary"

    def _choose_geometry(self) -> None:
        integer(self.size, "size", low=2, high=_LARGEST_SIZE)

    @property
    def reports(self) -> int:
        """Any row of bits."""
        return 1 << self.size

    @property
    def hit(self) -> Fraction:
        """The coin."""
        return Fraction(1, 2)

    @property
    def miss(self) -> Fraction:
        """A zero bit that became one."""
        return 1 - self.chance

    @property
    def forged_report_cells(self) -> int:
        """As many as a report may have ones."""
        return self.likely_ones[1]

    @cached_property
    def likely_ones(self) -> tuple[int, int]:
        """How many ones a report has, at least and at most: reports with fewer or more are refused.

        An honest report falls outside with probability at most 2^-64. Its bits are D independent trials with
        mean chance p = (hit + (D - 1) miss) / D, so a share s of ones on either side of p or beyond has
        probability at most exp(-D KL(s, p)) [Hoeffding 1963, Theorem 1]; each side has 2^-65.
        """
        mean = float(self.hit + (self.size - 1) * self.miss) / self.size
        likely = [ones for ones in range(self.size + 1) if self._exponent(ones, mean) <= _REFUSED]
        return likely[0], likely[-1]

    def _exponent(self, ones: int, mean: float) -> float:
        """D KL(ones / D, mean)."""
        parts = ((ones, mean), (self.size - ones, 1 - mean))
        return sum(count * log(count / self.size / chance) for count, chance in parts if count)

    def check_report(self, report: object) -> int:
        """The report, if it is one that an honest device could have sent."""
        exact, (least, most) = super().check_report(report), self.likely_ones
        rule = f"must have {least} to {most} ones"
        check_data(least <= exact.bit_count() <= most, "report", rule, fix="drop it")
        return exact

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A row of rare ones, with a fair coin at the place of the cell."""
        row = draws.row(WHOLE - self.threshold, self.size)
        return draws.with_bit(row, x, draws.below(2))

    def pmf(self, x: int) -> Pmf:
        """The coin, times the chances of all other bits; only how many of those are ones matters."""
        zero, one, others = self.chance, 1 - self.chance, self.size - 1
        chances = [one**ones * zero ** (others - ones) / 2 for ones in range(self.size)]
        return {report: chances[(report & ~(1 << x)).bit_count()] for report in self._list_reports()}
