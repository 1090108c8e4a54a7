"""A mechanism, a tiny universe, whom it protects: the cases that follow, by coupling and by law."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import gcd, lcm
from typing import Any, Final, TypeAlias, final

from partita.audit.base.case import Case, Depth, step
from partita.audit.base.universes import Counts, moved, neighbours, sum_of
from partita.audit.laws.coupling import Run, coupled_loss
from partita.testing.doubles.doubles import RecordingNoise, ZeroNoise
from partita.testing.laws.loss import Loss, privacy_loss
from partita.testing.laws.rational import OutputLaw, RationalNoise, law

Protected: TypeAlias = Mapping[str, Any]

MOVING: Final[Protected] = {"neighbors": "change-one", "contributions": 2}

EVERYBODY: Final[tuple[Protected, ...]] = ({}, {"neighbors": "change-one"}, {"contributions": 2}, MOVING)
"""A row that comes or goes, a row that changes, a person with two rows who comes or goes, or changes them."""

HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, kw_only=True)
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
        return (
            self.protected[:: len(self.protected) - 1] if self.slow and depth == "quick" else self.protected
        )

    def pairs(self, depth: Depth, more: int, protected: Protected) -> Iterator[tuple[Counts, Counts]]:
        """All pairs of this depth; with `more`, others have so many rows more.

        Of a person who changes several rows, those pairs are taken in which the rows lie together and move
        to the next cell: all pairs would be too many.
        """
        rows = step(depth, *self.rows) + more
        if protected == MOVING:
            return moved(self.cells, rows, contributions=protected["contributions"])
        return neighbours(self.cells, rows, **protected)

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
        changes = (
            "comes or goes" if "neighbors" not in protected else "changes" + (" them" if rows > 1 else "")
        )
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
        yield Case(
            mechanism=world.mechanism,
            about=world.said(protected),
            way="coupling",
            epsilon=mechanism.guarantee.epsilon,
            pairs=partial(world.pairs, depth, more, protected),
            loss=_coupled(world.run(mechanism)),
        )


def _coupled(run: Run) -> Callable[[Any, Any], Fraction]:
    return lambda one, other: coupled_loss(run, one, other, seed=(one, other))


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
        yield Case(
            mechanism=world.mechanism,
            about=world.said(protected),
            way="law",
            epsilon=mechanism.guarantee.epsilon,
            pairs=partial(world.pairs, depth, more, protected),
            loss=law_loss(world.run(mechanism), noise),
        )


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


def law_loss(run: Run, noise: RationalNoise) -> Callable[[Any, Any], Loss]:
    """The loss of a pair by the laws of both, each enumerated once."""

    @cache
    def law_of(data: Any) -> OutputLaw:
        return law(lambda noise: run(data, noise), noise)

    return lambda one, other: privacy_loss(law_of(one), law_of(other), base=noise.base, unit=noise.unit)
