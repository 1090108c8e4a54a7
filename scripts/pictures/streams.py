"""Pictures of counters: what they publish, and what their noise stands on."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from partita.trusted.streams.counter import Counter
from partita.trusted.streams.family import CounterFamily
from partita.trusted.streams.pan_private import PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter
from partita.trusted.streams.sparse import SparseCounter
from partita.trusted.streams.tree_counter import (
    DirectCounter,
    PerStepCounter,
    RandomizedResponseCounter,
    TreeCounter,
)
from scripts.pictures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, fixed_noise

_PERIODS = 365


def counter() -> Any:
    """A year of outputs beside the count; and how far off they are by their law, beside the papers' tree."""
    figure, (left, right) = canvas(columns=2)
    counts = _visits()
    made = Counter(epsilon=1, horizon=_PERIODS, noise=fixed_noise())
    left.plot(np.cumsum(counts), color=FAINT, lw=3, alpha=0.6, label="secret count")
    left.plot(made.update_many(counts), color=BLUE, lw=1, label="published")
    left.set(xlabel="period", ylabel="count so far")
    left.legend()
    times = np.arange(1, 257)
    for kind, colour in ((TreeCounter, ORANGE), (Counter, BLUE)):
        errors = np.sqrt(kind(epsilon=1, horizon=256, noise=fixed_noise()).variances(times))
        right.plot(times, errors, color=colour, lw=0.8, label=kind.__name__)
    right.set(xlabel="period of 256", ylabel="standard error", ylim=(0, 42))
    right.legend()
    return figure


def tree_counter() -> Any:
    """The nodes over 16 periods, and those whose noisy counts add up to the first 13."""
    figure, axes = canvas(height=2.2)
    for level in range(4):
        for node in range(16 >> level):
            _node(axes, level, node, used=(13 >> level) & 1 == 1 and node == (13 >> level) - 1)
    axes.axvline(13, color=ORANGE, lw=1)
    axes.text(13.1, 4.05, "13 periods are over", color=ORANGE)
    axes.set(xlim=(-0.1, 16.1), ylim=(-0.1, 4.5), yticks=[], xlabel="period")
    axes.spines["left"].set_visible(False)
    return figure


def sparse_counter() -> Any:
    """Outputs that change only where a segment is sealed."""
    figure, axes = canvas()
    horizon = 4096
    counts = np.bincount((horizon * np.linspace(0.1, 0.9, 120) ** 2).astype(int), minlength=horizon)
    made = SparseCounter(epsilon=1, horizon=horizon, expected=120, noise=fixed_noise())
    outputs = made.update_many(counts)
    seals = np.flatnonzero(np.diff(outputs)) + 1
    axes.plot(np.cumsum(counts), color=FAINT, lw=3, alpha=0.6, label="secret count")
    axes.step(np.arange(horizon), outputs, where="post", color=BLUE, label="published")
    axes.plot(seals, outputs[seals], "o", ms=4, color=ORANGE, label="a segment is sealed")
    axes.set(xlabel="period", ylabel="count so far")
    axes.legend()
    return figure


def sliding_counter() -> Any:
    """What came in the last 30 periods, over the blocks that windows are made of."""
    figure, axes = canvas()
    counts, window = _visits(), 30
    made = SlidingCounter(window=window, epsilon=1, noise=fixed_noise())
    truth = np.convolve(counts, np.ones(window), "full")[: counts.size]
    axes.plot(truth, color=FAINT, lw=3, alpha=0.6, label="secret count of the window")
    axes.plot(made.update_many(counts), color=BLUE, lw=1, label="published")
    for start in range(0, _PERIODS, 32):
        axes.axvline(start, color=INK, lw=0.4, ls=":")
    axes.set(xlabel="period (dots: blocks, each with a tree of its own)", ylabel="in the last 30")
    axes.legend()
    return figure


def counter_family() -> Any:
    """Three keys, each with a tree of its own and all of epsilon."""
    figure, axes = canvas()
    keys = ["north", "west", "south"]
    family = CounterFamily(keys=keys, epsilon=1, horizon=_PERIODS, noise=fixed_noise())
    counts = np.stack([_visits(seed) // (seed + 1) for seed in range(len(keys))], axis=1)
    outputs = family.update_many(counts)
    for place, colour in enumerate((BLUE, ORANGE, GREEN)):
        axes.plot(np.cumsum(counts[:, place]), color=FAINT, lw=3, alpha=0.6)
        axes.plot(outputs[:, place], color=colour, lw=1, label=keys[place])
    axes.set(xlabel="period", ylabel="count so far (grey: secret)")
    axes.legend()
    return figure


def pan_private_counter() -> Any:
    """The intervals that a counter of eight periods keeps: one noise before their events, one after them."""
    figure, (left, right) = canvas(columns=2)
    for level, nodes in enumerate(((0, 2, 4, 6), (0, 2), (0, 1))):
        for node in nodes:
            start, end = node << level, (node + 1) << level
            left.plot([start + 0.1, end - 0.1], [level, level], color=BLUE, lw=5, alpha=0.35)
            left.plot(start + 0.1, level, "o", color=ORANGE, ms=0 if level == 0 else 5)
            left.plot(end - 0.1, level, "o", color=GREEN, ms=5)
    left.axvline(5, color=INK, lw=1, ls="--")
    left.text(5.05, 2.5, "a look", color=INK)
    left.plot([], [], "o", color=ORANGE, label="noise before the events")
    left.plot([], [], "o", color=GREEN, label="noise after them: an output")
    left.set(xlabel="period", yticks=[0, 1, 2], ylabel="level", ylim=(-0.4, 4.3))
    left.legend(loc="upper left", fontsize=7)
    counts = _visits()
    made = PanPrivateCounter(epsilon=1, horizon=_PERIODS, noise=fixed_noise())
    right.plot(np.cumsum(counts), color=FAINT, lw=3, alpha=0.6, label="secret count")
    right.plot(made.update_many(counts), color=BLUE, lw=1, label="published")
    right.set(xlabel="period", ylabel="count so far")
    right.legend()
    return figure


def naive_counters() -> Any:
    """How far off outputs are by their law: the naive ways grow with time, `Counter` hardly does."""
    figure, axes = canvas()
    times = np.unique(np.geomspace(1, 2**16, 120).astype(int))
    kinds = (DirectCounter, PerStepCounter, RandomizedResponseCounter, Counter)
    for kind, colour in zip(kinds, (FAINT, GREEN, ORANGE, BLUE), strict=True):
        errors = np.sqrt(kind(epsilon=1, horizon=2**16, noise=fixed_noise()).variances(times))
        axes.plot(times, errors, color=colour, label=kind.__name__)
    axes.set(xscale="log", yscale="log", xlabel="period of 65,536, epsilon 1", ylabel="standard error")
    axes.legend(fontsize=7)
    return figure


def _visits(seed: int = 0) -> Any:
    """Visits on each day of a made-up year, more of them in winter."""
    days = np.arange(_PERIODS)
    uneven = (days * (seed + 1) * 0.618034) % 1
    return (2 + 1.8 * np.cos(2 * np.pi * days / _PERIODS) + 2 * uneven).astype(np.int64)


def _node(axes: Any, level: int, node: int, *, used: bool) -> None:
    corner, width = (node * 2**level + 0.05, level + 0.1), 2**level - 0.1
    colour, alpha = (BLUE, 0.8) if used else (FAINT, 0.25)
    axes.add_patch(Rectangle(corner, width, 0.8, edgecolor="none", facecolor=colour, alpha=alpha))
