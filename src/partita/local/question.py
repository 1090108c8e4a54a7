"""A question that people answer on their own devices: what is asked, and with which randomizer."""

from __future__ import annotations

import datetime
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, final

from partita.errors import InvalidParameter, check, check_type
from partita.local.randomizer import LARGEST_SIZE, Json, LocalLaw, Numbers, Randomizer, clamped, digest_of
from partita.numbers import freeze, integer

if TYPE_CHECKING:
    from partita.arrays import Ints
    from partita.domain.base import Domain
    from partita.guarantee import Guarantee
    from partita.local.aggregate import Aggregator
    from partita.local.randomizer import Draws
    from partita.trusted.noise.laws import WordSource

# Domains on a device: the cell of one value, in plain Python, as `partita.domain` finds it for a column.
#
# Labels and whole numbers need the standard library only. Dates, times and rounded numbers are found by
# NumPy.


Number: TypeAlias = Fraction | float

_MISSING: Final = {"NoneType", "NAType", "NaTType"}
_LONGEST: Final = 400
_FAR: Final = 1000
_LARGEST: Final = 10**400
_LARGEST_BITS: Final = 2000
_MOST_PLACES: Final = 60
_WHITE: Final = " \t\n\r\f\v"
_NUMBER: Final = re.compile(r"([+-]?(?=\.?[0-9])[0-9]*(?:\.[0-9]*)?)(?:[eE]([+-]?[0-9]+))?")
_INFINITE: Final = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE | re.ASCII)


class PlainDomain(ABC):
    """Ordinary cells, then special ones; every value has a cell."""

    specials: ClassVar[tuple[str, ...]]
    unreadable: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of ordinary cells."""

    @abstractmethod
    def to_spec(self) -> dict[str, Any]:
        """As it was read."""

    @abstractmethod
    def _found(self, value: object) -> int | str:
        """An ordinary cell, or the name of a special one."""

    def cell(self, value: object) -> int:
        """The cell of a value; one whose own methods fail is unreadable."""
        try:
            found = "null" if type(value).__name__ in _MISSING else self._found(value)
        except Exception:
            found = self.unreadable
        return found if isinstance(found, int) else self.size + self.specials.index(found)


@final
@dataclass(frozen=True)
class PlainCategory(PlainDomain):
    """Labels: text matches exactly, other values by their canonical text.

    >>> browsers = PlainCategory(("chrome", "7"))
    >>> [browsers.cell(value) for value in ("chrome", 7.0, None, "lynx")]
    [0, 1, 2, 3]
    """

    specials: ClassVar[tuple[str, ...]] = ("null", "other")
    unreadable: ClassVar[str] = "other"
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def to_spec(self) -> dict[str, Any]:
        """Kind and labels."""
        return {"kind": "category", "labels": list(self.labels)}

    def _found(self, value: object) -> int | str:
        if isinstance(value, float | Decimal) and math.isnan(value):
            return "null"
        return self._cells.get(_text(value), "other")

    @cached_property
    def _cells(self) -> Mapping[str, int | str]:
        return {label: cell for cell, label in enumerate(self.labels)}


@final
@dataclass(frozen=True)
class PlainInteger(PlainDomain):
    """The integers from low to high, however they are written.

    >>> ages = PlainInteger(0, 120)
    >>> [ages.cell(value) for value in (30, " 31.0", -1, 1e9, 0.5, None)]
    [30, 31, 121, 122, 123, 124]
    """

    specials: ClassVar[tuple[str, ...]] = ("below", "above", "invalid", "null")
    unreadable: ClassVar[str] = "invalid"
    low: int
    high: int

    @property
    def size(self) -> int:
        """The number of integers, both ends included."""
        return self.high - self.low + 1

    def to_spec(self) -> dict[str, Any]:
        """Kind, low and high, all as text."""
        return {"kind": "integer", "low": str(self.low), "high": str(self.high)}

    def _found(self, value: object) -> int | str:
        number = _number(value)
        whole = number.denominator == 1 if isinstance(number, Fraction) else number in (math.inf, -math.inf)
        if number is None or not whole:
            return "invalid"
        if not self.low <= number <= self.high:
            return "below" if number < self.low else "above"
        return int(number) - self.low


def plain_domain(spec: Mapping[str, Any]) -> PlainDomain:
    """The domain that a description names, if it can be found without NumPy."""
    match spec:
        case {"kind": "category", "labels": list(labels), **rest} if not rest and _are_labels(labels):
            return PlainCategory(tuple(labels))
        case {"kind": "integer", "low": str(low), "high": str(high), **rest} if not rest:
            bounds = _read(low), _read(high)
            if all(isinstance(end, Fraction) and end.denominator == 1 for end in bounds):
                return PlainInteger(*(int(end) for end in bounds if end is not None))
    rule = "must be of labels or of integers where NumPy is not installed"
    raise InvalidParameter("domain", rule, given=spec.get("kind"), fix="install NumPy on this device")


def _are_labels(labels: Sequence[object]) -> bool:
    texts = [label for label in labels if isinstance(label, str) and label and _is_text(label)]
    return 0 < len(set(texts)) == len(labels)


def _is_text(label: str) -> bool:
    return label == label.encode("utf-8", "replace").decode()


def _text(value: object) -> str:
    """The canonical text of a value; empty if there is none, and no label is."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, datetime.date):
        return "" if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    number = Fraction(repr(value)) if isinstance(value, float) and math.isfinite(value) else _number(value)
    return _number_text(number) if isinstance(number, Fraction) else ""


