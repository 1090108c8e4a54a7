"""The public terms of a counter: epsilon, what an event may change, and how many periods there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.errors.errors import InvalidParameter, InvalidState
from partita.guarantee.guarantee import Guarantee, Unit, positive_epsilon
from partita.numbers import integer

WIDTH: Final = 40
"""The bytes of an integer, but for those in arrays of int64, which have 8."""

LARGEST: Final = 2**62
"""A period counts less than this, and there are fewer periods than this."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a counter promises: epsilon for a user of at most `contributions` events.

    An event changes what is counted in one period by at most `change`.

    >>> Terms.of(1, contributions=3).guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=user, contributions=3)
    """

    epsilon: Fraction
    change: int
    contributions: int

    @classmethod
    def of(cls, epsilon: object, *, change: object = 1, contributions: object = 1) -> Terms:
        """The terms as people write them, checked."""
        return cls(
            epsilon=positive_epsilon(epsilon),
            change=integer(change, "change", low=1, high=LARGEST),
            contributions=integer(contributions, "contributions", low=1, high=LARGEST),
        )

    @property
    def rate(self) -> Fraction:
        """Epsilon for a change of one in one period."""
        return self.epsilon / (self.change * self.contributions)

    @property
    def guarantee(self) -> Guarantee:
        """The promise for one event, or for one user with several."""
        unit: Unit = "event" if self.contributions == 1 else "user"
        return Guarantee(epsilon=self.epsilon, unit=unit, contributions=self.contributions)

    @property
    def keywords(self) -> dict[str, Any]:
        """The terms as keywords of a counter."""
        return asdict(self)

    def packed(self) -> NDArray[np.int64]:
        """The terms as a row of a state."""
        text = f"{self.epsilon} {self.change} {self.contributions}"
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)

    @classmethod
    def unpacked(cls, row: list[int]) -> Terms:
        """The terms from a row of a state; anything else is an `InvalidState`."""
        try:
            epsilon, change, contributions = bytes(row).decode().split()
            return cls.of(epsilon, change=int(change), contributions=int(contributions))
        except (ValueError, InvalidParameter):
            raise misfit("hold terms") from None


def horizon_of(horizon: object) -> int:
    """The number of periods of a counter."""
    return integer(horizon, "horizon", low=1, high=LARGEST)


def misfit(rule: str) -> InvalidState:
    """The error for a state that is not what it should be."""
    return InvalidState("state", f"must {rule}", fix="restore it from where it was stored")
