"""Knots that are hard to see in one place are guessed from all places: shrinkage towards the whole.

How the values of a part are spread over the knots is often about how they are spread over all parts. How far
that can be trusted for a knot follows from how much the largest nodes differ in it, beyond their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats
from partita.public.sums.parts.part_tree import Blend, PartTree

_LEAST_ROWS: Final = 1e-3
_CLEAR: Final = 2.5
_LEAST_SHARE: Final = 1e-6
_BLOCKS: Final = 16


class Pooled(NamedTuple):
    """The estimate of every row of the controls for a question, and its standard deviation.

    `leaning` is by how much each estimate moves with the number of rows that the question holds.
    """

    found: Floats
    deviations: Floats
    leaning: Floats


@final
@dataclass(frozen=True, eq=False)
class Pooling:
    """Noisy trees, `measured` in rows with the same deviation everywhere, and which of them hold numbers."""

    tree: PartTree
    measured: Floats
    deviation: float
    numbers: Bools

    def __call__(self, asked: Floats) -> Pooled:
        """A linear question about the parts, answered for each row of the controls."""
        nodes, guesses = self._blend(asked)
        guessed = guesses @ self._rows / self._rows.sum()
        found = (nodes * self.measured).sum(axis=1) + guessed * self.whole
        unsure = (self._blend.distrust * np.square(guesses)).sum(axis=1)
        variances = np.square(nodes).sum(axis=1) + unsure + guessed**2 * self.tree.top
        rows = max(float(asked @ self._rows), _LEAST_ROWS)
        leaning = guessed * self.whole / rows
        return Pooled(found, self.deviation * np.sqrt(variances), leaning)

    @cached_property
    def whole(self) -> Floats:
        """Each row of the controls over all parts."""
        return np.asarray(np.maximum(self.measured[:, -self.tree.top :].sum(axis=1), 0.0))

    @cached_property
    def clear(self) -> Bools:
        """Which rows of the controls stand out from the noise over all parts."""
        return np.asarray(self.whole > _CLEAR * self.deviation * np.sqrt(self.tree.top))

    @cached_property
    def _rows(self) -> Floats:
        """About how many rows with numbers each part holds: never none."""
        totals = self.measured[self.numbers].sum(axis=0)
        identity = np.eye(self.tree.parts)
        found = np.concatenate(
            [self.tree.plain(block).nodes @ totals for block in np.array_split(identity, _BLOCKS)]
        )
        return np.asarray(np.maximum(found, _LEAST_ROWS))

    @cached_property
    def _blend(self) -> Blend:
        rows = self._rows.sum()
        shares = self.whole / rows
        held = self.tree.sums(self._rows)[-self.tree.top :]
        apart = self.measured[:, -self.tree.top :] - shares[:, np.newaxis] * held
        seen = (np.square(apart).sum(axis=1) - self.tree.top * self.deviation**2) / rows
        spread = np.maximum(seen, np.maximum(shares, _LEAST_SHARE))
        return Blend(self.tree, spread[:, np.newaxis] * self._rows / self.deviation**2)
