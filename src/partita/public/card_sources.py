"""What a card is told beside a release: names, what a ledger says, what an audit report says.

All of it comes as plain values. The public side cannot reach a ledger, so who has one reads it and hands its
entries over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast, final

from partita.concentrated import epsilon_of_rho
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee, short
from partita.public.file_entries import guarantee_entries
from partita.public.markup import prose
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.public.release import Release

# --- names: all that a card is told ------------------------------------------------------------

CURATORS: Final = ("Government", "Industry", "Nonprofit")
SECTORS: Final = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
"""What the registry knows of organizations and of sectors."""

_LONGEST: Final = 500  # characters of a name: an address and a sentence fit, a document does not


class NameTexts(TypedDict, total=False):
    """The names of a card, as options of a call."""

    title: str
    organization: str
    organization_type: str
    contact: str
    author: str
    license: str
    region: str
    sector: str
    purpose: str


@final
@dataclass(frozen=True, kw_only=True)
class CardNames:
    """Who publishes what, for whom and where; what is missing becomes a placeholder, or is left out."""

    title: str | None = None
    organization: str | None = None
    organization_type: str | None = None
    contact: str | None = None
    author: str | None = None
    license: str | None = None
    region: str | None = None
    sector: str | None = None
    purpose: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_name(getattr(self, field.name), field.name)
        for name, allowed in (("organization_type", CURATORS), ("sector", SECTORS)):
            given, rule = getattr(self, name), f"must be one of {', '.join(allowed)}"
            check(given is None or given in allowed, name, rule, given=given, fix="choose one of them")

    def shown(self, name: str) -> str:
        """A name in Markdown, or its placeholder."""
        given = getattr(self, name)
        return f"[{name.replace('_', ' ')}]" if given is None else prose(given)


def _check_name(given: object, name: str) -> None:
    rule, fix = f"must be visible text in one line, of at most {_LONGEST} characters", "shorten it"
    fits = given is None or (isinstance(given, str) and given.isprintable() and given.strip() == given != "")
    check(fits and len(cast(str, given or "")) <= _LONGEST, name, rule, given=given, fix=fix)


# --- the ledger, in plain values ---------------------------------------------------------------

_DELTA: Final = Fraction(1, 10**9)  # the default of guarantees in rho


@final
@dataclass(frozen=True, kw_only=True)
class BudgetAmount:
    """Some epsilon and delta, or some rho where a dataset is accounted in it, and how a ledger writes it."""

    epsilon: Fraction
    delta: Fraction
    text: str
    rho: Fraction | None = None

    def to_json(self) -> Record:
        """Exact numbers as text."""
        return {"epsilon": self.epsilon, "delta": self.delta} if self.rho is None else {"rho": self.rho}

    @property
    def words(self) -> str:
        """How the ledger writes it; of rho also the epsilon that follows, rounded up."""
        if not self.rho:
            return self.text
        epsilon = math.ceil(1000 * epsilon_of_rho(self.rho, _DELTA)) / 1000
        return f"{self.text} (epsilon {epsilon:g} at delta {short(_DELTA)})"


@final
@dataclass(frozen=True, kw_only=True)
class BudgetDebit:
    """One entry of a ledger; `spent` is what anybody had lost after it, at most."""

    number: int
    day: str
    what: str
    part: tuple[str, str] | None
    stated: Guarantee
    charged: BudgetAmount
    spent: BudgetAmount
    state: str


@final
@dataclass(frozen=True, kw_only=True)
class BudgetHistory:
    """What a ledger says about one dataset: its total, between which neighbours, and every debit in order."""

    dataset: str
    neighbors: str
    unit: str
    contributions: int | None
    constant: tuple[str, ...]
    total: BudgetAmount
    spent: BudgetAmount
    left: BudgetAmount
    debits: tuple[BudgetDebit, ...]

    def numbers_of(self, release: Release) -> tuple[int, ...]:
        """The entries that may have paid for a release: of its day, its part and its guarantee."""
        origin = release.provenance
        return tuple(
            each.number
            for each in self.debits
            if (each.day, each.part) == (origin.day, origin.part)
            and guarantee_entries(each.stated) == guarantee_entries(release.guarantee)
        )

    def check(self, release: Release) -> None:
        """Refuse the ledger of another dataset, and one that did not pay for a release that it paid for."""
        origin = release.provenance
        fix = "name the ledger from which this release was paid"
        rule = "must be about the dataset of the release"
        check(origin.dataset == self.dataset, "ledger", rule, given=self.dataset, fix=fix)
        paid = not origin.recorded or self.numbers_of(release)
        check(paid, "ledger", "must have the debit of this release", given=self.dataset, fix=fix)

    def to_json(self, release: Release) -> Record:
        """All of it, and which entries may be those of the release."""
        amounts = {name: getattr(self, name).to_json() for name in ("total", "spent", "left")}
        debits = [
            {
                "entry": each.number,
                "day": each.day,
                "what": each.what,
                "part": None if each.part is None else dict([each.part]),
                "stated": guarantee_entries(each.stated),
                "charged": each.charged.to_json(),
                "spent": each.spent.to_json(),
                "state": each.state,
            }
            for each in self.debits
        ]
        terms = {name: getattr(self, name) for name in ("neighbors", "unit", "contributions", "constant")}
        return {"dataset": self.dataset, **terms, **amounts} | {
            "debits": debits,
            "of_this_release": self.numbers_of(release),
        }


# --- the audit report, in plain values ---------------------------------------------------------

_SHORT: Final = 8  # digits of a fraction that people can read
_CONTEXT: Final = ("subject", "depth", "day", "python", "machine", "libraries", "command")


@final
@dataclass(frozen=True, kw_only=True)
class MechanismEvidence:
    """What was tried on one mechanism: pairs of neighbours, the largest loss beside its promise, attacks.

    The promise is "epsilon 1", or "rho 1/8" where losses were added up in rho.
    """

    mechanism: str
    tested_as: str
    pairs: int
    loss: float
    promised: str
    attacks: int
    violations: int


@final
@dataclass(frozen=True, kw_only=True)
class AuditEvidence:
    """What an audit report says, as far as it is about the mechanisms of a release.

    `context` is the version, the depth and the machine. `violations` are those of the whole report, each in a
    sentence.
    """

    context: Mapping[str, str]
    pairs: int
    samplers: int
    violations: tuple[str, ...]
    mechanisms: tuple[MechanismEvidence, ...]
    missing: tuple[str, ...]
    not_shown: tuple[str, ...]
    sha256: str | None = None

    @staticmethod
    def of(record: object, tested_as: Mapping[str, str], *, sha256: str | None = None) -> AuditEvidence:
        """What the record of a report says about mechanisms, each with the name under which it is tested.

        The record may come from anybody's file: anything that a report would not say is refused.
        """
        try:
            return _read_evidence(cast("Any", record), tested_as, sha256)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            rule, fix = "must be a report of `partita audit --json`", "write it again, with its output alone"
            raise InvalidParameter("audit", rule, given="something else", fix=fix) from None

    @property
    def verdict(self) -> str:
        """In a few words."""
        number = len(self.violations)
        return f"{number} violation{'s' * (number > 1)} found" if number else "no violation found"


def _read_evidence(record: Any, tested_as: Mapping[str, str], sha256: str | None) -> AuditEvidence:
    found, missing = list[MechanismEvidence](), list[str]()
    for mechanism, name in tested_as.items():
        counts = [each for each in record["enumeration"] if each["mechanism"] == name]
        attacks = [each for each in record["attacks"] if each["mechanism"] == name]
        if counts or attacks:
            found.append(_evidence_of(mechanism, name, counts, attacks))
        else:
            missing.append(mechanism)
    said = [[_text(each[name]) for name in ("mechanism", "part", "said")] for each in record["violations"]]
    violations = [f"{mechanism} ({part}): {said}" for mechanism, part, said in said]
    if not violations and any(each.violations for each in found):
        raise ValueError  # a report lists what it counts
    return AuditEvidence(
        context={name: _text(record["surroundings"][name]) for name in _CONTEXT},
        pairs=sum(_natural(each["pairs"]) for each in record["enumeration"]),
        samplers=len([_text(each["sampler"]) for each in record["fits"]["samplers"]]),
        violations=tuple(violations),
        mechanisms=tuple(found),
        missing=tuple(missing),
        not_shown=tuple(map(_text, record["not_shown"])),
        sha256=sha256,
    )


def _evidence_of(
    mechanism: str, name: str, counts: Sequence[Any], attacks: Sequence[Any]
) -> MechanismEvidence:
    """The pair that comes closest to its epsilon, and how much was tried."""
    losses = [(_loss(each["loss"]), _promised(each)) for each in counts]
    loss, (name_of, amount) = max(
        losses, key=lambda pair: pair[0] / float(pair[1][1]), default=(0.0, ("epsilon", Fraction(1)))
    )
    broken = sum(_natural(each["violations"]) for each in counts)
    return MechanismEvidence(
        mechanism=mechanism,
        tested_as=name,
        pairs=sum(_natural(each["pairs"]) for each in counts),
        loss=loss,
        promised=f"{name_of} {_figures(amount)}",
        attacks=sum(_natural(each["tried"]) > 0 for each in attacks),
        violations=broken + sum(each["verdict"] == "violation" for each in attacks),
    )


def _promised(count: Any) -> tuple[str, Fraction]:
    """What a case was compared with."""
    return "rho" if _text(count["way"]).endswith("in rho") else "epsilon", Fraction(_text(count["epsilon"]))


def _figures(amount: Fraction) -> str:
    """A number as it is where that is short, else three figures of it."""
    return str(amount) if len(str(amount)) <= _SHORT else f"about {float(amount):.3g}"


def _loss(value: object) -> float:
    """A loss as a report writes it: a number, or that it is infinite."""
    if value == "infinite":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise TypeError
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _natural(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value
