"""`partita mechanisms`: what `--mechanism` can name, and what sums are published with."""

from __future__ import annotations

import inspect

from partita.cli.common.arguments import Commands, Options, command
from partita.cli.common.output import Outcome


def declare(commands: Commands) -> None:
    """It takes nothing."""
    command(
        commands,
        "mechanisms",
        run,
        says="list the mechanisms that columns can be published with",
        example="partita mechanisms",
    )


def run(options: Options) -> Outcome:
    """Every mechanism and the first sentence about it; a new one is found by itself."""
    from partita.public.base.figures import table
    from partita.trusted.mechanisms.catalogue import (
        axis_mechanisms,
        box_mechanisms,
        query_mechanisms,
        sum_mechanisms,
    )

    kinds = {
        "one": axis_mechanisms(),
        "several": box_mechanisms(),
        "sums": sum_mechanisms(),
        "queries": query_mechanisms(),
    }
    records = [
        {"mechanism": name, "columns": columns, "says": _first_line(kind)}
        for columns, known in kinds.items()
        for name, kind in sorted(known.items())
    ]
    return Outcome(table([tuple(records[0]), *(tuple(each.values()) for each in records)], left=3), records)


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
