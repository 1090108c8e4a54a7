"""Errors of released counts: how far sums of noise reach, standard errors of ranges, and least squares.

`LinearRanges` answers ranges of an axis from a curve, with the errors of linear estimates. `Posterior` puts
independent estimates and measurements of their sums together. The other functions bound sums of discrete
Laplace noise, one at a time or all at once, or of discrete Gaussian noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, least_sum
from partita.arrays import Floats, Ints, UInts
from partita.lazy import cached_property
from partita.public.axis.curve import Curve

Run: TypeAlias = tuple[int, int, int]
"""(first, the one behind the last, sign) of cells or integers in a row."""

SignedRange: TypeAlias = tuple[int, int, int]
"""The first and the last cell of a range, and +1 or -1."""


@final
@dataclass(frozen=True, order=True)
class Gaussian:
    """The law of discrete Gaussian noise: P[k] is proportional to exp(-k^2 / (2 variance))."""

    variance: Fraction


NoiseLaw: TypeAlias = Fraction | Gaussian
"""The law of the noise of a released integer: the scale of discrete Laplace noise, or a Gaussian law."""


class Combination(NamedTuple):
    """An unbiased estimate of a weighted sum: its value, and the factor and the rate of every noise in it."""

    value: float
    factors: Floats
    rates: Floats

    def reach(self, beta: float) -> float:
        """The estimate lies above the truth by more with probability at most beta; below, too."""
        return laplace_mix_reach(self.factors, self.rates, beta)


class RangePosition(NamedTuple):
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

    def range_variances(self, first: RangePosition, last: RangePosition) -> Floats:
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
        lows, highs = (np.array([term[end] for term in terms], np.uint64) for end in (0, 1))
        signs = np.array([sign for _, _, sign in terms], np.float64)
        value = float(self.curve.between(lows, highs) @ signs)
        least = least_sum(sign for _, _, sign in terms)
        return Answer(value, partial(self._spread, terms), partial(self.bounds, terms), least)

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

    def _spread(self, terms: Sequence[SignedRange]) -> float:
        """The standard error; that of one range is what `errors` says."""
        if len(terms) == 1:
            ((low, high, _),) = terms
            return float(self.errors(np.array([low], np.uint64), np.array([high], np.uint64))[0])
        mean, variance, named = RangeCombination.about(self.curve, terms).gather(self.curve, self.pieces)
        noise = self.model.variance(mean)
        inside = self._uneven(slice(None), variance, named - mean)
        cells, after = find_changes(terms, int(self.pieces.ends[-1]))
        doubt = float(np.diff(after, prepend=0.0) ** 2 @ self.doubts.at(cells))
        return self.widening * math.sqrt(noise + inside.sum() + doubt + self.least_variance)

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

    def _around(self, lows: UInts, highs: UInts) -> tuple[RangePosition, RangePosition]:
        """Where the cells before each range end, in the piece of its first cell; and where its own end."""
        inner = lows > self.pieces.starts[np.searchsorted(self.pieces.ends, lows)]
        upto = self._upto(np.concatenate([lows - inner.astype(np.uint64), highs]))
        piece, share = upto.piece[: lows.size], np.where(inner, upto.share[: lows.size], 0.0)
        return RangePosition(piece, share), RangePosition(upto.piece[lows.size :], upto.share[lows.size :])

    def _upto(self, cells: UInts) -> RangePosition:
        """Where the cells 0, ..., cell end."""
        piece = np.searchsorted(self.pieces.ends, cells)
        shares, first = self._shares
        share = shares.upto(cells) - shares.before[first[piece]]
        return RangePosition(np.asarray(piece), np.clip(share, 0.0, 1.0))

    @cached_property
    def _shares(self) -> tuple[Curve, NDArray[np.intp]]:
        """The curve with a count of one in each piece, and the first of its parts in each piece."""
        first = np.searchsorted(self.curve.ends, self.pieces.starts)
        return Curve(self.curve.ends, part_weights(self.curve, self.pieces)), np.asarray(first)


def _bounds(looks: Looks, terms: Sequence[SignedRange], beta: float) -> tuple[float, float]:
    """One side for each half of beta."""
    question = RangeCombination.about(Curve.empty(looks.ends), terms)
    low = looks.combined(question.least)
    high = low if np.array_equal(question.least, question.most) else looks.combined(question.most)
    return low.value - low.reach(beta / 2), high.value + high.reach(beta / 2)


@final
@dataclass(frozen=True, eq=False)
class RangeCombination:
    """A signed sum of ranges: the coefficient of each cell, summed up for every piece.

    Inside a piece the cells' coefficients have a `mean`, a `variance`, and lie between `least` and
    `most`: counts are not negative, so the piece's part of the answer lies between these times its count.
    """

    mean: Floats
    variance: Floats
    least: Floats
    most: Floats

    @staticmethod
    def about(pieces: Curve, terms: Sequence[SignedRange]) -> RangeCombination:
        """The question about the given pieces."""
        cells, after = find_changes(terms, int(pieces.ends[-1]))
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
        return RangeCombination(mean, np.maximum(square - mean**2, 0.0), least, most)

    def gather(self, parts: Curve, pieces: Curve) -> tuple[Floats, Floats, Floats]:
        """What a question about parts of pieces is for the pieces: parts weigh by their counts.

        For each piece the mean and the variance of the coefficients of its rows, and the largest of them:
        that of the cells which the question names.
        """
        first = np.searchsorted(parts.ends, pieces.starts)
        weight = part_weights(parts, pieces)
        mean = np.add.reduceat(weight * self.mean, first)
        square = np.add.reduceat(weight * (self.variance + self.mean**2), first)
        least, most = np.minimum.reduceat(self.least, first), np.maximum.reduceat(self.most, first)
        return mean, np.maximum(square - mean**2, 0.0), np.where(-least > most, least, most)


def part_weights(parts: Curve, pieces: Curve) -> Floats:
    """The share of each part in the count of its piece; by cells where a piece has no count."""
    first = np.searchsorted(parts.ends, pieces.starts)
    piece = np.searchsorted(pieces.ends, parts.ends)
    counted = np.add.reduceat(parts.counts, first)[piece]
    even = parts.widths / pieces.widths[piece]
    return np.asarray(np.divide(parts.counts, counted, out=even, where=counted > 0.0))


def find_changes(terms: Sequence[SignedRange], last: int) -> tuple[UInts, Floats]:
    """The cells up to the last at which the coefficient changes, in order, and its value from there on."""
    found = [
        turn for turn in sum_signs((low, high + 1, sign) for low, high, sign in terms) if turn[0] <= last
    ]
    return np.array([cell for cell, _ in found], np.uint64), np.array([float(sum_) for _, sum_ in found])


def sum_signs(runs: Iterable[Run]) -> list[tuple[int, int]]:
    """The places at which the sum of the signs may change, in order, and the sum from there on.

    >>> sum_signs([(2, 9, 1), (4, 6, -1)])
    [(2, 1), (4, 0), (6, 1), (9, 0)]
    """
    steps = Counter[int]()
    for first, behind, sign in runs:
        steps[first] += sign
        steps[behind] -= sign
    found, height = [], 0
    for place in sorted(steps):
        height += steps[place]
        found.append((place, height))
    return found


def overlay_runs(runs: Iterable[Run]) -> Iterator[Run]:
    """Disjoint runs and the sum of the signs on each, where that is not zero.

    >>> list(overlay_runs([(2, 9, 1), (4, 6, -1)]))
    [(2, 4, 1), (6, 9, 1)]
    """
    for (first, height), (behind, _) in pairwise(sum_signs(runs)):
        if height:
            yield first, behind, height


def widest_miss(values: Floats, lower: Floats, upper: Floats, wide: NDArray[np.bool_]) -> float:
    """The largest error that any interval can have if the truth at every edge lies in its bounds.

    `values` are the released counts up to each of the k+1 edges of k pieces, the first of nothing;
    the truth lies between `lower` and `upper` there, and in a piece that is `wide` (of more than
    one cell) both curves rise from edge to edge. An interval is a difference of two prefixes.

    >>> widest_miss(np.array([0.0, 4.0]), np.array([0.0, 1.0]), np.array([0.0, 6.0]), np.array([False]))
    5.0
    """
    lower = np.maximum.accumulate(np.maximum(lower, 0.0))
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    above = np.concatenate([upper - values, (upper[1:] - values[:-1])[wide]])
    below = np.concatenate([values - lower, (values[1:] - lower[:-1])[wide]])
    return float(max(above.max(), 0.0) + max(below.max(), 0.0))


# Linear least squares over units: an estimate of each, and measurements of sums of them.

_STEPS: Final = 100
_TOLERANCE: Final = 1e-14  # of the squared residual: conjugate gradients stop there, or after so many steps


@final
@dataclass(frozen=True, eq=False)
class LinearMeasurements:
    """Linear measurements of the units: `apply` is the matrix, `adjoint` its transpose."""

    apply: Callable[[Floats], Floats]
    adjoint: Callable[[Floats], Floats]
    precision: Floats


@final
@dataclass(frozen=True, eq=False)
class Posterior:
    """Units with an independent estimate each (of `precision` = 1/variance > 0) and measurements of sums.

    The best combination of all of them solves S x = right, S = diag(precision) + sum A' P A, by
    conjugate gradients, or by a `solver` that knows the measurements better and takes many right sides
    at once, along the last axis; S^-1 is its covariance.
    """

    precision: Floats
    measured: Sequence[LinearMeasurements] = ()
    solver: Callable[[Floats], Floats] | None = None

    def mean(self, units: Floats, rows: Sequence[Floats]) -> Floats:
        """The estimate of every unit from the units' own estimates and the values of each measurement."""
        right = np.zeros_like(self.precision)
        for each, values in zip(self.measured, rows, strict=True):
            right += each.adjoint(each.precision * (values - each.apply(units)))
        return units + self.solve(right)

    def variance(self, weights: Floats) -> float:
        """The variance of the weighted sum of the units' estimates."""
        return float(weights @ self.solve(weights))

    def estimator(self, weights: Floats) -> tuple[Floats, list[Floats]]:
        """How the weighted sum of units is put together: a factor for each estimate and each measurement.

        Whatever the iteration left over is mended on the units, so the factors are unbiased as they
        are, to rounding.
        """
        solved = self.solve(weights)
        factors = [each.precision * each.apply(solved) for each in self.measured]
        units = weights - sum(
            (each.adjoint(factor) for each, factor in zip(self.measured, factors, strict=True)),
            np.zeros_like(weights),
        )
        return units, factors

    def solve(self, right: Floats) -> Floats:
        """x with S x = right."""
        if self.solver is not None:
            return self.solver(right)
        if not self.measured:
            return right / self.precision
        scale = 1.0 / np.sqrt(self.precision)
        residual = scale * right
        x, direction, left = np.zeros_like(right), residual.copy(), float(residual @ residual)
        enough = _TOLERANCE * left
        for _ in range(_STEPS):
            if left <= enough:
                break
            image = scale * self._normal(scale * direction)
            step = left / float(direction @ image)
            x += step * direction
            residual -= step * image
            left, previous = float(residual @ residual), left
            direction = residual + (left / previous) * direction
        return scale * x

    def _normal(self, x: Floats) -> Floats:
        image = self.precision * x
        for each in self.measured:
            image += each.adjoint(each.precision * each.apply(x))
        return image


