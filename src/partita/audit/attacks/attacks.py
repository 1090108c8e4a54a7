"""The third part of an audit: attacks by which floats, odd values and odd parameters have betrayed secrets.

Each attack builds inputs that a vulnerable implementation tells apart, runs the mechanism on them, and looks
for the difference. That nothing was found is no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np

from partita.audit.base.discovery import Family
from partita.audit.subjects.subject import CANARY, Subject
from partita.audit.subjects.subjects import subjects

Verdict: TypeAlias = Literal["no violation found", "violation", "does not apply"]
Trials: TypeAlias = Iterator["str | None"]


@final
@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one attack on one mechanism: how many inputs were tried, and what was wrong first."""

    attack: str
    mechanism: str
    verdict: Verdict
    tried: int
    said: str


@final
@dataclass(frozen=True, kw_only=True)
class Attack:
    """A named attack: what it tries, and on which families it makes no sense, and why."""

    name: str
    says: str
    tries: Callable[[Any], Trials]
    spares: dict[Family, str] = field(default_factory=dict)

    def on(self, subject: Subject) -> Trial:
        """Try it."""
        spared = self.spares.get(subject.family) or subject.spares(self.name)
        if spared:
            return self._trial(subject, "does not apply", 0, spared)
        problems = self._problems(subject)
        found = [problem for problem in problems if problem is not None]
        verdict: Verdict = "violation" if found else "no violation found"
        return self._trial(subject, verdict, len(problems), found[0] if found else "")

    def _problems(self, subject: Subject) -> list[str | None]:
        """What was wrong with each input; an error that was not expected is wrong too, and is the last."""
        found: list[str | None] = []
        try:
            found.extend(self.tries(subject))
        except Exception as error:
            found.append(f"{type(error).__name__} was raised")
        return found

    def _trial(self, subject: Subject, verdict: Verdict, tried: int, said: str) -> Trial:
        return Trial(attack=self.name, mechanism=subject.name, verdict=verdict, tried=tried, said=said)


def _values(*values: object) -> Callable[[Subject], Trials]:
    """One more row, event, user or report with each of these values."""
    return lambda subject: (subject.hides(value) for value in subject.fitting(values))


def _refusals(**parameters: tuple[object, ...]) -> Callable[[Subject], Trials]:
    """The mechanism made with each of these values of a parameter."""
    return lambda subject: (
        subject.refuses(**{name: value}) for name, values in parameters.items() for value in values
    )


def _promises(subject: Subject) -> Trials:
    """Epsilons that no float is: what is written as a float is one exact number all the same."""
    for epsilon in (0.1 + 0.2, Fraction(1, 3)):
        yield subject.keeps(epsilon, Fraction(str(epsilon)))


def _orders(subject: Any) -> Trials:
    """Values whose float sum depends on the order."""
    yield subject.ordered([1e16, 1.0, -1e16, 0.5, 2.0])
    yield subject.ordered([0.1, 0.2, 0.3, 1.5, None])


def _crowds(subject: Any) -> Trials:
    """The last counts that 32 bits hold, and one that nearly fills 64."""
    for rows in (2**31 - 1, 2**32 - 1, 2**61):
        yield subject.weighs(rows)


def _canaries(subject: Subject) -> Trials:
    """A value that no message may show, in forms that are malformed."""
    forms = (
        CANARY,
        str(CANARY),
        f"{CANARY}x",
        CANARY + 0.5,
        [CANARY],
        {"id": CANARY},
        b"%d" % CANARY,
        {CANARY},
    )
    for value in forms:
        yield subject.silent(value)


def _repeats(subject: Subject) -> Trials:
    """The same value again: a row more is a row more."""
    for value in (0, 1):
        yield subject.hides(value)


_ONE_VALUE: Final = "a device has one value, not several"
_NO_COUNT: Final = "a bit, a register and a report hold no count"
_TIME: Final = "the order of periods is public time"
_USERS: Final = "users come in an order that is not kept; all events of a user count as one"

