"""A release as relations of DuckDB: noisy counts of columns, and of columns that were released together."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pytest

import partita as pt
from partita.domain import Category, Integer
from partita.errors import InvalidParameter
from partita.public.axis.base import Specials
from partita.public.base import Provenance
from partita.public.relations import relations
from partita.public.release import Release
from partita.public.views import View
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.flat import HistogramCounts
from partita.trusted.secret import Histogram
from tests.table_releases import DOMAINS, table_release

Publish = Callable[..., Release]


@pytest.fixture
def connection() -> Any:
    """An empty database in memory."""
    with duckdb.connect() as opened:
        yield opened


def test_a_label_is_a_row_and_so_is_a_special_cell(publish: Publish, connection: Any) -> None:
    """What was released about a column, under its name."""
    release = publish(town=(Category(["Rome", "Bari"]), ["Rome", "Rome", "Bari", None, "Oslo"]))

    assert release.register(connection) == ["town"]

    found = connection.execute("select town, town_special, count from town").fetchall()
    assert found == [("Rome", None, 2.0), ("Bari", None, 1.0), (None, "null", 1.0), (None, "other", 1.0)]


def test_a_long_column_has_its_pieces(publish: Publish, connection: Any) -> None:
    """Pieces follow each other from the first value to the last, up to 2^64 of them."""
    release = publish(id=(Integer(0, 2**64 - 1), [5, 2**63, 2**63 + 1]))
    release.register(connection, prefix="my_")

    rows = connection.execute(
        "select id_first, id_last, count from my_id where id_special is null"
    ).fetchall()

    assert (rows[0][0], rows[-1][1]) == (0, 2**64 - 1)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(rows))
    assert sum(row[2] for row in rows) == pytest.approx(3.0)


def test_a_table_has_a_relation_for_each_column_and_each_measured_table(connection: Any) -> None:
    """The counts are those that the release answers, and add up to them."""
    release = table_release()

    names = release.register(connection)

    measured = [pair for pair in release.dependence().pairs if pair.basis == "measured"]
    assert names[:4] == list(DOMAINS)
    assert sorted(names[4:]) == sorted("__".join(pair[:2]) for pair in measured)
    value, low, high = connection.execute("select count, low, high from town where town = 'Bari'").fetchone()
    assert value == release.count(town="Bari").value
    assert low < value < high
    for name in names[4:]:
        [(total,)] = connection.execute(f'select sum(count) from "{name}"').fetchall()
        assert total == pytest.approx(release.count().value, rel=0.02)


def test_relations_join_in_plain_sql(connection: Any) -> None:
    """Each pair of columns can be grouped, and joined with the relation of a column."""
    release = table_release()
    pair = next(name for name in release.register(connection) if name.startswith("age__"))

    query = f'select age_first, sum(count) from "{pair}" where age_special is null group by 1 order by 1'
    by_age = dict(connection.execute(query.replace("age_first", "age")).fetchall())

    assert list(by_age) == list(range(60))
    assert by_age[10] == pytest.approx(release.count(age=10).value, abs=4 * release.count(age=10).error)


def test_intervals_hold_the_truth_as_often_as_they_say(connection: Any) -> None:
    """Cells that were counted one by one have Laplace noise, whose tails are heavier than normal ones.

    Of 20,000 cells 19,000 are expected to be held, with a deviation of 31, of which three are allowed; 1.96
    standard errors would hold 18,750. Noise comes from a tape.
    """
    size = 20_000
    mechanism = HistogramCounts(size=size, epsilon=Fraction(1, 1000))
    counts = np.full(size, 100_000, np.int64)
    axis = mechanism.release(Histogram.dense(counts), noise=tape_noise(EndlessTape("relations")))
    codes = Category([f"code {number}" for number in range(size)])
    specials = Specials(counts={"null": 0, "other": 0}, scale=axis.scale)
    release = Release(
        views=(View(column="code", domain=codes, axis=axis, specials=specials, mechanism="histogram"),),
        guarantee=None,
        provenance=Provenance(version="0.1.0", day="2026-11-18"),
    )
    release.register(connection)

    query = "select count(*) from code where code is not null and 100000 between low and high"
    [(held,)] = connection.execute(query).fetchall()

    assert 18_907 <= held <= 19_093


def test_names_that_are_alike_get_numbers(publish: Publish, connection: Any) -> None:
    """DuckDB does not tell capitals from small letters, and a column may be called count."""
    digit = Integer(0, 1), [0, 1]
    release = publish(Age=digit, age=digit, count=digit)

    assert release.register(connection) == ["Age", "age_2", "count"]

    found = connection.table("count").columns
    assert found == ["count", "count_special", "count_2", "error", "low", "high", "basis"]


def test_boxes_have_values_or_pieces_that_cover_everything(connection: Any) -> None:
    """A column of many values is cut; the pieces of a relation hold all rows of the release."""
    rows = {"age": [i % 90 for i in range(900)], "pay": [37 * i % 5_000 for i in range(900)]}
    schema = {"age": pt.Integer(0, 119), "pay": pt.Integer(0, 9_999)}
    release = pt.publish(rows, schema, epsilon=1)

    names = release.register(connection)

    assert names == ["age", "pay", "age__pay"]
    found = connection.execute("select sum(count), min(pay_first), max(pay_last) from age__pay").fetchone()
    assert found[0] == pytest.approx(release.count().value, rel=0.05)
    assert found[1:] == (0, 9_999)


def test_wrong_connections_and_releases_without_counts_are_refused() -> None:
    """With the parameter and what to pass."""
    rows = {"age": [30, 40]}
    alone = pt.publish(rows, {"age": pt.Integer(0, 120)}, epsilon=1, wants=["median of age"])

    with pytest.raises(InvalidParameter, match="connection must be a connection of DuckDB"):
        table_release().register("people.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="release must have released counts"):
        list(relations(alone))
