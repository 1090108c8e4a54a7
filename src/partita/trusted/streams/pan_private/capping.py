"""At most so many events of each user: the cap that a guarantee for users needs, before any counter."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import final

from partita.errors.checks import check
from partita.errors.errors import InvalidData, InvalidParameter
from partita.errors.unchained import unchained
from partita.guarantee.guarantee import Guarantee
from partita.numbers import integer
from partita.public.streams.terms import LARGEST
from partita.trusted.streams.base.base import ContinualCounter, horizon_reached
from partita.trusted.streams.pan_private.pan_private import PanPrivateCounter


@final
class Cap:
    """Lets the first `contributions` events of each user through, and no later one.

    What one user did decides about no other user's events. So a user who is there or not changes the
    capped stream by at most that many events.

    >>> cap = Cap(contributions=2)
    >>> [cap.admits(person) for person in ("ann", "bob", "ann", "ann")]
    [True, True, True, False]
    """

    def __init__(self, *, contributions: int) -> None:
        self.contributions = integer(contributions, "contributions", low=1, high=LARGEST)
        self._seen: dict[Hashable, int] = {}

    def admits(self, person: Hashable) -> bool:
        """Whether an event of this person counts; if so, it is one of theirs from now on."""
        seen = self._seen.get(person, 0)
        if seen == self.contributions:
            return False
        self._seen[person] = seen + 1
        return True


@final
class Capped:
    """A counter of events that have a person each: no more than `contributions` of anybody's count.

    Guarantee: that of the counter, for one user, if it was made for as many contributions: epsilon in
               all, and epsilon / contributions for each event. No look at the memory is covered.
    Error:     that of the counter, and what the cap keeps out.
    Proof:     A user adds at most so many events to what the counter sees, and moves no other user's.

    Who was seen, and how often, is in memory in the clear; it is no part of the counter's state. So a
    pan-private counter is refused: whoever looks at its memory would find the list of people beside it.

    >>> from partita.trusted.streams.counter.counter import Counter
    >>> visits = Capped(Counter(epsilon=1, horizon=365, contributions=3), contributions=3)
    >>> output = visits.update(["ann", "bob", "ann"])
    >>> visits.guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=user, contributions=3)
    """

    def __init__(self, counter: ContinualCounter, *, contributions: int) -> None:
        if isinstance(counter, PanPrivateCounter):
            raise InvalidParameter(
                "counter",
                "must not be pan-private, since the ids of people lie in memory beside it",
                given=counter.name,
                fix="use Counter, or cap events before they reach this machine",
            )
        self.counter = counter
        self._cap = Cap(contributions=contributions)
        made_for = counter.terms.contributions
        rule = f"must be what the counter was made for, {made_for}"
        fix = "make the counter with the same contributions"
        check(made_for == self._cap.contributions, "contributions", rule, given=contributions, fix=fix)

    @property
    def guarantee(self) -> Guarantee | None:
        """What the counter promises."""
        return self.counter.guarantee

    @property
    def value(self) -> float:
        """The last output; 0 before the first."""
        return self.counter.value

    def update(self, people: Iterable[Hashable] = ()) -> float:
        """Close one period in which these people had an event each, some perhaps several: its output."""
        listed = _hashable(people)
        if self.counter.periods == self.counter.horizon:
            raise horizon_reached(0)
        return self.counter.update(sum([self._cap.admits(person) for person in listed]))


def _hashable(people: Iterable[Hashable]) -> list[Hashable]:
    """All people of a period, before any of them is seen."""
    failure = InvalidData("people", "must be ids that can be looked up", fix="pass ints or strings")
    listed = unchained(lambda: list(people), failure, Exception)
    unchained(lambda: hash(tuple(listed)), failure, Exception)
    return listed
