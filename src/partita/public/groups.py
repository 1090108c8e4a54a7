"""Statistics by groups: `release.group("dest", pt.month("when")).count()`.

Groups follow from public domains and keys alone. Each is a set of cells of the columns of its keys, and its
statistic is that of the same question about this group alone; counts are made together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answers, Joint, ratio_bounds
from partita.arrays import Floats
from partita.domain import calendar
from partita.domain.base import Domain, Special
from partita.domain.category import Category
from partita.domain.nodes import LabelTree
from partita.domain.time import Date, Timestamp
from partita.errors import InvalidParameter, check
from partita.frames import Tabular
from partita.html import card, grid, shortlist, show_bounded
from partita.lazy import cached_property
from partita.numbers import integer
from partita.public.axis.base import CellSet, Term, find_cells, intersect, locate_value
from partita.public.base import checkpoint, format_excerpt
from partita.public.conditions import Either, Ends, Where, join_both, parse_conditions
from partita.public.keys import GroupKey, GroupOrder, check_keys, read_key
from partita.public.results import find_bin_cells
from partita.public.sums.base import Covers, End, Ratio, SumAnswer
from partita.public.tables.sums import TableSumView
from partita.public.views import BoxView

if TYPE_CHECKING:
    from partita.public.release import Release

MOST_VALUES: Final = 1000
"""Values of a column that are groups of their own; one of more is grouped by bins, breaks or the calendar."""

MOST_GROUPS: Final = 2**17
"""Groups that are counted together: as many take seconds."""

MOST_SINGLE: Final = 2**12
"""Groups of which every sum, mean, quantile or share is a question by itself: milliseconds each."""

MOST_RANKED: Final = 50
"""Neighbours in an order that are compared: each pair takes milliseconds."""

_Z: Final = 1.959963984540054  # standard errors to each side of a 95% interval


class NamedCells(NamedTuple):
    """A group of one column: its name for each of some keys, its place among theirs, and its cells."""

    names: tuple[object, ...]
    places: tuple[int, ...]
    cells: CellSet


def find_groups(domain: Domain, key: GroupKey) -> list[tuple[object, CellSet]]:
    """The groups of a key, in the order of its column. Special cells but null and other are in none.

    >>> from partita.domain import Integer
    >>> from partita.public.keys import breaks
    >>> for name, cells in find_groups(Integer(0, 120), breaks("age", [18, 65])):
    ...     print(name, *cells.terms, *cells.specials)
    up to 17 Term(low=0, high=17, sign=1) below
    18 to 64 Term(low=18, high=64, sign=1)
    65 and more Term(low=65, high=120, sign=1) above
    """
    if key.unit is not None:
        groups = calendar.calendar_groups(domain, key.unit, key.column)
        return [(name, CellSet(tuple(Term(*piece) for piece in pieces))) for name, pieces in groups]
    if key.bins is not None:
        lows, highs = find_bin_cells(domain.size, key.bins)
        named = zip(domain.decode(lows), domain.decode(highs), lows.tolist(), highs.tolist(), strict=True)
        return [(_span_text(first, last), CellSet((Term(low, high),))) for first, last, low, high in named]
    if key.breaks:
        return list(_break_groups(domain, key))
    beside = [(Special.named(name), CellSet((), (name,))) for name in ("other", "null")]
    if key.level is not None:
        tree = _find_tree(domain, key)
        nodes = tree.groups(tree.level(key.level, f"level of {key.column}"))
        return [*((name, CellSet((Term(low, high),))) for name, low, high in nodes), *beside]
    if domain.size > MOST_VALUES and not isinstance(domain, Category):
        rule = f"must be by a column of at most {MOST_VALUES:,} values, and it has {domain.size:,}"
        timed = f", or month({key.column})" * isinstance(domain, Date | Timestamp)
        fix = f"group by bins({key.column}, 12), or breaks({key.column}, ...){timed}"
        raise InvalidParameter("group", rule, given=key.column, fix=fix)
    values = domain.decode(list(range(domain.size)))
    single = [(value, CellSet((Term(cell, cell),))) for cell, value in enumerate(values)]
    return [*single, *beside] if isinstance(domain, Category) else [*single]


def _find_tree(domain: Domain, key: GroupKey) -> LabelTree:
    """The nodes above the labels of a column, which must have some."""
    if isinstance(domain, Category) and domain.tree is not None:
        return domain.tree
    rule = "must be of a column whose labels lie below nodes"
    fix = f"group by {key.column}, or declare its labels as tables of tables"
    raise InvalidParameter("level", rule, given=key.column, fix=fix)


def estimate_groups(domain: Domain, key: GroupKey) -> tuple[int, int]:
    """At most how many groups a key has, and of about how many ranges each is; without making them."""
    if key.unit is not None:
        return calendar.estimate_groups(domain, key.unit)
    if key.bins is not None:
        return min(key.bins, domain.size), 1
    if key.level is not None:
        tree = _find_tree(domain, key)
        return tree.count(tree.level(key.level, f"level of {key.column}")) + len(domain.specials), 1
    return (len(key.breaks) + 1 if key.breaks else domain.size + len(domain.specials)), 1


def _break_groups(domain: Domain, key: GroupKey) -> Iterator[tuple[object, CellSet]]:
    """From each break up to the cell before the next; below the first if there is anything, and all above."""
    name = f"breaks of {key.column}"
    starts = [_locate_break(domain, value, name) for value in key.breaks]
    ordered = all(one < other for one, other in pairwise(starts))
    check(ordered, name, "must rise", given=", ".join(map(str, key.breaks)), fix="sort them")
    if starts[0] > 0:
        (last,) = domain.decode([starts[0] - 1])
        yield f"up to {last}", CellSet((Term(0, starts[0] - 1),), _those(domain, "below"))
    for start, behind in pairwise(starts):
        first, last = domain.decode([start, behind - 1])
        yield _span_text(first, last), CellSet((Term(start, behind - 1),))
    (first,) = domain.decode([starts[-1]])
    yield f"{first} and more", CellSet((Term(starts[-1], domain.size - 1),), _those(domain, "above"))


def _locate_break(domain: Domain, value: object, name: str) -> int:
    place, _ = locate_value(domain, value, name=name)
    rule, fix = f"must lie within the declared bounds, as the column is {domain!r}", "leave it out"
    check(place.special is Special.ORDINARY, name, rule, given=value, fix=fix)
    return place.cell


def _those(domain: Domain, special: str) -> tuple[str, ...]:
    return (special,) if special in domain.specials else ()


def _span_text(first: object, last: object) -> str:
    return str(first) if first == last else f"{first} to {last}"


@final
@dataclass(frozen=True, eq=False)
class GroupPlan:
    """All groups of some keys: `found` has those of each column, and `rows` which of them each group is.

    `rest` are conditions on other columns; those on the columns of the keys are in the groups.
    """

    keys: tuple[GroupKey, ...]
    found: Mapping[str, Sequence[NamedCells]]
    rows: NDArray[np.intp]
    rest: Where

    @staticmethod
    def of(
        domain_of: Callable[[str], Domain],
        keys: tuple[GroupKey, ...],
        where: Where,
        *,
        most: int,
        counted: Callable[[str], bool] = lambda column: True,
    ) -> GroupPlan:
        """The groups that meet the conditions, ordered by their keys.

        `counted` says whether special cells of a column were counted; where not, none is a group.
        """
        found: dict[str, list[NamedCells]] = {}
        for key in keys:
            domain = domain_of(key.column)
            named = [
                NamedCells((name,), (number,), cells)
                for number, (name, cells) in enumerate(find_groups(domain, key))
                if cells.terms or counted(key.column)
            ]
            found[key.column] = _meet(domain, found[key.column], named) if key.column in found else named
        rest = where
        if not isinstance(where, Either):
            rest = {column: each for column, each in where.items() if column not in found}
            for column in found.keys() & where.keys():
                domain = domain_of(column)
                cells = find_cells(domain, where[column], name=column)
                found[column] = _meet(domain, found[column], [NamedCells((), (), cells)])
        number = math.prod(map(len, found.values()))
        rule, fix = f"must make up at most {most:,} groups", "group by fewer keys, or by coarser ones"
        check(number <= most, "group", rule, given=number, fix=fix)
        rows = np.indices([len(each) for each in found.values()]).reshape(len(found), -1).T
        plan = GroupPlan(keys, found, rows, rest)
        return replace(plan, rows=plan._in_order) if len(found) < len(keys) else plan

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return tuple(self.found)

    @cached_property
    def entries(self) -> list[tuple[object, ...]]:
        """The name of each group, for each key."""
        columns = [[each.names for each in named] for named in self.found.values()]
        order = self._key_order
        joined = ([name for c, g in enumerate(row) for name in columns[c][g]] for row in self.rows.tolist())
        return [tuple(names[place] for place in order) for names in joined]

    def where(self, row: int) -> Where:
        """The conditions of one group."""
        chosen = self.rows[row].tolist()
        cells = {column: self.found[column][g].cells for column, g in zip(self.found, chosen, strict=True)}
        return join_both(cells, self.rest) if self.rest else cells

    @property
    def _key_order(self) -> list[int]:
        """Where each key stands among the keys of all columns, one column after the other."""
        listed = [
            place for column in self.found for place, key in enumerate(self.keys) if key.column == column
        ]
        return [listed.index(place) for place in range(len(self.keys))]

    @property
    def _in_order(self) -> NDArray[np.intp]:
        """The rows ordered by the first key, then by the second, and so on."""
        columns = [
            np.array([each.places for each in named]).reshape(len(named), -1) for named in self.found.values()
        ]
        places = np.concatenate([each[self.rows[:, c]] for c, each in enumerate(columns)], axis=1)
        return self.rows[np.lexsort(places[:, self._key_order].T[::-1])]


def _meet(domain: Domain, one: Sequence[NamedCells], other: Sequence[NamedCells]) -> list[NamedCells]:
    """The groups that both have: those of two keys of one column, or of a key and a condition."""
    met = []
    for first, second in product(one, other):
        checkpoint()
        cells = intersect(domain, [first.cells, second.cells])
        if cells.terms or cells.specials:
            met.append(NamedCells(first.names + second.names, first.places + second.places, cells))
    return met


# What a release is asked by groups.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Grouping:
    """Rows of a release by groups; each statistic of them makes `Groups`.

        release.group("dest").count(delay=(15, None))
        release.group("dest", pt.month("when")).mean("delay")

    Conditions are those of the same questions to the release, and may be on columns of the keys, too. A
    column of labels has a group of other labels and one without a label, called other and null. Of other
    columns, what has no value or lies beyond the declared bounds is in no group.
    """

    release: Release
    keys: tuple[GroupKey, ...]

    @staticmethod
    def of(release: Release, keys: Iterable[object]) -> Grouping:
        """Rows by some keys."""
        return Grouping(release, check_keys(map(read_key, keys)))

    def __repr__(self) -> str:
        return f"Grouping({', '.join(map(str, self.keys))})"

    def count(self, where: Where | str | None = None, *, closed: Ends = "both", **columns: object) -> Groups:
        """How many rows of each group meet the conditions."""
        plan = self._plan(where, columns, closed, most=MOST_GROUPS)
        counted = self.release.count_cells(
            {column: [each.cells for each in named] for column, named in plan.found.items()},
            plan.rows,
            plan.rest,
        )
        counts = self._one_by_one(plan) if counted is None else counted

        def differ(row: int, other: int) -> float:
            return self.release.difference(plan.where(row), plan.where(other)).error

        return Groups(
            statistic="count",
            keys=self.keys,
            entries=plan.entries,
            values=counts.values,
            spread=lambda: counts.error,
            ask=lambda row: replace(
                self.release.count(plan.where(row)), spread=lambda: float(counts.error[row])
            ),
            differ=differ,
            about=self._about(),
            basis=counts.basis,
        )

    def sum(
        self, column: str, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Groups:
        """The sum of a column in each group."""
        return self._each("sum", lambda each: self.release.sum(column, each), where, columns, closed, column)

    def mean(
        self, column: str, /, where: Where | str | None = None, *, closed: Ends = "both", **columns: object
    ) -> Groups:
        """The mean of a column in each group; not determinable, and NaN, where there may be no row."""
        return self._each(
            "mean", lambda each: self.release.mean(column, each), where, columns, closed, column
        )

    def quantile(
        self,
        column: str,
        /,
        q: float | Fraction = 0.5,
        where: Where | str | None = None,
        *,
        closed: Ends = "both",
        **columns: object,
    ) -> Groups:
        """The quantile of a column in each group; the median, unless another share is given."""

        def ask(each: Where) -> Any:
            return self.release.quantile(column, q, each)

        return self._each("quantile", ask, where, columns, closed, column)

    def share(
        self,
        /,
        where: Where | str | None = None,
        *,
        among: Where | str | None = None,
        closed: Ends = "both",
        **columns: object,
    ) -> Groups:
        """The share of the rows of each group that meet the conditions.

        With `among`, of the rows of each group that meet those. Counts of one view share their noise, and the
        error knows how much of it cancels.
        """
        met = parse_conditions(where, columns, closed, beside=among)
        fix = "pass for example delay=(15, None)"
        check(met, "where", "must have a condition that some rows do not meet", given="none", fix=fix)

        def ask(group: Where) -> Any:
            return self._share(group, met)

        return self._each("share", ask, among, {}, closed, *met)

    def _share(self, group: Where, met: Where) -> Any:
        """The share of rows of one group; a release that was made for it has counted just that."""
        if self.release.wants:
            return self.release.share(met, among=group)
        both = join_both(group, met)
        part, whole = self.release.count(both), self.release.count(group)
        together = self.release.view(*group, *met) is self.release.view(*group)
        covariance = 0.0
        if together:
            apart = self.release.difference(group, both).error
            covariance = (part.error**2 + whole.error**2 - apart**2) / 2

        def bounds(beta: float) -> tuple[float, float]:
            return ratio_bounds(part.bounds(beta / 2), whole.bounds(beta / 2))

        joint = Joint(part.value, whole.value, part.error**2, whole.error**2, covariance)
        return Ratio(joint, Covers(End(0.0, whole=True), End(1.0, whole=True)), 0.0, 1.0, bounds)

    def _each(
        self,
        statistic: str,
        ask: Callable[[Where], Any],
        where: Where | str | None,
        columns: Mapping[str, object],
        closed: Ends,
        *about: str,
    ) -> Groups:
        """A statistic whose groups are asked for one by one."""
        plan = self._plan(where, columns, closed, most=MOST_SINGLE)
        found = []
        for row in range(len(plan.rows)):
            checkpoint()
            found.append(ask(plan.where(row)))
        errors = [getattr(each, "error", math.nan) for each in found]
        return Groups(
            statistic=statistic,
            keys=self.keys,
            entries=plan.entries,
            values=[each.value for each in found],
            spread=None if statistic == "quantile" else lambda: np.array(errors),
            ask=found.__getitem__,
            differ=lambda row, other: math.hypot(errors[row], errors[other]),
            about=self._about(),
            basis=self._basis([*plan.columns, *plan.rest, *about]),
        )

    def _plan(
        self, where: Where | str | None, columns: Mapping[str, object], closed: Ends, *, most: int
    ) -> GroupPlan:
        conditions = parse_conditions(where, columns, closed)
        release = self.release
        return GroupPlan.of(
            release.domain_of, self.keys, conditions, most=most, counted=release.counts_specials
        )

    def _one_by_one(self, plan: GroupPlan) -> Answers:
        """Counts that are not made together: conditions with `or` on columns of the keys."""
        rule, fix = f"must make up at most {MOST_SINGLE:,} groups here", "leave out `or`"
        check(len(plan.rows) <= MOST_SINGLE, "group", rule, given=len(plan.rows), fix=fix)
        found = [self.release.count(plan.where(row)) for row in range(len(plan.rows))]
        return Answers(
            np.array([each.value for each in found]), lambda: np.array([each.error for each in found])
        )

    def _basis(self, columns: Iterable[str]) -> str:
        """What a mean or a share of these columns rests on, which it does not say itself."""
        names = list(dict.fromkeys(columns))
        for view in self.release.summable:
            if isinstance(view, TableSumView) and set(names) <= set(view.keys):
                return view.view.boxes.basis(view.keys.index(name) for name in names)
        views = [each for each in self.release.views if isinstance(each, BoxView)]
        fitting = [each for each in views if set(names) <= set(each.columns)]
        found = min(fitting, key=lambda each: len(each.columns), default=None)
        return "" if found is None else found.boxes.basis(found.columns.index(name) for name in names)

    def _about(self) -> str:
        """Which rows are in no group."""
        domains = {key.column: self.release.domain_of(key.column) for key in self.keys}
        out = [column for column, domain in domains.items() if not isinstance(domain, Category)]
        if not out:
            return ""
        return f"rows without a value of {' or '.join(out)}, or with one out of bounds, are in no group"


# The result.


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Groups(Tabular):
    """A statistic of each group: its name for each key, a value, and an interval of 95%.

    `print` shows a table, of many groups the first and the last. Iteration gives the answers, which are those
    of the same questions about each group alone, and `groups["Rome", "2013-03"]` gives one. `ordered` and
    `top` order the groups. `ranking` says, after `top` and `ordered` by the value, what the order can
    support.
    """

    statistic: str
    keys: tuple[GroupKey, ...]
    entries: Sequence[tuple[object, ...]]
    values: Sequence[Any] | Floats
    spread: Callable[[], Floats] | None
    ask: Callable[[int], Any]
    differ: Callable[[int, int], float]
    about: str = ""
    basis: str = ""
    chosen: Sequence[int] | None = None
    most: int | None = None
    ranked: bool = False
    _asked: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[int]:
        """The numbers of the groups that are here, in their order."""
        every = list(range(len(self.entries))) if self.chosen is None else list(self.chosen)
        return every[: self.most]

    @property
    def total(self) -> int:
        """How many groups there are, shown or not."""
        return len(self.entries)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return map(self._answer, self.rows)

    def __getitem__(self, group: object) -> Any:
        """The answer about one group, by its place, or by its names for all keys."""
        if isinstance(group, int):
            return self._answer(self.rows[group])
        names = group if isinstance(group, tuple) else (group,)
        texts = tuple(map(show_entry, names))
        example = ", ".join(next(iter(self._places), ("another question",)))
        rule, fix = "must be a group", f"choose for example {example}"
        if texts not in self._places:
            known = {", ".join(each).casefold(): ", ".join(each) for each in self._places}
            near = get_close_matches(", ".join(texts).casefold(), known, n=1)
            fix = f"did you mean {known[near[0]]}?" if near else fix
        check(texts in self._places, "group", rule, given=", ".join(texts), fix=fix)
        return self._answer(self._places[texts])

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        """The number of each group by its names as text."""
        return {tuple(map(show_entry, self.entries[row])): row for row in self.rows}

    @cached_property
    def errors(self) -> Floats | None:
        """The standard error of each group; None of quantiles, whose error is their interval."""
        return None if self.spread is None else np.asarray(self.spread())[self.rows]

    def interval(self, confidence: float = 0.95) -> list[tuple[Any, Any]]:
        """Between which values each group lies with about this confidence, as its answer says."""
        return [each.interval(confidence) for each in self]

    def ordered(self, by: str | GroupKey | None = None, *, descending: bool = False) -> Groups:
        """The groups in the order of a key; by the value, if none is named."""
        key = None if by is None else read_key(by)
        names = [each.name for each in self.keys]
        if key is None or key.name not in names:
            stands = key is None or key.name in {self.statistic, "value", *_WORDS.get(self.statistic, ())}
            rule = f"must be one of {', '.join([*names, self.statistic])}"
            given = "" if key is None else key.name
            check(stands, "order", rule, given=given, fix=f"order by {self.statistic}")
            return replace(
                self, chosen=self._by_value(descending=descending), ranked=True, _asked=self._asked
            )
        place = names.index(key.name)
        first = {
            name: number for number, name in enumerate(dict.fromkeys(each[place] for each in self.entries))
        }
        rows = sorted(self.rows, key=lambda row: first[self.entries[row][place]], reverse=descending)
        return replace(self, chosen=rows, ranked=False, _asked=self._asked)

    def limited(self, number: int | None) -> Groups:
        """The first groups, so many."""
        if number is None:
            return self
        most = integer(number, "limit", low=1)
        return replace(self, chosen=self.chosen or self.rows, most=most, _asked=self._asked)

    def top(self, number: int = 10) -> Groups:
        """The groups with the largest values, so many, and what their order can support."""
        return self.ordered(descending=True).limited(number)

    def _by_value(self, *, descending: bool) -> list[int]:
        """The rows by their values; those without one come last."""
        known = [row for row in self.rows if not _is_nan(self.values[row])]
        others = [row for row in self.rows if _is_nan(self.values[row])]
        return sorted(known, key=self.values.__getitem__, reverse=descending) + others

    @cached_property
    def ranking(self) -> str:
        """Which neighbours in an order by value cannot be told apart: their difference against its error."""
        if not self.ranked or len(self) < 1:
            return ""
        every = list(self.chosen or ())
        pairs = list(pairwise(every))[: min(len(self), MOST_RANKED)]
        alike = [place for place, pair in enumerate(pairs, 1) if not self._is_apart(*pair)]
        inside = [place for place in alike if place < len(self)]
        runs, notes = [_describe_run(run) for run in _join_places(inside)], list[str]()
        if len(self) > 1:
            text = f"not to be told apart: {', '.join(runs)}" if runs else "all neighbours can be told apart"
            cut = len(self) > MOST_RANKED + 1
            notes.append(f"of the first {MOST_RANKED + 1} places, {text}" if cut else text)
        if len(pairs) == len(self):
            clear = "not clear" if len(self) in alike else "clear"
            notes.append(f"place {len(self)} is {clear} of place {len(self) + 1}, which is not shown")
        if not notes:
            return ""
        means = "" if self.statistic == "count" else ", as if their errors were independent"
        return f"{'; '.join(notes)} (95% of the difference of neighbours{means})"

    def _is_apart(self, row: int, other: int) -> bool:
        """Whether the values of two neighbours differ by more than the 95% half-width of their difference."""
        if self.statistic == "quantile":
            (low, high), (least, most) = (self._answer(each).interval() for each in (row, other))
            return bool(high < least or most < low)
        apart = abs(float(self.values[row]) - float(self.values[other]))
        return apart > _Z * self.differ(row, other)

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """The keys, the statistic, both ends of its interval, and what it rests on; null has no name."""
        names = {
            key.name: [_frame_entry(self.entries[row][place]) for row in self.rows]
            for place, key in enumerate(self.keys)
        }
        ends = self.interval()
        found = {
            self.statistic: [_plain(self.values[row]) for row in self.rows],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "basis": [self.basis_of(row) or "measured" for row in self.rows],
        }
        return {**{f"{name}_key" if name in found else name: each for name, each in names.items()}, **found}

    def record(self, place: int, confidence: float, *, quick: bool = False) -> dict[str, object]:
        """A group as a record: its names, its value, its error if it has one, and its interval.

        A `quick` one of a count is the value and so many errors to either side, as that of many counts is.
        """
        row = self.rows[place]
        key, value = [_frame_entry(each) for each in self.entries[row]], _plain(self.values[row])
        error = {} if self.errors is None else {"error": float(self.errors[place])}
        if quick and self.errors is not None:
            half = NormalDist().inv_cdf((1 + confidence) / 2) * float(self.errors[place])
            (low, high), basis = (max(0.0, value - half), max(0.0, value + half)), self.basis
        else:
            (low, high), basis = self._answer(row).interval(confidence), self.basis_of(row)
        found = {"key": key, "value": value, **error, "low": low, "high": high}
        return {**found, "basis": basis} if basis else found

    def basis_of(self, row: int) -> str:
        """What the answer about a group rests on."""
        answer = self._answer(row)
        if isinstance(answer, SumAnswer):
            return answer.answer.basis
        return getattr(answer, "basis", "") or self.basis

    def _answer(self, row: int) -> Any:
        if row not in self._asked:
            checkpoint()
            self._asked[row] = self.ask(row)
        return self._asked[row]

    def __repr__(self) -> str:
        shown = f"{len(self)}" if len(self) == self.total else f"{len(self)} of {self.total:,}"
        return f"Groups({self.statistic} by {', '.join(key.name for key in self.keys)}; {shown} groups)"

    def __str__(self) -> str:
        if not len(self):
            return "no groups"
        notes = [note for note in (self.ranking, self.about) if note]
        return "\n".join([format_excerpt(self._heads, len(self), self._row), *notes])

    def _repr_html_(self) -> str:
        notes = "; ".join(note for note in (self.ranking, self.about) if note)
        rows = shortlist(len(self), self._row)
        return card(repr(self), [], below=[grid(self._heads, rows, left=len(self.keys), note=notes)])

    @property
    def _heads(self) -> tuple[str, ...]:
        return (*(key.name for key in self.keys), self.statistic, "low", "high", "basis")

    def _row(self, number: int) -> Sequence[object]:
        row = self.rows[number]
        shown = show_bounded(self.values[row], self._answer(row).interval())
        return *map(show_entry, self.entries[row]), *shown, self.basis_of(row) or "measured"


_WORDS: Final = {"sum": ("total",), "quantile": ("median",)}
"""Other words for a statistic in the language."""


def show_entry(name: object) -> str:
    """The name of a group as text; special cells stand in parentheses, as a label may be called like one.

    >>> show_entry("Rome"), show_entry(Special.OTHER)
    ('Rome', '(other)')
    """
    return f"({name})" if isinstance(name, Special) else str(name)


def _frame_entry(name: object) -> object:
    if name is Special.NULL:
        return None
    return show_entry(name) if isinstance(name, Special) else name


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_nan(value: object) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _join_places(places: Sequence[int]) -> list[tuple[int, int]]:
    """Places that are alike with the next one as runs: the first and the last place of each."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1] = runs[-1][0], place + 1
        else:
            runs.append((place, place + 1))
    return runs


def _describe_run(run: tuple[int, int]) -> str:
    return f"places {run[0]} {'and' if run[1] == run[0] + 1 else 'to'} {run[1]}"


def order_groups(groups: Groups, order: GroupOrder | None, limit: int | None) -> Groups:
    """The groups as a question of the language orders and cuts them."""
    if order is not None:
        groups = groups.ordered(order.key, descending=order.descending)
    return groups.limited(limit)
