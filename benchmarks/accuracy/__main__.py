"""`PARTITA_DATA=... python -m benchmarks.accuracy`: JSON rows, one for each cell, then the whole."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from math import exp, log
from statistics import mean

import numpy as np

from benchmarks import machine
from benchmarks.accuracy.work import Cell, NoData, cells_1d
from partita import Histogram, PaperIntervals

LITERAL = "DNRR_literal"


def main(arguments: Sequence[str]) -> int:
    """Measure every cell; say so where the data are not there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--trials", type=int, default=10, help="releases of each cell")
    options = parser.parse_args(arguments)
    try:
        for row in paper_intervals(options.trials):
            print(json.dumps({**row, **machine.facts()}), flush=True)
    except NoData as missing:
        print(missing, file=sys.stderr)
        return 2
    return 0


def paper_intervals(trials: int) -> Iterator[dict[str, object]]:
    """Mean absolute error over the ranges, against the literal mechanism's figure in anchors_1d.csv."""
    ratios = []
    for cell in cells_1d():
        error = mean(paper_error(cell) for _ in range(trials))
        ratios.append(error / cell.peers[LITERAL])
        yield {
            "name": "paper-intervals",
            "dataset": cell.dataset,
            "n": cell.n,
            "epsilon": cell.epsilon,
            "trials": trials,
            "range_L1": round(error, 2),
            "baseline": LITERAL,
            "baseline_figure": cell.peers[LITERAL],
            "ratio": round(ratios[-1], 3),
        }
    overall = exp(mean(map(log, ratios)))
    yield {"name": "paper-intervals", "cells": len(ratios), "trials": trials, "ratio": round(overall, 3)}


def paper_error(cell: Cell) -> float:
    """One fresh release, all ranges."""
    mechanism = PaperIntervals(size=cell.counts.size, epsilon=cell.epsilon)
    release = mechanism.release(Histogram.dense(cell.counts))
    answers = [float(release.count(low, high - 1)) for low, high in cell.ranges.tolist()]
    return float(np.abs(np.array(answers) - cell.truth).mean())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
