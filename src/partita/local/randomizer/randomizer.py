"""What every local randomizer is [Dwork-Roth, Definition 12.1]: a branch by a threshold, then uniform."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from partita.errors.checks import check
from partita.local.randomizer.law import LARGEST_SIZE, Json, LocalLaw
from partita.local.randomizer.thresholds import WHOLE, checked_epsilon, threshold
from partita.numbers import freeze, integer


@dataclass(frozen=True, kw_only=True)
class Randomizer(LocalLaw):
    """A public law from cells 0, ..., size-1 to reports 0, ..., reports-1.

    A cell favours some reports. With probability exactly threshold / 2^64 the report is uniform among
    those, else uniform among the others. The threshold is the largest private one unless another is
    given, which is refused if it would lose more than epsilon: whoever reads a description of a
    randomizer has verified its epsilon. Zero stands for a threshold that is not given.
    """

    threshold: int = 0

    def __post_init__(self) -> None:
        freeze(
            self,
            size=integer(self.size, "size", low=2, high=LARGEST_SIZE),
            epsilon=checked_epsilon(self.epsilon),
        )
        self._settle()
        freeze(self, threshold=self._verified(self.threshold or self.private_threshold))

    @property
    @abstractmethod
    def odds(self) -> tuple[int, int]:
        """How many outcomes of the branch a cell favours, and how many not."""

    @property
    def private_threshold(self) -> int:
        """The largest threshold that keeps epsilon, by integer arithmetic."""
        return threshold(self.epsilon, *self.odds)

    @property
    def chance(self) -> Fraction:
        """The probability of the favoured branch, exactly."""
        return Fraction(self.threshold, WHOLE)

    def to_json(self) -> Json:
        """All that a device needs to know, and to verify."""
        return {
            "kind": self.kind,
            "size": self.size,
            "epsilon": str(self.epsilon),
            "threshold": str(self.threshold),
            **self._geometry(),
        }

    def _settle(self) -> None:
        """Choose or check what the kind has beside size and epsilon; most have nothing."""
        return

    def _geometry(self) -> Json:
        return {}

    def _verified(self, given: int) -> int:
        """A threshold with which favoured outcomes are likelier, but at most e^epsilon times so."""
        favoured, others = self.odds
        least, most = WHOLE * favoured // (favoured + others) + 1, self.private_threshold
        rule, fix = f"must lie between {least} and {most} for epsilon {self.epsilon}", "leave it out"
        check(least <= integer(given, "threshold") <= most, "threshold", rule, given=given, fix=fix)
        return int(given)

    def _branches(self) -> tuple[Fraction, Fraction]:
        """The probability of each favoured outcome, and of each other one."""
        favoured, others = self.odds
        return self.chance / favoured, (1 - self.chance) / others


@dataclass(frozen=True, kw_only=True)
class FrequencyRandomizer(Randomizer):
    """A randomizer whose reports support cells, with two probabilities that are known exactly.

    A report supports the cell it was made of with probability `hit`, and any other cell with
    probability `miss`. So the number of supporters of a cell, less n miss, over hit - miss, is an
    unbiased estimate of how many people hold it.
    """

    @property
    @abstractmethod
    def hit(self) -> Fraction:
        """The probability that a report supports its own cell."""

    @property
    @abstractmethod
    def miss(self) -> Fraction:
        """The probability that a report supports a given other cell."""

    @property
    def forged_report_shift(self) -> Fraction:
        """How many people one forged report adds to the estimated count of a cell, or takes from it, at most.

        The estimated count of n reports is (supporters - n miss) / (hit - miss): a report that supports the
        cell adds (1 - miss) / (hit - miss), any other takes miss / (hit - miss). m forged reports move it by
        at most m times as much. An honest one moves it by at most 1, on average.
        """
        return max(1 - self.miss, self.miss) / (self.hit - self.miss)

    @property
    @abstractmethod
    def forged_report_cells(self) -> int:
        """How many cells one report that is accepted can support at once, at most."""

    def variance(self, frequency: float = 0.0) -> float:
        """n times the variance of an estimated frequency, where the true one is as given."""
        return float(self.exact_variance(Fraction(frequency)))

    def exact_variance(self, frequency: Fraction) -> Fraction:
        """The same, as a ratio of integers."""
        hit, miss = self.hit, self.miss
        spread = frequency * hit * (1 - hit) + (1 - frequency) * miss * (1 - miss)
        return spread / (hit - miss) ** 2
