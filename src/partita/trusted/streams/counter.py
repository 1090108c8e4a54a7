"""The default counter: a count plus the errors of a centred tree, or of one tree after another.

Every node of a tree has noise of its own. A node's error is its noise, refined by that of its children; then
siblings are moved by equal amounts, so that they add up to the error of their parent: the consistent
estimator, run online. No path of errors sees data: a counter adds these errors to what it counts. See
docs/proofs/counter.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise, takewhile
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.arrays import Floats, Ints, integer_array
from partita.errors import check, check_arguments
from partita.numbers import check_probability, integer
from partita.public.stream_errors import CounterErrors, Running, StreamErrors
from partita.public.stream_trees import (
    EPOCH_GROWTH,
    ROUNDS,
    SHARES,
    TAPERS,
    WEIGHTS,
    TreePlan,
    first_epoch,
    next_epoch,
    plan,
)
from partita.public.streams import LARGEST, CounterTerms, check_horizon, invalid_state
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.noise.laws import IntegerArray
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.streams.base import (
    NARROW_NOISE,
    ContinualCounter,
    Fields,
    Row,
    Stepping,
    counted,
    counts_of,
    integers,
    is_wide,
    last_bounded,
    row,
)

BITS: Final = 16
"""Errors are integers in units of 2^-BITS."""

_FINE: Final = 1 << BITS
_AHEAD: Final = 1 << 10  # errors that are worked out ahead: memory and size of a state against speed
_AT_ONCE: Final = 1 << 16  # periods that are worked out at once: as long as they stay in the cache
_LOWEST: Final = -LARGEST
_SAFE: Final = 2**61  # outputs below this are worked out in int64
_PERIODS_AT_ONCE: Final = 2**18  # periods of `update_many`: memory against calls

# ---- a count plus errors that never see it ----


class ErrorPath(Protocol):
    """By how much the error of the outputs grows, period after period, in units of the granularity."""

    def step(self) -> int:
        """In the next period."""

    def many(self, periods: int) -> IntegerArray:
        """In each of the next periods."""

    def skip(self, periods: int) -> int:
        """In the next periods together."""

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths are public."""

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        """Go on after so many periods with what was drawn before; `InvalidState` if it does not fit."""


class ErrorLaws(StreamErrors, Protocol):
    """The laws of these errors."""

    def variances(self, periods: Ints) -> Floats:
        """The variance of the output after each of these numbers of periods."""


class NoisyCount(Stepping, ContinualCounter):
    """A counter whose outputs are the count so far and the errors of a path so far.

    Noise for what comes is in memory: it is not pan-private.
    """

    def __init__(
        self,
        *,
        terms: CounterTerms,
        horizon: int | None,
        bits: int,
        path: ErrorPath,
        secure: bool,
    ) -> None:
        super().__init__(terms=terms, horizon=horizon, secure=secure)
        self.granularity = Fraction(1, 1 << bits)
        self._bits, self._fine, self._path = bits, 1 << bits, path
        self._units = 0

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return Fraction(self._units, 1 << self._bits)

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""
        if type(x) is not int or not _LOWEST < x < LARGEST:
            x = counted(x)
        if self._broken or self._periods == self._end:
            self._make_room(1)
        self._broken = True
        self._units = units = self._units + (x << self._bits) + self._path.step()
        self._periods += 1
        self._broken = False
        return units / self._fine

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""
        counts = counts_of(xs)
        self._make_room(counts.size)
        outputs = np.empty(counts.size)
        with self._step():
            for first in range(0, counts.size, _PERIODS_AT_ONCE):
                some = slice(first, first + _PERIODS_AT_ONCE)
                outputs[some] = self._close(counts[some])
        return outputs

    def _close(self, counts: IntegerArray) -> Floats:
        """The outputs of some periods, few enough to stay in the processor's memory."""
        units = _running(self._units, counts, self._path.many(counts.size), self._bits)
        self._units = int(units[-1])
        self._periods += counts.size
        return np.asarray(units / (1 << self._bits), dtype=np.float64)

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""
        periods = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(periods)
        with self._step():
            self._units += self._path.skip(periods)
            self._periods += periods

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""
        chance, errors = float(check_probability(beta)), self._errors
        everywhere = errors.everywhere(self._periods, chance)
        return errors.noise(self._periods).around(self.value, chance, everywhere=everywhere)

    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta no output is off by more: a number that is known before any data.

        It is about all outputs up to the horizon, or of the first `periods` periods where there is none. It
        does not depend on how many `rows` there are.
        """
        last = last_bounded(self.horizon, periods)
        return self._errors.everywhere(last, float(check_probability(beta)))

    def variance(self) -> float:
        """The variance of the last output."""
        return self._errors.noise(self._periods).variance

    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods, whenever it is published."""
        after = integer_array(periods, "periods")
        within = not after.size or 0 <= int(after.min()) <= int(after.max()) <= self._end
        rule = f"must lie between 0 and {self._end}"
        check(within, "periods", rule, given=periods, fix="ask within the horizon")
        return self._errors.variances(after.astype(np.int64))

    def _fields(self) -> Fields:
        return {"shape": self._shape(), "units": [self._units], **self._path.fields()}

    def _restore(self, fields: dict[str, list[int]]) -> None:
        (self._units,) = fields["units"]
        self._path.restore(fields, self._periods)

    @abstractmethod
    def _shape(self) -> Sequence[int]:
        """The public numbers that this counter was made with, besides its terms."""

    @property
    @abstractmethod
    def _errors(self) -> ErrorLaws:
        """How far outputs may be off."""


