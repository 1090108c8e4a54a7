"""What mechanisms may ask of noise.

`SystemNoise` is the one that protects people. Tests put other objects in its place: tapes,
exact finite laws, recorders. A mechanism cannot tell them apart, so the code that is tested is
the code that is shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.reals import Exact
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.laws.words import UInts

IntegerArray: TypeAlias = NDArray[np.int64] | NDArray[np.object_]
"""int64, or Python ints where those might not fit."""


class Positions(Protocol):
    """Positions walked in order until fresh noise first exceeds the level of one."""

    def run(self, level: int, length: int) -> int | None:
        """The offset of the first success among the next `length` positions, or None."""


class Segments(Protocol):
    """A fast way to find many first successes, one after another."""

    def ends(self, start: int) -> UInts:
        """Ends of the segments from `start` on, up to the first one in doubt."""


class Noise(Protocol):
    """A source of integer noise whose law is exactly the one its name says."""

    @property
    def secure(self) -> bool:
        """Whether what is released with this noise carries its guarantee."""

    def session(self) -> Noise:
        """The same noise for one release: one key, dropped with the session."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        """x plus discrete Laplace noise; entry i gets noise of scale / parts[i]."""

    def draw(self, law: Law, scale: Fraction) -> int:
        """One noise of the law."""

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        """Fresh noise of the law at every position."""

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> Segments | None:
        """A fast walk over a stream of weights, where this noise has one."""

    def bernoulli(self, probability: Exact) -> bool:
        """True with exactly the given probability."""

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        """i with probability exactly weights[i] / sum(weights)."""

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        """i with probability exactly proportional to exp(scores[i] / scale)."""
