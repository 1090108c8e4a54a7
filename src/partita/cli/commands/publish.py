"""`partita publish`: columns of a table, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.cli.arguments import Commands, Options, argument, command
from partita.cli.output import Outcome, Record, table
from partita.cli.request import add_request, reading, requested, spec_of
from partita.cli.said import guarantee_record, guarantee_said
from partita.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.releases.release import Release

__all__ = ["declare", "run"]


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
        "data", nargs="+", metavar="DATA", help="Parquet, CSV or JSON lines files, or a pattern"
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
    from partita.publishing import publish

    spec = spec_of(options)
    dataset = options.dataset or spec.dataset
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
    return _receipt(options, release, dataset)


@argument
def _part(text: str) -> tuple[str, str]:
    column, separator, value = text.partition("=")
    if not separator:
        raise InvalidParameter(
            "part", "must be COLUMN=VALUE", given=text, fix="write for example region=north"
        )
    return column, value


def _receipt(options: Options, release: Release, dataset: str | None) -> Outcome:
    debit, left = _paid(options.ledger, dataset, release)
    lines = [
        ("release", options.output),
        ("guarantee", guarantee_said(release.guarantee)),
        *(("rows", f"only where {part['column']} is {part['value']!r}") for part in _parts(release)),
        *(("column", f"{view.column}, {view.domain}, by {view.mechanism}") for view in release.views),
        ("paid", debit),
    ]
    return Outcome.of(
        table(lines, left=2),
        path=options.output,
        guarantee=guarantee_record(release.guarantee),
        part=next(iter(_parts(release)), None),
        columns=[_column(view.column, view.mechanism, view.domain.to_spec()) for view in release.views],
        ledger=options.ledger,
        dataset=dataset,
        left=left,
    )


def _parts(release: Release) -> list[Record]:
    """The part that was counted, or none for everybody."""
    part = release.provenance.part
    return [] if part is None else [{"column": part[0], "value": part[1]}]


def _paid(ledger: str | None, dataset: str | None, release: Release) -> tuple[str, Record | None]:
    """Who paid, in words, and what is left of that budget."""
    from partita.ledger import Ledger

    if ledger is None or dataset is None:
        return "by nobody: no ledger was named, so this spending is not recorded", None
    left = Ledger(ledger).balance(dataset).left
    said = f"by dataset {dataset!r} in {ledger}, which has {left} left"
    return said, {"epsilon": left.epsilon, "delta": left.delta}


def _column(name: str, mechanism: str, domain: object) -> Record:
    return {"column": name, "mechanism": mechanism, "domain": domain}
