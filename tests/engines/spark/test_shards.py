"""Shards are public: they follow from the size of a universe and from how many there shall be."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark.counts import SHIFT, Shards

pytestmark = pytest.mark.engines


@given(st.integers(1, 2**64), st.integers(1, 64))
def test_shards_cover_the_universe_once(size: int, parts: int) -> None:
    """Each cell is in one shard, no shard is empty, and there are few more than were asked for."""
    shards = Shards.of(size, parts=parts)

    assert (shards.bounds[0], shards.bounds[-1]) == (0, size)
    assert all(len_of(shard) > 0 for shard in shards.ranges)
    assert len(shards) <= parts + 22
    assert max(map(len_of, shards.ranges)) < 2 * max(2**20, -(-size // parts))


def len_of(shard: range) -> int:
    """`len` stops at 2^63."""
    return shard.stop - shard.start


def test_a_small_universe_is_one_shard() -> None:
    """One executor has room for a million cells, and every shard costs a segment."""
    assert Shards.of(2**20, parts=8).bounds == (0, 2**20)
    assert len(Shards.of(2**20 + 1, parts=8)) == 2


@pytest.mark.engines
@pytest.mark.parametrize(("size", "parts"), [(2**64, 1), (2**64, 4000), (10**9, 64), (2**20, 64)])
def test_spark_finds_the_shard_of_a_cell(spark: Any, size: int, parts: int) -> None:
    """On both sides of each bound, however many shards there are."""
    shards = Shards.of(size, parts=parts)
    cells = sorted({cell for bound in shards.bounds for cell in (bound - 1, bound) if 0 <= cell < size})
    rows = spark.createDataFrame([(cell - SHIFT,) for cell in cells], "cell bigint")

    found = rows.select(shards.number(rows["cell"]).alias("shard")).collect()

    assert [row["shard"] for row in found] == [bisect_right(shards.bounds, cell) - 1 for cell in cells]
