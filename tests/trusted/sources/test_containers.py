"""The same rows have the same counts, wherever they are."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer
from partita.errors import InvalidData, InvalidParameter, SourceError
from partita.trusted.sources.base import Source
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

from .conftest import CONTAINERS, SCHEMA, arrow, exact


def view(found: Any) -> tuple[dict[str, list[int | str]], list[int]]:
    return {name: cells.tolist() for name, cells in found.cells.items()}, found.counts.tolist()


def test_every_container_gives_the_same_cells(container: Any) -> None:
    """Files, mappings, tables, readers and relations with the same rows have the same tally."""
    direct = {name: domain.encode(arrow()[name]).tolist() for name, domain in SCHEMA.items()}
    rows = sorted(zip(*direct.values(), strict=True), key=str)

    cells, counts = view(tally(open_source(container), SCHEMA))

    found = zip(*cells.values(), strict=True)
    assert sorted([row for row, n in zip(found, counts, strict=True) for _ in range(n)], key=str) == rows


def test_every_container_keeps_the_same_rows_of_a_person(container: Any) -> None:
    """The bounded tally does not depend on the container either."""
    expected = view(tally(open_source(arrow()), SCHEMA, ["age", "region"], person="id", contributions=2))

    found = tally(open_source(container), SCHEMA, ["age", "region"], person="id", contributions=2)

    assert view(found) == expected


@pytest.mark.parametrize("kind", ["parquet", "arrow columns", "arrow table", "arrow reader", "dictionaries"])
def test_typed_containers_give_the_same_table(kind: str, tmp_path: Path) -> None:
    """Counts of raw values agree to the last byte, order and types included."""
    expected = open_source(arrow()).counts(["region", "salary", "age"], ["age"])

    found = open_source(CONTAINERS[kind](tmp_path)).counts(["region", "salary", "age"], ["age"])

    assert found.equals(expected)


def test_keys_come_first_and_in_order() -> None:
    """Rows ascend; zeros are one, NaNs are one and follow the numbers, and null is last."""
    values = np.array([np.nan, -0.0, 0.0, 2.0, -np.nan, -1.0, -np.inf])
    data = {"x": pa.array(values, mask=np.array([False] * 6 + [True]))}

    table = open_source(data).counts(["x"])

    assert str(table["x"].to_pylist()) == "[-1.0, 0.0, 2.0, nan, None]"
    assert table["count"].to_pylist() == [1, 2, 1, 2, 1]
    assert not np.signbit(table["x"].to_pylist()[1])


def test_sums_are_exact_beyond_64_bits() -> None:
    """Sums of integers do not wrap, and nulls are left out."""
    data = {"k": ["a", "a", "b"], "x": pa.array([2**63 - 1, 2**63 - 1, None])}

    table = open_source(data).counts(["k"], ["x"])

    assert table.column(2).to_pylist() == [Decimal(2**64 - 2), Decimal(0)]
    assert table.schema.names == ["k", "count", "sum of x"]


@pytest.mark.parametrize("values", [[0.5], ["5"], [True]])
def test_only_integers_are_added_up(values: list[object]) -> None:
    """A sum of floats would depend on the order of rows, and text has none."""
    with pytest.raises(SourceError, match="must hold integers"):
        open_source({"k": [1], "x": values}).counts(["k"], ["x"])


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1], pa.int8()), pa.int64()),
        (pa.array([2**64 - 1], pa.uint64()), pa.uint64()),
        (pa.array([1.5], pa.float32()), pa.float64()),
        (pa.array([Decimal("1.50")], pa.decimal256(40, 2)), pa.large_binary()),
        (pa.array([Decimal("1.50")], pa.decimal256(30, 2)), pa.decimal128(38, 2)),
        (pa.array(["x"], pa.string_view()), pa.large_binary()),
        (pa.array([b"\xfe"], pa.binary(1)), pa.large_binary()),
        (pa.array([None], pa.null()), pa.large_binary()),
        (pa.array([2**60 // 86400000 * 86400000], pa.date64()), pa.date64()),
        (pa.array([2**62 + 1], pa.timestamp("ns", "Europe/Rome")), pa.timestamp("ns", "UTC")),
        (pa.array([-(2**62)], pa.timestamp("s")), pa.timestamp("s")),
        (pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), pa.date32()),
        (pa.array(["x", "x"]).dictionary_encode(), pa.large_binary()),
        (pa.DictionaryArray.from_arrays([0], pa.array(["x"], pa.string_view())), pa.large_binary()),
        (pa.RunEndEncodedArray.from_arrays([2], ["x"]), pa.large_binary()),
        (pa.array([b"0" * 16], pa.uuid()), pa.large_binary()),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else str(value.type),
)
def test_types_are_widened_without_loss(array: Any, kind: Any) -> None:
    """Every type of a single value has one type in a grouped count, and keeps the value."""
    table = open_source(pa.table({"x": array})).counts(["x"])

    assert table["x"].type == kind
    domain = Integer(0, 2**64 - 1)
    assert domain.encode(table["x"]).tolist() == domain.encode(array[:1]).tolist()


@pytest.mark.parametrize(
    "array",
    [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([datetime.timedelta(1)]), pa.array([datetime.time(1)])],
    ids=lambda array: str(array.type),
)
def test_types_without_an_order_are_refused(array: Any, tmp_path: Path) -> None:
    """Nested columns and durations are refused by type, before a row is read."""
    pq.write_table(pa.table({"x": array}), tmp_path / "t.parquet")

    for data in (pa.table({"x": array}), tmp_path / "t.parquet"):
        with pytest.raises(SourceError, match="column 'x' must hold numbers, text, dates or times"):
            open_source(data).counts(["x"])


def test_a_list_of_mixed_values_has_a_cell_for_each() -> None:
    """Values that share no type are read by their text, and none raises."""
    mixed = [1, "2", 3.0, Decimal("4"), None, float("nan"), [5], "\ud800", 10**30, object()]

    column = tally(open_source({"x": mixed}), {"x": Integer(0, 9)}).column("x")

    assert exact(column).cells.tolist() == [1, 2, 3, 4]
    assert column.specials == {"below": 0, "above": 1, "invalid": 4, "null": 1}


def test_a_column_by_itself() -> None:
    """A column of a tally adds up the other columns, and shows no count when printed."""
    data = {"age": [1, 1, 2, 777], "region": ["north", "x", "north", None]}
    schema: dict[str, Domain] = {"age": Integer(0, 9), "region": Category(["north"])}

    found = tally(open_source(data), schema)
    age, region = found.column("age"), found.column("region")

    assert (exact(age).cells.tolist(), exact(age).counts.tolist()) == ([1, 2], [2, 1])
    assert age.specials == {"below": 0, "above": 1, "invalid": 0, "null": 0}
    assert (region.histogram.total, region.specials) == (2, {"null": 1, "other": 1})
    assert repr(found) == "Tally(['age', 'region'], contributions=1, secret)"
    assert repr(age) == (
        "Column(Histogram(size=10, contributions=1, secret), specials=['below', 'above', 'invalid', 'null'])"
    )


def test_no_rows_are_no_cells(tmp_path: Path) -> None:
    """A header without rows, an empty file of JSON lines and empty columns give empty tallies."""
    (tmp_path / "t.csv").write_text("age\n")
    (tmp_path / "t.jsonl").write_text("")
    empty: list[Any] = [{"age": []}, pa.table({"age": pa.array([], pa.int8())})]
    for data in (tmp_path / "t.csv", tmp_path / "t.jsonl", *empty):
        for person in (None, "age"):
            column = tally(open_source(data), {"age": Integer(0, 9)}, person=person).column("age")

            assert (column.histogram.total, set(column.specials.values())) == (0, {0})


def test_a_reader_is_read_once() -> None:
    """A second count over a reader is refused instead of being zero."""
    source = open_source(arrow().to_reader())
    source.counts(["age"])

    with pytest.raises(SourceError, match="once only"):
        source.counts(["age"])


def test_what_opens_is_a_source() -> None:
    """The default source keeps the protocol and prints nothing secret."""
    source = open_source({"age": [77]})

    assert isinstance(source, Source)
    assert repr(source) == "Source(Mapped, secret)"


@pytest.mark.parametrize("data", [5, None, [], [1, 2], b"x.csv", {1: [2]}, object()])
def test_what_holds_no_rows_is_refused(data: object) -> None:
    """Only paths, mappings of names and tables are data."""
    with pytest.raises((InvalidData, InvalidParameter), match=r"^data "):
        open_source(data)


@pytest.mark.parametrize("keys", ["age", [], ["age", "age"], [5]])
def test_keys_are_a_list_of_different_names(keys: Any) -> None:
    """A lone text, nothing, a repeated name and a number are refused."""
    with pytest.raises(InvalidParameter):
        open_source({"age": [1]}).counts(keys)


VALUES = [
    *(True, 1, 2**70, 1.0, 0.1, -0.0, float("nan"), float("inf"), Decimal("0.015"), Fraction(1, 3), None),
    *("1", "true", "\ud800", "2024-05-01", b"1", b"\xff", [1], (), object(), np.int8(1), np.float32(0.5)),
    *(datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 12), 10**5000, float(2**53 + 2)),
    datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=5))),
    datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC),
]


@given(
    st.lists(st.sampled_from(VALUES), max_size=6),
    st.sampled_from([*SCHEMA.values(), Category(["1", "true"])]),
)
@settings(max_examples=60)
def test_a_python_value_is_read_the_same_whatever_stands_beside_it(values: list[Any], domain: Domain) -> None:
    """The cells of a list are those that each of its values has by itself."""
    alone = sorted(str(domain.encode([value]).tolist()[0]) for value in values)

    for column in (values, objects(values)):
        found = tally(open_source({"x": column}), {"x": domain})

        cells = zip(found.cells["x"].tolist(), found.counts.tolist(), strict=True)
        assert sorted(str(cell) for cell, count in cells for _ in range(count)) == alone


def objects(values: list[Any]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "25s", "ms", "us", "ns"])
def test_numpy_times_of_every_unit_are_read_as_domains_read_them(unit: str) -> None:
    """No count of a unit, however large, wraps around into an ordinary cell."""
    array = np.array([0, 50, -3, 2**62, -(2**62), -(2**63)]).view(f"M8[{unit}]")

    for domain in (SCHEMA["born"], SCHEMA["seen"]):
        found = tally(open_source({"x": array}), {"x": domain})

        cells = zip(found.cells["x"].tolist(), found.counts.tolist(), strict=True)
        expected = sorted(map(str, domain.encode(array).tolist()))
        assert sorted(str(cell) for cell, count in cells for _ in range(count)) == expected


def test_a_lazy_frame_is_computed_for_the_columns_that_are_read() -> None:
    """Of Polars; other columns are never computed, each count computes anew, and errors show no row."""
    polars = pytest.importorskip("polars")

    def fail(column: Any) -> Any:
        raise ValueError("Quetzalcoatlus")

    kept = polars.LazyFrame({"age": [30, 31, None, 999], "name": ["a", "b", "c", "d"]})
    lazy = kept.with_columns(name=polars.col("name").map_batches(fail, return_dtype=polars.String))
    source = open_source(lazy.filter(polars.col("age").is_not_null()))

    for _ in range(2):
        ages = tally(source, {"age": Integer(0, 120)}).column("age")
        assert (exact(ages).total, ages.specials["above"]) == (2, 1)
    with pytest.raises(SourceError, match="did you mean 'age'"):
        tally(source, {"agge": Integer(0, 120)})
    with pytest.raises(SourceError, match="must be a LazyFrame that can be collected") as refused:
        tally(source, {"name": Category(["a"])})
    assert (refused.value.__cause__, refused.value.__context__) == (None, None)
