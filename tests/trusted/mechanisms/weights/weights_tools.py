"""Tiny universes, clamped rational noise, and a replay that adds up what every look costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from partita.domain import Integer
from partita.public.queries.queries import Universe
from partita.public.queries.ranges import Sparse
from partita.public.workload.release import Change
from partita.public.workload.weights import Measurements, WeightsBudget
from partita.testing import EndlessTape, RationalNoise, tape_noise
from partita.trusted.mechanisms.weights import weigh
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

Counts = tuple[int, ...]


def explicit(rows: Sequence[Sequence[int]], granularity: int = 1) -> Sparse:
    """Queries over one axis by all their weights, in units."""
    table = np.array(rows)
    queries, cells = np.nonzero(table)
    return Sparse((table.shape[1],), len(rows), queries, cells, table[queries, cells], granularity)


def released(
    counts: Counts, noise: Noise, rows: Sequence[Sequence[int]], change: Change, budget: WeightsBudget
) -> Measurements:
    """The shipped rounds on counts over one axis."""
    return weigh(
        np.array(counts, np.int64),
        operator=explicit(rows),
        unit=1,
        change=change,
        budget=budget,
        session=noise.session(),
    )


def output(weighed: Measurements) -> tuple[Any, ...]:
    """All that was released, comparable."""
    marginals = tuple(int(number) for number in weighed.marginals)
    return weighed.total, marginals, tuple(weighed.indices.tolist()), tuple(weighed.noisy.tolist())


class Clamped(RationalNoise):
    """Rational noise that is clamped to the window: post-processing, with few outcomes."""

    def _add(self, value: int, scale: Fraction) -> int | str:
        ratio = self.base ** self.ratio_power(scale)
        low, high = self.window[0], self.window[-1]
        masses = {near: (1 - ratio) / (1 + ratio) * ratio ** abs(near - value) for near in self.window}
        masses[low] += ratio ** (value - low + 1) / (1 + ratio)
        masses[high] += ratio ** (high - value + 1) / (1 + ratio)
        return self.branches.choose(list(masses.items()))


@dataclass
class Look:
    """What a run asked for, and what it got."""

    secret: Any
    scale: Fraction
    seen: Any


@dataclass
class Recorder:
    """Passes looks on and remembers them."""

    noise: Noise
    looks: list[Look] = field(default_factory=list)
    secure: bool = False

    def session(self) -> Recorder:
        return self

    def add(self, x: Any, scale: Fraction) -> Any:
        return self._seen(x, scale, self.noise.add(x, scale))

    def exponential(self, scores: Any, scale: Fraction) -> int:
        return int(self._seen(scores, scale, self.noise.exponential(scores, scale)))

    def _seen(self, secret: Any, scale: Fraction, seen: Any) -> Any:
        self.looks.append(Look(np.array(secret, object), scale, seen))
        return seen


@dataclass
class Replayer:
    """Gives a neighbour the same outcomes, and adds up the largest loss that each of them may have.

    `seen` lists these losses, look by look.
    """

    looks: list[Look]
    loss: Fraction = Fraction(0)
    secure: bool = False
    seen: list[Fraction] = field(default_factory=list)

    def session(self) -> Replayer:
        return self

    def add(self, x: Any, scale: Fraction) -> Any:
        look, apart = self._apart(x, scale)
        self._pay(Fraction(int(abs(apart).sum())) / scale)
        return look.seen

    def exponential(self, scores: Any, scale: Fraction) -> int:
        look, apart = self._apart(scores, scale)
        self._pay(Fraction(int(apart.max() - apart.min())) / scale)
        return int(look.seen)

    def _pay(self, loss: Fraction) -> None:
        self.seen.append(loss)
        self.loss += loss

    def _apart(self, secret: Any, scale: Fraction) -> tuple[Look, Any]:
        assert self.looks, "the number of looks depends on the data"
        look = self.looks.pop(0)
        assert look.scale == scale, "a noise scale depends on the data"
        assert np.shape(look.secret) == np.shape(secret), "the number of bins depends on the data"
        return look, np.atleast_1d(np.array(secret, object) - look.secret)


def losses(
    run: Callable[[Any, Any], Any], pairs: Iterator[tuple[Any, Any]], seeds: int
) -> Iterator[Fraction]:
    """What each pair of neighbours costs on outcomes of some tapes; the outputs must be the same."""
    for one, other in pairs:
        for seed in range(seeds):
            first = Recorder(tape_noise(EndlessTape(seed)).session())
            seen = run(one, first)
            second = Replayer(first.looks)
            assert run(other, second) == seen, "something unpaid reached the output"
            assert not second.looks, "the number of looks depends on the data"
            yield second.loss


def points_of(counts: Counts, universe: Universe, contributions: int = 1) -> Points:
    """So many rows in each cell of a universe of one axis."""
    cells = np.flatnonzero(counts)
    return Points.from_rows(
        cells[:, None], axes=universe.axes, counts=np.array(counts)[cells], contributions=contributions
    )


def line(size: int) -> Universe:
    """One column of so many cells, special ones included."""
    return Universe(["age"], [Integer(0, size - 5)])
