"""`partita ledger`: budgets opened and looked at; only `publish` spends."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from partita.cli.common import NEIGHBORS, UNITS, Commands, Options, Outcome, command, epsilon, whole
from partita.errors import LedgerError
from partita.guarantee import Guarantee
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.ledger.entries import Debit, Terms
    from partita.ledger.ledger import Ledger


def declare(commands: Commands) -> None:
    """One act opens a budget, the others look at it."""
    group = commands.add_parser(
        "ledger", help="open budgets, and see what is left of them", allow_abbrev=False
    )
    acts = group.add_subparsers(title="acts", metavar="ACT", required=True)
    _declare_open(acts)
    _act(acts, "balance", _balance, says="show what a dataset has spent, and what is left")
    _act(acts, "entries", _entries, says="list every debit of a dataset")
    _declare_forecast(acts)
    _act(acts, "datasets", _datasets, says="list every dataset and its terms", dataset=False)


def _act(
    acts: Commands,
    name: str,
    run: Callable[[Options], Outcome],
    *,
    says: str,
    dataset: bool = True,
    needs: str = "",
) -> argparse.ArgumentParser:
    example = f"partita ledger {name}{' people' if dataset else ''}{needs} --ledger budget.db"
    declared = command(acts, name, run, says=says, example=example)
    declared.add_argument(
        "--ledger",
        default="budget.db",
        metavar="PLACE",
        help="a file, or postgresql://user@host/database; default: %(default)s",
    )
    if dataset:
        declared.add_argument("dataset", metavar="DATASET")
    return declared


def _declare_open(acts: Commands) -> None:
    declared = _act(
        acts, "open", _open, says="give a dataset its budget, once and for all", needs=" --epsilon 3"
    )
    declared.add_argument("--epsilon", type=epsilon, required=True, metavar="E", help="the total")
    declared.add_argument("--delta", default="0", metavar="D", help="default: %(default)s, for pure privacy")
    declared.add_argument(
        "--unit", choices=UNITS, default="row", help="whom it protects; default: %(default)s"
    )
    declared.add_argument(
        "--contributions",
        type=whole("contributions"),
        metavar="K",
        help="the most rows a person has, where that is public",
    )
    declared.add_argument("--neighbors", choices=NEIGHBORS, default="add-remove", help="default: %(default)s")
    declared.add_argument(
        "--constant",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column that never differs between rows of a person; may be repeated",
    )


def _declare_forecast(acts: Commands) -> None:
    declared = _act(
        acts,
        "forecast",
        _forecast,
        says="say how many more releases a dataset can pay for",
        needs=" --epsilon 1",
    )
    declared.add_argument("--epsilon", type=epsilon, required=True, metavar="E", help="of each release")
    declared.add_argument("--unit", choices=UNITS, help="of each release; default: the dataset's")
    declared.add_argument("--contributions", type=whole("contributions"), metavar="K", help="default: 1")
    declared.add_argument("--neighbors", choices=NEIGHBORS, help="default: the dataset's")


def _open(options: Options) -> Outcome:
    from partita.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    terms = Ledger(options.ledger).open(
        options.dataset,
        epsilon=options.epsilon,
        delta=options.delta,
        unit=options.unit,
        contributions=options.contributions,
        neighbors=options.neighbors,
        constant=tuple(options.constant),
    )
    text = f"dataset {options.dataset!r} has {_terms_said(terms)} in {shown(options.ledger)}"
    return Outcome.of(text, **_terms_record(options.dataset, terms))


def _balance(options: Options) -> Outcome:
    balance = _existing(options.ledger).balance(options.dataset)
    amounts = {"total": balance.total, "spent": balance.spent, "left": balance.left}
    text = _columns((name, str(amount)) for name, amount in amounts.items())
    record = {name: {"epsilon": each.epsilon, "delta": each.delta} for name, each in amounts.items()}
    return Outcome.of(text, dataset=options.dataset, **record)


def _entries(options: Options) -> Outcome:
    entries = _existing(options.ledger).entries(options.dataset)
    heads = ("entry", "day", "charged", "state", "what", "part", "key")
    text = _columns([heads, *map(_entry_line, entries)]) if entries else "no debit yet"
    return Outcome(text, [_entry_record(each) for each in entries])


def _forecast(options: Options) -> Outcome:
    ledger = _existing(options.ledger)
    terms = _terms(ledger, options.dataset)
    each = Guarantee(
        epsilon=options.epsilon,
        neighbors=options.neighbors or terms.neighbors,
        unit=options.unit or terms.unit,
        contributions=options.contributions or 1,
    )
    number = ledger.forecast(options.dataset, each)
    text = f"dataset {options.dataset!r} can pay for {number} more releases of epsilon {options.epsilon}"
    return Outcome.of(text, dataset=options.dataset, epsilon=options.epsilon, releases=number)


def _datasets(options: Options) -> Outcome:
    datasets = _existing(options.ledger).datasets()
    text = _columns((name, _terms_said(terms)) for name, terms in datasets.items())
    return Outcome(text, [_terms_record(name, terms) for name, terms in datasets.items()])


def _columns(rows: Iterable[Sequence[str]]) -> str:
    """A table of words."""
    from partita.public.base import table

    return table(rows, left=7)


def _existing(path: str) -> Ledger:
    """A ledger to look at: one that is not there is an error, and is not made."""
    from partita.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    ledger = Ledger(path)
    if not ledger.exists():
        raise LedgerError(
            f"ledger {shown(path)!r} does not exist; check the path, or open it with `partita ledger open`"
        )
    return ledger


def _terms(ledger: Ledger, dataset: str) -> Terms:
    """The terms of a dataset; the ledger itself refuses one that nobody opened."""
    ledger.balance(dataset)
    return ledger.datasets()[dataset]


def _terms_said(terms: Terms) -> str:
    rows = f" of at most {terms.contributions} rows" if terms.contributions else ""
    constant = f", constant: {', '.join(terms.constant)}" if terms.constant else ""
    return f"{terms.total} under {terms.neighbors} per {terms.unit}{rows}{constant}"


def _terms_record(dataset: str, terms: Terms) -> Record:
    return {
        "dataset": dataset,
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "neighbors": terms.neighbors,
        "unit": terms.unit,
        "contributions": terms.contributions,
        "constant": terms.constant,
    }


def _entry_line(entry: Debit) -> tuple[str, ...]:
    part = "" if entry.part is None else "=".join(entry.part)
    told = (str(entry.number), entry.day, str(entry.charged), entry.state, entry.what)
    return (*told, part, entry.key or "")


def _entry_record(entry: Debit) -> Record:
    return {
        "entry": entry.number,
        "dataset": entry.dataset,
        "what": entry.what,
        "day": entry.day,
        "epsilon": entry.charged.epsilon,
        "delta": entry.charged.delta,
        "part": entry.part,
        "key": entry.key,
        "state": entry.state,
    }
