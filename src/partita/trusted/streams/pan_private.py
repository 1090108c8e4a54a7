"""A counter that stays private if its memory is read once [DR14, section 12.3.1]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from partita.arrays import Floats, Ints
from partita.errors import (
    InvalidData,
    InvalidParameter,
    check,
    check_arguments,
    check_bool,
    raise_without_cause,
)
from partita.guarantee import Guarantee
from partita.numbers import check_choice, check_probability, integer
from partita.public.stream_errors import PAN_CELLS, PanErrors, Running
from partita.public.stream_trees import BlockShape, BookBlockShape, TreeBlockShape, Variant, block_length
from partita.public.streams import LARGEST, CounterTerms, check_horizon, invalid_state
from partita.trusted.noise.laws import IntegerArray
from partita.trusted.noise.system import KERNEL, SMALLEST_SCALE, Noise
from partita.trusted.streams.base import (
    ContinualCounter,
    Fields,
    Stepping,
    counted,
    counts_of,
    horizon_reached,
    last_bounded,
)

Cells: TypeAlias = Ints
"""Integers modulo 2^64, overwritten in place."""

_LARGEST_SCALE: Final = 2**40


@final
@check_arguments
class PanPrivateCounter(Stepping, ContinualCounter):
    """Count under continual observation, private even if the memory is read once at an unknown time.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events: for all
               outputs together with the whole state at one time, and again after each
               `announce_intrusion`; for any stream and any time, also if chosen while outputs are seen.
    Error:     standard deviation of an output below 2 log2(horizon)^1.5 / epsilon, on average 0.7 of
               that; with `variant="book"` below 1.42 (1 + log2 horizon)^1.5 / epsilon.
    Proof:     docs/proofs/pan_private_counter.md (one noise before the events, another after them)

    What is protected is the state between two calls. A period is counted in one step, `update`; what waits to
    be counted is not protected. With `live=True` events may be counted one by one as they come, with `open`,
    `add` and `update`, and a look may fall between them; that costs a little accuracy. Two looks that nobody
    announced give away the events between them: that is beyond any such counter. Counts are modulo 2^64.

    `variant` "default" is Figure 12.1 with fresh noise on the outputs, "book" is Figure 12.2. Without a
    horizon it goes on as long as it is asked to, in blocks that grow.

    >>> counter = PanPrivateCounter(epsilon=1, horizon=1000)
    >>> outputs = [counter.update(x) for x in (0, 1, 5)]
    >>> counter.guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=event, intrusions=1)
    """

    name: ClassVar[str] = "pan-private"
    granularity = Fraction(1)

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int | None = None,
        variant: Variant = "default",
        live: bool = False,
        change: int = 1,
        contributions: int = 1,
        noise: Noise = KERNEL,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        known = None if horizon is None else check_horizon(horizon)
        self._cells = _zeros()
        super().__init__(terms=terms, horizon=known, secure=noise is KERNEL)
        if self.guarantee is not None:
            self.guarantee = replace(self.guarantee, intrusions=1)
        self.variant: Variant = check_choice(variant, "variant", get_args(Variant))
        self.live = check_bool(live, "live")
        self._noise = noise
        self._start = self._value = 0
        self._opened = False
        self._carried = _zeros()
        self._block = self._block_here()
        can_draw = SMALLEST_SCALE <= self._block.scale <= _LARGEST_SCALE
        rule, fix = "must give noise of a scale between 2^-20 and 2^40", "use a value such as 1"
        check(can_draw, "epsilon", rule, given=terms.epsilon, fix=fix)

    @property
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""
        return Fraction(self._value)

    def open(self) -> None:
        """Begin a period in which events are counted as they come: called by the clock, in a live counter."""
        self._require_live()
        self._make_room(1)
        with self._step():
            self._begin()

    def add(self, x: int = 1) -> None:
        """Count x in the open period. Nothing is published; `update` closes the period."""
        x = counted(x)
        self._require_live()
        self._make_room(1)
        check(self._opened, "add", "needs an open period", given="none", fix="call open() by the clock")
        with self._step():
            self._block.add(self._cells, self._position, x)

    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted, or x more in an open one: its output."""
        x = counted(x)
        self._make_room(1)
        with self._step():
            self._begin()
            self._block.add(self._cells, self._position, x)
            self._finish(1)
        return self.value

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same as one by one."""
        counts = counts_of(xs).tolist()
        self._make_room(len(counts))
        return np.array([self.update(x) for x in counts], dtype=np.float64)

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""
        left = integer(periods, "periods", low=0, high=LARGEST)
        self._make_room(left)
        with self._step():
            while left:
                self._begin()
                run = min(left, self._block.length - self._position)
                self._finish(run)
                left -= run

    def announce_intrusion(self) -> None:
        """Start a new block with fresh noise: the next look is again the first.

        To be called before a look that is known of, which then sees published numbers only, or after one
        that was found out. Looks may be announced any number of times; each adds to the error of later
        outputs the error of the last one. In a live counter, call it again when a look that it was called
        for is over.
        """
        self._make_room(0)
        check(not self._opened, "period", "must be closed before", given="open", fix="call update() first")
        with self._step():
            self._renew()

    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once.

        All periods are those up to the horizon, or up to the end of the present block if there is none.
        """
        chance, errors = float(check_probability(beta)), self._errors
        everywhere = errors.everywhere(self._periods, chance)
        return errors.noise(self._periods).around(self.value, chance, everywhere=everywhere)

    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta no output is off by more: a number that is known before any data.

        It is about all outputs up to the horizon, or of the first `periods` periods where there is none, if
        no intrusion is announced: each one begins a block of its own, and `answer` counts the noise of all.
        """
        last, chance = last_bounded(self.horizon, periods), float(check_probability(beta))
        first = replace(self._block, length=block_length(0, self.horizon))
        return PanErrors(first, 0, _zeros(), self.horizon).everywhere(last, chance)

    def variance(self) -> float:
        """The variance of the last output."""
        return self._errors.noise(self._periods).variance

    def state(self) -> bytes:
        """All that the counter remembers: one look at it is covered by the guarantee, two are not.

        To store it and go on with this counter is to have two states: store `restart_state()` instead.
        """
        return super().state()

    def restart_state(self) -> bytes:
        """What a restart needs, and nothing else: published numbers, the clock, and cells of zero.

        It is the state that `announce_intrusion` leaves, and is a function of public facts at any time, also
        within an open period. So it may be stored beside a counter that goes on. A counter that is made from
        it begins a new block with fresh noise; events of a period that was not closed are lost.
        """
        return self._packed(
            self._rows(
                self._periods, opened=False, carried=self._errors.noises(self._periods), cells=_zeros()
            )
        )

    def abandon(self) -> None:
        """Erase the cells, and never go on: for a counter whose place another one takes."""
        self._abandon()

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = KERNEL) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`.

        It must go on in one place only: two that go on from one state are as two looks at it.
        """
        return super().from_state(state, noise=noise)

    def __repr__(self) -> str:
        """Parameters, and what is published."""
        return (
            f"PanPrivateCounter(epsilon={self.terms.epsilon}, horizon={self.horizon}, "
            f"variant={self.variant!r}, periods={self._periods}, value={self._value})"
        )

    def _fields(self) -> Fields:
        return self._rows(self._start, opened=self._opened, carried=self._carried, cells=self._cells)

    def _rows(self, start: int, *, opened: bool, carried: Cells, cells: Cells) -> Fields:
        """The rows of a state in which the block began after `start` periods."""
        known = -1 if self.horizon is None else self.horizon
        return {
            "shape": [known, get_args(Variant).index(self.variant), int(self.live)],
            "now": [start, int(opened), self._value],
            "carried": carried,
            "cells": cells,
        }

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        known, variant, live = fields["shape"]
        horizon, chosen = None if known == -1 else known, get_args(Variant)[_index(variant, 2)]
        return cls(horizon=horizon, variant=chosen, live=bool(_index(live, 2)), noise=noise, **terms.keywords)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        start, opened, value = fields["now"]
        self._start = _index(start, LARGEST + 1)
        self._block = self._block_here()
        self._opened = bool(_index(opened, 1 + self.live))
        _index(self._position, self._block.length + 1 - opened)
        self._value = _index(value + 2**63, 2**64) - 2**63
        self._carried[:], self._cells[:] = _row(fields["carried"]), _row(fields["cells"])
        if self._carried.min() < 0:
            raise invalid_state("hold numbers of noises")

    @property
    def _position(self) -> int:
        """The period of the block that is not closed yet."""
        return self._periods - self._start

    def _begin(self) -> None:
        """Begin a period, unless one is open."""
        if self._opened:
            return
        if self._position == self._block.length:
            self._renew()
        self._block.begin(self._cells, self._position, self._value)
        self._opened = True

    def _finish(self, run: int) -> None:
        """Close the open period, and the empty ones after it."""
        self._value = self._block.close(self._cells, self._position, self._position + run - 1)
        self._periods += run
        self._opened = False

    def _renew(self) -> None:
        """Forget everything but the last output, and go on from there in a new block."""
        self._carried[:] = self._errors.noises(self._periods)
        self._cells.fill(0)
        self._start = self._periods
        self._block = self._block_here()

    def _block_here(self) -> PeriodBlock:
        """The block that starts with the next period: up to the horizon, or longer than all before."""
        length = block_length(self._start, self.horizon)
        return BLOCKS[self.variant](length=length, rate=self.terms.rate, live=self.live, noise=self._noise)

    @property
    def _errors(self) -> PanErrors:
        return PanErrors(self._block, self._start, self._carried, self.horizon)

    def _abandon(self) -> None:
        """Never go on, and forget what a step that was not done left in the cells."""
        super()._abandon()
        self._cells.fill(0)

    def _require_live(self) -> None:
        check(self.live, "live", "must be True to count within a period", given=False, fix="set it")


