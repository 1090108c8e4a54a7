"""Rows with one value of a column are counted by themselves, and every row is in one such part at most."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.domain import Category, Integer
from partita.errors import InvalidParameter, SourceError
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

from .conftest import SCHEMA, TABLE, arrow, exact

AGE = {"age": SCHEMA["age"]}


def counted(data: Any, where: tuple[str, str], **other: Any) -> tuple[dict[int, int], dict[str, int]]:
    """How many rows of the part are in each cell of the age, and in each special cell."""
    column = tally(open_source(data), AGE, where=where, **other).column("age")
    cells = zip(exact(column).cells.tolist(), exact(column).counts.tolist(), strict=True)
    return dict(cells), {name: count for name, count in column.specials.items() if count}


def kept(**conditions: Any) -> Any:
    """The rows of the table that have these values, picked one by one."""
    rows = [row for row in arrow().to_pylist() if all(row[name] == it for name, it in conditions.items())]
    return pa.Table.from_pylist(rows, arrow().schema)


@pytest.mark.parametrize("region", ["north", "south", "caffè", 'a, "b"', "nowhere"])
@pytest.mark.spread(28)
def test_every_container_counts_the_same_part(container: Any, region: str) -> None:
    """What is counted is what a table with those rows alone would give, be it nobody."""
    column = tally(open_source(kept(region=region)), AGE).column("age")
    alone = dict(zip(exact(column).cells.tolist(), exact(column).counts.tolist(), strict=True))

    found, beside = counted(container, ("region", region))

    assert found == alone
    assert beside == {name: count for name, count in column.specials.items() if count}


def test_the_part_may_be_of_the_column_that_is_counted(container: Any) -> None:
    """Then one cell is left."""
    assert counted(container, ("age", "30")) == ({30: 3}, {})


def test_the_part_may_be_one_person(container: Any) -> None:
    """Of the three rows of person 3 the bound leaves two."""
    cells, beside = counted(container, ("id", "3"), person="id", contributions=2)

    assert sum(cells.values()) + sum(beside.values()) == 2
    assert set(cells) <= {31, 120}


def test_rows_outside_of_the_part_never_take_the_place_of_rows_inside() -> None:
    """A person's rows are bounded once the others are gone: whatever those are, the same rows are kept."""
    inside: dict[str, list[Any]] = {"id": [7] * 5, "age": [1, 2, 3, 4, 5], "region": ["north"] * 5}
    outside: dict[str, list[Any]] = {"id": [7] * 40, "age": list(range(40)), "region": ["south"] * 40}
    both = {name: inside[name] + outside[name] for name in inside}

    alone = counted(inside, ("region", "north"), person="id", contributions=2)

    assert sum(alone[0].values()) == 2
    assert counted(both, ("region", "north"), person="id", contributions=2) == alone


VALUES = ["1", 1, 1.0, Decimal("1.00"), True, "true", "1.0", None, "", float("nan"), b"1", "Eins", " 1", 2]
DAYS = [datetime.date(2024, 1, 31), "2024-01-31", datetime.datetime(2024, 1, 31, 12)]


def test_every_row_is_in_one_part_at_most() -> None:
    """Over all texts that could be asked for, no row is counted twice, and text matches exactly."""
    data = {"age": list(range(len(VALUES + DAYS))), "kind": VALUES + DAYS}
    texts = [
        "1",
        "1.0",
        "true",
        "True",
        "Eins",
        "eins",
        " 1",
        "2",
        "nan",
        "None",
        "2024-01-31",
        "2024-01-31 12:00",
    ]

    parts = {text: set(counted(data, ("kind", text))[0]) for text in texts}

    assert parts["1"] == {0, 1, 2, 3, 10}
    assert (parts["true"], parts["1.0"], parts["2024-01-31"]) == ({4, 5}, {6}, {14, 15})
    assert sum(map(len, parts.values())) == len(set().union(*parts.values()))
    assert parts["None"] == parts["nan"] == parts["True"] == parts["eins"] == set()


def test_adding_a_row_changes_its_own_part_only() -> None:
    """Over all neighbours of a small table: in the part of the row one count by one, elsewhere nothing."""
    rows = [(age, region) for age in (0, 1, None) for region in ("north", "south", None)]
    schema = {"age": Integer(0, 1)}
    for added in rows:
        for region in ("north", "south"):
            before, after = (
                tally(
                    open_source({"age": [row[0] for row in table], "region": [row[1] for row in table]}),
                    schema,
                    where=("region", region),
                ).column("age")
                for table in (rows, [*rows, added])
            )
            moved = int(exact(after).counts.sum() - exact(before).counts.sum())
            moved += sum(after.specials.values()) - sum(before.specials.values())
            assert moved == (added[1] == region)


def test_a_part_of_a_column_that_is_not_there_is_refused() -> None:
    """The column is named, and the nearest that there is."""
    with pytest.raises(SourceError, match="column 'regio' is not in the data; did you mean 'region'"):
        tally(open_source(TABLE), AGE, where=("regio", "north"))
    with pytest.raises(InvalidParameter, match="empty"):
        tally(open_source(TABLE), AGE, where=("region", ""))


def test_parts_of_a_category_are_its_labels() -> None:
    """A part has as many rows as the cell of its label."""
    regions = Category(["north", "south"])
    cells = exact(tally(open_source(TABLE), {"region": regions}).column("region"))

    for cell, label in enumerate(regions.labels):
        found, beside = counted(TABLE, ("region", label))
        assert (
            sum(found.values()) + sum(beside.values()) == cells.counts[np.flatnonzero(cells.cells == cell)[0]]
        )
