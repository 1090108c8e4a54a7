"""Pure epsilon peers over many columns, with float noise and dpmm's model: they protect nobody.

`aim` is the loop of AIM with Laplace noise and plain composition; `priv-bayes` is a network in which each
column has one parent [Zhang et al. 2014]. Both are add-remove; to `priv-bayes` the number of rows is public.
"""

from __future__ import annotations

from itertools import combinations
from math import log2
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from dpmm.models.aim import hypothetical_model_size
from dpmm.models.base.matrix import Identity
from dpmm.models.base.mbi import Dataset, Domain, FactoredInference

from benchmarks.peers.tables import Project, Subset, answer_variations, count_cells
from benchmarks.peers.worker import Answers, Problem, serve

Measurement: TypeAlias = tuple[Any, Any, float, tuple[str, ...]]

STEPS, LAST_STEPS = 200, 1_000
"""Of mirror descent: after each measurement, from where the last one ended; for the model that is read."""
MEGABYTES = 2
ROUNDS = 3
"""Pairs for each column that the loop plans with. AIM plans with 16, but in pure epsilon shares shrink with
their number and not with its root. Not tuned."""
ONE_WAY, CHOOSING = 0.2, 0.1
"""Of epsilon: single columns; of what is left, choosing."""


def aim(problem: Problem) -> Answers:
    """Measure the worst pair again and again; where that taught nothing, spend twice as much on the next."""
    table, epsilon = Coded(problem), float(problem["epsilon"])
    count = len(table.sizes)
    found = [table.measure((column,), ONE_WAY * epsilon / count) for column in range(count)]
    model, left = table.fit(found), (1 - ONE_WAY) * epsilon
    share = left / (ROUNDS * count)
    while left > 1e-9:
        share = left if left < 2 * share else share
        left -= share
        pairs = table.fitting([each[3] for each in found], 1 - left / epsilon)
        bias = 1 / ((1 - CHOOSING) * share)
        scores = [table.distance(pair, model) - bias * table.cells(pair) for pair in pairs]
        chosen = pairs[choose(scores, CHOOSING * share, sensitivity=1.0)]
        before = table.read(model, chosen)
        found.append(table.measure(chosen, (1 - CHOOSING) * share))
        model = table.fit(found)
        if np.abs(table.read(model, chosen) - before).sum() <= bias * table.cells(chosen):
            share *= 2
    return answer_variations(problem, table.project(table.fit(found, LAST_STEPS)))


def priv_bayes(problem: Problem) -> Answers:
    """Half of epsilon for the parents, half for the tables of a column and its parent."""
    table, epsilon = Coded(problem), float(problem["epsilon"])
    count, n = len(table.sizes), len(table.rows)
    sensitivity = 2 / n * log2((n + 1) / 2) + (n - 1) / n * log2((n + 1) / (n - 1))
    tree, held = [], [int(np.random.default_rng().integers(count))]
    while len(held) < count:
        pairs = [(parent, child) for parent in held for child in range(count) if child not in held]
        scores = [information(count_cells(table.rows, table.sizes, pair)) for pair in pairs]
        chosen = pairs[choose(scores, epsilon / 2 / (count - 1), sensitivity)]
        tree.append((min(chosen), max(chosen)))
        held.append(chosen[1])
    model = table.fit([table.measure(pair, epsilon / 2 / (count - 1)) for pair in tree], LAST_STEPS)
    return answer_variations(problem, table.project(model))


class Coded:
    """The rows of a problem, and dpmm's model of them."""

    def __init__(self, problem: Problem) -> None:
        self.rows, self.sizes = problem["rows"], problem["sizes"].tolist()
        self.names = [f"c{number}" for number in range(len(self.sizes))]
        self.domain = Domain(self.names, self.sizes)
        self.data = Dataset(pd.DataFrame(self.rows, columns=self.names), self.domain)
        self.engine = FactoredInference(self.domain, warm_start=True)

    def name(self, subset: Subset) -> tuple[str, ...]:
        return tuple(self.names[column] for column in subset)

    def cells(self, subset: Subset) -> int:
        return int(np.prod([self.sizes[column] for column in subset]))

    def count(self, subset: Subset) -> Any:
        return count_cells(self.rows, self.sizes, subset).ravel()

    def measure(self, subset: Subset, epsilon: float) -> Measurement:
        """Every cell of a table with Laplace noise."""
        noisy = self.count(subset) + np.random.default_rng().laplace(0, 1 / epsilon, self.cells(subset))
        return Identity(noisy.size), noisy, 2**0.5 / epsilon, self.name(subset)

    def fit(self, found: list[Measurement], steps: int = STEPS) -> Any:
        self.engine.iters = steps
        return self.engine.estimate(found)

    def read(self, model: Any, subset: Subset) -> Any:
        return model.project(self.name(subset)).datavector()

    def distance(self, subset: Subset, model: Any) -> float:
        return float(np.abs(self.count(subset) - self.read(model, subset)).sum())

    def fitting(self, cliques: list[tuple[str, ...]], share: float) -> list[Subset]:
        """Pairs that keep the model as small as AIM does: its size grows with what is spent."""
        pairs = list(combinations(range(len(self.sizes)), 2))
        sizes = [hypothetical_model_size(self.domain, [*cliques, self.name(pair)]) for pair in pairs]
        most = max(MEGABYTES * share, min(sizes))
        return [pair for pair, size in zip(pairs, sizes, strict=True) if size <= most]

    def project(self, model: Any) -> Project:
        return lambda subset: self.read(model, subset)


def choose(scores: list[float], epsilon: float, sensitivity: float) -> int:
    """The exponential mechanism."""
    weights = epsilon / (2 * sensitivity) * (np.array(scores) - max(scores))
    return int(np.argmax(weights + np.random.default_rng().gumbel(size=weights.size)))


def information(counts: Any) -> float:
    """The mutual information of two columns, in bits."""
    joint = counts / counts.sum()
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / product[held])).sum())


METHODS = {"aim": aim, "priv-bayes": priv_bayes}

if __name__ == "__main__":
    serve(METHODS)
