"""diffprivlib: histograms, quantiles, sums and noise, with public bounds as it asks for them."""

from __future__ import annotations

import numpy as np
from diffprivlib import mechanisms, tools

from benchmarks.peers.worker import Answers, Problem, between, boxes, groups, serve, with_total

CAP_SHARE, CAP = 0.4, 0.99
"""Of epsilon, for the quantile above which values are cut off.

The best of ten pairs (0.2 and 0.4; 0.9 to 0.995) on other rows than those of the report.
"""


def ranges(problem: Problem) -> Answers:
    """A noisy histogram of all cells."""
    size = int(problem["size"])
    noisy, _ = tools.histogram(problem["values"], epsilon(problem), bins=size, range=(0, size))
    return lambda: between(noisy, problem["lows"], problem["highs"])


def quantiles(problem: Problem) -> Answers:
    """All quantiles in one call, which divides epsilon among them.

    The library never returns a value that many rows share, so rows are spread within their cells first.
    """
    spread = problem["values"] + np.random.default_rng().random(problem["values"].size)
    found = tools.quantile(spread, problem["alphas"], epsilon(problem), bounds=(0, int(problem["size"])))
    return lambda: found


def median(problem: Problem) -> Answers:
    """The median as the library tells it, of rows as they are."""
    found = float(tools.median(problem["values"], epsilon(problem), bounds=(0, int(problem["size"]) - 1)))
    return lambda: [found]


def flat(problem: Problem) -> Answers:
    """A noisy histogram of all cells of two axes."""
    x, y = problem["points"].T
    width, height = problem["shape"].tolist()
    noisy, *_ = tools.histogram2d(
        x, y, epsilon(problem), bins=[width, height], range=[(0, width), (0, height)]
    )
    return lambda: boxes(noisy, problem["lows"], problem["highs"])


def declared_sums(problem: Problem) -> Answers:
    """The sum of each group within the declared bounds."""
    found = [tools.sum(values, epsilon(problem), bounds=(0, largest(problem))) for values in groups(problem)]
    return lambda: with_total(found)


def capped_sums(problem: Problem) -> Answers:
    """The sum of each group below one cap, itself a private quantile of all values."""
    cap, rest = found_cap(problem)
    found = [tools.sum(np.minimum(values, cap), rest, bounds=(0, cap)) for values in groups(problem)]
    return lambda: with_total(found)


def capped_means(problem: Problem) -> Answers:
    """The mean of each group below the same cap; diffprivlib takes the size of a group as public."""
    cap, rest = found_cap(problem)
    capped = [np.minimum(values, cap) for values in groups(problem)]
    found = [tools.mean(values, rest, bounds=(0, cap)) if values.size else 0.0 for values in capped]
    return lambda: found


def found_cap(problem: Problem) -> tuple[float, float]:
    """A cap for all groups, and the epsilon that is left."""
    share = CAP_SHARE * epsilon(problem)
    cap = float(tools.quantile(problem["values"], CAP, share, bounds=(0, largest(problem))))
    return max(cap, 1.0), epsilon(problem) - share


def noise(problem: Problem) -> Answers:
    """Integer noise, one call for each number, as the class offers it."""
    mechanism = mechanisms.Geometric(epsilon=1 / float(problem["scale"]), sensitivity=1)
    found = [mechanism.randomise(0) for _ in range(int(problem["draws"]))]
    return lambda: found


def epsilon(problem: Problem) -> float:
    return float(problem["epsilon"])


def largest(problem: Problem) -> float:
    return float(problem["largest"])


METHODS = {
    "ranges": ranges,
    "quantiles": quantiles,
    "median": median,
    "boxes": flat,
    "declared-sums": declared_sums,
    "capped-sums": capped_sums,
    "capped-means": capped_means,
    "noise": noise,
}

if __name__ == "__main__":
    serve(METHODS)
