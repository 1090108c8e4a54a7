"""What every counter under continual observation can do, how it steps, and its state as bytes.

A state is a kind, a version, rows of exact integers and a checksum. A row takes the same number of bytes
whatever its integers are: the size of a state is public.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from partita.arrays import Floats, Ints, integer_array
from partita.errors import (
    EntropyError,
    HorizonReached,
    InvalidData,
    InvalidParameter,
    InvalidState,
    check,
    check_data,
    raise_without_cause,
)
from partita.guarantee import Guarantee
from partita.numbers import integer
from partita.public.stream_errors import Running
from partita.public.streams import LARGEST, WIDTH, CounterTerms, invalid_state
from partita.trusted.noise.laws import IntegerArray, Uncopyable
from partita.trusted.noise.system import SYSTEM, Noise


class ContinualCounter(ABC):
    """A running count that is published once in every period.

    A period is a stretch of public time. `update(x)` closes one period in which x was counted and returns
    what is published for it. Periods, outputs and their times never depend on what is counted: call
    it by the clock, with 0 if nothing came, and from one thread at a time. `guarantee` is None if the noise
    was injected.

    Outputs are multiples of `granularity`, a power of two at most 1. As floats they are exact up to 2^53 of
    these, and rounded beyond; `exact` is never rounded.
    """

    name: ClassVar[str]

    terms: CounterTerms
    guarantee: Guarantee | None
    horizon: int | None
    """The number of periods, if it is known beforehand."""

    granularity: Fraction

    @property
    @abstractmethod
    def periods(self) -> int:
        """How many periods are closed."""

    @property
    @abstractmethod
    def exact(self) -> Fraction:
        """The last output; 0 before the first."""

    @abstractmethod
    def update(self, x: int = 0) -> float:
        """Close one period in which x was counted: its output."""

    @abstractmethod
    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each number: all outputs. The same law as one by one."""

    @abstractmethod
    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs is published."""

    @abstractmethod
    def answer(self, beta: float = 0.05) -> Running:
        """The last output with its error: for this period, and for all periods at once."""

    @abstractmethod
    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta no output is off by more: a number that is known before any data.

        It is about all outputs up to the horizon, or of the first `periods` periods where there is none.
        `rows` is a public number of events that there are at most; only a sparse counter needs it.
        """

    @abstractmethod
    def state(self) -> bytes:
        """Everything that is needed to go on later: secret, unless the counter is pan-private."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: bytes) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""

    @property
    def value(self) -> float:
        """The last output; 0 before the first."""
        return float(self.exact)

    def _repr_html_(self) -> str:
        from partita.public.stream_plot import counter_card

        return counter_card(self)


def counted(x: object) -> int:
    """What was counted in a period, as an int; no error shows it."""
    if type(x) is int and -LARGEST < x < LARGEST:
        return x
    failure = InvalidData("x", "must be an integer between -2^62 and 2^62", fix="count in ints")
    return raise_without_cause(
        lambda: integer(x, "x", low=1 - LARGEST, high=LARGEST - 1), failure, InvalidParameter
    )


def counts_of(xs: ArrayLike, *, dimensions: int = 1, limit: int = LARGEST) -> Ints:
    """What was counted in each period, as int64; no error shows it."""
    counts = integer_array(xs, "xs")
    fix = "pass a number for each period"
    check_data(counts.ndim == dimensions, "xs", f"must have {dimensions} dimension(s)", fix=fix)
    bits, fits = limit.bit_length() - 1, -limit < counts.min(initial=0) <= counts.max(initial=0) < limit
    check_data(fits, "xs", f"must lie between -2^{bits} and 2^{bits}", fix="count in ints")
    return counts.astype(np.int64, copy=False)


def last_bounded(horizon: int | None, periods: object) -> int:
    """The last period that a bound is about: the horizon, or a number that is given where there is none."""
    fix = "pass periods=, how many outputs the bound is about"
    known = horizon is not None or periods is not None
    check(known, "periods", "must be given where no horizon is known", given=periods, fix=fix)
    if periods is None:
        return integer(horizon, "horizon", low=1)
    return integer(periods, "periods", low=1, high=LARGEST if horizon is None else horizon)


def horizon_reached(left: int) -> HorizonReached:
    """The error for a counter with so many periods left, which were too few."""
    return HorizonReached(
        f"the counter has {left} periods left; nothing was counted, start a new one for what comes"
    )


# ---- exact integers in arrays: int64 where a public scale says that they fit, else Python ints ----

Row: TypeAlias = Sequence[int] | Ints
"""A row of a state."""

NARROW_NOISE: Final = 1 << 28
"""Noise below this, and sums of 64 times 64 of it in units of 2^-16, can be worked with in int64."""
NARROW_ERROR: Final = 1 << 53
"""So can errors below this."""

_NARROW_SCALE: Final = 1 << 18


def is_wide(scale: Fraction) -> bool:
    """Whether noise of a scale is kept as Python ints: a public question."""
    return scale > _NARROW_SCALE


def integers(values: ArrayLike, *, wide: bool, below: int = NARROW_ERROR) -> IntegerArray:
    """int64, unless the noise is wide.

    Noise that is not wide exceeds a thousand scales with a chance below 2^-1000; then too, it is kept
    as it is.
    """
    try:
        array = np.asarray(values, dtype=np.int64)
    except OverflowError:
        return np.asarray(values, dtype=object)
    fits = -below < int(array.min(initial=0)) and int(array.max(initial=0)) < below
    return array.astype(object) if wide or not fits else array


def row(array: IntegerArray) -> Row:
    """An array as a row of a state: of eight bytes each, or of many."""
    flat: Any = array.ravel()
    return flat if array.dtype == np.int64 else [int(value) for value in flat]


# ---- the state of a counter as bytes ----

Fields: TypeAlias = Mapping[str, Row]
"""Rows of integers, by name."""

LONGEST: Final = 2**28
"""The bytes of a state are no more than this."""

_MAGIC: Final = b"partita-counter\n"
_CHECKSUM: Final = 32
_LENGTH: Final = 4
_WORD: Final = 8


def pack(kind: str, version: int, fields: Fields) -> bytes:
    """The state of a counter of this kind, in this version of its layout.

    >>> unpack(pack("tree", 1, {"noise": [0, -5, 2**80]}), "tree", 1)
    {'noise': [0, -5, 1208925819614629174706176]}
    """
    rows = (_pack_row(name, row) for name, row in fields.items())
    body = _MAGIC + b"".join([_pack_text(kind), version.to_bytes(_LENGTH, "big"), *rows])
    return body + hashlib.sha256(body).digest()


def unpack(state: object, kind: str, version: int) -> dict[str, list[int]]:
    """The fields that were packed under this kind and version; anything else is an `InvalidState`."""
    if not isinstance(state, bytes) or not len(_MAGIC) + _CHECKSUM < len(state) <= LONGEST:
        raise InvalidState("state", "must be the bytes that a counter gave", fix="pass counter.state()")
    body, checksum = state[:-_CHECKSUM], state[-_CHECKSUM:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        raise invalid_state("be whole")
    reader = _Reader(body[len(_MAGIC) :])
    if (reader.text(), reader.length()) != (kind, version):
        fix = "use its own class"
        raise InvalidState("state", f"must be of a counter {kind!r}, version {version}", fix=fix)
    fields = {}
    while reader.more:
        name = reader.text()
        fields[name] = reader.row()
    return fields


def _pack_text(text: str) -> bytes:
    return len(text.encode()).to_bytes(_LENGTH, "big") + text.encode()


def _pack_row(name: str, row: Row) -> bytes:
    if isinstance(row, np.ndarray) and row.dtype == np.int64:
        width, data = _WORD, row.astype(">i8").tobytes()
    else:
        width, data = WIDTH, b"".join(int(value).to_bytes(WIDTH, "big", signed=True) for value in row)
    sizes = (number.to_bytes(_LENGTH, "big") for number in (width, len(data) // width))
    return b"".join([_pack_text(name), *sizes, data])


class _Reader:
    """Reads what the functions above wrote, in order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def text(self) -> str:
        return self._take(self.length()).decode(errors="replace")

    def length(self) -> int:
        return int.from_bytes(self._take(_LENGTH), "big")

    def row(self) -> list[int]:
        width, count = self.length(), self.length()
        if width not in (_WORD, WIDTH):
            raise invalid_state("be whole")
        data = self._take(width * count)
        if width == _WORD:
            words: list[int] = np.frombuffer(data, dtype=">i8").tolist()
            return words
        return [int.from_bytes(data[i : i + width], "big", signed=True) for i in range(0, len(data), width)]

    def _take(self, length: int) -> bytes:
        data = self._data[self._at : self._at + length]
        if len(data) < length:
            raise invalid_state("be whole")
        self._at += length
        return data