# How far sums of released noise can lie from zero, for certain.

# More points of the grid, and more between the best and its neighbours: closer bounds in more time.
_GRID: Final = np.concatenate([np.geomspace(1e-5, 0.5, 24), 1.0 - np.geomspace(0.5, 1e-4, 17)[1:]])
_NEARBY: Final = 32
_MANY: Final = 2_000  # noises that are summed one by one; of more, sizes are rounded up to save time
_OCTAVE: Final = 64  # rounded sizes in each octave: one is rounded up by at most 1.1%
_STEPS_DOWN: Final = 20 * _OCTAVE
_ROUNDING: Final = 1e-9  # relative, far above what floats can lose: a bound is rounded to the safe side
_LEAST_VARIANCE: Final = 2.0**-200  # keeps precisions, which are inverse variances, finite
_NORMAL: Final = NormalDist()
_NEARLY_NORMAL: Final = 4.0  # from this parameter on the variance of discrete Gaussian noise is its parameter
_FEW_VALUES: Final = 40.0  # below it, larger values weigh less than e^-200
_LARGEST_EXPONENT: Final = 700.0
_LEAST_TAIL: Final = 1e-300  # of the normal law, by floats


def laplace_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise: 2a / (1-a)^2, a = exp(-1/scale); never quite zero."""
    return float(laplace_variances(np.array(float(1 / scale))))


def noise_variance(law: NoiseLaw) -> float:
    """The variance of noise of this law."""
    return gaussian_variance(law.variance) if isinstance(law, Gaussian) else laplace_variance(law)


def noise_spread(law: NoiseLaw) -> float:
    """The scale of the Laplace noise of this variance, if it is large."""
    return math.sqrt(float(law.variance) / 2.0) if isinstance(law, Gaussian) else float(law)


def cells_reach(law: NoiseLaw, number: int, beta: float) -> float:
    """t with P[X1 + ... + Xm > t] <= beta for independent noises of one law; one side only."""
    if isinstance(law, Gaussian):
        return gaussian_reach({(1, law): number}, beta) if number else 0.0
    return laplace_mix_reach(np.ones(number), np.full(number, float(1 / law)), beta)


def gaussian_variance(variance: Fraction) -> float:
    """The variance of discrete Gaussian noise: its parameter, but for small ones; never quite zero.

    From a parameter of 4 on they differ by less than a part of 10^-30 [CKS20, Section 2.4].
    """
    parameter = float(variance)
    if parameter >= _NEARLY_NORMAL:
        return parameter
    squares = np.square(np.arange(1.0, _FEW_VALUES))
    weights = np.exp(-squares / (2 * parameter))
    return max(float(2 * (squares * weights).sum() / (1 + 2 * weights.sum())), _LEAST_VARIANCE)


def gaussian_reach(noises: Mapping[tuple[int, Gaussian], int], beta: float) -> float:
    """t with P[S > t] <= beta for a sum S of independent discrete Gaussian noises; one side only.

    `noises` says how many there are for each factor and law. The moments of each are at most those of normal
    noise of its parameter [CKS20, Section 2.4], which bounds every sum. If all have one factor and one law,
    their sum is nearly discrete Gaussian itself, which bounds it better: docs/proofs/gaussian_noise.md.
    """
    variance = sum(number * factor**2 * float(law.variance) for (factor, law), number in noises.items())
    reach = math.sqrt(2 * variance * -math.log(beta))
    if len(noises) == 1:
        (((factor, law), number),) = noises.items()
        if law.variance >= 1:
            reach = min(reach, abs(factor) * _equal_reach(float(law.variance), number, beta))
    return reach * (1 + _ROUNDING)


def _equal_reach(variance: float, number: int, beta: float) -> float:
    """The same for `number` noises of one variance of at least 1, each taken once: an integer.

    The law of the sum is that of one noise of `number` times the variance, up to a factor. Its weights are
    convex above one deviation, so there a tail from m on is at most that of the normal law from m - 1/2 on;
    elsewhere, that from m - 1 on.
    """
    unlike = 2.001 * math.exp(-(math.pi**2) * variance)
    factor = math.exp(min(2.001 * unlike * (number - 1), _LARGEST_EXPONENT))
    share = beta / factor
    if not _LEAST_TAIL < share < 0.5:
        return math.inf
    deviation = math.sqrt(number * variance)
    normal = -_NORMAL.inv_cdf(share) * (1 + _ROUNDING)
    return math.ceil(deviation * normal - (0.5 if normal > 1 + 1 / deviation else 0.0))


def laplace_variances(rates: Floats) -> Floats:
    """The variance of each noise of scale 1 / rate."""
    return np.maximum(_LEAST_VARIANCE, 2.0 * np.exp(-rates) / np.square(np.expm1(-rates)))


def half_width(rates: Floats, log_beta: Floats) -> Floats:
    """The least integer h with P[|X| > h] <= beta for discrete Laplace noise X of scale 1 / rate.

    That probability is 2 a^(h+1) / (1+a), a = exp(-rate); h is rounded up.
    """
    needed = -(np.log1p(np.expm1(-rates) / 2.0) + log_beta) / rates
    return np.maximum(np.ceil(needed * (1.0 + _ROUNDING)) - 1.0, 0.0)


def chernoff(x: Floats, log_moment: Floats, beta: float) -> Floats:
    """t with P[S > t] <= beta, given ln E[exp(x S)] for some x > 0: each x gives a valid t, rounded up."""
    return np.asarray((log_moment - math.log(beta)) / x * (1.0 + _ROUNDING))


def repeated_reach(sizes: Floats, rates: Floats, times: Floats, beta: float) -> float:
    """t with P[S > t] <= beta for a sum S of independent discrete Laplace noises; one side only.

    In it is `times[i]` times a noise of scale 1 / rates[i], multiplied by sizes[i] > 0. The law is
    symmetric, so -t is as rarely undercut. The moments exist for x sizes[i] < rates[i]. The bound first
    falls and then rises with x: the best x of a grid is looked for, then the best between its neighbours.
    """
    limit = float((rates / sizes).min())

    def reaches(shares: Floats) -> Floats:
        points = limit * shares
        return chernoff(points, _log_moments(points, sizes, rates, times), beta)

    best = int(reaches(_GRID).argmin())
    nearby = np.linspace(_GRID[max(best - 1, 0)], _GRID[min(best + 1, _GRID.size - 1)], _NEARBY)
    return float(reaches(nearby).min())


def laplace_sum_reach(scale: Fraction, terms: int, beta: float) -> float:
    """t with P[|X1 + ... + Xm| > t] <= beta for independent discrete Laplace noises of one scale."""
    if terms == 0:
        return 0.0
    return repeated_reach(np.ones(1), np.array([float(1 / scale)]), np.array([float(terms)]), beta / 2)


def laplace_mix_reach(factors: Floats, rates: Floats, beta: float) -> float:
    """t with P[f1 X1 + f2 X2 + ... > t] <= beta for independent noises X_i of scale 1 / rates[i]."""
    used = factors != 0.0
    if not bool(used.any()):
        return 0.0
    return repeated_reach(*_group_sizes(np.abs(factors[used]), rates[used]), beta)


def _group_sizes(sizes: Floats, rates: Floats) -> tuple[Floats, Floats, Floats]:
    """Sizes and rates with how many times each occurs; many sizes are rounded up to 64 an octave.

    ln M(x) grows with x > 0, so a greater size is a safe one. The smallest in units of their rates,
    under 2^-20 of the greatest, are taken to be that.
    """
    if sizes.size <= _MANY:
        return sizes, rates, np.ones(sizes.size)
    shares = sizes / rates
    greatest = float(shares.max())
    steps = np.minimum(np.floor(-_OCTAVE * np.log2(shares / greatest)), _STEPS_DOWN).astype(np.int64)
    kinds, kind = np.unique(rates, return_inverse=True)
    groups, times = np.unique(kind * (_STEPS_DOWN + 1) + steps, return_counts=True)
    rounded = greatest * np.exp2(-(groups % (_STEPS_DOWN + 1)) / _OCTAVE)
    rates = kinds[groups // (_STEPS_DOWN + 1)]
    return rounded * rates * (1 + _ROUNDING), rates, times.astype(np.float64)


def _log_moments(points: Floats, sizes: Floats, rates: Floats, times: Floats) -> Floats:
    """ln E[exp(x S)] of the whole sum at each point x; of some noises at a time, to need little memory."""
    total = np.zeros(points.size)
    for start in range(0, sizes.size, _MANY):
        some = slice(start, start + _MANY)
        total += log_moments(points[:, np.newaxis] * sizes[some], rates[some]) @ times[some]
    return total


def log_moments(x: Floats, rates: Floats) -> Floats:
    """ln E[exp(x_i X_i)] for discrete Laplace noise X_i of scale 1 / rates[i], |x_i| < rates[i].

    (1 - a e^x)(1 - a e^-x) = (1-a)^2 - e^(x-rate) (1 - e^-x)^2 with a = e^-rate, so nothing cancels
    when x is small.
    """
    return np.asarray(-np.log1p(-np.exp(x - rates) * np.square(np.expm1(-x) / np.expm1(-rates))))


# Expected largest errors, all questions at once: the formulas of Smith and Ullman [SU, section 2].
# A scale is that of discrete Laplace noise, so it holds the sensitivity and epsilon already.

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_MOST_RANGES: Final = 4096  # more ranges make the largest error among them surer and take more time


def independent_error(scale: Fraction, number: int) -> float:
    """E max |X_i| <= scale (ln number + 1) for noise on each of `number` questions [SU, (6) and (10)].

    (6) has a question for every interval, and (10) the nodes of the tree, with the scale
    2 log2(D) / epsilon.
    """
    return float(scale) * (math.log(number) + 1)


def difference_error(scale: Fraction, size: int) -> float:
    """Twice that of `size` prefixes bounds all intervals, each the difference of two [SU, (7)]."""
    return 2 * independent_error(scale, size)


def tree_error(scale: Fraction, nodes: int, terms: int) -> float:
    """Sums of at most `terms` nodes: E max <= terms times the largest noise of a node [SU, (15)]."""
    return terms * independent_error(scale, nodes)


def square_root_error(scale: Fraction, questions: int, terms: int) -> float:
    """E max <= scale sqrt(terms + 1) (ln(2 questions) + 1): signs cancel [SU, notes on Thm 2.5].

    For every x > 0, E max |S| <= (ln(2 questions) + terms ln M(x)) / x, and the moment generating
    function is M(x) <= 1 / (1 - (scale x)^2), for integer noise too. With x = 1 / (scale sqrt(terms + 1))
    the second term is terms ln(1 + 1/terms) <= 1.
    """
    return float(scale) * math.sqrt(terms + 1) * (math.log(2 * questions) + 1)


def typical_error(size: int, rate: Fraction, rows: int | None = None) -> float:
    """About the root-mean-square error of a random range of a good adaptive release; measured, not proved.

    (1 + log2 k) / rate, where k is how many pieces can be told apart: all cells, or one for every ten
    rows in units of the noise; without `rows` all cells. On lognormal, beta and heaped columns of 2 to
    2^62 cells and 10^3 to 10^6 rows, at epsilon 1 and 1/10, errors were .43 to 2.2 times this: count on
    a factor of three.
    """
    distinct = Fraction(size) if rows is None else max(Fraction(2), rows * rate / 10)
    pieces = min(Fraction(size), distinct)
    return float((1 + math.log2(pieces)) / rate)


def largest_reach(scale: Fraction, number: int, beta: float) -> float:
    """t with P[max |X_i| > t] <= beta for `number` noises: beta / number for each."""
    return float(half_width(np.array(float(1 / scale)), np.array(math.log(beta) - math.log(number))))


def spread_ranges(size: int) -> tuple[Ints, Ints]:
    """All ranges of few cells, else some thousands spread evenly over them: the same whenever asked."""
    if size * (size + 1) // 2 <= _MOST_RANGES:
        lows, highs = np.triu_indices(size)
        return lows.astype(np.int64), highs.astype(np.int64)
    index = np.arange(_MOST_RANGES)
    ends = np.array([(index + 0.5) / _MOST_RANGES, (index * _GOLDEN) % 1.0])
    cells = np.minimum(np.floor(ends * size).astype(np.int64), size - 1)
    return cells.min(axis=0), cells.max(axis=0)
