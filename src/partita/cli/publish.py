"""`partita publish` and what belongs to it, from `init` and `check` to `sign` and `verify`."""

from __future__ import annotations

import argparse
import glob
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from partita.cli import common
from partita.cli.spec import (
    DELIMITER,
    Entries,
    Spec,
    add_columns,
    add_request,
    described,
    open_entries,
    reading,
    requested,
    schema_of,
    spec_of,
    template,
)
from partita.errors import InvalidParameter, check
from partita.html import with_interval
from partita.public.records import (
    Record,
    column_records,
    name_view,
    specials,
    sum_records,
    unread_records,
    view_records,
)

if TYPE_CHECKING:
    from partita.answer import Answer
    from partita.public.release import Release
    from partita.public.sums.view import SumView
    from partita.public.tables.summary import TableSummary

_PATIENCE: Final = 2.0  # seconds that a receipt may take before progress is shown

_UNPROTECTED: Final = "none: made with injected noise, it protects nobody"
_ONE_LINE: Final = "no field of the CSV files holds a line feed: every line is counted as one row"
"""What a steward states who publishes CSV files. It is not checked: an error would tell about rows."""


def declare_publish(commands: common.Commands) -> None:
    """The data, what to publish, who pays, and where the release goes."""
    says = "publish columns of a table, once; the release may be copied and asked without limit"
    parser = common.command(
        commands,
        "publish",
        run_publish,
        says,
        example="partita publish people.parquet --spec release.toml -o people.release.parquet \\\n"
        "      --epsilon 1 --ledger budget.db --dataset people",
    )
    parser.add(
        "DATA",
        (
            "Parquet, CSV or JSON lines files, or a pattern; the publisher of CSV states that no field "
            "holds a line feed, since every line is one row: convert other files to Parquet first"
        ),
        nargs="+",
    )
    add_request(parser)
    parser.add("-o --output FILE", "the release; must not exist yet", required=True)
    parser.add("--ledger FILE", "the ledger that is debited before noise is drawn")
    parser.add("--dataset NAME", "whose budget pays; needed with --ledger")
    parser.add("--key KEY", "makes the command repeatable: the same key charges once")
    parser.add("--part COLUMN=VALUE", "count these rows only, and pay for that part", type=_part)


def run_publish(options: common.Options) -> common.Outcome:
    """Publish, and say what was promised and paid."""
    from partita.publish.publish import phase, publish

    if options.dataset is not None and options.ledger is None:
        raise argparse.ArgumentTypeError("--dataset names a budget in a ledger; pass --ledger too")
    spec = spec_of(options)
    _warn_unchecked(options, spec)
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


# `partita check`: exact numbers about the rows, for the steward alone.
def declare_check(commands: common.Commands) -> None:
    """The data, and the columns that it should have."""
    says = "count, exactly and for the steward alone, the rows that a spec cannot read; nothing is spent"
    parser = common.command(
        commands, "check", run_check, says, example="partita check people.parquet --spec release.toml"
    )
    parser.add("DATA", "Parquet, CSV or JSON lines files, or a pattern", nargs="+")
    add_columns(parser)


def run_check(options: common.Options) -> common.Outcome:
    """Check, and note that it was done, which is public; the exit code does not depend on what was found."""
    from partita.publish.check import check, note_check

    spec = spec_of(options)
    schema, read = schema_of(options, spec), reading(options, spec)
    person = options.person or spec.person
    found = check(options.data if len(options.data) > 1 else options.data[0], schema, person=person, **read)
    note_check(options.data, schema, read)
    return common.Outcome(str(found), [found.to_json()])


def _warn_unchecked(options: common.Options, spec: Spec) -> None:
    """Say on stderr if no check of this spec was noted: a public fact, whatever the rows are."""
    from partita.publish.check import was_checked

    if not was_checked(options.data, schema_of(options, spec), reading(options, spec)):
        common.say(
            "note: no check of this spec and these files was run here; `partita check` says, at no cost, "
            "which rows the spec cannot read"
        )


@common.argument
def _part(text: str) -> tuple[str, str]:
    column, separator, value = text.partition("=")
    check(separator, "part", "must be COLUMN=VALUE", given=text, fix="write for example region=north")
    return column, value


