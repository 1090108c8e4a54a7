"""What every release of sums of one column says about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from partita.domain.axis import Axis
from partita.domain.base.base import Domain
from partita.guarantee.guarantee import Guarantee
from partita.public.axis.base.ranges import Parts
from partita.public.base.kinds import ReleaseKind


class SumRelease(ReleaseKind, ABC):
    """Released sums of the values of one column, by keys."""

    own_key: ClassVar[bool] = False
    """Whether the summed column is its own and only key."""

    @classmethod
    @abstractmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis], value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
