"""Additive noise by number: every value that the shipped code draws is given, and its scale remembered.

With it the code can be run on one noise vector after another: on unit vectors, which shows how outputs
depend on noise; on a vector and the same one shifted; on all vectors of a box.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

Run: TypeAlias = Callable[["NumberedNoise"], Any]


class NumberedNoise:
    """Noise whose i-th value is value(i); only `add` may be used.

    >>> noise = NumberedNoise(lambda number: 10 * number)
    >>> noise.add([1, 1], Fraction(3)).tolist(), noise.scales
    ([1, 11], [Fraction(3, 1), Fraction(3, 1)])
    """

    secure = False

    def __init__(self, value: Callable[[int], int] = lambda _: 0) -> None:
        self._value = value
        self.scales: list[Fraction] = []

    def session(self) -> NumberedNoise:
        """The same numbers go on."""
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        """x plus the next values."""
        secret = np.asarray(x, dtype=object)
        finer = np.broadcast_to(np.asarray(1 if parts is None else parts), secret.shape)
        first = len(self.scales)
        self.scales += [Fraction(scale) / int(part) for part in finer.flat]
        noisy = [int(secret.flat[i]) + self._value(first + i) for i in range(secret.size)]
        return np.array(noisy, dtype=np.int64).reshape(secret.shape) if secret.ndim else noisy[0]

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"only additive noise is numbered, not {name!r}")


def noises_of(run: Run) -> list[Fraction]:
    """The scales of all noises that a run draws, in order."""
    noise = NumberedNoise()
    run(noise)
    return noise.scales


def columns(run: Run, *, size: int = 1) -> list[tuple[Fraction, tuple[Fraction, ...]]]:
    """For each noise its scale and by how much one more of it changes each output of the run.

    This is all there is to know if outputs are linear in the noise. Where they are rounded, `size` of it
    are added and the change is divided.
    """
    scales, still = noises_of(run), run(NumberedNoise())
    moved = (run(NumberedNoise(partial(_lone, number, size))) for number in range(len(scales)))
    return [
        (scale, tuple((Fraction(a) - Fraction(b)) / size for a, b in zip(outputs, still, strict=True)))
        for scale, outputs in zip(scales, moved, strict=True)
    ]


def _lone(chosen: int, size: int, number: int) -> int:
    return size if number == chosen else 0


class BoxLaw(dict[Hashable, Fraction]):
    """The mass of each outcome over all noise vectors in a box, but for a factor that all boxes share."""

    def at_most(self, other: BoxLaw, factor: Fraction) -> bool:
        """Whether each outcome has at most that many times the mass that it has in the other."""
        return all(mass <= factor * other.get(outcome, 0) for outcome, mass in self.items())


def box_law(run: Run, *, reach: int, base: Fraction, unit: Fraction) -> BoxLaw:
    """The shipped code on every noise vector with entries from -reach to reach.

    exp(-unit) is replaced by the rational base; scales must be 1 / (k unit) for integers k. A coupling
    that shifts each noise by at most one takes this box into the one with a reach of one more: if the
    loss is at most epsilon, the masses differ by a factor of at most base^(-epsilon / unit).
    """
    powers = [_power(scale, unit) for scale in noises_of(run)]
    found = BoxLaw()
    for vector in product(range(-reach, reach + 1), repeat=len(powers)):
        outcome = run(NumberedNoise(vector.__getitem__))
        found[outcome] = found.get(outcome, Fraction(0)) + base ** _weight(powers, vector)
    return found


def _power(scale: Fraction, unit: Fraction) -> int:
    power = 1 / (scale * unit)
    if power.denominator != 1:
        raise ValueError(f"scale {scale} is not 1 / (k unit) for unit {unit}; choose a finer unit")
    return int(power)


def _weight(powers: Sequence[int], vector: Iterable[int]) -> int:
    return sum(power * abs(value) for power, value in zip(powers, vector, strict=True))
