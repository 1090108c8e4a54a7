"""`partita plan`: what a release would cost and how well it would answer, without any data."""

from __future__ import annotations

from partita.cli.common.arguments import Commands, Options, command, whole
from partita.cli.common.output import Outcome
from partita.cli.spec.request import add_request, reading, requested, spec_of


def declare(commands: Commands) -> None:
    """What to publish, and guesses about the data that are public."""
    declared = command(
        commands,
        "plan",
        run,
        says="show mechanism, cost, expected error and size of a release; no private data is touched",
        example="partita plan --spec release.toml --epsilon 1 --rows 100000",
    )
    add_request(declared)
    declared.add_argument(
        "--rows", action="append", type=whole("rows"), metavar="N", help="a public guess; may be repeated"
    )
    declared.add_argument(
        "--step",
        action="append",
        metavar="STEP",
        help="compare a real column in a view of its own with this step; may be repeated",
    )
    declared.add_argument(
        "--simulate", metavar="FILE", help="measure errors on this file, which must be PUBLIC: no budget pays"
    )


def run(options: Options) -> Outcome:
    """Plan, and try the plan out on public data if some is named; the result says that it is not private."""
    from partita.publish.plan.planning import plan
    from partita.publish.plan.simulation import simulate

    spec = spec_of(options)
    planned = plan(**requested(options, spec), rows=options.rows, steps=options.step)
    if options.simulate is None:
        return Outcome(f"{planned} No data was touched.", [planned.to_json()])
    simulated = simulate(planned, options.simulate, **reading(options, spec))
    return Outcome(f"{planned}\n\n{simulated}", [planned.to_json() | simulated.to_json()])
