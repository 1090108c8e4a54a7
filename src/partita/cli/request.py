"""What is to be published, from a spec and from flags; a flag counts for more."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from partita.cli.arguments import NEIGHBORS, Options, argument, epsilon, whole
from partita.cli.columns import described
from partita.cli.spec import Spec, domain, read_spec

if TYPE_CHECKING:
    from partita.domain import Domain

__all__ = ["add_request", "reading", "requested", "spec_of"]

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
        "--view", action="append", metavar="COLUMN", help="publish this column; default: every column"
    )
    declared.add_argument("--epsilon", type=epsilon, metavar="E", help="what all views together may cost")
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
    schema = _schema(options, spec)
    views = options.view or spec.views or list(schema)
    said = {
        "epsilon": options.epsilon or spec.epsilon,
        "shares": None if options.view else spec.shares,
        **{name: getattr(options, name) or getattr(spec, name) for name in _EITHER},
    }
    if said["epsilon"] is None:
        raise argparse.ArgumentTypeError("epsilon is missing; pass --epsilon, or write it in the spec")
    return {"schema": schema, "views": views} | {
        name: value for name, value in said.items() if value is not None
    }


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
