"""What fraction of a public universe has appeared [DR14, section 12.2]."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Self, final, get_args

from partita.answer import Answer
from partita.numbers import one_of
from partita.pan.bits.bit_sketch import BitSketch, bit_variance
from partita.pan.sketch.coin import Variant
from partita.pan.sketch.estimate import Readout
from partita.pan.sketch.ids import Ids, Universe
from partita.pan.sketch.listed import Listed
from partita.pan.sketch.packing import bits_of, choice_of, fraction_of
from partita.public.streams.terms import Terms
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL

_NAMES: Final = ("density",)


@final
class Density(Listed, BitSketch):
    """The fraction of a public universe that has appeared, private even if the memory is read once.

    Guarantee: epsilon-DP, pure, for one user with any number of events: for all outputs together with the
               whole state at one time, and again after each `announce_intrusion`.
    Error:     about 1 / (2 sqrt(universe) sinh(epsilon / 2)) for one output, whatever the fraction is.
    Proof:     docs/proofs/pan_density.md (the exact joint loss of the state and one output)

    There is one bit for each id of the universe, a biased one from the start. Whoever comes has it drawn
    again with the opposite bias, however often. `variant="book"` starts with fair bits, as the book does,
    with its bias corrected to (1 - e^-epsilon) / 2, and half of epsilon for the state and for the output.
    `output_share` is the share of all outputs in epsilon, chosen from public facts if it is left out.

    >>> visitors = Density(universe=10_000, epsilon=1)
    >>> visitors.update_many([3, 14, 15, 14])
    >>> visitors.release("density").error < 0.02
    True
    """

    name: ClassVar[str] = "pan-density"

    def __init__(
        self,
        *,
        universe: Ids,
        epsilon: object,
        variant: Variant = "default",
        output_share: object | None = None,
        releases: int = 1,
        epochs: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        self._universe = Universe.of(universe)
        super().__init__(
            places=self._universe.size,
            epsilon=epsilon,
            variant=variant,
            output_share=output_share,
            releases=releases,
            epochs=epochs,
            noise=noise,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The fraction of the universe that appeared in this epoch."""
        return _NAMES

    def expected_error(self, name: str = "density") -> float:
        """At least the standard error of a release, known beforehand."""
        one_of(name, "name", _NAMES)
        return self._readout.error(self.output)

    def _measure(self, name: str) -> Callable[[], Answer]:
        one_of(name, "name", _NAMES)
        readout = self._readout

        def measured() -> Answer:
            noisy = self._noise.add(int(self._bits.sum()), readout.scale(self.output))
            return readout.answer(noisy, self.output)

        return measured

    @property
    def _readout(self) -> Readout:
        """(ones / size - q0) / (q1 - q0), on average the fraction."""
        coin, size = self._coin, self._bits.size
        return Readout(
            size=size,
            offset=float(-coin.q0 / coin.gap),
            factor=float(1 / (size * coin.gap)),
            spread=1,
            variance=bit_variance(coin),
            low=0.0,
            high=1.0,
        )

    def _shape_row(self) -> list[int]:
        return self._universe.packed()

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        variant, numerator, denominator, *universe = fields["shape"]
        known = Universe.unpacked(universe)
        bits_of(fields["bits"], known.size)
        releases, epochs, _ = fields["plan"]
        sketch = cls(
            universe=known.size,
            epsilon=terms.epsilon,
            variant=choice_of(variant, get_args(Variant)),
            output_share=fraction_of(numerator, denominator),
            releases=releases,
            epochs=epochs,
            noise=noise,
        )
        sketch._universe = known
        return sketch
