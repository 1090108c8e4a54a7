"""The mechanism of the paper as written, against the literal one of anchors_1d.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import sqrt

from benchmarks.accuracy.ours import Ours
from benchmarks.accuracy.queries import misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, cell_row, geometric_mean, short
from benchmarks.accuracy.work import LITERAL, peers_1d, shape_work, shapes

NAME = "intervals-paper"
TRIALS, ANCHOR_TRIALS = 40, 10
"""Ours at least, and those behind a figure of the anchors."""
NEAR, NEAR_OVERALL = 1.2, 1.1
NOISE = 2.5
"""Standard errors by which a cell may be off for trial noise alone: one cell in eighty."""


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, max(plan.trials, TRIALS), *shape) for shape in shapes()]


def cell(trials: int, dataset: str, n: int, epsilon: str) -> Json:
    """Mean error over the ranges, against the literal mechanism's figure; how many standard errors apart."""
    work = shape_work(dataset, n, epsilon)
    row = cell_row("paper", work, misses(Ours(NAME), work, trials), peers_1d(dataset, n, epsilon, (LITERAL,)))
    return {**row, "apart": short(apart(row["range_L1"], row["range_peer_L1"], row["range_spread"], trials))}


def apart(ours: float, anchor: float, spread: float, trials: int) -> float:
    """The difference in standard errors, if one trial of the anchor varies as much as one of ours."""
    both = spread * ours * sqrt(1 + trials / ANCHOR_TRIALS)
    return (ours - anchor) / both


def summary(rows: list[Json]) -> Iterator[Json]:
    """Kept faithful on purpose: each cell within 20% of its figure, all within 10%."""
    overall = geometric_mean(row["range_ratio"] for row in rows)
    far = [row for row in rows if not 1 / NEAR <= row["range_ratio"] <= NEAR]
    beyond = [row for row in far if abs(row["apart"]) > NOISE]
    yield {
        "row": "paper",
        "total": "range",
        "cells": len(rows),
        "ratio": overall,
        "far": list(map(named, far)),
        "far_beyond_noise": list(map(named, beyond)),
        "target": NEAR_OVERALL,
        "met": not beyond and 1 / NEAR_OVERALL <= overall <= NEAR_OVERALL,
    }


def named(row: Json) -> str:
    """A cell's ratio, where it is, and how many standard errors that is."""
    where = f"{row['dataset']} n={row['n']} epsilon={row['epsilon']}"
    return f"{row['range_ratio']:.3g} {where} ({row['apart']:+.1f} standard errors)"


PAPER = Row(cells, summary)
