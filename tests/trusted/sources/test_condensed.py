"""Integers are counted block by block, and the blocks added up: the same counts as row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.trusted.sources import engine
from partita.trusted.sources.open import open_source

EDGES = {pa.int64(): (-(2**63), 2**63 - 1), pa.uint64(): (0, 2**64 - 1), pa.timestamp("us"): (-(2**62), 0)}


@pytest.mark.parametrize("kind", EDGES, ids=str)
@pytest.mark.parametrize("block", [1, 3, 10, 2**21])
@pytest.mark.parametrize("threads", [1, None])
def test_blocks_add_up_to_the_count_of_all_rows(
    kind: Any, block: int, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the blocks are, every value and null is counted once for each of its rows."""
    monkeypatch.setattr(engine, "_BLOCK", block)
    low, high = EDGES[kind]
    rows: list[int | None] = [low, high, None, high, 5 - 2**40 if low else 5, low, None, low]
    plain = pa.array(rows, pa.uint64() if kind == pa.uint64() else pa.int64())
    values = plain.cast(kind)
    table = pa.table({"v": pa.chunked_array([values[:3], values[3:4], values[4:4], values[4:]])})

    counted = open_source(table, threads=threads).counts(["v"])

    found = counted.column("v").cast(plain.type).to_pylist(), counted.column("count").to_pylist()
    assert dict(zip(*found, strict=True)) == Counter(rows)
    assert found[0][-1] is None


def test_condensed_counts_are_those_of_the_engine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without condensing the table is the same, type by type and row by row."""
    rows = {"v": np.random.default_rng(0).integers(-50, 50, 10_000)}
    monkeypatch.setattr(engine, "_BLOCK", 1000)
    ours = open_source(rows).counts(["v"])
    monkeypatch.setattr("partita.trusted.sources.engine.is_condensable", lambda schema: False)

    assert ours.equals(open_source(rows).counts(["v"]))


@pytest.mark.parametrize("rows", [[], [None, None]])
def test_columns_without_a_value_are_condensed(rows: list[None]) -> None:
    """No rows give no counts, and nulls alone give one."""
    table = open_source(pa.table({"v": pa.array(rows, pa.int64())})).counts(["v"])

    assert table.to_pydict() == {"v": rows[:1], "count": [len(rows)][: len(rows)]}
