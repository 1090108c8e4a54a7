"""A release described in TOML or in options, and the spec that `partita init` writes.

Numbers are read exactly: a number is what is written, never the nearest float.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

from partita.cli.common import (
    NEIGHBORS,
    CommandParser,
    Options,
    add_options,
    argument,
    epsilon,
    load_factory,
    rho,
    whole,
)
from partita.concentrated import positive
from partita.errors import InvalidParameter, SourceError, check, check_source, check_type
from partita.guarantee import positive_epsilon
from partita.numbers import rational

if TYPE_CHECKING:
    from partita.domain.base import Domain

Reader: TypeAlias = Callable[[object], object]

COLUMN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "integer": ("low", "high"),
    "real": ("low", "high", "step"),
    "date": ("start", "end"),
    "timestamp": ("start", "end", "resolution", "zone"),
    "category": ("labels",),
    "text": ("max_bytes", "alphabet"),
}
"""What each type of column must say, in the order in which a spec says it, but for `OPTIONAL` keys."""

OPTIONAL: Final = ("zone", "alphabet")
"""What a column may leave out."""

_OF_FILES: Final = ("column", "columns", "delimiter")
"""What a category may say beside that: where in a file its labels, or its paths, are."""
_OF_CATEGORY: Final = (*_OF_FILES, "levels")

_TABLES: Final = ("columns", "release", "csv")
_CSV: Final = ("delimiter", "header")
_DEFAULTS: Final = {"zone": "UTC"}
_LARGEST: Final = 2**20  # bytes of a spec; a larger file is data, taken for a spec by mistake
_FILL_IN: Final = "write it down from public knowledge, never from the data"


@final
@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a steward wrote down; None where the spec is silent."""

    columns: Mapping[str, Domain] = field(default_factory=dict)
    by: Sequence[str] | None = None
    views: Sequence[Sequence[str]] | None = None
    shares: Sequence[Fraction] | None = None
    together: Sequence[Sequence[str]] | None = None
    sums: Sequence[str] | None = None
    moments: Sequence[str] | None = None
    queries: Sequence[str] | None = None
    wants: Sequence[str] | None = None
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    person: str | None = None
    contributions: int | str | None = None
    neighbors: str | None = None
    mechanism: str | None = None
    options: Mapping[str, object] | None = None
    dataset: str | None = None
    delimiter: str | None = None
    header: Sequence[str] | None = None


def read_spec(path: str) -> Spec:
    """The spec in a file; anything that it should not say is refused, with the nearest that it may."""
    document = _parse(_content(path), path)
    _check_keys(document, _TABLES, f"{path}: ")
    columns, release, csv = (_table(document, name, path) for name in _TABLES)
    release_keys = [each.name for each in fields(Spec) if each.name not in ("columns", *_CSV)]
    return Spec(
        columns={name: domain(name, entries, where=path) for name, entries in columns.items()},
        **_entries(release, release_keys, f"{path}: release"),
        **_entries(csv, _CSV, f"{path}: csv"),
    )


def domain(name: str, entries: object, *, where: str) -> Domain:
    """The domain of one column, from entries such as type = "integer", low = 0, high = 120."""
    from partita.domain import domain_from_spec

    place = f"{where}: columns.{name}"
    entries = check_type(entries, Mapping, place, "must be a table", fix='write type = "integer" and so on')
    kind = _kind(entries, place)
    facts = {key: _exact(entries.get(key, _DEFAULTS.get(key))) for key in COLUMN_KEYS[kind]}
    if kind == "category":
        facts["labels"] = _labels(entries, place, Path(where).parent)
        if isinstance(facts["labels"], Mapping) or "levels" in entries:
            return _category(facts["labels"], entries, place)
    facts = {key: value for key, value in facts.items() if value is not None or key not in OPTIONAL}
    for key, value in facts.items():
        check(value is not None, f"{place}.{key}", "must be filled in", given=value, fix=_FILL_IN)
    try:
        return domain_from_spec({"kind": kind, **facts})
    except InvalidParameter as error:
        raise _move_error(error, f"{place}.{error.parameter}", entries.get(error.parameter)) from None


def _category(labels: Any, entries: Mapping[str, Any], place: str) -> Domain:
    """Labels below nodes; the columns of a file name the levels, unless the spec does."""
    from partita.domain.category import Category

    try:
        return Category(labels, levels=entries.get("levels", entries.get("columns", ())))
    except InvalidParameter as error:
        raise _move_error(error, f"{place}.{error.parameter}", entries.get(error.parameter)) from None


