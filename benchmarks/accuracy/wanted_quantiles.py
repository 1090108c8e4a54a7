"""One quantile, or nine, of a column and nothing else: rows missed, against peers on the same fresh columns.

    PARTITA_DATA=... python -m benchmarks.accuracy.wanted_quantiles --trials 20
    PARTITA_DATA=... python -m benchmarks.accuracy.wanted_quantiles --trials 10 --families held-out

The second one asks for deciles of the families of `wanted_families`, tuned or held out, in all their domains,
with 1,000 to 100,000 rows.

Peers: today's default release of a column, quantiles of which are read off its counts; AQ, the recursion of
Kaplan, Schnapp and Stemmer with the exponential mechanism and hidden places of rows; OpenDP's
`make_private_quantile` over all cells, where it is installed, for the median only: it takes seconds.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.wanted_families import FAMILY_LISTS, draw_column
from benchmarks.accuracy.work import NoData, column_bounds, column_values, columns
from partita.arrays import Floats, Ints
from partita.public.axis.quantile_plan import plan_levels
from partita.public.results import find_least_cells
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.mechanisms.spending_tree import Intervals
from partita.trusted.secret import Histogram

SIZE, ROWS = 100_000, 10_000
EPSILONS = ("0.1", "1")
SHARES = {"median": [Fraction(1, 2)], "deciles": [Fraction(k, 10) for k in range(1, 10)]}
DRAWS = {"ours": 3, "tree": 1, "aq": 12, "opendp": 1}
"""Releases of each column: errors of a selection vary by as much as they are."""
RAW = ("flights3m.delay", "us_zipcodes.lat", "diamonds.price", "gss_wages.realrinc", "adult.hours-per-week")
"""Columns of raw records that have an order."""

Drawn = np.random.Generator
Release = Callable[[Ints, int, Sequence[Fraction], str, Drawn], Sequence[int]]


# Columns: a fresh one for each trial.
def smooth(drawn: Drawn) -> Ints:
    """Salaries: lognormal."""
    return np.exp(drawn.normal(9.6, 0.6, ROWS)).astype(np.int64)


def bimodal(drawn: Drawn) -> Ints:
    """Two crowds with little between them."""
    low = drawn.random(ROWS) < 0.55
    return np.where(low, drawn.normal(20_000, 4_000, ROWS), drawn.normal(70_000, 6_000, ROWS)).astype(
        np.int64
    )


def heaped(drawn: Drawn) -> Ints:
    """Salaries that seven in ten people round to 500, 1,000 or 5,000."""
    exact, step = smooth(drawn), drawn.choice([1, 500, 1_000, 5_000], ROWS, p=[0.3, 0.2, 0.3, 0.2])
    return np.asarray(np.rint(exact / step).astype(np.int64) * step)


def spikes(drawn: Drawn) -> Ints:
    """Forty odd values, and a tenth of the rows anywhere."""
    places = drawn.integers(0, SIZE, 40)
    chosen = drawn.choice(places, ROWS, p=drawn.dirichlet(np.ones(40)))
    return np.asarray(np.where(drawn.random(ROWS) < 0.1, drawn.integers(0, SIZE, ROWS), chosen))


FAMILIES = {"smooth": smooth, "bimodal": bimodal, "heaped": heaped, "spikes": spikes}


def column(family: str, seed: int) -> tuple[Ints, int]:
    """The values of a column, and the size of its domain; of raw records a fresh sample."""
    drawn = np.random.default_rng([seed, *family.encode()])
    if family in FAMILIES:
        return np.clip(FAMILIES[family](drawn), 0, SIZE - 1), SIZE
    table, _, name = family.partition(".")
    low, high = column_bounds(table, name)
    return drawn.choice(column_values(table, name), ROWS), high - low + 1


# Mechanisms: values in, a cell for each share out.
def ours(
    values: Ints, size: int, shares: Sequence[Fraction], epsilon: str, drawn: Drawn, offset: int = 0
) -> Sequence[int]:
    """The mechanism `quantiles`, which is told the value of the first cell, as `publish` tells it."""
    made = QuantileSelection(size=size, offset=offset, epsilon=epsilon, quantiles=list(shares))
    return [int(cell) for cell in made.release(Histogram.from_cells(values, size=size)).cells]


def tree(values: Ints, size: int, shares: Sequence[Fraction], epsilon: str, drawn: Drawn) -> Sequence[int]:
    """Today's default, which answers every range."""
    released = Intervals(size=size, epsilon=epsilon).release(Histogram.from_cells(values, size=size))
    targets = np.array([float(share) for share in shares]) * released.curve.total
    return [int(cell) for cell in find_least_cells(released.curve.upto, targets, last=size - 1)]


