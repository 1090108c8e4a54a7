"""A released log tree: sums, counts, means and variances of a column over ranges of its own values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer, Joint, ratio_bounds
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
from partita.public.sums.base import Covers, End, Ratio, SumAnswer, SumRelease, ValueLine
from partita.public.sums.knots import FALSE_CAP
from partita.public.sums.lorenz import LorenzCurve
from partita.public.sums.parts import KeyCounts, PartTree
from partita.public.sums.tails import (
    BETA,
    CONTRADICTED,
    MARGIN,
    THINNING,
    limit_rows,
    measured_thinning,
    spread_hidden,
    weigh_tail,
)

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
        """The sum of the values that stand out from the noise; its interval is about all of the question."""
        line, reach = self.trees.cells.line, self._choose(np.abs(self.question.middle))
        counted, numbers = self.trees.cells.numbers * reach.inside, self.trees.cells.numbers
        step, origin = float(line.step), float(line.origin)
        values = (self.question.middle + origin) * step
        ends = [(each + origin) * step for each in (self.question.low, self.question.high)]
        weights = self.question.share * values * counted
        within = self.question.spread * counted * step**2
        hidden = self._hidden(reach, ends[0], ends[1])

        def bounds(beta: float) -> tuple[float, float]:
            return self._ends(reach, np.minimum(*ends), np.maximum(*ends), beta)

        def error() -> float:
            return math.sqrt(self._covariance(weights, weights, within)) or spread_hidden(hidden, bounds)

        answer = Answer(
            self._value(weights),
            error,
            bounds,
            0.0 if bool((self.question.share * ends[0] * numbers >= 0.0).all()) else -math.inf,
        )
        beyond = self._rows(numbers * ~reach.inside)
        return SumAnswer(answer, self._covers(reach, hidden), beyond, hidden)

    @property
    def mean(self) -> Ratio:
        """The mean of the values that the sum covers; its interval is about all of the question."""
        reach, numbers = self._choose(np.abs(self.question.middle)), self.trees.cells.numbers
        counted = numbers * reach.inside

        def bounds(beta: float) -> tuple[float, float]:
            sums = self._ends(reach, self.question.low, self.question.high, beta / 2)
            return ratio_bounds(sums, self._bounds(numbers, numbers, beta / 2))

        joint = self._joint(self.question.middle * counted, counted, self.question.spread)
        if joint.sure:  # noise alone puts a mean outside of what is covered
            first, last = (end * joint.bottom for end in self._extremes(counted))
            joint = joint._replace(top=min(max(joint.top, first), last))
        hidden = self._hidden(reach, self.question.low, self.question.high)
        return Ratio(
            joint,
            self._covers(reach, hidden),
            *self._extremes(numbers),
            bounds,
            shown=self.trees.cells.line.number,
            hidden=(self._hidden_rows(reach), *hidden),
        )

    @property
    def variance(self) -> Ratio:
        """The variance of the values whose squares stand out from the noise; its interval is about all."""
        square = float(self.trees.cells.line.step) ** 2
        return self._variance(lambda ratio: ratio * square)

    @property
    def std(self) -> Ratio:
        """The standard deviation of the same values; its interval is about all."""
        step = float(self.trees.cells.line.step)
        return self._variance(lambda ratio: math.sqrt(ratio) * step)

    @property
    def covered(self) -> Bools:
        """The cells of the octaves that the sum covers."""
        return self._choose(np.abs(self.question.middle)).inside

    @property
    def hidden_rows(self) -> float:
        """How many rows at most the sum does not cover, if they thin out."""
        return self._hidden_rows(self._choose(np.abs(self.question.middle)))

    def _variance(self, shown: Callable[[float], float]) -> Ratio:
        reach, numbers = self._choose(self.question.square), self.trees.cells.numbers
        counted = numbers * reach.inside
        values, rows = self.question.middle * counted, self._value(self.question.share * counted)
        mean = self._value(self.question.share * values) / rows if rows > 0.0 else 0.0
        centred = (self.question.square - 2.0 * mean * self.question.middle + mean**2) * counted
        joint = self._joint(centred, counted, np.zeros_like(centred))
        if joint.sure:
            low, high = self._extremes(counted)
            joint = joint._replace(top=min(max(joint.top, 0.0), joint.bottom * (high - low) ** 2 / 4.0))
        # The distance from another mean than that of all values is no less: no tail is underestimated.
        far = (np.maximum(np.abs(self.question.low), np.abs(self.question.high)) + abs(mean)) ** 2
        hidden, (low, high) = self._hidden(reach, far, far), self._extremes(numbers)

        def bounds(beta: float) -> tuple[float, float]:
            ends = np.sort(np.square([self.question.low, self.question.high]), axis=0)
            second = self._ends(reach, ends[0], ends[1], beta / 4)
            rows = self._bounds(numbers, numbers, beta / 4)
            return self._least_variance(counted, rows[1], beta / 2), ratio_bounds(second, rows)[1]

        return Ratio(
            joint,
            self._covers(reach, hidden),
            0.0,
            (high - low) ** 2 / 4.0,
            bounds,
            shown,
            hidden=(self._hidden_rows(reach), 0.0, hidden[1] - hidden[0]),
        )

    def _least_variance(self, counted: Floats, most_rows: float, beta: float) -> float:
        """A lower bound on the variance of all values: that of those covered, times their share."""
        ends = np.sort(np.square([self.question.low, self.question.high]), axis=0) * counted
        sums = self._bounds(self.question.low * counted, self.question.high * counted, beta / 3)
        count = self._bounds(counted, counted, beta / 3)
        first, last = ratio_bounds(sums, count)
        lowest, _ = ratio_bounds(self._bounds(ends[0], ends[1], beta / 3), count)
        least = max(0.0, lowest - max(first**2, last**2))
        return least * min(1.0, count[0] / most_rows) if count[0] > 0.0 else 0.0

    def _ends(self, reach: _Reach, low: Floats, high: Floats, beta: float) -> tuple[float, float]:
        """Bounds on a sum over all values that are asked for: each row adds between low and high.

        Values that are not covered count in the end that they can move.
        """
        numbers, signed = self.trees.cells.numbers, bool((self.question.least < 0.0).any())
        least, most = (
            each * numbers * (reach.inside | signed | (sign * each > 0.0))
            for sign, each in ((-1.0, low), (1.0, high))
        )
        return self._bounds(least, most, beta)

    def _hidden(self, reach: _Reach, low: Floats, high: Floats) -> tuple[float, float]:
        """What values that are not covered may add, below zero and above it, if they thin out.

        A row of a cell adds between low and high. Where no octave stands out, nothing is known.
        """
        ends = [0.0, 0.0]
        least = not bool((reach.inside & (self.question.most > 0.0) & ((low != 0.0) | (high != 0.0))).any())
        for side, octaves, rows, thins in self._tails(reach):
            cells = (octaves == self.trees.octaves(side)) & (self.question.most > 0.0)
            far = np.where(np.abs(low) > np.abs(high), low, high)
            weights = np.where(cells, np.abs(far), 0.0).max(axis=1)
            above = bool((far * cells.any(axis=0)).sum() > 0.0)
            known = thins and any(self.trees.clear)
            most = weigh_tail(weights, rows, BETA, least=least) if known else math.inf
            ends[above] += most if above else -most
        if bool((self.question.least < 0.0).any()):  # rows that are taken away pull the other way
            ends = [ends[0] - ends[1], ends[1] - ends[0]]
        return ends[0], ends[1]

    def _hidden_rows(self, reach: _Reach) -> float:
        """How many rows at most are not covered, if they thin out."""
        return sum(float(rows.sum()) for _, _, rows, _ in self._tails(reach))

    def _tails(self, reach: _Reach) -> Iterator[tuple[int, Ints, Floats, bool]]:
        """The octaves of each side that are not covered, with at most how many rows each holds.

        The last is False where an octave clearly contradicts that the tail thins out.
        """
        asked = (self.question.most > 0.0) & (self.trees.cells.numbers > 0.0)
        cap = float(1 << max(self.trees.clear))
        for side, covered in ((1, reach.up), (-1, reach.down)):
            octaves = self.trees.octaves(side)
            silent = np.unique(octaves[asked & (octaves > covered)])
            if not silent.size:
                continue
            silent = np.arange(silent[0], silent[-1] + 1)[:, np.newaxis]
            places = np.concatenate([[[covered - 1], [covered]], silent])
            found, deviations = self._octave_rows(places, octaves)
            most = np.maximum(found, 0.0) + MARGIN * deviations
            thinning = measured_thinning(found[1], max(found[0], 1.0)) if covered > 1 else THINNING
            knots = [float(1 << int(octave)) for octave in silent[:, 0]]
            last = (float(1 << covered), float(most[1])) if covered else (0.0, 0.0)
            limits = limit_rows(knots, most[2:].tolist(), last=last, cap=cap, thinning=thinning)
            thins = bool(((found - CONTRADICTED * deviations)[2:] <= limits).all())
            yield side, silent, limits, thins

    def _octave_rows(self, chosen: Ints, octaves: Ints) -> tuple[Floats, Floats]:
        """About how many rows of the question each of these octaves of a side holds, with deviations."""
        nodes = self._nodes(((octaves == chosen) & (octaves > 0)) * np.abs(self.question.share))
        found, variances = nodes @ self.trees.measured, np.square(nodes).sum(axis=1) * self.trees.variance
        return found, np.sqrt(variances)

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

    def _covers(self, reach: _Reach, hidden: tuple[float, float]) -> Covers:
        """All values of the octaves that are covered, and none beyond."""
        line = self.trees.cells.line
        lower, upper = self._end(reach, reach.down, -1, line.down), self._end(reach, reach.up, 1, line.up)
        return Covers(lower, upper, thinning=0.0 < hidden[1] - hidden[0] < math.inf)

    def _end(self, reach: _Reach, octaves: int, side: int, length: int) -> End:
        lost = (self.question.most > 0.0) & ~reach.inside & (self.trees.cells.sides == side)
        at, whole = self.trees.cells.line.number(side * min(length, (1 << octaves) - 1)), not bool(lost.any())
        return End(at, None if whole else at, whole)

    def _extremes(self, counted: Floats) -> tuple[float, float]:
        """The least and the largest offset of rows that count; if there is none, of all values."""
        some = counted * self.question.most > 0.0
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

    @cached_property
    def lorenz(self) -> LorenzCurve:
        """How the values are divided among all rows."""
        return LorenzCurve(self._estimate([self.everything]))

    def _estimate(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> LogEstimate:
        return LogEstimate(self.trees, self.trees.cells.weigh(check_terms(terms, self.keys)))
