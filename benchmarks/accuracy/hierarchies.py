"""`python -m benchmarks.accuracy.hierarchies [--families held-out] [--trials N]`: errors of levels.

Root-mean-square errors of all nodes of a level, in units of 1/epsilon, on made-up geographies: ours, the sums
of a flat view of all labels with all of epsilon, and a view of each level with an equal share and nothing
made consistent. `gate` is the error of a level over that of a view of its own with the share that ours gives
it, and `held` the share of its 95% intervals that hold the truth. Nothing was chosen on those held out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita import HierarchyCounts, Histogram, HistogramCounts
from partita.public.axis.base import Term
from partita.testing import EndlessTape, tape_noise

Ints = NDArray[np.int64]
MOST_INTERVALS = 400  # nodes of each level whose intervals are looked at, spread evenly
EPSILONS = ("1/10", "1")


def nest(sizes: list[Ints]) -> list[tuple[int, int]]:
    """Ranges of labels: `sizes` says how many children each node has, level by level from the top."""
    first, last = np.arange(sizes[-1].sum()), np.arange(sizes[-1].sum())
    rows = []
    for depth in range(len(sizes) - 1, -1, -1):
        behind = np.cumsum(sizes[depth])
        first, last = first[behind - sizes[depth]], last[behind - 1]
        rows += [(int(a), -int(b), depth) for a, b in zip(first, last, strict=True)]
    return [(a, -b) for a, b, _ in sorted(rows)]


def fan(chance: np.random.Generator, top: int, *means: float, heavy: bool = False) -> list[Ints]:
    """Numbers of children, about so many on average; of heavy tails a few nodes have most of them."""
    sizes, number = [], top
    for mean in means:
        drawn = chance.pareto(1.3, number) * mean * 0.3 + 1 if heavy else chance.poisson(mean - 1, number) + 1
        sizes.append(np.minimum(drawn, 5_000).astype(np.int64))
        number = int(sizes[-1].sum())
    return sizes


def pareto(shape: float, scale: float, empty: float) -> Callable[[np.random.Generator, int], Ints]:
    """Heavy-tailed counts, a share of them zero."""
    return lambda chance, size: np.where(
        chance.random(size) < empty, 0, np.minimum(chance.pareto(shape, size) * scale, 10**7)
    ).astype(np.int64)


FAMILIES: dict[str, dict[str, tuple[Any, Any]]] = {
    "tuned": {
        "counties": (lambda c: fan(c, 50, 20, 30), pareto(1.2, 10, 0.3)),
        "small": (lambda c: fan(c, 10, 8, 6), pareto(2, 40, 0)),
        "narrow": (lambda c: fan(c, 20, 2, 2, 2), pareto(1.1, 5, 0.2)),
    },
    "held-out": {
        "deep": (lambda c: fan(c, 6, 6, 6, 6, 4), pareto(1.1, 8, 0.4)),
        "uneven": (lambda c: fan(c, 40, 15, 25, heavy=True), pareto(1.3, 12, 0.3)),
        "products": (lambda c: fan(c, 30, 40, heavy=True), pareto(0.9, 2, 0.5)),
        "sparse": (lambda c: fan(c, 20, 20, 100), pareto(1.1, 3, 0.97)),
    },
}


def levels_of(family: tuple[Any, Any], epsilon: str, seed: int) -> Iterator[dict[str, Any]]:
    """One trial: for each level the mean square errors of all methods, and the intervals that held."""
    chance = np.random.default_rng(seed)
    sizes = family[0](chance)
    truth = family[1](chance, int(sizes[-1].sum()))
    noise = [tape_noise(EndlessTape((seed, number))) for number in range(3)]
    made = HierarchyCounts(size=truth.size, nodes=nest(sizes), epsilon=epsilon)
    released = made.release(Histogram.dense(truth), noise=noise[0])
    flat = HistogramCounts(size=truth.size, epsilon=epsilon).release(Histogram.dense(truth), noise=noise[1])
    before = np.concatenate([[0], np.cumsum(truth)])
    rate = float(made.epsilon)
    for level in range(made.levels.number):
        nodes = made.levels.of_level(level)
        first, last = made.levels.shape.first[nodes], made.levels.shape.last[nodes]
        exact = (before[last + np.uint64(1)] - before[first]).astype(float)
        equal = HistogramCounts(size=nodes.size, epsilon=made.epsilon / made.levels.number)
        own = HistogramCounts(size=nodes.size, epsilon=made.epsilon * made.parts[level])
        counts = Histogram.dense(exact.astype(np.int64))
        some = np.unique(np.linspace(0, nodes.size - 1, MOST_INTERVALS).astype(int))
        ends = [released.answer(Term(int(first[n]), int(last[n]))).interval() for n in some]
        held = [
            low - 1e-6 <= value <= high + 1e-6 for (low, high), value in zip(ends, exact[some], strict=True)
        ]
        found = released.counts(first, last)
        yield {
            "nodes": nodes.size,
            "share": float(made.parts[level]),
            "ours": ((found - exact) ** 2).mean() * rate**2,
            "unbiased": float(made.level_errors[level] * rate) ** 2,
            "flat": ((flat.counts(first, last) - exact) ** 2).mean() * rate**2,
            "apart": ((equal.release(counts, noise=noise[2]).noisy - exact) ** 2).mean() * rate**2,
            "alone": ((own.release(counts, noise=noise[2]).noisy - exact) ** 2).mean() * rate**2,
            "held": np.mean(held),
        }


def table(families: str, trials: int) -> Iterator[str]:
    """The rows of a Markdown table."""
    yield "| family | epsilon | level | nodes | share | ours | before raising | flat | apart | gate | held |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, family in FAMILIES[families].items():
        for epsilon in EPSILONS:
            runs = [list(levels_of(family, epsilon, seed)) for seed in range(trials)]
            for level, rows in enumerate(zip(*runs, strict=True)):
                mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
                root = {key: mean[key] ** 0.5 for key in ("ours", "unbiased", "flat", "apart", "alone")}
                yield (
                    f"| {name} | {epsilon} | {level} | {mean['nodes']:,.0f} | {mean['share']:.2f} | "
                    f"{root['ours']:.2f} | {root['unbiased']:.2f} | {root['flat']:.2f} | "
                    f"{root['apart']:.2f} | {root['ours'] / root['alone']:.2f} | {100 * mean['held']:.1f}% |"
                )


def seconds(size: int = 10**6) -> str:
    """How long a hierarchy of a million labels takes: to make, to release, to solve, and to ask one node."""
    nodes = nest([np.full(50, 200), np.full(10_000, size // 10_000)])
    counts = Histogram.dense(pareto(1.2, 10, 0.3)(np.random.default_rng(0), size))
    times = [time.process_time()]
    made = HierarchyCounts(size=size, nodes=nodes, epsilon=1)
    times.append(time.process_time())
    released = made.release(counts)
    times.append(time.process_time())
    _ = released.curve
    times.append(time.process_time())
    released.answer(Term(0, size // 50 - 1)).interval()
    times.append(time.process_time())
    made_in, released_in, solved_in, asked_in = np.diff(times)
    return (
        f"{size:,} labels below {len(nodes):,} nodes, CPU seconds: shares {made_in:.2f}, "
        f"noise {released_in:.2f}, estimates {solved_in:.2f}, first interval {asked_in:.2f}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table, and then the seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.hierarchies")
    parser.add_argument("--families", choices=tuple(FAMILIES), default="tuned")
    parser.add_argument("--trials", type=int, default=10)
    given = parser.parse_args(arguments)
    for line in table(given.families, given.trials):
        print(line, flush=True)
    print(seconds())
    return 0


if __name__ == "__main__":
    sys.exit(main())
