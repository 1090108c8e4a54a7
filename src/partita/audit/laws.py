"""Coupled runs of mechanisms that add noise, choose by exponential weights, and seal segments.

`partita.testing.coupled` replays additive noise. Here selections and seals are replayed too, each at the most
that it can cost: a selection whose scores move by between d and d' costs at most (d' - d) / scale, and a
segment that holds k rows more, less or elsewhere costs at most k / scale. The second is what the enumerated
law of `Partition` shows.

A bound on the loss holds for every outcome, likely or not. So what is selected and sealed in the first run is
drawn evenly, not by the law: that visits branches which the law would hardly ever take.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from math import gcd, lcm
from typing import Any, Final, NoReturn, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike

from partita.audit.base import Case, Counts, Depth, LossOf, Way, moved, neighbours, step, sum_of
from partita.testing.doubles import EndlessTape, RecordingNoise, ZeroNoise, tape_noise
from partita.testing.laws import (
    CouplingBroken,
    Loss,
    OutputLaw,
    RationalNoise,
    coupled,
    coupled_rho,
    law,
    loss_beyond,
    privacy_loss,
    spell_out,
)
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.system import Noise

Run: TypeAlias = Callable[[Any, Any], object]
"""Data and noise in, everything that is published out, comparable with ==."""


def coupled_loss(run: Run, one: object, other: object, *, seed: object) -> Fraction:
    """What the looks of both runs cost together, at most; raises `CouplingBroken` where no bound follows."""
    added, chosen = _coupled(coupled, run, one, other, seed)
    return added + chosen


def coupled_cost(mechanism: Any, run: Run, one: object, other: object, *, seed: object) -> Fraction:
    """`coupled_loss`, or what the looks cost of rho where the mechanism spends that; see `promise_of`."""
    if not spends_rho(mechanism):
        return coupled_loss(run, one, other, seed=seed)
    added, chosen = _coupled(coupled_rho, run, one, other, seed)
    return added + chosen**2 / 2


def promise_of(mechanism: Any) -> Fraction:
    """The amount that looks may cost: rho where the mechanism spends that, else epsilon."""
    guarantee = mechanism.guarantee
    amount: Fraction = guarantee.rho if spends_rho(mechanism) else guarantee.epsilon
    return amount


def spends_rho(mechanism: Any) -> bool:
    """Whether it spends rho: as its class does, or as it was made where its class takes epsilon as well."""
    takes_rho = bool(getattr(mechanism, "takes_rho", False))
    return takes_rho and (not getattr(mechanism, "takes_epsilon", False) or mechanism.rho is not None)


def _coupled(
    couple: Callable[..., Fraction], run: Run, one: object, other: object, seed: object
) -> tuple[Fraction, Fraction]:
    """What additive noise costs, and what choices lose."""
    choices = _Choices(EndlessTape(("choices", seed)))

    def chosen(data: object, noise: Noise) -> object:
        choices.begin()
        return run(data, _CoupledNoise(noise, choices))

    added = couple(chosen, one, other, tape_noise(EndlessTape(("noise", seed)), path="numpy").session())
    choices.end()
    return added, choices.loss


class _Choices:
    """What was selected and sealed in the first run, to be repeated in the second at its price."""

    def __init__(self, tape: EndlessTape) -> None:
        self._tape = tape
        self._made: list[_Selection | _Segment] = []
        self._thresholds: list[tuple[Law, Fraction]] = []
        self._runs = self._used = 0
        self.loss = Fraction(0)

    def begin(self) -> None:
        self._open()
        self._runs += 1
        self._used = 0

    def end(self) -> None:
        self._open()
        if self._used != len(self._made):
            raise CouplingBroken("the numbers of choices differ: they depend on the data")
        self.loss += sum((each.price for each in self._made), Fraction(0))

    def below(self, count: int) -> int:
        """Some number, each as likely as the others."""
        return int(self._tape.take(1)[0]) % count

    def selected(self, scores: ArrayLike, scale: Fraction) -> int:
        secret = np.array(scores, dtype=object).reshape(-1)
        if self._runs == 1:
            made = _Selection(secret, scale, self.below(secret.size))
            self._made.append(made)
            return made.chosen
        chosen: int = self._next(_Selection).again(secret, scale)
        return chosen

    def threshold(self, law: Law, scale: Fraction) -> int:
        """The noise of a threshold: it is paid for by the segment that it opens, which has the same scale."""
        self._open()
        self._thresholds.append((law, scale))
        return 0

    def _open(self) -> None:
        if self._thresholds:
            raise CouplingBroken("noise that is not the threshold of a segment cannot be coupled")

    def segment(self, law: Law, scale: Fraction) -> _Segment:
        if not self._thresholds or self._thresholds.pop() != (law, scale):
            raise CouplingBroken("a segment has no threshold with noise of its own")
        if self._runs == 1:
            made = _Segment(scale, self.below)
            self._made.append(made)
            return made
        again: _Segment = self._next(_Segment).again(scale)
        return again

    def _next(self, kind: type[Any]) -> Any:
        made = self._made[self._used] if self._used < len(self._made) else None
        self._used += 1
        if not isinstance(made, kind):
            raise CouplingBroken("the kinds of choices differ: they depend on the data")
        return made


@dataclass
class _Selection:
    """One choice among candidates, by their secret scores."""

    scores: Any
    scale: Fraction
    chosen: int
    price: Fraction = Fraction(0)

    def again(self, scores: Any, scale: Fraction) -> int:
        if scores.shape != self.scores.shape or scale != self.scale:
            raise CouplingBroken("candidates or scales depend on the data")
        apart = [int(a) - int(b) for a, b in zip(scores, self.scores, strict=True)]
        self.price = (max(apart) - min(apart)) / scale
        return self.chosen


@dataclass
class _Segment:
    """One segment: at each of its positions a secret level, up to the position that seals it."""

    scale: Fraction
    below: Callable[[int], int]
    levels: list[int] = field(default_factory=list)
    second: list[int] = field(default_factory=list)
    sealed: bool = False
    replayed: bool = False

    @property
    def price(self) -> Fraction:
        """Every row by which the levels begin to differ, or cease to, over the scale."""
        apart = [0, *(int(a) - int(b) for a, b in zip(self.levels, self.second, strict=False))]
        return sum((abs(b - a) / self.scale for a, b in pairwise(apart)), Fraction(0))

    def again(self, scale: Fraction) -> _Segment:
        if scale != self.scale:
            raise CouplingBroken("the scale of a segment depends on the data")
        self.replayed = True
        return self

    def run(self, level: int, length: int) -> int | None:
        """Sealed at the same position, whatever the level."""
        if self._over:
            raise CouplingBroken("a sealed segment was used again")
        for offset in range(length):
            if self._seals(level):
                return offset
        return None

    @property
    def _over(self) -> bool:
        return self.sealed and (not self.replayed or len(self.second) == len(self.levels))

    def _seals(self, level: int) -> bool:
        if self.replayed:
            self.second.append(level)
            return self.sealed and len(self.second) == len(self.levels)
        self.levels.append(level)
        self.sealed = self.below(3) == 0
        return self.sealed


class _CoupledNoise:
    """Additive noise as `coupled` has it, and choices that repeat themselves."""

    secure = False

    def __init__(self, noise: Noise, choices: _Choices) -> None:
        self._noise = noise
        self._choices = choices

    def session(self) -> _CoupledNoise:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return self._noise.add(x, scale, parts=parts)

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        return self._noise.add_gaussian(x, variance)

    def draw(self, law: Law, scale: Fraction) -> int:
        return self._choices.threshold(law, scale)

    def first_success(self, law: Law, scale: Fraction) -> _Segment:
        return self._choices.segment(law, scale)

    def segments(self, *_: object) -> None:
        """No fast walk: positions are walked one by one."""

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        return self._choices.selected(scores, scale)

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        """Runs are taken apart: which candidates have one score depends on the data, their number does not.

        Scores that move by between d and d' cost at most (d' - d) / scale here, too [MS20, Thm 1].
        """
        return self._choices.selected(spell_out(scores, lengths), scale)

    def integers_below(self, bound: int, count: int) -> NoReturn:
        raise CouplingBroken("hidden numbers are enumerated, not coupled")

    def bernoulli(self, probability: object) -> NoReturn:
        raise CouplingBroken("coins are enumerated, not coupled")

    def categorical(self, weights: Sequence[object]) -> NoReturn:
        raise CouplingBroken("choices by weights are enumerated, not coupled")


# A mechanism, a tiny universe, whom it protects: the cases that follow, by coupling and by law.
Protected: TypeAlias = Mapping[str, Any]

MOVING: Final[Protected] = {"neighbors": "change-one", "contributions": 2}

EVERYBODY: Final[tuple[Protected, ...]] = ({}, {"neighbors": "change-one"}, {"contributions": 2}, MOVING)
"""A row that comes or goes, a row that changes, a person with two rows who comes or goes, or changes them."""

HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True)
class World:
    """How to make a mechanism and its data, and how many rows others have at each depth.

    `make(**protected)` is the mechanism, `data(counts, contributions)` what it takes, `crowd` rows that are
    always there.
    """

    mechanism: str
    about: str
    make: Callable[..., Any]
    data: Callable[[Counts, int], Any]
    cells: int
    rows: tuple[int, int, int]
    protected: tuple[Protected, ...] = EVERYBODY
    crowd: Counts | None = None
    slow: bool = False
    """Whether a pair takes long: then the quick depth protects the first and the last of `protected` only."""

    def protects(self, depth: Depth) -> tuple[Protected, ...]:
        """Whom the mechanism protects at this depth; nobody where the number of rows is negative."""
        if step(depth, *self.rows) < 0:
            return ()
        few = self.slow and depth == "quick"
        return self.protected[:: max(1, len(self.protected) - 1)] if few else self.protected

    def pairs(self, depth: Depth, more: int, protected: Protected) -> Iterator[tuple[Counts, Counts]]:
        """All pairs of this depth; with `more`, others have so many rows more.

        Of a person who changes several rows, those pairs are taken in which the rows lie together and move
        to the next cell: all pairs would be too many.
        """
        rows = step(depth, *self.rows) + more
        if protected == MOVING:
            return moved(self.cells, rows, contributions=protected["contributions"])
        return neighbours(self.cells, rows, **protected)

    def case(
        self, mechanism: Any, way: Way, depth: Depth, more: int, protected: Protected, loss: LossOf
    ) -> Case:
        """The case of a mechanism that protects these people, whose losses are found in this way."""
        pairs = partial(self.pairs, depth, more, protected)
        return Case(self.mechanism, self.said(protected), way, promise_of(mechanism), pairs, loss)

    def run(self, mechanism: Any) -> Run:
        """Counts and noise in, everything that is published out."""

        def released(counts: Counts, noise: Any) -> Hashable:
            held = counts if self.crowd is None else sum_of(counts, self.crowd)
            return published(mechanism.release(self.data(held, mechanism.contributions), noise=noise))

        return released

    def said(self, protected: Protected) -> str:
        """The universe, and whom the mechanism protects, in words."""
        rows = protected.get("contributions", 1)
        who = "a row" if rows == 1 else f"a person with {rows} rows"
        changes = "changes" + " them" * (rows > 1) if "neighbors" in protected else "comes or goes"
        few = ", all of them to the next cell" if protected == MOVING else ""
        return f"{self.about}; {who} {changes}{few}"


def published(release: Any) -> Hashable:
    """All that a release holds, comparable: facts and integers, the edges of a cut, or noisy answers."""
    if not hasattr(release, "parts"):
        return tuple((release.edges if hasattr(release, "edges") else release.noisy).tolist())
    parts = release.parts()
    series = tuple((name, tuple(values.tolist())) for name, values in sorted(parts.series.items()))
    return repr(sorted(parts.facts.items())), series


def coupled_cases(world: World, depth: Depth, more: int = 0) -> Iterator[Case]:
    """A case by coupling for everybody whom the mechanism can protect."""
    for protected in world.protects(depth):
        mechanism = world.make(**protected)
        way: Way = "coupling in rho" if spends_rho(mechanism) else "coupling"
        yield world.case(mechanism, way, depth, more, protected, _couple(mechanism, world.run(mechanism)))


def _couple(mechanism: Any, run: Run) -> Callable[[Any, Any], Fraction]:
    return lambda one, other: coupled_cost(mechanism, run, one, other, seed=(one, other))


class TellingNoise(RationalNoise):
    """Rational noise whose far values are the next integers outside of the window."""

    def _add(self, value: int, scale: Fraction) -> int:
        noisy = super()._add(value, scale)
        if isinstance(noisy, str):
            return self.window[0] - 1 if noisy == "below" else self.window[-1] + 1
        return noisy


def law_cases(world: World, depth: Depth, more: int = 0, *, window: range) -> Iterator[Case]:
    """A case by enumerated laws for everybody; exp(-unit) is replaced by one half.

    The unit is the greatest number of which one over each scale is a multiple. The window must hold every
    true number that noise is added to.
    """
    for protected in world.protects(depth):
        mechanism = world.make(**protected)
        noise = TellingNoise(HALF, unit=common_unit(scales_of(world, mechanism)), window=window)
        yield world.case(mechanism, "law", depth, more, protected, law_loss(world.run(mechanism), noise))


def scales_of(world: World, mechanism: Any) -> list[Fraction]:
    """Every scale that a run without rows asks for."""
    asked = RecordingNoise(ZeroNoise())
    world.run(mechanism)((0,) * world.cells, asked)
    return asked.scales


def common_unit(scales: Iterable[Fraction]) -> Fraction:
    """The greatest number of which one over each scale is a multiple.

    >>> common_unit([Fraction(2), Fraction(3)])
    Fraction(1, 6)
    """
    rates = [1 / scale for scale in scales]
    below = lcm(*(rate.denominator for rate in rates))
    return Fraction(gcd(*(int(rate * below) for rate in rates)), below)


def law_loss(run: Run, noise: RationalNoise, *, delta: Fraction = Fraction(0)) -> Callable[[Any, Any], Loss]:
    """The loss of a pair by the laws of both, each enumerated once; but for delta."""

    @cache
    def law_of(data: Any) -> OutputLaw:
        return law(lambda noise: run(data, noise), noise)

    facts = {"base": noise.base, "unit": noise.unit}
    if delta:
        return lambda one, other: loss_beyond(law_of(one), law_of(other), delta, **facts)
    return lambda one, other: privacy_loss(law_of(one), law_of(other), **facts)
