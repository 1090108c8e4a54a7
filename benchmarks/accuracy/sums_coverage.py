"""How often intervals of sums, means and deviations by key hold the TRUE ones, all values included.

Families of the group "held out" have chosen no constant here. The constants of the hidden tail are those of
totals, on which Pareto 1.2 and few huge values had a say (`wanted_totals`).
Run `python -m benchmarks.accuracy.sums_coverage --trials 20`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.sums_sets import LARGEST, wages
from partita.domain import Integer
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.secret import Points

KEYS = 30
RANGES = 6
VALUE = Integer(0, LARGEST)
ROWS, EPSILONS = (2_000, 20_000), ("0.1", "1")

Floats = NDArray[np.float64]


class Family(NamedTuple):
    """Whether it has chosen constants, and how its values are drawn."""

    group: str
    draw: Callable[[int, np.random.Generator], Floats]


def _few(n: int, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(n) < 0.01, np.exp(rng.normal(14, 1.0, n)), 0.0)


def _zeros(n: int, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(n) < 0.3, np.exp(rng.normal(7, 1.2, n)), 0.0)


FAMILIES = {
    "lognormal 1": Family("tuned", lambda n, rng: np.exp(rng.normal(9, 1.0, n))),
    "wages": Family("tuned", lambda n, rng: rng.choice(wages(n, rng)[1], n).astype(np.float64)),
    "exponential": Family("tuned", lambda n, rng: rng.exponential(20_000, n)),
    "pareto 1.2": Family("held out", lambda n, rng: 1_000 * (1 + rng.pareto(1.2, n))),
    "pareto 1.5": Family("held out", lambda n, rng: 1_000 * (1 + rng.pareto(1.5, n))),
    "lognormal 2": Family("held out", lambda n, rng: np.exp(rng.normal(8, 2.0, n))),
    "few huge": Family("held out", _few),
    "uniform": Family("held out", lambda n, rng: rng.uniform(0, 100_000, n)),
    "zeros": Family("held out", _zeros),
}
TRUTHS: dict[str, Callable[[Any], float]] = {
    "sum": lambda rows: float(rows.sum()),
    "mean": lambda rows: float(rows.mean()),
    "std": lambda rows: float(rows.std()),
}


def coverage(name: str, n: int, epsilon: str, trials: int) -> dict[str, Any]:
    """Shares of intervals of 95% and of guaranteed bounds that hold, and the median width over the truth."""
    found: dict[str, list[float]] = defaultdict(list)
    for seed in range(trials):
        rng = np.random.default_rng([n, list(FAMILIES).index(name), seed, 17])
        values = np.minimum(FAMILIES[name].draw(n, rng), LARGEST).astype(np.int64)
        keys = rng.integers(0, KEYS, n)
        _ask_trees(keys, values, epsilon, rng, found)
        _ask_log_tree(values, epsilon, found)
    return {
        "family": name,
        "group": FAMILIES[name].group,
        "n": n,
        "epsilon": epsilon,
        **{kind: float((np.median if "width" in kind else np.mean)(held)) for kind, held in found.items()},
    }


def _ask_trees(keys: Any, values: Any, epsilon: str, rng: np.random.Generator, found: Any) -> None:
    """All keys, ranges of keys, and single keys."""
    axis = Axis(size=KEYS)
    points = Points.from_rows(np.stack([keys, values + 1], axis=1), axes=[axis, Axis.of(VALUE)])
    ends = np.sort(rng.integers(0, KEYS, (RANGES, 2)), axis=1).tolist()
    for moments in (False, True):
        release = LevelTrees(keys=[axis], value=VALUE, epsilon=epsilon, moments=moments).release(points)
        for low, high in [[0, KEYS - 1], *ends, [3, 3], [17, 17]]:
            rows, term = values[(keys >= low) & (keys <= high)].astype(np.float64), [BoxTerm((low,), (high,))]
            for kind in ("std",) if moments else ("sum", "mean"):
                answer = getattr(release, kind)(term)
                _score(f"{kind}", answer, TRUTHS[kind](rows), found)


def _ask_log_tree(values: Any, epsilon: str, found: Any) -> None:
    """All values, and those above their median."""
    points = Points.from_rows((values + 1)[:, np.newaxis], axes=[Axis.of(VALUE)])
    release = LogTree(value=VALUE, epsilon=epsilon).release(points)
    for low in (0, int(np.median(values))):
        rows = values[values >= low].astype(np.float64)
        for kind, truth in TRUTHS.items():
            answer = getattr(release, kind)([BoxTerm((low + 1,), (LARGEST + 1,))])
            _score(f"own {kind}", answer, truth(rows), found)


def _score(kind: str, answer: Any, truth: float, found: Any) -> None:
    low, high = answer.interval()
    found[kind].append(low <= truth <= high)
    found[f"{kind} low"].append(low <= truth)
    found[f"{kind} worst"].append(answer.worst()[0] <= truth <= answer.worst()[1])
    found[f"{kind} width"].append((high - low) / max(truth, 1.0))


def main() -> None:
    """Print a table of all families."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    arguments = parser.parse_args()
    kinds = ("sum", "mean", "std", "own sum", "own mean", "own std")
    print("family | n | epsilon |", " | ".join(kinds), "| worst, least | widths")
    for name in arguments.families:
        for n in ROWS:
            for epsilon in EPSILONS:
                row = coverage(name, n, epsilon, arguments.trials)
                covers = " | ".join(f"{row[kind]:.0%} ({row[kind + ' low']:.0%})" for kind in kinds)
                worst = min(row[f"{kind} worst"] for kind in kinds)
                widths = " ".join(f"{row[kind + ' width']:.2g}" for kind in kinds)
                print(f"{name} | {n:,} | {epsilon} | {covers} | {worst:.0%} | {widths}", flush=True)


if __name__ == "__main__":
    main()
