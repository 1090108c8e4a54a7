"""What releases along one axis share: the interface, sums of noisy counts, parts in files, special cells."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Bools, Floats, Ints, UInts, integer_array
from partita.domain.base import Domain, Encoded, Position, Special
from partita.domain.calendar import locate_period
from partita.domain.category import Category
from partita.domain.numeric import Real
from partita.domain.time import Date, Timestamp
from partita.errors import InvalidData, InvalidParameter, check
from partita.guarantee import Guarantee, rows_changed, squares_changed
from partita.lazy import cached_property
from partita.numbers import check_cell_range, rational
from partita.public.axis.curve import Curve
from partita.public.base import (
    LARGEST_NUMBER,
    ReleaseKind,
    checkpoint,
    damaged,
    noise_scale,
    noise_variance_parameter,
    noisy_integers,
    shorten,
)
from partita.public.bounds import (
    Gaussian,
    NoiseLaw,
    Run,
    gaussian_reach,
    noise_variance,
    overlay_runs,
    repeated_reach,
)
from partita.public.conditions import AllOf, Closed, Not, OneOf, Range

Json: TypeAlias = bool | int | str | list["Json"] | dict[str, "Json"] | None


class Term(NamedTuple):
    """The cells low, ..., high, added (+1) or taken away (-1)."""

    low: int
    high: int
    sign: int = 1


class Parts(NamedTuple):
    """A release taken apart for a file: a few public facts, and flat arrays of integers by name.

    Facts hold no floats: rationals are text like "1/3". Arrays are int64, uint64, or Python ints
    (dtype object) where a noisy value does not fit.
    """

    facts: Mapping[str, Json]
    series: Mapping[str, NDArray[Any]]

    def with_flag(self, name: str, raised: bool) -> Parts:
        """The same with a fact that is true, or without it."""
        return Parts({**self.facts, name: True}, self.series) if raised else self

    def split_flag(self, name: str) -> tuple[Parts, bool]:
        """The parts that `with_flag` was given, and whether the fact is there: it is never false."""
        if name not in self.facts:
            return self, False
        if self.facts[name] is not True:
            raise damaged(name, "must be true, or left out")
        return Parts({key: fact for key, fact in self.facts.items() if key != name}, self.series), True

    @property
    def digest(self) -> bytes:
        """A name for exactly what was released."""
        seen = hashlib.sha256(repr(sorted(self.facts.items())).encode())
        for name, values in sorted(self.series.items()):
            seen.update(f"{name} {values.size} ".encode())
            seen.update(repr(values.tolist()).encode() if values.dtype == object else values.tobytes())
        return seen.digest()


class AxisRelease(ReleaseKind, ABC):
    """Released counts over the cells 0, ..., size-1 of one axis.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    size: int
    guarantee: Guarantee | None

    @property
    @abstractmethod
    def curve(self) -> Curve:
        """Cumulative counts: monotone, never negative."""

    @abstractmethod
    def answer(self, *terms: Term) -> Answer:
        """The signed sum of the terms as one linear question, with the standard error of exactly that."""

    @abstractmethod
    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The values that `answer` gives for many ranges low..high (both included, low <= high)."""

    @abstractmethod
    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard errors that `answer` gives for many ranges."""

    @abstractmethod
    def error(self, beta: float) -> float:
        """With probability 1 - beta no range at all misses the truth by more, whatever the data."""

    @property
    def story(self) -> str:
        """A sentence about what was chosen on the way, from released numbers; empty where nothing was."""
        return ""

    @abstractmethod
    def parts(self) -> Parts:
        """Everything that was released, taken apart for a file."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else raises `InvalidRelease`."""

    def count(self, low: int, high: int) -> Answer:
        """How many lie in the cells low, ..., high."""
        return self.answer(Term(low, high))

    def _check_terms(self, terms: Iterable[Term]) -> list[Term]:
        """The terms, if they are ranges of cells of this axis with a sign."""
        found = []
        for low, high, sign in terms:
            check(sign in (1, -1), "sign", "must be 1 or -1", given=sign, fix="add a range or take it away")
            found.append(Term(*check_cell_range(low, high, first=0, last=self.size - 1), sign))
        return found

    def _check_ranges(self, lows: ArrayLike, highs: ArrayLike) -> tuple[UInts, UInts]:
        """Bounds of many ranges of cells of this axis, as arrays of one shape."""
        low, high = integer_array(lows, "lows"), integer_array(highs, "highs")
        fix = "pass pairs of bounds"
        check(low.shape == high.shape, "highs", "must be as many as lows", given=high.size, fix=fix)
        inside = not low.size or (int(low.min()) >= 0 and int(high.max()) < self.size)
        rule = f"must be cells from 0 on and at most highs, below {self.size}"
        check(inside and not bool((low > high).any()), "lows", rule, given=low, fix="clip them")
        return low.astype(np.uint64), high.astype(np.uint64)


