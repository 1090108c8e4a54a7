"""What a command shows: text for people, JSON for programs, both on stdout."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias, TypeVar, final, get_args

from partita.errors import InvalidParameter
from partita.guarantee import Neighbors, Unit, positive_epsilon
from partita.numbers import failure, integer
from partita.public.records import Record, plain


@final
@dataclass(frozen=True)
class Outcome:
    """The result of a command, twice: as text, and as one or more JSON objects."""

    text: str
    records: Sequence[Record]

    @staticmethod
    def of(text: str, /, **entries: object) -> Outcome:
        """A result that is one object."""
        return Outcome(text, [entries])


def show(outcome: Outcome, *, as_json: bool) -> None:
    """Write a result to stdout, all of it, or raise what the system says."""
    if as_json:
        text = "\n".join(json.dumps(plain(record), allow_nan=False) for record in outcome.records)
    else:
        text = printable(outcome.text, sys.stdout)
    if text and sys.stdout is not None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def printable(text: str, stream: TextIO | None) -> str:
    r"""Text that cannot steer a terminal and that its encoding can write.

    >>> print(printable("clear \x1b[2J", None))
    clear \x1b[2J
    """
    shown = "".join(sign if sign.isprintable() or sign == "\n" else _escaped(sign) for sign in text)
    return shown.encode(_encoding(stream), "replace").decode(_encoding(stream))


def can_write(text: str, stream: TextIO | None) -> bool:
    """Whether the encoding of a stream has all these characters."""
    return text.encode(_encoding(stream), "ignore").decode(_encoding(stream)) == text


def with_error(value: float, error: float) -> str:
    """A count and its standard error.

    >>> with_error(1234.5, 12.34)
    '1,234 ± 12.3'
    """
    from partita.public.base import figure

    return f"{figure(value)} ± {figure(error)}"


def _encoding(stream: TextIO | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


# How commands are declared and single options are read: exactly, with a usage error that says what to do.


Options: TypeAlias = argparse.Namespace
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Value = TypeVar("Value")

NEIGHBORS = get_args(Neighbors)
UNITS = get_args(Unit)


def command(
    commands: Commands, name: str, run: Callable[[Options], Outcome], *, says: str, example: str
) -> argparse.ArgumentParser:
    """A command called `name` that `run` carries out; every one can answer in JSON."""
    declared = commands.add_parser(
        name,
        help=says,
        description=says[0].upper() + says[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    declared.add_argument("--json", action="store_true", help="write JSON to stdout")
    declared.set_defaults(run=run)
    return declared


def argument(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """`read` for argparse: what Partita says about a wrong value becomes a usage error."""

    def checked(text: str) -> Value:
        try:
            return read(text)
        except InvalidParameter as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


@argument
def epsilon(text: str) -> Fraction:
    """A positive number, exact: 0.1 is 1/10."""
    return positive_epsilon(text)


def probability(name: str) -> Callable[[str], float]:
    """A number strictly between 0 and 1."""
    return argument(lambda text: float(failure(text, name)))


def whole(name: str, *, low: int = 1) -> Callable[[str], int]:
    """An integer from `low` on; underscores may group its digits."""
    return argument(lambda text: integer(_digits(text, name), name, low=low, high=2**63 - 1))


def _digits(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(name, "must be an integer", given=text, fix="write digits only") from None


# Files that a command leaves behind, whole or not at all.


def write_whole(path: str, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file in one step; what stops that is said in the words of the command line."""
    from partita.storage import Temporary, checked_path

    try:
        with Temporary(checked_path(path), overwrite=overwrite) as temporary:
            temporary.write(data)
            temporary.commit()
    except InvalidParameter as error:
        fix = error.fix.replace("overwrite=True", "--force")
        raise InvalidParameter("output", error.rule, given=path, fix=fix) from None


# Pictures that a command leaves behind; no window is opened.


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
