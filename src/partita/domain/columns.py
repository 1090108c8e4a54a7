"""Any column, as a few kinds of typed content.

A column arrives as a NumPy array, an Arrow array, a list, or an object with an Arrow interface. `read` turns
it into parts: some rows, and content of one kind. A domain then says what each kind means to it, and
`assemble` puts the rows back together. A column of mixed Python values has several parts, and a part may be a
column again.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from partita.domain.base import Encoded, Special
from partita.errors import InvalidData

LONGEST: Final = 400
"""Bytes of text beyond which no number, date or time is read."""
WHITE: Final = b" \t\n\r\f\v"
"""The ASCII white space that is trimmed around numbers, dates and times."""

Rows: TypeAlias = slice | npt.NDArray[np.int64] | npt.NDArray[np.bool_]
Number: TypeAlias = int | Fraction | float
Whole: TypeAlias = npt.NDArray[np.int64 | np.uint64]


class Blank(Enum):
    """Rows without content: of no value (None, masked, NaT, an Arrow null), or of none that can be read."""

    MISSING = auto()
    INVALID = auto()


@dataclass(frozen=True)
class _Values:
    """One value for each row."""

    values: Any

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Flags(_Values):
    """True and False."""

    values: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Scaled(_Values):
    """64-bit integers, signed or not, that count a common unit: integers and decimals."""

    values: Whole
    unit: Fraction = Fraction(1)


@dataclass(frozen=True)
class Floats(_Values):
    """Binary floating point, each the exact number that its 64 bits say."""

    values: npt.NDArray[np.float64]

    @classmethod
    def widened(cls, values: npt.NDArray[Any]) -> Floats:
        """Floats of 64 bits or fewer; a signalling NaN may pass without complaint."""
        with np.errstate(invalid="ignore"):
            return cls(values.astype(np.float64, copy=False))


@dataclass(frozen=True)
class Exacts(_Values):
    """Python ints and Fractions of any size, and floats as the numbers that their bits say."""

    values: Sequence[Number]


@dataclass(frozen=True)
class Texts(_Values):
    """Text as bytes in an Arrow large_binary array without nulls, valid UTF-8 or not."""


@dataclass(frozen=True)
class Moments:
    """Points in time: a day since 1970-01-01 and the nanosecond of that day.

    `aware` moments are instants in UTC; the others are readings of a wall clock somewhere. `dated` ones are
    calendar days without a time of day. Days further than `FAR` from 1970 are brought to that distance.
    """

    day: npt.NDArray[np.int64]
    nanosecond: npt.NDArray[np.int64]
    aware: bool
    dated: bool = False

    def __len__(self) -> int:
        return len(self.day)


@dataclass(frozen=True)
class Coded:
    """Rows that are positions in another column, as in a dictionary of distinct values."""

    codes: npt.NDArray[np.int64]
    column: Column


@dataclass(frozen=True)
class Column:
    """A column cut into parts that together hold every row once."""

    length: int
    parts: Sequence[Part]

    @classmethod
    def of(cls, content: Content, length: int) -> Column:
        """A column of one kind."""
        return cls(length, [(slice(None), content)])

    @classmethod
    def split(cls, mask: npt.NDArray[np.bool_], there: Content, elsewhere: Content) -> Column:
        """A column of two kinds: one where the mask is true, another where it is false."""
        return cls(len(mask), [(mask, there), (~mask, elsewhere)])


Plain: TypeAlias = Flags | Scaled | Floats | Exacts | Texts | Moments
Content: TypeAlias = Plain | Blank | Coded | Column
Part: TypeAlias = tuple[Rows, Content]
Encoder: TypeAlias = Callable[[Plain], Encoded]


def assemble(column: Column, encode: Encoder, *, invalid: Special, width: int = 1) -> Encoded:
    """Encode each part by `encode` and put its rows back where they were; a cell may be several words."""
    cells = np.zeros(column.length if width == 1 else (column.length, width), np.uint64)
    special = np.zeros(column.length, np.uint8)
    for rows, content in column.parts:
        if isinstance(content, Blank):
            special[rows] = Special.NULL if content is Blank.MISSING else invalid
        else:
            part = _encode_part(content, encode, invalid, width)
            cells[rows], special[rows] = part.cells, part.special
    return Encoded(cells, special)


def exact_column(values: Sequence[Number | None]) -> Column:
    """A column of exact numbers that is invalid where there is None."""
    known = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return Column.split(known, Exacts([value for value in values if value is not None]), Blank.INVALID)


def _encode_part(content: Plain | Coded | Column, encode: Encoder, invalid: Special, width: int) -> Encoded:
    match content:
        case Coded(codes, column):
            return assemble(column, encode, invalid=invalid, width=width).take(codes)
        case Column():
            return assemble(content, encode, invalid=invalid, width=width)
        case _:
            return encode(content)


# Points in time as a day and a nanosecond, in the proleptic Gregorian calendar.

SECOND: Final = 10**9
DAY: Final = 86_400 * SECOND
FAR: Final = 10**7
"""Days from 1970 beyond which all days are alike: some 27,000 years, outside every domain."""

UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "D": DAY,
    "W": 7 * DAY,
}
# NumPy units shorter than a nanosecond, as parts of one.
_FINER: Final = {"ps": 10**3, "fs": 10**6, "as": 10**9}
_MONTHS: Final = {"M": 1, "Y": 12}

Unit: TypeAlias = str
_Pair: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_FAR_MONTHS: Final = 300_000
_ISO: Final = re.compile(
    rb"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{4}-W[0-9]{2}(?:-[0-9])?|[0-9]{4}W[0-9]{2}[0-9]?)"
    rb"(?:[T ](?P<hour>[01][0-9]|2[0-3])(?::?(?P<minute>[0-5][0-9])"
    rb"(?::?(?P<second>[0-5][0-9])(?:[.,](?P<fraction>[0-9]+))?)?)?"
    rb"(?P<zone>Z|(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3])"
    rb"(?::?(?P<minutes>[0-5][0-9])(?::?(?P<seconds>[0-5][0-9]))?)?)?)?"
)


class Moment(NamedTuple):
    """One point in time; see `Moments`."""

    day: int
    nanosecond: int
    aware: bool
    dated: bool = False

    @property
    def total(self) -> int:
        """Nanoseconds since 1970-01-01."""
        return self.day * DAY + self.nanosecond


def day_and_nanosecond(counts: npt.NDArray[np.int64], unit: Unit, multiple: int = 1) -> _Pair:
    """Days and nanoseconds of the day, of counts of `multiple` units since 1970.

    >>> day_and_nanosecond(np.array([-1, 90_000]), "s")
    (array([-1,  1]), array([86399000000000,  3600000000000]))
    """
    if unit in _MONTHS:
        return _from_months(counts, _MONTHS[unit] * multiple)
    if unit in _FINER:
        counts, unit, multiple = _scale(counts, multiple) // _FINER[unit], "ns", 1
    length = UNITS[unit] * multiple
    if DAY % length == 0:
        slots = DAY // length
        return _near(counts // slots), (counts % slots * length).astype(np.int64)
    total = _scale(counts, length)
    return _near(total // DAY), (total % DAY).astype(np.int64)


def moment_of(value: datetime.date) -> Moment:
    """The moment of a date or datetime; an aware one is moved to UTC, outside Python's years too.

    >>> moment_of(datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    Moment(day=-719163, nanosecond=82800000000000, aware=True, dated=False)
    """
    day = value.toordinal() - _EPOCH
    if not isinstance(value, datetime.datetime):
        return Moment(day, 0, aware=False, dated=True)
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    nanosecond = seconds * SECOND + value.microsecond * 1000 + int(getattr(value, "nanosecond", 0))
    return _moment(day, nanosecond, value.utcoffset())


def moment_of_text(text: bytes) -> Moment | None:
    """The moment that ISO 8601 text writes, or None; ASCII white space around it is trimmed.

    The text follows the rules of `datetime.fromisoformat`: a date (2024-01-31, 20240131 or 2024-W05-3), then
    optionally `T` or a space, a time (hours, minutes and seconds, with or without colons, and a fraction of
    the second), and an offset (`Z`, +01, +01:00, +01:00:30). Fractions are read to the nanosecond, and later
    digits are cut off. There is no hour 24 and no second 60.

    >>> moment_of_text(b"1970-01-02T00:00:00.5+00:00")
    Moment(day=1, nanosecond=500000000, aware=True, dated=False)
    """
    match = _ISO.fullmatch(text.strip(WHITE)) if len(text) <= LONGEST else None
    try:
        return _read_match(match) if match else None
    except ValueError:
        return None


def _read_match(match: re.Match[bytes]) -> Moment:
    day = datetime.date.fromisoformat(match["date"].decode()).toordinal() - _EPOCH
    if match["hour"] is None:
        return Moment(day, 0, aware=False, dated=True)
    seconds = _seconds(match["hour"], match["minute"], match["second"])
    fraction = int((match["fraction"] or b"")[:9].ljust(9, b"0"))
    return _moment(day, seconds * SECOND + fraction, _offset(match))


def _offset(match: re.Match[bytes]) -> datetime.timedelta | None:
    if match["zone"] is None:
        return None
    seconds = _seconds(match["hours"], match["minutes"], match["seconds"])
    return datetime.timedelta(seconds=-seconds if match["sign"] == b"-" else seconds)


def _seconds(hour: bytes | None, minute: bytes | None, second: bytes | None) -> int:
    return (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)


def _moment(day: int, nanosecond: int, offset: datetime.timedelta | None) -> Moment:
    if offset is None:
        return Moment(day, nanosecond, aware=False)
    utc = day * DAY + nanosecond - offset // datetime.timedelta(microseconds=1) * 1000
    return Moment(*divmod(utc, DAY), aware=True)


def _from_months(counts: npt.NDArray[np.int64], months: int) -> _Pair:
    far = -(-_FAR_MONTHS // months)
    first_days = (np.clip(counts, -far, far) * months).astype("M8[M]").astype("M8[D]")
    return _near(first_days.astype(np.int64)), np.zeros(len(counts), np.int64)


def _scale(counts: npt.NDArray[np.int64], factor: int) -> npt.NDArray[Any]:
    """Counts times a factor, as Python ints: the product may not fit 64 bits."""
    return counts if factor == 1 else counts.astype(object) * factor


def _near(days: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    near: npt.NDArray[np.int64] = np.clip(days, -FAR, FAR).astype(np.int64)
    return near


# Arrow arrays of every type, as columns. Arrow is imported when a column is read.

ArrowArray: TypeAlias = Any
ArrowType: TypeAlias = Any


def read_arrow(array: ArrowArray) -> Column:
    """An Arrow Array or ChunkedArray as a column; a null is missing, in a dictionary too."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        return _chunks(array)
    if isinstance(array, pa.ExtensionArray):
        return read_arrow(array.storage)
    if isinstance(array, pa.RunEndEncodedArray):
        return Column.of(_runs(array), len(array))
    if isinstance(array, pa.DictionaryArray):
        codes = array.indices
        coded = Coded(_integers(codes.drop_null()), read_arrow(array.dictionary))
        return Column.split(_present(codes), coded, Blank.MISSING)
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    reader = _reader(array.type)
    content = reader(array.drop_null()) if reader else Blank.INVALID
    return Column.split(_present(array), content, Blank.MISSING)


def texts(array: ArrowArray) -> Coded:
    """Text or bytes without nulls: each distinct value once."""
    import pyarrow as pa

    encoded = array.cast(pa.large_binary()).dictionary_encode()
    distinct = Column.of(Texts(encoded.dictionary), len(encoded.dictionary))
    return Coded(_integers(encoded.indices), distinct)


def cast_texts(
    distinct: Texts, plain: Mapping[str, ArrowType], read_others: Callable[[list[bytes]], Column]
) -> Column:
    """Texts cast by Arrow where they match one of the patterns, and read one by one where not.

    The patterns are disjoint, and admit only ASCII text that the cast to their type accepts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Part] = []
    others = np.ones(len(distinct), np.bool_)
    for pattern, kind in plain.items():
        matches = pc.match_substring_regex(distinct.values, pattern).to_numpy(zero_copy_only=False)
        chosen = distinct.values.filter(pa.array(matches)).cast(pa.large_string())
        parts.append((matches, read_arrow(chosen.cast(kind))))
        others &= ~matches
    rest = distinct.values.filter(pa.array(others)).to_pylist()
    return Column(len(distinct), [*parts, (others, read_others(rest))])


def _chunks(array: ArrowArray) -> Column:
    parts: list[Part] = []
    start = 0
    for chunk in array.iterchunks():
        parts.append((slice(start, start + len(chunk)), read_arrow(chunk)))
        start += len(chunk)
    return Column(len(array), parts)


def _runs(array: ArrowArray) -> Coded:
    """Runs of equal values; the ends count from before the first row of a slice."""
    rows = np.arange(array.offset, array.offset + len(array))
    codes = np.searchsorted(_integers(array.run_ends), rows, side="right")
    return Coded(codes.astype(np.int64), read_arrow(array.values))


def _present(array: ArrowArray) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def _integers(array: ArrowArray) -> npt.NDArray[np.int64]:
    return np.asarray(array.to_numpy(), np.int64)


def _reader(kind: ArrowType) -> Callable[[ArrowArray], Content] | None:
    """What reads arrays of this type without nulls; None if no domain knows the type."""
    from pyarrow import types

    readers: list[tuple[Callable[[ArrowType], bool], Callable[[ArrowArray], Content]]] = [
        (types.is_unsigned_integer, lambda array: Scaled(array.to_numpy().astype(np.uint64, copy=False))),
        (types.is_signed_integer, lambda array: Scaled(_integers(array))),
        (types.is_floating, lambda array: Floats.widened(array.to_numpy())),
        (types.is_boolean, lambda array: Flags(array.to_numpy(zero_copy_only=False))),
        (types.is_decimal, _decimals),
        *((fits, _moments) for fits in (types.is_timestamp, types.is_date)),
        *((fits, texts) for fits in (types.is_unicode, types.is_large_unicode, types.is_binary)),
        *((fits, texts) for fits in (types.is_large_binary, types.is_fixed_size_binary)),
    ]
    return next((reader for fits, reader in readers if fits(kind)), None)


def _moments(array: ArrowArray) -> Moments:
    import pyarrow as pa

    dated = pa.types.is_date(array.type)
    unit: Unit = ("D" if pa.types.is_date32(array.type) else "ms") if dated else array.type.unit
    counts = array.cast(pa.int32()).to_numpy() if unit == "D" else array.cast(pa.int64()).to_numpy()
    day, nanosecond = day_and_nanosecond(counts.astype(np.int64), unit)
    return Moments(day, nanosecond, aware=not dated and array.type.tz is not None, dated=dated)


def _decimals(array: ArrowArray) -> Column:
    """Decimals whose unscaled integer fits 64 bits are read at once, the others one by one.

    Arrow keeps an unscaled integer in 64-bit limbs, the lowest first; it fits the lowest
    one if all the others only repeat its sign.
    """
    import pyarrow as pa

    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(38, array.type.scale))
    width = array.type.bit_width // 64
    limbs = np.frombuffer(array.buffers()[1] or b"", np.int64, len(array) * width, array.offset * width * 8)
    limbs = limbs.reshape(-1, width)
    small = (limbs[:, 1:] == (limbs[:, :1] >> 63)).all(axis=1)
    unit = Fraction(10) ** -array.type.scale
    large = [Fraction(value) for value in array.filter(pa.array(~small)).to_pylist()]
    return Column.split(small, Scaled(limbs[small, 0], unit), Exacts(large))


# Numbers written as text: one grammar for every column, and exact values.

_FAR: Final = 400  # powers of ten; bounds and steps of domains lie far inside
_NUMBER: Final = re.compile(rb"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_INFINITE: Final = re.compile(rb"([+-]?)inf(?:inity)?", re.IGNORECASE)
_NAN: Final = re.compile(rb"[+-]?s?nan[0-9]*", re.IGNORECASE)

MOST_PLACES: Final = 60
"""Digits after the point beyond which a number is written, and decoded, as a ratio."""
_PLAIN_INTEGER: Final = "^-?[0-9]{1,18}$"
_PLAIN_DECIMAL: Final = r"^-?[0-9]{1,9}\.[0-9]{1,9}$"
_PLAIN_PLACES: Final = 9


def numbers(texts: Texts) -> Column:
    """The numbers that these texts write, or invalid.

    Plain integers of up to 18 digits, and decimals of up to nine on each side of the
    point, are read by Arrow; whatever else is there is read one by one.
    """
    import pyarrow as pa

    plain = {_PLAIN_INTEGER: pa.int64(), _PLAIN_DECIMAL: pa.decimal128(2 * _PLAIN_PLACES, _PLAIN_PLACES)}
    return cast_texts(texts, plain, lambda rest: exact_column([number(text) for text in rest]))


def number(text: bytes) -> Number | None:
    """The exact number that `text` writes, or None.

    A number is an optional sign, ASCII digits with an optional point, and an optional exponent; or `inf`,
    `infinity` or `nan` in any case. ASCII white space around it is trimmed. Text over 400 bytes is not a
    number. A large exponent costs nothing: a number beyond 10^400 is infinite, and one nearer to zero than
    10^-400 is taken to be 10^-400.

    >>> number(b" +1.50 "), number(b"1e-999999999") == Fraction(1, 10**400), number(b"-1e999999999")
    (Fraction(3, 2), True, -inf)
    """
    if len(text) > LONGEST:
        return None
    trimmed = text.strip(WHITE)
    if match := _NUMBER.fullmatch(trimmed):
        return _value(*match.groups(default=b""))
    if match := _INFINITE.fullmatch(trimmed):
        return -math.inf if match[1] == b"-" else math.inf
    return math.nan if _NAN.fullmatch(trimmed) else None


def number_text(value: Fraction) -> str:
    """The plain text of an exact number: digits, a decimal of up to 60 places, or a ratio.

    >>> number_text(Fraction(5)), number_text(Fraction(-1, 8)), number_text(Fraction(1, 3))
    ('5', '-0.125', '1/3')
    """
    places = decimal_places(value)
    if not places or places > MOST_PLACES:
        return str(value)
    sign = "-" if value < 0 else ""
    whole, part = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
    return f"{sign}{whole}.{part:0{places}}"


def decimal_places(value: Fraction) -> int | None:
    """How many digits after the point write `value` exactly; None if none are enough.

    >>> decimal_places(Fraction(1, 8)), decimal_places(Fraction(7)), decimal_places(Fraction(1, 3))
    (3, 0, None)
    """
    rest, places = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    return places if rest == 1 else None


def _value(sign: bytes, whole: bytes, part: bytes, exponent: bytes) -> Number:
    digits = int((whole + part) or b"0")
    if digits == 0:
        return 0
    power = int(exponent or b"0") - len(part)
    signed = -digits if sign == b"-" else digits
    reach = len(str(digits)) + power
    if reach > _FAR:
        return math.inf if signed > 0 else -math.inf
    if reach < -_FAR:
        return Fraction(1 if signed > 0 else -1, 10**_FAR)
    return signed * 10**power if power >= 0 else Fraction(signed, 10**-power)


# NumPy arrays and lists of Python values, as columns.

Array: TypeAlias = npt.NDArray[Any]
_Value = TypeVar("_Value")

_MISSING: Final = {"NoneType", "NAType", "NaTType", "MaskedConstant"}
"""The types of None, pandas.NA, pandas.NaT and numpy.ma.masked, by name as pandas need not be there."""


def read_array(array: Array) -> Column:
    """A one-dimensional NumPy array as a column; masked values and NaT are missing."""
    if isinstance(array, np.ma.MaskedArray) and array.dtype.kind != "V":
        present = ~np.ma.getmaskarray(array)
        return Column.split(present, read_array(np.asarray(array)[present]), Blank.MISSING)
    if array.dtype.kind == "M":
        return _datetimes(array)
    return Column.of(_content(array), len(array))


def read_objects(values: list[Any]) -> Column:
    """Python values of any types as a column; None, pandas.NA and pandas.NaT are missing.

    Values are grouped by type, and each group is read at once. Types are told apart by identity, since even
    the hash of a type may be made to fail. Reading never raises: a value whose own methods fail is invalid.
    """
    if len(set(map(id, map(type, values)))) == 1:
        return Column.of(_total(values), len(values))
    return _grouped(values, lambda value: id(type(value)), _total)


def moments_column(moments: Sequence[Moment | None]) -> Column:
    """A column of moments that is invalid where there is None."""
    return _grouped(moments, lambda moment: moment and moment[2:], _array_moments)


def _grouped(
    values: Sequence[_Value], key: Callable[[_Value], Hashable], read: Callable[[list[_Value]], Content]
) -> Column:
    """A column with a part, read at once, for the values of each key."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, value in enumerate(values):
        groups[key(value)].append(row)
    parts = [(np.array(rows), read([values[row] for row in rows])) for rows in groups.values()]
    return Column(len(values), parts)


def _content(array: Array) -> Content:
    match array.dtype.kind:
        case "b":
            return Flags(array)
        case "i" | "u" as kind:
            return Scaled(array.astype(np.int64 if kind == "i" else np.uint64, copy=False))
        case "f" if array.dtype.itemsize <= 8:
            return Floats.widened(array)
        case "f":
            finite = zip(array, np.isfinite(array), strict=True)
            return Exacts([Fraction(*x.as_integer_ratio()) if sure else float(x) for x, sure in finite])
        case "S":
            return _bytes(array.tolist())
        case "U":
            return _characters(array)
        case "T":
            missing = getattr(array.dtype, "na_object", None)
            return read_objects([None if value is missing else value for value in array.tolist()])
        case "O":
            return read_objects(array.tolist())
        case _:
            return Blank.INVALID


def _datetimes(array: Array) -> Column:
    unit, multiple = np.datetime_data(array.dtype)
    counts = array.astype(array.dtype.newbyteorder("=")).view(np.int64)
    present = ~np.isnat(array)
    if unit == "generic":
        return Column.split(present, Blank.INVALID, Blank.MISSING)
    day, nanosecond = day_and_nanosecond(counts[present], unit, multiple)
    dated = unit in ("Y", "M", "W", "D")
    return Column.split(present, Moments(day, nanosecond, aware=False, dated=dated), Blank.MISSING)


def _total(values: list[Any]) -> Content:
    """Read values of one type at once; if that fails, one by one; what still fails is invalid."""
    try:
        return _group(values)
    except Exception:
        if len(values) == 1:
            return Blank.INVALID
        parts = [(slice(row, row + 1), _total([value])) for row, value in enumerate(values)]
        return Column(len(values), parts)


def _group(values: list[Any]) -> Content:
    kind = type(values[0])
    if kind.__name__ in _MISSING:
        return Blank.MISSING
    if issubclass(kind, str):
        return _strings(values)
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return _bytes([bytes(value) for value in values])
    if issubclass(kind, np.generic):
        return _grouped(values, lambda value: value.dtype, lambda same: read_array(np.array(same)))
    if issubclass(kind, datetime.date):
        return moments_column([moment_of(value) for value in values])
    return _numbers(values, kind)


def _numbers(values: list[Any], kind: type) -> Content:
    if issubclass(kind, bool):
        return Flags(np.array(values))
    if issubclass(kind, int):
        integers = values if kind is int else [int.__index__(value) for value in values]
        try:
            return Scaled(np.array(integers, np.int64))
        except OverflowError:
            return Exacts(integers)
    if issubclass(kind, float):
        return Floats(np.array(values, np.float64))
    if issubclass(kind, Decimal):
        return exact_column([number(str(value).encode()) for value in values])
    if issubclass(kind, Fraction):
        return Exacts([Fraction(int(value.numerator), int(value.denominator)) for value in values])
    return Blank.INVALID


def _strings(values: list[str]) -> Content:
    """Text; half of a surrogate pair becomes bytes that are not UTF-8, and so match nothing."""
    import pyarrow as pa

    try:
        return texts(pa.array(values, pa.large_string()))
    except UnicodeEncodeError:
        return _bytes([value.encode("utf-8", "surrogatepass") for value in values])


def _bytes(values: list[bytes]) -> Content:
    import pyarrow as pa

    return texts(pa.array(values, pa.large_binary()))


def _characters(array: Array) -> Content:
    """Text in four bytes per character; a row with bytes that are no character is invalid."""
    try:
        return _strings(array.tolist())
    except ValueError:
        points = array.astype(array.dtype.newbyteorder("=")).view(np.uint32).reshape(len(array), -1)
        readable = np.asarray((points <= sys.maxunicode).all(axis=1))
        return Column.split(readable, _strings(array[readable].tolist()), Blank.INVALID)


def _array_moments(moments: list[Moment | None]) -> Content:
    known = [moment for moment in moments if moment is not None]
    if not known:
        return Blank.INVALID
    day, nanosecond = np.array([moment[:2] for moment in known], np.int64).T
    return Moments(day, nanosecond, known[0].aware, known[0].dated)


# The one entrance for columns.

_OBJECTS: Final = {"object", "category"}
"""The pandas types whose values may be any Python objects."""


def read(values: object) -> Column:
    """A NumPy array, an Arrow array, a sequence or an object with an Arrow interface, as a column."""
    if isinstance(values, np.ndarray):
        return _read_converted(values)
    if _is_arrow(values):
        return read_arrow(values)
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return _read_foreign(values)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray, memoryview)):
        rows = _convert_or_none(list, values)
        if rows is not None:
            return read_objects(rows)
    raise _no_column("must be one column of values")


