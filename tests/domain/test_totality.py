from __future__ import annotations

import datetime
import traceback
import warnings
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Category, Date, Domain, Encoded, Integer, Special
from partita.errors import InvalidData

CANARY = "canary-7f3a"


class Hostile:
    """An object whose every method fails, and says so with a value."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(CANARY)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError(CANARY)

    def __hash__(self) -> int:
        raise RuntimeError(CANARY)


class HostileText(Decimal):
    """A number that cannot be written."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)


class HostileType(type):
    """A type that cannot be put in a set."""

    def __hash__(cls) -> int:
        raise RuntimeError(CANARY)


class Untyped(np.float64):
    """A NumPy number that does not know its type."""

    @property
    def dtype(self) -> Any:
        raise RuntimeError(CANARY)


class Unparted(Fraction):
    """A ratio whose numerator is no number."""

    @property
    def numerator(self) -> Any:
        return CANARY


class Miscounted(int):
    """An integer that says it is another type of integer, of which Python warns."""

    def __int__(self) -> int:
        return True


class HostileZone(datetime.tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta | None:
        raise RuntimeError(CANARY)

    def dst(self, when: datetime.datetime | None) -> datetime.timedelta | None:
        return None

    def tzname(self, when: datetime.datetime | None) -> str | None:
        return None


ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**63, 2**64, -(2**63) - 1, 10**5000, -0.0, 0.5, 1e308, -1e308, 5e-324,
    float("inf"), float("-inf"), float("nan"), Decimal("1e999999"), Decimal("-1e-999999"), Decimal("NaN"),
    Decimal("sNaN"), Decimal("-Infinity"), Decimal("1" * 5000), Fraction(1, 3), Fraction(10**600, 7), "", " ",
    "5", " 5\n", "+5", "1e3", "1e999999999", "1e-999999999", "inf", "-Infinity", "nan", "1_000", "٣",
    "5" * 500, "\x00", "\ud800", "1e", ".", "--1", "0x10", "north", "North", "true", "2024-02-30",
    "2024-01-31", "2024-06-30T23:59:60Z", "2024-01-31T24:00", "2024-01-31T12:00:00.123456789+01:00",
    "2024-W05-3", "0000-01-01", b"5", b"\xff\xfe", bytearray(b"7"), memoryview(b"9"), datetime.date.min,
    datetime.date.max, datetime.datetime.min, datetime.datetime.max,
    datetime.datetime.max.replace(tzinfo=datetime.UTC), datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(2024, 10, 27, 2, 30, fold=1),
    datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=23))),
    datetime.datetime(2024, 1, 1, tzinfo=HostileZone()), datetime.time(1), datetime.timedelta(1),
    np.datetime64("NaT"), np.datetime64("2024-01-31"), np.datetime64(2**62, "Y"),
    np.datetime64(-(2**62), "ns"), np.array([5], "M8[7h]")[0], np.array([1], "M8[100000Y]")[0],
    np.timedelta64(1, "s"), np.float16(1), np.float32(0.1), np.longdouble("1e4000"), np.longdouble(1) / 3,
    np.uint64(2**64 - 1), np.int8(-1), np.bool_(True), np.str_("5"), np.bytes_(b"5"), np.complex128(1j),
    np.void(b"x"), 1j, [], (1, 2), {"a": 1}, {1}, object(), Ellipsis, int, np.array([1, 2]), Hostile(),
    HostileText("1"), HostileType("Odd", (), {})(), Untyped(5), Unparted(1, 2), Miscounted(5),
    Miscounted(2**70), np.ma.masked, CANARY,
]  # fmt: skip

VALUES = st.one_of(
    st.integers(0, len(ODD) - 1).map(lambda row: ODD[row]),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(datetime.UTC)),
)

ARROW_TYPES = [
    pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view(), pa.binary(3), pa.date32(),
    pa.date64(),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Tokyo")),
    pa.decimal32(5, 2), pa.decimal64(10, -3), pa.decimal128(38, 10), pa.decimal256(76, 38), pa.time64("ns"),
    pa.duration("s"), pa.list_(pa.int8()), pa.list_view(pa.int8()),
    pa.struct([("a", pa.int8())]), pa.month_day_nano_interval(),
    pa.dictionary(pa.int8(), pa.string()), pa.run_end_encoded(pa.int32(), pa.int64()),
    pa.run_end_encoded(pa.int16(), pa.dictionary(pa.int8(), pa.string())), pa.json_(), pa.uuid(),
    pa.sparse_union([pa.field("a", pa.int8())]), pa.dense_union([pa.field("a", pa.int8())]),
]  # fmt: skip

NUMPY_TYPES = [
    "?", "i1", ">i8", "u8", "f2", ">f4", "f8", "g", "c16", "U3", ">U2", "S4", "V3", "m8[s]", "i4,f8", "T",
    "O",
    *(f"M8[{unit}]" for unit in ("Y", "3M", "W", "D", "7h", "m", "s", "10ms", "us", "ns", "ps", "fs", "as")),
    ">M8[ns]", "M8",
]  # fmt: skip


