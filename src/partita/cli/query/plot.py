"""`partita plot`: a picture of a column, or of two."""

from __future__ import annotations

import argparse

from partita.cli.common.arguments import Commands, Options, argument, command
from partita.cli.common.output import Outcome
from partita.cli.common.pictures import add_picture, draw
from partita.public.grammar import parse_where


def declare(commands: Commands) -> None:
    """The release, the columns, and where the picture goes."""
    declared = command(
        commands,
        "plot",
        run,
        says="draw a column of a release, or a heat map of two; needs the extra `plot`",
        example="partita plot people.release.parquet age salary -o map.png",
    )
    declared.add_argument("release", metavar="RELEASE")
    declared.add_argument("columns", nargs="+", metavar="COLUMN", help="one, or two for a heat map")
    declared.add_argument(
        "--where",
        type=argument(parse_where),
        default={},
        metavar="CONDITIONS",
        help='draw only these rows, for example "age between 30 and 39"',
    )
    add_picture(declared)


def run(options: Options) -> Outcome:
    """Draw and store; no window is opened."""
    if len(options.columns) > 2:
        raise argparse.ArgumentTypeError("a picture has one column or two; name no more")
    from partita.public.file.file import load

    release = load(options.release)
    draw(lambda: release.plot(*options.columns, where=options.where), options)
    drawn = " and ".join(options.columns)
    return Outcome.of(f"drew {drawn} in {options.output}", path=options.output, columns=options.columns)
