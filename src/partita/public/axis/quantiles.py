"""Quantiles of one column and nothing else: the release, its files, and what users see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Final, Self, TypeAlias, final

import numpy as np

from partita.arrays import Ints, UInts
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import CHANGE_ONE, Guarantee, rows_changed
from partita.html import card, span
from partita.lazy import cached_property
from partita.numbers import check_probability, rational
from partita.public.axis.base import AxisRelease, Parts, PartsReader, Term
from partita.public.axis.quantile_plan import (
    DEPTHS,
    USUAL_SPLIT,
    ColumnLook,
    Levels,
    bound_reaches,
    divide_rate,
    list_parents,
    plan_levels,
)
from partita.public.axis.spending_tree import SpendingTreeRelease
from partita.public.axis.tents import PartitionTentsRelease
from partita.public.axis.tree_solver import UNITS
from partita.public.base import ReleaseKind, damaged, figure, noise_scale, view_card
from partita.public.questions import MOST_QUANTILES
from partita.public.results import bound_quantile_cells, find_least_cells

LARGEST_SIZE: Final = 2**64
LARGEST_DENOMINATOR: Final = 10**6
"""Of a quantile: scores are multiplied by it, so that they are integers."""

CONFIDENCE: Final = Fraction(19, 20)
"""Of a value interval."""

Tree: TypeAlias = PartitionTentsRelease | SpendingTreeRelease
"""Counts of ranges, as `Intervals` releases them."""

_TREE: Final = "tree_"
"""How names of the series of a tree begin in a file."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class QuantileRelease(ReleaseKind):
    """The cells of some quantiles, each chosen by permute-and-flip, or all read off a tree.

    `rates` is the epsilon of each level for each row by which neighbours differ, `look` that of `depths`,
    noisy numbers of rows in heaps and outside, and `side` that of the two ends of each value interval, if
    there are any. If there is a `tree`, the quantiles are those of its counts, and `rates` is the epsilon of
    the tree alone. `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    kind: ClassVar[str] = "quantiles"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"quantiles": ("MS20", "S11", "KSS22", "DNRR15")}
    max_series: ClassVar[int] = 3 + max(PartitionTentsRelease.max_series, SpendingTreeRelease.max_series)

    size: int
    offset: int
    quantiles: tuple[Fraction, ...]
    cells: UInts
    rates: tuple[Fraction, ...]
    look: Fraction | None = None
    depths: Ints
    side: Fraction | None = None
    ends: UInts
    tree: Tree | None = None
    guarantee: Guarantee | None = None

    @cached_property
    def levels(self) -> Levels:
        """The plan by which they were chosen."""
        return plan_levels(self.quantiles)

    @cached_property
    def seen(self) -> ColumnLook | None:
        """What the look saw."""
        if self.look is None:
            return None
        depths = tuple(int(each) for each in self.depths)
        return ColumnLook(self.size, depths, 1 / self.look, self.levels, self.rates)

    @property
    def split(self) -> Fraction:
        """The part of each level that cut heaps in two."""
        return USUAL_SPLIT if self.seen is None else self.seen.split

    def reach(self, index: int, beta: float) -> float:
        """Rows that a quantile misses its rank by at most, but for probability beta, whatever the data."""
        chance = float(check_probability(beta))
        if self.tree is None:
            return bound_reaches(self.quantiles, self.rates, self.size, self.split, chance)[index]
        return bound_read(self.tree, int(self.cells[index]), float(self.quantiles[index]), chance)

    @property
    def has_intervals(self) -> bool:
        """Whether anything is known about where the true quantiles lie: that costs, but for a tree."""
        return self.side is not None or self.tree is not None

    def interval(self, index: int, beta: Fraction = 1 - CONFIDENCE) -> tuple[int, int] | None:
        """Cells between which the true quantile lies but for probability beta; None if that is not known."""
        if self.tree is not None:
            low, high = bound_quantile_cells(self.tree, float(self.quantiles[index]), float(beta))
            return min(low, int(self.cells[index])), max(high, int(self.cells[index]))
        if self.side is None or beta < 1 - CONFIDENCE:
            return None
        return int(self.ends[2 * index]), int(self.ends[2 * index + 1])

    @property
    def story(self) -> str:
        """What was learned of heaps, and what followed."""
        if self.tree is not None:
            why = "" if self.look is None else ", as rows are few"
            return f"Quantiles were read off counts of ranges{why}. {self.tree.story}"
        if self.seen is None or not self.seen.heaped:
            return ""
        return f"Many rows lie in heaps: {self.split} of each level divided them."

    @property
    def spent(self) -> Fraction:
        """The epsilon that the choices cost between the neighbours of the guarantee; zero without one."""
        promise = self.guarantee
        if promise is None:
            return Fraction(0)
        changed = rows_changed(promise.neighbors, promise.contributions)
        beside = (self.look or Fraction(0)) + len(self.quantiles) * (self.side or Fraction(0))
        if len(self.quantiles) == 1 and self.tree is None and promise.neighbors == CHANGE_ONE:
            (node,) = self.levels[0]
            moved = Fraction(node.part.denominator, node.change) * promise.contributions
            return self.rates[0] * moved + beside * changed
        return (sum(self.rates) + beside) * changed

    def parts(self) -> Parts:
        """Quantiles and rates as facts, cells as series; those of looks and of a tree where there are any."""
        facts: dict[str, Any] = {
            "size": self.size,
            "offset": str(self.offset),
            "quantiles": [str(each) for each in self.quantiles],
            "rates": [str(each) for each in self.rates],
            "look": None if self.look is None else str(self.look),
            "side": None if self.side is None else str(self.side),
        }
        series = {"cells": self.cells, "depths": self.depths, "ends": self.ends}
        if self.tree is not None:
            inner = self.tree.parts()
            facts["tree"] = {"kind": self.tree.kind, **inner.facts}
            series |= {_TREE + name: values for name, values in inner.series.items()}
        return Parts(facts, series)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else raises `InvalidRelease`."""
        own, tree = _take_tree(parts)
        reader = PartsReader(own)
        facts = ("size", "offset", "quantiles", "rates", "look", "side")
        reader.expect(facts=facts, series=("cells", "depths", "ends"))
        size = reader.integer("size", low=1, high=LARGEST_SIZE)
        offset, quantiles = reader.rational("offset"), reader.rationals("quantiles", most=MOST_QUANTILES)
        rates = reader.rationals("rates", most=MOST_QUANTILES)
        look, side = (reader.optional(name, reader.rational) for name in ("look", "side"))
        _check_plan(size, offset, quantiles, rates, (look, side), tree)
        return cls(
            size=size,
            offset=int(offset),
            quantiles=quantiles,
            cells=_read_cells(reader, "cells", size, len(quantiles)),
            rates=rates,
            look=look,
            depths=reader.noisy("depths", count=0 if look is None else len(DEPTHS) + 1),
            side=side,
            ends=_read_cells(reader, "ends", size, 0 if side is None else 2 * len(quantiles)),
            tree=tree,
            guarantee=guarantee,
        )


