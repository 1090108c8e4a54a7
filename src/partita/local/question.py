"""Questions that people answer on their own devices, and how a device reads one.

`Frequency` asks which value a person holds, `Mean` asks for a number; questions about ranges are in
`partita.local.ranges`. This module needs the standard library only. Labels and whole numbers have plain
domains here; dates, times and rounded numbers need NumPy.
"""

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
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final, get_args

from partita.errors import InvalidParameter, check, check_arguments, check_type
from partita.local.encodings import (
    HadamardResponse,
    LocalHashing,
    MeanRandomizer,
    OneBit,
    Piecewise,
    ProjectiveResponse,
)
from partita.local.randomizer import (
    LARGEST_SIZE,
    FrequencyRandomizer,
    Json,
    LocalLaw,
    RandomizedResponse,
    Randomizer,
    UnaryEncoding,
    check_epsilon,
    clamped,
    digest_of,
)
from partita.numbers import check_choice, freeze, integer, rational

if TYPE_CHECKING:
    from partita.arrays import Ints
    from partita.domain.base import Domain
    from partita.guarantee import Guarantee
    from partita.local.aggregate import Aggregator, FrequencyAggregator, MeanAggregator
    from partita.local.randomizer import Draws
    from partita.trusted.noise.laws import WordSource

VERSION: Final = 1
_LONGEST_ROUND: Final = 100


