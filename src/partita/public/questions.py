"""The kinds of questions that a release answers, in one table.

The methods of `Release` do the work. The grammar reads and writes questions by this table, the command line
shows answers by it, and the service makes its addresses and models from it. A new kind is a record in
`KINDS` and a method of `Release`.

A form is how a question is written: words, parameters in braces, and optional parts in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

from partita.errors import check
from partita.lazy import cached_property
from partita.public.conditions import AllOf, Either, Not, OneOf, Range, Where
from partita.public.records import (
    ANSWERS,
    BINS,
    BOUNDS,
    CDF,
    GROUPS,
    LINE,
    MEASURE,
    NUMBER,
    QUANTILE,
    SUMMARY,
    TILES,
    Record,
    Result,
)

if TYPE_CHECKING:
    from partita.public.boxes.regions import HalfSpace as Region
    from partita.public.release import Release
    from partita.public.results import Cdf

SPECIALS: Final = ("null", "invalid", "below", "above", "other")
RESERVED: Final = frozenset({"and", "at", "between", "in", "is", "not", "of", "or", "where", "+", "-"})

MOST_QUANTILES: Final = 999
"""Of one column at a time: more are a distribution, which ranges tell better."""

QUARTILES: Final = (Fraction(1, 4), Fraction(3, 4))
"""The quantiles that an interquartile range is made of."""

USUAL_BOUNDS: Final = Fraction(1, 1000)
"""The share of the rows that bounds leave out, unless another is named."""


_PLAIN: Final = re.compile(r"[\w.:+-]+")
_PIECE: Final = re.compile(r"\{(?P<parameter>\w+)\}|(?P<sign>[][(),])|(?P<word>\w+)")
_REQUIRED: Final = object()
_BINS: Final = 12
_TILES: Final = 10, 6  # bins of two columns together: rows, and columns that a terminal has room for
_STEPS: Final = 20  # a cdf without values is shown at every twentieth of the rows


class Type(Enum):
    """What a parameter of a question is."""

    COLUMN = auto()
    SHARE = auto()
    BINS = auto()
    NUMBER = auto()
    VALUES = auto()
    CONDITIONS = auto()
    HALF_SPACE = auto()
    """Stands among the conditions of its question."""
    KEYS = auto()
    """What rows are grouped by."""
    ORDER = auto()
    LIMIT = auto()
    """How many groups at most."""
    FLAG = auto()
    """True where the word of its name is written, else False."""


@final
@dataclass(frozen=True)
class Parameter:
    """A parameter of a kind of question; a default that is a function takes the other arguments."""

    name: str
    type: Type
    help: str = ""
    default: Any = _REQUIRED
    example: object = None

    @property
    def required(self) -> bool:
        """Whether a question cannot do without it."""
        return self.default is _REQUIRED


@final
@dataclass(frozen=True)
class HalfSpaceText:
    """Where a weighted sum of columns is at most a bound, or at least."""

    weights: Mapping[str, Fraction]
    bound: Fraction
    sign: Literal["<=", ">="] = "<="

    @property
    def region(self) -> Region:
        """The same as a public region."""
        from partita.public.boxes.regions import HalfSpace as Region

        sign = 1 if self.sign == "<=" else -1
        weights = {column: sign * weight for column, weight in self.weights.items()}
        return Region(weights, at_most=sign * self.bound)

    def __str__(self) -> str:
        terms = [f"{'-' if weight < 0 else '+'} {self._term(name)}" for name, weight in self.weights.items()]
        return f"{' '.join(terms).removeprefix('+ ')} {self.sign} {_number(self.bound)}"

    def _term(self, column: str) -> str:
        """A weight of 1 is left out where the sum has other terms, which tell it from a plain condition."""
        weight = abs(self.weights[column])
        alone = weight == 1 and len(self.weights) > 1
        return _word(column) if alone else f"{_number(weight)}*{_word(column)}"


@final
@dataclass(frozen=True)
class WrittenForm:
    """How a kind of question is written, with an example; or an optional part of that. Begins with a word."""

    pieces: tuple[Piece, ...]
    example: str = ""

    @property
    def word(self) -> str:
        """The word that it begins with."""
        return str(self.pieces[0])

    @cached_property
    def parameters(self) -> set[str]:
        """The names of its parameters."""
        alone = {piece.name for piece in self.pieces if isinstance(piece, Parameter)}
        return alone.union(*(piece.parameters for piece in self.pieces if isinstance(piece, WrittenForm)))


Piece: TypeAlias = str | Parameter | WrittenForm


@dataclass(frozen=True, eq=False, repr=False)
class PhraseKind:
    """What can be written in the language: `forms` are the ways to write it, each with an example."""

    name: str
    forms: Mapping[str, str]
    parameters: tuple[Parameter, ...]

    def complete(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments; what is left out has its default."""
        given: dict[str, Any] = {}
        for each in self.parameters:
            if each.name in arguments or each.required:
                given[each.name] = arguments[each.name]
            else:
                given[each.name] = each.default(given) if callable(each.default) else each.default
        return given

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def having(self, type_: Type) -> list[Parameter]:
        """Its parameters of a type."""
        return [each for each in self.parameters if each.type is type_]

    @cached_property
    def parsed_forms(self) -> list[WrittenForm]:
        """The forms taken apart."""
        named, forms = {each.name: each for each in self.parameters}, self.forms.items()
        return [WrittenForm(_pieces(_PIECE.finditer(form), named), example) for form, example in forms]


