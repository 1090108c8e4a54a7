"""Made-up families of tables for intervals: two halves that were fixed before either was looked at.

Constants may be chosen on `CHOSEN`; `HELD_OUT` is run afterwards, and nothing is changed after that. Half of
each are a category beside one ordered column with heaps: viewed boxes. The others have eight columns or more:
a model of views and pairs. Rows come from fixed seeds, and are the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from benchmarks.accuracy.queries import Ints
from benchmarks.accuracy.tables_sets import Table, draw_classes, draw_traits
from partita.arrays import Floats

Generator = np.random.Generator
Columns = dict[str, tuple[Ints, int, bool]]
"""For each column its codes, how many cells it has, and whether they are ordered."""


def make_table(name: str, columns: Columns) -> Table:
    """A table of columns, with codes beyond the last cell in that cell."""
    return Table(
        name=name,
        columns=tuple(columns),
        sizes=tuple(size for _, size, _ in columns.values()),
        ordered=tuple(is_ordered for _, _, is_ordered in columns.values()),
        rows=np.stack([np.clip(codes, 0, size - 1) for codes, size, _ in columns.values()], axis=1),
    )


def draw_zipf(rng: Generator, n: int, labels: int, power: float) -> Ints:
    """Labels whose sizes fall by a power, in no order."""
    shares = rng.permutation(np.arange(1.0, labels + 1) ** -power)
    return rng.choice(labels, n, p=shares / shares.sum()).astype(np.int64)


def draw_sparse(rng: Generator, n: int, zeros: Floats | float, values: Floats) -> Ints:
    """Values in whole numbers, of which a share of the rows has zero instead."""
    return np.where(rng.random(n) < zeros, 0, np.rint(values)).astype(np.int64)


def faults() -> Table:
    """Minutes of a day that machines stood still: 98% never, by plant."""
    rng, n = np.random.default_rng(301), 40_000
    plant = draw_zipf(rng, n, 25, 1.0)
    usual = rng.gamma(2.0, 60.0, 25)
    minutes = draw_sparse(rng, n, 0.98, 1 + rng.exponential(usual[plant]))
    return make_table("faults", {"plant": (plant, 25, False), "minutes": (minutes, 1_440, True)})


def fees() -> Table:
    """Fees of a bank: mostly none, else 25, 50, 100 and few others, by branch."""
    rng, n = np.random.default_rng(302), 30_000
    branch = draw_zipf(rng, n, 12, 0.6)
    listed = rng.choice(np.array([25, 50, 100, 250]), n, p=[0.5, 0.25, 0.15, 0.1])
    other = rng.lognormal(4.0 + branch / 12, 0.9, n)
    fee = draw_sparse(rng, n, 0.6, np.where(rng.random(n) < 0.7, listed, other))
    return make_table("fees", {"branch": (branch, 12, False), "fee": (fee, 5_001, True)})


def waits() -> Table:
    """Minutes that patients waited, recorded up to 600, by clinic."""
    rng, n = np.random.default_rng(303), 25_000
    clinic = draw_zipf(rng, n, 60, 0.9)
    minutes = np.rint(rng.gamma(1.5, rng.gamma(3.0, 60.0, 60)[clinic])).astype(np.int64)
    return make_table("waits", {"clinic": (clinic, 60, False), "minutes": (minutes, 601, True)})


def doses() -> Table:
    """Micrograms of a drug: none for a third, heaps at what tablets have, by ward."""
    rng, n = np.random.default_rng(304), 20_000
    ward = draw_zipf(rng, n, 8, 0.3)
    tablets = rng.choice(np.array([500, 1_000, 2_500, 10_000]), n) * (1 + rng.binomial(3, (ward + 1) / 12))
    dose = draw_sparse(rng, n, 0.3, np.where(rng.random(n) < 0.8, tablets, rng.uniform(1, 60_000, n)))
    return make_table("doses", {"ward": (ward, 8, False), "dose": (dose, 100_001, True)})


def strikes() -> Table:
    """Days of a year lost in strikes: none for 96%, by depot."""
    rng, n = np.random.default_rng(401), 30_000
    depot = draw_zipf(rng, n, 40, 0.8)
    days = draw_sparse(rng, n, 0.96, 1 + rng.gamma(1.2, rng.gamma(2.0, 8.0, 40)[depot]))
    return make_table("strikes", {"depot": (depot, 40, False), "days": (days, 366, True)})


def tips() -> Table:
    """Tips in cents: none for more than half, whole notes for many, by route."""
    rng, n = np.random.default_rng(402), 50_000
    route = draw_zipf(rng, n, 15, 0.7)
    notes = 100 * rng.choice(np.array([1, 2, 3, 5, 10, 20]), n, p=[0.3, 0.3, 0.15, 0.15, 0.07, 0.03])
    cents = draw_sparse(rng, n, 0.55, np.where(rng.random(n) < 0.6, notes, rng.lognormal(5.5, 0.7, n)))
    return make_table("tips", {"route": (route, 15, False), "cents": (cents, 20_001, True)})


def tenure() -> Table:
    """Months in a job, of which many say whole years, by office."""
    rng, n = np.random.default_rng(403), 20_000
    office = draw_zipf(rng, n, 100, 1.1)
    months = np.rint(rng.gamma(1.3, rng.gamma(4.0, 15.0, 100)[office])).astype(np.int64)
    months = np.where(rng.random(n) < 0.5, months // 12 * 12, months)
    return make_table("tenure", {"office": (office, 100, False), "months": (months, 481, True)})


def rain() -> Table:
    """Rain of a day in tenths of a millimetre: none on 80% of the days, by station."""
    rng, n = np.random.default_rng(404), 36_000
    station = draw_zipf(rng, n, 30, 0.2)
    wet = rng.gamma(0.8, rng.gamma(3.0, 25.0, 30)[station])
    tenths = draw_sparse(rng, n, 0.7 + 0.2 * rng.random(30)[station], 1 + wet)
    return make_table("rain", {"station": (station, 30, False), "tenths": (tenths, 3_001, True)})


def shop() -> Table:
    """Baskets: nine columns of a till, some mostly zero, some that follow from others."""
    rng, n = np.random.default_rng(305), 45_000
    kind = draw_zipf(rng, n, 60, 1.0)
    hour = np.rint(rng.normal(13 + kind % 5, 3.0, n)).astype(np.int64)
    age = np.rint(rng.normal(35 + kind % 7 * 4, 14.0, n)).astype(np.int64) - 15
    items = rng.geometric(1 / (2 + kind % 3 * 2)).astype(np.int64) - 1
    spent = np.rint(items * rng.lognormal(2.0, 0.6, n)).astype(np.int64)
    member = (rng.random(n) < 0.2 + 0.006 * age).astype(np.int64)
    points = np.where(member == 1, spent // 5, 0)
    returned = draw_sparse(rng, n, 0.95, 1 + rng.exponential(spent / 4 + 1))
    columns: Columns = {"kind": (kind, 60, False), "hour": (hour, 24, True), "age": (age, 80, True)}
    columns |= {"items": (items, 30, True), "spent": (spent, 1_000, True), "member": (member, 2, False)}
    columns |= {"points": (points, 200, True), "returned": (returned, 400, True)}
    return make_table("shop", columns | {"day": (rng.integers(0, 7, n), 7, False)})


def loose(name: str, seed: int, sizes: tuple[int, ...], n: int, link: float, zeros: float) -> Table:
    """Columns that hardly depend on each other, every third of them mostly zero."""
    rng = np.random.default_rng(seed)
    common, columns = rng.normal(size=n), Columns()
    for number, size in enumerate(sizes):
        scores = link * common + rng.normal(size=n)
        levels = np.searchsorted(np.quantile(scores, rng.dirichlet(np.full(size, 3.0)).cumsum()[:-1]), scores)
        codes = np.where(rng.random(n) < (zeros if number % 3 == 0 else 0.0), 0, levels).astype(np.int64)
        columns[f"c{number}"] = codes, size, number % 4 != 3
    return make_table(name, columns)


def visits() -> Table:
    """Hospital visits: ten columns, of which diagnosis tells ward, and ward and age tell days and cost."""
    rng, n = np.random.default_rng(405), 35_000
    diagnosis = draw_zipf(rng, n, 150, 1.1)
    ward = rng.integers(0, 12, 150)[diagnosis]
    age = np.rint(rng.normal(30 + 4 * ward, 15.0, n)).astype(np.int64)
    days = draw_sparse(rng, n, 0.4, 1 + rng.gamma(1.0, 1 + ward + np.clip(age, 0, 99) / 20))
    cost = np.rint((1 + days) * rng.lognormal(5.0 + ward / 12, 0.5, n) / 10).astype(np.int64)
    urgent = (rng.random(n) < 0.15 + 0.05 * (ward % 4)).astype(np.int64)
    copay = draw_sparse(rng, n, 0.9, cost / 20)
    columns: Columns = {
        "diagnosis": (diagnosis, 150, False),
        "ward": (ward, 12, False),
        "age": (age, 100, True),
    }
    columns |= {"days": (days, 90, True), "cost": (cost, 2_000, True), "urgent": (urgent, 2, False)}
    columns |= {"copay": (copay, 150, True), "month": (rng.integers(0, 12, n), 12, True)}
    columns |= {"insurer": (draw_zipf(rng, n, 9, 0.8), 9, False)}
    return make_table("visits", columns | {"sex": (rng.integers(0, 2, n), 2, False)})


MIXED = (3, 2, 6, 4, 2, 9, 2, 3, 12, 2, 5, 2, 4, 2, 7, 3, 2, 20)
SMALL = (2, 3, 2, 2, 4, 2, 5, 2, 3, 2, 2, 6, 2, 2)

CHOSEN: dict[str, Callable[[], Table]] = {
    "faults": cache(faults),
    "fees": cache(fees),
    "waits": cache(waits),
    "doses": cache(doses),
    "shop": cache(shop),
    "panel-18": cache(partial(draw_traits, "panel-18", MIXED, 28_000, 4, seed=306)),
    "loose-8": cache(partial(loose, "loose-8", 307, (30, 8, 12, 4, 50, 6, 20, 3), 40_000, 0.2, 0.9)),
    "classes-14": cache(partial(draw_classes, "classes-14", SMALL, 24_000, 5, seed=308)),
}
HELD_OUT: dict[str, Callable[[], Table]] = {
    "strikes": cache(strikes),
    "tips": cache(tips),
    "tenure": cache(tenure),
    "rain": cache(rain),
    "visits": cache(visits),
    "panel-14": cache(partial(draw_traits, "panel-14", SMALL, 32_000, 3, seed=406)),
    "loose-9": cache(partial(loose, "loose-9", 407, (16, 40, 5, 9, 25, 3, 60, 7, 10), 30_000, 0.25, 0.95)),
    "classes-18": cache(partial(draw_classes, "classes-18", MIXED, 26_000, 6, seed=408)),
}
FAMILIES = CHOSEN | HELD_OUT