def _zeros() -> Cells:
    return np.zeros(PAN_CELLS, dtype=np.int64)


def _index(number: int, count: int) -> int:
    """A number from a state, if it is one of 0, ..., count-1."""
    if not 0 <= number < count:
        raise invalid_state("hold numbers that a counter has")
    return number


def _row(numbers: list[int]) -> Cells:
    if len(numbers) != PAN_CELLS:
        raise invalid_state("hold all cells")
    return np.array(numbers, dtype=np.int64)


# ---- the cap that a guarantee for users needs ----


@final
@check_arguments
class Cap:
    """Lets the first `contributions` events of each user through, and no later one.

    What one user did decides about no other user's events. So a user who is there or not changes the
    capped stream by at most that many events.

    >>> cap = Cap(contributions=2)
    >>> [cap.admits(person) for person in ("ann", "bob", "ann", "ann")]
    [True, True, True, False]
    """

    def __init__(self, *, contributions: int) -> None:
        self.contributions = integer(contributions, "contributions", low=1, high=LARGEST)
        self._seen: dict[Hashable, int] = {}

    def admits(self, person: Hashable) -> bool:
        """Whether an event of this person counts; if so, it is one of theirs from now on."""
        seen = self._seen.get(person, 0)
        if seen == self.contributions:
            return False
        self._seen[person] = seen + 1
        return True


