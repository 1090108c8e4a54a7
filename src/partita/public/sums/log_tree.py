"""A released log tree: sums, counts, means and variances of a column over ranges of its own values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import ORDERED_SPECIALS, Domain
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import freeze
from partita.public.axis.base import Parts, PartsReader
from partita.public.bounds import laplace_mix_reach, laplace_variance
from partita.public.boxes.base import BoxTerm, check_terms
from partita.public.boxes.plan import SignedBox
from partita.public.sums.base import Covers, End, Joint, Ratio, SumAnswer, SumRelease, ValueLine, ratio_bounds
from partita.public.sums.knots import FALSE_CAP
from partita.public.sums.parts import KeyCounts, PartTree

_MANTISSA_BITS: Final = 7  # 128 cells for every octave: more are finer, and add noise to every sum
_SAFETY: Final = 3.0  # deviations of noise taken off a sum: higher covers fewer values, lower adds noise
_LARGEST_BRANCHING: Final = 2**14


class CellWeights(NamedTuple):
    """A question as weights of the cells: the share of each that counts, and where its values lie.

    `share` of the rows of a cell count, and certainly between `least` and `most`. Their offsets lie between
    `low` and `high`.
    """

    share: Floats
    least: Floats
    most: Floats
    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """The offset that stands for all of a cell."""
        return (self.low + self.high) / 2.0

    @property
    def square(self) -> Floats:
        """The squared offset that stands for all of a cell: rows are spread evenly over it."""
        return self.middle**2 + ((self.high - self.low + 1.0) ** 2 - 1.0) / 12.0

    @property
    def spread(self) -> Floats:
        """The variance of an offset inside of its cell."""
        return self.square - self.middle**2


@final
@dataclass(frozen=True)
class LogCells:
    """Runs of positions of a value axis: below, the cells of the line in order, above, invalid, null.

    Cells are narrow near the origin and wide far from it. An offset below 256 has a cell of its own; from
    there on a cell holds the offsets that share their first 8 bits.
    """

    line: ValueLine

    @cached_property
    def ends(self) -> UInts:
        """The last position of each cell."""
        line = self.line
        down = [line.down - offset for offset in _starts(line.down)]
        up = [line.down + offset - 1 for offset in _starts(line.up)[1:]]
        ordinary = [cell + 1 for cell in (*reversed(down), *up[1:], line.size - 1)]
        behind = range(line.size + 1, line.size + 4)
        return np.array([0, *dict.fromkeys(ordinary), *behind], np.uint64)

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.ends.size)

    @cached_property
    def starts(self) -> UInts:
        """The first position of each cell."""
        return np.concatenate([np.zeros(1, np.uint64), self.ends[:-1] + np.uint64(1)])

    @property
    def numbers(self) -> Floats:
        """One for each cell that holds numbers, else zero; outside of the bounds are numbers, too."""
        return np.asarray(np.arange(self.size) < self.size - 2, np.float64)

    @cached_property
    def octaves(self) -> Ints:
        """How many bits the largest offset of each cell has."""
        ends = np.abs([self.line.offsets(self.starts), self.line.offsets(self.ends)]).max(axis=0)
        return np.array([offset.bit_length() for offset in ends.tolist()])

    @cached_property
    def sides(self) -> Ints:
        """1 for cells above the origin, -1 for those below, 0 for the origin and for no number."""
        signs = np.sign(self._offsets(self.starts) + self._offsets(self.ends))
        return np.asarray(signs * self.numbers, np.int64)

    def of(self, places: UInts) -> Ints:
        """The cell of each position."""
        return np.asarray(np.searchsorted(self.ends, places))

    def weigh(self, boxes: Sequence[SignedBox]) -> CellWeights:
        """The weights of disjoint runs of positions; a cell that is cut counts by the share of positions."""
        share, least, most = np.zeros((3, self.size))
        low, high = self._offsets(self.starts), self._offsets(self.ends)
        for (first,), (last,), sign in boxes:
            begin, end = np.maximum(self.starts, np.uint64(first)), np.minimum(self.ends, np.uint64(last))
            touched = begin <= end
            inside = np.where(touched, (end - begin).astype(np.float64) + 1.0, 0.0)
            part = inside / ((self.ends - self.starts).astype(np.float64) + 1.0)
            share += sign * part
            least += np.minimum((part >= 1.0) * sign, touched * sign)
            most += np.maximum((part >= 1.0) * sign, touched * sign)
            cut = touched & (part < 1.0)
            low[cut], high[cut] = self._offsets(begin[cut]), self._offsets(end[cut])
        return CellWeights(share, least, most, low, high)

    def _offsets(self, places: UInts) -> Floats:
        return self.line.offsets(places).astype(np.float64)


def _starts(length: int) -> list[int]:
    """The offsets 0, ..., length at which cells begin."""
    found, start = [], 0
    while start <= length:
        found.append(start)
        start += 1 << max(0, start.bit_length() - 1 - _MANTISSA_BITS)
    return found


@final
@dataclass(frozen=True, eq=False)
class LogTrees:
    """A noisy tree of counts over the cells, all nodes with noise of one scale."""

    cells: LogCells
    tree: PartTree
    noisy: NDArray[Any]
    scale: Fraction

    @cached_property
    def measured(self) -> Floats:
        """The noisy counts."""
        return np.asarray(self.noisy, np.float64)

    @cached_property
    def variance(self) -> float:
        """The variance of one of them."""
        return laplace_variance(self.scale)

    @cached_property
    def clear(self) -> tuple[int, int]:
        """The last octaves above and below the origin that stand out from the noise, 0 for none.

        Noise alone makes an empty octave of a side stand out with probability at most 1/1000.
        """
        return self._last_clear(1), self._last_clear(-1)

    def octaves(self, side: int) -> Ints:
        """The octave of each cell of one side; 0 for all others."""
        return np.asarray(self.cells.octaves * (self.cells.sides == side))

    def _last_clear(self, side: int) -> int:
        octaves = self.octaves(side)
        highest = int(octaves.max())
        cells = octaves == np.arange(1, highest + 1)[:, np.newaxis]
        asked = self.tree.plain(cells.astype(np.float64)).nodes
        rates, beta = np.full(self.measured.size, float(1 / self.scale)), float(FALSE_CAP) / max(1, highest)
        clear = [nodes @ self.measured > laplace_mix_reach(nodes, rates, beta) for nodes in asked]
        return int(np.flatnonzero(clear).max(initial=-1)) + 1


class _Reach(NamedTuple):
    """How many octaves are covered on each side, and which cells these are."""

    up: int
    down: int
    inside: Bools


@final
@dataclass(frozen=True, eq=False)
class LogEstimate:
    """What the tree says about a set of values: sums, means and variances from one noisy tree of counts."""

    trees: LogTrees
    question: CellWeights

    @property
    def count(self) -> Answer:
        """How many rows hold a number."""
        return self._rows(self.trees.cells.numbers)

    @property
    def nulls(self) -> Answer:
        """How many rows hold no number."""
        return self._rows(1.0 - self.trees.cells.numbers)

    @property
    def rows(self) -> Answer:
        """How many rows there are, with a number or without."""
        return self._rows(np.ones(self.trees.cells.size))

    @property
    def sum(self) -> SumAnswer:
        """The sum of the values, as far as they stand out from the noise."""
        line, reach = self.trees.cells.line, self._choose(np.abs(self.question.middle))
        counted = self.trees.cells.numbers * reach.inside
        step, origin = float(line.step), float(line.origin)
        values = (self.question.middle + origin) * step

        def bounds(beta: float) -> tuple[float, float]:
            ends = [(each + origin) * step for each in (self.question.low, self.question.high)]
            return self._bounds(np.minimum(*ends) * counted, np.maximum(*ends) * counted, beta)

        weights = self.question.share * values * counted
        within = self.question.spread * counted * step**2
        least = 0.0 if bool((weights >= 0.0).all()) else -math.inf
        answer = Answer(
            self._value(weights), lambda: math.sqrt(self._covariance(weights, weights, within)), bounds, least
        )
        beyond = self._rows(self.trees.cells.numbers * ~reach.inside)
        return SumAnswer(answer, self._covers(reach), beyond)

    @property
    def mean(self) -> Ratio:
        """The mean of the values that the sum covers."""
        reach = self._choose(np.abs(self.question.middle))
        counted = self.trees.cells.numbers * reach.inside

        def bounds(beta: float) -> tuple[float, float]:
            sums = self._bounds(self.question.low * counted, self.question.high * counted, beta / 2)
            return ratio_bounds(sums, self._bounds(counted, counted, beta / 2))

        joint = self._joint(self.question.middle * counted, counted, self.question.spread)
        least, most = self._extremes(counted, joint)
        return Ratio(joint, self._covers(reach), least, most, bounds, shown=self.trees.cells.line.number)

    @property
    def variance(self) -> Ratio:
        """The variance of the values, as far as their squares stand out from the noise."""
        square = float(self.trees.cells.line.step) ** 2
        return self._variance(lambda ratio: ratio * square)

    @property
    def std(self) -> Ratio:
        """The standard deviation of the values, as far as their squares stand out from the noise."""
        step = float(self.trees.cells.line.step)
        return self._variance(lambda ratio: math.sqrt(ratio) * step)

    def _variance(self, shown: Callable[[float], float]) -> Ratio:
        reach = self._choose(self.question.square)
        counted = self.trees.cells.numbers * reach.inside
        values, rows = self.question.middle * counted, self._value(self.question.share * counted)
        mean = self._value(self.question.share * values) / rows if rows > 0.0 else 0.0
        centred = (self.question.square - 2.0 * mean * self.question.middle + mean**2) * counted
        joint = self._joint(centred, counted, np.zeros_like(centred))
        low, high = self._extremes(counted, joint)

        def bounds(beta: float) -> tuple[float, float]:
            ends = np.sort(np.square([self.question.low, self.question.high]), axis=0) * counted
            sums = self._bounds(self.question.low * counted, self.question.high * counted, beta / 3)
            count = self._bounds(counted, counted, beta / 3)
            first, last = ratio_bounds(sums, count)
            least = 0.0 if first < 0.0 < last else min(first**2, last**2)
            lowest, highest = ratio_bounds(self._bounds(ends[0], ends[1], beta / 3), count)
            return lowest - max(first**2, last**2), highest - least

        return Ratio(joint, self._covers(reach), 0.0, (high - low) ** 2 / 4.0, bounds, shown)

    def _choose(self, sizes: Floats) -> _Reach:
        """On each side the octaves for which the sum, less three deviations of its noise, is largest.

        None is covered above the last that stands out from the noise over the whole line.
        """
        cells = self.trees.cells
        up, down = (
            self._octaves(self.trees.octaves(side), last, sizes)
            for side, last in zip((1, -1), self.trees.clear, strict=True)
        )
        inside = cells.octaves <= np.where(cells.sides > 0, up, np.where(cells.sides < 0, down, 64))
        return _Reach(up, down, np.asarray(inside))

    def _octaves(self, octaves: Ints, last: int, sizes: Floats) -> int:
        upto = (octaves <= np.arange(last + 1)[:, np.newaxis]) & (octaves > 0)
        nodes = self._nodes(upto * (self.question.share * sizes))
        variances = np.square(nodes).sum(axis=1) * self.trees.variance
        return int(np.argmax(nodes @ self.trees.measured - _SAFETY * np.sqrt(variances)))

    def _covers(self, reach: _Reach) -> Covers:
        """All values of the octaves that are covered, and none beyond."""
        line = self.trees.cells.line
        return Covers(self._end(reach, reach.down, -1, line.down), self._end(reach, reach.up, 1, line.up))

    def _end(self, reach: _Reach, octaves: int, side: int, length: int) -> End:
        lost = (self.question.most > 0.0) & ~reach.inside & (self.trees.cells.sides == side)
        at, whole = self.trees.cells.line.number(side * min(length, (1 << octaves) - 1)), not bool(lost.any())
        return End(at, None if whole else at, whole)

    def _extremes(self, counted: Floats, joint: Joint) -> tuple[float, float]:
        """The least and the largest offset of rows that count; if there may be none, of the question."""
        some = (counted if joint.sure else self.trees.cells.numbers) * self.question.most > 0.0
        if not bool(some.any()):
            return -float(self.trees.cells.line.down), float(self.trees.cells.line.up)
        return float(self.question.low[some].min()), float(self.question.high[some].max())

    def _rows(self, counted: Floats) -> Answer:
        weights = self.question.share * counted
        return Answer(
            self._value(weights),
            lambda: math.sqrt(self._covariance(weights, weights, np.zeros_like(weights))),
            lambda beta: self._bounds(counted, counted, beta),
            0.0 if bool((self.question.least >= 0.0).all()) else -math.inf,
        )

    def _value(self, weights: Floats) -> float:
        return float(self._nodes(weights) @ self.trees.measured)

    def _covariance(self, one: Floats, other: Floats, within: Floats) -> float:
        """Of two weighted sums: by noise, by where rows lie in their cells, and which of them are counted."""
        noise = float(self._nodes(one) @ self._nodes(other)) * self.trees.variance
        cut = np.flatnonzero(self.question.least < self.question.most)
        units = np.zeros((cut.size, self.trees.cells.size))
        units[np.arange(cut.size), cut] = 1.0
        whole = np.maximum(np.asarray(self._nodes(units) @ self.trees.measured), 0.0)
        inside = np.where(self.question.share > 0.0, self.question.share, 1.0)
        uncounted = (1.0 - self.question.share[cut]) * self.question.share[cut] * whole**2
        lost = float(((one / inside)[cut] * (other / inside)[cut]) @ uncounted)
        spread = max(0.0, self._value(self.question.share * within))
        return noise + lost + spread

    def _joint(self, top: Floats, bottom: Floats, within: Floats) -> Joint:
        share, none = self.question.share, np.zeros_like(within)
        return Joint(
            self._value(share * top),
            self._value(share * bottom),
            self._covariance(share * top, share * top, within * bottom),
            self._covariance(share * bottom, share * bottom, none),
            self._covariance(share * top, share * bottom, none),
        )

    def _bounds(self, low: Floats, high: Floats, beta: float) -> tuple[float, float]:
        """Bounds on a sum of rows that add between low and high each, for every choice of octaves."""
        first = np.where(low >= 0.0, self.question.least, self.question.most) * low
        last = np.where(high >= 0.0, self.question.most, self.question.least) * high
        octaves = self.trees.cells.octaves.max() + 1
        share = beta / (2.0 * float(octaves) ** 2)
        return self._value(first) - self._reach(first, share), self._value(last) + self._reach(last, share)

    def _reach(self, weights: Floats, beta: float) -> float:
        nodes = self._nodes(weights)
        return laplace_mix_reach(nodes, np.full(nodes.size, float(1 / self.trees.scale)), beta)

    def _nodes(self, weights: Floats) -> Floats:
        return self.trees.tree.plain(weights).nodes


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LogTreeRelease(SumRelease):
    """The noisy count of every node of a tree over the cells of the values, leaves first.

    Questions are runs of positions of the value axis, special cells included. Values of a cell are taken to
    be spread evenly over it. `guarantee` is None if the release was made with injected noise. The keys are
    the axis of the value; counts of the keys add nothing.
    """

    kind: ClassVar[str] = "log-tree"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"log-tree": ()}
    max_series: ClassVar[int] = 1
    own_key: ClassVar[bool] = True
    moments: ClassVar[bool] = True

    keys: tuple[Axis, ...] = field(init=False, repr=False)
    value: ValueLine
    branching: int
    noisy: NDArray[Any]
    scale: Fraction
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, keys=(self.value.axis,))

    @property
    def specials(self) -> dict[str, Answer]:
        """How many rows lie below and above the declared bounds, and how many are invalid and null."""
        places = 0, *range(self.value.size + 1, self.value.size + 4)
        found = (self._estimate([BoxTerm((place,), (place,))]).rows for place in places)
        return dict(zip(ORDERED_SPECIALS, found, strict=True))

    @cached_property
    def trees(self) -> LogTrees:
        """The noisy tree, ready for questions."""
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
        noisy, scale = reader.noisy("noisy", count=nodes), reader.scale("scale")
        return cls(value=line, branching=branching, noisy=noisy, scale=scale, guarantee=guarantee)

    def _estimate(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> LogEstimate:
        return LogEstimate(self.trees, self.trees.cells.weigh(check_terms(terms, self.keys)))
