"""At most k rows of each person, by a rule that looks at that person's rows alone."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer, Special
from partita.errors import InvalidParameter, SourceError
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

from .conftest import exact

SCHEMA: dict[str, Domain] = {"x": Integer(0, 3), "y": Category(["a", "b"])}
Row = tuple[Any, Any, Any]

rows = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 33]),
        st.sampled_from([None, -1, 0, 1, 2, 9]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=25,
)


def cell_bytes(cell: int | str) -> bytes:
    return (
        struct.pack(">BQ", Special.named(cell), 0) if isinstance(cell, str) else struct.pack(">BQ", 0, cell)
    )


def number(person: Any, cells: Sequence[int | str], occurrence: int, salt: bytes) -> bytes:
    """The MD5 of a row, written down once more from the documentation."""
    name = b"" if person is None else str(person).encode()
    message = struct.pack(">Q", len(salt)) + salt + struct.pack(">Q", len(name)) + name
    return hashlib.md5(message + b"".join(map(cell_bytes, cells)) + struct.pack(">Q", occurrence)).digest()


def kept_by_brute_force(data: Sequence[Row], limit: int, salt: bytes = b"") -> dict[Any, Counter[Any]]:
    """For each person, the cells of the rows with the smallest numbers."""
    x, y = SCHEMA["x"].encode([row[1] for row in data]), SCHEMA["y"].encode([row[2] for row in data])
    mine: defaultdict[Any, list[tuple[bytes, Any]]] = defaultdict(list)
    seen: Counter[Any] = Counter()
    for (person, _, _), cells in zip(data, zip(x.tolist(), y.tolist(), strict=True), strict=True):
        mine[person].append((number(person, cells, seen[person, cells], salt), cells))
        seen[person, cells] += 1
    return {person: Counter(cells for _, cells in sorted(all_)[:limit]) for person, all_ in mine.items()}


def bounded(data: Sequence[Row], limit: int, salt: str = "") -> Counter[Any]:
    columns = [
        pa.array([row[place] for row in data], kind)
        for place, kind in enumerate((pa.int64(), pa.int64(), pa.string()))
    ]
    table = pa.table(columns, names=["id", "x", "y"])
    found = tally(open_source(table), SCHEMA, person="id", contributions=limit, salt=salt)
    cells = zip(*(column.tolist() for column in found.cells.values()), strict=True)
    return Counter(dict(zip(cells, found.counts.tolist(), strict=True)))


@settings(max_examples=30)
@given(rows, st.integers(1, 4), st.sampled_from(["", "2024"]))
def test_the_rows_with_the_smallest_numbers_are_kept(data: list[Row], limit: int, salt: str) -> None:
    """The bounded tally is what hashing every row in plain Python gives."""
    expected = sum(kept_by_brute_force(data, limit, salt.encode()).values(), Counter())

    assert bounded(data, limit, salt) == expected


@settings(max_examples=30)
@given(rows, rows, st.integers(1, 4))
def test_other_people_never_change_which_rows_of_mine_are_kept(
    mine: list[Row], others: list[Row], limit: int
) -> None:
    """The tally of all is the tally of me alone plus that of the others alone."""
    me = [(7, x, y) for _, x, y in mine]

    assert bounded([*others, *me], limit) == bounded(me, limit) + bounded(others, limit)


@settings(max_examples=30)
@given(rows, st.tuples(st.just(7), st.integers(-1, 4), st.sampled_from("abc")), st.integers(1, 4))
def test_one_more_row_of_mine_moves_at_most_one_other(mine: list[Row], row: Row, limit: int) -> None:
    """Adding a row adds it, or puts it in place of one other, or changes nothing."""
    me = [(7, x, y) for _, x, y in mine]
    before, after = bounded(me, limit), bounded([*me, row], limit)

    assert sum((after - before).values()) <= 1
    assert sum((before - after).values()) <= (1 if len(me) >= limit else 0)
    assert sum(after.values()) == min(limit, len(me) + 1)


@settings(max_examples=30)
@given(rows, st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_rows_does_not_matter(data: list[Row], random: Any, limit: int) -> None:
    """Shuffled rows have the same bounded tally."""
    shuffled = list(data)
    random.shuffle(shuffled)

    assert bounded(shuffled, limit) == bounded(data, limit)


def test_rows_without_an_id_are_one_person(tmp_path: Path) -> None:
    """Null, NaN, empty text and lines that cannot be read share one allowance."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,x\n,1\n,2\n\xff,3\n1,2,3\n1,1\n")
    floats = {"id": np.array([np.nan, np.nan, 1.0]), "x": [1, 2, 3]}
    texts = {"id": ["", None, "\ufffd"], "x": [1, 2, 3]}
    mixed = {"id": [None, float("nan"), 1], "x": [1, 2, 3]}

    for data in (path, floats, texts, mixed):
        found = tally(open_source(data), {"x": Integer(0, 3)}, person="id")

        assert found.counts.sum() == 2


@pytest.mark.parametrize("ids", [[17, 17], [17.0, 17.0], ["17", "17"], [b"17", b"17"]])
def test_an_id_chooses_alike_however_it_is_stored(ids: list[object]) -> None:
    """The id 17 keeps the same row as an integer, a float and text."""
    found = tally(open_source({"id": ids, "x": [1, 2]}), {"x": Integer(0, 3)}, person="id")

    [expected] = kept_cells([(17, 1), (17, 2)])
    assert exact(found.column("x")).cells.tolist() == [expected]


def kept_cells(data: Sequence[tuple[int, int]]) -> list[int]:
    return [min((x for _, x in data), key=lambda x: number(17, [x], 0, b""))]


def test_the_histogram_is_stamped_with_the_bound() -> None:
    """What a mechanism must protect travels with the counts."""
    source = open_source({"id": [1, 1, 1], "x": [1, 1, 1]})

    column = tally(source, {"x": Integer(0, 3)}, person="id", contributions=2).column("x")

    assert (column.histogram.total, column.histogram.contributions) == (2, 2)


def test_a_person_may_be_a_column_of_the_schema() -> None:
    """The id can be counted as well as bound."""
    found = tally(open_source({"id": [1, 1, 2]}), {"id": Integer(0, 3)}, person="id")

    assert exact(found.column("id")).counts.tolist() == [1, 1]


def test_ids_are_numbers_or_text() -> None:
    """A date tells no persons apart."""
    data = pa.table({"id": pa.array([0], pa.date32()), "x": [1]})

    with pytest.raises(SourceError, match="column 'id' must hold integers or text"):
        tally(open_source(data), {"x": Integer(0, 3)}, person="id")


@pytest.mark.parametrize("contributions", [0, -1, 1.5, None, True])
def test_a_bound_is_a_positive_integer(contributions: Any) -> None:
    """Zero, fractions and nothing are no bounds."""
    with pytest.raises(InvalidParameter, match="contributions"):
        tally(open_source({"x": [1]}), {"x": Integer(0, 3)}, person="x", contributions=contributions)


@pytest.mark.parametrize("by", [[], ["z"], "x"])
def test_columns_are_those_of_the_schema(by: Any) -> None:
    """No column, an undeclared one and a lone text are refused."""
    with pytest.raises(InvalidParameter, match="by"):
        tally(open_source({"x": [1]}), {"x": Integer(0, 3)}, by)


@pytest.mark.parametrize("schema", [None, {"age": "integer"}, {"age": Integer}])
def test_a_schema_has_domains(schema: Any) -> None:
    """A class of domains is not a domain."""
    with pytest.raises(InvalidParameter, match="schema must map columns to domains"):
        tally(open_source({"age": [1]}), schema)
