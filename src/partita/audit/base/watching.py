"""Noise that watches what it is given: secrets must be integers, and scales exact."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partita.testing.doubles.doubles import RecordingNoise
from partita.trusted.noise.system.system import SYSTEM


class WatchingNoise(RecordingNoise):
    """Shipped noise that notes the first secret which is a float, and the first scale which is not exact."""

    def __init__(self) -> None:
        super().__init__(SYSTEM.session())
        self.problem: str | None = None
        self.chose = False

    def session(self) -> WatchingNoise:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        self._watch(x, scale)
        return super().add(x, scale, parts=parts)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        self._watch(scores, scale)
        return super().exponential(scores, scale)

    def bernoulli(self, probability: Any) -> bool:
        self.chose = True
        return super().bernoulli(probability)

    def categorical(self, weights: Any) -> int:
        self.chose = True
        return super().categorical(weights)

    def _watch(self, secret: ArrayLike, scale: object) -> None:
        array = np.asarray(secret)
        whole = array.dtype.kind in "iu" or all(isinstance(each, int) for each in array.flat)
        if not whole:
            self.problem = self.problem or "a float was given to the noise"
        if not isinstance(scale, Fraction | int):
            self.problem = self.problem or "a scale was not exact"


def off_the_grid(published: object, unit: Fraction) -> str | None:
    """Whether some published number is no multiple of the unit."""
    for number in numbers_in(published):
        if (Fraction(number) / unit).denominator != 1:
            return f"a published number is no multiple of {unit}"
    return None


def numbers_in(published: object) -> list[Any]:
    """All numbers in lists and tuples of lists and tuples."""
    if isinstance(published, list | tuple):
        return [number for each in published for number in numbers_in(each)]
    whole = isinstance(published, int | float | Fraction) and not isinstance(published, bool)
    return [published] if whole else []
