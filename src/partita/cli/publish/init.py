"""`partita init`: a commented spec from a schema, never from values."""

from __future__ import annotations

from partita.cli.common.arguments import Commands, Options, argument, command
from partita.cli.common.output import Outcome
from partita.cli.common.writing import write_whole
from partita.cli.spec.columns import Columns, described, open_entries
from partita.cli.spec.template import template


def declare(commands: Commands) -> None:
    """Schemas, and where the spec goes."""
    declared = command(
        commands,
        "init",
        run,
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


def run(options: Options) -> Outcome:
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
