"""A subset of SQL, translated into questions of the language: no inference of its own.

    select   := SELECT item {, item} FROM release [WHERE condition] [GROUP BY key {, key}]
                [ORDER BY term [ASC | DESC] {, ...}] [LIMIT n] [;]
    item     := (key | statistic) [[AS] name]
    statistic:= count(*) | sum(c) | avg(c) | median(c) | quantile(c, q) | variance(c) | stddev(c)
    key      := c | year(c) | quarter(c) | month(c) | week(c) | day(c) | dayname(c) | hour(c)
                | date_trunc('month', c) | bins(c, n) | breaks(c, value, ...) | level(c, value)
    condition:= c (= | <> | < | <= | > | >=) value | c [NOT] BETWEEN value AND value | c [NOT] IN (value, ...)
                | c IS [NOT] NULL | NOT condition | condition (AND | OR) condition | (condition)
    term     := the place of an item in the list | its name | the item itself; so are keys behind GROUP BY

A column c is a word or stands in double quotes; a value is a number or stands in single quotes, perhaps
behind DATE or TIMESTAMP. Each statistic is one question; all are asked by the same keys, and joined by them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias, final

from partita.errors import InvalidParameter, check
from partita.frames import Tabular
from partita.html import card, grid, shortlist, show_bounded
from partita.public.keys import UNITS

if TYPE_CHECKING:
    from partita.public.groups import Groups
    from partita.public.questions import Question
    from partita.public.release import Release

_LONGEST: Final = 10_000  # characters, as of a question
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")
          |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<word>[^\W\d]\w*)
          |(?P<sign><=|>=|<>|!=|[^\s\w'"]))""",
    re.VERBOSE,
)
_WORDS: Final = (
    *("select", "from", "where", "group", "order", "limit", "by", "as", "and", "or", "not", "in", "between"),
    *("is", "null", "asc", "desc"),
)
_COMPARISONS: Final = {"=": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_STATISTICS: Final = {
    "sum": "sum",
    "avg": "mean",
    "mean": "mean",
    "median": "median",
    "variance": "variance",
    "var_pop": "variance",
    "stddev": "std",
    "stddev_pop": "std",
}
_QUANTILES: Final = ("quantile", "quantile_disc")
_UNITS: Final[dict[str, str]] = {**{unit: unit for unit in UNITS}, "dayname": "weekday"}
_DEEPEST: Final = 20  # parentheses inside of each other
_CUTS: Final = ("bins", "breaks", "level")
_MOST_ASKED: Final = 200  # counts whose intervals are those of single answers: some milliseconds each
_SUBSET: Final = (
    "select keys, count(*), sum, avg, median, quantile(column, 0.9), variance or stddev from release, "
    "with where, group by, order by and limit"
)
_REFUSED: Final = {
    "distinct": "group by the column",
    "having": "limit the list, or filter the result",
    "join": "register the release in DuckDB, and join its relations there",
    "union": "ask two statements",
    "with": "ask one statement",
    "case": "ask by values or ranges in where",
    "over": "compute it from the result",
    "offset": "limit the list",
    "filter": "put the condition into where, and ask one statement for each",
    "extract": "group by month(column) or date_trunc('month', column)",
    "all": "name the keys",
    "rollup": "ask one statement for each set of keys",
    "cube": "ask one statement for each set of keys",
    "corr": "ask release.correlation, or `partita query` for correlation of x, y",
    "regr_slope": "ask release.regression, or `partita query` for regression of y on x",
    "cast": "write values as the column has them",
    "if": "ask by values or ranges in where",
    "quantile_cont": "write quantile(column, 0.9)",
    "percentile_cont": "write quantile(column, 0.9)",
    "approx_quantile": "write quantile(column, 0.9)",
    "like": "use in (...) with the labels",
    "ilike": "use in (...) with the labels",
    "exists": "ask one statement",
    "min": "ask for quantile(column, 0.01): a single row decides a minimum",
    "max": "ask for quantile(column, 0.99): a single row decides a maximum",
}
"""Parts of SQL that are not here, and what to do instead."""
_REFUSED_SIGNS: Final = {
    "comments and arithmetic": (("-",), "leave comments out, and compute from the result"),
    "arithmetic": (("+", "*", "/", "%", "||"), "compute it from the result"),
    "names of tables": ((".",), "write columns alone: there is one table, and no join"),
}


@final
@dataclass(frozen=True)
class SqlKey:
    """What rows are grouped by: a column, or a unit of its calendar, bins, breaks or a level of it."""

    column: str
    function: str = ""
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As a column of the result."""
        if self.function == "level" and self.others:
            level = self.others[0].strip("'")
            return f"{level}({self.column})"
        return f"{self.function}({self.column})" if self.function else self.column

    def __str__(self) -> str:
        inside = ", ".join([_quote(self.column), *self.others])
        return f"{self.function}({inside})" if self.function else inside


@final
@dataclass(frozen=True)
class SqlStatistic:
    """A number that is asked for: the words of the language, and its name as a column of the result."""

    words: str
    name: str

    def __str__(self) -> str:
        return self.words


@final
@dataclass(frozen=True)
class Item:
    """An item of the list, under the name that it has in the result."""

    what: SqlKey | SqlStatistic
    name: str


@final
@dataclass(frozen=True)
class Statement:
    """A parsed statement; `order` are places in the list, and whether each goes down."""

    items: tuple[Item, ...]
    where: str = ""
    keys: tuple[SqlKey, ...] = ()
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None

    @property
    def statistics(self) -> list[SqlStatistic]:
        """What is asked for, each once."""
        return list(dict.fromkeys(each.what for each in self.items if isinstance(each.what, SqlStatistic)))

    @property
    def heads(self) -> list[tuple[str, ...]]:
        """The columns of each item in the result: of a statistic the value and both ends of its interval."""
        several = len(self.statistics) > 1
        ends = [
            (f"{each.name}_low", f"{each.name}_high") if several else ("low", "high") for each in self.items
        ]
        return [
            (each.name, *two) if isinstance(each.what, SqlStatistic) else (each.name,)
            for each, two in zip(self.items, ends, strict=True)
        ]

    def question(self, statistic: SqlStatistic) -> str:
        """A statistic in the words of the language."""
        by = f" by {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"{statistic}{by}{f' where {self.where}' if self.where else ''}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class SqlResult(Tabular):
    """The answer to a statement: items in their order, and a 95% interval beside each statistic.

    Of one statistic the ends are `low` and `high`, of several `NAME_low` and `NAME_high`. Those of more than
    200 counts are the value and so many standard errors to either side, never below zero. `questions` are
    those of the language that were asked. `notes` say what numbers would mislead without, and are printed
    first: values that a sum leaves out, rows in no group, neighbours in an order that cannot be told apart.
    """

    columns: Mapping[str, Sequence[Any]]
    questions: tuple[Question, ...] = ()
    notes: tuple[str, ...] = ()

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """The columns."""
        return self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"SqlResult({', '.join(self.columns)}; {len(self)} rows)"

    def __str__(self) -> str:
        from partita.public.base import format_excerpt

        shown = format_excerpt(tuple(self.columns), len(self), self.row_texts)
        return "\n".join([*self.notes, shown])

    def _repr_html_(self) -> str:
        rows = shortlist(len(self), self.row_texts)
        table = grid(tuple(self.columns), rows, note="; ".join(self.notes))
        return card(f"SqlResult({len(self)} rows)", [], below=[table])

    def row_texts(self, number: int) -> list[str]:
        """A row for people: statistics and their ends with the digits that their intervals support."""
        heads, entries = list(self.columns), [each[number] for each in self.columns.values()]
        texts = ["" if entry is None else str(entry) for entry in entries]
        for place, (low, high) in enumerate(pairwise(heads[1:])):
            name = heads[place]
            if (low, high) in (("low", "high"), (f"{name}_low", f"{name}_high")):
                value, *ends = entries[place : place + 3]
                texts[place : place + 3] = show_bounded(value, (ends[0], ends[1]))
        return texts


def run_sql(release: Release, text: str, confidence: float = 0.95) -> SqlResult:
    """Translate a statement, ask its questions, and put their answers together."""
    from partita.public.grammar import parse_question

    statement = parse_sql(text, release.columns)
    asked = {each: parse_question(statement.question(each)) for each in statement.statistics}
    found = {each: question.kind.ask(release, **question.arguments) for each, question in asked.items()}
    columns, notes = (_join_groups if statement.keys else _ask_once)(statement, found, confidence)
    return SqlResult(columns, tuple(asked.values()), tuple(note for note in notes if note))


# --- answers -----------------------------------------------------------------------------------

_Rows: TypeAlias = Mapping[SqlStatistic, Sequence[Mapping[str, Any]]]
"""For each statistic and each row of the result its value, low, high and basis."""


def _ask_once(
    statement: Statement, found: Mapping[SqlStatistic, Any], confidence: float
) -> tuple[dict[str, list[Any]], list[str]]:
    """One row, and notes: of a statement without keys."""
    rows = {each: [_record(answer, confidence)][: statement.limit] for each, answer in found.items()}
    notes = [_describe_covers(each, [answer]) for each, answer in found.items()]
    return _columns(statement, [()][: statement.limit], rows), notes


def _record(answer: Any, confidence: float) -> dict[str, Any]:
    low, high = answer.interval(confidence)
    return {"value": answer.value, "low": low, "high": high, "basis": getattr(answer, "basis", "")}


def _join_groups(
    statement: Statement, found: Mapping[SqlStatistic, Groups], confidence: float
) -> tuple[dict[str, list[Any]], list[str]]:
    """A row for each group, sorted and limited, and notes. All statistics have the same groups.

    NaN, of a mean that is not determinable, comes last in any order.
    """
    first = next(iter(found.values()))
    places = list(range(len(first)))
    for item, falling in reversed(statement.order):
        what = statement.items[item].what
        known = (
            found[what].values
            if isinstance(what, SqlStatistic)
            else _ranks(first, statement.keys.index(what))
        )
        there = [place for place in places if not _is_nan(known[place])]
        missing = [place for place in places if _is_nan(known[place])]
        places = [*sorted(there, key=known.__getitem__, reverse=falling), *missing]
    places = places[: statement.limit]
    rows = {
        each: [groups.record(place, confidence, quick=_is_quick(groups, places)) for place in places]
        for each, groups in found.items()
    }
    entries: list[Any] = [row["key"] for row in rows[statement.statistics[0]]]
    notes = [
        _describe_covers(each, [groups[place] for place in places])
        for each, groups in found.items()
        if groups.statistic != "count"
    ]
    return _columns(statement, entries, rows), [_ranking(statement, found), first.about, *notes]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_quick(groups: Groups, places: Sequence[int]) -> bool:
    """Whether there are so many counts that asking each of them for its interval would take seconds."""
    return groups.statistic == "count" and len(places) > _MOST_ASKED


def _ranks(groups: Groups, key: int) -> list[int]:
    """Where each group stands in the order of one of its keys, which is that of its column."""
    names = list(dict.fromkeys(entry[key] for entry in groups.entries))
    rank = {name: number for number, name in enumerate(names)}
    return [rank[entry[key]] for entry in groups.entries]


def _ranking(statement: Statement, found: Mapping[SqlStatistic, Groups]) -> str:
    """What an order by one statistic can support."""
    if len(statement.order) != 1:
        return ""
    [(item, falling)] = statement.order
    what = statement.items[item].what
    if not isinstance(what, SqlStatistic):
        return ""
    return found[what].ordered(descending=falling).limited(statement.limit).ranking


def _columns(statement: Statement, entries: Sequence[Sequence[Any]], rows: _Rows) -> dict[str, list[Any]]:
    """The columns of the result, in the order of the list; what the answers rest on comes last."""
    from partita.answer import weakest_basis

    columns = dict[str, list[Any]]()
    for item, heads in zip(statement.items, statement.heads, strict=True):
        if isinstance(item.what, SqlKey):
            place = statement.keys.index(item.what)
            columns[item.name] = [entry[place] for entry in entries]
        else:
            for name, entry in zip(heads, ("value", "low", "high"), strict=True):
                columns[name] = [row[entry] for row in rows[item.what]]
    bases = [[row.get("basis", "") for row in each] for each in rows.values()]
    weakest = [weakest_basis(each) for each in zip(*bases, strict=True)]
    return columns | ({"basis": weakest} if any(weakest) else {})


def _describe_covers(statistic: SqlStatistic, answers: Sequence[Any]) -> str:
    """Which values a sum or a mean covers, if not all; of groups that differ, those of the first one."""
    found = [each.covers for each in answers if hasattr(each, "covers")]
    limited = [covers for covers in found if covers.thinning or not covers.everything]
    if not limited:
        return ""
    others = "" if len({str(covers) for covers in found}) == 1 else "; other groups differ"
    return f"{statistic.name} covers {limited[0]}{others}"


# --- the text ----------------------------------------------------------------------------------


class _Token(NamedTuple):
    """A piece of the text, where it starts, counted from 1, and its kind: that of `_TOKEN`, or end."""

    text: str
    place: int
    kind: str

    def says(self, *words: str) -> bool:
        return self.kind in ("word", "sign") and self.text.lower() in words


def parse_sql(text: str, columns: Sequence[str] = ()) -> Statement:
    """The statement that a text is. `columns` are known: capitals do not matter, where that is clear.

    >>> statement = parse_sql("select dest, count(*) as n from release where delay > 15 group by dest")
    >>> statement.question(statement.statistics[0])
    "count by 'dest' where 'delay' > 15"
    """
    check(isinstance(text, str), "sql", "must be text", given=text, fix=_SUBSET)
    rule = f"must have at most {_LONGEST:,} characters"
    check(len(text) <= _LONGEST, "sql", rule, given=len(text), fix="ask several statements")
    return _Parser(text, columns).statement()


class _Parser:
    """A statement, read from left to right."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self._tokens, self._next, self._depth = list(_tokens(text)), 0, 0
        self._columns = columns

    def statement(self) -> Statement:
        self._expect("select")
        if self._token.says("distinct", "*"):
            self._refuse(self._token, "list keys and statistics", "group by the columns, and add count(*)")
        items = [self._item()]
        while self._skip(","):
            items.append(self._item())
        self._expect("from")
        if self._take("a table").text.lower() != "release":
            self._refuse(self._tokens[self._next - 1], "select from release", "write from release")
        where = self._any() if self._skip("where") else ""
        named = _name(items)
        keys = self._keys(named) if self._skip("group") else []
        order = self._order(named) if self._skip("order") else []
        limit = self._limit() if self._skip("limit") else None
        self._skip(";")
        if self._token.kind != "end":
            one = self._tokens[self._next - 1].says(";")
            rule = "be one statement" if one else "end or go on with where, group by, order by or limit"
            self._refuse(self._token, rule, "ask the others by themselves" if one else "")
        self._check_keys(named, keys)
        found = Statement(tuple(named), where, tuple(keys), tuple(order), limit)
        heads = [name for names in found.heads for name in names] + ["basis"]
        repeated = [name for name in named if heads.count(name.name) > 1]
        rule = "must give items other names than those of intervals, and of what answers rest on"
        fix = "write for example low as lowest"
        check(not repeated, "sql", rule, given=", ".join(each.name for each in repeated), fix=fix)
        return found

    def _check_keys(self, items: Sequence[Item], keys: Sequence[SqlKey]) -> None:
        loose = [each.what for each in items if isinstance(each.what, SqlKey) and each.what not in keys]
        rule, fix = "must group by each column that it selects beside statistics", "add it to group by"
        check(not loose, "sql", rule, given=", ".join(each.name for each in loose), fix=fix)
        asked = any(isinstance(each.what, SqlStatistic) for each in items)
        check(asked, "sql", "must select a statistic", given="keys alone", fix="add count(*)")
        spread = [each.name for each in items if str(each.what).startswith(("variance of", "std of"))]
        rule, fix = "must have no variance or stddev by groups", "ask about each group by where"
        check(not (spread and keys), "sql", rule, given=", ".join(spread), fix=fix)

    # What is selected.

    def _item(self) -> Item:
        what = self._what()
        named = self._skip("as") or (
            self._token.kind in ("word", "name") and not self._token.says(*_WORDS, *_REFUSED)
        )
        return Item(what, _unquote(self._take("a name")) if named else "")

    def _what(self) -> SqlKey | SqlStatistic:
        token, name = self._token, self._token.text.lower()
        if token.kind == "word" and self._ahead.says("("):
            if name == "count":
                return self._count()
            if name in _STATISTICS or name in _QUANTILES:
                return self._statistic()
        return self._key()

    def _count(self) -> SqlStatistic:
        self._next += 2
        if not self._token.says("*") and self._token.text != "1":
            fix = "write count(*), with where column is not null if others shall not count"
            self._refuse(self._token, "have count(*)", fix)
        self._next += 1
        self._expect(")")
        return SqlStatistic("count", "count")

    def _statistic(self) -> SqlStatistic:
        token = self._take("a statistic")
        name = token.text.lower()
        self._expect("(")
        column = self._column()
        if name not in _QUANTILES:
            self._expect(")")
            return SqlStatistic(f"{_STATISTICS[name]} of {_quote(column)}", f"{name}_{column}")
        self._expect(",")
        share = self._take("a share such as 0.9")
        if share.kind != "number":
            self._refuse(share, "have a share such as 0.9")
        self._expect(")")
        return SqlStatistic(f"quantile {share.text} of {_quote(column)}", f"quantile_{share.text}_{column}")

    def _keys(self, items: Sequence[Item]) -> list[SqlKey]:
        self._expect("by")
        keys = [self._listed_key(items)]
        while self._skip(","):
            keys.append(self._listed_key(items))
        return list(dict.fromkeys(keys))

    def _listed_key(self, items: Sequence[Item]) -> SqlKey:
        """A key, or the place or the name that it has in the list."""
        token, place = self._token, self._place(items)
        if place is None:
            return self._key()
        what = items[place].what
        return what if isinstance(what, SqlKey) else self._refuse(token, "group by keys")

    def _key(self) -> SqlKey:
        token, name = self._token, self._token.text.lower()
        if token.kind != "word" or not self._ahead.says("("):
            return SqlKey(self._column())
        self._next += 2
        if name == "date_trunc":
            unit = self._take("a unit")
            if unit.kind != "text" or _unquote(unit).lower() not in UNITS:
                self._refuse(unit, "have a unit of the calendar", "write for example 'month'")
            self._expect(",")
            found = SqlKey(self._column(), _unquote(unit).lower())
        elif name in _UNITS:
            found = SqlKey(self._column(), _UNITS[name])
        elif name in _CUTS:
            column, others = self._column(), list[str]()
            while self._skip(","):
                others.append(self._value())
            found = SqlKey(column, name, tuple(others))
        else:
            self._refuse(token, "have a known function")
        self._expect(")")
        return found

    # Conditions, as text of the language.

    def _any(self) -> str:
        found = [self._all()]
        while self._skip("or"):
            found.append(self._all())
        return " or ".join(found)

    def _all(self) -> str:
        found = [self._one()]
        while self._skip("and"):
            found.append(self._one())
        return " and ".join(found)

    def _one(self) -> str:
        if self._token.says("not", "("):
            return self._inner()
        token, column = self._token, _quote(self._column())
        if self._token.says("("):
            self._refuse(token, "compare columns themselves", "group by the unit, or name a range of dates")
        if self._token.says(*_COMPARISONS):
            sign = _COMPARISONS[self._take("a comparison").text]
            return f"{column} {sign} {self._value()}"
        if self._skip("is"):
            negated = "not " if self._skip("not") else ""
            self._expect("null")
            return f"{column} is {negated}null"
        negated = "not " if self._skip("not") else ""
        if self._skip("between"):
            low = self._value()
            self._expect("and")
            found = f"{column} between {low} and {self._value()}"
        else:
            self._expect("in", rule="have a comparison, between, in or is null")
            self._expect("(")
            values = [self._value()]
            while self._skip(","):
                values.append(self._value())
            self._expect(")")
            found = f"{column} in ({', '.join(values)})"
        return f"not ({found})" if negated else found

    def _inner(self) -> str:
        """The opposite of a condition, or conditions in parentheses."""
        token, self._depth = self._token, self._depth + 1
        if self._depth > _DEEPEST:
            self._refuse(token, f"have at most {_DEEPEST} parentheses and `not` inside of each other")
        if self._skip("not"):
            found = f"not ({self._one()})"
        else:
            self._expect("(")
            found = f"({self._any()})"
            self._expect(")")
        self._depth -= 1
        return found

    def _value(self) -> str:
        if self._ahead.kind == "text":
            self._skip("date", "timestamp")
        sign = "-" if self._skip("-") else ""
        token = self._take("a value")
        if token.kind == "number":
            return sign + token.text
        if token.kind != "text" or sign:
            fix = "write 'value'; double quotes are around columns" if token.kind == "name" else ""
            self._refuse(token, "have a number, or a value in single quotes", fix)
        return token.text

    # What is sorted by.

    def _order(self, items: Sequence[Item]) -> list[tuple[int, bool]]:
        self._expect("by")
        found = [self._term(items)]
        while self._skip(","):
            found.append(self._term(items))
        return found

    def _term(self, items: Sequence[Item]) -> tuple[int, bool]:
        token, place = self._token, self._place(items)
        if place is None:
            what = self._what()
            places = [number for number, each in enumerate(items) if each.what == what]
            place = places[0] if places else self._refuse(token, "order by items of its list")
        falling = self._skip("desc")
        if not falling:
            self._skip("asc")
        return place, falling

    def _place(self, items: Sequence[Item]) -> int | None:
        """The place in the list of an item that is given by its number or its name, if one is."""
        token, names = self._token, [each.name.lower() for each in items]
        if token.kind == "number":
            listed = [str(number) for number in range(1, len(items) + 1)]
            self._next += 1
            return (
                listed.index(token.text)
                if token.text in listed
                else self._refuse(token, "name an item of its list")
            )
        if (
            self._ahead.says("(")
            or token.kind not in ("word", "name")
            or _unquote(token).lower() not in names
        ):
            return None
        self._next += 1
        return names.index(_unquote(token).lower())

    def _limit(self) -> int:
        token = self._take("a number of rows")
        if token.kind != "number" or not token.text.isdecimal() or not 1 <= int(token.text[:10]) < 10**9:
            self._refuse(token, "have a whole number of rows")
        return int(token.text)

    # Pieces.

    def _column(self) -> str:
        token = self._take("a column")
        if token.kind == "number":
            self._refuse(token, "do without arithmetic", _REFUSED_SIGNS["arithmetic"][1])
        if token.kind not in ("word", "name") or token.says(*_WORDS) or self._is_refused(token):
            self._refuse(token, "have a column", "put double quotes around a column that is called like that")
        name = _unquote(token)
        alike = [each for each in self._columns if each.lower() == name.lower()]
        return alike[0] if name not in self._columns and len(alike) == 1 and token.kind == "word" else name

    def _is_refused(self, token: _Token) -> bool:
        """Whether it is a word of SQL that is not here, and no column."""
        return token.says(*_REFUSED) and token.text not in self._columns

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    @property
    def _ahead(self) -> _Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def _take(self, role: str) -> _Token:
        token = self._token
        if token.kind == "end":
            self._refuse(token, f"have {role}")
        self._next += 1
        return token

    def _skip(self, *words: str) -> bool:
        found = self._token.says(*words)
        self._next += found
        return found

    def _expect(self, word: str, *, rule: str = "") -> None:
        if not self._skip(word):
            self._refuse(self._token, rule or f"have {word}")

    def _refuse(self, token: _Token, rule: str, fix: str = "") -> NoReturn:
        """The error for a statement that stops making sense at this piece."""
        word = token.text.lower()
        if token.kind == "word" and word in _REFUSED:
            rule, fix = f"do without {word}", _REFUSED[word]
        for part, (signs, instead) in _REFUSED_SIGNS.items():
            if token.kind == "sign" and word in signs and not fix:
                rule, fix = f"do without {part}", instead
        given = "the end" if token.kind == "end" else token.text
        raise InvalidParameter(
            "sql", f"must {rule} at character {token.place}", given=given, fix=fix or _SUBSET
        )


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            opened = len(text) - len(text[place:].lstrip())
            rule, fix = (
                f"must close the quote that it opens at character {opened + 1}",
                "double a quote inside",
            )
            raise InvalidParameter("sql", rule, given=text[opened:], fix=fix)
        group = str(match.lastgroup)
        yield _Token(match[group], match.start(group) + 1, group)
        place = match.end()
    yield _Token("", len(text) + 1, "end")


def _name(items: Sequence[Item]) -> list[Item]:
    """The items with different names: those that they were given, or made from what they are."""
    found: list[Item] = []
    for item in items:
        name, used = item.name or item.what.name, {each.name for each in found}
        numbered = (f"{name}_{number}" for number in range(2, len(items) + 2))
        free = next(each for each in (name, *numbered) if each not in used)
        rule, fix = "must give each item a name of its own", "leave the name out, or change it"
        check(free == name or not item.name, "sql", rule, given=name, fix=fix)
        found.append(Item(item.what, free))
    return found


def _unquote(token: _Token) -> str:
    """The text of a piece without quotes around it, and with each doubled quote once."""
    quote = token.text[:1]
    return token.text[1:-1].replace(2 * quote, quote) if token.kind in ("text", "name") else token.text


def _quote(name: str) -> str:
    """A name as a word of the language: in quotes, so that no name is taken for something else."""
    return "'" + name.replace("'", "''") + "'"
