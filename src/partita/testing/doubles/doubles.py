"""Stand-ins for noise: none at all, none allowed, and a recorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.reals import Exact
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.laws.words import UInts
from partita.trusted.noise.system.protocol import Noise, Positions, Segments


class ZeroNoise:
    """Noise that is always zero: mechanisms become exact and deterministic."""

    secure = False

    def session(self) -> ZeroNoise:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return np.asarray(x).copy()

    def draw(self, law: Law, scale: Fraction) -> int:
        return 0

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        return _ZeroPositions()

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> Segments | None:
        return None

    def bernoulli(self, probability: Exact) -> bool:
        return isinstance(probability, Fraction) and probability > Fraction(1, 2)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        return max(range(len(weights)), key=lambda i: weights[i])

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        return int(np.argmax(np.asarray(scores)))


class _ZeroPositions:
    def run(self, level: int, length: int) -> int | None:
        return 0 if length and level < 0 else None


class ForbiddenNoise:
    """Noise that must not be drawn: input is checked before anything is."""

    secure = False

    def session(self) -> ForbiddenNoise:
        raise AssertionError("noise was asked for before the input was checked")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"noise.{name} was asked for before the input was checked")


@dataclass
class RecordingNoise:
    """Passes every call on to another noise and remembers the scales asked for."""

    noise: Noise
    scales: list[Fraction] = field(default_factory=list)
    secure: ClassVar[bool] = False

    def session(self) -> RecordingNoise:
        return RecordingNoise(self.noise.session(), self.scales)

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        self.scales.append(scale)
        return self.noise.add(x, scale, parts=parts)

    def draw(self, law: Law, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.noise.draw(law, scale)

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        self.scales.append(scale)
        return self.noise.first_success(law, scale)

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> Segments | None:
        self.scales.append(scale)
        return self.noise.segments(law, scale, threshold, positions, weights, last)

    def bernoulli(self, probability: Exact) -> bool:
        return self.noise.bernoulli(probability)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        return self.noise.categorical(weights)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.noise.exponential(scores, scale)
