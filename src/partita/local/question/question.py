"""A question that people answer on their own devices: what is asked, and with which randomizer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from partita.errors.checks import check
from partita.local.randomizer.law import Json, LocalLaw, digest_of
from partita.numbers import freeze

if TYPE_CHECKING:
    from partita.guarantee.guarantee import Guarantee
    from partita.local.aggregate.aggregator import Aggregator
    from partita.local.frequency.columns import Ints
    from partita.local.randomizer.draws import Draws
    from partita.trusted.noise.laws.words import WordSource

VERSION: Final = 1
_LONGEST_ROUND: Final = 100


@dataclass(frozen=True, init=False)
class Question(ABC):
    """Every value has a cell, and the randomizer makes a report of it. No value raises.

    A question is asked in a round, and everybody answers it once in each: two rounds are two questions,
    whose reports are not counted together.
    """

    asks: ClassVar[str]
    randomizer: LocalLaw
    round: str = field(default="", kw_only=True)

    @abstractmethod
    def cell(self, value: object) -> int:
        """The cell of one value."""

    @abstractmethod
    def cells(self, values: object) -> Ints:
        """The cell of every value of a column."""

    @abstractmethod
    def aggregator(self) -> Aggregator[Any]:
        """A new aggregator of reports."""

    @abstractmethod
    def _asked(self) -> Json:
        """What is asked, beside the randomizer."""

    @property
    def epsilon(self) -> Fraction:
        """What one report costs the person who sends it; verified when the question was made or read."""
        return self.randomizer.epsilon

    @property
    def guarantee(self) -> Guarantee:
        """Each person's report is private by itself: whoever looks at the aggregator, as often as they like.

        Neighbours differ in what one person answers; that a person answers at all is not hidden. It is for
        one report of each person in this round. Whoever answers in k rounds loses k times as much.
        """
        from partita.guarantee.guarantee import CHANGE_ONE, UNLIMITED, Guarantee

        return Guarantee(epsilon=self.epsilon, neighbors=CHANGE_ONE, unit="user", intrusions=UNLIMITED)

    def randomize(self, value: object, *, draws: Draws | None = None) -> int:
        """One person's report, with entropy from the kernel."""
        return self.randomizer.randomize(self.cell(value), draws=draws)

    def randomize_many(self, values: object, *, words: WordSource | None = None) -> Any:
        """One report for every value of a column."""
        return self.randomizer.randomize_many(self.cells(values), words=words)

    def in_round(self, name: str) -> Self:
        """The same question in the round of this name, which everybody may answer anew.

        >>> from partita.local import Frequency
        >>> weeks = [Frequency(8, epsilon=1).in_round(week) for week in ("week 1", "week 2")]
        >>> weeks[0].digest == weeks[1].digest
        False
        """
        rule = f"must be a text of up to {_LONGEST_ROUND} signs"
        check(_is_round(name), "round", rule, given=name, fix='as "week 1"')
        made = object.__new__(type(self))
        freeze(made, **{each.name: getattr(self, each.name) for each in fields(self)} | {"round": name})
        return made

    def to_json(self) -> Json:
        """The question as devices and aggregators read it."""
        described = {"version": VERSION, "asks": self.asks, "round": self.round, **self._asked()}
        return {**described, "randomizer": self.randomizer.to_json()}

    @cached_property
    def digest(self) -> str:
        """A name for exactly this question: SHA-256 of its description, in hex."""
        return digest_of(self.to_json())


def _is_round(name: object) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST_ROUND and name.isprintable()
