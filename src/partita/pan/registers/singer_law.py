"""The law of a register: uniform within a difference set, and uniform outside of it, rarer by e^-epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check
from partita.local.randomizer.thresholds import threshold
from partita.pan.registers.singer import DifferenceSet, candidates
from partita.pan.sketch.draws import WORD, Ints


@final
@dataclass(frozen=True)
class SingerLaw:
    """A register starts in the set with probability within / 2^64, uniform on either side.

    `hit` is the probability that a register lies in the set moved by as much as the register was, `miss` that
    it lies in the set moved otherwise: the same for every other move.
    """

    set: DifferenceSet
    within: int

    @property
    def hit(self) -> Fraction:
        """The probability to start in the set."""
        return Fraction(self.within, WORD)

    @property
    def miss(self) -> Fraction:
        """The probability to start in a translate of the set, which has lambda of its points in the set."""
        k, s, common = self.set.period, self.set.size, self.set.common
        return self.hit * common / s + (1 - self.hit) * (s - common) / (k - s)

    @property
    def ratio(self) -> Fraction:
        """How much more likely a place in the set is than one outside: at most e^epsilon."""
        k, s = self.set.period, self.set.size
        return self.hit * (k - s) / ((1 - self.hit) * s)

    @property
    def spread(self) -> float:
        """The variance of an estimated fraction that is small, times the number of registers."""
        return float(self.miss * (1 - self.miss) / (self.hit - self.miss) ** 2)

    def variance(self, weights: Ints) -> float:
        """The greatest variance of weights[register] over all moves of a register."""
        first, second = (
            self._means(values)
            for values in (weights.astype(np.float64), np.square(weights, dtype=np.float64))
        )
        return float(np.maximum(second - first**2, 0).max())

    def _means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of values[register] for a register that was moved by c, for each c: a correlation."""
        k, s = self.set.period, self.set.size
        spectrum = np.fft.rfft(values) * np.conj(np.fft.rfft(self.set.member.astype(np.float64)))
        inside = np.fft.irfft(spectrum, n=k)
        hit = float(self.hit)
        return np.asarray(hit * inside / s + (1 - hit) * (values.sum() - inside) / (k - s))


@lru_cache(maxsize=256)
def best_law(epsilon: Fraction, least: int) -> SingerLaw:
    """The law with the least error among those that lose at most epsilon and tell `least` moves apart."""
    return min((law_of(each, epsilon) for each in candidates(least)), key=lambda law: law.spread)


def law_of(chosen: DifferenceSet, epsilon: Fraction) -> SingerLaw:
    """The most telling law over a difference set that loses at most epsilon: rounded down, certified."""
    law = SingerLaw(chosen, threshold(epsilon, chosen.size, chosen.period - chosen.size))
    fix = "choose a usual one, like 1"
    check(law.miss < law.hit < 1, "epsilon", "must be neither tiny nor huge", given=epsilon, fix=fix)
    return law