def aq(values: Ints, size: int, shares: Sequence[Fraction], epsilon: str, drawn: Drawn) -> Sequence[int]:
    """The exponential mechanism in each node, equal shares for levels, no copies of cells; in floats."""
    tag, levels = 20, plan_levels(shares)
    rows = np.sort((values << tag) + drawn.integers(0, 1 << tag, values.size))
    cuts = {-1: (0, 0), len(shares): (size << tag, rows.size)}
    for nodes in levels:
        for node in nodes:
            (low, first), (high, stop) = cuts[node.left], cuts[node.right]
            edges = np.concatenate([[low], rows[first:stop], [high]])
            length, part = np.diff(edges).astype(np.float64), float(node.part)
            miss = np.abs(np.arange(stop - first + 1) - part * (stop - first))
            rate = float(epsilon) / len(levels) / (2 * max(part, 1 - part))
            with np.errstate(divide="ignore"):
                run = int(np.argmax(np.log(length) - rate * miss + drawn.gumbel(size=miss.size)))
            place = int(edges[run]) + int(drawn.integers(0, max(1, int(length[run]))))
            cuts[node.number] = place + 1, first + int(np.searchsorted(rows[first:stop], place, "right"))
    return [max(0, cuts[k][0] - 1) >> tag for k in range(len(shares))]


def opendp(values: Ints, size: int, shares: Sequence[Fraction], epsilon: str, drawn: Drawn) -> Sequence[int]:
    """Every quantile among all cells."""
    from benchmarks.peers.opendp import quantile

    candidates = np.arange(size, dtype=np.float64)
    return [
        int(quantile(values.astype(np.float64), float(each), candidates, float(epsilon))) for each in shares
    ]


def peers(question: str) -> dict[str, Release]:
    """Those that can be run here."""
    found: dict[str, Release] = {"tree": tree, "aq": aq}
    if question != "median" or find_spec("opendp") is None:
        return found
    measurements = import_module("opendp.measurements")
    return found | ({"opendp": opendp} if hasattr(measurements, "make_private_quantile") else {})


def missed(values: Ints, cells: Sequence[int], shares: Sequence[Fraction]) -> Floats:
    """Rows between each cell and the rank that was asked for."""
    ordered, found = np.sort(values), np.array(cells)
    ranks = np.array([float(share) for share in shares]) * values.size
    below, upto = (np.searchsorted(ordered, found, side) for side in ("left", "right"))
    return np.asarray(np.maximum(0.0, np.maximum(below - ranks, ranks - upto)))


def families() -> list[str]:
    """All made-up ones, and raw columns where the data are."""
    return [*FAMILIES, *families_there(RAW)]


def cells(plan: Plan) -> Sequence[Cell]:
    grid = product(SHARES, families(), EPSILONS)
    return [partial(cell, plan, question, family, epsilon) for question, family, epsilon in grid]


def cell(plan: Plan, question: str, family: str, epsilon: str) -> Json:
    """The mean rows missed by each, over fresh columns, and the ratio of (error + 1 row) to the best peer."""
    shares, errors = SHARES[question], dict[str, list[float]]()
    for trial, (name, release) in product(range(plan.trials), {"ours": ours, **peers(question)}.items()):
        values, size = column(family, trial)
        drawn = np.random.default_rng([trial, *name.encode()])
        for _ in range(DRAWS[name]):
            miss = missed(values, release(values, size, shares, epsilon, drawn), shares)
            errors.setdefault(name, []).append(float(miss.mean()))
    mean = {name: float(np.mean(each)) for name, each in errors.items()}
    best = min((name for name in mean if name != "ours"), key=mean.__getitem__)
    spread = float(np.std(errors["ours"])) / math.sqrt(len(errors["ours"]))
    return {
        "row": "wanted",
        "question": question,
        "dataset": family,
        "epsilon": epsilon,
        **{f"{name}_rows": short(each) for name, each in mean.items()},
        "ours_spread": short(spread),
        "peer": best,
        "ratio": short((mean["ours"] + 1) / (mean[best] + 1)),
    }