def _number_text(value: Fraction) -> str:
    """Digits, a decimal of up to 60 places, or a ratio; empty beyond 2,000 bits."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _LARGEST_BITS:
        return ""
    places = next((p for p in range(_MOST_PLACES + 1) if 10**p % value.denominator == 0), 0)
    if not places:
        return str(value)
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _number(value: object) -> Number | None:
    """The exact number that a value is or writes; None if it is none."""
    if isinstance(value, str | Decimal):
        return _read(str(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return _read(bytes(value).decode("utf-8", "surrogateescape"))
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return Fraction(value) if isinstance(value, int | float | Fraction) else None


def _read(text: str) -> Number | None:
    """A sign, digits with a point, an exponent; or an infinity. None for all else."""
    trimmed = text.strip(_WHITE)
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST:
        return None
    if match := _INFINITE.fullmatch(trimmed):
        return -math.inf if match[1] == "-" else math.inf
    if not (match := _NUMBER.fullmatch(trimmed)):
        return None
    mantissa, exponent = Fraction(match[1]), int(match[2] or 0)
    number = mantissa * Fraction(10) ** max(-_FAR, min(exponent, _FAR))
    return math.copysign(math.inf, mantissa) if abs(number) >= _LARGEST else number


VERSION: Final = 1
_LONGEST_ROUND: Final = 100


@dataclass(frozen=True, init=False)
class Question(ABC):
    """Every value has a cell, and the randomizer makes a report of it. No value raises.

    A question is asked in a round, and everybody answers it once in each: two rounds are two questions,
    whose reports are not counted together.
    """

    asks: ClassVar[str]
    randomizer: LocalLaw
    round: str = field(default="", kw_only=True)

    @abstractmethod
    def cell(self, value: object) -> int:
        """The cell of one value."""

    @abstractmethod
    def cells(self, values: object) -> Ints:
        """The cell of every value of a column."""

    @abstractmethod
    def aggregator(self) -> Aggregator[Any]:
        """A new aggregator of reports."""

    @abstractmethod
    def _asked(self) -> Json:
        """What is asked, beside the randomizer."""

    @property
    def epsilon(self) -> Fraction:
        """What one report costs the person who sends it; verified when the question was made or read."""
        return self.randomizer.epsilon

    @property
    def guarantee(self) -> Guarantee:
        """Each person's report is private by itself: whoever looks at the aggregator, as often as they like.

        Neighbours differ in what one person answers; that a person answers at all is not hidden. It is for
        one report of each person in this round. Whoever answers in k rounds loses k times as much.
        """
        from partita.guarantee import CHANGE_ONE, UNLIMITED, Guarantee

        return Guarantee(epsilon=self.epsilon, neighbors=CHANGE_ONE, unit="user", intrusions=UNLIMITED)

    def randomize(self, value: object, *, draws: Draws | None = None) -> int:
        """One person's report, with entropy from the kernel."""
        return self.randomizer.randomize(self.cell(value), draws=draws)

    def randomize_many(self, values: object, *, words: WordSource | None = None) -> Any:
        """One report for every value of a column."""
        return self.randomizer.randomize_many(self.cells(values), words=words)

    def in_round(self, name: str) -> Self:
        """The same question in the round of this name, which everybody may answer anew.

        >>> from partita.local import Frequency
        >>> weeks = [Frequency(8, epsilon=1).in_round(week) for week in ("week 1", "week 2")]
        >>> weeks[0].digest == weeks[1].digest
        False
        """
        rule = f"must be a text of up to {_LONGEST_ROUND} signs"
        check(_is_round(name), "round", rule, given=name, fix='as "week 1"')
        made = object.__new__(type(self))
        freeze(made, **{each.name: getattr(self, each.name) for each in fields(self)} | {"round": name})
        return made

    def to_json(self) -> Json:
        """The question as devices and aggregators read it."""
        described = {"version": VERSION, "asks": self.asks, "round": self.round, **self._asked()}
        return {**described, "randomizer": self.randomizer.to_json()}

    @cached_property
    def digest(self) -> str:
        """A name for exactly this question: SHA-256 of its description, in hex."""
        return digest_of(self.to_json())


