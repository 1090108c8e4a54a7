"""Output laws, privacy losses and couplings of the shipped code, exactly.

The coupling test is for adaptive mechanisms whose looks cannot be enumerated.

All additive noise goes through `noise.add(x, scale)`. A mechanism runs on one data set and the
noisy values are recorded; then it runs on a neighbour with exactly the noise that reproduces the
same noisy values. If both runs ask for the same shapes and scales and publish the same output,
the noises differ by x - x' at each look, and the loss on this outcome is at most the sum of
|x - x'| / scale. Over all outcomes that is the mechanism's epsilon. Gaussian noise bounds no loss, but
rho: (x - x')^2 / (2 variance) for each look, and half the square of |x - x'| / scale for Laplace noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, total_ordering
from itertools import product
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from partita.arrays import Ints, UInts
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import Exact
from partita.trusted.noise.system import Noise
from partita.trusted.streams.base import ContinualCounter


class CouplingBroken(AssertionError):
    """The two runs asked for different noise or published different outputs."""


def coupled(run: Callable[[Any, Noise], object], data: object, neighbor: object, noise: Noise) -> Fraction:
    """The loss that the coupling accounts for: sum |x - x'| / scale over all looks.

    `run(data, noise)` returns the public output, comparable with ==. Raises `CouplingBroken` where
    no bound follows.
    """
    second = _replayed(run, data, neighbor, noise)
    if second.unbounded:
        raise CouplingBroken("Gaussian noise hides a difference: it bounds rho and no loss; see coupled_rho")
    return second.loss


def coupled_rho(
    run: Callable[[Any, Noise], object], data: object, neighbor: object, noise: Noise
) -> Fraction:
    """The rho of zCDP that the coupling accounts for, over all looks [BS16, Prop 1.4; CKS20, Thm 14].

    (x - x')^2 / (2 variance) of a Gaussian noise, (|x - x'| / scale)^2 / 2 of a Laplace noise, added up.
    """
    return _replayed(run, data, neighbor, noise).rho


def _replayed(run: Callable[[Any, Noise], object], data: object, neighbor: object, noise: Noise) -> _Replayer:
    first = _Recorder(noise)
    output = run(data, first)
    second = _Replayer(first.looks)
    if run(neighbor, second) != output or second.looks:
        raise CouplingBroken("the outputs or the numbers of looks differ: something unpaid reached them")
    return second


@dataclass(frozen=True)
class _Look:
    """One call of add: what was secret, at which scales or Gaussian variances, and what came out."""

    secret: Any
    scales: list[Fraction]
    noisy: Any
    gaussian: bool = False


class _AdditiveOnly:
    """A noise of which only `add` and `add_gaussian` may be used."""

    secure = False

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        raise NotImplementedError

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        raise NotImplementedError

    def session(self) -> Any:
        return self

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise CouplingBroken("only additive noise can be coupled; enumerate this mechanism instead")

    draw = first_success = segments = bernoulli = categorical = exponential = _refuse
    permute_and_flip = integers_below = _refuse


@dataclass
class _Recorder(_AdditiveOnly):
    noise: Noise
    looks: list[_Look] = field(default_factory=list)

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        noisy = self.noise.add(x, scale, parts=parts)
        return self._record(_Look(np.array(x, dtype=object), _scales(x, scale, parts), noisy))

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        noisy = self.noise.add_gaussian(x, variance)
        return self._record(_Look(np.array(x, dtype=object), _scales(x, variance, None), noisy, True))

    def _record(self, look: _Look) -> Any:
        self.looks.append(look)
        return np.copy(look.noisy) if isinstance(look.noisy, np.ndarray) else look.noisy


@dataclass
class _Replayer(_AdditiveOnly):
    looks: list[_Look]
    loss: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    unbounded: bool = False

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        look, apart = self._next(x, _scales(x, scale, parts), gaussian=False)
        losses = [gap / s for gap, s in zip(apart, look.scales, strict=True)]
        self.loss += sum(losses, Fraction(0))
        self.rho += sum((loss**2 / 2 for loss in losses), Fraction(0))
        return np.copy(look.noisy) if isinstance(look.noisy, np.ndarray) else look.noisy

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        look, apart = self._next(x, _scales(x, variance, None), gaussian=True)
        self.rho += sum((gap**2 / (2 * v) for gap, v in zip(apart, look.scales, strict=True)), Fraction(0))
        self.unbounded = self.unbounded or any(apart)
        return np.copy(look.noisy) if isinstance(look.noisy, np.ndarray) else look.noisy

    def _next(self, x: ArrayLike, scales: list[Fraction], *, gaussian: bool) -> tuple[_Look, list[int]]:
        """The same look of the first run, and by how much each secret differs."""
        look = self.looks.pop(0) if self.looks else None
        secret = np.array(x, dtype=object)
        if look is None or look.gaussian != gaussian:
            raise CouplingBroken("the kinds or numbers of draws depend on the data")
        if look.secret.shape != secret.shape or look.scales != scales:
            raise CouplingBroken("shapes or scales depend on the data")
        return look, [abs(int(a) - int(b)) for a, b in zip(look.secret.flat, secret.flat, strict=True)]


def _scales(x: ArrayLike, scale: Fraction, parts: ArrayLike | None) -> list[Fraction]:
    """The scale of each entry."""
    finer = np.broadcast_to(np.asarray(1 if parts is None else parts), np.shape(x))
    return [Fraction(scale) / int(part) for part in finer.flat]


# Privacy loss, exactly: the largest ratio between two output laws.
@total_ordering
@dataclass(frozen=True)
class Loss:
    """A privacy loss ln(ratio), where exp(-unit) is represented by the rational `base`.

    Compared with a number of epsilon exactly: ln(ratio) <= epsilon means ratio <= base^(-epsilon/unit).
    An infinite loss (an outcome that only one law can produce) has ratio None.

    >>> Loss(Fraction(4), base=Fraction(1, 2), unit=Fraction(1)) <= 2
    True
    >>> Loss(Fraction(5), base=Fraction(1, 2), unit=Fraction(1)) <= 2
    False
    """

    ratio: Fraction | None
    base: Fraction
    unit: Fraction

    def __eq__(self, epsilon: object) -> bool:
        if isinstance(epsilon, Loss):
            return (self.ratio, self.base, self.unit) == (epsilon.ratio, epsilon.base, epsilon.unit)
        return self.ratio is not None and isinstance(epsilon, int | Fraction) and self._sign(epsilon) == 0

    def __lt__(self, epsilon: Loss | Fraction | int) -> bool:
        if isinstance(epsilon, Loss):
            return epsilon.ratio is None or (self.ratio is not None and self.ratio < epsilon.ratio)
        return self.ratio is not None and self._sign(epsilon) < 0

    def __hash__(self) -> int:
        return hash((self.ratio, self.base, self.unit))

    def __float__(self) -> float:
        if self.ratio is None:
            return math.inf
        log_ratio = math.log(self.ratio.numerator) - math.log(self.ratio.denominator)
        return log_ratio / -math.log(self.base) * float(self.unit)

    def _sign(self, epsilon: Fraction | int) -> int:
        """The sign of ln(ratio) - epsilon."""
        units = Fraction(epsilon) / self.unit
        ratio = self.ratio if self.ratio is not None else Fraction(0)
        left, right = ratio**units.denominator, (1 / self.base) ** units.numerator
        return (left > right) - (left < right)


def privacy_loss(
    one: Mapping[Hashable, Fraction], other: Mapping[Hashable, Fraction], *, base: Fraction, unit: Fraction
) -> Loss:
    """The largest loss over all outcomes, in both directions."""
    worst = Fraction(1)
    for outcome in one.keys() | other.keys():
        p, q = one.get(outcome, Fraction(0)), other.get(outcome, Fraction(0))
        if p == q:
            continue
        if not p or not q:
            return Loss(None, base, unit)
        worst = max(worst, p / q, q / p)
    return Loss(worst, base, unit)


def loss_beyond(
    one: Mapping[Hashable, Fraction],
    other: Mapping[Hashable, Fraction],
    delta: Fraction,
    *,
    base: Fraction,
    unit: Fraction,
) -> Loss:
    """The least loss that holds but for delta, in both directions, exactly: (loss, delta)-DP and no less.

    >>> coin = {0: Fraction(3, 4), 1: Fraction(1, 4)}
    >>> facts = {"base": Fraction(1, 2), "unit": Fraction(1)}
    >>> loss_beyond(coin, {0: Fraction(1)}, Fraction(1, 4), **facts).ratio
    Fraction(1, 1)
    >>> loss_beyond(coin, {0: Fraction(1)}, Fraction(1, 5), **facts).ratio is None
    True
    """
    factors = [_factor_beyond(one, other, delta), _factor_beyond(other, one, delta)]
    known = [factor for factor in factors if factor is not None]
    return Loss(max(known) if len(known) == len(factors) else None, base, unit)


def _factor_beyond(
    one: Mapping[Hashable, Fraction], other: Mapping[Hashable, Fraction], delta: Fraction
) -> Fraction | None:
    """The least f >= 1 with P[S] <= f Q[S] + delta for all events S; None if there is none.

    The excess over f is that of the outcomes whose ratio is above f: it falls as f grows, in straight pieces.
    """
    pairs = [(p, other.get(outcome, Fraction(0))) for outcome, p in one.items()]
    alone = sum((p for p, q in pairs if not q), Fraction(0))
    if alone > delta:
        return None
    shared = sorted(((p / q, p, q) for p, q in pairs if q), reverse=True)
    mine, theirs, factor = alone, Fraction(0), Fraction(1)
    for ratio, p, q in shared:
        if mine - ratio * theirs > delta:
            break
        mine, theirs = mine + p, theirs + q
        factor = (mine - delta) / theirs
    return max(Fraction(1), factor)


# Additive noise by number: every value that the shipped code draws is given, and its scale remembered.
# With it the code can be run on one noise vector after another: on unit vectors, which shows how outputs
# depend on noise; on a vector and the same one shifted; on all vectors of a box.
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
        first = len(self.scales)
        self.scales += _scales(x, scale, parts)
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
        weight = sum(power * abs(value) for power, value in zip(powers, vector, strict=True))
        found[outcome] = found.get(outcome, Fraction(0)) + base**weight
    return found


def _power(scale: Fraction, unit: Fraction) -> int:
    """k with scale = 1 / (k unit)."""
    power = 1 / (scale * unit)
    if power.denominator != 1:
        raise ValueError(f"scale {scale} is not 1 / (k unit) for unit {unit}; choose a finer unit")
    return int(power)


# Noise with exact rational laws, and the law of whatever the shipped code makes of it.
# exp(-unit) is replaced by a rational a, so every probability is a rational number and the law of a whole
# mechanism on a tiny universe can be enumerated without rounding. Noise that is unbounded is split into the
# values below `reach` and a tail, reach + G, whose G stays symbolic: what the mechanism does with it depends
# on z = a^G through polynomials only, and their expectations are known.
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
    known = [(m, c) for m, c in enumerate(power.coefficients) if c]
    return sum((c * (1 - ratio) / (1 - ratio * base**m) for m, c in known), Fraction(0))


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
        return _power(scale, self.unit)

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

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> NoReturn:
        raise TypeError("Gaussian noise has no rational law; couple or replay this mechanism instead")

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

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        ratio, listed = self.base ** self.ratio_power(scale), spell_out(scores, lengths)
        return self.branches.choose(list(enumerate(flip_law(listed, lambda gap: ratio**gap))))

    def integers_below(self, bound: int, count: int) -> Ints:
        even = [(value, Fraction(1, bound)) for value in range(bound)]
        return np.array([self.branches.choose(even) for _ in range(count)], np.int64)


def spell_out(scores: ArrayLike, lengths: ArrayLike) -> list[int]:
    """The score of every candidate, run by run.

    >>> spell_out([0, -1], [2, 1])
    [0, 0, -1]
    """
    pairs = zip(np.asarray(scores).tolist(), np.asarray(lengths).tolist(), strict=True)
    return [score for score, length in pairs for _ in range(length)]


def flip_law(scores: Sequence[int], accept: Callable[[int], Any]) -> list[Any]:
    """The chance of each candidate under permute-and-flip; `accept(g)` that of one that is g below the best.

    A candidate that comes at time s is chosen if it is accepted and none before it is: the integral of
    p prod(1 - s p') over the others, a polynomial in s. Rationals give rationals, enclosures enclosures.

    >>> flip_law([3, 2], lambda gap: Fraction(1, 2) ** gap)
    [Fraction(3, 4), Fraction(1, 4)]
    """
    best, numbers = max(scores), Counter(scores)
    accepted = {score: accept(best - score) for score in numbers}
    chances = {score: accepted[score] * _integrate(_others(numbers, accepted, score)) for score in numbers}
    return [chances[score] for score in scores]


def _others(numbers: Mapping[int, int], accepted: Mapping[int, Any], one: int) -> list[Any]:
    """The coefficients of the product of 1 - s p over all candidates but one."""
    none = 0 * accepted[one]
    product = [none + 1]
    for score, number in numbers.items():
        for _ in range(number - (score == one)):
            shifted = [none, *product]
            product = [a - accepted[score] * b for a, b in zip([*product, none], shifted, strict=True)]
    return product


def _integrate(coefficients: Sequence[Any]) -> Any:
    """Over s from 0 to 1."""
    return sum((each / (power + 1) for power, each in enumerate(coefficients)), 0 * coefficients[0])


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


# Counters against someone who sees every output before choosing what is counted next.
Outputs: TypeAlias = tuple[float, ...]
Make: TypeAlias = Callable[[Any], ContinualCounter]
"""A counter with this noise."""
Adversary: TypeAlias = Callable[[Outputs], int]
"""What is counted next, after these outputs."""


def greedy(outputs: Outputs) -> int:
    """Counts more where the last output was high, and less where it was low."""
    return 2 if outputs and outputs[-1] > 0 else -1


def silent(outputs: Outputs) -> int:
    """Counts nothing, whatever comes out."""
    return 0


def played(make: Make, choose: Adversary, event: int | None, horizon: int) -> Run:
    """A run in which the adversary chooses every number, and one event comes on top."""

    def run(noise: NumberedNoise) -> Outputs:
        counter = make(noise)
        outputs: Outputs = ()
        for period in range(horizon):
            outputs += (counter.update(choose(outputs) + (period == event)),)
        return outputs

    return run


def counters_are_private(
    make: Make, choose: Adversary, *, horizon: int, unit: Fraction, reach: int = 1, epsilon: int = 1
) -> bool:
    """Whether adding or removing any one event changes no mass by more than e^epsilon: enumerated.

    Noise vectors within the reach are matched with those of one more; see `box_law`.
    """
    base = 1 - unit / 2
    factor = base ** -int(epsilon / unit)

    def law(event: int | None, reach: int) -> BoxLaw:
        return box_law(played(make, choose, event, horizon), reach=reach, base=base, unit=unit)

    near, far = law(None, reach), law(None, reach + 1)
    return all(
        near.at_most(law(event, reach + 1), factor) and law(event, reach).at_most(far, factor)
        for event in range(horizon)
    )


def hidden(make: Make, *, horizon: int, event: int, shift: Mapping[int, int]) -> Fraction | None:
    """What it costs to shift these noises; None if the event shows all the same.

    The shift is one-to-one, so an event that it hides changes no probability by more than its price.
    """
    plain = NumberedNoise(_some)
    shifted = NumberedNoise(lambda number: _some(number) + shift.get(number, 0))
    without, with_it = played(make, greedy, None, horizon), played(make, greedy, event, horizon)
    if without(plain) != with_it(shifted) or plain.scales != shifted.scales:
        return None
    return sum((abs(by) / plain.scales[number] for number, by in shift.items()), Fraction(0))


def _some(number: int) -> int:
    """Noise that looks arbitrary and is the same in every run."""
    return (number * 7919 + number**2 * 31) % 41 - 20