def _take_tree(parts: Parts) -> tuple[Parts, Tree | None]:
    """The parts of a release without those of its tree, and the tree."""
    if "tree" not in parts.facts:
        return parts, None
    inner = parts.facts["tree"]
    kind = inner.get("kind") if isinstance(inner, dict) else None
    known = {each.kind: each for each in (PartitionTentsRelease, SpendingTreeRelease)}
    if not isinstance(inner, dict) or kind not in known:
        raise damaged("tree", "must be counts of ranges")
    facts = {name: fact for name, fact in inner.items() if name != "kind"}
    series = {name.removeprefix(_TREE): row for name, row in parts.series.items() if name.startswith(_TREE)}
    own = Parts(
        {name: fact for name, fact in parts.facts.items() if name != "tree"},
        {name: row for name, row in parts.series.items() if not name.startswith(_TREE)},
    )
    return own, known[kind].from_parts(Parts(facts, series), None)


def read_quantiles(tree: AxisRelease, quantiles: Sequence[Fraction]) -> UInts:
    """The least cells at which the counts of a tree reach each share of all."""
    targets = np.array([float(each) for each in quantiles]) * tree.curve.total
    return find_least_cells(tree.curve.upto, targets, last=tree.size - 1)


def bound_read(tree: AxisRelease, cell: int, q: float, beta: float) -> float:
    """Rows that a cell, which was read off a tree, misses the rank q by at most, but for probability beta.

    Let E(x) be (1-q) times the count up to x, less q times the count beyond. The cell v misses its rank by
    -E(v) or by E(v-1), if one is positive. The cell depends on the noise, so that either all ranges keep one
    bound, or each cell has its share of beta: the better of both, at half of beta each.
    """
    last, share = tree.size - 1, beta / (4 * tree.size)

    def count(low: int, high: int) -> tuple[float, float, float]:
        if low > high:
            return 0.0, 0.0, 0.0
        answer = tree.answer(Term(low, high))
        least, most = answer.bounds(share)
        return max(0.0, least), answer.value, max(0.0, most)

    def excess(cell: int) -> tuple[float, float, float]:
        (least, upto, most), (fewest, beyond, others) = count(0, cell), count(cell + 1, last)
        return (1 - q) * least - q * others, (1 - q) * upto - q * beyond, (1 - q) * most - q * fewest

    at, before = excess(cell), excess(cell - 1)
    alike = tree.error(beta / 2) + max(0.0, -at[1], before[1])
    return min(alike, max(0.0, -at[0], before[2]))


