"""A view of one column: a noisy count of every position of its axis, special cells included."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import freeze
from partita.public.axis.base import NoisyRow, Parts, PartsReader
from partita.public.axis.curve import Curve
from partita.public.axis.tree_solver import UNITS, TreeLooks
from partita.public.base import damaged
from partita.public.bounds import laplace_variance
from partita.public.boxes.base import EngineBoxes, encode_axes, read_axes
from partita.public.boxes.density import BoxSolution, distribution
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.plan import BoxNodes, families_of

MOST_POSITIONS: Final = 2**16  # of a column with a plain view: more hardly have rows enough to be told apart


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PlainView(EngineBoxes):
    """The noisy count of every position of one axis, each with noise of `scale`: a tree of one level.

    Its estimates are shrunk, as those of other trees are. Bounds and intervals of single positions should
    come from the noisy counts themselves.
    """

    axis: Axis
    noisy: NDArray[Any]
    scale: Fraction
    guarantee: Guarantee | None = None
    axes: tuple[Axis, ...] = field(init=False)

    def __post_init__(self) -> None:
        freeze(self, axes=(self.axis,))
        if self.axis.width > MOST_POSITIONS:
            raise damaged("axes", f"must have at most {MOST_POSITIONS} positions for a plain view")
        if self.noisy.size != self.axis.width:
            raise damaged("noisy", "must be a count of every position")

    @cached_property
    def row(self) -> NoisyRow:
        """The noisy counts, with exact sums."""
        return NoisyRow(self.noisy, self.scale)

    @cached_property
    def solution(self) -> BoxSolution:
        """The estimate of every position, and of all of them together."""
        width = self.axis.width
        noisy = np.concatenate([[0.0], self.noisy.astype(np.float64)])
        variances = np.concatenate([[np.inf], np.full(width, laplace_variance(self.scale))])
        return BoxSolution(families_of(self._nodes), self._nodes.children > 0, noisy, variances)

    @cached_property
    def engine(self) -> BoxEngine:
        """The positions as leaves right below the root."""
        values, variances = self.solution.estimates
        width = self.axis.width
        looks = TreeLooks.step(np.arange(1, width + 1), np.full(width, UNITS), self.noisy)
        return BoxEngine(
            nodes=self._nodes,
            measures=[None],
            values=values,
            variances=variances,
            looks=looks,
            unit=float(1 / self.scale) / UNITS,
            widening=1.0,
        )

    @cached_property
    def shares(self) -> Curve:
        """How rows are distributed over the positions, by the shrunk counts; none has nothing."""
        places = np.arange(self.axis.width, dtype=np.uint64)
        return distribution(Curve(places, self.solution.estimates.values[1:]))

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is at one position."""
        return 1 / self.scale

    def parts(self) -> Parts:
        """The noisy counts, their axis and their scale."""
        return Parts({"axes": encode_axes(self.axes), "scale": str(self.scale)}, {"noisy": self.noisy})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The view that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=("axes", "scale"), series=("noisy",))
        axes = read_axes(reader)
        if len(axes) != 1:
            raise damaged("axes", "must be one for a plain view")
        return cls(
            axis=axes[0], noisy=reader.noisy("noisy"), scale=reader.scale("scale"), guarantee=guarantee
        )

    @cached_property
    def _nodes(self) -> BoxNodes:
        width = self.axis.width
        places = np.arange(width, dtype=np.uint64)[:, np.newaxis]
        lows = np.concatenate([np.zeros((1, 1), np.uint64), places])
        highs = np.concatenate([np.full((1, 1), width - 1, np.uint64), places])
        children = np.zeros(width + 1, np.int64)
        children[0] = width
        return BoxNodes(np.array([1, width]), lows, highs, 1 + np.cumsum(children) - children, children)
