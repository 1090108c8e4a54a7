"""Black-box tests: a mechanism is only run, many times, on two neighbours.

One half of the outputs chooses the event that tells the neighbours apart best; the other half says how likely
that event is at least on one, and at most on the other [Chernoff]. If ln of their ratio exceeds epsilon, the
promise is broken, but for the stated error probability. Events are thresholds, single values, what is no
number, types and lengths, and the lowest bit that is set: the last finds floating-point noise [Mir12].
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from partita.audit.base import (
    TOLERANCE,
    Case,
    Pair,
    WatchingNoise,
    find_off_grid,
    least_chance,
    list_numbers,
    most_chance,
)
from partita.audit.laws import TellingNoise, common_unit, coupled_loss, law_loss, published
from partita.audit.subjects import Subject, wrong
from partita.errors import check
from partita.testing.doubles import ZeroNoise
from partita.testing.laws import CouplingBroken
from partita.trusted.noise.system import SYSTEM

ERROR: Final = 1e-9
"""A mechanism that keeps its promise is accused by one test with this probability at most."""

_MOST_NUMBERS: Final = 8
_QUANTILES: Final = np.linspace(0.02, 0.98, 13)


@final
@dataclass(frozen=True, kw_only=True)
class SampledLoss:
    """What the outputs on two neighbours say: the loss is at least `loss`, by the event named."""

    mechanism: str
    about: str
    event: str
    draws: int
    epsilon: float
    loss: float

    @property
    def violated(self) -> bool:
        """Whether more than epsilon is lost, but for the error probability."""
        return self.loss > self.epsilon

    @property
    def said(self) -> str:
        """In words."""
        return (
            f"{self.about}: {self.draws:,} outputs show a loss of at least {self.loss:.4g} where epsilon is "
            f'{self.epsilon:.4g}, by the event "{self.event}"'
        )


class _Event(NamedTuple):
    name: str
    happened: Callable[[Any], Any]


class _Table(NamedTuple):
    """Outputs as rows: the first numbers of each, and a text for what kind of thing it is."""

    numbers: Any
    kinds: Any

    def half(self, which: int) -> _Table:
        return _Table(self.numbers[which::2], self.kinds[which::2])


def compare_samples(
    run: Callable[[Any], object],
    one: object,
    other: object,
    *,
    epsilon: float,
    draws: int,
    mechanism: str,
    about: str,
) -> SampledLoss:
    """Run a mechanism so many times on each of two neighbours, and find what tells them apart."""
    left, right = (_table([run(data) for _ in range(draws)]) for data in (one, other))
    event, ways = _best(left.half(0), right.half(0))
    likelier, less = (left, right) if ways else (right, left)
    loss = _loss(event, likelier.half(1), less.half(1))
    return SampledLoss(
        mechanism=mechanism, about=about, event=event.name, draws=2 * draws, epsilon=epsilon, loss=loss
    )


def _table(outputs: Sequence[object]) -> _Table:
    rows = [[float(number) for number in list_numbers(_plain(each))][:_MOST_NUMBERS] for each in outputs]
    width = max((len(row) for row in rows), default=0)
    numbers = np.array([row + [math.nan] * (width - len(row)) for row in rows], dtype=np.float64)
    kinds = np.array(
        [f"{type(each).__name__} of {len(row)}" for each, row in zip(outputs, rows, strict=True)]
    )
    return _Table(numbers.reshape(len(rows), width), kinds)


def _plain(output: Any) -> Any:
    return output.tolist() if hasattr(output, "tolist") else output


def _best(left: _Table, right: _Table) -> tuple[_Event, bool]:
    """The event with the largest loss, and whether it is likelier on the left."""
    candidates = [
        (_loss(event, *tables), event, ways)
        for event in _events(left, right)
        for tables, ways in (((left, right), True), ((right, left), False))
    ]
    _, event, ways = max(candidates, key=lambda each: each[0])
    return event, ways


def _loss(event: _Event, likelier: _Table, other: _Table) -> float:
    """ln of how much likelier the event is, at least; below zero where nothing follows."""
    hits = [int(np.sum(event.happened(table))) for table in (likelier, other)]
    least = least_chance(hits[0], len(likelier.kinds), ERROR / 2)
    return math.log(least / most_chance(hits[1], len(other.kinds), ERROR / 2)) if least > 0 else -math.inf


def _events(left: _Table, right: _Table) -> Iterator[_Event]:
    kinds = Counter(np.concatenate([left.kinds, right.kinds]).tolist()).most_common(3)
    yield from (_Event(f"is {kind} numbers", partial(_is_kind, kind)) for kind, _ in kinds)
    for place in range(min(left.numbers.shape[1], right.numbers.shape[1])):
        both = np.concatenate([left.numbers[:, place], right.numbers[:, place]])
        yield _Event(f"number {place} is no number", _on(place, np.isnan))
        yield _Event(f"number {place} is infinite", _on(place, np.isinf))
        finite = both[np.isfinite(both)]
        if finite.size:
            yield from _thresholds(place, finite)
            yield from _low_bits(place, finite)


def _is_kind(kind: str, table: _Table) -> Any:
    return table.kinds == kind


def _on(place: int, happened: Callable[[Any], Any]) -> Callable[[_Table], Any]:
    return lambda table: happened(table.numbers[:, place])


def _thresholds(place: int, finite: Any) -> Iterator[_Event]:
    for cut in np.unique(np.quantile(finite, _QUANTILES)).tolist():
        yield _Event(f"number {place} > {cut:.6g}", _on(place, partial(np.less, cut)))
        yield _Event(f"number {place} < {cut:.6g}", _on(place, partial(np.greater, cut)))
    for value, count in Counter(finite.tolist()).most_common(5):
        if count > 1:
            yield _Event(f"number {place} = {value:.6g}", _on(place, partial(np.equal, value)))


def _low_bits(place: int, finite: Any) -> Iterator[_Event]:
    """The number is a multiple of 2^t, and small: floats that were added lose bits which others keep."""
    lowest = lowest_bit(finite)
    for bit in np.unique(np.quantile(lowest, _QUANTILES).astype(np.int64)).tolist():
        for size in (-6, -5, -4, -3, -2, 0, 60):
            name = f"number {place} is a multiple of 2^{bit} below 2^{size}"
            yield _Event(name, _on(place, partial(_multiple, bit, size)))


def _multiple(bit: int, size: int, x: Any) -> Any:
    return (lowest_bit(x) >= bit) & (np.abs(x) < 2.0**size) & (x != 0)


def lowest_bit(x: Any) -> Any:
    """The exponent of the lowest bit that is set; of zero and what is not finite, a large one.

    >>> lowest_bit(np.array([6.0, 0.75])).tolist()
    [1, -2]
    """
    usual = np.isfinite(x) & (x != 0)
    mantissa, exponent = np.frexp(np.where(usual, x, 1.0))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    return np.where(
        usual, exponent - 53 + np.log2((whole & -whole).astype(np.float64)).astype(np.int64), 2000
    )


# A mechanism of somebody else's, behind the same interface as ours.
#     mine.release(data, *, noise)      an object like ours, or
#     mine(data, noise)                 a function that draws through our noise, or
#     mine(data)                        a function that draws as it likes
# The first two are enumerated: run on pairs of neighbours with noise that is recorded and replayed. All are
# run many times, and attacked.
_TAPES: Final = 3
_MOST_OUTPUTS: Final = 4
_STRANGE_DRAWS: Final = 200
_FLOATS: Final = "outputs carry bits below 2^-40: noise of floats, whose last bits tell neighbours apart"
_DIGITS: Final = 10**12


@final
@dataclass(frozen=True, kw_only=True)
class UserMechanism:
    """A mechanism that was handed in: how to run it, and whether it draws through our noise."""

    name: str
    epsilon: Fraction
    run: Callable[[Any, Any], Any]
    transparent: bool

    @staticmethod
    def of(mine: Any, *, epsilon: Fraction, data: Iterable[object], name: str | None = None) -> UserMechanism:
        """What was handed in, tried once on each of some data sets, one of which it must take."""
        run = _runner(mine)
        watched = WatchingNoise()
        errors = [_error(run, each, watched) for each in data]
        rule, fix = (
            "must run on the neighbours that it is audited on",
            "run it on them by itself to see that error",
        )
        check(None in errors, "mechanism", rule, given=errors[0], fix=fix)
        called = str(name or getattr(mine, "__name__", type(mine).__name__))
        return UserMechanism(
            name=called, epsilon=epsilon, run=run, transparent=bool(watched.scales) or watched.chose
        )

    def sample(self, data: object) -> object:
        """One output with noise that protects; an error is an output too, and its text is not kept."""
        try:
            return self.run(data, SYSTEM)
        except Exception as error:
            return RaisedError((type(error).__name__,))

    def case(self, pairs: Sequence[Pair]) -> Case:
        """All pairs whose loss can be found, by coupling, or by law where that breaks."""
        losses = [loss for one, other in pairs if (loss := self.loss(one, other)) is not None]
        about, pairs = "the pairs that were given", [(loss, None) for loss in losses]
        return Case(self.name, about, "coupling or law", self.epsilon, lambda: pairs, lambda loss, _: loss)

    def loss(self, one: object, other: object) -> Fraction | float | None:
        """What a pair loses: by coupling, or by enumerated laws; None where neither can be had."""
        try:
            return max(coupled_loss(self.run, one, other, seed=seed) for seed in range(_TAPES))
        except CouplingBroken:
            with suppress(Exception):
                return self._by_law(one, other)
        except Exception:
            return None
        return None

    def _by_law(self, one: object, other: object) -> float | None:
        """None where too many numbers are drawn; an error where noise is used that has no branches."""
        sizing = _SizingNoise()
        for data in (one, other):
            self.run(data, sizing)
        if len(sizing.secrets) > 2 * _MOST_OUTPUTS:
            return None
        unit = common_unit(sizing.scales) if sizing.scales else Fraction(1)
        window = range(min(sizing.secrets, default=0), max(sizing.secrets, default=0) + 1)
        noise = TellingNoise(Fraction(math.exp(-unit)).limit_denominator(_DIGITS), unit=unit, window=window)
        lost = law_loss(lambda held, noise: self.run(held[0], noise), noise)
        ratio = lost(_ByIdentity(one), _ByIdentity(other)).ratio
        return math.inf if ratio is None else math.log(ratio)

    def sampled(self, one: object, other: object, draws: int, about: str) -> SampledLoss:
        """What many outputs on both say."""
        bound, run = float(self.epsilon), self.sample
        return compare_samples(run, one, other, epsilon=bound, draws=draws, mechanism=self.name, about=about)


class RaisedError(tuple[str]):
    """The type of an error that a mechanism raised in the place of an output."""

    __slots__ = ()


def _error(run: Callable[[Any, Any], Any], data: object, noise: Any) -> str | None:
    """Run it once: the type of what it raises, if it does; the text may show rows."""
    try:
        run(data, noise)
    except Exception as error:
        return type(error).__name__
    return None


class _ByIdentity(tuple[Any]):
    """Some data that is known by where it is: it may not be hashable."""

    __slots__ = ()

    def __new__(cls, data: object) -> _ByIdentity:
        return super().__new__(cls, (data,))

    def __hash__(self) -> int:
        return id(self[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self[0] is other[0]


@dataclass
class _SizingNoise(ZeroNoise):
    """No noise; remembers what it was asked for."""

    scales: list[Fraction] = field(default_factory=list)
    secrets: list[int] = field(default_factory=list)

    def session(self) -> _SizingNoise:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        self.scales.append(Fraction(scale))
        self.secrets += [int(each) for each in np.ravel(np.asarray(x, dtype=object))]
        return super().add(x, scale, parts=parts)


def _runner(mine: Any) -> Callable[[Any, Any], Any]:
    """Data and noise in, a plain output out."""
    if hasattr(mine, "release"):
        return lambda data, noise: _plain_output(mine.release(data, noise=noise))
    rule = "must have release(data, *, noise) or be a function"
    check(callable(mine), "mechanism", rule, given=type(mine).__name__, fix="wrap it")
    parameters = inspect.signature(mine).parameters.values()
    takes = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
    if any(each.name == "noise" and each.kind is each.KEYWORD_ONLY for each in takes):
        return lambda data, noise: _plain_output(mine(data, noise=noise))
    if len(takes) >= 2:
        return lambda data, noise: _plain_output(mine(data, noise))
    return lambda data, noise: _plain_output(mine(data))


def _plain_output(output: Any) -> Any:
    """An output that can be compared and hashed."""
    if hasattr(output, "parts"):
        return published(output)
    if hasattr(output, "tolist"):
        return _plain_output(output.tolist())
    return tuple(_plain_output(each) for each in output) if isinstance(output, list | tuple) else output


class UserSubject(Subject):
    """A mechanism that was handed in, to be attacked: rows are values in a list."""

    family = "own"

    def __init__(self, own: UserMechanism, pair: Pair, factory: Callable[[Any], Any] | None = None) -> None:
        super().__init__(own.name)
        self._own, self._pair, self._factory = own, pair, factory

    def spares(self, attack: str) -> str | None:
        needs_factory = "epsilon" in attack or attack == "scale underflow"
        if needs_factory and self._factory is None:
            return "it was given ready made; name a factory of epsilon to try it"
        if attack in ("overflow of counts", "precision", "float and bool contributions"):
            return "a mechanism that was handed in has no such parameter"
        if attack == "order of rows" and not self._own.transparent:
            return "it does not draw through our noise, which would have to be the same twice"
        return None if self._rows is not None else "its data are no list of rows"

    @property
    def _rows(self) -> list[object] | None:
        held = self._pair[0]
        return list(held) if isinstance(held, list | tuple | np.ndarray) else None

    def fitting(self, values: Sequence[object]) -> list[object]:
        """Text is a value where rows hold text."""
        text = any(isinstance(row, str) for row in self._rows or [])
        return [value for value in values if text or not isinstance(value, str)]

    def make(self, **changes: Any) -> Any:
        assert self._factory is not None
        return self._factory(changes["epsilon"])

    def hides(self, value: object) -> str | None:
        def seen() -> str | None:
            self.takes(value)
            return self._told_apart(self._pair[0], self._like([*(self._rows or []), value]))

        return wrong(seen)

    def _like(self, rows: list[object]) -> Any:
        kind = type(self._pair[0])
        return np.array(rows) if kind is np.ndarray else kind(rows)

    def _told_apart(self, one: object, other: object) -> str | None:
        loss = self._own.loss(one, other) if self._own.transparent else None
        if loss is not None:
            beyond = float(loss) > float(self._own.epsilon) + TOLERANCE
            return f"the row loses {float(loss):.4g}" if beyond else None
        draws = max(_STRANGE_DRAWS, int(60 * math.exp(min(8.0, float(self._own.epsilon)))))
        found = self._own.sampled(one, other, draws, "a strange row")
        return f'"{found.event}" gives the row away' if found.violated else None

    def numbers(self) -> str | None:
        noise = WatchingNoise()
        output = self._own.run(self._pair[0], noise)
        if noise.problem or not self._own.transparent:
            return noise.problem or self._floats(output)
        return find_off_grid(output, Fraction(1, 1 << 20))

    def _floats(self, output: object) -> str | None:
        """Whether noise that is not ours leaves bits so far below it that only floats can have made them."""
        many = [self._own.sample(self._pair[0]) for _ in range(20)]
        fine = any(find_off_grid(each, Fraction(1, 1 << 40)) for each in (output, *many))
        return _FLOATS if fine else None

    def sizes(self) -> str | None:
        kinds = {type(self._own.sample(data)).__name__ for data in self._pair for _ in range(5)}
        return "types differ" if len(kinds) > 1 else None

    def ordered(self, rows: Sequence[object]) -> str | None:
        """Whether the order of rows is nowhere to be seen; rows that it does not take say nothing."""
        given = [row for row in rows if row is not None]
        with suppress(Exception):
            loss = coupled_loss(self._own.run, self._like(given), self._like(given[::-1]), seed=0)
            return None if loss == 0 else "other sums in another order"
        return None

    def takes(self, value: object) -> object:
        return self._own.run(self._like([*(self._rows or []), value]), SYSTEM)

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        """Whether the mechanism made anew loses no more than that; a factory may refuse."""
        with suppress(Exception):
            made = UserMechanism.of(
                self.make(epsilon=epsilon), epsilon=exact, data=self._pair, name=self.name
            )
            loss = made.loss(*self._pair) if made.transparent else None
            return "it loses more than it promises" if loss is not None and loss > exact else None
        return None

    def refuses(self, **changes: object) -> str | None:
        """Whether the factory raises, as anything but a mechanism without noise would do."""
        try:
            _runner(self.make(**changes))(self._pair[0], SYSTEM)
        except Exception:
            return None
        return f"epsilon {changes['epsilon']!r} was taken"