@final
@check_arguments
class Capped:
    """A counter of events that have a person each: no more than `contributions` of anybody's count.

    Guarantee: that of the counter, for one user, if it was made for as many contributions: epsilon in
               all, and epsilon / contributions for each event. No look at the memory is covered.
    Error:     that of the counter, and what the cap keeps out.
    Proof:     A user adds at most so many events to what the counter sees, and moves no other user's.

    Who was seen, and how often, is in memory in the clear; it is no part of the counter's state. So a
    pan-private counter is refused: whoever looks at its memory would find the list of people beside it.

    >>> from partita.trusted.streams.counter import Counter
    >>> visits = Capped(Counter(epsilon=1, horizon=365, contributions=3), contributions=3)
    >>> output = visits.update(["ann", "bob", "ann"])
    >>> visits.guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=user, contributions=3)
    """

    def __init__(self, counter: ContinualCounter, *, contributions: int) -> None:
        if isinstance(counter, PanPrivateCounter):
            raise InvalidParameter(
                "counter",
                "must not be pan-private, since the ids of people lie in memory beside it",
                given=counter.name,
                fix="use Counter, or cap events before they reach this machine",
            )
        self.counter = counter
        self._cap = Cap(contributions=contributions)
        made_for = counter.terms.contributions
        rule = f"must be what the counter was made for, {made_for}"
        fix = "make the counter with the same contributions"
        check(made_for == self._cap.contributions, "contributions", rule, given=contributions, fix=fix)

    @property
    def guarantee(self) -> Guarantee | None:
        """What the counter promises."""
        return self.counter.guarantee

    @property
    def value(self) -> float:
        """The last output; 0 before the first."""
        return self.counter.value

    def update(self, people: Iterable[Hashable] = ()) -> float:
        """Close one period in which these people had an event each, some perhaps several: its output."""
        listed = _hashable(people)
        if self.counter.periods == self.counter.horizon:
            raise horizon_reached(0)
        return self.counter.update(sum([self._cap.admits(person) for person in listed]))


def _hashable(people: Iterable[Hashable]) -> list[Hashable]:
    """All people of a period, before any of them is seen."""
    failure = InvalidData("people", "must be ids that can be looked up", fix="pass ints or strings")
    listed = raise_without_cause(lambda: list(people), failure, Exception)
    raise_without_cause(lambda: hash(tuple(listed)), failure, Exception)
    return listed