def _is_round(name: object) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST_ROUND and name.isprintable()


# Questions about cells: the values of one column, each on its own place of a line.


@dataclass(frozen=True, init=False)
class CellQuestion(Question):
    """A question about a domain: a number of cells, or a `Domain` with its special cells at the end."""

    domain: int | Domain

    @property
    def size(self) -> int:
        """The number of cells, special ones included."""
        return self.randomizer.size

    def cell(self, value: object) -> int:
        """The cell of one value."""
        return column_cell(self.domain, value)

    def cells(self, values: object) -> Ints:
        """The cell of every value of a column."""
        return column_cells(self.domain, values)

    def label(self, cell: int) -> str:
        """What a cell stands for."""
        from partita.local.frequency import domain_label

        return str(cell) if isinstance(self.domain, int) else domain_label(self.domain, cell)

    def _asked(self) -> Json:
        return {"domain": described(self.domain)}


def described(domain: int | Domain) -> Any:
    """A domain as JSON."""
    return domain if isinstance(domain, int) else domain.to_spec()


def column_size(domain: object) -> int:
    """The number of cells of a domain; it takes no NumPy to count cells that are numbers."""
    return integer(_size(domain), "domain", low=2, high=LARGEST_SIZE)


def _size(domain: object) -> object:
    if isinstance(domain, int):
        return domain
    if isinstance(domain, PlainDomain):
        return domain.size + len(domain.specials)
    from partita.local.frequency import domain_size

    return domain_size(domain)


def column_cell(domain: int | Domain, value: object) -> int:
    """The cell of one value; it takes no NumPy for cells that are numbers, nor for a plain domain."""
    if isinstance(domain, PlainDomain):
        return domain.cell(value)
    return clamped(value, domain) if isinstance(domain, int) else int(column_cells(domain, [value])[0])


