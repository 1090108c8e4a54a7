"""Same-tape cases: whoever does the arithmetic, wherever the counts are, however a stream is cut into calls.

A case is a mechanism with random public parameters, random data and a tape. It is released in several ways,
and all of them must give the same numbers: by compiled code and by NumPy, from counts here and from counts in
blocks, period by period and many at once, in one life and in two with the state written out between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any, Final, get_args

import numpy as np

from campaign.part import Outcome, Part, shown
from partita import local
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.queries.language import ranges, value
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape, Scattered, ScatteredPoints, tape_noise
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms, query_mechanisms
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.noise import laws
from partita.trusted.noise.hazard import Law
from partita.trusted.secret import Histogram, Points
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)
from tests.secrets.likeness import alike

PART: Final = Part(
    name="tapes", case="a mechanism released in several ways on one tape", goal=10_000, quick=60
)
EPSILONS: Final = ("1/10", "1/3", 1, 2, 5)
WIDE: Final = frozenset({"intervals", "intervals-paper", "partition-tents", "spending-tree"})
SUMMED: Final = Integer(-500, 2**40)
COUNTERS: Final[tuple[Callable[..., Any], ...]] = (
    lambda **more: Counter(horizon=64, **more),
    lambda **more: Counter(**more),
    lambda **more: TreeCounter(horizon=64, **more),
    lambda **more: SparseCounter(horizon=64, expected=9, **more),
    lambda **more: SlidingCounter(window=9, **more),
    lambda **more: PanPrivateCounter(horizon=64, **more),
    lambda **more: PerStepCounter(horizon=64, **more),
    lambda **more: DirectCounter(horizon=64, **more),
    lambda **more: RandomizedResponseCounter(horizon=64, **more),
)

Case = Iterator[Any]


def run(cases: int) -> Outcome:
    """So many cases, every family of mechanisms in turn."""
    return Outcome.of(shown(map(_tried, range(cases)), "same-tape cases", cases))


def _tried(number: int) -> tuple[str, str | None]:
    """The name of a case, and what was wrong with it."""
    dice = Random(f"tapes {number}")
    name, ways = FAMILIES[number % len(FAMILIES)](dice, number)
    first, *others = ways
    differing = [place for place, other in enumerate(others, 1) if not alike(first, other)]
    return name, f"case {number}, ways {differing}" if differing else None


def _noise(number: int, path: Any = "auto") -> Any:
    return tape_noise(EndlessTape(("campaign", number)), path=path)


def _paths() -> tuple[Any, ...]:
    return ("numpy", "compiled") if laws.available() else ("numpy", "exact")


def _axis(dice: Random, number: int) -> tuple[str, Case]:
    """One axis: both paths, and counts in blocks."""
    name, made = dice.choice(sorted(axis_mechanisms().items()))
    size = dice.choice((1, 2, 7, 64, *((2**20, 2**40, 2**63) if name in WIDE else (33,))))
    mechanism = made(size=size, epsilon=dice.choice(EPSILONS))
    here = _histogram(dice, size)
    return name, _released(mechanism, [here, Scattered(here, blocks=dice.randint(1, 5))], number)


def _boxes(dice: Random, number: int) -> tuple[str, Case]:
    """Several axes together."""
    name, made = dice.choice(sorted(box_mechanisms().items()))
    axes = [_public_axis(dice) for _ in range(dice.choice((2, 2, 3)))]
    if name == "viewed-boxes":
        axes[0] = Axis(size=dice.choice((2, 40)), after=2, labels=True)
    here = _points(dice, axes)
    data = [here, ScatteredPoints(here, blocks=dice.randint(1, 4))]
    return name, _released(made(axes=axes, epsilon=dice.choice(EPSILONS)), data, number)


def _sums(dice: Random, number: int) -> tuple[str, Case]:
    """Sums by keys, means by group, sums between values of the summed column, and totals alone."""
    epsilon, turn = dice.choice(EPSILONS), dice.random()
    if turn < 0.4:
        mechanism: Any = dice.choice((LogTree, KnotTotal))(value=SUMMED, epsilon=epsilon)
        axes = [Axis.of(SUMMED)]
    elif turn < 0.6:
        mechanism = GroupMeans(keys=[Axis(size=6)], value=SUMMED, epsilon=epsilon)
        axes = [Axis(size=6), mechanism.cap.value.axis]
    else:
        mechanism = LevelTrees(
            keys=[Axis(size=6)], value=SUMMED, epsilon=epsilon, moments=dice.random() < 0.5
        )
        axes = [Axis(size=6), mechanism.cap.value.axis]
    here = _points(dice, axes)
    return type(mechanism).__name__, _released(mechanism, [here, ScatteredPoints(here)], number)


def _queries(dice: Random, number: int) -> tuple[str, Case]:
    """Lists of queries, on both paths."""
    name, made = dice.choice(sorted(query_mechanisms().items()))
    asked = value("income") if name == "single-truncation" else ranges("age") * value("income")
    universe = Universe(["age", "income"], [Integer(0, 4), Integer(0, 6)])
    mechanism = made(queries=asked, universe=universe, epsilon=dice.choice(EPSILONS))
    return name, _released(mechanism, [_points(dice, universe.axes)], number)


def _cuts(dice: Random, number: int) -> tuple[str, Case]:
    """A partition, whole and item by item."""
    law: Law = dice.choice(get_args(Law))
    size = dice.choice((3, 1000, 2**32, 2**64))
    partition = Partition(size=size, epsilon=dice.choice(EPSILONS), law=law)
    data = _histogram(dice, size)

    def ways() -> Case:
        for path in ("exact", *_paths()):
            yield partition.cut(data, noise=_noise(number, path)).edges
        yield _item_by_item(partition, data, dice, _noise(number)).edges

    return f"partition, {law}", ways()


def _item_by_item(partition: Partition, data: Histogram, dice: Random, noise: Any) -> Any:
    """The same stream in random pieces."""
    cutter = partition.online(noise=noise)
    for cell, count in zip(data.cells.tolist(), data.counts.tolist(), strict=True):
        cutter.advance(dice.randint(0, cell - cutter.position))
        cutter.advance(cell - cutter.position)
        cutter.add(count)
    return cutter.finish()


def _counters(dice: Random, number: int) -> tuple[str, Case]:
    """Period by period, many at once, and with the state written out and read on the way.

    A sparse counter draws once for a run of quiet periods: cut into other calls it has the same law, and
    other words.
    """
    make, epsilon = dice.choice(COUNTERS), dice.choice(EPSILONS)
    events = [dice.choice((0, 0, 0, 1, 1)) for _ in range(dice.randint(1, 64))]
    early, late = np.split(np.array(events), [dice.randint(0, len(events))])

    def ways() -> Case:
        one, many = (make(epsilon=epsilon, noise=_noise(number)) for _ in range(2))
        if one.name != "sparse":
            yield np.array([one.update(x) for x in events])
        yield np.concatenate([many.update_many(early), many.update_many(late)])
        tape = EndlessTape(("campaign", number))
        first_life = make(epsilon=epsilon, noise=tape_noise(tape))
        seen, state = first_life.update_many(early), first_life.state()
        second_life = type(first_life).from_state(state, noise=tape_noise(tape))
        yield np.concatenate([seen, second_life.update_many(late)])

    return make(epsilon=epsilon).name, ways()


def _families(dice: Random, number: int) -> tuple[str, Case]:
    """A counter for each of some keys."""
    keys, epsilon = dice.randint(1, 5), dice.choice(EPSILONS)
    events = np.array([[dice.choice((0, 0, 1, 3)) for _ in range(keys)] for _ in range(dice.randint(1, 40))])

    def ways() -> Case:
        one, many = (
            CounterFamily(keys=keys, epsilon=epsilon, horizon=64, noise=_noise(number)) for _ in range(2)
        )
        yield np.array([one.update(row) for row in events])
        yield np.asarray(many.update_many(events))

    return "family", ways()


def _draws(dice: Random, number: int) -> tuple[str, Case]:
    """Noise itself, of every law, size and scale."""
    scale = Fraction(dice.randint(1, 10**6), dice.choice((1, 7, 1000)))
    law, size = dice.choice(("discrete_laplace", "geometric")), dice.randint(1, 300)
    return law, (getattr(_noise(number, path), law)(scale, size) for path in ("exact", *_paths()))


def _merges(dice: Random, number: int) -> tuple[str, Case]:
    """Local reports, counted at once and in parts that are merged in any order."""
    question = local.Frequency(dice.choice((2, 5, 64)), epsilon=float(Fraction(dice.choice(EPSILONS))))
    reports = question.randomize_many(np.array([dice.randrange(question.size) for _ in range(40)]))
    parts = np.array_split(np.arange(len(reports)), dice.randint(1, 5))

    def ways() -> Case:
        yield _counted(question, reports).to_bytes()
        merged, *rest = (_counted(question, reports[part]) for part in dice.sample(parts, len(parts)))
        for other in rest:
            merged = merged.merge(other)
        yield merged.to_bytes()

    return "local reports", ways()


def _counted(question: Any, reports: Any) -> Any:
    aggregator = question.aggregator()
    aggregator.add_many(reports)
    return aggregator


FAMILIES: Final = (
    _axis,
    _boxes,
    _counters,
    _cuts,
    _axis,
    _draws,
    _sums,
    _families,
    _axis,
    _counters,
    _merges,
    _queries,
)


def _released(mechanism: Any, data: list[Any], number: int) -> Case:
    """By each path, and from each form of the data."""
    for path in _paths():
        yield mechanism.release(data[0], noise=_noise(number, path))
    for other in data[1:]:
        yield mechanism.release(other, noise=_noise(number))


def _histogram(dice: Random, size: int) -> Histogram:
    spread = dice.choice((size, min(size, 50)))
    cells = sorted({dice.randrange(spread) for _ in range(dice.choice((0, 1, 5, 60)))})
    counts = np.array([dice.choice((1, 2, 40)) for _ in cells], dtype=np.int64)
    return Histogram.from_counts(np.array(cells, dtype=np.uint64), counts, size=size)


def _public_axis(dice: Random) -> Axis:
    return Axis(size=dice.choice((1, 2, 5, 12)), before=dice.randint(0, 1), after=dice.randint(0, 3))


def _points(dice: Random, axes: Any) -> Points:
    rows = [[dice.randrange(axis.width) for axis in axes] for _ in range(dice.choice((0, 1, 8, 80)))]
    return Points.from_rows(np.array(rows, dtype=np.uint64).reshape(len(rows), len(axes)), axes=axes)
