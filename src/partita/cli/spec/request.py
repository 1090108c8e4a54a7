"""What is to be published, from a spec and from flags; a flag counts for more."""

from __future__ import annotations

import argparse
import csv
from typing import TYPE_CHECKING, Any, Final

from partita.cli.common.arguments import NEIGHBORS, Options, argument, epsilon, whole
from partita.cli.spec.columns import described
from partita.cli.spec.spec import Spec, domain, read_spec
from partita.errors.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.domain.base.base import Domain

_EITHER: Final = ("person", "contributions", "neighbors", "mechanism")


def add_request(declared: argparse.ArgumentParser) -> None:
    """The options that say what to publish."""
    declared.add_argument("--spec", metavar="FILE", help="a spec in TOML; `partita init` writes one")
    declared.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME:TYPE(BOUNDS)",
        help="a column, for example age:integer(0,120); may be repeated",
    )
    declared.add_argument(
        "--by",
        type=_keys,
        metavar="COLUMNS",
        help="publish these columns together, for example age,salary; default: every column; "
        'with --sum, "" for whole sums only',
    )
    declared.add_argument(
        "--view",
        action="append",
        type=_names,
        metavar="COLUMNS",
        help="publish these columns together and others apart; may be repeated, in place of --by",
    )
    declared.add_argument(
        "--sum",
        action="append",
        metavar="COLUMN",
        help="publish sums and means of this column, by the others; may be repeated",
    )
    declared.add_argument(
        "--moment", action="append", metavar="COLUMN", help="the same, with variances; may be repeated"
    )
    declared.add_argument(
        "--queries",
        action="append",
        metavar="QUERIES",
        help="answer these queries, for example 'ranges(age) * value(salary)'; may be repeated",
    )
    declared.add_argument("--epsilon", type=epsilon, metavar="E", help="what all views together may cost")
    declared.add_argument(
        "--delta", metavar="D", help="a chance of failure that queries may have; default: none"
    )
    declared.add_argument("--person", metavar="COLUMN", help="the column of ids; default: a row is a person")
    declared.add_argument(
        "--contributions", type=whole("contributions"), metavar="K", help="at most K rows of a person count"
    )
    declared.add_argument("--neighbors", choices=NEIGHBORS, help="default: add-remove")
    declared.add_argument(
        "--mechanism", metavar="NAME", help="default: auto; `partita mechanisms` lists them"
    )
    declared.add_argument(
        "--delimiter", metavar="SIGN", help="between the fields of a CSV file; default: a comma"
    )


def spec_of(options: Options) -> Spec:
    """The spec that the options name, or an empty one."""
    return Spec() if options.spec is None else read_spec(options.spec)


def requested(options: Options, spec: Spec) -> dict[str, Any]:
    """The parameters of `plan` and `publish`; what nobody has said is left to their defaults."""
    said = {
        "epsilon": options.epsilon or spec.epsilon,
        "delta": options.delta or spec.delta,
        **_layout(options, spec),
        "sums": options.sum or spec.sums,
        "moments": options.moment or spec.moments,
        "queries": options.queries or spec.queries,
        **{name: getattr(options, name) or getattr(spec, name) for name in _EITHER},
    }
    schema = _schema(options, spec)
    if said["epsilon"] is None:
        raise argparse.ArgumentTypeError("epsilon is missing; pass --epsilon, or write it in the spec")
    return {"schema": schema} | {name: value for name, value in said.items() if value is not None}


def _layout(options: Options, spec: Spec) -> dict[str, Any]:
    """Which columns are published together: all that options say about it, or all that the spec says."""
    if options.by is not None or options.view:
        return {"by": options.by, "views": options.view}
    return {"by": spec.by, "views": spec.views, "shares": spec.shares}


def _schema(options: Options, spec: Spec) -> dict[str, Domain]:
    schema = dict(spec.columns) | _inline(options.column)
    if not schema:
        raise argparse.ArgumentTypeError("no column is described; pass --spec, or --column for each")
    return schema


@argument
def _inline(columns: Any) -> dict[str, Domain]:
    return {name: domain(name, entries, where="--column") for name, entries in described(columns).items()}


def reading(options: Options, spec: Spec) -> dict[str, Any]:
    """How files are read, as far as somebody has said so."""
    said = {"delimiter": options.delimiter or spec.delimiter, "header": spec.header}
    return {name: value for name, value in said.items() if value is not None}


def _keys(text: str) -> list[str]:
    """Names of columns between commas, or none."""
    return _names(text) if text.strip() else []


@argument
def _names(text: str) -> list[str]:
    """Names of columns between commas; one that has a comma of its own stands in double quotes."""
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        names = []
    if names and all(names):
        return names
    fix = "write for example age,salary"
    raise InvalidParameter("columns", "must be names between commas", given=text, fix=fix)
