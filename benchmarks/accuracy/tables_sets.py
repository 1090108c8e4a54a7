"""Tables of coded rows for whole-table releases: Adult, made-up surveys, made-up trips.

`TUNED` are the sets on which constants may be chosen. `HELD_OUT` are run after all constants are fixed, and
nothing is changed after looking at them. Made-up rows come from fixed seeds: they are the same in every run.

Columns hold codes 0, ..., size - 1. Adult is used as its file has it: the bins of the authors of private-pgm,
all 14 columns, sizes from the public bounds of the index. An ordered column is declared as `Integer`, any
other one as a `Category` whose labels are the digits of its codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

import partita as pt
from benchmarks.accuracy.queries import Ints
from benchmarks.accuracy.work import column_bounds, column_values, index
from benchmarks.peers.tables import Subset
from partita.arrays import Floats
from partita.domain.base import Domain

Generator = np.random.Generator

TRIPLES = 25
"""How many tables over three columns are judged, drawn once for each number of columns."""

LOAD = 3.0
"""How much traits weigh against chance. Independence then errs by .029 on survey-24, .050 on survey-20 (mean
total variation of pairs; .055 on survey-16, .074 on Adult). With a first version it was .010: too easy."""

ADULT_ORDERED = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Coded rows and what is public about their columns."""

    name: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    rows: Ints

    @property
    def schema(self) -> dict[str, Domain]:
        """What a steward declares."""
        kinds = zip(self.columns, self.sizes, self.ordered, strict=True)
        return {name: declare(size, is_ordered) for name, size, is_ordered in kinds}

    @property
    def source(self) -> dict[str, Ints]:
        """The rows, as `publish` takes them."""
        return dict(zip(self.columns, self.rows.T, strict=True))

    @property
    def pairs(self) -> list[Subset]:
        """Every two columns."""
        return list(combinations(range(len(self.columns)), 2))

    @property
    def triples(self) -> list[Subset]:
        """Some columns, three at a time; the same in every run."""
        every = list(combinations(range(len(self.columns)), 3))
        drawn = np.random.default_rng(0).choice(len(every), min(TRIPLES, len(every)), replace=False)
        return [every[number] for number in sorted(drawn.tolist())]

    def part(self, *columns: str) -> Table:
        """The same rows with some of their columns."""
        places = [self.columns.index(column) for column in columns]
        return Table(
            name=f"{self.name}: {', '.join(columns)}",
            columns=columns,
            sizes=tuple(self.sizes[place] for place in places),
            ordered=tuple(self.ordered[place] for place in places),
            rows=self.rows[:, places],
        )


def declare(size: int, ordered: bool) -> Domain:
    """A domain of codes."""
    return pt.Integer(0, size - 1) if ordered else pt.Category([str(code) for code in range(size)])


@cache
def adult() -> Table:
    """48,842 rows and 14 columns of the folder in PARTITA_DATA."""
    columns = tuple(next(entry for entry in index() if entry["name"] == "adult")["columns"])
    bounds = [column_bounds("adult", column) for column in columns]
    return Table(
        name="adult",
        columns=columns,
        sizes=tuple(high - low + 1 for low, high in bounds),
        ordered=tuple(column in ADULT_ORDERED for column in columns),
        rows=np.stack([column_values("adult", column) for column in columns], axis=1),
    )


def draw_classes(name: str, sizes: tuple[int, ...], n: int, classes: int, seed: int) -> Table:
    """Latent classes: within a class the columns are independent, each with its own shares."""
    rng = np.random.default_rng(seed)
    members = rng.choice(classes, n, p=rng.dirichlet(np.full(classes, 2.0)))
    shares = [rng.dirichlet(np.full(size, 0.7), classes) for size in sizes]
    rows = np.stack([draw_labels(each[members], rng) for each in shares], axis=1)
    return make_survey(name, sizes, (False,) * len(sizes), rows)


def draw_traits(name: str, sizes: tuple[int, ...], n: int, traits: int, seed: int) -> Table:
    """Latent traits: each answer is a rising function of about two normal traits and chance, cut in levels.

    Every fourth column is a label without order: its levels are renamed.
    """
    rng = np.random.default_rng(seed)
    people = rng.normal(size=(n, traits))
    weights = LOAD * np.abs(rng.normal(size=(traits, len(sizes))))
    loads = weights * (rng.random((traits, len(sizes))) < 2 / traits)
    levels = [
        cut_levels(people @ loads[:, number] + rng.logistic(size=n), size, rng)
        for number, size in enumerate(sizes)
    ]
    ordered = tuple(number % 4 != 3 for number in range(len(sizes)))
    codes = [
        level if is_ordered else rng.permutation(size)[level]
        for level, size, is_ordered in zip(levels, sizes, ordered, strict=True)
    ]
    return make_survey(name, sizes, ordered, np.stack(codes, axis=1))


