"""What every pan-private sketch can do, and what it keeps count of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from numpy.typing import NDArray

from partita.answer import Answer
from partita.errors.errors import BudgetExceeded, HorizonReached
from partita.guarantee.guarantee import UNLIMITED, Guarantee
from partita.html import card
from partita.local.randomizer.thresholds import checked_epsilon
from partita.numbers import integer
from partita.public.streams.terms import Terms, misfit
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import KERNEL
from partita.trusted.streams.base.stepping import Stepping

_MOST_RELEASES: Final = 10**6


class Sketch(Stepping):
    """Statistics of users, private even if the memory is read once at an unknown time.

    A user is one id, with all of its events. `update` lets users come, at any time; nothing is published by
    it. `release(name)` publishes one statistic. In an *epoch* there are `releases` outputs; with the last one
    the epoch is over, its table is erased, and the next one begins with a fresh table, if there is one.
    `announce_intrusion` ends an epoch at once.

    Epsilon is for a user over the whole life of the sketch: all outputs of all epochs, and one look at the
    state in each of them. An epoch has epsilon / epochs. `guarantee` is None if the noise was injected. What
    is protected is the state between two calls; call it from one thread at a time.
    """

    name: ClassVar[str]

    def __init__(self, *, epsilon: object, releases: int, epochs: int, noise: Noise) -> None:
        self.releases = integer(releases, "releases", low=1, high=_MOST_RELEASES)
        epochs = integer(epochs, "epochs", low=1, high=_MOST_RELEASES)
        terms = Terms.of(epsilon)
        checked_epsilon(terms.epsilon / epochs)
        super().__init__(terms=terms, horizon=epochs, secure=False)
        self.epochs = epochs
        self.guarantee = self.promise if noise is KERNEL else None
        self._noise = noise
        self._left = self.releases

    @property
    def promise(self) -> Guarantee:
        """What a sketch with noise from the kernel guarantees."""
        return Guarantee(
            epsilon=self.terms.epsilon, unit="user", contributions=UNLIMITED, intrusions=1, announced=True
        )

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of one epoch."""
        return self.terms.epsilon / self.epochs

    @property
    def epoch(self) -> int:
        """The number of the present epoch, from 1; all of them are over if it exceeds `epochs`."""
        return self.periods + 1

    @property
    def releases_left(self) -> int:
        """How many outputs the present epoch has left."""
        return self._left

    @property
    @abstractmethod
    def output(self) -> Fraction:
        """The epsilon of one output."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What can be released."""

    @abstractmethod
    def expected_error(self, name: str) -> float:
        """At least the standard error of a release, known beforehand (`Distinct`: of `buckets` ids)."""

    def update(self, name: object) -> None:
        """Somebody came. What is no id of the universe is left out without a word."""
        self.update_many([name])

    @abstractmethod
    def update_many(self, ids: Iterable[object]) -> None:
        """Many came, one after the other; the same law as one by one, and no look falls between them.

        The work depends on how many ids of the universe came, not on which, or whether they came before.
        Where they belong is overwritten before this returns; the ids that were passed are the caller's to
        erase, and so is what Python made of them.
        """

    def release(self, name: str) -> Answer:
        """Publish one statistic. It is paid for before noise is drawn, and an output that is lost stays paid.

        The last output of an epoch ends it: the table that it was made from is erased.
        """
        measured = self._measure(name)
        self._require_output()
        with self._step():
            self._left -= 1
            answer = measured()
            if not self._left:
                self._begin_epoch()
        return answer

    def announce_intrusion(self) -> None:
        """End the epoch: its table is erased, and a look from now on sees fresh noise only.

        What came before is forgotten: later releases are about what comes from now on. Release first what
        you want to keep. Outputs that were not released are lost with the epoch. If it was the last one, the
        sketch is over.
        """
        self._make_room(0)
        with self._step():
            if not self._over:
                self._begin_epoch()

    def abandon(self) -> None:
        """Never go on: erase the tables, as if it had been interrupted."""
        self._abandon()

    def state(self) -> bytes:
        """All that the sketch remembers: one look at it in each epoch is covered by the guarantee."""
        return super().state()

    @classmethod
    def from_state(cls, state: bytes, *, noise: Noise = KERNEL) -> Self:
        """The sketch that gave this state; anything else is an `InvalidState`.

        It must go on in one place only: two that go on from one state are as two looks at it.
        """
        return super().from_state(state, noise=noise)

    def __repr__(self) -> str:
        """Parameters, and what is public."""
        epoch = "over" if self._over else f"{self.epoch} of {self.epochs}"
        return (
            f"{type(self).__name__}(epsilon={self.terms.epsilon}, epoch={epoch}, "
            f"releases_left={self._left} of {self.releases})"
        )

    def _repr_html_(self) -> str:
        """As above, and what can be released."""
        facts = [
            ("promise", "none: made with injected noise" if self.guarantee is None else self.guarantee),
            ("epoch", "over" if self._over else f"{self.epoch} of {self.epochs}"),
            ("outputs left in it", f"{self._left} of {self.releases}"),
            ("can be released", ", ".join(self.names)),
        ]
        return card(type(self).__name__, facts)

    @abstractmethod
    def _measure(self, name: str) -> Callable[[], Answer]:
        """How to publish a statistic; only a name that is wrong is an error."""

    @abstractmethod
    def _tables(self) -> tuple[NDArray[Any], ...]:
        """Every array that holds something about users."""

    @abstractmethod
    def _fill(self) -> None:
        """Overwrite every table with fresh noise."""

    @property
    def _over(self) -> bool:
        return self.periods >= self.epochs

    def _begin_epoch(self) -> None:
        """Erase what was, in place; start afresh where there is an epoch left."""
        self._periods += 1
        self._left = 0 if self._over else self.releases
        self._erase()
        if not self._over:
            self._fill()

    def _erase(self) -> None:
        for table in self._tables():
            table.fill(0)

    def _abandon(self) -> None:
        """Never go on, and forget what a step that was not done left in the tables."""
        super()._abandon()
        self._erase()

    def _require_epoch(self) -> None:
        self._make_room(0)
        if self._over:
            raise HorizonReached(
                f"the sketch has had all of its {self.epochs} epochs; nothing was counted, make a new one"
            )

    def _require_output(self) -> None:
        self._make_room(0)
        if not self._left:
            raise BudgetExceeded(
                f"the sketch has released all that epsilon {self.terms.epsilon} pays for, {self.releases} "
                f"outputs in each of {self.epochs} epochs; make a new one, or plan for more releases"
            )

    def _plan_row(self) -> list[int]:
        return [self.releases, self.epochs, self._left]

    def _restore_plan(self, row: Sequence[int]) -> None:
        releases, epochs, left = row
        lowest, highest = (0, 0) if self._over else (1, self.releases)
        if (releases, epochs) != (self.releases, self.epochs) or not lowest <= left <= highest:
            raise misfit("hold an epoch")
        self._left = left
