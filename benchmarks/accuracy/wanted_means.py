"""Means by group, against a clamp that was tuned in hindsight, with epsilon halved between sum and count.

`python -m benchmarks.accuracy.wanted_means --trials 20` prints a row for each cell and the totals.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json
from benchmarks.accuracy.table import table
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.secret import Points

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROWS = {40: 20_000, 300: 60_000, 2000: 200_000}
"""The number of rows for each number of groups."""
EPSILONS = ("1", "1/10")
CLAMP_EDGES = 14  # on each side of a hindsight clamp: quantiles of the whole column
CLAMP_DRAWS = 20  # of noise for each clamp that is tried


@dataclass(frozen=True)
class Family:
    """Values of a column: their declared bounds, and how they are drawn where each group has an effect.

    The effect is a standard normal number for each row, the same for all rows of a group. `tuned` says that
    the constants of the mechanism were looked at on this family; the others were held out.
    """

    low: int
    high: int
    draw: Callable[[np.random.Generator, Floats], Floats]
    tuned: bool = False

    @property
    def domain(self) -> Integer:
        return Integer(self.low, self.high)


FAMILIES = {
    "exponential": Family(0, 2**31, lambda r, e: 1000 * np.exp(0.3 * e) * r.exponential(1, e.size), True),
    "delays": Family(
        -1440,
        2880,
        lambda r, e: np.where(
            r.random(e.size) < 0.75, r.normal(-6 + 2 * e, 10), r.exponential(45 * np.exp(0.3 * e))
        ),
        True,
    ),
    "uniform": Family(0, 100, lambda r, e: r.uniform(0, np.clip(80 + 10 * e, 40, 100)), True),
    "band": Family(0, 2**40, lambda r, e: 5e7 + 30_000 * np.exp(0.3 * e) * r.gamma(2.0, size=e.size), True),
    "normal": Family(0, 10**6, lambda r, e: r.normal(500 + 40 * e, 120)),
    "lognormal": Family(0, 2**31, lambda r, e: np.exp(r.normal(6 + 0.3 * e, 1.0))),
    "pareto": Family(0, 2**31, lambda r, e: 200 * np.exp(0.3 * e) * (1 + r.pareto(2.0, e.size))),
    "shifted": Family(0, 2**31, lambda r, e: r.normal(10**6 + 100 * e, 300)),
    "temperatures": Family(
        0, 1000, lambda r, e: r.normal(368 + e, 4) + np.where(r.random(e.size) < 0.1, r.exponential(8), 0.0)
    ),
    "years": Family(0, 3000, lambda r, e: 1900 + 130 * r.beta(np.exp(1.6 + 0.2 * e), 2.0)),
    "signed": Family(-(10**9), 10**9, lambda r, e: 500 * r.standard_t(2.5, e.size) + 150 * e),
}


class Column(NamedTuple):
    """The group and the value of each row, and the true means of all groups."""

    groups: Ints
    values: Ints
    sizes: Ints
    means: Floats


def draw_column(family: Family, groups: int, seed: int) -> Column:
    """Groups of sizes that fall like 1 / sqrt(rank), and values within the bounds."""
    rng = np.random.default_rng([seed, groups])
    shares = 1 / np.sqrt(np.arange(1, groups + 1))
    places = rng.choice(groups, ROWS[groups], p=shares / shares.sum())
    values = family.draw(rng, rng.normal(size=groups)[places])
    whole = np.clip(np.rint(values), family.low, family.high).astype(np.int64)
    sizes = np.bincount(places, minlength=groups)
    return Column(places, whole, sizes, np.bincount(places, whole, groups) / np.maximum(sizes, 1))


def cells(plan: Plan) -> Sequence[Cell]:
    work = product(FAMILIES, ROWS, EPSILONS)
    return [partial(group_means, name, groups, epsilon, plan.trials) for name, groups, epsilon in work]


def group_means(name: str, groups: int, epsilon: str, trials: int) -> Json:
    """RMSE of all groups that are determinable over those of clamps, coverage, and width over RMSE."""
    family = FAMILIES[name]
    mechanism = GroupMeans(keys=[Axis(size=groups)], value=family.domain, epsilon=epsilon)
    ours: list[Floats] = []
    peers: list[Floats] = []
    covered: list[Floats] = []
    widths: list[Floats] = []
    for seed in range(trials):
        column = draw_column(family, groups, seed)
        points = Points.from_rows(
            np.stack([column.groups, column.values - family.low + 1], axis=1),
            axes=[Axis(size=groups), Axis.of(family.domain)],
        )
        release = mechanism.release(points)
        answers = [release.mean([BoxTerm((group,), (group,))]) for group in range(groups)]
        told = np.array([each.determinable for each in answers])
        lows, highs = np.array([each.interval() for each in answers]).T[:, told]
        truth = column.means[told]
        ours.append((np.array([each.value for each in answers])[told] - truth) ** 2)
        covered.append((lows <= truth) & (truth <= highs))
        widths.append(highs - lows)
        peers.append(clamp_errors(column, float(mechanism.epsilon), np.random.default_rng(seed))[:, told])
    rmse = float(np.sqrt(np.concatenate(ours).mean()))
    plain, clipped = np.sqrt(np.concatenate(peers, axis=1).mean(axis=1)).tolist()
    return {
        "row": "wanted means",
        "set": name,
        "tuned": family.tuned,
        "groups": groups,
        "epsilon": epsilon,
        "rmse": rmse,
        "ratio_plain": rmse / plain,
        "ratio": rmse / clipped,
        "coverage": float(np.concatenate(covered).mean()),
        "width": float(np.concatenate(widths).mean()) / rmse,
        "told": sum(each.size for each in covered) / (groups * trials),
    }


def clamp_errors(column: Column, epsilon: float, rng: np.random.Generator) -> Floats:
    """The mean squared error of every group for the clamp that has the least over all groups, in two ways.

    Half of epsilon is for clamped sums, whose sensitivity is the larger end, and half for counts. The clamp
    is found by trying all pairs of quantiles of the true values: nobody could know it beforehand. The first
    row is for plain quotients, the second for quotients that are clipped to the clamp, which is then known to
    hold the answer.
    """
    shares = np.concatenate([[0.0], np.geomspace(1e-4, 0.4, CLAMP_EDGES - 1)])
    lows, highs = np.quantile(column.values, shares), np.quantile(column.values, 1 - shares)
    number, noise = column.sizes.size, rng.laplace(0, 2 / epsilon, (2, CLAMP_DRAWS, column.sizes.size))
    counts = np.maximum(column.sizes + noise[0], 1.0)
    best = np.full((2, number), np.inf)
    for low, high in product({0.0, *lows.tolist()}, highs.tolist()):
        if low > high:
            continue
        sums = np.bincount(column.groups, np.clip(column.values, low, high), number)
        plain = (sums + max(abs(low), abs(high)) * noise[1]) / counts
        for way, found in enumerate((plain, np.clip(plain, low, high))):
            errors = ((found - column.means) ** 2).mean(axis=0)
            if errors.mean() < best[way].mean():
                best[way] = errors
    return best


def summary(rows: list[Json]) -> Iterator[Json]:
    """Every cell, then the worst figures of families that were looked at and of those held out."""
    yield from ({**row, "total": "cell"} for row in rows)
    for tuned, named in ((True, "looked at"), (False, "held out")):
        chosen = [row for row in rows if row["tuned"] is tuned]
        for name, worst in (("ratio_plain", max), ("ratio", max), ("coverage", min), ("width", max)):
            if chosen:
                total, figure = f"{named}: worst {name}", worst(row[name] for row in chosen)
                yield {"row": "wanted means", "total": total, "figure": figure}


WANTED_MEANS = Row(cells, summary)


def main() -> None:
    """Measure all cells, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--sets", nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    chosen = [cell for cell in cells(Plan(trials=options.trials)) if _set_of(cell) in options.sets]
    rows = []
    for cell in chosen:
        rows.append(cell())
        print(json.dumps(rows[-1]), flush=True)
    print(table(list(summary(rows))))


def _set_of(cell: Cell) -> str:
    return str(cell.args[0]) if isinstance(cell, partial) else ""


if __name__ == "__main__":
    main()
