"""Enumeration cases of the mechanisms over one axis."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any, Final

import partita as pt
from partita.audit.base.case import Case, Depth, step
from partita.audit.base.universes import Counts, histogram
from partita.audit.laws.worlds import EVERYBODY, HALF, World, coupled_cases, law_cases, law_loss
from partita.testing.laws.loss import privacy_loss
from partita.testing.laws.rational import OutputLaw, RationalNoise, law
from partita.trusted.noise.hazard.hazard import Law

_ROWS: Final = {"Intervals": (0, 1, 3), "SpendingTree": (0, 2, 4), "PartitionTents": (0, 2, 4)}
"""How many rows others have, where that is not as usual: these take milliseconds a pair."""

_MANY: Final = (700, 0, 250, 90)
"""A crowd for which the default grows a tree."""

_QUERIES: Final = ([1, "1/2", 0], [0, -1, "2/3"], [1, 1, 1])


def axis_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism over one axis by coupling, the flat ones and the partition by law too."""
    for world in _worlds():
        yield from coupled_cases(world, depth, more)
    for world, window in _law_worlds():
        yield from law_cases(world, depth, window=window)
    yield from _partition_cases(depth, more)


def _worlds() -> Iterator[World]:
    names = ("HistogramCounts", "Laplace", "Thresholds", "Tree", "Tents", "PaperIntervals", *_ROWS)
    for name in names:
        yield _world(name, 4, _ROWS.get(name, (1, 2, 4)))
    yield _world("Tree", 5, (0, 1, 2), branching=3)
    yield _world("Tents", 7, (0, 1, 2))
    yield _world("PartitionTents", 4, (0, 0, 2), total=10**5)
    yield _world("SpendingTree", 5, (0, 1, 2), total=40, branching=2, worth=8, growth=4)
    yield _world("Intervals", 4, (0, 0, 2), crowd=_MANY)
    yield World(
        mechanism="LinearQueries",
        about="3 queries over 3 cells",
        make=lambda **protected: pt.LinearQueries(queries=_QUERIES, epsilon=1, **protected),
        data=histogram,
        cells=3,
        rows=(1, 2, 5),
    )


def _world(
    name: str,
    size: int,
    rows: tuple[int, int, int],
    *,
    crowd: Counts | None = None,
    protected: tuple[Any, ...] = EVERYBODY,
    **options: Any,
) -> World:
    """A mechanism over `size` cells, at epsilon 1."""
    told = "".join(f", {option} {value}" for option, value in options.items())

    def make(**who: Any) -> Any:
        return getattr(pt, name)(size=size, epsilon=1, **options, **who)

    return World(
        mechanism=name,
        about=f"{size} cells{told}" + (f", {sum(crowd)} more rows" if crowd else ""),
        make=make,
        data=histogram,
        cells=size,
        rows=rows,
        protected=protected,
        crowd=crowd,
    )


def _law_worlds() -> Iterator[tuple[World, range]]:
    few = EVERYBODY[:2]
    for name, rows in (("HistogramCounts", (1, 2, 4)), ("Thresholds", (1, 2, 4)), ("Laplace", (0, 0, 1))):
        yield _world(name, 2, rows, protected=few), range(max(rows) + 2)
    yield _world("Tents", 2, (0, 1, 2), protected=few), range(-2, 6)
    yield _world("Tree", 2, (0, 1, 2), protected=few), range(4)
    yield _world("HistogramCounts", 3, (0, 0, 2), protected=few), range(4)


def _partition_cases(depth: Depth, more: int) -> Iterator[Case]:
    """The partition by law: thresholds, laws, four cells; a row that comes, one that moves, two at once."""
    laws: tuple[tuple[Law, tuple[int, ...]], ...] = (("geometric", (0, 1, 3)), ("laplace", (0, 2)))
    for kind, thresholds in laws:
        for threshold in thresholds[: step(depth, 1, 2, 3)]:
            for protected in EVERYBODY:
                partition = pt.Partition(size=4, epsilon=1, law=kind, threshold=threshold, **protected)
                yield _partition_case(partition, depth, more, protected)
    whole = pt.Partition(size=3, epsilon=1, threshold=0)
    world = _world("Partition", 3, (1, 2, 3))
    yield Case(
        mechanism="Partition",
        about="3 cells, all cuts of one run; a row comes or goes",
        way="law",
        epsilon=whole.epsilon,
        pairs=lambda: world.pairs(depth, more, {}),
        loss=law_loss(world.run(whole), RationalNoise(HALF, unit=1 / whole.scale)),
    )


def _partition_case(partition: pt.Partition, depth: Depth, more: int, protected: Any) -> Case:
    laws = _Cuts(partition)
    world = _world("Partition", 4, (0, 1, 3) if partition.law == "laplace" else (1, 2, 4))
    return Case(
        mechanism="Partition",
        about=f"4 cells, {partition.law} noise, threshold {partition.threshold};"
        + world.said(protected).split(";")[1],
        way="law",
        epsilon=partition.epsilon,
        pairs=lambda: world.pairs(depth, more, protected),
        loss=lambda one, other: privacy_loss(laws.of(one), laws.of(other), base=HALF, unit=laws.unit),
    )


class _Cuts:
    """The law of a cut, put together from the laws of single segments, each enumerated once.

    A seal leaves nothing behind but its position, so the law of what follows is that of the cells after it.
    """

    def __init__(self, partition: pt.Partition) -> None:
        self._partition = partition
        self.unit = 1 / partition.scale
        self.of = cache(self._law)

    def _law(self, counts: Counts) -> OutputLaw:
        if not counts:
            return OutputLaw({(): Fraction(1)})
        found = OutputLaw()
        first: Any = self._first(counts)
        for length, chance in first.items():
            rest: Any = self.of(counts[length:])
            found |= {(length, *lengths): chance * mass for lengths, mass in rest.items()}
        return found

    def _first(self, counts: Counts) -> OutputLaw:
        """The law of the length of the segment that opens the last len(counts) cells."""
        size = self._partition.size
        start = size - len(counts)
        items = [(start + cell, count) for cell, count in enumerate(counts) if count]
        return law(
            lambda noise: self._partition._segment(start, items, size - 1, noise) - start + 1,
            RationalNoise(HALF, unit=self.unit),
        )