@final
@dataclass(frozen=True, eq=False, repr=False)
class QuestionKind(PhraseKind):
    """A kind of question.

    `ask` calls the release, with the arguments as keywords, and `result` says what becomes of the answer.
    `title` and `help` stand in the document of the service.
    """

    ask: Callable[..., Any]
    result: Result
    title: str
    help: str

    def __call__(self, **arguments: Any) -> Question:
        """A question of this kind; what is left out has its default."""
        return Question(self, self.complete(arguments))


@dataclass(frozen=True)
class Phrase:
    """A kind with all its arguments; `str` writes it as the grammar reads it."""

    kind: PhraseKind
    arguments: Mapping[str, Any]

    def __getitem__(self, parameter: str) -> Any:
        return self.arguments[parameter]

    def having(self, type_: Type) -> list[Any]:
        """The arguments of a type."""
        return [self.arguments[each.name] for each in self.kind.having(type_)]

    def __str__(self) -> str:
        fitting = [form for form in self.kind.parsed_forms if self._fits(form)]
        return _join(self._words(min(fitting, key=lambda form: len(form.parameters)).pieces))

    def _fits(self, form: WrittenForm) -> bool:
        """Whether the form has every parameter that does not have its default."""
        others = (each for each in self.kind.parameters if each.name not in form.parameters)
        return all(each.type is Type.HALF_SPACE or self[each.name] == each.default for each in others)

    def _words(self, pieces: Iterable[Piece]) -> Iterator[str]:
        """The words of a form; an optional part is left out if none of its parameters has an argument."""
        for piece in pieces:
            if not isinstance(piece, WrittenForm):
                yield piece if isinstance(piece, str) else self._argument(piece)
            elif any(self._argument(each) for each in piece.pieces if isinstance(each, Parameter)):
                yield from self._words(piece.pieces)

    def _argument(self, parameter: Parameter) -> str:
        """An argument as text; empty if there is none."""
        value = self[parameter.name]
        match parameter.type:
            case Type.COLUMN if value is not None:
                return _word(value)
            case Type.VALUES:
                return ", ".join(map(_word, value))
            case Type.FLAG:
                return parameter.name if value else ""
            case Type.KEYS:
                return ", ".join(key.text(_word) for key in value)
            case Type.ORDER if value is not None:
                return str(value.text(_word))
            case Type.CONDITIONS:
                shapes = [str(shape) for shape in self.having(Type.HALF_SPACE) if shape is not None]
                written = (
                    f"({write_conditions(value)})"
                    if shapes and isinstance(value, Either)
                    else write_conditions(value)
                )
                return " and ".join([written] * bool(value) + shapes)
            case _:
                return "" if value is None else str(value)


@final
@dataclass(frozen=True)
class Question(Phrase):
    """A question with all its arguments."""

    kind: QuestionKind

    def _argument(self, parameter: Parameter) -> str:
        """Shares are decimals where these have an end; files keep the ratios of wants."""
        value = self[parameter.name]
        shared = parameter.type is Type.SHARE and value is not None
        return _number(value) if shared else super()._argument(parameter)


