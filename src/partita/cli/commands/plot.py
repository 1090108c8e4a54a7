"""`partita plot`: a picture of a column, or of two."""

from __future__ import annotations

import argparse
import os
from io import BytesIO
from pathlib import Path
from typing import Final

from partita.cli.arguments import Commands, Options, argument, command
from partita.cli.grammar import conditions
from partita.cli.output import Outcome
from partita.cli.writing import write_whole
from partita.errors import InvalidParameter

__all__ = ["declare", "run"]

_FORMATS: Final = (".png", ".svg", ".pdf")


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
        type=argument(conditions),
        default={},
        metavar="CONDITIONS",
        help='draw only these rows, for example "age between 30 and 39"',
    )
    declared.add_argument(
        "-o",
        "--output",
        type=_picture,
        required=True,
        metavar="FILE",
        help="its ending says the format: .png, .svg or .pdf",
    )
    declared.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def run(options: Options) -> Outcome:
    """Draw and store; no window is opened."""
    if len(options.columns) > 2:
        raise argparse.ArgumentTypeError("a picture has one column or two; name no more")
    from partita.cli.cells import asked
    from partita.releases.file import load

    os.environ.setdefault("MPLBACKEND", "Agg")
    axes, picture = load(options.release).plot(*options.columns, **asked(options.where)), BytesIO()
    axes.figure.savefig(picture, format=Path(options.output).suffix[1:].lower(), bbox_inches="tight")
    write_whole(options.output, picture.getvalue(), overwrite=options.force)
    drawn = " and ".join(options.columns)
    return Outcome.of(f"drew {drawn} in {options.output}", path=options.output, columns=options.columns)


@argument
def _picture(path: str) -> str:
    if not path.lower().endswith(_FORMATS):
        raise InvalidParameter(
            "output", f"must end in {', '.join(_FORMATS)}", given=path, fix="write for example age.png"
        )
    return path
