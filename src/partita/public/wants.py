"""What a release is made for: the statistics that are wanted, when nothing else is to be published.

A want is written in the words of the questions, as text or by the functions here; `WANTS` has all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, final, overload

from partita.domain.base import Special
from partita.errors import InvalidParameter, check, check_arguments, check_bool
from partita.numbers import check_probability, integer
from partita.public.conditions import AllOf, Either, Ends, Not, OneOf, Range, Where, parse_conditions
from partita.public.grammar import parse_phrase, parse_where
from partita.public.queries import expressions
from partita.public.queries.queries import Queries
from partita.public.questions import (
    MOST_QUANTILES,
    QUARTILES,
    USUAL_BOUNDS,
    Parameter,
    Phrase,
    PhraseKind,
    Type,
    write_conditions,
)

_COLUMN: Final = Parameter("column", Type.COLUMN)
_BY: Final = Parameter("by", Type.COLUMN, default=None)
_INTERVAL: Final = Parameter("interval", Type.FLAG, default=False)


@final
@dataclass(frozen=True, eq=False, repr=False)
class WantKind(PhraseKind):
    """A kind of want."""

    def __call__(self, **arguments: Any) -> Want:
        """A want of this kind; what is left out has its default."""
        return Want(self, self.complete(arguments))


@final
@check_arguments
@dataclass(frozen=True)
class Want(Phrase):
    """One statistic that is wanted.

    >>> median("salary"), mean("delay", by="dest")
    (Want(median of salary), Want(mean of delay by dest))
    """

    kind: WantKind

    def __repr__(self) -> str:
        return f"Want({self})"

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def column(self) -> str:
        """The column that it is about; of a share, its conditions as text."""
        return str(self["column"]) if "column" in self.arguments else write_conditions(self.where)

    @property
    def where(self) -> Where:
        """Of a share, the conditions that rows meet; none for another kind."""
        found: Where = self.arguments.get("where", {})
        return found

    @property
    def by(self) -> str | None:
        """The column whose groups are told apart, if any."""
        found: str | None = self.arguments.get("by")
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs, the group first."""
        about = tuple(self.where) or (self.column,)
        return about if self.by is None else (self.by, *about)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Of quantiles, the shares of the rows below them; none for another kind."""
        if self.kind is QUANTILE:
            return (Fraction(self["q"]),)
        if self.kind is QUANTILES:
            number = int(self["number"])
            return tuple(Fraction(place, number + 1) for place in range(1, number + 1))
        return QUARTILES if self.kind is INTERQUARTILE_RANGE else ()

    @property
    def interval(self) -> bool:
        """Whether an interval of values around each quantile is bought, too."""
        return bool(self.arguments.get("interval", False))


QUANTILE: Final = WantKind(
    "quantile",
    {
        "quantile {q} of {column} [with {interval}]": "quantile 0.9 of salary",
        "median of {column} [with {interval}]": "median of salary with interval",
    },
    (_COLUMN, Parameter("q", Type.SHARE, default=Fraction(1, 2)), _INTERVAL),
)
QUANTILES: Final = WantKind(
    "quantiles",
    {"{number} quantiles of {column} [with {interval}]": "9 quantiles of salary"},
    (_COLUMN, Parameter("number", Type.NUMBER), _INTERVAL),
)


def _summary_kind(name: str, example: str) -> WantKind:
    return WantKind(name, {f"{name} of {{column}} [by {{by}}]": example}, (_COLUMN, _BY))


TOTAL: Final = _summary_kind("total", "total of cost")
MEAN: Final = _summary_kind("mean", "mean of delay by dest")
VARIANCE: Final = _summary_kind("variance", "variance of delay")
RANGES: Final = WantKind("ranges", {"ranges of {column}": "ranges of age"}, (_COLUMN,))
SHARE: Final = WantKind(
    "share",
    {"share where {where} [by {by}]": "share where delay >= 15 by dest"},
    (Parameter("where", Type.CONDITIONS), _BY),
)
BOUNDS: Final = WantKind(
    "bounds",
    {"bounds of {column} [without {without}]": "bounds of cost without 0.001"},
    (_COLUMN, Parameter("without", Type.SHARE, default=USUAL_BOUNDS)),
)
TRIMMED_MEAN: Final = WantKind(
    "trimmed_mean",
    {"trimmed mean {share} of {column}": "trimmed mean 0.05 of salary"},
    (_COLUMN, Parameter("share", Type.SHARE)),
)
TOP_SHARE: Final = WantKind(
    "top_share",
    {"top share {share} of {column}": "top share 0.1 of income"},
    (_COLUMN, Parameter("share", Type.SHARE)),
)
GINI: Final = WantKind("gini", {"gini of {column}": "gini of income"}, (_COLUMN,))
INTERQUARTILE_RANGE: Final = WantKind(
    "interquartile_range",
    {"interquartile range of {column} [with {interval}]": "interquartile range of cost"},
    (_COLUMN, _INTERVAL),
)

WANTS: Final[Mapping[str, WantKind]] = {
    kind.name: kind
    for kind in (
        QUANTILE,
        QUANTILES,
        INTERQUARTILE_RANGE,
        BOUNDS,
        TOTAL,
        MEAN,
        VARIANCE,
        SHARE,
        TRIMMED_MEAN,
        TOP_SHARE,
        GINI,
        RANGES,
    )
}
"""Every kind of want by its name."""


def median(column: str, *, interval: bool = False) -> Want:
    """The value that half of the rows do not exceed; `interval` as in `quantile`."""
    return quantile(column, Fraction(1, 2), interval=interval)


def quantile(column: str, q: object, *, interval: bool = False) -> Want:
    """The value that a share q of the rows do not exceed.

    `interval` buys values between which the true one lies with 95%, for 2/5 of the epsilon of all quantiles
    of the column, and all of them then have one.

    >>> quantile("salary", 0.9, interval=True)
    Want(quantile 9/10 of salary with interval)
    """
    share = Fraction(check_probability(q, "q"))
    return QUANTILE(column=_check_column(column), q=share, interval=check_bool(interval, "interval"))


def quantiles(column: str, number: int, *, interval: bool = False) -> Want:
    """That many values, between which equally many rows lie: 3 are quartiles, 9 are deciles.

    `interval` is as in `quantile`.
    """
    checked = integer(number, "number", low=1, high=MOST_QUANTILES)
    return QUANTILES(column=_check_column(column), number=checked, interval=check_bool(interval, "interval"))


def interquartile_range(column: str, *, interval: bool = False) -> Want:
    """How far the quartiles lie apart: the quantile 3/4 less that of 1/4; `interval` as in `quantile`."""
    return INTERQUARTILE_RANGE(column=_check_column(column), interval=check_bool(interval, "interval"))


def trimmed_mean(column: str, share: object) -> Want:
    """The mean of the rows that are left without this share of them at each end, which is below one half.

    >>> trimmed_mean("salary", 0.05)
    Want(trimmed mean 1/20 of salary)
    """
    return check_trim(TRIMMED_MEAN(column=_check_column(column), share=check_probability(share, "share")))


def top_share(column: str, share: object) -> Want:
    """The part of the total that this share of the rows hold, those with the largest values.

    >>> top_share("income", 0.1)
    Want(top share 1/10 of income)
    """
    return TOP_SHARE(column=_check_column(column), share=check_probability(share, "share"))


def gini(column: str) -> Want:
    """The Gini index of a column without negative values: 0 if all rows are equal, near 1 if one has all."""
    return GINI(column=_check_column(column))


def bounds(column: str, without: object = USUAL_BOUNDS) -> Want:
    """Two values between which all rows lie but for a share, half of it at each end.

    They make bounds that may be public, for a column whose scale nobody knows: the schema declares a range
    that is surely wide enough, and later releases the one that was found.

    >>> bounds("cost", 0.001)
    Want(bounds of cost without 1/1000)
    """
    return BOUNDS(column=_check_column(column), without=check_probability(without, "without"))


def share(
    where: Where | None = None, *, by: str | None = None, closed: Ends = "both", **columns: object
) -> Want:
    """The share of the rows that meet conditions, of all rows or by the groups of another column.

    Conditions are those of `Release.count`. A row that has no value does not meet a range.

    >>> share(delay=(15, None), by="dest"), share({"region": "north"})
    (Want(share where delay >= 15 by dest), Want(share where region = north))
    """
    conditions = _check_together(parse_conditions(where, columns, closed))
    given = {name: _write_condition(each) for name, each in conditions.items()}
    text, fix = write_conditions(given), "pass for example delay=(15, None)"
    check(text, "where", "must have a condition that some rows do not meet", given="none", fix=fix)
    rule = "must name another column than those of the conditions"
    check(by is None or by not in given, "by", rule, given=by, fix="leave it out, or name another")
    return SHARE(where=parse_where(text), by=None if by is None else _check_column(by))


@overload
def total() -> Queries: ...


@overload
def total(column: str, *, by: str | None = None) -> Want: ...


def total(column: str | None = None, *, by: str | None = None) -> Queries | Want:
    """The sum of a column, of all rows or by the groups of another; without a column the number of rows.

    >>> total("cost", by="region"), total()
    (Want(total of cost by region), total())
    """
    if column is None:
        check(by is None, "by", "needs a column to add up", given=by, fix='pass total("cost", by="region")')
        return expressions.Total()
    return TOTAL(column=_check_column(column), by=_check_group(by, column))


def mean(column: str, *, by: str | None = None) -> Want:
    """The mean of a column, of all rows or by the groups of another."""
    return MEAN(column=_check_column(column), by=_check_group(by, column))


def variance(column: str, *, by: str | None = None) -> Want:
    """The variance of a column and its standard deviation, of all rows or by the groups of another."""
    return VARIANCE(column=_check_column(column), by=_check_group(by, column))


def parse_want(text: str) -> Want:
    """The want that `text` says.

    >>> parse_want("9 quantiles of salary"), parse_want("total of 'paid cost' by region")
    (Want(9 quantiles of salary), Want(total of 'paid cost' by region))
    """
    try:
        kind, arguments = parse_phrase(text, WANTS.values(), example="median of salary")
    except InvalidParameter as error:
        named = "" if error.parameter == "question" else f"must be readable: {error.parameter} "
        rule = named + error.rule
        raise InvalidParameter("wants", rule, given=text, fix=error.fix) from None
    _check_together(arguments.get("where", {}))
    return check_trim(kind(**arguments))


def read_want(given: object) -> Want:
    """A want from itself, from its text, or from the query `ranges(column)`."""
    if isinstance(given, Want):
        return given
    if isinstance(given, str):
        return parse_want(given)
    if isinstance(given, expressions.Steps) and given.step is None:
        return RANGES(column=given.column)
    fix = 'pass for example [pt.median("salary"), "total of cost"], or queries= for other queries'
    raise InvalidParameter("wants", "must be wants, or their texts", given=given, fix=fix)


def _check_together(where: Where) -> Where:
    """Conditions that hold together: a share is counted column by column, and joins none by `or`."""
    rule, fix = "must not join conditions on several columns with `or`", "want a share for each part"
    check(not isinstance(where, Either), "where", rule, given="`or`", fix=fix)
    return where


def _write_condition(condition: object) -> object:
    """A condition whose values are text, as the grammar has them."""
    match condition:
        case Special():
            return condition
        case Range(low=low, high=high, closed=closed):
            first, last = (None if end is None else _write_value(end) for end in (low, high))
            return Range(first, last, closed)
        case OneOf(values) | list(values) if values:
            return OneOf(tuple(map(_write_condition, values)))
        case AllOf(conditions):
            return AllOf(tuple(map(_write_condition, conditions)))
        case Not(opposite):
            return Not(_write_condition(opposite))
    return _write_value(condition)


def _write_value(value: object) -> str:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, date):
        return plain.isoformat()
    if isinstance(plain, str | int | float | Decimal | Fraction):
        return str(plain)
    fix = 'pass for example delay=(15, None), or region="north"'
    raise InvalidParameter("where", "must have numbers, text or dates as values", given=value, fix=fix)


def check_trim(want: Want) -> Want:
    """Refuse a trimmed mean of nothing."""
    if want.kind is TRIMMED_MEAN:
        rule, fix = "must be below one half, as it is taken away at both ends", "pass for example 0.05"
        check(want["share"] < Fraction(1, 2), "share", rule, given=str(want["share"]), fix=fix)
    return want


def _check_column(column: object) -> str:
    if isinstance(column, str) and column:
        return column
    raise InvalidParameter("column", "must name a column", given=column, fix='pass for example "salary"')


def _check_group(by: object, column: str) -> str | None:
    if by is None:
        return None
    rule, fix = "must name another column than the one it is about", "leave it out, or name another"
    check(by != column, "by", rule, given=by, fix=fix)
    return _check_column(by)
