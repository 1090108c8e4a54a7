"""`python -m benchmarks.accuracy.composition`: the standard error of each of k counts, theorem by theorem.

One person is in all k counts, each of which changes by one at most; all together are (1, 10^-6)-DP.
`drawn` is the standard deviation of 10^5 draws of the last noise, from the shipped sampler.
"""

from __future__ import annotations

import sys
from math import sqrt

import numpy as np

from benchmarks import machine
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.table import table
from partita.curves import deviations, gaussian_variance_within
from partita.trusted.noise import SYSTEM

EPSILON, DELTA = 1, "1e-6"
COUNTS = (1, 2, 3, 5, 10, 20, 50, 91, 100, 200, 500, 1000)
DRAWS = 100_000


def row(k: int) -> Json:
    """The standard errors for k counts, and that of draws."""
    drawn = SYSTEM.discrete_gaussian(gaussian_variance_within(EPSILON, DELTA, k), DRAWS)
    found = {**deviations(EPSILON, DELTA, k), "drawn": sqrt(float(np.mean(drawn**2)))}
    return {"k": k, **{name: short(error) for name, error in found.items()}}


def main() -> int:
    print(table([row(k) for k in COUNTS]))
    print(machine.facts())
    return 0


if __name__ == "__main__":
    sys.exit(main())
