"""The sheet of a release along NIST SP 800-226, from the top of its pyramid to the bottom.

SP 800-226 evaluates a guarantee by a pyramid: at its top are epsilon and the unit of privacy, below them what
can undermine them (algorithms and their code, utility and bias, the trust model, security), at its bottom how
the data were collected. A part is only as good as what lies below it. Partita answers the top and most of the
middle. The bottom is the publisher's, and the sheet says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

from partita.guarantee import ADD_REMOVE, Guarantee, short
from partita.public.base import ReleaseKind
from partita.public.card_sources import BudgetHistory, MechanismEvidence
from partita.public.file_entries import Published
from partita.public.markup import code, prose
from partita.public.records import name_view
from partita.public.sums.view import SumView
from partita.public.tables.graph import TableGraphRelease
from partita.public.views import BoxView

if TYPE_CHECKING:
    from partita.public.card import Card

Source: TypeAlias = Literal["release", "ledger", "audit", "library", "publisher", "nobody"]

_LARGE_EPSILON: Final = 5  # e^5 is 148; the limit of the warning
_DELTAS: Final = (Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**12))
_GROUPS: Final = (2, 4, 10)  # a couple, a family, a class


@final
@dataclass(frozen=True)
class Fact:
    """A question of a form, its answer in Markdown, and what the answer follows from."""

    question: str
    answer: str
    source: Source


@final
@dataclass(frozen=True)
class Section:
    """Questions that belong together; `level` is that of the pyramid."""

    title: str
    level: str
    facts: tuple[Fact, ...]


def nist_sections(card: Card) -> tuple[Section, ...]:
    """The sheet: a section for each block of the pyramid, then the evidence."""
    return (
        Section("The guarantee", "top", tuple(_guarantee_facts(card))),
        Section("The unit of privacy", "top", tuple(unit_facts(card))),
        Section("Composition, and the budget over time", "top", tuple(budget_facts(card))),
        Section("Algorithms and their correctness", "middle", tuple(_algorithm_facts(card))),
        Section("Test evidence", "middle", tuple(_evidence_facts(card))),
        Section("Utility and bias", "middle", tuple(_utility_facts(card))),
        Section("Trust model", "middle", tuple(_trust_facts(card))),
        Section("Side channels and security", "middle", tuple(_security_facts(card))),
        Section("Data collection exposure", "bottom", tuple(_collection_facts(card))),
        Section("Known limits of this release", "all", tuple(limit_facts(card))),
    )


# --- the top: what is promised, about whom, and how it adds up ---------------------------------


def variant(guarantee: Guarantee) -> str:
    """The variant of differential privacy, as the registry names it."""
    if guarantee.pure:
        return "Pure DP"
    return "Zero-concentrated DP" if guarantee.rho else "Approximate DP"


def _guarantee_facts(card: Card) -> Iterator[Fact]:
    guarantee = card.guarantee
    yield Fact("What is promised", card.promise, "release")
    yield Fact("Variant", f"{variant(guarantee)}. {_variant_words(guarantee)}", "release")
    if guarantee.pure:
        yield Fact("What an observer can learn at most", _odds_words(guarantee), "release")
    if guarantee.epsilon > _LARGE_EPSILON:
        words = (
            f"Epsilon is above {_LARGE_EPSILON}: the probability of an outcome may change by a factor of "
            "more than 148. The number alone promises little."
        )
        yield Fact("Size of epsilon", words, "release")
    yield Fact("Groups of people", _group_words(guarantee), "release")
    words = (
        "Somebody who sees the release, keeps it for ever, knows all other rows and the code, and has any "
        "computing power that does not break AES-256."
    )
    yield Fact("Against whom", words, "library")
    words = (
        "What is true of the population as a whole. A statistic may say much about a person who never was in "
        "the data; no epsilon limits that."
    )
    yield Fact("What is not promised", words, "library")


def _variant_words(guarantee: Guarantee) -> str:
    if guarantee.pure:
        beside = f" It also has rho {short(guarantee.rho)}, by which it adds up." if guarantee.rho else ""
        return f"Delta is zero: the factor holds for every outcome, without exception.{beside}"
    if guarantee.rho:
        points = "; ".join(
            f"epsilon {short(guarantee.epsilon_at(delta))} at delta {short(delta)}" for delta in _DELTAS
        )
        return (
            f"The promise is rho {short(guarantee.rho)}. From it follows a curve of epsilon and delta: "
            f"{points}."
        )
    return (
        f"With a probability of at most {short(guarantee.delta)} the factor may be exceeded, by any amount."
    )


def _odds_words(guarantee: Guarantee) -> str:
    """How sure anybody can become who gave even odds, rounded up to a tenth of a percent."""
    sure = 1.0 if guarantee.epsilon > 30 else 1 / (1 + math.exp(-float(guarantee.epsilon)))
    shown = "almost 100%" if sure > 0.9989 else f"at most {math.ceil(1000 * sure) / 10:.1f}%"
    what = (
        f"whether one given {guarantee.unit} is in the table"
        if guarantee.neighbors == ADD_REMOVE
        else f"which of two values one given {guarantee.unit} has"
    )
    return (
        f"Whoever gives even odds to {what}, and knows all others, is {shown} sure after seeing the release."
    )


def _group_words(guarantee: Guarantee) -> str:
    unit = {"row": "rows", "person": "persons", "event": "events", "user": "users"}[guarantee.unit]
    if guarantee.rho and not guarantee.pure:
        shown = ", ".join(f"{k} {unit}: rho {short(k * k * guarantee.rho)}" for k in _GROUPS)
    else:
        shown = ", ".join(f"{k} {unit}: epsilon {short(k * guarantee.epsilon)}" for k in _GROUPS)
    more = "" if guarantee.pure or guarantee.rho else " Delta grows even faster."
    return f"Together they are protected less. {shown}.{more}"


def unit_facts(card: Card) -> Iterator[Fact]:
    """Who is protected, and what neighbours are."""
    guarantee, person = card.guarantee, card.release.provenance.person
    yield Fact("Whose data are hidden", _unit_words(card), "release")
    yield Fact("Neighbouring tables", neighbour_words(guarantee), "release")
    if guarantee.same_rows:
        words = (
            f"How many {guarantee.unit}s there are: neighbours have equally many, so this number is not "
            "hidden."
        )
        yield Fact("What neighbours share", words, "release")
    if person is not None:
        words = (
            f"By the column {code(person)}. That different people have different ids, and one person one "
            "id, is believed and was not checked."
        )
        yield Fact("How persons are told apart", words, "publisher")


def _unit_words(card: Card) -> str:
    guarantee = card.guarantee
    if guarantee.unit == "row":
        return (
            "One row (event-level protection). Rows are not joined by people: somebody with k rows may "
            "lose k times epsilon."
        )
    if guarantee.unit == "person":
        return "One person, with all rows (user-level protection)."
    return f"One {guarantee.unit}."


def rows_words(guarantee: Guarantee) -> str:
    """How many rows of a person count, with the verb."""
    most = guarantee.contributions
    return f"{most} rows count" if most > 1 else "1 row counts"


def neighbour_words(guarantee: Guarantee) -> str:
    """When two tables are neighbours."""
    unit, add = guarantee.unit, guarantee.neighbors == ADD_REMOVE
    if unit in ("row", "event"):
        change = (
            f"one is the other with one {unit} more" if add else f"they differ in the values of one {unit}"
        )
        bound = ""
    else:
        other = f"they differ in the rows of one {unit}, in their values or number"
        change = f"one is the other without all rows of one {unit}" if add else other
        bound = f" However many these are, at most {rows_words(guarantee)} in each view."
    name = "unbounded" if add else "bounded"
    return f"Two tables are neighbours if {change} ({name} differential privacy).{bound}"


def budget_facts(card: Card) -> Iterator[Fact]:
    """How the views of a release add up, and releases with others."""
    release = card.release
    views, number = release.published, len(release.published)
    chosen = getattr(release.provenance, "contributions", None)
    if number > 1 or chosen is not None:
        parts = [f"{code(name_view(view))} {prose(price_words(view))}" for view in views]
        parts += (
            [] if chosen is None else [f"the choice of the bound on rows epsilon {short(chosen.epsilon)}"]
        )
        words = (
            f"All of it is about the same {card.guarantee.unit}s and adds up to the promise of the "
            f"release: {'; '.join(parts)}."
        )
    else:
        words = "One view spends all of it."
    yield Fact("Within this release", words, "release")
    yield Fact(
        "Questions", "Answers are computed from the file. They cost no privacy, however many.", "library"
    )
    if release.provenance.part is not None:
        column, value = release.provenance.part
        words = (
            f"Only rows where {code(column)} is {code(value)} were counted. Releases about other values "
            f"of that column do not add up with this one, if no {card.guarantee.unit} has rows with two "
            "values of it."
        )
        yield Fact("Part of the table", words, "release")
    yield from _history_facts(card)


def _history_facts(card: Card) -> Iterator[Fact]:
    recorded, history = card.release.provenance.recorded, card.budget
    if not recorded:
        words = (
            "Not recorded. No ledger was debited for this release, so nothing counts how it adds up with "
            "other releases about the same people."
        )
        yield Fact("Debit", words, "release")
    if history is None:
        if recorded:
            words = "Debited in a ledger, before any noise was drawn."
            yield Fact("Debit", words, "release")
        words = (
            "No ledger was given to this card. Every other release about the same people adds to this one."
        )
        yield Fact("Releases before and after", words, "nobody")
        return
    yield from _ledger_facts(card, history)


def _ledger_facts(card: Card, history: BudgetHistory) -> Iterator[Fact]:
    numbers = history.numbers_of(card.release)
    if card.release.provenance.recorded:
        which = (
            f"entry {numbers[0]}"
            if len(numbers) == 1
            else f"one of the entries {', '.join(map(str, numbers))}"
        )
        words = f"It is {which} of the ledger of {code(history.dataset)}, made before any noise was drawn."
        yield Fact("Debit", words, "ledger")
    per = f"{history.neighbors} neighbours, per {history.unit}"
    rows = f" of at most {history.contributions} rows" if history.contributions else ""
    words = f"{prose(history.total.words)} in all, for {per}{rows}. The total never changes."
    yield Fact("Budget of the dataset", words, "ledger")
    number = len(history.debits)
    spent = f"{number} debit{'s' * (number != 1)}, together {prose(history.spent.words)}"
    words = (
        f"{spent}. Left: {prose(history.left.text)}. Whoever is in all of these tables is protected by the "
        "sum that was spent, not by one release alone."
    )
    yield Fact("Spent so far", words, "ledger")
    if any(each.part for each in history.debits):
        words = (
            "Debits about different values of one column count once, with the largest: a "
            f"{history.unit} is in one of them only. That this holds is believed, not checked."
        )
        yield Fact("Parts", words, "ledger")
    words = (
        "Outputs about the same people that were not charged to this ledger, here or elsewhere. A ledger "
        "is not signed; an old copy would forget debits."
    )
    yield Fact("What the ledger cannot see", words, "library")


def price_words(view: Published) -> str:
    """What a view costs, without saying again for whom."""
    return "" if view.guarantee is None else view.guarantee.price


# --- the middle: code, evidence, utility, trust, security --------------------------------------


def _algorithm_facts(card: Card) -> Iterator[Fact]:
    release = card.release
    for view in release.published:
        why = f" {prose(view.why)}" if view.why else ""
        yield Fact(f"Mechanism of {code(name_view(view))}", f"{code(view.mechanism)}.{why}", "release")
    if release.provenance.options:
        listed = ", ".join(f"{code(name)} = {code(value)}" for name, value in release.provenance.options)
        yield Fact("Options that were asked for", f"{listed}.", "release")
    behind = {name: keys for kind in ReleaseKind.kinds().values() for name, keys in kind.papers.items()}
    keys = dict.fromkeys(key for view in release.published for key in behind.get(view.mechanism, ()))
    papers = (
        f"Published algorithms: {', '.join(keys)} (docs/references.md)." if keys else "No paper is named."
    )
    yield Fact("What they stand on", papers, "release")
    for own in card.own:
        words = (
            f"{code(own)} is no mechanism of Partita. Its guarantee is what the publisher says of it; "
            "nothing on this sheet about proofs, noise or tests is about it."
        )
        yield Fact("A mechanism of the publisher's own", words, "publisher")
    if card.ours:
        yield from _library_facts()


def _library_facts() -> Iterator[Fact]:
    """What is true of all mechanisms of Partita."""
    words = (
        "Every mechanism of Partita has a proof for integer noise (docs/proofs), by hand, checked "
        "against the shipped code by enumeration on small universes. No review by outsiders is on "
        "record."
    )
    yield Fact("Proofs", words, "library")
    words = (
        "Noise is drawn as integers from exact laws, and epsilon and scales are fractions: no "
        "floating-point number touches a value before the release. Answers are floating-point numbers, "
        "computed afterwards."
    )
    yield Fact("Floating point", words, "library")
    words = (
        "AES-256-CTR under a key from the kernel of the operating system. There is no seed. The promise "
        "holds against whoever cannot tell that keystream from uniform words."
    )
    yield Fact("Source of randomness", words, "library")


def _evidence_facts(card: Card) -> Iterator[Fact]:
    audit, version = card.audit, card.release.provenance.version
    if audit is None:
        words = "No audit report was given to this card. `partita audit --json` makes one."
        yield Fact("Audit", words, "nobody")
        return
    about = audit.context
    fits = f", and {audit.samplers} fits of samplers to their laws were tested" if audit.samplers else ""
    words = (
        f"Audit of {code(about['subject'])} at the depth {code(about['depth'])} on {prose(about['day'])}: "
        f"**{audit.verdict}**. {audit.pairs:,} pairs of neighbouring inputs were compared{fits}. To "
        f"repeat it: {code(about['command'])}."
    )
    yield Fact("Audit", words, "audit")
    for each in audit.violations:
        yield Fact("Violation", prose(each), "audit")
    same = about["subject"] == f"partita {version}"
    made = f"The release was made with Partita {prose(version)}, "
    words = (
        f"{made}{'the version that was audited' if same else '**another subject** than that of the audit'}."
    )
    yield Fact("Does it cover this release", words, "audit")
    for evidence in audit.mechanisms:
        yield Fact(f"Mechanism {code(evidence.mechanism)}", _evidence_words(evidence), "audit")
    for mechanism in audit.missing:
        yield Fact(f"Mechanism {code(mechanism)}", "**Not in this report.**", "audit")
    if not audit.samplers:
        words = "The samplers of noise were not tested in this report; one of the whole version tests them."
        yield Fact("Samplers", words, "audit")
    platform = f"{prose(about['python'])} on {prose(about['machine'])}; {prose(about['libraries'])}."
    yield Fact("Where it ran", platform, "audit")
    for line in audit.not_shown:
        yield Fact("What it does not show", prose(line), "audit")
    if audit.sha256 is not None:
        yield Fact("SHA-256 of the report", code(audit.sha256), "audit")


def _evidence_words(evidence: MechanismEvidence) -> str:
    loss = "infinite" if math.isinf(evidence.loss) else f"{evidence.loss:.3f}"
    pairs = f"{evidence.pairs:,} pairs, the largest loss {loss} where {evidence.promised} is promised"
    number = evidence.violations
    violations = f"**{number} violation{'s' * (number > 1)}**" if number else "no violation"
    return (
        f"Tested as {code(evidence.tested_as)}: {pairs}; {evidence.attacks} kinds of attacks; {violations}."
    )


def _utility_facts(card: Card) -> Iterator[Fact]:
    if card.rows is not None:
        yield Fact("Rows that were counted", f"{card.rows[0].upper()}{card.rows[1:]}.", "release")
    for line in card.errors:
        yield Fact("Accuracy", line, "release")
    for line in card.rules:
        yield Fact("Rule of counting", line, "release")
    words = (
        "Noise is about as large in small groups as in large ones, so that relative errors are larger in "
        "small groups. Decisions about small groups need the interval of each answer."
    )
    yield Fact("Bias that noise makes", words, "library")
    words = "Who is missing from the table, and what was recorded wrongly, and about whom."
    yield Fact("Bias of the data and of people", words, "nobody")


def _trust_facts(card: Card) -> Iterator[Fact]:
    words = (
        f"Central: the publisher, {card.names.shown('organization')}, holds all rows and adds the noise. "
        "Everybody in the table has to trust the publisher with the rows, and to have run the library as "
        "it is."
    )
    yield Fact("Model", words, "library")
    words = (
        "Not interactive: one file was published. Readers ask the file and never the table, and do not "
        "have to be trusted."
    )
    yield Fact("Queries", words, "library")
    words = (
        "That the noise was drawn as stated. A file says how it was made; nobody who has only the file "
        "can check that."
    )
    yield Fact("What readers must believe", words, "publisher")
    yield Fact("Who vouches for the file", _signature_words(card), "release")


def _signature_words(card: Card) -> str:
    file = card.file
    if file is None:
        return "This card was made from a release in memory; whether its file is signed is not known."
    if file.signed_by is None:
        return "Nobody: the file is not signed."
    key = f"the owner of the Ed25519 key {code(file.signed_by)}"
    if file.verified:
        return f"Signed by {key}. The signature was checked when this card was made."
    return f"It names {key}. The signature was **not checked** for this card; `partita verify` checks it."


def _security_facts(card: Card) -> Iterator[Fact]:
    words = (
        "Not covered by the promise. Run time depends on the data: nobody but the publisher may start a "
        "release or time it. That a release was made, and its day, are public."
    )
    yield Fact("Time", words, "library")
    words = (
        "Not covered by the promise. Memory, swap and core dumps of the publisher's process hold rows, "
        "as do shared hosts."
    )
    yield Fact("Memory and shared machines", words, "library")
    words = (
        "The size of the file and the number of its parts are part of the output, and covered by the promise."
    )
    yield Fact("Sizes", words, "library")
    words = (
        "No message of the library holds a value of the data, but for short text that is passed in place "
        "of a path. In `publish` no value of a row raises an error."
    )
    yield Fact("Errors and logs of the library", words, "library")
    checksum = "none" if card.checksum is None else code(card.checksum)
    words = (
        f"Checksum over its specification and numbers: {checksum}. A reader refuses a file that does not "
        "match it."
    )
    if card.file is not None:
        words += f" SHA-256 of all bytes: {code(card.file.sha256)}."
    yield Fact("Integrity of the file", words, "release")
    words = "Who could read the rows, the keys and the ledger, how they are stored, and how long."
    yield Fact("Security and access control", words, "nobody")


# --- the bottom, and the limits ----------------------------------------------------------------


def _collection_facts(card: Card) -> Iterator[Fact]:
    words = (
        "How the rows were collected, on what legal ground, who saw them before, and when they are deleted. "
        "Differential privacy protects what is published, and nothing before."
    )
    yield Fact("Exposure before the release", words, "nobody")
    origin, columns = card.release.provenance, ", ".join(map(code, card.columns))
    ids = f"; {code(origin.person)}, to tell persons apart" if origin.person is not None else ""
    part = f"; {code(origin.part[0])}, to choose rows" if origin.part is not None else ""
    yield Fact("Columns that were read for it", f"{columns}{ids}{part}.", "release")


def limit_facts(card: Card) -> Iterator[Fact]:
    """What can still go wrong with this very release, or what its answers leave out."""
    release, guarantee = card.release, card.guarantee
    words = (
        "Columns, declared bounds, steps and labels, and epsilon are public. Whoever takes them from the "
        "data publishes that without noise. The file cannot show whether that was so for "
        f"{_columns_in_words(card)}."
    )
    yield Fact("Public parameters", words, "publisher")
    if release.provenance.person is not None:
        yield from _person_limits(card)
    if not guarantee.pure and not guarantee.rho:
        words = (
            f"With a probability of up to {short(guarantee.delta)} this release may reveal more than "
            "epsilon says."
        )
        yield Fact("Delta", words, "release")
    for view in release.published:
        if isinstance(view, BoxView) and isinstance(view.boxes, TableGraphRelease):
            yield Fact(f"Model of {code(name_view(view))}", _model_words(view.boxes), "release")
    if any(isinstance(view, SumView) for view in release.published):
        words = (
            "Noise hides the largest values of a sum. Each sum says which values it covers in full; standard "
            "errors do not include what it leaves out."
        )
        yield Fact("Sums", words, "release")
    if release.views:
        words = (
            "Intervals are a calibrated model of the noise, and can be too narrow for data made to break "
            "them. Guaranteed bounds hold for any data. Each of many intervals may fail by itself."
        )
        yield Fact("Intervals", words, "library")
    words = (
        "If the table was a CSV file: each line is one row, also inside of quotes. That no field holds a "
        "line feed is a statement of the publisher. The file does not say what the source was."
    )
    yield Fact("Source", words, "publisher")
    yield Fact(
        "More", "docs/limits.md and SECURITY.md of Partita have figures and advice for each limit.", "library"
    )


def _columns_in_words(card: Card) -> str:
    listed = list(card.columns)
    return ", ".join(map(code, listed[:6])) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")


def _person_limits(card: Card) -> Iterator[Fact]:
    guarantee = card.guarantee
    most, person = guarantee.contributions, code(card.release.provenance.person or "")
    words = (
        f"Of each person at most {rows_words(guarantee)} in each view. A public rule that looks at that "
        "person's rows alone leaves out the rest. How many were left out is secret, and no error or "
        "interval includes them."
    )
    yield Fact("Rows left out", words, "release")
    chosen = getattr(card.release.provenance, "contributions", None)
    if chosen is not None:
        yield Fact(
            "How that bound was chosen",
            f"{prose(str(chosen))}. The choice is a part of the promise.",
            "release",
        )
    worst = (
        f"{(most + 2) / most:.3g} times as many counted rows as the promise is about, with many such rows "
        "up to three times"
        if guarantee.neighbors == ADD_REMOVE
        else "up to twice as many counted rows as the promise is about"
    )
    words = (
        f"Rows without a readable value in {person} count as one person together. Somebody with rows "
        f"under an id and one row without may change {worst}. Whether there were such rows is not in the "
        "file."
    )
    yield Fact("Rows without an id", words, "library")


def _model_words(boxes: TableGraphRelease) -> str:
    columns = len(boxes.axes)
    pairs, measured = columns * (columns - 1) // 2, len(boxes.fit.pairs)
    inferred = (
        f"{measured} of {pairs} pairs of columns were measured; answers about the others are inferred by "
        "a model"
        if measured < pairs
        else f"All {pairs} pairs of columns were measured"
    )
    return (
        f"{inferred}. Three or more columns together come from the model, unless they were measured "
        "together. Audits under the same epsilon measured how far the model is off, and intervals "
        "include that; no theorem does. Every answer says whether it is measured or inferred."
    )