def _running(units: int, counts: IntegerArray, errors: IntegerArray, bits: int) -> Any:
    """All outputs, as int64 if nothing can overflow, else as Python ints."""
    largest = [max(-int(array.min(initial=0)), int(array.max(initial=0))) for array in (counts, errors)]
    largest_output = abs(units) + counts.size * ((largest[0] << bits) + largest[1])
    dtype = np.int64 if largest_output < _SAFE else object
    outputs: Any = counts.astype(dtype) << bits
    outputs += errors.astype(dtype, copy=False)
    np.cumsum(outputs, out=outputs)
    outputs += units
    return outputs


@final
@check_arguments
class Counter(NoisyCount):
    """Count under continual observation: one output for every period, all of them together private.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     mean squared error 113 / epsilon^2 over 2^10 periods, 390 over 2^16, 724 over 2^20:
               O(log^3 horizon / epsilon^2); `answer` says how far off an output may be.
    Proof:     docs/proofs/counter.md (noise on a tree, made consistent online)

    An event changes a period by at most `change`. Without a horizon it goes on as long as it is asked to, in
    trees that grow; what `answer` says of all periods is then of those up to the end of the present tree.
    `plan` is the shape of the tree, chosen for the horizon if it is left out.

    >>> counter = Counter(epsilon=1, horizon=1000)
    >>> outputs = [counter.update(x) for x in (0, 1, 5)]
    >>> counter.periods, counter.guarantee
    (3, Guarantee(epsilon=1, neighbors=add-remove, unit=event))
    """

    name: ClassVar[str] = "counter"

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int | None = None,
        change: int = 1,
        contributions: int = 1,
        plan: TreePlan | None = None,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        first = _first_plan(horizon, plan)
        check_scale(widest_scale(terms.rate), terms.epsilon)
        session = noise.session()
        self._epochs = Epochs(first, terms.rate, session)
        known = None if horizon is None else first.horizon
        super().__init__(terms=terms, horizon=known, bits=BITS, path=self._epochs, secure=session.secure)

    def _shape(self) -> Sequence[int]:
        return [] if self.horizon is None else self._epochs.plans[0].numbers

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        if not fields["shape"]:
            return cls(noise=noise, **terms.keywords)
        (known,) = TreePlan.all_of(fields["shape"])
        return cls(horizon=known.horizon, plan=known, noise=noise, **terms.keywords)

    @property
    def _errors(self) -> CounterErrors:
        return CounterErrors(self.terms.rate, self._epochs.plans, ends=self.horizon is not None)


def _first_plan(horizon: int | None, given: TreePlan | None) -> TreePlan:
    if horizon is None:
        check(given is None, "plan", "needs a horizon", given=given, fix="pass plan.horizon")
        return first_epoch()
    if given is None:
        return plan(check_horizon(horizon))
    rule = "must be for the same horizon"
    check(given.horizon == check_horizon(horizon), "plan", rule, given=given.horizon, fix="make one for it")
    return given


