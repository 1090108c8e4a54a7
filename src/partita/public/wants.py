"""What a release is made for: the statistics that are wanted, when nothing else is to be published.

A want is written in the words of the questions, as text or by the functions here; `WANTS` has all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final, overload

from partita.errors import InvalidParameter, check
from partita.numbers import check_probability, integer
from partita.public.grammar import parse_phrase
from partita.public.queries import expressions
from partita.public.queries.queries import Queries
from partita.public.questions import MOST_QUANTILES, Parameter, Phrase, PhraseKind, Type

_COLUMN: Final = Parameter("column", Type.COLUMN)
_BY: Final = Parameter("by", Type.COLUMN, default=None)


@final
@dataclass(frozen=True, eq=False, repr=False)
class WantKind(PhraseKind):
    """A kind of want."""

    def __call__(self, **arguments: Any) -> Want:
        """A want of this kind; what is left out has its default."""
        return Want(self, self.complete(arguments))


@final
@dataclass(frozen=True)
class Want(Phrase):
    """One statistic that is wanted.

    >>> median("salary"), mean("delay", by="dest")
    (Want(median of salary), Want(mean of delay by dest))
    """

    kind: WantKind

    def __repr__(self) -> str:
        return f"Want({self})"

    @property
    def column(self) -> str:
        """The column that it is about."""
        return str(self["column"])

    @property
    def by(self) -> str | None:
        """The column whose groups are told apart, if any."""
        found: str | None = self.arguments.get("by")
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs, the group first."""
        return (self.column,) if self.by is None else (self.by, self.column)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Of quantiles, the shares of the rows below them; none for another kind."""
        if self.kind is QUANTILE:
            return (Fraction(self["q"]),)
        if self.kind is QUANTILES:
            number = int(self["number"])
            return tuple(Fraction(place, number + 1) for place in range(1, number + 1))
        return ()


QUANTILE: Final = WantKind(
    "quantile",
    {
        "quantile {q} of {column}": "quantile 0.9 of salary",
        "median of {column}": "median of salary",
    },
    (_COLUMN, Parameter("q", Type.SHARE, default=Fraction(1, 2))),
)
QUANTILES: Final = WantKind(
    "quantiles",
    {"{number} quantiles of {column}": "9 quantiles of salary"},
    (_COLUMN, Parameter("number", Type.NUMBER)),
)


def _summary_kind(name: str, example: str) -> WantKind:
    return WantKind(name, {f"{name} of {{column}} [by {{by}}]": example}, (_COLUMN, _BY))


TOTAL: Final = _summary_kind("total", "total of cost")
MEAN: Final = _summary_kind("mean", "mean of delay by dest")
VARIANCE: Final = _summary_kind("variance", "variance of delay")
RANGES: Final = WantKind("ranges", {"ranges of {column}": "ranges of age"}, (_COLUMN,))

WANTS: Final[Mapping[str, WantKind]] = {
    kind.name: kind for kind in (QUANTILE, QUANTILES, TOTAL, MEAN, VARIANCE, RANGES)
}
"""Every kind of want by its name."""


def median(column: str) -> Want:
    """The value that half of the rows do not exceed."""
    return quantile(column, Fraction(1, 2))


def quantile(column: str, q: object) -> Want:
    """The value that a share q of the rows do not exceed."""
    return QUANTILE(column=_check_column(column), q=Fraction(check_probability(q, "q")))


def quantiles(column: str, number: int) -> Want:
    """That many values, between which equally many rows lie: 3 are quartiles, 9 are deciles."""
    return QUANTILES(
        column=_check_column(column), number=integer(number, "number", low=1, high=MOST_QUANTILES)
    )


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
        raise InvalidParameter("wants", error.rule, given=text, fix=error.fix) from None
    return kind(**arguments)


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