def _check_plan(
    size: int,
    offset: Fraction,
    quantiles: Sequence[Fraction],
    rates: Sequence[Fraction],
    beside: Sequence[Fraction | None],
    tree: Tree | None,
) -> None:
    """Refuse quantiles out of order, rates that no noise has, and a tree of another column."""
    ascending = all(a < b for a, b in pairwise([Fraction(0), *quantiles, Fraction(1)]))
    if not ascending or any(each.denominator > LARGEST_DENOMINATOR for each in quantiles):
        raise damaged("quantiles", "must ascend between 0 and 1")
    if offset.denominator != 1 or abs(offset) > 2**127:
        raise damaged("offset", "must be an integer")
    look, side = beside
    if look is not None and len(quantiles) < 2:
        raise damaged("look", "must be left out where nothing is learned")
    levels = plan_levels(quantiles)
    if len(rates) != (len(levels) if tree is None else 1):
        raise damaged("rates", "must be one for each level, or that of a tree")
    for rate in (*rates, *(each for each in beside if each is not None)):
        if rate <= 0:
            raise damaged("rates", "must be positive")
    if tree is not None:
        alone = tree.size == size and side is None
        if not alone or _find_rate(tree) > rates[0]:
            raise damaged("tree", "must be of the same cells, and cost no more than it says")
        return
    parents = list_parents(levels)
    for nodes, rate in zip(levels, rates, strict=True):
        for node in nodes:
            noise_scale(2 * node.change / divide_rate(node, rate, USUAL_SPLIT, parents)[0], "rates")


def _find_rate(tree: Tree) -> Fraction:
    """The epsilon of a tree for each row by which neighbours differ, but for its noisy total."""
    return UNITS / tree.scale if isinstance(tree, SpendingTreeRelease) else tree.rate


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

    No other question about the column is answered. Rows in special cells have no value here: they count
    neither above nor below.
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
        """Shares of the rows: all of them, as nothing is said of the number of rows; see `rank_error`."""
        check_probability(confidence, "confidence")
        return 0.0, 1.0

    def interval(self, confidence: float = 0.95) -> tuple[object, object]:
        """Values between which the true quantile lies; those of the domain unless others are known."""
        return self._between(1 - check_probability(confidence, "confidence"))

    def worst(self, beta: float = 0.05) -> tuple[object, object]:
        """The same, except with probability beta: what is known holds whatever the data."""
        return self._between(check_probability(beta))

    def _between(self, beta: Fraction) -> tuple[object, object]:
        known = self.view.selected.interval(self.index, beta)
        low, high = self.view.domain.decode(known or (0, self.view.domain.size - 1))
        return low, high

    @property
    def _rank(self) -> str:
        return f"rank {100 * float(self.q):.10g}% ± {figure(self.rank_error())} rows"

    def __str__(self) -> str:
        if not self.view.selected.has_intervals:
            return f"{self._rank}\n{self.view.column} {self.value}"
        low, high = self.interval()
        return f"{self._rank}\n{self.view.column} {self.value}, {float(CONFIDENCE):.0%} from {low} to {high}"

    def __repr__(self) -> str:
        return f"SelectedQuantile({self.value}, {self._rank})"

    def _repr_html_(self) -> str:
        known = self.view.selected.has_intervals
        facts = [
            ("value", self.value),
            ("rank", f"{self._rank}, but for 5%"),
            ("for any data", f"{span(self.worst())}, but for 5%" if known else None),
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
