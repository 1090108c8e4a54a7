"""How often users came, the simple way: counters that wrap around and draw a bit again when they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors.errors import InvalidParameter
from partita.numbers import integer
from partita.pan.sketch.coin import Coin, state_coin
from partita.pan.sketch.draws import Bools, Ints, chances, erased, uniform
from partita.pan.sketch.estimate import Readout
from partita.pan.sketch.ids import Ids, Universe
from partita.pan.sketch.listed import Listed
from partita.pan.sketch.packing import bits_of, fraction_of, numbers_of, packed_bits, packed_numbers
from partita.pan.sketch.shares import Shares
from partita.pan.sketch.statistics import Statistic, statistic
from partita.public.bounds.tails import laplace_variance
from partita.public.streams.terms import Terms, misfit
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL
from partita.trusted.streams.base.state import Fields

_LARGEST_TOP: Final = 10**4
_MOST_TOPS: Final = 64
_BIT_VARIANCE: Final = 0.25


@final
class RampRegisters(Listed):
    """How many of a public universe came how often: the simple registers, for comparison with `Registers`.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`.
    Error:     about t len(tops) / (sqrt(universe) epsilon) for "mean-t", twice that for "heavy-t", and four
               times for "exactly-t".
    Proof:     docs/proofs/pan_ramp_registers.md (a counter with a random start tells nothing)

    For each of `tops` and each user there is a counter modulo that top, which starts anywhere, and a biased
    bit, which is drawn again when the counter wraps around. After n events that has happened with
    probability min(n, top) / top, so the bits say the mean of min(n, top). The others follow: "heavy-t"
    needs the tops t and t-1, "exactly-t" also t+1, "density" needs 1. Events cannot be taken back.

    >>> visits = RampRegisters(universe=10_000, epsilon=2, tops=[3])
    >>> visits.update_many([3, 14, 15, 14])
    >>> visits.release("mean-3").error < 0.1
    True
    """

    name: ClassVar[str] = "pan-ramp-registers"

    _counters: Ints = np.zeros(0, dtype=np.int64)
    _bits: Bools = np.zeros(0, dtype=np.bool_)

    def __init__(
        self,
        *,
        universe: Ids,
        epsilon: object,
        tops: Sequence[int],
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self._universe = Universe.of(universe)
        self.tops = _tops(tops)
        super().__init__(epsilon=epsilon, releases=releases, epochs=epochs, noise=noise)
        self._shares = Shares.chosen(self.epsilon, self.releases, output_share, self._predicted)
        self._shares.check(spread=4 * max(self.tops))
        self._coin = self._coin_of(self._shares)
        shape = len(self.tops), self._universe.size
        self._counters = np.zeros(shape, dtype=np.int64)
        self._bits = np.zeros(shape, dtype=np.bool_)
        self._fill()

    @property
    def output(self) -> Fraction:
        """The epsilon of one output."""
        return self._shares.output

    @property
    def names(self) -> tuple[str, ...]:
        """What these tops can tell."""
        numbers = sorted({0, *self.tops})
        asked = [Statistic(kind, at) for at in numbers for kind in ("exactly", "mean", "heavy")]
        told = [f"{kind}-{at}" for kind, at in asked if at or kind == "exactly" if self._tells(kind, at)]
        return ("density", *told) if 1 in self.tops else tuple(told)

    def update_many(self, ids: Iterable[object]) -> None:
        """Count everybody who came, and draw the bits again whose counters wrapped around."""
        self._require_epoch()
        with erased(self._find(ids)) as places, self._step():
            for counters, bits, top in zip(self._counters, self._bits, self.tops, strict=True):
                np.add.at(counters, places, 1)
                drawn = chances(self._noise, self._coin.redraw, places.size)
                bits[places] = np.where(counters[places] >= top, drawn, bits[places])
                counters[places] %= top

    def expected_error(self, name: str) -> float:
        """At least the standard error of a release, known beforehand."""
        return self._readout(self._statistic(name)).error(self.output)

    def _measure(self, name: str) -> Callable[[], Answer]:
        asked = self._statistic(name)
        readout, factors = self._readout(asked), _parts(asked)[1]

        def measured() -> Answer:
            ones = {top: int(bits.sum()) for top, bits in zip(self.tops, self._bits, strict=True)}
            total = sum(factor * ones[top] for top, factor in factors.items())
            return readout.answer(self._noise.add(total, readout.scale(self.output)), self.output)

        return measured

    def _statistic(self, name: str) -> Statistic:
        asked = statistic(name, lowest=0, highest=_LARGEST_TOP)
        if not self._tells(*asked):
            fix = "make the sketch with more tops"
            raise InvalidParameter("name", f"must be one of {', '.join(self.names)}", given=name, fix=fix)
        return asked

    def _tells(self, kind: str, at: int) -> bool:
        return set(_parts(Statistic(kind, at))[1]) <= set(self.tops)

    def _readout(self, asked: Statistic) -> Readout:
        """Of the bits of a top t, on average (ones / size - q0) / (q1 - q0) is the mean of min(n, t) / t."""
        constant, factors = _parts(asked)
        coin, size = self._coin, self._universe.size
        return Readout(
            size=size,
            offset=float(constant - sum(factors.values()) * coin.q0 / coin.gap),
            factor=float(1 / (size * coin.gap)),
            spread=sum(abs(factor) for factor in factors.values()),
            variance=_BIT_VARIANCE * sum(factor**2 for factor in factors.values()),
            low=0.0,
            high=float(asked.at) if asked.kind == "mean" else 1.0,
        )

    def _predicted(self, shares: Shares) -> float:
        """The variance of the mean of the largest top, over the square of that top."""
        noise = laplace_variance(1 / shares.output)
        return (self._universe.size * _BIT_VARIANCE + noise) / float(self._coin_of(shares).gap) ** 2

    def _coin_of(self, shares: Shares) -> Coin:
        """The bits of all tops are seen together: each has its part of the state's epsilon."""
        return state_coin(shares.state / len(self.tops))

    def _tables(self) -> tuple[NDArray[Any], ...]:
        return self._counters, self._bits

    def _fill(self) -> None:
        for counters, bits, top in zip(self._counters, self._bits, self.tops, strict=True):
            counters[:] = uniform(self._noise, top, counters.size)
            bits[:] = chances(self._noise, self._coin.start, bits.size)

    def _fields(self) -> Fields:
        share = self._shares.share
        return {
            "plan": self._plan_row(),
            "shape": [share.numerator, share.denominator, *self._universe.packed()],
            "tops": self.tops,
            "counters": packed_numbers(self._counters.ravel(), max(self.tops)),
            "bits": packed_bits(self._bits.ravel()),
        }

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        numerator, denominator, *universe = fields["shape"]
        known, tops = Universe.unpacked(universe), _tops(fields["tops"])
        bits_of(fields["bits"], known.size * len(tops))
        releases, epochs, _ = fields["plan"]
        sketch = cls(
            universe=known.size,
            epsilon=terms.epsilon,
            tops=tops,
            output_share=fraction_of(numerator, denominator),
            releases=releases,
            epochs=epochs,
            noise=noise,
        )
        sketch._universe = known
        return sketch

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._restore_plan(fields["plan"])
        size, shape = self._bits.size, self._bits.shape
        counters = numbers_of(fields["counters"], size, max(self.tops)).reshape(shape)
        if bool((counters >= np.array(self.tops)[:, np.newaxis]).any()):
            raise misfit("hold numbers that a register has")
        self._counters[:], self._bits[:] = counters, bits_of(fields["bits"], size).reshape(shape)


def _parts(asked: Statistic) -> tuple[int, dict[int, int]]:
    """A statistic as constant + sum of factor * (mean of min(n, t) / t), by t.

    The mean of min(n, t) is the sum of the fractions that came at least 1, ..., t times.
    """
    kind, t = asked
    if kind == "density":
        return 0, {1: 1}
    if kind == "mean":
        return 0, {t: t}
    factors = {t: t, t - 1: 1 - t} if kind == "heavy" else {t: 2 * t, t - 1: 1 - t, t + 1: -t - 1}
    constant = 1 if asked == ("exactly", 0) else 0
    return constant, {top: factor for top, factor in factors.items() if top > 0 and factor}


def _tops(tops: Sequence[int]) -> tuple[int, ...]:
    """Different tops, in order."""
    if isinstance(tops, (str, bytes)) or not 0 < len(tops) <= _MOST_TOPS:
        raise InvalidParameter("tops", "must be a list of 1 to 64 numbers", given=tops, fix="pass [3]")
    return tuple(sorted({integer(top, "tops", low=1, high=_LARGEST_TOP) for top in tops}))
