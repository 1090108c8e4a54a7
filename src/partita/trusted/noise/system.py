"""The interface `Noise` of mechanisms, and `SystemNoise`, whose laws are exact given uniform words.

Tests put other objects in the place of `SystemNoise`: tapes, exact finite laws, recorders. A mechanism
cannot tell them apart, so the code that is tested is the code that is shipped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from partita.arrays import Ints, UInts, integer_array
from partita.errors import InvalidParameter, check, check_data
from partita.numbers import check_choice, integer, rational
from partita.trusted.noise import laws
from partita.trusted.noise.flips import choose_run
from partita.trusted.noise.gaussian import (
    LARGEST_INT64_VARIANCE,
    LARGEST_VARIANCE,
    SMALLEST_VARIANCE,
    gaussian_tables,
)
from partita.trusted.noise.hazard import MARGIN, FirstSuccess, Law, Sweep, hazard
from partita.trusted.noise.laws import (
    Exact,
    IntegerArray,
    KernelWords,
    Real,
    ThresholdTable,
    Uniform,
    Words,
    WordSource,
    enclose,
    tables,
)


class Positions(Protocol):
    """Positions walked in order until fresh noise first exceeds the level of one."""

    def run(self, level: int, length: int) -> int | None:
        """The offset of the first success among the next `length` positions, or None."""


class SuccessSearch(Protocol):
    """A fast way to find many first successes, one after another."""

    def ends(self, start: int) -> UInts:
        """Ends of the segments from `start` on, up to the first one in doubt."""


class Noise(Protocol):
    """A source of integer noise whose law is exactly the one its name says."""

    @property
    def secure(self) -> bool:
        """Whether what is released with this noise carries its guarantee."""

    def session(self) -> Noise:
        """The same noise for one release: one key, dropped with the session."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        """x plus discrete Laplace noise; entry i gets noise of scale / parts[i]."""

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        """x plus discrete Gaussian noise: P[k] proportional to exp(-k^2 / (2 variance))."""

    def draw(self, law: Law, scale: Fraction) -> int:
        """One noise of the law."""

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        """Fresh noise of the law at every position."""

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> SuccessSearch | None:
        """A fast walk over a stream of weights, where this noise has one."""

    def bernoulli(self, probability: Exact) -> bool:
        """True with exactly the given probability."""

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        """i with probability exactly weights[i] / sum(weights)."""

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        """i with probability exactly proportional to exp(scores[i] / scale)."""

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        """A place among lengths[0] candidates of scores[0], then lengths[1] of scores[1], and so on."""

    def integers_below(self, bound: int, count: int) -> Ints:
        """`count` integers, each uniform among 0, ..., bound-1."""


def support(weights: Sequence[int | Fraction]) -> tuple[list[int], list[Fraction]]:
    """The indices of positive weights and these weights; there must be one."""
    if not isinstance(weights, Sequence | np.ndarray):
        raise InvalidParameter("weights", "must be a sequence of numbers", given=weights, fix="pass a list")
    exact = [rational(weight, "weights") for weight in weights]
    rule, fix = "must be non-negative and not all zero", "drop the negative ones"
    check(not any(weight < 0 for weight in exact) and any(exact), "weights", rule, given=weights, fix=fix)
    indices = [index for index, weight in enumerate(exact) if weight]
    return indices, [exact[index] for index in indices]


class Softmax:
    """P[i] proportional to exp(scores[i] / scale), by classes of equal score.

    The class is chosen by its total weight, a real number known by enclosures; within a class
    all are equally likely.
    """

    def __init__(self, scores: IntegerArray, scale: Fraction) -> None:
        check_data(scores.size, "scores", "must hold at least one score", fix="offer a candidate")
        below_best = int(scores.max()) - scores.astype(object)
        classes, self._class_of, counts = np.unique(below_best, return_inverse=True, return_counts=True)
        self._exponents = [-int(gap) / scale for gap in classes]
        self._counts: list[int] = counts.tolist()
        self._partial: tuple[int, list[arb]] = (0, [])

    def level(self, uniform: Uniform) -> int:
        """The class in which the uniform lies, best scores first."""
        last = len(self._counts) - 1
        return bisect_left(range(last), True, key=lambda i: not uniform.reaches(self._tail(i + 1)))

    def candidates(self, level: int) -> Ints:
        """The members of a class."""
        return np.flatnonzero(self._class_of == level)

    def _tail(self, level: int) -> Real:
        """The probability of a class from `level` on."""

        def ratio() -> arb:
            sums = self._sums()
            return sums[level] / sums[0]

        return ratio

    def _sums(self) -> list[arb]:
        """The weight of all classes from each one on, at the working precision."""
        if self._partial[0] != ctx.prec:
            terms = [n * enclose(x).exp() for n, x in zip(self._counts, self._exponents, strict=True)]
            self._partial = (ctx.prec, list(accumulate(reversed(terms)))[::-1])
        return self._partial[1]


Path: TypeAlias = Literal["auto", "exact", "numpy", "compiled"]

SMALLEST_SCALE: Final = Fraction(1, 2**20)
LARGEST_SCALE: Final = Fraction(2**62)
_LARGEST_INT64_SCALE: Final = 2**50
_LARGEST_SUM: Final = 2.0**62  # a sum in floats below this is right to a millionth of it
_INT64: Final = np.iinfo(np.int64)
_SECURE: Final = (Words, KernelWords)


class SystemNoise:
    """Discrete Laplace, geometric and categorical noise whose law is exact given uniform words.

    Every call draws from a source of its own unless it belongs to a `session`, which keeps one
    source for a whole release. `path` and `margin` choose the implementation; they never
    change the result for the same words.

    >>> SYSTEM.add([10, 20, 30], 1).shape
    (3,)
    """

    def __init__(
        self, words: Callable[[], WordSource] = Words, *, path: Path = "auto", margin: float = MARGIN
    ) -> None:
        self._words = words
        self._path = check_choice(path, "path", get_args(Path))
        self._margin = margin
        check(MARGIN <= margin < 1, "margin", "must lie in [2^-36, 1)", given=margin, fix="leave it out")

    @property
    def secure(self) -> bool:
        """Whether the words come from the kernel or a cipher that it keyed."""
        return self._words in _SECURE

    def session(self) -> SystemNoise:
        """The same noise from one source of words, so that words taken can be given back."""
        return _Session(self._words(), path=self._path, margin=self._margin)

    def discrete_laplace(self, scale: object, size: int | None = None) -> Any:
        """Noise with P[X = k] = (1-a)/(1+a) a^|k|, a = exp(-1/scale); an int, or an array of `size`."""
        return self._draw(scale, size, signed=True)

    def geometric(self, scale: object, size: int | None = None) -> Any:
        """Noise with P[X = k] = (1-a) a^k for k >= 0, a = exp(-1/scale); an int, or an array of `size`."""
        return self._draw(scale, size, signed=False)

    def discrete_laplace_units(self, unit: object, k: ArrayLike) -> IntegerArray:
        """Discrete Laplace noise of scale 1 / (unit k[i]) in entry i, all from one table.

        floor(G / k) is geometric with ratio exp(-unit k) when G is geometric with ratio exp(-unit),
        and the difference of two independent geometric variables is discrete Laplace.
        """
        unit, parts = rational(unit, "unit"), _parts(k)
        check(unit > 0, "unit", "must be positive", given=unit, fix="pass 1 / scale")
        scale = _scale(1 / unit)
        geometric: Any = self._integers(scale, 2 * parts.size, signed=False)
        up, down = geometric.reshape(2, *parts.shape) // parts
        drawn: IntegerArray = np.asarray(up - down, dtype=geometric.dtype)
        return drawn

    def add(self, x: ArrayLike, scale: object, *, parts: ArrayLike | None = None) -> Any:
        """x plus fresh discrete Laplace noise of the scale (divided by `parts`, entry by entry)."""
        values, scale = _integers_of(x, "x"), _scale(scale)
        if parts is None:
            noise = self._integers(scale, values.size, signed=True).reshape(values.shape)
        else:
            noise = self.discrete_laplace_units(1 / scale, _fit_shape(_parts(parts), values.shape))
        noisy = _sum(values, noise)
        return noisy if noisy.ndim else int(noisy)

    def discrete_gaussian(self, variance: object, size: int | None = None) -> Any:
        """Noise with P[X = k] proportional to exp(-k^2 / (2 variance)); an int, or an array of `size`."""
        count = 1 if size is None else integer(size, "size", low=0)
        drawn = self._gaussians(check_variance(variance), count)
        return drawn if size is not None else int(drawn[0])

    def add_gaussian(self, x: ArrayLike, variance: object) -> Any:
        """x plus fresh discrete Gaussian noise of the variance parameter [CKS20]."""
        values = _integers_of(x, "x")
        noise = self._gaussians(check_variance(variance), values.size).reshape(values.shape)
        noisy = _sum(values, noise)
        return noisy if noisy.ndim else int(noisy)

    def draw(self, law: Law, scale: Fraction) -> int:
        """One noise of the law."""
        drawn = self.geometric(scale) if _law(law) == "geometric" else self.discrete_laplace(scale)
        return int(drawn)

    def first_success(self, law: Law, scale: Fraction) -> FirstSuccess:
        """Fresh noise of the law at every position; see `FirstSuccess`."""
        return FirstSuccess(hazard(_law(law), _scale(scale)), Uniform(self._words()), margin=self._margin)

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> Sweep | None:
        """A fast walk over a stream of weights; None where only the exact path may be used.

        That is so outside of a session, too: words that the walk gives back must be handed out again.
        """
        source = self._words()
        unshared = self.secure and not isinstance(self, _Session)
        if unshared or self._path == "exact" or source.bits != 64 or last >= 1 << 64:
            return None
        return Sweep(
            law=_law(law),
            scale=_scale(scale),
            threshold=threshold,
            positions=positions,
            weights=weights,
            last=last,
            source=source,
            compiled=self._compiled(positions.size, laws.POSITIONS) and threshold < 1 << 61,
            margin=self._margin,
        )

    def bernoulli(self, probability: Exact | int) -> bool:
        """True with exactly the given probability: a Fraction, or a real number by its enclosures."""
        if not callable(probability):
            probability = rational(probability, "probability")
            fix = "rescale it"
            check(0 <= probability <= 1, "probability", "must lie in [0, 1]", given=probability, fix=fix)
        return Uniform(self._words()).below(probability)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        """i with probability exactly weights[i] / sum(weights)."""
        indices, positive = support(weights)
        tails = list(accumulate(reversed(positive)))[::-1]
        source = self._words()
        table = ThresholdTable(lambda i: tails[i] / tails[0], len(positive), bits=source.bits)
        return indices[int(table.draw(1, source)[0])]

    def exponential(self, scores: ArrayLike, scale: object) -> int:
        """i with probability exactly proportional to exp(scores[i] / scale), for integer scores."""
        softmax = Softmax(_integers_of(scores, "scores").ravel(), _scale(scale))
        source = self._words()
        candidates = softmax.candidates(softmax.level(Uniform(source)))
        return int(candidates[Uniform(source).integer_below(candidates.size)])

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: object) -> int:
        """A place among lengths[0] candidates of scores[0], then lengths[1] of scores[1], and so on.

        Candidates are taken in a random order, each is accepted with probability exactly
        exp((its score - best score) / scale), and the first that is accepted is chosen [MS20, Alg 1].
        """
        exact, sizes = _scale(scale), _integers_of(lengths, "lengths").ravel()
        values = _integers_of(scores, "scores").ravel()
        fix = "pass a positive length for each score"
        check_data(values.shape == sizes.shape, "lengths", "must be as many as scores", fix=fix)
        check_data(not sizes.size or sizes.min() > 0, "lengths", "must be positive", fix=fix)
        source = self._words()
        run = choose_run(values, sizes, exact, source, fast=self._path != "exact")
        return _sum_of(sizes[:run]) + Uniform(source).integer_below(int(sizes[run]))

    def integers_below(self, bound: int, count: int) -> Ints:
        """`count` integers, each uniform among 0, ..., bound-1, for a bound of at most 2^63."""
        return laws.integers_below(self._words(), bound, integer(count, "count", low=0))

    def _compiled(self, count: int, large: int) -> bool:
        return self._path == "compiled" or (self._path == "auto" and laws.worthwhile(count, large=large))

    def _draw(self, scale: object, size: int | None, *, signed: bool) -> Any:
        count = 1 if size is None else integer(size, "size", low=0)
        drawn = self._integers(_scale(scale), count, signed=signed)
        return drawn if size is not None else int(drawn[0])

    def _integers(self, scale: Fraction, count: int, *, signed: bool) -> IntegerArray:
        source = self._words()
        drawn = tables(scale, source.bits)
        compiled = source.bits == 64 and self._compiled(count, laws.DRAWS)
        out: IntegerArray = np.empty(count, dtype=object if scale > _LARGEST_INT64_SCALE else np.int64)
        start = 0
        for top, low in drawn.blocks(count, source, compiled=compiled):
            block = laws.assemble(top, low, drawn.shift, signed=signed, wide=out.dtype == object)
            out = out if out.dtype == block.dtype else out.astype(object)
            out[start : start + block.size] = block
            start += block.size
        return out

    def _gaussians(self, variance: Fraction, count: int) -> IntegerArray:
        source = self._words()
        fast = self._path != "exact" and source.bits == 64
        wide = variance > LARGEST_INT64_VARIANCE
        compiled = fast and not wide and self._compiled(count, laws.DRAWS)
        out: IntegerArray = np.empty(count, object if wide else np.int64)
        start = 0
        drawn = gaussian_tables(variance, source.bits)
        for block in drawn.blocks(count, source, margin=self._margin, fast=fast, compiled=compiled):
            out = out if out.dtype == block.dtype else out.astype(object)
            out[start : start + block.size] = block
            start += block.size
        return out


class _Session(SystemNoise):
    """Noise from one source, for one release."""

    def __init__(self, source: WordSource, *, path: Path, margin: float) -> None:
        super().__init__(lambda: source, path=path, margin=margin)
        self._secure = type(source) in _SECURE

    @property
    def secure(self) -> bool:
        """Whether the source of this session is a secure one."""
        return self._secure

    def session(self) -> SystemNoise:
        """A session within a release continues with its source."""
        return self


def _sum_of(sizes: IntegerArray) -> int:
    """The sum as a Python int: of 64 bits at a time where it fits, else number by number."""
    if sizes.dtype == object:
        return sum(sizes.tolist())
    return int(sizes.sum()) if float(sizes.sum(dtype=np.float64)) < _LARGEST_SUM else sum(sizes.tolist())


def _sum(values: IntegerArray, noise: IntegerArray) -> IntegerArray:
    """The entrywise sum: int64 if every noisy value fits, a fact about the sum alone; else Python ints."""
    if values.dtype == noise.dtype == np.int64:
        lowest = int(values.min(initial=0)) + int(noise.min(initial=0))
        highest = int(values.max(initial=0)) + int(noise.max(initial=0))
        if _INT64.min <= lowest <= highest <= _INT64.max:
            return np.add(values, noise, out=noise)
    total = np.asarray(values.astype(object) + noise.astype(object), dtype=object)
    fits = all(_INT64.min <= value <= _INT64.max for value in total.flat)
    return total.astype(np.int64) if fits else total


def _scale(scale: object) -> Fraction:
    exact = rational(scale, "scale")
    rule = "must lie between 2^-20 and 2^62"
    check(SMALLEST_SCALE <= exact <= LARGEST_SCALE, "scale", rule, given=scale, fix="change epsilon")
    return exact


def check_variance(variance: object) -> Fraction:
    """The variance of Gaussian noise that can be drawn."""
    exact = rational(variance, "variance")
    rule = "must lie between 2^-20 and 2^124"
    check(SMALLEST_VARIANCE <= exact <= LARGEST_VARIANCE, "variance", rule, given=variance, fix="change rho")
    return exact


def _law(law: Law) -> Law:
    return check_choice(law, "law", get_args(Law))


def _parts(parts: ArrayLike) -> Ints:
    array = np.asarray(parts)
    valid = array.dtype.kind in "iu" and not (array < 1).any() and not (array > _INT64.max).any()
    rule, fix = "must be positive 64-bit integers", "pass an integer array"
    check(valid, "parts", rule, given=parts, fix=fix)
    return array.astype(np.int64)


def _fit_shape(parts: Ints, shape: tuple[int, ...]) -> Ints:
    try:
        return np.broadcast_to(parts, shape)
    except ValueError:
        rule = f"must fit the shape of x, {shape}"
        raise InvalidParameter("parts", rule, given=str(parts.shape), fix="pass one for each entry") from None


def _integers_of(x: ArrayLike, name: str) -> IntegerArray:
    """x as int64, or as Python ints where those do not fit."""
    array = integer_array(x, name)
    fits = array.dtype.kind == "i" or (array.dtype.kind == "u" and int(array.max(initial=0)) <= _INT64.max)
    return array.astype(np.int64 if fits else object, copy=False)


SYSTEM: Final[SystemNoise] = SystemNoise()
"""The default of every mechanism: AES-256-CTR words under a key from the kernel."""

KERNEL: Final[SystemNoise] = SystemNoise(KernelWords)
"""Kernel entropy at the time of each draw, for pan-private state."""

add = SYSTEM.add
add_gaussian = SYSTEM.add_gaussian
bernoulli = SYSTEM.bernoulli
categorical = SYSTEM.categorical
discrete_gaussian = SYSTEM.discrete_gaussian
discrete_laplace = SYSTEM.discrete_laplace
discrete_laplace_units = SYSTEM.discrete_laplace_units
exponential = SYSTEM.exponential
first_success = SYSTEM.first_success
geometric = SYSTEM.geometric
