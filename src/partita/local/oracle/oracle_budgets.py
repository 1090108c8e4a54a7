"""What everybody has spent: integers over one denominator, in memory or in one file that survives crashes.

Who was asked what is public, and so is what everybody has spent: it depends on the questions alone.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any, Final, Protocol, Self, final

import numpy as np

from partita.errors.checks import check
from partita.errors.errors import BudgetExceeded, InvalidParameter, InvalidState, StreamForked
from partita.local.frequency.columns import Ints
from partita.numbers import integer, rational
from partita.trusted.durable.slots.slots_file import PanStore

_MOST_PEOPLE: Final = 1 << 24
_LARGEST: Final = 1 << 62
_NUMBER: Final = 8


@final
@dataclass(frozen=True, eq=False)
class Budgets:
    """For each of the people 0, ..., n-1 what they have spent, out of one cap, exactly.

    >>> book = Budgets.new(people=2, cap=1)
    >>> for _ in range(3):
    ...     book = book.charged([0], Fraction(1, 3))
    >>> book.left(0), book.left(1)
    (Fraction(0, 1), Fraction(1, 1))
    """

    cap: Fraction
    denominator: int
    spent: Ints = field(repr=False)

    def __post_init__(self) -> None:
        self.spent.setflags(write=False)

    @classmethod
    def new(cls, *, people: int, cap: object) -> Self:
        """Nobody has spent anything."""
        count, most = integer(people, "people", low=1, high=_MOST_PEOPLE), rational(cap, "cap")
        fix = "pass for example 1"
        check(0 < most.numerator < _LARGEST, "cap", "must be positive, and no giant", given=cap, fix=fix)
        return cls(most, _common(1, most, most), np.zeros(count, dtype=np.int64))

    @property
    def people(self) -> int:
        """How many people there are."""
        return len(self.spent)

    def left(self, person: int) -> Fraction:
        """What one person has left."""
        place = integer(person, "person", low=0, high=self.people - 1)
        return self.cap - Fraction(int(self.spent[place]), self.denominator)

    def unspent(self) -> Ints:
        """Who has spent nothing yet, in order."""
        return np.flatnonzero(self.spent == 0)

    def charged(self, ids: object, epsilon: object) -> Budgets:
        """Everybody listed charged, as often as they are listed; or a refusal, and nobody is charged."""
        price, who = rational(epsilon, "epsilon"), self.checked_ids(ids)
        check(price > 0, "epsilon", "must be positive", given=epsilon, fix="pass for example 1")
        denominator = _common(self.denominator, price, self.cap)
        step, limit = int(price * denominator), int(self.cap * denominator)
        times = np.bincount(who, minlength=self.people)
        if int(times.max()) * step > limit:
            raise _too_much(price)
        spent = self.spent * (denominator // self.denominator) + times * step
        if bool((spent > limit).any()):
            raise _too_much(price)
        return Budgets(self.cap, denominator, spent)

    def checked_ids(self, ids: object) -> Ints:
        """Numbers of people as a column."""
        given: Any = np.asarray(ids)
        known = given.ndim == 1 and (not given.size or given.dtype.kind in "iu")
        if not known or (given.size and not 0 <= int(given.min()) <= int(given.max()) < self.people):
            rule = f"must be a column of integers below {self.people}"
            raise InvalidParameter("ids", rule, given=ids, fix="list people")
        column: Ints = given.astype(np.int64)
        return column

    def to_bytes(self) -> bytes:
        """The cap, the denominator, and the numerators."""
        numbers = (self.people, self.cap.numerator, self.cap.denominator, self.denominator)
        return (
            b"".join(number.to_bytes(_NUMBER, "little") for number in numbers)
            + self.spent.astype("<i8").tobytes()
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The budgets that `to_bytes` wrote, checked; InvalidState otherwise."""
        head = [int.from_bytes(data[at : at + _NUMBER], "little") for at in range(0, 4 * _NUMBER, _NUMBER)]
        people, numerator, divisor, denominator = head
        rest = data[4 * _NUMBER :]
        if not 0 < people <= _MOST_PEOPLE or len(rest) != _NUMBER * people or not numerator or not divisor:
            raise _damaged()
        cap, spent = Fraction(numerator, divisor), np.frombuffer(rest, dtype="<i8").astype(np.int64)
        limit = cap * denominator
        if limit.denominator != 1 or not 0 < limit < _LARGEST:
            raise _damaged()
        if not 0 <= int(spent.min()) <= int(spent.max()) <= limit:
            raise _damaged()
        return cls(cap, denominator, spent)


class BudgetBook(Protocol):
    """Where budgets are kept."""

    @property
    def now(self) -> Budgets:
        """What everybody has spent."""

    def charge(self, ids: object, epsilon: object) -> None:
        """Charge everybody listed, or refuse and charge nobody; what is charged stays charged."""


