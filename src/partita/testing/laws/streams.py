"""Counters against someone who sees every output before choosing what is counted next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from partita.testing.laws.numbered import BoxLaw, NumberedNoise, Run, box_law
from partita.trusted.streams.base.base import ContinualCounter

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
    """Some noise or other."""
    return (number * 7919 + number**2 * 31) % 41 - 20