# ---- what goes on step by step, once: not copied, not forked, not past its end ----

_VERSION: Final = 1


class Stepping(ABC, Uncopyable):
    """Keeps the terms, the clock and the state of a counter.

    It cannot be copied and does not go on in a forked child. If it is interrupted in the middle of a step,
    it is broken for good; go on from its last state.
    """

    name: ClassVar[str]

    _alive: ClassVar[weakref.WeakSet[Stepping]] = weakref.WeakSet()

    def __init__(self, *, terms: CounterTerms, horizon: int | None, secure: bool) -> None:
        self.terms = terms
        self.horizon = horizon
        self.guarantee = terms.guarantee if secure else None
        self._periods = 0
        self._end = LARGEST if horizon is None else horizon
        self._broken = False
        self._alive.add(self)

    @classmethod
    def after_fork(cls) -> None:
        """In a child: no counter goes on where its parent was."""
        for counter in list(cls._alive):
            counter._abandon()

    @property
    def periods(self) -> int:
        """How many periods are closed."""
        return self._periods

    def state(self) -> bytes:
        """Everything that is needed to go on later: secret. Two counters must not go on from one state."""
        return self._packed(self._fields())

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = SYSTEM) -> Self:
        """The counter that gave this state; anything else is an `InvalidState`."""
        fields = unpack(state, cls.name, _VERSION)
        try:
            counter = cls._fresh(CounterTerms.unpacked(fields["terms"]), fields, noise)
            periods, secure = fields["clock"]
            counter._periods = integer(periods, "periods", low=0, high=counter._end)
            counter._restore(fields)
        except (LookupError, ValueError, TypeError, OverflowError):
            raise invalid_state(f"be of a counter {cls.name!r}") from None
        counter.guarantee = counter.guarantee if secure else None
        return counter

    @abstractmethod
    def _fields(self) -> Fields:
        """What it was made with and what it holds, as rows of a state whose lengths are public."""

    @classmethod
    @abstractmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        """A counter that was made with the same, before its first period."""

    @abstractmethod
    def _restore(self, fields: dict[str, list[int]]) -> None:
        """Go on with what was held."""

    def _packed(self, fields: Fields) -> bytes:
        """A state with these rows after the terms and the clock."""
        self._make_room(0)
        common: Fields = {
            "terms": self.terms.packed(),
            "clock": [self._periods, int(self.guarantee is not None)],
        }
        return pack(self.name, _VERSION, {**common, **fields})

    def _make_room(self, periods: int) -> None:
        """Refuse what goes past the end, before anything is counted."""
        if self._broken:
            raise EntropyError("this counter was interrupted or forked in a step; go on from its last state")
        if periods > self._end - self._periods:
            raise horizon_reached(self._end - self._periods)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """A step is done or the counter is broken: noise that was used once must not be used again."""
        self._broken = True
        try:
            yield
        except BaseException:
            self._abandon()
            raise
        self._broken = False

    def _abandon(self) -> None:
        """Never go on."""
        self._broken = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Stepping.after_fork)

