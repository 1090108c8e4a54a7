"""The three naive ways to count under continual observation [Dwork-Roth, section 12.3]: baselines.

Each is private, and each has an error that grows with the horizon where `Counter`'s grows with its
logarithm.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.exact import failure, integer
from partita.mechanisms.checks import check_scale
from partita.noise.protocol import IntegerArray, Noise
from partita.noise.system import SYSTEM
from partita.streams.base import LARGEST, ContinualCounter, Floats, Running, Terms, counted, horizon_of
from partita.streams.bounds import Mix, mix
from partita.streams.integers import Row, integers, is_wide
from partita.streams.noisy_count import NoisyCount
from partita.streams.state import Fields, pack, unpack
from partita.streams.stepping import Stepping, counts_of, misfit
from partita.streams.supply import Supply

__all__ = ["DirectCounter", "PerStepCounter", "RandomizedResponseCounter"]

_VERSION: Final = 1
_FINE: Final = 1 << 16
_AT_ONCE: Final = 1 << 18


class _SummedNoise:
    """Fresh noise in every period; errors are their sums."""

    def __init__(self, scale: Fraction, horizon: int, noise: Noise) -> None:
        self._supply = Supply(scale, horizon, noise)
        self._wide = is_wide(scale)

    def step(self) -> int:
        """The noise of the next period."""
        return self._supply.take()

    def many(self, periods: int) -> IntegerArray:
        """The noise of each of the next periods."""
        return integers([self.step() for _ in range(periods)], wide=self._wide)

    def skip(self, periods: int) -> int:
        """The noise of the next periods together."""
        return sum(self.step() for _ in range(periods))

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state."""
        return self._supply.fields()

    def restore(self, fields: dict[str, list[int]]) -> None:
        """Go on with what was drawn before."""
        self._supply.restore(fields)


class _ReplacedNoise(_SummedNoise):
    """Fresh noise in every output, in place of the last."""

    def __init__(self, scale: Fraction, horizon: int, noise: Noise) -> None:
        super().__init__(scale, horizon, noise)
        self._last = 0

    def step(self) -> int:
        """By how much the noise of the next output exceeds the last."""
        last, self._last = self._last, self._supply.take()
        return self._last - last

    def skip(self, periods: int) -> int:
        """Only the last of the next outputs has noise."""
        return self.step() if periods else 0

    def fields(self) -> dict[str, Row]:
        return {**super().fields(), "last": [self._last]}

    def restore(self, fields: dict[str, list[int]]) -> None:
        super().restore(fields)
        (self._last,) = fields["last"]


class _NaiveCount(NoisyCount):
    """The count and integer noise of one scale."""

    _kind: ClassVar[type[_SummedNoise]]

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int,
        change: int = 1,
        contributions: int = 1,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = Terms.of(epsilon, change=change, contributions=contributions)
        session = noise.session()
        self._begin(terms, horizon_of(horizon), session, secure=session.secure)

    def _begin(
        self, terms: Terms, horizon: int, session: Noise, *, secure: bool, periods: int = 0, units: int = 0
    ) -> None:
        scale = self._scale_for(terms, horizon)
        check_scale(scale, terms.epsilon)
        self._drawn = self._kind(scale, horizon, session)
        self._length = horizon
        super().__init__(
            terms=terms,
            horizon=horizon,
            bits=0,
            path=self._drawn,
            secure=secure,
            periods=periods,
            units=units,
        )

    @property
    def scale(self) -> Fraction:
        """The scale of all noise."""
        return self._scale_for(self.terms, self._length)

    @staticmethod
    @abstractmethod
    def _scale_for(terms: Terms, horizon: int) -> Fraction:
        """The scale that the guarantee needs."""

    def state(self) -> bytes:
        """Everything that is needed to go on later: secret. Two counters must not go on from one state."""
        now = [self._length, self._periods, self._units, int(self.guarantee is not None)]
        return pack(self.name, _VERSION, {"terms": self.terms.packed(), "now": now, **self._drawn.fields()})

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = SYSTEM) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""
        fields = unpack(state, cls.name, _VERSION)
        try:
            return cls._restored(fields, noise.session())
        except (KeyError, ValueError):
            raise misfit("be of this counter") from None

    @classmethod
    def _restored(cls, fields: dict[str, list[int]], session: Noise) -> Self:
        horizon, periods, units, secure = fields["now"]
        if not 0 <= periods <= horizon_of(horizon):
            raise misfit("lie within its horizon")
        counter = cls.__new__(cls)
        counter._begin(
            Terms.unpacked(fields["terms"]),
            horizon,
            session,
            secure=bool(secure) and session.secure,
            periods=periods,
            units=units,
        )
        counter._drawn.restore(fields)
        return counter


@final
class PerStepCounter(_NaiveCount):
    """A baseline: noise is added to what is counted in each period, and the sums are published.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events. Not pan-private.
    Error:     variance 2t / epsilon^2 after t periods.                              [Dwork-Roth, section 12.3]
    Proof:     Each noisy number is private and an event lies in one of them; sums are post-processing.

    >>> PerStepCounter(epsilon=1, horizon=1000).scale
    Fraction(1, 1)
    """

    name: ClassVar[str] = "per-step"
    _kind = _SummedNoise

    @staticmethod
    def _scale_for(terms: Terms, horizon: int) -> Fraction:
        return 1 / terms.rate

    def _law(self) -> Mix:
        return mix([(1.0, float(1 / self.scale), float(self._periods))])

    def _everywhere(self, beta: float) -> float:
        """Of symmetric sums the greatest exceeds a bound at most twice as often as the last (Levy)."""
        return mix([(1.0, float(1 / self.scale), float(self._length))]).reach(beta / 2)