@final
@dataclass(frozen=True, kw_only=True)
class QueryRunner:
    """Asks one release, with intervals at one confidence, and guaranteed bounds at one beta, if any."""

    release: Release
    confidence: float
    beta: float | None

    def answer(self, question: Question) -> Record:
        """The answer to any question, with the question in the words of the grammar."""
        found = question.kind.ask(self.release, **question.arguments)
        return {"question": str(question), **question.kind.result.record(found, self.confidence, self.beta)}


def write_conditions(where: Where) -> str:
    """Conditions as they stand behind `where`.

    >>> write_conditions({"age": Range("30", "40", "left"), "town": OneOf(("Rome", "New York"))})
    "age >= 30 and age < 40 and town in (Rome, 'New York')"
    """
    if not isinstance(where, Either):
        return " and ".join(_condition(_word(column), condition) for column, condition in where.items())
    parts = [write_conditions(part) for part in where.parts]
    return " or ".join(
        f"({text})" if _is_joined(part) else text for text, part in zip(parts, where.parts, strict=True)
    )


def _is_joined(part: Where) -> bool:
    """Whether it is written with `and`."""
    return len(part) > 1 or any(isinstance(each, AllOf) or _has_two_ends(each) for each in part.values())


def _has_two_ends(condition: object) -> bool:
    """Whether it is a range that is written as two conditions."""
    ends = isinstance(condition, Range) and condition.low is not None and condition.high is not None
    return ends and not _is_between(condition)


def _is_between(condition: object) -> bool:
    return (
        isinstance(condition, Range)
        and condition.closed == "both"
        and None not in (condition.low, condition.high)
    )


def _condition(column: str, condition: object) -> str:
    match condition:
        case Range(low=low, high=high) if _is_between(condition):
            return f"{column} between {_word(low)} and {_word(high)}"
        case Range(low=low, high=high):
            ends = ((low, ">", condition.low_closed), (high, "<", condition.high_closed))
            return " and ".join(
                f"{column} {sign}{'=' * shut} {_word(end)}" for end, sign, shut in ends if end is not None
            )
        case OneOf(values):
            if all(isinstance(each, str) for each in values):
                return f"{column} in ({', '.join(map(_word, values))})"
            return f"({' or '.join(_condition_within(column, each) for each in values)})"
        case AllOf(conditions):
            return " and ".join(_condition_within(column, each) for each in conditions)
        case Not(opposite):
            return _opposite(column, opposite)
        case str(value):
            return f"{column} = {_word(value)}"
    return f"{column} is {condition}"


def _condition_within(column: str, condition: object) -> str:
    """A condition among others, in parentheses if it is written as several."""
    text = _condition(column, condition)
    return f"({text})" if _has_two_ends(condition) or isinstance(condition, AllOf) else text


def _opposite(column: str, condition: object) -> str:
    match condition:
        case str(value):
            return f"{column} != {_word(value)}"
        case OneOf(values) if all(isinstance(each, str) for each in values):
            return f"{column} not in ({', '.join(map(_word, values))})"
        case OneOf():
            return f"not {_condition(column, condition)}"
        case Range(low, high) if _is_between(condition):
            return f"{column} not between {_word(low)} and {_word(high)}"
        case Range() | AllOf() | Not():
            return f"not ({_condition(column, condition)})"
    return f"{column} is not {condition}"


def _number(exact: Fraction) -> str:
    """A decimal if it has an end, else a ratio."""
    from partita.domain.columns import number_text

    return number_text(exact)


