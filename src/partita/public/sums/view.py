"""The view of a summed column by its keys, and what counts of the same release say about the keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar, final

import numpy as np

from partita.answer import Answer
from partita.arrays import Floats
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import Guarantee, rows_changed
from partita.public.base import view_card
from partita.public.boxes.plan import Corners
from partita.public.boxes.regions import PublicRegion
from partita.public.conditions import Where
from partita.public.results import AnyView
from partita.public.sums.base import Ratio, SumAnswer
from partita.public.sums.group_means import GroupMeansRelease
from partita.public.sums.level_trees import LevelTreesRelease
from partita.public.sums.log_tree import LogTreeRelease
from partita.public.sums.totals import KnotTotalRelease
from partita.public.views import BoxView, View, find_boxes, find_view, keep_ordinary


@final
@dataclass(frozen=True, eq=False, repr=False)
class ViewKeyCounts:
    """Counts of boxes of positions along the axes of some columns, as one view has released them."""

    view: AnyView
    keys: tuple[str, ...]

    @staticmethod
    def of_sums(views: Sequence[AnyView], keys: tuple[str, ...], column: str) -> ViewKeyCounts | None:
        """The counts of the view of fewest columns that has all keys of the sums of a column.

        None if there is no key, if the column is its own key, or if no such counts were released: then the
        sums do without.
        """
        if keys in ((), (column,)) or not any(set(keys) <= set(view.columns) for view in views):
            return None
        return ViewKeyCounts(find_view(views, keys), keys)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the keys, special cells included."""
        declared = dict(zip(self.view.columns, self.view.domains, strict=True))
        return tuple(Axis.of(declared[key]) for key in self.keys)

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """How many rows are in each box, given by a row of lowest and a row of highest positions."""
        if isinstance(self.view, BoxView):
            return self.view.boxes.counts(*self._extend(self.view, lows, highs))
        return _count_ranges(self.view, self.axes[0], lows[:, 0], highs[:, 0])

    def __repr__(self) -> str:
        return f"KeyCounts({', '.join(self.keys)})"

    def _extend(self, view: BoxView, lows: Corners, highs: Corners) -> tuple[Corners, Corners]:
        """The same boxes over all columns of the view, whole along those that are not keys."""
        ends = (np.array(corner, np.uint64) for corner in view.boxes.everything[:2])
        low, high = (np.tile(corner, (len(lows), 1)) for corner in ends)
        places = [view.columns.index(key) for key in self.keys]
        low[:, places], high[:, places] = lows, highs
        return low, high


def _count_ranges(view: View, axis: Axis, lows: Corners, highs: Corners) -> Floats:
    """Counts of ranges of positions along the one axis of a view, special cells included."""
    first, last = np.uint64(axis.before), np.uint64(axis.before + axis.size - 1)
    starts, ends = np.maximum(lows, first), np.minimum(highs, last)
    there = starts <= ends
    ordinary = view.axis.counts(np.where(there, starts - first, 0), np.where(there, ends - first, 0))
    counts = np.where(there, ordinary, 0.0)
    for name, place in Axis.specials(view.domain).items():
        counts += view.specials.value(name) * ((lows <= place) & (highs >= place))
    return counts


Sums: TypeAlias = LevelTreesRelease | LogTreeRelease | KnotTotalRelease | GroupMeansRelease
Found = TypeVar("Found")


def refuse_region(column: str, columns: Sequence[str]) -> NoReturn:
    """Say what to publish for the sum of a column over a shape of some columns."""
    by = ", ".join(map(repr, columns))
    rule = f"must be about columns by which {column!r} was summed together"
    weight = f"weights(({by}), lambda ...: ..., bound=1)"
    fix = f"publish with by=[{by}], sums=[{column!r}], or with queries={weight} * value({column!r})"
    raise InvalidParameter("region", rule, given=by, fix=fix)


