"""Randomizers with short reports: Hadamard response, local hashing, projective geometry, and numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar, Final, final

from partita.errors import check, check_arguments
from partita.local.randomizer import (
    LARGEST_SIZE,
    WHOLE,
    Draws,
    FrequencyRandomizer,
    Numbers,
    Pmf,
    Randomizer,
    exp_bounds,
    is_prime,
    prime_from,
    threshold,
)
from partita.numbers import freeze, integer


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class HadamardResponse(FrequencyRandomizer):
    """Choose a row of a Hadamard matrix, and tell its sign at the column of the cell, or not [ASZ19].

    The row is uniform and has nothing to do with the cell; a report is twice the row, plus the bit. The
    columns 1, ..., size are used: column 0 has the same sign in every row.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance 4 e^epsilon / (e^epsilon - 1)^2 + 1 of any frequency.
    Proof:     docs/proofs/local_randomizers.md

    >>> HadamardResponse(size=1000, epsilon=Fraction(1)).reports
    2048
    """

    kind: ClassVar[str] = "hadamard"

    @property
    def rows(self) -> int:
        """The order of the matrix: the least power of two above size."""
        return 1 << self.size.bit_length()

    @property
    def reports(self) -> int:
        """A row and a bit."""
        return 2 * self.rows

    @property
    def miss(self) -> Fraction:
        """Two columns agree in half of the rows."""
        return Fraction(1, 2)

    @property
    def forged_report_cells(self) -> int:
        """The signs of row 0 are the same everywhere."""
        return self.size

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A row, and its sign at column x + 1, flipped unless the truth is told."""
        row = draws.below(self.rows)
        lie = 1 - draws.chance(self.threshold)
        return 2 * row + (parity(row & (x + 1)) ^ lie)

    def pmf(self, x: int) -> Pmf:
        """In every row one probability for the true sign and one for the other."""
        true, other = (chance / self.rows for chance in self._branches())
        return {
            report: true if report & 1 == parity((report >> 1) & (x + 1)) else other
            for report in self._list_reports()
        }


def parity(number: Numbers) -> Numbers:
    """The number of ones among the 32 lowest bits, modulo two.

    >>> [parity(number) for number in range(8)]
    [0, 1, 1, 0, 1, 0, 0, 1]
    """
    for fold in (16, 8, 4, 2, 1):
        number = number ^ (number >> fold)
    return number & 1


