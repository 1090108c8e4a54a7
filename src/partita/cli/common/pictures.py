"""Pictures that a command leaves behind; no window is opened."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from partita.cli.common.arguments import Options, argument
from partita.cli.common.writing import write_whole
from partita.errors.errors import InvalidParameter

_FORMATS: Final = (".png", ".svg", ".pdf")


def add_picture(declared: argparse.ArgumentParser) -> None:
    """Where the picture goes."""
    declared.add_argument(
        "-o",
        "--output",
        type=_path,
        required=True,
        metavar="FILE",
        help="its ending says the format: .png, .svg or .pdf",
    )
    declared.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def draw(picture: Callable[[], Any], options: Options) -> None:
    """Draw matplotlib axes and store their figure, whole or not at all."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    axes, drawn = picture(), BytesIO()
    axes.figure.savefig(drawn, format=Path(options.output).suffix[1:].lower(), bbox_inches="tight")
    write_whole(options.output, drawn.getvalue(), overwrite=options.force)


@argument
def _path(path: str) -> str:
    if not path.lower().endswith(_FORMATS):
        fix = "write for example age.png"
        raise InvalidParameter("output", f"must end in {', '.join(_FORMATS)}", given=path, fix=fix)
    return path
