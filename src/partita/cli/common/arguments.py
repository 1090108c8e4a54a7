"""How commands are declared and single options are read: exactly, with a usage error that says what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias, TypeVar, get_args

from partita.cli.common.output import Outcome
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Neighbors, Unit, positive_epsilon
from partita.numbers import failure, integer

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
