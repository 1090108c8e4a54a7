"""`partita ledger`: budgets opened and looked at; only `publish` spends."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from partita.cli import common
from partita.errors import LedgerError
from partita.guarantee import Guarantee, short
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.ledger.entries import Debit, Terms
    from partita.ledger.ledger import Ledger

_TERMS: Final = ("epsilon", "delta", "neighbors", "unit", "contributions", "constant")


def declare(commands: common.Commands) -> None:
    """One act opens a budget, the others look at it."""
    acts = common.command_group(commands, "ledger", "open budgets, and see what is left of them")
    _declare_open(acts)
    _act(acts, "balance", _balance, "show what a dataset has spent, and what is left")
    _act(acts, "entries", _entries, "list every debit of a dataset")
    _declare_forecast(acts)
    _act(acts, "datasets", _datasets, "list every dataset and its terms", dataset=False)


def _act(
    acts: common.Commands, name: str, run: common.Action, says: str, *, dataset: bool = True, needs: str = ""
) -> common.CommandParser:
    example = f"partita ledger {name}{' people' if dataset else ''}{needs} --ledger budget.db"
    parser = common.command(acts, name, run, says, example=example)
    place = "a file, or postgresql://user@host/database; default: %(default)s"
    parser.add("--ledger PLACE", place, default="budget.db")
    if dataset:
        parser.add("DATASET")
    return parser


def _declare_open(acts: common.Commands) -> None:
    parser = _act(acts, "open", _open, "give a dataset its budget, once and for all", needs=" --epsilon 3")
    parser.add("--epsilon E", "the total", type=common.epsilon)
    parser.add("--delta D", "beside epsilon; default: %(default)s, for pure privacy", default="0")
    parser.add("--rho R", "the total in zero-concentrated privacy, in place of epsilon", type=common.rho)
    parser.add("--unit", "whom it protects; default: %(default)s", choices=common.UNITS, default="row")
    rows = "the most rows a person has, where that is public"
    parser.add("--contributions K", rows, type=common.whole("contributions"))
    parser.add("--neighbors", "default: %(default)s", choices=common.NEIGHBORS, default="add-remove")
    constant = "a column that never differs between rows of a person; may be repeated"
    parser.add("--constant COLUMN", constant, action="append", default=[])


def _declare_forecast(acts: common.Commands) -> None:
    says = "say how many more releases a dataset can pay for"
    parser = _act(acts, "forecast", _forecast, says, needs=" --epsilon 1")
    parser.add("--epsilon E", "of each release", type=common.epsilon)
    parser.add("--rho R", "of each release, in place of epsilon", type=common.rho)
    parser.add("--unit", "of each release; default: the dataset's", choices=common.UNITS)
    parser.add("--contributions K", "default: 1", type=common.whole("contributions"))
    parser.add("--neighbors", "default: the dataset's", choices=common.NEIGHBORS)


def _open(options: common.Options) -> common.Outcome:
    from partita.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    common.check_one_budget(options.epsilon, options.rho)
    terms = {name: getattr(options, name) for name in (*_TERMS, "rho")}
    terms["constant"] = tuple(options.constant)
    opened = Ledger(options.ledger).open(options.dataset, **terms)
    text = f"dataset {options.dataset!r} has {_format_terms(opened)} in {shown(options.ledger)}"
    return common.Outcome.of(text, **_terms_record(options.dataset, opened))


def _balance(options: common.Options) -> common.Outcome:
    balance = existing_ledger(options.ledger).balance(options.dataset)
    amounts = {"total": balance.total, "spent": balance.spent, "left": balance.left}
    lines = [(name, str(amount)) for name, amount in amounts.items()]
    lines += [(f"at delta {short(point.delta)}", point.words) for point in balance.curve]
    record: Record = {name: common.amount_record(each) for name, each in amounts.items()}
    if balance.curve:
        points = [asdict(point) for point in balance.curve]
        record = {**record, "curve": points}
    return common.Outcome.of(common.table(lines, left=2), dataset=options.dataset, **record)


def _entries(options: common.Options) -> common.Outcome:
    entries = existing_ledger(options.ledger).entries(options.dataset)
    heads = ("entry", "day", "charged", "state", "what", "part", "key")
    text = common.table([heads, *map(_entry_line, entries)], left=7) if entries else "no debit yet"
    return common.Outcome(text, [_entry_record(each) for each in entries])


def _forecast(options: common.Options) -> common.Outcome:
    ledger = existing_ledger(options.ledger)
    terms = _terms(ledger, options.dataset)
    protected: dict[str, Any] = {
        "neighbors": options.neighbors or terms.neighbors,
        "unit": options.unit or terms.unit,
        "contributions": options.contributions or 1,
    }
    common.check_one_budget(options.epsilon, options.rho)
    if options.rho is None:
        each, budget = Guarantee(epsilon=options.epsilon, **protected), {"epsilon": options.epsilon}
    else:
        each, budget = Guarantee.concentrated(rho=options.rho, **protected), {"rho": options.rho}
    number = ledger.forecast(options.dataset, each)
    [(name, amount)] = budget.items()
    text = f"dataset {options.dataset!r} can pay for {number} more releases of {name} {amount}"
    return common.Outcome.of(text, dataset=options.dataset, **budget, releases=number)


def _datasets(options: common.Options) -> common.Outcome:
    datasets = existing_ledger(options.ledger).datasets()
    text = common.table(((name, _format_terms(terms)) for name, terms in datasets.items()), left=2)
    return common.Outcome(text, [_terms_record(name, terms) for name, terms in datasets.items()])


def existing_ledger(path: str) -> Ledger:
    """A ledger to look at; one that does not exist is an error and is not created."""
    from partita.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    ledger = Ledger(path)
    if not ledger.exists():
        raise LedgerError(
            f"ledger {shown(path)!r} does not exist; check the path, or open it with `partita ledger open`"
        )
    return ledger


def _terms(ledger: Ledger, dataset: str) -> Terms:
    """The terms of a dataset."""
    ledger.balance(dataset)  # raises UnknownDataset unless it is open
    return ledger.datasets()[dataset]


def _format_terms(terms: Terms) -> str:
    rows = f" of at most {terms.contributions} rows" if terms.contributions else ""
    constant = f", constant: {', '.join(terms.constant)}" if terms.constant else ""
    return f"{terms.total} under {terms.neighbors} per {terms.unit}{rows}{constant}"


def _terms_record(dataset: str, terms: Terms) -> Record:
    rho = {"rho": terms.rho} if terms.rho else {}
    return {"dataset": dataset} | {name: getattr(terms, name) for name in _TERMS} | rho


def _entry_line(entry: Debit) -> tuple[str, ...]:
    part = "" if entry.part is None else "=".join(entry.part)
    charged = str(entry.charged)
    return str(entry.number), entry.day, charged, entry.state, entry.what, part, entry.key or ""


def _entry_record(entry: Debit) -> Record:
    same = {name: getattr(entry, name) for name in ("dataset", "what", "day")}
    amounts = common.amount_record(entry.charged)
    return {
        "entry": entry.number,
        **same,
        **amounts,
        "part": entry.part,
        "key": entry.key,
        "state": entry.state,
    }