_LARGEST_BUCKETS: Final = 1 << 16


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class LocalHashing(FrequencyRandomizer):
    """Choose h(x) = ((a x + b) mod prime) mod buckets at random, and respond about h(x) [WBLJ17].

    a and b are uniform modulo the prime, which is at least size: the hashes of two cells are
    independent. They need not be quite uniform on the buckets, and `miss` takes that into account. A
    baseline: to count a report takes time in proportion to size. A report is (a prime + b) buckets + bucket.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance about 4 e^epsilon / (e^epsilon - 1)^2 of a frequency near 0.
    Proof:     docs/proofs/local_randomizers.md

    >>> LocalHashing(size=1024, epsilon=Fraction(1)).buckets
    4
    """

    kind: ClassVar[str] = "hashing"
    buckets: int = 0
    prime: int = 0

    def _choose_geometry(self) -> None:
        best = min(round(exp_bounds(self.epsilon, 64)[0]) + 1, _LARGEST_BUCKETS)
        buckets = integer(self.buckets or best, "buckets", low=2, high=_LARGEST_BUCKETS)
        prime = integer(self.prime or prime_from(max(self.size, buckets)), "prime", high=2 * LARGEST_SIZE)
        rule, fix = "must be a prime of at least size and buckets", "leave it out"
        check(prime >= max(self.size, buckets) and is_prime(prime), "prime", rule, given=prime, fix=fix)
        freeze(self, buckets=buckets, prime=prime)

    @property
    def odds(self) -> tuple[int, int]:
        """The true bucket against all others."""
        return 1, self.buckets - 1

    @property
    def reports(self) -> int:
        """A hash function and a bucket."""
        return self.prime**2 * self.buckets

    @property
    def miss(self) -> Fraction:
        """Another cell is hashed, by itself, to the bucket that is reported: summed over all buckets."""
        true, other = self._branches()
        load, fuller = divmod(self.prime, self.buckets)  # so many buckets hold one residue more
        sizes = {Fraction(load + 1, self.prime): fuller, Fraction(load, self.prime): self.buckets - fuller}
        chances = {share: true * share + other * (1 - share) for share in sizes}
        return sum((times * chances[share] * share for share, times in sizes.items()), Fraction(0))

    @property
    def forged_report_cells(self) -> int:
        """The hash function with a = 0 puts all cells into one bucket."""
        return self.size

    def hashed(self, report: Numbers, x: Numbers) -> Numbers:
        """The bucket of cell x under the hash function of a report."""
        function = report // self.buckets
        return (function // self.prime * x + function % self.prime) % self.prime % self.buckets

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A hash function, then the true bucket or another."""
        function = draws.below(self.prime) * self.prime + draws.below(self.prime)
        bucket = self.hashed(function * self.buckets, x)
        truth = draws.chance(self.threshold)
        other = draws.below(self.buckets - 1)
        told = draws.choose(truth, bucket, other + (other >= bucket))
        return function * self.buckets + told

    def pmf(self, x: int) -> Pmf:
        """For every hash function one probability for the true bucket and one for each other."""
        true, other = (chance / self.prime**2 for chance in self._branches())
        return {
            report: true if self.hashed(report, x) == report % self.buckets else other
            for report in self._list_reports()
        }


# Randomizers of numbers: one bit, or a place near the number.

_STEPS: Final = 1 << 20  # of the public grid: rounding to it is far below the noise of any number of people


@dataclass(frozen=True, kw_only=True)
class MeanRandomizer(Randomizer):
    """A randomizer of the numbers 0, ..., size-1 whose mean report is linear in the number, exactly.

    E[report] = offset + slope x, so (mean report - offset) / slope is an unbiased estimate of a mean.
    """

    size: int = _STEPS + 1

    @property
    @abstractmethod
    def slope(self) -> Fraction:
        """By how much the expected report grows with the number."""

    @property
    @abstractmethod
    def offset(self) -> Fraction:
        """The expected report about 0."""

    @property
    @abstractmethod
    def largest_variance(self) -> float:
        """n times the variance of the estimated mean of numbers scaled to [0, 1], at worst."""

    @property
    @abstractmethod
    def least_variance(self) -> float:
        """The variance of a report, whatever the number is, at least."""

    @property
    def forged_report_shift(self) -> Fraction:
        """How far one forged report moves the estimated sum of numbers scaled to [0, 1], at most.

        A report r adds (r - offset) / (slope (size - 1)); an honest one adds a number in [0, 1] on average. m
        forged reports move the sum by at most m times as much.
        """
        return max(self.reports - 1 - self.offset, self.offset) / (self.slope * (self.size - 1))


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class OneBit(MeanRandomizer):
    """The number rounded at random to 0 or 1, and randomized response about that, in one comparison [DJW13].

    P[report = 1] = (2^64 - threshold + step x) / 2^64 with step = (2 threshold - 2^64) / (size - 1). The
    threshold is lowered until the step is a whole number, so the probability is linear in x exactly.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance at most ((e^epsilon + 1) / (e^epsilon - 1))^2 / 4, for numbers in [0, 1].
    Proof:     docs/proofs/local_randomizers.md

    >>> OneBit(epsilon=Fraction(1)).reports
    2
    """

    kind: ClassVar[str] = "one-bit"

    def _verify_threshold(self, given: int) -> int:
        fits = (super()._verify_threshold(given) - WHOLE // 2) % (self.size - 1) == 0
        rule = "must exceed 2^63 by a multiple of size - 1"
        check(fits, "threshold", rule, given=given, fix="leave it out")
        return int(given)

    @property
    def private_threshold(self) -> int:
        """The largest threshold that keeps epsilon and has a whole step."""
        most = threshold(self.epsilon, *self.odds)
        return most - (most - WHOLE // 2) % (self.size - 1)

    @property
    def reports(self) -> int:
        """A bit."""
        return 2

    @property
    def step(self) -> int:
        """By how much the chance of a one, out of 2^64, grows with the number."""
        return (2 * self.threshold - WHOLE) // (self.size - 1)

    @property
    def slope(self) -> Fraction:
        """The step as a probability."""
        return Fraction(self.step, WHOLE)

    @property
    def offset(self) -> Fraction:
        """The chance of a one for the number 0."""
        return 1 - self.chance

    @property
    def largest_variance(self) -> float:
        """That of a fair coin, stretched."""
        return 0.25 / float(self.slope * (self.size - 1)) ** 2

    @property
    def least_variance(self) -> float:
        """That of a bit about one of the ends."""
        return float(self.chance * (1 - self.chance))

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """One comparison of one word."""
        return 1 * draws.chance(draws.ramp(WHOLE - self.threshold, self.step, x))

    def pmf(self, x: int) -> Pmf:
        """Two probabilities."""
        one = self.offset + self.slope * x
        return {0: 1 - one, 1: one}


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class Piecewise(MeanRandomizer):
    """A place in the window of `window` places that begins at the number, or any other place [WXYZ19].

    There are size - 1 + window places. A window of a share of about 1 / (e^(epsilon/2) + 1) is best.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance at most about e^(epsilon/2) / (3 (e^(epsilon/2) - 1)^2), for numbers in [0, 1].
    Proof:     docs/proofs/local_randomizers.md

    >>> Piecewise(size=5, epsilon=Fraction(2)).window
    1
    """

    kind: ClassVar[str] = "piecewise"
    window: int = 0

    def _choose_geometry(self) -> None:
        best = max(1, round((self.size - 1) / exp_bounds(self.epsilon / 2, 64)[0]))
        freeze(self, window=integer(self.window or best, "window", low=1, high=LARGEST_SIZE))

    @property
    def odds(self) -> tuple[int, int]:
        """The places in the window, and out of it."""
        return self.window, self.size - 1

    @property
    def reports(self) -> int:
        """A place."""
        return self.size - 1 + self.window

    @property
    def slope(self) -> Fraction:
        """A window further to the right has its own places there and leaves others to the left."""
        true, other = self._branches()
        return self.window * (true - other)

    @property
    def offset(self) -> Fraction:
        """The mean place for the number 0, whose window is the first one."""
        return self._mean(0, lambda count: count * (count - 1) // 2)

    @property
    def largest_variance(self) -> float:
        """The variance is a convex parabola in the number, and so largest at an end; both ends are alike."""
        return float(self._variance(0) / (self.slope * (self.size - 1)) ** 2)

    @property
    def least_variance(self) -> float:
        """That of a report about the middle, where the parabola is lowest."""
        return float(self._variance((self.size - 1) // 2))

    def _variance(self, x: int) -> Fraction:
        squares = self._mean(x, lambda count: (count - 1) * count * (2 * count - 1) // 6)
        return squares - (self.offset + self.slope * x) ** 2

    def _mean(self, x: int, total: Callable[[int], int]) -> Fraction:
        """The mean, for the number x, of what `total` sums over the first places."""
        true, other = self._branches()
        near, everywhere = total(x + self.window) - total(x), total(self.reports)
        return true * near + other * (everywhere - near)

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A place in the window, or the places out of it counted without the window."""
        inside = draws.chance(self.threshold)
        near, far = x + draws.below(self.window), draws.below(self.size - 1)
        return draws.choose(inside, near, far + self.window * (far >= x))

    def pmf(self, x: int) -> Pmf:
        """One probability in the window and one out of it."""
        true, other = self._branches()
        return {report: true if x <= report < x + self.window else other for report in self._list_reports()}


# Projective geometry response: a point on the hyperplane of the cell, or off it.

_LARGEST_FIELD: Final = 4093
_LARGEST_VECTORS: Final = 1 << 26
# Vectors for each cell, and for any number of cells: more of them allow less variance and take more memory.
_VECTORS_PER_CELL: Final = 16
_FREE_VECTORS: Final = 1 << 16


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class ProjectiveResponse(FrequencyRandomizer):
    """Report a point y of a projective space over F_q, more likely with <x, y> = 0 [FNNT22].

    The field is a prime q, and points are vectors of `dimension` digits whose leading digit is 1. Point
    number i has j digits after the leading one, i = (q^j - 1) / (q - 1) + those digits. Every hyperplane
    has the same number of points, and so has every meeting of two: reports are short, and nearly as good
    as any can be.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     n variance about 4 e^epsilon / (e^epsilon - 1)^2 of a frequency near 0.
    Proof:     docs/proofs/local_randomizers.md

    >>> pgr = ProjectiveResponse(size=1024, epsilon=Fraction(1))
    >>> pgr.field, pgr.dimension, pgr.reports
    (3, 7, 1093)
    """

    kind: ClassVar[str] = "projective"
    field: int = 0
    dimension: int = 0

    def _choose_geometry(self) -> None:
        if not (self.field or self.dimension):
            odds = exp(self.epsilon)
            field, dimension = min(
                _geometries(self.size, odds), key=lambda each: _variance(each[0], each[1], odds)
            )
        else:
            field = integer(self.field, "field", low=2, high=_LARGEST_FIELD)
            dimension = integer(self.dimension, "dimension", low=2, high=_LARGEST_VECTORS.bit_length())
        rule, fix = (
            f"must be a prime with at most {_LARGEST_VECTORS} vectors",
            "leave field and dimension out",
        )
        check(is_prime(field) and field**dimension <= _LARGEST_VECTORS, "field", rule, given=field, fix=fix)
        enough = projective_points(field, dimension) >= self.size
        check(enough, "dimension", "must give size points", given=dimension, fix=fix)
        freeze(self, field=field, dimension=dimension)

    @property
    def odds(self) -> tuple[int, int]:
        """The points on a hyperplane, and off it."""
        on = projective_points(self.field, self.dimension - 1)
        return on, self.reports - on

    @property
    def reports(self) -> int:
        """A report is a point."""
        return projective_points(self.field, self.dimension)

    @property
    def miss(self) -> Fraction:
        """The point is on the hyperplane of another cell, which meets the first in `both` points."""
        (on, _), both = self.odds, projective_points(self.field, self.dimension - 2)
        true, other = self._branches()
        return both * true + (on - both) * other

    @property
    def forged_report_cells(self) -> int:
        """The points of a hyperplane; not all of them need be cells."""
        return min(self.size, self.odds[0])

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """All digits but the one under the leading 1 of x are free; that one makes <x, y> 0 or 1.

        On the hyperplane the free digits are not all zero, and every point is met q - 1 times. Off it
        <x, y> = 1 can be had by scaling, and every point is met once.
        """
        q, vectors = self.field, self.field ** (self.dimension - 1)
        on = draws.chance(self.threshold)
        nonzero, any_vector = 1 + draws.below(vectors - 1), draws.below(vectors)
        free = draws.choose(on, nonzero, any_vector)
        place, tail = self._vector(x)
        high = free // place
        low = free - high * place
        pivot = (1 - on - self._product(tail, low)) % q
        return self.point((high * q + pivot) * place + low)

    def pmf(self, x: int) -> Pmf:
        """One probability on the hyperplane and one off it."""
        true, other = self._branches()
        return {report: other if self.meets(x, report) else true for report in self._list_reports()}

    def meets(self, x: int, report: int) -> int:
        """<x, y> for the points of a cell and of a report."""
        return int(self._product(self.vector(x), self.vector(report))) % self.field

    def vector(self, point: Numbers) -> Numbers:
        """The digits of a point as one number to base q."""
        place, tail = self._vector(point)
        return place + tail

    def _vector(self, point: Numbers) -> tuple[Numbers, Numbers]:
        """The weight of the leading digit of a point, and the number that its other digits make."""
        q = self.field
        place = 1 + sum(
            (q**j - q ** (j - 1)) * (point >= projective_points(q, j)) for j in range(1, self.dimension)
        )
        return place, point - (place - 1) // (q - 1)

    def _product(self, one: Numbers, other: Numbers) -> Numbers:
        """The sum of the products of digits."""
        q, total = self.field, 0
        for _ in range(self.dimension):
            next_one, next_other = one // q, other // q
            total = total + (one - next_one * q) * (other - next_other * q)
            one, other = next_one, next_other
        return total

    def point(self, vector: Numbers) -> Numbers:
        """The point on which a nonzero vector lies: scaled until its leading digit is 1."""
        q = self.field
        place = 1 + sum((q**j - q ** (j - 1)) * (vector >= q**j) for j in range(1, self.dimension))
        inverse = _power(vector // place, q - 2, q)
        scaled: Numbers = 0
        for j in range(self.dimension):
            following = vector // q
            scaled = scaled + (vector - following * q) * inverse % q * q**j
            vector = following
        return scaled - place + (place - 1) // (q - 1)


def projective_points(field: int, dimension: int) -> int:
    """The number of points of a projective space: (q^d - 1) / (q - 1)."""
    return int(field**dimension - 1) // (field - 1)


def _power(base: Numbers, exponent: int, modulus: int) -> Numbers:
    """base^exponent modulo `modulus`; q - 2 inverts modulo a prime q [Fermat]."""
    result: Numbers = 1
    while exponent:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


def _geometries(size: int, odds: float) -> Iterator[tuple[int, int]]:
    """Fields and dimensions whose vectors are not many more than cells."""
    for field in range(2, min(_LARGEST_FIELD, int(2 * odds) + 8)):
        dimension = 2
        while projective_points(field, dimension) < size:
            dimension += 1
        if is_prime(field) and field**dimension <= max(_FREE_VECTORS, _VECTORS_PER_CELL * size):
            yield field, dimension


def _variance(field: int, dimension: int, odds: float) -> float:
    """n times the variance at frequency 0; a float, which chooses between laws that are all private."""
    points, on, both = (projective_points(field, dimension - less) for less in range(3))
    total = odds * on + points - on
    hit, miss = odds * on / total, (odds * both + on - both) / total
    return miss * (1 - miss) / (hit - miss) ** 2
