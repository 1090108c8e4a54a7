"""A released log tree: sums, counts, means and variances of a column over ranges of its own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

from numpy.typing import NDArray

from partita.answer import Answer
from partita.domain.axis import Axis
from partita.domain.base.base import ORDERED_SPECIALS, Domain
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.public.axis.base.ranges import Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.boxes.base.axes import checked_terms
from partita.public.boxes.base.boxes import BoxTerm
from partita.public.sums.base.answers import Ratio, SumAnswer
from partita.public.sums.base.sums import SumRelease
from partita.public.sums.base.value_line import ValueLine
from partita.public.sums.log_tree.log_cells import LogCells
from partita.public.sums.log_tree.log_estimate import LogEstimate, LogTrees
from partita.public.sums.parts.part_tree import PartTree

_LARGEST_BRANCHING: Final = 2**14


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LogTreeRelease(SumRelease):
    """The noisy count of every node of a tree over the cells of the values, leaves first.

    Questions are runs of positions of the value axis, special cells included. Values of a cell are taken to
    be spread evenly over it. `guarantee` is None if the release was made with injected noise.
    """

    kind: ClassVar[str] = "log-tree"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"log-tree": ()}
    max_series: ClassVar[int] = 1
    own_key: ClassVar[bool] = True
    moments: ClassVar[bool] = True

    value: ValueLine
    branching: int
    noisy: NDArray[Any]
    scale: Fraction
    guarantee: Guarantee | None = None

    def sum(self, terms: Sequence[BoxTerm]) -> SumAnswer:
        """The sum of the values, with what it covers."""
        return self._asked(terms).sum

    def count(self, terms: Sequence[BoxTerm]) -> Answer:
        """How many rows hold a number."""
        return self._asked(terms).count

    def nulls(self, terms: Sequence[BoxTerm]) -> Answer:
        """How many rows hold none."""
        return self._asked(terms).nulls

    def mean(self, terms: Sequence[BoxTerm]) -> Ratio:
        """The mean of the values that the sum covers."""
        return self._asked(terms).mean

    def variance(self, terms: Sequence[BoxTerm]) -> Ratio:
        """The variance of the values that it covers."""
        return self._asked(terms).variance

    def std(self, terms: Sequence[BoxTerm]) -> Ratio:
        """The standard deviation of the values that it covers."""
        return self._asked(terms).std

    @property
    def keys(self) -> tuple[Axis, ...]:
        """The axis of the values."""
        return (self.value.axis,)

    @property
    def everything(self) -> BoxTerm:
        """All values, special cells included."""
        return BoxTerm((0,), (self.value.axis.width - 1,))

    @property
    def specials(self) -> dict[str, Answer]:
        """How many rows lie below and above the declared bounds, and how many are invalid and null."""
        places = 0, *range(self.value.size + 1, self.value.size + 4)
        found = (self._asked([BoxTerm((place,), (place,))]).rows for place in places)
        return dict(zip(ORDERED_SPECIALS, found, strict=True))

    @cached_property
    def trees(self) -> LogTrees:
        """The noisy tree, ready to be asked."""
        cells = LogCells(self.value)
        return LogTrees(cells, PartTree(cells.size, self.branching), self.noisy, self.scale)

    @property
    def story(self) -> str:
        """What was counted."""
        return f"Values were counted in {self.trees.cells.size:,} cells, 128 for every octave."

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one node of each level."""
        return self.trees.tree.levels / self.scale

    def parts(self) -> Parts:
        """The noisy counts, their scale, and the tree's branching."""
        return Parts({"branching": self.branching, "scale": str(self.scale)}, {"noisy": self.noisy})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis] = (), value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`.

        The keys follow from the value; that those of the view are the same is checked there.
        """
        reader, line = PartsReader(parts), ValueLine.of(value)
        reader.expect(facts=("branching", "scale"), series=("noisy",))
        branching = reader.integer("branching", low=2, high=_LARGEST_BRANCHING)
        nodes = PartTree(LogCells(line).size, branching).nodes
        return cls(
            value=line,
            branching=branching,
            noisy=reader.noisy("noisy", count=nodes),
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )

    def _asked(self, terms: Sequence[BoxTerm]) -> LogEstimate:
        return LogEstimate(self.trees, self.trees.cells.laid(checked_terms(terms, self.keys)))
