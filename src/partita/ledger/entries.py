"""What a ledger holds, wherever it is stored: amounts, terms, debits, and how charges compose.

Amount, Balance    epsilon and delta, or rho, as a currency
checked_...        parameters, checked
LedgerStore        what keeps a ledger: one piece of work in one durable transaction
Terms              what the steward opened: a total, a unit, neighbours, constant columns
Spending           charges compose sequentially, and in parallel over the parts of a column
Debit              one entry of the ledger, and its row
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, final

from partita.concentrated import epsilon_of_rho
from partita.errors import IncompatibleGuarantees, InvalidParameter, LedgerError, check, check_type
from partita.guarantee import ADD_REMOVE, Guarantee, Neighbors, Unit, short
from partita.html import card
from partita.numbers import integer
from partita.storage import Damaged

_ZERO: Final = Fraction(0)
_READABLE: Final = 40  # decimal digits of a number that is shown exactly; longer ones are rounded


@final
@dataclass(frozen=True)
class Amount:
    """Some epsilon and some delta; or some rho, where a dataset is opened in rho.

    >>> print(Amount(Fraction(1, 3)) + Amount(Fraction(1, 6), Fraction(1, 1000)))
    epsilon 1/2 and delta 1/1000
    >>> print(Amount.of_rho(Fraction(1, 8)) * 3)
    rho 3/8
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    """None in a dataset that is opened in epsilon."""

    def __repr__(self) -> str:
        return _repr(self)

    @staticmethod
    def of_rho(rho: Fraction) -> Amount:
        """An amount of rho, be it 0."""
        return Amount(rho=rho)

    def __add__(self, other: Amount) -> Amount:
        return self._with(other, operator.add)

    def __sub__(self, other: Amount) -> Amount:
        return self._with(other, operator.sub)

    def __mul__(self, count: int) -> Amount:
        rho = None if self.rho is None else self.rho * count
        return Amount(self.epsilon * count, self.delta * count, rho)

    def __or__(self, other: Amount) -> Amount:
        """The larger epsilon, the larger delta, the larger rho."""
        return self._with(other, max)

    def _with(self, other: Amount, join: Callable[[Fraction, Fraction], Fraction]) -> Amount:
        rho = None
        if self.rho is not None or other.rho is not None:
            rho = join(self.rho or _ZERO, other.rho or _ZERO)
        return Amount(join(self.epsilon, other.epsilon), join(self.delta, other.delta), rho)

    def fits(self, room: Amount) -> bool:
        """Whether nothing of it is above what `room` has."""
        return all(needs <= has for has, needs in self._pairs(room))

    def times_in(self, room: Amount) -> int:
        """How often this positive amount fits into `room`, one after the other.

        >>> Amount(Fraction(1, 3)).times_in(Amount(Fraction(1)))
        3
        """
        return min(int(has // needs) for has, needs in self._pairs(room) if needs)

    def _pairs(self, room: Amount) -> list[tuple[Fraction, Fraction]]:
        """What the room has of each currency, and what this amount needs."""
        rhos = (room.rho or _ZERO, self.rho or _ZERO)
        return [(room.epsilon, self.epsilon), (room.delta, self.delta), rhos]

    def __str__(self) -> str:
        return self.said(delta=self.delta > 0)

    def said(self, *, delta: bool) -> str:
        """In words, with delta or without."""
        if self.rho is not None:
            return f"rho {_format_number(self.rho)}"
        return f"epsilon {_format_number(self.epsilon)}" + (
            f" and delta {_format_number(self.delta)}" if delta else ""
        )

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """The epsilon, rounded up, that follows from an amount of rho; None for another amount."""
        if self.rho is None:
            return None
        return epsilon_of_rho(self.rho, delta) if self.rho > 0 else _ZERO


@final
@dataclass(frozen=True)
class Balance:
    """What a dataset has: `left` is what a release about everybody may cost.

    A release about one part may cost more where other parts have spent more than it has.

    >>> print(Balance(Amount.of_rho(Fraction(1, 2)), Amount.of_rho(Fraction(1, 8))).left)
    rho 3/8
    """

    total: Amount
    spent: Amount

    @property
    def left(self) -> Amount:
        """What is not spent."""
        return self.total - self.spent

    @property
    def curve(self) -> tuple[CurvePoint, ...]:
        """What is spent and the total as epsilon at some deltas, where the dataset is opened in rho."""
        if self.total.rho is None:
            return ()
        return tuple(
            CurvePoint(delta, self.total.epsilon_at(delta) or _ZERO, self.spent.epsilon_at(delta) or _ZERO)
            for delta in CURVE_DELTAS
        )

    def _repr_html_(self) -> str:
        rows = [("total", str(self.total)), ("spent", str(self.spent)), ("left", str(self.left))]
        return card("Balance", [*rows, *((f"delta {short(each.delta)}", each.words) for each in self.curve)])


CURVE_DELTAS: Final = (Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**12))
"""The deltas at which a balance in rho is stated as epsilon."""


@final
@dataclass(frozen=True)
class CurvePoint:
    """Of a balance in rho: the epsilon, rounded up, that the total and what is spent are at one delta."""

    delta: Fraction
    total: Fraction
    spent: Fraction

    @property
    def words(self) -> str:
        """Both, in words."""
        return f"epsilon {short(self.spent)} is spent of {short(self.total)}"


def _repr(counted: Amount | Terms) -> str:
    """The fields of a dataclass, without a rho that is not spoken of."""
    named = ((each.name, getattr(counted, each.name)) for each in fields(counted))
    shown = (f"{name}={value!r}" for name, value in named if name != "rho" or value not in (None, 0))
    return f"{type(counted).__name__}({', '.join(shown)})"


def _format_number(number: Fraction) -> str:
    """The exact number where it is short, else six digits of it."""
    if number.numerator.bit_length() + number.denominator.bit_length() <= 3 * _READABLE:
        return str(number)
    return f"about {Decimal(number.numerator) / Decimal(number.denominator):.6g}"


# What callers hand in, checked before anything is written: names, parts, days, requests.
Part: TypeAlias = tuple[str, str]

_LONGEST_TEXT: Final = 200
_MOST_BITS: Final = 4096  # of a numerator or denominator: every later sum carries it along


def checked_text(value: object, name: str) -> str:
    """`value`, if it is a line of visible text without space around it."""
    rule, fix = "must be non-empty text in one line, without space around it", 'pass a name like "people"'
    text: str = check_type(value, str, name, rule, fix=fix)
    check(text and text.isprintable() and text == text.strip(), name, rule, given=text, fix=fix)
    rule = f"must have at most {_LONGEST_TEXT} characters"
    check(len(text) <= _LONGEST_TEXT, name, rule, given=text, fix="shorten it")
    return text


def checked_part(part: object) -> Part | None:
    """A column and one of its values, both as text, or None for everybody."""
    if part is None:
        return None
    rule, fix = "must be a pair of a column and a value", 'pass ("region", "north")'
    pair: tuple[object, ...] = check_type(part, tuple, "part", rule, fix=fix)
    check(len(pair) == 2, "part", rule, given=pair, fix=fix)
    return checked_text(pair[0], "part column"), checked_text(pair[1], "part value")


def checked_day(day: object) -> str:
    """A day as 2026-01-31, never a time; today in UTC if none is given.

    >>> checked_day(date(2026, 1, 31))
    '2026-01-31'
    """
    if day is None:
        return datetime.now(UTC).date().isoformat()
    if isinstance(day, date) and not isinstance(day, datetime):
        return day.isoformat()
    if isinstance(day, str) and _is_day(day):
        return day
    raise InvalidParameter("day", "must be a day", given=day, fix='pass a date or text like "2026-01-31"')


def checked_guarantee(guarantee: object) -> Guarantee:
    """`guarantee`, if it is one, of numbers that fit into a ledger."""
    fix = "pass the .guarantee of a mechanism"
    stated: Guarantee = check_type(guarantee, Guarantee, "guarantee", "must be a Guarantee", fix=fix)
    for name in ("epsilon", "delta", "rho", "contributions", "intrusions"):
        writable(getattr(stated, name), name)
    return stated


def writable(number: Fraction | int, name: str) -> None:
    """Refuse a number of thousands of digits: every later sum would drag it along."""
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    rule = f"must be a ratio of integers below 2^{_MOST_BITS}"
    check(bits <= _MOST_BITS, name, rule, given=bits, fix="round it up")


def digest(request: object) -> str | None:
    """The SHA-256 of a request written as JSON, whatever the order of its entries.

    >>> digest({"epsilon": "1", "by": ["age"]}) == digest({"by": ["age"], "epsilon": "1"})
    True
    """
    if request is None:
        return None
    try:
        text = json.dumps(_plain(request), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        rule, fix = "must be a mapping that JSON can write, with text as keys", "write exact numbers as text"
        raise InvalidParameter("request", rule, given=request, fix=fix) from None
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(request: object) -> dict[str, object]:
    if not isinstance(request, Mapping) or not all(isinstance(key, str) for key in request):
        raise TypeError
    return {key: _plain_value(value) for key, value in request.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return _plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


# What keeps a ledger: a file or a database. Tables, rules and arithmetic are the same on both, in SQL that
# both understand; a question mark stands for a value.
Result = TypeVar("Result")

MARK: Final = b"PLdg"
VERSION: Final = 1
"""What the tables of a ledger are stamped with, wherever they are, as long as nothing states rho."""

CONCENTRATED: Final = 2
"""The stamp of a ledger with columns for rho: earlier versions of Partita must not read it as free."""

LOCKED = ("is locked by another process", "try again, or end the process that holds it")
DAMAGED = ("is damaged", "restore a copy that knows every debit; a new ledger would forget what was spent")


class Found(Protocol):
    """What a statement found or changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """An open transaction."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Found:
        """Run one statement, with a value for each of its question marks."""


class LedgerStore(Protocol):
    """Where a ledger is; it holds nothing open between two acts.

    `address` is what may be shown of the place. `additions` are statements that add what ledgers of earlier
    days lack; to run them again changes nothing.
    """

    @property
    def address(self) -> str: ...

    @property
    def additions(self) -> Sequence[str]: ...

    def exists(self) -> bool:
        """Whether there is something at the place that might be a ledger."""

    def check(self) -> None:
        """Refuse what is no ledger, or one that was tampered with as far as the store can tell."""

    def create(self) -> None:
        """Put an empty ledger at the place, whole or not at all, unless there is one."""

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds in one consistent state."""

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, once all it wrote is on disk; if it raises, nothing is written.

        Writers come one after the other, and each sees what all before it wrote.
        """

    def widen(self, connection: Connection) -> None:
        """Add the columns for rho and stamp the ledger anew, in this transaction, unless that was done."""

    def error(self, rule: str, fix: str) -> LedgerError:
        """An error that names the place as it may be shown."""


# What the steward opened a dataset with; terms never change.
_MOST_CONTRIBUTIONS: Final = 1_000_000
_ROWS: Final = ("row", "event")


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """The total, and between which neighbours it is promised; in epsilon and delta, or in rho.

    `contributions` is the most rows (events) that a person (user) has in the dataset, where that is
    publicly known; it prices releases that protect single rows only. `constant` names the columns
    in which all rows of a person have the same value.
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors
    unit: Unit
    contributions: int | None
    constant: tuple[str, ...]
    rho: Fraction = _ZERO
    """0 where the dataset is opened in epsilon; where it is not, epsilon and delta are 0."""

    def __repr__(self) -> str:
        return _repr(self)

    @staticmethod
    def checked(
        *,
        epsilon: object = None,
        delta: object = 0,
        rho: object = None,
        neighbors: Neighbors,
        unit: Unit,
        contributions: int | None,
        constant: object,
    ) -> Terms:
        """Terms that follow the rules, with a warning where epsilon or rho is large."""
        rule, fix = "must come without rho, or rho without it", "open a dataset in one of the two"
        check((epsilon is None) != (rho is None), "epsilon", rule, given=epsilon, fix=fix)
        fix = "leave it out: every delta has an epsilon that follows from rho"
        check(rho is None or delta in (0, "0"), "delta", "must come with epsilon", given=delta, fix=fix)
        bound = contributions
        if bound is not None:
            bound = integer(bound, "contributions", low=1, high=_MOST_CONTRIBUTIONS)
        protected: dict[str, Any] = {"neighbors": neighbors, "unit": unit, "contributions": bound or 1}
        if rho is None:
            total = checked_guarantee(Guarantee(epsilon=epsilon, delta=delta, **protected))
        else:
            total = checked_guarantee(Guarantee.concentrated(rho=rho, **protected))
        return Terms(
            epsilon=_ZERO if total.rho else total.epsilon,
            delta=_ZERO if total.rho else total.delta,
            rho=total.rho,
            neighbors=neighbors,
            unit=unit,
            contributions=None if unit in _ROWS else bound,
            constant=_columns(constant),
        )

    @property
    def total(self) -> Amount:
        """What all debits of the dataset may add up to."""
        return Amount.of_rho(self.rho) if self.rho else Amount(self.epsilon, self.delta)

    def price(self, guarantee: Guarantee) -> Amount:
        """What a release with `guarantee` costs here, or a refusal if no public factor tells.

        >>> terms = Terms.checked(epsilon=3, delta=0, neighbors="change-one", unit="person",
        ...                       contributions=5, constant=())
        >>> print(terms.price(Guarantee(epsilon="1/10")))
        epsilon 1
        """
        charged = self._per_unit(guarantee).to_neighbors(self.neighbors)
        if self.rho:
            writable(charged.cost_in_rho, "charged rho")
            return Amount.of_rho(charged.cost_in_rho)
        if charged.rho and not charged.pure and not self.delta:
            raise IncompatibleGuarantees(
                "a guarantee in rho has no price in a dataset opened in pure epsilon: whatever epsilon is "
                "named, the loss exceeds it with a small probability, which delta has to pay for; "
                "release with epsilon= alone, or open a dataset with rho= or delta="
            )
        writable(charged.epsilon, "charged epsilon")
        writable(charged.delta, "charged delta")
        return Amount(charged.epsilon, charged.delta)

    def checked_part(self, given: object) -> Part | None:
        """The part that was given, if one unit lies in one part of that column only."""
        part = checked_part(given)
        if part is None:
            return None
        if self.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"parts compose in parallel under {ADD_REMOVE} neighbors only, and this dataset has "
                f"{self.neighbors}: a changed {self.unit} may move from one part to another; "
                "leave part out and pay sequentially"
            )
        if self.unit not in _ROWS and part[0] not in self.constant:
            rule = f"must be on a column that the steward declared constant per {self.unit}"
            fix = "leave part out and pay sequentially"
            raise InvalidParameter("part", rule, given=part[0], fix=fix)
        return part

    def _per_unit(self, guarantee: Guarantee) -> Guarantee:
        if guarantee.unit == self.unit:
            return guarantee
        if self.unit in _ROWS:
            return guarantee.to_unit(self.unit, contributions=1)
        if self.contributions is None:
            raise IncompatibleGuarantees(
                f"a guarantee per {guarantee.unit} has no price in a dataset opened per {self.unit} without "
                f"contributions; make the release with unit {self.unit!r}"
            )
        if guarantee.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"a {guarantee.neighbors} guarantee per {guarantee.unit} says nothing about a {self.unit} "
                f"whose number of rows changes; make the release with unit {self.unit!r}, "
                f"or under {ADD_REMOVE}"
            )
        return guarantee.to_unit(self.unit, contributions=self.contributions)


def _columns(constant: object) -> tuple[str, ...]:
    kinds, rule = (tuple, list, set, frozenset), "must be a tuple of column names"
    columns: Iterable[object] = check_type(constant, kinds, "constant", rule, fix='pass ("region",)')
    return tuple(sorted({checked_text(column, "constant") for column in columns}))


# How charges compose: what anybody may have lost so far, and what room is left.
_NOTHING = Amount()


@final
@dataclass(frozen=True)
class Spending:
    """The sum of charges for each part; under None what was charged about everybody.

    A unit lies in one part of each column. So it has lost what was charged about everybody, and
    for each column what its own part was charged, which is the column's largest sum at most.

    >>> from fractions import Fraction
    >>> north, south = ("region", "north"), ("region", "south")
    >>> one = Amount(Fraction(1))
    >>> spending = Spending({None: one, north: one * 2, south: one * 3})
    >>> print(spending.spent)
    epsilon 4
    >>> print(spending.before(north))
    epsilon 3
    """

    sums: Mapping[Part | None, Amount]

    @property
    def spent(self) -> Amount:
        return self._total(self._peaks())

    def before(self, part: Part | None) -> Amount:
        """The most that anybody in `part` has lost, to which a charge on `part` adds."""
        if part is None:
            return self.spent
        return self._total({**self._peaks(), part[0]: self.sums.get(part, _NOTHING)})

    def _peaks(self) -> dict[str, Amount]:
        """For each column the largest sum of a part."""
        columns = {part[0] for part in self.sums if part}
        return {
            column: reduce(or_, (amount for part, amount in self.sums.items() if part and part[0] == column))
            for column in columns
        }

    def _total(self, columns: Mapping[str, Amount]) -> Amount:
        return sum(columns.values(), start=self.sums.get(None, _NOTHING))


# One entry of the ledger, and how it is written in a row of text.
State: TypeAlias = Literal["debited", "done", "lost"]

_SAME: Final = ("dataset", "what", "stated", "part", "request")
"""What makes two debits the same request, on whatever day."""

COLUMNS = (
    *("number", "dataset", "what", "day", "epsilon", "delta", "part_column", "part_value"),
    *("stated_epsilon", "stated_delta", "stated_neighbors", "stated_unit", "stated_contributions"),
    *("stated_intrusions", "key", "request", "state"),
)
RHO_COLUMNS = ("rho", "stated_rho")
"""The last columns of a ledger in which something states rho: what was charged, and what was stated."""


@final
@dataclass(frozen=True, kw_only=True)
class Debit:
    """A charge that is on disk: `debited`, then `done` once its release is stored, or `lost`.

    `stated` is the guarantee of the release, `charged` its price in the unit and relation of the
    dataset. `request` is a digest of the public request. Nothing here depends on data.
    """

    number: int
    dataset: str
    what: str
    day: str
    stated: Guarantee
    charged: Amount
    part: Part | None = None
    key: str | None = None
    request: str | None = None
    state: State = "debited"

    def same_request(self, other: Debit) -> bool:
        """Whether both ask for the same thing, on whatever day."""
        return all(getattr(self, name) == getattr(other, name) for name in _SAME)

    @property
    def states_rho(self) -> bool:
        """Whether it needs the columns of rho."""
        return bool(self.charged.rho or self.stated.rho)


def to_row(debit: Debit) -> tuple[str | None, ...]:
    """All but the number, in the order of `COLUMNS`; then those of rho, if it states rho."""
    stated = debit.stated
    return (
        *(debit.dataset, debit.what, debit.day, str(debit.charged.epsilon), str(debit.charged.delta)),
        *(debit.part or (None, None)),
        *(str(stated.epsilon), str(stated.delta), stated.neighbors, stated.unit),
        *(str(stated.contributions), str(stated.intrusions), debit.key, debit.request, debit.state),
        *((str(debit.charged.rho or _ZERO), str(stated.rho)) if debit.states_rho else ()),
    )


def from_row(row: Sequence[Any]) -> Debit:
    """The entry in a row of `COLUMNS`, with those of rho or without."""
    rho, stated_rho = row[len(COLUMNS) :] or ("0", "0")
    number, dataset, what, day, epsilon, delta, column, value, *stated, key, request, state = row[
        : len(COLUMNS)
    ]
    return Debit(
        number=number,
        dataset=dataset,
        what=what,
        day=day,
        stated=_read_guarantee(*stated, rho=stated_rho),
        charged=amount(epsilon, delta, rho),
        part=(column, value) if column is not None else None,
        key=key,
        request=request,
        state=state,
    )


def amount(epsilon: object, delta: object, rho: object = "0") -> Amount:
    """The amount that the columns of a row hold: one of rho, or of epsilon and delta."""
    return Amount(_stored(epsilon), _stored(delta), _stored(rho) or None)


def _read_guarantee(
    epsilon: str, delta: str, neighbors: str, unit: str, contributions: str, intrusions: str, *, rho: str
) -> Guarantee:
    """A guarantee as it was written; it was checked, and warned about, before."""
    guarantee = object.__new__(Guarantee)
    guarantee.__dict__.update(
        epsilon=_stored(epsilon),
        delta=_stored(delta),
        neighbors=neighbors,
        unit=unit,
        contributions=int(_stored(contributions)),
        intrusions=int(_stored(intrusions)),
        rho=_stored(rho),
    )
    return guarantee


def _stored(text: object) -> Fraction:
    try:
        number = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise Damaged from None
    if number < 0:
        raise Damaged
    return number
