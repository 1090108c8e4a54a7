"""`partita info`: what a release is, and what its columns look like."""

from __future__ import annotations

import shutil
import sys
from textwrap import fill
from typing import TYPE_CHECKING, Final

from partita.cli.common.arguments import Commands, Options, command, probability
from partita.cli.common.output import Outcome, can_write
from partita.public.records import Record, column_records, query_record, sum_records, view_records

if TYPE_CHECKING:
    from partita.public.release.release import Release

_WIDEST: Final = 100
_BINS: Final = 16


def declare(commands: Commands) -> None:
    """The release."""
    declared = command(
        commands,
        "info",
        run,
        says="say what was released, with what guarantee and how exactly, and draw each column",
        example="partita info people.release.parquet",
    )
    declared.add_argument("release", metavar="RELEASE")
    declared.add_argument(
        "--beta",
        type=probability("beta"),
        default=0.05,
        metavar="B",
        help="of the error bound; default: %(default)s",
    )


def run(options: Options) -> Outcome:
    """The report, then a chart of each column."""
    from partita.public.file.file import load

    release = load(options.release)
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    lines = release.report(options.beta).splitlines()
    report = "\n".join(fill(line, width, subsequent_indent="  ") for line in lines)
    charts = [_chart(release, column, width) for column in release.columns]
    return Outcome("\n\n".join([report, *charts]), [_record(release, options.beta)])


def _chart(release: Release, column: str, width: int) -> str:
    from partita.public.report.chart import chart

    plain = not can_write("█▏±", sys.stdout)
    return "\n".join([column, *chart(release.slice(column), width, _BINS, ascii_only=plain)])


def _record(release: Release, beta: float) -> Record:
    from partita.public.file_entries.file_entries import guarantee_entries, provenance_entries

    return {
        "guarantee": guarantee_entries(release.guarantee),
        "provenance": provenance_entries(release.provenance),
        "error": {"beta": beta, "bound": release.error(beta) if release.views else None},
        "views": view_records(release),
        "sums": sum_records(release),
        "queries": query_record(release, beta),
        "columns": column_records(release),
    }
