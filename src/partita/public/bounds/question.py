"""Signed sums of ranges, summed up for pieces of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats, UInts
from partita.public.bounds.signed_ranges import SignedRange, turns


class Shares(NamedTuple):
    """The coefficients of a piece's rows: their mean, their variance, and the largest, for each piece.

    The largest is that of the cells which the question is after: it `named` them.
    """

    mean: Floats
    variance: Floats
    named: Floats


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
        cells, after = changes(terms, int(pieces.ends[-1]))
        before = np.concatenate([np.zeros(1), after])
        mean = before[np.searchsorted(cells, pieces.starts, side="right")]
        square, least, most = mean**2, mean.copy(), mean.copy()
        piece = np.searchsorted(pieces.ends, cells)
        inner = cells > pieces.starts[piece]
        piece, at, new, old = piece[inner], cells[inner], after[inner], before[:-1][inner]
        rest = ((pieces.ends[piece] - at).astype(np.float64) + 1.0) / pieces.widths[piece]
        np.add.at(mean, piece, rest * (new - old))
        np.add.at(square, piece, rest * (new**2 - old**2))
        np.minimum.at(least, piece, new)
        np.maximum.at(most, piece, new)
        return Question(mean, np.maximum(square - mean**2, 0.0), least, most)

    def gathered(self, parts: Curve, pieces: Curve) -> Shares:
        """What a question about parts of pieces is for the pieces: parts weigh by their counts."""
        first = np.searchsorted(parts.ends, pieces.starts)
        weight = part_weights(parts, pieces)
        mean = np.add.reduceat(weight * self.mean, first)
        square = np.add.reduceat(weight * (self.variance + self.mean**2), first)
        least, most = np.minimum.reduceat(self.least, first), np.maximum.reduceat(self.most, first)
        return Shares(mean, np.maximum(square - mean**2, 0.0), np.where(-least > most, least, most))


def part_weights(parts: Curve, pieces: Curve) -> Floats:
    """The share of each part in the count of its piece; by cells where a piece has no count."""
    first = np.searchsorted(parts.ends, pieces.starts)
    piece = np.searchsorted(pieces.ends, parts.ends)
    counted = np.add.reduceat(parts.counts, first)[piece]
    even = parts.widths / pieces.widths[piece]
    return np.asarray(np.divide(parts.counts, counted, out=even, where=counted > 0.0))


def changes(terms: Sequence[SignedRange], last: int) -> tuple[UInts, Floats]:
    """The cells up to the last at which the coefficient changes, in order, and its value from there on."""
    found = [turn for turn in turns((low, high + 1, sign) for low, high, sign in terms) if turn[0] <= last]
    return np.array([cell for cell, _ in found], np.uint64), np.array([float(sum_) for _, sum_ in found])
