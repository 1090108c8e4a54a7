"""Noise with exact rational laws, and the law of whatever the shipped code makes of it.

exp(-unit) is replaced by a rational a, so every probability is a rational number and the law of
a whole mechanism on a tiny universe can be enumerated without rounding. Noise that is unbounded
is split into the values below `reach` and a tail, reach + G, whose G stays symbolic: what the
mechanism does with it depends on z = a^G through polynomials only, and their expectations are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from partita.trusted.noise.hazard.hazard import Law
from partita.trusted.noise.laws.reals import Exact
from partita.trusted.noise.laws.tables import Ints
from partita.trusted.noise.laws.words import UInts

Option = TypeVar("Option")
Weight: TypeAlias = "Fraction | Power"


@dataclass(frozen=True)
class Tail:
    """The unknown integer offset + sign G of a far tail, in arithmetic with known integers."""

    offset: int
    sign: int
    variable: int

    def __add__(self, other: int) -> Tail:
        return Tail(self.offset + other, self.sign, self.variable)

    __radd__ = __add__

    def __sub__(self, other: int) -> Tail:
        return self + -other


@dataclass(frozen=True)
class Power:
    """coefficients[m] z^m summed, with z = a^G for the G of one tail."""

    variable: int
    coefficients: tuple[Fraction, ...]

    def __mul__(self, other: Power) -> Power:
        product = [Fraction(0)] * (len(self.coefficients) + len(other.coefficients) - 1)
        for i, left in enumerate(self.coefficients):
            for j, right in enumerate(other.coefficients):
                product[i + j] += left * right
        return Power(self.variable, tuple(product))


class _Branches:
    """One path through all choices, and the way to the next one."""

    def __init__(self) -> None:
        self.path: list[int] = []
        self.widths: list[int] = []
        self.depth = 0
        self.weights: list[Weight] = []
        self.tails: list[Fraction] = []

    def choose(self, options: Sequence[tuple[Option, Weight]]) -> Option:
        """The option of this path; options of weight zero are never taken."""
        possible = [option for option in options if option[1] != 0]
        if self.depth == len(self.path):
            self.path.append(0)
            self.widths.append(len(possible))
        outcome, weight = possible[self.path[self.depth]]
        self.depth += 1
        self.weights.append(weight)
        return outcome

    def restart(self) -> None:
        self.depth, self.weights, self.tails = 0, [], []

    def advance(self) -> bool:
        """Go on to the next path; False after the last."""
        while self.path and self.path[-1] + 1 == self.widths[-1]:
            self.path.pop()
            self.widths.pop()
        if self.path:
            self.path[-1] += 1
        return bool(self.path)

    def mass(self, base: Fraction) -> Fraction:
        """The probability of this path: the product of its weights, averaged over all tails."""
        mass = Fraction(1)
        powers: dict[int, Power] = {}
        for weight in self.weights:
            if isinstance(weight, Power):
                known = powers.get(weight.variable)
                powers[weight.variable] = weight if known is None else known * weight
            else:
                mass *= weight
        for variable, power in powers.items():
            mass *= _expectation(power, self.tails[variable], base)
        return mass


def _expectation(power: Power, ratio: Fraction, base: Fraction) -> Fraction:
    """E[sum c_m z^m] for z = base^G, P[G = g] = (1 - ratio) ratio^g."""
    return sum(
        (c * (1 - ratio) / (1 - ratio * base**m) for m, c in enumerate(power.coefficients) if c), Fraction(0)
    )


class _ReachTooSmall(Exception):
    """A tail met a level at which its symbolic form does not hold."""


class RationalNoise:
    """The noise protocol with exp(-unit) = base, a rational; draws branch instead of being random.

    `reach` is where tails begin; `law` raises it as far as the data ask for. `window` are the
    values that `add` tells apart, what lies outside is "below" or "above". Scales must be
    1 / (k unit) for an integer k.
    """

    secure = False

    def __init__(
        self, base: Fraction, *, unit: Fraction = Fraction(1), reach: int = 0, window: range = range(-4, 5)
    ) -> None:
        self.base = base
        self.unit = unit
        self.reach = reach
        self.window = window
        self.branches = _Branches()

    def session(self) -> RationalNoise:
        return self

    def ratio_power(self, scale: Fraction) -> int:
        """k with exp(-1/scale) = base^k."""
        power = 1 / (scale * self.unit)
        if power.denominator != 1:
            raise ValueError(f"scale {scale} is not 1 / (k unit) for unit {self.unit}; choose a finer unit")
        return int(power)

    def draw(self, law: Law, scale: Fraction) -> Any:
        """One noise: an int below the reach, or a tail."""
        ratio = self.base ** self.ratio_power(scale)
        variable = len(self.branches.tails)
        self.branches.tails.append(ratio)
        if law == "geometric":
            near: list[tuple[int | Tail, Fraction]] = [(t, (1 - ratio) * ratio**t) for t in range(self.reach)]
            return self.branches.choose([*near, (Tail(self.reach, 1, variable), ratio**self.reach)])
        reach = max(1, self.reach)
        near = [(t, _laplace(t, ratio)) for t in range(1 - reach, reach)]
        far = [(Tail(sign * reach, sign, variable), ratio**reach / (1 + ratio)) for sign in (1, -1)]
        return self.branches.choose([*near, *far])

    def first_success(self, law: Law, scale: Fraction) -> _RationalPositions:
        return _RationalPositions(self, law, self.ratio_power(scale))

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> None:
        """No fast walk: the specification is what is enumerated."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        """x plus discrete Laplace noise, entry by entry; far values are told apart by side only."""
        values = np.asarray(x, dtype=object)
        finer = np.broadcast_to(np.asarray(1 if parts is None else parts, dtype=object), values.shape)
        noisy = [self._add(value, scale / part) for value, part in zip(values.flat, finer.flat, strict=True)]
        return noisy[0] if values.ndim == 0 else np.array(noisy, dtype=object).reshape(values.shape)

    def _add(self, value: int, scale: Fraction) -> int | str:
        ratio = self.base ** self.ratio_power(scale)
        low, high = self.window[0], self.window[-1]
        if not low <= value <= high:
            raise ValueError("the window must hold every true value; widen it")
        inside: list[tuple[int | str, Fraction]] = [(y, _laplace(y - value, ratio)) for y in self.window]
        below = ratio ** (value - low + 1) / (1 + ratio)
        above = ratio ** (high - value + 1) / (1 + ratio)
        return self.branches.choose([*inside, ("below", below), ("above", above)])

    def bernoulli(self, probability: Exact) -> bool:
        if not isinstance(probability, Fraction):
            raise TypeError("only rational probabilities can be enumerated")
        return self.branches.choose([(True, probability), (False, 1 - probability)])

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        exact = [Fraction(weight) for weight in weights]
        return self.branches.choose([(i, weight / sum(exact)) for i, weight in enumerate(exact)])

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        ratio = self.base ** self.ratio_power(scale)
        best = max(np.asarray(scores).tolist())
        return self.categorical([ratio ** (best - score) for score in np.asarray(scores).tolist()])


class _RationalPositions:
    """Fresh noise at every position, branch by branch."""

    def __init__(self, noise: RationalNoise, law: Law, power: int) -> None:
        self._noise = noise
        self._law = law
        self._power = power

    def run(self, level: int | Tail, length: int) -> int | None:
        """Success at each offset, or none, with the probability of each."""
        if length == 0:
            return None
        success = self._exceeds(level)
        if isinstance(success, Fraction):
            failure: Any = 1 - success
            none: Any = Fraction(1)
        else:
            one = (Fraction(1),) + (Fraction(0),) * (len(success.coefficients) - 1)
            failure = Power(
                success.variable, tuple(a - b for a, b in zip(one, success.coefficients, strict=True))
            )
            none = Power(success.variable, (Fraction(1),))
        options: list[tuple[int | None, Any]] = []
        for offset in range(length):
            options.append((offset, none * success))
            none = none * failure
        return self._noise.branches.choose([*options, (None, none)])

    def _exceeds(self, level: int | Tail) -> Fraction | Power:
        """P[noise > level]."""
        ratio = self._noise.base**self._power
        if isinstance(level, int):
            return _geometric_tail(level, ratio) if self._law == "geometric" else _laplace_tail(level, ratio)
        zeros = (Fraction(0),) * (self._power - 1)
        if level.sign > 0:
            if level.offset < -1:
                raise _ReachTooSmall
            first = ratio ** (level.offset + 1) / (1 if self._law == "geometric" else 1 + ratio)
            return Power(level.variable, (Fraction(0), *zeros, first))
        if level.offset > 0:
            raise _ReachTooSmall
        if self._law == "geometric":
            return Fraction(1) if level.offset < 0 else Power(level.variable, (Fraction(1),))
        return Power(level.variable, (Fraction(1), *zeros, -(ratio**-level.offset) / (1 + ratio)))


def _laplace(value: int, ratio: Fraction) -> Fraction:
    return (1 - ratio) / (1 + ratio) * ratio ** abs(value)


def _laplace_tail(level: int, ratio: Fraction) -> Fraction:
    """P[noise > level] for discrete Laplace noise."""
    return ratio ** (level + 1) / (1 + ratio) if level >= -1 else 1 - ratio**-level / (1 + ratio)


def _geometric_tail(level: int, ratio: Fraction) -> Fraction:
    """P[noise > level] for one-sided geometric noise."""
    return ratio ** (level + 1) if level >= -1 else Fraction(1)


class OutputLaw(dict[Hashable, Fraction]):
    """The probability of each output."""


def law(run: Callable[[RationalNoise], Hashable], noise: RationalNoise) -> OutputLaw:
    """The exact law of `run(noise)`: the shipped code through every branch.

    >>> coin = law(lambda noise: noise.bernoulli(Fraction(1, 3)), RationalNoise(Fraction(1, 2)))
    >>> coin[True]
    Fraction(1, 3)
    """
    while True:
        try:
            return _enumerate(run, noise)
        except _ReachTooSmall:
            noise.reach += 1


def _enumerate(run: Callable[[RationalNoise], Hashable], noise: RationalNoise) -> OutputLaw:
    found = OutputLaw()
    noise.branches = branches = _Branches()
    while True:
        branches.restart()
        outcome = run(noise)
        found[outcome] = found.get(outcome, Fraction(0)) + branches.mass(noise.base)
        if not branches.advance():
            break
    assert sum(found.values()) == 1, "the branches do not add up to a law"
    return found
