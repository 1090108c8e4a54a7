"""What rows are grouped by: columns, units of the calendar, bins, and public breaks.

    "dest"                          each label, or each value of a column that has few
    month("when")                   also year, quarter, week, day, weekday and hour, on the column's clock
    bins("age", 12)                 as many bins of equally many cells
    breaks("age", [18, 65])         up to 17, 18 to 64, 65 and more
    level("place", "county")        the nodes of one level above labels

This module loads no NumPy: a bad question on the command line is refused at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from partita.errors import InvalidParameter, check
from partita.numbers import integer

if TYPE_CHECKING:
    from partita.domain.calendar import Unit

UNITS: Final[tuple[Unit, ...]] = ("year", "quarter", "month", "week", "day", "weekday", "hour")
MOST_KEYS: Final = 6
"""Of a question: each multiplies the groups."""

MOST_BREAKS: Final = 1000


@final
@dataclass(frozen=True)
class GroupKey:
    """A column, or a unit of its calendar, bins of it, the values at which its groups begin, or a level."""

    column: str
    unit: Unit | None = None
    bins: int | None = None
    breaks: tuple[Any, ...] = ()
    level: str | int | None = None

    @property
    def name(self) -> str:
        """What the key is called in tables: the column, or the unit or level and the column."""
        within = f"level {self.level}" if isinstance(self.level, int) else self.level or self.unit
        return self.column if within is None else f"{within}({self.column})"

    def __repr__(self) -> str:
        return f"GroupKey({self})"

    def __str__(self) -> str:
        return self.text(str)

    def text(self, word: Any) -> str:
        """The key as the grammar reads it; `word` puts quotes where they are needed."""
        column = word(self.column)
        if self.unit is not None:
            return f"{self.unit}({column})"
        if self.bins is not None:
            return f"bins({column}, {self.bins})"
        if self.level is not None:
            return f"level({column}, {word(str(self.level))})"
        values = "".join(f", {word(str(each))}" for each in self.breaks)
        return f"breaks({column}{values})" if self.breaks else str(column)


@final
@dataclass(frozen=True)
class GroupOrder:
    """By which key, or by the statistic, groups are ordered; `key` names either."""

    key: GroupKey
    descending: bool = False

    def text(self, word: Any) -> str:
        """The order as the grammar reads it."""
        return f"{self.key.text(word)}{' desc' * self.descending}"


def read_key(given: object) -> GroupKey:
    """A key, or a column by its name."""
    if isinstance(given, GroupKey):
        return given
    if isinstance(given, str) and given:
        return GroupKey(given)
    fix = 'pass for example "dest", or pt.month("when")'
    raise InvalidParameter(
        "group", "must be by names of columns, or by keys made of them", given=given, fix=fix
    )


def check_keys(keys: Iterable[GroupKey]) -> tuple[GroupKey, ...]:
    """The keys, if they are at least one, few, and have different names."""
    listed = tuple(keys)
    rule, fix = f"must be by 1 to {MOST_KEYS} keys", 'pass for example "dest"'
    check(1 <= len(listed) <= MOST_KEYS, "group", rule, given=len(listed), fix=fix)
    for place, key in enumerate(listed):
        repeated = key.name in [other.name for other in listed[:place]]
        check(not repeated, "group", "must name each key once", given=key.name, fix="leave one of them out")
    return listed


def bins(column: str, number: int) -> GroupKey:
    """Groups of equally many cells of a column, as in `Release.histogram`: their ends do not depend on data.

    >>> bins("age", 12)
    GroupKey(bins(age, 12))
    """
    return GroupKey(_check_column(column), bins=integer(number, "bins", low=1, high=2**20))


def breaks(column: str, values: Iterable[object]) -> GroupKey:
    """Groups of a column, a new one at each of these values.

    Values below the first are a group of their own, unless it is the lower bound of the column, and the last
    has everything above.

    >>> breaks("age", [18, 65])
    GroupKey(breaks(age, 18, 65))
    """
    fix = "pass for example [0, 18, 65]"
    given: object = values
    listed = tuple(values) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    rule = f"must be a list of 1 to {MOST_BREAKS:,} values"
    check(1 <= len(listed) <= MOST_BREAKS, "breaks", rule, given=len(listed), fix=fix)
    return GroupKey(_check_column(column), breaks=listed)


def level(column: str, name: str | int) -> GroupKey:
    """The nodes of one level of a column whose labels lie below nodes, by name or by number from the top.

    >>> level("place", "county"), level("place", 0)
    (GroupKey(level(place, county)), GroupKey(level(place, 0)))
    """
    fix = 'pass for example "county", or 0 for the top'
    named = isinstance(name, str) and bool(name)
    valid = named or (isinstance(name, int) and not isinstance(name, bool) and name >= 0)
    check(valid, "level", "must be the name or the number of a level", given=name, fix=fix)
    return GroupKey(_check_column(column), level=name)


def year(column: str) -> GroupKey:
    """The years of a column of dates or times: 2013, 2014, ..."""
    return GroupKey(_check_column(column), unit="year")


def quarter(column: str) -> GroupKey:
    """The quarters of a column of dates or times: 2013-Q1, 2013-Q2, ..."""
    return GroupKey(_check_column(column), unit="quarter")


def month(column: str) -> GroupKey:
    """The months of a column of dates or times, each of its year: 2013-01, 2013-02, ..."""
    return GroupKey(_check_column(column), unit="month")


def week(column: str) -> GroupKey:
    """The weeks of a column of dates or times by ISO 8601, from Monday to Sunday: 2013-W01, 2013-W02, ..."""
    return GroupKey(_check_column(column), unit="week")


def day(column: str) -> GroupKey:
    """The days of a column of dates or times."""
    return GroupKey(_check_column(column), unit="day")


def weekday(column: str) -> GroupKey:
    """The days of the week of a column of dates or times, from Monday to Sunday."""
    return GroupKey(_check_column(column), unit="weekday")


def hour(column: str) -> GroupKey:
    """The hours of the day of a column of times, from 0 to 23 on the clock of its zone."""
    return GroupKey(_check_column(column), unit="hour")


def _check_column(column: object) -> str:
    if isinstance(column, str) and column:
        return column
    raise InvalidParameter("column", "must name a column", given=column, fix='pass for example "when"')