# Sums of released integers, each with noise of its own: value, standard error, guaranteed reach.

_FITS_INT64: Final = 2**62
"""Sums below this are taken in int64."""


@final
@dataclass(frozen=True, eq=False)
class NoisyRow:
    """Released integers in a row, each with noise of one law, and the sums of runs of them."""

    values: NDArray[Any]
    law: NoiseLaw

    @cached_property
    def variance(self) -> float:
        """The variance of each."""
        return noise_variance(self.law)

    @cached_property
    def running(self) -> NDArray[Any]:
        """Sums of the first 0, 1, 2, ... integers: exact, of Python ints where int64 might not do."""
        largest = max(int(self.values.max(initial=0)), -int(self.values.min(initial=0)))
        fits = largest * self.values.size < _FITS_INT64
        running = np.zeros(self.values.size + 1, np.int64 if fits else object)
        np.cumsum(self.values.astype(running.dtype, copy=False), out=running[1:])
        return running

    def reach(self, number: int, beta: float) -> float:
        """The sum of so many of these noises leaves [-t, t] with probability at most beta."""
        return NoisySum(0, {(1, self.law): number}).reach(beta)

    def sums(self, firsts: NDArray[Any], stops: NDArray[Any]) -> Floats:
        """The sum of each run first, ..., stop-1."""
        return np.asarray((self.running[stops] - self.running[firsts]).astype(np.float64))

    def sum(self, first: int, stop: int) -> int:
        """The sum of first, ..., stop-1, exactly."""
        return int(self.running[stop]) - int(self.running[first])


@final
@dataclass(frozen=True, eq=False)
class NoisySum:
    """A linear combination of released integers.

    `noises` says how many of them there are for each factor (without its sign: noise is symmetric)
    and law.
    """

    value: int
    noises: Mapping[tuple[int, NoiseLaw], int]

    @staticmethod
    def of(parts: Iterable[tuple[NoisyRow, Iterable[Run]]]) -> NoisySum:
        """The signed sum of runs. An integer that is taken as often as it is added is not in it."""
        value, noises = 0, Counter[tuple[int, NoiseLaw]]()
        for line, runs in parts:
            for first, stop, factor in overlay_runs(runs):
                value += factor * line.sum(first, stop)
                noises[abs(factor), line.law] += stop - first
        return NoisySum(value, noises)

    @property
    def error(self) -> float:
        """The standard error."""
        noises = self.noises.items()
        return math.sqrt(sum(n * factor**2 * noise_variance(law) for (factor, law), n in noises))

    def reach(self, beta: float) -> float:
        """t such that the noise exceeds t with probability at most beta/2, and so undercuts -t."""
        normal = {(f, law): n for (f, law), n in self.noises.items() if isinstance(law, Gaussian)}
        others = [(f, law, n) for (f, law), n in self.noises.items() if not isinstance(law, Gaussian)]
        parts = bool(normal) + bool(others)
        reach = gaussian_reach(normal, beta / (2 * parts)) if normal else 0.0
        if not others:
            return reach
        factors = np.array([float(factor) for factor, _, _ in others])
        rates = np.array([float(1 / scale) for _, scale, _ in others])
        numbers = np.array([float(number) for _, _, number in others])
        return reach + repeated_reach(factors, rates, numbers, beta / (2 * parts))

    def bounds(self, beta: float) -> tuple[float, float]:
        """The value without its noise lies between these, except with probability beta."""
        reach = self.reach(beta)
        return self.value - reach, self.value + reach

    def answer(self, least: float) -> Answer:
        """The sum as an answer; the truth is known to be at least `least`."""
        return Answer(float(self.value), lambda: self.error, self.bounds, least)