def _labels(entries: Mapping[str, Any], place: str, folder: Path) -> object:
    """The labels of a category, which are listed, or in a file that the spec names from its own folder.

    Labels below nodes are tables of tables, in the spec or made of the paths in a file.
    """
    from partita.domain.category import read_labels, read_paths

    labels = entries.get("labels")
    within = {key: entries[key] for key in _OF_FILES if key in entries}
    if not isinstance(labels, str):
        rule, fix = "must come with labels in a file", 'write labels = "labels.csv", or leave it out'
        for key, value in within.items():
            check(False, f"{place}.{key}", rule, given=value, fix=fix)
        return labels
    try:
        if "columns" in within:
            return read_paths(folder / labels, **within)
        return read_labels(folder / labels, **within)
    except InvalidParameter as error:
        given = entries.get(error.parameter)
        raise _move_error(error, f"{place}.{error.parameter}", given) from None


def _kind(entries: Mapping[str, Any], place: str) -> str:
    kind = entries.get("type")
    if not isinstance(kind, str) or kind not in COLUMN_KEYS:
        fix = _nearest(str(kind), tuple(COLUMN_KEYS))
        rule = f"must be one of {', '.join(COLUMN_KEYS)}"
        raise InvalidParameter(f"{place}.type", rule, given=kind, fix=fix)
    beside = _OF_CATEGORY if kind == "category" else ()
    _check_keys(entries, ("type", *COLUMN_KEYS[kind], *beside), f"{place}.")
    return kind


def _entries(table: Mapping[str, Any], known: Sequence[str], place: str) -> dict[str, Any]:
    """The entries of a table, each read by its reader, or as text."""
    _check_keys(table, known, f"{place}.")
    read = {}
    for key, value in table.items():
        try:
            read[key] = _READERS.get(key, _text)(value)
        except InvalidParameter as error:
            raise _move_error(error, f"{place}.{key}", value) from None
    return read


def _views(value: object) -> list[list[str]]:
    return [
        [view] if isinstance(view, str) else _names(view)
        for view in _list(value, '[["age"], ["age", "sex"]]')
    ]


def _sets(value: object) -> list[list[str]]:
    return [_names(each) for each in _list(value, '[["age", "salary"]]')]


def _contributions(value: object) -> int | str:
    """A number of rows, or the text of a private choice among several."""
    from partita.public.contributions import read_contributions

    found = read_contributions(value)
    return found if isinstance(found, int) else str(found)


@argument
def _parse_contributions(text: str) -> int | str:
    """The same from the command line."""
    return whole("contributions")(text) if text.lstrip("+-").isdigit() else _contributions(text)


def _options(value: object) -> dict[str, object]:
    """Options of the mechanism by their names; what each of them takes is checked with the mechanism."""
    fix = "write for example options = {branching = 16}"
    check_type(value, dict, "entry", "must be a table of options", fix=fix)
    return dict(cast(Mapping[str, object], value))


def _names(value: object) -> list[str]:
    return [_text(name) for name in _list(value, '["age"]')]


def _list(value: object, example: str) -> list[object]:
    fix = f"write for example {example}"
    check(isinstance(value, list) and value, "entry", "must be a list", given=value, fix=fix)
    return cast(list[object], value)


def _text(value: object) -> str:
    check(isinstance(value, str) and value, "entry", "must be text", given=value, fix="put it in quotes")
    return cast(str, value)