ATTACKS: Final[tuple[Attack, ...]] = (
    Attack(
        name="least significant bits",
        says="secrets enter the noise as floats, or outputs carry bits below the noise [Mir12]",
        tries=lambda subject: iter([subject.numbers()]),
    ),
    Attack(
        name="precision",
        says="next to 2^53 numbers lose their last unit, so that noise is swallowed",
        tries=lambda subject: iter([subject.precise()]),
        spares={"sketch": _NO_COUNT, "randomizer": _NO_COUNT},
    ),
    Attack(
        name="types and sizes",
        says="the type, length or size of what is published depends on the data",
        tries=lambda subject: iter([subject.sizes()]),
    ),
    Attack(
        name="order of rows",
        says="the same rows in another order give other sums",
        tries=_orders,
        spares={"counter": _TIME, "sketch": _USERS, "randomizer": _ONE_VALUE},
    ),
    Attack(
        name="overflow of counts",
        says="counts wrap around at 2^31, at 2^32 or below 2^62",
        tries=_crowds,
        spares={"sketch": _NO_COUNT, "randomizer": _ONE_VALUE},
    ),
    Attack(
        name="huge integers",
        says="values beyond 64 bits overflow, are refused, or show",
        tries=_values(2**31, 2**63, -(2**63) - 1, 2**64, 10**400),
    ),
    Attack(
        name="overflow of floats",
        says="values near the largest float become infinite in a sum",
        tries=_values(1.7976931348623157e308, -1.7976931348623157e308, 1e300),
    ),
    Attack(
        name="not a number",
        says="a NaN spreads to the output, or is refused",
        tries=_values(float("nan"), -float("nan"), np.float32("nan"), "NaN"),
    ),
    Attack(
        name="infinity",
        says="an infinite value spreads to the output, or is refused",
        tries=_values(float("inf"), -float("inf"), np.float32("inf"), "inf"),
    ),
    Attack(
        name="negative zero",
        says="the sign of a zero survives",
        tries=_values(-0.0, np.float64(-0.0), "-0.0"),
    ),
    Attack(
        name="subnormal values",
        says="values below the smallest normal float are lost, or divide by zero",
        tries=_values(5e-324, -5e-324, 2.2250738585072014e-308),
    ),
    Attack(
        name="rounding at bounds",
        says="a value next to a bound or between two cells falls on the wrong side and shows",
        tries=_values(0.1 + 0.2, 2.0000000000000004, 1.9999999999999998, 0.24999999999999997, -5e-324),
    ),
    Attack(
        name="subnormal epsilon",
        says="an epsilon next to zero is rounded to zero, and the scale divides by it",
        tries=_refusals(epsilon=(5e-324, 1e-300, 0.0, -0.0)),
    ),
    Attack(
        name="scale underflow",
        says="a huge, infinite or undefined epsilon gives a scale of zero: no noise",
        tries=_refusals(epsilon=(1e300, float("inf"), float("nan"), 10**30)),
    ),
    Attack(
        name="cancellation in epsilon",
        says="0.1 + 0.2 and its like are rounded, and more is lost than is promised",
        tries=_promises,
    ),
    Attack(
        name="float and bool contributions",
        says="a bound of 1.5 rows, or of True, is taken and rounded down",
        tries=_refusals(contributions=(1.5, True, 0, -1, float("nan"), "2")),
        spares={
            "sketch": "users may have any number of events",
            "randomizer": "a report is about one person",
        },
    ),
    Attack(
        name="repeated rows",
        says="a row that is there already is dropped, or counts for more than one",
        tries=_repeats,
        spares={"counter": "a counter is given counts, not rows", "randomizer": _ONE_VALUE},
    ),
    Attack(
        name="bool as value",
        says="True and False are other values than 1 and 0, and show",
        tries=_values(True, False, np.True_),
    ),
    Attack(
        name="values in messages",
        says="an error or a warning shows a value of a row",
        tries=_canaries,
    ),
)


def run_attacks(only: Collection[str] | None = None) -> Iterator[Trial]:
    """Every attack on every public mechanism, or on those named."""
    for subject in subjects():
        if only is None or subject.name in only:
            yield from (attack.on(subject) for attack in ATTACKS)