# ---- the errors of one centred tree, and of one after another ----


class _Row(NamedTuple):
    """Nodes next to each other: the error of each, and the noise of its children."""

    errors: IntegerArray
    below: IntegerArray

    def part(self, nodes: slice) -> _Row:
        return _Row(self.errors[nodes], self.below[nodes])


class CentredPath:
    """The errors of one tree, from its first period to its last.

    A row of siblings is kept for each level from 2 on. The errors of the periods under some open nodes of
    level 2 are worked out at once and ahead, or those of all periods in a tree with fewer levels.
    """

    def __init__(self, plan: TreePlan, rate: Fraction, noise: Noise) -> None:
        self.plan = plan
        self.rate = rate
        self.position = 0
        self._noise = noise
        self._rows: dict[int, _Row] = {}
        self._nothing: IntegerArray = np.zeros((0, 0), dtype=np.int64)
        self._small = plan.levels <= 2
        self._wide = is_wide(max(self._scale(min(plan.low, plan.top), max(plan.taper)), TAPERS / rate))
        self._leaves: list[int] = []
        self._start = self._stop = 0

    @property
    def left(self) -> int:
        """How many periods are left."""
        return self.plan.horizon - self.position

    def step(self) -> int:
        position = self.position
        if position >= self._stop:
            self._open(0)
        self.position = position + 1
        return self._leaves[position - self._start]

    def many(self, periods: int) -> IntegerArray:
        goal, pieces = self.position + periods, [self._array([])]
        while self.position < goal:
            level, nodes = self._run(goal, most=_AT_ONCE)
            nodes = self._alike(level, nodes)
            pieces.append(self._errors(level, nodes))
            self._move(level, nodes)
        return np.asarray(np.concatenate(pieces))

    def skip(self, periods: int) -> int:
        """The error of the next periods together: of whole siblings, as far as they reach."""
        goal, total = self.position + periods, 0
        while self.position < goal:
            level, nodes = self._run(goal, most=goal)
            errors: Any = self._rows[level].errors if level else self._leaves
            total += sum(map(int, errors[nodes]))
            self._move(level, nodes)
        return total

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths follow from the plan."""
        leaves = self._leaves + [0] * (self._ahead - len(self._leaves))
        arrays = {"open": self._array([self._start, self._stop]), "leaves": self._array(leaves)}
        for level in range(2, self.plan.levels):
            errors, below = self._rows.get(level) or self._blank(level)
            arrays |= {f"errors {level}": errors, f"below {level}": below}
        return {name: row(array) for name, array in arrays.items()}

    def restore(self, fields: Mapping[str, list[int]], periods: int) -> None:
        start, stop = fields["open"]
        begins = periods % (self._ahead if self._small else self.plan.branching**2) == 0
        if not (
            0 <= periods <= self.plan.horizon
            and len(fields["leaves"]) == self._ahead
            and 0 <= start <= min(periods, stop)
            and stop <= start + self._ahead
            and (periods < stop or begins or periods == self.plan.horizon)
        ):
            raise invalid_state("fit its plan")
        self.position = periods
        self._start, self._stop = start, stop
        self._leaves = fields["leaves"][: stop - start]
        for level in range(2, self.plan.levels):
            shape = self._blank(level).below.shape
            below = self._array(fields[f"below {level}"]).reshape(shape)
            self._rows[level] = _Row(self._array(fields[f"errors {level}"]).reshape(shape[:1]), below)

    def _blank(self, level: int) -> _Row:
        size = self._size(level)
        return _Row(self._array([0] * size), self._array([0] * size * self.plan.branching).reshape(size, -1))

    @property
    def _ahead(self) -> int:
        """The errors of how many periods are kept at most."""
        if self._small:
            return self.plan.blocks * self.plan.block
        return max(1, _AHEAD // self.plan.branching**2) * self.plan.branching**2

    def _run(self, goal: int, *, most: int) -> tuple[int, slice]:
        """The longest run of whole siblings that begins here: their level and places. Their row is open."""
        level = self._level(min(goal - self.position, most))
        self._open(level)
        if not level:
            return 0, slice(self.position - self._start, min(goal, self._stop) - self._start)
        width = self.plan.branching**level
        count = min((goal - self.position) // width, max(1, most // width))
        return level, self._nodes(level, count)

    def _level(self, periods: int) -> int:
        """The highest level of which a node begins here and ends within so many periods."""
        level = 0
        for higher in range(2, self.plan.levels if self.position >= self._stop else 0):
            if self.position % self.plan.branching**higher or self.plan.branching**higher > periods:
                break
            level = higher
        return level

    def _size(self, level: int) -> int:
        """How many nodes a row of siblings has."""
        return self.plan.blocks if level == self.plan.levels - 1 else self.plan.branching

    def _nodes(self, level: int, count: int) -> slice:
        """The places of the next nodes of an open row, at most so many."""
        first = self.position // self.plan.branching**level % self._size(level)
        return slice(first, min(first + count, self._size(level)))

    def _alike(self, level: int, nodes: slice) -> slice:
        """The first of these nodes that have noise of one scale below them: blocks may differ."""
        if level < self.plan.levels - 1:
            return nodes
        tapers = self.plan.tapers[nodes]
        return slice(nodes.start, nodes.start + len(list(takewhile(tapers[0].__eq__, tapers))))

    def _move(self, level: int, nodes: slice) -> None:
        self.position += (nodes.stop - nodes.start) * self.plan.branching**level

    def _open(self, level: int) -> None:
        """Draw the rows that begin here, from the top down to a level; leaves are level 0."""
        if self.position < self._stop:
            return
        top = self.plan.levels - 1
        if not self.position and not self._small:
            self._rows[top] = self._top()
        for above in range(top, max(level, 2), -1):
            if not self.position % self.plan.branching**above:
                node = self._rows[above].part(self._nodes(above, 1))
                self._rows[above - 1] = self._children(above, node)
        if not level:
            self._open_leaves()

    def _open_leaves(self) -> None:
        """Work out the errors of the next periods: of some nodes of level 2, or of the whole tree."""
        if self._small:
            level, row = self.plan.levels - 1, self._top()
        else:
            nodes = self._alike(2, self._nodes(2, self._ahead // self.plan.branching**2))
            level, row = 2, self._rows[2].part(nodes)
        self._leaves = self._expand(level, row).tolist()
        self._start, self._stop = self.position, self.position + len(self._leaves)

    def _errors(self, level: int, nodes: slice) -> IntegerArray:
        """The errors of all periods under nodes of an open row, which lie in one block."""
        if not level:
            return self._array(self._leaves[nodes])
        return self._expand(level, self._rows[level].part(nodes))

    def _expand(self, level: int, row: _Row) -> IntegerArray:
        """The errors of all periods under these nodes of a level."""
        for above in range(level, 0, -1):
            row = self._children(above, row)
        return row.errors

    def _children(self, level: int, row: _Row) -> _Row:
        """The children of these nodes of a level, in one long row."""
        below = self._drawn((row.below.size, self.plan.branching)) if level > 1 else self._nothing
        own = self._refined(level - 1, row.below.ravel(), below)
        return _Row(_moved(row.errors, own.reshape(row.below.shape)), below)

    def _top(self) -> _Row:
        """The blocks: their noise, refined, and corrected by the tapered sum over all of them."""
        plan = self.plan
        shares = [plan.top, *[plan.low] * (plan.branching if plan.levels > 1 else 0)]
        parts = np.outer(TAPERS - np.array(plan.tapers, dtype=np.int64), shares)
        total = [SHARES] if any(plan.taper) else []
        drawn = self._kept(self._draw_parts(np.concatenate([total, parts.ravel()]).astype(np.int64)))
        blocks = drawn[len(total) :].reshape(parts.shape)
        own = self._refined(plan.levels - 1, blocks[:, 0], blocks[:, 1:])
        errors = self._corrected(own.tolist(), sum(map(int, drawn[: len(total)])))
        return _Row(self._array(errors), blocks[:, 1:])

    def _corrected(self, own: list[int], total: int) -> list[int]:
        """The blocks with what is due to them of the tapered sum's surplus."""
        surplus = (total << BITS) - sum(
            taper * error for taper, error in zip(self.plan.tapers, own, strict=True)
        )
        due = [share * surplus // (ROUNDS * TAPERS) for share in self.plan.corrections]
        return [error + after - before for error, (before, after) in zip(own, pairwise(due), strict=True)]

    def _refined(self, level: int, own: IntegerArray, below: IntegerArray) -> IntegerArray:
        """The noise of each node, averaged with that of its children; in units of 2^-BITS."""
        if not below.shape[1]:
            return own << BITS
        children = below.sum(axis=1)
        apart: Any = (own - children) * (_FINE // WEIGHTS)
        refined: IntegerArray = (children << BITS) + self.plan.weight(level) * apart
        return refined

    def _scale(self, share: int, taper: int) -> Fraction:
        return widest_scale(self.rate) / (share * (TAPERS - taper))

    def _drawn(self, shape: tuple[int, int]) -> IntegerArray:
        """Noise for nodes below the top row, under the open block."""
        taper = self.plan.tapers[self.position // self.plan.block]
        zeros = np.zeros(shape, dtype=np.int64)
        return self._kept(self._noise.add(zeros, self._scale(self.plan.low, taper)))

    def _draw_parts(self, parts: IntegerArray) -> IntegerArray:
        zeros = np.zeros(parts.shape, dtype=np.int64)
        drawn: IntegerArray = self._noise.add(zeros, widest_scale(self.rate), parts=parts)
        return drawn

    def _kept(self, noise: IntegerArray) -> IntegerArray:
        return integers(noise, wide=self._wide, below=NARROW_NOISE)

    def _array(self, errors: Sequence[int]) -> IntegerArray:
        return integers(errors, wide=self._wide)


def widest_scale(rate: Fraction) -> Fraction:
    """The scale of which the scales of all nodes are parts."""
    return SHARES * TAPERS / rate


def _moved(errors: IntegerArray, own: Any) -> IntegerArray:
    """Each row of siblings moved by equal amounts to add up to its error; units left over spread evenly."""
    k = own.shape[1]
    missing: Any = errors - own.sum(axis=1)
    moved = own + (missing // k)[:, np.newaxis]
    moved += _spread(k)[(missing % k).astype(np.int64)]
    flat: IntegerArray = moved.ravel()
    return flat


@cache
def _spread(k: int) -> Ints:
    """In row r, r ones at even distances among k places: floor((i+1) r / k) - floor(i r / k)."""
    return np.diff(np.outer(np.arange(k), np.arange(k + 1)) // k, axis=1)


class Epochs:
    """The errors of one tree after another, each sixteen times as long and with all of epsilon.

    A period lies in one tree only, and the last error of a tree stays in all later outputs.
    """

    def __init__(self, first: TreePlan, rate: Fraction, noise: Noise) -> None:
        self.plans = [first]
        self.tree = CentredPath(first, rate, noise)
        self._rate, self._noise = rate, noise

    def step(self) -> int:
        if self.tree.position == self.plans[-1].horizon:
            self._begin()
        return self.tree.step()

    def many(self, periods: int) -> IntegerArray:
        pieces = [self.tree.many(count) for count in self._counts(periods)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *pieces])

    def skip(self, periods: int) -> int:
        return sum(self.tree.skip(count) for count in self._counts(periods))

    def fields(self) -> dict[str, Row]:
        """The plans so far and what is drawn of the open tree."""
        return {"plans": [number for plan in self.plans for number in plan.numbers], **self.tree.fields()}

    def restore(self, fields: dict[str, list[int]], periods: int) -> None:
        plans = TreePlan.all_of(fields["plans"])
        grown = [EPOCH_GROWTH * plan.horizon for plan in plans[:-1]]
        if plans[:1] != self.plans or [plan.horizon for plan in plans[1:]] != grown:
            raise invalid_state("fit its trees")
        self.plans = plans
        self.tree = CentredPath(self.plans[-1], self._rate, self._noise)
        self.tree.restore(fields, periods - sum(plan.horizon for plan in self.plans[:-1]))

    def _counts(self, periods: int) -> Iterator[int]:
        """How many of the next periods lie in the open tree, then in the next, and so on."""
        while periods:
            if not self.tree.left:
                self._begin()
            count = min(periods, self.tree.left)
            yield count
            periods -= count

    def _begin(self) -> None:
        self.plans.append(next_epoch(self.plans[-1]))
        self.tree = CentredPath(self.plans[-1], self._rate, self._noise)