@final
class BudgetMemory:
    """Budgets of a simulation: gone with the process, and of no use in a forked one."""

    def __init__(self, *, people: int, cap: object) -> None:
        self._now = Budgets.new(people=people, cap=cap)
        self._owner, self._lock = os.getpid(), threading.Lock()

    @property
    def now(self) -> Budgets:
        """What everybody has spent."""
        return self._now

    def charge(self, ids: object, epsilon: object) -> None:
        """Charge everybody listed, or refuse and charge nobody."""
        with self._lock:
            if os.getpid() != self._owner:
                raise StreamForked(
                    "budgets in memory were copied by a fork; charge them where they were made"
                )
            self._now = self._now.charged(ids, epsilon)


@final
class BudgetFile:
    """Budgets in one file with two slots: a crash leaves what was before a batch or what is after it.

    When `charge` returns, the disk has it. The file is open in one process at a time. It holds the number of
    its inode, so a copy at another place on the disk is refused. It cannot see an older state of itself at
    the same place: a backup written over it, a backup that got the same inode after a removal, a restored
    disk or virtual machine. Any of these would spend again what was spent.

    `batches` grows with every charge. Keep it where it does not go back in time with this file (a ledger, a
    log, another machine), and pass it as `at_least` when the file is opened again.
    """

    def __init__(self, path: str | os.PathLike[str], *, people: int, cap: object, at_least: int = 0) -> None:
        fresh = Budgets.new(people=people, cap=cap)
        known = integer(at_least, "at_least", low=0)
        room = _NUMBER + len(fresh.to_bytes())
        there = os.path.lexists(path)
        if known and not there:
            raise _too_old(path, 0, known)
        self._store = PanStore(path, create=False) if there else PanStore.new(path, room=room)
        self._lock = threading.Lock()
        self._place = os.stat(self.path).st_ino.to_bytes(_NUMBER, "little")
        self._batches = 0
        try:
            self._now: Budgets | None = self._first(fresh)
            if self._batches < known:
                raise _too_old(path, self._batches, known)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def now(self) -> Budgets:
        """What everybody has spent."""
        if self._now is None:
            self._now = self._loaded()
        return self._now

    @property
    def batches(self) -> int:
        """How many batches were charged, a public number; files of earlier versions begin with 0."""
        if self._now is None:
            self._now = self._loaded()
        return self._batches

    def charge(self, ids: object, epsilon: object) -> None:
        """Charge everybody listed, or refuse and charge nobody; on the disk before it returns."""
        with self._lock:
            charged = self.now.charged(ids, epsilon)
            self._now = None
            self._save(charged, batches=self._batches + 1)
            self._now, self._batches = charged, self._batches + 1

    def close(self) -> None:
        """Let others open the file."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first(self, fresh: Budgets) -> Budgets:
        """What the file holds, if it is about as many people with the same cap."""
        if self._store.load() is None:
            self._save(fresh, batches=0)
        there = self._loaded()
        rule, fix = f"must be {there.cap} for {there.people} people, as in the file", "pass that"
        check((there.people, there.cap) == (fresh.people, fresh.cap), "cap", rule, given=fresh.cap, fix=fix)
        return there

    def _loaded(self) -> Budgets:
        saved = self._store.load()
        if saved is None:
            raise _damaged()
        if saved.state[:_NUMBER] != self._place:
            raise StreamForked(f"{str(self.path)!r} is a copy of a file of budgets; go on with the first one")
        self._batches = saved.sequence
        return Budgets.from_bytes(saved.state[_NUMBER:])

    def _save(self, budgets: Budgets, *, batches: int) -> None:
        self._store.save(self._place + budgets.to_bytes(), sequence=batches)


def _common(denominator: int, price: Fraction, cap: Fraction) -> int:
    """The denominator that numbers of both kinds have, if budgets over it fit into 64 bits."""
    common = lcm(denominator, price.denominator)
    rule = "must leave a common denominator below 2^62 over the cap"
    check(cap * common < _LARGEST, "epsilon", rule, given=price, fix="round it")
    return common


def _too_much(price: Fraction) -> BudgetExceeded:
    return BudgetExceeded(
        f"somebody in the batch has less than epsilon {price} left for each time they are listed; "
        "nobody was charged, ask those who have it"
    )


def _too_old(path: str | os.PathLike[str], batches: int, known: int) -> StreamForked:
    return StreamForked(
        f"{os.fspath(path)!r} holds {batches} batches, and {known} were charged: it is an older copy; "
        "ask nobody any more with it"
    )


def _damaged() -> InvalidState:
    return InvalidState("budgets", "are damaged", fix="ask nobody any more")
