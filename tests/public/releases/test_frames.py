"""Results as tables, and arithmetic on the answers of releases."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.answer import Answers
from partita.domain import Domain
from partita.frames import Tabular, split_specials
from partita.public.release import Release

SCHEMA: dict[str, Domain] = {
    "age": pt.Integer(0, 99),
    "pay": pt.Integer(0, 2**20 - 1),
    "town": pt.Category(["Rome", "Bari", "Oslo"]),
    "day": pt.Date("2026-01-01", "2026-12-31"),
    "at": pt.Timestamp("2026-01-01", "2026-01-31", "1h", zone="Europe/Rome"),
    "cost": pt.Real(0, 100, step="0.01"),
}


def _rows(seed: int = 1, number: int = 3_000) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 80, number)
    return {
        "age": age,
        "pay": 20_000 + 300 * age + draw.integers(0, 9_000, number),
        "town": draw.choice(["Rome", "Bari", "Oslo"], number, p=[0.6, 0.3, 0.1]),
        "day": [f"2026-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(number)],
        "at": [f"2026-01-{1 + i % 28:02}T{i % 24:02}:00:00+01:00" for i in range(number)],
        "cost": [f"{i % 100}.{i % 100:02}" for i in range(number)],
    }


def _publish(*views: tuple[str, ...], seed: int = 1, **options: Any) -> Release:
    columns = {column for view in views for column in view}
    rows = {column: values for column, values in _rows(seed).items() if column in columns}
    schema = {column: SCHEMA[column] for column in rows}
    return pt.publish(rows, schema, epsilon=2, views=list(views), **options)


@pytest.fixture(scope="module")
def release() -> Release:
    """Columns alone, pairs of columns, and a sum."""
    return _publish(("age", "pay"), ("age", "town"), ("day",), ("at",), ("cost",))


@pytest.fixture(scope="module")
def table() -> Release:
    """A table release, which has a model."""
    rows = {column: _rows()[column] for column in ("age", "pay", "town")}
    schema = {column: SCHEMA[column] for column in rows}
    return pt.publish(rows, schema, epsilon=2, mechanism="graph")


def test_intervals_in_tables_are_those_of_single_questions(release: Release, table: Release) -> None:
    """Each row of bins, tiles, many counts and distributions has the interval that `count` has."""
    for asked in (release, table):
        for row in asked.histogram("age", 5).to_dicts():
            single = asked.count(age=(row["age_first"], row["age_last"]))
            assert (row["low"], row["high"]) == pytest.approx(single.interval())
            assert (row["count"], row["basis"]) == (pytest.approx(single.value), single.basis)
        for row in asked.histogram("age", "town", bins=(3, 3)).to_dicts():
            single = asked.count(age=(row["age_first"], row["age_last"]), town=row["town"])
            assert (row["low"], row["high"]) == pytest.approx(single.interval())
        for row in asked.counts(age=([20, 40, None], [39, 59, 30]), pay=(25_000, None)).to_dicts():
            single = asked.count(age=(row["age_first"], row["age_last"]), pay=(25_000, None))
            assert (row["count"], row["low"], row["high"]) == pytest.approx(
                (single.value, *single.interval())
            )
    for row in release.cdf("day", ["2026-03-31", "2026-06-30"]).to_dicts():
        low, high = release.count(day=("2026-01-01", row["day"])).interval()
        assert row["high"] - row["low"] == pytest.approx(high - low)


def test_tables_have_a_type_for_each_kind_of_key(release: Release) -> None:
    """Whole numbers, decimals, days, times with their zone, and text stay what they are."""
    import pyarrow

    found = {
        name: release.histogram(name, 4).to_arrow().schema.field(0).type
        for name in ("age", "day", "at", "cost")
    }
    assert (found["age"], found["day"]) == (pyarrow.int64(), pyarrow.date32())
    assert (found["at"].tz, pyarrow.types.is_decimal(found["cost"])) == ("Europe/Rome", True)
    assert release.histogram("age", "town", bins=3).to_arrow().column_names == [
        "age_first",
        "age_last",
        "town",
        "count",
        "low",
        "high",
        "basis",
    ]


def test_every_library_reads_a_result(release: Release) -> None:
    """pandas, and whatever reads Arrow's streams, have the same numbers as the dictionaries."""
    import pyarrow

    bins = release.histogram("day", 12)
    records = bins.to_dicts()

    assert bins.to_pandas()["count"].tolist() == [row["count"] for row in records]
    assert pyarrow.table(bins).to_pylist() == records
    assert records[0]["day_first"] == datetime.date(2026, 1, 1)