# ---- noise of one scale ----

_AT_ONCE: Final = 256  # noises that are drawn at once: speed against the size of a state


class Supply:
    """At most `total` noises of a scale, drawn some at a time and handed out one by one.

    What is drawn and not yet used belongs to the state.
    """

    def __init__(self, scale: Fraction, total: int, noise: Noise) -> None:
        self._scale, self._noise = scale, noise
        self._size = min(_AT_ONCE, total)
        self._ready: list[int] = []

    def take(self) -> int:
        """A noise that was never handed out before."""
        if not self._ready:
            drawn = self._noise.add(np.zeros(self._size, dtype=np.int64), self._scale)
            self._ready = drawn.tolist()[::-1]
        return self._ready.pop()

    def fields(self) -> dict[str, Row]:
        """What is ready, as rows of a state of fixed length."""
        blank = [0] * (self._size - len(self._ready))
        supply = integers(self._ready + blank, wide=is_wide(self._scale))
        return {"ready": [len(self._ready)], "supply": row(supply)}

    def restore(self, fields: dict[str, list[int]]) -> None:
        """Go on with what was ready before."""
        (ready,), supply = fields["ready"], fields["supply"]
        if not 0 <= ready <= len(supply) == self._size:
            raise invalid_state("fit its supply")
        self._ready = supply[:ready]
