"""Wide tables: rows that are not grouped count as grouped rows do, whatever holds them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer
from partita.domain.axis import MOST_AXES, MOST_COLUMNS, Axis
from partita.errors import InvalidData, InvalidParameter, PartitaError, SourceError
from partita.public.boxes.bins import AxisBins
from partita.trusted.secret import AxisCounts, Histogram, PointCounts, Points
from partita.trusted.sources import wide
from partita.trusted.sources.arrow import Mapped
from partita.trusted.sources.engine import LocalSource
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import Tally, tally
from partita.trusted.sources.wide import CompactPoints, WideTally, tally_rows
from tests.trusted.sources.conftest import SCHEMA, TABLE

REQUESTS: Final[list[dict[str, Any]]] = [
    {},
    {"where": ("region", "north")},
    {"person": "id", "contributions": 1, "salt": "autumn"},
    {"person": "id", "contributions": 2, "salt": "autumn", "where": ("region", "north")},
    {"person": "age", "contributions": 1},
]
SMALL: Final[dict[str, Domain]] = {
    "age": Integer(0, 9),
    "region": Category(["north", "south"]),
    "large": Integer(-(2**62), 2**62 - 1),
}


def coarse(axis: Axis) -> AxisBins:
    """A few bins, whatever the width."""
    ends = sorted({0, axis.width // 3, axis.width - 2, axis.width - 1} - {-1})
    return AxisBins.from_edges(np.array(ends, np.uint64))


def assert_same(found: PointCounts, told: Points) -> None:
    """The same tables of all sets, the same lines and totals, and the same points."""
    numbers = range(len(told.axes))
    sets = [chosen for size in (1, 2, 3) for chosen in combinations(numbers, size)]
    bins = [coarse(axis) for axis in told.axes]
    assert found.axes == told.axes
    assert (found.total, found.contributions) == (told.total, told.contributions)
    for mine, theirs in zip(found.tables(sets, bins), told.tables(sets, bins), strict=True):
        assert mine.tolist() == theirs.tolist()
    for axis in numbers:
        assert_same_points(found.alone(axis), told.alone(axis))
        assert_same_line(found.along(axis), told.along(axis))
    assert_same_points(found.gathered(), told)


def assert_same_line(found: AxisCounts, told: AxisCounts) -> None:
    assert isinstance(found, Histogram)
    assert isinstance(told, Histogram)
    assert (found.size, found.contributions) == (told.size, told.contributions)
    assert found.cells.tolist() == told.cells.tolist()
    assert found.counts.tolist() == told.counts.tolist()


def assert_same_points(found: PointCounts, told: Points) -> None:
    assert isinstance(found, Points)
    assert (found.axes, found.contributions) == (told.axes, told.contributions)
    assert found.places.tolist() == told.places.tolist()
    assert found.counts.tolist() == told.counts.tolist()


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_rows_count_as_grouped_rows_do(asked: dict[str, Any]) -> None:
    """All rows, a part of them, and those kept of each person."""
    check_container(pa.table(TABLE), asked)


def test_rows_count_alike_in_every_container(container: Any) -> None:
    """Files, tables and mappings; one line of text is one row."""
    whole = container.read_all() if isinstance(container, pa.RecordBatchReader) else container
    check_container(whole, {"person": "id", "contributions": 2, "salt": "autumn"})


def check_container(data: Any, asked: dict[str, Any]) -> None:
    source, names = open_source(data), list(SCHEMA)
    assert isinstance(source, LocalSource)

    found, told = tally_rows(source.rows, SCHEMA, **asked), tally(source, SCHEMA, **asked)

    assert_same(found.points(names), told.points(names))
    assert_same(found.points(names[::-2]), told.points(names[::-2]))
    for name in names:
        mine, theirs = found.column(name), told.column(name)
        assert dict(mine.specials) == dict(theirs.specials)
        assert_same_line(mine.histogram, theirs.histogram)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, "a", "b", "", 3]),
            st.sampled_from([None, -1, 0, 5, 10, float("nan"), "x"]),
            st.sampled_from([None, "north", "west", "south"]),
            st.sampled_from([None, 0, -(2**62), 2**62, 2**63]),
        ),
        max_size=30,
    ),
    st.integers(1, 4),
    st.sampled_from([1, 3, 2**16]),
)
def test_the_same_rows_of_a_person_are_kept(rows: list[Any], limit: int, at_once: int) -> None:
    """However many are bounded at once; persons without an id are one person."""
    columns = {name: [row[place] for row in rows] for place, name in enumerate(["id", *SMALL])}
    asked: dict[str, Any] = {"person": "id", "contributions": limit, "salt": "spring"}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide, "_BOUNDED", at_once)
        patch.setattr(wide, "_BATCH", at_once)
        found = tally_rows(Mapped(columns), SMALL, **asked)

    assert_same(found.points(list(SMALL)), tally(open_source(columns), SMALL, **asked).points(list(SMALL)))


def many_columns(width: int, rows: int = 200) -> tuple[dict[str, Any], dict[str, Domain]]:
    """Columns of small integers, some of them out of range."""
    numbers = np.arange(rows)
    columns = {f"c{place}": (numbers * (place + 3)) % 11 for place in range(width)}
    return columns, {name: Integer(0, 8) for name in columns}


@pytest.mark.parametrize("width", [2, MOST_AXES, MOST_AXES + 1, MOST_COLUMNS])
def test_a_source_groups_few_columns_only(width: int) -> None:
    """The number of columns decides, which is public; the result is the same."""
    columns, schema = many_columns(width)
    source = open_source(columns)
    assert isinstance(source, LocalSource)

    counted = source.tally(schema)

    assert isinstance(counted, WideTally if width > MOST_AXES else Tally)
    found, told = counted.points(list(schema)), tally(source, schema).points(list(schema))
    pairs, bins = list(combinations(range(width), 2)), [coarse(axis) for axis in told.axes]
    for mine, theirs in zip(found.tables(pairs, bins), told.tables(pairs, bins), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_positions_take_few_bytes() -> None:
    """One byte for each row and column where a domain has at most 256 positions."""
    columns, schema = many_columns(MOST_COLUMNS)
    counted = tally_rows(Mapped(columns), {**schema, "c0": Integer(0, 300), "c1": Integer(0, 2**40)})

    sizes = {name: column.dtype.itemsize for name, column in counted.positions.items()}

    assert sizes == {**dict.fromkeys(schema, 1), "c0": 2, "c1": 8}


def test_walks_and_sums_see_grouped_rows() -> None:
    """What is asked of points in general is answered as by points: equal rows are one point."""
    rows = CompactPoints((Axis(size=4), Axis(size=2)), [np.array([3, 0, 3], np.uint8), np.ones(3, np.uint8)])

    def seen(places: Any, counts: Any) -> Any:
        return np.column_stack([places.astype(np.int64), counts])

    assert rows.folded(seen).tolist() == [[0, 1, 1], [3, 1, 2]]
    assert rows.descent(seen).folded(lambda state: state).tolist() == [[0, 1, 1], [3, 1, 2]]
    assert rows.spread().tolist() == [[0, 1], [0, 0], [0, 0], [0, 2]]


def test_a_table_without_rows_has_empty_tables() -> None:
    """No rows are no rows in every combination, with persons too."""
    columns, schema = many_columns(8, rows=0)

    requests: list[dict[str, Any]] = [{}, {"person": "c0"}]
    for asked in requests:
        points = tally_rows(Mapped(columns), schema, **asked).points(list(schema))
        [pair] = points.tables([(0, 1)], [AxisBins.identity(axis.width) for axis in points.axes])
        assert (points.total, pair.shape, int(pair.sum())) == (0, (13, 13), 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CompactPoints((Axis(size=2),), [np.array([2], np.uint8)]),
        lambda: CompactPoints((Axis(size=2),), [np.array([0, 1])]),
        lambda: CompactPoints((Axis(size=2), Axis(size=2)), [np.zeros(1, np.uint8)]),
        lambda: CompactPoints((Axis(size=2), Axis(size=2)), [np.zeros(1, np.uint8), np.zeros(2, np.uint8)]),
    ],
)
def test_rows_off_their_axes_are_refused(make: Any) -> None:
    """Each axis has one column of positions on it, all of one length."""
    with pytest.raises(InvalidData):
        make()


def test_a_wrong_request_is_refused_alike() -> None:
    """Missing columns, wrong bounds and nested types have the errors of the grouped path."""
    columns, schema = many_columns(8)
    nested = {**columns, "c3": pa.array([[1]] * 200)}
    cases: list[tuple[Any, dict[str, Any], type[PartitaError]]] = [
        (columns, {"by": ["c1", "d"]}, InvalidParameter),
        (columns, {"contributions": 2}, InvalidParameter),
        (columns, {"person": "nobody"}, SourceError),
        (columns, {"where": ("nowhere", "a")}, SourceError),
        (nested, {}, SourceError),
    ]

    for data, asked, kind in cases:
        grouped = error_of(kind, lambda: tally(open_source(data), schema, **asked))  # noqa: B023
        assert error_of(kind, lambda: tally_rows(Mapped(data), schema, **asked)) == grouped  # noqa: B023


def error_of(kind: type[PartitaError], count: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        count()
    return str(caught.value)
