"""What every command shares: results as text and JSON, the parser, readers of arguments, and whole files."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias, TypeVar, final, get_args

from partita.concentrated import positive
from partita.errors import InvalidParameter, check
from partita.guarantee import Neighbors, Unit, positive_epsilon
from partita.numbers import check_probability, integer
from partita.public.records import Record, to_plain

if TYPE_CHECKING:
    from partita.ledger.entries import Amount

Options: TypeAlias = argparse.Namespace
Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
Action: TypeAlias = "Callable[[Options], Outcome]"
Value = TypeVar("Value")

NEIGHBORS: Final = get_args(Neighbors)
UNITS: Final = get_args(Unit)
FORCE: Final = ("--force", "overwrite the file if it exists")

_PICTURE_FORMATS: Final = (".png", ".svg", ".pdf")


@final
@dataclass(frozen=True)
class Outcome:
    """The result of a command, twice: as text, and as one or more JSON objects.

    `errors` go to stderr, and `code` is the exit code, where only a part of a command succeeded.
    """

    text: str
    records: Sequence[Record]
    errors: Sequence[str] = ()
    code: int = 0

    @staticmethod
    def of(text: str, /, **entries: object) -> Outcome:
        """A result that is one object."""
        return Outcome(text, [entries])


NOTHING: Final = Outcome("", [])


def show(outcome: Outcome, *, as_json: bool) -> None:
    """Write a result to stdout, all of it, or raise what the system says."""
    if as_json:
        text = "\n".join(json.dumps(to_plain(record), allow_nan=False) for record in outcome.records)
    else:
        text = printable(outcome.text, sys.stdout)
    if text and sys.stdout is not None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def say(message: str) -> None:
    """Write a message to stderr, if it is open."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(printable(f"partita: {message}\n", sys.stderr))


def printable(text: str, stream: TextIO | None) -> str:
    r"""Text that cannot steer a terminal and that its encoding can write.

    >>> print(printable("clear \x1b[2J", None))
    clear \x1b[2J
    """
    shown = "".join(
        sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )
    return shown.encode(_encoding(stream), "replace").decode(_encoding(stream))


def can_write(text: str, stream: TextIO | None) -> bool:
    """Whether the encoding of a stream has all these characters."""
    return text.encode(_encoding(stream), "ignore").decode(_encoding(stream)) == text


def _encoding(stream: TextIO | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def table(rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Rows in columns, the first `left` of them flush left. NumPy loads here, not when the program starts."""
    from partita.public.base import table as align

    return align(rows, left=left)


# Commands and their arguments; a wrong argument is a usage error that says what to do.
class CommandParser(argparse.ArgumentParser):
    """A parser of one command, to which arguments are added as their usage is written."""

    def add(self, usage: str, says: str | None = None, *, group: Any = None, **settings: Any) -> None:
        """Add an argument, such as "--rows N", "-o --output FILE", "RELEASE", or "--force", which is a flag.

        A positional argument that has another name than its metavar is written "questions QUESTION".
        With a `group` of argparse, it is added there.
        """
        add = (group or self).add_argument
        names = [word for word in usage.split() if word.startswith("-")]
        others = [word for word in usage.split() if not word.startswith("-")]
        if not names:
            add(others[0].lower(), metavar=others[-1], help=says, **settings)
        elif others:
            add(*names, metavar=others[0], help=says, **settings)
        else:
            add(*names, help=says, **(settings or {"action": "store_true"}))


def command(commands: Commands, name: str, run: Action, says: str, *, example: str) -> CommandParser:
    """A command called `name` that `run` carries out; every one can answer in JSON."""
    parser = commands.add_parser(
        name,
        help=says,
        description=says[0].upper() + says[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add("--json", "write JSON to stdout")
    parser.set_defaults(run=run)
    return parser


def command_group(commands: Commands, name: str, says: str) -> Commands:
    """A command that has commands of its own."""
    group = commands.add_parser(name, help=says, allow_abbrev=False)
    return group.add_subparsers(title="acts", metavar="ACT", required=True)


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


@argument
def rho(text: str) -> Fraction:
    """A positive number, exact: 1/8 is an eighth."""
    return positive(text, "rho", example='"1/8"')


def check_one_budget(epsilon: object, rho: object) -> None:
    """Refuse both budgets, and neither: what a usage error is, and not one of the library."""
    if (epsilon is None) == (rho is None):
        given = "epsilon is missing" if epsilon is None else "epsilon and rho are two budgets"
        raise argparse.ArgumentTypeError(f"{given}; pass one of --epsilon and --rho")


def amount_record(amount: Amount) -> Record:
    """What a ledger counts, for JSON."""
    rho = {} if amount.rho is None else {"rho": amount.rho}
    return {"epsilon": amount.epsilon, "delta": amount.delta, **rho}


def probability(name: str) -> Callable[[str], float]:
    """A number strictly between 0 and 1."""
    return argument(lambda text: float(check_probability(text, name)))


def whole(name: str, *, low: int = 1) -> Callable[[str], int]:
    """An integer from `low` on; underscores may group its digits."""
    return argument(lambda text: integer(_digits(text, name), name, low=low, high=2**63 - 1))


def _digits(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(name, "must be an integer", given=text, fix="write digits only") from None


def add_options(parser: CommandParser, says: str) -> None:
    """Options of a mechanism by their names, in the order in which they are given."""
    parser.add("--option NAME=VALUE", says, action="append", default=[], type=_named_value)


def _named_value(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, for example branching=16, got {text!r}")
    return name.strip(), value.strip()


def add_beta(parser: CommandParser, says: str) -> None:
    """The probability that bounds fail."""
    parser.add("--beta B", f"{says}; default: %(default)s", type=probability("beta"), default=0.05)


def add_confidence(parser: CommandParser, says: str) -> None:
    """The probability that an interval holds."""
    says = f"{says}; default: %(default)s"
    parser.add("--confidence C", says, type=probability("confidence"), default=0.95)


def load_factory(named: str) -> Any:
    """The function of a module; modules are searched for in the current folder first."""
    module, _, name = named.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        rule = "must name a module and a function in it"
        raise InvalidParameter("mechanism", rule, given=named, fix="write module:factory") from None


# Files and pictures that a command leaves behind, whole or not at all; no window is opened.
def write_whole(path: str, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file in one step; errors name the options of the command line."""
    from partita.storage import Temporary
    from partita.storage import check_path as checked_path

    try:
        with Temporary(checked_path(path), overwrite=overwrite) as temporary:
            temporary.write(data)
            temporary.commit()
    except InvalidParameter as error:
        fix = error.fix.replace("overwrite=True", "--force")
        raise InvalidParameter("output", error.rule, given=path, fix=fix) from None


def add_picture(parser: CommandParser) -> None:
    """Where the picture goes."""
    says = "its ending says the format: .png, .svg or .pdf"
    parser.add("-o --output FILE", says, type=_picture_path, required=True)
    parser.add(*FORCE)


def draw(picture: Callable[[], Any], options: Options) -> None:
    """Draw matplotlib axes and store their figure, whole or not at all."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    axes, drawn = picture(), BytesIO()
    axes.figure.savefig(drawn, format=Path(options.output).suffix[1:].lower(), bbox_inches="tight")
    write_whole(options.output, drawn.getvalue(), overwrite=options.force)


@argument
def _picture_path(path: str) -> str:
    rule, fix = f"must end in {', '.join(_PICTURE_FORMATS)}", "write for example age.png"
    check(path.lower().endswith(_PICTURE_FORMATS), "output", rule, given=path, fix=fix)
    return path