Value = TypeVar("Value")


@final
@dataclass(frozen=True)
class PartsReader:
    """Reads the parts of a release that may come from anybody: each part is checked, nothing is guessed.

    A part that is not as it must be raises `InvalidRelease`.
    """

    parts: Parts

    def expect(self, *, facts: Iterable[str], series: Iterable[str]) -> None:
        """Refuse a release that lacks a part or has one too many."""
        if set(self.parts.facts) != set(facts) or set(self.parts.series) != set(series):
            raise damaged("parts", "must be those of its kind, no more and no less")

    def optional(self, name: str, read: Callable[[str], Value]) -> Value | None:
        """None if the fact is null, else what `read` makes of it."""
        return None if self.parts.facts.get(name) is None else read(name)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.parts.facts.get(name)
        if not isinstance(value, bool):
            raise damaged(name, "must be true or false")
        return value

    def integer(self, name: str, *, low: int, high: int) -> int:
        """A whole number between low and high, both included."""
        value = self.parts.facts.get(name)
        if type(value) is not int or not low <= value <= high:
            raise damaged(name, f"must be a whole number from {low} to {high}")
        return value

    def rational(self, name: str) -> Fraction:
        """An exact number."""
        return _rational(self.parts.facts.get(name), name)

    def rationals(self, name: str, *, most: int) -> tuple[Fraction, ...]:
        """A list of exact numbers, at least one and at most so many."""
        values = self.parts.facts.get(name)
        if not isinstance(values, list) or not 1 <= len(values) <= most:
            raise damaged(name, f"must be a list of 1 to {most} numbers")
        return tuple(_rational(value, name) for value in values)

    def scale(self, name: str) -> Fraction:
        """A noise scale."""
        return noise_scale(self.rational(name), name)

    def variance(self, name: str) -> Fraction:
        """A variance of Gaussian noise."""
        return noise_variance_parameter(self.rational(name), name)

    def scales(self, name: str, *, most: int) -> tuple[Fraction, ...]:
        """A list of noise scales, at least one and at most so many."""
        return tuple(noise_scale(scale, name) for scale in self.rationals(name, most=most))

    def row(self, name: str, *dtypes: DTypeLike) -> NDArray[Any]:
        """A flat array of one of these types."""
        values = self.parts.series.get(name)
        if type(values) is not np.ndarray or values.ndim != 1 or values.dtype not in dtypes:
            raise damaged(name, "must be a row of integers of its type")
        return values

    def noisy(self, name: str, *, count: int | None = None) -> NDArray[Any]:
        """Noisy integers; `count` of them, if that is known."""
        values = noisy_integers(self.row(name, np.int64, object), name)
        if count not in (None, values.size):
            raise damaged(name, f"must hold {count} integers")
        return values

    def edges(self, name: str, *, size: int) -> UInts:
        """Cells in increasing order, the last of which is size-1."""
        cells = self.row(name, np.uint64)
        if not cells.size or bool((cells[1:] <= cells[:-1]).any()) or int(cells[-1]) != size - 1:
            raise damaged(name, "must be increasing cells up to the last one")
        return cells