def totals(rows: list[Json]) -> Iterator[Json]:
    """The geometric mean and the largest of the ratios, for each question."""
    for question in SHARES:
        ratios = [float(row["ratio"]) for row in rows if row.get("question") == question]
        if ratios:
            mean = math.exp(float(np.mean(np.log(ratios))))
            yield {"row": "wanted", "question": question, "ratio": short(mean), "worst": short(max(ratios))}


QUANTILES = Row(cells, totals)


# Deciles of families, tuned or held out.
ROW_COUNTS = (1_000, 10_000, 100_000)
FAMILY_DRAWS = {"ours": 2, "tree": 2, "aq": 3}
NAMED: dict[str, Callable[..., Sequence[int]]] = {"ours": ours, "tree": tree, "aq": aq}


def family_cells(trials: int, which: str) -> Sequence[Cell]:
    """Every family of a list in its domains, raw columns where the data are, by rows and epsilon."""
    made, raw = FAMILY_LISTS[which]
    settings = [(name, size) for name, (_, sizes) in made.items() for size in sizes]
    settings += [(name, 0) for name in raw if name in families_there(raw)]
    grid = product(settings, ROW_COUNTS, EPSILONS)
    return [partial(family_cell, trials, *setting, rows, epsilon) for setting, rows, epsilon in grid]


def family_cell(trials: int, family: str, size: int, rows: int, epsilon: str) -> Json:
    """The mean rows that deciles miss over fresh columns, standard errors, and the ratio to the best peer."""
    shares, errors = SHARES["deciles"], dict[str, list[float]]()
    for trial, (name, release) in product(range(trials), NAMED.items()):
        drawn, column = np.random.default_rng([trial, *name.encode()]), draw_column(family, size, rows, trial)
        known = {"offset": column.offset} if name == "ours" else {}
        for _ in range(FAMILY_DRAWS[name]):
            found = release(column.values, column.size, shares, epsilon, drawn, **known)
            errors.setdefault(name, []).append(float(missed(column.values, found, shares).mean()))
    mean = {name: float(np.mean(each)) for name, each in errors.items()}
    best = min(mean["tree"], mean["aq"])
    return {
        "family": family,
        "cells": size,
        "rows": rows,
        "epsilon": epsilon,
        **{name: short(each) for name, each in mean.items()},
        **{
            f"{name}_spread": short(float(np.std(each)) / math.sqrt(len(each)))
            for name, each in errors.items()
        },
        "ratio": short((mean["ours"] + 1) / (best + 1)),
    }


def family_totals(rows: list[Json]) -> Iterator[Json]:
    """Of each family and of all settings: the geometric mean, the largest ratio, how many exceed 1.1."""
    named = {str(row["family"]): [each for each in rows if each["family"] == row["family"]] for row in rows}
    for name, held in (*named.items(), ("all", rows)):
        ratios = [float(row["ratio"]) for row in held]
        mean, above = math.exp(float(np.mean(np.log(ratios)))), sum(ratio > 1.1 for ratio in ratios)
        yield {
            "family": name,
            "ratio": short(mean),
            "worst": short(max(ratios)),
            "above": above,
            "of": len(ratios),
        }


def families_there(raw: Sequence[str]) -> list[str]:
    """The raw columns that can be read here."""
    try:
        known = {f"{table}.{name}" for table, name in columns()}
    except NoData:
        return []
    return [name for name in raw if name in known]


def main() -> None:
    """JSON rows, then totals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--families", choices=list(FAMILY_LISTS))
    given = parser.parse_args()
    which = given.families
    rows: list[Any] = []
    for each in cells(Plan(trials=given.trials)) if which is None else family_cells(given.trials, which):
        rows.append(each())
        print(json.dumps(rows[-1]), flush=True)
    for total in totals(rows) if which is None else family_totals(rows):
        print(json.dumps(total), flush=True)


if __name__ == "__main__":
    main()
