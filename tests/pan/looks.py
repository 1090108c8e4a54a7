"""What an intruder sees of a sketch: its state at one time, and all outputs; and the exact law of that.

A stream is a row of moments, in each of which one user comes or nobody does. Two streams are neighbours if
all moments of one user are empty in one of them. A look is before the first moment, between two, or after the
last.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from partita.pan.sketch import Sketch
from partita.testing import OutputLaw, RationalNoise, ZeroNoise, law

Event = int | tuple[int, int] | None
"""A user who comes, a user and by how much, or nobody."""

Stream = tuple[Event, ...]
Make = Callable[[Any], Sketch]


class WholeNoise(RationalNoise):
    """Exact branches whose far outputs are numbers too: one below and one above all that are told apart."""

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        noisy = super().add(x, scale, parts=parts)
        if isinstance(noisy, np.ndarray):
            return np.array([self._number(each) for each in noisy.flat], dtype=object).reshape(noisy.shape)
        return self._number(noisy)

    def _number(self, noisy: int | str) -> int:
        far = {"below": self.window[0] - 1, "above": self.window[-1] + 1}
        return far[noisy] if isinstance(noisy, str) else noisy


class Act(NamedTuple):
    """What the adversary does: looks at these times, asks for these outputs after these moments."""

    looks: tuple[int, ...]
    outputs: tuple[tuple[int, str], ...]
    announced: tuple[int, ...] = ()


def streams(users: int, length: int) -> Iterator[Stream]:
    """All of this length."""
    return product((None, *range(users)), repeat=length)


def neighbors(users: int, length: int) -> Iterator[tuple[Stream, Stream]]:
    """Every stream, and the same one without one of its users."""
    for stream in streams(users, length):
        for user in range(users):
            if user in stream:
                yield stream, tuple(None if each == user else each for each in stream)


def memory(sketch: Sketch) -> Hashable:
    """Everything that the tables of a sketch hold."""
    return tuple(tuple(table.ravel().tolist()) for table in sketch._tables())


def seen(make: Make, noise: Any, stream: Stream, act: Act) -> Hashable:
    """The view: what the looks and the outputs show, in order."""
    sketch, view = make(noise), list[Hashable]()
    for moment in range(len(stream) + 1):
        if moment in act.announced:
            sketch.announce_intrusion()
        view += [memory(sketch)] if moment in act.looks else []
        view += [sketch.release(name).value for at, name in act.outputs if at == moment]
        if moment < len(stream) and not sketch._over:
            _happens(sketch, stream[moment])
    return tuple(view)


def _happens(sketch: Any, event: Event) -> None:
    if isinstance(event, tuple):
        sketch.update(event[0], by=event[1])
    else:
        sketch.update_many([] if event is None else [event])


class Views:
    """The laws of what is seen of one kind of sketch, each made once.

    Outputs are sums within `sums` whose spread divides `spread`; exp(-output / spread) is replaced by `base`.
    """

    def __init__(self, make: Make, *, sums: range, spread: int = 1, base: Fraction = Fraction(2, 3)) -> None:
        self.make = make
        self.sketch: Any = make(ZeroNoise())
        self.growth = base**-spread
        self._noise = partial(WholeNoise, base, unit=self.sketch.output / spread, window=sums)
        self._known: dict[tuple[Stream, Act], OutputLaw] = {}

    def law(self, stream: Stream, act: Act) -> OutputLaw:
        """The exact law of the view: the shipped code through every branch."""
        if (stream, act) not in self._known:
            self._known[stream, act] = law(lambda noise: seen(self.make, noise, stream, act), self._noise())
        return self._known[stream, act]

    def ratio(self, one: Stream, other: Stream, act: Act) -> Fraction | None:
        """The greatest ratio of probabilities, either way; None if something is seen of one stream only."""
        left, right = self.law(one, act), self.law(other, act)
        if left.keys() != right.keys():
            return None
        return max(max(left[view] / right[view], right[view] / left[view]) for view in left)

    def worst(self, pairs: Iterable[tuple[Stream, Stream]], acts: Sequence[Act]) -> Fraction | None:
        """The greatest ratio over all pairs and acts; None if some view tells for sure."""
        ratios = [self.ratio(one, other, act) for one, other in pairs for act in acts]
        known = [ratio for ratio in ratios if ratio is not None]
        return max(known) if len(known) == len(ratios) else None


def one_look(length: int, name: str) -> list[Act]:
    """One look at any time, and one output after the last moment."""
    return [Act(looks=(moment,), outputs=((length, name),)) for moment in range(length + 1)]
