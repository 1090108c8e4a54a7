"""Laws that an oracle admits: of the sealed registry, or listed in full; each of them verified first."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, ClassVar, Final, final

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.local.frequency.mixture import Mixture
from partita.local.question.kinds import KINDS, randomizer_kind
from partita.local.question.registry import randomizer_from
from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import Json, LocalLaw, Pmf
from partita.local.randomizer.randomizer import Randomizer
from partita.local.randomizer.thresholds import checked_epsilon, exp_bounds
from partita.numbers import freeze

_MOST_ENTRIES: Final = 1 << 16
_LARGEST_DENOMINATOR: Final = 1 << 46
_BITS: Final = 256


@final
@dataclass(frozen=True, kw_only=True)
class ListedLaw(LocalLaw):
    """A law given by all of its probabilities: `table[x][y]` is that of the report y about the cell x.

    Made only if every row adds up to one and no report is more than e^epsilon times as likely about one cell
    as about another, by exact arithmetic.

    Guarantee: epsilon-DP of each report, pure, local.
    Error:     whatever the law says.
    Proof:     docs/proofs/local_oracles.md

    >>> third = Fraction(1, 3)
    >>> ListedLaw(table=((2 * third, third), (third, 2 * third)), epsilon=Fraction(1)).reports
    2
    """

    kind: ClassVar[str] = "listed"
    size: int = 0
    table: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        freeze(self, size=len(self.table), epsilon=checked_epsilon(self.epsilon))
        rule = "must have rows of Fractions that add up to 1"
        check(_is_law(self.table), "table", rule, given=None, fix=_CHECK)
        rule = "must have a common denominator up to 2^46"
        check(self.denominator <= _LARGEST_DENOMINATOR, "table", rule, given=None, fix=_CHECK)
        bound = exp_bounds(self.epsilon, _BITS)[0]
        if any(max(column) > bound * min(column) for column in zip(*self.table, strict=True)):
            raise InvalidParameter(
                "table", f"must not lose more than epsilon {self.epsilon}", given=None, fix="raise epsilon"
            )

    @property
    def reports(self) -> int:
        """The length of a row."""
        return len(self.table[0])

    @cached_property
    def denominator(self) -> int:
        """That of all probabilities."""
        return lcm(*(chance.denominator for row in self.table for chance in row))

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A number below the denominator, looked up among the sums of the row of x."""
        sought = x * self.denominator + draws.below(self.denominator)
        return self._found(sought) - x * self.reports

    def pmf(self, x: int) -> Pmf:
        """The row of the cell."""
        return dict(enumerate(self.table[x]))

    def to_json(self) -> Json:
        """All probabilities."""
        rows = [[str(chance) for chance in row] for row in self.table]
        return {"kind": self.kind, "epsilon": str(self.epsilon), "table": rows}

    @cached_property
    def _starts(self) -> list[int]:
        """Where each report of each row begins, all rows one after the other."""
        starts, start = [], 0
        for row in self.table:
            for chance in row:
                starts.append(start)
                start += int(chance * self.denominator)
        return starts

    def _found(self, sought: Numbers) -> Numbers:
        if isinstance(sought, int):
            return bisect_right(self._starts, sought) - 1
        import numpy as np

        return np.searchsorted(np.array(self._starts), sought, side="right") - 1


def admitted(law: object) -> LocalLaw:
    """The law made anew from its description, so that what is sampled is what was verified.

    A mixture is made anew with its views: `Mixture` refuses what only looks like one.
    Of a law that is not in the registry only the probabilities that its `pmf` lists are used: they are
    checked by enumeration, and sampled here.
    """
    if isinstance(law, Mixture):
        return Mixture.read(law.views, [_registered(part) for part in law.parts])
    if isinstance(law, ListedLaw):
        return ListedLaw(table=tuple(tuple(row) for row in law.table), epsilon=law.epsilon)
    if isinstance(law, Randomizer) and law.kind in KINDS and type(law) is randomizer_kind(law.kind):
        return _registered(law)
    return _listed(law)


def _registered(law: Randomizer) -> Randomizer:
    return randomizer_from(law.to_json())


def _listed(law: Any) -> ListedLaw:
    size, reports = (getattr(law, name, 0) for name in ("size", "reports"))
    if not (isinstance(size, int) and isinstance(reports, int) and 0 < size * reports <= _MOST_ENTRIES):
        raise _unknown()
    try:
        rows = [law.pmf(x) for x in range(size)]
        table = tuple(tuple(row.get(report, Fraction(0)) for report in range(reports)) for row in rows)
    except Exception:
        raise _unknown() from None
    return ListedLaw(table=table, epsilon=law.epsilon)


def _unknown() -> InvalidParameter:
    rule = f"must be of the registry, or list at most {_MOST_ENTRIES} probabilities"
    fix = "pass for example Frequency(10, epsilon=1).randomizer"
    return InvalidParameter("randomizer", rule, given=None, fix=fix)


_CHECK: Final = "check the probabilities"


def _is_law(table: tuple[tuple[Fraction, ...], ...]) -> bool:
    """Whether these are rows of one length of probabilities that add up to one."""
    if not 0 < sum(map(len, table)) <= _MOST_ENTRIES or len(set(map(len, table))) > 1:
        return False
    exact = {type(chance) for row in table for chance in row} == {Fraction}
    return exact and all(min(row) >= 0 and sum(row) == 1 for row in table)