def column_cells(domain: int | Domain, values: object) -> Ints:
    """The cell of every value of a column."""
    from partita.local.frequency import clipped, domain_cells

    return clipped(values, domain) if isinstance(domain, int) else domain_cells(domain, values)


# Lines of cells as trees, and views: how coarsely a report looks at each column.


Levels = tuple[int, ...]

MOST_BRANCHES: Final = 64


@final
@dataclass(frozen=True)
class CellTree:
    """Cells 0, ..., size-1 under a tree: the root is level 0, and the cells are level `height`.

    A node has `branching` children, of which those beyond the last cell are left out.

    >>> line = Line(1000, 2)
    >>> line.height, line.width(10), line.width(9), line.node(999, 9)
    (10, 1000, 500, 499)
    """

    size: int
    branching: int = 2

    def __post_init__(self) -> None:
        freeze(
            self,
            size=integer(self.size, "size", low=2),
            branching=integer(self.branching, "branching", low=2, high=MOST_BRANCHES),
        )

    @property
    def height(self) -> int:
        """The number of levels below the root: the least with enough cells."""
        levels = 1
        while self.branching**levels < self.size:
            levels += 1
        return levels

    def span(self, level: int) -> int:
        """How many cells a node of a level holds."""
        return int(self.branching ** (self.height - level))

    def width(self, level: int) -> int:
        """How many nodes a level has."""
        return -(-self.size // self.span(level))

    def node(self, cell: Numbers, level: int) -> Numbers:
        """The node of a level above a cell."""
        return cell // self.span(level)

    def cover(self, low: int, high: int) -> list[tuple[int, int]]:
        """The fewest nodes, as pairs of level and number, that hold the cells low, ..., high exactly.

        >>> Line(8).cover(1, 6)
        [(3, 1), (3, 6), (2, 1), (2, 2)]
        """
        found = []
        for level in range(self.height, 0, -1):
            while low <= high and low % self.branching:
                found.append((level, low))
                low += 1
            while low <= high and (high + 1) % self.branching and high + 1 < self.width(level):
                found.append((level, high))
                high -= 1
            if low > high:
                return found
            low, high = low // self.branching, high // self.branching
        return [*found, (0, 0)]


@final
@dataclass(frozen=True)
class ReportView:
    """A look at a cell of several columns: of each column only the node of some level is seen.

    The cells of all columns are one number, the last column running fastest, and so are nodes.

    >>> view = View((Line(8), Line(4)), (1, 2))
    >>> view.size, view.node(7 * 4 + 3)
    (8, 7)
    """

    lines: tuple[CellTree, ...]
    levels: Levels

    def __post_init__(self) -> None:
        """Lines and levels made anew from their numbers: what a view sees of a cell follows from these."""
        if len(self.lines) != len(self.levels) or {type(line) for line in self.lines} != {CellTree}:
            fix = "pass for example (Line(8),)"
            raise InvalidParameter("lines", "must be lines, with a level of each", given=None, fix=fix)
        lines = tuple(CellTree(line.size, line.branching) for line in self.lines)
        levels = zip(self.levels, lines, strict=True)
        checked = tuple(integer(level, "levels", low=0, high=line.height) for level, line in levels)
        freeze(self, lines=lines, levels=checked)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of nodes of each column."""
        return tuple(line.width(level) for line, level in zip(self.lines, self.levels, strict=True))

    @property
    def size(self) -> int:
        """The number of nodes of all columns together."""
        return prod(self.widths)

    def node(self, cell: Numbers) -> Numbers:
        """What is seen of a cell."""
        seen: Numbers = 0
        stride = prod(line.size for line in self.lines)
        for line, level in zip(self.lines, self.levels, strict=True):
            stride //= line.size
            seen = seen * line.width(level) + line.node(cell // stride % line.size, level)
        return seen


def line_views(line: CellTree) -> tuple[ReportView, ...]:
    """One view for each level of one column."""
    return tuple(ReportView((line,), (level,)) for level in range(1, line.height + 1))


def tensor_views(lines: tuple[CellTree, ...]) -> tuple[ReportView, ...]:
    """One view for each choice of a level for every column, but for the one that sees nothing."""
    choices = product(*(range(line.height + 1) for line in lines))
    return tuple(ReportView(lines, levels) for levels in choices if any(levels))


def grid_views(lines: tuple[CellTree, ...], cells: int) -> tuple[ReportView, ...]:
    """Every level of each column by itself, and for every two columns a grid of about `cells` a side."""
    columns = range(len(lines))
    nothing = (0,) * len(lines)
    alone = [_with(nothing, {at: level}) for at in columns for level in range(1, lines[at].height + 1)]
    finest = [_finest(line, cells) for line in lines]
    pairs = [
        _with(nothing, {one: finest[one], other: finest[other]})
        for one in columns
        for other in columns[one + 1 :]
    ]
    return tuple(ReportView(lines, levels) for levels in (*alone, *pairs))


def _with(levels: Levels, changed: dict[int, int]) -> Levels:
    return tuple(changed.get(at, level) for at, level in enumerate(levels))


def _finest(line: CellTree, cells: int) -> int:
    """The last level with at most so many nodes; at least the first."""
    return max([1, *(level for level in range(1, line.height + 1) if line.width(level) <= cells)])


# The sealed registry: every randomizer that a description may name, loaded when it is named.


_FREQUENCY: Final = {
    "response": ("randomizer", "RandomizedResponse"),
    "projective": ("encodings", "ProjectiveResponse"),
    "hadamard": ("encodings", "HadamardResponse"),
    "unary": ("randomizer", "UnaryEncoding"),
    "hashing": ("encodings", "LocalHashing"),
}
_MEAN: Final = {"one-bit": ("encodings", "OneBit"), "piecewise": ("encodings", "Piecewise")}
_HOMES: Final = {**_FREQUENCY, **_MEAN}

FREQUENCY_KINDS: Final = tuple(_FREQUENCY)
MEAN_KINDS: Final = tuple(_MEAN)
KINDS: Final = tuple(_HOMES)


def randomizer_kind(name: object) -> type[Randomizer]:
    """The class of randomizers of this kind.

    >>> randomizer_kind("response").__name__
    'RandomizedResponse'
    """
    if not isinstance(name, str) or name not in _HOMES:
        fix = "check it, or use a newer Partita"
        raise InvalidParameter("kind", f"must be one of {', '.join(KINDS)}", given=name, fix=fix)
    module, kind = _HOMES[name]
    found: type[Randomizer] = getattr(import_module(f"partita.local.{module}"), kind)
    return found


# Randomizers and questions, read strictly from what their owner wrote down.
#
# To read a description is to verify it: it must be what its kind, size and epsilon give, to the last digit.
# A
# threshold that loses more than epsilon is refused, and so is one that loses less: it would do no harm
# to the answer, but a server could tell devices apart by it.


_MOST_PARTS: Final = 512
_MOST_DIGITS: Final = 20


def randomizer_from(description: object) -> Randomizer:
    """The randomizer that `to_json` described; its threshold is verified, its epsilon is exact.

    >>> described = {"kind": "response", "size": 2, "epsilon": "1", "threshold": "13485650502877570762"}
    >>> float(randomizer_from(described).chance)
    0.7310585...
    """
    given = _mapping(description, "randomizer")
    kind = randomizer_kind(given.get("kind"))
    names = [field.name for field in fields(kind)]
    _exactly(given, "randomizer", ("kind", *names))
    made = kind(size=_read_number(given, "size"), epsilon=given["epsilon"])
    for name in names:
        if name not in ("size", "epsilon"):
            _check_derived(name, _read_number(given, name), getattr(made, name))
    return made


def question_from(description: object) -> Question:
    """The question that `to_json` described, with its randomizer verified."""
    given = _mapping(description, "question")
    asks = given.get("asks")
    if given.get("version") != VERSION or not isinstance(asks, str) or asks not in _QUESTIONS:
        rule = f"must be of version {VERSION} and ask for {' or '.join(_QUESTIONS)}"
        raise InvalidParameter("question", rule, given=asks, fix="use a newer Partita")
    entries, read = _QUESTIONS[asks]
    _exactly(given, "question", ("version", "asks", "round", "randomizer", *entries))
    return read(given).in_round(given["round"])


def _mean(given: Mapping[str, Any]) -> Question:
    from partita.local.mean import Mean

    return Mean.of(given["low"], given["high"], randomizer_from(given["randomizer"]))


def _frequency(given: Mapping[str, Any]) -> Question:
    from partita.local.frequency import Frequency

    return Frequency.of(_domain(given["domain"]), randomizer_from(given["randomizer"]))


def _range(given: Mapping[str, Any]) -> Question:
    from partita.local.ranges import Range

    return Range.of(_domain(given["domain"]), given["branching"], _parts(given["randomizer"]))


def _rectangles(given: Mapping[str, Any]) -> Question:
    from partita.local.ranges import Rectangles

    columns = {name: _domain(domain) for name, domain in _mapping(given["columns"], "columns").items()}
    return Rectangles.of(columns, given["branching"], given["grid"], _parts(given["randomizer"]))


_QUESTIONS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Question]]]] = {
    "frequency": (("domain",), _frequency),
    "mean": (("low", "high"), _mean),
    "range": (("domain", "branching"), _range),
    "rectangles": (("columns", "branching", "grid"), _rectangles),
}
"""The entries that a question of each kind has beside those of all, and what reads them."""


def _parts(description: object) -> list[Randomizer]:
    """The randomizers of a mixture, each of them verified."""
    given = _mapping(description, "randomizer")
    _exactly(given, "randomizer", ("kind", "parts"))
    listed = given["parts"]
    if given["kind"] != "mixture" or not isinstance(listed, list) or not 0 < len(listed) <= _MOST_PARTS:
        fix = "pass what to_json returned"
        raise InvalidParameter("randomizer", "must be a mixture of randomizers", given=None, fix=fix)
    return [randomizer_from(part) for part in listed]


def question_read(text: str | bytes) -> Question:
    """The question written as JSON text."""
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter("question", "must be JSON", given=None, fix="write it with to_json") from None
    return question_from(description)


def _domain(given: object) -> Any:
    """A number of cells, or a domain: a plain one where NumPy is not installed."""
    if isinstance(given, int):
        return given
    spec = _mapping(given, "domain")
    try:
        from partita.domain import domain_from_spec
    except ImportError:
        return plain_domain(spec)
    return domain_from_spec(spec)


def _mapping(given: object, name: str) -> Mapping[str, Any]:
    return check_type(given, Mapping, name, "must be a JSON object", fix="pass what to_json returned")


def _exactly(given: Mapping[str, Any], name: str, entries: tuple[str, ...]) -> None:
    if set(given) != set(entries):
        fix = "pass what to_json returned"
        raise InvalidParameter(name, f"must have the entries {', '.join(entries)}", given=None, fix=fix)


def _check_derived(name: str, given: int, derived: int) -> None:
    """Whatever follows from kind, size and epsilon must be just that."""
    rule = f"must be {derived}, as kind, size and epsilon give it"
    check(given == derived, name, rule, given=given, fix="do not answer this question")


def _read_number(given: Mapping[str, Any], name: str) -> int:
    """A number of a randomizer: a threshold is the digits of a positive integer."""
    value = given[name]
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS
    if not (digits if name == "threshold" else isinstance(value, int)) or int(value) < 1:
        fix = "pass what to_json returned"
        raise InvalidParameter(name, "must be a positive integer", given=value, fix=fix)
    return int(value)
