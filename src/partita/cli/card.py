"""`partita card`: papers for legal and data-protection teams, from a release, its ledger and an audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli import common
from partita.cli.ledger import existing_ledger
from partita.errors import InvalidParameter, InvalidRelease, check

if TYPE_CHECKING:
    from partita.ledger.entries import Amount, Debit
    from partita.public.card_sources import AuditEvidence, BudgetAmount, BudgetDebit, BudgetHistory
    from partita.public.release import Release

_PAPERS: Final = ("dataset", "registry", "nist")
_DEPTHS: Final = ("quick", "standard", "deep")
_LARGEST_REPORT: Final = 2**26  # bytes of an audit report: a deep one has some hundred kilobytes
_NAMES: Final = {
    "title": "of the data product; default: the name of its dataset",
    "organization": "who publishes it",
    "organization-type": "Government, Industry or Nonprofit",
    "contact": "whom to ask",
    "author": "who hands the entry in",
    "license": "under which the file may be used",
    "region": "whose law applies, or which the data are about",
    "sector": "Technology, Healthcare, Education, Government, Energy or Finance",
    "purpose": "what it was published for",
}
"""Names are all that a card is told; they are options, each with what it says."""


def declare(commands: common.Commands) -> None:
    """The release, what speaks for it, and the names."""
    says = "write the papers of a release: dataset card, registry entry, sheet along NIST SP 800-226"
    example = "partita card people.release.parquet --organization 'Town of Bari' -o papers"
    parser = common.command(commands, "card", run, says, example=example)
    parser.add("RELEASE")
    parser.add("--part PAPER", "one of them; default: all", choices=_PAPERS)
    parser.add("--ledger PLACE", "adds every debit of the dataset, and what is left")
    audit = parser.add_mutually_exclusive_group()
    parser.add("--audit FILE", "adds a report of `partita audit --json`", group=audit)
    says = "audits the mechanisms of the release now, and adds the report"
    parser.add("--run-audit DEPTH", says, choices=_DEPTHS, group=audit)
    parser.add("--key FILE", "checks the signature, with this public key")
    for name, about in _NAMES.items():
        parser.add(f"--{name} TEXT", about)
    parser.add("-o --output DIR", "a folder for files; default: Markdown on stdout")
    parser.add("--force", "replace files of an earlier card in the folder")
    parser.set_defaults(interrupted="a card spends nothing")


def run(options: common.Options) -> common.Outcome:
    """Read everything, then write everything."""
    from partita.public.card import Card
    from partita.public.card_sources import CardNames
    from partita.public.file import inspect

    given = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in _NAMES}
    names = common.argument(lambda _: CardNames(**given))("")
    _check_path(options.release)
    release, file = inspect(options.release, options.key)
    card = Card(
        release=release,
        names=names,
        file=file,
        budget=_read_budget(options.ledger, release) if options.ledger else None,
        audit=_find_audit(options, release),
    )
    if options.output is None:
        return common.Outcome(card.to_markdown(options.part).rstrip("\n"), [card.to_json()])
    return _write(card.files(), options)


def _check_path(path: str) -> None:
    """Outputs of a counter are public too, and something else."""
    rule = "is what a counter published, which has no card"
    if path.endswith(".outputs"):
        raise InvalidRelease(f"release {path!r}", rule, fix="see `partita stream info`")


def _write(files: Mapping[str, str], options: common.Options) -> common.Outcome:
    """Write the files that were asked for; none of them if one is there."""
    folder, wanted = Path(options.output), _FILES[options.part]
    fix = "choose another, or pass --force"
    check(not folder.exists() or folder.is_dir(), "output", "must be a folder", given=str(folder), fix=fix)
    taken = [name for name in wanted if (folder / name).exists()]
    fix = f"{', '.join(taken)} would be replaced; pass --force, or choose another"
    check(not taken or options.force, "output", "must not hold these files", given=str(folder), fix=fix)
    folder.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        common.write_whole(str(folder / name), files[name].encode(), overwrite=options.force)
    text = f"wrote {', '.join(wanted)} to {folder}"
    return common.Outcome.of(text, path=str(folder), files=list(wanted))


_FILES: Final[Mapping[str | None, tuple[str, ...]]] = {
    None: ("README.md", "registry.yaml", "registry.md", "nist-800-226.md", "card.json"),
    "dataset": ("README.md",),
    "registry": ("registry.yaml", "registry.md"),
    "nist": ("nist-800-226.md",),
}
"""The files of each paper."""


# What a ledger says about a dataset, in plain values: the public side cannot reach it.
def _read_budget(place: str, release: Release) -> BudgetHistory:
    """Every debit of the dataset of a release, and what was spent after each."""
    from partita.ledger.entries import Spending
    from partita.public.card_sources import BudgetHistory

    dataset, fix = release.provenance.dataset, "leave it out: no budget was named when the release was made"
    if dataset is None:
        rule = "must be about the dataset of the release, which names none"
        raise InvalidParameter("ledger", rule, given="a ledger", fix=fix)
    ledger = existing_ledger(place)
    balance, terms = ledger.balance(dataset), ledger.datasets()[dataset]
    sums: dict[Any, Amount] = {}
    debits = []
    for entry in ledger.entries(dataset):
        sums[entry.part] = sums[entry.part] + entry.charged if entry.part in sums else entry.charged
        debits.append(_debit(entry, Spending(dict(sums)).spent))
    return BudgetHistory(
        dataset=dataset,
        neighbors=terms.neighbors,
        unit=terms.unit,
        contributions=terms.contributions,
        constant=terms.constant,
        total=_amount(balance.total),
        spent=_amount(balance.spent),
        left=_amount(balance.left),
        debits=tuple(debits),
    )


def _debit(entry: Debit, spent: Amount) -> BudgetDebit:
    from partita.public.card_sources import BudgetDebit

    return BudgetDebit(
        number=entry.number,
        day=entry.day,
        what=entry.what,
        part=entry.part,
        stated=entry.stated,
        charged=_amount(entry.charged),
        spent=_amount(spent),
        state=entry.state,
    )


def _amount(amount: Amount) -> BudgetAmount:
    from partita.public.card_sources import BudgetAmount

    return BudgetAmount(epsilon=amount.epsilon, delta=amount.delta, text=str(amount), rho=amount.rho)


# What an audit says about the mechanisms of a release, from a report or from one that is made now.
def _find_audit(options: common.Options, release: Release) -> AuditEvidence | None:
    from partita.public.card_sources import AuditEvidence

    if options.audit is not None:
        data = _read_report(options.audit)
        digest = hashlib.sha256(data).hexdigest()
        return AuditEvidence.of(_parse_report(data), _tested_as(release), sha256=digest)
    if options.run_audit is None:
        return None

    from partita.audit.base import public_mechanisms
    from partita.audit.engine import audit

    tested = _tested_as(release)
    known = [name for name in dict.fromkeys(tested.values()) if name in public_mechanisms()]
    rule, fix = "must have a mechanism of Partita", "audit your own by `partita audit --mechanism`"
    check(known, "release", rule, given=", ".join(tested), fix=fix)
    report = audit(depth=options.run_audit, only=known).record()
    return AuditEvidence.of(report, tested)


def _tested_as(release: Release) -> dict[str, str]:
    """The mechanisms of a release, each with the name of the class that the auditor tests."""
    from partita.trusted.mechanisms import catalogue

    known = {getattr(each, "name", ""): name for name, each in catalogue.mechanisms().items()}
    return {view.mechanism: known.get(view.mechanism, view.mechanism) for view in release.published}


def _read_report(path: str) -> bytes:
    rule, fix = "must be a file with a report of `partita audit --json`", "check the path"
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_REPORT + 1)
    except OSError:
        raise InvalidParameter("audit", rule, given=path, fix=fix) from None
    check(len(data) <= _LARGEST_REPORT, "audit", rule, given=path, fix=fix)
    return data


def _parse_report(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None  # refused as anything else that is no report