@dataclass(frozen=True, init=False)
class Question(ABC):
    """Every value has a cell, and the randomizer makes a report of it. No value raises.

    A question is asked in a round, and everybody answers it once in each round: two rounds are two questions,
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
        given: object = name
        fits = isinstance(given, str) and len(given) <= _LONGEST_ROUND and given.isprintable()
        check(fits, "round", rule, given=name, fix='as "week 1"')
        made = object.__new__(type(self))
        freeze(made, **{each.name: getattr(self, each.name) for each in fields(self)} | {"round": name})
        return made

    def to_json(self) -> Json:
        """The question as devices and aggregators read it."""
        entries = {"version": VERSION, "asks": self.asks, "round": self.round, **self._asked()}
        return {**entries, "randomizer": self.randomizer.to_json()}

    @cached_property
    def digest(self) -> str:
        """A name for exactly this question: SHA-256 of its description, in hex."""
        return digest_of(self.to_json())


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
        from partita.local.columns import domain_label

        return str(cell) if isinstance(self.domain, int) else domain_label(self.domain, cell)

    def _asked(self) -> Json:
        return {"domain": describe_domain(self.domain)}


FrequencyKind: TypeAlias = Literal["auto", "response", "projective", "hadamard", "unary", "hashing"]
_OFFERED: Final = ("response", "projective")
_MOST_VARIANCE: Final = Fraction(3, 2)
"""What the more robust kind may cost: sqrt(3/2) = 1.22 times the standard error."""


@final
@check_arguments
@dataclass(frozen=True, init=False)
class Frequency(CellQuestion):
    """Which of a public list of values does a person hold?

    The domain is a number of cells, or a `Domain`, whose special cells come after the ordinary ones. With
    a number of cells, whole numbers go to the nearest cell and all else to the first; a `Domain` has a
    special cell for what does not belong. `kind` names a randomizer. "auto" takes randomized response or
    projective geometry response, whichever has the lower variance on average over all cells; but the other
    one if forged reports can do half as much with it at most, and its variance is at most 1.5 times as large.

    >>> Frequency(9, epsilon=1).randomizer.kind, Frequency(8, epsilon=1).randomizer.kind
    ('projective', 'response')
    """

    asks: ClassVar[str] = "frequency"
    randomizer: FrequencyRandomizer

    def __init__(self, domain: int | Domain, *, epsilon: object, kind: FrequencyKind = "auto") -> None:
        check_choice(kind, "kind", get_args(FrequencyKind))
        size, exact = column_size(domain), check_epsilon(epsilon)
        kinds = _OFFERED if kind == "auto" else (kind,)
        made = [randomizer_kind(name)(size=size, epsilon=exact) for name in kinds]
        freeze(self, domain=domain, randomizer=_choose_law(made))

    @classmethod
    def of(cls, domain: int | Domain, randomizer: Randomizer) -> Self:
        """The question about a domain with a given randomizer of its cells."""
        if not isinstance(randomizer, FrequencyRandomizer) or randomizer.size != column_size(domain):
            rule = "must be one of the cells of the domain"
            raise InvalidParameter("randomizer", rule, given=randomizer, fix="leave it out")
        made = object.__new__(cls)
        freeze(made, domain=domain, randomizer=randomizer)
        return made

    def aggregator(self) -> FrequencyAggregator:
        from partita.local.aggregate import FrequencyAggregator

        return FrequencyAggregator(self)


def _choose_law(made: list[Any]) -> Any:
    """The kind of least variance, or a kind that is much more robust at little cost.

    A forged report then moves half as much at most, for at most a quarter more standard error. Up to
    epsilon 4 this changes nothing: the kind of least variance is nearly as robust as the other, or more.
    """
    best = min(made, key=_average_variance)
    robust = [each for each in made if _costs_little(each, best)]
    return min(robust, key=lambda each: each.forged_report_shift, default=best)


def _costs_little(other: Any, best: Any) -> bool:
    half = 2 * other.forged_report_shift <= best.forged_report_shift
    return half and _average_variance(other) <= _MOST_VARIANCE * _average_variance(best)


def _average_variance(randomizer: Any) -> Fraction:
    """n times the variance of a frequency, exactly, on average over all cells: the same for all data."""
    variance: Fraction = randomizer.exact_variance(Fraction(1, randomizer.size))
    return variance


MeanKind: TypeAlias = Literal["auto", "one-bit", "piecewise"]
_FARTHEST: Final = 10**300


@final
@check_arguments
@dataclass(frozen=True, init=False)
class Mean(Question):
    """What is a person's number, between two public bounds?

    Numbers are clamped to the bounds and rounded to a step of 2^-20 of their distance; what is no number
    counts as the middle. "auto" takes the randomizer with the lower variance at its worst: one bit for small
    epsilon, piecewise for larger.

    >>> Mean(0, 24, epsilon=1).randomizer.kind, Mean(0, 24, epsilon=3).randomizer.kind
    ('one-bit', 'piecewise')
    """

    asks: ClassVar[str] = "mean"
    low: Fraction
    high: Fraction
    randomizer: MeanRandomizer

    def __init__(self, low: object, high: object, *, epsilon: object, kind: MeanKind = "auto") -> None:
        check_choice(kind, "kind", get_args(MeanKind))
        exact = check_epsilon(epsilon)
        laws = [law(epsilon=exact) for law in _OF_NUMBERS if kind in ("auto", law.kind)]
        self._fill(low, high, min(laws, key=lambda law: law.largest_variance))

    @classmethod
    def of(cls, low: object, high: object, randomizer: Randomizer) -> Self:
        """The question about bounds with a given randomizer."""
        fix = "leave it out"
        randomizer = check_type(randomizer, MeanRandomizer, "randomizer", "must be one of numbers", fix=fix)
        made = object.__new__(cls)
        made._fill(low, high, randomizer)
        return made

    def _fill(self, low: object, high: object, randomizer: MeanRandomizer) -> None:
        first, last = rational(low, "low"), rational(high, "high")
        check(first < last, "high", "must be above low", given=high, fix="swap the bounds")
        near = max(abs(first), abs(last), 1 / (last - first)) <= _FARTHEST
        rule = "must be within 10^300, and 10^-300 from low"
        check(near, "high", rule, given=high, fix="change the unit")
        freeze(self, low=first, high=last, randomizer=randomizer)

    def cell(self, value: object) -> int:
        """The nearest step, the upper one of two; the middle for what is no number."""
        share = (self._clamp(value) - self.low) / (self.high - self.low)
        return int(share * (self.randomizer.size - 1) + Fraction(1, 2))

    def _clamp(self, value: object) -> Fraction:
        """A number between the bounds, whatever the value is."""
        if sign := _infinite_sign(value):
            return self.high if sign > 0 else self.low
        try:
            return max(self.low, min(self.high, rational(value, "value")))
        except InvalidParameter:
            return (self.low + self.high) / 2

    def cells(self, values: object) -> Ints:
        """The nearest step of every number of a column, as one by one."""
        import numpy as np

        from partita.arrays import as_rows

        given = as_rows(values, "values").ravel()
        if given.dtype.kind not in "iuf":
            return np.array([self.cell(value) for value in given.tolist()], dtype=np.int64)
        with np.errstate(over="ignore"):
            shares = (given.astype(np.float64) - float(self.low)) / float(self.high - self.low)
        places = np.nan_to_num(shares, nan=0.5).clip(0, 1) * (self.randomizer.size - 1)
        rounded: Ints = np.floor(places + 0.5).astype(np.int64)
        for row in np.flatnonzero(np.abs(places - np.floor(places) - 0.5) <= self._doubt):
            rounded[row] = self.cell(given[row].item())
        return rounded

    @property
    def _doubt(self) -> float:
        """How far floats may be from the exact place of a number; nearer to a tie it is found exactly."""
        far = float(max(abs(self.low), abs(self.high)) / (self.high - self.low))
        return 2.0**-50 * (1 + far) * (self.randomizer.size - 1)

    def aggregator(self) -> MeanAggregator:
        from partita.local.aggregate import MeanAggregator

        return MeanAggregator(self)

    def _asked(self) -> Json:
        return {"low": str(self.low), "high": str(self.high)}


def _infinite_sign(value: object) -> int:
    """The sign of an infinite number, and 0 for all else."""
    if isinstance(value, Decimal):
        return (-1 if value.is_signed() else 1) * value.is_infinite()
    return int(math.copysign(1, value)) * math.isinf(value) if isinstance(value, float) else 0


# The cells of a domain, without NumPy where that is possible.


def describe_domain(domain: int | Domain) -> Any:
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
    from partita.local.columns import domain_size

    return domain_size(domain)


def column_cell(domain: int | Domain, value: object) -> int:
    """The cell of one value; it takes no NumPy for cells that are numbers, nor for a plain domain."""
    if isinstance(domain, PlainDomain):
        return domain.cell(value)
    return clamped(value, domain) if isinstance(domain, int) else int(column_cells(domain, [value])[0])


def column_cells(domain: int | Domain, values: object) -> Ints:
    """The cell of every value of a column."""
    from partita.local.columns import clip_cells, domain_cells

    return clip_cells(values, domain) if isinstance(domain, int) else domain_cells(domain, values)


# Plain domains: the cell of one value, as `partita.domain` finds it for a column.


Number: TypeAlias = Fraction | float
_MISSING: Final = {"NoneType", "NAType", "NaTType"}
# The limits of `partita.domain.columns` and `category`, on a device.
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
    texts = [label for label in labels if isinstance(label, str) and label]
    sound = all(text == text.encode("utf-8", "replace").decode() for text in texts)
    return sound and 0 < len(set(texts)) == len(labels)


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


# The sealed registry of randomizers: a description may name these only.

_OF_CELLS: Final[tuple[type[Randomizer], ...]] = (
    RandomizedResponse,
    ProjectiveResponse,
    HadamardResponse,
    UnaryEncoding,
    LocalHashing,
)
_OF_NUMBERS: Final[tuple[type[MeanRandomizer], ...]] = (OneBit, Piecewise)
_RANDOMIZERS: Final[Mapping[str, type[Randomizer]]] = {law.kind: law for law in (*_OF_CELLS, *_OF_NUMBERS)}

FREQUENCY_KINDS: Final = tuple(law.kind for law in _OF_CELLS)
MEAN_KINDS: Final = tuple(law.kind for law in _OF_NUMBERS)
KINDS: Final = tuple(_RANDOMIZERS)


def randomizer_kind(name: object) -> type[Randomizer]:
    """The class of randomizers of this kind.

    >>> randomizer_kind("response").__name__
    'RandomizedResponse'
    """
    if not isinstance(name, str) or name not in _RANDOMIZERS:
        fix = "check it, or use a newer Partita"
        raise InvalidParameter("kind", f"must be one of {', '.join(KINDS)}", given=name, fix=fix)
    return _RANDOMIZERS[name]


# Descriptions of randomizers and questions, read strictly: to read one is to verify it. It must be what its
# kind, size and epsilon give, to the last digit. A threshold that loses less than epsilon is refused too: it
# would do no harm to the answer, but a server could tell devices apart by it.

_MOST_PARTS: Final = 512
_MOST_DIGITS: Final = 20
_WRITTEN: Final = "pass what to_json returned"


def randomizer_from(description: object) -> Randomizer:
    """The randomizer that `to_json` described; its threshold is verified, its epsilon is exact.

    >>> described = {"kind": "response", "size": 2, "epsilon": "1", "threshold": "13485650502877570762"}
    >>> float(randomizer_from(described).chance)
    0.7310585...
    """
    given = _mapping(description, "randomizer")
    kind = randomizer_kind(given.get("kind"))
    names = [field.name for field in fields(kind)]
    _check_entries(given, "randomizer", ("kind", *names))
    made = kind(size=_read_number(given, "size"), epsilon=given["epsilon"])
    for name in names:
        if name not in ("size", "epsilon"):
            number, derived = _read_number(given, name), getattr(made, name)
            rule = f"must be {derived}, as kind, size and epsilon give it"
            check(number == derived, name, rule, given=number, fix="do not answer this question")
    return made


def parse_question(text: str | bytes) -> Question:
    """The question written as JSON text."""
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter("question", "must be JSON", given=None, fix="write it with to_json") from None
    return question_from(description)


def question_from(description: object) -> Question:
    """The question that `to_json` described, with its randomizer verified."""
    given = _mapping(description, "question")
    asks = given.get("asks")
    if given.get("version") != VERSION or not isinstance(asks, str) or asks not in _QUESTIONS:
        rule = f"must be of version {VERSION} and ask for {' or '.join(_QUESTIONS)}"
        raise InvalidParameter("question", rule, given=asks, fix="use a newer Partita")
    entries, read = _QUESTIONS[asks]
    _check_entries(given, "question", ("version", "asks", "round", "randomizer", *entries))
    return read(given).in_round(given["round"])


def _mean(given: Mapping[str, Any]) -> Question:
    return Mean.of(given["low"], given["high"], randomizer_from(given["randomizer"]))


def _frequency(given: Mapping[str, Any]) -> Question:
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
    _check_entries(given, "randomizer", ("kind", "parts"))
    listed = given["parts"]
    fits = given["kind"] == "mixture" and isinstance(listed, list) and 0 < len(listed) <= _MOST_PARTS
    check(fits, "randomizer", "must be a mixture of randomizers", given=None, fix=_WRITTEN)
    return [randomizer_from(part) for part in listed]


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
    return check_type(given, Mapping, name, "must be a JSON object", fix=_WRITTEN)


def _check_entries(given: Mapping[str, Any], name: str, entries: tuple[str, ...]) -> None:
    rule = f"must have the entries {', '.join(entries)}"
    check(set(given) == set(entries), name, rule, given=None, fix=_WRITTEN)


def _read_number(given: Mapping[str, Any], name: str) -> int:
    """A number of a randomizer: a threshold is the digits of a positive integer."""
    value = given[name]
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS
    fits = (digits if name == "threshold" else isinstance(value, int)) and int(value) >= 1
    check(fits, name, "must be a positive integer", given=value, fix=_WRITTEN)
    return int(value)
