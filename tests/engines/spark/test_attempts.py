"""Each shard is released once, with one noise, whatever fails and however often it is tried."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Domain, Integer
from partita.errors import InvalidParameter, SourceError
from partita.testing import ZeroNoise
from partita.trusted.noise.system import SYSTEM

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark.counts import (
    CellBlock,
    Shards,
    SparkCounts,
    _by_piece,
    _Cutting,
    _joined,
    _ordinary,
)
from partita.trusted.sources.spark.source import SparkSource

pytestmark = pytest.mark.engines

SIZE = 2**24
SCHEMA: dict[str, Domain] = {"x": Integer(0, SIZE - 1)}
Work = Callable[[Any, range, Any], Any]


@pytest.fixture(scope="module")
def counts(spark: Any) -> SparkCounts:
    rows = spark.range(0, SIZE, 9973).withColumnRenamed("id", "x")
    histogram = SparkSource(rows, shards=3).tally(SCHEMA).column("x").histogram
    assert isinstance(histogram, SparkCounts)
    return histogram


def drawing(folder: Path, interfere: Callable[[int, int, Path], None]) -> Work:
    """Work that draws a seal for a shard, notes it with the number of its attempt, and is interfered with.

    It is made of functions that travel by value, so that executors need nothing of the tests.
    """
    where = os.fspath(folder)

    def work(block: Any, shard: range, noise: Any) -> Any:
        from fractions import Fraction
        from pathlib import Path

        import numpy
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        attempt = task.attemptNumber()
        low, high = shard.start, shard.stop - 1
        seal = low + noise.draw("laplace", Fraction(2**40)) % (high - low)
        (Path(where) / f"{low} {attempt} {seal}").touch()
        interfere(low, attempt, Path(where))
        return numpy.array([seal, high], numpy.uint64)

    return work


def noted(folder: Path) -> list[tuple[int, int, int]]:
    """Shard, attempt and seal of everything that was ever drawn."""
    return sorted(tuple(map(int, path.name.split())) for path in folder.iterdir())  # type: ignore[misc]


def leave(low: int, attempt: int, folder: Path) -> None:
    """Nothing happens."""


def fail_first(low: int, attempt: int, folder: Path) -> None:
    """The first attempt has drawn, and cannot go on: perhaps because of what it drew."""
    if attempt == 0:
        raise MemoryError("too many seals")


def die_first(low: int, attempt: int, folder: Path) -> None:
    """The first attempt has drawn, and the process that made it is gone."""
    import os
    import signal

    if attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(autouse=True)
def by_value() -> Any:
    """What is defined here travels with the work."""
    import sys

    import pyspark.cloudpickle

    cloudpickle: Any = pyspark.cloudpickle
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def released(counts: SparkCounts, work: Work) -> dict[int, int]:
    """The seal that the driver has of each shard."""
    found = counts.in_shards(work, noise=SYSTEM).tolist()
    starts = [shard.start for shard in counts.shards.ranges]
    assert found[1::2] == [shard.stop - 1 for shard in counts.shards.ranges]
    return dict(zip(starts, found[0::2], strict=True))


def test_a_cut_that_fails_is_not_drawn_again(counts: SparkCounts, tmp_path: Path) -> None:
    """A failure that may be due to the noise fails the release; no shard has a second chance."""
    with pytest.raises(SourceError, match="once for each shard"):
        released(counts, drawing(tmp_path, fail_first))

    assert [low for low, _, _ in noted(tmp_path)] == [shard.start for shard in counts.shards.ranges]


def test_a_task_that_is_lost_draws_anew_and_only_its_last_draw_is_released(
    counts: SparkCounts, tmp_path: Path
) -> None:
    """Every first process is gone after drawing; of each shard the driver has what a later one drew."""
    seals = released(counts, drawing(tmp_path, die_first))

    drawn = {(low, attempt): seal for low, attempt, seal in noted(tmp_path)}
    last = {low: max(attempt for shard, attempt in drawn if shard == low) for low in seals}
    assert min(last.values()) >= 1
    assert seals == {low: drawn[low, attempt] for low, attempt in last.items()}
    assert all(drawn[low, 0] != seal for low, seal in seals.items())


def answers(frame: Any) -> dict[int, bytes]:
    return {row["shard"]: bytes(row["seals"]) for row in frame.collect()}


def test_a_lazy_frame_of_draws_would_be_drawn_twice(counts: SparkCounts, tmp_path: Path) -> None:
    """Planted bug: seals that stay on the cluster are drawn again for each use; ours are drawn once."""
    work = drawing(tmp_path, leave)
    worker = _Cutting(work, counts.size, counts.contributions, counts.shards)
    cluster = counts.packed.cluster
    lazy = cluster.run(lambda: cluster.mapped(counts.packed.frame, worker, "shard int, seals binary"))

    assert answers(lazy) != answers(lazy)
    before = len(noted(tmp_path))
    seals = released(counts, work)
    assert len(noted(tmp_path)) - before == len(counts.shards)
    assert set(seals.items()) <= {(low, seal) for low, _, seal in noted(tmp_path)}


def test_shards_without_an_answer_or_with_two_are_refused() -> None:
    """Nothing is released of a cut that is not whole."""
    shards, one = Shards(size=9, bits=3), np.array([4], np.uint64).tobytes()
    assert len(shards) == 2

    wrong: list[list[tuple[int, bytes | None]]] = [
        [(0, one)],
        [(0, one), (1, one), (1, one)],
        [(0, one), (2, one)],
        [(0, one), (1, None)],
        [(0, one), (1, one), (1, None)],
    ]
    for found in wrong:
        with pytest.raises(SourceError, match="once for each shard"):
            _joined(found, shards)


def test_a_piece_of_a_sum_that_comes_twice_is_refused() -> None:
    """Neither of two is taken for the sum."""
    piece = np.ones(2, np.int64)

    assert list(_by_piece([(0, piece), (1, piece)])) == [0, 1]
    with pytest.raises(SourceError, match="once for each piece"):
        _by_piece([(0, piece), (1, piece), (0, piece)])


def test_blocks_out_of_order_are_not_counted() -> None:
    """Cells that a cut would pass in the wrong order, or twice, make it fail."""
    for cells in ([3, 2], [2, 2]):
        column = np.array(cells, np.uint64).reshape(-1, 1)
        block = CellBlock(0, np.zeros((2, 1), np.uint8), column, np.ones(2, np.int64))

        with pytest.raises(ValueError, match="out of order"):
            _ordinary(block)
        cut = _Cutting(lambda *_: np.zeros(1, np.uint64), 9, 1, Shards(size=9, bits=4))
        [answer] = cut(iter([block.batch()]))
        assert answer.column("seals").to_pylist() == [None]


def test_only_fresh_noise_of_the_system_is_drawn_elsewhere(counts: SparkCounts) -> None:
    """A tape or no noise cannot travel, and is refused before anything runs."""
    with pytest.raises(InvalidParameter, match="noise"):
        counts.in_shards(lambda block, shard, noise: np.array([shard.stop - 1]), noise=ZeroNoise())
