"""Many counters that share a clock: one for each public key, all of them closed at once.

Centred trees lie side by side, with a column of errors for each key. Every node of a tree has noise of its
own. Siblings are moved by equal amounts, so that they add up to the error of their parent. The trees see no
data: a counter adds their errors to what it counts. See docs/proofs/counter_family.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Floats
from partita.errors import InvalidParameter, check, check_arguments, check_data
from partita.numbers import check_probability, integer
from partita.public.stream_errors import FamilyErrors, Running
from partita.public.stream_trees import SHARES, PeriodTree, shape_for
from partita.public.streams import WIDTH, CounterTerms, invalid_state
from partita.trusted.mechanisms.base import check_scale
from partita.trusted.noise.laws import IntegerArray
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.streams.base import (
    LONGEST,
    Fields,
    Row,
    Stepping,
    counts_of,
    integers,
    last_bounded,
    row,
)

FAMILY_LARGEST: Final = 2**31
"""A period counts less than this for each key, and there are no more periods than this."""

_MOST_KEYS: Final = 2**22
_NARROW: Final = 1 << 44  # errors below this are kept as int64
_FAR: Final = 1 << 10  # scales: noise is further out with a chance below 2^-1000
_WORD: Final = 8
_BETWEEN: Final = "\0"
_REST: Final = 2**16


@final
@check_arguments
class CounterFamily(Stepping):
    """Count under continual observation for many public keys: in every period one output for each.

    Guarantee: epsilon-DP, pure, for one event under one key, or one user of at most `contributions`
               events under any keys; for any stream, also one that is chosen while outputs are seen.
               Not pan-private.
    Error:     mean squared error 125 / epsilon^2 over 2^10 periods, 438 over 2^16, 805 over 2^20, for
               each key as if it were alone.
    Proof:     docs/proofs/counter_family.md (an event moves the counter of its key and no other)

    Keys are public, as is their number: a key that is there because someone came is no public key. A
    user with events under several keys is protected by `contributions`, which bounds all of them
    together. `keys` are names, or a number of keys 0, 1, ... Less than 2^31 is counted in a period.

    >>> family = CounterFamily(keys=["north", "south"], epsilon=1, horizon=1000)
    >>> outputs = family.update({"south": 3})
    >>> family.periods, outputs.shape
    (1, (2,))
    """

    name: ClassVar[str] = "family"

    def __init__(
        self,
        *,
        keys: int | Sequence[str],
        epsilon: object,
        horizon: int,
        change: int = 1,
        contributions: int = 1,
        shape: PeriodTree | None = None,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = CounterTerms.of(epsilon, change=change, contributions=contributions)
        self.keys = _public_keys(keys)
        self._places = {key: place for place, key in enumerate(self.keys)}
        self._tree = _tree_over(integer(horizon, "horizon", low=1, high=FAMILY_LARGEST), shape)
        check_scale(SHARES / terms.rate, terms.epsilon)
        _refuse_too_many(self.keys, _bytes_of_tree(self._tree, terms.rate) + 2 * WIDTH)
        session = noise.session()
        super().__init__(terms=terms, horizon=self._tree.horizon, secure=session.secure)
        self.granularity = Fraction(1, 1 << self._tree.fraction_bits)
        self._errors = TreeErrors(self._tree, terms.rate, len(self.keys), session)
        self._counts: NDArray[np.int64] = np.zeros(len(self.keys), dtype=np.int64)
        self._error: Any = self._errors.array([0] * len(self.keys))

    @property
    def value(self) -> Floats:
        """The last output for each key; 0 before the first."""
        bits = self._tree.fraction_bits
        whole, part = self._counts + (self._error >> bits), self._error & ((1 << bits) - 1)
        return np.asarray(whole + part / (1 << bits), dtype=np.float64)

    @property
    def units(self) -> tuple[int, ...]:
        """The last output for each key in units of the granularity, which is never rounded."""
        bits = self._tree.fraction_bits
        return tuple(
            (count << bits) + int(error)
            for count, error in zip(self._counts.tolist(), self._error, strict=True)
        )

    def update(self, xs: ArrayLike | Mapping[Any, int]) -> Floats:
        """Close one period: the output for each key. Pass a number for each key, or for some by name."""
        counts = self._named(xs) if isinstance(xs, Mapping) else self._numbers(xs, dimensions=1)
        self._make_room(1)
        with self._step():
            self._close(counts, 1)
        return self.value

    def update_many(self, xs: ArrayLike) -> Floats:
        """Close a period for each row of numbers, one for each key: all outputs. The law is as one by one."""
        rows = self._numbers(xs, dimensions=2)
        self._make_room(len(rows))
        outputs = np.empty(rows.shape)
        with self._step():
            for period, counts in enumerate(rows):
                self._close(counts, 1)
                outputs[period] = self.value
        return outputs

    def advance(self, periods: int) -> None:
        """Close periods in which nothing was counted; only the last of their outputs are published."""
        periods = integer(periods, "periods", low=0, high=FAMILY_LARGEST)
        self._make_room(periods)
        with self._step():
            self._close(np.zeros_like(self._counts), periods)

    def answer(self, key: int | str, beta: float = 0.05) -> Running:
        """The last output for a key with its error: for this period, and for all its periods at once."""
        check(key in self._places, "key", "must be one of the family", given=key, fix="use family.keys")
        chance, value = float(check_probability(beta)), float(self.value[self._places[key]])
        laws = FamilyErrors(self._tree, self.terms.rate)
        everywhere = laws.everywhere(self._periods, chance)
        return laws.noise(self._periods).around(value, chance, everywhere=everywhere)

    def bound(self, beta: object = "0.05", *, rows: int | None = None, periods: int | None = None) -> float:
        """With probability 1 - beta no output for any key is off by more: known before any data.

        Each key has an equal share of beta. It does not depend on how many `rows` there are.
        """
        last, chance = last_bounded(self.horizon, periods), float(check_probability(beta))
        return FamilyErrors(self._tree, self.terms.rate).everywhere(last, chance / len(self.keys))

    def variance(self) -> float:
        """The variance of each last output."""
        return FamilyErrors(self._tree, self.terms.rate).noise(self._periods).variance

    def _repr_html_(self) -> str:
        from partita.public.stream_plot import family_card

        return family_card(self)

    def _close(self, counts: NDArray[np.int64], periods: int) -> None:
        self._counts = self._counts + counts
        self._error = self._error + self._errors.skip(periods)
        self._periods += periods

    def _named(self, xs: Mapping[Any, int]) -> NDArray[np.int64]:
        """What was counted for each key, if it was counted for some."""
        fix = "drop what is not"
        check_data(self._places.keys() >= xs.keys(), "xs", "must be under keys of the family", fix=fix)
        counts = np.zeros(len(self.keys), dtype=np.int64)
        counts[[self._places[key] for key in xs]] = counts_of(list(xs.values()), limit=FAMILY_LARGEST)
        return counts

    def _numbers(self, xs: ArrayLike, *, dimensions: int) -> NDArray[np.int64]:
        """What was counted for all keys, in one period or in each of some."""
        numbers = counts_of(xs, dimensions=dimensions, limit=FAMILY_LARGEST)
        fix = "pass zeros too"
        check_data(numbers.shape[-1] == len(self.keys), "xs", "must have a number for each key", fix=fix)
        return numbers

    def _fields(self) -> Fields:
        names = _BETWEEN.join(key for key in self.keys if isinstance(key, str))
        return {
            "shape": self._tree.numbers,
            "names": np.frombuffer(names.encode(), dtype=np.uint8).astype(np.int64),
            "counts": self._counts,
            "error": row(self._error),
            **self._errors.fields(),
        }

    @classmethod
    def _fresh(cls, terms: CounterTerms, fields: dict[str, list[int]], noise: Noise) -> Self:
        shape = PeriodTree.of(fields["shape"])
        keys = bytes(fields["names"]).decode().split(_BETWEEN) if fields["names"] else len(fields["counts"])
        return cls(keys=keys, horizon=shape.horizon, shape=shape, noise=noise, **terms.keywords)

    def _restore(self, fields: dict[str, list[int]]) -> None:
        if not len(fields["counts"]) == len(fields["error"]) == len(self.keys):
            raise invalid_state("have a count for each key")
        self._counts = np.array(fields["counts"], dtype=np.int64)
        self._error = self._errors.array(fields["error"])
        self._errors.restore(fields, self._periods)


def _public_keys(keys: object) -> tuple[int, ...] | tuple[str, ...]:
    if isinstance(keys, int):
        return tuple(range(integer(keys, "keys", low=1, high=_MOST_KEYS)))
    names: tuple[str, ...] = tuple(keys) if isinstance(keys, Sequence) and not isinstance(keys, str) else ()
    if not 1 <= len(set(names)) == len(names) <= _MOST_KEYS or not all(_is_name(name) for name in names):
        raise InvalidParameter("keys", "must be distinct names or their number", given=keys, fix="list them")
    return names


def _tree_over(horizon: int, shape: PeriodTree | None) -> PeriodTree:
    if shape is not None and shape.horizon != horizon:
        fix = "leave it out"
        raise InvalidParameter("shape", f"must have {horizon} periods", given=shape.horizon, fix=fix)
    return shape or shape_for(horizon)


def _refuse_too_many(keys: tuple[int, ...] | tuple[str, ...], bytes_of_each: int) -> None:
    """A family that is begun can be stored: its state is not too long to be read again."""
    names = sum(len(key.encode()) + 1 for key in keys if isinstance(key, str))
    rule, fix = "must be few enough for a state of 2^28 bytes", "use several families"
    check(len(keys) * bytes_of_each + 8 * names <= LONGEST - _REST, "keys", rule, given=len(keys), fix=fix)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name != "" and _BETWEEN not in name


# ---- the errors of trees side by side ----


class TreeErrors:
    """The errors of trees of one shape, from their first period to their last.

    A row of siblings is kept for each level, with a column for each tree. What is open follows from the
    position alone.
    """

    def __init__(self, shape: PeriodTree, rate: Fraction, columns: int, noise: Noise) -> None:
        self.shape, self.rate, self.columns = shape, rate, columns
        self.position = 0
        self._noise = noise
        self._wide = _is_wide(shape, rate)
        self._rows: dict[int, IntegerArray] = {}

    def skip(self, periods: int) -> IntegerArray:
        """By how much the error of each column grows in the next periods together."""
        goal = self.position + periods
        total = self.array(np.zeros(self.columns, dtype=np.int64))
        while self.position < goal:
            level = self._level(goal)
            self._open(level)
            total = total + self._node(level)
            self.position += self.shape.widths[level]
        return total

    def fields(self) -> dict[str, Row]:
        """What is drawn, as rows of a state whose lengths follow from the shape."""
        blanks = {level: self._blank(level) for level in range(self.shape.levels)}
        return {f"row {level}": row(siblings) for level, siblings in (blanks | self._rows).items()}

    def restore(self, fields: dict[str, list[int]], position: int) -> None:
        """Go on with what was drawn before."""
        if not 0 <= position <= self.shape.horizon:
            raise invalid_state("lie within its horizon")
        self.position = position
        for level in range(self.shape.levels):
            siblings = self.array(fields[f"row {level}"])
            self._rows[level] = siblings.reshape(self.shape.siblings(level), self.columns)

    def _blank(self, level: int) -> IntegerArray:
        return self.array(np.zeros((self.shape.siblings(level), self.columns), dtype=np.int64))

    def _level(self, goal: int) -> int:
        """The highest level of which a node begins here and ends before the goal."""
        level = 0
        for higher, width in enumerate(self.shape.widths):
            if self.position % width == 0 and self.position + width <= goal:
                level = higher
        return level

    def _open(self, level: int) -> None:
        """Draw the rows that begin here, from the top down to a level."""
        for each in range(self.shape.levels - 1, level - 1, -1):
            if self.shape.opens(each, self.position):
                self._rows[each] = self._siblings(each)

    def _siblings(self, level: int) -> IntegerArray:
        """A row of siblings: their noise, moved by equal amounts to add up to the error of their parent."""
        scale, bits = self.shape.scale(level, self.rate), self.shape.fraction_bits
        drawn: Any = self._noise.add(self._blank(level), scale)
        own: IntegerArray = integers(drawn, wide=self._wide, below=_NARROW >> bits) << bits
        if level == self.shape.levels - 1:
            return own
        missing: Any = self._node(level + 1) - own.sum(axis=0)
        moved: IntegerArray = own + missing // self.shape.siblings(level)
        return moved

    def _node(self, level: int) -> Any:
        """The errors of the node of a level that begins or goes on here."""
        return self._rows[level][self.position // self.shape.widths[level] % self.shape.siblings(level)]

    def array(self, values: Any) -> IntegerArray:
        """Errors as an array that holds them exactly."""
        return integers(values, wide=self._wide)


def _is_wide(tree: PeriodTree, rate: Fraction) -> bool:
    """Whether errors are kept as Python ints: a public question."""
    widest = max(tree.scale(level, rate) for level in range(tree.levels))
    return widest * (1 << tree.fraction_bits) * _FAR > _NARROW


def _bytes_of_tree(tree: PeriodTree, rate: Fraction) -> int:
    """How many bytes of a state one tree needs: for a row of siblings of each level."""
    siblings = sum(map(tree.siblings, range(tree.levels)))
    return siblings * (WIDTH if _is_wide(tree, rate) else _WORD)