# ---- blocks of periods ----


@dataclass(frozen=True, kw_only=True)
class PeriodBlock(BlockShape):
    """How the periods of a block are counted in given cells; it remembers nothing itself.

    In a block, one look at the memory, together with all outputs, gives no event away. Noise is added to a
    cell before any event is, and a cell that has served its purpose is set to zero. Cells hold integers
    modulo 2^64: a function of the exact ones, so nothing more is known from it.
    """

    noise: Noise

    @abstractmethod
    def begin(self, cells: Cells, position: int, value: int) -> None:
        """Begin a period after an output: noise that its events will need goes into the cells."""

    @abstractmethod
    def add(self, cells: Cells, position: int, x: int) -> None:
        """Count x in the period that was begun."""

    @abstractmethod
    def close(self, cells: Cells, position: int, last: int) -> int:
        """The output after `last`: the period that was begun is closed, and those up to there were empty."""

    def _pour(self, cells: Cells) -> None:
        """Add fresh noise to cells, and leave it nowhere else."""
        noisy = np.asarray(self.noise.add(cells, self.scale))
        cells[:] = _words(noisy)
        noisy.fill(0)


@final
class TreeBlock(TreeBlockShape, PeriodBlock):
    """Figure 12.1 with fresh noise on every output [DR14].

    Cell j belongs to the open interval of level j: the output before it, a noise, and the events in it so
    far. When the interval ends, this plus a fresh noise is the next output. Only intervals that end in an
    output are kept: left children, and both halves. An interval of one period, which no look can fall into,
    needs the fresh noise only.
    """

    def begin(self, cells: Cells, position: int, value: int) -> None:
        begun = self.levels if position % (1 << self._top) == 0 else _trailing_zeros(position)
        cells[:begun] = value
        if begun > self._first_noisy:
            self._pour(cells[self._first_noisy : begun])

    def add(self, cells: Cells, position: int, x: int) -> None:
        held = [self._holds(level, position) for level in range(self.levels)]
        np.add(cells[: self.levels], x, out=cells[: self.levels], where=held)

    def close(self, cells: Cells, position: int, last: int) -> int:
        while True:
            level = self._longest(position, last)
            self._pour(cells[level : level + 1])
            value = int(cells[level])
            cells[: level + 1] = 0
            position = _end(level, position) + 1
            if position > last:
                return value
            self.begin(cells, position, value)

    def _holds(self, level: int, position: int) -> bool:
        """Whether an interval of this level that is kept holds the period."""
        return level == self._top or not position >> level & 1

    def _longest(self, position: int, last: int) -> int:
        """The level of the longest kept interval that holds the period and ends in time."""
        fitting = (j for j in range(self.levels) if self._holds(j, position) and _end(j, position) <= last)
        return max(fitting)


@final
class BookBlock(BookBlockShape, PeriodBlock):
    """Figure 12.2 [DR14]: a noisy count, and a noise for each interval, erased when the interval ends.

    Cell 0 is the count, which begins with the last output and a noise; cell 1 + j is the noise of the open
    interval of level j. An output is the sum of all cells.
    """

    def begin(self, cells: Cells, position: int, value: int) -> None:
        if position == 0:
            cells[0] = value
            self._pour(cells[:1])

    def add(self, cells: Cells, position: int, x: int) -> None:
        cells[:1] += x

    def close(self, cells: Cells, position: int, last: int) -> int:
        of_interval = cells[1 : 1 + self.levels]
        begun = sum(_start(level, last) >= position for level in range(self.levels))
        if begun:
            of_interval[:begun] = 0
            self._pour(of_interval[:begun])
        value = int(cells[: 1 + self.levels].sum())
        of_interval[: _trailing_zeros(last + 1) + 1] = 0
        return value


BLOCKS: Final[dict[Variant, type[PeriodBlock]]] = {"default": TreeBlock, "book": BookBlock}


def _words(values: IntegerArray) -> Cells:
    """The values modulo 2^64."""
    if values.dtype == np.int64:
        return values.astype(np.int64, copy=False)
    return (values % 2**64).astype(np.uint64).view(np.int64)


def _trailing_zeros(position: int) -> int:
    return (position & -position).bit_length() - 1


def _start(level: int, position: int) -> int:
    """The first period of the interval of this level that holds the period."""
    return position >> level << level


def _end(level: int, position: int) -> int:
    """The last period of the interval of this level that holds the period."""
    return _start(level, position) + (1 << level) - 1
