"""Sketches of one biased bit for each place: drawn again whenever somebody who belongs there comes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from partita.numbers import one_of
from partita.pan.sketch.coin import Coin, Variant, joint_coin, state_coin
from partita.pan.sketch.draws import Bools, Ints, chances, erased
from partita.pan.sketch.packing import bits_of, packed_bits
from partita.pan.sketch.shares import Shares
from partita.pan.sketch.sketch import Sketch
from partita.public.bounds.tails import laplace_variance
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.streams.base.state import Fields


class BitSketch(Sketch):
    """A table of bits whose sums are released with noise; a user belongs to one place.

    Between releases a user changes the law of one bit, and one released sum by at most one.
    """

    _bits: Bools = np.zeros(0, dtype=np.bool_)

    def __init__(
        self,
        *,
        places: int,
        epsilon: object,
        variant: Variant,
        output_share: object | None,
        releases: int,
        epochs: int,
        noise: Noise,
    ) -> None:
        super().__init__(epsilon=epsilon, releases=releases, epochs=epochs, noise=noise)
        self.variant: Variant = one_of(variant, "variant", get_args(Variant))
        if output_share is None and variant == "book":
            output_share = Fraction(1, 2)
        self._shares = Shares.chosen(
            self.epsilon, self.releases, output_share, lambda shares: self._relative_error(shares, places)
        )
        self._shares.check(spread=1)
        self._coin = self._coin_of(self._shares)
        self._bits = np.zeros(places, dtype=np.bool_)
        self._fill()

    @property
    def output(self) -> Fraction:
        """The epsilon of one output."""
        return self._shares.output

    @property
    def coin(self) -> Coin:
        """The public biases of a bit, before and after somebody came."""
        return self._coin

    def update_many(self, ids: Iterable[object]) -> None:
        """Draw the bit of everybody who came again; of several draws for one bit the last one stays."""
        self._require_epoch()
        with erased(self._find(ids)) as places, self._step():
            self._bits[places] = chances(self._noise, self._coin.redraw, places.size)

    @abstractmethod
    def _find(self, ids: Iterable[object]) -> Ints:
        """The place of each id; what is none is left out."""

    def _coin_of(self, shares: Shares) -> Coin:
        """One output is accounted for jointly with the state, exactly; several add up, as in the book."""
        if self.releases == 1 and self.variant == "default":
            return joint_coin(self.epsilon, shares.output, self.variant)
        return state_coin(shares.state, self.variant)

    def _relative_error(self, shares: Shares, places: int) -> float:
        """The standard error of the fraction of bits that somebody has drawn again, at worst."""
        coin = self._coin_of(shares)
        noise = laplace_variance(1 / shares.output)
        return math.sqrt(places * bit_variance(coin) + noise) / float(coin.gap)

    def _tables(self) -> tuple[NDArray[Any], ...]:
        return (self._bits,)

    def _fill(self) -> None:
        self._bits[:] = chances(self._noise, self._coin.start, self._bits.size)

    def _fields(self) -> Fields:
        share = self._shares.share
        variant = get_args(Variant).index(self.variant)
        return {
            "plan": self._plan_row(),
            "shape": [variant, share.numerator, share.denominator, *self._shape_row()],
            "bits": packed_bits(self._bits),
        }

    @abstractmethod
    def _shape_row(self) -> list[int]:
        """What says which places there are."""

    def _restore(self, fields: dict[str, list[int]]) -> None:
        self._restore_plan(fields["plan"])
        self._bits[:] = bits_of(fields["bits"], self._bits.size)


def bit_variance(coin: Coin) -> float:
    """The variance of a bit, at most: the larger of both laws."""
    return max(float(q * (1 - q)) for q in (coin.q0, coin.q1))
