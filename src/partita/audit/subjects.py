"""Every public mechanism, ready to be attacked."""

from __future__ import annotations

import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

import partita as pt
from partita import local
from partita.audit.base import Family, WatchingNoise, find_off_grid, list_numbers, public_mechanisms, texts
from partita.audit.cases_people import (
    IntruderView,
    SketchKind,
    device_law,
    reports_lose,
    sketch_kinds,
    sketch_loss,
)
from partita.audit.laws import coupled_cost, promise_of, published
from partita.domain.axis import Axis
from partita.domain.numeric import Real
from partita.errors import PartitaError
from partita.testing.doubles import ZeroNoise
from partita.testing.laws import CouplingBroken
from partita.trusted.mechanisms.catalogue import mechanisms

# What attacks are run against: one small interface for every mechanism.
# A method returns what is wrong, in a few words, or None.
CANARY: Final = 987_654_321
"""A number that no message may show."""


class Subject(ABC):
    """One mechanism: how it is made, and what may be tried on it."""

    family: ClassVar[Family]

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def make(self, **changes: Any) -> Any:
        """The mechanism at epsilon 1, or with other parameters."""

    @abstractmethod
    def hides(self, value: object) -> str | None:
        """Whether one more row with this value is hidden as well as any other."""

    @abstractmethod
    def numbers(self) -> str | None:
        """Whether secrets go into the noise as integers, and come out on a public grid."""

    @abstractmethod
    def sizes(self) -> str | None:
        """Whether the types and sizes of what is published are the same for all data."""

    @abstractmethod
    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        """Whether a mechanism made with this epsilon promises and keeps exactly that number."""

    def spares(self, attack: str) -> str | None:
        """Why an attack makes no sense on this very mechanism; None if it does."""
        return None

    def fitting(self, values: Sequence[object]) -> Sequence[object]:
        """Those of some values that a row may hold."""
        return values

    @abstractmethod
    def takes(self, value: object) -> object:
        """Hand over a value as it is, malformed or not."""

    def silent(self, value: object) -> str | None:
        """Whether no error or warning about this value shows the canary in it."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                self.takes(value)
            except Exception as error:
                said += [error]  # type: ignore[list-item]
        shown = any(str(CANARY) in text for each in said for text in _texts(each))
        return "a message shows a value" if shown else None

    def refuses(self, **changes: object) -> str | None:
        """Whether a parameter that makes no sense is refused by an error of ours."""
        ((name, value),) = changes.items()
        try:
            with warnings.catch_warnings(action="ignore"):
                self.make(**changes)
        except PartitaError:
            return None
        except Exception as error:
            return f"{name} {value!r} raised {type(error).__name__}"
        return f"{name} {value!r} was taken"


def _texts(said: object) -> Iterator[str]:
    """All that can be read of an error or a warning, and of the errors that are shown with it."""
    while said is not None:
        yield f"{said} {said!r} {getattr(said, 'args', '')} {getattr(said, 'message', '')}"
        cause, context = getattr(said, "__cause__", None), getattr(said, "__context__", None)
        said = cause if getattr(said, "__suppress_context__", True) else context


def wrong(call: Callable[[], str | None]) -> str | None:
    """What a call says is wrong; an error is wrong too, and its text is not shown."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return call()
    except CouplingBroken:
        return "the outputs differ by more than noise explains"
    except Exception as error:
        return f"{type(error).__name__} was raised: a refusal tells that the row is there"


