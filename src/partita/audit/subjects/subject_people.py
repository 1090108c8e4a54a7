"""Counters, sketches and randomizers, to be attacked."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

import partita as pt
from partita import local
from partita.audit.base.watching import WatchingNoise, off_the_grid
from partita.audit.cases_people.proofs_local import device_law, reports_lose
from partita.audit.cases_people.proofs_pan import Kind, View, sketch_loss
from partita.audit.subjects.subject import Subject, wrong
from partita.errors.errors import PartitaError
from partita.testing.doubles.doubles import ZeroNoise


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
        return noise.problem or off_the_grid(outputs, self._granularity(counter))

    def _granularity(self, counter: Any) -> Fraction:
        return Fraction(getattr(counter, "granularity", Fraction(1, 1 << 30)))

    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        found = self.make(epsilon=epsilon).terms.epsilon
        return None if found == exact else f"it promises {found}, not {exact}"


class SketchSubject(Subject):
    """A pan-private sketch."""

    family = "sketch"

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind.name)
        self._kind = kind

    def make(self, **changes: Any) -> Any:
        return self._kind.make(changes.pop("noise", ZeroNoise()), **changes)

    def hides(self, value: object) -> str | None:
        return wrong(lambda: self._beyond(value))

    def _beyond(self, value: object) -> str | None:
        loss = sketch_loss(self._kind)(View((value,), 1), View((None,), 1))
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
        return noise.problem or off_the_grid(state, Fraction(1))

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
        return off_the_grid([randomizer.randomize(x) for x in range(randomizer.size)], Fraction(1))

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