def draw_labels(shares: Floats, rng: Generator) -> Ints:
    """One label for each row of shares."""
    return np.asarray((shares.cumsum(axis=1) < rng.random((len(shares), 1))).sum(axis=1), np.int64).clip(
        0, shares.shape[1] - 1
    )


def cut_levels(scores: Floats, size: int, rng: Generator) -> Ints:
    """Scores as levels of uneven sizes; a rare yes is as common as in questions about daily life."""
    shares = rng.dirichlet(np.full(size, 2.0)).cumsum()[:-1]
    return np.searchsorted(np.quantile(scores, shares), scores).astype(np.int64)


def make_survey(name: str, sizes: tuple[int, ...], ordered: tuple[bool, ...], rows: Ints) -> Table:
    columns = tuple(f"q{number}" for number in range(len(sizes)))
    return Table(name=name, columns=columns, sizes=sizes, ordered=ordered, rows=rows)


@dataclass(frozen=True, kw_only=True)
class Trips:
    """Made-up trips: a day, a place with no order and sizes by Zipf's law, minutes of delay.

    A place has its own season and its own usual delay; a few days are bad for everyone.
    """

    name: str
    n: int
    days: int
    places: int
    delays: int
    zipf: float
    seed: int

    def draw(self) -> Table:
        """The rows."""
        rng = np.random.default_rng(self.seed)
        sizes = rng.permutation(np.arange(1, self.places + 1) ** -self.zipf)
        place = rng.choice(self.places, self.n, p=sizes / sizes.sum())
        day = self._days(place, rng)
        return Table(
            name=self.name,
            columns=("day", "dest", "delay"),
            sizes=(self.days, self.places, self.delays),
            ordered=(True, False, True),
            rows=np.stack([day, place, self._delays(day, place, rng)], axis=1),
        )

    def _days(self, place: Ints, rng: Generator) -> Ints:
        """Fewer trips at weekends, and a season for each place."""
        season, week = rng.random(self.places), np.where(np.arange(self.days) % 7 < 5, 1.0, 0.6)
        tries = rng.integers(0, self.days, (4, self.n))
        wave = 1 + 0.8 * np.sin(2 * np.pi * (tries / 365 + season[place]))
        first = np.argmax(rng.random(tries.shape) * 1.8 < wave * week[tries], axis=0)
        return np.asarray(tries[first, np.arange(self.n)])

    def _delays(self, day: Ints, place: Ints, rng: Generator) -> Ints:
        """Minutes: mostly small, long tails, longer on bad days; thirty of them may be early."""
        bad = np.where(rng.random(self.days) < 0.05, 3.0, 1.0) * rng.gamma(4, 0.25, self.days)
        usual = rng.gamma(3, 5, self.places)
        late = rng.lognormal(0, 1.2, self.n) * usual[place] * bad[day] + rng.normal(0, 8, self.n)
        return np.asarray(np.clip(np.rint(late) + 30, 0, self.delays - 1), dtype=np.int64)


SMALL_TRIPS = Trips(name="trips-200k", n=200_000, days=365, places=320, delays=2_000, zipf=1.0, seed=11)
LARGE_TRIPS = Trips(name="trips-1m", n=10**6, days=730, places=500, delays=4_000, zipf=1.3, seed=12)

MIXED_SIZES = (2, 5, 2, 4, 3, 2, 7, 5, 2, 2, 5, 6, 2, 3, 2, 4, 2, 5, 2, 8)
"""Answers to the questions of a survey: yes or no, scales of five, a few labels."""

TUNED: dict[str, Callable[[], Table]] = {
    "adult": adult,
    "survey-16": cache(lambda: draw_classes("survey-16", (2,) * 16, 21_000, 6, seed=1)),
    "trips-200k": cache(SMALL_TRIPS.draw),
}
HELD_OUT: dict[str, Callable[[], Table]] = {
    "survey-24": cache(lambda: draw_traits("survey-24", (2,) * 24, 30_000, 4, seed=2)),
    "survey-20": cache(lambda: draw_traits("survey-20", MIXED_SIZES, 40_000, 5, seed=3)),
    "trips-1m": cache(LARGE_TRIPS.draw),
}
SETS = TUNED | HELD_OUT
WIDE = ("adult", "survey-16", "survey-24", "survey-20")
"""The sets of many columns."""


def is_held_out(name: str) -> bool:
    return name in HELD_OUT
