"""What reports say about frequencies: estimates, errors, intervals and heavy hitters."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from statistics import NormalDist
from typing import Any, Final, final

import numpy as np

from partita.answer import Answer
from partita.arrays import Floats, Ints
from partita.errors import ImplausibleReports, check, check_data
from partita.html import card, grid, number
from partita.local.encodings import MeanRandomizer
from partita.local.question import Frequency
from partita.local.randomizer import FrequencyRandomizer, UnaryEncoding
from partita.numbers import check_probability, integer

_IMAGINED: Final = 4  # reports that are added to those that came, as to a proportion [AC98]
_HALVINGS: Final = 60  # bisection steps: as many as a float has bits, and some
_MOST_SHOWN: Final = 10
_BEYOND_ROUNDING: Final = 1 + 2.0**-30  # widens bounds by more than all roundings of a divergence
_FALSE_ALARM: Final = 1e-9
"""How often all checks of one estimate together may fail if all reports are honest, whatever people hold."""

_ROUNDING: Final = 2.0**-40
"""Shares that are equal but for rounding: where a mean is 0 or 1, the divergence of these is infinite."""


@final
@dataclass(frozen=True)
class HeavyHitter:
    """A cell that many people hold: its label, its frequency, and a bound that its frequency exceeds."""

    cell: int
    label: str
    frequency: float
    at_least: float


@final
@dataclass(frozen=True, eq=False)
class Frequencies:
    """The estimated share of people who hold each cell, unbiased; it may be a little below 0 or above 1.

    `supports` holds how many of the n reports support each cell. The error of a share f is that of
    n f chances `hit` and n (1 - f) chances `miss`, with the estimate in the place of f. Few reports may
    happen to be alike, so four of the largest variance are imagined beside them.
    """

    question: Frequency
    n: int
    supports: Ints = field(repr=False)

    def __post_init__(self) -> None:
        check_data(self.n, "reports", "must be at least one", fix="collect reports first")

    def __len__(self) -> int:
        return len(self.supports)

    @cached_property
    def values(self) -> Floats:
        """The estimated frequencies."""
        return self._frequencies(self.supports / self.n)

    @cached_property
    def error(self) -> Floats:
        """The standard error of each frequency."""
        of_hit, of_miss = self._variances
        share = self.values.clip(0, 1)
        seen = self.n * (share * of_hit + (1 - share) * of_miss)
        variance = (seen + _IMAGINED * max(of_hit, of_miss)) / (self.n + _IMAGINED)
        return np.sqrt(variance * (self.n + 1)) / self.n / self._gain

    @property
    def counts(self) -> Floats:
        """How many of the n people hold each cell, estimated."""
        return self.values * self.n

    @property
    def implausible(self) -> Ints:
        """The cells whose share leaves [0, 1] by more than noise explains: some of the reports are forged."""
        return implausible_cells(self.question.randomizer, self.n, self.supports)

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """For each cell, bounds that hold with about this confidence, by the normal law; never a point.

        They hold the shares f from which the estimate is at most as many standard errors away as the
        confidence allows, with the error that f itself has [Wil27], and half a report more [Yat34].
        """
        normal = NormalDist().inv_cdf((1 + float(check_probability(confidence, "confidence"))) / 2)
        of_hit, of_miss = self._variances
        square = (normal / self._gain) ** 2 / self.n
        shift = square * (of_hit - of_miss) / 2
        reach = np.sqrt((shift**2 + square * of_miss + 2 * shift * self.values).clip(0))
        half, centre = reach + 0.5 / self.n / self._gain, self.values + shift
        return _shares(centre - half, centre + half)

    def worst(self, beta: float = 0.05) -> tuple[Floats, Floats]:
        """For each cell, bounds that fail with probability at most beta, whatever people hold."""
        low, high = mean_bounds(self.supports / self.n, self.n, math.log(2 / float(check_probability(beta))))
        return _shares(self._frequencies(low), self._frequencies(high))

    def __getitem__(self, cell: int) -> Answer:
        """The frequency of one cell."""
        place = integer(cell, "cell", low=0, high=len(self) - 1)

        def bounds(beta: float) -> tuple[float, float]:
            low, high = self.worst(beta)
            return float(low[place]), float(high[place])

        return Answer(float(self.values[place]), lambda: float(self.error[place]), bounds)

    def _repr_html_(self) -> str:
        """The most frequent cells; `heavy_hitters` says how certain they are."""
        largest = np.argsort(-self.values, kind="stable")[:_MOST_SHOWN]
        values, errors = self.values.tolist(), self.error.tolist()
        rows = [(self.question.label(int(at)), number(values[at]), number(errors[at])) for at in largest]
        facts = [("people", f"{self.n:,}"), ("promise to each", self.question.guarantee)]
        return card("Frequencies", facts, below=[grid(("most frequent", "share", "standard error"), rows)])

    def heavy_hitters(
        self, *, threshold: float = 0.0, top: int | None = None, beta: float = 0.05
    ) -> list[HeavyHitter]:
        """The cells whose frequency surely exceeds the threshold, most frequent first; `top` of them at most.

        With probability at least 1 - beta no cell is listed wrongly, and every `at_least` holds: each of
        the cells has its share of beta, on one side.
        """
        fix = "pass for example 0.01"
        check(0 <= threshold < 1, "threshold", "must lie in [0, 1)", given=threshold, fix=fix)
        log_cells = math.log(len(self) / float(check_probability(beta)))
        low, _ = mean_bounds(self.supports / self.n, self.n, log_cells)
        at_least = self._frequencies(low)
        order = np.argsort(-self.values, kind="stable")
        found = order[at_least[order] > threshold][: integer(top, "top", low=1) if top is not None else None]
        return [self._hitter(int(cell), float(at_least[cell])) for cell in found]

    def _hitter(self, cell: int, at_least: float) -> HeavyHitter:
        return HeavyHitter(cell, self.question.label(cell), float(self.values[cell]), at_least)

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Of the support of a report about the cell, and of one about another."""
        law = self.question.randomizer
        return float(law.hit * (1 - law.hit)), float(law.miss * (1 - law.miss))

    @cached_property
    def _gain(self) -> float:
        return float(self.question.randomizer.hit - self.question.randomizer.miss)

    def _frequencies(self, shares: Floats) -> Floats:
        """From shares of supporting reports to frequencies of people; exact probabilities, rounded once."""
        return (shares - float(self.question.randomizer.miss)) / self._gain


