"""`partita publish`: columns of a table, once."""

from __future__ import annotations

import argparse
import glob
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from partita.cli.common import Commands, Options, Outcome, argument, command, whole, with_error, write_whole
from partita.cli.spec import (
    Columns,
    add_request,
    described,
    open_entries,
    reading,
    requested,
    spec_of,
    template,
)
from partita.errors import check
from partita.public.records import Record, column_records, named, specials, sum_records, view_records

if TYPE_CHECKING:
    from partita.answer import Answer
    from partita.public.release import Release
    from partita.public.sums.view import SumView

# `partita init`: a commented spec from a schema, never from values.


def declare_init(commands: Commands) -> None:
    """Schemas, and where the spec goes."""
    declared = command(
        commands,
        "init",
        run_init,
        says="write a commented spec of a release from a schema, never from values",
        example='partita init "age:integer(0,120)" "salary:real(0,1e6,step=0.01)" -o release.toml',
    )
    declared.add_argument(
        "schema",
        nargs="+",
        metavar="SCHEMA",
        help="name:type(bounds), or a Parquet, Arrow or CSV file, of which only names and types are read",
    )
    declared.add_argument(
        "-o", "--output", default="release.toml", metavar="FILE", help="default: %(default)s"
    )
    declared.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def run_init(options: Options) -> Outcome:
    """Write the spec; say what is left to fill in."""
    columns = argument(described)(options.schema)
    write_whole(options.output, template(columns).encode(), overwrite=options.force)
    missing = _missing(columns)
    return Outcome.of(
        _said(options.output, missing), path=options.output, columns=list(columns), missing=missing
    )


def _missing(columns: Columns) -> list[str]:
    return [f"columns.{name}.{key}" for name, entries in columns.items() for key in open_entries(entries)]


def _said(path: str, missing: list[str]) -> str:
    if not missing:
        return f"wrote {path}; it is complete"
    lines = [f"wrote {path}; fill in, from public knowledge and never from the data:", *missing]
    if any(entry.endswith(".type") for entry in missing):
        lines.append(
            "names were taken from the first line of a file: check that it is a header, and not a person"
        )
    return "\n".join(lines)


# `partita keygen`, `sign` and `verify`: who published a release.


def declare_keys(commands: Commands) -> None:
    """A pair of keys, and what each of them is for."""
    declared = command(
        commands,
        "keygen",
        _keygen,
        says="make a pair of keys to sign releases with",
        example="partita keygen",
    )
    for name, meaning in (("private", "keep it secret"), ("public", "hand it out")):
        declared.add_argument(
            f"--{name}", default=f"{name}.pem", metavar="FILE", help=f"{meaning}; default: %(default)s"
        )
    _declare(commands, "sign", _sign, key="private", says="sign a release, in place")
    _declare(
        commands, "verify", _verify, key="public", says="check that a release is whole and who signed it"
    )


def _declare(
    commands: Commands, name: str, run: Callable[[Options], Outcome], *, key: str, says: str
) -> None:
    declared = command(
        commands, name, run, says=says, example=f"partita {name} people.release.parquet --key {key}.pem"
    )
    declared.add_argument("release", metavar="RELEASE")
    declared.add_argument("--key", required=True, metavar="FILE", help=f"the {key} key")


def _keygen(options: Options) -> Outcome:
    from partita.public.file import generate_key

    generate_key(options.private, options.public)
    text = f"wrote {options.private}, to be kept secret, and {options.public}, to be handed out"
    return Outcome.of(text, private=options.private, public=options.public)


def _sign(options: Options) -> Outcome:
    from partita.public.file import sign

    sign(options.release, options.key)
    return Outcome.of(f"signed {options.release}", path=options.release, signed=True)


def _verify(options: Options) -> Outcome:
    from partita.public.file import verify

    verify(options.release, options.key)
    text = f"{options.release} is whole, and the owner of {options.key} signed it"
    return Outcome.of(text, path=options.release, verified=True)


# `partita mechanisms`: what `--mechanism` can name, and what sums are published with.


def declare_mechanisms(commands: Commands) -> None:
    """It takes nothing."""
    command(
        commands,
        "mechanisms",
        run_mechanisms,
        says="list the mechanisms that columns can be published with",
        example="partita mechanisms",
    )


def run_mechanisms(options: Options) -> Outcome:
    """Every mechanism and the first sentence about it; a new one is found by itself."""
    from partita.public.base import table
    from partita.trusted.mechanisms.catalogue import (
        axis_mechanisms,
        box_mechanisms,
        query_mechanisms,
        sum_mechanisms,
    )

    kinds = {
        "one": axis_mechanisms(),
        "several": box_mechanisms(),
        "sums": sum_mechanisms(),
        "queries": query_mechanisms(),
    }
    records = [
        {"mechanism": name, "columns": columns, "says": _first_line(kind)}
        for columns, known in kinds.items()
        for name, kind in sorted(known.items())
    ]
    return Outcome(table([tuple(records[0]), *(tuple(each.values()) for each in records)], left=3), records)


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


# `partita plan`: what a release would cost and how well it would answer, without any data.


def declare_plan(commands: Commands) -> None:
    """What to publish, and guesses about the data that are public."""
    declared = command(
        commands,
        "plan",
        run_plan,
        says="show mechanism, cost, expected error and size of a release; no private data is touched",
        example="partita plan --spec release.toml --epsilon 1 --rows 100000",
    )
    add_request(declared)
    declared.add_argument(
        "--rows", action="append", type=whole("rows"), metavar="N", help="a public guess; may be repeated"
    )
    declared.add_argument(
        "--step",
        action="append",
        metavar="STEP",
        help="compare a real column in a view of its own with this step; may be repeated",
    )
    declared.add_argument(
        "--simulate", metavar="FILE", help="measure errors on this file, which must be PUBLIC: no budget pays"
    )


def run_plan(options: Options) -> Outcome:
    """Plan, and try the plan out on public data if some is named; the result says that it is not private."""
    from partita.publish.plan import plan, simulate

    spec = spec_of(options)
    planned = plan(**requested(options, spec), rows=options.rows, steps=options.step)
    if options.simulate is None:
        return Outcome(f"{planned} No data was touched.", [planned.to_json()])
    simulated = simulate(planned, options.simulate, **reading(options, spec))
    return Outcome(f"{planned}\n\n{simulated}", [planned.to_json() | simulated.to_json()])


_PATIENCE: Final = 2.0
"""Seconds that a receipt may take in silence."""

_ONE_LINE: Final = "no field of the CSV files holds a line feed: every line is counted as one row"
"""What a steward states who publishes CSV files. It is not checked: an error would tell about rows."""


def declare_publish(commands: Commands) -> None:
    """The data, what to publish, who pays, and where the release goes."""
    declared = command(
        commands,
        "publish",
        run_publish,
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


def run_publish(options: Options) -> Outcome:
    """Publish, and say what was promised and paid."""
    from partita.publish.publish import phase, publish

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
    from partita.public.base import table
    from partita.public.file_entries import guarantee_entries

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
    from partita.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    if ledger is None or dataset is None:
        return "by nobody: no ledger was named, so this spending is not recorded", None
    left = Ledger(ledger).balance(dataset).left
    said = f"by dataset {dataset!r} in {shown(ledger)}, which has {left} left"
    return said, {"epsilon": left.epsilon, "delta": left.delta}