@final
class DirectCounter(_NaiveCount):
    """A baseline: fresh noise is added to each output, of a scale that pays for all of them.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events. Not pan-private.
    Error:     variance 2 horizon^2 / epsilon^2 in every period.                     [Dwork-Roth, section 12.3]
    Proof:     An event moves each output by at most 1, and each has its share epsilon / horizon.

    >>> DirectCounter(epsilon=1, horizon=1000).scale
    Fraction(1000, 1)
    """

    name: ClassVar[str] = "direct"
    _kind = _ReplacedNoise

    @staticmethod
    def _scale_for(terms: Terms, horizon: int) -> Fraction:
        return horizon / terms.rate

    def _law(self) -> Mix:
        return mix([(1.0, float(1 / self.scale), float(self._periods > 0))])

    def _everywhere(self, beta: float) -> float:
        return mix([(1.0, float(1 / self.scale), 1.0)]).reach(beta / self._length)


@final
class RandomizedResponseCounter(Stepping, ContinualCounter):
    """A baseline for bits: each is flipped now and then, and the flipped ones are counted and scaled up.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events. What it keeps
               is flipped too.
    Error:     variance t a / (1-a)^2 after t periods, a = exp(-epsilon).            [Dwork-Roth, section 12.3]
    Proof:     A bit is flipped with probability a / (1+a), and an event touches one bit; the rest is
               post-processing.

    A number above 1 counts as 1, one below 0 as 0.

    >>> RandomizedResponseCounter(epsilon=1, horizon=1000).periods
    0
    """

    name: ClassVar[str] = "randomized-response"
    granularity: Fraction = Fraction(1, _FINE)

    def __init__(
        self, *, epsilon: object, horizon: int, contributions: int = 1, noise: Noise = SYSTEM
    ) -> None:
        terms = Terms.of(epsilon, contributions=contributions)
        check_scale(1 / terms.rate, terms.epsilon)
        self._begin(terms, horizon_of(horizon), noise.session(), secure=True)

    def _begin(
        self, terms: Terms, horizon: int, session: Noise, *, secure: bool, periods: int = 0, ones: int = 0
    ) -> None:
        super().__init__(terms=terms, horizon=horizon, secure=secure and session.secure, periods=periods)
        self._noise, self._ones, self._length = session, ones, horizon

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return Fraction(round(float(self._estimate(self._ones, self._periods)) * _FINE), _FINE)

    def update(self, x: int = 0) -> float:
        """Close one period in which the bit x was counted: its output."""
        return float(self.update_many([counted(x)])[0])

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each bit: all outputs. The same law as one by one."""
        bits = np.clip(counts_of(xs), 0, 1)
        self._make_room(bits.size)
        with self._step():
            ones = self._ones + np.cumsum(bits ^ self._flips(bits.size))
            periods = self._periods + np.arange(1, bits.size + 1)
            self._ones = int(ones[-1]) if bits.size else self._ones
            self._periods += bits.size
        return np.asarray(np.rint(self._estimate(ones, periods) * _FINE) / _FINE)

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            for start in range(0, periods, _AT_ONCE):
                self._ones += int(self._flips(min(_AT_ONCE, periods - start)).sum())
            self._periods += periods

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once (Hoeffding)."""
        chance = float(failure(beta))
        reach = self._reach(self._periods, chance)
        return Running(
            value=self.value,
            error=self.variance() ** 0.5,
            low=self.value - reach,
            high=self.value + reach,
            everywhere=self._reach(self._length, chance),
        )

    def variance(self) -> float:
        """The variance of the last output, without rounding: the same for each bit."""
        rate = float(self.terms.rate)
        return self._periods * math.exp(-rate) / math.expm1(-rate) ** 2

    def state(self) -> bytes:
        """Everything that is needed to go on later."""
        fields: Fields = {
            "terms": self.terms.packed(),
            "now": [self._length, self._periods, self._ones, int(self.guarantee is not None)],
        }
        return pack(self.name, _VERSION, fields)

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = SYSTEM) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""
        fields: Mapping[str, list[int]] = unpack(state, cls.name, _VERSION)
        try:
            horizon, periods, ones, secure = fields["now"]
            counter = cls.__new__(cls)
            terms = Terms.unpacked(fields["terms"])
            counter._begin(
                terms, horizon_of(horizon), noise.session(), secure=bool(secure), periods=periods, ones=ones
            )
        except (KeyError, ValueError):
            raise misfit("be of this counter") from None
        return counter

    def _flips(self, number: int) -> IntegerArray:
        """For each bit whether it is flipped: discrete Laplace noise is positive with chance a / (1+a)."""
        drawn = self._noise.add(np.zeros(number, dtype=np.int64), 1 / self.terms.rate)
        return np.asarray(drawn > 0, dtype=np.int64)

    def _estimate(self, ones: Floats | IntegerArray | int, periods: IntegerArray | int) -> Floats:
        """What the number of ones is expected to come from: it is q t + (1 - 2q) count on average."""
        a = math.exp(-float(self.terms.rate))
        fewer = np.asarray(ones, dtype=np.float64) - np.asarray(periods, dtype=np.float64)
        return np.asarray((ones + fewer * a) / -math.expm1(-float(self.terms.rate)))

    def _reach(self, periods: int, beta: float) -> float:
        """The error of a bit lies in a range of (1+a) / (1-a), and so with the greatest of all sums."""
        spread = 1 / math.tanh(float(self.terms.rate) / 2)
        return spread * math.sqrt(periods * math.log(2 / beta) / 2) + 1 / _FINE
