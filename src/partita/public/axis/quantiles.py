"""Quantiles of one column and nothing else: the plan of several, copies of round cells, and the release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import UInts
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import CHANGE_ONE, Guarantee, rows_changed
from partita.html import card, span
from partita.lazy import cached_property
from partita.numbers import check_probability, rational
from partita.public.axis.base import Parts, PartsReader
from partita.public.base import ReleaseKind, damaged, figure, noise_scale, view_card
from partita.public.questions import MOST_QUANTILES

LARGEST_SIZE: Final = 2**64
LARGEST_DENOMINATOR: Final = 10**6
"""Of a quantile: scores are multiplied by it, so that they are integers."""

TAG_BITS: Final = 32
"""Digits of the hidden place of a row in its cell. With 2^28 rows in one cell, 9 of them share a place with a
probability below 2^-22; more digits would widen the bounds of ranks by ln 2 each."""

MOST_ROWS_BITS: Final = 28
"""Bounds of ranks of several quantiles hold for columns of at most 2^28 rows: beyond, places are shared."""

CONFIDENCE: Final = Fraction(19, 20)
"""Of a value interval."""

_MOST_COPIES: Final = 2**14
_CLEAR: Final = Fraction(707, 100)  # five standard deviations of Laplace noise, in multiples of its scale
_LEAST_SHARE: Final = Fraction(1, 100)  # of all rows: the density of plain cells is not taken to be less
_PARTS: Final = 1000  # cube roots are rounded to this part of one: shares stay short fractions

IntArray: TypeAlias = NDArray[Any]


# The plan of several quantiles: halves of halves, the middle one first.


class Node(NamedTuple):
    """Quantile `number`, chosen between those of `left` and `right`; -1 and m are the ends of the column.

    `part` is the share of the rows between them that lie below it.
    """

    number: int
    left: int
    right: int
    part: Fraction

    @property
    def change(self) -> int:
        """By how much one row changes the score |h rows below - g rows|, for a part g/h."""
        return max(self.part.numerator, self.part.denominator - self.part.numerator)


Levels: TypeAlias = tuple[tuple[Node, ...], ...]


def plan_levels(quantiles: Sequence[Fraction]) -> Levels:
    """The nodes of each level; a row lies between the ends of one node of a level at most.

    >>> [[node.number for node in level] for level in plan_levels([Fraction(k, 10) for k in range(1, 10)])]
    [[4], [1, 6], [0, 2, 5, 7], [3, 8]]
    """
    levels: list[list[Node]] = []
    known = {-1: Fraction(0), len(quantiles): Fraction(1), **dict(enumerate(quantiles))}

    def divide(left: int, right: int, depth: int) -> None:
        if right - left < 2:
            return
        low, high = known[left], known[right]

        def skew(index: int) -> tuple[int, Fraction]:
            return max(index - left, right - index), abs(known[index] - (low + high) / 2)

        index = min(range(left + 1, right), key=skew)
        levels.extend([] for _ in range(depth + 1 - len(levels)))
        levels[depth].append(Node(index, left, right, (known[index] - low) / (high - low)))
        divide(left, index, depth + 1)
        divide(index, right, depth + 1)

    divide(-1, len(quantiles), 0)
    return tuple(map(tuple, levels))


def trace_errors(levels: Levels, own: Iterable[Sequence[float]]) -> list[dict[int, float]]:
    """For each quantile the error of every node that it stands on, times its weight in the answer.

    A node is off by its own error, and in between by those of its ends. `own` has errors, level by level.
    """
    number = sum(map(len, levels))
    traced: dict[int, dict[int, float]] = {-1: {}, number: {}}
    for nodes, errors in zip(levels, own, strict=True):
        for node, error in zip(nodes, errors, strict=True):
            part, found = float(node.part), {node.number: error}
            for end, weight in ((node.left, 1 - part), (node.right, part)):
                for index, each in traced[end].items():
                    found[index] = found.get(index, 0.0) + weight * each
            traced[node.number] = found
    return [traced[index] for index in range(number)]


def share_levels(levels: Levels) -> tuple[Fraction, ...]:
    """The part of epsilon of each level: as the cube roots of what its variance adds to all answers.

    With errors a_l / e_l, the sum of a_l^2 / e_l^2 is least where e_l is as the cube root of a_l^2.
    """
    traced = trace_errors(
        levels, [[float(node.change) / node.part.denominator for node in nodes] for nodes in levels]
    )
    weights = [sum(each.get(node.number, 0.0) ** 2 for each in traced for node in nodes) for nodes in levels]
    roots = [max(1, round(_PARTS * weight ** (1 / 3))) for weight in weights]
    return tuple(Fraction(root, sum(roots)) for root in roots)


# Round cells: people write 50,000 and not 49,817.


@final
@dataclass(frozen=True)
class Copies:
    """How often each cell counts as a candidate, by how round its value is.

    A cell whose value divisors[k] is the last to divide counts copies[k] times. The value of a cell is its
    number plus `offset`. Every divisor divides the next one.

    >>> Copies(size=12, offset=0, divisors=(1, 5, 10), copies=(1, 2, 6)).total
    23
    """

    size: int
    offset: int
    divisors: tuple[int, ...] = (1,)
    copies: tuple[int, ...] = (1,)

    @property
    def total(self) -> int:
        """The copies of all cells."""
        return int(self.before(self.size))

    def before(self, cells: Any) -> Any:
        """The copies of all cells before each of the cells; integers of any size in, the same out."""
        found = cells * self.copies[0]
        for (fewer, more), divisor in zip(pairwise(self.copies), self.divisors[1:], strict=True):
            first = self.offset % divisor + divisor - 1
            found = found + (more - fewer) * ((cells + first) // divisor - first // divisor)
        return found

    def cell(self, copy: int) -> int:
        """The cell of a copy, by halving."""
        low, high = 0, self.size - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.before(middle) <= copy else (low, middle - 1)
        return low

    def classes(self, cells: IntArray) -> NDArray[np.int64]:
        """How round each cell is: the number of the last divisor that divides its value."""
        found = np.zeros(len(cells), np.int64)
        for number, divisor in enumerate(self.divisors[1:], 1):
            found[(cells + self.offset % divisor) % divisor == 0] = number
        return found


def list_divisors(size: int) -> tuple[int, ...]:
    """1, 5, 10, 50, 100, ... up to a quarter of the cells.

    >>> list_divisors(200)
    (1, 5, 10, 50)
    """
    found = [1]
    while 4 * found[-1] * (step := 5 if len(found) % 2 else 2) <= size:
        found.append(found[-1] * step)
    return tuple(found)


def learn_copies(noisy: Sequence[int], scale: Fraction, size: int, offset: int) -> Copies:
    """Copies from noisy counts of each class: its density over that of plain cells, where it is clear.

    A class is clear if its count is five standard deviations above that of a smooth column. One that is not
    counts as the class below it.
    """
    divisors, counts = list_divisors(size), [int(count) for count in noisy]
    rows = max(sum(counts), 1)
    each = [Fraction(1, divisor) for divisor in divisors]
    cells = [*(a - b for a, b in pairwise(each)), each[-1]]
    plain = max(Fraction(counts[0]), rows * _LEAST_SHARE) / cells[0]
    copies = [1]
    for count, share in zip(counts[1:], cells[1:], strict=True):
        clear = count > plain * share + _CLEAR * scale
        copies.append(max(1, min(_MOST_COPIES, round(count / (share * plain)))) if clear else copies[-1])
    return Copies(size, offset, divisors, tuple(copies))


# The release.


def bound_rank(size: int, rate: Fraction, quantile: Fraction, beta: float) -> float:
    """Rows that one quantile misses its rank by at most, except with probability beta, whatever the data.

    A candidate that misses by r rows more than the best is accepted with probability exp(-r t), with t for
    each row, and the best misses nothing: the tail that the exponential mechanism has, too.
    """
    change = max(quantile, 1 - quantile)
    return (math.log(size) + math.log(1 / beta)) * float(2 * change / rate)


def bound_ties(beta: float) -> float:
    """Half of the rows that share a hidden place at most, except with probability beta.

    j + 1 of n rows share one of 2^b places with probability at most n^(j+1) / (j+1)! / 2^(b j).
    """
    shared = 1
    while (MOST_ROWS_BITS * (shared + 1) - TAG_BITS * shared) * math.log(2) - math.lgamma(
        shared + 2
    ) > math.log(beta):
        shared += 1
    return shared / 2


def bound_ranks(copies: Copies, rates: Sequence[Fraction], levels: Levels, beta: float) -> list[float]:
    """Rows that each of several quantiles misses its rank by at most, all of them but for beta."""
    number = sum(map(len, levels))
    width = math.log(copies.total) + TAG_BITS * math.log(2) + math.log(2 * number / beta)
    ties = bound_ties(beta / 2)
    own = [
        [ties + width * float(2 * Fraction(node.change, node.part.denominator) / rate) for node in nodes]
        for nodes, rate in zip(levels, rates, strict=True)
    ]
    return [sum(each.values()) for each in trace_errors(levels, own)]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class QuantileRelease(ReleaseKind):
    """The cells of some quantiles, each chosen by permute-and-flip.

    `rates` is the epsilon of each level for each row by which neighbours differ, `look` that of the noisy
    counts `rounds` of round cells, and `side` that of the two ends of each value interval, if there are any.
    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "quantiles"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"quantiles": ("MS20", "S11", "KSS22")}
    max_series: ClassVar[int] = 3

    size: int
    offset: int
    quantiles: tuple[Fraction, ...]
    cells: UInts
    rates: tuple[Fraction, ...]
    look: Fraction | None = None
    rounds: IntArray
    side: Fraction | None = None
    ends: UInts
    guarantee: Guarantee | None = None

    @cached_property
    def levels(self) -> Levels:
        """The plan by which they were chosen."""
        return plan_levels(self.quantiles)

    @cached_property
    def copies(self) -> Copies:
        """How often each cell was a candidate."""
        if self.look is None:
            return Copies(self.size, self.offset)
        return learn_copies(self.rounds.tolist(), 1 / self.look, self.size, self.offset)

    def reach(self, index: int, beta: float) -> float:
        """Rows that a quantile misses its rank by at most, but for probability beta, whatever the data."""
        return bound_reaches(self.quantiles, self.rates, self.copies, float(check_probability(beta)))[index]

    def interval(self, index: int) -> tuple[int, int] | None:
        """Cells between which the true quantile lies with `CONFIDENCE`; None if they were not bought."""
        return None if self.side is None else (int(self.ends[2 * index]), int(self.ends[2 * index + 1]))

    @property
    def story(self) -> str:
        """What was learned of round values."""
        pairs = zip(self.copies.divisors, self.copies.copies, strict=True)
        heaps = [f"{copies} times for multiples of {divisor}" for divisor, copies in pairs if copies > 1]
        return f"Round values were likelier candidates: {', '.join(heaps)}." if heaps else ""

    @property
    def spent(self) -> Fraction:
        """The epsilon that the choices cost between the neighbours of the guarantee; zero without one."""
        promise = self.guarantee
        if promise is None:
            return Fraction(0)
        changed = rows_changed(promise.neighbors, promise.contributions)
        beside = (self.look or Fraction(0)) + len(self.quantiles) * (self.side or Fraction(0))
        if len(self.quantiles) == 1 and promise.neighbors == CHANGE_ONE:
            (node,) = self.levels[0]
            moved = Fraction(node.part.denominator, node.change) * promise.contributions
            return self.rates[0] * moved + beside * changed
        return (sum(self.rates) + beside) * changed

    def parts(self) -> Parts:
        """Quantiles and rates as facts, cells as series."""
        facts = {
            "size": self.size,
            "offset": str(self.offset),
            "quantiles": [str(each) for each in self.quantiles],
            "rates": [str(each) for each in self.rates],
            "look": None if self.look is None else str(self.look),
            "side": None if self.side is None else str(self.side),
        }
        series = {"cells": self.cells, "rounds": self.rounds, "ends": self.ends}
        return Parts(facts, series)  # type: ignore[arg-type]

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else raises `InvalidRelease`."""
        reader = PartsReader(parts)
        facts = ("size", "offset", "quantiles", "rates", "look", "side")
        reader.expect(facts=facts, series=("cells", "rounds", "ends"))
        size = reader.integer("size", low=1, high=LARGEST_SIZE)
        offset, quantiles = reader.rational("offset"), reader.rationals("quantiles", most=MOST_QUANTILES)
        rates = reader.rationals("rates", most=MOST_QUANTILES)
        look, side = (reader.optional(name, reader.rational) for name in ("look", "side"))
        _check_plan(size, offset, quantiles, rates, look, side)
        return cls(
            size=size,
            offset=int(offset),
            quantiles=quantiles,
            cells=_read_cells(reader, "cells", size, len(quantiles)),
            rates=rates,
            look=look,
            rounds=reader.noisy("rounds", count=0 if look is None else len(list_divisors(size))),
            side=side,
            ends=_read_cells(reader, "ends", size, 0 if side is None else 2 * len(quantiles)),
            guarantee=guarantee,
        )


def bound_reaches(
    quantiles: Sequence[Fraction], rates: Sequence[Fraction], copies: Copies, beta: float
) -> list[float]:
    """Rows by which each quantile misses its rank at most, except with probability beta."""
    if len(quantiles) == 1:
        return [bound_rank(copies.size, rates[0], quantiles[0], beta)]
    return bound_ranks(copies, rates, plan_levels(quantiles), beta)


def _check_plan(
    size: int,
    offset: Fraction,
    quantiles: Sequence[Fraction],
    rates: Sequence[Fraction],
    look: Fraction | None,
    side: Fraction | None,
) -> None:
    """Refuse quantiles out of order, and rates that no noise has."""
    ascending = all(a < b for a, b in pairwise([Fraction(0), *quantiles, Fraction(1)]))
    if not ascending or any(each.denominator > LARGEST_DENOMINATOR for each in quantiles):
        raise damaged("quantiles", "must ascend between 0 and 1")
    if offset.denominator != 1 or abs(offset) > 2**127:
        raise damaged("offset", "must be an integer")
    if look is not None and (len(quantiles) < 2 or len(list_divisors(size)) < 2):
        raise damaged("look", "must be left out where nothing is learned")
    levels = plan_levels(quantiles)
    if len(rates) != len(levels):
        raise damaged("rates", "must be one for each level")
    for rate in (*rates, *(each for each in (look, side) if each is not None)):
        if rate <= 0:
            raise damaged("rates", "must be positive")
    for nodes, rate in zip(levels, rates, strict=True):
        for node in nodes:
            noise_scale(2 * node.change / rate, "rates")


def _read_cells(reader: PartsReader, name: str, size: int, count: int) -> UInts:
    cells = reader.row(name, np.uint64)
    inside = cells.size == count and (not count or int(cells.max()) < size)
    if not inside or (name == "cells" and bool((cells[1:] < cells[:-1]).any())):
        raise damaged(name, f"must be {count} cells of the column, in order")
    return cells


# What users see of it.


@final
@dataclass(frozen=True, eq=False, repr=False)
class SelectedQuantile:
    """A quantile that was released by itself: a value, and by how many rows its rank may be off.

    The number of rows is not released, and so is nothing about values nearby. Rows in special cells have no
    value here: they count neither above nor below.
    """

    view: QuantileView
    index: int

    @property
    def q(self) -> Fraction:
        """The share of the rows that lies below."""
        return self.view.selected.quantiles[self.index]

    @property
    def cell(self) -> int:
        """The cell of the value."""
        return int(self.view.selected.cells[self.index])

    @property
    def value(self) -> object:
        """The quantile, as a value of the column."""
        return self.view.domain.decode([self.cell])[0]

    @property
    def basis(self) -> str:
        """Nothing to tell: it was selected for just this question."""
        return ""

    def rank_error(self, beta: float = 0.05) -> float:
        """So many rows lie between the value and the rank asked for at most, except with probability beta.

        That is so whatever the data; of several quantiles all keep their bounds together.
        """
        return self.view.selected.reach(self.index, beta)

    def rank_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Shares of the rows: all of them, as the number of rows is not released; see `rank_error`."""
        check_probability(confidence, "confidence")
        return 0.0, 1.0

    def interval(self, confidence: float = 0.95) -> tuple[object, object]:
        """Values between which the true quantile lies; those of the domain unless others were bought."""
        return self._between(1 - check_probability(confidence, "confidence"))

    def worst(self, beta: float = 0.05) -> tuple[object, object]:
        """The same, except with probability beta: the interval that was bought holds whatever the data."""
        return self._between(check_probability(beta))

    def _between(self, beta: Fraction) -> tuple[object, object]:
        bought = self.view.selected.interval(self.index) if beta >= 1 - CONFIDENCE else None
        low, high = self.view.domain.decode(bought or (0, self.view.domain.size - 1))
        return low, high

    @property
    def _rank(self) -> str:
        return f"rank {100 * float(self.q):.10g}% ± {figure(self.rank_error())} rows"

    def __str__(self) -> str:
        return f"{self._rank}\n{self.view.column} {self.value}"

    def __repr__(self) -> str:
        return f"SelectedQuantile({self.value}, {self._rank})"

    def _repr_html_(self) -> str:
        bought = self.view.selected.side is not None
        facts = [
            ("value", self.value),
            ("rank", f"{self._rank}, but for 5%"),
            ("for any data", f"{span(self.worst())}, but for 5%" if bought else None),
        ]
        return card(f"{self.view.column}: quantile at {float(self.q):.6g}", facts)


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class QuantileView:
    """A column, its public domain, and the quantiles of it that were released: a part of a release.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how it was
    chosen, a function of public parameters.
    """

    column: str
    domain: Domain
    selected: QuantileRelease
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        rule = "must have the cells of its domain"
        check_release(self.selected.size == self.domain.size, "quantiles", rule, fix="get the file again")

    def __repr__(self) -> str:
        return f"QuantileView({self.column}; {self.listed}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, {self.column: self.domain}, quantiles=self.listed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Its domain."""
        return (self.domain,)

    @property
    def name(self) -> str:
        """The column, and that these are quantiles."""
        return quantiles_name(self.column)

    @property
    def listed(self) -> str:
        """The quantiles that were released, as text."""
        return list_quantiles(self.selected.quantiles)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.selected.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the choices cost no more than the guarantee says."""
        return self.guarantee is None or self.guarantee.epsilon >= self.selected.spent

    def quantile(self, q: object) -> SelectedQuantile:
        """One of the quantiles that were released; any other raises InvalidParameter."""
        exact = rational(q, "q")
        if exact not in self.selected.quantiles:
            rule = f"must be a quantile of {self.column!r} that was released: {self.listed}"
            raise InvalidParameter("q", rule, given=q, fix="ask for one of these, or publish it too")
        return SelectedQuantile(self, self.selected.quantiles.index(exact))


def quantiles_name(column: str) -> str:
    """The name of a view of quantiles.

    >>> quantiles_name("salary")
    'quantiles of salary'
    """
    return f"quantiles of {column}"


def list_quantiles(quantiles: Sequence[Fraction]) -> str:
    """Quantiles as text, of many the first and the last.

    >>> list_quantiles([Fraction(1, 2)]), list_quantiles([Fraction(k, 100) for k in range(1, 100)])
    ('1/2', '1/100, 1/50, 3/100, ..., 99/100')
    """
    texts = [str(each) for each in quantiles]
    return ", ".join(texts if len(texts) <= 12 else [*texts[:3], "...", texts[-1]])


def parse_quantiles(given: object, name: str = "quantiles") -> tuple[Fraction, ...]:
    """Shares between 0 and 1 in ascending order, from a number m of evenly spaced ones, one share, or a list.

    >>> parse_quantiles(3), parse_quantiles("0.9")
    ((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), (Fraction(9, 10),))
    """
    fix = 'pass for example ["1/4", "1/2", "3/4"], or 9 for deciles'
    if isinstance(given, int) and not isinstance(given, bool):
        rule = f"must be at least one and at most {MOST_QUANTILES}"
        check(1 <= given <= MOST_QUANTILES, name, rule, given=given, fix=fix)
        return tuple(Fraction(k, given + 1) for k in range(1, given + 1))
    listed = list(given) if isinstance(given, list | tuple) else [given]
    check(
        1 <= len(listed) <= MOST_QUANTILES,
        name,
        "must not be empty, nor too many",
        given=len(listed),
        fix=fix,
    )
    exact = [rational(each, name) for each in listed]
    for each in exact:
        inside = 0 < each < 1 and each.denominator <= LARGEST_DENOMINATOR
        rule = "must lie between 0 and 1, as ratios of integers up to a million"
        check(inside, name, rule, given=each, fix=fix)
    check(
        len(set(exact)) == len(exact), name, "must be different", given=len(exact), fix="leave one of two out"
    )
    return tuple(sorted(exact))
