"""Sketches with a register for each id of a public universe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from partita.pan.sketch.draws import Ints
from partita.pan.sketch.ids import Ids, Universe
from partita.pan.sketch.sketch import Sketch
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL


class Listed(Sketch):
    """Everybody of the universe has a register; whoever is none of it is left out without a word."""

    _universe: Universe

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = KERNEL, universe: Ids | None = None) -> Self:
        """The sketch that gave this state; a universe of names must be given again to go on counting.

        It must go on in one place only: two that go on from one state are as two looks at it.
        """
        sketch = super().from_state(state, noise=noise)
        if universe is not None:
            sketch._universe = sketch._universe.named(universe)
        return sketch

    def _find(self, ids: Iterable[object]) -> Ints:
        return self._universe.find(ids)
