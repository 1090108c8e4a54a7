"""Ranges of cells as linear questions about pieces of which noisy looks are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.inference.curve import Curve, Floats, UInts
from partita.inference.tails import laplace_mix_reach

__all__ = ["NO_DOUBTS", "Combination", "Doubts", "Evidence", "LinearRanges", "Question", "SignedRange"]

SignedRange = tuple[int, int, int]
"""The first and the last cell of a range, and +1 or -1."""


class Combination(NamedTuple):
    """An unbiased estimate of a weighted sum: its value, and the factor and the rate of every noise in it."""

    value: float
    factors: Floats
    rates: Floats

    def reach(self, beta: float) -> float:
        """The estimate lies above the truth by more with probability at most beta; below, too."""
        return laplace_mix_reach(self.factors, self.rates, beta)


class Evidence(Protocol):
    """Independent noisy looks at pieces of the axis, put together linearly."""

    @property
    def ends(self) -> UInts:
        """The last cell of each piece."""

    def combined(self, weights: Floats) -> Combination:
        """The estimate of the weighted sum of the pieces."""

    def variance(self, weights: Floats) -> float:
        """The variance of that estimate."""

    def replicates(self) -> Floats:
        """Vectors of pieces, one a row, whose second moments estimate the covariance."""


@final
@dataclass(frozen=True, eq=False)
class Question:
    """A signed sum of ranges: the coefficient of each cell, summed up for every piece.

    Inside a piece the cells' coefficients have a `mean`, a `variance`, and lie between `least` and
    `most`: counts are not negative, so the piece's part of the answer lies between these times its count.
    """

    mean: Floats
    variance: Floats
    least: Floats
    most: Floats

    @staticmethod
    def about(pieces: Curve, terms: Sequence[SignedRange]) -> Question:
        """The question about the given pieces."""
        turns, after = _turns(terms, int(pieces.ends[-1]))
        before = np.concatenate([np.zeros(1), after])
        mean = before[np.searchsorted(turns, pieces.starts, side="right")]
        square, least, most = mean**2, mean.copy(), mean.copy()
        piece = np.searchsorted(pieces.ends, turns)
        inner = turns > pieces.starts[piece]
        piece, at, new, old = piece[inner], turns[inner], after[inner], before[:-1][inner]
        rest = ((pieces.ends[piece] - at).astype(np.float64) + 1.0) / pieces.widths[piece]
        np.add.at(mean, piece, rest * (new - old))
        np.add.at(square, piece, rest * (new**2 - old**2))
        np.minimum.at(least, piece, new)
        np.maximum.at(most, piece, new)
        return Question(mean, np.maximum(square - mean**2, 0.0), least, most)


class Doubts(NamedTuple):
    """Cells, increasing, that may be unlike the cells before them, and the variance of what they hold."""

    cells: UInts
    variances: Floats

    def at(self, cells: UInts) -> Floats:
        """The variance of a question whose coefficient changes by one at a cell."""
        if not self.cells.size:
            return np.zeros(cells.shape)
        place = np.minimum(np.searchsorted(self.cells, cells), self.cells.size - 1)
        return np.where(self.cells[place] == cells, self.variances[place], 0.0)


NO_DOUBTS: Final = Doubts(np.zeros(0, np.uint64), np.zeros(0))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearRanges:
    """Answers from a curve, with the errors of linear estimates.

    `evidence` is about the pieces of `pieces`, the released counts before anything was bent inside of
    them. `certain` are sets of looks that bound an answer for certain, each with an equal share of the
    failure probability. The rest is a model for standard errors: `widening` and `least_variance`
    calibrate it, `clustering` says how uneven pieces are inside, from 0 for evenly spread to 1 for one
    heavy cell each, and `doubts` are cells that may hide many.
    """

    curve: Curve
    pieces: Curve
    evidence: Evidence
    certain: tuple[Evidence, ...]
    widening: float
    least_variance: float = 1.0
    clustering: float = 0.0
    doubts: Doubts = NO_DOUBTS

    def answer(self, terms: Sequence[SignedRange]) -> Answer:
        """The signed sum of the ranges as one question."""
        least = 0.0 if all(sign > 0 for _, _, sign in terms) else -math.inf
        return Answer(self._value(terms), partial(self._spread, terms), partial(self.bounds, terms), least)

    def bounds(self, terms: Sequence[SignedRange], beta: float) -> tuple[float, float]:
        """The truth lies between the bounds with probability 1 - beta."""
        each = [_bounds(looks, terms, beta / len(self.certain)) for looks in self.certain]
        return max(low for low, _ in each), min(high for _, high in each)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The value of each range."""
        return self.curve.between(lows, highs)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """About the standard error of each range: replicates in the place of a solve for each."""
        first, last = _Position.of(self.pieces, lows, 0.0), _Position.of(self.pieces, highs, 1.0)
        noise = np.zeros(lows.shape)
        for replicate in self._replicates:
            noise += (last.upto(replicate) - first.upto(replicate)) ** 2
        inside = _scatter(first, last) * self._unevenness(last.piece)
        inside += np.where(first.piece == last.piece, 0.0, _spread_of(first) * self._unevenness(first.piece))
        inside += self.doubts.at(lows) + self.doubts.at(highs + np.uint64(1))
        return np.asarray(
            self.widening * np.sqrt(noise / len(self._replicates) + inside + self.least_variance)
        )

    @cached_property
    def _replicates(self) -> Floats:
        """Cumulative counts of each replicate: before every piece, and of all."""
        cumulative = np.cumsum(self.evidence.replicates(), axis=1)
        return np.concatenate([np.zeros((len(cumulative), 1)), cumulative], axis=1)

    def _value(self, terms: Sequence[SignedRange]) -> float:
        lows, highs = (np.array([term[end] for term in terms], np.uint64) for end in (0, 1))
        return float(self.curve.between(lows, highs) @ np.array([sign for _, _, sign in terms], np.float64))

    def _spread(self, terms: Sequence[SignedRange]) -> float:
        question = Question.about(self.pieces, terms)
        every = np.arange(self.pieces.ends.size)
        inside = float(question.variance @ self._unevenness(every))
        inside += self._doubt(terms)
        noise = self.evidence.variance(question.mean)
        return self.widening * math.sqrt(noise + inside + self.least_variance)

    def _unevenness(self, piece: NDArray[np.intp]) -> Floats:
        """How far the count of a part of a piece varies, per variance of a cell's coefficient."""
        count = self.pieces.counts[piece]
        return np.asarray(count + self.clustering * count**2)

    def _doubt(self, terms: Sequence[SignedRange]) -> float:
        turns, after = _turns(terms, int(self.pieces.ends[-1]))
        return float(np.diff(after, prepend=0.0) ** 2 @ self.doubts.at(turns))


