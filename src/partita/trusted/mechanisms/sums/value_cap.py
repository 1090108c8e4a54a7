"""The cap of a summed column: noisy counts of orders of magnitude, and the highest that is clear."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, partial
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.base.base import Domain
from partita.numbers import Converted, freeze, frozen, parameter
from partita.public.axis.curve.curve import Ints, UInts
from partita.public.sums.base.value_line import ValueLine
from partita.public.sums.knots.buckets import Buckets
from partita.trusted.mechanisms.base.base import Private
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.secret.points import PointCounts


@final
@frozen(kw_only=True)
class ValueCap(Private):
    """Count values by powers of two, with noise; the cap is a function of these counts.

    Guarantee: epsilon-DP, pure; ADD_REMOVE or CHANGE_ONE.                         [DMNS06]
    Error:     a cap above all values with probability at most 1/2000; a power of two is seen, with
               probability 1 - beta, if it holds more than ln(2000 buckets / beta) / epsilon rows.
    Proof:     docs/proofs/value_cap.md (integer noise, integer thresholds)

    >>> from partita.domain import Integer
    >>> ValueCap(value=Integer(0, 1000), epsilon="1/20").scale
    Fraction(20, 1)
    """

    value: Converted[Domain, ValueLine] = parameter()

    def _convert(self) -> None:
        super()._convert()
        freeze(self, value=ValueLine.of(cast(Domain, self.value)))

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The noise scale: by how many rows neighbours differ, over epsilon."""
        return 1 / self.rate

    @cached_property
    def buckets(self) -> Buckets:
        """What is counted."""
        return Buckets(self.value)

    def measure(self, points: PointCounts, *, session: Noise) -> NDArray[Any]:
        """The noisy count of every bucket: each row is in one. The value is the last column of the points."""
        noisy: NDArray[Any] = session.add(points.folded(partial(_bucketed, self.buckets)), self.scale)
        return noisy


def _bucketed(buckets: Buckets, places: UInts, counts: Ints) -> Ints:
    """How many rows are in each bucket."""
    exact = np.zeros(buckets.size, np.int64)
    np.add.at(exact, buckets.of(places[:, -1]), counts)
    return exact
