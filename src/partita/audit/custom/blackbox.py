"""Black-box tests: a mechanism is only run, many times, on two neighbours.

One half of the outputs chooses the event that tells the neighbours apart best; the other half says how likely
that event is at least on one, and at most on the other [Chernoff]. If ln of their ratio exceeds epsilon, the
promise is broken, but for the stated error probability. Events are thresholds, single values, what is no
number, types and lengths, and the lowest bit that is set: the last finds floating-point noise [Mir12].
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, final

import numpy as np

from partita.audit.base.chances import least_chance, most_chance
from partita.audit.base.watching import numbers_in

ERROR: Final = 1e-9
"""A mechanism that keeps its promise is accused by one test with this probability at most."""

_MOST_NUMBERS: Final = 8
_QUANTILES: Final = np.linspace(0.02, 0.98, 13)


@final
@dataclass(frozen=True, kw_only=True)
class Sampled:
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


def sampled(
    run: Callable[[Any], object],
    one: object,
    other: object,
    *,
    epsilon: float,
    draws: int,
    mechanism: str,
    about: str,
) -> Sampled:
    """Run a mechanism so many times on each of two neighbours, and find what tells them apart."""
    left, right = (_table([run(data) for _ in range(draws)]) for data in (one, other))
    event, ways = _best(left.half(0), right.half(0))
    likelier, less = (left, right) if ways else (right, left)
    loss = _loss(event, likelier.half(1), less.half(1))
    return Sampled(
        mechanism=mechanism, about=about, event=event.name, draws=2 * draws, epsilon=epsilon, loss=loss
    )


def _table(outputs: Sequence[object]) -> _Table:
    rows = [[float(number) for number in numbers_in(_plain(each))][:_MOST_NUMBERS] for each in outputs]
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
