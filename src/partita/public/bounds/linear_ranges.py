"""Ranges of cells as linear questions about pieces of which noisy looks are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.bounds.question import Question, changes, part_weights
from partita.public.bounds.signed_ranges import SignedRange
from partita.public.bounds.tails import laplace_mix_reach


class Combination(NamedTuple):
    """An unbiased estimate of a weighted sum: its value, and the factor and the rate of every noise in it."""

    value: float
    factors: Floats
    rates: Floats

    def reach(self, beta: float) -> float:
        """The estimate lies above the truth by more with probability at most beta; below, too."""
        return laplace_mix_reach(self.factors, self.rates, beta)


class Position(NamedTuple):
    """Where on the axis: the piece, and the share of its count up to there."""

    piece: NDArray[np.intp]
    share: Floats


class Looks(Protocol):
    """Independent noisy looks at pieces of the axis, put together linearly: what bounds are made of."""

    @property
    def ends(self) -> UInts:
        """The last cell of each piece."""

    def combined(self, weights: Floats) -> Combination:
        """The estimate of the weighted sum of the pieces."""


class Model(Protocol):
    """How estimated counts of pieces vary: what standard errors are made of."""

    def variance(self, weights: Floats) -> float:
        """The variance of the weighted sum of the pieces."""

    def range_variances(self, first: Position, last: Position) -> Floats:
        """The same for many sums of the pieces between two positions."""


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

    `model` is about the pieces of `pieces`, the released counts before anything was bent inside of
    them. `certain` are sets of looks that bound an answer for certain, each with an equal share of the
    failure probability. The rest is a model for standard errors: `widening` and `least_variance`
    calibrate it, and `doubts` are cells that may hide many.

    A question that cuts a piece is answered with the share p of its count that the curve tells. If a
    piece that may hold r rows has them evenly spread, the variance of that is r p (1-p). From there to
    one heavy cell, as `clustering` says, it is up to r^2 max(p (1-p), (1-p)^2): people ask for ranges
    that end at values which there are, so a heavy cell is rather inside of the range than outside.
    """

    curve: Curve
    pieces: Curve
    model: Model
    certain: tuple[Looks, ...]
    held: Floats
    clustering: Floats
    widening: float
    least_variance: float = 1.0
    doubts: Doubts = NO_DOUBTS

    def answer(self, terms: Sequence[SignedRange]) -> Answer:
        """The signed sum of the ranges as one question."""
        least = least_sum(sign for _, _, sign in terms)
        return Answer(self._value(terms), partial(self._spread, terms), partial(self.bounds, terms), least)

    def bounds(self, terms: Sequence[SignedRange], beta: float) -> tuple[float, float]:
        """The truth lies between the bounds with probability 1 - beta."""
        each = [_bounds(looks, terms, beta / len(self.certain)) for looks in self.certain]
        return max(low for low, _ in each), min(high for _, high in each)

    def counts(self, lows: UInts, highs: UInts) -> Floats:
        """The value of each range."""
        return self.curve.between(lows, highs)

    def errors(self, lows: UInts, highs: UInts) -> Floats:
        """The standard error of each range."""
        first, last = self._around(lows, highs)
        together = first.piece == last.piece
        inside = self._scatter(last.piece, np.where(together, last.share - first.share, last.share))
        inside += np.where(together, 0.0, self._scatter(first.piece, 1.0 - first.share))
        inside += self.doubts.at(lows) + self.doubts.at(highs + np.uint64(1))
        noise = self.model.range_variances(first, last)
        return np.asarray(self.widening * np.sqrt(noise + inside + self.least_variance))

    def _value(self, terms: Sequence[SignedRange]) -> float:
        lows, highs = (np.array([term[end] for term in terms], np.uint64) for end in (0, 1))
        return float(self.curve.between(lows, highs) @ np.array([sign for _, _, sign in terms], np.float64))

    def _spread(self, terms: Sequence[SignedRange]) -> float:
        """The standard error; that of one range is what `errors` says."""
        if len(terms) == 1:
            ((low, high, _),) = terms
            return float(self.errors(np.array([low], np.uint64), np.array([high], np.uint64))[0])
        shares = Question.about(self.curve, terms).gathered(self.curve, self.pieces)
        noise = self.model.variance(shares.mean)
        inside = self._uneven(slice(None), shares.variance, shares.named - shares.mean)
        return self.widening * math.sqrt(noise + inside.sum() + self._doubt(terms) + self.least_variance)

    def _doubt(self, terms: Sequence[SignedRange]) -> float:
        cells, after = changes(terms, int(self.pieces.ends[-1]))
        return float(np.diff(after, prepend=0.0) ** 2 @ self.doubts.at(cells))

    def _scatter(self, piece: NDArray[np.intp], share: Floats) -> Floats:
        """The variance of answers about pieces of which shares are asked for."""
        return self._uneven(piece, share * (1.0 - share), 1.0 - share)

    def _uneven(self, piece: NDArray[np.intp] | slice, variance: Floats, named: Floats) -> Floats:
        """The variance of answers about pieces, by two things about the coefficients of their cells.

        These are their variance, and how far from the mean are those cells which the question names.
        """
        held = self.held[piece]
        heavy = self.clustering[piece] * held**2
        return np.asarray(held * variance + heavy * np.maximum(variance, named**2))

    def _around(self, lows: UInts, highs: UInts) -> tuple[Position, Position]:
        """Where the cells before each range end, in the piece of its first cell; and where its own end."""
        inner = lows > self.pieces.starts[np.searchsorted(self.pieces.ends, lows)]
        upto = self._upto(np.concatenate([lows - inner.astype(np.uint64), highs]))
        piece, share = upto.piece[: lows.size], np.where(inner, upto.share[: lows.size], 0.0)
        return Position(piece, share), Position(upto.piece[lows.size :], upto.share[lows.size :])

    def _upto(self, cells: UInts) -> Position:
        """Where the cells 0, ..., cell end."""
        piece = np.searchsorted(self.pieces.ends, cells)
        shares, first = self._shares
        share = shares.upto(cells) - shares.before[first[piece]]
        return Position(np.asarray(piece), np.clip(share, 0.0, 1.0))

    @cached_property
    def _shares(self) -> tuple[Curve, NDArray[np.intp]]:
        """The curve with a count of one in each piece, and the first of its parts in each piece."""
        first = np.searchsorted(self.curve.ends, self.pieces.starts)
        return Curve(self.curve.ends, part_weights(self.curve, self.pieces)), np.asarray(first)


def _bounds(looks: Looks, terms: Sequence[SignedRange], beta: float) -> tuple[float, float]:
    """One side for each half of beta."""
    question = Question.about(Curve.empty(looks.ends), terms)
    low = looks.combined(question.least)
    high = low if np.array_equal(question.least, question.most) else looks.combined(question.most)
    return low.value - low.reach(beta / 2), high.value + high.reach(beta / 2)