def _exact(value: object) -> object:
    """Dates and whole numbers as the text that a domain reads; floats were kept as text."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError):
        rule = "must be a file that you may read"
        raise InvalidParameter("spec", rule, given=path, fix="write one with `partita init`") from None
    fix = "shorten it"
    check(len(content) <= _LARGEST, "spec", f"must have at most {_LARGEST} bytes", given=path, fix=fix)
    return content


def _parse(content: bytes, path: str) -> dict[str, Any]:
    """The document. An error names only the place, since the file may be data taken for a spec by mistake."""
    try:
        return tomllib.loads(content.decode(), parse_float=str)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at (line \d+, column \d+)", str(error))
        rule = f"must be TOML, and stops being so at {place[1] if place else 'its end'}"
    except (ValueError, RecursionError):
        rule = "must be UTF-8 text, TOML of usual depth and length"
    raise InvalidParameter("spec", rule, given=path, fix="see docs/command-line.md") from None


def _table(document: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    entries = document.get(name, {})
    fix = f"write [{name}] and its entries below"
    return check_type(entries, Mapping, f"{path}: {name}", "must be a table", fix=fix)


def _check_keys(entries: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
    for key in entries:
        rule, fix = "must be a key of a spec", _nearest(key, known)
        check(key in known, f"{prefix}{key}", rule, given=key, fix=fix)


def _nearest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"choose among {', '.join(known)}"


def _move_error(error: InvalidParameter, place: str, given: object) -> InvalidParameter:
    """The same error, said of an entry of the file."""
    return InvalidParameter(place, error.rule, given=given, fix=error.fix)


_READERS: Final[Mapping[str, Reader]] = {
    "by": lambda value: [] if value == [] else _names(value),  # no keys: whole sums only
    "views": _views,
    "shares": lambda value: [positive_epsilon(share) for share in _list(value, '["1/2", "1/2"]')],
    "together": _sets,
    "sums": _names,
    "moments": _names,
    "queries": _names,
    "wants": _names,
    "epsilon": positive_epsilon,
    "rho": lambda value: positive(value, "rho", example='"1/8"'),
    "delta": lambda value: rational(value, "delta"),
    "contributions": lambda value: _contributions(value),
    "header": _names,
    "options": _options,
}

# Columns described in an argument, or by the schema of a file: names and types, never a value.
Entries: TypeAlias = Mapping[str, str | list[str]]
"""What is known about a column: its type, and as many of the type's keys as somebody parser."""

Columns: TypeAlias = Mapping[str, Entries]

_DESCRIBED: Final = re.compile(r"(?P<name>.+?):(?P<type>[a-z]+)(?:\((?P<bounds>.*)\))?", re.DOTALL)
_EXAMPLE: Final = "write for example age:integer(0,120), or name a .parquet or .csv file"


def described(arguments: Sequence[str], delimiter: str = ",") -> dict[str, Entries]:
    """The columns that the arguments describe, in their order; `delimiter` is that of CSV files.

    >>> described(["age:integer(0,120)", "salary:real"])
    {'age': {'type': 'integer', 'low': '0', 'high': '120'}, 'salary': {'type': 'real'}}
    """
    columns: dict[str, Entries] = {}
    for text in arguments:
        for name, entries in _columns(text, delimiter).items():
            fix = "leave one out"
            check(name not in columns, "schema", "must describe a column once", given=name, fix=fix)
            columns[name] = entries
    return columns


def open_entries(entries: Entries) -> list[str]:
    """The keys that the steward still has to fill in."""
    kind = entries.get("type")
    if not isinstance(kind, str):
        return ["type"]
    return [key for key in COLUMN_KEYS[kind] if key not in entries and key not in OPTIONAL]


def _columns(argument: str, delimiter: str) -> Columns:
    if Path(argument.lower().removesuffix(".gz")).suffix in _COLUMN_READERS:
        return _of_file(argument, delimiter)
    match = _DESCRIBED.fullmatch(argument)
    if match is None or not match["name"].isprintable():
        raise InvalidParameter("schema", "must be name:type(bounds) or a file", given=argument, fix=_EXAMPLE)
    entries = {"type": _type(match["type"]), **_bounds(match["type"], match["bounds"])}
    if not open_entries(entries):
        domain(match["name"], entries, where="schema")
    return {match["name"]: entries}


def _type(name: str) -> str:
    if name in COLUMN_KEYS:
        return name
    near = get_close_matches(name, COLUMN_KEYS, n=1)
    fix = f"did you mean {near[0]}?" if near else _EXAMPLE
    raise InvalidParameter("type", f"must be one of {', '.join(COLUMN_KEYS)}", given=name, fix=fix)


def _bounds(kind: str, text: str | None) -> dict[str, str | list[str]]:
    """Bounds in the order of the type's keys, or named as in step=0.01; a category has labels."""
    parts = [part.strip() for part in text.split(",")] if text and text.strip() else []
    if kind == "category":
        return {"labels": parts} if parts else {}
    bounds: dict[str, str | list[str]] = {}
    for place, part in enumerate(parts):
        key, value = _bound(kind, place, part)
        check(key not in bounds, key, "must be given once", given=part, fix="leave one out")
        bounds[key] = value
    return bounds


def _bound(kind: str, place: int, part: str) -> tuple[str, str]:
    keys = COLUMN_KEYS[kind]
    named, separator, value = part.partition("=")
    key = named.strip() if separator else keys[min(place, len(keys) - 1)]
    if key not in keys or place >= len(keys):
        fix = "write them in this order"
        raise InvalidParameter("bounds", f"of {kind} must be {', '.join(keys)}", given=part, fix=fix)
    return key, value.strip() if separator else part