def test_what_is_not_installed_is_named_with_its_extra(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error says what to install, and what else there is."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    for name in ("pandas", "polars"):
        with pytest.raises(pt.InvalidParameter, match=rf'needs {name}.*pip install "partita\[{name}\]"'):
            getattr(release.count(), f"to_{name}")()


def test_numbers_without_an_exact_type_become_floats() -> None:
    """Fractions and integers of more than 64 bits are floats in Arrow, and exact in dictionaries."""

    class Found(Tabular):
        def frame(self) -> dict[str, Any]:
            return {"third": [pt.Integer(0, 1).size / 3, None], "large": [2**64, -1], "wide": [2**63, 0]}

    types = Found().to_arrow().schema.types
    assert [str(each) for each in types] == ["double", "double", "uint64"]


def test_special_cells_are_null_and_named_beside() -> None:
    """A key that is a special cell has no value: its name stands in a column of its own."""
    found = split_specials({"town": ["Rome", pt.NULL, pt.OTHER], "count": [1, 2, 3]})

    assert found == {
        "town": ["Rome", None, None],
        "town_special": [None, "null", "other"],
        "count": [1, 2, 3],
    }


def test_quantiles_sums_and_lines_are_tables(release: Release) -> None:
    """Several quantiles have the name of their column, single numbers are one row."""
    assert release.quantile("cost", [0.25, 0.5]).to_arrow().column_names == [
        "q",
        "cost",
        "low",
        "high",
        "basis",
    ]
    assert isinstance(release.quantile("cost", [0.5])[0].value, Decimal)
    assert release.quantile("cost", []).to_dicts() == []
    (row,) = release.count(age=(30, 39)).to_dicts()
    assert (row["low"], row["high"]) == release.count(age=(30, 39)).interval()
    assert [row["term"] for row in release.regression("pay", "age").to_dicts()] == ["slope", "intercept"]


def test_dependence_is_a_table_of_pairs(table: Release) -> None:
    """A row for each pair of columns, the strongest first."""
    found = table.dependence()

    assert [tuple(row.values()) for row in found.to_dicts()] == [tuple(pair) for pair in found.pairs]


def test_answers_can_be_read_one_by_one(release: Release) -> None:
    """An entry of many counts is an answer like any other."""
    many = release.counts(age=([20, 40], [39, 59]))

    assert many[1].worst() == release.count(age=(40, 59)).worst()
    assert (many[0] - many[1]).error == release.difference({"age": (20, 39)}, {"age": (40, 59)}).error
    assert Answers(np.ones(2), lambda: np.ones(2))[0].interval() == pytest.approx(
        (1 - 1.959964, 1 + 1.959964)
    )


def test_a_difference_is_the_question_for_it(release: Release) -> None:
    """Taking one count from another asks `difference`, with its error and its bounds."""
    one, other = release.count(age=(30, 39)), release.count(age=(40, 59))
    expected = release.difference({"age": (30, 39)}, {"age": (40, 59)})
    found = one - other
    assert found.value == pytest.approx(expected.value)
    assert (found.error, found.worst(), found.interval()) == (
        expected.error,
        expected.worst(),
        expected.interval(),
    )


def test_a_difference_in_a_table_release_keeps_its_value(table: Release) -> None:
    """A model may read two counts and their difference off different tables; the error is the same."""
    one, other = table.count(age=(30, 39)), table.count(age=(40, 59))
    expected = table.difference({"age": (30, 39)}, {"age": (40, 59)})
    found = one - other

    assert found.value == pytest.approx(one.value - other.value)
    assert found.error == pytest.approx(expected.error)
    assert abs(found.value - expected.value) <= 5 * (found.error + expected.error)


def test_sums_of_counts_have_the_error_of_their_union(release: Release) -> None:
    """Neighbouring ranges added up are known as well as one range, but for what rounding models add."""
    parts = [release.count(day=(f"2026-{month:02}-01", f"2026-{month:02}-28")) for month in (1, 2, 3)]

    whole = sum(parts)
    pairs = math.hypot(*(part.error for part in parts))
    assert isinstance(whole, pt.Answer)
    assert whole.value == pytest.approx(sum(part.value for part in parts))
    assert 0.4 * pairs < whole.error < 2.0 * pairs


def test_copies_of_a_release_share_its_noise_and_others_do_not(release: Release, tmp_path: Path) -> None:
    """What counts is the content: a loaded copy is the same release, another one has noise of its own."""
    release.save(tmp_path / "copy.parquet")
    copy, other = pt.load(tmp_path / "copy.parquet"), _publish(("age", "town"), ("day",), seed=2)

    one = release.count(age=(30, 39))
    assert (release.is_same(copy), release.is_same(other)) == (True, False)
    assert (one - copy.count(age=(30, 39))).error == pytest.approx(0.0, abs=one.error / 2)
    beyond = other.count(age=(30, 39))
    assert (one - beyond).error == pytest.approx(math.hypot(one.error, beyond.error))
    assert (beyond / one).error < math.inf


def test_shares_of_any_release_have_errors(release: Release, table: Release) -> None:
    """A share divides two counts of one view; it is within 0 and 1, and near that of the rows."""
    rows = _rows()
    truth = float(np.mean(rows["town"] == "Rome"))
    for asked in (release, table):
        share = asked.share(town="Rome")
        low, high = share.interval()
        assert 0 <= low <= truth <= high <= 1
        assert high - low < 0.2
        young = (rows["age"] >= 30) & (rows["age"] <= 39)
        low, high = asked.share(town="Rome", among={"age": (30, 39)}).interval()
        assert low <= np.mean(rows["town"][young] == "Rome") <= high
    assert math.isnan(release.share(town="Rome", among={"age": (98, 99)}).value)
    with pytest.raises(pt.InvalidParameter, match=r"^among must name other columns"):
        release.share(age=(30, 39), among={"age": (20, 49)})


def test_shares_of_all_rows_go_with_the_total(release: Release) -> None:
    """Of several views, the total rests on all of them; the covariance with one is that of its part."""
    found = release.count(town="Rome") / release.count()

    assert found.value == pytest.approx(release.share(town="Rome").value)
    assert found.error == pytest.approx(release.share(town="Rome").error, rel=0.5)
    assert not found.note


def test_shares_of_a_distribution_have_errors(release: Release) -> None:
    """They are 0 at its end, where the share is 1 for certain, and intervals hold the truth."""
    found = release.cdf("age", [0, 30, 50, 99])

    assert found.fractions is found.shares.values
    assert found.shares.error[3] == pytest.approx(0.0, abs=0.01)
    ages = _rows()["age"]
    for row in found.to_dicts()[1:3]:
        assert row["share_low"] <= np.mean(ages <= row["age"]) <= row["share_high"]
    half = (row["share_high"] - row["share_low"]) / 2
    assert 1.9 * found.shares.error[2] < half < 2.1 * found.shares.error[2]
    assert found.shares[1].worst()[0] <= found.fractions[1] <= found.shares[1].worst()[1]


def test_sums_of_one_release_add_their_errors() -> None:
    """Nothing is known of how far the noise of two sums goes together."""
    rows = {column: _rows()[column] for column in ("age", "pay")}
    paid = pt.publish(rows, {column: SCHEMA[column] for column in rows}, epsilon=2, by=["age"], sums=["pay"])

    one, other = paid.sum("pay", age=(20, 39)), paid.sum("pay", age=(40, 59))
    assert (one - other).error == pytest.approx(one.error + other.error)
    assert "not known" in str(one - other)
    assert (100 * (paid.mean("pay", age=(20, 39)) / paid.mean("pay") - 1)).value < 0