# Counters, sketches and randomizers, to be attacked.
class CounterSubject(Subject):
    """A counter that publishes in every period."""

    family = "counter"
    _own: ClassVar[dict[str, dict[str, Any]]] = {
        "SlidingCounter": {"window": 2},
        "CounterFamily": {"keys": 1, "horizon": 4},
    }

    def make(self, **changes: Any) -> Any:
        own = self._own.get(self.name, {"horizon": 4})
        return getattr(pt, self.name)(**{"epsilon": 1, **own, **changes})

    def _update(self, counter: Any, value: object) -> Any:
        return counter.update([value] if self.name == "CounterFamily" else value)

    def hides(self, value: object) -> str | None:
        """Either the value is the integer that it equals, or it is refused and the period stays open."""
        counter = self.make(noise=ZeroNoise())
        try:
            self._update(counter, value)
        except PartitaError:
            return "a refused period was closed" if counter.periods else None
        except Exception as error:
            return f"{type(error).__name__} was raised, not an error of ours"
        return None if value == int(value) else "a number that is no integer was counted"  # type: ignore[call-overload]

    def precise(self) -> str | None:
        """Whether numbers next to 2^53 keep their last unit, as floats do not."""
        found = []
        for more in (0, 1):
            counter = self.make(noise=ZeroNoise())
            try:
                self._update(counter, 2**53 + more)
            except PartitaError:
                return None
            found.append(Fraction(getattr(counter, "exact", more)))
        lost = max(found) >= 2**53 and found[1] - found[0] != 1
        return "numbers beyond 2^53 lose their last unit" if lost else None

    def sizes(self) -> str | None:
        seen = set()
        for value in (0, 1):
            counter = self.make(noise=ZeroNoise())
            output = self._update(counter, value)
            seen.add((type(output), np.shape(output), len(counter.state())))
        return "types or sizes differ" if len(seen) > 1 else None

    def takes(self, value: object) -> object:
        return self._update(self.make(noise=ZeroNoise()), value)

    def weighs(self, rows: int) -> str | None:
        """Whether periods of so many events each are counted without overflow, or refused."""
        counter = self.make(noise=ZeroNoise())
        try:
            found = [float(np.max(self._update(counter, rows))) for _ in range(3)]
        except PartitaError:
            return None
        return None if 0 <= min(found) <= max(found) <= 3.001 * rows else "the count wrapped around"

    def numbers(self) -> str | None:
        noise = WatchingNoise()
        counter = self.make(noise=noise)
        outputs = [Fraction(float(np.max(self._update(counter, 1)))) for _ in range(3)]
        return noise.problem or find_off_grid(outputs, self._granularity(counter))

    def _granularity(self, counter: Any) -> Fraction:
        return Fraction(getattr(counter, "granularity", Fraction(1, 1 << 30)))

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        found = self.make(epsilon=epsilon).terms.epsilon
        return None if found == exact else f"it promises {found}, not {exact}"


class SketchSubject(Subject):
    """A pan-private sketch."""

    family = "sketch"

    def __init__(self, kind: SketchKind) -> None:
        super().__init__(kind.name)
        self._kind = kind

    def make(self, **changes: Any) -> Any:
        return self._kind.make(changes.pop("noise", ZeroNoise()), **changes)

    def hides(self, value: object) -> str | None:
        return wrong(lambda: self._beyond(value))

    def _beyond(self, value: object) -> str | None:
        loss = sketch_loss(self._kind)(IntruderView((value,), 1), IntruderView((None,), 1))
        return None if loss <= 1 + 1e-9 else f"a strange user loses {loss:.6g}"

    def sizes(self) -> str | None:
        seen = set()
        for user in (None, 0):
            sketch = self.make()
            sketch.update_many([] if user is None else [user])
            seen.add(tuple((str(table.dtype), table.shape) for table in sketch._tables()))
        return "types or sizes differ" if len(seen) > 1 else None

    def takes(self, value: object) -> object:
        return self.make().update(value)

    def numbers(self) -> str | None:
        noise = WatchingNoise()
        sketch = self.make(noise=noise)
        sketch.update(0)
        state = [int(entry) for table in sketch._tables() for entry in table.ravel().tolist()]
        sketch.release(self._kind.statistic)
        return noise.problem or find_off_grid(state, Fraction(1))

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        found = self.make(epsilon=epsilon).promise.epsilon
        return None if found == exact else f"it promises {found}, not {exact}"