def _receipt(
    options: common.Options, release: Release, dataset: str | None, *, stored: bool
) -> common.Outcome:
    from partita.ledger.postgres import shown
    from partita.public.file_entries import chosen_entries, guarantee_entries

    ledger = None if options.ledger is None else shown(options.ledger)
    tables = _summarize_tables(release)
    conditions = [_ONE_LINE] if _names_csv(options.data) else []
    debit, left = _describe_debit(options.ledger, dataset)
    unread = unread_records(release)
    lines = [
        *_unread_lines(release, unread),
        ("release", options.output),
        ("guarantee", str(release.guarantee or _UNPROTECTED)),
        *(("rows", f"only where {part['column']} is {part['value']!r}") for part in _part_records(release)),
        *_chosen_lines(release),
        *(("stated", condition) for condition in conditions),
        *(("view", f"{name_view(view)}, by {view.mechanism}") for view in release.published),
        *(line for column in release.columns for line in _column_lines(release, column)),
        *(line for view in release.sums for line in _sum_lines(view)),
        *(line for _, summary in tables for line in summary.lines()),
        *(("single", line) for line in _label_lines(release)),
        ("paid", f"stored already; nothing was charged now. It was paid {debit}" if stored else debit),
    ]
    return common.Outcome.of(
        common.table(lines, left=2),
        unread=unread,
        path=options.output,
        guarantee=guarantee_entries(release.guarantee),
        part=next(iter(_part_records(release)), None),
        contributions=chosen_entries(release.provenance.contributions),
        stated=conditions,
        views=view_records(release),
        columns=column_records(release),
        sums=sum_records(release),
        tables=[{"view": name, **summary.to_json()} for name, summary in tables],
        ledger=ledger,
        dataset=dataset,
        left=left,
    )


def _chosen_lines(release: Release) -> Iterator[tuple[str, str]]:
    """How many rows of a person count, if that was chosen."""
    chosen = release.provenance.contributions
    if chosen is not None:
        yield "rows", f"of a person at most {chosen}"


