"""One tape, one cut: whoever does the arithmetic, and however the stream is split into runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pytest

from partita import Cut, Histogram, Partition
from partita.errors import InvalidParameter
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise.hazard import MARGIN, Law
from partita.trusted.noise.system import Noise, Path

SIZES = (1, 2, 3, 10, 1000, 2**20, 2**32 - 5, 2**32, 2**53 + 1, 10**15, 2**63, 2**64 - 1, 2**64)
EPSILONS = ("1/100", "1/10", "1/3", 1, 2, 5)
THRESHOLDS: tuple[Literal["paper"] | int | None, ...] = (None, "paper", 3)
PATHS: tuple[Path, ...] = ("exact", "numpy", "compiled")
GROUP = 6

Outcome = tuple[list[int], int]


class Group(NamedTuple):
    """A partition on which several streams are cut."""

    size: int
    epsilon: Any
    law: Law
    threshold: Literal["paper"] | int | None


def _groups() -> Iterator[Group]:
    """Every size, epsilon, law and threshold, the small one on small universes only."""
    for size in SIZES:
        for epsilon in EPSILONS:
            for law in get_args(Law):
                for threshold in THRESHOLDS:
                    if threshold != 3 or size <= 1000:
                        yield Group(size, epsilon, law, threshold)


GROUPS = list(_groups())


@pytest.mark.parametrize("part", range(12))
@pytest.mark.spread(2)
def test_every_path_cuts_alike(part: int) -> None:
    """Edges and the number of words used agree between all paths and the online cut."""
    for index in range(part, len(GROUPS), 12):
        partition = _partition(GROUPS[index])
        for seed in range(GROUP):
            _assert_equal_outcomes(partition, Random(f"{index}, {seed}"), MARGIN)


@pytest.mark.parametrize("margin", [2.0**-8, 2.0**-4, 0.5])
@pytest.mark.spread(1)
def test_margins_never_change_a_cut(margin: float) -> None:
    """However many decisions are left to exact arithmetic, the cut is the same."""
    for index in range(0, len(GROUPS), 6):
        partition = _partition(GROUPS[index])
        for seed in range(2):
            _assert_equal_outcomes(partition, Random(f"{margin}, {index}, {seed}"), margin)


def test_there_are_more_than_2_000_cases() -> None:
    """The two tests above cut this many streams, some hundreds of them at coarse margins."""
    plain, coarse = GROUP * len(GROUPS), 3 * 2 * len(range(0, len(GROUPS), 6))

    assert (plain, coarse) == (2_232, 372)


@pytest.mark.parametrize("law", get_args(Law))
@pytest.mark.parametrize(("size", "epsilon"), [(2**32, 1), (2**64, "1/10"), (10**6, 2)])
def test_long_streams_are_cut_alike(law: Law, size: int, epsilon: object) -> None:
    """The NumPy and the compiled path agree on 20,000 items."""
    partition = Partition(size=size, epsilon=epsilon, law=law)
    data = _stream(Random(f"{law}, {size}"), size, 20_000, 3)

    numpy, compiled = (
        _cut_on_tape(partition, data, (law, size), path, MARGIN) for path in ("numpy", "compiled")
    )

    assert numpy == compiled


def test_a_coarse_margin_on_a_long_stream_changes_nothing() -> None:
    """The NumPy, compiled and exact paths agree on 5,000 items at a margin of a half."""
    partition = Partition(size=2**64, epsilon=1)
    data = _stream(Random("long"), 2**64, 5_000, 3)

    outcomes = [_cut_on_tape(partition, data, "long", path, 0.5) for path in PATHS]

    assert outcomes == [_cut_on_tape(partition, data, "long", "exact", MARGIN)] * 3


def _partition(group: Group) -> Partition:
    return Partition(**group._asdict())


def _assert_equal_outcomes(partition: Partition, random: Random, margin: float) -> None:
    data = _stream(random, partition.size, random.choice((0, 1, 5, 30, 300)), random.choice((1, 4, 50)))
    seed = random.random()
    expected = _cut_on_tape(partition, data, seed, "exact", MARGIN)
    for path in PATHS:
        assert _cut_on_tape(partition, data, seed, path, margin) == expected, (partition, path, seed)
    online = _on_tape(lambda noise: _online(partition, data, random, noise), seed, "auto", margin)
    assert online == expected, (partition, "online", seed)


def _stream(random: Random, size: int, items: int, heaviest: int) -> Histogram:
    """Items spread out or in a clump, the ends of the universe often among them."""
    spread = random.choice((size, min(size, 50), min(size, 5_000)))
    start = random.randrange(size - spread + 1)
    cells = {start + random.randrange(spread) for _ in range(items)}
    cells |= {cell for cell in (0, size - 1) if items and random.random() < 0.3}
    keys = np.array(sorted(cells), dtype=np.uint64)
    counts = np.array([random.randint(1, heaviest) for _ in cells], dtype=np.int64)
    return Histogram.from_counts(keys, counts, size=size)


def _cut_on_tape(partition: Partition, data: Histogram, seed: object, path: Path, margin: float) -> Outcome:
    return _on_tape(lambda noise: partition.cut(data, noise=noise), seed, path, margin)


def _on_tape(run: Callable[[Noise], Cut], seed: object, path: Path, margin: float) -> Outcome:
    tape = EndlessTape(seed)
    cut = run(tape_noise(tape, path=path, margin=margin))
    return cut.edges.tolist(), tape.used


def _online(partition: Partition, data: Histogram, random: Random, noise: Noise) -> Cut:
    """Items one by one or in lumps, and the empty runs between them in random pieces."""
    cutter = partition.online(noise=noise)
    for cell, count in zip(data.cells.tolist(), data.counts.tolist(), strict=True):
        if random.random() < 0.5:
            cutter.advance(random.randint(0, cell - cutter.position))
        first = random.randint(0, count)
        cutter.update(cell, first)
        cutter.update(cell, count - first)
    cutter.advance(random.randint(0, partition.size - cutter.position))
    return cutter.finish()


def test_small_thresholds_are_refused_where_they_would_flood() -> None:
    """A threshold of 3 is tried above on small universes only; on the wide ones it is refused."""
    with pytest.raises(InvalidParameter, match=r"^threshold must keep the expected number"):
        Partition(size=2**32, epsilon=Fraction(1), threshold=3)
