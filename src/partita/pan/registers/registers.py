"""How often users came: one register each, which hides every number of events equally well."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors.errors import InvalidParameter
from partita.numbers import integer
from partita.pan.registers.singer_law import SingerLaw, best_law
from partita.pan.sketch.draws import Ints, chances, erased, uniform
from partita.pan.sketch.estimate import Readout
from partita.pan.sketch.ids import Ids, Universe
from partita.pan.sketch.listed import Listed
from partita.pan.sketch.packing import fraction_of, numbers_of, packed_numbers
from partita.pan.sketch.shares import Shares
from partita.pan.sketch.statistics import Statistic, statistic
from partita.public.bounds.tails import laplace_variance
from partita.public.streams.terms import Terms
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL
from partita.trusted.streams.base.state import Fields

_LONGEST: Final = 10**4


@final
class Registers(Listed):
    """How many of a public universe came how often, private even if the memory is read once.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`.
    Error:     about 2 e^(epsilon/2) / (sqrt(universe) (e^epsilon - 1)) for a fraction "exactly-t".
    Proof:     docs/proofs/pan_registers.md (all translates of a difference set look alike)

    A register starts at random in Z_K, more often within a difference set than not, and an event moves it by
    one, or back. Net numbers of events from `lowest` to `most` are told apart; one beyond them is
    taken modulo K, which may spoil the estimates, never privacy. Statistics are "density" (who has a net
    number other than zero), "exactly-t", "mean-t" (of min(t, number)) and "heavy-t" (at least t).

    >>> visits = Registers(universe=10_000, epsilon=1, most=20, releases=2)
    >>> visits.update_many([3, 14, 15, 14])
    >>> visits.update(15, by=-1)
    >>> visits.release("heavy-2").error < 0.05
    True
    """

    name: ClassVar[str] = "pan-registers"

    _registers: Ints = np.zeros(0, dtype=np.int64)

    def __init__(
        self,
        *,
        universe: Ids,
        epsilon: object,
        most: int = 100,
        lowest: int = 0,
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self._universe = Universe.of(universe)
        self.lowest = integer(lowest, "lowest", low=-_LONGEST, high=0)
        self.most = integer(most, "most", low=1, high=_LONGEST)
        super().__init__(epsilon=epsilon, releases=releases, epochs=epochs, noise=noise)
        self._shares = Shares.chosen(self.epsilon, self.releases, output_share, self._predicted)
        self._law = self._law_of(self._shares)
        self._shares.check(spread=self._law.set.period * (self.most - self.lowest))
        self._registers = np.zeros(self._universe.size, dtype=np.int64)
        self._fill()

    @property
    def output(self) -> Fraction:
        """The epsilon of one output."""
        return self._shares.output

    @property
    def names(self) -> tuple[str, ...]:
        """What can be released; T is a number."""
        return "density", "exactly-T", "mean-T", "heavy-T"

    def update(self, name: object, *, by: int = 1) -> None:
        """Somebody came `by` times, or less than not at all: then events are taken back.

        `by` is any integer, modulo K. Only what is no integer is an error, which does not show it.
        """
        self.update_many([name], by=by)

    def update_many(self, ids: Iterable[object], *, by: int = 1) -> None:
        """Many came, one after the other, `by` times each: the same as one by one."""
        self._require_epoch()
        move = _number_of_events(by) % self._law.set.period
        with erased(self._find(ids)) as places, self._step():
            np.add.at(self._registers, places, move)
            self._registers[places] %= self._law.set.period

    def expected_error(self, name: str) -> float:
        """At least the standard error of a release, known beforehand."""
        asked = self._statistic(name)
        return self._readout(asked, self._weights(asked)).error(self.output)

    def _measure(self, name: str) -> Callable[[], Answer]:
        asked = self._statistic(name)
        weights = self._weights(asked)
        readout = self._readout(asked, weights)

        def measured() -> Answer:
            noisy = self._noise.add(int(weights[self._registers].sum()), readout.scale(self.output))
            return readout.answer(noisy, self.output)

        return measured

    def _statistic(self, name: str) -> Statistic:
        return statistic(name, lowest=self.lowest, highest=self.most)

    def _parts(self, asked: Statistic) -> tuple[int, dict[int, int]]:
        """The statistic as constant + sum of factor * (fraction with a net number v), by v."""
        kind, at = asked
        if kind == "exactly":
            return 0, {at: 1}
        if kind == "density":
            return 1, {0: -1}
        if kind == "heavy":
            return 1, dict.fromkeys(range(self.lowest, at), -1)
        return at, {number: number - at for number in range(self.lowest, at)}

    def _weights(self, asked: Statistic) -> Ints:
        """g(r), for each r: how a register counts in the sum that is released.

        The sum of factor * 1[r - v in the set] over v, a convolution of integers below 2^31, rounded to them.
        """
        member, period = self._law.set.member, self._law.set.period
        factors = np.zeros(period)
        for number, factor in self._parts(asked)[1].items():
            factors[number % period] += factor
        folded = np.fft.irfft(np.fft.rfft(factors) * np.fft.rfft(member.astype(np.float64)), n=period)
        return np.rint(folded).astype(np.int64)

    def _readout(self, asked: Statistic, weights: Ints) -> Readout:
        """The fraction with net number v: (share of registers in the set moved by v, - miss) / gap."""
        constant, factors = self._parts(asked)
        size = self._registers.size
        gap = self._law.hit - self._law.miss
        bounds = {"mean": (float(min(0, self.lowest)), float(asked.at))}
        low, high = bounds.get(asked.kind, (0.0, 1.0))
        return Readout(
            size=size,
            offset=float(constant - sum(factors.values()) * self._law.miss / gap),
            factor=float(1 / (size * gap)),
            spread=int(weights.max() - weights.min()),
            variance=self._law.variance(weights),
            low=low,
            high=high,
        )

    def _predicted(self, shares: Shares) -> float:
        """The variance of a fraction "exactly-t", times the square of the universe."""
        law = self._law_of(shares)
        return (
            self._universe.size * law.spread
            + laplace_variance(1 / shares.output) / float(law.hit - law.miss) ** 2
        )

    def _law_of(self, shares: Shares) -> SingerLaw:
        return best_law(shares.state, self.most - self.lowest + 1)

    def _tables(self) -> tuple[NDArray[Any], ...]:
        return (self._registers,)

    def _fill(self) -> None:
        """A place in the set and one outside of it are drawn for each register, and one of them is taken."""
        law, size = self._law, self._registers.size
        within = chances(self._noise, law.within, size)
        inside = law.set.inside[uniform(self._noise, law.set.size, size)]
        outside = law.set.outside[uniform(self._noise, law.set.period - law.set.size, size)]
        self._registers[:] = np.where(within, inside, outside)

    def _fields(self) -> Fields:
        share = self._shares.share
        return {
            "plan": self._plan_row(),
            "shape": [self.most, self.lowest, share.numerator, share.denominator, *self._universe.packed()],
            "registers": packed_numbers(self._registers, self._law.set.period),
        }

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        most, lowest, numerator, denominator, *universe = fields["shape"]
        known = Universe.unpacked(universe)
        if len(fields["registers"]) * 8 < known.size:
            raise ValueError("too few registers")
        releases, epochs, _ = fields["plan"]
        sketch = cls(
            universe=known.size,
            epsilon=terms.epsilon,
            most=most,
            lowest=lowest,
            output_share=fraction_of(numerator, denominator),
            releases=releases,
            epochs=epochs,
            noise=noise,
        )
        sketch._universe = known
        return sketch

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._restore_plan(fields["plan"])
        period = self._law.set.period
        self._registers[:] = numbers_of(fields["registers"], self._registers.size, period)


def _number_of_events(by: object) -> int:
    """An integer of any size: one that is refused for its size would be seen."""
    if isinstance(by, bool) or not isinstance(by, Integral):
        raise InvalidParameter("by", "must be an integer", given=type(by).__name__, fix="pass an int")
    return int(by)
