"""Projective geometry response: a point on the hyperplane of the cell, or off it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar, Final, final

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import Json, Pmf
from partita.local.randomizer.primes import is_prime
from partita.local.randomizer.randomizer import FrequencyRandomizer
from partita.numbers import freeze, integer

_LARGEST_FIELD: Final = 4093
_LARGEST_VECTORS: Final = 1 << 26
_ROOM: Final = 16
_LEAST_ROOM: Final = 1 << 16
_LEAVE: Final = "leave field and dimension out"


@final
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

    def _settle(self) -> None:
        if not (self.field or self.dimension):
            field, dimension = _best_geometry(self.size, exp(self.epsilon))
        else:
            field = integer(self.field, "field", low=2, high=_LARGEST_FIELD)
            dimension = integer(self.dimension, "dimension", low=2, high=_LARGEST_VECTORS.bit_length())
        if not is_prime(field) or field**dimension > _LARGEST_VECTORS:
            raise InvalidParameter(
                "field", f"must be a prime with at most {_LARGEST_VECTORS} vectors", given=field, fix=_LEAVE
            )
        rule = "must give size points"
        check(_points(field, dimension) >= self.size, "dimension", rule, given=dimension, fix=_LEAVE)
        freeze(self, field=field, dimension=dimension)

    def _geometry(self) -> Json:
        return {"field": self.field, "dimension": self.dimension}

    @property
    def odds(self) -> tuple[int, int]:
        """The points on a hyperplane, and off it."""
        on = _points(self.field, self.dimension - 1)
        return on, self.reports - on

    @property
    def reports(self) -> int:
        """A report is a point."""
        return _points(self.field, self.dimension)

    @property
    def hit(self) -> Fraction:
        """The point is on the hyperplane of its cell."""
        return self.chance

    @property
    def miss(self) -> Fraction:
        """The point is on the hyperplane of another cell, which meets the first in `both` points."""
        (on, _), both = self.odds, _points(self.field, self.dimension - 2)
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
        return {report: other if self.meets(x, report) else true for report in self._enumerable()}

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
        place = 1 + sum((q**j - q ** (j - 1)) * (point >= _points(q, j)) for j in range(1, self.dimension))
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


def _points(field: int, dimension: int) -> int:
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


def _best_geometry(size: int, odds: float) -> tuple[int, int]:
    """The field and dimension of least variance, among those whose vectors are not many more than cells."""
    return min(_geometries(size, odds), key=lambda geometry: _variance(geometry, odds))


def _geometries(size: int, odds: float) -> Iterator[tuple[int, int]]:
    for field in range(2, min(_LARGEST_FIELD, int(2 * odds) + 8)):
        dimension = 2
        while _points(field, dimension) < size:
            dimension += 1
        if is_prime(field) and field**dimension <= max(_LEAST_ROOM, _ROOM * size):
            yield field, dimension


def _variance(geometry: tuple[int, int], odds: float) -> float:
    """n times the variance at frequency 0; a float, which chooses between laws that are all private."""
    field, dimension = geometry
    points, on, both = (_points(field, dimension - less) for less in range(3))
    total = odds * on + points - on
    hit, miss = odds * on / total, (odds * both + on - both) / total
    return miss * (1 - miss) / (hit - miss) ** 2
