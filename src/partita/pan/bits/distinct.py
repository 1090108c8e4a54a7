"""How many different ids came, in little memory: a public hash, occupied buckets, geometric levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final, Self, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors.errors import InvalidParameter
from partita.numbers import integer, one_of
from partita.pan.bits.bit_sketch import BitSketch
from partita.pan.bits.occupancy import Occupancy
from partita.pan.sketch.coin import Variant
from partita.pan.sketch.draws import Ints, erased
from partita.pan.sketch.ids import digest_of, each_of, written
from partita.pan.sketch.packing import choice_of, fraction_of
from partita.public.streams.terms import Terms
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL

_NAMES: Final = ("distinct",)
_MOST_BUCKETS: Final = 2**20
_MOST_IDS: Final = 2**35
_LONGEST_SALT: Final = 16
_HIGH_BITS: Final = 32
_LOW_BITS: Final = 32
"""Of a hash of 64 bits."""


@final
class Distinct(BitSketch):
    """The number of different ids that came; private even if the memory is read once.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`; for any hash.
    Error:     about 2.3 / (sqrt(buckets) epsilon) of the number, from twice as many ids as buckets to `most`,
               with a thousand buckets or more; of fewer ids about as much as of so many.
    Proof:     docs/proofs/pan_distinct.md (a user is one bit, as in a density)

    An id falls, by a public hash, into one of `buckets` of one of some levels: half of all ids into the first
    level, a quarter into the second, and so on, up to 33 levels. An output has the noisy number of ones in
    every level, and the number of ids that explains them best. The state has one bit for each bucket of each
    level. `salt` is public and makes a hash of one's own; the error assumes that ids were not made to
    collide. Text is no number: "7" and 7 are two ids, and lines that a shell reads are text.

    >>> visitors = Distinct(epsilon=2)
    >>> visitors.update_many(f"visitor {number}" for number in range(20_000))
    >>> abs(visitors.release("distinct").value / 20_000 - 1) < 0.5
    True
    """

    name: ClassVar[str] = "pan-distinct"

    def __init__(
        self,
        *,
        epsilon: object,
        buckets: int = 4096,
        most: int = 10**8,
        salt: str = "",
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self.buckets = integer(buckets, "buckets", low=2, high=_MOST_BUCKETS)
        self.most = integer(most, "most", low=1, high=_MOST_IDS)
        self.salt = salt
        self._salt = _salt(salt)
        self.levels = min((self.most // self.buckets).bit_length(), _HIGH_BITS) + 1
        super().__init__(
            places=self.buckets * self.levels,
            epsilon=epsilon,
            variant="default",
            output_share=output_share,
            releases=releases,
            epochs=epochs,
            noise=noise,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The number of different ids in this epoch."""
        return _NAMES

    def expected_error(self, name: str = "distinct") -> float:
        """About the standard error if as many ids come as there are buckets."""
        one_of(name, "name", _NAMES)
        return self._occupancy.error(float(self.buckets))

    def _find(self, ids: Iterable[object]) -> Ints:
        names = (written(name) for name in each_of(ids))
        digests = (digest_of(name, self._salt) for name in names if name is not None)
        with erased(np.fromiter(digests, dtype=np.uint64)) as found:
            return self._places(found)

    def _places(self, digests: NDArray[np.uint64]) -> Ints:
        """The level is the number of zeros at the head of the high half; the low half is a bucket.

        Worked out in place: no copy of a half stays in memory.
        """
        places = np.zeros(digests.size, dtype=np.int64)
        with erased(digests & np.uint64(2**_LOW_BITS - 1)) as low:
            digests >>= np.uint64(_LOW_BITS)
            for zeros in range(1, self.levels):
                places += digests < np.uint64(1 << (_HIGH_BITS - zeros))
            low *= np.uint64(self.buckets)
            low >>= np.uint64(_LOW_BITS)
            places *= self.buckets
            places += low.view(np.int64)
        return places

    def _measure(self, name: str) -> Callable[[], Answer]:
        one_of(name, "name", _NAMES)

        def measured() -> Answer:
            ones = self._bits.reshape(self.levels, self.buckets).sum(axis=1)
            noisy = self._noise.add(ones, 1 / self.output)
            return self._occupancy.answer(np.asarray(noisy, dtype=np.float64))

        return measured

    @property
    def _occupancy(self) -> Occupancy:
        return Occupancy(
            buckets=self.buckets, levels=self.levels, most=self.most, coin=self._coin, output=self.output
        )

    def _shape_row(self) -> list[int]:
        return [self.buckets, self.most, *self._salt]

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        variant, numerator, denominator, buckets, most, *salt = fields["shape"]
        choice_of(variant, get_args(Variant)[:1])
        releases, epochs, _ = fields["plan"]
        return cls(
            epsilon=terms.epsilon,
            buckets=buckets,
            most=most,
            salt=bytes(salt).decode(),
            output_share=fraction_of(numerator, denominator),
            releases=releases,
            epochs=epochs,
            noise=noise,
        )


def _salt(salt: object) -> bytes:
    if not isinstance(salt, str) or not salt.isascii() or len(salt) > _LONGEST_SALT:
        raise InvalidParameter("salt", "must be at most 16 plain letters", given=salt, fix="shorten it")
    return salt.encode()
