"""Local hashing: randomized response about a random hash of the cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

from partita.errors.checks import check
from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import LARGEST_SIZE, Json, Pmf
from partita.local.randomizer.primes import is_prime, prime_from
from partita.local.randomizer.randomizer import FrequencyRandomizer
from partita.local.randomizer.thresholds import exp_bounds
from partita.numbers import freeze, integer

_LARGEST_BUCKETS: Final = 1 << 16


@final
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

    def _settle(self) -> None:
        best = min(round(exp_bounds(self.epsilon, 64)[0]) + 1, _LARGEST_BUCKETS)
        buckets = integer(self.buckets or best, "buckets", low=2, high=_LARGEST_BUCKETS)
        prime = integer(self.prime or prime_from(max(self.size, buckets)), "prime", high=2 * LARGEST_SIZE)
        rule, fix = "must be a prime of at least size and buckets", "leave it out"
        check(prime >= max(self.size, buckets) and is_prime(prime), "prime", rule, given=prime, fix=fix)
        freeze(self, buckets=buckets, prime=prime)

    def _geometry(self) -> Json:
        return {"buckets": self.buckets, "prime": self.prime}

    @property
    def odds(self) -> tuple[int, int]:
        """The true bucket against all others."""
        return 1, self.buckets - 1

    @property
    def reports(self) -> int:
        """A hash function and a bucket."""
        return self.prime**2 * self.buckets

    @property
    def hit(self) -> Fraction:
        """The true bucket is told."""
        return self.chance

    @property
    def miss(self) -> Fraction:
        """Another cell is hashed, by itself, to the bucket that is told: summed over all buckets."""
        true, other = self._branches()
        fuller, load = self.prime % self.buckets, self.prime // self.buckets
        shares = [Fraction(load + 1, self.prime)] * (fuller > 0) + [Fraction(load, self.prime)]
        times = [fuller] * (fuller > 0) + [self.buckets - fuller]
        told = [true * share + other * (1 - share) for share in shares]
        return sum((t * c * s for t, c, s in zip(times, told, shares, strict=True)), Fraction(0))

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
            for report in self._enumerable()
        }
