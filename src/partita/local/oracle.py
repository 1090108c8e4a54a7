"""The LR oracle [Dwork-Roth, Definitions 12.2 and 12.3]: local randomizers within everybody's budget."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import lcm
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, Self, TypeAlias, final

import numpy as np

from partita.arrays import Ints, as_rows
from partita.errors import (
    BudgetExceeded,
    InvalidData,
    InvalidParameter,
    InvalidState,
    StreamForked,
    check,
    check_arguments,
    raise_without_cause,
)
from partita.guarantee import CHANGE_ONE, UNLIMITED, Guarantee
from partita.local.question import KINDS, randomizer_from, randomizer_kind
from partita.local.randomizer import (
    Draws,
    Json,
    LocalLaw,
    Numbers,
    Pmf,
    Randomizer,
    check_epsilon,
    clamped,
    exp_bounds,
)
from partita.local.ranges import Mixture
from partita.numbers import freeze, integer, rational
from partita.storage import Closing
from partita.trusted.durable.slots import PanStore
from partita.trusted.noise.laws import WordSource

# What everybody has spent: integers over one denominator, in memory or in one file that survives crashes.

_MOST_PEOPLE: Final = 1 << 24
_LARGEST: Final = 1 << 62
_NUMBER: Final = 8


@final
@dataclass(frozen=True, eq=False)
class Budgets:
    """For each of the people 0, ..., n-1 what they have spent, out of one cap, exactly.

    Budgets are public, as are the questions: what a person has spent depends on the questions alone.

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
        """New budgets, of which nothing is spent."""
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
        fits = int(times.max()) * step <= limit  # in Python: the product may not fit 64 bits
        spent = self.spent * (denominator // self.denominator) + times * step if fits else self.spent
        if not fits or bool((spent > limit).any()):
            raise BudgetExceeded(
                f"somebody in the batch has less than epsilon {price} left for each time they are listed; "
                "nobody was charged, ask those who have it"
            )
        return Budgets(self.cap, denominator, spent)

    def checked_ids(self, ids: object) -> Ints:
        """Numbers of people as a column."""
        given: Any = np.asarray(ids)
        fits = given.ndim == 1 and (not given.size or given.dtype.kind in "iu")
        fits = fits and (not given.size or 0 <= int(given.min()) <= int(given.max()) < self.people)
        rule = f"must be a column of integers below {self.people}"
        check(fits, "ids", rule, given=ids, fix="list people")
        column: Ints = given.astype(np.int64)
        return column

    def to_bytes(self) -> bytes:
        """The cap, the denominator, and the numerators."""
        numbers = (self.people, self.cap.numerator, self.cap.denominator, self.denominator)
        head = b"".join(number.to_bytes(_NUMBER, "little") for number in numbers)
        return head + self.spent.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The budgets that `to_bytes` wrote, checked; InvalidState otherwise."""
        head = [int.from_bytes(data[at : at + _NUMBER], "little") for at in range(0, 4 * _NUMBER, _NUMBER)]
        people, numerator, divisor, denominator = head
        rest = data[4 * _NUMBER :]
        if not 0 < people <= _MOST_PEOPLE or len(rest) != _NUMBER * people or not numerator or not divisor:
            raise _damage_error()
        cap, spent = Fraction(numerator, divisor), np.frombuffer(rest, dtype="<i8").astype(np.int64)
        limit = cap * denominator
        sound = limit.denominator == 1 and 0 < limit < _LARGEST
        if not sound or not 0 <= int(spent.min()) <= int(spent.max()) <= limit:
            raise _damage_error()
        return cls(cap, denominator, spent)


class BudgetBook(Protocol):
    """Where budgets are stored."""

    @property
    def now(self) -> Budgets:
        """What everybody has spent."""

    def charge(self, ids: object, epsilon: object) -> None:
        """Charge everybody listed, or refuse and charge nobody; what is charged stays charged."""


@final
@check_arguments
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
                message = "budgets in memory were copied by a fork; charge them where they were made"
                raise StreamForked(message)
            self._now = self._now.charged(ids, epsilon)


@final
@check_arguments
class BudgetFile(Closing):
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
            raise _damage_error()
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


def _too_old(path: str | os.PathLike[str], batches: int, known: int) -> StreamForked:
    return StreamForked(
        f"{os.fspath(path)!r} holds {batches} batches, and {known} were charged: it is an older copy; "
        "ask no more questions with it"
    )


def _damage_error() -> InvalidState:
    return InvalidState("budgets", "are damaged", fix="ask no more questions")


# Functions of a row that a caller supplies: their failures must not depend on what anybody holds, because an
# error is seen by the caller and costs nothing. So there are two ways to call one:
# - on each row of data by itself. A failure is an answer: the person is in a fixed cell, and has paid.
# - on a universe, a public list of all rows that may occur. A failure is an error, the same for all data, and
#   nobody pays. The function never sees data: rows are looked up in the table of its results.

OneRow: TypeAlias = Callable[[Any], Any]
"""From an array that holds one row to a number."""

_LARGEST_UNIVERSE: Final = 1 << 20
_NOWHERE: Final = -1


def evaluate_rows(rows: Any, one: OneRow, fixed: Any) -> list[Any]:
    """The result of the function for each row by itself, and `fixed` where it fails.

    Every call gets a copy of one row: the function can neither see other rows nor change them.
    KeyboardInterrupt and SystemExit pass: they are how an operator stops the process.
    """
    with np.errstate(all="ignore"):  # a warning about one value would be printed
        return [_evaluate_row(rows[at : at + 1].copy(), one, fixed) for at in range(len(rows))]


def _evaluate_row(row: Any, one: OneRow, fixed: Any) -> Any:
    try:
        return one(row)
    except Exception:
        return fixed


def only_element(made: Any) -> Any:
    """The element of a column of one, as Python has it; ValueError for all else."""
    column = np.asarray(made)
    if column.shape != (1,):
        raise ValueError("not a column of one")
    return column.tolist()[0]


@final
class Universe:
    """A public list of different rows, and for each row of the data its place in the list."""

    def __init__(self, rows: object, values: Any) -> None:
        self.rows = _check_rows(rows, values)
        known: dict[Hashable, int] = {}
        for place, key in enumerate(map(_key, self.rows.tolist())):
            if _place(known, key) != _NOWHERE:
                raise _no_universe(values)
            known[key] = place
        places = [_place(known, _key(row)) for row in values.tolist()]
        self._places: Ints = np.array(places, dtype=np.int64)

    def look_up(self, who: Ints, numbers: Sequence[Any], fixed: Any) -> list[Any]:
        """Of each person the number of their row, and `fixed` for a row that is not in the universe."""
        return [fixed if place == _NOWHERE else numbers[place] for place in self._places[who].tolist()]

    def evaluate(self, one: OneRow, name: str) -> list[Any]:
        """The results of the function for all rows of the universe; an error if it fails on one of them."""
        rule, fix = "must make a number of every row of the universe", "check it on each of them"
        failure, rows = InvalidParameter(name, rule, given=None, fix=fix), self.rows
        with np.errstate(all="ignore"):
            return raise_without_cause(
                lambda: [one(rows[at : at + 1].copy()) for at in range(len(rows))], failure, Exception
            )


def _key(row: Any) -> Hashable:
    """A key by which equal rows are found; a row that cannot be hashed equals no other."""
    key = tuple(row) if isinstance(row, list) else row
    try:
        hash(key)
    except Exception:
        return object()
    return key


def _place(known: dict[Hashable, int], key: Hashable) -> int:
    """The place of a key; nowhere, if a comparison of values fails too."""
    try:
        return known.get(key, _NOWHERE)
    except Exception:
        return _NOWHERE


def _check_rows(rows: object, values: Any) -> Any:
    try:
        listed = as_rows(rows, "universe")
    except InvalidData:
        listed = np.zeros(0)
    if listed.ndim < 1 or not 0 < listed.size <= _LARGEST_UNIVERSE or listed.shape[1:] != values.shape[1:]:
        raise _no_universe(values)
    return listed


def _no_universe(values: Any) -> InvalidParameter:
    rule = f"must list up to 2^20 different rows of {'x'.join(map(str, values.shape[1:])) or 'one'} numbers"
    return InvalidParameter("universe", rule, given=None, fix="leave it out, and failures are answers")


# Laws that an oracle admits: of the sealed registry, or listed in full; each of them verified first.

_MOST_ENTRIES: Final = 1 << 16
_LARGEST_DENOMINATOR: Final = 1 << 46
_BITS: Final = 256  # of the rational bound on e^epsilon
_CHECK: Final = "check the probabilities"


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class ListedLaw(LocalLaw):
    """A law given by all of its probabilities: `table[x][y]` is that of the report y about the cell x.

    Made only if every row adds up to one and no report is more than e^epsilon times as likely about one cell
    as about another, by exact arithmetic.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     whatever the law says.
    Proof:     docs/proofs/local_oracles.md

    >>> third = Fraction(1, 3)
    >>> ListedLaw(table=((2 * third, third), (third, 2 * third)), epsilon=Fraction(1)).reports
    2
    """

    kind: ClassVar[str] = "listed"
    size: int = 0
    table: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        rule = "must have rows of Fractions that add up to 1"
        check(isinstance(self.table, Sequence), "table", rule, given=None, fix=_CHECK)
        freeze(self, size=len(self.table), epsilon=check_epsilon(self.epsilon))
        check(_is_law(self.table), "table", rule, given=None, fix=_CHECK)
        rule = "must have a common denominator up to 2^46"
        check(self.denominator <= _LARGEST_DENOMINATOR, "table", rule, given=None, fix=_CHECK)
        bound = exp_bounds(self.epsilon, _BITS)[0]
        if any(max(column) > bound * min(column) for column in zip(*self.table, strict=True)):
            rule = f"must not lose more than epsilon {self.epsilon}"
            raise InvalidParameter("table", rule, given=None, fix="raise epsilon")

    @property
    def reports(self) -> int:
        """The length of a row."""
        return len(self.table[0])

    @cached_property
    def denominator(self) -> int:
        """That of all probabilities."""
        return lcm(*(chance.denominator for row in self.table for chance in row))

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A number below the denominator, looked up among the sums of the row of x."""
        sought = x * self.denominator + draws.below(self.denominator)
        return self._find(sought) - x * self.reports

    def pmf(self, x: int) -> Pmf:
        """The row of the cell."""
        return dict(enumerate(self.table[x]))

    def to_json(self) -> Json:
        """All probabilities."""
        rows = [[str(chance) for chance in row] for row in self.table]
        return {"kind": self.kind, "epsilon": str(self.epsilon), "table": rows}

    @cached_property
    def _starts(self) -> list[int]:
        """Where each report of each row begins, all rows one after the other."""
        lengths = (int(chance * self.denominator) for row in self.table for chance in row)
        return list(accumulate(lengths, initial=0))[:-1]

    def _find(self, sought: Numbers) -> Numbers:
        if isinstance(sought, int):
            return bisect_right(self._starts, sought) - 1
        return np.searchsorted(np.array(self._starts), sought, side="right") - 1


def verify_law(law: object) -> LocalLaw:
    """The law made anew from its description, so that what is sampled is what was verified.

    A mixture is made anew with its views: `Mixture` refuses objects that only look like views. Of a law that
    is not in the registry only the probabilities that its `pmf` lists are used: they are checked by
    enumeration, and sampled here.
    """
    if isinstance(law, Mixture):
        return Mixture.read(law.views, [randomizer_from(part.to_json()) for part in law.parts])
    if isinstance(law, ListedLaw):
        return ListedLaw(table=tuple(tuple(row) for row in law.table), epsilon=law.epsilon)
    if isinstance(law, Randomizer) and law.kind in KINDS and type(law) is randomizer_kind(law.kind):
        return randomizer_from(law.to_json())
    return _list_law(law)


def _list_law(law: Any) -> ListedLaw:
    size, reports = (getattr(law, name, 0) for name in ("size", "reports"))
    if not (isinstance(size, int) and isinstance(reports, int) and 0 < size * reports <= _MOST_ENTRIES):
        raise _unknown_law()
    try:
        rows = [law.pmf(x) for x in range(size)]
        table = tuple(tuple(row.get(report, Fraction(0)) for report in range(reports)) for row in rows)
    except Exception:
        raise _unknown_law() from None
    return ListedLaw(table=table, epsilon=law.epsilon)


def _unknown_law() -> InvalidParameter:
    rule = f"must be of the registry, or list at most {_MOST_ENTRIES} probabilities"
    fix = "pass for example Frequency(10, epsilon=1).randomizer"
    return InvalidParameter("randomizer", rule, given=None, fix=fix)


def _is_law(table: tuple[tuple[Fraction, ...], ...]) -> bool:
    """Whether these are rows of one length of probabilities that add up to one."""
    if not 0 < sum(map(len, table)) <= _MOST_ENTRIES or len(set(map(len, table))) > 1:
        return False
    exact = {type(chance) for row in table for chance in row} == {Fraction}
    return exact and all(min(row) >= 0 and sum(row) == 1 for row in table)


ToCells: TypeAlias = Callable[[Any], Any]
"""From a column or table that holds one row to a column that holds one cell."""


@final
class LROracle:
    """Holds what people hold, and answers with randomized reports until budgets are spent.

    For simulations, and for curators who hold the data: what protects a person in the field is the budget
    of their own device (`Device`). Each batch is charged as a whole before anything is drawn: if a crash
    comes between, budget is lost and nothing was said. After the charge no error depends on what people
    hold. `universe` is a public list of all rows that may occur; with it functions never see data.

    Guarantee: epsilon-DP for epsilon = the cap, pure, local, however questions were chosen.
    Error:     that of the randomizers.
    Proof:     docs/proofs/local_oracles.md
    """

    def __init__(self, values: object, book: BudgetBook, *, universe: object = None) -> None:
        self._values: Any = as_rows(values, "values")
        self.book = book
        fits = self._values.ndim >= 1 and len(self._values) == book.now.people
        fix = "check them"
        check(fits, "values", f"must have a row for each of {book.now.people} people", given=values, fix=fix)
        self._universe = None if universe is None else Universe(universe, self._values)

    @property
    def people(self) -> int:
        """How many people there are."""
        return self.book.now.people

    @property
    def width(self) -> int:
        """How many columns a row has."""
        return 1 if self._values.ndim == 1 else int(self._values.shape[1])

    @property
    def guarantee(self) -> Guarantee:
        """What everybody was promised, whoever asks and whoever looks."""
        return Guarantee(epsilon=self.book.now.cap, neighbors=CHANGE_ONE, unit="user", intrusions=UNLIMITED)

    def ask(
        self,
        ids: object,
        randomizer: object,
        *,
        through: ToCells | None = None,
        words: WordSource | None = None,
    ) -> Any:
        """A report of each person listed, of a law that is verified first; everybody pays its epsilon.

        `through` makes cells of rows, if the values are no cells. It is called for one row at a time, with a
        column (or table) that holds that row alone, and returns a column of one. Where it fails or returns
        anything else, that person's report is about the first cell. With a universe a failure is an error.
        """
        law, who = verify_law(randomizer), self.book.now.checked_ids(ids)
        self._check_through(through)
        if through is None:
            return law.randomize_many(self._own_cells(who, law), words=words)

        def cell_through(row: Any) -> int:
            return clamped(only_element(through(row)), law.size)

        cells = self.charged_numbers(who, law, cell_through, fixed=_FIRST, name="through")
        return law.randomize_many(np.array(cells, dtype=np.int64), words=words)

    def charged_numbers(self, who: Ints, law: LocalLaw, one: OneRow, *, fixed: Any, name: str) -> list[Any]:
        """Charge everybody listed, then a number of each of their rows: `fixed` where the function fails.

        With a universe the function is called before the charge, on public rows, and its failure is an error.
        """
        if self._universe is None:
            self.book.charge(who, law.epsilon)
            return evaluate_rows(self._values[who], one, fixed)
        numbers = self._universe.evaluate(one, name)
        self.book.charge(who, law.epsilon)
        return self._universe.look_up(who, numbers, fixed)

    def charged_rows(self, who: Ints, law: LocalLaw) -> Any:
        """Charge everybody listed, then a copy of their rows: for functions of our own, which never fail."""
        self.book.charge(who, law.epsilon)
        return self._values[who]

    def _own_cells(self, who: Ints, law: LocalLaw) -> Any:
        """Charge everybody listed, then their values as cells; objects one by one, because they may fail."""
        rows = self.charged_rows(who, law)
        if rows.dtype.kind in "iubf":
            return rows
        cells = evaluate_rows(rows, lambda row: clamped(row.tolist()[0], law.size), _FIRST)
        return np.array(cells, dtype=np.int64)

    def _check_through(self, through: object) -> None:
        """Whether a function is needed is public: it depends on the shape of the table."""
        rule = "must be given for rows of columns"
        check(through is not None or self._values.ndim <= 1, "through", rule, given=None, fix="pass it")
        fix = "pass a function of rows"
        check(through is None or callable(through), "through", "must be a function", given=None, fix=fix)


_FIRST: Final = 0  # the cell of a row on which a function fails, as of a value that is no whole number
