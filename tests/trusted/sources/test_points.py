"""Several columns together: every row at the position of its cells, ordinary or special."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter, SourceError
from partita.trusted.secret import Points
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import bound_contributions, tally
from tests.trusted.sources.conftest import SCHEMA, TABLE

from .conftest import exact

PAIR: dict[str, Domain] = {"age": Integer(0, 9), "region": Category(["north", "south"])}
AGES = [None, -1, 0, 5, 9, 10, float("nan")]
REGIONS = [None, "north", "south", "west"]


def position(domain: Domain, value: object) -> int:
    """Where one value lies, by the definition of an axis: its cell, or the place of its special cell."""
    [cell] = domain.encode([value]).tolist()
    return Axis.specials(domain)[cell] if isinstance(cell, str) else Axis.of(domain).position(cell)


def expected(columns: dict[str, list[Any]], schema: dict[str, Domain]) -> Counter[tuple[int, ...]]:
    rows = zip(*(columns[name] for name in schema), strict=True)
    domains = list(schema.values())
    return Counter(tuple(position(d, v) for d, v in zip(domains, row, strict=True)) for row in rows)


def found(points: Points) -> dict[tuple[int, ...], int]:
    return dict(zip(map(tuple, points.places.tolist()), points.counts.tolist(), strict=True))


@given(st.lists(st.tuples(st.sampled_from(AGES), st.sampled_from(REGIONS)), max_size=30))
def test_every_row_is_at_the_position_of_its_cells(rows: list[tuple[Any, Any]]) -> None:
    """Below lies before the cells; above, invalid, other and null behind them; equal rows are one point."""
    columns = {"age": [age for age, _ in rows], "region": [region for _, region in rows]}

    points = tally(open_source(columns), PAIR).points(["age", "region"])

    assert found(points) == expected(columns, PAIR)
    assert points.axes == tuple(map(Axis.of, PAIR.values()))
    assert points.total == len(rows)


def test_all_kinds_of_columns_are_counted_together() -> None:
    """Integers, reals, categories, days and moments, from Arrow types and from Python values."""
    columns = {name: TABLE[name] for name in SCHEMA}

    for source in (columns, pa.table(columns)):
        assert found(tally(open_source(source), SCHEMA).points(list(SCHEMA))) == expected(columns, SCHEMA)


def test_columns_come_in_the_order_asked_for() -> None:
    """And those that are not asked for are counted over."""
    counted = tally(open_source(TABLE), SCHEMA)

    one, other = counted.points(["age", "region"]), counted.points(["region", "age"])

    assert found(one) == {(age, region): count for (region, age), count in found(other).items()}
    assert one.total == other.total == len(TABLE["age"])


def test_marginals_are_those_of_each_column() -> None:
    """The points of one column are its histogram and its special cells."""
    counted = tally(open_source(TABLE), SCHEMA)
    column, points = counted.column("age"), counted.points(["age"])
    axis = Axis.of(SCHEMA["age"])

    ordinary = {
        (axis.position(cell),): count
        for cell, count in zip(exact(column).cells.tolist(), exact(column).counts.tolist(), strict=True)
    }
    special = {
        (place,): column.specials[name]
        for name, place in Axis.specials(SCHEMA["age"]).items()
        if column.specials[name]
    }
    assert found(points) == ordinary | special


def test_axes_of_2_to_the_63_cells_are_exact() -> None:
    """Neighbouring cells at the far end stay apart, and so do the special cells behind them."""
    last = 2**63 - 1
    schema: dict[str, Domain] = {"x": Integer(0, last), "y": Integer(-(2**62), 2**62 - 1)}
    data = {
        "x": np.array([0, last - 1, last, 2**63, 2**64 - 1], np.uint64),
        "y": np.array([-(2**62), 2**62 - 2, 2**62 - 1, 2**62, -(2**63)], np.int64),
    }

    points = tally(open_source(data), schema).points(["x", "y"])

    assert points.places.tolist() == [
        [1, 1],
        [last, 2**63 - 1],
        [last + 1, 2**63],
        [last + 2, 0],
        [last + 2, 2**63 + 1],
    ]


def test_larger_axes_are_refused() -> None:
    """A column of 2^64 cells has no axis in a box."""
    schema: dict[str, Domain] = {"x": Integer(0, 2**64 - 1), "age": Integer(0, 9)}

    with pytest.raises(InvalidParameter, match="size must be at most 9223372036854775808"):
        tally(open_source({"x": [1], "age": [1]}), schema).points(["x", "age"])


def test_nobody_is_no_point() -> None:
    """An empty table has axes and nothing on them."""
    points = tally(open_source({"age": [], "region": []}), PAIR).points(["age", "region"])

    assert points.places.shape == (0, 2)
    assert points.total == 0


def test_rows_of_a_person_are_bounded_together() -> None:
    """At most k rows of each person are left in the columns together, chosen by the rule of all sources."""
    ids, ages = [1] * 50 + [2] * 2, [*range(10)] * 5 + [3, 3]
    regions = (["north", "south", "west"] * 18)[:52]
    data = {"id": ids, "age": ages, "region": regions}
    schema = PAIR

    counted = tally(open_source(data), schema, person="id", contributions=3, salt="s")
    points = counted.points(["age", "region"])

    cells = [schema["age"].encode(ages), schema["region"].encode(regions)]
    persons, ones = np.array(ids) - 1, np.ones(52, np.int64)
    kept, counts = bound_contributions(persons, [b"1", b"2"], cells, ones, limit=3, salt=b"s")
    rows = zip(kept[0].cells.tolist(), kept[1].tolist(), counts.tolist(), strict=True)
    exact: Counter[tuple[int, ...]] = Counter()
    for age, region, count in rows:
        place = Axis.specials(schema["region"])[region] if isinstance(region, str) else region
        exact[age + 1, place] += count
    assert found(points) == exact
    assert (points.total, points.contributions) == (5, 3)


def test_columns_that_were_not_counted_are_named() -> None:
    """With the nearest one."""
    with pytest.raises(SourceError, match="'agge' is not in the data; did you mean 'age'"):
        tally(open_source(TABLE), SCHEMA).points(["agge", "region"])


def test_points_print_no_counts() -> None:
    """Neither does the tally."""
    counted = tally(open_source(TABLE), SCHEMA)

    assert repr(counted.points(["age", "region"])) == "Points(2 axes, contributions=1, secret)"
    assert repr(counted).endswith("secret)")