def sound(domain: Domain, encoded: Encoded, length: int) -> bool:
    """Every row has an ordinary cell of the line, or a special cell that the domain names."""
    named = {0, *(int(Special.named(name)) for name in domain.specials)}
    return (
        encoded.cells.dtype == np.uint64
        and encoded.special.dtype == np.uint8
        and len(encoded.cells) == len(encoded.special) == length
        and set(encoded.special.tolist()) <= named
        and all(cell < domain.size for cell in encoded.cells.tolist())
        and not encoded.cells[encoded.special != 0].any()
    )


def test_every_odd_value_has_a_cell(domain: Domain) -> None:
    """A list of all odd values encodes without an error or a warning, each as it does alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = domain.encode(ODD)
        alone = [domain.encode([value]) for value in ODD]

    assert sound(domain, encoded, len(ODD))
    assert [int(one.cells[0]) for one in alone] == encoded.cells.tolist()
    assert [int(one.special[0]) for one in alone] == encoded.special.tolist()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(VALUES, max_size=8))
@pytest.mark.spread(9)
def test_any_values_have_cells_in_lists_and_object_arrays(domain: Domain, values: list[Any]) -> None:
    """Whatever a list holds, every row of it has a cell, the same one in an object array."""
    array = np.fromiter(values, dtype=object, count=len(values))
    encoded, again = domain.encode(values), domain.encode(array)

    assert sound(domain, encoded, len(values))
    assert encoded.cells.tolist() == again.cells.tolist()
    assert encoded.special.tolist() == again.special.tolist()


@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_any_bytes_in_a_numpy_array_have_cells(domain: Domain, kind: str) -> None:
    """Arrays of every NumPy type encode, whatever their bytes are."""
    dtype = np.dtype(kind)
    if dtype.kind in "TO":
        array = np.array(["5", "x", ""], dtype)
    else:
        patterns = [0x00, 0xFF, 0x7F, 0x80, 0x31, 0xC3]
        array = np.concatenate(
            [np.frombuffer(bytes([byte]) * dtype.itemsize * 2, dtype) for byte in patterns]
        )
    assert sound(domain, domain.encode(array), len(array))


@pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
def test_arrow_arrays_of_any_type_have_cells(domain: Domain, kind: pa.DataType) -> None:
    """Arrow arrays of every type encode, empty, null, or sliced out of arbitrary bytes."""
    arrays = [pa.nulls(3, kind), pa.nulls(0, kind), pa.chunked_array([pa.nulls(2, kind), pa.nulls(1, kind)])]
    if kind in (pa.string_view(), pa.binary_view(), pa.list_(pa.int8()), pa.list_view(pa.int8())):
        value: Any = [1] if pa.types.is_nested(kind) else b"a text of some length"
        arrays.append(pa.array([value, None, value], kind).slice(1))
        assert null_rows(domain, arrays[-1]) == [True, False]
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        width = -(-kind.bit_width * 6 // 8)
        raw = pa.py_buffer(bytes([0, 255, 127, 128, 49] * width)[:width])
        arrays.append(pa.Array.from_buffers(kind, 6, [None, raw]).slice(1, 4))
    for array in arrays:
        encoded = domain.encode(array)
        assert sound(domain, encoded, len(array))
        if array.null_count == len(array):
            assert set(encoded.special.tolist()) <= {int(Special.NULL)}


def test_nulls_are_null_wherever_arrow_keeps_them(domain: Domain) -> None:
    """A null of a dictionary, of its indices, of a run or of a union is null, in slices and chunks too."""
    values = pa.array(["x", None, "y"])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.uint64()), values)
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3], pa.int8()), coded)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4, 5], pa.int16()), coded.slice(0, 3)).slice(1)
    either = [pa.array([1, None, 1, 1]), pa.array(["x", "x", None, "x"])]
    union = pa.UnionArray.from_sparse(pa.array([0, 0, 1, 1], pa.int8()), either)
    parts = pa.chunked_array([coded.slice(0, 2), coded.slice(2, 0), coded.slice(2)])

    for array in (coded, twice, union, parts):
        assert null_rows(domain, array) == [False, True, True, False]
    assert null_rows(domain, coded.slice(1, 2)) == [True, True]
    assert null_rows(domain, runs) == [False, True, True, True]


def null_rows(domain: Domain, values: Any) -> list[bool]:
    """Which rows are null."""
    return [special == int(Special.NULL) for special in domain.encode(values).special.tolist()]


def test_what_is_masked_is_null(domain: Domain) -> None:
    """Masked rows are null; rows of several fields, masked in part, are not."""
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    fields = np.ma.masked_array(np.zeros(2, "i4,f8"), [(True, False), (True, True)])

    assert null_rows(domain, masked) == null_rows(domain, list(masked)) == [False, True, False]
    assert null_rows(domain, fields) == [False, False]


def test_text_that_is_not_utf8_is_invalid(domain: Domain) -> None:
    """Undecodable bytes are invalid, or other, also inside an Arrow string array."""
    good, bad = b"north", b"\xff\xfe\xfd"
    offsets = pa.array([0, len(good), len(good) + len(bad)], pa.int32()).buffers()[1]
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(good + bad)])
    special = domain.encode(array).special.tolist()
    assert special[1] == int(Special.INVALID if "invalid" in domain.specials else Special.OTHER)


class Unreadable(Sequence[int]):
    """A sequence that cannot be read, and says so with a value."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, row: Any) -> Any:
        raise RuntimeError(CANARY)