def _unread_lines(release: Release, unread: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Which part of the rows is invalid or other, by released numbers; or that they do not say."""
    if not unread:
        yield "unread", "this release does not say how many rows are invalid or other: no column was counted"
    for share in unread:
        found = "not determinable: too few rows for the noise"
        if share["share"] is not None:
            found = "{share:.2%} of rows, 95% from {low:.2%} to {high:.2%}".format_map(share)
        yield "unread", f"{share['column']} is {share['cell']}: {found}"


def _names_csv(data: Sequence[str]) -> bool:
    """Whether one of these paths or patterns names CSV files, by the endings of names alone."""
    matches = (glob.glob(path, recursive=True) if glob.has_magic(path) else [] for path in data)
    names = [*data, *chain.from_iterable(matches)]
    return any(name.lower().removesuffix(".gz").endswith(".csv") for name in names)


def _part_records(release: Release) -> list[Record]:
    """The part that was counted, or none for everybody."""
    part = release.provenance.part
    return [] if part is None else [{"column": part[0], "value": part[1]}]


def _column_lines(release: Release, column: str) -> Iterator[tuple[str, str]]:
    """A column, its noisy special cells, and a hint where one of them holds more than the axis."""
    from partita.public.base import describe_domain  # loads NumPy, which help does not need

    beside = specials(release, column)
    yield "column", f"{column}, {describe_domain(release.slice(column).domain)}"
    yield "beside", _counts(beside)
    valued = release.count({column: (None, None)})
    for name in ("invalid", "other"):
        if name in beside and beside[name].value > valued.value + 4 * beside[name].error:
            hint = f"more rows of {column} are {name} than have a value: check the source and the domain"
            yield "hint", hint


def _sum_lines(view: SumView) -> Iterator[tuple[str, str]]:
    """A summed column, and its noisy special cells."""
    from partita.public.base import describe_domain

    yield "summed", f"{view.column}, {describe_domain(view.domain)}"
    yield "beside", _counts(view.specials) or "special cells were not counted"


def _summarize_tables(release: Release) -> list[tuple[str, TableSummary]]:
    """What each table release tells, by the name of its view: a function of released numbers."""
    from partita.public.tables.graph import TableGraphRelease
    from partita.public.tables.summary import TableSummary
    from partita.public.views import BoxView

    return [
        (name_view(view), TableSummary.of(view.columns, view.boxes))
        for view in release.views
        if isinstance(view, BoxView) and isinstance(view.boxes, TableGraphRelease)
    ]


def _label_lines(release: Release) -> Iterator[str]:
    """How far off a single label is, of every column whose labels were counted one by one."""
    from partita.public.boxes.viewed_boxes import ViewedBoxesRelease
    from partita.public.tables.summary import describe_labels, summarize_labels
    from partita.public.views import BoxView

    for view in release.views:
        if isinstance(view, BoxView) and isinstance(view.boxes, ViewedBoxesRelease):
            rows = view.boxes.answer(view.boxes.everything).value
            yield from describe_labels(
                [
                    summarize_labels(view.columns[axis], view.boxes.axes[axis], column.view.scale, rows)
                    for axis, column in view.boxes.columns.items()
                ]
            )


def _counts(cells: Mapping[str, Answer]) -> str:
    return ", ".join(f"{name} {with_interval(each.value, each.interval())}" for name, each in cells.items())


def _describe_debit(ledger: str | None, dataset: str | None) -> tuple[str, Record | None]:
    """Who paid, in words, and what is left of that budget."""
    from partita.ledger.ledger import Ledger
    from partita.ledger.postgres import shown

    if ledger is None or dataset is None:
        return "not recorded: no ledger was named", None
    left = Ledger(ledger).balance(dataset).left
    text = f"by dataset {dataset!r} in {shown(ledger)}, which has {left} left"
    return text, common.amount_record(left)


# `partita init`: a commented spec from a schema, never from values.
def declare_init(commands: common.Commands) -> None:
    """Schemas, and where the spec goes."""
    says = "write a commented spec of a release from a schema, never from values"
    parser = common.command(
        commands,
        "init",
        run_init,
        says,
        example='partita init "age:integer(0,120)" "salary:real(0,1e6,step=0.01)" -o release.toml',
    )
    says = "name:type(bounds), or a Parquet, Arrow or CSV file, of which only names and types are read"
    parser.add("SCHEMA", says, nargs="+")
    parser.add(*DELIMITER)
    parser.add("-o --output FILE", "default: %(default)s", default="release.toml")
    parser.add(*common.FORCE)


def run_init(options: common.Options) -> common.Outcome:
    """Write the spec; say what is left to fill in."""
    columns = _describe_schemas(options.schema, options.delimiter)
    written = template(columns, options.delimiter).encode()
    common.write_whole(options.output, written, overwrite=options.force)
    missing = [f"columns.{name}.{key}" for name, entries in columns.items() for key in open_entries(entries)]
    text = _describe_spec(options.output, missing)
    return common.Outcome.of(text, path=options.output, columns=list(columns), missing=missing)


def _describe_schemas(schemas: Sequence[str], delimiter: str | None) -> dict[str, Entries]:
    try:
        return described(schemas, delimiter or ",")
    except InvalidParameter as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _describe_spec(path: str, missing: list[str]) -> str:
    if not missing:
        return f"wrote {path}; it is complete"
    lines = [f"wrote {path}; fill in, from public knowledge and never from the data:", *missing]
    if any(entry.endswith(".type") for entry in missing):
        header = "names were taken from the first line of a file: check that it is a header, and not a person"
        lines.append(header)
    return "\n".join(lines)


# `partita keygen`, `sign` and `verify`: who published a release.
def declare_keys(commands: common.Commands) -> None:
    """A pair of keys, and what each of them is for."""
    says = "make a pair of keys to sign releases with"
    parser = common.command(commands, "keygen", _keygen, says, example="partita keygen")
    for name, meaning in (("private", "keep it secret"), ("public", "hand it out")):
        parser.add(f"--{name} FILE", f"{meaning}; default: %(default)s", default=f"{name}.pem")
    _declare(commands, "sign", _sign, "sign a release, in place", key="private")
    _declare(commands, "verify", _verify, "check that a release is whole and who signed it", key="public")


def _declare(commands: common.Commands, name: str, run: common.Action, says: str, *, key: str) -> None:
    example = f"partita {name} people.release.parquet --key {key}.pem"
    parser = common.command(commands, name, run, says, example=example)
    parser.add("RELEASE")
    parser.add("--key FILE", f"the {key} key", required=True)


def _keygen(options: common.Options) -> common.Outcome:
    from partita.public.file import generate_key

    generate_key(options.private, options.public)
    text = f"wrote {options.private}, to be kept secret, and {options.public}, to be handed out"
    return common.Outcome.of(text, private=options.private, public=options.public)


def _sign(options: common.Options) -> common.Outcome:
    from partita.public.file import sign

    sign(options.release, options.key)
    return common.Outcome.of(f"signed {options.release}", path=options.release, signed=True)


def _verify(options: common.Options) -> common.Outcome:
    from partita.public.file import verify

    verify(options.release, options.key)
    text = f"{options.release} is whole, and the owner of {options.key} signed it"
    return common.Outcome.of(text, path=options.release, verified=True)


# `partita mechanisms`: what `--mechanism` can name, and what sums are published with.
def declare_mechanisms(commands: common.Commands) -> None:
    """It takes nothing."""
    says = "list the mechanisms that columns can be published with"
    common.command(commands, "mechanisms", run_mechanisms, says, example="partita mechanisms")


def run_mechanisms(options: common.Options) -> common.Outcome:
    """Every mechanism, the first sentence about it and its options; a new one is found by itself."""
    from partita.trusted.mechanisms import catalogue
    from partita.trusted.mechanisms.options import options_of

    several, queries = catalogue.box_mechanisms(), catalogue.query_mechanisms()
    kinds = {"one": catalogue.axis_mechanisms(), "several": several, "sums": catalogue.sum_mechanisms()}
    lines, records = [("mechanism", "columns", "says", "options")], list[Record]()
    for columns, known in (kinds | {"queries": queries}).items():
        for name, kind in sorted(known.items()):
            says = (inspect.getdoc(kind) or "").partition("\n")[0]
            options_here = {each.name: each.takes for each in options_of(kind).values()}
            lines.append((name, columns, says, ", ".join(options_here)))
            records.append({"mechanism": name, "columns": columns, "says": says, "options": options_here})
    return common.Outcome(common.table(lines, left=4), records)


# `partita plan`: what a release would cost and how well it would answer, without any data.
def declare_plan(commands: common.Commands) -> None:
    """What to publish, and guesses about the data that are public."""
    says = "show mechanism, cost, expected error and size of a release; no private data is touched"
    parser = common.command(
        commands, "plan", run_plan, says, example="partita plan --spec release.toml --epsilon 1 --rows 100000"
    )
    add_request(parser)
    parser.add("--rows N", "a public guess; may be repeated", action="append", type=common.whole("rows"))
    says = "compare a real column in a view of its own with this step; may be repeated"
    parser.add("--step STEP", says, action="append")
    common.add_beta(parser, "how often a bound that is proved before any data may fail")
    parser.add("--simulate FILE", "measure errors on this file, which must be PUBLIC: no budget pays")
    says = "with --simulate: a question or want that matters, asked of many releases; may be repeated"
    parser.add("--question QUESTION", says, action="append")
    says = "with --question: of so many releases; default: %(default)s"
    parser.add("--times N", says, type=common.whole("times"), default=20)


def run_plan(options: common.Options) -> common.Outcome:
    """Plan, and try the plan out on public data if some is named; the result says that it is not private."""
    from partita.publish.plan import plan, simulate

    spec = spec_of(options)
    request = requested(options, spec)
    planned = plan(**request, rows=options.rows, steps=options.step, beta=options.beta)
    if options.simulate is None:
        if options.question:
            raise argparse.ArgumentTypeError("--question is asked of simulated releases; pass --simulate too")
        return common.Outcome(f"{planned} No data was touched.", [planned.to_json()])
    asked = {"questions": options.question, "times": options.times}
    simulated = simulate(planned, options.simulate, **asked, **reading(options, spec))
    return common.Outcome(f"{planned}\n\n{simulated}", [planned.to_json() | simulated.to_json()])
