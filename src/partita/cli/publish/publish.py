"""`partita publish`: columns of a table, once."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from partita.cli.common.arguments import Commands, Options, argument, command
from partita.cli.common.output import Outcome, with_error
from partita.cli.spec.request import add_request, reading, requested, spec_of
from partita.errors.checks import check
from partita.public.records import Record, column_records, named, specials, sum_records, view_records

if TYPE_CHECKING:
    from partita.answer import Answer
    from partita.public.release.release import Release
    from partita.public.sums.view.sum_view import SumView

_PATIENCE: Final = 2.0
"""Seconds that a receipt may take in silence."""

_ONE_LINE: Final = "no field of the CSV files holds a line feed: every line is counted as one row"
"""What a steward states who publishes CSV files. It is not checked: an error would tell about rows."""


def declare(commands: Commands) -> None:
    """The data, what to publish, who pays, and where the release goes."""
    declared = command(
        commands,
        "publish",
        run,
        says="publish columns of a table, once; the release may be copied and asked without limit",
        example="partita publish people.parquet --spec release.toml -o people.release.parquet \\\n"
        "      --epsilon 1 --ledger budget.db --dataset people",
    )
    declared.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help="Parquet, CSV or JSON lines files, or a pattern; whoever publishes CSV states that no field "
        "holds a line feed, since every line is one row: convert other files to Parquet first",
    )
    add_request(declared)
    declared.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the release; must not exist yet"
    )
    declared.add_argument("--ledger", metavar="FILE", help="the ledger that is debited before noise is drawn")
    declared.add_argument("--dataset", metavar="NAME", help="whose budget pays; needed with --ledger")
    declared.add_argument(
        "--key", metavar="KEY", help="makes the command repeatable: the same key charges once"
    )
    declared.add_argument(
        "--part", type=_part, metavar="COLUMN=VALUE", help="count these rows only, and pay for that part"
    )


def run(options: Options) -> Outcome:
    """Publish, and say what was promised and paid."""
    from partita.publish.publish.pipeline import publish
    from partita.publish.publish.progress import phase

    if options.dataset is not None and options.ledger is None:
        raise argparse.ArgumentTypeError("--dataset names a budget in a ledger; pass --ledger too")
    spec = spec_of(options)
    dataset, stored = options.dataset or spec.dataset, os.path.lexists(options.output)
    release = publish(
        options.data if len(options.data) > 1 else options.data[0],
        **requested(options, spec),
        **reading(options, spec),
        ledger=options.ledger,
        dataset=dataset,
        key=options.key,
        part=options.part,
        path=options.output,
    )
    with phase("writing the receipt", patience=_PATIENCE):
        return _receipt(options, release, dataset, stored=stored)


@argument
def _part(text: str) -> tuple[str, str]:
    column, separator, value = text.partition("=")
    check(separator, "part", "must be COLUMN=VALUE", given=text, fix="write for example region=north")
    return column, value


def _receipt(options: Options, release: Release, dataset: str | None, *, stored: bool) -> Outcome:
    from partita.ledger.postgres import shown
    from partita.public.base.figures import table
    from partita.public.file_entries.file_entries import guarantee_entries

    ledger = None if options.ledger is None else shown(options.ledger)
    conditions = [_ONE_LINE] if _names_csv(options.data) else []
    debit, left = _paid(options.ledger, dataset)
    lines = [
        ("release", options.output),
        ("guarantee", _promise(release)),
        *(("rows", f"only where {part['column']} is {part['value']!r}") for part in _parts(release)),
        *(("stated", condition) for condition in conditions),
        *(("view", f"{named(view)}, by {view.mechanism}") for view in release.published),
        *(line for column in release.columns for line in _column_lines(release, column)),
        *(line for view in release.sums for line in _sum_lines(view)),
        ("paid", f"stored already; nothing was charged now. It was paid {debit}" if stored else debit),
    ]
    return Outcome.of(
        table(lines, left=2),
        path=options.output,
        guarantee=guarantee_entries(release.guarantee),
        part=next(iter(_parts(release)), None),
        stated=conditions,
        views=view_records(release),
        columns=column_records(release),
        sums=sum_records(release),
        ledger=ledger,
        dataset=dataset,
        left=left,
    )


def _names_csv(data: Sequence[str]) -> bool:
    """Whether one of these paths or patterns names CSV files, by the endings of names alone."""
    matches = (glob.glob(path, recursive=True) if glob.has_magic(path) else [] for path in data)
    names = [*data, *chain.from_iterable(matches)]
    return any(name.lower().removesuffix(".gz").endswith(".csv") for name in names)


def _parts(release: Release) -> list[Record]:
    """The part that was counted, or none for everybody."""
    part = release.provenance.part
    return [] if part is None else [{"column": part[0], "value": part[1]}]


def _column_lines(release: Release, column: str) -> Iterator[tuple[str, str]]:
    """A column, its noisy special cells, and a hint where one of them holds more than the axis."""
    beside = specials(release, column)
    yield "column", f"{column}, {release.slice(column).domain}"
    yield "beside", _counts(beside)
    valued = release.count({column: (None, None)})
    for name in ("invalid", "other"):
        if name in beside and beside[name].value > valued.value + 4 * beside[name].error:
            yield (
                "hint",
                f"more rows of {column} are {name} than have a value: check the source and the domain",
            )


def _sum_lines(view: SumView) -> Iterator[tuple[str, str]]:
    """A summed column, and its noisy special cells."""
    yield "summed", f"{view.column}, {view.domain}"
    yield "beside", _counts(view.specials)


def _counts(cells: Mapping[str, Answer]) -> str:
    return ", ".join(f"{name} {with_error(each.value, each.error)}" for name, each in cells.items())


def _promise(release: Release) -> str:
    """The guarantee in words, or that there is none."""
    none = "none: made with injected noise, it protects nobody"
    return none if release.guarantee is None else str(release.guarantee)


def _paid(ledger: str | None, dataset: str | None) -> tuple[str, Record | None]:
    """Who paid, in words, and what is left of that budget."""
    from partita.ledger.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    if ledger is None or dataset is None:
        return "by nobody: no ledger was named, so this spending is not recorded", None
    left = Ledger(ledger).balance(dataset).left
    said = f"by dataset {dataset!r} in {shown(ledger)}, which has {left} left"
    return said, {"epsilon": left.epsilon, "delta": left.delta}
