"""Randomizers of numbers: one bit, or a place near the number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

from partita.errors.errors import InvalidParameter
from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import LARGEST_SIZE, Json, Pmf
from partita.local.randomizer.randomizer import Randomizer
from partita.local.randomizer.thresholds import WHOLE, exp_bounds, threshold
from partita.numbers import freeze, integer

_STEPS: Final = 1 << 20


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

    def _verified(self, given: int) -> int:
        if (super()._verified(given) - WHOLE // 2) % (self.size - 1):
            rule = "must exceed 2^63 by a multiple of size - 1"
            raise InvalidParameter("threshold", rule, given=given, fix="leave it out")
        return int(given)

    @property
    def private_threshold(self) -> int:
        """The largest threshold that keeps epsilon and has a whole step."""
        most = threshold(self.epsilon, *self.odds)
        return most - (most - WHOLE // 2) % (self.size - 1)

    @property
    def odds(self) -> tuple[int, int]:
        """One bit against the other."""
        return 1, 1

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

    def _settle(self) -> None:
        best = max(1, round((self.size - 1) / exp_bounds(self.epsilon / 2, 64)[0]))
        freeze(self, window=integer(self.window or best, "window", low=1, high=LARGEST_SIZE))

    def _geometry(self) -> Json:
        return {"window": self.window}

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
        return {report: true if x <= report < x + self.window else other for report in self._enumerable()}
