"""`partita mechanisms`: what `--mechanism` can name."""

from __future__ import annotations

import inspect

from partita.cli.arguments import Commands, Options, command
from partita.cli.output import Outcome

__all__ = ["declare", "run"]


def declare(commands: Commands) -> None:
    """It takes nothing."""
    command(
        commands,
        "mechanisms",
        run,
        says="list the mechanisms that a column can be published with",
        example="partita mechanisms",
    )


def run(options: Options) -> Outcome:
    """Every mechanism and the first sentence about it; a new one is found by itself."""
    from partita.mechanisms.catalogue import axis_mechanisms
    from partita.releases.figures import table

    found = {name: _first_line(kind) for name, kind in sorted(axis_mechanisms().items())}
    return Outcome(
        table(found.items(), left=2), [{"mechanism": name, "says": says} for name, says in found.items()]
    )


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
