"""A bound on rows per person that is chosen privately from a public list: as asked for, and as chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, final

from partita.errors import InvalidParameter, check, check_release
from partita.guarantee import Guarantee, Neighbors
from partita.numbers import Converted, Exact, freeze, frozen, integer, parameter, rational

AUTO: Final = "auto"

USUAL: Final = (1, 2, 3, 5, 8, 13, 20, 32, 50, 80, 128, 200, 320, 500, 800)
"""Each about 1.6 times the one before: the best of them costs little more than the best bound of all, and
more of them would say less each."""

USUAL_SHARE: Final = Fraction(1, 20)
"""All other noise grows by 5%. With 1/40 totals were off by 15% more, with 1/10 by 5% less, on the laws that
it was tuned on (benchmarks/README.md, contributions)."""

_MOST: Final = 64  # candidates: each has a request of its own, which is checked before any row is read
_LARGEST: Final = 10**6  # as in a ledger
_FIX: Final = 'pass for example "auto among 1,2,5,10 with 1/20"'
_TEXT: Final = re.compile(
    r"auto(?: among (?P<among>[0-9]{1,9}(?: ?, ?[0-9]{1,9})*))?(?: with (?P<share>[0-9./e-]{1,99}))?"
)


@final
@frozen(repr=False)
class AutoContributions:
    """The candidates for `contributions`, ascending, and the share of epsilon that pays for the choice.

    >>> AutoContributions([1, 2, 5, 10])
    AutoContributions('auto among 1,2,5,10 with 1/20')
    >>> AutoContributions.parse("auto with 1/10").share
    Fraction(1, 10)
    """

    among: Converted[Sequence[int], tuple[int, ...]] = parameter(default=USUAL)
    share: Exact = parameter(default=USUAL_SHARE)

    def __post_init__(self) -> None:
        freeze(self, among=_check_candidates(self.among), share=_check_share(self.share))

    @staticmethod
    def parse(text: str) -> AutoContributions:
        """The same from its text: "auto", "auto among 1,2,5", "auto with 1/10", or with both."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise InvalidParameter("contributions", "must be an integer, or auto", given=text, fix=_FIX)
        among = USUAL if found["among"] is None else [int(each) for each in found["among"].split(",")]
        return AutoContributions(among, USUAL_SHARE if found["share"] is None else found["share"])

    def __str__(self) -> str:
        """The text that `parse` reads, with both parts."""
        return f"{AUTO} among {','.join(map(str, self.among))} with {self.share}"

    def __repr__(self) -> str:
        return f"AutoContributions({str(self)!r})"


def read_contributions(given: object) -> int | AutoContributions:
    """A bound, or what it is to be chosen from: in any form that a caller may write."""
    if isinstance(given, AutoContributions):
        return given
    return (
        AutoContributions.parse(given) if isinstance(given, str) else integer(given, "contributions", low=1)
    )


def _check_candidates(among: object) -> tuple[int, ...]:
    listed = isinstance(among, Sequence) and not isinstance(among, (str, bytes))
    rule = f"must be a choice among 2 to {_MOST} bounds, ascending"
    if not isinstance(among, Sequence) or not listed:
        raise InvalidParameter("contributions", rule, given=among, fix=_FIX)
    check(2 <= len(among) <= _MOST, "contributions", rule, given=f"{len(among)} of them", fix=_FIX)
    bounds = tuple(integer(each, "contributions", low=1, high=_LARGEST) for each in among)
    ascending = all(one < other for one, other in pairwise(bounds))
    check(ascending, "contributions", rule, given=", ".join(map(str, bounds)), fix=_FIX)
    return bounds


def _check_share(share: object) -> Fraction:
    exact = rational(share, "contributions")
    rule = "must be chosen with a share of epsilon above 0 and below 1"
    check(0 < exact < 1, "contributions", rule, given=share, fix=_FIX)
    return exact


@final
@dataclass(frozen=True, kw_only=True)
class ChosenContributions:
    """A bound that was chosen privately, what it was chosen among, and what the choice cost.

    `share` is the part of epsilon that was asked for, and `epsilon` what it came to.
    """

    chosen: int
    among: tuple[int, ...]
    share: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        ascending = all(one < other for one, other in pairwise((0, *self.among)))
        found = ascending and self.chosen in self.among and 0 < self.share < 1 and self.epsilon > 0
        fix = "get a fresh copy of the release"
        check_release(found, "contributions", "must be one of the bounds that it was chosen among", fix=fix)

    def promise(self, neighbors: Neighbors) -> Guarantee:
        """What the choice promises; those of views with the chosen bound are added to it."""
        return Guarantee(epsilon=self.epsilon, neighbors=neighbors, unit="person", contributions=self.chosen)

    def __str__(self) -> str:
        """In words."""
        listed = ", ".join(map(str, self.among))
        return f"{self.chosen}, chosen privately among {listed} with {self.share} of epsilon"