class RandomizerSubject(Subject):
    """A randomizer of single reports."""

    family = "randomizer"

    def make(self, **changes: Any) -> Any:
        options = {"epsilon": Fraction(1), "size": 3, **changes}
        if self.name == "Mixture":
            return local.Range(options["size"], epsilon=options["epsilon"]).randomizer
        if self.name == "ListedLaw":
            more, less = Fraction(4, 7), Fraction(3, 7)
            return local.ListedLaw(table=((more, less), (less, more)), epsilon=options["epsilon"])
        return getattr(local, self.name)(**options)

    def hides(self, value: object) -> str | None:
        return wrong(lambda: self._beyond(self.make(), value))

    def _beyond(self, randomizer: Any, value: object) -> str | None:
        strange = device_law(randomizer, value)
        laws = (device_law(randomizer, x) for x in range(randomizer.size))
        losses = [reports_lose(strange, law, randomizer.epsilon) for law in laws]
        return "a strange value shows in the report" if math.inf in losses else None

    def takes(self, value: object) -> object:
        return self.make().randomize_many(value)

    def numbers(self) -> str | None:
        randomizer = self.make()
        return find_off_grid([randomizer.randomize(x) for x in range(randomizer.size)], Fraction(1))

    def sizes(self) -> str | None:
        randomizer = self.make()
        columns = [randomizer.randomize_many([x]) for x in range(randomizer.size)]
        kinds = {(str(column.dtype), column.shape) for column in columns}
        return "types or sizes differ" if len(kinds) > 1 else None

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        randomizer = self.make(epsilon=epsilon)
        if randomizer.epsilon != exact:
            return f"it promises {randomizer.epsilon}, not {exact}"
        return wrong(lambda: self._beyond(randomizer, 1))


# Mechanisms that take a table once, to be attacked.
# Rows are raw values, as a file would hold them; a domain that was chosen beforehand gives each its cell.
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
        """What two tables lose at most, on the outcomes of a tape; of rho where the mechanism spends that."""
        return coupled_cost(
            mechanism,
            lambda rows, noise: _describe_release(self.run(mechanism, rows, noise)),
            one,
            other,
            seed=0,
        )

    def hides(self, value: object) -> str | None:
        return wrong(lambda: self._beyond(self.make(), [*_ROWS, value]))

    def _beyond(self, mechanism: Any, rows: list[object]) -> str | None:
        loss, most = self.loss(mechanism, list(_ROWS), rows), promise_of(mechanism)
        return None if loss <= most else f"one row loses {float(loss):.6g}, more than {float(most):.6g}"

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
            return _describe_release(mechanism.release(self._crowd(mechanism, count), noise=noise))

        def loss() -> str | None:
            found = coupled_cost(mechanism, released, rows, rows + 1, seed=0)
            return None if found <= promise_of(mechanism) else f"one row more loses {float(found):.6g}"

        return wrong(loss)

    def _crowd(self, mechanism: Any, count: int) -> Any:
        return self._data(positions([0.5]), [count], mechanism.contributions)

    def numbers(self) -> str | None:
        mechanism, noise = self.make(), WatchingNoise()
        release = self.run(mechanism, _ROWS, noise)
        return noise.problem or find_off_grid(published(release), Fraction(1))

    def precise(self) -> str | None:
        """Whether numbers next to 2^53 keep their last unit, as floats do not."""
        mechanism = self.make()
        one, other = (
            published(mechanism.release(self._crowd(mechanism, 2**53 + more), noise=ZeroNoise()))
            for more in (0, 1)
        )
        large = max((abs(number) for number in list_numbers(one)), default=0) >= 2**53
        return "numbers beyond 2^53 lose their last unit" if large and one == other else None

    def sizes(self) -> str | None:
        mechanism = self.make()

        def kinds(count: int, noise: Any) -> object:
            return _kinds(mechanism.release(self._crowd(mechanism, count), noise=noise))

        def apart() -> str | None:
            found = coupled_cost(mechanism, kinds, 1, 2, seed=1)
            return None if found <= promise_of(mechanism) else "types or sizes differ"

        return wrong(apart)

    def takes(self, value: object) -> object:
        return self.make().release(value, noise=ZeroNoise())

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        mechanism = self.make(epsilon=epsilon)
        if mechanism.guarantee.epsilon != exact:
            return f"it promises {mechanism.guarantee.epsilon}, not {exact}"
        return wrong(lambda: self._beyond(mechanism, [*_ROWS, 1.0]))


