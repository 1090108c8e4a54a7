"""Noise by number for long runs: what it costs to hide an event that comes late, or after a restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from partita.testing import ZeroNoise
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.system import Positions

Shift: TypeAlias = dict[int, int]
"""By how much the noise of each number is moved."""

Walk: TypeAlias = Callable[["ShiftedNoise", int], tuple[Any, Shift]]
"""Runs a counter with an event (1) or without (0): all that is seen, and the shift that hides the event."""


class ShiftedNoise(ZeroNoise):
    """Additive noise of fixed values by number, some of them shifted; all scales are kept.

    A segment of a sparse counter is sealed when its content exceeds the threshold, as without noise.
    """

    def __init__(self, shift: Mapping[int, int] | None = None) -> None:
        self._shift = dict(shift or {})
        self.scales: list[Fraction] = []
        self.seal_scales: list[Fraction] = []

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        values, first = np.asarray(x, dtype=np.int64), len(self.scales)
        numbers = np.arange(first, first + values.size)
        drawn = (7919 * numbers + 31 * numbers**2) % 41 - 20
        for number, by in self._shift.items():
            if first <= number < first + values.size:
                drawn[number - first] += by
        finer = [1] * values.size if parts is None else np.asarray(parts).ravel().tolist()
        self.scales += [scale] * values.size if parts is None else [scale / part for part in finer]
        noisy = values + drawn.reshape(values.shape)
        return noisy if noisy.ndim else int(noisy)

    def draw(self, law: Law, scale: Fraction) -> int:
        self.seal_scales.append(scale)
        return super().draw(law, scale)

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        self.seal_scales.append(scale)
        return super().first_success(law, scale)


def price(walk: Walk) -> Fraction | None:
    """What the shift of a walk costs; None if the event shows all the same.

    The shift is one-to-one, so an event that it hides changes no probability by more than its price.
    """
    plain = ShiftedNoise()
    without, shift = walk(plain, 0)
    shifted = ShiftedNoise(shift)
    with_event, _ = walk(shifted, 1)
    if without != with_event or (plain.scales, plain.seal_scales) != (shifted.scales, shifted.seal_scales):
        return None
    return sum((abs(by) / plain.scales[number] for number, by in shift.items()), Fraction(0))


def restore(counter: Any, noise: Any) -> Any:
    """The counter that goes on from a stored state, with the same noise."""
    return type(counter).from_state(counter.state(), noise=noise)
