"""Families of columns of which deciles are wanted: those that constants were tuned on, and others held out.

A column is drawn from its family, a domain, a number of rows and a seed. Families of one list were written
down before any of their columns was drawn: those held out were never looked at while something was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from benchmarks.accuracy.work import column_bounds, column_values
from partita.arrays import Ints

Drawn = np.random.Generator
Family = Callable[[Drawn, int, int], Ints]
"""From fresh randomness, a number of rows and the number of cells, the cell of each row."""


class Column(NamedTuple):
    """Cells of the rows, the number of cells, and the value of the first cell."""

    values: Ints
    size: int
    offset: int = 0


def lognormal(drawn: Drawn, rows: int, size: int) -> Ints:
    """Salaries: the median at a fifteenth of the domain."""
    return np.exp(drawn.normal(np.log(size / 15), 0.6, rows)).astype(np.int64)


def crowds(drawn: Drawn, rows: int, size: int) -> Ints:
    """Two crowds with little between them."""
    low = drawn.random(rows) < 0.55
    found = np.where(low, drawn.normal(0.2, 0.04, rows), drawn.normal(0.7, 0.06, rows))
    return (found * size).astype(np.int64)


def rounded(drawn: Drawn, rows: int, size: int) -> Ints:
    """Salaries that seven in ten people round to a two-hundredth, a hundredth or a twentieth."""
    exact, unit = lognormal(drawn, rows, size), max(1, round(size / 200))
    unit = 10 ** (len(str(unit)) - 1) * 5
    step = drawn.choice([1, unit, 2 * unit, 10 * unit], rows, p=[0.3, 0.2, 0.3, 0.2])
    return np.asarray(np.rint(exact / step).astype(np.int64) * step)


def odd_heaps(drawn: Drawn, rows: int, size: int) -> Ints:
    """Forty odd values, and a tenth of the rows anywhere."""
    places = drawn.integers(0, size, 40)
    chosen = drawn.choice(places, rows, p=drawn.dirichlet(np.ones(40)))
    return np.asarray(np.where(drawn.random(rows) < 0.1, drawn.integers(0, size, rows), chosen))


def uniform(drawn: Drawn, rows: int, size: int) -> Ints:
    """Every cell alike."""
    return drawn.integers(0, size, rows)


def pareto(drawn: Drawn, rows: int, size: int) -> Ints:
    """A heavy tail above a thousandth of the domain."""
    return (size / 1000 * (1 + drawn.pareto(1.3, rows))).astype(np.int64)


def many_zeros(drawn: Drawn, rows: int, size: int) -> Ints:
    """Zero in 45 of 100 rows, and a lognormal beside it."""
    return np.where(drawn.random(rows) < 0.45, 0, lognormal(drawn, rows, size))


def lattice(drawn: Drawn, rows: int, size: int) -> Ints:
    """Multiples of 37."""
    return (
        drawn.binomial(size // 37, 0.3, rows) * 37
        if size < 10**6
        else lognormal(drawn, rows, size) // 37 * 37
    )


def clusters(drawn: Drawn, rows: int, size: int) -> Ints:
    """Twenty narrow clusters."""
    places = drawn.integers(0, size, 20)
    return drawn.choice(places, rows) + np.rint(drawn.normal(0, max(1, size / 10_000), rows)).astype(np.int64)


def digits(drawn: Drawn, rows: int, size: int) -> Ints:
    """Values that end in 7 or 3 more often than not."""
    exact = lognormal(drawn, rows, size)
    return np.where(drawn.random(rows) < 0.6, exact // 10 * 10 + drawn.choice([3, 7], rows), exact)


def mixture(drawn: Drawn, rows: int, size: int) -> Ints:
    """A third each: uniform, one odd value, and a normal."""
    kind, odd = drawn.integers(0, 3, rows), int(drawn.integers(0, size))
    normal = (drawn.normal(0.5, 0.05, rows) * size).astype(np.int64)
    return np.where(kind == 0, drawn.integers(0, size, rows), np.where(kind == 1, odd, normal))


def five_values(drawn: Drawn, rows: int, size: int) -> Ints:
    """Five odd values."""
    return drawn.choice(drawn.integers(0, size, 5), rows, p=drawn.dirichlet(np.full(5, 5.0)))


# Held out.
def gamma(drawn: Drawn, rows: int, size: int) -> Ints:
    """A gamma law with a mean of a twentieth of the domain."""
    return (drawn.gamma(2.0, size / 40, rows)).astype(np.int64)


def top_coded(drawn: Drawn, rows: int, size: int) -> Ints:
    """An exponential that is cut off at an odd value, which a fifth of the rows reach."""
    most = int(drawn.integers(size // 3, size // 2))
    return np.minimum(most, drawn.exponential(most / np.log(5), rows)).astype(np.int64)


def prices(drawn: Drawn, rows: int, size: int) -> Ints:
    """Prices, four in five of which end in 99 or 95."""
    exact, ends = lognormal(drawn, rows, size), drawn.choice([99, 95], rows, p=[0.7, 0.3])
    return np.where(drawn.random(rows) < 0.8, exact // 100 * 100 + ends, exact)


def answers(drawn: Drawn, rows: int, size: int) -> Ints:
    """Answers from 1 to 7 in a domain that is much too wide."""
    return 1 + drawn.choice(7, rows, p=drawn.dirichlet(np.full(7, 2.0)))


def small_counts(drawn: Drawn, rows: int, size: int) -> Ints:
    """Numbers of visits: mostly none, or few."""
    return drawn.negative_binomial(0.6, 0.05, rows)


def defaults(drawn: Drawn, rows: int, size: int) -> Ints:
    """Two odd values that a form offers, a quarter of the rows each, and a lognormal."""
    places = drawn.integers(size // 50, size // 5, 2)
    kind = drawn.choice(3, rows, p=[0.25, 0.25, 0.5])
    return np.where(kind < 2, places[np.minimum(kind, 1)], lognormal(drawn, rows, size))


def popular(drawn: Drawn, rows: int, size: int) -> Ints:
    """Codes as popular as in Zipf's law, at odd places."""
    places = drawn.integers(0, size, 300)
    weights = 1 / np.arange(1, 301) ** 1.1
    return drawn.choice(places, rows, p=weights / weights.sum())