def _shares(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds as shares. What lies outside of [0, 1] says less than it seems to: it opens to the nearest end.

    Bounds that are 2 h apart leave at least h^2 of [0, 1] open, and all of it from h = 1 on. That is next to
    nothing beside many reports; bounds that lie inside have it anyway.
    """
    least = ((high - low) / 2).clip(0, 1) ** 2
    return np.minimum(low, 1 - least).clip(0, 1), np.maximum(high, least).clip(0, 1)


def mean_bounds(shares: Floats, n: int | Ints, log_failures: float) -> tuple[Floats, Floats]:
    """Bounds on the mean chance of n independent trials of which `shares` succeeded; n of each, or of all.

    Each side fails with probability at most exp(-log_failures): the means m with
    n KL(share, m) <= log_failures [Hoeffding 1963, Theorem 1; the chances need not be equal].
    """
    allowed = log_failures / n * _BEYOND_ROUNDING
    zero, one = np.zeros_like(shares), np.ones_like(shares)
    return _side(shares, zero, allowed), _side(shares, one, allowed)


def _side(shares: Floats, far: Floats, allowed: float | Floats) -> Floats:
    """By halving: a mean between share and `far` beyond which the divergence exceeds what is allowed."""
    near = shares.astype(np.float64)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        inside = divergence(shares, middle) <= allowed
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return far


def divergence(share: Floats, mean: Floats) -> Floats:
    """The Kullback-Leibler divergence of two coins."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(share > 0, share * np.log(share / mean), 0.0)
        zeros = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - mean)), 0.0)
    return ones + zeros


# Forged reports: estimates that leave [0, 1] by more than noise explains. One forged report cannot be told
# from an honest one, since every report is possible about every value. Many together can be: whatever people
# hold, reports that support a cell are independent trials whose mean chance lies between `miss` and `hit`.


def implausible_cells(law: FrequencyRandomizer, n: int, supports: Ints, *, checks: int = 1) -> Ints:
    """The cells whose estimate lies below 0 or above 1 by more than noise explains.

    A share s of supporters above `hit` has probability at most exp(-n KL(s, hit)) if all reports are honest,
    and one below `miss` at most exp(-n KL(s, miss)) [Hoeffding 1963, Theorem 1]. Each cell has its share of
    the false alarms, on both sides; `checks` is how many such lists are looked at.
    """
    allowed = log(4 * len(supports) * checks / _FALSE_ALARM) / n
    return np.flatnonzero(_outside(supports / n, float(law.miss), float(law.hit), allowed))


def implausible_total(law: FrequencyRandomizer, n: int, supports: Ints, *, checks: int = 1) -> bool:
    """Whether reports support more or fewer cells than honest ones do, on average.

    An honest report supports hit + (size - 1) miss cells on average, whatever the value: estimated
    frequencies add up to 1. One that supports all cells at once moves no estimate by much, and all of them.
    The bits of unary encoding are independent trials; of other kinds each report is one, as a share of the
    most cells that a report can support.
    """
    most = law.forged_report_cells
    expected = float(law.hit + (law.size - 1) * law.miss)
    width, trials = (law.size, n * law.size) if isinstance(law, UnaryEncoding) else (most, n)
    share = np.array([int(supports.sum()) / n / width]).clip(0, 1)
    mean = min(1.0, expected / width)
    return bool(_outside(share, mean, mean, log(4 * checks / _FALSE_ALARM) / trials).any())


def implausible_mean(law: MeanRandomizer, n: int, total: int) -> bool:
    """Whether the mean report is one of no numbers between the bounds, by more than noise explains."""
    most = law.reports - 1
    ends = law.offset, law.offset + law.slope * (law.size - 1)
    low, high = (float(end / most) for end in ends)
    return bool(_outside(np.array([total / n / most]), low, high, log(2 / _FALSE_ALARM) / n).any())


def warn_of_forgery(found: bool, stacklevel: int = 3) -> None:
    """Say that not all reports can be honest."""
    if found:
        message = (
            "estimates leave [0, 1] by more than noise explains: with honest reports alone that would happen "
            "less than once in 10^9 estimates; some were forged, or made by another law"
        )
        warnings.warn(ImplausibleReports(message), stacklevel=stacklevel)


def _outside(share: Floats, low: float, high: float, allowed: float) -> Any:
    """Whether a share of trials is further below `low` or above `high` than noise explains."""
    above = (share > high + _ROUNDING) & (divergence(share, np.full_like(share, high)) > allowed)
    below = (share < low - _ROUNDING) & (divergence(share, np.full_like(share, low)) > allowed)
    return above | below