def _rational(value: Json, name: str) -> Fraction:
    try:
        return rational(value if isinstance(value, str) else None, name)
    except InvalidParameter:
        raise damaged(name, 'must be a number as text like "1/3"') from None


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Specials:
    """The special cells of a column: noisy counts of below, above, invalid, null or other, of one law.

    `rest` has rows that belong to a cell but were counted elsewhere, with noise of their own.
    """

    counts: Mapping[str, int]
    scale: NoiseLaw
    rest: Mapping[str, Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(type(count) is int and abs(count) <= LARGEST_NUMBER for count in self.counts.values()):
            raise damaged("special cells", "must hold integer counts")
        if isinstance(self.scale, Gaussian):
            noise_variance_parameter(self.scale.variance, "variance of the special cells")
        else:
            noise_scale(self.scale, "scale of the special cells")

    def answer(self, *names: str) -> Answer:
        """How many rows are in these special cells together."""
        return self.sum(dict.fromkeys(names, 1))

    def sum(self, signs: Mapping[str, int]) -> Answer:
        """The special cells of these names, each added (+1) or taken away (-1).

        The value of a cell is its noisy count, or 0 if that is negative; a guaranteed bound is that of
        the sum of the noisy counts as they were drawn.
        """
        used = {name: sign for name, sign in signs.items() if sign}
        beside = [(self.rest[name], sign) for name, sign in used.items() if name in self.rest]
        drawn = sum(sign * self.counts[name] for name, sign in used.items())
        value = sum(sign * self.value(name) for name, sign in used.items())
        least = least_sum(used.values())

        def bounds(beta: float) -> tuple[float, float]:
            share = beta / (1 + len(beside))
            reach, low, high = self._reach(len(used), share), float(drawn), float(drawn)
            for rest, sign in beside:
                ends = sorted(sign * end for end in rest.bounds(share))
                low, high = low + ends[0], high + ends[1]
            return max(least, low - reach), max(least, high + reach)

        def error() -> float:
            return math.hypot(math.sqrt(len(used)) * self.deviation, *(rest.error for rest, _ in beside))

        return Answer(float(value), error, bounds, least)

    def value(self, name: str) -> float:
        """The count of one special cell: as drawn, but never negative; none if there is no such cell."""
        rest = self.rest[name].value if name in self.rest else 0
        return float(max(0, self.counts.get(name, 0) + rest))

    @property
    def deviation(self) -> float:
        """The standard error of one special cell."""
        return math.sqrt(noise_variance(self.scale))

    def keep(self, promise: Guarantee) -> bool:
        """Whether they have the noise that a guarantee asks for: Laplace noise by epsilon, else by rho."""
        if not self.counts:
            return True
        if isinstance(self.scale, Gaussian):
            squares = squares_changed(promise.neighbors, promise.contributions)
            return 2 * promise.rho * self.scale.variance >= squares
        return self.scale * promise.epsilon >= rows_changed(promise.neighbors, promise.contributions)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no sum of some of the cells misses the truth by more.

        For k cells there are 2^k - 1 such sums, and each takes that share of beta. Raising a negative
        count to 0 never takes a sum beyond the bound: an error that shrinks keeps its sign, and the
        errors of one sign belong to a sum of their own.
        """
        cells, share = len(self.counts), beta / (1 + len(self.rest))
        reach = self._reach(cells, share / max(1, 2**cells - 1))
        for each in self.rest.values():
            low, high = each.bounds(share)
            reach += max(each.value - low, high - each.value)
        return reach

    def _reach(self, cells: int, beta: float) -> float:
        """The noises of so many cells add up to more than that, either way, with probability at most beta."""
        return NoisySum(0, {(1, self.scale): cells} if cells else {}).reach(beta)


@final
@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """A hierarchy over the cells 0, ..., size-1, leaves first: level l has nodes of branching^l cells.

    It finds the fewest nodes that make up an interval [SU, Claim 2.3]. The last level need not be the root;
    intervals that are wider than its nodes take several of them.

    >>> Hierarchy.of(size=10, branching=3).nodes, Hierarchy.of(size=10, branching=3, root=False).nodes
    ((10, 4, 2, 1), (10, 4, 2))
    """

    size: int
    branching: int
    levels: int

    @staticmethod
    def of(*, size: int, branching: int, root: bool = True) -> Hierarchy:
        """The tree up to its root, or to the level below; a single cell is its own root and stays."""
        levels, width = 1, 1
        while width < size:
            levels, width = levels + 1, width * branching
        return Hierarchy(size=size, branching=branching, levels=max(1, levels if root else levels - 1))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Cells per node on each level."""
        return tuple(self.branching**level for level in range(self.levels))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Nodes on each level."""
        return tuple(-(-self.size // width) for width in self.widths)

    @cached_property
    def most(self) -> tuple[int, ...]:
        """No cover has more nodes than this on a level: two runs of siblings, or a run of the last level."""
        *lower, top = self.nodes
        return (*(min(nodes, 2 * (self.branching - 1)) for nodes in lower), top)

    def runs(self, lows: Ints, highs: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """The covers of many intervals at once: (level, first nodes, nodes behind the last), two per level.

        A run may be empty. From each level an interval takes what does not fill a node above.
        """
        low, behind = lows, highs + 1
        for level, nodes in enumerate(self.nodes):
            up, down = -(-low // self.branching), behind // self.branching
            down = np.where(behind == nodes, -(-behind // self.branching), down)
            done = (up >= down) | (level == self.levels - 1)
            yield level, low, np.where(done, behind, up * self.branching)
            yield level, np.where(done, behind, np.minimum(down * self.branching, behind)), behind
            low, behind = np.where(done, 0, up), np.where(done, 0, down)

    def cover(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Disjoint nodes that make up low..high: (level, first node, node behind the last)."""
        for level, first, behind in self.runs(np.array([low]), np.array([high])):
            if first[0] < behind[0]:
                yield level, int(first[0]), int(behind[0])

    def numbers(self, lows: Ints, highs: Ints) -> list[Ints]:
        """How many nodes of each level are in the cover of each interval."""
        found = [np.zeros_like(lows) for _ in self.nodes]
        for level, first, behind in self.runs(lows, highs):
            found[level] += behind - first
        return found


# One condition as cells.

_FORMS: Final = "pass (low, high) with None for an open end, one value, a set of values, or a special cell"
_WITHOUT_VALUE: Final = ("null", "invalid")
"""Special cells without a known value: as in SQL, these meet neither a condition nor its opposite."""


@final
@dataclass(frozen=True)
class CellSet:
    """Cells of one column: ranges of its axis that do not overlap, and special cells beside it."""

    terms: tuple[Term, ...] = ()
    specials: tuple[str, ...] = ()


def find_cells(domain: Domain, condition: object, *, name: str) -> CellSet:
    """The cells of the column `name` that meet a condition.

    >>> from partita.domain import Integer
    >>> find_cells(Integer(0, 120), Range(18, None), name="age")
    CellSet(terms=(Term(low=18, high=120, sign=1),), specials=('above',))
    """
    match condition:
        case CellSet():
            return condition
        case Range():
            return _find_range(domain, condition, name)
        case OneOf(values) | list(values):
            return _unite(domain, (find_cells(domain, each, name=name) for each in values))
        case AllOf(conditions):
            return intersect(domain, [find_cells(domain, each, name=name) for each in conditions])
        case Not(opposite):
            return _find_others(domain, opposite, name)
        case Special():
            return _find_special(domain, condition, name)
        case tuple():
            given = f"a tuple of {len(condition)}"
            raise InvalidParameter(name, "must have a low and a high end", given=given, fix=_FORMS)
        case None:
            raise InvalidParameter(name, "must say which values", given=condition, fix=_FORMS)
    return _find_value(domain, condition, name)


def _find_others(domain: Domain, condition: object, name: str) -> CellSet:
    """The cells of values that do not meet a condition, as in SQL: of what has no value neither do."""
    match condition:
        case Not(opposite):
            return find_cells(domain, opposite, name=name)
        case OneOf(conditions) | list(conditions):
            others = [_find_others(domain, each, name) for each in conditions]
            return intersect(domain, others) if others else complement(domain, CellSet())
        case AllOf(conditions):
            return _unite(domain, (_find_others(domain, each, name) for each in conditions))
    found = complement(domain, find_cells(domain, condition, name=name))
    if isinstance(condition, Special):
        return found
    return CellSet(found.terms, tuple(each for each in found.specials if each not in _WITHOUT_VALUE))


def complement(domain: Domain, cells: CellSet) -> CellSet:
    """All other cells of a column, special ones too."""
    terms, start = [], 0
    for low, high, _ in cells.terms:
        if start < low:
            terms.append(Term(start, low - 1))
        start = high + 1
    if start < domain.size:
        terms.append(Term(start, domain.size - 1))
    return CellSet(tuple(terms), tuple(each for each in domain.specials if each not in cells.specials))


def intersect(domain: Domain, found: Sequence[CellSet]) -> CellSet:
    """The cells that all of these have."""
    return complement(domain, _unite(domain, (complement(domain, each) for each in found)))


def _unite(domain: Domain, found: Iterable[CellSet]) -> CellSet:
    """The cells that any of these has: runs that touch become one."""
    runs, specials = list[Term](), dict[str, None]()
    for each in found:
        runs += each.terms
        specials |= dict.fromkeys(each.specials)
    terms: list[Term] = []
    for low, high, _ in sorted(runs):
        if terms and low <= terms[-1].high + 1:
            terms[-1] = Term(terms[-1].low, max(terms[-1].high, high))
        else:
            terms.append(Term(low, high))
    return CellSet(tuple(terms), tuple(specials))


def _find_range(domain: Domain, wanted: Range, name: str) -> CellSet:
    low = _locate_end(domain, wanted.low, f"low of {name}")
    high = _locate_end(domain, wanted.high, f"high of {name}")
    found = _span_cells(domain, low, high, wanted.closed, name, f"{wanted.low} to {wanted.high}")
    terms = () if found.empty[0] else (Term(int(found.lows[0]), int(found.highs[0])),)
    ends = (("below", found.below[0]), ("above", found.above[0]))
    return CellSet(terms, tuple(cell for cell, is_open in ends if is_open and cell in domain.specials))


class EndCells(NamedTuple):
    """Many ends of ranges: the first and the last cell that each means; they differ for periods of time."""

    first: Encoded
    last: Encoded

    def __len__(self) -> int:
        return len(self.first)


def _locate_end(domain: Domain, value: object, name: str) -> EndCells:
    """One end of a range, called `name`, as a column of one row; NULL for an open end."""
    if isinstance(value, Special):
        fix = "pass None for an open end, or ask for it alone"
        raise InvalidParameter(name, "must not be a special cell", given=str(value), fix=fix)
    open_end = Position(0, Special.NULL)
    return _make_ends([(open_end, open_end) if value is None else locate_value(domain, value, name=name)])


def _make_ends(found: Sequence[tuple[Position, Position]]) -> EndCells:
    first, last = (
        Encoded(
            np.array([each[side].cell for each in found], np.uint64),
            np.array([each[side].special for each in found], np.uint8),
        )
        for side in (0, 1)
    )
    return EndCells(first, last)


def locate_value(domain: Domain, value: object, *, name: str) -> tuple[Position, Position]:
    """The first and the last cell that a public value means; one that lies between two cells is refused.

    They differ for a period such as a month, for a day that is given for a timestamp, and for a node above
    labels.
    """
    if isinstance(domain, Date | Timestamp):
        return locate_period(domain, value, name=name)
    if isinstance(domain, Category):
        first, last = domain.locate_all(value, name=name)
        return Position(first), Position(last)
    place = (domain.locate_exactly if isinstance(domain, Real) else domain.locate)(value, name=name)
    return place, place


def _find_special(domain: Domain, special: Special, name: str) -> CellSet:
    rule = f"must ask for a special cell that {type(domain).__name__} columns have"
    fix = f"choose among {', '.join(domain.specials)}"
    check(str(special) in domain.specials, name, rule, given=str(special), fix=fix)
    return CellSet((), (str(special),))


def _find_value(domain: Domain, value: object, name: str) -> CellSet:
    """One value, which lies within the declared bounds; of a period what lies within them."""
    first, last = locate_value(domain, value, name=name)
    there = Special.ORDINARY in (first.special, last.special) or first.special is not last.special
    _check_within(domain, there, name, value)
    low = first.cell if first.special is Special.ORDINARY else 0
    return CellSet((Term(low, last.cell if last.special is Special.ORDINARY else domain.size - 1),))


def _check_within(domain: Domain, holds: object, name: str, given: object) -> None:
    """Raise unless single values lie within the declared bounds: beyond them nothing tells values apart."""
    if not holds:
        rule = f"must lie within the declared bounds, as the column is {shorten(repr(domain), 100)}"
        fix = "ask for the special cell below or above, or for a range with an open end"
        raise InvalidParameter(name, rule, given=given, fix=fix)


# Many ranges at once, from arrays of bounds.


@final
@dataclass(frozen=True, eq=False)
class CellRanges:
    """The cells lows, ..., highs of an axis, unless `empty`; `below`, `above`: which ends are open.

    Where a span is empty, its cells are 0..0 and mean nothing.
    """

    lows: UInts
    highs: UInts
    empty: Bools
    below: Bools
    above: Bools

    def __len__(self) -> int:
        return len(self.lows)


def find_ranges(domain: Domain, condition: object, *, name: str) -> CellRanges:
    """The cells of many ranges of the column `name`: a range of arrays, or an array of single values.

    An end that is None, or missing in its array, is open; one end for all is repeated.

    >>> from partita.domain import Integer
    >>> find_ranges(Integer(0, 120), Range([0, 18], [17, None]), name="age").highs.tolist()
    [17, 120]
    """
    if isinstance(condition, tuple):
        given, fix = f"a tuple of {len(condition)}", "pass (lows, highs), None for an open end"
        raise InvalidParameter(name, "must be arrays of lows and of highs", given=given, fix=fix)
    if not isinstance(condition, Range):
        found = encode_values(domain, condition, name=name)
        inside = (found.first.special == Special.ORDINARY) | (found.last.special == Special.ORDINARY)
        _check_within(domain, (inside | (found.first.special != found.last.special)).all(), name, condition)
        return _span_cells(domain, found, found, "both", name, condition)
    low = _encode_ends(domain, condition.low, f"low of {name}")
    high = _encode_ends(domain, condition.high, f"high of {name}")
    length = len(low) if len(high) == 1 else len(high)
    low, high = _repeat(low, length, name), _repeat(high, length, name)
    return _span_cells(domain, low, high, condition.closed, name, "a low above its high")


def encode_values(domain: Domain, values: object, *, name: str) -> EndCells:
    """Where each of many public values lies; none may be missing."""
    found = _encode_ends(domain, values, name)
    complete = bool((found.first.special != Special.NULL).all())
    check(complete, name, "must not miss a value", given=values, fix="drop what is missing")
    return found


def is_single(value: object) -> bool:
    """Whether this is one value and no column of values."""
    return isinstance(value, str | bytes) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def _encode_ends(domain: Domain, values: object, name: str) -> EndCells:
    if is_single(values):
        return _locate_end(domain, values, name)
    between = np.zeros(1, np.bool_)
    try:
        if isinstance(domain, Real):
            encoded, between = domain.encode_exactly(values)
        else:
            encoded = domain.encode(values)
    except InvalidData:
        fix = "pass a flat array or a list"
        raise InvalidParameter(name, "must be one column of values", given=values, fix=fix) from None
    if isinstance(domain, Date | Timestamp) or (isinstance(domain, Category) and domain.nodes):
        return _locate_each(domain, values, name)
    unreadable = (encoded.special == Special.INVALID) | (encoded.special == Special.OTHER)
    _refuse_first(domain, values, np.flatnonzero(unreadable | between), name)
    if bool(unreadable.any()) or _has_no_bounds(values):
        rule = f"must hold values that a column {shorten(repr(domain), 60)} can have"
        fix = "pass values as the column has them, None for an open end"
        raise InvalidParameter(name, rule, given=values, fix=fix)
    rule, fix = f"must hold multiples of the step, as the column is {domain!r}", "round them first"
    check(not between.any(), name, rule, given=values, fix=fix)
    return EndCells(encoded, encoded)


def _refuse_first(domain: Domain, values: Any, rows: Ints, name: str) -> None:
    """Refuse the first of these numbers or labels as it would be refused alone, with those beside it."""
    if rows.size:
        found = values[int(rows[0])]
        value = found.as_py() if hasattr(found, "as_py") else found
        value = value.item() if isinstance(value, np.generic) else value
        exact = not isinstance(value, Special) and isinstance(value, int | float | Decimal | Fraction)
        if isinstance(value, str) or (exact and math.isfinite(value)):
            locate_value(domain, value, name=name)


def _locate_each(domain: Domain, values: Any, name: str) -> EndCells:
    """Ends that may be periods or nodes, each distinct one located by itself; what is missing is open."""
    listed = _list_times(values)
    distinct: dict[object, int] = {}
    codes = [distinct.setdefault(_plain_end(each, name), len(distinct)) for each in listed]
    missing, found = Position(0, Special.NULL), []
    for each in distinct:
        checkpoint()
        found.append((missing, missing) if each is None else locate_value(domain, each, name=name))
    ends, rows = _make_ends(found), np.array(codes, np.int64)
    return EndCells(ends.first.take(rows), ends.last.take(rows))


def _list_times(values: Any) -> list[Any]:
    """Python values: months as text like 2013-03, days as dates, and nanoseconds as text."""
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    array = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    if array.dtype.kind != "M":
        return list(array.tolist())
    plain = np.datetime_data(array.dtype)[0] in ("W", "D", "h", "m", "s", "ms", "us")
    texts: list[Any] = array.tolist() if plain else array.astype(str).tolist()
    return [None if each == "NaT" else each for each in texts]


def _plain_end(value: object, name: str) -> object:
    """A value that can be told from others; what pandas says for a missing time is None."""
    if isinstance(value, Special):
        raise InvalidParameter(
            name, "must not hold special cells", given=str(value), fix="ask for them alone"
        )
    return None if value is None or value != value else value


def _has_no_bounds(values: object) -> bool:
    """Whether there are infinite floats or special cells among the values: neither is a bound."""
    if isinstance(values, list | tuple):
        return any(
            isinstance(each, Special) or (isinstance(each, float) and math.isinf(each)) for each in values
        )
    array = np.asarray(values)
    return array.dtype.kind == "f" and bool(np.isinf(array).any())


def _repeat(ends: EndCells, length: int, name: str) -> EndCells:
    if len(ends) == length:
        return ends
    given, fix = f"{len(ends)} and {length}", "pass arrays of one length"
    check(len(ends) == 1, name, "must have as many lows as highs", given=given, fix=fix)
    rows = np.zeros(length, np.int64)
    return EndCells(ends.first.take(rows), ends.last.take(rows))


_LOW_SIDES: Final = np.array([0, -1, 1, 0, -2, 0], np.int8)
_HIGH_SIDES: Final = np.array([0, -1, 1, 0, 2, 0], np.int8)
"""Where an end lies by the code of its `Special`: on the axis 0, below -1, above 1, open 2 beyond all."""
_UP: Final = np.uint64(1)
_DOWN: Final = np.uint64(2**64 - 1)
"""One cell on, and one cell back: cells are added modulo 2^64."""


def _span_cells(
    domain: Domain, low: EndCells, high: EndCells, closed: Closed, name: str, given: object
) -> CellRanges:
    """The cells from each low end to each high end of the column `name`; an end that is NULL is open.

    >>> from partita.domain import Integer
    >>> ages = Integer(0, 120)
    >>> low, high = (EndCells(ends, ends) for ends in (ages.encode([-5, 30, None]), ages.encode([9, 39, 17])))
    >>> found = _span_cells(ages, low, high, "left", "age", "ages")
    >>> found.lows.tolist(), found.highs.tolist(), found.below.tolist()
    ([0, 30, 0], [8, 38, 16], [False, False, True])
    """
    first, last = _LOW_SIDES[low.first.special], _HIGH_SIDES[high.last.special]
    backwards = (first > last) | ((first == 0) & (last == 0) & (low.first.cells > high.last.cells))
    check(not bool(backwards.any()), name, "must go from low to high", given=given, fix="swap the two ends")
    # A period that is excluded takes all of its cells along.
    after, before = closed in ("right", "neither"), closed in ("left", "neither")
    starts, ends = low.last if after else low.first, high.first if before else high.last
    first, last = _LOW_SIDES[starts.special], _HIGH_SIDES[ends.special]
    lows, highs = starts.cells, np.where(last == 0, ends.cells, np.uint64(domain.size - 1))
    empty = (first == 1) | (last == -1)
    if after:
        lows, empty = _move_inwards(lows, _UP, first == 0, empty, outermost=domain.size - 1)
    if before:
        highs, empty = _move_inwards(highs, _DOWN, last == 0, empty, outermost=0)
    empty = empty | (lows > highs)
    lows, highs = (np.where(empty, np.uint64(0), each) for each in (lows, highs))
    return CellRanges(lows, highs, empty, first == -2, last == 2)


def _move_inwards(
    cells: UInts, step: np.uint64, on_axis: Bools, empty: Bools, *, outermost: int
) -> tuple[UInts, Bools]:
    """EndCells that lie on the axis moved inwards by a cell; a span that had no other cell is empty."""
    stuck = on_axis & (cells == outermost)
    return np.where(on_axis & ~stuck, cells + step, cells), empty | stuck
