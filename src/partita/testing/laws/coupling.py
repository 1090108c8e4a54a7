"""The coupling test: for adaptive mechanisms whose looks cannot be enumerated.

All additive noise goes through `noise.add(x, scale)`. A mechanism runs on one data set and the
noisy values are recorded; then it runs on a neighbour with exactly the noise that reproduces the
same noisy values. If both runs ask for the same shapes and scales and publish the same output,
the noises differ by x - x' at each look, and the loss on this outcome is at most the sum of
|x - x'| / scale. Over all outcomes that is the mechanism's epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.reals import Exact
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.laws.words import UInts
from partita.trusted.noise.system.protocol import Noise


class CouplingBroken(AssertionError):
    """The two runs asked for different noise or published different outputs."""


def coupled(run: Callable[[Any, Noise], object], data: object, neighbor: object, noise: Noise) -> Fraction:
    """The loss that the coupling accounts for: sum |x - x'| / scale over all looks.

    `run(data, noise)` returns the public output, comparable with ==. Raises `CouplingBroken` where
    no bound follows.
    """
    first = _Recorder(noise)
    output = run(data, first)
    second = _Replayer(first.looks)
    if run(neighbor, second) != output or second.looks:
        raise CouplingBroken("the outputs or the numbers of looks differ: something unpaid reached them")
    return second.loss


@dataclass(frozen=True)
class _Look:
    """One call of add: what was secret, at which scale, and what came out."""

    secret: Any
    scales: list[Fraction]
    noisy: Any


class _AdditiveOnly:
    """A noise of which only `add` may be used."""

    secure = False

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        raise NotImplementedError

    def session(self) -> Any:
        return self

    def _refuse(self, *_: object) -> NoReturn:
        raise CouplingBroken("only additive noise can be coupled; enumerate this mechanism instead")

    def draw(self, law: Law, scale: Fraction) -> NoReturn:
        self._refuse()

    def first_success(self, law: Law, scale: Fraction) -> NoReturn:
        self._refuse()

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> NoReturn:
        self._refuse()

    def bernoulli(self, probability: Exact) -> NoReturn:
        self._refuse()

    def categorical(self, weights: Sequence[int | Fraction]) -> NoReturn:
        self._refuse()

    def exponential(self, scores: ArrayLike, scale: Fraction) -> NoReturn:
        self._refuse()


@dataclass
class _Recorder(_AdditiveOnly):
    noise: Noise
    looks: list[_Look] = field(default_factory=list)

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        noisy = self.noise.add(x, scale, parts=parts)
        self.looks.append(_Look(np.array(x, dtype=object), _scales(x, scale, parts), noisy))
        return np.copy(noisy) if isinstance(noisy, np.ndarray) else noisy


@dataclass
class _Replayer(_AdditiveOnly):
    looks: list[_Look]
    loss: Fraction = Fraction(0)

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        look = self.looks.pop(0) if self.looks else None
        secret = np.array(x, dtype=object)
        scales = _scales(x, scale, parts)
        if look is None or look.secret.shape != secret.shape or look.scales != scales:
            raise CouplingBroken("shapes or scales depend on the data")
        apart = (abs(int(a) - int(b)) for a, b in zip(look.secret.flat, secret.flat, strict=True))
        self.loss += sum((gap / s for gap, s in zip(apart, scales, strict=True)), Fraction(0))
        return np.copy(look.noisy) if isinstance(look.noisy, np.ndarray) else look.noisy


def _scales(x: ArrayLike, scale: Fraction, parts: ArrayLike | None) -> list[Fraction]:
    """The scale of each entry."""
    finer = np.broadcast_to(np.asarray(1 if parts is None else parts), np.shape(x))
    return [Fraction(scale) / int(part) for part in finer.flat]