def _word(text: str) -> str:
    """As it is where it is one word and none of the grammar's own, else in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in RESERVED:
        return text
    return "'" + text.replace("'", "''") + "'"


def _pieces(found: Iterator[re.Match[str]], named: Mapping[str, Parameter]) -> tuple[Piece, ...]:
    """The pieces of a form, up to its end or to the bracket that closes an optional part."""
    pieces: list[Piece] = []
    for each in found:
        if each[0] == "]":
            break
        if each["parameter"]:
            pieces.append(named[each["parameter"]])
        else:
            pieces.append(WrittenForm(_pieces(found, named)) if each[0] == "[" else each[0])
    return tuple(pieces)


def _join(words: Iterable[str]) -> str:
    """Words with spaces between them, but inside parentheses and in front of commas."""
    text = ""
    for word in words:
        text += word if not text or text.endswith("(") or word in (")", ",") else f" {word}"
    return text


# --- how a release is asked --------------------------------------------------------------------


def _count(release: Release, where: Where, half_space: HalfSpaceText | None) -> Any:
    return release.count(where, region=None if half_space is None else half_space.region)


def _sum(release: Release, column: str, where: Where, half_space: HalfSpaceText | None) -> Any:
    return release.sum(column, where, region=None if half_space is None else half_space.region)


def _difference(release: Release, first: Where, second: Where) -> Any:
    for column, condition in first.items():
        beside = second.get(column)
        if isinstance(condition, Range) and isinstance(beside, Range):
            _check_same_ends(column, condition, beside)
    return release.difference(first, second)


def _check_same_ends(column: str, one: Range, other: Range) -> None:
    """An end that is open agrees with any other."""
    lows = None in (one.low, other.low) or one.low_closed == other.low_closed
    highs = None in (one.high, other.high) or one.high_closed == other.high_closed
    rule = f"must have the same kinds of ends in all ranges of {column!r}"
    given = f"{_condition(column, one)} beside {_condition(column, other)}"
    check(lows and highs, "question", rule, given=given, fix="write <= and >= in all of them")


def _cdf(release: Release, column: str, at: Sequence[str], where: Where) -> Cdf:
    """At the values given, or where each twentieth of the rows ends."""
    values: Sequence[object] = at
    if not at:
        shares = [Fraction(step, _STEPS) for step in range(1, _STEPS)]
        values = list(dict.fromkeys(each.value for each in release.quantile(column, shares, where)))
    return release.cdf(column, list(values), where)


def _tiles(release: Release, x: str, y: str, x_bins: int | None, y_bins: int | None, where: Where) -> Any:
    return release.histogram(x, y, bins=(x_bins or _TILES[0], y_bins or _TILES[1]), where=where)


# --- the table ---------------------------------------------------------------------------------

_COLUMN: Final = Parameter("column", Type.COLUMN, "the name of a column", example="age")
_WHERE: Final = Parameter(
    "where",
    Type.CONDITIONS,
    "which rows: conditions as text, `age >= 30 and town = Rome`, or in a body as JSON",
    default={},
    example="age between 30 and 39",
)
_HALF_SPACE: Final = Parameter("half_space", Type.HALF_SPACE, default=None)
_NUMBER_OF_BINS: Final = Parameter("bins", Type.BINS, "how many bins", default=None)

COUNT: Final = QuestionKind(
    name="count",
    forms={"count [where {where}]": "count where age between 30 and 39"},
    parameters=(_WHERE, _HALF_SPACE),
    ask=_count,
    result=NUMBER,
    title="How many rows there are",
    help="How many rows there are.",
)


def _summary(name: str, what: str, example: str, **also: str) -> QuestionKind:
    """A kind that asks for one number about a summed column; `also` are other words, each with an example."""
    return QuestionKind(
        name=name,
        forms={
            f"{word} of {{column}} [where {{where}}]": each for word, each in {name: example, **also}.items()
        },
        parameters=(_COLUMN, _WHERE),
        ask=lambda release, column, where: getattr(release, name)(column, where),
        result=SUMMARY,
        title=f"The {what} of a column",
        help=f"The {what} of a column.",
    )


_ALL: Final = (
    COUNT,
    QuestionKind(
        name="quantile",
        forms={
            "quantile {q} of {column} [where {where}]": "quantile 0.9 of salary",
            "median of {column} [where {where}]": "median of salary",
        },
        parameters=(
            _COLUMN,
            Parameter("q", Type.SHARE, "which share of the rows lies below", default=Fraction(1, 2)),
            _WHERE,
        ),
        ask=lambda release, column, q, where: release.quantile(column, q, where),
        result=QUANTILE,
        title="A quantile of a column",
        help="The least value that a share of the rows do not exceed.",
    ),
    QuestionKind(
        name="cdf",
        forms={"cdf of {column} [at {at}] [where {where}]": "cdf of salary at 20000, 50000"},
        parameters=(
            _COLUMN,
            Parameter("at", Type.VALUES, "the values; twentieths if none is given", default=()),
            _WHERE,
        ),
        ask=_cdf,
        result=CDF,
        title="The distribution of a column",
        help="Which share of the rows is at most each of some values.",
    ),
    QuestionKind(
        name="histogram",
        forms={"histogram of {column} [in {bins} bins] [where {where}]": "histogram of age in 12 bins"},
        parameters=(_COLUMN, _NUMBER_OF_BINS, _WHERE),
        ask=lambda release, column, bins, where: release.histogram(column, bins or _BINS, where=where),
        result=BINS,
        title="Counts in bins",
        help="How many rows lie in each of several bins.",
    ),
    QuestionKind(
        name="histogram2d",
        forms={
            "histogram of {x}, {y} [in {x_bins} [by {y_bins}] bins] [where {where}]": (
                "histogram of age, salary in 12 by 8 bins"
            )
        },
        parameters=(
            replace(_COLUMN, name="x"),
            replace(_COLUMN, name="y"),
            replace(_NUMBER_OF_BINS, name="x_bins"),
            replace(_NUMBER_OF_BINS, name="y_bins", default=lambda given: given["x_bins"]),
            _WHERE,
        ),
        ask=_tiles,
        result=TILES,
        title="Counts in bins of two columns",
        help="How many rows lie in each bin of two columns.",
    ),
    QuestionKind(
        name="difference",
        forms={
            "difference between ({first}) and ({second})": "difference between (age >= 60) and (age < 30)"
        },
        parameters=(
            Parameter("first", Type.CONDITIONS, example={"age": [60, None]}),
            Parameter("second", Type.CONDITIONS, example="age < 30"),
        ),
        ask=_difference,
        result=NUMBER,
        title="How many more rows one question counts",
        help="How many more rows the first conditions count than the second.",
    ),
    replace(
        _summary("sum", "sum", "sum of salary where age between 30 and 39", total="total of cost"),
        parameters=(_COLUMN, _WHERE, _HALF_SPACE),
        ask=_sum,
    ),
    _summary("mean", "mean", "mean of salary where age between 30 and 39"),
    _summary("variance", "variance", "variance of salary"),
    _summary("std", "standard deviation", "std of salary"),
    QuestionKind(
        name="share",
        forms={"share where {where} [among {among}]": "share where delay >= 15 among dest = Rome"},
        parameters=(
            replace(_WHERE, default=_REQUIRED),
            replace(_WHERE, name="among", help="of which groups; of all rows if there is none"),
        ),
        ask=lambda release, where, among: release.share(where, among=among),
        result=MEASURE,
        title="The share of rows that meet conditions",
        help="Which share of the rows meets conditions.",
    ),
    QuestionKind(
        name="correlation",
        forms={"correlation of {x}, {y} [where {where}]": "correlation of delay, cost"},
        parameters=(replace(_COLUMN, name="x"), replace(_COLUMN, name="y"), _WHERE),
        ask=lambda release, x, y, where: release.correlation(x, y, where),
        result=MEASURE,
        title="How two columns of numbers go together",
        help="Pearson's correlation of two columns of numbers, over the rows that have both.",
    ),
    QuestionKind(
        name="regression",
        forms={"regression of {y} on {x} [where {where}]": "regression of cost on delay"},
        parameters=(replace(_COLUMN, name="y"), replace(_COLUMN, name="x"), _WHERE),
        ask=lambda release, y, x, where: release.regression(y, x, where),
        result=LINE,
        title="The line that tells a column best by another",
        help="Slope and intercept of a line that fits one column of numbers by another.",
    ),
    QuestionKind(
        name="bounds",
        forms={"bounds of {column} [without {without}]": "bounds of cost without 0.001"},
        parameters=(
            _COLUMN,
            Parameter(
                "without",
                Type.SHARE,
                "which share of the rows lies beyond; by default as wanted",
                default=None,
            ),
        ),
        ask=lambda release, column, without: release.bounds(column, without),
        result=BOUNDS,
        title="Values between which nearly all rows lie",
        help="Two values between which all rows lie but for a share, half of it at each end.",
    ),
    QuestionKind(
        name="interquartile_range",
        forms={"interquartile range of {column}": "interquartile range of cost"},
        parameters=(_COLUMN,),
        ask=lambda release, column: release.interquartile_range(column),
        result=QUANTILE,
        title="How far the quartiles lie apart",
        help="The quantile 3/4 less the quantile 1/4; of a release that was made for it.",
    ),
    QuestionKind(
        name="trimmed_mean",
        forms={"trimmed mean {share} of {column}": "trimmed mean 0.05 of salary"},
        parameters=(
            _COLUMN,
            Parameter("share", Type.SHARE, "which share of the rows is left out at each end"),
        ),
        ask=lambda release, column, share: release.trimmed_mean(column, share),
        result=SUMMARY,
        title="The mean without the rows at both ends",
        help="The mean of the rows that are left without a share of them at each end; if it was released.",
    ),
    QuestionKind(
        name="top_share",
        forms={"top share {share} of {column}": "top share 0.1 of income"},
        parameters=(_COLUMN, Parameter("share", Type.SHARE, "which share of the rows is the top")),
        ask=lambda release, column, share: release.top_share(column, share),
        result=SUMMARY,
        title="What part of a total the top holds",
        help="Which part of the total the rows with the largest values hold; if it was released.",
    ),
    QuestionKind(
        name="gini",
        forms={"gini of {column}": "gini of income"},
        parameters=(_COLUMN,),
        ask=lambda release, column: release.gini(column),
        result=SUMMARY,
        title="The Gini index of a column",
        help="How unequal the values of a column are, from 0 to 1; if it was released.",
    ),
    QuestionKind(
        name="answers",
        forms={"answers": "answers"},
        parameters=(),
        ask=lambda release: (release.labels(), release.answers()),
        result=ANSWERS,
        title="The answers to published queries",
        help="The answers to all queries that were published.",
    ),
)

_BY: Final = Parameter(
    "by",
    Type.KEYS,
    "what rows are grouped by: `dest`, `month(when)`, `bins(age, 12)`, `breaks(age, 18, 65)`, "
    "`level(place, county)`",
)
_ORDER: Final = Parameter(
    "order", Type.ORDER, "by the statistic or a key: `count desc`, `dest`", default=None
)
_LIMIT: Final = Parameter("limit", Type.LIMIT, "how many groups at most; all, if none is given", default=None)


def _grouped(kind: QuestionKind) -> QuestionKind:
    """The same statistic for each group of rows."""
    behind = "[order by {order}] [limit {limit}]"
    whole = kind is COUNT or bool(kind.having(Type.COLUMN))
    forms = {
        f"{form.removesuffix(' [where {where}]')} by {{by}} {'[where {where}] ' * whole}{behind}": (
            f"{example.partition(' where ')[0] if whole else example} by dest"
        )
        for form, example in kind.forms.items()
    }
    shapes = {each.name for each in kind.having(Type.HALF_SPACE)}
    own = tuple(each for each in kind.parameters if each.name not in shapes)

    def ask(release: Release, by: Any, order: Any, limit: Any, **arguments: Any) -> Any:
        from partita.public.groups import order_groups

        column = [arguments.pop(each.name) for each in kind.having(Type.COLUMN)]
        return order_groups(getattr(release.group(*by), kind.name)(*column, **arguments), order, limit)

    return QuestionKind(
        name=f"{kind.name}_by",
        forms=forms,
        parameters=(*own, _BY, _ORDER, _LIMIT),
        ask=ask,
        result=GROUPS,
        title=f"{kind.title}, by groups",
        help=f"{kind.help.removesuffix('.')}, for each group of rows.",
    )


_GROUPED: Final = tuple(
    _grouped(kind) for kind in _ALL if kind.name in ("count", "sum", "mean", "quantile", "share")
)

KINDS: Final[dict[str, QuestionKind]] = {kind.name: kind for kind in (*_ALL, *_GROUPED)}
"""Every kind by its name. Addresses of the service are made in this order: the most frequent comes first."""