def _is_arrow(values: object) -> bool:
    pa = sys.modules.get("pyarrow")  # nobody has an Arrow array before Arrow is imported
    return pa is not None and isinstance(values, (pa.Array, pa.ChunkedArray))


def _read_foreign(values: object) -> Column:
    """A column of another library; one that Arrow cannot carry is read through NumPy.

    So is one of Python objects: Arrow would infer a type from all rows, or fail on one, and
    then the cell of a row would depend on other people's rows.
    """
    import pyarrow as pa

    if str(getattr(values, "dtype", None)) in _OBJECTS:
        return _read_converted(values)
    array = _convert_or_none(pa.chunked_array if hasattr(values, "__arrow_c_stream__") else pa.array, values)
    if array is None:
        return _read_converted(values)
    if pa.types.is_struct(array.type):
        raise _no_column("must be one column, not a table")
    return read_arrow(array)


def _read_converted(values: Any) -> Column:
    """A column as a NumPy array; what pandas calls missing, NaN too, is missing."""
    array = values if isinstance(values, np.ndarray) else _convert_or_none(np.asarray, values)
    if array is None or array.ndim != 1:
        raise _no_column("must have one dimension")
    if not hasattr(values, "isna"):
        return read_array(array)
    present = ~np.asarray(values.isna(), np.bool_)
    return Column.split(present, read_array(array[present]), Blank.MISSING)


def _convert_or_none(convert: Callable[[Any], Any], values: object) -> Any:
    """The converted values, or None: the error of a failed conversion may hold values of the data."""
    try:
        return convert(values)
    except Exception:
        return None


def _no_column(rule: str) -> InvalidData:
    return InvalidData("values", rule, fix="pass a one-dimensional NumPy array, an Arrow array or a list")