def _of_file(path: str, delimiter: str) -> Columns:
    from partita.trusted.sources.base import find_files as find

    [file, *others] = find(path)
    check_source(not others, file.shown, "must be one file", fix="name one that has the columns of all")
    with file.reading() as stream:
        columns = _COLUMN_READERS[file.extension](stream, file.shown, delimiter)
    return {name: entries for name, entries in columns.items() if name.isprintable()}


def _read_parquet(stream: Any, shown: str, _: str) -> Columns:
    import pyarrow.parquet as pq

    return _of_schema(lambda: pq.read_schema(stream), shown)


def _of_arrow(stream: Any, shown: str, _: str) -> Columns:
    import pyarrow as pa

    def schema() -> Any:
        try:
            return pa.ipc.open_file(stream).schema
        except pa.ArrowInvalid:
            stream.seek(0)
            return pa.ipc.open_stream(stream).schema

    return _of_schema(schema, shown)


def _of_schema(read: Any, shown: str) -> Columns:
    from partita.trusted.sources.base import attempt

    unreadable = SourceError(shown, "must have a schema that can be read", fix="check that it is complete")
    fields = attempt(read, unreadable)
    return {field.name: _of_type(field.type) for field in fields if field.type.num_fields == 0}


def _of_type(arrow: Any) -> Entries:
    """What an Arrow type says by itself: a decimal has its step, a boolean its labels, a clock its zone."""
    import pyarrow as pa

    types = pa.types
    if types.is_boolean(arrow):
        return {"type": "category", "labels": ["false", "true"]}
    if types.is_decimal(arrow) and arrow.scale > 0:
        return {"type": "real", "step": f"1e-{arrow.scale}"}
    if types.is_timestamp(arrow):
        return {"type": "timestamp"} | ({"zone": arrow.tz} if arrow.tz else {})
    tests = {
        "integer": types.is_integer(arrow) or types.is_decimal(arrow),
        "real": types.is_floating(arrow),
        "date": types.is_date(arrow),
    }
    return {"type": next((name for name, fits in tests.items() if fits), "category")}


