"""SmartNoise Synthesizers: MWEM over two columns, asked through the rows that it makes up."""

from __future__ import annotations

import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer

from benchmarks.peers.worker import Answers, Problem, boxes, serve

COARSE = 64
"""Bins along each axis: the library wants tables that are not much larger."""


def mwem(problem: Problem) -> Answers:
    """MWEM with ranges in its pool; a made-up row stands for its bin, which is spread evenly."""
    wide = problem["shape"] // COARSE
    rows = pd.DataFrame(problem["points"] // wide, columns=["x", "y"]).astype(int)
    made = Synthesizer.create("mwem", epsilon=float(problem["epsilon"]), marginal_width=1, add_ranges=True)
    made.fit(rows, transformer=known_bins())
    drawn = made.sample(len(rows)).to_numpy().astype(int)
    bins = np.zeros((COARSE, COARSE))
    np.add.at(bins, tuple(drawn.T), 1.0)
    cells = np.kron(bins / wide.prod(), np.ones(wide))
    return lambda: boxes(cells, problem["lows"], problem["highs"])


def known_bins() -> TableTransformer:
    """The bins are public, so nothing is spent to find them."""
    return TableTransformer([label_of_bins(), label_of_bins()])


def label_of_bins() -> LabelTransformer:
    made = LabelTransformer(nullable=False)
    made.fit(range(COARSE))
    return made


METHODS = {"boxes": mwem}

if __name__ == "__main__":
    serve(METHODS)
