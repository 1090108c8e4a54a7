"""Shards are public: they follow from the size of a universe and from how many there shall be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.sources.spark.shards import Shards


@given(st.integers(1, 2**64), st.integers(1, 64))
def test_shards_cover_the_universe_once(size: int, parts: int) -> None:
    """Each cell is in one shard, no shard is empty, and there are few more than were asked for."""
    shards = Shards.of(size, parts=parts)

    assert (shards.bounds[0], shards.bounds[-1]) == (0, size)
    assert all(len_of(shard) > 0 for shard in shards.ranges)
    assert len(shards) <= parts + 22


def len_of(shard: range) -> int:
    """`len` stops at 2^63."""
    return shard.stop - shard.start


def test_a_small_universe_is_one_shard() -> None:
    """One executor has room for a million cells, and every shard costs a segment."""
    assert Shards.of(2**20, parts=8).bounds == (0, 2**20)
    assert len(Shards.of(2**20 + 1, parts=8)) == 8