def bursts(drawn: Drawn, rows: int, size: int) -> Ints:
    """Times: eight bursts, each over a hundredth of the domain, and a third of the rows anywhere."""
    starts = drawn.integers(0, size, 8)
    burst = drawn.choice(starts, rows) + (drawn.beta(1, 3, rows) * size / 100).astype(np.int64)
    return np.where(drawn.random(rows) < 1 / 3, drawn.integers(0, size, rows), burst)


def dozens(drawn: Drawn, rows: int, size: int) -> Ints:
    """Half of the rows are multiples of twelve."""
    exact = lognormal(drawn, rows, size)
    return np.where(drawn.random(rows) < 0.5, exact // 12 * 12, exact)


def powers(drawn: Drawn, rows: int, size: int) -> Ints:
    """Powers of two, as sizes of memory are, and a few others."""
    most = int(np.log2(size))
    power = 2 ** drawn.binomial(most - 1, 0.6, rows)
    return np.where(drawn.random(rows) < 0.9, power, drawn.integers(0, size, rows))


def balances(drawn: Drawn, rows: int, size: int) -> Ints:
    """Signed values around zero, which a quarter of the rows have exactly; the domain is half below zero."""
    near = np.rint(drawn.standard_t(2, rows) * size / 200).astype(np.int64)
    return np.where(drawn.random(rows) < 0.25, 0, near) + size // 2


SMALL, MIDDLE, LARGE = 10**3, 10**5, 2**32

TUNED: Final[Mapping[str, tuple[Family, tuple[int, ...]]]] = {
    "lognormal": (lognormal, (SMALL, MIDDLE, LARGE)),
    "crowds": (crowds, (SMALL, MIDDLE, LARGE)),
    "rounded": (rounded, (SMALL, MIDDLE, LARGE)),
    "odd heaps": (odd_heaps, (SMALL, MIDDLE, LARGE)),
    "uniform": (uniform, (MIDDLE, LARGE)),
    "pareto": (pareto, (MIDDLE, LARGE)),
    "many zeros": (many_zeros, (MIDDLE, LARGE)),
    "lattice": (lattice, (MIDDLE, LARGE)),
    "clusters": (clusters, (MIDDLE, LARGE)),
    "digits": (digits, (MIDDLE, LARGE)),
    "mixture": (mixture, (MIDDLE, LARGE)),
    "five values": (five_values, (MIDDLE, LARGE)),
}
HELD_OUT: Final[Mapping[str, tuple[Family, tuple[int, ...]]]] = {
    "gamma": (gamma, (SMALL, LARGE)),
    "top-coded": (top_coded, (SMALL, LARGE)),
    "prices": (prices, (MIDDLE, LARGE)),
    "answers": (answers, (SMALL, MIDDLE)),
    "small counts": (small_counts, (SMALL, MIDDLE)),
    "defaults": (defaults, (MIDDLE, LARGE)),
    "popular": (popular, (MIDDLE, LARGE)),
    "bursts": (bursts, (MIDDLE, LARGE)),
    "dozens": (dozens, (SMALL, MIDDLE)),
    "powers": (powers, (MIDDLE, LARGE)),
    "balances": (balances, (MIDDLE, LARGE)),
}
TUNED_RAW = (
    "flights3m.delay",
    "us_zipcodes.lat",
    "diamonds.price",
    "gss_wages.realrinc",
    "adult.hours-per-week",
)
HELD_OUT_RAW = (
    "flights3m.distance",
    "us_zipcodes.lon",
    "diamonds.carat",
    "diamonds.table",
    "gss_wages.prestige",
    "gss_wages.year",
    "adult.fnlwgt",
    "adult.capital-gain",
    "flights3m.minute",
)
"""Columns of raw records; of minutes, the domain is 2^20 cells."""

FAMILY_LISTS: Final = {"tuned": (TUNED, TUNED_RAW), "held-out": (HELD_OUT, HELD_OUT_RAW)}


def draw_column(family: str, size: int, rows: int, seed: int) -> Column:
    """A fresh column of a family, or a sample of a raw column."""
    drawn = np.random.default_rng([seed, rows, *f"{family}@{size}".encode()])
    if "." in family:
        table, _, name = family.partition(".")
        low, high = column_bounds(table, name)
        return Column(drawn.choice(column_values(table, name), rows), high - low + 1, low)
    made, _ = {**TUNED, **HELD_OUT}[family]
    return Column(
        np.clip(made(drawn, rows, size), 0, size - 1), size, -(size // 2) if made is balances else 0
    )