@pytest.mark.parametrize(
    "container",
    [
        np.zeros((2, 2)),
        np.array(5),
        CANARY,
        CANARY.encode(),
        5,
        None,
        {"a": [CANARY]},
        {CANARY},
        iter([1]),
        Unreadable(),
        pa.table({"a": [CANARY]}),
        pa.record_batch({"a": [CANARY]}),
    ],
    ids=lambda container: type(container).__name__,
)
def test_what_is_no_column_is_refused_without_a_value(domain: Domain, container: object) -> None:
    """A container that is not one column raises InvalidData, which shows nothing of it."""
    with pytest.raises(InvalidData) as caught:
        domain.encode(container)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_no_error_shows_a_cell_or_a_value(domain: Domain) -> None:
    """Decoding what is no cell is refused without showing it."""
    unfit: list[Any] = [[domain.size], [-1], [CANARY], [True], np.array([0.5])]
    for bad in unfit:
        with pytest.raises(InvalidData) as caught:
            domain.decode(bad)
        shown = "".join(traceback.format_exception(caught.value))
        assert CANARY not in shown


class Foreign:
    """A column of some other library, known by its Arrow interface only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.array.__arrow_c_stream__(requested_schema)


def test_columns_of_other_libraries_are_read_through_arrow() -> None:
    """An object that exports an Arrow stream of one column is a column."""
    column = Foreign(pa.chunked_array([[5, None], [700]]))
    encoded = Integer(0, 120).encode(column)

    assert encoded.cells.tolist() == [5, 0, 0]
    assert encoded.special.tolist() == [int(each) for each in (Special.ORDINARY, Special.NULL, Special.ABOVE)]


class Stubborn:
    """A column that Arrow cannot carry, of a library that NumPy knows."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise TypeError(CANARY)

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return np.array([5, "x", None], object)


def test_a_column_that_arrow_cannot_carry_is_read_through_numpy() -> None:
    """A mixed column of another library is read value by value."""
    assert Integer(0, 120).encode(Stubborn()).tolist() == [5, "invalid", "null"]


class Objects:
    """A column of Python objects, as pandas has them: NaN is missing, and Arrow infers a type."""

    dtype = np.dtype(object)

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return np.fromiter(self.values, object, len(self.values))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        inferred = pa.chunked_array([pa.array(self.values, from_pandas=True)])
        return inferred.__arrow_c_stream__(requested_schema)

    def isna(self) -> Any:
        return np.array([value is None or value != value for value in self.values])


def test_the_cell_of_an_object_does_not_depend_on_other_rows(domain: Domain) -> None:
    """In a column of Python objects every row has the cell that it has alone, NaN is null."""
    day = datetime.date(2024, 1, 31)
    values = [None, float("nan"), day, datetime.datetime(2024, 1, 31, 5), 1, 2.5, True, "1", b"1", {"a": 1}]
    alone = [domain.encode(Objects([value])).tolist()[0] for value in values]

    assert alone[:2] == ["null", "null"]
    for row, value in enumerate(values):
        for other, beside in enumerate(values):
            assert domain.encode(Objects([value, beside])).tolist() == [alone[row], alone[other]]


@pytest.mark.thorough
def test_columns_of_pandas_and_polars_are_read_row_by_row() -> None:
    """Missing values of each type are null, and text, categories and instants are themselves."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    numbers = [pd.Series([5, None], dtype=kind) for kind in ("Int64", "float64", "Float32", "object")]
    texts = [pd.Series(["5", None], dtype=kind) for kind in ("string", "str", "object", "category")]
    for column in (*numbers, *texts, pl.Series([5, None]), pl.Series(["5", None], dtype=pl.Categorical)):
        assert Integer(0, 120).encode(column).tolist() == [5, "null"]
        assert Category(["5"]).encode(column).tolist() == [0, "null"]
    tokyo = pd.Series(pd.to_datetime(["2024-01-02T05:00", None])).dt.tz_localize("Asia/Tokyo")
    assert Date("2024-01-01", "2024-12-31").encode(tokyo).tolist() == [0, "null"]