def sum_name(column: str, keys: Sequence[str]) -> str:
    """The name of a view of sums; the names of its series in a file begin with it.

    >>> sum_name("salary", ["age", "region"]), sum_name("salary", [])
    ('sum of salary by age x region', 'sum of salary')
    """
    return f"sum of {column} by {' x '.join(keys)}" if keys else f"sum of {column}"


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SumView:
    """A summed column, its keys, and what was released about them.

    A question names some of the keys; without any it is about all rows. If the only key is the summed column
    itself, questions are about sums between two of its values. `beside` is what the counts of the same
    release say about the keys.
    """

    keys: tuple[str, ...]
    column: str
    declared: Mapping[str, Domain]
    sums: Sums
    beside: ViewKeyCounts | None
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        fix = "get the file again"
        declared = set(self.declared) == {*self.keys, self.column} and len(set(self.keys)) == len(self.keys)
        check_release(declared, "sums", "must have a domain for each column", fix=fix)
        suits = self.sums.own_key == (self.keys == (self.column,))
        check_release(suits, "sums", "must be of a kind that suits their keys", fix=fix)
        fits = self.sums.keys == tuple(map(Axis.of, self.domains))
        check_release(fits, "sums", "must have the cells of their domains", fix=fix)

    def __repr__(self) -> str:
        return f"SumView({self.name}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, self.declared, released=self.name)

    @property
    def name(self) -> str:
        """The summed column and its keys in words."""
        return sum_name(self.column, self.keys)

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys, which are what a question may name."""
        return self.keys

    @property
    def domain(self) -> Domain:
        """The domain of the summed column."""
        return self.declared[self.column]

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains of the keys."""
        return tuple(self.declared[key] for key in self.keys)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.sums.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the sums have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or promise.epsilon >= self.sums.spent * rows_changed(
            promise.neighbors, promise.contributions
        )

    @property
    def needs_counts(self) -> bool:
        """Whether counts of the keys belong to it, which say how rows lie where the keys are cut."""
        return self.sums.reads_counts and self.keys not in ((), (self.column,))

    @property
    def statistic(self) -> str:
        """What was released, in a word: sums, nothing but means, or nothing but totals."""
        return self.sums.statistic

    @property
    def moments(self) -> bool:
        """Whether variances can be asked for."""
        return self.sums.moments

    @property
    def total(self) -> Answer:
        """How many rows there are: with a number, and without."""
        return Answer.together([self._ask(each, {}) for each in (self.sums.count, self.sums.nulls)])

    @property
    def specials(self) -> Mapping[str, Answer]:
        """How many rows of the summed column are below or above its bounds, invalid, and null, if counted."""
        return self.sums.specials

    def sum(self, asked: Where) -> SumAnswer:
        """The sum of the column over the rows that have the keys asked for."""
        rule, fix = "must be summed, and only its means were released", "publish its sums"
        check(self.sums.statistic != "means", "column", rule, given=self.column, fix=fix)
        return self._ask(self.sums.sum, asked)

    def sum_in(self, shape: PublicRegion, asked: Where) -> SumAnswer:
        """The sum of the column over the rows in a public shape, and in the cells asked for.

        Special cells of the columns of the shape lie outside of it.
        """
        if not (isinstance(self.sums, LevelTreesRelease) and set(shape.columns) <= set(self.keys)):
            refuse_region(self.column, shape.columns)
        keys = {key: self.declared[key] for key in self.keys}
        boxes = [*keep_ordinary(keys, shape.columns, find_boxes(keys, asked))]
        return self.sums.sum_in(shape.bound(self.keys, self.domains), boxes, self.beside)

    def mean(self, asked: Where) -> Ratio:
        """The mean of the column over the rows that have the keys asked for."""
        return self._ask(self.sums.mean, asked)

    def variance(self, asked: Where) -> Ratio:
        """The variance of the column over the rows that have the keys asked for."""
        self._check_moments()
        return self._ask(self.sums.variance, asked)

    def std(self, asked: Where) -> Ratio:
        """The standard deviation of the column over the rows that have the keys asked for."""
        self._check_moments()
        return self._ask(self.sums.std, asked)

    def _ask(self, what: Callable[..., Found], asked: Where) -> Found:
        """Answer a question about boxes of the keys, with the counts of the keys if there are any."""
        return what(find_boxes({key: self.declared[key] for key in self.keys}, asked), self.beside)

    def _check_moments(self) -> None:
        rule = "must have moments for a variance, and sums are all that was released of it"
        fix = f"publish with moments=[{self.column!r}]"
        check(self.moments, "column", rule, given=self.column, fix=fix)
