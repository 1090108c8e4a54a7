"""Quantiles of a column, with bars on the value and on the rank."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import final

import numpy as np

from partita.errors.checks import check
from partita.html import card, span
from partita.numbers import failure, rational
from partita.public.axis.base.ranges import Term
from partita.public.axis.curve.curve import Floats, UInts
from partita.public.results.quantile import least_cells
from partita.public.results.quantile_bounds import certain_cells
from partita.public.views.slice import Slice


@final
@dataclass(frozen=True, eq=False, repr=False)
class Quantile:
    """The least value such that at least a share q of the rows with a value do not exceed it.

    Rows in special cells have no value here: they count neither above nor below. If nobody was
    counted, and for q = 0, that is the first value of the domain.
    """

    line: Slice
    q: Fraction
    cell: int

    @property
    def value(self) -> object:
        """The quantile, as a value of the column."""
        return self.line.domain.decode([self.cell])[0]

    def interval(self, confidence: float = 0.95) -> tuple[object, object]:
        """Values between which the true quantile lies with about this confidence; a model, no guarantee."""
        half = self._half_width(confidence)
        return self._values(_reaching(self.line, float(self.q) * self._total + np.array([-half, half])))

    def rank_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Between which shares of the rows the value truly stands, with about this confidence.

        From the share of rows below the value, less its error, to the share at or below it, plus its
        error: a value that many rows have takes up many ranks.
        """
        curve, half = self.line.axis.curve, self._half_width(confidence)
        if self._total == 0:
            return 0.0, 1.0
        upto = float(curve.upto(np.array([self.cell], np.uint64))[0])
        below = float(curve.upto(np.array([self.cell - 1], np.uint64))[0]) if self.cell else 0.0
        return max(0.0, (below - half) / self._total), min(1.0, (upto + half) / self._total)

    def worst(self, beta: float = 0.05) -> tuple[object, object]:
        """Values between which the true quantile lies, except with probability beta, whatever the data.

        Let E(x) be (1-q) times the count up to x, less q times the count beyond x: the true quantile
        is the least x where the true E is not negative. If no range misses the truth by more than
        B, no E(x) does, because 1-q and q add up to 1. Where single ranges have much better bounds than
        that, those are used.
        """
        low, high = self._certain(float(failure(beta)))
        return self._values(np.array([min(low, self.cell), max(high, self.cell)], np.uint64))

    def __repr__(self) -> str:
        return f"Quantile({self.value} at {float(self.q):.6g})"

    def _repr_html_(self) -> str:
        """Without guaranteed bounds where they are work: `worst` gives them."""
        certain = None if self.line.one_by_one else f"{span(self.worst())}, but for 5%"
        facts = [
            ("value", self.value),
            ("95% interval", span(self.interval())),
            ("for any data", certain),
        ]
        return card(f"{self.line.column}: quantile at {float(self.q):.6g}", facts)

    @property
    def _total(self) -> float:
        return self.line.axis.curve.total

    def _half_width(self, confidence: float) -> float:
        level = float(failure(confidence, "confidence"))
        return NormalDist().inv_cdf((1 + level) / 2) * self._deviation()

    def _deviation(self) -> float:
        """The standard error of the count C up to the value, less q times the count T of all.

        Its variance follows from those of C, of T and of the rest: (1-q) V(C) + q V(T-C) - q (1-q) V(T).
        """
        q, last, axis = float(self.q), self.line.axis.size - 1, self.line.axis
        upto = axis.answer(Term(0, self.cell)).error ** 2
        rest = axis.answer(Term(self.cell + 1, last)).error ** 2 if self.cell < last else 0.0
        everything = axis.answer(Term(0, last)).error ** 2
        return math.sqrt(max(0.0, (1 - q) * upto + q * rest - q * (1 - q) * everything))

    def _certain(self, beta: float) -> tuple[int, int]:
        axis = self.line.axis
        if self.line.one_by_one:
            return certain_cells(axis, float(self.q), beta)
        reach = axis.error(beta)
        low, high = least_cells(self._excess, np.array([-reach, reach]), last=axis.size - 1).tolist()
        return low, high

    def _excess(self, cells: UInts) -> Floats:
        q, last = float(self.q), np.full_like(cells, self.line.axis.size - 1)
        upto = self.line.axis.counts(np.zeros_like(cells), cells)
        rest = self.line.axis.counts(np.where(cells < last, cells + np.uint64(1), cells), last)
        return np.asarray((1 - q) * upto - q * np.where(cells < last, rest, 0.0))

    def _values(self, cells: UInts) -> tuple[object, object]:
        low, high = self.line.domain.decode(cells)
        return low, high


def quantiles(line: Slice, shares: Iterable[object]) -> list[Quantile]:
    """The quantile of each share."""
    exact = [_share(share) for share in shares]
    targets = np.array([float(q) for q in exact]) * line.axis.curve.total
    cells = _reaching(line, targets).tolist()
    return [Quantile(line, q, cell) for q, cell in zip(exact, cells, strict=True)]


def _reaching(line: Slice, targets: Floats) -> UInts:
    """The least cells at which the cumulative count reaches the targets."""
    return least_cells(line.axis.curve.upto, targets, last=line.axis.size - 1)


def _share(value: object) -> Fraction:
    q = rational(value, "q")
    check(0 <= q <= 1, "q", "must lie in [0, 1]", given=value, fix="pass 0.5 for the median")
    return q