class _Position(NamedTuple):
    """Where cells lie: the piece, and the share of it up to there."""

    piece: NDArray[np.intp]
    share: Floats

    @staticmethod
    def of(pieces: Curve, cells: UInts, own: float) -> _Position:
        """The share counts the cell itself if `own` is one."""
        piece = np.searchsorted(pieces.ends, cells)
        offset = (cells - pieces.starts[piece]).astype(np.float64) + own
        return _Position(np.asarray(piece), np.asarray(offset / pieces.widths[piece]))

    def upto(self, cumulative: Floats) -> Floats:
        """The count up to each position, for cumulative counts before the pieces."""
        before = cumulative[self.piece]
        return np.asarray(before + self.share * (cumulative[self.piece + 1] - before))


def _spread_of(position: _Position) -> Floats:
    return position.share * (1.0 - position.share)


def _scatter(first: _Position, last: _Position) -> Floats:
    """p (1-p) of the piece where a range ends, which may be the one where it begins."""
    part = np.where(first.piece == last.piece, last.share - first.share, last.share)
    return part * (1.0 - part)


def _turns(terms: Sequence[SignedRange], last: int) -> tuple[UInts, Floats]:
    """The cells at which the coefficient changes, in order, and its value from there on."""
    steps: dict[int, int] = {}
    for low, high, sign in terms:
        steps[low] = steps.get(low, 0) + sign
        if high < last:
            steps[high + 1] = steps.get(high + 1, 0) - sign
    cells = sorted(steps)
    return np.array(cells, np.uint64), np.cumsum([float(steps[cell]) for cell in cells])


def _bounds(looks: Evidence, terms: Sequence[SignedRange], beta: float) -> tuple[float, float]:
    """One side for each half of beta."""
    question = Question.about(Curve(looks.ends, np.zeros(looks.ends.size)), terms)
    low = looks.combined(question.least)
    high = low if np.array_equal(question.least, question.most) else looks.combined(question.most)
    return low.value - low.reach(beta / 2), high.value + high.reach(beta / 2)