def _of_csv(stream: Any, shown: str, delimiter: str) -> Columns:
    """The names in the first line; text has no types."""
    from partita.trusted.sources.open import check_delimiter
    from partita.trusted.sources.text import split_fields as fields

    mark = check_delimiter(delimiter)
    names = fields(stream.readline(2**20).rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf"), mark)
    if names is None or not all(names):
        raise SourceError(shown, "must start with a line of column names", fix="describe the columns instead")
    return {name.decode(errors="replace"): {} for name in names}


_COLUMN_READERS: Final[Mapping[str, Any]] = {
    ".parquet": _read_parquet,
    ".csv": _of_csv,
    ".arrow": _of_arrow,
    ".feather": _of_arrow,
}

# What is to be published, from a spec and from flags; a flag counts for more.
DELIMITER: Final = "--delimiter SIGN", "between the fields of a CSV file; default: a comma"
_EITHER: Final = ("person", "contributions", "neighbors", "mechanism")


def add_columns(parser: CommandParser) -> None:
    """The options that say which columns there are, and how rows are read."""
    parser.add("--spec FILE", "a spec in TOML; `partita init` writes one")
    says = "a column, for example age:integer(0,120); may be repeated"
    parser.add("--column NAME:TYPE(BOUNDS)", says, action="append", default=[])
    parser.add("--person COLUMN", "the column of ids; default: a row is a person")
    parser.add(*DELIMITER)


def add_request(parser: CommandParser) -> None:
    """The options that say what to publish."""
    add_columns(parser)
    parser.add(
        "--by COLUMNS",
        (
            "publish these columns together, for example age,salary; default: every column; "
            'with --sum, "" for whole sums only'
        ),
        type=_parse_keys,
    )
    says = "publish these columns together and others apart; may be repeated, in place of --by"
    parser.add("--view COLUMNS", says, action="append", type=_parse_names)
    says = "columns of a table that matter in combination, for example age,salary; may be repeated"
    parser.add("--together COLUMNS", says, action="append", type=_parse_names)
    says = "publish sums and means of this column, by the others; may be repeated"
    parser.add("--sum COLUMN", says, action="append")
    parser.add("--moment COLUMN", "the same, with variances; may be repeated", action="append")
    says = "answer these queries, for example 'ranges(age) * value(salary)'; may be repeated"
    parser.add("--queries QUERIES", says, action="append")
    says = "publish just this statistic, for example 'median of salary'; may be repeated"
    parser.add("--want STATISTIC", says, action="append")
    parser.add("--epsilon E", "what all views together may cost", type=epsilon)
    says = "the same in zero-concentrated privacy, in place of epsilon: many views cost less"
    parser.add("--rho R", says, type=rho)
    says = "a chance of failure beside epsilon; with rho, where its epsilon is stated; default: none, or 1e-9"
    parser.add("--delta D", says)
    says = "at most K rows of a person count; or auto: chosen privately for a small share of epsilon"
    parser.add("--contributions K", says, type=_parse_contributions)
    parser.add("--neighbors", "default: add-remove", choices=NEIGHBORS)
    says = "default: auto; `partita mechanisms` lists them; or MODULE:FACTORY, one of your own"
    parser.add("--mechanism NAME", says)
    add_options(parser, "an option of the mechanism, for example branching=16; may be repeated")


def spec_of(options: Options) -> Spec:
    """The spec that the options name, or an empty one."""
    return Spec() if options.spec is None else read_spec(options.spec)


def requested(options: Options, spec: Spec) -> dict[str, Any]:
    """The parameters of `plan` and `publish` that options or spec give; the others have their defaults."""
    flagged = options.epsilon is not None or options.rho is not None  # then the spec's budget does not count
    given = {
        "epsilon": options.epsilon if flagged else spec.epsilon,
        "rho": options.rho if flagged else spec.rho,
        "delta": options.delta or spec.delta,
        **_layout(options, spec),
        "together": options.together or spec.together,
        "sums": options.sum or spec.sums,
        "moments": options.moment or spec.moments,
        "queries": options.queries or spec.queries,
        "wants": options.want or spec.wants,
        **{name: getattr(options, name) or getattr(spec, name) for name in _EITHER},
        "options": _options_of_mechanism(options, spec) or None,
    }
    schema = schema_of(options, spec)
    if options.mechanism is not None and ":" in options.mechanism:  # never from a spec: it would run code
        given["mechanism"] = load_factory(options.mechanism)
    if given["epsilon"] is None and given["rho"] is None:
        fix = "pass --epsilon or --rho, or write it in the spec"
        raise argparse.ArgumentTypeError(f"epsilon is missing; {fix}")
    if given["epsilon"] is not None and given["rho"] is not None:
        raise argparse.ArgumentTypeError("epsilon and rho are two budgets; name one of them")
    return {"schema": schema} | {name: value for name, value in given.items() if value is not None}


def _options_of_mechanism(options: Options, spec: Spec) -> dict[str, object]:
    """The options of the spec, for which flags count more; those of another mechanism than its own do not."""
    other = options.mechanism is not None and options.mechanism != spec.mechanism
    stated = {} if other else spec.options or {}
    return {**stated, **dict(options.option)}


def schema_of(options: Options, spec: Spec) -> dict[str, Domain]:
    """The domain of every column that options or spec describe."""
    schema = dict(spec.columns) | _parse_columns(options.column)
    if not schema:
        raise argparse.ArgumentTypeError("no column is described; pass --spec, or --column for each")
    return schema


def _layout(options: Options, spec: Spec) -> dict[str, Any]:
    """Which columns are published together: all that options say about it, or all that the spec says."""
    if options.by is not None or options.view:
        return {"by": options.by, "views": options.view}
    return {"by": spec.by, "views": spec.views, "shares": spec.shares}


@argument
def _parse_columns(columns: Any) -> dict[str, Domain]:
    return {name: domain(name, entries, where="--column") for name, entries in described(columns).items()}


def reading(options: Options, spec: Spec) -> dict[str, Any]:
    """How files are read, as far as somebody has said so."""
    given = {"delimiter": options.delimiter or spec.delimiter, "header": spec.header}
    return {name: value for name, value in given.items() if value is not None}


def _parse_keys(text: str) -> list[str]:
    """Names of columns between commas, or none."""
    return _parse_names(text) if text.strip() else []


@argument
def _parse_names(text: str) -> list[str]:
    """Names of columns between commas; one that has a comma of its own stands in double quotes."""
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        names = []
    if names and all(names):
        return names
    fix = "write for example age,salary"
    raise InvalidParameter("columns", "must be names between commas", given=text, fix=fix)


# The commented spec that `partita init` writes: complete but for what only a steward can know.
_HEAD: Final = """\
# What a release says, for `partita plan` and `partita publish`. All of this is public.
#
# Delete the columns that are not to be published. Fill in what is commented out from public
# knowledge (a law, a form, a code book), never from the data: bounds that follow the data betray
# it. A value outside its bounds is not lost; it is counted in a special cell: below, above,
# invalid, null, or other."""

_MEANING: Final[Mapping[str, tuple[str, str]]] = {
    "type": ('"integer"', 'or "real", "date", "timestamp", "category", "text"'),
    "low": ('"0"', "the least value that is told apart"),
    "high": ('"100"', "the largest"),
    "step": ('"0.01"', "values are rounded to multiples of it"),
    "start": ('"2020-01-01"', "the first day that is told apart"),
    "end": ('"2029-12-31"', "the last; of slots of time, the first slot of that day"),
    "resolution": ('"1h"', "how long a slot of time is"),
    "max_bytes": ('"24"', "the longest text whose name can be found, in bytes of UTF-8"),
    "labels": ('["a", "b"]', 'all values, in the order in which ranges count them; or a file: "labels.csv"'),
}

_TOGETHER: Final = """
# All columns above are published together, and can be asked alone or together. Name fewer in by, or
# list in views which go together: each view has its share of epsilon.
# by = {by}
# views = {views}"""
_APART: Final = """
# Up to {most} columns can be published, and then asked, together: put them in one view.
views = {views}"""

_CSV_TEMPLATE: Final = """\
# [csv]                         # for .csv files only
# delimiter = ",\""""

_RELEASE_TEMPLATE: Final = f"""
# epsilon = "1"                 # or --epsilon; all views together cost this much
# rho = "1/8"                   # or --rho, in place of epsilon; many views cost less
# shares = [1, 1]               # how the views share it: a weight for each
# together = [["age", "salary"]]    # columns of a large table that matter in combination
# sums = ["salary"]             # sums and means of these columns, by the other columns of each view
# moments = ["salary"]          # the same, with variances
# queries = ["ranges(age) * value(salary)"]    # answers to exactly these queries
# wants = ["median of salary", "mean of delay by dest"]    # just these statistics, and nothing else
# delta = "1e-6"                # a chance of failure, beside epsilon; with rho, where its epsilon is stated
# person = "id"                 # the column that says whose row it is; without it, every row is a person
# contributions = 1             # at most this many rows of a person count; or "auto", chosen privately
# neighbors = "add-remove"      # or "change-one", if the number of people is public
# mechanism = "auto"            # `partita mechanisms` lists them
# options = {{branching = 16}}    # of the mechanism that is named

{_CSV_TEMPLATE}
# header = ["id", "age"]        # if the first line is a row already"""


def template(columns: Columns, delimiter: str | None = None) -> str:
    """A spec with these columns; what they leave open is a placeholder in a comment."""
    tables = [_column_lines(name, entries) for name, entries in columns.items()]
    release = _RELEASE_TEMPLATE
    if delimiter is not None:
        told = f"[csv]                           # for .csv files only\ndelimiter = {_quote(delimiter)}"
        release = release.replace(_CSV_TEMPLATE, told)
    return "\n\n".join([_HEAD, *tables, f"[release]{_layout_lines(list(columns))}{release}"]) + "\n"


def _layout_lines(names: list[str]) -> str:
    """Which columns are published together: all of them, if they are not too many."""
    from partita.domain.axis import MOST_COLUMNS

    views = ", ".join(f"[{_quote(name)}]" for name in names)
    shown = _TOGETHER if len(names) <= MOST_COLUMNS else _APART
    return shown.format(by=_value(names), views=f"[{views}]", most=MOST_COLUMNS) if len(names) > 1 else ""


def _column_lines(name: str, entries: Entries) -> str:
    known = [f"{key} = {_value(value)}" for key, value in entries.items()]
    return "\n".join([f"[columns.{_key(name)}]", *known, *_placeholders(entries)])


def _placeholders(entries: Entries) -> Iterator[str]:
    missing = open_entries(entries)
    for key in missing if missing != ["type"] else ("type", *COLUMN_KEYS["integer"]):
        example, meaning = _MEANING[key]
        yield f"# {f'{key} = {example}':<24}# {meaning}"


def _value(value: str | list[str]) -> str:
    return _quote(value) if isinstance(value, str) else f"[{', '.join(map(_quote, value))}]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quote(name)


def _quote(text: str) -> str:
    """A TOML string: JSON's, with nothing but printable characters left to escape."""
    return json.dumps(text, ensure_ascii=False)
