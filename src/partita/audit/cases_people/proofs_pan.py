"""Enumeration cases of the pan-private sketches: the state at one time and the outputs, together.

A stream is a row of moments, in each of which one user comes or nobody does. Neighbours differ by all events
of one user. The coins of a state have the shipped rational probabilities; exp(-output) is replaced by a
rational number within 10^-12 of it, so losses are compared with a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

from partita import pan
from partita.audit.base.case import Case, Depth
from partita.audit.laws.worlds import TellingNoise
from partita.testing.doubles.doubles import ZeroNoise
from partita.testing.laws.rational import OutputLaw, law

Moments: TypeAlias = tuple[Any, ...]
"""Who came in each moment; None if nobody did."""

_DIGITS: Final = 10**12


class View(NamedTuple):
    """A stream, and the moment before which an intruder looks."""

    stream: Moments
    look: int


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of sketch: how it is made, what it publishes, which ids come, and the sums that may be told."""

    name: str
    make: Callable[..., Any]
    statistic: str
    ids: tuple[int, ...]
    sums: range
    spread: int = 1


def sketch_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every sketch: all streams of few moments, one look at any time, one output at the end.

    Most is lost by who comes both before and after the look, which takes two moments.
    """
    for kind in sketch_kinds():
        yield _case(kind, 2 if len(kind.ids) == 1 or depth == "deep" else 1)


def sketch_kinds() -> Iterator[Kind]:
    """One or two of every kind, of as few users as it can have."""
    for users in (1, 2):
        yield Kind(
            name="Density",
            make=_maker("Density", universe=users, output_share="0.1"),
            statistic="density",
            ids=tuple(range(users)),
            sums=range(users + 1),
        )
    yield Kind(
        name="Distinct",
        make=_maker("Distinct", buckets=2, most=1, output_share="0.1"),
        statistic="distinct",
        ids=(0, 1),
        sums=range(3),
    )
    registers = _maker("Registers", universe=1, most=1, lowest=0, output_share="0.2")
    yield Kind(name="Registers", make=registers, statistic="exactly-1", ids=(0,), sums=range(2))
    ramp = _maker("RampRegisters", universe=1, tops=[2], output_share="0.2")
    sketch = ramp(ZeroNoise())
    yield Kind(
        name="RampRegisters",
        make=ramp,
        statistic="mean-2",
        ids=(0,),
        sums=range(3),
        spread=sketch._readout(sketch._statistic("mean-2")).spread,
    )


def _maker(name: str, **options: Any) -> Callable[..., Any]:
    """Makes a sketch with this noise, at epsilon 1 unless told otherwise."""
    return lambda noise, **changes: getattr(pan, name)(**{"epsilon": 1, **options, **changes}, noise=noise)


def _case(kind: Kind, length: int) -> Case:
    def pairs() -> Iterator[tuple[View, View]]:
        for stream, look in product(product((None, *kind.ids), repeat=length), range(length + 1)):
            for user in sorted({each for each in stream if each is not None}):
                without = tuple(None if each == user else each for each in stream)
                yield View(stream, look), View(without, look)

    return Case(
        mechanism=kind.name,
        about=f"{len(kind.ids)} ids, {length} moments, one look, {kind.statistic}; a user comes or goes",
        way="law",
        epsilon=kind.make(ZeroNoise()).promise.epsilon,
        pairs=pairs,
        loss=sketch_loss(kind),
    )


def sketch_loss(kind: Kind) -> Callable[[View, View], float]:
    """ln of the largest ratio between the laws of two views."""
    unit = kind.make(ZeroNoise()).output / kind.spread
    base = Fraction(round(math.exp(-unit) * _DIGITS), _DIGITS)

    @cache
    def law_of(view: View) -> OutputLaw:
        noise = TellingNoise(base, unit=unit, window=kind.sums)
        return law(lambda each: _seen(kind, view, each), noise)

    def loss(one: View, other: View) -> float:
        left, right = law_of(one), law_of(other)
        if left.keys() != right.keys():
            return math.inf
        return max(abs(math.log(left[view] / right[view])) for view in left)

    return loss


def _seen(kind: Kind, view: View, noise: Any) -> Hashable:
    """The tables when the intruder looks, and the output after the last moment."""
    sketch, seen = kind.make(noise), []
    for moment, user in enumerate((*view.stream, None)):
        if moment == view.look:
            seen += [tuple(table.ravel().tolist()) for table in sketch._tables()]
        if moment == len(view.stream):
            seen.append(sketch.release(kind.statistic).value)
        elif user is not None:
            sketch.update(user)
    return tuple(seen)
