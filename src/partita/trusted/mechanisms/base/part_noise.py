"""The noise of one release, handed to a mechanism that makes a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

from numpy.typing import ArrayLike

from partita.errors.errors import InvalidParameter
from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.reals import Exact
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.laws.words import UInts
from partita.trusted.noise.system.protocol import Noise, Positions, Segments
from partita.trusted.noise.system.system import SYSTEM, SystemNoise


@final
@dataclass(frozen=True)
class PartNoise:
    """The same noise, but what is released with it carries no guarantee: the whole carries one for all parts.

    So nobody reads a share of epsilon as a promise, or is warned about one.
    """

    whole: Noise
    secure: ClassVar[bool] = False

    def session(self) -> PartNoise:
        """The session of the whole goes on."""
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        """As the whole adds noise."""
        return self.whole.add(x, scale, parts=parts)

    def draw(self, law: Law, scale: Fraction) -> int:
        """As the whole draws."""
        return self.whole.draw(law, scale)

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        """As the whole walks."""
        return self.whole.first_success(law, scale)

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> Segments | None:
        """As the whole walks fast."""
        return self.whole.segments(law, scale, threshold, positions, weights, last)

    def bernoulli(self, probability: Exact) -> bool:
        """As the whole tosses coins."""
        return self.whole.bernoulli(probability)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        """As the whole chooses."""
        return self.whole.categorical(weights)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        """As the whole chooses by scores."""
        return self.whole.exponential(scores, scale)


def noise_elsewhere(noise: Noise) -> SystemNoise:
    """The noise that another machine may draw with in place of this one: the system's, with a key from there.

    Only where this noise is the system's, too: tapes, exact laws and recorders stay where they are.
    """
    whole = noise
    while isinstance(whole, PartNoise):
        whole = whole.whole
    if whole.secure:
        return SYSTEM
    rule, fix = "must be the system's where other machines draw it", "leave it out, or hold the counts here"
    raise InvalidParameter("noise", rule, given=type(whole).__name__, fix=fix)
