"""A bound on rows per person that is chosen privately, against the best fixed one in hindsight, 1 and 128.

`python -m benchmarks.accuracy.contributions` prints the error of a total for each law of rows per person, and
the totals of both halves of the laws; with `--tune` how shares, cautions and other selections do on each.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import partita as pt
from benchmarks.accuracy.table import aligned
from partita.public.contributions import USUAL, AutoContributions
from partita.publish.request import Request
from partita.trusted.mechanisms import contributions as shipped
from partita.trusted.mechanisms.contributions import BoundSelection

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Select = Callable[[Floats, Floats, float], Floats]

PERSONS = (300, 3_000, 30_000, 300_000)
EPSILONS = ("3/10", "1", "3")
SCHEMA = {"hour": pt.Integer(0, 23)}
ASKED = {"by": ["hour"], "person": "id"}
HALVES = ("tuned on", "held out")
BIG = 128  # a fixed bound that somebody may write down to be on the safe side


@dataclass(frozen=True)
class Law:
    """How many rows each of so many persons has. `tuned` says that the constants were chosen on it."""

    draw: Callable[[np.random.Generator, int], Ints]
    tuned: bool


def _heavy(number: int, rows: int) -> Callable[[np.random.Generator, int], Ints]:
    def draw(rng: np.random.Generator, persons: int) -> Ints:
        found = rng.geometric(1 / 2, persons)
        found[:number] = rows
        return found

    return draw


def _bimodal(part: float, far: int) -> Callable[[np.random.Generator, int], Ints]:
    def draw(rng: np.random.Generator, persons: int) -> Ints:
        return np.asarray(rng.geometric(1 / 4, persons) + far * (rng.random(persons) < part))

    return draw


LAWS = {
    "geometric, mean 3": Law(lambda rng, n: rng.geometric(1 / 3, n), True),
    "geometric, mean 12": Law(lambda rng, n: rng.geometric(1 / 12, n), False),
    "Zipf 2": Law(lambda rng, n: np.minimum(rng.zipf(2.0, n), 10**5), True),
    "Zipf 2.6": Law(lambda rng, n: np.minimum(rng.zipf(2.6, n), 10**5), False),
    "one heavy": Law(_heavy(1, 5_000), True),
    "ten heavy": Law(_heavy(10, 400), False),
    "all 10": Law(lambda rng, n: np.full(n, 10), True),
    "all 1": Law(lambda rng, n: np.full(n, 1), False),
    "2% have 40 more": Law(_bimodal(0.02, 40), True),
    "20% have 100 more": Law(_bimodal(0.2, 100), False),
    "Poisson, mean 5": Law(lambda rng, n: 1 + rng.poisson(4, n), True),
    "lognormal": Law(lambda rng, n: np.ceil(rng.lognormal(1.5, 1.2, n)).astype(np.int64), False),
}


@cache
def noise_of_total(bound: int, trials: int = 200) -> float:
    """The error of a total by noise alone at epsilon 1: of releases of a table where nobody has two rows."""
    rows = {"id": np.arange(2_400), "hour": np.arange(2_400) % 24}
    misses = [
        pt.publish(rows, SCHEMA, epsilon=1, contributions=bound, **ASKED).count(hour=(0, 23)).value - 2_400
        for _ in range(trials)
    ]
    return math.sqrt(float(np.mean(np.square(misses))))


@dataclass(frozen=True)
class Cell:
    """One law with so many persons and one epsilon."""

    law: str
    persons: int
    epsilon: Fraction

    @property
    def within(self) -> Ints:
        """The rows within each candidate."""
        rng = np.random.default_rng([self.persons, *self.law.encode()])
        rows = LAWS[self.law].draw(rng, self.persons)
        return np.array([np.minimum(rows, bound).sum() for bound in (*USUAL, 2**40)])

    def errors(self, within: Ints, left: Fraction = Fraction(1)) -> Floats:
        """The error of a total at each candidate, if so much of epsilon is left for the noise."""
        out = (within[-1] - within[:-1]).astype(float)
        noise = np.array([noise_of_total(bound) for bound in USUAL]) / float(self.epsilon * left)
        return np.asarray(np.hypot(out, noise))

    def select(self, share: Fraction) -> BoundSelection:
        """The shipped choice, as `publish` would make it."""
        asked = AutoContributions(share=share)
        made = Request.checked(SCHEMA, epsilon=self.epsilon, contributions=asked, **ASKED).choice
        assert made is not None
        return made


def cells(laws: Sequence[str], persons: Sequence[int], epsilons: Sequence[str]) -> Iterator[Cell]:
    """Every combination."""
    for law in laws:
        for number in persons:
            for epsilon in epsilons:
                yield Cell(law, number, Fraction(epsilon))


_SELECTED: dict[tuple[Fraction, Fraction], BoundSelection] = {}


def measure(cell: Cell, within: Ints, share: Fraction, select: Select | None = None) -> dict[str, Any]:
    """The mean error with the choice, and those of fixed bounds, which have all of epsilon."""
    key = (cell.epsilon, share)
    made = _SELECTED.setdefault(key, _SELECTED.get(key) or cell.select(share))
    inside = within[:-1]
    if select is None:
        chances = np.array(made.chances(inside.tolist()))
    else:
        chances = select(inside.astype(float), np.array(list(map(float, made.noise))), float(made.epsilon))
    fixed, chosen = cell.errors(within), float(chances @ cell.errors(within, 1 - share))
    best = int(fixed.argmin())
    return {
        "law": cell.law,
        "tuned": LAWS[cell.law].tuned,
        "persons": cell.persons,
        "epsilon": str(cell.epsilon),
        "rows": int(within[-1]),
        "auto": chosen,
        "best": float(fixed[best]),
        "best_bound": USUAL[best],
        "one": float(fixed[0]),
        "big": float(fixed[USUAL.index(BIG)]),
    }


# Other selections with the same candidates, for comparison: all are epsilon-DP.
_STEPS = np.array(USUAL, float)


def _softmax(exponents: Floats) -> Floats:
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())


def plain(inside: Floats, noise: Floats, epsilon: float) -> Floats:
    """The exponential mechanism on the predicted error, whose sensitivity is the largest candidate."""
    error = inside[-1] - inside + noise
    return _softmax(-epsilon * error / (2 * (_STEPS[-1] - _STEPS[0])))


def generalized(inside: Floats, noise: Floats, epsilon: float) -> Floats:
    """The generalized exponential mechanism of Raskhodnikova and Smith, with sensitivity k at bound k."""
    shift = 2 / epsilon * math.log(len(_STEPS) / 0.1)
    error = inside[-1] - inside + noise + shift * _STEPS
    scores = (error[:, None] - error[None, :]) / (_STEPS[:, None] + _STEPS[None, :])
    return _softmax(-epsilon * scores.max(axis=1) / 2)


def slopes(inside: Floats, noise: Floats, epsilon: float) -> Floats:
    """Slopes to both sides, which need a factor of two; larger bounds are made dearer by 5 / epsilon rows."""
    error = inside[-1] - inside + noise + 5 / epsilon * _STEPS
    apart = np.abs(_STEPS[:, None] - _STEPS[None, :])
    scores = (error[:, None] - error[None, :]) / np.where(apart == 0, np.inf, apart)
    return _softmax(-epsilon * scores.max(axis=1) / 2)


OTHERS: dict[str, Select] = {
    "exponential mechanism": plain,
    "generalized [RS16]": generalized,
    "slopes, both sides": slopes,
}


def total(ratios: Sequence[float]) -> str:
    """The geometric mean, and the worst."""
    return f"{math.exp(float(np.mean(np.log(ratios)))):.2f}, worst {max(ratios):.1f}"


def tune(found: Sequence[tuple[Cell, Ints]]) -> None:
    """Shares, cautions and other selections, on both halves."""
    lines: list[dict[str, Any]] = []
    halves = [True, False]

    def line(name: str, share: Fraction, select: Select | None = None) -> None:
        rows = [measure(cell, within, share, select) for cell, within in found]
        ratios = [[each["auto"] / each["best"] for each in rows if each["tuned"] == half] for half in halves]
        first, second = map(total, ratios)
        lines.append({"selection": name, "share": str(share), "tuned on": first, "held out": second})

    usual = shipped._CAUTION
    for share in map(Fraction, ("1/40", "1/20", "1/10", "1/5")):
        for caution in (1.0, 1.5, 2.0, 2.5, 3.0):
            shipped._CAUTION = caution  # type: ignore[misc, assignment]
            line(f"shipped, caution {caution:g}", share)
        shipped._CAUTION = usual  # type: ignore[misc]
        for name, select in OTHERS.items():
            line(name, share, select)
    print(aligned(lines))


def main() -> None:
    """Measure, and print JSON rows, then the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true", help="compare shares, cautions and selections")
    parser.add_argument("--quick", action="store_true", help="few persons, one epsilon")
    options = parser.parse_args()
    persons, epsilons = (PERSONS[:1], EPSILONS[1:2]) if options.quick else (PERSONS, EPSILONS)
    found = [(cell, cell.within) for cell in cells(list(LAWS), persons, epsilons)]
    if options.tune:
        tune(found)
        return
    rows = [measure(cell, within, AutoContributions().share) for cell, within in found]
    for row in rows:
        print(json.dumps(row))
    each = [(law, [row for row in rows if row["law"] == law]) for law in LAWS]
    halves = [(half, [row for row in rows if row["tuned"] == (half == "tuned on")]) for half in HALVES]
    print(aligned([_summary(name, mine) for name, mine in [*each, *halves]]))


def _summary(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Errors over those of the best fixed bound in hindsight."""
    ratios = {each: total([row[each] / row["best"] for row in rows]) for each in ("auto", "one", "big")}
    half = name if name in HALVES else HALVES[not LAWS[name].tuned]
    return {"law": name, "half": half, "auto": ratios["auto"], "1": ratios["one"], str(BIG): ratios["big"]}


if __name__ == "__main__":
    main()
