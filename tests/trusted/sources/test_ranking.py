"""Rows that are counted for several bounds at once: those within each are what that bound alone keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.domain import Category, Domain, Integer
from partita.errors import InvalidParameter
from partita.trusted.sources.open import open_source
from partita.trusted.sources.spark.source import SparkSource
from partita.trusted.sources.tally import RANK, check_request, rank_contributions, tally
from partita.trusted.sources.wide import tally_rows

SCHEMA: dict[str, Domain] = {"x": Integer(0, 3), "y": Category(["a", "b"])}
LIMITS = (1, 2, 4)

rows = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 33]),
        st.sampled_from([None, -1, 0, 1, 2, 9]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=25,
)


def table(data: Sequence[tuple[Any, Any, Any]]) -> Any:
    kinds = (pa.int64(), pa.int64(), pa.string())
    columns = [pa.array([row[place] for row in data], kind) for place, kind in enumerate(kinds)]
    return open_source(pa.table(columns, names=["id", "x", "y"]))


def pairs(counted: Any) -> tuple[list[list[Any]], list[int]]:
    """The points of both columns and their counts, in order."""
    points = counted.points(["x", "y"]).gathered()
    return points.places.tolist(), points.counts.tolist()


@settings(max_examples=15)
@given(rows, st.sampled_from(["", "2024"]), st.sampled_from([None, ("y", "a")]))
def test_the_rows_within_a_bound_are_those_that_it_keeps_alone(
    data: Any, salt: str, where: tuple[str, str] | None
) -> None:
    """One pass for all bounds gives the tally of each, grouped or row by row, of a part too."""
    source = table(data)
    facts: dict[str, Any] = {"person": "id", "salt": salt, "where": where}
    together = tally(source, SCHEMA, contributions=LIMITS, **facts)
    wide = tally_rows(source.rows, SCHEMA, contributions=LIMITS, **facts)

    for place, limit in enumerate(LIMITS):
        alone = tally(source, SCHEMA, contributions=limit, **facts)
        kept = together.within(LIMITS, place)

        assert pairs(kept) == pairs(wide.within(LIMITS, place)) == pairs(alone)
        assert kept.counts.tolist() == alone.counts.tolist()
        assert kept.contributions == wide.within(LIMITS, place).contributions == limit


@settings(max_examples=10)
@given(rows)
def test_ranks_say_how_many_rows_count_within_each_bound(data: Any) -> None:
    """The sum of min(rows, bound) over all persons, those without an id as one; whatever the salt."""
    persons = [sum(row[0] == one for row in data) for one in {row[0] for row in data}]

    for salt in ("", "other"):
        counted = tally(table(data), SCHEMA, person="id", contributions=LIMITS, salt=salt)
        within = counted.column(RANK).histogram.spread().cumsum().tolist()

        assert within == [sum(min(each, limit) for each in persons) for limit in LIMITS]


def test_no_column_of_a_schema_can_be_taken_for_the_ranks() -> None:
    """A schema refuses an empty name long before rows are read."""
    import partita as pt

    with pytest.raises(InvalidParameter, match="schema must map columns to domains"):
        pt.publish({"": [1], "id": [1]}, {RANK: Integer(0, 3)}, epsilon=1, person="id", contributions="auto")


def test_ranks_need_ids_like_any_bound() -> None:
    """Several bounds without a column of ids are refused."""
    with pytest.raises(InvalidParameter, match="contributions needs person"):
        check_request(SCHEMA, None, person=None, contributions=LIMITS, where=None)


def test_a_spark_cluster_refuses_several_bounds_before_anything_runs() -> None:
    """With what to do instead; no frame is looked at."""
    source = object.__new__(SparkSource)

    with pytest.raises(InvalidParameter, match=r"contributions must be a number of rows .* Spark cluster"):
        source.tally(SCHEMA, person="id", contributions=LIMITS)


def test_a_rank_that_is_one_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the row number k counts within k rows; a person then has one row too many."""
    from partita.trusted.sources import tally as module

    def planted(*given: Any, limits: tuple[int, ...], salt: bytes) -> Any:
        columns, counts = rank_contributions(*given, limits=tuple(each + 1 for each in limits), salt=salt)
        return columns, counts

    monkeypatch.setattr(module, "rank_contributions", planted)
    source = table([(1, place % 4, "a") for place in range(9)])
    kept = tally(source, SCHEMA, person="id", contributions=LIMITS).within(LIMITS, 1)

    assert pairs(kept) != pairs(tally(source, SCHEMA, person="id", contributions=2))