def _describe_release(release: Any) -> object:
    """What is published, with the type and length of every series."""
    return published(release), _kinds(release)


def _kinds(release: Any) -> object:
    if not hasattr(release, "parts"):
        return len(list_numbers(published(release)))
    return [(name, str(each.dtype), each.shape) for name, each in release.parts().series.items()]


def _histogram(places: list[int], counts: list[int], contributions: int) -> pt.Histogram:
    held: Counter[int] = Counter()
    for place, count in zip(places, counts, strict=True):
        held[place] += count
    cells = sorted(held)
    numbers = [held[cell] for cell in cells]
    return pt.Histogram.from_counts(cells, numbers, size=_AXIS.width, contributions=contributions)


def _points(axes: Sequence[Axis], places: list[int], counts: list[int], contributions: int) -> pt.Points:
    rows = [[0] * axes.index(_AXIS) + [place] + [0] * (len(axes) - 1 - axes.index(_AXIS)) for place in places]
    table = np.array(rows, np.uint64).reshape(-1, len(axes))
    return pt.Points.from_rows(table, axes=axes, counts=counts, contributions=contributions)


_TEXT: Final = pt.Text(1, "abcdefghij")


def _names(places: list[int], counts: list[int], contributions: int, *, others: int = 0) -> pt.NameCounts:
    """Rows with one text for each place; `others` have so many rows with each."""
    held = Counter[int](dict.fromkeys(range(_AXIS.width), others))
    for place, count in zip(places, counts, strict=True):
        held[place] += count
    return texts(_TEXT, tuple(held[place] for place in range(_AXIS.width)), contributions)


_UNIVERSE: Final = pt.Universe(["v"], [_VALUES])
_PLANE: Final = (_AXIS, Axis(size=2, labels=True))
_RANGE_MECHANISMS: Final = ("LinearWorkload", "ProjectedLaplace", "MultiplicativeWeights")


def release_subject(name: str) -> ReleaseSubject:
    """The mechanism over a universe of nine positions of one column, special ones included."""
    kind: Any = mechanisms()[name]
    if name == "LinearQueries":
        rows = [[1] * _AXIS.width, [place % 3 for place in range(_AXIS.width)]]
        return ReleaseSubject(name, partial(kind, queries=rows), _histogram)
    taken = inspect.signature(kind).parameters.keys()
    if "queries" in taken:
        asked = pt.prefixes("v") if name in _RANGE_MECHANISMS else pt.value("v")
        # One round is enough for those that work in rounds.
        rounds = {"rounds": 1} if "rounds" in taken else {}
        made = partial(kind, queries=asked, universe=_UNIVERSE, **rounds)
        return ReleaseSubject(name, made, partial(_points, _UNIVERSE.axes))
    if "value" in taken:
        keys: dict[str, Any] = {"keys": []} if "keys" in taken else {}
        return ReleaseSubject(name, partial(kind, value=_VALUES, **keys), partial(_points, (_AXIS,)))
    if "text" in taken:
        others = int("delta" in taken)  # a name of one row alone is what delta is for: its law is enumerated
        return ReleaseSubject(name, partial(kind, text=_TEXT), partial(_names, others=others))
    if "axes" in taken:
        return ReleaseSubject(name, partial(kind, axes=_PLANE), partial(_points, _PLANE))
    return ReleaseSubject(name, partial(kind, size=_AXIS.width), _histogram)


def subjects() -> list[Subject]:
    """Every public mechanism, to be attacked."""
    sketches = {kind.name: SketchSubject(kind) for kind in sketch_kinds()}
    makers: dict[Family, Callable[[str], Subject]] = {
        "release": release_subject,
        "counter": CounterSubject,
        "sketch": sketches.__getitem__,
        "randomizer": RandomizerSubject,
    }
    return [makers[family](name) for name, family in public_mechanisms().items()]
