"""Mechanisms that take a table once, to be attacked.

Rows are raw values, as a file would hold them; a domain that was chosen beforehand gives each its cell.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

import partita as pt
from partita.audit.base.watching import WatchingNoise, numbers_in, off_the_grid
from partita.audit.laws.coupling import coupled_loss
from partita.audit.laws.worlds import published
from partita.audit.subjects.subject import Subject, wrong
from partita.domain.axis import Axis
from partita.domain.numeric.real import Real
from partita.testing.doubles.doubles import ZeroNoise
from partita.trusted.mechanisms.catalogue import mechanisms

_VALUES: Final = Real(0, 2, step="0.5")
_AXIS: Final = Axis.of(_VALUES)
_ROWS: Final[tuple[object, ...]] = (0.0, 0.5, 0.5, 1.5, None)


Data: TypeAlias = Callable[[list[int], list[int], int], Any]
"""Positions, how often each comes, and how many rows a person has: what a mechanism takes."""


def positions(values: Sequence[object]) -> list[int]:
    """Where values lie on the axis; every value has a place."""
    special = Axis.specials(_VALUES)
    encoded = _VALUES.encode(list(values)).tolist()
    return [special[cell] if isinstance(cell, str) else _AXIS.position(cell) for cell in encoded]


class ReleaseSubject(Subject):
    """A mechanism that takes a table once."""

    family = "release"

    def __init__(self, name: str, made: Callable[..., Any], data: Data) -> None:
        super().__init__(name)
        self._made, self._data = made, data

    def make(self, **changes: Any) -> Any:
        return self._made(**{"epsilon": 1, **changes})

    def run(self, mechanism: Any, rows: Sequence[object], noise: Any) -> Any:
        """Everything that is published about these rows."""
        held = self._data(positions(rows), [1] * len(rows), mechanism.contributions)
        return mechanism.release(held, noise=noise)

    def loss(self, mechanism: Any, one: Sequence[object], other: Sequence[object]) -> Fraction:
        """What two tables lose at most, on the outcomes of a tape."""
        return coupled_loss(lambda rows, noise: _shown(self.run(mechanism, rows, noise)), one, other, seed=0)

    def hides(self, value: object) -> str | None:
        return wrong(lambda: self._beyond(self.make(), [*_ROWS, value], Fraction(1)))

    def _beyond(self, mechanism: Any, rows: list[object], epsilon: Fraction) -> str | None:
        loss = self.loss(mechanism, list(_ROWS), rows)
        return None if loss <= epsilon else f"one row loses {float(loss):.6g}, more than {float(epsilon):.6g}"

    def ordered(self, rows: Sequence[object]) -> str | None:
        """Whether the order of rows is nowhere to be seen."""
        mechanism = self.make()

        def apart() -> str | None:
            loss = self.loss(mechanism, list(rows), list(reversed(rows)))
            return None if loss == 0 else "other sums in another order"

        return wrong(apart)

    def weighs(self, rows: int) -> str | None:
        """Whether so many rows in one place are counted without overflow, and one more is hidden."""
        mechanism = self.make()

        def released(count: int, noise: Any) -> object:
            return _shown(mechanism.release(self._crowd(mechanism, count), noise=noise))

        def loss() -> str | None:
            found = coupled_loss(released, rows, rows + 1, seed=0)
            return None if found <= 1 else f"one row more loses {float(found):.6g}"

        return wrong(loss)

    def _crowd(self, mechanism: Any, count: int) -> Any:
        return self._data(positions([0.5]), [count], mechanism.contributions)

    def numbers(self) -> str | None:
        mechanism, noise = self.make(), WatchingNoise()
        release = self.run(mechanism, _ROWS, noise)
        return noise.problem or off_the_grid(published(release), Fraction(1))

    def precise(self) -> str | None:
        """Whether numbers next to 2^53 keep their last unit, as floats do not."""
        mechanism = self.make()
        one, other = (
            published(mechanism.release(self._crowd(mechanism, 2**53 + more), noise=ZeroNoise()))
            for more in (0, 1)
        )
        large = max((abs(number) for number in numbers_in(one)), default=0) >= 2**53
        return "numbers beyond 2^53 lose their last unit" if large and one == other else None

    def sizes(self) -> str | None:
        mechanism = self.make()

        def kinds(count: int, noise: Any) -> object:
            return _kinds(mechanism.release(self._crowd(mechanism, count), noise=noise))

        return wrong(lambda: None if coupled_loss(kinds, 1, 2, seed=1) <= 1 else "types or sizes differ")

    def takes(self, value: object) -> object:
        return self.make().release(value, noise=ZeroNoise())

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        mechanism = self.make(epsilon=epsilon)
        if mechanism.guarantee.epsilon != exact:
            return f"it promises {mechanism.guarantee.epsilon}, not {exact}"
        return wrong(lambda: self._beyond(mechanism, [*_ROWS, 1.0], exact))


def _shown(release: Any) -> object:
    """What is published, with the type and length of every series."""
    return published(release), _kinds(release)


def _kinds(release: Any) -> object:
    if not hasattr(release, "parts"):
        return len(numbers_in(published(release)))
    return [(name, str(each.dtype), each.shape) for name, each in release.parts().series.items()]


def _histogram(places: list[int], counts: list[int], contributions: int) -> pt.Histogram:
    return pt.Histogram.from_counts(*_merged(places, counts), size=_AXIS.width, contributions=contributions)


def _merged(places: list[int], counts: list[int]) -> tuple[list[int], list[int]]:
    held: dict[int, int] = {}
    for place, count in zip(places, counts, strict=True):
        held[place] = held.get(place, 0) + count
    return sorted(held), [held[place] for place in sorted(held)]


def _points(axes: Sequence[Axis], places: list[int], counts: list[int], contributions: int) -> pt.Points:
    rows = [[0] * axes.index(_AXIS) + [place] + [0] * (len(axes) - 1 - axes.index(_AXIS)) for place in places]
    return pt.Points.from_rows(
        np.array(rows, np.uint64).reshape(-1, len(axes)),
        axes=axes,
        counts=counts,
        contributions=contributions,
    )


_UNIVERSE: Final = pt.Universe(["v"], [_VALUES])
_PLANE: Final = (_AXIS, Axis(size=2))
_QUERIES: Final = {
    "LinearWorkload": pt.prefixes("v"),
    "ProjectedLaplace": pt.prefixes("v"),
    "MultiplicativeWeights": pt.prefixes("v"),
}


def release_subject(name: str) -> ReleaseSubject:
    """The mechanism over a universe of nine positions of one column, special ones included."""
    kind: Any = mechanisms()[name]
    if name == "LinearQueries":
        rows = [[1] * _AXIS.width, [place % 3 for place in range(_AXIS.width)]]
        return ReleaseSubject(name, partial(kind, queries=rows), _histogram)
    taken = set(_parameters(kind))
    if "queries" in taken:
        asked = _QUERIES.get(name, pt.value("v"))
        # One round is enough for those that work in rounds.
        rounds = {"rounds": 1} if "rounds" in taken else {}
        made = partial(kind, queries=asked, universe=_UNIVERSE, **rounds)
        return ReleaseSubject(name, made, partial(_points, _UNIVERSE.axes))
    if "value" in taken:
        keys: dict[str, Any] = {"keys": []} if "keys" in taken else {}
        return ReleaseSubject(name, partial(kind, value=_VALUES, **keys), partial(_points, (_AXIS,)))
    if "axes" in taken:
        return ReleaseSubject(name, partial(kind, axes=_PLANE), partial(_points, _PLANE))
    return ReleaseSubject(name, partial(kind, size=_AXIS.width), _histogram)


def _parameters(kind: Any) -> Sequence[str]:
    return list(inspect.signature(kind).parameters)
